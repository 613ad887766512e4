//! A call of a tool, as an agent asks for it, and as everybody else hears of it.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use unstuck_judge::Call;

use crate::annotations::Annotations;

/// The run of an agent that a call belongs to. What is known to fail is known within a session; with a store it outlives the
/// process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Session(Arc<str>);

impl Session {
    /// A session that nobody had before.
    pub fn new() -> Session {
        Session(format!("sdk-{:016x}", unique()).into())
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Session {
    fn default() -> Session {
        Session::new()
    }
}

/// The name of a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(Arc<str>);

impl CallId {
    /// A name that no other call has.
    pub(crate) fn new() -> CallId {
        CallId(format!("call-{:016x}", unique()).into())
    }

    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What both kinds of name have in common.
macro_rules! name {
    ($Name:ident) => {
        impl From<&str> for $Name {
            fn from(name: &str) -> $Name {
                $Name(name.into())
            }
        }

        impl From<String> for $Name {
            fn from(name: String) -> $Name {
                $Name(name.into())
            }
        }

        impl From<&String> for $Name {
            fn from(name: &String) -> $Name {
                $Name(name.as_str().into())
            }
        }

        impl From<&$Name> for $Name {
            fn from(name: &$Name) -> $Name {
                name.clone()
            }
        }

        impl From<$Name> for String {
            fn from(name: $Name) -> String {
                name.as_str().to_owned()
            }
        }

        impl AsRef<str> for $Name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $Name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl Serialize for $Name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $Name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$Name, D::Error> {
                Ok($Name::from(String::deserialize(deserializer)?))
            }
        }
    };
}

name!(Session);
name!(CallId);

/// A number that nothing else has: random at the start of the process, then counted.
pub(crate) fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static START: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let start = START.get_or_init(|| RandomState::new().hash_one(std::process::id()));
    start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A call of a tool, as an agent asks for it.
///
/// ```
/// use serde_json::json;
/// use unstuck::{Session, ToolCall};
///
/// let session = Session::new();
/// let call = ToolCall::new("fs_read", json!({ "path": "src/lib.rs" })).session(&session).id("toolu_01");
/// ```
#[derive(Debug, Clone)]
#[must_use = "a call does nothing before a toolbox has it"]
pub struct ToolCall {
    pub(crate) tool: String,
    pub(crate) input: Value,
    pub(crate) session: Option<Session>,
    pub(crate) agent: Option<String>,
    pub(crate) id: Option<CallId>,
    pub(crate) round: Option<u64>,
    pub(crate) retry_within: Option<Duration>,
    /// Where the text of the arguments breaks.
    pub(crate) broken: Option<String>,
}

impl ToolCall {
    /// A call of `tool` with `input`.
    pub fn new(tool: impl Into<String>, input: Value) -> ToolCall {
        ToolCall {
            tool: tool.into(),
            input,
            session: None,
            agent: None,
            id: None,
            round: None,
            retry_within: None,
            broken: None,
        }
    }

    /// A call as most models write it: the arguments are a text. Where that is no JSON, the model is told where it breaks; an empty
    /// text is an empty object.
    ///
    /// ```
    /// use unstuck::ToolCall;
    ///
    /// let call = ToolCall::from_text("fs_read", r#"{ "path": "src/lib.rs" }"#);
    /// ```
    pub fn from_text(tool: impl Into<String>, arguments: &str) -> ToolCall {
        let text = if arguments.trim().is_empty() { "{}" } else { arguments };
        match serde_json::from_str(text) {
            Ok(input) => ToolCall::new(tool, input),
            Err(error) => {
                let input = Value::String(arguments.to_owned());
                ToolCall { broken: Some(error.to_string()), ..ToolCall::new(tool, input) }
            }
        }
    }

    /// The session it belongs to. All calls without one share that of the toolbox.
    pub fn session(self, session: impl Into<Session>) -> ToolCall {
        ToolCall { session: Some(session.into()), ..self }
    }

    /// The agent that asks, where there are several: they share what is known to fail, and each is judged by itself.
    pub fn agent(self, agent: impl Into<String>) -> ToolCall {
        ToolCall { agent: Some(agent.into()), ..self }
    }

    /// The name the model gave it. Without one it gets one; one that was given before in its session gets a number (`call_0~2`),
    /// because some models name their calls alike in every message.
    pub fn id(self, id: impl Into<CallId>) -> ToolCall {
        ToolCall { id: Some(id.into()), ..self }
    }

    /// The number of the model's message that holds it: calls of one message were asked for together, before any of their
    /// results was seen.
    pub fn round(self, round: u64) -> ToolCall {
        ToolCall { round: Some(round), ..self }
    }

    /// No retry begins later than so long after the call was asked for: whoever asked does not wait for longer. Unlike
    /// [`Policy::deadline`](crate::Policy::deadline) it cuts no attempt that runs.
    pub fn retry_within(self, limit: Duration) -> ToolCall {
        ToolCall { retry_within: Some(limit), ..self }
    }
}

impl fmt::Display for ToolCall {
    /// The tool and its arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.tool, self.input)
    }
}

/// A call as tools, hooks and events know it.
#[derive(Debug, Clone)]
pub struct CallInfo {
    pub(crate) id: CallId,
    pub(crate) session: Session,
    pub(crate) agent: Arc<str>,
    /// The call as it is recorded, compared and judged.
    pub(crate) call: Arc<Call>,
    /// How much of the tool's name there is the namespace of the toolbox.
    pub(crate) prefix: usize,
    pub(crate) round: Option<u64>,
    pub(crate) annotations: Arc<Annotations>,
}

impl From<ToolCall> for CallInfo {
    /// The call as a hook would see it: for tests of hooks and tools.
    fn from(call: ToolCall) -> CallInfo {
        CallInfo {
            id: call.id.unwrap_or_else(CallId::new),
            session: call.session.unwrap_or_default(),
            agent: call.agent.unwrap_or_else(|| "main".to_owned()).into(),
            call: Arc::new(Call::new(call.tool, call.input)),
            prefix: 0,
            round: call.round,
            annotations: Arc::default(),
        }
    }
}

impl CallInfo {
    /// Its name.
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// The session it belongs to.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The agent that asks; `main` where nobody said.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The tool, as models call it.
    pub fn tool(&self) -> &str {
        self.call.tool.get(self.prefix..).unwrap_or(&self.call.tool)
    }

    /// The tool, as it is recorded: with the [namespace](crate::ToolboxBuilder::namespace) of its toolbox before its name.
    pub fn recorded_as(&self) -> &str {
        &self.call.tool
    }

    /// The same call with other arguments.
    pub(crate) fn with_input(&self, input: Value) -> CallInfo {
        CallInfo { call: Arc::new(Call::new(self.recorded_as(), input)), ..self.clone() }
    }

    /// What is known of the tool.
    pub fn annotations(&self) -> &Annotations {
        &self.annotations
    }

    /// The arguments.
    pub fn input(&self) -> &Value {
        &self.call.input
    }
}
