//! The proxy between a model of a client and a scripted server, by random scripts: requests of every kind and name, calls that
//! fail, hang, come late or never, batches, garbage, messages over the limit, words taken back, and a server that dies.
//!
//! What must hold: every request has exactly one answer under its name (none or one where it was taken back, or could not be
//! read), nothing else is said, what was asked arrives as it was asked and in its order, and in the end the proxy ends with 0.
//!
//! `UNSTUCK_MCP_MODEL=500` runs so many scripts, `UNSTUCK_MCP_MODEL_SEED=7` one of them again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, LIMIT, seen};
use crate::world::World;

/// How many scripts a run of all tests has, and how many steps each.
const SCRIPTS: u64 = 6;
const STEPS: u64 = 60;
/// Calls that are never answered are given up after so long.
const TIMEOUT: &str = "700ms";

/// Small and the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % sides
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len() as u64) as usize]
    }
}

/// What has to come for the requests of one name.
#[derive(Debug, Default, Clone, PartialEq)]
struct Due {
    /// So many answers at least, and at most.
    least: u32,
    most: u32,
    came: u32,
    /// What the answer says, where it is the only one and no failure.
    says: Option<String>,
}

/// A client that knows what it is owed.
struct Model {
    client: Client,
    dice: Dice,
    due: HashMap<String, Due>,
    /// So many answers may come that name nobody.
    nameless: u32,
    told: u64,
    named: u64,
    /// Names are used twice.
    has_twins: bool,
}

#[test]
#[allow(clippy::print_stderr, reason = "the seed that failed is said")]
fn whatever_both_sides_do_every_request_has_its_answer() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("UNSTUCK_MCP_MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..number("UNSTUCK_MCP_MODEL").unwrap_or(SCRIPTS) + 1,
    };
    for seed in seeds {
        let run = std::panic::AssertUnwindSafe(|| script(seed));
        if let Err(why) = std::panic::catch_unwind(run) {
            eprintln!("again with UNSTUCK_MCP_MODEL_SEED={seed}");
            std::panic::resume_unwind(why);
        }
    }
}

fn script(seed: u64) {
    let settings = "[mcp]\nmax-message = \"1MB\"\n[ladder]\nmode = \"shadow\"\n";
    let world = World::empty().with("config/unstuck/config.toml", settings);
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    // The first rolls of seeds that lie side by side are alike.
    for _ in 0..8 {
        let _ = dice.roll(2);
    }
    let flags: &[&str] = if dice.roll(3) == 0 { &["--lists"] } else { &[] };
    let retries = dice.of(&["0", "1"]);
    let mut client = Client::of_peer(&world, &["--timeout", TIMEOUT, "--retries", retries], flags);
    client.introduce("model");
    client.aside.clear();
    let mut model = Model {
        client,
        dice,
        due: HashMap::new(),
        nameless: 0,
        told: 0,
        named: 0,
        has_twins: seed.is_multiple_of(3),
    };
    for _ in 0..STEPS {
        model.step();
        if model.dice.roll(3) == 0 {
            let time = Duration::from_millis(model.dice.roll(20));
            model.hear_for(time);
        }
    }
    let until = Instant::now() + LIMIT;
    while model.due.values().any(|due| due.came < due.least) {
        let open: Vec<_> = model.due.iter().filter(|(_, due)| due.came < due.least).collect();
        assert!(Instant::now() < until, "no answer: {open:?}\n{}", model.client.remarks());
        model.hear_for(Duration::from_millis(200));
    }
    // Nothing comes late, and what is said last is heard.
    model.hear_for(Duration::from_millis(100));
    let Model { client, mut due, mut nameless, .. } = model;
    let (code, rest) = client.end();
    rest.iter().for_each(|line| judge(line, &mut due, &mut nameless, &mut |_| {}));
    assert_eq!(code, 0);
    let told: Vec<u64> = seen(&world).iter().filter_map(|line| line["params"]["told"].as_u64()).collect();
    assert!(told.is_sorted_by(|one, next| one < next), "what is told arrives in its order, once: {told:?}");
}

