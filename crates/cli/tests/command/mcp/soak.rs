//! Everything at once, for a while: whatever happens, each question has exactly one answer, and the right one.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, LIMIT, text, without_ladder};
use crate::world::World;

/// Small and the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// What has to be answered to a question.
#[derive(Debug)]
enum Expected {
    /// These words, or that it could not be done: the server may die meanwhile.
    WordsOrFailure(String),
    /// A failure.
    Failure,
    /// Anything that is an answer.
    Any,
    /// Perhaps nothing: it was taken back.
    TakenBack,
}

#[test]
fn for_a_short_while() {
    soak(Duration::from_secs(2), 0x1DE5);
}

#[test]
#[ignore = "it takes minutes"]
fn for_a_long_while() {
    for seed in 1..=20 {
        soak(Duration::from_secs(20), seed * 0x9E37_79B9);
    }
}

fn soak(time: Duration, seed: u64) {
    let world = without_ladder(World::empty());
    let mut client = Client::ready(&world, &[], &[]);
    let mut dice = Dice(seed);
    let mut open: HashMap<u64, Expected> = HashMap::new();
    let (mut number, mut crashes, mut answered) = (0_u64, 0, 0_u64);
    let until = Instant::now() + time;
    let mut last_crash = Instant::now();
    while Instant::now() < until {
        number += 1;
        let word = format!("tide {number} {}", "~".repeat(dice.roll(3000) as usize));
        let (id, expected) = match dice.roll(100) {
            0..40 => (client.send_call("echo", json!({ "text": word })), Expected::WordsOrFailure(word)),
            40..50 => {
                let arguments = json!({ "ms": dice.roll(60), "steps": 2, "n": number });
                (client.send_call("slow", arguments), Expected::WordsOrFailure("done in 2 steps".to_owned()))
            }
            50..60 => (client.send("vendor/anything", json!({ "n": number })), Expected::Any),
            60..65 => (client.send("tools/list", json!({})), Expected::Any),
            65..70 => (client.send_call("typed", json!({ "n": number })), Expected::Failure),
            70..75 => (
                client.send_call("dup", json!({ "text": word })),
                Expected::WordsOrFailure("first".to_owned()),
            ),
            75..80 => {
                let kind = ["log", "binary", "half", "blank", "deep"][dice.roll(5) as usize];
                (
                    client.send_call("noise", json!({ "kind": kind, "n": number })),
                    Expected::WordsOrFailure(format!("among {kind}")),
                )
            }
            80..90 => {
                let id = client
                    .send_call("slow", json!({ "ms": 200 + dice.roll(2000), "steps": 20, "n": number }));
                open.insert(id, Expected::TakenBack);
                if dice.roll(2) == 0 {
                    pace(&mut client, &mut open, &mut answered);
                }
                client.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }).to_string());
                (id, Expected::TakenBack)
            }
            // A few deaths, far enough from each other that the server is not left alone.
            90..91 if crashes < 3 && last_crash.elapsed() > Duration::from_millis(500) => {
                crashes += 1;
                last_crash = Instant::now();
                (client.send_call("crash", json!({ "key": number.to_string() })), Expected::Failure)
            }
            _ => {
                client.say(r#"{"jsonrpc":"2.0","method":"notifications/vendor"}"#);
                continue;
            }
        };
        if !matches!(expected, Expected::TakenBack) {
            open.insert(id, expected);
        }
        if open.len() > 200 || dice.roll(4) == 0 {
            pace(&mut client, &mut open, &mut answered);
        }
    }
    let until = Instant::now() + LIMIT;
    while open.values().any(|expected| !matches!(expected, Expected::TakenBack)) {
        let left: Vec<_> =
            open.iter().filter(|(_, expected)| !matches!(expected, Expected::TakenBack)).collect();
        assert!(Instant::now() < until, "no answer to {left:?}");
        if let Some(line) = client.line_within(Duration::from_secs(1)) {
            judge(&line, &mut open, &mut answered);
        }
    }
    let last = client.call("echo", json!({ "text": "the end" }));
    assert!(last["content"].is_array(), "{last}");
    let (code, rest) = client.end();
    assert_eq!((code, rest.len()), (0, 0), "{rest:?}");
    assert!(answered > 100, "{answered}");
}

/// Takes in what is there.
fn pace(client: &mut Client, open: &mut HashMap<u64, Expected>, answered: &mut u64) {
    let limit = if open.len() > 200 { Duration::from_millis(50) } else { Duration::from_millis(1) };
    while let Some(line) = client.line_within(limit) {
        judge(&line, open, answered);
    }
}

#[track_caller]
fn judge(line: &str, open: &mut HashMap<u64, Expected>, answered: &mut u64) {
    let frame: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    if frame.get("method").is_some() {
        return;
    }
    let id = frame["id"].as_u64().unwrap_or_else(|| panic!("whose is this? {line}"));
    let expected =
        open.remove(&id).unwrap_or_else(|| panic!("nobody asked, or it is the second answer: {line}"));
    *answered += 1;
    let result = &frame["result"];
    let failed = result["isError"] == json!(true) || frame.get("error").is_some();
    match expected {
        Expected::WordsOrFailure(words) => assert!(failed || text(result, 0) == words, "{words}: {line}"),
        Expected::Failure => assert!(failed, "{line}"),
        Expected::Any => assert!(frame.get("result").is_some() || failed, "{line}"),
        Expected::TakenBack => {}
    }
}
