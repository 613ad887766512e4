#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used)]
use std::io::BufRead;
use unstuck_judge::{Call, ladder::see};
fn main() {
    for line in std::io::stdin().lock().lines() {
        let row: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let s = see::sight(&Call::new(row["tool"].as_str().unwrap(), row["input"].clone()));
        println!(
            "{} {} {:?} polls={} waits={} trivial={} creates={} exact={:x} intent={:x} label={}",
            row["trace"].as_str().unwrap(),
            row["i"],
            s.manner,
            s.polls,
            s.waits,
            s.trivial,
            s.creates,
            s.exact.0 & 0xffff,
            s.intent.0 & 0xffff,
            s.label.lines().next().unwrap_or_default()
        );
    }
}
