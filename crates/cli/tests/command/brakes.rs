//! Which commands an agent may run: none that takes a brake off, and none that loses a record. Every command stands in the table.

use std::collections::BTreeSet;
use std::fs;

use crate::kept::failure;
use crate::world::{Said, World};

/// What an agent may do with a command.
enum May {
    /// Run it.
    Run,
    /// Not run it like this.
    Not,
}
use May::{Not, Run};

/// Every command, in each form that matters.
const TABLE: &[(May, &[&str])] = &[
    (Run, &["agent", "--help"]),
    (Run, &["alerts"]),
    (Not, &["allow", "viwyi3vv", "--yes"]),
    (Run, &["allow", "--revoke", "viwyi3vv"]),
    (Run, &["config"]),
    (Not, &["config", "edit"]),
    (Not, &["config", "edit", "--project"]),
    (Run, &["demo", "--help"]),
    (Run, &["diagnose", "--help"]),
    (Run, &["diff", "s1"]),
    (Run, &["doctor"]),
    (Run, &["export", "--jsonl"]),
    (Run, &["gc", "--dry-run"]),
    (Run, &["gc"]),
    (Not, &["gc", "--set", "store.keep-events=1h"]),
    (Not, &["gc", "--set", "store.keep-calls=1h"]),
    (Not, &["gc", "--set", "store.max-size=16MB"]),
    (Not, &["--set", "vault.max-age=1m", "gc"]),
    (Not, &["gc", "--set=vault.per-target=1"]),
    (Not, &["gc", "--set", "vault.max-size=16MB"]),
    (Run, &["git-snapshot", "--help"]),
    (Run, &["heartbeat"]),
    // It keeps what everybody keeps, whatever is set.
    (Run, &["heartbeat", "--set", "store.keep-events=1h"]),
    (Run, &["hook", "claude"]),
    (Run, &["http", "--help"]),
    (Run, &["install", "--dry-run"]),
    (Run, &["install", "claude"]),
    (Run, &["lessons"]),
    (Not, &["lessons", "approve", "L1", "--yes"]),
    (Run, &["log"]),
    (Run, &["mcp", "--help"]),
    (Run, &["mcp-server", "--help"]),
    (Not, &["pause", "5m", "--yes"]),
    (Run, &["problems"]),
    (Not, &["purge", "--before", "1h"]),
    (Not, &["purge", "--session", "s"]),
    (Run, &["purge", "--before", "1h", "--dry-run"]),
    (Run, &["record", "--help"]),
    (Run, &["recover"]),
    (Not, &["recover", "--yes"]),
    (Run, &["redo", "--help"]),
    (Run, &["replay", "--help"]),
    (Run, &["restore", "--help"]),
    (Run, &["resume"]),
    // What it deletes is saved first.
    (Run, &["rm", "app/file"]),
    (Run, &["rules"]),
    (Run, &["run", "--", "true"]),
    (Run, &["scan", "--help"]),
    (Run, &["show", "1"]),
    (Run, &["snapshot", "app"]),
    (Run, &["snapshots"]),
    (Run, &["snapshots", "pin", "s1"]),
    (Not, &["snapshots", "pin", "--off", "s1"]),
    (Not, &["snapshots", "drop", "s1"]),
    (Run, &["stats"]),
    (Run, &["status"]),
    (Run, &["undo", "--help"]),
    (Run, &["uninstall", "--dry-run"]),
    (Not, &["uninstall"]),
    (Not, &["uninstall", "claude", "--user"]),
    (Not, &["uninstall", "mcp"]),
    (Not, &["uninstall", "mcp-server"]),
    (Run, &["uninstall", "mcp", "--dry-run"]),
];

const REFUSED: &str = "an agent must not free itself";

/// Something is recorded, something is saved, and Claude Code calls us.
fn world() -> World {
    let world = World::empty().with("app/file", "one").with("app/.git/HEAD", "ref: refs/heads/main\n");
    let said = world.run(&["install", "claude"], "");
    assert_eq!(said.exit, 0, "{said}");
    world.record(&failure("s", "c1", "npm test", "boom"));
    assert_eq!(world.run(&["snapshot", "app", "--note", "mine"], "").exit, 0);
    world
}

