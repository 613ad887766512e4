//! Tools of others, which a program only hands on: under which names they are recorded, how they come and go, and how strictly
//! their arguments are read.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;
use unstuck::{
    Annotations, BuildError, Failure, Mode, Policy, Session, Status, Store, Tool, ToolCall, ToolContext,
    Toolbox, tool_fn,
};

use crate::{NO_RECORD, both, call, in_time, swift, tool};

/// A tool whose arguments are known at run time.
struct Foreign {
    name: String,
    schema: Value,
    annotations: Annotations,
}

impl Foreign {
    fn new(name: impl Into<String>, schema: Value) -> Foreign {
        Foreign { name: name.into(), schema, annotations: Annotations::new() }
    }
}

impl Tool for Foreign {
    type Args = Value;
    type Output = Value;

    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> Value {
        self.schema.clone()
    }

    fn annotations(&self) -> Annotations {
        self.annotations.clone()
    }

    async fn call(&self, args: Value, _: ToolContext) -> Result<Value, Failure> {
        Ok(args)
    }
}

fn named(name: &str) -> Foreign {
    Foreign::new(name, json!({ "type": "object" }))
}

#[tokio::test]
async fn calls_are_recorded_under_the_name_of_their_namespace_and_models_never_see_it() {
    for (which, tools, _folder) in
        both(|| Toolbox::builder().namespace("mcp__hub__").tool(named("search")).policy(swift()))
    {
        assert_eq!(tools.definitions()[0].name, "search", "{which}");
        let session = Session::new();
        let result = in_time(tools.call(ToolCall::new("search", json!({})).session(&session))).await;
        assert!(result.is_ok(), "{which}: {result:?}");
        let call = result.call();
        assert_eq!((call.tool(), call.recorded_as()), ("search", "mcp__hub__search"), "{which}");
        let unknown = in_time(tools.call(ToolCall::new("serach", json!({})).session(&session))).await;
        assert!(
            unknown.error().unwrap().contains("unknown tool `serach`, did you mean `search`?"),
            "{unknown:?}"
        );
        let records = tools.records(&session).await.unwrap();
        let names: Vec<&str> = records.iter().map(|record| &*record.tool).collect();
        assert_eq!(names, ["mcp__hub__search", "mcp__hub__serach"], "{which}");
    }
}

#[tokio::test]
async fn a_policy_names_tools_with_their_namespace() {
    let check = async |policy: Policy, is_refused: bool| {
        for (which, tools, _folder) in both(|| {
            let fails = tool("work", Annotations::new(), |_| Err(Failure::expected(NO_RECORD)));
            Toolbox::builder().namespace("mcp__hub__").tool(fails).policy(policy.clone())
        }) {
            let mut last = Status::Succeeded;
            for _ in 0..6 {
                last = call(&tools, "work", json!({})).await.status();
            }
            assert_eq!(matches!(last, Status::Denied | Status::Halted), is_refused, "{which}: {last:?}");
        }
    };
    check(swift(), true).await;
    check(swift().mode_of("mcp__hub__*", Mode::Shadow), false).await;
    check(swift().mode_of("mcp__hub__work", Mode::Shadow), false).await;
    check(swift().mode_of("work", Mode::Shadow), true).await;
}

#[tokio::test]
async fn tools_are_replaced_all_at_once_and_calls_under_way_go_on() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, goes_on) = (Arc::clone(&begun), Arc::clone(&go_on));
    let slow = tool_fn("slow", "", move |_: Value, _: ToolContext| {
        let (begins, goes_on) = (Arc::clone(&begins), Arc::clone(&goes_on));
        async move {
            begins.notify_one();
            goes_on.notified().await;
            Ok("the old one")
        }
    });
    let tools = Toolbox::builder().tool(slow).build().unwrap();
    let names = || tools.definitions().into_iter().map(|tool| tool.name).collect::<Vec<_>>();
    let under_way = tokio::spawn({
        let tools = tools.clone();
        async move { call(&tools, "slow", json!({})).await }
    });
    in_time(begun.notified()).await;
    tools.replace_tools((0..500).map(|n| named(&format!("tool_{n}"))).collect()).unwrap();
    assert_eq!(names().len(), 500);
    assert!(call(&tools, "tool_499", json!({})).await.is_ok());
    assert_eq!(call(&tools, "slow", json!({})).await.error_type(), Some("validation"));
    go_on.notify_one();
    assert_eq!(in_time(under_way).await.unwrap().output(), &json!("the old one"));

    // What cannot be built changes nothing.
    let broken = Foreign::new("broken", json!({ "type": "nonsense" }));
    let wrong = tools.replace_tools(vec![named("fine"), broken]);
    assert!(matches!(wrong, Err(BuildError::BadSchema { .. })), "{wrong:?}");
    let wrong = tools.replace_tools(vec![named("same"), named("same")]);
    assert!(matches!(wrong, Err(BuildError::SameName { .. })), "{wrong:?}");
    assert_eq!(names().len(), 500);
    tools.replace_tools(Vec::<Foreign>::new()).unwrap();
    assert!(names().is_empty());
}

