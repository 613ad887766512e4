//! Google's `generateContent`, as Gemini CLI asks for it.

use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::http::{Request, Response};
use super::{Arguments, Reply, Script, take_turn};

/// Answers one request.
pub fn answer(request: &Request, script: &Mutex<Script>) -> Response {
    let body = &request.body;
    let asks = request.path.rsplit(':').next().unwrap_or_default();
    match asks {
        "streamGenerateContent" | "generateContent" => {
            let reply = reply(body, script);
            if reply.is_refusal {
                let error = json!({"code": 503, "message": "The model is overloaded. Please try again later.", "status": "UNAVAILABLE"});
                return Response::overloaded(super::BUSY, &json!({ "error": error }));
            }
            match asks {
                "generateContent" => Response::json(&content(&reply)),
                _ => Response::events([(None, content(&reply).to_string())]),
            }
        }
        "countTokens" => Response::json(&json!({"totalTokens": 10})),
        _ => Response::not_found(),
    }
}

fn reply(body: &Value, script: &Mutex<Script>) -> Reply {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let offers_tools = tools.iter().any(|tool| tool.get("functionDeclarations").is_some());
    let config = &body["generationConfig"];
    // Who speaks next, which model is to answer: such questions want JSON of a given shape and are no turns.
    let schema = config.get("responseJsonSchema").or_else(|| config.get("responseSchema"));
    match schema {
        Some(schema) if !offers_tools => Reply::say(smallest(schema).to_string()),
        Some(_) | None => take_turn(script, body, offers_tools),
    }
}

fn content(reply: &Reply) -> Value {
    let mut parts = Vec::new();
    if !reply.text.is_empty() {
        parts.push(json!({"text": reply.text}));
    }
    parts.extend(reply.calls.iter().map(|(id, call)| {
        let arguments = match &call.arguments {
            Arguments::Named(values) => values.clone(),
            Arguments::Free(text) => json!({ "input": text }),
        };
        json!({"functionCall": {"id": id, "name": call.name, "args": arguments}})
    }));
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "scripted", "responseId": reply.id})
}

/// The smallest value that fits a schema.
fn smallest(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    match schema["type"].as_str().unwrap_or("string").to_ascii_lowercase().as_str() {
        "object" => {
            let parts = schema["properties"].as_object().cloned().unwrap_or_default();
            Value::Object(
                parts.iter().map(|(key, part)| (key.clone(), smallest(part))).collect::<Map<_, _>>(),
            )
        }
        "array" => json!([]),
        "boolean" => json!(false),
        "number" | "integer" => json!(0),
        _ => json!("x"),
    }
}
