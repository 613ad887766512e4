//! What a door hands in: one thing that happened, already judged where judging needs no memory, and already clean.
//!
//! An entry is made from the raw call here, in one place, so that nothing of it can be written without having been cleaned:
//! what the ladder compares are prints, and what people read is [`Clean`].

use std::time::Duration;

use memchr::memmem;
use serde_json::Value;
use unstuck_judge::fingerprint::{self, Fingerprint};
use unstuck_judge::ladder::{Change, Dir, Ending, Manner, Print, Round, Sight, Speaker, Upshot, see};
use unstuck_judge::nature::{Looks, Nature};
use unstuck_judge::retry::{Draw, MayRepeat};
use unstuck_judge::{Call, Condition, FixBy, Kind, Observation, Outcome, vocabulary};
use unstuck_wire::clean::{Clean, CleanOutput, Cleaner, Secrets};
use unstuck_wire::report::Report;

use crate::safe::SafeNote;
use crate::server::ServerNote;
use crate::source::Source;

/// The most that is kept of a name from outside.
pub const NAME_MAX: usize = 160;
/// The most that is kept of a line.
const LINE_MAX: usize = 400;
/// How much of a text is read to know what is secret in a part of it.
const AROUND: usize = 8 * 1024;
/// Longer texts are no passwords.
const LABELLED_MAX: usize = 200;
/// The most that is kept of a diagnosis.
const VERDICT_MAX: usize = 16 * 1024;

/// How much of what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Of an input.
    pub input: usize,
    /// Of the beginning of an output.
    pub head: usize,
    /// Of its end.
    pub tail: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { input: 4096, head: 4096, tail: 8192 }
    }
}

/// Can whoever sent something be told something in answer to it?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hears {
    /// No.
    Nothing,
    /// What is remembered of a failure, and nothing else: it comes and goes with one piece of work, so nobody sees what follows.
    Memory,
    /// Notices; advice about a call only with its result.
    Notices,
    /// All that is said.
    Everything,
}

/// Who does something, where, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    /// The door it comes through.
    pub host: Clean,
    /// The program's own name for the hook that told of it; empty where it is not the first to tell of.
    pub hook: Clean,
    /// The session's name.
    pub session: Clean,
    /// The agent's name; `main`, or a sub-agent's.
    pub agent: Clean,
    /// The working directory; empty where nobody said.
    pub cwd: Clean,
    /// What is worked on there: the root of a repository, or the folder itself; empty where nobody said.
    pub place: Clean,
    /// The process that runs the call, as `pid:start`; empty where nobody said.
    pub owner: Clean,
    /// How this came to be known.
    pub source: Source,
    /// Can whoever sent this be told something in answer to it?
    pub hears: Hears,
    /// The message that holds the call.
    pub round: Round,
    /// When, in milliseconds since 1970.
    pub at: u64,
}

impl Who {
    /// Is it the one the user talks to?
    pub(crate) fn is_main(&self) -> bool {
        &*self.agent == "main"
    }

    /// The agent as the ladder knows it.
    pub(crate) fn agent_print(&self) -> Print {
        let name = if self.is_main() { "" } else { &*self.agent };
        Print::of(&["agent", name])
    }
}

/// Who sends a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sender {
    /// The agent, which is told what speaks against it.
    #[default]
    Agent,
    /// Whoever runs it: it was let pass and failed, and this is another attempt at it.
    Runner,
}

/// A call that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Who asks.
    pub who: Who,
    /// The host's name for the call; empty where it gives none.
    pub key: Clean,
    /// The tool.
    pub tool: Clean,
    /// The call in one short line.
    pub label: Clean,
    /// Its input, bounded.
    pub input: Clean,
    /// Did the user speak just before it?
    pub user_spoke: bool,
    /// Who sends it.
    pub sender: Sender,
    /// Is a person there who can be asked? Where nobody is, no run is stopped.
    pub attended: bool,
    /// It runs at once. Of any other call a person has to decide first, or somebody has decided that it does not run.
    pub runs: bool,
    pub(crate) sight: Sight,
    pub(crate) call_print: Fingerprint,
    pub(crate) intent_print: Fingerprint,
    /// What is secret in the input; never written.
    pub(crate) secrets: Secrets,
}

