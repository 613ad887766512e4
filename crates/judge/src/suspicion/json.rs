//! Tells whether a text is JSON while it streams by, in flat memory: it keeps which brackets are open, and nothing of what is
//! in them. It never says what the text means.

/// More open brackets than this are no answer of any tool.
const DEEPEST: usize = 100_000;

/// What a text turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonEnd {
    /// There was nothing but white space.
    Nothing,
    /// One document, or several with line breaks in between.
    Whole,
    /// It was JSON as far as it went, and it ended too early.
    Cut,
    /// It is no JSON.
    Broken {
        /// The byte that does not belong there, counted from 0.
        at: u64,
        /// What was expected instead.
        expected: Expected,
    },
}

/// What would have been JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// A value.
    Value,
    /// The name of a field, in double quotes.
    Key,
    /// A colon after such a name.
    Colon,
    /// A comma, or the end of the list or object.
    CommaOrEnd,
    /// The rest of `true`, `false` or `null`.
    Word,
    /// A digit.
    Digit,
    /// An escape that JSON knows.
    Escape,
    /// A sign that may stand in a string; a line break may not.
    StringSign,
    /// Nothing, or another document on a line of its own.
    End,
    /// Fewer brackets.
    LessDeep,
}

/// Where in a document the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between documents. The next one needs a line of its own.
    Between {
        same_line: bool,
    },
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    Colon,
    /// Behind a value inside of brackets.
    After,
    Text {
        is_key: bool,
    },
    Escape {
        is_key: bool,
    },
    Hex {
        is_key: bool,
        left: u8,
    },
    Word {
        rest: &'static [u8],
    },
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    Power,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bracket {
    List,
    Object,
}

/// A text that may be JSON, as far as it has been read.
#[derive(Debug, Clone)]
pub struct JsonText {
    state: State,
    open: Vec<Bracket>,
    read: u64,
    documents: u64,
    broken: Option<(u64, Expected)>,
}

impl Default for JsonText {
    fn default() -> JsonText {
        JsonText {
            state: State::Between { same_line: false },
            open: Vec::new(),
            read: 0,
            documents: 0,
            broken: None,
        }
    }
}

