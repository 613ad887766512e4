//! What one session got over is told to the next: a process and a session of the agent each, and what it wrote down by itself.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::agents::Agent;
use super::heard::{Rung, Words};
use super::model::{Turn, shell};
use super::scenarios::{CHECK, LINGER, ensure, squeezed, write_check};
use super::stage::{Run, Stage, Tools};
use crate::Fault;

/// A call that fails until somebody makes a folder.
const PUBLISH: &str = "sh publish.sh";

/// What makes it.
const FIX: &str = "mkdir -p charts/north";

/// The same session twice: two failures, one of them got over. The second one hears how at once, and of the other nothing.
pub fn across_sessions(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let stage = Stage::set(agent, tools)?;
    write_publish(&stage)?;
    write_check(&stage)?;
    let turns = [shell(CHECK), shell(PUBLISH), shell(FIX), shell(PUBLISH), Turn::Say("done")];
    let run = stage.play(&turns)?;
    ensure(&run, "every turn is answered", run.received.answers.len() == 4)?;
    ensure(&run, "it got over it", is_published(&stage))?;
    let hears = |answer: &String| answer.contains(&quoted(FIX));
    ensure(&run, "nobody hears what was not seen to help yet", !run.received.answers.iter().any(hears))?;
    ensure(&run, "and nobody says so", shown(&stage)?.is_empty())?;
    take_folder_away(&stage)?;
    let run = stage.play(&turns)?;
    let answers = &run.received.answers;
    ensure(&run, "every turn is answered again", answers.len() == 4)?;
    ensure(&run, "a failure that nobody got over comes with no lesson", !hears(&answers[0]))?;
    ensure(&run, "the first repeat comes with what helped, word for word", hears(&answers[1]))?;
    let shown = shown(&stage)?;
    let [text] = shown.as_slice() else {
        return ensure(&run, &format!("one lesson is shown, once: {shown:?}"), false);
    };
    let is_heard = squeezed(&answers[1]).contains(&squeezed(text));
    ensure(&run, &format!("the model received what the timeline says: {text}"), is_heard)?;
    let sessions = sessions(&stage)?;
    ensure(&run, &format!("these are two sessions: {sessions:?}"), sessions.len() == 2)?;
    let lessons = lessons(&stage)?;
    let is_won = |lesson: &Value| lesson["wins"] == 2 && lesson["followed"] == 1 && lesson["worked"] == 1;
    let holds = matches!(lessons.as_slice(), [lesson] if is_won(lesson));
    ensure(&run, &format!("it is known that it was followed, and worked: {lessons:?}"), holds)
}

/// A program and a flag that one session missed are spoken of before the next one fails with them, until they are there.
pub fn before_the_first(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let stage = Stage::set(agent, tools)?;
    let programs = stage.folder("programs");
    // Codex asks a login shell, which makes a path of its own.
    stage.write_home(".profile", &format!("PATH='{}':\"$PATH\"\n", programs.display()))?;
    stage.write("gauge.sh", &format!("#!/bin/sh\necho high water at 6\n{LINGER}\n"))?;
    fs::set_permissions(stage.project().join("gauge.sh"), fs::Permissions::from_mode(0o755))?;
    let run = stage.play(&[
        shell("tidegauge spring"),
        shell("sort --tidal README.md"),
        shell("sort --reverse README.md"),
        Turn::Say("done"),
    ])?;
    let answers = &run.received.answers;
    ensure(&run, "every turn is answered", answers.len() == 3)?;
    let is_let_through = |answer: &String| words.heard(answer) < Some(Rung::Refusal);
    ensure(&run, "what nobody knows yet is let through", answers.iter().all(is_let_through))?;
    let run = stage.play(&[
        shell("tidegauge neap"),
        shell("sort --tidal README.md"),
        shell(format!("cp gauge.sh '{}'", programs.join("tidegauge").display())),
        shell("tidegauge neap"),
        Turn::Say("done"),
    ])?;
    let answers = &run.received.answers;
    ensure(&run, "every turn is answered again", answers.len() == 4)?;
    ensure(&run, "its first call is let through", words.heard(&answers[0]) < Some(Rung::Refusal))?;
    let is_told = answers[0].contains("Remembered from earlier sessions on this machine");
    ensure(&run, "and told of what an earlier session missed", is_told)?;
    let failures = stage.timeline()?.iter().filter(|event| event["event"] == "tool:error").count();
    ensure(&run, &format!("each failure is counted once ({failures})"), failures == 4)?;
    let other = quoted("sort --reverse README.md");
    ensure(&run, "for the flag it hears what to run instead", answers[1].contains(&other))?;
    ensure(&run, "once the program is there it runs", answers[3].contains("high water at 6"))
}

