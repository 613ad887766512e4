//! OpenAI's chat completions, as Qwen Code, opencode and Copilot CLI ask for them.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::http::{Request, Response};
use super::{Arguments, Reply, Script, take_turn};

/// Answers one request.
pub fn answer(request: &Request, script: &Mutex<Script>) -> Response {
    let body = &request.body;
    if !request.path.ends_with("/chat/completions") {
        return Response::not_found();
    }
    let offers_tools = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let reply = take_turn(script, body, offers_tools);
    if let Some(refusal) = reply.refusal {
        return super::openai_refusal(refusal);
    }
    if body["stream"] == true { stream(body, &reply) } else { whole(body, &reply) }
}

fn finish(reply: &Reply) -> &'static str {
    if reply.calls.is_empty() { "stop" } else { "tool_calls" }
}

fn usage() -> Value {
    json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
}

fn tool_call(index: usize, id: &str, call: &super::ToolCall) -> Value {
    let arguments = match &call.arguments {
        Arguments::Named(values) => values.to_string(),
        Arguments::Free(text) => json!({ "input": text }).to_string(),
    };
    json!({"index": index, "id": id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn tool_calls(reply: &Reply) -> Vec<Value> {
    reply.calls.iter().enumerate().map(|(index, (id, call))| tool_call(index, id, call)).collect()
}

fn whole(body: &Value, reply: &Reply) -> Response {
    let mut message = json!({"role": "assistant", "content": reply.text});
    if !reply.calls.is_empty() {
        message["tool_calls"] = tool_calls(reply).into();
    }
    Response::json(
        &json!({"id": format!("chatcmpl-{}", reply.id), "object": "chat.completion", "created": 1, "model": body["model"],
        "usage": usage(), "choices": [{"index": 0, "message": message, "finish_reason": finish(reply)}]}),
    )
}

fn stream(body: &Value, reply: &Reply) -> Response {
    let chunk = |choices: Value, usage: Value| {
        json!({"id": format!("chatcmpl-{}", reply.id), "object": "chat.completion.chunk", "created": 1, "model": body["model"],
            "choices": choices, "usage": usage})
    };
    let choice = |delta: Value, finish: Value| {
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": finish}]), Value::Null)
    };
    let mut chunks = vec![choice(json!({"role": "assistant", "content": reply.text}), Value::Null)];
    chunks
        .extend(tool_calls(reply).into_iter().map(|call| choice(json!({"tool_calls": [call]}), Value::Null)));
    chunks.push(choice(json!({}), finish(reply).into()));
    chunks.push(chunk(json!([]), usage()));
    let data = chunks.iter().map(Value::to_string).chain(["[DONE]".to_owned()]);
    Response::events(data.map(|data| (None, data)))
}
