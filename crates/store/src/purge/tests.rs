use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::sample::Sample;

const DAYS: u64 = 24 * 3_600_000;
const NOW: u64 = 20_000 * DAYS;
const SECRET: &str = "platypus";

/// The files of the store in which a word can be read.
fn found_in(folder: &Path, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(found_in(&path, word));
        } else if fs::read(&path).unwrap().windows(word.len()).any(|part| part == word.as_bytes()) {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

/// Two sessions that met one cause, each in its own words.
fn two_sessions() -> Sample {
    let sample = Sample::made_at(NOW - 400 * DAYS);
    sample.session("kept", NOW);
    sample.session(SECRET, NOW);
    sample.failed(1, 1, NOW - 9 * DAYS, "both", "an ordinary line");
    for n in 0..450 {
        sample.failed(10 + n, 2, NOW - 8 * DAYS, "both", &format!("{SECRET} {n}"));
        // What was written twice has an older form somewhere in its page.
        sample.sql(&format!(
            "UPDATE call_text SET head = 'longer {SECRET} {n}', tail = '{SECRET}' WHERE call = {}",
            10 + n
        ));
    }
    sample.failed(900, 2, NOW, "alone", SECRET);
    sample.sql("INSERT INTO standing VALUES (2, 1, 1, 1, x'00')");
    sample.store.write_tool_errors(SECRET).unwrap();
    sample.store.write_tool_errors("kept").unwrap();
    sample
}

#[test]
fn nothing_of_a_purged_session_can_be_read_in_any_file() {
    let mut sample = two_sessions();
    assert!(!found_in(sample.root.path(), SECRET).is_empty());
    let what = Purge::Session(SECRET.to_owned());
    let would = sample.store.purgeable(&what, CopiesToo::IfOlder).unwrap();
    let mut slices = 0;
    let purged = sample.store.purge(&what, CopiesToo::IfOlder, &mut |_| slices += 1).unwrap();
    let rows =
        Removed { calls: 451, events: 451, sessions: 1, standing: 1, problems: 1, alerts: 0, lessons: 0 };
    assert_eq!(purged, Purged { rows, tool_errors: 1, is_final: true, ..Purged::default() });
    assert_eq!(would, Purged { is_final: false, ..purged });
    assert!(slices >= 6, "{slices}");
    assert_eq!(found_in(sample.root.path(), SECRET), Vec::<String>::new());
    assert!(!sample.store.has_unfinished_purge().unwrap());
    sample.store.check().unwrap();
}

#[test]
fn a_problem_that_lives_on_is_told_and_counted_by_what_is_left() {
    let mut sample = two_sessions();
    sample.store.purge(&Purge::Session(SECRET.to_owned()), CopiesToo::IfOlder, &mut |_| {}).unwrap();
    let told = sample
        .text("SELECT cause || ', ' || count || ', ' || title || ', ' || (last_at / 86400000) FROM problem");
    assert_eq!(told, "both, 1, an ordinary line, 19991");
    assert_eq!(sample.text("SELECT group_concat(day || ':' || count) FROM problem_day"), "19991:1");
    assert_eq!(sample.text("SELECT tools FROM problem"), r#"["Bash"]"#);
    assert_eq!(sample.store.tool_errors("kept").unwrap().unwrap().len(), 1);
}

#[test]
fn a_purge_that_was_killed_is_known_to_be_unfinished_and_can_be_finished() {
    let mut sample = two_sessions();
    sample.sql("INSERT INTO fact VALUES ('purge_unfinished', '1')");
    sample.store.write(|connection| session_slice(connection, 2, &mut BTreeSet::new())).unwrap();
    assert!(sample.store.has_unfinished_purge().unwrap());
    let purged =
        sample.store.purge(&Purge::Session(SECRET.to_owned()), CopiesToo::IfOlder, &mut |_| {}).unwrap();
    assert_eq!((purged.rows.calls, purged.is_final), (251, true));
    assert_eq!(found_in(sample.root.path(), SECRET), Vec::<String>::new());
}

#[test]
fn a_reader_keeps_a_purge_from_being_final_and_the_next_one_ends_it() {
    let mut sample = two_sessions();
    sample.store.connection.busy_timeout(Duration::from_millis(50)).unwrap();
    let reader = sample.another();
    reader.connection.execute_batch("BEGIN; SELECT count(*) FROM call;").unwrap();
    let what = Purge::Session(SECRET.to_owned());
    let purged = sample.store.purge(&what, CopiesToo::IfOlder, &mut |_| {}).unwrap();
    assert!(!purged.is_final && sample.store.has_unfinished_purge().unwrap());
    reader.connection.execute_batch("COMMIT").unwrap();
    assert!(sample.store.finish_purge().unwrap());
    assert_eq!(found_in(sample.root.path(), SECRET), Vec::<String>::new());
}

#[test]
fn everything_before_a_moment_goes_and_the_rest_stays() {
    let mut sample = two_sessions();
    sample.session("ancient", NOW - 300 * DAYS);
    sample.failed(901, 3, NOW - 300 * DAYS, "ancient", "ancient words");
    let what = Purge::Before(NOW - DAYS);
    let would = sample.store.purgeable(&what, CopiesToo::IfOlder).unwrap();
    let purged = sample.store.purge(&what, CopiesToo::IfOlder, &mut |_| {}).unwrap();
    let rows =
        Removed { calls: 452, events: 452, sessions: 1, standing: 0, problems: 2, alerts: 0, lessons: 0 };
    assert_eq!((purged.rows, purged.is_final), (rows, true));
    assert_eq!(would.rows, rows);
    assert_eq!(sample.text("SELECT group_concat(id) FROM call"), "900");
    let left = sample.store.tool_errors(SECRET).unwrap().unwrap();
    assert_eq!(left.iter().map(|error| error.count).collect::<Vec<_>>(), [1]);
    let file = sample.root.sessions().join(SECRET).join("tool-errors.json");
    assert_eq!(fs::read_to_string(file).unwrap().matches("tool_name").count(), 1);
    assert_eq!(found_in(sample.root.path(), "ancient words"), Vec::<String>::new());
    assert_eq!(found_in(sample.root.path(), "an ordinary line"), Vec::<String>::new());
}

#[test]
fn copies_go_if_they_are_older_and_are_named_where_they_stay() {
    let check = |what: Purge, too: CopiesToo, goes: usize, stays: usize| {
        let mut sample = two_sessions();
        crate::root::make_folder(&sample.root.backups()).unwrap();
        for age in [300, 1] {
            let name = format!("timeline-format1-{}.db", NOW - age * DAYS);
            fs::write(sample.root.backups().join(name), "x").unwrap();
        }
        let purged = sample.store.purge(&what, too, &mut |_| {}).unwrap();
        assert_eq!((purged.copies.len(), purged.copies_left.len()), (goes, stays), "{what:?}");
        assert_eq!(copies::all(&sample.root).unwrap().len(), stays);
    };
    check(Purge::Session(SECRET.to_owned()), CopiesToo::IfOlder, 0, 2);
    check(Purge::Session(SECRET.to_owned()), CopiesToo::All, 2, 0);
    check(Purge::Before(NOW - 9 * DAYS), CopiesToo::IfOlder, 1, 1);
}
