use super::*;
use crate::sample::Sample;

const HOURS: u64 = 3_600_000;
const DAYS: u64 = 24 * HOURS;
const NOW: u64 = 20_000 * DAYS;

/// Expires rows in a store whose clock went on without a break.
fn expire(sample: &mut Sample, retention: &Retention) -> Removed {
    if sample.number("SELECT count(*) FROM session WHERE name = 'day-0'") == 0 {
        sample.went_on_until(NOW);
    }
    sample.store.expire(retention, NOW, &mut |_| true).unwrap()
}

#[test]
fn what_is_older_than_its_limit_goes_and_takes_its_problem_along() {
    let mut sample = Sample::made_at(NOW - 400 * DAYS);
    sample.session("old", NOW - 300 * DAYS);
    sample.session("new", NOW);
    sample.failed(1, 1, NOW - 300 * DAYS, "gone", "x");
    sample.failed(2, 1, NOW - 300 * DAYS, "stays", "x");
    sample.failed(3, 2, NOW - 40 * DAYS, "stays", "x");
    sample.event(NOW - 10 * DAYS, "progress", "tool:end", Some(2), Some(3), "");
    sample.went_on_until(NOW);
    let would = sample.store.expirable(&Retention::default(), NOW).unwrap();
    let removed = expire(&mut sample, &Retention::default());
    assert_eq!(
        removed,
        Removed { calls: 2, events: 3, sessions: 1, standing: 0, problems: 1, alerts: 0, lessons: 0 },
        "announced: {would:?}"
    );
    assert_eq!(would, removed);
    assert_eq!(sample.text("SELECT group_concat(cause) FROM problem"), "stays");
    assert_eq!(sample.number("SELECT count(*) FROM call_text"), 1);
    assert_eq!(expire(&mut sample, &Retention::default()), Removed::default());
}

#[test]
fn an_old_transcript_recorded_into_a_young_store_stays() {
    let mut sample = Sample::made_at(NOW - DAYS);
    sample.session("replayed", NOW - 300 * DAYS);
    sample.failed(1, 1, NOW - 300 * DAYS, "e1", "x");
    assert_eq!(expire(&mut sample, &Retention::default()), Removed::default());
}

#[test]
fn an_old_transcript_recorded_after_younger_rows_stays_as_long_as_they_do() {
    let mut sample = Sample::made_at(NOW - 400 * DAYS);
    sample.event(NOW - 5 * DAYS, "progress", "tool:end", None, None, "");
    sample.event(NOW - 300 * DAYS, "progress", "tool:end", None, None, "");
    assert_eq!(expire(&mut sample, &Retention::default()).events, 0);
    let shorter = Retention { events: Duration::from_secs(4 * 86_400), ..Retention::default() };
    assert_eq!(expire(&mut sample, &shorter).events, 2);
}

#[test]
fn a_row_from_the_future_keeps_nothing_from_going() {
    let mut sample = Sample::made_at(NOW - 400 * DAYS);
    for at in [NOW + 900 * DAYS, NOW - 300 * DAYS, NOW - DAYS, NOW + 900 * DAYS] {
        sample.event(at, "progress", "tool:end", None, None, "");
    }
    assert_eq!(expire(&mut sample, &Retention::default()).events, 2);
    assert_eq!(sample.text("SELECT group_concat(seq) FROM event"), "3,4");
}

#[test]
fn no_slice_is_larger_than_promised_and_whoever_has_no_time_left_stops() {
    let mut sample = Sample::made_at(0);
    for _ in 0..450 {
        sample.event(1, "progress", "tool:end", None, None, "");
    }
    sample.went_on_until(NOW);
    let mut steps = Vec::new();
    let removed = sample.store.expire(&Retention::default(), NOW, &mut |so_far| {
        steps.push(so_far.events);
        steps.len() <= 2
    });
    assert_eq!((removed.unwrap().events, steps), (400, vec![0, 200, 400]));
    assert_eq!(sample.number("SELECT count(*) FROM event"), 50);
}

