//! `unstuck rm`: what it deletes, what it refuses, and that all of it comes back.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::restore::tree;
use crate::snapshot::project;

#[test]
fn what_is_deleted_comes_back_exactly() {
    let world =
        project().with("app/old/a", "a").with("app/old/deep/b", "b").with("app/run.sh", "#!/bin/sh\n");
    symlink("../src", world.path("app/old/link")).unwrap();
    fs::set_permissions(world.path("app/run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    // The folder around them was not saved: deleting something in it sets its time.
    let inside = || tree(&world.path("app")).split_once('\n').unwrap().1.to_owned();
    let before = inside();
    let said = world.run_in("app", &["rm", "old/", "target", "run.sh"]);
    assert_eq!(said.exit, 0, "{said}");
    assert!(
        said.stdout().starts_with("deleted ")
            && said.stdout().ends_with("bring it back: `unstuck undo s1`\n"),
        "{said}"
    );
    for path in ["app/old", "app/target", "app/run.sh"] {
        assert!(!world.path(path).exists(), "{path}");
    }
    assert!(world.path("app/src/main.rs").exists(), "what a link leads to stays");
    let undone = world.run_in("app", &["undo"]);
    assert_eq!((inside(), undone.exit), (before, 0), "{undone}");
    assert!(undone.stdout().starts_with("unstuck rm "), "{undone}");
    assert_eq!(world.run_in("app", &["redo"]).exit, 0);
    assert!(!world.path("app/old").exists());
}

#[test]
fn the_habits_of_rm_are_understood() {
    let world = project().with("app/a", "a").with("app/-odd", "x");
    let said = world.run_in("app", &["rm", "-rf", "src", "nothing", "--json"]);
    let told = said.json();
    assert_eq!((&told["type"], &told["snapshot"]), (&json!("rm"), &json!("s1")));
    assert_eq!(told["entries"], 4);
    assert!(told["removed"][0].as_str().unwrap().ends_with("/app/src"), "{told}");
    assert!(told["missing"][0].as_str().unwrap().ends_with("/app/nothing"), "{told}");
    assert_eq!(world.run_in("app", &["rm", "-R", "-f", "--", "-odd"]).exit, 0);
    assert!(!world.path("app/-odd").exists());
    // One that is not there stops all of them.
    world.run_in("app", &["rm", "a", "none"]).complains(2, &["there is no ", "/app/none\n"]);
    assert!(world.path("app/a").exists());
    // Nothing to do is done.
    let nothing = world.run_in("app", &["rm", "-f", "none"]);
    assert_eq!((nothing.stdout(), nothing.exit), ("", 0), "{nothing}");
    assert_eq!(world.run_in("app", &["rm", "-f", "none", "--json"]).json()["snapshot"], json!(null));
    let zh = world.run_in("app", &["--lang", "zh", "rm", "a"]);
    assert!(zh.stdout().starts_with("已删除 1 个路径"), "{zh}");
}

#[test]
fn a_link_is_deleted_and_never_followed() {
    let world = project().with("else/where", "x");
    symlink("../else", world.path("app/link")).unwrap();
    symlink("nowhere", world.path("app/dangling")).unwrap();
    world.run_in("app", &["rm", "-r", "link/"]).complains(2, &["is a link", "hint: without the slash"]);
    let said = world.run_in("app", &["rm", "link", "dangling"]);
    assert_eq!(said.exit, 0, "{said}");
    assert!(fs::symlink_metadata(world.path("app/link")).is_err() && world.path("else/where").exists());
    // A link on the way leads where it leads.
    symlink("../else", world.path("app/link")).unwrap();
    assert_eq!(world.run_in("app", &["rm", "link/where"]).exit, 0);
    assert!(!world.path("else/where").exists() && world.path("app/link").is_symlink());
    assert_eq!(fs::read_dir(world.path("else")).unwrap().count(), 0);
}

#[test]
fn what_must_not_go_is_refused_and_everything_stays() {
    let world = project().with("app/a", "a").with(".local/state/unstuck/x", "x");
    world.run_in("app", &["snapshot"]);
    let home = world.path("").display().to_string();
    let check = |folder: &str, path: &str, words: &[&str]| {
        let said = world.run_in(folder, &["rm", "-rf", "a", path]);
        said.complains(2, words);
        assert!(world.path("app/a").exists() && world.path(".local/state/unstuck").exists(), "{path}");
    };
    check("app", "/", &["/ is never removed as a whole", "hint: name what is to go in it"]);
    check("app", "/usr", &["/usr is never removed as a whole"]);
    check("app", &home, &["is never removed as a whole"]);
    check("app", "..", &[".. names a folder by a dot"]);
    check("app", ".", &[". names a folder by a dot"]);
    check("app", "src/..", &["names a folder by a dot"]);
    check("app/src", "../../app", &["is the root of the work tree here"]);
    check("app", "../.local", &["this would destroy what unstuck itself has saved"]);
    check("app", "../.local/state/unstuck/vault", &["this would destroy what unstuck itself has saved"]);
    let zh = world.run_in("app", &["--lang", "zh", "rm", "/"]);
    assert!(zh.stderr().contains("不会整体删除 /"), "{zh}");
}

#[test]
fn nothing_is_deleted_where_not_all_of_it_could_be_saved() {
    let world = project().with("app/data/open", "x").with("app/data/closed", "y");
    fs::set_permissions(world.path("app/data/closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let said = world.of_nobody(&["rm", "-rf", "app/data"], "");
    said.complains(
        125,
        &["not all of it could be saved, so nothing was done:", "closed  (could not be read)"],
    );
    assert!(world.path("app/data/open").exists() && world.path("app/data/closed").exists());
    // Nobody can undo what did not happen.
    world.of_nobody(&["undo"], "").complains(1, &["there is nothing to undo here"]);
}

#[test]
fn where_something_may_not_be_deleted_all_of_it_stays() {
    let world = project().with("app/data/locked/x", "x");
    for number in 0..20 {
        fs::write(world.path(&format!("app/data/f{number}")), "f").unwrap();
    }
    let before = tree(&world.path("app/data"));
    let locked = world.path("app/data/locked");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    let said = world.of_nobody(&["rm", "-rf", "app/data"], "");
    said.complains(
        125,
        &["locked/x may not be deleted (Permission denied), so nothing was", "hint: name what may go"],
    );
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();
    let names =
        |tree: &str| tree.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(&tree(&world.path("app/data"))), names(&before));
    world.of_nobody(&["undo"], "").complains(1, &["there is nothing to undo here"]);
    world.of_nobody(&["redo"], "").complains(1, &["there is nothing to redo"]);
}

#[test]
fn what_is_never_saved_is_not_deleted_either() {
    let world = project()
        .with("app/x/.env", "SECRET")
        .with("app/x/y", "y")
        .with("config/unstuck/config.toml", "vault.never = \"**/.env\"\n");
    let said = world.run_in("app", &["rm", "-r", "x"]);
    said.complains(125, &["nothing was done:", "/x/.env  (not at risk, or never taken: vault.never)"]);
    assert!(world.path("app/x/.env").exists() && world.path("app/x/y").exists());
}

#[test]
fn nothing_is_deleted_where_the_safe_has_no_room() {
    let world = project().with("app/big", vec![7; 300_000]);
    let said = world.run_in("app", &["rm", "big", "--set", "vault.min-free=1TB"]);
    said.complains(125, &["bytes are needed, and the disk of ", "hint: free some space"]);
    assert!(world.path("app/big").exists());
}

#[test]
fn nothing_that_is_written_meanwhile_is_lost() {
    for round in 0..4 {
        let world = project().with("app/busy/first", "first");
        let is_over = AtomicBool::new(false);
        let written = thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut written = vec!["first".to_owned()];
                while !is_over.load(Ordering::Relaxed) {
                    let name = format!("n{}", written.len());
                    match fs::write(world.path("app/busy").join(&name), &name) {
                        Ok(()) => written.push(name),
                        Err(_) => break,
                    }
                    thread::sleep(Duration::from_micros(200 * round));
                }
                written
            });
            let said = world.run_in("app", &["rm", "busy"]);
            match said.exit {
                0 => assert!(said.stdout().starts_with("deleted "), "{said}"),
                _ => said.complains(125, &["somebody writes to ", "so nothing was deleted"]),
            }
            is_over.store(true, Ordering::Relaxed);
            writer.join().unwrap()
        });
        world.run_in("app", &["undo"]);
        for name in &written {
            let found = fs::read_to_string(world.path("app/busy").join(name)).ok();
            assert_eq!(found.as_ref(), Some(name), "of {}", written.len());
        }
    }
}

