//! `unstuck alerts`: whoever is to be told is told once, and a way that does not work is shown.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

use serde_json::Value;

use crate::kept::failure;
use crate::world::{Said, World};

/// Settings with one rule that fires on the first failure.
fn rule(tells: &str) -> String {
    format!(
        "[[alert]]\nname = \"any\"\nwhen = \"failures\"\nmore-than = 0\nwithin = \"24h\"\nsay = \"something failed\"\n{tells}\n"
    )
}

/// A world with such a rule, and a failure.
fn world(tells: &str) -> World {
    let world = World::empty().with("config/unstuck/config.toml", rule(tells));
    world.record(&failure("one", "c1", "npm ci", "npm error code ENOENT"));
    world
}

/// A server that answers `count` requests with this status line and headers, and returns what it was sent.
fn server(count: usize, status: &'static str) -> (String, JoinHandle<Vec<(String, Value)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hooks/s3cr3t-path", listener.local_addr().unwrap());
    let serving = thread::spawn(move || {
        let mut seen = Vec::new();
        for stream in listener.incoming().take(count) {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            write!(stream.get_mut(), "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .unwrap();
            seen.push((head, serde_json::from_slice(&body).unwrap()));
        }
        seen
    });
    (address, serving)
}

/// The only fired alert.
fn fired(world: &World) -> Value {
    let lines = world.run(&["alerts", "--json"], "").json_lines();
    let fired: Vec<&Value> = lines.iter().filter(|line| line["type"] == "alert").collect();
    let [only] = fired[..] else { panic!("expected one alert: {lines:?}") };
    only.clone()
}

#[test]
fn a_command_gets_the_alert_as_one_line_and_only_once() {
    let world = world(r#"command = ["sh", "-c", "cat >> told.jsonl"]"#);
    let beat = world.run(&["heartbeat", "--json"], "").json();
    assert_eq!(
        (&beat["fired"][0]["name"], &beat["delivered"], &beat["undelivered"]),
        (&"any".into(), &1.into(), &0.into())
    );
    let again = world.run(&["heartbeat", "--json"], "").json();
    assert_eq!((&again["fired"], &again["delivered"]), (&Value::Array(Vec::new()), &0.into()));
    let told = fs::read_to_string(world.path("told.jsonl")).unwrap();
    assert_eq!(told.lines().count(), 1);
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (&told["name"], &told["text"], &told["value"]),
        (&"any".into(), &"something failed".into(), &1.0.into())
    );
    assert_eq!((&told["test"], &told["id"]), (&false.into(), &fired(&world)["id"]));
    let events = world.run(&["log", "--json", "--channel", "monitor"], "").json_lines();
    assert_eq!(events.iter().filter(|event| event["event"] == "alert").count(), 1, "{events:?}");
}

#[test]
fn many_heartbeats_at_once_tell_once() {
    let world = world(r#"command = ["sh", "-c", "sleep 0.1; cat >> told.jsonl"]"#);
    let beats: Vec<_> = (0..8).map(|_| world.command(&["heartbeat"]).spawn().unwrap()).collect();
    for said in beats.into_iter().map(Said::by) {
        assert_eq!((said.stderr(), said.exit), ("", 0));
    }
    assert_eq!(fs::read_to_string(world.path("told.jsonl")).unwrap().lines().count(), 1);
}

#[test]
fn a_webhook_gets_the_alert_and_its_address_is_written_nowhere() {
    let (address, serving) = server(1, "204 No Content");
    let world = world(&format!("webhook = \"{address}\""));
    let said = world.run(&["heartbeat"], "");
    let line = told(&said);
    assert_eq!(line, "alerts fired: any (1 in 24h from TODAY); delivered 1\n", "{said}");
    let seen = serving.join().unwrap();
    let (head, body) = &seen[0];
    assert!(head.starts_with("POST /hooks/s3cr3t-path HTTP/1.1"), "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: application/json"), "{head}");
    assert_eq!((&body["type"], &body["id"]), (&"alert".into(), &fired(&world)["id"]));
    assert_eq!(fired(&world)["deliveries"][0]["state"], "arrived");
    assert_eq!(world.files_with("s3cr3t-path"), [""; 0]);
}

/// What a heartbeat that went well says, without the day.
#[track_caller]
fn told(said: &Said) -> String {
    assert_eq!((said.stderr(), said.exit), ("", 0), "{said}");
    let (before, rest) = said.stdout().split_once(" from ").unwrap();
    let (day, after) = rest.split_once(')').unwrap();
    assert!(day.ends_with(" 00:00:00Z"), "{said}");
    format!("{before} from TODAY){after}")
}

/// Fires into something that does not work, and returns what `alerts` says of it.
#[track_caller]
fn check_failed(tells: &str, why: &str) {
    let world = world(tells);
    let said = world.run(&["heartbeat"], "");
    let line = told(&said);
    let expected = "alerts fired: any (1 in 24h from TODAY); 1 delivery failed (`unstuck alerts` says why)\n";
    assert_eq!(line, expected, "{said}");
    let delivery = fired(&world)["deliveries"][0].clone();
    assert_eq!((&delivery["state"], &delivery["tries"]), (&"waiting".into(), &1.into()));
    assert!(delivery["error"].as_str().unwrap().contains(why), "{delivery}");
    assert!(delivery["next_at"].is_string() && delivery["next_at_ms"].is_u64(), "{delivery}");
    let shown = world.run(&["alerts"], "");
    assert!(shown.stdout().contains("failed 1×, again after ") && shown.stdout().contains(why), "{shown}");
    // Its time has not come yet.
    assert_eq!(world.run(&["heartbeat"], "").stdout(), "nothing to do\n");
    assert_eq!(world.files_with("s3cr3t-path"), [""; 0]);
}

#[test]
fn a_delivery_that_failed_is_kept_with_the_reason() {
    check_failed(
        r#"command = ["sh", "-c", "echo no mail today >&2; exit 3"]"#,
        "sh exited with 3: no mail today",
    );
    check_failed(
        r#"command = ["no-such-program-anywhere"]"#,
        "there is no program called no-such-program-anywhere",
    );
    check_failed(&format!("webhook = \"{}\"", server(1, "503 Busy").0), "answered 503");
    // Where nobody listens any more.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    check_failed(&format!("webhook = \"http://{gone}/s3cr3t-path\""), "onnection refused");
}

#[test]
fn a_webhook_that_sends_us_elsewhere_is_not_followed() {
    let (elsewhere, _) = server(1, "200 OK");
    let status: &'static str = format!("302 Found\r\nlocation: {elsewhere}").leak();
    let (address, serving) = server(1, status);
    check_failed(&format!("webhook = \"{address}\""), "answered 302: redirects are not followed");
    assert_eq!(serving.join().unwrap().len(), 1);
}

#[test]
fn a_rule_that_is_gone_is_not_waited_for() {
    let world = world(r#"command = ["false"]"#);
    world.run(&["heartbeat"], "");
    fs::write(world.path("config/unstuck/config.toml"), "").unwrap();
    let shown = world.run(&["alerts"], "");
    assert!(!shown.stdout().contains("\nany "), "{shown}");
    assert_eq!(fired(&world)["name"], "any");
}

#[test]
fn a_test_alert_is_marked_and_says_what_came_of_it() {
    let (address, serving) = server(1, "200 OK");
    let tells = format!("command = [\"sh\", \"-c\", \"cat > told.json; exit 7\"]\nwebhook = \"{address}\"");
    let world = World::empty().with("config/unstuck/config.toml", rule(&tells));
    let said = world.run(&["alerts", "test", "any"], "");
    assert_eq!(
        (said.stdout(), said.exit),
        ("any → command: failed: sh exited with 7\nany → webhook: arrived\n", 1)
    );
    let told: Value = serde_json::from_slice(&fs::read(world.path("told.json")).unwrap()).unwrap();
    assert_eq!((&told["test"], &told["text"]), (&true.into(), &"[test] something failed".into()));
    assert_eq!(serving.join().unwrap()[0].1["test"], true);
    assert!(!world.path(".local/state/unstuck").exists(), "a test leaves nothing behind");
}

#[test]
fn a_test_without_anybody_to_tell_says_so_and_a_wrong_name_gets_the_nearest() {
    let said = World::empty().run(&["alerts", "test"], "");
    assert!(said.stdout().contains("no rule names a command or a webhook") && said.exit == 0, "{said}");
    let other = World::empty().with("config/unstuck/config.toml", rule(r#"command = ["false"]"#));
    let said = other.run(&["alerts", "test", "regressed"], "");
    let names = "regressed names neither a command nor a webhook: it is told on the timeline alone\n";
    assert_eq!((said.stdout(), said.exit), (names, 0), "{said}");
    World::empty()
        .run(&["alerts", "test", "failurerate"], "")
        .complains(2, &["no alert is called failurerate", "did you mean failure-rate?"]);
}

#[test]
fn rules_are_shown_with_their_value_against_the_limit() {
    let world = world("");
    let lines = world.run(&["alerts", "list", "--json"], "").json_lines();
    let any = lines.iter().find(|line| line["name"] == "any").unwrap();
    assert_eq!((&any["value"], &any["limit"], &any["over"]), (&1.0.into(), &0.0.into(), &true.into()));
    let said = world.run(&["alerts"], "");
    assert!(
        said.stdout()
            .lines()
            .any(|line| line.split_whitespace().eq(["any", "1", ">", "0", "24h", "timeline", "over"]))
    );
}

#[test]
fn rules_are_shown_before_anything_is_recorded() {
    let world = World::empty();
    let said = world.run(&["alerts"], "");
    assert!(said.stdout().ends_with("\nnothing is recorded yet\n") && said.exit == 0, "{said}");
    let lines = world.run(&["alerts", "--json"], "").json_lines();
    let shown: Vec<_> = lines.iter().map(|rule| (&rule["name"], &rule["value"], &rule["over"])).collect();
    assert_eq!(shown.len(), 5, "{lines:?}");
    assert!(lines.iter().all(|rule| rule["value"] == 0.0 && rule["over"] == false), "{shown:?}");
    assert_eq!(lines.iter().find(|rule| rule["name"] == "validation").unwrap()["limit"], 100.0);
    assert!(world.run(&["alerts", "--lang", "zh"], "").stdout().ends_with("\n尚无记录\n"));
    assert!(!world.path(".local/state/unstuck").exists(), "looking makes nothing");
}

#[test]
fn an_alert_that_fired_is_shown_with_its_value_and_its_window() {
    let world = world("");
    world.record(&failure("one", "c2", "make", "make: *** No rule to make target"));
    world.run(&["heartbeat"], "");
    let alert = fired(&world);
    let window = alert["window"].as_str().unwrap().replace('T', " ").replace(".000Z", "Z");
    let shown = world.run(&["alerts"], "");
    assert!(
        shown.stdout().contains(&format!("  any (2 in 24h from {window})  something failed\n")),
        "{shown}"
    );
    let shown = world.run(&["alerts", "--lang", "zh"], "");
    assert!(
        shown.stdout().contains(&format!("  any（{window} 起 24h 内：2）  something failed\n")),
        "{shown}"
    );
    // Of a rule that is gone, the length of its windows is not known any more.
    fs::write(world.path("config/unstuck/config.toml"), "").unwrap();
    let shown = world.run(&["alerts"], "");
    assert!(shown.stdout().contains(&format!("  any (2 from {window} on)  something failed\n")), "{shown}");
}
