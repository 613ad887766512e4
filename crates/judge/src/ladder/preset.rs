//! The numbers of the ladder, as `rules/ladder.toml` gives them. Logic is elsewhere.

use std::time::Duration;

use super::sight::{Change, Firmness};
use super::{Rung, Track};
use crate::kind::{Kind, vocabulary};

include!(concat!(env!("OUT_DIR"), "/ladder.rs"));

vocabulary! {
    /// How much room an agent gets.
    Preset {
        /// As much as the cause leaves.
        Adaptive = "adaptive",
        /// Three failures of the same call are a hint, five are enough.
        Classic = "classic",
    }
}

/// How many of what it counts bring a row to each rung; 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The cause is explained.
    pub note: u32,
    /// It is said that a repeat does not help.
    pub hint: u32,
    /// It is said again.
    pub insist: u32,
    /// The next one is refused.
    pub deny: u32,
    /// So many refusals in a row stop the run.
    pub halt: u32,
}

impl Limits {
    /// What a count is worth with a result, at most one rung above what was said before. A note explains and does not
    /// step in, so it is no rung to be stopped at.
    pub fn word(self, count: u32, told: Rung) -> Rung {
        let reached = |limit: u32| limit > 0 && count >= limit;
        if reached(self.insist) && (told >= Rung::Hint || self.hint == 0) {
            Rung::Insist
        } else if reached(self.hint) || reached(self.insist) {
            Rung::Hint
        } else if reached(self.note) {
            Rung::Note
        } else {
            Rung::Observe
        }
    }

    /// Does a count bring a refusal into question?
    pub fn refuses(self, count: u32) -> bool {
        self.deny > 0 && count >= self.deny
    }

    /// What must have been said before a call is refused: the row's last rung below it, and an explanation in any case.
    pub fn last_word(self) -> Rung {
        let stands_before = |limit: u32| limit > 0 && limit <= self.deny;
        if stands_before(self.insist) {
            Rung::Insist
        } else if stands_before(self.hint) {
            Rung::Hint
        } else {
            Rung::Note
        }
    }
}

impl Limits {
    /// The same for whoever sees only a part of what an agent does.
    fn of_a_part(self, track: Track) -> Limits {
        match track {
            // What stopped it may be put right by now, and one more attempt tells.
            Track::Repeat | Track::Variant if self.deny > 0 => Limits { deny: self.deny.max(2), ..self },
            Track::Repeat | Track::Variant => self,
            // That it stops another call as well is said, and no more.
            Track::Root | Track::Spread | Track::Approach | Track::Opaque => {
                Limits { deny: 0, halt: 0, ..self }
            }
            // Nobody knows what happened between two answers.
            Track::Look
            | Track::Act
            | Track::Poll
            | Track::Rerun
            | Track::Lap
            | Track::Cycle
            | Track::Silence => NEVER,
        }
    }
}

/// After so long, what failed may have been put right by something that nobody here saw.
const UNSEEN: Duration = Duration::from_secs(30);

/// Never steps in.
pub const NEVER: Limits = Limits { note: 0, hint: 0, insist: 0, deny: 0, halt: 0 };

/// One row of the table. A part that is not given fits everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The preset it belongs to.
    pub preset: Preset,
    /// What it counts.
    pub track: Track,
    /// For causes that stand so firmly.
    pub firm: Option<Firmness>,
    /// For this cause.
    pub kind: Option<Kind>,
    /// For this tool.
    pub tool: Option<std::borrow::Cow<'static, str>>,
    /// Its numbers.
    pub limits: Limits,
}

/// The table that holds for a session: the user's rows before the built-in ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    preset: Preset,
    own: Vec<Row>,
    sees_a_part: bool,
}

impl Settings {
    /// The built-in numbers of a preset.
    pub fn of(preset: Preset) -> Settings {
        Settings { preset, own: Vec::new(), sees_a_part: false }
    }

    /// The same for whoever sees only a part of what an agent does: what was not seen to change may have changed. Only the same
    /// call is refused then, after one more attempt, and not for long; answers may be the same as often as they like.
    #[must_use]
    pub fn seeing_a_part(self) -> Settings {
        Settings { sees_a_part: true, ..self }
    }

    /// After how long a call that is refused may be tried once more, whatever was seen meanwhile; `None` where all is seen.
    pub fn tries_again_after(&self) -> Option<Duration> {
        self.sees_a_part.then_some(UNSEEN)
    }

