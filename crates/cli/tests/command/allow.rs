//! `unstuck allow`: a person has a way out of every refusal, and an agent has none.

use serde_json::Value;

use crate::agent::{FINE, MISSING, Work, hook};
use crate::world::World;

/// Repeats a call that cannot work until it is refused, and returns the answer.
fn refused(world: &World) -> Value {
    hook(world, &Work { key: "fine", ..FINE }.lines());
    for number in 0..12 {
        let lines = Work { key: &format!("m{number}"), ..MISSING }.lines();
        let before = lines.lines().next().unwrap().to_owned();
        let answer = hook(world, &before).json();
        if answer["decision"] == "deny" {
            return answer;
        }
        hook(world, lines.lines().nth(1).unwrap());
    }
    panic!("it is never refused");
}

/// The key in the way out that every refusal names.
fn key(answer: &Value) -> String {
    let say = answer["say"].as_str().unwrap();
    let (_, rest) = say.split_once("`unstuck allow ").unwrap_or_else(|| panic!("no way out in {say}"));
    rest.split_once('`').unwrap().0.to_owned()
}

/// What is said to the same call now.
fn again(world: &World, id: &str) -> Value {
    let lines = Work { key: id, ..MISSING }.lines();
    hook(world, lines.lines().next().unwrap()).json()["decision"].clone()
}

#[test]
fn a_person_lets_a_refused_call_run_and_takes_it_back() {
    let world = World::empty();
    let key = key(&refused(&world));
    assert_eq!(again(&world, "a1"), "deny");
    let said = world.run(&["allow", &key, "--yes", "--for", "2h", "--json"], "").json();
    assert_eq!((&said["key"], &said["call"]), (&key.as_str().into(), &"frob ci".into()), "{said}");
    assert_eq!(again(&world, "a2"), "allow");
    let listed = world.run(&["allow", "--list", "--json"], "").json();
    assert_eq!(listed, said);
    let shown = world.run(&["allow"], "");
    assert!(
        shown.stdout().starts_with(&format!("{key}  until 20")) && shown.stdout().ends_with("  frob ci\n"),
        "{shown}"
    );
    let gone = world.run(&["allow", "--revoke", &key], "");
    assert_eq!((gone.stdout(), gone.exit), (format!("{key} is no longer allowed\n").as_str(), 0));
    let gone = world.run(&["allow", "--revoke", &key, "--lang", "zh"], "");
    assert_eq!((gone.stdout(), gone.exit), (format!("{key} 并未被允许\n").as_str(), 1));
    assert_eq!(world.run(&["allow"], "").stdout(), "nothing is allowed beyond the rules\n");
}

#[test]
fn an_agent_cannot_allow_itself_anything() {
    let world = World::empty();
    let key = key(&refused(&world));
    world.run(&["allow", &key], "").complains(2, &["an agent must not free itself"]);
    assert_eq!(again(&world, "a1"), "deny");
    let Some(said) = world.at_terminal(&["allow", &key]) else { return };
    assert!(said.stdout().starts_with("allowed until 20") && said.stdout().contains(": frob ci"), "{said}");
    assert_eq!(again(&world, "a2"), "allow");
}

#[test]
fn what_was_never_refused_cannot_be_allowed() {
    let world = World::with_failures();
    for key in ["deadbeef", "", "../x", "*", "%"] {
        let said = world.run(&["allow", "--yes", "--", key], "");
        said.complains(1, &["no refused call is called", "every refusal ends with its key"]);
    }
    world
        .run(&["--lang", "zh", "allow", "--yes", "deadbeef"], "")
        .complains(1, &["没有名为 deadbeef 的被拒绝的调用"]);
    assert_eq!(world.run(&["allow", "--json"], "").stdout(), "");
    World::empty().run(&["allow", "--yes", "deadbeef"], "").complains(1, &["nothing is recorded in"]);
    World::empty().run(&["allow", "--revoke", "deadbeef"], "").complains(1, &["nothing is recorded in"]);
    assert_eq!(World::empty().run(&["allow", "--yes", "deadbeef", "--for", "8d"], "").exit, 2);
}

/// The decisions on a call that is repeated although it cannot work.
fn decisions(world: &World, count: usize) -> Vec<String> {
    hook(world, &Work { key: "fine", ..FINE }.lines());
    let decide = |number: usize| {
        let lines = Work { key: &format!("m{number}"), ..MISSING }.lines();
        let (before, after) = lines.trim_end().split_once('\n').unwrap();
        let answer = hook(world, before).json();
        hook(world, after);
        answer["decision"].as_str().unwrap().to_owned()
    };
    (0..count).map(decide).collect()
}

#[test]
fn a_tool_goes_only_as_far_as_its_own_mode_lets_it() {
    let settings = |text: &str| World::empty().with("config/unstuck/config.toml", text);
    let is_refused = |world: &World| decisions(world, 4).iter().any(|decision| decision == "deny");
    assert!(is_refused(&settings("")));
    assert!(!is_refused(&settings("[ladder]\ntools = \"Bash=advise\"\n")));
    assert!(!is_refused(&settings("[ladder]\ntools = \"B*=shadow\"\n")));
    assert!(is_refused(&settings("[ladder]\nmode = \"shadow\"\ntools = \"bash=enforce\"\n")));
    // A project makes it stricter, and cannot make it laxer.
    let project = |tools: &str| format!("ladder.tools = \"{tools}\"\n");
    let lax = settings("[ladder]\nmode = \"shadow\"\n").with(".unstuck.toml", project("Bash=enforce"));
    assert!(is_refused(&lax));
    assert!(is_refused(&settings("").with(".unstuck.toml", project("Bash=shadow"))));
}
