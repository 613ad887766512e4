//! Layers, on real files in a folder of their own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use unstuck_judge::{Kind, Lang};
use unstuck_store::AlertWhen;

use super::sections::{Filesystem, Mode, RewriteMode};
use super::tools::ToolModes;
use super::value::Shape;
use super::*;

/// A machine with only the files and variables that were put there.
struct Machine {
    root: TempDir,
    variables: Vec<(String, OsString)>,
    flags: Vec<String>,
}

impl Machine {
    fn empty() -> Machine {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("home/project/.git")).unwrap();
        fs::create_dir_all(root.path().join("home/project/deep/down")).unwrap();
        Machine { root, variables: Vec::new(), flags: Vec::new() }
    }

    fn with(self, path: &str, text: impl AsRef<[u8]>) -> Machine {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn system(self, text: &str) -> Machine {
        self.with("etc/config.toml", text)
    }

    fn user(self, text: &str) -> Machine {
        self.with("home/.config/unstuck/config.toml", text)
    }

    fn project(self, text: &str) -> Machine {
        self.with("home/project/.unstuck.toml", text)
    }

    fn variable(mut self, name: &str, value: &str) -> Machine {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    fn flag(mut self, flag: &str) -> Machine {
        self.flags.push(flag.to_owned());
        self
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn around(&self, folder: &str) -> Around {
        let home = self.path("home");
        Around {
            config_folder: Some(home.join(".config/unstuck")),
            state_folder: Some(home.join(".local/state/unstuck")),
            home: Some(home),
            system_file: self.path("etc/config.toml"),
            working_folder: Some(self.path(folder)),
            editor: "true".to_owned(),
            variables: self.variables.clone(),
        }
    }

    fn load(&self) -> (Settings, Vec<SettingsError>) {
        Settings::load_leniently(&self.around("home/project/deep/down"), &self.flags)
    }

    #[track_caller]
    fn sound(&self) -> Settings {
        let (settings, mistakes) = self.load();
        assert!(mistakes.is_empty(), "{mistakes:?}");
        settings
    }

    /// Every mistake, without the folder that is another one in each run.
    fn mistakes(&self) -> Vec<String> {
        let root = format!("{}/", self.root.path().display());
        self.load().1.iter().map(|mistake| mistake.to_string().replace(&root, "")).collect()
    }
}

const KEEP: &str = "[store]\nkeep-events = ";

/// The value and the layer of a setting, on one line.
#[track_caller]
fn check(machine: &Machine, name: &str, expected: &str) {
    let setting = machine.sound().setting(Key::named(name).unwrap());
    assert_eq!(format!("{} from {}", setting.value, setting.layer.word()), expected);
}

/// The only mistake.
#[track_caller]
fn check_mistake(machine: &Machine, expected: &str) {
    assert_eq!(machine.mistakes(), [expected]);
}

#[test]
fn the_built_in_file_says_what_the_table_of_keys_says() {
    let written = Written::built_in(DEFAULTS);
    assert!(written.mistakes.is_empty(), "{:?}", written.mistakes);
    let in_file: Vec<(&str, &Value)> =
        written.values.iter().map(|(key, value, _)| (key.row().name, value)).collect();
    let defaults: Vec<Value> = Key::ALL.iter().map(|key| key.default()).collect();
    for (key, default) in Key::ALL.iter().zip(&defaults) {
        let name = key.row().name;
        let said: Vec<&&Value> =
            in_file.iter().filter(|(other, _)| *other == name).map(|(_, value)| value).collect();
        assert_eq!(said, [&default], "{name}");
        assert!(!key.row().doc(Lang::En).is_empty() && !key.row().doc(Lang::Zh).is_empty());
    }
    assert_eq!(in_file.len(), Key::ALL.len());
}

#[test]
fn the_built_in_alerts_are_sound() {
    let names: Vec<String> = built_in_alerts().into_iter().map(|alert| alert.rule().unwrap().name).collect();
    assert_eq!(names, ["validation", "failure-rate", "halted", "regressed", "own-faults"]);
}

#[test]
fn every_word_of_every_setting_has_a_meaning() {
    for key in Key::ALL {
        let Shape::Word(words) = key.row().shape else { continue };
        for word in words {
            let settings = Machine::empty().flag(&format!("{}={word}", key.row().name)).sound();
            assert_eq!(settings.setting(*key).value, Value::Word(word));
            drop((
                settings.store(),
                settings.ladder(),
                settings.rewrite(),
                settings.language(),
                settings.hook(),
                settings.vault(),
            ));
        }
    }
}

#[test]
fn without_any_file_every_section_has_its_defaults() {
    let machine = Machine::empty();
    let settings = machine.sound();
    let store = settings.store();
    assert_eq!(store.state_dir, StateDir::At(machine.path("home/.local/state/unstuck")));
    assert_eq!(store.filesystem, Filesystem::Auto);
    assert_eq!((store.wait_before, store.wait_after), (Duration::from_millis(150), Duration::from_secs(1)));
    assert_eq!((store.keep_events.as_secs(), store.keep_calls.as_secs()), (30 * 86_400, 180 * 86_400));
    assert_eq!((store.max_size, store.tool_errors, store.seal_after.as_secs()), (1 << 30, false, 6 * 3_600));
    assert_eq!((settings.output().head, settings.output().tail, settings.output().input), (4096, 8192, 4096));
    assert_eq!(settings.ladder().mode, Mode::Enforce);
    assert_eq!(settings.rewrite().of("apt-yes"), RewriteMode::Suggest);
    assert_eq!((settings.language().people, settings.language().model), (People::Auto, Lang::En));
    assert_eq!(settings.problems().new_for, Duration::from_secs(86_400));
    assert_eq!(settings.problems().resolved_after, Duration::from_secs(14 * 86_400));
    assert_eq!((settings.ladder().tools, settings.hook().attended), (ToolModes::default(), Attended::Auto));
    let hook = settings.hook();
    assert_eq!((hook.enabled, hook.hold_max), (true, Duration::from_secs(5)));
    assert_eq!(
        (hook.deadline_before, hook.deadline_after),
        (Duration::from_millis(150), Duration::from_secs(1))
    );
    let vault = settings.vault();
    assert_eq!((vault.protect, vault.deadline.as_secs()), (Protect::Risky, 20));
    assert_eq!((vault.per_target, vault.max_age.as_secs()), (3, 86_400));
    assert_eq!((vault.max_size, vault.min_free, vault.never.len()), (10 << 30, 1 << 30, 0));
}

#[test]
fn a_rewrite_goes_as_far_as_its_row_was_opted_into() {
    let check = |text: &str, apt: RewriteMode, python: RewriteMode| {
        let rewrite = Machine::empty().user(text).sound().rewrite();
        assert_eq!((rewrite.of("apt-yes"), rewrite.of("python-to-python3")), (apt, python), "{text}");
    };
    check("rewrite.mode = \"auto\"", RewriteMode::Auto, RewriteMode::Auto);
    check("rewrite.mode = \"auto\"\nrewrite.auto = \"apt-yes\"", RewriteMode::Auto, RewriteMode::Suggest);
    check("rewrite.auto = \"apt-yes\"", RewriteMode::Suggest, RewriteMode::Suggest);
    check("rewrite.mode = \"off\"\nrewrite.auto = \"apt-yes\"", RewriteMode::Off, RewriteMode::Off);
    let off = Machine::empty().user("rewrite.mode = \"auto\"").project("rewrite.mode = \"off\"").sound();
    assert_eq!(off.rewrite().of("apt-yes"), RewriteMode::Off);
}

#[test]
fn without_a_home_the_store_has_no_place() {
    let mut around = Machine::empty().around("home");
    around.state_folder = None;
    assert_eq!(Settings::load(&around, &[]).unwrap().store().state_dir, StateDir::Nowhere);
}

#[test]
fn every_layer_beats_the_weaker_ones() {
    let machine = Machine::empty();
    check(&machine, "store.keep-events", "30d from built-in");
    let machine = machine.system(&format!("{KEEP}\"29d\""));
    check(&machine, "store.keep-events", "29d from system");
    let machine = machine.user(&format!("{KEEP}\"28d\""));
    check(&machine, "store.keep-events", "28d from user");
    let machine = machine.project(&format!("{KEEP}\"27d\""));
    check(&machine, "store.keep-events", "27d from project");
    let machine = machine.variable("UNSTUCK_STORE_KEEP_EVENTS", "26d");
    check(&machine, "store.keep-events", "26d from environment");
    let machine = machine.flag("store.keep-events=25d");
    check(&machine, "store.keep-events", "25d from flags");
    let machine = machine.flag("store.keep-events = 24d");
    check(&machine, "store.keep-events", "24d from flags");
    let layers: Vec<String> =
        machine.sound().in_every_layer(Key::KeepEvents).iter().map(|set| set.value.to_string()).collect();
    assert_eq!(layers, ["30d", "29d", "28d", "27d", "26d", "25d", "24d"]);
}

#[test]
fn a_setting_remembers_the_line_it_stands_on() {
    let machine = Machine::empty().user("# mine\n\n[output]\n  tail = \"1KB\"\n");
    let place = machine.sound().setting(Key::OutputTail).place;
    assert_eq!(
        place.to_string(),
        format!("{}:4:3", machine.path("home/.config/unstuck/config.toml").display())
    );
}

#[test]
fn a_project_may_tighten() {
    let tightened = "[store]\nkeep-calls = \"2d\"\nmax-size = \"16MB\"\n[output]\nhead = \"0B\"\n";
    let machine = Machine::empty().project(tightened);
    check(&machine, "store.keep-calls", "2d from project");
    check(&machine, "output.head", "0B from project");
    let mode = |user: &str, project: &str| {
        Machine::empty()
            .user(&format!("ladder.mode = \"{user}\""))
            .project(&format!("ladder.mode = \"{project}\""))
    };
    check(&mode("shadow", "advise"), "ladder.mode", "advise from project");
    check(&mode("advise", "enforce"), "ladder.mode", "enforce from project");
    check(&mode("enforce", "enforce"), "ladder.mode", "enforce from project");
    let machine = Machine::empty().user("store.tool-errors = true").project("store.tool-errors = false");
    check(&machine, "store.tool-errors", "false from project");
    check(&Machine::empty().project("vault.protect = \"edits\""), "vault.protect", "edits from project");
}

#[test]
fn a_project_may_not_loosen_and_the_setting_stays_as_it_was() {
    let machine = Machine::empty().user(&format!("{KEEP}\"7d\"")).project(&format!("{KEEP}\"8d\""));
    check_mistake(
        &machine,
        "home/project/.unstuck.toml:2:1: store.keep-events = 8d would loosen 7d: a project may only lower it",
    );
    assert_eq!(machine.load().0.setting(Key::KeepEvents).layer, Layer::User);
    let loosened = [
        ("ladder.mode = \"shadow\"", "ladder.mode = shadow would loosen enforce"),
        ("rewrite.mode = \"auto\"", "rewrite.mode = auto would loosen suggest"),
        ("output.tail = \"1MB\"", "output.tail = 1MB would loosen 8KB"),
        ("store.tool-errors = true", "store.tool-errors = true would loosen false"),
        ("store.max-size = \"2GB\"", "store.max-size = 2GB would loosen 1GB"),
        ("hook.hold-max = \"6s\"", "hook.hold-max = 6s would loosen 5s"),
        ("vault.protect = \"off\"", "vault.protect = off would loosen risky"),
    ];
    for (text, expected) in loosened {
        let mistakes = Machine::empty().project(text).mistakes();
        assert!(matches!(&mistakes[..], [only] if only.contains(expected)), "{mistakes:?}");
    }
}

#[test]
fn a_project_says_of_tools_only_what_is_stricter_and_the_rest_stays() {
    let machine = |user: &str, project: &str| Machine::empty().user(user).project(project);
    let tools = "ladder.tools";
    check(
        &machine("ladder.tools = \"WebFetch=shadow\"", "ladder.tools = \"Bash=enforce\""),
        tools,
        "WebFetch=shadow, Bash=enforce from project",
    );
    check_mistake(
        &machine("ladder.tools = \"Bash=enforce\"", "ladder.tools = \"*=shadow\""),
        "home/project/.unstuck.toml:1:8: ladder.tools = *=shadow would loosen Bash=enforce: \
         a project may only choose a later word of the list",
    );
    // What the person set counts, not the mode that the project itself has made stricter.
    let stricter = "ladder.mode = \"enforce\"\nladder.tools = \"Bash=advise\"";
    check(&machine("ladder.mode = \"advise\"", stricter), tools, "Bash=advise from project");
    assert_eq!(machine("ladder.mode = \"enforce\"", stricter).mistakes().len(), 1);
}

#[test]
fn a_mode_for_one_run_counts_for_all_tools_unless_tools_are_named_there_too() {
    let machine =
        || Machine::empty().user("ladder.tools = \"Bash=enforce\"").variable("UNSTUCK_LADDER_MODE", "shadow");
    assert_eq!(machine().sound().ladder().tools, ToolModes::default());
    let named = machine().flag("ladder.tools=mcp__*=advise, Bash=shadow").sound().ladder().tools;
    assert_eq!(named.to_string(), "mcp__*=advise, Bash=shadow");
    let alone = Machine::empty().user("ladder.tools = \"Bash=advise\"").sound().ladder();
    assert_eq!((alone.tools.to_string().as_str(), alone.mode), ("Bash=advise", Mode::Enforce));
}

#[test]
fn what_is_the_users_alone_no_project_may_set_even_to_the_same_value() {
    for key in Key::ALL.iter().filter(|key| key.row().project == Project::Never) {
        let row = key.row();
        let quote = if row.shape.is_quoted() { "\"" } else { "" };
        let machine = Machine::empty().project(&format!("{} = {quote}{}{quote}", row.name, row.default));
        let mistakes = machine.mistakes();
        let expected = format!("{} may not be set by a project: it is the user's alone", row.name);
        assert!(matches!(&mistakes[..], [only] if only.ends_with(&expected)), "{mistakes:?}");
        assert_eq!(machine.load().0.setting(*key).layer, Layer::BuiltIn);
    }
}

#[test]
fn a_project_may_not_name_anything_that_is_run_or_contacted() {
    let alert = "[[alert]]\nname = \"halted\"\ncommand = [\"sh\", \"-c\", \"touch pwned\"]\nwebhook = \"https://evil.example\"\n";
    let machine = Machine::empty().project(alert);
    check_mistake(
        &machine,
        "home/project/.unstuck.toml:1:3: alert may not be set by a project: it is the user's alone",
    );
    let alerts = machine.load().0.alerts();
    assert!(alerts.iter().all(|alert| alert.rule.command.is_empty() && alert.rule.webhook.is_none()));
}

#[test]
fn the_nearest_project_file_counts_up_to_the_repository() {
    let deep = |machine: &Machine| {
        let (settings, mistakes) = machine.load();
        assert!(mistakes.is_empty(), "{mistakes:?}");
        settings.setting(Key::KeepEvents).value.to_string()
    };
    let machine = Machine::empty().project(&format!("{KEEP}\"20d\""));
    assert_eq!(deep(&machine), "20d");
    let machine = machine.with("home/project/deep/.unstuck.toml", format!("{KEEP}\"10d\""));
    assert_eq!(deep(&machine), "10d");
    let machine = Machine::empty().with("home/.unstuck.toml", format!("{KEEP}\"10d\""));
    assert_eq!(deep(&machine), "30d", "the repository ends below the home");
}

#[test]
fn no_project_file_is_looked_for_above_the_home_or_in_strangers_folders() {
    let text = format!("{KEEP}\"1d\"");
    let value = |machine: &Machine, folder: &str| {
        fs::create_dir_all(machine.path(folder)).unwrap();
        let around = machine.around(folder);
        Settings::load(&around, &[]).unwrap().setting(Key::KeepEvents).value.to_string()
    };
    let machine = Machine::empty().with(".unstuck.toml", &text);
    assert_eq!(value(&machine, "home/notes"), "30d");
    assert_eq!(value(&machine, "shared/notes"), "30d");
    let machine = Machine::empty().with("home/.unstuck.toml", &text);
    assert_eq!(value(&machine, "home/notes"), "24h");
    let machine = Machine::empty().with("shared/notes/.unstuck.toml", &text);
    assert_eq!(value(&machine, "shared/notes"), "24h");
}

#[test]
fn an_unknown_name_is_refused_with_its_place_and_the_nearest_name() {
    let check = |text: &str, place: &str, nearest: Option<&str>| {
        let machine = Machine::empty().user(text);
        let [SettingsError::UnknownKey { nearest: found, .. }] = &machine.load().1[..] else {
            panic!("{text}: {:?}", machine.mistakes());
        };
        assert_eq!(found.as_deref(), nearest, "{text}");
        assert!(
            machine.mistakes()[0].contains(&format!("config.toml:{place}: no setting is called")),
            "{text}"
        );
    };
    check("[store]\nkeep-event = \"1d\"", "2:1", Some("store.keep-events"));
    check("[stroe]\nkeep-events = \"1d\"", "1:2", Some("[store]"));
    check("keep-events = \"1d\"", "1:1", Some("store.keep-events"));
    check("[output]\nmax-size = \"1GB\"", "2:1", Some("store.max-size"));
    check("[[alerts]]\nname = \"x\"", "1:3", Some("[alert]"));
    check("[zzzzzz]", "1:2", None);
    check("store.\"\\u001b[31m\" = 1", "1:7", None);
    check("store = 5", "1:1", Some("[store]"));
    let machine = Machine::empty().user("[store]\n\"a\\u001b[31mb\" = 1");
    check_mistake(&machine, "home/.config/unstuck/config.toml:2:1: no setting is called store.a\\u{1b}[31mb");
}

#[test]
fn a_wrong_value_says_what_would_be_right_and_spoils_nothing_else() {
    let machine = Machine::empty().user("[store]\nkeep-events = 30\nkeep-calls = \"9d\"\n");
    check_mistake(
        &machine,
        "home/.config/unstuck/config.toml:2:1: store.keep-events must be a duration such as 150ms, 30s, 24h or 30d, \
         from 1h to 3650d, not of type integer",
    );
    assert_eq!(machine.load().0.setting(Key::KeepCalls).value.to_string(), "9d");
    let wrong = [
        "ladder.mode = \"strict\"",
        "ladder.mode = true",
        "store.tool-errors = \"true\"",
        "store.tool-errors = 1",
        "store.max-size = \"1XB\"",
        "store.max-size = \"1B\"",
        "store.keep-events = \"0s\"",
        "store.keep-events = [\"1d\"]",
        "store.keep-events = { days = 1 }",
        "store.state-dir = \"relative\"",
        "vault.per-target = 0",
        "vault.per-target = \"3\"",
        "vault.per-target = 0x10",
        "vault.never = \".env\"",
        "alert = 5",
        "alert = [1]",
    ];
    for text in wrong {
        let mistakes = Machine::empty().user(text).load().1;
        assert!(matches!(&mistakes[..], [SettingsError::WrongValue { .. }]), "{text}: {mistakes:?}");
    }
}

#[test]
fn a_broken_file_says_nothing_and_names_line_and_column() {
    let machine = Machine::empty()
        .user("[store]\nkeep-events = \"1d\"\nkeep-calls = \n")
        .system(&format!("{KEEP}\"2d\""));
    let mistakes = machine.mistakes();
    assert!(
        matches!(&mistakes[..], [only] if only.starts_with("home/.config/unstuck/config.toml:3:")),
        "{mistakes:?}"
    );
    assert_eq!(machine.load().0.setting(Key::KeepEvents).value.to_string(), "2d");
    let machine = Machine::empty().user("[store]\nkeep-events = \"1d\"\nkeep-events = \"2d\"\n");
    assert!(matches!(&machine.load().1[..], [SettingsError::Syntax { .. }]));
    let deep = format!("x = {}1{}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(matches!(&Machine::empty().user(&deep).load().1[..], [SettingsError::Syntax { .. }, ..]));
}

#[test]
fn a_file_from_windows_reads_the_same() {
    let machine = Machine::empty().user("\u{feff}[store]\r\nkeep-events = \"1d\"\r\n");
    check(&machine, "store.keep-events", "24h from user");
}

#[test]
fn variables_are_checked_like_files() {
    check_mistake(
        &Machine::empty().variable("UNSTUCK_HOOK_ENABLED", "maybe"),
        "UNSTUCK_HOOK_ENABLED: hook.enabled must be true or false, not maybe",
    );
    check_mistake(
        &Machine::empty().variable("UNSTUCK_STORE_KEEP_EVENT", "1d"),
        "UNSTUCK_STORE_KEEP_EVENT: no setting is called UNSTUCK_STORE_KEEP_EVENT",
    );
    let typo = Machine::empty().variable("UNSTUCK_STORE_KEEP_EVENT", "1d").load().1;
    assert_eq!(typo[0].hint(Lang::En).as_deref(), Some("did you mean UNSTUCK_STORE_KEEP_EVENTS?"));
    check(
        &Machine::empty().variable("UNSTUCK_HOOK_ENABLED", "false"),
        "hook.enabled",
        "false from environment",
    );
    check(&Machine::empty().variable("UNSTUCK_HOOK_ENABLED", ""), "hook.enabled", "true from built-in");
    check(&Machine::empty().variable("UNSTUCK_CALL", "c1"), "hook.enabled", "true from built-in");
}

#[test]
fn flags_are_checked_like_files() {
    let check = |flag: &str, expected: &str| check_mistake(&Machine::empty().flag(flag), expected);
    check("hook.enabled", "--set wants KEY=VALUE, not hook.enabled");
    check("hook.enabeld=false", "--set: no setting is called hook.enabeld");
    check("ladder.mode=hard", "--set: ladder.mode must be one of shadow, advise, enforce, not hard");
    check("alert.halted=off", "--set: alerts are set in the user's or the system's file only");
}

#[test]
fn an_alert_changes_single_fields_of_the_one_with_its_name() {
    let machine = Machine::empty()
        .system("[[alert]]\nname = \"validation\"\nmore-than = 5\n\n[[alert]]\nname = \"halted\"\nenabled = false\n")
        .user("[[alert]]\nname = \"validation\"\ncommand = [\"notify-send\", \"hi\"]\n\n[[alert]]\nname = \"mine\"\nwhen = \"failures\"\nkind = \"network\"\nmore-than = 3\nwithin = \"10m\"\nsay = \"the net\"\nwebhook = \"https://hooks.example/a\"\n");
    let alerts = machine.sound().alerts();
    let named = |name: &str| alerts.iter().find(|alert| alert.rule.name == name).unwrap();
    assert_eq!(alerts.len(), 6);
    let validation = named("validation");
    assert_eq!(validation.rule.when, AlertWhen::Failures { more_than: 5 });
    assert_eq!(validation.rule.only.error_type, Some("validation"));
    assert_eq!(validation.rule.command, ["notify-send", "hi"]);
    assert_eq!(validation.layer, Layer::User);
    assert!(!named("halted").rule.enabled && named("regressed").rule.enabled);
    let mine = named("mine");
    assert_eq!((mine.rule.only.kind, mine.rule.within), (Some(Kind::Network), Duration::from_secs(600)));
    assert_eq!((mine.rule.say(Lang::En), mine.rule.say(Lang::Zh)), ("the net", "the net"));
    assert_eq!(mine.rule.webhook.as_deref(), Some("https://hooks.example/a"));
}

#[test]
fn an_alert_that_counts_something_else_forgets_the_old_numbers() {
    let machine =
        Machine::empty().user("[[alert]]\nname = \"failure-rate\"\nwhen = \"failures\"\nmore-than = 9\n");
    let alerts = machine.sound().alerts();
    let rule = &alerts.iter().find(|alert| alert.rule.name == "failure-rate").unwrap().rule;
    assert_eq!(rule.when, AlertWhen::Failures { more_than: 9 });
    assert_eq!(rule.within, Duration::from_secs(3_600));
}

#[test]
fn an_alert_with_a_mistake_is_refused_and_the_built_in_one_stays() {
    let mistake = |fields: &str| {
        let machine = Machine::empty().user(&format!("[[alert]]\n{fields}\n"));
        let mistakes = machine.mistakes();
        assert_eq!(machine.load().0.alerts(), Machine::empty().sound().alerts(), "{fields}");
        let [only] = &mistakes[..] else { panic!("{fields}: {mistakes:?}") };
        only.replace("home/.config/unstuck/config.toml:", "")
    };
    let check = |fields: &str, expected: &str| assert_eq!(mistake(fields), expected, "{fields}");
    check("when = \"rate\"", "1:1: alert \"\": needs a name of a-z, 0-9 and - (at most 64)");
    check("name = \"A b\"", "1:1: alert A b: needs a name of a-z, 0-9 and - (at most 64)");
    check("name = \"x\"", "1:1: alert x: needs `when`: failures, rate or event");
    check(
        "name = \"x\"\nwhen = \"failures\"\nwithin = \"1h\"",
        "1:1: alert x: `when = \"failures\"` needs `more-than`",
    );
    check(
        "name = \"x\"\nwhen = \"failures\"\nmore-than = 1",
        "1:1: alert x: `when = \"failures\"` needs `within`",
    );
    check("name = \"x\"\nwhen = \"rate\"\nwithin = \"1h\"", "1:1: alert x: `when = \"rate\"` needs `factor`");
    check(
        "name = \"x\"\nwhen = \"event\"\nwithin = \"1h\"",
        "1:1: alert x: `when = \"event\"` needs `event`",
    );
    check(
        "name = \"halted\"\nfactor = 2",
        "1:1: alert halted: `factor` means nothing with `when = \"event\"`",
    );
    check(
        "name = \"failure-rate\"\nmore-than = 2",
        "1:1: alert failure-rate: `more-than` means nothing with `when = \"rate\"`",
    );
    check("name = \"x\"\nwen = \"rate\"", "3:1: alert x: has no field wen; did you mean when?");
    check(
        "name = \"x\"\nwhen = \"event\"\nkind = \"netwrk\"",
        "4:1: alert x: kind must be a known word, not \"netwrk\"; did you mean network?",
    );
    let wrong = [
        "when = \"sometimes\"",
        "error-type = \"any\"",
        "more-than = -1",
        "more-than = 1.5",
        "within = \"0s\"",
        "within = 5",
        "factor = 1",
        "factor = inf",
        "factor = nan",
        "least-calls = \"ten\"",
        "say = 5",
        "say = { fr = \"non\" }",
        "say = { en = \"yes\", fr = \"non\" }",
        "command = []",
        "command = [\"\"]",
        "command = \"notify-send\"",
        "command = [\"a\", 1]",
        "webhook = \"ftp://hooks.example\"",
        "webhook = \"https://\"",
        "webhook = \"https://user:secret@hooks.example/\"",
        "webhook = \"https://hooks.example/a b\"",
        "webhook = \"hooks.example\"",
        "enabled = \"no\"",
        "tool = \"\"",
        "event = \"a\\nb\"",
    ];
    for field in wrong {
        let said = mistake(&format!("name = \"halted\"\n{field}"));
        let name = field.split(' ').next().unwrap();
        assert!(said.starts_with(&format!("3:1: alert halted: {name} must be")), "{said}");
    }
}

#[test]
fn an_alert_that_stands_twice_in_a_file_is_refused_the_second_time() {
    let machine = Machine::empty()
        .user("[[alert]]\nname = \"halted\"\n\n[[alert]]\nname = \"halted\"\nenabled = false\n");
    check_mistake(&machine, "home/.config/unstuck/config.toml:4:1: alert halted: stands twice in this file");
    assert!(machine.load().0.alerts().iter().all(|alert| alert.rule.enabled));
}

#[test]
fn every_setting_stands_in_the_documentation_as_the_table_has_it() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.md");
    let page = fs::read_to_string(page).unwrap();
    let missing: Vec<String> = Key::ALL
        .iter()
        .map(|key| {
            let row = key.row();
            let project = match row.project {
                Project::Never => "no",
                Project::Lower => "lower",
                Project::Off => "off",
                Project::Later => "later word",
                Project::Earlier => "earlier word",
            };
            let wanted = row.shape.wanted(Lang::En);
            format!("| `{}` | `{}` | {} | {project} | {} |", row.name, row.default, wanted, row.doc(Lang::En))
        })
        .filter(|line| !page.lines().any(|other| other == line))
        .collect();
    assert!(missing.is_empty(), "docs/config.md lacks:\n{}", missing.join("\n"));
}

/// The hook path: what a process pays for its settings when nobody wrote any.
#[test]
fn loading_without_files_parses_nothing() {
    let machine = Machine::empty();
    let around = machine.around("home/project/deep/down");
    let best = (0..50)
        .map(|_| {
            let start = Instant::now();
            let settings = Settings::load_leniently(&around, &[]).0;
            let store = settings.store();
            let elapsed = start.elapsed();
            assert!(matches!(settings.alerts, Alerts::BuiltIn) && store.max_size > 0);
            elapsed
        })
        .min()
        .unwrap();
    assert!(best < Duration::from_millis(2), "took {best:?} even without optimisation");
}
