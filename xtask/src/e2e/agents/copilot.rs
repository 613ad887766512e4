//! GitHub Copilot CLI, offline with a model of one's own.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{
    Agent, Halt, NO_DAY_WORK, NOT_KNOWN, NOT_READ, SAYS_NOTHING, SERVER, Serving, Sight, TASK, add_server,
    full, started_by,
};
use crate::Fault;
use crate::e2e::model::{Dialect, Step, ToolCall};
use crate::e2e::programs::Package;
use crate::e2e::stage::Stage;

pub const COPILOT: Agent = Agent {
    name: "copilot",
    package: Package { name: "copilot", package: "@github/copilot", version: "1.0.102" },
    program: ".bin/copilot",
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
        rewrites: Ok(()),
        halt: Halt::Refused,
        complaint: Err(SAYS_NOTHING),
    },
    removal: "rm -rf",
    loses_output: None,
    transcripts: Err(NOT_READ),
    settings: &[".copilot/hooks/unstuck.json", ".copilot/settings.json"],
    serving: Serving {
        file: ".copilot/mcp-config.json",
        add: |stage, words| {
            let mut entry = started_by(words);
            entry["type"] = json!("local");
            entry["tools"] = json!(["*"]);
            add_server(stage, ".copilot/mcp-config.json", "mcpServers", entry)
        },
        tool: |tool| format!("{SERVER}-{tool}"),
        sends_mistakes: Ok(()),
    },
};

/// It needs no settings of its own.
fn prepare(stage: &Stage) -> Result<(), Fault> {
    Ok(std::fs::create_dir_all(stage.home().join(".copilot"))?)
}

fn start(stage: &Stage) -> Command {
    let mut command = stage.clean(stage.program());
    command.args(["--allow-all", "--no-auto-update", "--no-ask-user", "-p", TASK]);
    command.arg("--log-dir").arg(stage.folder("logs"));
    command
        .env("COPILOT_OFFLINE", "true")
        .env("COPILOT_AUTO_UPDATE", "false")
        .env("COPILOT_MODEL", "gpt-4.1");
    command.env("COPILOT_PROVIDER_BASE_URL", format!("http://127.0.0.1:{}/v1", stage.port()));
    command.env("COPILOT_PROVIDER_API_KEY", "dummy");
    command
}

fn call(step: &Step, project: &Path) -> ToolCall {
    match step {
        Step::Shell(command) => {
            ToolCall::named("bash", json!({"command": command, "description": "scripted"}))
        }
        Step::Read(file) => ToolCall::named("view", json!({"path": full(project, file)})),
        Step::Edit { file, old, new } => {
            ToolCall::named("edit", json!({"path": full(project, file), "old_str": old, "new_str": new}))
        }
        Step::Write { file, text } => {
            ToolCall::named("create", json!({"path": full(project, file), "file_text": text}))
        }
        Step::Malformed => ToolCall::named("bash", json!({"comand": "true"})),
    }
}
