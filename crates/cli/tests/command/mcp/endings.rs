//! How servers end: what they said by then is heard, what they hold is let go before the next one comes, and whoever goes without a
//! complaint did not die.

use std::io::{BufRead, BufReader, Write};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, LIMIT, at, envelope, peer, seen, text, wait_for, with_setting, without_ladder};
use crate::world::World;

fn starts(world: &World) -> usize {
    seen(world).iter().filter(|line| line.get("args").is_some()).count()
}

fn log(world: &World) -> String {
    let said = world.run(&["log", "--last", "300"], "");
    assert_eq!(said.exit, 0, "{said}");
    said.stdout().to_owned()
}

/// Asks so many questions that are answered together just before the server ends, and reads none of the answers before it wants to.
#[track_caller]
fn all_last_answers_arrive(count: usize, bytes: usize, code: i32, late: Duration) {
    let world = World::empty();
    let log = at(&world, "peer.log");
    let mut child = world.command(&["mcp", "--", &peer(), "--log", &log]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for id in 0..count {
        let arguments = json!({ "of": count, "bytes": bytes, "code": code });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "farewell", "arguments": arguments } });
        writeln!(stdin, "{call}").unwrap();
    }
    let lines = || std::fs::read(&log).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count();
    wait_for("the calls do not arrive", || lines() > count);
    thread::sleep(late);
    let stdout = child.stdout.take().unwrap();
    let (tell, told) = channel();
    thread::spawn(move || {
        let lines = BufReader::with_capacity(512, stdout).lines();
        lines.map_while(Result::ok).try_for_each(|line| tell.send(line))
    });
    let mut left = vec![true; count];
    for _ in 0..count {
        let Ok(line) = told.recv_timeout(LIMIT) else {
            child.kill().unwrap();
            panic!("{} answers do not come", left.iter().filter(|is_left| **is_left).count());
        };
        let frame: Value = serde_json::from_str(&line).unwrap();
        let id = frame["id"].as_u64().unwrap();
        let said = text(&frame["result"], 0);
        assert!(said.starts_with(&format!("{id} tide")) && said.len() >= bytes, "{:.200}", line);
        assert!(std::mem::replace(&mut left[id as usize], false), "{id} is answered twice");
    }
    drop(stdin);
    child.wait().unwrap();
}

#[test]
fn whatever_a_server_said_before_it_went_reaches_a_client_that_reads_late() {
    // More than pipes hold.
    all_last_answers_arrive(200, 1000, 0, Duration::from_millis(200));
    // And later than anybody lets a server take to end by itself.
    all_last_answers_arrive(1000, 2000, 7, Duration::from_millis(2500));
}

#[test]
fn whatever_a_server_said_reaches_a_client_also_where_the_server_has_to_wait_for_it() {
    // More than is held at all.
    all_last_answers_arrive(2000, 10_000, 7, Duration::from_millis(2500));
}

#[test]
fn a_server_that_hangs_is_gone_before_the_next_one_comes() {
    let check = |server: &str| {
        let world = with_setting(World::empty(), "hangs-after", "1s");
        let server = server.replace("PEER", &format!("{} --log peer.log --lock lock", peer()));
        let args = ["--timeout", "3s", "--retries", "0"];
        let mut client = Client::start(&world, &args, &["sh", "-c", &server]);
        client.introduce("tester");
        client.ask("tools/list", json!({}));
        assert_eq!(client.fails("hang", json!({}))["kind"], "timeout");
        let greetings = || seen(&world).iter().filter(|line| line["method"] == "initialize").count();
        wait_for("it is not started again", || greetings() == 2 || starts(&world) > 2);
        assert_eq!(client.works("echo", json!({ "text": "again" })), "again");
        assert_eq!(starts(&world), 2, "{:?}", seen(&world));
        let refused: Vec<Value> =
            seen(&world).into_iter().filter(|line| line.get("refused").is_some()).collect();
        assert_eq!(refused, Vec::<Value>::new());
        assert_eq!(client.end().0, 0);
    };
    // It does not go when it is asked to.
    check("trap '' TERM; exec PEER");
    // Another program stands before it, and goes at once.
    check("(trap '' TERM; exec PEER); true");
}

/// It answers whatever it is asked with the number of its life. Asked for three times to `close`, it closes its input, answers, and
/// stays.
const CLOSES: &str = r#"echo s >> starts; life=$(($(wc -l < starts))); closing=
say() { printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"life %s"}],"capabilities":{}}}\n' "$1" "$life"; }
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *'"method":"notifications'*) continue;;
    *'"close"'*)
      closing="$closing $id"
      set -- $closing
      [ $# -lt 3 ] && continue
      exec <&-
      for id in $closing; do say "$id"; done
      sleep 1000;;
    *) say "$id";;
  esac
