//! The plugin for opencode, run by a real JavaScript engine against a program that answers as it is told.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use crate::world::World;

const PLUGIN: &str = "config/opencode/plugins/unstuck.js";

/// Loads the plugin and walks it through the steps, each a hook with its two arguments; prints what each threw and what
/// became of its second argument.
const DRIVER: &str = r#"
import { readFileSync } from "node:fs"
const { Unstuck } = await import(process.argv[2])
const hooks = await Unstuck({ directory: "/work" })
const seen = []
for (const [name, input, output] of JSON.parse(readFileSync(process.argv[3], "utf8"))) {
  let threw = null
  try { await (name === "event" ? hooks.event({ event: input }) : hooks[name](input, output)) } catch (error) { threw = error.message }
  seen.push({ threw, output })
}
console.log(JSON.stringify(seen))
"#;

/// A machine with the plugin on it, which calls this shell script. The script finds the payload in $payload.
fn with_plugin(script: &str) -> World {
    let script =
        format!("#!/bin/sh\npayload=$(cat)\nprintf '%s\\n' \"$payload\" >> \"${{0%/*}}/asked\"\n{script}\n");
    let world = World::empty().with("fake/unstuck", script).with("driver.mjs", DRIVER);
    fs::set_permissions(world.path("fake/unstuck"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(world.installs(&["install", "opencode"]).exit, 0);
    let plugin = world.text(PLUGIN);
    let fake = world.path("fake/unstuck").display().to_string();
    assert!(plugin.contains(env!("CARGO_BIN_EXE_unstuck")) && plugin.contains(":30000"), "{plugin}");
    let plugin = plugin
        .replace(env!("CARGO_BIN_EXE_unstuck"), &fake)
        .replace(":5000", ":400")
        .replace(":30000", ":400");
    world.with("plugin.mjs", plugin)
}

/// What each step threw and changed, and what the program was asked; nothing where there is no engine to run it.
fn walk(world: &World, steps: &Value) -> Option<(Vec<Value>, Vec<Value>)> {
    Command::new("node").arg("--version").output().ok()?;
    fs::write(world.path("steps.json"), steps.to_string()).unwrap();
    let files = ["driver.mjs", "plugin.mjs", "steps.json"].map(|file| world.path(file));
    let ran = Command::new("node").args(files).output().unwrap();
    assert!(ran.status.success() && ran.stderr.is_empty(), "{}", String::from_utf8_lossy(&ran.stderr));
    let seen: Vec<Value> = serde_json::from_slice(&ran.stdout).unwrap();
    let asked = fs::read_to_string(world.path("fake/asked")).unwrap_or_default();
    Some((seen, asked.lines().map(|line| serde_json::from_str(line).unwrap()).collect()))
}

fn before(id: &str) -> Value {
    let call = json!({"tool": "bash", "sessionID": "s", "callID": id});
    json!(["tool.execute.before", call, {"args": {"command": "npm ci", "timeout": 5}}])
}

fn after(output: Value) -> Value {
    let call = json!({"tool": "bash", "sessionID": "s", "callID": "c", "args": {"command": "npm ci"}});
    json!(["tool.execute.after", call, output])
}

fn failed_part(id: &str, at: u64) -> Value {
    let state =
        json!({"status": "error", "input": {"x": 1}, "error": "boom", "time": {"start": at, "end": at}});
    json!({"type": "tool", "tool": "read", "sessionID": "s", "callID": id, "state": state})
}

/// After any test has run, and before anything is forgotten.
const LATER: u64 = 4_000_000_000_000;

#[test]
fn a_refusal_keeps_the_call_from_running_and_is_not_told_as_a_failure() {
    let world = with_plugin(r#"echo '{"deny": "it failed twice"}'"#);
    let failed = json!(["event", {"type": "message.part.updated", "properties": {"part": failed_part("c1", LATER)}}, null]);
    let Some((seen, asked)) = walk(&world, &json!([before("c1"), failed])) else { return };
    assert_eq!(seen[0]["threw"], "it failed twice");
    let expected = json!({
        "hook_event_name": "tool.execute.before", "sessionID": "s", "cwd": "/work",
        "callID": "c1", "tool": "bash", "args": {"command": "npm ci", "timeout": 5},
    });
    assert_eq!(asked, [expected]);
}

#[test]
fn arguments_are_replaced_as_a_whole() {
    let world = with_plugin(r#"echo '{"args": {"command": "npm install"}}'"#);
    let Some((seen, _)) = walk(&world, &json!([before("c1")])) else { return };
    assert_eq!(seen[0], json!({"threw": null, "output": {"args": {"command": "npm install"}}}));
}

#[test]
fn what_is_said_stands_below_the_result() {
    let world = with_plugin(r#"echo '{"say": "a hint"}'"#);
    let built_in = json!({"title": "t", "output": "failed\n", "metadata": {"exit": 3}});
    let of_server = json!({"content": [{"type": "text", "text": "fine"}]});
    let Some((seen, asked)) = walk(&world, &json!([after(built_in), after(of_server)])) else { return };
    assert_eq!(seen[0]["output"]["output"], "failed\n\na hint");
    assert_eq!(
        seen[1]["output"]["content"],
        json!([{"type": "text", "text": "fine"}, {"type": "text", "text": "a hint"}])
    );
    assert_eq!((&asked[0]["output"], &asked[0]["metadata"]), (&json!("failed\n"), &json!({"exit": 3})));
    assert_eq!(asked[1]["output"], "fine");
}

#[test]
fn an_error_is_asked_about_once_and_its_hint_is_said_with_every_request() {
    let world = with_plugin(r#"echo '{"say": "a hint"}'"#);
    let event = json!(["event", {"type": "message.part.updated", "properties": {"part": failed_part("c1", LATER)}}, null]);
    let messages = || json!({"messages": [{"info": {}, "parts": [failed_part("c1", LATER), failed_part("old", 1), {"type": "text"}]}]});
    let request = json!(["experimental.chat.messages.transform", {}, messages()]);
    let Some((seen, asked)) = walk(&world, &json!([event, request, request])) else { return };
    for step in &seen[1..] {
        let parts = &step["output"]["messages"][0]["parts"];
        assert_eq!(parts[0]["state"]["error"], "boom\n\na hint");
        assert_eq!(parts[1]["state"]["error"], "boom", "what an earlier run was told is not told again");
    }
    assert_eq!(asked.len(), 1, "{asked:?}");
    let expected = ["message.part.updated", "c1", "read", "boom"].map(Value::from);
    assert_eq!(["hook_event_name", "callID", "tool", "error"].map(|key| asked[0][key].clone()), expected);
}

#[test]
fn only_people_count_as_people() {
    let world = with_plugin(":");
    let child = json!({"type": "session.created", "properties": {"info": {"id": "sub", "parentID": "s"}}});
    let steps = json!([
        ["event", child, null],
        ["chat.message", {"sessionID": "sub"}, {}],
        ["chat.message", {"sessionID": "s"}, {}],
        ["tool.execute.after", {"tool": "bash", "sessionID": "sub", "callID": "c", "args": {}}, {"output": "x"}],
        ["event", {"type": "session.deleted", "properties": {"info": {"id": "s"}}}, null],
    ]);
    let Some((_, asked)) = walk(&world, &steps) else { return };
    let told: Vec<(&str, &str)> = asked
        .iter()
        .map(|asked| (asked["hook_event_name"].as_str().unwrap(), asked["sessionID"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("chat.message", "s"), ("tool.execute.after", "sub"), ("session.deleted", "s")]);
    assert_eq!(asked[1]["parentID"], "s");
}

#[test]
fn whatever_goes_wrong_with_us_opencode_does_not_notice() {
    let scripts = [
        "exit 3",
        "echo not json",
        "echo '[1]'",
        "echo 'null'",
        r#"echo '{"deny": 5, "say": {}, "args": []}'"#,
        "exec sleep 30",
        "exec head -c 3000000 /dev/zero",
        "kill -9 $$",
        "exec 0<&- 1>&-; exit 0",
    ];
    let unharmed = json!([
        {"threw": null, "output": {"args": {"command": "npm ci", "timeout": 5}}},
        {"threw": null, "output": {"output": "x"}},
    ]);
    std::thread::scope(|scope| {
        for script in scripts {
            let unharmed = &unharmed;
            scope.spawn(move || {
                let world = with_plugin(script);
                let steps = json!([before("c1"), after(json!({"output": "x"}))]);
                if let Some((seen, _)) = walk(&world, &steps) {
                    assert_eq!(json!(seen), *unharmed, "{script}");
                }
            });
        }
    });
    let world = with_plugin("");
    fs::remove_file(world.path("fake/unstuck")).unwrap();
    if let Some((seen, _)) = walk(&world, &json!([before("c1"), after(json!({"output": "x"}))])) {
        assert_eq!(json!(seen), unharmed);
    }
}
