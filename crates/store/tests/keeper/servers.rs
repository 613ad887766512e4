//! What happens to servers, in the timeline.

use serde_json::{Value, json};
use unstuck_store::{ServerNote, ServerWhat, ToolChanges};
use unstuck_wire::clean::Cleaner;

use super::*;

/// Every event, with its channel and its body.
fn told(cellar: &Cellar) -> Vec<(String, Value)> {
    let database = cellar.database();
    let mut statement = database
        .prepare(
            "SELECT event.channel || ' ' || type || ' ' || name, body
             FROM event JOIN session ON session.id = event.session ORDER BY seq",
        )
        .unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?))).unwrap();
    rows.map(Result::unwrap).map(|(what, body)| (what, serde_json::from_str(&body).unwrap())).collect()
}

#[test]
fn what_happens_to_a_server_stands_in_the_timeline_of_its_session_also_when_it_waited() {
    let cleaner = Cleaner::new(None, []);
    let changes = ToolChanges {
        added: vec![Clean::from("copy")],
        removed: Vec::new(),
        changed: vec![Clean::from("read"), Clean::from("write")],
    };
    let everything = [
        ServerWhat::started(&cleaner, Some(412), "npx files-server"),
        ServerWhat::exited(&cleaner, "it ended with exit code 3", Some(3), b"first\nTypeError: x\n"),
        ServerWhat::Restarted { attempt: 2, waited_ms: 500 },
        ServerWhat::gave_up(&cleaner, "it ended 5 times in a minute", Some(30_000)),
        ServerWhat::Recovered,
        ServerWhat::unresponsive(&cleaner, "tools/list", 10_000),
        ServerWhat::noise(&cleaner, b"Listening on 8080\n", "no JSON"),
        ServerWhat::ToolsChanged(changes),
        ServerWhat::remark(&cleaner, b"warning: old\n"),
    ];
    let expected = [
        ("started", json!({ "pid": 412, "command": "npx files-server" })),
        (
            "exited",
            json!({ "text": "it ended with exit code 3", "code": 3, "stderr": ["first", "TypeError: x"] }),
        ),
        ("restarted", json!({ "attempt": 2, "waited_ms": 500 })),
        ("gave_up", json!({ "why": "it ended 5 times in a minute", "for_ms": 30_000 })),
        ("recovered", json!({})),
        ("unresponsive", json!({ "text": "tools/list", "waited_ms": 10_000 })),
        ("noise", json!({ "beginning": "Listening on 8080", "why": "no JSON" })),
        (
            "tools_changed",
            json!({
                "severity": "warn", "added": ["copy"], "removed": [], "changed": ["read", "write"],
                "counts": { "added": 1, "removed": 0, "changed": 2 },
            }),
        ),
        ("remark", json!({ "lines": ["warning: old"] })),
    ];
    let expected: Vec<(String, Value)> = expected
        .into_iter()
        .map(|(word, mut body)| {
            body["server"] = json!("files");
            (format!("monitor server:{word} s"), body)
        })
        .collect();
    let keep_all = |cellar: &mut Cellar| -> Vec<&'static str> {
        let note = |what: &ServerWhat| ServerNote::new(&cleaner, cellar.who(), "files", what.clone());
        let notes: Vec<Entry> = everything.iter().map(note).map(Entry::Server).collect();
        notes.iter().map(|note| kept(&cellar.keep(note))).collect()
    };
    let mut cellar = Cellar::empty();
    assert_eq!(keep_all(&mut cellar), ["recorded"; 9]);
    assert_eq!(told(&cellar), expected);

    let mut cellar = Cellar::empty();
    cellar.store();
    assert_eq!(cellar.locked(keep_all), ["spooled"; 9]);
    cellar.before("a", "ls");
    assert_eq!(told(&cellar)[..9], expected);
}
