//! The desk behind every door: what happened is judged and cleaned here, and handed down to the store. Doors differ only in
//! how they read what comes in and how they say what goes out.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use unstuck_judge::ladder::Upshot;
use unstuck_judge::nature::Nature;
use unstuck_judge::retry::Draw;
use unstuck_judge::{Call, Condition, Diagnosis, Lang, Observation, Rules};
use unstuck_store::{
    Advocate, Answer, Asked, Bounds, Ended, Entry, Keeper, Kept, OwnAttempts, Resend, Series, Told, Who,
};
use unstuck_wire::clean::Cleaner;
use unstuck_wire::report::Report;

use crate::deadline::Deadline;
use crate::rewriter::{Because, Rewriter};
use crate::same_name;

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
    /// Is a person there who can be asked?
    pub(crate) attended: bool,
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

impl Ours<'_> {
    /// The same without what was found.
    fn attempts(&self) -> OwnAttempts {
        OwnAttempts {
            tries_unknown: self.idempotent,
            tries_guesses: self.tries_guesses,
            gets_more_time: self.gets_more_time,
            is_hindered: self.is_hindered,
            series: self.series,
        }
    }
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
        let mut asked = self.asked(who, result.key, &result.observation.call, result.user_spoke);
        asked.attended = result.attended;
        let (ended, report) = self.ended(rules, asked, result);
        let retry = ended.retry;
        let entry = Entry::Ended(Box::new(ended));
        let mut answer = self.guarded(&entry, now, advocate);
        if let (Entry::Ended(ended), Some(ask), Kept::Spooled { .. } | Kept::Lost { .. }) =
            (&entry, retry.filter(|ask| ask.series.is_some()), &answer.kept)
        {
            // Whoever runs the call waits for an answer, whether or not anything can be remembered.
            answer.said.retry = self.keeper.retry_without_memory(ended, &ask);
        }
        (answer, report)
    }

    /// A call as it ended, judged and cleaned, and not yet kept.
    pub(crate) fn ended(&self, rules: &Rules, asked: Asked, result: &Result<'_>) -> (Ended, Report) {
        let call = &result.observation.call;
        let ours = result.ours.as_ref();
        let told = Told {
            asked,
            observation: result.observation,
            diagnosis: match ours {
                Some(ours) => ours.diagnosis.clone(),
                None => rules.diagnose(result.observation),
            },
            nature: ours.filter(|ours| ours.idempotent).map(|_| Nature::Idempotent),
            said_ok: result.said_ok,
            took_ms: result.took_ms,
            resend: result.can_retry.map(|draw| Resend {
                draw,
                from_hook: result.from_hook,
                ours: ours.map(Ours::attempts),
            }),
        };
        let (mut ended, report) = told.judged(self.cleaner, &self.bounds, self.lang);
        let found = &report.diagnosis;
        let because = Because {
            kind: found.kind,
            rule: &found.rule,
            line: found.evidence.as_ref().map(|found| &*found.text),
        };
        let rewriter = self.rewriter.as_ref().filter(|_| ended.finding.is_some());
        let proposed = rewriter.and_then(|rewriter| rewriter.propose(call, because, result.folder));
        let mut known: Vec<String> =
            proposed.map(|(rewrite, _)| rewrite.text(self.lang)).into_iter().collect();
        match rewriter.and_then(|rewriter| self.right_place(&ended, call, result.folder, rewriter)) {
            // Nobody has to search for what was found.
            Some(place) => {
                known.push(place);
                ended.advise(self.cleaner, &known, &[]);
            }
            None => ended.advise(self.cleaner, &known, &report.recommendations),
        }
        (ended, report)
    }

    /// Where a file lies that a call looked for in the wrong place.
    fn right_place(&self, ended: &Ended, call: &Call, folder: &str, rewriter: &Rewriter) -> Option<String> {
        let Upshot::Failed(fault) = &ended.ending().upshot else { return None };
        let Condition::NoPath(missing) = &fault.condition else { return None };
        same_name::told(missing, call, folder, rewriter.home.as_deref(), self.lang)
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
