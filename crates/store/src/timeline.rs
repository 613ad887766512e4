//! Reads the timeline in the order of its bookmarks. It never writes, and it holds no more than one page of it at a time.
//!
//! A long read would keep the write-ahead log from being folded in, so every page is a short read of its own. That loses
//! and repeats nothing: sequence numbers are given under the write lock, are never given twice, and only grow.

use std::fs;
use std::path::Path;

use rusqlite::types::Value as Sql;
use rusqlite::{OptionalExtension, Row, params_from_iter};

use crate::error::StoreError;
use crate::event::{Bookmark, COLUMNS, Channel, StoredEvent};
use crate::rows::{self, Lenient};
use crate::server_name;
use crate::store::Store;

/// How many events are in memory at once.
const PAGE: usize = 512;

/// A session that is in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// Its number here.
    pub id: i64,
    /// The name its host gives it.
    pub name: String,
    /// The door it came through.
    pub host: String,
    /// Where it worked.
    pub cwd: String,
    /// When it was first heard of, in milliseconds since 1970.
    pub first_at: u64,
    /// And when last.
    pub last_at: u64,
}

impl StoredSession {
    pub(crate) const COLUMNS: &str = "id, name, host, cwd, first_at, last_at";

    pub(crate) fn read(row: &Row<'_>) -> Result<StoredSession, rusqlite::Error> {
        Ok(StoredSession {
            id: row.lenient(0)?,
            name: row.lenient(1)?,
            host: row.lenient(2)?,
            cwd: row.lenient(3)?,
            first_at: row.lenient::<i64>(4)?.unsigned_abs(),
            last_at: row.lenient::<i64>(5)?.unsigned_abs(),
        })
    }
}

/// Which events are wanted; everything where nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wanted<'a> {
    /// Only those of the session with this number.
    pub session: Option<i64>,
    /// Only those of this channel.
    pub channel: Option<Channel>,
    /// Only those of this moment or later, in milliseconds since 1970.
    pub from: Option<u64>,
    /// Only those of this server, and of calls of its tools.
    pub server: Option<&'a str>,
}

impl Wanted<'_> {
    /// The condition, and its values.
    fn condition(&self) -> (String, Vec<Sql>) {
        let (mut condition, mut values) = (String::new(), Vec::new());
        if let Some(session) = self.session {
            condition.push_str(" AND event.session = ?");
            values.push(Sql::Integer(session));
        }
        if let Some(channel) = self.channel {
            condition.push_str(" AND event.channel = ?");
            values.push(Sql::Text(channel.word().to_owned()));
        }
        if let Some(from) = self.from {
            condition.push_str(" AND event.at >= ?");
            values.push(Sql::Integer(i64::try_from(from).unwrap_or(i64::MAX)));
        }
        if let Some(server) = self.server {
            let beginnings = server_name::beginnings(server);
            let begins = |_| "substr(tool, 1, length(?)) = ?";
            let tools = beginnings.each_ref().map(begins).join(" OR ");
            // Only a CASE keeps SQLite from reading as JSON what is none.
            condition.push_str(&format!(
                " AND (CASE WHEN substr(event.type, 1, 7) <> 'server:'
                         THEN EXISTS (SELECT 1 FROM call WHERE call.id = event.call AND ({tools}))
                       WHEN json_valid(event.body) THEN event.body ->> 'server' = ? END)"
            ));
            values.extend(beginnings.into_iter().flat_map(|text| [Sql::Text(text.clone()), Sql::Text(text)]));
            values.push(Sql::Text(server.to_owned()));
        }
        (condition, values)
    }
}

/// Which file a database is. One that takes its place has another mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileMark(u64, u64);

impl FileMark {
    /// The mark of the file that stands there, if one does.
    pub(crate) fn at(path: &Path) -> Option<FileMark> {
        fs::metadata(path).ok().as_ref().and_then(FileMark::of)
    }

