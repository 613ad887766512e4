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
    assert!(said.stdout().starts_with("brought back ") && said.stdout().contains(" from s1:\n"), "{said}");
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
    // What was saved by each of these must not have expired by then.
    for expected in ["a", "b"] {
        assert_eq!(world.run_in("app", &["redo", "--set", "vault.per-target=9"]).exit, 0);
        assert_eq!(read(&world, "app/src/main.rs"), expected);
    }
    world.run_in("app", &["redo"]).complains(1, &["there is nothing to redo\n"]);
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
    assert!(said.stdout().contains("`--force` brings these back as well\n"), "{said}");
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
            "hint: elsewhere there is s1 (rm -r app/src; ",
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
    assert!(said.exit == 1 && said.stdout().starts_with("nothing to bring back from "), "{said}");
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
