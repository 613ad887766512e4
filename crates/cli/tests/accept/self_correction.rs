//! Commands that are checked, corrected and rolled back.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use unstuck_vault::{Origin, Rebuildable, Reserve, Unwatched, Vault, Wish};

use crate::claude::{Claude, machine};
use crate::misbehaving::{Server, answers, hangs, says};
use crate::world::{Said, World};

const OK: &str = "200 OK";
/// As the verify line shows a duration that is a number.
const MS: &str = "duration=Nms";

/// The lines of standard error that have a time before them, each without it, and with `N` for the number of milliseconds.
fn timed_lines(said: &Said) -> Vec<String> {
    let is_time = |time: &str| {
        time.len() == 8
            && time.split(':').count() == 3
            && time.chars().all(|sign| sign.is_ascii_digit() || sign == ':')
    };
    let plain = |line: &str| {
        let (time, rest) = line.strip_prefix('[')?.split_once("] ")?;
        let rest = rest.to_owned();
        let Some((before, after)) = rest.split_once("duration=") else {
            return is_time(time).then_some(rest);
        };
        let (number, after) = after.split_once("ms").unwrap();
        assert!(number.parse::<u64>().is_ok(), "{line}");
        is_time(time).then(|| format!("{before}duration=Nms{after}"))
    };
    said.stderr().lines().chain(said.stdout().lines()).filter_map(plain).collect()
}

/// What `--json` says on the last line of standard error.
#[track_caller]
fn story(said: &Said) -> Value {
    let last = said.stderr().lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}\n{said}"))
}

/// A program of this machine, which is a shell script.
fn with_program(world: World, name: &str, script: &str) -> World {
    let world = world.with(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    let status = Command::new("chmod").arg("+x").arg(world.path(&format!("bin/{name}"))).status().unwrap();
    assert!(status.success());
    world
}

/// Runs unstuck with the programs of this machine before all others.
fn run(world: &World, args: &[&str]) -> Said {
    let mut command = world.command(args);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", world.path("bin").display()));
    Said::by(command.stdin(std::process::Stdio::null()).spawn().unwrap())
}

/// A project with a repository and some files.
fn project() -> World {
    World::empty().with("app/a.txt", "one\n").with("app/build/out", "built\n").with("app/build/deep/x", "x\n")
}

/// Everything in a folder: each path, and what is in it.
fn tree(world: &World, folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![world.path(folder)];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() && !path.is_symlink() {
                true => waiting.push(path),
                false => {
                    let content = fs::read(&path).unwrap_or_default();
                    let name = path.strip_prefix(world.path("")).unwrap().display().to_string();
                    found.push((name, String::from_utf8_lossy(&content).into_owned()));
                }
            }
        }
    }
    found.sort();
    found
}

/// The snapshots that are kept, by name, the oldest first.
fn snapshots(world: &World) -> Vec<String> {
    let mut all: Vec<String> = world
        .run(&["snapshots", "--json"], "")
        .json_lines()
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect();
    all.reverse();
    all
}

/// What `record` makes of a command that printed this and ended so.
fn recorded(command: &str, code: i32, printed: &str) -> Value {
    let code = code.to_string();
    let args = ["record", "--json", "--action", "x", "--exit-code", &code, "--duration-ms", "1"];
    World::empty().run(&[&args[..], &["--command", command]].concat(), printed).json()
}

#[test]
fn r3_01_a_network_failure_is_retried_twice_after_three_seconds_and_more() {
    let world = with_program(World::empty(), "fetch", "echo 'connection reset by peer' >&2; exit 1");
    let said = run(&world, &["run", "--json", "--idempotent", "--", "fetch"]);
    let told = story(&said);
    let waits: Vec<u64> =
        told["attempts"].as_array().unwrap().iter().map(|one| one["waited_ms"].as_u64().unwrap()).collect();
    assert_eq!(told["attempts"][0]["tag"], "network_err", "{said}");
    assert_eq!((waits.len(), waits[0]), (3, 0), "{said}");
    assert!((3000..=4000).contains(&waits[1]) && (6000..=7000).contains(&waits[2]), "{waits:?}");
}

