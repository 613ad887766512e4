//! What a call does to the world, known before it runs: whether it only looks, whether twice is as good as once, and
//! whether its success can change the answer of another call. Reads names and words only; nothing is run or looked up.

pub(crate) mod commands;
mod http;
mod look;
pub(crate) mod script;
mod task;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::Call;
use crate::kind::vocabulary;
use crate::shell::{self, ParsedCall};
use commands::Traits;
pub use look::Looks;

vocabulary! {
    /// What a call does to the world, from weak to strong. `Unknown` stays unknown.
    Nature {
        /// It only looks.
        ReadOnly = "read_only",
        /// It changes something, and twice is as good as once.
        Idempotent = "idempotent",
        /// Each run changes something anew.
        Writes = "writes",
        /// Nothing known tells.
        Unknown = "unknown",
    }
}

/// What a call does to the world. A script is as strong as its strongest command.
pub fn of(call: &Call) -> Nature {
    ParsedCall::of(call).nature()
}

/// Tells whether a success of this call could change the answer of another call: an edit, an install, a git or file
/// operation, a service that was started. Looking, building and testing do not.
pub fn moves_world(call: &Call) -> bool {
    ParsedCall::of(call).moves_world()
}

/// Tells how sure it is that a call only looks. Only calls that are known to look can be the same question once more.
pub fn looks(call: &Call) -> Looks {
    ParsedCall::of(call).looks()
}

/// Tells whether running this call again and again is waiting for something that goes on elsewhere.
pub fn waits(call: &Call) -> bool {
    ParsedCall::of(call).waits()
}

/// The files, addresses and packages a call acts on, in order, each once.
pub fn targets(call: &Call) -> Vec<String> {
    ParsedCall::of(call).targets()
}

/// How a call goes about its work, as a short readable key: `cargo build`, `pip install torch`, `Edit src/a.rs`.
pub fn approach(call: &Call) -> String {
    ParsedCall::of(call).approach()
}

/// The same questions, asked of a call whose line has been read already.
impl ParsedCall<'_> {
    /// See [`of`].
    pub fn nature(&self) -> Nature {
        match &self.script {
            Some(script) => script::nature(script),
            None => self.traits().nature,
        }
    }

    /// See [`moves_world`].
    pub fn moves_world(&self) -> bool {
        match &self.script {
            Some(script) => script::moves_world(script),
            None => self.traits().moves_world,
        }
    }

    /// See [`looks`].
    pub fn looks(&self) -> Looks {
        look::of(self)
    }

    /// See [`waits`].
    pub fn waits(&self) -> bool {
        match &self.script {
            Some(script) => script::waits(script),
            None => self.traits().poller,
        }
    }

    fn traits(&self) -> &Traits {
        self.traits.get_or_init(|| tool_traits(self.call))
    }

    /// See [`targets`].
    pub fn targets(&self) -> Vec<String> {
        let found = match &self.script {
            Some(script) => script::targets(script),
            None => input_targets(&object(&self.call.input)),
        };
        let mut each_once: Vec<String> = Vec::new();
        for target in found {
            if each_once.len() < 64 && !each_once.contains(&target) {
                each_once.push(target);
            }
        }
        each_once
    }

    /// See [`approach`].
    pub fn approach(&self) -> String {
        match &self.script {
            Some(script) => script::approach(script),
            None => match input_targets(&object(&self.call.input)).first() {
                Some(target) => format!("{} {}", self.call.tool, shorter(target)),
                None => self.call.tool.clone(),
            },
        }
    }
}

/// The first characters of a long text: a key for people stays short.
pub(crate) fn shorter(text: &str) -> &str {
    match text.char_indices().nth(120) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// The input as an object, also where it arrives as the text of one.
pub(crate) fn object(input: &Value) -> std::borrow::Cow<'_, Value> {
    let text = input.as_str().filter(|text| text.trim_start().starts_with('{'));
    match text.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
        Some(value) => std::borrow::Cow::Owned(value),
        None => std::borrow::Cow::Borrowed(input),
    }
}

