//! `unstuck install mcp`: servers that agents know already are reached through us from then on, until an uninstall.

use std::path::{Path, PathBuf};

use serde::Serialize;
use unstuck_judge::Lang;

use crate::agents::{
    Aim, CLIENTS, Change, Client, Config, Direction, Note, Places, Scope, Server, State, Told, Wrapper,
    Wrapping,
};
use crate::cellar::Cellar;
use crate::commands::install::or_one_of;
use crate::commands::install_work::{ForWhom, Work, add_doubt, own_program, tell};
use crate::editing::{Book, Ledger};
use crate::exit::{CommandError, ExitStatus};
use crate::nearest::nearest;
use crate::plain;
use crate::ui::Ui;

/// Put unstuck in front of MCP servers that an agent knows already
///
/// Only the command of an entry changes, and everything else in the file stays as it is, to the byte; `unstuck uninstall mcp` gives
/// back what was there. Without SERVER, it is done for all that can be wrapped. A server with an address is wrapped by itself only
/// if its entry holds a header: where the agent has to log in, name it. One that speaks SSE alone is never wrapped.
#[derive(clap::Args)]
#[command(after_help = "\
Agents: claude, codex, gemini, qwen, opencode, copilot, cursor, cline

Examples:
  unstuck install mcp --list               which servers there are, and which go through unstuck
  unstuck install mcp claude --dry-run     show the change, make none
  unstuck install mcp claude github        this one only
  unstuck install mcp codex --project      those of this project
  unstuck install mcp --yes                all servers of every agent found on this machine")]
pub(crate) struct InstallMcpArgs {
    /// Which agent
    #[arg(value_name = "AGENT", value_parser = client_named)]
    agent: Option<&'static Client>,
    /// Which of its servers (default: all that can be wrapped)
    #[arg(value_name = "SERVER")]
    servers: Vec<String>,
    /// Those that hold for you alone (the default)
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// Those that the files of this project name
    #[arg(long)]
    project: bool,
    /// Show every server, and change nothing
    #[arg(long, conflicts_with_all = ["dry_run", "yes", "servers"])]
    list: bool,
    /// Show the change as a unified diff, and make none
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for the name of an agent: all that are found
    #[arg(long, short)]
    yes: bool,
    /// One JSON object per file; with --list, one per server
    #[arg(long)]
    json: bool,
}

/// Add unstuck's own MCP server to an agent
///
/// The agent gets a server named `unstuck`, with tools to diagnose failures, look up lessons and undo changes. `unstuck uninstall
/// mcp-server` takes it out again.
#[derive(clap::Args)]
#[command(after_help = "\
Agents: claude, codex, gemini, qwen, opencode, copilot, cursor, cline

Examples:
  unstuck install mcp-server claude              for you, in every project
  unstuck install mcp-server codex --dry-run     show the change, make none")]
pub(crate) struct InstallMcpServerArgs {
    /// Which agent
    #[arg(value_name = "AGENT", value_parser = client_named)]
    agent: &'static Client,
    #[command(flatten)]
    whom: ForWhom,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

impl InstallMcpArgs {
    fn scope(&self) -> Option<Scope> {
        Scope::asked(self.user, self.project)
    }
}

/// The client of this name.
pub(crate) fn client_named(word: &str) -> Result<&'static Client, String> {
    Client::named(word).ok_or_else(|| {
        let all: Vec<&str> = CLIENTS.iter().map(|client| client.word).collect();
        or_one_of(word, &all)
    })
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &InstallMcpArgs) -> Result<ExitStatus, CommandError> {
    let places = Places::here();
    if args.list {
        return list(ui, cellar, &places, args);
    }
    let clients = chosen(&places, args)?;
    let (own, program) = own_program()?;
    let scope = args.scope().unwrap_or(Scope::User);
    let mut wrappings = Vec::new();
    for client in clients {
        let configs = client.configs(&places);
        check_names(client, &configs, scope, &args.servers)?;
        let aim = Aim::Servers(args.servers.clone());
        for config in configs.into_iter().filter(|config| config.scope == scope) {
            wrappings.push(Wrapping { client, config, program: program.clone(), aim: aim.clone() });
        }
    }
    let mut work = Work::begin(cellar, Book::Servers, args.dry_run)?;
    let put_in = |wrapping| changed(&mut work, wrapping, Some(scope), Direction::In);
    let mut told: Vec<Told<Wrapping>> = wrappings.into_iter().map(put_in).collect();
    work.settle(&mut told, Direction::In);
    told.retain(|told| !told.is_silent());
    if told.is_empty() {
        ui.remark(&no_server(ui.lang(), args.agent, scope))?;
        return Ok(ExitStatus::Success);
    }
    add_doubt(&mut told, &own, args.json);
    // Whoever asks for a server by its name wants to know that it could not be done.
    tell(ui, &told, args.json, |told| !args.servers.is_empty() && told.has_refused())
}

