//! What the bus tells of calls.

use std::sync::{Arc, Mutex};

use serde_json::json;
use unstuck::{
    Annotations, Bookmark, Channel, Delivery, Failure, Session, ToolCall, Toolbox, ToolboxBuilder,
};

use crate::{Count, NO_RECORD, both, call, eventually, in_time, kinds, tool, until};

fn make() -> ToolboxBuilder {
    Toolbox::builder().tool(tool("echo", Annotations::new(), Ok)).tool(tool(
        "fail",
        Annotations::new(),
        |_| Err(Failure::expected(NO_RECORD)),
    ))
}

#[tokio::test]
async fn who_subscribes_from_a_bookmark_gets_what_followed_it_and_then_what_comes() {
    // Where no event is kept in memory, the store has them all.
    let [_, none_kept] = both(|| make().event_capacity(0));
    for (which, tools, _folder) in both(make).into_iter().chain([none_kept]) {
        call(&tools, "echo", json!(1)).await;
        let bookmark = tools.events().newest();
        call(&tools, "echo", json!(2)).await;
        let mut late = tools.events().subscribe([Channel::Progress]).from(bookmark);
        let mut all = tools.events().subscribe([Channel::Progress]).from(Bookmark(0));
        call(&tools, "fail", json!(3)).await;
        let fresh = tools.events().subscribe([Channel::Progress]);
        in_time(tools.shutdown()).await;
        let late = drained(&mut late).await;
        let numbers: Vec<_> = late.iter().map(|event| event.bookmark().unwrap()).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{which}: {numbers:?}");
        assert!(numbers[0] > bookmark, "{which}: {numbers:?} after {bookmark:?}");
        let expected = ["tool:start", "tool:end", "tool:start", "tool:error", "tool:end", "tool:advice"];
        assert_eq!(kinds(&late), expected, "{which}");
        let all = drained(&mut all).await;
        assert_eq!(kinds(&all), [&["tool:start", "tool:end"], &*kinds(&late)].concat(), "{which}");
        let mut fresh = fresh;
        assert!(
            drained(&mut fresh).await.is_empty(),
            "{which}: without a bookmark it begins where it was made"
        );
    }
}

/// All events up to the end.
async fn drained(events: &mut unstuck::Subscription) -> Vec<Arc<unstuck::Event>> {
    let mut seen = Vec::new();
    while let Some(delivery) = in_time(events.next()).await {
        match delivery {
            Delivery::Event(event) => seen.push(event),
            other => panic!("{other:?}"),
        }
    }
    seen
}

#[tokio::test]
async fn a_subscriber_gets_the_channels_types_and_session_it_asked_for() {
    for (which, tools, _folder) in both(make) {
        let events = tools.events();
        let mut monitor = events.subscribe([Channel::Monitor]);
        let mut ends = events.subscribe(Channel::ALL).types(["tool:end"]);
        let mut mine = events.subscribe([Channel::Progress]).session("mine");
        for session in ["mine", "yours"] {
            let fail = ToolCall::new("fail", json!({ "of": session })).session(Session::from(session));
            in_time(tools.call(fail)).await;
        }
        in_time(tools.shutdown()).await;
        let monitored = drained(&mut monitor).await;
        assert!(monitored.iter().all(|event| event.channel() == Channel::Monitor), "{which}: {monitored:?}");
        assert_eq!(monitored.iter().filter(|event| event.kind() == "error").count(), 2, "{which}");
        assert_eq!(kinds(&drained(&mut ends).await), ["tool:end", "tool:end"], "{which}");
        let mine = drained(&mut mine).await;
        assert_eq!(kinds(&mine), ["tool:start", "tool:error", "tool:end", "tool:advice"], "{which}");
        assert!(mine.iter().all(|event| event.session() == Some("mine")), "{which}");
    }
}

