//! What the bus promises, one promise each.

use std::panic::panic_any;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use futures_core::Stream;
use serde_json::json;
use unstuck_store::{Bookmark, Channel, EventType, StoredEvent};

use super::{Archive, Body, Delivery, Event, EventBus, Listener, Subscription};

/// How long something that must happen is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn event(kind: EventType, session: &str) -> Event {
    Event::new(kind, 1_700_000_000_000, Some(session.into()), None, Body::Json(json!({})))
}

fn start() -> Event {
    event(EventType::ToolStart, "s")
}

pub(super) fn numbered(number: u64, event: Event) -> Event {
    event.at_place(Some(Bookmark(number)))
}

/// A timeline outside of the ring, which may be out of service for a while.
#[derive(Default)]
pub(super) struct Shelf {
    pub(super) events: Mutex<Vec<Event>>,
    pub(super) is_broken: Mutex<bool>,
}

impl Archive for Shelf {
    fn page(&self, after: Bookmark, up_to: Bookmark, most: usize) -> Result<Vec<Event>, String> {
        if *self.is_broken.lock().unwrap() {
            return Err("disk I/O error".to_owned());
        }
        let events = self.events.lock().unwrap();
        let is_within = |event: &&Event| event.bookmark() > Some(after) && event.bookmark() <= Some(up_to);
        Ok(events.iter().filter(is_within).take(most).cloned().collect())
    }
}

/// The next delivery, which must come; a waker is left as a subscriber does it, and the wait for it is bounded.
pub(super) fn next(subscription: &mut Subscription) -> Option<Delivery> {
    let patience = Instant::now();
    loop {
        if let Poll::Ready(delivery) = poll(subscription) {
            return delivery;
        }
        assert!(patience.elapsed() < PATIENCE, "nothing was delivered");
        thread::sleep(Duration::from_millis(1));
    }
}

pub(super) fn poll(subscription: &mut Subscription) -> Poll<Option<Delivery>> {
    Pin::new(subscription).poll_next(&mut Context::from_waker(Waker::noop()))
}

/// A delivery in short: `3` is the event with that bookmark, `-` one without, `missed 2 to 5` a gap, `end` the end.
fn in_short(delivery: Option<Delivery>) -> String {
    match delivery {
        Some(Delivery::Event(event)) => {
            event.bookmark().map_or("-".to_owned(), |bookmark| bookmark.0.to_string())
        }
        Some(Delivery::Missed(missed)) => format!("missed {} to {}", missed.count, missed.up_to.0),
        None => "end".to_owned(),
    }
}

/// What is delivered next, as many times as something is expected, and then nothing but the end.
fn check(mut subscription: Subscription, expected: &str) {
    let got: Vec<String> =
        expected.split_terminator(", ").map(|_| in_short(next(&mut subscription))).collect();
    assert_eq!(got.join(", "), expected);
    match poll(&mut subscription) {
        Poll::Pending => {}
        Poll::Ready(more) => assert!(more.is_none(), "and then {more:?}"),
    }
}

fn wait_until(is_so: impl Fn() -> bool) {
    let patience = Instant::now();
    while !is_so() {
        assert!(patience.elapsed() < PATIENCE, "it did not come to it");
        thread::sleep(Duration::from_millis(1));
    }
}

fn publish(bus: &EventBus, events: u64) {
    for _ in 0..events {
        bus.publish(start());
    }
}

fn bus_with(capacity: usize, events: u64) -> EventBus {
    let bus = EventBus::new(capacity);
    publish(&bus, events);
    bus
}

/// A bus over a timeline of so many events, of which it was told all, or only the last ones.
fn archived(capacity: usize, events: u64, told: u64) -> (EventBus, Arc<Shelf>) {
    let shelf = Arc::new(Shelf::default());
    let bus = EventBus::with_archive(capacity, shelf.clone(), Bookmark(events - told));
    for number in 1..=events {
        let event = numbered(number, start());
        shelf.events.lock().unwrap().push(event.clone());
        bus.publish_numbered(event);
    }
    (bus, shelf)
}