impl Model {
    /// A name that may be used already, in any spelling.
    fn name(&mut self) -> String {
        self.named += 1;
        let number = self.named;
        match self.dice.roll(12) {
            0 => json!(format!("n{number}")).to_string(),
            1 => json!(format!("\"{number}\" \\ é")).to_string(),
            2 => format!("-{number}"),
            3 => format!("{number}.5"),
            4 => format!("\"\\u006e{number}\""),
            5 => format!("{}", 1_u64 << 40 | number),
            // Twice the same, in some scripts.
            6 if self.has_twins => self.dice.of(&["7000", "\"twice\""]).to_owned(),
            _ => number.to_string(),
        }
    }

    /// So many answers are owed to a request of this name, and this is what one says.
    fn owe(&mut self, id: &str, (least, most): (u32, u32), says: Option<String>) {
        let due = self.due.entry(key(id)).or_default();
        due.says = says.filter(|_| due.most == 0);
        due.least += least;
        due.most += most;
    }

    fn step(&mut self) {
        let id = self.name();
        let call = |id: &str, tool: &str, arguments: Value| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments},"_meta":{{"progressToken":{id}}}}}}}"#
            )
        };
        let word = format!("tide {} {}", self.named, "~".repeat(self.dice.roll(2000) as usize));
        let long = "x".repeat(1_100_000);
        match self.dice.roll(100) {
            0..20 => {
                self.client.say(&call(&id, "echo", json!({ "text": word })));
                self.owe(&id, (1, 1), Some(word));
            }
            20..30 => {
                let method =
                    self.dice.of(&["vendor/anything", "tools/list", "ping", "no/such", "prompts/list"]);
                self.client.say(&format!(
                    r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"text":{},"n":1.50}}, "id" : {id} }}"#,
                    json!(word)
                ));
                let says = (method == "vendor/anything").then_some(word);
                self.owe(&id, (1, 1), says);
            }
            30..40 => {
                let arguments = json!({ "ms": self.dice.roll(900), "steps": 3, "n": self.named });
                self.client.say(&call(&id, "slow", arguments));
                self.owe(&id, (1, 1), None);
            }
            40..46 => {
                self.client.say(&call(&id, "slow", json!({ "ms": 600, "steps": 5, "n": self.named })));
                self.owe(&id, (0, 1), None);
                if self.dice.roll(2) == 0 {
                    self.hear_for(Duration::from_millis(20));
                }
                // The last one of that name is meant, or another one.
                self.due.get_mut(&key(&id)).unwrap().least = 0;
                self.client.say(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
                ));
            }
            46..50 => {
                self.client.say(&call(&id, "mute", json!({ "n": self.named })));
                self.owe(&id, (1, 1), None);
            }
            50..60 => {
                let (tool, kinds): (&str, &[&str]) = match self.dice.roll(2) {
                    0 => ("noise", &["log", "binary", "half", "blank", "crlf", "json", "deep", "split"]),
                    _ => ("garbled", &["torn", "trailing", "nan", "latin", "mark", "neither"]),
                };
                let kind = self.dice.of(kinds);
                self.client.say(&call(&id, tool, json!({ "kind": kind, "n": self.named })));
                self.owe(&id, (1, 1), None);
            }
            60..66 => {
                let tool = self.dice.of(&["dup", "stray", "fail", "rpc_error", "unknown"]);
                self.nameless += u32::from(tool == "stray") * 2;
                self.client.say(&call(&id, tool, json!({ "text": word, "n": self.named })));
                self.owe(&id, (1, 1), None);
            }
            66..70 => {
                self.client.say(&call(&id, "big", json!({ "megabytes": 1.3 })));
                self.owe(&id, (1, 1), None);
            }
            70..76 => {
                self.client.say(&match self.dice.roll(3) {
                    0 => call(&id, "echo", json!({ "text": long })),
                    1 => format!(r#"{{"method":"a","params":{{"id":1,"text":"{long}"}},"id":{id}}}"#),
                    _ => format!(
                        r#"{{"id":{id},"method":"a","params":{}{}}}"#,
                        "[".repeat(600),
                        "]".repeat(600)
                    ),
                });
                self.owe(&id, (1, 1), None);
            }
            76..82 => {
                let other = self.name();
                self.client.say(&format!(
                    r#"[{},{{"jsonrpc":"2.0","method":"notifications/vendor"}},5,{{"jsonrpc":"2.0","id":{other},"method":"ping"}}]"#,
                    call(&id, "echo", json!({ "text": word }))
                ));
                self.owe(&id, (1, 1), None);
                self.owe(&other, (1, 1), None);
            }
            82..86 => {
                let garbage = self.dice.of(&["no JSON", "{}", "{\"id\":", "17", "[]", "\u{0}\u{1}", "]}"]);
                self.client.say(garbage);
                // One that nobody can read, and the server complains of without a name.
                self.client
                    .say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"a","params":{{"x":NaN}}}}"#));
                self.owe(&id, (0, 1), None);
                self.nameless += 3;
            }
            86..92 => {
                let tool = self.dice.of(&["sample", "elicit"]);
                self.client.say(&call(&id, tool, json!({ "text": word, "n": self.named })));
                self.owe(&id, (1, 1), None);
            }
            92..94 => {
                self.client.say(&call(&id, "crash", json!({ "key": self.named.to_string() })));
                self.owe(&id, (1, 1), None);
            }
            _ => {
                self.told += 1;
                let told = self.told;
                self.client.say(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/vendor","params":{{"told":{told}}}}}"#
                ));
            }
        }
    }

    /// Hears what comes, and answers what is asked, most of the time.
    fn hear_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Some(line) = self.client.line_within(left) else { return };
            let mut asked = Vec::new();
            judge(&line, &mut self.due, &mut self.nameless, &mut |id| asked.push(id));
            for id in asked {
                if self.dice.roll(4) > 0 {
                    self.client.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"answer":1}}}}"#));
                }
            }
        }
    }
}

