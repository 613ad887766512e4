//! How a command ends: a status for the shell, and for an error also what went wrong and what to do about it.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use unstuck_judge::Kind;
use unstuck_store::StoreError;

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
            ExitStatus::Failed => 125,
            ExitStatus::Command(code) => code,
        })
    }
}

/// What can stop a command, by what its user can do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("nothing to diagnose: standard input is a terminal")]
    NothingToRead,
    #[error("no rule is called {id}")]
    NoSuchRule { id: String, nearest: Option<String> },
    #[error("no kind is called {kind}")]
    NoSuchKind { kind: String, nearest: Option<String> },
    #[error("no setting is called {name}")]
    NoSuchSetting { name: String, nearest: Option<String> },
    #[error("{0}")]
    Settings(#[from] SettingsError),
    #[error("there is no place for this file: {why}")]
    NoPlace { why: &'static str },
    #[error("could not make {path}: {source}")]
    NotMade { path: PathBuf, source: io::Error },
    #[error("could not start the editor {editor}: {why}")]
    NoEditor { editor: String, why: String },
    #[error("no alert is called {name}")]
    NoSuchAlert { name: String, nearest: Option<String> },
    #[error("no session is called {name}")]
    NoSuchSession { name: String, nearest: Option<String> },
    #[error("no call and no problem is called {asked}")]
    NothingCalled { asked: String },
    #[error("no problem is called {asked}")]
    NoSuchProblem { asked: String },
    #[error("{asked} is too short for the name of a problem")]
    TooShort { asked: String, least: usize },
    #[error("{asked} may mean one of several:\n  {}{}", candidates.join("\n  "), and_more(*more))]
    Ambiguous { asked: String, among: Among, candidates: Vec<String>, more: usize },
    #[error("could not read {path}: {source}")]
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
    #[error("whoever read our output has gone")]
    ReaderGone,
}

/// What a name that fits several was looked for among.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Among {
    Sessions,
    Problems,
    CallsAndProblems,
}

/// What follows a list that was cut.
fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    }
}

impl CommandError {
    /// What to try, if anything helps.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            CommandError::NothingToRead => Some(
                "pipe a failed command's output in, or run the command: `unstuck diagnose -- cargo build`"
                    .to_owned(),
            ),
            CommandError::NoSuchRule { nearest, .. } => {
                let nearest = nearest.as_ref().map(|id| format!("did you mean {id}? "));
                Some(format!("{}`unstuck rules list` shows all", nearest.unwrap_or_default()))
            }
            CommandError::NoSuchKind { nearest: Some(kind), .. } => Some(format!("did you mean {kind}?")),
            CommandError::NoSuchKind { nearest: None, .. } => {
                let all: Vec<&str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
                Some(format!("there are {}", all.join(", ")))
            }
            CommandError::NoSuchSetting { nearest, .. } => {
                let nearest = nearest.as_ref().map(|name| format!("did you mean {name}? "));
                Some(format!("{}`unstuck config show` lists all", nearest.unwrap_or_default()))
            }
            CommandError::Settings(error) => error.hint(),
            CommandError::NoEditor { .. } => Some("set VISUAL or EDITOR to an editor you have".to_owned()),
            CommandError::NoSuchAlert { nearest, .. } => {
                let nearest = nearest.as_ref().map(|name| format!("did you mean {name}? "));
                Some(format!("{}`unstuck alerts list` shows all", nearest.unwrap_or_default()))
            }
            CommandError::NoSuchSession { nearest, .. } => {
                let nearest = nearest.as_ref().map(|name| format!("did you mean {name}? "));
                Some(format!("{}`unstuck stats --by session` lists all", nearest.unwrap_or_default()))
            }
            CommandError::NothingCalled { .. } => Some(
                "`unstuck log` shows calls as #N, `unstuck problems --all` shows problems as e1:…".to_owned(),
            ),
            CommandError::NoSuchProblem { .. } => {
                Some("`unstuck problems --all` shows all, as e1:…".to_owned())
            }
            CommandError::TooShort { least, .. } => {
                Some(format!("write {least} characters after e1:, or more"))
            }
            CommandError::Ambiguous { among: Among::Sessions | Among::Problems, .. } => {
                Some("write more of it".to_owned())
            }
            CommandError::Ambiguous { among: Among::CallsAndProblems, .. } => {
                Some("write more of it, or a call as #N".to_owned())
            }
            CommandError::Unreadable { .. } => Some("check the path and whether it may be read".to_owned()),
            CommandError::Store(error) => match error {
                StoreError::NotOurs { .. } => Some(
                    "point `store.state-dir` at a folder of your own, or remove what stands there".to_owned(),
                ),
                StoreError::TooNew { .. } => {
                    Some("update unstuck, or point `store.state-dir` elsewhere".to_owned())
                }
                StoreError::Busy { .. } => Some("another process is writing; run it again".to_owned()),
                StoreError::Full { .. } => Some(
                    "free some space on that disk; afterwards `unstuck gc` makes the store smaller"
                        .to_owned(),
                ),
                StoreError::Damaged { .. } => {
                    Some("run it again: the file is checked and set aside".to_owned())
                }
                StoreError::Network { .. } => {
                    Some("point `store.state-dir` at a folder on a local disk".to_owned())
                }
                StoreError::Missing { .. } => {
                    Some("`unstuck replay --record FILE` fills it from a transcript".to_owned())
                }
                StoreError::Io { .. } | StoreError::Sql { .. } => None,
            },
            CommandError::NotKept { .. } => {
                Some("check the folder that `unstuck config explain store.state-dir` names".to_owned())
            }
            CommandError::NoHome => Some("set HOME, or `store.state-dir`".to_owned()),
            CommandError::NoPlace { .. }
            | CommandError::NotMade { .. }
            | CommandError::Input(_)
            | CommandError::Output(_)
            | CommandError::ReaderGone => None,
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
            | CommandError::Settings(_) => ExitStatus::Usage,
            CommandError::TooShort { .. } | CommandError::Ambiguous { .. } => ExitStatus::Usage,
            CommandError::NoSuchSession { .. }
            | CommandError::NothingCalled { .. }
            | CommandError::NoSuchProblem { .. }
            | CommandError::Store(StoreError::Missing { .. }) => ExitStatus::No,
            CommandError::NoPlace { .. }
            | CommandError::NotMade { .. }
            | CommandError::NoEditor { .. }
            | CommandError::Unreadable { .. }
            | CommandError::Input(_)
            | CommandError::Output(_)
            | CommandError::Store(_)
            | CommandError::NotKept { .. }
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
            _ => CommandError::Output(error),
        }
    }
}
