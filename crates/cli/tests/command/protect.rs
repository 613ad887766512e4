//! Protection of `unstuck run`: what was there before comes back where the work came to nothing, and nothing is lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::restore::tree;
use crate::snapshot::project;
use crate::world::{Said, World};

fn run(world: &World, words: &[&str], line: &str) -> Said {
    world.run_in("app", &[&["run"], words, &["--", "sh", "-c", line]].concat())
}

#[track_caller]
fn story(said: &Said) -> Value {
    serde_json::from_str(said.stderr().lines().last().unwrap())
        .unwrap_or_else(|error| panic!("{error}:\n{said}"))
}

#[test]
fn a_build_that_came_to_nothing_is_taken_back() {
    let world = project().with("app/dist/app.js", "good");
    let before = tree(&world.path("app/dist"));
    let said = run(
        &world,
        &["--verify", "test -s dist/app.js", "--protect", "dist"],
        ": > dist/app.js; touch dist/half",
    );
    assert_eq!((said.exit, tree(&world.path("app/dist"))), (1, before), "{said}");
    assert!(said.stderr().contains("brought back ") && said.stderr().contains("`unstuck redo`"), "{said}");
    // The failed state is there to be looked at.
    assert_eq!(world.run_in("app", &["redo"]).exit, 0);
    assert!(world.path("app/dist/half").exists());
}

#[test]
fn a_command_that_failed_by_itself_is_taken_back_too_where_that_is_wanted() {
    let world = project().with("app/a", "good");
    let said = run(&world, &["--json", "--protect", "a", "--rollback", "on-failure"], "echo bad > a; exit 7");
    let told = story(&said);
    assert_eq!(
        (said.exit, &told["snapshots"], &told["rolled_back"]),
        (7, &json!(["s1"]), &json!(true)),
        "{said}"
    );
    assert_eq!(fs::read_to_string(world.path("app/a")).unwrap(), "good");
    // Without a check nothing comes back by itself.
    let said = run(&world, &["--json", "--protect", "a"], "echo bad > a; exit 7");
    assert_eq!((said.exit, &story(&said)["rolled_back"]), (7, &Value::Null), "{said}");
    assert!(said.stderr().contains("take it back: `unstuck undo s"), "{said}");
    assert_eq!(fs::read_to_string(world.path("app/a")).unwrap(), "bad\n");
    assert_eq!(world.run_in("app", &["undo"]).exit, 0);
    assert_eq!(fs::read_to_string(world.path("app/a")).unwrap(), "good");
}

#[test]
fn what_a_success_left_stays() {
    let world = project().with("app/a", "old");
    let said = run(&world, &["--json", "--verify", "grep -q new a", "--protect", "a"], "echo new > a");
    assert_eq!((said.exit, &story(&said)["rolled_back"]), (0, &Value::Null), "{said}");
    assert_eq!(fs::read_to_string(world.path("app/a")).unwrap(), "new\n");
}

#[test]
fn auto_protects_what_a_known_command_puts_at_risk() {
    let world = project();
    let before = tree(&world.path("app/src"));
    let said = world.run_in("app", &["run", "--protect", "auto", "--", "rm", "-rf", "src"]);
    assert_eq!((said.exit, world.path("app/src").exists()), (0, false), "{said}");
    assert_eq!(world.run_in("app", &["undo"]).exit, 0);
    assert_eq!(tree(&world.path("app/src")), before);
}

#[test]
fn nothing_runs_where_not_all_of_it_could_be_saved() {
    let world = project().with("app/data/open", "x").with("app/data/closed", "y");
    fs::set_permissions(world.path("app/data/closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let said = world.of_nobody(&["run", "--protect", "app/data", "--", "touch", "ran"], "");
    said.complains(
        125,
        &["not all of it could be saved, so nothing was done:", "closed  (could not be read)"],
    );
    assert!(!world.path("ran").exists());
    let said = world.run_in("app", &["run", "--protect", "/", "--", "touch", "ran"]);
    said.complains(125, &["/ is too much to take as a whole"]);
    let said = world
        .run_in("app", &["run", "--protect", "src", "--set", "vault.min-free=1TB", "--", "touch", "ran"]);
    said.complains(125, &["bytes are needed"]);
    assert!(!world.path("app/ran").exists());
}

#[test]
fn saving_files_first_leaves_signals_to_the_command() {
    let world = project();
    let words = [
        "run",
        "--protect",
        "src",
        "--",
        "sh",
        "-c",
        "trap 'echo first' INT; touch ready; while :; do sleep 0.05; done",
    ];
    let child = world.command(&words).current_dir(world.path("app")).spawn().unwrap();
    let begun = Instant::now();
    while !world.path("app/ready").exists() && begun.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(20));
    }
    let id = child.id().to_string();
    let interrupt = || assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    interrupt();
    thread::sleep(Duration::from_millis(500));
    interrupt();
    let said = Said::by(child);
    // The first one reaches the command, which lives on; the second kills it.
    assert_eq!((said.stdout(), said.exit), ("first\n", 137), "{said}");
}

#[test]
fn asking_nobody_is_a_no() {
    let world = project().with("app/a", "good");
    let said = run(&world, &["--json", "--protect", "a", "--rollback", "ask"], "echo bad > a; exit 7");
    assert_eq!((said.exit, &story(&said)["rolled_back"]), (7, &json!(false)), "{said}");
    assert_eq!(fs::read_to_string(world.path("app/a")).unwrap(), "bad\n");
}

