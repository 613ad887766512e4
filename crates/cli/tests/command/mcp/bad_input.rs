//! Whatever comes from either side, nobody hangs, no answer is lost, and none goes to another.

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{
    Client, LIMIT, envelope, peer, seen, seen_calls, text, wait_for, with_setting, without_ladder,
};
use crate::world::World;

#[test]
fn an_answer_is_heard_among_things_that_are_none() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    for kind in ["log", "binary", "half", "two", "split", "blank", "crlf", "json", "deep"] {
        let id = client.send_call("noise", json!({ "kind": kind }));
        let answer = client.answer(id);
        assert_eq!(text(&answer["result"], 0), format!("among {kind}"));
    }
    let aside: Vec<String> = client.aside.drain(..).map(|frame| frame.to_string()).collect();
    let others = aside.iter().filter(|frame| !frame.contains("two frames in one write"));
    assert_eq!(others.count(), 0, "whatever is no message is kept from the client: {aside:?}");
    assert_eq!(client.end().0, 0);
    let log = world.run(&["log", "--last", "200"], "");
    assert!(log.stdout().contains("INFO gauge 4 was read"), "{log}");
}

#[test]
fn an_answer_that_cannot_be_read_is_one_all_the_same() {
    let world = without_ladder(World::empty());
    let mut client = Client::ready(&world, &["--retries", "0"], &[]);
    let check = |client: &mut Client, kind: &str, expected: Option<&str>| {
        let result = client.call("garbled", json!({ "kind": kind }));
        match expected {
            Some(words) => assert_eq!(text(&result, 0), words, "{kind}"),
            None => {
                let error = envelope(&result)["error"].as_str().unwrap().to_owned();
                assert!(error.contains("the server's answer was refused"), "{kind}: {error}");
            }
        }
    };
    check(&mut client, "torn", None);
    check(&mut client, "trailing", None);
    check(&mut client, "nan", None);
    check(&mut client, "neither", None);
    // As clients read such bytes themselves.
    check(&mut client, "latin", Some("h\u{fffd}chste tide"));
    check(&mut client, "mark", Some("high tide"));
    assert_eq!(client.works("echo", json!({ "text": "a" })), "a");
    assert_eq!(client.end().0, 0);
}

#[test]
fn a_question_that_only_the_server_can_read_gets_its_answer() {
    let world = World::empty();
    // It answers whatever it is asked, read or not.
    let script = r#"while read -r line; do case "$line" in *NaN*) echo '{"jsonrpc":"2.0","id":7,"result":{"read":"all the same"}}';; esac; done"#;
    let mut client = Client::start(&world, &["--name", "peer"], &["sh", "-c", script]);
    client
        .say(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{"x":NaN}}}"#);
    assert_eq!(client.hear()["result"]["read"], "all the same");
    assert_eq!(client.end().0, 0);
}

#[test]
fn a_line_without_an_end_is_refused_and_the_server_started_again_or_heard_on() {
    let world = with_setting(World::empty(), "max-message", "1MB");
    let mut client = Client::ready(&world, &["--timeout", "1s", "--retries", "0"], &[]);
    let envelope = client.fails("noise", json!({ "kind": "endless" }));
    assert_eq!(envelope["ok"], json!(false));
}

#[test]
fn an_answer_that_is_too_long_is_told_of_and_the_next_one_heard() {
    let world = with_setting(World::empty(), "max-message", "1MB");
    let mut client = Client::ready(&world, &[], &[]);
    let envelope = client.fails("big", json!({ "megabytes": 3 }));
    assert!(envelope["error"].as_str().unwrap().contains("1 MB"), "{envelope}");
    assert_eq!(client.works("echo", json!({ "text": "a" })), "a");
    assert_eq!(seen_calls(&world, "big").len(), 1, "it would only come again");
}

#[test]
fn a_question_that_is_too_long_or_too_deep_is_refused_by_its_name() {
    let world = with_setting(World::empty(), "max-message", "1MB");
    let mut client = Client::ready(&world, &[], &[]);
    let long = "x".repeat(1_200_000);
    client.say(&format!(
        r#"{{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{long}"}}}}}}"#
    ));
    let refused = client.hear();
    assert_eq!(refused["id"], "long", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("1 MB"), "{refused}");
    for depth in [600, 100_000] {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        client.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{depth},"method":"tools/call","params":{{"name":"untyped","arguments":{{"a":{open}{close}}}}}}}"#
        ));
        let refused = client.hear();
        assert_eq!(refused["id"], depth, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("deep"), "{refused}");
    }
    // Deep, but not too deep.
    let (open, close) = ("[".repeat(100), "]".repeat(100));
    client.say(&format!(
        r#"{{"jsonrpc":"2.0","id":"ok","method":"tools/call","params":{{"name":"untyped","arguments":{{"a":{open}{close}}}}}}}"#
    ));
    assert_eq!(client.hear()["id"], "ok");
    assert_eq!(seen_calls(&world, "untyped").len(), 1);
}

