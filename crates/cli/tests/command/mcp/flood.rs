//! A server that says very much takes nobody's place in the record.

use serde_json::json;

use super::client::Client;
use crate::world::World;

#[test]
fn a_changed_list_is_told_of_also_among_very_much_else() {
    let world = World::empty();
    let mut client = Client::ready(&world, &[], &[]);
    assert_eq!(client.works("flood", json!({ "megabytes": 50, "lines": 20_000 })), "flooded");
    client.works("grow", json!({}));
    client.ask("tools/list", json!({}));
    client.works("echo", json!({ "text": "a" }));
    super::client::wait_for("nobody is warned", || client.remarks().contains("new: grown_1"));
    assert_eq!(client.end().0, 0);
    let log = world.run(&["log", "--last", "200"], "");
    assert!(log.stdout().contains("grown_1"), "{log}");
    // What was said is told of, and not twenty thousand times.
    let lines = world.run(&["log", "--json"], "").json_lines().len();
    assert!((5..2000).contains(&lines), "{lines}");
}
