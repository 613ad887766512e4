//! One store that is struck again and again, each time somewhere else: what one blow leaves behind is what the next one meets.

use std::path::Path;

use super::strace::{BLOWS, Place, places};
use super::sweep::{self, Tally, hold};
use crate::Fault;
use crate::dice::Dice;
use crate::ledger::{Found, Ledger};
use crate::world::{Call, World, lines};

/// Strikes `rounds` times at random. The same seed strikes at the same places.
pub fn run(unstuck: &Path, rounds: u64, seed: u64) -> Result<Tally, Fault> {
    let world = World::in_memory(unstuck)?;
    let mut dice = Dice(seed);
    let mut ledger = Ledger::default();
    let mut tally = Tally::default();
    let mut known: Vec<Place> = Vec::new();
    for round in 0..rounds {
        let call = Call::named("chaos", format!("chaos-{round}"));
        let input = lines(&[call.before(), call.after(if dice.below(3) == 0 { 0 } else { 2 })]);
        if round % 50 == 0 {
            // The way of the hook changes with what lies in the folder; a copy shows today's.
            let copy = World::like(unstuck, &world.state())?;
            known.extend(places(&copy, &input)?);
            tally.places = known.len();
        }
        if dice.below(4) == 0 && world.store().join("timeline.db").exists() {
            let held = hold(&world.store())?;
            let waits = Call::named("chaos", format!("waits-{round}"));
            let told = world.send(&[waits.before()])?.told()?;
            ledger.note(&waits.mark, &told);
            drop(held);
        }
        let place = &known[dice.below(known.len() as u64) as usize];
        let blow = BLOWS[dice.below(BLOWS.len() as u64) as usize];
        if !sweep::makes_sense(place, blow) {
            continue;
        }
        if let Err(wrong) = sweep::one(&world, &mut ledger, &call, &input, place, blow, &mut tally) {
            tally.broken.push(format!("round {round} of seed {seed}, {blow} at {place}: {wrong}"));
            // What is broken stays broken; everything after it would only repeat that.
            break;
        }
    }
    let exported = Found::exported(&world.run(&["export", "--jsonl"])?.answers()?)?;
    if let Err(wrong) = ledger.compare(&exported) {
        tally.broken.push(format!("unstuck export after {rounds} rounds of seed {seed}: {wrong}"));
    }
    Ok(tally)
}
