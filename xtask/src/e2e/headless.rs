//! Agents that `unstuck agent` runs without a person: what it prints of them, and what their models were told.

use serde_json::Value;

use super::agents::Agent;
use super::heard::Words;
use super::model::{Turn, shell};
use super::scenarios::ensure;
use super::stage::{Run, Stage, Tools};
use crate::Fault;

/// What the agent is asked to do; what it does is in the script.
const TASK: &str = "Read the tide gauge.";

/// One run that goes well.
pub fn answers(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let stage = Stage::bare(agent, tools)?;
    let run =
        stage.play_headless(agent.headless?, TASK, &[shell("echo low water"), Turn::Say("It is low.")])?;
    let told = told(&run)?;
    ensure(
        &run,
        "it goes well",
        told["exit_code"] == 0 && run.status.is_some_and(|status| status.success()),
    )?;
    ensure(&run, "its answer is told", told["result"] == "It is low.")?;
    ensure(&run, "so is its session", told["session_id"].as_str().is_some_and(|id| !id.is_empty()))?;
    ensure(&run, "the model was asked", run.received.last.contains(TASK))?;
    ensure(&run, "its call was run", run.received.answers.first().is_some_and(|it| it.contains("low water")))
}

/// The model refuses in the middle of the work.
pub fn goes_on(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let mut stage = Stage::bare(agent, tools)?;
    // Its own retries would hide the refusal.
    stage.set_env("CLAUDE_CODE_MAX_RETRIES", "0");
    let turns = [shell("echo low water >> gauge; cat gauge"), Turn::Overloaded, Turn::Say("It is low.")];
    let run = stage.play_headless(agent.headless?, TASK, &turns)?;
    let told = told(&run)?;
    let [first, second] = told["attempts"].as_array().map(Vec::as_slice).unwrap_or_default() else {
        return ensure(&run, "there are two attempts", false);
    };
    ensure(&run, "the first one fails, for what it is", first["kind"] == "server_error")?;
    ensure(&run, "the second one goes on", told["began"][1] == "resumed" && second["ok"] == true)?;
    ensure(&run, "in a session that has a name", told["session_id"].is_string())?;
    ensure(&run, "it goes well", told["exit_code"] == 0 && told["result"] == "It is low.")?;
    let last = &run.received.last;
    ensure(
        &run,
        "the model knows the task, and what it did",
        last.contains(TASK) && last.contains("low water"),
    )?;
    ensure(&run, "it is told that it was cut off", last.contains("Your last run was cut off"))?;
    let gauge = std::fs::read_to_string(stage.project().join("gauge"))?;
    ensure(&run, "nothing was done twice", gauge.lines().count() == 1)
}

/// The one line of JSON.
fn told(run: &Run) -> Result<Value, Fault> {
    serde_json::from_str(&run.stdout).or_else(|error| {
        ensure(run, &format!("one line of JSON is printed ({error})"), false)?;
        Ok(Value::Null)
    })
}
