//! What stands in an agent's file of ours: which events, which program, which time limits. It only reads.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use unstuck_wire::hook::Host;

use crate::agents::{Agent, Carrier, command_line, limits_of_plugin, program_of, program_of_plugin};
use crate::editing::{Document, EditError, Layout, Ledger, Written, read_plain};

/// An entry of ours.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) event: String,
    /// The line that the agent hands to a shell.
    pub(super) line: String,
    /// The program that the line starts.
    pub(super) program: PathBuf,
    /// In seconds, where one is set.
    pub(super) limit: Option<f64>,
    /// Which tools the agent tells of, where not all.
    pub(super) tools: Option<String>,
    /// Which group under its event, and which entry in that group.
    pub(super) place: (usize, usize),
}

/// Our entries in a file; none where there is no file. What the installer knows as its own is told by what it noted.
pub(super) fn in_file(agent: &Agent, file: &Path, ledger: Option<&Ledger>) -> Result<Vec<Entry>, EditError> {
    let Ok(bytes) = read_plain(file) else { return Ok(Vec::new()) };
    let real = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let known = ledger.and_then(|ledger| ledger.about(&real));
    match &agent.carrier {
        Carrier::Plugin => {
            let program = program_of_plugin(&bytes, known, agent.events);
            let limits = limits_of_plugin(&bytes);
            Ok(program.map(|program| in_plugin(agent, &program, &limits)).unwrap_or_default())
        }
        Carrier::Entries { layout, dialect, .. } => {
            let value = Document::read(file, *dialect, Some(&bytes))?.value();
            Ok(in_value(agent.host, *layout, &value, known))
        }
    }
}

fn in_value(host: Host, layout: Layout, value: &Value, known: Option<&Written>) -> Vec<Entry> {
    let mut found = Vec::new();
    let hooks = value.get("hooks").and_then(Value::as_object);
    for (event, listed) in hooks.into_iter().flatten() {
        for (first, group) in listed.as_array().into_iter().flatten().enumerate() {
            let entries: Vec<&Value> = match layout {
                Layout::Flat => vec![group],
                Layout::Grouped => {
                    group.get("hooks").and_then(Value::as_array).into_iter().flatten().collect()
                }
            };
            for (second, entry) in entries.into_iter().enumerate() {
                let matcher = group.get("matcher").and_then(Value::as_str);
                let tools = matcher.filter(|matcher| !matches!(*matcher, "" | "*" | ".*")).map(str::to_owned);
                let entry = ours(host, event, entry, (first, second), known);
                found.extend(entry.map(|entry| Entry { tools, ..entry }));
            }
        }
    }
    found
}

fn ours(
    host: Host,
    event: &str,
    entry: &Value,
    place: (usize, usize),
    known: Option<&Written>,
) -> Option<Entry> {
    let line = ["command", "bash"].iter().find_map(|key| entry.get(key)).and_then(Value::as_str)?;
    let program = program_of(line, host, known)?;
    let number = |key: &str| entry.get(key).and_then(Value::as_f64);
    let limit = match host {
        Host::Gemini => number("timeout").map(|milliseconds| milliseconds / 1000.0),
        Host::Claude
        | Host::Codex
        | Host::Qwen
        | Host::Opencode
        | Host::Copilot
        | Host::Cursor
        | Host::Generic => number("timeout").or_else(|| number("timeoutSec")),
    };
    Some(Entry { event: event.to_owned(), line: line.to_owned(), program, limit, tools: None, place })
}

/// A plugin is one file of ours for all events; it limits the time itself, as the version that wrote it knew to.
fn in_plugin(agent: &Agent, program: &str, limits: &Map<String, Value>) -> Vec<Entry> {
    let entry = |event: &str| Entry {
        event: event.to_owned(),
        line: command_line(program, agent.host),
        program: PathBuf::from(program),
        limit: limits.get(event).and_then(Value::as_f64).map(|milliseconds| milliseconds / 1000.0),
        tools: None,
        place: (0, 0),
    };
    agent.events.iter().map(|event| entry(event.name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_entries_of_our_own_are_found() {
        let ours = command_line("/opt/unstuck", Host::Claude);
        let value = json!({"hooks": {"PreToolUse": [
            {"matcher": "*", "hooks": [{"type": "command", "command": "prettier"}]},
            {"matcher": "*", "hooks": [{"type": "command", "command": "x"}, {"type": "command", "command": ours, "timeout": 10}]},
        ], "Stop": "no list", "PostToolUse": [{"hooks": [{"command": format!("{ours} # mine")}, 5]}, null]}});
        let found = in_value(Host::Claude, Layout::Grouped, &value, None);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].event.as_str(), found[0].limit, found[0].place),
            ("PreToolUse", Some(10.0), (1, 1))
        );
        assert_eq!((&found[0].program, &found[0].tools), (&PathBuf::from("/opt/unstuck"), &None));
        for odd in [json!(null), json!([]), json!({"hooks": 5}), json!({"hooks": []})] {
            assert_eq!(in_value(Host::Claude, Layout::Grouped, &odd, None), []);
        }
    }

    #[test]
    fn time_limits_are_read_in_the_agents_own_unit() {
        let check = |host: Host, layout: Layout, entry: Value| {
            let value = match layout {
                Layout::Flat => json!({"hooks": {"e": [entry]}}),
                Layout::Grouped => json!({"hooks": {"e": [{"hooks": [entry]}]}}),
            };
            in_value(host, layout, &value, None).first().and_then(|entry| entry.limit)
        };
        let line = |host| command_line("/opt/unstuck", host);
        let gemini = json!({"command": line(Host::Gemini), "timeout": 5000});
        assert_eq!(check(Host::Gemini, Layout::Grouped, gemini), Some(5.0));
        let copilot = json!({"bash": line(Host::Copilot), "timeoutSec": 10});
        assert_eq!(check(Host::Copilot, Layout::Flat, copilot), Some(10.0));
        assert_eq!(check(Host::Cursor, Layout::Flat, json!({"command": line(Host::Cursor)})), None);
    }
}
