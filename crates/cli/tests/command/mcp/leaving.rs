//! Whoever leaves leaves nobody behind, and nobody is called back for ever.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::client::{Client, wait_for};
use crate::world::World;

#[test]
fn a_server_that_only_goes_home_is_not_called_back_for_ever() {
    // After its first life it goes as soon as it comes.
    let script = r#"echo s >> starts; [ "$(wc -l < starts)" -gt 1 ] && exit 0
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *'"method":"notifications'*) continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":{"capabilities":{}}}\n' "$id"
  case "$line" in *last*) exit 0;; esac
done"#;
    let world = World::empty();
    let mut client = Client::start(&world, &[], &["sh", "-c", script]);
    client.introduce("tester");
    client.ask("last", json!({}));
    let id = client.send("ping", json!({}));
    let answer = client.answer(id);
    assert!(answer["error"]["message"].as_str().is_some_and(|words| words.contains("code 0")), "{answer}");
    let starts = std::fs::read_to_string(world.path("starts")).unwrap().lines().count();
    assert!(starts < 10, "{starts}");
}

/// As clients of the official kits leave: they close our input, ask us to end after two seconds, and kill us after two more.
#[test]
fn a_server_that_hears_nothing_is_gone_when_its_client_is() {
    let script = r#"trap '' TERM; echo $$ > pid
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *tools/call*) echo hears > called; continue;;
    *'"method":"notifications'*) continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":{"capabilities":{}}}\n' "$id"
done
sleep 60"#;
    let world = World::empty();
    let mut client = Client::start(&world, &[], &["sh", "-c", script]);
    client.introduce("tester");
    client.send_call("any", json!({}));
    wait_for("the call does not arrive", || world.path("called").exists());
    let pid = std::fs::read_to_string(world.path("pid")).unwrap();
    let lives = || PathBuf::from(format!("/proc/{}", pid.trim())).exists();
    assert!(lives());
    client.close();
    thread::sleep(Duration::from_secs(2));
    client.signal("TERM");
    // One more second for machines that have much to do.
    thread::sleep(Duration::from_secs(3));
    assert!(!lives(), "we would be killed by now, and it would be left behind");
}
