//! Where nobody collects the dead.
#![cfg(target_os = "linux")]

use std::time::Duration;

use unstuck_exec::{Ending, Job};

#[test]
fn nobody_waits_for_a_grandchild_that_is_dead_and_only_was_not_collected() {
    // From now on the orphans of our children are ours, and we leave them lying: as some first process of a container does.
    nix::sys::prctl::set_child_subreaper(true).expect("the system knows this");
    let job = Job::new("sh", ["-c", "sleep 60 & wait"]).capture_only().without_input();
    let grace = Duration::from_secs(60);
    let run = job.timeout(Duration::from_millis(200)).grace(grace).run(|_, _| ());
    assert!(run.ending == Ending::TimedOut && run.took < grace, "{run:?}");
}
