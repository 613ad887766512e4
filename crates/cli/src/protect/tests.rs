//! Real files and a real safe: what is saved before something runs, and what comes back after it failed.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;
use unstuck_judge::{Call, Lang};
use unstuck_vault::{Coverage, KeptBecause};

use super::{ProtectArgs, Protection, Rollback, RolledBack, Runs};
use crate::cellar::Cellar;
use crate::exit::CommandError;
use crate::settings::{Around, Settings};
use crate::ui::Ui;

#[derive(Parser)]
struct Only {
    #[command(flatten)]
    protect: ProtectArgs,
}

fn args(words: &[&str]) -> ProtectArgs {
    Only::try_parse_from([&["run"], words].concat()).unwrap().protect
}

/// A home with a project in it.
struct Place {
    home: tempfile::TempDir,
}

impl Place {
    fn with(files: &[(&str, &str)]) -> Place {
        let place = Place { home: tempfile::tempdir().unwrap() };
        files.iter().for_each(|(path, content)| place.write(path, content));
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        self.home.path().canonicalize().unwrap().join(path)
    }

    fn named(&self, path: &str) -> String {
        self.path(path).display().to_string()
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }

    fn cellar(&self, flags: &[&str]) -> Cellar {
        let around = Around {
            home: Some(self.path("")),
            config_folder: None,
            state_folder: Some(self.path("state")),
            system_file: self.path("none"),
            working_folder: None,
            editor: String::new(),
            variables: Vec::new(),
        };
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        Cellar::new(&around, Settings::load(&around, &flags).unwrap())
    }
}

fn before<'a>(
    cellar: &'a Cellar,
    words: &[&str],
    line: &str,
) -> Result<Option<Protection<'a>>, CommandError> {
    let call = Call::shell(line);
    let runs = Runs { call: &call, key: "k", session: "s", label: line, has_checks: true };
    Protection::before(Lang::En, cellar, &args(words), &runs)
}

#[test]
fn a_failure_is_rolled_back_and_the_failed_state_is_saved() {
    let place = Place::with(&[("p/dist/app.js", "good")]);
    let cellar = place.cellar(&[]);
    let mut saved =
        before(&cellar, &["--protect", &place.named("p/dist")], "npm run build").unwrap().unwrap();
    place.write("p/dist/app.js", "");
    place.write("p/dist/half.js", "half");
    let settled = saved.settle(&mut Ui::new(None), true).unwrap();
    let RolledBack::Yes(restored) = settled else { panic!("{settled:?}") };
    assert_eq!(place.read("p/dist/app.js").as_deref(), Some("good"));
    assert_eq!((place.read("p/dist/half.js"), restored.kept.len()), (None, 0));
    // What failed can be looked at.
    let failed = saved.vault().content(restored.saved.unwrap(), &place.path("p/dist/half.js"), 99).unwrap();
    assert_eq!(failed.as_deref(), Some(&b"half"[..]));
}

#[test]
fn a_success_stays_and_so_does_a_failure_that_nobody_wants_back() {
    for (words, has_failed, expected) in [
        (&[][..], false, RolledBack::No),
        (&["--rollback", "never"], true, RolledBack::No),
        (&["--rollback", "on-failure"], false, RolledBack::No),
    ] {
        let place = Place::with(&[("p/a", "old")]);
        let (cellar, named) = (place.cellar(&[]), place.named("p/a"));
        let words = [&["--protect", &named], words].concat();
        let mut saved = before(&cellar, &words, "true").unwrap().unwrap();
        place.write("p/a", "new");
        assert_eq!(saved.settle(&mut Ui::new(None), has_failed).unwrap(), expected, "{words:?}");
        assert_eq!(place.read("p/a").as_deref(), Some("new"));
        assert!(saved.snapshot().concluded && saved.snapshot().changed == Some(true));
    }
}

#[test]
fn a_failure_that_changed_nothing_brings_nothing_back() {
    let place = Place::with(&[("p/a", "old")]);
    let cellar = place.cellar(&[]);
    let mut saved = before(&cellar, &["--protect", &place.named("p")], "false").unwrap().unwrap();
    assert_eq!(saved.settle(&mut Ui::new(None), true).unwrap(), RolledBack::NothingChanged);
}

