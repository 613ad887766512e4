//! Attempts that one process makes itself at one call of an agent.

use std::borrow::Cow;

use unstuck_judge::retry::{Draw, MayRepeat, Policy};
use unstuck_judge::{Kind, Outcome};
use unstuck_store::{Entry, Hears, Retry, RetryAsk, Said, Sender, Series, retry_without_memory};
use unstuck_wire::clean::Clean;

use super::cellar::*;

const CALL: &str = "curl https://x.example";
const DOWN: &str = "curl: (6) Could not resolve host: x.example";

/// How attempts are told of.
#[derive(Clone, Copy)]
enum Way {
    /// As what they are: one call of the agent, sent again by whoever runs it.
    AsOneCall,
    /// Each as a call of the agent.
    AsManyCalls,
}

impl Cellar {
    /// One call that fails, with all its attempts; returns what was said to each.
    fn attempts(&mut self, key: &str, hears: Hears, way: Way) -> Vec<Said> {
        let mut all = Vec::new();
        let mut series = Series::default();
        loop {
            let number = u32::from(series.retries_made) + 1;
            let key = if number == 1 { key.to_owned() } else { format!("{key}#{number}") };
            let mut asked = self.asked(&key, CALL);
            asked.who.hears = hears;
            asked.sender = match way {
                Way::AsOneCall if number > 1 => Sender::Runner,
                Way::AsOneCall | Way::AsManyCalls => Sender::Agent,
            };
            let before = self.keep(&Entry::Asked(Box::new(asked))).said;
            assert!(!before.stance.refuses(), "{before:?}");
            let mut ended = self.ended(&key, &observation(CALL, Outcome::Exited { code: 6 }, DOWN));
            ended.asked.who.hears = hears;
            let (may_repeat, draw) = (MayRepeat::Yes, Draw::LOW);
            let series_told = match way {
                Way::AsOneCall => Some(series),
                Way::AsManyCalls => None,
            };
            ended.retry = Some(RetryAsk { may_repeat, draw, from_hook: None, series: series_told });
            let without_memory = retry_without_memory(&self.policy, &ended, &ended.retry.unwrap());
            let said = self.keep(&Entry::Ended(Box::new(ended))).said;
            let retry = said.retry.or(without_memory).unwrap();
            all.push(said);
            let Retry::Again { wait, .. } = retry else { return all };
            self.now += wait.as_millis() as u64;
            series.retries_made += 1;
            series.waited = wait;
            series.failed_before = Some(Kind::Network);
        }
    }

    /// What the ladder says when the agent makes the same call twice more, and it fails.
    fn rungs_of_the_next(&mut self) -> [String; 2] {
        ["next", "last"].map(|key| {
            self.now += 5 * 60 * 1000;
            assert!(!self.before(key, CALL).said.stance.refuses(), "what passes by itself is never refused");
            let decision = self.after(key, CALL, 6, DOWN).said.decision.unwrap();
            format!("{} {:?}", decision.rung, decision.reason.map(|reason| reason.count))
        })
    }
}

#[test]
fn the_ladder_counts_a_call_once_however_often_it_was_sent() {
    let mut once = Cellar::empty();
    once.before("a", CALL);
    once.after("a", CALL, 6, DOWN);
    let after_one = once.rungs_of_the_next();

    let mut cellar = Cellar::empty();
    let said = cellar.attempts("a", Hears::Everything, Way::AsOneCall);
    assert_eq!(said.len(), 3);
    assert_eq!(cellar.calls().len(), 3);
    assert_eq!(cellar.rungs_of_the_next(), after_one);

    let mut counted = Cellar::empty();
    assert_eq!(counted.attempts("a", Hears::Everything, Way::AsManyCalls).len(), 3);
    assert_ne!(counted.rungs_of_the_next(), after_one, "the two ways must differ for this to prove anything");
}

#[test]
fn attempts_that_waited_in_the_spool_count_once_as_well() {
    let mut once = Cellar::empty();
    once.before("first", "ls");
    once.before("a", CALL);
    once.after("a", CALL, 6, DOWN);
    let after_one = once.rungs_of_the_next();

    let mut cellar = Cellar::empty();
    cellar.before("first", "ls");
    let said = cellar.locked(|cellar| cellar.attempts("a", Hears::Everything, Way::AsOneCall));
    assert_eq!(said.len(), 3);
    assert_eq!(cellar.rungs_of_the_next(), after_one);
    assert_eq!(cellar.calls().len(), 1 + 3 + 2);
}

#[test]
fn only_the_last_attempt_is_spoken_of_and_each_is_in_the_timeline() {
    let mut cellar = Cellar::empty();
    let said = cellar.attempts("a", Hears::Everything, Way::AsOneCall);
    let told: Vec<bool> = said.iter().map(|said| said.text.is_some()).collect();
    assert_eq!(told, [false, false, true]);
    let decided: Vec<bool> = said.iter().map(|said| said.decision.is_some()).collect();
    assert_eq!(decided, [false, false, true]);
    let first = ["tool:start", "tool:error", "error", "problem:new", "tool:end", "tool:retry"];
    let second = ["tool:start", "tool:error", "error", "tool:end", "tool:retry"];
    let third = ["tool:start", "tool:error", "error", "tool:end", "tool:advice"];
    let events: Vec<String> =
        cellar.events().into_iter().filter(|kind| kind != "budget" && kind != "breaker").collect();
    assert_eq!(events, [&first[..], &second, &third].concat());
}

#[test]
fn whoever_hears_only_what_is_remembered_is_told_nothing_by_the_ladder() {
    let mut cellar = Cellar::empty();
    let said = cellar.attempts("a", Hears::Memory, Way::AsOneCall);
    assert_eq!(said.len(), 3);
    assert!(said.iter().all(|said| said.text.is_none() && said.decision.is_some()), "{said:?}");
}

#[test]
fn a_policy_of_ones_own_counts() {
    let mut cellar = Cellar::empty();
    cellar.policy = Cow::Owned(Policy::built_in().with_retries(5));
    // One call more than the breaker would see without tripping: they count as one.
    for key in ["a", "b"] {
        assert_eq!(cellar.attempts(key, Hears::Everything, Way::AsOneCall).len(), 6, "{key}");
    }
}

#[test]
fn a_session_that_goes_on_elsewhere_hears_of_the_calls_of_dead_processes_alone() {
    let mut cellar = Cellar::empty();
    for (key, owner) in [("a", "gone:1"), ("b", "alive:1")] {
        let mut asked = cellar.asked(key, "terraform apply");
        asked.who.owner = Clean::from(owner);
        cellar.keep(&Entry::Asked(Box::new(asked)));
    }
    let (who, now) = (cellar.who(), cellar.now + 1000);
    let is_alive = |owner: &str| owner == "alive:1";
    let resume = || cellar.keeper(|keeper| keeper.resume(&who, now, &is_alive)).unwrap();
    let keys: Vec<String> =
        resume().into_iter().map(|sealed| format!("{} {}", sealed.key, sealed.tool)).collect();
    assert_eq!(keys, ["a Bash"]);
    assert_eq!(resume(), [], "it is told once");
    assert_eq!(cellar.calls(), ["a sealed 1 -", "b executing 1 -"]);
}
