//! A failed call as bytes: a head of eight bytes, then the command line and the three streams, apart by `SEPARATOR`.

use serde_json::json;
use unstuck_judge::{Call, Observation, Outcome};

/// Stands between the parts; no program prints it.
pub const SEPARATOR: u8 = 0x1e;
const HEAD: usize = 8;

/// A failed call, and into which pieces its output is cut.
pub struct Case<'a> {
    head: [u8; HEAD],
    parts: [&'a [u8]; 4],
}

impl<'a> Case<'a> {
    /// Reads any bytes as a case; what is missing is empty.
    pub fn decode(data: &'a [u8]) -> Case<'a> {
        let (start, body) = data.split_at(data.len().min(HEAD));
        let mut head = [0; HEAD];
        head[..start.len()].copy_from_slice(start);
        let mut rest = body.splitn(4, |byte| *byte == SEPARATOR);
        Case { head, parts: [(); 4].map(|()| rest.next().unwrap_or_default()) }
    }

    /// Writes a case so that `decode` reads it.
    pub fn encode(exit: u8, command: &str, stdout: &str, stderr: &str, merged: &str) -> Vec<u8> {
        let head = [0, exit, 0, 0, 7, 64, 1, 0];
        let mut bytes = head.to_vec();
        for (index, part) in [command, stdout, stderr, merged].into_iter().enumerate() {
            if index > 0 {
                bytes.push(SEPARATOR);
            }
            bytes.extend(part.bytes().filter(|byte| *byte != SEPARATOR));
        }
        bytes
    }

    /// The failed call that it stands for.
    pub fn observation(&self) -> Observation {
        let [ending, code, status, ..] = self.head;
        let outcome = match ending % 10 {
            0 => Outcome::Exited { code: i32::from(code) },
            1 => Outcome::Succeeded,
            2 => Outcome::Signalled { signal: i32::from(code) },
            3 => Outcome::TimedOut,
            4 => Outcome::Interrupted,
            5 => Outcome::Rejected,
            6 => Outcome::Threw,
            7 => Outcome::ReportedFailure,
            8 => Outcome::Denied,
            _ => Outcome::NoExitCode,
        };
        let [command, stdout, stderr, merged] = self.parts;
        let input = serde_json::from_slice(command)
            .unwrap_or_else(|_| json!({ "command": String::from_utf8_lossy(command) }));
        let tool = ["Bash", "Edit", "mcp__db__query", ""][usize::from(self.head[3] % 4)];
        Observation {
            call: Call::new(tool, input),
            outcome,
            http_status: (status > 0).then_some(u16::from(status) * 5),
            stdout: stdout.to_vec(),
            stderr: stderr.to_vec(),
            merged: merged.to_vec(),
        }
    }

    /// Cuts bytes into pieces whose lengths follow the head; an empty piece now and then is part of it.
    pub fn pieces<'b>(&self, bytes: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
        let lengths = [self.head[4], self.head[5], self.head[6], self.head[7]].map(usize::from);
        let mut rest = bytes;
        let mut turn = 0;
        std::iter::from_fn(move || {
            turn += 1;
            // A round without any length must still get ahead.
            let length = lengths[turn % 4].max(usize::from(turn % 4 == 0)).min(rest.len());
            let piece = rest.split_off(..length)?;
            (!piece.is_empty() || !rest.is_empty()).then_some(piece)
        })
    }
}
