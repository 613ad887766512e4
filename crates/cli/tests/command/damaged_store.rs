//! A database that a disk, a crash or a person has damaged: everything that is whole is still answered, what is not is told of,
//! and `unstuck recover` brings back what can be read.

use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::kept::failure;
use crate::world::{Said, World};

/// A world with `calls` failed calls and one large output, so that the database has many pages.
fn world(calls: usize) -> World {
    let world = World::empty();
    let line = |number: usize| {
        let noise = format!("line {number} of a long output\n").repeat(40);
        failure(
            "one",
            &format!("c{number}"),
            &format!("npm run t{number}"),
            &format!("{noise}npm error code E{number}"),
        )
    };
    for chunk in (0..calls).collect::<Vec<_>>().chunks(25) {
        world.record(&chunk.iter().map(|number| line(*number)).collect::<String>());
    }
    fold(&world);
    world
}

fn database(world: &World) -> PathBuf {
    world.path(".local/state/unstuck/timeline.db")
}

fn connection(world: &World) -> Connection {
    Connection::open(database(world)).unwrap()
}

/// Puts the whole log into the database.
fn fold(world: &World) {
    let fold = "PRAGMA wal_checkpoint(TRUNCATE)";
    connection(world).query_row(fold, [], |row| row.get::<_, i64>(0)).unwrap();
}

/// Changes bytes of the file.
fn damage(world: &World, change: impl FnOnce(&mut Vec<u8>)) {
    fold(world);
    for ending in ["-wal", "-shm"] {
        fs::remove_file(format!("{}{ending}", database(world).display())).ok();
    }
    let mut bytes = fs::read(database(world)).unwrap();
    change(&mut bytes);
    fs::write(database(world), bytes).unwrap();
}

/// Where a word stands in the file for the first time.
fn place(bytes: &[u8], word: &str) -> usize {
    bytes.windows(word.len()).position(|part| part == word.as_bytes()).unwrap_or_else(|| panic!("no {word}"))
}

/// What the doctor says of the store, as `check severity what → todo`.
#[track_caller]
fn findings(world: &World) -> Vec<String> {
    let said = world.run(&["doctor", "claude", "--json"], "");
    let found: Value = serde_json::from_str(said.stdout()).unwrap_or_else(|_| panic!("{said}"));
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or("-").to_owned();
    let of_store = found["findings"].as_array().unwrap().iter().filter(|found| found["about"] == "store");
    of_store
        .map(|found| ["check", "severity", "what", "todo"].map(|key| text(found, key)).join(" | "))
        .collect()
}

#[track_caller]
fn finds(world: &World, check: &str, severity: &str, words: &[&str]) {
    let all = findings(world);
    let begins = format!("{check} | {severity} | ");
    let fits = |found: &&String| found.starts_with(&begins) && words.iter().all(|word| found.contains(word));
    assert!(all.iter().any(|found| fits(&found)), "no {begins}{words:?} in {all:#?}");
}