pub(crate) fn run_own(
    ui: &mut Ui,
    cellar: &Cellar,
    args: &InstallMcpServerArgs,
) -> Result<ExitStatus, CommandError> {
    let places = Places::here();
    let (own, program) = own_program()?;
    let (client, scope) = (args.agent, args.whom.scope());
    let config = client.first_file(&places, scope).ok_or(CommandError::NoHome)?;
    let mut work = Work::begin(cellar, Book::Servers, args.whom.dry_run)?;
    let wrapping = Wrapping { client, config, program, aim: Aim::Own };
    let mut told = [changed(&mut work, wrapping, Some(scope), Direction::In)];
    work.settle(&mut told, Direction::In);
    add_doubt(&mut told, &own, args.json);
    tell(ui, &told, args.json, Told::has_left)
}

/// Changes the servers of one file.
pub(super) fn changed(
    work: &mut Work,
    change: Wrapping,
    scope: Option<Scope>,
    direction: Direction,
) -> Told<Wrapping> {
    let became = change.make(direction, &mut work.tools());
    let mut told = Told { change, scope, became, notes: Vec::new(), dry_run: work.dry_run };
    if direction == Direction::In && scope == Some(Scope::Project) && told.has_changed() {
        told.notes.push(Note::Shared { file: told.change.file().to_owned() });
    }
    told
}

/// The agent that was named, or those that are found and agreed to.
fn chosen(places: &Places, args: &InstallMcpArgs) -> Result<Vec<&'static Client>, CommandError> {
    if let Some(client) = args.agent {
        return Ok(vec![client]);
    }
    let found: Vec<&'static Client> = CLIENTS.iter().filter(|client| client.is_here(places)).collect();
    match args.yes || args.dry_run {
        true => Ok(found),
        false => Err(CommandError::NoClient { found: found.iter().map(|client| client.word).collect() }),
    }
}

/// Fails where a server is asked for that no file of this scope names. A file that cannot be read might.
fn check_names(
    client: &'static Client,
    configs: &[Config],
    scope: Scope,
    asked: &[String],
) -> Result<(), CommandError> {
    let mut names: Vec<(String, Scope, PathBuf)> = Vec::new();
    for config in configs {
        let Ok(servers) = Wrapping::to_look(client, config.clone()).servers(None) else { return Ok(()) };
        names.extend(servers.into_iter().map(|server| (server.name, config.scope, config.file.clone())));
    }
    for name in asked {
        if names.iter().any(|(each, of, _)| each == name && *of == scope) {
            continue;
        }
        let elsewhere =
            names.iter().find(|(each, _, _)| each == name).map(|(_, of, file)| (*of, file.clone()));
        let nearest = nearest(name, names.iter().map(|(each, _, _)| each.as_str())).map(str::to_owned);
        return Err(CommandError::NoSuchServer {
            name: name.clone(),
            agent: client.name,
            nearest,
            elsewhere,
        });
    }
    Ok(())
}

fn no_server(lang: Lang, agent: Option<&Client>, scope: Scope) -> String {
    let name = agent.map_or("", |client| client.name);
    let word = agent.map_or("", |client| client.word);
    let other = match scope {
        Scope::User => "--project",
        Scope::Project => "--user",
    };
    match (agent, lang) {
        (None, Lang::En) => "no agent here has a server to wrap\n".to_owned(),
        (None, Lang::Zh) => "这里没有任何代理配置了可包装的服务器\n".to_owned(),
        (Some(_), Lang::En) => {
            format!(
                "{name}: no server is configured there; `unstuck install mcp {word} --list` shows all, {other} takes the others\n"
            )
        }
        (Some(_), Lang::Zh) => {
            format!(
                "{name}：该处没有配置服务器；`unstuck install mcp {word} --list` 列出全部，{other} 选择其余的\n"
            )
        }
    }
}

