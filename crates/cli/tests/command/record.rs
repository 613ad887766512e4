//! `unstuck record`: a command that somebody else ran is diagnosed, told in a line, and put into the timeline.

use crate::world::World;

/// Records an ending, and returns what is said of it behind the clock.
#[track_caller]
fn check(args: &[&str], output: &[u8], lines: &[&str]) {
    let said = World::empty().run(&[&["record", "--duration-ms", "5200"], args].concat(), output);
    assert_eq!((said.stderr(), said.exit), ("", 0), "{said}");
    let mut told = said.stdout().lines();
    assert_eq!(told.next().and_then(|line| line.get(11..)), Some(lines[0]), "{said}");
    for line in &lines[1..] {
        assert!(said.stdout().contains(line), "{line} is not in\n{said}");
    }
    assert_eq!(told.next().is_some(), lines.len() > 1, "{said}");
}

#[test]
fn a_success_is_one_line() {
    let line = "verify action=backup status=success duration=5200ms";
    check(&["--action", "backup", "--exit-code", "0"], b"all saved\n", &[line]);
    check(&["--action", "backup", "--exit-code", "0"], b"", &[line]);
}

#[test]
fn a_failure_is_explained_too() {
    check(
        &["--action", "fetch it", "--exit-code", "6", "--command", "curl https://x.example"],
        b"curl: (6) Could not resolve host: x.example\n",
        &[
            "verify action=\"fetch it\" status=failed error=network_err duration=5200ms",
            "✗ network",
            "`curl https://x.example`",
        ],
    );
    let timed_out = "verify action=slow status=failed error=timeout duration=5200ms";
    check(&["--action", "slow", "--exit-code", "124"], b"", &[timed_out, "✗ timeout"]);
}

#[test]
fn output_may_be_anything_and_any_length() {
    let mut output = vec![0, 255, b'\n'];
    output.extend(b"line\n".repeat(200_000));
    output.extend(b"npm error code ECONNRESET\n");
    let args = ["--action", "x", "--exit-code", "1", "--command", "npm ci"];
    check(&args, &output, &["verify action=x status=failed error=network_err duration=5200ms", "✗ network"]);
}

#[test]
fn it_stands_in_the_timeline_with_its_time() {
    let world = World::empty();
    let args =
        ["record", "--action", "nightly", "--exit-code", "1", "--duration-ms", "900", "--session", "cron"];
    let said = world.run(&[&args[..], &["--json"]].concat(), "disk full: No space left on device\n");
    assert_eq!(said.json()["kind"], "out_of_resources");
    let call = world.run(&["show", "--json", "1"], "").json();
    assert_eq!((&call["tool"], &call["session"]), (&"nightly".into(), &"cron".into()), "{call}");
    assert_eq!(call["took_ms"], 900, "{call}");
    let log = world.run(&["log", "--session", "cron"], "");
    assert!(log.stdout().contains("No space left on device"), "{log}");
}

#[test]
fn what_it_needs_to_know_must_be_said() {
    World::empty().run(&["record", "--action", "x"], "").complains(2, &["--exit-code", "--duration-ms"]);
}

#[test]
fn what_cannot_be_recorded_is_our_fault_and_said() {
    let world = World::empty().with("occupied", "no folder");
    let mut command = world.command(&["record", "--action", "x", "--exit-code", "0", "--duration-ms", "1"]);
    command.env("UNSTUCK_STORE_STATE_DIR", world.path("occupied")).stdin(std::process::Stdio::null());
    crate::world::Said::by(command.spawn().unwrap()).complains(125, &["could not record"]);
}
