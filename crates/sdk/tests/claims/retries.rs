//! What is sent again, how often and when.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unstuck::{
    Annotations, CallResult, Channel, Failure, Kind, Policy, Session, Status, ToolCall, ToolContext, Toolbox,
    tool_fn,
};

use crate::{Count, NOT_DONE, RESET, both, call, in_time, kinds, swift, tool, until};

/// Calls a tool that always fails like this; returns what came, and how often it ran.
async fn failing(policy: Policy, annotations: Annotations, failure: Failure) -> (CallResult, u32) {
    let ran = Count::default();
    let counted = ran.clone();
    let fails = tool("work", annotations, move |_| {
        counted.up();
        Err(failure.clone())
    });
    let tools = Toolbox::builder().tool(fails).policy(policy).build().unwrap();
    (call(&tools, "work", json!({})).await, ran.get())
}

#[tokio::test]
async fn what_a_tool_says_of_itself_decides_whether_it_is_sent_again() {
    let check = async |annotations: Annotations, words: &str, times: u32| {
        let (result, ran) = failing(swift(), annotations.clone(), Failure::unexpected(words)).await;
        assert_eq!((result.status(), ran), (Status::Failed, times), "{annotations:?}: {words}");
    };
    let plain = Annotations::new;
    check(plain().read_only(), RESET, 3).await;
    check(plain().idempotent(), RESET, 3).await;
    check(plain().writes(), RESET, 1).await;
    // Nothing was done, so it may be sent again, unless it may destroy something.
    check(plain().writes(), NOT_DONE, 2).await;
    check(plain().destructive(), NOT_DONE, 1).await;
    check(plain().read_only(), "permission denied (os error 13)", 1).await;
}

#[tokio::test]
async fn a_policy_can_forbid_retries() {
    let failure = Failure::unexpected(RESET);
    assert_eq!(failing(swift().retries(0), Annotations::new().read_only(), failure.clone()).await.1, 1);
    assert_eq!(failing(swift().retries(1), Annotations::new().read_only(), failure).await.1, 2);
}

#[tokio::test]
async fn a_tool_says_itself_how_often_it_is_sent_again() {
    let check = async |policy: Policy, annotations: Annotations, times: u32| {
        let (_, ran) = failing(policy, annotations.read_only(), Failure::unexpected(RESET)).await;
        assert_eq!(ran, times);
    };
    check(swift(), Annotations::new().retries(0), 1).await;
    check(swift().retries(0), Annotations::new().retries(1), 2).await;
    check(swift().retries(1), Annotations::new().retries(4), 5).await;
}

#[tokio::test]
async fn where_it_is_certain_that_nothing_was_done_even_what_writes_is_sent_again() {
    let check = async |annotations: Annotations, failure: Failure, times: u32| {
        let (result, ran) = failing(swift(), annotations, failure.clone()).await;
        assert_eq!((result.status(), ran), (Status::Failed, times), "{failure:?}");
        let effect = result.verdict().map(|verdict| verdict.effect);
        let is_nothing = effect == Some(unstuck::Effect::Nothing);
        assert_eq!(is_nothing, failure.clone().nothing_done() == failure, "{failure:?}: {effect:?}");
    };
    let reset = || Failure::unexpected(RESET);
    check(Annotations::new().writes(), reset(), 1).await;
    check(Annotations::new().writes(), reset().nothing_done(), 3).await;
    check(Annotations::new(), reset().nothing_done(), 3).await;
    check(Annotations::new().destructive(), reset().nothing_done(), 1).await;
    // What does not pass is not sent again for that.
    let odd = || Failure::unexpected("the door is shut");
    check(Annotations::new().writes(), odd().nothing_done(), 1).await;
    check(Annotations::new().writes(), odd().passes(), 1).await;
    check(Annotations::new().writes(), odd().passes().nothing_done(), 2).await;
}

#[tokio::test]
async fn words_that_prove_nothing_send_nothing_again_that_writes() {
    let check = async |annotations: Annotations, failure: Failure, times: u32| {
        let (_, ran) = failing(swift(), annotations, failure.clone()).await;
        assert_eq!(ran, times, "{failure:?}");
    };
    let not_done = || Failure::unexpected(NOT_DONE).may_have_acted();
    check(Annotations::new().writes(), not_done(), 1).await;
    check(Annotations::new(), not_done(), 1).await;
    check(Annotations::new().idempotent(), not_done(), 2).await;
    check(Annotations::new().writes(), not_done().nothing_done(), 2).await;
}

#[tokio::test]
async fn no_retry_begins_after_the_time_that_the_caller_names_and_no_attempt_is_cut() {
    // The first wait after a connection that was reset is 3 s.
    let policy = Policy::default();
    let work = tool_fn("work", "", |_: Value, _: ToolContext| async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        Err::<(), _>(Failure::unexpected(RESET))
    })
    .annotated(Annotations::new().read_only());
    let tools = Toolbox::builder().tool(work).policy(policy).build().unwrap();
    let call = ToolCall::new("work", json!({})).retry_within(Duration::from_millis(100));
    let begun = Instant::now();
    let result = in_time(tools.call(call)).await;
    assert_eq!((result.tried().len(), result.error()), (1, Some(RESET)));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn the_result_tells_what_was_tried() {
    let (result, _) = failing(swift(), Annotations::new().read_only(), Failure::unexpected(RESET)).await;
    let tried: Vec<_> =
        result.tried().iter().map(|tried| (tried.attempt, tried.kind, &*tried.error)).collect();
    assert_eq!(tried, [1, 2, 3].map(|attempt| (attempt, Kind::Network, RESET)));
    assert!(result.tried()[0].waited.is_zero() && !result.tried()[1].waited.is_zero(), "{result:?}");
    let told = result.to_json();
    assert_eq!((told["tried"].as_array().unwrap().len(), &told["tried"][2]["kind"]), (3, &json!("network")));
}

