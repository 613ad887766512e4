//! Counts what was said and refused in honest work, beside what was true.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use super::Made;
use super::session::Call;
use crate::Fault;
use crate::e2e::agents::Agent;
use crate::e2e::heard::{REFUSAL, Words};
use crate::e2e::model::{Asked, Step};
use crate::e2e::scenarios::squeezed;

/// So many of a hundred failing calls may come with words that nobody needs.
const MOST_NEEDLESS: usize = 5;

/// Words about a call that do not say it has failed: the same answer again, a state that has not moved, a circle.
const NO_CLAIM: [&str; 4] = ["look", "poll", "lap", "cycle"];

/// What was counted in one run, or in all of them.
#[derive(Debug, Default)]
pub struct Tally {
    runs: usize,
    calls: usize,
    failing: usize,
    /// A call that worked was said to have failed.
    claims: Vec<String>,
    /// A call was refused.
    refusals: Vec<String>,
    /// Words came with a call that worked, or the same words again for the same failing call.
    needless: Vec<String>,
    /// A call did not end as the session states.
    crooked: Vec<String>,
}

/// What all runs together counted.
#[derive(Debug, Default)]
pub struct Day(Mutex<Tally>);

impl Day {
    /// Adds one run.
    pub fn add(&self, tally: Tally) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.runs += tally.runs;
        all.calls += tally.calls;
        all.failing += tally.failing;
        all.claims.extend(tally.claims);
        all.refusals.extend(tally.refusals);
        all.needless.extend(tally.needless);
        all.crooked.extend(tally.crooked);
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
            all.claims.len(),
            all.refusals.len(),
            all.needless.len()
        );
        Some(match all.needless.len() * 100 > all.failing * MOST_NEEDLESS {
            true => Err(format!("{line}: more than {MOST_NEEDLESS} % of the failing calls")),
            false => Ok(line),
        })
    }
}

/// What `unstuck` says that it said.
struct Said {
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
        told: &[(Made<'_>, String)],
        timeline: &[Value],
        words: &Words,
    ) {
        self.runs += 1;
        let said = said(timeline);
        let mut before: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for (number, (made, answer)) in told.iter().enumerate() {
            self.calls += made.calls.len();
            self.failing += made.calls.iter().filter(|call| !call.worked).count();
            let answer = plain(answer);
            let labels: Vec<String> = made.calls.iter().map(|call| call.label()).collect();
            let place = format!("{} {session} turn {}, `{}`", agent.name, number + 1, labels.join("` and `"));
            let heard = heard(&said, &answer);
            let refused = answer.contains(REFUSAL) || heard.iter().any(|one| one.refused);
            if refused {
                self.refusals.push(format!("{place}: refused: {}", quoted(&heard, &answer)));
                continue;
            }
            let alone = made.calls.len() == 1;
            let crooked: Vec<String> =
                made.calls.iter().filter_map(|call| crooked(call, alone, &answer)).collect();
            if !crooked.is_empty() {
                // What was said of it cannot be judged by what the session states.
                self.crooked.push(format!("{place}: {}: {answer}", crooked.join(", ")));
                continue;
            }
            let worked = made.calls.iter().all(|call| call.worked);
            if heard.is_empty() && worked && words.heard(&answer).is_some() {
                self.claims.push(format!("{place}: said, and not in the timeline: {answer}"));
            }
            let known = before.entry(labels.join("\n")).or_default();
            for one in heard {
                match worked {
                    true if NO_CLAIM.contains(&one.track.as_str()) => {
                        self.needless.push(format!("{place}: it worked, and was told: {}", one.text));
                    }
                    true => self.claims.push(format!("{place}: it worked, and was told: {}", one.text)),
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
        let wrong =
            [("false claim", &self.claims), ("false refusal", &self.refusals), ("other end", &self.crooked)];
        let lines: Vec<String> = wrong
            .iter()
            .flat_map(|(what, all)| all.iter().map(move |one| format!("{what}: {one}")))
            .collect();
        if lines.is_empty() { Ok(()) } else { Err(format!("\n    {}", lines.join("\n    ")).into()) }
    }
}

/// Everything the timeline says was told to the model, each text once.
fn said(timeline: &[Value]) -> Vec<Said> {
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
        (!text.is_empty()).then_some(Said { text, track, refused })
    });
    texts.filter(|one| known.insert(one.text.clone())).collect()
}

/// An answer without what differs by the agent only: its line breaks, and the signs that Gemini CLI writes for `<`, `>` and `&`.
fn plain(answer: &str) -> String {
    squeezed(answer).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}

/// What of it is in an answer, without texts that are only a part of a longer one.
fn heard<'a>(said: &'a [Said], answer: &str) -> Vec<&'a Said> {
    let all: Vec<&Said> = said.iter().filter(|one| answer.contains(&one.text)).collect();
    let is_part =
        |one: &Said| all.iter().any(|other| other.text != one.text && other.text.contains(&one.text));
    all.iter().copied().filter(|one| !is_part(one)).collect()
}

fn quoted(heard: &[&Said], answer: &str) -> String {
    match heard.iter().find(|one| one.refused) {
        Some(one) => one.text.clone(),
        None => answer.to_owned(),
    }
}

/// What tells that a call ended otherwise than the session states: its output, or the exit code that the agent tells.
fn crooked(call: &Call, alone: bool, answer: &str) -> Option<String> {
    let missing = call.shows.as_ref().filter(|shows| !answer.contains(&squeezed(shows)));
    if let Some(shows) = missing {
        return Some(format!("its result does not show {shows:?}"));
    }
    let is_shell = matches!(call.asked, Asked::Own(Step::Shell(_)));
    let exit = exit_told(answer).filter(|_| alone && is_shell)?;
    (exit != call.exit).then(|| format!("it ended with {exit} and not with {}", call.exit))
}

/// The exit code in an agent's own words, where it tells one.
fn exit_told(answer: &str) -> Option<i32> {
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
        let asked = Asked::Own(Step::Shell(line.to_owned()));
        Call { asked, together: false, exit, worked, shows: Some(shows.to_owned()) }
    }

    /// Counts turns of one call each, with what the model received.
    #[track_caller]
    fn check(turns: &[(Call, &str)], timeline: &[Value], expected: [usize; 4]) {
        let made = |call| Made { turn: Turn::Say("done"), calls: vec![call] };
        let told: Vec<(Made<'_>, String)> =
            turns.iter().map(|(call, answer)| (made(call), (*answer).to_owned())).collect();
        let mut tally = Tally::default();
        tally.count("test", &CLAUDE, &told, timeline, &Words::read().unwrap());
        let counts = [&tally.claims, &tally.refusals, &tally.needless, &tally.crooked].map(Vec::len);
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
        let only_received = "up to date The state has not moved in 3 looks and does not move by itself. What it is \
                             waiting for has to change, or a person has to decide.";
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