#[test]
fn r3_02_a_timeout_is_retried_with_half_as_much_time_again() {
    let world = World::empty();
    let said = run(&world, &["run", "--json", "--idempotent", "--timeout", "400ms", "--", "sleep", "9"]);
    let told = story(&said);
    let took: Vec<u64> =
        told["attempts"].as_array().unwrap().iter().map(|one| one["duration_ms"].as_u64().unwrap()).collect();
    assert_eq!(
        (told["attempts"][0]["tag"].as_str(), took.len(), said.exit),
        (Some("timeout"), 3, 124),
        "{said}"
    );
    for (took, limit) in took.iter().zip([400, 600, 900]) {
        assert!((limit..limit + 300).contains(took), "{took} of {limit}");
    }
}

#[test]
fn r3_03_a_rate_limit_is_waited_for_a_minute_or_as_long_as_the_server_asks_and_once() {
    let limited = |headers: &[&str]| answers("429 Too Many Requests", headers, "slow down");
    let server = Server::that(vec![limited(&["Retry-After: 1"]), limited(&["Retry-After: 1"])]);
    let said = World::empty().run(&["http", "GET", &server.at("/x")], "");
    assert_eq!((said.exit, server.asked().len()), (1, 2), "one retry: {said}");
    // Without a hint it is a minute: that is said before the wait, and nobody stays for it here.
    let server = Server::that(vec![limited(&[])]);
    let mut child = World::empty().command(&["http", "GET", &server.at("/x")]).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let told = lines.into_iter().find(|line| line.contains("self-correct: will retry rate_limited"));
    child.kill().unwrap();
    child.wait().unwrap();
    let told = told.unwrap();
    let seconds = told.split(" in ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!((60.0..=61.1).contains(&seconds.parse::<f64>().unwrap()), "{told}");
}

#[test]
fn r3_04_data_that_cannot_be_read_is_asked_for_once_more_at_once() {
    for content in ["{\"a\": [1, 2", "not json", ""] {
        let world = World::empty().with("answer", content);
        let said = world.run(&["run", "--json", "--expect-json", "--", "cat", "answer"], "");
        let told = story(&said);
        let attempts = told["attempts"].as_array().unwrap();
        assert_eq!((attempts.len(), said.exit), (2, 1), "{said}");
        assert!(attempts.iter().all(|one| one["tag"] == "parse_err" && one["waited_ms"] == 0), "{said}");
        assert!(said.stderr().contains("self-correct: will retry parse_err"), "{said}");
    }
    // Cut the first time and whole the second time, from a pipeline that has to read it.
    let fetch = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; [ $n -gt 0 ] && echo '{\"a\":1}' || printf '{\"a\":'";
    let world = with_program(World::empty(), "fetch", fetch);
    let said = run(&world, &["run", "--idempotent", "--expect-json", "--", "fetch"]);
    assert_eq!((said.exit, said.stdout().ends_with("{\"a\":1}\n")), (0, true), "{said}");
}

#[test]
fn r3_05_every_failure_has_one_tag_which_fits_it() {
    let wrong = std::cell::RefCell::new(Vec::new());
    let check = |command: &str, code: i32, printed: &str, tag: &str| {
        let told = recorded(command, code, printed);
        if told["tag"] != tag {
            wrong.borrow_mut().push(format!("{command}: {code}: {printed} is {}, not {tag}", told["tag"]));
        }
    };
    check("make", 0, "network ready\n", "success");
    check("curl -s https://api.example/x", 7, "curl: (7) connection refused\n", "network_err");
    check(
        "curl -s https://api.example/x",
        6,
        "curl: (6) Could not resolve host: api.example\n",
        "network_err",
    );
    check("npm ci", 1, "npm error code ECONNRESET\n", "network_err");
    check(
        "curl -s https://api.example/x",
        22,
        "curl: (22) The requested URL returned error: 429\n",
        "rate_limited",
    );
    check("./fetch", 1, "API rate limit exceeded\n", "rate_limited");
    check("./fetch", 1, "HTTP 429\n", "rate_limited");
    check("./fetch", 1, "Error: timeout\n", "timeout");
    check("./slow", 124, "", "timeout");
    check("./fetch", 1, "cat: /root/x: Permission denied\n", "permission_err");
    check("./deploy", 126, "sh: 1: ./deploy: Permission denied\n", "permission_err");
    check("frob", 127, "sh: 1: frob: not found\n", "exec_failed");
    check("./work", 137, "Killed\n", "exec_failed");
    check("./work", 139, "Segmentation fault (core dumped)\n", "exec_failed");
    check("cargo build", 101, "error[E0308]: mismatched types\n --> src/main.rs:429:5\n", "exec_failed");
    check(
        "python3 load.py",
        1,
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)\n",
        "parse_err",
    );
    assert!(wrong.borrow().is_empty(), "{:#?}", wrong.borrow());
    let kinds = [126, 127, 137, 139].map(|code| {
        let printed = ["", "Permission denied", "not found", "Killed", "Segmentation fault"][match code {
            126 => 1,
            127 => 2,
            137 => 3,
            _ => 4,
        }];
        recorded("./work", code, &format!("sh: 1: ./work: {printed}\n"))["kind"].clone()
    });
    assert!(kinds.iter().enumerate().all(|(at, kind)| !kinds[..at].contains(kind)), "told apart: {kinds:?}");
    // An error of the script that reads an answer is none of the server.
    let reader =
        "curl -s localhost:8000/x | python3 -c 'import json,sys; print(json.load(sys.stdin)[\"a\"])'";
    let trace =
        "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\nKeyError: 'a'\n";
    let told = recorded(reader, 1, trace);
    assert!(told["tag"] == "exec_failed" && told["kind"] != "server_error", "{told}");
}

