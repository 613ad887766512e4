//! What the official conformance suite wants of a server under test: names, texts and behaviour are the suite's own.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{INVALID_PARAMS, Peer, calls};

/// One red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound of no length.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// The pause that the suite wants between two notifications.
const PAUSE: Duration = Duration::from_millis(50);

/// The tools.
pub fn tools() -> Vec<Value> {
    let plain = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_tool_with_logging",
        "test_error_handling",
        "test_tool_with_progress",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_reconnection",
    ];
    let tool = |name: &str, schema: Value| json!({"name": name, "description": format!("Tests {name}"), "inputSchema": schema});
    let one =
        |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let mut all: Vec<Value> =
        plain.iter().map(|name| tool(name, json!({"type": "object", "properties": {}}))).collect();
    all.push(tool("test_sampling", one("prompt")));
    all.push(tool("test_elicitation", one("message")));
    all.push(
        json!({"name": "json_schema_2020_12_tool", "description": "Tool with JSON Schema 2020-12 features",
        "inputSchema": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "$defs": {"address": {"type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
            "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
            "additionalProperties": false}}),
    );
    all
}

/// One call.
pub fn call(peer: &Arc<Peer>, id: Value, name: &str, params: &Value) -> io::Result<()> {
    let arguments = &params["arguments"];
    let image = || json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let content = |parts: Value| peer.result(&id, json!({ "content": parts }));
    match name {
        "test_simple_text" => peer.text(&id, "This is a simple text response for testing."),
        // The stream that it wants closed in between belongs to whoever brings our pipes to HTTP.
        "test_reconnection" => peer.text(&id, "Reconnection test completed successfully"),
        "test_image_content" => content(json!([image()])),
        "test_audio_content" => content(json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}])),
        "test_embedded_resource" => content(json!([{"type": "resource", "resource": {
            "uri": "test://embedded-resource", "mimeType": "text/plain",
            "text": "This is an embedded resource content."}}])),
        "test_multiple_content_types" => content(json!([
            {"type": "text", "text": "Multiple content types test:"}, image(),
            {"type": "resource", "resource": {"uri": "test://mixed-content-resource",
                "mimeType": "application/json", "text": "{\"test\":\"data\",\"value\":123}"}}])),
        "test_tool_with_logging" => {
            for data in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
                peer.voice.notify("notifications/message", &json!({"level": "info", "data": data}))?;
                thread::sleep(PAUSE);
            }
            peer.text(&id, "Tool with logging executed successfully")
        }
        "test_error_handling" => peer.failure(&id, "This tool intentionally returns an error for testing"),
        "test_tool_with_progress" => {
            let token = &params["_meta"]["progressToken"];
            for done in [0, 50, 100] {
                if !token.is_null() {
                    let progress = json!({"progressToken": token, "progress": done, "total": 100});
                    peer.voice.notify("notifications/progress", &progress)?;
                }
                thread::sleep(PAUSE);
            }
            peer.text(&id, "Tool with progress executed successfully")
        }
        "test_sampling" => {
            let message = json!({"role": "user", "content": {"type": "text", "text": arguments["prompt"]}});
            calls::ask(peer, id, "sampling/createMessage", json!({"messages": [message], "maxTokens": 100}))
        }
        "test_elicitation" => {
            let properties = json!({"username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"}});
            elicit(peer, id, arguments["message"].clone(), properties, &["username", "email"])
        }
        "test_elicitation_sep1034_defaults" => elicit(
            peer,
            id,
            json!("Please review and update the form fields with defaults"),
            json!({"name": {"type": "string", "default": "John Doe"}, "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5}, "verified": {"type": "boolean", "default": true},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"}}),
            &[],
        ),
        "test_elicitation_sep1330_enums" => {
            let (plain, titled) = (json!(["option1", "option2", "option3"]), |word: &str| {
                let one =
                    |value: &str, place: &str| json!({"const": value, "title": format!("{place} {word}")});
                json!([one("value1", "First"), one("value2", "Second"), one("value3", "Third")])
            });
            elicit(
                peer,
                id,
                json!("Please select options from the enum fields"),
                json!({"untitledSingle": {"type": "string", "enum": plain},
                    "titledSingle": {"type": "string", "oneOf": titled("Option")},
                    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                        "enumNames": ["Option One", "Option Two", "Option Three"]},
                    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
                    "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}}}),
                &[],
            )
        }
        unknown => peer.error(&id, INVALID_PARAMS, &format!("Unknown tool: {unknown}")),
    }
}

fn elicit(peer: &Peer, id: Value, message: Value, properties: Value, required: &[&str]) -> io::Result<()> {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    calls::ask(peer, id, "elicitation/create", json!({"message": message, "requestedSchema": schema}))
}

/// `resources/list`.
pub fn resources() -> Value {
    json!({"resources": [
        {"uri": "test://static-text", "name": "Static text", "description": "A text", "mimeType": "text/plain"},
        {"uri": "test://static-binary", "name": "Static binary", "description": "An image", "mimeType": "image/png"},
        {"uri": "test://watched-resource", "name": "Watched", "description": "Changes", "mimeType": "text/plain"}]})
}

/// `resources/templates/list`.
pub fn templates() -> Value {
    json!({"resourceTemplates": [{"uriTemplate": "test://template/{id}/data", "name": "Template",
        "description": "Any id", "mimeType": "application/json"}]})
}

/// `resources/read`.
pub fn resource(uri: &str) -> Option<Value> {
    let contents = match uri {
        "test://static-text" => json!({"uri": uri, "mimeType": "text/plain",
            "text": "This is the content of the static text resource."}),
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let text = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": text.to_string()})
        }
    };
    Some(json!({ "contents": [contents] }))
}

/// `prompts/list`.
pub fn prompts() -> Value {
    let argument = |name: &str| json!({"name": name, "description": "For the test", "required": true});
    json!({"prompts": [
        {"name": "test_simple_prompt", "description": "Simple"},
        {"name": "test_prompt_with_arguments", "description": "With arguments",
            "arguments": [argument("arg1"), argument("arg2")]},
        {"name": "test_prompt_with_embedded_resource", "description": "With a resource",
            "arguments": [argument("resourceUri")]},
        {"name": "test_prompt_with_image", "description": "With an image"}]})
}

/// `prompts/get`.
pub fn prompt(name: &str, arguments: &Value) -> Option<Value> {
    let text = |text: String| json!({"role": "user", "content": {"type": "text", "text": text}});
    let given = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    let messages = match name {
        "test_simple_prompt" => json!([text("This is a simple prompt for testing.".to_owned())]),
        "test_prompt_with_arguments" => {
            json!([text(format!(
                "Prompt with arguments: arg1='{}', arg2='{}'",
                given("arg1"),
                given("arg2")
            ))])
        }
        "test_prompt_with_embedded_resource" => json!([
            {"role": "user", "content": {"type": "resource", "resource": {"uri": given("resourceUri"),
                "mimeType": "text/plain", "text": "Embedded resource content for testing."}}},
            text("Please process the embedded resource above.".to_owned())]),
        "test_prompt_with_image" => json!([
            {"role": "user", "content": {"type": "image", "data": PNG, "mimeType": "image/png"}},
            text("Please analyze the image above.".to_owned())]),
        _ => return None,
    };
    Some(json!({ "messages": messages }))
}
