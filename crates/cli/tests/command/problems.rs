//! `unstuck problems`: failures that come again, grouped by cause.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::agent::{FINE, MISSING, Work, work};
use crate::world::World;

const REFUSED: Work<'_> = Work {
    command: "curl https://api.example",
    exit: 7,
    stderr: "curl: (7) Failed to connect: Connection refused",
    ..FINE
};

/// Kind, state and count of what is listed.
#[track_caller]
fn listed(world: &World, args: &[&str]) -> Value {
    let all = world.run(&[&["problems", "--json"], args].concat(), "").json_lines();
    all.iter().map(|it| json!([it["kind"], it["state"], it["count"]])).collect()
}

/// Three sessions that met one cause, and one that met another.
fn world() -> World {
    let world = World::empty();
    for session in ["one", "two", "three"] {
        work(&world, &[Work { session, ..MISSING }]);
    }
    work(&world, &[REFUSED]);
    world
}

/// The fingerprint of the only problem of a kind.
fn cause(world: &World, kind: &str) -> String {
    let problem = world.run(&["problems", "--all", "--json", "--kind", kind], "").json();
    problem["cause"].as_str().unwrap().to_owned()
}

#[test]
fn problems_are_grouped_by_cause_over_all_sessions() {
    let world = world();
    assert_eq!(listed(&world, &[]), json!([["command_not_found", "new", 3], ["network", "new", 1]]));
    let said = world.run(&["problems"], "");
    let lines: Vec<&str> = said.stdout().lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines[0].starts_with("problem      state  count  last"), "{said}");
    assert!(
        lines[1].contains("·············█  command_not_found  Bash   bash: frob: command not found"),
        "{said}"
    );
    assert!(world.run(&["problems", "--lang", "zh"], "").stdout().contains("新出现"));
}

#[test]
fn a_problem_as_json_has_the_numbers_of_fourteen_days() {
    let world = world();
    let problem = &world.run(&["problems", "--json"], "").json_lines()[0];
    assert_eq!(problem["trend"], json!([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3]));
    assert_eq!(problem["tools"], json!(["Bash"]));
    assert_eq!(problem["resolved_at"], Value::Null);
}

#[test]
fn what_is_resolved_is_out_of_sight_until_it_comes_back() {
    let world = world();
    let network = cause(&world, "network");
    let said = world.run(&["problems", "resolve", &network[..9]], "");
    assert_eq!(
        said.stdout(),
        format!("{network} is resolved: curl: (7) Failed to connect: Connection refused\n")
    );
    assert_eq!(listed(&world, &[]), json!([["command_not_found", "new", 3]]));
    let all = json!([["command_not_found", "new", 3], ["network", "resolved", 1]]);
    assert_eq!(listed(&world, &["--all"]), all);
    assert_eq!(listed(&world, &["--state", "resolved"]), json!([["network", "resolved", 1]]));
    work(&world, &[Work { session: "four", ..REFUSED }]);
    let back = json!([["network", "regressed", 2], ["command_not_found", "new", 3]]);
    assert_eq!(listed(&world, &[]), back);
    let log = world.run(&["log", "--channel", "monitor"], "");
    assert!(log.stdout().contains("⟲ regressed network ("), "{log}");
    world.run(&["problems", "resolve", &network], "");
    assert_eq!(listed(&world, &["--state", "regressed"]), json!([]));
}

#[test]
fn a_problem_can_be_opened_again() {
    let world = world();
    let network = cause(&world, "network");
    world.run(&["problems", "resolve", &network], "");
    let said = world.run(&["problems", "reopen", &network], "");
    assert!(said.stdout().starts_with(&format!("{network} is new: ")), "{said}");
    assert_eq!(listed(&world, &["--state", "new"]).as_array().unwrap().len(), 2);
}

#[test]
fn what_was_resolved_or_opened_again_is_told_as_json_too() {
    let world = world();
    let network = cause(&world, "network");
    let said = |word: &str| world.run(&["problems", word, &network[..9], "--json"], "").json();
    let resolved = said("resolve");
    assert_eq!((&resolved["cause"], &resolved["state"]), (&json!(network), &json!("resolved")));
    assert!(resolved["resolved_at_ms"].is_u64(), "{resolved}");
    let open = said("reopen");
    assert_eq!((&open["state"], &open["resolved_at"]), (&json!("new"), &Value::Null));
    assert_eq!(open, world.run(&["problems", "--json", "--kind", "network"], "").json());
}

#[test]
fn the_settings_say_what_is_new_and_what_is_resolved() {
    let world = World::empty();
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    let hour_ago = hour_ago.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    work(&world, &[Work { at: u64::try_from(hour_ago).ok(), ..REFUSED }]);
    let state = |set: &str| listed(&world, &["--all", "--set", set])[0][1].clone();
    assert_eq!(state("problems.new-for=24h"), "new");
    assert_eq!(state("problems.new-for=30m"), "known");
    assert_eq!(state("problems.resolved-after=30d"), "new");
}

#[test]
fn wrong_names_are_refused_with_a_hint() {
    let world = world();
    let check = |args: &[&str], exit, words: &[&str]| world.run(args, "").complains(exit, words);
    check(&["problems", "--kind", "netwrk"], 2, &["no kind is called netwrk", "did you mean network?"]);
    check(&["problems", "--state", "sad"], 2, &["regressed, new, known, resolved"]);
    check(
        &["problems", "resolve", "e1:zzzzzzzz"],
        1,
        &["no problem is called ⟦e1:zzzzzzzz⟧", "unstuck problems --all"],
    );
    for short in ["e1:", "e1:3d", "3d"] {
        let words =
            [&*format!("{short} is too short for the name of a problem"), "write 4 characters after e1:"];
        check(&["problems", "resolve", short], 2, &words);
    }
    check(&["problems", "--kind", "zzz"], 2, &["no kind is called zzz", "hint: there are ", "rate_limited"]);
    check(&["problems", "--state", "regressed"], 0, &["no such problems"]);
}

#[test]
fn to_resolve_something_makes_no_store() {
    let world = World::empty();
    world.run(&["problems", "resolve", "e1:abcdefgh"], "").complains(1, &["nothing is recorded"]);
    assert!(!world.path(".local/state/unstuck/timeline.db").exists());
}
