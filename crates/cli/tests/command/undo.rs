//! `unstuck undo` and `unstuck redo`: what one call changed is taken back, and nothing that anybody changed since.

use std::fs;

use serde_json::{Value, json};

use crate::agent::{FINE, Work, hook};
use crate::restore::tree;
use crate::snapshot::project;
use crate::world::World;

fn remove_src(world: &World) {
    fs::remove_dir_all(world.path("app/src")).unwrap();
}

/// The newest snapshot.
fn newest(world: &World) -> String {
    world.run(&["snapshots", "--json"], "").json_lines()[0]["id"].as_str().unwrap().to_owned()
}

fn read(world: &World, path: &str) -> String {
    fs::read_to_string(world.path(path)).unwrap()
}

#[test]
fn the_last_call_is_taken_back_and_that_as_well() {
    let world = project();
    let before = tree(&world.path("app"));
    world.protected("a", "app", remove_src);
    let after = tree(&world.path("app"));
    let said = world.run_in("app", &["undo"]);
    assert_eq!((tree(&world.path("app")), said.exit), (before.clone(), 0), "{said}");
    let lines: Vec<&str> = said.stdout().lines().collect();
    assert!(lines[0].starts_with("rm -r app, ") && lines[0].ends_with(" (s1)"), "{said}");
    assert!(lines[1].starts_with("brought back ") && lines[1].ends_with(" from s1:"), "{said}");
    assert!(said.stdout().contains("verified by hash: 2 files"), "{said}");
    assert!(said.stdout().ends_with("; take this back: `unstuck redo`\n"), "{said}");
    let said = world.run_in("app", &["redo"]);
    assert_eq!((tree(&world.path("app")), said.exit), (after, 0), "{said}");
    let saved = newest(&world);
    let end = format!("is saved as {saved}; take this back: `unstuck undo {saved}`\n");
    assert!(said.stdout().ends_with(&end), "{said}");
    world.run_in("app", &["redo"]).complains(1, &["there is nothing to redo\n", "hint: `unstuck snapshots`"]);
    // What was taken back is there to be undone again.
    let said = world.run_in("app", &["--lang", "zh", "undo"]);
    assert_eq!((tree(&world.path("app")), said.exit), (before, 0), "{said}");
    assert!(said.stdout().contains("已按哈希校验：2 个文件"), "{said}");
}

#[test]
fn several_undos_are_redone_the_last_one_first() {
    let world = project();
    let write =
        |text: &'static str| move |world: &World| fs::write(world.path("app/src/main.rs"), text).unwrap();
    world.protected("a", "app/src", write("a"));
    world.protected("b", "app/src", write("b"));
    for expected in ["a", "fn main() {}\n"] {
        assert_eq!(world.run_in("app", &["undo"]).exit, 0);
        assert_eq!(read(&world, "app/src/main.rs"), expected);
    }
    world.run_in("app", &["undo"]).complains(1, &["there is nothing to undo here\n"]);
    for expected in ["a", "b"] {
        assert_eq!(world.run_in("app", &["redo"]).exit, 0);
        assert_eq!(read(&world, "app/src/main.rs"), expected);
    }
    world.run_in("app", &["redo"]).complains(1, &["there is nothing to redo\n"]);
}

#[test]
fn going_back_and_forth_never_redoes_a_redo() {
    let world = project();
    let write =
        |text: &'static str| move |world: &World| fs::write(world.path("app/src/main.rs"), text).unwrap();
    world.protected("a", "app/src", write("a"));
    world.protected("b", "app/src", write("b"));
    let mut stack = vec!["fn main() {}\n", "a", "b"];
    let mut redone = Vec::new();
    for (number, deed) in
        "undo redo undo redo redo undo undo redo redo redo undo undo redo redo redo".split(' ').enumerate()
    {
        let said = world.run_in("app", &[deed]);
        let moved = match deed {
            "undo" if stack.len() > 1 => stack.pop().map(|text| redone.push(text)),
            "undo" => None,
            _ => redone.pop().map(|text| stack.push(text)),
        };
        assert_eq!(said.exit, i32::from(moved.is_none()), "{number} {deed} {said}");
        assert_eq!(read(&world, "app/src/main.rs"), *stack.last().unwrap(), "{number} {deed} {said}");
    }
    // A restore is taken back once, too.
    assert_eq!(world.run_in("app", &["restore", "s1"]).exit, 0);
    assert_eq!(read(&world, "app/src/main.rs"), "fn main() {}\n");
    assert_eq!(world.run_in("app", &["redo"]).exit, 0);
    for _ in 0..3 {
        world.run_in("app", &["redo"]).complains(1, &["there is nothing to redo\n"]);
        assert_eq!(read(&world, "app/src/main.rs"), "b");
    }
}

