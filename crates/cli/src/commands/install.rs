//! `unstuck install`: tells agents to call us, by entries in their settings that an uninstall takes out again.

use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use unstuck_judge::Lang;

use crate::agents::{
    AGENTS, Agent, Became, Done, Installation, Note, Outcome, OwnProgram, Places, Reported, Scope, Told,
    Tools, Why, active_plugin, switched_off,
};
use crate::cellar::{self, Cellar};
use crate::commands::install_mcp::{self, InstallMcpArgs, InstallMcpServerArgs};
use crate::editing::{Backups, EditError, Ledger};
use crate::exit::{CommandError, ExitStatus};
use crate::ui::{self, Ui};

/// A running agent may write back what it holds in memory; by then it has.
pub(crate) const SETTLE: Duration = Duration::from_secs(1);

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
    /// For you, in every project (the default)
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// For this project only
    #[arg(long)]
    project: bool,
    /// Show the change as a unified diff, and make none
    #[arg(long)]
    dry_run: bool,
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
        format!("there are {}", all.join(", "))
    })
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &InstallArgs) -> Result<ExitStatus, CommandError> {
    match &args.what {
        Some(InstallWhat::Mcp(args)) => return install_mcp::run(ui, cellar, args),
        Some(InstallWhat::McpServer(args)) => return install_mcp::run_own(ui, cellar, args),
        None => {}
    }
    let places = Places::here();
    let own = OwnProgram::here().map_err(CommandError::NoProgram)?;
    let Some(program) = own.path.to_str() else { return Err(CommandError::OddPath { path: own.path }) };
    let Some(agents) = chosen(ui, &places, args)? else { return Ok(ExitStatus::No) };
    let scope = if args.project { Scope::Project } else { Scope::User };
    let mut work = Work::begin(cellar, args.dry_run)?;
    let mut told = Vec::new();
    for agent in agents {
        told.push(work.install(&places, agent, scope, program)?);
    }
    // A program reads each line by itself; a person reads them all, and need be told once.
    let told_once = if args.json { 0 } else { told.len().saturating_sub(1) };
    for told in &mut told[told_once..] {
        told.notes.extend(own.doubt());
    }
    work.settle(&mut told, |installation, ledger| installation.is_in(ledger), Installation::put_in);
    tell(ui, &told, args.json, args.dry_run)
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
    if args.yes || args.dry_run {
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

/// What `install` and `uninstall` share: the ledger, held for as long as they work.
pub(crate) struct Work {
    pub(crate) ledger: Ledger,
    backups: Backups,
    dry_run: bool,
    /// What was done, in the order of what is told.
    done: Vec<Option<Installation>>,
}

impl Work {
    pub(crate) fn begin(cellar: &Cellar, dry_run: bool) -> Result<Work, CommandError> {
        let state = cellar.folder()?;
        let ledger = match dry_run {
            true => Ledger::read(state)?,
            false => Ledger::lock(state)?,
        };
        Ok(Work { ledger, backups: Backups::in_folder(state), dry_run, done: Vec::new() })
    }

    fn tools(&mut self) -> Tools<'_> {
        Tools { ledger: &mut self.ledger, backups: &self.backups, now: cellar::now(), dry_run: self.dry_run }
    }

    fn install(
        &mut self,
        places: &Places,
        agent: &'static Agent,
        scope: Scope,
        program: &str,
    ) -> Result<Told, CommandError> {
        let file = places.file(agent, scope).ok_or(CommandError::NoHome)?;
        let version = match agent.asks_for_version() {
            true => places.version(agent),
            false => Reported::NotAsked,
        };
        let (events, left_out) = agent.events_of(&version);
        let tolerated = match &version {
            Reported::Version(_) => Vec::new(),
            Reported::NotFound | Reported::NotAsked | Reported::Unreadable(_) => {
                left_out.iter().map(|event| event.name).collect()
            }
        };
        let program = program.to_owned();
        let installation = Installation { agent, file: file.clone(), program, events, tolerated };
        let became = match active_plugin(places, agent) {
            Some(settings) => Became::HasPlugin(settings),
            None => installation.put_in(&mut self.tools()).map_or_else(Became::Failed, Became::Installed),
        };
        let mut told = Told {
            agent,
            scope: Some(scope),
            file,
            version,
            events: installation.events.iter().map(|event| event.name).collect(),
            left_out: left_out.iter().map(|event| event.name).collect(),
            command: installation.line(),
            became,
            notes: Vec::new(),
            dry_run: self.dry_run,
        };
        if let Became::Installed(outcome) = &told.became {
            let mut notes = notes(places, &told, scope, outcome.done);
            notes.extend(alike(outcome, &told.file));
            told.notes = notes;
        }
        self.remember(installation, &told);
        Ok(told)
    }

    /// Keeps what was written for [`Work::settle`].
    fn remember(&mut self, installation: Installation, told: &Told) {
        self.done.push((told.has_changed() && !self.dry_run).then_some(installation));
    }

    /// Takes us out of a file.
    pub(crate) fn uninstall(&mut self, installation: Installation, scope: Option<Scope>) -> Told {
        let (became, notes) = match installation.take_out(&mut self.tools()) {
            Ok(outcome) => {
                let notes = alike(&outcome, &outcome.file).collect();
                (Became::Uninstalled(outcome), notes)
            }
            Err(error) => (Became::Failed(error), Vec::new()),
        };
        let told = Told {
            agent: installation.agent,
            scope,
            file: installation.file.clone(),
            version: Reported::NotAsked,
            events: Vec::new(),
            left_out: Vec::new(),
            command: installation.line(),
            became,
            notes,
            dry_run: self.dry_run,
        };
        self.remember(installation, &told);
        told
    }

    /// Waits a second and looks again: a running agent may have written its old copy over ours. Then it is done once more, and
    /// looked at once more.
    pub(crate) fn settle(
        &mut self,
        told: &mut [Told],
        stands: impl Fn(&Installation, &Ledger) -> Result<bool, EditError>,
        again: impl Fn(&Installation, &mut Tools<'_>) -> Result<Outcome, EditError>,
    ) {
        let done = std::mem::take(&mut self.done);
        let mut open: Vec<(&Installation, &mut Told)> =
            done.iter().zip(told).filter_map(|(done, told)| Some((done.as_ref()?, told))).collect();
        for is_last in [false, true] {
            if open.is_empty() {
                return;
            }
            thread::sleep(SETTLE);
            let mut overwritten = Vec::new();
            for (installation, told) in open {
                match stands(installation, &self.ledger) {
                    Ok(true) => continue,
                    Ok(false) if is_last => {
                        told.became = Became::Failed(EditError::WrittenBack { path: told.file.clone() });
                    }
                    Ok(false) => match again(installation, &mut self.tools()) {
                        Ok(_) => {
                            told.notes.push(Note::WroteAgain { file: told.file.clone() });
                            overwritten.push((installation, told));
                        }
                        Err(error) => told.became = Became::Failed(error),
                    },
                    Err(error) => told.became = Became::Failed(error),
                }
            }
            open = overwritten;
        }
    }
}

/// Entries that call us in another way than ours, and were left alone.
fn alike(outcome: &Outcome, file: &Path) -> impl Iterator<Item = Note> {
    outcome.alike.iter().map(|line| Note::LooksLikeOurs { file: file.to_owned(), line: line.clone() })
}

/// What a person should know.
fn notes(places: &Places, told: &Told, scope: Scope, done: Done) -> Vec<Note> {
    let agent = told.agent;
    let mut notes = Vec::new();
    let left_out = told.left_out.clone();
    let program = agent.programs[0];
    match &told.version {
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
    if done != Done::Nothing && scope == Scope::Project && !agent.project_file.ends_with(".local.json") {
        notes.push(Note::Shared { file: told.file.clone() });
    }
    // Whether it was taken is not ours to know, so it is said every time.
    notes.extend(Note::trust(agent.host, scope));
    notes
}

/// Tells what came of it all.
pub(crate) fn tell(
    ui: &mut Ui,
    told: &[Told],
    json: bool,
    dry_run: bool,
) -> Result<ExitStatus, CommandError> {
    let lang = ui.lang();
    for told in told {
        match (json, dry_run || told.has_failed()) {
            (true, _) => ui.json(&told.to_wire())?,
            (false, false) => ui.say(&told.in_words(lang))?,
            // Standard output is for the diff alone, so that it can be kept or applied.
            (false, true) => {
                ui.say(told.diff())?;
                ui.remark(&told.in_words(lang))?;
            }
        }
    }
    let is_left = |told: &Told| told.notes.iter().any(|note| matches!(note, Note::LooksLikeOurs { .. }));
    Ok(match told.iter().any(Told::has_failed) {
        true => ExitStatus::Failed,
        false if told.iter().any(|told| matches!(told.became, Became::Uninstalled(_)) && is_left(told)) => {
            ExitStatus::No
        }
        false => ExitStatus::Success,
    })
}
