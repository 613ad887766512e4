//! Decisions as rows, and what must hold for every decision.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::kind::Kind;
use crate::text::Lang;

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A first failure of a call that may be repeated, with everything else in its favour and the dice at the lowest.
fn ask(kind: Kind) -> Ask<'static> {
    let policy = Policy::built_in();
    Ask {
        kind,
        may_repeat: MayRepeat::Yes,
        tool: "Bash",
        agent: "claude",
        retries_made: 0,
        last_wait: Duration::ZERO,
        elapsed: Duration::ZERO,
        deadline: policy.deadline,
        budget: Budget::full(&policy.budget),
        breaker: Breaker::NEW,
        past: &Experience::NONE,
        now: 0,
        draw: Draw::LOW,
    }
}

/// Says a decision in few words.
fn say(decision: Decision) -> String {
    match decision {
        Decision::Retry { wait, limit_factor: LimitFactor::SAME, .. } => format!("retry after {wait:?}"),
        Decision::Retry { wait, limit_factor: LimitFactor(grown), .. } => {
            format!("retry after {wait:?}, limit x{}", f64::from(grown) / 1_000.0)
        }
        Decision::Stop { why, come_back_after: Some(wait), .. } => {
            format!("{why:?}, come back after {wait:?}")
        }
        Decision::Stop { why, come_back_after: None, .. } => format!("{why:?}"),
    }
}

#[track_caller]
fn check(ask: Ask<'_>, expected: &str) {
    assert_eq!(say(Policy::built_in().decide(&ask)), expected, "{ask:?}");
}

#[test]
fn each_kind_is_retried_as_its_row_says() {
    for (kind, waits) in [
        (Kind::Network, &["retry after 3s", "retry after 6s", "TriesUsed, come back after 12s"][..]),
        (Kind::RateLimited, &["retry after 60s", "TriesUsed, come back after 120s"]),
        (
            Kind::Timeout,
            &["retry after 1s, limit x1.5", "retry after 2s, limit x2.25", "TriesUsed, come back after 4s"],
        ),
        (Kind::ParseError, &["retry after 0ns", "TriesUsed, come back after 1s"]),
        (
            Kind::ServerError,
            &["retry after 1s", "retry after 2s", "retry after 4s", "TriesUsed, come back after 8s"],
        ),
        (Kind::Auth, &["NotRetryable"]),
        (Kind::CodeError, &["NotRetryable"]),
    ] {
        for (retries_made, expected) in (0..).zip(waits) {
            check(Ask { retries_made, ..ask(kind) }, expected);
        }
    }
}

#[test]
fn an_answer_other_than_yes_ends_it() {
    for (may_repeat, expected) in [
        (MayRepeat::Never, "NotRetryable"),
        (MayRepeat::IfChanged, "NothingChanged"),
        (MayRepeat::Uncertain, "EffectUncertain"),
    ] {
        check(Ask { may_repeat, ..ask(Kind::Network) }, expected);
    }
}

#[test]
fn an_agent_that_writes_gets_no_retry_but_is_told_when_to_come_back() {
    check(Ask { agent: "coder", ..ask(Kind::Network) }, "AgentWrites, come back after 3s");
    check(Ask { agent: "codex", ..ask(Kind::Network) }, "retry after 3s");
    check(Ask { agent: "codex", retries_made: 1, ..ask(Kind::Network) }, "TriesUsed, come back after 6s");
}

#[test]
fn a_servers_wait_replaces_ours_and_is_not_cut_short() {
    let limited = ask(Kind::RateLimited);
    for (said, expected) in [
        (secs(12), "retry after 12s"),
        (secs(0), "retry after 0ns"),
        (secs(300), "retry after 300s"),
        (secs(301), "HintTooLong, come back after 301s"),
        (Duration::MAX, "HintTooLong, come back after 2764800s"),
    ] {
        check(Ask { may_repeat: MayRepeat::After(said), ..limited }, expected);
    }
    let spread = Ask { may_repeat: MayRepeat::After(secs(12)), draw: Draw::HIGH, ..limited };
    check(spread, "retry after 13s");
    check(Ask { kind: Kind::OutOfResources, ..spread }, "NotRetryable, come back after 13s");
}

