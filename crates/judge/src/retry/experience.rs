//! What experience says about a retry that is planned: send it as planned, at a better time, once more than the table allows,
//! or not at all.
//!
//! How likely a retry helps is estimated from those that were made as long after the first attempt, of the same kind of failure
//! at the same program and host. Where those are few, what was seen at other programs of the tool counts as much as
//! `PRIOR` retries, before that what was seen with other tools, and before that the table's word: that it helps every other
//! time. So little evidence changes nothing, and nobody's retries end because somebody else's were in vain.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::past_yield::{PastYield, SPANS, Tally, ends, span};
use crate::text::Lang;

/// As how many retries a belief counts that was not seen at the program itself.
const PRIOR: f64 = 2.0;
/// How likely a retry of the table helps, as long as nothing was seen.
const BY_THE_TABLE: f64 = 0.5;

const ALL: RangeInclusive<usize> = 0..=SPANS - 1;

/// The numbers by which past yield is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YieldRules {
    /// Fewer tries than this prove nothing.
    pub least_tries: u32,
    /// A retry that helps less often than this is not made.
    pub give_up_percent: u8,
    /// A shorter wait that surely helps more often than this is preferred.
    pub good_enough_percent: u8,
    /// Retries that surely help more often than this are worth one more than the table allows.
    pub worth_more_percent: u8,
    /// Where nothing was tried for so long, what was in vain is tried again.
    pub probe_after: Duration,
}

/// What past retries achieved: of the same kind of failure, at the same program and host, with the same tool, with any. Each
/// holds what those before it hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experience {
    /// At the same program and host.
    pub whom: PastYield,
    /// With the same tool.
    pub tool: PastYield,
    /// With any.
    pub kind: PastYield,
}

/// A retry as it is planned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    /// The time since the first attempt began.
    pub(super) elapsed: Duration,
    /// The wait that the table plans.
    pub(super) wait: Duration,
    /// The longest that it allows.
    pub(super) cap: Duration,
    /// How many retries were made.
    pub(super) retries_made: u8,
    /// The time by the clock of [`PastYield::at`].
    pub(super) now: u64,
}

/// What experience says about a planned retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// There is nothing against the plan, or too little evidence.
    AsPlanned,
    /// Another wait is better.
    Wait {
        /// At least so long.
        from: Duration,
        /// At most so long.
        to: Duration,
        /// What that follows from.
        seen: Seen,
    },
    /// It would be in vain.
    Stop(Seen),
}

/// What was seen: of `tried` retries that were sent between `from` and `to` after the first attempt, `worked` helped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Retries made.
    pub tried: u32,
    /// Retries that helped.
    pub worked: u32,
    /// From so long after the beginning of the first attempt.
    pub from: Duration,
    /// Up to so long after it.
    pub to: Duration,
}

impl Experience {
    /// Nothing is known.
    pub const NONE: Experience =
        Experience { whom: PastYield::NONE, tool: PastYield::NONE, kind: PastYield::NONE };

    /// Says what the past means for a planned retry.
    pub(super) fn advice(&self, planned: &Planned, rules: &YieldRules) -> Advice {
        let Some(here) = span(planned.elapsed.saturating_add(planned.wait)) else { return Advice::AsPlanned };
        let ahead = span(planned.elapsed).unwrap_or(here);
        let reach = span(planned.elapsed.saturating_add(planned.cap)).unwrap_or(SPANS - 1);
        let aim = |span: usize, seen: Seen| {
            let (from, to) = ends(span);
            let wait = |at: Duration| at.saturating_sub(planned.elapsed).min(planned.cap);
            Advice::Wait { from: wait(from), to: wait(to), seen }
        };
        let good_enough = f64::from(rules.good_enough_percent) / 100.0;
        let surely = |span: usize| {
            let tally = self.narrowest(span..=span, rules)?;
            Some((tally.bounds(), seen(tally, span..=span)))
        };
        let good = |span: usize| surely(span).filter(|((low, _), _)| *low >= good_enough);
        if let Some((span, (_, seen))) = (ahead..here).find_map(|span| Some((span, good(span)?))) {
            return aim(span, seen);
        }
        let Some(vain) = self.in_vain(here, rules) else {
            // A retry that sometimes helps is put off until one surely helps more often.
            let Some(((_, most), _)) = surely(here) else { return Advice::AsPlanned };
            let better = |span: usize| surely(span).filter(|((low, _), _)| *low > most);
            let better = (here + 1..=reach).find_map(|span| Some((span, better(span)?)));
            return better.map_or(Advice::AsPlanned, |(span, (_, seen))| aim(span, seen));
        };
        let worth = f64::from(rules.worth_more_percent) / 100.0;
        let helps = |span: usize| surely(span).filter(|((low, _), _)| *low >= worth);
        // What has surely helped is taken before what was never tried.
        if let Some((later, (_, seen))) = (here + 1..=reach).find_map(|span| Some((span, helps(span)?))) {
            return aim(later, seen);
        }
        if let Some(later) = (here + 1..=reach).find(|span| self.in_vain(*span, rules).is_none()) {
            return aim(later, vain);
        }
        let rested = Duration::from_millis(planned.now.saturating_sub(self.whom.at));
        match planned.retries_made == 0 && rested >= rules.probe_after {
            true => Advice::AsPlanned,
            false => Advice::Stop(vain),
        }
    }

