//! What the tests share: tools that fail as they are told, a hook that asks, and ways to look at what came.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use unstuck::{
    Annotations, Before, CallId, CallInfo, CallResult, CallState, Delivery, Event, Failure, Hook, Policy,
    Store, Subscription, Tool, ToolCall, ToolContext, Toolbox, ToolboxBuilder, tool_fn,
};

pub(crate) const RESET: &str = "connection reset by peer (os error 104)";
pub(crate) const NO_RECORD: &str = "no such record: 7";

/// A tool that takes anything.
pub(crate) fn tool(
    name: &str,
    annotations: Annotations,
    answer: impl Fn(Value) -> Result<Value, Failure> + Send + Sync + 'static,
) -> impl Tool {
    tool_fn(name, "", move |input: Value, _: ToolContext| std::future::ready(answer(input)))
        .annotated(annotations)
}

/// A tool that always fails like this.
pub(crate) fn failing(name: &str, annotations: Annotations, failure: Failure) -> impl Tool {
    tool(name, annotations, move |_| Err(failure.clone()))
}

/// A tool that never answers, and gives way to others.
pub(crate) fn hanging(name: &str) -> impl Tool {
    tool_fn(name, "", |_: Value, _: ToolContext| std::future::pending::<Result<(), Failure>>())
}

/// A policy without retries.
pub(crate) fn once() -> Policy {
    Policy::default().retries(0)
}

/// A toolbox with one tool.
pub(crate) fn with(tool: impl Tool) -> Toolbox {
    Toolbox::builder().tool(tool).policy(once()).build().unwrap()
}

/// The same toolbox without a store and with one; the folder lives as long as it is held.
pub(crate) fn both(make: impl Fn() -> ToolboxBuilder) -> [(&'static str, Toolbox, TempDir); 2] {
    let (none, some) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    [
        ("without a store", make().build().unwrap(), none),
        ("with a store", make().store(store(&some)).build().unwrap(), some),
    ]
}

/// A store in a folder. A busy machine is no broken store.
pub(crate) fn store(folder: &TempDir) -> Store {
    Store::at(folder.path().join("state")).patience(Duration::from_secs(20))
}

pub(crate) async fn call(tools: &Toolbox, name: &str, input: Value) -> CallResult {
    in_time(tools.call(ToolCall::new(name, input))).await
}

/// Whatever hangs fails here.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("it hangs")
}

/// All events up to the end; the toolbox is shut down for that.
pub(crate) async fn all_of(tools: &Toolbox, events: &mut Subscription) -> Vec<Arc<Event>> {
    in_time(tools.shutdown()).await;
    let mut seen = Vec::new();
    while let Some(delivery) = in_time(events.next()).await {
        match delivery {
            Delivery::Event(event) => seen.push(event),
            other => panic!("{other:?}"),
        }
    }
    seen
}

pub(crate) fn kinds(events: &[Arc<Event>]) -> Vec<&str> {
    events.iter().map(|event| event.kind()).collect()
}

/// Everything that a listener heard.
#[derive(Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<Value>>>);

impl Heard {
    pub(crate) fn by(&self) -> impl Fn(&Event) + Send + Sync + 'static {
        let heard = self.clone();
        move |event: &Event| heard.0.lock().unwrap().push(event.to_json())
    }

    pub(crate) fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }

    /// All, as soon as there are so many.
    pub(crate) async fn so_many(&self, many: usize) -> Vec<Value> {
        let begun = std::time::Instant::now();
        while self.all().len() < many {
            assert!(begun.elapsed() < Duration::from_secs(20), "only {:?}", self.all());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.all()
    }
}

/// Wants a person to look at what is called `risky`, and forbids what is called `forbidden`.
pub(crate) struct Careful;

impl Hook for Careful {
    fn name(&self) -> &str {
        "careful"
    }

    async fn before(&self, call: Arc<CallInfo>) -> Before {
        match call.tool() {
            "risky" => Before::Ask("may it?".to_owned()),
            "forbidden" => Before::Deny("never".to_owned()),
            _ => Before::Allow,
        }
    }
}

/// Where a call has been.
pub(crate) async fn trail(tools: &Toolbox, id: &CallId) -> Vec<CallState> {
    let records = in_time(tools.records(tools.session())).await.unwrap();
    let record = records.iter().find(|record| record.id == *id).unwrap();
    record.trail.iter().map(|step| step.state).collect()
}
