//! Real processes, real signals.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use unstuck_exec::{Ending, Job, Stream};

/// Far more than anything here takes, far less than for ever.
const TOO_LONG: Duration = Duration::from_secs(20);

fn sh(script: &str) -> Job {
    Job::new("sh", ["-c", script]).capture_only().without_input()
}

#[track_caller]
fn check(job: &Job, ending: Ending, stdout: &str, stderr: &str) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let run = job.run(|stream, bytes| match stream {
        Stream::Stdout => out.extend_from_slice(bytes),
        Stream::Stderr => err.extend_from_slice(bytes),
        Stream::Merged => panic!("nothing here has a terminal"),
    });
    let seen = (run.ending, String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
    assert_eq!(seen, (ending, stdout.into(), stderr.into()));
    assert!(run.took < TOO_LONG, "took {:?}", run.took);
}

#[test]
fn a_command_reads_what_it_is_given_and_then_the_end() {
    let long = "line\n".repeat(100_000);
    check(&sh("cat").with_input("one line\n"), Ending::Exited(0), "one line\n", "");
    check(&sh("wc -c").with_input(long.clone()), Ending::Exited(0), "500000\n", "");
    check(&sh("head -n 1 | cat; exit 4").with_input(long.clone()), Ending::Exited(4), "line\n", "");
    check(&sh("exit 0").with_input(long), Ending::Exited(0), "", "");
}

#[test]
fn an_exit_code_is_reported_as_it_is() {
    for code in [0, 1, 2, 3, 124, 127, 130, 255] {
        check(&sh(&format!("exit {code}")), Ending::Exited(code), "", "");
    }
}

#[test]
fn something_else_is_done_while_it_runs_and_neither_waits_for_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let sign = folder.path().join("sign");
    let waits = sh(&format!("until test -e '{}'; do sleep 0.01; done; echo seen", sign.display()));
    let mut seen = Vec::new();
    let run =
        waits.run_while(|| std::fs::write(&sign, "").unwrap(), |_, bytes| seen.extend_from_slice(bytes));
    assert_eq!((run.ending, &*seen), (Ending::Exited(0), &b"seen\n"[..]));

    let long = Duration::from_secs(2);
    let job = sh("sleep 9").timeout(Duration::from_millis(100));
    let run = job.run_while(|| std::thread::sleep(long), |_, _| ());
    assert!(run.ending == Ending::TimedOut && run.took < long, "{run:?}");

    let mut is_done = false;
    let run = Job::new("no-such-program", [""; 0]).run_while(|| is_done = true, |_, _| ());
    assert_eq!((run.ending, is_done), (Ending::NotFound, true));
}

#[test]
fn a_signal_is_not_an_exit_code() {
    for signal in [1, 2, 6, 9, 11, 15, 34] {
        check(&sh(&format!("kill -{signal} $$; sleep 5")), Ending::Signalled(signal), "", "");
    }
}

#[test]
fn the_streams_are_told_apart() {
    check(&sh("echo to-out; echo to-err >&2; exit 3"), Ending::Exited(3), "to-out\n", "to-err\n");
}

#[test]
#[cfg(target_os = "linux")]
fn an_unheard_command_has_our_own_outputs() {
    let ours = format!("/proc/{}/fd", std::process::id());
    let same = |fd: u8| sh(&format!("test /proc/self/fd/{fd} -ef {ours}/{fd}"));
    for fd in [1, 2] {
        check(&same(fd).unheard(), Ending::Exited(0), "", "");
        check(&same(fd), Ending::Exited(1), "", "");
    }
}

#[test]
fn arguments_arrive_untouched() {
    let job = Job::new("printf", ["%s|", "a b", "$HOME", "*", "", "'\""]).capture_only();
    check(&job, Ending::Exited(0), "a b|$HOME|*||'\"|", "");
}

#[test]
fn a_missing_program_is_not_found() {
    check(&Job::new("surely-no-such-program", ["x"]).capture_only(), Ending::NotFound, "", "");
    check(&Job::new("./surely/no/such", ["x"]).capture_only(), Ending::NotFound, "", "");
}

/// Writes a file called `name` with `mode` and returns its folder and path.
fn file(name: &str, content: &[u8], mode: u32) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, content).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    (dir, path)
}

