//! Whatever is published, read, begun and dropped in whatever order: a subscriber hears everything it wants once and in order,
//! or is told how much of it is gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::{Just, ProptestConfig, Strategy, any};
use proptest::{collection, prop_oneof, proptest};
use unstuck_store::{Bookmark, Channel, EventType};

use super::tests::{Shelf, event, next, numbered, poll};
use super::{Delivery, EventBus, Subscription};

/// The most subscribers at once.
const HEARERS: usize = 8;

#[derive(Debug, Clone)]
enum Step {
    /// An event of a type, of one of two sessions, with a number or without.
    Publish {
        kind: EventType,
        session: bool,
        is_numbered: bool,
    },
    /// A subscriber, from a bookmark so far back.
    Subscribe {
        back: Option<u64>,
        only_errors: bool,
        only_session: bool,
    },
    /// So many deliveries to one of the subscribers, if there are so many.
    Read {
        who: usize,
        most: usize,
    },
    Drop {
        who: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![Just(EventType::ToolStart), Just(EventType::ToolError), Just(EventType::Halt),];
    prop_oneof![
        20 => (kind, any::<bool>(), proptest::bool::weighted(0.9))
            .prop_map(|(kind, session, is_numbered)| Step::Publish { kind, session, is_numbered }),
        4 => (proptest::option::of(0..20_u64), any::<bool>(), any::<bool>())
            .prop_map(|(back, only_errors, only_session)| Step::Subscribe { back, only_errors, only_session }),
        8 => (0..HEARERS, 0..12_usize).prop_map(|(who, most)| Step::Read { who, most }),
        1 => (0..HEARERS).prop_map(|who| Step::Drop { who }),
    ]
}

/// An event as the model remembers it.
#[derive(Debug, Clone, Copy)]
struct Told {
    /// The newest number with it, and whether that is its own.
    mark: u64,
    is_numbered: bool,
    kind: EventType,
    session: bool,
}

/// A subscriber, and what it has still to hear of.
struct Hearer {
    subscription: Subscription,
    only_errors: bool,
    only_session: bool,
    /// How many of the events told it has heard of.
    heard: usize,
    /// How many events of the types it wants were gone before it came. It is told of at least so many, first of all.
    came_late_for: u64,
}

impl Hearer {
    /// The places of the events it has still to hear of.
    fn pending(&self, timeline: &[Told]) -> Vec<usize> {
        let is_wanted = |told: &Told| {
            (!self.only_errors || told.kind == EventType::ToolError) && (!self.only_session || told.session)
        };
        (self.heard..timeline.len()).filter(|place| is_wanted(&timeline[*place])).collect()
    }
}

fn name(session: bool) -> &'static str {
    if session { "mine" } else { "other" }
}

/// A bus, and what it should do.
struct World {
    capacity: usize,
    bus: EventBus,
    shelf: Option<Arc<Shelf>>,
    timeline: Vec<Told>,
    hearers: BTreeMap<usize, Hearer>,
    is_closed: bool,
}

impl World {
    fn new(capacity: usize, shelf: Option<Arc<Shelf>>) -> World {
        let bus = match &shelf {
            Some(shelf) => EventBus::with_archive(capacity, Arc::clone(shelf) as _, Bookmark(0)),
            None => EventBus::new(capacity),
        };
        World { capacity, bus, shelf, timeline: Vec::new(), hearers: BTreeMap::new(), is_closed: false }
    }

    /// How many events have fallen out of the ring.
    fn gone(&self) -> usize {
        self.timeline.len().saturating_sub(self.capacity)
    }

    fn publish(&mut self, kind: EventType, session: bool, is_numbered: bool) {
        let event = event(kind, name(session));
        // What has no number is in no archive: that is for other tests.
        let is_numbered = is_numbered || self.shelf.is_some();
        let mark = self.bus.newest().0 + u64::from(is_numbered);
        match &self.shelf {
            Some(shelf) => {
                let event = numbered(mark, event);
                shelf.events.lock().unwrap().push(event.clone());
                self.bus.publish_numbered(event.clone());
                // What was told once is not told again.
                self.bus.publish_numbered(event);
            }
            None if is_numbered => assert_eq!(self.bus.publish(event), Bookmark(mark)),
            None => self.bus.publish_unnumbered(event),
        }
        self.timeline.push(Told { mark, is_numbered, kind, session });
    }

