//! The scripted agent: it asks for calls as Claude Code does, sends the payloads that Claude Code sends, and obeys the answers
//! as Claude Code obeys them. It has no will of its own; the story says what it asks for.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use unstuck_exec::Ending;
use unstuck_wire::time;

use super::stage::Stage;
use crate::cellar;
use crate::exit::CommandError;

/// A hook answers within milliseconds. One that took longer probably held the call back.
const HELD: Duration = Duration::from_millis(200);
/// How long a command runs whose agent is killed meanwhile.
const CUT_AFTER: Duration = Duration::from_millis(400);

/// What was decided about a call before it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Nothing was said against it.
    None,
    /// Another call runs in its place.
    Rewritten,
    /// It does not run.
    Denied,
    /// A person is asked. Nobody is there, so it does not run.
    Asked,
    /// It does not run, and the agent stops.
    Halted,
}

impl Decision {
    /// The word for it in JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Decision::None => "none",
            Decision::Rewritten => "rewrite",
            Decision::Denied => "deny",
            Decision::Asked => "ask",
            Decision::Halted => "halt",
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It never ran.
    NotRun,
    /// The command ended with this code.
    Exited(i32),
    /// The file was changed.
    Changed,
    /// The agent was killed before it heard of an end.
    Lost,
}

/// One call, from being asked for to its end.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// What was asked for, in one line.
    pub(crate) call: String,
    pub(crate) decision: Decision,
    /// All that unstuck told the model.
    pub(crate) told: String,
    /// What really ran, in one line.
    pub(crate) ran: Option<String>,
    pub(crate) ended: Ended,
    /// What it printed.
    pub(crate) output: String,
    /// How long it was held back, as it seems from outside.
    pub(crate) held: Duration,
    /// How long after the last failure it began to run.
    pub(crate) since_failure: Option<Duration>,
}

impl Step {
    pub(crate) fn is_refused(&self) -> bool {
        match self.decision {
            Decision::None | Decision::Rewritten => false,
            Decision::Denied | Decision::Asked | Decision::Halted => true,
        }
    }
}

/// An answer of a hook, as far as Claude Code looks at it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WireAnswer {
    #[serde(rename = "continue")]
    goes_on: Option<bool>,
    #[serde(rename = "hookSpecificOutput")]
    specific: WireSpecific,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireSpecific {
    hook_event_name: String,
    permission_decision: Option<String>,
    permission_decision_reason: Option<String>,
    additional_context: Option<String>,
    updated_input: Option<Map<String, Value>>,
}

/// The agent.
pub(crate) struct Agent {
    session: String,
    calls: u32,
    failed_at: Option<Instant>,
    /// The signal by which the person ended it.
    pub(crate) stopped: Option<i32>,
}

