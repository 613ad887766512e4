//! Anthropic's messages, as Claude Code asks for them.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::http::{Request, Response};
use super::{Arguments, Refusal, Reply, Script, take_turn};

/// Answers one request.
pub fn answer(request: &Request, script: &Mutex<Script>) -> Response {
    let body = &request.body;
    match request.path.as_str() {
        "/v1/messages" => {
            let offers_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
            let reply = take_turn(script, body, offers_tools);
            if let Some(refusal) = reply.refusal {
                return refused(refusal);
            }
            if body["stream"] == true { stream(body, &reply) } else { whole(body, &reply) }
        }
        "/v1/messages/count_tokens" => Response::json(&json!({"input_tokens": 10})),
        _ => Response::not_found(),
    }
}

fn refused(refusal: Refusal) -> Response {
    let error =
        |kind: &str, message: &str| json!({"type": "error", "error": {"type": kind, "message": message}});
    match refusal {
        Refusal::Overloaded => Response::refused("529 Overloaded", &error("overloaded_error", "Overloaded")),
        Refusal::Limited => Response::limited(&error(
            "rate_limit_error",
            "This request would exceed your organization's rate limit of 30,000 input tokens per minute.",
        )),
        Refusal::UsedUp => {
            let message = format!("Claude AI usage limit reached|{}", super::in_an_hour());
            Response::refused(super::LIMITED, &error("rate_limit_error", &message))
        }
        Refusal::Silent => Response::silence(),
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
