//! The bodies of the events of a call: exactly what stands in the timeline, for whoever else tells of the same things.

use serde_json::{Value, json};
use unstuck_judge::retry::Seen;
use unstuck_judge::{DENIED_BY_CHECK, Lang};

use crate::entry::{Asked, Finding, HookFault, OwnFault, Retrying, Severity};
use crate::record::Said;
use crate::state::CallState;

/// Of `tool:start`.
pub fn started(asked: &Asked, attempt: u32) -> Value {
    json!({ "tool": &*asked.tool, "label": &*asked.label, "attempt": attempt })
}

/// Of `tool:error`. The call has a number only where there is a store.
pub fn failed(
    call: Option<i64>,
    asked: &Asked,
    finding: &Finding,
    took_ms: Option<u64>,
    said: &Said,
    lang: Lang,
) -> Value {
    let mut body = json!({
        "call": {
            "id": call, "key": &*asked.key, "tool": &*asked.tool, "label": &*asked.label,
            "agent": &*asked.who.agent, "state": CallState::Failed.word(), "took_ms": took_ms,
        },
        "error": message(finding, lang),
        "kind": finding.kind.word(),
        "errorType": &*finding.error_type,
        "retryable": finding.retryable,
        "rung": said.decision.as_ref().map(|decision| decision.rung.word()),
    });
    if *finding.rule == *DENIED_BY_CHECK {
        body["claimed_success"] = Value::Bool(true);
    }
    body
}

/// Of `error`: the same failure, for operations.
pub fn error(finding: &Finding, lang: Lang) -> Value {
    let detail = json!({
        "errorType": &*finding.error_type, "retryable": finding.retryable, "kind": finding.kind.word(),
        "rule": &*finding.rule,
    });
    let mut body = json!({
        "severity": finding.severity.word(), "phase": "tool", "message": message(finding, lang), "detail": detail,
    });
    // Whoever read them before there was a detail still finds them.
    if let (Some(body), Some(detail)) = (body.as_object_mut(), detail.as_object()) {
        body.extend(detail.clone());
    }
    body
}

/// The line that shows the cause, or what it is called where no line does.
fn message(finding: &Finding, lang: Lang) -> &str {
    match finding.evidence.is_empty() {
        true => finding.kind.title(lang),
        false => &finding.evidence,
    }
}

/// Of `tool:end`.
pub fn ended(state: CallState, took_ms: Option<u64>) -> Value {
    json!({ "ok": state == CallState::Completed, "state": state.word(), "took_ms": took_ms })
}

/// Of `tool:retry`, with what was `seen` of such retries where the wait follows from that.
pub fn retrying(retrying: &Retrying, seen: Option<Seen>, lang: Lang) -> Value {
    let Retrying { attempt, of, wait_ms, because, .. } = retrying;
    let seconds = *wait_ms as f64 / 1000.0;
    let text = match lang {
        Lang::En => {
            let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
            format!("attempt {attempt}{of}, waiting {seconds} s, because {because}")
        }
        Lang::Zh => {
            let of = of.map(|of| format!("/{of}")).unwrap_or_default();
            format!("第 {attempt}{of} 次尝试，等待 {seconds} 秒，原因 {because}")
        }
    };
    let seen = seen.map(|seen| seen.text(lang));
    let text = seen.iter().fold(text, |text, seen| format!("{text} ({seen})"));
    json!({ "attempt": attempt, "of": of, "wait_ms": wait_ms, "because": because.word(), "text": text })
}

/// Of `tool:denied`.
pub fn denied(asked: &Asked, said: &Said) -> Value {
    let mut body = spoken(said);
    body["label"] = Value::from(&*asked.label);
    body
}

/// Of `tool:advice`: said `when`, and heard by somebody or not. What only earlier sessions knew is marked as such.
pub fn advised(said: &Said, when: &str, is_heard: bool) -> Value {
    let mut body = spoken(said);
    body["when"] = Value::from(when);
    body["spoken"] = Value::from(is_heard);
    if said.foreseen.is_some() {
        body["foreseen"] = Value::from(true);
    }
    body
}

/// Of `halt`.
pub fn halted(said: &Said) -> Value {
    json!({ "text": said.text, "table": said.table })
}

/// Of `ask`, and of `tool:denied` where somebody other than the ladder decided. What is asked is there where somebody said.
pub fn ruled(label: &str, by: &str, question: &str) -> Value {
    let mut body = json!({ "label": label, "by": by });
    if !question.is_empty() {
        body["question"] = Value::from(question);
    }
    body
}

/// Of `own_fault`.
pub fn own_fault(fault: &OwnFault) -> Value {
    json!({ "part": &*fault.part, "what": &*fault.what })
}

/// Of `error`, where a hook of the user's failed.
pub fn hook_fault(fault: &HookFault) -> Value {
    json!({
        "severity": Severity::Warn.word(), "phase": &*fault.phase, "message": &*fault.what,
        "detail": { "tool": &*fault.tool },
    })
}

/// What the ladder said.
fn spoken(said: &Said) -> Value {
    let decision = said.decision.as_ref();
    let reason = decision.and_then(|decision| decision.reason.as_ref());
    json!({
        "rung": decision.map(|decision| decision.rung.word()),
        "track": reason.map(|reason| reason.track.word()),
        "count": reason.map(|reason| reason.count),
        "text": said.text,
    })
}
