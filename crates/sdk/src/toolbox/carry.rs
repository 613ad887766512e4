//! The way of a call through the toolbox, from what a model asked for to what it is told.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use unstuck_judge::nature::Nature;
use unstuck_judge::{Again as Repeat, Call, Effect, Kind, Lang, Outcome};
use unstuck_store::{Retry, Series, Stance};
use unstuck_wire::report::{LOOK_FIRST, Report};

use super::hooks::{self, Ruling};
use super::installed::Installed;
use super::observed::{Event, Observed};
use super::shelf::Shelf;
use super::{Inner, attempt, now, wording};
use crate::call::{CallId, CallInfo, ToolCall};
use crate::context::ToolContext;
use crate::failure::Failure;
use crate::hook::{Attempted, Next};
use crate::ledger::{Advice, After, Closing, Opening, roll};
use crate::policy::Policy;
use crate::result::{CallResult, Status, Tried};
use crate::schema;

/// How much advice goes with a failure.
const ADVICE: usize = 6;

/// Of more fields than this nobody wants to know the names, and of names not more letters.
const GIST: usize = 100;

/// The longest name of a tool that is kept.
const NAME_MAX: usize = 128;

/// A call on its way.
pub(crate) struct Journey {
    pub(crate) opening: Opening,
    /// The tool; there is none where nobody knows it.
    installed: Option<Arc<Installed>>,
    /// When it was asked for, or allowed by the person it waited for.
    pub(super) begun: Instant,
    /// What was said before it ran.
    note: Option<String>,
    repairs: Vec<String>,
    /// How long after `begun` a retry may begin.
    retry_within: Option<Duration>,
    lang: Lang,
}

/// Carries a call out.
pub(crate) async fn out(inner: &Arc<Inner>, call: ToolCall) -> CallResult {
    let begun = Instant::now();
    let _running = inner.running.token();
    let retry_within = call.retry_within;
    let tools = inner.tools.now();
    let installed = tools.find(&call.tool).cloned();
    let (mut call, mut event) = introduce(inner, installed.as_deref(), call);
    let mut question = None;
    let mut repairs = Vec::new();
    if event.is_none() && !inner.hooks.is_empty() && !hooks::is_inside() {
        let asked_for = Arc::clone(&call);
        match hooks::ask(inner, &mut call).await {
            Ruling::Run => {}
            Ruling::Deny(why) => event = Some(Event::Denied(why)),
            Ruling::Ask(words) => question = Some(words),
            Ruling::Supply(result) => event = Some(Event::Came(Ok(result))),
        }
        if event.is_none() && !Arc::ptr_eq(&asked_for, &call) {
            event = measured(inner, &mut call);
        }
    }
    if event.is_none() {
        event = validated(inner, &tools, installed.as_deref(), &mut call, &mut repairs);
    }
    if let Some(result) = inner.halted.answer(&call, begun) {
        return result;
    }
    let runs = question.is_none() && !matches!(event, Some(Event::Denied(_)));
    let opening = open(inner, installed.as_deref(), call, runs);
    let on_its_way = OnItsWay::new(inner, &opening);
    let said = inner.ledger.before(&opening).await;
    let dead = said.sealed.iter().map(|sealed| {
        let said = inner.sealed_text(&sealed.tool, &sealed.label, sealed.from);
        said.unwrap_or_else(|| sealed.text(inner.policy.lang))
    });
    let notes: Vec<String> = dead.chain(said.text).collect();
    let note = (!notes.is_empty()).then(|| notes.join(" "));
    let lang = inner.policy.lang;
    let mut journey = Journey { opening, installed, begun, note, repairs, retry_within, lang };
    if let Stance::Hold { wait, .. } = said.stance {
        pause(inner, wait).await;
    }
    // From here on, whoever takes it over sees to its end.
    on_its_way.has_ended();
    match said.stance {
        Stance::Go | Stance::Hold { .. } => {}
        Stance::Refuse | Stance::Halt => {
            let status = if said.stance == Stance::Halt { Status::Halted } else { Status::Denied };
            let mut result = CallResult::new(Arc::clone(&journey.opening.call), status);
            result.error = journey.note.take().unwrap_or_default();
            result.table = said.table;
            result.took = begun.elapsed();
            inner.halted.note(&result);
            return result;
        }
    }
    match (event, question) {
        // Few calls go these ways, and none of the others should carry room for them.
        (Some(event), _) => Box::pin(without_running(inner, journey, event)).await,
        (None, Some(question)) => Box::pin(wait_for_a_person(inner, journey, question)).await,
        (None, None) => on(inner, journey).await,
    }
}

