//! Groups, branches, loops and functions.

use super::{Part, Reader};
use crate::shell::Role;
use crate::shell::word::ends_word;

impl Reader<'_, '_> {
    pub(super) fn compound(&mut self, keyword: &str, read: impl FnOnce(&mut Self) -> Part) -> Part {
        self.at += keyword.len();
        let part = self.deeper(false, read);
        self.trailing_redirections(part);
        part
    }

    pub(super) fn group_in_parens(&mut self) -> Part {
        self.parens += 1;
        let part = self.deeper(true, |reader| reader.list(&[]));
        self.parens -= 1;
        self.take(")");
        self.trailing_redirections(part);
        part
    }

    /// `if … then … elif … else … fi`, after the `if`. Which branch ran is not known, so the last one answers.
    pub(super) fn branches(&mut self) -> Part {
        let start = self.commands.len();
        let condition = self.list(&["then", "fi"]);
        self.hide(start..self.commands.len());
        let mut whole = Part { hides: condition.hides || !condition.trivial, ..condition };
        loop {
            let keyword = self.keyword();
            if !matches!(keyword, "then" | "elif" | "else") {
                self.take("fi");
                return whole;
            }
            self.at += keyword.len();
            let start = self.commands.len();
            let part = self.list(&["then", "elif", "else", "fi"]);
            if keyword == "elif" {
                self.hide(start..self.commands.len());
            }
            whole = Part {
                last: part.last.or(whole.last),
                tail: part.tail.or(whole.tail),
                hides: whole.hides || part.hides,
                trivial: whole.trivial && part.trivial,
            };
        }
    }

    pub(super) fn loop_body(&mut self) -> Part {
        let start = self.commands.len();
        let body = self.list(&["done"]);
        self.hide(start..self.commands.len());
        self.take("done");
        Part { hides: body.hides || !body.trivial, ..body }
    }

    /// Passes `x in a b c; do`, collecting the words and the substitutions on the way.
    pub(super) fn skip_to_body(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                None => return words,
                Some(b'\n') => self.end_line(),
                Some(b'(') if self.rest().starts_with("((") => self.skip_arithmetic(),
                Some(byte) if ends_word(byte) => self.at += 1,
                Some(_) if self.keyword() == "do" => {
                    self.at += 2;
                    return words;
                }
                Some(_) => words.push(self.word().text),
            }
        }
    }

    /// `case x in a) … ;; esac`, after the `case`.
    pub(super) fn cases(&mut self) -> Part {
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
    pub(super) fn definition(&mut self, ends: &[&str]) -> Part {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        let role = std::mem::replace(&mut self.role, Role::Defined);
        let tail = self.deeper(false, |reader| reader.command(ends)).tail;
        self.role = role;
        Part { tail, ..Part::EMPTY }
    }

    pub(super) fn skip_arithmetic(&mut self) {
        self.at = self.rest().find("))").map_or(self.text.len(), |len| self.at + len + 2);
    }
}
