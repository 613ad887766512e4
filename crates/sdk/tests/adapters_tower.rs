//! A toolbox in tower stacks, and tower stacks as tools.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, service_fn};
use unstuck::tower::{SelfCorrecting, Served};
use unstuck::{
    Annotations, Before, CallInfo, CallResult, Failure, Hook, Policy, Status, ToolCall, ToolContext, Toolbox,
    tool_fn,
};

/// A service that answers each attempt with what the script says of it, the last line for ever.
#[derive(Clone)]
struct Script {
    lines: &'static [Line],
    made: Arc<AtomicU32>,
}

#[derive(Clone, Copy)]
enum Line {
    Answers(&'static str),
    Fails(&'static str),
    Panics,
    Hangs,
}

fn script(lines: &'static [Line]) -> Script {
    Script { lines, made: Arc::default() }
}

impl Script {
    async fn next(self, context: ToolContext) -> Result<Value, BoxError> {
        let made = self.made.fetch_add(1, Ordering::SeqCst) as usize;
        match self.lines[made.min(self.lines.len() - 1)] {
            Line::Answers(words) => Ok(json!({ "words": words, "input": context.call().input() })),
            Line::Fails(words) => Err(words.into()),
            Line::Panics => panic!("the service burst"),
            Line::Hangs => std::future::pending().await,
        }
    }
}

fn search(annotations: Annotations) -> Served {
    let schema = json!({
        "type": "object", "properties": { "query": { "type": "string" } }, "required": ["query"],
    });
    Served::new("search", "Searches.").schema(schema).annotated(annotations)
}

fn layer(annotations: Annotations) -> SelfCorrecting {
    SelfCorrecting::new(Toolbox::builder(), [search(annotations)]).unwrap()
}

/// Sends one call through the layer to a service that follows the script, and says how it ended and after how many attempts.
async fn send(lines: &'static [Line], annotations: Annotations, input: Value) -> (CallResult, u32) {
    let script = script(lines);
    let made = Arc::clone(&script.made);
    let service = ServiceBuilder::new()
        .layer(layer(annotations))
        .timeout(Duration::from_millis(200))
        .service(service_fn(move |context| script.clone().next(context)));
    let result = service.oneshot(ToolCall::new("search", input)).await.unwrap();
    (result, made.load(Ordering::SeqCst))
}

fn query() -> Value {
    json!({ "query": "rust" })
}

#[tokio::test]
async fn a_toolbox_stands_behind_any_stack() {
    let tool = tool_fn("search", "", |_: Value, _: ToolContext| async move { Ok("found") });
    let tools = Toolbox::builder().tool(tool).build().unwrap();
    let mut stack = ServiceBuilder::new()
        .concurrency_limit(1)
        .map_request(|query: &str| ToolCall::new("search", json!({ "query": query })))
        .map_response(|result: CallResult| result.to_json())
        .service(tools);
    let answer = stack.ready().await.unwrap().call("rust").await.unwrap();
    assert_eq!(answer, json!({ "ok": true, "output": "found" }));
}

#[tokio::test]
async fn what_the_service_answers_is_the_result() {
    let (result, made) = send(&[Line::Answers("yes")], Annotations::new(), query()).await;
    assert_eq!((result.output(), made), (&json!({ "words": "yes", "input": query() }), 1), "{result:#?}");
}

#[tokio::test]
async fn an_error_that_passes_by_itself_is_sent_again() {
    let lines = &[Line::Fails("connection reset by peer (os error 104)"), Line::Answers("yes")];
    let (result, made) = send(lines, Annotations::new().read_only(), query()).await;
    assert_eq!((result.status(), made), (Status::Succeeded, 2), "{result:#?}");
    assert_eq!(result.to_json()["tried"][0]["kind"], "network");
}

#[tokio::test]
async fn an_error_of_a_service_that_writes_is_told_and_not_sent_again() {
    let lines = &[Line::Fails("connection reset by peer (os error 104)"), Line::Answers("yes")];
    let (result, made) = send(lines, Annotations::new().writes(), query()).await;
    assert_eq!((result.status(), made), (Status::Failed, 1), "{result:#?}");
    assert_eq!(result.to_json()["diagnosis"]["kind"], "network", "{:#}", result.to_json());
}

#[tokio::test]
async fn arguments_that_do_not_fit_never_reach_the_service() {
    let (result, made) = send(&[Line::Answers("yes")], Annotations::new(), json!({ "query": 3 })).await;
    assert_eq!((result.error_type(), made), (Some("validation"), 0), "{result:#?}");
}

#[tokio::test]
async fn a_service_that_panics_does_not_sink_the_stack() {
    let (result, made) = send(&[Line::Panics], Annotations::new().writes(), query()).await;
    assert_eq!((result.error_type(), made), (Some("exception"), 1), "{result:#?}");
    assert!(result.error().unwrap().contains("the service burst"), "{result:?}");
}

#[tokio::test]
async fn a_timeout_in_the_stack_is_one_for_each_attempt() {
    let lines = &[Line::Hangs, Line::Answers("yes")];
    let (result, made) = send(lines, Annotations::new().read_only(), query()).await;
    assert_eq!((result.status(), made), (Status::Succeeded, 2), "{result:#?}");
    assert_eq!(result.to_json()["tried"][0]["kind"], "timeout");
}

#[tokio::test]
async fn a_failure_keeps_what_it_knows_on_its_way_through_the_stack() {
    let made = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&made);
    let busy = service_fn(move |_: ToolContext| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            match first {
                true => {
                    Err(Failure::expected("not now").http_status(429).retry_after(Duration::from_secs(1)))
                }
                false => Ok("now"),
            }
        }
    });
    let service = ServiceBuilder::new()
        .layer(layer(Annotations::new().read_only()))
        .timeout(Duration::from_secs(5))
        .service(busy);
    let begun = Instant::now();
    let result = service.oneshot(ToolCall::new("search", query())).await.unwrap();
    assert_eq!(result.output(), "now", "{result:#?}");
    assert_eq!(result.to_json()["tried"][0]["kind"], "rate_limited");
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn services_of_one_layer_share_what_is_known_to_fail() {
    let layer = layer(Annotations::new().read_only());
    let mut statuses = Vec::new();
    for _ in 0..12 {
        let script = script(&[Line::Fails("no such file or directory")]);
        let service = ServiceBuilder::new()
            .layer(&layer)
            .service(service_fn(move |context| script.clone().next(context)));
        statuses.push(service.oneshot(ToolCall::new("search", query())).await.unwrap().status());
    }
    assert!(statuses.contains(&Status::Denied), "{statuses:?}");
    assert_eq!(statuses.last(), Some(&Status::Halted), "{statuses:?}");
}

