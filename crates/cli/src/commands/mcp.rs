//! `unstuck mcp`: stands in front of an MCP server.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Duration;

use clap::ArgGroup;
use hyper::Uri;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use unstuck_judge::Lang;

use crate::agents::host_of;
use crate::cellar::{self, Cellar};
use crate::exit::{CommandError, ExitStatus};
use crate::mcp::{self, Agents, Chronicle, HttpSettings, Remembers, ServerCommand, Terms, Way};
use crate::ui::Ui;
use crate::{attempts, lines};

/// Stand in front of an MCP server and make the calls of its tools self-correcting
///
/// Replace the server's command in the configuration of the agent by this one. Everything that client and server say to each
/// other passes through as it is; calls of tools are checked, explained when they fail, sent again where that is safe, and
/// recorded. A server that dies is started again.
#[derive(clap::Args)]
#[command(
    override_usage = "unstuck mcp [OPTIONS] -- COMMAND…\n       unstuck mcp [OPTIONS] --url URL",
    group = ArgGroup::new("server").args(["url", "command"]).required(true),
    after_help = "\
Examples:
  unstuck mcp -- npx -y @modelcontextprotocol/server-filesystem .
  unstuck mcp --name github --timeout 2m -- github-mcp-server stdio
  unstuck mcp --url https://mcp.shop.example/mcp --bearer-env SHOP_TOKEN
  unstuck mcp --no-check -- my-server          arguments go to the server unread
  unstuck mcp --agent codex=2 -- ccg-mcp       send a failed call of that agent again at most twice
  claude mcp add files -- unstuck mcp --name files -- npx -y @modelcontextprotocol/server-filesystem .

`unstuck log`, `unstuck stats --by server` and `unstuck lessons` show what came of it."
)]
pub(crate) struct McpArgs {
    /// What the server is called in the record (default: from the command)
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Retry a call at most this often (default: by the kind of the failure)
    #[arg(long, value_name = "N")]
    retries: Option<u8>,
    /// End an attempt after this long, such as 90s, 2m or a number of seconds; a retry after that gets half as much again
    #[arg(long, value_name = "TIME", value_parser = attempts::time_limit)]
    timeout: Option<Duration>,
    /// Begin no retry later than this after the call (default: what the client is known to wait for)
    #[arg(long, value_name = "TIME", value_parser = attempts::time_limit)]
    deadline: Option<Duration>,
    /// Let arguments pass that do not fit the schema of their tool
    #[arg(long)]
    no_check: bool,
    /// Do not believe a server that says a tool is read-only or idempotent
    #[arg(long)]
    distrust_hints: bool,
    /// Do not start a server again that is gone
    #[arg(long)]
    no_restart: bool,
    /// How often calls of an agent behind a tool are sent again, by a word of the tool's name
    #[arg(long = "agent", value_name = "NAME=N", value_parser = agent_retries)]
    agents: Vec<(String, u8)>,
    /// The address of a server that speaks Streamable HTTP
    #[arg(long, value_name = "URL", value_parser = address)]
    url: Option<Uri>,
    /// Send the value of a variable as a header with every request
    #[arg(long, value_name = "NAME=VARIABLE", value_parser = header_variable, requires = "url", conflicts_with = "command")]
    header_env: Vec<(HeaderName, String)>,
    /// Send the value of a variable as a bearer token with every request
    #[arg(long, value_name = "VARIABLE", requires = "url", conflicts_with = "command")]
    bearer_env: Option<String>,
    /// The server and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn address(text: &str) -> Result<Uri, String> {
    let url: Uri = text.parse().map_err(|error| format!("{error}"))?;
    match url.scheme_str() {
        Some("http" | "https") if url.host().is_some() => Ok(url),
        Some(_) | None => Err("expected an address such as https://host.example/mcp".to_owned()),
    }
}

fn header_variable(text: &str) -> Result<(HeaderName, String), String> {
    let expected =
        || "expected a header and a variable, such as Authorization=GITHUB_AUTHORIZATION".to_owned();
    let (name, variable) = text.split_once('=').ok_or_else(expected)?;
    let name = name.trim().parse().map_err(|_| expected())?;
    if variable.trim().is_empty() { Err(expected()) } else { Ok((name, variable.trim().to_owned())) }
}

