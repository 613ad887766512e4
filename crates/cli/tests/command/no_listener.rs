//! No command opens a port: other users of the machine, and pages in a browser, find nothing to talk to.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::fd::AsRawFd;
use std::process::Child;
use std::thread;
use std::time::Duration;

use crate::world::World;

/// Returns the inodes of all TCP sockets of this machine that listen, and of all Unix sockets that listen.
fn listening_inodes() -> Vec<String> {
    const TCP_LISTEN: &str = "0A";
    const UNIX_ACCEPTING: &str = "00010000";
    let mut inodes = Vec::new();
    for table in ["tcp", "tcp6"] {
        let rows = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        inodes.extend(
            rows.lines()
                .map(|row| row.split_whitespace().collect::<Vec<_>>())
                .filter(|row| row.get(3) == Some(&TCP_LISTEN))
                .map(|row| row[9].to_owned()),
        );
    }
    let rows = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    inodes.extend(
        rows.lines()
            .map(|row| row.split_whitespace().collect::<Vec<_>>())
            .filter(|row| row.get(3) == Some(&UNIX_ACCEPTING))
            .map(|row| row[6].to_owned()),
    );
    inodes
}

/// Returns the sockets on which the process listens.
fn listens_on(process: u32) -> Vec<String> {
    let listening = listening_inodes();
    let Ok(open) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    open.flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter_map(|target| {
            let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned();
            listening.contains(&inode).then_some(inode)
        })
        .collect()
}

#[track_caller]
fn never_listens(mut child: Child, name: &str) {
    for _ in 0..20 {
        assert_eq!(listens_on(child.id()), Vec::<String>::new(), "{name} listens");
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn no_command_that_stays_listens_on_a_socket() {
    let world = World::empty();
    for args in [
        &["mcp-server"][..],
        &["mcp", "--", "cat"],
        &["mcp", "--url", "http://127.0.0.1:1/mcp"],
        &["run", "--", "sleep", "5"],
        &["log", "--follow"],
        &["hook", "claude"],
    ] {
        never_listens(world.command(args).spawn().unwrap(), &args.join(" "));
    }
}

#[test]
fn a_process_that_listens_is_noticed() {
    let own = std::process::id();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let socket = fs::read_link(format!("/proc/{own}/fd/{}", listener.as_raw_fd())).unwrap();
    let inode = socket.to_str().unwrap().trim_start_matches("socket:[").trim_end_matches(']').to_owned();
    assert!(listens_on(own).contains(&inode), "{inode}");
}
