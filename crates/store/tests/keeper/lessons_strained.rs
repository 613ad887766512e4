//! What is learnt where there is too much of everything, where clocks are wrong, and where sessions contradict each other.

use std::time::Instant;

use unstuck_store::Stands;

use super::lessons::{NO_HEADER, fixed};
use super::*;

const INSTALL: &str = "apt-get install -y libssl-dev";

/// So many failures that were never got over, all of session `s`, as the hook writes them.
const FLOOD: u32 = 100_000;
const FILL: &str = r#"
PRAGMA synchronous = OFF;
BEGIN;
CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @FLOOD) SELECT i FROM n;
INSERT INTO call (session, key, agent, tool, state, asked_at, ended_at, attempt, ok, outcome, code, kind, rule, rung_before,
        rung_after, repeat, owner, call_print, intent_print, cause_print)
    SELECT 1, printf('f%d', i), 'main', 'Bash', 'failed', @NOW + i, @NOW + i, 1, 0, 'exited', 1, 'path_not_found', 'generic.missing',
        'observe', 'note', 0, '', printf('c1:%020x', i), printf('i1:%020x', i), printf('e1:%020x', i % 1000)
    FROM n;
INSERT INTO call_text (call, label, input, evidence, head, tail, omitted, verdict, life)
    SELECT id, 'cat', printf('{"command":"cat missing-%d"}', id), 'cat: missing: No such file or directory', '', '', 0, '', '[]'
    FROM call WHERE key LIKE 'f%';
COMMIT;
"#;

#[test]
#[allow(clippy::disallowed_methods, reason = "what a flood costs is felt in time alone")]
fn a_flood_of_failures_neither_hides_a_lesson_nor_is_felt() {
    let took = |flooded: bool| {
        let mut cellar = Cellar::empty();
        cellar.before("a", "ls");
        if flooded {
            let fill = FILL.replace("@FLOOD", &FLOOD.to_string()).replace("@NOW", &NOW.to_string());
            cellar.database().execute_batch(&fill).unwrap();
        }
        cellar.now += u64::from(FLOOD);
        let mut times: Vec<Duration> = (0..5)
            .map(|round| {
                let target = format!("make part-{round}");
                cellar.tries("s", &target, 2, NO_HEADER);
                cellar.tries("s", INSTALL, 0, "");
                let start = Instant::now();
                cellar.tries("s", &target, 0, "");
                start.elapsed()
            })
            .collect();
        times.sort();
        assert_eq!(cellar.lessons().len(), 1, "{:?}", cellar.lessons());
        assert!(cellar.lessons()[0].starts_with("seen 5:0"), "{:?}", cellar.lessons());
        let said = cellar.tries("next", "make", 2, NO_HEADER);
        assert!(said.contains(INSTALL), "{said}");
        assert_eq!(cellar.calls().len(), 17 + if flooded { FLOOD as usize } else { 0 });
        times[2]
    };
    let (plain, flooded) = (took(false), took(true));
    // Whoever read the whole flood would need a hundred times as long.
    assert!(flooded < plain * 20, "{flooded:?} in a flood, {plain:?} without");
}

