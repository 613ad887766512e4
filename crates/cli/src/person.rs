//! Makes it hard for an agent to take a brake off by itself: a person has to be there, and no agent around us.
//!
//! It is a hurdle and no wall. An agent runs as the same user as the person does, so whatever is asked here it can fake if it
//! sets out to; what it does by habit, it cannot.

use std::env;
use std::fmt;

use unstuck_exec::process;
use unstuck_judge::Lang;

use crate::exit::CommandError;
use crate::{provenance, ui};

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

/// What shows that an agent started us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentSign {
    /// It set this variable for us.
    Variable(&'static str),
    /// It set this variable for a process that started us, directly or not.
    VariableAbove(&'static str),
    /// Its program started us, directly or not.
    Program(&'static str),
}

impl AgentSign {
    pub(crate) fn in_words(self, lang: Lang) -> String {
        match (self, lang) {
            (AgentSign::Variable(name), Lang::En) => format!("{name} is set"),
            (AgentSign::Variable(name), Lang::Zh) => format!("设置了 {name}"),
            (AgentSign::VariableAbove(name), Lang::En) => {
                format!("{name} is set for a process that started it")
            }
            (AgentSign::VariableAbove(name), Lang::Zh) => format!("启动它的进程设置了 {name}"),
            (AgentSign::Program(name), Lang::En) => format!("the program `{name}` is above it"),
            (AgentSign::Program(name), Lang::Zh) => format!("其上级进程是 `{name}`"),
        }
    }
}

impl fmt::Display for AgentSign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(Lang::En))
    }
}

/// Fails where an agent started us, also where its variables were taken away on the way to us.
pub(crate) fn must_not_be_an_agent() -> Result<(), CommandError> {
    match sign_here().or_else(sign_above) {
        Some(sign) => Err(CommandError::InsideAgent { sign }),
        None => Ok(()),
    }
}

/// Returns whether an agent started us, as far as our own variables tell. Hooks ask this, so nobody else is looked at.
pub(crate) fn is_an_agent() -> bool {
    sign_here().is_some()
}

fn sign_here() -> Option<AgentSign> {
    // An empty one is how a person takes it away for one command.
    let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    AGENTS_VARIABLES.into_iter().find(is_set).map(AgentSign::Variable)
}

/// Looks at the processes above us, whatever shells, `env` or `sudo` stand between.
fn sign_above() -> Option<AgentSign> {
    provenance::above(process::parent()?, &process::look).find_map(|(pid, above)| {
        let variable = process::variable_of(pid, &AGENTS_VARIABLES).map(AgentSign::VariableAbove);
        variable.or_else(|| provenance::agent_named(&above).map(AgentSign::Program))
    })
}

/// Fails where an agent started us, whatever was given; and where nobody sits at a terminal and `--yes` was not given.
pub(crate) fn must_be_there(yes: bool) -> Result<(), CommandError> {
    must_not_be_an_agent()?;
    match yes || ui::input_is_terminal() {
        true => Ok(()),
        false => Err(CommandError::NoPerson),
    }
}
