//! How tools of this kind have destroyed people's settings, each as a test: none of it happens here.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::agent_files::{SETTINGS, commands};
use crate::world::{Said, World};

/// Installs and uninstalls; the file must be the same to the byte, and hold us in between.
#[track_caller]
fn comes_back(agent: &str, file: &str, content: &[u8]) -> String {
    let world = World::empty().with_program("claude", "2.1.325").with(file, content);
    // It has been like this for a while.
    let written = fs::File::options().write(true).open(world.path(file)).unwrap();
    written.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
    let said = world.installs(&["install", agent]);
    assert_eq!(said.exit, 0, "{said}");
    let there = fs::read(world.path(file)).unwrap();
    assert!(String::from_utf8_lossy(&there).contains(&format!("hook {agent} 2>/dev/null || :")), "{said}");
    assert_eq!(world.installs(&["uninstall", agent]).exit, 0);
    let back = fs::read(world.path(file)).unwrap();
    assert!(back == content, "{:?}\n{:?}", String::from_utf8_lossy(&back), String::from_utf8_lossy(content));
    String::from_utf8(there).unwrap()
}

/// Nothing is written, and the complaint says where and why.
#[track_caller]
fn stops(agent: &str, file: &str, content: &[u8], words: &[&str]) {
    let world = World::empty().with_program("claude", "2.1.325").with(file, content);
    let before = world.files("");
    let said = world.installs(&["install", agent]);
    said.complains(125, words);
    assert_eq!(fs::read(world.path(file)).unwrap(), content);
    assert_eq!(world.files(""), before);
    let told: Value = serde_json::from_slice(&world.installs(&["install", agent, "--json"]).stdout).unwrap();
    assert_eq!(told["status"], "failed", "{told}");
    assert!(told["error"].as_str().unwrap().contains(words[0]), "{told}");
}

#[test]
fn forty_nine_hooks_of_others_stay() {
    let group = |number: u32| json!({"matcher": "Bash", "hooks": [{"type": "command", "command": format!("theirs {number}")}]});
    let mut settings = json!({"hooks": {}, "env": {"KEY": "value"}});
    for (number, event) in
        ["PreToolUse", "PostToolUse", "Stop", "Notification"].iter().cycle().take(49).enumerate()
    {
        let hooks = &mut settings["hooks"][*event];
        if hooks.is_null() {
            *hooks = json!([]);
        }
        hooks.as_array_mut().unwrap().push(group(number as u32));
    }
    let there = comes_back("claude", SETTINGS, serde_json::to_string_pretty(&settings).unwrap().as_bytes());
    let there: Value = serde_json::from_str(&there).unwrap();
    let theirs =
        |event: &&str| commands(&there, event).iter().filter(|line| line.starts_with("theirs")).count();
    assert_eq!(["PreToolUse", "PostToolUse", "Stop", "Notification"].iter().map(theirs).sum::<usize>(), 49);
    assert_eq!(there["env"], settings["env"]);
}

#[test]
fn the_ways_people_write_come_back_to_the_byte() {
    let check = |text: &'static str, is_kept: fn(&str) -> bool| {
        move || {
            let there = comes_back("claude", SETTINGS, text.as_bytes());
            assert!(is_kept(&there), "{there:?}");
        }
    };
    thread::scope(|scope| {
        let any = |_: &str| true;
        scope.spawn(check("\u{feff}{\n  \"a\": 1\n}\n", |there| {
            there.starts_with("\u{feff}{\n  \"a\": 1,\n")
        }));
        scope.spawn(check("{\r\n  \"a\": 1\r\n}\r\n", |there| {
            there.matches('\n').count() == there.matches("\r\n").count()
        }));
        scope.spawn(check("{\n\t\"a\": 1\n}", |there| {
            there.contains("\n\t\"hooks\": {\n\t\t\"PreToolUse\": [\n") && !there.ends_with('\n')
        }));
        scope.spawn(check("{\"a\":1}", |there| !there.contains('\n')));
        for text in [
            "{}",
            "{ }",
            "{\n}\n",
            "{\"hooks\":{}}",
            "{\"hooks\": {\"PreToolUse\": [ ]}}",
            "{\"a\":1,\"a\":2}",
        ] {
            scope.spawn(check(text, any));
        }
        scope.spawn(check("{\"工具\": \"\\u00e9\\/\", \"n\": 1.0e+10}", any));
        // An empty file is given back empty.
        scope.spawn(check("", any));
        scope.spawn(check("\n\n", any));
    });
}