#[track_caller]
fn check_not_executable(job: &Job, reason: &str) {
    match job.run(|_, _| {}).ending {
        Ending::NotExecutable(text) => assert!(text.contains(reason), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_without_the_execute_bit_is_not_executable() {
    let (_dir, path) = file("plain", b"#!/bin/sh\n", 0o644);
    check_not_executable(&Job::new(path, [""; 0]).capture_only(), "ermission denied");
}

#[test]
fn a_file_of_no_known_format_is_not_executable() {
    let (_dir, path) = file("garbage", b"\x01\x02\x03", 0o755);
    check_not_executable(&Job::new(path, [""; 0]).capture_only(), "xec format");
}

#[test]
fn a_script_without_its_interpreter_is_there_but_not_executable() {
    let (_dir, path) = file("script", b"#!/no/such/interpreter\n", 0o755);
    check_not_executable(&Job::new(path, [""; 0]).capture_only(), "interpreter");
}

#[test]
fn a_missing_working_directory_is_not_a_missing_program() {
    check_not_executable(&sh("true").in_dir("/no/such/dir"), "/no/such/dir");
}

#[test]
fn it_runs_in_the_directory_it_is_given() {
    check(&sh("pwd").in_dir("/"), Ending::Exited(0), "/\n", "");
}

#[test]
fn it_is_given_variables_beside_our_own() {
    let job =
        sh("echo \"$ONE $TWO\"; test -n \"$PATH\"").with_variable("ONE", "1").with_variable("TWO", "a b");
    check(&job, Ending::Exited(0), "1 a b\n", "");
}

#[test]
fn fifty_megabytes_arrive_whole_and_are_not_kept() {
    let before = peak_memory();
    let (mut total, mut largest) = (0, 0);
    let run = sh("head -c 50000000 /dev/zero").run(|_, bytes| {
        total += bytes.len();
        largest = largest.max(bytes.len());
    });
    assert_eq!((run.ending, total), (Ending::Exited(0), 50_000_000));
    assert!(largest <= 128 * 1024, "one chunk had {largest} bytes");
    if let (Some(before), Some(after)) = (before, peak_memory()) {
        assert!(after - before < 8_000, "memory grew by {} kB", after - before);
    }
}

/// The most memory this process ever held, in kB, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().trim_end_matches(" kB").parse().ok()
}

#[test]
fn two_streams_written_by_turns_do_not_block_each_other() {
    let script = "i=0; while [ $i -lt 2000 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done";
    let lines = |word: &str| (0..2000).map(|i| format!("{word}{i}\n")).collect::<String>();
    check(&sh(script), Ending::Exited(0), &lines("out"), &lines("err"));
}

#[test]
fn one_full_stream_does_not_starve_the_other() {
    let (mut out, mut err) = (0, 0);
    let job = sh("head -c 3000000 /dev/zero >&2; head -c 3000000 /dev/zero");
    let run = job.run(|stream, bytes| match stream {
        Stream::Stdout => out += bytes.len(),
        Stream::Stderr => err += bytes.len(),
        Stream::Merged => panic!("nothing here has a terminal"),
    });
    assert_eq!((run.ending, out, err), (Ending::Exited(0), 3_000_000, 3_000_000));
}

#[test]
fn every_byte_value_survives() {
    let every: Vec<u8> = (0..=255).collect();
    let (_dir, path) = file("bytes", &every, 0o644);
    let mut seen = Vec::new();
    Job::new("cat", [path]).capture_only().run(|_, bytes| seen.extend_from_slice(bytes));
    assert_eq!(seen, every);
}

#[test]
fn a_command_that_closes_its_outputs_is_still_waited_for() {
    check(&sh("exec >&- 2>&-; sleep 0.2; exit 7"), Ending::Exited(7), "", "");
}

#[test]
fn a_time_limit_ends_a_grandchild_too() {
    let (_dir, mark) = file("mark", b"", 0o644);
    let job = sh(&format!("(sleep 1.5; echo alive > {}) & echo started; wait", mark.display()));
    let begun = Instant::now();
    let job = job.timeout(Duration::from_millis(300)).grace(Duration::from_millis(500));
    check(&job, Ending::TimedOut, "started\n", "");
    assert!(begun.elapsed() < Duration::from_millis(1400), "{:?}", begun.elapsed());
    std::thread::sleep(Duration::from_millis(1600));
    assert_eq!(std::fs::read_to_string(mark).unwrap(), "");
}

#[test]
fn who_ignores_the_request_to_end_is_killed_after_the_grace() {
    let job = sh("trap '' TERM; echo deaf; while :; do sleep 0.05; done");
    let job = job.timeout(Duration::from_millis(300)).grace(Duration::from_millis(200));
    check(&job, Ending::TimedOut, "deaf\n", "");
}

#[test]
fn a_grandchild_that_ignores_the_request_to_end_is_killed_after_the_grace() {
    let (_dir, mark) = file("mark", b"", 0o644);
    let deaf =
        format!("trap '' TERM; sleep 0.1; sleep 0.1; sleep 1; sleep 1; echo alive > {}", mark.display());
    let job = sh(&format!("sh -c \"{deaf}\" & wait"));
    let job = job.timeout(Duration::from_millis(200)).grace(Duration::from_millis(300));
    check(&job, Ending::TimedOut, "", "");
    std::thread::sleep(Duration::from_millis(2200));
    assert_eq!(std::fs::read_to_string(mark).unwrap(), "");
}

#[test]
#[cfg(target_os = "linux")]
fn who_left_for_a_session_of_its_own_is_ended_too_even_if_it_is_deaf() {
    for deaf in ["", "trap '' TERM; "] {
        let (_dir, mark) = file("mark", b"", 0o644);
        let away = format!("{deaf}sleep 0.1; sleep 0.1; sleep 1; sleep 1; echo alive > {}", mark.display());
        let job = sh(&format!("setsid sh -c \"{away}\" >/dev/null 2>&1 & wait"));
        let job = job.timeout(Duration::from_millis(400)).grace(Duration::from_millis(300));
        check(&job, Ending::TimedOut, "", "");
        std::thread::sleep(Duration::from_millis(2200));
        assert_eq!(std::fs::read_to_string(mark).unwrap(), "", "{deaf}");
    }
}

#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    check(&sh("echo quick").timeout(Duration::from_secs(60)), Ending::Exited(0), "quick\n", "");
    check(&sh("echo quick").timeout(Duration::MAX), Ending::Exited(0), "quick\n", "");
}

#[test]
fn who_prints_nothing_for_too_long_is_ended_and_who_goes_on_printing_is_not() {
    let silent = sh("echo begun; sleep 30; echo late").idle_timeout(Duration::from_millis(400));
    check(&silent, Ending::TimedOut, "begun\n", "");
    let busy = sh("for i in 1 2 3 4 5; do sleep 0.2; echo $i; done").idle_timeout(Duration::from_millis(800));
    check(&busy, Ending::Exited(0), "1\n2\n3\n4\n5\n", "");
}

#[test]
fn a_silent_grandchild_that_holds_the_pipe_is_not_waited_for() {
    let begun = Instant::now();
    check(&sh("sleep 10 & echo done; exit 4"), Ending::Exited(4), "done\n", "");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[test]
fn a_chattering_grandchild_is_not_listened_to_for_ever() {
    let begun = Instant::now();
    let run = sh("(timeout 10 yes) & exit 4").run(|_, _| {});
    assert_eq!(run.ending, Ending::Exited(4));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn what_was_printed_last_is_seen_even_by_a_slow_sink() {
    let mut total = 0;
    sh("head -c 60000 /dev/zero").linger(Duration::ZERO).run(|_, bytes| {
        std::thread::sleep(Duration::from_millis(200));
        total += bytes.len();
    });
    assert_eq!(total, 60_000);
}

// From here on the job runs in a process of its own, so that its standard streams and signals can be ours.

fn example() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    exe.parent().and_then(|deps| deps.parent()).unwrap().join("examples/through")
}

/// Starts the example `through` with `argv`, in a process group of its own.
fn through(argv: &[&str], envs: &[(&str, &str)]) -> Child {
    Command::new(example())
        .args(argv)
        .envs(envs.iter().copied())
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Reads from `child`'s standard output until it said `word`.
fn wait_for(child: &mut Child, word: &str) {
    let mut said = String::new();
    let mut byte = [0];
    while !said.contains(word) {
        assert_eq!(child.stdout.as_mut().unwrap().read(&mut byte).unwrap(), 1, "only said {said:?}");
        said.push(char::from(byte[0]));
    }
}

#[test]
fn pass_through_copies_both_streams_and_standard_input_byte_for_byte() {
    let mut child = through(&["sh", "-c", "tee /dev/stderr"], &[]);
    let every: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let sent = every.clone();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(&sent));
    let seen = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(seen.stdout == every);
    assert!(seen.stderr.starts_with(&every));
    assert_eq!(
        String::from_utf8_lossy(&seen.stderr[every.len()..]),
        "through: Exited(0) after 200000 bytes\n"
    );
}

#[test]
fn a_signal_to_us_reaches_the_command() {
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3)] {
        let script =
            format!("trap 'echo got; exit {}' {name}; echo ready; while :; do sleep 0.05; done", 40 + number);
        let mut child = through(&["sh", "-c", &script], &[]);
        wait_for(&mut child, "ready");
        signal(&child, name);
        let seen = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&seen.stdout), "\ngot\n");
        let said = String::from_utf8_lossy(&seen.stderr).into_owned();
        assert!(said.contains(&format!("through: Exited({})", 40 + number)), "{said}");
    }
}

