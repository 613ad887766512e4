//! The links between events: what somebody else changed is found, and nothing that unstuck does itself looks like it.

use unstuck_store::{
    ChainFault, ChainFound, CopiesToo, Purge, RecoverHow, Removed, Retention, Root, is_damaged, put_aside,
};

use super::*;

const PATIENCE: Duration = Duration::from_secs(5);

/// A store with something of everything that writes rows of calls.
fn lived() -> Cellar {
    let mut cellar = Cellar::empty();
    for session in ["s", "t", "u"] {
        cellar.session = session;
        for (key, code) in [("a", 127), ("b", 0), ("c", 1)] {
            let command = format!("frob {key}");
            cellar.before(key, &command);
            cellar.after(key, &command, code, MISSING);
        }
        cellar.before("open", "sleep 1000");
        cellar.before("refused", "frob a");
        cellar.keep(&by_person(cellar.who(), Which::Key(Clean::from("open")), Ruling::Denied));
        // Told twice, in another order, and never begun.
        cellar.after("a", "frob a", 127, MISSING);
        cellar.after("z", "make", 2, "make: *** No rule to make target 'x'.  Stop.");
        cellar.before("z", "make");
        cellar.locked(|cellar| {
            cellar.before("late", "ls");
            cellar.after("late", "ls", 0, "");
        });
        let mut owned = cellar.asked("dead", "sleep 9");
        owned.who.owner = Clean::from("dead:1");
        cellar.keep(&Entry::Asked(Box::new(owned)));
    }
    cellar.now += 7 * HOUR;
    let now = cellar.now;
    cellar.keeper(|keeper| keeper.tend(now)).unwrap();
    cellar
}

fn chain(cellar: &Cellar) -> ChainFound {
    cellar.store().verify_chain().unwrap()
}

#[track_caller]
fn holds(cellar: &Cellar, after: &str) {
    let found = chain(cellar);
    assert_eq!((found.faults, found.first), (0, None), "after {after}: {found:?}");
}

/// What the first fault is after some SQL.
#[track_caller]
fn fault(sql: &str) -> ChainFault {
    let cellar = lived();
    let changed = cellar.database().execute(sql, []).unwrap();
    assert!(changed > 0, "{sql} changes nothing");
    chain(&cellar).first.unwrap_or_else(|| panic!("{sql} is not found"))
}

#[test]
fn any_value_of_an_event_that_somebody_changes_is_found_at_that_event() {
    holds(&lived(), "nothing");
    for set in [
        "at = at + 1",
        "channel = 'monitor'",
        "type = 'halt'",
        "session = 2",
        "call = 5",
        "call = NULL",
        "body = '{}'",
        "link = zeroblob(16)",
        "link = NULL",
        "record = NULL",
        "body = x'ff'",
    ] {
        let sql = format!("UPDATE event SET {set} WHERE seq = 7");
        let found = fault(&sql);
        let is_near = matches!(found, ChainFault::Event { seq: 7 | 8 });
        assert!(is_near, "{sql}: {found:?}");
    }
}

#[test]
fn events_that_somebody_takes_out_or_adds_are_found() {
    assert_eq!(fault("DELETE FROM event WHERE seq IN (5, 6)"), ChainFault::Missing { first: 5, last: 6 });
    assert_eq!(fault("DELETE FROM event WHERE seq <= 3"), ChainFault::Missing { first: 1, last: 3 });
    let last = chain(&lived()).events;
    let at_the_end = fault("DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)");
    assert_eq!(at_the_end, ChainFault::Missing { first: last, last });
    let added = "INSERT INTO event (at, channel, type, body, link) VALUES (1, 'progress', 'tool:start', '{}', zeroblob(16))";
    assert_eq!(fault(added), ChainFault::Event { seq: last + 1 });
    let moved = "UPDATE event SET seq = 10000 WHERE seq = 9";
    assert_eq!(fault(moved), ChainFault::Missing { first: 9, last: 9 });
}

