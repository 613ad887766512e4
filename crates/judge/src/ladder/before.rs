//! May this call run? Decided from the calls before it and its own words, never from its result.

use super::preset::{self, Limits, Settings};
use super::sight::{Firmness, Manner, Moment, Print, Sight, Speaker, State};
use super::standing::{Agent, Known, Look, Said, Standing, UNSHOWN};
use super::{Decision, Reason, Rung, Track};
use crate::condition::Condition;
use crate::kind::Kind;
use crate::nature::Looks;

/// What speaks against a call.
struct Charge {
    decision: Decision,
    halt: u32,
    said: Said,
    place: Place,
}

/// Where a refusal is written down.
#[derive(Clone, Copy)]
enum Place {
    Known(Print),
    Look(Print),
    Lap(Print),
    Streak(Print),
    Silence,
    Cycle,
}

pub(super) fn weigh(settings: &Settings, standing: &mut Standing, sight: &Sight, moment: Moment) -> Decision {
    let court = Court { settings, standing, sight, moment };
    let charge = court.strongest();
    let denied_in_a_row = standing.agent_mut(moment.agent).denied;
    let Some(mut charge) = charge else {
        standing.agent_mut(moment.agent).denied = 0;
        return Decision::SILENT;
    };
    if charge.decision.rung == Rung::Deny {
        if charge.halt > 0 && charge.said.denials > 0 && denied_in_a_row >= charge.halt {
            charge.decision.rung = Rung::Halt;
        }
        write_down(standing, charge.place, moment);
        standing.agent_mut(moment.agent).denied += 1;
    } else {
        standing.agent_mut(moment.agent).denied = 0;
    }
    charge.decision
}

fn write_down(standing: &mut Standing, place: Place, moment: Moment) {
    let said = match place {
        Place::Known(print) => standing.known.get_mut(print).map(|known| &mut known.said),
        Place::Look(print) => standing.looks.get_mut(print).map(|look| &mut look.said),
        Place::Lap(print) => standing.laps.get_mut(print).map(|lap| &mut lap.said),
        Place::Streak(tool) => {
            standing.agent_mut(moment.agent).streaks.get_mut(tool).map(|streak| &mut streak.said)
        }
        Place::Silence => Some(&mut standing.agent_mut(moment.agent).silence_said),
        Place::Cycle => Some(&mut standing.agent_mut(moment.agent).cycle_said),
    };
    if let Some(said) = said {
        said.denials = said.denials.saturating_add(1);
    }
}

struct Court<'a> {
    settings: &'a Settings,
    standing: &'a Standing,
    sight: &'a Sight,
    moment: Moment,
}

