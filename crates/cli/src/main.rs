//! The `unstuck` command: reads arguments, hands over to one command, and turns its answer into an exit status.

mod agents;
mod at_risk;
mod attempts;
mod bill;
mod breaker;
mod call_page;
mod cellar;
mod checks;
#[cfg(target_os = "linux")]
mod closed_output;
mod columns;
mod commands;
mod deadline;
mod deliver;
mod demo;
mod desk;
mod doctor;
mod editing;
mod editor;
mod event_line;
mod exit;
mod explain;
mod find_server;
mod find_session;
mod gone_snapshot;
mod headless;
mod http;
mod knowledge;
mod last_word;
mod lesson_draft;
mod lesson_page;
mod lines;
mod machine;
mod made_up;
mod mcp;
#[cfg(target_os = "linux")]
mod memory;
mod moment;
mod nearest;
mod newer;
mod onlooker;
mod outside;
mod own_tools;
mod person;
mod plain;
mod post;
mod problem_page;
mod program_file;
mod progress;
mod protect;
mod provenance;
mod reader;
mod recorder;
mod regular_file;
mod removed;
mod restored_page;
mod rewriter;
mod safe;
mod same_name;
mod scratch;
mod server_line;
mod settings;
mod since;
mod snapshot_page;
mod summary;
mod switch;
mod transcript_files;
mod ui;
mod undelivered;
mod undoable;
mod whereabouts;
mod wire_call;

use std::env;
use std::ffi::OsString;
use std::panic;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use unstuck_judge::Lang;
use unstuck_store::{SkippedRows, skipped_rows};

use cellar::Cellar;
use exit::{CommandError, ExitStatus};
use gone_snapshot::GoneSnapshot;
use settings::{Around, Settings, assignments};
use ui::{Language, Ui};

/// Makes AI agents' tool calls self-correcting: says what a failure is, and whether the same call may run again.
#[derive(Parser)]
#[command(name = "unstuck", version, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    manner: Manner,
    #[command(subcommand)]
    command: Command,
}

/// What every command can be told.
#[derive(clap::Args)]
struct Manner {
    /// Language of texts for people (default: from LC_ALL, LC_MESSAGES or LANG)
    #[arg(long, global = true, value_name = "LANG")]
    lang: Option<Language>,
    /// Set a setting for this run, stronger than every file and variable (see `unstuck config show`)
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// `run` without all other commands.
#[derive(Parser)]
struct RunAlone {
    #[command(flatten)]
    manner: Manner,
    #[command(flatten)]
    args: commands::run::RunArgs,
}

#[derive(Subcommand)]
enum Command {
    Agent(commands::agent::AgentArgs),
    Alerts(commands::alerts::AlertsArgs),
    Allow(commands::allow::AllowArgs),
    Config(commands::config::ConfigArgs),
    Demo(commands::demo::DemoArgs),
    Diagnose(commands::diagnose::DiagnoseArgs),
    Diff(commands::diff::DiffArgs),
    Doctor(commands::doctor::DoctorArgs),
    Export(commands::export::ExportArgs),
    Gc(commands::gc::GcArgs),
    GitSnapshot(commands::git_snapshot::GitSnapshotArgs),
    Heartbeat(commands::heartbeat::HeartbeatArgs),
    Hook(commands::hook::HookArgs),
    Http(Box<commands::http::HttpArgs>),
    Install(commands::install::InstallArgs),
    Lessons(commands::lessons::LessonsArgs),
    Log(commands::log::LogArgs),
    Mcp(commands::mcp::McpArgs),
    McpServer(commands::mcp_server::McpServerArgs),
    Pause(commands::pause::PauseArgs),
    Problems(commands::problems::ProblemsArgs),
    Purge(commands::purge::PurgeArgs),
    Record(commands::record::RecordArgs),
    Recover(commands::recover::RecoverArgs),
    Redo(commands::redo::RedoArgs),
    Replay(commands::replay::ReplayArgs),
    Restore(commands::restore::RestoreArgs),
    Resume(commands::resume::ResumeArgs),
    Rm(commands::rm::RmArgs),
    Rules(commands::rules::RulesArgs),
    Run(commands::run::RunArgs),
    Scan(commands::scan::ScanArgs),
    Show(commands::show::ShowArgs),
    Snapshot(commands::snapshot::SnapshotArgs),
    Snapshots(commands::snapshots::SnapshotsArgs),
    Stats(commands::stats::StatsArgs),
    Status(commands::status::StatusArgs),
    Undo(commands::undo::UndoArgs),
    Uninstall(commands::uninstall::UninstallArgs),
}

/// The command line. Many programs take `version` as a command.
fn parsed() -> Result<Cli, clap::Error> {
    let args: Vec<OsString> = env::args_os().collect();
    match &args[..] {
        [program, only] if only == "version" => Cli::try_parse_from([program.clone(), "--version".into()]),
        _ => Cli::try_parse_from(args),
    }
}

fn main() -> ExitCode {
    // A file that may not grow any more is an error to answer, not a signal to die of. Commands that we start do not inherit it.
    #[cfg(unix)]
    let _it_ends_us_then =
        signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
    #[cfg(target_os = "linux")]
    memory::outlive_missing_pages();
    if let Some(args) = hook_args() {
        #[cfg(target_os = "linux")]
        memory::outlive_aborts();
        let _it_never_fails = commands::hook::run(&mut Ui::new(None), &args);
        return ExitStatus::Success.into();
    }
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        ui::confess(&place, panic.payload_as_str().unwrap_or_default());
    }));
    // Whatever we were asked to run is not to blame, and 101 could be its own.
    panic::catch_unwind(command).unwrap_or_else(|_| ExitStatus::Failed.into())
}

