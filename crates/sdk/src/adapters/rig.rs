//! Tools of a toolbox for agents of [rig](https://docs.rs/rig), and rig's tools in a toolbox.

use std::fmt;
use std::sync::Arc;

use ::rig_core::message::{ToolName, ToolResultContent};
use ::rig_core::tool::{
    DynamicTool, ErasedTool, ToolContext as RigContext, ToolErrorKind, ToolExecutionError, ToolOutput,
};
use serde_json::Value;
use unstuck_judge::Kind;

use super::Boxed;
use crate::annotations::Annotations;
use crate::call::{Session, ToolCall};
use crate::context::ToolContext;
use crate::failure::Failure;
use crate::result::{CallResult, Status};
use crate::tool::Tool;
use crate::toolbox::{ToolDefinition, Toolbox};

/// The tools of a toolbox as rig's agents take them, all in one session.
///
/// A failure does not end the agent's run: the model sees [`CallResult::to_json`], and rig's hooks and traces see an error
/// of the nearest kind. A call that was denied is a refusal.
///
/// ```
/// use rig_core::tool::DynamicTool;
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use serde_json::json;
/// use unstuck::{Failure, ToolContext, Toolbox, tool_fn};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Nothing {}
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), unstuck::BuildError> {
/// let broken = tool_fn("broken", "Never works.", |_: Nothing, _: ToolContext| async move {
///     Err::<(), _>(Failure::expected("no such file or directory"))
/// });
/// let tools = Toolbox::builder().tool(broken).build()?;
///
/// // For `AgentBuilder::dynamic_tools`.
/// let for_rig: Vec<DynamicTool> = unstuck::rig::tools(&tools, tools.session());
///
/// let error = for_rig[0].execute(json!({})).await.unwrap_err();
/// let seen_by_the_model = error.model_output().as_json().unwrap();
/// assert_eq!(seen_by_the_model["error"], "no such file or directory");
/// # Ok(())
/// # }
/// ```
pub fn tools(toolbox: &Toolbox, session: &Session) -> Vec<DynamicTool> {
    let offer = |definition: ToolDefinition| {
        let (toolbox, session) = (toolbox.clone(), session.clone());
        let tool = definition.name.clone();
        let call = move |input: Value| -> Boxed<Result<ToolOutput, ToolExecutionError>> {
            let call = ToolCall::new(&tool, input).session(&session);
            let toolbox = toolbox.clone();
            Box::pin(async move { answer(toolbox.call(call).await) })
        };
        // A tool without a name is in no toolbox.
        let name = ToolName::new(definition.name).ok()?;
        Some(DynamicTool::new(name, definition.description, definition.schema, call))
    };
    toolbox.definitions().into_iter().filter_map(offer).collect()
}

/// A result as rig has it.
fn answer(result: CallResult) -> Result<ToolOutput, ToolExecutionError> {
    let message = result.error().unwrap_or_default().to_owned();
    let error = match result.status() {
        Status::Succeeded => {
            let (output, more) = super::parted(&result);
            let output = match output {
                Value::String(text) => ToolResultContent::text(text),
                output => ToolResultContent::json(output),
            };
            let parts = [Some(output), more.map(ToolResultContent::json)];
            return ToolOutput::content(parts.into_iter().flatten().collect());
        }
        Status::Denied | Status::Halted | Status::Paused => ToolExecutionError::refused(message),
        Status::Failed => {
            let kind = result.diagnosis().map_or(Kind::Unknown, |diagnosis| diagnosis.kind);
            ToolExecutionError::new(nearest(kind), message).with_code(kind.word())
        }
    };
    let error = match result.retryable() {
        Some(retryable) => error.with_retryable(retryable),
        None => error,
    };
    Err(error.with_model_output(ToolOutput::json(result.to_json())))
}

fn nearest(kind: Kind) -> ToolErrorKind {
    match kind {
        Kind::Network => ToolErrorKind::Network,
        Kind::Timeout => ToolErrorKind::Timeout,
        Kind::RateLimited => ToolErrorKind::RateLimited,
        Kind::ServerError => ToolErrorKind::Provider,
        Kind::Auth | Kind::Permission => ToolErrorKind::PermissionDenied,
        Kind::CommandNotFound | Kind::PathNotFound | Kind::MissingDependency => ToolErrorKind::NotFound,
        Kind::Validation => ToolErrorKind::InvalidArgs,
        Kind::Aborted => ToolErrorKind::Cancelled,
        Kind::ResourceBusy
        | Kind::CodeError
        | Kind::TestFailure
        | Kind::CheckFailed
        | Kind::Conflict
        | Kind::OutOfResources
        | Kind::ParseError
        | Kind::Crash
        | Kind::Logical
        | Kind::NotAnError
        | Kind::Unknown => ToolErrorKind::Other,
    }
}

/// A tool of rig's, for a [`Toolbox`]. See [`from_rig`].
pub struct RigTool {
    name: String,
    description: String,
    schema: Value,
    annotations: Annotations,
    work: Box<dyn Fn(Value) -> Boxed<Result<ToolOutput, ToolExecutionError>> + Send + Sync>,
}

/// Makes a tool of rig's one of ours.
///
/// rig keeps the words of most errors from the model; here they are what the diagnosis is made of, and the model sees them.
///
/// ```
/// use rig_core::tool::PortableTool;
/// use serde_json::{Value, json};
/// use unstuck::rig::from_rig;
/// use unstuck::{Annotations, ToolCall, Toolbox};
///
/// struct Echo;
///
/// impl PortableTool for Echo {
///     const NAME: &'static str = "echo";
///     type Args = Value;
///     type Output = Value;
///     type Error = std::io::Error;
///
///     fn description(&self) -> String {
///         "Says it again.".to_owned()
///     }
///
///     fn parameters(&self) -> Value {
///         json!({ "type": "object", "properties": { "word": { "type": "string" } } })
///     }
///
///     async fn call(&self, args: Value) -> Result<Value, std::io::Error> {
///         Ok(args)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), unstuck::BuildError> {
/// let echo = from_rig(Echo).annotated(Annotations::new().read_only());
/// let tools = Toolbox::builder().tool(echo).build()?;
///
/// let result = tools.call(ToolCall::new("echo", json!({ "word": "hi" }))).await;
/// assert_eq!(result.output(), &json!({ "word": "hi" }));
/// # Ok(())
/// # }
/// ```
pub fn from_rig(tool: impl ErasedTool + 'static) -> RigTool {
    let tool = Arc::new(tool);
    RigTool {
        name: tool.name(),
        description: tool.description(),
        schema: tool.parameters(),
        annotations: Annotations::new(),
        work: Box::new(move |input| {
            let tool = Arc::clone(&tool);
            Box::pin(
                async move { tool.execute(input.to_string(), &mut RigContext::new()).await.into_result() },
            )
        }),
    }
}

/// Makes a tool of rig's that is known at run time only, such as one of another MCP server, one of ours.
pub fn from_rig_dynamic(tool: DynamicTool) -> RigTool {
    let definition = tool.definition();
    RigTool {
        name: definition.name.to_string(),
        description: definition.description,
        schema: definition.parameters,
        annotations: Annotations::new(),
        work: Box::new(move |input| {
            let tool = tool.clone();
            Box::pin(async move { tool.execute(input).await })
        }),
    }
}

impl RigTool {
    /// Says what is known of it.
    #[must_use]
    pub fn annotated(self, annotations: Annotations) -> RigTool {
        RigTool { annotations, ..self }
    }
}

impl fmt::Debug for RigTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RigTool").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tool for RigTool {
    type Args = Value;
    type Output = Value;

    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn annotations(&self) -> Annotations {
        self.annotations.clone()
    }

    fn schema(&self) -> Value {
        self.schema.clone()
    }

    async fn call(&self, args: Value, _context: ToolContext) -> Result<Value, Failure> {
        let output = (self.work)(args).await.map_err(failure)?;
        Ok(match (output.as_json(), output.as_text()) {
            (Some(json), _) => json.clone(),
            (None, Some(text)) => text.into(),
            // Pictures, or several parts.
            (None, None) => serde_json::to_value(output)?,
        })
    }
}