#[test]
fn files_are_saved_once_before_all_attempts() {
    let script = "n=$(($(cat ../count 2>/dev/null || echo 0) + 1)); echo $n > ../count; echo $n >> a; \
                  [ $n -ge 2 ] || { echo 'failed to parse response: missing field' >&2; exit 3; }";
    let world = project().with("app/a", "good\n");
    let said = run(&world, &["--idempotent", "--json", "--protect", "a", "--verify", "false"], script);
    let told = story(&said);
    assert_eq!((said.exit, told["attempts"].as_array().unwrap().len()), (1, 2), "{said}");
    assert_eq!(told["snapshots"], json!(["s1"]));
    assert_eq!(fs::read_to_string(world.path("app/a")).unwrap(), "good\n");
}

#[test]
fn the_number_of_any_attempt_in_the_timeline_takes_it_back() {
    let script = "echo more >> a; echo 'failed to parse response: missing field' >&2; exit 3";
    for number in ["#1", "2"] {
        let world = project().with("app/a", "good\n");
        let said = run(&world, &["--idempotent", "--retries", "1", "--protect", "a"], script);
        assert_eq!(fs::read_to_string(world.path("app/a")).unwrap(), "good\nmore\nmore\n", "{said}");
        let events = world.run(&["log", "--json"], "").json_lines();
        let saved = events.iter().find(|event| event["event"] == "snapshot:taken");
        let saved = saved.unwrap_or_else(|| panic!("{events:?}"));
        assert_eq!((&saved["call"], &saved["body"]["snapshot"]), (&json!(1), &json!("s1")), "{events:?}");
        let undone = world.run_in("app", &["undo", number]);
        assert_eq!(undone.exit, 0, "{undone}");
        assert_eq!(fs::read_to_string(world.path("app/a")).unwrap(), "good\n");
    }
}

#[test]
fn whoever_is_asked_decides() {
    for (answer, expected) in [("y", "good"), ("n", "bad\n"), ("", "bad\n")] {
        let world = project().with("app/a", "good");
        let words = ["run", "--protect", "a", "--rollback", "ask", "--", "sh", "-c", "echo bad > a; exit 7"];
        let Some(mut person) = world.person("app", &words) else { return };
        person.sees("bring back what was there before? [y/N]");
        person.types(&format!("{answer}\n"));
        let (screen, exit) = person.waits();
        assert_eq!((exit, &*fs::read_to_string(world.path("app/a")).unwrap()), (7, expected), "{screen}");
    }
}

#[test]
fn what_somebody_changed_since_is_kept_and_named() {
    let world = project().with("app/out/a", "good").with("app/out/b", "good");
    let script = "echo bad > out/a; echo bad > out/b; exit 7";
    let words = ["run", "--protect", "out", "--rollback", "ask", "--", "sh", "-c", script];
    let Some(mut person) = world.person("app", &words) else { return };
    person.sees("bring back what was there before? [y/N]");
    fs::write(world.path("app/out/b"), "mended by hand").unwrap();
    person.types("y\n");
    let (screen, exit) = person.waits();
    let read = |path: &str| fs::read_to_string(world.path(path)).unwrap();
    assert_eq!((exit, &*read("app/out/a"), &*read("app/out/b")), (7, "good", "mended by hand"), "{screen}");
    assert!(screen.contains("out/b"), "{screen}");
}

/// Interrupts a run at different moments after its command failed, while its files are brought back.
#[test]
fn an_interrupted_rollback_leaves_all_or_nothing_and_can_be_made_up_for() {
    let world = project();
    let names: Vec<String> = (0..600).map(|number| format!("app/out/{number}")).collect();
    fs::create_dir_all(world.path("app/out")).unwrap();
    let write_all = |text: &str| names.iter().for_each(|name| fs::write(world.path(name), text).unwrap());
    let contents = || {
        let mut texts: Vec<String> =
            names.iter().map(|name| fs::read_to_string(world.path(name)).unwrap_or_default()).collect();
        texts.sort();
        texts.dedup();
        texts
    };
    let script = "for f in out/*; do echo bad > $f; done; touch ../failed; exit 7";
    let words = ["run", "--json", "--protect", "out", "--rollback", "on-failure", "--", "sh", "-c", script];
    let mut ended_whole = 0;
    for moment in [0, 50, 150, 300] {
        write_all("good");
        let _gone = fs::remove_file(world.path("failed"));
        let child =
            world.command(&words).current_dir(world.path("app")).stdin(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while !world.path("failed").exists() && begun.elapsed() < Duration::from_secs(30) {
            thread::sleep(Duration::from_millis(2));
        }
        thread::sleep(Duration::from_millis(moment));
        let id = child.id().to_string();
        let _may_have_ended = Command::new("kill").args(["-INT", &id]).status().unwrap();
        let said = Said::by(child);
        let left = contents();
        assert!(left == ["good"] || left == ["bad\n"], "{moment} ms: {left:?}\n{said}");
        // Before it begins, and when it is done, Ctrl-C ends us as it ends every program.
        let told = said.stderr().lines().last().and_then(|line| serde_json::from_str::<Value>(line).ok());
        match told {
            Some(told) => {
                ended_whole += 1;
                assert_eq!((&told["rolled_back"], said.exit), (&json!(left == ["good"]), 7), "{said}");
            }
            None => assert_eq!(said.exit, 130, "{said}"),
        }
        if left == ["bad\n"] {
            let made_up = world.run_in("app", &["undo", "--force"]);
            assert_eq!((contents(), made_up.exit), (vec!["good".to_owned()], 0), "{said}\n{made_up}");
        }
    }
    assert!(ended_whole > 0, "every one of them was cut off");
}
