//! `unstuck http` over TLS: whom it trusts. The server and its certificates are made by `openssl`, where there is one.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::world::{Said, World};

/// A server with a certificate of an authority that only `ca.pem` knows.
struct TlsServer {
    child: Child,
    url: String,
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn openssl(world: &World, args: &str) {
    let made = Command::new("openssl").args(args.split(' ')).current_dir(world.path("")).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

fn server(world: &World) -> TlsServer {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(world, &format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=authority"));
    openssl(world, &format!("req {key} -keyout own.key -out own.csr -subj /CN=localhost"));
    let signed =
        "x509 -req -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out own.pem -days 2 -extfile ext";
    openssl(world, signed);
    let mut command = Command::new("openssl");
    command.args("s_server -accept 127.0.0.1:0 -cert own.pem -key own.key -www".split(' '));
    let command =
        command.current_dir(world.path("")).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let place = lines.find_map(|line| Some(line.unwrap().strip_prefix("ACCEPT ")?.to_owned())).unwrap();
    // It goes on to print, and must find somebody who reads.
    std::thread::spawn(move || lines.for_each(drop));
    TlsServer { child, url: format!("https://{place}/") }
}

#[test]
fn only_those_whom_the_machine_trusts_are_asked() {
    if Command::new("openssl").arg("version").output().is_err() {
        return;
    }
    let world = World::empty().with("ext", "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n");
    let server = server(&world);
    let get = |trusted: Option<&str>| {
        let mut command = world.command(&["http", "GET", &server.url]);
        command.envs(trusted.map(|file| ("SSL_CERT_FILE", world.path(file)))).stdin(Stdio::null());
        Said::by(command.spawn().unwrap())
    };
    let said = get(Some("ca.pem"));
    assert!(said.exit == 0 && said.stdout().contains("TLSv1"), "{said}");
    get(None).complains(1, &["network", "invalid peer certificate: UnknownIssuer"]);
}
