//! From text to commands, in one pass. Recursion is bounded; past the bound, brackets are plain text.

use super::word::{Word, ansi_quote, assignment, ends_word, is_special};
use super::wrappers::{self, Inner};
use super::{Command, Flow, Join, Redirection, Role, Script, Stream, traits};

/// How deep brackets, substitutions and nested scripts are followed.
const MAX_DEPTH: u16 = 24;

/// How many commands are kept: a script of more is a data file, and its first commands say all there is to say.
const MAX_COMMANDS: usize = 4_096;

/// Reads a whole script.
pub(super) fn read(text: &str) -> Script {
    let mut commands = Vec::new();
    let mut reader = Reader::new(text, &mut commands, 0, Role::Plain);
    let part = reader.list(&[]);
    let (last, hides_failure) = (part.last, part.hides);
    if let Some(end) = part.tail.filter(|end| commands[*end].then == Join::Always) {
        commands[end].then = Join::End;
    }
    Script { commands, last, hides_failure }
}

/// What is known of a stretch of commands once it was read.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The command whose exit code is the stretch's.
    last: Option<usize>,
    /// The command that whatever follows is joined to.
    tail: Option<usize>,
    /// Whether an exit code of 0 says nothing about the work in it.
    hides: bool,
    /// Whether nothing in it could be the work.
    trivial: bool,
}

impl Part {
    const EMPTY: Part = Part { last: None, tail: None, hides: false, trivial: true };
}

/// A document whose text starts after the line it is announced on.
struct Pending {
    command: usize,
    redirection: usize,
    delimiter: String,
    tabs: bool,
}

struct Reader<'t, 'c> {
    text: &'t str,
    at: usize,
    commands: &'c mut Vec<Command>,
    depth: u16,
    role: Role,
    /// How many round brackets are open in this text.
    parens: u32,
    errexit: bool,
    pipefail: bool,
    pending: Vec<Pending>,
    /// The command whose exit code the last substitution had.
    substituted: Option<usize>,
}

