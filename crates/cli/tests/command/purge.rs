//! `unstuck purge`: what a person wants gone cannot be read in any file.

use std::thread;
use std::time::Duration;

use crate::kept::failure;
use crate::world::{Said, World};

const WORD: &str = "platypus";

/// A world with two sessions, of which one said something in every place where something can be said.
fn world() -> World {
    let world = World::with_failures().with("config/unstuck/config.toml", "[store]\ntool-errors = true\n");
    for n in 0..3 {
        world.record(&failure(
            WORD,
            &format!("c{n}"),
            &format!("curl {WORD}.example"),
            &format!("{WORD}: not found {n}"),
        ));
    }
    assert!(!world.files_with(WORD).is_empty());
    world
}

#[test]
fn a_purged_session_is_gone_from_every_file_and_the_others_stay() {
    let world = world();
    let dry = world.run(&["purge", "--session", WORD, "--dry-run"], "");
    assert!(dry.stdout().starts_with("would remove: 3 calls, ") && dry.exit == 0, "{dry}");
    assert!(
        dry.stdout().contains(" 1 session, ") && dry.stdout().contains("and 1 tool-errors file\n"),
        "{dry}"
    );
    let said = world.run(&["purge", "--session", WORD], "");
    assert_eq!(said.stdout().replace("removed", "would remove"), dry.stdout());
    assert_eq!((said.stderr(), said.exit), ("", 0));
    assert_eq!(world.files_with(WORD), [""; 0]);
    assert!(!world.path(".local/state/unstuck/sessions").join(WORD).exists());
    let left = world.run(&["export", "--jsonl", "--only", "calls,problems"], "").json_lines();
    assert_eq!(left.iter().filter(|line| line["session"] == "one").count(), 2);
    world.record(&failure("one", "c9", "npm ci", "npm error code ENOENT"));
}

#[test]
fn what_waited_in_the_spool_goes_as_well() {
    let world = world();
    let mut hook = world.command(&["hook", "generic"]);
    hook.env("UNSTUCK_STORE_FILESYSTEM", "network");
    let mut child = hook.spawn().unwrap();
    let payload = failure(WORD, "late", "make", WORD);
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).unwrap();
    Said::by(child);
    assert!(world.files_with(WORD).iter().any(|file| file.ends_with(".jsonl")));
    assert_eq!(world.run(&["purge", "--session", WORD], "").exit, 0);
    assert_eq!(world.files_with(WORD), [""; 0]);
}

#[test]
fn everything_from_before_a_moment_goes() {
    let world = world();
    let said = world.run(&["purge", "--before", "1h", "--json"], "").json();
    assert_eq!((&said["removed"]["calls"], &said["final"]), (&0.into(), &true.into()));
    let said = world.run(&["purge", "--before", "2100-01-01", "--json"], "").json();
    assert_eq!((&said["removed"]["calls"], &said["removed"]["sessions"]), (&5.into(), &2.into()));
    assert_eq!(world.files_with(WORD), [""; 0]);
    assert_eq!(world.run(&["export", "--jsonl"], "").json_lines().len(), 1, "only the bookmark is left");
}

#[test]
fn copies_that_may_hold_it_are_named_or_go_along() {
    let world = world();
    let backup = ".local/state/unstuck/backups/timeline-format1-1794733363546.db";
    let world = world.with(backup, WORD);
    let said = world.run(&["purge", "--session", WORD], "");
    assert!(
        said.stdout().contains("these copies stay") && said.stdout().contains("timeline-format1-"),
        "{said}"
    );
    assert_eq!(world.files_with(WORD), ["timeline-format1-1794733363546.db"]);
    world.record(&failure(WORD, "c1", "make", "x"));
    let said = world.run(&["purge", "--session", WORD, "--backups"], "");
    assert!(said.stdout().contains("and these copies:"), "{said}");
    assert_eq!(world.files_with(WORD), [""; 0]);
}

#[test]
fn hooks_that_run_meanwhile_lose_nothing() {
    let world = world();
    let hooks: Vec<_> = (0..6)
        .map(|n| {
            let mut child = world.command(&["hook", "generic"]).spawn().unwrap();
            let payload = failure("busy", &format!("b{n}"), "make", "make: *** No rule to make target");
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).unwrap();
            child
        })
        .collect();
    let said = world.run(&["purge", "--session", WORD], "");
    assert_eq!(said.exit, 0, "{said}");
    for said in hooks.into_iter().map(Said::by) {
        assert!(!said.stdout().contains("\"lost\""), "{said}");
    }
    let calls = world.run(&["export", "--jsonl", "--only", "calls", "--session", "busy"], "").json_lines();
    assert_eq!(calls.len() - 1, 6);
    assert_eq!(world.files_with(WORD), [""; 0]);
}

#[test]
fn a_purge_that_was_killed_anywhere_is_finished_by_the_next() {
    let world = World::with_failures();
    let mut cut_short = 0;
    for delay in [2, 5, 8, 12, 16, 20, 30, 40] {
        let calls: String =
            (0..60).map(|n| failure(WORD, &format!("c{n}"), "make", &format!("{WORD}: {n}"))).collect();
        world.record(&calls);
        let mut child = world.command(&["purge", "--session", WORD]).spawn().unwrap();
        thread::sleep(Duration::from_millis(delay));
        child.kill().unwrap();
        child.wait().unwrap();
        cut_short += usize::from(!world.files_with(WORD).is_empty());
        let said = world.run(&["purge", "--session", WORD], "");
        // Where the first came to its end after all, there is no such session any more.
        assert!(said.exit == 0 || said.stderr().contains("no session is called"), "{said}");
        assert_eq!(world.files_with(WORD), [""; 0], "killed after {delay} ms");
    }
    assert!(cut_short > 0, "none was killed half-way");
    assert_eq!(world.run(&["export", "--jsonl", "--only", "calls"], "").json_lines().len() - 1, 2);
}

#[test]
fn nothing_is_removed_for_a_name_that_only_begins_so() {
    let world = world();
    world
        .run(&["purge", "--session", "platy"], "")
        .complains(1, &["no session is called platy", "did you mean platypus?"]);
    world.run(&["purge", "--session", "zzzz"], "").complains(1, &["no session is called zzzz"]);
    world.run(&["purge"], "").complains(2, &["--session", "--before"]);
    world.run(&["purge", "--before", "soon"], "").complains(2, &["30d"]);
    World::empty().run(&["purge", "--before", "1d"], "").complains(1, &["nothing is recorded in"]);
    assert!(world.path(".local/state/unstuck/sessions").join(WORD).exists());
}
