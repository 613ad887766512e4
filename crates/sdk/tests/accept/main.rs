//! What is asked of the library, one test for each requirement: `docs/requirements.toml` names them, `cargo xtask accept` runs them.
#![cfg(all(unix, feature = "tools"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod bench;

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use unstuck::tools::{Files, Shell};
use unstuck::{
    After, Again, Annotations, Attempted, Before, Bookmark, CallInfo, CallState, Channel, Delivery, Effect,
    Failure, Hook, Lang, Policy, Session, Status, ToolCall, ToolContext, Toolbox, tool_fn,
};

use bench::{
    Careful, Heard, NO_RECORD, RESET, all_of, both, call, failing, hanging, in_time, kinds, once, store,
    tool, trail, with,
};

/// What a made-up tool is called with.
#[derive(Deserialize, JsonSchema)]
struct Line {
    path: String,
    line: u32,
}

/// A tool with a schema.
fn line() -> impl unstuck::Tool {
    tool_fn("fs_line", "One line of a file.", |args: Line, _: ToolContext| async move {
        Ok::<_, Failure>(format!("{}:{}", args.path, args.line))
    })
    .annotated(Annotations::new().read_only())
}

/// The file tools, in a folder.
fn files(folder: &TempDir, lang: Lang) -> Toolbox {
    let files = Files::in_folder(folder.path());
    let builder =
        Toolbox::builder().tool(files.read()).tool(files.find()).tool(files.search()).tool(files.edit());
    builder.policy(once().language(lang)).build().unwrap()
}

fn is_chinese(text: &str) -> bool {
    text.chars().any(|sign| ('\u{4e00}'..='\u{9fff}').contains(&sign))
}

#[tokio::test]
async fn r2_01_a_failure_has_five_fields() {
    let result =
        call(&with(failing("work", Annotations::new(), Failure::expected(NO_RECORD))), "work", json!({}))
            .await;
    let told = result.to_json();
    assert_eq!(
        (&told["ok"], &told["error"], &told["errorType"]),
        (&json!(false), &json!(NO_RECORD), &json!("logical"))
    );
    assert_eq!(told["retryable"], json!(false), "{told}");
    assert!(!told["recommendations"].as_array().unwrap().is_empty(), "{told}");
    assert_eq!(
        call(&with(line()), "fs_line", json!({ "path": "a", "line": 1 })).await.to_json(),
        json!({ "ok": true, "output": "a:1" })
    );
}

#[tokio::test]
async fn r2_02_arguments_that_do_not_fit_are_a_validation_failure_with_field_and_reason() {
    let tools = with(line());
    let missing = call(&tools, "fs_line", json!({ "path": "a" })).await;
    let wrong = call(&tools, "fs_line", json!({ "path": "a", "line": "three" })).await;
    let broken = in_time(tools.call(ToolCall::from_text("fs_line", "{\"path\": "))).await;
    let unknown = call(&tools, "fs_lien", json!({ "path": "a", "line": 1 })).await;
    for (result, words) in [
        (&missing, &["line", "missing"][..]),
        (&wrong, &["line", "a whole number", "three"]),
        (&broken, &["JSON"]),
        (&unknown, &["fs_lien", "did you mean `fs_line`?"]),
    ] {
        let told = (result.error_type(), result.retryable(), result.status());
        assert_eq!(told, (Some("validation"), Some(false), Status::Failed), "{result:?}");
        words.iter().for_each(|word| assert!(result.error().unwrap().contains(word), "{word}: {result:?}"));
    }
    let mistake = &wrong.to_json()["mistakes"][0];
    assert_eq!(
        (&mistake["path"], &mistake["expected"]),
        (&json!("/line"), &json!("a whole number")),
        "{mistake}"
    );
}

#[tokio::test]
async fn r2_03_what_a_tool_throws_is_data_with_its_cause() {
    let reads =
        tool("read", Annotations::new().read_only(), |_| Ok(json!(fs::read_to_string("/no/such/file")?)));
    let result = call(&with(reads), "read", json!({})).await;
    assert_eq!((result.status(), result.error_type()), (Status::Failed, Some("logical")), "{result:?}");
    let busy = Failure::unexpected("HTTP 503 Service Unavailable").http_status(503);
    let result =
        call(&with(failing("fetch", Annotations::new().read_only(), busy)), "fetch", json!({})).await;
    assert_eq!((result.status(), result.error_type()), (Status::Failed, Some("runtime")), "{result:?}");
}

#[tokio::test]
async fn r2_04_a_result_that_says_it_failed_is_kept_as_it_is() {
    let said = json!({ "ok": false, "error": "File not found: a.rs", "recommendations": ["look in src"], "tried": 3 });
    let answer = said.clone();
    let result =
        call(&with(tool("work", Annotations::new(), move |_| Ok(answer.clone()))), "work", json!({})).await;
    assert_eq!(
        (result.status(), result.error_type(), result.output()),
        (Status::Failed, Some("logical"), &said)
    );
    assert_eq!(
        (result.error(), &*result.recommendations()[0]),
        (Some("File not found: a.rs"), "look in src")
    );
}

