//! Inputs to start from: real failures, real commands, real rules.

use std::collections::HashSet;
use std::fs;
use std::io::Result;
use std::path::Path;

use serde_json::Value;

use crate::case::Case;

/// Settings in each language and layout, after the byte that says which.
const SETTINGS: [&[u8]; 9] = [
    b"\x00{}\n",
    b"\x00{\"a\":1,\"hooks\":{\"Pre\":[{\"hooks\":[{\"command\":\"x\"}]}]}}",
    b"\x00\xef\xbb\xbf{\r\n\t\"a\": 1,\r\n\t\"hooks\": {\"Post\": []}\r\n}\r\n",
    b"\x01// top\n{\n  \"a\": 1, // one\n  /* two */ \"b\": [1, /* , */ 2] // last\n  // end\n}\n",
    b"\x02{\n  \"a\": [1, 2,],\n  \"hooks\": {\n    // mine\n    \"Pre\": [{\"x\": 1},],\n  },\n}",
    b"\x04{\"version\": 1, \"hooks\": {\"Pre\": [{\"command\": \"theirs\"}]}}",
    b"\x05/* a */ {\"hooks\": /* b */ {\"Pre\" /* c */ : [ /* d */ ] /* e */ } /* f */ } // g",
    b"\x00a = 1 # one\n[mcp_servers.x] # two\ncommand = \"y\"\nargs = [\"z\", ]\n",
    b"\x00# only\r\n[[hooks]]\r\nevent = 'a'\r\n",
];

/// Schemas, each with arguments.
const SCHEMAS: [&str; 6] = [
    r##"[{"type":"object","properties":{"path":{"type":"string"},"lines":{"type":"integer","minimum":1}},"required":["path"]},{"path":"a"},{"path":1,"lines":"3"},{}]"##,
    r##"[{"anyOf":[{"type":"integer"},{"type":"array","items":{"$ref":"#"},"minItems":1}]},3,[[1],["2"]],"3"]"##,
    r##"[{"$defs":{"p":{"enum":["a","B",null]}},"properties":{"x":{"$ref":"#/$defs/p"}},"additionalProperties":false},{"x":"A"},{"y":1}]"##,
    r##"[{"oneOf":[{"required":["a"]},{"required":["b"]}],"patternProperties":{"^p":{"type":"boolean"}}},{"a":1,"p":"true"},{"a":1,"b":2}]"##,
    r##"[{"type":"string","pattern":"^(a+)+$","format":"uint32"},"aaaaaaaaaaaaaaaaaaaaaaaaaaaab"]"##,
    r##"[{"if":{"properties":{"k":{"const":1}}},"then":{"required":["l"]},"else":{"not":{"required":["m"]}}},{"k":1},{"m":0},"{\"k\":1}"]"##,
];

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
    let bundled = |target: &'static str| move |bytes: &&[u8]| Seed { target, bytes: bytes.to_vec() };
    seeds.extend(SETTINGS.iter().map(bundled("settings")));
    seeds.extend(SCHEMAS.iter().map(|text| Seed { target: "schema", bytes: text.as_bytes().to_vec() }));
    seeds.extend(unstuck_vault::fuzzed::samples().into_iter().map(|bytes| Seed { target: "safe", bytes }));
    let known = seeds.len();
    let mut met = HashSet::with_capacity(known);
    seeds.retain(|seed| met.insert((seed.target, seed.bytes.clone())));
    Ok(seeds)
}

/// Makes seeds of the lines of a corpus.
fn of_corpus(lines: &str) -> Vec<Seed> {
    let rows = lines.lines().filter_map(|line| Some((line, serde_json::from_str::<Value>(line).ok()?)));
    let of_row = |(line, row): (&str, Value)| {
        let part = |field: &str| row[field].as_str().unwrap_or_default().to_owned();
        let exit = row["exit_code"].as_u64().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
        let command = part("command");
        let planted = of_planted(&command, &part("stderr"), &part("text"));
        let diagnose = Case::encode(exit, &command, &part("stdout"), &part("stderr"), &part("text"));
        [
            Seed { target: "fingerprints", bytes: diagnose.clone() },
            Seed { target: "diagnose", bytes: diagnose },
            Seed { target: "cautions", bytes: format!("{command}\u{1e}sudo {command}").into_bytes() },
            Seed { target: "shell", bytes: command.into_bytes() },
            Seed {
                target: "clean",
                bytes: [part("stdout"), part("stderr"), part("text")].concat().into_bytes(),
            },
            Seed { target: "planted", bytes: planted },
            Seed { target: "events", bytes: of_event(line) },
            Seed { target: "frames", bytes: of_frames(&part("text"), line) },
            Seed { target: "wire", bytes: line.into() },
        ]
    };
    rows.flat_map(of_row).collect()
}

/// Real output around a token; its command chooses the token.
fn of_planted(command: &str, stderr: &str, text: &str) -> Vec<u8> {
    let sum = command.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    [&sum.to_be_bytes()[..], stderr.as_bytes(), text.as_bytes()].concat()
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