/// Gives a call a name and a session. Arguments that are too much for anybody are taken away from it.
fn introduce(inner: &Inner, installed: Option<&Installed>, call: ToolCall) -> (Arc<CallInfo>, Option<Event>) {
    let ToolCall { mut tool, input, session, agent, id, round, retry_within: _, broken } = call;
    let policy = &inner.policy;
    // No tool has such a name, and nobody wants to keep it.
    if tool.len() > NAME_MAX {
        tool = tool.chars().take(NAME_MAX).collect();
    }
    let (input, event) = match schema::size(&input, policy.max_input, policy.max_depth) {
        Ok(()) => {
            let text = broken.map(|why| wording::no_json(&tool, &why, policy.lang));
            (input, text.map(Event::invalid))
        }
        Err(too_large) => {
            let gist = gist(&input);
            schema::dismantle(input);
            let text = wording::too_large(&tool, too_large, policy.lang);
            (gist, Some(Event::invalid(text)))
        }
    };
    let session = session.unwrap_or_else(|| inner.session.clone());
    let info = CallInfo {
        id: id.map_or_else(CallId::new, |id| inner.names.take(&session, id)),
        session,
        agent: agent.map_or_else(|| Arc::clone(&inner.main), Into::into),
        annotations: installed.map(|installed| Arc::clone(&installed.annotations)).unwrap_or_default(),
        prefix: inner.namespace.len(),
        call: Arc::new(Call::new(inner.named(tool), input)),
        round,
    };
    (Arc::new(info), event)
}

/// Looks whether arguments that a hook rewrote are still for anybody to read.
fn measured(inner: &Inner, call: &mut Arc<CallInfo>) -> Option<Event> {
    let policy = &inner.policy;
    let too_large = schema::size(call.input(), policy.max_input, policy.max_depth).err()?;
    let text = wording::too_large(call.tool(), too_large, policy.lang);
    *call = Arc::new(call.with_input(gist(call.input())));
    Some(Event::invalid(text))
}

/// What stands for arguments that nobody can read: what their fields are, and how long.
fn gist(input: &Value) -> Value {
    let size = |value: &Value| match value {
        Value::String(text) => json!({ "bytes": text.len() }),
        Value::Array(list) => json!({ "entries": list.len() }),
        Value::Object(fields) => json!({ "fields": fields.len() }),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    };
    match input {
        Value::Object(fields) if fields.len() <= GIST => fields
            .iter()
            .map(|(name, value)| (name.chars().take(GIST).collect::<String>(), size(value)))
            .collect(),
        other => size(other),
    }
}

/// Looks whether there is such a tool and the arguments fit it, and puts them right where that is wanted.
fn validated(
    inner: &Inner,
    tools: &Shelf,
    installed: Option<&Installed>,
    call: &mut Arc<CallInfo>,
    repairs: &mut Vec<String>,
) -> Option<Event> {
    let lang = inner.policy.lang;
    let Some(installed) = installed else {
        let names = tools.all().iter().map(|installed| &*installed.name);
        let text = wording::unknown_tool(call.tool(), names.clone(), lang);
        return Some(Event::Unknown { text, advice: wording::other_tools(call.tool(), names, lang) });
    };
    let schema = installed.schema.as_ref()?;
    let Err(mut invalid) = schema.check(call.input()) else {
        let (field, meant) = schema.misspelt(call.input()).filter(|_| !inner.policy.is_lenient)?;
        let text = wording::misspelt(call.tool(), field, meant, lang);
        return Some(Event::invalid(text));
    };
    let repaired = inner.policy.repairs.then(|| schema.repair(call.input())).flatten();
    if repaired.is_none() && inner.policy.is_lenient {
        invalid = schema.clearly_wrong(call.input())?;
    }
    match repaired {
        Some((input, done)) => {
            repairs.extend(done.iter().map(|repair| repair.text(lang).to_owned()));
            *call = Arc::new(call.with_input(input));
            None
        }
        None => {
            let text = invalid.text(call.tool(), lang);
            let mistakes = invalid.mistakes.into_iter().map(|mistake| mistake.in_language(lang));
            Some(Event::Invalid { text, mistakes: mistakes.collect() })
        }
    }
}

