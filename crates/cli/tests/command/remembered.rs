//! What helped before is told at the doors of agents and of commands, with what has changed since.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::agent::{hook, watched};
use crate::world::{Said, World};

const FAILURE: &str = "a.c:1:10: fatal error: openssl/ssl.h: No such file or directory";
const FIX: &str = "sudo apt-get install -y libssl-dev";

/// A machine on which `frob`, as old as the hills, says that a header is missing.
fn world() -> World {
    let script = format!("#!/bin/sh\necho '{FAILURE}' >&2\nexit 2\n");
    let world = World::empty().with("bin/frob", script);
    fs::set_permissions(world.path("bin/frob"), fs::Permissions::from_mode(0o755)).unwrap();
    world
}

/// One call of an agent; what is said with its result. It is told of some time ahead of the clock, so that all programs are older.
#[track_caller]
fn tries(world: &World, session: &str, command: &str, exit: i32) -> String {
    let soon = SystemTime::now() + Duration::from_secs(5);
    let at = soon.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64;
    let mut payload = json!({ "event": "before", "session": session, "call_id": format!("{session}-{command}-{exit}"),
        "tool": "Bash", "cwd": world.path(""), "at": at, "input": { "command": command } });
    let before = payload.to_string();
    payload["event"] = json!("after");
    payload["exit_code"] = json!(exit);
    payload["stderr"] = json!(if exit == 0 { "" } else { FAILURE });
    hook(world, &format!("{before}\n{payload}\n")).stdout().to_owned()
}

fn learn(world: &World) {
    let frob = world.path("bin/frob").to_string_lossy().into_owned();
    tries(world, "one", &frob, 2);
    tries(world, "one", FIX, 0);
    tries(world, "one", &frob, 0);
    watched(world);
}

#[test]
fn a_program_that_was_exchanged_since_is_told_of() {
    let world = world();
    let frob = world.path("bin/frob").to_string_lossy().into_owned();
    learn(&world);
    let said = tries(&world, "two", &frob, 2);
    assert!(said.contains(FIX) && !said.contains("another version"), "{said}");
    let file = fs::File::options().write(true).open(&frob).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(20)).unwrap();
    let said = tries(&world, "three", &frob, 2);
    assert!(said.contains(FIX) && said.contains("worked, with another version of the program"), "{said}");
}

#[test]
fn a_command_that_fails_says_what_helped_before() {
    let world = world();
    let frob = world.path("bin/frob").to_string_lossy().into_owned();
    let run = |args: &[&str]| -> Said { world.run(&[&["run"], args, &["--", &frob]].concat(), "") };
    assert!(!run(&[]).stderr().contains("memory"));
    learn(&world);
    let said = run(&[]);
    assert_eq!(said.exit, 2, "{said}");
    assert!(said.stderr().contains("\n  memory  Remembered from earlier calls"), "{said}");
    assert!(said.stderr().contains(&format!("`{FIX}`")), "{said}");
    let said = run(&["--json"]);
    let told: serde_json::Value = serde_json::from_str(said.stderr().lines().last().unwrap()).unwrap();
    assert!(told["remembered"].as_str().unwrap().contains(FIX), "{said}");
    // Nobody sees what a person does about it, so the lesson is not judged by that.
    let lesson = world.run(&["lessons", "show", "L1", "--json"], "").json();
    assert_eq!((&lesson["shown"], &lesson["losses"]), (&json!(0), &json!(0)));
}
