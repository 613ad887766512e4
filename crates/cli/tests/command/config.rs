//! `unstuck config`: what is set, where it comes from, and how a mistake is told.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::{Said, World};

const USER: &str = "config/unstuck/config.toml";
const PROJECT: &str = ".unstuck.toml";

/// The line of `config show --json` about one setting.
#[track_caller]
fn shown(world: &World, key: &str, flags: &[&str]) -> Value {
    let args = [&["config", "show", "--json"], flags].concat();
    find(&world.run(&args, ""), key)
}

#[track_caller]
fn find(said: &Said, key: &str) -> Value {
    let lines = said.json_lines();
    let [only] = lines.iter().filter(|line| line["key"] == key).collect::<Vec<_>>()[..] else {
        panic!("{key} is not shown once:\n{said}");
    };
    only.clone()
}

/// What is left of a text when the folder that is another one in each run is gone.
fn settled(world: &World, said: &Said) -> String {
    let root = fs::canonicalize(world.path("")).unwrap();
    let text = said.to_string().replace(&format!("{}/", root.display()), "");
    text.replace(&format!("{}/", world.path("").display()).replace("//", "/"), "")
}

/// A complaint about a world with this user file, without its folder.
#[track_caller]
fn complaint(file: &str, content: impl AsRef<[u8]>) -> String {
    let world = World::empty().with(file, content);
    let said = world.run(&["config", "show"], "");
    assert_eq!((said.stdout(), said.exit), ("", 2), "{said}");
    settled(&world, &said)
}

#[test]
fn every_setting_is_shown_once_with_its_value_and_layer() {
    let world = World::empty();
    let lines = world.run(&["config", "show", "--json"], "").json_lines();
    let mut keys: Vec<&str> = lines.iter().map(|line| line["key"].as_str().unwrap()).collect();
    assert!(lines.iter().all(|line| line["layer"] == "built-in" && line["source"] == "built-in"));
    keys.sort_unstable();
    let before = keys.len();
    keys.dedup();
    assert_eq!((keys.len(), before), (43, 43), "{keys:?}");
    let people = world.run(&["config", "show"], "");
    assert_eq!(people.stdout().lines().count(), 43, "{people}");
    let page = fs::read_to_string(crate::world::repository("docs/config.md")).unwrap();
    for key in keys {
        assert!(page.contains(&format!("`{}`", key.trim_start_matches("alert."))), "{key} is not documented");
    }
}

#[test]
fn settings_are_shown_to_people_in_columns() {
    let world = World::empty().with(USER, "[ladder]\nmode = \"advise\"\n");
    let said = world.run(&["config", "show", "--set", "hook.enabled=false"], "");
    let text = settled(&world, &said);
    let line = |key: &str| text.lines().find(|line| line.starts_with(key)).unwrap_or("").to_owned();
    let cells = |line: String| {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" | ")
    };
    insta::assert_snapshot!(
        ["store.keep-events", "ladder.mode", "hook.enabled", "alert.validation"].map(line).map(cells).join("\n"),
        @r"
    store.keep-events | 30d | built-in
    ladder.mode | advise | user (config/unstuck/config.toml:2:1)
    hook.enabled | false | flags (--set)
    alert.validation | > 100 failures in 24h | built-in
    "
    );
}

#[test]
fn a_long_value_moves_the_column_behind_it_for_all() {
    let long = format!("/{}", "long/".repeat(20));
    let world = World::empty();
    let said = world.run(&["config", "--set", &format!("store.state-dir={long}")], "");
    let ends: Vec<Option<usize>> = said
        .stdout()
        .lines()
        .map(|line| line.find("  built-in").or_else(|| line.find("  flags (--set)")))
        .collect();
    assert!(ends.iter().all(|end| *end == ends[0] && *end > Some(long.len())), "{ends:?}\n{said}");
}

#[test]
fn without_a_word_more_all_settings_are_shown() {
    let world = World::empty().with(USER, "[ladder]\nmode = \"advise\"\n");
    assert_eq!(world.run(&["config"], ""), world.run(&["config", "show"], ""));
    assert_eq!(world.run(&["config", "--json"], ""), world.run(&["config", "show", "--json"], ""));
    let said = world.run(&["config", "--lang", "zh"], "");
    assert!(said.stdout().contains("  内置\n") && said.stdout().contains("  用户 ("), "{said}");
}

