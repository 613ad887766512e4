//! What each agent program sends to its hooks, with what it hides, and what it makes of the answers.

use serde::Deserialize;
use serde_json::{Value, json};

/// An agent program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Host {
    /// Claude Code: no exit code where the command as a whole went well.
    Claude,
    /// Codex: the exit code stands in its transcript alone.
    Codex,
    /// Gemini CLI: one event for good and bad ends, and no names of calls.
    Gemini,
    /// opencode, through our plugin.
    Opencode,
    /// A program that speaks our own format.
    Generic,
}

/// Who does a step.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Actor {
    /// The agent program.
    pub host: Host,
    /// Its session.
    pub session: String,
    /// The sub-agent, where one acts.
    pub agent: Option<String>,
}

/// A call as the host knows it.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The host's name for it.
    pub key: String,
    /// The working folder.
    pub cwd: String,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub input: Value,
}

/// How a call ended.
#[derive(Debug, Clone)]
pub enum Ending {
    /// A command of the shell tool.
    Exit {
        /// Its exit code.
        code: i32,
        /// What it printed, on both channels, in order.
        printed: String,
    },
    /// A command that goes on in the background.
    Launched,
    /// Any other tool, with its answer.
    Answer {
        /// Did it go well?
        is_ok: bool,
        /// What it says.
        text: String,
    },
    /// A call that the host itself turned down, before any tool ran.
    TurnedDown {
        /// What the host says.
        text: String,
    },
}

/// What a hook answered.
#[derive(Debug, Default, Clone)]
pub struct Answer {
    /// Is the call kept from running, and why?
    pub refusal: Option<String>,
    /// What the model is told.
    pub words: String,
    /// The arguments with which the call runs instead.
    pub rewritten: Option<Value>,
    /// Is the call sent again at once?
    pub again: bool,
}

impl Ending {
    /// Did the call end with an error, as far as the host can see?
    pub fn is_bad(&self) -> bool {
        match self {
            Ending::Exit { code, .. } => *code != 0,
            Ending::Launched => false,
            Ending::Answer { is_ok, .. } => !is_ok,
            Ending::TurnedDown { .. } => true,
        }
    }

    /// What it printed.
    pub fn printed(&self) -> &str {
        match self {
            Ending::Exit { printed, .. } => printed,
            Ending::Launched => "",
            Ending::Answer { text, .. } | Ending::TurnedDown { text } => text,
        }
    }
}

impl Host {
    /// Its name, as `unstuck hook` takes it.
    pub fn word(self) -> &'static str {
        match self {
            Host::Claude => "claude",
            Host::Codex => "codex",
            Host::Gemini => "gemini",
            Host::Opencode => "opencode",
            Host::Generic => "generic",
        }
    }

    /// The shell tool and its arguments.
    pub fn shell(self, line: &str, background: bool) -> (String, Value) {
        let described = json!({"command": line, "description": "Run it"});
        match self {
            Host::Claude if background => {
                let mut input = described;
                input["run_in_background"] = json!(true);
                ("Bash".into(), input)
            }
            Host::Claude => ("Bash".into(), described),
            Host::Codex => ("Bash".into(), json!({ "command": line })),
            Host::Gemini => ("run_shell_command".into(), json!({ "command": line })),
            Host::Opencode => ("bash".into(), described),
            Host::Generic => ("Bash".into(), json!({ "command": line })),
        }
    }

    /// The tool that edits a file.
    pub fn edit(self, file: &str, old: &str, new: &str) -> (String, Value) {
        match self {
            Host::Claude | Host::Generic => {
                ("Edit".into(), json!({"file_path": file, "old_string": old, "new_string": new}))
            }
            Host::Codex => ("apply_patch".into(), patch("Update", file, &format!("@@\n-{old}\n+{new}\n"))),
            Host::Gemini => {
                ("replace".into(), json!({"file_path": file, "old_string": old, "new_string": new}))
            }
            Host::Opencode => ("edit".into(), json!({"filePath": file, "oldString": old, "newString": new})),
        }
    }

    /// The tool that writes a file.
    pub fn write(self, file: &str, text: &str) -> (String, Value) {
        match self {
            Host::Claude | Host::Generic => ("Write".into(), json!({"file_path": file, "content": text})),
            Host::Codex => {
                let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
                ("apply_patch".into(), patch("Add", file, &lines))
            }
            Host::Gemini => ("write_file".into(), json!({"file_path": file, "content": text})),
            Host::Opencode => ("write".into(), json!({"filePath": file, "content": text})),
        }
    }

    /// The tool that reads a file. Codex has none: it reads with its shell.
    pub fn read(self, file: &str) -> (String, Value) {
        match self {
            Host::Claude | Host::Generic | Host::Codex => ("Read".into(), json!({ "file_path": file })),
            Host::Gemini => ("read_file".into(), json!({ "file_path": file })),
            Host::Opencode => ("read".into(), json!({ "filePath": file })),
        }
    }
}

