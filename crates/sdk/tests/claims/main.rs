//! What the library promises, through its public door alone: each promise by a test that fails when the layer behind it is gone
//! (`cargo xtask layers` takes them away one by one).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod advice;
mod approval;
mod events;
mod foreign;
mod hooks;
mod ladder;
mod resume;
mod retries;
mod stores;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;
use unstuck::{
    Annotations, CallResult, Delivery, Event, Failure, Policy, Store, Subscription, Tool, ToolCall,
    ToolContext, Toolbox, ToolboxBuilder, tool_fn,
};

/// What passes by itself, and what does not.
const RESET: &str = "connection reset by peer (os error 104)";
const NOT_DONE: &str = "not executed because a sibling tool call failed";
const NO_RECORD: &str = "no such record: 7";

#[derive(Deserialize, JsonSchema)]
struct Number {
    n: i64,
}

/// A tool that takes anything.
fn tool(
    name: &str,
    annotations: Annotations,
    answer: impl Fn(Value) -> Result<Value, Failure> + Send + Sync + 'static,
) -> impl Tool {
    tool_fn(name, "", move |input: Value, _: ToolContext| std::future::ready(answer(input)))
        .annotated(annotations)
}

/// Counts how often something happened.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU32>);

impl Count {
    fn up(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A policy whose waits are over at once.
fn swift() -> Policy {
    let kinds = ["network", "timeout", "server_error", "resource_busy", "aborted"];
    let rows: String = kinds.iter().map(|kind| format!("{kind}.first_wait = \"1ms\"\n")).collect();
    Policy::default().overlaid(&format!("spread = \"1ms\"\n[kinds]\n{rows}")).unwrap()
}

/// The same toolbox without a store and with one; the folder lives as long as it is held.
fn both(make: impl Fn() -> ToolboxBuilder) -> [(&'static str, Toolbox, TempDir); 2] {
    let (none, some) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    // A busy machine is no broken store.
    let store = Store::at(some.path().join("state")).patience(Duration::from_secs(20));
    [
        ("without a store", make().build().unwrap(), none),
        ("with a store", make().store(store).build().unwrap(), some),
    ]
}

async fn call(tools: &Toolbox, name: &str, input: Value) -> CallResult {
    in_time(tools.call(ToolCall::new(name, input))).await
}

/// Whatever hangs fails here.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("it hangs")
}

/// The next events, until one is of this type.
async fn until(events: &mut Subscription, kind: &str) -> Vec<Arc<Event>> {
    let mut seen = Vec::new();
    loop {
        match in_time(events.next()).await {
            Some(Delivery::Event(event)) => {
                seen.push(Arc::clone(&event));
                if event.kind() == kind {
                    return seen;
                }
            }
            other => panic!("{other:?} before `{kind}`"),
        }
    }
}

fn kinds(events: &[Arc<Event>]) -> Vec<&str> {
    events.iter().map(|event| event.kind()).collect()
}

/// Waits until something is so.
async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < Duration::from_secs(20), "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