impl Court<'_> {
    fn strongest(&self) -> Option<Charge> {
        let sight = self.sight;
        let variant = self
            .standing
            .known
            .get(sight.intent)
            .map_or(Track::Variant, |known| intent_track(sight, known.kind));
        let mut charges = vec![
            self.known(sight.exact, Track::Repeat),
            self.known(sight.intent, variant),
            self.known(sight.approach, Track::Approach),
            self.look(),
            self.lap(),
        ];
        charges.extend(sight.roots.iter().map(|root| self.known(*root, Track::Root)));
        if let Some(agent) = self.standing.agent(self.moment.agent) {
            charges.extend([self.streak(agent), self.silence(agent), self.cycle(agent), self.rerun(agent)]);
        }
        charges.into_iter().flatten().filter(|charge| charge.decision.rung > Rung::Observe).reduce(
            |best, next| {
                if next.decision.rung > best.decision.rung { next } else { best }
            },
        )
    }

    /// Something that is known to fail.
    fn known(&self, print: Print, track: Track) -> Option<Charge> {
        let known = self.standing.known.get(print)?;
        let parallel = known.by.round.is_shared_with(self.moment.round);
        if parallel || is_elsewhere(known, track, self.sight) || !self.still_stands(known, track) {
            return None;
        }
        let limits = self.limits(track, known.firmness, known.kind);
        let reason = Reason {
            track,
            count: known.strikes,
            kind: known.kind,
            rule: known.rule.clone(),
            line: known.line.clone(),
            condition: known.condition.clone(),
            passes: known.firmness == Firmness::Patient,
        };
        // What cannot be refused runs, and what is known of it was said with the failure.
        let rung = self
            .rung(limits, known.strikes, known.said, known.turn)
            .filter(|_| self.may_refuse(known, track))?;
        Some(Charge {
            decision: Decision { rung, reason: Some(reason) },
            halt: limits.halt,
            said: known.said,
            place: Place::Known(print),
        })
    }

    /// Can a call be refused for this at all? Only one that certainly failed, whose cause does not pass by itself and can be
    /// looked at from here; and only in the folder where it failed.
    fn may_refuse(&self, known: &Known, track: Track) -> bool {
        // In other words the same program or path may not be needed any more.
        let needs_it = || match &known.condition {
            Condition::NoProgram(name) => self.sight.roots.contains(&Print::of(&["program", name])),
            Condition::NoPath(path) | Condition::PathTaken(path) => self.sight.names_target(path),
            Condition::Unseen
            | Condition::PortClosed(_)
            | Condition::PortTaken(_)
            | Condition::SameFiles(_)
            | Condition::SamePackages(_)
            | Condition::SameNamed => true,
        };
        let is_same = match track {
            Track::Repeat | Track::Root => true,
            Track::Variant => known.dir == self.sight.dir && needs_it(),
            Track::Spread
            | Track::Approach
            | Track::Opaque
            | Track::Look
            | Track::Act
            | Track::Poll
            | Track::Rerun
            | Track::Lap
            | Track::Cycle
            | Track::Silence => false,
        };
        is_same && known.proven && known.firmness != Firmness::Patient && known.condition.is_seen()
    }

    /// Does what stopped it then still stop it now, as far as one can know?
    fn still_stands(&self, known: &Known, track: Track) -> bool {
        let stranger = known.by.agent != self.moment.agent;
        let world = &self.standing.world;
        let waited = self.sight.waits || world.waited > known.at;
        let alive = known.state == State::Alive;
        let helped = world.may_have_helped(known, preset::matters(known.kind));
        let shared =
            preset::is_shared(known.kind) || self.sight.speaker == Speaker::Tool && track == Track::Repeat;
        !(alive || helped || waited && known.firmness < Firmness::Certain || stranger && !shared)
    }

    /// The rung for a count, at most one above what was said before. A user's new word lowers the action.
    fn rung(&self, limits: Limits, count: u32, said: Said, turn: u32) -> Option<Rung> {
        let new_turn = turn != self.standing.turn;
        if !limits.refuses(count) || new_turn && count < 2 {
            return None;
        }
        let explained = said.told >= limits.last_word();
        Some(match (explained && !new_turn, said.told >= Rung::Hint) {
            (true, _) => Rung::Deny,
            (false, true) => Rung::Insist,
            (false, false) => Rung::Hint,
        })
    }

    fn limits(&self, track: Track, firm: Firmness, kind: Kind) -> Limits {
        self.settings.limits(track, firm, kind, &self.sight.tool_name)
    }

    /// An answer that was given before, and nothing moved since.
    fn look(&self) -> Option<Charge> {
        if self.sight.looks == Looks::MayWrite {
            return None;
        }
        let place = self.moment.agent.own(self.sight.exact);
        let look = self.standing.looks.get(place)?;
        let parallel = look.by.round.is_shared_with(self.moment.round);
        let out_of_view = self.standing.tick.saturating_sub(look.at) > preset::view();
        let moved = look.world != self.standing.world.count
            || look.state == State::Alive
            || waited_since(self.standing, self.sight, look);
        if moved || parallel || out_of_view {
            return None;
        }
        let track = look_track(self.sight, look.state);
        let limits = self.limits(track, Firmness::Certain, Kind::NotAnError);
        let rung = self.rung(limits, look.seen, look.said, look.turn)?;
        let decision = Decision { rung, reason: Some(plain(track, look.seen)) };
        Some(Charge { decision, halt: limits.halt, said: look.said, place: Place::Look(place) })
    }

    /// One more of many looks in a row that were all answered before, with nothing else done in between.
    fn rerun(&self, agent: &Agent) -> Option<Charge> {
        if self.sight.looks != Looks::Known {
            return None;
        }
        let look = self.standing.looks.get(self.moment.agent.own(self.sight.exact))?;
        let is_answered = look.world == self.standing.world.count
            && look.state != State::Alive
            && look.turn == self.standing.turn
            && look.said.told >= Rung::Hint
            && !waited_since(self.standing, self.sight, look);
        let limits = self.limits(Track::Rerun, Firmness::Certain, Kind::NotAnError);
        let is_quick = self.moment.at.saturating_sub(agent.reruns_since) <= preset::loop_ms();
        // The first answer is no repeat.
        let count = agent.reruns + 1;
        if !(is_answered && is_quick && limits.refuses(count)) {
            return None;
        }
        let decision = Decision { rung: Rung::Deny, reason: Some(plain(Track::Rerun, count)) };
        Some(Charge {
            decision,
            halt: limits.halt,
            said: look.said,
            place: Place::Look(self.moment.agent.own(self.sight.exact)),
        })
    }

    /// A run whose output no change has moved.
    fn lap(&self) -> Option<Charge> {
        let lap = self.standing.laps.get(self.sight.intent)?;
        let limits = self.limits(Track::Lap, Firmness::Certain, lap.kind);
        let rung = self.rung(limits, lap.laps, lap.said, lap.turn)?;
        let decision = Decision { rung, reason: Some(plain(Track::Lap, lap.laps)) };
        Some(Charge { decision, halt: limits.halt, said: lap.said, place: Place::Lap(self.sight.intent) })
    }

    /// A tool that answered the same error to everything lately.
    fn streak(&self, agent: &Agent) -> Option<Charge> {
        let streak = agent.streaks.get(self.sight.tool)?;
        if streak.by.round.is_shared_with(self.moment.round) {
            return None;
        }
        let limits = self.limits(Track::Opaque, Firmness::Certain, streak.kind);
        let rung = self.rung(limits, streak.length, streak.said, streak.turn)?;
        let reason =
            Reason { line: streak.line.clone(), kind: streak.kind, ..plain(Track::Opaque, streak.length) };
        Some(Charge {
            decision: Decision { rung, reason: Some(reason) },
            halt: limits.halt,
            said: streak.said,
            place: Place::Streak(self.sight.tool),
        })
    }

    /// A shell that answered nothing to anything lately.
    fn silence(&self, agent: &Agent) -> Option<Charge> {
        if self.sight.speaker != Speaker::Shell || agent.silence.1 < 2 {
            return None;
        }
        let limits = self.limits(Track::Silence, Firmness::Certain, Kind::Unknown);
        let rung = self.rung(limits, agent.silence.0, agent.silence_said, agent.turn)?;
        let decision = Decision { rung, reason: Some(plain(Track::Silence, agent.silence.0)) };
        Some(Charge { decision, halt: limits.halt, said: agent.silence_said, place: Place::Silence })
    }

    /// The next call of a cycle that went around often enough.
    fn cycle(&self, agent: &Agent) -> Option<Charge> {
        let (period, laps) = cycle_of(&agent.history)?;
        let (next, _) = agent.history[agent.history.len() - period];
        if next != self.sight.exact {
            return None;
        }
        let limits = self.limits(Track::Cycle, Firmness::Certain, Kind::NotAnError);
        let rung = self.rung(limits, laps, agent.cycle_said, agent.turn)?;
        let decision = Decision { rung, reason: Some(plain(Track::Cycle, laps)) };
        Some(Charge { decision, halt: limits.halt, said: agent.cycle_said, place: Place::Cycle })
    }
}