#[test]
fn any_value_of_a_call_that_somebody_changes_is_found_at_that_call() {
    for (table, id, set) in [
        ("call", "id", "tool = 'Read'"),
        ("call", "id", "state = 'completed'"),
        ("call", "id", "ok = 1"),
        ("call", "id", "code = 0"),
        ("call", "id", "kind = 'network'"),
        ("call", "id", "ended_at = ended_at - 1"),
        ("call", "id", "key = 'other'"),
        ("call_text", "call", "label = 'ls'"),
        ("call_text", "call", "input = '{}'"),
        ("call_text", "call", "head = ''"),
        ("call_text", "call", "evidence = 'all is well'"),
        ("call_text", "call", "verdict = ''"),
    ] {
        let found = fault(&format!("UPDATE {table} SET {set} WHERE {id} = 1"));
        assert!(matches!(found, ChainFault::Call { call: 1, .. }), "{table} {set}: {found:?}");
    }
    // A call that is open cannot be made one that went well.
    let open = "UPDATE call SET state = 'completed', ok = 1, ended_at = 5 WHERE key = 'late'";
    assert!(matches!(fault(open), ChainFault::Call { .. }));
}

#[test]
fn nothing_that_unstuck_does_itself_looks_like_tampering() {
    let mut cellar = lived();
    let seen = &mut |_: &Removed| true;
    let mut store = cellar.store();
    store.purge(&Purge::Session("t".to_owned()), CopiesToo::IfOlder, &mut |_| {}).unwrap();
    drop(store);
    holds(&cellar, "a purge of a session");
    cellar.session = "v";
    cellar.before("x", "ls");
    cellar.after("x", "ls", 0, "");
    holds(&cellar, "a call behind it");
    cellar.now += 40 * DAY;
    let now = cellar.now;
    cellar.store().expire(&Retention::default(), now, seen).unwrap();
    assert!(chain(&cellar).removed > 10);
    holds(&cellar, "the expiry of events");
    cellar.before("y", "ls");
    cellar.store().expire(&Retention { max_size: 1, ..Retention::default() }, now, seen).unwrap();
    holds(&cellar, "the expiry for the size");
    cellar.before("z", "ls");
    cellar.after("z", "ls", 0, "");
    let before = cellar.now - 500;
    cellar.store().purge(&Purge::Before(before), CopiesToo::IfOlder, &mut |_| {}).unwrap();
    holds(&cellar, "a purge of everything old");
    cellar.store().give_back(&mut || true).unwrap();
    cellar.before("zz", "ls");
    holds(&cellar, "all of it");
}

#[test]
fn what_is_recovered_is_linked_anew_and_keeps_its_links_where_it_can() {
    let cellar = lived();
    let head = chain(&cellar).head;
    let root = Root::open(&cellar.root(), None).unwrap();
    assert!(!is_damaged(&root, PATIENCE, cellar.now, &mut |_| {}).unwrap());
    let how = RecoverHow { dry_run: false, with_approvals: true, now: cellar.now };
    // All of it into nothing: the same history.
    let aside = put_aside(&root, PATIENCE, cellar.now).unwrap();
    let recovered = cellar.store().recover(&aside, how, &mut |_| {}).unwrap();
    assert_eq!((recovered.lost, recovered.mended, recovered.unproven), (0, 0, 0), "{recovered:?}");
    holds(&cellar, "a recovery into an empty store");
    assert_eq!(chain(&cellar).head, head);
    // A part of it, behind something new.
    let aside = put_aside(&root, PATIENCE, cellar.now + 1).unwrap();
    rusqlite::Connection::open(&aside)
        .unwrap()
        .execute_batch(
            "DELETE FROM event WHERE seq IN (4, 9); UPDATE call_text SET head = x'ff' WHERE call = 3;",
        )
        .unwrap();
    let mut later = cellar;
    later.session = "w";
    later.before("n", "ls");
    let recovered = later.store().recover(&aside, how, &mut |_| {}).unwrap();
    assert_eq!(recovered.lost, 2, "{recovered:?}");
    holds(&later, "a recovery behind something new");
    later.after("n", "ls", 0, "");
    holds(&later, "and a call behind that");
}
