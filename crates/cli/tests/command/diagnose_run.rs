//! `unstuck diagnose -- COMMAND`: the command is not disturbed, and its failure is explained beside it.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::PermissionsExt;

use crate::world::{Said, World};

/// Runs a script and returns what was said, with the explanation alone on standard error: the script's own is checked here.
#[track_caller]
fn run(script: &str, own_stderr: &str) -> Said {
    let mut said = World::empty().run(&["diagnose", "--", "sh", "-c", script], "");
    let explanation = said.stderr.strip_prefix(own_stderr.as_bytes()).map(<[u8]>::to_vec);
    said.stderr = explanation.unwrap_or_else(|| panic!("{own_stderr:?} does not come first:\n{said}"));
    said
}

/// The first line of the explanation, and the exit code.
#[track_caller]
fn check(args: &[&str], first_line: &str, exit: i32) {
    let said = World::empty().run(&[&["diagnose"], args].concat(), "");
    assert_eq!((said.stderr().lines().next().unwrap(), said.exit), (first_line, exit), "{said}");
    assert_eq!(said.stdout(), "");
}

#[test]
fn a_failure_is_explained_on_standard_error_beside_the_commands_own_output() {
    let said = World::empty().run(&["diagnose", "--", "cat", "missing.txt"], "");
    insta::assert_snapshot!(said, @r"
    --- stderr
    cat: missing.txt: No such file or directory
    ✗ path_not_found: a file or another named thing does not exist (missing.txt)
      > cat: missing.txt: No such file or directory
        line 1 of stderr, `cat missing.txt`
      retry   not until something changes (fixed by: the caller)
      next    Search for it before asking again: list the parent directory or find it by name, and check the working directory.
      known   errno.no-such-file, 45 %
    --- exit 1
    ");
}

#[test]
fn a_success_keeps_its_output_and_nothing_is_wrong() {
    let said = run("echo fine; echo careful >&2", "careful\n");
    assert_eq!(
        said.to_string(),
        "--- stdout\nfine\n--- stderr\n✓ not_an_error: nothing is wrong\n--- exit 0"
    );
}

#[test]
fn output_is_passed_on_byte_for_byte_even_when_it_is_no_text() {
    let said = run(r"printf '\000\377\033[31m\r\n\n\302'; printf 'no newline' >&2; exit 3", "no newline");
    assert_eq!(said.stdout, b"\0\xff\x1b[31m\r\n\n\xc2");
    assert_eq!(said.exit, 3);
}

#[test]
fn a_megabyte_of_every_byte_arrives_whole() {
    let bytes: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let world = World::empty().with("bytes", &bytes);
    assert!(world.run(&["diagnose", "--", "cat", "bytes"], "").stdout == bytes, "the bytes differ");
}

#[test]
fn the_command_reads_our_standard_input() {
    let said = World::empty().run(&["diagnose", "--", "cat"], "handed on");
    assert_eq!((said.stdout(), said.exit), ("handed on", 0));
}

#[test]
fn every_exit_code_is_kept() {
    for code in [0, 1, 2, 3, 77, 124, 125, 126, 127, 128, 137, 255] {
        assert_eq!(run(&format!("exit {code}"), "").exit, code);
    }
}

#[test]
fn a_signal_becomes_128_and_its_number() {
    for (signal, exit) in [("TERM", 143), ("KILL", 137), ("SEGV", 139), ("ABRT", 134), ("PIPE", 141)] {
        assert_eq!(run(&format!("ulimit -c 0; kill -{signal} $$"), "").exit, exit, "{signal}");
    }
}

#[test]
fn a_missing_program_is_127_and_one_that_may_not_run_is_126() {
    check(
        &["--", "surely-no-such-program"],
        "✗ command_not_found: the program does not exist here (surely-no-such-program)",
        127,
    );
    let world = World::empty().with("script", "#!/bin/sh\n");
    fs::set_permissions(world.path("script"), fs::Permissions::from_mode(0o644)).unwrap();
    world.run(&["diagnose", "--", "./script"], "").complains(126, &["✗ permission: ", "./script"]);
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_124() {
    check(&["--timeout", "0.1", "--", "sleep", "30"], "✗ timeout: it ran out of time", 124);
}

#[test]
fn a_time_limit_that_can_never_or_has_always_passed_is_a_usage_error() {
    for limit in ["0", "nan", "inf", "1e300", "-1", "soon", ""] {
        let limit = format!("--timeout={limit}");
        World::empty()
            .run(&["diagnose", &limit, "--", "touch", "ran"], "")
            .complains(2, &["a number of seconds above 0"]);
    }
}

#[test]
fn json_goes_to_standard_error_too_so_that_the_commands_output_stays_its_own() {
    let said = World::empty().run(&["diagnose", "--json", "--", "sh", "-c", "echo out; exit 1"], "");
    let answer: serde_json::Value = serde_json::from_str(said.stderr()).unwrap();
    assert_eq!((said.stdout(), said.exit, &answer["stage"]), ("out\n", 1, &"exited".into()));
}

#[test]
fn the_explanation_speaks_the_language_that_is_asked_for() {
    let world = World::empty();
    let chinese = "✗ path_not_found: ";
    let asked = world.run(&["--lang", "zh", "diagnose", "--", "cat", "missing.txt"], "");
    asked.complains(1, &[chinese, "  重试  有所改变之前不要重试", "stderr 第 1 行"]);
    let after = world.run(&["diagnose", "--lang", "zh", "--", "cat", "missing.txt"], "");
    assert_eq!(after, asked);
    let mut command = world.command(&["diagnose", "--", "cat", "missing.txt"]);
    let native = Said::by(command.env("LC_ALL", "zh_CN.UTF-8").spawn().unwrap());
    native.complains(1, &["  重试  有所改变之前不要重试"]);
}

#[test]
fn the_exit_code_is_kept_where_nobody_reads_the_explanation() {
    let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else { return };
    let world = World::empty();
    let mut command = world.command(&["diagnose", "--", "sh", "-c", "exit 7"]);
    assert_eq!(Said::by(command.stderr(full).spawn().unwrap()).exit, 7);
}

#[test]
fn a_command_line_cannot_steer_the_terminal() {
    let said =
        World::empty().run(&["diagnose", "--", "sh", "-c", "echo lost >&2; exit 9 # \x1b[2J\nnext"], "");
    assert!(!said.stderr().contains('\x1b'), "{said:?}");
    said.complains(9, &["`sh -c 'echo lost >&2; exit 9 # [2J next'`"]);
}

#[test]
fn a_failure_behind_a_pipe_is_seen_although_it_exits_with_0() {
    let said = run("mkdir missing/folder 2>&1 | tail -n 3", "");
    said.complains(0, &["✗ path_not_found", "line 1 of stdout"]);
}
