//! A server that dies is started again as if nothing had happened, and nobody is told anything but the truth of it.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, LIMIT, envelope, seen, seen_calls, wait_for, with_setting, without_ladder};
use crate::world::World;

fn log(world: &World) -> String {
    let said = world.run(&["log", "--last", "200"], "");
    assert_eq!(said.exit, 0, "{said}");
    said.stdout().to_owned()
}

fn starts(world: &World) -> usize {
    seen(world).iter().filter(|line| line.get("args").is_some()).count()
}

#[test]
fn a_call_that_ends_the_server_is_told_so_and_the_next_one_works() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let envelope = client.fails("crash", json!({ "code": 9 }));
    let said = envelope.to_string();
    assert!(said.contains("code 9") && said.contains("the keel broke"), "{envelope}");
    assert_eq!(seen_calls(&world, "crash").len(), 1, "it may have begun");
    assert_eq!(client.works("echo", json!({ "text": "again" })), "again");
    let calls = seen_calls(&world, "echo");
    assert_eq!(calls[0]["start"], 2, "{calls:?}");
    // The new one was greeted in the client's own words.
    let greetings: Vec<Value> =
        seen(&world).into_iter().filter(|line| line["method"] == "initialize").collect();
    assert_eq!(greetings.len(), 2);
    assert_eq!(greetings[0]["params"], greetings[1]["params"]);
    let told = seen(&world).iter().filter(|line| line["notification"] == "notifications/initialized").count();
    assert_eq!(told, 2);
    assert_eq!(client.aside, Vec::<Value>::new(), "the tools are the same, so nobody is told of a list");
    assert_eq!(client.end(), (0, vec![]));
    let log = log(&world);
    for words in ["peer", "the keel broke", "9"] {
        assert!(log.contains(words), "{words} is not in\n{log}");
    }
}

#[test]
fn a_call_that_only_looks_is_sent_again_to_the_new_server() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    assert_eq!(client.works("crash_read", json!({ "times": 1 })), "worked at attempt 2");
    assert_eq!(starts(&world), 2);
}

#[test]
fn whatever_was_under_way_is_answered_and_what_only_asks_is_asked_again() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let muted: Vec<u64> = (0..5).map(|_| client.send_call("sample", json!({}))).collect();
    for _ in &muted {
        assert_eq!(client.hear()["method"], "sampling/createMessage");
    }
    let crash = client.send_call("crash", json!({}));
    let list = client.send("resources/list", json!({}));
    let unknown = client.send("vendor/anything", json!({}));
    for id in muted {
        assert_eq!(client.answer(id)["result"]["isError"], json!(true));
    }
    assert_eq!(client.answer(crash)["result"]["isError"], json!(true));
    assert!(client.answer(list)["result"]["resources"].is_array());
    let unknown = client.answer(unknown);
    assert!(unknown.get("result").is_some() || unknown["error"]["code"] == -32000, "{unknown}");
}

#[test]
fn what_the_client_wished_for_is_wished_for_again() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    client.ask("logging/setLevel", json!({ "level": "debug" }));
    client.ask("resources/subscribe", json!({ "uri": "tide://today" }));
    client.fails("crash", json!({}));
    client.works("echo", json!({ "text": "a" }));
    client.aside.clear();
    client.works("logging", json!({}));
    let levels: Vec<Value> = client.aside.iter().map(|frame| frame["params"]["level"].clone()).collect();
    assert_eq!(levels, ["debug", "warning"], "{:?}", client.aside);
    let wishes = seen(&world).iter().filter(|line| line["method"] == "resources/subscribe").count();
    assert_eq!(wishes, 2);
}

#[test]
fn a_server_that_dies_of_a_wish_leaves_nobody_waiting() {
    // It dies of the first wish of its second life, and lives on in its third.
    let server = r#"echo s >> starts
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *logging/setLevel*) [ "$(wc -l < starts)" -eq 2 ] && exit 4;;
    *die*) exit 5;;
    *'"method":"notifications'*) continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"came"}],"capabilities":{}}}\n' "$id"
done"#;
    let world = World::empty();
    let mut client = Client::start(&world, &[], &["sh", "-c", server]);
    client.introduce("tester");
    client.ask("logging/setLevel", json!({ "level": "debug" }));
    client.fails("die", json!({}));
    let began = Instant::now();
    assert_eq!(client.works("any", json!({})), "came");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn a_server_is_told_once_that_the_client_is_ready_whenever_the_client_says_so() {
    // It dies of its greeting in its first life.
    let server = r#"echo s >> starts
while IFS= read -r line; do
  [ "$(wc -l < starts)" -eq 2 ] && printf '%s\n' "$line" >> seen
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *'"method":"notifications'*) continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"capabilities":{}}}\n' "$id"
  [ "$(wc -l < starts)" -eq 1 ] && { echo gone > gone; exit 4; }
