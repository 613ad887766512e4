//! Something that happened to a call or to unstuck itself, as it travels over the bus. Making one costs no JSON and no
//! formatting; its shape as JSON is made when somebody asks.

use std::sync::Arc;

use serde_json::Value;
use unstuck_store::{Bookmark, CallState, Channel, EventType, StoredEvent};

use super::shape;
use crate::call::{CallInfo, Session};

/// Something that happened. Which types there are, and the fields of each, stands in `docs/events.md`.
#[derive(Debug, Clone)]
pub struct Event {
    bookmark: Option<Bookmark>,
    at: u64,
    kind: EventKind,
    session: Option<Session>,
    call: Option<Arc<CallInfo>>,
    body: Body,
}

/// What it is.
#[derive(Debug, Clone)]
pub(crate) enum EventKind {
    Known(EventType),
    /// Only a newer version knows it. It is handed on as it is.
    Foreign {
        kind: Box<str>,
        channel: Box<str>,
    },
}

/// What is told beside the type.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// An attempt begins.
    Started { attempt: u32 },
    /// It ended.
    Ended { ok: bool, state: CallState, took_ms: u64 },
    /// The fields, as they stand in the page.
    Json(Value),
    /// The same as text, from the store, with the number the call has there.
    Stored { text: Box<str>, call: Option<i64> },
}

impl Event {
    /// Without a `session`, it is that of the call.
    pub(crate) fn new(
        kind: EventType,
        at: u64,
        session: Option<Session>,
        call: Option<Arc<CallInfo>>,
        body: Body,
    ) -> Event {
        Event { bookmark: None, at, kind: EventKind::Known(kind), session, call, body }
    }

    /// An event of the store, with the call it is of where that is one of this process.
    pub(crate) fn stored(stored: StoredEvent, info: Option<Arc<CallInfo>>) -> Event {
        let StoredEvent { seq, at, channel, kind, session, call, body, link: _ } = stored;
        let kind = match kind.parse() {
            Ok(known) => EventKind::Known(known),
            Err(_) => EventKind::Foreign { kind: kind.into(), channel: channel.into() },
        };
        let body = Body::Stored { text: body.into(), call };
        Event { bookmark: Some(seq), at, kind, session: session.map(Session::from), call: info, body }
    }

    /// Its place in the timeline: whoever subscribes [`from`](super::Subscription::from) it gets what follows. Nothing where it
    /// could not be recorded.
    pub fn bookmark(&self) -> Option<Bookmark> {
        self.bookmark
    }

    /// When, in milliseconds since 1970.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Who it is for. A channel that only a newer version knows counts as [`Channel::Monitor`].
    pub fn channel(&self) -> Channel {
        match &self.kind {
            EventKind::Known(kind) => kind.channel(),
            EventKind::Foreign { channel, .. } => channel.parse().unwrap_or(Channel::Monitor),
        }
    }

    /// What it is, for example `tool:error`.
    pub fn kind(&self) -> &str {
        match &self.kind {
            EventKind::Known(kind) => kind.word(),
            EventKind::Foreign { kind, .. } => kind,
        }
    }

    /// The session it belongs to.
    pub fn session(&self) -> Option<&str> {
        let session = self.session.as_ref().or_else(|| self.call.as_ref().map(|call| call.session()));
        session.map(Session::as_str)
    }

    /// The call it tells of, where that was made in this process.
    pub fn call(&self) -> Option<&CallInfo> {
        self.call.as_deref()
    }

    /// The event as JSON, in the shape of version 1: `v`, `channel`, `type`, `bookmark`, `at`, `session`, and the fields of its
    /// type. Within a version fields are only added.
    pub fn to_json(&self) -> Value {
        shape::to_json(self)
    }

    /// One field of [`to_json`](Event::to_json). For several, ask for all at once.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.to_json().get_mut(key).map(Value::take)
    }

    pub(super) fn at_place(self, bookmark: Option<Bookmark>) -> Event {
        Event { bookmark, ..self }
    }

    pub(super) fn event_kind(&self) -> &EventKind {
        &self.kind
    }

    pub(super) fn body(&self) -> &Body {
        &self.body
    }
}
