//! What is not understood, and what needs no help, passes as it is: both ways, byte by byte, in its order.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, at, seen, text, wait_for};
use crate::world::World;

/// A server that writes down each line and answers it with the bytes that lie ready for it.
const SCRIPTED: &str = r#"n=0
while IFS= read -r line; do
  n=$((n+1))
  printf '%s\n' "$line" >> seen
  [ -f "say$n" ] && cat "say$n"
done"#;

/// Says lines to a scripted server, each with what it answers, and fails unless all of it arrives as it was said.
#[track_caller]
fn check(exchanges: &[(&str, &[&str])]) {
    let mut world = World::empty();
    for (number, (_, answers)) in exchanges.iter().enumerate() {
        let said: String = answers.iter().map(|line| format!("{line}\n")).collect();
        world = world.with(&format!("say{}", number + 1), said);
    }
    let mut client = Client::start(&world, &[], &["sh", "-c", SCRIPTED]);
    for (line, answers) in exchanges {
        client.say(line);
        for answer in *answers {
            assert_eq!(client.line(), *answer);
        }
    }
    let said: String = exchanges.iter().map(|(line, _)| format!("{line}\n")).collect();
    let seen = || fs::read_to_string(world.path("seen")).unwrap_or_default();
    wait_for("the server does not hear all of it", || seen().len() >= said.len());
    assert_eq!(seen(), said);
    assert_eq!(client.end(), (0, vec![]));
}

#[test]
fn successes_pass_byte_by_byte_however_they_are_written() {
    check(&[
        (
            r#"{"id":1,"jsonrpc":"2.0","params":{"arguments":{"b":1.50,"a":1e2,"big":123456789012345678901234567890},"name":"any"},"method":"tools/call","vendor":1}"#,
            &[
                r#"{"result":{"content":[{"type":"text","text":"caf\u00e9 \ud83d\ude00 \/"}],"n":1.0,"n":1.00},"id":1,"jsonrpc":"2.0","x":123456789012345678901234567890}"#,
            ],
        ),
        (
            r#"  { "jsonrpc" : "2.0" , "id" : "a b\u0063" , "method" : "tools/call" , "params" : { "name" : "any" } }  "#,
            &[
                r#" { "jsonrpc":"2.0", "id":"a b\u0063", "result" : { "content" : [ ] , "structuredContent":{"n":1.50,"n":2} } } "#,
            ],
        ),
        (
            r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"any","arguments":null}}"#,
            &[
                r#"{"jsonrpc":"2.0","id":9007199254740993,"result":{"isError":false,"content":[],"_meta":{"a":[1,2,{}]}}}"#,
            ],
        ),
        (
            r#"{"jsonrpc":"2.0","id":-7,"method":"tools/call","params":{"name":"any","arguments":{},"task":{"ttl":1}}}"#,
            &[r#"{"jsonrpc":"2.0","id":-7,"result":{"task":{"taskId":"t","status":"working"}}}"#],
        ),
        (
            r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"any"}}"#,
            &[
                r#"{"jsonrpc":"2.0","id":0,"result":{"resultType":"input_required","isError":true,"requestState":"x"}}"#,
            ],
        ),
    ]);
}

#[test]
fn whatever_is_not_understood_passes_both_ways_in_its_order() {
    check(&[
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"vendor/new","params":[1,2.50]}"#,
            &[
                r#"{"jsonrpc":"2.0","method":"vendor/told","params":{"b":1,"a":2}}"#,
                r#"{"jsonrpc":"2.0","id":1,"result":7}"#,
            ],
        ),
        (r#"{"jsonrpc":"2.0","method":"notifications/vendor","params":{"z":1,"z":2}}"#, &[]),
        // A call that is none: the server says what it thinks of it.
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"nam":"echo"}}"#,
            &[r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no name","data":{"x":1.0}}}"#],
        ),
        // JSON that is no message that anybody knows, and what is no JSON at all.
        (r#"{"hello":1}"#, &[r#"{"jsonrpc":"2.0","vendor":[1.50]}"#]),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"#,
            &[r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#],
        ),
        (
            r#"{"jsonrpc":"2.0","id":"s","method":"ping"}"#,
            &[
                r#"{"jsonrpc":"2.0","id":11,"method":"sampling/createMessage","params":{"maxTokens":1}}"#,
                r#"{"jsonrpc":"2.0","id":"11","method":"roots/list"}"#,
                r#"{"jsonrpc":"2.0","id":"s","result":{}}"#,
            ],
        ),
        (r#"{"jsonrpc":"2.0","id":"11","result":{"roots":[ ]}}"#, &[]),
        (r#"{"jsonrpc":"2.0","id":11,"error":{"code":-1,"message":"rejected by the user"}}"#, &[]),
        // What the protocol itself has to say to the client is for the client.
        (
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"any"}}"#,
            &[
                r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32042,"message":"url","data":{"elicitations":[]}}}"#,
            ],
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"any"}}"#,
            &[r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"no tools here"}}"#],
        ),
    ]);
}

