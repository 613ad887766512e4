//! The agent programs that can be run: how each begins, how it takes up a session, and what it may do meanwhile.

use serde_json::Value;

use super::heard::Heard;
use super::{claude, codex, gemini};
use crate::exit::CommandError;
use crate::nearest::nearest;
use crate::settings::{Settings, WrittenAgent};

/// Those whose output is understood.
const KNOWN: [(&str, Tongue); 3] =
    [("claude", Tongue::Claude), ("codex", Tongue::Codex), ("gemini", Tongue::Gemini)];

/// A program, ready to be started.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) name: String,
    /// How often it is started again at most, where the settings say so.
    pub(crate) retries: Option<u8>,
    pub(crate) reach: Reach,
    pub(crate) tongue: Tongue,
    executable: String,
    extra: Vec<String>,
}

/// What an agent may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It looks.
    ReadOnly,
    /// It may change files, or more.
    MayWrite,
}

/// Whose output it is.
#[derive(Debug, Clone)]
pub(crate) enum Tongue {
    Claude,
    Codex,
    Gemini,
    /// A program of the user's own, of which the settings tell.
    Own(Own),
}

/// What the settings tell of a program.
#[derive(Debug, Clone)]
pub(crate) struct Own {
    args: Vec<String>,
    resume: Option<Vec<String>>,
    /// What stands before and after the session's name.
    session: Option<(String, String)>,
}

/// What is started, and what it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) executable: String,
    pub(crate) args: Vec<String>,
    pub(crate) input: String,
}

/// A session that has begun.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Session<'s> {
    pub(crate) name: &'s str,
    /// No model has answered in it yet.
    pub(crate) is_empty: bool,
}

impl Program {
    /// The program that is called so, with `extra` arguments of the user's.
    pub(crate) fn named(
        name: &str,
        settings: &Settings,
        extra: &[String],
        asked: Option<Reach>,
    ) -> Result<Program, CommandError> {
        let set = settings.agent(name);
        let known = KNOWN.into_iter().find(|(known, _)| *known == name).map(|(_, tongue)| tongue);
        let (executable, tongue, mut all) = match (known, &set) {
            (Some(tongue), Some(set)) => {
                for (field, is_set) in [("resume", set.resume.is_some()), ("session", set.session.is_some())]
                {
                    if is_set {
                        return Err(set.must_not_set(field).into());
                    }
                }
                let executable = set.program.clone().unwrap_or_else(|| name.to_owned());
                (executable, tongue, set.args.clone().unwrap_or_default())
            }
            (Some(tongue), None) => (name.to_owned(), tongue, Vec::new()),
            (None, Some(set)) => {
                let program = set.program.clone().ok_or_else(|| set.lacks("program"))?;
                (program, Tongue::Own(Own::new(set)), Vec::new())
            }
            (None, None) => {
                let names = KNOWN.iter().map(|(name, _)| *name).chain(settings.agent_names());
                let nearest = nearest(name, names).map(str::to_owned);
                return Err(CommandError::NoSuchProgram { name: name.to_owned(), nearest });
            }
        };
        all.extend_from_slice(extra);
        let by_words = tongue.word_that_lets_write(&all);
        let by_settings = set.as_ref().and_then(|set| set.may_write).unwrap_or(match tongue {
            Tongue::Claude | Tongue::Codex | Tongue::Gemini => false,
            // Of a program that nobody knows the worst is assumed.
            Tongue::Own(_) => true,
        });
        let reach = match (asked, by_words, by_settings) {
            (Some(Reach::ReadOnly), Some(word), _) => {
                return Err(CommandError::NotReadOnly { word: word.to_owned() });
            }
            (Some(Reach::ReadOnly), None, _) | (None, None, false) => Reach::ReadOnly,
            (Some(Reach::MayWrite), _, _) | (None, Some(_), _) | (None, None, true) => Reach::MayWrite,
        };
        let retries = set.and_then(|set| set.retries);
        Ok(Program { name: name.to_owned(), retries, reach, tongue, executable, extra: all })
    }

