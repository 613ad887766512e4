//! What a command takes of our input, and what it leaves. Real pipes, files and sockets.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

fn example() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    exe.parent().and_then(|deps| deps.parent()).unwrap().join("examples/through")
}

/// Runs `script` twice through the example, then `cat`, all on the same input. Tells the last words of the example's lines
/// and all that was printed.
fn told(script: &str, input: impl Into<Stdio>) -> (Vec<String>, String) {
    let seen = Command::new("sh")
        .args(["-c", "\"$THROUGH\" sh -c \"$1\"; cat", "sh", script])
        .env("THROUGH", example())
        .env("THROUGH_INPUT", "1")
        .env("THROUGH_TIMES", "2")
        .stdin(input)
        .output()
        .unwrap();
    let said = String::from_utf8(seen.stderr).unwrap();
    let said = said.lines().map(|line| line.rsplit(", ").next().unwrap().to_owned()).collect();
    (said, String::from_utf8(seen.stdout).unwrap())
}

/// Checks the same with a pipe and with a socket, in which `text` comes in two parts.
#[track_caller]
fn check(script: &str, text: &str, expected: [&str; 2], printed: &str) {
    let (reader, writer) = std::io::pipe().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    for (input, mut output) in [(OwnedFd::from(reader), OwnedFd::from(writer)), (theirs.into(), ours.into())]
        .map(|(input, output)| (input, std::fs::File::from(output)))
    {
        let text = text.to_owned();
        let writer = thread::spawn(move || {
            let (one, two) = text.split_at(text.len() / 2);
            // Nobody has to read it.
            let _ = output.write_all(one.as_bytes());
            let _ = output.write_all(two.as_bytes());
        });
        assert_eq!(told(script, input), (expected.map(str::to_owned).to_vec(), printed.to_owned()));
        writer.join().unwrap();
    }
}

const USED: &str = "input used";
const NOT_USED: &str = "input not used";

#[test]
fn a_command_that_reads_nothing_leaves_everything() {
    check("echo ran", "one\ntwo\n", [NOT_USED, NOT_USED], "ran\nran\none\ntwo\n");
    let long = "0123456789abcde\n".repeat(20_000);
    check("sleep 0.1; exit 1", &long, [NOT_USED, NOT_USED], &long);
}

#[test]
fn a_line_that_was_read_is_used_and_the_next_is_not() {
    check("read line; echo \"<$line>\"", "one\ntwo\nthree\n", [USED, USED], "<one>\n<two>\nthree\n");
}

#[test]
fn all_that_was_read_is_used_and_then_there_is_nothing_to_use() {
    let long = "0123456789abcde\n".repeat(20_000);
    check("cat", &long, [USED, NOT_USED], &long);
    check("wc -c", &long, [USED, NOT_USED], "320000\n0\n");
}

#[test]
fn an_empty_input_is_not_used() {
    check("cat; echo end", "", [NOT_USED, NOT_USED], "end\nend\n");
}

#[test]
fn a_command_that_closes_its_input_leaves_everything() {
    check("exec <&-; sleep 0.1", "one\n", [NOT_USED, NOT_USED], "one\n");
}

#[test]
fn an_input_into_which_nobody_writes_does_not_keep_a_command_from_ending() {
    let (reader, writer) = std::io::pipe().unwrap();
    let child = Command::new(example())
        .args(["sh", "-c", "exit 3"])
        .env("THROUGH_INPUT", "1")
        .stdin(reader)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let seen = child.wait_with_output().unwrap();
    drop(writer);
    assert_eq!(String::from_utf8_lossy(&seen.stderr), "through: Exited(3) after 0 bytes, input not used\n");
}

#[test]
fn of_a_file_the_place_tells() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"one\ntwo\nthree\n").unwrap();
    let open = || std::fs::File::open(file.path()).unwrap();
    let words = |words: [&str; 2]| words.map(str::to_owned).to_vec();
    assert_eq!(told("true", open()), (words([NOT_USED, NOT_USED]), "one\ntwo\nthree\n".to_owned()));
    assert_eq!(told("read line", open()), (words([USED, USED]), "three\n".to_owned()));
    assert_eq!(told("cat", open()), (words([USED, NOT_USED]), "one\ntwo\nthree\n".to_owned()));
}

#[test]
fn nothing_can_be_used_of_the_empty_device() {
    let words = [NOT_USED, NOT_USED].map(str::to_owned).to_vec();
    assert_eq!(told("cat", Stdio::null()), (words, String::new()));
}
