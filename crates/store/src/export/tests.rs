use super::*;
use crate::sample::Sample;

fn everything() -> Selection {
    Selection {
        session: None,
        since: Since::Beginning,
        sessions: true,
        calls: true,
        events: true,
        problems: true,
        alerts: true,
    }
}

/// What is handed out, each row in a word, and the bookmark.
fn export(sample: &Sample, selection: &Selection) -> (String, Option<u64>) {
    let mut words = Vec::new();
    let end = sample.store.export(selection, |row| {
        words.push(match row {
            Exported::Session(session) => session.name,
            Exported::Call(call, _) => format!("#{}", call.id),
            Exported::Event(event) => format!("@{}", event.seq.0),
            Exported::Problem(problem) => problem.cause,
            Exported::Alert(alert) => alert.name,
        });
        Ok::<(), StoreError>(())
    });
    (words.join(" "), end.unwrap().map(|place| place.0))
}

fn sample() -> Sample {
    let sample = Sample::made_at(0);
    sample.session("a", 10);
    sample.session("b", 20);
    sample.failed(1, 1, 10, "e1", "x");
    sample.failed(2, 2, 20, "e2", "x");
    sample.sql("INSERT INTO alert VALUES (1, 'halted', 0, 15, 1.0, 'x', '[]', 0)");
    sample
}

#[test]
fn everything_is_handed_out_in_order_with_the_place_to_go_on_from() {
    let sample = sample();
    let check = |selection: &Selection, expected: &str| {
        assert_eq!(export(&sample, selection), (expected.to_owned(), Some(2)), "{selection:?}");
    };
    check(&everything(), "a b #1 #2 @1 @2 e1 e2 halted");
    check(&Selection { session: Some("b".to_owned()), ..everything() }, "b #2 @2 e2");
    check(&Selection { since: Since::Moment(16), ..everything() }, "b #2 @2 e2");
    check(&Selection { since: Since::Moment(15), ..everything() }, "b #2 @2 e2 halted");
    check(&Selection { since: Since::Bookmark(Bookmark(1)), ..everything() }, "b #2 @2 e2 halted");
    check(&Selection { since: Since::Bookmark(Bookmark(1)), alerts: false, ..everything() }, "b #2 @2 e2");
    check(&Selection { since: Since::Bookmark(Bookmark(2)), alerts: false, ..everything() }, "");
    check(&Selection { since: Since::Bookmark(Bookmark(u64::MAX)), alerts: false, ..everything() }, "");
    check(&Selection { since: Since::Moment(u64::MAX), ..everything() }, "");
    assert_eq!(
        export(&sample, &Selection { session: Some("c".to_owned()), ..everything() }),
        (String::new(), None)
    );
}

#[test]
fn a_call_that_changed_after_the_bookmark_is_handed_out_again() {
    let sample = sample();
    sample.event(30, "monitor", "tool:sealed", Some(1), Some(1), "x");
    let since = Since::Bookmark(Bookmark(2));
    let calls = Selection { since, problems: false, alerts: false, ..everything() };
    assert_eq!(export(&sample, &calls), ("a #1 @3".to_owned(), Some(3)));
}

#[test]
fn the_bookmark_never_goes_back() {
    let sample = sample();
    sample.sql("DELETE FROM event; DELETE FROM call");
    assert_eq!(export(&sample, &everything()).1, Some(2));
}

#[test]
fn more_rows_than_fit_on_a_page_are_all_there_once() {
    let sample = Sample::made_at(0);
    sample.session("a", 10);
    let rows = 2 * u64::from(PAGE) + 1;
    for n in 1..=rows {
        sample.failed(n.cast_signed(), 1, n, &format!("e{n:04}"), "x");
    }
    let (words, end) = export(&sample, &everything());
    let mut words: Vec<&str> = words.split(' ').collect();
    assert_eq!((words.len() as u64, end), (3 * rows + 1, Some(rows)));
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len() as u64, 3 * rows + 1);
}

#[test]
fn whoever_has_seen_enough_ends_it() {
    let sample = sample();
    let mut seen = 0;
    let end = sample.store.export(&everything(), |_| {
        seen += 1;
        Err(StoreError::Missing { path: "gone".into() })
    });
    assert!(end.is_err());
    assert_eq!(seen, 1);
}
