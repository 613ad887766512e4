//! A toolbox as the tools of an MCP server, with [rmcp](https://docs.rs/rmcp).

use std::sync::Arc;

use ::rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use ::rmcp::service::RequestContext;
use ::rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};
use unstuck_judge::nature::Nature;

use crate::annotations::Annotations;
use crate::call::{Session, ToolCall};
use crate::result::CallResult;
use crate::toolbox::{ToolDefinition, Toolbox};

/// The tools of a toolbox, served to one client.
///
/// A call that fails is no protocol error, which most clients keep from the model: it is a result with `isError`, and its
/// content is [`CallResult::to_json`]. Make a new one for each connection: each is a session of its own.
///
/// ```no_run
/// use rmcp::ServiceExt;
/// use unstuck::Toolbox;
/// use unstuck::rmcp::McpTools;
///
/// # async fn serve(stream: tokio::io::DuplexStream, tools: Toolbox) -> Result<(), Box<dyn std::error::Error>> {
/// let server = McpTools::new(&tools).named("weather", "1.0.0").serve(stream).await?;
/// server.waiting().await?;
/// # Ok(())
/// # }
/// ```
///
/// A server with more than tools hands those two requests on from its own handler: `self.tools.list_tools(…)` and
/// `self.tools.call_tool(…)`.
#[derive(Debug, Clone)]
pub struct McpTools {
    tools: Toolbox,
    session: Session,
    server: Implementation,
}

impl McpTools {
    /// The tools of a toolbox, in a session that nobody had before.
    pub fn new(tools: &Toolbox) -> McpTools {
        let server = Implementation::new("unstuck", env!("CARGO_PKG_VERSION"));
        McpTools { tools: tools.clone(), session: Session::new(), server }
    }

    /// The session its calls belong to, where it is known: that of an HTTP client which comes back.
    #[must_use]
    pub fn session(self, session: impl Into<Session>) -> McpTools {
        McpTools { session: session.into(), ..self }
    }

    /// What the server is called.
    #[must_use]
    pub fn named(self, name: impl Into<String>, version: impl Into<String>) -> McpTools {
        McpTools { server: Implementation::new(name, version), ..self }
    }
}

fn listed(definition: ToolDefinition) -> Tool {
    let ToolDefinition { name, description, schema, annotations } = definition;
    let description = (!description.is_empty()).then(|| description.into());
    Tool::new_with_raw(name, description, Arc::new(object(schema))).with_annotations(hints(&annotations))
}

impl ServerHandler for McpTools {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(self.server.clone())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let definition = self.tools.definitions().into_iter().find(|definition| definition.name == name)?;
        Some(listed(definition))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.definitions().into_iter().map(listed);
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let input = Value::Object(request.arguments.unwrap_or_default());
        let call = ToolCall::new(request.name, input).session(&self.session);
        // The client takes the request back or goes away: whoever stops waiting for a call cancels it.
        tokio::select! {
            result = self.tools.call(call) => Ok(answer(&result).into()),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the request was cancelled", None)),
        }
    }
}

/// A result as MCP has it.
fn answer(result: &CallResult) -> CallToolResult {
    if !result.is_ok() {
        return CallToolResult::structured_error(result.to_json());
    }
    let (output, more) = super::parted(result);
    let mut answer = match output {
        // Clients before 2026 take objects only.
        output @ Value::Object(_) => CallToolResult::structured(output),
        Value::String(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        output => CallToolResult::success(vec![ContentBlock::text(output.to_string())]),
    };
    answer.content.extend(more.map(|more| ContentBlock::text(more.to_string())));
    answer
}

/// What is known of a tool, in the words of MCP. What nobody said stays unsaid.
fn hints(annotations: &Annotations) -> ToolAnnotations {
    let hints = ToolAnnotations::new();
    let hints = match annotations.nature {
        Some(Nature::ReadOnly) => hints.read_only(true),
        Some(Nature::Idempotent) => hints.read_only(false).idempotent(true),
        Some(Nature::Writes) => hints.read_only(false).idempotent(false),
        Some(Nature::Unknown) | None => hints,
    };
    if annotations.is_destructive { hints.destructive(true) } else { hints }
}

/// A schema as MCP wants it: always that of an object.
fn object(schema: Value) -> Map<String, Value> {
    let mut schema = match schema {
        Value::Object(schema) => schema,
        // `true`: anything goes.
        _ => Map::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    schema
}
