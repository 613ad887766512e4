//! The brakes of the retry policy, kept between processes: a budget and a breaker for each session and tool, and a budget for each
//! host that all of them share. The policy itself is the judge's.

use std::borrow::Cow;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};
use serde_json::json;
use unstuck_judge::Kind;
use unstuck_judge::retry::{
    self, Ask, Breaker, BreakerEvent, Budget, Decision, Experience, HostBudget, LimitFactor, Policy, Seen,
    StopReason,
};
use unstuck_wire::time;

use crate::entry::{Asked, Ended, RetryAsk, Retrying, Series};
use crate::event::EventType;
use crate::pack::{Pack, packed, unpacked};
use crate::past_retries::Rows;
use crate::record::Clerk;
use crate::rows::Lenient;

/// Whether a failed call should be sent again by whoever runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Yes.
    Again {
        /// After this wait.
        wait: Duration,
        /// Which attempt that will be.
        attempt: u32,
        /// How many there are at most.
        of: u32,
        /// By what its time limit is multiplied.
        limit_factor: LimitFactor,
        /// What was seen of past retries, where the wait follows from that.
        seen: Option<Seen>,
    },
    /// No.
    Stop {
        /// Why.
        why: StopReason,
        /// After how long it is worth asking again, where waiting helps.
        come_back_after: Option<Duration>,
        /// What was seen of past retries, where it follows from that.
        seen: Option<Seen>,
    },
}

/// An attempt that has just ended.
pub(crate) struct Attempt {
    pub(crate) session: i64,
    pub(crate) call: i64,
    pub(crate) number: u32,
    pub(crate) asked_at: u64,
}

/// What the brakes and the policy say to the end of an attempt.
pub(crate) struct Pulled {
    /// Whether it is sent again; nothing where it went well.
    pub(crate) retry: Option<Retry>,
    /// What the timeline is to tell of that, and what was seen of such retries where it follows from that.
    pub(crate) announced: Option<(Retrying, Option<Seen>)>,
}

impl Pulled {
    /// Is it sent again?
    pub(crate) fn goes_on(&self) -> bool {
        match self.retry {
            Some(Retry::Again { .. }) => true,
            Some(Retry::Stop { .. }) | None => false,
        }
    }
}

/// Tells the brakes how an attempt ended, and asks the policy what follows from a failure.
pub(crate) fn pull(
    clerk: &Clerk<'_>,
    attempt: &Attempt,
    ended: &Ended,
    ask: &RetryAsk,
) -> Result<Pulled, rusqlite::Error> {
    let policy = policy_for(&clerk.bench.retry, ask);
    let (asked, at) = (&ended.asked, ended.asked.who.at);
    let so_far = match ask.series {
        Some(series) => series,
        None => so_far(clerk.connection, attempt, asked.call_print.as_str())?,
    };
    let elapsed = match &ask.series {
        Some(series) => series.elapsed,
        None if so_far.retries_made == 0 => Duration::from_millis(at.saturating_sub(attempt.asked_at)),
        None => {
            let begun = first_asked(clerk.connection, attempt, asked.call_print.as_str())?;
            Duration::from_millis(at.saturating_sub(begun))
        }
    };
    let healing = healing(&policy, &so_far);
    if let Some(kind) = healing {
        let sent = elapsed.saturating_sub(Duration::from_millis(at.saturating_sub(attempt.asked_at)));
        Rows::of(kind, asked).count(clerk.connection, sent, ended.finding.is_none(), at)?;
    }
    let past = match &ended.finding {
        Some(finding) => Rows::of(finding.kind, asked).read(clerk.connection, at)?,
        None => Experience::NONE,
    };
    let end = match &ended.finding {
        Some(finding) => {
            End::Failed { cost: cost(&policy, finding.kind, &past, elapsed, so_far.retries_made) }
        }
        None => End::Succeeded { healed: healed(&policy, healing, so_far.retries_made) },
    };
    let name = |what: &str| format!("{what}/{}/{}", attempt.session, asked.tool);
    let (budget, breaker) = tell(clerk, attempt, &policy, &[name("budget"), name("breaker")], end, at)?;
    let host = Host::of(asked);
    let Some(finding) = &ended.finding else {
        host.succeeded(clerk, &policy, so_far.retries_made, at)?;
        return Ok(Pulled { retry: None, announced: None });
    };
    let retry = decide(
        &policy,
        ask,
        &Ask {
            kind: finding.kind,
            may_repeat: ask.may_repeat,
            tool: &asked.tool,
            agent: &asked.who.agent,
            retries_made: so_far.retries_made,
            last_wait: so_far.waited,
            elapsed,
            deadline: deadline(&policy, ask),
            budget,
            breaker,
            past: &past,
            now: at,
            draw: ask.draw,
        },
    );
    let retry = match ask.from_hook {
        // Who sends it again asks for it anew.
        Some(_) => retry,
        None => host.take(clerk, &policy, finding.kind, retry, at)?,
    };
    let announced = match retry {
        Retry::Again { wait, attempt: next, of, seen, .. } => {
            let retrying = Retrying {
                who: asked.who.clone(),
                key: asked.key.clone(),
                attempt: next,
                of: Some(of),
                wait_ms: time::span_ms(wait),
                because: finding.kind,
            };
            Some((retrying, seen))
        }
        Retry::Stop { .. } => None,
    };
    Ok(Pulled { retry: Some(retry), announced })
}

