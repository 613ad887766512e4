//! The desk behind every door: what happened is judged and cleaned here, and handed down to the store. Doors differ only in
//! how they read what comes in and how they say what goes out.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use unstuck_judge::nature::{self, Nature};
use unstuck_judge::retry::{Draw, MayRepeat};
use unstuck_judge::{Again, Aliases, Call, Diagnosis, Effect, Kind, Lang, Observation, Rules, Verdict};
use unstuck_store::{
    Advocate, Answer, Asked, Bounds, Ended, Entry, Keeper, Kept, RetryAsk, Series, Who, retry_without_memory,
};
use unstuck_wire::clean::Cleaner;
use unstuck_wire::report::Report;
use unstuck_wire::time;

use crate::deadline::Deadline;
use crate::rewriter::{Because, Rewriter};

/// No call takes longer than a month; a longer time is a mistake.
const LONGEST_CALL_MS: u64 = 30 * 24 * 60 * 60 * 1000;
/// The most that is quoted to a model at once.
const QUOTED_MAX: usize = 2000;
/// How many recommendations go with what the ladder says, where there is room.
const ADVICE: usize = 2;
/// The most of one of them.
const ADVICE_MAX: usize = 300;
/// Below this a cause is a guess.
const UNSURE: f32 = 0.5;

/// Takes what happened, one thing after the other.
pub(crate) struct Desk<'a> {
    pub(crate) keeper: Keeper<'a>,
    pub(crate) cleaner: &'a Cleaner,
    /// When this process has to end, where it has to.
    pub(crate) deadline: Option<Arc<Deadline>>,
    /// Proposes calls in place of those that fail; nobody does where they failed long ago, and perhaps elsewhere.
    pub(crate) rewriter: Option<Rc<Rewriter>>,
    pub(crate) bounds: Bounds,
    pub(crate) lang: Lang,
}

/// A call that ended, as a door reads it.
pub(crate) struct Result<'a> {
    pub(crate) key: &'a str,
    pub(crate) observation: &'a Observation,
    /// The working folder, as the host names it; empty where it does not.
    pub(crate) folder: &'a str,
    /// What the host calls it.
    pub(crate) said_ok: Option<bool>,
    pub(crate) took_ms: Option<u64>,
    pub(crate) user_spoke: bool,
    /// A throw of the dice, where whoever runs the call would send it again by itself.
    pub(crate) can_retry: Option<Draw>,
    /// How long the hook itself would wait for that, where it does.
    pub(crate) from_hook: Option<Duration>,
    /// What we know of a call that we run ourselves.
    pub(crate) ours: Option<Ours<'a>>,
}

/// A call that we run ourselves.
pub(crate) struct Ours<'a> {
    /// What was found in all that it printed; of that only beginning and end are at hand any more.
    pub(crate) diagnosis: &'a Diagnosis,
    /// A person says that it does no harm to send it twice.
    pub(crate) idempotent: bool,
    /// A person asked for retries.
    pub(crate) tries_guesses: bool,
    /// It ran into a time limit of ours, and the next one is longer: that is the change it takes.
    pub(crate) gets_more_time: bool,
    /// It cannot be sent again, whatever came of it.
    pub(crate) is_hindered: bool,
    pub(crate) series: Series,
}