#[test]
fn ever_new_fixes_of_one_cause_do_not_pile_up_and_the_one_that_wins_stays() {
    let mut cellar = Cellar::empty();
    for number in 0..40 {
        fixed(&mut cellar, "s", &format!("apt-get install -y libssl{number}-dev"));
        if number % 8 == 0 {
            fixed(&mut cellar, "s", INSTALL);
        }
    }
    let lessons = cellar.lessons();
    assert!(lessons.len() <= 16, "{}", lessons.len());
    let best = format!(r#"seen 5:0 {{"deeds":[{{"ran":"{INSTALL}"}}],"change":null}}"#);
    assert!(lessons.contains(&best), "{lessons:?}");
    let newest = lessons.iter().filter(|lesson| lesson.contains("libssl39-dev")).count();
    assert_eq!(newest, 1, "{lessons:?}");
    let said = cellar.tries("next", "make", 2, NO_HEADER);
    assert!(said.contains(INSTALL), "{said}");
    let sql = "SELECT count(*) FROM lesson_place WHERE lesson NOT IN (SELECT id FROM lesson)";
    let orphans: u32 = cellar.database().query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(orphans, 0);
}

#[test]
fn ten_megabytes_of_output_teach_as_well_as_a_line_and_are_not_kept() {
    let mut cellar = Cellar::empty();
    let noise = "[ 42%] Building C object src/part.o\n".repeat(10_000_000 / 36);
    let long_failure = format!("{noise}{NO_HEADER}\nmake: *** [Makefile:3: all] Error 1\n");
    cellar.tries("one", "make", 2, &long_failure);
    cellar.tries("one", INSTALL, 0, &noise);
    cellar.tries("one", "make", 0, &noise);
    let said = cellar.tries("two", "make", 2, &long_failure);
    assert!(said.contains(INSTALL) && said.len() < 2000, "{said}");
    assert!(cellar.size() < 1 << 20, "{}", cellar.size());
}

#[test]
fn a_line_of_ten_megabytes_and_a_call_of_ten_megabytes_teach_nothing_and_are_not_kept() {
    let mut cellar = Cellar::empty();
    let long = "x".repeat(10_000_000);
    let asked = format!("make {long}");
    cellar.tries("one", &asked, 2, &format!("{NO_HEADER} {long}"));
    cellar.tries("one", &format!("apt-get install -y {long}"), 0, "");
    cellar.tries("one", &asked, 0, "");
    assert_eq!(cellar.calls().len(), 3);
    assert_eq!(cellar.lessons(), [""; 0]);
    // What cannot be kept as a whole stands in nobody's way.
    fixed(&mut cellar, "two", INSTALL);
    let said = cellar.tries("three", "make", 2, NO_HEADER);
    assert!(said.contains(INSTALL), "{said}");
    assert!(cellar.size() < 1 << 20, "{}", cellar.size());
}

#[test]
fn a_clock_that_goes_back_loses_no_win_and_gives_nothing_an_age_below_zero() {
    let mut cellar = Cellar::empty();
    fixed(&mut cellar, "one", INSTALL);
    let won_at = |cellar: &Cellar| -> (u64, u64) {
        let sql = "SELECT won_at, (SELECT max(at) FROM lesson_place) FROM lesson";
        cellar
            .database()
            .query_row(sql, [], |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64)))
            .unwrap()
    };
    let before = won_at(&cellar);
    for (session, now) in [("two", NOW - 30 * DAY), ("three", HOUR), ("four", 0)] {
        cellar.now = now;
        let said = cellar.tries(session, "make", 2, NO_HEADER);
        assert!(said.contains(INSTALL) && said.contains("last: just now"), "{session}: {said}");
        cellar.tries(session, INSTALL, 0, "");
        cellar.tries(session, "make", 0, "");
    }
    assert!(cellar.lessons()[0].starts_with("seen 4:0"), "{:?}", cellar.lessons());
    assert_eq!(won_at(&cellar), before, "it was last used when it was, whatever clocks say since");
    let sql = "SELECT count(*) FROM call WHERE took_ms < 0 OR recovered_at < 0 OR asked_at < 0";
    let odd: u32 = cellar.database().query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(odd, 0);
}

#[test]
fn a_session_is_not_taken_for_silent_because_a_clock_goes_back_or_forth() {
    let mut cellar = Cellar::empty();
    fixed(&mut cellar, "one", INSTALL);
    let said = cellar.tries("two", "make", 2, NO_HEADER);
    assert!(said.contains(INSTALL), "{said}");
    // Another session sees another time, then the right one again; the first is at work all the while.
    cellar.now -= 30 * DAY;
    cellar.tries("three", "make", 2, NO_HEADER);
    cellar.now += 30 * DAY;
    cellar.tries("two", INSTALL, 0, "");
    cellar.tries("two", "make", 0, "");
    assert!(cellar.lessons()[0].starts_with("seen 2:0"), "{:?}", cellar.lessons());
}