#[test]
fn without_a_bookmark_only_what_comes_from_now_on_is_delivered() {
    let bus = bus_with(8, 3);
    let subscription = bus.subscribe(Channel::ALL);
    assert_eq!(bus.publish(start()), Bookmark(4));
    assert_eq!(bus.newest(), Bookmark(4));
    check(subscription, "4");
}

#[test]
fn from_a_bookmark_what_was_and_what_comes_is_one_stream() {
    let bus = bus_with(8, 3);
    let mut subscription = bus.subscribe(Channel::ALL).from(Bookmark(1));
    assert_eq!(in_short(next(&mut subscription)), "2");
    bus.publish(start());
    check(subscription, "3, 4");
}

#[test]
fn a_bookmark_older_than_the_ring_tells_what_is_missed() {
    check(bus_with(4, 10).subscribe(Channel::ALL).from(Bookmark(0)), "missed 6 to 6, 7, 8, 9, 10");
    check(bus_with(4, 10).subscribe(Channel::ALL).from(Bookmark(6)), "7, 8, 9, 10");
}

#[test]
fn a_bookmark_of_the_future_means_from_now_on_where_the_bus_counts_itself() {
    let bus = bus_with(4, 10);
    let subscription = bus.subscribe(Channel::ALL).from(Bookmark(5000));
    bus.publish(start());
    check(subscription, "11");
}

#[test]
fn a_bookmark_of_the_future_is_waited_for_where_a_store_counts() {
    let (bus, _shelf) = archived(4, 10, 10);
    let subscription = bus.subscribe(Channel::ALL).from(Bookmark(12));
    (11..=13).for_each(|number| bus.publish_numbered(numbered(number, start())));
    check(subscription, "13");
}

#[test]
fn with_an_archive_nothing_is_missed() {
    let (bus, _shelf) = archived(4, 10, 10);
    check(bus.subscribe(Channel::ALL).from(Bookmark(2)), "3, 4, 5, 6, 7, 8, 9, 10");
    // Also what was there before the bus.
    let (bus, _shelf) = archived(4, 5, 0);
    check(bus.subscribe(Channel::ALL).from(Bookmark(3)), "4, 5");
}

#[test]
fn an_archive_of_many_pages_is_read_in_order_also_inside_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (bus, _shelf) = archived(4, 2000, 2000);
    let all = bus.subscribe(Channel::ALL).from(Bookmark(0));
    let expected: Vec<String> = (1..=2000).map(|number| number.to_string()).collect();
    let _inside = runtime.enter();
    check(all, &expected.join(", "));
}

#[test]
fn an_archive_that_fails_becomes_a_gap_and_is_told_of_once() {
    let (bus, shelf) = archived(8, 10, 3);
    *shelf.is_broken.lock().unwrap() = true;
    let mut errors = bus.subscribe([Channel::Monitor]);
    for _ in 0..2 {
        check(bus.subscribe([Channel::Progress]).from(Bookmark(2)), "missed 5 to 7, 8, 9, 10");
    }
    let Some(Delivery::Event(error)) = next(&mut errors) else { panic!("a report") };
    assert_eq!(
        (error.get("phase"), error.get("message")),
        (Some("archive".into()), Some("disk I/O error".into()))
    );
    check(errors, "");
    *shelf.is_broken.lock().unwrap() = false;
    check(bus.subscribe([Channel::Progress]).from(Bookmark(5)), "6, 7, 8, 9, 10");
}

