//! What can go wrong around a command that is run: nothing to read, nowhere to write, a full disk, a clock that jumps.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[cfg(target_os = "linux")]
use crate::clock::clock;
use crate::world::{Said, World};

/// The JSON that comes last on standard error.
#[track_caller]
fn story(said: &Said) -> Value {
    serde_json::from_str(said.stderr().lines().last().unwrap())
        .unwrap_or_else(|error| panic!("{error}:\n{said}"))
}

/// Runs it by a shell that prepares the ground; `$UNSTUCK` is the program.
fn by_shell(world: &World, script: &str) -> Said {
    let ours = world.command(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(world.path("")).env_clear();
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("UNSTUCK", ours.get_program()).stdin(Stdio::null());
    Said::by(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

#[test]
fn a_command_without_any_standard_input_runs() {
    let said = by_shell(&World::empty(), "exec \"$UNSTUCK\" run --json -- sh -c 'cat; echo went on' <&-");
    assert_eq!((said.stdout(), said.exit), ("went on\n", 0), "{said}");
}

#[test]
fn the_exit_code_is_kept_where_there_is_no_standard_output_or_error() {
    let world = World::empty();
    let ran = |redirected: &str| {
        let said =
            by_shell(&world, &format!("exec \"$UNSTUCK\" run -- sh -c 'touch ran; exit 7' {redirected}"));
        assert_eq!(said.exit, 7, "{redirected}: {said}");
        fs::remove_file(world.path("ran")).unwrap();
    };
    ran(">&-");
    ran("2>&-");
    ran(">&- 2>&-");
    ran("<&- >&- 2>&-");
}

/// As with `echo hi >&-`.
#[cfg(target_os = "linux")]
#[test]
fn what_is_printed_to_a_closed_standard_output_is_lost_and_no_success() {
    let world = World::empty().with("one", "1");
    for command in [
        "run -- echo hi",
        "run -q -- echo hi",
        "diagnose -- echo hi",
        "config show",
        "snapshot one",
        "--help",
    ] {
        for closed in [">&-", "<&- >&-"] {
            let said = by_shell(&world, &format!("exec \"$UNSTUCK\" {command} {closed}"));
            assert_eq!(said.exit, 125, "{command} {closed}: {said}");
            assert!(said.stderr().contains("could not write"), "{command} {closed}: {said}");
        }
        let said = by_shell(&world, &format!("exec \"$UNSTUCK\" {command} > /dev/null"));
        assert_eq!(said.exit, 0, "{command}: {said}");
    }
    assert!(by_shell(&world, "\"$UNSTUCK\" config show >&-").stderr().contains("standard output is closed"));
    // Where nothing is printed, nothing is lost; and a hook never fails.
    assert_eq!(by_shell(&world, "\"$UNSTUCK\" run -q -- true >&-").exit, 0);
    let payload = r#"{"session_id":"s","hook_event_name":"PostToolUseFailure","tool_name":"Bash","tool_input":{"command":"npm ci"},"error":"npm: command not found"}"#;
    let said = by_shell(&world, &format!("echo '{payload}' | \"$UNSTUCK\" hook claude >&-"));
    assert_eq!((said.exit, said.stderr()), (0, ""), "{said}");
}

/// The variable that hands the session on is longer than the argument that names it.
#[cfg(target_os = "linux")]
#[test]
fn what_is_too_long_for_the_system_cannot_be_started_and_that_is_said() {
    let session = "s".repeat(128 * 1024 - 8);
    let said = World::empty().run(&["run", "--session", &session, "--", "true"], "");
    said.complains(126, &["unstuck: true: ", "too long"]);
}

#[test]
fn a_word_with_a_zero_byte_can_be_given_to_no_program_and_that_is_said() {
    let settings = "[agent.mine]\nprogram = \"echo\"\nargs = [\"{prompt}\"]\n";
    let world = World::empty().with("config/unstuck/config.toml", settings);
    let said = world.run(&["agent", "mine", "--", "-"], "one\0two");
    let told: Value = serde_json::from_str(said.stdout()).unwrap();
    assert_eq!(
        (said.exit, &told["result"], &told["kind"]),
        (126, &Value::Null, &json!("validation")),
        "{said}"
    );
    assert!(said.stderr().contains("nul byte"), "{said}");
}

/// What every test of a full disk expects: the command runs, what it prints passes, and it is retried.
#[track_caller]
fn nothing_is_lost_but_the_record(said: &Said) {
    assert_eq!((said.stdout.len(), said.exit), (3_000_000, 3), "{}", said.stderr());
    let told = story(said);
    assert_eq!((&told["kind"], &told["retries"]), (&json!("parse_error"), &json!(1)), "{told}");
}

const LOUD: &str = "run --json --idempotent -- sh -c \
    'head -c 1500000 /dev/zero; echo failed to parse response: missing field >&2; exit 3'";

#[test]
fn where_no_file_may_grow_everything_passes_and_only_the_record_is_lost() {
    let said = by_shell(&World::empty(), &format!("trap '' XFSZ; ulimit -f 0; exec \"$UNSTUCK\" {LOUD}"));
    nothing_is_lost_but_the_record(&said);
}

#[cfg(target_os = "linux")]
#[test]
fn where_the_disk_of_the_store_is_full_everything_passes_and_only_the_record_is_lost() {
    let world = World::empty().with("state/x", "");
    let mounts = |then: &str| format!("unshare --mount sh -c 'mount -t tmpfs -o size=32k tmpfs state{then}'");
    if !by_shell(&world, &mounts("")).stderr.is_empty() {
        return skipped("whoever may not mount anything cannot fill a disk of their own");
    }
    fs::write(world.path("loud.sh"), format!("exec \"$UNSTUCK\" {LOUD}\n")).unwrap();
    let filled =
        " && ! cat /dev/zero > state/full 2>/dev/null; UNSTUCK_STORE_STATE_DIR=$PWD/state exec sh loud.sh";
    nothing_is_lost_but_the_record(&by_shell(&world, &mounts(filled)));
}

#[cfg(target_os = "linux")]
#[allow(clippy::print_stderr, reason = "what is not tested is said")]
fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
}

/// Every look at it differs by hours from the one before, in both directions.
#[cfg(target_os = "linux")]
const JUMPING: &str = "static long ahead(void) { static long looks; return ++looks % 2 ? 7200 : -3600; }";

#[cfg(target_os = "linux")]
#[test]
fn a_clock_that_jumps_changes_no_wait_no_limit_and_no_time_that_something_took() {
    let world = World::empty();
    let clock = clock(&world.path(""), JUMPING);
    let run = |words: &[&str]| {
        let begun = Instant::now();
        let mut command = world.command(&[&["run", "--json", "--idempotent"], words].concat());
        let said = Said::by(command.env("LD_PRELOAD", &clock).stdin(Stdio::null()).spawn().unwrap());
        assert!(begun.elapsed() < Duration::from_secs(30), "{said}");
        let told = story(&said);
        assert!(told["duration_ms"].as_u64().unwrap() < 30_000, "{told}");
        told
    };
    let cut = "echo 'failed to parse response: missing field' >&2; exit 3";
    let told = run(&["--deadline", "20m", "--", "sh", "-c", cut]);
    assert_eq!((&told["retries"], &told["exit_code"]), (&json!(1), &json!(3)), "{told}");
    let told = run(&["--deadline", "2s", "--retries", "0", "--", "sleep", "60"]);
    assert_eq!(told["exit_code"], json!(124), "{told}");
    let told = run(&["--timeout", "300ms", "--retries", "0", "--", "sleep", "60"]);
    assert_eq!(told["exit_code"], json!(124), "{told}");
    let took = world.run(&["stats", "--json"], "").json();
    assert_eq!(took["calls"], json!(4), "{took}");
    let calls = world.run(&["log", "--json"], "").json_lines();
    let times: Vec<u64> = calls.iter().filter_map(|event| event["body"]["took_ms"].as_u64()).collect();
    assert!(times.len() == 4 && times.iter().all(|took| *took < 30_000), "{times:?}");
}
