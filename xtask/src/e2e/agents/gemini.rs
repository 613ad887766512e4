//! Gemini CLI.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{
    Agent, CHECKS_ITSELF, Halt, IS_NOT_TOLD, SAYS_NOTHING, SERVER, Serving, Sight, TASK, add_server, full,
    started_by,
};
use crate::Fault;
use crate::e2e::model::{Dialect, Step, ToolCall};
use crate::e2e::programs::Package;
use crate::e2e::stage::Stage;

pub const GEMINI: Agent = Agent {
    name: "gemini",
    package: Package { name: "gemini", package: "@google/gemini-cli", version: "0.61.0" },
    program: ".bin/gemini",
    needs: &[],
    dialect: Dialect::Gemini,
    prepare,
    start,
    resume: Ok(|stage, prompt| command(stage, &["--resume", "latest"], prompt)),
    headless: Ok(&["--model", "gemini-2.5-pro", "--yolo"]),
    call,
    sight: Sight {
        malformed: Err(IS_NOT_TOLD),
        failed_edits: Ok(()),
        rewrites: Ok(()),
        halt: Halt::Refused,
        complaint: Err(SAYS_NOTHING),
    },
    removal: "rm -rf",
    loses_output: None,
    transcripts: Ok(".gemini/tmp"),
    settings: &[".gemini/settings.json"],
    serving: Serving {
        file: ".gemini/settings.json",
        add: |stage, words| {
            let mut entry = started_by(words);
            entry["trust"] = json!(true);
            add_server(stage, ".gemini/settings.json", "mcpServers", entry)
        },
        tool: |tool| format!("mcp_{SERVER}_{tool}"),
        sends_mistakes: Err(CHECKS_ITSELF),
    },
};

fn prepare(stage: &Stage) -> Result<(), Fault> {
    // One attempt, since its own retries would hide a refusal for minutes. Its own guard against loops would end a scenario before ours is seen.
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
        "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
        "general": {"disableAutoUpdate": true, "enableAutoUpdate": false, "disableUpdateNag": true,
            "maxAttempts": 1},
        "model": {"disableLoopDetection": true},
    });
    stage.write_home(".gemini/settings.json", &format!("{settings:#}\n"))
}

fn start(stage: &Stage) -> Command {
    command(stage, &[], TASK)
}

fn command(stage: &Stage, more: &[&str], prompt: &str) -> Command {
    let mut command = stage.clean(stage.program());
    command.args(["--model", "gemini-2.5-pro", "--yolo", "--output-format", "stream-json"]);
    command.args(more).args(["--prompt", prompt]);
    command.env("GEMINI_API_KEY", "dummy").env("GEMINI_CLI_TRUST_WORKSPACE", "true").env("CI", "1");
    command.env("GOOGLE_GEMINI_BASE_URL", format!("http://127.0.0.1:{}", stage.port()));
    command
}

fn call(step: &Step, project: &Path) -> ToolCall {
    match step {
        Step::Shell(command) => ToolCall::named("run_shell_command", json!({ "command": command })),
        Step::Read(file) => ToolCall::named("read_file", json!({"file_path": full(project, file)})),
        Step::Edit { file, old, new } => ToolCall::named(
            "replace",
            json!({"file_path": full(project, file), "old_string": old, "new_string": new, "instruction": "scripted"}),
        ),
        Step::Write { file, text } => {
            ToolCall::named("write_file", json!({"file_path": full(project, file), "content": text}))
        }
        Step::Malformed => ToolCall::named("run_shell_command", json!({"comand": "true"})),
    }
}
