//! Tools of a toolbox for rig, and rig's tools in a toolbox.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rig_core::message::{CallId, ToolName, ToolResultContent, UserContent};
use rig_core::tool::{DynamicTool, PortableTool, ToolErrorKind, ToolExecutionError, ToolResult};
use rig_core::transcript::tool_result_output;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use unstuck::rig::{from_rig, from_rig_dynamic};
use unstuck::{Annotations, Policy, Status, ToolCall, ToolContext, Toolbox, tool_fn};

#[derive(Deserialize, JsonSchema)]
struct Path {
    path: String,
}

fn toolbox() -> Toolbox {
    let read = tool_fn("fs_read", "Reads a file.", |args: Path, _: ToolContext| async move {
        Ok(std::fs::read_to_string(args.path)?)
    })
    .annotated(Annotations::new().read_only());
    let burst = tool_fn("burst", "", |_: Value, _: ToolContext| async move {
        let all: Vec<u8> = Vec::new();
        Ok(all[std::hint::black_box(3)])
    });
    Toolbox::builder().tool(read).tool(burst).build().unwrap()
}

fn find(tools: &Toolbox, name: &str) -> DynamicTool {
    let all = unstuck::rig::tools(tools, tools.session());
    all.into_iter().find(|tool| *tool.name() == *name).unwrap()
}

/// What rig's loop puts before the model for this result, and whether it is marked as an error.
async fn seen_by_the_model(tool: &DynamicTool, input: Value) -> (Vec<ToolResultContent>, bool) {
    let result = tool.execute(input).await.map_or_else(ToolResult::failed, ToolResult::success);
    let name = ToolName::new("any").unwrap();
    match tool_result_output(CallId::from_wire("call-1"), name, &result) {
        UserContent::ToolResult(seen) => (seen.content, seen.is_error),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn rig_is_told_of_the_tools_as_they_are() {
    let definition = find(&toolbox(), "fs_read").definition();
    assert_eq!((&*definition.description, definition.name.as_str()), ("Reads a file.", "fs_read"));
    assert_eq!(definition.parameters["required"], json!(["path"]));
}

#[tokio::test]
async fn a_success_is_what_the_tool_answered() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    std::fs::write(&path, "hello").unwrap();
    let seen = seen_by_the_model(&find(&toolbox(), "fs_read"), json!({ "path": path })).await;
    assert_eq!(seen, (vec![ToolResultContent::text("hello")], false));
}

#[tokio::test]
async fn a_failure_reaches_the_model_as_json() {
    let tool = find(&toolbox(), "fs_read");
    let (seen, is_error) = seen_by_the_model(&tool, json!({ "path": "/no/such/file" })).await;
    let told = seen[0].as_json().unwrap();
    assert!(is_error, "{told:#}");
    assert_eq!(
        (&told["ok"], &told["diagnosis"]["kind"]),
        (&json!(false), &json!("path_not_found")),
        "{told:#}"
    );
}

#[tokio::test]
async fn rig_sees_an_error_of_the_nearest_kind() {
    let tools = toolbox();
    for (tool, input, kind, retryable) in [
        ("fs_read", json!({ "path": "/no/such/file" }), ToolErrorKind::NotFound, Some(false)),
        ("fs_read", json!({ "file": 1 }), ToolErrorKind::InvalidArgs, Some(false)),
        ("burst", json!({}), ToolErrorKind::Other, None),
    ] {
        let error = find(&tools, tool).execute(input).await.unwrap_err();
        assert_eq!((error.kind(), error.retryable()), (kind, retryable), "{tool}: {}", error.message());
        assert!(!error.is_refusal(), "{tool}");
    }
}

#[tokio::test]
async fn an_agent_that_repeats_itself_is_refused() {
    let tool = find(&toolbox(), "fs_read");
    let mut refused = Vec::new();
    for _ in 0..12 {
        let error = tool.execute(json!({ "path": "/no/such/file" })).await.unwrap_err();
        refused.push((error.is_refusal(), error.model_output().as_json().unwrap()["status"].clone()));
    }
    assert_eq!(refused[0], (false, json!("failed")));
    assert_eq!(refused[11], (true, json!("halted")), "{refused:?}");
}

/// A tool of rig's that fails as its first argument says, once or for ever.
struct Fails {
    made: Arc<AtomicU32>,
}

#[derive(Deserialize)]
struct How {
    how: String,
}

impl PortableTool for Fails {
    const NAME: &'static str = "fails";
    type Args = How;
    type Output = Value;
    type Error = ToolExecutionError;

    fn description(&self) -> String {
        "Fails.".to_owned()
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "properties": { "how": { "type": "string" } }, "required": ["how"] })
    }

    async fn call(&self, args: How) -> Result<Value, ToolExecutionError> {
        let made = self.made.fetch_add(1, Ordering::SeqCst);
        match &*args.how {
            "once" if made > 0 => Ok(json!({ "made": made })),
            "once" => Err(ToolExecutionError::from_error(io::Error::from_raw_os_error(104))),
            "refuse" => Err(ToolExecutionError::refused("not on a Sunday")),
            "invalid" => Err(ToolExecutionError::invalid_args("the date lies in the past")),
            "limited" => Err(ToolExecutionError::provider("slow down").with_http_status(429)),
            "busy" => Err(ToolExecutionError::rate_limited("later, please")),
            "forbidden" => Err(ToolExecutionError::permission_denied("not for you")),
            "panic" => panic!("it burst"),
            other => Ok(json!(other)),
        }
    }
}

