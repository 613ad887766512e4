//! OpenAI's responses, as Codex asks for them.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::http::{Request, Response};
use super::{Arguments, Reply, Script, take_turn};

/// Answers one request.
pub fn answer(request: &Request, script: &Mutex<Script>) -> Response {
    let body = &request.body;
    if !request.path.ends_with("/responses") {
        return Response::not_found();
    }
    let offers_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let reply = take_turn(script, body, offers_tools);
    if let Some(refusal) = reply.refusal {
        return super::openai_refusal(refusal);
    }
    let (id, items) = (format!("resp_{}", reply.id), items(&reply));
    let whole = json!({"id": id, "object": "response", "status": "completed", "model": body["model"],
        "output": items, "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15}});
    if body["stream"] != true {
        return Response::json(&whole);
    }
    let created = json!({"id": id, "status": "in_progress"});
    let mut events = vec![json!({"type": "response.created", "response": created})];
    for (index, item) in items.iter().enumerate() {
        for kind in ["response.output_item.added", "response.output_item.done"] {
            events.push(json!({"type": kind, "output_index": index, "item": item}));
        }
    }
    events.push(json!({"type": "response.completed", "response": whole}));
    Response::events(events.iter().map(|event| (event["type"].as_str(), event.to_string())))
}

fn items(reply: &Reply) -> Vec<Value> {
    let mut items = Vec::new();
    if !reply.text.is_empty() {
        items.push(
            json!({"type": "message", "role": "assistant", "id": format!("msg_{}", reply.id), "status": "completed",
            "content": [{"type": "output_text", "text": reply.text, "annotations": []}]}),
        );
    }
    items.extend(reply.calls.iter().map(|(id, call)| match &call.arguments {
        Arguments::Named(values) => {
            let mut item = json!({"type": "function_call", "id": format!("fc_{id}"), "status": "completed",
                "call_id": id, "name": call.name, "arguments": values.to_string()});
            // Tools of servers are called by the server's name and their own.
            if let Some((server, tool)) =
                call.name.strip_prefix("mcp__").and_then(|name| name.split_once("__"))
            {
                item["namespace"] = json!(format!("mcp__{server}"));
                item["name"] = json!(tool);
            }
            item
        }
        Arguments::Free(text) => {
            json!({"type": "custom_tool_call", "id": format!("ctc_{id}"), "status": "completed",
            "call_id": id, "name": call.name, "input": text})
        }
    }));
    items
}
