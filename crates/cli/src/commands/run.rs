//! `unstuck run`: runs a command, explains how it failed, and runs it again where that may help.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use unstuck_exec::{Ending, Job, Run};
use unstuck_judge::rules::Stream;
use unstuck_judge::{Call, Lang, Observation, Outcome, Rules, nature, quote};
use unstuck_wire::redact::redact;

use crate::attempts::{
    self, ATTEMPT_VARIABLE, Aloud, Checked, Edges, Hindrance, SESSION_VARIABLE, Story, Terms, Tried, Turn,
    Work, clock,
};
use crate::cellar::Cellar;
use crate::checks::{self, Baseline, CheckArgs, Checks, Listener, Seen};
use crate::exit::{CommandError, ExitStatus};
use crate::protect::{ProtectArgs, Protection, RolledBack, Runs};
use crate::settings::OutputSettings;
use crate::ui::Ui;
use crate::{knowledge, lines, undelivered};

/// What ends a command when a person or a supervisor asks for it: hang-up, interrupt, quit, terminate.
const ENDING_SIGNALS: [i32; 4] = [1, 2, 3, 15];

/// Run a command, and run it again where its failure may pass by itself
///
/// Failures that may heal are retried after a wait, all others are explained; the command's output and exit code stay its
/// own. What may not be done twice is repeated only where the failure proves that nothing was done, or with --idempotent.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck run -- npm ci                              retry what may heal, explain the rest, keep the exit code
  unstuck run --retries 3 --deadline 2m -- ./deploy  at most three retries, all within two minutes
  unstuck run --timeout 30s -- cargo fetch           end an attempt after 30 s; the next one gets half as much again
  unstuck run --idempotent -- ./sync.sh              twice does no harm, so it may be repeated
  unstuck run --verify 'test -s dist/app.js' --protect dist -- npm run build
                                                     save dist, build, look, and put dist back where it came to nothing
  unstuck run --expect-json '.items|length > 0' -- curl -s https://api.shop.example/items
  unstuck run --json -- make 2> result.jsonl         the last line on standard error tells all as JSON

Exit code: the command's own; 124 it ran out of time, 125 unstuck could not do its work, 126 the command could not be
started, 127 there is no such command, 128 + n it was ended by signal n.")]
pub(crate) struct RunArgs {
    /// Retry at most this often (default: by the kind of the failure)
    #[arg(long, value_name = "N")]
    retries: Option<u8>,
    /// The time that all attempts and waits share, such as 90s, 2m or a number of seconds
    #[arg(long, value_name = "TIME", value_parser = attempts::time_limit)]
    deadline: Option<Duration>,
    /// End an attempt, and all that it started, after this long; a retry after that gets half as much again
    #[arg(long, value_name = "TIME", value_parser = attempts::time_limit)]
    timeout: Option<Duration>,
    /// To run it twice does no harm
    #[arg(long)]
    idempotent: bool,
    /// The session it belongs to (default: UNSTUCK_SESSION_ID, or a new one)
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// What it is called in the lines on standard error (default: from the command)
    #[arg(long, value_name = "NAME")]
    action: Option<String>,
    /// Print what came of it as one line of JSON, the last one on standard error
    #[arg(long)]
    json: bool,
    /// Say nothing but what the command says
    #[arg(long, short)]
    quiet: bool,
    /// The command to run
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    checks: CheckArgs,
    #[command(flatten)]
    protect: ProtectArgs,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &RunArgs) -> Result<ExitStatus, CommandError> {
    let (rules, mistakes) = knowledge::load_quietly();
    for mistake in mistakes {
        ui.aside(&format!("unstuck: {mistake}\n"));
    }
    let terms = Terms {
        door: "run",
        agent: "main".to_owned(),
        session: attempts::session("run", args.session.as_deref()),
        retries: args.retries,
        tries_guesses: args.retries.is_some_and(|retries| retries > 0),
        deadline: args.deadline,
        limit: args.timeout,
        idempotent: args.idempotent,
        aloud: if args.quiet { Aloud::Nothing } else { Aloud::Lines },
    };
    let checks = Checks::new(&args.checks, ui.lang())?;
    let protector = Protector { cellar, args: &args.protect, session: &terms.session, lang: ui.lang() };
    let mut work = CommandWork::new(args, &rules, cellar.settings.output(), checks, protector);
    let mut story = attempts::carry_out(ui, cellar, &rules, &terms, &mut work)?;
    // A shell would say it, so that it is said even where nothing else is.
    let mut said = work.complaint.take().map(|complaint| complaint + "\n").unwrap_or_default();
    if !args.json && !args.quiet {
        said += &story.in_words(Some(&work.line), ui.lang());
    }
    // Whoever called needs the command's own exit code, even where nobody reads our explanation.
    ui.aside(&said);
    if let Some(protection) = work.protection.take() {
        settle(ui, protection, &mut story);
    }
    if args.json {
        ui.aside(&story.to_wire().map(|wire| lines::json(&wire)).unwrap_or_default());
    }
    Ok(ExitStatus::Command(story.code()))
}

