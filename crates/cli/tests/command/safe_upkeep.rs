//! What looks after the safe: check, pin, drop, gc, heartbeat, purge, status, doctor.

use std::fs;

use serde_json::{Value, json};

use crate::snapshot::project;
use crate::world::World;

fn ids(world: &World) -> Vec<String> {
    let all = world.run(&["snapshots", "--json"], "").json_lines();
    all.iter().map(|snapshot| snapshot["id"].as_str().unwrap().to_owned()).collect()
}

/// A project with some snapshots of it, each with other content.
fn with_snapshots(count: usize) -> World {
    let world = project();
    for number in 0..count {
        fs::write(world.path("app/src/main.rs"), format!("// {number}\n")).unwrap();
        let said = world.run_in("app", &["snapshot", "src", "--set", "vault.per-target=100"]);
        assert_eq!(said.exit, 0, "{said}");
    }
    world
}

/// The same, each taken before a call that changes it.
fn with_calls(count: usize) -> World {
    let world = project();
    // There is a timeline to tell of it.
    world.run_in("app", &["run", "-q", "--", "true"]);
    (0..count).for_each(|number| one_more_call(&world, number));
    world
}

fn one_more_call(world: &World, number: usize) {
    let change = |world: &World| fs::write(world.path("app/src/main.rs"), format!("// {number}\n")).unwrap();
    world.protected(&format!("call-{number}"), "app/src", change);
}

