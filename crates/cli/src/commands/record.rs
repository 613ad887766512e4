//! `unstuck record`: tells of a command that somebody else ran.

use std::io::{self, Read};
use std::time::Duration;

use serde_json::json;
use unstuck_judge::rules::Stream;
use unstuck_judge::{Call, Observation, Outcome};
use unstuck_store::Kept;

use crate::attempts::{self, Aloud, Edges, Logbook, Terms, Tried, clock, contradicted, verify_line};
use crate::cellar::{self, Cellar};
use crate::checks::{CheckArgs, Checks, Seen};
use crate::exit::{CommandError, ExitStatus};
use crate::ui::{self, Ui};
use crate::{explain, knowledge};

/// Record a command that somebody else ran, and explain how it failed
///
/// Reads its output from standard input. It gets the same diagnosis, the same line and the same place in the timeline as a
/// command that unstuck ran itself.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  ./backup.sh > out.log 2>&1; unstuck record --action backup --exit-code $? --duration-ms 5200 < out.log
  unstuck record --action fetch --exit-code 6 --duration-ms 30 --command 'curl -s https://api.example/x' < err.log
  unstuck record --action nightly --exit-code 0 --duration-ms 900 < /dev/null")]
pub(crate) struct RecordArgs {
    /// What it is called
    #[arg(long, value_name = "NAME")]
    action: String,
    /// The exit code it ended with
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    exit_code: i32,
    /// How long it took, in milliseconds
    #[arg(long, value_name = "N")]
    duration_ms: u64,
    /// The command line it was
    #[arg(long, value_name = "LINE")]
    command: Option<String>,
    /// The session it belongs to (default: UNSTUCK_SESSION_ID, or a new one)
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print the diagnosis as one line of JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &RecordArgs) -> Result<ExitStatus, CommandError> {
    let rules = knowledge::load(ui, &[])?;
    let call = match &args.command {
        Some(line) => Call::shell(line),
        None => Call::new(&args.action, json!({})),
    };
    let kept = cellar.settings.output();
    let mut output = Edges::new(kept.head, kept.tail);
    let mut reading = rules.read().at(clock::here());
    // A success is doubted for the same signs as that of a command that unstuck ran itself.
    let doubts = Checks::new(&CheckArgs::default(), ui.lang())?;
    let mut heard = doubts.listen(&call);
    // Whoever types the command by hand has no output to hand over.
    if !ui::input_is_terminal() {
        let mut input = io::stdin().lock();
        let mut buffer = vec![0; 256 * 1024];
        loop {
            match input.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    reading.feed(Stream::Merged, &buffer[..count]);
                    output.feed(&buffer[..count]);
                    heard.feed(Stream::Stdout, &buffer[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(CommandError::Input(source)),
            }
        }
    }
    // A shell shows a signal as 128 and its number, and a time limit as 124.
    let outcome = match args.exit_code {
        124 => Outcome::TimedOut,
        code => Outcome::Exited { code },
    };
    let diagnosis = rules.conclude(reading, &call, outcome, None);
    let exit_code = (outcome != Outcome::TimedOut).then_some(args.exit_code);
    let seen = Seen { exit_code, heard, variables: &[], until: None };
    let mut tried = Tried {
        observation: Observation {
            call,
            outcome,
            http_status: None,
            stdout: Vec::new(),
            stderr: Vec::new(),
            merged: output.into_bytes(),
        },
        diagnosis,
        took: Duration::from_millis(args.duration_ms),
        code: args.exit_code as u8,
        checks: doubts.look(&doubts.before(), seen),
        hindrance: None,
    };
    contradicted::look(&mut tried, &rules);
    let terms = Terms {
        door: "record",
        agent: "main".to_owned(),
        session: attempts::session("record", args.session.as_deref()),
        retries: None,
        deadline: None,
        limit: None,
        tries_guesses: false,
        idempotent: false,
        aloud: Aloud::Lines,
    };
    let cleaner = cellar.cleaner();
    let mut logbook = Logbook::new(cellar, &cleaner, &terms, ui.lang());
    let now = cellar::now();
    logbook.asked(1, &tried.observation.call, now.saturating_sub(args.duration_ms));
    let written = logbook.ended(&rules, 1, &tried, None, now);
    match args.json {
        true => ui.json(&written.report.to_wire(None))?,
        false => {
            ui.say(&verify_line(&args.action, &tried, &written.report))?;
            if !tried.claims_success() {
                ui.say(&explain::diagnosis(&written.report, args.command.as_deref(), ui.lang()))?;
            }
        }
    }
    match written.kept {
        Kept::Stored | Kept::Recorded | Kept::Spooled { .. } => Ok(ExitStatus::Success),
        Kept::Lost { why } => Err(CommandError::NotKept { why }),
    }
}