#[test]
fn what_was_missing_by_a_clock_that_ran_ahead_is_not_missing_for_ever() {
    let mut cellar = Cellar::empty();
    let unknown = "curl: (6) Could not resolve host: dead.example";
    cellar.now += 300 * DAY;
    cellar.tries("one", "curl -s https://dead.example/a", 6, unknown);
    cellar.now -= 300 * DAY;
    assert_eq!(cellar.asks("two", "curl https://dead.example/b", Stands::Unsaid).0, "silent");
}

const OLD: &str = "apt-get install -y libssl1.1-dev";
const NEW: &str = "apt-get install -y libssl3-dev";

/// Two sessions that get over the same failure by opposite means, each step of one followed by one of the other.
fn at_odds(cellar: &mut Cellar) {
    for (command, code, printed) in [("make", 2, NO_HEADER), ("", 0, ""), ("make", 0, "")] {
        for (session, fix) in [("old", OLD), ("new", NEW)] {
            cellar.tries(session, if command.is_empty() { fix } else { command }, code, printed);
        }
    }
}

#[test]
fn opposite_lessons_are_kept_apart_whether_they_are_taught_at_once_or_one_after_the_other() {
    let mut at_once = Cellar::empty();
    at_odds(&mut at_once);
    let mut in_turn = Cellar::empty();
    fixed(&mut in_turn, "old", OLD);
    fixed(&mut in_turn, "new", NEW);
    let alone = |fix: &str| format!(r#"seen 1:0 {{"deeds":[{{"ran":"{fix}"}}],"change":null}}"#);
    for cellar in [&at_once, &in_turn] {
        assert_eq!(cellar.lessons(), [alone(OLD), alone(NEW)]);
    }
}

#[test]
fn of_opposite_lessons_the_one_that_wins_is_told_and_one_that_fails_gives_way() {
    let mut cellar = Cellar::empty();
    at_odds(&mut cellar);
    fixed(&mut cellar, "again", OLD);
    let said = cellar.tries("two", "make", 2, NO_HEADER);
    assert!(said.contains(OLD) && !said.contains(NEW), "{said}");
    // It is followed, and does not help any more: in the same session the other one is tried and does.
    cellar.tries("two", OLD, 0, "");
    let said = cellar.tries("two", "make", 2, NO_HEADER);
    assert!(said.contains(NEW) && !said.contains(OLD), "{said}");
    cellar.tries("two", NEW, 0, "");
    cellar.tries("two", "make", 0, "");
    let said = cellar.tries("three", "make", 2, NO_HEADER);
    assert!(said.contains(NEW) && !said.contains(OLD), "{said}");
    cellar.tries("three", OLD, 0, "");
    cellar.tries("three", NEW, 0, "");
    cellar.tries("three", "make", 0, "");
    let lessons = cellar.lessons();
    assert!(lessons[0].starts_with("seen 2:1") || lessons[0].starts_with("seen 3:1"), "{lessons:?}");
    assert!(lessons[1].starts_with("seen 3:0"), "{lessons:?}");
}

#[test]
fn neither_of_two_opposite_lessons_is_told_once_both_are_in_doubt() {
    let mut cellar = Cellar::empty();
    at_odds(&mut cellar);
    for session in ["two", "three"] {
        // Whatever is told is done, and helps no more.
        for _ in 0..3 {
            let said = cellar.tries(session, "make", 2, NO_HEADER);
            for fix in [OLD, NEW].into_iter().filter(|fix| said.contains(*fix)) {
                cellar.tries(session, fix, 0, "");
            }
        }
    }
    let lessons = cellar.lessons();
    assert!(lessons.iter().all(|lesson| lesson.starts_with("quarantined 1:2")), "{lessons:?}");
    let said = cellar.tries("four", "make", 2, NO_HEADER);
    assert!(!said.contains("libssl"), "{said}");
}

impl Cellar {
    /// What the database takes on the disk, its log included.
    fn size(&self) -> u64 {
        let of = |name: &str| fs::metadata(self.root().join(name)).map_or(0, |found| found.len());
        of("timeline.db") + of("timeline.db-wal")
    }
}