#[test]
fn how_far_back_one_can_go_is_told() {
    let world = project();
    for (number, text) in ["a", "b", "c"].into_iter().enumerate() {
        let write = |world: &World| fs::write(world.path("app/src/main.rs"), text).unwrap();
        world.protected(&number.to_string(), "app/src", write);
    }
    for _ in 0..3 {
        assert_eq!(world.run_in("app", &["undo"]).exit, 0);
    }
    let said = world.run_in("app", &["undo"]);
    said.complains(1, &["calls here whose snapshots are kept are undone", "the newest 3 are kept"]);
    world.run_in("app", &["--lang", "zh", "undo"]).complains(1, &["只保留最新的 3 个快照"]);
}

#[test]
fn what_a_person_saved_has_no_call_to_undo() {
    let world = project();
    world.run_in("app", &["snapshot"]);
    let said = world.run_in("app", &["undo", "s1"]);
    said.complains(1, &["s1 was taken by hand: there is no call", "hint: `unstuck restore s1` brings"]);
    world.protected("a", "app", remove_src);
    assert_eq!(world.run_in("app", &["undo", "latest", "--json"]).json()["id"], "s2");
    // What the undo saved is no answer to `latest`.
    world.run(&["snapshots", "drop", "s1", "s2"], "");
    world.run_in("app", &["restore", "latest"]).complains(1, &["there is no snapshot\n"]);
}

#[test]
fn a_linked_work_tree_finds_what_was_done_to_its_repository() {
    let world = project().with("app/.git/HEAD", "ref: refs/heads/main\n").with("wt/a", "a");
    let own = world.path("app/.git/worktrees/wt");
    let git = world.path("app/.git");
    for folder in [own.clone(), git.join("objects"), git.join("refs")] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(own.join("HEAD"), "ref: refs/heads/b\n").unwrap();
    fs::write(own.join("commondir"), "../..\n").unwrap();
    fs::write(world.path("wt/.git"), format!("gitdir: {}\n", own.display())).unwrap();
    world.protected("a", "app/.git", |world| fs::write(world.path("app/.git/gone"), "").unwrap());
    // What another work tree's call did to its own files is not of here.
    world.protected("b", "app", remove_src);
    assert_eq!(world.run_in("wt", &["undo", "--json"]).json()["id"], "s1");
    assert!(!world.path("app/.git/gone").exists() && !world.path("app/src").exists());
}

#[test]
fn what_somebody_changed_since_is_kept_and_named_unless_it_is_forced() {
    let world = project();
    world.protected("a", "app", |world| {
        fs::write(world.path("app/src/main.rs"), "broken").unwrap();
        fs::write(world.path("app/Cargo.toml"), "broken").unwrap();
    });
    fs::write(world.path("app/src/main.rs"), "mine").unwrap();
    let dry = world.run_in("app", &["undo", "--dry-run", "--json"]).json();
    assert_eq!((&dry["type"], &dry["dry_run"], &dry["saved"]), (&json!("undo"), &json!(true), &Value::Null));
    let said = world.run_in("app", &["undo"]);
    assert_eq!(said.exit, 0, "{said}");
    assert!(said.stdout().contains("/src/main.rs  (somebody changed it since)\n"), "{said}");
    assert!(said.stdout().contains("`unstuck undo s1 --force` brings these back as well\n"), "{said}");
    assert_eq!(
        (read(&world, "app/src/main.rs"), read(&world, "app/Cargo.toml")),
        ("mine".into(), "[package]\n".into())
    );
    let back = format!("`unstuck undo {}`", newest(&world));
    world.run_in("app", &["undo", "s1"]).complains(1, &["s1 was undone already", &back]);
    let forced = world.run_in("app", &["undo", "s1", "--force", "--json"]).json();
    assert_eq!(forced["kept"], json!([]));
    assert_eq!(read(&world, "app/src/main.rs"), "fn main() {}\n");
}