fn patch(deed: &str, file: &str, body: &str) -> Value {
    json!({"command": format!("*** Begin Patch\n*** {deed} File: {file}\n{body}*** End Patch\n")})
}

impl Actor {
    /// What is sent when the session begins.
    pub fn begins(&self, cwd: &str) -> Option<Value> {
        match self.host {
            Host::Claude | Host::Codex | Host::Gemini => {
                Some(self.payload("SessionStart", cwd, json!({"source": "startup"})))
            }
            Host::Opencode | Host::Generic => None,
        }
    }

    /// What is sent when a person says something.
    pub fn prompted(&self, cwd: &str, words: &str) -> Value {
        match self.host {
            Host::Claude | Host::Codex => self.payload("UserPromptSubmit", cwd, json!({ "prompt": words })),
            Host::Gemini => self.payload("BeforeAgent", cwd, json!({ "prompt": words })),
            Host::Opencode => self.payload("chat.message", cwd, json!({})),
            Host::Generic => json!({"event": "user", "session": self.session, "cwd": cwd}),
        }
    }

    /// What is sent before a call; nothing where the host turns it down first.
    pub fn before(&self, asked: &Asked, ending: Option<&Ending>) -> Option<Value> {
        let is_turned_down = matches!(ending, Some(Ending::TurnedDown { .. }));
        let Asked { key, cwd, tool, input } = asked;
        match self.host {
            Host::Claude if is_turned_down => None,
            Host::Claude | Host::Codex => {
                let more = json!({"tool_name": tool, "tool_input": input, "tool_use_id": key});
                Some(self.payload("PreToolUse", cwd, more))
            }
            Host::Gemini => {
                Some(self.payload("BeforeTool", cwd, json!({"tool_name": tool, "tool_input": input})))
            }
            Host::Opencode => Some(self.payload(
                "tool.execute.before",
                cwd,
                json!({"tool": tool, "callID": key, "args": input}),
            )),
            Host::Generic => Some(self.generic("before", asked, json!({}))),
        }
    }

    /// What is sent after a call, in order. `is_second`: the call was sent again from a hook.
    pub fn after(&self, asked: &Asked, ending: &Ending, is_second: bool) -> Vec<Value> {
        match self.host {
            Host::Claude => self.after_in_claude(asked, ending),
            Host::Codex => self.after_in_codex(asked, ending),
            Host::Gemini => vec![self.after_in_gemini(asked, ending, is_second)],
            Host::Opencode => vec![self.after_in_opencode(asked, ending)],
            Host::Generic => {
                let more = match ending {
                    Ending::Exit { code, printed } => json!({"exit_code": code, "output": printed}),
                    Ending::Launched => json!({"exit_code": 0, "output": ""}),
                    Ending::Answer { is_ok: true, text } => json!({"ok": true, "output": text}),
                    Ending::Answer { is_ok: false, text } | Ending::TurnedDown { text } => {
                        json!({"ok": false, "error": text})
                    }
                };
                vec![self.generic("after", asked, more)]
            }
        }
    }

    fn after_in_claude(&self, asked: &Asked, ending: &Ending) -> Vec<Value> {
        let Asked { key, cwd, tool, input } = asked;
        let call = json!({"tool_name": tool, "tool_input": input, "tool_use_id": key, "duration_ms": 9});
        let with = |field: &str, value: Value| {
            let mut call = call.clone();
            call[field] = value;
            call
        };
        let ran = |stdout: &str| {
            json!({"stdout": stdout, "stderr": "", "interrupted": false, "isImage": false,
                "noOutputExpected": false})
        };
        let (own, shown) = match ending {
            Ending::Exit { code, printed } => {
                let printed = printed.trim_end();
                let line = input["command"].as_str().unwrap_or_default();
                let meaning = (*code == 1).then(|| meaning_of_one(line)).flatten();
                match (code, meaning) {
                    (0, _) | (_, Some(_)) => {
                        let mut response = ran(printed);
                        if let Some(meaning) = meaning {
                            response["returnCodeInterpretation"] = json!(meaning);
                        }
                        (Some(("PostToolUse", with("tool_response", response))), printed.to_owned())
                    }
                    (code, None) => {
                        let error = format!("Exit code {code}\n{printed}").trim_end().to_owned();
                        (Some(("PostToolUseFailure", with("error", json!(error)))), error)
                    }
                }
            }
            Ending::Launched => {
                let mut response = ran("");
                response["backgroundTaskId"] = json!(format!("b{key}"));
                let shown = format!("Command running in background with ID: b{key}");
                (Some(("PostToolUse", with("tool_response", response))), shown)
            }
            Ending::Answer { is_ok: true, text } => (
                Some(("PostToolUse", with("tool_response", claude_response(tool, input, text)))),
                text.clone(),
            ),
            Ending::Answer { is_ok: false, text } => {
                (Some(("PostToolUseFailure", with("error", json!(text)))), text.clone())
            }
            Ending::TurnedDown { text } => (None, format!("<tool_use_error>{text}</tool_use_error>")),
        };
        let batch =
            json!([{"tool_name": tool, "tool_input": input, "tool_use_id": key, "tool_response": shown}]);
        own.map(|(event, more)| self.payload(event, cwd, more))
            .into_iter()
            .chain([self.payload("PostToolBatch", cwd, json!({ "tool_calls": batch }))])
            .collect()
    }