#[test]
fn r3_06_standard_output_is_really_parsed_where_json_is_expected() {
    let check = |content: &str, test: &str, exit: i32, tag: &str| {
        let world = World::empty().with("answer", content);
        let said =
            world.run(&["run", "--json", "--retries", "0", "--expect-json", test, "--", "cat", "answer"], "");
        assert_eq!((said.exit, story(&said)["attempts"][0]["tag"].as_str()), (exit, Some(tag)), "{said}");
    };
    check("{\"items\":[1]}\n", "", 0, "success");
    check("{\"a\":1}\n{\"a\":2}\n", "", 0, "success");
    check("{\"items\":[1]}\n", ".items|length > 0", 0, "success");
    check("{\"items\":[]}\n", ".items|length > 0", 1, "exec_failed");
    check("{\"items\":[1,", "", 1, "parse_err");
    check("<html>", "", 1, "parse_err");
    check("{'a': 1}", ".a", 1, "parse_err");
}

#[test]
fn r3_07_what_is_said_to_be_retried_is_retried() {
    let fetch = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; [ $n -gt 0 ] && echo fine && exit 0; echo 'HTTP 503 Service Unavailable' >&2; exit 1";
    let world = with_program(World::empty(), "fetch", fetch);
    let said = run(&world, &["run", "--idempotent", "--", "fetch"]);
    assert_eq!((said.exit, said.stdout()), (0, "fine\n"), "{said}");
    assert_eq!(fs::read_to_string(world.path("n")).unwrap(), "2\n");
    let lines = timed_lines(&said);
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines[1].starts_with("self-correct: will retry api_err"), "{said}");
}

