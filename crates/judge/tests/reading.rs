//! What is read of an output that is longer than anybody waits for.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use unstuck_judge::rules::Stream;
use unstuck_judge::{Call, Outcome, Rules};

const FILLER: &str = "[17/40] cc -O2 -Iinclude -c src/part.c -o build/part.o\n";
const ERROR: &str = "src/main.c:4:2: error: 'count' undeclared (first use in this function)\n";
const MB: usize = 1 << 20;

/// The line of the error, where it is found with so many bytes before and behind it.
fn found(in_passing: bool, before: usize, behind: usize) -> Option<u64> {
    let rules = Rules::built_in();
    let reading = rules.read();
    let mut reading = if in_passing { reading.in_passing() } else { reading };
    let (before, behind) = (before / FILLER.len(), behind / FILLER.len());
    let output = FILLER.repeat(before) + ERROR + &FILLER.repeat(behind);
    // Pieces that end anywhere, as they come out of a pipe.
    output.as_bytes().chunks(100_003).for_each(|piece| reading.feed(Stream::Stdout, piece));
    let diagnosis = rules.conclude(reading, &Call::shell("make"), Outcome::Exited { code: 2 }, None);
    let evidence = diagnosis.evidence.filter(|evidence| evidence.text == ERROR.trim_end())?;
    assert_eq!(evidence.line, before as u64 + 1, "{before} lines before it");
    Some(evidence.line)
}

#[test]
fn an_output_is_read_whole_where_nobody_waits_for_it() {
    for (before, behind) in [(0, 0), (15 * MB, 8 * MB), (20 * MB, 8 * MB), (28 * MB, 0)] {
        assert!(found(false, before, behind).is_some(), "{before} {behind}");
    }
}

#[test]
fn in_passing_the_beginning_and_the_newest_part_are_read() {
    for (before, behind) in [(0, 28 * MB), (15 * MB, 8 * MB), (28 * MB, 0), (28 * MB, MB - 100_000)] {
        assert!(found(true, before, behind).is_some(), "{before} {behind}");
    }
}

#[test]
fn in_passing_nothing_is_lost_where_beginning_and_newest_part_meet() {
    for before in (0..ERROR.len() + FILLER.len()).step_by(FILLER.len() / 3) {
        assert!(found(true, 16 * MB - before, MB / 2).is_some(), "{before}");
    }
}

#[test]
fn in_passing_what_lies_between_is_not_read() {
    assert_eq!(found(true, 20 * MB, 8 * MB), None);
}

#[test]
fn the_line_that_tells_most_has_its_number_with_and_without_a_last_line_break() {
    let rules = Rules::built_in();
    let line = |output: &str| {
        let mut reading = rules.read();
        reading.feed(Stream::Stderr, output.as_bytes());
        let told = rules.conclude(reading, &Call::shell("frob"), Outcome::Exited { code: 9 }, None);
        told.evidence.map(|evidence| (evidence.text, evidence.line))
    };
    let expected = Some(("frob: the gears are stuck".to_owned(), 3));
    assert_eq!(line("one\ntwo\nfrob: the gears are stuck\n"), expected);
    assert_eq!(line("one\ntwo\nfrob: the gears are stuck"), expected);
}
