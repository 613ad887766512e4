//! How our retry policy fares beside others: many clients, services that misbehave, virtual time, and dice that fall as the
//! seed says. The same seed gives the same figures on every machine.
//!
//! What is simulated is the service and the clock. Failures are read by the judge's rules, and retries are decided by the
//! judge's functions.

mod caller;
mod demand;
mod failure;
mod ours;
mod peers;
mod play;
mod scenario;
mod service;
mod table;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::PathBuf;

use lexopt::prelude::*;
use unstuck_judge::retry::Policy;

use crate::Fault;
use crate::bench::{Section, write_page};
use caller::Contender;
use demand::Size;
use failure::Reader;
use play::play;
use table::Played;

/// The mark on the page.
const MARK: &str = "retries";
const FULL: Size = Size { clients: 50, calls: 1_000, pace: 10_000 };

/// `cargo xtask simulate`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let (mut seed, mut write, mut json) = (1, false, false);
    let (mut only, mut with): (Option<String>, Option<PathBuf>) = (None, None);
    while let Some(arg) = args.next()? {
        match arg {
            Long("seed") => seed = args.value()?.parse()?,
            Long("write") => write = true,
            Long("json") => json = true,
            Long("only") => only = Some(args.value()?.parse()?),
            Long("with") => with = Some(args.value()?.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    if write && (only.is_some() || with.is_some()) {
        return Err("--write is for everything, as it comes; leave --only and --with out".into());
    }
    let changed =
        with.map(|file| -> Result<Policy, Fault> { Ok(Policy::from_toml(&fs::read_to_string(file)?)?) });
    let changed = changed.transpose()?;
    let mut contenders = Contender::ALL.to_vec();
    contenders.extend(changed.as_ref().map(Contender::Changed));
    let scenarios = scenario::ALL.iter().filter(|known| only.as_ref().is_none_or(|name| known.name == name));
    let all: Vec<Played<'_>> = scenarios.map(|scenario| contest(scenario, &contenders, FULL, seed)).collect();
    if all.is_empty() {
        let names: Vec<&str> = scenario::ALL.iter().map(|known| known.name).collect();
        return Err(format!("there is no such scenario; there are {}", names.join(", ")).into());
    }
    let report = format!(
        "{} clients, {} calls each, one in {} s on the mean; seed {seed}.\n{}",
        FULL.clients,
        FULL.calls,
        FULL.pace / 1_000,
        table::page(&all)?
    );
    match json {
        true => println!("{:#}", table::json(&all, seed)),
        false => println!("{report}"),
    }
    match write {
        true => write_page(&[Section { mark: MARK, report }]),
        false => Ok(()),
    }
}

/// Lets all contenders play one scenario.
fn contest<'a>(
    scenario: &'static scenario::Scenario,
    contenders: &[Contender<'a>],
    size: Size,
    seed: u64,
) -> Played<'a> {
    let mut reader = Reader::new();
    let rows = contenders
        .iter()
        .map(|contender| (*contender, play(scenario, *contender, size, seed, &mut reader)))
        .collect();
    Played { scenario, rows }
}
