//! A link to a server that speaks Streamable HTTP, in all versions of it: each frame is one POST, and what comes back, as one
//! answer or as a stream of events, is heard as if it had come from a process.
//!
//! Up to 2025-11-25 a server may give us a session, which is named in all that follows, lets it speak on its own in a stream
//! of its own, and can be taken up where a connection broke. From 2026-07-28 on each request stands for itself, and to hang
//! up is to take it back. Which of both it is, each frame says itself.

mod carry;
mod client;
mod connector;
mod flights;
mod line;
mod naming;
mod office;
mod reading;
mod refusal;
mod room;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use tokio::sync::mpsc;
use unstuck::CancellationToken;
use unstuck_judge::Lang;

use super::link::Link;
use super::loads::Loads;
use line::Line;

/// How many may wait to be heard, if they are not too much together. Who does not listen holds up the servers, not our memory.
const HEARD_MAX: usize = 64;

/// Where a server is, and how it is spoken to.
#[derive(Clone)]
pub(crate) struct HttpSettings {
    pub(crate) url: Uri,
    /// What is said with each request: who is asking, most of all. It goes to no other origin and into no words.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// The most bytes of one frame.
    pub(crate) frame_max: usize,
    /// How long it may take until somebody is there to be asked.
    pub(crate) connect_limit: Duration,
    /// In which language is said what can be done about a refusal.
    pub(crate) lang: Lang,
}

impl HttpSettings {
    /// The usual bounds, for an address.
    pub(crate) fn new(url: Uri) -> HttpSettings {
        HttpSettings {
            url,
            headers: Vec::new(),
            frame_max: 256 << 20,
            connect_limit: Duration::from_secs(30),
            lang: Lang::En,
        }
    }
}

/// Opens a link. Nothing is sent before something is said, so it cannot fail.
///
/// When its sender is dropped, all that is under way is let go and the session is given back; [`Link::from`] ends when that
/// is done, within a second or so. Must be called within a runtime.
pub(crate) fn open(settings: HttpSettings, inbound: Arc<Loads>) -> Link {
    let (to, outbound) = mpsc::unbounded_channel();
    let (heard, from) = mpsc::channel(HEARD_MAX);
    let (expired, is_expired) = mpsc::channel(1);
    let over = CancellationToken::new();
    let ended = over.clone();
    tokio::spawn(async move {
        office::run(Line::new(settings, heard, expired, inbound), outbound, is_expired).await;
        ended.cancel();
    });
    Link { to, from, over }
}
