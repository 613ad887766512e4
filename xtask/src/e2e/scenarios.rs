//! What must hold with every agent, one scenario each.

use std::fs;

use super::agents::Agent;
use super::heard::{Rung, Words};
use super::model::{Turn, shell};
use super::stage::{Run, Stage, Tools};
use crate::Fault;

/// One thing that must hold.
pub struct Scenario {
    /// Its name in the table.
    pub name: &'static str,
    /// What it states.
    pub states: &'static str,
    /// Can this agent honour it at all?
    pub applies: fn(&Agent) -> Applies,
    /// Plays it; a fault is what did not hold, with what the model received.
    pub play: fn(&'static Agent, &Tools, &Words) -> Result<(), Fault>,
}

/// Whether a scenario can be honoured by an agent.
pub enum Applies {
    /// It can.
    Yes,
    /// It cannot, and why.
    No(&'static str),
}

/// All of them, the control first.
pub const SCENARIOS: [Scenario; 1] = [Scenario {
    name: "control",
    states: "without unstuck a failing call is executed as often as it is sent, and nothing is said",
    applies: everyone,
    play: control,
}];

fn everyone(_: &Agent) -> Applies {
    Applies::Yes
}

/// A check that fails for a reason which no rule knows, and counts how often it really ran.
const CHECK: &str = "sh check.sh";

fn write_check(stage: &Stage) -> Result<(), Fault> {
    let text = format!(
        "echo ran >> '{}'\necho 'gauge 7 disagrees with gauge 4' >&2\nexit 1\n",
        stage.folder("ran").display()
    );
    stage.write("check.sh", &text)
}

/// How often the check ran.
fn ran(stage: &Stage) -> usize {
    fs::read_to_string(stage.folder("ran")).map_or(0, |text| text.lines().count())
}

fn control(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let stage = Stage::bare(agent, tools)?;
    write_check(&stage)?;
    let run = stage.play(&[shell(CHECK), shell(CHECK), shell(CHECK), Turn::Say("done")])?;
    let ran = ran(&stage);
    ensure(&run, ran == 3, || format!("the check ran {ran} times, not 3"))?;
    ensure(&run, run.received.answers.len() == 3, || "not every turn was answered".to_owned())?;
    for answer in &run.received.answers {
        ensure(&run, answer.contains("gauge 7"), || "an answer lacks the check's output".to_owned())?;
        ensure(&run, words.heard(answer).is_none(), || "something was said".to_owned())?;
    }
    Ok(())
}

/// What must hold; otherwise what did not, and what the model received.
fn ensure(run: &Run, holds: bool, what: impl FnOnce() -> String) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(format!("{}\n{}", what(), shown(run)).into()) }
}

/// A run for a person who looks for what went wrong.
fn shown(run: &Run) -> String {
    let mut text = String::new();
    for (turn, answer) in run.received.answers.iter().enumerate() {
        text += &format!("    ── the model received after turn {}:\n", turn + 1);
        text += &answer.lines().map(|line| format!("    │ {line}\n")).collect::<String>();
    }
    let tail = |text: &str| {
        text.lines()
            .rev()
            .take(8)
            .map(|line| line.chars().take(400).collect::<String>())
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect::<Vec<_>>()
            .join("\n    │ ")
    };
    text + &format!(
        "    ── it ended {:?} after {:.1} s\n    │ {}\n    │ {}",
        run.status,
        run.took.as_secs_f64(),
        tail(&run.stdout),
        tail(&run.stderr)
    )
}