done"#;

#[test]
fn a_server_that_closes_its_input_is_heard_and_another_one_asked() {
    let world = World::empty();
    let mut client = Client::start(&world, &[], &["sh", "-c", CLOSES]);
    client.introduce("tester");
    let ids: Vec<u64> = (0..3).map(|number| client.send_call("close", json!({ "n": number }))).collect();
    for id in ids {
        assert_eq!(text(&client.answer(id)["result"], 0), "life 1");
    }
    // It cannot be asked any more, and whoever does is told so.
    let told = client.fails("any", json!({}));
    assert!(told["error"].as_str().unwrap().contains("closed its input"), "{told}");
    assert_eq!(client.works("any", json!({})), "life 2");
    // A notification finds it out as well as a call does.
    let ids: Vec<u64> = (3..6).map(|number| client.send_call("close", json!({ "n": number }))).collect();
    for id in ids {
        assert_eq!(text(&client.answer(id)["result"], 0), "life 2");
    }
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/vendor"}"#);
    let lives = || std::fs::read_to_string(world.path("starts")).unwrap().lines().count();
    wait_for("it is not started again", || lives() == 3);
    assert_eq!(client.works("any", json!({})), "life 3");
    assert_eq!(client.end().0, 0);
}

#[test]
fn a_server_that_goes_after_each_answer_is_started_for_each_call_and_never_left_alone() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &["--one-call"]);
    for number in 0..8 {
        let words = number.to_string();
        assert_eq!(client.works("echo", json!({ "text": words })), words);
    }
    assert!(starts(&world) >= 8, "{}", starts(&world));
    assert_eq!(client.end().0, 0);
    let log = log(&world);
    assert!(!log.contains("left alone") && !log.contains("gave up"), "{log}");
}

#[test]
fn a_server_that_went_without_a_complaint_between_its_deaths_has_died_less_often() {
    let world = without_ladder(World::empty());
    let mut client = Client::ready(&world, &["--retries", "0"], &[]);
    for number in 0..4 {
        client.fails("crash", json!({ "key": format!("a{number}"), "text": format!("keel {number} broke") }));
        client.fails("crash", json!({ "key": format!("b{number}"), "code": 0 }));
    }
    assert_eq!(client.works("echo", json!({ "text": "still here" })), "still here");
    assert_eq!(starts(&world), 9);
}

/// Three requests in one message, among other things.
const BATCH: &str = r#"[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/vendor"},{"jsonrpc":"2.0","id":102,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"}}},{"jsonrpc":"2.0","id":"peer-9","result":{}},{"jsonrpc":"2.0","id":103,"method":"tools/list"}]"#;

/// Fails unless each request of it is told the same once.
#[track_caller]
fn each_is_told(client: &mut Client, words: &str) {
    let mut told: Vec<String> = (0..3)
        .map(|_| {
            let frame = client.aside.pop().unwrap_or_else(|| client.hear());
            let message = frame["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains(words) && frame["error"]["code"] == -32000, "{frame}");
            frame["id"].to_string()
        })
        .collect();
    told.sort();
    assert_eq!(told, [r#""a""#, "102", "103"]);
}

#[test]
fn each_request_of_a_batch_is_told_that_the_server_is_gone() {
    // For good.
    let world = World::empty();
    let mut client = Client::start(&world, &[], &["sh", "-c", "exit 7"]);
    client.say(BATCH);
    each_is_told(&mut client, "code 7");
    assert_eq!(client.exit_within(LIMIT), 7);
    // While it was under way.
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    client.say(BATCH);
    wait_for("the batch does not arrive", || seen(&world).iter().any(|line| line.get("strange").is_some()));
    let id = client.send_call("crash", json!({}));
    envelope(&client.answer(id)["result"]);
    each_is_told(&mut client, "code 7");
    assert_eq!(client.works("echo", json!({ "text": "again" })), "again");
    assert_eq!(client.aside, Vec::<Value>::new());
    // For a while.
    let world = without_ladder(World::empty());
    let mut client = Client::ready(&world, &["--retries", "0"], &[]);
    for number in 0..5 {
        client.fails("crash", json!({ "text": format!("keel {number} broke") }));
    }
    client.say(BATCH);
    each_is_told(&mut client, "left alone");
}
