//! Plays one scenario with one policy, in virtual time: the next thing that happens is looked up, nobody sleeps.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use unstuck_judge::Kind;

use super::caller::{Caller, Contender, Ended, Next};
use super::demand::{self, Size, Wanted, fixed};
use super::failure::{Failure, Reader};
use super::scenario::Scenario;
use super::service::{End, LIMIT, Sent, Service};

/// Load is counted in windows of this many milliseconds.
const WINDOW: u64 = 10_000;

/// What came of it.
#[derive(Debug, Default)]
pub struct Measured {
    pub wanted: usize,
    pub succeeded: usize,
    /// All attempts.
    pub attempts: usize,
    /// Retries that could not work when they were sent.
    pub wasted: usize,
    /// Calls that were carried out more than once, where once is not as good as twice.
    pub twice: usize,
    /// The most attempts that came within one window.
    pub peak: u32,
    /// How long each success took from the first attempt on, in milliseconds and in order.
    pub times: Vec<u64>,
    /// How long all calls took that were given up, in milliseconds.
    pub lost: u64,
    /// Why calls were given up.
    pub reasons: BTreeMap<&'static str, usize>,
}

/// A call while it is being made.
#[derive(Clone, Copy)]
struct Open {
    retries: u8,
    sent: u64,
    limit: u64,
    carried_out: u8,
    before: Option<(Duration, Kind)>,
}

/// What happens next to a call. At the same time, ends come before arrivals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Failed(Failure),
    Served,
    Arrives,
}

/// Plays `scenario` with `contender`.
pub fn play(
    scenario: &Scenario,
    contender: Contender<'_>,
    size: Size,
    seed: u64,
    reader: &mut Reader,
) -> Measured {
    let wanted = demand::draw(size, scenario.writing, seed);
    let mut service = Service::new(scenario.troubles, size, seed);
    let mut machines: Vec<Box<dyn Caller + '_>> = (0..size.clients).map(|_| contender.machine()).collect();
    let mut open =
        vec![Open { retries: 0, sent: 0, limit: LIMIT, carried_out: 0, before: None }; wanted.len()];
    let mut ahead: BinaryHeap<Reverse<(u64, Happening, usize)>> =
        wanted.iter().map(|call| Reverse((call.at, Happening::Arrives, call.number))).collect();
    let mut windows: BTreeMap<u64, u32> = BTreeMap::new();
    let mut measured = Measured { wanted: wanted.len(), ..Measured::default() };
    while let Some(Reverse((now, happening, number))) = ahead.pop() {
        let (call, state): (Wanted, &mut Open) = (wanted[number], &mut open[number]);
        let ended = Ended {
            session: call.session,
            program: call.program,
            retries: state.retries,
            begun: call.at,
            sent: state.sent,
            now,
            before: state.before,
        };
        let machine = &mut machines[call.client];
        match happening {
            Happening::Arrives => {
                let sent = Sent { wanted: call, attempt: state.retries, at: now, limit: state.limit };
                let answer = service.answer(&sent);
                state.sent = now;
                measured.attempts += 1;
                *windows.entry(now / WINDOW).or_default() += 1;
                let (applied, wasted, then) = match answer.end {
                    End::Served => (true, false, Happening::Served),
                    End::Failed { failure, hopeless, applied } => {
                        (applied, hopeless && state.retries > 0, Happening::Failed(failure))
                    }
                };
                state.carried_out += u8::from(applied);
                measured.wasted += usize::from(wasted);
                ahead.push(Reverse((now + answer.took, then, number)));
            }
            Happening::Served => {
                machine.succeeded(&ended);
                measured.succeeded += 1;
                measured.times.push(now - call.at);
                measured.twice += usize::from(call.writes && state.carried_out > 1);
            }
            Happening::Failed(failure) => {
                let read = reader.read(failure, call.writes);
                let mut dice = fixed(seed, [3, number as u64, state.retries.into()]);
                match machine.failed(&ended, read, &mut dice) {
                    Next::Again { wait, limit } => {
                        state.retries += 1;
                        state.limit = limit;
                        state.before = Some((wait, read.kind));
                        ahead.push(Reverse((now + wait.as_millis() as u64, Happening::Arrives, number)));
                    }
                    Next::GiveUp(why) => {
                        measured.lost += now - call.at;
                        *measured.reasons.entry(why).or_default() += 1;
                        measured.twice += usize::from(call.writes && state.carried_out > 1);
                    }
                }
            }
        }
    }
    measured.peak = windows.into_values().max().unwrap_or(0);
    measured.times.sort_unstable();
    measured
}

impl Measured {
    /// Successes in a hundred calls.
    pub fn success(&self) -> f64 {
        100.0 * self.succeeded as f64 / self.wanted as f64
    }

    /// Wasted retries for a hundred calls.
    pub fn waste(&self) -> f64 {
        100.0 * self.wasted as f64 / self.wanted as f64
    }

    /// Attempts for each call.
    pub fn load(&self) -> f64 {
        self.attempts as f64 / self.wanted as f64
    }

    /// The time below which this part of the successes lies, in seconds.
    pub fn time(&self, part: f64) -> f64 {
        let place = (self.times.len().saturating_sub(1) as f64 * part).round() as usize;
        self.times.get(place).copied().unwrap_or(0) as f64 / 1_000.0
    }
}
