//! The pump: moves bytes from the command to the sink and the user, until both streams end.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{ChildStderr, ChildStdout};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::keeper::patience;
use super::pulse::Pulse;
use crate::job::{Audience, Job, Stream, Undelivered};

/// One read takes at most this much: enough that the calls do not count, little enough to stay in the processor's cache
/// between the read, the sink and the write.
const CHUNK: usize = 128 * 1024;

/// How much a pipe of ours holds where the system lets us choose: the command goes on printing while we write.
#[cfg(target_os = "linux")]
const PIPE: usize = 256 * 1024;

/// What may still be read when the lingering is over: a pipe's largest usual capacity. What the command itself wrote
/// before it ended is in there; anything beyond comes from those it left behind.
const LEFT_OVER: usize = 1024 * 1024;

/// Both outputs of one command.
pub(super) struct Pump {
    outlets: [Outlet; 2],
    linger: Duration,
    pulse: Pulse,
}

/// One output: where it comes from and where it goes.
struct Outlet {
    stream: Stream,
    /// `None` before the start and after the end.
    source: Option<File>,
    /// `None` where only the sink listens.
    user: Option<File>,
    undelivered: Option<Undelivered>,
}

/// How far the command is.
enum Phase {
    Running,
    /// It ended; reading goes on until `until`, and beyond it only for what is already there.
    Ended {
        until: Instant,
        left_over: usize,
    },
}

impl Pump {
    /// Opens the user's side: our own outputs, past the buffers and line splitting of the standard library.
    pub(super) fn new(job: &Job, pulse: Pulse) -> io::Result<Pump> {
        let own = |fd: io::Result<OwnedFd>| match job.audience {
            Audience::SinkAndUser => fd.map(|fd| Some(File::from(fd))),
            Audience::SinkOnly | Audience::UserOnly => Ok(None),
        };
        let stdout = own(io::stdout().as_fd().try_clone_to_owned())?;
        let stderr = own(io::stderr().as_fd().try_clone_to_owned())?;
        let outlets = [
            Outlet { stream: Stream::Stdout, source: None, user: stdout, undelivered: None },
            Outlet { stream: Stream::Stderr, source: None, user: stderr, undelivered: None },
        ];
        Ok(Pump { outlets, linger: job.linger, pulse })
    }

    /// Takes the command's side: its pipes, and what is heard of its terminal if it has one.
    pub(super) fn connect(
        &mut self,
        stdout: Option<ChildStdout>,
        stderr: Option<ChildStderr>,
        terminal: Option<(Stream, OwnedFd)>,
    ) {
        self.outlets[0].source = stdout.map(|pipe| widened(pipe.into()));
        self.outlets[1].source = stderr.map(|pipe| widened(pipe.into()));
        if let Some((stream, fd)) = terminal {
            self.outlets[0].stream = stream;
            self.outlets[0].source = Some(File::from(fd));
        }
    }

    /// Moves everything, and returns what our own outputs could not take. `ended` closes when the command has ended.
    pub(super) fn run(
        mut self,
        ended: &mut UnixStream,
        mut sink: impl FnMut(Stream, &[u8]),
    ) -> Option<Undelivered> {
        let mut buffer = vec![0; CHUNK];
        let mut phase = Phase::Running;
        while self.outlets.iter().any(|outlet| outlet.source.is_some()) {
            let (ready, has_ended) = self.wait(ended, &phase);
            let mut moved = 0;
            for (outlet, _) in self.outlets.iter_mut().zip(ready).filter(|(_, ready)| *ready) {
                moved += outlet.move_once(&mut buffer, &mut sink);
            }
            if moved > 0 {
                self.pulse.beat();
            }
            phase = match phase {
                Phase::Running if has_ended => {
                    Phase::Ended { until: Instant::now() + self.linger, left_over: LEFT_OVER }
                }
                Phase::Running => Phase::Running,
                Phase::Ended { until, .. } if Instant::now() < until => {
                    Phase::Ended { until, left_over: LEFT_OVER }
                }
                Phase::Ended { until, left_over } => match left_over.checked_sub(moved) {
                    Some(left_over) if moved > 0 => Phase::Ended { until, left_over },
                    Some(_) | None => break,
                },
            };
        }
        self.outlets.into_iter().find_map(Outlet::close)
    }

    /// Waits until there is something to do: which outlets have bytes (or their end), and whether the command ended.
    fn wait(&self, ended: &UnixStream, phase: &Phase) -> ([bool; 2], bool) {
        let timeout = match phase {
            Phase::Running => PollTimeout::NONE,
            Phase::Ended { until, .. } => patience(Some(*until)),
        };
        let sources: Vec<_> = self.outlets.iter().filter_map(|outlet| outlet.source.as_ref()).collect();
        let mut fds: Vec<_> =
            sources.iter().map(|file| PollFd::new(file.as_fd(), PollFlags::POLLIN)).collect();
        if let Phase::Running = phase {
            fds.push(PollFd::new(ended.as_fd(), PollFlags::POLLIN));
        }
        // An interrupted wait found nothing; the caller waits again.
        let _ = poll(&mut fds, timeout);
        let mut found = fds.iter().map(|fd| fd.any().unwrap_or(true));
        let ready =
            [0, 1].map(|at: usize| self.outlets[at].source.is_some() && found.next().unwrap_or(false));
        (ready, found.next().unwrap_or(false))
    }
}

impl Outlet {
    /// Moves what is there, at most one buffer full, and returns how much it was. An end or an error closes the source.
    fn move_once(&mut self, buffer: &mut [u8], sink: &mut impl FnMut(Stream, &[u8])) -> usize {
        let Some(source) = &mut self.source else { return 0 };
        let read = match source.read(buffer) {
            Ok(0) => 0,
            Ok(read) => read,
            Err(error) if is_passing(&error) => return 0,
            Err(_) => 0,
        };
        if read == 0 {
            self.source = None;
            return 0;
        }
        let bytes = &buffer[..read];
        sink(self.stream, bytes);
        if let Some(user) = &mut self.user
            && let Err(error) = write_all(user, bytes)
        {
            // The user's side is closed (`| head`) or full. With its own pipe closed the command learns it as it would have
            // without us.
            self.undelivered = Undelivered::by(self.stream, &error);
            self.source = None;
        }
        read
    }
}

impl Outlet {
    /// Returns what could not be written. Some file systems say only now that there was no room for it.
    fn close(self) -> Option<Undelivered> {
        let Outlet { stream, user, undelivered, .. } = self;
        let closed = user.map_or(Ok(()), nix::unistd::close).map_err(io::Error::from);
        undelivered.or_else(|| Undelivered::by(stream, &closed.err()?))
    }
}

/// Lets a pipe hold more, where the system has that to give; a small one is only slower.
fn widened(pipe: OwnedFd) -> File {
    #[cfg(target_os = "linux")]
    let _ = rustix::pipe::fcntl_setpipe_size(&pipe, PIPE);
    File::from(pipe)
}

/// Writes all of it, also to a terminal that another program left in non-blocking mode.
fn write_all(to: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let _ = poll(&mut [PollFd::new(to.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether trying again may work.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}