#[test]
fn each_layer_beats_the_weaker_one_from_outside_too() {
    let value = |world: &World, flags: &[&str]| {
        let line = shown(world, "store.keep-events", flags);
        format!("{} {}", line["value"].as_str().unwrap(), line["layer"].as_str().unwrap())
    };
    let world = World::empty();
    assert_eq!(value(&world, &[]), "30d built-in");
    let world = world.with(USER, "store.keep-events = \"20d\"");
    assert_eq!(value(&world, &[]), "20d user");
    let world = world.with(PROJECT, "store.keep-events = \"10d\"");
    assert_eq!(value(&world, &[]), "10d project");
    assert_eq!(value(&world, &["--set", "store.keep-events=5d"]), "5d flags");
    let mut command = world.command(&["config", "show", "--json"]);
    let said = Said::by(command.env("UNSTUCK_STORE_KEEP_EVENTS", "7d").spawn().unwrap());
    let line = find(&said, "store.keep-events");
    assert_eq!(
        line,
        json!({"key": "store.keep-events", "value": "7d", "layer": "environment", "source": "UNSTUCK_STORE_KEEP_EVENTS"})
    );
}

#[test]
fn a_flag_counts_wherever_it_stands() {
    let said = World::empty()
        .run(&["--set", "output.head=1KB", "config", "show", "--json", "--set", "output.tail=2KB"], "");
    assert_eq!(find(&said, "output.tail")["value"], "2KB");
    assert_eq!(find(&said, "output.head")["value"], "1KB");
}

#[test]
fn a_typo_names_the_nearest_setting() {
    let check = |text: &str, words: &[&str]| {
        World::empty().with(USER, text).run(&["config", "show"], "").complains(2, words);
    };
    check(
        "[store]\nkeep-evnts = \"1d\"\n",
        &["config.toml:2:1: no setting is called store.keep-evnts\n", "did you mean store.keep-events?"],
    );
    check("[stor]\n", &["config.toml:1:2: no setting is called stor\n", "did you mean [store]?"]);
    check(
        "[[alert]]\nname = \"x\"\ncomand = [\"a\"]\n",
        &["config.toml:3:1: alert x: has no field comand; did you mean command?"],
    );
    let event = |written: &str| {
        format!("[[alert]]\nname = \"x\"\nwhen = \"event\"\nwithin = \"1h\"\nevent = \"{written}\"\n")
    };
    check(
        &event("hlat"),
        &["config.toml:5:1: alert x: event must be a known word, not \"hlat\"; did you mean halt?"],
    );
    check(&event("zzz"), &["alert x: event must be one of tool:start, ", "not \"zzz\""]);
    let within = event("halt").replace("1h", "1ms");
    check(&within, &["within must be a duration of 1s or more, such as \"1h\", not \"1ms\""]);
    World::empty()
        .run(&["config", "show", "--set", "ladder.mod=full"], "")
        .complains(2, &["--set: no setting is called ladder.mod", "did you mean ladder.mode?"]);
}

#[test]
fn a_mistake_in_an_agent_is_named_with_what_is_wanted() {
    let check = |fields: &str, words: &[&str]| {
        let world = World::empty().with(USER, format!("[agent.mine]\n{fields}\n"));
        world.run(&["config", "show"], "").complains(2, words);
    };
    check("programm = \"x\"", &["config.toml:2:1: agent mine: has no field programm; did you mean program?"]);
    check("program = 3", &["program must be a text on one line, not 3"]);
    check("args = \"run\"", &["args must be a list of texts such as [\"run\", \"{prompt}\"], not \"run\""]);
    check("resume = [\"--continue\"]", &["resume must be a list with {session} in it, such as"]);
    check("session = \"id\"", &["session must be a text on one line with {session} in it", "not \"id\""]);
    check("retries = 9", &["retries must be a whole number from 0 to 5, not 9"]);
    check("may-write = \"no\"", &["may-write must be true or false, not \"no\""]);
    check("idle-timeout = \"0s\"", &["idle-timeout must be a duration of 1s or more"]);
    check("timeout = 60", &["timeout must be a duration of 1s or more", "not 60"]);
    let world = World::empty().with(USER, "[agent.Mine]\nprogram = \"x\"\n");
    world.run(&["config", "show"], "").complains(2, &["agent Mine: needs a name of a-z, 0-9 and -"]);
    let world = World::empty().with(USER, "agent = \"mine\"\n");
    world.run(&["config", "show"], "").complains(2, &["agent must be"]);
    let world = World::empty().with(PROJECT, "[agent.mine]\nprogram = \"touch\"\n");
    world.run(&["agent", "mine", "--", "pwned"], "").complains(125, &["agent may not be set by a project"]);
}