#[test]
fn r3_08_a_snapshot_keeps_its_description_exactly_and_prints_its_name() {
    let world = project();
    for (number, note) in ["feat/x before the merge", " unnamed", "带空格 的说明"].iter().enumerate() {
        let said = world.run_in("app", &["snapshot", "--note", note]);
        assert_eq!((said.stdout(), said.exit), (&*format!("s{}\n", number + 1), 0), "{said}");
    }
    let shown = world.run(&["snapshots", "--json"], "").json_lines();
    let notes: Vec<&str> = shown.iter().rev().map(|one| one["note"].as_str().unwrap()).collect();
    assert_eq!(notes, ["feat/x before the merge", " unnamed", "带空格 的说明"]);
    let failed = world.run_in("app", &["snapshot", "nowhere"]);
    failed.complains(2, &["there is no "]);
    assert_eq!(failed.stdout(), "");
}

#[test]
fn r3_09_the_newest_three_of_each_target_are_kept() {
    let world = project();
    for number in 0..5 {
        for path in ["app/build/out", "app/a.txt"] {
            world.path(path).parent().map(fs::create_dir_all).unwrap().unwrap();
            fs::write(world.path(path), format!("{number}\n")).unwrap();
        }
        assert_eq!(world.run_in("app", &["rm", "build"]).exit, 0);
        assert_eq!(world.run_in("app", &["rm", "a.txt"]).exit, 0);
    }
    let kept = world.run(&["snapshots", "--json"], "").json_lines();
    let of = |path: &str| kept.iter().filter(|one| one["covers"].to_string().contains(path)).count();
    assert_eq!((of("/build"), of("/a.txt"), kept.len()), (3, 3, 6), "{kept:?}");
    let gone = world.run_in("app", &["restore", "s1"]);
    gone.complains(1, &["s1 (unstuck rm", "was removed", "enough newer ones"]);
    // What a person took is not pushed out by newer ones.
    let world = project();
    for number in 0..5 {
        fs::write(world.path("app/a.txt"), format!("{number}\n")).unwrap();
        assert_eq!(world.run_in("app", &["snapshot", "--note", "mine"]).exit, 0);
    }
    assert_eq!(snapshots(&world).len(), 5);
    assert_eq!(world.run_in("app", &["restore", "s1", "a.txt"]).exit, 0);
    assert_eq!(fs::read_to_string(world.path("app/a.txt")).unwrap(), "0\n");
    assert_eq!(world.run_in("app", &["snapshots", "drop", "s2"]).exit, 0);
    world.run_in("app", &["restore", "s2"]).complains(1, &["s2 (mine) was removed", "it was dropped"]);
    let log = world.run(&["log", "--json", "--channel", "monitor"], "").json_lines();
    let removed = log.iter().find(|event| event["event"] == "snapshot:removed").unwrap();
    let body = &removed["body"];
    assert_eq!((&body["snapshot"], &body["text"]), (&json!("s2"), &json!("mine")));
}

/// Takes a snapshot as somebody would have done long ago.
fn taken_before(world: &World, hours: u64) {
    let folder = world.path(".local/state/unstuck/vault");
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    let wish = Wish {
        scopes: vec![world.path("app").canonicalize().unwrap()],
        rebuildable: Rebuildable::LeftOut,
        never: Vec::new(),
        origin: Origin::Person,
        note: format!("{hours} h"),
        reserve: Reserve { max_size: 1 << 30, min_free: 0 },
        now: SystemTime::now() - Duration::from_secs(hours * 3600),
    };
    Vault::open(&folder).unwrap().take(&wish, &Unwatched).unwrap();
}

#[test]
fn r3_10_what_is_older_than_a_day_goes_with_the_heartbeat() {
    let world = project();
    world.run_in("app", &["run", "-q", "--", "true"]);
    [30, 25, 21, 16, 11, 6, 1].iter().for_each(|hours| taken_before(&world, *hours));
    assert_eq!(world.run(&["snapshots", "pin", "s1"], "").exit, 0);
    let said = world.run(&["heartbeat"], "");
    assert!(said.exit == 0 && said.stdout().contains("1 expired snapshot"), "{said}");
    assert_eq!(snapshots(&world), ["s1", "s3", "s4", "s5", "s6", "s7"], "a pinned one stays");
    world.run(&["restore", "s2"], "").complains(1, &["s2 (25 h) was removed", "older than `vault.max-age`"]);
}

