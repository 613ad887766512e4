//! What has one name and what has two. The pinned names may only change together with their version.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{Call, Kind};

fn lines_agree(name: fn(&Call) -> Fingerprint, rows: &[(&str, &str)]) {
    for (a, b) in rows {
        assert_eq!(name(&Call::shell(*a)), name(&Call::shell(*b)), "{a} | {b}");
    }
}

fn lines_differ(name: fn(&Call) -> Fingerprint, rows: &[(&str, &str)]) {
    for (a, b) in rows {
        assert_ne!(name(&Call::shell(*a)), name(&Call::shell(*b)), "{a} | {b}");
    }
}

#[test]
fn names_are_pinned_until_their_version_changes() {
    let shell = Call::shell("cd x &&  cargo test -q 2>&1 | tail -5");
    let edit = Call::new("Edit", json!({"file_path": "a.rs", "old_string": "x", "new_string": "y"}));
    let cause = cause("shell", Kind::CommandNotFound, "bash: line 1: cargo: command not found");
    let names =
        [call(&shell), intent(&shell), call(&edit), intent(&edit), cause].map(|name| name.to_string());
    assert_eq!(
        names,
        [
            "c2:4nk7wfrxoidjrq6makba",
            "i2:q3h34na4e7fxrsm4d2st",
            "c2:nq3xzuna5w2szxf3lyj6",
            "i2:jlyy6xt3l3k6jkux5mbh",
            "e1:vfkkcvuksv57wx2ksehr",
        ]
    );
}

#[test]
fn an_exact_call_is_the_same_without_its_cosmetics() {
    let bash = |input: Value| call(&Call::new("Bash", input));
    let plain = bash(json!({"command": "ls -l"}));
    for same in [
        json!({"command": "ls  -l", "description": "List files", "timeout": 5000}),
        json!({"command": "ls -l\n", "run_in_background": null}),
        json!({"command": " ls\t-l ", "explanation": "x", "env": {}}),
        json!("{\"command\": \"ls -l\"}"),
    ] {
        assert_eq!(bash(same.clone()), plain, "{same}");
    }
    for other in [
        json!({"command": "ls -a"}),
        json!({"command": "ls -l", "cwd": "/x"}),
        json!({"command": "ls '-l '"}),
    ] {
        assert_ne!(bash(other.clone()), plain, "{other}");
    }
    let edit = |new: &str| {
        call(&Call::new("Edit", json!({"file_path": "a", "old_string": "x  y", "new_string": new})))
    };
    assert_ne!(edit("a b"), edit("a  b"));
    assert_ne!(edit(""), edit(" "));
    let read = |input: Value| call(&Call::new("Read", input));
    assert_eq!(read(json!({"file_path": "a", "limit": null})), read(json!({"file_path": "a"})));
    assert_ne!(read(json!({"file_path": "a", "offset": 5})), read(json!({"file_path": "a"})));
    let issue = |text: &str| call(&Call::new("create_issue", json!({"title": "a", "description": text})));
    assert_ne!(issue("a"), issue("b"));
    let task = |prompt: &str, title: &str| {
        intent(&Call::new("Task", json!({"subagent_type": "x", "prompt": prompt, "description": title})))
    };
    assert_ne!(task("a", "t"), task("b", "t"));
    assert_eq!(task("a", "t"), task("a", "u"));
    let fetch =
        |prompt: &str| intent(&Call::new("WebFetch", json!({"url": "http://a.io", "prompt": prompt})));
    assert_eq!(fetch("a"), fetch("b"));
    let think = |thought: &str| call(&Call::new("think", json!({"thought": thought})));
    assert_ne!(think("a"), think("b"));
    assert_eq!(call(&Call::new("page_down", json!({"": ""}))), call(&Call::new("page_down", json!({}))));
}