#[tokio::test]
async fn the_events_of_a_failure_have_the_shapes_that_the_page_promises() {
    for (which, tools, _folder) in both(make) {
        let mut events = tools.events().subscribe(Channel::ALL);
        in_time(tools.call(ToolCall::new("fail", json!({})).id("toolu_01"))).await;
        let told = until(&mut events, "tool:error").await.pop().unwrap();
        let bookmark = told.bookmark().unwrap();
        let told = told.to_json();
        for (field, value) in [
            ("v", json!(1)),
            ("channel", json!("progress")),
            ("type", json!("tool:error")),
            ("bookmark", json!(bookmark.0)),
            ("error", json!(NO_RECORD)),
            ("errorType", json!("logical")),
            ("session", json!(tools.session().as_str())),
        ] {
            assert_eq!(told[field], value, "{which}: {field} of {told}");
        }
        let call = &told["call"];
        let named = (&call["key"], &call["tool"], &call["agent"], &call["state"]);
        assert_eq!(named, (&json!("toolu_01"), &json!("fail"), &json!("main"), &json!("failed")), "{which}");
        let told = until(&mut events, "error").await.pop().unwrap().to_json();
        let said = (&told["channel"], &told["severity"], &told["phase"], &told["message"]);
        let expected = (&json!("monitor"), &json!("warn"), &json!("tool"), &json!(NO_RECORD));
        assert!(told["detail"].is_object(), "{which}: {told}");
        assert_eq!(said, expected, "{which}: {told}");
    }
}

#[tokio::test]
async fn a_slow_subscriber_is_told_what_it_missed_and_with_a_store_misses_nothing() {
    for (which, tools, _folder) in both(|| make().event_capacity(4)) {
        let mut slow = tools.events().subscribe([Channel::Progress]);
        for n in 0..10 {
            call(&tools, "echo", json!(n)).await;
        }
        in_time(tools.shutdown()).await;
        let (mut got, mut missed) = (0, 0);
        while let Some(delivery) = in_time(slow.next()).await {
            match delivery {
                Delivery::Event(_) => got += 1,
                Delivery::Missed(some) => missed += some.count,
                _ => {}
            }
        }
        let expected = if which == "with a store" { (20, 0) } else { (4, 16) };
        assert_eq!((got, missed), expected, "{which}");
    }
}

#[tokio::test]
async fn a_callback_that_panics_is_told_of_and_hears_the_next_event() {
    for (which, tools, _folder) in both(make) {
        let heard = Count::default();
        let counted = heard.clone();
        let mut monitor = tools.events().subscribe([Channel::Monitor]).types(["error"]);
        let listener = tools.events().on("tool:error", move |_| {
            assert!(counted.up() > 1, "the first one is too much");
        });
        for n in 0..3 {
            call(&tools, "fail", json!({ "n": n })).await;
        }
        eventually("it hears all three", async || heard.get() == 3).await;
        assert_eq!(listener.panics(), 1, "{which}");
        let told = in_time(async {
            loop {
                let told = until(&mut monitor, "error").await.pop().unwrap().to_json();
                if told["phase"] == "listener" {
                    return told;
                }
            }
        });
        assert!(told.await["message"].as_str().unwrap().contains("the first one is too much"), "{which}");
    }
}

#[tokio::test]
async fn a_listener_that_is_dropped_hears_nothing_more() {
    let tools = make().build().unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&heard);
    let listener =
        tools.events().on("tool:*", move |event| noted.lock().unwrap().push(event.kind().to_owned()));
    call(&tools, "echo", json!(1)).await;
    eventually("it hears both", async || heard.lock().unwrap().len() == 2).await;
    drop(listener);
    call(&tools, "echo", json!(2)).await;
    in_time(tools.shutdown()).await;
    assert_eq!(*heard.lock().unwrap(), ["tool:start", "tool:end"]);
}

#[tokio::test]
async fn with_a_store_the_timeline_is_still_there_for_the_next_process() {
    let [_, (_, tools, folder)] = both(make);
    call(&tools, "fail", json!({})).await;
    let newest = tools.events().newest();
    in_time(tools.shutdown()).await;
    let store = unstuck::Store::at(folder.path().join("state"));
    let next = make().store(store).build().unwrap();
    assert_eq!(next.events().newest(), newest);
    let mut replayed = next.events().subscribe([Channel::Progress]).from(Bookmark(0));
    assert_eq!(kinds(&until(&mut replayed, "tool:end").await), ["tool:start", "tool:error", "tool:end"]);
}
