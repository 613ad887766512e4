//! A job that is ended from outside, with all that it started.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use unstuck_exec::{Ending, Job, Run, Stop, alive};

fn sh(script: &str) -> Job {
    Job::new("sh", ["-c", script])
        .capture_only()
        .without_input()
        .grace(Duration::from_millis(300))
        .leaving_signals_alone()
}

/// A signal is on its way for a moment.
fn is_gone(process: &str) -> bool {
    let begun = Instant::now();
    while alive::is_alive(process) && begun.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(5));
    }
    !alive::is_alive(process)
}

/// Runs a script that tells the number of its grandchild, stops it then, and gives who that was with what came of it.
fn stopped(script: &str) -> (String, Run) {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("pid");
    let stop = Stop::new().unwrap();
    let job = sh(&script.replace("TELL", &format!("echo $! > {0}.new; mv {0}.new {0}", told.display())));
    let job = job.stopped_by(&stop);
    let running = thread::spawn(move || job.run(|_, _| ()));
    let begun = Instant::now();
    while !told.exists() && begun.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(5));
    }
    let grandchild = alive::owner(fs::read_to_string(&told).unwrap().trim().parse().unwrap());
    assert!(alive::is_alive(&grandchild));
    stop.stop();
    (grandchild, running.join().unwrap())
}

#[test]
fn a_stop_ends_the_command_and_its_grandchild_and_says_who_did_it() {
    let (grandchild, run) = stopped("sleep 60 & TELL; wait");
    assert_eq!((run.ending, run.asked_to_end), (Ending::Signalled(15), true));
    assert!(run.took < Duration::from_secs(20), "{:?}", run.took);
    assert!(is_gone(&grandchild), "{grandchild} still runs");
}

#[test]
fn who_ignores_a_stop_is_killed_after_the_grace() {
    let (grandchild, run) =
        stopped("trap '' TERM; sh -c 'trap \"\" TERM; while :; do sleep 0.05; done' & TELL; wait");
    assert_eq!((run.ending, run.asked_to_end), (Ending::Signalled(9), true));
    assert!(is_gone(&grandchild), "{grandchild} still runs");
}

#[test]
fn a_stop_that_came_before_the_start_ends_it_at_once_and_one_that_never_comes_changes_nothing() {
    let stop = Stop::new().unwrap();
    let run = sh("exit 3").stopped_by(&stop).run(|_, _| ());
    assert_eq!((run.ending, run.asked_to_end), (Ending::Exited(3), false));
    stop.stop();
    let run = sh("sleep 60").stopped_by(&stop.clone()).run(|_, _| ());
    assert_eq!((run.ending, run.asked_to_end), (Ending::Signalled(15), true));
}

#[test]
fn a_time_limit_is_still_a_time_limit() {
    let stop = Stop::new().unwrap();
    let run = sh("sleep 60").stopped_by(&stop).timeout(Duration::from_millis(100)).run(|_, _| ());
    assert_eq!((run.ending, run.asked_to_end), (Ending::TimedOut, false));
}

#[test]
#[cfg(target_os = "linux")]
fn a_job_that_leaves_signals_alone_catches_none_but_that_of_its_child() {
    assert_eq!(sh("exit 0").run(|_, _| ()).ending, Ending::Exited(0));
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
    let is_caught = |signal: u32| caught >> (signal - 1) & 1 == 1;
    assert_eq!([1, 2, 3, 10, 12, 15, 17].map(is_caught), [false, false, false, false, false, false, true]);
}
