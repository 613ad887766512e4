//! What one subscriber sees of the bus.

use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use unstuck_store::Bookmark;

use super::Channels;
use super::archive::{self, Archive, PAGE, Page};
use super::event::Event;
use super::filter::Filter;
use super::ring::{Found, Gap};

/// How many events are taken at once, so that a subscriber and a publisher seldom meet at the lock.
const BATCH: usize = 64;

/// What a subscriber gets.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Delivery {
    /// Something happened.
    Event(Arc<Event>),
    /// The subscriber was too slow, or came too late, for some of it.
    Missed(Missed),
}

/// Events that a subscriber did not get: they had made room for others before it came to read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missed {
    /// How many that it wanted. Of events that were gone before it subscribed, at most so many: only their types are
    /// remembered.
    pub count: u64,
    /// What is delivered next follows this bookmark.
    pub up_to: Bookmark,
}

/// The events of a bus as a stream: in order, without a gap that is not told, and each once.
///
/// It may be as slow as it likes: nobody waits for it, and it holds no more than a few events. Dropping it ends it.
#[must_use = "nothing is delivered to a subscription that nobody reads"]
pub struct Subscription {
    bus: Arc<Channels>,
    name: u64,
    filter: Filter,
    ready: VecDeque<Arc<Event>>,
    missed: Option<Missed>,
    catching_up: Option<CatchingUp>,
}

/// A gap that is being filled from the archive.
struct CatchingUp {
    archive: Arc<dyn Archive>,
    gap: Gap,
    page: Page,
}

impl CatchingUp {
    fn begin(archive: &Arc<dyn Archive>, gap: Gap) -> CatchingUp {
        let page = archive::read(archive, Bookmark(gap.after), Bookmark(gap.up_to));
        CatchingUp { archive: Arc::clone(archive), gap, page }
    }

    /// Takes what is wanted from a page, and reads the next one where there is one.
    fn turn(
        mut self,
        page: Vec<Event>,
        filter: &Filter,
        into: &mut VecDeque<Arc<Event>>,
    ) -> Result<CatchingUp, Gap> {
        let (before, is_last) = (self.gap.after, page.len() < PAGE);
        for event in page {
            // An archive that is out of order may not put the stream out of order.
            let number = event.bookmark().map_or(0, |bookmark| bookmark.0);
            if number > self.gap.after && number <= self.gap.up_to {
                self.gap.after = number;
                if filter.wants(&event) {
                    self.gap.numbered = self.gap.numbered.saturating_sub(1);
                    into.push_back(Arc::new(event));
                }
            }
        }
        if is_last || self.gap.after == before || self.gap.after == self.gap.up_to {
            return Err(self.gap);
        }
        Ok(CatchingUp::begin(&self.archive, self.gap))
    }
}

impl Subscription {
    pub(super) fn new(bus: Arc<Channels>, filter: Filter) -> Subscription {
        let name = bus.ring.join(filter.clone());
        Subscription { bus, name, filter, ready: VecDeque::new(), missed: None, catching_up: None }
    }

    /// Begins with what follows this bookmark, and goes on with what comes. Without it, the subscription begins where it was
    /// made.
    ///
    /// Events without a bookmark stand behind the one they followed, and come again. With a store, a bookmark that the bus has
    /// not reached yet is waited for; without one it can only be that of another process, and is taken for now.
    pub fn from(mut self, bookmark: Bookmark) -> Subscription {
        if self.bus.archive.is_some() {
            self.filter.set_after(bookmark);
        }
        self.bus.ring.set_sieve(self.name, self.filter.clone());
        self.bus.ring.rewind(self.name, bookmark.0);
        self
    }

    /// Only events of these types: `tool:error`, or all that begin alike: `tool:*`.
    pub fn types<P: AsRef<str>>(mut self, types: impl IntoIterator<Item = P>) -> Subscription {
        self.filter.set_types(types);
        self.bus.ring.set_sieve(self.name, self.filter.clone());
        self
    }

    /// Only events of this session.
    pub fn session(mut self, session: impl AsRef<str>) -> Subscription {
        self.filter.set_session(session.as_ref());
        self.bus.ring.set_sieve(self.name, self.filter.clone());
        self
    }

    /// What comes next; nothing after the bus was closed. No event is lost where this is dropped before it is done.
    pub async fn next(&mut self) -> Option<Delivery> {
        poll_fn(|cx| self.poll_delivery(cx)).await
    }

    /// The name under which the ring knows it.
    pub(super) fn name(&self) -> u64 {
        self.name
    }

    fn poll_delivery(&mut self, cx: &mut Context<'_>) -> Poll<Option<Delivery>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(Delivery::Event(event)));
            }
            if let Some(missed) = self.missed.take() {
                return Poll::Ready(Some(Delivery::Missed(missed)));
            }
            if let Some(catching_up) = &mut self.catching_up {
                let page = ready!(Pin::new(&mut catching_up.page).poll(cx));
                self.turn_page(page.unwrap_or_else(|_| Err("the archive could not be read".to_owned())));
                continue;
            }
            match self.bus.ring.poll(self.name, cx.waker(), BATCH, &mut self.ready) {
                Found::Items => {}
                Found::Nothing => return Poll::Pending,
                Found::End => return Poll::Ready(None),
                Found::Gap(gap) => match self.bus.archive.as_ref().filter(|_| gap.numbered > 0) {
                    Some(archive) => self.catching_up = Some(CatchingUp::begin(archive, gap)),
                    None => self.miss(gap, gap.numbered),
                },
            }
        }
    }

    fn turn_page(&mut self, page: Result<Vec<Event>, String>) {
        let Some(catching_up) = self.catching_up.take() else { return };
        match page {
            Ok(page) => match catching_up.turn(page, &self.filter, &mut self.ready) {
                Ok(next) => self.catching_up = Some(next),
                // What has no number is in no archive.
                Err(filled) => self.miss(filled, 0),
            },
            Err(why) => {
                let gap = catching_up.gap;
                self.bus.tell_archive_failed(&why);
                self.miss(gap, gap.numbered.min(gap.up_to - gap.after).max(1));
            }
        }
    }

    fn miss(&mut self, gap: Gap, numbered: u64) {
        let count = numbered + gap.loose;
        self.missed = (count > 0).then_some(Missed { count, up_to: Bookmark(gap.up_to) });
    }
}

impl Stream for Subscription {
    type Item = Delivery;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delivery>> {
        self.get_mut().poll_delivery(cx)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.bus.ring.leave(self.name);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("filter", &self.filter).finish_non_exhaustive()
    }
}
