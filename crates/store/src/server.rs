//! What happens to a server that offers tools, as the timeline tells it. Whoever watches over the server is elsewhere: here are
//! only its words, and how much is kept of what the server itself said.

use serde_json::{Value, json};
use unstuck_wire::clean::{Clean, Cleaner};

use crate::entry::{NAME_MAX, Severity, Who};
use crate::event::{self, EventType, NewEvent};
use crate::record::{Clerk, Said};
use crate::server_tools::ToolChanges;

/// The most that is kept of a sentence about a server, or of a line of its own.
const LINE_MAX: usize = 400;
/// So many of the last lines on its standard error are kept,
const LINES: usize = 20;
/// and so many bytes of them.
const LINES_BYTES: usize = 4 * 1024;
/// So many names stand in an event; of more only the number is told.
const NAMES: usize = 40;

/// Something that happened to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerNote {
    /// In whose session, and when.
    pub who: Who,
    /// The server's name, as tools are recorded under it.
    pub server: Clean,
    /// What happened.
    pub what: ServerWhat,
}

/// What can happen to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerWhat {
    /// It was started, or reached for the first time.
    Started {
        /// Its process; none where it runs elsewhere.
        pid: Option<u32>,
        /// The command, or the address, in one line.
        command: Clean,
    },
    /// It ended, or the way to it did.
    Exited {
        /// How, in one line.
        text: Clean,
        /// Its exit code, where it has one.
        code: Option<i32>,
        /// The last that it wrote to standard error.
        stderr: Vec<Clean>,
    },
    /// It was started again.
    Restarted {
        /// Which start this is since it was last well, counted from 1.
        attempt: u32,
        /// How long was waited first, in milliseconds.
        waited_ms: u64,
    },
    /// It is left alone: calls are answered without it.
    GaveUp {
        /// Why, in one line.
        why: Clean,
        /// For how long, in milliseconds; none where for good.
        for_ms: Option<u64>,
    },
    /// It answers again after it was left alone.
    Recovered,
    /// It runs and does not answer.
    Unresponsive {
        /// What it does not answer, in one line.
        text: Clean,
        /// For how long it was waited for, in milliseconds.
        waited_ms: u64,
    },
    /// It sent something that is no message.
    Noise {
        /// How that begins.
        beginning: Clean,
        /// Why it is none.
        why: Clean,
    },
    /// It offers other tools than the last time.
    ToolsChanged(ToolChanges),
    /// It wrote something to standard error.
    Remark {
        /// The last lines of it.
        lines: Vec<Clean>,
    },
}

impl ServerNote {
    /// Names the server that something happened to.
    pub fn new(cleaner: &Cleaner, who: Who, server: &str, what: ServerWhat) -> ServerNote {
        ServerNote { who, server: cleaner.name(server, NAME_MAX), what }
    }

    pub(crate) fn body(&self) -> Value {
        let mut body = match &self.what {
            ServerWhat::Started { pid, command } => json!({ "pid": pid, "command": &**command }),
            ServerWhat::Exited { text, code, stderr } => {
                json!({ "text": &**text, "code": code, "stderr": stderr })
            }
            ServerWhat::Restarted { attempt, waited_ms } => {
                json!({ "attempt": attempt, "waited_ms": waited_ms })
            }
            ServerWhat::GaveUp { why, for_ms } => json!({ "why": &**why, "for_ms": for_ms }),
            ServerWhat::Recovered => json!({}),
            ServerWhat::Unresponsive { text, waited_ms } => {
                json!({ "text": &**text, "waited_ms": waited_ms })
            }
            ServerWhat::Noise { beginning, why } => json!({ "beginning": &**beginning, "why": &**why }),
            ServerWhat::ToolsChanged(ToolChanges { added, removed, changed }) => json!({
                // A tool that is described otherwise than when somebody allowed it may do something else.
                "severity": if changed.is_empty() { Severity::Info } else { Severity::Warn }.word(),
                "added": few(added), "removed": few(removed), "changed": few(changed),
                "counts": { "added": added.len(), "removed": removed.len(), "changed": changed.len() },
            }),
            ServerWhat::Remark { lines } => json!({ "lines": lines }),
        };
        body["server"] = Value::from(&*self.server);
        body
    }
}

fn few(names: &[Clean]) -> &[Clean] {
    &names[..names.len().min(NAMES)]
}

impl ServerWhat {
    /// It was started, or reached for the first time.
    pub fn started(cleaner: &Cleaner, pid: Option<u32>, command: &str) -> ServerWhat {
        ServerWhat::Started { pid, command: cleaner.line(command, LINE_MAX) }
    }