#[tokio::test]
async fn r2_05_what_ran_out_of_time_or_was_stopped_is_aborted_and_not_repeated_unchanged() {
    for (which, tools, _folder) in both(|| {
        let policy = once().timeout(Duration::from_millis(100));
        Toolbox::builder().tool(hanging("slow")).policy(policy)
    }) {
        let result = call(&tools, "slow", json!({})).await;
        assert_eq!(
            (result.error_type(), result.retryable()),
            (Some("aborted"), Some(false)),
            "{which}: {result:?}"
        );
        let told = result.to_json().to_string();
        assert!(!told.contains("may pass by itself"), "{which}: {told}");
        assert!(
            result.recommendations().iter().any(|advice| advice.contains("limit")),
            "{which}: {result:?}"
        );
        // Nobody waits for it any more.
        let dropped = tokio::time::timeout(
            Duration::from_millis(20),
            tools.call(ToolCall::new("slow", json!({ "n": 2 }))),
        );
        assert!(dropped.await.is_err(), "{which}");
        let begun = Instant::now();
        while tools.records(tools.session()).await.unwrap().last().unwrap().state != CallState::Failed {
            assert!(begun.elapsed() < Duration::from_secs(20), "{which}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let tools = Toolbox::builder().tool(hanging("slow")).policy(once()).build().unwrap();
    let running = tokio::spawn({
        let tools = tools.clone();
        async move { call(&tools, "slow", json!({})).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    in_time(tools.shutdown()).await;
    let stopped = running.await.unwrap();
    assert_eq!((stopped.error_type(), stopped.retryable()), (Some("aborted"), Some(false)), "{stopped:?}");
}

#[tokio::test]
async fn r2_06_a_panic_is_an_exception() {
    let tools = with(tool("work", Annotations::new(), |_| panic!("index out of bounds: the len is 0")));
    let result = call(&tools, "work", json!({})).await;
    assert_eq!(
        (result.status(), result.error_type(), result.retryable()),
        (Status::Failed, Some("exception"), None),
        "{result:?}"
    );
    assert!(result.error().unwrap().contains("index out of bounds"), "{result:?}");
    assert_eq!(
        call(&tools, "work", json!({ "again": true })).await.status(),
        Status::Failed,
        "and it goes on"
    );
}

#[tokio::test]
async fn r2_07_no_failure_is_taken_for_a_success() {
    let folder = TempDir::new().unwrap();
    let tools = Toolbox::builder()
        .tool(Shell::new().folder(folder.path()))
        .tool(tool("says", Annotations::new(), |_| Ok(json!({ "ok": false }))))
        .policy(once())
        .build()
        .unwrap();
    let result = call(&tools, "shell", json!({ "command": "no-such-program-here" })).await;
    assert_eq!((result.is_ok(), result.to_json()["ok"].clone()), (false, json!(false)), "{result:?}");
    assert_eq!(result.output()["exit_code"], json!(127), "{result:?}");
    assert!(!call(&tools, "says", json!({})).await.is_ok());
    assert!(call(&tools, "shell", json!({ "command": "true" })).await.is_ok());
}

#[tokio::test]
async fn r2_08_every_failure_is_a_progress_event_with_the_call_the_error_and_a_bookmark() {
    for (which, tools, _folder) in both(|| {
        Toolbox::builder()
            .tool(failing("work", Annotations::new(), Failure::expected(NO_RECORD)))
            .policy(once())
    }) {
        let heard = Heard::default();
        let _listener = tools.events().on("tool:error", heard.by());
        for n in 0..20 {
            call(&tools, "work", json!({ "n": n })).await;
        }
        for told in heard.so_many(20).await {
            let call = &told["call"];
            assert_eq!(
                (&call["tool"], &call["state"]),
                (&json!("work"), &json!("failed")),
                "{which}: {told}"
            );
            assert_eq!(
                (&told["channel"], &told["error"]),
                (&json!("progress"), &json!(NO_RECORD)),
                "{which}"
            );
            assert!(told["bookmark"].is_u64(), "{which}: {told}");
        }
    }
}

#[tokio::test]
async fn r2_09_every_failure_is_a_monitor_event_without_what_the_tool_printed() {
    for (which, tools, _folder) in both(|| {
        let failure = Failure::exited(2, "the password is hunter2hunter2\n", "error: no such record: 7\n");
        Toolbox::builder().tool(failing("work", Annotations::new(), failure)).policy(once())
    }) {
        let heard = Heard::default();
        let _listener = tools.events().on("error", heard.by());
        call(&tools, "work", json!({})).await;
        let told = heard.so_many(1).await.remove(0);
        assert_eq!(
            (&told["channel"], &told["phase"]),
            (&json!("monitor"), &json!("tool")),
            "{which}: {told}"
        );
        assert!(["info", "warn", "error"].contains(&told["severity"].as_str().unwrap()), "{which}: {told}");
        assert!(told["message"].as_str().unwrap().contains("no such record"), "{which}: {told}");
        let detail = &told["detail"];
        assert!(detail["errorType"].is_string() && detail["kind"].is_string(), "{which}: {told}");
        assert!(detail["retryable"].is_boolean() && detail["rule"].is_string(), "{which}: {told}");
        assert!(!told.to_string().contains("hunter2hunter2"), "{which}: {told}");
    }
}

#[tokio::test]
async fn r2_10_recommendations_fit_the_cause_and_the_tool_in_both_languages() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("helper.rs"), "fn help() {}\n").unwrap();
    let tools = files(&folder, Lang::En);
    let missing = call(&tools, "fs_read", json!({ "path": "zzz.rs" })).await;
    assert!(missing.recommendations().iter().any(|advice| advice.contains("fs_glob")), "{missing:?}");
    let unknown = call(&tools, "fs_raed", json!({ "path": "a" })).await;
    let advice = unknown.recommendations().join("\n");
    assert!(advice.contains("`fs_read`") && !advice.contains("field"), "{unknown:?}");
    assert!(unknown.error().unwrap().contains("`fs_glob`"), "the tools are listed: {unknown:?}");
    let tools = files(&folder, Lang::Zh);
    let cases = [
        ("fs_read", json!({ "path": "zzz.rs" })),
        ("fs_read", json!({ "path": "helpr.rs" })),
        ("fs_read", json!({ "path": "" })),
        ("fs_read", json!({})),
        ("fs_read", json!({ "path": 7 })),
        ("fs_raed", json!({ "path": "a" })),
        ("fs_edit", json!({ "path": "helper.rs", "old": "nothing like it", "new": "x" })),
        ("fs_edit", json!({ "path": "helper.rs", "old": "", "new": "x" })),
    ];
    for (name, input) in cases {
        let told = call(&tools, name, input.clone()).await.to_json();
        let shown = told["recommendations"].as_array().unwrap();
        assert!(is_chinese(told["error"].as_str().unwrap()), "{name} {input}: {told}");
        assert!(
            !shown.is_empty() && shown.iter().all(|text| is_chinese(text.as_str().unwrap())),
            "{name} {input}: {told}"
        );
        for mistake in told["mistakes"].as_array().into_iter().flatten() {
            let texts = ["expected", "got"].map(|part| mistake[part].as_str().unwrap_or_default());
            assert!(texts.iter().all(|text| is_chinese(text)), "{name} {input}: {mistake}");
        }
    }
}

#[tokio::test]
async fn r2_11_a_model_finds_the_file_that_it_named_wrongly() {
    let folder = TempDir::new().unwrap();
    fs::create_dir_all(folder.path().join("src/lib")).unwrap();
    fs::write(folder.path().join("src/lib/helper.ts"), "export function helper() {}\n").unwrap();
    let tools = files(&folder, Lang::En);
    let missing = call(&tools, "fs_read", json!({ "path": "src/utils/helper.ts" })).await;
    assert_eq!((missing.error_type(), missing.is_ok()), (Some("logical"), false), "{missing:?}");
    let found = call(&tools, "fs_glob", json!({ "pattern": "src/**/*.ts" })).await;
    assert!(found.is_ok() && found.output().to_string().contains("src/lib/helper.ts"), "{found:?}");
    let found = call(&tools, "fs_grep", json!({ "pattern": "helper" })).await;
    assert!(found.is_ok() && found.output().to_string().contains("src/lib/helper.ts"), "{found:?}");
    assert!(call(&tools, "fs_read", json!({ "path": "src/lib/helper.ts" })).await.is_ok());
    // The very same wrong path again leads nowhere, and is refused in the end.
    let mut last = missing;
    for _ in 0..6 {
        last = call(&tools, "fs_read", json!({ "path": "src/utils/helper.ts" })).await;
    }
    assert!(matches!(last.status(), Status::Denied | Status::Halted), "{last:?}");
    assert!(last.error().unwrap().contains("still does not exist"), "it was looked at just now: {last:?}");
}

#[tokio::test]
async fn r2_12_a_model_adds_the_argument_that_was_missing() {
    let tools = with(line());
    let missing = call(&tools, "fs_line", json!({ "line": 1 })).await;
    assert_eq!((missing.error_type(), missing.retryable()), (Some("validation"), Some(false)));
    assert!(missing.error().unwrap().contains("`path` is missing"), "{missing:?}");
    assert!(call(&tools, "fs_line", json!({ "path": "a", "line": 1 })).await.is_ok());
}

#[tokio::test]
async fn r2_13_events_come_as_a_stream() {
    let tools = with(failing("work", Annotations::new(), Failure::expected(NO_RECORD)));
    let mut progress = tools.events().subscribe([Channel::Progress]);
    call(&tools, "work", json!({})).await;
    let mut told = None;
    while let Some(Delivery::Event(event)) = in_time(progress.next()).await {
        if event.kind() == "tool:error" {
            told = Some((event.get("error"), event.to_json()["call"]["state"].clone()));
            break;
        }
    }
    assert_eq!(told, Some((Some(json!(NO_RECORD)), json!("failed"))));
}

#[tokio::test]
async fn r2_14_an_alert_goes_out_where_the_severity_is_error() {
    let tools = Toolbox::builder()
        .tool(failing(
            "busy",
            Annotations::new().read_only(),
            Failure::unexpected("HTTP 503").http_status(503),
        ))
        .tool(failing(
            "locked",
            Annotations::new().read_only(),
            Failure::unexpected("permission denied (os error 13)"),
        ))
        .policy(once())
        .build()
        .unwrap();
    let heard = Heard::default();
    let _listener = tools.events().on("error", heard.by());
    call(&tools, "busy", json!({})).await;
    call(&tools, "locked", json!({})).await;
    let told = heard.so_many(2).await;
    let alerts: Vec<&Value> = told.iter().filter(|event| event["severity"] == "error").collect();
    assert!(
        alerts.len() == 1 && alerts[0]["message"].as_str().unwrap().contains("permission denied"),
        "{told:?}"
    );
}

#[tokio::test]
async fn r2_15_whatever_a_tool_throws_is_caught_at_the_tool() {
    let at_once = tool("at_once", Annotations::new(), |_| panic!("at once"));
    let later = tool_fn("later", "", |_: Value, _: ToolContext| async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(std::env::args().count() > 1_000, "later");
        Ok::<_, Failure>(())
    });
    let tools = Toolbox::builder().tool(at_once).tool(later).policy(once()).build().unwrap();
    for name in ["at_once", "later"] {
        let result = call(&tools, name, json!({})).await;
        assert_eq!(
            (result.status(), result.error_type()),
            (Status::Failed, Some("exception")),
            "{name}: {result:?}"
        );
    }
}

/// Calls several tools that never yield, on a runtime, one after the other and all at once; how long the longest took.
fn never_yielding(runtime: tokio::runtime::Runtime) -> Duration {
    let ends = Arc::new(AtomicBool::new(false));
    let mut builder = Toolbox::builder().policy(once().timeout(Duration::from_millis(150)));
    for number in 0..6 {
        let ends = Arc::clone(&ends);
        builder = builder.tool(tool(&format!("spin{number}"), Annotations::new().read_only(), move |_| {
            while !ends.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(2));
            }
            Ok(json!(null))
        }));
    }
    let tools = builder.tool(tool("fine", Annotations::new().read_only(), Ok)).build().unwrap();
    let (done, is_done) = mpsc::channel();
    let ending = Arc::clone(&ends);
    let worker = std::thread::spawn(move || {
        let longest = runtime.block_on(async {
            let timed = async |name: String| {
                let begun = Instant::now();
                let result = tools.call(ToolCall::new(name, json!({}))).await;
                (result, begun.elapsed())
            };
            let mut longest = Duration::ZERO;
            for number in 0..3 {
                let (result, took) = timed(format!("spin{number}")).await;
                assert_eq!(result.error_type(), Some("aborted"), "{result:?}");
                longest = longest.max(took);
            }
            // From within the runtime, at the same time.
            let many: Vec<_> = (3..6)
                .map(|number| {
                    let tools = tools.clone();
                    tokio::spawn(async move {
                        tools.call(ToolCall::new(format!("spin{number}"), json!({}))).await
                    })
                })
                .collect();
            for one in many {
                assert_eq!(one.await.unwrap().error_type(), Some("aborted"));
            }
            let (result, took) = timed("fine".to_owned()).await;
            assert!(result.is_ok(), "{result:?}");
            longest.max(took)
        });
        done.send(longest).unwrap();
        // The runtime waits for what still holds its workers.
        while !ending.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let longest = is_done.recv_timeout(Duration::from_secs(20));
    ends.store(true, Ordering::Relaxed);
    let longest = longest.expect("the toolbox hangs");
    worker.join().unwrap();
    longest
}

#[test]
fn r2_16_as_many_tools_that_never_yield_as_there_are_workers_hang_nothing() {
    for workers in 1..=3 {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap();
        let longest = never_yielding(runtime);
        assert!(longest < Duration::from_secs(5), "{workers} workers: {longest:?}");
    }
    let single = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let longest = never_yielding(single);
    assert!(longest < Duration::from_secs(5), "a single thread: {longest:?}");
}

#[tokio::test]
async fn r2_17_arguments_are_read_safely_whatever_they_are() {
    let tools = with(line());
    let deep = "[".repeat(100_000);
    for text in
        ["", "nonsense", "{\"path\": ", "[1,2]", "null", "\"a\"", "{\"path\":{}}", &deep, "{\"line\":1e999}"]
    {
        let result = in_time(tools.call(ToolCall::from_text("fs_line", text))).await;
        assert_eq!(
            (result.status(), result.error_type()),
            (Status::Failed, Some("validation")),
            "{text:.20}: {result:?}"
        );
    }
}

/// Panics where it is asked and told, or never answers.
struct Broken {
    hangs: bool,
}

impl Hook for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    async fn before(&self, _: Arc<CallInfo>) -> Before {
        match self.hangs {
            true => std::future::pending().await,
            false => panic!("before"),
        }
    }

    async fn after(&self, _: Arc<CallInfo>, _: Arc<Attempted>) -> After {
        match self.hangs {
            true => std::future::pending().await,
            false => panic!("after"),
        }
    }
}

#[tokio::test]
async fn r2_18_a_hook_that_fails_is_recorded_and_the_call_goes_on() {
    for hangs in [false, true] {
        for (which, tools, folder) in both(|| {
            let policy = once().hook_timeout(Duration::from_millis(50));
            Toolbox::builder()
                .tool(tool("echo", Annotations::new(), Ok))
                .hook(Broken { hangs })
                .policy(policy)
        }) {
            let heard = Heard::default();
            let _listener = tools.events().on("error", heard.by());
            let result = call(&tools, "echo", json!(7)).await;
            assert_eq!((result.is_ok(), result.output()), (true, &json!(7)), "{which}: {result:?}");
            for told in heard.so_many(2).await {
                assert_eq!(
                    (&told["phase"], &told["severity"]),
                    (&json!("hook"), &json!("warn")),
                    "{which}: {told}"
                );
                assert!(told["message"].as_str().unwrap().contains("broken"), "{which}: {told}");
                assert!(told["bookmark"].is_u64(), "{which}: {told}");
            }
            in_time(tools.shutdown()).await;
            if let Ok(database) = rusqlite::Connection::open_with_flags(
                folder.path().join("state/timeline.db"),
                rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
            ) {
                let count = |kind: &str| {
                    let sql = "SELECT count(*) FROM event WHERE type = ?1";
                    database.query_row(sql, [kind], |row| row.get::<_, i64>(0)).unwrap()
                };
                // It is a fault of whoever wrote the hook, and none of unstuck's own.
                assert_eq!((count("error"), count("own_fault")), (2, 0), "{which}");
            }
        }
    }
}

#[tokio::test]
async fn r2_19_tools_are_isolated_from_each_other() {
    let mixed = tool("work", Annotations::new(), |input| match input["n"].as_u64().unwrap() % 3 {
        0 => panic!("a third"),
        1 => Err(Failure::expected(format!("no such record: {}", input["n"]))),
        _ => Ok(input),
    });
    let tools = with(mixed);
    let all: Vec<_> = (0..60)
        .map(|n| {
            let tools = tools.clone();
            tokio::spawn(async move { (n, call(&tools, "work", json!({ "n": n })).await) })
        })
        .collect();
    let mut fine = 0;
    for one in all {
        let (n, result) = one.await.unwrap();
        assert_eq!(result.is_ok(), n % 3 == 2, "{n}: {result:?}");
        fine += u32::from(result.is_ok());
    }
    assert_eq!(fine, 20);
}

#[tokio::test]
async fn r2_20_every_failure_leaves_an_event() {
    for (which, tools, _folder) in both(|| {
        Toolbox::builder()
            .tool(line())
            .tool(tool("panics", Annotations::new(), |_| panic!("oh")))
            .tool(failing("fails", Annotations::new(), Failure::expected(NO_RECORD)))
            .tool(hanging("hangs"))
            .policy(once().timeout(Duration::from_millis(50)))
    }) {
        let mut events = tools.events().subscribe(Channel::ALL).types(["tool:error", "error"]);
        for (name, input) in [
            ("panics", json!({})),
            ("fails", json!({})),
            ("hangs", json!({})),
            ("fs_line", json!({})),
            ("fs_nowhere", json!({})),
        ] {
            assert_eq!(call(&tools, name, input).await.status(), Status::Failed, "{which}: {name}");
        }
        let told = all_of(&tools, &mut events).await;
        let of = |kind: &str| kinds(&told).iter().filter(|told| **told == kind).count();
        assert_eq!((of("tool:error"), of("error")), (5, 5), "{which}: {:?}", kinds(&told));
    }
}

#[tokio::test]
async fn r2_21_a_tool_that_expects_its_failure_recommends_what_to_do_first() {
    let failure =
        Failure::expected("File not found").recommend("check the path").recommend("search with fs_glob");
    let result = call(&with(failing("work", Annotations::new(), failure)), "work", json!({})).await;
    assert_eq!(result.recommendations()[..2], ["check the path", "search with fs_glob"], "{result:?}");
}

#[tokio::test]
async fn r2_22_a_surface_sees_the_state_failed_and_offers_a_retry() {
    let tools = with(failing("work", Annotations::new(), Failure::expected(NO_RECORD)));
    let heard = Heard::default();
    let _listener = tools.events().on("tool:error", heard.by());
    call(&tools, "work", json!({})).await;
    let told = heard.so_many(1).await.remove(0);
    let action = (told["call"]["state"] == CallState::Failed.word()).then_some("retry");
    assert_eq!((told["error"].as_str(), action), (Some(NO_RECORD), Some("retry")), "{told}");
}

#[tokio::test]
async fn r2_23_a_call_waits_for_a_person_by_its_id() {
    for (which, tools, _folder) in
        both(|| Toolbox::builder().tool(tool("risky", Annotations::new(), Ok)).hook(Careful).policy(once()))
    {
        let paused = call(&tools, "risky", json!({ "n": 1 })).await;
        assert_eq!((paused.status(), paused.error()), (Status::Paused, Some("may it?")), "{which}");
        let other = call(&tools, "risky", json!({ "n": 2 })).await;
        let waiting: Vec<_> =
            tools.pending().iter().map(|it| (it.call.id().clone(), it.question.clone())).collect();
        assert!(
            waiting.contains(&(paused.call().id().clone(), "may it?".to_owned())),
            "{which}: {waiting:?}"
        );
        let allowed = in_time(tools.approve(paused.call())).await.unwrap();
        assert_eq!((allowed.status(), allowed.output()), (Status::Succeeded, &json!({ "n": 1 })), "{which}");
        let refused = in_time(tools.deny(other.call(), "not today")).await.unwrap();
        assert_eq!((refused.status(), refused.error()), (Status::Denied, Some("not today")), "{which}");
        assert_eq!(refused.retryable(), Some(false), "{which}: {refused:?}");
        assert!(tools.pending().is_empty(), "{which}");
    }
}

#[tokio::test]
async fn r2_24_an_application_sends_again_what_is_retryable() {
    let check = async |annotations: Annotations, sent: u32| {
        let ran = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&ran);
        let busy = tool("fetch", annotations, move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Err(Failure::unexpected("HTTP 503 Service Unavailable")
                .http_status(503)
                .retry_after(Duration::ZERO))
        });
        let tools = with(busy);
        let mut retries = 0;
        let mut last = call(&tools, "fetch", json!({})).await;
        while last.retryable() == Some(true) && retries < 3 {
            retries += 1;
            last = call(&tools, "fetch", json!({})).await;
        }
        assert_eq!(ran.load(Ordering::Relaxed), sent, "{last:?}");
    };
    check(Annotations::new().read_only(), 4).await;
    // What may have been done is not to be done twice.
    check(Annotations::new(), 1).await;
}

