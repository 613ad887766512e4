//! Listens to an agent while it prints, line by line and in bounded memory, and remembers what matters: its session, whether
//! it has moved, its answer, and what went wrong.

use serde_json::Value;

use super::heard::Heard;
use super::program::{Tongue, is_session_name};
use super::tail::Tail;

/// A longer line is not read: it is the content of some file that a tool has shown.
const LINE_MAX: usize = 8 << 20;
/// The most that is kept of an answer.
const ANSWER_MAX: usize = 1 << 20;
/// The most that is kept of what went wrong.
const TROUBLE_MAX: usize = 64 << 10;
/// How much of the end is kept to be shown.
const LAST_MAX: usize = 8 << 10;

/// How a run ended, by its own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// It has not said so.
    Nothing,
    Well,
    Badly,
}

/// What was heard so far.
pub(crate) struct Listener<'t> {
    tongue: &'t Tongue,
    line: Vec<u8>,
    is_too_long: bool,
    pub(crate) session: Option<String>,
    /// Has the model said or done anything?
    pub(crate) has_moved: bool,
    pub(crate) told: Told,
    pub(crate) answer: String,
    /// What it said of what went wrong.
    pub(crate) trouble: Tail,
    /// What else it wrote to its standard error.
    pub(crate) murmur: Tail,
    /// The last of what it printed, as it is.
    pub(crate) last: Tail,
}

impl<'t> Listener<'t> {
    pub(crate) fn new(tongue: &'t Tongue) -> Listener<'t> {
        Listener {
            tongue,
            line: Vec::new(),
            is_too_long: false,
            session: None,
            has_moved: false,
            told: Told::Nothing,
            answer: String::new(),
            trouble: Tail::of(TROUBLE_MAX),
            murmur: Tail::of(TROUBLE_MAX),
            last: Tail::of(LAST_MAX),
        }
    }

    /// What it wrote to its standard error.
    pub(crate) fn hear_error(&mut self, bytes: &[u8]) {
        self.murmur.push(bytes);
        self.last.push(bytes);
        if let Tongue::Own(own) = self.tongue
            && let Some(name) = String::from_utf8_lossy(bytes).lines().find_map(|line| own.session_in(line))
        {
            self.session = Some(name);
        }
    }

    /// What it wrote to its standard output, in any pieces.
    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        self.last.push(bytes);
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.take(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.take(rest);
    }

    /// It has ended.
    pub(crate) fn close(&mut self) {
        self.end_line();
    }

    fn take(&mut self, piece: &[u8]) {
        self.is_too_long |= self.line.len() + piece.len() > LINE_MAX;
        if !self.is_too_long {
            self.line.extend_from_slice(piece);
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            self.has_moved = true;
        } else if !line.trim_ascii().is_empty() {
            self.read(&line);
        }
        // The room is used again.
        self.line = line;
        self.line.clear();
    }

    fn read(&mut self, line: &[u8]) {
        let heard = match self.tongue {
            Tongue::Own(own) => {
                let text = String::from_utf8_lossy(line);
                let session = own.session_in(&text).map(Heard::Session);
                session.into_iter().chain([Heard::Acted, Heard::SaidMore(format!("{text}\n"))]).collect()
            }
            Tongue::Claude | Tongue::Codex | Tongue::Gemini => match serde_json::from_slice::<Value>(line) {
                Ok(value) if value.is_object() => self.tongue.hear(&value),
                // Words in between are the program's own, mostly complaints.
                Ok(_) | Err(_) => vec![Heard::Trouble(String::from_utf8_lossy(line).into_owned())],
            },
        };
        heard.into_iter().for_each(|heard| self.note(heard));
    }

    fn note(&mut self, heard: Heard) {
        match heard {
            Heard::Session(name) if is_session_name(&name) => self.session = Some(name),
            // It would become an argument, and must not look like an option.
            Heard::Session(_) => {}
            Heard::Acted => self.has_moved = true,
            Heard::Said(text) => {
                self.answer.clear();
                self.say(&text);
            }
            Heard::SaidMore(text) => self.say(&text),
            Heard::Trouble(text) => self.trouble.push_line(&text),
            Heard::EndedWell(answer) => {
                self.told = Told::Well;
                if let Some(answer) = answer {
                    self.answer.clear();
                    self.say(&answer);
                }
            }
            Heard::EndedBadly(reason) => {
                self.told = Told::Badly;
                self.trouble.push_line(&reason);
            }
        }
    }

    fn say(&mut self, text: &str) {
        let room = ANSWER_MAX.saturating_sub(self.answer.len());
        self.answer.push_str(&text[..text.floor_char_boundary(room)]);
    }
}

#[cfg(test)]
mod tests;