impl Desk<'_> {
    /// A call is asked for. Somebody may speak for it where it would be refused.
    pub(crate) fn before(&mut self, asked: Asked, now: u64, advocate: Option<&dyn Advocate>) -> Answer {
        self.guarded(&Entry::Asked(Box::new(asked)), now, advocate)
    }

    /// A call as it is asked for.
    pub(crate) fn asked(&self, who: Who, key: &str, call: &Call, user_spoke: bool) -> Asked {
        let mut asked = Asked::new(self.cleaner, &self.bounds, who, key, call);
        asked.user_spoke = user_spoke;
        asked
    }

    /// A call ended. The report is there for every result, a success too. Somebody may know more of what it ran.
    pub(crate) fn after(
        &mut self,
        rules: &Rules,
        who: Who,
        result: &Result<'_>,
        now: u64,
        advocate: Option<&dyn Advocate>,
    ) -> (Answer, Report) {
        let asked = self.asked(who, result.key, &result.observation.call, result.user_spoke);
        let (ended, report) = self.ended(rules, asked, result);
        let retry = ended.retry;
        let entry = Entry::Ended(Box::new(ended));
        let mut answer = self.guarded(&entry, now, advocate);
        if let (Entry::Ended(ended), Some(ask), Kept::Spooled { .. } | Kept::Lost { .. }) =
            (&entry, retry.filter(|ask| ask.series.is_some()), &answer.kept)
        {
            // Whoever runs the call waits for an answer, whether or not anything can be remembered.
            answer.said.retry = retry_without_memory(ended, &ask);
        }
        (answer, report)
    }

    /// A call as it ended, judged and cleaned, and not yet kept.
    pub(crate) fn ended(&self, rules: &Rules, asked: Asked, result: &Result<'_>) -> (Ended, Report) {
        let call = &result.observation.call;
        let diagnosis = match &result.ours {
            Some(ours) => ours.diagnosis.clone(),
            None => rules.diagnose(result.observation),
        };
        let mut report = Report::new(diagnosis, call, self.lang);
        let nature = match &result.ours {
            Some(ours) if ours.idempotent => Nature::Idempotent,
            Some(_) | None => nature::of(call),
        };
        report.verdict = Verdict::of(&report.diagnosis, nature);
        report.aliases = Aliases::of(&report.diagnosis, &report.verdict);
        let mut ended =
            Ended::new(self.cleaner, &self.bounds, asked, result.observation, result.said_ok, &report);
        ended.took_ms = result.took_ms.map(|took| took.min(LONGEST_CALL_MS));
        ended.retry = result.can_retry.map(|draw| RetryAsk {
            may_repeat: may_repeat(&report, nature, result.ours.as_ref()),
            draw,
            from_hook: result.from_hook,
            series: result.ours.as_ref().map(|ours| ours.series),
        });
        ended.again_after = match report.verdict.again {
            Again::After(wait) => Some(time::span_ms(wait)),
            Again::Now | Again::IfChanged | Again::Never => None,
        };
        let report = self.readable(report);
        let found = &report.diagnosis;
        let because = Because {
            kind: found.kind,
            rule: &found.rule,
            line: found.evidence.as_ref().map(|found| &*found.text),
        };
        let rewriter = self.rewriter.as_ref().filter(|_| ended.finding.is_some());
        let proposed = rewriter.and_then(|rewriter| rewriter.propose(call, because, result.folder));
        let proposed = proposed.map(|(rewrite, _)| rewrite.text(self.lang));
        let advice = proposed.iter().chain(report.recommendations.iter().take(ADVICE));
        ended.advice = advice.map(|advice| self.cleaner.line(advice, ADVICE_MAX)).collect();
        (ended, report)
    }

    /// The same report as it may be read by a model: what an output hides in it is shown as what it is.
    fn readable(&self, mut report: Report) -> Report {
        let quoted = report.diagnosis.evidence.iter_mut().map(|found| &mut found.text);
        for text in quoted.chain(&mut report.diagnosis.subject).chain(&mut report.recommendations) {
            *text = self.cleaner.line(text, QUOTED_MAX).into_string();
        }
        report
    }

    /// Anything that happened.
    pub(crate) fn note(&mut self, entry: &Entry, now: u64) -> Answer {
        self.guarded(entry, now, None)
    }

    /// Keeps an entry so that it is not lost when time runs out meanwhile.
    fn guarded(&mut self, entry: &Entry, now: u64, advocate: Option<&dyn Advocate>) -> Answer {
        if let Some(deadline) = &self.deadline {
            deadline.hold(entry);
        }
        let answer = self.keeper.keep_or(entry, now, advocate);
        if let Some(deadline) = &self.deadline {
            deadline.let_go();
        }
        answer
    }
}

/// May the call be sent again by whoever runs it?
fn may_repeat(report: &Report, nature: Nature, ours: Option<&Ours<'_>>) -> MayRepeat {
    if ours.is_some_and(|ours| ours.is_hindered) {
        return MayRepeat::Never;
    }
    // Of a cause that nobody is sure of a person's word is enough to try whether it passes.
    let is_tried = |ours: &Ours<'_>| match report.diagnosis.kind {
        Kind::Unknown => ours.idempotent || ours.tries_guesses,
        Kind::CheckFailed => ours.tries_guesses,
        _ => ours.tries_guesses && report.diagnosis.confidence < UNSURE,
    };
    let answer = match ours.is_some_and(|ours| ours.gets_more_time || is_tried(ours)) {
        true => {
            let passing = Diagnosis { transient: true, ..report.diagnosis.clone() };
            Verdict::of(&passing, nature).may_repeat(&passing)
        }
        false => report.verdict.may_repeat(&report.diagnosis),
    };
    // What a program sends again by itself nobody sees before it runs: it must be harmless beyond doubt.
    let is_harmless = match nature {
        Nature::ReadOnly | Nature::Idempotent => true,
        Nature::Writes | Nature::Unknown => report.verdict.effect == Effect::Nothing,
    };
    match answer {
        MayRepeat::Yes | MayRepeat::After(_) if !is_harmless => MayRepeat::Uncertain,
        answer => answer,
    }
}