fn failure(error: ToolExecutionError) -> Failure {
    let words = error.to_string();
    let known = match error.kind() {
        ToolErrorKind::NotFound => Some("not found"),
        ToolErrorKind::PermissionDenied => Some("permission denied"),
        ToolErrorKind::RateLimited => Some("rate limited"),
        ToolErrorKind::Network => Some("network error"),
        ToolErrorKind::InvalidArgs
        | ToolErrorKind::Timeout
        | ToolErrorKind::Cancelled
        | ToolErrorKind::Provider
        | ToolErrorKind::Other => None,
    };
    let (http_status, data) = (error.http_status(), error.model_output().as_json().cloned());
    let failure = match error.kind() {
        _ if error.is_refusal() => Failure::expected(words),
        ToolErrorKind::InvalidArgs => Failure::invalid(words),
        ToolErrorKind::Timeout => Failure::timed_out(words),
        ToolErrorKind::Cancelled => Failure::interrupted(words),
        ToolErrorKind::NotFound
        | ToolErrorKind::PermissionDenied
        | ToolErrorKind::RateLimited
        | ToolErrorKind::Network
        | ToolErrorKind::Provider
        | ToolErrorKind::Other => Failure::from(error),
    };
    // What rig knows beside the words is said in words, because the diagnosis reads words.
    let failure = known.into_iter().fold(failure, Failure::because);
    let failure = http_status.into_iter().fold(failure, Failure::http_status);
    // A tool that wrote something for the model wants it to be seen.
    data.into_iter().fold(failure, Failure::data)
}
