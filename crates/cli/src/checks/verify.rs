//! Runs a command that looks whether the work was done. It has a time limit of its own, ends with the whole run
//! at the latest, reads nothing, and what it prints is shown only where it fails.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use unstuck_exec::{Ending, Job};
use unstuck_judge::{Lang, telling_line};

use crate::attempts::{CheckResult, Checked};
use crate::plain;

/// The shell. PATH could lead to a file of the project that is called so.
const SHELL: &str = if cfg!(unix) { "/bin/sh" } else { "sh" };
/// So much of the end of what it printed is kept.
const TAIL: usize = 4 * 1024;
/// So many of its last lines are shown.
const LINES: usize = 3;
/// The most of a line.
const LINE_MAX: usize = 200;

/// How long it may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// At most so long.
    pub(super) limit: Duration,
    /// And until then, where all of the run has to be over by then.
    pub(super) until: Option<Instant>,
}

impl Patience {
    /// How long it may take from now on, and whether it is the end of all of it that comes first.
    fn now(self) -> (Duration, bool) {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        match left.filter(|left| *left < self.limit) {
            Some(left) => (left, true),
            None => (self.limit, false),
        }
    }
}

pub(super) fn run(
    command: &str,
    patience: Patience,
    variables: &[(OsString, OsString)],
    lang: Lang,
) -> Checked {
    let (limit, is_deadline) = patience.now();
    let check = format!("verify {command}");
    if limit.is_zero() {
        let found = match lang {
            Lang::En => "it was not made, the deadline had passed",
            Lang::Zh => "没有进行，已超过期限",
        };
        let result = CheckResult::Failed { found: found.to_owned() };
        return Checked { check, result, took: Duration::ZERO };
    }
    let mut job = Job::new(SHELL, ["-c", command]).without_input().capture_only().timeout(limit);
    for (name, value) in variables {
        job = job.with_variable(name, value);
    }
    let mut tail = Vec::new();
    let run = job.run(|_, bytes| {
        tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
        tail.drain(..tail.len().saturating_sub(TAIL));
    });
    let ended = match (&run.ending, lang) {
        (Ending::Exited(0), _) => None,
        (Ending::Exited(code), Lang::En) => Some(format!("it exited with {code}")),
        (Ending::Exited(code), Lang::Zh) => Some(format!("退出码为 {code}")),
        (Ending::Signalled(signal), Lang::En) => Some(format!("signal {signal} ended it")),
        (Ending::Signalled(signal), Lang::Zh) => Some(format!("被信号 {signal} 终止")),
        (Ending::TimedOut, Lang::En) if is_deadline => Some("it was not done before the deadline".to_owned()),
        (Ending::TimedOut, Lang::Zh) if is_deadline => Some("在期限之前没有完成".to_owned()),
        (Ending::TimedOut, Lang::En) => Some(format!("it was not done within {}", span(limit))),
        (Ending::TimedOut, Lang::Zh) => Some(format!("在 {} 内没有完成", span(limit))),
        (Ending::NotFound, Lang::En) => Some("there is no `sh` to run it".to_owned()),
        (Ending::NotFound, Lang::Zh) => Some("没有可用的 `sh`".to_owned()),
        (Ending::NotExecutable(why) | Ending::NotTried(why), Lang::En) => {
            Some(format!("it could not be started: {why}"))
        }
        (Ending::NotExecutable(why) | Ending::NotTried(why), Lang::Zh) => Some(format!("无法启动：{why}")),
    };
    let result = match ended {
        None => CheckResult::Held,
        Some(ended) => {
            let said = last_lines(&tail);
            let found = if said.is_empty() { ended } else { format!("{ended}: {said}") };
            CheckResult::Failed { found }
        }
    };
    Checked { check, result, took: run.took }
}

fn span(limit: Duration) -> String {
    crate::moment::span(unstuck_wire::time::span_ms(limit))
}

/// The lines of what it printed that end with the one that tells most, as one.
fn last_lines(tail: &[u8]) -> String {
    let text = String::from_utf8_lossy(tail);
    let end = telling_line(&text).map_or(usize::MAX, |(number, _)| number);
    let read = text.lines().take(end.saturating_add(1));
    let lines: Vec<&str> = read.map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    last.iter().map(|line| plain::short(line, LINE_MAX)).collect::<Vec<_>>().join(" / ")
}
