//! Scaffolding: corpus lines in, diagnoses out.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]
use serde_json::{Value, json};
use unstuck_judge::*;
fn main() {
    let rules = Rules::built_in();
    for line in std::io::stdin().lines() {
        let v: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let s = |k: &str| v[k].as_str().unwrap_or("").as_bytes().to_vec();
        let tool = v["tool"].as_str().unwrap_or("Bash");
        let command = v["command"].as_str().unwrap_or("");
        let input = serde_json::from_str::<Value>(command)
            .ok()
            .filter(Value::is_object)
            .unwrap_or_else(|| json!({"command": command}));
        let call = Call::new(tool, input);
        let outcome = match v["exit_code"].as_i64() {
            Some(c) => Outcome::Exited { code: c as i32 },
            None => Outcome::NoExitCode,
        };
        let obs = Observation {
            call,
            outcome,
            http_status: v["http_status"].as_u64().map(|s| s as u16),
            stdout: s("stdout"),
            stderr: s("stderr"),
            merged: s("text"),
        };
        let d = rules.diagnose(&obs);
        let verdict = Verdict::of(&d, nature::of(&obs.call));
        println!(
            "{}",
            json!({"id": v["id"], "kind": d.kind.word(), "rule": d.rule, "transient": d.transient, "evidence": d.evidence.map(|f| f.text), "retry": {"same_call": verdict.again.word()}})
        );
    }
}