#[test]
fn what_somebody_changed_since_is_kept_and_named() {
    let place = Place::with(&[("p/a", "old a"), ("p/b", "old b")]);
    let cellar = place.cellar(&[]);
    let mut saved = before(&cellar, &["--protect", &place.named("p")], "x").unwrap().unwrap();
    place.write("p/a", "broken a");
    place.write("p/b", "broken b");
    saved.conclude(Lang::En).unwrap();
    place.write("p/b", "mine, and longer");
    let restored = saved.roll_back(Lang::En).unwrap();
    assert_eq!(place.read("p/a").as_deref(), Some("old a"));
    assert_eq!(place.read("p/b").as_deref(), Some("mine, and longer"));
    let kept: Vec<(&Path, KeptBecause)> =
        restored.kept.iter().map(|kept| (kept.path.as_path(), kept.because)).collect();
    assert_eq!(kept, [(place.path("p/b").as_path(), KeptBecause::ChangedSince)]);
}

#[test]
fn what_was_not_there_goes_again() {
    let place = Place::with(&[("p/a", "a")]);
    let cellar = place.cellar(&[]);
    let mut saved = before(&cellar, &["--protect", &place.named("p/dist")], "make").unwrap().unwrap();
    place.write("p/dist/deep/out", "half");
    assert!(matches!(saved.settle(&mut Ui::new(None), true).unwrap(), RolledBack::Yes(_)));
    assert!(!place.path("p/dist").exists() && place.path("p/a").exists());
}

#[test]
fn auto_is_what_a_known_command_puts_at_risk() {
    let place = Place::with(&[("p/a", "a"), ("p/b", "b"), ("p/target/x", "x")]);
    let cellar = place.cellar(&[]);
    let covers = |words: &[&str], line: &str| {
        let saved = before(&cellar, words, line).unwrap()?;
        assert_eq!(saved.snapshot().coverage(), Coverage::Whole);
        let top = place.path("");
        let below = |path: &PathBuf| path.strip_prefix(&top).unwrap().display().to_string();
        Some(saved.snapshot().scopes.iter().map(|scope| below(&scope.path)).collect::<Vec<_>>().join(" "))
    };
    let remove = format!("rm -rf {}", place.named("p/target"));
    assert_eq!(covers(&["--protect", "auto"], &remove).as_deref(), Some("p/target"));
    let named = place.named("p/a");
    assert_eq!(covers(&["--protect", "auto", "--protect", &named], &remove).as_deref(), Some("p/a p/target"));
    assert_eq!(covers(&["--protect", "auto"], "ls"), None);
    assert_eq!(covers(&["--protect", "auto", "--protect", &named], "ls").as_deref(), Some("p/a"));
    assert_eq!(covers(&[], &remove), None);
}

#[test]
fn what_cannot_be_saved_stops_before_anything_runs() {
    let place = Place::with(&[("p/a", "a")]);
    let named = place.named("p/a");
    let check = |words: &[&str], flags: &[&str], line: &str, expected: &str| {
        let cellar = place.cellar(flags);
        let Err(error) = before(&cellar, words, line) else { panic!("{words:?} was saved") };
        assert!(error.in_words(Lang::En).contains(expected), "{words:?}: {error}");
    };
    check(&["--protect", "/"], &[], "true", "/ is too much to take as a whole");
    check(&["--protect", &place.named("")], &[], "true", "is too much to take as a whole");
    check(&["--protect", "auto"], &[], "rm -rf /", "/ is too much to take as a whole");
    check(&["--protect", &named], &["vault.min-free=1TB"], "true", "bytes are needed");
    let state = format!("rm -rf {}", place.named("state"));
    fs::create_dir_all(place.path("state/unstuck")).unwrap();
    check(&["--protect", "auto"], &[], &state, "this would destroy what unstuck itself has saved");
}

#[test]
fn when_it_is_brought_back_follows_from_what_is_asked() {
    let when = |words: &[&str], has_checks| args(words).when(has_checks);
    assert_eq!(when(&["--protect", "a"], true), Rollback::OnFailure);
    assert_eq!(when(&["--protect", "a"], false), Rollback::Never);
    assert_eq!(when(&["--protect", "a", "--rollback", "ask"], false), Rollback::Ask);
    assert_eq!(when(&["--protect", "a", "--rollback", "on-failure"], false), Rollback::OnFailure);
    assert!(Only::try_parse_from(["run", "--rollback", "never"]).is_err());
}
