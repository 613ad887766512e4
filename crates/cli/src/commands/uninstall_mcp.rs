//! `unstuck uninstall mcp`: servers are reached as they were before us.

use std::collections::BTreeSet;

use unstuck_judge::Lang;

use crate::agents::{
    Aim, CLIENTS, Client, Config, Direction, OwnProgram, Places, Scope, Told, Wrapping, names_us, real,
};
use crate::cellar::Cellar;
use crate::commands::install_mcp::{changed, client_named};
use crate::commands::install_work::{Work, tell};
use crate::editing::{Book, Ledger};
use crate::exit::{CommandError, ExitStatus};
use crate::nearest::nearest;
use crate::person;
use crate::ui::Ui;

/// Take unstuck away from in front of MCP servers
///
/// Where nobody else has changed a file since, it becomes what it was, to the byte; otherwise only the command of an entry is given
/// back, and what others changed stays. Without AGENT, it is done for all; without --user or --project, in every file we know
/// of. A server that was wrapped by hand is left alone and told (exit 1).
#[derive(clap::Args)]
#[command(after_help = "\
Agents: claude, codex, gemini, qwen, opencode, copilot, cursor, cline

Examples:
  unstuck uninstall mcp                     everywhere
  unstuck uninstall mcp claude --dry-run    show the change, make none
  unstuck uninstall mcp claude github       this one only")]
pub(crate) struct UninstallMcpArgs {
    /// Which agent (default: all)
    #[arg(value_name = "AGENT", value_parser = client_named)]
    agent: Option<&'static Client>,
    /// Which of its servers (default: all)
    #[arg(value_name = "SERVER")]
    servers: Vec<String>,
    #[command(flatten)]
    manner: Manner,
}

/// Take unstuck's own MCP server out again
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck uninstall mcp-server           from every agent
  unstuck uninstall mcp-server claude    from this one")]
pub(crate) struct UninstallMcpServerArgs {
    /// Which agent (default: all)
    #[arg(value_name = "AGENT", value_parser = client_named)]
    agent: Option<&'static Client>,
    #[command(flatten)]
    manner: Manner,
}

/// How it is done.
#[derive(clap::Args)]
struct Manner {
    /// Only what holds for you alone
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// Only what the files of this project name
    #[arg(long)]
    project: bool,
    /// Show the change as a unified diff, and make none
    #[arg(long)]
    dry_run: bool,
    /// One JSON object per file
    #[arg(long)]
    json: bool,
}

impl Manner {
    fn scope(&self) -> Option<Scope> {
        Scope::asked(self.user, self.project)
    }
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &UninstallMcpArgs) -> Result<ExitStatus, CommandError> {
    if let Some(client) = args.agent {
        check_names(client, cellar, &args.servers)?;
    }
    take_out(ui, cellar, args.agent, &Aim::Servers(args.servers.clone()), &args.manner)
}

/// Fails where a server is asked for that neither a file nor the ledger names. A file that cannot be read might.
fn check_names(client: &'static Client, cellar: &Cellar, asked: &[String]) -> Result<(), CommandError> {
    let ledger = Ledger::read(cellar.folder()?, Book::Servers)?;
    let ours = ledger.all().iter().filter(|written| written.agent == client.word);
    let noted = ours.flat_map(|written| &written.servers).filter_map(|server| server.place.last().cloned());
    let mut names: Vec<String> = noted.collect();
    for config in client.configs(&Places::here()) {
        let Ok(servers) = Wrapping::to_look(client, config).everything(Some(&ledger)) else { return Ok(()) };
        names.extend(servers.into_iter().map(|server| server.name));
    }
    let Some(unknown) = asked.iter().find(|name| !names.contains(name)) else { return Ok(()) };
    let nearest = nearest(unknown, names.iter().map(String::as_str)).map(str::to_owned);
    let (name, agent) = (unknown.clone(), client.name);
    Err(CommandError::NoSuchServer { name, agent, nearest, elsewhere: None })
}

pub(crate) fn run_own(
    ui: &mut Ui,
    cellar: &Cellar,
    args: &UninstallMcpServerArgs,
) -> Result<ExitStatus, CommandError> {
    take_out(ui, cellar, args.agent, &Aim::Own, &args.manner)
}

fn take_out(
    ui: &mut Ui,
    cellar: &Cellar,
    agent: Option<&'static Client>,
    aim: &Aim,
    manner: &Manner,
) -> Result<ExitStatus, CommandError> {
    if !manner.dry_run {
        person::must_not_be_an_agent()?;
    }
    let places = Places::here();
    let own = OwnProgram::here().map_err(CommandError::NoProgram)?;
    let program = own.path.to_string_lossy().into_owned();
    let mut work = Work::begin(cellar, Book::Servers, manner.dry_run)?;
    let mut told = Vec::new();
    let mut seen = BTreeSet::new();
    for client in CLIENTS.iter().filter(|client| agent.is_none_or(|asked| asked.word == client.word)) {
        for (scope, config) in configs(&places, client, manner.scope(), &work.ledger) {
            if seen.insert(real(&config.file)) {
                let (program, aim) = (program.clone(), aim.clone());
                let wrapping = Wrapping { client, config, program, aim };
                told.push(changed(&mut work, wrapping, scope, Direction::Out));
            }
        }
    }
    work.settle(&mut told, Direction::Out);
    told.retain(|told| !told.is_silent());
    if told.is_empty() {
        ui.remark(&nothing(ui.lang(), agent))?;
        return Ok(ExitStatus::Success);
    }
    tell(ui, &told, manner.json, Told::has_left)
}

/// The files that may hold something of ours: those of the ledger, and those that speak of us.
fn configs(
    places: &Places,
    client: &Client,
    scope: Option<Scope>,
    ledger: &Ledger,
) -> Vec<(Option<Scope>, Config)> {
    let here = client.configs(places);
    let paths: BTreeSet<_> = here.iter().map(|config| real(&config.file)).collect();
    let is_asked = |config: &Config| scope.is_none_or(|scope| scope == config.scope);
    let is_known =
        |config: &Config| ledger.about(&real(&config.file)).is_some() || names_us(&config.file, None);
    let mut found: Vec<_> = here
        .into_iter()
        .filter(|config| is_asked(config) && is_known(config))
        .map(|config| (Some(config.scope), config))
        .collect();
    if scope.is_none() {
        let others = ledger.all().iter().filter(|written| written.agent == client.word);
        for written in others.filter(|written| !paths.contains(&written.file)) {
            let above = |place: &[String]| place.split_last().map(|(_, holder)| holder.to_vec());
            let mut holders = vec![vec![client.holder.to_owned()]];
            holders.extend(written.servers.iter().filter_map(|server| above(&server.place)));
            holders.dedup();
            found.push((None, client.config_of(written.file.clone(), holders)));
        }
    }
    found
}

fn nothing(lang: Lang, agent: Option<&Client>) -> String {
    match (agent, lang) {
        (Some(client), Lang::En) => format!("{}: nothing of ours is installed\n", client.name),
        (Some(client), Lang::Zh) => format!("{}：没有安装我们的任何内容\n", client.name),
        (None, Lang::En) => "no server goes through unstuck\n".to_owned(),
        (None, Lang::Zh) => "没有服务器经由 unstuck\n".to_owned(),
    }
}