    /// Says whether retries as late as the one that has just failed, and as the next one, have surely helped so often that one
    /// more than the table allows is worth it.
    pub(super) fn is_worth_more(&self, planned: &Planned, rules: &YieldRules) -> bool {
        let next = span(planned.elapsed.saturating_add(planned.wait)).unwrap_or(SPANS - 1);
        let last = span(planned.elapsed / 2).unwrap_or(SPANS - 1).min(next);
        let worth = f64::from(rules.worth_more_percent) / 100.0;
        self.narrowest(last..=next, rules).is_some_and(|tally| tally.bounds().0 >= worth)
    }

    /// What was seen, where a retry in this span would be in vain by what was seen at the program itself.
    fn in_vain(&self, span: usize, rules: &YieldRules) -> Option<Seen> {
        // Where the span itself has seen little, its neighbours speak for it.
        let wider = span.saturating_sub(1)..=(span + 1).min(SPANS - 1);
        let enough =
            |spans: &RangeInclusive<usize>| self.whom.tally(spans.clone()).tried >= rules.least_tries;
        let spans = [span..=span, wider].into_iter().find(enough)?;
        let vain = self.rate(spans.clone()) < f64::from(rules.give_up_percent) / 100.0;
        vain.then(|| seen(self.whom.tally(spans.clone()), spans))
    }

    /// How likely a retry helps that is sent in these spans. What was seen elsewhere makes it doubted sooner, and never later:
    /// that others heal says nothing against a program that does not.
    fn rate(&self, spans: RangeInclusive<usize>) -> f64 {
        let [whom, tool, kind] = [&self.whom, &self.tool, &self.kind].map(|past| past.tally(spans.clone()));
        let with_others = kind.without(tool).rate(BY_THE_TABLE, PRIOR).min(BY_THE_TABLE);
        let with_the_tool = tool.without(whom).rate(with_others, PRIOR).min(BY_THE_TABLE);
        // What did not pass by then is half as likely to pass a little later.
        let before = match spans.start().checked_sub(1) {
            Some(last) => self.whom.tally(0..=last).rate(with_the_tool, PRIOR).min(with_the_tool),
            None => with_the_tool,
        };
        whom.rate((with_the_tool + before) / 2.0, PRIOR)
    }

    /// The counts that are nearest to the call, where they are enough to prove something. Others speak for a program only as
    /// long as it has no experience of its own: what suits them would else never be put to the proof.
    fn narrowest(&self, spans: RangeInclusive<usize>, rules: &YieldRules) -> Option<Tally> {
        let is_enough = |tally: &Tally| tally.tried >= rules.least_tries;
        let known =
            [&self.whom, &self.tool, &self.kind].into_iter().find(|past| is_enough(&past.tally(ALL)))?;
        Some(known.tally(spans)).filter(is_enough)
    }
}

impl Seen {
    /// The same in one clause, for people.
    pub fn text(&self, lang: Lang) -> String {
        let Seen { tried, worked, from, to } = self;
        let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
        match lang {
            Lang::En => format!("of {tried} such retries after {from} to {to} s {worked} helped"),
            Lang::Zh => {
                format!("此前 {tried} 次同类重试（首次尝试后 {from} 至 {to} 秒）中有 {worked} 次成功")
            }
        }
    }
}

