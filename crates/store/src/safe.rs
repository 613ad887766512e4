//! What happened in the safe, as the timeline tells it. The safe itself is another room: here are only its words.

use serde_json::{Value, json};
use unstuck_wire::clean::Clean;

use crate::event::{self, EventType, NewEvent};
use crate::record::{Clerk, Said};
use crate::session;

/// Something that was done in the safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SafeNote {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Which call it belongs to.
    pub call: SafeCall,
    /// The snapshot's name; empty where none came about.
    pub snapshot: Clean,
    /// What was done.
    pub deed: SafeDeed,
    /// Because of what: `person`, a row of the table of risks, `undo`, `redo`, `restore`, `drop`, `expired`, `purge`.
    pub why: Clean,
    /// The call, a note, or what went wrong, in one line.
    pub text: Clean,
}

/// The call that a snapshot belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SafeCall {
    /// None: a person asked, or its time was over.
    Nobody,
    /// The one with this number.
    Numbered(i64),
    /// The one that its host calls so, where its number is not known.
    Named {
        /// The session's name.
        session: Clean,
        /// The host's name for the call.
        key: Clean,
    },
}

/// What can be done in the safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SafeDeed {
    /// A snapshot was taken.
    Taken {
        /// Files, links and folders in it.
        paths: u64,
        /// Their bytes.
        bytes: u64,
        /// Something could not be taken.
        partial: bool,
    },
    /// None could be taken.
    Failed,
    /// The present was made what it holds.
    Restored {
        /// Paths that were brought back.
        paths: u64,
        /// Bytes that were written for it.
        bytes: u64,
        /// Paths that were left as they are.
        kept: u64,
        /// The snapshot that holds what was there before; empty where nothing was changed.
        saved: Clean,
    },
    /// It is gone.
    Removed,
}

impl SafeNote {
    fn kind(&self) -> EventType {
        match self.deed {
            SafeDeed::Taken { .. } => EventType::SnapshotTaken,
            SafeDeed::Failed => EventType::SnapshotFailed,
            SafeDeed::Restored { .. } => EventType::SnapshotRestored,
            SafeDeed::Removed => EventType::SnapshotRemoved,
        }
    }

    fn body(&self) -> Value {
        let mut body = match &self.deed {
            SafeDeed::Taken { paths, bytes, partial } => {
                json!({ "paths": paths, "bytes": bytes, "partial": partial })
            }
            SafeDeed::Restored { paths, bytes, kept, saved } => {
                json!({ "paths": paths, "bytes": bytes, "kept": kept, "saved": name(saved) })
            }
            SafeDeed::Failed | SafeDeed::Removed => json!({}),
        };
        body["snapshot"] = name(&self.snapshot);
        body["why"] = Value::from(&*self.why);
        body["text"] = Value::from(&*self.text);
        if let SafeCall::Named { key, .. } = &self.call {
            body["key"] = Value::from(&**key);
        }
        body
    }
}

/// The name of a snapshot; nothing where there is none.
fn name(snapshot: &Clean) -> Value {
    match snapshot.is_empty() {
        true => Value::Null,
        false => Value::from(&**snapshot),
    }
}

impl Clerk<'_> {
    /// Tells what was done in the safe, with the call it belongs to as far as that is known.
    pub(crate) fn safe(&self, note: &SafeNote) -> Result<Said, rusqlite::Error> {
        let (session, call) = match &note.call {
            SafeCall::Nobody => (None, None),
            SafeCall::Numbered(call) => (self.session_of(*call)?, Some(*call)),
            SafeCall::Named { session, key } => {
                let session = session::number(self.connection, session)?;
                let found = session.map(|session| self.find(session, key)).transpose()?.flatten();
                (session, found.map(|found| found.id))
            }
        };
        // A call that was purged is not named again.
        let call = call.filter(|_| session.is_some());
        let new = NewEvent { at: note.at, kind: note.kind(), session, call, body: note.body() };
        let bookmark = event::append(self.connection, &new)?;
        Ok(Said { call, bookmark: Some(bookmark), ..Said::default() })
    }
}
