//! `unstuck pause`, `resume` and `status`: off means off, for as long as a person said, and it can be seen.

use std::fs;

use crate::kept::failure;
use crate::world::{Said, World};

/// What a hook answers, with a variable set.
fn hook(world: &World, name: &str, value: &str) -> Said {
    let mut child = world.command(&["hook", "generic"]).env(name, value).spawn().unwrap();
    let payload = failure("s", "c1", "npm ci", "npm error code ENOENT");
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).ok();
    Said::by(child)
}

#[track_caller]
fn is_silent(said: &Said) {
    assert_eq!((said.stdout(), said.stderr(), said.exit), ("", "", 0), "{said}");
}

#[test]
fn a_pause_silences_hooks_until_it_is_over_or_ended() {
    let world = World::empty();
    let said = world.run(&["pause", "2h", "--yes", "--json"], "").json();
    assert_eq!(said["state"], "paused");
    is_silent(&hook(&world, "X", "x"));
    let status = world.run(&["status", "--json"], "").json();
    assert_eq!((&status["state"], &status["until_ms"]), (&"paused".into(), &said["until_ms"]));
    assert!(status["store"].is_null(), "nothing was recorded: {status}");
    let resumed = world.run(&["resume", "--json"], "").json();
    assert_eq!((&resumed["state"], &resumed["was_paused"]), (&"on".into(), &true.into()));
    assert_eq!(hook(&world, "X", "x").stdout().lines().count(), 2);
    // One that is over ends by itself, and leaves nothing behind.
    world.run(&["pause", "--yes"], "");
    let file = world.path(".local/state/unstuck/paused-until");
    fs::write(&file, "1794733363000").unwrap();
    assert_eq!(hook(&world, "X", "x").stdout().lines().count(), 2);
    assert!(!file.exists());
}

#[test]
fn the_variable_switches_off_what_is_started_with_it() {
    let world = World::empty();
    is_silent(&hook(&world, "UNSTUCK_DISABLE", "1"));
    is_silent(&hook(&world, "UNSTUCK_DISABLE", "yes"));
    assert!(!world.path(".local").exists());
    assert_eq!(hook(&world, "UNSTUCK_DISABLE", "0").stdout().lines().count(), 2);
    let status = Said::by(world.command(&["status"]).env("UNSTUCK_DISABLE", "1").spawn().unwrap());
    assert!(
        status.stdout().starts_with("unstuck     off here: UNSTUCK_DISABLE is set (") && status.exit == 0,
        "{status}"
    );
}

#[test]
fn an_agent_cannot_pause_and_a_person_can() {
    let world = World::empty();
    let said = world.run(&["pause"], "");
    said.complains(2, &["an agent must not free itself", "hint: a person runs it in a terminal"]);
    world
        .run(&["--lang", "zh", "pause"], "")
        .complains(2, &["智能体不能自行解除", "提示：请由人在终端中运行"]);
    assert!(!world.path(".local").exists());
    let Some(said) = world.at_terminal(&["pause", "30m"]) else { return };
    assert!(said.stdout().starts_with("paused until 20") && said.exit == 0, "{said}");
    assert!(world.run(&["resume"], "").stdout().starts_with("resumed\n"));
    assert_eq!(world.run(&["--lang", "zh", "resume"], "").stdout(), "没有处于暂停状态\n");
}

#[test]
fn inside_an_agent_no_brake_comes_off_whatever_is_given() {
    let world = World::empty();
    for variable in [
        "CLAUDECODE",
        "CLAUDE_CODE_SESSION_ID",
        "CODEX_SANDBOX",
        "CODEX_SANDBOX_NETWORK_DISABLED",
        "CODEX_THREAD_ID",
        "CODEX_CI",
        "GEMINI_CLI",
        "QWEN_CODE",
        "OPENCODE",
        "OPENCODE_PID",
        "COPILOT_CLI",
        "COPILOT_CLI_BINARY_VERSION",
        "CURSOR_AGENT",
        "AI_AGENT",
    ] {
        for args in [&["pause", "--yes"][..], &["pause"], &["allow", "--yes", "deadbeef"]] {
            let said = Said::by(world.command(args).env(variable, "1").spawn().unwrap());
            said.complains(2, &[&format!("({variable} is set)"), "a terminal of their own"]);
        }
    }
    let zh = Said::by(world.command(&["--lang", "zh", "pause"]).env("CLAUDECODE", "1").spawn().unwrap());
    zh.complains(2, &["设置了 CLAUDECODE", "自己的终端"]);
    assert!(!world.path(".local").exists());
    // What takes nothing off may be run by anyone.
    let status = Said::by(world.command(&["status"]).env("CLAUDECODE", "1").spawn().unwrap());
    assert_eq!(status.exit, 0, "{status}");
    let emptied = Said::by(world.command(&["pause", "--yes"]).env("CLAUDECODE", "").spawn().unwrap());
    assert_eq!(emptied.exit, 0, "{emptied}");
    let resumed = Said::by(world.command(&["resume"]).env("CLAUDECODE", "1").spawn().unwrap());
    assert_eq!(resumed.stdout(), "resumed\n");
}

#[test]
fn no_pause_is_longer_than_a_week_or_shorter_than_a_second() {
    for span in ["8d", "0s", "999ms", "5", "-3h", "soon"] {
        let said = World::empty().run(&["pause", "--yes", "--", span], "");
        assert_eq!(said.exit, 2, "{span}: {said}");
    }
    World::empty().run(&["pause", "--yes", "8d"], "").complains(2, &["it may last from 1s to 7d"]);
}

#[test]
fn status_tells_what_was_seen_today() {
    let world = World::empty();
    let nothing = world.run(&["status"], "");
    assert!(
        nothing.stdout().contains("today       nothing is recorded yet\n") && nothing.exit == 0,
        "{nothing}"
    );
    let world = World::with_failures();
    let status = world.run(&["status", "--json"], "").json();
    let today = &status["store"]["today"];
    assert_eq!((&today["sessions"], &today["calls"], &today["failed"]), (&1.into(), &2.into(), &2.into()));
    assert_eq!((&status["mode"], &status["tools"]), (&"enforce".into(), &serde_json::Value::Null));
    assert_eq!(
        (&status["store"]["agents"][0]["agent"], &status["attended"]),
        (&"generic".into(), &"auto".into())
    );
    let said = world.run(&["status", "--set", "ladder.tools=Bash=shadow"], "");
    let line = |begin: &str| said.stdout().lines().find(|line| line.starts_with(begin)).unwrap().to_owned();
    assert_eq!(line("mode"), "mode        enforce: gives hints, refuses what cannot work (Bash=shadow)");
    assert!(line("today").contains("2 calls in 1 session, 2 failed"), "{said}");
    assert!(line("last heard").starts_with("last heard  generic   "), "{said}");
    let said = world.run(&["--lang", "zh", "status"], "");
    assert!(said.stdout().contains("今天        1 个会话，2 次调用，2 次失败；"), "{said}");
}

#[test]
fn status_names_our_own_faults() {
    let world = World::empty();
    world.run(&["hook", "generic"], "{not json}");
    let said = world.run(&["status"], "");
    assert!(said.stdout().contains("1 fault of our own (`unstuck doctor`)"), "{said}");
    let off = world.run(&["status", "--set", "hook.enabled=false"], "");
    assert!(off.stdout().starts_with("unstuck     off: hook.enabled is false ("), "{off}");
}
