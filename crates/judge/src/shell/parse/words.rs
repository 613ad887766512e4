//! One word: quotes, escapes, and the commands that are substituted into it.

use super::{MAX_DEPTH, Reader};
use crate::shell::Role;
use crate::shell::word::{Word, ansi_quote, is_special};

impl Reader<'_, '_> {
    /// Reads one word; the cursor stays if none stands here.
    pub(super) fn word(&mut self) -> Word {
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
        } else if let Some(inside) = rest.strip_prefix('`') {
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
            let part = self.deeper(true, |reader| reader.list(&[]));
            self.substituted = part.last;
            self.parens -= 1;
            self.pending = pending;
            self.role = role;
            self.take(")");
        }
        word.text.push_str(&self.text[start..self.at]);
    }
}
