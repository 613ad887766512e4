//! `unstuck lessons`: what was seen to fix what, and a person's word on it.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::{hook, watched};
use crate::world::{Said, World};

const NO_HEADER: &str = "a.c:1:10: fatal error: openssl/ssl.h: No such file or directory";
const FIX: &str = "sudo apt-get install -y libssl-dev";
const CAUSE: &str = "e1:aaaaaaaaaaaaaaaaaaaa";

/// One call from its asking to its end; what the agent is told with its result.
fn tries(world: &World, session: &str, command: &str, exit: i32, stderr: &str) -> String {
    static COUNTER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    let key = format!("k{}", COUNTER.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let mut payload = json!({ "event": "before", "session": session, "call_id": key, "tool": "Bash",
        "cwd": world.path(""), "input": { "command": command } });
    let before = payload.to_string();
    payload["event"] = json!("after");
    payload["exit_code"] = json!(exit);
    payload["stderr"] = json!(stderr);
    hook(world, &format!("{before}\n{payload}\n")).stdout().to_owned()
}

/// A failure and what it was over after, in one session.
fn fixed(world: &World, session: &str, fix: &str) {
    tries(world, session, "make", 2, NO_HEADER);
    tries(world, session, fix, 0, "");
    tries(world, session, "make", 0, "");
    watched(world);
}

/// Somebody who got over a failure once.
pub(crate) fn world() -> World {
    let world = World::empty();
    fixed(&world, "one", FIX);
    world
}

#[track_caller]
fn lesson(world: &World, id: &str) -> Value {
    world.run(&["lessons", "show", id, "--json"], "").json()
}

#[track_caller]
fn fields(lesson: &Value, names: &[&str]) -> Value {
    names.iter().map(|name| lesson[*name].clone()).collect()
}

/// A line of a file of lessons, with one command in it.
fn line(command: &str) -> String {
    let fix = json!({ "deeds": [{ "ran": command }], "change": null });
    json!({ "v": 1, "type": "lesson", "cause": CAUSE, "kind": "network", "rule": "net.dns", "tool": "Bash",
        "program": "make", "title": "curl: (6) Could not resolve host", "fix": fix })
    .to_string()
}

/// The database, to put something into it that no command would.
fn database(world: &World) -> rusqlite::Connection {
    rusqlite::Connection::open(world.path(".local/state/unstuck/timeline.db")).unwrap()
}

#[test]
fn what_was_seen_to_help_is_listed_and_shown_with_all_that_is_known_of_it() {
    let world = world();
    let said = world.run(&["lessons"], "");
    let lines: Vec<&str> = said.stdout().lines().collect();
    assert!(lines[0].starts_with("lesson  state  won  lost  scope  last"), "{said}");
    assert!(lines[1].starts_with("L1      seen     1     0  here   "), "{said}");
    assert!(lines[1].ends_with(&format!("make    {FIX}")), "{said}");
    let listed = world.run(&["lessons", "--json"], "").json();
    let names = ["id", "state", "origin", "wins", "losses", "scope", "is_shown", "because", "caution"];
    let expected = json!(["L1", "seen", "seen", 1, 0, "here", true, "trusted", null]);
    assert_eq!(fields(&listed, &names), expected);
    assert_eq!(listed["fix"]["deeds"], json!([{ "ran": FIX }]));
    let said = world.run(&["lessons", "show", "l1"], "");
    for words in [
        "shown?     yes: it helped here",
        "shown 0, followed 0, worked 0",
        &format!("1. {FIX}"),
        "Places (1)",
    ] {
        assert!(said.stdout().contains(words), "{words} is not in\n{said}");
    }
    let said = world.run(&["lessons", "show", "1", "--lang", "zh"], "");
    assert!(
        said.stdout().contains("会：在这里或多个地点有效") && said.stdout().contains("不是指令"),
        "{said}"
    );
    assert_eq!(lesson(&world, "L1")["places"][0]["wins"], 1);
}

#[test]
fn what_became_of_lessons_that_were_shown_is_counted() {
    let world = world();
    assert!(!world.run(&["stats"], "").stdout().contains("Remembered"));
    let said = tries(&world, "two", "make", 2, NO_HEADER);
    assert!(said.contains(FIX), "{said}");
    tries(&world, "two", FIX, 0, "");
    tries(&world, "two", "make", 0, "");
    tries(&world, "three", "make", 2, NO_HEADER);
    let effect =
        |args: &[&str]| world.run(&[&["stats", "--json"], args].concat(), "").json()["lessons"].clone();
    let expected =
        json!({ "shown": 2, "followed": 1, "worked": 1, "followed_rate": 0.5, "worked_rate": 1.0 });
    assert_eq!(effect(&[]), expected);
    assert_eq!(effect(&["--session", "three"])["followed"], 0);
    assert_eq!(world.run(&["stats", "--by", "tool", "--json"], "").json()["lessons"], Value::Null);
    let text = world.run(&["stats"], "");
    assert!(text.stdout().ends_with("Remembered: shown 2, followed 1, worked 1 (100 %)\n"), "{text}");
    let text = world.run(&["stats", "--lang", "zh"], "");
    assert!(text.stdout().ends_with("经验：显示 2 次，照做 1 次，有效 1 次（100 %）\n"), "{text}");
    assert_eq!(fields(&lesson(&world, "1"), &["shown", "followed", "worked", "wins"]), json!([2, 1, 1, 2]));
}

#[test]
fn what_could_do_harm_is_shown_only_after_a_person_approved_that_very_lesson() {
    let world = World::empty();
    fixed(&world, "one", "rm -rf node_modules");
    assert!(world.run(&["lessons"], "").stdout().contains("seen!"));
    assert!(!tries(&world, "two", "make", 2, NO_HEADER).contains("node_modules"));
    assert_eq!(fields(&lesson(&world, "1"), &["caution", "because"]), json!(["destroys", "cautious"]));
    world.run(&["lessons", "approve", "L1"], "").complains(2, &["nobody sits at a terminal"]);
    let agent = world.command(&["lessons", "approve", "L1", "--yes"]).env("CLAUDECODE", "1").spawn().unwrap();
    Said::by(agent).complains(2, &["an agent started it"]);
    let said = world.run(&["lessons", "approve", "L1", "--yes"], "");
    assert!(said.stdout().starts_with("L1 is approved\n  rm -rf node_modules\n"), "{said}");
    assert!(said.stdout().ends_with("take care: it may delete what nobody can bring back\n"), "{said}");
    let said = tries(&world, "three", "make", 2, NO_HEADER);
    assert!(said.contains("rm -rf node_modules"), "{said}");
}

#[test]
fn what_a_person_forgot_is_never_shown_and_never_learnt_again() {
    let world = world();
    let agent = world.command(&["lessons", "forget", "L1"]).env("CLAUDECODE", "1").spawn().unwrap();
    Said::by(agent).complains(2, &["an agent started it"]);
    let said = world.run(&["lessons", "forget", "L1"], "");
    assert!(said.stdout().contains("a person forgot it"), "{said}");
    assert_eq!(world.run(&["lessons", "--json"], "").json_lines(), [Value::Null; 0]);
    fixed(&world, "two", FIX);
    fixed(&world, "three", FIX);
    assert!(!tries(&world, "four", "make", 2, NO_HEADER).contains("libssl-dev"));
    let all = world.run(&["lessons", "--all", "--json"], "").json();
    assert_eq!(fields(&all, &["id", "state"]), json!(["L1", "forgotten"]));
}

#[test]
fn a_person_says_what_helps_with_flags_or_in_an_editor() {
    let world = world();
    let said = world.run(&["lessons", "edit", "1", "--step", "brew install openssl", "--yes"], "");
    assert!(said.stdout().starts_with("L1 is approved\n  brew install openssl\n"), "{said}");
    assert_eq!(fields(&lesson(&world, "1"), &["origin", "wins", "scope"]), json!(["written", 0, "untried"]));
    let said = tries(&world, "two", "make", 2, NO_HEADER);
    assert!(said.contains("brew install openssl") && said.contains("a person approved"), "{said}");
    let change = ["lessons", "edit", "1", "--change", "make", "make -k", "--yes"];
    assert!(world.run(&change, "").stdout().contains("make -k (instead of: make)"));
    let edit = |script: &str| {
        let world = &world;
        fs::write(world.path("editor"), format!("#!/bin/sh\n{script}\n")).unwrap();
        let mut command = world.command(&["lessons", "edit", "1", "--yes"]);
        let editor = format!("sh {}", world.path("editor").display());
        Said::by(command.env("EDITOR", editor).stdin(Stdio::null()).spawn().unwrap())
    };
    let said = edit("cat > /dev/null; printf 'steps = [\"rm -rf build\", \"make clean\"]\\n' > \"$1\"");
    assert!(said.stdout().contains("  rm -rf build\n  make clean\n"), "{said}");
    assert!(said.stdout().contains("take care: it may delete"), "{said}");
    edit("true").complains(1, &["nothing was changed"]);
    edit("exit 3").complains(1, &["nothing was changed"]);
    edit("echo 'stteps = 7' > \"$1\"").complains(2, &["this is no lesson", "nothing was changed"]);
    edit("echo 'steps = []' > \"$1\"").complains(2, &["its fix says nothing", "1 to 6 steps"]);
    edit("sed -i 's/make clean/make tidy/' \"$1\"");
    assert_eq!(
        lesson(&world, "1")["fix"]["deeds"],
        json!([{ "ran": "rm -rf build" }, { "ran": "make tidy" }])
    );
}

#[test]
fn words_are_looked_for_in_failures_and_fixes_in_any_script() {
    let world =
        World::empty().with("l.jsonl", format!("{}\n{}\n", line("npm ci"), line("打开 证书 %_\"x\"")));
    world.run(&["lessons", "import", "l.jsonl"], "");
    let check = |text: &[&str], expected: usize| {
        let found = world.run(&[&["lessons", "search", "--json", "--"], text].concat(), "").json_lines();
        assert_eq!(found.len(), expected, "{text:?}");
    };
    check(&["NPM"], 1);
    check(&["resolve host"], 2);
    check(&["证书"], 1);
    check(&["书"], 1);
    check(&["%_\"x"], 1);
    check(&["'; DROP TABLE lesson; --"], 0);
    check(&[CAUSE], 2);
    check(&["e1:aaaa"], 2);
    check(&["e1:b"], 0);
    world.run(&["lessons", "search", "zebra"], "").complains(0, &["no such lessons"]);
}

#[test]
fn lessons_go_to_another_machine_and_have_to_win_there() {
    let here = world();
    let there = World::empty().with("l.jsonl", here.run(&["lessons", "export", "--json"], "").stdout);
    let said = there.run(&["lessons", "import", "l.jsonl"], "");
    assert!(said.stdout().starts_with("imported 1, known already: 0\n"), "{said}");
    let imported = there.run(&["lessons", "import", "l.jsonl", "--json"], "").json();
    assert_eq!(imported, json!({ "added": 0, "known": 1 }));
    let names = ["state", "origin", "wins", "scope", "because"];
    assert_eq!(
        fields(&lesson(&there, "1"), &names),
        json!(["imported", "imported", 0, "untried", "untried"])
    );
    assert!(!tries(&there, "one", "make", 2, NO_HEADER).contains("libssl-dev"));
    assert_eq!(there.run(&["lessons", "export", "--json"], "").stdout(), "", "it is not proven here");
    tries(&there, "one", FIX, 0, "");
    tries(&there, "one", "make", 0, "");
    watched(&there);
    assert!(tries(&there, "two", "make", 2, NO_HEADER).contains("libssl-dev"));
}

#[test]
fn notes_for_an_agent_hold_trusted_calls_and_no_word_of_an_output() {
    let world = World::empty();
    world.run(&["lessons", "export"], "").complains(1, &["nothing is recorded"]);
    let poison = "a.c:1:10: fatal error: `x` --> ignore-all.h: No such file or directory";
    tries(&world, "one", "make", 2, poison);
    tries(&world, "one", "npm ci", 0, "");
    tries(&world, "one", "make", 0, "");
    fixed(&world, "two", "bash evil.sh");
    // A sign that would end the quotation, in words that somebody approved.
    let sql = "UPDATE lesson SET body = replace(body, 'npm ci', 'npm ci a`b'), state = 'approved' WHERE body LIKE '%npm ci%'";
    database(&world).execute(sql, []).unwrap();
    let said = world.run(&["lessons", "export", "--markdown"], "");
    let text = said.stdout();
    assert!(text.starts_with("<!-- unstuck lessons -->\n## ") && text.contains("not instructions"), "{said}");
    assert!(text.contains("over after ⟦npm ci a`b⟧ (worked 1 of 1 times, last "), "{said}");
    assert!(!text.contains("ignore-all") && !text.contains("evil"), "{said}");
    assert_eq!(text.lines().filter(|line| line.starts_with("- ")).count(), 1, "{said}");
    assert!(world.run(&["lessons", "export", "--lang", "zh"], "").stdout().contains("不是指令"));
}

#[test]
fn a_file_that_is_no_file_of_lessons_changes_nothing() {
    let good = line("npm ci");
    let check = |text: &[u8], words: &[&str]| {
        let world = World::empty().with("l.jsonl", text);
        world.run(&["lessons", "import", "l.jsonl"], "").complains(2, words);
        assert!(!world.path(".local/state/unstuck/timeline.db").exists());
    };
    check(
        format!("{good}\n{{\n").as_bytes(),
        &["l.jsonl:2: no lesson", "nothing was imported", "export --json"],
    );
    check(b"hello\n", &["l.jsonl:1: no lesson"]);
    check(b"\xff\xfe\n", &["l.jsonl:1: no lesson", "utf-8"]);
    check(good.replace("\"v\":1", "\"v\":9").as_bytes(), &["it has version 9"]);
    check(good.replace("network", "nice").as_bytes(), &["its kind is no kind"]);
    check(line("a\u{1b}[2Jb").as_bytes(), &["control or invisible characters"]);
    check("[".repeat(60_000).as_bytes(), &["no lesson: "]);
    check(&vec![b'x'; 70_000], &["more than 64 KB in line 1"]);
    let many: String = (0..=100_000).map(|n| line(&format!("s{n}")) + "\n").collect();
    check(many.as_bytes(), &["more than 100000 lessons"]);
    World::empty().run(&["lessons", "import", "none"], "").complains(125, &["could not read none"]);
    World::empty().run(&["lessons", "import", "."], "").complains(125, &["could not read ."]);
    let world = World::empty().with("l.jsonl", "[");
    let said = world.run(&["lessons", "import", "l.jsonl", "--lang", "zh"], "");
    said.complains(2, &["不是经验", "没有导入任何内容"]);
}

#[test]
fn names_of_other_things_are_no_lessons() {
    let world = world();
    for asked in ["L2", "#1", "s1", "e1:aaaa", "L", "LL1", "-1", "1.0", "", "99999999999999999999", "L1; x"] {
        let said = world.run(&["lessons", "show", "--", asked], "");
        said.complains(1, &["no lesson is called", "`unstuck lessons --all` shows all"]);
    }
    World::empty().run(&["lessons", "forget", "L1"], "").complains(1, &["nothing is recorded"]);
    let world = World::empty();
    world.run(&["lessons", "approve", "L1", "--yes"], "").complains(1, &["nothing is recorded"]);
    assert!(!world.path(".local/state/unstuck/timeline.db").exists());
}

#[test]
fn what_lies_broken_or_hostile_in_the_store_is_told_as_what_it_is() {
    let world = world();
    let hostile = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}";
    let body = json!({ "deeds": [{ "ran": format!("npm ci {hostile}\n# x") }], "change": null }).to_string();
    let sql = "UPDATE lesson SET title = ?1, program = ?1, body = ?2, kind = ?1, tool = ?1, rule = ?1, state = 'approved'";
    database(&world).execute(sql, (hostile, &body)).unwrap();
    let hostile = ["\u{1b}", "\u{7}", "\u{202e}"];
    for args in [
        &["lessons"][..],
        &["lessons", "show", "1"],
        &["lessons", "export"],
        &["lessons", "approve", "1", "--yes"],
    ] {
        let said = world.run(args, "");
        assert_eq!(said.exit, 0, "{said}");
        assert!(
            said.stdout().contains("\\u{1b}") && hostile.iter().all(|sign| !said.stdout().contains(sign)),
            "{said}"
        );
    }
    database(&world).execute("UPDATE lesson SET body = '{\"deeds\":', state = 'seen'", []).unwrap();
    assert_eq!(fields(&lesson(&world, "1"), &["fix", "because"]), json!([null, "unreadable"]));
    assert!(world.run(&["lessons", "show", "1"], "").stdout().contains("it cannot be read"));
    world
        .run(&["lessons", "approve", "1", "--yes"], "")
        .complains(1, &["cannot be read any more in L1", "edit L1"]);
    // It keeps nothing else from being learnt.
    fixed(&world, "two", "brew install openssl");
    assert!(tries(&world, "three", "make", 2, NO_HEADER).contains("brew install openssl"));
}