/// Everything is over: what was saved is brought back where that is wanted. That it could not be changes no exit code.
fn settle(ui: &mut Ui, mut protection: Protection<'_>, story: &mut Story) {
    story.snapshots.push(protection.id().to_string());
    let has_failed = !story.last().is_some_and(Tried::claims_success);
    story.rolled_back = match protection.settle(ui, has_failed) {
        Ok(RolledBack::No) => None,
        Ok(RolledBack::Declined) => Some(false),
        Ok(RolledBack::NothingChanged) => Some(true),
        Ok(RolledBack::Yes(restored)) => Some(restored.kept.is_empty()),
        Err(error) => {
            ui.complain(&error);
            if has_failed {
                ui.aside(&protection.by_hand(ui.lang()));
            }
            has_failed.then_some(false)
        }
    };
}

/// Saves files before a command runs.
#[derive(Clone, Copy)]
struct Protector<'a> {
    cellar: &'a Cellar,
    args: &'a ProtectArgs,
    session: &'a str,
    lang: Lang,
}

/// A command as something that can be sent, and sent again.
struct CommandWork<'a> {
    words: &'a [OsString],
    /// The same as a shell would read it.
    line: String,
    action: Option<&'a str>,
    rules: &'a Rules,
    kept: OutputSettings,
    checks: Checks,
    protector: Protector<'a>,
    /// What was saved before the first attempt.
    protection: Option<Protection<'a>>,
    /// How things were before the first attempt.
    baseline: Baseline,
    deadline: Option<Duration>,
    /// When all of it has to be over, the checks too.
    until: Option<Instant>,
    /// Why it could not be started.
    complaint: Option<String>,
}

impl<'a> CommandWork<'a> {
    fn new(
        args: &'a RunArgs,
        rules: &'a Rules,
        kept: OutputSettings,
        checks: Checks,
        protector: Protector<'a>,
    ) -> CommandWork<'a> {
        let words: Vec<String> =
            args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        CommandWork {
            words: &args.command,
            line: lines::quoted(&words),
            action: args.action.as_deref(),
            rules,
            kept,
            checks,
            protector,
            protection: None,
            baseline: Baseline::default(),
            deadline: args.deadline,
            until: None,
            complaint: None,
        }
    }

    fn job(&self, turn: &Turn<'_>) -> Job {
        let (program, rest) = match self.words {
            [program, rest @ ..] => (program.clone(), rest),
            [] => (OsString::new(), &[][..]),
        };
        let job = Job::new(program, rest)
            .on_terminal()
            .passing_input()
            .with_variable(ATTEMPT_VARIABLE, turn.number.to_string())
            .with_variable(SESSION_VARIABLE, turn.session);
        match turn.limit {
            Some(limit) => job.timeout(limit),
            None => job,
        }
    }
}

