//! Agents that call tools of an MCP server: as they are, and with `unstuck install mcp` in between.

use std::fs;

use serde_json::{Value, json};

use super::agents::{Agent, SERVER};
use super::heard::Words;
use super::model::Turn;
use super::scenarios::ensure;
use super::stage::{Run, Stage, Tools};
use crate::{Fault, project};

/// What the server says when it fails.
const GAUGES: &str = "gauge 7 disagrees with gauge 4";

/// A call whose arguments cannot be right.
fn mistaken() -> Turn {
    Turn::Served("typed", json!({"name": "Hull", "count": {"how": "many"}}))
}

/// A call that is asked to come back in a second.
fn limited() -> Turn {
    Turn::Served("rate_limited", json!({"key": "tide", "times": 1, "seconds": 1}))
}

/// An agent that knows a server.
fn stage(agent: &'static Agent, tools: &Tools) -> Result<Stage, Fault> {
    let stage = Stage::bare(agent, tools)?;
    let file = |name: &str| stage.folder(name).display().to_string();
    let offered = "echo,fail,fail_struct,typed,rate_limited,crash";
    let words = [
        stage.scripted().display().to_string(),
        "--log".to_owned(),
        file("server.log"),
        "--state".to_owned(),
        file("server.state"),
        "--only".to_owned(),
        offered.to_owned(),
    ];
    (agent.serving.add)(&stage, &words)?;
    Ok(stage)
}

/// How often a tool was called, as the server itself has it.
fn reached(stage: &Stage, tool: &str) -> usize {
    let log = fs::read_to_string(stage.folder("server.log")).unwrap_or_default();
    project::json_lines(&log).iter().filter(|line| line["tool"] == tool).count()
}

/// What the model received after a turn, without the signs with which dialects quote each other.
fn told(run: &Run, turn: usize) -> String {
    run.received.answers.get(turn).map(|answer| answer.replace('\\', "")).unwrap_or_default()
}

/// Nothing of ours in between.
pub fn bare(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let stage = stage(agent, tools)?;
    let turns =
        [Turn::Served("echo", json!({"text": "low water"})), mistaken(), limited(), Turn::Say("done")];
    let run = stage.play(&turns)?;
    ensure(
        &run,
        "the server is reached",
        told(&run, 0).contains("low water") && reached(&stage, "echo") == 1,
    )?;
    let sends = agent.serving.sends_mistakes.is_ok();
    let mistakes = reached(&stage, "typed");
    ensure(&run, &format!("mistakes reach it as known ({mistakes})"), (mistakes == 1) == sends)?;
    ensure(&run, "the model is told to come back", told(&run, 2).contains("429"))?;
    ensure(&run, "nobody came back for it", reached(&stage, "rate_limited") == 1)?;
    let heard = run.received.answers.iter().find_map(|answer| words.heard(answer));
    ensure(&run, "nothing of ours is heard", heard.is_none())
}

/// Mistakes, failures, and one that heals.
pub fn well(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let stage = stage(agent, tools)?;
    let before = entry(&stage)?;
    stage.ask(&["install", "mcp", agent.name])?;
    ensure_wrapped(&stage, true)?;
    let turns = [
        Turn::Served("echo", json!({"text": "low water"})),
        mistaken(),
        Turn::Served("fail", json!({"text": GAUGES})),
        Turn::Served("fail_struct", json!({"text": GAUGES})),
        limited(),
        Turn::Say("done"),
    ];
    let run = stage.play(&turns)?;
    ensure(
        &run,
        "a success is the server's own",
        told(&run, 0).contains("low water") && !told(&run, 0).contains("\"ok\""),
    )?;
    let mistake = told(&run, 1);
    if agent.serving.sends_mistakes.is_ok() {
        let is_told = mistake.contains("/count") && mistake.contains("a whole number");
        ensure(&run, "the mistake is told: where, and what was expected", is_told)?;
    }
    ensure(&run, "the server never saw it", reached(&stage, "typed") == 0)?;
    ensure(&run, "a failure keeps the server's words", told(&run, 2).contains(GAUGES))?;
    ensure(
        &run,
        "and is explained",
        told(&run, 2).contains("\"ok\":false") || told(&run, 2).contains("\"ok\": false"),
    )?;
    let both = told(&run, 3);
    let is_explained = both.contains("\"ok\":false") || both.contains("\"ok\": false");
    ensure(&run, "so is one with a structure, whichever of both the agent shows", is_explained)?;
    ensure(&run, "what heals is not seen", told(&run, 4).contains("worked at attempt 2"))?;
    ensure(&run, "nor is what it had to be told", !told(&run, 4).contains("429"))?;
    ensure(&run, "the server was asked twice", reached(&stage, "rate_limited") == 2)?;
    let servers = stage.ask(&["stats", "--by", "server"])?;
    ensure(&run, &format!("the record knows the server: {servers}"), servers.contains(SERVER))?;
    stage.ask(&["uninstall", "mcp", agent.name])?;
    ensure_wrapped(&stage, false)?;
    ensure(&run, "the entry is what it was", entry(&stage)? == before)
}

/// The server dies in the middle.
pub fn again(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let stage = stage(agent, tools)?;
    stage.ask(&["install", "mcp", agent.name])?;
    let turns = [
        Turn::Served("echo", json!({"text": "low water"})),
        Turn::Served("crash", json!({"key": "tide", "code": 7})),
        Turn::Served("echo", json!({"text": "high water"})),
        Turn::Say("done"),
    ];
    let run = stage.play(&turns)?;
    let death = told(&run, 1);
    ensure(&run, "the death is told, with its code", death.contains("code 7"))?;
    ensure(&run, "it was not asked to die twice", reached(&stage, "crash") == 1)?;
    ensure(&run, "the next call reaches a new one", told(&run, 2).contains("high water"))?;
    let log = fs::read_to_string(stage.folder("server.log"))?;
    let starts = project::json_lines(&log).iter().filter(|line| line.get("args").is_some()).count();
    ensure(&run, &format!("it was started twice ({starts})"), starts >= 2)
}

/// The agent's settings as far as they are about the server.
fn entry(stage: &Stage) -> Result<String, Fault> {
    let text = fs::read_to_string(stage.home().join(stage.agent.serving.file))?;
    Ok(match serde_json::from_str::<Value>(&text) {
        Ok(settings) => {
            let of = |key: &str| settings.get(key).map(Value::to_string);
            of("mcpServers").or_else(|| of("mcp")).unwrap_or_default()
        }
        // Codex writes TOML, and nothing else in that file while it runs.
        Err(_) => text.split("[mcp_servers").nth(1).unwrap_or_default().lines().take(3).collect(),
    })
}

fn ensure_wrapped(stage: &Stage, wrapped: bool) -> Result<(), Fault> {
    let entry = entry(stage)?;
    match entry.contains("unstuck") == wrapped {
        true => Ok(()),
        false => Err(format!("{} holds {entry}", stage.agent.serving.file).into()),
    }
}
