//! `unstuck stats`: what failed, what became of it, what repeats cost and what refusals saved.

use serde_json::{Value, json};

use crate::agent::{FINE, MISSING, MORNING, Work, work};
use crate::world::{World, repository};

const REFUSED: Work<'_> = Work {
    command: "curl https://api.example",
    exit: 7,
    stderr: "curl: (7) Failed to connect: Connection refused",
    ..FINE
};

/// One call that goes well, one that recovers on its third attempt, and one that is refused when it comes again.
fn world() -> World {
    let world = World::empty();
    let at = |seconds: u64| Some(MORNING + 1000 * seconds);
    work(
        &world,
        &[
            Work { at: at(0), ..FINE },
            Work { at: at(10), took_ms: 300, ..REFUSED },
            Work { at: at(20), took_ms: 500, ..REFUSED },
            Work { at: at(30), exit: 0, stderr: "", ..REFUSED },
            Work { session: "s2", at: at(40), took_ms: 700, ..MISSING },
            Work { session: "s2", at: at(50), ..MISSING },
        ],
    );
    world
}

#[track_caller]
fn fields(stats: &Value, names: &[&str]) -> Value {
    names.iter().map(|name| stats[*name].clone()).collect()
}

#[test]
fn the_report_tells_failures_recovery_yield_waste_and_savings() {
    insta::assert_snapshot!(world().run(&["stats"], ""), @r#"
    --- stdout
    calls: 6, went well: 2, failed: 3 (50 %), denied: 1, sealed: 0

    Failures by errorType
            3  runtime

    Failures by kind
            2  network            the network or the other side could not be reached
            1  command_not_found  the program does not exist here

    Recovered: 2 of 3 (67 %), half of them within 9.6 s

    What each attempt at the same call was worth
      attempt  tries  went well   rate
            1      3          1   33 %
            2      1          0    0 %
            3      1          1  100 %
            4      0          0      -
            5      0          0      -
           6+      0          0      -

    Wasted: 500 ms (failures that the session had met and not got over: 1)
    Saved: about 700 ms (calls refused before they ran: 1, without an estimate: 0, false alarms: 0)
    --- exit 0
    "#);
}

#[test]
fn the_numbers_are_exact() {
    let world = world();
    let stats = world.run(&["stats", "--json"], "").json();
    let check = |names: &[&str], expected: Value| assert_eq!(fields(&stats, names), expected, "{names:?}");
    check(&["calls", "completed", "failed", "denied", "sealed"], json!([6, 2, 3, 1, 0]));
    check(&["kinds"], json!([{ "command_not_found": 1, "network": 2 }]));
    check(&["recovered", "recovery_rate", "recovery_median_ms"], json!([2, 0.6667, 9600]));
    check(&["repeats", "repeats_ms"], json!([1, 500]));
    check(&["refused", "saved_ms", "refused_without_estimate"], json!([1, 700, 0]));
    check(&["let_through"], json!([0]));
    let attempts = stats["attempts"].as_array().unwrap();
    let yields: Value = attempts.iter().map(|it| fields(it, &["attempt", "tries", "wins", "rate"])).collect();
    let expected = json!([
        ["1", 3, 1, 0.3333],
        ["2", 1, 0, 0.0],
        ["3", 1, 1, 1.0],
        ["4", 0, 0, null],
        ["5", 0, 0, null],
        ["6+", 0, 0, null]
    ]);
    assert_eq!(yields, expected);
}

#[test]
fn groups_are_lines_of_their_own() {
    let world = world();
    let check = |by: &str, expected: Value| {
        let groups = world.run(&["stats", "--by", by, "--json"], "").json_lines();
        let shown: Value = groups.iter().map(|group| fields(group, &["key", "calls", "failed"])).collect();
        assert_eq!(shown, expected, "{by}");
    };
    check("session", json!([["s1", 4, 2], ["s2", 2, 1]]));
    check("kind", json!([["network", 2, 2], ["command_not_found", 1, 1]]));
    check("tool", json!([["Bash", 6, 3]]));
    check("agent", json!([["main", 6, 3]]));
    check("day", json!([["2026-01-21", 6, 3]]));
    check("server", json!([]));
    for (tool, failed) in [("mcp__files__read", true), ("mcp__files__list", false), ("mcp_web_fetch", false)]
    {
        let payload = json!({ "event": "after", "session": "s9", "call_id": tool, "tool": tool, "input": {},
            "ok": !failed, "output": if failed { "Error: no such file or directory" } else { "fine" } });
        assert_eq!(crate::agent::hook(&world, &payload.to_string()).json()["kept"], "recorded");
    }
    check("server", json!([["files", 2, 1], ["web", 1, 0]]));
    assert!(world.run(&["stats", "--by", "server", "--lang", "zh"], "").stdout().starts_with("服务器"));
    let world = self::world();
    insta::assert_snapshot!(world.run(&["stats", "--by", "session"], ""), @r#"
    --- stdout
    session  calls  failed  share  recovered  median  repeats  wasted  refused   saved
    s1           4       2   50 %      100 %   9.6 s        1  500 ms        0    0 ms
    s2           2       1   50 %        0 %       -        0    0 ms        1  700 ms
    --- exit 0
    "#);
    assert!(world.run(&["stats", "--by", "kind", "--lang", "zh"], "").stdout().starts_with("类别"));
}

#[test]
fn a_scope_narrows_what_is_counted() {
    let world = world();
    work(&world, &[Work { session: "s3", ..FINE }]);
    let calls = |args: &[&str]| world.run(&[&["stats", "--json"], args].concat(), "").json()["calls"].clone();
    assert_eq!(calls(&[]), 7);
    assert_eq!(calls(&["--since", "1h"]), 1);
    assert_eq!(calls(&["--since", "2026-01-21"]), 7);
    assert_eq!(calls(&["--since", "2026-01-21T15:30:56Z"]), 3);
    assert_eq!(calls(&["--since", "2026-01-22"]), 1);
    assert_eq!(calls(&["--session", "s2"]), 2);
    assert_eq!(calls(&["--session", "s2", "--since", "1h"]), 0);
    let nothing = world.run(&["stats", "--session", "s2", "--since", "1h"], "");
    nothing.complains(0, &["no calls in this scope"]);
}

#[test]
fn times_that_nobody_told_are_unknown_and_not_nothing() {
    let world = World::empty();
    let at = |seconds: u64| Some(MORNING + 1000 * seconds);
    let untimed = |work: Work<'_>| {
        let halves: Vec<String> = work
            .lines()
            .lines()
            .map(|half| {
                let mut half: Value = serde_json::from_str(half).unwrap();
                half.as_object_mut().unwrap().remove("duration_ms");
                half["at"] = json!(MORNING);
                half.to_string()
            })
            .collect();
        halves.join("\n")
    };
    let calls = [
        Work { key: "c1", at: at(0), ..REFUSED },
        Work { key: "c2", at: at(0), ..REFUSED },
        Work { key: "c3", at: at(0), exit: 0, stderr: "", ..REFUSED },
    ];
    crate::agent::hook(&world, &calls.map(untimed).join("\n"));
    let stats = world.run(&["stats", "--json"], "").json();
    let shown = fields(&stats, &["repeats", "repeats_ms", "recovered", "recovery_median_ms"]);
    assert_eq!(shown, json!([1, null, 2, null]));
    let said = world.run(&["stats"], "");
    assert!(said.stdout().contains("Recovered: 2 of 2 (100 %)\n"), "{said}");
    assert!(said.stdout().contains("\nWasted: unknown (failures"), "{said}");
    let said = world.run(&["stats", "--by", "tool"], "");
    assert!(said.stdout().contains("  unknown        1  unknown  "), "{said}");
    assert!(world.run(&["stats", "--lang", "zh"], "").stdout().contains("\n浪费：未知（"));
    // As soon as one has a time, the others are counted beside it.
    let late = [
        untimed(Work { session: "s9", key: "d1", ..REFUSED }),
        untimed(Work { session: "s9", key: "d2", ..REFUSED }),
        Work { session: "s9", key: "d3", at: at(9), took_ms: 400, ..REFUSED }.lines(),
    ];
    crate::agent::hook(&world, &late.join("\n"));
    let stats = world.run(&["stats", "--json", "--session", "s9"], "").json();
    let shown = fields(&stats, &["repeats", "repeats_ms", "repeats_without_time"]);
    assert_eq!(shown, json!([2, 400, 1]));
    let said = world.run(&["stats", "--session", "s9"], "");
    assert!(said.stdout().contains("\nWasted: 400 ms (failures that"), "{said}");
    assert!(said.stdout().contains("not got over: 2, without a time: 1)\n"), "{said}");
}

#[test]
fn what_refusals_saved_is_unknown_where_no_failure_tells_it() {
    let world = World::empty();
    // A minute before midnight, and a minute after it.
    let late = MORNING + 30_524_000;
    work(&world, &[Work { at: Some(late), ..MISSING }]);
    work(&world, &[Work { at: Some(late + 120_000), ..MISSING }]);
    let day = ["stats", "--since", "2026-01-22"];
    let stats = world.run(&[&day[..], &["--json"]].concat(), "").json();
    let shown = fields(&stats, &["refused", "saved_ms", "refused_without_estimate"]);
    assert_eq!(shown, json!([1, null, 1]));
    let said = world.run(&day, "");
    assert!(said.stdout().contains("\nSaved: unknown (calls refused"), "{said}");
}

#[test]
fn wrong_scopes_are_refused_with_a_hint() {
    let world = world();
    let check = |args: &[&str], exit, words: &[&str]| world.run(args, "").complains(exit, words);
    check(&["stats", "--since", "tuesday"], 2, &["30d (so long ago), 2026-11-15 or 2026-11-15T11:53:02Z"]);
    check(&["stats", "--by", "mood"], 2, &["kind, tool, agent, day, session, server"]);
    check(&["stats", "--session", "zzz"], 1, &["no session is called zzz", "unstuck stats --by session"]);
}

#[test]
fn recorded_runs_are_counted_call_by_call() {
    let world = World::empty();
    let calls = repository("traces/scenarios/calls.jsonl");
    let recorded = std::fs::read_to_string(&calls).unwrap().lines().count();
    world.run(&["replay", "--record", calls.to_str().unwrap()], "");
    let all = world.run(&["stats", "--json"], "").json();
    assert_eq!(all["calls"], recorded);
    let ended = ["completed", "failed", "denied", "sealed"].map(|name| all[name].as_u64().unwrap());
    assert_eq!(ended.iter().sum::<u64>(), recorded as u64);
    let tools = world.run(&["stats", "--by", "tool", "--json"], "").json_lines();
    assert_eq!(tools.iter().map(|tool| tool["calls"].as_u64().unwrap()).sum::<u64>(), recorded as u64);
}