fn open(inner: &Inner, installed: Option<&Installed>, call: Arc<CallInfo>, runs: bool) -> Opening {
    let annotations = installed.map(|installed| &*installed.annotations);
    let compared = match annotations.and_then(|annotations| annotations.loop_key.as_ref()) {
        None => Arc::clone(&call.call),
        Some(key) => match panic::catch_unwind(AssertUnwindSafe(|| key(call.input()))) {
            Ok(key) => Arc::new(Call::new(call.recorded_as(), key)),
            Err(payload) => {
                let words = attempt::words_of(payload);
                let message = format!("the loop key of `{}` panicked: {words}", call.tool());
                inner.ledger.fault(&call, "loop_key", &message, now());
                Arc::clone(&call.call)
            }
        },
    };
    // A name promises nothing: of what nobody has annotated nobody knows what it does.
    let unsaid = annotations.filter(|annotations| annotations.nature.is_none() && !annotations.by_arguments);
    let nature = unsaid.map(|_| Nature::Unknown).or(annotations.and_then(|annotations| annotations.nature));
    let polls = match annotations {
        Some(annotations) if annotations.polls => Some(true),
        _ if unsaid.is_some() => None,
        _ => Some(false),
    };
    Opening { call, compared, nature, polls, runs, attempt: 1, at: now() }
}

/// A person has to decide before it runs.
async fn wait_for_a_person(inner: &Arc<Inner>, journey: Journey, question: String) -> CallResult {
    let opening = &journey.opening;
    inner.ledger.asks(opening, &question, now());
    let mut result = CallResult::new(Arc::clone(&opening.call), Status::Paused);
    result.error = question.clone();
    result.note = journey.note.clone();
    result.took = journey.begun.elapsed();
    if let Some(forgotten) = inner.pending.put(journey, question) {
        let why = Event::Denied("nobody decided about it, and too many others wait".to_owned());
        Box::pin(without_running(inner, forgotten, why)).await;
    }
    result
}

/// Ends a call that is not run, because what comes of it is known already.
pub(crate) async fn without_running(inner: &Arc<Inner>, journey: Journey, event: Event) -> CallResult {
    let denied = matches!(event, Event::Denied(_));
    let opening = journey.opening.clone();
    let on_its_way = OnItsWay::new(inner, &opening);
    let observed = Observed::of(event, journey.ok_is_data(), journey.lang);
    let (observed, after) =
        closed(inner, &journey, &opening, observed, Duration::ZERO, Series::default(), Again::NEVER).await;
    on_its_way.has_ended();
    let status = match (!after.failed, denied) {
        (true, _) => Status::Succeeded,
        (false, true) => Status::Denied,
        (false, false) => Status::Failed,
    };
    told(journey, status, observed, after, Vec::new())
}

