//! What the library costs: a call through a toolbox beside a bare function, events to subscribers, and arguments that are
//! checked beside arguments that are only read. One program measures all of it round by round (`crates/sdk/examples/pace.rs`).

use std::fmt::Write as _;
use std::process::Command;

use serde_json::Value;

use super::contest::at;
use super::{Options, Section, load, machine, write_page};
use crate::{Fault, project};

/// At most so many microseconds on top of the tool itself.
const AIM_CALL: f64 = 10.0;
/// At most so many microseconds of the caller's time where it does not wait for the disk, and at least so many such calls in a second.
const AIM_UNWAITED: f64 = 30.0;
const AIM_SUSTAINED: f64 = 10_000.0;
/// At least so many events in a second, to one subscriber, on one core.
const AIM_EVENTS: f64 = 1_000_000.0;

/// `cargo xtask bench sdk`.
pub fn bench(options: &Options) -> Result<(), Fault> {
    let built = project::build(&[
        "--release",
        "--package",
        "unstuck",
        "--features",
        "_measured",
        "--example",
        "pace",
    ])?;
    let program = built.first().ok_or("cargo built no example `pace`")?;
    let rounds = if options.quick { "3" } else { "15" };
    let mut report = machine();
    let output = Command::new(program).arg(rounds).output()?;
    if !output.status.success() {
        return Err(format!("pace: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let rounds: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    report += &tables(&rounds)?;
    report += &format!("At the end: {}.\n", load());
    println!("{report}");
    match options.write {
        true => write_page(&[Section { mark: "sdk", report }]),
        false => Ok(()),
    }
}

fn tables(rounds: &[Value]) -> Result<String, Fault> {
    let of = |path: &str| Figure::new(rounds, |round| round.pointer(path).and_then(Value::as_f64));
    let (bare, memory, stored) = (of("/call/bare"), of("/call/memory"), of("/call/stored"));
    let added = Figure::new(rounds, |round| {
        Some(round["call"]["memory"].as_f64()? - round["call"]["bare"].as_f64()?)
    });
    let mut text = String::from("\n### A call that goes well\n\n| call | µs |\n|---|---|\n");
    writeln!(text, "| the function itself, its arguments read with serde | {bare} |")?;
    writeln!(text, "| through a toolbox | {memory} |")?;
    writeln!(text, "| through a toolbox with a store: two transactions on the disk | {stored} |")?;
    let (unwaited, sustained) = (of("/call/unwaited/each"), of("/call/unwaited/sustained"));
    writeln!(text, "| through a toolbox with a store that nothing waits for | {unwaited} |")?;
    writeln!(
        text,
        "\nWithout waiting {:.0} ({:.0}–{:.0}) calls in a second reach the disk. Aims: at most {AIM_UNWAITED} µs ({}), at least \
         {AIM_SUSTAINED} in a second ({}).",
        sustained.median,
        sustained.low,
        sustained.high,
        met(unwaited.median <= AIM_UNWAITED),
        met(sustained.median >= AIM_SUSTAINED)
    )?;
    writeln!(
        text,
        "\nAdded without a store: {added} µs. Aim: at most {AIM_CALL} ({}).",
        met(added.median <= AIM_CALL)
    )?;
    text += "\n### Events\n\n| subscribers, on the publisher's own thread | events in a second | deliveries in a second |\n\
             |---|---|---|\n";
    for subscribers in [1.0, 10.0, 100.0] {
        let events = of(&format!("/events/{subscribers}"));
        writeln!(text, "| {subscribers} | {:.0} | {:.0} |", events.median, events.median * subscribers)?;
    }
    let one = of("/events/1").median;
    writeln!(text, "\nAim: {AIM_EVENTS} to one subscriber ({}).", met(one >= AIM_EVENTS))?;
    let (serde, checked) = (of("/validation/serde"), of("/validation/checked"));
    let ratio = Figure::new(rounds, |round| {
        Some(round["validation"]["checked"].as_f64()? / round["validation"]["serde"].as_f64()?)
    });
    text += "\n### Arguments\n\n| two fields, from a JSON value | µs |\n|---|---|\n";
    writeln!(text, "| serde alone | {serde} |")?;
    writeln!(text, "| checked against the schema, then serde | {checked} |")?;
    writeln!(
        text,
        "\nChecking makes it × {ratio}. {} rounds in turn; medians (middle eight tenths).",
        rounds.len()
    )?;
    Ok(text)
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

/// A figure over all rounds.
struct Figure {
    median: f64,
    low: f64,
    high: f64,
}

impl Figure {
    fn new(rounds: &[Value], figure: impl Fn(&Value) -> Option<f64>) -> Figure {
        let mut all: Vec<f64> = rounds.iter().filter_map(figure).collect();
        all.sort_by(f64::total_cmp);
        Figure { median: at(&all, 0.5), low: at(&all, 0.1), high: at(&all, 0.9) }
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} ({:.2}–{:.2})", self.median, self.low, self.high)
    }
}
