//! Reads the names and kinds of messages from bytes that are not held, such as a line that is longer than the limit. What it
//! holds itself is bounded.

use serde::de::IgnoredAny;

use super::id::Id;

/// The name and the kind of a message of which nothing else is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glimpse {
    /// What kind of message it is.
    pub sort: Sort,
    /// Its name; nothing where nobody can tell.
    pub id: Option<Id>,
}

/// What kind of message something is of which only a part is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// It asks or tells something.
    Question,
    /// It answers.
    Answer,
    /// It does not say.
    Unsaid,
}

/// Maximum length of a name that is read, in bytes.
const ID_MAX: usize = 1024 * 1024;
/// Maximum number of messages that are read in one line.
const MESSAGES_MAX: usize = 10_000;
/// No field that is looked for has a longer name, also where it is escaped.
const NAME_MAX: usize = 40;

impl Glimpse {
    /// Every message in these bytes, which may be cut off or broken.
    pub fn all(bytes: &[u8]) -> Vec<Glimpse> {
        let mut found = Vec::new();
        let mut scanner = Scanner::default();
        scanner.feed(bytes, &mut |glimpse| found.push(glimpse));
        scanner.finish(&mut |glimpse| found.push(glimpse));
        found
    }
}

/// Scans bytes as they pass, in pieces of any length, and tells of each message as soon as its name and kind are known.
#[derive(Debug, Default)]
pub struct Scanner {
    depth: usize,
    /// The depth at which messages have their fields: 1, or 2 where a list holds them.
    level: usize,
    in_message: bool,
    in_string: bool,
    is_escaped: bool,
    expects_name: bool,
    keeps: Keeps,
    /// What is kept of the name of a field, or of the value of `id`.
    kept: Vec<u8>,
    sort: Option<Sort>,
    id: Option<Id>,
    /// This message is told of.
    is_told: bool,
    told: usize,
}

/// What is kept of what passes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Keeps {
    #[default]
    Nothing,
    /// The name of a field, with its quotes.
    Name,
    /// The value of `id`.
    Id,
}

