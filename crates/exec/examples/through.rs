//! Runs its arguments as one command, passing everything through, and says on the last line of its standard error how
//! that ended. Tests drive it from outside, where signals and closed pipes can be real.
//!
//! `THROUGH_TIMEOUT_MS` sets a time limit.

use std::time::Duration;

use unstuck_exec::Job;

fn main() {
    let mut argv = std::env::args_os().skip(1);
    let Some(program) = argv.next() else { return };
    let mut job = Job::new(program, argv);
    if let Some(limit) = std::env::var("THROUGH_TIMEOUT_MS").ok().and_then(|text| text.parse().ok()) {
        job = job.timeout(Duration::from_millis(limit)).grace(Duration::from_millis(500));
    }
    let mut seen = 0;
    let run = job.run(|_, bytes| seen += bytes.len());
    // The one line this example prints of its own.
    #[allow(clippy::print_stderr)]
    {
        eprintln!("through: {:?} after {seen} bytes", run.ending);
    }
}
