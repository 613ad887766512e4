//! What a client asks for when it calls a tool.

use serde_json::Value;
use serde_json::value::RawValue;

use super::extract;
use super::fields::Fields;

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The tool, as the server calls it.
    pub tool: String,
    /// Its arguments, or what is kept of very large ones; nothing where there are none, which is not the same as none inside.
    pub arguments: Option<Value>,
    /// The JSON text of the name under which the client wants to hear of progress.
    pub progress_token: Option<String>,
}

impl ToolCall {
    /// Reads the parameters of `tools/call`; nothing where they are not those of a call.
    pub fn of(params: &RawValue) -> Option<ToolCall> {
        let fields = Fields::of(params)?;
        let arguments = match fields.get("arguments") {
            Some(arguments) => Some(extract::value(arguments)?),
            None => None,
        };
        let meta = fields.get("_meta").and_then(Fields::of);
        Some(ToolCall {
            tool: fields.text("name")?.into(),
            arguments,
            progress_token: meta.and_then(|meta| Some(meta.get("progressToken")?.get().to_owned())),
        })
    }
}
