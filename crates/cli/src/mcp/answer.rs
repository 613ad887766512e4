//! What the client is told of a call that is over.

use serde_json::{Map, Value, json};
use unstuck::{CallResult, Status};
use unstuck_judge::quote;
use unstuck_wire::mcp::{self, Addition, Id, Message, RpcError, ToolResult};

use super::journey;

/// The most of an error that is told beside the server's own words.
const ERROR_MAX: usize = 400;

/// How the answer has to look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    /// Does each result have to say that it is complete, as it has in the stateless era?
    pub(super) says_complete: bool,
    /// May the server's own structure have a field of ours?
    pub(super) structure_is_free: bool,
}

/// What came from the server.
enum Own {
    /// A result, and whether it has a structure.
    Result {
        is_complete: bool,
        has_structure: bool,
    },
    Error(RpcError),
    /// Something else, or nothing.
    Nothing,
}

impl Own {
    fn of(came: Option<&[u8]>) -> Own {
        match came.map(mcp::read) {
            Some(Message::Answer { came: Ok(own), .. }) => {
                let own = ToolResult::of(own);
                Own::Result { is_complete: own.is_complete, has_structure: own.has_structure }
            }
            Some(Message::Answer { came: Err(error), .. }) => Own::Error(RpcError::of(error)),
            Some(_) | None => Own::Nothing,
        }
    }
}

/// The frame of the answer: the server's own, as far as there is one, and what has to be said beside it.
pub(super) fn frame(id: &Id, came: Option<Vec<u8>>, result: &CallResult, manner: Manner) -> Vec<u8> {
    let own = Own::of(came.as_deref());
    match (came, own, result.status()) {
        // What was heard from the server stands, and there is only a word to say to it.
        (Some(frame), own, Status::Succeeded) => {
            let note = result.note().filter(|_| matches!(own, Own::Result { is_complete: true, .. }));
            match note {
                Some(note) => with(frame, id, Addition { text: note.to_owned(), structured: None }),
                None => named(frame, id),
            }
        }
        (Some(frame), Own::Result { has_structure, .. }, _) => {
            let envelope = envelope(result, true);
            let has_room = manner.structure_is_free && has_structure;
            let structured = has_room.then(|| ("unstuck", envelope.clone()));
            with(frame, id, Addition { text: envelope.to_string(), structured })
        }
        (_, Own::Error(error), Status::Failed) => {
            // The protocol's error becomes text for the model here, so it is ours to mark.
            let words = format!("MCP error {}: {}", error.code, said(&journey::without_code(&error)));
            ours(id, &[words, envelope(result, true).to_string()], manner)
        }
        (_, _, _) => ours(id, &[envelope(result, false).to_string()], manner),
    }
}

/// The server's own frame under the client's name.
fn named(mut frame: Vec<u8>, id: &Id) -> Vec<u8> {
    if !matches!(mcp::read(&frame), Message::Answer { id: Some(named), .. } if named == *id) {
        mcp::rename(&mut frame, id);
    }
    frame
}

/// The same, with something added to its result.
fn with(mut frame: Vec<u8>, id: &Id, addition: Addition) -> Vec<u8> {
    match mcp::add(&mut frame, id, &addition) {
        true => frame,
        false => named(frame, id),
    }
}

/// A result that is all ours.
fn ours(id: &Id, texts: &[String], manner: Manner) -> Vec<u8> {
    let content: Vec<Value> = texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
    let mut result = json!({ "content": content, "isError": true });
    if manner.says_complete {
        result["resultType"] = "complete".into();
    }
    mcp::answered(id, &result.to_string())
}

/// What is said of a failure. Where the server's own words stand beside it, only the line that shows the cause is said again.
fn envelope(result: &CallResult, is_beside: bool) -> Value {
    let mut all = result.to_json();
    let mut envelope = Map::new();
    let shown = result.diagnosis().and_then(|diagnosis| Some(diagnosis.evidence.as_ref()?.text.clone()));
    let error = match (is_beside, shown) {
        (true, Some(line)) => said(&line),
        (true, None) => said(result.error().unwrap_or_default()),
        // What the toolbox says of a call that it did not send is ours, and holds its quotations.
        (false, _) if !result.mistakes().is_empty() || result.status() != Status::Failed => {
            result.error().unwrap_or_default().to_owned()
        }
        (false, _) => said(result.error().unwrap_or_default()),
    };
    envelope.insert("ok".into(), all["ok"].take());
    envelope.insert("error".into(), error.into());
    for field in ["errorType", "retryable", "recommendations", "status", "mistakes", "tried", "note", "table"]
    {
        match all.get_mut(field).map(Value::take) {
            Some(Value::String(word)) if field == "status" && word == "failed" => {}
            Some(value) => drop(envelope.insert(field.into(), value)),
            None => {}
        }
    }
    for tried in envelope.get_mut("tried").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(Value::String(error)) = tried.get_mut("error") {
            *error = said(error);
        }
    }
    if let Some(Value::String(note)) = envelope.get_mut("note") {
        // What is recommended already is not said twice.
        let rest =
            result.recommendations().iter().fold(note.clone(), |note, advice| note.replace(advice, ""));
        *note = rest.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    if let Some(diagnosis) = result.diagnosis() {
        envelope.insert("kind".into(), diagnosis.kind.word().into());
    }
    Value::Object(envelope)
}

/// Words of a server inside our own: between brackets that they cannot close.
fn said(words: &str) -> String {
    match words.is_empty() {
        true => String::new(),
        false => quote::fenced(words, ERROR_MAX),
    }
}