#[test]
fn r3_11_files_are_rolled_back_exactly() {
    let world = project();
    let before = tree(&world, "app");
    assert_eq!(world.run_in("app", &["snapshot", "--all"]).stdout(), "s1\n");
    fs::write(world.path("app/a.txt"), "spoilt").unwrap();
    fs::remove_dir_all(world.path("app/build")).unwrap();
    fs::write(world.path("app/new"), "new").unwrap();
    let after = tree(&world, "app");
    assert_eq!(world.run_in("app", &["restore", "s1"]).exit, 0);
    assert_eq!(tree(&world, "app"), before);
    assert_eq!(world.run_in("app", &["redo"]).exit, 0);
    assert_eq!(tree(&world, "app"), after, "and the other way");
}

#[test]
fn r3_12_files_are_saved_by_themselves_before_a_risky_call() {
    let world =
        machine("").with("app/a.txt", "one\n").with("app/b.txt", "two\n").with("app/new.txt", "mine\n");
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
            .args(args)
            .current_dir(world.path("app"));
        assert!(command.env("HOME", world.path("")).output().unwrap().status.success(), "{args:?}");
    };
    git(&["init", "-q", "."]);
    git(&["add", "a.txt", "b.txt"]);
    git(&["commit", "-qm", "one"]);
    fs::write(world.path("app/a.txt"), "work\n").unwrap();
    let files = || -> Vec<(String, String)> {
        tree(&world, "app").into_iter().filter(|(path, _)| !path.starts_with("app/.git/")).collect()
    };
    let before = files();
    let claude = Claude::new(&world, "s").in_folder("app");
    let risky = [
        "rm -rf a.txt new.txt",
        "git reset -q --hard",
        "git clean -qfdx",
        "sed -i s/work/spoilt/ a.txt",
        "echo nothing > new.txt",
        "mv b.txt a.txt",
        "find . -name '*.txt' -delete",
    ];
    for command in risky {
        let turn = claude.bash(command);
        assert!(turn.ran && files() != before, "{command}");
        let undone = world.run_in("app", &["undo"]);
        assert_eq!((files(), undone.exit), (before.clone(), 0), "{command}: {undone}");
    }
}

#[test]
fn r3_13_a_verify_line_says_action_status_and_duration_and_nothing_else() {
    let world = World::empty();
    let said = world.run(&["run", "--action", "sync", "--", "true"], "");
    assert_eq!(timed_lines(&said), [format!("verify action=sync status=success {MS}")], "{said}");
    let said = world.run(&["run", "--action", "sync", "--", "sh", "-c", "exit 3"], "");
    assert_eq!(
        timed_lines(&said),
        [format!("verify action=sync status=failed error=exec_failed {MS}")],
        "{said}"
    );
    let args = ["record", "--action", "my_action", "--duration-ms", "5", "--exit-code"];
    let said = world.run(&[&args[..], &["0"]].concat(), "");
    assert_eq!(
        said.stdout().get(11..),
        Some("verify action=my_action status=success duration=5ms\n"),
        "{said}"
    );
    let server = Server::that(vec![answers(OK, &[], "{}")]);
    let said = world.run(&["http", "GET", &server.at("/x"), "--action", "api_call"], "");
    assert_eq!(
        timed_lines(&said),
        [format!("verify action=api_call status=success {MS} http_code=200")],
        "{said}"
    );
}

