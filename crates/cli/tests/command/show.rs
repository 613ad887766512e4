//! `unstuck show`: one call's life, or one recurring problem.

use serde_json::{Value, json};

use crate::agent::{FINE, MISSING, MORNING, Work, hook, work};
use crate::world::World;

/// A call that fails, fails again, and goes well in the end.
fn recovered() -> World {
    let world = World::empty();
    let refused = "curl: (7) Failed to connect to api.example port 443: Connection refused";
    let fetch = Work { command: "curl https://api.example", exit: 7, stderr: refused, ..FINE };
    work(
        &world,
        &[
            Work { key: "toolu_a1", at: Some(MORNING), ..fetch },
            Work { key: "toolu_a2", at: Some(MORNING + 10_000), took_ms: 250, ..fetch },
            Work { key: "toolu_b1", at: Some(MORNING + 20_000), exit: 0, stderr: "", ..fetch },
        ],
    );
    world
}

/// What is shown of a call, without how long ago it was, which changes by the day.
fn page(world: &World, args: &[&str]) -> String {
    let said = world.run(args, "");
    assert_eq!((said.stderr(), said.exit), ("", 0), "{said}");
    let ago = |line: &str| match (line.find("Z ("), line.rfind(')')) {
        (Some(from), Some(to)) if line.contains(" d ") => format!("{}{}", &line[..from + 1], &line[to + 1..]),
        (_, _) => line.to_owned(),
    };
    said.stdout().lines().map(ago).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_call_is_shown_with_its_life_its_attempts_and_what_was_said() {
    insta::assert_snapshot!(page(&recovered(), &["show", "2"]), @r#"
    #2  Bash  curl https://api.example
      state      failed: exited 7
      asked      2026-01-21 15:30:26Z, took 250 ms
      session    s1 (main)
      call id    toolu_a2
      problem    e1:hw5oz2b6dzoo5n4hnwqv
      recovered  2026-01-21 15:30:36Z, 9.8 s later

    Life
      2026-01-21 15:30:26Z  pending
      2026-01-21 15:30:26Z  executing
      2026-01-21 15:30:26Z  failed            curl: (7) Failed to connect to api.example port 443: Connection refused

    Attempts at the same call
         #1  2026-01-21 15:30:16Z  1  failed     network  100 ms
      →  #2  2026-01-21 15:30:26Z  2  failed     network  250 ms
         #3  2026-01-21 15:30:36Z  3  completed  -        100 ms

    Diagnosis
      network: the network or the other side could not be reached
      > curl: (7) Failed to connect to api.example port 443: Connection refused
      retry      yes, after 3 s
      next       Wait and repeat the same call; if it fails again, check the host name, the proxy and whether this machine has a network at all.
      known by   network.not-reached, 81 %
      repeat     the session had met this failure of the same intent and not got over it

    Input
      │ {"command":"curl https://api.example"}

    Output
      │ curl: (7) Failed to connect to api.example port 443: Connection refused

    Timeline
      2026-01-21 15:30:26Z  ▶ start     curl https://api.example (attempt 2)
      2026-01-21 15:30:26Z  ✗ failed    curl https://api.example: network: curl: (7) Failed to connect to api.example port 443: Connection refused
      2026-01-21 15:30:26Z  ✗ error     warn: network: curl: (7) Failed to connect to api.example port 443: Connection refused
      2026-01-21 15:30:26Z  ✗ end       failed in 250 ms
    "#);
}

#[test]
fn a_call_is_shown_in_chinese() {
    let page = page(&recovered(), &["show", "2", "--lang", "zh"]);
    for words in ["状态", "诊断", "同一调用的各次尝试", "时间线", "，9.8 s 之后"] {
        assert!(page.contains(words), "{words} is not in\n{page}");
    }
}

#[test]
fn a_call_may_be_named_in_several_ways() {
    let world = recovered();
    let number = |what: &str| world.run(&["show", "--json", what], "").json()["call"].clone();
    for (what, id) in [("1", 1), ("#1", 1), ("toolu_a2", 2), ("toolu_b", 3), (" 3 ", 3)] {
        assert_eq!(number(what), id, "{what}");
    }
}

#[test]
fn what_is_not_there_or_not_clear_is_refused() {
    let world = recovered();
    let check = |what: &str, exit, words: &[&str]| world.run(&["show", what], "").complains(exit, words);
    check(
        "toolu_a",
        2,
        &["toolu_a may mean one of several:", "#1  toolu_a1  s1", "#2  toolu_a2  s1", "hint: "],
    );
    for what in ["e1:", "e1:aaa"] {
        check(what, 2, &["is too short for the name of a problem", "hint: write 4 characters after e1:"]);
    }
    for what in ["4", "#0", "toolu_c", "e1:aaaaaaaa", "aaa", "", "99999999999999999999"] {
        check(what, 1, &["no call and no problem is called", "hint: `unstuck log` shows calls"]);
    }
}

#[test]
fn a_call_as_json_holds_all_that_is_known() {
    let shown = recovered();
    let shown = shown.run(&["show", "--json", "2"], "").json();
    let states: Vec<&Value> = shown["life"].as_array().unwrap().iter().map(|step| &step["state"]).collect();
    assert_eq!(states, ["pending", "executing", "failed"]);
    let attempts: Vec<_> =
        shown["attempts"].as_array().unwrap().iter().map(|call| (&call["call"], &call["attempt"])).collect();
    assert_eq!(json!(attempts), json!([[1, 1], [2, 2], [3, 3]]));
    assert_eq!(
        (&shown["type"], &shown["kind"], &shown["state"]),
        (&json!("call"), &json!("network"), &json!("failed"))
    );
    assert_eq!(shown["verdict"]["kind"], "network");
    assert_eq!(shown["input"], json!({ "command": "curl https://api.example" }));
    assert_eq!(shown["asked_at"], "2026-01-21T15:30:26.000Z");
    assert_eq!(shown["recovered_at_ms"], MORNING + 20_100);
    let events = shown["events"].as_array().unwrap();
    assert!(events.iter().all(|event| event["call"] == 2), "{events:?}");
    assert_eq!(events[0]["event"], "tool:start");
}

#[test]
fn a_call_that_still_runs_can_be_shown() {
    let world = World::empty();
    hook(
        &world,
        r#"{"event":"before","session":"s","call_id":"c","tool":"Read","input":{"file_path":"/a"}}"#,
    );
    let page = page(&world, &["show", "c"]);
    assert!(page.starts_with("#1  Read  "), "{page}");
    assert!(page.contains("state      executing\n"), "{page}");
}

#[test]
fn a_problem_is_shown_with_where_it_was_met_and_what_helps() {
    let world = World::empty();
    work(&world, &[Work { session: "one", ..MISSING }, Work { session: "two", ..MISSING }]);
    let cause = world.run(&["problems", "--json"], "").json()["cause"].as_str().unwrap().to_owned();
    for what in [&*cause, &cause[..8], &cause[3..7]] {
        let shown = world.run(&["show", what], "");
        for words in [
            &*format!("{cause}  command_not_found: "),
            "shown by   bash: frob: command not found\n",
            "state      new\n",
            "count      2\n",
            "tools      Bash\n",
            "·············█  0 0 0 0 0 0 0 0 0 0 0 0 0 2\n",
            "What helps\n",
            "Sessions (2)\n",
            "#2",
        ] {
            assert!(shown.stdout().contains(words), "{words} is not in\n{shown}");
        }
    }
    let shown = world.run(&["show", "--json", &cause], "").json();
    assert_eq!(
        (&shown["type"], &shown["count"], &shown["state"]),
        (&json!("problem"), &json!(2), &json!("new"))
    );
    let sessions: Vec<_> = shown["sessions"].as_array().unwrap().iter().map(|it| &it["session"]).collect();
    assert_eq!(json!(sessions), json!(["two", "one"]));
    assert_eq!(shown["calls"].as_array().unwrap().len(), 2);
    assert!(!shown["remedies"].as_array().unwrap().is_empty());
}
