//! Reads rows whose values may be damaged. A value that cannot be read is replaced, so that a hook goes on; whoever lists rows
//! leaves out those with a replaced value and counts them.

use std::cell::{Cell, RefCell};

use rusqlite::types::ValueRef;
use rusqlite::{ErrorCode, Row};

thread_local! {
    /// A value was replaced since this was last asked.
    static REPLACED: Cell<bool> = const { Cell::new(false) };
    static SKIPPED: RefCell<SkippedRows> = RefCell::default();
}

/// Rows that this thread could not read and left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkippedRows {
    /// How many, as far as they can be counted: those of a page that cannot be read count as one.
    pub rows: u64,
    /// Where the first of them stands: the table, and the row where its number is known.
    pub first: Option<String>,
}

/// The rows that this thread has left out until now.
pub fn skipped_rows() -> SkippedRows {
    SKIPPED.with_borrow(Clone::clone)
}

/// Counts a row that is left out.
pub(crate) fn skip(table: &str, number: Option<i64>) {
    SKIPPED.with_borrow_mut(|skipped| {
        skipped.rows += 1;
        skipped.first.get_or_insert_with(|| match number {
            Some(number) => format!("{table} {number}"),
            None => table.to_owned(),
        });
    });
}

/// Was a value replaced since this was last asked?
pub(crate) fn take_replaced() -> bool {
    REPLACED.replace(false)
}

/// The rows of a table that can be read whole. Others are left out and counted.
pub(crate) fn readable<T>(
    table: &str,
    rows: impl Iterator<Item = Result<T, rusqlite::Error>>,
) -> Result<Vec<T>, rusqlite::Error> {
    take_replaced();
    let mut read = Vec::new();
    for row in rows {
        match (row?, take_replaced()) {
            (row, false) => read.push(row),
            (_, true) => skip(table, None),
        }
    }
    Ok(read)
}

/// After so many numbers in a row that lead to nothing readable, the steps become longer.
const STEPS: u32 = 256;

/// Goes through a table by the numbers of its rows, over pages that cannot be read. `read_on` reads the rows behind a number, in
/// order, and notes the number of each that it has read.
pub(crate) fn over_gaps(
    table: &str,
    after: i64,
    mut read_on: impl FnMut(i64, &mut i64) -> Result<(), rusqlite::Error>,
) -> Result<(), rusqlite::Error> {
    let (mut from, mut misses) = (after, 0_u32);
    loop {
        let mut seen = from;
        match read_on(from, &mut seen) {
            Err(error) if is_damage(&error) => {
                if seen > from || misses == 0 {
                    misses = 0;
                    skip(table, seen.checked_add(1));
                }
                let step = 1_i64.checked_shl(misses / STEPS).filter(|step| *step > 0);
                misses += 1;
                match step.and_then(|step| seen.checked_add(step)) {
                    Some(next) => from = next,
                    None => return Ok(()),
                }
            }
            done => return done,
        }
    }
}

/// Does SQLite say that a page is not what it should be?
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Values of a row, whatever stands there.
pub(crate) trait Lenient {
    /// The value of a column, or the nearest to it that can be read.
    fn lenient<T: FromDamaged>(&self, column: usize) -> Result<T, rusqlite::Error>;
}

impl Lenient for Row<'_> {
    fn lenient<T: FromDamaged>(&self, column: usize) -> Result<T, rusqlite::Error> {
        self.get_ref(column).map(T::from_damaged)
    }
}

/// A type that can be made of any value.
pub(crate) trait FromDamaged {
    fn from_damaged(value: ValueRef<'_>) -> Self;
}

/// Notes that a value was replaced.
pub(crate) fn replaced<T>(value: T) -> T {
    REPLACED.set(true);
    value
}

impl FromDamaged for String {
    fn from_damaged(value: ValueRef<'_>) -> String {
        match value {
            ValueRef::Text(bytes) => match str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => replaced(String::from_utf8_lossy(bytes).into_owned()),
            },
            ValueRef::Blob(bytes) => replaced(String::from_utf8_lossy(bytes).into_owned()),
            ValueRef::Integer(number) => replaced(number.to_string()),
            ValueRef::Real(number) => replaced(number.to_string()),
            ValueRef::Null => replaced(String::new()),
        }
    }
}

impl FromDamaged for i64 {
    fn from_damaged(value: ValueRef<'_>) -> i64 {
        match value {
            ValueRef::Integer(number) => number,
            ValueRef::Real(_) | ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => replaced(0),
        }
    }
}

impl FromDamaged for u32 {
    fn from_damaged(value: ValueRef<'_>) -> u32 {
        u32::try_from(i64::from_damaged(value)).unwrap_or_else(|_| replaced(0))
    }
}

impl FromDamaged for bool {
    fn from_damaged(value: ValueRef<'_>) -> bool {
        i64::from_damaged(value) != 0
    }
}

impl FromDamaged for f64 {
    fn from_damaged(value: ValueRef<'_>) -> f64 {
        match value {
            ValueRef::Real(number) => number,
            ValueRef::Integer(number) => number as f64,
            ValueRef::Null | ValueRef::Text(_) | ValueRef::Blob(_) => replaced(0.0),
        }
    }
}

impl FromDamaged for Vec<u8> {
    fn from_damaged(value: ValueRef<'_>) -> Vec<u8> {
        match value {
            ValueRef::Blob(bytes) => bytes.to_vec(),
            ValueRef::Text(bytes) => replaced(bytes.to_vec()),
            ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Null => replaced(Vec::new()),
        }
    }
}

impl<T: FromDamaged> FromDamaged for Option<T> {
    fn from_damaged(value: ValueRef<'_>) -> Option<T> {
        match value {
            ValueRef::Null => None,
            value => Some(T::from_damaged(value)),
        }
    }
}
