//! What is said with a result, and what is remembered of it.

use super::before::{cycle_of, intent_track, is_elsewhere, look_track, plain, waited_since};
use super::preset::{self, Limits, Settings};
use super::sight::{Ending, Fault, Firmness, Manner, Moment, Print, Sight, Speaker, State, Upshot};
use super::standing::{Known, Lap, Look, Said, Standing, Streak, UNSHOWN};
use super::{Decision, Reason, Rung, Track};
use crate::condition::Condition;
use crate::kind::Kind;
use crate::nature::Looks;

/// Lists longer than this are cut: they are there to compare, not to keep.
const LISTED: usize = 16;
/// Failures of a cause that passes by itself belong together if no more calls lie between them.
const RECENT: u32 = 10;
/// So many causes of one call are told apart.
const CAUSES: usize = 8;

pub(super) fn weigh(
    settings: &Settings,
    standing: &mut Standing,
    sight: &Sight,
    ending: &Ending,
    moment: Moment,
) -> Decision {
    let mut clerk = Clerk { settings, standing, sight, ending, moment };
    match &ending.upshot {
        Upshot::OurDenial => Decision::SILENT,
        Upshot::Failed(fault) => {
            clerk.standing.tick += 1;
            clerk.standing.agent_mut(moment.agent).reruns = 0;
            let said = clerk.failed(fault);
            let lap = clerk.lap(fault.kind);
            clerk.close(said.or_stronger(lap))
        }
        Upshot::Fine => {
            clerk.standing.tick += 1;
            clerk.clear();
            let said = clerk.answered();
            let lap = clerk.lap(Kind::NotAnError);
            clerk.close(said.or_stronger(lap))
        }
    }
}

struct Clerk<'a> {
    settings: &'a Settings,
    standing: &'a mut Standing,
    sight: &'a Sight,
    ending: &'a Ending,
    moment: Moment,
}

