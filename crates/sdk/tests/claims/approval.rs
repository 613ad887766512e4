//! Calls that wait for a person.

use std::sync::Arc;

use serde_json::{Value, json};
use unstuck::{
    Annotations, Before, CallId, CallInfo, CallState, Channel, Hook, Policy, Status, ToolCall, Toolbox,
    ToolboxBuilder,
};

use crate::{Count, both, call, in_time, tool, until};

/// Wants a person to look at everything.
struct Careful;

impl Hook for Careful {
    fn name(&self) -> &str {
        "careful"
    }

    async fn before(&self, call: Arc<CallInfo>) -> Before {
        Before::Ask(format!("may `{}` run?", call.tool()))
    }
}

fn asking(ran: &Count) -> impl Fn() -> ToolboxBuilder {
    let ran = ran.clone();
    move || {
        let ran = ran.clone();
        let work = tool("work", Annotations::new(), move |input| {
            ran.up();
            Ok(input)
        });
        Toolbox::builder().tool(work).hook(Careful)
    }
}

async fn trail(tools: &Toolbox, id: &CallId) -> Vec<CallState> {
    let records = in_time(tools.records(tools.session())).await.unwrap();
    let record = records.iter().find(|record| record.id == *id).unwrap();
    record.trail.iter().map(|step| step.state).collect()
}

#[tokio::test]
async fn a_paused_call_runs_when_it_is_approved_and_not_before() {
    let ran = Count::default();
    for (number, (which, tools, _folder)) in both(asking(&ran)).into_iter().enumerate() {
        let mut questions = tools.events().subscribe([Channel::Control]);
        let paused = call(&tools, "work", json!({ "n": 1 })).await;
        let told = paused.to_json();
        assert_eq!((&told["ok"], &told["status"]), (&Value::Null, &json!("paused")), "{which}: {told}");
        assert_eq!((paused.error(), ran.get()), (Some("may `work` run?"), number as u32), "{which}");
        let asked = until(&mut questions, "ask").await.pop().unwrap();
        assert!(asked.to_json().to_string().contains("may `work` run?"), "{which}: {asked:?}");
        let id = paused.call().id().clone();
        let waiting = tools.pending();
        assert_eq!(
            (waiting.len(), waiting[0].call.id(), &*waiting[0].question),
            (1, &id, "may `work` run?"),
            "{which}"
        );

        let result = in_time(tools.approve(paused.call())).await.unwrap();
        assert_eq!((result.status(), result.output()), (Status::Succeeded, &json!({ "n": 1 })), "{which}");
        assert_eq!(ran.get(), number as u32 + 1, "{which}");
        assert!(tools.pending().is_empty(), "{which}");
        assert!(in_time(tools.approve(paused.call())).await.is_none(), "{which}: it runs once");
        let trail = trail(&tools, &id).await;
        let rulings = [CallState::ApprovalRequired, CallState::Approved, CallState::Completed];
        assert!(rulings.iter().all(|state| trail.contains(state)), "{which}: {trail:?}");
        assert_eq!(trail.last(), Some(&CallState::Completed), "{which}: {trail:?}");
    }
}

#[tokio::test]
async fn a_paused_call_that_is_not_allowed_never_runs_and_the_model_is_told_why() {
    let ran = Count::default();
    for (which, tools, _folder) in both(asking(&ran)) {
        let paused = call(&tools, "work", json!({})).await;
        let id = paused.call().id().clone();
        let result = in_time(tools.deny(paused.call(), "not on a Friday")).await.unwrap();
        let told = (result.status(), result.error(), result.call().id());
        assert_eq!(told, (Status::Denied, Some("not on a Friday"), &id), "{which}");
        assert_eq!((ran.get(), result.to_json()["ok"].clone()), (0, json!(false)), "{which}");
        assert!(in_time(tools.deny(paused.call(), "")).await.is_none(), "{which}");
        assert!(in_time(tools.approve(paused.call())).await.is_none(), "{which}");
        assert_eq!(trail(&tools, &id).await.last(), Some(&CallState::Denied), "{which}");
    }
}

#[tokio::test]
async fn what_waits_is_told_in_the_order_it_was_asked_for_and_each_session_has_its_own() {
    let ran = Count::default();
    let [(_, tools, _folder), _] = both(asking(&ran));
    for (id, session) in [("z", "ours"), ("a", "theirs"), ("a", "ours")] {
        let work = ToolCall::new("work", json!({ "of": session })).session(session).id(id);
        in_time(tools.call(work)).await;
        // They are ordered by the millisecond.
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    let waiting = tools.pending();
    let names: Vec<_> =
        waiting.iter().map(|it| (it.call.session().as_str(), it.call.id().as_str())).collect();
    assert_eq!(names, [("ours", "z"), ("theirs", "a"), ("ours", "a")]);
    let result = in_time(tools.approve(&waiting[1].call)).await.unwrap();
    assert_eq!((result.output(), ran.get()), (&json!({ "of": "theirs" }), 1));
    assert_eq!(tools.pending().len(), 2);
}

#[tokio::test]
async fn what_a_person_takes_to_decide_is_not_the_calls() {
    let ran = Count::default();
    let policy = Policy::default().deadline(std::time::Duration::from_millis(300));
    let tools = asking(&ran)().policy(policy).build().unwrap();
    let paused = call(&tools, "work", json!({})).await;
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    let result = in_time(tools.approve(paused.call())).await.unwrap();
    assert_eq!((result.status(), ran.get()), (Status::Succeeded, 1), "{result:?}");
}

#[tokio::test]
async fn who_comes_behind_the_one_that_asks_may_still_say_no() {
    struct Never;
    impl Hook for Never {
        fn name(&self) -> &str {
            "never"
        }

        async fn before(&self, _: Arc<CallInfo>) -> Before {
            Before::Deny("never".into())
        }
    }
    let ran = Count::default();
    let tools = asking(&ran)().hook(Never).build().unwrap();
    let result = call(&tools, "work", json!({})).await;
    assert_eq!((result.status(), result.error(), tools.pending().len()), (Status::Denied, Some("never"), 0));
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_refused_before_a_person_is_asked() {
    let [(_, tools, _folder), _] = both(asking(&Count::default()));
    let result = call(&tools, "wrok", json!({})).await;
    assert_eq!((result.status(), result.error_type()), (Status::Failed, Some("validation")), "{result:?}");
    assert!(tools.pending().is_empty());
}