/// Calls it, as rig's own or as one known at run time only: how it ended, what the model reads, and how often it ran.
async fn check(how: &str, status: Status, told: &str, ran: u32) {
    for is_dynamic in [false, true] {
        let made = Arc::new(AtomicU32::new(0));
        let tool = Fails { made: Arc::clone(&made) };
        let tool = match is_dynamic {
            false => from_rig(tool),
            true => {
                let tool = Arc::new(tool);
                let (name, schema) = (ToolName::new("fails").unwrap(), PortableTool::parameters(&*tool));
                from_rig_dynamic(DynamicTool::new(name, "Fails.", schema, move |args| {
                    let tool = Arc::clone(&tool);
                    let args = serde_json::from_value(args).unwrap();
                    Box::pin(async move { PortableTool::call(&*tool, args).await.map(Into::into) })
                }))
            }
        };
        let tool = tool.annotated(Annotations::new().read_only());
        // Too short for the wait after a rate limit.
        let policy = Policy::default().deadline(Duration::from_secs(10));
        let tools = Toolbox::builder().tool(tool).policy(policy).build().unwrap();
        let result = tools.call(ToolCall::new("fails", json!({ "how": how }))).await;
        assert_eq!(result.status(), status, "{result:#?}");
        assert!(result.to_json().to_string().contains(told), "{:#}", result.to_json());
        assert_eq!(made.load(Ordering::SeqCst), ran, "{result:#?}");
    }
}

#[tokio::test]
async fn a_tool_of_rigs_is_sent_again_where_that_may_help() {
    check("once", Status::Succeeded, r#""tried":[{"attempt":1"#, 2).await;
}

#[tokio::test]
async fn a_tool_of_rigs_that_panics_does_not_sink_the_agent() {
    check("panic", Status::Failed, "the tool panicked: it burst", 1).await;
}

#[tokio::test]
async fn what_rig_knows_of_a_failure_is_kept() {
    check("refuse", Status::Failed, "not on a Sunday", 1).await;
    check("invalid", Status::Failed, r#""errorType":"validation""#, 1).await;
    check("limited", Status::Failed, r#""kind":"rate_limited""#, 1).await;
    check("busy", Status::Failed, r#""kind":"rate_limited""#, 1).await;
    check("forbidden", Status::Failed, r#""kind":"permission""#, 1).await;
}

#[tokio::test]
async fn the_schema_of_a_tool_of_rigs_is_checked_first() {
    let made = Arc::new(AtomicU32::new(0));
    let tools = Toolbox::builder().tool(from_rig(Fails { made: Arc::clone(&made) })).build().unwrap();
    let result = tools.call(ToolCall::new("fails", json!({ "hwo": "once" }))).await;
    assert_eq!((result.error_type(), made.load(Ordering::SeqCst)), (Some("validation"), 0), "{result:#?}");
    assert!(result.error().unwrap().contains("how"), "{result:#?}");
}
