//! What lies between us and a server, whatever it is: a process or a host. Frames go in and come out as they are; a link
//! understands nothing of them but what its own way of transport needs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use unstuck::CancellationToken;
use unstuck_wire::mcp::{Glimpse, Id};

use super::loads::{Load, Loads};

/// Both ends of a link to a server.
pub(crate) struct Link {
    /// What is said to the server, in order. It never waits: what is held up is bounded by whoever reads from the client.
    pub(crate) to: mpsc::UnboundedSender<Outbound>,
    /// What comes back. When it ends, the link is gone.
    pub(crate) from: mpsc::Receiver<Heard>,
    /// The server itself is gone, also where nobody hears it any more.
    pub(crate) over: CancellationToken,
}

/// One frame for the server, without a line end.
#[derive(Debug)]
pub(crate) struct Outbound {
    /// Shared with whoever may have to say it again.
    pub(crate) frame: Bytes,
    /// What it asks; nothing where it is a notification or an answer.
    pub(crate) asks: Option<Asks>,
    /// What is asked in it, where it is a batch.
    pub(crate) batch: Vec<Id>,
    /// Counts as long as it is under way.
    _load: Option<Load>,
}

impl Outbound {
    pub(crate) fn new(frame: impl Into<Bytes>, asks: Option<Asks>) -> Outbound {
        Outbound { frame: frame.into(), asks, batch: Vec::new(), _load: None }
    }

    /// Several messages in one, which ask for these.
    pub(crate) fn batch(frame: Bytes, batch: Vec<Id>) -> Outbound {
        Outbound { batch, ..Outbound::new(frame, None) }
    }

    /// The names of all that it asks.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &Id> {
        self.asks.iter().map(|asks| &asks.id).chain(&self.batch)
    }

    /// The same, counted among all that is under way to the server.
    pub(crate) fn counted(self, all: &Arc<Loads>) -> Outbound {
        Outbound { _load: Some(all.load(self.frame.len())), ..self }
    }
}

/// One frame for the client, without a line end.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) frame: Vec<u8>,
    /// Counts as long as it is under way; nothing for what we say ourselves.
    load: Option<Load>,
}

impl Inbound {
    /// What came from the server, counted among all that does.
    pub(crate) fn counted(frame: Vec<u8>, all: &Arc<Loads>) -> Inbound {
        let load = Some(all.load(frame.len()));
        Inbound { frame, load }
    }

    /// The frame, and what counts for it.
    pub(crate) fn apart(self) -> (Vec<u8>, Option<Load>) {
        (self.frame, self.load)
    }
}

impl From<Vec<u8>> for Inbound {
    fn from(frame: Vec<u8>) -> Inbound {
        Inbound { frame, load: None }
    }
}

impl From<(Vec<u8>, Option<Load>)> for Inbound {
    fn from((frame, load): (Vec<u8>, Option<Load>)) -> Inbound {
        Inbound { frame, load }
    }
}

/// What a request asks for, as far as a transport has to say it beside the frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asks {
    pub(crate) id: Id,
    pub(crate) method: String,
    /// The tool, prompt or resource, where the method is about one.
    pub(crate) name: Option<String>,
}

/// What comes from a link.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A frame.
    Frame(Inbound),
    /// Something that is no frame, and why it was let go: its beginning, for whoever looks for the cause.
    Noise { begins: String, why: Noise },
    /// A message that is not taken, as far as its name is known.
    Refused { glimpse: Glimpse, why: Noise },
    /// A request that will have no answer. The link itself lives.
    Unanswered { id: Id, why: Unanswered },
    /// A line that the server wrote for people.
    Remark(String),
    /// The session is over, and with it all that was under way, but the server lives. Nothing comes after it.
    Expired(Gone),
    /// The server is gone, and with it all that was under way. Nothing comes after it.
    Gone(Gone),
}

/// Why something from the server is no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noise {
    /// It has no end, or one beyond the most that is taken.
    TooLong { most: usize },
    /// It is no text.
    NotText,
}

impl Noise {
    /// As it stands behind "it is".
    pub(crate) fn in_words(self) -> String {
        match self {
            Noise::TooLong { most } => format!("longer than {} MB", most / 1024 / 1024),
            Noise::NotText => "not text".to_owned(),
        }
    }
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unanswered {
    /// In words, as far as possible those of the other side.
    pub(crate) words: String,
    /// The HTTP status, where there was one.
    pub(crate) http_status: Option<u16>,
    /// After how long the other side wants to be asked again.
    pub(crate) retry_after: Option<Duration>,
    /// Is it certain that the server never saw it?
    pub(crate) never_reached: bool,
    /// Whoever asked has to know it at once, also where it may work later.
    pub(crate) is_final: bool,
}

/// How a server went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gone {
    /// In words: `exited with code 1`, `ended by signal 9`, `closed its output`, `the session expired`.
    pub(crate) words: String,
    /// The exit code to pass on, where it was a process.
    pub(crate) code: Option<i32>,
}