#[test]
fn a_large_result_passes_whole_and_is_held_only_a_few_times() {
    passes_whole(25);
}

#[test]
fn a_very_large_result_passes_whole_and_is_held_only_a_few_times() {
    passes_whole(100);
}

fn passes_whole(megabytes: usize) {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let id = client.send_call("big", json!({ "megabytes": megabytes }));
    let line = client.line();
    let frame: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&frame["id"], text(&frame["result"], 0).len()), (&json!(id), megabytes * 1_000_000));
    let status = fs::read_to_string(format!("/proc/{}/status", client.pid())).unwrap_or_default();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    if let Some(most) = most.and_then(|most| most.trim().trim_end_matches(" kB").parse::<usize>().ok()) {
        assert!(most < 80_000 + megabytes * 4_000, "{most} kB at the most");
    }
}

#[test]
fn pieces_of_frames_and_several_at_once_are_put_together() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let call = |id: u64| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "echo", "arguments": { "text": id.to_string() } } })
            .to_string()
    };
    let together = format!("{}\n\n \r\n{}\r\n{}\n", call(101), call(102), call(103));
    let (first, second) = together.split_at(together.len() / 2 + 7);
    client.write(first.as_bytes().to_vec());
    std::thread::sleep(Duration::from_millis(30));
    for byte in second.bytes() {
        client.write(vec![byte]);
    }
    for id in 101..=103 {
        assert_eq!(text(&client.answer(id)["result"], 0), id.to_string());
    }
}

#[test]
fn rubbish_from_the_client_is_the_servers_to_complain_about() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":1\n\xff\xfe\x00\n".to_vec());
    for _ in 0..2 {
        assert_eq!(client.hear()["error"]["code"], -32700);
    }
    client.works("echo", json!({ "text": "a" }));
}

#[test]
fn a_second_answer_and_one_to_nothing_go_nowhere() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    assert_eq!(client.works("dup", json!({})), "first");
    assert_eq!(client.works("stray", json!({ "text": "mine" })), "mine");
    client.works("echo", json!({ "text": "a" }));
    // An answer to nobody at all is for whoever can make something of it.
    assert!(client.aside.iter().all(|frame| frame["id"].is_null()), "{:?}", client.aside);
}

#[test]
fn a_name_that_is_used_twice_has_both_answers() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let mut said = String::new();
    for round in 0..50 {
        for text in ["a", "b", "c"] {
            let text = format!("{text}{round}");
            said += &format!(
                "{}\n",
                json!({ "jsonrpc": "2.0", "id": "same", "method": "tools/call",
                "params": { "name": "echo", "arguments": { "text": text } } })
            );
            said += &format!(
                "{}\n",
                json!({ "jsonrpc": "2.0", "id": "same", "method": "vendor/anything", "params": { "text": text } })
            );
        }
    }
    client.write(said.into_bytes());
    let (mut echoed, mut passed) = (Vec::new(), Vec::new());
    for _ in 0..300 {
        let frame = client.hear();
        assert_eq!(frame["id"], "same");
        match frame["result"]["saw"]["text"].as_str() {
            Some(text) => passed.push(text.to_owned()),
            None => echoed.push(text(&frame["result"], 0)),
        }
    }
    let mut expected: Vec<String> =
        (0..50).flat_map(|round| ["a", "b", "c"].map(|text| format!("{text}{round}"))).collect();
    expected.sort();
    for mut heard in [echoed, passed] {
        heard.sort();
        assert_eq!(heard, expected);
    }
}

#[test]
fn a_thousand_calls_under_way_have_each_their_own_answer() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let slow: Vec<u64> =
        (0..100).map(|_| client.send_call("slow", json!({ "ms": 300, "steps": 1 }))).collect();
    let mut asked: HashMap<u64, String> = (0..900)
        .map(|number| {
            let text = format!("tide {number}");
            (client.send_call("echo", json!({ "text": text })), text)
        })
        .collect();
    let mut left = slow.len() + asked.len();
    while left > 0 {
        let frame = client.hear();
        let id = frame["id"].as_u64().unwrap();
        match asked.remove(&id) {
            Some(expected) => assert_eq!(text(&frame["result"], 0), expected),
            None => assert!(slow.contains(&id), "{frame}"),
        }
        left -= 1;
    }
    client.hears_nothing_for(Duration::from_millis(50));
}

