//! `unstuck diagnose --jsonl`: one answer for each line, whatever the line looks like.

use serde_json::{Value, json};

use crate::world::World;

#[track_caller]
fn batch(lines: impl AsRef<[u8]>) -> Vec<Value> {
    World::empty().run(&["diagnose", "--jsonl"], lines).json_lines()
}

/// Each answer in a few words: its id and kind, or the line of its error.
#[track_caller]
fn check(lines: impl AsRef<[u8]>, expected: &[&str]) {
    let said: Vec<String> = batch(lines).iter().map(in_short).collect();
    assert_eq!(said, expected);
}

fn in_short(answer: &Value) -> String {
    match &answer["error"] {
        Value::String(why) => format!("line {}: {why}", answer["line"]),
        _ => format!("{} {}", answer["id"], answer["kind"].as_str().unwrap()),
    }
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn an_answer_has_these_keys_in_this_order_and_no_others() {
    let failure = json!({"id": 7, "tool": "Bash", "command": "cat x", "exit_code": 1, "stderr": "cat: x: No such file or directory"});
    let answer = World::empty().answer(&failure);
    let expected = "id ok kind stage confidence rule evidence evidence_line subject transient fix_by effect retry errorType \
                    category tag retryable fingerprint recommendations";
    assert_eq!(keys(&answer).join(" "), expected);
    assert_eq!(keys(&answer["retry"]), ["same_call", "wait_ms"]);
    assert_eq!(keys(&answer["fingerprint"]), ["call", "intent", "cause"]);
    assert_eq!(keys(&batch("oops")[0]), ["line", "error"]);
}

#[test]
fn a_permanent_failure_is_answered_in_full() {
    let failure = json!({"id": "a", "command": "cat x", "exit_code": 1, "stderr": "cat: x: No such file or directory\n"});
    let mut answer = World::empty().answer(&failure);
    answer.as_object_mut().unwrap().remove("fingerprint");
    assert_eq!(
        answer,
        json!({
            "id": "a", "ok": false, "kind": "path_not_found", "stage": "exited", "confidence": 0.45,
            "rule": "errno.no-such-file", "evidence": "cat: x: No such file or directory", "evidence_line": 1,
            "subject": "x", "transient": false, "fix_by": "model", "effect": "nothing",
            "retry": {"same_call": "if_changed", "wait_ms": null}, "errorType": "logical", "category": "code",
            "tag": "exec_failed", "retryable": false,
            "recommendations": ["Search for it before asking again: list the parent directory or find it by name, and check the working directory."],
        })
    );
}

#[test]
fn a_transient_failure_says_when_to_come_back() {
    let failure = json!({"tool": "http", "http_status": 429, "text": "HTTP/1.1 429 Too Many Requests\nRetry-After: 7\n"});
    let answer = World::empty().answer(&failure);
    assert_eq!(answer["retry"], json!({"same_call": "after", "wait_ms": 7000}));
    assert_eq!((&answer["transient"], &answer["retryable"]), (&json!(true), &json!(true)));
}

#[test]
fn what_is_unknown_is_null_and_what_is_fine_is_true() {
    let unknown = World::empty().answer(&json!({"exit_code": 1, "text": "hm"}));
    assert_eq!([&unknown["ok"], &unknown["retryable"], &unknown["rule"]], [&Value::Null; 3]);
    let fine = World::empty().answer(&json!({"exit_code": 0, "text": "hm"}));
    assert_eq!([&fine["ok"], &fine["stage"]], [&json!(true), &Value::Null]);
}

#[test]
fn a_bad_line_is_named_and_the_rest_goes_on() {
    check(
        "{\"id\":1,\"exit_code\":0}\noops\n{\"id\":2,\"exit_code\":0}\n{\"exit_code\":\n[1]\n{\"id\":3}\n{\"id\":4,\"exit_code\":0}\n",
        &[
            "1 not_an_error",
            "line 2: not JSON: expected value at column 1",
            "2 not_an_error",
            "line 4: not JSON: EOF while parsing a value at column 13",
            "line 5: expected a JSON object, found a list",
            "line 6: nothing to judge: give at least one of exit_code, signal, http_status, stdout, stderr, text, \
             timed_out, interrupted",
            "4 not_an_error",
        ],
    );
}

#[test]
fn line_ends_blank_lines_and_a_byte_order_mark_do_not_matter() {
    check(
        "\u{feff}{\"id\":1,\"exit_code\":0}\r\n\r\n   \n\n{\"id\":2,\"exit_code\":0}\r\nx\r\n{\"id\":3,\"exit_code\":0}",
        &[
            "1 not_an_error",
            "2 not_an_error",
            "line 6: not JSON: expected value at column 1",
            "3 not_an_error",
        ],
    );
    check("", &[]);
    check("\n\r\n", &[]);
}

#[test]
fn every_field_may_be_null() {
    let fields = ["id", "tool", "input", "command", "exit_code", "http_status", "stdout", "stderr", "text"];
    let mut failure: Value = fields.iter().map(|field| (*field, Value::Null)).collect();
    failure["timed_out"] = Value::Null;
    failure["interrupted"] = Value::Null;
    failure["signal"] = json!(9);
    assert_eq!(World::empty().answer(&failure)["kind"], "out_of_resources");
}

#[test]
fn every_field_may_be_written_in_another_way() {
    let rows = [
        (json!({"exit_code": "127"}), "command_not_found"),
        (json!({"exit_code": 127.0}), "command_not_found"),
        (json!({"signal": "SIGSEGV"}), "crash"),
        (json!({"signal": "11"}), "crash"),
        (json!({"http_status": "503"}), "server_error"),
        (json!({"timed_out": true, "exit_code": 143}), "timeout"),
        (json!({"interrupted": true, "exit_code": 130}), "aborted"),
        (json!({"timed_out": false, "interrupted": false, "exit_code": 0}), "not_an_error"),
        (json!({"command": ["ls", "x"], "exit_code": 127}), "command_not_found"),
        (json!({"input": {"command": "grep x y"}, "tool": "Bash", "exit_code": 1}), "not_an_error"),
        (json!({"input": "{\"command\":\"grep x y\"}", "tool": "Bash", "exit_code": 1}), "not_an_error"),
        (json!({"input": "grep x y", "exit_code": 1}), "not_an_error"),
        (json!({"command": "grep x y", "exit_code": 1}), "not_an_error"),
        (
            json!({"tool": "shell", "exit_code": 128, "stdout": ["fatal: not a git repository"]}),
            "path_not_found",
        ),
        (json!({"exit_code": 128, "stderr": {"message": "fatal: not a git repository"}}), "path_not_found"),
        (json!({"exit_code": 0, "unheard_of": {"deep": [1, 2]}}), "not_an_error"),
    ];
    let lines: String = rows.iter().map(|(line, _)| format!("{line}\n")).collect();
    let kinds: Vec<Value> = batch(lines).iter().map(|answer| answer["kind"].clone()).collect();
    assert_eq!(kinds, rows.map(|(_, kind)| Value::from(kind)));
}

#[test]
fn a_field_that_cannot_be_is_named() {
    check(
        "{\"exit_code\":\"one\"}\n{\"signal\":4000}\n{\"http_status\":70000}\n",
        &[
            "line 1: exit_code: expected a whole number, found \"one\"",
            "line 2: signal: expected a signal's number or name, found 4000",
            "line 3: http_status: expected an HTTP status, found 70000",
        ],
    );
}

#[test]
fn text_that_is_no_unicode_is_still_read() {
    let texts: [&[u8]; 5] = [
        br"half a pair \ud800 \udc00",
        br"escaped \u0000 nul",
        b"raw \0 nul, raw \x1b[31m colour, raw \t tab",
        b"latin \xe9\xff\xc3",
        "\u{202e}\u{7f}😀".as_bytes(),
    ];
    for text in texts {
        let line =
            [&br#"{"exit_code":128,"text":""#[..], text, br#" fatal: not a git repository"}"#].concat();
        assert_eq!(batch(line)[0]["rule"], "git.not-a-repository", "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn an_id_comes_back_as_it_was() {
    for id in [json!(1), json!("x"), json!(null), json!([1, {"a": 2}]), json!(1.5), json!(u64::MAX)] {
        assert_eq!(World::empty().answer(&json!({"id": id, "exit_code": 0}))["id"], id);
    }
}

#[test]
fn fingerprints_do_not_depend_on_the_process_the_key_order_or_the_machine() {
    let one = json!({"tool": "T", "input": {"a": 1, "b": [2]}, "text": "x"});
    let other = json!({"text": "x", "input": {"b": [2], "a": 1.0}, "tool": "T"});
    let (one, other) = (World::empty().answer(&one), World::empty().answer(&other));
    assert_eq!(one["fingerprint"], other["fingerprint"]);
}
