//! `unstuck install`: tells agents to call us, by entries in their settings that an uninstall takes out again.

use std::io;
use std::path::Path;

use unstuck_judge::Lang;

use crate::agents::{
    AGENTS, Agent, Alike, Became, Change, Direction, Done, Installation, Note, Outcome, Places, Reported,
    Scope, Told, Why, active_plugin, event_names, switched_off,
};
use crate::cellar::Cellar;
use crate::commands::install_mcp::{self, InstallMcpArgs, InstallMcpServerArgs};
use crate::commands::install_work::{ForWhom, Work, add_doubt, own_program, tell};
use crate::editing::Book;
use crate::exit::{CommandError, ExitStatus};
use crate::nearest::nearest;
use crate::program_file::{first_in, search_path};
use crate::ui::{self, Ui};

/// Tell agents to call unstuck, by entries in their settings
///
/// Only entries of our own are added, and everything else in the file stays as it is, to the byte; `unstuck uninstall` gives back
/// what was there. A file that cannot be read in full is left alone. Without AGENT, the agents found on this machine are shown,
/// and installed for when you agree. Running it twice changes nothing; running it after unstuck has moved mends the path.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Agents: claude, codex, gemini, qwen, opencode, copilot, cursor

Examples:
  unstuck install claude              for you, in every project
  unstuck install claude --dry-run    show the change, make none
  unstuck install codex --project     for this project only
  unstuck install --yes               for every agent found on this machine
  unstuck install mcp claude          in front of its MCP servers"
)]
pub(crate) struct InstallArgs {
    #[command(subcommand)]
    what: Option<InstallWhat>,
    /// Which agents
    #[arg(value_name = "AGENT", value_parser = agent_named)]
    agents: Vec<&'static Agent>,
    #[command(flatten)]
    whom: ForWhom,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// One JSON object per agent
    #[arg(long)]
    json: bool,
}

/// What else can be installed.
#[derive(clap::Subcommand)]
enum InstallWhat {
    Mcp(InstallMcpArgs),
    McpServer(InstallMcpServerArgs),
}

/// The agent of this name.
pub(crate) fn agent_named(word: &str) -> Result<&'static Agent, String> {
    let named = AGENTS.iter().find(|agent| agent.host.word() == word);
    named.ok_or_else(|| {
        let all: Vec<&str> = AGENTS.iter().map(|agent| agent.host.word()).collect();
        or_one_of(word, &all)
    })
}

/// What is said of a name that nobody has: the one that may have been meant, and all there are.
pub(super) fn or_one_of(word: &str, all: &[&str]) -> String {
    let meant = nearest(word, all.iter().copied()).map(|name| format!("did you mean {name}? "));
    format!("{}there are {}", meant.unwrap_or_default(), all.join(", "))
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &InstallArgs) -> Result<ExitStatus, CommandError> {
    match &args.what {
        Some(InstallWhat::Mcp(args)) => return install_mcp::run(ui, cellar, args),
        Some(InstallWhat::McpServer(args)) => return install_mcp::run_own(ui, cellar, args),
        None => {}
    }
    let places = Places::here();
    let (own, program) = own_program()?;
    let Some(agents) = chosen(ui, &places, args)? else { return Ok(ExitStatus::No) };
    let mut work = Work::begin(cellar, Book::Hooks, args.whom.dry_run)?;
    let mut told = Vec::new();
    for agent in agents {
        told.push(install(&mut work, &places, agent, args.whom.scope(), &program)?);
    }
    add_doubt(&mut told, &own, args.json);
    work.settle(&mut told, Direction::In);
    tell(ui, &told, args.json, |_| false)
}

