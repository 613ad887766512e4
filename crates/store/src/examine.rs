//! Reads everything there is: all pages, all indexes, all rows of all tables, and the chain.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde::de::IgnoredAny;

use crate::chain::ChainFound;
use crate::database;
use crate::error::StoreError;
use crate::migrate;
use crate::store::Store;

/// So much of what is wrong with the structure is told.
const TOLD: usize = 5;
/// After so many rows somebody is told how far it is.
const SEEN: u64 = 10_000;

/// What a look at everything found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Examined {
    /// What is wrong with pages and indexes, in SQLite's words; nothing where all fit together.
    pub structure: Vec<String>,
    /// How many rows were read.
    pub rows: u64,
    /// How many of them hold something that cannot be read.
    pub damaged: u64,
    /// Where the first of those stands.
    pub first: Option<String>,
    /// Triggers, views and tables that unstuck did not make.
    pub foreign: Vec<String>,
    /// The chain; nothing where the tables cannot be read.
    pub chain: Option<ChainFound>,
}

impl Examined {
    /// Can everything be read?
    pub fn is_readable(&self) -> bool {
        self.structure.is_empty() && self.damaged == 0
    }

    /// Is everything as it was written?
    pub fn is_sound(&self) -> bool {
        self.is_readable() && self.chain.as_ref().is_some_and(|chain| chain.faults == 0)
    }
}

/// Columns that hold JSON, where they hold anything.
pub(crate) const JSON: [(&str, &str); 6] = [
    ("event", "body"),
    ("call_text", "life"),
    ("call_text", "verdict"),
    ("lesson", "body"),
    ("problem", "tools"),
    ("alert", "delivery"),
];

impl Store {
    /// Reads everything. What is damaged is counted, and is no error. `seen` is told now and then how far it is.
    pub fn examine(&self, seen: &mut dyn FnMut(&Examined)) -> Result<Examined, StoreError> {
        let mut examined = Examined::default();
        let tables = match tables(&self.connection) {
            Ok(tables) => tables,
            Err(error) => {
                tolerate(self, &mut examined, error)?;
                Vec::new()
            }
        };
        for table in tables {
            if let Err(error) = rows(&self.connection, &table, &mut examined, seen) {
                tolerate(self, &mut examined, error)?;
            }
        }
        seen(&examined);
        if database::has_bad_header(&self.root().timeline()) {
            examined.structure.push("the header names a way of writing that SQLite does not know".to_owned());
        }
        if let Err(error) = structure(&self.connection, &mut examined) {
            tolerate(self, &mut examined, error)?;
        }
        match database::foreign(&self.connection) {
            Ok(foreign) => examined.foreign = foreign,
            Err(error) => tolerate(self, &mut examined, error)?,
        }
        // Rows that cannot be read are told of already.
        if migrate::format(&self.connection).is_ok_and(|format| format == migrate::newest(migrate::STEPS)) {
            match self.verify_chain() {
                Ok(chain) => examined.chain = Some(chain),
                Err(StoreError::Damaged { .. } | StoreError::Sql { .. }) if !examined.is_readable() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(examined)
    }

    /// The number of the format, where it is one that only a newer version knows.
    pub fn newer_format(&self) -> Result<Option<u32>, StoreError> {
        let format = migrate::format(&self.connection).map_err(self.wrong())?;
        Ok((format > migrate::newest(migrate::STEPS)).then_some(format))
    }

    /// Does it bear the number of a newer format although its tables are those of this one?
    pub fn is_misnumbered(&self) -> Result<bool, StoreError> {
        match self.newer_format()? {
            Some(_) => database::has_tables_of(&self.connection, migrate::newest(migrate::STEPS))
                .map_err(self.wrong()),
            None => Ok(false),
        }
    }
}

/// Damage is what is looked for; that another process holds the database is an error.
fn tolerate(store: &Store, examined: &mut Examined, error: rusqlite::Error) -> Result<(), StoreError> {
    match store.wrong()(error) {
        StoreError::Damaged { why, .. } => {
            if examined.structure.len() < TOLD && !examined.structure.contains(&why) {
                examined.structure.push(why);
            }
            Ok(())
        }
        other => Err(other),
    }
}

fn structure(connection: &Connection, examined: &mut Examined) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({TOLD})"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let line = String::from_utf8_lossy(row.get_ref(0)?.as_bytes().unwrap_or_default()).into_owned();
        if line != "ok" && !examined.structure.contains(&line) {
            examined.structure.push(line);
        }
    }
    Ok(())
}

fn tables(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let sql =
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// A column as it is checked.
struct Column {
    sort: String,
    is_required: bool,
    is_json: bool,
}

impl Column {
    fn holds(&self, value: ValueRef<'_>) -> bool {
        match value {
            ValueRef::Null => !self.is_required,
            ValueRef::Integer(_) => self.sort == "INTEGER" || self.sort == "REAL",
            ValueRef::Real(_) => self.sort == "REAL",
            ValueRef::Blob(_) => self.sort == "BLOB",
            ValueRef::Text(bytes) => {
                self.sort == "TEXT" && str::from_utf8(bytes).is_ok() && (!self.is_json || is_json(bytes))
            }
        }
    }
}

/// Can it stand in a column for JSON?
pub(crate) fn is_json(bytes: &[u8]) -> bool {
    bytes.is_empty() || serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

fn rows(
    connection: &Connection,
    table: &str,
    examined: &mut Examined,
    seen: &mut dyn FnMut(&Examined),
) -> Result<(), rusqlite::Error> {
    let columns: Vec<Column> = connection
        .prepare("SELECT name, type, \"notnull\" FROM pragma_table_info(?1) ORDER BY cid")?
        .query_map([table], |row| {
            let name: String = row.get(0)?;
            let is_json = JSON.contains(&(table, &name));
            Ok(Column { sort: row.get(1)?, is_required: row.get(2)?, is_json })
        })?
        .collect::<Result<_, _>>()?;
    let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\" NOT INDEXED"))?;
    let mut all = statement.query([])?;
    while let Some(row) = all.next()? {
        examined.rows += 1;
        if examined.rows.is_multiple_of(SEEN) {
            seen(examined);
        }
        if !is_whole(row, &columns)? {
            examined.damaged += 1;
            let number = row.get_ref(0)?.as_i64().ok().filter(|_| columns[0].sort == "INTEGER");
            examined.first.get_or_insert_with(|| match number {
                Some(number) => format!("{table} {number}"),
                None => table.to_owned(),
            });
        }
    }
    Ok(())
}

fn is_whole(row: &Row<'_>, columns: &[Column]) -> Result<bool, rusqlite::Error> {
    for (at, column) in columns.iter().enumerate() {
        if !column.holds(row.get_ref(at)?) {
            return Ok(false);
        }
    }
    Ok(true)
}
