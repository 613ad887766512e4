//! What came of the call of a tool, and how something is said with it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::fields::Fields;

/// A result that is larger is not read for its words, but taken as it stands.
const READ_MAX: usize = 1024 * 1024;

/// What came of the call of a tool, as far as it is looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult<'a> {
    /// Is the call over? One that waits for more, or goes on as a task, is none of our business yet.
    pub is_complete: bool,
    /// Did the tool fail, in its own words?
    pub is_error: bool,
    /// Did the server send a result in a structure of its own?
    pub has_structure: bool,
    /// What it says, in words. Of a very large one that was no failure: its JSON.
    pub words: Cow<'a, str>,
    /// Where there is more than words, such as images and structures: a number that stands for all of it.
    pub more: Option<String>,
}

/// Does a text say, as agents behind tools do, that it is the account of a failure: `{"success": false, …}`?
pub fn tells_failure(words: &str) -> bool {
    let fields = Fields::read(words);
    fields.is_some_and(|fields| ["success", "ok"].iter().any(|name| fields.truth(name) == Some(false)))
}

/// Is a line the account of a failure that the proxy gives beside a server's own words?
pub fn is_our_account(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    if !line.starts_with(b"{\"") || line.len() > READ_MAX {
        return false;
    }
    let account: Value = serde_json::from_slice(line).unwrap_or(Value::Null);
    account.get("ok") == Some(&Value::Bool(false))
        && ["error", "errorType", "retryable", "recommendations"]
            .iter()
            .all(|name| account.get(name).is_some())
}

#[derive(Deserialize)]
struct WireBlock<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    resource: Option<WireResource<'a>>,
}

#[derive(Deserialize)]
struct WireResource<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
}

impl<'a> ToolResult<'a> {
    /// Reads the result of `tools/call`.
    pub fn of(result: &'a RawValue) -> ToolResult<'a> {
        let Some(fields) = Fields::of(result) else {
            return ToolResult {
                is_complete: true,
                is_error: false,
                has_structure: false,
                words: Cow::Borrowed(result.get()),
                more: None,
            };
        };
        let is_error = fields.truth("isError") == Some(true);
        let structure = fields.get("structuredContent").filter(|structure| structure.get() != "null");
        let (words, is_all_words) = match result.get().len() > READ_MAX && !is_error {
            true => (Cow::Borrowed(result.get()), true),
            false => fields.get("content").map(in_words).unwrap_or((Cow::default(), true)),
        };
        let (words, is_all_words) = match (words.trim().is_empty(), structure) {
            (true, Some(structure)) => (Cow::Borrowed(structure.get()), is_all_words),
            (false, Some(_)) => (words, false),
            (true | false, None) => (words, is_all_words),
        };
        // The revision 2025-11-25 has tasks, too, and says so in its own way.
        let is_task = fields.get("content").is_none() && fields.get("task").is_some();
        ToolResult {
            is_complete: !is_task && fields.text("resultType").is_none_or(|kind| kind == "complete"),
            is_error,
            has_structure: structure.is_some_and(|structure| structure.get().starts_with('{')),
            words,
            more: (!is_all_words).then(|| digest(result)),
        }
    }
}

fn digest(result: &RawValue) -> String {
    blake3::hash(result.get().as_bytes()).to_hex().chars().take(16).collect()
}

/// The texts of a content, one after the other, and whether there is nothing else in it.
fn in_words(content: &RawValue) -> (Cow<'_, str>, bool) {
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    let all = blocks.len();
    let texts = blocks.into_iter().filter_map(|block| {
        let block: WireBlock<'_> = serde_json::from_str(block.get()).ok()?;
        block.text.or(block.resource.and_then(|resource| resource.text))
    });
    let texts: Vec<Cow<'_, str>> = texts.collect();
    let is_all = texts.len() == all;
    match <[_; 1]>::try_from(texts) {
        Ok([only]) => (only, is_all),
        Err(texts) => (Cow::Owned(texts.join("\n")), is_all),
    }
}

/// An error of the protocol in the place of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// Its number.
    pub code: i64,
    /// Its words.
    pub message: String,
    /// What else it says.
    pub data: Option<Value>,
}

impl RpcError {
    /// Reads an error.
    pub fn of(error: &RawValue) -> RpcError {
        let fields = Fields::of(error);
        let field = |name| fields.as_ref().and_then(|fields| fields.get(name));
        RpcError {
            code: field("code").and_then(|code| code.get().parse().ok()).unwrap_or(0),
            message: fields
                .as_ref()
                .and_then(|fields| fields.text("message"))
                .map(Into::into)
                .unwrap_or_default(),
            data: field("data").and_then(|data| serde_json::from_str(data.get()).ok()),
        }
    }

    /// Is it the failure of a call, and no more? Of other numbers the protocol says what a client has to do about them: those
    /// are for the client alone.
    pub fn is_plain_failure(&self) -> bool {
        match self.code {
            -32603 | -32602 | -32019..=-32000 => true,
            -32768..=-32000 => false,
            _ => true,
        }
    }
}

/// What is said with a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Addition {
    /// As a text of its own, the last one.
    pub text: String,
    /// As a field of the server's own structure, where that is free to have more fields.
    pub structured: Option<(&'static str, Value)>,
}

/// The JSON text of a result with something added; all that was there stays as it came.
pub fn added(result: &RawValue, addition: &Addition) -> String {
    let Some(fields) = Fields::of(result) else { return result.get().to_owned() };
    let block = serde_json::json!({ "type": "text", "text": addition.text }).to_string();
    let mut out = String::with_capacity(result.get().len() + block.len() * 2);
    let mut has_content = false;
    out.push('{');
    for (name, value) in &fields.0 {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&Value::from(&**name).to_string());
        out.push(':');
        match (&**name, &addition.structured) {
            ("content", _) => {
                has_content = true;
                let list = value.get().strip_prefix('[').map_or("[]", |_| value.get());
                out.push_str(&with_last(list, ']', &block));
            }
            ("structuredContent", Some((field, more))) if value.get().starts_with('{') => {
                let field = format!("{}:{more}", Value::from(*field));
                out.push_str(&with_last(value.get(), '}', &field));
            }
            _ => out.push_str(value.get()),
        }
    }
    if !has_content {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&format!("\"content\":[{block}]"));
    }
    out.push('}');
    out
}

/// A list or an object with one more at its end.
fn with_last(json: &str, bracket: char, more: &str) -> String {
    let open = json.strip_suffix(bracket).unwrap_or(json).trim_end();
    let between = if open.len() > 1 { "," } else { "" };
    format!("{open}{between}{more}{bracket}")
}
