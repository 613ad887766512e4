//! Services that misbehave. What a service answers to the nth attempt of a call depends on the seed, on the time and on the
//! load it is under, never on who asks.

use super::demand::{Size, Wanted, fixed};
use super::failure::Failure;

/// The time limit of an attempt that nobody has raised.
pub const LIMIT: u64 = 10_000;
/// How long it takes to be refused.
const REFUSAL: u64 = 100;

/// What is wrong with a service.
#[derive(Debug, Clone, Copy)]
pub enum Trouble {
    /// So many of a thousand attempts fail, whatever came before.
    Chance { per_mille: u64, faces: &'static [Failure] },
    /// It is away for so long, once in every so long.
    Outages { lasts: u64, every: u64, faces: &'static [Failure] },
    /// So many of a thousand calls can never work.
    Broken { per_mille: u64, faces: &'static [Failure] },
    /// A call that fails at first works again so long after it was first sent, and not before.
    HealsAfter { per_mille: u64, least: u64, most: u64, faces: &'static [Failure] },
    /// This happens to one program alone.
    Of { program: u8, trouble: &'static Trouble },
    /// Each client has so many calls in a window of time; does the server say when the next one begins?
    Throttled { calls: u32, window: u64, tells: bool },
    /// So many of a thousand calls take so long, each time.
    Slow { per_mille: u64, least: u64, most: u64 },
    /// So many of a thousand attempts are never answered.
    Hangs { per_mille: u64 },
    /// It serves so many percent of what is wanted on the mean, one after another, and works on for those who have left. For
    /// `dip_lasts` it serves only `dip`. Who would have to wait for more than `longest_queue` at full speed is turned away,
    /// which costs `refusal` percent of what serving costs.
    Queue { percent: u64, dip: u64, dip_at: u64, dip_lasts: u64, longest_queue: u64, refusal: u64 },
}

/// One attempt as it arrives.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub wanted: Wanted,
    /// Counted from 0.
    pub attempt: u8,
    pub at: u64,
    /// How long the caller waits for an answer.
    pub limit: u64,
}

/// What comes of an attempt.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    pub took: u64,
    pub end: End,
}

/// How an attempt ends.
#[derive(Debug, Clone, Copy)]
pub enum End {
    Served,
    Failed {
        failure: Failure,
        /// Nothing that chance could have done would have made it work.
        hopeless: bool,
        /// The server carried it out all the same.
        applied: bool,
    },
}

/// A service in the course of one run.
pub struct Service {
    troubles: &'static [Trouble],
    size: Size,
    seed: u64,
    /// For each client its window, and the calls in it.
    windows: Vec<(u64, u32)>,
    /// Calls that wait, and when they were counted.
    waiting: f64,
    counted: u64,
}

impl Service {
    /// A service with all these troubles; the first that ends an attempt decides.
    pub fn new(troubles: &'static [Trouble], size: Size, seed: u64) -> Service {
        let windows = vec![(0, 0); size.clients];
        Service { troubles, size, seed, windows, waiting: 0.0, counted: 0 }
    }

    /// Answers an attempt. They must come in the order of their time.
    pub fn answer(&mut self, sent: &Sent) -> Answer {
        let mut took = 200 + fixed(self.seed, [2, sent.wanted.number as u64, sent.attempt.into()]).below(400);
        for (place, trouble) in (0..).zip(self.troubles) {
            match self.hit(*trouble, place, sent, took) {
                Hit::Missed => {}
                Hit::Slowed(longer) => took = longer,
                Hit::Ended(answer) => return answer,
            }
        }
        Answer { took, end: End::Served }
    }

    fn hit(&mut self, trouble: Trouble, place: u64, sent: &Sent, took: u64) -> Hit {
        let number = sent.wanted.number as u64;
        let mut of_call = fixed(self.seed, [10 + place, number, 0]);
        let mut of_attempt = fixed(self.seed, [10 + place, number, 1 + u64::from(sent.attempt)]);
        let face = |faces: &[Failure], throw: u64| faces[(throw % faces.len() as u64) as usize];
        match trouble {
            Trouble::Chance { per_mille, faces } => match of_attempt.below(1_000) < per_mille {
                true => {
                    let failure = face(faces, of_attempt.next());
                    let applied = failure == Failure::Reset && of_attempt.below(2) == 0;
                    Hit::Ended(Answer {
                        took: took / 2,
                        end: End::Failed { failure, hopeless: false, applied },
                    })
                }
                false => Hit::Missed,
            },
            Trouble::Outages { lasts, every, faces } => {
                let turn = sent.at / every;
                let mut of_turn = fixed(self.seed, [10 + place, turn, u64::MAX]);
                let from = turn * every + of_turn.below(every - lasts);
                match (from..from + lasts).contains(&sent.at) {
                    true => Hit::refused(face(faces, of_turn.next())),
                    false => Hit::Missed,
                }
            }
            Trouble::Broken { per_mille, faces } => match of_call.below(1_000) < per_mille {
                true => Hit::refused(face(faces, of_call.next())),
                false => Hit::Missed,
            },
            Trouble::HealsAfter { per_mille, least, most, faces } => {
                let hit = of_call.below(1_000) < per_mille;
                let healed = sent.wanted.at + least + of_call.below(most - least);
                match hit && sent.at < healed {
                    true => Hit::refused(face(faces, of_call.next())),
                    false => Hit::Missed,
                }
            }
            Trouble::Of { program, trouble } => match sent.wanted.program == program {
                true => self.hit(*trouble, place, sent, took),
                false => Hit::Missed,
            },
            Trouble::Throttled { calls, window, tells } => {
                let (now, made) = &mut self.windows[sent.wanted.client];
                if *now != sent.at / window {
                    (*now, *made) = (sent.at / window, 0);
                }
                *made += 1;
                let rest = window - sent.at % window;
                match *made > calls {
                    true => {
                        let after = tells.then_some(rest.div_ceil(1_000));
                        Hit::refused(Failure::TooMany { after })
                    }
                    false => Hit::Missed,
                }
            }
            Trouble::Slow { per_mille, least, most } => match of_call.below(1_000) < per_mille {
                true => match least + of_call.below(most - least) {
                    needs if needs >= sent.limit => Hit::timed_out(sent.limit, true),
                    needs => Hit::Slowed(needs),
                },
                false => Hit::Missed,
            },
            Trouble::Hangs { per_mille } => match of_attempt.below(1_000) < per_mille {
                true => Hit::timed_out(sent.limit, false),
                false => Hit::Missed,
            },
            Trouble::Queue { percent, dip, dip_at, dip_lasts, longest_queue, refusal } => {
                let full = self.size.per_second() * percent as f64 / 100_000.0;
                let low = self.size.per_second() * dip as f64 / 100_000.0;
                let dip = dip_at..dip_at + dip_lasts;
                let slow = sent.at.clamp(dip.start, dip.end) - self.counted.clamp(dip.start, dip.end);
                let served = full * (sent.at - self.counted - slow) as f64 + low * slow as f64;
                (self.waiting, self.counted) = ((self.waiting - served).max(0.0), sent.at);
                let wait = self.waiting / if dip.contains(&sent.at) { low } else { full };
                if self.waiting / full > longest_queue as f64 {
                    self.waiting += refusal as f64 / 100.0;
                    return Hit::refused(Failure::Unavailable);
                }
                self.waiting += 1.0;
                match took + wait as u64 {
                    late if late >= sent.limit => Hit::timed_out(sent.limit, true),
                    longer => Hit::Slowed(longer),
                }
            }
        }
    }
}

/// What a trouble does to an attempt.
enum Hit {
    Missed,
    Slowed(u64),
    Ended(Answer),
}

impl Hit {
    fn refused(failure: Failure) -> Hit {
        Hit::Ended(Answer { took: REFUSAL, end: End::Failed { failure, hopeless: true, applied: false } })
    }

    fn timed_out(limit: u64, hopeless: bool) -> Hit {
        let end = End::Failed { failure: Failure::TimedOut, hopeless, applied: true };
        Hit::Ended(Answer { took: limit, end })
    }
}
