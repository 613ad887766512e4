//! Runs a command line as an agent would, with a call and its result as that agent tells them, and looks whether both were
//! recorded. All of it happens in a folder of its own, so that nothing of it is found in anybody's timeline.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use unstuck_exec::{Ending, Job, Stream};
use unstuck_store::{Filesystem, Root, StatsScope, Store};
use unstuck_wire::hook::Host;
use unstuck_wire::time;

use super::Doctor;
use crate::cellar;
use crate::moment;
use crate::plain;
use crate::scratch::Scratch;

/// No answer takes longer, even on a machine that does everything else at once.
const LIMIT: Duration = Duration::from_secs(10);
/// How much of an answer is read.
const ANSWER_MAX: usize = 64 * 1024;

/// How many different faults are looked through.
const FAULTS_MAX: u32 = 1000;

/// What came of a try.
pub(super) enum Trial {
    /// Both were answered and recorded, after so long.
    Alive { before: Duration, after: Duration },
    /// It went wrong, and how.
    Dead(Death),
}

/// How a try went wrong.
pub(super) enum Death {
    /// There was no folder to try it in.
    NoFolder(String),
    /// It ended in a way that agents do not take for silence.
    Ended(Ending),
    /// It said something that no agent understands.
    Nonsense(String),
    /// It kept quiet, and nothing was recorded.
    NothingRecorded,
    /// Call and result were recorded as two different things.
    Apart,
    /// It recorded that it failed.
    Fault(String),
}

impl Doctor<'_> {
    /// Tries this very program through its own door.
    pub(super) fn try_the_program(&mut self) {
        let Some(program) = self.program.clone().and_then(|program| program.to_str().map(str::to_owned))
        else {
            return;
        };
        let line = format!("'{}' hook generic", program.replace('\'', r"'\''"));
        self.try_line("unstuck", &line, Host::Generic, "unstuck");
    }

    /// Tries a line, and tells what came of it. `todo` is the command that mends it.
    pub(super) fn try_line(&mut self, about: &str, line: &str, host: Host, todo: &str) {
        match tried(line, host) {
            Trial::Alive { before, after } => {
                let (before, after) =
                    (moment::span(time::span_ms(before)), moment::span(time::span_ms(after)));
                let what = self.say(
                    format!("alive: a call and its result were answered and recorded ({before}, {after})"),
                    format!("正常运行：一次调用及其结果已得到回答并记录（{before}、{after}）"),
                );
                self.fine(about, "self_test", what);
            }
            Trial::Dead(death) => {
                let what = self.death(&death);
                let todo = match todo {
                    "unstuck" => self.say("install unstuck again", "请重新安装 unstuck"),
                    todo => self.say(format!("run `{todo}` again"), format!("请再次运行 `{todo}`")),
                };
                self.fail(about, "self_test", what, todo);
            }
        }
    }

    fn death(&self, death: &Death) -> String {
        match death {
            Death::NoFolder(why) => {
                self.say(format!("could not be tried: {why}"), format!("无法测试：{why}"))
            }
            Death::Ended(ending) => {
                let (en, zh) = ending_words(ending);
                self.say(format!("the installed line failed: {en}"), format!("已安装的命令行失败：{zh}"))
            }
            Death::Nonsense(said) => {
                let said = plain::short(said, 120);
                self.say(
                    format!("it answered what no agent understands: {said}"),
                    format!("它的回答没有智能体能理解：{said}"),
                )
            }
            Death::NothingRecorded => self.say(
                "it stays silent and records nothing: its program is gone, or does not start",
                "它保持沉默且没有记录：程序已不存在，或无法启动",
            ),
            Death::Apart => self.say(
                "a call and its result were not taken for one: refusals would go by the wrong calls",
                "一次调用及其结果没有被视为同一个：拒绝会针对错误的调用",
            ),
            Death::Fault(what) => {
                let what = plain::short(what, 240);
                self.say(
                    format!("it recorded a fault of its own: {what}"),
                    format!("它记录了自身故障：{what}"),
                )
            }
        }
    }
}

fn ending_words(ending: &Ending) -> (String, String) {
    match ending {
        Ending::Exited(code) => (format!("exit code {code}"), format!("退出码 {code}")),
        Ending::Signalled(signal) => (format!("signal {signal}"), format!("信号 {signal}")),
        Ending::TimedOut => ("no answer in 10 s".to_owned(), "10 秒内没有回答".to_owned()),
        Ending::NotFound => ("there is no /bin/sh".to_owned(), "没有 /bin/sh".to_owned()),
        Ending::NotExecutable(why) | Ending::NotTried(why) => (why.clone(), why.clone()),
    }
}

