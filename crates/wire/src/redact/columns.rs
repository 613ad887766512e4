//! Secrets in tables: the heading of their column says what they are, or their place in a line of a known form.

use super::names::is_heading;
use super::reading::Text;

/// How far above a cell its heading is looked for, in lines and in bytes.
const MOST_LINES: usize = 6;
const REACH: usize = 1024;

/// Signs between cells, the surest first.
const SEPARATORS: [&[u8]; 5] = [b"\t", "│".as_bytes(), b"|", b";", b","];

/// Whether the value of this length at `at` stands in a column or at a place for secrets.
pub(super) fn are_secret(text: Text<'_>, at: usize, length: usize) -> bool {
    let before = &text[at.saturating_sub(REACH)..at];
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    let (above, line) = before.split_at(line_start);
    is_password_file(line)
        || is_login(line, text.get(at + length))
        || is_inserted(line)
        || is_in_secret(above, line)
        || is_under(above, line)
}

/// `host:port:database:user:` as in `.pgpass`.
fn is_password_file(line: &[u8]) -> bool {
    let Some(line) = line.strip_suffix(b":") else { return false };
    let start = line.iter().rposition(u8::is_ascii_whitespace).map_or(0, |space| space + 1);
    let mut fields = line[start..].split(|byte| *byte == b':');
    let is_field = |field: Option<&[u8]>| field.is_some_and(|field| !field.is_empty());
    let host = fields.next();
    let port = fields.next();
    let is_port =
        port.is_some_and(|port| port == b"*" || (!port.is_empty() && port.iter().all(u8::is_ascii_digit)));
    is_field(host) && is_port && is_field(fields.next()) && is_field(fields.next()) && fields.next().is_none()
}

/// An entry of a Kubernetes secret: `stringData:` stands above it, and less indented.
fn is_in_secret(above: &[u8], line: &[u8]) -> bool {
    let indentation = |line: &[u8]| line.iter().take_while(|byte| **byte == b' ').count();
    let entry = indentation(line);
    let mut lines = above.split(|byte| *byte == b'\n').rev().skip(1).take(MOST_LINES);
    entry > 0
        && lines
            .find(|line| indentation(line) < entry && !line.is_empty())
            .is_some_and(|line| line.trim_ascii() == b"stringData:")
}

/// `user/value@database`.
fn is_login(line: &[u8], next: Option<&u8>) -> bool {
    let Some(line) = line.strip_suffix(b"/") else { return false };
    let user = line.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    let is_begin = line[..line.len() - user].last().is_none_or(|before| b" \t\"'=:".contains(before));
    next == Some(&b'@') && user > 0 && is_begin
}

/// `INSERT INTO t (name, password) VALUES ('ada', …`.
fn is_inserted(line: &[u8]) -> bool {
    let values = ["VALUES", "values"].iter().find_map(|word| memchr::memmem::rfind(line, word.as_bytes()));
    let Some(values) = values else { return false };
    let columns = memchr::memrchr(b'(', &line[..values]).map(|open| &line[open + 1..values]);
    let behind = &line[values..];
    let row = memchr::memrchr(b'(', behind).map(|open| &behind[open + 1..]);
    let (Some(columns), Some(row)) = (columns, row) else { return false };
    let number = row.iter().filter(|byte| **byte == b',').count();
    columns.split(|byte| b",)".contains(byte)).nth(number).is_some_and(is_heading)
}

/// Whether one of the lines above heads the column in which `line` ends.
fn is_under(above: &[u8], line: &[u8]) -> bool {
    let lines = above.split(|byte| *byte == b'\n').rev().skip(1).take(MOST_LINES);
    lines.filter(|heading| !heading.is_empty()).any(|heading| {
        if is_aligned_under(heading, line) {
            return true;
        }
        let separator =
            SEPARATORS.iter().find(|separator| memchr::memmem::find(heading, separator).is_some());
        let Some(separator) = separator else {
            return false;
        };
        let number = memchr::memmem::find_iter(line, separator).count();
        let is_row = number > 0 || line.is_empty() || line.iter().all(|byte| b"\"' ".contains(byte));
        is_row && nth_cell(heading, separator, number).is_some_and(is_heading)
    })
}

/// Whether the column that begins where `line` ends is headed so, in a table whose columns are as wide as their text.
fn is_aligned_under(heading: &[u8], line: &[u8]) -> bool {
    let is_cell = line.ends_with(b"  ") && heading.get(line.len() - 1) == Some(&b' ');
    let Some(cell) = heading.get(line.len()..).filter(|_| is_cell) else { return false };
    let length = memchr::memmem::find(cell, b"  ").unwrap_or(cell.len());
    is_heading(&cell[..length])
}

fn nth_cell<'l>(line: &'l [u8], separator: &[u8], number: usize) -> Option<&'l [u8]> {
    let mut start = 0;
    for _ in 0..number {
        start += memchr::memmem::find(&line[start..], separator)? + separator.len();
    }
    let end = memchr::memmem::find(&line[start..], separator).map_or(line.len(), |length| start + length);
    Some(&line[start..end])
}
