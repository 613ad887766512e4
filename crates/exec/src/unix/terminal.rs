//! The keyboard. A command in a process group of its own may not read from the terminal unless that group is in the
//! foreground, so it is lent the foreground while it runs.

use std::io::{self, IsTerminal};
use std::process::Child;

use nix::sys::signal::{SigSet, SigmaskHow, Signal, killpg, raise};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use super::keeper::group_of;

/// Who may use the terminal.
pub(super) enum Terminal {
    /// Our input is no terminal, or it was not ours to lend.
    NotOurs,
    /// It is lent to this group, and goes back to us in the end.
    Lent(Pid),
}

impl Terminal {
    /// Lends the terminal to `child`'s group if our input is one and we are in its foreground.
    pub(super) fn lend(shared: bool, child: &Child) -> Terminal {
        if !shared || !io::stdin().is_terminal() || !is_foreground(&[getpgrp()]) {
            return Terminal::NotOurs;
        }
        let terminal = Terminal::Lent(group_of(child));
        terminal.hand_over();
        terminal
    }

    /// The command stopped. If it stopped for want of a terminal that is ours to lend, it gets it; otherwise (Ctrl-Z, or
    /// the job is in the background) we stop as well, for it is us the user's shell waits for, and go on together.
    pub(super) fn stopped(&self, signal: Signal) {
        let Terminal::Lent(group) = self else { return };
        let wants_terminal = matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU);
        if !(wants_terminal && is_foreground(&[*group, getpgrp()])) {
            self.take_back();
            // Our whole group, as the terminal would have done it. In a group that no shell watches this has no effect.
            let _ = killpg(getpgrp(), Signal::SIGTSTP);
            // And this very thread, at once: it must not go on before the shell lets us.
            let _ = raise(Signal::SIGTSTP);
        }
        self.hand_over();
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
            Terminal::Lent(_) | Terminal::NotOurs => {}
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}

fn is_foreground(groups: &[Pid]) -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|foreground| groups.contains(&foreground))
}

/// Puts `group` in the foreground, also from the background, where the system would stop us for trying.
fn set_foreground(group: Pid) {
    let mut stopping = SigSet::empty();
    stopping.add(Signal::SIGTTOU);
    let Ok(before) = stopping.thread_swap_mask(SigmaskHow::SIG_BLOCK) else { return };
    // A terminal that went away needs no foreground.
    let _ = tcsetpgrp(io::stdin(), group);
    let _ = before.thread_set_mask();
}
