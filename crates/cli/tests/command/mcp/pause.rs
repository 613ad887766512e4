//! After a pause somebody else has had the word, and a run that was halted may go on.

use std::fs;

use serde_json::{Value, json};

use super::client::{Client, peer};
use crate::clock::clock;
use crate::world::World;

/// As many seconds as a file says.
const AHEAD: &str = r#"
static long ahead(void) {
    char said[32] = "0";
    const char *path = getenv("CLOCK_AHEAD");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        ssize_t length = read(file, said, sizeof said - 1);
        said[length > 0 ? length : 0] = 0;
        close(file);
    }
    return atol(said);
}"#;

#[test]
fn a_run_that_was_halted_goes_on_after_a_minute_without_a_call() {
    let world = World::empty().with("ahead", "0");
    let mut command = world.command(&["mcp", "--name", "peer", "--", &peer()]);
    command.env("LD_PRELOAD", clock(&world.path(""), AHEAD)).env("CLOCK_AHEAD", world.path("ahead"));
    let mut client = Client::by(command);
    client.introduce("tester");
    client.ask("tools/list", json!({}));
    let missing = json!({ "text": "ENOENT: no such file or directory, open '/srv/tide.db'" });
    let mut status = Value::Null;
    for _ in 0..20 {
        status = client.fails("fail", missing.clone())["status"].clone();
        if status == "halted" {
            break;
        }
    }
    assert_eq!(status, "halted");
    let is_halted = |client: &mut Client| {
        client.call("echo", json!({ "text": "a" })).to_string().contains(r#"\"status\":\"halted\""#)
    };
    assert!(is_halted(&mut client), "nothing runs");
    let check = |client: &mut Client, seconds: i64, expected: bool| {
        fs::write(world.path("ahead"), seconds.to_string()).unwrap();
        assert_eq!(is_halted(client), expected, "{seconds} s later");
    };
    // Each try begins the pause anew, and a clock that is set back is none.
    check(&mut client, 40, true);
    check(&mut client, 10, true);
    check(&mut client, 45, true);
    check(&mut client, 110, false);
    assert_eq!(client.works("echo", json!({ "text": "on it goes" })), "on it goes");
    assert_eq!(client.end().0, 0);
}

#[test]
fn what_was_refused_is_tried_once_more_after_half_a_minute_whatever_else_goes_on() {
    let world = World::empty().with("ahead", "0");
    let mut command = world.command(&["mcp", "--name", "peer", "--", &peer()]);
    command.env("LD_PRELOAD", clock(&world.path(""), AHEAD)).env("CLOCK_AHEAD", world.path("ahead"));
    let mut client = Client::by(command);
    client.introduce("tester");
    client.ask("tools/list", json!({}));
    let missing = json!({ "text": "ENOENT: no such file or directory, open '/srv/tide.db'" });
    let mut check = |seconds: u64, expected: Value| {
        fs::write(world.path("ahead"), seconds.to_string()).unwrap();
        client.works("echo", json!({ "text": "meanwhile" }));
        let told = client.fails("fail", missing.clone());
        assert_eq!(told["status"], expected, "{seconds} s later: {told}");
    };
    check(0, Value::Null);
    check(0, Value::Null);
    check(0, json!("denied"));
    check(20, json!("denied"));
    check(35, Value::Null);
    check(36, json!("denied"));
}