impl JsonText {
    /// Has it turned out to be no JSON?
    pub fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// How many bytes have been read.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Reads the next piece.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() && self.broken.is_none() {
            if let State::Text { .. } = self.state {
                // Most of a document is text: what ends it is looked for, all else is passed over.
                let plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..0x20);
                at += bytes[at..].iter().take_while(|byte| plain(byte)).count();
            }
            let Some(byte) = bytes.get(at) else { break };
            if let Err(expected) = self.step(*byte, self.read + at as u64) {
                self.broken = Some((self.read + at as u64, expected));
            }
            at += 1;
        }
        self.read += bytes.len() as u64;
    }

    /// What it is if nothing follows.
    pub fn end(&self) -> JsonEnd {
        if let Some((at, expected)) = self.broken {
            return JsonEnd::Broken { at, expected };
        }
        match self.state {
            State::Between { .. } if self.documents == 0 => JsonEnd::Nothing,
            State::Between { .. } => JsonEnd::Whole,
            // A number has no end of its own.
            State::Zero | State::Whole | State::Fraction | State::Power if self.open.is_empty() => {
                JsonEnd::Whole
            }
            State::Value
            | State::ValueOrEnd
            | State::Key
            | State::KeyOrEnd
            | State::Colon
            | State::After
            | State::Text { .. }
            | State::Escape { .. }
            | State::Hex { .. }
            | State::Word { .. }
            | State::Minus
            | State::Zero
            | State::Whole
            | State::Point
            | State::Fraction
            | State::Exponent
            | State::ExponentSign
            | State::Power => JsonEnd::Cut,
        }
    }

    fn step(&mut self, byte: u8, at: u64) -> Result<(), Expected> {
        let is_space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        self.state = match self.state {
            State::Between { same_line } if is_space => {
                State::Between { same_line: same_line && byte != b'\n' }
            }
            // Some programs begin a text with a mark that says how it is written.
            State::Between { .. } if at < 3 && [0xef, 0xbb, 0xbf][at as usize] == byte => self.state,
            State::Between { same_line: true } => return Err(Expected::End),
            State::Value | State::ValueOrEnd | State::Key | State::KeyOrEnd | State::Colon | State::After
                if is_space =>
            {
                self.state
            }
            State::Between { same_line: false } | State::Value => self.value(byte)?,
            State::ValueOrEnd if byte == b']' => self.close(Bracket::List)?,
            State::ValueOrEnd => self.value(byte)?,
            State::KeyOrEnd if byte == b'}' => self.close(Bracket::Object)?,
            State::Key | State::KeyOrEnd if byte == b'"' => State::Text { is_key: true },
            State::Key | State::KeyOrEnd => return Err(Expected::Key),
            State::Colon if byte == b':' => State::Value,
            State::Colon => return Err(Expected::Colon),
            State::After => self.after(byte)?,
            State::Text { is_key } => match byte {
                b'"' if is_key => State::Colon,
                b'"' => self.ended(),
                b'\\' => State::Escape { is_key },
                0..0x20 => return Err(Expected::StringSign),
                _ => State::Text { is_key },
            },
            State::Escape { is_key } => match byte {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => State::Text { is_key },
                b'u' => State::Hex { is_key, left: 4 },
                _ => return Err(Expected::Escape),
            },
            State::Hex { is_key, left } if byte.is_ascii_hexdigit() => match left {
                1 => State::Text { is_key },
                more => State::Hex { is_key, left: more - 1 },
            },
            State::Hex { .. } => return Err(Expected::Escape),
            State::Word { rest } => match rest.split_first() {
                Some((next, [])) if *next == byte => self.ended(),
                Some((next, rest)) if *next == byte => State::Word { rest },
                Some(_) | None => return Err(Expected::Word),
            },
            State::Minus => match byte {
                b'0' => State::Zero,
                b'1'..=b'9' => State::Whole,
                _ => return Err(Expected::Digit),
            },
            State::Point if byte.is_ascii_digit() => State::Fraction,
            State::Exponent if matches!(byte, b'+' | b'-') => State::ExponentSign,
            State::Exponent | State::ExponentSign if byte.is_ascii_digit() => State::Power,
            State::Point | State::Exponent | State::ExponentSign => return Err(Expected::Digit),
            State::Whole | State::Fraction | State::Power if byte.is_ascii_digit() => self.state,
            State::Zero | State::Whole if byte == b'.' => State::Point,
            State::Zero | State::Whole | State::Fraction if matches!(byte, b'e' | b'E') => State::Exponent,
            State::Zero | State::Whole | State::Fraction | State::Power => {
                // What ends a number belongs to what is around it.
                self.state = self.ended();
                return self.step(byte, at);
            }
        };
        Ok(())
    }

    fn value(&mut self, byte: u8) -> Result<State, Expected> {
        Ok(match byte {
            b'{' => self.enter(Bracket::Object, State::KeyOrEnd)?,
            b'[' => self.enter(Bracket::List, State::ValueOrEnd)?,
            b'"' => State::Text { is_key: false },
            b't' => State::Word { rest: b"rue" },
            b'f' => State::Word { rest: b"alse" },
            b'n' => State::Word { rest: b"ull" },
            b'-' => State::Minus,
            b'0' => State::Zero,
            b'1'..=b'9' => State::Whole,
            _ => return Err(Expected::Value),
        })
    }

    fn enter(&mut self, bracket: Bracket, then: State) -> Result<State, Expected> {
        if self.open.len() >= DEEPEST {
            return Err(Expected::LessDeep);
        }
        self.open.push(bracket);
        Ok(then)
    }

    fn after(&mut self, byte: u8) -> Result<State, Expected> {
        match (byte, self.open.last()) {
            (b',', Some(Bracket::List)) => Ok(State::Value),
            (b',', Some(Bracket::Object)) => Ok(State::Key),
            (b']', _) => self.close(Bracket::List),
            (b'}', _) => self.close(Bracket::Object),
            (_, _) => Err(Expected::CommaOrEnd),
        }
    }

    fn close(&mut self, bracket: Bracket) -> Result<State, Expected> {
        match self.open.pop() {
            Some(open) if open == bracket => Ok(self.ended()),
            Some(_) | None => Err(Expected::CommaOrEnd),
        }
    }

    /// A value has ended.
    fn ended(&mut self) -> State {
        match self.open.is_empty() {
            true => {
                self.documents += 1;
                State::Between { same_line: true }
            }
            false => State::After,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text whole and in pieces of every length, which must not matter.
    fn ends(text: &[u8]) -> JsonEnd {
        let read = |step: usize| {
            let mut json = JsonText::default();
            text.chunks(step).for_each(|piece| json.feed(piece));
            json.end()
        };
        let whole = read(text.len().max(1));
        (1..text.len().min(9)).for_each(|step| assert_eq!(read(step), whole, "{text:?} in {step}s"));
        whole
    }

    #[test]
    fn a_text_is_json_exactly_where_it_is_for_others() {
        let documents = [
            "{}",
            "[]",
            "0",
            "-0",
            "12",
            "-1.5e+3",
            "1E9",
            "\"\"",
            "\"a\\u00e9\\n\"",
            "true",
            "false",
            "null",
            " [1, 2 ,3 ] ",
            "{\"a\":{\"b\":[null,{}]}}",
            "[[[]]]",
            "\"é\"",
            "1.0",
            "[\"a\\\\\"]",
        ];
        let wrong = [
            "{a}",
            "[1,]",
            "{\"a\"}",
            "{\"a\":1,}",
            "01",
            "-",
            "1.",
            "1.e",
            "+1",
            "tru",
            "nulll",
            "[1}",
            "{]",
            "\"a\nb\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "[1 2]",
            "{} {}",
            "{},",
            "<html>",
            "[INFO] go",
            "[1/3] go",
            "[12:00:01] go",
            "{\"a\" 1}",
            "'a'",
            "[2026-01-01]",
            "",
        ];
        for text in documents.into_iter().chain(wrong) {
            let is_json = serde_json::from_str::<serde_json::Value>(text).is_ok();
            assert_eq!(ends(text.as_bytes()) == JsonEnd::Whole, is_json, "{text}");
        }
    }

    #[test]
    fn what_ends_too_early_is_told_from_what_is_wrong() {
        let check = |text: &str, expected: JsonEnd| assert_eq!(ends(text.as_bytes()), expected, "{text}");
        for text in
            ["{", "[1,", "[1", "{\"a", "{\"a\":", "\"a\\", "\"\\u12", "tr", "-", "1e", "[{}", "{\"a\":1"]
        {
            check(text, JsonEnd::Cut);
        }
        check(" \n", JsonEnd::Nothing);
        check("<html>", JsonEnd::Broken { at: 0, expected: Expected::Value });
        check("{\"a\":1,}", JsonEnd::Broken { at: 7, expected: Expected::Key });
        check("[1 2]", JsonEnd::Broken { at: 3, expected: Expected::CommaOrEnd });
        check("{} x", JsonEnd::Broken { at: 3, expected: Expected::End });
    }

    #[test]
    fn several_documents_need_a_line_each() {
        assert_eq!(ends(b"{\"a\":1}\n{\"a\":2}\r\n3\n"), JsonEnd::Whole);
        assert_eq!(ends(b"{}{}"), JsonEnd::Broken { at: 2, expected: Expected::End });
        assert_eq!(ends(b"{}\n{"), JsonEnd::Cut);
        assert_eq!(ends(b"\xef\xbb\xbf{}"), JsonEnd::Whole);
    }

    #[test]
    fn depth_has_an_end() {
        let text = vec![b'['; DEEPEST + 1];
        let mut json = JsonText::default();
        json.feed(&text);
        assert_eq!(json.end(), JsonEnd::Broken { at: DEEPEST as u64, expected: Expected::LessDeep });
    }

    proptest::proptest! {
        #[test]
        fn it_agrees_with_the_reader_that_keeps_everything(text in "[\\[\\]{}\",:0-9eE.\\-\\\\tnul a]{0,24}") {
            let is_json = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            proptest::prop_assert_eq!(ends(text.as_bytes()) == JsonEnd::Whole, is_json, "{}", text);
        }
    }
}
