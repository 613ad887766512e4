//! The ladder: what may be asked again, what is said with a failure, and when it is enough.
//!
//! One event in, one decision out; the standing of the session is the only thing that moves. The ladder knows no tools
//! and reads no output: it compares prints (see [`Sight`] and [`Ending`]). It never refuses what was not explained
//! before, and never moves by two rungs of its preset at once.

mod after;
mod before;
mod preset;
mod replay;
pub mod see;
mod sight;
mod standing;
pub mod words;

#[cfg(test)]
mod tests;

pub use preset::{Limits, Preset, Row, Settings};
pub use replay::{Judged, Recorded, Replay};
pub use sight::{
    Change, Dir, Ending, Fault, Firmness, Manner, Moment, Print, Round, Sight, Speaker, State, Upshot,
};
pub use standing::{Agent, Known, Lap, Look, Memory, Said, Standing, Streak, Tick, World};

use crate::condition::Condition;
use crate::kind::{Kind, vocabulary};
use crate::shell::Script;

/// Does a script ask other machines, or a service that anybody may change?
pub(crate) fn is_remote(script: &Script) -> bool {
    script.commands().iter().any(|command| {
        let sub = command.operands().next().unwrap_or_default();
        let both = format!("{} {sub}", command.program);
        preset::remote_programs().iter().any(|name| *name == command.program || *name == both)
    })
}

/// The programs without which a script is bound to fail.
pub(crate) fn needed_programs(script: &Script) -> Vec<&str> {
    see::needed_commands(script).into_iter().map(|command| command.program.as_str()).collect()
}

vocabulary! {
    /// The rungs, from silence to the end of the run.
    Rung {
        /// Nothing is said.
        Observe = "observe",
        /// The cause is explained with the result that shows it.
        Note = "note",
        /// It is said that a repeat does not help.
        Hint = "hint",
        /// It is said again, with the way out.
        Insist = "insist",
        /// The call is refused.
        Deny = "deny",
        /// The run is stopped for a person.
        Halt = "halt",
    }
}

vocabulary! {
    /// What made two calls count as the same.
    Key {
        /// The call itself.
        Exact = "exact",
        /// What it is meant to do.
        Intent = "intent",
        /// What stops it.
        Cause = "cause",
        /// Its place in a cycle.
        Cycle = "cycle",
    }
}

vocabulary! {
    /// What is counted.
    Track {
        /// Failures of the same call.
        Repeat = "repeat",
        /// Failures of the same intent in other words.
        Variant = "variant",
        /// Failures of one cause that is bound to stop other calls too.
        Root = "root",
        /// Failures of different calls by one cause of their surroundings.
        Spread = "spread",
        /// Failures of the same approach with other details.
        Approach = "approach",
        /// A tool's short errors in a row that do not say what is wrong.
        Opaque = "opaque",
        /// Looks whose answer stays the same.
        Look = "look",
        /// Actions whose answer stays the same.
        Act = "act",
        /// Looks at something that may move by itself.
        Poll = "poll",
        /// Looks in a row that were all answered before.
        Rerun = "rerun",
        /// Runs after changes whose output stays the same.
        Lap = "lap",
        /// Laps of a cycle.
        Cycle = "cycle",
        /// Shell commands in a row that fail without a word.
        Silence = "silence",
    }
}

impl Track {
    /// Does it count questions, whose answers lie in the world and may change by themselves?
    pub const fn asks(self) -> bool {
        match self {
            Track::Look | Track::Poll | Track::Rerun => true,
            Track::Repeat
            | Track::Variant
            | Track::Root
            | Track::Spread
            | Track::Approach
            | Track::Opaque
            | Track::Act
            | Track::Lap
            | Track::Cycle
            | Track::Silence => false,
        }
    }

    /// What made the calls of this track count as the same.
    pub const fn key(self) -> Key {
        match self {
            Track::Repeat | Track::Look | Track::Act | Track::Poll => Key::Exact,
            Track::Variant | Track::Lap => Key::Intent,
            Track::Root | Track::Spread | Track::Approach | Track::Opaque | Track::Silence => Key::Cause,
            Track::Cycle | Track::Rerun => Key::Cycle,
        }
    }
}

/// What happens in a session.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The user said something.
    UserSpoke,
    /// An agent asks for a call.
    Asked(&'a Sight, Moment),
    /// A call ended.
    Ended(&'a Sight, &'a Ending, Moment),
    /// What went well until now ran in the place of this call, and repaired nothing of it.
    StillFails(&'a Sight),
}

/// What the ladder says to an event.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The rung. Before a call: observe (it may run), hint, insist, deny or halt; after it: observe, note, hint or insist.
    pub rung: Rung,
    /// What was counted, where something was.
    pub reason: Option<Reason>,
}

/// Why the ladder says something.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// What was counted.
    pub track: Track,
    /// How many.
    pub count: u32,
    /// The cause.
    pub kind: Kind,
    /// The rule that named the cause; empty where none did.
    pub rule: String,
    /// The line that shows the cause; empty where there is none.
    pub line: String,
    /// What can be looked at to see whether the cause still holds.
    pub condition: Condition,
    /// It may pass by itself.
    pub passes: bool,
}

impl Decision {
    /// Nothing to say.
    pub const SILENT: Decision = Decision { rung: Rung::Observe, reason: None };

    /// The stronger of two; the first where both are alike.
    fn or_stronger(self, other: Decision) -> Decision {
        if other.rung > self.rung { other } else { self }
    }
}

/// Moves a session by one event.
#[must_use = "a decision nobody hears is lost"]
pub fn step(settings: &Settings, standing: &mut Standing, event: Event<'_>) -> Decision {
    match event {
        Event::UserSpoke => {
            standing.turn += 1;
            Decision::SILENT
        }
        Event::Asked(sight, moment) => before::weigh(settings, standing, sight, moment),
        Event::Ended(sight, ending, moment) => after::weigh(settings, standing, sight, ending, moment),
        Event::StillFails(sight) => {
            let tick = standing.tick;
            for print in sight.roots.iter().chain([&sight.exact, &sight.intent, &sight.approach]) {
                if let Some(known) = standing.known.get_mut(*print) {
                    known.at = tick;
                }
            }
            Decision::SILENT
        }
    }
}
