//! A time of day that goes otherwise than the machine's.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CLOCK: &str = "
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
AHEAD
int clock_gettime(clockid_t clock, struct timespec *time) {
    long failed = syscall(SYS_clock_gettime, clock, time);
    if (!failed && clock == CLOCK_REALTIME) time->tv_sec += ahead();
    return failed;
}
int gettimeofday(struct timeval *time, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}
";

/// A library to load before all others, built with the C compiler that links our own programs. `ahead` is the C function
/// `static long ahead(void)`: how many seconds the time of day is ahead of the machine's.
pub(crate) fn clock(folder: &Path, ahead: &str) -> PathBuf {
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    fs::write(&source, CLOCK.replace("AHEAD", ahead)).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    assert!(built.unwrap().success());
    library
}
