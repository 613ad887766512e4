//! Runs its arguments as one command, passing everything through, and says on the last line of its standard error how
//! that ended. Tests drive it from outside, where signals, terminals and closed pipes can be real.
//!
//! `THROUGH_TIMEOUT_MS` sets a time limit, `THROUGH_TERMINAL` gives a terminal where there is one, `THROUGH_INPUT` watches
//! the input, and `THROUGH_TIMES` runs it so many times.

use std::time::Duration;

use unstuck_exec::Job;

fn main() {
    let mut argv = std::env::args_os().skip(1);
    let Some(program) = argv.next() else { return };
    let mut job = Job::new(program, argv);
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(limit) = number("THROUGH_TIMEOUT_MS") {
        job = job.timeout(Duration::from_millis(limit)).grace(Duration::from_millis(500));
    }
    if number("THROUGH_TERMINAL").is_some() {
        job = job.on_terminal();
    }
    let watched = number("THROUGH_INPUT").is_some();
    if watched {
        job = job.passing_input();
    }
    for _ in 0..number("THROUGH_TIMES").unwrap_or(1) {
        let mut seen = 0;
        let run = job.run(|_, bytes| seen += bytes.len());
        let input = match (watched, run.input_used) {
            (false, _) => "",
            (true, true) => ", input used",
            (true, false) => ", input not used",
        };
        let asked = if run.asked_to_end { ", asked to end" } else { "" };
        // The one line this example prints of its own.
        #[allow(clippy::print_stderr)]
        {
            eprintln!("through: {:?} after {seen} bytes{input}{asked}", run.ending);
        }
    }
}
