//! The ring of the event bus under a model checker: every way in which the threads can meet is tried. A wake-up that is lost
//! shows as a deadlock.

use std::collections::VecDeque;
use std::task::{Wake, Waker};

use loom::sync::Arc;
use loom::thread::{self, Thread};
use ring::{Found, Gap, Mark, Numbering, Sieve};

mod sync {
    pub(crate) use loom::sync::Mutex;
}

#[path = "../src/bus/ring.rs"]
mod ring;

type Ring = ring::Ring<u64, Wanted>;

#[derive(Debug, Clone, Copy)]
enum Wanted {
    All,
    Even,
}

impl Sieve<u64> for Wanted {
    /// The last number.
    type Fallen = u64;

    fn note(fallen: &mut u64, _item: &u64, mark: Mark) {
        *fallen = mark.number;
    }

    fn may_have_wanted(&self, fallen: &u64, mark: Mark) -> (u64, u64) {
        (fallen.saturating_sub(mark.number), 0)
    }

    fn lets_through(&self, item: &u64) -> bool {
        match self {
            Wanted::All => true,
            Wanted::Even => item.is_multiple_of(2),
        }
    }
}

/// What a reader got, in order.
#[derive(Debug, PartialEq, Eq)]
enum Got {
    Item(u64),
    Gap { count: u64, up_to: u64 },
}

/// Tries the ways in which the threads of `model` can meet.
fn check(capacity: usize, model: impl Fn(Arc<Ring>) + Sync + Send + 'static) {
    loom::model(move || model(Arc::new(Ring::new(capacity, 0))));
}

fn push(ring: &Ring) -> u64 {
    ring.push(Numbering::Next, |number| number.expect("the ring counts"))
}

/// Wakes a thread of the model.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }
}

/// Reads, asleep while there is nothing, until it has heard of `wanted` items or of the end.
fn read(ring: &Ring, reader: u64, wanted: u64) -> Vec<Got> {
    let waker = Waker::from(std::sync::Arc::new(Unpark(thread::current())));
    let (mut got, mut heard) = (Vec::new(), 0);
    while heard < wanted {
        let mut items = VecDeque::new();
        match ring.poll(reader, &waker, 2, &mut items) {
            Found::Items => {
                heard += items.len() as u64;
                got.extend(items.into_iter().map(Got::Item));
            }
            Found::Gap(Gap { numbered, up_to, .. }) => {
                heard += numbered;
                got.push(Got::Gap { count: numbered, up_to });
            }
            Found::Nothing => thread::park(),
            Found::End => break,
        }
    }
    got
}

/// What was got and what was lost is everything up to a number, in order and once.
fn assert_all(got: Vec<Got>, last: u64) {
    let heard = got.into_iter().fold(0, |before, got| match got {
        Got::Item(number) => {
            assert_eq!(number, before + 1);
            number
        }
        Got::Gap { count, up_to } => {
            assert_eq!(up_to, before + count);
            up_to
        }
    });
    assert_eq!(heard, last);
}

#[test]
fn a_reader_that_goes_to_sleep_while_something_is_published_is_woken() {
    check(8, |ring| {
        let reader = ring.join(Wanted::All);
        let publisher = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                push(&ring);
                push(&ring);
            }
        });
        assert_eq!(read(&ring, reader, 2), [Got::Item(1), Got::Item(2)]);
        publisher.join().unwrap();
    });
}

#[test]
fn two_publishers_are_heard_in_the_order_of_their_numbers() {
    check(8, |ring| {
        let reader = ring.join(Wanted::All);
        let publishers = [(); 2].map(|()| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || push(&ring))
        });
        assert_eq!(read(&ring, reader, 2), [Got::Item(1), Got::Item(2)]);
        let mut numbers = publishers.map(|publisher| publisher.join().unwrap());
        numbers.sort_unstable();
        assert_eq!((numbers, ring.newest()), ([1, 2], 2));
    });
}

#[test]
fn what_is_published_while_a_reader_begins_at_a_bookmark_is_read_once() {
    check(8, |ring| {
        push(&ring);
        let publisher = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                push(&ring);
                push(&ring);
            }
        });
        let reader = ring.join(Wanted::All);
        ring.rewind(reader, 1);
        assert_eq!(read(&ring, reader, 2), [Got::Item(2), Got::Item(3)]);
        publisher.join().unwrap();
    });
}

#[test]
fn a_reader_gets_what_is_there_and_then_the_end() {
    check(8, |ring| {
        let reader = ring.join(Wanted::All);
        let publisher = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                push(&ring);
                ring.close();
                push(&ring);
            }
        });
        assert_eq!(read(&ring, reader, u64::MAX), [Got::Item(1)]);
        publisher.join().unwrap();
    });
}

#[test]
fn what_a_slow_reader_lost_and_what_it_got_make_up_everything_in_order() {
    check(1, |ring| {
        let reader = ring.join(Wanted::All);
        let publisher = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                for _ in 0..3 {
                    push(&ring);
                }
            }
        });
        assert_all(read(&ring, reader, 3), 3);
        publisher.join().unwrap();
    });
}

#[test]
fn a_reader_that_comes_late_while_others_publish_hears_of_everything_once() {
    check(1, |ring| {
        push(&ring);
        let publishers = [(); 2].map(|()| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || push(&ring))
        });
        let reader = ring.join(Wanted::All);
        ring.rewind(reader, 0);
        assert_all(read(&ring, reader, 3), 3);
        publishers.into_iter().for_each(|publisher| assert!(publisher.join().is_ok()));
    });
}

#[test]
fn what_a_reader_does_not_want_is_no_gap_and_wakes_nobody_for_nothing() {
    check(1, |ring| {
        let reader = ring.join(Wanted::All);
        ring.set_sieve(reader, Wanted::Even);
        let publisher = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                push(&ring);
                push(&ring);
            }
        });
        assert_eq!(read(&ring, reader, 1), [Got::Item(2)]);
        publisher.join().unwrap();
    });
}

#[test]
fn what_is_skipped_while_a_reader_comes_is_a_gap_and_what_it_came_in_time_for_is_not_skipped() {
    check(1, |ring| {
        let publisher = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                if !ring.skip_to(2) {
                    for number in 1..=2 {
                        ring.push(Numbering::Given(number), |_| number);
                    }
                }
            })
        };
        let reader = ring.join(Wanted::All);
        ring.rewind(reader, 0);
        assert_all(read(&ring, reader, 2), 2);
        assert!(publisher.join().is_ok());
        assert_eq!(ring.newest(), 2);
    });
}

#[test]
fn an_item_that_others_numbered_twice_is_read_once() {
    check(8, |ring| {
        let reader = ring.join(Wanted::All);
        let publishers = [(); 2].map(|()| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || {
                ring.push(Numbering::Given(7), |number| number.unwrap());
            })
        });
        publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
        ring.push(Numbering::Loose, |number| number.unwrap_or(0));
        assert_eq!(read(&ring, reader, 2), [Got::Item(7), Got::Item(0)]);
    });
}

#[test]
fn a_reader_that_is_stopped_while_it_goes_to_sleep_wakes_up_and_leaves_nothing_behind() {
    check(8, |ring| {
        let reader = ring.join(Wanted::All);
        let stopper = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                push(&ring);
                ring.stop(reader);
            }
        });
        let got = read(&ring, reader, u64::MAX);
        assert!(got.is_empty() || got == [Got::Item(1)], "{got:?}");
        ring.leave(reader);
        stopper.join().unwrap();
        assert_eq!(ring.census(), (1, 0));
    });
}
