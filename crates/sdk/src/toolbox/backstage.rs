//! Where the work of a toolbox is done. On a runtime with several threads that is where the caller is; a runtime with a single
//! thread, or none at all, would stand still with the first tool that blocks, so there the toolbox brings threads of its own.

use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;

use tokio::runtime::{Handle, Runtime, RuntimeFlavor};

/// Threads of our own, made when they are first needed.
#[derive(Default)]
pub(crate) struct Backstage {
    threads: OnceLock<Option<Runtime>>,
    /// No tool blocks, as whoever built the toolbox says: everything stays where the caller is.
    stays: bool,
}

impl Backstage {
    pub(super) fn new(stays: bool) -> Backstage {
        Backstage { threads: OnceLock::new(), stays }
    }

    /// Does a piece of work where it can be done, and waits for it. Whoever stops waiting ends it. It comes in a box: whoever waits
    /// would carry it twice otherwise, as it came and as it is waited for.
    pub(crate) async fn host<T: Send + 'static>(
        &self,
        work: Pin<Box<impl Future<Output = T> + Send + 'static>>,
    ) -> T {
        let here = Handle::try_current().ok();
        let is_roomy = here.as_ref().is_some_and(|here| {
            here.runtime_flavor() == RuntimeFlavor::MultiThread && here.metrics().num_workers() > 1
        });
        let ours = if is_roomy { None } else { self.threads() };
        match ours {
            None => work.await,
            Some(ours) => {
                let mut task = EndedWithUs(ours.spawn(work));
                match (&mut task.0).await {
                    Ok(done) => done,
                    // Nothing in our own work panics, and nobody else ends its task; but whoever panics is heard.
                    Err(error) => match error.try_into_panic() {
                        Ok(payload) => std::panic::resume_unwind(payload),
                        Err(_) => std::future::pending().await,
                    },
                }
            }
        }
    }

    /// The threads; there are none where nobody wants them, or the system has none to give.
    pub(super) fn threads(&self) -> Option<&Runtime> {
        if self.stays {
            return None;
        }
        let make = || {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .thread_name("unstuck-tools")
                .enable_all()
                .build()
                .ok()
        };
        self.threads.get_or_init(make).as_ref()
    }
}

impl Drop for Backstage {
    fn drop(&mut self) {
        if let Some(Some(threads)) = self.threads.take() {
            // Waiting for tools that do not end is not allowed where nobody may block.
            threads.shutdown_background();
        }
    }
}

/// A task that ends when nobody waits for it any more.
pub(super) struct EndedWithUs<T>(pub(super) tokio::task::JoinHandle<T>);

impl<T> Drop for EndedWithUs<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
