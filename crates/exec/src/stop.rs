//! A way to end a running job from outside: kept by whoever may want it to end, and given to the job.

use std::io;
#[cfg(unix)]
use std::net::Shutdown;
#[cfg(unix)]
use std::os::fd::{AsFd, BorrowedFd};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends every job that it was given to, whoever runs them. All clones are the same one.
///
/// ```no_run
/// # use unstuck_exec::{Job, Stop};
/// let stop = Stop::new()?;
/// let job = Job::new("cargo", ["build"]).stopped_by(&stop);
/// let running = std::thread::spawn(move || job.run(|_, _| ()));
/// stop.stop();
/// assert!(running.join().is_ok_and(|run| run.asked_to_end));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Stop {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    is_stopped: AtomicBool,
    /// Whoever waits sees the first end become readable when the second one is shut.
    #[cfg(unix)]
    ends: (UnixStream, UnixStream),
}

impl Stop {
    /// Makes one. It takes two descriptors, and fails where none are left.
    pub fn new() -> io::Result<Stop> {
        Ok(Stop {
            inner: Arc::new(Inner {
                is_stopped: AtomicBool::new(false),
                #[cfg(unix)]
                ends: UnixStream::pair()?,
            }),
        })
    }

    /// Asks all that the jobs started to end, and kills what is left after their grace. One that has not begun ends at once.
    pub fn stop(&self) {
        self.inner.is_stopped.store(true, Ordering::SeqCst);
        // It fails only where it is shut already.
        #[cfg(unix)]
        let _is_shut = self.inner.ends.1.shutdown(Shutdown::Both);
    }

    /// Was it used?
    pub fn is_stopped(&self) -> bool {
        self.inner.is_stopped.load(Ordering::SeqCst)
    }

    #[cfg(unix)]
    pub(crate) fn wake(&self) -> BorrowedFd<'_> {
        self.inner.ends.0.as_fd()
    }
}
