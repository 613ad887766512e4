//! The retry matrix: how many retries and which waits each kind, tool and agent gets.
//!
//! The built-in one is compiled from `rules/retry.toml`; a person's settings are laid over it.

use std::borrow::Cow;
use std::time::Duration;

use super::backoff::{Backoff, Jitter};
use super::breaker::BreakerRules;
use super::budget::BudgetRules;
use super::experience::YieldRules;
use super::file::{self, JitterWord, MOST_RETRIES, PolicyError, Retries};
use super::host::HostRules;
use crate::kind::Kind;

include!(concat!(env!("OUT_DIR"), "/retry.rs"));

/// What the retries of one kind look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindRow {
    /// How many retries at most, as long as experience does not speak for more.
    pub retries: u8,
    /// How many retries at most where it does.
    pub most_retries: u8,
    /// The wait before the first retry; zero means at once.
    pub first_wait: Duration,
    /// The longest wait, after jitter.
    pub longest_wait: Duration,
    /// What the call's own time limit is multiplied by for every retry.
    pub limit_growth: LimitFactor,
    /// What a failure of this kind takes from the budget.
    pub cost: u32,
    /// A person chose the number: then all attempts at one call count as one failure, so that neither budget nor breaker ends them.
    pub is_chosen: bool,
}

impl KindRow {
    /// Sets the number that a person chose.
    fn choose(&mut self, retries: u8, most: u8) {
        self.is_chosen |= self.retries != retries;
        (self.retries, self.most_retries) = (retries, most);
    }
}

/// A factor for a time limit, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LimitFactor(pub u32);

impl LimitFactor {
    /// The limit stays as it is.
    pub const SAME: LimitFactor = LimitFactor(1_000);
    /// A limit never grows beyond this.
    const MOST: u32 = 10_000;

    /// Returns `limit` times this factor.
    pub fn of(self, limit: Duration) -> Duration {
        limit.saturating_mul(self.0) / 1_000
    }

    /// Returns the factor for retry `n`, counted from 0, relative to the limit of the first attempt.
    pub(super) fn for_retry(self, n: u8) -> LimitFactor {
        let grown =
            (0..=n).fold(Self::SAME.0, |factor, _| (factor.saturating_mul(self.0) / 1_000).min(Self::MOST));
        LimitFactor(grown)
    }
}

/// How waits that the server asked for are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HintRules {
    /// A longer wait is not slept through; the caller is told when to come back.
    pub longest_wait: Duration,
    /// Nothing longer is believed.
    pub longest_believed: Duration,
}

/// Retries by name. Names differ in case between hosts, so they are compared without it.
type Limits = Cow<'static, [(Cow<'static, str>, u8)]>;

/// The whole retry policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    kinds: [KindRow; Kind::ALL.len()],
    tools: Limits,
    agents: Limits,
    /// The time that all attempts of a call share, unless the caller has less.
    pub deadline: Duration,
    /// How waits are spread.
    pub jitter: Jitter,
    /// The most that additive jitter adds.
    pub spread: Duration,
    /// How waits that the server asked for are treated.
    pub hints: HintRules,
    /// The budget's numbers.
    pub budget: BudgetRules,
    /// The numbers of the budget that all who ask one host share.
    pub host: HostRules,
    /// The breaker's numbers.
    pub breaker: BreakerRules,
    /// The numbers by which past yield is read.
    pub past_yield: YieldRules,
}

/// Whose number of retries was the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedBy {
    /// The kind of the failure.
    Kind,
    /// The tool.
    Tool,
    /// The agent.
    Agent,
}

