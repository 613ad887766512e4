//! Calls wait here for their results. Both transcripts write a call and its result as separate lines, tied by an id.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use unstuck_judge::{Call, Observation, Outcome};

use crate::recorded::{MAIN_AGENT, RecordedCall};

/// So many bytes of lines may pass while a call waits for its result. All that comes after it waits with it, in memory, and a
/// run may be gigabytes long.
const WAITS_FOR: u64 = 64 * 1024 * 1024;
/// A short line counts as so many bytes: each result is looked for among all calls that wait.
const LINE_COUNTS: u64 = 16 * 1024;

/// A result as it came.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) outcome: Outcome,
    pub(super) said_ok: Option<bool>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) merged: Vec<u8>,
}

impl Answer {
    /// An ending that left no output.
    pub(super) fn silent(outcome: Outcome) -> Answer {
        Answer { outcome, said_ok: None, stdout: Vec::new(), stderr: Vec::new(), merged: Vec::new() }
    }
}

/// A call that was made.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) id: String,
    pub(super) agent: String,
    pub(super) call: Call,
    pub(super) at: Option<u64>,
    pub(super) round: u64,
}

#[derive(Debug)]
struct Waiting {
    made: Made,
    cwd: String,
    new_user_turn: bool,
    answer: Option<Answer>,
    answered_at: Option<u64>,
}

/// All calls of one run, on their way from being made to being known.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    trace: Option<String>,
    /// By agent: a sub-agent's calls do not wait for the call that started it.
    waiting: BTreeMap<String, VecDeque<Waiting>>,
    /// The folder that the run works in, as it was told last.
    cwd: String,
    /// Resumed and forked runs repeat their past, word by word.
    seen: Names,
    person_spoke: bool,
    ready: Vec<RecordedCall>,
    next: u64,
    /// The bytes of the lines since nothing waited.
    passed: u64,
}

/// Names that were met already. A run may be gigabytes long, so only their prints are kept.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<u64>);

impl Names {
    /// Is it the first time?
    pub(super) fn is_new(&mut self, name: &str) -> bool {
        let mut print = DefaultHasher::new();
        name.hash(&mut print);
        self.0.insert(print.finish())
    }
}

impl Pairing {
    /// Names the run. The first name holds: what a resumed run repeats belongs to it.
    pub(super) fn name(&mut self, trace: &str) {
        self.trace.get_or_insert_with(|| trace.to_owned());
    }

    /// Says where the run works from now on.
    pub(super) fn works_in(&mut self, cwd: &str) {
        if self.cwd != cwd {
            cwd.clone_into(&mut self.cwd);
        }
    }

    /// Does nothing wait? Whoever goes on reading here some other time misses nothing.
    pub(super) fn is_at_rest(&self) -> bool {
        !self.person_spoke && self.ready.is_empty() && self.waiting.values().all(VecDeque::is_empty)
    }

    /// A line of so many bytes was read. What has waited for too long is given up.
    pub(super) fn pass(&mut self, bytes: u64) {
        if self.waiting.values().all(VecDeque::is_empty) {
            self.passed = 0;
            self.waiting.clear();
            return;
        }
        self.passed += bytes.max(LINE_COUNTS);
        if self.passed > WAITS_FOR {
            self.give_up();
        }
    }

    /// A call was made.
    pub(super) fn make(&mut self, made: Made) {
        if !self.seen.is_new(&made.id) {
            return;
        }
        let cwd = self.cwd.clone();
        let new_user_turn = made.agent == MAIN_AGENT && std::mem::take(&mut self.person_spoke);
        let queue = self.waiting.entry(made.agent.clone()).or_default();
        queue.push_back(Waiting { made, cwd, new_user_turn, answer: None, answered_at: None });
    }

    /// A result came. One that belongs to no open call is a repetition, or came after the call was given up.
    pub(super) fn answer(&mut self, id: &str, answer: Answer, at: Option<u64>) {
        for queue in self.waiting.values_mut() {
            if let Some(waiting) =
                queue.iter_mut().find(|waiting| waiting.made.id == id && waiting.answer.is_none())
            {
                waiting.answer = Some(answer);
                waiting.answered_at = at;
                break;
            }
        }
        self.settle();
    }

    /// A person spoke: what the agent was doing is over, whether or not anybody wrote that down.
    pub(super) fn person_spoke(&mut self) {
        self.interrupted(MAIN_AGENT);
        self.person_spoke = true;
    }

    /// Somebody stopped `agent` in the middle of its calls.
    pub(super) fn interrupted(&mut self, agent: &str) {
        for waiting in self.waiting.get_mut(agent).into_iter().flatten() {
            waiting.answer.get_or_insert_with(|| Answer::silent(Outcome::Interrupted));
        }
        self.settle();
    }

    /// Takes what is known.
    pub(super) fn take(&mut self) -> Vec<RecordedCall> {
        std::mem::take(&mut self.ready)
    }

    /// Takes everything.
    pub(super) fn finish(mut self) -> Vec<RecordedCall> {
        self.give_up();
        self.ready
    }

    /// Nobody will tell how the calls that still wait ended.
    fn give_up(&mut self) {
        for waiting in self.waiting.values_mut().flatten() {
            waiting.answer.get_or_insert_with(|| Answer::silent(Outcome::NoExitCode));
        }
        self.settle();
    }

    /// Takes everything whose result is known; the rest may still get one.
    pub(super) fn leave(mut self) -> Vec<RecordedCall> {
        for queue in self.waiting.values_mut() {
            queue.retain(|waiting| waiting.answer.is_some());
        }
        self.settle();
        self.ready
    }

    /// Moves the calls whose turn it is and whose results are known.
    fn settle(&mut self) {
        for queue in self.waiting.values_mut() {
            while queue.front().is_some_and(|waiting| waiting.answer.is_some()) {
                let Some(Waiting { made, cwd, new_user_turn, answer: Some(answer), answered_at }) =
                    queue.pop_front()
                else {
                    break;
                };
                let observation = Observation {
                    call: made.call,
                    outcome: answer.outcome,
                    http_status: None,
                    stdout: answer.stdout,
                    stderr: answer.stderr,
                    merged: answer.merged,
                };
                self.ready.push(RecordedCall {
                    trace: self.trace.clone().unwrap_or_default(),
                    index: self.next,
                    id: made.id,
                    agent: made.agent,
                    observation,
                    said_ok: answer.said_ok,
                    new_user_turn,
                    at: made.at,
                    took_ms: answered_at.zip(made.at).map(|(end, start)| end.saturating_sub(start)),
                    round: Some(made.round),
                    cwd,
                });
                self.next += 1;
            }
        }
    }
}