/// The budget of retries that all who ask one host share.
struct Host(Option<String>);

impl Host {
    fn of(asked: &Asked) -> Host {
        Host(retry::host(&asked.label, &asked.tool).map(|host| format!("host/{host}")))
    }

    /// Takes a retry from it, if there is one left.
    fn take(
        &self,
        clerk: &Clerk<'_>,
        policy: &Policy,
        kind: Kind,
        retry: Retry,
        at: u64,
    ) -> Result<Retry, rusqlite::Error> {
        let (Some(name), Retry::Again { wait, seen, .. }) = (&self.0, retry) else { return Ok(retry) };
        let row = policy.row(kind);
        let chosen = if row.is_chosen { u32::from(row.retries) } else { 0 };
        let spent: HostBudget = get(clerk, name)?.unwrap_or_default();
        match spent.take(chosen, at, &policy.host) {
            Ok(spent) => {
                put(clerk, name, None, at, &spent)?;
                Ok(retry)
            }
            Err(again) => {
                Ok(Retry::Stop { why: StopReason::HostBudget, come_back_after: Some(again.max(wait)), seen })
            }
        }
    }

    /// It answered.
    fn succeeded(
        &self,
        clerk: &Clerk<'_>,
        policy: &Policy,
        retries_made: u8,
        at: u64,
    ) -> Result<(), rusqlite::Error> {
        let Some(name) = &self.0 else { return Ok(()) };
        let Some(spent) = get::<HostBudget>(clerk, name)?.filter(|spent| spent.spent > 0) else {
            return Ok(());
        };
        put(clerk, name, None, at, &spent.succeeded(retries_made.into(), at, &policy.host))
    }
}

/// The same question where nothing can be remembered: full budget, shut breaker, no past. `None` where it did not fail.
pub fn retry_without_memory(policy: &Policy, ended: &Ended, ask: &RetryAsk) -> Option<Retry> {
    Brakes::new(policy).answer(&policy_for(policy, ask), ended, ask)
}

/// What stops a storm of retries: a budget and a breaker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Brakes {
    budget: Budget,
    breaker: Breaker,
}

impl Brakes {
    /// A full budget and a shut breaker.
    pub fn new(policy: &Policy) -> Brakes {
        Brakes { budget: Budget::full(&policy.budget), breaker: Breaker::NEW }
    }

    /// Tells them how an attempt ended that was asked for at `asked_at`, and asks the policy what follows from a failure. For
    /// whoever makes all the attempts itself and keeps the brakes himself, as long as he lives: nothing older is known.
    pub fn pull(&mut self, policy: &Policy, ended: &Ended, ask: &RetryAsk, asked_at: u64) -> Option<Retry> {
        let policy = policy_for(policy, ask);
        let series = ask.series.unwrap_or_default();
        let end = match &ended.finding {
            Some(finding) => {
                let (made, none) = (series.retries_made, &Experience::NONE);
                End::Failed { cost: cost(&policy, finding.kind, none, series.elapsed, made) }
            }
            None => {
                End::Succeeded { healed: healed(&policy, healing(&policy, &series), series.retries_made) }
            }
        };
        *self = self.told(&policy, end, asked_at, ended.asked.who.at);
        self.answer(&policy, ended, ask)
    }

