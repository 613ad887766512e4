//! Whoever reads our output: a pause that ends early when nobody does any more.

use std::time::Duration;

/// How a pause ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Its time is over.
    Over,
    /// The other end of standard output was closed.
    ReaderGone,
}

/// Waits. A command that only now and then has something to print would otherwise outlive its reader for hours.
#[cfg(unix)]
pub(crate) fn pause(time: Duration) -> Pause {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::io;
    use std::os::fd::AsFd;

    let stdout = io::stdout();
    // Nothing is asked for: that the other end is closed is told unasked.
    let mut ends = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
    match poll(&mut ends, timeout) {
        Ok(0) => Pause::Over,
        Ok(_) => match ends[0].revents() {
            Some(told) if told.intersects(PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL) => {
                Pause::ReaderGone
            }
            Some(_) | None => slept(time),
        },
        Err(_) => slept(time),
    }
}

/// Waits.
#[cfg(not(unix))]
pub(crate) fn pause(time: Duration) -> Pause {
    slept(time)
}

fn slept(time: Duration) -> Pause {
    std::thread::sleep(time);
    Pause::Over
}
