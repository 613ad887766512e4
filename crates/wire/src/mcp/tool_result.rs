//! What came of the call of a tool, and how something is said with it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::extract::{self, READ_MAX};
use super::fields::Fields;

/// What came of the call of a tool, as far as it is looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult<'a> {
    /// Is the call over? One that waits for more, or goes on as a task, is none of our business yet.
    pub is_complete: bool,
    /// Did the tool fail, in its own words?
    pub is_error: bool,
    /// Did the server send a result in a structure of its own?
    pub has_structure: bool,
    /// What it says, in words. Of a very large one that was no failure: how its JSON begins and ends.
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
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    resource: Option<WireResource<'a>>,
}

#[derive(Deserialize)]
struct WireResource<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

impl<'a> WireBlock<'a> {
    fn text(self) -> Option<Cow<'a, str>> {
        extract::string(self.text.or(self.resource.and_then(|resource| resource.text))?.get())
    }
}

impl<'a> ToolResult<'a> {
    /// Reads the result of `tools/call`.
    pub fn of(result: &'a RawValue) -> ToolResult<'a> {
        let Some(fields) = Fields::of(result) else {
            return ToolResult {
                is_complete: true,
                is_error: false,
                has_structure: false,
                words: extract::ends(result.get()),
                more: (result.get().len() > READ_MAX).then(|| extract::digest(result.get())),
            };
        };
        let is_error = fields.truth("isError") == Some(true);
        let structure = fields.get("structuredContent").filter(|structure| structure.get() != "null");
        let (words, is_all_words) = match result.get().len() > READ_MAX && !is_error {
            true => (extract::ends(result.get()), false),
            false => fields.get("content").map(in_words).unwrap_or((Cow::default(), true)),
        };
        let (words, is_all_words) = match (words.trim().is_empty(), structure) {
            (true, Some(structure)) => (extract::ends(structure.get()), is_all_words),
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
            more: (!is_all_words).then(|| extract::digest(result.get())),
        }
    }
}

/// The texts of a content, one after the other, and whether there is nothing else in it. Of very much the rest is not read.
fn in_words(content: &RawValue) -> (Cow<'_, str>, bool) {
    let mut found = Texts { texts: Vec::new(), is_all: true };
    let _what_is_no_list_has_no_texts =
        serde_json::Deserializer::from_str(content.get()).deserialize_seq(&mut found);
    match <[_; 1]>::try_from(found.texts) {
        Ok([only]) => (only, found.is_all),
        Err(texts) => (Cow::Owned(texts.join("\n")), found.is_all),
    }
}

/// Collects the texts of a content.
struct Texts<'a> {
    texts: Vec<Cow<'a, str>>,
    is_all: bool,
}

impl<'de> Visitor<'de> for &mut Texts<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of blocks")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut blocks: A) -> Result<(), A::Error> {
        let mut room = READ_MAX;
        while let Some(block) = blocks.next_element::<&RawValue>()? {
            let text = serde_json::from_str::<WireBlock<'_>>(block.get()).ok().and_then(WireBlock::text);
            match text.filter(|text| text.len() <= room) {
                Some(text) => {
                    room -= text.len();
                    self.is_all &= block.get().len() <= READ_MAX;
                    self.texts.push(text);
                }
                None => self.is_all = false,
            }
            // Each takes some room by itself.
            room = room.saturating_sub(64);
        }
        Ok(())
    }
}

/// An error of the protocol in the place of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    /// Its number.
    pub code: i64,
    /// Its words.
    pub message: String,
    /// What else it says: a text, or its JSON.
    pub data: Option<String>,
}

impl RpcError {
    /// Reads an error.
    pub fn of(error: &RawValue) -> RpcError {
        let fields = Fields::of(error);
        let field = |name| fields.as_ref().and_then(|fields| fields.get(name));
        RpcError {
            code: field("code").and_then(|code| code.get().parse().ok()).unwrap_or(0),
            message: field("message").and_then(|text| extract::string(text.get())).unwrap_or_default().into(),
            data: field("data").filter(|data| data.get() != "null").map(|data| {
                let text = extract::string(data.get()).unwrap_or_else(|| extract::ends(data.get()));
                text.into_owned()
            }),
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
