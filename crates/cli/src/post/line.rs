//! Answers in our own format: one line for each payload, with everything there is to say.

use unstuck_judge::ladder::Rung;
use unstuck_store::{Mode, Retry, Stance};
use unstuck_wire::hook::generic::{WireAnswer, WireRetryAdvice};
use unstuck_wire::hook::{Happened, Host, Letter, Reply};
use unstuck_wire::time;

use super::{Post, Told, kept};
use crate::cellar;
use crate::exit::CommandError;
use crate::ui::Ui;

impl Post<'_> {
    /// Answers a payload of our own format.
    pub(crate) fn answer_line(&mut self, ui: &mut Ui, letter: &Letter) -> Result<(), CommandError> {
        let now = cellar::now();
        let who = self.who(letter, now);
        for event in &letter.events {
            let told = self.take(letter, who.clone(), event, now);
            let is_ruling =
                matches!(event, Happened::Ask { .. } | Happened::Approved { .. } | Happened::Denied { .. });
            let is_lost = is_ruling && told.answer.said.call.is_none() && told.answer.kept.is_in_database();
            let fault = is_lost.then_some("no call of this session is known by this call_id");
            self.print(ui, event.word(), &told, fault)?;
        }
        Ok(())
    }

    /// Answers a payload that cannot be read: the agent goes on, and the fault is recorded.
    pub(crate) fn refuse_line(&mut self, ui: &mut Ui, what: &str) -> Result<(), CommandError> {
        let answer = self.record_fault("hook generic", what);
        self.print(ui, "unreadable", &Told::only(answer), Some(what))
    }

    /// The answer to a call before it runs, as the sender reads it, for the case that we come to no end.
    pub(super) fn last_answer(&self, letter: &Letter, reply: &Reply) -> Option<String> {
        if letter.host != Host::Generic {
            return letter.answer(reply);
        }
        let line = WireAnswer {
            v: 1,
            event: "before",
            decision: "deny",
            wait_ms: None,
            rung: Rung::Observe.word(),
            say: Some(of_unprotected(Some(reply)).0?),
            table: None,
            notices: &[],
            diagnosis: None,
            retry: None,
            call: None,
            bookmark: None,
            kept: "spooled",
            fault: None,
        };
        serde_json::to_string(&line).ok().map(|line| line + "\n")
    }

    fn print(&self, ui: &mut Ui, event: &str, told: &Told, fault: Option<&str>) -> Result<(), CommandError> {
        let said = &told.answer.said;
        let (decision, wait_ms) = match said.stance {
            Stance::Go => ("allow", None),
            Stance::Hold { wait, .. } => ("allow", Some(time::span_ms(wait))),
            Stance::Refuse => ("deny", None),
            Stance::Halt => ("halt", None),
        };
        let (refusal, warning) = of_unprotected(told.unprotected.as_ref());
        let (decision, wait_ms) = if refusal.is_some() { ("deny", None) } else { (decision, wait_ms) };
        let speaks = said.mode != Mode::Shadow;
        let sealed = said.sealed.iter().filter(|_| speaks).map(|sealed| sealed.text(self.desk.lang));
        // Where nothing can be recorded the mode is not known, and whether the warning is given was settled before.
        let notices: Vec<String> = sealed.chain(warning.map(str::to_owned)).collect();
        let (kept, lost) = kept(&told.answer.kept);
        let fault = fault.or(lost).map(|fault| self.cleaner.line(fault, 400));
        ui.json(&WireAnswer {
            v: 1,
            event,
            decision,
            wait_ms,
            rung: said.decision.as_ref().map_or(Rung::Observe, |decision| decision.rung).word(),
            say: refusal.or(said.text.as_deref().filter(|_| speaks)),
            table: said.table.as_deref().filter(|_| speaks),
            notices: &notices,
            diagnosis: told.report.as_ref().map(|report| report.to_wire(None)),
            retry: said.retry.map(advice),
            call: said.call,
            bookmark: said.bookmark.map(|bookmark| bookmark.0),
            kept,
            fault: fault.as_deref(),
        })
    }
}

/// What is said against a call whose files could not be saved, and what is only said beside it. Nobody is asked in this format.
fn of_unprotected(reply: Option<&Reply>) -> (Option<&str>, Option<&str>) {
    match reply {
        None | Some(Reply::Silent | Reply::Rewrite { .. } | Reply::Again { .. }) => (None, None),
        Some(Reply::Tell { text, .. }) => (None, Some(text)),
        Some(Reply::Deny { reason } | Reply::Ask { reason } | Reply::Halt { reason, .. }) => {
            (Some(reason), None)
        }
    }
}

fn advice(retry: Retry) -> WireRetryAdvice {
    match retry {
        Retry::Again { wait, attempt, of, limit_factor, seen: _ } => WireRetryAdvice::Again {
            again: true,
            wait_ms: time::span_ms(wait),
            attempt,
            of,
            limit_factor: f64::from(limit_factor.0) / 1000.0,
        },
        Retry::Stop { why, come_back_after, seen: _ } => WireRetryAdvice::Stop {
            again: false,
            why: why.word(),
            come_back_ms: come_back_after.map(time::span_ms),
        },
    }
}
