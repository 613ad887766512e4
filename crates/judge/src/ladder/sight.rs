//! What the ladder sees of a call and of its ending: short prints of what makes two of them alike. Values only.
//!
//! Reading a call or an output is done elsewhere; here nothing is parsed, so a standing can be stored field by field
//! and every step can be tested without a shell or a log at hand.

use crate::condition::Condition;
use crate::kind::{Kind, vocabulary};
use crate::nature::Looks;

/// A short hash by which two things are known to be alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Print(pub u64);

impl Print {
    /// Hashes `parts`, kept apart from each other.
    pub fn of(parts: &[&str]) -> Print {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Print::first_bytes(hasher)
    }

    /// Hashes raw bytes.
    pub fn of_bytes(parts: &[&[u8]]) -> Print {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(part);
        }
        Print::first_bytes(hasher)
    }

    /// The print of something as this agent's own: what one agent saw, another did not.
    pub fn own(self, of: Print) -> Print {
        Print(self.0.rotate_left(32) ^ of.0)
    }

    fn first_bytes(hasher: blake3::Hasher) -> Print {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        Print(u64::from_le_bytes(bytes))
    }
}

vocabulary! {
    /// What kind of change a call makes when it succeeds.
    Change {
        /// The content of files.
        Edit = "edit",
        /// Packages and tools.
        Install = "install",
        /// A repository.
        Git = "git",
        /// Files as such: made, moved, deleted, unpacked.
        Files = "files",
        /// Something that runs, or settings of the machine.
        Service = "service",
        /// A program written on the spot may do anything.
        Script = "script",
        /// A line in a file. It may be what was missing, so nothing is refused after it; that a call fails as before is told all
        /// the same, unless it is about that very file.
        Trifle = "trifle",
        /// A time stamp or an empty folder. The same holds for it, and no content has changed.
        Touch = "touch",
    }
}

/// What a call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// It only looks.
    Looks,
    /// It changes something when it succeeds.
    Changes(Change),
    /// It runs something: a build, a test, a program. What that changes is its own affair.
    Runs,
    /// It lets time pass.
    Waits,
    /// Nobody knows.
    Unclear,
}

/// How sure it is that two calls of one key are the same call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// A command line, which can mean many things.
    Shell,
    /// A tool with named arguments: the same arguments get the same answer.
    Tool,
}

/// The directory a call runs in, as far as it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dir {
    /// Wherever the agent happens to be.
    Unsaid,
    /// A directory it names.
    Named(Print),
}

impl Dir {
    /// Do both name a directory, and not the same?
    pub fn is_other_than(self, other: Dir) -> bool {
        self != other && self != Dir::Unsaid && other != Dir::Unsaid
    }
}

/// A call as the ladder sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sight {
    /// The call in one short line, for people.
    pub label: String,
    /// The tool's name.
    pub tool_name: String,
    /// The tool.
    pub tool: Print,
    /// The call itself, without what is cosmetic.
    pub exact: Print,
    /// What it is meant to do.
    pub intent: Print,
    /// Program, subcommand and target; the tool and its target.
    pub approach: Print,
    /// Known causes that would stop it: a program it needs, the tool itself, a file in its way.
    pub roots: Vec<Print>,
    /// What it does to the world.
    pub manner: Manner,
    /// How sure it is that it only looks: nothing else is the same question when it is repeated.
    pub looks: Looks,
    /// Who is asked.
    pub speaker: Speaker,
    /// Where it runs.
    pub dir: Dir,
    /// Files and things it names as its own.
    pub targets: Vec<Print>,
    /// All words it names.
    pub names: Vec<Print>,
    /// It makes something that may be there already.
    pub creates: bool,
    /// It asks how something else is doing.
    pub polls: bool,
    /// It lets time pass before it asks.
    pub waits: bool,
    /// It must fail only if the shell itself is broken: `ls`, `pwd`, `cat`.
    pub trivial: bool,
}

impl Sight {
    /// Does the call name this file or thing as its own?
    pub fn names_target(&self, target: &str) -> bool {
        self.targets.contains(&Print::of(&["target", target]))
    }
}

/// How an answer describes what was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// On its way.
    Alive,
    /// At its end; it does not move again by itself.
    Ended,
    /// The answer does not say.
    Unsaid,
}

/// How firmly a cause stands while nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Firmness {
    /// It may heal by itself.
    Patient,
    /// Nobody knows the cause.
    Unsure,
    /// It probably stays.
    Likely,
    /// It stays until somebody changes something.
    Certain,
}

/// A failure as the ladder sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The line that shows it, for people.
    pub line: String,
    /// The rule that named it; empty where none did.
    pub rule: String,
    /// The cause.
    pub kind: Kind,
    /// How firmly it stands.
    pub firmness: Firmness,
    /// The cause with its error line, without what differs by accident.
    pub cause: Print,
    /// What else the same cause is bound to stop.
    pub roots: Vec<Print>,
    /// Words that the error names.
    pub names: Vec<Print>,
    /// It says next to nothing: no output, or a bare word.
    pub silent: bool,
    /// It comes from a tool's own insides and says nothing about the question.
    pub opaque: bool,
    /// The host itself says that the call failed; otherwise only words of the output do.
    pub proven: bool,
    /// What can be looked at to see whether it still holds.
    pub condition: Condition,
}

/// How a call ended, as the ladder sees it.
#[derive(Debug, Clone, PartialEq)]
pub enum Upshot {
    /// It went well, or what looks like a failure is its answer.
    Fine,
    /// It failed.
    Failed(Fault),
    /// It never ran because we said no.
    OurDenial,
}

/// The ending of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// How it ended.
    pub upshot: Upshot,
    /// The answer, byte for byte.
    pub bytes: Print,
    /// The answer without what differs by accident: numbers, times, ids.
    pub masked: Print,
    /// The answer without the ages in it, which grow by themselves.
    pub ageless: Print,
    /// The answer is long enough to show whether something moved.
    pub telling: bool,
    /// The answer says that all is well.
    pub green: bool,
    /// What the answer says of the thing looked at.
    pub state: State,
}

/// Who asks, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The agent; sub-agents have their own.
    pub agent: Print,
    /// The message that holds the call; calls of one message run in parallel.
    pub round: Round,
    /// When, in milliseconds since 1970; 0 where nobody says.
    pub at: u64,
}

/// The message that holds a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// The host does not say.
    Unsaid,
    /// Its number.
    Numbered(u64),
}

impl Round {
    /// Do both calls stand in the same message, for all that is known?
    pub fn is_shared_with(self, other: Round) -> bool {
        self != Round::Unsaid && self == other
    }
}
