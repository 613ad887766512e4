//! An agent that repeats itself.

use std::time::Duration;

use serde_json::{Value, json};
use unstuck::{Annotations, Channel, Failure, Mode, Policy, Preset, Status, ToolCall, Toolbox};

use crate::{Count, NO_RECORD, RESET, both, call, in_time, kinds, swift, tool, until};

fn no_record() -> Failure {
    Failure::expected(NO_RECORD)
}

/// Calls a tool again and again until it is refused, and says how often it was let through.
async fn until_refused(tools: &Toolbox, name: &str, input: impl Fn(usize) -> Value) -> usize {
    for number in 0..20 {
        if call(tools, name, input(number)).await.status() == Status::Denied {
            return number;
        }
    }
    20
}

#[tokio::test]
async fn an_agent_that_goes_on_is_refused_then_halted_and_may_go_on_when_the_user_spoke() {
    let ran = Count::default();
    for (which, tools, _folder) in both(|| {
        let ran = ran.clone();
        let fails = tool("work", Annotations::new().read_only(), move |_| {
            ran.up();
            Err(no_record())
        });
        Toolbox::builder().tool(fails)
    }) {
        let before = ran.get();
        let let_through = until_refused(&tools, "work", |_| json!({ "id": 7 })).await;
        assert!((1..8).contains(&let_through), "{which}: {let_through}");
        assert_eq!((ran.get() - before) as usize, let_through, "{which}: what is refused does not run");
        let mut control = tools.events().subscribe([Channel::Control]);
        let mut progress = tools.events().subscribe([Channel::Progress]);
        let mut last = call(&tools, "work", json!({ "id": 7 })).await;
        let denied = until(&mut progress, "tool:denied").await;
        assert_eq!(kinds(&denied), ["tool:denied"], "{which}");
        for _ in 0..12 {
            if last.status() == Status::Halted {
                break;
            }
            assert_eq!(last.status(), Status::Denied, "{which}: {last:?}");
            assert!(last.error().unwrap().contains(NO_RECORD), "{which}: it says why: {last:?}");
            last = call(&tools, "work", json!({ "id": 7 })).await;
        }
        assert_eq!(last.status(), Status::Halted, "{which}");
        assert!(last.table().unwrap().contains(NO_RECORD), "{which}: {last:?}");
        assert!(last.to_json()["table"].is_string(), "{which}");
        until(&mut control, "halt").await;
        assert_eq!(call(&tools, "work", json!({ "id": 7 })).await.status(), Status::Halted, "{which}");
        tools.user_spoke(tools.session());
        let again = call(&tools, "work", json!({ "id": 7 })).await;
        assert_eq!(again.status(), Status::Failed, "{which}: it may be tried once more: {again:?}");
    }
}

#[tokio::test]
async fn with_and_without_a_store_an_agent_hears_the_same() {
    /// What is done, one after the other: which tool, with which argument.
    async fn heard(tools: &Toolbox, steps: &[(&str, i64)]) -> Vec<(Status, Option<String>)> {
        let mut heard = Vec::new();
        for (name, n) in steps {
            let result = call(tools, name, json!({ "n": n })).await;
            heard.push((result.status(), result.note().map(str::to_owned)));
        }
        heard
    }
    let make = || {
        Toolbox::builder()
            .tool(tool("look", Annotations::new().read_only(), Ok))
            .tool(tool("change", Annotations::new().writes(), Ok))
            .tool(tool("fail", Annotations::new().read_only(), |_| Err(no_record())))
    };
    let check = async |steps: &[(&str, i64)], is_noted: bool| {
        let [(_, memory, _none), (_, stored, _folder)] = both(make);
        let told = heard(&memory, steps).await;
        for (told, stored) in told.iter().zip(heard(&stored, steps).await) {
            // A store may know more to say.
            let goes_on = stored.1.as_deref().unwrap_or("").starts_with(told.1.as_deref().unwrap_or(""));
            assert!(
                told.0 == stored.0 && told.1.is_some() == stored.1.is_some() && goes_on,
                "{told:?}, {stored:?}"
            );
        }
        assert_eq!(told.iter().any(|(_, note)| note.is_some()), is_noted, "{steps:?}: {told:?}");
    };
    check(&[("look", 1), ("look", 2), ("look", 3)], false).await;
    check(&[("look", 1); 9], true).await;
    check(&[("fail", 1); 9], true).await;
    check(&[("look", 1), ("look", 1), ("look", 2), ("look", 1), ("look", 1), ("look", 1)], true).await;
    // What went well before the first failure counts.
    check(&[("look", 1), ("fail", 1), ("look", 1), ("look", 1), ("look", 1), ("look", 1)], true).await;
    check(&[("fail", 1), ("fail", 1), ("change", 1), ("fail", 1), ("fail", 1), ("fail", 1)], true).await;
    check(&[("fail", 1), ("fail", 2), ("fail", 3), ("fail", 4), ("fail", 5), ("fail", 6)], true).await;
}