#[test]
fn where_everything_was_changed_since_nothing_is_taken_back() {
    let world = project();
    world.protected("a", "app/src", |world| fs::write(world.path("app/src/main.rs"), "broken").unwrap());
    fs::write(world.path("app/src/main.rs"), "mine").unwrap();
    let said = world.run_in("app", &["undo"]);
    assert_eq!(said.exit, 1, "{said}");
    assert!(said.stdout().contains("(somebody changed it since)"), "{said}");
    assert_eq!(read(&world, "app/src/main.rs"), "mine");
}

#[test]
fn a_call_is_named_by_its_number_by_its_key_or_by_its_snapshot() {
    let world = project();
    hook(&world, &Work { key: "toolu_01AbC", ..FINE }.lines());
    let call = world.run(&["show", "toolu_01AbC", "--json"], "").json()["call"].as_i64().unwrap();
    let names = [call.to_string(), format!("#{call}"), "toolu_01AbC".into(), "toolu_01".into(), "s1".into()];
    let id = world.before_call("toolu_01AbC", Some(call), "app");
    remove_src(&world);
    world.after_call(id);
    for name in names {
        let dry = world.run(&["undo", &name, "--dry-run", "--json"], "").json();
        assert_eq!((&dry["id"], dry["done"].as_array().unwrap().is_empty()), (&json!("s1"), false), "{name}");
    }
    world
        .run(&["undo", "toolu_09"], "")
        .complains(1, &["no snapshot belongs to a call that is called toolu_09\n"]);
    world.run(&["undo", "s7"], "").complains(1, &["there is no snapshot s7\n"]);
    world.run(&["undo", "977"], "").complains(1, &["no snapshot belongs to"]);
    let other = format!("{}  toolu_02", world.before_call("toolu_02", None, "app"));
    world.run(&["undo", "toolu_0"], "").complains(2, &["may mean one of several", &other]);
}

#[test]
fn what_lies_elsewhere_is_named_and_not_touched() {
    let world = project().with("other/a", "a");
    world.protected("a", "app/src", remove_src);
    let said = world.run_in("other", &["undo"]);
    said.complains(
        1,
        &[
            "there is nothing to undo here\n",
            "hint: elsewhere there is s1 (`rm -r app/src`; ",
            "`unstuck undo s1`",
        ],
    );
    let zh = world.run_in("other", &["--lang", "zh", "undo"]);
    zh.complains(1, &["这里没有可撤销的内容\n提示：别处有 s1"]);
    assert!(!world.path("app/src").exists());
    assert_eq!(world.run_in("other", &["undo", "s1"]).exit, 0);
    assert!(world.path("app/src").exists());
    world.run_in("other", &["redo"]).complains(1, &["there is nothing to redo"]);
}

#[test]
fn a_call_that_changed_nothing_is_passed_over() {
    let world = project();
    world.protected("a", "app/src", remove_src);
    world.protected("b", "app", |_| ());
    let said = world.run_in("app", &["undo", "b"]);
    assert!(said.exit == 1 && said.stdout().contains("\nnothing to bring back from "), "{said}");
    assert_eq!(world.run_in("app", &["undo", "--json"]).json()["id"], "s1");
}

#[test]
fn of_a_call_that_never_ended_only_a_restore_is_certain() {
    let world = project();
    world.before_call("a", None, "app");
    remove_src(&world);
    let said = world.run_in("app", &["undo"]);
    said.complains(
        1,
        &[
            "how the call behind s1 left things was not recorded",
            "`unstuck restore s1` brings all of it back",
        ],
    );
    assert_eq!(world.run_in("app", &["undo", "--force"]).exit, 0);
    assert!(world.path("app/src/main.rs").exists());
}