impl Agent {
    pub(crate) fn new() -> Agent {
        let (one, two) = (cellar::random(), cellar::random());
        let session = format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            one >> 32,
            one >> 16 & 0xffff,
            one & 0xfff,
            two >> 52,
            two & 0xffff_ffff_ffff
        );
        Agent { session, calls: 0, failed_at: None, stopped: None }
    }

    /// Begins the session, or goes on with it (`startup`, `resume`). Returns what the model is told.
    pub(crate) fn begin(&mut self, stage: &Stage, source: &str) -> String {
        let (answer, _) = self.send(stage, "SessionStart", json!({ "source": source }));
        answer.specific.additional_context.unwrap_or_default()
    }

    /// Hears a person.
    pub(crate) fn hear(&mut self, stage: &Stage, prompt: &str) {
        self.send(stage, "UserPromptSubmit", json!({ "prompt": prompt, "permission_mode": "default" }));
    }

    /// Asks for a shell command.
    pub(crate) fn run(&mut self, stage: &Stage, command: &str) -> Step {
        let asked = json!({ "command": command, "description": "demo" });
        let (mut step, shared, input) = self.ask(stage, "Bash", command, asked.clone());
        let Some(input) = input else { return step };
        let line = input.get("command").and_then(Value::as_str).unwrap_or_default().to_owned();
        let ran = stage.run(&line);
        self.heed(&ran.run.ending);
        let code = exit_code(&ran.run.ending);
        step.ran = Some(line);
        step.ended = Ended::Exited(code);
        let took = time::span_ms(ran.run.took);
        let (event, shown, result) = match code {
            0 => {
                let response = json!({ "stdout": ran.output, "stderr": "", "interrupted": false,
                                       "isImage": false, "noOutputExpected": false });
                ("PostToolUse", ran.output.clone(), json!({ "tool_response": response, "duration_ms": took }))
            }
            code => {
                self.failed_at = Some(Instant::now());
                let error = format!("Exit code {code}\n{}", ran.output);
                let result = json!({ "error": error, "is_interrupt": false, "duration_ms": took });
                ("PostToolUseFailure", error, result)
            }
        };
        step.output = ran.output;
        let mut about = shared.clone();
        about["tool_input"] = Value::Object(input);
        self.tell_end(stage, &mut step, event, laid_over(about, result));
        self.tell_batch(stage, &mut step, shared, &shown);
        step
    }

    /// Asks for an edit of a file of the project.
    pub(crate) fn edit(
        &mut self,
        stage: &Stage,
        file: &str,
        from: &str,
        to: &str,
    ) -> Result<Step, CommandError> {
        let path = stage.project().join(file).to_string_lossy().into_owned();
        let asked = json!({ "file_path": path, "old_string": from, "new_string": to, "replace_all": false });
        let (mut step, shared, input) = self.ask(stage, "Edit", &format!("Edit {file}"), asked);
        if input.is_none() {
            return Ok(step);
        }
        let began = Instant::now();
        let old = stage.read(file)?;
        stage.put(file, &old.replacen(from, to, 1))?;
        step.ran = Some(step.call.clone());
        step.ended = Ended::Changed;
        step.output = format!("-{from}\n+{to}");
        let line = old.lines().position(|line| line == from).map_or(1, |above| above + 1);
        let response = json!({
            "filePath": path, "oldString": from, "newString": to, "originalFile": old,
            "structuredPatch": [{ "oldStart": line, "oldLines": 1, "newStart": line, "newLines": 1,
                                  "lines": [format!("-{from}"), format!("+{to}")] }],
            "userModified": false, "replaceAll": false,
        });
        let result = json!({ "tool_response": response, "duration_ms": time::span_ms(began.elapsed()) });
        self.tell_end(stage, &mut step, "PostToolUse", laid_over(shared.clone(), result));
        let shown = format!("The file {path} has been updated successfully.");
        self.tell_batch(stage, &mut step, shared, &shown);
        Ok(step)
    }

    /// Asks for a shell command and is killed while it runs, and the command with it: nobody tells how it ended.
    pub(crate) fn vanish(&mut self, stage: &Stage, command: &str) -> Step {
        let asked = json!({ "command": command, "description": "demo" });
        let (mut step, _, input) = self.ask(stage, "Bash", command, asked);
        if input.is_some() {
            let ran = stage.run_for(command, CUT_AFTER);
            self.heed(&ran.run.ending);
            step.ran = Some(command.to_owned());
            step.ended = Ended::Lost;
            step.output = ran.output;
        }
        step
    }

    /// Asks whether a call may run. Returns what the later payloads about it share, and the input to run it with; none where
    /// it may not.
    fn ask(
        &mut self,
        stage: &Stage,
        tool: &str,
        call: &str,
        input: Value,
    ) -> (Step, Value, Option<Map<String, Value>>) {
        self.calls += 1;
        let id = format!("toolu_demo_{:04}", self.calls);
        let shared = json!({ "permission_mode": "default", "tool_name": tool, "tool_input": input,
                             "tool_use_id": id });
        let (answer, took) = self.send(stage, "PreToolUse", shared.clone());
        let specific = answer.specific;
        let decision = match (answer.goes_on, specific.permission_decision.as_deref()) {
            (Some(false), _) => Decision::Halted,
            (_, Some("deny")) => Decision::Denied,
            (_, Some("ask")) => Decision::Asked,
            (_, _) if specific.updated_input.is_some() => Decision::Rewritten,
            (_, _) => Decision::None,
        };
        let mut step = Step {
            call: call.to_owned(),
            decision,
            told: specific.additional_context.unwrap_or_default(),
            ran: None,
            ended: Ended::NotRun,
            output: String::new(),
            held: if took >= HELD { took } else { Duration::ZERO },
            since_failure: self.failed_at.map(|failed_at| failed_at.elapsed()),
        };
        if !step.is_refused() {
            let input = specific.updated_input.or_else(|| input.as_object().cloned());
            return (step, shared, input);
        }
        let reason = specific.permission_decision_reason.unwrap_or_default();
        let shown = format!("PreToolUse:{tool} hook error: {reason}");
        step.told = reason;
        self.tell_batch(stage, &mut step, shared.clone(), &shown);
        (step, shared, None)
    }

    /// Tells how a call ended, and hears what is said of it.
    fn tell_end(&mut self, stage: &Stage, step: &mut Step, event: &str, payload: Value) {
        let (answer, _) = self.send(stage, event, payload);
        add(&mut step.told, answer.specific.additional_context);
    }

    /// Tells what the model is shown of a call.
    fn tell_batch(&mut self, stage: &Stage, step: &mut Step, shared: Value, shown: &str) {
        let call = json!({ "tool_name": shared["tool_name"], "tool_input": shared["tool_input"],
                           "tool_use_id": shared["tool_use_id"], "tool_response": shown });
        let payload = json!({ "permission_mode": "default", "tool_calls": [call] });
        let (answer, _) = self.send(stage, "PostToolBatch", payload);
        add(&mut step.told, answer.specific.additional_context);
    }

    /// Sends one payload. An answer that Claude Code would not take for one is none.
    fn send(&mut self, stage: &Stage, event: &str, own: Value) -> (WireAnswer, Duration) {
        let project = stage.project();
        let common = json!({
            "session_id": self.session,
            "transcript_path": project.join("transcript.jsonl").to_string_lossy(),
            "cwd": project.to_string_lossy(),
            "hook_event_name": event,
        });
        let ran = stage.hook(&format!("{}\n", laid_over(common, own)));
        self.heed(&ran.run.ending);
        let answer: WireAnswer = serde_json::from_str(&ran.stdout).unwrap_or_default();
        let is_meant = answer.specific.hook_event_name == event;
        (if is_meant { answer } else { WireAnswer::default() }, ran.run.took)
    }

    /// A signal that ended what we started was meant for us.
    fn heed(&mut self, ending: &Ending) {
        match ending {
            Ending::Signalled(signal) => self.stopped = Some(*signal),
            Ending::Exited(_)
            | Ending::TimedOut
            | Ending::NotFound
            | Ending::NotExecutable(_)
            | Ending::NotTried(_) => {}
        }
    }
}

/// The exit code as Claude Code tells it, which knows no other end of a command.
fn exit_code(ending: &Ending) -> i32 {
    match ending {
        Ending::Exited(code) => *code,
        Ending::Signalled(signal) => 128 + signal,
        Ending::TimedOut => 143,
        Ending::NotFound => 127,
        Ending::NotExecutable(_) | Ending::NotTried(_) => 126,
    }
}

fn add(told: &mut String, more: Option<String>) {
    if let Some(more) = more.filter(|more| !more.is_empty()) {
        if !told.is_empty() {
            told.push_str("\n\n");
        }
        told.push_str(&more);
    }
}

fn laid_over(mut common: Value, own: Value) -> Value {
    if let (Value::Object(common), Value::Object(own)) = (&mut common, own) {
        common.extend(own);
    }
    common
}
