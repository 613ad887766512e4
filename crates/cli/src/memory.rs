//! What happens when there is no memory left, or none behind a file: on a full disk, a page of a file that was mapped may be
//! missing. The system would end this process, which agents take for a failure of their hook; a hook says its last word and ends
//! as if it had nothing to say, any other command names the reason and exits with 125.
//!
//! Nothing that ends a process here may allocate: there is nothing to allocate from.
#![allow(
    unsafe_code,
    reason = "an allocator is unsafe to write, and there is no stable way to be told that it failed"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::last_word;

/// The system's allocator, for as long as it has something to give.
struct Memory;

#[global_allocator]
static MEMORY: Memory = Memory;

// SAFETY: every call goes to the system's allocator as it came, and its answer comes back as it is.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the same promises.
        given(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.realloc(old, layout, size) })
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(old, layout) }
    }
}

#[inline]
fn given(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        give_up(b"unstuck: out of memory\n");
    }
    block
}

/// From now on the C library does not end this process either, as it does where it lacks memory for itself.
pub(crate) fn outlive_aborts() {
    // SAFETY: what is done in the handler neither allocates nor waits, and never returns to what was interrupted.
    let _it_ends_us_then = unsafe {
        signal_hook::low_level::register(signal_hook::consts::SIGABRT, || {
            give_up(b"unstuck: out of memory\n")
        })
    };
}

/// From now on a page that the disk has no room for ends this process in words. SQLite shares its index of the log through a
/// mapped file, and reserves less than a page of it where the blocks of the disk are small.
pub(crate) fn outlive_missing_pages() {
    const WORDS: &[u8] = b"unstuck: a page of a file cannot be had: its disk is full or fails\n";
    // SAFETY: as above.
    let _it_ends_us_then =
        unsafe { signal_hook::low_level::register(signal_hook::consts::SIGBUS, || give_up(WORDS)) };
}

/// Ends this process. A second thread, or a second failure on the way out, ends it without a word.
#[cold]
fn give_up(words: &[u8]) {
    static IS_ENDING: AtomicBool = AtomicBool::new(false);
    let is_first = !IS_ENDING.swap(true, Ordering::SeqCst);
    let mut words_of_ours = [0; 4096];
    if let Some(door) = hook_door(&mut words_of_ours) {
        if is_first {
            last_word::speak_without_memory(door);
        }
        signal_hook::low_level::exit(0);
    }
    if is_first {
        say(words);
    }
    signal_hook::low_level::exit(125);
}

/// Standard error as a file of its own: the standard library may hold a lock, or want memory, for its own.
fn say(words: &[u8]) {
    let own = io::stderr().as_fd().try_clone_to_owned();
    let _nobody_left_to_tell = own.map(std::fs::File::from).and_then(|mut own| own.write_all(words));
}

/// The door, where a hook was asked for. The arguments may not have been read yet, so the system is asked.
fn hook_door(words: &mut [u8; 4096]) -> Option<&[u8]> {
    use rustix::fs::{Mode, OFlags};
    let opened = rustix::fs::open(c"/proc/self/cmdline", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let count = opened.ok().and_then(|file| rustix::io::read(&file, &mut words[..]).ok()).unwrap_or(0);
    let mut words = words[..count].split(|byte| *byte == 0).skip(1);
    let mut is_hook = false;
    loop {
        match words.next()? {
            b"--set" | b"--lang" => drop(words.next()),
            option if option.starts_with(b"-") => {}
            door if is_hook => return Some(door),
            b"hook" => is_hook = true,
            _ => return None,
        }
    }
}
