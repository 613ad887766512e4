//! An entry as one line of JSON: what the spool holds. All texts in it are clean; what the ladder compares is packed.

use serde::{Deserialize, Serialize};
use unstuck_judge::fingerprint::Fingerprint;
use unstuck_judge::ladder::Round;
use unstuck_judge::{Kind, Outcome};
use unstuck_wire::clean::{Clean, CleanOutput, Secrets};

use crate::entry::{
    Asked, Ended, Entry, Finding, Hears, HookFault, OwnFault, Retrying, Ruling, Sender, Severity, Which, Who,
};
use crate::pack::{Pack, packed, unpacked};
use crate::safe::{Instead, SafeCall, SafeDeed, SafeNote};
use crate::server::ServerNote;
use crate::source::Source;
use crate::stored_server::StoredServerWhat;

/// The format of a line. A line of a newer format is left where it is.
pub(crate) const FORMAT: u32 = 1;

/// A line exactly as it is written.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredLine {
    pub(crate) v: u32,
    /// By which it is known whether it was taken in.
    pub(crate) id: String,
    pub(crate) entry: StoredEntry,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "sort")]
pub(crate) enum StoredEntry {
    Asked {
        who: StoredWho,
        call: StoredCall,
    },
    Ended {
        who: StoredWho,
        call: StoredCall,
        result: Box<StoredResult>,
    },
    Retrying {
        who: StoredWho,
        key: String,
        attempt: u32,
        of: Option<u32>,
        wait_ms: u64,
        because: String,
    },
    Required {
        who: StoredWho,
        #[serde(flatten)]
        which: StoredWhich,
        #[serde(flatten)]
        words: StoredWords,
    },
    Approved {
        who: StoredWho,
        #[serde(flatten)]
        which: StoredWhich,
        #[serde(flatten)]
        words: StoredWords,
    },
    Denied {
        who: StoredWho,
        #[serde(flatten)]
        which: StoredWhich,
        #[serde(flatten)]
        words: StoredWords,
    },
    Runs {
        who: StoredWho,
        #[serde(flatten)]
        which: StoredWhich,
        #[serde(flatten)]
        words: StoredWords,
    },
    UserSpoke {
        who: StoredWho,
    },
    Later {
        who: StoredWho,
        key: String,
        outcome: String,
        code: Option<i32>,
        line: String,
    },
    Began {
        who: StoredWho,
    },
    Shortened {
        who: StoredWho,
    },
    AgentDone {
        who: StoredWho,
    },
    Over {
        who: StoredWho,
    },
    OwnFault {
        at: u64,
        part: String,
        what: String,
    },
    HookFault {
        who: StoredWho,
        key: String,
        tool: String,
        phase: String,
        what: String,
    },
    Safe {
        at: u64,
        /// The call's number; nothing where only its name is known, or neither.
        call: Option<i64>,
        /// The session and the host's name for the call.
        named: Option<(String, String)>,
        snapshot: String,
        deed: StoredDeed,
        why: String,
        text: String,
    },
    Server {
        who: StoredWho,
        server: String,
        what: StoredServerWhat,
    },
}

/// What was done in the safe.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "deed")]
pub(crate) enum StoredDeed {
    Taken {
        paths: u64,
        bytes: u64,
        partial: bool,
    },
    Failed,
    Unprotected {
        instead: String,
        said: String,
    },
    Restored {
        paths: u64,
        bytes: u64,
        kept: u64,
        saved: String,
    },
    Removed {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        over: String,
    },
}

impl From<&SafeDeed> for StoredDeed {
    fn from(deed: &SafeDeed) -> StoredDeed {
        match deed {
            SafeDeed::Taken { paths, bytes, partial } => {
                StoredDeed::Taken { paths: *paths, bytes: *bytes, partial: *partial }
            }
            SafeDeed::Failed => StoredDeed::Failed,
            SafeDeed::Unprotected { instead, said } => {
                StoredDeed::Unprotected { instead: instead.word().to_owned(), said: said.to_string() }
            }
            SafeDeed::Restored { paths, bytes, kept, saved } => {
                StoredDeed::Restored { paths: *paths, bytes: *bytes, kept: *kept, saved: saved.to_string() }
            }
            SafeDeed::Removed { over } => StoredDeed::Removed { over: over.to_string() },
        }
    }
}

