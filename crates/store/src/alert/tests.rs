use std::time::Duration;

use super::*;
use crate::sample::Sample;

const HOUR: u64 = 3_600_000;
/// The beginning of some hour.
const NOON: u64 = 497_000 * HOUR;

fn rule(when: AlertWhen) -> AlertRule {
    let say = ["check the schema".to_owned(), "请检查模式".to_owned()];
    AlertRule::new("much".to_owned(), when, Duration::from_millis(HOUR), say)
}

fn halted() -> AlertRule {
    rule(AlertWhen::Event { event: "halt".to_owned(), more_than: 0 })
}

fn fire(store: &mut Store, rule: &AlertRule, now: u64) -> Vec<u64> {
    let cleaner = Cleaner::new(None, []);
    let fired = store.fire(std::slice::from_ref(rule), now, Lang::En, &cleaner).unwrap();
    fired.iter().map(|alert| alert.window).collect()
}

#[test]
fn an_alert_fires_once_in_a_window_whoever_looks_and_stands_in_the_timeline() {
    let mut sample = Sample::made_at(NOON);
    let failures = rule(AlertWhen::Failures { more_than: 1 });
    sample.failed(1, 1, NOON + 1, "e1", "x");
    assert_eq!(fire(&mut sample.store, &failures, NOON + 10), [0; 0]);
    sample.failed(2, 1, NOON + 2, "e1", "x");
    assert_eq!(fire(&mut sample.store, &failures, NOON + 11), [NOON]);
    assert_eq!(fire(&mut sample.another(), &failures, NOON + 12), [0; 0]);
    assert_eq!(sample.number("SELECT count(*) FROM event WHERE type = 'alert'"), 1);
    assert_eq!(
        sample.text("SELECT body FROM event WHERE type = 'alert'"),
        r#"{"name":"much","value":2.0,"text":"check the schema"}"#
    );
    sample.failed(3, 1, NOON + HOUR, "e1", "x");
    sample.failed(4, 1, NOON + HOUR, "e1", "x");
    assert_eq!(fire(&mut sample.store, &failures, NOON + HOUR + 1), [NOON + HOUR]);
}

#[test]
fn only_what_the_rule_asks_for_is_counted() {
    let sample = Sample::made_at(NOON);
    sample.failed(1, 1, NOON + 1, "e1", "x");
    sample.succeeded(2, 1, NOON + 2);
    let check = |only: AlertFilter, expected: f64| {
        let mut rule = rule(AlertWhen::Failures { more_than: 0 });
        rule.only = only;
        assert_eq!(sample.store.look(&rule, NOON + 5).unwrap().value, expected, "{rule:?}");
    };
    let any = AlertFilter::default;
    check(any(), 1.0);
    check(AlertFilter { kind: Some("network".parse().unwrap()), ..any() }, 1.0);
    check(AlertFilter { kind: Some("timeout".parse().unwrap()), ..any() }, 0.0);
    check(AlertFilter { error_type: Some("runtime"), ..any() }, 1.0);
    check(AlertFilter { error_type: Some("validation"), ..any() }, 0.0);
    check(AlertFilter { tool: Some("Bash".to_owned()), ..any() }, 1.0);
    check(AlertFilter { tool: Some("Read".to_owned()), ..any() }, 0.0);
    check(AlertFilter { agent: Some("main".to_owned()), ..any() }, 1.0);
    check(AlertFilter { agent: Some("scout".to_owned()), ..any() }, 0.0);
}

#[test]
fn what_happened_before_the_hour_or_while_nobody_looked_is_told_once() {
    let mut sample = Sample::made_at(NOON);
    assert_eq!(fire(&mut sample.store, &halted(), NOON + 1), [0; 0]);
    sample.event(NOON + HOUR - 1, "control", "halt", None, None, "stop");
    assert_eq!(fire(&mut sample.store, &halted(), NOON + HOUR + 1), [NOON]);
    sample.event(NOON + 3 * HOUR, "control", "halt", None, None, "stop");
    assert_eq!(fire(&mut sample.store, &halted(), NOON + 9 * HOUR), [NOON + 3 * HOUR]);
    assert_eq!(fire(&mut sample.store, &halted(), NOON + 9 * HOUR + 1), [0; 0]);
}

#[test]
fn what_was_recorded_from_long_ago_is_no_news() {
    let mut sample = Sample::made_at(NOON);
    sample.event(NOON - 100 * HOUR, "control", "halt", None, None, "stop");
    assert_eq!(fire(&mut sample.store, &halted(), NOON + 1), [0; 0]);
}

#[test]
fn a_rule_that_is_switched_off_is_not_looked_at() {
    let mut sample = Sample::made_at(NOON);
    sample.event(NOON, "control", "halt", None, None, "stop");
    let mut off = halted();
    off.enabled = false;
    assert_eq!(fire(&mut sample.store, &off, NOON + 1), [0; 0]);
}

