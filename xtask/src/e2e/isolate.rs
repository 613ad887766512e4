//! A network that ends at this machine: the chore starts itself once more in a namespace with nothing but loopback, so that
//! no agent reaches anything but its scripted model, and no daemon of theirs outlives the run.

use std::process::{Command, ExitStatus, Stdio};
use std::{env, io};

/// Brings loopback up, then becomes the given program.
const BEHIND: &str = r#"ip link set lo up && exec "$@""#;

/// Ways into a namespace: as root, or as a user who may make one.
const WAYS: [&[&str]; 2] = [
    &["--net", "--pid", "--fork", "--kill-child", "--mount-proc"],
    &["--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"],
];

/// This chore with these arguments, behind the wall; nothing where this machine makes none.
pub fn again(args: &[&str]) -> io::Result<Option<ExitStatus>> {
    let this = env::current_exe()?;
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
    WAYS.iter().find(opens).map(|way| enter(way).arg(this).args(args).status()).transpose()
}
