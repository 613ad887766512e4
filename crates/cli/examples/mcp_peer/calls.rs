//! What each tool does when it is called.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::voice::{self, Voice};
use crate::{INVALID_PARAMS, Peer, catalog, conformance, leave, lock};

/// What fails for a while says this, unless it is given other words.
const OVERLOADED: &str = "503 Service Unavailable: the upstream is overloaded, try again later";

/// One `tools/call`.
pub fn take(peer: &Arc<Peer>, id: Value, params: &Value) -> io::Result<()> {
    let (name, arguments) = (params["name"].as_str().unwrap_or_default(), &params["arguments"]);
    peer.state.note(&json!({"id": id, "tool": name, "arguments": arguments, "meta": params["_meta"],
        "start": peer.state.start()}))?;
    if peer.flags.conformance {
        return conformance::call(peer, id, name, params);
    }
    let text = arguments["text"].as_str();
    match name {
        "echo" => peer.text(&id, text.unwrap_or_default()),
        "meta" => peer.text(&id, &params.to_string()),
        "untyped" => peer.text(&id, &arguments.to_string()),
        "typed" => peer.text(&id, &format!("typed {arguments}")),
        "fail" => peer.failure(&id, text.unwrap_or("the gauge is out of order")),
        "fail_struct" => failed_with(peer, &id, text, json!({"code": 7, "where": "gauge 4"})),
        "fail_declared" => failed_with(peer, &id, text, json!({"level": 0.0, "unit": "none"})),
        "structured" => peer.result(
            &id,
            json!({"content": [{"type": "text", "text": "{\"level\":1.5,\"unit\":\"m\"}"}],
            "structuredContent": {"level": 1.50, "unit": "m"}, "vendorField": true}),
        ),
        "rpc_error" => {
            let code = arguments["code"].as_i64().unwrap_or(-32603);
            let mut error = json!({"code": code, "message": arguments["message"].as_str().unwrap_or("internal error")});
            if let Some(data) = arguments.get("data") {
                error["data"] = data.clone();
            }
            peer.voice.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
        }
        "flaky" | "flaky_read" | "flaky_idempotent" | "flaky_destructive" => {
            let count = counted(peer, name, arguments)?;
            match is_over(count, arguments) {
                false => peer.failure(&id, text.unwrap_or(OVERLOADED)),
                true => peer.text(&id, &format!("worked at attempt {count}")),
            }
        }
        "rate_limited" => {
            let count = counted(peer, name, arguments)?;
            let seconds = arguments["seconds"].as_f64().unwrap_or(1.0);
            match is_over(count, arguments) {
                false => peer.failure(&id, &format!("429 Too Many Requests. Retry-After: {seconds}")),
                true => peer.text(&id, &format!("worked at attempt {count}")),
            }
        }
        "slow" => {
            let (peer, arguments, params) = (Arc::clone(peer), arguments.clone(), params.clone());
            thread::spawn(move || slow(&peer, &id, &arguments, &params["_meta"]["progressToken"]));
            Ok(())
        }
        "crash" | "crash_read" => {
            let count = counted(peer, name, arguments)?;
            if arguments["times"].is_null() || !is_over(count, arguments) {
                Voice::remark(text.unwrap_or("fatal: the keel broke"));
                leave(arguments["code"].as_i64().unwrap_or(7) as i32);
            }
            peer.text(&id, &format!("worked at attempt {count}"))
        }
        "hang" => loop {
            thread::sleep(Duration::from_secs(60));
        },
        "mute" => Ok(()),
        "big" => {
            let bytes = arguments["megabytes"].as_f64().unwrap_or(1.0) * 1e6;
            peer.text(&id, &"tide ".repeat((bytes / 5.0) as usize))
        }
        "noise" => noise(peer, &id, arguments["kind"].as_str().unwrap_or_default()),
        "garbled" => garbled(peer, &id, arguments["kind"].as_str().unwrap_or_default()),
        "dup" => {
            peer.text(&id, "first")?;
            peer.text(&id, "second")
        }
        "stray" => {
            for strange in [json!(987_654), json!("nobody"), json!(null)] {
                peer.text(&strange, "an answer to nothing")?;
            }
            peer.text(&id, text.unwrap_or("the answer"))
        }
        "codex" | "gemini" | "coder" => agent(peer, &id, name, arguments),
        "sample" => ask(
            peer,
            id,
            "sampling/createMessage",
            json!({"maxTokens": 10,
            "messages": [{"role": "user", "content": {"type": "text", "text": text.unwrap_or("How is the tide?")}}]}),
        ),
        "elicit" => ask(
            peer,
            id,
            "elicitation/create",
            json!({"message": text.unwrap_or("Which port?"),
            "requestedSchema": {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]}}),
        ),
        "input_required" => match params.get("inputResponses") {
            Some(given) => peer.result(
                &id,
                json!({"resultType": "complete", "content": [{"type": "text", "text": format!("given {given}, {}",
                    params["requestState"])}]}),
            ),
            None => peer.result(
                &id,
                json!({"resultType": "input_required", "isError": true, "requestState": "opaque:7",
                "inputRequests": {"port": {"method": "elicitation/create", "params": {"message": "Which port?",
                    "requestedSchema": {"type": "object", "properties": {"port": {"type": "string"}}}}}}}),
            ),
        },
        "task" => peer.result(
            &id,
            json!({"resultType": "task", "taskId": "t-1", "status": "failed", "ttlMs": 60_000, "pollIntervalMs": 500}),
        ),
        "grow" => {
            let tool = catalog::grown(peer.state.count("grown")?);
            let named = tool["name"].to_string();
            lock(&peer.grown).push(tool);
            peer.voice.notify("notifications/tools/list_changed", &json!({}))?;
            peer.text(&id, &format!("there is {named} now"))
        }
        "logging" => {
            for level in ["debug", "warning"] {
                let data = text.unwrap_or("the gauge was read");
                let logs = *lock(&peer.logs);
                if logs || level == "warning" {
                    let message = json!({"level": level, "logger": "gauge", "data": data});
                    peer.voice.notify("notifications/message", &message)?;
                }
            }
            peer.text(&id, "logged")
        }
        "remark" => {
            for _ in 0..arguments["times"].as_u64().unwrap_or(1) {
                Voice::remark(text.unwrap_or("gauge 4 was read"));
            }
            peer.text(&id, "remarked")
        }
        "farewell" => farewell(peer, id, arguments),
        "flood" => flood(peer, &id, arguments),
        grown if lock(&peer.grown).iter().any(|tool| tool["name"] == *grown) => peer.text(&id, "grown"),
        unknown => peer.error(&id, INVALID_PARAMS, &format!("Unknown tool: {unknown}")),
    }
}