    #[cfg(unix)]
    fn of(file: &fs::Metadata) -> Option<FileMark> {
        use std::os::unix::fs::MetadataExt;
        Some(FileMark(file.dev(), file.ino()))
    }

    /// Where files have no numbers, they are taken for the same.
    #[cfg(not(unix))]
    fn of(_: &fs::Metadata) -> Option<FileMark> {
        None
    }
}

impl Store {
    /// The mark of the file that stands where this database was opened; it changes when the database was set aside.
    pub fn file_mark(&self) -> Option<FileMark> {
        FileMark::at(&self.root().timeline())
    }

    /// The session with exactly this name.
    pub fn session(&self, name: &str) -> Result<Option<StoredSession>, StoreError> {
        let columns = StoredSession::COLUMNS;
        self.connection
            .query_row(&format!("SELECT {columns} FROM session WHERE name = ?1"), [name], StoredSession::read)
            .optional()
            .map_err(self.wrong())
    }

    /// The sessions heard of last, the newest first.
    pub fn sessions(&self, most: u32) -> Result<Vec<StoredSession>, StoreError> {
        self.some_sessions("?1 = ''", "", most)
    }

    /// Sessions whose name begins like this, the newest first.
    pub fn sessions_like(&self, beginning: &str, most: u32) -> Result<Vec<StoredSession>, StoreError> {
        self.some_sessions("substr(name, 1, length(?1)) = ?1", beginning, most)
    }

    fn some_sessions(&self, which: &str, text: &str, most: u32) -> Result<Vec<StoredSession>, StoreError> {
        let columns = StoredSession::COLUMNS;
        let sql =
            format!("SELECT {columns} FROM session WHERE {which} ORDER BY last_at DESC, id DESC LIMIT ?2");
        let wrong = self.wrong();
        let mut statement = self.connection.prepare(&sql).map_err(&wrong)?;
        let rows = statement.query_map((text, most), StoredSession::read).map_err(&wrong)?;
        rows::readable("session", rows).map_err(wrong)
    }

    /// The newest place of the timeline. Everything up to it can be read.
    pub fn newest(&self) -> Result<Bookmark, StoreError> {
        self.connection
            .prepare_cached("SELECT ifnull(max(seq), 0) FROM event")
            .and_then(|mut statement| statement.query_row([], |row| row.lenient::<i64>(0)))
            .map(|seq| Bookmark(seq.unsigned_abs()))
            .map_err(self.wrong())
    }

    /// The place just before the last `count` wanted events.
    pub fn before_last(&self, wanted: &Wanted<'_>, count: u64) -> Result<Bookmark, StoreError> {
        let (condition, mut values) = wanted.condition();
        let sql = format!(
            "SELECT min(seq) - 1 FROM (SELECT seq FROM event WHERE true{condition} ORDER BY seq DESC LIMIT ?)"
        );
        values.push(Sql::Integer(i64::try_from(count).unwrap_or(i64::MAX)));
        let found = self.connection.query_row(&sql, params_from_iter(values), |row| row.lenient(0));
        let found: Option<i64> = match found {
            // Not all of them can be counted: somewhat fewer are shown.
            Err(error) if rows::is_damage(&error) => {
                return Ok(Bookmark(self.newest()?.0.saturating_sub(count)));
            }
            found => found.map_err(self.wrong())?,
        };
        match found {
            Some(seq) => Ok(Bookmark(seq.max(0).unsigned_abs())),
            None => self.newest(),
        }
    }

