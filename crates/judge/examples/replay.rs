//! Reads recorded calls and prints what the ladder would have done.
#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]
use std::collections::HashMap;
use std::io::BufRead;

use serde_json::{Value, json};
use unstuck_judge::ladder::{Preset, Recorded, Replay, Round, Settings};
use unstuck_judge::{Call, Observation, Outcome, Rules};

fn main() {
    let preset: Preset = std::env::args().nth(1).map_or(Preset::Adaptive, |word| word.parse().unwrap());
    let rules = Rules::built_in();
    let settings = Settings::of(preset);
    let mut runs: HashMap<String, Replay> = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let row: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let trace = row["trace"].as_str().unwrap().to_owned();
        let code = row["exit_code"].as_i64();
        let ok = row["ok"].as_bool();
        let outcome = match (code, ok) {
            (Some(code), _) => Outcome::Exited { code: code as i32 },
            (None, Some(true)) => Outcome::Succeeded,
            (None, Some(false)) => Outcome::ReportedFailure,
            (None, None) => Outcome::NoExitCode,
        };
        let observation = Observation {
            call: Call::new(row["tool"].as_str().unwrap_or_default(), row["input"].clone()),
            outcome,
            http_status: None,
            stdout: Vec::new(),
            stderr: Vec::new(),
            merged: row["output"].as_str().unwrap_or_default().as_bytes().to_vec(),
        };
        let recorded = Recorded {
            observation,
            said_ok: ok,
            agent: row["agent"].as_str().unwrap_or_default().to_owned(),
            round: row["round"].as_u64().map_or(Round::Unsaid, Round::Numbered),
            new_user_turn: row["new_user_turn"].as_bool().unwrap_or(false),
        };
        let replay = runs.entry(trace.clone()).or_insert_with(|| Replay::new(&rules, &settings));
        let judged = replay.judge(&recorded);
        let before = match judged.before.rung.word() {
            "observe" => "allow",
            other => other,
        };
        let after = match judged.after.rung.word() {
            "observe" => "none",
            other => other,
        };
        let track = |d: &unstuck_judge::ladder::Decision| {
            d.reason.as_ref().map(|r| format!("{}:{}:{}", r.track, r.count, r.kind))
        };
        println!(
            "{}",
            json!({"trace": trace, "i": row["i"], "before": before, "after": after,
            "key": judged.key().map(|k| k.0.word()), "count": judged.key().map(|k| k.1), "kind": judged.kind.word(), "rule": judged.rule,
            "why": [track(&judged.before), track(&judged.after)]})
        );
    }
}
