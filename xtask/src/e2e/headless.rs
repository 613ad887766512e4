//! Agents that `unstuck agent` runs without a person: what it prints of them, and what their models were told.

use std::fs;

use serde_json::{Value, json};

use super::agents::Agent;
use super::heard::Words;
use super::model::{Refusal, Turn, shell};
use super::scenarios::ensure;
use super::stage::{Run, Stage, Tools};
use crate::Fault;

/// What the agent is asked to do; what it does is in the script.
const TASK: &str = "Read the tide gauge.";

/// Each program as a person would describe it who does not know that it is known.
const OWN: [(&str, &str); 3] = [
    (
        "claude",
        r#"[agent.tide]
program = "claude"
args = ["-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions"]
resume = ["-p", "--output-format", "stream-json", "--verbose", "--dangerously-skip-permissions", "--resume", "{session}"]
session = '"session_id":"{session}"'
"#,
    ),
    (
        "codex",
        r#"[agent.tide]
program = "codex"
args = ["exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "{prompt}"]
resume = ["exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "resume", "{session}", "{prompt}"]
session = '"thread_id":"{session}"'
"#,
    ),
    (
        "gemini",
        r#"[agent.tide]
program = "gemini"
args = ["--model", "gemini-2.5-pro", "--yolo", "--output-format", "stream-json", "--prompt", "{prompt}"]
resume = ["--model", "gemini-2.5-pro", "--yolo", "--output-format", "stream-json", "--resume", "{session}", "--prompt", "{prompt}"]
session = '"session_id":"{session}"'
"#,
    ),
];

/// One run that goes well.
pub fn answers(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let stage = Stage::bare(agent, tools)?;
    let run = stage.play_headless(
        &[],
        agent.headless?,
        TASK,
        &[shell("echo low water"), Turn::Say("It is low.")],
    )?;
    let told = told(&run)?;
    ensure(&run, "it goes well", told["exit_code"] == 0 && has_exited(&run, 0))?;
    ensure(&run, "its answer is told", told["result"] == "It is low.")?;
    ensure(&run, "so is its session", told["session_id"].as_str().is_some_and(|id| !id.is_empty()))?;
    ensure(&run, "the model was asked", run.received.last.contains(TASK))?;
    ensure(&run, "its call was run", run.received.answers.first().is_some_and(|it| it.contains("low water")))
}

/// The model refuses in the middle of the work.
pub fn goes_on(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let stage = without_own_retries(agent, tools)?;
    let turns = [
        shell("echo low water >> gauge; cat gauge"),
        Turn::Refused(Refusal::Overloaded),
        Turn::Say("It is low."),
    ];
    let run = stage.play_headless(&[], agent.headless?, TASK, &turns)?;
    went_on(&run, "server_error", "resumed")?;
    let last = &run.received.last;
    let is_known = last.contains(TASK) && last.contains("low water");
    ensure(&run, "the model knows the task, and what it did", is_known)?;
    ensure(&run, "it is told that it was cut off", last.contains("Your last run was cut off"))?;
    let gauge = fs::read_to_string(stage.project().join("gauge"))?;
    ensure(&run, "nothing was done twice", gauge.lines().count() == 1)
}

/// The model refuses before it has begun.
pub fn is_let_in_later(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    // Gemini CLI keeps no session in which no model has answered.
    let keeps_session = agent.name != "gemini";
    let turns = [Turn::Refused(Refusal::Limited), Turn::Say("It is low.")];
    let stage = without_own_retries(agent, tools)?;
    if !keeps_session {
        let run = stage.play_headless(&[], agent.headless?, TASK, &turns)?;
        let told = told(&run)?;
        let is_stopped = told["stopped"] == "no_session" && told["began"] == json!(["new"]);
        ensure(&run, "what may write is not started over", is_stopped && told["kind"] == "rate_limited")?;
    }
    let run = stage.play_headless(&[], &looking(agent)?, TASK, &turns)?;
    went_on(&run, "rate_limited", if keeps_session { "resumed" } else { "new" })?;
    let waited = told(&run)?["waits_ms"][0].as_u64().unwrap_or(0);
    ensure(&run, "it was waited for as long as was asked", waited >= 2000)?;
    ensure(&run, "the wait was announced", run.stderr.contains("retry 1 of 1 in"))?;
    let is_said = run.stderr.contains("attempt 2 began in a new session");
    ensure(&run, "nothing is started over in silence", is_said != keeps_session)?;
    ensure(&run, "the model knows the task", run.received.last.contains(TASK))
}

/// The account has had its share for the next hour.
pub fn is_told_when(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let stage = without_own_retries(agent, tools)?;
    let run = stage.play_headless(&[], &looking(agent)?, TASK, &[Turn::Refused(Refusal::UsedUp)])?;
    let told = told(&run)?;
    ensure(&run, "it is known for what it is", told["kind"] == "rate_limited")?;
    ensure(&run, "nobody sleeps through it", told["began"] == json!(["new"]) && !has_exited(&run, 0))?;
    // What is read off a clock is true to a minute.
    let minutes = told["come_back_after_ms"].as_u64().unwrap_or(0) / 60_000;
    ensure(&run, "it is told when it could work", (57..=61).contains(&minutes))?;
    ensure(&run, "a person is told as well", run.stderr.contains("it could work in"))
}

/// The settings tell how it is run, under a name of their own.
pub fn is_ones_own(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let stage = without_own_retries(agent, tools)?;
    let settings = OWN.iter().find(|(name, _)| *name == agent.name).ok_or("nobody wrote settings for it")?;
    stage.write_home(".config/unstuck/config.toml", settings.1)?;
    let turns = [
        shell("echo low water >> gauge; cat gauge"),
        Turn::Refused(Refusal::Overloaded),
        Turn::Say("It is low."),
    ];
    let run = stage.play_as("tide", &["--"], TASK, &turns)?;
    let told = told(&run)?;
    ensure(&run, "the first attempt fails, for what it is", told["attempts"][0]["kind"] == "server_error")?;
    ensure(&run, "the second one goes on", told["began"] == json!(["new", "resumed"]))?;
    ensure(&run, "in its session", told["session_id"].is_string() && has_exited(&run, 0))?;
    ensure(&run, "what it prints is the answer", told["result"].to_string().contains("It is low."))?;
    let last = &run.received.last;
    ensure(&run, "the model knows what it did", last.contains(TASK) && last.contains("low water"))?;
    let gauge = fs::read_to_string(stage.project().join("gauge"))?;
    ensure(&run, "nothing was done twice", gauge.lines().count() == 1)
}

/// It says that it is done, and it is not.
pub fn mends(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let stage = Stage::bare(agent, tools)?;
    let turns = [Turn::Say("It is done."), shell("echo low > gauge"), Turn::Say("Now it is.")];
    let verify = "test -s gauge || { echo there is no gauge; exit 3; }";
    let run = stage.play_headless(&["--verify", verify], agent.headless?, TASK, &turns)?;
    let told = told(&run)?;
    let first = &told["attempts"][0];
    ensure(&run, "the first claim is denied", first["ok"] == false && first["kind"] == "check_failed")?;
    ensure(&run, "its session goes on", told["began"] == json!(["new", "resumed"]) && told["repairs"] == 1)?;
    let last = &run.received.last;
    let is_told = last.contains("said that all went well") && last.contains("there is no gauge");
    ensure(&run, "the model is told what did not hold", is_told)?;
    ensure(&run, "it still knows what it was asked", last.contains(TASK) && last.contains("It is done."))?;
    ensure(&run, "in the end it is done", told["exit_code"] == 0 && told["verified"] == true)
}

/// Its model does not answer any more, or what it runs does not end.
pub fn hangs(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    // Codex leaves a long command running after ten seconds and asks its model what next.
    let endless = shell("echo begun > gauge; sleep 300; echo over >> gauge");
    let brief = shell("echo begun > gauge");
    for (limit, call) in [(["--idle-timeout", "12s"], brief), (["--timeout", "15s"], endless)] {
        let stage = Stage::bare(agent, tools)?;
        let turns = [call, Turn::Refused(Refusal::Silent)];
        let run = stage.play_headless(
            &[&limit[..], &["--retries", "0"]].concat(),
            agent.headless?,
            TASK,
            &turns,
        )?;
        let told = told(&run)?;
        ensure(&run, "it is ended for its time", told["kind"] == "timeout" && has_exited(&run, 124))?;
        ensure(&run, "its session can still be taken up", told["session_id"].is_string())?;
        ensure(&run, "it had begun", fs::read_to_string(stage.project().join("gauge"))? == "begun\n")?;
        ensure(&run, "nothing of it is left", !is_left(&stage))?;
        let session = told["session_id"].as_str().unwrap_or_default().to_owned();
        let run = stage.play_headless(
            &["--session", &session],
            agent.headless?,
            "Go on.",
            &[Turn::Say("It is low.")],
        )?;
        let told = self::told(&run)?;
        ensure(&run, "it goes on", told["result"] == "It is low." && told["began"] == json!(["resumed"]))?;
        ensure(&run, "it still knows its task", run.received.last.contains(TASK))?;
    }
    Ok(())
}

/// A machine on which the agent does not retry by itself, which would hide that it was refused.
fn without_own_retries(agent: &'static Agent, tools: &Tools) -> Result<Stage, Fault> {
    let mut stage = Stage::bare(agent, tools)?;
    stage.set_env("CLAUDE_CODE_MAX_RETRIES", "0");
    Ok(stage)
}

/// What is passed on to an agent that shall only look.
fn looking(agent: &Agent) -> Result<Vec<&'static str>, Fault> {
    let lets_write = |word: &str| word.starts_with("--dangerously") || word == "--yolo";
    Ok(agent.headless?.iter().copied().filter(|word| !lets_write(word)).collect())
}

/// Was the first attempt refused, and did the second one begin so and go on?
fn went_on(run: &Run, kind: &str, began: &str) -> Result<(), Fault> {
    let told = told(run)?;
    let [first, second] = told["attempts"].as_array().map(Vec::as_slice).unwrap_or_default() else {
        return ensure(run, "there are two attempts", false);
    };
    ensure(run, "the first one fails, for what it is", first["kind"] == kind)?;
    ensure(run, "the second one goes on", told["began"][1] == began && second["ok"] == true)?;
    ensure(run, "in a session that has a name", told["session_id"].is_string())?;
    ensure(run, "it goes well", told["exit_code"] == 0 && told["result"] == "It is low.")
}

fn has_exited(run: &Run, code: i32) -> bool {
    run.status.and_then(|status| status.code()) == Some(code)
}

/// Does any process still work in the project?
fn is_left(stage: &Stage) -> bool {
    let here = stage.project();
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|process| fs::read_link(process.path().join("cwd")).ok()).any(|cwd| cwd == here)
}

/// The one line of JSON.
fn told(run: &Run) -> Result<Value, Fault> {
    serde_json::from_str(&run.stdout).or_else(|error| {
        ensure(run, &format!("one line of JSON is printed ({error})"), false)?;
        Ok(Value::Null)
    })
}