    fn after_in_codex(&self, asked: &Asked, ending: &Ending) -> Vec<Value> {
        let Asked { key, cwd, tool, input } = asked;
        let response = match ending {
            Ending::Exit { printed, .. } => json!(printed),
            Ending::Launched => json!(""),
            Ending::Answer { is_ok: true, text } if tool == "apply_patch" => {
                json!(format!("Exit code: 0\nWall time: 0 seconds\nOutput:\n{text}\n"))
            }
            Ending::Answer { is_ok: true, text } => json!({"content": [{"type": "text", "text": text}]}),
            // What fails without having run calls no hook.
            Ending::Answer { is_ok: false, .. } | Ending::TurnedDown { .. } => return Vec::new(),
        };
        let more =
            json!({"tool_name": tool, "tool_input": input, "tool_response": response, "tool_use_id": key});
        vec![self.payload("PostToolUse", cwd, more)]
    }

    fn after_in_gemini(&self, asked: &Asked, ending: &Ending, is_second: bool) -> Value {
        let Asked { cwd, tool, input, .. } = asked;
        let response = match ending {
            Ending::Exit { code, printed } => {
                let printed = printed.trim_end();
                let printed = if printed.is_empty() { "(empty)" } else { printed };
                let code = if *code == 0 { String::new() } else { format!("Exit Code: {code}\n") };
                let content = format!(
                    "<untrusted_context>\nOutput: {printed}\n{code}Process Group PGID: 137\n</untrusted_context>"
                );
                json!({"llmContent": content, "returnDisplay": printed})
            }
            Ending::Launched => {
                json!({"llmContent": "Command moved to background (PID: 137).", "returnDisplay": ""})
            }
            Ending::Answer { is_ok: true, text } => json!({"llmContent": text, "returnDisplay": text}),
            Ending::Answer { is_ok: false, text } | Ending::TurnedDown { text } => {
                let kind = if tool.starts_with("mcp_") { "mcp_tool_error" } else { "file_not_found" };
                json!({"llmContent": text, "returnDisplay": "Error", "error": {"message": text, "type": kind}})
            }
        };
        let mut more = json!({"tool_name": tool, "tool_input": input, "tool_response": response});
        if is_second {
            more["original_request_name"] = json!(tool);
        }
        self.payload("AfterTool", cwd, more)
    }

    fn after_in_opencode(&self, asked: &Asked, ending: &Ending) -> Value {
        let Asked { key, cwd, tool, input } = asked;
        let mut more = json!({"tool": tool, "callID": key, "args": input});
        match ending {
            Ending::Exit { code, printed } => {
                more["output"] = json!(printed);
                more["metadata"] = json!({"output": printed, "exit": code, "truncated": false});
            }
            Ending::Launched => {
                more["output"] = json!("");
                more["metadata"] = json!({"output": "", "exit": 0});
            }
            Ending::Answer { is_ok: true, text } => {
                more["output"] = json!(text);
                more["metadata"] = json!({});
            }
            Ending::Answer { is_ok: false, text } | Ending::TurnedDown { text } => {
                more["error"] = json!(text);
                return self.payload("message.part.updated", cwd, more);
            }
        }
        self.payload("tool.execute.after", cwd, more)
    }

    fn generic(&self, event: &str, asked: &Asked, more: Value) -> Value {
        let Asked { key, cwd, tool, input } = asked;
        let mut payload = json!({"event": event, "session": self.session, "call_id": key, "cwd": cwd,
            "tool": tool, "input": input});
        if let Some(agent) = &self.agent {
            payload["agent"] = json!(agent);
        }
        merge(&mut payload, more);
        payload
    }