/// What a failure of the same intent counts for. A tool that looks at the same thing for another reason finds the same;
/// everywhere else other words may make a difference.
pub(super) fn intent_track(sight: &Sight, kind: Kind) -> Track {
    let vague =
        matches!(kind, Kind::Unknown | Kind::Crash | Kind::TestFailure | Kind::CheckFailed | Kind::CodeError);
    let same_anyway = sight.speaker == Speaker::Tool && sight.manner == Manner::Looks && !vague;
    if same_anyway { Track::Repeat } else { Track::Variant }
}

/// Did the same words fail in another directory? What is missing as such is missing everywhere.
pub(super) fn is_elsewhere(known: &Known, track: Track, sight: &Sight) -> bool {
    !matches!(track, Track::Root | Track::Spread) && known.dir.is_other_than(sight.dir)
}

/// Was time given to what is looked at? What is at its end does not move by being waited for.
pub(super) fn waited_since(standing: &Standing, sight: &Sight, look: &Look) -> bool {
    sight.waits || standing.world.waited > look.at && look.state != State::Ended
}

/// A reason without a cause.
pub(super) fn plain(track: Track, count: u32) -> Reason {
    Reason {
        track,
        count,
        kind: Kind::NotAnError,
        rule: String::new(),
        line: String::new(),
        condition: Condition::Unseen,
        passes: false,
    }
}

/// Which look it is: at the state of something, at something that stays, or no look at all.
pub(super) fn look_track(sight: &Sight, state: State) -> Track {
    let looks = match sight.speaker {
        Speaker::Shell => sight.manner != Manner::Unclear,
        Speaker::Tool => sight.manner == Manner::Looks,
    };
    match (sight.polls || state == State::Ended, looks) {
        (true, _) => Track::Poll,
        (false, true) => Track::Look,
        (false, false) => Track::Act,
    }
}

/// The shortest cycle that a history ends with, and how often it went around. One call over and over is no cycle, nor are
/// actions that never show what they did.
pub(super) fn cycle_of(history: &[(Print, Print)]) -> Option<(usize, u32)> {
    (2..=5).find_map(|period| {
        let same = |at: &usize| history[*at] == history[*at - period];
        let repeated = (period..history.len()).rev().take_while(same).count();
        let laps = 1 + repeated / period;
        let lap = &history[history.len().checked_sub(period)?..];
        let varied = lap.iter().any(|(call, _)| *call != lap[0].0);
        let shown = lap.iter().any(|(_, answer)| *answer != UNSHOWN);
        (laps >= 2 && varied && shown).then_some((period, laps as u32))
    })
}
