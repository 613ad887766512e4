//! Things leave in the order in which they came, although some of them have to be looked at first: whoever needs time reserves a
//! place, and what comes later waits behind it, but never for long.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So long, and at most twice as long, a reserved place holds up what comes after it. Whoever needs longer has lost its turn, not
/// its say.
const TURN: Duration = Duration::from_millis(100);

/// A queue with places that are reserved. All clones are the same one.
pub(super) struct Lane<T>(Arc<Inner<T>>);

struct Inner<T> {
    queue: Mutex<Queue<T>>,
    /// Where things go. It is called in order and never by two at once, so it must not block and not come back here.
    way_out: Box<dyn Fn(T) + Send + Sync>,
}

struct Queue<T> {
    /// Nothing stands for a place that is reserved.
    waiting: VecDeque<(u64, Option<T>)>,
    next: u64,
    /// Somebody looks that nobody holds up the others.
    is_watched: bool,
}

/// A reserved place. Whoever drops it gives it up.
pub(super) struct Place<T> {
    lane: Lane<T>,
    number: u64,
}

impl<T> Clone for Lane<T> {
    fn clone(&self) -> Lane<T> {
        Lane(Arc::clone(&self.0))
    }
}

impl<T: Send + 'static> Lane<T> {
    pub(super) fn new(way_out: impl Fn(T) + Send + Sync + 'static) -> Lane<T> {
        let queue = Mutex::new(Queue { waiting: VecDeque::new(), next: 0, is_watched: false });
        Lane(Arc::new(Inner { queue, way_out: Box::new(way_out) }))
    }

    /// Takes something to its place behind all that came before.
    pub(super) fn push(&self, thing: impl Into<T>) {
        let thing = thing.into();
        let mut queue = self.lock();
        if queue.waiting.is_empty() {
            (self.0.way_out)(thing);
            return;
        }
        let number = queue.take_number();
        queue.waiting.push_back((number, Some(thing)));
    }

    /// Reserves the next place, for a short while.
    pub(super) fn reserve(&self) -> Place<T> {
        let mut queue = self.lock();
        let number = queue.take_number();
        queue.waiting.push_back((number, None));
        if !std::mem::replace(&mut queue.is_watched, true) {
            tokio::spawn(self.clone().watch());
        }
        Place { lane: self.clone(), number }
    }

    /// Looks, as long as anything waits, that whoever is first does not stay so.
    async fn watch(self) {
        let mut first = None;
        loop {
            tokio::time::sleep(TURN).await;
            if let Some(number) = first {
                // Nothing happens to a place that was filled, or that is gone.
                self.settle(number, None);
            }
            let mut queue = self.lock();
            first = queue.waiting.front().map(|(number, _)| *number);
            if first.is_none() {
                queue.is_watched = false;
                return;
            }
        }
    }
}

impl<T> Lane<T> {
    /// Fills a place, or gives it up. What has lost its turn goes at once.
    fn settle(&self, number: u64, thing: Option<T>) {
        let mut queue = self.lock();
        let place = queue.waiting.binary_search_by_key(&number, |(number, _)| *number);
        match (place, thing) {
            (Ok(place), Some(thing)) => queue.waiting[place].1 = Some(thing),
            (Ok(place), None) if queue.waiting[place].1.is_none() => drop(queue.waiting.remove(place)),
            (Err(_), Some(thing)) => (self.0.way_out)(thing),
            (Ok(_) | Err(_), None) => {}
        }
        while let Some((_, Some(_))) = queue.waiting.front() {
            if let Some((_, Some(thing))) = queue.waiting.pop_front() {
                (self.0.way_out)(thing);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<T>> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Queue<T> {
    fn take_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl<T> Place<T> {
    /// Puts something there.
    pub(super) fn fill(self, thing: impl Into<T>) {
        self.lane.settle(self.number, Some(thing.into()));
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        self.lane.settle(self.number, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane() -> (Lane<&'static str>, Arc<Mutex<Vec<&'static str>>>) {
        let out = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&out);
        (Lane::new(move |thing| seen.lock().unwrap().push(thing)), out)
    }

    #[tokio::test]
    async fn what_comes_later_waits_behind_a_reserved_place() {
        let (lane, out) = lane();
        lane.push("a");
        let b = lane.reserve();
        let c = lane.reserve();
        lane.push("d");
        c.fill("c");
        assert_eq!(*out.lock().unwrap(), ["a"]);
        b.fill("b");
        assert_eq!(*out.lock().unwrap(), ["a", "b", "c", "d"]);
        lane.push("e");
        assert_eq!(out.lock().unwrap().len(), 5);
    }

    #[tokio::test]
    async fn a_place_that_is_given_up_holds_up_nobody() {
        let (lane, out) = lane();
        let a = lane.reserve();
        lane.push("b");
        drop(a);
        assert_eq!(*out.lock().unwrap(), ["b"]);
    }

    #[tokio::test]
    async fn whoever_takes_too_long_loses_the_turn_and_not_the_say() {
        let (lane, out) = lane();
        let a = lane.reserve();
        lane.push("b");
        tokio::time::sleep(TURN * 3).await;
        assert_eq!(*out.lock().unwrap(), ["b"]);
        a.fill("a");
        assert_eq!(*out.lock().unwrap(), ["b", "a"]);
    }
}
