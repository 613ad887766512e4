//! What reads events that have fallen out of the ring.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use unstuck_store::Bookmark;

use super::event::Event;

/// Where events are that are older than the ring. It may block.
pub(crate) trait Archive: Send + Sync {
    /// The events after one bookmark up to another, the oldest first, at most so many. Fewer than that say that there are no
    /// more.
    fn page(&self, after: Bookmark, up_to: Bookmark, most: usize) -> Result<Vec<Event>, String>;
}

/// How many events are read at once.
pub(super) const PAGE: usize = 256;

/// A page that is being read. Where the sender is gone, reading it failed.
pub(super) type Page = oneshot::Receiver<Result<Vec<Event>, String>>;

/// Reads a page where it may block: beside the runtime, or on a thread of its own where there is none.
pub(super) fn read(archive: &Arc<dyn Archive>, after: Bookmark, up_to: Bookmark) -> Page {
    let (sender, page) = oneshot::channel();
    let archive = Arc::clone(archive);
    let read = move || {
        // Whoever wanted it may be gone.
        let _ = sender.send(archive.page(after, up_to, PAGE));
    };
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(read)),
        Err(_) => drop(std::thread::Builder::new().name("unstuck-archive".into()).spawn(read)),
    }
    page
}