/// What the agent wrote down before we came teaches what helped, once, and is told in its next session.
pub fn from_transcripts(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let mut stage = Stage::bare(agent, tools)?;
    write_publish(&stage)?;
    let run = get_over(&stage)?;
    let written = stage.home().join(agent.transcripts?);
    let written = written.to_str().ok_or("the home is not UTF-8")?;
    let bill = scan(&stage, written)?;
    let counts = ["sessions", "calls", "failures", "new_lessons"].map(|name| bill[name].as_u64());
    ensure(&run, &format!("it is read as it was: {bill}"), counts == [1, 3, 1, 1].map(Some))?;
    ensure(
        &run,
        &format!("nothing is passed over: {bill}"),
        bill["passed_over"] == Value::Array(Vec::new()),
    )?;
    ensure(&run, &format!("the failure is told: {bill}"), bill["top"][0]["kind"] == "path_not_found")?;
    ensure(&run, &format!("and what helped: {bill}"), bill["lessons"][0]["fix"] == quoted(FIX))?;
    let (again, usual) = (scan(&stage, written)?, stage.ask(&["scan"])?);
    let is_known = again["files"]["read"] == 0 && again["calls"] == 0 && again["new_lessons"] == 0;
    ensure(&run, &format!("a second look finds nothing: {again}"), is_known)?;
    ensure(&run, &format!("nor where it looks by itself: {usual}"), usual.starts_with("nothing new"))?;
    stage.install()?;
    write_check(&stage)?;
    take_folder_away(&stage)?;
    let calls = [PUBLISH, FIX, PUBLISH, CHECK, CHECK, CHECK].map(shell);
    let run = stage.play(&[&calls[..], &[Turn::Say("done")]].concat())?;
    let answers = &run.received.answers;
    ensure(&run, "every turn is answered", answers.len() == calls.len())?;
    ensure(&run, "the next session hears what helped", answers[0].contains(&quoted(FIX)))?;
    ensure(&run, "a repeat is refused", words.heard(&answers[5]) == Some(Rung::Refusal))?;
    let bill = scan(&stage, written)?;
    let counts = ["calls", "known_calls", "new_lessons"].map(|name| bill[name].as_u64());
    ensure(&run, &format!("what hooks told is not counted again: {bill}"), counts == [0, 6, 0].map(Some))?;
    let lessons = lessons(&stage)?;
    let holds = matches!(lessons.as_slice(), [lesson] if lesson["wins"] == 2);
    ensure(&run, &format!("both wins are known, each once: {lessons:?}"), holds)?;
    // Somebody who knows nothing reads both sessions, of which the second holds what hooks said and what they refused.
    stage.set_env("UNSTUCK_STORE_STATE_DIR", &stage.folder("elsewhere").display().to_string());
    let bill = scan(&stage, written)?;
    let counts = ["sessions", "calls", "failures", "new_lessons"].map(|name| bill[name].as_u64());
    ensure(&run, &format!("hooks mislead nobody: {bill}"), counts == [2, 9, 4, 1].map(Some))
}

fn write_publish(stage: &Stage) -> Result<(), Fault> {
    let script = format!("cp README.md charts/north/index.md\nended=$?\n{LINGER}\nexit $ended\n");
    stage.write("publish.sh", &script)
}

/// A session that meets the failure, and gets over it.
fn get_over(stage: &Stage) -> Result<Run, Fault> {
    let run = stage.play(&[shell(PUBLISH), shell(FIX), shell(PUBLISH), Turn::Say("done")])?;
    ensure(&run, "every turn is answered", run.received.answers.len() == 3)?;
    ensure(&run, "it got over it", is_published(stage))?;
    Ok(run)
}

fn is_published(stage: &Stage) -> bool {
    stage.project().join("charts/north/index.md").exists()
}

fn take_folder_away(stage: &Stage) -> Result<(), Fault> {
    Ok(fs::remove_dir_all(stage.project().join("charts"))?)
}

/// Words of an earlier call as they are told.
fn quoted(call: &str) -> String {
    format!("`{call}`")
}

/// The lessons that were shown, as they were told.
fn shown(stage: &Stage) -> Result<Vec<String>, Fault> {
    let timeline = stage.timeline()?;
    let shown = timeline.iter().filter(|event| event["event"] == "lesson:shown");
    Ok(shown.map(|event| event["body"]["text"].as_str().unwrap_or_default().to_owned()).collect())
}

fn sessions(stage: &Stage) -> Result<BTreeSet<String>, Fault> {
    let timeline = stage.timeline()?;
    Ok(timeline.iter().filter_map(|event| event["session"].as_str()).map(str::to_owned).collect())
}

fn lessons(stage: &Stage) -> Result<Vec<Value>, Fault> {
    Ok(crate::project::json_lines(&stage.ask(&["lessons", "--json"])?))
}

fn scan(stage: &Stage, folder: &str) -> Result<Value, Fault> {
    Ok(serde_json::from_str(&stage.ask(&["scan", folder, "--json"])?)?)
}
