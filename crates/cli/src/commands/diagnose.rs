//! `unstuck diagnose`: explain one failure, or many.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::PathBuf;
use std::time::Duration;

use unstuck_exec::{Ending, Job};
use unstuck_judge::rules::Stream;
use unstuck_judge::{Call, Outcome, Rules, quote};
use unstuck_wire::failure;
use unstuck_wire::report::Report;

use crate::exit::{CommandError, ExitStatus};
use crate::ui::Ui;
use crate::{explain, knowledge, lines, ui, undelivered};

/// Explain a failure: its cause, the line that shows it, whether to retry, and what to do
///
/// Runs a command once and explains how it failed, or explains output that is piped in. With a command, its own output and
/// exit code are passed on and the explanation goes to standard error.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck diagnose -- cargo build                          run a command once and explain its failure
  some-tool 2>&1 | unstuck diagnose --exit-code 1          explain output that is already there
  unstuck diagnose --exit-code 128 --command 'git push' < push.log
  unstuck diagnose --jsonl < failures.jsonl                many at once, one JSON line each

Each line of --jsonl may have: id, tool, input or command, exit_code, signal, http_status, stdout, stderr, text,
timed_out, interrupted.")]
pub(crate) struct DiagnoseArgs {
    /// The exit code of what printed the output
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with_all = ["jsonl", "run"])]
    exit_code: Option<i32>,
    /// The signal that ended it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..128))]
    #[arg(conflicts_with_all = ["jsonl", "run", "exit_code"])]
    signal: Option<i32>,
    /// The HTTP status it got
    #[arg(long, value_name = "N", conflicts_with_all = ["jsonl", "run"])]
    http_status: Option<u16>,
    /// It ran out of time
    #[arg(long, conflicts_with_all = ["jsonl", "run", "exit_code", "signal"])]
    timed_out: bool,
    /// Somebody stopped it
    #[arg(long, conflicts_with_all = ["jsonl", "run", "exit_code", "signal", "timed_out"])]
    interrupted: bool,
    /// The command line that printed the output
    #[arg(long, value_name = "LINE", conflicts_with_all = ["jsonl", "run"])]
    command: Option<String>,
    /// The tool that printed the output
    #[arg(long, value_name = "NAME", default_value = "Bash", conflicts_with_all = ["jsonl", "run"])]
    tool: String,
    /// Read the output from a file instead of standard input
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    input: Option<PathBuf>,
    /// Read one failure per line as JSON, print one diagnosis per line as JSON
    #[arg(long, conflicts_with = "run")]
    jsonl: bool,
    /// Print the diagnosis as one line of JSON
    #[arg(long)]
    json: bool,
    /// Use these rules before all others (may be given several times)
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// End the command, and all that it started, after this many seconds
    #[arg(long, value_name = "SECONDS", requires = "run", value_parser = seconds)]
    timeout: Option<Duration>,
    /// The command to run
    #[arg(last = true, value_name = "COMMAND")]
    run: Vec<OsString>,
}

pub(crate) fn run(ui: &mut Ui, args: &DiagnoseArgs) -> Result<ExitStatus, CommandError> {
    let rules = knowledge::load(ui, &args.rules)?;
    if !args.run.is_empty() {
        return run_command(ui, args, &rules);
    }
    let mut input: Box<dyn Read> = match &args.input {
        Some(path) => Box::new(
            File::open(path).map_err(|source| CommandError::Unreadable { path: path.clone(), source })?,
        ),
        None if ui::input_is_terminal() => return Err(CommandError::NothingToRead),
        None => Box::new(io::stdin().lock()),
    };
    match args.jsonl {
        true => batch(ui, &rules, &mut io::BufReader::with_capacity(256 * 1024, input)),
        false => piped(ui, args, &rules, &mut *input),
    }
}

