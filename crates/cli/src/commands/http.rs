//! `unstuck http`: one request, sent again where that may help.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value};
use unstuck_judge::Lang;
use unstuck_wire::clean::Cleaner;
use ureq::http::{Method, Uri};

use crate::attempts::{self, Aloud, Terms, WireStory};
use crate::cellar::Cellar;
use crate::checks::{CheckArgs, Checks};
use crate::exit::{CommandError, ExitStatus};
use crate::http::{
    Answered, Content, Destination, Expected, Fetch, Header, Payload, Request, Wanted, parse_header,
    parse_method, parse_url,
};
use crate::ui::Ui;
use crate::{knowledge, lines, plain};

/// So much of what an unwelcome answer says is shown.
const SHOWN_MAX: usize = 2000;

/// Send an HTTP request: failures that pass are waited for, others explained, and a half answer is never taken for a whole one
///
/// The body of a welcome answer goes to standard output while it comes; everything else goes to standard error. GET, HEAD, PUT,
/// DELETE, OPTIONS and TRACE are sent again where that may help; other methods only with a key, with --idempotent, or where
/// nothing can have happened. Retry-After and rate limits are honoured. Proxies are taken from http_proxy, https_proxy,
/// all_proxy and no_proxy.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck http GET https://api.example/items                      print the body, or say why there is none
  unstuck http GET https://api.example/items --expect-json '.items|length > 0'
  unstuck http GET https://api.example/gone --expect 200,404      other statuses that are welcome
  unstuck http POST https://api.example/orders --json-data '{\"n\":1}' --idempotency-key 7f3a
  unstuck http PUT https://api.example/file --data @report.csv -H 'Content-Type: text/csv'
  unstuck http GET https://files.example/big.iso -o big.iso --retries 5 --deadline 30m

Exit codes: 0 it worked; 1 it did not, or a check failed; 2 wrong usage; 124 the time ran out; 125 unstuck itself could not
do its work.")]
pub(crate) struct HttpArgs {
    /// GET, HEAD, POST, PUT, PATCH, DELETE or any other
    #[arg(value_name = "METHOD", value_parser = parse_method)]
    method: Method,
    /// The address
    #[arg(value_name = "URL", value_parser = parse_url)]
    url: Uri,
    /// A header (may be given several times)
    #[arg(long, short = 'H', value_name = "NAME: VALUE", value_parser = parse_header)]
    header: Vec<Header>,
    /// Send this; @FILE sends a file, @- what is piped in
    #[arg(long, short, value_name = "TEXT", conflicts_with = "json_data", allow_hyphen_values = true)]
    data: Option<String>,
    /// The same, as JSON
    #[arg(long, value_name = "JSON", value_parser = parse_json_data, allow_hyphen_values = true)]
    json_data: Option<String>,
    /// Statuses that are welcome, such as 200,404 (default: 2xx)
    #[arg(long, value_name = "STATUSES")]
    expect: Option<Expected>,
    /// The body must be JSON; with a test in the manner of jq, such as '.items|length > 0', that must hold
    #[arg(long, value_name = "TEST", num_args = 0..=1, default_missing_value = "")]
    expect_json: Vec<String>,
    /// Send it again at most so many times
    #[arg(long, value_name = "N")]
    retries: Option<u8>,
    /// The time that all attempts and waits share, such as 90s or 2m
    #[arg(long, value_name = "TIME", value_parser = attempts::time_limit)]
    deadline: Option<Duration>,
    /// The time that one attempt may take, to the last byte
    #[arg(long, value_name = "TIME", value_parser = attempts::time_limit)]
    timeout: Option<Duration>,
    /// To send it twice does no harm
    #[arg(long)]
    idempotent: bool,
    /// Send this as Idempotency-Key, by which the server knows a request that it has got already
    #[arg(long, value_name = "KEY", value_parser = parse_key)]
    idempotency_key: Option<Header>,
    /// Put the body into a file, which appears when it is whole
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print status and headers before the body
    #[arg(long, short)]
    include: bool,
    /// Follow at most so many redirects
    #[arg(long, value_name = "N", default_value_t = 10)]
    max_redirects: u32,
    /// The session that it belongs to (default: that of whoever started us, or a new one)
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// What it is called in the lines on standard error (default: method and address)
    #[arg(long, value_name = "NAME")]
    action: Option<String>,
    /// Print what came of it as the last line on standard error, as JSON
    #[arg(long)]
    json: bool,
    /// Say nothing: standard output and the exit code tell
    #[arg(long, short)]
    quiet: bool,
}

/// What came of it exactly as it is printed.
#[derive(Serialize)]
struct WireFetched<'a> {
    #[serde(flatten)]
    story: WireStory<'a>,
    answer: Option<WireAnswer<'a>>,
}

#[derive(Serialize)]
struct WireAnswer<'a> {
    status: u16,
    url: &'a str,
    redirects: u32,
    headers: Map<String, Value>,
    bytes: u64,
    /// The beginning of a body that was not passed on.
    body: Option<String>,
}

