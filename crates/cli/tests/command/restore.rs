//! `unstuck restore` and `unstuck diff`: what differs from a snapshot, and that it is exactly gone afterwards.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::snapshot::project;
use crate::world::{Said, World};

/// The tree as text: every path with what it is, its mode, its time and its content.
pub(crate) fn tree(root: &Path) -> String {
    let mut command = Command::new("sh");
    let script = "find . -printf '%p %y %m %T@ %l\\n' | LC_ALL=C sort; \
                  find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r cksum";
    let output = command.args(["-c", script]).current_dir(root).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A project of which one snapshot was taken, and the tree as it was.
fn saved() -> (World, String) {
    let world = project();
    assert_eq!(world.run_in("app", &["snapshot", "--all"]).stdout(), "s1\n");
    let before = tree(&world.path("app"));
    (world, before)
}

/// Everything that an agent can do to a tree.
fn ravage(world: &World) {
    fs::remove_dir_all(world.path("app/src/deep")).unwrap();
    fs::write(world.path("app/src/main.rs"), "fn main() { panic!() }\n").unwrap();
    fs::write(world.path("app/new.txt"), "new\n").unwrap();
    fs::remove_file(world.path("app/Cargo.toml")).unwrap();
    symlink("src", world.path("app/Cargo.toml")).unwrap();
    let mode = fs::Permissions::from_mode(0o600);
    fs::set_permissions(world.path("app/target/debug/app"), mode).unwrap();
}

fn paths(list: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let path = |each: &Value| text(&each["path"]).rsplit_once("/app/").unwrap().1.to_owned();
    list.as_array().unwrap().iter().map(|each| (path(each), text(&each["change"]))).collect()
}

#[test]
fn a_tree_is_exactly_what_it_was_and_the_present_is_saved() {
    let (world, before) = saved();
    ravage(&world);
    let ravaged = tree(&world.path("app"));
    let said = world.run_in("app", &["restore", "s1"]);
    assert_eq!(said.exit, 0, "{said}");
    assert_eq!(tree(&world.path("app")), before, "{said}");
    assert!(said.stdout().starts_with("brought back "), "{said}");
    assert!(said.stdout().contains("verified by hash: "), "{said}");
    let saved = world.run(&["snapshots", "--json"], "").json_lines()[0]["id"].clone();
    let saved = saved.as_str().unwrap();
    let end = format!("what was there before is saved as {saved}; take this back: `unstuck redo`\n");
    assert!(said.stdout().ends_with(&end), "{said}");
    let said = world.run_in("app", &["redo"]);
    assert_eq!((tree(&world.path("app")), said.exit), (ravaged, 0), "{said}");
}

#[test]
fn a_dry_run_says_the_same_and_changes_nothing() {
    let (world, _) = saved();
    ravage(&world);
    let ravaged = tree(&world.path("app"));
    let dry = world.run_in("app", &["restore", "1", "--dry-run", "--json"]).json();
    assert_eq!(
        (&dry["dry_run"], &dry["saved"], &dry["type"]),
        (&json!(true), &Value::Null, &json!("restore"))
    );
    let said = world.run_in("app", &["restore", "s1", "--dry-run"]);
    assert!(said.stdout().starts_with("would bring back ") && said.exit == 0, "{said}");
    let zh = world.run_in("app", &["--lang", "zh", "restore", "s1", "--dry-run"]);
    assert!(zh.stdout().starts_with("将从 s1 恢复 "), "{zh}");
    assert_eq!(tree(&world.path("app")), ravaged);
    assert_eq!(world.run(&["snapshots", "--json"], "").json_lines().len(), 1);
    let done = world.run_in("app", &["restore", "latest", "--json"]).json();
    assert_eq!(dry["done"], done["done"]);
    let newest = world.run(&["snapshots", "--json"], "").json_lines()[0]["id"].clone();
    assert_eq!((&done["saved"], &done["kept"]), (&newest, &json!([])));
    let changes = paths(&done["done"]);
    for (path, change) in [
        ("new.txt", "added"),
        ("src/deep/note.txt", "removed"),
        ("src/main.rs", "modified"),
        ("Cargo.toml", "retyped"),
        ("target/debug/app", "touched"),
    ] {
        assert!(changes.contains(&(path.to_owned(), change.to_owned())), "{path}: {changes:?}");
    }
}

#[test]
fn only_the_paths_that_are_named_are_brought_back() {
    let (world, _) = saved();
    ravage(&world);
    let said = world.run_in("app/src", &["restore", "latest", "main.rs", "deep/note.txt"]);
    assert_eq!(said.exit, 0, "{said}");
    assert_eq!(fs::read_to_string(world.path("app/src/main.rs")).unwrap(), "fn main() {}\n");
    assert_eq!(fs::read_to_string(world.path("app/src/deep/note.txt")).unwrap(), "one\ntwo\nthree\n");
    assert!(world.path("app/new.txt").exists() && world.path("app/Cargo.toml").is_symlink());
}

#[test]
fn what_does_not_differ_is_not_touched() {
    let (world, before) = saved();
    let said = world.run_in("app", &["restore", "s1"]);
    assert_eq!((said.stdout(), said.exit), ("nothing to bring back from s1\n", 0), "{said}");
    assert_eq!(tree(&world.path("app")), before);
    assert_eq!(world.run(&["snapshots", "--json"], "").json_lines().len(), 1);
}

#[test]
fn what_is_not_there_is_told_with_what_to_do() {
    let (world, before) = saved();
    let check = |args: &[&str], exit: i32, words: &[&str]| {
        let said = world.run_in("app", args);
        said.complains(exit, words);
        assert!(said.stdout().is_empty(), "{said}");
    };
    for command in ["restore", "diff"] {
        check(&[command, "s9"], 1, &["there is no snapshot s9\n", "hint: `unstuck snapshots` shows all"]);
        check(&[command, "x9"], 2, &["a snapshot is named s41, 41 or latest"]);
        check(&[command, "s99999999999999999999"], 2, &["a snapshot is named"]);
        check(&[command], 2, &["<ID>"]);
        check(&[command, "s1", "/etc"], 1, &["s1 does not cover /etc\n", "shows what each covers"]);
    }
    check(&["--lang", "zh", "restore", "s9"], 1, &["没有快照 s9\n提示：`unstuck snapshots` 列出全部\n"]);
    let none = World::empty().run(&["restore", "latest"], "");
    none.complains(1, &["no snapshot has been taken yet"]);
    assert_eq!(tree(&world.path("app")), before);
}

#[test]
fn two_at_once_leave_the_tree_as_one_would() {
    let (world, before) = saved();
    ravage(&world);
    let start = || world.command(&["restore", "s1"]).current_dir(world.path("app")).spawn().unwrap();
    let said = [start(), start()].map(Said::by);
    assert_eq!(tree(&world.path("app")), before, "{said:?}");
    assert!(said.iter().any(|said| said.exit == 0), "{said:?}");
    assert!(said.iter().all(|said| matches!(said.exit, 0 | 1 | 125)), "{said:?}");
}

#[test]
fn names_that_are_no_text_come_back_and_move_no_cursor() {
    let world = project();
    let odd = world.path("app").join(OsStr::from_bytes(b"odd\x1b[2J\xff"));
    fs::write(&odd, "odd").unwrap();
    world.run_in("app", &["snapshot"]);
    fs::remove_file(&odd).unwrap();
    let diff = world.run_in("app", &["diff", "s1", "--name-only"]);
    assert!(diff.stdout().contains("app/odd\\u{1b}[2J\u{fffd}\n"), "{diff}");
    let said = world.run_in("app", &["restore", "s1"]);
    assert!(said.stdout().contains("app/odd\\u{1b}[2J\u{fffd}  (made again)\n"), "{said}");
    assert_eq!(fs::read(&odd).unwrap(), b"odd");
}

#[test]
fn a_diff_shows_text_and_names_the_rest() {
    let (world, _) = saved();
    ravage(&world);
    fs::write(world.path("app/blob"), b"\0\x01").unwrap();
    fs::write(world.path("app/huge"), vec![b'x'; (1 << 20) + 1]).unwrap();
    fs::write(world.path("app/trap"), "\x1b[2J\n").unwrap();
    let said = world.run_in("app", &["diff", "s1"]);
    assert_eq!((said.exit, said.stderr()), (0, ""), "{said}");
    let text = said.stdout();
    assert!(text.contains("@@ -1 +1 @@\n-fn main() {}\n+fn main() { panic!() }\n"), "{said}");
    assert!(text.contains("-one\n-two\n-three\n") && text.contains("+new\n"), "{said}");
    assert!(
        text.contains("app/blob  (binary)\n") && text.contains("app/huge  (too large to show)\n"),
        "{said}"
    );
    assert!(text.contains("target/debug/app  (mode, owner, times or attributes)\n"), "{said}");
    assert!(text.contains("+\\u{1b}[2J\n") && !text.contains('\x1b'), "{said}");
    let zh = world.run_in("app", &["--lang", "zh", "diff", "s1", "blob"]);
    assert!(zh.stdout().ends_with("app/blob  （二进制文件）\n"), "{zh}");
}

#[test]
fn a_diff_can_be_short_or_for_programs() {
    let (world, _) = saved();
    ravage(&world);
    let stat = world.run_in("app", &["diff", "latest", "src", "--stat"]);
    assert!(stat.stdout().contains("/src/main.rs  +1 -1\n"), "{stat}");
    assert!(stat.stdout().contains("/src/deep/note.txt  +0 -3\n"), "{stat}");
    assert!(!stat.stdout().contains("new.txt"), "{stat}");
    let names = world.run_in("app", &["diff", "s1", "--name-only"]);
    for (sign, path) in
        [('A', "new.txt"), ('D', "src/deep/note.txt"), ('M', "src/main.rs"), ('T', "Cargo.toml")]
    {
        let is_it = |line: &str| line.starts_with(sign) && line.ends_with(&format!("/app/{path}"));
        assert!(names.stdout().lines().any(is_it), "{sign} {path}\n{names}");
    }
    let lines = world.run_in("app", &["diff", "s1", "src/main.rs", "--json"]).json();
    let diff = lines["diff"].as_str().unwrap();
    assert!(diff.contains("\n-fn main() {}\n+fn main() { panic!() }\n"), "{diff}");
    let rest = ["type", "change", "content", "lines_added", "lines_removed"].map(|key| lines[key].clone());
    assert_eq!(rest, [json!("change"), json!("modified"), json!("text"), json!(1), json!(1)]);
    let bare = world.run_in("app", &["diff", "s1", "src/main.rs", "--json", "--name-only"]).json();
    assert_eq!((&bare["content"], &bare["diff"]), (&Value::Null, &Value::Null));
    assert_eq!(world.run_in("app", &["diff", "s1", "--stat", "--name-only"]).exit, 2);
}

#[test]
fn a_name_stays_on_its_line_and_a_link_in_place_of_a_file_is_said() {
    let world = project();
    let odd = world.path("app/odd\nname");
    fs::write(&odd, "one\n").unwrap();
    world.run_in("app", &["snapshot"]);
    fs::write(&odd, "two\n").unwrap();
    fs::remove_file(world.path("app/src/main.rs")).unwrap();
    symlink("elsewhere", world.path("app/src/main.rs")).unwrap();
    let names = world.run_in("app", &["diff", "s1", "--name-only"]);
    assert!(names.stdout().contains("/app/odd\\nname\n"), "{names}");
    let said = world.run_in("app", &["diff", "s1"]);
    assert!(said.stdout().contains("/app/odd\\nname\n+++ "), "{said}");
    assert!(said.stdout().contains("/src/main.rs  (a link now, which it was not)\n--- "), "{said}");
}

#[test]
fn what_is_neither_in_a_snapshot_nor_there_is_called_wrongly() {
    let (world, _) = saved();
    for args in
        [&["restore", "s1", "nope"][..], &["diff", "latest", "nope"], &["snapshots", "files", "s1", "nope"]]
    {
        let said = world.run_in("app", args);
        said.complains(2, &["app/nope is neither in s1 nor there now\n"]);
    }
    let zh = world.run_in("app", &["--lang", "zh", "diff", "s1", "nope"]);
    zh.complains(2, &["现在也不存在"]);
    // What came since is there now, and what went was there then.
    ravage(&world);
    assert_eq!(world.run_in("app", &["diff", "s1", "new.txt", "src/deep/note.txt"]).exit, 0);
}

#[test]
fn a_snapshot_is_shown_listed_and_read_without_being_restored() {
    let (world, _) = saved();
    fs::write(world.path("app/bytes"), b"\x00\xff\x1b").unwrap();
    world.run_in("app", &["snapshot", "--note", "before"]);
    ravage(&world);
    fs::remove_file(world.path("app/bytes")).unwrap();
    let id = world.run(&["snapshots", "--json"], "").json_lines()[0]["id"].as_str().unwrap().to_owned();
    let page = world.run(&["show", &id], "");
    assert!(page.stdout().starts_with(&format!("{id}\nwhen ")) && page.exit == 0, "{page}");
    for words in ["why     before\n", "covers  ", "/app\n", "can be made again"] {
        assert!(page.stdout().contains(words), "{words}\n{page}");
    }
    assert_eq!(world.run(&["show", &id, "--json"], "").json()["note"], "before");
    let zh = world.run(&["--lang", "zh", "show", &id], "");
    assert!(zh.stdout().contains("范围"), "{zh}");
    let listed = world.run_in("app", &["snapshots", "files", &id, "src"]);
    assert!(listed.stdout().contains("13 B  ") && listed.stdout().contains("/app/src/main.rs\n"), "{listed}");
    assert!(listed.stdout().contains("/app/src/deep/\n") && !listed.stdout().contains("Cargo"), "{listed}");
    let bytes = world.run_in("app", &["snapshots", "files", "latest", "bytes", "--json"]).json();
    assert_eq!((&bytes["kind"], &bytes["bytes"]), (&json!("file"), &json!(3)));
    let content = world.run_in("app", &["snapshots", "cat", &id, "bytes"]);
    assert_eq!((&content.stdout[..], content.exit), (&b"\x00\xff\x1b"[..], 0));
    let none = world.run_in("app", &["snapshots", "cat", &id, "src"]);
    none.complains(1, &["holds no file at ", "app/src\n", "`unstuck snapshots files "]);
}

#[test]
fn without_a_change_a_diff_is_empty() {
    let (world, _) = saved();
    let said = world.run_in("app", &["diff", "s1"]);
    assert_eq!((said.stdout(), said.stderr(), said.exit), ("", "", 0));
}

#[test]
fn latest_is_not_what_a_restore_saved() {
    let (world, before) = saved();
    ravage(&world);
    for _ in 0..2 {
        assert_eq!(world.run_in("app", &["restore", "latest"]).exit, 0);
        assert_eq!(tree(&world.path("app")), before);
    }
}

/// Runs it as somebody who may not do everything. Whoever runs the tests may: it works only where they can give that away.
fn as_nobody(world: &World, folder: &str, args: &[&str]) -> Option<Said> {
    let ours = world.command(args);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(ours.get_program()).args(args).current_dir(world.path(folder)).env_clear();
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let said = command.output().ok()?;
    let exit = said.status.code()?;
    Some(Said { stdout: said.stdout, stderr: said.stderr, exit })
}

#[allow(clippy::print_stderr, reason = "a test that is left out says so")]
fn left_out(why: &str) {
    eprintln!("LEFT OUT: {why}");
}

#[test]
fn what_may_not_be_read_or_written_is_named_and_the_rest_comes_back() {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let world = project();
    let home = world.path("");
    if !is_root || Command::new("setpriv").arg("--version").output().is_err() {
        return left_out("only root can become nobody, and with setpriv");
    }
    fs::set_permissions(world.path("app/Cargo.toml"), fs::Permissions::from_mode(0o000)).unwrap();
    let given = Command::new("chown").args(["-R", "65534:65534"]).arg(&home).status().unwrap();
    assert!(given.success());
    let Some(said) = as_nobody(&world, "app", &["snapshot"]) else { panic!("setpriv could not be started") };
    if said.stderr().contains("Permission denied") && said.exit == 126 {
        return left_out("nobody may not reach the program that is tested");
    }
    assert_eq!((said.exit, said.stdout()), (1, "s1\n"), "{said}");
    assert!(said.stderr().contains("/app/Cargo.toml  (could not be read)\n"), "{said}");
    let listed = as_nobody(&world, "app", &["snapshots"]).unwrap();
    assert!(listed.stdout().contains("  not all of it\n"), "{listed}");
    fs::write(world.path("app/src/main.rs"), "broken").unwrap();
    fs::write(world.path("app/src/deep/note.txt"), "broken").unwrap();
    let locked = world.path("app/src/deep");
    assert!(Command::new("chown").args(["-R", "0:0"]).arg(&locked).status().unwrap().success());
    let said = as_nobody(&world, "app", &["restore", "s1"]).unwrap();
    assert_eq!(said.exit, 1, "{said}");
    assert!(said.stdout().contains("/app/src/deep/note.txt  (it may not be written)\n"), "{said}");
    assert_eq!(fs::read_to_string(world.path("app/src/main.rs")).unwrap(), "fn main() {}\n");
    assert_eq!(fs::read_to_string(world.path("app/src/deep/note.txt")).unwrap(), "broken");
}
