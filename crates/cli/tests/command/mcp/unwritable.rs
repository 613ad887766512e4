//! Where nothing can be written down, calls go on as if it could, and nobody waits for it.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, LIMIT, at, peer, text};
use crate::world::World;

const STATE: &str = ".local/state/unstuck";

/// Calls of every sort through the proxy: each has the answer that it would have with a store.
#[track_caller]
fn all_goes_on(client: &mut Client) {
    client.introduce("tester");
    client.ask("tools/list", json!({}));
    let ids: Vec<u64> =
        (0..150).map(|number| client.send_call("echo", json!({ "text": number.to_string() }))).collect();
    for (number, id) in ids.into_iter().enumerate() {
        assert_eq!(text(&client.answer(id)["result"], 0), number.to_string());
    }
    let failed = client.fails("fail", json!({ "text": "ENOENT: no such file or directory, open '/srv/x'" }));
    assert_eq!(failed["kind"], "path_not_found", "{failed}");
    assert_eq!(client.fails("typed", json!({}))["errorType"], "validation");
    assert_eq!(client.works("rate_limited", json!({ "times": 1, "seconds": 0.1 })), "worked at attempt 2");
    client.fails("crash", json!({}));
    assert_eq!(client.works("echo", json!({ "text": "again" })), "again");
}

