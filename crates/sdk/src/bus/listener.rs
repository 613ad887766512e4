//! Callbacks: each has a subscription of its own and is called apart from everybody else, so that none holds up another.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};

use serde_json::json;
use tokio::runtime::Handle;

use super::event::Event;
use super::subscription::{Delivery, Subscription};
use super::{Channels, shape};

/// A callback that hears events until this is dropped. See [`EventBus::on`](super::EventBus::on).
#[must_use = "a listener ends when it is dropped; `detach` lets it go on"]
pub struct Listener {
    channels: Arc<Channels>,
    name: u64,
    tally: Arc<Tally>,
    is_detached: bool,
}

/// What became of a listener's calls.
#[derive(Debug, Default)]
struct Tally {
    panics: AtomicU64,
    missed: AtomicU64,
    is_stopped: AtomicBool,
}

impl Listener {
    pub(super) fn start(
        subscription: Subscription,
        channels: Arc<Channels>,
        kind: &str,
        callback: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Listener {
        let tally = Arc::new(Tally::default());
        let name = subscription.name();
        let listening = Listening {
            subscription,
            channels: Arc::clone(&channels),
            kind: kind.to_owned(),
            tally: Arc::clone(&tally),
        };
        let work = listening.work(callback);
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(work)),
            Err(_) => {
                let thread = thread::Builder::new().name("unstuck-listener".into());
                if let Err(error) = thread.spawn(move || block_on(work)) {
                    channels.report(shape::own_error(
                        "listener",
                        &error.to_string(),
                        json!({ "listener": kind }),
                    ));
                }
            }
        }
        Listener { channels, name, tally, is_detached: false }
    }

    /// Lets it go on for as long as the bus is there.
    pub fn detach(mut self) {
        self.is_detached = true;
    }

    /// How often the callback panicked.
    pub fn panics(&self) -> u64 {
        self.tally.panics.load(Ordering::Relaxed)
    }

    /// How many events it was too slow for.
    pub fn missed(&self) -> u64 {
        self.tally.missed.load(Ordering::Relaxed)
    }
}

impl Drop for Listener {
    /// No further call of the callback begins; one that runs is not waited for.
    fn drop(&mut self) {
        if !self.is_detached {
            self.tally.is_stopped.store(true, Ordering::Relaxed);
            self.channels.ring.stop(self.name);
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("tally", &self.tally).finish_non_exhaustive()
    }
}

/// The side of a listener that runs.
struct Listening {
    subscription: Subscription,
    channels: Arc<Channels>,
    kind: String,
    tally: Arc<Tally>,
}

impl Listening {
    async fn work(mut self, callback: impl Fn(&Event)) {
        while let Some(delivery) = self.subscription.next().await {
            if self.tally.is_stopped.load(Ordering::Relaxed) {
                break;
            }
            match delivery {
                Delivery::Event(event) => {
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| callback(&event))) {
                        self.panicked(panic);
                    }
                }
                Delivery::Missed(missed) => {
                    self.tally.missed.fetch_add(missed.count, Ordering::Relaxed);
                }
            }
            // A listener that always finds something lets others run all the same.
            tokio::task::consume_budget().await;
        }
    }

    fn panicked(&self, panic: Box<dyn Any + Send>) {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it did not say why");
        if self.tally.panics.fetch_add(1, Ordering::Relaxed) == 0 {
            let message = format!("a listener panicked: {text}");
            let detail = json!({ "listener": self.kind });
            self.channels.report(shape::own_error("listener", &message, detail));
        }
        // What was thrown is foreign, and may panic once more when it is dropped.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(again);
        }
    }
}

/// Runs a future on this thread, which has no runtime.
fn block_on(work: impl Future<Output = ()>) {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut work = pin!(work);
    while work.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        thread::park();
    }
}