/// Runs it, and again where that may help.
pub(crate) async fn on(inner: &Arc<Inner>, journey: Journey) -> CallResult {
    let Some(installed) = journey.installed.clone() else {
        // Only what was validated comes here, and without a tool nothing is valid.
        let text = wording::unknown_tool(journey.opening.call.tool(), [].into_iter(), inner.policy.lang);
        return Box::pin(without_running(inner, journey, Event::invalid(text))).await;
    };
    let policy = &inner.policy;
    let base = installed.annotations.timeout.unwrap_or(policy.timeout);
    let mut limit = base;
    let mut series = Series {
        retries: installed.annotations.retries.or(policy.retries),
        deadline: journey.last_begin(policy),
        ..Series::default()
    };
    let mut opening = journey.opening.clone();
    let mut tried = Vec::new();
    let mut on_its_way = OnItsWay::new(inner, &opening);
    let mut announced = None;
    loop {
        let until = policy.deadline.and_then(|deadline| journey.begun.checked_add(deadline));
        let Made { attempted, took, allowed } = attempt(inner, &installed, &opening, limit, until).await;
        let attempted = hooks::tell(inner, &opening.call, attempted).await;
        let observed = Observed::of(Event::Came(attempted), journey.ok_is_data(), journey.lang);
        series.elapsed = journey.begun.elapsed();
        let again = Again {
            gets_more_time: observed.printed.outcome == Outcome::TimedOut && allowed == limit,
            is_hindered: installed.annotations.is_destructive || inner.shutdown.is_cancelled(),
        };
        let (observed, after) = closed(inner, &journey, &opening, observed, took, series, again).await;
        on_its_way.has_ended();
        if after.failed {
            let kind = after.report.as_ref().map_or(Kind::Unknown, |report| report.diagnosis.kind);
            let error = observed.error.clone();
            tried.push(Tried { attempt: opening.attempt, waited: series.waited, took, kind, error });
            series.failed_before = Some(kind);
        }
        let Some(Retry::Again { wait, limit_factor, attempt, of, .. }) = after.retry.filter(|_| after.failed)
        else {
            let status = if after.failed { Status::Failed } else { Status::Succeeded };
            return told(journey, status, observed, after, tried);
        };
        let kind = series.failed_before.unwrap_or(Kind::Unknown);
        let line = after.line(journey.lang).unwrap_or_default();
        announced = hooks::announce(inner, &opening.call, Next { attempt, of, wait, kind, line }, announced);
        pause(inner, wait).await;
        limit = limit_factor.of(base);
        series.waited = wait;
        series.retries_made = series.retries_made.saturating_add(1);
        opening = Opening { attempt: opening.attempt + 1, runs: true, at: now(), ..opening };
        on_its_way = OnItsWay::new(inner, &opening);
        inner.ledger.before(&opening).await;
    }
}

/// An attempt that was made, or could not be.
struct Made {
    attempted: Attempted,
    took: Duration,
    /// How long it was allowed to take.
    allowed: Duration,
}

/// Makes one attempt as soon as there is a place for it.
async fn attempt(
    inner: &Inner,
    installed: &Arc<Installed>,
    opening: &Opening,
    limit: Duration,
    until: Option<Instant>,
) -> Made {
    let not_made = |failure| Made { attempted: Err(failure), took: Duration::ZERO, allowed: limit };
    if let Some(left) = installed.too_many_left() {
        let words = format!(
            "resource busy: {left} earlier calls of `{}` were given up and still run",
            installed.name
        );
        return not_made(Failure::expected(words));
    }
    // That of the tool first: whoever waits for it must not keep one that everybody could use.
    let places = async {
        match attempt::is_inside_of(inner) {
            true => None,
            false => Some((installed.places.acquire().await, inner.places.acquire().await)),
        }
    };
    let _places = tokio::select! {
        biased;
        () = inner.shutdown.cancelled() => return not_made(attempt::shut_down()),
        places = places => places,
        () = reached(until) => {
            return not_made(Failure::timed_out("resource busy: no place became free before the deadline"));
        }
    };
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let allowed = left.map_or(limit, |left| left.min(limit));
    let context = ToolContext {
        call: Arc::clone(&opening.call),
        attempt: opening.attempt,
        cancellation: CancellationToken::new(),
    };
    let begun = Instant::now();
    let attempted = attempt::make(inner, installed, context, allowed).await;
    Made { attempted, took: begun.elapsed(), allowed }
}