#[test]
fn r3_14_a_command_that_somebody_else_ran_is_verified_after_it() {
    let world = World::empty();
    let args =
        ["record", "--exit-code", "1", "--duration-ms", "1234", "--action", "nightly", "--session", "cron"];
    let said = world.run(&args, "npm error code ECONNRESET\n");
    assert_eq!(
        said.stdout().lines().next().and_then(|line| line.get(11..)),
        Some("verify action=nightly status=failed error=network_err duration=1234ms"),
        "{said}"
    );
    assert!(said.stdout().contains("✗ network"), "{said}");
    let call = world.run(&["show", "--json", "1"], "").json();
    let seen = (&call["session"], &call["took_ms"], &call["state"]);
    assert_eq!(seen, (&json!("cron"), &json!(1234), &json!("failed")), "{call}");
}

#[test]
fn r3_15_a_retry_is_announced_with_its_tag_and_reason() {
    let fetch = "n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n; [ $n -gt 0 ] && exit 0; echo 'HTTP 503 Service Unavailable' >&2; exit 1";
    let world = with_program(World::empty(), "fetch", fetch);
    let said = run(&world, &["run", "--idempotent", "--", "fetch"]);
    let line = &timed_lines(&said)[1];
    assert!(
        line.starts_with("self-correct: will retry api_err (HTTP 503 Service Unavailable; retry 1 of 3 in "),
        "{said}"
    );
    assert!(line.ends_with(" s)"), "{said}");
}

#[test]
fn r3_16_a_repository_is_saved_with_the_work_that_is_not_committed() {
    let world = World::empty().with("app/a.txt", "one\n");
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
            .args(args)
            .current_dir(world.path("app"));
        let output = command.env("HOME", world.path("")).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q", "."]);
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    fs::write(world.path("app/a.txt"), "stashed\n").unwrap();
    git(&["stash", "-q"]);
    fs::write(world.path("app/a.txt"), "dirty\n").unwrap();
    fs::write(world.path("app/staged"), "staged\n").unwrap();
    git(&["add", "staged"]);
    fs::write(world.path("app/untracked"), "mine\n").unwrap();
    let state = || (git(&["status", "--porcelain"]), git(&["stash", "list"]));
    let (before, seen) = (tree(&world, "app"), state());
    assert_eq!(world.run_in("app", &["git-snapshot"]).stdout(), "s1\n");
    git(&["reset", "-q", "--hard"]);
    git(&["clean", "-qfdx"]);
    git(&["stash", "drop", "-q"]);
    assert_ne!(state(), seen);
    assert_eq!(world.run_in("app", &["restore", "s1"]).exit, 0);
    assert_eq!(tree(&world, "app"), before);
    assert_eq!(state(), seen);
}

#[test]
fn r3_17_many_files_are_deleted_only_when_they_are_saved() {
    let world = project().with("app/old/x", "x").with("else/y", "y");
    std::os::unix::fs::symlink("../else", world.path("app/link")).unwrap();
    let before = tree(&world, "app");
    assert_eq!(world.run_in("app", &["rm", "build", "old"]).exit, 0);
    assert!(!world.path("app/build").exists() && !world.path("app/old").exists());
    assert_eq!(world.run_in("app", &["undo"]).exit, 0);
    assert_eq!(tree(&world, "app"), before);
    let home = world.path("").display().to_string();
    for target in ["/", &*home, "link/"] {
        let said = world.run_in("app", &["rm", "-rf", target]);
        assert!(said.exit != 0 && said.stdout().is_empty(), "{target}: {said}");
    }
    assert_eq!(tree(&world, "app"), before, "nothing was deleted");
    fs::write(world.path("app/fresh"), "never saved before").unwrap();
    let full = world.run_in("app", &["rm", "-rf", "fresh", "--set", "vault.min-free=1TB"]);
    assert!(full.exit != 0 && world.path("app/fresh").exists(), "{full}");
    assert!(world.path("else/y").exists());
}