#[test]
fn other_commands_are_stopped_by_a_mistake_as_well() {
    let world = World::empty().with(USER, "[store]\nkeep-evnts = \"1d\"\n");
    world.run(&["diagnose", "--json"], "boom").complains(2, &["no setting is called store.keep-evnts"]);
    world.run(&["rules", "list"], "").complains(2, &["did you mean store.keep-events?"]);
}

#[test]
fn a_project_can_neither_loosen_nor_have_anything_run() {
    insta::assert_snapshot!(complaint(PROJECT, "[store]\nkeep-events = \"90d\"\n"), @r"
    --- stderr
    unstuck: .unstuck.toml:2:1: store.keep-events = 90d would loosen 30d: a project may only lower it
    hint: `unstuck config edit` opens your own file, which may set it
    --- exit 2
    ");
    insta::assert_snapshot!(complaint(PROJECT, "[[alert]]\nname = \"x\"\ncommand = [\"touch\", \"pwned\"]\n"), @r"
    --- stderr
    unstuck: .unstuck.toml:1:3: alert may not be set by a project: it is the user's alone
    hint: `unstuck config edit` opens your own file, which may set it
    --- exit 2
    ");
    insta::assert_snapshot!(complaint(PROJECT, "hook.enabled = false"), @r"
    --- stderr
    unstuck: .unstuck.toml:1:6: hook.enabled may not be set by a project: it is the user's alone
    hint: `unstuck config edit` opens your own file, which may set it
    --- exit 2
    ");
}

#[test]
fn broken_toml_is_told_with_line_and_column() {
    insta::assert_snapshot!(complaint(USER, "[store]\nkeep-events = \"1d\n"), @r#"
    --- stderr
    unstuck: config/unstuck/config.toml:2:18: invalid basic string, expected `"`
    --- exit 2
    "#);
    insta::assert_snapshot!(complaint(USER, "[store\n"), @r"
    --- stderr
    unstuck: config/unstuck/config.toml:1:7: unclosed table, expected `]`
    --- exit 2
    ");
}

#[test]
fn a_file_that_is_no_settings_file_is_refused() {
    let check = |content: &[u8], words: &str| {
        let said = complaint(USER, content);
        assert!(said.contains(words), "{said}");
    };
    check(&vec![b'#'; (1 << 20) + 1], "config.toml is larger than 1 MB");
    check(b"[store]\n\xff\xfe", "config.toml:2:1: is not UTF-8 text");
    check(b"\x7fELF\0\0\0", "config.toml:1:");
    let mut longest = vec![b'#'; 1 << 20];
    longest[(1 << 20) - 1] = b'\n';
    assert_eq!(World::empty().with(USER, longest).run(&["config", "show"], "").exit, 0);
}

#[test]
fn whatever_stands_in_the_place_of_a_file_makes_nobody_wait() {
    let check = |file: &str, make: &dyn Fn(&std::path::Path)| {
        let world = World::empty().with("config/unstuck/other", "");
        make(&world.path(file));
        let start = Instant::now();
        let said = world.run(&["config", "show"], "");
        assert!(start.elapsed() < Duration::from_secs(5), "{said}");
        said.complains(2, &[file]);
    };
    for file in [USER, PROJECT] {
        check(file, &|path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()));
        check(file, &|path| fs::create_dir(path).unwrap());
        check(file, &|path| symlink("/dev/zero", path).unwrap());
        check(file, &|path| symlink("nowhere", path).unwrap());
        check(file, &|path| symlink(path, path).unwrap());
    }
}

#[test]
fn a_file_that_may_not_be_read_is_named() {
    let world = World::empty().with(USER, "");
    fs::set_permissions(world.path(USER), fs::Permissions::from_mode(0o000)).unwrap();
    // Whoever may read everything proves nothing here.
    if fs::File::open(world.path(USER)).is_err() {
        world.run(&["config", "show"], "").complains(2, &["could not read", "config.toml"]);
    }
}

#[test]
fn a_missing_file_or_folder_sets_nothing() {
    assert_eq!(World::empty().run(&["config", "show"], "").exit, 0);
    assert_eq!(World::empty().with("config", "a file, not a folder").run(&["config", "show"], "").exit, 0);
    let mut command = World::empty().command(&["config", "show", "--json"]);
    command.env_remove("HOME").env_remove("XDG_CONFIG_HOME").current_dir("/");
    let said = Said::by(command.spawn().unwrap());
    assert_eq!(find(&said, "store.state-dir")["value"], "auto");
}

#[test]
fn the_store_lies_in_the_state_folder_of_the_platform_unless_the_user_says_otherwise() {
    let check = |state_home: Option<&str>, text: &str, expected: &str| {
        let world = World::empty().with(USER, text);
        let mut command = world.command(&["config", "show", "--json"]);
        if let Some(folder) = state_home {
            command.env("XDG_STATE_HOME", folder);
        }
        let line = find(&Said::by(command.spawn().unwrap()), "store.state-dir");
        let root = format!("{}/", world.path("").display()).replace("//", "/");
        assert_eq!(line["value"].as_str().unwrap().replace(&root, "~/"), expected);
    };
    check(None, "", "~/.local/state/unstuck");
    check(Some("/var/state"), "", "/var/state/unstuck");
    check(Some("not/absolute"), "", "~/.local/state/unstuck");
    check(Some("/var/state"), "store.state-dir = \"~/mine\"", "~/mine");
}

#[test]
fn without_a_home_there_is_no_file_to_edit() {
    let mut command = World::empty().command(&["config", "edit"]);
    command.env_remove("HOME").env_remove("XDG_CONFIG_HOME").current_dir("/");
    let said = Said::by(command.spawn().unwrap());
    said.complains(
        125,
        &["there is no place for this file: neither XDG_CONFIG_HOME nor HOME names a folder"],
    );
}

#[test]
fn hostile_text_of_a_project_reaches_no_terminal() {
    let said = complaint(PROJECT, "\"a\\u001b]0;owned\\u0007\\u202e\" = 1\n");
    assert!(said.contains("no setting is called a\\u{1b}]0;owned\\u{7}\\u{202e}"), "{said:?}");
    assert!(!said.contains('\u{1b}') && !said.contains('\u{202e}'));
    let said = complaint(PROJECT, "a\u{1b}[31m = 1\n");
    assert!(!said.contains('\u{1b}'), "{said:?}");
    let folder = "a\u{1b}[31m/b";
    let world = World::empty().with(&format!("{folder}/.unstuck.toml"), "x = 1");
    let mut command = world.command(&["config", "show"]);
    let said = Said::by(command.current_dir(world.path(folder)).spawn().unwrap());
    said.complains(2, &["a\\u{1b}[31m/b/.unstuck.toml:1:1: no setting is called x"]);
    let said = complaint(PROJECT, "[ladder]\nmode = \"\\u001b[2J\"\n");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn one_setting_is_explained() {
    let world = World::empty()
        .with(USER, "[store]\nkeep-events = \"20d\"\n")
        .with(PROJECT, "store.keep-events = \"10d\"\n");
    let explained = world.run(&["config", "explain", "store.keep-events"], "");
    insta::assert_snapshot!(settled(&world, &explained), @r#"
    --- stdout
    store.keep-events: How long events of the timeline are kept.
      value     10d (project)
      type      a duration such as 150ms, 30s, 24h or 30d, from 1h to 3650d
      set by    system and user file, variable, --set; a project may only lower it
      variable  UNSTUCK_STORE_KEEP_EVENTS
      layers    built-in     30d
                user         20d          config/unstuck/config.toml:2:1
                project      10d          .unstuck.toml:1:7
    --- exit 0
    "#);
    let explained = world.run(&["--lang", "zh", "config", "explain", "store.keep-events"], "");
    insta::assert_snapshot!(settled(&world, &explained), @r"
    --- stdout
    store.keep-events: 时间线上的事件保留多久。
      当前值    10d (项目)
      类型      时长，例如 150ms、30s、24h 或 30d，从 1h 到 3650d
      可由      系统文件、用户文件、环境变量、--set；项目只能调低
      环境变量  UNSTUCK_STORE_KEEP_EVENTS
      各层      内置         30d
                用户         20d          config/unstuck/config.toml:2:1
                项目         10d          .unstuck.toml:1:7
    --- exit 0
    ");
    let answer = world.run(&["config", "explain", "store.keep-events", "--json"], "").json();
    assert_eq!(
        (&answer["value"], &answer["layer"], &answer["project"]),
        (&json!("10d"), &json!("project"), &json!("lower"))
    );
    assert_eq!(answer["layers"].as_array().unwrap().len(), 3);
}

#[test]
fn an_agent_is_shown_as_its_layers_set_it_and_without_its_secrets() {
    let agents = "[agent.mine]\nprogram = \"my-agent\"\nargs = [\"--token=ghp_0123456789abcdefghijklmnopqrstuvwxyz\", \"{prompt}\"]\nidle-timeout = \"5m\"\n\n[agent.claude]\nretries = 2\n";
    let world = World::empty().with(USER, agents);
    let line = shown(&world, "agent.mine", &[]);
    assert_eq!(line["layer"], "user", "{line}");
    assert_eq!(
        (&line["value"]["program"], &line["value"]["idle-timeout"]),
        (&"my-agent".into(), &"5m".into())
    );
    assert!(!line.to_string().contains("ghp_0123456789"), "{line}");
    assert_eq!(shown(&world, "agent.claude", &[])["value"], serde_json::json!({ "retries": 2 }));
    let table = world.run(&["config", "show"], "");
    assert!(table.stdout().contains(r#"{"retries":2}"#), "{table}");
    let explained = world.run(&["config", "explain", "agent.mine"], "");
    assert!(explained.stdout().contains("idle-timeout 5m"), "{explained}");
    world.run(&["config", "explain", "agent.mime"], "").complains(2, &["did you mean agent.mine?"]);
}

#[test]
fn an_alert_is_explained_without_its_secrets() {
    let rule = "[[alert]]\nname = \"halted\"\nwebhook = \"https://hooks.example/T0/secret-path\"\ncommand = [\"notify\", \"--token=ghp_0123456789abcdefghijklmnopqrstuvwxyz\"]\n";
    let world = World::empty().with(USER, rule);
    insta::assert_snapshot!(settled(&world, &world.run(&["config", "explain", "alert.halted"], "")), @r#"
    --- stdout
    alert.halted: An agent was halted: it needs a person.
      enabled      true
      when         event
      event        halt
      more-than    0
      within       1h
      command      ["notify","--token=[redacted:github-token]"]
      webhook      https://hooks.example/…
      layer        user (config/unstuck/config.toml:1:1)
    --- exit 0
    "#);
    let line = shown(&world, "alert.halted", &[]);
    assert_eq!(line["value"]["webhook"], "https://hooks.example/…");
    let text = world.run(&["config", "show", "--json"], "");
    assert!(!text.stdout().contains("secret-path") && !text.stdout().contains("ghp_0123"), "{text}");
}

#[test]
fn explaining_a_name_that_does_not_exist_names_the_nearest() {
    let check =
        |name: &str, words: &[&str]| World::empty().run(&["config", "explain", name], "").complains(2, words);
    check(
        "store.keep-event",
        &["no setting is called store.keep-event\n", "did you mean store.keep-events?"],
    );
    check("keep-events", &["did you mean store.keep-events?"]);
    check("alert.haltd", &["did you mean alert.halted?"]);
    check("zzzz", &["no setting is called zzzz\n", "`unstuck config show` lists all"]);
}

#[test]
fn the_language_of_people_is_a_setting_and_a_flag_is_stronger() {
    let world = World::empty().with(USER, "language.people = \"zh\"");
    let says = |flags: &[&str]| {
        let args = [flags, &["config", "explain", "hook.enabled"]].concat();
        world.run(&args, "").stdout().contains("钩子是否起作用")
    };
    assert!(says(&[]));
    assert!(!says(&["--lang", "en"]));
    assert!(!says(&["--set", "language.people=en"]));
}

/// Runs `config edit` with an editor that does this to the file `$1`.
fn edited(world: &World, script: &str, flags: &[&str]) -> Said {
    let editor = world.path("editor");
    fs::write(&editor, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o700)).unwrap();
    let args = [&["config", "edit"], flags].concat();
    let mut command = world.command(&args);
    command.env("EDITOR", &editor).stdin(Stdio::null());
    Said::by(command.spawn().unwrap())
}

#[test]
fn editing_makes_a_private_file_that_sets_nothing_and_shows_everything() {
    let world = World::empty();
    let said = edited(&world, "true", &[]);
    assert_eq!((said.stdout(), said.stderr(), said.exit), ("", "", 0), "{said}");
    let mode = |path: &str| fs::metadata(world.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(USER), mode("config/unstuck")), (0o600, 0o700));
    let text = fs::read_to_string(world.path(USER)).unwrap();
    assert!(text.contains("# keep-events = \"30d\"\n") && text.contains("# [[alert]]\n"), "{text}");
    assert_eq!(shown(&world, "store.keep-events", &[])["layer"], "built-in");
    // What is commented out is the default, so taking the signs away changes nothing and is no mistake.
    let settings = |line: &&str| line.starts_with('[') || (line.starts_with("# ") && line.contains(" = "));
    let uncommented: Vec<&str> = text
        .lines()
        .filter(settings)
        .take_while(|line| !line.contains("name ="))
        .map(|line| line.trim_start_matches("# "))
        .collect();
    fs::write(world.path(USER), uncommented.join("\n")).unwrap();
    let line = shown(&world, "store.keep-events", &[]);
    assert_eq!((&line["value"], &line["layer"]), (&json!("30d"), &json!("user")));
}

#[test]
fn editing_keeps_what_is_there_and_tells_every_mistake() {
    let world = World::empty().with(USER, "# mine\n");
    let said = edited(&world, "printf '[store]\\nkeep-evnts = 1\\nmax-size = 5\\n' >> \"$1\"", &[]);
    insta::assert_snapshot!(settled(&world, &said), @r#"
    --- stdout
    config/unstuck/config.toml:3:1: no setting is called store.keep-evnts (did you mean store.keep-events?)
    config/unstuck/config.toml:4:1: store.max-size must be a size such as 64KB or 1GB, from 16MB to 1TB, not of type integer (`unstuck config explain store.max-size` tells more)
    --- exit 1
    "#);
    assert!(fs::read_to_string(world.path(USER)).unwrap().starts_with("# mine\n"));
    let said = edited(&world, "printf '# better\\n' > \"$1\"", &[]);
    assert_eq!((said.stdout(), said.exit), ("", 0), "{said}");
}

#[test]
fn editing_a_project_begins_with_what_it_may_set() {
    let world = World::empty().with(".git/HEAD", "").with("deep/file", "");
    let said = edited(&world, "cat \"$1\"", &["--project"]);
    assert_eq!(said.exit, 0, "{said}");
    assert!(
        said.stdout().contains("may only tighten") && said.stdout().contains("# mode = \"enforce\""),
        "{said}"
    );
    assert!(!said.stdout().contains("state-dir") && !said.stdout().contains("alert"), "{said}");
    assert!(world.path(PROJECT).is_file());
    let said = edited(&world, "echo 'hook.enabled = false' > \"$1\"", &["--project"]);
    assert_eq!(said.exit, 1, "{said}");
    assert!(said.stdout().contains("hook.enabled may not be set by a project"), "{said}");
}

#[test]
fn an_editor_that_fails_or_is_not_there_is_told() {
    let world = World::empty();
    let said = edited(&world, "exit 3", &[]);
    assert_eq!((said.stderr(), said.exit), ("unstuck: the editor failed; the file is as it left it\n", 1));
    let mut command = world.command(&["config", "edit"]);
    let said = Said::by(command.env("VISUAL", "no-such-editor --wait").spawn().unwrap());
    said.complains(
        125,
        &["could not start the editor no-such-editor: there is no such program", "set VISUAL or EDITOR"],
    );
}

#[test]
#[cfg(target_os = "linux")]
fn an_editor_finds_the_terminal_it_was_started_on() {
    // `script` gives the command a terminal of its own, as a person would have.
    let world = World::empty();
    let editor = world.path("editor");
    fs::write(&editor, "#!/bin/sh\ntest -t 0 && test -t 1 && test -t 2 && echo '# all three' > \"$1\"\n")
        .unwrap();
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o700)).unwrap();
    let ours = world.command(&["config", "edit"]);
    let mut command = Command::new("script");
    command.args(["-qec", &format!("{} config edit", ours.get_program().display()), "/dev/null"]);
    command
        .current_dir(world.path(""))
        .env("HOME", world.path(""))
        .env("XDG_CONFIG_HOME", world.path("config"));
    command.env("VISUAL", &editor).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(child) = command.spawn() else { return };
    let said = Said::by(child);
    assert_eq!(fs::read_to_string(world.path(USER)).unwrap(), "# all three\n", "{said}");
}

#[test]
fn the_files_are_named_whether_they_are_there_or_not() {
    let world = World::empty().with(USER, "this is broken");
    let said = world.run(&["config", "path"], "");
    insta::assert_snapshot!(settled(&world, &said), @r#"
    --- stdout
    system   /etc/unstuck/config.toml  (not there)
    user     config/unstuck/config.toml
    project  .unstuck.toml  (not there)
    --- exit 0
    "#);
    let lines = world.run(&["config", "path", "--json"], "").json_lines();
    assert_eq!(
        lines.iter().map(|line| line["exists"].as_bool().unwrap()).collect::<Vec<_>>()[1..],
        [true, false]
    );
}
