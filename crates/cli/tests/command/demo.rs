//! `unstuck demo`: what it shows was really answered and really done, and it says so where it was not.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::world::{Said, World, repository};

/// A machine whose temporary folder is within it, so that it can be seen what is left there.
fn world() -> World {
    World::empty().with("tmp/.keep", "")
}

fn command(world: &World, args: &[&str]) -> Command {
    let mut command = world.command(&[&["demo"], args].concat());
    command.env("TMPDIR", world.path("tmp"));
    command
}

fn demo(world: &World, args: &[&str]) -> Said {
    Said::by(command(world, args).spawn().unwrap())
}

#[track_caller]
fn left_behind(world: &World) -> usize {
    fs::read_dir(world.path("tmp")).unwrap().count() - 1
}

/// How many columns a line takes on a terminal; Chinese signs take two.
fn columns(line: &str) -> usize {
    line.chars().map(|sign| if ('\u{2e80}'..='\u{ff60}').contains(&sign) { 2 } else { 1 }).sum()
}

/// `chapter: call -> decision exit`, for each step.
fn short(said: &Said) -> Vec<String> {
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    said.json_lines()
        .iter()
        .filter(|line| line["type"] == "step")
        .map(|line| {
            let (chapter, call, decision) =
                (text(line, "chapter"), text(line, "call"), text(line, "decision"));
            format!("{chapter}: {call} -> {decision} {}", line["exit"])
        })
        .collect()
}

#[test]
fn every_chapter_goes_as_it_should_and_nothing_of_the_person_is_touched() {
    let world = world();
    let said = demo(&world, &["--json"]);
    let expected = [
        "diagnosis: ./report.sh -> none 127",
        "diagnosis: ./report.sh -> deny null",
        "waiting: ./fetch.sh rows -> none 22",
        "waiting: ./fetch.sh rows -> none 22",
        "waiting: ./fetch.sh rows -> none 0",
        "circles: ./build.sh -> none 1",
        "circles: ./build.sh --verbose 2>&1 -> none 1",
        "circles: ./build.sh 2>&1 | tail -5 -> deny null",
        "circles: Edit settings.sh -> none null",
        "circles: ./build.sh -> none 0",
        "honest-work: ./test.sh -> none 1",
        "honest-work: Edit lib.sh -> none null",
        "honest-work: ./test.sh -> none 1",
        "honest-work: Edit lib.sh -> none null",
        "honest-work: ./test.sh -> none 1",
        "honest-work: Edit lib.sh -> none null",
        "honest-work: ./test.sh -> none 0",
        "rewrite: python summary.py -> none 127",
        "rewrite: python summary.py -> rewrite 0",
        "undo: rm -rf src -> none 0",
        "lost-result: ./migrate.sh -> none null",
    ];
    assert_eq!(short(&said), expected);
    let lines = said.json_lines();
    assert!(lines.iter().all(|line| line["type"] == "end" || line["ok"] == true), "{said}");
    let counts: Vec<&Value> =
        lines.iter().filter(|line| line["type"] == "count").map(|line| &line["runs"]).collect();
    assert_eq!(counts, [1, 2]);
    let end = lines.last().unwrap();
    assert_eq!(
        (&end["state"], &end["unmet"], &end["folder"]),
        (&"on".into(), &0.into(), &Value::Null),
        "{end}"
    );
    assert_eq!((&end["calls"], &end["refused"]), (&21.into(), &2.into()), "{end}");
    let rewritten = lines.iter().find(|line| line["decision"] == "rewrite").unwrap();
    assert_eq!(rewritten["ran"], "python3 summary.py");
    let undone = lines.iter().find(|line| line["type"] == "undo").unwrap();
    assert_eq!(undone["files"], serde_json::json!(["src/tide.sh", "src/notes.txt"]));
    let resumed = lines.iter().find(|line| line["type"] == "resume").unwrap();
    assert!(resumed["told"].as_str().unwrap().contains("migrate.sh"), "{resumed}");
    assert_eq!(left_behind(&world), 0);
    assert!(!world.path(".local").exists() && !world.path("config").exists());
}