#[tokio::test]
async fn retries_of_ours_are_no_repeats_of_the_agent() {
    /// What is said to six equal calls, one after the other.
    async fn notes(tools: &Toolbox) -> Vec<Option<String>> {
        let mut notes = Vec::new();
        for _ in 0..6 {
            notes.push(call(tools, "work", json!({})).await.note().map(str::to_owned));
        }
        notes
    }
    let [none, some] = [0, 2].map(|retries| {
        both(|| {
            // It may come again at once, so that nobody is held back. What passes by itself is told of, and never refused.
            let fails = |_| Err(Failure::unexpected(RESET).retry_after(Duration::ZERO));
            let fails = tool("work", Annotations::new().read_only(), fails);
            Toolbox::builder().tool(fails).policy(swift().retries(retries))
        })
    });
    for ((which, once, _first), (_, patient, _second)) in none.into_iter().zip(some) {
        let told = notes(&once).await;
        assert_eq!(notes(&patient).await, told, "{which}");
        assert!(told.iter().any(Option::is_some), "{which}: {told:?}");
        let ran = patient.records(patient.session()).await.unwrap().len();
        assert!(ran > 6, "{which}: it was sent again: {ran}");
    }
}

#[tokio::test]
async fn what_one_session_repeated_is_not_held_against_another() {
    for (which, tools, _folder) in both(|| {
        let fails = tool("work", Annotations::new().read_only(), |_| Err(no_record()));
        Toolbox::builder().tool(fails)
    }) {
        assert!(until_refused(&tools, "work", |_| json!({})).await < 9, "{which}");
        let elsewhere = ToolCall::new("work", json!({})).session("another");
        assert_eq!(in_time(tools.call(elsewhere)).await.status(), Status::Failed, "{which}");
    }
}

#[tokio::test]
async fn a_loop_key_says_which_calls_are_the_same() {
    let keyed = Annotations::new().read_only().loop_key(|args| json!({ "query": args["query"] }));
    for (which, tools, _folder) in both(|| {
        // What they print differs, so that nothing else makes them alike.
        let fails = |input: Value| Err(Failure::expected(format!("no such record: {}", input["text"])));
        Toolbox::builder()
            .tool(tool("keyed", keyed.clone(), fails))
            .tool(tool("plain", Annotations::new().read_only(), fails))
            .policy(Policy::default().ladder(Preset::Adaptive))
    }) {
        let texts = ["apple", "river", "stone", "cloud", "tiger", "wheel", "chair", "piano"];
        let input = |n: usize| json!({ "query": "same", "request": n, "text": texts[n % texts.len()] });
        let keyed = until_refused(&tools, "keyed", input).await;
        let plain = until_refused(&tools, "plain", input).await;
        assert!(keyed < plain, "{which}: {keyed} and {plain}");
    }
}

#[tokio::test]
async fn a_ladder_that_only_watches_refuses_nothing() {
    for (which, tools, _folder) in both(|| {
        let fails = |name: &'static str| tool(name, Annotations::new().read_only(), |_| Err(no_record()));
        let policy = Policy::default().mode(Mode::Shadow).mode_of("strict*", Mode::Enforce);
        Toolbox::builder().tool(fails("work")).tool(fails("strict_work")).policy(policy)
    }) {
        for _ in 0..9 {
            let result = call(&tools, "work", json!({})).await;
            assert_eq!((result.status(), result.note()), (Status::Failed, None), "{which}");
        }
        assert!(until_refused(&tools, "strict_work", |_| json!({})).await < 9, "{which}");
    }
}

#[tokio::test]
async fn a_call_that_comes_too_early_waits_a_little_and_where_that_would_be_long_it_is_told_so() {
    let check = async |wait: Duration, is_held: bool| {
        for (which, tools, _folder) in both(|| {
            let ran = Count::default();
            let limited = tool("work", Annotations::new().read_only(), move |_| match ran.up() {
                1 => {
                    let failure = Failure::unexpected("HTTP 429 Too Many Requests").http_status(429);
                    Err(failure.retry_after(wait))
                }
                _ => Ok(json!("served")),
            });
            Toolbox::builder().tool(limited).policy(Policy::default().retries(0))
        }) {
            assert_eq!(call(&tools, "work", json!({})).await.status(), Status::Failed, "{which}");
            let mut events = tools.events().subscribe([Channel::Progress]).types(["tool:retry"]);
            let again = call(&tools, "work", json!({})).await;
            assert_eq!(again.status(), Status::Succeeded, "{which}: {again:?}");
            let waited = again.took() > Duration::from_millis(800);
            assert_eq!((waited, again.note().is_none()), (is_held, is_held), "{which}: {again:?}");
            if is_held {
                until(&mut events, "tool:retry").await;
            }
        }
    };
    check(Duration::from_secs(2), true).await;
    check(Duration::from_secs(90), false).await;
}