impl<'t, 'c> Reader<'t, 'c> {
    fn new(text: &'t str, commands: &'c mut Vec<Command>, depth: u16, role: Role) -> Reader<'t, 'c> {
        Reader {
            text,
            at: 0,
            commands,
            depth,
            role,
            parens: 0,
            errexit: false,
            pipefail: false,
            pending: Vec::new(),
            substituted: None,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(token.as_bytes());
        if found {
            self.at += token.len();
        }
        found
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'\\') if self.rest().starts_with("\\\n") => self.at += 2,
                Some(b'\\') if self.rest().starts_with("\\\r\n") => self.at += 3,
                Some(b'#') => {
                    self.at = self.text[self.at..].find('\n').map_or(self.text.len(), |len| self.at + len)
                }
                _ => return,
            }
        }
    }

    /// Passes the end of a line, and with it the documents that were announced on it.
    fn end_line(&mut self) {
        self.at += 1;
        for pending in std::mem::take(&mut self.pending) {
            let text = self.document(&pending.delimiter, pending.tabs);
            let command = &self.commands[pending.command];
            if wrappers::is_shell(&command.program) && command.args().is_empty() && self.depth < MAX_DEPTH {
                Reader::new(&text, self.commands, self.depth + 1, Role::Inner).list(&[]);
            }
            self.commands[pending.command].redirections[pending.redirection].target = text;
        }
    }

    fn document(&mut self, delimiter: &str, tabs: bool) -> String {
        let start = self.at;
        while self.at < self.text.len() {
            let line_start = self.at;
            let line_end = self.rest().find('\n').map_or(self.text.len(), |len| self.at + len);
            self.at = (line_end + 1).min(self.text.len());
            let line = self.text[line_start..line_end].trim_end_matches('\r');
            let line = if tabs { line.trim_start_matches('\t') } else { line };
            if line == delimiter {
                return self.text[start..line_start].to_owned();
            }
        }
        self.text[start..].to_owned()
    }

    /// Reads the word at the cursor without moving it, if it is a bare word such as a keyword.
    fn keyword(&self) -> &'t str {
        // No keyword is longer, and a bound keeps long words from being read over and over.
        const LONGEST: usize = 8;
        let rest = self.rest();
        let end = rest.bytes().take(LONGEST + 1).position(is_special).unwrap_or(rest.len());
        match rest.as_bytes().get(end) {
            _ if end > LONGEST => "",
            Some(b'\'' | b'"' | b'$' | b'`' | b'\\') => "",
            Some(_) | None => &rest[..end],
        }
    }

    /// Reads commands until the text, the enclosing bracket, or one of the keywords `ends` ends them. The keyword is
    /// left for the caller.
    fn list(&mut self, ends: &[&str]) -> Part {
        let mut whole = Part::EMPTY;
        let mut before = Join::End;
        loop {
            self.skip_blanks();
            match self.peek() {
                None => return whole,
                Some(b'\n') => self.end_line(),
                Some(b')') if self.parens > 0 => return whole,
                Some(b';') if self.rest().starts_with(";;") && ends.contains(&";;") => return whole,
                Some(b';' | b')' | b'&' | b'|') => self.at += 1,
                Some(_) if ends.contains(&self.keyword()) => return whole,
                Some(_) if self.commands.len() >= MAX_COMMANDS => {
                    self.at = self.text.len();
                    return whole;
                }
                Some(_) => {
                    let part = self.pipeline(ends);
                    whole = self.joined(whole, before, part);
                    before = self.operator();
                    if let Some(tail) = part.tail {
                        self.commands[tail].then = before;
                    }
                    whole.hides |= before == Join::Background && !part.trivial;
                }
            }
        }
    }

    /// What the list so far and one more part amount to.
    fn joined(&self, whole: Part, join: Join, part: Part) -> Part {
        let unseen = match join {
            Join::And | Join::Pipe | Join::Wraps | Join::End => false,
            Join::Always => !self.errexit && !whole.trivial,
            Join::Background => !whole.trivial,
            Join::Or => !whole.trivial && part.last.is_some_and(|last| self.swallows(&self.commands[last])),
        };
        Part {
            last: part.last.or(whole.last),
            tail: part.tail.or(whole.tail),
            hides: whole.hides || part.hides || unseen,
            trivial: whole.trivial && part.trivial,
        }
    }

    /// Tells whether `command` after `||` turns any failure into a success.
    fn swallows(&self, command: &Command) -> bool {
        match command.program.as_str() {
            "exit" | "return" => command.args().first().is_some_and(|code| code == "0"),
            "false" => false,
            _ => traits::is_trivial(command) || traits::shows(command),
        }
    }

    /// Reads the operator after a pipeline.
    fn operator(&mut self) -> Join {
        self.skip_blanks();
        if self.take("&&") {
            Join::And
        } else if self.take("||") {
            Join::Or
        } else if self.peek() == Some(b'&') {
            self.at += 1;
            Join::Background
        } else {
            // `;` and new lines are passed by the list, which must see `;;` and documents whole.
            Join::Always
        }
    }

    fn pipeline(&mut self, ends: &[&str]) -> Part {
        let mut whole = Part::EMPTY;
        loop {
            let part = self.command(ends);
            let piped = whole.tail.is_some() && !whole.trivial && !self.pipefail;
            whole = Part {
                last: part.last.or(whole.last),
                tail: part.tail.or(whole.tail),
                hides: whole.hides || part.hides || piped,
                trivial: whole.trivial && part.trivial,
            };
            self.skip_blanks();
            if self.rest().starts_with("||") || !(self.take("|&") || self.take("|")) {
                return whole;
            }
            if let Some(tail) = whole.tail {
                self.commands[tail].then = Join::Pipe;
            }
            self.skip_blanks();
            while self.peek() == Some(b'\n') {
                self.end_line();
                self.skip_blanks();
            }
        }
    }

    /// Runs `read` one level deeper; a level too many is read as plain text by the caller.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let (errexit, pipefail) = (self.errexit, self.pipefail);
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        (self.errexit, self.pipefail) = (errexit, pipefail);
        value
    }

    /// Reads one command, simple or compound, and the negations before it.
    fn command(&mut self, ends: &[&str]) -> Part {
        self.skip_blanks();
        let mut negated = false;
        while self.keyword() == "!" {
            negated = true;
            self.at += 1;
            self.skip_blanks();
        }
        let part = self.affirmed(ends);
        Part { hides: part.hides || negated && !part.trivial, ..part }
    }

    fn affirmed(&mut self, ends: &[&str]) -> Part {
        let may_nest = self.depth < MAX_DEPTH;
        if self.peek() == Some(b'(') {
            if self.rest().starts_with("((") {
                self.skip_arithmetic();
                return Part::EMPTY;
            }
            self.at += 1;
            return if may_nest { self.group_in_parens() } else { Part::EMPTY };
        }
        let keyword = self.keyword();
        if !may_nest {
            return self.simple();
        }
        match keyword {
            "{" => self.compound(keyword, |reader| {
                let part = reader.list(&["}"]);
                reader.take("}");
                part
            }),
            "if" => self.compound(keyword, Self::branches),
            "while" | "until" => self.compound(keyword, |reader| {
                reader.list(&["do"]);
                reader.take("do");
                reader.loop_body()
            }),
            "for" | "select" => self.compound(keyword, |reader| {
                reader.skip_to_body();
                reader.loop_body()
            }),
            "case" => self.compound(keyword, Self::cases),
            "function" => {
                self.at += keyword.len();
                self.skip_blanks();
                self.at += self.keyword().len();
                self.take("()");
                self.definition(ends)
            }
            _ => self.simple(),
        }
    }

    fn compound(&mut self, keyword: &str, read: impl FnOnce(&mut Self) -> Part) -> Part {
        self.at += keyword.len();
        let part = self.deeper(read);
        self.trailing_redirections(part);
        part
    }

    fn group_in_parens(&mut self) -> Part {
        self.parens += 1;
        let part = self.deeper(|reader| reader.list(&[]));
        self.parens -= 1;
        self.take(")");
        self.trailing_redirections(part);
        part
    }

    /// `if … then … elif … else … fi`, after the `if`. Which branch ran is not known, so the last one answers.
    fn branches(&mut self) -> Part {
        let condition = self.list(&["then", "fi"]);
        let mut whole = Part { hides: condition.hides || !condition.trivial, ..condition };
        loop {
            let keyword = self.keyword();
            if !matches!(keyword, "then" | "elif" | "else") {
                self.take("fi");
                return whole;
            }
            self.at += keyword.len();
            let part = self.list(&["then", "elif", "else", "fi"]);
            whole = Part {
                last: part.last.or(whole.last),
                tail: part.tail.or(whole.tail),
                hides: whole.hides || part.hides,
                trivial: whole.trivial && part.trivial,
            };
        }
    }

    fn loop_body(&mut self) -> Part {
        let body = self.list(&["done"]);
        self.take("done");
        Part { hides: body.hides || !body.trivial, ..body }
    }

    /// Passes `x in a b c; do`, collecting the substitutions on the way.
    fn skip_to_body(&mut self) {
        loop {
            self.skip_blanks();
            match self.peek() {
                None => return,
                Some(b'\n') => self.end_line(),
                Some(b'(') if self.rest().starts_with("((") => self.skip_arithmetic(),
                Some(byte) if ends_word(byte) => self.at += 1,
                Some(_) if self.keyword() == "do" => {
                    self.at += 2;
                    return;
                }
                Some(_) => {
                    self.word();
                }
            }
        }
    }

    /// `case x in a) … ;; esac`, after the `case`.
    fn cases(&mut self) -> Part {
        self.skip_blanks();
        self.word();
        let mut whole = Part::EMPTY;
        loop {
            self.skip_blanks();
            match self.peek() {
                None => return whole,
                Some(b'\n') => self.end_line(),
                Some(b')') => {
                    self.at += 1;
                    let part = self.list(&[";;", "esac"]);
                    whole = Part {
                        last: part.last.or(whole.last),
                        tail: part.tail.or(whole.tail),
                        hides: whole.hides || part.hides,
                        trivial: whole.trivial && part.trivial,
                    };
                }
                Some(byte) if ends_word(byte) => self.at += 1,
                Some(_) if self.keyword() == "esac" => {
                    self.at += 4;
                    return whole;
                }
                Some(_) => {
                    self.word();
                }
            }
        }
    }

    /// The body of a function: its commands are seen, but nothing ran yet.
    fn definition(&mut self, ends: &[&str]) -> Part {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        let role = std::mem::replace(&mut self.role, Role::Defined);
        let tail = self.deeper(|reader| reader.command(ends)).tail;
        self.role = role;
        Part { tail, ..Part::EMPTY }
    }

    fn skip_arithmetic(&mut self) {
        self.at = self.rest().find("))").map_or(self.text.len(), |len| self.at + len + 2);
    }

    fn trailing_redirections(&mut self, part: Part) {
        loop {
            self.skip_blanks();
            let start = self.at;
            let Some(redirection) = self.redirection() else {
                self.at = start;
                return;
            };
            if let Some(tail) = part.tail {
                self.add_redirection(tail, redirection);
            }
        }
    }

    fn add_redirection(
        &mut self,
        command: usize,
        (redirection, document): (Redirection, Option<(String, bool)>),
    ) {
        if let Some((delimiter, tabs)) = document {
            let index = self.commands[command].redirections.len();
            self.pending.push(Pending { command, redirection: index, delimiter, tabs });
        }
        self.commands[command].redirections.push(redirection);
    }

    /// Reads one redirection, if one stands here; the second value announces a document.
    fn redirection(&mut self) -> Option<(Redirection, Option<(String, bool)>)> {
        let rest = self.rest();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (mut stream, skip) = match (&rest[..digits], rest.as_bytes().get(digits)) {
            ("", Some(b'&')) if rest.as_bytes().get(1) == Some(&b'>') => (Stream::Both, 1),
            ("", Some(b'>')) | ("1", Some(b'>')) => (Stream::Output, digits),
            ("", Some(b'<')) | ("0", Some(b'<')) => (Stream::Input, digits),
            ("2", Some(b'>')) => (Stream::Error, digits),
            (_, Some(b'<' | b'>')) => (Stream::Other, digits),
            _ => return None,
        };
        self.at += skip;
        if self.rest().starts_with("<(") || self.rest().starts_with(">(") {
            self.at -= skip;
            return None;
        }
        let flow = if self.take("<<<") {
            Flow::Document
        } else if self.take("<<") {
            let tabs = self.take("-");
            self.skip_blanks();
            let delimiter = self.word().text;
            let redirection =
                Redirection { stream: Stream::Input, flow: Flow::Document, target: String::new() };
            return Some((redirection, Some((delimiter, tabs))));
        } else if self.take(">>") {
            Flow::Append
        } else if self.take(">&") || self.take("<&") {
            Flow::Duplicate
        } else if self.take(">|") || self.take(">") {
            Flow::Write
        } else {
            self.take("<>");
            self.take("<");
            Flow::Read
        };
        self.skip_blanks();
        let target = self.word().text;
        // `>&file` is the old way to write `&>file`.
        let is_descriptor = target == "-" || target.bytes().all(|b| b.is_ascii_digit());
        let flow = match flow {
            Flow::Duplicate if !is_descriptor => {
                stream = Stream::Both;
                Flow::Write
            }
            Flow::Duplicate | Flow::Write | Flow::Append | Flow::Read | Flow::Document => flow,
        };
        Some((Redirection { stream, flow, target }, None))
    }

    /// Reads a simple command and what it wraps.
    fn simple(&mut self) -> Part {
        self.substituted = None;
        let mut words: Vec<String> = Vec::new();
        let mut assignments = Vec::new();
        let mut redirections = Vec::new();
        let mut in_test = false;
        loop {
            self.skip_blanks();
            let start = self.at;
            if !in_test && let Some(found) = self.redirection() {
                redirections.push(found);
                continue;
            }
            self.at = start;
            match self.peek() {
                None | Some(b'\n') => break,
                Some(b'<' | b'>') if self.rest().as_bytes().get(1) == Some(&b'(') => {}
                Some(b'(') if words.len() == 1 && !in_test && self.depth < MAX_DEPTH && self.take("()") => {
                    return self.definition(&[]);
                }
                Some(byte) if in_test && ends_word(byte) => {
                    self.at += 1;
                    continue;
                }
                Some(byte) if ends_word(byte) => break,
                Some(_) => {}
            }
            let word = self.word();
            if self.at == start {
                // Nothing here can be read as a word: pass the byte, so that reading always goes on.
                self.at += 1;
                continue;
            }
            match assignment(&word.text) {
                Some((name, value)) if words.is_empty() => {
                    assignments.push((name.to_owned(), value.to_owned()))
                }
                Some(_) | None => {
                    in_test |= words.is_empty() && !word.quoted && word.text == "[[";
                    in_test &= word.text != "]]";
                    words.push(word.text);
                }
            }
        }
        if words.is_empty() && assignments.is_empty() && redirections.is_empty() {
            // A stray bracket or the like; the caller sees that nothing was read and passes it.
            if self.peek().is_some_and(|byte| matches!(byte, b'(' | b'<' | b'>')) {
                self.at += 1;
            }
            return Part::EMPTY;
        }
        let substituted = self.substituted.take();
        self.push(words, assignments, redirections, substituted)
    }

    fn push(
        &mut self,
        words: Vec<String>,
        assignments: Vec<(String, String)>,
        redirections: Vec<(Redirection, Option<(String, bool)>)>,
        substituted: Option<usize>,
    ) -> Part {
        let program = words.first().map(|word| wrappers::program(word)).unwrap_or_default();
        let inner = if self.depth < MAX_DEPTH { wrappers::inner(&program, &words) } else { Inner::Nothing };
        if let Inner::Each(bounds) = &inner {
            for (start, end) in bounds {
                let role = std::mem::replace(&mut self.role, Role::Inner);
                self.deeper(|reader| reader.push(words[*start..*end].to_vec(), Vec::new(), Vec::new(), None));
                self.role = role;
            }
        }
        let (role, depth) = (self.role, self.depth);
        let at = self.commands.len();
        let wrapped_words = match &inner {
            Inner::Words(start) => words[*start..].to_vec(),
            Inner::Nothing | Inner::Script { .. } | Inner::Each(_) => Vec::new(),
        };
        self.commands.push(Command {
            program,
            words,
            assignments,
            redirections: Vec::new(),
            then: Join::End,
            role,
            depth,
        });
        for redirection in redirections {
            self.add_redirection(at, redirection);
        }
        self.note_options(at);
        let own = match inner {
            Inner::Words(_) => {
                let part = self.deeper(|reader| reader.push(wrapped_words, Vec::new(), Vec::new(), None));
                self.wrap(at, part)
            }
            Inner::Script { text, errexit, pipefail } => {
                let mut nested = Reader::new(&text, self.commands, depth + 1, role);
                (nested.errexit, nested.pipefail) = (errexit, pipefail);
                let part = nested.list(&[]);
                self.wrap(at, part)
            }
            Inner::Nothing | Inner::Each(_) => None,
        };
        own.unwrap_or_else(|| {
            let command = &self.commands[at];
            // `out=$(npm test)` ends as `npm test` does.
            let last = if command.words.is_empty() { substituted.or(Some(at)) } else { Some(at) };
            let trivial = last == Some(at) && traits::is_trivial(command);
            Part { last, tail: Some(at), hides: false, trivial }
        })
    }

    /// Marks the command at `at` as the wrapper of `part`.
    fn wrap(&mut self, at: usize, part: Part) -> Option<Part> {
        part.tail?;
        let command = &mut self.commands[at];
        command.then = Join::Wraps;
        command.role = if command.role == Role::Plain { Role::Wrapper } else { command.role };
        Some(part)
    }

    /// Follows `set -e` and `set -o pipefail`.
    fn note_options(&mut self, at: usize) {
        let command = &self.commands[at];
        if command.program != "set" {
            return;
        }
        let mut args = command.args().iter();
        while let Some(word) = args.next() {
            let Some(flags) = word.strip_prefix('-') else { continue };
            self.errexit |= flags.contains('e');
            if flags.ends_with('o') {
                match args.next().map(String::as_str) {
                    Some("pipefail") => self.pipefail = true,
                    Some("errexit") => self.errexit = true,
                    Some(_) | None => {}
                }
            }
        }
    }

    /// Reads one word; the cursor stays if none stands here.
    fn word(&mut self) -> Word {
        let mut word = Word::default();
        loop {
            let rest = self.rest();
            let run = rest.bytes().position(is_special).unwrap_or(rest.len());
            word.text.push_str(&rest[..run]);
            self.at += run;
            match self.peek() {
                Some(b'\'') => {
                    word.quoted = true;
                    let rest = &rest[run + 1..];
                    let end = rest.find('\'').unwrap_or(rest.len());
                    word.text.push_str(&rest[..end]);
                    self.at = (self.at + end + 2).min(self.text.len());
                }
                Some(b'"') => {
                    word.quoted = true;
                    self.at += 1;
                    self.double_quoted(&mut word);
                }
                Some(b'\\') => self.escaped(&mut word),
                Some(b'$') if self.rest().starts_with("$'") => {
                    word.quoted = true;
                    let (text, len) = ansi_quote(&self.text[self.at + 2..]);
                    word.text.push_str(&text);
                    self.at += 2 + len;
                }
                Some(b'$' | b'`') => self.substitution(&mut word),
                Some(b'<' | b'>') if word.text.is_empty() && self.rest().as_bytes().get(1) == Some(&b'(') => {
                    self.bracketed(&mut word, 2);
                }
                Some(b'(') if word.text.ends_with('=') && !word.quoted => {
                    // An array: its elements are part of the word.
                    let end = self.rest().find(')').map_or(self.text.len(), |len| self.at + len + 1);
                    word.text.push_str(&self.text[self.at..end]);
                    self.at = end;
                }
                _ => return word,
            }
        }
    }

    fn escaped(&mut self, word: &mut Word) {
        self.at += 1;
        if self.take("\n") || self.take("\r\n") {
            return;
        }
        word.quoted = true;
        if let Some(next) = self.rest().chars().next() {
            word.text.push(next);
            self.at += next.len_utf8();
        }
    }

    /// Reads up to the closing quote, which is passed.
    fn double_quoted(&mut self, word: &mut Word) {
        loop {
            let rest = self.rest();
            let special = |b| matches!(b, b'"' | b'\\' | b'$' | b'`');
            let run = rest.bytes().position(special).unwrap_or(rest.len());
            word.text.push_str(&rest[..run]);
            self.at += run;
            match self.peek() {
                None => return,
                Some(b'"') => {
                    self.at += 1;
                    return;
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'\n') => self.at += 1,
                        Some(byte @ (b'"' | b'\\' | b'$' | b'`')) => {
                            word.text.push(char::from(byte));
                            self.at += 1;
                        }
                        Some(_) | None => word.text.push('\\'),
                    }
                }
                Some(_) => self.substitution(word),
            }
        }
    }

    /// `$(…)`, `$((…))`, `${…}` and backticks: the text goes into the word, the commands inside are read.
    fn substitution(&mut self, word: &mut Word) {
        let rest = self.rest();
        if rest.starts_with("$((") {
            let start = self.at;
            self.skip_arithmetic();
            word.text.push_str(&self.text[start..self.at]);
        } else if rest.starts_with("$(") && self.depth < MAX_DEPTH {
            self.bracketed(word, 2);
        } else if rest.starts_with("${") {
            let end = rest.find('}').map_or(rest.len(), |len| len + 1);
            word.text.push_str(&rest[..end]);
            self.at += end;
        } else if rest.starts_with('`') {
            let inside = &rest[1..];
            let end = inside.find('`').unwrap_or(inside.len());
            if self.depth < MAX_DEPTH {
                let mut nested = Reader::new(&inside[..end], self.commands, self.depth + 1, Role::Inner);
                self.substituted = nested.list(&[]).last;
            }
            word.text.push_str(&rest[..(end + 2).min(rest.len())]);
            self.at = (self.at + end + 2).min(self.text.len());
        } else {
            word.text.push_str(&rest[..1]);
            self.at += 1;
        }
    }

    /// Reads the commands inside a bracket that opens after `lead` bytes; its text goes into the word.
    fn bracketed(&mut self, word: &mut Word, lead: usize) {
        let start = self.at;
        self.at += lead;
        if self.depth < MAX_DEPTH {
            let role = std::mem::replace(&mut self.role, Role::Inner);
            let pending = std::mem::take(&mut self.pending);
            self.parens += 1;
            let part = self.deeper(|reader| reader.list(&[]));
            self.substituted = part.last;
            self.parens -= 1;
            self.pending = pending;
            self.role = role;
            self.take(")");
        }
        word.text.push_str(&self.text[start..self.at]);
    }
}