fn seen(tally: Tally, spans: RangeInclusive<usize>) -> Seen {
    let (from, to) = (ends(*spans.start()).0, ends(*spans.end()).1);
    Seen { tried: tally.tried, worked: tally.worked, from, to }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: YieldRules = YieldRules {
        least_tries: 2,
        give_up_percent: 10,
        good_enough_percent: 70,
        worth_more_percent: 30,
        probe_after: Duration::from_secs(3_600),
    };
    const HOUR: u64 = 3_600_000;

    /// What was seen: after so many seconds, so many tried, so many worked.
    type Rows<'a> = &'a [(u64, u32, u32)];

    fn past(rows: Rows<'_>) -> PastYield {
        let mut past = PastYield::NONE;
        for (after, tried, worked) in rows {
            let place = span(Duration::from_secs(*after)).expect("a retry, and nobody who came back");
            past.tallies[place] = Tally { tried: *tried, worked: *worked };
        }
        past
    }

    fn with_others(own: Rows<'_>, others: Rows<'_>) -> Experience {
        let whom = past(own);
        let others = past(others);
        let mut all = whom;
        for (sum, other) in all.tallies.iter_mut().zip(others.tallies) {
            *sum = Tally { tried: sum.tried + other.tried, worked: sum.worked + other.worked };
        }
        Experience { whom, tool: all, kind: all }
    }

    /// A first retry after two seconds, of which sixty are allowed.
    fn planned(now: u64) -> Planned {
        let secs = Duration::from_secs;
        Planned { elapsed: Duration::ZERO, wait: secs(2), cap: secs(60), retries_made: 0, now }
    }

    fn say(advice: Advice) -> String {
        match advice {
            Advice::AsPlanned => "as planned".to_owned(),
            Advice::Wait { from, to, seen: Seen { tried, worked, .. } } => {
                format!("{from:?} to {to:?}: {worked} of {tried}")
            }
            Advice::Stop(Seen { tried, worked, from, to }) => {
                format!("stop: {worked} of {tried}, {from:?} to {to:?}")
            }
        }
    }

    #[track_caller]
    fn check(own: Rows<'_>, others: Rows<'_>, expected: &str) {
        let known = with_others(own, others);
        assert_eq!(say(known.advice(&planned(0), &RULES)), expected, "{own:?} beside {others:?}");
    }

    #[test]
    fn little_evidence_changes_nothing() {
        check(&[], &[], "as planned");
        check(&[(2, 8, 0)], &[], "as planned");
        check(&[(1, 3, 3)], &[], "as planned");
        check(&[(2, 100, 20)], &[], "as planned");
    }

    #[test]
    fn what_never_passed_so_soon_is_tried_later_and_where_it_passed_before() {
        check(&[(2, 9, 0)], &[], "3s to 4s: 0 of 9");
        check(&[(2, 20, 0), (3, 9, 0), (4, 9, 0), (6, 9, 0)], &[], "8s to 12s: 0 of 20");
        check(&[(2, 20, 2), (8, 20, 3), (12, 20, 20)], &[], "8s to 12s: 20 of 20");
        check(&[(2, 20, 8), (12, 20, 12)], &[], "as planned");
    }

    #[test]
    fn what_passed_sooner_is_tried_sooner() {
        check(&[(1, 9, 9), (2, 30, 30)], &[], "0ns to 1s: 9 of 9");
        check(&[(1, 40, 20), (2, 30, 30)], &[], "as planned");
    }

    const NEVER: Rows<'_> = &[(2, 20, 0), (4, 20, 0), (8, 20, 0), (16, 20, 0), (32, 20, 0), (64, 20, 0)];

    #[test]
    fn what_never_passed_is_given_up_and_tried_again_after_a_rest() {
        check(NEVER, &[], "stop: 0 of 20, 1.5s to 2s");
        let known = with_others(NEVER, &[]);
        for (now, retries_made, expected) in [
            (HOUR - 1, 0, "stop: 0 of 20, 1.5s to 2s"),
            (HOUR, 0, "as planned"),
            (HOUR, 1, "stop: 0 of 20, 1.5s to 2s"),
        ] {
            let planned = Planned { retries_made, ..planned(now) };
            assert_eq!(say(known.advice(&planned, &RULES)), expected, "after {now} ms, retry {retries_made}");
        }
    }

    #[test]
    fn others_speak_only_for_who_has_no_experience_and_end_nobodys_retries() {
        check(&[], NEVER, "as planned");
        check(&[], &[(2, 20, 1), (12, 20, 20)], "8s to 12s: 20 of 20");
        check(&[(12, 5, 5)], &[(2, 20, 1), (12, 20, 20)], "as planned");
        check(&[(2, 2, 0)], NEVER, "3s to 4s: 0 of 2");
        check(&[(2, 9, 0)], &[(2, 100, 100)], "3s to 4s: 0 of 9");
    }

    #[test]
    fn one_more_is_worth_it_where_such_late_retries_helped() {
        let late = Planned { elapsed: Duration::from_secs(10), wait: Duration::from_secs(8), ..planned(0) };
        for (own, expected) in [
            (&[][..], false),
            (&[(12, 1, 1)], false),
            (&[(12, 3, 3)], true),
            (&[(12, 20, 11)], true),
            (&[(12, 20, 3)], false),
            (&[(2, 20, 20)], false),
        ] {
            assert_eq!(with_others(own, &[]).is_worth_more(&late, &RULES), expected, "{own:?}");
        }
    }

    #[test]
    fn what_fades_is_tried_again() {
        let known = with_others(NEVER, &[]);
        let faded = Experience { whom: known.whom.faded().faded().faded(), ..Experience::NONE };
        assert_eq!(faded.advice(&planned(0), &RULES), Advice::AsPlanned);
    }
}
