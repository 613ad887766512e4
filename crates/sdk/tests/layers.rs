//! Each layer of a call, shown by a tool that breaks everything else.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use unstuck::{Annotations, Failure, Policy, Session, Status, ToolCall, ToolContext, Toolbox, tool_fn};

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Path {
    path: String,
}

fn quick() -> Policy {
    Policy::default().timeout(Duration::from_millis(200))
}

#[tokio::test]
async fn a_panic_becomes_a_result() {
    let tool = tool_fn("burst", "", |_: Nothing, _: ToolContext| async move {
        let all: Vec<u8> = Vec::new();
        Ok(all[std::hint::black_box(3)])
    });
    let tools = Toolbox::builder().tool(tool).build().unwrap();
    let result = tools.call(ToolCall::new("burst", json!({}))).await;
    assert_eq!((result.status(), result.error_type()), (Status::Failed, Some("exception")), "{result:#?}");
    assert!(result.error().unwrap().contains("index out of bounds"), "{result:?}");
}

#[tokio::test]
async fn a_tool_that_never_answers_is_given_up_in_time() {
    let tool = tool_fn("sleep", "", |_: Nothing, _: ToolContext| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(())
    });
    let tools = Toolbox::builder().tool(tool).policy(quick()).build().unwrap();
    let begun = Instant::now();
    let result = tools.call(ToolCall::new("sleep", json!({}))).await;
    assert_eq!((result.status(), result.error_type()), (Status::Failed, Some("aborted")), "{result:?}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_tool_that_blocks_its_thread_is_given_up_in_time() {
    let tool = tool_fn("block", "", |_: Nothing, _: ToolContext| async move {
        std::thread::sleep(Duration::from_secs(5));
        Ok(())
    });
    let tools = Toolbox::builder().tool(tool).policy(quick()).build().unwrap();
    for _ in 0..2 {
        let begun = Instant::now();
        let result = tools.call(ToolCall::new("block", json!({}))).await;
        assert_eq!(result.error_type(), Some("aborted"), "{result:?}");
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn what_passes_by_itself_is_sent_again_and_the_model_is_told() {
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let tool = tool_fn("fetch", "", move |_: Nothing, _: ToolContext| {
        let n = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            match n {
                0 => Err(Failure::unexpected("connection reset by peer (os error 104)")),
                _ => Ok("here"),
            }
        }
    })
    .annotated(Annotations::new().read_only());
    let tools = Toolbox::builder().tool(tool).build().unwrap();
    let result = tools.call(ToolCall::new("fetch", json!({}))).await;
    assert_eq!(result.status(), Status::Succeeded, "{result:#?}");
    assert_eq!((tries.load(Ordering::SeqCst), result.tried().len()), (2, 1));
    assert_eq!(result.to_json()["tried"][0]["kind"], "network");
}

#[tokio::test]
async fn what_writes_is_not_sent_again() {
    let tries = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&tries);
    let tool = tool_fn("post", "", move |_: Nothing, _: ToolContext| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Err::<(), _>(Failure::unexpected("connection reset by peer (os error 104)")) }
    })
    .annotated(Annotations::new().writes());
    let tools = Toolbox::builder().tool(tool).build().unwrap();
    let result = tools.call(ToolCall::new("post", json!({}))).await;
    assert_eq!((result.status(), tries.load(Ordering::SeqCst)), (Status::Failed, 1), "{result:#?}");
}

#[tokio::test]
async fn an_agent_that_repeats_itself_is_refused_and_then_halted() {
    let tool = tool_fn("fs_read", "", |args: Path, _: ToolContext| async move {
        Err::<Value, _>(std::fs::read(args.path).unwrap_err().into())
    })
    .annotated(Annotations::new().read_only());
    let tools = Toolbox::builder().tool(tool).build().unwrap();
    let session = Session::new();
    let mut seen = Vec::new();
    for _ in 0..12 {
        let call = ToolCall::new("fs_read", json!({ "path": "/no/such/file" })).session(&session);
        seen.push(tools.call(call).await);
    }
    let statuses: Vec<Status> = seen.iter().map(|result| result.status()).collect();
    assert!(statuses.contains(&Status::Denied), "{statuses:?}");
    assert_eq!(statuses.last(), Some(&Status::Halted), "{statuses:?}");
}

