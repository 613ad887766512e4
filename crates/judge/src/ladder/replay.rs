//! A recorded run, judged call by call: what would have been said before each call and with each result.

use super::see;
use super::sight::{Moment, Print, Round, Upshot};
use super::{Decision, Event, Key, Rung, Settings, Standing, step};
use crate::call::{Observation, Outcome};
use crate::diagnose::Rules;
use crate::kind::Kind;

/// One call of a recorded run, with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The call and its result.
    pub observation: Observation,
    /// What the host said of it.
    pub said_ok: Option<bool>,
    /// The agent that made it; empty for the main one.
    pub agent: String,
    /// The message that holds it.
    pub round: Round,
    /// Did the user speak just before it?
    pub new_user_turn: bool,
    /// When it was asked for, in milliseconds; 0 where nobody says.
    pub at: u64,
}

/// What would have been done with one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// Before it ran, without a look at its result.
    pub before: Decision,
    /// With its result.
    pub after: Decision,
    /// The cause of its failure, `NotAnError` where it went well.
    pub kind: Kind,
    /// The rule that named the cause; empty where none did.
    pub rule: String,
    /// It was refused when it was recorded, by us or by somebody else, and so did not run.
    pub never_ran: bool,
}

impl Judged {
    /// What made it count as a repeat, and how often it was counted; of the stronger of both decisions.
    pub fn key(&self) -> Option<(Key, u32)> {
        let spoken = [&self.before, &self.after].into_iter().filter(|decision| decision.rung > Rung::Observe);
        let reason = spoken.filter_map(|decision| decision.reason.as_ref()).next()?;
        Some((reason.track.key(), reason.count))
    }
}

/// Judges one recorded run. What was recorded is what happened, even where a call would have been refused.
#[derive(Debug)]
pub struct Replay<'a> {
    rules: &'a Rules,
    settings: &'a Settings,
    standing: Standing,
    begun: bool,
}

impl<'a> Replay<'a> {
    /// Starts with a session in which nothing has happened.
    pub fn new(rules: &'a Rules, settings: &'a Settings) -> Replay<'a> {
        Replay { rules, settings, standing: Standing::new(), begun: false }
    }

    /// Where the run stands now.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Judges the next call.
    pub fn judge(&mut self, recorded: &Recorded) -> Judged {
        // The first turn is where the session begins; only later ones are news.
        if recorded.new_user_turn && self.begun {
            let _ = step(self.settings, &mut self.standing, Event::UserSpoke);
        }
        self.begun = true;
        let moment =
            Moment { agent: Print::of(&["agent", &recorded.agent]), round: recorded.round, at: recorded.at };
        let sight = see::sight(&recorded.observation.call);
        let before = step(self.settings, &mut self.standing, Event::Asked(&sight, moment));
        let diagnosis = self.rules.diagnose(&recorded.observation);
        let ending = see::ending(&sight, &recorded.observation, &diagnosis, recorded.said_ok);
        let after = step(self.settings, &mut self.standing, Event::Ended(&sight, &ending, moment));
        let never_ran = ending.upshot == Upshot::OurDenial || recorded.observation.outcome == Outcome::Denied;
        Judged { before, after, kind: diagnosis.kind, rule: diagnosis.rule, never_ran }
    }
}