fn failed_with(peer: &Peer, id: &Value, text: Option<&str>, structure: Value) -> io::Result<()> {
    let text = text.unwrap_or("the gauge is out of order");
    peer.result(
        id,
        json!({"content": [{"type": "text", "text": text}], "structuredContent": structure, "isError": true}),
    )
}

/// Answers nothing until so many calls have come; then all of them at once, and ends.
fn farewell(peer: &Peer, id: Value, arguments: &Value) -> io::Result<()> {
    let mut held = lock(&peer.farewells);
    held.push(id);
    if (held.len() as u64) < arguments["of"].as_u64().unwrap_or(1) {
        return Ok(());
    }
    let words = "tide ".repeat(arguments["bytes"].as_u64().unwrap_or(100) as usize / 5);
    for id in held.drain(..) {
        peer.text(&id, &format!("{id} {words}"))?;
    }
    leave(arguments["code"].as_i64().unwrap_or(0) as i32)
}

/// Much for people on standard error, and many lines on standard output that are no frames.
fn flood(peer: &Peer, id: &Value, arguments: &Value) -> io::Result<()> {
    let line = "gauge 4 was read and nothing came of it, as so often ".repeat(10);
    for _ in 0..arguments["megabytes"].as_u64().unwrap_or(1) * 1_000_000 / line.len() as u64 {
        Voice::remark(&line);
    }
    for number in 0..arguments["lines"].as_u64().unwrap_or(0) {
        peer.voice.raw(format!("INFO gauge {number} was read\n").as_bytes())?;
    }
    peer.text(id, "flooded")
}

/// How often this tool was called with this key.
fn counted(peer: &Peer, name: &str, arguments: &Value) -> io::Result<u64> {
    peer.state.count(&format!("{name} {}", arguments["key"].as_str().unwrap_or_default()))
}

/// Has it failed as often as it should?
fn is_over(count: u64, arguments: &Value) -> bool {
    count > arguments["times"].as_u64().unwrap_or(1)
}

