//! The `unstuck` command: reads arguments, hands over to one command, and turns its answer into an exit status.

mod commands;
mod exit;
mod explain;
mod knowledge;
mod lines;
mod nearest;
mod settings;
mod summary;
mod ui;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use exit::{CommandError, ExitStatus};
use settings::{Around, Settings};
use ui::{Language, Ui};

/// Makes AI agents' tool calls self-correcting: says what a failure is, and whether the same call may run again.
#[derive(Parser)]
#[command(name = "unstuck", version, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    /// Language of texts for people (default: from LC_ALL, LC_MESSAGES or LANG)
    #[arg(long, global = true, value_name = "LANG")]
    lang: Option<Language>,
    /// Set a setting for this run, stronger than every file and variable (see `unstuck config show`)
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Config(commands::config::ConfigArgs),
    Diagnose(commands::diagnose::DiagnoseArgs),
    Replay(commands::replay::ReplayArgs),
    Rules(commands::rules::RulesArgs),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ui::usage(&error),
    };
    let mut ui = Ui::new(cli.lang);
    match run(&mut ui, &cli).and_then(|status| ui.finish().map(|()| status)) {
        Ok(status) => status.into(),
        // A reader that has seen enough (`| head`) is no failure of ours.
        Err(CommandError::ReaderGone) => ExitStatus::Success.into(),
        Err(error) => {
            ui.complain(&error);
            error.status().into()
        }
    }
}

/// Hands over to the command that was asked for. A mistake in the settings stops it, but not the command that mends them.
fn run(ui: &mut Ui, cli: &Cli) -> Result<ExitStatus, CommandError> {
    let around = Around::here();
    let settings = Settings::load(&around, &cli.set);
    if let Ok(settings) = &settings {
        ui.prefer(settings.language().people);
    }
    match (&cli.command, settings) {
        (Command::Config(args), settings) => commands::config::run(ui, &around, settings, args),
        (Command::Diagnose(args), Ok(_)) => commands::diagnose::run(ui, args),
        (Command::Replay(args), Ok(_)) => commands::replay::run(ui, args),
        (Command::Rules(args), Ok(_)) => commands::rules::run(ui, args),
        (Command::Diagnose(_) | Command::Replay(_) | Command::Rules(_), Err(mistake)) => Err(mistake.into()),
    }
}