    /// It ended. Of what it wrote to standard error the last is kept.
    pub fn exited(cleaner: &Cleaner, text: &str, code: Option<i32>, stderr: &[u8]) -> ServerWhat {
        ServerWhat::Exited { text: cleaner.line(text, LINE_MAX), code, stderr: last_lines(cleaner, stderr) }
    }

    /// It is left alone for so many milliseconds, or for good.
    pub fn gave_up(cleaner: &Cleaner, why: &str, for_ms: Option<u64>) -> ServerWhat {
        ServerWhat::GaveUp { why: cleaner.line(why, LINE_MAX), for_ms }
    }

    /// It runs and does not answer.
    pub fn unresponsive(cleaner: &Cleaner, text: &str, waited_ms: u64) -> ServerWhat {
        ServerWhat::Unresponsive { text: cleaner.line(text, LINE_MAX), waited_ms }
    }

    /// It sent something that is no message. Only the beginning of it is kept.
    pub fn noise(cleaner: &Cleaner, sent: &[u8], why: &str) -> ServerWhat {
        let beginning = cleaner.output(sent, LINE_MAX, 0).head;
        ServerWhat::Noise { beginning: cleaner.line(&beginning, LINE_MAX), why: cleaner.line(why, LINE_MAX) }
    }

    /// It wrote something to standard error, of which the last is kept.
    pub fn remark(cleaner: &Cleaner, stderr: &[u8]) -> ServerWhat {
        ServerWhat::Remark { lines: last_lines(cleaner, stderr) }
    }

    fn kind(&self) -> EventType {
        match self {
            ServerWhat::Started { .. } => EventType::ServerStarted,
            ServerWhat::Exited { .. } => EventType::ServerExited,
            ServerWhat::Restarted { .. } => EventType::ServerRestarted,
            ServerWhat::GaveUp { .. } => EventType::ServerGaveUp,
            ServerWhat::Recovered => EventType::ServerRecovered,
            ServerWhat::Unresponsive { .. } => EventType::ServerUnresponsive,
            ServerWhat::Noise { .. } => EventType::ServerNoise,
            ServerWhat::ToolsChanged(_) => EventType::ServerToolsChanged,
            ServerWhat::Remark { .. } => EventType::ServerRemark,
        }
    }
}

/// The last lines of an output. It is cleaned as a whole, because a secret may go over several lines.
fn last_lines(cleaner: &Cleaner, output: &[u8]) -> Vec<Clean> {
    let cleaned = cleaner.output(output, 0, LINES_BYTES);
    let end = if cleaned.tail.is_empty() { &cleaned.head } else { &cleaned.tail };
    let mut lines: Vec<Clean> = end
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(LINES)
        .map(|line| cleaner.line(line, LINE_MAX))
        .collect();
    lines.reverse();
    lines
}

impl Clerk<'_> {
    /// Tells what happened to a server, in the session that it serves.
    pub(crate) fn server(&self, note: &ServerNote) -> Result<Said, rusqlite::Error> {
        let session = self.session(&note.who)?;
        let (kind, body) = (note.what.kind(), note.body());
        let new = NewEvent { at: note.who.at, kind, session: Some(session), call: None, body };
        Ok(Said { bookmark: Some(event::append(self.connection, &new)?), ..Said::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_of_what_a_server_said_are_kept_and_no_secret() {
        let check = |said: &str, expected: &[&str]| {
            let lines = last_lines(&Cleaner::new(None, []), said.as_bytes());
            assert_eq!(lines.iter().map(|line| &**line).collect::<Vec<_>>(), expected, "{said}");
        };
        check("", &[]);
        check("one\n\n  \ntwo", &["one", "two"]);
        check("\u{1b}[31mred\u{1b}[0m\n", &["red"]);
        let many: Vec<String> = (0..100).map(|number| format!("line {number}")).collect();
        let last: Vec<&str> = many[80..].iter().map(String::as_str).collect();
        check(&many.join("\n"), &last);
        let lines = last_lines(&Cleaner::new(None, []), "x".repeat(100_000).as_bytes());
        assert!(matches!(&lines[..], [only] if only.chars().count() <= LINE_MAX), "{lines:?}");
        let token = format!("token=ghp_{}", "a1B2".repeat(9));
        assert!(!format!("{:?}", last_lines(&Cleaner::new(None, []), token.as_bytes())).contains("a1B2a1B2"));
    }

    #[test]
    fn noise_is_one_short_line_whatever_it_is() {
        let cleaner = Cleaner::new(None, []);
        let noise = |sent: &[u8]| match ServerWhat::noise(&cleaner, sent, "no JSON") {
            ServerWhat::Noise { beginning, .. } => beginning.into_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(noise(b"Listening\non 8080"), "Listening on 8080");
        let long = noise(&[0xff, 0, 7].repeat(50_000));
        assert!(long.chars().count() <= LINE_MAX && long.lines().count() == 1, "{long}");
    }
}
