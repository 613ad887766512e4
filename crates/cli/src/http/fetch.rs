//! A request as a piece of work: one attempt is one exchange, and its body goes on only where the answer is welcome.

use std::io::{self, ErrorKind, Read};
use std::time::{Duration, Instant};

use unstuck_judge::rules::Stream;
use unstuck_judge::suspicion::{JsonEnd, JsonText};
use unstuck_judge::{Call, Observation, Outcome, Rules};
use unstuck_wire::redact::redact;
use ureq::http::header::CONTENT_TYPE;
use ureq::http::{HeaderMap, StatusCode};

use super::client::Client;
use super::exchange::{Answer, exchange};
use super::expected::Expected;
use super::interruption::Interruption;
use super::mishap::{Mishap, Progress};
use super::outlet::{Destination, Outlet};
use super::request::Request;
use crate::attempts::{CheckResult, Checked, Hindrance, Tried, Turn, Work, clock};
use crate::checks::{Checks, Listener, Seen};

/// An answer that is announced as no longer than this is held back until it is whole.
const SHORT: u64 = 1 << 20;
/// How much is held back where it has to be JSON. What is longer is looked at as well, but passes on meanwhile.
const JSON_MAX: usize = 8 << 20;
/// So much of an answer that is not welcome is read, to find out why.
const UNWELCOME_MAX: u64 = 256 * 1024;
/// And so long, as long as something comes.
const UNWELCOME_TIME: Duration = Duration::from_secs(5);
/// So much of a welcome answer goes into the record.
const RECORDED: usize = 4096;

/// What counts as an answer, and where it goes.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// Statuses, where the person named some.
    pub(crate) expected: Option<Expected>,
    /// What has to hold for a body that is JSON, where it has to be.
    pub(crate) json: Option<Checks>,
    /// Status and headers go before the body.
    pub(crate) include: bool,
    pub(crate) destination: Destination,
    pub(crate) max_redirects: u32,
}

/// What is known of the last answer.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    /// Who gave it.
    pub(crate) url: String,
    pub(crate) redirects: u32,
    /// Its headers, in their order, without secrets.
    pub(crate) headers: Vec<(String, String)>,
    /// How much of its body came.
    pub(crate) bytes: u64,
    /// The beginning of a body that was not passed on.
    pub(crate) unwelcome: Vec<u8>,
}

/// Fetches an answer.
pub(crate) struct Fetch<'a> {
    rules: &'a Rules,
    client: Client,
    request: Request,
    wanted: Wanted,
    /// What the person calls it, where they named it.
    action: Option<String>,
    /// The last answer, where there was one.
    pub(crate) answered: Option<Answered>,
}

/// How an attempt ended.
struct Ending {
    outcome: Outcome,
    code: u8,
    status: Option<StatusCode>,
    /// What the other side said.
    stdout: Vec<u8>,
    /// What is known of it beside that.
    stderr: String,
    checks: Vec<Checked>,
    hindrance: Option<Hindrance>,
}

