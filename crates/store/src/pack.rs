//! Values of the ladder as short runs of bytes: what a row of the standing and a line of the spool hold.
//!
//! Numbers are written in as few bytes as they need, words of the vocabulary as words, so that a new word in the middle of
//! a list changes nothing that was stored. What cannot be read back is `None`, never a guess.

use std::collections::BTreeMap;

use unstuck_judge::ladder::{
    Agent, Change, Dir, Ending, Fault, Firmness, Known, Lap, Look, Manner, Moment, Print, Round, Rung, Said,
    Sight, Speaker, State, Streak, Upshot, World,
};
use unstuck_judge::nature::Looks;
use unstuck_judge::retry::{Breaker, Budget, HostBudget, PastYield, Recent, Tally};
use unstuck_judge::{Condition, Kind};

/// Goes up whenever a value is written in another way; what was written before is then read as nothing.
const FORMAT: u8 = 2;

/// The bytes of a value, behind the number of their format.
pub(crate) fn packed(value: &impl Pack) -> Vec<u8> {
    let mut bytes = vec![FORMAT];
    value.pack(&mut bytes);
    bytes
}

/// The value that was written, if all of it can be read.
pub(crate) fn unpacked<T: Pack>(bytes: &[u8]) -> Option<T> {
    let (format, mut rest) = bytes.split_first()?;
    let value = T::unpack(&mut rest)?;
    (*format == FORMAT && rest.is_empty()).then_some(value)
}

/// A value that can be written as bytes and read back.
pub(crate) trait Pack: Sized {
    fn pack(&self, into: &mut Vec<u8>);
    fn unpack(from: &mut &[u8]) -> Option<Self>;
}

impl Pack for u64 {
    fn pack(&self, into: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            into.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        into.push(rest as u8);
    }

    fn unpack(from: &mut &[u8]) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = from.split_first()?;
            *from = rest;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if *byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

impl Pack for bool {
    fn pack(&self, into: &mut Vec<u8>) {
        into.push(u8::from(*self));
    }