#[test]
fn a_client_that_writes_without_reading_gets_every_answer_in_the_end() {
    let world = World::empty();
    let mut child = world.command(&["mcp", "--", &peer()]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = "x".repeat(200);
    let (done, is_done) = std::sync::mpsc::channel();
    let writes = std::thread::spawn(move || {
        for id in 0..5000 {
            let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": "echo", "arguments": { "text": format!("{id} {text}") } } });
            writeln!(stdin, "{call}").unwrap();
        }
        done.send(()).unwrap();
        stdin
    });
    let written = is_done.recv_timeout(LIMIT);
    if written.is_err() {
        child.kill().unwrap();
    }
    written.expect("writing does not end while nobody reads");
    let stdout = child.stdout.take().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let lines = std::io::BufRead::lines(std::io::BufReader::new(stdout));
        lines.map_while(Result::ok).try_for_each(|line| tell.send(line))
    });
    let mut seen = vec![false; 5000];
    for _ in 0..5000 {
        let Ok(line) = told.recv_timeout(LIMIT) else {
            child.kill().unwrap();
            panic!("{} answers do not come", seen.iter().filter(|is_there| !**is_there).count());
        };
        let frame: Value = serde_json::from_str(&line).unwrap();
        let id = frame["id"].as_u64().unwrap();
        assert!(self::text(&frame["result"], 0).starts_with(&format!("{id} ")));
        assert!(!std::mem::replace(&mut seen[id as usize], true), "{id} is answered twice");
    }
    drop(writes.join().unwrap());
    child.wait().unwrap();
}

#[test]
fn a_server_that_stops_reading_stops_no_one_else() {
    let world = without_ladder(World::empty());
    let mut client = Client::ready(&world, &["--timeout", "1s", "--retries", "0"], &[]);
    let hang = client.send_call("hang", json!({}));
    let long = "x".repeat(20_000);
    let ids: Vec<u64> = (0..50).map(|_| client.send_call("echo", json!({ "text": long }))).collect();
    // What needs no server is answered all the same.
    let refused = client.send_call("typed", json!({}));
    let began = Instant::now();
    assert_eq!(client.answer(refused)["result"]["isError"], json!(true));
    assert!(began.elapsed() < Duration::from_secs(10));
    for id in ids.into_iter().chain([hang]) {
        let answer = client.answer(id);
        assert_eq!(envelope(&answer["result"])["kind"], "timeout", "{answer}");
    }
}

#[test]
fn a_client_that_is_gone_takes_everything_with_it() {
    // With an answer under way that never comes, and with many that nobody reads.
    for (tool, times) in [("mute", 1), ("big", 5), ("slow", 20)] {
        let world = World::empty();
        let server = format!("echo $$ > pid; exec {} --log peer.log", peer());
        let mut child = world.command(&["mcp", "--", "sh", "-c", &server]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        for id in 0..times {
            let arguments = json!({ "ms": 300, "steps": 3, "megabytes": 1 });
            let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
            writeln!(stdin, "{call}").unwrap();
        }
        wait_for("the call does not arrive", || !seen_calls(&world, tool).is_empty());
        drop((stdin, child.stdout.take(), child.stderr.take()));
        let gone = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if gone.elapsed() > Duration::from_secs(9) {
                child.kill().unwrap();
                panic!("{tool}: it stays, and nobody is there");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let pid = fs::read_to_string(world.path("pid")).unwrap();
        wait_for("the server is still there", || !world_has(pid.trim()));
    }
}

fn world_has(pid: &str) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

#[test]
fn what_is_under_way_when_the_client_closes_its_end_is_still_answered() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let slow = client.send_call("slow", json!({ "ms": 500, "steps": 1 }));
    let flaky = client.send_call("flaky_read", json!({ "times": 1 }));
    let list = client.send("tools/list", json!({}));
    let big = client.send_call("big", json!({ "megabytes": 8 }));
    client.close();
    for id in [slow, flaky, list, big] {
        assert!(client.answer(id).get("result").is_some());
    }
    assert_eq!(client.end(), (0, vec![]));
    assert!(
        seen(&world).iter().any(|line| line.get("end").is_some()),
        "the server had time to end by itself"
    );
}