impl Policy {
    /// Returns the built-in policy.
    pub fn built_in() -> &'static Policy {
        &BUILT_IN
    }

    /// Lays a person's settings, in the form of `rules/retry.toml`, over the built-in policy.
    pub fn from_toml(text: &str) -> Result<Policy, PolicyError> {
        BUILT_IN.overlaid(text)
    }

    /// Lays settings over this policy. What they do not name stays as it is.
    pub fn overlaid(&self, text: &str) -> Result<Policy, PolicyError> {
        let file = file::read(text)?;
        let mut policy = self.clone();
        for (word, cells) in &file.kinds {
            let kind: Kind = word.get_ref().parse().map_err(|_| {
                PolicyError::at(text, word.span().start, format!("`{}` is not a kind", word.get_ref()))
            })?;
            let row = &mut policy.kinds[kind as usize];
            // Whoever says how many there are does not want more of them.
            match cells.retries {
                Some(retries) => row.choose(retries.0, cells.most_retries.unwrap_or(retries).0),
                None => set(&mut row.most_retries, cells.most_retries.map(|retries| retries.0)),
            }
            set(&mut row.first_wait, cells.first_wait.map(|span| span.0));
            set(&mut row.longest_wait, cells.longest_wait.map(|span| span.0));
            set(&mut row.limit_growth, cells.limit_growth.map(|growth| LimitFactor(growth.0)));
            set(&mut row.cost, cells.cost);
        }
        file.tools.iter().for_each(|(tool, retries)| limit(&mut policy.tools, tool, *retries));
        file.agents.iter().for_each(|(agent, retries)| limit(&mut policy.agents, agent, *retries));
        set(&mut policy.deadline, file.deadline.map(|span| span.0));
        set(&mut policy.spread, file.spread.map(|span| span.0));
        set(&mut policy.jitter, file.jitter.map(Jitter::from));
        set(&mut policy.hints.longest_wait, file.hints.longest_wait.map(|span| span.0));
        set(&mut policy.hints.longest_believed, file.hints.longest_believed.map(|span| span.0));
        set(&mut policy.budget.max, file.budget.max);
        set(&mut policy.budget.regain, file.budget.regain);
        set(&mut policy.budget.refund_percent, file.budget.refund_percent.map(|percent| percent.0));
        set(&mut policy.host.retries, file.host.retries);
        set(&mut policy.host.per, file.host.per.map(|span| span.0));
        set(&mut policy.breaker.window, file.breaker.window.map(|calls| calls.0));
        set(&mut policy.breaker.least_calls, file.breaker.least_calls.map(|calls| calls.0));
        set(&mut policy.breaker.trip_percent, file.breaker.trip_percent.map(|percent| percent.0));
        set(&mut policy.breaker.open, file.breaker.open.map(|span| span.0));
        set(&mut policy.breaker.longest_open, file.breaker.longest_open.map(|span| span.0));
        set(&mut policy.past_yield.least_tries, file.past_yield.least_tries);
        set(&mut policy.past_yield.give_up_percent, file.past_yield.give_up_percent.map(|percent| percent.0));
        set(
            &mut policy.past_yield.good_enough_percent,
            file.past_yield.good_enough_percent.map(|percent| percent.0),
        );
        set(
            &mut policy.past_yield.worth_more_percent,
            file.past_yield.worth_more_percent.map(|percent| percent.0),
        );
        set(&mut policy.past_yield.probe_after, file.past_yield.probe_after.map(|span| span.0));
        Ok(policy)
    }

    /// Returns the same policy with this many retries for every kind that gets any; the others are not retried by anyone's
    /// word.
    pub fn with_retries(&self, retries: u8) -> Policy {
        let mut policy = self.clone();
        for row in policy.kinds.iter_mut().filter(|row| row.retries > 0) {
            row.choose(retries, retries);
        }
        policy
    }

    /// Returns the same policy with this many retries for calls of an agent.
    pub fn with_agent(mut self, agent: &str, retries: u8) -> Policy {
        limit(&mut self.agents, agent, Retries(retries.min(MOST_RETRIES)));
        self
    }

    /// Returns the row of a kind.
    pub fn row(&self, kind: Kind) -> &KindRow {
        &self.kinds[kind as usize]
    }

    /// Returns how many retries a call gets, and whose number that is: the smallest of kind, tool and agent.
    pub fn retries(&self, kind: Kind, tool: &str, agent: &str) -> (u8, LimitedBy) {
        self.least_of(self.row(kind).retries, tool, agent)
    }

    /// Returns how many retries a call gets where experience speaks for more.
    pub fn most_retries(&self, kind: Kind, tool: &str, agent: &str) -> u8 {
        self.least_of(self.row(kind).most_retries, tool, agent).0
    }

    fn least_of(&self, by_kind: u8, tool: &str, agent: &str) -> (u8, LimitedBy) {
        let by_kind = (by_kind, LimitedBy::Kind);
        let by_tool = named(&self.tools, tool).map(|retries| (retries, LimitedBy::Tool));
        let by_agent = named(&self.agents, agent).map(|retries| (retries, LimitedBy::Agent));
        // Of equal numbers the kind's is named first, since it tells most about the failure.
        [by_tool, by_agent].into_iter().flatten().fold(by_kind, |least, next| match next.0 < least.0 {
            true => next,
            false => least,
        })
    }

    /// Returns the waits of a kind.
    pub fn backoff(&self, kind: Kind) -> Backoff {
        let row = self.row(kind);
        Backoff { first: row.first_wait, cap: row.longest_wait, jitter: self.jitter, spread: self.spread }
    }
}

impl From<JitterWord> for Jitter {
    fn from(word: JitterWord) -> Jitter {
        match word {
            JitterWord::Additive => Jitter::Additive,
            JitterWord::Full => Jitter::Full,
            JitterWord::Equal => Jitter::Equal,
            JitterWord::Decorrelated => Jitter::Decorrelated,
        }
    }
}

