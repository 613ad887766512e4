//! Whether the server is there, and what becomes of whom waits for it when it is not.

use std::collections::HashSet;

use bytes::Bytes;
use tokio::sync::mpsc;
use unstuck_wire::mcp::{self, ErrorCode, Id};

use super::{Delivery, Switchboard, Waiting};
use crate::mcp::link::{Asks, Outbound, Unanswered};

/// Where the server is.
pub(in crate::mcp) enum Presence {
    /// It can be talked to.
    Up(mpsc::UnboundedSender<Outbound>),
    /// It is being started: what is said to it waits.
    Starting,
    /// It is not there, and is started when somebody wants something of it.
    Away,
    /// It has died too often, and is left alone for a while.
    Shut { why: String, until: tokio::time::Instant },
    /// It will not come back.
    Over(String),
}

/// What has to be said again to a server that was started again.
#[derive(Debug, Clone, Default)]
pub(in crate::mcp) struct Handshake {
    /// The parameters of `initialize`; nothing in the stateless era.
    pub(in crate::mcp) initialize: Option<String>,
    pub(in crate::mcp) is_answered: bool,
    /// The frame of `notifications/initialized`.
    pub(in crate::mcp) initialized: Option<Bytes>,
    /// Requests that change what the server does by itself: the level of its log, and what it tells changes of.
    pub(in crate::mcp) wishes: Vec<Wish>,
}

/// A request that changes what the server does by itself.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct Wish {
    pub(in crate::mcp) method: &'static str,
    /// The resource that it is about, where it is about one.
    about: Option<String>,
    pub(in crate::mcp) params: String,
}

impl Handshake {
    /// Remembers a wish in the place of the one before about the same.
    pub(super) fn wish(&mut self, method: &'static str, about: Option<String>, params: String) {
        self.forget(method, &about);
        self.wishes.push(Wish { method, about, params });
    }

    /// A wish is taken back.
    pub(super) fn forget(&mut self, method: &str, about: &Option<String>) {
        self.wishes.retain(|wish| wish.method != method || wish.about != *about);
    }
}

impl Presence {
    /// Why nothing can be said to the server, where that is so.
    pub(super) fn why_not(&self) -> Option<Unanswered> {
        let (words, retry_after) = match self {
            Presence::Up(_) | Presence::Starting | Presence::Away => return None,
            Presence::Shut { why, until } => {
                (why.clone(), Some(until.saturating_duration_since(tokio::time::Instant::now())))
            }
            Presence::Over(why) => (why.clone(), None),
        };
        Some(Unanswered { words, http_status: None, retry_after, never_reached: true, is_final: true })
    }
}

impl Switchboard {
    /// Something is said to the server, or waits until it can be. It is the way out of a lane.
    pub(in crate::mcp) fn deliver(&self, delivery: Delivery) {
        let Delivery { outbound, waiting } = delivery;
        // It was taken back while it waited for its turn.
        if matches!(&waiting, Some(Waiting::Us(tell)) if tell.is_closed()) {
            return;
        }
        let outbound = outbound.counted(&self.loads);
        let lost = {
            let mut state = self.lock();
            match state.presence.why_not() {
                Some(why) => waiting.map(|waiting| (outbound.asks.map(|asks| asks.id), waiting, why)),
                None => {
                    if let (Some(asks), Some(waiting)) = (&outbound.asks, waiting) {
                        state.wait_for(asks.id.clone(), waiting);
                    }
                    match &state.presence {
                        Presence::Up(to) => {
                            // Where it is just gone, whoever waits is told by its end.
                            let _it_is_gone = to.send(outbound);
                        }
                        Presence::Away => {
                            state.held.push(outbound);
                            self.wanted.notify_one();
                        }
                        Presence::Starting | Presence::Shut { .. } | Presence::Over(_) => {
                            state.held.push(outbound)
                        }
                    }
                    None
                }
            }
        };
        if let Some((name, waiting, why)) = lost {
            self.lose(name.as_ref(), waiting, why);
        }
    }

