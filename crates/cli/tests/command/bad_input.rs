//! Too much, too long, cut, broken and hostile: there is a clear answer, and memory stays bounded.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::Child;
use std::thread;

use serde_json::Value;

use crate::world::{Said, World};

const MEGABYTE: usize = 1 << 20;
/// What unstuck may use at most, whatever it reads.
const MEMORY_MAX_KB: u64 = 64 * 1024;

/// The most memory that a running child has used so far; only Linux tells.
fn peak_kb(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.map_or(0, |rest| rest.trim().trim_end_matches(" kB").parse().unwrap());
    assert!(peak > 0 || cfg!(not(target_os = "linux")), "nothing was measured");
    peak
}

/// Pipes `piece` in until `size` bytes have passed, then `end`; checks the memory, and returns the answer.
#[track_caller]
fn flood(piece: &[u8], size: usize, end: &[u8]) -> Value {
    let world = World::empty();
    let mut child = world.command(&["diagnose", "--json", "--exit-code", "128"]).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let piece = piece.repeat(MEGABYTE.div_ceil(piece.len()));
    (0..size.div_ceil(piece.len())).for_each(|_| pipe.write_all(&piece).unwrap());
    pipe.write_all(end).unwrap();
    let peak = peak_kb(&child);
    assert!(peak < MEMORY_MAX_KB, "{peak} kB");
    drop(pipe);
    Said::by(child).json()
}

fn diagnose(text: impl AsRef<[u8]>) -> Value {
    World::empty().run(&["diagnose", "--json", "--exit-code", "128"], text).json()
}

/// A log whose cause stands in the middle, with harmless lines around it and what follows from the cause at its end.
fn long_log() -> String {
    let mut log: Vec<String> = (0..10_000)
        .map(|i| match i % 5 {
            0 => format!("   Compiling dep-{i} v0.{i}.0"),
            1 => format!("warning: unused variable: `error_{i}`"),
            2 => format!("  --> src/error.rs:{i}:9"),
            3 => format!("test test_timeout_{i} ... ok"),
            _ => format!("[{i}/10000] 0 errors so far"),
        })
        .collect();
    log[5_000] = "error[E0432]: unresolved import `serde`".to_owned();
    log[9_998] = "error: could not compile `app` (bin \"app\") due to 1 previous error".to_owned();
    log[9_999] = "make: *** [Makefile:3: all] Error 101".to_owned();
    log.join("\n") + "\n"
}

#[test]
fn sixty_four_megabytes_are_read_in_little_memory_and_the_cause_at_their_end_is_found() {
    let answer =
        flood(b"[ 42%] Building CXX object src/a.cc.o\n", 64 * MEGABYTE, b"fatal: not a git repository\n");
    assert_eq!(answer["rule"], "git.not-a-repository");
}

#[test]
fn a_line_of_a_hundred_megabytes_is_read_in_little_memory() {
    let answer = flood(b"x", 100 * MEGABYTE, b" fatal: not a git repository");
    assert_eq!((&answer["rule"], &answer["evidence_line"]), (&"git.not-a-repository".into(), &1.into()));
    let evidence = answer["evidence"].as_str().unwrap();
    assert!(evidence.chars().count() < 700 && evidence.contains("fatal: not a git repository"), "{evidence}");
}

#[test]
fn sixty_four_megabytes_of_a_command_are_passed_on_in_little_memory() {
    let script = format!("yes 'a line like any other' | head -c {}; read end; exit 3", 64 * MEGABYTE);
    let world = World::empty();
    let mut child = world.command(&["diagnose", "--", "sh", "-c", &script]).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut buffer = vec![0; MEGABYTE];
    let mut passed = 0;
    while passed < 64 * MEGABYTE {
        let count = output.read(&mut buffer).unwrap();
        assert_ne!(count, 0, "it ended after {passed} bytes");
        passed += count;
    }
    let peak = peak_kb(&child);
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!((passed, Said::by(child).exit), (64 * MEGABYTE, 3));
    assert!(peak < MEMORY_MAX_KB, "{peak} kB");
}