/// Two calls at once, through two services of one layer: each is answered by its own.
async fn check_at_once(one: ToolCall, other: ToolCall) {
    let layer = layer(Annotations::new());
    let named = |name: &'static str, call| {
        let work = move |_: ToolContext| async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok::<_, BoxError>(name)
        };
        ServiceBuilder::new().layer(&layer).service(service_fn(work)).oneshot(call)
    };
    let (one, other) = tokio::join!(named("one", one), named("other", other));
    assert_eq!((one.unwrap().into_output(), other.unwrap().into_output()), (json!("one"), json!("other")));
}

#[tokio::test]
async fn each_service_of_a_layer_does_its_own_calls() {
    let call = || ToolCall::new("search", query());
    check_at_once(call(), call()).await;
    check_at_once(call().id("call_0").session("a"), call().id("call_0").session("b")).await;
}

#[tokio::test]
async fn a_name_that_comes_back_leads_to_the_service_that_is_called_now() {
    let layer = layer(Annotations::new());
    let service = |name: &'static str, wait| {
        let work = move |_: ToolContext| async move {
            tokio::time::sleep(Duration::from_millis(wait)).await;
            Ok::<_, BoxError>(name)
        };
        ServiceBuilder::new().layer(&layer).service(service_fn(work))
    };
    let call = |session| ToolCall::new("search", query()).id("call_0").session(session);
    service("first", 0).oneshot(call("a")).await.unwrap();
    // The toolbox calls the second one of this name otherwise, and a third service is the latest when it begins.
    let (again, other) =
        tokio::join!(service("again", 50).oneshot(call("a")), service("other", 0).oneshot(call("b")));
    assert_eq!(
        (again.unwrap().into_output(), other.unwrap().into_output()),
        (json!("again"), json!("other"))
    );
}

struct AskFirst;

impl Hook for AskFirst {
    fn name(&self) -> &str {
        "ask-first"
    }

    async fn before(&self, _call: Arc<CallInfo>) -> Before {
        Before::Ask("may it search?".into())
    }
}

#[tokio::test]
async fn a_call_that_a_person_allows_later_still_finds_its_service() {
    let layer = SelfCorrecting::new(Toolbox::builder().hook(AskFirst), [search(Annotations::new())]).unwrap();
    let script = script(&[Line::Answers("yes")]);
    let service =
        ServiceBuilder::new().layer(&layer).service(service_fn(move |context| script.clone().next(context)));
    let asked = service.oneshot(ToolCall::new("search", query()).id("toolu_01")).await.unwrap();
    assert_eq!(asked.status(), Status::Paused);
    let result = layer.toolbox().approve(asked.call()).await.unwrap();
    assert_eq!(result.output()["words"], "yes", "{result:#?}");
}

#[tokio::test]
async fn a_service_that_is_never_ready_is_given_up_in_time() {
    let policy = Policy::default().timeout(Duration::from_millis(200)).retries(0);
    let layer = SelfCorrecting::new(Toolbox::builder().policy(policy), [search(Annotations::new())]).unwrap();
    let limited = ServiceBuilder::new()
        .concurrency_limit(1)
        .service(service_fn(|_: ToolContext| std::future::pending::<Result<Value, BoxError>>()));
    let first = ServiceBuilder::new().layer(&layer).service(limited.clone());
    let second = ServiceBuilder::new().layer(&layer).service(limited);
    let begun = Instant::now();
    let other = json!({ "query": "other" });
    let (first, second) = tokio::join!(
        first.oneshot(ToolCall::new("search", query())),
        second.oneshot(ToolCall::new("search", other))
    );
    for result in [first.unwrap(), second.unwrap()] {
        assert_eq!(result.error_type(), Some("aborted"), "{result:#?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
