//! Running a command on Unix: own process group, two threads.
//!
//! One thread (the caller's) moves bytes; the other (the keeper) owns the child: it forwards signals, watches the clock
//! and the child's end. They are apart because a paused reader of our output blocks the first, and neither Ctrl-C nor
//! the time limit may wait for that.

mod keeper;
mod pump;
mod signals;
mod terminal;

use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::thread;
use std::time::Instant;

use crate::job::{Ending, Job, Stream};
use keeper::Keeper;
use pump::Pump;
use signals::Signals;
use terminal::Terminal;

/// Runs `job` to its end. An error means that it was not started.
pub(crate) fn run(job: &Job, started: Instant, sink: impl FnMut(Stream, &[u8])) -> io::Result<Ending> {
    // All that can fail for want of descriptors comes before the start, so that a started command is never abandoned.
    let (mut ended, ending) = UnixStream::pair()?;
    let signals = Signals::prepare()?;
    let mut pump = Pump::new(job)?;

    let mut child = job.command().process_group(0).spawn()?;
    // Registered only now: a signal our caller made us ignore (`nohup`) stays ignored in the command, as without us.
    let signals = signals.listen();
    let terminal = Terminal::lend(job.shares_input(), &child);
    job.feed(&mut child);
    pump.connect(child.stdout.take(), child.stderr.take());

    Ok(thread::scope(|scope| {
        let keeper = Keeper::new(job, started, child, signals, terminal);
        let keeper = scope.spawn(move || {
            let how = keeper.keep();
            // Closing this end is what tells the pump that the command has ended.
            drop(ending);
            how
        });
        pump.run(&mut ended, sink);
        keeper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }))
}
