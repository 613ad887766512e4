//! How a command ends: a status for the shell, and for an error also what went wrong and what to do about it.

mod chinese;
mod hint;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use unstuck_judge::{Lang, quote};
use unstuck_store::{LineError, StoreError};
use unstuck_vault::{SnapshotId, VaultError};

use crate::agents::Scope;
use crate::checks::CheckError;
use crate::editing::EditError;
use crate::gone_snapshot::GoneSnapshot;
use crate::person::AgentSign;
use crate::protect::ProtectError;
use crate::settings::SettingsError;

/// The exit status of `unstuck` itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// It did what it was asked for.
    Success,
    /// It did, and the answer is no: a rule file with mistakes, nothing found.
    No,
    /// It was called wrongly.
    Usage,
    /// It looked, and found something that a person should mend.
    Unwell,
    /// It could not do its work.
    Failed,
    /// The code of the command that was run.
    Command(u8),
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(match status {
            ExitStatus::Success => 0,
            ExitStatus::No => 1,
            ExitStatus::Usage => 2,
            ExitStatus::Unwell => 6,
            ExitStatus::Failed => 125,
            ExitStatus::Command(code) => code,
        })
    }
}

/// What can stop a command, by what its user can do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("nothing to read: standard input is a terminal")]
    NothingToRead,
    #[error("no rule is called {id}")]
    NoSuchRule { id: String, nearest: Option<String> },
    #[error("no kind is called {kind}")]
    NoSuchKind { kind: String, nearest: Option<String> },
    #[error("no setting is called {name}")]
    NoSuchSetting { name: String, nearest: Option<String> },
    #[error("{0}")]
    Settings(#[from] SettingsError),
    #[error("there is no place for this file: {0}")]
    NoPlace(NoPlace),
    #[error("could not make {path}: {source}")]
    NotMade { path: PathBuf, source: io::Error },
    #[error("could not start the editor {editor}: there is no such program")]
    NoSuchEditor { editor: String },
    #[error("could not start the editor {editor}: {why}")]
    NoEditor { editor: String, why: String },
    #[error("no alert is called {name}")]
    NoSuchAlert { name: String, nearest: Option<String> },
    #[error("no agent program is called {name}")]
    NoSuchProgram { name: String, nearest: Option<String> },
    #[error("{word} lets the agent write, and --read-only forbids it")]
    NotReadOnly { word: String },
    #[error("the variable {name} is not set, or is no header")]
    NoHeaderVariable { name: String },
    #[error("a prompt of more than {most_mb} MB")]
    LongPrompt { most_mb: usize },
    #[error("{name} is no name of a session")]
    NoSessionName { name: String },
    #[error("{agent} cannot take up a session: its settings do not say how")]
    NoWayToResume { agent: String },
    #[error("no session is called {}", quote::bare(name))]
    NoSuchSession { name: String, nearest: Option<String> },
    #[error("no call and no problem is called {}", quote::bare(asked))]
    NothingCalled { asked: String },
    #[error("no problem is called {}", quote::bare(asked))]
    NoSuchProblem { asked: String },
    #[error("no lesson is called {}", quote::bare(asked))]
    NoSuchLesson { asked: String },
    #[error("what helped cannot be read any more in L{id}")]
    UnreadableLesson { id: i64 },
    #[error("{}:{line}: no lesson: {why}; nothing was imported", path.display())]
    NoLessonLine { path: PathBuf, line: u64, why: LineError },
    #[error("{} is no file of lessons: more than {most}; nothing was imported", path.display())]
    ManyLessons { path: PathBuf, most: String },
    #[error("this is no lesson: {0}; nothing was changed")]
    NoFix(LineError),
    #[error("this is no lesson: {0}; nothing was changed")]
    NoDraft(String),
    #[error("{asked} is too short for the name of a problem")]
    TooShort { asked: String, least: usize },
    #[error("{} may mean one of several:\n  {}{}", quote::bare(asked), candidates.join("\n  "), and_more(*more))]
    Ambiguous { asked: String, among: Among, candidates: Vec<String>, more: usize },
    #[error("could not read {}: {source}", quote::bare(&path.to_string_lossy()))]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("could not read standard input: {0}")]
    Input(io::Error),
    #[error("could not write: {0}")]
    Output(io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("could not record: {why}")]
    NotKept { why: String },
    #[error("no folder to keep anything in: neither XDG_STATE_HOME nor HOME is set")]
    NoHome,
    #[error("no refused call is called {key}")]
    NoSuchRefusal { key: String },
    #[error("this takes a brake off, and nobody sits at a terminal: an agent must not free itself")]
    NoPerson,
    #[error("this takes a brake off, and an agent started it ({sign}): an agent must not free itself")]
    InsideAgent { sign: AgentSign },
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Protect(#[from] ProtectError),
    #[error("no agent is found on this machine")]
    NoAgent,
    #[error("nobody agreed to install for {}", found.join(", "))]
    NotAgreed { found: Vec<&'static str> },
    #[error("nobody said for which agent")]
    NoClient { found: Vec<&'static str> },
    #[error("{agent} has no server that is called {name}")]
    NoSuchServer {
        name: String,
        agent: &'static str,
        nearest: Option<String>,
        /// Where one of this name stands that was not asked for.
        elsewhere: Option<(Scope, PathBuf)>,
    },
    #[error("could not find our own program: {0}")]
    NoProgram(io::Error),
    #[error("the path of our own program is not UTF-8 text: {}", path.display())]
    OddPath { path: PathBuf },
    #[error("{}", vault_error(.0))]
    Vault(#[from] VaultError),
    #[error("this would destroy what unstuck itself has saved: {}", path.display())]
    OurOwn { path: PathBuf },
    #[error("{}", removal.in_words(Lang::En))]
    SnapshotGone { removal: Box<GoneSnapshot> },
    #[error("there is no snapshot")]
    NoSnapshot,
    #[error("{} lies on {kind}, which the system makes up: there are no files to save", quote::bare(&path.to_string_lossy()))]
    MadeUp { path: PathBuf, kind: &'static str },
    #[error("there is no {}", quote::bare(&path.to_string_lossy()))]
    NoSuchPath { path: PathBuf },
    #[error("{id} does not cover {}", quote::bare(&path.to_string_lossy()))]
    NotInSnapshot { id: SnapshotId, path: PathBuf },
    #[error("no snapshot belongs to a call that is called {}", quote::bare(asked))]
    NotProtected { asked: String },
    #[error("there is nothing to undo here")]
    NothingToUndo { elsewhere: Option<String> },
    #[error("all calls here whose snapshots are kept are undone, or changed nothing")]
    UndoneAsFarAsKept { per_target: usize },
    #[error("{id} was taken by hand: there is no call behind it to undo")]
    NoCallBehind { id: SnapshotId },
    #[error("{} is neither in {id} nor there now", quote::bare(&path.to_string_lossy()))]
    NeitherThenNorNow { id: SnapshotId, path: PathBuf },
    #[error("{id} holds no file at {}", quote::bare(&path.to_string_lossy()))]
    NoFileHeld { id: SnapshotId, path: PathBuf },
    #[error("{id} was undone already: what was there before is in {by}")]
    AlreadyUndone { id: SnapshotId, by: SnapshotId },
    #[error("there is nothing to redo")]
    NothingToRedo,
    #[error("whoever read our output has gone")]
    ReaderGone,
}

/// What a name that fits several was looked for among.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Among {
    Sessions,
    Problems,
    CallsAndProblems,
    Snapshots,
}

/// Why a file of settings has nowhere to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoPlace {
    WorkingFolderGone,
    NoConfigHome,
}

impl fmt::Display for NoPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoPlace::WorkingFolderGone => "the working folder is gone",
            NoPlace::NoConfigHome => "neither XDG_CONFIG_HOME nor HOME names a folder",
        })
    }
}

