//! The `unstuck` command: reads arguments, hands over to one command, and turns its answer into an exit status.

mod cellar;
mod commands;
mod exit;
mod explain;
mod knowledge;
mod lines;
mod summary;
mod ui;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use exit::{CommandError, ExitStatus};
use ui::{Language, Ui};

/// Makes AI agents' tool calls self-correcting: says what a failure is, and whether the same call may run again.
#[derive(Parser)]
#[command(name = "unstuck", version, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    /// Language of texts for people (default: from LC_ALL, LC_MESSAGES or LANG)
    #[arg(long, global = true, value_name = "LANG")]
    lang: Option<Language>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
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
    let result = match &cli.command {
        Command::Diagnose(args) => commands::diagnose::run(&mut ui, args),
        Command::Replay(args) => commands::replay::run(&mut ui, args),
        Command::Rules(args) => commands::rules::run(&mut ui, args),
    };
    match result.and_then(|status| ui.finish().map(|()| status)) {
        Ok(status) => status.into(),
        // A reader that has seen enough (`| head`) is no failure of ours.
        Err(CommandError::ReaderGone) => ExitStatus::Success.into(),
        Err(error) => {
            ui.complain(&error);
            error.status().into()
        }
    }
}
