//! A diagnosis as JSON: what `unstuck diagnose --json` prints, and what other doors put beside a failed result.

use std::borrow::Cow;

use crate::redact::redact;
use crate::time;
use serde::Serialize;
use serde_json::Value;
use unstuck_judge::fingerprint::{self, Fingerprint};
use unstuck_judge::nature::Nature;
use unstuck_judge::shell::ParsedCall;
use unstuck_judge::{Again, Aliases, Call, Diagnosis, Lang, Verdict};

/// What to do where the call may have worked although it failed, by its key.
pub const LOOK_FIRST: &str = "verify-first";

/// A diagnosis with everything that follows from it.
#[derive(Debug, Clone)]
pub struct Report {
    /// The cause.
    pub diagnosis: Diagnosis,
    /// The three answers.
    pub verdict: Verdict,
    /// What to do, most useful first.
    pub recommendations: Vec<String>,
    /// The older words for the same things.
    pub aliases: Aliases,
    /// The fingerprints of the call, of its intent and of the cause.
    pub prints: [Fingerprint; 3],
}

impl Report {
    /// Draws all conclusions from a diagnosis of `call`. Secrets in what it quotes are cut out here, before anyone sees them.
    pub fn new(diagnosis: Diagnosis, call: &Call, lang: Lang) -> Report {
        let parsed = ParsedCall::of(call);
        let (call_print, intent_print) = fingerprint::call_and_intent(&parsed);
        Report::knowing(diagnosis, call, parsed.nature(), [call_print, intent_print], lang)
    }

    /// The same where somebody knows what the call does to the world, and what names it and its intent.
    pub fn knowing(
        mut diagnosis: Diagnosis,
        call: &Call,
        nature: Nature,
        [call_print, intent_print]: [Fingerprint; 2],
        lang: Lang,
    ) -> Report {
        for quoted in diagnosis.evidence.iter_mut().map(|found| &mut found.text).chain(&mut diagnosis.subject)
        {
            *quoted = redact(quoted).into_owned();
        }
        let verdict = Verdict::of(&diagnosis, nature);
        if verdict.asks_to_look_first(&diagnosis) {
            diagnosis.advice = vec![LOOK_FIRST.to_owned()];
        }
        let line = diagnosis.evidence.as_ref().map_or("", |found| &*found.text);
        let cause = fingerprint::cause(&fingerprint::family(call), diagnosis.kind, line);
        Report {
            aliases: Aliases::of(&diagnosis, &verdict),
            recommendations: diagnosis.recommendations(lang),
            prints: [call_print, intent_print, cause],
            verdict,
            diagnosis,
        }
    }

    /// The report in the shape in which it leaves the house.
    pub fn to_wire(&self, id: Option<Value>) -> WireReport<'_> {
        let diagnosis = &self.diagnosis;
        let [call, intent, cause] = self.prints.each_ref().map(ToString::to_string);
        WireReport {
            id,
            ok: diagnosis.ok(),
            kind: diagnosis.kind.word(),
            stage: diagnosis.stage.map(|stage| stage.word()),
            confidence: (f64::from(diagnosis.confidence) * 100.0).round() / 100.0,
            rule: Some(&*diagnosis.rule).filter(|rule| !rule.is_empty()),
            evidence: diagnosis.evidence.as_ref().map(|found| &*found.text),
            evidence_line: diagnosis.evidence.as_ref().map(|found| found.line),
            subject: diagnosis.bare_name(),
            transient: diagnosis.transient,
            fix_by: self.verdict.fix_by.word(),
            effect: self.verdict.effect.word(),
            retry: WireRetry {
                same_call: self.verdict.again.word(),
                wait_ms: match self.verdict.again {
                    Again::Now => Some(0),
                    Again::After(wait) => Some(time::span_ms(wait)),
                    Again::IfChanged | Again::Never => None,
                },
            },
            error_type: self.aliases.error_type,
            category: self.aliases.category,
            tag: self.aliases.tag,
            retryable: self.aliases.retryable,
            fingerprint: WireFingerprints { call, intent, cause },
            recommendations: &self.recommendations,
        }
    }
}

/// A report exactly as it is printed.
#[derive(Debug, Serialize)]
pub struct WireReport<'a> {
    id: Option<Value>,
    ok: Option<bool>,
    kind: &'static str,
    stage: Option<&'static str>,
    confidence: f64,
    rule: Option<&'a str>,
    evidence: Option<&'a str>,
    evidence_line: Option<u64>,
    subject: Option<Cow<'a, str>>,
    transient: bool,
    fix_by: &'static str,
    effect: &'static str,
    retry: WireRetry,
    #[serde(rename = "errorType")]
    error_type: Option<&'static str>,
    category: Option<&'static str>,
    tag: &'static str,
    retryable: Option<bool>,
    fingerprint: WireFingerprints,
    recommendations: &'a [String],
}

#[derive(Debug, Serialize)]
struct WireRetry {
    same_call: &'static str,
    wait_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct WireFingerprints {
    call: String,
    intent: String,
    cause: String,
}
