//! What past retries achieved, kept between processes: for each kind of failure, for each kind and tool, and for each kind,
//! tool and whom it was spoken to. All sessions share it. What follows from it is the judge's to say.

use std::time::Duration;

use rusqlite::Connection;
use unstuck_judge::Kind;
use unstuck_judge::ladder::Speaker;
use unstuck_judge::retry::{self, Experience, PastYield};

use crate::entry::Asked;
use crate::pack::{packed, unpacked};
use crate::rows::Lenient;

/// After this long without news, what is known counts half.
const FADES_AFTER_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// More halvings than this leave nothing.
const MOST_FADES: u64 = 8;

/// The rows that tell of one kind of failure of one call, from the narrowest to the widest.
pub(crate) struct Rows([String; 3]);

impl Rows {
    /// The rows for failures of this kind of such a call.
    pub(crate) fn of(kind: Kind, asked: &Asked) -> Rows {
        let whom = retry::whom(&asked.label, asked.sight.speaker == Speaker::Shell);
        let tool = &asked.tool;
        Rows([format!("yield/{kind}/{tool}/{whom}"), format!("yield/{kind}/{tool}"), format!("yield/{kind}")])
    }

    /// What they hold, read at once; what lies long back counts less.
    pub(crate) fn read(&self, connection: &Connection, now: u64) -> Result<Experience, rusqlite::Error> {
        let Rows([whom, tool, kind]) = self;
        let mut known = Experience::NONE;
        let mut statement =
            connection.prepare_cached("SELECT name, at, body FROM brake WHERE name IN (?1, ?2, ?3)")?;
        let mut rows = statement.query((whom, tool, kind))?;
        while let Some(row) = rows.next()? {
            let (name, at, body): (String, i64, Vec<u8>) =
                (row.lenient(0)?, row.lenient(1)?, row.lenient(2)?);
            let mut past = unpacked(&body).unwrap_or(PastYield::NONE);
            for _ in 0..(now.saturating_sub(at.unsigned_abs()) / FADES_AFTER_MS).min(MOST_FADES) {
                past = past.faded();
            }
            match name {
                name if name == *whom => known.whom = past,
                name if name == *tool => known.tool = past,
                _ => known.kind = past,
            }
        }
        Ok(known)
    }

    /// Counts a retry that was sent `after` the beginning of the first attempt and ended `at`.
    pub(crate) fn count(
        &self,
        connection: &Connection,
        after: Duration,
        worked: bool,
        at: u64,
    ) -> Result<(), rusqlite::Error> {
        let Experience { whom, tool, kind } = self.read(connection, at)?;
        let mut put = connection.prepare_cached(
            "INSERT INTO brake (name, session, at, body) VALUES (?1, NULL, ?2, ?3)
             ON CONFLICT DO UPDATE SET at = excluded.at, body = excluded.body",
        )?;
        for (name, past) in self.0.iter().zip([whom, tool, kind]) {
            put.execute((name, at.cast_signed(), packed(&past.with(after, worked, at))))?;
        }
        Ok(())
    }
}