    /// A payload with what all of this host have.
    fn payload(&self, event: &str, cwd: &str, more: Value) -> Value {
        let transcript = format!("{cwd}/../{}.jsonl", self.session);
        let mut payload = match self.host {
            Host::Claude => {
                let mut payload = json!({"session_id": self.session, "transcript_path": transcript, "cwd": cwd,
                    "prompt_id": "p1", "permission_mode": "acceptEdits", "hook_event_name": event});
                if let Some(agent) = &self.agent {
                    payload["agent_id"] = json!(agent);
                    payload["agent_type"] = json!("general-purpose");
                }
                payload
            }
            Host::Codex => json!({"session_id": self.session, "turn_id": "t1", "transcript_path": transcript,
                "cwd": cwd, "hook_event_name": event, "model": "gpt-5.5", "permission_mode": "default"}),
            Host::Gemini => json!({"session_id": self.session, "transcript_path": transcript, "cwd": cwd,
                "hook_event_name": event}),
            Host::Opencode => {
                json!({"hook_event_name": event, "sessionID": self.agent.as_ref().unwrap_or(&self.session),
                "parentID": self.agent.as_ref().map(|_| &self.session), "cwd": cwd})
            }
            Host::Generic => json!({}),
        };
        merge(&mut payload, more);
        payload
    }

    /// The line of Codex' transcript that tells how a command ended.
    pub fn transcript_line(&self, asked: &Asked, ending: &Ending) -> Option<String> {
        let Ending::Exit { code, .. } = ending else { return None };
        (self.host == Host::Codex).then(|| {
            let payload = json!({"type": "exec_command_end", "call_id": asked.key, "exit_code": code});
            format!("{}\n", json!({"type": "event_msg", "payload": payload}))
        })
    }

    /// What the host makes of an answer.
    pub fn reads(&self, printed: &str) -> Answer {
        let Ok(answer) = serde_json::from_str::<Value>(printed.trim()) else { return Answer::default() };
        let text = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let specific = |name: &str| format!("/hookSpecificOutput/{name}");
        match self.host {
            Host::Claude | Host::Codex => {
                let decision = text(&specific("permissionDecision"));
                let is_stopped = answer["continue"] == false || answer["decision"] == "block";
                let refusal = text(&specific("permissionDecisionReason"))
                    .filter(|_| decision.is_some())
                    .or_else(|| is_stopped.then(|| answer.to_string()));
                Answer {
                    refusal,
                    words: text(&specific("additionalContext")).unwrap_or_default(),
                    rewritten: answer.pointer(&specific("updatedInput")).cloned(),
                    again: false,
                }
            }
            Host::Gemini => {
                let is_stopped = answer["decision"] == "deny" || answer["continue"] == false;
                Answer {
                    refusal: is_stopped.then(|| text("/reason").unwrap_or_default()),
                    words: text(&specific("additionalContext")).unwrap_or_default(),
                    rewritten: answer.pointer(&specific("tool_input")).cloned(),
                    again: answer.pointer(&specific("tailToolCallRequest")).is_some(),
                }
            }
            Host::Opencode => Answer {
                refusal: text("/deny"),
                words: text("/say").unwrap_or_default(),
                rewritten: answer.get("args").cloned(),
                again: false,
            },
            Host::Generic => {
                let says = text("/say").unwrap_or_default();
                match answer["decision"].as_str() {
                    Some("deny" | "halt") => Answer { refusal: Some(says), ..Answer::default() },
                    Some(_) | None => Answer { words: says, ..Answer::default() },
                }
            }
        }
    }
}

fn merge(payload: &mut Value, more: Value) {
    let Value::Object(more) = more else { return };
    for (name, value) in more {
        payload[name] = value;
    }
}

/// What Claude Code takes an exit code of 1 for, by the last program of the line.
fn meaning_of_one(line: &str) -> Option<&'static str> {
    let last = line.rsplit(['|', ';', '&', '\n']).find(|part| !part.trim().is_empty())?;
    match last.split_whitespace().next()? {
        "grep" | "rg" => Some("No matches found"),
        "diff" => Some("Files differ"),
        "test" | "[" => Some("Condition is false"),
        "find" => Some("Some directories were inaccessible"),
        _ => None,
    }
}

/// The answer of one of Claude Code's tools, in that tool's shape.
fn claude_response(tool: &str, input: &Value, text: &str) -> Value {
    match tool {
        "Edit" => json!({"filePath": input["file_path"], "oldString": input["old_string"],
            "newString": input["new_string"], "originalFile": "", "structuredPatch": [],
            "userModified": false, "replaceAll": false}),
        "Write" => json!({"type": "create", "filePath": input["file_path"], "content": input["content"],
            "structuredPatch": [], "originalFile": null, "userModified": false}),
        "Read" => json!({"type": "text", "file": {"filePath": input["file_path"], "content": text,
            "numLines": 1, "startLine": 1, "totalLines": 1}}),
        _ => json!([{"type": "text", "text": text}]),
    }
}