#[test]
fn batches_pass_whole_and_what_is_asked_in_them_may_be_answered() {
    check(&[
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}, {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}]"#,
            &[
                r#"[{"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":true}},{"jsonrpc":"2.0","id":1,"result":{}}]"#,
            ],
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/vendor"}"#,
            &[
                r#"[{"jsonrpc":"2.0","id":"q1","method":"roots/list"},{"jsonrpc":"2.0","id":"q2","method":"roots/list"}]"#,
            ],
        ),
        (r#"{"jsonrpc":"2.0","id":"q1","result":{"roots":[]}}"#, &[]),
        (r#"[{"jsonrpc":"2.0","id":"q2","result":{"roots":[]}}]"#, &[]),
        // One by one is an answer, too.
        (
            r#"[{"jsonrpc":"2.0","id":3,"method":"ping"},{"jsonrpc":"2.0","id":4,"method":"ping"}]"#,
            &[r#"{"jsonrpc":"2.0","id":3,"result":{}}"#, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#],
        ),
        ("[]", &["[]"]),
    ]);
}

#[test]
fn a_name_may_come_back_in_other_signs_and_is_the_same() {
    let exchanges: [(&str, &str); 4] = [
        (r#""\u0061\/b""#, r#""a/b""#),
        ("1.0", "1"),
        ("9007199254740993", "9007199254740992"),
        ("123456789012345678901234567890", "1.2345678901234568e+29"),
    ];
    let mut world = World::empty();
    for (number, (_, id)) in exchanges.iter().enumerate() {
        world = world.with(
            &format!("say{}", number + 1),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[]}}}}\n"),
        );
    }
    let mut client = Client::start(&world, &[], &["sh", "-c", SCRIPTED]);
    for (number, (asked, _)) in exchanges.iter().enumerate() {
        let method = ["tools/call", "ping"][number % 2];
        client
            .say(&format!(r#"{{"jsonrpc":"2.0","id":{asked},"method":"{method}","params":{{"name":"x"}}}}"#));
        let heard = client.hear();
        assert_eq!(heard["result"], json!({ "content": [] }), "{asked}: {heard}");
    }
}

#[test]
fn what_a_client_takes_back_is_taken_back_in_its_own_words() {
    check(&[
        (r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, &[r#"{"jsonrpc":"2.0","id":0,"result":{}}"#]),
        (r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x"}}"#, &[]),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"no time","requestId":1,"_meta":{}}}"#,
            &[],
        ),
        // Of what nobody knows the server may know more.
        (r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"unheard-of"}}"#, &[]),
        (r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#, &[]),
    ]);
}

#[test]
fn both_sides_ask_each_other_through_it() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    for (tool, method, answer) in [
        (
            "sample",
            "sampling/createMessage",
            json!({ "role": "assistant", "content": { "type": "text", "text": "low" } }),
        ),
        ("elicit", "elicitation/create", json!({ "action": "accept", "content": { "port": "Kiel" } })),
    ] {
        let id = client.send_call(tool, json!({ "text": "so?" }));
        let asked = client.hear();
        assert_eq!(asked["method"], method);
        client.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }).to_string());
        let answered = client.answer(id);
        assert_eq!(text(&answered["result"], 0), format!("the client says {answer}"));
    }
    // An answer that nobody asked for goes nowhere.
    client.say(r#"{"jsonrpc":"2.0","id":"nobody","result":{}}"#);
    client.works("echo", json!({ "text": "a" }));
    assert!(!seen(&world).iter().any(|line| line["answer"]["id"] == "nobody"));
}

#[test]
fn progress_and_log_messages_come_before_the_answer_they_belong_to() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    let slow = json!({ "name": "slow", "arguments": { "ms": 40, "steps": 4 }, "_meta": { "progressToken": "t\u{e9}" } });
    let id = client.send("tools/call", slow);
    client.answer(id);
    let told: Vec<Value> = client.aside.drain(..).map(|frame| frame["params"].clone()).collect();
    let progress: Vec<&Value> = told.iter().map(|params| &params["progress"]).collect();
    assert_eq!(progress, [1, 2, 3, 4], "{told:?}");
    assert!(told.iter().all(|params| params["progressToken"] == "té"));
    client.ask("logging/setLevel", json!({ "level": "debug" }));
    let id = client.send_call("logging", json!({}));
    client.answer(id);
    let levels: Vec<Value> = client.aside.drain(..).map(|frame| frame["params"]["level"].clone()).collect();
    assert_eq!(levels, ["debug", "warning"]);
}

