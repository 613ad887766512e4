//! Those who are asked before and told after.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unstuck::{
    After, Annotations, Attempted, Before, CallInfo, Channel, Failure, Hook, Kind, Moment, Next, Policy,
    Status, ToolContext, Toolbox, tool_fn,
};

use crate::{Count, NO_RECORD, Number, RESET, both, call, eventually, in_time, swift, tool, until};

/// Who was asked and told what, in order.
type Log = Arc<Mutex<Vec<String>>>;

/// A hook that says what it was made to say, and writes down what it hears.
struct Says {
    name: &'static str,
    log: Log,
    before: Before,
    after: After,
}

impl Hook for Says {
    fn name(&self) -> &str {
        self.name
    }

    async fn before(&self, call: Arc<CallInfo>) -> Before {
        self.log.lock().unwrap().push(format!("{} before {}", self.name, call.input()));
        self.before.clone()
    }

    async fn after(&self, _: Arc<CallInfo>, attempted: Arc<Attempted>) -> After {
        let heard = match &*attempted {
            Ok(output) => output.to_string(),
            Err(failure) => failure.message().to_owned(),
        };
        self.log.lock().unwrap().push(format!("{} after {heard}", self.name));
        self.after.clone()
    }
}

/// Says one thing before, and keeps what comes after.
fn rules(name: &'static str, log: &Log, before: Before) -> Says {
    Says { name, log: Arc::clone(log), before, after: After::Keep }
}

/// Lets it pass, and makes something of what came.
fn makes(name: &'static str, log: &Log, after: After) -> Says {
    Says { name, log: Arc::clone(log), before: Before::Allow, after }
}

#[tokio::test]
async fn hooks_are_asked_in_the_order_they_were_added_and_told_in_the_opposite_one() {
    let log = Log::default();
    let tools = Toolbox::builder()
        .tool(tool("echo", Annotations::new(), Ok))
        .hook(rules("a", &log, Before::Allow))
        .hook(rules("b", &log, Before::Allow))
        .build()
        .unwrap();
    assert!(call(&tools, "echo", json!(1)).await.is_ok());
    assert_eq!(*log.lock().unwrap(), ["a before 1", "b before 1", "b after 1", "a after 1"]);
}

#[tokio::test]
async fn the_first_hook_that_decides_decides_and_a_person_is_asked_last() {
    let deny = || Before::Deny("not today".to_owned());
    let ask = || Before::Ask("may it?".to_owned());
    let supply = || Before::Supply(json!("from the cache"));
    let check = async |first: Before, second: Before, asked: usize, status: Status, said: Value| {
        let (log, ran) = (Log::default(), Count::default());
        let counted = ran.clone();
        let tools = Toolbox::builder()
            .tool(tool("work", Annotations::new(), move |_| Ok(counted.up().into())))
            .hook(rules("first", &log, first))
            .hook(rules("second", &log, second))
            .build()
            .unwrap();
        let result = call(&tools, "work", json!({})).await;
        assert_eq!(result.status(), status, "{result:?}");
        let told = result.error().map_or(result.output().clone(), Value::from);
        assert_eq!((told, ran.get(), log.lock().unwrap().len()), (said, 0, asked), "{result:?}");
    };
    check(deny(), supply(), 1, Status::Denied, json!("not today")).await;
    check(ask(), deny(), 2, Status::Denied, json!("not today")).await;
    check(ask(), ask(), 2, Status::Paused, json!("may it?")).await;
    check(supply(), deny(), 1, Status::Succeeded, json!("from the cache")).await;
}

#[tokio::test]
async fn arguments_that_a_hook_rewrote_are_seen_by_the_next_hook_and_by_the_tool() {
    let log = Log::default();
    let tools = Toolbox::builder()
        .tool(tool("echo", Annotations::new(), Ok))
        .hook(rules("a", &log, Before::Rewrite(json!({ "n": 2 }))))
        .hook(rules("b", &log, Before::Allow))
        .build()
        .unwrap();
    let result = call(&tools, "echo", json!({ "n": 1 })).await;
    assert_eq!((result.output(), result.call().input()), (&json!({ "n": 2 }), &json!({ "n": 2 })));
    assert_eq!(log.lock().unwrap()[..2], ["a before {\"n\":1}", "b before {\"n\":2}"]);
}

#[tokio::test]
async fn arguments_that_a_hook_rewrote_are_checked_like_any_others() {
    let double = || tool_fn("double", "", |number: Number, _: ToolContext| async move { Ok(number.n * 2) });
    let check = async |rewritten: Value, input: Value, error_type: Option<&str>| {
        let hook = rules("a", &Log::default(), Before::Rewrite(rewritten));
        let tools = Toolbox::builder().tool(double()).hook(hook).build().unwrap();
        let result = call(&tools, "double", input).await;
        assert_eq!(result.error_type(), error_type, "{result:?}");
        assert_eq!(result.mistakes().len(), usize::from(error_type.is_some()), "{result:?}");
    };
    check(json!({ "n": "many" }), json!({ "n": 1 }), Some("validation")).await;
    check(json!({ "n": 1 }), json!({ "n": "many" }), None).await;
}