/// Everything but a hook.
fn command() -> ExitCode {
    let cli = match run_alone().map_or_else(parsed, Ok) {
        Ok(cli) => cli,
        // A code that the command could have ended with itself would be taken for its own.
        Err(error) if error.use_stderr() && wraps_a_command() => {
            let _shown = ui::usage(&error);
            return ExitStatus::Failed.into();
        }
        Err(error) => return ui::usage(&error),
    };
    let mut ui = Ui::new(cli.manner.lang);
    match run(&mut ui, &cli).and_then(|status| ui.conclude(status)) {
        Ok(status) => status.into(),
        // A reader that has seen enough (`| head`) is no failure of ours.
        Err(CommandError::ReaderGone) => ExitStatus::Success.into(),
        Err(error) => {
            ui.complain(&error);
            match error.status() {
                ExitStatus::Usage if wraps_a_command() => ExitStatus::Failed.into(),
                status => status.into(),
            }
        }
    }
}

/// Was the command asked for that runs another one?
fn wraps_a_command() -> bool {
    let mut words = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    loop {
        match words.next().as_deref() {
            Some("--set" | "--lang") => drop(words.next()),
            Some(word) if word.starts_with('-') => {}
            word => return matches!(word, Some("run" | "agent" | "mcp")),
        }
    }
}

/// Hands over to the command that was asked for. A mistake in the settings stops it, but not the command that mends them.
fn run(ui: &mut Ui, cli: &Cli) -> Result<ExitStatus, CommandError> {
    let mut around = Around::here();
    if let Command::Gc(_) | Command::Heartbeat(_) = &cli.command {
        // They tend a store that all projects share: what one of them wishes must not remove what others keep.
        around.working_folder = None;
    }
    let flags = assignments(env::args_os(), &cli.manner.set);
    if let Command::Doctor(args) = &cli.command {
        // Whoever is asked what is wrong must not stop at the first thing that is.
        let (settings, mistakes) = Settings::load_leniently(&around, &flags);
        ui.prefer(settings.language().people);
        return commands::doctor::run(ui, &Cellar::leniently(&around, settings, mistakes), args);
    }
    if let Command::McpServer(args) = &cli.command {
        return commands::mcp_server::run(ui, &flags, args);
    }
    if let Command::Run(_) | Command::Http(_) | Command::Mcp(_) = &cli.command {
        // A mistake of ours or in our settings is no reason not to run what somebody else needs.
        let (settings, mistakes) = Settings::load_leniently(&around, &flags);
        ui.prefer(settings.language().people);
        let cellar = Cellar::leniently(&around, settings, mistakes);
        for mistake in cellar.mistakes() {
            let told = mistake.in_words(ui.lang());
            ui.aside(&format!("unstuck: {told}\n"));
        }
        return hand_over(ui, &cellar, &cli.command);
    }
    let settings = Settings::load(&around, &flags);
    if let Ok(settings) = &settings {
        ui.prefer(settings.language().people);
    }
    if let Command::Config(args) = &cli.command {
        return commands::config::run(ui, &around, settings, args);
    }
    let cellar = Cellar::new(&around, settings?);
    let done = hand_over(ui, &cellar, &cli.command);
    let status = done.map_err(|error| GoneSnapshot::explain(error, &cellar))?;
    if let Some(why) = cellar.lines_wait() {
        ui.remark(&match ui.lang() {
            Lang::En => format!(
                "{why}: entries that wait in the spool are not shown yet\n",
                why = why.in_words(Lang::En)
            ),
            Lang::Zh => format!("{why}：在暂存区等待的记录尚未显示\n", why = why.in_words(Lang::Zh)),
        })?;
    }
    let skipped = skipped_rows();
    if skipped.rows > 0 {
        ui.remark(&skipped_in_words(&skipped, ui.lang()))?;
    }
    if let Command::Alerts(_) | Command::Gc(_) | Command::Problems(_) | Command::Stats(_) = &cli.command {
        ui.finish()?;
        commands::heartbeat::alert_quietly(ui.lang(), &cellar);
    }
    Ok(status)
}

