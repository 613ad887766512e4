//! `unstuck hook`: the door for agents. It answers in the agent's own format, always exits 0 and is silent on standard
//! error, whatever happens: a fault of ours goes to the timeline, never to the agent.

use std::io::{self, BufRead, BufReader, Read};
use std::panic;
use std::path::{Path, PathBuf};

use unstuck_judge::Rules;
use unstuck_judge::ladder::{Round, Rung};
use unstuck_store::{Answer, Entry, Kept, Mode, NAME_MAX, OwnFault, Retry, Ruling, Who};
use unstuck_wire::clean::{Clean, Cleaner};
use unstuck_wire::hook::generic::{self, WireAnswer, WireRetryAdvice};
use unstuck_wire::hook::{Happened, Letter};
use unstuck_wire::report::Report;
use unstuck_wire::time;

use crate::cellar::{self, Cellar};
use crate::desk::{self, Desk};
use crate::exit::{CommandError, ExitStatus};
use crate::ui::Ui;
use crate::{alive, knowledge};

/// The most that one payload may hold.
const PAYLOAD_MAX: u64 = 256 * 1024 * 1024;

/// Answer an agent's hook (reads a payload on standard input)
///
/// Doors: `generic` reads one JSON object per line, says what happened (before, after, ask, approved, denied, user, end), and
/// answers each with one line. It always exits 0: a refusal is said in the answer.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  echo '{\"event\":\"before\",\"session\":\"s1\",\"call_id\":\"c1\",\"tool\":\"Bash\",\"input\":{\"command\":\"npm ci\"}}' \\
    | unstuck hook generic
  echo '{\"event\":\"after\",\"session\":\"s1\",\"call_id\":\"c1\",\"tool\":\"Bash\",\"input\":{\"command\":\"npm ci\"},
         \"exit_code\":127,\"stderr\":\"npm: command not found\"}' | tr -d '\\n' | unstuck hook generic")]
pub(crate) struct HookArgs {
    /// The format: generic
    pub(crate) door: String,
    /// Settings for this run; they are read by hand, with the rest of a hook's arguments
    #[arg(skip)]
    pub(crate) set: Vec<String>,
}

/// Answers, and never fails.
pub(crate) fn run(ui: &mut Ui, args: &HookArgs) -> Result<ExitStatus, CommandError> {
    let cellar = Cellar::for_hooks(&args.set);
    fall_silent(cellar.folder().ok().map(Path::to_owned));
    if cellar.settings.hook().enabled {
        let _nobody_may_notice = serve(ui, &cellar, &args.door);
    }
    let _nobody_may_notice = ui.finish();
    Ok(ExitStatus::Success)
}

/// A panic of ours must look like nothing at all to the agent. Whoever looks at the timeline finds where it was.
fn fall_silent(folder: Option<PathBuf>) {
    #[allow(clippy::exit)]
    panic::set_hook(Box::new(move |panic| {
        if let (Some(folder), Some(place)) = (&folder, panic.location()) {
            unstuck_store::note_crash(folder, cellar::now(), &place.to_string());
        }
        std::process::exit(0)
    }));
}

fn serve(ui: &mut Ui, cellar: &Cellar, door: &str) -> Result<(), CommandError> {
    let cleaner = cellar.cleaner();
    let mut post = Post {
        desk: cellar.desk(&cleaner),
        cleaner: &cleaner,
        tool_errors: cellar.settings.store().tool_errors,
        rules: None,
        pending: cellar.faults(),
    };
    if door != "generic" {
        post.pending.push(("hook", format!("no door is called {door}")));
        return post.tell_faults();
    }
    let mut input = BufReader::with_capacity(64 * 1024, io::stdin().lock().take(PAYLOAD_MAX));
    let mut payload = Vec::new();
    let mut is_first = true;
    loop {
        payload.clear();
        if input.read_until(b'\n', &mut payload).map_err(CommandError::Input)? == 0 {
            break;
        }
        if payload.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        // A payload may be laid out over several lines; then it is the only one.
        let mut read = generic::read(&payload);
        while is_first && read.is_err() && begins_like_an_object(&payload) {
            if input.read_until(b'\n', &mut payload).map_err(CommandError::Input)? == 0 {
                break;
            }
            if payload.trim_ascii_end().ends_with(b"}") {
                read = generic::read(&payload);
            }
        }
        is_first = false;
        match read {
            Ok(read) => post.answer(ui, read)?,
            Err(error) => post.refuse(ui, &error.to_string())?,
        }
        ui.finish()?;
        input.get_mut().set_limit(PAYLOAD_MAX);
    }
    post.tell_faults()
}

