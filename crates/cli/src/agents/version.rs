//! Which version of an agent is installed: asked of the program itself, with a time limit.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use unstuck_exec::{Ending, Job};
use unstuck_judge::Lang;

/// How long a program may take to tell its version. Those that run on Node take a second or two on a busy machine.
const LIMIT: Duration = Duration::from_secs(10);

/// The most that is read of the answer.
const MOST: usize = 4096;

/// Three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) patch: u32,
}

/// What is known of an agent's version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reported {
    Version(Version),
    /// Its program is not there.
    NotFound,
    /// Nobody asked, because nothing depends on it.
    NotAsked,
    /// It was asked and did not say.
    Unreadable(Why),
}

/// Why a version is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Why {
    /// There is no program to ask.
    NoProgram,
    /// It lies in the project, and nothing is started there.
    InProject,
    /// It ended well and said nothing like a version.
    NoVersion,
    Exited(i32),
    Signalled(i32),
    TooSlow,
    /// The system did not start it; in the system's own words.
    NotStarted(String),
}

impl Why {
    pub(crate) fn in_words(&self, lang: Lang) -> String {
        let limit = LIMIT.as_secs();
        match (self, lang) {
            (Why::NoProgram, Lang::En) => "there is no such program".to_owned(),
            (Why::NoProgram, Lang::Zh) => "没有这个程序".to_owned(),
            (Why::InProject, Lang::En) => "it lies in this project, so it was not started".to_owned(),
            (Why::InProject, Lang::Zh) => "它位于此项目中，因此未启动".to_owned(),
            (Why::NoVersion, Lang::En) => "it said no version".to_owned(),
            (Why::NoVersion, Lang::Zh) => "它没有说出版本".to_owned(),
            (Why::Exited(code), Lang::En) => format!("exit code {code}"),
            (Why::Exited(code), Lang::Zh) => format!("退出码 {code}"),
            (Why::Signalled(signal), Lang::En) => format!("signal {signal}"),
            (Why::Signalled(signal), Lang::Zh) => format!("信号 {signal}"),
            (Why::TooSlow, Lang::En) => format!("no answer in {limit} s"),
            (Why::TooSlow, Lang::Zh) => format!("{limit} 秒内没有回答"),
            (Why::NotStarted(why), Lang::En) => format!("it could not be started: {why}"),
            (Why::NotStarted(why), Lang::Zh) => format!("无法启动：{why}"),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Asks a program for its version.
pub(super) fn ask(program: &Path) -> Reported {
    let mut said = Vec::new();
    let job = Job::new(program, ["--version"]).without_input().capture_only().timeout(LIMIT);
    let run = job.grace(Duration::from_millis(200)).run(|_, bytes| {
        let room = MOST.saturating_sub(said.len());
        said.extend_from_slice(&bytes[..bytes.len().min(room)]);
    });
    match (run.ending, read(&String::from_utf8_lossy(&said))) {
        (Ending::Exited(0), Some(version)) => Reported::Version(version),
        (Ending::Exited(0), None) => Reported::Unreadable(Why::NoVersion),
        (Ending::Exited(code), _) => Reported::Unreadable(Why::Exited(code)),
        (Ending::Signalled(signal), _) => Reported::Unreadable(Why::Signalled(signal)),
        (Ending::TimedOut, _) => Reported::Unreadable(Why::TooSlow),
        (Ending::NotFound, _) => Reported::NotFound,
        (Ending::NotExecutable(why) | Ending::NotTried(why), _) => Reported::Unreadable(Why::NotStarted(why)),
    }
}

/// The first three numbers with dots between them.
fn read(said: &str) -> Option<Version> {
    let words = said.split(|sign: char| !sign.is_ascii_digit() && sign != '.');
    words.into_iter().find_map(|word| {
        let mut numbers = word.split('.').map(str::parse::<u32>);
        let mut next = || numbers.next()?.ok();
        Some(Version { major: next()?, minor: next()?, patch: next()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(said: &str, expected: &str) {
        assert_eq!(read(said).map_or("none".to_owned(), |version| version.to_string()), expected);
    }

    #[test]
    fn a_version_is_found_whatever_stands_around_it() {
        check("2.1.325 (Claude Code)\n", "2.1.325");
        check("codex-cli 0.166.0\n", "0.166.0");
        check("v1.18.33", "1.18.33");
        check("GitHub Copilot CLI 1.0.102.\nCommit: abc", "1.0.102");
        check("2026.09.18-abc", "2026.9.18");
    }

    #[test]
    fn what_is_no_version_is_none() {
        check("", "none");
        check("command not found", "none");
        check("1.2", "none");
        check("99999999999.1.1", "none");
    }

    #[test]
    fn a_newer_version_is_greater() {
        assert!(
            read("2.1.118") > read("2.1.101")
                && read("2.1.9") < read("2.1.10")
                && read("10.0.0") > read("9.9.9")
        );
    }
}
