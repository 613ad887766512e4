//! Whoever does not read holds up the other side, as if nobody stood between them: not our memory. Once it reads, nothing is
//! missing.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Child;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, LIMIT, peer, seen_calls, wait_for, with_setting};
use crate::world::World;

/// The size of what is large, and how often it comes.
const LARGE: usize = 8_000_000;
const TIMES: usize = 24;
/// What we may need, in kB, where all of it would be 192 MB.
const MOST: usize = 150_000;

/// Somebody who writes, and does not read until it is told to.
struct Deaf(Child);

impl Deaf {
    fn start(world: &World, args: &[&str]) -> Deaf {
        let mut command = world.command(&[&["mcp"], args].concat());
        Deaf(command.stderr(std::process::Stdio::null()).spawn().unwrap())
    }

    /// Writes it all, on a thread. Tells whether that comes to an end within a time.
    fn writes(&mut self, text: String, limit: Duration) -> bool {
        let mut stdin = self.0.stdin.take().unwrap();
        let (done, is_done) = channel();
        thread::spawn(move || {
            let written = stdin.write_all(text.as_bytes());
            let _nobody_waits = done.send(written.is_ok());
            // It stays there until the other side is gone.
            thread::sleep(LIMIT);
        });
        is_done.recv_timeout(limit).is_ok()
    }

    /// The most that it ever needed, in kB, once it needs no more for a while.
    #[track_caller]
    fn needs_at_most(&self, most: usize) {
        let path = format!("/proc/{}/status", self.0.id());
        let needs = || {
            let status = fs::read_to_string(&path).unwrap_or_default();
            let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
            most.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
        };
        let (mut needed, mut since) = (needs(), Instant::now());
        while since.elapsed() < Duration::from_secs(3) {
            thread::sleep(Duration::from_millis(50));
            let now = needs();
            if now > needed + 100 {
                (needed, since) = (now, Instant::now());
            }
            assert!(now <= most, "{now} kB");
        }
    }

    /// Reads so many lines that are `wanted`; all others are passed over.
    #[track_caller]
    fn reads(&mut self, times: usize, wanted: impl Fn(&str) -> bool) {
        let stdout = self.0.stdout.take().unwrap();
        let (tell, told) = channel();
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines();
            lines.map_while(Result::ok).try_for_each(|line| tell.send(line))
        });
        let mut seen = 0;
        while seen < times {
            let line = told.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("only {seen} of {times} came"));
            seen += usize::from(wanted(&line));
        }
    }
}

impl Drop for Deaf {
    fn drop(&mut self) {
        let _it_has_ended = self.0.kill();
        let _it_has_been_waited_for = self.0.wait();
    }
}

fn asked(times: usize, method: &str, params: &Value) -> String {
    let request = |id| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    (0..times).map(|id| format!("{}\n", request(id))).collect()
}

fn is_large(line: &str) -> bool {
    line.len() > LARGE
}

#[test]
fn a_server_that_says_much_on_its_own_waits_for_a_client_that_does_not_read() {
    let world = World::empty();
    let server = format!(
        "for i in $(seq {TIMES}); do printf '{{\"method\":\"notifications/tide\",\"params\":{{\"text\":\"'; \
         head -c {LARGE} /dev/zero | tr '\\0' x; echo '\"}}}}'; echo said >> said; done; cat"
    );
    let mut client = Deaf::start(&world, &["--", "sh", "-c", &server]);
    client.needs_at_most(MOST);
    assert!(world.text("said").lines().count() < 8, "{}", world.text("said"));
    client.reads(TIMES, is_large);
}

#[test]
fn large_answers_wait_for_a_client_that_does_not_read() {
    let world = World::empty();
    let mut client = Deaf::start(&world, &["--", &peer()]);
    let big = json!({ "name": "big", "arguments": { "megabytes": LARGE / 1_000_000 } });
    assert!(client.writes(asked(TIMES, "tools/call", &big), LIMIT));
    client.needs_at_most(MOST);
    client.reads(TIMES, is_large);
}

