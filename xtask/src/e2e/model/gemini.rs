//! Google's `generateContent`, as Gemini CLI asks for it.

use std::sync::Mutex;

use serde_json::{Map, Value, json};

use super::http::{Request, Response};
use super::{Arguments, Refusal, Reply, Script, take_turn};

/// Answers one request.
pub fn answer(request: &Request, script: &Mutex<Script>) -> Response {
    let body = &request.body;
    let asks = request.path.rsplit(':').next().unwrap_or_default();
    match asks {
        "streamGenerateContent" | "generateContent" => {
            let reply = reply(body, script);
            if let Some(refusal) = reply.refusal {
                return refused(refusal);
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

fn refused(refusal: Refusal) -> Response {
    match refusal {
        Refusal::Overloaded => {
            let message = "The model is overloaded. Please try again later.";
            let error = json!({"code": 503, "message": message, "status": "UNAVAILABLE"});
            Response::refused(super::BUSY, &json!({ "error": error }))
        }
        Refusal::Limited => Response::limited(&json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED",
            "message": "You exceeded your current quota, please check your plan and billing details. Please retry in 2s.",
            "details": [
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure",
                    "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2s"}]}})),
        Refusal::UsedUp => Response::refused(
            super::LIMITED,
            &json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED",
            "message": "You have exhausted your capacity on this model. Your quota will reset after 1h0m0s."}}),
        ),
        Refusal::Silent => Response::silence(),
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
