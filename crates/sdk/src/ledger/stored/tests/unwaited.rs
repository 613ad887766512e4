//! Calls that do not wait for the disk while there is nothing to hear.

use super::*;

const LONG: Duration = Duration::from_secs(60);

fn unwaited(path: &Path, tail: Hearing) -> Stored {
    within(PATIENCE, path, tail)
}

fn within(patience: Duration, path: &Path, tail: Hearing) -> Stored {
    let store = Store::at(path).patience(patience).without_waiting();
    let known = Timeline(store.clone()).newest();
    Stored::new(store, &Policy::default(), known, Box::new(tail))
}

fn heard(path: &Path) -> (Stored, Heard) {
    heard_within(PATIENCE, path)
}

fn heard_within(patience: Duration, path: &Path) -> (Stored, Heard) {
    let heard = Heard::default();
    let tail = Arc::clone(&heard);
    (within(patience, path, Box::new(move |event, _| tail.lock().unwrap().push(event))), heard)
}

/// A ledger whose store stands still while the gate is shut.
fn gated(path: &Path) -> (Stored, Arc<tokio::sync::Mutex<()>>) {
    let gate = Arc::new(tokio::sync::Mutex::new(()));
    let at_the_gate = Arc::clone(&gate);
    (unwaited(path, Box::new(move |_, _| drop(at_the_gate.blocking_lock()))), gate)
}

/// A call of its own that goes well.
async fn fine(ledger: &Stored, id: &str) -> (Before, After) {
    let mut opening = opening(id, 1);
    opening.call = Arc::new(opening.call.with_input(json!({ "id": id })));
    opening.compared = Arc::clone(&opening.call.call);
    let (before, _) = ledger.before(&opening).await;
    let (after, _) = ledger.after(closing(opening, Outcome::Succeeded, id)).await;
    (before, after)
}

#[tokio::test]
async fn only_the_first_call_of_a_session_waits_where_all_goes_well() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let (ledger, gate) = gated(&path);
    fine(&ledger, "first").await;
    assert!(ledger.flush(LONG).await);
    let shut = gate.lock().await;
    let begun = Instant::now();
    for number in 0..100 {
        let (_, after) = fine(&ledger, &format!("call-{number}")).await;
        assert!(!after.failed);
    }
    assert!(begun.elapsed() < PATIENCE, "nobody waits: {:?}", begun.elapsed());
    drop(shut);
    assert!(ledger.close(LONG).await);
    let kept = calls(&path);
    let expected = (0..100).map(|number| format!("call-{number} lookup completed -"));
    assert_eq!(kept[1..], expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn after_a_failure_calls_wait_and_what_keeps_failing_is_refused() {
    let folder = TempDir::new().unwrap();
    let (ledger, _) = heard(&folder.path().join("state"));
    fine(&ledger, "first").await;
    assert!(ledger.needs_no_answer(&"s".into()));
    for number in 0..9 {
        if is_refused(&ledger, &format!("call-{number}")).await {
            assert!(number > 0, "the first one could not be refused");
            assert!(!ledger.needs_no_answer(&"s".into()));
            return;
        }
    }
    panic!("it was never refused");
}

#[tokio::test]
async fn when_what_failed_goes_well_nobody_waits_any_more() {
    let folder = TempDir::new().unwrap();
    let (ledger, _) = heard(&folder.path().join("state"));
    fine(&ledger, "first").await;
    assert!(!is_refused(&ledger, "fails").await);
    assert!(!ledger.needs_no_answer(&"s".into()));
    let elsewhere = Session::from("elsewhere");
    ledger.before(&unheard_of("elsewhere")).await;
    assert!(ledger.needs_no_answer(&elsewhere), "others are not disturbed");
    attempt(&ledger, "works", 1, Outcome::Succeeded, "here it is").await;
    assert!(ledger.needs_no_answer(&"s".into()), "nothing is known to fail any more");
}

#[tokio::test]
async fn a_session_in_which_something_failed_in_another_process_is_asked_about() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let (ledger, _) = heard(&path);
    fine(&ledger, "first").await;
    assert!(!is_refused(&ledger, "fails").await);
    assert!(ledger.close(LONG).await);
    let (ledger, _) = heard(&path);
    ledger.resume(&"s".into()).await.unwrap();
    fine(&ledger, "other").await;
    assert!(!ledger.needs_no_answer(&"s".into()));
}