#[tokio::test]
async fn every_retry_is_announced_before_its_wait() {
    for (which, tools, _folder) in both(|| {
        let again = Count::default();
        let fails_once = tool("work", Annotations::new().read_only(), move |_| match again.up() {
            1 => Err(Failure::unexpected(RESET)),
            _ => Ok(Value::Null),
        });
        let slow = "spread = \"1ms\"\n[kinds]\nnetwork.first_wait = \"400ms\"";
        Toolbox::builder().tool(fails_once).policy(Policy::default().overlaid(slow).unwrap())
    }) {
        let mut events = tools.events().subscribe([Channel::Progress]);
        let (result, seen) = tokio::join!(call(&tools, "work", json!({})), async {
            let announced = until(&mut events, "tool:retry").await.pop().unwrap();
            (announced, Instant::now(), until(&mut events, "tool:start").await.pop().unwrap(), Instant::now())
        });
        assert!(result.is_ok(), "{which}: {result:?}");
        let (announced, at_once, started, later) = seen;
        let told = announced.to_json();
        assert_eq!((&told["attempt"], &told["because"]), (&json!(2), &json!("network")), "{which}: {told}");
        assert!(told["wait_ms"].as_u64().unwrap() >= 400, "{which}: {told}");
        assert!(later - at_once > Duration::from_millis(250), "{which}: it is told before the wait");
        assert!(started.at() >= announced.at() + 400, "{which}");
        let first = until(&mut events, "tool:end").await;
        assert_eq!(kinds(&first), ["tool:end"], "{which}: and then it ends");
    }
}

#[tokio::test]
async fn all_attempts_at_a_call_belong_to_the_same_call_and_session() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let work = tool_fn("work", "", move |_: Value, context: ToolContext| {
        let call = context.call();
        let line = (call.id().clone(), call.session().clone(), context.attempt(), call.input().clone());
        noted.lock().unwrap().push(line);
        async { Err::<(), _>(Failure::unexpected(RESET)) }
    })
    .annotated(Annotations::new().read_only());
    let tools = Toolbox::builder().tool(work).policy(swift()).build().unwrap();
    let session = Session::from("mine");
    in_time(tools.call(ToolCall::new("work", json!(5)).session(&session).id("one"))).await;
    let expected = [1, 2, 3].map(|attempt| ("one".into(), session.clone(), attempt, json!(5)));
    assert_eq!(*seen.lock().unwrap(), expected);
    let records = tools.records(&session).await.unwrap();
    let ids: Vec<&str> = records.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids, ["one", "one#2", "one#3"]);
}

#[tokio::test]
async fn a_storm_of_failures_is_not_retried_any_longer() {
    for (which, tools, _folder) in both(|| {
        let ran = tool("work", Annotations::new().read_only(), |_| Err(Failure::unexpected(RESET)));
        Toolbox::builder().tool(ran).policy(swift().mode(unstuck::Mode::Shadow))
    }) {
        let mut tried = Vec::new();
        for n in 0..6 {
            tried.push(call(&tools, "work", json!({ "n": n })).await.tried().len());
        }
        assert_eq!((tried[0], tried[5]), (3, 1), "{which}: {tried:?}");
    }
}

#[tokio::test]
async fn a_retry_that_could_not_begin_before_the_deadline_is_not_waited_for() {
    let begun = Instant::now();
    // The first wait after a connection that was reset is 3 s.
    let policy = Policy::default().deadline(Duration::from_secs(2));
    let (result, ran) = failing(policy, Annotations::new().read_only(), Failure::unexpected(RESET)).await;
    assert_eq!((result.status(), ran), (Status::Failed, 1));
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn the_deadline_ends_an_attempt_that_would_last_longer() {
    let hangs = tool_fn("hang", "", |_: Value, _: ToolContext| std::future::pending::<Result<(), Failure>>());
    let policy = Policy::default().deadline(Duration::from_millis(300));
    let tools = Toolbox::builder().tool(hangs).policy(policy).build().unwrap();
    assert_eq!(call(&tools, "hang", json!({})).await.error_type(), Some("aborted"));
}

#[tokio::test]
async fn a_server_that_names_a_time_is_asked_again_then() {
    let again = Count::default();
    let limited = tool("work", Annotations::new().read_only(), move |_| match again.up() {
        1 => {
            let failure = Failure::unexpected("HTTP 429 Too Many Requests").http_status(429);
            Err(failure.retry_after(Duration::from_secs(1)))
        }
        _ => Ok(json!("served")),
    });
    let tools = Toolbox::builder().tool(limited).build().unwrap();
    let result = call(&tools, "work", json!({})).await;
    assert_eq!(result.output(), &json!("served"), "{result:?}");
    // Without its word the wait would be a minute.
    assert!((1..30).contains(&result.took().as_secs()), "{:?}", result.took());
}

#[tokio::test]
async fn an_attempt_after_a_timeout_gets_more_time() {
    let work = tool_fn("work", "", |_: Value, _: ToolContext| async {
        tokio::time::sleep(Duration::from_millis(1300)).await;
        Ok("done")
    })
    .annotated(Annotations::new().read_only().timeout(Duration::from_secs(1)));
    let tools = Toolbox::builder().tool(work).policy(swift()).build().unwrap();
    let result = call(&tools, "work", json!({})).await;
    assert_eq!(result.output(), &json!("done"), "{result:?}");
    assert_eq!(result.tried()[0].kind, Kind::Timeout);
}
