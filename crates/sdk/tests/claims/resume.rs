//! What is known of calls when their process is gone, and of those nobody waited for.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use unstuck::{
    Annotations, Before, CallInfo, CallState, Channel, Failure, Hook, Policy, Session, Status, Store,
    ToolCall, ToolContext, Toolbox, tool_fn,
};

use crate::{Count, both, call, eventually, in_time, tool, until};

/// Wants a person to look at what is called `risky`.
struct Careful;

impl Hook for Careful {
    fn name(&self) -> &str {
        "careful"
    }

    async fn before(&self, call: Arc<CallInfo>) -> Before {
        match call.tool() {
            "risky" => Before::Ask("may it?".to_owned()),
            _ => Before::Allow,
        }
    }
}

fn toolbox(path: impl Into<PathBuf>) -> Toolbox {
    let hangs = tool_fn("hang", "", |_: Value, _: ToolContext| std::future::pending::<Result<(), Failure>>());
    Toolbox::builder()
        .tool(tool("echo", Annotations::new(), Ok))
        .tool(tool("risky", Annotations::new(), Ok))
        .tool(hangs)
        .hook(Careful)
        .session("s")
        .store(Store::at(path).patience(Duration::from_secs(20)))
        .build()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of `after_a_crash_the_model_is_told_the_truth_about_each_call`"]
async fn dies_in_the_middle() {
    let tools = toolbox(std::env::var_os("UNSTUCK_TEST_STORE").unwrap());
    let mut events = tools.events().subscribe([Channel::Progress]);
    in_time(tools.call(ToolCall::new("echo", json!({})).id("done"))).await;
    in_time(tools.call(ToolCall::new("risky", json!({})).id("waits"))).await;
    let hanging = tools.clone();
    tokio::spawn(async move { hanging.call(ToolCall::new("hang", json!({})).id("runs")).await });
    for _ in 0..3 {
        until(&mut events, "tool:start").await;
    }
    // What was ruled is written without anybody waiting for it; the records come after it.
    tools.records(tools.session()).await.unwrap();
    std::process::abort();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn after_a_crash_the_model_is_told_the_truth_about_each_call() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "resume::dies_in_the_middle", "--ignored"]).env("UNSTUCK_TEST_STORE", &path);
    let output = child.output().unwrap();
    assert!(!output.status.success(), "{output:?}");

    let tools = toolbox(&path);
    let session = Session::from("s");
    assert!(in_time(tools.resume(&Session::from("another"))).await.unwrap().is_empty());
    let mut results = in_time(tools.resume(&session)).await.unwrap();
    results.sort_by_key(|result| result.call().id().to_string());
    let told: Vec<_> = results
        .iter()
        .map(|result| {
            (result.call().id().as_str(), result.call().tool(), result.status(), result.error_type())
        })
        .collect();
    let aborted = (Status::Failed, Some("aborted"));
    assert_eq!(told, [("runs", "hang", aborted.0, aborted.1), ("waits", "risky", aborted.0, aborted.1)]);
    let check = |number: usize, words: &str| {
        let told = results[number].to_json();
        assert!(told["error"].as_str().unwrap().contains(words), "{told}");
        assert_eq!(told["ok"], json!(false));
    };
    check(0, "was running: check for side effects before repeating");
    check(1, "it did not run");

    assert!(in_time(tools.resume(&session)).await.unwrap().is_empty(), "each is told once");
    let states: Vec<CallState> =
        tools.records(&session).await.unwrap().iter().map(|record| record.state).collect();
    assert_eq!(states, [CallState::Completed, CallState::Sealed, CallState::Sealed]);
    assert!(call(&tools, "echo", json!({})).await.is_ok(), "and the session goes on");
}

#[tokio::test]
async fn a_call_that_runs_here_is_no_orphan() {
    let folder = TempDir::new().unwrap();
    let tools = toolbox(folder.path().join("state"));
    let mut events = tools.events().subscribe([Channel::Progress]);
    let hanging = tools.clone();
    let running = tokio::spawn(async move { hanging.call(ToolCall::new("hang", json!({}))).await });
    until(&mut events, "tool:start").await;
    assert!(in_time(tools.resume(&Session::from("s"))).await.unwrap().is_empty());
    running.abort();
}

