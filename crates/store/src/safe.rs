//! What happened in the safe, as the timeline tells it. The safe itself is another room: here are only its words.

use serde_json::{Value, json};
use unstuck_judge::vocabulary;
use unstuck_wire::clean::Clean;

use crate::event::{self, EventType, NewEvent};
use crate::record::{Clerk, Said};
use crate::rows::Lenient;
use crate::stance::UNPROTECTED;
use crate::state::CallState;
use crate::{life, session};

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
    /// None could be taken of what a call puts at risk.
    Unprotected {
        /// What became of the call.
        instead: Instead,
        /// What was said about it, to a model or to a person.
        said: Clean,
    },
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
    Removed {
        /// What it was too much of: `count`, `age`, `size`; empty where somebody removed it.
        over: Clean,
    },
}

vocabulary! {
    /// What became of a call whose files could not be saved.
    Instead {
        /// It ran, and nobody was told: it is only recorded.
        Recorded = "recorded",
        /// It ran, and the model was told.
        Told = "told",
        /// It ran, and the model is told with its result.
        ToldLater = "told_later",
        /// A person was asked.
        Asked = "asked",
        /// It was refused.
        Denied = "denied",
    }
}

impl SafeNote {
    fn kind(&self) -> EventType {
        match self.deed {
            SafeDeed::Taken { .. } => EventType::SnapshotTaken,
            SafeDeed::Failed | SafeDeed::Unprotected { .. } => EventType::SnapshotFailed,
            SafeDeed::Restored { .. } => EventType::SnapshotRestored,
            SafeDeed::Removed { .. } => EventType::SnapshotRemoved,
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
            SafeDeed::Unprotected { instead, .. } => json!({ "instead": instead.word() }),
            SafeDeed::Removed { over } => json!({ "over": name(over) }),
            SafeDeed::Failed => json!({}),
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
        if let (Some(session), Some(call)) = (session, call) {
            match &note.deed {
                SafeDeed::Taken { .. } => self.note_protected(call, note)?,
                SafeDeed::Unprotected { instead, said } => {
                    self.note_unprotected(session, call, note.at, *instead, said)?;
                }
                SafeDeed::Failed | SafeDeed::Restored { .. } | SafeDeed::Removed { .. } => {}
            }
        }
        Ok(Said { call, bookmark: Some(bookmark), ..Said::default() })
    }

    /// A call bears the name of the snapshot that was taken before it, so that whoever tells of its end finds it.
    fn note_protected(&self, call: i64, note: &SafeNote) -> Result<(), rusqlite::Error> {
        let mut life = self.life_of(call)?;
        life::protect(&mut life, note.at, &note.snapshot);
        self.write_life(call, &life)
    }

    /// A call that could not be protected: it was refused, a person was asked, or the model is told.
    fn note_unprotected(
        &self,
        session: i64,
        call: i64,
        at: u64,
        instead: Instead,
        said: &Clean,
    ) -> Result<(), rusqlite::Error> {
        let (state, event) = match instead {
            Instead::Recorded | Instead::Told => return Ok(()),
            Instead::ToldLater => return self.tell_with_result(call, said),
            Instead::Asked => (CallState::ApprovalRequired, EventType::Ask),
            Instead::Denied => (CallState::Denied, EventType::ToolDenied),
        };
        if !self.state_of(call)?.may_become(state) {
            return Ok(());
        }
        let mut life = self.life_of(call)?;
        life::add(&mut life, at, state, said);
        self.write_life(call, &life)?;
        let ended_at = state.is_final().then_some(at.cast_signed());
        let charge = state.is_final().then_some(UNPROTECTED);
        self.connection
            .prepare_cached("UPDATE call SET state = ?2, ended_at = ?3, charge = ?4 WHERE id = ?1")?
            .execute((call, state.word(), ended_at, charge))?;
        let body = json!({ "label": self.label(call)?, "by": "safe", "text": &**said });
        self.append_with_row(at, event, session, call, body).map(|_| ())
    }

    fn life_of(&self, call: i64) -> Result<String, rusqlite::Error> {
        let sql = "SELECT life FROM call_text WHERE call = ?1";
        self.connection.prepare_cached(sql)?.query_row([call], |row| row.lenient(0))
    }

    fn write_life(&self, call: i64, life: &str) -> Result<(), rusqlite::Error> {
        let sql = "UPDATE call_text SET life = ?2 WHERE call = ?1";
        self.connection.prepare_cached(sql)?.execute((call, life)).map(|_| ())
    }

    fn state_of(&self, call: i64) -> Result<CallState, rusqlite::Error> {
        let sql = "SELECT state FROM call WHERE id = ?1";
        let word: String = self.connection.prepare_cached(sql)?.query_row([call], |row| row.lenient(0))?;
        // One that only a newer version knows is not one that this one may move.
        Ok(word.parse().unwrap_or(CallState::Completed))
    }
}