#[test]
fn comments_are_kept_where_the_agent_reads_them() {
    let text = "// mine\n{\n  /* theme */ \"theme\": \"x\", // dark\n  \"hooks\": {\n    \"AfterTool\": [] // none\n  }\n}\n";
    let there = comes_back("gemini", ".gemini/settings.json", text.as_bytes());
    ["// mine\n{", "/* theme */ \"theme\": \"x\", // dark\n", "// none"]
        .iter()
        .for_each(|words| assert!(there.contains(words), "{there}"));
    comes_back("qwen", ".qwen/settings.json", text.as_bytes());
}

#[test]
fn what_cannot_be_read_in_full_is_left_alone() {
    stops(
        "claude",
        SETTINGS,
        b"{\n  // mine\n  \"a\": 1\n}",
        &["settings.json:2:3: Comments are not allowed", "nothing was changed"],
    );
    stops("claude", SETTINGS, b"{\n  \"a\": 1,\n}", &["settings.json:2:9: Trailing commas are not allowed"]);
    stops("gemini", ".gemini/settings.json", b"{\n  \"a\": 1, // x\n}", &["settings.json:2:"]);
    stops("claude", SETTINGS, b"{\"a\": 1", &["settings.json:1:1: Unterminated object"]);
    stops("claude", SETTINGS, b"[]", &["settings.json:1:1: the whole file is not an object"]);
    stops("claude", SETTINGS, b"null", &["settings.json:1:1: the whole file is not an object"]);
    stops("claude", SETTINGS, b"{\"hooks\": []}", &["settings.json:1:11: hooks is not an object"]);
    stops("claude", SETTINGS, b"{\"hooks\": {\"PreToolUse\": \"x\"}}", &["hooks.PreToolUse is not a list"]);
    stops("claude", SETTINGS, b"{\"hooks\": {}, \"hooks\": {}}", &["hooks stands here twice"]);
    stops("claude", SETTINGS, b"\xff\xfe{\0}\0", &["is not UTF-8 text"]);
    stops("claude", SETTINGS, &vec![b' '; 65 << 20], &["which is no settings file"]);
    stops("codex", ".codex/hooks.json", b"hooks = []", &["hooks.json:1:1: "]);
    stops("opencode", "config/opencode/plugins/unstuck.js", b"export const Mine = 1\n", &["was never ours"]);
    let world = World::with_claude("{,}");
    let said = world.installs(&["install", "claude", "--lang", "zh"]);
    said.complains(125, &["Claude Code 2.1.325：未完成：", "提示：未作任何更改"]);
}

#[test]
fn one_agent_that_cannot_be_done_does_not_keep_the_others() {
    let world = World::with_claude("{,}");
    let said = world.installs(&["install", "claude", "gemini"]);
    said.complains(125, &["settings.json:1:2"]);
    assert!(
        said.stdout().contains("Gemini CLI: installed") && world.path(".gemini/settings.json").exists(),
        "{said}"
    );
}

#[test]
fn a_broken_file_that_does_not_speak_of_us_is_not_our_business() {
    let world = World::with_claude("{,}");
    let said = world.installs(&["uninstall"]);
    assert_eq!((said.exit, said.stdout(), said.stderr()), (0, "", ""), "{said}");
    fs::write(world.path(SETTINGS), "{,\"unstuck\"}").unwrap();
    world.installs(&["uninstall"]).complains(125, &["settings.json:1:2"]);
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let world = World::empty().with("dotfiles/claude.json", "{\"a\": 1}\n");
    fs::create_dir_all(world.path(".claude")).unwrap();
    symlink("../dotfiles/claude.json", world.path(SETTINGS)).unwrap();
    assert_eq!(world.installs(&["install", "claude"]).exit, 0);
    assert!(world.text("dotfiles/claude.json").contains("hook claude"));
    assert!(fs::symlink_metadata(world.path(SETTINGS)).unwrap().is_symlink());
    assert_eq!(world.installs(&["uninstall", "claude"]).exit, 0);
    assert_eq!(world.text("dotfiles/claude.json"), "{\"a\": 1}\n");
    fs::remove_file(world.path("dotfiles/claude.json")).unwrap();
    world.installs(&["install", "claude"]).complains(125, &["is a link to a file that is not there"]);
    assert!(!world.path("dotfiles/claude.json").exists());
}

