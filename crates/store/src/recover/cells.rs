//! The rows of one page, each by itself: what cannot be read of one leaves the others alone.

use rusqlite::types::Value;

use super::pages::{Pages, word};

/// No row of ours is longer.
const LONGEST: usize = 64 * 1024 * 1024;
/// No table of ours has more columns.
const COLUMNS_MAX: usize = 64;

/// What a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Rows of a table that have numbers.
    Rows,
    /// Rows of a table without numbers, or of an index; those between two pages stand in their parent.
    Keys,
    KeysOfParent,
}

/// A row as it stands in a page.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cell {
    /// Its number, where it has one.
    pub(super) number: i64,
    pub(super) values: Vec<Value>,
    /// A text was no text, and was mended.
    pub(super) is_mended: bool,
}

/// What a page holds; nothing where it holds no rows.
pub(super) fn sort(page: &[u8], number: u32) -> Option<Sort> {
    match page.get(start(number))? {
        0x0d => Some(Sort::Rows),
        0x0a => Some(Sort::Keys),
        0x02 => Some(Sort::KeysOfParent),
        _ => None,
    }
}

/// The first page begins with the header of the file.
fn start(number: u32) -> usize {
    if number == 1 { 100 } else { 0 }
}

/// How many rows a page says it has.
pub(super) fn count(page: &[u8], number: u32) -> usize {
    let at = start(number) + 3;
    let most = page.len() / 4;
    page.get(at..at + 2).map_or(0, |bytes| usize::from(u16::from_be_bytes([bytes[0], bytes[1]])).min(most))
}

/// One row of a page; nothing where it cannot be read.
pub(super) fn cell(pages: &Pages, page: &[u8], number: u32, sort: Sort, index: usize) -> Option<Cell> {
    let header = if sort == Sort::KeysOfParent { 12 } else { 8 };
    let pointer = start(number) + header + 2 * index;
    let bytes = page.get(pointer..pointer + 2)?;
    let mut at = usize::from(u16::from_be_bytes([bytes[0], bytes[1]]));
    if at < start(number) + header {
        return None;
    }
    if sort == Sort::KeysOfParent {
        at += 4;
    }
    let length = usize::try_from(varint(page, &mut at)?).ok().filter(|length| *length <= LONGEST)?;
    let row = match sort {
        Sort::Rows => varint(page, &mut at)?,
        Sort::Keys | Sort::KeysOfParent => 0,
    };
    let payload = payload(pages, page, at, length, sort)?;
    let (values, is_mended) = values(&payload)?;
    Some(Cell { number: row, values, is_mended })
}

/// All bytes of a row, with those that stand in pages of their own.
fn payload(pages: &Pages, page: &[u8], at: usize, length: usize, sort: Sort) -> Option<Vec<u8>> {
    let usable = pages.usable();
    let most = match sort {
        Sort::Rows => usable - 35,
        Sort::Keys | Sort::KeysOfParent => (usable - 12) * 64 / 255 - 23,
    };
    if length <= most {
        return page.get(at..at + length).map(<[u8]>::to_vec);
    }
    let least = (usable - 12) * 32 / 255 - 23;
    let local = least + (length - least) % (usable - 4);
    let local = if local <= most { local } else { least };
    let mut payload = page.get(at..at + local)?.to_vec();
    let mut next = word(page, at + local);
    while payload.len() < length {
        if next == 0 || next > pages.count() {
            return None;
        }
        let more = pages.page(next)?;
        let take = (length - payload.len()).min(usable - 4);
        payload.extend(more.get(4..4 + take)?);
        next = word(&more, 0);
    }
    Some(payload)
}

fn values(payload: &[u8]) -> Option<(Vec<Value>, bool)> {
    let mut at = 0;
    let header = usize::try_from(varint(payload, &mut at)?).ok()?;
    let mut body = header;
    let (mut values, mut is_mended) = (Vec::new(), false);
    while at < header {
        if values.len() == COLUMNS_MAX {
            return None;
        }
        let sort = varint(payload, &mut at)?;
        let length = match sort {
            0 | 8 | 9 => 0,
            1..=4 => usize::try_from(sort).ok()?,
            5 => 6,
            6 | 7 => 8,
            12.. => usize::try_from((sort - 12) / 2).ok()?,
            _ => return None,
        };
        let bytes = payload.get(body..body.checked_add(length)?)?;
        body += length;
        values.push(match sort {
            0 => Value::Null,
            8 => Value::Integer(0),
            9 => Value::Integer(1),
            7 => Value::Real(f64::from_bits(integer(bytes).cast_unsigned())),
            1..=6 => Value::Integer(integer(bytes)),
            blob if blob % 2 == 0 => Value::Blob(bytes.to_vec()),
            _ => Value::Text(String::from_utf8(bytes.to_vec()).unwrap_or_else(|error| {
                is_mended = true;
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            })),
        });
    }
    (body == payload.len() && at == header).then_some((values, is_mended))
}

/// A number of one to eight bytes, the first of which bears its sign.
fn integer(bytes: &[u8]) -> i64 {
    let sign = if bytes.first().is_some_and(|first| first & 0x80 != 0) { -1 } else { 0 };
    bytes.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte))
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let mut value: u64 = 0;
    for index in 0..9 {
        let byte = *bytes.get(*at)?;
        *at += 1;
        if index == 8 {
            return Some((value << 8 | u64::from(byte)).cast_signed());
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some(value.cast_signed());
        }
    }
    None
}