/// The agents that were named, or those that are found and agreed to.
fn chosen(
    ui: &mut Ui,
    places: &Places,
    args: &InstallArgs,
) -> Result<Option<Vec<&'static Agent>>, CommandError> {
    if !args.agents.is_empty() {
        let mut agents = args.agents.clone();
        agents.sort_by_key(|agent| agent.host);
        agents.dedup_by_key(|agent| agent.host);
        return Ok(Some(agents));
    }
    let found: Vec<&'static Agent> = AGENTS.iter().filter(|agent| places.has(agent)).collect();
    if found.is_empty() {
        return Err(CommandError::NoAgent);
    }
    if args.yes || args.whom.dry_run {
        return Ok(Some(found));
    }
    if args.json || !ui::input_is_terminal() {
        return Err(CommandError::NotAgreed { found: found.iter().map(|agent| agent.host.word()).collect() });
    }
    let names: Vec<String> =
        found.iter().map(|agent| format!("  {:9} {}\n", agent.host.word(), agent.name)).collect();
    let names = names.concat();
    ui.say(&match ui.lang() {
        Lang::En => format!("found on this machine:\n{names}install for all of them? [y/N] "),
        Lang::Zh => format!("在本机找到：\n{names}全部安装吗？[y/N] "),
    })?;
    ui.finish()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(CommandError::Input)?;
    let agreed = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes" | "是" | "好");
    Ok(agreed.then_some(found))
}

fn install(
    work: &mut Work,
    places: &Places,
    agent: &'static Agent,
    scope: Scope,
    program: &str,
) -> Result<Told<Installation>, CommandError> {
    let file = places.file(agent, scope).ok_or(CommandError::NoHome)?;
    let version = match agent.asks_for_version() {
        true => places.version(agent),
        false => Reported::NotAsked,
    };
    let change = Installation::new(agent, file, program.to_owned(), version);
    let plugin = active_plugin(places, agent);
    let finds_us = first_in(&search_path(), "unstuck").is_some();
    let became = match plugin.clone().filter(|_| finds_us) {
        Some(settings) => Ok(Became::HasPlugin(settings)),
        None => change.put_in(&mut work.tools()).map(Became::Installed),
    };
    let mut notes = match &became {
        Ok(Became::Installed(outcome)) => notes(places, &change, scope, outcome),
        Ok(Became::Uninstalled(_) | Became::HasPlugin(_)) | Err(_) => Vec::new(),
    };
    // A plugin that does not find the program does nothing: entries that name its place do.
    notes.extend(plugin.filter(|_| !finds_us).map(|file| Note::PluginIdle { file }));
    Ok(Told { change, scope: Some(scope), became, notes, dry_run: work.dry_run })
}

/// Entries that call us in another way than ours, and were left alone.
pub(super) fn alike(outcome: &Outcome<Alike>, file: &Path) -> impl Iterator<Item = Note> {
    outcome.seen.iter().map(|line| Note::LooksLikeOurs { file: file.to_owned(), line: line.clone() })
}

/// What a person should know.
fn notes(places: &Places, installation: &Installation, scope: Scope, outcome: &Outcome<Alike>) -> Vec<Note> {
    let (agent, file) = (installation.agent, &installation.file);
    let mut notes = Vec::new();
    let left_out = event_names(&installation.left_out);
    let program = agent.programs[0];
    match &installation.version {
        Reported::Version(version) if !left_out.is_empty() => {
            notes.push(Note::VersionOld { version: version.to_string(), left_out });
        }
        Reported::NotFound => {
            notes.push(Note::VersionUnknown { program, why: Why::NoProgram, left_out });
        }
        Reported::Unreadable(why) => {
            notes.push(Note::VersionUnknown { program, why: why.clone(), left_out });
        }
        Reported::Version(_) | Reported::NotAsked => {}
    }
    notes.extend(switched_off(places, agent).into_iter().map(Note::SwitchedOff));
    if !agent.verified {
        notes.push(Note::Unverified);
    }
    let is_shared = scope == Scope::Project && !agent.project_file.ends_with(".local.json");
    if is_shared && outcome.done != Done::Nothing {
        notes.push(Note::Shared { file: file.clone() });
    }
    // Whether it was taken is not ours to know, so it is said every time.
    notes.extend(Note::trust(agent.host, scope));
    notes.extend(alike(outcome, file));
    notes
}
