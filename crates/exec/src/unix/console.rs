//! The user's terminal while the command has one of its own: what is typed goes there, byte for byte, and it is put back as it
//! was whenever the command does not have it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::poll::PollFlags;
use nix::sys::termios::{
    LocalFlags, SetArg, SpecialCharacterIndices, Termios, cfmakeraw, tcgetattr, tcsetattr,
};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};

use super::pty::copy_size;
use super::pump::is_passing;
use super::terminal::{is_foreground, stop, while_in_background};

/// The user's terminal, and our end of the command's.
pub(super) struct Console {
    keyboard: File,
    theirs: File,
    /// How the user's terminal was, and is to be again.
    usual: Termios,
    state: State,
    /// Typed, and not yet taken by the command's terminal.
    under_way: Vec<u8>,
    /// Whether Ctrl-C or Ctrl-\ was typed where it means to end.
    asked_to_end: bool,
    /// How often of that the command was asked itself, by somebody who does not talk to it.
    pleas: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// As the user had it: we are in the background, or stopped.
    Usual,
    /// Every key goes to the command.
    Raw,
    /// Nobody can type there any more.
    Gone,
}

impl Console {
    /// Takes the user's terminal, if we are in its foreground. `theirs` is our end of the command's.
    pub(super) fn take(theirs: OwnedFd) -> io::Result<Console> {
        let keyboard = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let mut console = Console {
            usual: tcgetattr(&keyboard)?,
            keyboard,
            theirs: File::from(theirs),
            state: State::Usual,
            under_way: Vec::new(),
            asked_to_end: false,
            pleas: 0,
        };
        console.attend();
        Ok(console)
    }

    /// The user's terminal, and how it is to be left.
    pub(super) fn to_leave(&self) -> (BorrowedFd<'_>, &Termios) {
        (self.keyboard.as_fd(), &self.usual)
    }

    pub(super) fn asked_to_end(&self) -> bool {
        self.asked_to_end
    }

    /// Whether the command was asked more than once. Who edits lines himself, as shells do, and has others run
    /// in the foreground gets many of these keys and is meant to live.
    pub(super) fn insists(&self) -> bool {
        self.pleas > 1
    }

    /// What there is to wait for.
    pub(super) fn awaits(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match self.state {
            _ if !self.under_way.is_empty() => Some((self.theirs.as_fd(), PollFlags::POLLOUT)),
            State::Raw => Some((self.keyboard.as_fd(), PollFlags::POLLIN)),
            State::Usual | State::Gone => None,
        }
    }

    /// Passes on what was typed. `group` is the command's.
    pub(super) fn relay(&mut self, group: Pid) {
        if self.under_way.is_empty() && self.state == State::Raw {
            let mut typed = [0; 4096];
            match self.keyboard.read(&mut typed) {
                Ok(0) => self.state = State::Gone,
                Ok(length) => self.under_way.extend_from_slice(&typed[..length]),
                Err(error) if is_passing(&error) => {}
                Err(_) => self.state = State::Gone,
            }
            self.hear_pleas(group);
        }
        match self.theirs.write(&self.under_way) {
            Ok(written) => drop(self.under_way.drain(..written)),
            Err(error) if is_passing(&error) => {}
            // Nobody is there to read it.
            Err(_) => self.under_way.clear(),
        }
    }

    /// Looks whether what is under way holds keys that the command's terminal turns into a request to end.
    fn hear_pleas(&mut self, group: Pid) {
        let Ok(settings) = tcgetattr(&self.theirs) else { return };
        if !settings.local_flags.contains(LocalFlags::ISIG) {
            return;
        }
        let keys = [SpecialCharacterIndices::VINTR, SpecialCharacterIndices::VQUIT]
            .map(|key| settings.control_chars[key as usize]);
        let pleas = self.under_way.iter().filter(|byte| keys.contains(byte)).count();
        let is_for_it = tcgetpgrp(&self.theirs).is_ok_and(|foreground| foreground == group);
        self.asked_to_end |= pleas > 0;
        if is_for_it && settings.local_flags.contains(LocalFlags::ICANON) {
            self.pleas += pleas;
        }
    }

    /// The user's terminal has another size.
    pub(super) fn resized(&self) {
        copy_size(&self.theirs);
    }

    /// Takes the user's terminal where we are in its foreground.
    pub(super) fn attend(&mut self) {
        self.resized();
        if self.state == State::Gone || !is_foreground(&[getpgrp()]) {
            return;
        }
        let mut raw = self.usual.clone();
        cfmakeraw(&mut raw);
        if tcsetattr(&self.keyboard, SetArg::TCSANOW, &raw).is_ok() {
            self.state = State::Raw;
        }
    }

    /// Puts the user's terminal back.
    fn leave(&mut self) {
        if self.state == State::Raw {
            // One that went away needs nothing.
            let _ = while_in_background(|| tcsetattr(&self.keyboard, SetArg::TCSANOW, &self.usual));
            self.state = State::Usual;
        }
    }

    /// The command stopped (Ctrl-Z): we stop as well, for it is us the user's shell waits for, and come back here when the
    /// shell lets us go on.
    pub(super) fn stop_too(&mut self) {
        self.leave();
        stop();
        self.attend();
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.leave();
    }
}