    #[cfg(test)]
    pub(super) fn for_test(tongue: Tongue, reach: Reach, executable: &str) -> Program {
        let (name, executable) = ("test".to_owned(), executable.to_owned());
        Program { name, retries: None, reach, tongue, executable, extra: Vec::new() }
    }

    /// Begins with a message, in a new session.
    pub(crate) fn begin(&self, message: &str) -> Start {
        self.start(None, message).unwrap_or_else(|| self.with(Vec::new(), message))
    }

    /// Takes up a session with a message; `None` where that cannot be done.
    pub(crate) fn resume(&self, session: Session<'_>, message: &str) -> Option<Start> {
        self.start(Some(session), message)
    }

    /// Can it take up sessions at all?
    pub(crate) fn can_resume(&self) -> bool {
        self.start(Some(Session { name: "x", is_empty: false }), "").is_some()
    }

    fn start(&self, session: Option<Session<'_>>, message: &str) -> Option<Start> {
        let name = session.map(|session| session.name);
        let own = match &self.tongue {
            Tongue::Claude => return Some(self.with(self.claude(name), message)),
            Tongue::Codex => return Some(self.with(self.codex(name), message)),
            // It keeps no session in which no model has answered.
            Tongue::Gemini if session.is_some_and(|session| session.is_empty) => return None,
            Tongue::Gemini => return Some(self.with(self.gemini(name), message)),
            Tongue::Own(own) => own,
        };
        let (words, name) = match name {
            None => (&own.args, ""),
            Some(name) => (own.resume.as_ref()?, name),
        };
        // The user's words first: the prompt, if it is an argument, is mostly the last.
        let takes_prompt = words.iter().any(|word| word.contains("{prompt}"));
        let fill = |word: &String| word.replace("{session}", name).replace("{prompt}", message);
        let args = self.extra.iter().cloned().chain(words.iter().map(fill)).collect();
        let input = if takes_prompt { "" } else { message };
        Some(Start { executable: self.executable.clone(), args, input: input.to_owned() })
    }

    /// A start whose message is read from the standard input: it may be longer than an argument can be, may begin with a dash,
    /// and nobody sees it in the list of processes.
    fn with(&self, args: Vec<String>, message: &str) -> Start {
        Start { executable: self.executable.clone(), args, input: message.to_owned() }
    }

    fn claude(&self, session: Option<&str>) -> Vec<String> {
        let mut args = words(&["-p", "--output-format", "stream-json", "--verbose"]);
        args.extend(session.into_iter().flat_map(|session| ["--resume".to_owned(), session.to_owned()]));
        if !self.says(&["--permission-mode", "--dangerously-skip-permissions"]) {
            args.extend(match self.reach {
                Reach::ReadOnly => {
                    words(&["--permission-mode", "default", "--disallowedTools", "Edit,Write,NotebookEdit"])
                }
                Reach::MayWrite => words(&["--permission-mode", "acceptEdits"]),
            });
        }
        args.extend_from_slice(&self.extra);
        args
    }

    fn codex(&self, session: Option<&str>) -> Vec<String> {
        let mut args = words(&["exec", "--json"]);
        if !self.says(&[
            "--sandbox",
            "-s",
            "--full-auto",
            "--yolo",
            "--dangerously-bypass-approvals-and-sandbox",
        ]) {
            args.extend(match self.reach {
                Reach::ReadOnly => words(&["--sandbox", "read-only"]),
                Reach::MayWrite => words(&["--sandbox", "workspace-write"]),
            });
        }
        args.extend_from_slice(&self.extra);
        args.extend(session.into_iter().flat_map(|session| ["resume".to_owned(), session.to_owned()]));
        args.push("-".to_owned());
        args
    }

