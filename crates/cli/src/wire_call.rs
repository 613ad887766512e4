//! A call as JSON, the same wherever it is printed. What stands in the store as JSON is passed on and not judged again.

use serde::Serialize;
use unstuck_store::{LifeStep, StoredCall, StoredCallText};
use unstuck_wire::time;

use crate::lines::WireJson;

/// A call exactly as it is printed.
#[derive(Serialize)]
pub(crate) struct WireCall<'c> {
    call: i64,
    session: &'c str,
    call_id: &'c str,
    agent: &'c str,
    tool: &'c str,
    label: &'c str,
    state: &'c str,
    asked_at: String,
    asked_at_ms: u64,
    ended_at: Option<String>,
    ended_at_ms: Option<u64>,
    took_ms: Option<u64>,
    attempt: u32,
    ok: Option<bool>,
    outcome: Option<&'c str>,
    code: Option<i64>,
    kind: Option<&'c str>,
    #[serde(rename = "errorType")]
    error_type: Option<&'c str>,
    retryable: Option<bool>,
    rule: Option<&'c str>,
    rung_before: &'c str,
    rung_after: &'c str,
    repeat: bool,
    recovered_at: Option<String>,
    recovered_at_ms: Option<u64>,
    fingerprint: WirePrints<'c>,
}

#[derive(Serialize)]
struct WirePrints<'c> {
    call: &'c str,
    intent: &'c str,
    cause: Option<&'c str>,
}

impl<'c> WireCall<'c> {
    pub(crate) fn new(call: &'c StoredCall) -> WireCall<'c> {
        WireCall {
            call: call.id,
            session: &call.session,
            call_id: &call.key,
            agent: &call.agent,
            tool: &call.tool,
            label: &call.label,
            state: &call.state,
            asked_at: time::iso(call.asked_at),
            asked_at_ms: call.asked_at,
            ended_at: call.ended_at.map(time::iso),
            ended_at_ms: call.ended_at,
            took_ms: call.took_ms,
            attempt: call.attempt,
            ok: call.ok,
            outcome: call.outcome.as_deref(),
            code: call.code,
            kind: call.kind.as_deref(),
            error_type: call.error_type.as_deref(),
            retryable: call.retryable,
            rule: call.rule.as_deref(),
            rung_before: &call.rung_before,
            rung_after: &call.rung_after,
            repeat: call.repeat,
            recovered_at: call.recovered_at.map(time::iso),
            recovered_at_ms: call.recovered_at,
            fingerprint: WirePrints {
                call: &call.call_print,
                intent: &call.intent_print,
                cause: call.cause_print.as_deref(),
            },
        }
    }
}

/// A call with its texts, exactly as it is printed.
#[derive(Serialize)]
pub(crate) struct WireWholeCall<'c> {
    #[serde(flatten)]
    call: WireCall<'c>,
    input: WireJson<'c>,
    evidence: Option<&'c str>,
    verdict: Option<WireJson<'c>>,
    life: Vec<WireStep>,
    head: &'c str,
    tail: &'c str,
    omitted: u64,
}

#[derive(Serialize)]
struct WireStep {
    at: Option<String>,
    at_ms: Option<u64>,
    state: String,
    note: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    snapshot: String,
}

impl<'c> WireWholeCall<'c> {
    pub(crate) fn new(call: &'c StoredCall, text: &'c StoredCallText) -> WireWholeCall<'c> {
        let step = |LifeStep { at, state, note, snapshot }| WireStep {
            at: at.map(time::iso),
            at_ms: at,
            state,
            note,
            snapshot,
        };
        WireWholeCall {
            call: WireCall::new(call),
            input: WireJson::new(&text.input),
            evidence: Some(&*text.evidence).filter(|line| !line.is_empty()),
            verdict: Some(&*text.verdict).filter(|verdict| !verdict.is_empty()).map(WireJson::new),
            life: LifeStep::all(&text.life).into_iter().map(step).collect(),
            head: &text.head,
            tail: &text.tail,
            omitted: text.omitted,
        }
    }
}
