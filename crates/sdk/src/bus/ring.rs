//! One bounded ring that everything published goes through, and the readers, each of which is only a place in it. Replay and
//! what comes later are the same walk along it, so nothing can be lost, doubled or turned round between the two.
//!
//! All of it stands under one lock: a reader that finds nothing leaves its waker under the lock under which the next item
//! comes in, so no wake-up is lost. Nothing foreign (wakers, what falls out) is woken or dropped while the lock is held, because
//! that may come back here. It never waits for a reader, and it knows nothing of what it carries.

use std::collections::{BTreeMap, VecDeque};
use std::sync::PoisonError;
use std::task::Waker;

use super::sync::Mutex;

/// What a reader wants to see.
pub(crate) trait Sieve<T> {
    /// What is kept of items that fell out, for readers who ask for them later. It must not grow with their number.
    type Fallen: Default;

    fn lets_through(&self, item: &T) -> bool;

    /// An item falls out.
    fn note(fallen: &mut Self::Fallen, item: &T, mark: Mark);

    /// How many of those behind a mark it may have wanted, at most: with a number, and without. Where that is none, it did not
    /// want any.
    fn may_have_wanted(&self, fallen: &Self::Fallen, mark: Mark) -> (u64, u64);
}

/// How an item gets its number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Numbering {
    /// It is the next one.
    Next,
    /// Somebody else counts. What is not newer than the newest was here before and is left out.
    Given(u64),
    /// It has none, only its place in the order.
    Loose,
}

/// What a reader lost before it came to read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The last number before.
    pub(crate) after: u64,
    /// The last number within.
    pub(crate) up_to: u64,
    /// How many numbered items that it wanted; of what had fallen out before it began to read, that it may have wanted.
    pub(crate) numbered: u64,
    /// How many items without a number.
    pub(crate) loose: u64,
}

/// What a reader finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// It was handed over.
    Items,
    /// First of all it has to be told of this.
    Gap(Gap),
    /// Nothing yet; it will be woken.
    Nothing,
    /// There will be nothing more.
    End,
}

/// How far the numbers are. Items without a number stand behind the number they follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) number: u64,
    pub(crate) is_loose: bool,
}

impl Mark {
    fn numbered(number: u64) -> Mark {
        Mark { number, is_loose: false }
    }
}

#[derive(Debug)]
struct Slot<T> {
    item: T,
    mark: Mark,
}

#[derive(Debug)]
struct Reader<S> {
    /// The place of what it reads next.
    next: u64,
    /// The last number before that.
    seen: u64,
    gap: Option<Gap>,
    sieve: S,
    /// Whoever has one here sleeps, and stands at the end.
    waker: Option<Waker>,
    is_stopped: bool,
}

impl<S> Reader<S> {
    fn pass(&mut self, mark: Mark) {
        self.next += 1;
        self.seen = mark.number;
    }

    /// What it would have read next is gone.
    fn lose<T>(&mut self, slot: &Slot<T>)
    where
        S: Sieve<T>,
    {
        if self.sieve.lets_through(&slot.item) {
            let (after, up_to) = (self.seen, slot.mark.number);
            let gap = self.gap.get_or_insert(Gap { after, up_to, numbered: 0, loose: 0 });
            gap.up_to = up_to;
            match slot.mark.is_loose {
                true => gap.loose += 1,
                false => gap.numbered += 1,
            }
        }
        self.pass(slot.mark);
    }
}

struct State<T, S: Sieve<T>> {
    slots: VecDeque<Slot<T>>,
    /// The place of the first slot; places are counted without a gap, whatever the numbers do.
    first: u64,
    newest: Mark,
    /// The last that fell out, or what was there before the beginning.
    gone: Mark,
    fallen: S::Fallen,
    /// The number before the first that came in. Of what is older nobody knows anything.
    beginning: u64,
    readers: BTreeMap<u64, Reader<S>>,
    next_reader: u64,
    asleep: usize,
    /// No reader stands before this place.
    slowest: u64,
    is_closed: bool,
}

/// The ring. See above.
pub(crate) struct Ring<T, S: Sieve<T>> {
    capacity: usize,
    state: Mutex<State<T, S>>,
}