#[test]
fn a_store_that_is_too_large_loses_its_oldest_first() {
    let mut sample = Sample::made_at(NOW - DAYS);
    sample.session("s", NOW);
    let long = "long ".repeat(500);
    for n in 1..=900 {
        sample.failed(n, 1, NOW - 1000 + n.unsigned_abs(), "e1", &long);
    }
    let size = |sample: &Sample| {
        let size = sample.store.size().unwrap();
        size.database - size.free
    };
    let before = size(&sample);
    let removed = expire(&mut sample, &Retention { max_size: before / 2, ..Retention::default() });
    assert!(removed.calls >= 200 && removed.events >= 200, "{removed:?}");
    assert!(size(&sample) <= before / 2);
    assert_eq!(sample.number("SELECT max(id) FROM call"), 900);
    assert_eq!(sample.number("SELECT min(id) FROM call"), i64::try_from(removed.calls).unwrap() + 1);
    sample.store.give_back(&mut || true).unwrap();
    assert!(sample.store.fold_all().unwrap());
    let after = sample.store.size().unwrap();
    assert!(after.database <= before / 2 && after.free == 0 && after.log == 0, "{after:?}");
    sample.store.check().unwrap();
}

#[test]
fn the_ladder_of_a_silent_session_goes_and_a_crowded_one_keeps_the_newest() {
    let mut sample = Sample::made_at(0);
    sample.session("silent", NOW - 8 * DAYS);
    sample.session("busy", NOW);
    for n in 0..450 {
        sample.sql(&format!("INSERT INTO standing VALUES (1, 1, {n}, {n}, x'00')"));
        sample.sql(&format!("INSERT INTO standing VALUES (2, 1, {n}, {n}, x'00')"));
    }
    assert_eq!(expire(&mut sample, &Retention::default()).standing, 450);
    assert_eq!(sample.store.cap_standing(100, &mut |_| true).unwrap().standing, 350);
    assert_eq!(sample.number("SELECT min(tick) FROM standing"), 350);
    assert_eq!(sample.number("SELECT count(*) FROM standing"), 100);
}

#[test]
fn old_copies_go_and_the_newest_stays_however_old() {
    let sample = Sample::made_at(0);
    crate::root::make_folder(&sample.root.backups()).unwrap();
    crate::root::make_folder(&sample.root.damaged().join((NOW - 200 * DAYS).to_string())).unwrap();
    for age in [300, 250, 190] {
        let name = format!("timeline-format1-{}.db", NOW - age * DAYS);
        fs::write(sample.root.backups().join(name), "x").unwrap();
    }
    sample.went_on_until(NOW);
    let expire = || sample.store.expire_copies(&Retention::default(), NOW).unwrap();
    let would = sample.store.expirable_copies(&Retention::default(), NOW).unwrap();
    assert_eq!((would.len(), expire()), (3, would));
    assert_eq!(expire(), Vec::<PathBuf>::new());
    assert_eq!(fs::read_dir(sample.root.backups()).unwrap().count(), 1);
}

/// Rows as an ordinary store has them: events and calls of the last 25 days, up to a moment ago.
fn in_use() -> Sample {
    let sample = Sample::made_at(NOW - 400 * DAYS);
    let session = sample.session("s", NOW);
    for (id, hours) in (1..).zip((0..25 * 24_u64).rev()) {
        sample.succeeded(id, session, NOW - hours * HOURS);
        sample.event(NOW - hours * HOURS, "progress", "tool:end", Some(session), None, "");
    }
    sample
}

#[test]
fn a_clock_that_jumps_ahead_for_a_moment_empties_nothing() {
    for jump in [DAYS, 40 * DAYS, 8 * 365 * DAYS] {
        let mut sample = in_use();
        // Something is recorded under the wrong clock, too.
        sample.event(NOW + jump, "progress", "tool:end", Some(1), None, "");
        sample.sql(&format!("UPDATE session SET last_at = {}", NOW + jump));
        let removed = sample.store.expire(&Retention::default(), NOW + jump, &mut |_| true).unwrap();
        assert_eq!(removed, Removed::default(), "{jump}");
        let removed = sample.store.expire(&Retention::default(), NOW + 1, &mut |_| true).unwrap();
        assert_eq!(removed, Removed::default(), "{jump}");
    }
}

#[test]
fn after_a_long_pause_what_is_old_goes_once_the_clock_has_gone_on_for_a_while() {
    let mut sample = in_use();
    let back = NOW + 60 * DAYS;
    let expire = |sample: &mut Sample, now| {
        sample.event(now, "progress", "tool:end", Some(1), None, "");
        sample.store.expire(&Retention::default(), now, &mut |_| true).unwrap().events
    };
    assert_eq!(expire(&mut sample, back), 0);
    let gone: Vec<u64> = (1..=9).map(|day| expire(&mut sample, back + day * DAYS)).collect();
    assert_eq!(gone.iter().sum::<u64>(), 25 * 24, "{gone:?}");
    assert!(gone[..7].iter().all(|gone| *gone < 200), "{gone:?}");
}
