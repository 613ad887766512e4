//! A large message is held once: what the proxy needs at the most is one and a half times the message, and a little.

use std::fs;

use serde_json::{Value, json};

use super::client::Client;
use crate::world::World;

/// The size of a message, in bytes.
const SIZE: usize = 24_000_000;
/// What the proxy needs without one, in kB: a build without optimization, with the record open.
const BASE: usize = 46_000;

/// The most that the proxy ever needed, in kB.
fn peak(client: &Client) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", client.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[track_caller]
fn holds_once(client: &Client, what: &str) {
    let (peak, most) = (peak(client), BASE + SIZE / 1000 * 3 / 2);
    assert!(peak <= most, "{what}: {peak} kB at the most, where {most} are enough");
}

/// A server that answers each call with these bytes around very many of those.
fn server(begins: &str, fills: &str, ends: &str) -> String {
    format!(
        r#"while IFS= read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%,*}}
  case "$line" in
    *'"method":"notifications'*) ;;
    *'"large":'*|*'"tools/call"'*)
      printf '{{"jsonrpc":"2.0","id":%s,{begins}' "$id"; yes '{fills}' | tr -d '\n' | head -c {SIZE}; printf '{ends}}}\n';;
    *) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"capabilities":{{}},"tools":[]}}}}\n' "$id";;
  esac
done"#
    )
}

#[test]
fn a_large_answer_is_held_once() {
    let check = |method: &str, params: Value, begins: &str, fills: &str, ends: &str| {
        let world = World::empty();
        let server = server(begins, fills, ends);
        let mut client = Client::start(&world, &["--retries", "0"], &["sh", "-c", &server]);
        client.introduce("tester");
        client.send(method, params);
        let line = loop {
            let line = client.line();
            if line.len() > 1000 || line.contains("isError") {
                break line;
            }
        };
        holds_once(&client, begins);
        line
    };
    let call = || json!({ "name": "any", "arguments": {} });
    let text = r#""result":{"content":[{"type":"text","text":""#;
    assert!(check("tools/call", call(), text, "tide ", r#""}]}"#).len() > SIZE);
    assert!(check("vendor/new", json!({ "large": 1 }), text, "tide ", r#""}]}"#).len() > SIZE);
    // Each of these has 1000 bytes.
    let entry = format!(r#""{}","#, "x".repeat(997));
    let list = r#""result":{"content":[],"structuredContent":{"a":["#;
    assert!(check("tools/call", call(), list, &entry, "1]}}").len() > SIZE);
    // A failure comes with a word of ours.
    let told = check("tools/call", call(), text, r"tide\n", r#""}],"isError":true}"#);
    assert!(told.len() > SIZE && told.contains(r#"\"ok\":false"#));
    let blocks = r#""result":{"isError":true,"content":["#;
    let block = format!(r#"{{"text":"{}"}},"#, "x".repeat(988));
    assert!(check("tools/call", call(), blocks, &block, "0]}").len() > SIZE);
    // And of an error of the protocol, little is told.
    let error = r#""error":{"code":-32603,"data":[0],"message":""#;
    assert!(check("tools/call", call(), error, "tide ", r#""}"#).len() < 10_000);
    let error = r#""error":{"code":-32603,"message":"x","data":["#;
    assert!(check("tools/call", call(), error, &entry, "1]}").len() < 10_000);
}

#[test]
fn large_arguments_are_held_once() {
    let check = |filled: String| {
        let world = World::empty();
        let server =
            server(r#""result":{"content":[],"fills":""#, "x", r#""}"#).replace(&SIZE.to_string(), "10");
        let mut client = Client::start(&world, &[], &["sh", "-c", &server]);
        client.introduce("tester");
        let (begins, ends) = (
            r#"{"jsonrpc":"2.0","id":"large","method":"tools/call","params":{"name":"structured","arguments":{"#,
            "}}}\n",
        );
        client.write([begins.as_bytes(), filled.as_bytes(), ends.as_bytes()].concat());
        assert_eq!(client.hear()["id"], "large");
        holds_once(&client, &filled[..20]);
        assert_eq!(client.end().0, 0);
        let log = world.run(&["log", "--json"], "");
        assert!(log.stdout().len() < 1_000_000, "{}", log.stdout().len());
    };
    let many = |part: &str| part.repeat(SIZE / part.len());
    check(format!(r#""text":"{}""#, many("tide ")));
    check(format!(r#""text":"{}""#, many(r"\u00e4\n")));
    let entry = "x".repeat(900);
    check(format!(r#""list":[{}0]"#, many(&format!(r#""{entry}","#))));
    check(format!(r#""list":[{}0]"#, many(&format!(r#"{{"a":[{{"b":"{entry}"}}]}},"#))));
    let field = |number| format!(r#""field{number:07}":"{entry}","#);
    check(format!(r#"{}"z":0"#, (0..SIZE / 1000).map(field).collect::<String>()));
}

#[test]
fn what_is_left_out_of_large_arguments_tells_calls_apart_and_fits_its_schema() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let long = "tide ".repeat(500_000);
    // Fields that have to be there are not missed because of others that are large.
    let says = client.works("typed", json!({ "a": long, "name": "x", "count": 1, "z": long }));
    assert!(says.len() > 2 * long.len());
    // The same once more is the same; another one is not.
    for mark in ["a", "b", "c", "d", "e", "f"] {
        let told = client
            .fails("fail", json!({ "text": "gauge is out of order", "extra": format!("{long}{mark}") }));
        assert_ne!(told["status"], "denied", "{told}");
    }
}
