//! Inputs to start from: real failures, real commands, real rules.

use std::fs;
use std::io::Result;
use std::path::Path;

use serde_json::Value;

use crate::case::Case;

/// Something to start a target from.
pub struct Seed {
    /// The target it is for.
    pub target: &'static str,
    /// The input.
    pub bytes: Vec<u8>,
}

/// All that lies in a checkout of the project.
pub fn of_project(root: &Path) -> Result<Vec<Seed>> {
    let mut seeds = of_corpus(&fs::read_to_string(root.join("corpus/dev.jsonl"))?);
    let runs = fs::read_to_string(root.join("traces/scenarios/calls.jsonl"))?;
    seeds.extend(runs.lines().step_by(10).map(|line| Seed { target: "wire", bytes: line.into() }));
    for entry in fs::read_dir(root.join("crates/wire/tests/payloads"))? {
        seeds.extend(of_payloads(&fs::read_to_string(entry?.path())?));
    }
    for entry in fs::read_dir(root.join("rules"))? {
        seeds.extend(of_rules(&fs::read_to_string(entry?.path())?));
    }
    Ok(seeds)
}

/// Makes seeds of the lines of a corpus.
fn of_corpus(lines: &str) -> Vec<Seed> {
    let rows = lines.lines().filter_map(|line| Some((line, serde_json::from_str::<Value>(line).ok()?)));
    let of_row = |(line, row): (&str, Value)| {
        let part = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
        let exit = row["exit_code"].as_u64().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
        let command = part("command");
        let diagnose = Case::encode(exit, &command, &part("stdout"), &part("stderr"), &part("text"));
        [
            Seed { target: "fingerprints", bytes: diagnose.clone() },
            Seed { target: "diagnose", bytes: diagnose },
            Seed { target: "shell", bytes: command.into_bytes() },
            Seed {
                target: "clean",
                bytes: [part("stdout"), part("stderr"), part("text")].concat().into_bytes(),
            },
            Seed { target: "events", bytes: of_event(line) },
            Seed { target: "frames", bytes: of_frames(&part("text"), line) },
            Seed { target: "wire", bytes: line.into() },
        ]
    };
    rows.flat_map(of_row).collect()
}

/// Frames with a text and a line in them, after the size of the pieces.
fn of_frames(text: &str, line: &str) -> Vec<u8> {
    let text = Value::from(text);
    format!(
        "\u{7}{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{{\"name\":\"t\",\"arguments\":{line}}}}}\r\n\
        {{\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"structuredContent\":{{ }},\"isError\":true}},\"id\":\"a\"}}\n\
        {{\"jsonrpc\":\"2.0\",\"id\":1.0,\"result\":{line}}}\n[{line}]\n{line}"
    )
    .into_bytes()
}

/// A line as an event of a stream, after the size of the pieces.
fn of_event(line: &str) -> Vec<u8> {
    let (begins, ends) = line.split_at(line.floor_char_boundary(line.len() / 2));
    format!("\u{7}: hi\r\n\r\nid: 7\nretry: 50\ndata: {begins}\ndata:{ends}\n\nevent: ping\ndata: 1\r\r")
        .into_bytes()
}

/// Makes a seed of each payload in a file.
fn of_payloads(lines: &str) -> Vec<Seed> {
    let sent = |line: &str| Some(serde_json::from_str::<Value>(line).ok()?.get("sent")?.to_string());
    lines.lines().filter_map(sent).map(|sent| Seed { target: "hook", bytes: sent.into_bytes() }).collect()
}

/// Makes a seed of each rule in a file.
fn of_rules(file: &str) -> Vec<Seed> {
    let rules = file.split("[[rule]]").skip(1).map(|rule| format!("[[rule]]{rule}"));
    rules.map(|rule| Seed { target: "rules", bytes: rule.into_bytes() }).collect()
}