/// Flips a bit in every pack, where content lies.
fn damage(world: &World) {
    for entry in fs::read_dir(world.path(".local/state/unstuck/vault/packs")).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let at =
            bytes.windows(7).position(|part| part == b"fn main").expect("small content is kept as it is");
        bytes[at] ^= 1;
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn a_sound_safe_is_told_and_a_flipped_bit_is_named() {
    let world = project();
    world.run_in("app", &["snapshot", "src"]);
    let said = world.run(&["snapshots", "check"], "");
    assert_eq!((said.exit, said.stderr()), (0, ""), "{said}");
    assert!(said.stdout().starts_with("checked 1 snapshot: 2 contents read and hashed, "), "{said}");
    assert!(said.stdout().ends_with("everything is as it was written\n"), "{said}");
    let sound = world.run(&["snapshots", "check", "latest", "--json"], "").json();
    assert_eq!(
        (&sound["sound"], &sound["snapshots"], &sound["damages"]),
        (&json!(true), &json!(["s1"]), &json!([]))
    );
    damage(&world);
    let said = world.run(&["snapshots", "check", "s1"], "");
    assert_eq!(said.exit, 6, "{said}");
    assert!(said.stdout().contains("/app/src/main.rs  (") && !said.stdout().contains("note.txt"), "{said}");
    let zh = world.run(&["--lang", "zh", "snapshots", "check"], "");
    assert!(zh.exit == 6 && zh.stdout().contains("已损坏"), "{zh}");
    fs::remove_dir_all(world.path("app/src")).unwrap();
    let said = world.run_in("app", &["restore", "s1"]);
    assert_eq!(said.exit, 1, "{said}");
    assert!(said.stdout().contains("(damaged in the safe: `unstuck snapshots check`)"), "{said}");
    assert_eq!(fs::read_to_string(world.path("app/src/deep/note.txt")).unwrap(), "one\ntwo\nthree\n");
    world.run(&["snapshots", "check", "s5"], "").complains(1, &["there is no snapshot s5"]);
}

#[test]
fn the_newest_of_a_target_stay_and_what_is_pinned() {
    let world = with_calls(6);
    let pin = world.run(&["snapshots", "pin", "s1"], "");
    assert_eq!((pin.stdout(), pin.exit), ("s1 stays until it is dropped\n", 0), "{pin}");
    let all = ids(&world);
    assert_eq!(world.run(&["heartbeat"], "").stdout(), "removed 2 expired snapshots\n");
    assert_eq!(ids(&world), [&all[..3], &all[5..]].concat());
    let off = world.run(&["snapshots", "pin", "1", "--off", "--json"], "").json();
    assert_eq!((&off["id"], &off["pinned"]), (&json!("s1"), &json!(false)));
    assert_eq!(world.run(&["heartbeat"], "").stdout(), "removed 1 expired snapshot\n");
    assert_eq!(ids(&world), all[..3]);
    let log = world.run(&["log", "--channel", "monitor"], "");
    assert!(log.stdout().contains("⌫ removed   s1 (expired"), "{log}");
}

#[test]
fn gc_brings_timeline_and_safe_into_their_bounds() {
    let world = with_calls(5);
    let all = ids(&world);
    let [newest, fourth, third, second, first] = &all[..] else { panic!("{all:?}") };
    let dry = world.run(&["gc", "--dry-run", "--json"], "").json();
    assert_eq!(dry["vault"]["removed"], json!([first, second]));
    assert_eq!(dry["vault"]["bytes_before"], dry["vault"]["bytes_after"]);
    assert_eq!(ids(&world).len(), 5);
    let said = world.run(&["gc"], "");
    assert!(
        said.stdout().contains(&format!("the safe: removed 2 snapshots ({first}, {second}); size: ")),
        "{said}"
    );
    assert_eq!(ids(&world), all[..3]);
    let zh = world.run(&["--lang", "zh", "gc", "--set", "vault.per-target=1"], "");
    assert!(zh.stdout().contains(&format!("保险库：已删除 2 个快照 ({third}, {fourth})")), "{zh}");
    let again = world.run(&["gc", "--json"], "").json();
    assert_eq!(again["vault"]["removed"], json!([]));
    let sound = world.run(&["snapshots", "check", "--json"], "").json();
    assert_eq!((&sound["sound"], &sound["snapshots"]), (&json!(true), &json!([newest])));
}

#[test]
fn gc_tends_a_safe_without_a_timeline_and_a_timeline_without_a_safe() {
    let world = project();
    world.before_call("a", None, "app/src");
    let said = world.run(&["gc"], "");
    assert!(said.exit == 0 && said.stdout().contains("the safe: removed 0 snapshots; size: "), "{said}");
    assert_eq!(World::with_failures().run(&["gc", "--json"], "").json()["vault"], Value::Null);
    World::empty().run(&["gc"], "").complains(1, &["nothing is recorded in"]);
}

#[test]
fn what_is_dropped_is_gone_and_an_agent_drops_nothing() {
    let world = with_snapshots(3);
    world.run(&["snapshots", "pin", "s2"], "");
    for args in [&["snapshots", "drop", "s1"][..], &["snapshots", "pin", "s2", "--off"]] {
        let refused = world.command(args).env("CLAUDECODE", "1").output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
    world.run(&["snapshots", "drop", "s1", "s9"], "").complains(1, &["there is no snapshot s9"]);
    assert_eq!(ids(&world).len(), 3);
    let said = world.run(&["snapshots", "drop", "s1", "2", "s1"], "");
    assert!(said.stdout().starts_with("removed s1, s2; the safe: ") && said.exit == 0, "{said}");
    let json = world.run(&["snapshots", "drop", "latest", "--json"], "").json();
    assert_eq!(json["dropped"], json!(["s3"]));
    assert_eq!(world.run(&["snapshots"], "").stdout(), "no snapshots\n");
    assert_eq!(world.run(&["--lang", "zh", "snapshots"], "").stdout(), "没有快照\n");
    world.run(&["snapshots", "drop"], "").complains(2, &["<ID>"]);
}

#[test]
fn a_purge_removes_the_snapshots_of_a_session_and_what_undoing_them_saved() {
    let world = project();
    world.run_in("app", &["snapshot", "src"]);
    let write = |world: &World| fs::write(world.path("app/src/main.rs"), "platypus").unwrap();
    let of_call = world.protected("a", "app/src", write);
    let saved = world.run_in("app", &["undo", "--json"]).json()["saved"].clone();
    world.run(&["snapshots", "pin", &of_call], "");
    assert!(!world.files_with("platypus").is_empty());
    let dry = world.run(&["purge", "--session", "sitting", "--dry-run", "--json"], "").json();
    assert_eq!(dry["snapshots"], json!([of_call, saved]));
    world.run(&["purge", "--session", "sittin"], "").complains(1, &["no session is called sittin"]);
    let said = world.run(&["purge", "--session", "sitting"], "");
    assert!(said.stdout().contains("and 2 snapshots\n") && said.exit == 0, "{said}");
    assert_eq!((ids(&world), world.files_with("platypus")), (vec!["s1".to_owned()], vec![]));
    let zh = world.run(&["--lang", "zh", "purge", "--before", "0s"], "");
    assert!(zh.stdout().contains("以及 1 个快照\n"), "{zh}");
    assert_eq!(world.run(&["snapshots"], "").stdout(), "no snapshots\n");
    assert_eq!(world.files_with("fn main"), [""; 0]);
}

#[test]
fn status_and_doctor_have_a_line_on_it() {
    let world = with_snapshots(2);
    let said = world.run(&["status"], "");
    let line = said.stdout().lines().find(|line| line.starts_with("safe ")).unwrap_or_default();
    assert!(line.contains("2 snapshots (") && line.contains(", the oldest "), "{said}");
    let vault = world.run(&["status", "--json"], "").json()["vault"].clone();
    assert_eq!(vault["snapshots"], 2);
    assert!(vault["bytes"].as_u64() > Some(0) && vault["oldest_at_ms"].is_u64(), "{vault}");
    let doctor = world.run(&["doctor"], "");
    assert!(doctor.stdout().contains("2 snapshots ("), "{doctor}");
    assert_eq!(World::with_failures().run(&["status", "--json"], "").json()["vault"], Value::Null);
}

#[test]
fn a_safe_of_a_newer_version_is_left_alone() {
    let world = with_snapshots(1);
    fs::write(world.path(".local/state/unstuck/vault/format"), "99\n").unwrap();
    let said = world.run_in("app", &["snapshot"]);
    said.complains(125, &["has format 99, this version knows up to ", "hint: update unstuck"]);
    let zh = world.run(&["--lang", "zh", "snapshots"], "");
    zh.complains(125, &["的格式是 99，此版本最高只认识 ", "提示：请更新 unstuck"]);
    assert_eq!(world.run(&["status"], "").exit, 0);
    let doctor = world.run(&["doctor"], "");
    assert!(doctor.exit == 6 && doctor.stdout().contains("has format 99"), "{doctor}");
}

#[test]
fn a_record_that_cannot_be_read_is_named_and_can_be_dropped() {
    let world = with_snapshots(2);
    let records = world.path(".local/state/unstuck/vault/snapshots");
    let mut files: Vec<_> = fs::read_dir(records).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    fs::write(&files[0], "{").unwrap();
    let said = world.run(&["snapshots"], "");
    assert_eq!(said.exit, 0, "{said}");
    assert!(said.stderr().contains("damaged, and lost: s1 (`unstuck snapshots drop s1`)\n"), "{said}");
    assert!(
        world.run(&["--lang", "zh", "snapshots"], "").stderr().contains("已损坏且无法恢复：s1"),
        "{said}"
    );
    let doctor = world.run(&["doctor"], "");
    assert!(doctor.exit == 6 && doctor.stdout().contains("damaged, and lost: s1"), "{doctor}");
    let gc = world.run(&["gc"], "");
    assert!(gc.stdout().contains("damaged lists: s1; ") || gc.exit == 0, "{gc}");
    assert_eq!(world.run(&["snapshots", "drop", "s1"], "").exit, 0);
    assert_eq!(world.run(&["snapshots"], "").stderr(), "");
}

#[test]
fn an_agent_removes_nothing_before_its_time() {
    let world = with_calls(3);
    let as_agent = |args: &[&str]| world.command(args).env("CLAUDECODE", "1").output().unwrap().status.code();
    assert_eq!(as_agent(&["gc", "--set", "vault.per-target=1"]), Some(2));
    assert_eq!(as_agent(&["heartbeat", "--set", "vault.max-age=1m", "--set", "vault.per-target=1"]), Some(0));
    assert_eq!(as_agent(&["snapshot", "app/src", "--set", "vault.per-target=1"]), Some(0));
    assert_eq!(ids(&world).len(), 4);
    one_more_call(&world, 3);
    assert_eq!(as_agent(&["gc"]), Some(0));
    assert_eq!(ids(&world).len(), 4, "the one that was taken by hand stays");
}
