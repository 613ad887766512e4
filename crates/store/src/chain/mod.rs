//! Links every event of the timeline to the one before it, so that a row that somebody edits, adds or takes out is noticed.
//!
//! An event's link is a hash over its own row and the link of the event before it. Where an event tells something new of a
//! call, its link also covers a hash of that call's row. Whoever may write the file can compute all links anew: the chain shows
//! damage and edits by hand, not a careful forger.

mod record;
mod verify;

use blake3::Hasher;
use rusqlite::{Connection, OptionalExtension};

pub(crate) use record::{AskedPart, EndedPart, Record};
pub use verify::{ChainFault, ChainFound, ChainState};

/// What format 4 brought.
pub(crate) const TABLES: &str = include_str!("tables.sql");

/// The fact that names the first event of the chain.
pub(crate) const FROM: &str = "chain_from";

/// How long links and hashes of records are, in bytes.
const LENGTH: usize = 16;

/// Why events were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutBecause {
    /// They were old, or the database was too large.
    Expired,
    /// A person wanted them gone.
    Purged,
    /// They could not be read any more when the store was recovered.
    Lost,
}

impl CutBecause {
    pub(crate) fn word(self) -> &'static str {
        match self {
            CutBecause::Expired => "expired",
            CutBecause::Purged => "purged",
            CutBecause::Lost => "lost",
        }
    }
}

/// The link of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link([u8; LENGTH]);

/// The row of an event, as far as its link covers it.
pub(crate) struct Linked<'a> {
    pub(crate) at: i64,
    pub(crate) channel: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) session: Option<i64>,
    pub(crate) call: Option<i64>,
    pub(crate) body: &'a str,
    pub(crate) record: Option<&'a [u8]>,
}

impl Link {
    /// The link of an event behind another one; the first of all has none before it.
    pub(crate) fn after(before: Option<Link>, event: &Linked<'_>) -> Link {
        let mut hash = Hash::new(b"event");
        hash.bytes(before.as_ref().map_or(&[], |link| &link.0));
        hash.number(Some(event.at));
        hash.bytes(event.channel.as_bytes());
        hash.bytes(event.kind.as_bytes());
        hash.number(event.session);
        hash.number(event.call);
        hash.bytes(event.body.as_bytes());
        hash.bytes(event.record.unwrap_or_default());
        Link(hash.done())
    }

    /// A link as it is stored; nothing where it is none.
    pub(crate) fn stored(bytes: &[u8]) -> Option<Link> {
        bytes.try_into().ok().map(Link)
    }

    /// Stands for the link of an event that could not be read any more: whatever builds on it is taken on trust.
    pub(crate) const UNKNOWN: Link = Link([0; LENGTH]);

    /// Does an event with this link build on one of these?
    pub(crate) fn fits(self, bases: &[Option<Link>], event: &Linked<'_>) -> bool {
        bases.iter().any(|base| *base == Some(Link::UNKNOWN) || Link::after(*base, event) == self)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Bytes as people compare them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The link of the newest event, on which the next one builds.
pub(crate) fn head(connection: &Connection) -> Result<Option<Link>, rusqlite::Error> {
    let newest = connection
        .prepare_cached("SELECT link FROM event ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| row.get_ref(0).map(|value| value.as_blob().ok().and_then(Link::stored)))
        .optional()?;
    Ok(newest.flatten())
}

/// Notes that events are about to be removed, `seqs` in order. Only inside the transaction that removes them.
pub(crate) fn cut(connection: &Connection, seqs: &[i64], because: CutBecause) -> Result<(), rusqlite::Error> {
    let sql = "INSERT OR REPLACE INTO event_cut (last, first, link, why)
               VALUES (?1, ?2, (SELECT link FROM event WHERE seq = ?1), ?3)";
    for run in seqs.chunk_by(|one, next| one + 1 == *next) {
        if let (Some(first), Some(last)) = (run.first(), run.last()) {
            connection.prepare_cached(sql)?.execute((last, first, because.word()))?;
        }
    }
    Ok(())
}

/// The same for everything up to a number: one note stands for all that expired.
pub(crate) fn cut_front(connection: &Connection, up_to: i64) -> Result<(), rusqlite::Error> {
    connection.prepare_cached("DELETE FROM event_cut WHERE last < ?1")?.execute([up_to])?;
    let sql = "INSERT OR REPLACE INTO event_cut (last, first, link, why)
               VALUES (?1, 1, (SELECT link FROM event WHERE seq = ?1), ?2)";
    connection.prepare_cached(sql)?.execute((up_to, CutBecause::Expired.word())).map(|_| ())
}

/// A hash over values, each with its length before it, so that no two rows read alike.
struct Hash(Hasher);

impl Hash {
    fn new(what: &[u8]) -> Hash {
        let mut hash = Hash(Hasher::new());
        hash.bytes(what);
        hash
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn number(&mut self, number: Option<i64>) {
        match number {
            Some(number) => self.bytes(&number.to_le_bytes()),
            None => self.bytes(&[]),
        }
    }

    fn text(&mut self, text: Option<&str>) {
        match text {
            Some(text) => {
                self.number(Some(1));
                self.bytes(text.as_bytes());
            }
            None => self.number(None),
        }
    }

    fn done(&self) -> [u8; LENGTH] {
        let mut short = [0; LENGTH];
        self.0.finalize_xof().fill(&mut short);
        short
    }
}