fn named(
    name: &str,
    answer: impl Fn() -> Result<Value, Failure> + Send + Sync + 'static,
) -> impl unstuck::Tool {
    tool_fn(name, "", move |_: Nothing, _: ToolContext| std::future::ready(answer()))
}

async fn one(tools: &Toolbox, name: &str, input: Value) -> unstuck::CallResult {
    tools.call(ToolCall::new(name, input)).await
}

#[tokio::test]
async fn arguments_are_checked_before_the_tool_sees_them() {
    let ran = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&ran);
    let tool = tool_fn("fs_read", "", move |_: Path, _: ToolContext| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok(()) }
    });
    let tools = Toolbox::builder().tool(tool).build().unwrap();
    let result = one(&tools, "fs_read", json!({ "pth": "x" })).await;
    assert_eq!((result.status(), result.error_type()), (Status::Failed, Some("validation")));
    assert!(result.error().unwrap().contains("`path`"), "{result:?}");
    assert_eq!((result.mistakes().len(), result.mistakes()[0].hint.is_some()), (1, true), "{result:?}");
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    let result = one(&tools, "fs-read", json!({ "path": "x" })).await;
    assert!(result.error().unwrap().contains("did you mean `fs_read`?"), "{result:?}");
    assert_eq!(result.error_type(), Some("validation"));
}

#[tokio::test]
async fn arguments_are_put_right_only_where_that_is_wanted() {
    #[derive(Deserialize, JsonSchema)]
    struct Number {
        number: i64,
    }
    let double = || tool_fn("double", "", |args: Number, _: ToolContext| async move { Ok(args.number * 2) });
    let strict = Toolbox::builder().tool(double()).build().unwrap();
    assert_eq!(one(&strict, "double", json!({ "number": "4" })).await.error_type(), Some("validation"));
    let policy = Policy::default().repair_arguments();
    let kind = Toolbox::builder().tool(double()).policy(policy).build().unwrap();
    let result = one(&kind, "double", json!({ "number": "4" })).await;
    assert_eq!((result.output(), result.repairs().len()), (&json!(8), 1), "{result:?}");
}

#[tokio::test]
async fn what_a_tool_says_of_itself_is_understood() {
    #[track_caller]
    fn check(result: &unstuck::CallResult, error_type: Option<&str>, error: Option<&str>) {
        assert_eq!((result.error_type(), result.error()), (error_type, error), "{result:?}");
    }
    let said = |answer: Value| {
        let tool = named("tool", move || Ok(answer.clone()));
        Toolbox::builder().tool(tool).build().unwrap()
    };
    let ask = async |answer: Value| one(&said(answer), "tool", json!({})).await;
    check(
        &ask(json!({ "ok": false, "error": "no such user: ann" })).await,
        Some("logical"),
        Some("no such user: ann"),
    );
    let invalid = json!({ "ok": false, "error": "path is required", "_validationError": true });
    check(&ask(invalid).await, Some("validation"), Some("path is required"));
    let thrown = json!({ "ok": false, "error": "permission denied (os error 13)", "_thrownError": true });
    let result = ask(thrown).await;
    check(&result, Some("runtime"), Some("permission denied (os error 13)"));
    assert_eq!(result.to_json()["diagnosis"]["stage"], "threw");
    check(&ask(json!({ "ok": true, "error": "none" })).await, None, None);
    check(&ask(json!({ "okay": false })).await, None, None);
    let with_advice = json!({ "ok": false, "error": "empty", "recommendations": ["look elsewhere"] });
    assert_eq!(ask(with_advice).await.recommendations()[0], "look elsewhere");

    let tool = tool_fn("tool", "", |_: Nothing, _: ToolContext| async { Ok(json!({ "ok": false })) })
        .annotated(Annotations::new().ok_is_data());
    let tools = Toolbox::builder().tool(tool).build().unwrap();
    assert_eq!(one(&tools, "tool", json!({})).await.status(), Status::Succeeded);
}