    fn told(self, policy: &Policy, end: End, asked_at: u64, at: u64) -> Brakes {
        let (budget, event) = match end {
            End::Succeeded { healed } => {
                (self.budget.succeeded(healed, &policy.budget), Some(BreakerEvent::Passed))
            }
            End::Failed { cost: 0 } => (self.budget, None),
            End::Failed { cost } => (self.budget.failed(cost), Some(BreakerEvent::Failed)),
        };
        let asked = self.breaker.step(BreakerEvent::Asked, asked_at, &policy.breaker);
        let breaker = event.map_or(asked, |event| asked.step(event, at, &policy.breaker));
        Brakes { budget, breaker }
    }

    /// What the policy says to a failure of which only the series is known.
    fn answer(&self, policy: &Policy, ended: &Ended, ask: &RetryAsk) -> Option<Retry> {
        let finding = ended.finding.as_ref()?;
        let series = ask.series.unwrap_or_default();
        Some(decide(
            policy,
            ask,
            &Ask {
                kind: finding.kind,
                may_repeat: ask.may_repeat,
                tool: &ended.asked.tool,
                agent: &ended.asked.who.agent,
                retries_made: series.retries_made,
                last_wait: series.waited,
                elapsed: series.elapsed,
                deadline: deadline(policy, ask),
                budget: self.budget,
                breaker: self.breaker,
                past: &Experience::NONE,
                now: ended.asked.who.at,
                draw: ask.draw,
            },
        ))
    }
}

/// What a series of attempts may have healed by waiting. A kind that is never retried is healed by a change, which says nothing
/// about waits.
fn healing(policy: &Policy, series: &Series) -> Option<Kind> {
    series.failed_before.filter(|kind| series.retries_made > 0 && policy.row(*kind).retries > 0)
}

/// What a failure costs. As many retries as a person chose are one call with its first attempt, and no storm.
fn cost(policy: &Policy, kind: Kind, past: &Experience, elapsed: Duration, retries_made: u8) -> u32 {
    match retries_made > 0 && policy.row(kind).is_chosen {
        true => 0,
        false => policy.cost(kind, past, elapsed),
    }
}

/// What failures had cost that a success makes up for.
fn healed(policy: &Policy, healing: Option<Kind>, retries_made: u8) -> u32 {
    let Some(row) = healing.map(|kind| policy.row(kind)) else { return 0 };
    let counted = if row.is_chosen { retries_made.min(1) } else { retries_made };
    row.cost.saturating_mul(counted.into())
}

/// What the policy says, as whoever runs the call hears it.
fn decide(policy: &Policy, ask: &RetryAsk, question: &Ask<'_>) -> Retry {
    match policy.decide(question) {
        Decision::Stop { why, come_back_after, seen } => Retry::Stop { why, come_back_after, seen },
        Decision::Retry { wait, seen, .. } if ask.from_hook.is_some_and(|longest| wait > longest) => {
            Retry::Stop { why: StopReason::HintTooLong, come_back_after: Some(wait), seen }
        }
        Decision::Retry { wait, limit_factor, seen } => {
            let (retries, _) = policy.retries(question.kind, question.tool, question.agent);
            let attempt = u32::from(question.retries_made).saturating_add(2);
            // Where experience speaks for more, there are more.
            let of = attempt.max(u32::from(retries) + 1);
            Retry::Again { wait, attempt, of, limit_factor, seen }
        }
    }
}

/// The policy, with as many retries as a person allows.
fn policy_for<'p>(policy: &'p Policy, ask: &RetryAsk) -> Cow<'p, Policy> {
    match ask.series.and_then(|series| series.retries) {
        Some(retries) => Cow::Owned(policy.with_retries(retries)),
        None => Cow::Borrowed(policy),
    }
}

fn deadline(policy: &Policy, ask: &RetryAsk) -> Duration {
    ask.series.and_then(|series| series.deadline).unwrap_or(policy.deadline)
}

/// How an attempt ended, as the budget sees it.
#[derive(Clone, Copy)]
enum End {
    /// It made up for failures that had cost so much.
    Succeeded { healed: u32 },
    /// It costs so much; a failure that costs nothing says nothing about the far side.
    Failed { cost: u32 },
}

