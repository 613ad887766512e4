//! Tells whether a server was ever heard of, and which one may have been meant where it was not.

use std::collections::BTreeSet;

use serde_json::Value;
use unstuck_store::{Bookmark, Channel, GroupBy, StatsKey, StatsScope, Store, StoreError, Wanted};

use crate::nearest::nearest;

/// What the record knows of a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// There are events of such a server.
    Of,
    /// There are none; this one has a name much like it.
    Never { nearest: Option<String> },
}

/// Looks for a server in the whole record.
pub(crate) fn heard_of(store: &Store, server: &str) -> Result<Heard, StoreError> {
    let newest = store.newest()?;
    let wanted = Wanted { server: Some(server), ..Wanted::default() };
    if store.before_last(&wanted, 1)? < newest {
        return Ok(Heard::Of);
    }
    let names = names(store, newest)?;
    Ok(Heard::Never { nearest: nearest(server, names.iter().map(String::as_str)).map(str::to_owned) })
}

/// The names of all servers: those whose tools were called, and those that something happened to.
fn names(store: &Store, newest: Bookmark) -> Result<BTreeSet<String>, StoreError> {
    let called = store.stats(&StatsScope::default(), Some(GroupBy::Server))?;
    let name = |key| match key {
        StatsKey::Name(name) => Some(name),
        StatsKey::All | StatsKey::Day(_) => None,
    };
    let mut names: BTreeSet<String> = called.into_iter().filter_map(|(key, _)| name(key)).collect();
    let wanted = Wanted { channel: Some(Channel::Monitor), ..Wanted::default() };
    store.events(&wanted, Bookmark(0), newest, |event| {
        if event.kind.starts_with("server:") {
            let body: Value = serde_json::from_str(&event.body).unwrap_or_default();
            names.extend(body["server"].as_str().map(str::to_owned));
        }
        Ok::<(), StoreError>(())
    })?;
    Ok(names)
}
