//! What a server may have done is not done again, whatever its words say; and what is not the same is not taken for it.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, text, wait_for};
use crate::world::World;

/// A server whose tools are listed in `tools`, and which does with each call what `take` says.
fn server(tools: &str, take: &str) -> String {
    format!(
        r#"n=0
while IFS= read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%,*}}
  case "$line" in
    *'"method":"notifications'*) continue;;
    *'"method":"tools/list"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":[{tools}]}}}}\n' "$id"; continue;;
    *'"method":"tools/call"'*) printf '%s\n' "$line" >> calls; n=$((n+1)); {take} continue;;
  esac
  printf '{{"jsonrpc":"2.0","id":%s,"result":{{"capabilities":{{}}}}}}\n' "$id"
done"#
    )
}

struct Shop {
    world: World,
    client: Client,
}

impl Shop {
    fn new(args: &[&str], tools: &str, take: &str) -> Shop {
        let world = World::empty();
        let mut client = Client::start(&world, args, &["sh", "-c", &server(tools, take)]);
        client.introduce("tester");
        client.ask("tools/list", json!({}));
        Shop { world, client }
    }

    /// The calls that the server saw.
    fn calls(&self) -> Vec<Value> {
        let calls = fs::read_to_string(self.world.path("calls")).unwrap_or_default();
        calls.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// A tool of these fields, which says nothing of its effects.
fn tool(name: &str, fields: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{{"type":"object","properties":{{{fields}}}}}}}"#)
}