fn slow(peer: &Peer, id: &Value, arguments: &Value, token: &Value) {
    let steps = arguments["steps"].as_u64().unwrap_or(4).max(1);
    let step = Duration::from_millis(arguments["ms"].as_u64().unwrap_or(100) / steps);
    for done in 1..=steps {
        thread::sleep(step);
        if peer.is_cancelled(id) {
            // What is cancelled has no answer; and nobody waits for one.
            let _unkept = peer.state.note(&json!({"stopped": id}));
            return;
        }
        if !token.is_null() {
            let progress = json!({"progressToken": token, "progress": done, "total": steps, "message": format!("step {done}")});
            let _unheard = peer.voice.notify("notifications/progress", &progress);
        }
    }
    let _unheard = peer.text(id, &format!("done in {steps} steps"));
}

/// An agent that loses its model in the middle, and goes on where its session is named.
fn agent(peer: &Peer, id: &Value, name: &str, arguments: &Value) -> io::Result<()> {
    let session = format!("{name}-session-0001");
    let given = arguments["SESSION_ID"].as_str().unwrap_or_default();
    if given == session {
        let told = json!({"success": true, "SESSION_ID": session, "agent_messages": "It is low water."});
        return peer.result(
            id,
            json!({"content": [{"type": "text", "text": told.to_string()}], "structuredContent": told}),
        );
    }
    let told = json!({"success": false, "SESSION_ID": session,
        "error": "stream disconnected before completion: 503 Service Unavailable"});
    let mut result =
        json!({"content": [{"type": "text", "text": told.to_string()}], "structuredContent": told});
    if arguments["how"] != "success_false" {
        result["isError"] = json!(true);
    }
    peer.result(id, result)
}

/// Asks the client something; its answer is the call's result.
pub fn ask(peer: &Peer, id: Value, method: &str, params: Value) -> io::Result<()> {
    let own = format!("peer-{}", peer.state.count("asked")?);
    lock(&peer.asked).push((own.clone(), id));
    peer.voice.say(&json!({"jsonrpc": "2.0", "id": own, "method": method, "params": params}))
}

/// An answer among things that are none.
fn noise(peer: &Peer, id: &Value, kind: &str) -> io::Result<()> {
    let said = |text: &str| json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}});
    let answer = voice::bytes(&said(&format!("among {kind}")));
    let half = answer.len() / 2;
    match kind {
        "log" => {
            peer.voice.raw(&[&b"INFO gauge 4 was read\n[2026-01-01] {not json}\n"[..], &answer].concat())
        }
        "binary" => peer.voice.raw(&[&[0_u8, 159, 146, 150, 255, 10][..], &answer].concat()),
        // A frame that is never finished, and a new one on the next line.
        "half" => peer.voice.raw(&[&answer[..half], b"\n", &answer].concat()),
        "two" => {
            let message = json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "info", "data": "two frames in one write"}});
            peer.voice.raw(&[voice::bytes(&message), answer].concat())
        }
        "split" => {
            let pause = || thread::sleep(Duration::from_millis(30));
            peer.voice.in_pieces(&[&answer[..3], &answer[3..half], &answer[half..]], pause)
        }
        "blank" => peer.voice.raw(&[&b"\n\n  \n"[..], &answer].concat()),
        "crlf" => peer.voice.raw(&[&answer[..answer.len() - 1], b"\r\n"].concat()),
        // JSON that is no frame.
        "json" => {
            peer.voice.raw(&[&b"{\"level\":30,\"msg\":\"read\"}\n[1,2]\n\"text\"\n7\n"[..], &answer].concat())
        }
        "endless" => loop {
            peer.voice.raw(&b"tide ".repeat(100_000))?;
        },
        "deep" => peer.voice.raw(&[&b"[".repeat(100_000)[..], b"\n", &answer].concat()),
        unknown => peer.error(id, INVALID_PARAMS, &format!("Unknown noise: {unknown}")),
    }
}

/// An answer that is hard to read, or cannot be read.
fn garbled(peer: &Peer, id: &Value, kind: &str) -> io::Result<()> {
    let said =
        json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "high tide"}]}});
    let answer = said.to_string();
    let line = match kind {
        "torn" => answer[..answer.len() - 9].to_owned().into_bytes(),
        "trailing" => format!("{answer}}}").into_bytes(),
        "nan" => answer.replace("\"high tide\"", "NaN").into_bytes(),
        "latin" => {
            [answer.split_once("high").map_or("", |(before, _)| before).as_bytes(), b"h\xf6chste tide\"}]}}"]
                .concat()
        }
        "mark" => format!("\u{feff}{answer}").into_bytes(),
        "neither" => json!({"jsonrpc": "2.0", "id": id}).to_string().into_bytes(),
        unknown => return peer.error(id, INVALID_PARAMS, &format!("Unknown kind: {unknown}")),
    };
    peer.voice.raw(&[&line[..], b"\n"].concat())
}