#[test]
fn a_server_that_is_held_up_is_not_taken_for_one_that_hangs() {
    let world = with_setting(World::empty(), "hangs-after", "1s");
    let mut client = Deaf::start(&world, &["--timeout", "2s", "--retries", "0", "--", &peer()]);
    let tide = json!({ "megabytes": LARGE / 1_000_000 });
    let calls = asked(8, "tools/call", &json!({ "name": "big", "arguments": tide }));
    assert!(client.writes(calls, LIMIT));
    client.needs_at_most(MOST);
    client.reads(8, |line| line.contains("\"id\""));
    drop(client);
    let log = world.run(&["log", "--json", "--last", "200"], "");
    assert!(log.stdout().contains("timed out") && !log.stdout().contains("server:unresponsive"), "{log}");
}

#[test]
fn large_failures_that_wait_to_be_tried_again_hold_up_nobody() {
    let world = World::empty();
    let mut client = Client::ready(&world, &["--deadline", "5m"], &[]);
    let text = format!("503 Service Unavailable. Retry-After: 60\n{}", "x".repeat(9_000_000));
    for key in ["a", "b", "c", "d"] {
        client.send_call("flaky_read", json!({ "key": key, "times": 1, "text": text }));
    }
    wait_for("a call does not arrive", || seen_calls(&world, "flaky_read").len() == 4);
    assert_eq!(client.works("echo", json!({ "text": "a" })), "a");
    assert!(client.aside.is_empty(), "{} are answered", client.aside.len());
}

#[test]
fn a_frame_that_is_larger_than_all_that_may_wait_passes_behind_others() {
    let world = World::empty();
    let server = format!(
        "for size in {LARGE} 50000000 {LARGE} 50000000 {LARGE}; do \
         printf '{{\"method\":\"notifications/tide\",\"params\":{{\"text\":\"'; \
         head -c $size /dev/zero | tr '\\0' x; echo '\"}}}}'; done; cat"
    );
    let mut client = Deaf::start(&world, &["--", "sh", "-c", &server]);
    client.needs_at_most(MOST);
    client.reads(5, is_large);
}

#[test]
fn large_answers_over_http_wait_for_a_client_that_does_not_read() {
    let world = World::empty();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || answer_all(stream));
        }
    });
    let mut client = Deaf::start(&world, &["--url", &url]);
    assert!(client.writes(asked(TIMES, "vendor/tide", &json!({})), LIMIT));
    client.needs_at_most(MOST);
    client.reads(TIMES, is_large);
}

/// Answers each request on a connection with something large.
fn answer_all(stream: TcpStream) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            stream.read_line(&mut line).ok().filter(|read| *read > 0)?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                if line.trim().is_empty() {
                    break;
                }
                continue;
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        let asked: Value = serde_json::from_slice(&body).ok()?;
        let (id, text) = (&asked["id"], "x".repeat(LARGE));
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"text":"{text}"}}}}"#);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        stream.get_mut().write_all(head.as_bytes()).ok()?;
        stream.get_mut().write_all(answer.as_bytes()).ok()?;
    }
}

#[test]
fn refusals_wait_for_a_client_that_does_not_read() {
    let world = World::empty();
    let mut client = Deaf::start(&world, &["--", "cat"]);
    let (open, close) = ("[".repeat(600), "]".repeat(600));
    let refused = |id| {
        let name = format!("{id} {}", "x".repeat(100_000));
        format!("{{\"id\":\"{name}\",\"method\":\"tools/list\",\"params\":{{\"a\":{open}{close}}}}}\n")
    };
    let all: String = (0..1500).map(refused).collect();
    assert!(!client.writes(all, Duration::from_secs(3)), "it is held up");
    client.needs_at_most(MOST);
    client.reads(1500, |line| line.contains("deep"));
}
