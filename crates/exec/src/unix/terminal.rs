//! Who has the user's terminal. A command in a process group of its own may not read from it unless that group is in the
//! foreground, so it is lent the foreground while it runs; one with a terminal of its own has what is typed passed on.

use std::io::{self, IsTerminal};
use std::os::fd::{BorrowedFd, OwnedFd};

use nix::poll::PollFlags;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg, raise};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use super::console::Console;
use super::pty::copy_size;

/// Who may use the terminal.
pub(super) enum Terminal {
    /// Our input is no terminal, or it was not ours to lend.
    NotOurs,
    /// It is lent to this group, and goes back to us in the end.
    Lent(Pid),
    /// It stays with us; what the command prints goes through this one, which is as large.
    Shown(OwnedFd),
    /// The command has one of its own, and what is typed at ours is passed on to it.
    PassedOn(Console),
}

impl Terminal {
    /// Lends the terminal to `group` if our input is one and we are in its foreground.
    pub(super) fn lend(shared: bool, group: Pid) -> Terminal {
        if !shared || !io::stdin().is_terminal() || !is_foreground(&[getpgrp()]) {
            return Terminal::NotOurs;
        }
        let terminal = Terminal::Lent(group);
        terminal.hand_over();
        terminal
    }

    /// What there is to wait for, beside signals.
    pub(super) fn awaits(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match self {
            Terminal::PassedOn(console) => console.awaits(),
            Terminal::NotOurs | Terminal::Lent(_) | Terminal::Shown(_) => None,
        }
    }

    /// What was waited for is there. `group` is the command's.
    pub(super) fn relay(&mut self, group: Pid) {
        match self {
            Terminal::PassedOn(console) => console.relay(group),
            Terminal::NotOurs | Terminal::Lent(_) | Terminal::Shown(_) => {}
        }
    }

    /// Whether somebody typed what means to end.
    pub(super) fn asked_to_end(&self) -> bool {
        match self {
            Terminal::PassedOn(console) => console.asked_to_end(),
            Terminal::NotOurs | Terminal::Lent(_) | Terminal::Shown(_) => false,
        }
    }

    /// Whether somebody typed it more than once, to a command that does not take it for anything else.
    pub(super) fn insists(&self) -> bool {
        match self {
            Terminal::PassedOn(console) => console.insists(),
            Terminal::NotOurs | Terminal::Lent(_) | Terminal::Shown(_) => false,
        }
    }

    /// The user's terminal has another size. `group` is the command's.
    pub(super) fn resized(&self, group: Pid) {
        match self {
            Terminal::PassedOn(console) => console.resized(),
            Terminal::Shown(theirs) => {
                copy_size(theirs);
                let _ = killpg(group, Signal::SIGWINCH);
            }
            Terminal::NotOurs | Terminal::Lent(_) => {}
        }
    }

    /// We go on after a stop, perhaps in another place than before.
    pub(super) fn resumed(&mut self) {
        match self {
            Terminal::PassedOn(console) => console.attend(),
            Terminal::NotOurs | Terminal::Lent(_) | Terminal::Shown(_) => {}
        }
    }

    /// `child` stopped. If it stopped for want of a terminal that is ours to lend, it gets it; otherwise (Ctrl-Z, or the job
    /// is in the background) we stop as well, for it is us the user's shell waits for, and go on together.
    pub(super) fn stopped(&mut self, child: Pid, signal: Signal) {
        match self {
            Terminal::NotOurs | Terminal::Shown(_) => {}
            Terminal::PassedOn(console) => {
                console.stop_too();
                let _ = kill(child, Signal::SIGCONT);
            }
            Terminal::Lent(group) => {
                let wants_terminal = matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU);
                if !(wants_terminal && is_foreground(&[*group, getpgrp()])) {
                    self.take_back();
                    stop();
                }
                self.hand_over();
            }
        }
    }

    /// Lets the command go on, in the foreground if that is ours.
    fn hand_over(&self) {
        let Terminal::Lent(group) = self else { return };
        if is_foreground(&[getpgrp()]) {
            set_foreground(*group);
        }
        // It may have asked for the terminal before it had it, and been stopped for that.
        let _ = killpg(*group, Signal::SIGCONT);
    }

    /// Takes back what is lent. What the user's shell took in the meantime (`bg`) is left to the shell.
    fn take_back(&self) {
        match self {
            Terminal::Lent(group) if is_foreground(&[*group]) => set_foreground(getpgrp()),
            Terminal::Lent(_) | Terminal::NotOurs | Terminal::Shown(_) | Terminal::PassedOn(_) => {}
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}

pub(super) fn is_foreground(groups: &[Pid]) -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|foreground| groups.contains(&foreground))
}

fn set_foreground(group: Pid) {
    // A terminal that went away needs no foreground.
    let _ = while_in_background(|| tcsetpgrp(io::stdin(), group));
}

/// Does something to the terminal also from the background, where the system would stop us for trying.
pub(super) fn while_in_background(act: impl FnOnce() -> nix::Result<()>) -> nix::Result<()> {
    holding_back(Signal::SIGTTOU, act)
}

/// Does something while this thread does not hear `signal`.
fn holding_back(signal: Signal, act: impl FnOnce() -> nix::Result<()>) -> nix::Result<()> {
    let mut held = SigSet::empty();
    held.add(signal);
    let before = held.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let done = act();
    before.thread_set_mask()?;
    done
}

/// Stops us until the user's shell lets us go on. In a group that no shell watches this has no effect.
pub(super) fn stop() {
    // Our whole group, as the terminal would have done it; and this very thread, which must not go on before the shell lets
    // us. Its own signal waits until both are sent: had we been stopped by the first and let go on again, it is void.
    let _ = holding_back(Signal::SIGTSTP, || {
        raise(Signal::SIGTSTP)?;
        killpg(getpgrp(), Signal::SIGTSTP)
    });
}