#[test]
fn blanks_are_redundant_only_outside_quotes() {
    lines_agree(
        call,
        &[
            ("a   b", "a b"),
            ("a \n b", "a\nb"),
            ("echo 'a  b'   c", "echo 'a  b' c"),
            ("echo a\\ b   c", "echo a\\ b c"),
            ("a\r\nb", "a\nb"),
        ],
    );
    lines_differ(
        call,
        &[
            ("echo 'a  b'", "echo 'a b'"),
            ("echo \"a  b\"", "echo \"a b\""),
            ("echo a\\  b", "echo a\\ b"),
            ("cat <<E\na  b\nE", "cat <<E\na b\nE"),
        ],
    );
}

#[test]
fn an_intent_is_the_same_under_cosmetic_change() {
    lines_agree(
        intent,
        &[
            ("cargo build", "cargo build 2>&1 | tail -20"),
            ("cargo build", "cd /repo && cargo build"),
            ("cargo build", "cargo build --color=never -v"),
            ("cargo build", "CARGO_TERM_COLOR=never cargo build 2>/dev/null"),
            ("cargo build", "timeout 60 cargo build"),
            ("cargo build", "sleep 5; cargo build"),
            ("cargo build", "cargo   'build'"),
            ("cargo build", "bash -c 'cargo build'"),
            ("cargo build", "cargo build || true"),
            ("cargo build", "cargo build; echo \"exit $?\""),
            ("cargo build", "cargo build 2>&1 | grep -E error | head -5"),
            ("cargo build", "cargo build 2>&1 | tee log.txt"),
            ("cargo build", "cargo build > out.log 2>&1"),
            ("cargo build --release --locked", "cargo build --locked --release"),
            ("cargo test -p a --lib", "cargo test --lib -p a"),
            ("pytest -q tests/a.py", "pytest tests/a.py -v --tb=short"),
            ("./run.sh a", "run.sh \"a\""),
            ("a && b", "a; b"),
            ("curl -s -S http://a.io", "curl -S -s http://a.io"),
            ("cd /x", "cd '/x'"),
        ],
    );
}

#[test]
fn an_intent_differs_under_real_change() {
    lines_differ(
        intent,
        &[
            ("cargo build", "cargo test"),
            ("cargo build", "CC=clang cargo build"),
            ("pytest tests/a.py", "python -m pytest tests/a.py"),
            ("cargo build", "export CC=clang && cargo build"),
            ("cargo build", ". ./env.sh && cargo build"),
            ("cargo build", "env CC=clang cargo build"),
            ("cargo build", "sudo cargo build"),
            ("cargo build", "docker exec web cargo build"),
            ("cargo build", "bash -lc 'cargo build'"),
            ("env A=1 make", "env A=2 make"),
            ("cargo build", "cargo build --release"),
            ("pytest a.py", "pytest b.py"),
            ("cp a b", "cp b a"),
            ("pip install a", "pip install b"),
            ("grep -v x f", "grep x f"),
            ("cat a", "cat b"),
            ("foo -o a b", "foo b -o a"),
            ("cat <<E > f\na\nE", "cat <<E > f\nb\nE"),
            ("echo x > a", "echo x > b"),
            ("a | b", "a | c"),
            ("nl -ba f | sed -n 1,5p", "nl -ba f | sed -n 6,9p"),
            ("npm run dev", "npm run dev &"),
            ("cd a", "cd b"),
            ("python -c 'print(1)'", "python -c 'print(2)'"),
            ("make -j2 && make test", "make test"),
            ("git log | wc -l", "git status | wc -l"),
            ("sed -n 1,5p f", "sed -n 6,9p f"),
            ("head -5 f", "head -50 f"),
            ("find . -name a -o -name b", "find . -o -name a -name b"),
            ("psql < a.sql", "psql < b.sql"),
            ("git checkout -- a", "git checkout a"),
        ],
    );
}