done"#;
    let world = World::empty();
    let mut client = Client::start(&world, &[], &["sh", "-c", server]);
    client
        .ask("initialize", json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {} }));
    wait_for("it does not die", || world.path("gone").exists());
    // Now it is most likely gone, and not begun again.
    thread::sleep(Duration::from_millis(40));
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.ask("ping", json!({}));
    let seen = std::fs::read_to_string(world.path("seen")).unwrap();
    let told: Vec<&str> = seen.lines().filter(|line| line.contains("initialized")).collect();
    assert_eq!(told.len(), 1, "{seen}");
}

#[test]
fn a_server_that_does_not_come_up_is_told_of_with_its_own_words_and_its_code() {
    let world = World::empty();
    let mut client = Client::of_peer(&world, &[], &["--die-at-start", "99"]);
    let id = client
        .send("initialize", json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {} }));
    let answer = client.answer(id);
    let words = answer["error"]["message"].as_str().unwrap();
    assert!(words.contains("code 3") && words.contains("it does not come up"), "{answer}");
    assert_eq!(client.exit_within(LIMIT), 3);
    assert!(client.remarks().contains("it does not come up"), "{}", client.remarks());
}

#[test]
fn a_command_that_is_not_there_is_named() {
    for (command, code) in [("no-such-server", 127), ("/", 126)] {
        let world = World::empty();
        let mut client = Client::start(&world, &[], &[command]);
        let id = client.send("initialize", json!({}));
        let answer = client.answer(id);
        assert!(answer["error"]["message"].as_str().unwrap().contains(command), "{answer}");
        assert_eq!(client.exit_within(LIMIT), code, "{command}");
    }
}

#[test]
fn a_server_that_is_not_to_be_started_again_is_not() {
    let world = World::empty();
    let mut client = Client::ready(&world, &["--no-restart"], &[]);
    let told = client.fails("crash", json!({}));
    assert!(told["error"].as_str().unwrap().contains("code 7"), "{told}");
    assert_eq!(client.exit_within(LIMIT), 7, "a client sees it go, as it would without us");
    assert_eq!(starts(&world), 1);
}

#[test]
fn a_server_that_said_nothing_but_noise_before_it_died_is_not_started_again() {
    let world = World::empty();
    let mut client = Client::start(&world, &[], &["sh", "-c", "echo listening; exit 3"]);
    let id = client.send("initialize", json!({}));
    let answer = client.answer(id);
    assert!(answer["error"]["message"].as_str().unwrap().contains("code 3"), "{answer}");
    assert_eq!(client.exit_within(LIMIT), 3);
}

#[test]
fn a_server_that_dies_again_and_again_is_left_alone_and_everybody_told_at_once() {
    let world = without_ladder(World::empty());
    let mut client = Client::ready(&world, &["--retries", "0"], &[]);
    let mut last = Value::Null;
    for number in 0..6 {
        last = client.fails("crash", json!({ "text": format!("fatal: keel {number} broke") }));
    }
    assert!(last.to_string().contains("left alone"), "{last}");
    assert_eq!(starts(&world), 5);
    // Whoever asks now is told at once, whatever it is.
    let began = Instant::now();
    let told = client.fails("echo", json!({ "text": "a" }));
    assert!(told.to_string().contains("left alone"), "{told}");
    let id = client.send("resources/list", json!({}));
    assert!(client.answer(id)["error"]["message"].as_str().unwrap().contains("left alone"));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(client.end().0, 0);
    assert!(log(&world).contains("left alone") || log(&world).contains("gave up"), "{}", log(&world));
}

#[test]
fn a_server_that_went_without_a_complaint_is_started_when_it_is_needed() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    client.fails("crash", json!({ "code": 0 }));
    thread::sleep(Duration::from_millis(600));
    assert_eq!(starts(&world), 1, "nobody needs it");
    assert_eq!(client.works("echo", json!({ "text": "again" })), "again");
    assert_eq!(starts(&world), 2);
}

#[test]
fn a_server_that_comes_up_slowly_keeps_nobody_from_asking() {
    let world = World::empty();
    let mut client = Client::of_peer(&world, &[], &["--slow-start", "400"]);
    let ids: Vec<u64> =
        (0..20).map(|number| client.send_call("echo", json!({ "text": number.to_string() }))).collect();
    for (number, id) in ids.into_iter().enumerate() {
        assert_eq!(client.answer(id)["result"]["content"][0]["text"], number.to_string());
    }
}

