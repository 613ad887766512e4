//! What came of a call, for the program and for the model.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use unstuck_judge::hint::{Hint, HintSource, Wait};
use unstuck_judge::{Call, Diagnosis, Effect, Kind, Lang, Outcome, Rules, Verdict};
use unstuck_wire::report::Report;

use crate::call::{CallInfo, Session};
use crate::ledger::{Orphan, Printed};
use crate::schema::Mistake;

/// How a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// It went well.
    Succeeded,
    /// It failed.
    Failed,
    /// It was not allowed to run.
    Denied,
    /// It was not allowed to run, and a person has to decide before anything else of its session runs.
    Halted,
    /// A person has to allow it first: see [`Toolbox::approve`](crate::Toolbox::approve).
    Paused,
}

impl Status {
    /// The word for it in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Status::Succeeded => "succeeded",
            Status::Failed => "failed",
            Status::Denied => "denied",
            Status::Halted => "halted",
            Status::Paused => "paused",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// One attempt at a call that failed, for whoever wants to know what was tried.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Tried {
    /// Which attempt it was, counted from 1.
    pub attempt: u32,
    /// How long was waited before it.
    pub waited: Duration,
    /// How long it took.
    pub took: Duration,
    /// What it was found to be.
    pub kind: Kind,
    /// What it said.
    pub error: String,
}

/// What came of a call. Nothing is ever thrown: [`Toolbox::call`](crate::Toolbox::call) always gives one of these.
#[derive(Debug, Clone)]
pub struct CallResult {
    pub(crate) call: Arc<CallInfo>,
    pub(crate) status: Status,
    pub(crate) output: Value,
    pub(crate) error: String,
    pub(crate) report: Option<Box<Report>>,
    pub(crate) mistakes: Vec<Mistake>,
    pub(crate) recommendations: Vec<String>,
    pub(crate) tried: Vec<Tried>,
    pub(crate) note: Option<String>,
    pub(crate) table: Option<String>,
    pub(crate) repairs: Vec<String>,
    pub(crate) took: Duration,
}

impl CallResult {
    pub(crate) fn new(call: Arc<CallInfo>, status: Status) -> CallResult {
        CallResult {
            call,
            status,
            output: Value::Null,
            error: String::new(),
            report: None,
            mistakes: Vec::new(),
            recommendations: Vec::new(),
            tried: Vec::new(),
            note: None,
            table: None,
            repairs: Vec::new(),
            took: Duration::ZERO,
        }
    }

    /// What is true of a call whose process is gone.
    /// `advice` is there where it is certain that nothing was done.
    pub(crate) fn orphaned(
        orphan: Orphan,
        error: String,
        advice: Option<&str>,
        session: &Session,
        namespace: &str,
        lang: Lang,
    ) -> CallResult {
        let prefix = if orphan.tool.starts_with(namespace) { namespace.len() } else { 0 };
        let call = Arc::new(Call::new(orphan.tool, Value::Null));
        let observation =
            Printed { merged: error.clone().into_bytes(), ..Printed::nothing(Outcome::Interrupted) };
        let mut diagnosis = Rules::built_in().diagnose(&observation.of(&call));
        if advice.is_some() {
            // It may be sent again at once: nothing was done, and its end had nothing to do with it.
            (diagnosis.effect, diagnosis.transient) = (Some(Effect::Nothing), true);
            diagnosis.hint = Some(Hint { wait: Wait::For(Duration::ZERO), source: HintSource::Prose });
        }
        let mut report = Report::new(diagnosis, &call, lang);
        report.recommendations = match advice {
            Some(advice) => vec![advice.to_owned()],
            None => report.recommendations,
        };
        let info = CallInfo {
            id: orphan.call,
            session: session.clone(),
            agent: "main".into(),
            call,
            prefix,
            round: None,
            annotations: Arc::default(),
        };
        CallResult {
            error,
            recommendations: report.recommendations.clone(),
            report: Some(Box::new(report)),
            ..CallResult::new(Arc::new(info), Status::Failed)
        }
    }

    /// The call.
    pub fn call(&self) -> &CallInfo {
        &self.call
    }

    /// How it stands.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Did it go well?
    pub fn is_ok(&self) -> bool {
        self.status == Status::Succeeded
    }

    /// What the tool answered; `null` where it did not.
    pub fn output(&self) -> &Value {
        &self.output
    }

    /// The same, to keep.
    pub fn into_output(self) -> Value {
        self.output
    }

