//! Running a command on Unix: own process group or session, two threads, and a third where input is passed on.
//!
//! One thread (the caller's) moves bytes; the other (the keeper) owns the child: it starts it, forwards signals, watches the clock,
//! the keyboard and the child's end. They are apart because a paused reader of our output blocks the first, and neither
//! Ctrl-C nor the time limit may wait for that.

mod child_side;
mod companion;
mod console;
mod intake;
mod keeper;
mod kin;
mod pty;
mod pulse;
mod pump;
mod signals;
mod terminal;
mod watch;

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use nix::unistd::Pid;

use crate::job::{Job, Run, Stream};
use console::Console;
use intake::Intake;
use keeper::{Keeper, pid_of};
use pty::Pty;
use pulse::Pulse;
use pump::Pump;
use signals::Signals;
use terminal::Terminal;

pub(crate) use companion::accompany;
pub use watch::Watch;

/// Runs `job` to its end, and does `meanwhile` while it is started and works. An error means that it was not started.
pub(crate) fn run(
    job: &Job,
    started: Instant,
    meanwhile: impl FnOnce(),
    sink: impl FnMut(Stream, &[u8]),
) -> io::Result<Run> {
    // All that can fail for want of descriptors comes before the start, so that a started command is never abandoned.
    let (mut ended, ending) = UnixStream::pair()?;
    let also_ended = ended.try_clone()?;
    let signals = Signals::prepare(job.hears_signals)?;
    let pulse = Pulse::new(job, started);
    let mut pump = Pump::new(job, pulse.clone())?;
    let mut intake = Intake::of(job)?;
    let pty = Pty::open(job)?;
    let mut command = job.command();
    intake.attach(&mut command);
    let (tell, told) = mpsc::sync_channel(1);

    thread::scope(|scope| {
        // The start is the keeper's as well: it takes as long as many a command, and nothing here has to wait for it. The
        // system tells the command of the death of the thread that started it, so that thread must not end before it.
        let keeper = thread::Builder::new().spawn_scoped(scope, move || {
            let (mut child, group, terminal) = match start(job, command, pty.as_ref()) {
                Ok(all) => all,
                Err(error) => {
                    let _it_waits = tell.send(Err(error));
                    return None;
                }
            };
            // Registered only now: a signal our caller made us ignore (`nohup`) stays ignored in the command, as without us.
            let signals = signals.listen();
            job.feed(&mut child);
            let outputs = (child.stdout.take(), child.stderr.take(), pty.map(Pty::into_output));
            let _it_waits = tell.send(Ok(outputs));
            let how = Keeper::new(job, started, pulse, child, group, signals, terminal).keep();
            // Closing this end is what tells the others that the command has ended.
            drop(ending);
            Some((how, started.elapsed()))
        })?;
        meanwhile();
        let (stdout, stderr, terminal) = told.recv().map_err(io::Error::other)??;
        pump.connect(stdout, stderr, terminal);
        let (feeder, intake) = match intake {
            Intake::PassedOn(passage) => {
                let pass_on = move || passage.pass_on(&also_ended);
                (Some(thread::Builder::new().spawn_scoped(scope, pass_on)?), Intake::Unwatched)
            }
            other => (None, other),
        };
        let undelivered = pump.run(&mut ended, sink);
        // The user's terminal goes back when all that was printed is there.
        let ((ending, asked_to_end, _terminal), took) =
            finish(keeper).ok_or_else(|| io::Error::other("it was not started"))?;
        let input_used = feeder.is_some_and(finish) || intake.was_used();
        Ok(Run { ending, took, input_used, asked_to_end, undelivered })
    })
}

/// Starts `command` in a session with a terminal or in a group of its own; tells whom signals are for, and who has the
/// user's terminal. Its own copies of what the command was given are closed here, or their ends would never be seen.
fn start(job: &Job, mut command: Command, pty: Option<&Pty>) -> io::Result<(Child, Pid, Terminal)> {
    if let Some(pty) = pty {
        pty.attach(&mut command)?;
    }
    match pty {
        Some(pty) if pty.has_keyboard => {
            let console = Console::take(pty.our_end()?)?;
            let (mut told, tell) = io::pipe()?;
            child_side::under_warden(&mut command, console.to_leave(), tell.as_fd())?;
            let child = command.spawn()?;
            drop(tell);
            let mut pid = [0; 4];
            // It told before it started, or it would not have.
            let group =
                told.read_exact(&mut pid).map_or(pid_of(&child), |()| Pid::from_raw(i32::from_ne_bytes(pid)));
            Ok((child, group, Terminal::PassedOn(console)))
        }
        other => {
            child_side::end_with_us(&mut command)?;
            let shown = other.map(Pty::our_end).transpose()?;
            let child = command.process_group(0).spawn()?;
            let group = pid_of(&child);
            let terminal = match shown {
                Some(ours) => Terminal::Shown(ours),
                None => Terminal::lend(job.shares_input(), group),
            };
            Ok((child, group, terminal))
        }
    }
}

fn finish<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
