use std::collections::HashSet;

use super::super::room;
use super::host::{Act, Seen, events, json, modern, ok, status, talk, talk_with, with_session};

/// What is heard after one request, in the version without sessions, until nothing comes any more.
async fn check(plays: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static, expected: &[&str]) {
    let mut talk = talk_with(plays, |settings| settings.frame_max = 1000).await;
    talk.say(&modern("1", "tools/call", r#""name":"a""#));
    for expected in expected {
        assert_eq!(talk.hear().await, *expected);
    }
    assert!(talk.is_silent().await);
}

#[tokio::test]
async fn an_answer_comes_as_a_whole_or_in_events() {
    check(ok, &[r#"{"id":1,"result":"ok"}"#]).await;
    check(|_| events("data: {\"id\":1,\"result\":2}\n\n"), &[r#"{"id":1,"result":2}"#]).await;
    check(
        |_| events(": hi\n\ndata: {\"method\":\"notifications/progress\"}\n\ndata: {\"id\":1,\ndata: \"result\":2}\n\n"),
        &[r#"{"method":"notifications/progress"}"#, r#"{"id":1, "result":2}"#],
    )
    .await;
    let without_last_line_end = |_: &Seen| events("data: {\"id\":1,\"result\":2}");
    check(without_last_line_end, &[r#"{"id":1,"result":2}"#]).await;
}

#[tokio::test]
async fn a_frame_is_one_line_however_it_was_laid_out() {
    check(|_| json("\u{feff}{\r\n  \"id\": 1,\n  \"result\": 2\n}\n"), &[r#"{    "id": 1,   "result": 2 }"#])
        .await;
}

#[tokio::test]
async fn several_messages_in_one_are_heard_one_by_one() {
    check(
        |_| json(r#"[{"method":"x"},{"id":1,"result":2}]"#),
        &[r#"{"method":"x"}"#, r#"{"id":1,"result":2}"#],
    )
    .await;
}

#[tokio::test]
async fn what_is_asked_at_once_is_asked_and_answered_one_by_one() {
    let mut talk = talk(ok).await;
    talk.say(r#"[{"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","id":2,"method":"c"}]"#);
    let mut heard = [talk.hear().await, talk.hear().await];
    heard.sort();
    assert!(heard[0].contains(r#""id":1"#) && heard[1].contains(r#""id":2"#), "{heard:?}");
    talk.until(|talk| talk.seen().len() == 3).await;
}

#[tokio::test]
async fn a_request_is_answered_once() {
    let twice =
        "data: {\"id\":1,\"result\":1}\n\ndata: {\"id\":1,\"result\":2}\n\ndata: {\"id\":9,\"result\":3}\n\n";
    check(move |_| events(twice), &[r#"{"id":1,"result":1}"#]).await;
    check(
        |_| events("data: {\"id\":9,\"result\":1}\n\n"),
        &["1 unanswered: transfer closed with outstanding read data: the stream ended before the answer came"],
    )
    .await;
}

#[tokio::test]
async fn an_error_that_is_a_message_is_the_answer() {
    check(
        |_| {
            status("400 Bad Request\r\nContent-Type: application/json", r#"{"id":1,"error":{"code":-32022}}"#)
        },
        &[r#"{"id":1,"error":{"code":-32022}}"#],
    )
    .await;
    check(
        |_| status("404 Not Found", r#"{"id":1,"error":{"code":-32601,"message":"no such method"}}"#),
        &[r#"{"id":1,"error":{"code":-32601,"message":"no such method"}}"#],
    )
    .await;
    check(
        |_| json(r#"{"id":null,"error":{"code":-32700,"message":"cannot read this"}}"#),
        &["1 unanswered: ⟦cannot read this⟧ [200]"],
    )
    .await;
}

#[tokio::test]
async fn a_refusal_is_told_in_the_words_of_the_server() {
    check(
        |_| status("404 Not Found", "nothing here"),
        &["1 unanswered: HTTP 404 Not Found: ⟦nothing here⟧ [404]"],
    )
    .await;
    check(
        |_| status("429 Too Many Requests\r\nRetry-After: 7", "slow down"),
        &["1 unanswered: HTTP 429 Too Many Requests: ⟦slow down⟧ [429] after 7000 ms"],
    )
    .await;
    check(|_| status("401 Unauthorized", ""), &["1 unanswered: HTTP 401 Unauthorized [401]"]).await;
    let long = "x".repeat(100_000);
    let told = format!("1 unanswered: HTTP 500 Internal Server Error: ⟦{}…⟧ [500]", "x".repeat(300));
    check(move |_| status("500 Internal Server Error", &long), &[&told]).await;
}

#[tokio::test]
async fn what_is_no_answer_is_said_to_be_none() {
    check(
        |_| status("200 OK\r\nContent-Type: text/html", "<p>Log in\nfirst"),
        &["1 unanswered: the server answered with text/html, which is no message: ⟦‹p>Log in first⟧ [200]"],
    )
    .await;
    check(|_| json("{}"), &["1 unanswered: the answer is no message: ⟦{}⟧ [200]"]).await;
    check(|_| json("oops"), &["1 unanswered: the answer is no message: ⟦oops⟧ [200]"]).await;
    check(
        |_| status("202 Accepted", ""),
        &["1 unanswered: the server took the request and sent no answer [202]"],
    )
    .await;
    check(
        |_| status("200 OK\r\nContent-Type: application/json\r\nContent-Encoding: br", "x"),
        &["1 unanswered: the server answered with content encoding br, which is no message: ⟦x⟧ [200]"],
    )
    .await;
}

#[tokio::test]
async fn newer_versions_say_beside_the_frame_what_is_in_it() {
    let mut talk = talk(|seen| match seen.asks("tools/list") {
        true => json(
            r#"{"id":1,"result":{"tools":[{"name":"t","inputSchema":{"properties":{"r":{"type":"string","x-mcp-header":"R"}}}}]}}"#,
        ),
        false => ok(seen),
    })
    .await;
    for (id, method, params) in [
        ("1", "tools/list", ""),
        ("2", "tools/call", r#""name":"t","arguments":{"r":"eu"}"#),
        ("3", "prompts/get", r#""name":"世""#),
        ("4", "resources/read", r#""uri":"file:///x""#),
    ] {
        talk.say(&modern(id, method, params));
        assert!(talk.hear().await.contains("result"));
    }
    assert_eq!(
        talk.journal(),
        [
            "POST tools/list protocol-version=2026-07-28 method=tools/list",
            "POST tools/call protocol-version=2026-07-28 method=tools/call name=t",
            "POST prompts/get protocol-version=2026-07-28 method=prompts/get name==?base64?5LiW?=",
            "POST resources/read protocol-version=2026-07-28 method=resources/read name=file:///x",
        ]
    );
    let seen = talk.seen();
    assert_eq!(seen[1].header("mcp-param-r"), "eu");
    assert_eq!(seen[1].header("content-type"), "application/json");
    assert_eq!(seen[1].header("accept"), "application/json, text/event-stream");
    assert_eq!(talk.connections.lock().unwrap().1, 1, "a connection is used again");
}

#[tokio::test]
async fn to_take_back_a_request_without_a_session_is_to_hang_up() {
    let mut talk = talk(|_| vec![Act::Hang]).await;
    talk.say(&modern("1", "tools/call", r#""name":"a""#));
    talk.until(|talk| talk.seen().len() == 1).await;
    talk.say(r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#);
    talk.until(|talk| talk.connections.lock().unwrap().0 == 0).await;
    talk.say(r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#);
    assert!(talk.is_silent().await);
    assert_eq!(talk.seen().len(), 1);
}

#[tokio::test]
async fn to_take_back_a_request_in_a_session_is_to_say_so() {
    let mut talk = talk(with_session(|seen| match seen.asks("notifications/cancelled") {
        true => status("202 Accepted", ""),
        false => vec![Act::Hang],
    }))
    .await;
    talk.greet().await;
    talk.say(r#"{"id":1,"method":"tools/call"}"#);
    talk.until(|talk| talk.seen().iter().any(|seen| seen.asks("tools/call"))).await;
    talk.say(r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#);
    talk.until(|talk| talk.seen().iter().any(|seen| seen.asks("notifications/cancelled"))).await;
    assert!(talk.is_silent().await);
}

#[tokio::test]
async fn a_thousand_requests_are_under_way_at_once() {
    more_files();
    let many = room::for_requests().min(1000);
    let mut talk = talk(move |seen| {
        let mut acts = vec![Act::Until(many)];
        acts.extend(ok(seen));
        acts
    })
    .await;
    for id in 0..many {
        talk.say(&modern(&id.to_string(), "tools/call", r#""name":"a""#));
    }
    let mut heard = HashSet::new();
    for _ in 0..many {
        assert!(heard.insert(talk.hear().await), "one answer each");
    }
    let ids = (0..many).map(|id| format!(r#"{{"id":{id},"result":"ok"}}"#));
    assert_eq!(heard, ids.collect());
}

/// Both ends of each connection are in this process.
#[cfg(unix)]
fn more_files() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, soft.max(hard.min(4096)), hard).unwrap();
}

#[cfg(not(unix))]
fn more_files() {}