#[track_caller]
fn is_well(world: &World) {
    let all = findings(world);
    // That something was set aside stays a fault of the day.
    let bad = |found: &&String| {
        !found.starts_with("faults | ") && (found.contains(" | error | ") || found.contains(" | warning | "))
    };
    let bad: Vec<_> = all.iter().filter(bad).collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

/// All calls that an export still shows.
fn exported(world: &World) -> (Said, Vec<Value>) {
    let said = world.run(&["export", "--jsonl", "--only", "calls"], "");
    let calls = said.stdout().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let calls = calls.filter(|row| row["type"] == "call").collect();
    (said, calls)
}

#[test]
fn one_bad_byte_costs_one_row_of_an_answer_and_is_told() {
    let world = world(10);
    damage(&world, |bytes| {
        let at = place(bytes, "npm error code E4");
        bytes[at] = 0xff;
    });
    let (said, calls) = exported(&world);
    assert_eq!((said.exit, calls.len()), (0, 9), "{}", said.stderr());
    assert!(said.stderr().contains("cannot be read and"), "{said}");
    for args in [&["log", "--json"][..], &["stats", "--json"], &["gc", "--json"], &["problems", "--json"]] {
        let said = world.run(args, "");
        assert!(said.exit == 0 && !said.stdout().is_empty(), "{said}");
    }
    let gc: Value = serde_json::from_str(world.run(&["gc", "--json"], "").stdout()).unwrap();
    assert_eq!((&gc["sound"], gc["damaged_rows"].as_u64() > Some(0)), (&json!(false), true), "{gc}");
    finds(&world, "rows", "error", &["cannot be read whole", "`unstuck recover`"]);
    let done = world.run(&["recover", "--json"], "").json();
    assert_eq!((&done["damaged"], &done["databases"][0]["calls"]), (&json!(true), &json!(10)), "{done}");
    assert!(done["databases"][0]["mended"].as_u64() >= Some(1), "{done}");
    assert_eq!(exported(&world).1.len(), 10);
    is_well(&world);
}

#[test]
fn a_format_byte_that_sqlite_does_not_know_costs_nothing_that_was_recorded() {
    let world = world(10);
    // The number of the schema format, and the first page's bytes for reading and writing.
    for at in [47, 18] {
        let before = exported(&world).1;
        damage(&world, |bytes| bytes[at] = 7);
        world.record(&failure("two", &format!("x{at}"), "make", "make: *** No rule"));
        finds(&world, "damaged", "warning", &["set aside", "`unstuck recover`"]);
        let done = world.run(&["recover"], "");
        assert_eq!(done.exit, 0, "{done}");
        let after = exported(&world).1;
        for call in &before {
            assert!(after.iter().any(|row| row["call_id"] == call["call_id"]), "byte {at}: {call} is gone");
        }
        is_well(&world);
    }
}

#[test]
fn a_format_number_that_is_too_new_is_called_so() {
    // The number alone is wrong.
    let world = world(5);
    connection(&world).pragma_update(None, "user_version", 99).unwrap();
    let answers = world.run(&["hook", "generic"], failure("two", "late", "make", "make: *** No rule"));
    assert!(answers.json_lines().iter().all(|answer| answer["kept"] == "spooled"), "{answers}");
    finds(&world, "format", "error", &["that it does not have", "`unstuck recover`"]);
    for args in [&["doctor"][..], &["status"], &["log"]] {
        let said = world.run(args, "");
        assert!(!format!("{said}").contains("another process"), "{said}");
    }
    let status = world.run(&["status"], "");
    assert!(status.stderr().contains("format 99"), "{status}");
    let done = world.run(&["recover", "--json"], "").json();
    assert_eq!((&done["spool"], done["set_aside"].is_string()), (&json!(2), true), "{done}");
    assert_eq!(exported(&world).1.len(), 6);
    is_well(&world);
    // A newer version really wrote it: it stays as it is.
    let newer = self::world(5);
    connection(&newer)
        .execute_batch(
            "ALTER TABLE session ADD COLUMN colour TEXT NOT NULL DEFAULT ''; PRAGMA user_version = 99",
        )
        .unwrap();
    finds(&newer, "format", "error", &["a newer version of unstuck wrote", "update unstuck"]);
    newer.run(&["recover"], "").complains(125, &["has format 99", "update unstuck"]);
    assert_eq!(exported(&newer).1.len(), 5);
}

#[test]
fn a_zeroed_page_in_the_middle_is_found_and_the_rest_comes_back() {
    let world = world(60);
    let before = exported(&world).1.len();
    damage(&world, |bytes| {
        let page = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
        let at = place(bytes, "line 31 of a long output") / page * page;
        bytes[at..at + page].fill(0);
    });
    let (said, calls) = exported(&world);
    assert!(calls.len() > before / 2, "{} of {before}: {}", calls.len(), said.stderr());
    finds(&world, "database", "error", &["is damaged", "`unstuck recover`"]);
    let dry = world.run(&["recover", "--dry-run", "--json"], "").json();
    assert_eq!((&dry["damaged"], &dry["set_aside"]), (&json!(true), &Value::Null), "{dry}");
    assert!(!world.path(".local/state/unstuck/damaged").exists());
    let done = world.run(&["recover", "--json"], "").json();
    assert_eq!(done["databases"][0]["calls"], dry["databases"][0]["calls"], "{dry} {done}");
    assert!(done["databases"][0]["calls"].as_u64() >= Some(before as u64 - 8), "{done}");
    is_well(&world);
    // Again: nothing twice.
    let count = exported(&world).1.len();
    let again = world.run(&["recover"], "");
    assert!(
        again.stdout().contains("not damaged") && again.stdout().contains("nothing was set aside"),
        "{again}"
    );
    let path = done["set_aside"].as_str().unwrap();
    let named = world.run(&["recover", "--json", path], "").json();
    assert_eq!(named["databases"][0]["calls"], 0, "{named}");
    assert_eq!(exported(&world).1.len(), count);
}

#[test]
fn what_an_agent_recovers_is_not_vouched_for() {
    let world = world(3);
    connection(&world)
        .execute_batch(
            "INSERT INTO lesson (cause, fix, kind, rule, tool, program, title, body, state, wins, losses,
                                 losses_since_win, shown, followed, first_at, won_at)
             VALUES ('e1:x', 'f', 'unknown', '', 'Bash', 'npm', 't', '{}', 'approved', 5, 0, 0, 0, 0, 1, 2);
             INSERT INTO allowance VALUES ('k', 'rm', 99999999999999, 1);
             INSERT INTO charge VALUES ('some.rule', 10, 10, 1);",
        )
        .unwrap();
    damage(&world, |bytes| bytes[47] = 7);
    world.record(&failure("two", "x", "make", "make: *** No rule"));
    let mut by_agent = world.command(&["recover", "--yes"]);
    let refused = Said::by(by_agent.env("CLAUDECODE", "1").spawn().unwrap());
    refused.complains(2, &["an agent started it"]);
    let done = world.run(&["recover", "--json"], "").json();
    let database = &done["databases"][0];
    assert_eq!((&done["vouched"], &database["withheld"]), (&json!(false), &json!(3)), "{done}");
    let state = |world: &World| -> (String, i64) {
        let sql =
            "SELECT state, (SELECT count(*) FROM allowance) + (SELECT count(*) FROM charge) FROM lesson";
        connection(world).query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    assert_eq!(state(&world), ("imported".to_owned(), 0));
    let path = database["path"].as_str().unwrap();
    assert_eq!(world.run(&["recover", "--yes", path], "").exit, 0);
    assert_eq!(state(&world), ("approved".to_owned(), 2));
}

#[test]
fn a_row_that_somebody_edits_is_named_by_the_doctor() {
    let edits = [
        ("UPDATE call_text SET head = 'all tests passed' WHERE call = 2", "call 2 is not as event "),
        ("UPDATE call SET state = 'completed', ok = 1 WHERE id = 3", "call 3 is not as event "),
        ("UPDATE event SET body = '{}' WHERE seq = 4", "event 4 is not as unstuck wrote it"),
        ("DELETE FROM event WHERE seq BETWEEN 5 AND 6", "events 5 to 6 are gone"),
    ];
    for (sql, words) in edits {
        let world = world(3);
        finds(&world, "chain", "ok", &["each linked to the one before it"]);
        connection(&world).execute(sql, []).unwrap();
        finds(&world, "chain", "warning", &[words, "another program changed the database"]);
        let gc = world.run(&["gc"], "");
        assert!(gc.exit == 0 && gc.stdout().contains("the chain of events is broken"), "{gc}");
    }
}

#[test]
fn triggers_and_views_of_others_are_never_run_and_the_doctor_names_them() {
    let hostile = [
        "CREATE TRIGGER thief AFTER INSERT ON call BEGIN DELETE FROM call WHERE id = new.id; END",
        "CREATE TRIGGER thief BEFORE INSERT ON event BEGIN SELECT RAISE(ABORT, 'no'); END",
        "CREATE TRIGGER thief AFTER INSERT ON event BEGIN DELETE FROM event WHERE seq < new.seq; END",
        "CREATE TRIGGER thief AFTER UPDATE ON session BEGIN UPDATE call SET ok = 1; END",
    ];
    for sql in hostile {
        let world = world(3);
        let before = exported(&world).1.len();
        connection(&world).execute_batch(sql).unwrap();
        world.record(&failure("one", "later", "npm run later", "npm error code ELATER"));
        assert!(exported(&world).1.len() > before, "{sql}");
        let calls = "SELECT count(*) FROM call WHERE ok = 0";
        let kept: u32 = connection(&world).query_row(calls, [], |row| row.get(0)).unwrap();
        assert_eq!(kept, 4, "{sql}");
        finds(&world, "foreign", "warning", &["trigger thief", "another program"]);
    }
    let world = world(3);
    connection(&world).execute_batch("CREATE VIEW mirror AS SELECT * FROM call").unwrap();
    finds(&world, "foreign", "warning", &["view mirror"]);
}