impl Scanner {
    /// Scans the next piece.
    pub fn feed(&mut self, bytes: &[u8], each: &mut impl FnMut(Glimpse)) {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                let end = match self.is_escaped {
                    true => 0,
                    false => memchr::memchr2(b'"', b'\\', &bytes[at..]).unwrap_or(bytes.len() - at),
                };
                let upto = (at + end + 1).min(bytes.len());
                self.keep(&bytes[at..upto]);
                if at + end < bytes.len() {
                    let sign = bytes[at + end];
                    let was_escaped = std::mem::replace(&mut self.is_escaped, false);
                    match sign {
                        b'"' if !was_escaped => self.in_string = false,
                        b'\\' if !was_escaped => self.is_escaped = true,
                        _ => {}
                    }
                }
                at = upto;
                continue;
            }
            self.sign(bytes[at], each);
            at += 1;
        }
    }

    /// Nothing more comes of the line. A line in which nothing was found is told of as well.
    pub fn finish(&mut self, each: &mut impl FnMut(Glimpse)) {
        if self.in_message {
            self.end_message(each);
        }
        if self.told == 0 {
            each(Glimpse { sort: self.sort.unwrap_or(Sort::Unsaid), id: None });
        }
        *self = Scanner::default();
    }

    /// One byte outside of strings.
    fn sign(&mut self, sign: u8, each: &mut impl FnMut(Glimpse)) {
        let is_field = self.in_message && self.depth == self.level;
        match sign {
            b'{' | b'[' => {
                if is_field {
                    // A list or an object is no name.
                    self.keeps = Keeps::Nothing;
                }
                self.depth += 1;
                if self.depth == 1 {
                    self.level = if sign == b'{' { 1 } else { 2 };
                }
                if self.depth == self.level && sign == b'{' {
                    (self.in_message, self.expects_name) = (true, true);
                    (self.sort, self.id, self.is_told) = (None, None, false);
                }
            }
            b'}' | b']' => {
                if is_field {
                    self.end_value(each);
                    self.end_message(each);
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b'"' => {
                self.in_string = true;
                if is_field && std::mem::take(&mut self.expects_name) {
                    (self.keeps, self.kept) = (Keeps::Name, Vec::new());
                }
                self.keep(b"\"");
            }
            b':' if is_field => {
                if self.keeps == Keeps::Name {
                    self.begin_value(each);
                }
            }
            b',' if is_field => {
                self.end_value(each);
                self.expects_name = true;
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            other => {
                if is_field {
                    self.expects_name = false;
                }
                self.keep(&[other]);
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let most = match self.keeps {
            Keeps::Nothing => return,
            Keeps::Name => NAME_MAX,
            Keeps::Id => ID_MAX,
        };
        match self.kept.len() + bytes.len() <= most {
            true => self.kept.extend_from_slice(bytes),
            false => self.keeps = Keeps::Nothing,
        }
    }

    /// The name of a field is known, and its value begins.
    fn begin_value(&mut self, each: &mut impl FnMut(Glimpse)) {
        self.keeps = Keeps::Nothing;
        let name: String = serde_json::from_slice(&self.kept).unwrap_or_default();
        match &*name {
            "id" => (self.keeps, self.kept) = (Keeps::Id, Vec::new()),
            "method" | "params" => self.sort = self.sort.or(Some(Sort::Question)),
            "result" | "error" => self.sort = self.sort.or(Some(Sort::Answer)),
            _ => {}
        }
        self.tell(each);
    }

    fn end_value(&mut self, each: &mut impl FnMut(Glimpse)) {
        if std::mem::take(&mut self.keeps) == Keeps::Id {
            let kept = std::str::from_utf8(&self.kept).ok();
            let whole = kept.filter(|json| serde_json::from_str::<IgnoredAny>(json).is_ok());
            self.id = whole.and_then(Id::of);
            self.tell(each);
        }
    }

    fn end_message(&mut self, each: &mut impl FnMut(Glimpse)) {
        self.in_message = false;
        self.sort.get_or_insert(Sort::Unsaid);
        self.tell(each);
    }

    fn tell(&mut self, each: &mut impl FnMut(Glimpse)) {
        if let (Some(sort), Some(id), false) = (self.sort, &self.id, self.is_told)
            && self.told < MESSAGES_MAX
        {
            self.is_told = true;
            self.told += 1;
            each(Glimpse { sort, id: Some(id.clone()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages as they are told of, however the bytes are cut.
    #[track_caller]
    fn check(bytes: &str, expected: &[(&str, Sort)]) {
        let expected: Vec<(Option<Id>, Sort)> =
            expected.iter().map(|(id, sort)| (Id::of(id), *sort)).collect();
        for piece in [1, 2, 3, 7, usize::MAX] {
            let (mut scanner, mut found) = (Scanner::default(), Vec::new());
            let mut note = |glimpse: Glimpse| found.push((glimpse.id, glimpse.sort));
            bytes.as_bytes().chunks(piece).for_each(|part| scanner.feed(part, &mut note));
            scanner.finish(&mut note);
            assert_eq!(found, expected, "{bytes} in pieces of {piece}");
        }
    }

    #[test]
    fn a_message_is_known_by_its_own_fields() {
        use Sort::{Answer, Question, Unsaid};
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"a":"x"#,
            &[("1", Question)],
        );
        check(r#"{"jsonrpc":"2.0","method":"x","params":{"id":7},"id":"last"}"#, &[("\"last\"", Question)]);
        check(r#"{"jsonrpc":"2.0","id":1,"params":{"a":"x"#, &[("1", Question)]);
        check(r#"{ "params" : [["#, &[("", Question)]);
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"method":"GET","params":"#, &[("1", Answer)]);
        check(r#"{"error":{"params":1,"message":"x"}, "id" : -7 }"#, &[("-7", Answer)]);
        check(r#"{"id":"method","result":"#, &[("\"method\"", Answer)]);
        check(r#"{"\"method":1,"_meta":{"method":1},"result":{},"id":2}"#, &[("2", Answer)]);
        check(r#"{"result":"\\\" \"id\":1}","id":"a\"\\"}"#, &[(r#""a\"\\""#, Answer)]);
        check(r#"{"\u0069d":"\u0061","meth\u006fd":"x"}"#, &[(r#""a""#, Question)]);
        check(r#"{"id":3}"#, &[("3", Unsaid)]);
        check(r#"{"id":{"id":4},"method":"x"}"#, &[("", Question)]);
        check(r#"{"id":null,"method":"x"}"#, &[("", Question)]);
        check(r#"{"id":[1,"id"],"result":1}"#, &[("", Answer)]);
        check(r#"{"id":5abc,"result":1}"#, &[("", Answer)]);
        // It may go on.
        check(r#"{"result":1,"id":5"#, &[("", Answer)]);
        check(r#"{"id":"a\"#, &[("", Unsaid)]);
        check(r#""{\"id\":1,\"method\":2}""#, &[("", Unsaid)]);
        check("", &[("", Unsaid)]);
        check("]}]} , : \"", &[("", Unsaid)]);
    }

    #[test]
    fn each_message_of_a_batch_is_told_of() {
        use Sort::{Answer, Question, Unsaid};
        check(
            r#" [{"method":"a","id":1},{"id":1,"result":"x"},7,[{"id":9,"method":"x"}],{"method":"b"},{"id":"#,
            &[("1", Question), ("1", Answer)],
        );
        check(r#"[[{"id":1,"method":"x"}]]"#, &[("", Unsaid)]);
        check(r#"[2026-01-01] {"id":1,"result":{}}{"id":2,"result":{}}"#, &[("1", Answer), ("2", Answer)]);
    }

    #[test]
    fn what_is_held_is_bounded() {
        let long = "x".repeat(2 * ID_MAX);
        check(&format!(r#"{{"id":"{long}","method":"x"}}"#), &[("", Sort::Question)]);
        check(&format!(r#"{{"{long}":1,"id":2,"method":"x"}}"#), &[("2", Sort::Question)]);
        let many = format!("[{}]", r#"{"id":1,"method":"x"},"#.repeat(2 * MESSAGES_MAX));
        assert_eq!(Glimpse::all(many.as_bytes()).len(), MESSAGES_MAX);
    }
}