#[test]
fn what_is_kept_can_be_looked_at_and_tells_the_same() {
    let world = world();
    let said = demo(&world, &["--json", "--keep"]);
    let folder = said.json_lines().last().unwrap()["folder"].as_str().unwrap().to_owned();
    let log = world.run(&["--set", &format!("store.state-dir={folder}/state"), "log", "--json"], "");
    let events = log.json_lines();
    assert!(events.iter().all(|event| event["event"] != "own_fault"), "{log}");
    let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    let calls_with = |kind: &str| -> Vec<u64> {
        let calls =
            events.iter().filter(|event| event["event"] == kind).map(|event| event["call"].as_u64().unwrap());
        calls.collect()
    };
    // What is rewritten would have been refused as it was.
    let rewritten = calls_with("tool:rewritten");
    let denied = calls_with("tool:denied").into_iter().filter(|call| !rewritten.contains(call)).count();
    assert_eq!((rewritten.len(), denied), (1, 2), "{log}");
    assert_eq!((of("tool:sealed"), of("halt")), (1, 0), "{log}");
    // A machine that stands still for a second may miss one of the two: then there is nothing left to wait for.
    let held =
        said.json_lines().iter().filter(|line| line["held_ms"].as_u64().is_some_and(|held| held > 0)).count();
    assert!((1..=2).contains(&held) && held <= of("tool:retry"), "{said}\n{log}");
    // The build is noted, then hinted at; the tests are noted once.
    let rungs = |label: &str| -> Vec<String> {
        let calls: Vec<&Value> = events
            .iter()
            .filter(|event| {
                event["event"] == "tool:start" && event["body"]["label"].as_str().unwrap().starts_with(label)
            })
            .map(|event| &event["call"])
            .collect();
        let advice =
            events.iter().filter(|event| event["event"] == "tool:advice" && calls.contains(&&event["call"]));
        advice.map(|event| event["body"]["rung"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(rungs("./build.sh"), ["note", "hint"], "{log}");
    assert_eq!(rungs("./test.sh"), ["note"], "{log}");
}

#[test]
fn settings_of_the_person_do_not_spoil_it() {
    let world = world().with("config/unstuck/config.toml", "[ladder]\nmode = \"shadow\"\n");
    let mut command = command(&world, &["--json"]);
    command.env("UNSTUCK_LADDER_PRESET", "classic").env("UNSTUCK_HOOK_HOLD_MAX", "0ms");
    let said = Said::by(command.spawn().unwrap());
    assert_eq!(said.json_lines().last().unwrap()["unmet"], 0, "{said}");
}

#[test]
fn what_was_not_seen_is_not_claimed() {
    // On this machine the program that the story misses is there.
    let world = world().with("bin/plotwright", "#!/bin/sh\necho drawn\n");
    fs::set_permissions(world.path("bin/plotwright"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", world.path("bin").display(), std::env::var("PATH").unwrap());
    let said = Said::by(command(&world, &[]).env("PATH", path).spawn().unwrap());
    assert_eq!(said.exit, 1, "{said}");
    let words = "✗         not as expected: it fails, and the model is told why";
    assert!(said.stdout().contains(words), "{said}");
    assert!(said.stdout().contains("things were not as expected."), "{said}");
    assert!(!said.stdout().contains("unstuck install"), "{said}");
}

#[test]
fn it_needs_nothing_but_a_shell() {
    let world = world();
    let said = Said::by(command(&world, &["--json"]).env("PATH", world.path("nothing")).spawn().unwrap());
    assert_eq!(said.json_lines().last().unwrap()["unmet"], 0, "{said}");
}

/// A line without what differs from run to run.
fn without_numbers(line: &str) -> String {
    let mut plain = String::new();
    for sign in line.chars().map(|sign| if sign.is_ascii_digit() { '0' } else { sign }) {
        if sign != '0' || !plain.ends_with('0') {
            plain.push(sign);
        }
    }
    plain
}

/// Fails unless every line of the page's first example is one that was printed, as far as it goes before an ellipsis.
#[track_caller]
fn is_what_the_page_shows(said: &Said, page: &str) {
    let text = fs::read_to_string(repository(page)).unwrap();
    let (_, example) = text.split_once("```console\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let printed: Vec<String> = said.stdout().lines().map(without_numbers).collect();
    let (call, shown) = example.split_once('\n').unwrap();
    assert!(call.starts_with("$ cargo run --release ") && call.ends_with(" demo"), "{call}");
    for line in shown.lines().map(without_numbers) {
        let is_printed = match line.split_once('…') {
            Some((begin, _)) => printed.iter().any(|line| line.starts_with(begin)),
            None => printed.contains(&line),
        };
        assert!(is_printed, "{page} shows what is not printed: {line}\n{said}");
    }
}

#[test]
fn it_fits_eighty_columns_has_no_colours_in_a_pipe_and_is_what_the_readme_shows() {
    for (lang, page) in [("en", "README.md"), ("zh", "README.zh-CN.md")] {
        let said = demo(&world(), &["--lang", lang]);
        assert_eq!((said.stderr(), said.exit), ("", 0), "{said}");
        assert!(!said.stdout().contains('\x1b'), "{said}");
        assert!(said.stdout().trim_end().ends_with("unstuck install claude"), "{said}");
        let wide: Vec<&str> = said.stdout().lines().filter(|line| columns(line) > 80).collect();
        assert!(wide.is_empty(), "{wide:#?}");
        is_what_the_page_shows(&said, page);
    }
}

#[test]
fn switched_off_it_says_so_instead_of_pretending() {
    let world = world();
    let said = Said::by(command(&world, &[]).env("UNSTUCK_DISABLE", "1").spawn().unwrap());
    assert!(said.stdout().starts_with("unstuck is switched off here: UNSTUCK_DISABLE is set."), "{said}");
    assert_eq!(said.exit, 1);
    let said = Said::by(command(&world, &[]).env("UNSTUCK_HOOK_ENABLED", "false").spawn().unwrap());
    assert!(said.stdout().contains("hook.enabled is false") && said.exit == 1, "{said}");
    world.run(&["pause", "--yes"], "");
    let said = demo(&world, &["--json"]);
    assert!(said.stdout().contains(r#""state":"paused""#) && said.exit == 1, "{said}");
    let said = demo(&world, &["--lang", "zh"]);
    assert!(said.stdout().starts_with("unstuck 已暂停至 ") && said.exit == 1, "{said}");
    assert_eq!(left_behind(&world), 0);
}

#[test]
fn interrupted_it_ends_and_leaves_nothing_behind() {
    let world = world();
    let child = command(&world, &[]).spawn().unwrap();
    // The first call that is held is the longest thing it does, so a signal finds it there.
    let has_begun = || {
        let folders = fs::read_dir(world.path("tmp")).unwrap().flatten();
        folders.into_iter().any(|folder| folder.path().join("project/fetch.runs").exists())
    };
    while !has_begun() {
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(400));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let said = Said::by(child);
    assert_eq!((said.exit, left_behind(&world)), (130, 0), "{said}");
}