    /// What went wrong, or what a person is asked while it is paused; `None` where nothing did.
    pub fn error(&self) -> Option<&str> {
        (!self.is_ok()).then_some(&*self.error)
    }

    /// `validation`, `runtime`, `logical`, `aborted` or `exception`; `None` where nothing went wrong, and while it is paused.
    pub fn error_type(&self) -> Option<&'static str> {
        let found = self.report.as_ref().and_then(|report| report.aliases.error_type);
        found.or(self.is_refused().then_some("logical"))
    }

    /// May the same call run again, now or later? `None` where it went well or nobody knows.
    pub fn retryable(&self) -> Option<bool> {
        let found = self.report.as_ref().and_then(|report| report.aliases.retryable);
        found.or(self.is_refused().then_some(false))
    }

    fn is_refused(&self) -> bool {
        matches!(self.status, Status::Denied | Status::Halted)
    }

    /// What to do, most useful first.
    pub fn recommendations(&self) -> &[String] {
        &self.recommendations
    }

    /// The cause of a failure.
    pub fn diagnosis(&self) -> Option<&Diagnosis> {
        self.report.as_ref().map(|report| &report.diagnosis)
    }

    /// Who can fix it, what it may have done already, and whether the same call may run again.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.report.as_ref().map(|report| &report.verdict)
    }

    /// What is wrong with the arguments, field by field.
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }

    /// The attempts that failed, in order; several where it was sent again.
    pub fn tried(&self) -> &[Tried] {
        &self.tried
    }

    /// What the model is told beside the result: that it repeats itself, what helped before.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// What was tried in the whole session, for the person who has to decide about a run that is halted.
    pub fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    /// What was changed in the arguments before the tool saw them.
    pub fn repairs(&self) -> &[String] {
        &self.repairs
    }

    /// How long it took in all, waits included.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// The result as the model is to see it.
    ///
    /// A success is `{"ok":true,"output":…}`. Everything else is
    /// `{"ok":false,"status","error","errorType","retryable","recommendations","diagnosis",…}`; of a paused call `ok` is null.
    pub fn to_json(&self) -> Value {
        let mut json = Map::new();
        let ok = match self.status {
            Status::Succeeded => Some(true),
            Status::Failed | Status::Denied | Status::Halted => Some(false),
            Status::Paused => None,
        };
        json.insert("ok".into(), json!(ok));
        if self.is_ok() {
            json.insert("output".into(), self.output.clone());
        } else {
            json.insert("status".into(), self.status.word().into());
            json.insert("error".into(), self.error.clone().into());
            json.insert("errorType".into(), self.error_type().into());
            json.insert("retryable".into(), self.retryable().into());
            json.insert("recommendations".into(), json!(self.recommendations));
            if !self.output.is_null() {
                json.insert("output".into(), self.output.clone());
            }
        }
        if !self.mistakes.is_empty() {
            let mistakes = self.mistakes.iter().map(|mistake| {
                json!({
                    "path": mistake.path, "expected": mistake.expected, "got": mistake.got, "hint": mistake.hint,
                })
            });
            json.insert("mistakes".into(), mistakes.collect());
        }
        // A single attempt is what everybody takes for granted.
        if self.tried.len() > usize::from(!self.is_ok()) {
            let tried = self.tried.iter().map(|tried| {
                json!({
                    "attempt": tried.attempt, "waited_ms": whole_ms(tried.waited), "took_ms": whole_ms(tried.took),
                    "kind": tried.kind.word(), "error": tried.error,
                })
            });
            json.insert("tried".into(), tried.collect());
        }
        if !self.repairs.is_empty() {
            json.insert("repairs".into(), json!(self.repairs));
        }
        if let Some(note) = &self.note {
            json.insert("note".into(), note.clone().into());
        }
        if let Some(table) = &self.table {
            json.insert("table".into(), table.clone().into());
        }
        if let Some(report) = self.report.as_ref().filter(|_| !self.is_ok()) {
            let diagnosis = serde_json::to_value(report.to_wire(None)).unwrap_or_default();
            json.insert("diagnosis".into(), slim(diagnosis));
        }
        Value::Object(json)
    }
}

/// A diagnosis without what stands beside it already.
fn slim(mut diagnosis: Value) -> Value {
    if let Some(fields) = diagnosis.as_object_mut() {
        let said = ["id", "ok", "errorType", "retryable", "recommendations"];
        fields.retain(|name, _| !said.contains(&&**name));
    }
    diagnosis
}

fn whole_ms(span: Duration) -> u64 {
    unstuck_wire::time::span_ms(span)
}