    /// Hands over every wanted event after one place and up to another, in order, and stops at the first that is refused.
    pub fn events<E: From<StoreError>>(
        &self,
        wanted: &Wanted<'_>,
        after: Bookmark,
        up_to: Bookmark,
        mut each: impl FnMut(StoredEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut seen = after;
        loop {
            let page = self.page(wanted, seen, up_to)?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            seen = Bookmark(last.unsigned_abs());
            let is_last = page.len() < PAGE;
            page.into_iter().filter_map(|(_, event)| event).try_for_each(&mut each)?;
            if is_last {
                return Ok(());
            }
        }
    }

    /// Events by their numbers; those that cannot be read whole are left out.
    fn page(
        &self,
        wanted: &Wanted<'_>,
        after: Bookmark,
        up_to: Bookmark,
    ) -> Result<Vec<(i64, Option<StoredEvent>)>, StoreError> {
        let (condition, values) = wanted.condition();
        let sql = format!(
            "SELECT {COLUMNS} FROM event LEFT JOIN session ON session.id = event.session
             WHERE event.seq > ? AND event.seq <= ?{condition} ORDER BY event.seq LIMIT {PAGE}"
        );
        // A bookmark from another program may be any number.
        let place = |bookmark: Bookmark| i64::try_from(bookmark.0).unwrap_or(i64::MAX);
        let mut found = Vec::new();
        let read_on = |after: i64, seen: &mut i64| {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let places = [after, place(up_to)].into_iter().map(Sql::Integer);
            let mut rows = statement.query(params_from_iter(places.chain(values.iter().cloned())))?;
            while let Some(row) = rows.next()? {
                let number: i64 = row.get(0)?;
                rows::take_replaced();
                let event = Some(StoredEvent::read(row)?).filter(|_| !rows::take_replaced());
                if event.is_none() {
                    rows::skip("event", Some(number));
                }
                found.push((number, event));
                *seen = number;
            }
            Ok(())
        };
        rows::over_gaps("event", place(after), read_on).map_err(self.wrong())?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, SampleCall};

    /// The places of the wanted events after `after`.
    fn places(sample: &Sample, wanted: Wanted<'_>, after: u64) -> Vec<u64> {
        let (mut places, store) = (Vec::new(), &sample.store);
        let newest = store.newest().unwrap();
        store
            .events(&wanted, Bookmark(after), newest, |event| {
                places.push(event.seq.0);
                Ok::<(), StoreError>(())
            })
            .unwrap();
        places
    }

    #[test]
    fn every_event_comes_once_and_in_order_over_any_number_of_pages() {
        let sample = Sample::empty();
        let one = sample.session("one", 0);
        let count = 3 * PAGE as u64 + 7;
        (0..count).for_each(|_| sample.event(0, "progress", "tool:start", Some(one), None, ""));
        assert_eq!(places(&sample, Wanted::default(), 0), (1..=count).collect::<Vec<_>>());
        assert_eq!(places(&sample, Wanted::default(), count - 2), [count - 1, count]);
        assert_eq!(places(&sample, Wanted::default(), count), [0; 0]);
        assert_eq!(places(&sample, Wanted::default(), u64::MAX), [0; 0]);
    }

    #[test]
    fn a_session_and_a_channel_narrow_what_comes() {
        let sample = Sample::empty();
        let (one, other) = (sample.session("one", 0), sample.session("other", 0));
        for (session, channel) in
            [(one, "progress"), (other, "progress"), (one, "control"), (one, "progress")]
        {
            sample.event(0, channel, "ask", Some(session), None, "");
        }
        let session = |session| Wanted { session: Some(session), ..Wanted::default() };
        assert_eq!(places(&sample, session(one), 0), [1, 3, 4]);
        assert_eq!(places(&sample, session(other), 0), [2]);
        assert_eq!(places(&sample, session(99), 0), [0; 0]);
        let control = Wanted { channel: Some(Channel::Control), ..Wanted::default() };
        assert_eq!(places(&sample, control, 0), [3]);
        assert_eq!(places(&sample, Wanted { session: Some(other), ..control }, 0), [0; 0]);
    }

    #[test]
    fn a_server_narrows_what_comes_to_itself_and_to_calls_of_its_tools() {
        let sample = Sample::empty();
        let one = sample.session("one", 0);
        for tool in ["mcp__files__read", "Bash", "mcp__web__read", "mcp_files_read", "mcp__files2__read"] {
            let call = sample.call(&SampleCall { session: one, tool, ..SampleCall::default() });
            sample.event(0, "progress", "tool:start", Some(one), Some(call), "");
        }
        for server in ["files", "web"] {
            sample.sql(&format!(
                "INSERT INTO event (at, channel, type, session, body)
                 VALUES (0, 'monitor', 'server:exited', 1, '{{\"server\":\"{server}\"}}')"
            ));
        }
        sample.sql(
            "INSERT INTO event (at, channel, type, body) VALUES (0, 'monitor', 'server:new', 'no JSON')",
        );
        sample.event(0, "monitor", "own_fault", None, None, "files");
        let of = |server| Wanted { server: Some(server), ..Wanted::default() };
        assert_eq!(places(&sample, of("files"), 0), [1, 4, 6]);
        assert_eq!(places(&sample, of("web"), 0), [3, 7]);
        assert_eq!(places(&sample, of("fil"), 0), [0; 0]);
        assert_eq!(places(&sample, Wanted { session: Some(99), ..of("files") }, 0), [0; 0]);
        assert_eq!(sample.store.before_last(&of("files"), 1).unwrap(), Bookmark(5));
    }

    #[test]
    fn the_last_few_begin_after_the_one_before_them() {
        let sample = Sample::empty();
        let store = &sample.store;
        assert_eq!(store.before_last(&Wanted::default(), 50).unwrap(), Bookmark(0));
        let (one, other) = (sample.session("one", 0), sample.session("other", 0));
        for session in [one, other, one, other, one] {
            sample.event(0, "progress", "tool:start", Some(session), None, "");
        }
        let check = |wanted: Wanted<'_>, count, expected| {
            assert_eq!(store.before_last(&wanted, count).unwrap(), Bookmark(expected));
        };
        check(Wanted::default(), 2, 3);
        check(Wanted::default(), 50, 0);
        check(Wanted::default(), u64::MAX, 0);
        check(Wanted { session: Some(other), ..Wanted::default() }, 1, 3);
        check(Wanted { session: Some(99), ..Wanted::default() }, 1, 5);
    }

