//! What is said to the client. It reads when it likes: a small frame that fits is written at once, everything else by a thread
//! that may wait. Nobody else ever does, so a client that writes without reading stops nothing.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::sync::Notify;

use super::link::Inbound;
use super::loads::Load;

/// What a pipe that can be written to takes without waiting, on every system.
pub(super) const FITS: usize = if cfg!(target_os = "linux") { 4096 } else { 512 };

/// When so much waits, nothing more is asked for.
const ENOUGH: usize = 16 * 1024 * 1024;

/// How often somebody looks whether the client is still there, once it has said its last word.
const LOOK: Duration = Duration::from_millis(100);

/// The way to the client. All clones are the same one.
#[derive(Clone)]
pub(super) struct Outlet(Arc<Inner>);

struct Inner {
    file: File,
    pending: Mutex<Pending>,
    /// There is something to write.
    filled: Condvar,
    /// Less waits than before, or nobody is there any more.
    emptied: Notify,
}

#[derive(Default)]
struct Pending {
    frames: Vec<u8>,
    /// Each counts until it is written.
    loads: Vec<Load>,
    /// The thread writes right now.
    is_writing: bool,
    /// Nobody reads any more.
    is_closed: bool,
    /// Why nothing can be written any more, where it is not that the client has gone.
    error: Option<io::Error>,
}

impl Pending {
    fn close(&mut self, error: io::Error) {
        self.is_closed = true;
        self.error = Some(error).filter(|error| error.kind() != io::ErrorKind::BrokenPipe);
    }
}

impl Outlet {
    /// Opens the way through a file, which is written by nobody else.
    pub(super) fn new(file: File) -> io::Result<Outlet> {
        let outlet = Outlet(Arc::new(Inner {
            file,
            pending: Mutex::default(),
            filled: Condvar::new(),
            emptied: Notify::new(),
        }));
        let writer = outlet.clone();
        thread::Builder::new().name("unstuck-outlet".to_owned()).spawn(move || writer.write_for_ever())?;
        Ok(outlet)
    }

    /// Says a frame, now or as soon as it can be taken.
    pub(super) fn put(&self, said: impl Into<Inbound>) {
        let (mut frame, load) = said.into().apart();
        frame.push(b'\n');
        let mut pending = self.lock();
        if pending.is_closed {
            return;
        }
        let is_first = pending.frames.is_empty() && !pending.is_writing;
        if is_first && frame.len() <= FITS && can_write(self.0.file.as_fd()) {
            if let Err(error) = write_all(&self.0.file, &frame) {
                pending.close(error);
                self.0.emptied.notify_waiters();
            }
            return;
        }
        match pending.frames.is_empty() {
            true => pending.frames = frame,
            false => pending.frames.extend_from_slice(&frame),
        }
        pending.loads.extend(load);
        self.0.filled.notify_one();
    }

    /// Comes back when there is room for more.
    pub(super) async fn room(&self) {
        self.until(|pending| pending.frames.len() < ENOUGH).await;
    }

    /// Comes back when all is written, or so long later.
    pub(super) async fn drained(&self, limit: Duration) {
        let is_done = |pending: &Pending| pending.frames.is_empty() && !pending.is_writing;
        let _some_of_it_is_lost = tokio::time::timeout(limit, self.until(is_done)).await;
    }

    /// Hands over the error that closed it; none where the client has gone.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.lock().error.take()
    }

    /// Comes back when nobody reads any more.
    pub(super) async fn closed(&self) {
        self.until(|_| false).await;
    }

    /// Comes back when nobody could read any more, also where nothing is written.
    pub(super) async fn abandoned(&self) {
        loop {
            let mut asked = [PollFd::new(self.0.file.as_fd(), PollFlags::empty())];
            let is_heard = matches!(poll(&mut asked, PollTimeout::ZERO), Ok(found) if found > 0);
            if is_heard && asked[0].revents().is_some_and(|found| found.contains(PollFlags::POLLERR)) {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn until(&self, is_so: impl Fn(&Pending) -> bool) {
        loop {
            let emptied = self.0.emptied.notified();
            {
                let pending = self.lock();
                if pending.is_closed || is_so(&pending) {
                    return;
                }
            }
            emptied.await;
        }
    }

    fn write_for_ever(&self) {
        loop {
            let (frames, loads) = {
                let mut pending = self.lock();
                while pending.frames.is_empty() {
                    pending = self.0.filled.wait(pending).unwrap_or_else(PoisonError::into_inner);
                }
                pending.is_writing = true;
                (std::mem::take(&mut pending.frames), std::mem::take(&mut pending.loads))
            };
            let written = write_all(&self.0.file, &frames);
            drop((frames, loads));
            let mut pending = self.lock();
            pending.is_writing = false;
            written.unwrap_or_else(|error| pending.close(error));
            let is_closed = pending.is_closed;
            drop(pending);
            self.0.emptied.notify_waiters();
            if is_closed {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.0.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Can something be written without waiting?
pub(super) fn can_write(file: BorrowedFd<'_>) -> bool {
    is_ready(file, PollTimeout::ZERO)
}

fn is_ready(file: BorrowedFd<'_>, wait: PollTimeout) -> bool {
    let mut asked = [PollFd::new(file, PollFlags::POLLOUT)];
    matches!(poll(&mut asked, wait), Ok(found) if found > 0)
}

/// Writes all of it, also where somebody has made the other end of the same connection non-blocking.
fn write_all(mut file: &File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                is_ready(file.as_fd(), PollTimeout::NONE);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