/// Runs the command once, passes everything on, and explains how it ended.
fn run_command(ui: &mut Ui, args: &DiagnoseArgs, rules: &Rules) -> Result<ExitStatus, CommandError> {
    let words: Vec<String> = args.run.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (program, rest) = args.run.split_first().ok_or(CommandError::NothingToRead)?;
    let mut job = Job::new(program, rest);
    if let Some(limit) = args.timeout {
        job = job.timeout(limit);
    }
    let mut reading = rules.read();
    let run = job.run(|stream, bytes| {
        let stream = match stream {
            unstuck_exec::Stream::Stdout => Stream::Stdout,
            unstuck_exec::Stream::Stderr => Stream::Stderr,
            unstuck_exec::Stream::Merged => Stream::Merged,
        };
        reading.feed(stream, bytes);
    });
    let lost = run.undelivered.as_ref().map(undelivered::complaint);
    let (outcome, status) = match &run.ending {
        _ if lost.is_some() => (undelivered::OUTCOME, ExitStatus::Failed),
        Ending::Exited(code) => (Outcome::Exited { code: *code }, ExitStatus::Command(*code as u8)),
        Ending::Signalled(signal) => {
            (Outcome::Signalled { signal: *signal }, ExitStatus::Command(128 + *signal as u8))
        }
        Ending::TimedOut => (Outcome::TimedOut, ExitStatus::Command(124)),
        Ending::NotFound => {
            let said = format!("unstuck: {}: command not found", quote::bare(&words[0]));
            reading.feed(Stream::Stderr, said.as_bytes());
            (Outcome::Exited { code: 127 }, ExitStatus::Command(127))
        }
        Ending::NotExecutable(why) => {
            reading.feed(Stream::Stderr, format!("unstuck: {}: {why}", quote::bare(&words[0])).as_bytes());
            (Outcome::Exited { code: 126 }, ExitStatus::Command(126))
        }
        Ending::NotTried(why) => {
            let said = format!("unstuck: {}: could not be tried: {why}", quote::bare(&words[0]));
            reading.feed(Stream::Stderr, said.as_bytes());
            (Outcome::Exited { code: 125 }, ExitStatus::Failed)
        }
    };
    let line = lines::quoted(&words);
    let call = Call::shell(&line);
    let diagnosis = match &lost {
        Some(lost) => undelivered::diagnosis(rules, &call, lost),
        None => rules.conclude(reading, &call, outcome, None),
    };
    let report = Report::new(diagnosis, &call, ui.lang());
    let said = match args.json {
        true => lines::json(&report.to_wire(None)),
        false => explain::diagnosis(&report, Some(&line), ui.lang()),
    };
    // Whoever called needs the command's own exit code, even where nobody reads our explanation.
    ui.aside(&said);
    Ok(status)
}

/// Reads a time limit: a number of seconds that can pass.
fn seconds(text: &str) -> Result<Duration, String> {
    let limit = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    limit.filter(|limit| !limit.is_zero()).ok_or_else(|| "expected a number of seconds above 0".to_owned())
}

/// Explains output that is piped in, however much it is.
fn piped(
    ui: &mut Ui,
    args: &DiagnoseArgs,
    rules: &Rules,
    input: &mut dyn Read,
) -> Result<ExitStatus, CommandError> {
    let outcome = match (args.exit_code, args.signal) {
        _ if args.timed_out => Outcome::TimedOut,
        _ if args.interrupted => Outcome::Interrupted,
        (Some(code), _) => Outcome::Exited { code },
        (None, Some(signal)) => Outcome::Signalled { signal },
        (None, None) => Outcome::NoExitCode,
    };
    let mut reading = rules.read();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => reading.feed(Stream::Merged, &buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => {
                return Err(match &args.input {
                    Some(path) => CommandError::Unreadable { path: path.clone(), source },
                    None => CommandError::Input(source),
                });
            }
        }
    }
    let input = match &args.command {
        Some(line) => serde_json::json!({ "command": line }),
        None => serde_json::json!({}),
    };
    let call = Call::new(&args.tool, input);
    let diagnosis = rules.conclude(reading, &call, outcome, args.http_status);
    let report = Report::new(diagnosis, &call, ui.lang());
    match args.json {
        true => ui.json(&report.to_wire(None))?,
        false => ui.say(&explain::diagnosis(&report, args.command.as_deref(), ui.lang()))?,
    }
    Ok(ExitStatus::Success)
}

/// Diagnoses line by line; a bad line is named and the rest goes on.
fn batch(ui: &mut Ui, rules: &Rules, input: &mut dyn BufRead) -> Result<ExitStatus, CommandError> {
    let mut lines = lines::Lines::new(input);
    while let Some(line) = lines.next().map_err(CommandError::Input)? {
        let number = line.number;
        match line.text.and_then(|text| failure::read(text).map_err(|error| error.to_string())) {
            Ok(failure) => {
                let diagnosis = rules.diagnose(&failure.observation);
                let report = Report::new(diagnosis, &failure.observation.call, ui.lang());
                ui.json(&report.to_wire(Some(failure.id)))?;
            }
            Err(what) => ui.json(&serde_json::json!({ "line": number, "error": what }))?,
        }
    }
    Ok(ExitStatus::Success)
}