#[test]
fn an_archive_that_fails_half_way_delivers_what_it_read() {
    struct Half(Shelf);
    impl Archive for Half {
        fn page(&self, after: Bookmark, up_to: Bookmark, most: usize) -> Result<Vec<Event>, String> {
            let page = self.0.page(after, up_to, most);
            *self.0.is_broken.lock().unwrap() = true;
            page
        }
    }
    let shelf = Shelf::default();
    *shelf.events.lock().unwrap() = (1..=300).map(|number| numbered(number, start())).collect();
    let bus = EventBus::with_archive(4, Arc::new(Half(shelf)), Bookmark(300));
    let expected: Vec<String> = (1..=256).map(|number| number.to_string()).collect();
    let subscription = bus.subscribe([Channel::Progress]).from(Bookmark(0));
    check(subscription, &format!("{}, missed 44 to 300", expected.join(", ")));
}

#[test]
fn an_archive_that_repeats_itself_or_knows_the_future_cannot_put_the_stream_out_of_order() {
    struct Stubborn;
    impl Archive for Stubborn {
        fn page(&self, _: Bookmark, _: Bookmark, most: usize) -> Result<Vec<Event>, String> {
            let numbers = [400].into_iter().chain(1..).take(most);
            Ok(numbers.map(|number| numbered(number, start())).collect())
        }
    }
    let bus = EventBus::with_archive(4, Arc::new(Stubborn), Bookmark(300));
    let subscription = bus.subscribe(Channel::ALL).from(Bookmark(0));
    bus.publish_numbered(numbered(301, start()));
    let expected: Vec<String> = (1..=255).map(|number| number.to_string()).collect();
    check(subscription, &format!("{}, 301", expected.join(", ")));
}

#[test]
fn an_archive_that_panics_is_one_that_fails() {
    struct Panics;
    impl Archive for Panics {
        fn page(&self, _: Bookmark, _: Bookmark, _: usize) -> Result<Vec<Event>, String> {
            panic!("no archive")
        }
    }
    let bus = EventBus::with_archive(4, Arc::new(Panics), Bookmark(3));
    let mut errors = bus.subscribe([Channel::Monitor]);
    check(bus.subscribe([Channel::Progress]).from(Bookmark(1)), "missed 2 to 3");
    let Some(Delivery::Event(error)) = next(&mut errors) else { panic!("a report") };
    assert_eq!((error.kind(), error.get("phase")), ("error", Some("archive".into())));
}

#[test]
fn what_has_no_number_keeps_its_place_in_the_order() {
    let (bus, _shelf) = archived(8, 2, 2);
    let subscription = bus.subscribe(Channel::ALL);
    bus.publish_unnumbered(start());
    bus.publish_numbered(numbered(2, start()));
    bus.publish_numbered(numbered(3, start()));
    check(subscription, "-, 3");
    check(bus.subscribe(Channel::ALL).from(Bookmark(2)), "-, 3");
    check(bus.subscribe(Channel::ALL).from(Bookmark(3)), "");
}

#[test]
fn what_has_no_number_and_fell_out_is_missed_whatever_the_archive_knows() {
    let (bus, shelf) = archived(2, 1, 1);
    let subscription = bus.subscribe(Channel::ALL);
    bus.publish_unnumbered(start());
    for number in 2..=4 {
        shelf.events.lock().unwrap().push(numbered(number, start()));
        bus.publish_numbered(numbered(number, start()));
    }
    check(subscription, "2, missed 1 to 2, 3, 4");
    let bus = EventBus::new(1);
    bus.publish(start());
    (0..2).for_each(|_| bus.publish_unnumbered(start()));
    check(bus.subscribe(Channel::ALL).from(Bookmark(1)), "missed 1 to 1, -");
    check(bus.subscribe([Channel::Monitor]).from(Bookmark(1)), "");
}

#[test]
fn a_slow_subscriber_is_told_once_what_it_missed_and_goes_on() {
    let bus = bus_with(4, 0);
    let mut slow = bus.subscribe(Channel::ALL);
    publish(&bus, 10);
    assert_eq!(in_short(next(&mut slow)), "missed 6 to 6");
    bus.publish(start());
    check(slow, "missed 1 to 7, 8, 9, 10, 11");
    assert_eq!(bus.channels().ring.census(), (4, 0));
}