impl<'a> Fetch<'a> {
    pub(crate) fn new(
        rules: &'a Rules,
        request: Request,
        wanted: Wanted,
        action: Option<String>,
    ) -> Fetch<'a> {
        Fetch { rules, client: Client::new(), request, wanted, action, answered: None }
    }

    fn allows(&self, status: StatusCode) -> bool {
        match &self.wanted.expected {
            Some(expected) => expected.allows(status.as_u16()),
            None => Expected::default().allows(status.as_u16()),
        }
    }

    fn try_once(&mut self, limit: Option<Duration>, begun: Instant) -> Ending {
        self.answered = None;
        // Whether there is room for an answer has to be known before somebody is asked for one.
        let outlet = match Outlet::open(&self.wanted.destination) {
            Ok(outlet) => outlet,
            Err((path, error)) => return Ending::without_answer(Mishap::no_place(&path, &error)),
        };
        match exchange(&self.client, &self.request, &self.wanted, limit, begun) {
            Ok(answer) => {
                self.answered = Some(Answered::of(&answer));
                match self.allows(answer.status) {
                    true => self.pass_on(answer, outlet, begun),
                    false => self.turn_down(answer),
                }
            }
            Err(mishap) => Ending::without_answer(mishap),
        }
    }

    /// The answer is welcome: its body goes where it belongs.
    fn pass_on(&mut self, mut answer: Answer, mut outlet: Outlet, begun: Instant) -> Ending {
        let length = answer.body.content_length();
        let mut ending = Ending::of(&answer);
        outlet.hold(match () {
            () if self.wanted.json.is_some() => JSON_MAX,
            () if length.is_some_and(|length| length <= SHORT) || is_json(&answer.headers) => SHORT as usize,
            () => 0,
        });
        let mut heard = self.wanted.json.as_ref().map(|checks| Heard::new(checks.listen(&self.call())));
        let passed = self.read(&mut answer, &mut outlet, &mut heard, &mut ending.stdout, begun);
        ending.checks = self.status_check(answer.status).into_iter().collect();
        match passed {
            Ok(()) => {}
            Err(Halt::ReaderGone) => return ending,
            Err(Halt::Mishap(mishap)) => return ending.cut_short(mishap, &outlet),
        }
        if let (Some(checks), Some(heard)) = (&self.wanted.json, heard) {
            // What ends in the middle was cut off on its way, whatever its length was said to be.
            if heard.text.end() == JsonEnd::Cut {
                return ending
                    .cut_short(Mishap::broken("transfer closed within the JSON".to_owned()), &outlet);
            }
            let seen = Seen { exit_code: Some(0), heard: heard.listener, variables: &[], until: None };
            ending.checks.extend(checks.look(&checks.before(), seen));
            if ending.checks.iter().any(Checked::has_failed) {
                ending.code = 1;
                ending.hindrance = outlet.has_passed_on().then_some(Hindrance::PassedOn);
                if let Some(answered) = self.answered.as_mut().filter(|_| ending.hindrance.is_none()) {
                    answered.unwelcome = ending.stdout.clone();
                }
                return ending;
            }
        }
        match outlet.finish() {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                ending.fail(Mishap::unwritten(&error));
                ending.hindrance = Some(Hindrance::PassedOn);
                ending
            }
            Ok(()) | Err(_) => ending,
        }
    }

    /// Reads a body to its end.
    fn read(
        &mut self,
        answer: &mut Answer,
        outlet: &mut Outlet,
        heard: &mut Option<Heard>,
        recorded: &mut Vec<u8>,
        begun: Instant,
    ) -> Result<(), Halt> {
        let of = answer.body.content_length();
        if self.wanted.include {
            outlet.take(head(answer).as_bytes())?;
        }
        let mut reader = answer.body.as_reader();
        let mut buffer = vec![0; 64 * 1024];
        let mut bytes = 0;
        let result = loop {
            match reader.read(&mut buffer) {
                Ok(0) => break Ok(()),
                Ok(count) => {
                    bytes += count as u64;
                    let room = RECORDED.saturating_sub(recorded.len()).min(count);
                    recorded.extend_from_slice(&buffer[..room]);
                    heard.iter_mut().for_each(|heard| heard.feed(&buffer[..count]));
                    if let Err(error) = outlet.take(&buffer[..count]) {
                        break Err(error.into());
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let progress = Progress::Received { bytes, of };
                    break Err(Halt::Mishap(Mishap::of(
                        &error.into(),
                        &answer.url,
                        progress,
                        begun.elapsed(),
                    )));
                }
            }
        };
        if let Some(answered) = &mut self.answered {
            answered.bytes = bytes;
        }
        result
    }

    /// The answer is not welcome: what it says is for whoever wants to know why.
    fn turn_down(&mut self, answer: Answer) -> Ending {
        let mut ending = Ending::of(&answer);
        ending.code = 1;
        match answer.status.is_success() {
            true => ending.checks = self.status_check(answer.status).into_iter().collect(),
            false => ending.outcome = Outcome::ReportedFailure,
        }
        let mut body = answer.body;
        let mut reader = body.as_reader().take(UNWELCOME_MAX);
        let (begun, mut piece) = (Instant::now(), vec![0; 16 * 1024]);
        // What breaks off here is told by the status already.
        while let Ok(count @ 1..) = reader.read(&mut piece) {
            ending.stdout.extend_from_slice(&piece[..count]);
            if begun.elapsed() > UNWELCOME_TIME {
                break;
            }
        }
        if let Some(answered) = &mut self.answered {
            answered.bytes = ending.stdout.len() as u64;
            answered.unwelcome = ending.stdout.clone();
        }
        ending
    }

    /// Is the status among those that the person named?
    fn status_check(&self, status: StatusCode) -> Option<Checked> {
        let expected = self.wanted.expected.as_ref()?;
        let result = match expected.allows(status.as_u16()) {
            true => CheckResult::Held,
            false => CheckResult::Failed { found: status.to_string() },
        };
        Some(Checked { check: format!("expect {expected}"), result, took: Duration::ZERO })
    }
}

