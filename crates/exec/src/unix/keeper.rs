//! The keeper of one child: passes signals on, watches the clock, and says how it ended.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::kin::{self, Kin};
use super::pulse::Pulse;
use super::signals::Signals;
use super::terminal::Terminal;
use crate::job::{Ending, Job, Limit};
use crate::stop::Stop;

/// How often the rest of an ending group is looked at: nobody tells us when a grandchild ends.
const GROUP_LOOK: Duration = Duration::from_millis(10);

/// What the child was already asked to do.
enum Asked {
    /// Nothing; it may run until this moment, if there is one.
    Nothing { until: Option<Instant> },
    /// To end, because a signal reached us; the next one kills it.
    ByUser { until: Option<Instant> },
    /// To end, because its time is over or somebody stopped it; at this moment it is killed.
    ByClock { kill_at: Instant },
    /// It was killed for the same reason.
    KilledByClock,
}

/// Owns the child until it ended.
pub(super) struct Keeper {
    child: Child,
    /// Whom signals are for. Its leader is the child, or the command that the child watches over.
    group: Pid,
    /// Those who left the group, as far as they were looked for when all had to end.
    left: Vec<Kin>,
    grace: Duration,
    pulse: Pulse,
    asked: Asked,
    /// Whether somebody asked for the end, whatever the clock did later.
    by_user: bool,
    stop: Option<Stop>,
    /// Whether it is that which ended it, and not the clock.
    is_stopped: bool,
    signals: Signals,
    terminal: Terminal,
}

impl Keeper {
    pub(super) fn new(
        job: &Job,
        started: Instant,
        pulse: Pulse,
        child: Child,
        group: Pid,
        signals: Signals,
        terminal: Terminal,
    ) -> Keeper {
        let until = match job.limit {
            Limit::None => None,
            // A limit beyond what the clock can express is none.
            Limit::After(limit) => started.checked_add(limit),
        };
        let asked = Asked::Nothing { until };
        Keeper {
            child,
            group,
            left: Vec::new(),
            grace: job.grace,
            pulse,
            asked,
            by_user: false,
            stop: job.stop.clone(),
            is_stopped: false,
            signals,
            terminal,
        }
    }

    /// Waits for the end, doing on the way what signals, the clock and the keyboard ask for. Tells how it ended, whether
    /// somebody asked for it, and who has the terminal.
    pub(super) fn keep(mut self) -> (Ending, bool, Terminal) {
        let ended = loop {
            if let Some(ended) = self.look() {
                break ended;
            }
            if self.wait() {
                self.terminal.relay(self.group);
                if self.terminal.insists() {
                    self.tell(Signal::SIGKILL);
                }
            }
            for signal in self.signals.take() {
                self.forward(signal);
            }
            self.check_clock();
        };
        let ending = match self.asked {
            Asked::Nothing { .. } | Asked::ByUser { .. } => ended,
            Asked::ByClock { kill_at } => {
                self.end_group(kill_at);
                if self.is_stopped { ended } else { Ending::TimedOut }
            }
            Asked::KilledByClock if self.is_stopped => ended,
            Asked::KilledByClock => Ending::TimedOut,
        };
        let asked_to_end = self.by_user || self.is_stopped || self.terminal.asked_to_end();
        (ending, asked_to_end, self.terminal)
    }

    /// The same, and afterwards those whom it left behind are asked to end, too.
    pub(super) fn keep_all(self) -> (Ending, bool, Terminal) {
        let (group, grace) = (self.group, self.grace);
        let kept = self.keep();
        if kin::lives(group) {
            let kill_at = Instant::now() + grace;
            for signal in [Signal::SIGTERM, Signal::SIGCONT] {
                let _nobody_left_is_no_error = killpg(group, signal);
            }
            while kin::lives(group) && !is_past(kill_at) {
                std::thread::sleep(GROUP_LOOK);
            }
            let _nobody_left_is_no_error = killpg(group, Signal::SIGKILL);
        }
        kept
    }