#[test]
fn an_agent_may_undo_by_itself() {
    let world = project();
    world.protected("a", "app", remove_src);
    let mut command = world.command(&["undo"]);
    let said = command.env("CLAUDECODE", "1").current_dir(world.path("app")).output().unwrap();
    assert!(said.status.success() && world.path("app/src/main.rs").exists(), "{said:?}");
}

#[test]
fn the_timeline_and_the_page_of_the_call_tell_of_it() {
    let world = project();
    hook(&world, &Work { key: "toolu_01", ..FINE }.lines());
    let call = world.run(&["show", "toolu_01", "--json"], "").json()["call"].as_i64().unwrap();
    let id = world.before_call("toolu_01", Some(call), "app");
    remove_src(&world);
    world.after_call(id);
    world.run_in("app", &["undo"]);
    let log = world.run(&["log", "--json"], "").json_lines();
    let last = log.last().unwrap();
    assert_eq!((&last["event"], &last["call"]), (&json!("snapshot:restored"), &json!(call)));
    let told = world.run_in("app", &["undo", "s1", "--force", "--json"]);
    assert_eq!(told.exit, 1, "{told}");
    let told: Value = serde_json::from_str(told.stdout()).unwrap();
    assert_eq!((&told["call"], &told["label"]), (&json!(call), &json!("rm -r app")));
    // Where nothing was brought back, there is nothing to tell.
    assert_eq!(world.run(&["log", "--json"], "").json_lines().len(), log.len());
    let body = &last["body"];
    let saved = json!(newest(&world));
    assert_eq!((&body["snapshot"], &body["saved"], &body["why"]), (&json!("s1"), &saved, &json!("undo")));
    let page = world.run(&["show", &call.to_string()], "");
    assert!(
        page.stdout().contains("↶ restored  s1: ") && page.stdout().contains("(undo): rm -r app\n"),
        "{page}"
    );
    let lang_zh = world.run(&["log", "--lang", "zh"], "");
    assert!(lang_zh.stdout().contains("↶ 已恢复"), "{lang_zh}");
}

/// A call that an agent asks for in the project, as the generic hook is told of it.
fn asked(world: &World, event: &str, key: &str, command: &str) -> String {
    let cwd = world.path("app").canonicalize().unwrap();
    let mut payload = json!({
        "event": event, "session": "real", "call_id": key, "tool": "Bash", "cwd": cwd,
        "input": { "command": command },
    });
    if event == "after" {
        payload["exit_code"] = json!(0);
    }
    payload.to_string()
}

#[test]
fn what_the_hook_saved_is_undone_by_the_number_of_the_call() {
    let world = project();
    let before = tree(&world.path("app/src"));
    let answer = hook(&world, &asked(&world, "before", "toolu_7", "rm -rf src")).json();
    assert_eq!(answer["decision"], "allow", "{answer}");
    remove_src(&world);
    hook(&world, &asked(&world, "after", "toolu_7", "rm -rf src"));
    let page = world.run(&["show", "toolu_7", "--json"], "").json();
    let (call, id) = (page["call"].as_i64().unwrap(), page["snapshot"].as_str().unwrap());
    let text = world.run(&["show", "toolu_7"], "");
    assert!(
        text.stdout().contains(&format!("saved as   {id}; take it back: `unstuck undo {call}`\n")),
        "{text}"
    );
    let said = world.run_in("app", &["undo", &call.to_string()]);
    assert_eq!((said.exit, tree(&world.path("app/src"))), (0, before), "{said}");
    let text = world.run(&["show", "toolu_7"], "");
    assert!(
        text.stdout().contains(&format!("saved as   {id}; undone, before that: {}\n", newest(&world))),
        "{text}"
    );
    let zh = world.run(&["--lang", "zh", "show", "toolu_7"], "");
    assert!(zh.stdout().contains("；已撤销，之前的状态："), "{zh}");
    world.run(&["snapshots", "drop", id], "");
    let text = world.run(&["show", "toolu_7"], "");
    assert!(text.stdout().contains(&format!("saved as   {id}, which is gone by now\n")), "{text}");
}