fn set<T>(cell: &mut T, said: Option<T>) {
    if let Some(said) = said {
        *cell = said;
    }
}

fn limit(limits: &mut Limits, name: &str, retries: Retries) {
    let limits = limits.to_mut();
    match limits.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        Some((_, known)) => *known = retries.0,
        None => limits.push((Cow::Owned(name.to_owned()), retries.0)),
    }
}

fn named(limits: &Limits, name: &str) -> Option<u8> {
    limits.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, retries)| *retries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_of_kind_tool_and_agent_holds() {
        let policy =
            Policy::from_toml("tools.WebFetch = 2\nagents.eager = 5").expect("the settings are well-formed");
        for (kind, tool, agent, expected) in [
            (Kind::ServerError, "Bash", "claude", (3, LimitedBy::Kind)),
            (Kind::Network, "Bash", "claude", (2, LimitedBy::Kind)),
            (Kind::RateLimited, "Bash", "gemini", (1, LimitedBy::Kind)),
            (Kind::ServerError, "Bash", "codex", (1, LimitedBy::Agent)),
            (Kind::ServerError, "Bash", "Coder", (0, LimitedBy::Agent)),
            (Kind::ServerError, "webfetch", "eager", (2, LimitedBy::Tool)),
            (Kind::ServerError, "webfetch", "gemini", (1, LimitedBy::Agent)),
            (Kind::Auth, "webfetch", "eager", (0, LimitedBy::Kind)),
        ] {
            assert_eq!(policy.retries(kind, tool, agent), expected, "{kind} {tool} {agent}");
        }
    }

    #[test]
    fn settings_replace_the_cells_they_name_and_no_others() {
        let policy = Policy::from_toml("jitter = \"full\"\n[kinds]\nnetwork.retries = 4")
            .expect("the settings are well-formed");
        assert_eq!((policy.jitter, policy.row(Kind::Network).retries), (Jitter::Full, 4));
        assert_eq!(policy.row(Kind::Network).first_wait, Duration::from_secs(3));
        assert_eq!(policy.row(Kind::Timeout), BUILT_IN.row(Kind::Timeout));
        assert_eq!([Kind::Network, Kind::Timeout].map(|kind| policy.row(kind).is_chosen), [true, false]);
    }

    #[test]
    fn a_persons_number_of_retries_holds_for_what_is_retried_at_all() {
        let policy = BUILT_IN.with_retries(9);
        let retries = |kind| policy.row(kind).retries;
        assert_eq!(
            [Kind::Network, Kind::RateLimited, Kind::Auth, Kind::CodeError].map(retries),
            [9, 9, 0, 0]
        );
        assert_eq!(policy.retries(Kind::Network, "Bash", "codex"), (1, LimitedBy::Agent));
    }

    #[test]
    fn an_empty_file_changes_nothing_and_the_built_in_file_lies_over_itself() {
        assert_eq!(Policy::from_toml("").as_ref(), Ok(&BUILT_IN));
        assert_eq!(Policy::from_toml(include_str!("../../../../rules/retry.toml")).as_ref(), Ok(&BUILT_IN));
    }

    #[test]
    fn a_bad_file_names_its_key_and_line() {
        for (text, line, names) in [
            ("deadline = \"1m\"\nretrys = 3", 2, "retrys"),
            ("[kinds]\nnetwork = { retries = 1, wait = \"3s\" }", 2, "wait"),
            ("[kinds]\nnetwork.retries = 1\nnetwrok.retries = 2", 3, "netwrok"),
            ("\n\n[kinds.network]\nretries = 6", 4, "between 0 and 5"),
            ("[agents]\ncodex = -1", 2, "-1"),
            ("[hints]\nlongest_wait = \"5 minutes\"", 2, "5 minutes"),
            ("[kinds.timeout]\nlimit_growth = 0.5", 2, "between 1 and 10"),
            ("[breaker]\nwindow = 0", 2, "between 1 and 16"),
            ("jitter = \"some\"", 1, "some"),
            ("[budget\nmax = 3", 1, ""),
        ] {
            let error = Policy::from_toml(text).expect_err(text);
            assert!(error.line == line && error.what.contains(names), "{text:?} gave {error}");
        }
    }

    #[test]
    fn a_limit_grows_with_each_retry_of_a_timeout_and_not_without_end() {
        let growth = BUILT_IN.row(Kind::Timeout).limit_growth;
        let limits = [0, 1, 4, 200].map(|n| growth.for_retry(n).of(Duration::from_secs(100)).as_secs());
        assert_eq!(limits, [150, 225, 759, 1_000]);
        assert_eq!(BUILT_IN.row(Kind::Network).limit_growth.for_retry(3), LimitFactor::SAME);
    }
}
