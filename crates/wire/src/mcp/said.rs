//! What is said here, and not passed on: answers, errors, and a few notifications.

use serde_json::{Value, json};

use super::id::Id;

/// The numbers of errors that are said here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// The message could not be read.
    Unreadable,
    /// The message is none that is taken.
    Refused,
    /// The server is not there.
    ServerGone,
}

impl ErrorCode {
    const fn number(self) -> i64 {
        match self {
            ErrorCode::Unreadable => -32700,
            ErrorCode::Refused => -32600,
            ErrorCode::ServerGone => -32000,
        }
    }
}

/// The frame of an answer, from the JSON text of its result.
pub fn answered(id: &Id, result: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into_bytes()
}

/// The frame of an error. Nobody is named where it is not known whom it is for.
pub fn failed(id: Option<&Id>, code: ErrorCode, message: &str, data: Option<Value>) -> Vec<u8> {
    let mut error = json!({ "code": code.number(), "message": message });
    if let Some(data) = data {
        error["data"] = data;
    }
    let id = id.map_or("null", Id::json);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes()
}

/// The frame of a request.
pub fn request(id: &Id, method: &str, params: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{},"params":{params}}}"#, Value::from(method))
        .into_bytes()
}

/// The frame of a notification.
pub fn notified(method: &str, params: &Value) -> Vec<u8> {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string().into_bytes()
}

/// Nobody waits for an answer any more.
pub fn cancelled(id: &Id, reason: &str) -> Vec<u8> {
    let reason = Value::from(reason);
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":{reason}}}}}"#
    )
    .into_bytes()
}

/// How far a call is, under the name that its client gave.
pub fn progress(token: &str, progress: f64, message: &str) -> Vec<u8> {
    let (progress, message) = (Value::from(progress), Value::from(message));
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{progress},"message":{message}}}}}"#
    )
    .into_bytes()
}
