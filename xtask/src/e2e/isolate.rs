//! A network that ends at this machine: the chore starts itself once more in a namespace with nothing but loopback, so that
//! no agent reaches anything but its scripted model, and no daemon of theirs outlives the run.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs};

use tempfile::TempPath;

/// Brings loopback up, then becomes the given program.
const BEHIND: &str = r#"ip link set lo up && exec "$@""#;

/// Ways into a namespace: as root, or as a user who may make one.
const WAYS: [&[&str]; 2] = [
    &["--net", "--pid", "--fork", "--kill-child", "--mount-proc"],
    &["--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"],
];

/// What became of the run behind the wall.
pub enum Behind {
    /// It ended, and said this last.
    Ended {
        /// With exit code 0?
        well: bool,
        /// Its last line.
        last_line: String,
    },
    /// This machine makes no wall.
    NoWall,
}

/// This chore with these arguments, behind the wall; what it says is shown while it runs.
pub fn again(args: &[&str]) -> io::Result<Behind> {
    let enter = |way: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(way).args(["sh", "-c", BEHIND, "sh"]);
        command
    };
    let opens = |way: &&&[&str]| {
        let mut probe = enter(way);
        probe.arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    };
    let Some(way) = WAYS.iter().find(opens) else {
        println!("this machine makes no namespace: the agents run with the network as it is");
        return Ok(Behind::NoWall);
    };
    let program = own_program()?;
    let mut child = enter(way).arg(&program).args(args).stdout(Stdio::piped()).spawn()?;
    let mut last_line = String::new();
    for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufReader::lines) {
        last_line = line?;
        println!("{last_line}");
    }
    Ok(Behind::Ended { well: child.wait()?.success(), last_line })
}

/// This program as a file of its own: cargo may have built another one in its place since it was started.
fn own_program() -> io::Result<TempPath> {
    let running = Path::new("/proc/self/exe");
    let copy = tempfile::Builder::new().prefix("chore-").tempfile()?.into_temp_path();
    // A copy has the permissions of what is copied.
    match running.exists() {
        true => fs::copy(running, &copy)?,
        false => fs::copy(env::current_exe()?, &copy)?,
    };
    Ok(copy)
}
