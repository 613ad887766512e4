//! A toolbox as an MCP server: a real client and a real server, with a pipe between them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rmcp::model::{CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, Tool};
use rmcp::service::{PeerRequestOptions, RunningService};
use rmcp::{RoleClient, ServiceExt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use unstuck::rmcp::McpTools;
use unstuck::{Annotations, Failure, Policy, Session, ToolContext, Toolbox, tool_fn};

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Path {
    /// Where it lies.
    path: String,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    count: u32,
}

/// What became of the tool `wait`.
#[derive(Default)]
struct Waiting {
    has_begun: AtomicBool,
    was_dropped: AtomicBool,
}

struct Dropped(Arc<Waiting>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.was_dropped.store(true, Ordering::SeqCst);
    }
}

fn toolbox(waiting: &Arc<Waiting>) -> Toolbox {
    let read = tool_fn("fs_read", "Reads a file.", |args: Path, _: ToolContext| async move {
        Ok(json!({ "text": std::fs::read_to_string(args.path)? }))
    })
    .annotated(Annotations::new().read_only());
    let tries = AtomicU32::new(0);
    let fetch = tool_fn("fetch", "", move |_: Nothing, _: ToolContext| {
        let first = tries.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            match first {
                true => Err(Failure::unexpected("connection reset by peer (os error 104)")),
                false => Ok("here"),
            }
        }
    })
    .annotated(Annotations::new().idempotent());
    let delete = tool_fn("delete", "", |args: Count, _: ToolContext| async move { Ok(args.count) })
        .annotated(Annotations::new().destructive());
    let burst = tool_fn("burst", "", |_: Value, _: ToolContext| async move {
        let all: Vec<u8> = Vec::new();
        Ok(all[std::hint::black_box(3)])
    });
    let waiting = Arc::clone(waiting);
    let wait = tool_fn("wait", "", move |_: Nothing, _: ToolContext| {
        let dropped = Dropped(Arc::clone(&waiting));
        async move {
            dropped.0.has_begun.store(true, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(dropped);
            Ok(())
        }
    });
    let policy = Policy::default().repair_arguments();
    let builder = Toolbox::builder().tool(read).tool(fetch).tool(delete).tool(burst).tool(wait);
    builder.policy(policy).build().unwrap()
}

/// A client of a server with those tools.
async fn connect(tools: &Toolbox, session: &str) -> RunningService<RoleClient, ()> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let server = McpTools::new(tools).session(session).named("demo", "1.2.3");
    tokio::spawn(async move { server.serve(theirs).await.unwrap().waiting().await });
    ().serve(ours).await.unwrap()
}

fn params(tool: &'static str, input: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(input.as_object().unwrap().clone())
}

/// Calls one tool of a new server.
async fn call(tool: &'static str, input: Value) -> CallToolResult {
    let client = connect(&toolbox(&Arc::default()), "one").await;
    client.call_tool(params(tool, input)).await.unwrap()
}

fn texts(result: &CallToolResult) -> Vec<&str> {
    result.content.iter().map(|part| &*part.as_text().unwrap().text).collect()
}

/// What a failure tells the model: the same as text and as structure.
#[track_caller]
fn failure(result: &CallToolResult) -> &Value {
    assert_eq!(result.is_error, Some(true), "{result:#?}");
    let told = result.structured_content.as_ref().unwrap();
    assert_eq!(texts(result), [told.to_string()]);
    assert_eq!(told["ok"], false);
    told
}

#[tokio::test]
async fn tools_are_listed_with_schema_and_hints() {
    let client = connect(&toolbox(&Arc::default()), "one").await;
    let server = client.peer_info().unwrap().server_info.clone().unwrap();
    assert_eq!((&*server.name, &*server.version), ("demo", "1.2.3"));
    let tools = client.list_all_tools().await.unwrap();
    let hints = |tool: &Tool| serde_json::to_value(tool.annotations.as_ref().unwrap()).unwrap();
    let listed: Vec<(&str, Value)> = tools.iter().map(|tool| (&*tool.name, hints(tool))).collect();
    let expected = [
        ("fs_read", json!({ "readOnlyHint": true })),
        ("fetch", json!({ "readOnlyHint": false, "idempotentHint": true })),
        ("delete", json!({ "readOnlyHint": false, "idempotentHint": false, "destructiveHint": true })),
        ("burst", json!({})),
        ("wait", json!({})),
    ];
    assert_eq!(listed, expected);
    let read = &tools[0];
    assert_eq!(read.description.as_deref(), Some("Reads a file."));
    assert_eq!(read.input_schema["properties"]["path"]["description"], "Where it lies.");
    assert!(tools.iter().all(|tool| tool.input_schema["type"] == "object"), "{tools:#?}");
}

