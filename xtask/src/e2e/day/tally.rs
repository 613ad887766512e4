//! Counts false claims, false refusals and needless words in honest work.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::PlayedTurn;
use super::session::Call;
use crate::Fault;
use crate::e2e::agents::Agent;
use crate::e2e::heard::{REFUSAL, Words};
use crate::e2e::model::{Step, TurnCall};
use crate::e2e::scenarios::squeezed;

/// Most needless words per hundred failing calls.
const MOST_NEEDLESS: usize = 5;

/// Words about a call that do not say it has failed: the same answer again, a state that has not moved, a circle.
const NEUTRAL_TRACKS: [&str; 4] = ["look", "poll", "lap", "cycle"];

/// Counts of one run, or of all of them.
#[derive(Debug, Default)]
pub struct Tally {
    runs: usize,
    calls: usize,
    failing: usize,
    /// A call that worked was said to have failed.
    false_claims: Vec<String>,
    /// A call was refused.
    false_refusals: Vec<String>,
    /// Words came with a call that worked, or the same words again for the same failing call.
    needless: Vec<String>,
    /// A call did not end as the session states.
    mismatches: Vec<String>,
}

/// The counts of all runs together.
#[derive(Debug, Default)]
pub struct DayTotal(Mutex<Tally>);

impl DayTotal {
    /// Adds one run.
    pub fn add(&self, tally: Tally) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.runs += tally.runs;
        all.calls += tally.calls;
        all.failing += tally.failing;
        all.false_claims.extend(tally.false_claims);
        all.false_refusals.extend(tally.false_refusals);
        all.needless.extend(tally.needless);
        all.mismatches.extend(tally.mismatches);
    }

    /// Shows the needless words and returns the closing line; nothing where no session was played. A fault is too many of
    /// them.
    pub fn close(&self) -> Option<Result<String, String>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.runs == 0 {
            return None;
        }
        println!("\nneedless words in the day's work: {}", all.needless.len());
        all.needless.iter().for_each(|line| println!("  {line}"));
        let line = format!(
            "day's work: {} runs, {} calls, {} failing, {} false claims, {} false refusals, {} needless words",
            all.runs,
            all.calls,
            all.failing,
            all.false_claims.len(),
            all.false_refusals.len(),
            all.needless.len()
        );
        Some(match all.needless.len() * 100 > all.failing * MOST_NEEDLESS {
            true => Err(format!("{line}: more than {MOST_NEEDLESS} % of the failing calls")),
            false => Ok(line),
        })
    }
}

/// A text that `unstuck` gave the model, by the timeline.
struct Message {
    text: String,
    track: String,
    refused: bool,
}