/// `(calls, failures)` of one hour and of the next.
#[track_caller]
fn check_rate(before: (i64, i64), after: (i64, i64), expected: (f64, bool)) {
    let sample = Sample::made_at(NOON);
    let mut id = 0;
    for (at, (calls, failures)) in [(NOON, before), (NOON + HOUR, after)] {
        for n in 0..calls {
            id += 1;
            match n < failures {
                true => sample.failed(id, 1, at, "e1", "x"),
                false => sample.succeeded(id, 1, at),
            }
        }
    }
    let rate = rule(AlertWhen::Rate { factor: 2.0, least_calls: 10 });
    let found = sample.store.look(&rate, NOON + HOUR + 5).unwrap();
    assert_eq!((found.value, found.is_over), expected);
}

#[test]
fn a_rate_fires_where_the_share_of_failures_grew_by_its_factor() {
    check_rate((10, 2), (20, 8), (2.0, true));
    check_rate((10, 4), (20, 8), (1.0, false));
    // Fewer calls than asked for, on either side, prove nothing.
    check_rate((9, 1), (20, 20), (0.0, false));
    check_rate((20, 1), (9, 9), (0.0, false));
    // From none at all, a single failure is no step.
    check_rate((20, 0), (20, 1), (1.0, false));
    check_rate((20, 0), (20, 2), (2.0, true));
    check_rate((20, 0), (20, 0), (1.0, false));
}

#[test]
fn counting_rare_events_and_ended_calls_reads_an_index() {
    let sample = Sample::made_at(NOON);
    let plan = |sql: &str| {
        let mut statement = sample.store.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
        rows.map(|row| row.unwrap()).collect::<String>()
    };
    let rare = "SELECT count(*) FROM event WHERE type = 'halt' AND at >= 1 AND at < 2
                AND channel <> 'progress' AND type <> 'error'";
    assert!(plan(rare).contains("event_rare"), "{}", plan(rare));
    let ended = "SELECT count(*) FROM call WHERE ended_at >= 1 AND ended_at < 2";
    assert!(plan(ended).contains("call_by_end"), "{}", plan(ended));
}

/// A store in which an alert waits for its command and its webhook.
fn waiting() -> Sample {
    let mut sample = Sample::made_at(NOON);
    sample.event(NOON, "control", "halt", None, None, "stop");
    let mut rule = halted();
    rule.webhook = Some("https://hooks.example/secret".to_owned());
    rule.command = vec!["notify".to_owned()];
    assert_eq!(fire(&mut sample.store, &rule, NOON + 1), [NOON]);
    sample
}

const LEASE: Duration = Duration::from_secs(60);

#[test]
fn a_delivery_is_made_by_one_process_and_taken_over_when_that_one_is_gone() {
    let mut sample = waiting();
    let mut other = sample.another();
    let mut claim = |now: u64| other.claim_delivery(now, LEASE).unwrap().map(|claim| claim.to);
    let first = sample.store.claim_delivery(NOON + 2, LEASE).unwrap().unwrap();
    assert_eq!(first.to, Recipient::Command);
    assert_eq!(claim(NOON + 2), Some(Recipient::Webhook));
    assert_eq!(claim(NOON + 3), None);
    assert_eq!(claim(NOON + 2 + 60_000), Some(Recipient::Command));
    sample.store.settle_delivery(&first, &DeliveryOutcome::Arrived, NOON + 4).unwrap();
    assert_eq!(claim(NOON + HOUR), Some(Recipient::Webhook));
    assert_eq!(claim(NOON + HOUR), None);
}

#[test]
fn a_failed_delivery_waits_twice_as_long_each_time_and_is_given_up_after_eight() {
    let mut sample = waiting();
    let webhook = sample.store.claim_delivery(NOON, LEASE).unwrap().unwrap();
    sample
        .store
        .settle_delivery(&webhook, &DeliveryOutcome::Hopeless(Clean::from("no command")), NOON)
        .unwrap();
    let (mut now, mut waits) = (NOON, Vec::new());
    while let Some(claim) = sample.store.claim_delivery(now, LEASE).unwrap() {
        let why = DeliveryOutcome::Failed(Clean::from("503"));
        sample.store.settle_delivery(&claim, &why, now).unwrap();
        let [alert] = &sample.store.fired_alerts(None, 9).unwrap()[..] else { panic!() };
        if let DeliveryState::Waiting { until } = alert.deliveries[1].state {
            assert_eq!(sample.store.claim_delivery(until - 1, LEASE).unwrap(), None);
            waits.push((until - now) / 60_000);
            now = until;
        }
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64]);
    let [alert] = &sample.store.fired_alerts(None, 9).unwrap()[..] else { panic!() };
    let shown: Vec<_> = alert.deliveries.iter().map(|it| (&*it.to, it.tries, it.state, &*it.error)).collect();
    assert_eq!(
        shown,
        [("command", 1, DeliveryState::GivenUp, "no command"), ("webhook", 8, DeliveryState::GivenUp, "503")]
    );
    assert_eq!(sample.number("SELECT open FROM alert"), 0);
}

#[test]
fn addresses_and_commands_are_not_written_down() {
    let sample = waiting();
    assert!(!sample.text("SELECT group_concat(delivery || text) FROM alert").contains("secret"));
    assert_eq!(
        sample.store.fired_alerts(None, 9).unwrap()[0].key,
        format!("much@{NOON}.{NOON}"),
        "the same alert of another store has another key"
    );
}
