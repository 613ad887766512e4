//! What the end of a call means, as far as that needs no memory: the one way from a result to an entry, for every door.

use std::time::Duration;

use unstuck_judge::ladder::{Firmness, Upshot};
use unstuck_judge::nature::{self, Nature};
use unstuck_judge::retry::{Draw, MayRepeat};
use unstuck_judge::{Again, Diagnosis, Effect, Kind, Lang, Observation, Verdict};
use unstuck_wire::clean::Cleaner;
use unstuck_wire::report::Report;
use unstuck_wire::time;

use crate::entry::{Asked, Bounds, Ended, RetryAsk, Series};

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

/// A call that ended, as a door tells of it.
#[derive(Debug)]
pub struct Told<'a> {
    /// The call, as it was asked for.
    pub asked: Asked,
    /// How it ended.
    pub observation: &'a Observation,
    /// What was found in all that it printed, of which only a part may be at hand any more.
    pub diagnosis: Diagnosis,
    /// What somebody who knows it says that it does to the world; without that its words have to tell.
    pub nature: Option<Nature>,
    /// What the host calls it.
    pub said_ok: Option<bool>,
    /// How long it took, where somebody says so.
    pub took_ms: Option<u64>,
    /// There where whoever runs it would send it again by itself.
    pub resend: Option<Resend>,
}

/// What whoever would send a call again says of that.
#[derive(Debug, Clone, Copy)]
pub struct Resend {
    /// A throw of the dice.
    pub draw: Draw,
    /// How long a hook itself would wait for that, where it does.
    pub from_hook: Option<Duration>,
    /// There where one process makes all the attempts itself.
    pub ours: Option<OwnAttempts>,
}

/// Attempts that one process makes itself.
#[derive(Debug, Clone, Copy)]
pub struct OwnAttempts {
    /// Somebody wants to see whether a failure passes that nobody knows.
    pub tries_unknown: bool,
    /// Somebody wants to see whether a failure passes of which the cause is a guess.
    pub tries_guesses: bool,
    /// It ran into a time limit of ours, and the next one is longer: that is the change it takes.
    pub gets_more_time: bool,
    /// It cannot be sent again, whatever came of it.
    pub is_hindered: bool,
    /// How far they are.
    pub series: Series,
}

impl Told<'_> {
    /// Judges and cleans it. The report is there for every result, a success too, as it may be read by a model: what an output
    /// hides in it is shown as what it is.
    pub fn judged(self, cleaner: &Cleaner, bounds: &Bounds, lang: Lang) -> (Ended, Report) {
        let call = &self.observation.call;
        let nature = self.nature.unwrap_or_else(|| nature::of(call));
        let prints = [&self.asked.call_print, &self.asked.intent_print].map(Clone::clone);
        let mut report = Report::knowing(self.diagnosis, call, nature, prints, lang);
        let mut ended = Ended::new(cleaner, bounds, self.asked, self.observation, self.said_ok, &report);
        ended.took_ms = self.took_ms.map(|took| took.min(LONGEST_CALL_MS));
        ended.retry = self.resend.map(|resend| RetryAsk {
            may_repeat: may_repeat(&report, nature, resend.ours.as_ref()),
            draw: resend.draw,
            from_hook: resend.from_hook,
            series: resend.ours.map(|ours| ours.series),
        });
        ended.again_after = match report.verdict.again {
            Again::After(wait) => Some(time::span_ms(wait)),
            Again::Now | Again::IfChanged | Again::Never => None,
        };
        let quoted = report.diagnosis.evidence.iter_mut().map(|found| &mut found.text);
        for text in quoted.chain(&mut report.diagnosis.subject).chain(&mut report.recommendations) {
            *text = cleaner.line(text, QUOTED_MAX).into_string();
        }
        (ended, report)
    }
}

impl Ended {
    /// Its cause is only a guess: one repeat tells more than the guess does.
    pub fn doubt(&mut self) {
        if let Upshot::Failed(fault) = &mut self.ending.upshot
            && fault.firmness == Firmness::Certain
        {
            fault.firmness = Firmness::Likely;
        }
    }

    /// Only its arguments tell what it works on; `is_here` where it ran in this very process, and not behind a server.
    pub fn tell_by_arguments(&mut self, is_here: bool) {
        if let Upshot::Failed(fault) = &mut self.ending.upshot
            && fault.firmness != Firmness::Patient
        {
            fault.condition = fault.condition.clone().by_arguments(fault.kind, is_here);
        }
    }

    /// Adds sentences that may help: `first` those of whoever knows the call, then those of the `rules`.
    pub fn advise<'a>(
        &mut self,
        cleaner: &Cleaner,
        first: impl IntoIterator<Item = &'a String>,
        rules: &'a [String],
    ) {
        let sentences = first.into_iter().chain(rules.iter().take(ADVICE));
        self.advice = sentences.map(|sentence| cleaner.line(sentence, ADVICE_MAX)).collect();
    }
}

/// May the call be sent again by whoever runs it?
fn may_repeat(report: &Report, nature: Nature, ours: Option<&OwnAttempts>) -> MayRepeat {
    if ours.is_some_and(|ours| ours.is_hindered) {
        return MayRepeat::Never;
    }
    // Of a cause that nobody is sure of a person's word is enough to try whether it passes.
    let is_tried = |ours: &OwnAttempts| match report.diagnosis.kind {
        Kind::Unknown => ours.tries_unknown || ours.tries_guesses,
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