impl Tally {
    /// Counts one run: every turn with what the model received after it, beside what the timeline says was said.
    pub fn count(
        &mut self,
        session: &str,
        agent: &Agent,
        played: &[(PlayedTurn<'_>, String)],
        timeline: &[Value],
        words: &Words,
    ) {
        self.runs += 1;
        let messages = messages(timeline);
        let mut before: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for (number, (turn, answer)) in played.iter().enumerate() {
            self.calls += turn.calls.len();
            self.failing += turn.calls.iter().filter(|call| !call.worked).count();
            let answer = plain(answer);
            let labels: Vec<String> = turn.calls.iter().map(|call| call.label()).collect();
            let place = format!("{} {session} turn {}, `{}`", agent.name, number + 1, labels.join("` and `"));
            let received = received(&messages, &answer);
            let refused = answer.contains(REFUSAL) || received.iter().any(|one| one.refused);
            if refused {
                self.false_refusals.push(format!("{place}: refused: {}", quoted(&received, &answer)));
                continue;
            }
            let alone = turn.calls.len() == 1;
            let mismatches: Vec<String> =
                turn.calls.iter().filter_map(|call| mismatch(call, alone, &answer)).collect();
            if !mismatches.is_empty() {
                // The words about it cannot be judged by an end it did not have.
                self.mismatches.push(format!("{place}: {}: {answer}", mismatches.join(", ")));
                continue;
            }
            let worked = turn.calls.iter().all(|call| call.worked);
            if received.is_empty() && worked && words.heard(&answer).is_some() {
                self.false_claims.push(format!("{place}: said, and not in the timeline: {answer}"));
            }
            let known = before.entry(labels.join("\n")).or_default();
            for one in received {
                match worked {
                    true if NEUTRAL_TRACKS.contains(&one.track.as_str()) => {
                        self.needless.push(format!("{place}: it worked, and was told: {}", one.text));
                    }
                    true => self.false_claims.push(format!("{place}: it worked, and was told: {}", one.text)),
                    false if !known.insert(&one.text) => {
                        self.needless.push(format!("{place}: the same words again: {}", one.text));
                    }
                    false => {}
                }
            }
        }
    }

    /// A fault where anything but needless words was found: those are counted over all runs.
    pub fn verdict(&self) -> Result<(), Fault> {
        let wrong = [
            ("false claim", &self.false_claims),
            ("false refusal", &self.false_refusals),
            ("other end", &self.mismatches),
        ];
        let lines: Vec<String> = wrong
            .iter()
            .flat_map(|(what, all)| all.iter().map(move |one| format!("{what}: {one}")))
            .collect();
        if lines.is_empty() { Ok(()) } else { Err(format!("\n    {}", lines.join("\n    ")).into()) }
    }
}

/// Returns every text the model was given by the timeline, each once.
fn messages(timeline: &[Value]) -> Vec<Message> {
    let mut known = BTreeSet::new();
    let spoken = timeline.iter().filter(|event| event["body"]["spoken"] != false);
    let texts = spoken.filter_map(|event| {
        let refused = match event["event"].as_str() {
            Some("tool:denied" | "halt") => true,
            Some("tool:advice") => false,
            _ => return None,
        };
        let text = squeezed(event["body"]["text"].as_str()?);
        let track = event["body"]["track"].as_str().unwrap_or_default().to_owned();
        (!text.is_empty()).then_some(Message { text, track, refused })
    });
    texts.filter(|one| known.insert(one.text.clone())).collect()
}

/// An answer without what differs by the agent only: its line breaks, and the signs that Gemini CLI writes for `<`, `>` and `&`.
fn plain(answer: &str) -> String {
    squeezed(answer).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// Returns the texts that are in an answer, without those that are only a part of a longer one.
fn received<'a>(messages: &'a [Message], answer: &str) -> Vec<&'a Message> {
    let all: Vec<&Message> = messages.iter().filter(|one| answer.contains(&one.text)).collect();
    let is_part =
        |one: &Message| all.iter().any(|other| other.text != one.text && other.text.contains(&one.text));
    all.iter().copied().filter(|one| !is_part(one)).collect()
}

fn quoted(received: &[&Message], answer: &str) -> String {
    match received.iter().find(|one| one.refused) {
        Some(one) => one.text.clone(),
        None => answer.to_owned(),
    }
}

/// Says how a call ended otherwise than its session states, by its output or by the exit code the agent reports.
fn mismatch(call: &Call, alone: bool, answer: &str) -> Option<String> {
    let missing = call.shows.as_ref().filter(|shows| !answer.contains(&squeezed(shows)));
    if let Some(shows) = missing {
        return Some(format!("its result does not show {shows:?}"));
    }
    let is_shell = matches!(call.invocation, TurnCall::Own(Step::Shell(_)));
    let exit = reported_exit(answer).filter(|_| alone && is_shell)?;
    (exit != call.exit).then(|| format!("it ended with {exit} and not with {}", call.exit))
}

/// Returns the exit code the agent reports, if it reports one.
fn reported_exit(answer: &str) -> Option<i32> {
    const MARKS: [&str; 3] = ["Process exited with code ", "Exit Code: ", "Exit code "];
    let after = MARKS.iter().find_map(|mark| answer.split(mark).nth(1))?;
    after.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::e2e::agents::CLAUDE;
    use crate::e2e::model::Turn;

    fn call(line: &str, exit: i32, worked: bool, shows: &str) -> Call {
        let invocation = TurnCall::Own(Step::Shell(line.to_owned()));
        Call { invocation, together: false, exit, worked, shows: Some(shows.to_owned()) }
    }

    /// Counts turns of one call each, with what the model received.
    #[track_caller]
    fn check(turns: &[(Call, &str)], timeline: &[Value], expected: [usize; 4]) {
        let turn = |call| PlayedTurn { turn: Turn::Say("done"), calls: vec![call] };
        let played: Vec<(PlayedTurn<'_>, String)> =
            turns.iter().map(|(call, answer)| (turn(call), (*answer).to_owned())).collect();
        let mut tally = Tally::default();
        tally.count("test", &CLAUDE, &played, timeline, &Words::read().unwrap());
        let counts =
            [&tally.false_claims, &tally.false_refusals, &tally.needless, &tally.mismatches].map(Vec::len);
        assert_eq!(counts, expected, "{tally:?}");
    }

    fn advice(track: &str, text: &str) -> Value {
        json!({"event": "tool:advice", "body": {"track": track, "text": text, "spoken": true}})
    }

    #[test]
    fn words_about_a_failure_with_a_call_that_worked_are_a_false_claim() {
        let timeline = [advice("repeat", "This failed: <x>")];
        let works = || call("make", 0, true, "up to date");
        check(&[(works(), "up to date This failed: <x>")], &timeline, [1, 0, 0, 0]);
        check(&[(works(), "up to date This failed: &lt;x&gt;")], &timeline, [1, 0, 0, 0]);
        check(&[(works(), "up to date")], &timeline, [0, 0, 0, 0]);
        check(&[(call("make", 2, false, "Error"), "Error This failed: <x>")], &timeline, [0, 0, 0, 0]);
        let only_received = "up to date The state was the same in 3 looks. Leave time before the next look; if it should \
                             have moved by now, tell the person.";
        check(&[(works(), only_received)], &[], [1, 0, 0, 0]);
    }

    #[test]
    fn every_refusal_is_a_false_one() {
        let refused = "Blocked by unstuck: it fails";
        check(&[(call("make", 2, false, "Error"), refused)], &[], [0, 1, 0, 0]);
        let denied = [json!({"event": "tool:denied", "body": {"text": "Not run: it fails"}})];
        check(&[(call("make", 0, true, "done"), "Not run: it fails")], &denied, [0, 1, 0, 0]);
    }

    #[test]
    fn the_same_words_again_are_needless_and_so_are_words_with_an_answer() {
        let timeline = [advice("repeat", "This failed"), advice("look", "The same answer")];
        let fails = || call("make", 2, false, "Error");
        check(&[(fails(), "Error This failed"), (fails(), "Error This failed")], &timeline, [0, 0, 1, 0]);
        check(&[(call("ls", 0, true, "src"), "src The same answer")], &timeline, [0, 0, 1, 0]);
    }

    #[test]
    fn a_call_that_ends_otherwise_than_stated_is_told_and_not_judged() {
        let timeline = [advice("repeat", "This failed")];
        check(&[(call("make", 0, true, "built"), "Exit code 2 broken This failed")], &timeline, [0, 0, 0, 1]);
        check(&[(call("make", 2, false, "Error"), "Exit Code: 1 Error")], &[], [0, 0, 0, 1]);
        check(&[(call("make", 2, false, "Error"), "Process exited with code 2 Error")], &[], [0, 0, 0, 0]);
    }
}