#[test]
fn a_wait_that_the_deadline_cuts_off_is_not_begun() {
    let late = Ask { elapsed: secs(50), deadline: secs(60), ..ask(Kind::RateLimited) };
    check(Ask { may_repeat: MayRepeat::After(secs(9)), ..late }, "retry after 9s");
    check(Ask { may_repeat: MayRepeat::After(secs(10)), ..late }, "Deadline, come back after 10s");
    check(late, "Deadline, come back after 60s");
    check(Ask { elapsed: secs(60), kind: Kind::ParseError, ..late }, "Deadline, come back after 1s");
}

#[test]
fn an_empty_budget_or_an_open_breaker_still_tells_how_long_to_wait() {
    let empty = Budget { tokens: 50 };
    check(Ask { budget: empty, ..ask(Kind::ServerError) }, "BudgetEmpty, come back after 1s");
    check(Ask { budget: empty, ..ask(Kind::ParseError) }, "BudgetEmpty, come back after 1s");
    let breaker = Breaker::Open { since: 0, trips: 1 };
    check(Ask { breaker, now: 10_000, ..ask(Kind::ServerError) }, "BreakerOpen, come back after 20s");
    check(Ask { breaker, now: 10_000, ..ask(Kind::RateLimited) }, "BreakerOpen, come back after 60s");
    check(Ask { breaker, now: 30_000, ..ask(Kind::ServerError) }, "retry after 1s");
}

/// Experience of one program: so many seconds after the first attempt, so many tried, so many worked.
fn seen(rows: &[(u64, u32, u32)]) -> Experience {
    let mut whom = PastYield::NONE;
    for (after, tried, worked) in rows {
        whom = (0..*tried).fold(whom, |whom, n| whom.with(secs(*after), n < *worked, 0));
    }
    Experience { whom, tool: whom, kind: whom }
}

#[test]
fn experience_moves_waits_inside_the_cap_and_leaves_the_servers_word_alone() {
    let late = seen(&[(1, 40, 0), (2, 40, 0), (30, 40, 36)]);
    let early = seen(&[(1, 40, 40)]);
    for (past, expected) in [(&late, "retry after 24s"), (&early, "retry after 1s")] {
        check(Ask { past, ..ask(Kind::ServerError) }, expected);
    }
    check(Ask { past: &late, draw: Draw::HIGH, ..ask(Kind::ServerError) }, "retry after 32s");
    check(Ask { past: &early, draw: Draw::HIGH, ..ask(Kind::Network) }, "retry after 1s");
    let said = MayRepeat::After(secs(7));
    check(Ask { past: &early, may_repeat: said, ..ask(Kind::RateLimited) }, "retry after 7s");
}

#[test]
fn experience_changes_the_number_of_retries_both_ways_and_says_what_was_seen() {
    let never = seen(&[(1, 40, 0), (3, 40, 0), (8, 40, 0), (16, 40, 0), (32, 40, 0), (60, 40, 0)]);
    let vain = Ask { past: &never, ..ask(Kind::ServerError) };
    check(vain, "PastYield, come back after 1s");
    let Decision::Stop { seen: Some(why), .. } = Policy::built_in().decide(&vain) else { panic!("{vain:?}") };
    assert_eq!(why.text(Lang::En), "of 40 such retries after 0 to 1 s 0 helped");
    assert_eq!(Policy::built_in().cost(Kind::ServerError, &never, Duration::ZERO), 0);
    let whole = seen(&[(1, 40, 0)]);
    check(Ask { past: &whole, ..ask(Kind::ParseError) }, "PastYield, come back after 1s");
    let helps = seen(&[(8, 40, 20), (16, 40, 20), (32, 40, 20)]);
    let fourth = Ask { retries_made: 3, elapsed: secs(10), past: &helps, ..ask(Kind::ServerError) };
    check(fourth, "retry after 8s");
    check(Ask { past: &Experience::NONE, ..fourth }, "TriesUsed, come back after 8s");
    check(Ask { retries_made: 5, ..fourth }, "TriesUsed, come back after 32s");
    check(Ask { agent: "codex", ..fourth }, "TriesUsed, come back after 8s");
}