fn as_agent(world: &World, variables: &[(&str, &str)], args: &[&str]) -> Said {
    let mut command = world.command(args);
    command.envs(variables.iter().copied()).current_dir(world.path("")).env("EDITOR", "true");
    let mut child = command.spawn().unwrap();
    drop(child.stdin.take());
    Said::by(child)
}

#[test]
fn an_agent_runs_no_command_that_takes_a_brake_off_or_loses_a_record() {
    let world = world();
    for (may, args) in TABLE {
        let said = as_agent(&world, &[("CLAUDECODE", "1")], args);
        match may {
            Not => said.complains(2, &[REFUSED, "CLAUDECODE"]),
            Run => assert!(!said.stderr().contains(REFUSED), "{args:?}\n{said}"),
        }
    }
    // A person may run every one of them.
    for (_, args) in TABLE {
        let said = as_agent(&world, &[], args);
        assert!(!said.stderr().contains(REFUSED), "{args:?}\n{said}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_agent_that_takes_its_variables_away_is_still_one() {
    let world = world();
    for name in ["claude", "codex", "sh"] {
        std::os::unix::fs::symlink("/bin/sh", world.path(name)).unwrap();
    }
    let said = |program: &str, variable: &str, line: &str| {
        let own = world.command(&[]);
        let own_program = own.get_program().to_string_lossy().into_owned();
        let line = format!("{}\nexit $?", line.replace('%', &format!("'{own_program}' uninstall claude")));
        let mut command = std::process::Command::new(world.path(program));
        command.args(["-c", &line]).env_clear().current_dir(world.path(""));
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = command.env(variable, "1").output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let kept = "env -i HOME=\"$HOME\" PATH=/usr/bin:/bin";
    for (program, variable, line) in [
        ("sh", "CLAUDECODE", "env -u CLAUDECODE %".to_owned()),
        ("sh", "CODEX_CI", format!("{kept} %")),
        ("sh", "GEMINI_CLI", format!("{kept} sh -c \"%; :\"")),
        ("sh", "AI_AGENT", format!("{kept} setsid nice timeout 20 %")),
        ("sh", "CLAUDECODE", "echo \"env -u CLAUDECODE %\" | sh".to_owned()),
        ("claude", "OTHER", "%".to_owned()),
        ("codex", "OTHER", format!("{kept} sh -c \"sh -c \\\"%; :\\\"; :\"")),
    ] {
        let said = said(program, variable, &line);
        assert!(said.contains(REFUSED), "{program} {variable} {line}: {said}");
    }
    assert!(fs::read_to_string(world.path(".claude/settings.json")).unwrap().contains("hook claude"));
    let person = said("sh", "OTHER", &format!("{kept} %"));
    assert!(!person.contains(REFUSED), "{person}");
}

#[test]
fn every_command_stands_in_the_table() {
    let help = World::empty().run(&["--help"], "");
    let listed = help.stdout().lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: BTreeSet<&str> = listed
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let rows = TABLE.iter().flat_map(|(_, args)| args.iter().find(|word| commands.contains(*word)).copied());
    assert_eq!(rows.collect::<BTreeSet<&str>>(), commands);
}

/// A world in which something was recorded and saved every six hours of the last three days.
#[cfg(target_os = "linux")]
fn of_three_days() -> World {
    let world = World::empty();
    let ahead = "static long ahead(void) { char *by = getenv(\"AHEAD\"); return by ? atol(by) : 0; }";
    let library = crate::clock::clock(&world.path(""), ahead);
    for hours in (0..12).rev().map(|number| number * 6) {
        let at = |args: &[&str], input: &str| {
            let mut command = world.command(args);
            command.env("LD_PRELOAD", &library).env("AHEAD", format!("-{}", hours * 3600));
            let mut child = command.current_dir(world.path("")).spawn().unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
            let said = Said::by(child);
            assert_eq!(said.exit, 0, "{said}");
        };
        fs::create_dir_all(world.path(&format!("app{hours}"))).unwrap();
        at(&["snapshot", &format!("app{hours}"), "--pin"], "");
        at(&["hook", "generic"], &failure("s", &format!("c{hours}"), &format!("npm run {hours}"), "boom"));
    }
    for id in 1..=12 {
        assert_eq!(world.run(&["snapshots", "pin", "--off", &format!("s{id}")], "").exit, 0);
    }
    world
}

/// How much is recorded and saved.
#[cfg(target_os = "linux")]
fn kept(world: &World) -> (usize, usize) {
    let lines = |args: &[&str]| world.run(args, "").stdout().lines().count();
    (lines(&["export", "--jsonl"]), lines(&["snapshots", "--json"]))
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_that_is_set_makes_an_agent_forget_sooner_than_everybody_does() {
    let world = of_three_days();
    let day = ["--set", "vault.max-age=3650d"];
    let before = kept(&world);
    assert!(before.0 >= 24 && before.1 == 12, "{before:?}");
    let short = [
        ("UNSTUCK_STORE_KEEP_EVENTS", "1h"),
        ("UNSTUCK_STORE_KEEP_CALLS", "1h"),
        ("UNSTUCK_STORE_MAX_SIZE", "16MB"),
        ("UNSTUCK_VAULT_MAX_SIZE", "16MB"),
    ];
    let inside = [("CLAUDECODE", "1")];
    for variable in short {
        let variables = [inside[0], variable];
        as_agent(&world, &variables, &["gc"]).complains(2, &[REFUSED]);
        assert_eq!(as_agent(&world, &variables, &[&["heartbeat"], &day[..]].concat()).exit, 0);
        as_agent(&world, &variables, &[&["hook", "claude"], &day[..]].concat());
    }
    // A file of settings that the agent wrote.
    let file = "[store]\nkeep-events = \"1h\"\nkeep-calls = \"1h\"\n[vault]\nmax-age = \"3650d\"\n";
    fs::create_dir_all(world.path("mine/unstuck")).unwrap();
    fs::write(world.path("mine/unstuck/config.toml"), file).unwrap();
    let mine = world.path("mine");
    let elsewhere = [inside[0], ("XDG_CONFIG_HOME", mine.to_str().unwrap())];
    for command in ["gc", "heartbeat"] {
        assert_eq!(as_agent(&world, &elsewhere, &[command]).exit, 0);
    }
    let after = kept(&world);
    assert!(after.0 >= before.0 && after.1 == 12, "{before:?} {after:?}");
    // Snapshots older than what everybody keeps may go; a shorter time counts for nothing.
    let minute = [inside[0], ("UNSTUCK_VAULT_MAX_AGE", "1m"), ("UNSTUCK_VAULT_PER_TARGET", "1")];
    as_agent(&world, &minute, &["heartbeat"]);
    assert!(kept(&world).1 >= 5, "those of the last day: {:?}", kept(&world));
    // For a person, all of it holds.
    let before = kept(&world).0;
    let gone = as_agent(&world, &short[..2], &["gc"]);
    assert_eq!(gone.exit, 0, "{gone}");
    assert!(kept(&world).0 < before, "{before} {:?}\n{gone}", kept(&world));
}

#[test]
fn snapshots_of_agents_push_out_none_that_a_person_took() {
    let world = world();
    for number in 0..8 {
        fs::write(world.path("app/file"), number.to_string()).unwrap();
        assert_eq!(as_agent(&world, &[("CLAUDECODE", "1")], &["snapshot", "app"]).exit, 0);
    }
    let listed = world.run(&["snapshots", "--json"], "").json_lines();
    let whys: Vec<&str> = listed.iter().filter_map(|each| each["why"].as_str()).collect();
    assert_eq!(whys, ["agent", "agent", "agent", "person"], "{listed:?}");
    assert_eq!(listed[3]["note"], "mine");
    // Nor where there is no room left.
    let fill = |number: u32, variables: &[(&str, &str)]| {
        let bytes: Vec<u8> =
            (0..6 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761 + number) >> 13) as u8).collect();
        fs::write(world.path("app/file"), bytes).unwrap();
        as_agent(&world, variables, &["snapshot", "app", "--set", "vault.max-size=16MB"]);
    };
    for number in 0..4 {
        fill(number, &[("CLAUDECODE", "1")]);
    }
    let listed = world.run(&["snapshots", "--json"], "").json_lines();
    assert_eq!(listed.last().unwrap()["note"], "mine", "{listed:?}");
}