/// A name as all its spellings have it.
fn key(id: &str) -> String {
    let id: Value = serde_json::from_str(id).unwrap();
    id.to_string()
}

/// Fails where a line of the proxy is not owed.
#[track_caller]
fn judge(line: &str, due: &mut HashMap<String, Due>, nameless: &mut u32, asked: &mut dyn FnMut(Value)) {
    let frame: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let parts = match frame {
        Value::Array(parts) => parts,
        frame => vec![frame],
    };
    for frame in parts {
        if let Some(method) = frame["method"].as_str() {
            match frame.get("id") {
                Some(id) => asked(id.clone()),
                None => assert!(method.starts_with("notifications/"), "{frame}"),
            }
            continue;
        }
        let shown: String = frame.to_string().chars().take(300).collect();
        assert!(frame.get("result").is_some() != frame.get("error").is_some(), "an answer is one: {shown}");
        if frame["id"].is_null() {
            *nameless = nameless.checked_sub(1).unwrap_or_else(|| panic!("whose is this? {shown}"));
            continue;
        }
        let due = due.get_mut(&frame["id"].to_string()).unwrap_or_else(|| panic!("nobody asked: {shown}"));
        due.came += 1;
        assert!(due.came <= due.most, "answered too often: {shown}\n{due:?}");
        let has_failed = frame.get("error").is_some() || frame["result"]["isError"] == true;
        if let (Some(says), false, 1) = (&due.says, has_failed, due.most) {
            let text = frame["result"]["content"][0]["text"].as_str();
            let text = text.or(frame["result"]["saw"]["text"].as_str());
            assert_eq!(text, Some(&**says), "another one's answer: {shown}");
        }
    }
}