fn any_kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(Kind::ALL)
}

fn any_jitter() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["additive", "full", "equal", "decorrelated"][..])
}

fn any_answer() -> impl Strategy<Value = MayRepeat> {
    prop_oneof![
        Just(MayRepeat::Yes),
        any::<u64>().prop_map(|millis| MayRepeat::After(Duration::from_millis(millis))),
        (0..400_000_u64).prop_map(|millis| MayRepeat::After(Duration::from_millis(millis))),
        Just(MayRepeat::IfChanged),
        Just(MayRepeat::Uncertain),
        Just(MayRepeat::Never),
    ]
}

fn any_yield() -> impl Strategy<Value = PastYield> {
    (prop::collection::vec((0..60_u32, 0..60_u32), SPANS), any::<u64>()).prop_map(|(counts, at)| {
        let mut past = PastYield { at, ..PastYield::NONE };
        for (tally, (tried, worked)) in past.tallies.iter_mut().zip(counts) {
            *tally = Tally { tried, worked: worked.min(tried) };
        }
        past
    })
}

fn any_past() -> impl Strategy<Value = Experience> {
    (any_yield(), any_yield(), any_yield()).prop_map(|(whom, tool, kind)| Experience { whom, tool, kind })
}

fn any_breaker() -> impl Strategy<Value = Breaker> {
    prop_oneof![
        (any::<u16>(), any::<u8>())
            .prop_map(|(failed, seen)| Breaker::Closed { recent: Recent { failed, seen } }),
        (any::<u64>(), any::<u8>()).prop_map(|(since, trips)| Breaker::Open { since, trips }),
        (any::<u64>(), any::<u8>()).prop_map(|(since, trips)| Breaker::HalfOpen { since, trips }),
    ]
}

fn any_event() -> impl Strategy<Value = BreakerEvent> {
    prop::sample::select(&[BreakerEvent::Asked, BreakerEvent::Passed, BreakerEvent::Failed][..])
}

/// Fails the same call until the policy gives it up, and returns the waits.
fn waits_of(policy: &Policy, first: Ask<'_>, seed: u64, attempt_takes: Duration) -> Vec<Duration> {
    let mut dice = Dice::seeded(seed);
    let mut waits = Vec::new();
    let mut now = Ask { elapsed: attempt_takes, ..first };
    loop {
        match policy.decide(&Ask { draw: dice.roll(), ..now }) {
            Decision::Stop { .. } => return waits,
            Decision::Retry { wait, .. } => {
                waits.push(wait);
                now.last_wait = wait;
                now.retries_made += 1;
                now.elapsed = now.elapsed.saturating_add(wait).saturating_add(attempt_takes);
            }
        }
    }
}

