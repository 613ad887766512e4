//! One simple command: its words, assignments and redirections, and what it wraps.

use std::ops::Range;

use super::{MAX_COPIED, MAX_DEPTH, Part, Pending, Reader};
use crate::shell::word::{assignment, ends_word};
use crate::shell::wrappers::{self, Inner};
use crate::shell::{Command, Flow, Join, Places, Redirection, Role, Stream, traits};

impl Reader<'_, '_> {
    pub(super) fn trailing_redirections(&mut self, part: Part) {
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
    pub(super) fn redirection(&mut self) -> Option<(Redirection, Option<(String, bool)>)> {
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
        } else if self.take("<>") {
            // Open for both: what is there stays, and may grow.
            Flow::Append
        } else {
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
    pub(super) fn simple(&mut self) -> Part {
        self.substituted = None;
        let (mut words, mut places) = (Vec::new(), Vec::new());
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
                    let as_written = self.outermost && self.text[start..self.at] == word.text;
                    places.push(as_written.then_some(start..self.at));
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
        self.push(words, places, assignments, redirections, substituted)
    }

    fn push(
        &mut self,
        words: Vec<String>,
        places: Vec<Option<Range<usize>>>,
        assignments: Vec<(String, String)>,
        redirections: Vec<(Redirection, Option<(String, bool)>)>,
        substituted: Option<usize>,
    ) -> Part {
        let program = words.first().map(|word| wrappers::program(word)).unwrap_or_default();
        let copied = usize::from(self.depth) * words.iter().map(String::len).sum::<usize>();
        let may_nest = self.depth < MAX_DEPTH && copied < MAX_COPIED;
        let inner = if may_nest { wrappers::inner(&program, &words) } else { Inner::Nothing };
        if let Inner::Each(bounds) = &inner {
            for (start, end) in bounds {
                let role = std::mem::replace(&mut self.role, Role::Inner);
                let (words, places) = (words[*start..*end].to_vec(), places[*start..*end].to_vec());
                self.deeper(true, |reader| reader.push(words, places, Vec::new(), Vec::new(), None));
                self.role = role;
            }
        }
        let (role, depth, group) = (self.role, self.depth, self.group);
        let at = self.commands.len();
        let (wrapped_words, wrapped_places) = match &inner {
            Inner::Words(start) => (words[*start..].to_vec(), places[*start..].to_vec()),
            Inner::Nothing | Inner::Script { .. } | Inner::Each(_) => (Vec::new(), Vec::new()),
        };
        self.commands.push(Command {
            program,
            words,
            places: Places(places),
            assignments,
            redirections: Vec::new(),
            then: Join::End,
            role,
            depth,
            group,
            loops: Vec::new(),
            hidden: role == Role::Inner,
        });
        for redirection in redirections {
            self.add_redirection(at, redirection);
        }
        self.note_options(at);
        let own = match inner {
            Inner::Words(_) => {
                let part = self.deeper(false, |reader| {
                    reader.push(wrapped_words, wrapped_places, Vec::new(), Vec::new(), None)
                });
                self.wrap(at, part)
            }
            Inner::Script { text, errexit, pipefail } => {
                // `eval` reads its script in the shell that runs it.
                let own_shell = self.commands[at].program == "eval";
                let mut nested = Reader::new(&text, self.commands, depth + 1, role);
                (nested.errexit, nested.pipefail) = (errexit, pipefail);
                nested.group.isolated = !own_shell;
                let part = nested.list(&[]);
                self.wrap(at, part)
            }
            Inner::Nothing | Inner::Each(_) => None,
        };
        own.unwrap_or_else(|| {
            let command = &self.commands[at];
            // `out=$(npm test)` ends as `npm test` does.
            let last = if command.words.is_empty() { substituted.or(Some(at)) } else { Some(at) };
            if let Some(seen) = last.filter(|last| *last != at) {
                self.commands[seen].hidden = false;
            }
            let command = &self.commands[at];
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
}