/// Tells budget and breaker, and says so in the timeline where one of them turns.
fn tell(
    clerk: &Clerk<'_>,
    attempt: &Attempt,
    policy: &Policy,
    [budget_name, breaker_name]: &[String; 2],
    end: End,
    at: u64,
) -> Result<(Budget, Breaker), rusqlite::Error> {
    let (session, call) = (attempt.session, attempt.call);
    let Brakes { budget, breaker } = Brakes::new(policy);
    let budget = get(clerk, budget_name)?.unwrap_or(budget);
    let breaker = get(clerk, breaker_name)?.unwrap_or(breaker);
    let Brakes { budget: new_budget, breaker: new_breaker } =
        Brakes { budget, breaker }.told(policy, end, attempt.asked_at, at);
    if new_budget != budget {
        put(clerk, budget_name, Some(session), at, &new_budget)?;
    }
    if new_breaker != breaker {
        put(clerk, breaker_name, Some(session), at, &new_breaker)?;
    }
    let allows = |budget: Budget| budget.allows_retry(&policy.budget);
    if allows(budget) != allows(new_budget) {
        let body =
            json!({ "name": budget_name, "tokens": new_budget.tokens, "allows_retry": allows(new_budget) });
        clerk.append(at, EventType::Budget, session, call, body)?;
    }
    if breaker.word() != new_breaker.word() {
        let body = json!({ "name": breaker_name, "from": breaker.word(), "state": new_breaker.word() });
        clerk.append(at, EventType::Breaker, session, call, body)?;
    }
    Ok((new_budget, new_breaker))
}

/// How far the attempts at a call are, as far as the record tells.
fn so_far(connection: &Connection, attempt: &Attempt, call_print: &str) -> Result<Series, rusqlite::Error> {
    let retries_made = u8::try_from(attempt.number.saturating_sub(1)).unwrap_or(u8::MAX);
    let none = Series { retries_made, ..Series::default() };
    if retries_made == 0 {
        return Ok(none);
    }
    let before = connection
        .prepare_cached(
            "SELECT kind, ended_at FROM call
             WHERE session = ?1 AND call_print = ?2 AND id < ?3 AND state = 'failed' ORDER BY id DESC LIMIT 1",
        )?
        .query_row((attempt.session, call_print, attempt.call), |row| {
            let kind: Option<String> = row.lenient(0)?;
            let ended_at: Option<i64> = row.lenient(1)?;
            let waited = attempt.asked_at.saturating_sub(ended_at.map_or(attempt.asked_at, i64::unsigned_abs));
            Ok(Series {
                waited: Duration::from_millis(waited),
                failed_before: Some(kind.and_then(|kind| kind.parse().ok()).unwrap_or(Kind::Unknown)),
                ..none
            })
        })
        .optional()?;
    Ok(before.unwrap_or(none))
}

/// When the first attempt of this row of failures was asked for.
fn first_asked(connection: &Connection, attempt: &Attempt, call_print: &str) -> Result<u64, rusqlite::Error> {
    let first: Option<i64> = connection
        .prepare_cached(
            "SELECT asked_at FROM call WHERE session = ?1 AND call_print = ?2 AND id <= ?3 AND attempt = 1
             ORDER BY id DESC LIMIT 1",
        )?
        .query_row((attempt.session, call_print, attempt.call), |row| row.lenient(0))
        .optional()?;
    Ok(first.map_or(attempt.asked_at, i64::unsigned_abs))
}

fn get<T: Pack>(clerk: &Clerk<'_>, name: &str) -> Result<Option<T>, rusqlite::Error> {
    let mut brakes = clerk.desk.brakes.borrow_mut();
    if let Some(body) = brakes.get(name) {
        return Ok(body.as_deref().and_then(unpacked));
    }
    let body: Option<Vec<u8>> = clerk
        .connection
        .prepare_cached("SELECT body FROM brake WHERE name = ?1")?
        .query_row([name], |row| row.lenient(0))
        .optional()?;
    let value = body.as_deref().and_then(unpacked);
    brakes.insert(name.to_owned(), body);
    Ok(value)
}

fn put(
    clerk: &Clerk<'_>,
    name: &str,
    session: Option<i64>,
    at: u64,
    value: &impl Pack,
) -> Result<(), rusqlite::Error> {
    let body = packed(value);
    clerk
        .connection
        .prepare_cached(
            "INSERT INTO brake (name, session, at, body) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO UPDATE SET at = excluded.at, body = excluded.body",
        )?
        .execute((name, session, at.cast_signed(), &body))?;
    clerk.desk.brakes.borrow_mut().insert(name.to_owned(), Some(body));
    Ok(())
}