#[test]
fn what_a_filter_leaves_out_is_never_missed() {
    let bus = bus_with(4, 0);
    let control = bus.subscribe([Channel::Control]);
    let errors = bus.subscribe(Channel::ALL).types(["tool:error"]);
    let session = bus.subscribe(Channel::ALL).session("mine");
    let prefix = bus.subscribe(Channel::ALL).types(["problem:*", "halt"]);
    bus.publish(event(EventType::ToolError, "mine"));
    publish(&bus, 20);
    bus.publish(event(EventType::Halt, "other"));
    check(control, "22");
    check(errors, "missed 1 to 1");
    check(session, "missed 1 to 1");
    check(prefix, "22");
}

#[test]
fn what_a_filter_leaves_out_is_not_missed_from_a_bookmark_either() {
    let bus = bus_with(4, 10);
    bus.publish(event(EventType::Alert, "s"));
    publish(&bus, 10);
    check(bus.subscribe([Channel::Control]).from(Bookmark(0)), "");
    check(bus.subscribe(Channel::ALL).from(Bookmark(0)).types(["halt", "problem:*"]), "");
    check(bus.subscribe([Channel::Monitor]).from(Bookmark(10)), "missed 1 to 17");
    check(bus.subscribe([Channel::Monitor]).from(Bookmark(11)), "");
    check(bus.subscribe(Channel::ALL).from(Bookmark(9)), "missed 8 to 17, 18, 19, 20, 21");
}

#[test]
fn a_filter_that_is_asleep_is_not_missing_anything_either() {
    let bus = bus_with(4, 0);
    let mut control = bus.subscribe([Channel::Control]);
    assert!(poll(&mut control).is_pending());
    publish(&bus, 20);
    bus.publish(event(EventType::Ask, "s"));
    check(control, "21");
}

#[test]
fn filters_hold_for_the_archive_too() {
    let (bus, shelf) = archived(1, 1, 1);
    for (number, session) in [(2, "mine"), (3, "other"), (4, "mine"), (5, "other")] {
        let event = numbered(number, event(EventType::ToolEnd, session));
        shelf.events.lock().unwrap().push(event.clone());
        bus.publish_numbered(event);
    }
    check(bus.subscribe(Channel::ALL).session("mine").from(Bookmark(0)), "2, 4");
    check(bus.subscribe([Channel::Progress]).from(Bookmark(0)).types(["tool:start"]), "1");
    check(bus.subscribe([Channel::Monitor]).from(Bookmark(0)), "");
}

#[test]
fn after_the_end_subscribers_get_what_is_there_and_nothing_more() {
    let bus = bus_with(4, 3);
    let mut reading = bus.subscribe(Channel::ALL).from(Bookmark(1));
    assert_eq!(in_short(next(&mut reading)), "2");
    let mut asleep = bus.subscribe(Channel::ALL);
    assert!(poll(&mut asleep).is_pending());
    bus.close();
    assert_eq!(bus.publish(start()), Bookmark(3));
    check(reading, "3, end, end");
    check(asleep, "end");
    check(bus.subscribe(Channel::ALL).from(Bookmark(0)), "1, 2, 3, end");
}

