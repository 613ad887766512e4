//! Anthropic's messages, as Claude Code asks for them.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::http::{Request, Response};
use super::{Arguments, Reply, Script, take_turn};

/// Answers one request.
pub fn answer(request: &Request, script: &Mutex<Script>) -> Response {
    let body = &request.body;
    match request.path.as_str() {
        "/v1/messages" => {
            let offers_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
            let reply = take_turn(script, body, offers_tools);
            if reply.is_refusal {
                let error = json!({"type": "overloaded_error", "message": "Overloaded"});
                return Response::overloaded("529 Overloaded", &json!({"type": "error", "error": error}));
            }
            if body["stream"] == true { stream(body, &reply) } else { whole(body, &reply) }
        }
        "/v1/messages/count_tokens" => Response::json(&json!({"input_tokens": 10})),
        _ => Response::not_found(),
    }
}

fn stop_reason(reply: &Reply) -> &'static str {
    if reply.calls.is_empty() { "end_turn" } else { "tool_use" }
}

fn message(body: &Value, reply: &Reply, content: &[Value], stop_reason: Value) -> Value {
    json!({"id": format!("msg_{}", reply.id), "type": "message", "role": "assistant", "model": body["model"], "content": content,
        "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5}})
}

fn input(arguments: &Arguments) -> Value {
    match arguments {
        Arguments::Named(values) => values.clone(),
        Arguments::Free(text) => json!({ "input": text }),
    }
}

fn whole(body: &Value, reply: &Reply) -> Response {
    let mut content = Vec::new();
    if !reply.text.is_empty() {
        content.push(json!({"type": "text", "text": reply.text}));
    }
    content.extend(reply.calls.iter().map(|(id, call)| {
        json!({"type": "tool_use", "id": id, "name": call.name, "input": input(&call.arguments)})
    }));
    Response::json(&message(body, reply, &content, stop_reason(reply).into()))
}

fn stream(body: &Value, reply: &Reply) -> Response {
    let mut events =
        vec![json!({"type": "message_start", "message": message(body, reply, &[], Value::Null)})];
    let block = |events: &mut Vec<Value>, begin: Value, delta: Value| {
        let index = events.iter().filter(|event| event["type"] == "content_block_start").count();
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begin}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    };
    if !reply.text.is_empty() {
        let delta = json!({"type": "text_delta", "text": reply.text});
        block(&mut events, json!({"type": "text", "text": ""}), delta);
    }
    for (id, call) in &reply.calls {
        let begin = json!({"type": "tool_use", "id": id, "name": call.name, "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": input(&call.arguments).to_string()});
        block(&mut events, begin, delta);
    }
    events.push(json!({"type": "message_delta", "usage": {"output_tokens": 20},
        "delta": {"stop_reason": stop_reason(reply), "stop_sequence": null}}));
    events.push(json!({"type": "message_stop"}));
    Response::events(events.iter().map(|event| (event["type"].as_str(), event.to_string())))
}