#[tokio::test]
async fn what_is_said_to_a_call_that_did_not_wait_is_heard_with_the_next() {
    let folder = TempDir::new().unwrap();
    let (ledger, _) = heard(&folder.path().join("state"));
    let mut texts = Vec::new();
    for number in 0..40 {
        let id = format!("call-{number}");
        let (before, _) = ledger.before(&opening(&id, 1)).await;
        texts.extend(before.text);
        // It was said after the call before, for which nobody waited.
        if !texts.is_empty() {
            return;
        }
        let (after, _) = ledger
            .after(closing(opening(&id, 1), Outcome::Succeeded, "the very same long answer, again"))
            .await;
        assert!(after.text.is_none(), "nobody waits to hear it: {after:?}");
        assert!(ledger.flush(LONG).await);
    }
    panic!("nothing was said");
}

#[tokio::test]
async fn nothing_is_lost_or_turned_round_where_many_call_at_once() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    // A busy machine is no store that stands still.
    let (ledger, heard) = heard_within(LONG, &path);
    fine(&ledger, "first").await;
    let ledger = Arc::new(ledger);
    let many: Vec<_> = (0..8)
        .map(|task| {
            let ledger = Arc::clone(&ledger);
            tokio::spawn(async move {
                for number in 0..QUEUE / 2 {
                    fine(&ledger, &format!("{task}-{number}")).await;
                }
            })
        })
        .collect();
    for one in many {
        one.await.unwrap();
    }
    // What is waited for comes after all that is not.
    assert!(!is_refused(&ledger, "fails").await);
    let kept = calls(&path);
    assert_eq!(kept.len(), 1 + 8 * QUEUE / 2 + 1);
    assert!(kept.iter().rev().skip(1).all(|call| call.ends_with("lookup completed -")));
    assert!(ledger.close(LONG).await);
    let heard = heard.lock().unwrap();
    let seqs: Vec<u64> = heard.iter().map(|event| event.seq.0).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "each is told once, in order");
    let mut running = std::collections::HashSet::new();
    for event in heard.iter() {
        match &*event.kind {
            "tool:start" => assert!(running.insert(event.call)),
            "tool:end" => assert!(running.remove(&event.call), "it ended before it began"),
            _ => {}
        }
    }
    assert!(running.is_empty());
}

#[tokio::test]
async fn while_somebody_holds_the_store_what_nobody_waits_for_is_spooled_and_kept_once() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let (ledger, _) = heard(&path);
    fine(&ledger, "first").await;
    assert!(ledger.flush(LONG).await);
    let holder = Connection::open(path.join("timeline.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    for number in 0..50 {
        fine(&ledger, &format!("call-{number}")).await;
    }
    assert!(ledger.flush(LONG).await);
    assert!(!ledger.needs_no_answer(&"s".into()), "somebody has to hear of it");
    let (_, remembered) = ledger.before(&opening("waits", 1)).await;
    assert!(matches!(remembered, Remembered::Spooled { .. }), "{remembered:?}");
    ledger.after(closing(opening("waits", 1), Outcome::Succeeded, "")).await;
    holder.execute_batch("COMMIT").unwrap();
    fine(&ledger, "last").await;
    assert!(ledger.needs_no_answer(&"s".into()));
    assert!(ledger.close(LONG).await);
    let mut kept = calls(&path);
    kept.sort_unstable();
    kept.dedup();
    assert_eq!(kept.len(), 1 + 50 + 1 + 1, "{kept:?}");
    assert!(kept.iter().all(|call| call.ends_with("lookup completed -")), "{kept:?}");
}

#[tokio::test]
async fn a_full_queue_makes_callers_wait_and_drops_nothing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let gate = Arc::new(tokio::sync::Mutex::new(()));
    let at_the_gate = Arc::clone(&gate);
    let tail = Box::new(move |_, _| drop(at_the_gate.blocking_lock()));
    let ledger = Arc::new(within(LONG, &path, tail));
    fine(&ledger, "first").await;
    let shut = gate.lock().await;
    let caller = Arc::clone(&ledger);
    let calling = tokio::spawn(async move {
        for number in 0..QUEUE {
            fine(&caller, &format!("call-{number}")).await;
        }
    });
    while ledger.places.available_permits() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    ledger.interrupted(&opening("first", 1), now());
    ledger.user_spoke(&"s".into(), now());
    assert!(!calling.is_finished(), "there is room for half of it");
    drop(shut);
    calling.await.unwrap();
    assert!(ledger.close(LONG).await);
    assert_eq!(calls(&path).len(), 1 + QUEUE);
}
