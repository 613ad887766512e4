//! What went wrong on the way to an answer or in the middle of it, in words that the judge knows from other clients.

use std::io;
use std::path::Path;
use std::time::Duration;

use unstuck_judge::Outcome;
use ureq::http::Uri;
use ureq::{Error, Timeout};

use super::redirect;

/// Our exit code where something did not work out.
const FAILED: u8 = 1;
/// Our exit code where the time ran out, as `timeout` has it.
const TIMED_OUT: u8 = 124;
/// Our exit code where it is our own fault.
const OURS: u8 = 125;

/// Something went wrong.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mishap {
    /// [`Outcome::Rejected`] is for what provably never left this machine.
    pub(super) outcome: Outcome,
    pub(super) line: String,
    pub(super) code: u8,
}

/// How far the answer came.
#[derive(Debug, Clone, Copy)]
pub(super) enum Progress {
    /// Nothing of it is there.
    Unanswered,
    /// Its body is being read.
    Received { bytes: u64, of: Option<u64> },
}

impl Mishap {
    /// Reads what the connection complains about.
    pub(super) fn of(error: &Error, url: &Uri, progress: Progress, took: Duration) -> Mishap {
        let place = format!("{}:{}", url.host().unwrap_or_default(), redirect::port(url));
        match error {
            Error::HostNotFound => Mishap::unresolved(url, ""),
            Error::Timeout(Timeout::Resolve) => Mishap {
                code: TIMED_OUT,
                ..Mishap::unsent(format!("name resolution failed: the lookup of {place} timed out"))
            },
            Error::Timeout(Timeout::Connect) => Mishap {
                code: TIMED_OUT,
                ..Mishap::unsent(format!(
                    "connection timed out: {place} did not answer in {} ms",
                    took.as_millis()
                ))
            },
            Error::Timeout(_) => Mishap::timed_out(progress, took),
            Error::Io(error) => Mishap::of_connection(error, url, &place, progress),
            Error::ConnectProxyFailed(why) => Mishap::unsent(format!("connect tunnel failed: {why}")),
            Error::ConnectionFailed => Mishap::unsent(format!("could not connect to {place}")),
            Error::InvalidProxyUrl => Mishap::unsent("invalid proxy url".to_owned()),
            Error::Protocol(why) => Mishap::broken(format!("the answer is not valid HTTP: {why}")),
            other => Mishap::broken(other.to_string()),
        }
    }

    fn of_connection(error: &io::Error, url: &Uri, place: &str, progress: Progress) -> Mishap {
        use io::ErrorKind::{
            AddrNotAvailable, BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset,
            HostUnreachable, NetworkDown, NetworkUnreachable, UnexpectedEof,
        };
        let said = error.to_string();
        match (error.kind(), progress) {
            (_, Progress::Unanswered) if said.starts_with(LOOKUP) => {
                Mishap::unresolved(url, said.trim_start_matches(LOOKUP))
            }
            (ConnectionRefused, Progress::Unanswered) => {
                Mishap::unsent(format!("failed to connect to {place}: connection refused"))
            }
            (HostUnreachable | NetworkUnreachable | NetworkDown | AddrNotAvailable, Progress::Unanswered) => {
                Mishap::unsent(format!("failed to connect to {place}: {said}"))
            }
            (ConnectionReset | ConnectionAborted | BrokenPipe, Progress::Unanswered) => {
                Mishap::broken("connection reset by peer before there was an answer".to_owned())
            }
            (UnexpectedEof, Progress::Unanswered) => Mishap::broken("empty reply from server".to_owned()),
            (_, Progress::Received { bytes, of: Some(of) }) => Mishap::broken(format!(
                "transfer closed with {} bytes remaining to read",
                of.saturating_sub(bytes)
            )),
            (_, Progress::Received { bytes, of: None }) => {
                Mishap::broken(format!("transfer closed with outstanding read data after {bytes} bytes"))
            }
            (_, Progress::Unanswered) => Mishap::broken(said),
        }
    }

    /// What is said where there is no connection.
    pub(crate) fn unconnected(error: &io::Error, url: &Uri) -> String {
        let place = format!("{}:{}", url.host().unwrap_or_default(), redirect::port(url));
        Mishap::of_connection(error, url, &place, Progress::Unanswered).line
    }

    /// The time that it may take is over.
    pub(super) fn timed_out(progress: Progress, took: Duration) -> Mishap {
        let bytes = match progress {
            Progress::Unanswered => 0,
            Progress::Received { bytes, .. } => bytes,
        };
        let line = format!("operation timed out after {} ms with {bytes} bytes received", took.as_millis());
        Mishap { outcome: Outcome::TimedOut, line, code: TIMED_OUT }
    }

    /// It provably never left this machine.
    fn unsent(line: String) -> Mishap {
        Mishap { outcome: Outcome::Rejected, line, code: FAILED }
    }

    fn unresolved(url: &Uri, why: &str) -> Mishap {
        let host = url.host().unwrap_or_default();
        Mishap::unsent(match why {
            "" => format!("could not resolve host: {host}"),
            why => format!("could not resolve host: {host} ({why})"),
        })
    }

    /// It may have arrived.
    pub(super) fn broken(line: String) -> Mishap {
        Mishap { outcome: Outcome::Threw, line, code: FAILED }
    }

    /// What was to be sent cannot be read any more.
    pub(super) fn unreadable(path: &Path, error: &io::Error) -> Mishap {
        let line = format!("unstuck: could not read {}: {error}", path.display());
        Mishap { code: OURS, ..Mishap::unsent(line) }
    }

    /// There is no place for the answer, and so nothing was asked.
    pub(super) fn no_place(path: &Path, error: &io::Error) -> Mishap {
        let line = format!("unstuck: could not write {}: {error}", path.display());
        Mishap { code: OURS, ..Mishap::unsent(line) }
    }

    /// The answer came, and could not be written down.
    pub(super) fn unwritten(error: &io::Error) -> Mishap {
        Mishap { code: OURS, ..Mishap::broken(format!("unstuck: could not write the answer: {error}")) }
    }
}

/// How the standard library begins what it says about a name that cannot be found.
const LOOKUP: &str = "failed to lookup address information: ";
