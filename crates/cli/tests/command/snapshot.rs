//! `unstuck snapshot` and `unstuck snapshots`: what is saved, what is not, and what is said of it.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::{Said, World};

/// A project with a repository, two files and a folder that a program can make again.
pub(crate) fn project() -> World {
    World::empty()
        .with("app/.git/HEAD", "ref: refs/heads/main\n")
        .with("app/Cargo.toml", "[package]\n")
        .with("app/src/main.rs", "fn main() {}\n")
        .with("app/src/deep/note.txt", "one\ntwo\nthree\n")
        .with("app/target/debug/app", "a program")
}

/// The one snapshot that was taken.
#[track_caller]
fn taken(world: &World, folder: &str, args: &[&str]) -> Value {
    world.run_in(folder, &[&["snapshot", "--json"], args].concat()).json()
}

fn real(world: &World, path: &str) -> String {
    world.path(path).canonicalize().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn the_id_alone_is_the_answer_and_what_is_not_in_it_is_told_beside() {
    let world = project();
    let said = world.run_in("app/src/deep", &["snapshot"]);
    assert_eq!((said.stdout(), said.exit), ("s1\n", 0), "{said}");
    let left_out =
        format!("not in it:\n  {}/target  (can be made again; --all takes it)\n", real(&world, "app"));
    assert!(said.stderr().ends_with(&left_out), "{said}");
    assert!(said.stderr().starts_with("saved ") && said.stderr().contains("`unstuck restore s1`"), "{said}");
    let said = world.run_in("app", &["--lang", "zh", "snapshot"]);
    assert_eq!(said.stdout(), "s2\n");
    assert!(
        said.stderr().contains("（可重新生成；--all 可一并保存）") || said.stderr().contains("可重新生成"),
        "{said}"
    );
}

#[test]
fn without_a_path_the_work_tree_is_saved_or_else_the_folder() {
    let world = project().with("loose/a", "a");
    assert_eq!(taken(&world, "app/src/deep", &[])["covers"], json!([real(&world, "app")]));
    assert_eq!(taken(&world, "loose", &[])["covers"], json!([real(&world, "loose")]));
    fs::create_dir(world.path(".git")).unwrap();
    assert_eq!(taken(&world, "loose", &[])["covers"], json!([real(&world, "loose")]));
}

#[test]
fn one_line_of_json_says_everything_about_it() {
    let world = project();
    let snapshot = taken(&world, "app", &["src", "--note", "before the upgrade", "--pin"]);
    for (key, value) in [
        ("type", json!("snapshot")),
        ("id", json!("s1")),
        ("why", json!("person")),
        ("note", json!("before the upgrade")),
        ("call", Value::Null),
        ("of", Value::Null),
        ("covers", json!([real(&world, "app/src")])),
        ("entries", json!(4)),
        ("bytes", json!(27)),
        ("partial", json!(false)),
        ("gaps", json!([])),
        ("gap_count", json!(0)),
        ("pinned", json!(true)),
        ("undone_by", Value::Null),
    ] {
        assert_eq!(snapshot[key], value, "{key}");
    }
    assert_eq!(world.run(&["snapshots", "--json"], "").json(), snapshot);
}

#[test]
fn what_can_be_made_again_is_taken_where_it_is_asked_for() {
    let world = project();
    let gaps = |args: &[&str]| taken(&world, "app", args)["gaps"].clone();
    assert_eq!(
        gaps(&[]),
        json!([{ "path": format!("{}/target", real(&world, "app")), "reason": "rebuildable" }])
    );
    assert_eq!(gaps(&["--all"]), json!([]));
    assert_eq!(gaps(&["target"]), json!([]));
}

#[test]
fn what_the_settings_name_is_never_taken_and_odd_names_move_no_cursor() {
    let world = project().with("config/unstuck/config.toml", "vault.never = \"**/*.env\"\n");
    let odd = world.path("app").join(OsStr::from_bytes(b"\x1b[2Jred\xff.env"));
    fs::write(&odd, "secret").unwrap();
    let said = world.run_in("app", &["snapshot", "--all"]);
    assert_eq!(said.exit, 0, "{said}");
    assert!(
        said.stderr().contains("/\\u{1b}[2Jred\u{fffd}.env  (not at risk, or never taken: vault.never)\n"),
        "{said}"
    );
    assert_eq!(world.files_with("secret"), [""; 0]);
}

#[test]
fn what_is_ours_is_never_taken_however_the_way_to_it_is_written() {
    let world = World::empty().with("work/a", "a").with("work/real/b", "b");
    symlink("real", world.path("work/link")).unwrap();
    let set = format!("store.state-dir={}", world.path("work/link/state").display());
    // The store lies there, too.
    world.run(&["--set", &set, "hook", "generic"], r#"{"event":"user","session":"s"}"#);
    assert!(world.path("work/real/state/timeline.db").exists());
    let said = world.run_in("work", &["--set", &set, "snapshot", "--json"]);
    let gaps = said.json()["gaps"].to_string();
    assert!(gaps.contains("work/real/state\""), "{said}");
    assert_eq!(said.json()["partial"], false, "{said}");
}

#[test]
fn what_could_not_be_saved_is_told_by_the_exit_code() {
    let world = World::empty().with("work/a", "a").with("work/locked/b", "b");
    fs::set_permissions(world.path("work/locked"), fs::Permissions::from_mode(0o000)).unwrap();
    let said = world.of_nobody(&["snapshot", "work"], "");
    fs::set_permissions(world.path("work/locked"), fs::Permissions::from_mode(0o755)).unwrap();
    if said.exit == 126 {
        writeln!(std::io::stderr(), "SKIPPED: nobody may not reach the program that is tested").unwrap();
        return;
    }
    assert_eq!((said.stdout(), said.exit), ("s1\n", 1), "{said}");
    assert!(said.stderr().contains("work/locked  (could not be read)"), "{said}");
}

#[test]
fn a_link_is_saved_as_a_link_unless_what_it_leads_to_is_meant() {
    let world = project();
    symlink("src", world.path("app/link")).unwrap();
    let said = world.run_in("app", &["snapshot", "link"]);
    assert!(
        said.stderr().contains("app/link is a link: the link was saved, not what it leads to\n"),
        "{said}"
    );
    assert_eq!(taken(&world, "app", &["link"])["covers"], json!([format!("{}/link", real(&world, "app"))]));
    assert_eq!(taken(&world, "app", &["link/"])["covers"], json!([real(&world, "app/src")]));
    assert_eq!(taken(&world, "app", &["link/main.rs"])["covers"], json!([real(&world, "app/src/main.rs")]));
}

#[test]
fn an_empty_folder_and_a_single_file_can_be_saved() {
    let world = project();
    fs::create_dir(world.path("app/empty")).unwrap();
    assert_eq!(taken(&world, "app", &["empty"])["entries"], 1);
    assert_eq!(
        taken(&world, "app", &["./src/../Cargo.toml"])["covers"],
        json!([real(&world, "app/Cargo.toml")])
    );
}

#[test]
fn what_cannot_be_meant_is_refused_with_what_to_do() {
    let world = project();
    let check = |args: &[&str], words: &[&str]| {
        let said = world.run_in("app", args);
        said.complains(2, words);
        assert!(said.stdout().is_empty(), "{said}");
    };
    let home = real(&world, "");
    check(&["snapshot", "nowhere"], &["there is no ", "app/nowhere\n", "hint: check the path"]);
    check(&["snapshot", "src", "Cargo.toml/x"], &["there is no "]);
    check(
        &["snapshot", "/"],
        &["/ is too much to take as a whole\n", "hint: name the folders in it that matter"],
    );
    check(&["snapshot", &home], &["is too much"]);
    check(&["snapshot", ".."], &["is too much"]);
    check(&["snapshot", &format!("{home}/..")], &["is too much"]);
    check(&["--lang", "zh", "snapshot", "/"], &["/ 太大，不能整体保存\n提示：请指明其中重要的文件夹"]);
    check(&["--lang", "zh", "snapshot", "nowhere"], &["app/nowhere 不存在\n提示：请检查路径\n"]);
    world.run(&["snapshot"], "").complains(2, &["is too much"]);
    world
        .run(&["snapshots"], "")
        .complains(1, &["no snapshot has been taken yet", "`unstuck snapshot` takes one"]);
}

#[test]
fn a_folder_that_is_gone_still_has_a_name() {
    let world = project();
    world.run_in("app", &["snapshot", "src"]);
    let ours = env!("CARGO_BIN_EXE_unstuck");
    let line = format!("cd app/src/deep && rm -r ../../src && '{ours}' snapshots --here --json");
    let mut command = Command::new("sh");
    command.args(["-c", &line]).current_dir(world.path("")).env_clear();
    command
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", world.path("").canonicalize().unwrap());
    let said =
        Said::by(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(said.json()["id"], "s1", "{said}");
}

#[test]
fn the_list_tells_when_why_how_large_and_what_the_newest_first() {
    let world = project().with("other/a", "a");
    world.run_in("app", &["snapshot", "src", "--note", "before\nthe \u{1b}[31mupgrade", "--pin"]);
    world.run_in("other", &["snapshot", "a"]);
    world.protected("toolu_01", "app/src", |world| fs::remove_file(world.path("app/src/main.rs")).unwrap());
    let said = world.run(&["snapshots"], "");
    let lines: Vec<&str> = said.stdout().lines().collect();
    let rows: Vec<Vec<&str>> = lines.iter().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["id", "when", "size", "why", "covers"], "{said}");
    let first: Vec<&str> = rows[1..4].iter().map(|row| row[0]).collect();
    assert_eq!(first, ["s3", "s2", "s1"], "{said}");
    assert!(lines[1].contains("  rm -r app/src  "), "{said}");
    assert!(lines[3].contains("  before the upgrade  ~/app/src  pinned"), "{said}");
    assert!(lines[4].starts_with("3 snapshots, "), "{said}");
    let here = world.run_in("app/src", &["snapshots", "--here"]);
    assert!(
        here.stdout().contains("s3") && here.stdout().contains("s1") && !here.stdout().contains("s2"),
        "{here}"
    );
    let zh = world.run(&["--lang", "zh", "snapshots"], "");
    assert!(zh.stdout().starts_with("编号") && zh.stdout().contains("3 个快照，保险库共 "), "{zh}");
    let newest = world.run(&["snapshots", "--json"], "").json_lines()[0].clone();
    let call = ["call", "call_id", "session", "row", "label"].map(|key| newest[key].clone());
    let expected = [json!(null), json!("toolu_01"), json!("sitting"), json!("rm"), json!("rm -r app/src")];
    assert_eq!(call, expected);
}

#[test]
fn the_timeline_tells_of_it_and_of_what_could_not_be_saved() {
    let world = project();
    world.run_in("app", &["snapshot", "src", "--note", "mine"]);
    fs::write(world.path("app/src/main.rs"), "fn main() { other() }\n").unwrap();
    let said = world.run_in("app", &["snapshot", "src", "--set", "vault.min-free=1TB"]);
    said.complains(125, &["bytes are needed, and the disk of ", "hint: free some space on that disk"]);
    let events = world.run(&["log", "--json"], "").json_lines();
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["snapshot:taken", "snapshot:failed"]);
    let body =
        json!({"paths": 4, "bytes": 27, "partial": false, "snapshot": "s1", "why": "person", "text": "mine"});
    assert_eq!(events[0]["body"], body);
    let log = world.run(&["log"], "");
    assert!(log.stdout().contains("◆ saved     s1: 4 paths, 27 B (person): mine\n"), "{log}");
    assert!(log.stdout().contains("‼ not saved person: "), "{log}");
}

#[test]
fn what_does_not_fit_into_the_budget_is_not_begun() {
    let world = project();
    // Nothing about it can be made smaller.
    let noise: Vec<u8> = (0..1_u32 << 16).flat_map(|n| *blake3::hash(&n.to_le_bytes()).as_bytes()).collect();
    for part in 0..9_u8 {
        let bytes: Vec<u8> = noise.iter().map(|byte| byte ^ part).collect();
        fs::write(world.path(&format!("app/noise-{part}")), bytes).unwrap();
    }
    let said = world.run_in("app", &["snapshot", "--set", "vault.max-size=16MB"]);
    said.complains(125, &["the safe may hold", "hint: `unstuck gc` makes room", "`vault.max-size`"]);
    let said = world.run_in("app", &["--lang", "zh", "snapshot", "--set", "vault.max-size=16MB"]);
    said.complains(125, &["而保险库只能再存放", "提示：`unstuck gc` 可腾出空间"]);
    assert_eq!(world.run(&["snapshots"], "").stdout(), "no snapshots\n");
    assert_eq!(world.run_in("app", &["snapshot"]).exit, 0);
}

#[test]
fn many_at_once_get_a_name_each() {
    let world = project();
    let children: Vec<_> = (0..6)
        .map(|_| world.command(&["snapshot", "src"]).current_dir(world.path("app")).spawn().unwrap())
        .collect();
    let mut ids: Vec<String> = children
        .into_iter()
        .map(|child| {
            let said = Said::by(child);
            assert_eq!(said.exit, 0, "{said}");
            said.stdout().to_owned()
        })
        .collect();
    ids.sort();
    assert_eq!(ids, ["s1\n", "s2\n", "s3\n", "s4\n", "s5\n", "s6\n"]);
}

#[test]
fn only_its_owner_can_read_the_safe_and_what_is_no_folder_is_not_used() {
    let world = project();
    world.run_in("app", &["snapshot"]);
    let vault = world.path(".local/state/unstuck/vault");
    let mode = |path: &std::path::Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&vault), 0o700);
    let mut files = vec![vault.clone()];
    while let Some(path) = files.pop() {
        let about = fs::symlink_metadata(&path).unwrap();
        assert_eq!(mode(&path) & 0o077, 0, "{path:?}");
        if about.is_dir() {
            files.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
    fs::remove_dir_all(&vault).unwrap();
    fs::write(&vault, "no folder").unwrap();
    let said = world.run_in("app", &["snapshot"]);
    assert_eq!((said.exit, said.stdout()), (125, ""), "{said}");
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    let world = project();
    for number in 0..4000 {
        fs::write(world.path(&format!("app/src/file-{number}")), format!("content {number}")).unwrap();
    }
    let mut child = world.command(&["snapshot"]).current_dir(world.path("app")).spawn().unwrap();
    let vault = world.path(".local/state/unstuck/vault");
    let half_written = || {
        let mut folders = vec![vault.clone()];
        let mut found = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.path().is_dir() {
                    true => folders.push(entry.path()),
                    false if entry.file_name().to_string_lossy().contains("tmp") => found.push(entry.path()),
                    false => {}
                }
            }
        }
        found
    };
    let begun = Instant::now();
    while half_written().is_empty()
        && child.try_wait().unwrap().is_none()
        && begun.elapsed() < Duration::from_secs(20)
    {
        thread::sleep(Duration::from_millis(2));
    }
    // Nothing happens where it is done already.
    let _ =
        Command::new("kill").args(["-INT", &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
    let said = Said::by(child);
    assert!(matches!((said.exit, said.stdout()), (130, "") | (0, "s1\n")), "{said}");
    assert_eq!(half_written(), Vec::<std::path::PathBuf>::new());
    let kept = world.run(&["snapshots", "--json"], "").json_lines().len();
    assert_eq!(kept, usize::from(said.exit == 0), "{said}");
}

#[test]
#[cfg(target_os = "linux")]
fn what_the_system_makes_up_is_not_saved() {
    let world = World::empty().with("app/x", "x");
    symlink("/proc", world.path("app/p")).unwrap();
    for path in
        ["/proc", "/sys", "/dev", "/proc/1", "/proc/self/environ", "/dev/null", "app/p/", "app/p/1/status"]
    {
        world.run(&["snapshot", path], "").complains(2, &["which the system makes up", "hint: "]);
    }
    world.run(&["--lang", "zh", "snapshot", "/sys/kernel"], "").complains(2, &["由系统虚构"]);
    // A link is saved as the link that it is.
    assert_eq!(world.run(&["snapshot", "app"], "").exit, 0);
}
