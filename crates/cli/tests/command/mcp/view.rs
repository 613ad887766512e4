//! The proxy sees only the calls of its server: what an agent does with its other tools may have put right what failed, and answers
//! may be the same for good reason.

use std::fs;

use serde_json::{Value, json};

use super::client::{Client, seen_calls};
use crate::world::World;

/// A failure that stays until somebody makes the file.
fn missing(path: &str) -> Value {
    json!({ "text": format!("ENOENT: no such file or directory, open '{path}'"), "path": path })
}

#[test]
fn what_failed_once_may_be_tried_again_and_what_failed_twice_not_at_once() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let path = world.path("tide.db");
    let call = missing(path.to_str().unwrap());
    assert_eq!(client.fails("fail", call.clone())["status"], Value::Null);
    assert_eq!(client.fails("fail", call.clone())["status"], Value::Null, "somebody may have made it");
    let refused = client.fails("fail", call);
    assert_eq!(refused["status"], "denied", "{refused}");
    assert!(refused["error"].as_str().unwrap().contains("/tide.db` still does not exist."), "{refused}");
    assert_eq!(seen_calls(&world, "fail").len(), 2);
}

#[test]
fn a_refusal_lifts_when_a_file_changed_that_the_call_names() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let call = missing(world.path("tide.db").to_str().unwrap());
    for _ in 0..3 {
        client.fails("fail", call.clone());
    }
    assert_eq!(seen_calls(&world, "fail").len(), 2);
    std::thread::sleep(std::time::Duration::from_millis(60));
    fs::write(world.path("tide.db"), "made by another tool").unwrap();
    assert_eq!(client.fails("fail", call)["status"], Value::Null);
    assert_eq!(seen_calls(&world, "fail").len(), 3);
}

#[test]
fn other_arguments_are_another_call_whatever_stopped_the_last_ones() {
    let world = World::empty();
    let mut client = Client::ready(&world, &["--retries", "0"], &[]);
    for key in ["a", "b", "c", "d", "e"] {
        let told = client.fails("flaky", json!({ "key": key, "times": 1 }));
        assert_eq!(told["status"], Value::Null, "{key}: {told}");
    }
    assert_eq!(seen_calls(&world, "flaky").len(), 5);
}

#[test]
fn the_same_answer_again_is_neither_refused_nor_spoken_of() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    client.fails("fail", json!({}));
    for _ in 0..12 {
        let result = client.call("structured", json!({}));
        assert_eq!(result["content"].as_array().unwrap().len(), 1, "{result}");
        assert_ne!(result["isError"], json!(true), "{result}");
    }
    assert_eq!(seen_calls(&world, "structured").len(), 12);
}