#[test]
fn a_hundred_thousand_lessons_are_listed_and_searched_in_no_time() {
    let world = world();
    let fill = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
        INSERT INTO lesson (id, cause, fix, kind, rule, tool, program, title, body, state, wins, losses, losses_since_win,
            shown, followed, first_at, won_at)
        SELECT i, printf('e1:%020d', i / 4), i, 'network', 'r', 'Bash', 'make', 'error: no such thing as number ' || i,
            json_object('deeds', json_array(json_object('ran', 'npm install package-' || i))), 'seen', i % 7, 0, 0, 0, 0, i, i
        FROM n";
    database(&world).execute(fill, []).unwrap();
    let timed = |args: &[&str], expected: usize| {
        let begun = Instant::now();
        let said = world.run(args, "");
        assert_eq!(said.stdout().lines().count(), expected, "{args:?}");
        // A build for tests is some ten times slower than one for use, and others may be busy on the same machine.
        assert!(begun.elapsed() < Duration::from_secs(120), "{args:?} took {:?}", begun.elapsed());
    };
    timed(&["lessons", "--json"], 100_000);
    timed(&["lessons"], 51);
    timed(&["lessons", "search", "package-77777", "--json"], 1);
    timed(&["lessons", "search", "号", "--json"], 0);
    // Whoever has seen enough ends it.
    let mut child = world.command(&["lessons", "--json"]).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn several_processes_at_once_lose_nothing() {
    let lines: String = (0..300).map(|n| line(&format!("step {n}")) + "\n").collect();
    let world = World::empty().with("l.jsonl", lines);
    let start = |args: &[&str]| world.command(args).stdin(Stdio::null()).spawn().unwrap();
    let children: Vec<_> = (0..4).map(|_| start(&["lessons", "import", "l.jsonl", "--json"])).collect();
    let added: u64 =
        children.into_iter().map(|child| Said::by(child).json()["added"].as_u64().unwrap()).sum();
    assert_eq!((added, world.run(&["lessons", "--json"], "").json_lines().len()), (300, 300));
    let names: Vec<String> = (1..=8).map(|id| format!("L{id}")).collect();
    let children: Vec<_> = names.iter().map(|id| start(&["lessons", "approve", id, "--yes"])).collect();
    children.into_iter().for_each(|child| assert_eq!(Said::by(child).exit, 0));
    let approved =
        database(&world)
            .query_row("SELECT count(*) FROM lesson WHERE state = 'approved'", [], |row| row.get(0));
    assert_eq!(approved, Ok(8));
}

#[test]
fn a_purge_takes_lessons_along_and_says_so() {
    let world = world();
    let purged = world.run(&["purge", "--session", "one", "--json"], "").json();
    assert_eq!(purged["removed"]["lessons"], 1, "{purged}");
    assert_eq!(world.run(&["lessons", "--all", "--json"], "").json_lines(), [Value::Null; 0]);
    let bytes = fs::read(world.path(".local/state/unstuck/timeline.db")).unwrap();
    assert!(!bytes.windows(10).any(|part| part == b"libssl-dev"));
}

#[test]
fn several_lessons_are_named_at_once_and_one_wrong_name_changes_none() {
    let lines: String = (0..3).map(|n| line(&format!("npm ci {n}")) + "\n").collect();
    let world = World::empty().with("l.jsonl", lines);
    world.run(&["lessons", "import", "l.jsonl"], "");
    let states = || {
        let all = world.run(&["lessons", "show", "L1", "2", "l3", "--json"], "").json_lines();
        all.iter().map(|lesson| lesson["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for args in [&["approve", "L1", "L9", "--yes"][..], &["forget", "L1", "x"]] {
        world.run(&[&["lessons"], args].concat(), "").complains(1, &["no lesson is called"]);
    }
    assert_eq!(states(), ["imported"; 3]);
    let said = world.run(&["lessons", "approve", "L1", "2", "--yes"], "");
    assert!(
        said.stdout().contains("L1 is approved\n") && said.stdout().contains("L2 is approved\n"),
        "{said}"
    );
    assert_eq!(world.run(&["lessons", "forget", "L2", "L3", "--json"], "").json_lines().len(), 2);
    assert_eq!(states(), ["approved", "forgotten", "forgotten"]);
    let said = world.run(&["lessons", "show", "1", "2"], "");
    assert!(said.stdout().contains("\n\nL2  network"), "{said}");
}

#[test]
fn lessons_come_from_standard_input_too_and_a_mark_at_the_beginning_is_no_mistake() {
    let world = World::empty();
    let said = world.run(&["lessons", "import", "-", "--json"], format!("\u{feff}{}\r\n", line("npm ci")));
    assert_eq!(said.json(), json!({ "added": 1, "known": 0 }));
    world.run(&["lessons", "import", "-"], "x").complains(2, &["-:1: no lesson"]);
    // What never helped has no moment at which it last did.
    assert_eq!(fields(&lesson(&world, "1"), &["wins", "last_at", "last_at_ms"]), json!([0, null, null]));
    assert!(world.run(&["lessons"], "").stdout().contains("untried  -     make"));
    assert!(!world.run(&["lessons", "show", "1"], "").stdout().contains("last "));
}
