//! Entries that are kept in one transaction are kept as if one after the other.

use rusqlite::Row;
use rusqlite::types::Value;
use unstuck_judge::Outcome;
use unstuck_store::{Advocate, Answer, Checked, Entry, Sender};

use crate::cellar::*;

/// A row of calls, some of which fail, and one that is refused.
fn entries(cellar: &Cellar) -> Vec<Entry> {
    let asked = |key: &str, command: &str| Entry::Asked(Box::new(cellar.asked(key, command)));
    let ended = |key: &str, command: &str, code, printed| {
        let seen = observation(command, Outcome::Exited { code }, printed);
        Entry::Ended(Box::new(cellar.ended(key, &seen)))
    };
    vec![
        asked("a", "ls"),
        asked("b", "frob x"),
        ended("a", "ls", 0, "src"),
        ended("b", "frob x", 127, MISSING),
        asked("c", "frob x"),
        asked("d", "pwd"),
        ended("d", "pwd", 0, "/tmp"),
        ended("e", "make", 2, "make: *** No rule to make target 'x'.  Stop."),
    ]
}

fn together(cellar: &mut Cellar) -> Vec<Answer> {
    let (entries, now) = (entries(cellar), cellar.now);
    cellar.dice += 1_000_000;
    cellar.keeper(|keeper| keeper.keep_together(&entries, &vec![AS_IT_WAS; entries.len()], now))
}

/// Whatever is looked at is as it was.
const AS_IT_WAS: Option<&dyn Advocate> = Some(&World(Checked::Holds));

#[test]
fn what_is_kept_together_is_answered_and_recorded_as_if_it_came_one_by_one() {
    let (mut one, mut other) = (Cellar::empty(), Cellar::empty());
    let answers = together(&mut one);
    let (entries, now) = (entries(&other), other.now);
    let expected: Vec<Answer> =
        entries.iter().map(|entry| other.keeper(|keeper| keeper.keep_or(entry, now, AS_IT_WAS))).collect();
    assert_eq!(answers, expected);
    assert!(answers[4].said.stance.refuses(), "it knows what failed just before");
    assert_eq!(one.calls(), other.calls());
    assert_eq!(one.events_of_calls(), other.events_of_calls());
    assert_eq!(together(&mut one).len(), 8);
    assert_eq!(one.calls(), other.calls(), "what is told twice is recorded once");
    other.before("z", "ls");
}

#[test]
fn one_entry_that_the_tables_refuse_does_not_take_the_others_along() {
    let mut cellar = Cellar::empty();
    cellar.before("first", "true");
    cellar
        .database()
        .execute_batch(
            // A row like the first one is refused.
            "CREATE UNIQUE INDEX refuses ON call (CASE WHEN key IN ('first', 'd') THEN 1 END)",
        )
        .unwrap();
    let answers = together(&mut cellar);
    let mut expected = ["recorded"; 8];
    (expected[5], expected[6]) = ("spooled", "spooled");
    assert_eq!(answers.iter().map(kept).collect::<Vec<_>>(), expected);
    let without = ["first executing 1 -", "a completed 1 -", "b failed 1 command_not_found", "c denied 2 -"];
    assert_eq!(cellar.calls()[..4], without);
    assert_eq!(cellar.calls().len(), 5);
    cellar.before("last", "true");
    assert_eq!(cellar.events().iter().filter(|kind| *kind == "own_fault").count(), 2, "and it is told");
}

#[test]
fn while_the_database_is_held_all_of_them_wait_in_the_spool_and_are_taken_in_once() {
    let mut cellar = Cellar::empty();
    cellar.before("first", "true");
    let answers = cellar.locked(together);
    assert_eq!(answers.iter().map(kept).collect::<Vec<_>>(), ["spooled"; 8]);
    cellar.before("last", "true");
    cellar.before("very last", "true");
    let calls = cellar.calls();
    let kept = ["a completed 1 -", "b failed 1 command_not_found", "c executing 2 -", "d completed 1 -"];
    assert_eq!(calls[1..5], kept, "nothing was refused");
    assert_eq!(calls.len(), 1 + 5 + 2, "{calls:?}");
}

