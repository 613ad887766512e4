//! What a call needs of the machine it runs on, as far as its own words say so, and which of it a failure shows to be missing.
//!
//! Only what the call is bound to fail without counts: a line that asks whether something is there, or that answers for its
//! absence, needs nothing. Whether something is there now is for others to find out.

use crate::ladder::{self, Print};
use crate::rewrite;
use crate::shell::{Command, ParsedCall};
use crate::{Call, Kind};

/// So much of what a call needs is looked at.
const NEEDS_MAX: usize = 16;
/// Words that ask a program for nothing but itself.
const ASKS_FOR_ITSELF: &[&str] = &["--version", "-version", "-V", "-v", "version", "--help", "-h", "help"];
/// Words that some shells know by themselves and others do not: no file tells whether one is there.
const SHELL_WORDS: &[&str] = &[
    "[[",
    "declare",
    "disown",
    "dirs",
    "let",
    "local",
    "mapfile",
    "popd",
    "pushd",
    "readarray",
    "shopt",
    "typeset",
];
/// How programs say that they do not know a flag.
const UNKNOWN_FLAG: &[&str] = &[
    "unknown option",
    "unknown flag",
    "unknown argument",
    "unknown switch",
    "unknown shorthand flag",
    "unrecognized option",
    "unrecognized argument",
    "unrecognised option",
    "unexpected argument",
    "invalid option",
    "illegal option",
    "no such option",
    "unsupported option",
    "flag provided but not defined",
];

/// Something that has to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// A program on PATH.
    Program(String),
    /// Another machine.
    Host(String),
    /// A flag that a program knows.
    Flag {
        /// Whose.
        program: String,
        /// With its dashes, without a value.
        flag: String,
    },
}

impl Need {
    /// What a call needs, in the order of its words.
    pub fn of(call: &Call) -> Vec<Need> {
        let parsed = ParsedCall::of(call);
        let mut needs: Vec<Need> = match &parsed.script {
            Some(script) => ladder::see::needed_commands(script).into_iter().flat_map(of_command).collect(),
            None => call.input.get("url").and_then(|url| host_in(url.as_str()?)).into_iter().collect(),
        };
        needs.truncate(NEEDS_MAX);
        needs
    }

    /// Which of what a call needs is missing, by the cause of its failure and the line that shows it.
    pub fn missing(call: &Call, kind: Kind, line: &str) -> Option<Need> {
        if !matches!(kind, Kind::CommandNotFound | Kind::Network | Kind::Validation) {
            return None;
        }
        let lower = line.to_lowercase();
        let denies_flag = || UNKNOWN_FLAG.iter().any(|words| lower.contains(words));
        Need::of(call).into_iter().find(|need| match need {
            Need::Program(name) => rewrite::says_missing(kind, &lower, name),
            Need::Host(name) => kind == Kind::Network && names(&lower, name),
            Need::Flag { flag, .. } => kind == Kind::Validation && denies_flag() && names_flag(line, flag),
        })
    }

    /// The short name by which it is known again.
    pub fn print(&self) -> Print {
        match self {
            Need::Program(name) => Print::of(&["program", name]),
            Need::Host(name) => Print::of(&["host", name]),
            Need::Flag { program, flag } => Print::of(&["flag", program, flag]),
        }
    }
}

fn of_command(command: &Command) -> Vec<Need> {
    let args = command.args();
    let is_question = !args.is_empty() && args.iter().all(|word| ASKS_FOR_ITSELF.contains(&word.as_str()));
    if is_question {
        return Vec::new();
    }
    let program = &command.program;
    let flag = |word: &String| {
        let flag = word.split('=').next().unwrap_or(word);
        let is_flag = flag.starts_with('-') && !flag.trim_start_matches('-').is_empty();
        is_flag.then(|| Need::Flag { program: program.clone(), flag: flag.to_owned() })
    };
    let flags = args.iter().take_while(|word| *word != "--").filter_map(flag);
    let hosts = args.iter().filter_map(|word| host_in(word));
    let own = Some(program).filter(|program| !SHELL_WORDS.contains(&program.as_str()));
    own.cloned().map(Need::Program).into_iter().chain(hosts).chain(flags).collect()
}

