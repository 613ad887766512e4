//! Server-sent events, as far as messages come in them: a pure reader that is fed pieces as they arrive. It holds one event
//! at a time, and never more of it than it was told to.

use std::mem;
use std::time::Duration;

/// A longer name of an event is none: it could not be said back in a header.
const ID_MAX: usize = 4096;
/// So much of what is too long is shown.
const SHOWN: usize = 256;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a stream of events.
#[derive(Debug)]
pub struct EventStream {
    most: usize,
    /// The line that has no end yet.
    line: Vec<u8>,
    /// The data of the event that has no end yet.
    data: Option<Vec<u8>>,
    /// Is it an event of another kind than a message?
    other_kind: bool,
    /// The name that the event gave itself.
    named: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
    after_return: bool,
    begun: bool,
}

/// What a reader came upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamStep {
    /// The data of one message, its lines joined by line ends.
    Message(Vec<u8>),
    /// An event is longer than it may be. Nothing of the stream can be read any more.
    TooLong {
        /// How it begins.
        begins: Vec<u8>,
    },
}

impl EventStream {
    /// A reader that takes no event of more than so many bytes.
    pub fn new(most: usize) -> EventStream {
        EventStream {
            most,
            line: Vec::new(),
            data: None,
            other_kind: false,
            named: None,
            last_id: None,
            retry: None,
            after_return: false,
            begun: false,
        }
    }

    /// Reads on, up to the next thing to tell, and moves `bytes` behind it. Nothing is told where all of `bytes` is read.
    pub fn read(&mut self, bytes: &mut &[u8]) -> Option<StreamStep> {
        while !bytes.is_empty() {
            // A line may end with both, and the second may come with the next piece.
            if mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                *bytes = &bytes[1..];
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', bytes);
            let part = &bytes[..end.unwrap_or(bytes.len())];
            // What is said to nobody may be as long as it likes.
            if self.line.first().or(part.first()) != Some(&b':') {
                let held = self.data.as_ref().map_or(0, Vec::len);
                // The name of the field is no part of the event.
                if held + self.line.len() + part.len() > self.most.saturating_add(8) {
                    return Some(self.too_long(part));
                }
                self.line.extend_from_slice(part);
            } else if self.line.is_empty() {
                self.line.push(b':');
            }
            let Some(end) = end else {
                *bytes = &[];
                return None;
            };
            self.after_return = bytes[end] == b'\r';
            *bytes = &bytes[end + 1..];
            if let Some(message) = self.end_line() {
                return Some(StreamStep::Message(message));
            }
        }
        None
    }

