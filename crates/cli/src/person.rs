//! Makes it hard for an agent to take a brake off by itself: a person has to be there, and no agent around us.
//!
//! It is a hurdle and no wall. An agent runs as the same user as the person does, so whatever is asked here it can fake if it
//! sets out to; what it does by habit, it cannot.

use std::env;

use crate::exit::CommandError;
use crate::provenance;
use crate::ui;

/// What agent programs set for all that they start. Variables that an editor also sets in its own terminals are not among them:
/// a person types there.
const AGENTS_VARIABLES: [&str; 14] = [
    "CLAUDECODE",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "CODEX_CI",
    "GEMINI_CLI",
    "QWEN_CODE",
    "OPENCODE",
    "OPENCODE_PID",
    "COPILOT_CLI",
    "COPILOT_CLI_BINARY_VERSION",
    "CURSOR_AGENT",
    "AI_AGENT",
];

/// Fails where an agent started us: one of its variables is set, or it stands above us.
pub(crate) fn must_not_be_an_agent() -> Result<(), CommandError> {
    if let Some(variable) = variable() {
        return Err(CommandError::InsideAgent { variable });
    }
    match provenance::agent_above() {
        Some(agent) => Err(CommandError::BelowAgent { agent }),
        None => Ok(()),
    }
}

/// Returns whether an agent started us, as far as its variables tell: that costs nothing.
pub(crate) fn is_an_agent() -> bool {
    variable().is_some()
}

/// A variable of an agent. An empty one is how a person takes it away for one command.
fn variable() -> Option<&'static str> {
    AGENTS_VARIABLES.into_iter().find(|name| env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Fails where an agent started us, whatever was given; and where nobody sits at a terminal and `--yes` was not given.
pub(crate) fn must_be_there(yes: bool) -> Result<(), CommandError> {
    must_not_be_an_agent()?;
    match yes || ui::input_is_terminal() {
        true => Ok(()),
        false => Err(CommandError::NoPerson),
    }
}
