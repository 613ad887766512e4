//! `unstuck run`: real commands that fail, heal, hang and are ended.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::misbehaving::{Deed, Server, answers};
use crate::world::{Said, World, repository};

/// Fails with the words of its second argument until it has been called as often as its first one says.
const FLAKY: &str = r#"
n=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $n > count
[ $n -ge $1 ] || { echo "$2" >&2; exit 3; }
echo done
"#;

/// A cause that may pass at once: such a retry waits for nothing.
const CUT: &str = "failed to parse response: missing field";
/// A cause that may pass after some seconds.
const NO_NETWORK: &str = "curl: (6) Could not resolve host: x.example";

fn flaky() -> World {
    World::empty().with("flaky.sh", FLAKY)
}

/// How often the flaky script was called.
fn count(world: &World) -> u32 {
    fs::read_to_string(world.path("count")).map_or(0, |count| count.trim().parse().unwrap())
}

/// The JSON that comes last on standard error.
#[track_caller]
fn story(said: &Said) -> Value {
    serde_json::from_str(said.stderr().lines().last().unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error}:\n{said}"))
}

/// Puts a program into a folder that comes first in the search path, and runs it through us.
fn run_program(world: &World, name: &str, script: &str, args: &[&str]) -> Said {
    let program = world.path("bin").join(name);
    fs::create_dir_all(world.path("bin")).unwrap();
    fs::write(&program, format!("#!/bin/sh\n{script}")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = world.command(&[&["run", "--json", "--", name], args].concat());
    Said::by(command.env("PATH", path).stdin(Stdio::null()).spawn().unwrap())
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_failure_that_may_pass_is_retried_and_the_success_counts() {
    let world = flaky();
    let said = world.run(&["run", "--idempotent", "--json", "--", "sh", "flaky.sh", "2", CUT], "");
    assert_eq!((said.stdout(), said.exit, count(&world)), ("done\n", 0, 2), "{said}");
    let story = story(&said);
    assert_eq!(story["ok"], true, "{story}");
    assert_eq!((&story["retries"], &story["exit_code"]), (&1.into(), &0.into()));
    let attempts = story["attempts"].as_array().unwrap();
    let told = |key: &str| attempts.iter().map(|attempt| attempt[key].clone()).collect::<Vec<_>>();
    assert_eq!(told("number"), [1, 2]);
    assert_eq!(told("ok"), [false, true]);
    assert_eq!(told("kind"), ["parse_error", "not_an_error"]);
    assert_eq!(told("tag"), ["parse_err", "success"]);
    assert_eq!(told("exit_code"), [3, 0]);
    assert_eq!((&story["stopped"], &story["verified"]), (&Value::Null, &Value::Null));
}

#[test]
fn each_attempt_and_each_retry_is_told_in_one_line() {
    let world = flaky();
    let said = world.run(&["run", "--idempotent", "--action", "sync", "--", "sh", "flaky.sh", "2", CUT], "");
    let lines: Vec<&str> = said.stderr().lines().collect();
    let [own, failed, retry, worked] = lines[..] else { panic!("{said}") };
    assert_eq!(own, CUT);
    for line in [failed, retry, worked] {
        let clock = line.get(..10).unwrap();
        let form: String = clock.chars().map(|sign| if sign.is_ascii_digit() { '9' } else { sign }).collect();
        assert_eq!(form, "[99:99:99]", "{line}");
    }
    assert!(failed[11..].starts_with("verify action=sync status=failed error=parse_err duration="), "{said}");
    assert!(worked[11..].starts_with("verify action=sync status=success duration="), "{said}");
    assert_eq!(
        &retry[11..],
        "self-correct: will retry parse_err (failed to parse response: missing field; retry 1 of 1 in 0.0 s)"
    );
}

#[test]
fn the_lines_show_the_time_of_the_place() {
    let hour = |zone: &str| -> u32 {
        let world = World::empty();
        let mut command = world.command(&["run", "--", "true"]);
        let said = Said::by(command.env("TZ", zone).stdin(Stdio::null()).spawn().unwrap());
        said.stderr()[1..3].parse().unwrap()
    };
    // The hour may turn between the two.
    let (here, there) = (hour("UTC0"), hour("XST-8"));
    assert!((here + 8) % 24 == there || (here + 9) % 24 == there, "{here} {there}");
}

#[test]
fn whatever_is_not_known_to_be_harmless_twice_is_not_repeated() {
    let world = flaky();
    let said = world.run(&["run", "--", "sh", "flaky.sh", "2", CUT], "");
    assert_eq!(count(&world), 1, "{said}");
    said.complains(3, &["✗ parse_error", "  stop    it may have taken effect already", "--idempotent"]);
}

#[test]
fn a_table_tells_which_commands_may_be_repeated() {
    let check = |args: &[&str], calls: u32, stopped: Value| {
        let world = flaky();
        let said = run_program(&world, "npm", &format!("sh flaky.sh 2 '{CUT}'"), args);
        assert_eq!((count(&world), &story(&said)["stopped"]), (calls, &stopped), "{args:?}: {said}");
    };
    check(&["ci"], 2, Value::Null);
    check(&["publish"], 1, "effect_uncertain".into());
}

#[test]
fn a_failure_before_anything_was_sent_may_be_repeated_whatever_the_command_does() {
    let script = format!("echo x >> calls\necho '{NO_NETWORK}' >&2\nexit 6");
    let world = World::empty();
    let said = run_program(&world, "curl", &script, &["-X", "POST", "https://x.example/orders", "-d", "a=1"]);
    let story = story(&said);
    assert_eq!((&story["effect"], &story["stopped"]), (&"nothing".into(), &"tries_used".into()), "{said}");
    assert_eq!(fs::read_to_string(world.path("calls")).unwrap().lines().count(), 3);
}

#[test]
fn a_failure_that_only_a_change_can_heal_is_explained_and_not_repeated() {
    let world = World::empty().with("broken.py", "def f(:\n").with("calls", "");
    let said =
        world.run(&["run", "--idempotent", "--", "sh", "-c", "echo x >> calls; python3 broken.py"], "");
    assert_eq!(fs::read_to_string(world.path("calls")).unwrap(), "x\n", "{said}");
    said.complains(1, &["✗ code_error", "not until something changes"]);
}

#[test]
fn a_person_may_allow_more_retries_or_none() {
    let check = |retries: &str, calls: u32, exit: i32| {
        let world = flaky();
        let said =
            world.run(&["run", "--idempotent", "--retries", retries, "--", "sh", "flaky.sh", "4", CUT], "");
        assert_eq!((count(&world), said.exit), (calls, exit), "{said}");
    };
    check("0", 1, 3);
    check("2", 3, 3);
    check("3", 4, 0);
}

#[test]
fn a_cause_that_nobody_knows_is_tried_once_more_where_that_does_no_harm() {
    let check = |args: &[&str], exit: i32| {
        let script = "test -e met && exit 0; touch met; exit 42";
        let said = World::empty().run(&[&["run"], args, &["--", "sh", "-c", script]].concat(), "");
        assert_eq!(said.exit, exit, "{said}");
    };
    check(&["--idempotent"], 0);
    check(&[], 42);
}

#[test]
fn every_exit_code_is_kept_and_a_signal_becomes_128_and_its_number() {
    for (script, exit) in [
        ("exit 0", 0),
        ("exit 1", 1),
        ("exit 77", 77),
        ("exit 124", 124),
        ("exit 125", 125),
        ("exit 255", 255),
        ("ulimit -c 0; kill -KILL $$", 137),
        ("ulimit -c 0; kill -SEGV $$", 139),
        ("kill -TERM $$", 143),
    ] {
        let said = World::empty().run(&["run", "--quiet", "--", "sh", "-c", script], "");
        assert_eq!(said.to_string(), format!("--- exit {exit}"), "{script}");
    }
}

#[test]
fn what_cannot_be_started_is_126_or_127_and_says_why() {
    let world =
        World::empty().with("script", "#!/bin/sh\n").with("folder/x", "").with("lost", "#!/no/such\n");
    fs::set_permissions(world.path("lost"), fs::Permissions::from_mode(0o755)).unwrap();
    let run = |program: &str| world.run(&["run", "--", program], "");
    run("surely-no-such-program").complains(127, &["✗ command_not_found", "(surely-no-such-program)"]);
    run("").complains(127, &["✗ command_not_found"]);
    run("./script").complains(126, &["✗ permission", "./script"]);
    run("./folder").complains(126, &["✗ permission", "./folder"]);
    run("./lost").complains(126, &["unstuck: ./lost: it exists, but its interpreter or loader does not\n"]);
    let said = world.run(&["run", "--quiet", "--", "surely-no-such-program"], "");
    assert_eq!(said.stderr(), "unstuck: surely-no-such-program: command not found\n");
}

#[test]
fn what_is_wrong_with_our_own_arguments_is_125() {
    let check = |args: &[&str]| {
        let said = World::empty().run(&[&["run"], args].concat(), "");
        assert_eq!((said.stdout(), said.exit), ("", 125), "{args:?}: {said}");
    };
    check(&[]);
    check(&["--"]);
    check(&["--no-such-option", "--", "touch", "ran"]);
    check(&["--retries", "many", "--", "touch", "ran"]);
    for limit in ["0", "0s", "nan", "inf", "1e300", "-1", "soon", ""] {
        check(&[&format!("--timeout={limit}"), "--", "touch", "ran"]);
        check(&[&format!("--deadline={limit}"), "--", "touch", "ran"]);
    }
}

#[test]
fn a_mistake_in_the_settings_is_told_and_keeps_nothing_from_running() {
    let world = World::empty().with("config/unstuck/config.toml", "[store]\nkeep-evnts = \"1d\"\n");
    let said = world.run(&["run", "--", "echo", "hello"], "");
    assert_eq!(said.stdout(), "hello\n", "{said}");
    said.complains(0, &["store.keep-evnts"]);
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_124_and_gets_more_time_the_next_time() {
    let said = World::empty().run(&["run", "--timeout", "0.2", "--", "sleep", "30"], "");
    assert_eq!(said.exit, 124, "{said}");
    let script = "echo $UNSTUCK_ATTEMPT >> attempts; sleep 2.5";
    let world = World::empty();
    let args = ["run", "--json", "--idempotent", "--timeout", "2s", "--", "sh", "-c", script];
    let said = world.run(&args, "");
    assert_eq!((said.exit, &story(&said)["retries"]), (0, &1.into()), "{said}");
    assert_eq!(story(&said)["attempts"][0]["kind"], "timeout");
    assert_eq!(fs::read_to_string(world.path("attempts")).unwrap(), "1\n2\n");
}

#[test]
fn all_attempts_share_one_deadline() {
    let begun = Instant::now();
    let said = World::empty().run(&["run", "--idempotent", "--deadline", "500ms", "--", "sleep", "30"], "");
    assert_eq!(said.exit, 124, "{said}");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_deadline_before_the_next_attempt_fails_now_and_says_when_it_could_work() {
    let world = flaky();
    let args = ["run", "--idempotent", "--deadline", "2s", "--", "sh", "flaky.sh", "2", NO_NETWORK];
    let said = world.run(&args, "");
    assert_eq!(count(&world), 1, "{said}");
    said.complains(3, &["could not begin before the deadline; it could work in ", " s, at "]);
}

#[test]
fn standard_output_is_the_commands_own_byte_for_byte() {
    let bytes: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let world = World::empty().with("bytes", &bytes);
    let said = world.run(&["run", "--json", "--", "cat", "bytes"], "");
    assert!(said.stdout == bytes && said.exit == 0, "the bytes differ");
    let said = world.run(&["run", "--", "cat"], "handed on\0");
    assert_eq!((said.stdout(), said.exit), ("handed on\0", 0));
}

#[test]
fn a_closed_standard_output_ends_the_command_as_it_would_without_us() {
    let world = World::empty();
    let mut child = world.command(&["run", "--", "yes"]).stdin(Stdio::null()).spawn().unwrap();
    let mut few = [0; 2];
    child.stdout.take().unwrap().read_exact(&mut few).unwrap();
    assert_eq!(Said::by(child).exit, 141);
}

#[test]
fn each_attempt_has_the_same_session_and_its_own_number() {
    let script = "echo $UNSTUCK_SESSION_ID $UNSTUCK_ATTEMPT $TRACEPARENT; . ./flaky.sh";
    let run = |args: &[&str], inherited: Option<&str>| {
        let world = flaky();
        let line = ["--idempotent", "--", "sh", "-c", script, "x", "2", CUT];
        let mut command = world.command(&[&["run"], args, &line].concat());
        command.envs(inherited.map(|name| ("UNSTUCK_SESSION_ID", name))).env("TRACEPARENT", "00-1-2-01");
        Said::by(command.stdin(Stdio::null()).spawn().unwrap()).stdout().to_owned()
    };
    assert_eq!(run(&["--session", "mine"], Some("theirs")), "mine 1 00-1-2-01\nmine 2 00-1-2-01\ndone\n");
    assert_eq!(run(&[], Some("theirs")), "theirs 1 00-1-2-01\ntheirs 2 00-1-2-01\ndone\n");
    let new = run(&[], None);
    let (first, second) = (new.lines().next().unwrap(), new.lines().nth(1).unwrap());
    assert!(first.starts_with("run-") && first.replace(" 1 ", " 2 ") == second, "{new}");
}

#[test]
fn a_signal_that_reaches_us_reaches_the_command_and_ends_the_attempts() {
    for (name, exit) in [("-TERM", 9), ("-INT", 9), ("-HUP", 9)] {
        let script = format!(
            "trap 'echo \"{CUT}\" >&2; echo got; exit 9' TERM INT HUP; echo ready; while :; do sleep 0.05; done"
        );
        let world = World::empty();
        let args = ["run", "--idempotent", "--retries", "0", "--", "sh", "-c", &script];
        let mut child = world.command(&args).stdin(Stdio::null()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        signal(&child, name);
        line.clear();
        out.read_to_string(&mut line).unwrap();
        assert_eq!((line.as_str(), Said::by(child).exit), ("got\n", exit), "{name}");
    }
    let said = World::empty().run(
        &["run", "--json", "--idempotent", "--", "sh", "-c", &format!("echo '{CUT}' >&2; kill -INT $$")],
        "",
    );
    assert_eq!((said.exit, &story(&said)["stopped"]), (130, &"ended".into()), "{said}");
}

#[test]
fn a_command_that_was_told_to_end_is_not_run_again_whatever_it_says() {
    let script = format!(
        "echo x >> calls; trap 'echo \"{CUT}\" >&2; exit 9' INT; echo ready; while :; do sleep 0.05; done"
    );
    let world = World::empty();
    let args = ["run", "--json", "--idempotent", "--", "sh", "-c", &script];
    let mut child = world.command(&args).stdin(Stdio::null()).spawn().unwrap();
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    signal(&child, "-INT");
    let said = Said::by(child);
    assert_eq!((said.exit, &story(&said)["stopped"]), (9, &"ended".into()), "{said}");
    assert_eq!(fs::read_to_string(world.path("calls")).unwrap(), "x\n");
}

#[test]
fn what_has_read_its_input_is_not_run_again_and_what_has_not_is() {
    let check = |reads: &str, calls: &str, stopped: Value| {
        let script = format!(
            "{reads}echo x >> calls; test $UNSTUCK_ATTEMPT = 2 && cat && exit 0; echo '{CUT}' >&2; exit 1"
        );
        let world = World::empty();
        let said = world.run(&["run", "--json", "--idempotent", "--", "sh", "-c", &script], "one\ntwo\n");
        assert_eq!(story(&said)["stopped"], stopped, "{said}");
        assert_eq!(fs::read_to_string(world.path("calls")).unwrap(), calls, "{said}");
        if stopped.is_null() {
            assert_eq!(said.stdout(), "one\ntwo\n");
        }
    };
    check("read line; ", "x\n", "input_used".into());
    check("", "x\nx\n", Value::Null);
}

#[test]
fn ctrl_c_ends_the_wait_for_the_next_attempt() {
    let world = flaky();
    let args = ["run", "--json", "--idempotent", "--", "sh", "flaky.sh", "9", NO_NETWORK];
    let mut child = world.command(&args).stdin(Stdio::null()).spawn().unwrap();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("self-correct: will retry network_err") {
        line.clear();
        assert!(err.read_line(&mut line).unwrap() > 0, "it ended before it waited");
    }
    signal(&child, "-INT");
    let mut rest = String::new();
    err.read_to_string(&mut rest).unwrap();
    let story: Value = serde_json::from_str(&rest).unwrap();
    assert_eq!((child.wait().unwrap().code(), &story["stopped"]), (Some(130), &"given_up".into()));
    assert_eq!(count(&world), 1);
}

#[test]
fn everything_stands_in_the_timeline() {
    let world = flaky();
    let args = ["run", "--idempotent", "--session", "ci", "--", "sh", "flaky.sh", "2", CUT];
    assert_eq!(world.run(&args, "").exit, 0);
    let events: Vec<String> = world
        .run(&["log", "--session", "ci", "--json"], "")
        .json_lines()
        .iter()
        .map(|event| event["event"].as_str().unwrap().to_owned())
        .filter(|event| event.starts_with("tool:"))
        .collect();
    assert_eq!(events, ["tool:start", "tool:error", "tool:end", "tool:retry", "tool:start", "tool:end"]);
    let call = world.run(&["show", "--json", "1"], "").json();
    assert!(call.to_string().contains(CUT), "{call}");
}

#[test]
fn a_new_run_in_a_session_that_met_the_failure_before_has_all_its_retries() {
    let world = flaky();
    let args = ["run", "--idempotent", "--session", "ci", "--", "sh", "flaky.sh", "4", CUT];
    assert_eq!((world.run(&args, "").exit, count(&world)), (3, 2));
    assert_eq!((world.run(&args, "").exit, count(&world)), (0, 4));
}

#[test]
fn retries_that_were_in_vain_for_long_are_not_made_any_more() {
    let world = flaky();
    let args = ["run", "--json", "--idempotent", "--", "sh", "flaky.sh", "99999", CUT];
    let mut stopped = String::new();
    for _ in 0..60 {
        stopped = story(&world.run(&args, ""))["stopped"].as_str().unwrap().to_owned();
        if stopped == "past_yield" {
            break;
        }
    }
    assert_eq!(stopped, "past_yield");
    let before = count(&world);
    let said = world.run(&["run", "--idempotent", "--", "sh", "flaky.sh", "99999", CUT], "");
    assert_eq!(count(&world), before + 1);
    let told =
        said.stderr().contains("such retries have been in vain; of ") && said.stderr().contains(" 0 helped");
    assert!(told, "{said}");
}

#[test]
fn a_store_that_cannot_be_used_keeps_nothing_from_running_or_from_being_retried() {
    let world = flaky().with("occupied", "no folder");
    let mut command = world.command(&["run", "--idempotent", "--", "sh", "flaky.sh", "2", CUT]);
    command.env("UNSTUCK_STORE_STATE_DIR", world.path("occupied")).stdin(Stdio::null());
    let said = Said::by(command.spawn().unwrap());
    assert_eq!((said.stdout(), said.exit, count(&world)), ("done\n", 0, 2), "{said}");
}

#[test]
fn one_run_inside_another_shares_its_session() {
    let world = World::empty();
    let ours = world.command(&[]).get_program().to_str().unwrap().to_owned();
    let said = world
        .run(&["run", "--session", "outer", "--", &ours, "run", "--", "printenv", "UNSTUCK_SESSION_ID"], "");
    assert_eq!((said.stdout(), said.exit), ("outer\n", 0), "{said}");
}

#[test]
fn quiet_says_nothing_but_what_the_command_says() {
    let world = flaky();
    let said = world.run(&["run", "--quiet", "--idempotent", "--", "sh", "flaky.sh", "9", CUT], "");
    assert_eq!((said.stderr(), said.exit), (&*format!("{CUT}\n{CUT}\n"), 3));
}

#[test]
fn long_arguments_arrive_whole_and_the_lines_stay_short() {
    let long = "x".repeat(100_000);
    let words = ["run", "--", "printf", "%s", &long, &long, &long];
    let said = World::empty().run(&words, "");
    assert_eq!((said.stdout.len(), said.exit), (300_000, 0));
    assert!(said.stderr.len() < 300, "{}", said.stderr.len());
}

#[test]
fn the_exit_code_is_kept_where_nobody_reads_what_we_say() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let world = World::empty();
    let mut command = world.command(&["run", "--", "sh", "-c", "exit 7"]);
    assert_eq!(Said::by(command.stderr(full).spawn().unwrap()).exit, 7);
}

#[test]
fn what_is_said_is_said_in_chinese_to_whoever_reads_chinese() {
    let world = flaky();
    let said = world.run(&["--lang", "zh", "run", "--", "sh", "flaky.sh", "2", CUT], "");
    said.complains(3, &["  停止  可能已经生效", "  重试  "]);
    let world = flaky();
    let said = world.run(&["--lang", "zh", "run", "--idempotent", "--", "sh", "flaky.sh", "2", CUT], "");
    said.complains(0, &["self-correct: will retry parse_err （", "第 1/1 次重试，0.0 秒后）"]);
}

#[test]
fn a_secret_in_a_command_is_neither_told_nor_kept() {
    let token = "ghp_0123456789abcdefghijklmnopqrstuvwx12";
    let world = World::empty();
    let line =
        format!("git clone https://{token}@x.example/a.git; echo Authorization: Bearer {token} >&2; exit 1");
    let mut said = world.run(&["run", "--json", "--", "sh", "-c", &line], "");
    said.stderr = said.stderr().lines().last().unwrap_or_default().as_bytes().to_vec();
    assert!(!said.stderr().contains(token), "{said}");
    assert!(world.files_with(token).is_empty());
}

#[test]
fn every_key_of_the_json_is_documented() {
    let said = flaky().run(&["run", "--idempotent", "--json", "--", "sh", "flaky.sh", "9", CUT], "");
    let page = |name: &str| fs::read_to_string(repository("docs").join(name)).unwrap();
    let text = page("run.md") + &page("diagnose.md");
    let story = story(&said);
    let attempts = story["attempts"][0].as_object().unwrap().keys();
    for key in story.as_object().unwrap().keys().filter(|key| *key != "id").chain(attempts) {
        assert!(text.contains(&format!("`{key}`")), "{key} is not documented");
    }
}

#[test]
fn on_a_terminal_the_wait_is_shown_while_it_lasts() {
    let world = flaky();
    let args = ["run", "--idempotent", "--", "sh", "flaky.sh", "2", NO_NETWORK];
    let Some(said) = world.at_terminal(&args) else { return };
    let shown = String::from_utf8_lossy(&said.stdout).into_owned();
    let live: Vec<&str> = shown.split("\r\x1b[K").filter(|line| line.starts_with("network: ")).collect();
    let tells = |line: &&str| line.contains("Could not resolve host: x.example. Retry 1 of 2 in ");
    assert!(live.len() > 5 && live.iter().all(tells), "{said}");
    assert_eq!(count(&world), 2, "{said}");
}

#[test]
fn a_person_who_asks_for_retries_gets_them_where_a_check_did_not_hold_and_twice_is_harmless() {
    let check = |words: &[&str], deeds: Vec<Deed>, expected: (i32, u64)| {
        let server = Server::that(deeds);
        let url = server.at("/x");
        let line = [&["run", "--json"], words, &["--", "curl", "-s", &*url]].concat();
        let said = World::empty().run(&line, "");
        let told = story(&said);
        assert_eq!((said.exit, told["retries"].as_u64().unwrap()), expected, "{said}");
    };
    let deeds = || vec![answers("200 OK", &[], "[]"), answers("200 OK", &[], "[1]")];
    check(&["--expect-json", ".[0] == 1", "--retries", "2"], deeds(), (0, 1));
    check(&["--expect-json", ".[0] == 1"], deeds(), (1, 0));
    check(&["--expect-json", ".[0] == 1", "--retries", "0"], deeds(), (1, 0));
    // An answer that cannot be read, one that was cut off, and the apology of a server need nobody's word.
    let page = "<html><head><title>503 Service Unavailable</title></head></html>";
    for body in ["busy", "[1,", page] {
        let deeds = || vec![answers("503 Busy", &[], body), answers("200 OK", &[], "[1]")];
        check(&["--expect-json"], deeds(), (0, 1));
        check(&["--expect-json", "--retries", "0"], deeds(), (1, 0));
    }
}
