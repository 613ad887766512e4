//! What follows from a diagnosis: who can fix it, what the call may have done, and whether the same call may run again.
//!
//! "May this run again?" is answered here, in [`Verdict::of`], and nowhere else.

use std::time::Duration;

use crate::diagnose::Diagnosis;
use crate::hint::Wait;
use crate::kind::{Kind, Stage, vocabulary};
use crate::nature::Nature;
use crate::retry::{MayRepeat, Policy};
use crate::rules::builtin;

vocabulary! {
    /// Who can do something about a failure.
    FixBy {
        /// Nobody needs to: it heals by itself.
        Wait = "wait",
        /// The model, by another call or by changing code.
        Model = "model",
        /// Whoever may change this machine: install, start, free.
        Environment = "environment",
        /// A person: credentials, permissions, decisions.
        Person = "person",
        /// Nobody.
        Nobody = "nobody",
    }
}

vocabulary! {
    /// What a call may have done before it failed.
    Effect {
        /// It changed nothing.
        Nothing = "nothing",
        /// It may have changed something.
        Maybe = "maybe",
        /// It did what it was asked for.
        Applied = "applied",
    }
}

/// May the same call run again?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// At once.
    Now,
    /// After this wait.
    After(Duration),
    /// Only when something that matters has changed.
    IfChanged,
    /// It cannot work, whatever changes around it.
    Never,
}

impl Again {
    /// The word as it stands in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Again::Now => "now",
            Again::After(_) => "after",
            Again::IfChanged => "if_changed",
            Again::Never => "never",
        }
    }
}

/// What follows from a kind alone; one row of `rules/kinds.toml`.
#[derive(Debug)]
pub(crate) struct KindRow {
    pub(crate) title: [&'static str; 2],
    pub(crate) transient: bool,
    pub(crate) fix_by: FixBy,
    pub(crate) never_again: bool,
    pub(crate) error_type: &'static str,
    pub(crate) category: &'static str,
    pub(crate) by_person: &'static str,
    pub(crate) tag: &'static str,
    pub(crate) advice: &'static [&'static str],
}

impl Kind {
    pub(crate) fn row(self) -> &'static KindRow {
        &builtin::KINDS[self as usize]
    }
}

/// The three answers about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Who can fix it.
    pub fix_by: FixBy,
    /// What the call may have done already.
    pub effect: Effect,
    /// May the same call run again?
    pub again: Again,
}

impl Verdict {
    /// Judges a diagnosis in the light of what the call does.
    pub fn of(diagnosis: &Diagnosis, nature: Nature) -> Verdict {
        let effect = diagnosis.effect.unwrap_or_else(|| effect(diagnosis, nature));
        let fix_by = match diagnosis.transient {
            true => FixBy::Wait,
            false => diagnosis.fix_by,
        };
        let mut verdict = Verdict { fix_by, effect, again: again(diagnosis, nature, effect) };
        if verdict.asks_to_look_first(diagnosis) {
            verdict.fix_by = FixBy::Model;
        }
        verdict
    }

    /// Tells whether the cause passes by itself and the call may nevertheless not be sent again, because it may have worked.
    pub fn asks_to_look_first(&self, diagnosis: &Diagnosis) -> bool {
        let may_pass = diagnosis.transient && diagnosis.hint.is_none_or(|hint| hint.wait != Wait::Never);
        may_pass && self.again == Again::IfChanged && self.effect != Effect::Nothing
    }
}

impl Verdict {
    /// The answer as the retry policy asks for it: a wait that the other side named is told apart from one of our own, and
    /// an effect that is uncertain from a call that cannot work.
    pub fn may_repeat(&self, diagnosis: &Diagnosis) -> MayRepeat {
        match (self.again, diagnosis.hint.map(|hint| hint.wait)) {
            (Again::Now | Again::After(_), Some(Wait::For(asked))) => MayRepeat::After(asked),
            (Again::Now | Again::After(_), Some(Wait::Never) | None) => MayRepeat::Yes,
            (Again::IfChanged, Some(Wait::Never)) => MayRepeat::Never,
            (Again::IfChanged, Some(Wait::For(_)) | None) if diagnosis.transient => MayRepeat::Uncertain,
            (Again::IfChanged, Some(Wait::For(_)) | None) => MayRepeat::IfChanged,
            (Again::Never, _) => MayRepeat::Never,
        }
    }
}

fn effect(diagnosis: &Diagnosis, nature: Nature) -> Effect {
    match (diagnosis.kind, diagnosis.stage, nature) {
        (_, _, Nature::ReadOnly) | (_, Some(Stage::Rejected), _) => Effect::Nothing,
        (Kind::NotAnError, _, _) => Effect::Applied,
        (Kind::CommandNotFound | Kind::Validation | Kind::RateLimited | Kind::Auth, _, _) => Effect::Nothing,
        (_, _, Nature::Idempotent | Nature::Writes | Nature::Unknown) => Effect::Maybe,
    }
}

fn again(diagnosis: &Diagnosis, nature: Nature, effect: Effect) -> Again {
    if !diagnosis.transient {
        return if diagnosis.kind.row().never_again { Again::Never } else { Again::IfChanged };
    }
    // What may have happened once must not happen twice; only the caller can look whether it did.
    let twice_is_harmless = match (effect, nature) {
        (Effect::Nothing, _) | (_, Nature::ReadOnly | Nature::Idempotent) => true,
        (Effect::Maybe | Effect::Applied, Nature::Writes) => false,
        (Effect::Maybe, Nature::Unknown) => true,
        (Effect::Applied, Nature::Unknown) => false,
    };
    if !twice_is_harmless {
        return Again::IfChanged;
    }
    let own_wait = Policy::built_in().row(diagnosis.kind).first_wait;
    match diagnosis.hint.map_or(Wait::For(own_wait), |hint| hint.wait) {
        Wait::Never => Again::IfChanged,
        Wait::For(Duration::ZERO) => Again::Now,
        Wait::For(wait) => Again::After(wait),
    }
}
