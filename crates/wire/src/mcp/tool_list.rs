//! The tools that a server has.

use serde_json::Value;
use serde_json::value::RawValue;

use super::fields::Fields;

/// One page of the tools that a server has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolList {
    /// The tools.
    pub tools: Vec<ListedTool>,
    /// Where the next page begins; nothing where this is the last.
    pub next: Option<String>,
}

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// The name it is called by.
    pub name: String,
    /// The schema of its arguments.
    pub schema: Value,
    /// Does it promise what its results look like?
    pub has_output_schema: bool,
    /// What the server says of what it does.
    pub hints: Hints,
    /// Two tools that are told of in the same words have the same.
    pub digest: String,
}

/// What a server says of what a tool does. None of it has to be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// It only looks.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// Twice is as good as once.
    pub idempotent: Option<bool>,
}

/// More tools than this are not looked at: a list that has no end is no list.
const TOOLS_MAX: usize = 10_000;

impl ToolList {
    /// Reads the result of `tools/list`; nothing where it is none.
    pub fn of(result: &RawValue) -> Option<ToolList> {
        let fields = Fields::of(result)?;
        let tools: Vec<&RawValue> = serde_json::from_str(fields.get("tools")?.get()).ok()?;
        Some(ToolList {
            tools: tools.into_iter().take(TOOLS_MAX).filter_map(ListedTool::of).collect(),
            next: fields.text("nextCursor").map(Into::into),
        })
    }
}

impl ListedTool {
    fn of(json: &RawValue) -> Option<ListedTool> {
        let fields = Fields::of(json)?;
        let schema = fields.get("inputSchema").and_then(|schema| serde_json::from_str(schema.get()).ok());
        Some(ListedTool {
            name: fields.text("name")?.into(),
            schema: schema.unwrap_or(Value::Bool(true)),
            has_output_schema: fields.get("outputSchema").is_some_and(|schema| schema.get() != "null"),
            hints: fields
                .get("annotations")
                .and_then(Fields::of)
                .map(|hints| Hints::of(&hints))
                .unwrap_or_default(),
            digest: digest(&fields),
        })
    }
}

impl Hints {
    fn of(fields: &Fields<'_>) -> Hints {
        Hints {
            read_only: fields.truth("readOnlyHint"),
            destructive: fields.truth("destructiveHint"),
            idempotent: fields.truth("idempotentHint"),
        }
    }
}

/// What of a tool tells a model what it does, and so must not change unseen. The order of fields and the spaces between them
/// tell nothing.
fn digest(fields: &Fields<'_>) -> String {
    let mut hasher = blake3::Hasher::new();
    for name in ["name", "title", "description", "inputSchema", "outputSchema", "annotations"] {
        let mut value: Value =
            fields.get(name).and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default();
        value.sort_all_objects();
        hasher.update(value.to_string().as_bytes()).update(b"\n");
    }
    hasher.finalize().to_hex().chars().take(32).collect()
}
