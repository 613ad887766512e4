//! From text to commands, in one pass. Recursion is bounded; past the bound, brackets are plain text.

mod compound;
mod simple;
mod words;

use super::word::is_special;
use super::{Command, Group, Join, Role, Script, traits, wrappers};

/// How deep brackets, substitutions and nested scripts are followed.
const MAX_DEPTH: u16 = 12;

/// How much text is read again on the way down through wrappers: each level copies what it wraps.
const MAX_COPIED: usize = 2 << 20;

/// How many commands are kept: a script of more is a data file, and its first commands say all there is to say.
const MAX_COMMANDS: usize = 4_096;

/// Reads a whole script.
pub(super) fn read(text: &str) -> Script {
    let mut commands = Vec::new();
    let mut reader = Reader::new(text, &mut commands, 0, Role::Plain);
    reader.outermost = true;
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
    /// Whether `text` is the whole script, so that a place in it is a place in what was sent.
    outermost: bool,
    commands: &'c mut Vec<Command>,
    depth: u16,
    group: Group,
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
        let group = Group { start: commands.len(), isolated: true };
        Reader {
            text,
            at: 0,
            outermost: false,
            commands,
            depth,
            group,
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
        let start = self.commands.len();
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
                    let part_start = self.commands.len();
                    let part = self.pipeline(ends);
                    if self.is_replaced(before, part, part_start..self.commands.len()) {
                        self.hide(start..part_start);
                    }
                    whole = self.joined(whole, before, part);
                    before = self.operator();
                    if before == Join::Background {
                        self.hide(part_start..self.commands.len());
                    }
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

    /// Tells whether the exit code of `part`, which is these commands, stands in place of that of what `join` joins it to. After a
    /// second way that worked nothing has failed.
    fn is_replaced(&self, join: Join, part: Part, commands: std::ops::Range<usize>) -> bool {
        let swallows = || self.commands[commands].iter().all(|command| self.swallows(command));
        match join {
            Join::And | Join::Pipe | Join::Wraps | Join::End | Join::Background => false,
            Join::Always => !self.errexit,
            Join::Or => !part.last.is_some_and(|last| ends_in_failure(&self.commands[last])) && swallows(),
        }
    }

    /// Notes that an exit code of 0 says nothing about these commands.
    fn hide(&mut self, range: std::ops::Range<usize>) {
        self.commands[range].iter_mut().for_each(|command| command.hidden = true);
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
        let start = self.commands.len();
        let mut whole = Part::EMPTY;
        loop {
            let part_start = self.commands.len();
            let part = self.command(ends);
            if !self.pipefail {
                self.hide(start..part_start);
            }
            let piped = whole.tail.is_some() && !whole.trivial && !self.pipefail;
            whole = Part {
                last: part.last.or(whole.last),
                tail: part.tail.or(whole.tail),
                hides: whole.hides || part.hides || piped,
                trivial: whole.trivial && part.trivial,
            };
            self.skip_blanks();
            let is_full = self.commands.len() >= MAX_COMMANDS;
            if is_full || self.rest().starts_with("||") || !(self.take("|&") || self.take("|")) {
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
    fn deeper<T>(&mut self, isolated: bool, read: impl FnOnce(&mut Self) -> T) -> T {
        let (errexit, pipefail) = (self.errexit, self.pipefail);
        let group = std::mem::replace(&mut self.group, Group { start: self.commands.len(), isolated });
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        self.group = group;
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
        let start = self.commands.len();
        let part = self.affirmed(ends);
        if negated {
            self.hide(start..self.commands.len());
        }
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
                let start = reader.commands.len();
                reader.list(&["do"]);
                reader.hide(start..reader.commands.len());
                reader.take("do");
                reader.loop_body()
            }),
            "for" | "select" => self.compound(keyword, |reader| {
                let mut words = reader.skip_to_body().into_iter();
                let start = reader.commands.len();
                let part = reader.loop_body();
                // Without `in`, it goes through what the script was given.
                if let (Some(name), Some(first)) = (words.next(), reader.commands.get_mut(start)) {
                    let words =
                        if words.next().as_deref() == Some("in") { words.collect() } else { Vec::new() };
                    first.loops.push((name, words));
                }
                part
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
}

/// `exit 1`, `return 2` and `false` keep the failure that they follow.
fn ends_in_failure(command: &Command) -> bool {
    match command.program.as_str() {
        "exit" | "return" => command.args().first().is_none_or(|code| code != "0"),
        "false" => true,
        _ => false,
    }
}