/// The same command, after something was done in a shell.
fn by_shell(world: &World, script: &str, state: Option<&str>) -> Command {
    let ours = world.command(&[]);
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(world.path("")).env_clear();
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("UNSTUCK", ours.get_program()).env("PEER", peer());
    if let Some(state) = state {
        command.env("UNSTUCK_STORE_STATE_DIR", world.path(state));
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// It is told of at most once, and says nothing that would be taken for an answer.
#[track_caller]
fn says_little(client: &Client) {
    let remarks = client.remarks();
    let ours = remarks.lines().filter(|line| line.starts_with("unstuck: ")).count();
    assert!(ours <= 1, "{remarks}");
}

#[test]
fn a_store_that_cannot_be_one_harms_no_call() {
    let check = |world: World| {
        let mut client = Client::of_peer(&world, &[], &[]);
        all_goes_on(&mut client);
        says_little(&client);
        assert_eq!(client.end(), (0, vec![]));
    };
    let folder = |path: &str| {
        let world = World::empty();
        fs::create_dir_all(world.path(path)).unwrap();
        world
    };
    // A file where the folder should be, and folders where files should be.
    check(World::empty().with(STATE, ""));
    check(folder(&format!("{STATE}/timeline.db/inner")));
    check(folder(&format!("{STATE}/timeline.db-wal/inner")));
    check(folder(&format!("{STATE}/lock/inner")));
    check(World::empty().with(&format!("{STATE}/spool"), ""));
    // A place where there is nothing and never will be.
    check(World::empty().with("config/unstuck/config.toml", "[store]\nstate-dir = \"/proc/1/no/such\"\n"));
    // What is there is no database.
    check(World::empty().with(&format!("{STATE}/timeline.db"), [0xA5; 100_000]));
}

#[test]
fn where_no_file_may_grow_calls_go_on() {
    let world = World::empty();
    // The server keeps its counters in its head.
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$UNSTUCK\" mcp --name peer -- \"$PEER\"";
    let mut client = Client::by(by_shell(&world, script, None));
    all_goes_on(&mut client);
    super::client::wait_for("nobody is told", || client.remarks().contains("cannot be written down"));
    says_little(&client);
    assert_eq!(client.end(), (0, vec![]));
}

#[test]
fn whoever_may_not_write_there_has_all_answers() {
    let world = World::empty();
    let client = Client::ready(&world, &[], &[]);
    assert_eq!(client.end().0, 0);
    let before = fs::read(world.path(&format!("{STATE}/timeline.db"))).unwrap();
    let mut command = Command::new("setpriv");
    let ours = world.command(&["mcp", "--name", "peer", "--", &peer()]);
    if !fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
        return skipped("only root can become somebody else");
    }
    // The way there is open to everybody; the folder itself is not.
    assert!(Command::new("chmod").args(["755"]).arg(world.path("")).status().unwrap().success());
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(ours.get_program()).args(ours.get_args()).current_dir(world.path("")).env_clear();
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = Client::by(command);
    all_goes_on(&mut client);
    says_little(&client);
    assert_eq!(client.end(), (0, vec![]));
    assert_eq!(fs::read(world.path(&format!("{STATE}/timeline.db"))).unwrap(), before);
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_harms_no_call_and_one_that_has_room_again_is_used() {
    let world = World::empty().with("disk/x", "").with("copy/x", "");
    let mounts =
        |then: &str| format!("exec unshare --mount sh -c 'mount -t tmpfs -o size=3m tmpfs disk{then}'");
    let tried = by_shell(&world, &mounts(""), None).output().unwrap();
    if !tried.status.success() {
        return skipped("whoever may not mount anything cannot fill a disk of their own");
    }
    let runs = " && exec \"$UNSTUCK\" mcp --name peer -- \"$PEER\" --log peer.log --state peer.state";
    let mut client = Client::by(by_shell(&world, &mounts(runs), Some("disk/state")));
    all_goes_on(&mut client);
    // Seen from here, its disk lies behind its own root.
    let disk = format!("/proc/{}/root{}", client.pid(), at(&world, "disk"));
    let kept = || {
        let copied = Command::new("cp").args(["-r", &format!("{disk}/state"), &at(&world, "copy")]).status();
        assert!(copied.unwrap().success());
        let mut log = world.command(&["log", "--json"]);
        let log = log.env("UNSTUCK_STORE_STATE_DIR", world.path("copy/state")).output().unwrap();
        fs::remove_dir_all(world.path("copy/state")).unwrap();
        let lines = String::from_utf8(log.stdout).unwrap();
        let events = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter(|event| event["event"] == "tool:end").count()
    };
    super::client::wait_for("it is not written down", || kept() >= 150);
    let filled = Command::new("dd")
        .args(["if=/dev/zero", &format!("of={disk}/full"), "bs=4k"])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(!filled.success(), "the disk has no end");
    client.aside.clear();
    for number in 0..60 {
        let id = client.send_call("echo", json!({ "text": format!("{number} {}", "~".repeat(2000)) }));
        assert!(text(&client.answer(id)["result"], 0).starts_with(&format!("{number} ~")));
    }
    client.fails("fail", json!({ "text": "the tide is out" }));
    says_little(&client);
    fs::remove_file(format!("{disk}/full")).unwrap();
    let before = kept();
    assert!(before < 156 + 61, "the disk was not full");
    client.works("echo", json!({ "text": "there is room" }));
    super::client::wait_for("it is not used again", || kept() > before);
    assert_eq!(client.end(), (0, vec![]));
}

#[test]
fn a_store_that_somebody_holds_for_long_holds_up_no_call() {
    let world = World::empty();
    let mut client = Client::of_peer(&world, &[], &[]);
    let began = Instant::now();
    all_goes_on(&mut client);
    let usual = began.elapsed();
    assert_eq!(client.end().0, 0);
    fs::remove_file(world.path("peer.state")).unwrap();
    let database = rusqlite::Connection::open(world.path(&format!("{STATE}/timeline.db"))).unwrap();
    database.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let mut client = Client::of_peer(&world, &[], &[]);
    let began = Instant::now();
    all_goes_on(&mut client);
    // If each of them waited only half a second, it would be more than this.
    let most = usual * 4 + Duration::from_secs(20);
    assert!(began.elapsed() < most, "{:?}, and {usual:?} before", began.elapsed());
    says_little(&client);
    // What could not be written waits, and is there once it can be.
    database.execute_batch("ROLLBACK").unwrap();
    assert_eq!(client.end(), (0, vec![]));
    let ends = world.run(&["log", "--json"], "").json_lines();
    let ends = ends.iter().filter(|event| event["event"] == "tool:end").count();
    // Each time 151 echoes, two attempts of one that is sent again, and three failures.
    assert_eq!(ends, 2 * 156);
}

#[test]
fn a_store_that_somebody_holds_for_long_holds_up_no_end() {
    let world = World::empty();
    let ended = || {
        let mut client = Client::ready(&world, &[], &[]);
        client.works("echo", json!({ "text": "a" }));
        client.ask("tools/list", json!({}));
        client.close();
        let began = Instant::now();
        assert_eq!(client.exit_within(LIMIT), 0);
        began.elapsed()
    };
    let usual = ended();
    let database = rusqlite::Connection::open(world.path(&format!("{STATE}/timeline.db"))).unwrap();
    database.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let held = ended();
    assert!(held < usual * 4 + Duration::from_secs(8), "{held:?}, and {usual:?} before");
}

#[allow(clippy::print_stderr, reason = "what is not tested is said")]
fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
}
