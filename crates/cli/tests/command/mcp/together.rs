//! Several proxies on one record.

use serde_json::json;

use super::client::{Client, at, peer, text};
use crate::world::World;

const CALLS: usize = 200;

#[test]
fn two_servers_at_once_have_all_their_calls_under_their_own_names() {
    let world = World::empty();
    let peer = peer();
    let names = ["harbour", "weather"];
    let mut clients = names.map(|name| {
        let log = at(&world, &format!("{name}.log"));
        let mut client = Client::start(&world, &["--name", name], &[&peer, "--log", &log]);
        client.introduce("tester");
        client.ask("tools/list", json!({}));
        client
    });
    let mut ids = Vec::new();
    for number in 0..CALLS {
        for (client, name) in clients.iter_mut().zip(names) {
            let words = format!("{name} {number}");
            ids.push((name, client.send_call("echo", json!({ "text": words })), words));
        }
    }
    for (name, id, words) in ids {
        let client = &mut clients[usize::from(name == names[1])];
        assert_eq!(text(&client.answer(id)["result"], 0), words);
    }
    for client in clients {
        assert_eq!(client.end(), (0, vec![]));
    }
    let stats = world.run(&["stats", "--by", "server", "--json"], "").json_lines();
    let mut counted: Vec<(&str, u64, u64)> = stats
        .iter()
        .map(|line| {
            let count = |key: &str| line[key].as_u64().unwrap();
            (line["key"].as_str().unwrap(), count("calls"), count("completed"))
        })
        .collect();
    counted.sort_unstable();
    let all = CALLS as u64;
    assert_eq!(counted, [(names[0], all, all), (names[1], all, all)]);
    // Each session is one server's alone.
    let mut calls = world.run(&["export", "--jsonl", "--only", "calls"], "").json_lines();
    calls.retain(|line| line.get("tool").is_some());
    assert_eq!(calls.len(), 2 * CALLS);
    for call in calls {
        let (session, tool) = (call["session"].as_str().unwrap(), call["tool"].as_str().unwrap());
        let server = tool.split("__").nth(1).unwrap();
        assert!(session.starts_with(&format!("mcp-{server}-")), "{call}");
    }
}
