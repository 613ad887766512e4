//! Keeps one worker of a runtime free of the work of tools. As many tools as there are workers, each of which never yields, would
//! otherwise hold all of them, and nobody would be left to give them up. The work that would take the last one goes on in a thread
//! of our own.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Inner;
use super::attempt::given_up;
use super::backstage::Backstage;

/// How many workers, of all runtimes together, are inside of a tool. Those of other runtimes count as well: that only sends more
/// work to threads of our own than had to go there.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// The work of a tool, wherever it is done.
pub(super) struct Spared<F: Future> {
    stands: Stands<F>,
    /// How many workers the runtime has on which it was begun.
    workers: usize,
    backstage: Arc<Backstage>,
    cancellation: CancellationToken,
    grace: Duration,
}

enum Stands<F: Future> {
    /// With the workers of the runtime.
    Here(Pin<Box<F>>),
    /// In a thread of our own.
    Moved(JoinHandle<Option<F::Output>>),
    /// On its way there, or over.
    Nowhere,
}

impl<F: Future> Spared<F> {
    /// Work that ends itself a little after `cancellation`, wherever it is.
    pub(super) fn new(inner: &Inner, cancellation: CancellationToken, work: F) -> Spared<F> {
        let here = Handle::current();
        let workers = match here.runtime_flavor() {
            RuntimeFlavor::MultiThread => here.metrics().num_workers(),
            _ => 1,
        };
        Spared {
            stands: Stands::Here(Box::pin(work)),
            workers,
            backstage: Arc::clone(&inner.backstage),
            cancellation,
            grace: inner.policy.cancel_grace,
        }
    }
}

impl<F> Future for Spared<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        if let Stands::Here(work) = &mut this.stands {
            let place = Place::take();
            let Some(threads) = this.backstage.threads().filter(|_| place.before + 1 >= this.workers) else {
                return work.as_mut().poll(context);
            };
            drop(place);
            if let Stands::Here(work) = mem::replace(&mut this.stands, Stands::Nowhere) {
                let (here, over, grace) = (Handle::current(), this.cancellation.clone(), this.grace);
                let until_given_up = async move {
                    tokio::select! {
                        biased;
                        answer = work => Some(answer),
                        () = given_up(over, grace) => None,
                    }
                };
                let moved = threads.spawn_blocking(move || here.block_on(until_given_up));
                this.stands = Stands::Moved(moved);
            }
        }
        let Stands::Moved(moved) = &mut this.stands else { return Poll::Pending };
        match Pin::new(moved).poll(context) {
            Poll::Ready(Ok(Some(answer))) => Poll::Ready(answer),
            // Whoever gave it up waits for nothing any more.
            Poll::Ready(Ok(None)) | Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => match error.try_into_panic() {
                Ok(payload) => std::panic::resume_unwind(payload),
                Err(_) => Poll::Pending,
            },
        }
    }
}

/// A worker that is inside of a tool, as long as this lives.
struct Place {
    /// How many were inside before.
    before: usize,
}

impl Place {
    fn take() -> Place {
        Place { before: INSIDE.fetch_add(1, Ordering::AcqRel) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::AcqRel);
    }
}