impl Asked {
    /// Reads a call, and cleans it.
    pub fn new(cleaner: &Cleaner, bounds: &Bounds, who: Who, key: &str, call: &Call) -> Asked {
        let (mut sight, [call_print, intent_print]) = see::sight_and_prints(call);
        let secrets = secrets_of(cleaner, &call.input);
        let label = cleaner.line(&secrets.cut(&sight.label), LINE_MAX);
        let tool = cleaner.name(&call.tool, NAME_MAX);
        // The same words in another folder are another call.
        if sight.speaker == Speaker::Shell && sight.dir == Dir::Unsaid && !who.cwd.is_empty() {
            let here = Print::of(&["dir", &who.cwd]);
            sight.dir = Dir::Named(here);
            sight.exact = here.own(sight.exact);
        }
        sight.label = label.to_string();
        sight.tool_name = tool.to_string();
        Asked {
            who,
            key: cleaner.name(key, NAME_MAX),
            tool,
            label,
            input: cleaner.json(&call.input, bounds.input),
            user_spoke: false,
            sender: Sender::Agent,
            attended: false,
            runs: true,
            sight,
            call_print,
            intent_print,
            secrets,
        }
    }
}

impl Asked {
    /// The same call, which counts as `call` wherever calls are compared.
    #[must_use]
    pub fn compared_as(mut self, call: &Call) -> Asked {
        // What it does and touches is still its own.
        let (Sight { exact, intent, approach, .. }, prints) = see::sight_and_prints(call);
        self.sight = Sight { exact, intent, approach, ..self.sight };
        [self.call_print, self.intent_print] = prints;
        self
    }

    /// The same call of a tool of which somebody says what it does to the world.
    #[must_use]
    pub fn known_to_be(mut self, nature: Nature) -> Asked {
        self.sight.looks = match nature {
            Nature::ReadOnly => Looks::Known,
            Nature::Idempotent | Nature::Writes => Looks::MayWrite,
            Nature::Unknown => self.sight.looks,
        };
        self.sight.manner = match nature {
            Nature::ReadOnly => Manner::Looks,
            Nature::Idempotent | Nature::Writes => Manner::Changes(Change::Edit),
            Nature::Unknown => self.sight.manner,
        };
        self
    }

    /// The same call of a tool whose answers may change by themselves, whether or not somebody `knows` that they do: to ask again is
    /// to look again.
    #[must_use]
    pub fn known_to_poll(mut self, knows: bool) -> Asked {
        self.sight.polls = true;
        self.sight.waits |= knows;
        self
    }

    /// The call as the ladder sees it.
    pub fn sight(&self) -> &Sight {
        &self.sight
    }

    /// What makes it the same call as another.
    pub fn call_print(&self) -> &Fingerprint {
        &self.call_print
    }
}

