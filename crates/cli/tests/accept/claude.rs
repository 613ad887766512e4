//! Claude Code as far as its hooks go: a payload before and after each call, each to a process of its own, and it obeys the answers.

use std::fmt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::world::{Said, World};

/// A machine with these settings, as lines of TOML, and a project folder `app`.
pub(crate) fn machine(settings: &str) -> World {
    World::empty().with("config/unstuck/config.toml", settings).with("app/.keep", "")
}

/// A busy moment is no reason for a hook to fall silent.
const PATIENCE: [(&str, &str); 3] = [
    ("UNSTUCK_HOOK_DEADLINE_BEFORE", "10s"),
    ("UNSTUCK_HOOK_DEADLINE_AFTER", "60s"),
    ("UNSTUCK_STORE_WAIT_BEFORE", "10s"),
];

/// One session of it.
pub(crate) struct Claude<'a> {
    world: &'a World,
    session: String,
    calls: AtomicU32,
    /// Set where a person can be asked.
    attended: bool,
    /// The person's language model setting and the like: variables of the hook processes.
    variables: Vec<(&'static str, String)>,
    /// The folder in which it works, below the home.
    folder: &'a str,
}

/// How a call ends that is only played.
#[derive(Clone, Copy)]
pub(crate) enum Ends<'a> {
    /// With exit code 0 and this output.
    Well(&'a str),
    /// With this exit code and output.
    Exit(i32, &'a str),
    /// With a failure in these words, as tools without an exit code have it.
    Error(&'a str),
    /// Stopped by the user.
    Interrupted,
}

/// One call, from the question to the end.
pub(crate) struct Turn {
    pub(crate) before: Value,
    /// Null where it did not run.
    pub(crate) after: Value,
    pub(crate) ran: bool,
    /// With a real command: its exit code.
    pub(crate) exit: Option<i32>,
}

impl<'a> Claude<'a> {
    /// A session without a person, in the folder `app`.
    pub(crate) fn new(world: &'a World, session: &str) -> Claude<'a> {
        Claude {
            world,
            session: session.to_owned(),
            calls: AtomicU32::new(1),
            attended: false,
            variables: Vec::new(),
            folder: "app",
        }
    }

    /// With a person at the terminal.
    pub(crate) fn attended(self) -> Claude<'a> {
        Claude { attended: true, ..self }
    }

    /// In a folder of the home.
    pub(crate) fn in_folder(self, folder: &'a str) -> Claude<'a> {
        Claude { folder, ..self }
    }

    /// With a variable for its hooks.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Claude<'a> {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// Asks for a shell command and, if it may, really runs it.
    #[track_caller]
    pub(crate) fn bash(&self, command: &str) -> Turn {
        let input = json!({ "command": command });
        let (id, before) = self.ask("Bash", &input);
        if is_stopped(&before) {
            return Turn { before, after: Value::Null, ran: false, exit: None };
        }
        let rewritten = before["hookSpecificOutput"]["updatedInput"].clone();
        let input = if rewritten.is_null() { input } else { rewritten };
        let (exit, output) = self.really(input["command"].as_str().unwrap());
        let ends = if exit == 0 { Ends::Well(&output) } else { Ends::Exit(exit, &output) };
        let after = self.tell("Bash", &input, &id, ends);
        Turn { before, after, ran: true, exit: Some(exit) }
    }

    /// Asks for a shell command; if it may run, it ends as said here.
    #[track_caller]
    pub(crate) fn plays(&self, command: &str, ends: Ends<'_>) -> Turn {
        self.calls("Bash", &json!({ "command": command }), ends)
    }

    /// The same for any tool.
    #[track_caller]
    pub(crate) fn calls(&self, tool: &str, input: &Value, ends: Ends<'_>) -> Turn {
        let (id, before) = self.ask(tool, input);
        if is_stopped(&before) {
            return Turn { before, after: Value::Null, ran: false, exit: None };
        }
        let after = self.tell(tool, input, &id, ends);
        Turn { before, after, ran: true, exit: None }
    }

    /// Writes a file as its own tool does, which unstuck sees.
    #[track_caller]
    pub(crate) fn writes(&self, path: &str, content: &str) -> Turn {
        let path = self.world.path(self.folder).join(path);
        let input = json!({ "file_path": path, "content": content });
        let (id, before) = self.ask("Write", &input);
        if is_stopped(&before) {
            return Turn { before, after: Value::Null, ran: false, exit: None };
        }
        std::fs::write(&path, content).unwrap();
        let after = self.tell("Write", &input, &id, Ends::Well(""));
        Turn { before, after, ran: true, exit: None }
    }

    /// A call that was turned down by the program itself: only the batch tells of it.
    #[track_caller]
    pub(crate) fn batch(&self, tool: &str, input: &Value, response: &str) -> Value {
        let mut payload = self.payload("PostToolBatch");
        payload["tool_calls"] = json!([{
            "tool_name": tool, "tool_input": input, "tool_use_id": self.id(), "tool_response": response,
        }]);
        self.hook(&payload)
    }

    /// The question before a call: its id, and the answer.
    #[track_caller]
    pub(crate) fn ask(&self, tool: &str, input: &Value) -> (String, Value) {
        let id = self.id();
        let answer = self.hook(&self.of_call("PreToolUse", tool, input, &id));
        (id, answer)
    }

    /// The word after a call.
    #[track_caller]
    pub(crate) fn tell(&self, tool: &str, input: &Value, id: &str, ends: Ends<'_>) -> Value {
        let mut payload = match ends {
            Ends::Well(_) => self.of_call("PostToolUse", tool, input, id),
            Ends::Exit(..) | Ends::Error(_) | Ends::Interrupted => {
                self.of_call("PostToolUseFailure", tool, input, id)
            }
        };
        payload["duration_ms"] = json!(12);
        match ends {
            Ends::Well(output) if tool == "Bash" => {
                payload["tool_response"] =
                    json!({ "stdout": output, "stderr": "", "interrupted": false, "isImage": false });
            }
            Ends::Well(output) => payload["tool_response"] = json!(output),
            Ends::Exit(code, output) => payload["error"] = json!(format!("Exit code {code}\n{output}")),
            Ends::Error(words) => payload["error"] = json!(words),
            Ends::Interrupted => payload["error"] = json!(""),
        }
        payload["is_interrupt"] = json!(matches!(ends, Ends::Interrupted));
        self.hook(&payload)
    }

    /// Hands one payload to a hook process; null where it says nothing. A hook always ends with 0 and an empty stderr.
    #[track_caller]
    pub(crate) fn hook(&self, payload: &Value) -> Value {
        let mut command = self.hook_command();
        command.env("CLAUDE_CODE_SESSION_ATTENDED", if self.attended { "1" } else { "0" });
        command.envs(PATIENCE).envs(self.variables.iter().map(|(name, value)| (name, value)));
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.to_string().as_bytes()).unwrap();
        let said = Said::by(child);
        assert_eq!((said.stderr(), said.exit), ("", 0), "{payload}\n{said}");
        match said.stdout() {
            "" => Value::Null,
            text => serde_json::from_str(text).unwrap(),
        }
    }

    /// As Claude Code starts a hook: a process of that name has a shell run the line.
    fn hook_command(&self) -> Command {
        let own = self.world.command(&[]);
        let agent = self.world.path("claude");
        match std::os::unix::fs::symlink("/bin/sh", &agent) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => panic!("{error}"),
            _ => {}
        }
        let line = format!("'{}' hook claude || :", own.get_program().to_string_lossy());
        let mut command = Command::new(agent);
        command
            .args(["-c", &format!("/bin/sh -c \"{line}\"\nexit $?")])
            .current_dir(self.world.path(""))
            .env_clear();
        command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn id(&self) -> String {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        format!("toolu_{}_{number}", self.session)
    }

    /// What stands in every payload.
    pub(crate) fn payload(&self, event: &str) -> Value {
        json!({
            "session_id": self.session, "transcript_path": "/nowhere.jsonl",
            "cwd": self.world.path(self.folder).to_str().unwrap().trim_end_matches('/'),
            "permission_mode": if self.attended { "default" } else { "bypassPermissions" },
            "hook_event_name": event,
        })
    }

    fn of_call(&self, event: &str, tool: &str, input: &Value, id: &str) -> Value {
        let mut payload = self.payload(event);
        payload["tool_name"] = json!(tool);
        payload["tool_input"] = input.clone();
        payload["tool_use_id"] = json!(id);
        payload
    }

    /// Runs a command in the folder. stdout and stderr come as one text, as the program gives them.
    fn really(&self, line: &str) -> (i32, String) {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("{{ {line}\n}} 2>&1")]).current_dir(self.world.path(self.folder));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.world.path("")).env("LC_ALL", "C").stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code().unwrap_or(1), String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }
}

