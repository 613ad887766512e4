//! Tables whose rows stand for themselves: each row is added, or laid over the one that is there.

use rusqlite::Connection;
use rusqlite::types::Value;

use super::merge::{Merge, write_row};
use super::salvage::Salvaged;
use crate::error::StoreError;

/// A table, and what becomes of a row that is there already.
struct Plain {
    table: &'static str,
    conflict: &'static str,
    /// Which columns bear numbers of other tables.
    session: Option<&'static str>,
    lesson: Option<&'static str>,
    call: Option<&'static str>,
    /// The table chooses this number anew.
    number: Option<&'static str>,
    only: Only,
}

/// Which rows of a table count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Only {
    All,
    /// Those of sessions that came back.
    NewSessions,
    /// What a person allowed, as long as it holds, where a person vouches for it.
    Allowances,
    /// What can weaken a refusal, where a person vouches for it.
    Vouched,
}

const PLAIN: Plain =
    Plain { table: "", conflict: "", session: None, lesson: None, call: None, number: None, only: Only::All };

/// All of them. Budgets and breakers are not among them: they are about the present.
const TABLES: [Plain; 13] = [
    Plain {
        table: "problem",
        conflict: "ON CONFLICT (cause) DO UPDATE SET count = max(count, excluded.count),
            first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at),
            resolved_at = coalesce(resolved_at, excluded.resolved_at)
            WHERE count < excluded.count OR first_at > excluded.first_at OR last_at < excluded.last_at",
        ..PLAIN
    },
    Plain {
        table: "problem_day",
        conflict: "ON CONFLICT DO UPDATE SET count = excluded.count WHERE count < excluded.count",
        ..PLAIN
    },
    Plain {
        table: "charge",
        conflict:
            "ON CONFLICT DO UPDATE SET refusals = excluded.refusals, false_alarms = excluded.false_alarms
            WHERE refusals < excluded.refusals",
        only: Only::Vouched,
        ..PLAIN
    },
    Plain {
        table: "heard",
        conflict: "ON CONFLICT DO UPDATE SET count = max(count, excluded.count),
            first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at)
            WHERE count < excluded.count OR first_at > excluded.first_at OR last_at < excluded.last_at",
        ..PLAIN
    },
    Plain { table: "taken", ..PLAIN },
    Plain { table: "scanned", ..PLAIN },
    Plain { table: "server_tool", ..PLAIN },
    Plain { table: "alert", number: Some("id"), ..PLAIN },
    Plain { table: "allowance", only: Only::Allowances, ..PLAIN },
    Plain { table: "standing", session: Some("session"), only: Only::NewSessions, ..PLAIN },
    Plain { table: "lesson_place", lesson: Some("lesson"), ..PLAIN },
    Plain { table: "lesson_source", lesson: Some("lesson"), session: Some("session"), ..PLAIN },
    Plain {
        table: "lesson_shown",
        lesson: Some("lesson"),
        session: Some("session"),
        call: Some("call"),
        ..PLAIN
    },
];

impl Merge<'_> {
    pub(super) fn plain(&mut self) -> Result<(), StoreError> {
        for table in &TABLES {
            self.each(table.table, |merge, connection, row| merge.plain_row(connection, table, row))?;
        }
        Ok(())
    }

    fn plain_row(
        &mut self,
        connection: &Connection,
        table: &Plain,
        mut row: Salvaged,
    ) -> Result<(), rusqlite::Error> {
        if let Some(column) = table.session {
            let Some(id) = row.integer(column).and_then(|old| self.ids.sessions.get(&old)) else {
                return Ok(());
            };
            if table.only == Only::NewSessions && !self.ids.new_sessions.contains(id) {
                return Ok(());
            }
            row.set(column, Value::Integer(*id));
        }
        if let Some(column) = table.lesson {
            let Some(id) = row.integer(column).and_then(|old| self.ids.lessons.get(&old)) else {
                return Ok(());
            };
            row.set(column, Value::Integer(*id));
        }
        if let Some(column) = table.call {
            let Some(id) = row.integer(column).and_then(|old| self.ids.calls.get(&old)) else {
                return Ok(());
            };
            row.set(column, Value::Integer(*id));
        }
        if let Some(column) = table.number {
            row.set(column, Value::Null);
        }
        self.doubt(&mut row);
        let holds = || row.integer("until").is_some_and(|until| until > self.how.now.cast_signed());
        match table.only {
            Only::All | Only::NewSessions => {}
            Only::Allowances if !holds() => return Ok(()),
            Only::Allowances | Only::Vouched if !self.how.with_approvals => {
                self.counts.withheld += u64::from(!is_there(connection, table, &row)?);
                return Ok(());
            }
            Only::Allowances | Only::Vouched => {}
        }
        let is_new = match self.how.dry_run {
            true => !is_there(connection, table, &row)?,
            false => write_row(connection, table.table, &row, table.conflict)?,
        };
        match (is_new, table.table) {
            (false, _) => self.counts.known += 1,
            (true, "problem") => self.counts.problems += 1,
            (true, _) => self.counts.others += 1,
        }
        Ok(())
    }
}

/// Is a row with the same key there?
fn is_there(connection: &Connection, table: &Plain, row: &Salvaged) -> Result<bool, rusqlite::Error> {
    let keys: Vec<String> = match table.table {
        "alert" => vec!["name".to_owned(), "window".to_owned()],
        name => connection
            .prepare_cached("SELECT name FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk")?
            .query_map([name], |row| row.get(0))?
            .collect::<Result<_, _>>()?,
    };
    let same: Vec<String> =
        keys.iter().enumerate().map(|(at, key)| format!("\"{key}\" IS ?{}", at + 1)).collect();
    let sql = format!("SELECT 1 FROM {} WHERE {}", table.table, same.join(" AND "));
    let values = keys.iter().map(|key| row.value(key));
    connection.prepare_cached(&sql)?.exists(rusqlite::params_from_iter(values))
}
