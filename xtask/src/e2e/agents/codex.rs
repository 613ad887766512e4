//! Codex CLI.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{Agent, Halt, IS_NOT_TOLD, SERVER, Serving, Sight, TASK};
use crate::Fault;
use crate::e2e::model::{Arguments, Dialect, Step, ToolCall};
use crate::e2e::programs::Package;
use crate::e2e::stage::Stage;

pub const CODEX: Agent = Agent {
    name: "codex",
    package: Package { name: "codex", package: "@openai/codex", version: "0.166.0" },
    program: ".bin/codex",
    needs: &[],
    dialect: Dialect::Responses,
    prepare,
    start,
    resume: Ok(|stage, prompt| command(stage, &["resume", "--last"], prompt)),
    headless: Ok(&["--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"]),
    call,
    sight: Sight {
        malformed: Err(IS_NOT_TOLD),
        failed_edits: Err("no hook of it is told of patches that do not fit"),
        rewrites: Err("it takes another input only together with an approval, which is not ours to give"),
        halt: Halt::Refused,
        complaint: Ok(|line| line.starts_with("hook: ") && line.ends_with(" Failed")),
    },
    removal: "rm -r",
    loses_output: None,
    transcripts: Ok(".codex/sessions"),
    settings: &[".codex/config.toml", ".codex/hooks.json"],
    serving: Serving {
        file: ".codex/config.toml",
        add: |stage, words| {
            let file = ".codex/config.toml";
            let settings = std::fs::read_to_string(stage.home().join(file))?;
            let (command, args) = words.split_first().ok_or("which server?")?;
            // A text of JSON is one of TOML.
            let entry =
                format!("[mcp_servers.{SERVER}]\ncommand = {}\nargs = {}\n", json!(command), json!(args));
            stage.write_home(file, &format!("{settings}\n{entry}"))
        },
        tool: |tool| format!("mcp__{SERVER}__{tool}"),
        sends_mistakes: Ok(()),
    },
};

fn prepare(stage: &Stage) -> Result<(), Fault> {
    let settings = format!(
        r#"# A comment that must survive.
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
approval_policy = "never"

[analytics]
enabled = false

[features]
plugins = false

[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{}/v1"
wire_api = "responses"
experimental_bearer_token = "dummy"
request_max_retries = 0
stream_max_retries = 0
"#,
        stage.port()
    );
    stage.write_home(".codex/config.toml", &settings)
}

fn start(stage: &Stage) -> Command {
    command(stage, &[], TASK)
}

fn command(stage: &Stage, more: &[&str], prompt: &str) -> Command {
    let mut command = stage.clean(stage.program());
    // A person approves the hooks once, by hand; the scripted run cannot.
    command.args(["exec", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"]);
    command.args(more).arg(prompt);
    command
}

fn call(step: &Step, _project: &Path) -> ToolCall {
    let run = |command: &str| ToolCall::named("exec_command", json!({ "cmd": command }));
    match step {
        Step::Shell(command) => run(command),
        Step::Read(file) => run(&format!("cat {file}")),
        Step::Edit { file, old, new } => ToolCall {
            name: "apply_patch".into(),
            arguments: Arguments::Free(format!(
                "*** Begin Patch\n*** Update File: {file}\n@@\n{}{}*** End Patch\n",
                marked('-', old),
                marked('+', new)
            )),
        },
        Step::Write { file, text } => ToolCall {
            name: "apply_patch".into(),
            arguments: Arguments::Free(format!(
                "*** Begin Patch\n*** Add File: {file}\n{}*** End Patch\n",
                marked('+', text)
            )),
        },
        Step::Malformed => ToolCall::named("exec_command", json!({"comand": "true"})),
    }
}

/// Every line behind this sign, as patches have them.
fn marked(sign: char, text: &str) -> String {
    text.lines().map(|line| format!("{sign}{line}\n")).collect()
}