#[test]
fn a_tool_that_says_something_else_of_itself_is_reported() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &["--rug"]);
    client.fails("crash", json!({}));
    client.works("untyped", json!({}));
    wait_for("nobody is warned", || client.remarks().contains("changed: echo"));
    let told = client.aside.pop().unwrap_or_else(|| client.hear());
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(client.end().0, 0);
    assert!(log(&world).contains("echo"), "{}", log(&world));
    // Another process, another day.
    let world = World::empty();
    assert_eq!(Client::ready(&world, &[], &["--rug"]).end().0, 0);
    let client = Client::ready(&world, &[], &["--rug"]);
    wait_for("nobody is warned", || client.remarks().contains("changed: echo"));
}

#[test]
fn what_a_server_writes_for_people_is_shown_and_kept() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    client.works("remark", json!({ "text": "gauge 4 reads 1.5 m", "times": 3 }));
    wait_for("it is not shown", || client.remarks().contains("gauge 4 reads 1.5 m"));
    assert_eq!(client.end().0, 0);
    assert!(log(&world).contains("gauge 4 reads 1.5 m"), "{}", log(&world));
}

#[test]
fn a_signal_ends_the_server_too() {
    for name in ["TERM", "INT", "HUP"] {
        let world = World::empty();
        let server = format!("echo $$ > pid; trap '' TERM; exec {} --log peer.log", super::client::peer());
        let mut client = Client::start(&world, &[], &["sh", "-c", &server]);
        client.introduce("tester");
        client.send_call("mute", json!({}));
        wait_for("the call does not arrive", || seen_calls(&world, "mute").len() == 1);
        client.signal(name);
        assert_eq!(client.exit_within(LIMIT), 0, "{name}");
        assert_gone(&world);
    }
}

#[test]
fn a_server_that_neither_reads_nor_goes_is_ended_with_its_children() {
    let world = World::empty();
    let server = "echo $$ > pid; trap '' TERM HUP; sleep 1000 & sleep 1000";
    let mut client = Client::start(&world, &[], &["sh", "-c", server]);
    client.send("initialize", json!({}));
    wait_for("it does not start", || world.path("pid").exists());
    client.signal("TERM");
    assert_eq!(client.exit_within(LIMIT), 0);
    assert_gone(&world);
}

/// The server, which wrote down its number, is gone.
#[track_caller]
fn assert_gone(world: &World) {
    let pid = std::fs::read_to_string(world.path("pid")).unwrap();
    let is_there = || {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        !state.is_empty() && !state.contains(") Z ")
    };
    wait_for("the server is still there", || !is_there());
}

#[test]
fn a_server_that_hangs_is_found_out_and_started_again() {
    let world = with_setting(World::empty(), "hangs-after", "1s");
    let mut client = Client::ready(&world, &["--timeout", "500ms", "--retries", "0"], &[]);
    let envelope = client.fails("hang", json!({}));
    assert_eq!(envelope["kind"], "timeout", "{envelope}");
    wait_for("it is not started again", || starts(&world) == 2);
    assert_eq!(client.works("echo", json!({ "text": "again" })), "again");
    assert_eq!(client.end().0, 0);
    assert!(log(&world).contains("sign of life"), "{}", log(&world));
}

#[test]
fn a_server_that_only_takes_its_time_is_left_alone() {
    let world = with_setting(World::empty(), "hangs-after", "1s");
    let mut client = Client::ready(&world, &["--timeout", "300ms", "--retries", "0"], &[]);
    client.fails("mute", json!({}));
    thread::sleep(Duration::from_millis(1500));
    assert_eq!(client.works("echo", json!({ "text": "still here" })), "still here");
    assert_eq!(starts(&world), 1);
}

#[test]
fn one_death_with_many_calls_under_way_counts_against_nobody() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let mut ids: Vec<u64> =
        (0..12).map(|_| client.send_call("sample", json!({ "text": "how is the tide?" }))).collect();
    for _ in &ids {
        assert_eq!(client.hear()["method"], "sampling/createMessage");
    }
    ids.push(client.send_call("crash", json!({})));
    for id in ids {
        let answer = client.answer(id);
        let told = envelope(&answer["result"]);
        assert!(told.get("status").is_none() && told["error"].as_str().unwrap().contains("code 7"), "{told}");
    }
    assert_eq!(client.works("echo", json!({ "text": "again" })), "again");
    // The same again is no stubbornness: nobody had seen an answer.
    let id = client.send_call("sample", json!({ "text": "how is the tide?" }));
    let asked = client.hear();
    assert_eq!(asked["method"], "sampling/createMessage", "{asked}");
    client.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": {} }).to_string());
    assert_ne!(client.answer(id)["result"]["isError"], json!(true));
}