#[test]
fn r3_18_an_answer_that_is_a_success_is_passed_on() {
    let check = |status: &str, body: &str, args: &[&str], exit: i32, stdout: &str| {
        let server = Server::that((0..2).map(|_| answers(status, &[], body)).collect());
        let said = World::empty()
            .run(&[&["http", "GET", &server.at("/x"), "--action", "api_call"], args].concat(), "");
        assert_eq!((said.exit, said.stdout()), (exit, stdout), "{status}: {said}");
        said
    };
    for status in [OK, "201 Created", "202 Accepted"] {
        check(status, "{\"a\":1}", &[], 0, "{\"a\":1}");
    }
    check("204 No Content", "", &[], 0, "");
    check(OK, "{\"a\":1}", &["--expect-json"], 0, "{\"a\":1}");
    check(OK, "{\"a\":1}", &["--expect-json", ".a == 1"], 0, "{\"a\":1}");
    let said = check(OK, "<html>", &["--expect-json"], 1, "");
    let failed = format!("verify action=api_call status=failed error=parse_err {MS} http_code=200");
    assert_eq!(timed_lines(&said).first(), Some(&failed), "{said}");
}

#[test]
fn r3_19_an_answer_with_another_code_is_an_api_error_with_its_code() {
    let check = |status: &str, tag: &str| {
        let code = &status[..3];
        let server = Server::that(vec![answers(status, &[], "sorry")]);
        let args = ["http", "GET", &server.at("/x"), "--action", "api_call", "--retries", "0"];
        let said = World::empty().run(&args, "");
        let line = format!("verify action=api_call status=failed error={tag} {MS} http_code={code}");
        assert_eq!((said.exit, said.stdout(), timed_lines(&said)), (1, "", vec![line]), "{said}");
    };
    for status in [
        "400 Bad Request",
        "401 Unauthorized",
        "403 Forbidden",
        "404 Not Found",
        "409 Conflict",
        "418 I'm a teapot",
        "500 Internal Server Error",
        "503 Service Unavailable",
    ] {
        check(status, "api_err");
    }
    // It keeps the word by which it is waited for.
    check("429 Too Many Requests", "rate_limited");
}

#[test]
fn r3_20_the_network_is_told_from_the_other_side() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let once = |url: &str, more: &[&str]| {
        let said = World::empty()
            .run(&[&["http", "GET", url, "--retries", "0", "--action", "x"], more].concat(), "");
        let tag = timed_lines(&said)[0].split("error=").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        (tag, said)
    };
    assert_eq!(once(&format!("http://{gone}/x"), &[]).0, "network_err");
    let server = Server::that(vec![hangs(Duration::from_secs(5))]);
    assert_eq!(once(&server.at("/x"), &["--timeout", "300ms"]).0, "timeout");
    let server = Server::that(vec![says("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf of")]);
    let (tag, said) = once(&server.at("/x"), &[]);
    assert_eq!((&*tag, said.stdout()), ("network_err", ""), "half an answer is none");
    // What may have been done is not done twice.
    let server = Server::that(vec![says(""), answers(OK, &[], "done")]);
    let said = World::empty().run(&["http", "POST", &server.at("/x"), "--data", "n=1"], "");
    assert_eq!((said.exit, server.asked().len()), (1, 1), "{said}");
}

#[test]
fn r3_21_the_heartbeat_does_all_that_is_due_in_one_line() {
    let world = project();
    world.run_in("app", &["run", "-q", "--", "true"]);
    // A clock is believed where snapshots were taken all the time.
    [25, 20, 15, 10, 5].iter().for_each(|hours| taken_before(&world, *hours));
    let told = world.run(&["heartbeat", "--json"], "").json();
    assert!(told.is_object(), "{told}");
    assert_eq!(snapshots(&world), ["s2", "s3", "s4", "s5"]);
    assert_eq!(world.run(&["heartbeat"], "").stdout(), "nothing to do\n");
    let quiet = world.run(&["heartbeat", "--quiet"], "");
    assert_eq!((quiet.stdout(), quiet.stderr(), quiet.exit), ("", "", 0), "{quiet}");
    // Without any heartbeat it goes with the next snapshot.
    taken_before(&world, 25);
    assert_eq!(world.run_in("app", &["snapshot"]).exit, 0);
    assert_eq!(snapshots(&world), ["s2", "s3", "s4", "s5", "s7"]);
}

