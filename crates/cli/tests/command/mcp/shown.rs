//! How a server is written down: so that it is known again, and without what only its owner may know.

use super::memory::check_folder;
use crate::world::World;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;

/// Starts a proxy with these arguments, and reads what was written down of its server.
#[track_caller]
fn check(args: &[&str], expected: &str, secrets: &[&str]) {
    let world = World::empty();
    world.run(&[&["mcp", "--no-restart"], args].concat(), format!("{INITIALIZE}\n"));
    let log = world.run(&["log", "--json", "--last", "50"], "");
    assert!(log.stdout().contains(expected), "{expected}\n{log}");
    for secret in secrets {
        check_folder(&world.path(""), secret.as_bytes());
    }
}

#[test]
fn an_address_is_kept_without_who_asks_and_what_is_asked() {
    check(
        &["--url", "http://me:Zebra77pass@127.0.0.1:1/mcp/s/nG4tvQ2xLm9/mcp?key=Qq7RtY55"],
        "http://127.0.0.1:1/mcp/",
        &["Zebra77pass", "nG4tvQ2xLm9", "Qq7RtY55"],
    );
}

#[test]
fn a_command_is_kept_without_the_values_that_its_options_call_secret() {
    check(
        &[
            "--",
            "true",
            "--tide",
            "9",
            "--tide-key",
            "lowTide",
            "--auth-code=ebb",
            "-H",
            "X-Tide: springTide",
        ],
        "true --tide 9 --tide-key",
        &["lowTide", "ebb", "springTide"],
    );
}