#[tokio::test]
async fn what_a_hook_makes_of_a_result_goes_on_to_the_next_and_then_to_the_model() {
    let log = Log::default();
    let build = |outer: After, inner: After| {
        Toolbox::builder()
            .tool(tool("work", Annotations::new(), |_| Ok(json!("raw"))))
            .hook(makes("outer", &log, outer))
            .hook(makes("inner", &log, inner))
            .build()
            .unwrap()
    };
    let result = call(&build(After::Keep, After::Replace(json!("cooked"))), "work", json!({})).await;
    assert_eq!(result.output(), &json!("cooked"));
    let fail = After::Fail(Failure::expected("no such file: a.txt"));
    let result = call(&build(fail, After::Replace(json!("cooked"))), "work", json!({})).await;
    let told = (result.status(), result.error(), result.error_type());
    assert_eq!(told, (Status::Failed, Some("no such file: a.txt"), Some("logical")));
    let heard: Vec<String> =
        log.lock().unwrap().iter().filter(|line| line.contains("after")).cloned().collect();
    let told = ["inner after \"raw\"", "outer after \"cooked\""];
    assert_eq!(heard, [told, told].concat());
}

#[tokio::test]
async fn the_ladder_counts_what_the_hooks_left_of_a_result() {
    let check = async |came: Result<Value, Failure>, after: After, is_refused: bool| {
        let hook = || makes("judge", &Log::default(), after.clone());
        let came = || {
            let came = came.clone();
            tool("work", Annotations::new(), move |_| came.clone())
        };
        for (which, tools, _folder) in both(|| Toolbox::builder().tool(came()).hook(hook())) {
            let mut statuses = Vec::new();
            for _ in 0..6 {
                statuses.push(call(&tools, "work", json!({})).await.status());
            }
            assert_eq!(statuses[0], Status::Failed, "{which}: {statuses:?}");
            assert_eq!(statuses.contains(&Status::Denied), is_refused, "{which}: {statuses:?}");
        }
    };
    let no = || Failure::expected(NO_RECORD);
    check(Ok(json!(1)), After::Fail(no()), true).await;
    check(Err(no()), After::Keep, true).await;
}

#[tokio::test]
async fn arguments_that_a_hook_made_too_long_are_refused() {
    let log = Log::default();
    let tools = Toolbox::builder()
        .tool(tool("echo", Annotations::new(), Ok))
        .hook(rules("a", &log, Before::Rewrite(json!("x".repeat(2000)))))
        .policy(Policy::default().max_input(1000))
        .build()
        .unwrap();
    let result = call(&tools, "echo", json!("short")).await;
    assert_eq!(result.error_type(), Some("validation"), "{result:?}");
}

