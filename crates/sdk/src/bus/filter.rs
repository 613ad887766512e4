//! Which events a subscriber wants. It is asked under the lock of the ring, so it only compares.

use std::sync::Arc;

use unstuck_store::{Bookmark, Channel, EventType};

use super::event::{Event, EventKind};
use super::ring::{Mark, Sieve};

/// How many types of event this version knows.
const TYPES: usize = EventType::ALL.len();

const _: () = assert!(TYPES <= 64, "the types of event no longer fit into one word of bits");

/// Which events are wanted.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    /// One bit for each channel.
    channels: u8,
    types: Types,
    session: Option<Arc<str>>,
    /// What has a number up to this one was seen.
    after: Bookmark,
}

#[derive(Debug, Clone)]
enum Types {
    Every,
    /// One bit for each type this version knows; the patterns are for those it does not.
    Some {
        known: u64,
        patterns: Arc<[Box<str>]>,
    },
}

impl Filter {
    pub(crate) fn channels(channels: impl IntoIterator<Item = Channel>) -> Filter {
        let channels = channels.into_iter().fold(0, |bits, channel| bits | 1 << channel as u8);
        Filter { channels, types: Types::Every, session: None, after: Bookmark(0) }
    }

    pub(crate) fn set_types<P: AsRef<str>>(&mut self, patterns: impl IntoIterator<Item = P>) {
        let patterns: Arc<[Box<str>]> = patterns.into_iter().map(|pattern| pattern.as_ref().into()).collect();
        let is_wanted = |kind: &str| patterns.iter().any(|pattern| fits(pattern, kind));
        let known = EventType::ALL
            .iter()
            .filter(|kind| is_wanted(kind.word()))
            .fold(0, |bits, kind| bits | 1 << *kind as u64);
        self.types = Types::Some { known, patterns };
    }

    pub(crate) fn set_session(&mut self, session: &str) {
        self.session = Some(session.into());
    }

    pub(crate) fn set_after(&mut self, after: Bookmark) {
        self.after = after;
    }

    pub(crate) fn wants(&self, event: &Event) -> bool {
        let is_of_type = match (event.event_kind(), &self.types) {
            (EventKind::Known(kind), _) => self.wants_type(*kind),
            (EventKind::Foreign { .. }, Types::Every) => self.wants_channel(event.channel()),
            (EventKind::Foreign { kind, .. }, Types::Some { patterns, .. }) => {
                self.wants_channel(event.channel()) && patterns.iter().any(|pattern| fits(pattern, kind))
            }
        };
        is_of_type
            && self.session.as_deref().is_none_or(|session| event.session() == Some(session))
            && event.bookmark().is_none_or(|bookmark| bookmark > self.after)
    }

    fn wants_channel(&self, channel: Channel) -> bool {
        self.channels & (1 << channel as u8) != 0
    }

    fn wants_type(&self, kind: EventType) -> bool {
        let is_named = match &self.types {
            Types::Every => true,
            Types::Some { known, .. } => known & (1 << kind as u64) != 0,
        };
        is_named && self.wants_channel(kind.channel())
    }
}

/// What is known of the events of one type that fell out of the ring.
#[derive(Debug, Clone, Copy, Default)]
struct Fall {
    count: u64,
    last: u64,
}

/// The events that fell out of the ring, by type: those with a number and those without. The last place is for the types that
/// only a newer version knows.
#[derive(Debug)]
pub(crate) struct Fallen {
    numbered: [Fall; TYPES + 1],
    loose: [Fall; TYPES + 1],
}

impl Default for Fallen {
    fn default() -> Fallen {
        Fallen { numbered: [Fall::default(); TYPES + 1], loose: [Fall::default(); TYPES + 1] }
    }
}

impl Sieve<Arc<Event>> for Filter {
    type Fallen = Fallen;

    fn note(fallen: &mut Fallen, event: &Arc<Event>, mark: Mark) {
        let place = match event.event_kind() {
            EventKind::Known(kind) => *kind as usize,
            EventKind::Foreign { .. } => TYPES,
        };
        let falls = if mark.is_loose { &mut fallen.loose } else { &mut fallen.numbered };
        falls[place] = Fall { count: falls[place].count + 1, last: mark.number };
    }

    fn may_have_wanted(&self, fallen: &Fallen, mark: Mark) -> (u64, u64) {
        let foreign = [(TYPES, true)];
        let known = EventType::ALL.iter().map(|kind| (*kind as usize, self.wants_type(*kind)));
        let wanted = known.chain(foreign).filter(|(_, is_wanted)| *is_wanted);
        wanted.fold((0, 0), |(numbered, loose), (place, _)| {
            let (number, stray) = (fallen.numbered[place], fallen.loose[place]);
            // What has no number stands behind the number it followed.
            let is_behind = stray.count > 0 && Mark { number: stray.last, is_loose: true } > mark;
            (
                numbered + number.count.min(number.last.saturating_sub(mark.number)),
                loose + if is_behind { stray.count } else { 0 },
            )
        })
    }

    fn lets_through(&self, event: &Arc<Event>) -> bool {
        self.wants(event)
    }
}

/// `tool:error`, or a beginning with a star behind it: `tool:*`, `*`.
fn fits(pattern: &str, kind: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => kind.starts_with(beginning),
        None => kind == pattern,
    }
}