/// What is secret in the texts of an input. As in everything that is kept, a huge text is judged by its beginning.
fn secrets_of(cleaner: &Cleaner, input: &Value) -> Secrets {
    match input {
        Value::String(text) => cleaner.secrets_in(&text.as_bytes()[..text.len().min(AROUND)]),
        Value::Array(list) => {
            list.iter().fold(Secrets::default(), |all, item| all.and(secrets_of(cleaner, item)))
        }
        Value::Object(fields) => fields.iter().fold(Secrets::default(), |all, (name, item)| {
            // A name may say of a plain word that it is none.
            let labelled = item.as_str().filter(|text| text.len() <= LABELLED_MAX);
            let labelled = labelled.map(|text| cleaner.secrets_in(format!("{name}={text}").as_bytes()));
            all.and(secrets_of(cleaner, item)).and(labelled.unwrap_or_default())
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Secrets::default(),
    }
}

/// What is secret in an output, near the line that shows the cause.
fn secrets_near(cleaner: &Cleaner, observation: &Observation, evidence: &str) -> Secrets {
    let line = evidence.trim();
    if line.is_empty() {
        return Secrets::default();
    }
    let streams = [&observation.stdout, &observation.stderr, &observation.merged];
    streams.into_iter().fold(Secrets::default(), |all, stream| {
        let Some(at) = memmem::find(stream, line.as_bytes()) else { return all };
        let window = at.saturating_sub(AROUND)..(at + line.len() + AROUND).min(stream.len());
        all.and(cleaner.secrets_in(&stream[window]))
    })
}

vocabulary! {
    /// How much a failure matters to operations.
    Severity {
        /// Somebody stopped it.
        Info = "info",
        /// Waiting or the model can help.
        Warn = "warn",
        /// The environment or a person has to.
        Error = "error",
    }
}

/// What a failure was found to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub(crate) kind: Kind,
    pub(crate) rule: Clean,
    pub(crate) error_type: Clean,
    pub(crate) retryable: Option<bool>,
    pub(crate) severity: Severity,
    pub(crate) evidence: Clean,
    pub(crate) cause: Fingerprint,
    pub(crate) verdict: Clean,
}

impl Finding {
    fn new(cleaner: &Cleaner, kind: Kind, report: &Report, secrets: &Secrets) -> Finding {
        let [_, _, cause] = &report.prints;
        let evidence = report.diagnosis.evidence.as_ref().map_or("", |found| &*found.text);
        let mut verdict = serde_json::to_value(report.to_wire(None)).unwrap_or(Value::Null);
        secrets.cut_from(&mut verdict);
        Finding {
            kind,
            rule: cleaner.name(&report.diagnosis.rule, NAME_MAX),
            error_type: report.aliases.error_type.map(Clean::from).unwrap_or_default(),
            retryable: report.aliases.retryable,
            severity: match (kind, report.verdict.fix_by) {
                (Kind::Aborted, _) => Severity::Info,
                (_, FixBy::Wait | FixBy::Model) => Severity::Warn,
                (_, FixBy::Environment | FixBy::Person | FixBy::Nobody) => Severity::Error,
            },
            evidence: cleaner.line(&secrets.cut(evidence), LINE_MAX),
            cause: cause.clone(),
            verdict: cleaner.json(&verdict, VERDICT_MAX),
        }
    }
}

impl Finding {
    /// Why it failed.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The rule that says so.
    pub fn rule(&self) -> &Clean {
        &self.rule
    }

    /// The older word for the kind.
    pub fn error_type(&self) -> &Clean {
        &self.error_type
    }

    /// May the same call run again, now or later? Nothing while nobody knows.
    pub fn retryable(&self) -> Option<bool> {
        self.retryable
    }

    /// How much it matters to operations.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// The line that shows it; empty where none does.
    pub fn evidence(&self) -> &Clean {
        &self.evidence
    }

    /// What makes it the same cause as another.
    pub fn cause(&self) -> &Fingerprint {
        &self.cause
    }
}

/// A call that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// The call, as it was asked for.
    pub asked: Asked,
    /// How long it took, where the host says so.
    pub took_ms: Option<u64>,
    /// It waited in the spool, and whoever ran it sent it again without asking us.
    pub(crate) was_sent_again: bool,
    pub(crate) outcome: Outcome,
    pub(crate) output: CleanOutput,
    pub(crate) ending: Ending,
    /// What it was found to be; `None` where it went well.
    pub finding: Option<Finding>,
    /// What whoever runs the call needs to send it again by itself; `None` where nobody would.
    pub retry: Option<RetryAsk>,
    /// After how long the same call may work again, of a failure that passes by itself, in milliseconds.
    pub again_after: Option<u64>,
    /// Sentences that may help, the most useful first. They go with what the ladder says, as far as there is room.
    pub advice: Vec<Clean>,
}

/// What the retry policy needs to know beyond what is stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryAsk {
    /// May the same call run again?
    pub may_repeat: MayRepeat,
    /// A throw of the dice.
    pub draw: Draw,
    /// How long a hook itself would wait before it sends the call again; `None` where somebody else does.
    pub from_hook: Option<Duration>,
    /// What whoever makes all the attempts itself knows of them; `None` where only the record can tell.
    pub series: Option<Series>,
}

/// A series of attempts at one call, made by one process. Its count and its clock are surer than the record's, which may hold
/// other attempts at the same call in the same session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Series {
    /// How many times it has been sent again already.
    pub retries_made: u8,
    /// The wait before the last of them, zero where there was none.
    pub waited: Duration,
    /// Why the attempt before this one failed; `None` where this is the first.
    pub failed_before: Option<Kind>,
    /// The time since the first attempt began.
    pub elapsed: Duration,
    /// How many retries a person allows, where somebody said so.
    pub retries: Option<u8>,
    /// The time that all attempts share, where a person said so.
    pub deadline: Option<Duration>,
}