    /// The server is gone, and comes back or not: whoever waits for something that it may have begun is told so. What only
    /// asked is asked again, once, where it comes back.
    pub(in crate::mcp) fn gone(&self, presence: Presence, words: &str) {
        let comes_back = matches!(presence, Presence::Starting);
        let (lost, abandoned, unread) = {
            let mut state = self.lock();
            state.presence = presence;
            let abandoned = state.questions.abandon();
            state.taken_back.clear();
            let waiting = std::mem::take(&mut state.waiting);
            state.doubtful.clear();
            let unread = state.unread.drain();
            let named = |(id, all): (Id, Vec<_>)| all.into_iter().flatten().map(move |_: u64| id.clone());
            let unread: Vec<Id> = unread.flat_map(named).collect();
            let held: HashSet<Id> = state.held.iter().flat_map(Outbound::ids).cloned().collect();
            let mut lost = Vec::new();
            for (id, waiting) in waiting {
                match waiting {
                    // It waits to be said, and nobody has heard it.
                    waiting if comes_back && held.contains(&id) => drop(state.waiting.insert(id, waiting)),
                    Waiting::Client(mut request) if comes_back && request.again.is_some() => {
                        let frame = request.again.take().unwrap_or_default();
                        let asks = Some(Asks { id: id.clone(), method: request.method.clone(), name: None });
                        state.held.push(Outbound::new(frame, asks));
                        state.waiting.insert(id, Waiting::Client(request));
                    }
                    waiting => lost.push((held.contains(&id), id, waiting)),
                }
            }
            if !comes_back {
                state.held.clear();
            }
            (lost, abandoned, unread)
        };
        for name in abandoned {
            self.out.push(mcp::cancelled(&name, words));
        }
        for id in unread {
            let words = format!("{words} (unstuck)");
            self.out.push(mcp::failed(Some(&id), ErrorCode::ServerGone, &words, None));
        }
        for (never_reached, id, waiting) in lost {
            let words = words.to_owned();
            self.lose(
                Some(&id),
                waiting,
                Unanswered { words, http_status: None, retry_after: None, never_reached, is_final: false },
            );
        }
    }

    /// What has to be said to a server that was started again before anything else. What of it waited to be said need not be
    /// said twice.
    pub(in crate::mcp) fn introduction(&self) -> Handshake {
        let mut state = self.lock();
        let handshake = state.handshake.clone();
        if handshake.is_answered
            && let Some(initialized) = &handshake.initialized
        {
            state.held.retain(|held| held.frame != *initialized);
        }
        handshake
    }

    /// The server is there again, and hears what waited for it.
    pub(in crate::mcp) fn up(&self, to: mpsc::UnboundedSender<Outbound>) {
        let mut state = self.lock();
        for outbound in std::mem::take(&mut state.held) {
            let _it_is_gone = to.send(outbound);
        }
        state.presence = Presence::Up(to);
    }

    /// The server stays away until somebody wants it, or for good.
    pub(in crate::mcp) fn set(&self, presence: Presence) {
        self.lock().presence = presence;
    }

    /// The server stays away until somebody wants it, unless somebody does already.
    pub(in crate::mcp) fn rest(&self) {
        let mut state = self.lock();
        if state.waiting.is_empty() && state.held.is_empty() {
            state.presence = Presence::Away;
        }
    }

    /// Does something wait to be said to it?
    pub(in crate::mcp) fn is_awaited(&self) -> bool {
        !self.lock().held.is_empty()
    }

    /// Is it left until somebody wants it?
    pub(in crate::mcp) fn is_away(&self) -> bool {
        matches!(self.lock().presence, Presence::Away)
    }

    /// Somebody waits for an answer to a request that is sent past everything else.
    pub(in crate::mcp) fn expect(&self, id: &Id, waiting: Waiting) {
        self.lock().waiting.insert(id.clone(), waiting);
    }

    /// Asks a server for a sign of life. One that is not there is not asked.
    pub(in crate::mcp) fn probe(&self, id: &Id, waiting: Waiting) -> bool {
        let mut state = self.lock();
        let method = if state.handshake.initialize.is_some() { "ping" } else { "server/discover" };
        let asks = Some(Asks { id: id.clone(), method: method.to_owned(), name: None });
        let probe = Outbound::new(mcp::request(id, method, "{}"), asks);
        let is_asked = match &state.presence {
            Presence::Up(to) => to.send(probe).is_ok(),
            Presence::Starting | Presence::Away | Presence::Shut { .. } | Presence::Over(_) => false,
        };
        if is_asked {
            state.waiting.insert(id.clone(), waiting);
        }
        is_asked
    }

    /// Nobody waits for an answer any more. Tells whether the server may have heard the question.
    pub(in crate::mcp) fn forget(&self, id: &Id) -> bool {
        let mut state = self.lock();
        let may_be_heard = state.waiting.remove(id).is_some() && !state.unsay(id);
        if may_be_heard {
            state.take_back(id);
        }
        may_be_heard
    }
}