#[test]
fn everything_but_calls_is_the_same_with_and_without_it_in_both_eras() {
    let requests = |stateless: bool| {
        let meta = match stateless {
            true => json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {} }),
            false => json!({}),
        };
        let mut all = vec![match stateless {
            true => ("server/discover", json!({})),
            false => (
                "initialize",
                json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} }),
            ),
        }];
        all.extend([
            ("tools/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("resources/read", json!({ "uri": "tide://today" })),
            ("resources/read", json!({ "uri": "tide://none" })),
            ("prompts/list", json!({})),
            ("prompts/get", json!({ "name": "forecast", "arguments": { "day": "Monday" } })),
            ("completion/complete", json!({ "ref": {} })),
            ("vendor/anything", json!({ "x": [1, 2] })),
            ("vendor/unknown", json!({})),
            ("tools/call", json!({ "name": "echo", "arguments": { "text": "ebb" } })),
            ("tools/call", json!({ "name": "structured" })),
            ("tools/call", json!({ "name": "task" })),
            ("tools/call", json!({ "name": "input_required" })),
            (
                "tools/call",
                json!({ "name": "rpc_error", "arguments": { "code": -32042, "data": { "a": 1 } } }),
            ),
        ]);
        all.into_iter().enumerate().map(move |(id, (method, mut params))| {
            params["_meta"] = meta.clone();
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
        })
    };
    for stateless in [true, false] {
        let world = World::empty();
        let flags: &[&str] = if stateless { &["--era", "stateless"] } else { &["--era", "handshake"] };
        let mut client = Client::of_peer(&world, &[], flags);
        let through: Vec<String> = requests(stateless)
            .map(|line| {
                client.say(&line);
                client.line()
            })
            .collect();
        let input: String = requests(stateless).map(|line| line + "\n").collect();
        fs::write(world.path("input"), input).unwrap();
        let direct = std::process::Command::new(super::client::peer())
            .args(flags)
            .stdin(fs::File::open(world.path("input")).unwrap())
            .output()
            .unwrap();
        let direct = String::from_utf8(direct.stdout).unwrap();
        assert_eq!(through, direct.lines().collect::<Vec<_>>(), "stateless: {stateless}");
    }
}

#[test]
fn a_last_line_without_an_end_is_heard_from_both_sides() {
    let world = World::empty().with("last", r#"{"jsonrpc":"2.0","id":1,"result":{"last":true}}"#);
    let server = format!("read -r line; cat {}; sleep 0.3", at(&world, "last"));
    let mut client = Client::start(&world, &[], &["sh", "-c", &server]);
    client.write(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_vec());
    client.close();
    assert_eq!(client.hear()["result"], json!({ "last": true }));
    client.hears_nothing_for(Duration::from_millis(100));
}

#[test]
fn a_call_is_taken_back_in_its_turn() {
    let world = World::empty();
    let client = Client::start(&world, &[], &["sh", "-c", SCRIPTED]);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"any"}}"#;
    client.say(call);
    let seen = || fs::read_to_string(world.path("seen")).unwrap_or_default();
    wait_for("the call does not arrive", || !seen().is_empty());
    let said = [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/vendor"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"vendor/new"}"#,
    ];
    client.write(format!("{}\n", said.join("\n")).into_bytes());
    // It is asked for a sign of life, too, since somebody waited in vain.
    let theirs = || -> Vec<String> {
        let all = seen();
        all.lines().skip(1).filter(|line| !line.contains("unstuck")).map(str::to_owned).collect()
    };
    wait_for("the server does not hear all of it", || theirs().len() == 3);
    assert_eq!(theirs(), said);
}

#[test]
fn a_failure_that_is_explained_keeps_all_that_the_server_said_with_it() {
    let answer =
        r#"{"x-trace":7,"jsonrpc":"2.0","id":1,"result":{"isError":true,"content":null,"n":1.50},"z":[ ]}"#;
    let world = World::empty().with("say1", format!("{answer}\n"));
    let mut client = Client::start(&world, &[], &["sh", "-c", SCRIPTED]);
    client.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"any"}}"#);
    let line = client.line();
    assert!(line.starts_with(r#"{"x-trace":7,"jsonrpc":"2.0","id":1,"result":{"#), "{line}");
    assert!(line.ends_with(r#""n":1.50},"z":[ ]}"#), "{line}");
    assert_eq!(line.matches(r#""content":"#).count(), 1, "{line}");
}