    fn gemini(&self, session: Option<&str>) -> Vec<String> {
        let mut args = words(&["--output-format", "stream-json"]);
        args.extend(session.into_iter().flat_map(|session| ["--resume".to_owned(), session.to_owned()]));
        if !self.says(&["--approval-mode", "--yolo", "-y"]) {
            args.extend(match self.reach {
                Reach::ReadOnly => words(&["--approval-mode", "default"]),
                Reach::MayWrite => words(&["--approval-mode", "auto_edit"]),
            });
        }
        args.extend_from_slice(&self.extra);
        args
    }

    /// Does the user say one of these options?
    fn says(&self, options: &[&str]) -> bool {
        self.extra.iter().any(|word| options.contains(&option_of(word).0))
    }
}

impl Tongue {
    /// What a line tells.
    pub(super) fn hear(&self, line: &Value) -> Vec<Heard> {
        match self {
            Tongue::Claude => claude::hear(line),
            Tongue::Codex => codex::hear(line),
            Tongue::Gemini => gemini::hear(line),
            Tongue::Own(_) => Vec::new(),
        }
    }

    /// Does it say itself how it ended?
    pub(super) fn tells_its_end(&self) -> bool {
        match self {
            Tongue::Claude | Tongue::Codex | Tongue::Gemini => true,
            Tongue::Own(_) => false,
        }
    }

    /// The first of the user's words that lets the program write.
    fn word_that_lets_write<'w>(&self, words: &'w [String]) -> Option<&'w str> {
        // Options that do by themselves, and those that do unless their value is one of these.
        let (alone, by_value, tame): (&[&str], &[&str], &[&str]) = match self {
            Tongue::Claude => (
                &["--dangerously-skip-permissions", "--allowedTools", "--allowed-tools"],
                &["--permission-mode"],
                &["default", "plan", "dontAsk"],
            ),
            Tongue::Codex => (
                &["--full-auto", "--yolo", "--dangerously-bypass-approvals-and-sandbox"],
                &["--sandbox", "-s"],
                &["read-only"],
            ),
            Tongue::Gemini => {
                (&["--yolo", "-y", "--allowed-tools"], &["--approval-mode"], &["default", "plan"])
            }
            Tongue::Own(_) => (&[], &[], &[]),
        };
        words.iter().enumerate().find_map(|(at, word)| {
            let (option, value) = option_of(word);
            let value = value.or_else(|| words.get(at + 1).map(String::as_str)).unwrap_or_default();
            let lets = alone.contains(&option) || (by_value.contains(&option) && !tame.contains(&value));
            lets.then_some(option)
        })
    }
}

impl Own {
    fn new(set: &WrittenAgent) -> Own {
        Own::told_by(set.args.as_deref().unwrap_or_default(), set.resume.as_deref(), set.session.as_deref())
    }

    pub(super) fn told_by(args: &[String], resume: Option<&[String]>, session: Option<&str>) -> Own {
        let around = |pattern: &str| {
            let (before, after) = pattern.split_once("{session}")?;
            Some((before.to_owned(), after.to_owned()))
        };
        Own { args: args.to_vec(), resume: resume.map(<[String]>::to_vec), session: session.and_then(around) }
    }

    /// The session's name, where a line tells it.
    pub(super) fn session_in(&self, line: &str) -> Option<String> {
        let (before, after) = self.session.as_ref()?;
        let rest = &line[line.find(before.as_str())? + before.len()..];
        let name = &rest[..rest.find(|sign| !is_part_of_name(sign)).unwrap_or(rest.len())];
        let is_whole = rest[name.len()..].starts_with(after.as_str());
        (is_whole && is_session_name(name)).then(|| name.to_owned())
    }
}

/// Can this be the name of a session? It becomes an argument, so it must not look like an option.
pub(crate) fn is_session_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 128 && !name.starts_with('-') && name.chars().all(is_part_of_name)
}

fn is_part_of_name(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.' | ':')
}

/// An option and its value, where both are one word.
fn option_of(word: &str) -> (&str, Option<&str>) {
    match word.split_once('=') {
        Some((option, value)) if option.starts_with('-') => (option, Some(value)),
        Some(_) | None => (word, None),
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests;
