//! Our standard input, and whether the command took any of it.
//!
//! Nothing is ever taken out of a pipe before the command took it from us, so that what it leaves is still there for the
//! next attempt, or for the loop of a shell script that reads from the same pipe.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Command;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::fs::{FileType, fstat, stat};

use super::pump::is_passing;
use crate::job::Job;

/// As much as is under way at once: a pipe that holds one page can be written to again when all of it was taken, and that is
/// how we know.
const PAGE: usize = 4096;

/// How our input is watched.
pub(super) enum Intake {
    /// Not at all: nobody asked, a person types it, or there is nothing in it.
    Unwatched,
    /// It is a file, and was at this place.
    File { file: File, at: u64 },
    /// It is a pipe or a socket, and passed on as it is taken.
    PassedOn(Passage),
    /// Nobody can tell.
    Untold,
}

/// The way from a pipe or socket of ours to the command.
pub(super) struct Passage {
    from: File,
    glass: Glass,
    to: File,
    theirs: Option<OwnedFd>,
}

/// How one sees what is in there without taking it.
enum Glass {
    /// A pipe: it is doubled into this one.
    #[cfg(target_os = "linux")]
    Pipe { copy: File, into: OwnedFd },
    /// A socket.
    #[cfg(target_os = "linux")]
    Socket,
}

impl Intake {
    /// Looks at what our input is.
    pub(super) fn of(job: &Job) -> io::Result<Intake> {
        let stdin = io::stdin();
        if !job.watches_input() || stdin.is_terminal() {
            return Ok(Intake::Unwatched);
        }
        let mut ours = File::from(stdin.as_fd().try_clone_to_owned()?);
        let about = fstat(&ours)?;
        Ok(match FileType::from_raw_mode(about.st_mode) {
            FileType::RegularFile => {
                let at = ours.stream_position()?;
                Intake::File { file: ours, at }
            }
            FileType::CharacterDevice
                if stat("/dev/null").is_ok_and(|null| null.st_rdev == about.st_rdev) =>
            {
                Intake::Unwatched
            }
            #[cfg(target_os = "linux")]
            FileType::Fifo => {
                let (copy, into) = io::pipe()?;
                Intake::PassedOn(Passage::new(
                    ours,
                    Glass::Pipe { copy: File::from(OwnedFd::from(copy)), into: into.into() },
                )?)
            }
            #[cfg(target_os = "linux")]
            FileType::Socket => Intake::PassedOn(Passage::new(ours, Glass::Socket)?),
            _ => Intake::Untold,
        })
    }

    /// Gives `command` its input.
    pub(super) fn attach(&mut self, command: &mut Command) {
        match self {
            Intake::PassedOn(passage) => {
                if let Some(theirs) = passage.theirs.take() {
                    command.stdin(theirs);
                }
            }
            Intake::Unwatched | Intake::File { .. } | Intake::Untold => {}
        }
    }

    /// Whether any of it was taken by a command that has ended. Of what is passed on, the passage tells.
    pub(super) fn was_used(self) -> bool {
        match self {
            Intake::Unwatched | Intake::PassedOn(_) => false,
            Intake::File { mut file, at } => !matches!(file.stream_position(), Ok(now) if now == at),
            Intake::Untold => true,
        }
    }
}

impl Passage {
    #[cfg(target_os = "linux")]
    fn new(from: File, glass: Glass) -> io::Result<Passage> {
        let (theirs, to) = io::pipe()?;
        rustix::pipe::fcntl_setpipe_size(&to, PAGE)?;
        Ok(Passage { from, glass, to: File::from(OwnedFd::from(to)), theirs: Some(theirs.into()) })
    }

    /// Passes on what there is until `ended` closes, and tells whether any of it was taken.
    pub(super) fn pass_on(self, ended: &UnixStream) -> bool {
        // What cannot be read on was read as far as it could be.
        self.page_by_page(ended).unwrap_or(true)
    }

    /// Shows the command one page after the other, and takes from our input what it took. Closes its input at the end.
    fn page_by_page(mut self, ended: &UnixStream) -> io::Result<bool> {
        let mut page = [0; PAGE];
        let mut was_used = false;
        loop {
            let [_, has_ended] = wait(&self.from, PollFlags::POLLIN, ended);
            if has_ended {
                return Ok(was_used);
            }
            let shown = match self.look(&mut page) {
                Ok(0) => return Ok(was_used),
                Ok(shown) => shown,
                Err(error) if is_passing(&error) => continue,
                Err(_) => return Ok(was_used),
            };
            if self.to.write_all(&page[..shown]).is_err() {
                // It closed its input.
                return Ok(was_used);
            }
            let left = self.until_taken(ended)?;
            let taken = shown - left.min(shown);
            self.from.read_exact(&mut page[..taken])?;
            was_used |= taken > 0;
            if left > 0 {
                return Ok(was_used);
            }
        }
    }

    /// Looks at what comes next in our input; nothing means its end.
    fn look(&mut self, page: &mut [u8; PAGE]) -> io::Result<usize> {
        match &mut self.glass {
            #[cfg(target_os = "linux")]
            Glass::Pipe { copy, into } => {
                let seen = rustix::pipe::tee(&self.from, into, PAGE, rustix::pipe::SpliceFlags::NONBLOCK)?;
                copy.read_exact(&mut page[..seen])?;
                Ok(seen)
            }
            #[cfg(target_os = "linux")]
            Glass::Socket => {
                use rustix::net::{RecvFlags, recv};
                let (seen, _) = recv(&self.from, &mut page[..], RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
                Ok(seen)
            }
        }
    }

    /// Waits until the command took all it was shown, or will take no more; tells what is left.
    fn until_taken(&self, ended: &UnixStream) -> io::Result<usize> {
        loop {
            let [has_room, has_ended] = wait(&self.to, PollFlags::POLLOUT, ended);
            let left = rustix::io::ioctl_fionread(&self.to)? as usize;
            if left == 0 || has_room || has_ended {
                return Ok(left);
            }
        }
    }
}

/// Waits for `file` or the end; tells which of them it was.
fn wait(file: &File, flags: PollFlags, ended: &UnixStream) -> [bool; 2] {
    let mut news = [PollFd::new(file.as_fd(), flags), PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
    // An interrupted wait found nothing; the caller waits again.
    match poll(&mut news, PollTimeout::NONE) {
        Ok(_) => news.map(|fd| fd.any().unwrap_or(true)),
        Err(_) => [false; 2],
    }
}