/// Rows that could not be read and were left out of an answer.
fn skipped_in_words(skipped: &SkippedRows, lang: Lang) -> String {
    let first = skipped.first.as_deref().unwrap_or("?");
    match lang {
        Lang::En => format!(
            "{} cannot be read and {} left out (the first: {first}); `unstuck doctor` tells more\n",
            removed::counted(skipped.rows, ["row", "rows"]),
            if skipped.rows == 1 { "is" } else { "are" },
        ),
        Lang::Zh => {
            format!("有 {} 行无法读取，已略过（第一处：{first}）；详见 `unstuck doctor`\n", skipped.rows)
        }
    }
}

fn hand_over(ui: &mut Ui, cellar: &Cellar, command: &Command) -> Result<ExitStatus, CommandError> {
    match command {
        Command::Agent(args) => commands::agent::run(ui, cellar, args),
        Command::Alerts(args) => commands::alerts::run(ui, cellar, args),
        Command::Allow(args) => commands::allow::run(ui, cellar, args),
        Command::Config(_) | Command::McpServer(_) => Ok(ExitStatus::Success),
        Command::Demo(args) => commands::demo::run(ui, cellar, args),
        Command::Diagnose(args) => commands::diagnose::run(ui, args),
        Command::Diff(args) => commands::diff::run(ui, cellar, args),
        Command::Doctor(args) => commands::doctor::run(ui, cellar, args),
        Command::Export(args) => commands::export::run(ui, cellar, args),
        Command::Gc(args) => commands::gc::run(ui, cellar, args),
        Command::GitSnapshot(args) => commands::git_snapshot::run(ui, cellar, args),
        Command::Heartbeat(args) => commands::heartbeat::run(ui, cellar, args),
        Command::Hook(args) => commands::hook::run(ui, args),
        Command::Http(args) => commands::http::run(ui, cellar, args),
        Command::Install(args) => commands::install::run(ui, cellar, args),
        Command::Lessons(args) => commands::lessons::run(ui, cellar, args),
        Command::Log(args) => commands::log::run(ui, cellar, args),
        Command::Mcp(args) => commands::mcp::run(ui, cellar, args),
        Command::Pause(args) => commands::pause::run(ui, cellar, args),
        Command::Problems(args) => commands::problems::run(ui, cellar, args),
        Command::Purge(args) => commands::purge::run(ui, cellar, args),
        Command::Record(args) => commands::record::run(ui, cellar, args),
        Command::Recover(args) => commands::recover::run(ui, cellar, args),
        Command::Redo(args) => commands::redo::run(ui, cellar, args),
        Command::Replay(args) => commands::replay::run(ui, cellar, args),
        Command::Restore(args) => commands::restore::run(ui, cellar, args),
        Command::Resume(args) => commands::resume::run(ui, cellar, args),
        Command::Rm(args) => commands::rm::run(ui, cellar, args),
        Command::Rules(args) => commands::rules::run(ui, args),
        Command::Run(args) => commands::run::run(ui, cellar, args),
        Command::Scan(args) => commands::scan::run(ui, cellar, args),
        Command::Show(args) => commands::show::run(ui, cellar, args),
        Command::Snapshot(args) => commands::snapshot::run(ui, cellar, args),
        Command::Snapshots(args) => commands::snapshots::run(ui, cellar, args),
        Command::Stats(args) => commands::stats::run(ui, cellar, args),
        Command::Status(args) => commands::status::run(ui, cellar, args),
        Command::Undo(args) => commands::undo::run(ui, cellar, args),
        Command::Uninstall(args) => commands::uninstall::run(ui, cellar, args),
    }
}

/// The arguments of `run` where that is the first word: a command does not wait for the parser to learn all the others. What
/// is not understood so, or is to be explained, is left to the parser that knows them.
fn run_alone() -> Option<Cli> {
    env::args_os().nth(1).filter(|word| word == "run")?;
    let RunAlone { manner, args } = RunAlone::try_parse_from(env::args_os().skip(1)).ok()?;
    Some(Cli { manner, command: Command::Run(args) })
}

/// The arguments of a hook. They are read by hand: agents take our usage error's exit code for a refusal, and a hook should
/// not wait for the parser.
fn hook_args() -> Option<commands::hook::HookArgs> {
    let words: Vec<String> = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let mut set = Vec::new();
    let mut plain = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-h" | "--help" => return None,
            "--set" => set.extend(rest.next().cloned()),
            "--lang" => drop(rest.next()),
            word => match word.strip_prefix("--set=") {
                Some(assignment) => set.push(assignment.to_owned()),
                None if word.starts_with('-') => {}
                None => plain.push(word),
            },
        }
    }
    let mut plain = plain.into_iter();
    let is_hook = plain.next()? == "hook";
    let door = plain.next().unwrap_or_default().to_owned();
    is_hook.then_some(commands::hook::HookArgs { door, set })
}
