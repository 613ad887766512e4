//! What is said to the client: whole frames in one write each, or whatever else a test wants to see on the wire.

use std::io::{self, Write};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::lock;

/// Standard output, for one speaker at a time.
#[derive(Debug, Default)]
pub struct Voice {
    turn: Mutex<()>,
    /// Each frame comes in a list, as a batch.
    lists: bool,
}

impl Voice {
    pub fn new(lists: bool) -> Voice {
        Voice { turn: Mutex::default(), lists }
    }

    /// One frame.
    pub fn say(&self, frame: &Value) -> io::Result<()> {
        match self.lists {
            true => self.raw(&bytes(&Value::Array(vec![frame.clone()]))),
            false => self.raw(&bytes(frame)),
        }
    }

    /// A notification.
    pub fn notify(&self, method: &str, params: &Value) -> io::Result<()> {
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// Any bytes, in one write.
    pub fn raw(&self, bytes: &[u8]) -> io::Result<()> {
        let _turn = lock(&self.turn);
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// Several pieces, with something to do before each but the first; nobody else speaks in between.
    pub fn in_pieces(&self, pieces: &[&[u8]], between: impl Fn()) -> io::Result<()> {
        let _turn = lock(&self.turn);
        let mut out = io::stdout().lock();
        for (count, piece) in pieces.iter().enumerate() {
            if count > 0 {
                between();
            }
            out.write_all(piece)?;
            out.flush()?;
        }
        Ok(())
    }

    /// A line for people, on standard error.
    pub fn remark(line: &str) {
        // Nobody may be listening there.
        let _unheard = writeln!(io::stderr(), "{line}");
    }
}

/// A frame with its line end.
pub fn bytes(frame: &Value) -> Vec<u8> {
    let mut bytes = frame.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}
