//! The shell tool with real processes.
#![cfg(all(unix, feature = "tools"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unstuck::tools::Shell;
use unstuck::{CallResult, Kind, Policy, ToolCall, Toolbox};

fn toolbox(shell: Shell) -> Toolbox {
    Toolbox::builder().tool(shell).policy(Policy::default().retries(0)).build().unwrap()
}

async fn run(tools: &Toolbox, command: &str) -> CallResult {
    tools.call(ToolCall::new("shell", json!({ "command": command }))).await
}

/// Tells the number of the process started last in a file of the folder.
const TELL: &str = "echo $! > pid.new; mv pid.new pid";

async fn told(folder: &Path) -> String {
    let begun = Instant::now();
    loop {
        match fs::read_to_string(folder.join("pid")) {
            Ok(pid) => return pid.trim().to_owned(),
            Err(_) if begun.elapsed() < Duration::from_secs(20) => {
                tokio::time::sleep(Duration::from_millis(5)).await
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn is_running(pid: &str) -> bool {
    // One that nobody collected yet has ended all the same.
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

async fn is_gone(pid: &str) -> bool {
    let begun = Instant::now();
    while is_running(pid) && begun.elapsed() < Duration::from_secs(10) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    !is_running(pid)
}

#[tokio::test]
async fn a_command_runs_in_its_folder_with_its_variables_and_without_input() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("deep")).unwrap();
    let tools = toolbox(Shell::new().folder(folder.path()).env("GREETING", "hello"));
    let result = run(&tools, "echo \"$GREETING\"; basename \"$PWD\" >&2; cat").await;
    let name = folder.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(
        result.to_json(),
        json!({ "ok": true, "output": { "exit_code": 0, "stdout": "hello\n", "stderr": format!("{name}\n") } })
    );
    let deep = tools.call(ToolCall::new("shell", json!({ "command": "basename $PWD", "cwd": "deep" }))).await;
    assert_eq!(deep.output()["stdout"], "deep\n");
    let nowhere = tools.call(ToolCall::new("shell", json!({ "command": "pwd", "cwd": "nowhere" }))).await;
    assert!(nowhere.error().unwrap().contains("does not exist"), "{nowhere:#?}");
}

#[tokio::test]
async fn a_command_that_fails_is_a_failure_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(Shell::new().folder(folder.path()));
    for (command, code, kind) in [
        ("cat no-such-file", 1, Kind::PathNotFound),
        ("no-such-program-of-ours", 127, Kind::CommandNotFound),
        ("echo 'curl: (6) Could not resolve host: nowhere.example' >&2; exit 6", 6, Kind::Network),
        (
            "echo out; echo 'fatal: Authentication failed for https://git.example/x' >&2; exit 128",
            128,
            Kind::Auth,
        ),
    ] {
        let result = run(&tools, command).await;
        assert_eq!(result.error(), Some(&*format!("exit code {code}")), "{result:#?}");
        assert_eq!(result.diagnosis().unwrap().kind, kind, "{command}: {result:#?}");
        assert_eq!(result.output()["exit_code"], code);
        assert!(result.output()["stderr"].as_str().is_some_and(|text| !text.is_empty()), "{result:#?}");
    }
    let killed = run(&tools, "kill -9 $$").await;
    assert_eq!(killed.error(), Some("ended by signal 9"), "{killed:#?}");
}

#[tokio::test]
async fn a_command_that_only_looks_is_sent_again_and_one_that_writes_is_not() {
    let folder = tempfile::tempdir().unwrap();
    // A `curl` of our own, whose connection breaks the first time.
    let script = "#!/bin/sh\nif test -e asked; then echo here; else touch asked; \
                  echo 'curl: (56) Recv failure: Connection reset by peer' >&2; exit 56; fi\n";
    fs::write(folder.path().join("curl"), script).unwrap();
    fs::set_permissions(folder.path().join("curl"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let tools =
        Toolbox::builder().tool(Shell::new().folder(folder.path()).env("PATH", path)).build().unwrap();
    for (command, is_sent_again) in
        [("curl -sS https://api.example/v1", true), ("curl -sS -d pay https://api.example/v1", false)]
    {
        let result = run(&tools, command).await;
        assert_eq!((result.is_ok(), result.tried().len()), (is_sent_again, 1), "{command}: {result:#?}");
        fs::remove_file(folder.path().join("asked")).unwrap();
    }
}

#[tokio::test]
async fn of_much_output_the_beginning_and_the_end_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(Shell::new().folder(folder.path()));
    let result = run(&tools, "echo begin; yes 0123456789 | head -c 20000000; echo; echo end").await;
    let text = result.output()["stdout"].as_str().unwrap();
    assert!(text.starts_with("begin\n") && text.ends_with("end\n"), "{}", &text[..100]);
    assert!(text.len() < 60_000 && text.contains(" bytes left out …]"), "{}", text.len());
    let odd = run(&tools, r"printf 'caf\351\n'").await;
    assert_eq!(odd.output()["stdout"], "caf\u{fffd}\n");
}

#[tokio::test]
async fn a_time_limit_ends_all_that_was_started_and_tells_what_was_printed() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(Shell::new().folder(folder.path()).timeout(Duration::from_millis(400)));
    let result = run(&tools, &format!("echo begun; sleep 60 & {TELL}; wait")).await;
    assert_eq!(result.diagnosis().unwrap().kind, Kind::Timeout, "{result:#?}");
    assert_eq!(
        (&result.output()["stdout"], &result.output()["exit_code"]),
        (&json!("begun\n"), &Value::Null)
    );
    assert!(is_gone(&told(folder.path()).await).await);
    let by_model = json!({ "command": "sleep 0.6; echo done", "timeout_ms": 20_000 });
    let result = tools.call(ToolCall::new("shell", by_model)).await;
    assert_eq!(result.output()["stdout"], "done\n");
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_the_grandchild_even_if_it_is_deaf() {
    for deaf in ["", "trap '' TERM; "] {
        let folder = tempfile::tempdir().unwrap();
        let tools = toolbox(Shell::new().folder(folder.path()));
        let command = format!("{deaf}(sh -c \"{deaf}while :; do sleep 0.05; done\") & {TELL}; wait");
        let call = tokio::spawn({
            let tools = tools.clone();
            async move { run(&tools, &command).await }
        });
        let pid = told(folder.path()).await;
        assert!(is_running(&pid));
        call.abort();
        assert!(is_gone(&pid).await, "{deaf:?}: {pid} still runs");
    }
}

#[tokio::test]
async fn a_deadline_of_the_toolbox_ends_the_grandchild() {
    let folder = tempfile::tempdir().unwrap();
    let policy = Policy::default().retries(0).deadline(Duration::from_millis(500));
    let tools = Toolbox::builder().tool(Shell::new().folder(folder.path())).policy(policy).build().unwrap();
    let begun = Instant::now();
    let result = run(&tools, &format!("sleep 60 & {TELL}; wait")).await;
    assert_eq!(result.error_type(), Some("aborted"), "{result:#?}");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert!(is_gone(&told(folder.path()).await).await);
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_is_not_waited_for_and_lives_on() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolbox(Shell::new().folder(folder.path()));
    let begun = Instant::now();
    let result = run(&tools, &format!("sleep 30 & {TELL}")).await;
    assert!(result.is_ok() && begun.elapsed() < Duration::from_secs(20), "{result:#?}");
    let pid = told(folder.path()).await;
    assert!(is_running(&pid));
    assert!(run(&tools, &format!("kill {pid}")).await.is_ok());
    assert!(is_gone(&pid).await);
}