    fn unpack(from: &mut &[u8]) -> Option<bool> {
        match u64::unpack(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Pack for String {
    fn pack(&self, into: &mut Vec<u8>) {
        (self.len() as u64).pack(into);
        into.extend_from_slice(self.as_bytes());
    }

    fn unpack(from: &mut &[u8]) -> Option<String> {
        let length = usize::try_from(u64::unpack(from)?).ok()?;
        let (text, rest) = from.split_at_checked(length)?;
        *from = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

impl<T: Pack> Pack for Vec<T> {
    fn pack(&self, into: &mut Vec<u8>) {
        (self.len() as u64).pack(into);
        self.iter().for_each(|item| item.pack(into));
    }

    fn unpack(from: &mut &[u8]) -> Option<Vec<T>> {
        let length = u64::unpack(from)?;
        // A length that cannot be true must not reserve memory.
        (length <= from.len() as u64).then(|| (0..length).map(|_| T::unpack(from)).collect())?
    }
}

impl<A: Pack, B: Pack> Pack for (A, B) {
    fn pack(&self, into: &mut Vec<u8>) {
        self.0.pack(into);
        self.1.pack(into);
    }

    fn unpack(from: &mut &[u8]) -> Option<(A, B)> {
        Some((A::unpack(from)?, B::unpack(from)?))
    }
}

/// A print has no small values, so it is written as it is.
impl Pack for Print {
    fn pack(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(&self.0.to_le_bytes());
    }

    fn unpack(from: &mut &[u8]) -> Option<Print> {
        let (bytes, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(Print(u64::from_le_bytes(*bytes)))
    }
}

/// Words of the vocabulary.
macro_rules! words {
    ($($name:ident)*) => {$(
        impl Pack for $name {
            fn pack(&self, into: &mut Vec<u8>) {
                self.word().to_owned().pack(into);
            }

            fn unpack(from: &mut &[u8]) -> Option<$name> {
                String::unpack(from)?.parse().ok()
            }
        }
    )*};
}
words! { Kind Rung Change }

/// Enums without a vocabulary of their own: one number for each variant, then its content.
macro_rules! variants {
    ($($name:ident { $($number:literal = $variant:ident $(($inner:ident))?,)* })*) => {$(
        impl Pack for $name {
            fn pack(&self, into: &mut Vec<u8>) {
                match self {
                    $($name::$variant $(($inner))? => {
                        into.push($number);
                        $($inner.pack(into);)?
                    })*
                }
            }

            fn unpack(from: &mut &[u8]) -> Option<$name> {
                match u64::unpack(from)? {
                    $($number => Some($name::$variant $(({ let $inner = Pack::unpack(from)?; $inner }))?),)*
                    _ => None,
                }
            }
        }
    )*};
}
variants! {
    Manner { 0 = Looks, 1 = Changes(change), 2 = Runs, 3 = Waits, 4 = Unclear, }
    Speaker { 0 = Shell, 1 = Tool, }
    Dir { 0 = Unsaid, 1 = Named(print), }
    State { 0 = Alive, 1 = Ended, 2 = Unsaid, }
    Firmness { 0 = Patient, 1 = Likely, 2 = Certain, 3 = Unsure, }
    Upshot { 0 = Fine, 1 = Failed(fault), 2 = OurDenial, }
    Round { 0 = Unsaid, 1 = Numbered(number), }
    Condition {
        0 = Unseen, 1 = NoProgram(name), 2 = NoPath(path), 3 = PathTaken(path), 4 = PortClosed(port), 5 = PortTaken(port),
        6 = SameFiles(names), 7 = SamePackages(names), 8 = SameNamed,
    }
}

/// Structs, field by field.
macro_rules! fields {
    ($($name:ident { $($field:ident)* })*) => {$(
        impl Pack for $name {
            fn pack(&self, into: &mut Vec<u8>) {
                let $name { $($field),* } = self;
                $($field.pack(into);)*
            }

            fn unpack(from: &mut &[u8]) -> Option<$name> {
                $(let $field = Pack::unpack(from)?;)*
                Some($name { $($field),* })
            }
        }
    )*};
}
fields! {
    Moment { agent round at }
    Said { told denials }
    Known {
        strikes kind firmness cause at turn by dir targets names changes shell state said line rule attempt failures causes proven
        condition
    }
    Look { answer seen at world turn by state said }
    Lap { answer laps kind world turn said }
    Streak { answer length kind turn by said line }
    Sight {
        label tool_name tool exact intent approach roots manner speaker dir targets names creates polls waits trivial looks
    }
    Fault { line rule kind firmness cause roots names silent opaque proven condition }
    Ending { upshot bytes masked ageless telling green state }
    Budget { tokens }
    HostBudget { spent at }
    Head { tick turn count changes last recent stirred waited }
}

/// How sure it is that a call only looks. It stands last, and what was written before anybody wrote it down has none: of such a call
/// nothing is known.
impl Pack for Looks {
    fn pack(&self, into: &mut Vec<u8>) {
        self.word().to_owned().pack(into);
    }

    fn unpack(from: &mut &[u8]) -> Option<Looks> {
        match from.is_empty() {
            true => Some(Looks::MayWrite),
            false => String::unpack(from)?.parse().ok(),
        }
    }
}

/// Small numbers.
macro_rules! narrow {
    ($($name:ident)*) => {$(
        impl Pack for $name {
            fn pack(&self, into: &mut Vec<u8>) {
                u64::from(*self).pack(into);
            }

            fn unpack(from: &mut &[u8]) -> Option<$name> {
                u64::unpack(from)?.try_into().ok()
            }
        }
    )*};
}
narrow! { u32 u16 u8 }

/// A breaker, by where it stands.
impl Pack for Breaker {
    fn pack(&self, into: &mut Vec<u8>) {
        match *self {
            Breaker::Closed { recent } => (0_u8, (recent.failed, recent.seen)).pack(into),
            Breaker::Open { since, trips } => (1_u8, (since, trips)).pack(into),
            Breaker::HalfOpen { since, trips } => (2_u8, (since, trips)).pack(into),
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Breaker> {
        Some(match u8::unpack(from)? {
            0 => {
                let (failed, seen) = Pack::unpack(from)?;
                Breaker::Closed { recent: Recent { failed, seen } }
            }
            1 => {
                let (since, trips) = Pack::unpack(from)?;
                Breaker::Open { since, trips }
            }
            2 => {
                let (since, trips) = Pack::unpack(from)?;
                Breaker::HalfOpen { since, trips }
            }
            _ => return None,
        })
    }
}

/// Past yield, count by count.
impl Pack for PastYield {
    fn pack(&self, into: &mut Vec<u8>) {
        self.at.pack(into);
        self.tallies.iter().for_each(|tally| (tally.tried, tally.worked).pack(into));
    }

    fn unpack(from: &mut &[u8]) -> Option<PastYield> {
        let mut past = PastYield { at: Pack::unpack(from)?, ..PastYield::NONE };
        for tally in &mut past.tallies {
            let (tried, worked) = Pack::unpack(from)?;
            *tally = Tally { tried, worked };
        }
        Some(past)
    }
}

/// An agent, with its streaks; how many of those it keeps is the ladder's business.
impl Pack for Agent {
    fn pack(&self, into: &mut Vec<u8>) {
        let Agent {
            last,
            turn,
            silence,
            refrain,
            silence_said,
            reruns,
            reruns_since,
            denied,
            history,
            cycle_said,
            streaks,
        } = self;
        (*last, (*turn, *silence)).pack(into);
        (*refrain, (*silence_said, ((*reruns, *reruns_since), *denied))).pack(into);
        history.pack(into);
        cycle_said.pack(into);
        (streaks.items.len() as u64).pack(into);
        for (print, (tick, streak)) in &streaks.items {
            (*print, *tick).pack(into);
            streak.pack(into);
        }
    }

    fn unpack(from: &mut &[u8]) -> Option<Agent> {
        let (last, (turn, silence)) = Pack::unpack(from)?;
        let (refrain, (silence_said, ((reruns, reruns_since), denied))) = Pack::unpack(from)?;
        let history = Pack::unpack(from)?;
        let cycle_said = Pack::unpack(from)?;
        let mut agent = Agent {
            last,
            turn,
            silence,
            refrain,
            silence_said,
            reruns,
            reruns_since,
            denied,
            history,
            cycle_said,
            ..Agent::default()
        };
        for _ in 0..u64::unpack(from)? {
            let ((print, tick), streak) = Pack::unpack(from)?;
            agent.streaks.put(print, tick, streak);
        }
        Some(agent)
    }
}

/// What a session's standing has only one of.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Head {
    pub(crate) tick: u32,
    pub(crate) turn: u32,
    pub(crate) count: u32,
    pub(crate) changes: u32,
    pub(crate) last: BTreeMap<Change, u32>,
    pub(crate) recent: Vec<(u32, Vec<Print>)>,
    pub(crate) stirred: u32,
    pub(crate) waited: u32,
}

impl Head {
    pub(crate) fn of(tick: u32, turn: u32, world: &World) -> Head {
        Head {
            tick,
            turn,
            count: world.count,
            changes: world.changes,
            last: Change::ALL.iter().map(|change| (*change, world.last[*change as usize])).collect(),
            recent: world.recent.clone(),
            stirred: world.stirred,
            waited: world.waited,
        }
    }

    /// Puts the world's own part back.
    pub(crate) fn restore(&self, world: &mut World) {
        world.count = self.count;
        world.changes = self.changes;
        for (change, tick) in &self.last {
            world.last[*change as usize] = *tick;
        }
        world.recent = self.recent.clone();
        world.stirred = self.stirred;
        world.waited = self.waited;
    }
}

/// Sorts of change by their words, so that a new one finds its place.
impl Pack for BTreeMap<Change, u32> {
    fn pack(&self, into: &mut Vec<u8>) {
        self.iter().map(|(change, tick)| (*change, *tick)).collect::<Vec<_>>().pack(into);
    }

    fn unpack(from: &mut &[u8]) -> Option<BTreeMap<Change, u32>> {
        Some(Vec::unpack(from)?.into_iter().collect())
    }
}