    fn subscribe(&mut self, back: Option<u64>, only_errors: bool, only_session: bool) {
        let Some(free) = (0..HEARERS).find(|who| !self.hearers.contains_key(who)) else { return };
        let mut subscription = self.bus.subscribe(Channel::ALL);
        if only_errors {
            subscription = subscription.types(["tool:error"]);
        }
        if only_session {
            subscription = subscription.session(name(true));
        }
        let (mut heard, mut came_late_for) = (self.timeline.len(), 0);
        if let Some(back) = back {
            let from = self.bus.newest().0.saturating_sub(back);
            subscription = subscription.from(Bookmark(from));
            heard = self.timeline.partition_point(|told| (told.mark, !told.is_numbered) <= (from, false));
            if heard < self.gone() && self.shelf.is_none() {
                let lost = &self.timeline[heard..self.gone()];
                let is_possible = |told: &&Told| !only_errors || told.kind == EventType::ToolError;
                came_late_for = lost.iter().filter(is_possible).count() as u64;
                heard = self.gone();
            }
        }
        let hearer = Hearer { subscription, only_errors, only_session, heard, came_late_for };
        self.hearers.insert(free, hearer);
    }

    fn read(&mut self, who: usize, most: usize) {
        let gone = self.gone();
        let Some(hearer) = self.hearers.get_mut(&who) else { return };
        for _ in 0..most {
            let pending = hearer.pending(&self.timeline);
            if pending.is_empty() && hearer.came_late_for == 0 {
                match self.is_closed {
                    true => assert!(next(&mut hearer.subscription).is_none()),
                    false => assert!(poll(&mut hearer.subscription).is_pending()),
                }
                return;
            }
            match next(&mut hearer.subscription) {
                Some(Delivery::Event(event)) => {
                    assert_eq!(hearer.came_late_for, 0, "the gap is told of first");
                    let told = self.timeline[pending[0]];
                    let bookmark = told.is_numbered.then_some(Bookmark(told.mark));
                    let expected = (bookmark, told.kind.word(), Some(name(told.session)));
                    assert_eq!((event.bookmark(), event.kind(), event.session()), expected);
                    hearer.heard = pending[0] + 1;
                }
                Some(Delivery::Missed(missed)) => {
                    assert!(self.shelf.is_none(), "the archive has it: {missed:?}");
                    let lost = pending.iter().take_while(|place| **place < gone);
                    let lost: Vec<usize> = lost.copied().collect();
                    let at_least = hearer.came_late_for + lost.len() as u64;
                    let at_most = if hearer.came_late_for > 0 { gone as u64 } else { at_least };
                    assert!(
                        (at_least..=at_most).contains(&missed.count),
                        "{missed:?} of {at_least} to {at_most}"
                    );
                    hearer.heard = hearer.heard.max(lost.last().map_or(0, |last| last + 1));
                    hearer.came_late_for = 0;
                }
                None => panic!("it ended, and {pending:?} were not heard"),
            }
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Publish { kind, session, is_numbered } => self.publish(kind, session, is_numbered),
            Step::Subscribe { back, only_errors, only_session } => {
                self.subscribe(back, only_errors, only_session);
            }
            Step::Read { who, most } => self.read(who, most),
            Step::Drop { who } => drop(self.hearers.remove(&who)),
        }
        let (events, subscribers) = self.bus.channels().ring.census();
        assert_eq!(events, self.timeline.len().min(self.capacity));
        assert_eq!(subscribers, self.hearers.len());
    }

    /// Everybody reads everything, and then the end.
    fn end(&mut self) {
        self.bus.close();
        self.is_closed = true;
        (0..HEARERS).for_each(|who| self.read(who, usize::MAX));
    }
}

fn check(capacity: usize, shelf: Option<Arc<Shelf>>, steps: Vec<Step>) {
    let mut world = World::new(capacity, shelf);
    steps.into_iter().for_each(|step| world.step(step));
    world.end();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn everything_is_heard_once_and_in_order_or_told_as_missed(
        capacity in 1..12_usize,
        steps in collection::vec(step(), 0..120),
    ) {
        check(capacity, None, steps);
    }

    #[test]
    fn with_an_archive_everything_is_heard_once_and_in_order(
        capacity in 1..12_usize,
        steps in collection::vec(step(), 0..60),
    ) {
        check(capacity, Some(Arc::default()), steps);
    }
}