impl Ended {
    /// Reads a result, and cleans it. `said_ok` is what the host calls it.
    pub fn new(
        cleaner: &Cleaner,
        bounds: &Bounds,
        asked: Asked,
        observation: &Observation,
        said_ok: Option<bool>,
        report: &Report,
    ) -> Ended {
        let mut ending = see::ending(&asked.sight, observation, &report.diagnosis, said_ok);
        let finding = match &mut ending.upshot {
            Upshot::Failed(fault) => {
                let secrets = asked.secrets.clone().and(secrets_near(cleaner, observation, &fault.line));
                fault.line = cleaner.line(&secrets.cut(&fault.line), LINE_MAX).into_string();
                fault.rule = cleaner.name(&fault.rule, NAME_MAX).into_string();
                for name in fault.condition.names_mut() {
                    *name = cleaner.line(&secrets.cut(name), LINE_MAX).into_string();
                }
                // What was cut out of a name cannot be looked for any more.
                if fault.condition.names_mut().iter().any(|name| name.contains("[redacted:")) {
                    fault.condition = Condition::Unseen;
                }
                Some(Finding::new(cleaner, fault.kind, report, &secrets))
            }
            Upshot::Fine | Upshot::OurDenial => None,
        };
        let streams = [&observation.stdout, &observation.stderr, &observation.merged];
        let printed: Vec<&[u8]> =
            streams.into_iter().map(Vec::as_slice).filter(|stream| !stream.is_empty()).collect();
        let output = match printed[..] {
            [only] => cleaner.output(only, bounds.head, bounds.tail),
            _ => cleaner.output(&printed.join(&b'\n'), bounds.head, bounds.tail),
        };
        Ended {
            asked,
            took_ms: None,
            was_sent_again: false,
            outcome: observation.outcome,
            output,
            ending,
            finding,
            retry: None,
            again_after: None,
            advice: Vec::new(),
        }
    }
}

impl Ended {
    /// How it ended, as the ladder sees it.
    pub fn ending(&self) -> &Ending {
        &self.ending
    }
}

/// A call that is sent again by whoever runs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Retrying {
    /// Who.
    pub who: Who,
    /// The host's name for the call.
    pub key: Clean,
    /// Which attempt comes next, counted from 1.
    pub attempt: u32,
    /// How many there are at most, where somebody counts.
    pub of: Option<u32>,
    /// How long it waits first.
    pub wait_ms: u64,
    /// Why it failed.
    pub because: Kind,
}

/// Something that unstuck itself could not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnFault {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Which part of us: a door, the store, the settings.
    pub part: Clean,
    /// What was wrong.
    pub what: Clean,
}

/// A hook of the user's that failed. The call goes on without it, and it is no fault of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFault {
    /// In whose session.
    pub who: Who,
    /// The host's name for the call.
    pub key: Clean,
    /// The tool.
    pub tool: Clean,
    /// What failed: `hook`, `loop_key`.
    pub phase: Clean,
    /// What was wrong.
    pub what: Clean,
}

/// What a person decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// Nothing yet: the person has been asked.
    Required,
    /// It may run.
    Approved,
    /// It may not.
    Denied,
    /// It may, and it runs now.
    Begun,
}

/// A call that is spoken of after it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// The one with the host's name.
    Key(Clean),
    /// The latest open one that is the same call; the host gives no name.
    Same(Fingerprint),
}

impl Which {
    /// The call with this name, or the one that is the same where there is no name.
    pub fn new(cleaner: &Cleaner, key: &str, call: Option<&Call>) -> Which {
        match call.filter(|_| key.is_empty()) {
            Some(call) => Which::Same(fingerprint::call(call)),
            None => Which::Key(cleaner.name(key, NAME_MAX)),
        }
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    /// A call is asked for.
    Asked(Box<Asked>),
    /// A call ended.
    Ended(Box<Ended>),
    /// A call is sent again.
    Retrying(Retrying),
    /// A person or a hook decided about a call.
    Ruled {
        /// In whose session.
        who: Who,
        /// Which call.
        which: Which,
        /// What was decided.
        ruling: Ruling,
        /// Who decides, or lets a person be asked: `person`, `hook`.
        by: Clean,
        /// What is asked, or why it was decided so; empty where nobody said.
        note: Clean,
    },
    /// The user said something.
    UserSpoke(Who),
    /// A call that went on by itself after its answer ended now.
    Later {
        /// In whose session.
        who: Who,
        /// The host's name for the call.
        key: Clean,
        /// How it ended.
        outcome: Outcome,
        /// What is said of it.
        line: Clean,
    },
    /// A session begins, or goes on.
    Began(Who),
    /// The memory of the conversation was cut short: what was told before is forgotten.
    Shortened(Who),
    /// A sub-agent is done: nothing of it can still be running.
    AgentDone(Who),
    /// The session is over: nothing of it can still be running.
    Over(Who),
    /// We failed at something.
    OwnFault(OwnFault),
    /// A hook of the user's failed.
    HookFault(Box<HookFault>),
    /// Something was done in the safe.
    Safe(SafeNote),
    /// Something happened to a server that offers tools.
    Server(ServerNote),
}