#[test]
fn the_second_signal_kills() {
    let mut child =
        through(&["sh", "-c", "trap 'echo no' INT; echo ready; while :; do sleep 0.05; done"], &[]);
    wait_for(&mut child, "ready");
    signal(&child, "INT");
    wait_for(&mut child, "no");
    signal(&child, "INT");
    let seen = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&seen.stderr).into_owned();
    assert!(said.starts_with("through: Signalled(9)"), "{said}");
}

#[test]
fn a_closed_reader_ends_the_command_as_it_would_without_us() {
    let mut child = through(&["yes"], &[]);
    wait_for(&mut child, "y\ny\n");
    drop(child.stdout.take());
    let seen = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&seen.stderr).into_owned();
    assert!(said.starts_with("through: Signalled(13)"), "{said}");
}

#[test]
fn the_time_limit_holds_while_nobody_reads_what_was_passed_through() {
    let mut child = through(&["yes"], &[("THROUGH_TIMEOUT_MS", "200")]);
    wait_for(&mut child, "y\n");
    std::thread::sleep(Duration::from_millis(1200));
    let seen = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&seen.stderr).into_owned();
    assert!(said.starts_with("through: TimedOut"), "{said}");
    assert!(seen.stdout.len() < 4_000_000, "it went on for {} bytes", seen.stdout.len());
}