#[tokio::test]
async fn r2_25_failures_are_counted_by_their_type() {
    let tools = Toolbox::builder()
        .tool(line())
        .tool(tool("panics", Annotations::new(), |_| panic!("oh")))
        .tool(failing("fails", Annotations::new(), Failure::expected(NO_RECORD)))
        .tool(failing("locked", Annotations::new(), Failure::unexpected("permission denied (os error 13)")))
        .tool(hanging("hangs"))
        .policy(once().timeout(Duration::from_millis(500)))
        .build()
        .unwrap();
    let heard = Heard::default();
    let _listener = tools.events().on("error", heard.by());
    for (name, times) in [("fs_line", 3), ("panics", 1), ("fails", 2), ("locked", 2), ("hangs", 1)] {
        for n in 0..times {
            call(&tools, name, json!({ "n": n })).await;
        }
    }
    let told = heard.so_many(9).await;
    let of = |kind: &str| told.iter().filter(|event| event["detail"]["errorType"] == kind).count();
    let counts = ["validation", "runtime", "logical", "aborted", "exception"].map(of);
    assert_eq!(counts, [3, 2, 2, 1, 1], "{told:?}");
}

#[tokio::test]
async fn r2_26_more_than_a_hundred_validation_failures_are_an_alert() {
    let tools = with(line());
    let heard = Heard::default();
    let _listener = tools.events().on("error", heard.by());
    let validation = async |many: usize| {
        let all = heard.so_many(many).await;
        all.iter().filter(|event| event["detail"]["errorType"] == "validation").count()
    };
    for n in 0..124 {
        let session = format!("s{}", n % 62);
        in_time(tools.call(ToolCall::new("fs_line", json!({ "n": n })).session(session.as_str()))).await;
        if n == 99 {
            assert!(validation(100).await <= 100, "no alert yet");
        }
    }
    assert!(validation(124).await > 100);
}

