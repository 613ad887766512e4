//! Entries that are kept in one transaction are kept as if one after the other.

use unstuck_judge::Outcome;
use unstuck_store::{Answer, Entry};

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
    cellar.keeper(|keeper| keeper.keep_together(&entries, now))
}

#[test]
fn what_is_kept_together_is_answered_and_recorded_as_if_it_came_one_by_one() {
    let (mut one, mut other) = (Cellar::empty(), Cellar::empty());
    let answers = together(&mut one);
    let (entries, now) = (entries(&other), other.now);
    let expected: Vec<Answer> =
        entries.iter().map(|entry| other.keeper(|keeper| keeper.keep(entry, now))).collect();
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
            "CREATE TRIGGER refuses BEFORE INSERT ON call WHEN new.key = 'd' BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .unwrap();
    let answers = together(&mut cellar);
    let mut expected = ["stored"; 8];
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