#[test]
fn the_root_cause_is_found_in_the_middle_of_ten_thousand_lines() {
    let answer = World::empty().run(&["diagnose", "--json", "--exit-code", "2"], long_log()).json();
    assert_eq!(answer["evidence"], "error[E0432]: unresolved import `serde`");
    assert_eq!(answer["evidence_line"], 5001);
}

#[test]
fn an_error_repeated_past_all_patience_is_still_read_at_the_end() {
    let world = World::empty().with(
        "last.toml",
        "[[rule]]\nid = \"my.last\"\nkind = \"auth\"\nany = [\"login refused\"]\npick = \"last\"\n",
    );
    let log: String = (1..=2_000).map(|i| format!("attempt {i}: login refused\n")).collect();
    let answer = world.run(&["diagnose", "--json", "--rules", "last.toml", "--exit-code", "1"], log).json();
    assert_eq!(
        (&answer["evidence"], &answer["evidence_line"]),
        (&"attempt 2000: login refused".into(), &2000.into())
    );
}

/// What is said of a text that arrives in pieces of this size.
///
/// Unlike a pipe, a datagram socket hands over exactly the pieces that were put in; an empty one is the end.
#[track_caller]
fn diagnose_in_pieces(text: &[u8], size: usize) -> Value {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    let world = World::empty();
    let mut command = world.command(&["diagnose", "--json", "--exit-code", "128"]);
    let child = command.stdin(OwnedFd::from(theirs)).spawn().unwrap();
    for piece in text.chunks(size).chain([&b""[..]]) {
        assert_eq!(ours.send(piece).unwrap(), piece.len());
    }
    Said::by(child).json()
}

#[test]
fn where_the_output_is_cut_makes_no_difference() {
    let text =
        "\x1b[31mcafé 日本\x1b[0m\r\n1 warning\r\nfatal: not a git repository: '\u{1f600}'\r\nlast words";
    for size in [1, 2, 3, 5, 7, 11, 13, 17, 31, 61] {
        assert_eq!(diagnose_in_pieces(text.as_bytes(), size), diagnose(text), "in pieces of {size}");
    }
}

