//! Puts a value at the end of a list or an object, and takes one out again, so that everything around it stays as it was
//! and the second undoes the first. Pure: text in, text out.

use std::ops::Range;

use serde_json::Value;

use super::document::{Document, Habits};

/// A list or an object in a text: where it stands with its brackets, and where each thing in it does.
#[derive(Debug, Clone)]
pub(super) struct List {
    pub(super) range: Range<usize>,
    pub(super) items: Vec<Range<usize>>,
}

/// Something to put in.
#[derive(Debug)]
pub(super) enum Item<'a> {
    Element(&'a Value),
    Field(&'a str, &'a Value),
}

/// The text with `new` at the end of the list, in the hand of whoever wrote the rest.
pub(super) fn append(document: &Document<'_>, list: &List, new: &[Item<'_>]) -> String {
    let text = document.text();
    let Habits { newline, unit, is_spaced, is_one_line } = document.habits();
    let inside = list.range.start + 1..list.range.end - 1;
    let first = list.items.first().map_or(inside.end, |first| first.start);
    let is_inline = match list.items.is_empty() {
        true => *is_one_line && !text[inside.clone()].contains("//"),
        false => !text[inside.start..first].contains('\n'),
    };
    let outer = document.indent_of_line(list.range.start);
    let indent = match list.items.last() {
        Some(last) => document.indent_before(last.start).or(document.indent_before(first)),
        None => None,
    };
    let indent = indent.map_or_else(|| format!("{outer}{unit}"), str::to_owned);
    let write = Hand { newline, unit, spaced: *is_spaced, is_inline };
    let written: Vec<String> = new.iter().map(|item| write.item(item, &indent)).collect();
    let between = match (is_inline, is_spaced) {
        (true, true) => " ".to_owned(),
        (true, false) => String::new(),
        (false, _) => format!("{newline}{indent}"),
    };
    let mut out = String::with_capacity(text.len() + 1024);
    match list.items.last() {
        // Whoever ends a list with a comma gets one behind what is new, too.
        Some(last) if comma_in(&text[last.end..inside.end]).is_some() => {
            let at = last.end + comma_in(&text[last.end..inside.end]).unwrap_or_default() + 1;
            let at = at + same_line(&text[at..inside.end], is_inline);
            out.push_str(&text[..at]);
            out.push_str(&between);
            out.push_str(&written.join(&format!(",{between}")));
            out.push(',');
            out.push_str(&text[at..]);
        }
        Some(last) => {
            // A comment behind the last value stays behind it, so the comma goes before it and the new value behind it.
            let at = last.end + same_line(&text[last.end..inside.end], is_inline);
            out.push_str(&text[..last.end]);
            out.push(',');
            out.push_str(&text[last.end..at]);
            out.push_str(&between);
            out.push_str(&written.join(&format!(",{between}")));
            out.push_str(&text[at..]);
        }
        None => {
            let at = inside.start + text[inside.clone()].trim_end().len();
            out.push_str(&text[..at]);
            if !is_inline {
                out.push_str(&between);
            }
            out.push_str(&written.join(&format!(",{between}")));
            if !is_inline && !text[at..inside.end].contains('\n') {
                out.push_str(newline);
                out.push_str(outer);
            }
            out.push_str(&text[at..]);
        }
    }
    out
}

/// The text without one thing of the list and without the comma that belonged to it. Comments stay.
pub(super) fn remove(text: &str, list: &List, index: usize) -> String {
    let item = &list.items[index];
    let cut = |one: Range<usize>, other: Option<Range<usize>>| {
        let other = other.unwrap_or(text.len()..text.len());
        [&text[..one.start], &text[one.end..other.start], &text[other.end..]].concat()
    };
    if let Some(before) = index.checked_sub(1).map(|index| &list.items[index]) {
        let gap = &text[before.end..item.start];
        let comma = before.end + comma_in(gap).unwrap_or(0);
        let white = before.end + gap.trim_end().len();
        // The comma behind the last value, where its owner ends a list so, is the one that came with it.
        let is_last = index + 1 == list.items.len();
        let own = comma_in(&text[item.end..list.range.end - 1]).filter(|_| is_last).map(|at| item.end + at);
        return match (comma + 1 >= white, own) {
            (true, _) => cut(before.end..item.end, None),
            (false, Some(own)) => cut(white..item.end, Some(own..own + 1)),
            (false, None) => cut(comma..comma + 1, Some(white..item.end)),
        };
    }
    if let Some(after) = list.items.get(1) {
        let gap = &text[item.end..after.start];
        let comma = item.end + comma_in(gap).unwrap_or(0);
        let is_bare = gap.trim_ascii() == ",";
        return cut(item.start..if is_bare { after.start } else { comma + 1 }, None);
    }
    let inside = list.range.start + 1..list.range.end - 1;
    let is_bare = |range: Range<usize>| text[range].trim_ascii().is_empty();
    match is_bare(inside.start..item.start) && is_bare(item.end..inside.end) {
        true => cut(inside, None),
        false => match comma_in(&text[item.end..inside.end]) {
            Some(comma) => cut(item.clone(), Some(item.end + comma..item.end + comma + 1)),
            None => cut(item.clone(), None),
        },
    }
}