/// Does it begin an object and not end it on the same line?
fn begins_like_an_object(payload: &[u8]) -> bool {
    let begin = payload.strip_prefix("\u{feff}".as_bytes()).unwrap_or(payload).trim_ascii_start();
    let first_line = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
    begin.starts_with(b"{") && !first_line.trim_ascii_end().ends_with(b"}")
}

/// Where payloads become entries and answers become lines.
struct Post<'a> {
    desk: Desk<'a>,
    cleaner: &'a Cleaner,
    /// The failures of a session are also kept where other tools look for them.
    tool_errors: bool,
    /// Read when the first result comes in.
    rules: Option<Rules>,
    /// Our own faults that are still to be recorded: which part, and what.
    pending: Vec<(&'static str, String)>,
}

impl Post<'_> {
    fn answer(&mut self, ui: &mut Ui, letter: Letter) -> Result<(), CommandError> {
        let now = cellar::now();
        let who = self.who(&letter, cellar::sensible(letter.at, now));
        for event in letter.events {
            self.happened(ui, who.clone(), event, now)?;
        }
        Ok(())
    }

    fn happened(&mut self, ui: &mut Ui, who: Who, event: Happened, now: u64) -> Result<(), CommandError> {
        let word = event.word();
        let is_ruling =
            matches!(event, Happened::Ask { .. } | Happened::Approved { .. } | Happened::Denied { .. });
        let mut report = None;
        let answer = match event {
            Happened::Before { key, call, new_user_turn } => {
                self.desk.before(who, &key, &call, new_user_turn, now)
            }
            Happened::After(finished) => {
                let result = desk::Result {
                    key: &finished.key,
                    observation: &finished.observation,
                    said_ok: finished.said_ok,
                    took_ms: finished.took_ms,
                    user_spoke: finished.new_user_turn,
                    can_retry: finished.can_retry.then(cellar::roll),
                };
                let rules = self.rules.get_or_insert_with(|| {
                    let (rules, mistakes) = knowledge::load_quietly();
                    self.pending.extend(mistakes.into_iter().map(|mistake| ("rules", mistake)));
                    rules
                });
                let session = who.session.clone();
                let (answer, made) = self.desk.after(rules, who, &result, now);
                report = Some(made).filter(|report| report.diagnosis.ok() != Some(true));
                if self.tool_errors && report.is_some() {
                    self.write_tool_errors(&session);
                }
                answer
            }
            Happened::Ask { key, .. } => self.rule(who, &key, Ruling::Required, now),
            Happened::Approved { key } => self.rule(who, &key, Ruling::Approved, now),
            Happened::Denied { key } => self.rule(who, &key, Ruling::Denied, now),
            Happened::User => self.desk.note(&Entry::UserSpoke(who), now),
            Happened::End => self.desk.note(&Entry::Over(who), now),
            Happened::Began(_) | Happened::AgentDone => return Ok(()),
        };
        let is_lost = is_ruling && answer.said.call.is_none() && answer.kept == Kept::Stored;
        let fault = is_lost.then_some("no call of this session is known by this call_id");
        self.print(ui, word, &answer, report.as_ref(), fault)
    }

    fn write_tool_errors(&mut self, session: &Clean) {
        if let Err(error) = self.desk.keeper.write_tool_errors(session) {
            self.pending.push(("tool-errors", error.to_string()));
        }
    }

    fn rule(&mut self, who: Who, key: &str, ruling: Ruling, now: u64) -> Answer {
        let key = self.cleaner.name(key, NAME_MAX);
        self.desk.note(&Entry::Ruled { who, key, ruling }, now)
    }

    fn who(&self, letter: &Letter, at: u64) -> Who {
        Who {
            host: Clean::from(letter.host.word()),
            session: self.cleaner.name(&letter.session, NAME_MAX),
            agent: self.cleaner.name(&letter.agent, NAME_MAX),
            cwd: self.cleaner.line(&letter.cwd, 1024),
            owner: letter.pid.map(|pid| self.cleaner.line(&alive::owner(pid), 64)).unwrap_or_default(),
            round: letter.round.map_or(Round::Unsaid, Round::Numbered),
            at,
        }
    }

    /// Answers a payload that cannot be read: the agent goes on, and the fault is recorded.
    fn refuse(&mut self, ui: &mut Ui, what: &str) -> Result<(), CommandError> {
        let answer = self.record_fault("hook generic", what);
        self.print(ui, "unreadable", &answer, None, Some(what))
    }

    fn record_fault(&mut self, part: &'static str, what: &str) -> Answer {
        let now = cellar::now();
        let what = self.cleaner.line(what, 400);
        self.desk.note(&Entry::OwnFault(OwnFault { at: now, part: Clean::from(part), what }), now)
    }

    fn tell_faults(&mut self) -> Result<(), CommandError> {
        for (part, what) in std::mem::take(&mut self.pending) {
            self.record_fault(part, &what);
        }
        Ok(())
    }

    fn print(
        &self,
        ui: &mut Ui,
        event: &str,
        answer: &Answer,
        report: Option<&Report>,
        fault: Option<&str>,
    ) -> Result<(), CommandError> {
        let said = &answer.said;
        let rung = said.decision.as_ref().map_or(Rung::Observe, |decision| decision.rung);
        let decision = match (said.mode, rung) {
            (Mode::Enforce, Rung::Halt) => "halt",
            (Mode::Enforce, Rung::Deny) => "deny",
            (Mode::Enforce, Rung::Observe | Rung::Note | Rung::Hint | Rung::Insist)
            | (Mode::Advise | Mode::Shadow, _) => "allow",
        };
        let speaks = said.mode != Mode::Shadow;
        let notices: Vec<String> = match speaks {
            true => said.sealed.iter().map(|sealed| sealed.text(self.desk.lang)).collect(),
            false => Vec::new(),
        };
        let (kept, lost) = match &answer.kept {
            Kept::Stored => ("stored", None),
            Kept::Spooled { why } => ("spooled", Some(why)),
            Kept::Lost { why } => ("lost", Some(why)),
        };
        let fault = fault.map(str::to_owned).or_else(|| lost.cloned());
        let fault = fault.map(|fault| self.cleaner.line(&fault, 400));
        ui.json(&WireAnswer {
            v: 1,
            event,
            decision,
            rung: rung.word(),
            say: said.text.as_deref().filter(|_| speaks),
            table: said.table.as_deref().filter(|_| speaks),
            notices: &notices,
            diagnosis: report.map(|report| report.to_wire(None)),
            retry: said.retry.map(advice),
            call: said.call,
            bookmark: said.bookmark.map(|bookmark| bookmark.0),
            kept,
            fault: fault.as_deref(),
        })
    }
}

fn advice(retry: Retry) -> WireRetryAdvice {
    match retry {
        Retry::Again { wait, attempt, of, limit_factor } => WireRetryAdvice::Again {
            again: true,
            wait_ms: time::span_ms(wait),
            attempt,
            of,
            limit_factor: f64::from(limit_factor.0) / 1000.0,
        },
        Retry::Stop { why, come_back_after } => WireRetryAdvice::Stop {
            again: false,
            why: why.word(),
            come_back_ms: come_back_after.map(time::span_ms),
        },
    }
}