/// Runs the line for a call and for its result.
pub(super) fn tried(line: &str, host: Host) -> Trial {
    let scratch = match Scratch::make("doctor") {
        Ok(scratch) => scratch,
        Err(error) => return Trial::Dead(Death::NoFolder(error.to_string())),
    };
    let folder = scratch.path();
    let [before, after] = payloads(host, &folder.to_string_lossy());
    let result = run(line, &before, folder).and_then(|before| {
        let after = run(line, &after, folder)?;
        recorded(folder).map(|()| Trial::Alive { before, after })
    });
    result.unwrap_or_else(Trial::Dead)
}

fn run(line: &str, payload: &Value, folder: &Path) -> Result<Duration, Death> {
    let mut said = Vec::new();
    let mut job =
        Job::new("/bin/sh", ["-c", line]).with_input(format!("{payload}\n")).capture_only().in_dir(folder);
    // It must work here whatever is switched off for now, and it has all the time it needs: how long it took is told apart.
    for (name, value) in [
        ("UNSTUCK_DISABLE", ""),
        ("UNSTUCK_HOOK_ENABLED", "true"),
        ("UNSTUCK_STORE_FILESYSTEM", "local"),
        ("UNSTUCK_STORE_WAIT_BEFORE", "5s"),
        ("UNSTUCK_STORE_WAIT_AFTER", "5s"),
        ("UNSTUCK_HOOK_DEADLINE_BEFORE", "5s"),
        ("UNSTUCK_HOOK_DEADLINE_AFTER", "5s"),
    ] {
        job = job.with_variable(name, value);
    }
    let job = job
        .with_variable("UNSTUCK_STORE_STATE_DIR", state(folder))
        .timeout(LIMIT)
        .grace(Duration::from_millis(200));
    let run = job.run(|stream, bytes| {
        if stream == Stream::Stdout {
            let room = ANSWER_MAX.saturating_sub(said.len());
            said.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    });
    let answer = String::from_utf8_lossy(&said);
    match run.ending {
        Ending::Exited(0) if is_understood(&answer) => Ok(run.took),
        Ending::Exited(0) => Err(Death::Nonsense(answer.trim().to_owned())),
        ending => Err(Death::Ended(ending)),
    }
}

/// An answer is nothing, or one JSON object.
fn is_understood(answer: &str) -> bool {
    answer.trim().is_empty() || serde_json::from_str::<serde_json::Map<String, Value>>(answer).is_ok()
}

fn state(folder: &Path) -> PathBuf {
    folder.join("state")
}

/// Were the call and its result recorded as one?
fn recorded(folder: &Path) -> Result<(), Death> {
    let root = Root::existing(&state(folder), Some(Filesystem::Local)).map_err(|_| Death::NothingRecorded)?;
    let store = Store::to_read(&root, LIMIT, cellar::now()).map_err(|_| Death::NothingRecorded)?;
    let wrong = |error: unstuck_store::StoreError| Death::Fault(error.to_string());
    let faults = store.own_faults(0, FAULTS_MAX).map_err(wrong)?;
    if let Some(fault) = faults.into_iter().find(|fault| !is_told_elsewhere(&fault.part)) {
        return Err(Death::Fault(format!("{}: {}", fault.part, fault.what)));
    }
    let all = store.stats(&StatsScope::default(), None).map_err(wrong)?;
    match all.first().map(|(_, stats)| (stats.calls, stats.completed)) {
        None | Some((0, _)) => Err(Death::NothingRecorded),
        Some((1, 1)) => Ok(()),
        Some((_, _)) => Err(Death::Apart),
    }
}

/// Mistakes in a person's own files have checks of their own; no installation mends them, and a hook works without them.
fn is_told_elsewhere(part: &str) -> bool {
    matches!(part, "settings" | "rules")
}

const SESSION: &str = "unstuck-doctor";
const CALL: &str = "unstuck-doctor-1";
const COMMAND: &str = "echo unstuck doctor";
const PRINTED: &str = "unstuck doctor\n";

/// A harmless call and its result, as the agent tells them. The fields are those that were seen on the programs themselves.
fn payloads(host: Host, cwd: &str) -> [Value; 2] {
    let input = json!({ "command": COMMAND });
    let both =
        |common: Value, before: Value, after: Value| [laid_over(&common, before), laid_over(&common, after)];
    match host {
        Host::Generic => both(
            json!({"session": SESSION, "call_id": CALL, "tool": "Bash", "input": input, "cwd": cwd}),
            json!({"event": "before"}),
            json!({"event": "after", "exit_code": 0, "stdout": PRINTED}),
        ),
        Host::Claude => both(
            json!({"session_id": SESSION, "transcript_path": "", "cwd": cwd, "permission_mode": "default",
                   "tool_name": "Bash", "tool_input": input, "tool_use_id": CALL}),
            json!({"hook_event_name": "PreToolUse"}),
            json!({"hook_event_name": "PostToolUse", "duration_ms": 5,
                   "tool_response": {"stdout": PRINTED, "stderr": "", "interrupted": false, "isImage": false}}),
        ),
        Host::Codex => both(
            json!({"session_id": SESSION, "turn_id": "1", "transcript_path": null, "cwd": cwd, "model": "none",
                   "permission_mode": "default", "tool_name": "Bash", "tool_input": input, "tool_use_id": CALL}),
            json!({"hook_event_name": "PreToolUse"}),
            json!({"hook_event_name": "PostToolUse", "tool_response": PRINTED}),
        ),
        Host::Gemini => both(
            json!({"session_id": SESSION, "transcript_path": "", "cwd": cwd, "timestamp": time::iso(cellar::now()),
                   "tool_name": "run_shell_command", "tool_input": input}),
            json!({"hook_event_name": "BeforeTool"}),
            json!({"hook_event_name": "AfterTool",
                   "tool_response": {"llmContent": format!("Output: {PRINTED}"), "returnDisplay": PRINTED}}),
        ),
        Host::Qwen => both(
            json!({"session_id": SESSION, "transcript_path": "", "cwd": cwd, "timestamp": time::iso(cellar::now()),
                   "permission_mode": "default", "tool_name": "run_shell_command", "tool_input": input,
                   "tool_use_id": CALL, "tool_call_id": CALL}),
            json!({"hook_event_name": "PreToolUse"}),
            json!({"hook_event_name": "PostToolUse", "duration_ms": 5,
                   "tool_response": {"llmContent": PRINTED, "returnDisplay": PRINTED}}),
        ),
        Host::Opencode => both(
            json!({"sessionID": SESSION, "cwd": cwd, "callID": CALL, "tool": "bash", "args": input}),
            json!({"hook_event_name": "tool.execute.before"}),
            json!({"hook_event_name": "tool.execute.after", "output": PRINTED,
                   "metadata": {"output": PRINTED, "exit": 0, "truncated": false}}),
        ),
        Host::Copilot => both(
            json!({"sessionId": SESSION, "timestamp": cellar::now(), "cwd": cwd, "toolName": "bash", "toolArgs": input}),
            json!({}),
            json!({"toolResult": {"resultType": "success",
                   "textResultForLlm": format!("{PRINTED}<shellId: 0 completed with exit code 0>")}}),
        ),
        Host::Cursor => both(
            json!({"conversation_id": SESSION, "generation_id": "1", "session_id": SESSION, "cursor_version": "0.0.0",
                   "workspace_roots": [cwd], "cwd": cwd, "tool_name": "Shell", "tool_input": input, "tool_use_id": CALL}),
            json!({"hook_event_name": "preToolUse"}),
            json!({"hook_event_name": "postToolUse", "duration": 5,
                   "tool_output": json!({"output": PRINTED, "exitCode": 0}).to_string()}),
        ),
    }
}

/// What both payloads share, and what only one has.
fn laid_over(common: &Value, own: Value) -> Value {
    let mut all = common.as_object().cloned().unwrap_or_default();
    if let Value::Object(own) = own {
        all.extend(own);
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_nothing_or_one_object() {
        for (answer, expected) in [
            ("", true),
            ("\n", true),
            ("{}\n", true),
            ("{\"a\":1}", true),
            ("[]", false),
            ("{}{}", false),
            ("oops", false),
        ] {
            assert_eq!(is_understood(answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn a_line_that_fails_or_says_nonsense_is_dead() {
        let check = |line: &str, expected: fn(&Death) -> bool| match tried(line, Host::Generic) {
            Trial::Dead(death) => assert!(expected(&death), "{line}"),
            Trial::Alive { .. } => panic!("{line} is alive"),
        };
        check("exit 3", |death| matches!(death, Death::Ended(Ending::Exited(3))));
        check("echo hello", |death| matches!(death, Death::Nonsense(said) if said == "hello"));
        check("/no/such/program 2>/dev/null || :", |death| matches!(death, Death::NothingRecorded));
        check("kill -9 $$", |death| matches!(death, Death::Ended(Ending::Signalled(9))));
    }
}
