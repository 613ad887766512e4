//! Claude Code.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{Agent, Halt, SERVER, Serving, Sight, TASK, add_server, full, started_by};
use crate::Fault;
use crate::e2e::model::{Dialect, Step, ToolCall};
use crate::e2e::programs::Package;
use crate::e2e::stage::Stage;

/// Its native binary is called: the script in front of it only looks for that.
const NATIVE: &str = if cfg!(target_arch = "aarch64") {
    "@anthropic-ai/claude-code-linux-arm64/claude"
} else {
    "@anthropic-ai/claude-code-linux-x64/claude"
};

pub const CLAUDE: Agent = Agent {
    name: "claude",
    package: Package { name: "claude", package: "@anthropic-ai/claude-code", version: "2.1.325" },
    program: NATIVE,
    needs: &[],
    dialect: Dialect::Anthropic,
    prepare,
    start,
    resume: Ok(|stage, prompt| command(stage, prompt, &["--continue"])),
    headless: Ok(&["--dangerously-skip-permissions"]),
    call,
    sight: Sight {
        malformed: Ok(()),
        failed_edits: Ok(()),
        rewrites: Ok(()),
        halt: Halt::Refused,
        complaint: Ok(|line| {
            line.contains("Hook JSON output validation failed") || line.contains("[ERROR] \"Hook")
        }),
    },
    removal: "rm -rf",
    loses_output: None,
    transcripts: Ok(".claude/projects"),
    settings: &[".claude/settings.json"],
    serving: Serving {
        file: ".claude.json",
        add: |stage, words| add_server(stage, ".claude.json", "mcpServers", started_by(words)),
        tool: |tool| format!("mcp__{SERVER}__{tool}"),
        sends_mistakes: Ok(()),
    },
};

/// Settings of a person who has a hook of their own, written by hand.
fn prepare(stage: &Stage) -> Result<(), Fault> {
    let own = "{\n    \"cleanupPeriodDays\": 20,\n  \"hooks\": { \"Stop\": [ { \"hooks\": [\n    { \"type\": \"command\", \"command\": \"true\" } ] } ] }\n}";
    stage.write_home(".claude/settings.json", own)
}

fn start(stage: &Stage) -> Command {
    command(stage, TASK, &[])
}

fn command(stage: &Stage, prompt: &str, more: &[&str]) -> Command {
    let mut command = stage.clean(stage.program());
    command.args([
        "-p",
        prompt,
        "--dangerously-skip-permissions",
        "--output-format",
        "stream-json",
        "--verbose",
    ]);
    command.args(more);
    command.arg("--debug-file").arg(stage.folder("debug.log"));
    command
        .env("ANTHROPIC_API_KEY", "dummy")
        .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", stage.port()));
    for switch in [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
        "DISABLE_AUTOUPDATER",
        // It refuses to skip permissions for root unless it is told that nothing can be broken.
        "IS_SANDBOX",
    ] {
        command.env(switch, "1");
    }
    command
}

fn call(step: &Step, project: &Path) -> ToolCall {
    match step {
        Step::Shell(command) => {
            ToolCall::named("Bash", json!({"command": command, "description": "scripted"}))
        }
        Step::Read(file) => ToolCall::named("Read", json!({"file_path": full(project, file)})),
        Step::Edit { file, old, new } => ToolCall::named(
            "Edit",
            json!({"file_path": full(project, file), "old_string": old, "new_string": new}),
        ),
        Step::Write { file, text } => {
            ToolCall::named("Write", json!({"file_path": full(project, file), "content": text}))
        }
        Step::Malformed => ToolCall::named("Bash", json!({"comand": "true"})),
    }
}
