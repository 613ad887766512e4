//! `unstuck uninstall`: takes our entries out of agents' settings, and gives back what was there.

use std::collections::BTreeSet;
use std::path::PathBuf;

use unstuck_judge::Lang;

use crate::agents::{
    AGENTS, Agent, Became, Change, Direction, Installation, Note, OwnProgram, Places, Scope, Told, names_us,
    real,
};
use crate::cellar::Cellar;
use crate::commands::install::{agent_named, alike};
use crate::commands::install_work::{Work, tell};
use crate::commands::uninstall_mcp::{self, UninstallMcpArgs, UninstallMcpServerArgs};
use crate::editing::{Book, Ledger, Written};
use crate::exit::{CommandError, ExitStatus};
use crate::person;
use crate::ui::Ui;

/// Take unstuck out of agents' settings again
///
/// Where nobody else has changed a file since, it becomes what it was, to the byte; files and folders that `install` made go.
/// Otherwise only our own entries are taken out. Without AGENT, it is done for all; without --user or --project, in every file we
/// know of. An entry that calls unstuck in another way than ours is left alone and told (exit 1).
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Agents: claude, codex, gemini, qwen, opencode, copilot, cursor

Examples:
  unstuck uninstall                     everywhere
  unstuck uninstall claude --dry-run    show the change, make none
  unstuck uninstall codex --project     only from this project
  unstuck uninstall mcp                 from in front of MCP servers"
)]
pub(crate) struct UninstallArgs {
    #[command(subcommand)]
    what: Option<UninstallWhat>,
    /// Which agents (default: all)
    #[arg(value_name = "AGENT", value_parser = agent_named)]
    agents: Vec<&'static Agent>,
    /// Only what holds in every project
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// Only what holds in this project
    #[arg(long)]
    project: bool,
    /// Show the change as a unified diff, and make none
    #[arg(long)]
    dry_run: bool,
    /// One JSON object per file
    #[arg(long)]
    json: bool,
}

/// What else can be taken out.
#[derive(clap::Subcommand)]
enum UninstallWhat {
    Mcp(UninstallMcpArgs),
    McpServer(UninstallMcpServerArgs),
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &UninstallArgs) -> Result<ExitStatus, CommandError> {
    match &args.what {
        Some(UninstallWhat::Mcp(args)) => return uninstall_mcp::run(ui, cellar, args),
        Some(UninstallWhat::McpServer(args)) => return uninstall_mcp::run_own(ui, cellar, args),
        None => {}
    }
    // Without its hooks, nothing holds an agent back.
    if !args.dry_run {
        person::must_not_be_an_agent()?;
    }
    let places = Places::here();
    let own = OwnProgram::here().map_err(CommandError::NoProgram)?;
    let program = own.path.to_string_lossy().into_owned();
    let scope = Scope::asked(args.user, args.project);
    let mut work = Work::begin(cellar, Book::Hooks, args.dry_run)?;
    let mut told = Vec::new();
    for agent in AGENTS.iter().filter(|agent| is_asked(&args.agents, agent)) {
        let mut any = false;
        for (scope, file) in files(&places, agent, scope, &work.ledger) {
            told.push(uninstall(&mut work, Installation::to_take_out(agent, file, program.clone()), scope));
            any = true;
        }
        if !any && !args.agents.is_empty() {
            ui.remark(&nothing(ui, agent))?;
        }
    }
    work.settle(&mut told, Direction::Out);
    let is_left =
        |told: &Told<Installation>| told.notes.iter().any(|note| matches!(note, Note::LooksLikeOurs { .. }));
    let status = tell(ui, &told, args.json, is_left)?;
    let servers = cellar.folder().ok().and_then(|state| Ledger::read(state, Book::Servers).ok());
    let is_meant = |written: &Written| {
        args.agents.is_empty() || args.agents.iter().any(|agent| agent.host.word() == written.agent)
    };
    let stay = servers.as_ref().map_or(&[][..], Ledger::all).iter().filter(|written| is_meant(written));
    ui.remark(&servers_stay(ui.lang(), stay))?;
    Ok(status)
}

fn uninstall(work: &mut Work, change: Installation, scope: Option<Scope>) -> Told<Installation> {
    let taken = change.take_out(&mut work.tools());
    let notes = taken.iter().flat_map(|outcome| alike(outcome, &outcome.file)).collect();
    Told { change, scope, became: taken.map(Became::Uninstalled), notes, dry_run: work.dry_run }
}

/// Whoever takes us off the machine should know that some servers would no longer start: those of others that go through us, and
/// our own.
fn servers_stay<'a>(lang: Lang, written: impl Iterator<Item = &'a Written>) -> String {
    let (mut wrapped, mut own) = (false, false);
    for written in written {
        wrapped |= !written.servers.is_empty();
        // Keys are made for our own server alone; a file without either is noted because its path was mended.
        own |= !written.made.is_empty() || written.servers.is_empty();
    }
    let wrapped = match (wrapped, lang) {
        (true, Lang::En) => "MCP servers still go through unstuck; `unstuck uninstall mcp` puts them back\n",
        (true, Lang::Zh) => "仍有 MCP 服务器经由 unstuck；`unstuck uninstall mcp` 可将其恢复\n",
        (false, _) => "",
    };
    let own = match (own, lang) {
        (true, Lang::En) => {
            "unstuck's own MCP server is still configured; `unstuck uninstall mcp-server` takes it out\n"
        }
        (true, Lang::Zh) => {
            "unstuck 自己的 MCP 服务器仍在配置中；`unstuck uninstall mcp-server` 可将其移除\n"
        }
        (false, _) => "",
    };
    [wrapped, own].concat()
}

fn nothing(ui: &Ui, agent: &Agent) -> String {
    match ui.lang() {
        Lang::En => format!("{}: nothing of ours is installed\n", agent.name),
        Lang::Zh => format!("{}：没有安装我们的任何内容\n", agent.name),
    }
}

fn is_asked(asked: &[&'static Agent], agent: &Agent) -> bool {
    asked.is_empty() || asked.iter().any(|each| each.host == agent.host)
}

/// The files that may hold something of ours: those of the ledger, and those that speak of us. One that does not is none of our
/// business, whatever is wrong with it.
fn files(
    places: &Places,
    agent: &Agent,
    scope: Option<Scope>,
    ledger: &Ledger,
) -> Vec<(Option<Scope>, PathBuf)> {
    let mut seen = BTreeSet::new();
    let mut files = Vec::new();
    for each in [Scope::User, Scope::Project] {
        let Some(file) = places.file(agent, each).filter(|_| scope.is_none_or(|scope| scope == each)) else {
            continue;
        };
        let is_known = ledger.about(&real(&file)).is_some();
        if (is_known || names_us(&file, Some(agent.host))) && seen.insert(real(&file)) {
            files.push((Some(each), file));
        }
    }
    if scope.is_none() {
        let others = ledger.all().iter().filter(|written| written.agent == agent.host.word());
        for written in others.filter(|written| seen.insert(written.file.clone())) {
            files.push((None, written.file.clone()));
        }
    }
    files
}