#[tokio::test]
async fn arguments_that_nobody_checks_are_passed_on_as_they_are() {
    let schema = json!({ "type": "nonsense", "required": ["path"] });
    let unchecked =
        Foreign { annotations: Annotations::new().unchecked(), ..Foreign::new("work", schema.clone()) };
    let tools = Toolbox::builder().tool(unchecked).build().unwrap();
    assert_eq!(tools.definitions()[0].schema, schema);
    for input in [json!({ "paht": 3 }), json!(null), json!([1])] {
        assert_eq!(call(&tools, "work", input.clone()).await.output(), &input);
    }
}

#[tokio::test]
async fn a_lenient_policy_answers_only_clear_mistakes() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "minLength": 3, "pattern": "^/" },
            "limit": { "type": "integer", "minimum": 1 },
            "deep": { "type": "boolean" },
            "ratio": { "type": ["number", "null"] },
            "tags": { "type": "array", "items": { "type": "string" } },
            "range": { "type": "object", "required": ["from"], "properties": { "from": { "type": "integer" } } },
            "mode": { "enum": ["fast", "slow"] },
            "either": { "anyOf": [{ "type": "string" }, { "type": "array" }] },
            "sort": { "type": "string", "default": "name" },
        },
        "required": ["path", "sort"],
        "additionalProperties": false,
    });
    let tools = Toolbox::builder()
        .tool(Foreign::new("list", schema))
        .policy(swift().lenient_arguments().mode(Mode::Shadow))
        .build()
        .unwrap();
    // What is said of the arguments beside `path`; nothing where they reach the tool.
    let check = async |more: Value, says: &str| {
        let mut input = json!({ "path": "/tmp" });
        for (name, value) in more.as_object().unwrap() {
            match name.strip_prefix('-') {
                Some(name) => drop(input.as_object_mut().unwrap().remove(name)),
                None => input[name] = value.clone(),
            }
        }
        let result = call(&tools, "list", input.clone()).await;
        match says {
            "" => assert_eq!(result.output(), &input, "{input}: {result:?}"),
            says => assert!(result.error().is_some_and(|error| error.contains(says)), "{input}: {result:?}"),
        }
    };
    // Values that a tool may not like, and knows best itself.
    check(json!({ "path": "x" }), "").await;
    check(json!({ "limit": 0 }), "").await;
    check(json!({ "mode": "medium" }), "").await;
    check(json!({ "unheard_of": 1 }), "").await;
    check(json!({ "limti": 1 }), "").await;
    check(json!({ "either": 5 }), "").await;
    // Values that tools turn into what they want.
    check(json!({ "path": null }), "").await;
    check(json!({ "limit": "10" }), "").await;
    check(json!({ "limit": 2.5 }), "").await;
    check(json!({ "deep": "true" }), "").await;
    check(json!({ "deep": 1 }), "").await;
    check(json!({ "ratio": "0.5" }), "").await;
    check(json!({ "tags": "[\"a\"]" }), "").await;
    check(json!({ "range": "{\"from\": 1}" }), "").await;
    // And clear mistakes.
    check(json!({ "-path": 0 }), "`path` is missing").await;
    check(json!({ "-path": 0, "pathh": "/tmp" }), "did you mean it by `pathh`?").await;
    check(json!({ "path": 5 }), "`path` expected a text, got the number 5").await;
    check(json!({ "path": ["/tmp"] }), "`path` expected a text").await;
    check(json!({ "limit": "many" }), "`limit` expected a whole number").await;
    check(json!({ "limit": {} }), "`limit` expected a whole number").await;
    check(json!({ "deep": "perhaps" }), "`deep` expected true or false").await;
    check(json!({ "tags": "a, b" }), "`tags` expected a list").await;
    check(json!({ "tags": ["a", 5] }), "`tags[1]` expected a text").await;
    check(json!({ "range": {} }), "`range.from` is missing").await;
    check(json!({ "range": [] }), "`range` expected an object").await;
}

#[tokio::test]
async fn the_record_names_the_door_and_holds_no_secret_of_the_environment() {
    #[derive(Deserialize, JsonSchema)]
    struct Words {
        words: String,
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let variables = [("HUB_TOKEN", "zebra-lamp-orchard"), ("EDITOR", "an-ordinary-editor")];
    let store = Store::at(&path)
        .patience(Duration::from_secs(20))
        .door("mcp")
        .variables(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let echo = tool_fn("echo", "", |words: Words, _: ToolContext| async { Ok(words.words) });
    let tools = Toolbox::builder().tool(echo).store(store).build().unwrap();
    let words = "zebra-lamp-orchard, an-ordinary-editor";
    let result = call(&tools, "echo", json!({ "words": words })).await;
    assert_eq!(result.output(), words, "what is kept is cleaned, not what is answered");
    tools.shutdown().await;
    let database = Connection::open(path.join("timeline.db")).unwrap();
    let host: String = database.query_row("SELECT host FROM session", [], |row| row.get(0)).unwrap();
    assert_eq!(host, "mcp");
    let input: String = database.query_row("SELECT input FROM call_text", [], |row| row.get(0)).unwrap();
    assert!(!input.contains("zebra-lamp") && input.contains("an-ordinary-editor"), "{input}");
}