impl Work for CommandWork<'_> {
    fn call(&self) -> Call {
        Call::shell(&self.line)
    }

    fn action(&self) -> String {
        self.action.map_or_else(|| nature::approach(&self.call()), str::to_owned)
    }

    fn prepare(&mut self, first: &str) -> Result<(), CommandError> {
        let Protector { cellar, args, session, lang } = self.protector;
        let has_checks = self.checks.is_asked_for();
        let runs = Runs { call: &self.call(), key: first, session, label: &self.line, has_checks };
        self.protection = Protection::before(lang, cellar, args, &runs)?;
        self.baseline = self.checks.before();
        self.until = self.deadline.and_then(|deadline| Instant::now().checked_add(deadline));
        Ok(())
    }

    fn attempt(&mut self, turn: &Turn<'_>) -> Tried {
        self.attempt_noted(turn, &mut || ())
    }

    fn attempt_noted(&mut self, turn: &Turn<'_>, note: &mut dyn FnMut()) -> Tried {
        if let Some(protection) = self.protection.as_mut().filter(|_| turn.number == 1) {
            // What was saved is told of before anything can be lost, and it belongs to an attempt that stands in the record.
            note();
            protection.tell();
        }
        let mut reading = self.rules.read().in_passing().at(clock::here());
        let [mut stdout, mut stderr, mut merged] =
            [(); 3].map(|()| Edges::new(self.kept.head, self.kept.tail));
        let call = self.call();
        let mut heard = self.checks.listen(&call);
        let run = self.job(turn).run_while(note, |stream, bytes| {
            let (stream, kept) = match stream {
                unstuck_exec::Stream::Stdout => (Stream::Stdout, &mut stdout),
                unstuck_exec::Stream::Stderr => (Stream::Stderr, &mut stderr),
                unstuck_exec::Stream::Merged => (Stream::Merged, &mut merged),
            };
            reading.feed(stream, bytes);
            heard.feed(stream, bytes);
            kept.feed(bytes);
        });
        let program = self.words.first().map(|program| program.to_string_lossy()).unwrap_or_default();
        let lost = run.undelivered.as_ref().map(undelivered::complaint);
        let program = redact(&program);
        let program = quote::bare(&program);
        let (outcome, code, complaint) = match &run.ending {
            _ if lost.is_some() => (undelivered::OUTCOME, undelivered::CODE, lost.clone()),
            Ending::Exited(code) => (Outcome::Exited { code: *code }, *code as u8, None),
            Ending::Signalled(signal) => (Outcome::Signalled { signal: *signal }, 128 + *signal as u8, None),
            Ending::TimedOut => (Outcome::TimedOut, 124, None),
            Ending::NotFound => {
                let complaint = format!("unstuck: {program}: command not found");
                (Outcome::Exited { code: 127 }, 127, Some(complaint))
            }
            Ending::NotExecutable(why) => {
                (Outcome::Exited { code: 126 }, 126, Some(format!("unstuck: {program}: {why}")))
            }
            Ending::NotTried(why) => {
                let complaint = format!("unstuck: {program}: could not be tried: {why}");
                (Outcome::Exited { code: 125 }, 125, Some(complaint))
            }
        };
        if let Some(complaint) = &complaint {
            reading.feed(Stream::Stderr, complaint.as_bytes());
            stderr.feed(complaint.as_bytes());
        }
        self.complaint = complaint;
        let (diagnosis, checks, hindrance) = match lost {
            Some(lost) => {
                let diagnosis = undelivered::diagnosis(self.rules, &call, &lost);
                (diagnosis, Vec::new(), Some(Hindrance::OutputLost))
            }
            None => {
                let exit_code = match &run.ending {
                    Ending::Exited(code) => Some(*code),
                    Ending::Signalled(_)
                    | Ending::TimedOut
                    | Ending::NotFound
                    | Ending::NotExecutable(_)
                    | Ending::NotTried(_) => None,
                };
                let checks = self.look(turn, exit_code, heard);
                let diagnosis = match exit_code.filter(|code| *code != 0) {
                    Some(code) if self.checks.accepts(code) => checks::as_expected(),
                    Some(_) | None => self.rules.conclude(reading, &call, outcome, None),
                };
                (diagnosis, checks, hindrance(&run))
            }
        };
        let [stdout, stderr, merged] = [stdout, stderr, merged].map(Edges::into_bytes);
        Tried {
            observation: Observation { call, outcome, http_status: None, stdout, stderr, merged },
            diagnosis,
            took: run.took,
            code,
            checks,
            hindrance,
        }
    }
}

impl CommandWork<'_> {
    /// Looks whether a success is one.
    fn look(&self, turn: &Turn<'_>, exit_code: Option<i32>, heard: Listener) -> Vec<Checked> {
        let variables =
            [(ATTEMPT_VARIABLE, turn.number.to_string()), (SESSION_VARIABLE, turn.session.to_owned())]
                .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let seen = Seen { exit_code, heard, variables: &variables, until: self.until };
        self.checks.look(&self.baseline, seen)
    }
}

/// Why a command cannot be run again, whatever came of it: the one place that looks at what became of its input and of
/// whoever waits for it.
fn hindrance(run: &Run) -> Option<Hindrance> {
    let is_told = |code: &i32| ENDING_SIGNALS.contains(code);
    let was_ended = match &run.ending {
        Ending::Signalled(signal) => is_told(signal),
        // A shell whose command was ended by a signal, and a program that catches it to clean up.
        Ending::Exited(code) => is_told(&(code - 128)),
        Ending::TimedOut | Ending::NotFound | Ending::NotExecutable(_) | Ending::NotTried(_) => false,
    };
    match (run.asked_to_end || was_ended, run.input_used) {
        (true, _) => Some(Hindrance::Ended),
        (false, true) => Some(Hindrance::InputUsed),
        (false, false) => None,
    }
}