    #[test]
    fn a_purge_makes_no_place_come_twice() {
        let sample = Sample::empty();
        let one = sample.session("one", 0);
        (0..5).for_each(|_| sample.event(0, "progress", "tool:start", Some(one), None, ""));
        sample.sql("DELETE FROM event");
        assert_eq!(sample.store.newest().unwrap(), Bookmark(0));
        sample.event(0, "progress", "tool:end", Some(one), None, "");
        assert_eq!(places(&sample, Wanted::default(), 5), [6]);
    }

    #[test]
    fn what_a_newer_version_wrote_is_handed_on_whole() {
        let sample = Sample::empty();
        sample.event(0, "telepathy", "thought", Some(sample.session("one", 0)), None, "of sheep");
        sample.sql("DELETE FROM session");
        let event =
            sample.store.page(&Wanted::default(), Bookmark(0), Bookmark(9)).unwrap().remove(0).1.unwrap();
        let shown = (&*event.channel, &*event.kind, event.session, &*event.body);
        assert_eq!(shown, ("telepathy", "thought", None, r#"{"text":"of sheep"}"#));
    }

    #[test]
    fn a_session_is_found_by_its_name_or_by_its_beginning() {
        let sample = Sample::empty();
        let ids = ["abc-1", "abc-2", "b%"].map(|name| sample.session(name, 0));
        let store = &sample.store;
        assert_eq!(store.session("abc-1").unwrap().map(|session| session.id), Some(ids[0]));
        assert_eq!(store.session("abc").unwrap(), None);
        let like =
            |text| store.sessions_like(text, 9).unwrap().into_iter().map(|it| it.name).collect::<Vec<_>>();
        assert_eq!(like("abc"), ["abc-2", "abc-1"]);
        assert_eq!(like("%"), [""; 0]);
        assert_eq!(store.sessions(2).unwrap().len(), 2);
    }
}