#[tokio::test]
async fn the_record_of_a_call_tells_how_it_came_where_it_stands() {
    for (which, tools, _folder) in both(|| {
        Toolbox::builder().tool(tool("echo", Annotations::new(), Ok)).tool(tool(
            "fail",
            Annotations::new(),
            |_| Err(Failure::expected("no such record: 7")),
        ))
    }) {
        call(&tools, "echo", json!({})).await;
        call(&tools, "fail", json!({})).await;
        let records = in_time(tools.records(tools.session())).await.unwrap();
        let states: Vec<Vec<CallState>> =
            records.iter().map(|record| record.trail.iter().map(|step| step.state).collect()).collect();
        for (states, end) in states.iter().zip([CallState::Completed, CallState::Failed]) {
            assert!(states.contains(&CallState::Executing), "{which}: {states:?}");
            assert_eq!(states.last(), Some(&end), "{which}: {states:?}");
        }
        assert_eq!(states.len(), 2, "{which}");
        assert!(records[1].trail.last().unwrap().note.contains("no such record"), "{which}: {records:?}");
        assert!(tools.records(&Session::from("another")).await.unwrap().is_empty(), "{which}");
    }
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_is_recorded_as_failed() {
    for (which, tools, _folder) in both(|| {
        let hangs = |_: Value, _: ToolContext| std::future::pending::<Result<(), Failure>>();
        Toolbox::builder().tool(tool_fn("hang", "", hangs))
    }) {
        let mut events = tools.events().subscribe([Channel::Progress]);
        let mut call = Box::pin(tools.call(ToolCall::new("hang", json!({}))));
        tokio::select! {
            _ = &mut call => panic!("{which}: it never answers"),
            _ = until(&mut events, "tool:start") => {}
        }
        drop(call);
        eventually(which, async || {
            let records = tools.records(tools.session()).await.unwrap();
            records[0].state == CallState::Failed
        })
        .await;
        until(&mut events, "tool:end").await;
    }
}

#[tokio::test]
async fn so_is_one_that_was_held_back_and_never_ran() {
    for (which, tools, _folder) in both(|| {
        let limited = Failure::unexpected("HTTP 429 Too Many Requests").http_status(429);
        let limited = limited.retry_after(Duration::from_secs(8));
        let work = tool("work", Annotations::new().read_only(), move |_| Err(limited.clone()));
        Toolbox::builder().tool(work).policy(Policy::default().retries(0))
    }) {
        call(&tools, "work", json!({})).await;
        let mut events = tools.events().subscribe([Channel::Progress]);
        let mut held = Box::pin(tools.call(ToolCall::new("work", json!({}))));
        tokio::select! {
            _ = &mut held => panic!("{which}: it has to wait"),
            _ = until(&mut events, "tool:retry") => {}
        }
        drop(held);
        eventually(which, async || {
            let records = tools.records(tools.session()).await.unwrap();
            records.len() == 2 && records[1].state == CallState::Failed
        })
        .await;
    }
}

#[tokio::test]
async fn shutdown_ends_what_runs_at_once() {
    let begun = Count::default();
    for (number, (which, tools, _folder)) in both(|| {
        let begun = begun.clone();
        let hangs = move |_: Value, _: ToolContext| {
            begun.up();
            std::future::pending::<Result<(), Failure>>()
        };
        Toolbox::builder().tool(tool_fn("hang", "", hangs))
    })
    .into_iter()
    .enumerate()
    {
        let hanging = tools.clone();
        let running = tokio::spawn(async move { call(&hanging, "hang", json!({})).await });
        eventually("it runs", async || begun.get() as usize > number).await;
        in_time(tools.shutdown()).await;
        let result = running.await.unwrap();
        assert!(result.error().unwrap().contains("shut down"), "{which}: {result:?}");
    }
}