/// The host of an address. This machine's own services come and go with what an agent starts.
fn host_in(word: &str) -> Option<Need> {
    let (scheme, rest) = word.split_once("://")?;
    let is_scheme =
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+');
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = host.split(':').next().unwrap_or_default().to_lowercase();
    let is_name =
        host.contains('.') && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    let is_here = host.starts_with("127.") || host == "0.0.0.0" || host.ends_with(".localhost");
    (is_scheme && is_name && !is_here).then_some(Need::Host(host))
}

/// Does a line hold these words as a whole?
fn names(line: &str, words: &str) -> bool {
    let is_part = |sign: char| sign.is_alphanumeric() || "-_".contains(sign);
    line.match_indices(words)
        .any(|(at, _)| !line[..at].ends_with(is_part) && !line[at + words.len()..].starts_with(is_part))
}

/// Does a line name a flag? Of a short one many programs say only the letter: `invalid option -- 'x'`.
fn names_flag(line: &str, flag: &str) -> bool {
    let letter = flag.strip_prefix('-').filter(|letter| letter.len() == 1);
    let by_letter = |letter: &str| {
        ["-- '", "-- ", "flag: '", "-- ‘"].iter().any(|before| {
            let Some((_, after)) = line.split_once(before) else { return false };
            after.strip_prefix(letter).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        })
    };
    names(line, flag) || letter.is_some_and(by_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is missing when `line` fails so.
    #[track_caller]
    fn check(line: &str, kind: Kind, said: &str, expected: &str) {
        let missing = match Need::missing(&Call::shell(line), kind, said) {
            None => "-".to_owned(),
            Some(Need::Program(name)) => name,
            Some(Need::Host(name)) => format!("//{name}"),
            Some(Need::Flag { program, flag }) => format!("{program} {flag}"),
        };
        assert_eq!(missing, expected, "{line}");
    }

    #[test]
    fn what_is_missing_is_what_the_call_names_and_the_failure_blames() {
        let not_found = Kind::CommandNotFound;
        check("frob x", not_found, "bash: line 1: frob: command not found", "frob");
        check("cd a && frob x | tail", not_found, "zsh: command not found: frob", "frob");
        check("./build.sh", not_found, "./build.sh: line 3: frob: command not found", "-");
        check("pushd a", not_found, "sh: 1: pushd: not found", "-");
        check("make", not_found, "make: frob: No such file or directory", "-");
        let curl = "curl: (6) Could not resolve host: dead.example";
        check("curl -s https://dead.example/x", Kind::Network, curl, "//dead.example");
        check("curl -s https://other.example/x", Kind::Network, curl, "-");
        check("curl http://127.0.0.1:80", Kind::Network, "curl: (7) Failed to connect to 127.0.0.1", "-");
        check("git log --frob", Kind::Validation, "fatal: unrecognized argument: --frob", "git --frob");
        check("sed -z x", Kind::Validation, "sed: invalid option -- 'z'", "sed -z");
        check("git log --frob", Kind::Validation, "fatal: bad revision '--frob'", "-");
    }

    #[test]
    fn a_question_whether_something_is_there_needs_nothing() {
        for line in [
            "command -v frob",
            "which frob",
            "type frob",
            "frob --version",
            "frob --version || apt install frob",
            "frob x || true",
            "PATH=/opt/frob/bin:$PATH frob x",
            "source venv/bin/activate && frob x",
            "/opt/frob/bin/frob x",
        ] {
            let needs = Need::of(&Call::shell(line));
            assert!(!needs.contains(&Need::Program("frob".to_owned())), "{line}: {needs:?}");
        }
    }
}