impl Clerk<'_> {
    fn limits(&self, track: Track, firm: Firmness, kind: Kind) -> Limits {
        self.settings.limits(track, firm, kind, &self.sight.tool_name)
    }

    fn failed(&mut self, fault: &Fault) -> Decision {
        let sight = self.sight;
        // An answer that a failure came after is not given once more in a row when it comes back.
        self.standing.looks.remove(self.moment.agent.own(sight.exact));
        let variant = intent_track(sight, fault.kind);
        let mut said = self.strike(sight.exact, Track::Repeat, fault);
        if sight.intent != sight.exact {
            said = said.or_stronger(self.strike(sight.intent, variant, fault));
        }
        if preset::goes_with_approach(fault.kind) {
            said = said.or_stronger(self.strike(sight.approach, Track::Approach, fault));
        }
        // A host that cannot be reached stops other programs as well, and may be reached at any time.
        let roots_track = if fault.kind == Kind::Network { Track::Spread } else { Track::Root };
        for root in fault.roots.iter().take(LISTED) {
            said = said.or_stronger(self.strike(*root, roots_track, fault));
        }
        if preset::spreads(fault.kind) {
            said = said.or_stronger(self.strike(fault.cause, Track::Spread, fault));
        }
        said.or_stronger(self.streak(fault)).or_stronger(self.silence(fault))
    }

    /// Writes a failure down under one print.
    fn strike(&mut self, print: Print, track: Track, fault: &Fault) -> Decision {
        let standing = &*self.standing;
        let here = standing.known.get(print).filter(|known| !is_elsewhere(known, track, self.sight));
        // A call that fails with one cause and then with another goes in circles once the first one is back.
        let is_call = matches!(track, Track::Repeat | Track::Variant);
        let counts_calls = is_call && self.settings.counts_calls();
        let is_known =
            |known: &&Known| known.cause == fault.cause || is_call && known.causes.contains(&fault.cause);
        let is_recent = |known: &&Known| {
            let passes = track == Track::Spread && fault.firmness == Firmness::Patient;
            !passes || standing.tick.saturating_sub(known.at) <= RECENT
        };
        let same = here.filter(|known| counts_calls || is_known(known)).filter(is_recent);
        let parallel = same.is_some_and(|known| known.by.round.is_shared_with(self.moment.round));
        let stranger = same.is_some_and(|known| known.by.agent != self.moment.agent);
        // Counters are not shared: another agent that runs into a known failure does not make it worse.
        let more = u32::from(!parallel && !stranger);
        let failures = here.map_or(1, |known| known.failures.saturating_add(more));
        let strikes = match same {
            Some(_) if counts_calls => failures,
            Some(known) => known.strikes.saturating_add(more),
            None => 1,
        };
        // What stops different calls is counted by calls, not by how often one of them is made.
        let by_calls = track == Track::Spread;
        let listed = if by_calls { same } else { here };
        let latest = if by_calls { self.sight.exact } else { fault.cause };
        let mut causes: Vec<Print> = listed.map(|known| known.causes.clone()).unwrap_or_default();
        let is_same_call = by_calls && causes.contains(&latest);
        causes.retain(|cause| *cause != latest);
        causes.push(latest);
        causes.drain(..causes.len().saturating_sub(CAUSES));
        let count = if by_calls { u32::try_from(causes.len()).unwrap_or(u32::MAX) } else { strikes };
        let helped = same.is_some_and(|known| standing.world.could_help(known, preset::matters(known.kind)));
        let asked_by_user = same.is_some_and(|known| known.turn != standing.turn);
        let waited = self.sight.waits || same.is_some_and(|known| standing.world.waited > known.at);
        let alive = self.ending.state == State::Alive;
        let calm = helped
            || parallel
            || stranger
            || waited && fault.firmness < Firmness::Certain
            || asked_by_user && strikes <= 2;
        let limits = self.limits(track, fault.firmness, fault.kind);
        let said = same.map_or(Said::NOTHING, |known| known.said);
        let rung = match limits.word(count, said.told) {
            _ if alive || is_same_call => Rung::Observe,
            rung if calm => news(rung.min(Rung::Note), said),
            // Every third attempt is worth a word, unless time alone may mend it.
            rung if count.is_multiple_of(3)
                && (track == Track::Spread || fault.firmness != Firmness::Patient) =>
            {
                rung
            }
            rung => news(rung, said),
        };
        let known = Known {
            strikes,
            kind: fault.kind,
            firmness: fault.firmness,
            cause: fault.cause,
            at: standing.tick,
            turn: standing.turn,
            by: self.moment,
            dir: self.sight.dir,
            targets: self.sight.targets.iter().take(LISTED).copied().collect(),
            names: fault.names.iter().take(LISTED).copied().collect(),
            changes: matches!(self.sight.manner, Manner::Changes(_)),
            shell: self.sight.speaker == Speaker::Shell,
            state: self.ending.state,
            said: said.and(rung),
            line: fault.line.clone(),
            rule: fault.rule.clone(),
            attempt: self.sight.label.clone(),
            failures,
            causes,
            proven: fault.proven,
            condition: fault.condition.clone(),
        };
        self.standing.known.put(print, self.standing.tick, known);
        decision(
            rung,
            Reason {
                track,
                count,
                kind: fault.kind,
                rule: fault.rule.clone(),
                line: fault.line.clone(),
                condition: fault.condition.clone(),
                passes: fault.firmness == Firmness::Patient,
            },
        )
    }

    /// The same error from a tool's own insides, whatever it is given.
    fn streak(&mut self, fault: &Fault) -> Decision {
        let tool = self.sight.tool;
        if self.sight.speaker != Speaker::Tool || !fault.opaque || fault.firmness == Firmness::Patient {
            self.standing.agent_mut(self.moment.agent).streaks.remove(tool);
            return Decision::SILENT;
        }
        let limits = self.limits(Track::Opaque, Firmness::Certain, fault.kind);
        let (tick, turn) = (self.standing.tick, self.standing.turn);
        let agent = self.standing.agent_mut(self.moment.agent);
        let answer = self.ending.masked;
        let before = agent.streaks.get(tool).filter(|streak| streak.answer == answer);
        let parallel = before.is_some_and(|streak| streak.by.round.is_shared_with(self.moment.round));
        let length = before.map_or(1, |streak| streak.length + u32::from(!parallel));
        let said = before.map_or(Said::NOTHING, |streak| streak.said);
        let rung = if parallel { Rung::Observe } else { news(limits.word(length, said.told), said) };
        let streak = Streak {
            answer,
            length,
            kind: fault.kind,
            turn,
            by: self.moment,
            said: said.and(rung),
            line: fault.line.clone(),
        };
        agent.streaks.put(tool, tick, streak);
        let reason = Reason {
            track: Track::Opaque,
            count: length,
            kind: fault.kind,
            rule: fault.rule.clone(),
            line: fault.line.clone(),
            condition: Condition::Unseen,
            passes: false,
        };
        decision(rung, reason)
    }

    /// A shell that fails without a word, even where nothing can fail.
    fn silence(&mut self, fault: &Fault) -> Decision {
        // The same command again is counted elsewhere; here it is the variety that tells.
        if self.sight.speaker != Speaker::Shell || self.ending.state == State::Alive || self.is_last_call() {
            return Decision::SILENT;
        }
        let limits = self.limits(Track::Silence, Firmness::Certain, Kind::Unknown);
        let (trivial, bytes) = (u32::from(self.sight.trivial), self.ending.bytes);
        let agent = self.standing.agent_mut(self.moment.agent);
        // Not a word, or each time the same ones: either way the commands did not get as far as to speak.
        let alike = fault.silent || agent.refrain == bytes;
        agent.refrain = bytes;
        if !alike {
            agent.silence = (0, 0);
            agent.silence_said = Said::NOTHING;
        }
        agent.silence = (agent.silence.0 + 1, agent.silence.1 + trivial);
        if agent.silence.1 < 2 {
            return Decision::SILENT;
        }
        let rung = news(limits.word(agent.silence.0, agent.silence_said.told), agent.silence_said);
        agent.silence_said = agent.silence_said.and(rung);
        let reason = Reason { kind: fault.kind, ..plain(Track::Silence, agent.silence.0) };
        decision(rung, reason)
    }

    /// A success clears what was held against the call.
    fn clear(&mut self) {
        let sight = self.sight;
        for print in [sight.exact, sight.intent, sight.approach] {
            self.standing.known.remove(print);
        }
        for root in &sight.roots {
            let tick = self.standing.tick;
            match self.standing.known.get_mut(*root) {
                // What is made now stands in the way of the next one that makes it.
                Some(known) if known.kind == Kind::Conflict && sight.creates => known.at = tick,
                Some(_) => self.standing.known.remove(*root),
                None => {}
            }
        }
        let agent = self.standing.agent_mut(self.moment.agent);
        agent.streaks.remove(sight.tool);
        if sight.speaker == Speaker::Shell {
            agent.silence = (0, 0);
            agent.silence_said = Said::NOTHING;
        }
    }

    /// Moves the world, or counts an answer that stays the same.
    fn answered(&mut self) -> Decision {
        let sight = self.sight;
        let tick = self.standing.tick;
        let repeated = self.is_repeated_answer();
        match sight.manner {
            // The same change with the same answer, call after call, changes nothing any more.
            Manner::Changes(change) if !(repeated && self.is_last_call()) => {
                self.standing.world.change(tick, change, sight);
                self.standing.start_over();
                self.see()
            }
            Manner::Waits => {
                self.standing.world.waited = tick;
                Decision::SILENT
            }
            Manner::Runs if !repeated => {
                self.standing.world.run(tick);
                self.see()
            }
            Manner::Unclear => {
                self.standing.world.stir(tick);
                self.see()
            }
            // What may write can have changed an answer whatever it prints.
            Manner::Changes(_) | Manner::Runs if sight.looks == Looks::MayWrite => {
                self.standing.world.step();
                self.see()
            }
            Manner::Changes(_) | Manner::Looks | Manner::Runs => {
                self.standing.world.look(tick, sight);
                self.see()
            }
        }
    }

    /// The answer to compare: a thing at its end is the same thing a minute later.
    fn answer(&self) -> Print {
        if self.ending.state == State::Ended { self.ending.ageless } else { self.ending.bytes }
    }

    fn is_repeated_answer(&self) -> bool {
        self.standing
            .looks
            .get(self.moment.agent.own(self.sight.exact))
            .is_some_and(|look| look.answer == self.answer())
    }

    /// Is the answer a mere acknowledgement? It does not show what an action did.
    fn is_mute(&self) -> bool {
        look_track(self.sight, self.ending.state) == Track::Act && !self.ending.telling
    }

    fn is_last_call(&self) -> bool {
        self.standing.agent(self.moment.agent).is_some_and(|agent| agent.last == self.sight.exact)
    }

    /// Is this a look at what the agent's last call failed to change? Then it was told to look again.
    fn follows_failed_change(&self) -> bool {
        let last = self.standing.agent(self.moment.agent).map(|agent| agent.last);
        let failed = last.and_then(|last| self.standing.known.get(last)).filter(|known| known.changes);
        failed.is_some_and(|known| known.targets.iter().any(|target| self.sight.targets.contains(target)))
    }

    /// Counts an answer. A call that may write is no question: its answer is only remembered, to know the next one from it.
    fn see(&mut self) -> Decision {
        let (sight, answer) = (self.sight, self.answer());
        if sight.looks != Looks::Known {
            self.standing.agent_mut(self.moment.agent).reruns = 0;
        }
        if sight.looks == Looks::MayWrite {
            let (tick, turn, world) = (self.standing.tick, self.standing.turn, self.standing.world.count);
            let look = Look {
                answer,
                seen: 1,
                at: tick,
                world,
                turn,
                by: self.moment,
                state: self.ending.state,
                said: Said::NOTHING,
            };
            self.standing.looks.put(self.moment.agent.own(sight.exact), tick, look);
            return Decision::SILENT;
        }
        let standing = &*self.standing;
        let world = standing.world.count;
        let place = self.moment.agent.own(sight.exact);
        let before = standing.looks.get(place).filter(|look| {
            let in_view = standing.tick.saturating_sub(look.at) <= preset::view();
            look.answer == answer && look.world == world && look.turn == standing.turn && in_view
        });
        let parallel = before.is_some_and(|look| look.by.round.is_shared_with(self.moment.round));
        let look = Look {
            answer,
            seen: before.map_or(1, |look| look.seen + u32::from(!parallel)),
            at: standing.tick,
            world,
            turn: standing.turn,
            by: self.moment,
            state: self.ending.state,
            said: before.map_or(Said::NOTHING, |look| look.said),
        };
        let mute = self.is_mute();
        let waited =
            before.is_some_and(|look| waited_since(standing, sight, look)) || self.follows_failed_change();
        let quiet = parallel || mute || waited || look.state == State::Alive;
        let track = look_track(sight, look.state);
        let limits = self.limits(track, Firmness::Certain, Kind::NotAnError);
        let word =
            if quiet { Rung::Observe } else { news(limits.word(look.seen, look.said.told), look.said) };
        let seen = look.seen;
        let look = Look { said: look.said.and(word), ..look };
        let alive = look.state == State::Alive;
        self.standing.looks.put(place, self.standing.tick, look);
        let said = decision(word, plain(track, seen));
        if mute || sight.looks != Looks::Known {
            return said;
        }
        let limits = self.limits(Track::Rerun, Firmness::Certain, Kind::NotAnError);
        let agent = self.standing.agent_mut(self.moment.agent);
        agent.reruns = match (parallel, seen >= 2 && !alive && !waited) {
            (true, _) => agent.reruns,
            (false, true) => agent.reruns.saturating_add(1),
            (false, false) => 0,
        };
        if agent.reruns <= 1 {
            agent.reruns_since = self.moment.at;
        }
        let reruns = agent.reruns;
        let Some(look) = self.standing.looks.get_mut(place) else { return said };
        let word = news(limits.word(reruns, look.said.told), look.said);
        look.said = look.said.and(word);
        said.or_stronger(decision(word, plain(Track::Rerun, reruns)))
    }

    /// Counts a run whose output no change has moved.
    fn lap(&mut self, kind: Kind) -> Decision {
        // What went well and has little to say, or says that all is well, stays the same for good reason.
        let well = kind == Kind::NotAnError && (!self.ending.telling || self.ending.green);
        if well {
            self.standing.laps.remove(self.sight.intent);
        }
        if well || !matches!(self.sight.manner, Manner::Runs | Manner::Unclear) || self.is_mute() {
            return Decision::SILENT;
        }
        let limits = self.limits(Track::Lap, Firmness::Certain, kind);
        let standing = &*self.standing;
        let world = standing.world.changes;
        let answer = self.ending.bytes;
        let before = standing.laps.get(self.sight.intent).filter(|lap| lap.answer == answer);
        let laps = before.map_or(1, |lap| lap.laps + u32::from(lap.world != world));
        let moved = before.is_none_or(|lap| lap.world != world);
        let said = before.map_or(Said::NOTHING, |lap| lap.said);
        let rung = if moved { news(limits.word(laps, said.told), said) } else { Rung::Observe };
        let lap = Lap { answer, laps, kind, world, turn: standing.turn, said: said.and(rung) };
        self.standing.laps.put(self.sight.intent, self.standing.tick, lap);
        decision(rung, plain(Track::Lap, laps))
    }

    /// Adds the call to the agent's history, and says so when it goes in circles.
    fn close(&mut self, said: Decision) -> Decision {
        let limits = self.limits(Track::Cycle, Firmness::Certain, Kind::NotAnError);
        let alive = self.ending.state == State::Alive || self.sight.waits;
        // Steps that went well, each of which may write, lead somewhere although they look alike.
        let is_step = self.sight.looks == Looks::MayWrite && self.ending.upshot == Upshot::Fine;
        let answer = if is_step || self.is_mute() { UNSHOWN } else { self.ending.bytes };
        let turn = self.standing.turn;
        let agent = self.standing.agent_mut(self.moment.agent);
        agent.turn = turn;
        agent.remember(self.sight.exact, answer);
        if alive {
            agent.start_over();
        }
        let Some((_, laps)) = cycle_of(&agent.history) else {
            agent.cycle_said = Said::NOTHING;
            return said;
        };
        let rung = news(limits.word(laps, agent.cycle_said.told), agent.cycle_said);
        agent.cycle_said = agent.cycle_said.and(rung);
        said.or_stronger(decision(rung, plain(Track::Cycle, laps)))
    }
}

/// A word that was said before is not said again.
fn news(rung: Rung, said: Said) -> Rung {
    if rung > said.told { rung } else { Rung::Observe }
}

fn decision(rung: Rung, reason: Reason) -> Decision {
    match rung {
        Rung::Observe => Decision::SILENT,
        Rung::Note | Rung::Hint | Rung::Insist | Rung::Deny | Rung::Halt => {
            Decision { rung, reason: Some(reason) }
        }
    }
}