impl<T: Clone, S: Sieve<T>> Ring<T, S> {
    /// A ring for so many items, whose numbers go on after `newest`.
    pub(crate) fn new(capacity: usize, newest: u64) -> Ring<T, S> {
        let newest = Mark::numbered(newest);
        Ring {
            capacity: capacity.max(1),
            state: Mutex::new(State {
                slots: VecDeque::new(),
                first: 0,
                newest,
                gone: newest,
                fallen: S::Fallen::default(),
                beginning: newest.number,
                readers: BTreeMap::new(),
                next_reader: 0,
                asleep: 0,
                slowest: u64::MAX,
                is_closed: false,
            }),
        }
    }

    /// Puts in what is made for its number, and returns the newest number. After the end nothing comes in any more.
    pub(crate) fn push(&self, numbering: Numbering, make: impl FnOnce(Option<u64>) -> T) -> u64 {
        let mut state = self.lock();
        let newest = state.newest.number;
        let mark = match numbering {
            _ if state.is_closed => return newest,
            Numbering::Given(number) if number <= newest => return newest,
            Numbering::Given(number) => Mark::numbered(number),
            Numbering::Next => Mark::numbered(newest + 1),
            Numbering::Loose => Mark { number: newest, is_loose: true },
        };
        let item = make((!mark.is_loose).then_some(mark.number));
        let fallen_out = state.make_room(self.capacity);
        let woken = state.append(Slot { item, mark });
        drop(state);
        drop(fallen_out);
        woken.into_iter().for_each(Waker::wake);
        mark.number
    }

    /// Goes on after a number without what came up to it, as if that had fallen out before anybody knew of it. Says whether it
    /// did: not where somebody reads.
    pub(crate) fn skip_to(&self, number: u64) -> bool {
        let mut state = self.lock();
        if !state.readers.is_empty() || state.is_closed {
            return false;
        }
        let fallen_out = std::mem::take(&mut state.slots);
        state.first += fallen_out.len() as u64;
        let newest = state.newest.number.max(number);
        (state.newest, state.gone, state.beginning) =
            (Mark::numbered(newest), Mark::numbered(newest), newest);
        drop(state);
        drop(fallen_out);
        true
    }

    /// A new reader, of what comes from now on.
    pub(crate) fn join(&self, sieve: S) -> u64 {
        let mut state = self.lock();
        let (name, next, seen) = (state.next_reader, state.end(), state.newest.number);
        state.next_reader += 1;
        state.slowest = state.slowest.min(next);
        state.readers.insert(name, Reader { next, seen, gap: None, sieve, waker: None, is_stopped: false });
        name
    }