#[test]
fn an_edit_is_meant_for_the_text_it_seeks() {
    let edit = |file: &str, old: &str, new: &str| {
        intent(&Call::new("Edit", json!({"file_path": file, "old_string": old, "new_string": new})))
    };
    assert_eq!(edit("a", "x", "y"), edit("a", "x", "z"));
    assert_ne!(edit("a", "x", "y"), edit("a", "w", "y"));
    assert_ne!(edit("a", "x", "y"), edit("b", "x", "y"));
    assert_ne!(edit("a", "x  ", "y"), edit("a", "x", "y"));
    let many = |new: &str| {
        intent(&Call::new(
            "MultiEdit",
            json!({"file_path": "a", "edits": [{"old_string": "x", "new_string": new}]}),
        ))
    };
    assert_eq!(many("y"), many("z"));
    let write = |content: &str| intent(&Call::new("Write", json!({"file_path": "a", "content": content})));
    assert_ne!(write("x"), write("y"));
    let grep = |input: Value| intent(&Call::new("Grep", input));
    assert_eq!(
        grep(json!({"pattern": "x", "head_limit": 5})),
        grep(json!({"pattern": "x", "output_mode": "content"}))
    );
    assert_ne!(grep(json!({"pattern": "x"})), grep(json!({"pattern": "y"})));
    assert_ne!(
        intent(&Call::new("get_user", json!({"user_id": "1"}))),
        intent(&Call::new("get_user", json!({"user_id": "2"})))
    );
    assert_ne!(
        intent(&Call::new("list", json!({"page": 1}))),
        intent(&Call::new("list", json!({"page": 2})))
    );
}

#[test]
fn one_cause_looks_alike_whatever_changes_from_run_to_run() {
    for (a, b) in [
        ("bash: line 1: cargo: command not found", "/bin/sh: 1: cargo: command not found"),
        ("\u{1b}[31merror\u{1b}[0m: port 3000 is in use", "error: port  3001 is in use"),
        (
            "2024-05-01T10:00:00Z ERROR timed out after 30.5s",
            "2025-06-02T11:22:33Z ERROR timed out after 12s",
        ),
        ("pid 123 died at 0x7ffe12", "pid 9 died at 0x1"),
        ("/home/a/x/src/main.rs:10:5: error", "/tmp/b/src/main.rs:99: error"),
        (
            "request 550e8400-e29b-41d4-a716-446655440000 failed",
            "request 123e4567-e89b-12d3-a456-426614174000 failed",
        ),
        ("connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED 127.0.0.1:5433"),
        ("commit 1a2b3c4d not found", "commit ffee1122 not found"),
        ("can't open /tmp/tmpab12cd/f9x8", "can't open /tmp/tmpzz/q1w2"),
        ("GET https://a.io/v1/users/1 failed", "GET https://a.io/v1/users/2?x=3 failed"),
        ("Error: No module named 'torch'", "error: no module named \"torch\""),
        ("FAILED in 3.21s", "failed in 0.05s"),
        ("  x  ", "x"),
        ("took 500 ms", "took 404 ms"),
        ("line 12, column 4", "line 7, column 11"),
    ] {
        assert_eq!(mask(a), mask(b), "{a} | {b}");
    }
}