#[test]
fn a_bus_that_everybody_let_go_of_has_ended() {
    let bus = bus_with(4, 0);
    let subscription = bus.subscribe(Channel::ALL);
    let clone = bus.clone();
    clone.publish(start());
    drop((bus, clone));
    check(subscription, "1, end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_subscribers_each_hear_everything_in_order() {
    let bus = EventBus::new(4096);
    let readers: Vec<_> = (0..100)
        .map(|_| {
            let mut subscription = bus.subscribe(Channel::ALL);
            tokio::spawn(async move {
                let mut numbers = Vec::new();
                while let Some(Delivery::Event(event)) = subscription.next().await {
                    numbers.push(event.bookmark().unwrap().0);
                }
                numbers
            })
        })
        .collect();
    let publishers: Vec<_> = (0..4)
        .map(|_| {
            let bus = bus.clone();
            tokio::spawn(async move {
                for _ in 0..250 {
                    bus.publish(start());
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for publisher in publishers {
        publisher.await.unwrap();
    }
    bus.close();
    for reader in readers {
        assert!(reader.await.unwrap().into_iter().eq(1..=1000));
    }
}

#[test]
fn ten_thousand_subscriptions_leave_nothing_behind() {
    let bus = bus_with(4, 8);
    let together: Vec<Subscription> = (0..5000).map(|_| bus.subscribe(Channel::ALL)).collect();
    assert_eq!(bus.channels().ring.census(), (4, 5000));
    drop(together);
    for _ in 0..5000 {
        let mut subscription = bus.subscribe(Channel::ALL).from(Bookmark(2));
        assert!(poll(&mut subscription).is_ready());
    }
    assert_eq!(bus.channels().ring.census(), (4, 0));
    assert_eq!(Arc::strong_count(bus.channels()), 1);
}

#[test]
fn a_waker_may_come_back_to_the_bus_when_it_is_woken_or_dropped() {
    struct ComesBack {
        bus: EventBus,
        _other: Subscription,
    }
    impl Wake for ComesBack {
        fn wake(self: Arc<Self>) {
            self.bus.publish(start());
        }
    }
    let bus = EventBus::new(1);
    let comes_back =
        || Waker::from(Arc::new(ComesBack { bus: bus.clone(), _other: bus.subscribe(Channel::ALL) }));
    let poll_with = |subscription: &mut Subscription, waker: Waker| {
        Pin::new(subscription).poll_next(&mut Context::from_waker(&waker)).is_pending()
    };
    let mut subscription = bus.subscribe(Channel::ALL);
    // Another takes its place.
    assert!(poll_with(&mut subscription, comes_back()) && poll_with(&mut subscription, comes_back()));
    bus.publish(start());
    check(subscription, "missed 1 to 1, 2");
    let mut subscription = bus.subscribe(Channel::ALL);
    assert!(poll_with(&mut subscription, comes_back()));
    drop(subscription);
    let mut subscription = bus.subscribe(Channel::ALL);
    assert!(poll_with(&mut subscription, comes_back()));
    bus.close();
    assert_eq!((bus.channels().ring.census(), bus.newest()), ((1, 1), Bookmark(2)));
}

#[test]
fn buses_subscriptions_and_listeners_go_from_thread_to_thread() {
    fn check<T: Send + Sync + Unpin>() {}
    check::<(EventBus, Subscription, Listener, Event, Delivery)>();
}

/// Listeners behave alike with a runtime and without one.
fn check_listeners(check: impl Fn()) {
    check();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let _inside = runtime.enter();
    check();
}

#[test]
fn a_callback_hears_the_types_it_asked_for_until_it_is_dropped() {
    check_listeners(|| {
        let bus = EventBus::new(64);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let listen = |kind: &'static str| {
            let heard = Arc::clone(&heard);
            bus.on(kind, move |event| heard.lock().unwrap().push((kind, event.kind().to_owned())))
        };
        let listeners = [listen("tool:error"), listen("tool:*"), listen("*")];
        for kind in [EventType::ToolError, EventType::ToolEnd, EventType::Alert] {
            bus.publish(event(kind, "s"));
        }
        wait_until(|| heard.lock().unwrap().len() == 6);
        let heard_by = |wanted| {
            let heard = heard.lock().unwrap();
            heard.iter().filter(|(by, _)| *by == wanted).map(|(_, kind)| kind.clone()).collect::<Vec<_>>()
        };
        assert_eq!(heard_by("tool:error"), ["tool:error"]);
        assert_eq!(heard_by("tool:*"), ["tool:error", "tool:end"]);
        assert_eq!(heard_by("*"), ["tool:error", "tool:end", "alert"]);
        drop(listeners);
        wait_until(|| bus.channels().ring.census().1 == 0);
        bus.publish(start());
        assert_eq!(heard.lock().unwrap().len(), 6);
    });
}

#[test]
fn a_callback_that_panics_is_told_of_once_and_hears_the_next_event() {
    struct PanicsInDrop;
    impl Drop for PanicsInDrop {
        fn drop(&mut self) {
            panic!("and once more");
        }
    }
    check_listeners(|| {
        let bus = EventBus::new(64);
        let mut errors = bus.subscribe([Channel::Monitor]);
        let calls = Arc::new(AtomicU64::new(0));
        let listener = bus.on("tool:start", {
            let calls = Arc::clone(&calls);
            move |_| match calls.fetch_add(1, Ordering::SeqCst) {
                0 => panic!("subscriber down"),
                1 => panic_any(PanicsInDrop),
                _ => {}
            }
        });
        publish(&bus, 3);
        wait_until(|| calls.load(Ordering::SeqCst) == 3);
        assert_eq!((listener.panics(), listener.missed()), (2, 0));
        let Some(Delivery::Event(error)) = next(&mut errors) else { panic!("a report") };
        let mut error = error.to_json();
        for key in ["at", "bookmark", "session"] {
            error.as_object_mut().unwrap().remove(key).unwrap();
        }
        let expected = json!({
            "v": 1, "channel": "monitor", "type": "error", "severity": "error", "phase": "listener",
            "message": "a listener panicked: subscriber down", "detail": { "listener": "tool:start" },
        });
        assert_eq!(error, expected);
        check(errors, "");
    });
}

#[test]
fn a_callback_that_hangs_holds_up_nobody_and_knows_what_it_missed() {
    let bus = EventBus::new(4);
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let entered = Arc::new(AtomicU64::new(0));
    let listener = bus.on("*", {
        let entered = Arc::clone(&entered);
        move |_| {
            entered.fetch_add(1, Ordering::SeqCst);
            let _ = gate.lock().unwrap().recv();
        }
    });
    bus.publish(start());
    wait_until(|| entered.load(Ordering::SeqCst) == 1);
    let other = bus.subscribe(Channel::ALL);
    publish(&bus, 10);
    check(other, "missed 6 to 7, 8, 9, 10, 11");
    drop(go);
    wait_until(|| entered.load(Ordering::SeqCst) == 5);
    assert_eq!(listener.missed(), 6);
}

#[test]
fn a_detached_listener_goes_on_until_the_bus_ends() {
    check_listeners(|| {
        let bus = EventBus::new(4);
        let heard = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&heard);
        let listener = bus.on("*", move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        });
        listener.detach();
        bus.publish(start());
        wait_until(|| heard.load(Ordering::SeqCst) == 1);
        let channels = Arc::clone(bus.channels());
        drop(bus);
        wait_until(|| channels.ring.census().1 == 0);
    });
}

#[test]
fn types_that_only_a_newer_version_knows_are_found_by_their_beginning() {
    let stored = StoredEvent {
        seq: Bookmark(3),
        at: 17,
        channel: "gossip".into(),
        kind: "tool:sang".into(),
        session: None,
        call: None,
        body: "{}".into(),
        link: None,
    };
    let bus = EventBus::with_archive(4, Arc::new(Shelf::default()), Bookmark(2));
    let tool = bus.subscribe(Channel::ALL).types(["tool:*"]);
    let other = bus.subscribe(Channel::ALL).types(["tool:s"]);
    let progress = bus.subscribe([Channel::Progress]);
    bus.publish_numbered(Event::stored(stored, None));
    check(tool, "3");
    check(other, "");
    check(progress, "");
}