    /// Sets a reader to what follows a number, as far as that is still here. Behind the newest there is nothing yet.
    pub(crate) fn rewind(&self, name: u64, number: u64) {
        let mut state = self.lock();
        let woken = state.rewind(name, number);
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// What a reader wants to see from now on, and of what it has still to be told.
    pub(crate) fn set_sieve(&self, name: u64, sieve: S) {
        let mut state = self.lock();
        let Some(reader) = state.readers.get_mut(&name) else { return };
        reader.sieve = sieve;
        let woken = reader.gap.and_then(|gap| state.rewind(name, gap.after));
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Hands a reader what it has not seen yet, at most so much of it.
    pub(crate) fn poll(&self, name: u64, waker: &Waker, most: usize, into: &mut VecDeque<T>) -> Found {
        let mut state = self.lock();
        let State { slots, first, readers, asleep, is_closed, .. } = &mut *state;
        let Some(reader) = readers.get_mut(&name).filter(|reader| !reader.is_stopped) else {
            return Found::End;
        };
        if let Some(gap) = reader.gap.take() {
            return Found::Gap(gap);
        }
        let unread = usize::try_from(reader.next - *first).unwrap_or(usize::MAX).min(slots.len());
        let most = into.len() + most;
        let mut found = Found::Nothing;
        for slot in slots.range(unread..) {
            if into.len() >= most {
                break;
            }
            reader.pass(slot.mark);
            if reader.sieve.lets_through(&slot.item) {
                into.push_back(slot.item.clone());
                found = Found::Items;
            }
        }
        if found == Found::Items {
            return found;
        }
        if *is_closed {
            return Found::End;
        }
        let outdated = match &reader.waker {
            Some(known) if known.will_wake(waker) => None,
            Some(_) => reader.waker.replace(waker.clone()),
            None => {
                *asleep += 1;
                reader.waker.replace(waker.clone())
            }
        };
        drop(state);
        drop(outdated);
        Found::Nothing
    }

    /// The end for one reader, at once.
    pub(crate) fn stop(&self, name: u64) {
        let mut state = self.lock();
        let State { readers, asleep, .. } = &mut *state;
        let Some(reader) = readers.get_mut(&name) else { return };
        reader.is_stopped = true;
        let woken = reader.waker.take();
        *asleep -= usize::from(woken.is_some());
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// A reader is gone.
    pub(crate) fn leave(&self, name: u64) {
        let mut state = self.lock();
        let gone = state.readers.remove(&name);
        state.asleep -= usize::from(gone.as_ref().is_some_and(|reader| reader.waker.is_some()));
        drop(state);
        drop(gone);
    }

    /// Nothing comes in any more. Readers get what is there, then the end.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.asleep = 0;
        let woken: Vec<Waker> = state.readers.values_mut().filter_map(|reader| reader.waker.take()).collect();
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// The newest number.
    pub(crate) fn newest(&self) -> u64 {
        self.lock().newest.number
    }

    /// How many items and how many readers there are.
    pub(crate) fn census(&self) -> (usize, usize) {
        let state = self.lock();
        (state.slots.len(), state.readers.len())
    }

    fn lock(&self) -> impl std::ops::DerefMut<Target = State<T, S>> + '_ {
        // Whatever panicked while it held the lock had moved one reader or one item at most.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, S: Sieve<T>> State<T, S> {
    fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Sets a reader to what follows a number, and returns its waker if it slept.
    fn rewind(&mut self, name: u64, number: u64) -> Option<Waker> {
        let reader = self.readers.get_mut(&name)?;
        let mark = if number > self.newest.number { self.newest } else { Mark::numbered(number) };
        reader.next = self.first + self.slots.partition_point(|slot| slot.mark <= mark) as u64;
        reader.seen = mark.number.max(self.gone.number);
        let (known, loose) = reader.sieve.may_have_wanted(&self.fallen, mark);
        let unknown = self.beginning.saturating_sub(mark.number);
        let (after, up_to) = (mark.number, self.gone.number);
        let numbered = (unknown + known).min(up_to.saturating_sub(after));
        reader.gap = (numbered + loose > 0).then_some(Gap { after, up_to, numbered, loose });
        self.slowest = self.slowest.min(reader.next);
        let waker = reader.waker.take();
        self.asleep -= usize::from(waker.is_some());
        waker
    }

    /// Lets the oldest fall out of a ring that is full, and returns it.
    fn make_room(&mut self, capacity: usize) -> Option<Slot<T>> {
        if self.slots.len() < capacity {
            return None;
        }
        let slot = self.slots.pop_front()?;
        if self.slowest <= self.first {
            let mut slowest = u64::MAX;
            for reader in self.readers.values_mut() {
                if reader.next == self.first {
                    reader.lose(&slot);
                }
                slowest = slowest.min(reader.next);
            }
            self.slowest = slowest;
        }
        S::note(&mut self.fallen, &slot.item, slot.mark);
        self.first += 1;
        self.gone = slot.mark;
        Some(slot)
    }

    /// Whoever sleeps and wants it is returned, to be woken; whoever sleeps and does not want it goes past it asleep.
    fn append(&mut self, slot: Slot<T>) -> Vec<Waker> {
        let mut woken = Vec::new();
        if self.asleep > 0 {
            for reader in self.readers.values_mut().filter(|reader| reader.waker.is_some()) {
                match reader.sieve.lets_through(&slot.item) {
                    true => woken.extend(reader.waker.take()),
                    false => reader.pass(slot.mark),
                }
            }
            self.asleep -= woken.len();
        }
        self.newest = slot.mark;
        self.slots.push_back(slot);
        woken
    }
}