#[tokio::test]
async fn a_hook_is_asked_and_told_at_its_own_moments_only() {
    struct Only(Says, &'static [Moment]);
    impl Hook for Only {
        fn name(&self) -> &str {
            self.0.name()
        }
        fn moments(&self) -> &[Moment] {
            self.1
        }
        async fn before(&self, call: Arc<CallInfo>) -> Before {
            self.0.before(call).await
        }
        async fn after(&self, call: Arc<CallInfo>, attempted: Arc<Attempted>) -> After {
            self.0.after(call, attempted).await
        }
    }
    let cases: [(&'static [Moment], &[&str]); 4] = [
        (&[Moment::Before], &["a before 7"]),
        (&[Moment::After], &["a after 7"]),
        (&[Moment::Retrying], &[]),
        (&[Moment::Before, Moment::After], &["a before 7", "a after 7"]),
    ];
    for (moments, expected) in cases {
        let log = Log::default();
        let tools = Toolbox::builder()
            .tool(tool("echo", Annotations::new(), Ok))
            .hook(Only(rules("a", &log, Before::Allow), moments))
            .build()
            .unwrap();
        assert!(call(&tools, "echo", json!(7)).await.is_ok());
        assert_eq!(*log.lock().unwrap(), expected, "{moments:?}");
    }
}

#[tokio::test]
async fn a_hook_that_panics_or_hangs_changes_nothing_and_is_told_of() {
    struct Panics;
    impl Hook for Panics {
        fn name(&self) -> &str {
            "panics"
        }
        async fn before(&self, _: Arc<CallInfo>) -> Before {
            panic!("before");
        }
        async fn after(&self, _: Arc<CallInfo>, _: Arc<Attempted>) -> After {
            panic!("after");
        }
    }
    struct Hangs;
    impl Hook for Hangs {
        fn name(&self) -> &str {
            "hangs"
        }
        async fn before(&self, _: Arc<CallInfo>) -> Before {
            std::future::pending().await
        }
        async fn after(&self, _: Arc<CallInfo>, _: Arc<Attempted>) -> After {
            std::future::pending().await
        }
    }
    /// Blocks the thread it runs on.
    struct Blocks;
    impl Hook for Blocks {
        fn name(&self) -> &str {
            "blocks"
        }
        async fn before(&self, _: Arc<CallInfo>) -> Before {
            std::thread::sleep(Duration::from_secs(3));
            Before::Deny("too late".to_owned())
        }
    }
    let policy = || Policy::default().hook_timeout(Duration::from_millis(100));
    let make = || Toolbox::builder().tool(tool("echo", Annotations::new(), Ok)).policy(policy());
    let log = Log::default();
    for (hook, times) in [("panics", 2), ("hangs", 2), ("blocks", 1)] {
        let boxes = both(|| {
            let made = match hook {
                "panics" => make().hook(Panics),
                "hangs" => make().hook(Hangs),
                _ => make().hook(Blocks),
            };
            made.hook(rules("good", &log, Before::Allow))
        });
        for (which, tools, _folder) in boxes {
            log.lock().unwrap().clear();
            let mut events = tools.events().subscribe([Channel::Monitor]).types(["error"]);
            let result = call(&tools, "echo", json!(7)).await;
            assert_eq!((result.is_ok(), result.output()), (true, &json!(7)), "{hook}, {which}: {result:?}");
            assert_eq!(log.lock().unwrap().len(), 2, "{hook}, {which}: the other hook is asked and told");
            for _ in 0..times {
                let told = until(&mut events, "error").await[0].to_json();
                assert_eq!((&told["phase"], &told["severity"]), (&json!("hook"), &json!("warn")), "{which}");
                assert!(told["message"].as_str().unwrap().contains(hook), "{which}: {told}");
            }
        }
    }
}

#[tokio::test]
async fn with_a_store_the_fault_of_a_hook_stands_in_the_timeline() {
    struct Panics;
    impl Hook for Panics {
        fn name(&self) -> &str {
            "panics"
        }
        async fn before(&self, _: Arc<CallInfo>) -> Before {
            panic!("before");
        }
    }
    let [_, (_, tools, folder)] =
        both(|| Toolbox::builder().tool(tool("echo", Annotations::new(), Ok)).hook(Panics));
    assert!(call(&tools, "echo", json!(7)).await.is_ok());
    in_time(tools.shutdown()).await;
    let database = rusqlite::Connection::open(folder.path().join("state/timeline.db")).unwrap();
    let sql = "SELECT count(*) FROM event WHERE body LIKE '%the hook `panics` panicked: before%'";
    assert_eq!(database.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
}

/// An attempt that was announced: which one, of how many, why, and what shows it.
type Announced = (u32, u32, Kind, String);

/// Writes down what is sent again, and may take its time.
struct Watches {
    heard: Arc<Mutex<Vec<Announced>>>,
    takes: Duration,
    panics: bool,
}

impl Hook for Watches {
    fn name(&self) -> &str {
        "watches"
    }

    async fn retrying(&self, _: Arc<CallInfo>, next: Next) {
        assert!(!next.wait.is_zero());
        self.heard.lock().unwrap().push((next.attempt, next.of, next.kind, next.line));
        tokio::time::sleep(self.takes).await;
        assert!(!self.panics, "as it was made to");
    }
}

#[tokio::test]
async fn hooks_hear_of_each_retry_before_its_wait_and_delay_nothing() {
    for (takes, panics) in [(0, false), (0, true), (5, false)] {
        for (which, tools, heard, _folder) in {
            let heard = Arc::default();
            both(|| {
                let fails = tool("work", Annotations::new().read_only(), |_| Err(Failure::unexpected(RESET)));
                let takes = Duration::from_secs(takes);
                let watches = Watches { heard: Arc::clone(&heard), takes, panics };
                Toolbox::builder().tool(fails).hook(watches).policy(swift())
            })
            .map(|(which, tools, folder)| (which, tools, Arc::clone(&heard), folder))
        } {
            heard.lock().unwrap().clear();
            let begun = Instant::now();
            assert_eq!(call(&tools, "work", json!({})).await.tried().len(), 3, "{which}");
            assert!(begun.elapsed() < Duration::from_secs(4), "{which}: {:?}", begun.elapsed());
            let is_first = |heard: &Announced| heard == &(2, 3, Kind::Network, RESET.to_owned());
            assert!(heard.lock().unwrap().first().is_some_and(is_first), "{which}: {heard:?}");
            if takes == 0 {
                eventually("both are told", async || heard.lock().unwrap().len() == 2).await;
                assert_eq!(heard.lock().unwrap()[1].0, 3, "{which}");
            }
        }
    }
}