impl StoredDeed {
    fn read(self) -> SafeDeed {
        match self {
            StoredDeed::Taken { paths, bytes, partial } => SafeDeed::Taken { paths, bytes, partial },
            StoredDeed::Failed => SafeDeed::Failed,
            StoredDeed::Unprotected { instead, said } => SafeDeed::Unprotected {
                instead: instead.parse().unwrap_or(Instead::Recorded),
                said: Clean::stored(said),
            },
            StoredDeed::Restored { paths, bytes, kept, saved } => {
                SafeDeed::Restored { paths, bytes, kept, saved: Clean::stored(saved) }
            }
            StoredDeed::Removed { over } => SafeDeed::Removed { over: Clean::stored(over) },
        }
    }
}

/// A call by its host's name, or by what it is.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredWhich {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    call_print: String,
}

/// Who decided about a call, and what was said with it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredWords {
    #[serde(default = "person")]
    by: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    note: String,
}

/// Every call was let pass or refused when lines did not say whether it runs.
fn yes() -> bool {
    true
}

/// There was nobody else when lines did not say who.
fn person() -> String {
    "person".to_owned()
}

impl From<&Which> for StoredWhich {
    fn from(which: &Which) -> StoredWhich {
        match which {
            Which::Key(key) => StoredWhich { key: key.to_string(), call_print: String::new() },
            Which::Same(print) => StoredWhich { key: String::new(), call_print: print.to_string() },
        }
    }
}