#[tokio::test]
async fn r2_27_the_event_of_a_failure_has_its_documented_shape() {
    let tools = with(failing("work", Annotations::new(), Failure::expected(NO_RECORD)));
    let heard = Heard::default();
    let _listener = tools.events().on("tool:error", heard.by());
    in_time(tools.call(ToolCall::new("work", json!({})).id("toolu_01").session("s").agent("coder"))).await;
    let told = heard.so_many(1).await.remove(0);
    for (field, value) in [
        ("v", json!(1)),
        ("channel", json!("progress")),
        ("type", json!("tool:error")),
        ("error", json!(NO_RECORD)),
        ("session", json!("s")),
    ] {
        assert_eq!(told[field], value, "{field} of {told}");
    }
    let call = &told["call"];
    let named = (&call["key"], &call["tool"], &call["agent"], &call["state"]);
    assert_eq!(named, (&json!("toolu_01"), &json!("work"), &json!("coder"), &json!("failed")), "{told}");
    assert!(told["bookmark"].is_u64(), "{told}");
}

#[tokio::test]
async fn r2_28_the_record_of_a_call_tells_all_its_states_in_their_order() {
    use CallState::{ApprovalRequired, Approved, Completed, Denied, Executing, Failed, Pending};
    for (which, tools, _folder) in both(|| {
        Toolbox::builder()
            .tool(tool("risky", Annotations::new(), Ok))
            .tool(tool("forbidden", Annotations::new(), Ok))
            .tool(tool("echo", Annotations::new(), Ok))
            .tool(failing("fails", Annotations::new(), Failure::expected(NO_RECORD)))
            .hook(Careful)
            .policy(once())
    }) {
        let check = async |name: &str, ruling: Option<bool>, states: &[CallState]| {
            let result = call(&tools, name, json!({ "ruling": ruling })).await;
            match ruling {
                Some(true) => drop(in_time(tools.approve(result.call())).await),
                Some(false) => drop(in_time(tools.deny(result.call(), "no")).await),
                None => {}
            }
            assert_eq!(trail(&tools, result.call().id()).await, states, "{which}: {name}");
        };
        check("echo", None, &[Pending, Executing, Completed]).await;
        check("fails", None, &[Pending, Executing, Failed]).await;
        check("risky", Some(true), &[Pending, ApprovalRequired, Approved, Executing, Completed]).await;
        check("risky", Some(false), &[Pending, ApprovalRequired, Denied]).await;
        check("forbidden", None, &[Pending, Denied]).await;
    }
}

