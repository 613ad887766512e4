//! A terminal for the command, made to look like ours. It only makes it; who types and who resizes is the console's matter.

use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;

use nix::pty::openpty;
use nix::sys::termios::{OutputFlags, tcgetattr};
use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
use rustix::termios::{tcgetwinsize, tcsetwinsize};

use crate::job::{Audience, Job, Looks, Stream};

/// What the command reads from and prints to, and our end of it.
pub(super) struct Pty {
    ours: OwnedFd,
    theirs: OwnedFd,
    /// Whether it also types: our standard input is a terminal, too.
    pub(super) has_keyboard: bool,
    has_stderr: bool,
}

impl Pty {
    /// Makes one if `job` wants one and our own output goes to a terminal.
    pub(super) fn open(job: &Job) -> io::Result<Option<Pty>> {
        let wanted = job.looks == Looks::AsOurs && job.audience == Audience::SinkAndUser;
        if !wanted || !io::stdout().is_terminal() {
            return Ok(None);
        }
        let has_keyboard = job.shares_input() && io::stdin().is_terminal();
        let mut settings = tcgetattr(io::stdout())?;
        if !has_keyboard {
            // The user's terminal stays as it is and ends lines by itself.
            settings.output_flags.remove(OutputFlags::OPOST);
        }
        let pair = openpty(None, &settings)?;
        fcntl_setfd(&pair.master, FdFlags::CLOEXEC)?;
        fcntl_setfd(&pair.slave, FdFlags::CLOEXEC)?;
        // What is typed must not wait for a command that does not read.
        ioctl_fionbio(&pair.master, true)?;
        copy_size(&pair.master);
        Ok(Some(Pty {
            ours: pair.master,
            theirs: pair.slave,
            has_keyboard,
            has_stderr: io::stderr().is_terminal(),
        }))
    }

    /// Gives `command` its end.
    pub(super) fn attach(&self, command: &mut Command) -> io::Result<()> {
        command.stdout(self.theirs.try_clone()?);
        if self.has_stderr {
            command.stderr(self.theirs.try_clone()?);
        }
        if self.has_keyboard {
            command.stdin(self.theirs.try_clone()?);
        }
        Ok(())
    }

    /// One more of our end.
    pub(super) fn our_end(&self) -> io::Result<OwnedFd> {
        self.ours.try_clone()
    }

    /// What is heard at our end; closes the command's, which it has by now.
    pub(super) fn into_output(self) -> (Stream, OwnedFd) {
        (if self.has_stderr { Stream::Merged } else { Stream::Stdout }, self.ours)
    }
}

/// Makes the terminal behind `ours` as large as the user's. One that went away has no size.
pub(super) fn copy_size(ours: impl AsFd) {
    if let Ok(size) = tcgetwinsize(io::stdout()) {
        let _ = tcsetwinsize(ours, size);
    }
}