/// What the safe says, with what the system said to it.
fn vault_error(error: &VaultError) -> String {
    match error {
        VaultError::Io { deed, path, source } => {
            format!("could not {deed} {}: {source}", quote::bare(&path.to_string_lossy()))
        }
        VaultError::TooWide { path } => {
            format!("{} is too much to take as a whole", quote::bare(&path.to_string_lossy()))
        }
        error => error.to_string(),
    }
}

/// What follows a list that was cut.
fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    }
}

impl CommandError {
    /// What went wrong, in words for a person. Logs, the store and JSON keep to the English of `Display`.
    pub(crate) fn in_words(&self, lang: Lang) -> String {
        match lang {
            Lang::En => self.to_string(),
            Lang::Zh => chinese::command_error(self),
        }
    }

    /// The exit status it ends in.
    pub(crate) fn status(&self) -> ExitStatus {
        match self {
            CommandError::NothingToRead
            | CommandError::NoSuchRule { .. }
            | CommandError::NoSuchKind { .. }
            | CommandError::NoSuchAlert { .. }
            | CommandError::NoSuchSetting { .. }
            | CommandError::NoSuchProgram { .. }
            | CommandError::NotReadOnly { .. }
            | CommandError::NoHeaderVariable { .. }
            | CommandError::LongPrompt { .. }
            | CommandError::NoSessionName { .. }
            | CommandError::NoWayToResume { .. }
            | CommandError::NotAgreed { .. }
            | CommandError::NoClient { .. }
            | CommandError::NoSuchServer { .. }
            | CommandError::NoLessonLine { .. }
            | CommandError::ManyLessons { .. }
            | CommandError::NoFix(_)
            | CommandError::NoDraft(_)
            | CommandError::Check(_)
            | CommandError::Settings(_) => ExitStatus::Usage,
            CommandError::TooShort { .. }
            | CommandError::Ambiguous { .. }
            | CommandError::NoPerson
            | CommandError::InsideAgent { .. }
            | CommandError::NoSuchPath { .. }
            | CommandError::OurOwn { .. }
            | CommandError::MadeUp { .. }
            | CommandError::NeitherThenNorNow { .. }
            | CommandError::Vault(VaultError::TooWide { .. }) => ExitStatus::Usage,
            CommandError::NoSuchSession { .. }
            | CommandError::NothingCalled { .. }
            | CommandError::NoSuchProblem { .. }
            | CommandError::NoSuchLesson { .. }
            | CommandError::UnreadableLesson { .. }
            | CommandError::NoSuchRefusal { .. }
            | CommandError::NoAgent
            | CommandError::Store(StoreError::Missing { .. })
            | CommandError::NoSnapshot
            | CommandError::SnapshotGone { .. }
            | CommandError::NotInSnapshot { .. }
            | CommandError::NotProtected { .. }
            | CommandError::NothingToUndo { .. }
            | CommandError::UndoneAsFarAsKept { .. }
            | CommandError::NoCallBehind { .. }
            | CommandError::NoFileHeld { .. }
            | CommandError::AlreadyUndone { .. }
            | CommandError::NothingToRedo
            | CommandError::Vault(
                VaultError::Missing { .. }
                | VaultError::NoSuchSnapshot { .. }
                | VaultError::NotConcluded { .. },
            ) => ExitStatus::No,
            CommandError::Protect(error) if error.is_usage() => ExitStatus::Usage,
            CommandError::Vault(VaultError::Stopped) => ExitStatus::Command(130),
            CommandError::NoPlace(_)
            | CommandError::NotMade { .. }
            | CommandError::NoSuchEditor { .. }
            | CommandError::NoEditor { .. }
            | CommandError::Unreadable { .. }
            | CommandError::Input(_)
            | CommandError::Output(_)
            | CommandError::Store(_)
            | CommandError::Vault(_)
            | CommandError::NotKept { .. }
            | CommandError::Edit(_)
            | CommandError::Protect(_)
            | CommandError::NoProgram(_)
            | CommandError::OddPath { .. }
            | CommandError::NoHome => ExitStatus::Failed,
            CommandError::ReaderGone => ExitStatus::Success,
        }
    }
}

/// An output error; a closed pipe is told apart, because it is nobody's fault.
impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> CommandError {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CommandError::ReaderGone,
            #[cfg(target_os = "linux")]
            _ => CommandError::Output(crate::closed_output::explained(error)),
            #[cfg(not(target_os = "linux"))]
            _ => CommandError::Output(error),
        }
    }
}