#[tokio::test]
async fn an_object_is_structured_content_and_text() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    std::fs::write(&path, "hello").unwrap();
    let result = call("fs_read", json!({ "path": path })).await;
    assert_eq!(result.is_error, Some(false), "{result:#?}");
    assert_eq!(result.structured_content, Some(json!({ "text": "hello" })));
    assert_eq!(texts(&result), [r#"{"text":"hello"}"#]);
}

#[tokio::test]
async fn what_was_tried_and_repaired_stands_beside_a_success() {
    let result = call("fetch", json!({})).await;
    let texts = texts(&result);
    assert_eq!((texts[0], &result.structured_content, texts.len()), ("here", &None, 2), "{result:#?}");
    let beside: Value = serde_json::from_str(texts[1]).unwrap();
    assert_eq!(beside["tried"][0]["kind"], "network");

    let result = call("delete", json!({ "count": "3" })).await;
    assert!(result.content[1].as_text().unwrap().text.contains("repairs"), "{result:#?}");
}

#[tokio::test]
async fn a_failure_is_a_result_with_its_diagnosis() {
    let result = call("fs_read", json!({ "path": "/no/such/file" })).await;
    let told = failure(&result);
    assert_eq!((&told["diagnosis"]["kind"], &told["retryable"]), (&json!("path_not_found"), &json!(false)));
    assert!(!told["recommendations"].as_array().unwrap().is_empty(), "{told:#}");
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_a_result_and_no_protocol_error() {
    let result = call("fs_read", json!({ "file": "x" })).await;
    assert_eq!(failure(&result)["errorType"], "validation");
    let result = call("fs_raed", json!({})).await;
    let told = failure(&result);
    assert!(told["error"].as_str().unwrap().contains("fs_read"), "{told:#}");
}

#[tokio::test]
async fn a_panic_is_a_result_and_the_server_goes_on() {
    let client = connect(&toolbox(&Arc::default()), "one").await;
    let result = client.call_tool(params("burst", json!({}))).await.unwrap();
    assert_eq!(failure(&result)["errorType"], "exception");
    let result = client.call_tool(params("delete", json!({ "count": 1 }))).await.unwrap();
    assert_eq!((result.is_error, texts(&result)), (Some(false), vec!["1"]));
}

#[tokio::test]
async fn a_client_that_repeats_itself_is_refused_and_another_is_not() {
    let tools = toolbox(&Arc::default());
    let client = connect(&tools, "one").await;
    let mut statuses = Vec::new();
    for _ in 0..12 {
        let result = client.call_tool(params("fs_read", json!({ "path": "/no/such/file" }))).await.unwrap();
        statuses.push(failure(&result)["status"].as_str().unwrap().to_owned());
    }
    assert_eq!((&*statuses[0], &*statuses[11]), ("failed", "halted"), "{statuses:?}");
    assert!(statuses.iter().any(|status| status == "denied"), "{statuses:?}");

    let other = connect(&tools, "two").await;
    let result = other.call_tool(params("fs_read", json!({ "path": "/no/such/file" }))).await.unwrap();
    assert_eq!(failure(&result)["status"], "failed");
}

/// Waits until something is so, but not for ever.
async fn soon(what: impl Fn() -> bool) -> bool {
    for _ in 0..1_000 {
        if what() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

/// Starts the tool that waits, has `end` end the request somehow, and looks that the tool was stopped and the record says so.
async fn check_cancelled<E: Future<Output = ()>>(
    end: impl FnOnce(RunningService<RoleClient, ()>, rmcp::service::RequestHandle<RoleClient>) -> E,
) {
    let waiting = Arc::new(Waiting::default());
    let tools = toolbox(&waiting);
    let client = connect(&tools, "one").await;
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params("wait", json!({}))));
    let handle = client.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
    assert!(soon(|| waiting.has_begun.load(Ordering::SeqCst)).await, "it began");
    end(client, handle).await;
    assert!(soon(|| waiting.was_dropped.load(Ordering::SeqCst)).await, "it was stopped");
    let session = Session::from("one");
    for _ in 0..1_000 {
        let records = tools.records(&session).await.unwrap();
        if records.len() == 1 && records[0].state.is_final() {
            let last = records[0].trail.last().unwrap();
            assert!(last.note.contains("interrupted"), "{records:#?}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{:#?}", tools.records(&session).await.unwrap());
}

#[tokio::test]
async fn a_request_taken_back_stops_the_tool() {
    check_cancelled(|client, handle| async move {
        handle.cancel(None).await.unwrap();
        // The connection stays.
        client.list_all_tools().await.unwrap();
    })
    .await;
}

// Takes five seconds: rmcp lets requests that run end before it gives them up.
#[tokio::test]
async fn a_client_that_goes_away_stops_the_tool() {
    check_cancelled(|client, _handle| async move {
        client.cancel().await.unwrap();
    })
    .await;
}
