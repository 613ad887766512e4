//! The rows of each table of a damaged database, as far as any page still holds them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, Error};

use super::cells::{self, Cell, Sort};
use super::pages::Pages;
use crate::database;
use crate::examine::{JSON, is_json};

/// A table as this version knows it.
#[derive(Debug)]
struct Shape {
    columns: Vec<Column>,
    /// Its rows have numbers.
    has_numbers: bool,
    /// Fewer columns are those of an older format.
    least: usize,
    /// How its rows are laid out where they have no numbers: the key first.
    order: Vec<usize>,
}

#[derive(Debug)]
struct Column {
    name: String,
    sort: String,
    is_required: bool,
    is_number: bool,
    /// What stands in rows from before it was added.
    default: Value,
}

/// Where a row stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    number: i64,
    page: u32,
    cell: u16,
    is_doubtful: bool,
}

/// What can be read of a database.
pub(super) struct Salvage {
    pages: Pages,
    shapes: BTreeMap<String, Shape>,
    found: HashMap<String, Vec<Place>>,
}

/// A row of a table: its values by column.
pub(super) struct Salvaged {
    pub(super) number: i64,
    values: Vec<Value>,
    names: Vec<String>,
    /// Some of it could not be read and was replaced.
    pub(super) is_mended: bool,
}

impl Salvaged {
    pub(super) fn value(&self, name: &str) -> &Value {
        self.names.iter().position(|other| other == name).map_or(&Value::Null, |at| &self.values[at])
    }

    pub(super) fn text(&self, name: &str) -> &str {
        match self.value(name) {
            Value::Text(text) => text,
            Value::Null | Value::Integer(_) | Value::Real(_) | Value::Blob(_) => "",
        }
    }

    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        match self.value(name) {
            Value::Integer(number) => Some(*number),
            Value::Null | Value::Real(_) | Value::Text(_) | Value::Blob(_) => None,
        }
    }

    pub(super) fn blob(&self, name: &str) -> Option<&[u8]> {
        match self.value(name) {
            Value::Blob(bytes) => Some(bytes),
            Value::Null | Value::Integer(_) | Value::Real(_) | Value::Text(_) => None,
        }
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn set(&mut self, name: &str, value: Value) {
        if let Some(at) = self.names.iter().position(|other| other == name) {
            self.values[at] = value;
        }
    }
}

impl Salvage {
    /// Looks through all pages of a database and of its log.
    pub(super) fn of(path: &Path) -> io::Result<Salvage> {
        let shapes = shapes().map_err(io::Error::other)?;
        let mut salvage = Salvage { pages: Pages::open(path)?, shapes, found: HashMap::new() };
        let roots = salvage.roots();
        for number in 1..=salvage.pages.count() {
            let Some(page) = salvage.pages.page(number) else { continue };
            let Some(sort) = cells::sort(&page, number) else { continue };
            if salvage.pages.holds_no_rows(number) {
                continue;
            }
            let table = salvage.pages.root_of(number).and_then(|root| roots.get(&root));
            match table {
                Some(Some(table)) => salvage.note(&page, number, sort, Some(&table.clone()), false),
                // An index: its rows stand in its table.
                Some(None) => {}
                None => salvage.note(&page, number, sort, None, false),
            }
        }
        for index in 0..salvage.pages.doubtful() {
            let Some(page) = salvage.pages.doubtful_page(index) else { continue };
            if cells::sort(&page, 0) == Some(Sort::Rows) {
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                salvage.note(&page, index, Sort::Rows, None, true);
            }
        }
        for places in salvage.found.values_mut() {
            // Of a row that stands in two places, the one that is not doubtful counts.
            places.sort_by_key(|place| (place.number, place.is_doubtful));
        }
        for (table, shape) in &salvage.shapes {
            if let (Some(places), true) = (salvage.found.get_mut(table), shape.has_numbers) {
                places.dedup_by_key(|place| place.number);
            }
        }
        Ok(salvage)
    }

