//! What is asked for, and when: drawn once from the seed, and the same for every policy.

use crate::dice::Dice;

/// Calls of one session; then budget, breaker and token bucket begin anew.
const SESSION: usize = 50;
/// Programs through which a client calls.
const PROGRAMS: u64 = 4;

/// How much is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Machines that call.
    pub clients: usize,
    /// Calls that each of them makes.
    pub calls: usize,
    /// The mean time between two calls of a client, in milliseconds.
    pub pace: u64,
}

impl Size {
    /// How many calls come in a second, from all clients.
    pub fn per_second(self) -> f64 {
        self.clients as f64 * 1_000.0 / self.pace as f64
    }
}

/// One call that somebody wants made.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Its number among all.
    pub number: usize,
    /// Who wants it.
    pub client: usize,
    /// In which of the client's sessions.
    pub session: usize,
    /// Through which program.
    pub program: u8,
    /// When, in milliseconds.
    pub at: u64,
    /// Does it change something anew each time?
    pub writes: bool,
}

/// Everything that is wanted; `writing` of a hundred calls change something.
pub fn draw(size: Size, writing: u64, seed: u64) -> Vec<Wanted> {
    let mut all = Vec::with_capacity(size.clients * size.calls);
    for client in 0..size.clients {
        let mut dice = fixed(seed, [1, client as u64, 0]);
        let mut at = 0;
        for nth in 0..size.calls {
            at += (-(1.0 - unit(&mut dice)).ln() * size.pace as f64) as u64;
            let writes = dice.below(100) < writing;
            let program = fixed(seed, [4, client as u64, nth as u64]).below(PROGRAMS) as u8;
            all.push(Wanted { number: all.len(), client, session: nth / SESSION, program, at, writes });
        }
    }
    all
}

/// Dice that depend on nothing but the seed and what they are thrown for, so that they fall alike under every policy.
pub fn fixed(seed: u64, parts: [u64; 3]) -> Dice {
    Dice(parts.into_iter().fold(seed, |mixed, part| Dice(mixed ^ part).next()))
}

/// A throw from 0 up to, and without, 1.
fn unit(dice: &mut Dice) -> f64 {
    (dice.next() >> 11) as f64 / (1_u64 << 53) as f64
}