#[test]
fn what_is_meant_to_stay_as_it_is_stays() {
    let world = World::with_claude("{}");
    fs::set_permissions(world.path(SETTINGS), fs::Permissions::from_mode(0o444)).unwrap();
    world.installs(&["install", "claude"]).complains(125, &["settings.json is read-only", "--dry-run"]);
    fs::set_permissions(world.path(SETTINGS), fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(world.path(".claude"), fs::Permissions::from_mode(0o555)).unwrap();
    world.installs(&["install", "claude"]).complains(125, &[".claude is read-only"]);
    fs::set_permissions(world.path(".claude"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::hard_link(world.path(SETTINGS), world.path("second-name")).unwrap();
    world.installs(&["install", "claude"]).complains(125, &["has 2 names (hard links)"]);
    assert_eq!((world.text(SETTINGS).as_str(), world.text("second-name").as_str()), ("{}", "{}"));
    let world = World::empty().with(".claude", "a file in the way");
    world.installs(&["install", "claude"]).complains(125, &["could not"]);
    assert_eq!(world.text(".claude"), "a file in the way");
}

#[test]
fn rights_stay() {
    let world = World::with_claude("{}");
    fs::set_permissions(world.path(SETTINGS), fs::Permissions::from_mode(0o640)).unwrap();
    let mode = || fs::metadata(world.path(SETTINGS)).unwrap().permissions().mode() & 0o7777;
    world.installs(&["install", "claude"]);
    assert_eq!(mode(), 0o640);
    world.installs(&["uninstall", "claude"]);
    assert_eq!(mode(), 0o640);
    for copy in fs::read_dir(world.path(".local/state/unstuck/settings-backups")).unwrap().flatten() {
        assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o7777, 0o600);
    }
}

#[test]
fn a_huge_file_is_edited_like_any_other() {
    let filler: Vec<Value> =
        (0..40_000).map(|number| json!({"path": format!("/a/{number}"), "x": [1, 2, {"y": null}]})).collect();
    comes_back(
        "claude",
        SETTINGS,
        serde_json::to_string_pretty(&json!({"filler": filler})).unwrap().as_bytes(),
    );
}

/// Runs the installer under a limit on the size of files, which this file is within and the edited one is not.
fn under_a_limit(world: &World, shell: &str) -> Said {
    let line = format!("{shell} ulimit -f 6; exec \"$0\" install claude");
    let installer = world.installer(&[]);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &line, env!("CARGO_BIN_EXE_unstuck")]).current_dir(world.path("")).env_clear();
    command.envs(installer.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Said::by(command.spawn().unwrap())
}

#[test]
fn a_full_disk_leaves_everything_as_it_was() {
    let settings = json!({"filler": "x".repeat(2000)}).to_string();
    let world = World::with_claude(&settings);
    let before = world.files("");
    for shell in ["", "trap '' XFSZ;"] {
        under_a_limit(&world, shell).complains(125, &["no space is left for", "settings.json"]);
        assert_eq!((world.text(SETTINGS), world.files("")), (settings.clone(), before.clone()));
    }
    assert_eq!(world.installs(&["install", "claude"]).exit, 0);
    world.installs(&["uninstall"]);
    assert_eq!(world.text(SETTINGS), settings);
}

#[test]
fn killed_half_way_the_file_is_whole_and_the_rest_is_swept_up() {
    let settings = json!({"filler": "x".repeat(4 << 20)}).to_string();
    let world = World::with_claude(&settings);
    let before = world.files("");
    // It is killed as soon as anything new lies in the folder, until that was half of a file.
    let is_half_way = (0..100).any(|_| {
        let mut installer = world.installer(&["install", "claude"]).spawn().unwrap();
        while world.files("") == before && installer.try_wait().unwrap().is_none() {}
        installer.kill().unwrap();
        installer.wait().unwrap();
        let text = world.text(SETTINGS);
        let is_edited = text != settings;
        if is_edited {
            assert!(text.contains("hook claude") && serde_json::from_str::<Value>(&text).is_ok());
            world.installs(&["uninstall", "claude"]);
        }
        !is_edited && world.files("").len() == before.len() + 1
    });
    assert!(is_half_way, "it was never killed half way");
    assert_eq!(world.text(SETTINGS), settings);
    assert_eq!(world.installs(&["install", "claude"]).exit, 0);
    assert_eq!(world.files(""), before);
    world.installs(&["uninstall"]);
    assert_eq!(world.text(SETTINGS), settings);
}

#[test]
fn several_installers_at_once_write_each_entry_once() {
    let world = World::with_claude("{\n  \"a\": 1\n}\n");
    let children: Vec<_> =
        (0..6).map(|_| world.installer(&["install", "claude", "gemini"]).spawn().unwrap()).collect();
    for child in children {
        assert_eq!(Said::by(child).exit, 0);
    }
    for (file, event) in [(SETTINGS, "PreToolUse"), (".gemini/settings.json", "BeforeTool")] {
        assert_eq!(commands(&world.parsed(file), event).len(), 1, "{}", world.text(file));
    }
    world.installs(&["uninstall"]);
    assert_eq!(
        (world.text(SETTINGS).as_str(), world.path(".gemini").exists()),
        ("{\n  \"a\": 1\n}\n", false)
    );
}

/// Waits until the file holds us, then puts this in its place; so many times.
pub(crate) fn write_back(world: &World, file: &str, us: &str, content: &str, times: u32) -> u32 {
    let begun = Instant::now();
    let mut written = 0;
    while written < times && begun.elapsed() < Duration::from_secs(10) {
        if fs::read_to_string(world.path(file)).is_ok_and(|text| text.contains(us)) {
            fs::write(world.path(file), content).unwrap();
            written += 1;
        }
        thread::sleep(Duration::from_millis(10));
    }
    written
}

#[test]
fn an_agent_that_writes_its_old_copy_back_is_noticed() {
    let world = World::with_claude("{\"a\": 1}");
    let child = world.installer(&["install", "claude", "--json"]).spawn().unwrap();
    assert_eq!(write_back(&world, SETTINGS, "hook claude", "{\"a\": 1, \"b\": 2}", 1), 1);
    let told = Said::by(child).json();
    assert_eq!(told["status"], "installed", "{told}");
    assert!(told["notes"].as_array().unwrap().iter().any(|note| note["note"] == "wrote_again"), "{told}");
    assert_eq!(commands(&world.parsed(SETTINGS), "PreToolUse").len(), 1);
    world.installs(&["uninstall"]);
    assert_eq!(world.text(SETTINGS), "{\"a\": 1, \"b\": 2}", "what the agent added is kept");
    let child = world.installer(&["install", "claude"]).spawn().unwrap();
    assert_eq!(write_back(&world, SETTINGS, "hook claude", "{}", 2), 2);
    Said::by(child).complains(125, &["has written its own copy of", "close the agent"]);
    assert_eq!(world.text(SETTINGS), "{}");
}

#[test]
fn a_busy_writer_loses_nothing() {
    let world = World::with_claude("{\"count\": 0}");
    let path = world.path(SETTINGS);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // It reads, changes its own key and replaces the file, as agents do.
        let writer = scope.spawn(|| {
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                count += 1;
                let mut value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
                assert_eq!(value["count"], count - 1, "a change was lost");
                value["count"] = json!(count);
                fs::write(world.path("beside"), value.to_string()).unwrap();
                fs::rename(world.path("beside"), &path).unwrap();
                thread::sleep(Duration::from_millis(150));
            }
        });
        assert_eq!(world.installs(&["install", "claude"]).exit, 0);
        assert_eq!(world.installs(&["uninstall", "claude"]).exit, 0);
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    let left = world.parsed(SETTINGS);
    assert!(left["hooks"].is_null() && left["count"].as_u64() > Some(5), "{left}");
}