/// An answer with this result.
fn answers(result: &str) -> String {
    format!(r#"printf '{{"jsonrpc":"2.0","id":%s,"result":{result}}}\n' "$id";"#)
}

fn fails(words: &str) -> String {
    answers(&format!(r#"{{"isError":true,"content":[{{"type":"text","text":"{words}"}}]}}"#))
}

#[test]
fn no_words_prove_that_a_tool_has_done_nothing() {
    let check = |tools: &str, take: &str, expected: usize| {
        let mut shop = Shop::new(&[], tools, take);
        let result = shop.client.call("order", json!({}));
        assert_eq!(result["isError"], json!(true), "{result}");
        assert_eq!(shop.calls().len(), expected, "{take}: {result}");
    };
    let order = tool("order", "");
    let words = "order 7 created; its receipt failed: 429 Too Many Requests, Retry-After: 1";
    check(&order, &fails(words), 1);
    check(&order, "echo database is locked >&2; exit 1;", 1);
    check(&order, "echo 429 Too Many Requests >&2; exit 1;", 1);
    // One that says itself that twice is harmless is believed.
    let harmless =
        order.replace("\"inputSchema\"", "\"annotations\":{\"idempotentHint\":true},\"inputSchema\"");
    let mut shop = Shop::new(&[], &harmless, &fails("503 Service Unavailable"));
    shop.client.call("order", json!({}));
    assert!(shop.calls().len() > 1, "{:?}", shop.calls());
    // And one that says as well that it destroys is not.
    let both = harmless.replace("\"idempotentHint\":true", "\"readOnlyHint\":true,\"destructiveHint\":true");
    check(&both, &fails("503 Service Unavailable"), 1);
}

#[test]
fn only_agents_go_on_in_a_session_and_only_in_one_of_the_same_name() {
    let check = |name: &str, fields: &str, arguments: Value, words: &str, expected: &[Value]| {
        let take = fails(&words.replace('"', "\\\\\""));
        let mut shop = Shop::new(&[], &tool(name, fields), &take);
        shop.client.call(name, arguments);
        let sent: Vec<Value> = shop.calls().iter().map(|call| call["params"]["arguments"].clone()).collect();
        assert_eq!(sent, expected, "{name} {words}");
    };
    let chat = r#""chatId":{"type":"string"}"#;
    let session = r#""SESSION_ID":{"type":"string"}"#;
    let told = r#"{"error":"503 Service Unavailable","threadId":"T9"}"#;
    check("send", chat, json!({ "chatId": "C1" }), told, &[json!({ "chatId": "C1" })]);
    let told = r#"{"error":"503 Service Unavailable","chatId":"T9"}"#;
    check("send", chat, json!({}), told, &[json!({})]);
    let told = r#"{"error":"503 Service Unavailable","session_id":"S9"}"#;
    check("codex", session, json!({}), told, &[json!({}), json!({ "SESSION_ID": "S9" })]);
    check(
        "codex",
        session,
        json!({ "SESSION_ID": "" }),
        told,
        &[json!({ "SESSION_ID": "" }), json!({ "SESSION_ID": "S9" })],
    );
    let own = json!({ "SESSION_ID": "mine" });
    check("codex", session, own.clone(), told, &[own.clone(), own]);
    let other = r#"{"error":"503 Service Unavailable","threadId":"T9"}"#;
    check("codex", session, json!({}), other, &[json!({}), json!({})]);
}

#[test]
fn an_agent_goes_on_in_its_session_wherever_it_tells_of_it() {
    let check = |take: &str| {
        let mut shop = Shop::new(&[], &tool("codex", r#""threadId":{"type":"string"}"#), take);
        shop.client.call("codex", json!({}));
        let sent: Vec<Value> = shop.calls().iter().map(|call| call["params"]["arguments"].clone()).collect();
        assert_eq!(sent, [json!({}), json!({ "threadId": "T9" })], "{take}");
    };
    let words = r#""content":[{"type":"text","text":"503 Service Unavailable"}]"#;
    check(&answers(&format!(r#"{{"isError":true,{words},"structuredContent":{{"threadId":"T9"}}}}"#)));
    let error = r#"{"code":-32000,"message":"503 Service Unavailable","data":{"threadId":"T9"}}"#;
    check(&format!(r#"printf '{{"jsonrpc":"2.0","id":%s,"error":{error}}}\n' "$id";"#));
    // Many say of a failure only in their own words that it is one.
    let told = r#"{\\"success\\":false,\\"threadId\\":\\"T9\\",\\"error\\":\\"503 Service Unavailable\\"}"#;
    check(&answers(&format!(r#"{{"content":[{{"type":"text","text":"{told}"}}]}}"#)));
}

#[test]
fn other_pictures_are_another_answer() {
    let read_only = tool("look", "")
        .replace("\"inputSchema\"", "\"annotations\":{\"readOnlyHint\":true},\"inputSchema\"");
    let picture = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"image","data":"%s","mimeType":"image/png"}]}}\n' "$id" "$n";"#;
    let mut shop = Shop::new(&[], &read_only, picture);
    for number in 1..=12 {
        let seen = shop.client.call("look", json!({}));
        assert_eq!(seen["content"][0]["data"], number.to_string(), "{seen}");
    }
}

#[test]
fn what_is_not_complete_is_no_repeat() {
    let read_only = tool("look", "")
        .replace("\"inputSchema\"", "\"annotations\":{\"readOnlyHint\":true},\"inputSchema\"");
    for result in [
        r#"{"resultType":"input_required","requestState":"same","inputRequests":{}}"#,
        r#"{"task":{"taskId":"t-1","status":"working","createdAt":"2026-01-01T00:00:00Z","ttl":60000}}"#,
    ] {
        let mut shop = Shop::new(&[], &read_only, &answers(result));
        for _ in 0..12 {
            let came = shop.client.call("look", json!({}));
            assert_eq!(came, serde_json::from_str::<Value>(result).unwrap());
        }
    }
}

#[test]
fn calls_that_wait_hold_up_nobody() {
    let read_only = tool("look", "")
        .replace("\"inputSchema\"", "\"annotations\":{\"readOnlyHint\":true},\"inputSchema\"");
    let mut shop = Shop::new(&[], &read_only, &fails("429 Too Many Requests, Retry-After: 20"));
    for number in 0..150 {
        shop.client.send_call("look", json!({ "number": number }));
    }
    wait_for("the calls do not arrive", || shop.calls().len() == 150);
    let asked = Instant::now();
    shop.client.ask("ping", json!({}));
    // A tenth of a second for each would be more.
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
}

#[test]
fn a_batch_is_answered_once_also_where_the_server_dies_meanwhile() {
    // It dies at its second start, and lives in its third.
    let script = r#"echo s >> starts; [ "$(wc -l < starts)" -eq 2 ] && { sleep 0.3; exit 3; }
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *'"method":"notifications'*) continue;;
    *die*) exit 5;;
    '['*) printf '[{"jsonrpc":"2.0","id":"b","result":{"content":[]}}]\n'; continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"capabilities":{}}}\n' "$id"
done"#;
    let world = World::empty();
    let mut client = Client::start(&world, &[], &["sh", "-c", script]);
    client.introduce("tester");
    client.fails("die", json!({}));
    client.say(r#"[{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"any"}}]"#);
    client.ask("ping", json!({}));
    let is_answer = |frame: &&Value| frame["id"] == "b" || frame[0]["id"] == "b";
    assert_eq!(client.aside.iter().filter(is_answer).count(), 1, "{:?}", client.aside);
}

#[test]
fn what_a_client_answers_at_too_great_length_is_told_to_the_server_and_to_nobody_else() {
    let asks = r#"printf '{"jsonrpc":"2.0","id":%s,"method":"roots/list"}\n' "$id";"#;
    let script = server(&tool("ask", ""), asks);
    // It answers the call with what the client says.
    let script = script.replace(
        "case \"$line\" in",
        r#"case "$line" in *'"error"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"refused"}]}}\n' "$asked"; continue;; esac
  asked=$id
  case "$line" in"#,
    );
    for answer in [
        format!(r#"{{"result":"{}","jsonrpc":"2.0","id":3}}"#, "x".repeat(1_500_000)),
        format!(r#"{{"jsonrpc":"2.0","id":3,"result":{}1{}}}"#, "[".repeat(600), "]".repeat(600)),
    ] {
        let world = super::client::with_setting(World::empty(), "max-message", "1MB");
        let mut client = Client::start(&world, &[], &["sh", "-c", &script]);
        client.introduce("tester");
        client.ask("tools/list", json!({}));
        let id = client.send_call("ask", json!({}));
        assert_eq!(id, 3, "both sides use the same name");
        assert_eq!(client.hear()["method"], "roots/list");
        client.say(&answer);
        let answered = client.answer(id);
        assert_eq!(text(&answered["result"], 0), "refused", "{answered}");
    }
}