    /// Looks once whether the child ended; one that merely stopped is dealt with.
    fn look(&mut self) -> Option<Ending> {
        match self.child.try_wait() {
            Ok(Some(status)) => return Some(ending(status)),
            Ok(None) => {}
            // Somebody else in this process collected it; how it ended is lost.
            Err(error) => return Some(Ending::NotExecutable(error.to_string())),
        }
        let pid = pid_of(&self.child);
        match waitpid(pid, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED)) {
            Ok(WaitStatus::Stopped(_, signal)) => self.terminal.stopped(pid, signal),
            // It ended just between the two questions.
            Ok(WaitStatus::Exited(_, code)) => return Some(Ending::Exited(code)),
            Ok(WaitStatus::Signaled(_, signal, _)) => return Some(Ending::Signalled(signal as i32)),
            Ok(_) | Err(_) => {}
        }
        None
    }

    /// Sleeps until there is news or something is due; tells whether the terminal has news.
    fn wait(&self) -> bool {
        let due = match self.asked {
            Asked::Nothing { until } | Asked::ByUser { until } => self.pulse.due(until),
            Asked::ByClock { kill_at } => Some(kill_at),
            Asked::KilledByClock => None,
        };
        let terminal = self.terminal.awaits().unwrap_or((self.signals.wake(), PollFlags::empty()));
        // Once it has spoken it is not asked again.
        let stop = match (&self.stop, self.is_stopped) {
            (Some(stop), false) => (stop.wake(), PollFlags::POLLIN),
            (Some(_), true) | (None, _) => (self.signals.wake(), PollFlags::empty()),
        };
        let mut news = [
            PollFd::new(self.signals.wake(), PollFlags::POLLIN),
            PollFd::new(terminal.0, terminal.1),
            PollFd::new(stop.0, stop.1),
        ];
        // An interrupted sleep is only a short one; the caller looks again.
        let found = poll(&mut news, patience(due)).is_ok_and(|found| found > 0);
        found && news[1].any().unwrap_or(false)
    }

    fn forward(&mut self, signal: Signal) {
        match signal {
            Signal::SIGWINCH => self.terminal.resized(self.group),
            Signal::SIGCONT => self.terminal.resumed(),
            // For the command alone: those that it started do not know what was agreed.
            Signal::SIGUSR1 | Signal::SIGUSR2 => {
                let _ = kill(self.group, signal);
            }
            _ => self.ask_to_end(signal),
        }
    }

    fn ask_to_end(&mut self, signal: Signal) {
        self.by_user = true;
        match self.asked {
            Asked::Nothing { until } => {
                self.tell(signal);
                self.asked = Asked::ByUser { until };
            }
            Asked::ByUser { .. } | Asked::ByClock { .. } | Asked::KilledByClock => {
                self.tell_all(Signal::SIGKILL);
            }
        }
    }

    fn check_clock(&mut self) {
        let stops = self.stop.as_ref().is_some_and(Stop::is_stopped);
        match self.asked {
            Asked::Nothing { until } | Asked::ByUser { until }
                if stops || self.pulse.due(until).is_some_and(is_past) =>
            {
                self.is_stopped = stops;
                self.tell_all(Signal::SIGTERM);
                // A stopped process would not notice that it shall end.
                self.tell_all(Signal::SIGCONT);
                self.asked = Asked::ByClock { kill_at: Instant::now() + self.grace };
            }
            Asked::ByClock { kill_at } if is_past(kill_at) => {
                self.tell_all(Signal::SIGKILL);
                self.asked = Asked::KilledByClock;
            }
            Asked::Nothing { .. } | Asked::ByUser { .. } | Asked::ByClock { .. } | Asked::KilledByClock => {}
        }
    }

    /// The child is gone but was told to end with all it started: gives the others the rest of the grace.
    fn end_group(&mut self, kill_at: Instant) {
        while kin::lives(self.group) || self.left.iter().any(|kin| kin.is_there()) {
            if is_past(kill_at) {
                self.tell_all(Signal::SIGKILL);
                return;
            }
            std::thread::sleep(GROUP_LOOK);
        }
    }

    /// Signals the group, and those who left it: they are looked for first, because with their parents the ties are gone.
    fn tell_all(&mut self, signal: Signal) {
        let found = kin::outside(pid_of(&self.child), self.group);
        let new: Vec<Kin> = found.into_iter().filter(|kin| !self.left.contains(kin)).collect();
        self.left.extend(new);
        self.tell(signal);
        self.left.iter().for_each(|kin| kin.tell(signal));
    }

    /// Signals the whole group. That nobody is left to hear it is no error.
    fn tell(&self, signal: Signal) {
        let _ = killpg(self.group, signal);
    }
}

/// The id of `child`, and of the process group that it leads.
pub(super) fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("a process id comes from the system as an i32"))
}

fn ending(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Signalled(signal),
        (None, None) => Ending::NotExecutable(format!("it ended in an unknown way: {status}")),
    }
}

fn is_past(moment: Instant) -> bool {
    moment <= Instant::now()
}

/// The time until `due`, rounded up so that it is really past afterwards, as the system wants to hear it.
pub(super) fn patience(due: Option<Instant>) -> PollTimeout {
    let Some(due) = due else { return PollTimeout::NONE };
    let left = due.saturating_duration_since(Instant::now()) + Duration::from_micros(999);
    // Longer waits are cut: the caller looks at the clock and waits again.
    PollTimeout::try_from(left.as_millis().min(60_000)).unwrap_or(PollTimeout::ZERO)
}