    /// Is only a part of what an agent does seen?
    pub fn sees_a_part(&self) -> bool {
        self.sees_a_part
    }

    /// Are the failures of a call counted whatever their cause?
    pub fn counts_calls(&self) -> bool {
        self.preset == Preset::Classic
    }

    /// Puts a row before all others.
    pub fn put_first(&mut self, row: Row) {
        self.own.insert(0, row);
    }

    /// The numbers for what is counted. The first row that fits holds; where none does, the ladder never steps in.
    pub fn limits(&self, track: Track, firm: Firmness, kind: Kind, tool: &str) -> Limits {
        let fits = |row: &&Row| {
            row.preset == self.preset
                && row.track == track
                && row.firm.is_none_or(|wanted| wanted == firm)
                && row.kind.is_none_or(|wanted| wanted == kind)
                && row.tool.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(tool))
        };
        let limits = self.own.iter().chain(RUNGS).find(fits).map_or(NEVER, |row| row.limits);
        if self.sees_a_part { limits.of_a_part(track) } else { limits }
    }
}

/// All built-in rows, the specific ones first.
#[cfg(test)]
pub fn rows() -> &'static [Row] {
    RUNGS
}

/// How firmly a cause of this kind stands while nothing changes.
pub fn firmness(kind: Kind) -> Firmness {
    FIRMNESS[kind as usize]
}

/// The changes that could matter to a cause of this kind.
pub fn matters(kind: Kind) -> &'static [Change] {
    MATTERS[kind as usize]
}

/// Does a failure of this kind stop every agent of the session alike, or does it belong to the code at hand?
pub fn is_shared(kind: Kind) -> bool {
    SHARED[kind as usize]
}

/// Does a cause of this kind stop whatever needs the same thing?
pub fn spreads(kind: Kind) -> bool {
    SPREADS[kind as usize]
}

/// Does a cause of this kind depend on the approach, and not on the details?
pub fn goes_with_approach(kind: Kind) -> bool {
    APPROACHES[kind as usize]
}

/// A loop of looks is stopped only if it took no longer than this, in milliseconds.
pub fn loop_ms() -> u64 {
    LOOP_MS
}

/// Programs whose answers come from elsewhere, alone or with a subcommand.
pub fn remote_programs() -> &'static [&'static str] {
    REMOTE
}

/// How many calls a look stays in view.
pub fn view() -> u32 {
    VIEW
}

/// Signs of an error in a tool's own insides, lower case.
pub fn signs_of_insides() -> &'static [&'static str] {
    INSIDES
}

/// What hosts say when nobody has the tool that was asked for, lower case.
pub fn signs_of_no_tool() -> &'static [&'static str] {
    NO_TOOL
}

/// Words by which an answer tells that something is on its way.
pub fn alive_words() -> &'static [&'static str] {
    ALIVE
}

/// Words by which an answer tells that something waits for a person.
pub fn person_words() -> &'static [&'static str] {
    PERSON
}

/// Words by which an answer tells that something is at its end.
pub fn ended_words() -> &'static [&'static str] {
    ENDED
}

/// Words by which an answer tells that all is well.
pub fn green_words() -> &'static [&'static str] {
    GREEN
}

/// Programs that are asked how something else is doing.
pub fn polling_programs() -> &'static [&'static str] {
    POLLING_PROGRAMS
}

/// Programs that fail without a word only where the shell itself is broken.
pub fn sturdy_programs() -> &'static [&'static str] {
    STURDY
}

/// Programs that hand their words on to something that goes on by itself: a terminal, a debugger, a screen.
pub fn handing_programs() -> &'static [&'static str] {
    HANDING_PROGRAMS
}

/// Parts of names of tools that do the same.
pub fn handing_tools() -> &'static [&'static str] {
    HANDING_TOOLS
}

/// Parts of tool names that ask how something else is doing.
pub fn polling_tools() -> &'static [&'static str] {
    POLLING_TOOLS
}

/// What sort of change a command makes, by its program and subcommand.
pub fn change_of(program: &str, subcommand: &str) -> Option<Change> {
    let both = format!("{program} {subcommand}");
    let find = |name: &str| CHANGES.iter().find(|(command, _)| *command == name).map(|(_, change)| *change);
    find(&both).or_else(|| find(program))
}

/// Arguments that only say why, or ask for the same in other words.
pub fn prose_fields() -> &'static [&'static str] {
    PROSE_FIELDS
}