impl StoredWhich {
    fn read(self) -> Which {
        match self.call_print.is_empty() {
            true => Which::Key(Clean::stored(self.key)),
            false => Which::Same(Fingerprint::from_stored(self.call_print)),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredWho {
    host: String,
    #[serde(default)]
    hook: String,
    session: String,
    agent: String,
    cwd: String,
    #[serde(default)]
    place: String,
    owner: String,
    #[serde(default)]
    source: String,
    round: Option<u64>,
    at: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredCall {
    key: String,
    tool: String,
    label: String,
    input: String,
    user_spoke: bool,
    #[serde(default = "yes", skip_serializing_if = "bool::clone")]
    runs: bool,
    sight: String,
    call_print: String,
    intent_print: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredResult {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    sent_again: bool,
    took_ms: Option<u64>,
    outcome: String,
    code: Option<i32>,
    head: String,
    tail: String,
    omitted: u64,
    ending: String,
    finding: Option<StoredFinding>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredFinding {
    kind: String,
    rule: String,
    error_type: String,
    retryable: Option<bool>,
    severity: String,
    evidence: String,
    cause: String,
    verdict: String,
}

impl From<&Entry> for StoredEntry {
    fn from(entry: &Entry) -> StoredEntry {
        match entry {
            Entry::Asked(asked) => StoredEntry::Asked { who: (&asked.who).into(), call: (&**asked).into() },
            Entry::Ended(ended) => StoredEntry::Ended {
                who: (&ended.asked.who).into(),
                call: (&ended.asked).into(),
                result: Box::new((&**ended).into()),
            },
            Entry::Retrying(retrying) => StoredEntry::Retrying {
                who: (&retrying.who).into(),
                key: retrying.key.to_string(),
                attempt: retrying.attempt,
                of: retrying.of,
                wait_ms: retrying.wait_ms,
                because: retrying.because.word().to_owned(),
            },
            Entry::Ruled { who, which, ruling, by, note } => {
                let (who, which) = (who.into(), which.into());
                let words = StoredWords { by: by.to_string(), note: note.to_string() };
                match ruling {
                    Ruling::Required => StoredEntry::Required { who, which, words },
                    Ruling::Approved => StoredEntry::Approved { who, which, words },
                    Ruling::Denied => StoredEntry::Denied { who, which, words },
                    Ruling::Begun => StoredEntry::Runs { who, which, words },
                }
            }
            Entry::UserSpoke(who) => StoredEntry::UserSpoke { who: who.into() },
            Entry::Later { who, key, outcome, line } => StoredEntry::Later {
                who: who.into(),
                key: key.to_string(),
                outcome: outcome.word().to_owned(),
                code: outcome.number(),
                line: line.to_string(),
            },
            Entry::Began(who) => StoredEntry::Began { who: who.into() },
            Entry::Shortened(who) => StoredEntry::Shortened { who: who.into() },
            Entry::AgentDone(who) => StoredEntry::AgentDone { who: who.into() },
            Entry::Over(who) => StoredEntry::Over { who: who.into() },
            Entry::OwnFault(OwnFault { at, part, what }) => {
                StoredEntry::OwnFault { at: *at, part: part.to_string(), what: what.to_string() }
            }
            Entry::HookFault(fault) => StoredEntry::HookFault {
                who: (&fault.who).into(),
                key: fault.key.to_string(),
                tool: fault.tool.to_string(),
                phase: fault.phase.to_string(),
                what: fault.what.to_string(),
            },
            Entry::Safe(SafeNote { at, call, snapshot, deed, why, text }) => {
                let (call, named) = match call {
                    SafeCall::Nobody => (None, None),
                    SafeCall::Numbered(call) => (Some(*call), None),
                    SafeCall::Named { session, key } => (None, Some((session.to_string(), key.to_string()))),
                };
                StoredEntry::Safe {
                    at: *at,
                    call,
                    named,
                    snapshot: snapshot.to_string(),
                    deed: deed.into(),
                    why: why.to_string(),
                    text: text.to_string(),
                }
            }
            Entry::Server(ServerNote { who, server, what }) => {
                StoredEntry::Server { who: who.into(), server: server.to_string(), what: what.into() }
            }
        }
    }
}

impl StoredEntry {
    /// The entry, if every part of it can be read.
    pub(crate) fn read(self) -> Option<Entry> {
        let ruled = |who: StoredWho, which: StoredWhich, ruling, words: StoredWords| Entry::Ruled {
            who: who.read(),
            which: which.read(),
            ruling,
            by: Clean::stored(words.by),
            note: Clean::stored(words.note),
        };
        Some(match self {
            StoredEntry::Asked { who, call } => Entry::Asked(Box::new(call.read(who)?)),
            StoredEntry::Ended { who, call, result } => Entry::Ended(Box::new(result.read(call.read(who)?)?)),
            StoredEntry::Retrying { who, key, attempt, of, wait_ms, because } => Entry::Retrying(Retrying {
                who: who.read(),
                key: Clean::stored(key),
                attempt,
                of,
                wait_ms,
                because: because.parse().unwrap_or(Kind::Unknown),
            }),
            StoredEntry::Required { who, which, words } => ruled(who, which, Ruling::Required, words),
            StoredEntry::Approved { who, which, words } => ruled(who, which, Ruling::Approved, words),
            StoredEntry::Denied { who, which, words } => ruled(who, which, Ruling::Denied, words),
            StoredEntry::Runs { who, which, words } => ruled(who, which, Ruling::Begun, words),
            StoredEntry::UserSpoke { who } => Entry::UserSpoke(who.read()),
            StoredEntry::Later { who, key, outcome, code, line } => Entry::Later {
                who: who.read(),
                key: Clean::stored(key),
                outcome: outcome_of(&outcome, code)?,
                line: Clean::stored(line),
            },
            StoredEntry::Began { who } => Entry::Began(who.read()),
            StoredEntry::Shortened { who } => Entry::Shortened(who.read()),
            StoredEntry::AgentDone { who } => Entry::AgentDone(who.read()),
            StoredEntry::Over { who } => Entry::Over(who.read()),
            StoredEntry::OwnFault { at, part, what } => {
                Entry::OwnFault(OwnFault { at, part: Clean::stored(part), what: Clean::stored(what) })
            }
            StoredEntry::HookFault { who, key, tool, phase, what } => Entry::HookFault(Box::new(HookFault {
                who: who.read(),
                key: Clean::stored(key),
                tool: Clean::stored(tool),
                phase: Clean::stored(phase),
                what: Clean::stored(what),
            })),
            StoredEntry::Safe { at, call, named, snapshot, deed, why, text } => Entry::Safe(SafeNote {
                at,
                call: match (call, named) {
                    (Some(call), _) => SafeCall::Numbered(call),
                    (None, Some((session, key))) => {
                        SafeCall::Named { session: Clean::stored(session), key: Clean::stored(key) }
                    }
                    (None, None) => SafeCall::Nobody,
                },
                snapshot: Clean::stored(snapshot),
                deed: deed.read(),
                why: Clean::stored(why),
                text: Clean::stored(text),
            }),
            StoredEntry::Server { who, server, what } => Entry::Server(ServerNote {
                who: who.read(),
                server: Clean::stored(server),
                what: what.read(),
            }),
        })
    }
}

impl From<&Who> for StoredWho {
    fn from(who: &Who) -> StoredWho {
        StoredWho {
            host: who.host.to_string(),
            hook: who.hook.to_string(),
            session: who.session.to_string(),
            agent: who.agent.to_string(),
            cwd: who.cwd.to_string(),
            place: who.place.to_string(),
            owner: who.owner.to_string(),
            source: who.source.word().to_owned(),
            round: match who.round {
                Round::Unsaid => None,
                Round::Numbered(number) => Some(number),
            },
            at: who.at,
        }
    }
}

impl StoredWho {
    fn read(self) -> Who {
        Who {
            host: Clean::stored(self.host),
            hook: Clean::stored(self.hook),
            session: Clean::stored(self.session),
            agent: Clean::stored(self.agent),
            cwd: Clean::stored(self.cwd),
            place: Clean::stored(self.place),
            owner: Clean::stored(self.owner),
            source: Source::stored(&self.source),
            // By the time this is read, nobody waits for an answer.
            hears: Hears::Nothing,
            round: self.round.map_or(Round::Unsaid, Round::Numbered),
            at: self.at,
        }
    }
}

impl From<&Asked> for StoredCall {
    fn from(asked: &Asked) -> StoredCall {
        StoredCall {
            key: asked.key.to_string(),
            tool: asked.tool.to_string(),
            label: asked.label.to_string(),
            input: asked.input.to_string(),
            user_spoke: asked.user_spoke,
            runs: asked.runs,
            sight: hex(&asked.sight),
            call_print: asked.call_print.to_string(),
            intent_print: asked.intent_print.to_string(),
        }
    }
}

impl StoredCall {
    fn read(self, who: StoredWho) -> Option<Asked> {
        Some(Asked {
            who: who.read(),
            key: Clean::stored(self.key),
            tool: Clean::stored(self.tool),
            label: Clean::stored(self.label),
            input: Clean::stored(self.input),
            user_spoke: self.user_spoke,
            // What the ladder would have said is not asked any more.
            sender: Sender::Agent,
            attended: false,
            runs: self.runs,
            sight: from_hex(&self.sight)?,
            call_print: Fingerprint::from_stored(self.call_print),
            intent_print: Fingerprint::from_stored(self.intent_print),
            secrets: Secrets::default(),
        })
    }
}

impl From<&Ended> for StoredResult {
    fn from(ended: &Ended) -> StoredResult {
        StoredResult {
            sent_again: ended.was_sent_again,
            took_ms: ended.took_ms,
            outcome: ended.outcome.word().to_owned(),
            code: ended.outcome.number(),
            head: ended.output.head.to_string(),
            tail: ended.output.tail.to_string(),
            omitted: ended.output.omitted,
            ending: hex(&ended.ending),
            finding: ended.finding.as_ref().map(StoredFinding::from),
        }
    }
}

impl StoredResult {
    fn read(self, asked: Asked) -> Option<Ended> {
        let outcome = outcome_of(&self.outcome, self.code)?;
        let output = CleanOutput {
            head: Clean::stored(self.head),
            tail: Clean::stored(self.tail),
            omitted: self.omitted,
        };
        let finding = match self.finding {
            Some(finding) => Some(finding.read()?),
            None => None,
        };
        Some(Ended {
            asked,
            took_ms: self.took_ms,
            was_sent_again: self.sent_again,
            outcome,
            output,
            ending: from_hex(&self.ending)?,
            finding,
            // By the time this is read, nobody waits for an answer.
            retry: None,
            again_after: None,
            advice: Vec::new(),
        })
    }
}

impl From<&Finding> for StoredFinding {
    fn from(finding: &Finding) -> StoredFinding {
        StoredFinding {
            kind: finding.kind.word().to_owned(),
            rule: finding.rule.to_string(),
            error_type: finding.error_type.to_string(),
            retryable: finding.retryable,
            severity: finding.severity.word().to_owned(),
            evidence: finding.evidence.to_string(),
            cause: finding.cause.to_string(),
            verdict: finding.verdict.to_string(),
        }
    }
}

impl StoredFinding {
    fn read(self) -> Option<Finding> {
        Some(Finding {
            kind: self.kind.parse().ok()?,
            rule: Clean::stored(self.rule),
            error_type: Clean::stored(self.error_type),
            retryable: self.retryable,
            severity: self.severity.parse().unwrap_or(Severity::Error),
            evidence: Clean::stored(self.evidence),
            cause: Fingerprint::from_stored(self.cause),
            verdict: Clean::stored(self.verdict),
        })
    }
}

fn hex(value: &impl Pack) -> String {
    packed(value).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How a call ended, from its word and the number beside it.
fn outcome_of(word: &str, code: Option<i32>) -> Option<Outcome> {
    Some(match (word, code) {
        ("exited", Some(code)) => Outcome::Exited { code },
        ("signalled", Some(signal)) => Outcome::Signalled { signal },
        (word, _) => Outcome::from_word(word)?,
    })
}

fn from_hex<T: Pack>(text: &str) -> Option<T> {
    let bytes: Option<Vec<u8>> = (0..text.len())
        .step_by(2)
        .map(|at| text.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect();
    unpacked(&bytes?)
}