    /// The tables by their roots, as far as the list of tables can be read; nothing for an index.
    fn roots(&self) -> HashMap<u32, Option<String>> {
        let mut roots = HashMap::new();
        for number in 1..=self.pages.count() {
            let Some(page) = self.pages.page(number) else { continue };
            let is_list = number == 1 || self.pages.root_of(number) == Some(1);
            if !is_list || cells::sort(&page, number) != Some(Sort::Rows) {
                continue;
            }
            for index in 0..cells::count(&page, number) {
                let cell = cells::cell(&self.pages, &page, number, Sort::Rows, index);
                let Some(Cell { values, .. }) = cell else { continue };
                let [Value::Text(sort), Value::Text(name), Value::Text(_), Value::Integer(root), ..] =
                    &values[..]
                else {
                    continue;
                };
                let table = (sort == "table" && self.shapes.contains_key(name)).then(|| name.clone());
                if let Ok(root) = u32::try_from(*root) {
                    roots.insert(root, table);
                }
            }
        }
        roots
    }

    /// Notes the rows of a page; those of an unknown table by what they look like.
    fn note(&mut self, page: &[u8], number: u32, sort: Sort, table: Option<&str>, is_doubtful: bool) {
        let start = if is_doubtful { 0 } else { number };
        for index in 0..cells::count(page, start) {
            let Some(cell) = cells::cell(&self.pages, page, start, sort, index) else { continue };
            let has_number = sort == Sort::Rows;
            let name = match table {
                Some(table) => (self.shapes[table].has_numbers == has_number).then(|| table.to_owned()),
                None => self.looks_like(&cell, has_number),
            };
            let Some(name) = name else { continue };
            let place = Place {
                number: cell.number,
                page: number,
                cell: u16::try_from(index).unwrap_or(u16::MAX),
                is_doubtful,
            };
            self.found.entry(name).or_default().push(place);
        }
    }

    /// The one table whose rows look like this. Without numbers, rows look too much alike.
    fn looks_like(&self, cell: &Cell, has_number: bool) -> Option<String> {
        if !has_number {
            return None;
        }
        let mut fitting = self.shapes.iter().filter(|(_, shape)| shape.has_numbers && shape.is_of(cell));
        let (name, _) = fitting.next()?;
        fitting.next().is_none().then(|| name.clone())
    }

    /// The rows of a table, in the order of their numbers.
    pub(super) fn rows<'s>(&'s self, table: &'s str) -> impl Iterator<Item = Salvaged> + 's {
        let places = self.found.get(table).map_or(&[][..], Vec::as_slice);
        places.iter().filter_map(move |place| self.row(table, place))
    }

    /// One row of a table by its number.
    pub(super) fn numbered(&self, table: &str, number: i64) -> Option<Salvaged> {
        let places = self.found.get(table)?;
        let at = places.binary_search_by_key(&number, |place| place.number).ok()?;
        self.row(table, &places[at])
    }

    /// The numbers of all rows of a table.
    pub(super) fn numbers(&self, table: &str) -> HashSet<i64> {
        self.found.get(table).into_iter().flatten().map(|place| place.number).collect()
    }

    fn row(&self, table: &str, place: &Place) -> Option<Salvaged> {
        let (page, start) = match place.is_doubtful {
            true => (self.pages.doubtful_page(place.page as usize)?, 0),
            false => (self.pages.page(place.page)?, place.page),
        };
        let sort = cells::sort(&page, start)?;
        let cell = cells::cell(&self.pages, &page, start, sort, usize::from(place.cell))?;
        let shape = &self.shapes[table];
        let mut is_mended = cell.is_mended;
        let mut values: Vec<Value> = shape.columns.iter().map(|column| column.default.clone()).collect();
        for (value, column) in cell.values.into_iter().zip(&shape.order) {
            values[*column] = value;
        }
        for (value, column) in values.iter_mut().zip(&shape.columns) {
            if column.is_number {
                *value = Value::Integer(cell.number);
            } else if !column.holds(value) || !column.reads(table, value) {
                is_mended = true;
                *value = column.replacement();
            }
        }
        let names = shape.columns.iter().map(|column| column.name.clone()).collect();
        Some(Salvaged { number: cell.number, values, names, is_mended })
    }
}

