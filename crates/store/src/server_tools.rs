//! The tools that servers offered last, over all sessions: a server that describes a tool otherwise than when somebody allowed
//! it is told of. Of a description only a digest is kept.

use std::collections::{BTreeMap, HashMap};

use rusqlite::Connection;
use unstuck_wire::clean::Clean;

use crate::error::StoreError;
use crate::rows::Lenient;
use crate::store::Store;

/// The table of offered tools, which format 3 brought.
pub(crate) const TABLE: &str = include_str!("server_tools.sql");

/// A tool as a server offers it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OfferedTool {
    /// The server's own name for it.
    pub name: Clean,
    /// Two definitions that say the same have the same.
    pub digest: String,
}

/// How a list of tools differs from the last one, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolChanges {
    /// Were not offered the last time.
    pub added: Vec<Clean>,
    /// Are not offered any more.
    pub removed: Vec<Clean>,
    /// Are defined otherwise than when they were last offered.
    pub changed: Vec<Clean>,
}

impl ToolChanges {
    /// Is it the same list?
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

impl Store {
    /// Writes down which tools a server offers now, and says how they differ from the last time. Whoever sees a server for the
    /// first time sees no difference.
    pub fn tools_seen(
        &mut self,
        server: &Clean,
        offered: &[OfferedTool],
        at: u64,
    ) -> Result<ToolChanges, StoreError> {
        self.write(|connection| seen(connection, server, offered, at))
    }
}

fn seen(
    connection: &Connection,
    server: &str,
    offered: &[OfferedTool],
    at: u64,
) -> Result<ToolChanges, rusqlite::Error> {
    let known: HashMap<String, (String, bool)> = connection
        .prepare_cached("SELECT tool, digest, offered FROM server_tool WHERE server = ?1")?
        .query_map([server], |row| Ok((row.lenient(0)?, (row.lenient(1)?, row.lenient(2)?))))?
        .collect::<Result<_, _>>()?;
    // A name that is offered twice counts as it is offered last, as it does for those who call it.
    let offered: BTreeMap<&str, &OfferedTool> = offered.iter().map(|tool| (&*tool.name, tool)).collect();
    let mut changes = ToolChanges::default();
    let mut insert = connection.prepare_cached(
        "INSERT INTO server_tool VALUES (?1, ?2, ?3, ?4, ?4, 1)
         ON CONFLICT DO UPDATE SET digest = excluded.digest, last_at = excluded.last_at, offered = 1",
    )?;
    for tool in offered.values() {
        match known.get(&*tool.name) {
            // One that was away and came back as another is not merely new.
            Some((digest, _)) if *digest != tool.digest => changes.changed.push(tool.name.clone()),
            Some((_, true)) => {}
            Some((_, false)) | None => changes.added.push(tool.name.clone()),
        }
        insert.execute((server, &*tool.name, &tool.digest, at.cast_signed()))?;
    }
    let mut leave =
        connection.prepare_cached("UPDATE server_tool SET offered = 0 WHERE server = ?1 AND tool = ?2")?;
    for (tool, (_, was_offered)) in &known {
        if *was_offered && !offered.contains_key(&**tool) {
            leave.execute((server, tool))?;
            changes.removed.push(Clean::stored(tool.clone()));
        }
    }
    changes.removed.sort_unstable();
    Ok(if known.is_empty() { ToolChanges::default() } else { changes })
}

/// Forgets tools that were last offered before a moment, at most `most` of them. Returns how many there were.
pub(crate) fn forget(connection: &Connection, cut: i64, most: u32) -> Result<usize, rusqlite::Error> {
    let sql = "DELETE FROM server_tool WHERE (server, tool) IN
                 (SELECT server, tool FROM server_tool WHERE last_at < ?1 LIMIT ?2)";
    connection.prepare_cached(sql)?.execute((cut, most))
}

#[cfg(test)]
mod tests {
    use unstuck_wire::clean::Cleaner;

    use super::*;
    use crate::entry::NAME_MAX;
    use crate::purge::{CopiesToo, Purge};
    use crate::retention::Retention;
    use crate::sample::Sample;

    fn tool(name: &str, says: &str) -> OfferedTool {
        OfferedTool { name: Cleaner::new(None, []).name(name, NAME_MAX), digest: says.to_owned() }
    }

    fn shown(changes: &ToolChanges) -> String {
        let names = |names: &[Clean]| names.iter().map(|name| &**name).collect::<Vec<_>>().join(" ");
        let ToolChanges { added, removed, changed } = changes;
        format!("+{} -{} ~{}", names(added), names(removed), names(changed))
    }

    #[test]
    fn a_list_of_tools_is_compared_with_the_last_one_of_the_same_server() {
        let mut sample = Sample::empty();
        let mut at = 0;
        let mut check = |server: &'static str, tools: &[(&str, &str)], expected: &str| {
            let offered: Vec<OfferedTool> = tools.iter().map(|(name, says)| tool(name, says)).collect();
            at += 1;
            let changes = sample.store.tools_seen(&Clean::from(server), &offered, at).unwrap();
            assert_eq!(shown(&changes), expected, "{tools:?}");
            assert_eq!(changes.is_empty(), expected == "+ - ~");
        };
        check("files", &[("read", "Reads."), ("write", "Writes.")], "+ - ~");
        check("files", &[("write", "Writes."), ("read", "Reads.")], "+ - ~");
        check("other", &[("read", "Reads anything.")], "+ - ~");
        check("files", &[("read", "Reads, and sends it away."), ("write", "Writes.")], "+ - ~read");
        check("files", &[("find", "Finds."), ("write", "Writes.")], "+find -read ~");
        // Whoever was away and comes back is known.
        check("files", &[("find", "Finds."), ("read", "Reads."), ("write", "Writes.")], "+ - ~read");
        check("files", &[], "+ -find read write ~");
        check("files", &[("find", "Finds.")], "+find - ~");
        assert_eq!(sample.number("SELECT first_at FROM server_tool WHERE tool = 'find'"), 5);
        assert_eq!(sample.number("SELECT count(*) FROM server_tool"), 4);
    }

    #[test]
    fn tools_that_were_last_offered_long_ago_go_with_the_rest_of_that_time() {
        let day = 86_400_000;
        let offered = |name: &str| [tool(name, "")];
        let left = |sample: &Sample| sample.text("SELECT group_concat(tool) FROM server_tool");
        let filled = || {
            let mut sample = Sample::empty();
            sample.store.tools_seen(&Clean::from("a"), &offered("old"), day).unwrap();
            sample.store.tools_seen(&Clean::from("b"), &offered("new"), 300 * day).unwrap();
            sample
        };
        let mut sample = filled();
        sample.store.expire(&Retention::default(), 301 * day, &mut |_| true).unwrap();
        assert_eq!(left(&sample), "new");
        let mut sample = filled();
        sample.store.purge(&Purge::Before(2 * day), CopiesToo::All, &mut |_| {}).unwrap();
        assert_eq!(left(&sample), "new");
    }
}