fn parse_key(key: &str) -> Result<Header, String> {
    parse_header(&format!("Idempotency-Key: {key}"))
}

/// What is written out must be JSON; what is in a file is sent as it is.
fn parse_json_data(text: &str) -> Result<String, String> {
    match text.starts_with('@') {
        true => Ok(text.to_owned()),
        false => match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => Ok(text.to_owned()),
            Err(error) => Err(format!("not JSON: {error}")),
        },
    }
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &HttpArgs) -> Result<ExitStatus, CommandError> {
    let rules = knowledge::load(ui, &[])?;
    let request = request(args)?;
    let line = format!("{} {}", request.method, request.url);
    let terms = Terms {
        door: "http",
        agent: "main".to_owned(),
        session: attempts::session("http", args.session.as_deref()),
        retries: args.retries,
        tries_guesses: args.retries.is_some_and(|retries| retries > 0),
        deadline: args.deadline,
        limit: args.timeout,
        idempotent: request.is_idempotent(args.idempotent),
        aloud: if args.quiet { Aloud::Nothing } else { Aloud::Lines },
    };
    let wanted = Wanted {
        expected: args.expect.clone(),
        json: json_checks(args, ui.lang())?,
        include: args.include,
        destination: args.output.clone().map_or(Destination::Stdout, Destination::File),
        max_redirects: args.max_redirects,
    };
    let mut fetch = Fetch::new(&rules, request, wanted, args.action.clone());
    let story = attempts::carry_out(ui, cellar, &rules, &terms, &mut fetch)?;
    let (answered, cleaner) = (fetch.answered.as_ref(), cellar.cleaner());
    let said = match (args.json, args.quiet) {
        (true, _) => {
            let answer = answered.map(|answered| wire(answered, &cleaner));
            story.to_wire().map(|story| lines::json(&WireFetched { story, answer })).unwrap_or_default()
        }
        (false, true) => String::new(),
        (false, false) => {
            let unwelcome = answered.and_then(|answered| unwelcome(answered, &cleaner));
            story.in_words(Some(&line), ui.lang()) + &quoted(unwelcome, ui.lang())
        }
    };
    // Whoever called needs the exit code, even where nobody reads our explanation.
    ui.aside(&said);
    Ok(ExitStatus::Command(story.code()))
}

fn wire<'a>(answered: &'a Answered, cleaner: &Cleaner) -> WireAnswer<'a> {
    let mut headers = Map::new();
    for (name, value) in &answered.headers {
        match headers.get_mut(name) {
            // What is said several times is one list (RFC 9110, 5.2).
            Some(Value::String(before)) => *before = format!("{before}, {value}"),
            Some(_) | None => drop(headers.insert(name.clone(), value.as_str().into())),
        }
    }
    let Answered { status, url, redirects, bytes, .. } = answered;
    let body = unwelcome(answered, cleaner);
    WireAnswer { status: *status, url, redirects: *redirects, headers, bytes: *bytes, body }
}

/// The beginning of a body that was not passed on, without its secrets.
fn unwelcome(answered: &Answered, cleaner: &Cleaner) -> Option<String> {
    let text = String::from_utf8_lossy(&answered.unwelcome);
    let text = cleaner.text(text.trim(), SHOWN_MAX).into_string();
    (!text.is_empty()).then_some(text)
}

/// What the other side said, below the diagnosis.
fn quoted(text: Option<String>, lang: Lang) -> String {
    let label = match lang {
        Lang::En => "answer",
        Lang::Zh => "应答",
    };
    let Some(text) = text else { return String::new() };
    let lines: String = plain::lines(&text).lines().map(|line| format!("  > {line}\n")).collect();
    format!("  {label}\n{lines}")
}

/// What has to hold for a body that is JSON, where it has to be.
fn json_checks(args: &HttpArgs, lang: Lang) -> Result<Option<Checks>, CommandError> {
    if args.expect_json.is_empty() {
        return Ok(None);
    }
    let checks =
        CheckArgs { expect_json: args.expect_json.clone(), no_suspicion: true, ..CheckArgs::default() };
    Ok(Some(Checks::new(&checks, lang)?))
}

/// The request that is asked for.
fn request(args: &HttpArgs) -> Result<Request, CommandError> {
    let (payload, content) = match (&args.data, &args.json_data) {
        (_, Some(json)) => (Payload::read(json)?, Content::Json),
        (Some(data), None) => (Payload::read(data)?, Content::Form),
        (None, None) => (Payload::Nothing, Content::Form),
    };
    let request = Request::new(args.method.clone(), args.url.clone(), &args.header, payload, content);
    // Whoever follows what happens follows it to the other side.
    let trace = env::var("TRACEPARENT").ok().and_then(|id| parse_header(&format!("traceparent: {id}")).ok());
    Ok(args.idempotency_key.iter().cloned().chain(trace).fold(request, Request::with))
}