#[test]
fn a_signal_our_caller_ignores_stays_ignored_in_the_command() {
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(example())
        .args(["sh", "-c", "echo ready; sleep 0.5; echo survived"])
        .env("THROUGH_TIMES", "2")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The second time we have listened to it before.
    for _ in 0..2 {
        wait_for(&mut child, "ready");
        signal(&child, "HUP");
        wait_for(&mut child, "survived");
    }
    assert!(child.wait().unwrap().success());
}

#[test]
#[cfg(target_os = "linux")]
fn killed_ourselves_the_command_is_asked_to_end() {
    let (_dir, mark) = file("mark", b"", 0o644);
    let script = format!(
        "trap 'echo asked > {}; exit' TERM; echo ready; while :; do sleep 0.05; done",
        mark.display()
    );
    let mut child = through(&["sh", "-c", &script], &[]);
    wait_for(&mut child, "ready");
    signal(&child, "KILL");
    child.wait().unwrap();
    let begun = Instant::now();
    while std::fs::read_to_string(&mark).unwrap() != "asked\n" {
        assert!(begun.elapsed() < TOO_LONG, "nobody asked it");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_signal_that_programs_agree_upon_is_passed_on_and_does_not_mean_to_end() {
    let mut child = through(
        &["sh", "-c", "trap 'echo got' USR1; trap 'exit 5' USR2; echo ready; while :; do sleep 0.05; done"],
        &[],
    );
    wait_for(&mut child, "ready");
    for _ in 0..2 {
        signal(&child, "USR1");
        wait_for(&mut child, "got");
    }
    signal(&child, "USR2");
    let seen = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&seen.stderr), "through: Exited(5) after 14 bytes\n");
}

#[test]
fn a_script_is_found_in_the_path_that_the_command_is_given() {
    let (dir, _) = file("surely-only-here", b"#!/bin/sh\necho found\n", 0o755);
    let job = Job::new("surely-only-here", [""; 0]).capture_only().with_variable("PATH", dir.path());
    check(&job, Ending::Exited(0), "found\n", "");
}

#[test]
fn a_nul_in_an_argument_is_not_executable() {
    check_not_executable(&Job::new("echo", ["a\0b"]).capture_only(), "nul byte");
}

#[test]
fn arguments_beyond_what_the_system_takes_are_not_executable() {
    check_not_executable(&Job::new("echo", ["x".repeat(8_000_000)]).capture_only(), "rgument list too long");
}