/// What is known of a tool that is no shell: by its sub-command, its HTTP method, its name, then the verbs in its name.
fn tool_traits(call: &Call) -> Traits {
    let input = object(&call.input);
    let word = |field: &str| input.get(field).and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let looks = Traits { nature: Nature::ReadOnly, moves_world: false, ..Traits::UNKNOWN };
    let last_part = last_part(&call.tool);
    let name = last_part.to_lowercase();
    let name = name.as_str();
    if commands::tool(name).is_some_and(|traits| traits.nature == Nature::Writes) && word("command") == "view"
    {
        return looks;
    }
    let names_url = ["url", "uri", "endpoint"].iter().any(|field| input.get(field).is_some());
    let method = word("method");
    if names_url && !method.is_empty() {
        let nature = http::nature_of_method(&method);
        return Traits { nature, moves_world: nature != Nature::ReadOnly, ..looks };
    }
    if let Some(traits) = commands::tool(name) {
        return traits;
    }
    let words = shell::name_words(last_part);
    // A verb in front says what the tool does (`get_update_history`), a poller's word may stand anywhere (`job_status`).
    let first = words.first().and_then(|word| commands::verb(word));
    let waiting = words.iter().filter_map(|word| commands::verb(word)).find(|traits| traits.poller);
    match (first, waiting) {
        (Some(first), Some(waiting)) if first.nature == Nature::ReadOnly => waiting,
        (Some(first), _) => first,
        (None, Some(waiting)) => waiting,
        (None, None) => words.iter().find_map(|word| commands::verb(word)).unwrap_or(Traits::UNKNOWN),
    }
}

/// `mcp__server__tool`, `mcp:tool` and `server.tool` are known by their last part.
pub(crate) fn last_part(tool: &str) -> &str {
    let tool = tool.rsplit("__").next().unwrap_or_default();
    tool.rsplit([':', '.', '/']).next().unwrap_or_default()
}

/// Tells whether a call's tool is one that agents bring along, known by its whole name.
pub(crate) fn is_own_tool(call: &Call) -> bool {
    commands::tool(&call.tool.to_lowercase()).is_some()
}

/// The values of the fields that name what a tool acts on.
fn input_targets(input: &Value) -> Vec<String> {
    const FIELDS: &[&str] = &[
        "file_path",
        "filepath",
        "path",
        "filename",
        "file_name",
        "file",
        "notebook_path",
        "target_file",
        "absolute_path",
        "relative_path",
        "dir_path",
        "directory",
        "url",
        "uri",
        "source",
        "destination",
        "paths",
        "files",
        "id",
        "repo",
        "name",
        "pattern",
        "query",
        "command",
    ];
    let mut found = Vec::new();
    for field in FIELDS {
        match input.get(field) {
            Some(Value::String(text)) if !text.is_empty() => found.push(shorter(text).to_owned()),
            Some(Value::Array(items)) => {
                found.extend(items.iter().filter_map(Value::as_str).map(|text| shorter(text).to_owned()));
            }
            Some(Value::Number(number)) => found.push(number.to_string()),
            Some(Value::Null | Value::Bool(_) | Value::Object(_) | Value::String(_)) | None => {}
        }
    }
    for field in ["input", "patch", "patchText", "diff"] {
        if let Some(Value::String(patch)) = input.get(field) {
            found.extend(patched_files(patch));
        }
    }
    let ids = input.as_object().into_iter().flatten().filter(|(field, _)| field.ends_with("_id"));
    found.extend(ids.filter_map(|(_, value)| value.as_str()).map(|text| shorter(text).to_owned()));
    found
}

/// The files that a patch names, in either of the two usual forms.
pub(crate) fn patched_files(patch: &str) -> impl Iterator<Item = String> {
    const MARKS: &[&str] =
        &["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ", "+++ b/", "--- a/"];
    patch
        .lines()
        .filter_map(|line| MARKS.iter().find_map(|mark| line.strip_prefix(mark)))
        .map(|file| file.trim().to_owned())
}
