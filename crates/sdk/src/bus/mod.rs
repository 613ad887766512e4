//! The event bus: what happens to calls, told to whoever wants to know, without anybody having to wait for them. With a store
//! its numbers are those of the timeline and what fell out of memory is read from there.
//!
//! It never blocks a publisher, and never holds more events than its ring and a few for each subscriber.

mod archive;
mod event;
mod filter;
mod listener;
#[cfg(test)]
mod property;
mod ring;
mod shape;
mod subscription;
mod sync;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use unstuck_store::{Bookmark, Channel, EventType};

pub(crate) use archive::Archive;
pub(crate) use event::Body;
pub use event::Event;
use filter::Filter;
pub use listener::Listener;
use ring::{Numbering, Ring};
pub use subscription::{Delivery, Missed, Subscription};

/// Where everything is told that happens in a toolbox. Clones are the same bus.
#[derive(Clone)]
pub struct EventBus {
    handle: Arc<Handle>,
}

/// All that subscribers hold of a bus.
struct Channels {
    ring: Ring<Arc<Event>, Filter>,
    archive: Option<Arc<dyn Archive>>,
    is_archive_known_to_fail: AtomicBool,
}

/// What the clones of a bus share. When the last is gone, nothing can be told any more.
struct Handle {
    channels: Arc<Channels>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.channels.ring.close();
    }
}

impl EventBus {
    /// A bus that remembers so many events, and counts them itself.
    pub(crate) fn new(capacity: usize) -> EventBus {
        EventBus::over(Ring::new(capacity, 0), None)
    }

    /// A bus over a timeline whose newest event is `newest`. Older ones than the ring holds are read from the archive.
    pub(crate) fn with_archive(capacity: usize, archive: Arc<dyn Archive>, newest: Bookmark) -> EventBus {
        EventBus::over(Ring::new(capacity, newest.0), Some(archive))
    }

    fn over(ring: Ring<Arc<Event>, Filter>, archive: Option<Arc<dyn Archive>>) -> EventBus {
        let channels = Channels { ring, archive, is_archive_known_to_fail: AtomicBool::new(false) };
        EventBus { handle: Arc::new(Handle { channels: Arc::new(channels) }) }
    }

    /// Tells of an event, gives it the next number, and returns that. Only for a bus without an archive: there the store counts.
    pub(crate) fn publish(&self, event: Event) -> Bookmark {
        self.channels().publish(Numbering::Next, event)
    }

    /// Tells of an event that has its number from the store. What is not newer than the newest has been told.
    pub(crate) fn publish_numbered(&self, event: Event) {
        let numbering = event.bookmark().map_or(Numbering::Loose, |bookmark| Numbering::Given(bookmark.0));
        self.channels().publish(numbering, event);
    }

    /// Tells of an event that could not be recorded: it has its place in the order, and no bookmark.
    pub(crate) fn publish_unnumbered(&self, event: Event) {
        self.channels().publish(Numbering::Loose, event);
    }

    /// Leaves what the store has told up to a place to its archive, where nobody listens. Says whether it did.
    pub(crate) fn leave_to_archive(&self, up_to: Bookmark) -> bool {
        self.channels().archive.is_some() && self.channels().ring.skip_to(up_to.0)
    }

    /// The events of these channels, from now on, or [`from`](Subscription::from) a bookmark.
    pub fn subscribe<C: Borrow<Channel>>(&self, channels: impl IntoIterator<Item = C>) -> Subscription {
        let filter = Filter::channels(channels.into_iter().map(|channel| *channel.borrow()));
        Subscription::new(Arc::clone(self.channels()), filter)
    }

    /// Calls `callback` with every event of a type, from now on: `tool:error`, or all that begin alike: `tool:*`, `*`.
    ///
    /// Each listener runs on its own: as a task where there is a tokio runtime, which a callback must not block for long, and
    /// else on a thread. A callback that panics is told of once, as an `error` event with the phase `listener`, and goes on with
    /// the next event. Dropping the listener ends it, unless it is [detached](Listener::detach).
    pub fn on(&self, kind: &str, callback: impl Fn(&Event) + Send + Sync + 'static) -> Listener {
        Listener::start(
            self.subscribe(Channel::ALL).types([kind]),
            Arc::clone(self.channels()),
            kind,
            callback,
        )
    }

    /// The newest bookmark. Whoever subscribes from it later misses nothing in between.
    pub fn newest(&self) -> Bookmark {
        Bookmark(self.channels().ring.newest())
    }

    /// The end: subscribers get what is there, then nothing more. What is published later is told to nobody.
    pub(crate) fn close(&self) {
        self.channels().ring.close();
    }

    fn channels(&self) -> &Arc<Channels> {
        &self.handle.channels
    }
}

impl fmt::Debug for EventBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (events, subscribers) = self.channels().ring.census();
        f.debug_struct("EventBus")
            .field("newest", &self.newest())
            .field("events", &events)
            .field("subscribers", &subscribers)
            .finish_non_exhaustive()
    }
}

impl Channels {
    fn publish(&self, numbering: Numbering, event: Event) -> Bookmark {
        Bookmark(self.ring.push(numbering, |number| Arc::new(event.at_place(number.map(Bookmark)))))
    }

    /// Tells operations that a part of the bus itself fails.
    fn report(&self, body: Body) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let event = Event::new(EventType::Error, u64::try_from(at).unwrap_or(u64::MAX), None, None, body);
        // Where a store counts, nobody else gives numbers.
        let numbering = if self.archive.is_some() { Numbering::Loose } else { Numbering::Next };
        self.publish(numbering, event);
    }

    /// Once is enough: while the archive fails, every slow subscriber would tell the same.
    fn tell_archive_failed(&self, why: &str) {
        if !self.is_archive_known_to_fail.swap(true, Ordering::Relaxed) {
            self.report(shape::own_error("archive", why, json!({})));
        }
    }
}
