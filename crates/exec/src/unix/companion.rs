//! A companion on Unix: one thread starts it, and stays with it until it has ended.

use std::io;
use std::os::unix::process::CommandExt;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use super::child_side;
use super::keeper::{Keeper, pid_of};
use super::pulse::Pulse;
use super::signals::Signals;
use super::terminal::Terminal;
use crate::companion::Companion;
use crate::job::{Ending, Job};

/// Starts `job`. An error means that it was not started.
pub(crate) fn accompany(job: &Job, ended: impl FnOnce(Ending) + Send + 'static) -> io::Result<Companion> {
    let job = job.clone().leaving_signals_alone();
    let signals = Signals::prepare(job.hears_signals)?;
    let mut command = job.piped();
    child_side::end_with_us(&mut command)?;
    command.process_group(0);
    let (tell, told) = mpsc::sync_channel(1);
    // The system tells the command of the death of the thread that started it, so that thread stays until it has ended.
    thread::Builder::new().name("unstuck-companion".to_owned()).spawn(move || {
        let started = command.spawn().and_then(|mut child| Ok((Companion::of(&mut child)?, child)));
        let child = match started {
            Ok((companion, child)) => {
                let _it_waits = tell.send(Ok(companion));
                child
            }
            Err(error) => {
                let _it_waits = tell.send(Err(error));
                return;
            }
        };
        // Our copies of what it was given are closed with this, or their ends would never be seen.
        drop(command);
        let group = pid_of(&child);
        let begun = Instant::now();
        let pulse = Pulse::new(&job, begun);
        let keeper = Keeper::new(&job, begun, pulse, child, group, signals.listen(), Terminal::NotOurs);
        let (ending, _, _) = keeper.keep_all();
        ended(ending);
    })?;
    told.recv().map_err(io::Error::other)?
}