#[tokio::test]
async fn r2_29_what_happened_can_be_read_again_from_any_bookmark() {
    for (which, tools, _folder) in both(|| {
        Toolbox::builder()
            .tool(tool("echo", Annotations::new(), Ok))
            .tool(failing("fails", Annotations::new(), Failure::expected(NO_RECORD)))
            .hook(Broken { hangs: false })
            .policy(once())
    }) {
        let mut live = tools.events().subscribe(Channel::ALL);
        for n in 0..10 {
            call(&tools, if n % 3 == 0 { "fails" } else { "echo" }, json!({ "n": n })).await;
        }
        let mut from_begin = tools.events().subscribe(Channel::ALL).from(Bookmark(0));
        let seen = all_of(&tools, &mut live).await;
        let numbers: Vec<Bookmark> = seen.iter().map(|event| event.bookmark().unwrap()).collect();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{which}: {numbers:?}");
        let again: Vec<Bookmark> =
            all_of(&tools, &mut from_begin).await.iter().map(|event| event.bookmark().unwrap()).collect();
        assert_eq!(again, numbers, "{which}");
        assert_eq!(kinds(&seen).iter().filter(|kind| **kind == "tool:end").count(), 10, "{which}");
    }
}

/// The toolbox that dies in the middle, and the one that goes on.
fn mortal(path: &std::path::Path) -> Toolbox {
    Toolbox::builder()
        .tool(tool("echo", Annotations::new(), Ok))
        .tool(tool("risky", Annotations::new(), Ok))
        .tool(hanging("writes"))
        .tool(
            tool_fn("looks", "", |_: Value, _: ToolContext| std::future::pending::<Result<(), Failure>>())
                .annotated(Annotations::new().read_only()),
        )
        .hook(Careful)
        .session("s")
        .store(unstuck::Store::at(path).patience(Duration::from_secs(20)))
        .build()
        .unwrap()
}

