use std::time::Duration;

use hyper::header::{AUTHORIZATION, HeaderValue};
use tokio::net::TcpListener;

use super::super::{HttpSettings, open};
use super::host::{Act, Seen, Talk, events, json, modern, ok, status, talk, talk_with};

/// What is heard after one request to a server that misbehaves.
async fn check(plays: impl Fn(&Seen) -> Vec<Act> + Send + Sync + 'static, expected: &[&str]) {
    let mut talk = talk_with(plays, |settings| settings.frame_max = 1000).await;
    talk.say(&modern("1", "tools/call", r#""name":"a""#));
    for expected in expected {
        let heard = talk.hear().await;
        assert!(heard.starts_with(expected), "{heard}\n{expected}");
    }
    // Whatever it did, the next one is served.
    assert!(talk.is_silent().await);
}

fn say(text: &str) -> Vec<Act> {
    vec![Act::Say(text.as_bytes().to_vec()), Act::Close]
}

#[tokio::test]
async fn garbage_is_no_answer() {
    check(|_| vec![Act::Close], &["1 unanswered: empty reply from server"]).await;
    check(|_| say("\0\u{1}garbage\r\n\r\n"), &["1 unanswered: the answer is not valid HTTP"]).await;
    check(|_| say("SSH-2.0-OpenSSH\r\n"), &["1 unanswered: the answer is not valid HTTP"]).await;
    check(|_| say("HTTP/1.1 200 OK\r\nContent-Ty"), &["1 unanswered: empty reply from server"]).await;
    check(
        |_| say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{\"id\":1,"),
        &["1 unanswered: transfer closed with outstanding read data: "],
    )
    .await;
    check(
        |_| say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: -1\r\n\r\n{}"),
        &["1 unanswered: "],
    )
    .await;
    let not_text = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n\xff\xfe";
    check(
        move |_| vec![Act::Say(not_text.to_vec()), Act::Close],
        &["noise, no text", "1 unanswered: the answer is no text"],
    )
    .await;
    check(
        |_| events("data: {\"id\":1,\"result\":"),
        &["1 unanswered: transfer closed with outstanding read data: the stream ended before the answer came"],
    )
    .await;
    check(
        |_| {
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
            say(&format!("{head}10\r\ndata: {{\"id\":1,\"re"))
        },
        &["1 unanswered: transfer closed with outstanding read data: "],
    )
    .await;
    check(|_| events("data: what\n\ndata: {\"id\":1,\"result\":1}\n\n"), &["what", r#"{"id":1,"result":1}"#])
        .await;
}

#[tokio::test]
async fn what_has_no_end_is_refused() {
    let long = "x".repeat(5000);
    let body = format!(r#"{{"id":1,"result":"{long}"}}"#);
    check(
        move |_| json(&body),
        &[
            "noise, too long for 1000: {\"id\":1,\"result\"",
            "1 unanswered: the answer is longer than 1000 bytes",
        ],
    )
    .await;
    check(
        |_| {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ";
            let mut acts = vec![Act::Say(head.as_bytes().to_vec())];
            acts.extend((0..100).map(|_| Act::Say(vec![b'x'; 100])));
            acts.push(Act::Hang);
            acts
        },
        &[
            "noise, too long for 1000: data: xxxxxxxxxx",
            "1 unanswered: an event of the answer is longer than 1000 bytes",
        ],
    )
    .await;
    check(
        |_| {
            let head = "HTTP/1.1 500 Internal Server Error\r\n\r\n";
            let mut acts = vec![Act::Say(head.as_bytes().to_vec())];
            acts.extend((0..100).map(|_| Act::Say(vec![b'x'; 100])));
            acts.push(Act::Hang);
            acts
        },
        &["1 unanswered: HTTP 500 Internal Server Error: ⟦xxx"],
    )
    .await;
    check(
        |_| {
            let mut acts = vec![Act::Say(b"HTTP/1.1 200 OK\r\n".to_vec())];
            acts.extend((0..50_000).map(|n| Act::Say(format!("X-{n}: y\r\n").into_bytes())));
            acts
        },
        &["1 unanswered: "],
    )
    .await;
}

#[tokio::test]
async fn a_slow_server_holds_up_nobody_else() {
    let mut talk = talk(|seen| match seen.asks("slow") {
        true => vec![Act::Say(b"HTTP/1.1 2".to_vec()), Act::Hang],
        false => ok(seen),
    })
    .await;
    for id in 1..50 {
        talk.say(&modern(&id.to_string(), "slow", ""));
    }
    talk.say(&modern("99", "tools/list", ""));
    assert_eq!(talk.hear().await, r#"{"id":99,"result":"ok"}"#);
    // All that is under way ends with the link.
    let connections = talk.connections.clone();
    drop(talk.link);
    for _ in 0..500 {
        if connections.lock().unwrap().0 == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("connections outlive the link");
}

#[tokio::test]
async fn who_stops_to_listen_ends_the_link() {
    let talk = talk(|_| vec![Act::Hang]).await;
    talk.say(&modern("1", "tools/list", ""));
    talk.until(|talk| talk.seen().len() == 1).await;
    drop(talk.link.from);
    talk.link.to.closed().await;
}

/// A link to where nobody is.
fn lost(url: &str) -> Talk {
    let mut settings = HttpSettings::new(url.parse().unwrap());
    settings.connect_limit = Duration::from_millis(500);
    Talk {
        link: open(settings, crate::mcp::loads::Loads::from_server()),
        url: url.to_owned(),
        seen: Default::default(),
        connections: Default::default(),
    }
}

#[tokio::test]
async fn who_cannot_be_reached_never_saw_it() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    for (url, words) in [
        (format!("http://127.0.0.1:{port}/mcp"), "failed to connect to 127.0.0.1:".to_owned()),
        ("http://nowhere.invalid/mcp".to_owned(), "could not resolve host: nowhere.invalid".to_owned()),
    ] {
        let mut talk = lost(&url);
        talk.say(&modern("1", "tools/list", ""));
        let heard = talk.hear().await;
        assert!(heard.starts_with(&format!("1 unanswered: {words}")), "{heard}");
        assert!(heard.ends_with("(never reached)"), "{heard}");
        talk.say(r#"{"method":"notifications/x"}"#);
        let heard = talk.hear().await;
        assert!(heard.starts_with(&format!("remark: notifications/x did not arrive: {words}")), "{heard}");
    }
}

#[tokio::test]
async fn who_does_not_encrypt_never_saw_it() {
    let plain = talk(|_| say("HTTP/1.1 400 Bad Request\r\n\r\n")).await;
    let mut talk = lost(&plain.url.replace("http:", "https:"));
    talk.say(&modern("1", "tools/list", ""));
    let heard = talk.hear().await;
    assert!(heard.starts_with("1 unanswered: TLS handshake with 127.0.0.1:"), "{heard}");
    assert!(heard.ends_with("(never reached)"), "{heard}");

    // It lets us in and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut talk = lost(&format!("https://{}/mcp", silent.local_addr().unwrap()));
    talk.say(&modern("1", "tools/list", ""));
    let heard = talk.hear().await;
    assert!(heard.starts_with("1 unanswered: connection timed out: 127.0.0.1:"), "{heard}");
}

#[tokio::test]
async fn a_redirect_is_followed_within_its_origin_only() {
    let token = |settings: &mut HttpSettings| {
        settings.headers = vec![(AUTHORIZATION, HeaderValue::from_static("Zebra quiet-and-striped"))];
    };
    let other = talk(ok).await;
    let there = other.url.clone();
    let mut talk = talk_with(
        move |seen| match seen.path.as_str() {
            "/mcp" if seen.asks("near") => status("307 Temporary Redirect\r\nLocation: /mcp/", ""),
            "/mcp" if seen.asks("far") => status(&format!("308 Permanent Redirect\r\nLocation: {there}"), ""),
            "/mcp" if seen.asks("lost") => status("302 Found\r\nLocation: /login", ""),
            "/mcp" if seen.asks("round") => status("307 Temporary Redirect\r\nLocation: /mcp", ""),
            "/mcp/" => status("403 Forbidden", &format!("not with {}", seen.header("authorization"))),
            _ => ok(seen),
        },
        token,
    )
    .await;
    talk.say(&modern("1", "near", ""));
    assert_eq!(talk.hear().await, "1 unanswered: HTTP 403 Forbidden: ⟦not with Zebra [redacted]⟧ [403]");
    assert_eq!(talk.seen()[1].header("authorization"), "Zebra quiet-and-striped");
    assert_eq!(talk.seen()[1].message()["method"], "near");
    talk.say(&modern("2", "far", ""));
    let heard = talk.hear().await;
    assert!(
        heard.starts_with("2 unanswered: HTTP 308: the server leads on to ⟦http://127.0.0.1:"),
        "{heard}"
    );
    assert_eq!(other.seen().len(), 0);
    talk.say(&modern("3", "lost", ""));
    let heard = talk.hear().await;
    assert!(
        heard.starts_with("3 unanswered: HTTP 302: the server leads on to `/login`, where it would not"),
        "{heard}"
    );
    talk.say(&modern("4", "round", ""));
    assert_eq!(talk.hear().await, "4 unanswered: too many redirects");
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_not_used_again() {
    let mut talk = talk(|seen| {
        let mut acts = ok(seen);
        acts.extend([Act::Wait(50), Act::Close]);
        acts
    })
    .await;
    for id in 0..5 {
        talk.say(&modern(&id.to_string(), "tools/list", ""));
        assert_eq!(talk.hear().await, format!(r#"{{"id":{id},"result":"ok"}}"#));
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    assert_eq!(talk.connections.lock().unwrap().1, 5);
}

#[tokio::test]
async fn who_listens_late_misses_nothing() {
    let mut talk = talk(|seen| {
        let told: String = (0..1000).map(|n| format!("data: {{\"method\":\"n{n}\"}}\n\n")).collect();
        events(&format!("{told}data: {{\"id\":{},\"result\":1}}\n\n", seen.id()))
    })
    .await;
    talk.say(&modern("1", "tools/call", r#""name":"a""#));
    tokio::time::sleep(Duration::from_millis(300)).await;
    for n in 0..1000 {
        assert_eq!(talk.hear().await, format!(r#"{{"method":"n{n}"}}"#));
    }
    assert_eq!(talk.hear().await, r#"{"id":1,"result":1}"#);
}