#[test]
fn r3_22_what_fails_its_check_is_rolled_back() {
    let world = project().with("app/dist/app.js", "good");
    let before = tree(&world, "app/dist");
    let args = ["run", "--json", "--protect", "dist", "--verify", "test -s dist/app.js"];
    let said =
        world.run_in("app", &[&args[..], &["--", "sh", "-c", ": > dist/app.js; touch dist/half"]].concat());
    let told = story(&said);
    assert_eq!((said.exit, &told["rolled_back"]), (1, &json!(true)), "{said}");
    assert_eq!(tree(&world, "app/dist"), before);
    let said = world.run_in("app", &[&args[..], &["--", "sh", "-c", "echo better > dist/app.js"]].concat());
    assert_eq!((said.exit, &story(&said)["rolled_back"]), (0, &Value::Null), "{said}");
    assert_eq!(fs::read_to_string(world.path("app/dist/app.js")).unwrap(), "better\n");
}

#[test]
fn r3_23_what_could_not_be_saved_is_said() {
    let world = project();
    let full = world.run_in("app", &["snapshot", "--set", "vault.min-free=1TB"]);
    assert_eq!((full.stdout(), full.exit), ("", 125), "{full}");
    assert!(full.stderr().contains("hint: "), "{full}");
    // A pipe cannot be saved: it is named, and the exit code says that not all of it is there.
    let made = Command::new("mkfifo").arg(world.path("app/secret")).status().unwrap();
    assert!(made.success());
    let world = world.with("app/locked/file", "x");
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    fs::set_permissions(world.path("app/locked"), std::os::unix::fs::PermissionsExt::from_mode(0o000))
        .unwrap();
    let said = match is_root {
        true => world.of_nobody(&["snapshot", "app"], ""),
        false => world.run(&["snapshot", "app"], ""),
    };
    fs::set_permissions(world.path("app/locked"), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    assert_eq!((said.stdout(), said.exit), ("s1\n", 1), "{said}");
    assert!(said.stderr().contains("app/locked"), "{said}");
}

#[test]
fn r3_24_record_doubts_what_run_doubts() {
    let cut = "{\"items\":[1,2";
    let world = with_program(World::empty(), "curl", &format!("printf '{cut}'"));
    let said = run(&world, &["run", "--json", "--retries", "0", "--", "curl", "-s", "https://api.example/x"]);
    let ran = story(&said)["attempts"][0].clone();
    let told = recorded("curl -s https://api.example/x", 0, cut);
    assert_eq!(
        (&told["ok"], &told["kind"], &told["tag"]),
        (&json!(false), &ran["kind"], &ran["tag"]),
        "{told}, {ran}"
    );
    assert!(told["evidence"].as_str().unwrap().contains("cut-json"), "{told}");
    let whole = recorded("curl -s https://api.example/x", 0, "{\"items\":[1,2]}\n");
    assert_eq!(whole["ok"], json!(true), "{whole}");
    assert_eq!(recorded("cat half.json", 0, cut)["ok"], json!(true), "a look at a file is what it is");
}

#[test]
fn r3_25_the_duration_is_measured() {
    let world = World::empty();
    let begun = Instant::now();
    let said = world.run(&["run", "--json", "--", "sleep", "0.4"], "");
    let took = story(&said)["attempts"][0]["duration_ms"].as_u64().unwrap();
    assert!(took >= 400 && u128::from(took) <= begun.elapsed().as_millis(), "{said}");
    let line = said.stderr().lines().find(|line| line.contains("verify action=")).unwrap();
    assert!(line.ends_with(&format!("duration={took}ms")), "{said}");
}