/// Dies with four calls under way; where this is the process that is to die.
async fn dies_if_it_is_to() {
    let Some(path) = std::env::var_os("UNSTUCK_ACCEPT_STORE") else { return };
    let tools = mortal(path.as_ref());
    let mut events = tools.events().subscribe([Channel::Progress]).types(["tool:start"]);
    call(&tools, "echo", json!({})).await;
    in_time(tools.call(ToolCall::new("risky", json!({})).id("waits"))).await;
    for (name, id) in [("writes", "wrote"), ("looks", "looked")] {
        let tools = tools.clone();
        tokio::spawn(async move { tools.call(ToolCall::new(name, json!({})).id(id)).await });
    }
    for _ in 0..4 {
        in_time(events.next()).await;
    }
    // What was ruled is written without anybody waiting for it; the records come after it.
    tools.records(tools.session()).await.unwrap();
    std::process::abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r2_30_after_a_crash_the_truth_is_told_of_each_call_that_was_under_way() {
    dies_if_it_is_to().await;
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let name = "r2_30_after_a_crash_the_truth_is_told_of_each_call_that_was_under_way";
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", name, "--nocapture"]).env("UNSTUCK_ACCEPT_STORE", &path);
    let output = child.output().unwrap();
    assert!(!output.status.success(), "{output:?}");

    let tools = mortal(&path);
    let results = in_time(tools.resume(&Session::from("s"))).await.unwrap();
    let of = |id: &str| results.iter().find(|result| result.call().id().as_str() == id).unwrap();
    assert_eq!(results.len(), 3, "{results:?}");
    let effect = |id: &str| of(id).verdict().unwrap().effect;

    let waited = of("waits");
    assert_eq!((effect("waits"), waited.error_type()), (Effect::Nothing, Some("aborted")), "{waited:?}");
    assert!(waited.error().unwrap().contains("it did not run"), "{waited:?}");
    let told = waited.to_json().to_string();
    assert!(!told.contains("ask again") && !told.contains("side effects"), "{told}");
    assert!(waited.recommendations().iter().any(|advice| advice.contains("a person decides")), "{waited:?}");

    let looked = of("looked");
    assert_eq!((effect("looked"), looked.retryable()), (Effect::Nothing, Some(true)), "{looked:?}");
    assert!(!looked.to_json().to_string().contains("side effects"), "{looked:?}");

    let wrote = of("wrote");
    assert_eq!((effect("wrote"), wrote.retryable()), (Effect::Maybe, Some(false)), "{wrote:?}");
    assert!(wrote.error().unwrap().contains("check for side effects before repeating"), "{wrote:?}");

    assert!(in_time(tools.resume(&Session::from("s"))).await.unwrap().is_empty(), "each is told once");
    assert!(call(&tools, "echo", json!({})).await.is_ok(), "and the session goes on");
}

#[tokio::test]
async fn r2_31_retryable_means_that_the_same_call_may_run_again_without_harm() {
    let check = async |annotations: Annotations, failure: Failure, retryable: bool| {
        for (which, tools, _folder) in both(|| {
            Toolbox::builder().tool(failing("fetch", annotations.clone(), failure.clone())).policy(once())
        }) {
            let heard = Heard::default();
            let _listener = tools.events().on("tool:error", heard.by());
            let result = call(&tools, "fetch", json!({})).await;
            let again = result.verdict().unwrap().again;
            let may = matches!(again, Again::Now | Again::After(_));
            assert_eq!((result.retryable(), may), (Some(retryable), retryable), "{which}: {result:?}");
            let told = heard.so_many(1).await.remove(0);
            assert_eq!(told["retryable"], json!(retryable), "{which}: {told}");
            let advice = result.recommendations().join("\n");
            let [repeats, looks] = ["repeat the same call", "look"].map(|words| advice.contains(words));
            assert!(!(repeats && looks), "{which}: it says both: {advice}");
            assert!(retryable || looks, "{which}: {advice}");
        }
    };
    let busy = || Failure::unexpected("HTTP 503 Service Unavailable").http_status(503);
    check(Annotations::new(), busy(), false).await;
    check(Annotations::new().writes(), busy(), false).await;
    check(Annotations::new(), Failure::unexpected(RESET), false).await;
    check(Annotations::new(), busy().nothing_done(), true).await;
    check(Annotations::new().read_only(), busy(), true).await;
    check(Annotations::new().idempotent(), Failure::unexpected(RESET), true).await;
}

#[tokio::test]
async fn r2_32_everything_that_happened_can_be_seen_afterwards() {
    let folder = TempDir::new().unwrap();
    let make = || {
        let fails = failing("fails", Annotations::new(), Failure::expected(NO_RECORD));
        let tools = Toolbox::builder().tool(tool("echo", Annotations::new(), Ok)).tool(fails).session("s");
        tools.policy(once()).store(store(&folder)).build().unwrap()
    };
    let tools = make();
    call(&tools, "echo", json!({})).await;
    call(&tools, "fails", json!({})).await;
    in_time(tools.shutdown()).await;
    drop(tools);
    // Another process sees calls, their states and every event.
    let tools = make();
    let records = in_time(tools.records(&Session::from("s"))).await.unwrap();
    let seen: Vec<_> = records.iter().map(|record| (&*record.tool, record.state)).collect();
    assert_eq!(seen, [("echo", CallState::Completed), ("fails", CallState::Failed)]);
    assert!(records[1].trail.last().unwrap().note.contains("no such record"), "{records:?}");
    let mut events = tools.events().subscribe(Channel::ALL).from(Bookmark(0));
    let told = all_of(&tools, &mut events).await;
    for kind in ["tool:start", "tool:error", "error", "tool:end", "problem:new"] {
        assert!(kinds(&told).contains(&kind), "{kind}: {:?}", kinds(&told));
    }
}

#[tokio::test]
async fn r2_33_an_agent_that_repeats_itself_is_told_then_refused_then_halted() {
    for (which, tools, _folder) in both(|| {
        let fails = failing("work", Annotations::new().read_only(), Failure::expected(NO_RECORD));
        Toolbox::builder().tool(fails).policy(Policy::default())
    }) {
        let mut seen = Vec::new();
        let mut last = call(&tools, "work", json!({ "id": 7 })).await;
        assert!(last.note().is_some(), "{which}: it is told at once: {last:?}");
        for _ in 0..20 {
            seen.push(last.status());
            if last.status() == Status::Halted {
                break;
            }
            last = call(&tools, "work", json!({ "id": 7 })).await;
        }
        seen.dedup();
        assert_eq!(seen, [Status::Failed, Status::Denied, Status::Halted], "{which}");
        assert!(last.table().unwrap().contains(NO_RECORD), "{which}: {last:?}");
        assert_eq!(call(&tools, "work", json!({ "id": 8 })).await.status(), Status::Halted, "{which}");
        tools.user_spoke(tools.session());
        assert_eq!(call(&tools, "work", json!({ "id": 7 })).await.status(), Status::Failed, "{which}");
    }
}