proptest! {
    #[test]
    fn retries_and_waits_keep_every_limit(
        kind in any_kind(),
        may_repeat in any_answer(),
        jitter in any_jitter(),
        (by_kind, more, by_tool, by_agent) in (0..=5_u8, 0..=5_u8, 0..=5_u8, 0..=5_u8),
        (first, longest) in (0..100_000_u64, 0..100_000_u64),
        deadline in 0..1_000_000_u64,
        takes in 0..10_000_u64,
        past in any_past(),
        seed: u64,
    ) {
        let most = by_kind.saturating_add(more).min(MOST_RETRIES);
        let policy = Policy::from_toml(&format!(
            "jitter = \"{jitter}\"\ntools.t = {by_tool}\nagents.a = {by_agent}\n\
             [kinds.{kind}]\nretries = {by_kind}\nmost_retries = {most}\nfirst_wait = \"{first}ms\"\nlongest_wait = \"{longest}ms\""
        )).expect("the settings are well-formed");
        let deadline = Duration::from_millis(deadline);
        let ask = Ask { may_repeat, tool: "t", agent: "a", deadline, past: &past, ..ask(kind) };
        let waits = waits_of(&policy, ask, seed, Duration::from_millis(takes));

        prop_assert!(waits.len() <= usize::from(most.min(by_tool).min(by_agent)));
        prop_assert!(waits.iter().sum::<Duration>() <= deadline);
        let longest = Duration::from_millis(longest);
        for wait in &waits {
            match may_repeat {
                MayRepeat::Yes => prop_assert!(*wait <= longest),
                MayRepeat::After(said) => prop_assert!(said <= *wait && *wait <= policy.hints.longest_wait),
                MayRepeat::IfChanged | MayRepeat::Uncertain | MayRepeat::Never => prop_assert!(false, "was retried"),
            }
        }
        prop_assert_eq!(waits, waits_of(&policy, ask, seed, Duration::from_millis(takes)));
    }

    #[test]
    fn any_ask_gets_an_answer(
        kind in any_kind(),
        may_repeat in any_answer(),
        (retries_made, now, tokens) in any::<(u8, u64, u32)>(),
        (last_wait, elapsed, deadline) in any::<(Duration, Duration, Duration)>(),
        breaker in any_breaker(),
        past in any_past(),
        draw in 0..2_000_u16,
    ) {
        let draw = Draw::per_mille(draw);
        let budget = Budget { tokens };
        let ask = Ask { may_repeat, retries_made, last_wait, elapsed, deadline, budget, breaker, now, past: &past, draw, ..ask(kind) };
        match Policy::built_in().decide(&ask) {
            Decision::Retry { wait, .. } => prop_assert!(elapsed.checked_add(wait).is_some_and(|end| end < deadline)),
            Decision::Stop { why: StopReason::BudgetEmpty | StopReason::BreakerOpen, come_back_after, .. } => {
                prop_assert!(come_back_after.is_some_and(|wait| !wait.is_zero()));
            }
            Decision::Stop { .. } => {}
        }
    }

    #[test]
    fn a_budget_stays_between_nothing_and_full(
        (max, regain, refund_percent) in any::<(u32, u32, u8)>(),
        events in prop::collection::vec(any::<(bool, u32)>(), 0..50),
    ) {
        let rules = BudgetRules { max, regain, refund_percent };
        let mut budget = Budget::full(&rules);
        for (failed, tokens) in events {
            budget = match failed {
                true => budget.failed(tokens),
                false => budget.succeeded(tokens, &rules),
            };
            prop_assert!(budget.tokens <= max);
            prop_assert!(!budget.allows_retry(&rules) || budget.tokens > max / 2);
        }
    }

    #[test]
    fn a_breaker_is_never_half_open_without_having_been_open(
        mut breaker in any_breaker(),
        events in prop::collection::vec((any_event(), any::<u32>()), 0..60),
        window in 0..=20_u8,
    ) {
        let rules = BreakerRules { window, ..Policy::built_in().breaker };
        let mut now = 0_u64;
        for (event, passed) in events {
            now += u64::from(passed % 60_000);
            let next = breaker.step(event, now, &rules);
            let was_closed = matches!(breaker, Breaker::Closed { .. });
            let skipped_open = was_closed && matches!(next, Breaker::HalfOpen { .. });
            prop_assert!(!skipped_open);
            let closes = !was_closed && matches!(next, Breaker::Closed { .. });
            let probed = matches!(breaker, Breaker::HalfOpen { .. }) && event == BreakerEvent::Passed;
            prop_assert!(!closes || probed);
            if let Gate::Shut(rest) = next.gate(now, &rules) {
                prop_assert!(rest <= rules.longest_open);
            }
            breaker = next;
        }
    }
}