impl Work for Fetch<'_> {
    fn call(&self) -> Call {
        self.request.call()
    }

    fn action(&self) -> String {
        let place = self.request.url.authority().map_or("", |place| place.as_str());
        let by_address = || format!("{} {place}{}", self.request.method, self.request.url.path());
        self.action.clone().unwrap_or_else(by_address)
    }

    fn attempt(&mut self, turn: &Turn<'_>) -> Tried {
        let begun = Instant::now();
        let interruption = Interruption::listen(self.client.hang_up());
        let mut ending = self.try_once(turn.limit, begun);
        if let (Some(signal), false) = (interruption.signal(), ending.is_whole()) {
            ending.outcome = Outcome::Interrupted;
            ending.code = 128 | u8::try_from(signal).unwrap_or(0);
            ending.hindrance = Some(Hindrance::Ended);
        }
        let mut reading = self.rules.read().at(clock::here());
        reading.feed(Stream::Stderr, ending.stderr.as_bytes());
        // What a welcome answer holds is content, whatever words stand in it; and its status is one that was wished for.
        let is_welcome = ending.status.is_some_and(|status| self.allows(status));
        if !is_welcome {
            reading.feed(Stream::Stdout, &ending.stdout);
        }
        let status = ending.status.map(|status| status.as_u16());
        let call = self.call();
        let diagnosis = self.rules.conclude(reading, &call, ending.outcome, status.filter(|_| !is_welcome));
        Tried {
            observation: Observation {
                call,
                outcome: ending.outcome,
                http_status: status,
                stdout: ending.stdout,
                stderr: ending.stderr.into_bytes(),
                merged: Vec::new(),
            },
            diagnosis,
            took: begun.elapsed(),
            code: ending.code,
            checks: ending.checks,
            hindrance: ending.hindrance,
        }
    }
}

impl Ending {
    /// An answer that is welcome, until something else is found.
    fn of(answer: &Answer) -> Ending {
        Ending {
            outcome: Outcome::Succeeded,
            code: 0,
            status: Some(answer.status),
            stdout: Vec::new(),
            stderr: telling(answer),
            checks: Vec::new(),
            hindrance: None,
        }
    }

    fn without_answer(mishap: Mishap) -> Ending {
        Ending {
            outcome: mishap.outcome,
            code: mishap.code,
            status: None,
            stdout: Vec::new(),
            stderr: mishap.line + "\n",
            checks: Vec::new(),
            hindrance: None,
        }
    }

    /// Did a welcome answer come, and all of it?
    fn is_whole(&self) -> bool {
        self.outcome == Outcome::Succeeded && self.code == 0
    }

    fn fail(&mut self, mishap: Mishap) {
        self.outcome = mishap.outcome;
        self.code = mishap.code;
        self.stderr += &mishap.line;
        self.stderr.push('\n');
    }

    /// The body broke off. What somebody has got of it cannot be taken back.
    fn cut_short(mut self, mishap: Mishap, outlet: &Outlet) -> Ending {
        self.fail(mishap);
        self.hindrance = outlet.has_passed_on().then_some(Hindrance::PassedOn);
        self
    }
}

impl Answered {
    fn of(answer: &Answer) -> Answered {
        let text = |value: &[u8]| redact(&String::from_utf8_lossy(value)).into_owned();
        let headers = answer.headers.iter().filter(|(name, _)| !super::redirect::is_secret(name.as_str()));
        Answered {
            status: answer.status.as_u16(),
            url: redact(&answer.url.to_string()).into_owned(),
            redirects: answer.redirects,
            headers: headers.map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect(),
            ..Answered::default()
        }
    }
}

/// A body that has to be JSON, while it passes.
struct Heard {
    /// Is it whole?
    text: JsonText,
    /// And does what is wanted of it hold?
    listener: Listener,
}

impl Heard {
    fn new(listener: Listener) -> Heard {
        Heard { text: JsonText::default(), listener }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.text.feed(bytes);
        self.listener.feed(Stream::Stdout, bytes);
    }
}

/// Why a body was not read to its end.
enum Halt {
    /// Whoever reads it has seen enough.
    ReaderGone,
    Mishap(Mishap),
}

/// An output error.
impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Halt {
        match error.kind() {
            ErrorKind::BrokenPipe => Halt::ReaderGone,
            _ => Halt::Mishap(Mishap::unwritten(&error)),
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

/// The beginning of an answer as it stood on the wire.
fn head(answer: &Answer) -> String {
    let mut text = status_line(answer);
    for (name, value) in &answer.headers {
        text += &format!("\r\n{name}: {}", String::from_utf8_lossy(value.as_bytes()));
    }
    text + "\r\n\r\n"
}

/// Of an answer's beginning, what tells why it is as it is and when to come back.
fn telling(answer: &Answer) -> String {
    const NAMES: [&str; 6] = [
        "date",
        "location",
        "www-authenticate",
        "grpc-retry-pushback-ms",
        "x-amzn-errortype",
        "x-should-retry",
    ];
    const PARTS: [&str; 3] = ["retry-after", "ratelimit", "rate-limit"];
    let mut text = status_line(answer) + "\n";
    for (name, value) in &answer.headers {
        let tells = NAMES.contains(&name.as_str()) || PARTS.iter().any(|part| name.as_str().contains(part));
        if tells {
            text += &redact(&format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())));
            text.push('\n');
        }
    }
    text
}

fn status_line(answer: &Answer) -> String {
    format!("{:?} {}", answer.version, answer.status)
}
