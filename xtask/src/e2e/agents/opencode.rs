//! opencode.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{Agent, Halt, IS_NOT_TOLD, NOT_KNOWN, NOT_READ, SERVER, Serving, Sight, TASK, add_server, full};
use crate::Fault;
use crate::e2e::model::{Dialect, Step, ToolCall};
use crate::e2e::programs::Package;
use crate::e2e::stage::Stage;

/// It installs this into its settings folder at every start; without a network that costs more than a minute of retries.
const PLUGIN: Package =
    Package { name: "opencode-plugin", package: "@opencode-ai/plugin", version: "1.18.33" };

const NATIVE: &str = if cfg!(target_arch = "aarch64") {
    "opencode-linux-arm64/bin/opencode"
} else {
    "opencode-linux-x64/bin/opencode"
};

pub const OPENCODE: Agent = Agent {
    name: "opencode",
    package: Package { name: "opencode", package: "opencode-ai", version: "1.18.33" },
    program: NATIVE,
    needs: &[PLUGIN],
    dialect: Dialect::Chat,
    prepare,
    start,
    resume: Ok(|stage, prompt| command(stage, &["--continue"], prompt)),
    headless: Err(NOT_KNOWN),
    call,
    sight: Sight {
        malformed: Err(IS_NOT_TOLD),
        failed_edits: Ok(()),
        rewrites: Ok(()),
        halt: Halt::Refused,
        complaint: Err("our own plugin reads the answers"),
    },
    removal: "rm -rf",
    loses_output: None,
    transcripts: Err(NOT_READ),
    settings: &[".config/opencode/opencode.json", ".config/opencode/plugins/unstuck.js"],
    serving: Serving {
        file: ".config/opencode/opencode.json",
        add: |stage, words| {
            let entry = json!({"type": "local", "enabled": true, "command": words});
            add_server(stage, ".config/opencode/opencode.json", "mcp", entry)
        },
        tool: |tool| format!("{SERVER}_{tool}"),
        sends_mistakes: Ok(()),
    },
};

fn prepare(stage: &Stage) -> Result<(), Fault> {
    let settings = json!({
        "$schema": "https://opencode.ai/config.json", "autoupdate": false, "share": "disabled", "snapshot": false,
        "model": "scripted/scripted", "small_model": "scripted/scripted",
        // Its own question about repeated calls would wait for a person.
        "permission": {"*": "allow", "external_directory": "allow", "doom_loop": "allow"},
        "provider": {"scripted": {"npm": "@ai-sdk/openai-compatible", "name": "scripted",
            "options": {"baseURL": format!("http://127.0.0.1:{}/v1", stage.port()), "apiKey": "dummy"},
            "models": {"scripted": {"name": "scripted", "tool_call": true,
                "limit": {"context": 100_000, "output": 8000}}}}},
    });
    stage.write_home(".config/opencode/opencode.json", &format!("{settings:#}\n"))?;
    let (plugin, folder) = (stage.cache().place(PLUGIN), stage.home().join(".config/opencode"));
    for name in ["package.json", "package-lock.json"] {
        std::fs::copy(plugin.join(name), folder.join(name))?;
    }
    Ok(symlink(plugin.join("node_modules"), folder.join("node_modules"))?)
}

fn start(stage: &Stage) -> Command {
    command(stage, &[], TASK)
}

fn command(stage: &Stage, more: &[&str], prompt: &str) -> Command {
    let mut command = stage.clean(stage.program());
    command.args(["run", "--print-logs", "--log-level", "WARN", "--format", "json"]);
    command.args(["--model", "scripted/scripted"]).args(more).arg(prompt);
    for switch in ["MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
        command.env(format!("OPENCODE_DISABLE_{switch}"), "1");
    }
    command
}

fn call(step: &Step, project: &Path) -> ToolCall {
    match step {
        Step::Shell(command) => {
            ToolCall::named("bash", json!({"command": command, "description": "scripted"}))
        }
        Step::Read(file) => ToolCall::named("read", json!({"filePath": full(project, file)})),
        Step::Edit { file, old, new } => ToolCall::named(
            "edit",
            json!({"filePath": full(project, file), "oldString": old, "newString": new}),
        ),
        Step::Write { file, text } => {
            ToolCall::named("write", json!({"filePath": full(project, file), "content": text}))
        }
        Step::Malformed => ToolCall::named("bash", json!({"comand": "true"})),
    }
}