#[derive(Serialize)]
struct WireServer<'a> {
    agent: &'static str,
    server: &'a str,
    scope: &'static str,
    file: &'a Path,
    transport: &'static str,
    /// Its program, or its address without what may be a secret.
    target: String,
    wrapped: bool,
    status: &'static str,
    why: Option<&'static str>,
    text: Option<&'static str>,
}

/// Shows every server.
fn list(
    ui: &mut Ui,
    cellar: &Cellar,
    places: &Places,
    args: &InstallMcpArgs,
) -> Result<ExitStatus, CommandError> {
    let ledger = cellar.folder().ok().and_then(|state| Ledger::read(state, Book::Servers).ok());
    let lang = ui.lang();
    let mut status = ExitStatus::Success;
    let mut any = false;
    for client in CLIENTS.iter().filter(|client| args.agent.is_none_or(|asked| asked.word == client.word)) {
        let configs = client.configs(places).into_iter();
        for config in configs.filter(|config| args.scope().is_none_or(|scope| scope == config.scope)) {
            match Wrapping::to_look(client, config.clone()).servers(ledger.as_ref()) {
                Ok(servers) if servers.is_empty() => {}
                Ok(servers) => {
                    any = true;
                    show(ui, client, &config, &servers, args.json)?;
                }
                Err(error) => {
                    status = ExitStatus::Failed;
                    let what = format!("{}: {}\n", client.name, error.in_words(lang));
                    ui.remark(&plain::lines(&what))?;
                }
            }
        }
    }
    if !any && status == ExitStatus::Success {
        ui.remark(match lang {
            Lang::En => "no server is configured\n",
            Lang::Zh => "没有配置任何服务器\n",
        })?;
    }
    Ok(status)
}

fn show(
    ui: &mut Ui,
    client: &Client,
    config: &Config,
    servers: &[Server],
    json: bool,
) -> Result<(), CommandError> {
    if json {
        for server in servers {
            ui.json(&wire_server(client, config, server))?;
        }
        return Ok(());
    }
    let lang = ui.lang();
    let file = config.file.display();
    let mut lines = match lang {
        Lang::En => format!("{}: {file}\n", client.name),
        Lang::Zh => format!("{}：{file}\n", client.name),
    };
    for server in servers {
        let (scope, reach, target) = (server.scope_word(), server.reach.word(), server.target(&client.form));
        let state = match (&server.state, lang) {
            (State::Open, Lang::En) => "not wrapped".to_owned(),
            (State::Open, Lang::Zh) => "未包装".to_owned(),
            (State::Wrapped { by: Wrapper::Us, .. }, Lang::En) => "wrapped".to_owned(),
            (State::Wrapped { by: Wrapper::Us, .. }, Lang::Zh) => "已包装".to_owned(),
            (State::Wrapped { by: Wrapper::Hand, .. }, Lang::En) => "wrapped by hand".to_owned(),
            (State::Wrapped { by: Wrapper::Hand, .. }, Lang::Zh) => "由人手动包装".to_owned(),
            (State::OnRequest(why) | State::Never(why), Lang::En) => {
                format!("not wrapped: {}", why.text(lang))
            }
            (State::OnRequest(why) | State::Never(why), Lang::Zh) => format!("未包装：{}", why.text(lang)),
        };
        lines.push_str(&match lang {
            Lang::En => format!("  {} ({scope}, {reach}, {target}): {state}\n", server.name),
            Lang::Zh => format!("  {}（{scope}，{reach}，{target}）：{state}\n", server.name),
        });
    }
    ui.say(&plain::lines(&lines))
}

fn wire_server<'a>(client: &Client, config: &'a Config, server: &'a Server) -> WireServer<'a> {
    let (status, why) = match &server.state {
        State::Open => ("open", None),
        State::OnRequest(why) => ("on_request", Some(*why)),
        State::Wrapped { by: Wrapper::Us, .. } => ("wrapped", None),
        State::Wrapped { by: Wrapper::Hand, .. } => ("by_hand", None),
        State::Never(why) => ("never", Some(*why)),
    };
    WireServer {
        agent: client.word,
        server: &server.name,
        scope: server.scope_word(),
        file: &config.file,
        transport: server.reach.word(),
        target: server.target(&client.form),
        wrapped: matches!(server.state, State::Wrapped { .. }),
        status,
        why: why.map(|why| why.word()),
        text: why.map(|why| why.text(Lang::En)),
    }
}
