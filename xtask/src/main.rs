//! The project's own chores, run as `cargo xtask <chore>`.
//!
//! Nothing here is part of the product: it drives cargo and the release binary from outside, as a person would. Only `simulate`
//! asks the judge itself, since nobody could wait for the hours it plays through.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "chores talk to the person who started them")]

mod accept;
mod bench;
mod check;
mod dice;
mod e2e;
mod faults;
mod fuzz;
mod generate;
mod honest;
mod layers;
mod ledger;
mod licences;
mod load;
mod mcp;
mod mutants;
mod project;
mod sbom;
mod score;
mod simulate;
mod soak;
mod supply;
mod world;

use std::process::ExitCode;

use lexopt::prelude::*;

const USAGE: &str = "\
cargo xtask check [--keep-going] [--agents | --quick]
                                      everything that must hold before a change goes in; --quick: what a few minutes show
cargo xtask accept                    every requirement of docs/requirements.toml, by its test
cargo xtask score [--corpus FILE]... [--traces DIR]... [--lessons FILE]... [--attacks FILE]...
                  [--binary FILE] [--save DIR] [--json] [--errors N] [--check | --record]
                                      how well the release binary judges labelled failures and runs
cargo xtask honest [--only NAME] [--binary FILE] [--errors N] [--words] [--json] [--keep] [--record]
                                      honest work through the real hooks: what was refused, misjudged or said in vain;
                                      --words: all that was said; --keep: leaves each folder
cargo xtask gen [--check]             write the generated pages under docs/
cargo xtask bench [--quick] [--big] [--store] [--write] [hook | turn]
cargo xtask bench hook --beside FILE [--quick] [--binary FILE] [--write]
cargo xtask bench look [--quick] [--binary FILE] [--write]
cargo xtask bench mcp [--quick] [--binary FILE] [--write]
cargo xtask bench memory [--quick] [--binary FILE] [--write]
cargo xtask bench run [--quick] [--big] [--binary FILE] [--write]
cargo xtask bench sdk [--quick] [--write]
cargo xtask bench vault [--quick | --big] [--image] [--binary FILE] [--write]
                                      how fast it is, beside others in the same run
cargo xtask fuzz [--seconds N | --hours N] [--corpus DIR] [TARGET]...
                                      throw garbage at it: seconds for each target, or hours for all in turns; goes on
                                      from what earlier runs learned
cargo xtask faults [--full] [--seed N] [--only sweep|chaos|power|file|disk|memory|secrets]
                   [--binary FILE]    kill it, fail its file system calls and its allocations one after another, cut
                                      the power, damage its database; plant secrets
cargo xtask faults vault [--short] [--every N] [--cases N] [--seed N] [--only sweep|mischief|disk|crowd]
                         [--big] [--binary FILE]
                                      the same for snapshots, restores and their removal; --big: a million files
cargo xtask layers [--only WORDS]     take the layers of the library away, one by one: does a test miss them?
cargo xtask load [--full] [--seed N] [--binary FILE]
                                      many writers and readers at once
cargo xtask soak [--hours N] [--out DIR] [--binary FILE]
                                      writers, kills, full disks and upgrades for hours; figures in a table and a drawing
cargo xtask e2e [--only AGENT] [--scenario NAME | --scenario day-] [--day-all] [--binary FILE]
                [--scripted FILE] [--keep] [--list]
                                      real agents with scripted models, and what their models received;
                                      --day-all: every agent plays every session of the day's work
cargo xtask mcp [--only NAME] [--binary FILE] [--list]
                                      reference servers and the conformance suite, with and without `unstuck mcp`
cargo xtask simulate [--seed N] [--only SCENARIO] [--with FILE] [--write] [--json]
                                      how our retries fare beside others, in virtual time; --with: other settings
cargo xtask licences                  are all dependencies under licences we accept?
cargo xtask supply                    the same, with bans, sources and known weaknesses, by cargo-deny (built once)
cargo xtask mutants [--sample N | --all] [FILE]...
                                      change the judging and redacting code: does a test notice? one change in N
cargo xtask sbom [FILE]               write what the program is made of (CycloneDX)";

/// What went wrong, in words for the person who started the chore.
type Fault = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    match run(lexopt::Parser::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("xtask: {fault}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let chore = match args.next()? {
        Some(Value(chore)) => chore.string()?,
        Some(Long("help") | Short('h')) | None => {
            println!("{USAGE}");
            return Ok(());
        }
        Some(other) => return Err(other.unexpected().into()),
    };
    match &*chore {
        "check" => check::run(args),
        "accept" => accept::run(args),
        "score" => score::run(args),
        "honest" => honest::run(args),
        "gen" => generate::run(args),
        "bench" => bench::run(args),
        "fuzz" => fuzz::run(args),
        "faults" => faults::run(args),
        "layers" => layers::run(args),
        "load" => load::run(args),
        "e2e" => e2e::run(args),
        "mcp" => mcp::run(args),
        "simulate" => simulate::run(args),
        "soak" => soak::run(args),
        "mutants" => mutants::run(args),
        "licences" => licences::run(args),
        "supply" => supply::run(args),
        "sbom" => sbom::run(args),
        "turn-cost" => e2e::cost::run(args),
        "peak-memory" => bench::peak_memory(args),
        unknown => Err(format!("there is no chore {unknown:?}\n{USAGE}").into()),
    }
}