#[test]
fn a_cause_at_the_seam_of_two_pieces_of_an_endless_line_is_found() {
    for before in [65_000, 65_510, 65_520, 65_530, 65_536, 130_000] {
        let (before, after) = ("y ".repeat(before / 2), " z".repeat(45_000));
        let text = format!("first\n{before}fatal: not a git repository{after}\nlast\n");
        for size in [4_096, 65_535, 65_536, 100_001] {
            let answer = diagnose_in_pieces(text.as_bytes(), size);
            let seen = (&answer["rule"], &answer["evidence_line"]);
            assert_eq!(
                seen,
                (&"git.not-a-repository".into(), &2.into()),
                "after {} in pieces of {size}",
                before.len()
            );
        }
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let failures = "{\"exit_code\":1}\n".repeat(5_000);
    for (args, input) in [(&["rules", "list", "--json"][..], ""), (&["diagnose", "--jsonl"], &failures)] {
        let world = World::empty();
        let mut child = world.command(args).spawn().unwrap();
        let mut input_pipe = child.stdin.take().unwrap();
        let mut first = String::new();
        thread::scope(|scope| {
            scope.spawn(move || input_pipe.write_all(input.as_bytes()).ok());
            BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        });
        assert!(serde_json::from_str::<Value>(&first).is_ok(), "{first}");
        assert_eq!(Said::by(child).to_string(), "--- exit 0", "{args:?}");
    }
}

#[cfg(target_os = "linux")] // Elsewhere `script` takes other arguments.
#[test]
fn a_terminal_without_anything_to_read_gets_a_hint_instead_of_silence() {
    let mut command = std::process::Command::new("script");
    let line = format!("'{}' diagnose", env!("CARGO_BIN_EXE_unstuck"));
    command.args(["-q", "-e", "-c", &line, "/dev/null"]);
    // `script` lends a terminal; where it is not installed there is none to try.
    let Ok(output) = command.output() else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("standard input is a terminal") && said.contains("hint: "), "{said}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn garbage_is_unknown_and_nothing_breaks() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    })
    .take(MEGABYTE)
    .collect();
    let broken: [&[u8]; 7] = [
        &noise,
        &[0; 5_000],
        &[0xff; 5_000],
        &[0x1b; 5_000],
        b"\r\r\r\r",
        &[b'\n'; 5_000],
        b"\xed\xa0\x80\xc0\x80",
    ];
    for bytes in broken {
        let answer = diagnose(bytes);
        assert_eq!((&answer["kind"], &answer["ok"]), (&"unknown".into(), &Value::Null), "{answer}");
        let mut said = World::empty().run(&["diagnose", "--exit-code", "1"], bytes);
        assert_eq!(said.exit, 0);
        said.stdout.retain(|byte| *byte != b'\n');
        assert!(!said.stdout().contains(char::is_control), "{said}");
    }
}

#[test]
fn colours_and_wide_characters_hide_nothing() {
    let utf16 =
        |text: &str, order: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(order).collect::<Vec<u8>>();
    let line = "\u{feff}fatal: not a git repository\r\n";
    let texts = [
        b"\x1b[1m\x1b[31mfatal\x1b[0m: not a \x1b[4mgit\x1b[24m repository\x1b[K\n".to_vec(),
        b"\x1b]8;;https://x.example\x1b\\fatal: not a git repository\x1b]8;;\x1b\\\n".to_vec(),
        utf16(line, u16::to_le_bytes),
        utf16(line, u16::to_be_bytes),
        line.as_bytes().to_vec(),
    ];
    for text in texts {
        assert_eq!(diagnose(text)["evidence"], "fatal: not a git repository");
    }
}

#[test]
fn quoted_evidence_cannot_steer_the_terminal() {
    let hostile = [
        "fatal: not a git repository \x1b[2J\x1b]0;owned\x07\x1bPq\x1b\\ \u{9b}31m \u{7}\u{8}\u{7f} \u{202e}txt.exe\u{2066}",
        "fatal: not a git repository \x1b",
        "10 %\r99 %\rno rule knows \u{7}\u{9b}this\x1b[5m",
    ];
    for text in hostile {
        let said = World::empty().run(&["diagnose", "--exit-code", "128"], text);
        let steers = |sign: char| (sign.is_control() && sign != '\n') || "\u{202e}\u{2066}".contains(sign);
        assert!(!said.stdout().contains(steers), "{:?}", said.stdout());
        assert_eq!(said.stdout().lines().filter(|line| line.starts_with("  > ")).count(), 1, "{said}");
    }
}

#[test]
fn of_a_progress_bar_only_what_was_drawn_last_is_quoted() {
    assert_eq!(diagnose("10 %\r50 %\rgave up at 99 %\r\n")["evidence"], "gave up at 99 %");
}

#[test]
fn a_name_of_ten_kilobytes_does_not_push_the_message_out_of_the_quote() {
    let answer = diagnose(format!("cat: {}: No such file or directory\n", "a".repeat(10_240)));
    assert_eq!(answer["kind"], "path_not_found");
    let evidence = answer["evidence"].as_str().unwrap();
    assert!(evidence.starts_with('…') && evidence.ends_with("a: No such file or directory"), "{evidence}");
    assert!(evidence.chars().count() < 700);
}

#[test]
fn an_answer_that_cannot_be_written_is_our_failure_and_is_said() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else { return };
    let world = World::empty();
    let child = world.command(&["rules", "list"]).stdout(full).spawn().unwrap();
    Said::by(child).complains(125, &["unstuck: could not write: "]);
}
