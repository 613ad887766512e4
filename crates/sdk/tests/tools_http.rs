//! The HTTP tool against a real server on this machine.
#![cfg(all(unix, feature = "http"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unstuck::tools::Http;
use unstuck::{CallResult, Kind, Policy, ToolCall, Toolbox};

/// A server that answers each path in its own way, and remembers what it was asked.
struct Server {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let heard = Arc::clone(&heard);
                thread::spawn(move || answer(stream, &heard));
            }
        });
        Server { address, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    fn times(&self, path: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| asked.contains(path)).count()
    }
}

fn answer(stream: TcpStream, asked: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut first, mut length, mut header) = (String::new(), 0, String::new());
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        let line = line.to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if let Some(value) = line.strip_prefix("x-ours:") {
            header = value.trim().to_owned();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let times = {
        let mut asked = asked.lock().ok()?;
        asked.push(first.trim().to_owned());
        asked.iter().filter(|asked| asked.contains(&path)).count()
    };
    let plain = |status: &str, headers: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}Connection: close\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), body].concat()
    };
    let bytes = match &*path {
        "/echo" => {
            plain("200 OK", "X-Twice: a\r\nX-Twice: b\r\n", format!("{first}{header}|{body}").as_bytes())
        }
        "/missing" => plain("404 Not Found", "", b"there is no such page"),
        "/busy" => plain("429 Too Many Requests", "Retry-After: 120\r\n", b"slow down"),
        "/flaky" if times == 1 => plain("503 Service Unavailable", "Retry-After: 1\r\n", b"in a moment"),
        "/flaky" => plain("200 OK", "", b"here"),
        "/broken" => plain("500 Internal Server Error", "", b"oops"),
        "/moved" => plain("302 Found", "Location: /echo\r\n", b""),
        "/round" => plain("302 Found", "Location: /round\r\n", b""),
        "/to-file" => plain("302 Found", "Location: file:///etc/passwd\r\n", b""),
        "/binary" => plain("200 OK", "", b"\x89PNG\0\0"),
        "/long" => plain("200 OK", "", &vec![b'x'; 1_000_000]),
        "/slow" => {
            thread::sleep(Duration::from_secs(30));
            Vec::new()
        }
        _ => Vec::new(),
    };
    let mut stream = stream;
    stream.write_all(&bytes).ok()
}

async fn fetch(http: Http, input: Value) -> CallResult {
    let tools = Toolbox::builder().tool(http).policy(Policy::default().retries(0)).build().unwrap();
    tools.call(ToolCall::new("http_fetch", input)).await
}

#[tokio::test]
async fn a_request_is_sent_as_it_is_meant_and_the_answer_shown() {
    let server = Server::start();
    let got = fetch(Http::new(), json!({ "url": server.url("/echo"), "headers": { "X-Ours": "yes" } })).await;
    assert_eq!(
        (&got.output()["status"], &got.output()["body"]),
        (&json!(200), &json!("GET /echo HTTP/1.1\r\nyes|"))
    );
    assert_eq!(got.output()["headers"]["x-twice"], "a, b");
    for method in ["post", "PUT", "DELETE"] {
        let sent =
            fetch(Http::new(), json!({ "url": server.url("/echo"), "method": method, "body": "text" })).await;
        let method = method.to_uppercase();
        assert_eq!(sent.output()["body"], format!("{method} /echo HTTP/1.1\r\n|text"), "{sent:#?}");
    }
    let moved = fetch(Http::new(), json!({ "url": server.url("/moved") })).await;
    assert_eq!(moved.output()["body"], "GET /echo HTTP/1.1\r\n|");
    let binary = fetch(Http::new(), json!({ "url": server.url("/binary") })).await;
    assert_eq!(
        (&binary.output()["body"], &binary.output()["notes"]),
        (&json!(""), &json!(["the body is binary and is not shown"]))
    );
    let long = fetch(Http::new(), json!({ "url": server.url("/long") })).await;
    assert_eq!(long.output()["body"].as_str().unwrap().len(), 128 * 1024);
    assert!(long.output()["notes"][0].as_str().unwrap().contains("longer"), "{:?}", long.output()["notes"]);
}

