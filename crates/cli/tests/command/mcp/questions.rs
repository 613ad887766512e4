//! What the server asks the client, when servers come and go: each answer reaches the one who asked.

use std::fs;

use serde_json::{Value, json};

use super::client::{Client, wait_for};
use crate::world::World;

/// A server that asks under the same name in each of its lives, and writes down what it hears.
const ASKS: &str = r#"
while IFS= read -r line; do
  printf '%s\n' "$line" >> seen
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *'"method":"notifications'*|*'"low"'*|*'"high"'*) continue;;
    *'"name":"ask"'*) printf '{"jsonrpc":"2.0","id":1,"method":"roots/list"}\n'; continue;;
    *'"name":"unask"'*) printf '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n';;
    *'"name":"die"'*) exit 5;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"capabilities":{}}}\n' "$id"
done"#;

struct Asked {
    world: World,
    client: Client,
}

impl Asked {
    fn new() -> Asked {
        let world = World::empty();
        let mut client = Client::start(&world, &[], &["sh", "-c", ASKS]);
        client.introduce("tester");
        Asked { world, client }
    }

    /// The name under which the client is asked.
    fn ask(&mut self) -> Value {
        self.client.send_call("ask", json!({}));
        loop {
            let frame = self.client.hear();
            if frame["method"] == "roots/list" {
                return frame["id"].clone();
            }
        }
    }

    fn answer(&self, name: &Value, word: &str) {
        self.client.say(&json!({ "jsonrpc": "2.0", "id": name, "result": word }).to_string());
    }

    /// The answers that the server heard, once it has heard the last one.
    #[track_caller]
    fn heard(&self, last: &str) -> Vec<Value> {
        let answers = || -> Vec<Value> {
            let seen = fs::read_to_string(self.world.path("seen")).unwrap_or_default();
            let frames = seen.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            frames.filter(|frame| frame.get("method").is_none()).collect()
        };
        wait_for("the server does not hear it", || answers().iter().any(|answer| answer["result"] == last));
        answers()
    }
}

fn answered(word: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "result": word })
}

#[test]
fn a_new_server_does_not_hear_what_the_dead_one_asked() {
    let mut asked = Asked::new();
    let first = asked.ask();
    asked.client.fails("die", json!({}));
    let cancelled = asked.client.aside.iter().find(|frame| frame["method"] == "notifications/cancelled");
    assert_eq!(cancelled.map(|frame| &frame["params"]["requestId"]), Some(&first), "nobody waits for it");
    let second = asked.ask();
    assert_ne!(first, second);
    asked.answer(&first, "low");
    asked.answer(&second, "high");
    assert_eq!(asked.heard("high"), [answered("high")]);
}

#[test]
fn two_questions_of_one_name_have_two_answers() {
    let mut asked = Asked::new();
    let (first, second) = (asked.ask(), asked.ask());
    assert_ne!(first, second);
    asked.answer(&second, "high");
    asked.answer(&first, "low");
    assert_eq!(asked.heard("low"), [answered("high"), answered("low")]);
}

#[test]
fn a_question_that_is_taken_back_is_so_under_the_name_that_the_client_knows() {
    let mut asked = Asked::new();
    let first = asked.ask();
    asked.client.fails("die", json!({}));
    let second = asked.ask();
    asked.client.aside.clear();
    asked.client.call("unask", json!({}));
    let cancelled = asked.client.aside.iter().find(|frame| frame["method"] == "notifications/cancelled");
    assert_eq!(cancelled.map(|frame| &frame["params"]["requestId"]), Some(&second));
    assert_ne!(first, second);
}