#[test]
fn a_socket_goes_with_the_folder_around_it() {
    let world = project().with("app/run/pid", "1");
    let _socket = UnixListener::bind(world.path("app/run/s")).unwrap();
    let said = world.run_in("app", &["rm", "-r", "run"]);
    assert_eq!((said.exit, world.path("app/run").exists()), (0, false), "{said}");
}

#[test]
fn what_the_timeline_says_of_it_names_the_paths() {
    let world = project().with("app/a", "a");
    world.run_in("app", &["rm", "a"]);
    world.run_in("app", &["undo"]);
    let events = world.run(&["log", "--json"], "").json_lines();
    let of = |kind: &str| {
        events.iter().find(|event| event["event"] == kind).unwrap_or_else(|| panic!("{events:?}"))
    };
    assert_eq!(of("snapshot:taken")["body"]["why"], "rm");
    assert!(of("snapshot:taken")["body"].to_string().contains("unstuck rm "), "{events:?}");
    assert_eq!(of("snapshot:restored")["body"]["why"], "undo");
}

#[test]
fn it_is_a_call_of_its_own_and_its_number_brings_everything_back() {
    let world = project().with("app/a", "a").with("app/b", "b");
    world.run_in("app", &["rm", "a"]);
    world.run_in("app", &["rm", "b"]);
    let events = world.run(&["log", "--json"], "").json_lines();
    let of_first: Vec<&str> = events
        .iter()
        .filter(|event| event["call"] == 1)
        .map(|event| event["event"].as_str().unwrap())
        .collect();
    assert_eq!(of_first, ["tool:start", "snapshot:taken", "tool:end"], "{events:?}");
    let shown = world.run(&["show", "1"], "");
    assert!(shown.stdout().contains("unstuck rm ") && shown.stdout().contains("`unstuck undo 1`"), "{shown}");
    let undone = world.run_in("app", &["undo", "#1"]);
    assert_eq!(undone.exit, 0, "{undone}");
    assert!(world.path("app/a").exists() && !world.path("app/b").exists());
}

#[test]
fn one_that_was_refused_by_the_safe_is_a_failed_call() {
    let world = project().with("app/a", "a");
    let said = world.run_in("app", &["rm", "a", "--set", "vault.min-free=1TB"]);
    said.complains(125, &["bytes are needed"]);
    let events = world.run(&["log", "--json"], "").json_lines();
    let failed = events.iter().find(|event| event["event"] == "tool:error");
    let failed = failed.unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(failed["call"], 1);
    assert!(failed["body"]["call"]["label"].as_str().unwrap().starts_with("unstuck rm "), "{failed}");
}