    /// The name of the last event that was whole, with which a server can be asked for what came after it.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long the server wants to be left alone before it is asked again.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// How much of an event is held that has no end yet.
    pub fn held(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, Vec::len)
    }

    /// What had begun when the stream ended: some servers forget the empty line after their last event.
    pub fn rest(mut self) -> Option<Vec<u8>> {
        self.end_line().or_else(|| self.end_event())
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let mut line = mem::take(&mut self.line);
        if !mem::replace(&mut self.begun, true) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if line.is_empty() {
            return self.end_event();
        }
        let colon = memchr::memchr(b':', &line);
        let name = &line[..colon.unwrap_or(line.len())];
        let from = colon.map_or(line.len(), |at| at + 1);
        let from = from + usize::from(line.get(from) == Some(&b' '));
        match name {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(&line[from..]);
                }
                None => {
                    line.drain(..from);
                    self.data = Some(line);
                }
            },
            b"event" => self.other_kind = !matches!(&line[from..], b"" | b"message"),
            b"id" => {
                let id = str::from_utf8(&line[from..]).ok();
                let usable = |id: &&str| id.len() <= ID_MAX && !id.contains('\0');
                self.named = id.filter(usable).map(str::to_owned).or(self.named.take());
            }
            b"retry" => {
                let digits = str::from_utf8(&line[from..]).ok();
                let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                let millis = digits.and_then(|text| text.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
        None
    }

    /// An event without data only says its name, so that the stream can be taken up again from there.
    fn end_event(&mut self) -> Option<Vec<u8>> {
        if let Some(id) = self.named.take() {
            self.last_id = (!id.is_empty()).then_some(id);
        }
        let other_kind = mem::take(&mut self.other_kind);
        self.data.take().filter(|data| !other_kind && !data.trim_ascii().is_empty())
    }

    fn too_long(&mut self, part: &[u8]) -> StreamStep {
        let held = self.data.take().unwrap_or_default();
        let begins = held.iter().chain(&self.line).chain(part).take(SHOWN).copied().collect();
        self.line = Vec::new();
        StreamStep::TooLong { begins }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All that a stream tells, however it is cut into pieces, and what is known at its end.
    fn told(stream: &[u8], piece: usize, most: usize) -> String {
        let mut reader = EventStream::new(most);
        let mut told = String::new();
        for mut bytes in stream.chunks(piece) {
            while let Some(step) = reader.read(&mut bytes) {
                match step {
                    StreamStep::Message(data) => told += &format!("[{}]", data.escape_ascii()),
                    StreamStep::TooLong { .. } => return told + "too long",
                }
            }
        }
        if let Some(id) = reader.last_id() {
            told += &format!(" id {id}");
        }
        if let Some(retry) = reader.retry() {
            told += &format!(" retry {}", retry.as_millis());
        }
        if let Some(rest) = reader.rest() {
            told += &format!(" rest [{}]", rest.escape_ascii());
        }
        told
    }

    #[track_caller]
    fn check(stream: &str, expected: &str) {
        for piece in 1..=stream.len().max(1) {
            assert_eq!(told(stream.as_bytes(), piece, 64), expected, "in pieces of {piece}");
        }
    }

    #[test]
    fn a_message_ends_with_an_empty_line() {
        check("data: {}\n\n", "[{}]");
        check("data:{}\r\n\r\n", "[{}]");
        check("data: {}\r\rdata: 1\r\r", "[{}][1]");
        check("\u{feff}data: {}\n\n", "[{}]");
        check("event: message\ndata: 1\n\ndata:  2\n\n", "[1][ 2]");
    }

    #[test]
    fn lines_of_one_message_are_joined() {
        check("data: {\ndata\ndata:\ndata: }\n\n", "[{\\n\\n\\n}]");
    }

    #[test]
    fn what_is_no_message_is_passed_over() {
        check("", "");
        check("\n\n\n", "");
        check(": hello\n\n:\n\n", "");
        check("data:\n\ndata: \n\n", "");
        check("event: ping\ndata: {}\n\ndata: 1\n\n", "[1]");
        check("what: ever\ndata: 1\n\n", "[1]");
    }

    #[test]
    fn an_empty_event_says_where_to_take_up_the_stream() {
        check("id: 7\ndata:\n\n", " id 7");
        check("id: 7\n\nid: 8\ndata: x", " id 7 rest [x]");
        check("id: 7\n\ndata: 1\n\n", "[1] id 7");
        check("id: 7\n\nid\n\n", "");
        check("id: a\0b\ndata: 1\n\n", "[1]");
    }

    #[test]
    fn a_wait_is_a_number_of_milliseconds() {
        check("retry: 1500\n\n", " retry 1500");
        check("retry: soon\nretry: -1\nretry:\n\n", "");
        check("retry: 99999999999999999999999\n\n", "");
    }

    #[test]
    fn an_event_without_end_is_refused() {
        check(&format!("data: {}\n\n", "x".repeat(64)), &format!("[{}]", "x".repeat(64)));
        check(&format!("data: 1\n\ndata: {}", "x".repeat(100)), "[1]too long");
        check(&"data: 123456789\n".repeat(9), "too long");
        check(&format!("id: {}", "x".repeat(100)), "too long");
        check(&format!(": {}\ndata: 1\n\n", "x".repeat(500)), "[1]");
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            stream in proptest::collection::vec(
                proptest::sample::select(vec![
                    "data: {}", "\n", "\r", "id: 1", ":", "\0", "retry: 5", "event: x", "\u{feff}", "data", " ",
                ]),
                0..40,
            ),
            piece in 1_usize..20,
        ) {
            let stream = stream.concat();
            prop_assert_eq!(told(stream.as_bytes(), piece, 32), told(stream.as_bytes(), usize::MAX, 32));
        }
    }
}