#[test]
fn two_causes_differ() {
    for (a, b) in [
        ("cargo: command not found", "npm: command not found"),
        ("No module named 'torch'", "No module named 'numpy'"),
        ("error[E0308]: mismatched types", "error[E0382]: mismatched types"),
        ("error TS2307: x", "error TS2345: x"),
        ("HTTP 503", "HTTP 404"),
        ("ENOENT: no such file, open 'a.json'", "EACCES: no such file, open 'a.json'"),
        ("cat: src/a.rs: No such file", "cat: src/b.rs: No such file"),
        ("Could not resolve host: a.io", "Could not resolve host: b.io"),
        ("https://a.io/x failed", "https://b.io/x failed"),
        ("python2: not found", "python3: not found"),
        ("/usr/bin/foo: cannot open", "/usr/bin/bar: cannot open"),
        ("assert a == b", "assert a == c"),
        ("expected ')', found '{'", "expected ';', found '{'"),
        ("undefined function foo/0", "undefined function bar/0"),
        ("ping 10.0.0.1 failed", "ping 10.0.0.2 failed"),
        ("no file:///a/b.ts", "no file:///a/c.ts"),
        ("connect to 10.0.0.1:80 failed", "connect to 10.0.0.2:80 failed"),
        ("<title>503 Service Unavailable</title>", "<title>500 Service Unavailable</title>"),
        ("{\"error\":\"a\"}", "{\"error\":\"b\"}"),
    ] {
        assert_ne!(mask(a), mask(b), "{a} | {b}");
    }
    assert_ne!(cause("shell", Kind::Network, "x"), cause("shell", Kind::Timeout, "x"));
    assert_ne!(cause("shell", Kind::Network, "x"), cause("edit", Kind::Network, "x"));
    assert_eq!(cause("Edit", Kind::Network, "x"), cause("edit", Kind::Network, "X"));
}

#[test]
fn all_shells_are_one_family() {
    assert_eq!(family(&Call::shell("cargo build")), "shell");
    assert_eq!(family(&Call::new("execute_bash", json!({"command": "ls"}))), "shell");
    assert_eq!(family(&Call::new("Edit", json!({}))), "edit");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec(("command|path|edits|[a-z]{0,4}", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_call_has_names(tool in "\\PC{0,12}", input in any_json()) {
        let each = Call::new(tool, input);
        let _ = (call(&each), intent(&each), family(&each), crate::nature::of(&each), crate::nature::targets(&each));
        let _ = (crate::nature::approach(&each), crate::nature::waits(&each), crate::nature::moves_world(&each));
    }

    #[test]
    fn any_line_has_an_intent_and_a_mask(line in "\\PC{0,80}") {
        let each = Call::shell(line.as_str());
        let _ = (call(&each), intent(&each), crate::nature::of(&each), crate::nature::approach(&each));
        let masked = mask(&line);
        prop_assert!(!masked.contains("  ") && masked == masked.trim());
    }

    #[test]
    fn the_order_of_keys_does_not_matter(fields in prop::collection::vec(("[a-z]{1,5}", "[a-z]{1,5}"), 1..5)) {
        let mut once: Vec<_> = fields;
        once.sort();
        once.dedup_by(|a, b| a.0 == b.0);
        let object = |fields: Vec<(String, String)>| {
            Call::new("t", Value::Object(fields.into_iter().map(|(k, v)| (k, Value::String(v))).collect()))
        };
        let backwards: Vec<_> = once.iter().cloned().rev().collect();
        prop_assert_eq!(call(&object(once)), call(&object(backwards)));
    }

    #[test]
    fn redundant_blanks_do_not_matter(words in prop::collection::vec("[a-z]{1,6}", 1..6), gap in "[ \t]{1,4}") {
        let (a, b) = (Call::shell(words.join(" ")), Call::shell(words.join(&gap) + "\n"));
        prop_assert_eq!(call(&a), call(&b));
        prop_assert_eq!(intent(&a), intent(&b));
    }

    #[test]
    fn another_operand_is_another_call_and_another_intent(a in "[a-z]{1,8}", b in "[a-z]{1,8}") {
        prop_assume!(a != b);
        let (x, y) = (Call::shell(format!("rm {a}")), Call::shell(format!("rm {b}")));
        prop_assert_ne!(call(&x), call(&y));
        prop_assert_ne!(intent(&x), intent(&y));
    }

    #[test]
    fn another_new_text_is_another_call(a in "\\PC{0,8}", b in "\\PC{0,8}") {
        prop_assume!(a != b);
        let edit = |new: &str| Call::new("Edit", json!({"file_path": "f", "old_string": "o", "new_string": new}));
        prop_assert_ne!(call(&edit(&a)), call(&edit(&b)));
        prop_assert_eq!(intent(&edit(&a)), intent(&edit(&b)));
    }
}