#[tokio::test]
async fn a_status_that_says_no_is_a_failure_with_its_cause() {
    let server = Server::start();
    for (path, status, kind) in [
        ("/missing", 404, Kind::PathNotFound),
        ("/busy", 429, Kind::RateLimited),
        ("/broken", 500, Kind::ServerError),
    ] {
        let result = fetch(Http::new(), json!({ "url": server.url(path) })).await;
        assert_eq!(result.diagnosis().map(|diagnosis| diagnosis.kind), Some(kind), "{path}: {result:#?}");
        assert_eq!(result.output()["status"], status);
    }
    let busy = fetch(Http::new(), json!({ "url": server.url("/busy") })).await;
    let hints = busy.to_json()["diagnosis"].to_string();
    assert!(hints.contains("120"), "{hints}");
}

#[tokio::test]
async fn a_read_is_sent_again_after_the_wait_and_a_write_is_not() {
    let server = Server::start();
    let tools = Toolbox::builder().tool(Http::new()).build().unwrap();
    let begun = Instant::now();
    let read = tools.call(ToolCall::new("http_fetch", json!({ "url": server.url("/flaky") }))).await;
    assert_eq!((read.is_ok(), read.tried().len(), server.times("/flaky")), (true, 1, 2), "{read:#?}");
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    let write = json!({ "url": server.url("/broken"), "method": "POST", "body": "pay" });
    let write = tools.call(ToolCall::new("http_fetch", write)).await;
    assert_eq!((write.is_ok(), server.times("/broken")), (false, 1), "{write:#?}");
}

#[tokio::test]
async fn what_gets_no_answer_has_a_cause() {
    let server = Server::start();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (url, kind) in [
        (format!("http://{closed}/"), Kind::Network),
        (server.url("/hangs-up"), Kind::Network),
        ("http://no-such-host.invalid/".to_owned(), Kind::Network),
    ] {
        let result = fetch(Http::new(), json!({ "url": url })).await;
        assert_eq!(result.diagnosis().unwrap().kind, kind, "{url}: {result:#?}");
    }
    let slow =
        fetch(Http::new().timeout(Duration::from_millis(300)), json!({ "url": server.url("/slow") })).await;
    assert_eq!(slow.diagnosis().unwrap().kind, Kind::Timeout, "{slow:#?}");
    for url in [server.url("/round"), server.url("/to-file")] {
        let result = fetch(Http::new(), json!({ "url": url })).await;
        assert!(!result.is_ok(), "{url}: {result:#?}");
    }
    assert!(server.times("/round") <= 6, "{}", server.times("/round"));
    for url in ["file:///etc/passwd", "ftp://files.example/", "/etc/passwd", "http://"] {
        let result = fetch(Http::new(), json!({ "url": url })).await;
        assert_eq!(result.error_type(), Some("validation"), "{url}: {result:#?}");
    }
}

#[tokio::test]
async fn who_may_ask_only_the_public_asks_nobody_on_this_machine() {
    let server = Server::start();
    let port = server.address.rsplit(':').next().unwrap();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0"] {
        let url = format!("http://{host}:{port}/echo");
        let result = fetch(Http::new().public_only(), json!({ "url": url })).await;
        assert!(!result.is_ok(), "{url}: {result:#?}");
    }
    let refused = fetch(Http::new().public_only(), json!({ "url": server.url("/echo") })).await;
    assert_eq!(refused.diagnosis().unwrap().kind, Kind::Permission, "{refused:#?}");
    assert_eq!(server.times("/echo"), 0);
}

#[tokio::test]
async fn a_request_that_is_given_up_is_hung_up() {
    let server = Server::start();
    let policy = Policy::default().retries(0).deadline(Duration::from_millis(300));
    let tools = Toolbox::builder().tool(Http::new()).policy(policy).build().unwrap();
    let begun = Instant::now();
    let result = tools.call(ToolCall::new("http_fetch", json!({ "url": server.url("/slow") }))).await;
    assert_eq!(result.error_type(), Some("aborted"), "{result:#?}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    // The runtime waits for all threads when it ends, so a connection that is not closed would hold this test for 30 s.
}