impl Shape {
    fn is_of(&self, cell: &Cell) -> bool {
        (self.least..=self.columns.len()).contains(&cell.values.len())
            && cell.values.iter().zip(&self.columns).all(|(value, column)| match column.is_number {
                true => *value == Value::Null,
                false => column.holds(value),
            })
    }
}

impl Column {
    /// Can such a value stand here?
    fn holds(&self, value: &Value) -> bool {
        match value {
            Value::Null => !self.is_required,
            Value::Text(_) => self.sort == "TEXT",
            Value::Integer(_) => self.sort == "INTEGER" || self.sort == "REAL",
            Value::Real(_) => self.sort == "REAL",
            Value::Blob(_) => self.sort == "BLOB",
        }
    }

    /// Is it JSON where it has to be?
    fn reads(&self, table: &str, value: &Value) -> bool {
        match value {
            Value::Text(text) if JSON.contains(&(table, &self.name)) => is_json(text.as_bytes()),
            Value::Text(_) | Value::Null | Value::Integer(_) | Value::Real(_) | Value::Blob(_) => true,
        }
    }

    fn replacement(&self) -> Value {
        match (self.is_required, &*self.sort) {
            (false, _) => Value::Null,
            (true, "TEXT") => Value::Text(String::new()),
            (true, "BLOB") => Value::Blob(Vec::new()),
            (true, _) => Value::Integer(0),
        }
    }
}

/// The tables of the newest format.
fn shapes() -> Result<BTreeMap<String, Shape>, Error> {
    let connection = database::in_memory()?;
    let names: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    names.into_iter().map(|name| Ok((name.clone(), shape(&connection, &name)?))).collect()
}

fn shape(connection: &Connection, name: &str) -> Result<Shape, Error> {
    let sql: String =
        connection.query_row("SELECT sql FROM sqlite_schema WHERE name = ?1", [name], |row| row.get(0))?;
    let has_numbers = !sql.contains("WITHOUT ROWID");
    let mut keys: Vec<(i64, usize)> = Vec::new();
    let columns: Vec<Column> = connection
        .prepare("SELECT name, type, \"notnull\", pk, dflt_value FROM pragma_table_info(?1) ORDER BY cid")?
        .query_map([name], |row| {
            let (name, sort, key): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(3)?);
            let is_number = has_numbers && key == 1 && sort == "INTEGER";
            let is_required = row.get::<_, bool>(2)? || (key > 0 && !is_number);
            let default = match row.get::<_, Option<String>>(4)? {
                Some(sql) => connection.query_row(&format!("SELECT {sql}"), [], |row| row.get(0))?,
                None => Value::Null,
            };
            Ok((Column { name, sort, is_required, is_number, default }, key))
        })?
        .enumerate()
        .map(|(at, column)| {
            let (column, key) = column?;
            if key > 0 && !has_numbers {
                keys.push((key, at));
            }
            Ok(column)
        })
        .collect::<Result<_, Error>>()?;
    keys.sort_unstable();
    let mut order: Vec<usize> = keys.into_iter().map(|(_, at)| at).collect();
    let rest: Vec<usize> = (0..columns.len()).filter(|at| !order.contains(at)).collect();
    order.extend(rest);
    // Only columns that may be left out can have been added later.
    let needs = |column: &Column| column.is_required && column.default == Value::Null || column.is_number;
    let least = columns.iter().rposition(needs).map_or(0, |at| at + 1);
    Ok(Shape { least, columns, has_numbers, order })
}