/// Does an answer keep a call from running? A question is answered with no.
fn is_stopped(answer: &Value) -> bool {
    let decision = answer["hookSpecificOutput"]["permissionDecision"].as_str();
    matches!(decision, Some("deny" | "ask")) || answer["continue"] == false
}

impl Turn {
    /// What the model reads, before and after.
    pub(crate) fn said(&self) -> String {
        let words = [
            &self.before["hookSpecificOutput"]["permissionDecisionReason"],
            &self.before["hookSpecificOutput"]["additionalContext"],
            &self.after["hookSpecificOutput"]["additionalContext"],
        ];
        words.iter().filter_map(|words| words.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// `.` nothing said, `h` something said, `D` refused, `A` a person is asked, `H` stopped.
    pub(crate) fn sign(&self) -> char {
        let decision = self.before["hookSpecificOutput"]["permissionDecision"].as_str();
        match decision {
            _ if self.before["continue"] == false || self.after["continue"] == false => 'H',
            Some("deny") => 'D',
            Some("ask") => 'A',
            _ if self.said().is_empty() => '.',
            _ => 'h',
        }
    }

    /// The table that reaches a person, wherever it stands.
    pub(crate) fn shown(&self) -> String {
        let words = [
            &self.before["stopReason"],
            &self.before["systemMessage"],
            &self.before["hookSpecificOutput"]["permissionDecisionReason"],
            &self.after["stopReason"],
            &self.after["systemMessage"],
        ];
        words.iter().filter_map(|words| words.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// Fails unless all of these words were said to the model.
    #[track_caller]
    pub(crate) fn says(&self, words: &[&str]) -> &Turn {
        let said = self.said();
        words.iter().for_each(|words| assert!(said.contains(words), "{words:?} is not in: {self}"));
        self
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ran: {}\nbefore: {}\nafter: {}", self.sign(), self.ran, self.before, self.after)
    }
}

/// The signs of several calls in a row.
pub(crate) fn signs(turns: &[Turn]) -> String {
    turns.iter().map(Turn::sign).collect()
}
