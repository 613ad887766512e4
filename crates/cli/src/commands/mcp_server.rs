//! `unstuck mcp-server`: unstuck's own tools, for agents that speak MCP.

use std::io;
use std::sync::Arc;

use unstuck::Session;
use unstuck::rmcp::McpTools;
use unstuck_judge::Lang;

use crate::cellar::{self, Cellar};
use crate::exit::{CommandError, ExitStatus};
use crate::own_tools::{self, Workplace};
use crate::ui::{self, Ui};

/// Serve unstuck's own tools to an agent: diagnose, lessons, snapshot, undo, log
///
/// Speaks the Model Context Protocol on standard input and output, until its input ends. The agent's program starts it; in a
/// terminal there is nobody to talk to. Files are saved and brought back only in the folder it is started in (the git work
/// tree around it), and only events of that folder are told. Every call is recorded like any other: `unstuck log --server unstuck`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  claude mcp add unstuck -- unstuck mcp-server     Claude Code, this project; --scope user for all
  codex mcp add unstuck -- unstuck mcp-server      Codex
  gemini mcp add unstuck unstuck mcp-server        Gemini CLI
  \"unstuck\": { \"command\": \"unstuck\", \"args\": [\"mcp-server\"] }
                                                   others: in the `mcpServers` of their settings")]
pub(crate) struct McpServerArgs {
    /// Let files be saved and brought back anywhere, and events of all folders be told
    #[arg(long)]
    anywhere: bool,
}

pub(crate) fn run(ui: &mut Ui, flags: &[String], args: &McpServerArgs) -> Result<ExitStatus, CommandError> {
    // A mistake in the settings is no reason to leave an agent without tools.
    for mistake in Cellar::for_hooks(flags).mistakes() {
        let told = mistake.in_words(ui.lang());
        ui.aside(&format!("unstuck: {told}\n"));
    }
    if ui::input_is_terminal() {
        ui.remark(match ui.lang() {
            Lang::En => {
                "waiting for an agent's program to speak MCP; see `unstuck mcp-server --help` for how to add this to one\n"
            }
            Lang::Zh => "正在等待智能体程序以 MCP 通信；如何添加请见 `unstuck mcp-server --help`\n",
        })?;
    }
    let workplace = Arc::new(Workplace::new(flags, args.anywhere));
    let session = Session::from(format!("mcp-server-{:016x}", cellar::random()));
    let tools = own_tools::toolbox(&workplace, &session).map_err(io::Error::other)?;
    let tools = McpTools::new(&tools).session(&session).named("unstuck", env!("CARGO_PKG_VERSION"));
    own_tools::serve(tools)?;
    Ok(ExitStatus::Success)
}
