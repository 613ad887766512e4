//! A command that works beside us: whoever started it talks to it, and it is ended with all that it started.

use std::io;
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use crate::job::{Ending, Job};
use crate::platform;

/// A command that was started, and both ways to it. When all copies of its input are closed, it should end by itself; a
/// [`Stop`](crate::Stop) that its job was given ends it in any case.
#[derive(Debug)]
pub struct Companion {
    /// Its number.
    pub pid: u32,
    /// What it reads.
    pub stdin: ChildStdin,
    /// What it prints.
    pub stdout: ChildStdout,
    /// What it prints for people.
    pub stderr: ChildStderr,
}

impl Job {
    /// Starts it as a companion, whose time limit, terminal and input are nobody's but ours. When it has ended, what it
    /// started is asked to end as well, and `ended` hears of it on another thread.
    ///
    /// # Errors
    /// How it ended before it began.
    pub fn companion(&self, ended: impl FnOnce(Ending) + Send + 'static) -> Result<Companion, Ending> {
        platform::accompany(self, ended).map_err(|error| self.not_started(&error))
    }

    /// The command as the standard library starts it, with all three streams piped.
    pub(crate) fn piped(&self) -> Command {
        let mut command = self.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Companion {
    /// Takes the streams of a child that was started with all three piped.
    pub(crate) fn of(child: &mut std::process::Child) -> io::Result<Companion> {
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => {
                Ok(Companion { pid: child.id(), stdin, stdout, stderr })
            }
            _ => Err(io::Error::other("its streams are not piped")),
        }
    }
}
