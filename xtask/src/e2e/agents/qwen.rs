//! Qwen Code.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{
    Agent, CHECKS_ITSELF, Halt, NO_DAY_WORK, NOT_KNOWN, SAYS_NOTHING, SERVER, Serving, Sight, TASK,
    add_server, full, started_by,
};
use crate::Fault;
use crate::e2e::model::{Dialect, Step, ToolCall};
use crate::e2e::programs::Package;
use crate::e2e::stage::Stage;

pub const QWEN: Agent = Agent {
    name: "qwen",
    package: Package { name: "qwen", package: "@qwen-code/qwen-code", version: "0.24.4" },
    program: ".bin/qwen",
    needs: &[],
    dialect: Dialect::Chat,
    prepare,
    start,
    resume: Err(NO_DAY_WORK),
    headless: Err(NOT_KNOWN),
    call,
    sight: Sight {
        malformed: Ok(()),
        failed_edits: Ok(()),
        rewrites: Err("it ignores another input"),
        halt: Halt::Forestalled,
        complaint: Err(SAYS_NOTHING),
    },
    removal: "rm -rf",
    loses_output: Some("Output: (empty)"),
    transcripts: Ok(".qwen/projects"),
    settings: &[".qwen/settings.json"],
    serving: Serving {
        file: ".qwen/settings.json",
        add: |stage, words| {
            let mut entry = started_by(words);
            entry["trust"] = json!(true);
            add_server(stage, ".qwen/settings.json", "mcpServers", entry)
        },
        tool: |tool| format!("mcp__{SERVER}__{tool}"),
        sends_mistakes: Err(CHECKS_ITSELF),
    },
};

fn prepare(stage: &Stage) -> Result<(), Fault> {
    let settings = json!({
        "security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": false},
        "general": {"disableAutoUpdate": true, "enableAutoUpdate": false},
        // Through a terminal it loses what a short command prints, when the machine is busy.
        "tools": {"shell": {"enableInteractiveShell": false}},
        // Its own guard against loops would end a scenario before ours is seen.
        "model": {"skipLoopDetection": true},
    });
    stage.write_home(".qwen/settings.json", &format!("{settings:#}\n"))
}

fn start(stage: &Stage) -> Command {
    let mut command = stage.clean(stage.program());
    command.args(["--auth-type", "openai", "--yolo", "--output-format", "stream-json", "--prompt", TASK]);
    command.env("OPENAI_API_KEY", "dummy").env("OPENAI_MODEL", "scripted").env("CI", "1");
    command.env("OPENAI_BASE_URL", format!("http://127.0.0.1:{}/v1", stage.port()));
    command
}

fn call(step: &Step, project: &Path) -> ToolCall {
    match step {
        Step::Shell(command) => {
            ToolCall::named("run_shell_command", json!({"command": command, "is_background": false}))
        }
        Step::Read(file) => ToolCall::named("read_file", json!({"file_path": full(project, file)})),
        Step::Edit { file, old, new } => ToolCall::named(
            "edit",
            json!({"file_path": full(project, file), "old_string": old, "new_string": new}),
        ),
        Step::Write { file, text } => {
            ToolCall::named("write_file", json!({"file_path": full(project, file), "content": text}))
        }
        Step::Malformed => ToolCall::named("run_shell_command", json!({"comand": "true"})),
    }
}