/// A value in the hand of whoever wrote the rest, for a place that is there already.
pub(super) fn in_hand(document: &Document<'_>, at: usize, value: &Value, is_inline: bool) -> String {
    let Habits { newline, unit, is_spaced, .. } = document.habits();
    let write = Hand { newline, unit, spaced: *is_spaced, is_inline };
    write.value(value, document.indent_of_line(at))
}

/// The text with these words at the front of a list of words, separated as its own are.
pub(super) fn lead(document: &Document<'_>, list: &List, words: &[String]) -> String {
    let text = document.text();
    let words: Vec<String> = words.iter().map(|word| Value::from(word.as_str()).to_string()).collect();
    let inline = if document.habits().is_spaced { ", " } else { "," };
    let Some(first) = list.items.first() else {
        let at = list.range.start + 1;
        return [&text[..at], &words.join(inline), &text[at..]].concat();
    };
    let between = match document.indent_before(first.start) {
        Some(indent) => format!(",{}{indent}", document.habits().newline),
        None => inline.to_owned(),
    };
    [&text[..first.start], &words.join(&between), &between, &text[first.start..]].concat()
}

/// The text without so many words at the front of a list: the reverse of [`lead`].
pub(super) fn unlead(text: &str, list: &List, count: usize) -> String {
    let Some(first) = list.items.first().filter(|_| count > 0) else { return text.to_owned() };
    let end = match list.items.get(count) {
        Some(next) => next.start,
        None => {
            let last = list.items.last().map_or(first.end, |last| last.end);
            last + comma_in(&text[last..list.range.end - 1]).map_or(0, |comma| comma + 1)
        }
    };
    [&text[..first.start], &text[end..]].concat()
}

/// How far comments go on behind a value on its line.
fn same_line(rest: &str, is_inline: bool) -> usize {
    let mut end = 0;
    let mut at = 0;
    loop {
        at += rest[at..].len() - rest[at..].trim_start_matches([' ', '\t', '\r']).len();
        if let Some(comment) = rest[at..].strip_prefix("//") {
            // Behind such a comment only a new line can follow, so a list on one line cannot have one at its end.
            let length = comment.find(['\r', '\n']).unwrap_or(comment.len());
            return if is_inline { end } else { at + 2 + length };
        }
        let Some(comment) = rest[at..].strip_prefix("/*") else { return end };
        let Some(length) = comment.find("*/") else { return end };
        at += 2 + length + 2;
        end = at;
    }
}

/// Where the comma stands between two values, outside of comments.
fn comma_in(gap: &str) -> Option<usize> {
    let mut at = 0;
    while at < gap.len() {
        let rest = &gap[at..];
        if rest.starts_with(',') {
            return Some(at);
        }
        at += match () {
            () if rest.starts_with("//") => rest.find('\n')? + 1,
            () if rest.starts_with("/*") => rest.find("*/")? + 2,
            () => rest.chars().next()?.len_utf8(),
        };
    }
    None
}

/// How values are written out.
struct Hand<'a> {
    newline: &'a str,
    unit: &'a str,
    spaced: bool,
    is_inline: bool,
}

impl Hand<'_> {
    fn item(&self, item: &Item<'_>, indent: &str) -> String {
        match item {
            Item::Element(value) => self.value(value, indent),
            Item::Field(name, value) => self.field(name, value, indent),
        }
    }

    fn field(&self, name: &str, value: &Value, indent: &str) -> String {
        let colon = if self.spaced { ": " } else { ":" };
        format!("{}{colon}{}", Value::from(name), self.value(value, indent))
    }

    fn value(&self, value: &Value, indent: &str) -> String {
        let deeper = format!("{indent}{}", self.unit);
        match value {
            Value::Array(list) if !list.is_empty() => {
                let items = list.iter().map(|each| self.value(each, &deeper)).collect();
                self.bracketed(('[', ']'), items, indent, &deeper)
            }
            Value::Object(fields) if !fields.is_empty() => {
                let items = fields.iter().map(|(name, each)| self.field(name, each, &deeper)).collect();
                self.bracketed(('{', '}'), items, indent, &deeper)
            }
            scalar_or_empty => scalar_or_empty.to_string(),
        }
    }

    fn bracketed(
        &self,
        (open, close): (char, char),
        items: Vec<String>,
        indent: &str,
        deeper: &str,
    ) -> String {
        match (self.is_inline, self.spaced) {
            (true, true) => format!("{open}{}{close}", items.join(", ")),
            (true, false) => format!("{open}{}{close}", items.join(",")),
            (false, _) => {
                let newline = self.newline;
                let items = items.join(&format!(",{newline}{deeper}"));
                format!("{open}{newline}{deeper}{items}{newline}{indent}{close}")
            }
        }
    }
}
