//! Every agent's file on a real disk: in and out again.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::agent::Carrier;
use super::change::{Change, Done, Outcome, Tools};
use super::installation::{Alike, Installation};
use super::version::{Reported, Version, Why};
use super::{AGENTS, Agent};
use crate::editing::tests::{any_hand, any_settings, written};
use crate::editing::{Backups, Book, EditError, Ledger};

/// A folder with an agent's file in it, and our own beside it.
struct Disk {
    folder: TempDir,
    ledger: Ledger,
}

impl Disk {
    fn new() -> Disk {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::lock(&folder.path().join("state"), Book::Hooks).unwrap();
        Disk { folder, ledger }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("agent/settings.json")
    }

    fn write(&self, bytes: &[u8]) {
        fs::create_dir_all(self.file().parent().unwrap()).unwrap();
        fs::write(self.file(), bytes).unwrap();
    }

    fn installation(&self, agent: &'static Agent, program: &str) -> Installation {
        let newest = Reported::Version(Version { major: 9999, minor: 0, patch: 0 });
        Installation::new(agent, self.file(), program.to_owned(), newest)
    }

    fn act(
        &mut self,
        act: impl FnOnce(&mut Tools<'_>) -> Result<Outcome<Alike>, EditError>,
    ) -> Result<Outcome<Alike>, EditError> {
        let backups = Backups::in_folder(&self.folder.path().join("state"));
        act(&mut Tools { ledger: &mut self.ledger, backups: &backups, now: 1, dry_run: false })
    }

    fn put_in(&mut self, agent: &'static Agent, program: &str) -> Outcome<Alike> {
        let installation = self.installation(agent, program);
        self.act(|tools| installation.put_in(tools)).unwrap()
    }

    fn take_out(&mut self, agent: &'static Agent) -> Outcome<Alike> {
        let installation = self.installation(agent, "/usr/bin/unstuck");
        self.act(|tools| installation.take_out(tools)).unwrap()
    }
}

fn with_entries() -> impl Iterator<Item = &'static Agent> {
    AGENTS.iter().filter(|agent| matches!(agent.carrier, Carrier::Entries { .. }))
}

fn is_there(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok()
}

#[test]
fn where_nothing_was_nothing_stays() {
    for agent in &AGENTS {
        let mut disk = Disk::new();
        assert_eq!(disk.put_in(agent, "/usr/bin/unstuck").done, Done::Made, "{}", agent.name);
        assert_eq!(disk.put_in(agent, "/usr/bin/unstuck").done, Done::Nothing, "{}", agent.name);
        assert!(disk.installation(agent, "/usr/bin/unstuck").is_in(&disk.ledger).unwrap());
        assert_eq!(disk.take_out(agent).done, Done::Removed, "{}", agent.name);
        assert!(!is_there(&disk.folder.path().join("agent")), "{}", agent.name);
        assert_eq!(disk.take_out(agent).done, Done::Nothing, "{}", agent.name);
    }
}

#[test]
fn a_folder_that_holds_something_else_by_then_stays() {
    for agent in &AGENTS {
        let mut disk = Disk::new();
        disk.put_in(agent, "/usr/bin/unstuck");
        fs::write(disk.folder.path().join("agent/theirs"), "x").unwrap();
        disk.take_out(agent);
        assert!(
            is_there(&disk.folder.path().join("agent/theirs")) && !is_there(&disk.file()),
            "{}",
            agent.name
        );
    }
}

#[test]
fn when_we_move_the_path_follows_and_going_still_gives_back_what_was_there() {
    for agent in with_entries() {
        let mut disk = Disk::new();
        disk.write(b"{ }");
        disk.put_in(agent, "/old/unstuck");
        assert_eq!(disk.put_in(agent, "/new/unstuck").done, Done::Changed, "{}", agent.name);
        let text = fs::read_to_string(disk.file()).unwrap();
        assert!(!text.contains("/old/") && text.contains("/new/"), "{text}");
        disk.take_out(agent);
        assert_eq!(fs::read(disk.file()).unwrap(), b"{ }", "{}", agent.name);
    }
}

#[test]
fn without_the_ledger_our_entries_are_still_known() {
    for agent in &AGENTS {
        let mut disk = Disk::new();
        disk.put_in(agent, "/old/unstuck");
        disk.ledger.forget(&fs::canonicalize(disk.file()).unwrap()).unwrap();
        assert_eq!(disk.put_in(agent, "/new/unstuck").done, Done::Changed, "{}", agent.name);
        disk.ledger.forget(&fs::canonicalize(disk.file()).unwrap()).unwrap();
        disk.take_out(agent);
        let left = fs::read_to_string(disk.file()).unwrap_or_default();
        assert!(!left.contains("unstuck"), "{}: {left}", agent.name);
    }
}

#[test]
fn a_plugin_that_was_changed_by_hand_is_left_alone() {
    let agent = AGENTS.iter().find(|agent| matches!(agent.carrier, Carrier::Plugin)).unwrap();
    let mut disk = Disk::new();
    disk.put_in(agent, "/old/unstuck");
    let mine = fs::read_to_string(disk.file()).unwrap() + "// mine\n";
    fs::write(disk.file(), &mine).unwrap();
    let installation = disk.installation(agent, "/new/unstuck");
    assert!(matches!(disk.act(|tools| installation.put_in(tools)), Err(EditError::NotOurs { .. })));
    assert!(matches!(disk.act(|tools| installation.take_out(tools)), Err(EditError::NotOurs { .. })));
    assert_eq!(fs::read_to_string(disk.file()).unwrap(), mine);
}

#[test]
fn no_event_is_written_that_a_version_may_not_know() {
    let names = |reported: &Reported| -> Vec<&str> {
        AGENTS[0].events_of(reported).0.iter().map(|event| event.name).collect()
    };
    let version = |major, minor, patch| names(&Reported::Version(Version { major, minor, patch }));
    let batch = |names: &[&str]| names.contains(&"PostToolBatch");
    let failure = |names: &[&str]| names.contains(&"PostToolUseFailure");
    assert!(!failure(&version(2, 0, 55)) && failure(&version(2, 0, 56)));
    assert!(!batch(&version(2, 1, 100)) && !batch(&version(2, 1, 117)) && batch(&version(2, 1, 118)));
    for unknown in [Reported::NotFound, Reported::NotAsked, Reported::Unreadable(Why::TooSlow)] {
        assert_eq!(names(&unknown), version(2, 0, 50));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn going_gives_back_every_byte(value in any_settings(), hand in any_hand(), which in 0..6_usize) {
        let agent = with_entries().nth(which).unwrap();
        let mut disk = Disk::new();
        let before = written(&value, hand);
        disk.write(&before);
        disk.put_in(agent, "/usr/bin/unstuck");
        let there = fs::read(disk.file()).unwrap();
        prop_assert_eq!(disk.put_in(agent, "/usr/bin/unstuck").done, Done::Nothing);
        prop_assert_eq!(&fs::read(disk.file()).unwrap(), &there);
        prop_assert_eq!(disk.take_out(agent).done, Done::Changed);
        let after = fs::read(disk.file()).unwrap();
        prop_assert_eq!(String::from_utf8_lossy(&after), String::from_utf8_lossy(&before));
    }
}