/// Comes back at a moment, or never where there is none.
async fn reached(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

/// What speaks for and against sending it again, beside the cause.
#[derive(Clone, Copy)]
struct Again {
    gets_more_time: bool,
    is_hindered: bool,
}

impl Again {
    const NEVER: Again = Again { gets_more_time: false, is_hindered: true };
}

/// Hands an attempt over to what remembers, and asks what follows.
async fn closed(
    inner: &Inner,
    journey: &Journey,
    opening: &Opening,
    observed: Observed,
    took: Duration,
    series: Series,
    again: Again,
) -> (Observed, After) {
    let Observed { printed, error, advice, is_all_advice, mistakes, output, not_again } = observed;
    let sentences = advice.iter().chain(journey.general_advice()).cloned().collect();
    let closing = Closing {
        opening: opening.clone(),
        advice: Advice { sentences, is_all: is_all_advice },
        took,
        series,
        gets_more_time: again.gets_more_time,
        is_hindered: again.is_hindered || not_again,
        draw: roll(),
        at: now(),
        printed,
    };
    let after = inner.ledger.after(closing).await;
    let printed = crate::ledger::Printed::nothing(Outcome::NoExitCode);
    (Observed { printed, error, advice, is_all_advice, mistakes, output, not_again }, after)
}

/// The result as the caller gets it.
fn told(journey: Journey, status: Status, observed: Observed, after: After, tried: Vec<Tried>) -> CallResult {
    let kind = after.report.as_ref().map(|report| report.diagnosis.kind);
    let by_kind = journey.advice_for(kind);
    // What we say first ourselves need not be said again.
    let is_new = |report: &&Report| !report.diagnosis.advice.iter().any(|key| key == LOOK_FIRST);
    let by_rules = after.report.iter().filter(is_new).flat_map(|report| &report.recommendations);
    let mut recommendations: Vec<String> = Vec::new();
    // Of other causes it is plain that they came before anything was done, or that they are the answer.
    let may_have_acted = |report: &Report| {
        let is_cut_off = matches!(
            report.diagnosis.kind,
            Kind::Network | Kind::Timeout | Kind::ServerError | Kind::Aborted | Kind::Crash
        );
        let may_be_repeated = matches!(report.verdict.again, Repeat::Now | Repeat::After(_));
        is_cut_off && !may_be_repeated && report.verdict.effect != Effect::Nothing
    };
    if status == Status::Failed && after.report.as_ref().is_some_and(|it| may_have_acted(it) || !is_new(&it))
    {
        recommendations.push(wording::look_first(journey.lang).to_owned());
    }
    for advice in observed.advice.iter().chain(by_kind).chain(by_rules) {
        if recommendations.len() < ADVICE && !recommendations.contains(advice) {
            recommendations.push(advice.clone());
        }
    }
    let shown = after.line(journey.lang);
    let note = match (&journey.note, after.text) {
        (Some(before), Some(after)) => Some(format!("{before} {after}")),
        (before, after) => after.or_else(|| before.clone()),
    };
    let error = match status {
        Status::Succeeded => {
            recommendations.clear();
            String::new()
        }
        // The tool took it for a success.
        _ if observed.error.is_empty() => shown.unwrap_or_default(),
        _ => observed.error,
    };
    CallResult {
        status,
        output: observed.output,
        error,
        report: after.report.map(Box::new),
        mistakes: observed.mistakes,
        recommendations,
        tried,
        note,
        repairs: journey.repairs,
        took: journey.begun.elapsed(),
        ..CallResult::new(journey.opening.call, status)
    }
}

impl Journey {
    /// How long after it began the last retry may begin, where anybody says so.
    fn last_begin(&self, policy: &Policy) -> Option<Duration> {
        let asked = self.retry_within.map(|limit| limit.min(policy.retry.deadline));
        [policy.deadline, asked].into_iter().flatten().min()
    }

    fn ok_is_data(&self) -> bool {
        self.installed.as_ref().is_some_and(|installed| installed.annotations.ok_is_data)
    }

    /// What the tool recommends with every failure.
    fn general_advice(&self) -> impl Iterator<Item = &String> {
        self.advice_for(None)
    }

    /// What the tool recommends with failures of a kind.
    fn advice_for(&self, kind: Option<Kind>) -> impl Iterator<Item = &String> {
        let all = self.installed.iter().flat_map(|installed| &installed.annotations.recommendations);
        all.filter(move |(of, _)| of.is_none() || *of == kind).map(|(_, advice)| advice)
    }
}

/// Waits, unless everything is being ended.
async fn pause(inner: &Inner, wait: Duration) {
    tokio::select! {
        () = sleep(wait) => {}
        () = inner.shutdown.cancelled() => {}
    }
}

/// A call between its beginning and its end. Whoever stops waiting for it leaves a record that says so.
struct OnItsWay<'a> {
    inner: &'a Inner,
    opening: Option<Opening>,
}

impl<'a> OnItsWay<'a> {
    fn new(inner: &'a Inner, opening: &Opening) -> OnItsWay<'a> {
        OnItsWay { inner, opening: Some(opening.clone()) }
    }

    fn has_ended(mut self) {
        self.opening = None;
    }
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        if let Some(opening) = self.opening.take() {
            self.inner.ledger.interrupted(&opening, now());
        }
    }
}