#[test]
fn a_ledger_that_cannot_be_read_stops_before_anything_is_written() {
    let world =
        World::with_claude("{}").with(".local/state/unstuck/installed.json", "{\"v\": 99, \"written\": []}");
    world
        .installs(&["install", "claude"])
        .complains(125, &["installed.json cannot be read: it has format 99"]);
    assert_eq!(world.text(SETTINGS), "{}");
}

#[test]
fn a_file_that_another_program_has_just_emptied_is_left_to_it() {
    let world = World::empty().with(".claude/settings.json", "");
    let said = world.run(&["install", "claude", "--user"], "");
    said.complains(125, &["is empty since a moment ago", "wait ten seconds"]);
    assert_eq!(fs::read(world.path(".claude/settings.json")).unwrap(), b"");
    // Whoever writes in time is waited for.
    let path = world.path(".claude/settings.json");
    fs::write(&path, "").unwrap();
    let writer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(400));
        fs::write(path, "{\"model\": \"opus\"}").unwrap();
    });
    world.run(&["install", "claude", "--user"], "").complains(0, &[]);
    writer.join().unwrap();
    let text = fs::read_to_string(world.path(".claude/settings.json")).unwrap();
    assert!(text.contains("\"model\": \"opus\"") && text.contains("hook claude"), "{text}");
}

#[test]
fn a_file_that_has_been_empty_for_long_comes_back_empty() {
    comes_back("claude", SETTINGS, b"");
    comes_back("claude", SETTINGS, b" \n");
    comes_back("gemini", ".gemini/settings.json", b"");
}

#[test]
fn a_pipe_in_place_of_settings_keeps_nobody_waiting() {
    let world = World::empty().with(".claude/x", "");
    let path = world.path(".claude/settings.json");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    world.run(&["install", "claude", "--user"], "").complains(125, &["is not a file"]);
    assert_eq!(world.run(&["doctor", "claude", "--json"], "").stderr(), "");
}
