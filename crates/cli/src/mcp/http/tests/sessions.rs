use super::host::{Act, INITIALIZE, INITIALIZED, events, json, ok, status, talk, with_session};

#[tokio::test]
async fn a_session_is_named_in_all_that_follows_and_given_back() {
    let mut talk = talk(with_session(ok)).await;
    talk.say(INITIALIZE);
    talk.say(INITIALIZED);
    talk.say(r#"{"id":1,"method":"tools/list"}"#);
    assert_eq!(talk.hear().await, r#"{"id":0,"result":{"protocolVersion":"2025-11-25"}}"#);
    assert_eq!(talk.hear().await, r#"{"id":1,"result":"ok"}"#);
    talk.until(|talk| talk.seen().len() == 4).await;
    let (link, journal) = (talk.link, talk.seen.clone());
    drop(link.to);
    let mut from = link.from;
    assert!(from.recv().await.is_none());
    let seen = journal.lock().unwrap().clone();
    let mut short: Vec<String> = seen
        .iter()
        .map(|seen| {
            let method = seen.message()["method"].as_str().unwrap_or_default().to_owned();
            format!(
                "{} {method} {} {}",
                seen.method,
                seen.header("mcp-session-id"),
                seen.header("mcp-protocol-version")
            )
        })
        .collect();
    // The stream of the server and the first request set out at the same time.
    short[2..4].sort();
    assert_eq!(
        short,
        [
            "POST initialize  ",
            "POST notifications/initialized s1 2025-11-25",
            "GET  s1 2025-11-25",
            "POST tools/list s1 2025-11-25",
            "DELETE  s1 2025-11-25",
        ]
    );
}

#[tokio::test]
async fn a_session_that_is_over_ends_the_link() {
    let lost = [
        status("404 Not Found", ""),
        status("404 Not Found", r#"{"id":1,"error":{"code":-32001,"message":"Session not found"}}"#),
        status("400 Bad Request", r#"{"error":{"code":-32000,"message":"No valid session ID provided"}}"#),
        // Some put a word of their own where nobody has a name.
        status(
            "400 Bad Request",
            r#"{"id":"server-error","error":{"code":-32600,"message":"Session expired"}}"#,
        ),
    ];
    for answer in lost {
        let mut talk = talk(with_session(move |seen| match seen.asks("slow") {
            true => vec![Act::Hang],
            false => answer.clone(),
        }))
        .await;
        talk.greet().await;
        talk.say(r#"{"id":1,"method":"slow"}"#);
        talk.say(r#"{"id":2,"method":"tools/list"}"#);
        assert_eq!(talk.hear().await, "gone: the session expired");
        assert_eq!(talk.hear().await, "end");
        assert!(!talk.journal().iter().any(|line| line.starts_with("DELETE")));
    }
}

#[tokio::test]
async fn calls_that_find_their_session_over_were_never_taken() {
    let lost = [
        status("404 Not Found", r#"{"id":null,"error":{"code":-32001,"message":"Session not found"}}"#),
        status("400 Bad Request", r#"{"error":{"code":-32000,"message":"No valid session ID provided"}}"#),
    ];
    for answer in lost {
        let mut talk = talk(with_session(move |seen| match seen.message()["id"].as_u64() {
            Some(1) => ok(seen),
            // Its answer has begun, and may be a part of the work.
            Some(2) => {
                [events("data: {\"method\":\"progress\"}\n\n")[..1].to_vec(), vec![Act::Hang]].concat()
            }
            // The others find out after the first.
            Some(3) => answer.clone(),
            Some(4) => [vec![Act::Wait(150)], answer.clone()].concat(),
            _ => answer.clone(),
        }))
        .await;
        talk.greet().await;
        talk.say(r#"{"id":1,"method":"tools/list"}"#);
        assert_eq!(talk.hear().await, r#"{"id":1,"result":"ok"}"#);
        talk.say(r#"{"id":2,"method":"tools/call"}"#);
        assert_eq!(talk.hear().await, r#"{"method":"progress"}"#);
        for id in 3..=4 {
            talk.say(&format!(r#"{{"id":{id},"method":"tools/call"}}"#));
        }
        // Whatever only asks is asked again by whoever waits for it.
        talk.say(r#"{"id":5,"method":"resources/list"}"#);
        let mut heard = [talk.hear().await, talk.hear().await];
        heard.sort();
        let untaken = [3, 4].map(|id| {
            format!("{id} unanswered: the server had forgotten us, and is greeted anew after 250 ms (never reached)")
        });
        assert_eq!(heard, untaken);
        assert_eq!(talk.hear().await, "expired: the session expired");
        assert_eq!(talk.hear().await, "end");
    }
}

#[tokio::test]
async fn a_session_in_which_nothing_was_done_is_no_better_than_a_dead_server() {
    let mut talk = talk(with_session(|_| status("404 Not Found", ""))).await;
    talk.greet().await;
    talk.say(r#"{"id":1,"method":"tools/call"}"#);
    assert_eq!(
        talk.hear().await,
        "1 unanswered: the server had forgotten us, and is greeted anew after 250 ms (never reached)"
    );
    assert_eq!(talk.hear().await, "gone: the session expired");
}

#[tokio::test]
async fn a_refusal_that_answers_its_request_ends_nothing_else() {
    let refused = r#"{"id":4,"error":{"code":-32602,"message":"Invalid params: unknown session_id 's9'"}}"#;
    let mut talk = talk(with_session(move |seen| match seen.asks("slow") {
        true => [vec![Act::Until(5), Act::Wait(200)], ok(seen)].concat(),
        false => status("400 Bad Request", refused),
    }))
    .await;
    talk.greet().await;
    talk.say(r#"{"id":3,"method":"slow"}"#);
    talk.say(r#"{"id":4,"method":"tools/call"}"#);
    assert_eq!(talk.hear().await, refused);
    assert_eq!(talk.hear().await, r#"{"id":3,"result":"ok"}"#);
    assert!(talk.is_silent().await);
}

#[tokio::test]
async fn an_answer_or_notification_can_find_the_session_over_too() {
    for frame in [r#"{"id":5,"result":{}}"#, r#"{"method":"notifications/roots/list_changed"}"#] {
        let mut talk = talk(with_session(|_| status("404 Not Found", ""))).await;
        talk.greet().await;
        talk.say(frame);
        assert_eq!(talk.hear().await, "gone: the session expired");
    }
}

#[tokio::test]
async fn a_refused_notification_is_remarked() {
    let mut talk = talk(with_session(|_| status("500 Internal Server Error", "no"))).await;
    talk.greet().await;
    talk.say(r#"{"method":"notifications/roots/list_changed"}"#);
    assert_eq!(talk.hear().await, "remark: notifications/roots/list_changed was refused: HTTP 500 no");
}

#[tokio::test]
async fn nothing_follows_until_the_server_is_ready() {
    let mut talk = talk(|seen| {
        let slow = seen.asks("initialize") || seen.asks("notifications/initialized");
        let mut acts = vec![Act::Wait(if slow { 100 } else { 0 })];
        acts.extend(with_session(ok)(seen));
        acts
    })
    .await;
    talk.say(INITIALIZE);
    talk.say(INITIALIZED);
    talk.say(r#"{"id":1,"method":"tools/list"}"#);
    talk.hear().await;
    talk.hear().await;
    let journal = talk.journal();
    assert!(journal[0].starts_with("POST initialize"));
    assert!(journal[1].starts_with("POST notifications/initialized session-id=s1"));
}

#[tokio::test]
async fn a_server_speaks_on_its_own_and_is_heard_again_after_a_break() {
    let mut talk = talk(|seen| match (seen.method.as_str(), seen.header("last-event-id")) {
        ("GET", "") => events("retry: 50\nid: a\ndata: {\"method\":\"one\"}\n\n"),
        ("GET", "a") => events("id: b\ndata: {\"id\":7,\"method\":\"roots/list\"}\n\n"),
        ("GET", _) => vec![Act::Hang],
        _ => with_session(|_| status("202 Accepted", ""))(seen),
    })
    .await;
    talk.greet().await;
    assert_eq!(talk.hear().await, r#"{"method":"one"}"#);
    assert_eq!(talk.hear().await, r#"{"id":7,"method":"roots/list"}"#);
    talk.say(r#"{"id":7,"result":{}}"#);
    talk.until(|talk| talk.seen().iter().any(|seen| seen.header("last-event-id") == "b")).await;
    assert!(talk.seen().iter().any(|seen| seen.message()["id"] == 7));
}

#[tokio::test]
async fn a_broken_stream_is_taken_up_where_it_broke() {
    let mut talk = talk(with_session(|seen| match seen.header("last-event-id") {
        "" => events("retry: 50\nid: 1\ndata:\n\n"),
        "1" => events("id: 2\ndata: {\"method\":\"progress\"}\n\ndata: {\"id\":1,"),
        "2" => status("503 Service Unavailable", ""),
        _ => vec![],
    }))
    .await;
    talk.greet().await;
    talk.say(r#"{"id":1,"method":"tools/call"}"#);
    assert_eq!(talk.hear().await, r#"{"method":"progress"}"#);
    assert_eq!(
        talk.hear().await,
        "1 unanswered: transfer closed with outstanding read data: the stream ended before the answer came"
    );
    let resumed = talk.seen().iter().filter(|seen| seen.header("last-event-id") == "2").count();
    assert_eq!(resumed, 5, "tries are bounded");

    let mut talk = talk_that_heals().await;
    talk.greet().await;
    talk.say(r#"{"id":1,"method":"tools/call"}"#);
    assert_eq!(talk.hear().await, r#"{"id":1,"result":2}"#);
    assert!(talk.is_silent().await);
}

async fn talk_that_heals() -> super::host::Talk {
    talk(with_session(|seen| match seen.header("last-event-id") {
        "" => events("retry: 50\nid: 1\ndata:\n\n"),
        "1" => events("id: 2\ndata: {\"id\":1,\"result\":2}\n\n"),
        _ => vec![],
    }))
    .await
}

#[tokio::test]
async fn a_stream_without_names_cannot_be_taken_up() {
    let mut talk = talk(with_session(|_| events("data: {\"method\":\"progress\"}\n\n"))).await;
    talk.greet().await;
    talk.say(r#"{"id":1,"method":"tools/call"}"#);
    assert_eq!(talk.hear().await, r#"{"method":"progress"}"#);
    assert_eq!(
        talk.hear().await,
        "1 unanswered: transfer closed with outstanding read data: the stream ended before the answer came"
    );
}

#[tokio::test]
async fn a_server_without_sessions_may_still_shake_hands() {
    let mut talk = talk(|seen| match seen.asks("initialize") {
        true => json(r#"{"id":0,"result":{"protocolVersion":"2025-06-18"}}"#),
        false if seen.method == "GET" => status("404 Not Found", "Cannot GET /mcp"),
        false if seen.asks("notifications/initialized") => status("200 OK", "{}"),
        false => ok(seen),
    })
    .await;
    talk.greet().await;
    talk.say(r#"{"id":1,"method":"tools/list"}"#);
    assert_eq!(talk.hear().await, r#"{"id":1,"result":"ok"}"#);
    assert!(talk.is_silent().await);
    assert!(talk.journal().iter().all(|line| !line.contains("session")));
}

#[tokio::test]
async fn a_server_that_does_not_let_go_is_left() {
    let mut talk = talk(|seen| match seen.method.as_str() {
        "DELETE" => vec![Act::Hang],
        _ => with_session(ok)(seen),
    })
    .await;
    talk.greet().await;
    talk.until(|talk| talk.seen().len() == 3).await;
    let begun = std::time::Instant::now();
    let mut from = talk.link.from;
    drop(talk.link.to);
    assert!(from.recv().await.is_none());
    assert!(begun.elapsed() < std::time::Duration::from_secs(3));
}