#[tokio::test]
async fn a_tool_that_ignores_cancellation_is_dropped_and_one_that_listens_may_tidy_up() {
    struct Dropped(Arc<AtomicU32>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (dropped, tidied) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (in_deaf, in_good) = (Arc::clone(&dropped), Arc::clone(&tidied));
    let deaf = tool_fn("deaf", "", move |_: Nothing, _: ToolContext| {
        let guard = Dropped(Arc::clone(&in_deaf));
        async move {
            let _guard = guard;
            std::future::pending::<()>().await;
            Ok(())
        }
    });
    let good = tool_fn("good", "", move |_: Nothing, context: ToolContext| {
        let tidied = Arc::clone(&in_good);
        async move {
            context.cancelled().await;
            tidied.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    });
    let tools = Toolbox::builder().tool(deaf).tool(good).policy(quick().retries(0)).build().unwrap();
    for name in ["deaf", "good"] {
        assert_eq!(one(&tools, name, json!({})).await.error_type(), Some("aborted"), "{name}");
    }
    assert_eq!(tidied.load(Ordering::SeqCst), 1);
    let begun = Instant::now();
    while dropped.load(Ordering::SeqCst) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(10), "it was never dropped");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_panic_while_something_is_dropped_becomes_a_result_too() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(std::thread::panicking(), "dropped");
        }
    }
    let tool = tool_fn("bomb", "", |_: Nothing, _: ToolContext| async move {
        let _bomb = Bomb;
        Ok(())
    });
    let payload = tool_fn("payload", "", |_: Nothing, _: ToolContext| async move {
        std::panic::panic_any(Bomb);
        #[allow(unreachable_code, reason = "the type of the answer")]
        Ok(())
    });
    let tools = Toolbox::builder().tool(tool).tool(payload).build().unwrap();
    for name in ["bomb", "payload"] {
        let result = one(&tools, name, json!({})).await;
        assert_eq!((result.status(), result.error_type()), (Status::Failed, Some("exception")), "{result:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_calls_at_once_are_all_answered_a_few_at_a_time() {
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (running, peak) = (Arc::clone(&now), Arc::clone(&most));
    #[derive(Deserialize, JsonSchema)]
    struct Number {
        n: u32,
    }
    let tool = tool_fn("count", "", move |args: Number, _: ToolContext| {
        let (running, peak) = (Arc::clone(&running), Arc::clone(&peak));
        async move {
            peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(args.n)
        }
    });
    let tools = Toolbox::builder().tool(tool).policy(Policy::default().concurrency(8)).build().unwrap();
    let calls = (0..10_000).map(|n| {
        let tools = tools.clone();
        tokio::spawn(async move { (n, tools.call(ToolCall::new("count", json!({ "n": n }))).await) })
    });
    for call in calls.collect::<Vec<_>>() {
        let (n, result) = call.await.unwrap();
        assert_eq!(result.output(), &json!(n), "{result:?}");
    }
    assert!((1..=8).contains(&most.load(Ordering::SeqCst)), "{most:?}");
}

#[tokio::test]
async fn one_tool_alone_does_not_take_all_places() {
    let slow = tool_fn("slow", "", |_: Nothing, _: ToolContext| async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        Ok(())
    });
    let tools = Toolbox::builder().tool(slow).tool(named("fast", || Ok(json!(1)))).build().unwrap();
    let slow: Vec<_> = (0..20)
        .map(|_| {
            let tools = tools.clone();
            tokio::spawn(async move { one(&tools, "slow", json!({})).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let fast = tokio::time::timeout(Duration::from_secs(10), one(&tools, "fast", json!({}))).await;
    assert_eq!(fast.expect("it got through").status(), Status::Succeeded);
    slow.iter().for_each(|call| call.abort());
}

#[tokio::test]
async fn huge_and_deep_arguments_are_refused_in_a_few_words() {
    let tool = tool_fn("any", "", |_: Value, _: ToolContext| async { Ok(()) });
    let tools =
        Toolbox::builder().tool(tool).policy(Policy::default().max_input(20_000_000)).build().unwrap();
    let check = async |input: Value, word: &str| {
        let result = one(&tools, "any", input).await;
        assert_eq!(result.error_type(), Some("validation"), "{word}");
        let text = result.to_json().to_string();
        assert!(text.contains(word) && text.len() < 4000, "{}", &text[..text.len().min(4000)]);
    };
    check(json!({ "text": "x".repeat(100_000_000) }), "bytes").await;
    check(Value::from(vec![123_456_789; 3_000_000]), "bytes").await;
    let mut deep = json!(1);
    for _ in 0..300_000 {
        deep = Value::Array(vec![deep]);
    }
    check(deep, "levels").await;
    assert_eq!(
        one(&tools, "any", json!({ "text": "x".repeat(10_000_000) })).await.status(),
        Status::Succeeded
    );
}

#[tokio::test]
async fn shutdown_in_the_middle_ends_what_runs_and_the_record_says_so() {
    let tool = tool_fn("wait", "", |_: Nothing, _: ToolContext| async {
        std::future::pending::<()>().await;
        Ok(())
    });
    let tools = Toolbox::builder().tool(tool).build().unwrap();
    let (session, clone) = (tools.session().clone(), tools.clone());
    let running = tokio::spawn(async move { one(&clone, "wait", json!({})).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    tokio::time::timeout(Duration::from_secs(20), tools.shutdown()).await.expect("it does not hang");
    let result = running.await.unwrap();
    assert_eq!((result.status(), result.error_type()), (Status::Failed, Some("aborted")), "{result:?}");
    let records = tools.records(&session).await.unwrap();
    assert_eq!(records.iter().map(|record| record.state.word()).collect::<Vec<_>>(), ["failed"]);
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_is_ended_and_recorded() {
    let tool = tool_fn("wait", "", |_: Nothing, _: ToolContext| async {
        std::future::pending::<()>().await;
        Ok(())
    });
    let tools = Toolbox::builder().tool(tool).build().unwrap();
    let call = tools.call(ToolCall::new("wait", json!({})));
    assert!(tokio::time::timeout(Duration::from_millis(100), call).await.is_err());
    let begun = Instant::now();
    loop {
        let records = tools.records(tools.session()).await.unwrap();
        if records[0].state.is_final() {
            assert!(records[0].trail.last().unwrap().note.contains("interrupted"), "{records:?}");
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{records:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn a_toolbox_works_without_any_runtime() {
    // A future needs somebody who polls it, nothing more.
    struct Awake(std::thread::Thread);
    impl std::task::Wake for Awake {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Awake(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let tools = Toolbox::builder().tool(named("one", || Ok(json!(1)))).build().unwrap();
    let mut call = std::pin::pin!(one(&tools, "one", json!({})));
    let result = loop {
        match call.as_mut().poll(&mut context) {
            std::task::Poll::Ready(result) => break result,
            std::task::Poll::Pending => std::thread::park(),
        }
    };
    assert_eq!(result.output(), &json!(1));
}

#[tokio::test]
async fn too_many_calls_that_never_came_back_close_a_tool_until_they_do() {
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let tool = tool_fn("stuck", "", move |_: Value, _: ToolContext| {
        let stop = Arc::clone(&stopped);
        async move {
            while !stop.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(())
        }
    });
    let policy = Policy::default().timeout(Duration::from_millis(20)).retries(0).cancel_grace(Duration::ZERO);
    let tools = Toolbox::builder().tool(tool).policy(policy.mode(unstuck::Mode::Shadow)).build().unwrap();
    let mut kinds = Vec::new();
    for n in 0..9 {
        kinds.push(one(&tools, "stuck", json!({ "n": n })).await.diagnosis().unwrap().kind.word());
    }
    assert_eq!((kinds[7], kinds[8]), ("timeout", "resource_busy"), "{kinds:?}");
    stop.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    while !one(&tools, "stuck", json!({ "n": 99 })).await.is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never came back");
    }
}

#[tokio::test]
async fn a_tool_that_calls_the_toolbox_does_not_wait_for_its_own_place() {
    let whole: Arc<std::sync::OnceLock<Toolbox>> = Arc::default();
    let inner = Arc::clone(&whole);
    let outer = tool_fn("outer", "", move |_: Nothing, _: ToolContext| {
        let tools = inner.get().unwrap().clone();
        async move { Ok(one(&tools, "inner", json!({})).await.to_json()) }
    });
    let policy = Policy::default().concurrency(1);
    let tools =
        Toolbox::builder().tool(outer).tool(named("inner", || Ok(json!(1)))).policy(policy).build().unwrap();
    whole.set(tools.clone()).unwrap();
    let result = tokio::time::timeout(Duration::from_secs(30), one(&tools, "outer", json!({}))).await;
    assert_eq!(result.expect("it does not wait").output()["output"], json!(1));
}

#[tokio::test]
async fn calls_that_a_model_names_alike_are_two_calls() {
    let tools = Toolbox::builder().tool(named("one", || Ok(json!(1)))).build().unwrap();
    for expected in ["call_0", "call_0~2", "call_0~3"] {
        let result = tools.call(ToolCall::new("one", json!({})).id("call_0")).await;
        assert_eq!(result.call().id().as_str(), expected);
    }
    let records = tools.records(tools.session()).await.unwrap();
    assert_eq!(
        records.iter().map(|record| record.id.as_str()).collect::<Vec<_>>(),
        ["call_0", "call_0~2", "call_0~3"]
    );
}

#[tokio::test]
async fn nothing_runs_after_a_shutdown() {
    let ran = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&ran);
    let tool = named("one", move || Ok(json!(counted.fetch_add(1, Ordering::SeqCst))));
    let tools = Toolbox::builder().tool(tool).build().unwrap();
    tools.shutdown().await;
    tools.shutdown().await;
    let result = one(&tools, "one", json!({})).await;
    assert_eq!((result.error_type(), ran.load(Ordering::SeqCst)), (Some("aborted"), 0), "{result:?}");
}

#[tokio::test]
async fn what_the_model_is_told_and_what_is_recorded_is_the_same_whatever_a_command_exits_with() {
    let shell = || {
        tool_fn("shell", "", |args: Value, _: ToolContext| async move {
            let command = args["command"].as_str().unwrap().to_owned();
            let output = std::process::Command::new("sh").args(["-c", &command]).output()?;
            match output.status.code() {
                Some(0) => Ok(json!({
                    "stdout": String::from_utf8_lossy(&output.stdout), "stderr": String::from_utf8_lossy(&output.stderr),
                })),
                code => Err(Failure::exited(code.unwrap_or(1), output.stdout, output.stderr)),
            }
        })
    };
    let folder = tempfile::tempdir().unwrap();
    for (command, fails) in [
        ("true", false),
        ("grep needle /dev/null", false),
        ("cat /no/such/file", true),
        ("cargo build --manifest-path /no/such/Cargo.toml 2>&1 | tail -n 3", true),
    ] {
        for stored in [false, true] {
            let builder = Toolbox::builder().tool(shell());
            let store = unstuck::Store::at(folder.path().join("state"));
            let tools = if stored { builder.store(store) } else { builder }.build().unwrap();
            let result = one(&tools, "shell", json!({ "command": command })).await;
            let records = tools.records(tools.session()).await.unwrap();
            let state = if fails { "failed" } else { "completed" };
            assert_eq!((result.is_ok(), records[0].state.word()), (!fails, state), "{command}: {result:#?}");
            assert_eq!(result.error_type().is_some(), fails, "{command}: {result:#?}");
            assert_eq!(
                result.error().is_some_and(|error| !error.is_empty()),
                fails,
                "{command}: {result:#?}"
            );
        }
    }
}

#[tokio::test]
async fn a_loop_key_does_not_decide_what_may_be_sent_twice() {
    let ran = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&ran);
    let tool = tool_fn("http_fetch", "", move |_: Value, _: ToolContext| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Err::<(), _>(Failure::unexpected("connection reset by peer (os error 104)")) }
    })
    .annotated(Annotations::new().by_arguments().loop_key(|args| json!({ "url": args["url"] })));
    let tools = Toolbox::builder().tool(tool).build().unwrap();
    one(&tools, "http_fetch", json!({ "url": "http://a.example", "method": "POST", "body": "x" })).await;
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_tool_may_use_the_network_on_a_single_thread_too() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let tool = tool_fn("knock", "", move |_: Nothing, _: ToolContext| async move {
        tokio::net::TcpStream::connect(address).await?;
        Ok(())
    });
    let tools = Toolbox::builder().tool(tool).build().unwrap();
    let result = one(&tools, "knock", json!({})).await;
    assert_eq!(result.status(), Status::Succeeded, "{result:?}");
}

#[tokio::test]
async fn where_no_threads_are_wanted_a_tool_that_took_long_gets_none() {
    let tool = tool_fn("thread", "", |_: Nothing, _: ToolContext| async {
        std::thread::sleep(Duration::from_millis(150));
        Ok(format!("{:?}", std::thread::current().id()))
    });
    let tools = Toolbox::builder().tool(tool).without_threads().build().unwrap();
    let here = json!(format!("{:?}", std::thread::current().id()));
    for _ in 0..3 {
        assert_eq!(*one(&tools, "thread", json!({})).await.output(), here);
    }
}

#[tokio::test]
async fn any_number_of_places_may_be_asked_for() {
    for calls in [0, 1, usize::MAX] {
        let tools = Toolbox::builder()
            .tool(named("one", || Ok(json!(1))))
            .policy(Policy::default().concurrency(calls));
        assert!(one(&tools.build().unwrap(), "one", json!({})).await.is_ok());
    }
}

#[tokio::test]
async fn a_hook_may_call_the_toolbox_and_a_tool_may_shut_it_down() {
    struct Nosy(Arc<std::sync::OnceLock<Toolbox>>);
    impl unstuck::Hook for Nosy {
        fn name(&self) -> &str {
            "nosy"
        }

        async fn before(&self, _: Arc<unstuck::CallInfo>) -> unstuck::Before {
            let inner = one(self.0.get().unwrap(), "one", json!({})).await;
            unstuck::Before::Supply(inner.to_json())
        }
    }
    let whole: Arc<std::sync::OnceLock<Toolbox>> = Arc::default();
    let tools = Toolbox::builder()
        .tool(named("one", || Ok(json!(1))))
        .hook(Nosy(Arc::clone(&whole)))
        .build()
        .unwrap();
    whole.set(tools.clone()).unwrap();
    let result = tokio::time::timeout(Duration::from_secs(30), one(&tools, "one", json!({}))).await.unwrap();
    assert_eq!(result.output()["output"], json!(1), "{result:?}");

    let whole: Arc<std::sync::OnceLock<Toolbox>> = Arc::default();
    let inner = Arc::clone(&whole);
    let end = tool_fn("end", "", move |_: Nothing, _: ToolContext| {
        let tools = inner.get().unwrap().clone();
        async move {
            tools.shutdown().await;
            Ok(())
        }
    });
    let tools = Toolbox::builder().tool(end).build().unwrap();
    whole.set(tools.clone()).unwrap();
    let mut all = tools.events().subscribe(unstuck::Channel::ALL);
    let result = tokio::time::timeout(Duration::from_secs(30), one(&tools, "end", json!({}))).await.unwrap();
    assert_eq!(result.error_type(), Some("aborted"), "{result:?}");
    let ends = async { while all.next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(30), ends).await.expect("the bus is closed");
}

#[tokio::test]
async fn a_name_promises_nothing_about_what_may_be_sent_twice() {
    for name in ["fetch_and_delete", "check_out_cart", "read", "delete", "search_and_book"] {
        for error in ["connection reset by peer (os error 104)", "timed out waiting for the server"] {
            let ran = Arc::new(AtomicU32::new(0));
            let counted = Arc::clone(&ran);
            let tool = named(name, move || {
                counted.fetch_add(1, Ordering::SeqCst);
                Err(Failure::unexpected(error))
            });
            let tools = Toolbox::builder().tool(tool).build().unwrap();
            let result = one(&tools, name, json!({})).await;
            assert_eq!((ran.load(Ordering::SeqCst), result.status()), (1, Status::Failed), "{name}: {error}");
            assert!(
                result.recommendations()[0].contains("look before"),
                "{name}: {error}: {}",
                result.to_json()
            );
        }
    }
}

#[tokio::test]
async fn a_halted_session_is_halted_until_the_user_speaks_and_others_go_on() {
    let fails = named("fails", || Err(Failure::unexpected("no such file or directory (os error 2)")));
    let tools = Toolbox::builder().tool(fails).tool(named("works", || Ok(json!(1)))).build().unwrap();
    let session = Session::from("stuck");
    let ask = async |name: &str| tools.call(ToolCall::new(name, json!({})).session(&session)).await;
    for _ in 0..12 {
        ask("fails").await;
    }
    let halted = ask("works").await;
    assert_eq!((halted.status(), halted.table().is_some()), (Status::Halted, true), "{halted:?}");
    assert!(one(&tools, "works", json!({})).await.is_ok());
    tools.user_spoke(&session);
    assert!(ask("works").await.is_ok());
}

#[tokio::test]
async fn a_tool_that_says_when_to_come_back_may_be_asked_again_then() {
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    let job =
        tool_fn("job_result", "", move |_: Nothing, _: ToolContext| {
            let times = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                match times {
                    0..6 => Err(Failure::expected("the job is not finished yet")
                        .retry_after(Duration::from_millis(10))),
                    _ => Ok("done"),
                }
            }
        })
        .annotated(Annotations::new().read_only().polls());
    let policy = Policy::default().retries(0);
    let tools = Toolbox::builder().tool(job).policy(policy).build().unwrap();
    let mut last = None;
    for _ in 0..8 {
        let result = one(&tools, "job_result", json!({})).await;
        assert_ne!(result.status(), Status::Halted, "{result:?}");
        last = Some(result);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(last.unwrap().is_ok(), "{asked:?}");
}

#[tokio::test]
async fn an_answer_that_may_change_by_itself_may_be_asked_for_again_and_again() {
    for (annotations, times) in [(Annotations::new(), 4), (Annotations::new().read_only().polls(), 30)] {
        let tool = tool_fn("get_time", "", |_: Nothing, _: ToolContext| async { Ok("noon") });
        let tools = Toolbox::builder().tool(tool.annotated(annotations)).build().unwrap();
        for n in 0..times {
            let result = one(&tools, "get_time", json!({})).await;
            assert!(result.is_ok(), "{n}: {result:?}");
        }
    }
}

#[tokio::test]
async fn a_failure_that_nobody_knows_may_be_tried_once_more() {
    for answer in [
        Ok(json!({ "ok": false, "error": "the flux capacitor hums" })),
        Err(Failure::expected("no seats left")),
    ] {
        let tool = tool_fn("book", "", move |_: Nothing, _: ToolContext| std::future::ready(answer.clone()))
            .annotated(Annotations::new().read_only());
        let tools = Toolbox::builder().tool(tool).build().unwrap();
        assert_eq!(one(&tools, "book", json!({})).await.status(), Status::Failed);
        assert_eq!(one(&tools, "book", json!({})).await.status(), Status::Failed);
        assert_eq!(one(&tools, "book", json!({})).await.status(), Status::Denied);
    }
}

#[tokio::test]
async fn a_misspelt_field_is_not_dropped_without_a_word() {
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code, reason = "only the schema is looked at")]
    struct Deploy {
        target: String,
        dry_run: Option<bool>,
    }
    let tool = tool_fn("deploy", "", |_: Deploy, _: ToolContext| async { Ok("for real") });
    let tools = Toolbox::builder().tool(tool).build().unwrap();
    let result = one(&tools, "deploy", json!({ "target": "x", "dry_rn": true })).await;
    assert!(result.error().is_some_and(|error| error.contains("did you mean `dry_run`?")), "{result:?}");
    assert!(one(&tools, "deploy", json!({ "target": "x", "comment": "why not" })).await.is_ok());
}

#[tokio::test]
async fn a_guard_that_cannot_decide_lets_nothing_run() {
    struct Guard;
    impl unstuck::Hook for Guard {
        fn name(&self) -> &str {
            "guard"
        }

        fn is_guard(&self) -> bool {
            true
        }

        async fn before(&self, call: Arc<unstuck::CallInfo>) -> unstuck::Before {
            assert!(call.input()["sleep"].is_boolean(), "what is this?");
            std::future::pending().await
        }
    }
    let policy = Policy::default().hook_timeout(Duration::from_millis(50));
    let tool = tool_fn("pay", "", |_: Value, _: ToolContext| async { Ok("PAID") });
    let tools = Toolbox::builder().tool(tool).hook(Guard).policy(policy).build().unwrap();
    for n in 0..5 {
        for input in [json!({ "n": n }), json!({ "n": n, "sleep": true })] {
            let status = one(&tools, "pay", input).await.status();
            assert!(matches!(status, Status::Denied | Status::Halted), "{status}");
        }
    }
}

#[tokio::test]
async fn what_a_failure_says_is_bounded_and_what_a_command_printed_is_shown() {
    let tool = tool_fn("long", "", |args: Value, _: ToolContext| async move {
        match args["exit"].as_bool() {
            Some(true) => Err::<(), _>(Failure::exited(3, "on stdout", "on stderr")),
            _ => Err(Failure::expected("x".repeat(20_000_000))),
        }
    });
    let tools = Toolbox::builder().tool(tool).build().unwrap();
    let text = one(&tools, "long", json!({})).await.to_json().to_string();
    assert!(text.len() < 100_000, "{} bytes", text.len());
    let output = one(&tools, "long", json!({ "exit": true })).await.into_output();
    assert_eq!(output, json!({ "exit_code": 3, "stdout": "on stdout", "stderr": "on stderr" }));
}

#[tokio::test]
async fn an_event_knows_its_call_with_a_store_too() {
    let folder = tempfile::tempdir().unwrap();
    for stored in [false, true] {
        let builder = Toolbox::builder().tool(named("one", || Ok(json!(1))));
        let store = unstuck::Store::at(folder.path().join("state"));
        let tools = if stored { builder.store(store) } else { builder }.build().unwrap();
        let mut progress = tools.events().subscribe([unstuck::Channel::Progress]);
        let _one = tools.call(ToolCall::new("one", json!({})).id("toolu_01")).await;
        for _ in 0..2 {
            let next = tokio::time::timeout(Duration::from_secs(10), progress.next()).await.unwrap();
            let Some(unstuck::Delivery::Event(event)) = next else { panic!("{next:?}") };
            assert_eq!(event.call().map(|call| call.id().as_str()), Some("toolu_01"), "{event:?}");
            assert_eq!(event.to_json()["call"]["key"], "toolu_01", "{}", event.to_json());
        }
    }
}