fn agent_retries(text: &str) -> Result<(String, u8), String> {
    let read =
        text.split_once('=').and_then(|(name, retries)| Some((name.trim(), retries.trim().parse().ok()?)));
    match read {
        Some((name, retries)) if !name.is_empty() => Ok((name.to_ascii_lowercase(), retries)),
        Some(_) | None => Err("expected a name and a number, such as codex=1".to_owned()),
    }
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &McpArgs) -> Result<ExitStatus, CommandError> {
    let name = args.name.clone().unwrap_or_else(|| match &args.url {
        Some(url) => url.host().unwrap_or("server").to_owned(),
        None => mcp::named_by(&args.command),
    });
    let ladder = cellar.settings.ladder();
    let modes = cellar.modes();
    let mut agents = Agents::default();
    let set = cellar.settings.agents().into_iter().filter_map(|agent| Some((agent.name, agent.retries?)));
    let asked = args.agents.iter().map(|(name, retries)| (name.clone(), *retries));
    set.chain(asked).for_each(|(name, retries)| agents.set(&name, retries));
    let store = cellar.folder().ok().map(|path| Remembers {
        path: path.to_owned(),
        folder: env::current_dir().ok(),
        home: cellar.home().map(Path::to_owned),
    });
    let settings = cellar.settings.mcp();
    let most = usize::try_from(settings.max_message).unwrap_or(usize::MAX);
    let terms = Terms {
        session: format!("mcp-{}-{:016x}", mcp::plain(&name), cellar::random()),
        name,
        checks: settings.check && !args.no_check,
        believes_hints: settings.trust_hints && !args.distrust_hints,
        retries: args.retries,
        cells: cellar.settings.retry_cells().iter().map(|cell| cell.text()).collect(),
        limit: args.timeout,
        deadline: args.deadline,
        agents,
        restarts: settings.restart && !args.no_restart,
        hangs_after: settings.hangs_after,
        most,
        lang: cellar.settings.language().model,
        preset: ladder.preset,
        mode: modes.others,
        modes: modes.named,
        store,
    };
    let way = match &args.url {
        Some(url) => Way::Http(Box::new(HttpSettings {
            headers: headers(args)?,
            frame_max: most,
            lang: terms.lang,
            ..HttpSettings::new(url.clone())
        })),
        None => Way::Command(ServerCommand { words: args.command.clone(), variables: Vec::new(), most }),
    };
    if io::stdin().is_terminal() {
        let hint = match ui.lang() {
            Lang::En => {
                "unstuck mcp speaks to an agent, not to people: put it into the agent's configuration (`unstuck install mcp --help`)"
            }
            Lang::Zh => {
                "unstuck mcp 与智能体对话，而不是与人：请写入智能体的配置（`unstuck install mcp --help`）"
            }
        };
        ui.remark(&format!("{hint}\n"))?;
    }
    let cleaner = cellar.cleaner();
    let mut chronicle = Chronicle::new(cellar, &cleaner, &terms, shown(args));
    let lang = ui.lang();
    let code = mcp::run(terms, way, |happened| {
        if let Some(warning) = chronicle.write(happened, lang) {
            ui.aside(&format!("unstuck: {warning}\n"));
        }
    });
    Ok(ExitStatus::Command(code.map_err(CommandError::Output)?))
}

/// The server in one line, which is kept.
fn shown(args: &McpArgs) -> String {
    match &args.url {
        Some(url) => host_of(&url.to_string()),
        None => lines::quoted(&mcp::without_secrets(&args.command)),
    }
}

/// What is said with every request: secrets, which come from the environment because arguments are seen by everybody.
fn headers(args: &McpArgs) -> Result<Vec<(HeaderName, HeaderValue)>, CommandError> {
    let bearer = args.bearer_env.iter().map(|variable| (AUTHORIZATION, variable, "Bearer "));
    let named = args.header_env.iter().map(|(name, variable)| (name.clone(), variable, ""));
    let read = |(name, variable, before): (HeaderName, &String, &str)| {
        let unusable = || CommandError::NoHeaderVariable { name: variable.clone() };
        let value = env::var(variable).map_err(|_| unusable())?;
        let mut value = HeaderValue::try_from(format!("{before}{value}")).map_err(|_| unusable())?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    bearer.chain(named).map(read).collect()
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command};

    use super::*;

    /// What is said of arguments that cannot be meant; empty where they can.
    fn mistake(args: &[&str]) -> String {
        let command = McpArgs::augment_args(Command::new("mcp").no_binary_name(true));
        command.try_get_matches_from(args).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_server_is_a_command_or_an_address() {
        let url = ["--url", "https://tide.example/mcp"];
        assert_eq!(mistake(&["--", "tide"]), "");
        assert_eq!(mistake(&url), "");
        assert!(mistake(&[&url[..], &["--", "tide"]].concat()).contains("cannot be used with"));
        let neither = mistake(&[]);
        for form in ["unstuck mcp [OPTIONS] -- COMMAND", "unstuck mcp [OPTIONS] --url URL"] {
            assert!(neither.contains(form), "{neither}");
        }
    }

    #[test]
    fn what_is_said_to_an_address_is_not_said_to_a_command() {
        for flag in [["--bearer-env", "TOKEN"], ["--header-env", "X-Tide=TIDE"]] {
            assert_eq!(mistake(&[&["--url", "https://tide.example/mcp"], &flag[..]].concat()), "");
            let said = mistake(&[&flag[..], &["--", "tide"]].concat());
            assert!(said.contains(flag[0]) && said.contains("cannot be used with"), "{said}");
            assert!(mistake(&flag).contains("--url"), "{flag:?}");
        }
    }
}
