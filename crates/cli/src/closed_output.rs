//! A standard output that was closed before this process began (`>&-`). The standard library puts `/dev/null` in its place, and
//! all that is printed would count as written; what refuses everything takes that place first.
#![allow(unsafe_code, reason = "only what runs before `main` comes before the standard library")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: it is called once, before there are other threads, and uses nothing that has to be set up.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = fill_its_place;

extern "C" fn fill_its_place() {
    const STDOUT: i32 = 1;
    // SAFETY: it is only asked whether there is such a descriptor.
    let stdout = unsafe { BorrowedFd::borrow_raw(STDOUT) };
    if rustix::io::fcntl_getfd(stdout) != Err(Errno::BADF) {
        return;
    }
    let Ok(full) = rustix::fs::open(c"/dev/full", OFlags::WRONLY, Mode::empty()) else { return };
    IS_CLOSED.store(true, Ordering::Relaxed);
    match full.as_raw_fd() {
        STDOUT => drop(full.into_raw_fd()),
        _ => drop(rustix::stdio::dup2_stdout(&full)),
    }
}

/// The error of a write to standard output in the words that fit.
pub(crate) fn explained(error: io::Error) -> io::Error {
    let is_ours = error.kind() == io::ErrorKind::StorageFull && IS_CLOSED.load(Ordering::Relaxed);
    if is_ours { io::Error::other("standard output is closed") } else { error }
}