/// All rows of all tables that entries move, as text. Links are checked and not compared: what begins and ends in one batch needs
/// one record of its call where two are written otherwise.
fn tables(cellar: &Cellar) -> Vec<String> {
    let chain = cellar.store().verify_chain().unwrap();
    assert_eq!((chain.faults, chain.first), (0, None));
    let database = cellar.database();
    let dump = |table: &str| -> Vec<String> {
        let columns = if table == "event" { "seq, at, channel, type, session, call, body" } else { "*" };
        let sql = format!("SELECT {columns} FROM {table} ORDER BY 1, 2, 3");
        let mut statement = database.prepare(&sql).unwrap();
        let width = statement.column_count();
        let line = |row: &Row<'_>| {
            let cells: Vec<Value> = (0..width).map(|cell| row.get(cell)).collect::<Result<_, _>>()?;
            Ok(format!("{table} {cells:?}"))
        };
        statement.query_map([], line).unwrap().map(Result::unwrap).collect()
    };
    ["session", "call", "call_text", "event", "standing", "brake", "lesson", "stopper"]
        .into_iter()
        .flat_map(dump)
        .collect()
}

/// What is told of a call: its name, then `?` asked by the agent, `>` it runs already, `<` it went well, `!` it failed, then
/// what is called.
fn told(cellar: &mut Cellar, line: &str) -> Entry {
    cellar.now += 7;
    let (key, rest) = line.split_at(1);
    let (sign, command) = rest.split_at(1);
    let ended = |code, printed| {
        let seen = observation(command, Outcome::Exited { code }, printed);
        Entry::Ended(Box::new(cellar.ended(key, &seen)))
    };
    match sign {
        "?" => Entry::Asked(Box::new(cellar.asked(key, command))),
        ">" => {
            let mut asked = cellar.asked(key, command);
            asked.sender = Sender::Runner;
            Entry::Asked(Box::new(asked))
        }
        "<" => ended(0, "all of it"),
        _ => ended(127, MISSING),
    }
}

/// Batches of entries leave the same rows behind as the same entries one by one.
#[track_caller]
fn check_rows(batches: &[&[&str]]) {
    let (mut one, mut other) = (Cellar::empty(), Cellar::empty());
    for batch in batches {
        let entries: Vec<Entry> = batch.iter().map(|line| told(&mut one, line)).collect();
        let answers = one.keeper(|keeper| keeper.keep_together(&entries, &[], one.now));
        let alone = batch.iter().map(|line| {
            let entry = told(&mut other, line);
            other.keeper(|keeper| keeper.keep(&entry, other.now))
        });
        assert_eq!(answers, alone.collect::<Vec<_>>(), "{batch:?}");
    }
    assert_eq!(tables(&one), tables(&other), "{batches:?}");
}

#[test]
fn calls_that_begin_and_end_in_one_batch_leave_the_rows_that_they_would_leave_one_by_one() {
    check_rows(&[&["a>ls", "a<ls"]]);
    check_rows(&[&["a>ls", "b>pwd", "b<pwd", "a<ls", "c>ls", "c<ls"]]);
    check_rows(&[&["a>ls", "b>pwd"], &["b<pwd", "c>make", "a<ls"], &["c<make", "d>make"]]);
    // The same call twice at once, and a call of which nobody saw the beginning.
    check_rows(&[&["a>ls", "b>ls", "a<ls", "b<ls", "c<ls"]]);
    // What is told twice.
    check_rows(&[
        &["a>ls", "a>ls", "a<ls"],
        &["b>ls", "b<ls", "b<ls"],
        &["c>ls", "c<ls", "c>ls", "d>pwd", "d<pwd"],
    ]);
    // A name that was given before.
    check_rows(&[&["a>ls", "a<ls"], &["a>pwd", "a<pwd", "b>ls", "b<ls"]]);
}

#[test]
fn failures_among_them_are_got_over_learnt_from_and_counted_as_one_by_one() {
    check_rows(&[&["a>frob x", "a!frob x", "b>frob x", "b<frob x", "c>ls", "c<ls"]]);
    check_rows(&[
        &["a?frob x", "a!frob x"],
        &["b>cargo install frob", "c>frob x", "b<cargo install frob", "c<frob x"],
    ]);
    check_rows(&[
        &["a?frob x", "a!frob x", "b?frob x", "c?frob x"],
        &["d>frob x", "e>ls", "e<ls", "d<frob x"],
    ]);
}
