//! Real stores in real folders, sound and broken.

mod unwaited;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use unstuck_judge::nature::Nature;
use unstuck_judge::retry::Draw;
use unstuck_judge::{Call, Kind};
use unstuck_store::{Root, Series, Stance, StoredEvent, Wanted};

use super::*;
use crate::call::CallInfo;
use crate::record::attempt_id;

const PATIENCE: Duration = Duration::from_millis(400);
/// What a busy machine may add to it.
const SLACK: Duration = Duration::from_millis(600);

const RESET: &str = "connection reset by peer (os error 104)";

type Heard = Arc<Mutex<Vec<StoredEvent>>>;

/// A ledger in a folder, and all events it tells of.
fn open(path: &Path) -> (Stored, Heard) {
    let heard = Heard::default();
    let tail = Arc::clone(&heard);
    (with_tail(path, Box::new(move |event, _| tail.lock().unwrap().push(event))), heard)
}

/// Hands on every event.
type Hearing = Box<dyn Fn(StoredEvent, Option<Arc<CallInfo>>) + Send>;

impl Tail for Hearing {
    fn hear(&self, event: StoredEvent, call: Option<Arc<CallInfo>>) {
        self(event, call);
    }
}

fn with_tail(path: &Path, tail: Hearing) -> Stored {
    let store = Store::at(path).patience(PATIENCE).secrets(["correct-horse-battery-staple"]);
    let known = Timeline(store.clone()).newest();
    Stored::new(store, &Policy::default(), known, Box::new(tail))
}

fn kinds(heard: &Heard) -> Vec<String> {
    heard.lock().unwrap().iter().map(|event| event.kind.clone()).collect()
}

fn opening(id: &str, attempt: u32) -> Opening {
    let input = json!({ "url": "https://x.example", "token": "correct-horse-battery-staple" });
    let call = Arc::new(Call::new("lookup", input));
    Opening {
        call: Arc::new(CallInfo {
            id: id.into(),
            session: "s".into(),
            agent: "main".into(),
            call: Arc::clone(&call),
            prefix: 0,
            round: None,
            annotations: Arc::default(),
        }),
        compared: call,
        polls: Some(false),
        nature: Some(Nature::ReadOnly),
        runs: true,
        attempt,
        at: now(),
    }
}

fn closing(opening: Opening, outcome: Outcome, said: &str) -> Closing {
    let series = match opening.attempt {
        1 => Series::default(),
        attempt => Series {
            retries_made: attempt as u8 - 1,
            failed_before: Some(Kind::Network),
            ..Series::default()
        },
    };
    let printed = Printed { merged: said.as_bytes().to_vec(), ..Printed::nothing(outcome) };
    let (advice, took, draw, at) = (Advice::default(), Duration::from_millis(3), Draw::LOW, now());
    Closing { opening, printed, advice, took, series, gets_more_time: false, is_hindered: false, draw, at }
}

/// One whole attempt.
async fn attempt(ledger: &Stored, id: &str, number: u32, outcome: Outcome, said: &str) -> (Before, After) {
    let (before, _) = ledger.before(&opening(id, number)).await;
    let (after, _) = ledger.after(closing(opening(id, number), outcome, said)).await;
    (before, after)
}

/// What the tables hold, one line for each call.
fn calls(path: &Path) -> Vec<String> {
    let database = Connection::open(path.join("timeline.db")).unwrap();
    let sql = "SELECT key || ' ' || tool || ' ' || state || ' ' || ifnull(kind, '-') FROM call ORDER BY id";
    let mut statement = database.prepare(sql).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn again(retry: Option<Retry>) -> &'static str {
    match retry {
        Some(Retry::Again { .. }) => "again",
        Some(Retry::Stop { .. }) => "stop",
        None => "-",
    }
}

#[tokio::test]
async fn a_call_and_its_failure_stand_in_the_store_and_are_told_in_the_same_order() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let (ledger, heard) = open(&path);
    assert!(!path.exists(), "nothing is made before it is needed");
    let missing = "no such record: 7";
    let (before, after) = attempt(&ledger, "a", 1, Outcome::ReportedFailure, missing).await;
    assert_eq!(before.stance, Stance::Go);
    assert!(after.report.is_some());
    attempt(&ledger, "b", 1, Outcome::Succeeded, "fine").await;
    // No waiting: whoever hears the answer finds the events told already.
    let told = heard.lock().unwrap().clone();
    assert!(ledger.close(PATIENCE).await);
    assert_eq!(calls(&path)[1], "b lookup completed -");
    assert!(calls(&path)[0].starts_with("a lookup failed "), "{:?}", calls(&path));
    let root = Root::existing(&path, None).unwrap();
    let store = unstuck_store::Store::to_read(&root, PATIENCE, 0).unwrap();
    let mut written = Vec::new();
    let keep = |event| {
        written.push(event);
        Ok::<(), StoreError>(())
    };
    store.events(&Wanted::default(), Bookmark(0), store.newest().unwrap(), keep).unwrap();
    assert_eq!(told, written);
    assert_eq!(told[0].kind, "tool:start");
    assert_eq!(told.last().unwrap().kind, "tool:end");
    for file in fs::read_dir(&path).unwrap().flatten().filter(|file| file.path().is_file()) {
        let bytes = fs::read(file.path()).unwrap();
        let secret = b"correct-horse-battery";
        assert!(!bytes.windows(secret.len()).any(|part| part == secret), "{file:?} holds a secret");
    }
}

#[tokio::test]
async fn a_call_that_keeps_failing_alike_is_refused_and_told_why() {
    let folder = TempDir::new().unwrap();
    let (ledger, _) = open(&folder.path().join("state"));
    for number in 0..8 {
        let id = format!("call-{number}");
        let (before, _) = ledger.before(&opening(&id, 1)).await;
        if before.stance.refuses() {
            assert!(before.text.unwrap().starts_with("Blocked by unstuck"));
            return;
        }
        ledger.after(closing(opening(&id, 1), Outcome::ReportedFailure, "no such record: 7")).await;
    }
    panic!("it was never refused");
}

#[tokio::test]
async fn a_retry_is_announced_before_its_wait_and_the_agent_hears_only_of_the_last_attempt() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let (ledger, heard) = open(&path);
    let (_, first) = attempt(&ledger, "a", 1, Outcome::Threw, RESET).await;
    assert_eq!((again(first.retry), first.text), ("again", None));
    assert_eq!(kinds(&heard).last().unwrap(), "tool:retry");
    let (_, second) = attempt(&ledger, "a", 2, Outcome::Threw, RESET).await;
    assert_eq!((again(second.retry), second.text), ("again", None));
    let (_, third) = attempt(&ledger, "a", 3, Outcome::Threw, RESET).await;
    assert_eq!(again(third.retry), "stop");
    assert!(third.text.is_some());
    assert_eq!(
        calls(&path),
        ["a lookup failed network", "a#2 lookup failed network", "a#3 lookup failed network"]
    );
}

#[tokio::test]
async fn what_a_tool_says_makes_calls_the_same_is_compared_and_what_was_asked_is_kept() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let (ledger, _) = open(&path);
    for number in 0..2 {
        let mut opening = opening(&format!("call-{number}"), 1);
        opening.call = Arc::new(opening.call.with_input(json!({ "request": number })));
        ledger.before(&opening).await;
        ledger.after(closing(opening, Outcome::ReportedFailure, "no such record: 7")).await;
    }
    let database = Connection::open(path.join("timeline.db")).unwrap();
    let count = |what: &str| -> u32 {
        let sql =
            format!("SELECT count(DISTINCT {what}) FROM call JOIN call_text ON call_text.call = call.id");
        database.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(["call_print", "intent_print", "attempt", "input"].map(count), [1, 1, 2, 2]);
}

#[tokio::test]
async fn what_a_tool_says_it_does_to_the_world_decides_whether_a_refusal_is_lifted() {
    let folder = TempDir::new().unwrap();
    let (ledger, _) = open(&folder.path().join("state"));
    let mut number = 0;
    while !is_refused(&ledger, &format!("call-{number}")).await {
        number += 1;
        assert!(number < 9, "it was never refused");
    }
    for (nature, refused) in [(Nature::ReadOnly, true), (Nature::Writes, false)] {
        let call = Arc::new(Call::new("frobnicate", json!({ "thing": nature.word() })));
        let mut opening = opening(nature.word(), 1);
        opening.call = Arc::new(CallInfo { call: Arc::clone(&call), ..(*opening.call).clone() });
        opening.compared = call;
        opening.nature = Some(nature);
        ledger.before(&opening).await;
        ledger.after(closing(opening, Outcome::Succeeded, "done")).await;
        assert_eq!(is_refused(&ledger, &format!("after {nature}")).await, refused, "{nature}");
    }
}

/// Is a call that always fails refused?
async fn is_refused(ledger: &Stored, id: &str) -> bool {
    let (before, _) = ledger.before(&opening(id, 1)).await;
    if !before.stance.refuses() {
        ledger.after(closing(opening(id, 1), Outcome::ReportedFailure, "no such record: 7")).await;
    }
    before.stance.refuses()
}

/// Runs one test of this file in a process of its own.
fn child(name: &str, path: &Path, limits: &str) -> std::process::Output {
    let exe = std::env::current_exe().unwrap();
    let script = format!("{limits} exec \"$0\" --exact ledger::stored::tests::{name} --ignored --nocapture");
    Command::new("sh").args(["-c", &script]).arg(exe).env("UNSTUCK_TEST_STORE", path).output().unwrap()
}

fn given_path() -> std::path::PathBuf {
    std::env::var_os("UNSTUCK_TEST_STORE").unwrap().into()
}

#[tokio::test]
#[ignore = "a part of `a_killed_process_leaves_calls_that_the_next_one_tells_the_truth_about`"]
async fn dies_in_the_middle() {
    let (ledger, _) = open(&given_path());
    attempt(&ledger, "done", 1, Outcome::Succeeded, "").await;
    attempt(&ledger, "runs", 1, Outcome::Threw, RESET).await;
    ledger.before(&opening("runs", 2)).await;
    let asks = opening("asks", 1);
    ledger.before(&asks).await;
    ledger.ruled(&asks, Ruling::Required, "hook", "may it?", now());
    assert!(ledger.flush(PATIENCE).await);
    std::process::abort();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_killed_process_leaves_calls_that_the_next_one_tells_the_truth_about() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let output = child("dies_in_the_middle", &path, "");
    assert!(!output.status.success(), "{output:?}");
    let (ledger, _) = open(&path);
    let (before, _) = ledger.before(&opening("mine", 1)).await;
    assert_eq!(before.sealed.len(), 2, "the first call of another process finds them too");
    assert_eq!(ledger.resume(&"s".into()).await, Ok(Vec::new()), "what was told is not told again");

    let path = folder.path().join("another");
    child("dies_in_the_middle", &path, "");
    let (ledger, _) = open(&path);
    let orphans = ledger.resume(&"s".into()).await.unwrap();
    let told: Vec<(&str, u32, &str)> =
        orphans.iter().map(|orphan| (orphan.call.as_str(), orphan.attempt, orphan.state.word())).collect();
    assert_eq!(told, [("runs", 2, "executing"), ("asks", 1, "approval_required")]);
    assert!(orphans[0].text.ends_with("was running: check for side effects before repeating"), "{orphans:?}");
    assert!(orphans[1].text.contains("did not run"), "{orphans:?}");
    assert!(orphans.iter().all(|orphan| orphan.tool == "lookup"));
    ledger.before(&opening("mine", 1)).await;
    assert_eq!(
        ledger.resume(&"s".into()).await,
        Ok(Vec::new()),
        "told once, and what runs here is no orphan"
    );
}

/// A call in a session of its own that asks a host of its own, so that nothing is known of it.
fn unheard_of(id: &str) -> Opening {
    let mut opening = opening(id, 1);
    let call = Arc::new(Call::new("lookup", json!({ "url": format!("https://{id}.example") })));
    let info = Arc::make_mut(&mut opening.call);
    (info.session, info.call) = (id.into(), Arc::clone(&call));
    Opening { compared: call, ..opening }
}

/// A call goes through a store that may be of no use; returns how long it took, and what became of it.
async fn through(ledger: &Stored, id: &str) -> (Duration, Remembered) {
    let begun = Instant::now();
    let (before, _) = ledger.before(&unheard_of(id)).await;
    assert_eq!(before.stance, Stance::Go);
    let (after, remembered) = ledger.after(closing(unheard_of(id), Outcome::Threw, RESET)).await;
    assert_eq!(after.report.unwrap().diagnosis.kind, Kind::Network);
    assert_eq!(again(after.retry), "again", "the policy answers without memory");
    (begun.elapsed(), remembered)
}

#[tokio::test]
async fn where_no_folder_can_be_made_a_call_is_answered_all_the_same() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for path in [folder.path().join("file/state"), "/proc/unstuck".into()] {
        let (took, remembered) = through(&open(&path).0, "a").await;
        assert!(matches!(remembered, Remembered::Lost { .. }), "{remembered:?}");
        assert!(took < SLACK, "{took:?}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_set_aside_and_the_call_is_kept_and_told_of() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("timeline.db"), "this is no database".repeat(500)).unwrap();
    let (ledger, heard) = open(&path);
    assert_eq!(through(&ledger, "a").await.1, Remembered::Recorded);
    assert!(ledger.close(PATIENCE).await);
    assert_eq!(kinds(&heard)[..2], ["own_fault", "tool:start"]);
}

#[tokio::test]
async fn while_somebody_holds_the_store_calls_are_answered_and_nothing_is_lost() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let (ledger, heard) = open(&path);
    through(&ledger, "a").await;
    let holder = Connection::open(path.join("timeline.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (took, remembered) = through(&ledger, "b").await;
    assert!(took < 2 * PATIENCE + SLACK, "{took:?}");
    assert!(matches!(remembered, Remembered::Spooled { .. }), "{remembered:?}");
    // Everybody has waited once; from now on nobody does.
    let (took, _) = through(&ledger, "c").await;
    assert!(took < PATIENCE, "{took:?}");
    let ledger = Arc::new(ledger);
    let begun = Instant::now();
    let many: Vec<_> = (0..200)
        .map(|number| {
            let ledger = Arc::clone(&ledger);
            tokio::spawn(async move { through(&ledger, &format!("n{number}")).await })
        })
        .collect();
    for one in many {
        one.await.unwrap();
    }
    assert!(begun.elapsed() < 2 * PATIENCE + 4 * SLACK, "{:?}", begun.elapsed());
    holder.execute_batch("COMMIT").unwrap();
    assert!(ledger.flush(Duration::from_secs(60)).await);
    // A short process takes in only so much at once.
    for number in 0..10 {
        through(&ledger, &format!("z{number}")).await;
    }
    assert!(ledger.close(Duration::from_secs(60)).await);
    assert_eq!(calls(&path).len(), 1 + 1 + 1 + 200 + 10);
    let seqs: Vec<u64> = heard.lock().unwrap().iter().map(|event| event.seq.0).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "each is told once, in order");
}

#[tokio::test]
async fn a_store_that_hangs_costs_its_patience_once_and_then_hardly_anything() {
    let folder = TempDir::new().unwrap();
    let (release, gate) = mpsc::channel::<()>();
    let gate: Mutex<Receiver<()>> = Mutex::new(gate);
    let tail = move |_, _| {
        let _until_it_is_released = gate.lock().unwrap().recv();
    };
    let ledger = with_tail(&folder.path().join("state"), Box::new(tail));
    let (took, remembered) = through(&ledger, "a").await;
    assert_eq!(remembered, Remembered::Unanswered);
    assert!(took >= PATIENCE && took < 2 * PATIENCE + SLACK, "{took:?}");
    let (took, _) = through(&ledger, "b").await;
    assert!(took < SLACK, "{took:?}");
    drop(release);
    assert!(ledger.flush(Duration::from_secs(20)).await);
    assert_eq!(through(&ledger, "c").await.1, Remembered::Recorded);
    assert_eq!(
        calls(&folder.path().join("state")),
        ["a lookup failed network", "b lookup failed network", "c lookup failed network"]
    );
}

#[tokio::test]
async fn a_queue_that_is_full_keeps_nobody_waiting_for_ever() {
    let folder = TempDir::new().unwrap();
    let gate = Arc::new(tokio::sync::Mutex::new(()));
    let at_the_gate = Arc::clone(&gate);
    let path = folder.path().join("state");
    let ledger = with_tail(&path, Box::new(move |_, _| drop(at_the_gate.blocking_lock())));
    let hangs = gate.lock().await;
    for _ in 0..2 * QUEUE {
        ledger.fault(&opening("x", 1).call, "test", "the store hangs", now());
    }
    assert_eq!(ledger.places.available_permits(), 0);
    let begun = Instant::now();
    let (_, remembered) = through(&ledger, "a").await;
    assert!(matches!(remembered, Remembered::Lost { .. }), "nobody will write it: {remembered:?}");
    assert!(ledger.resume(&"s".into()).await.is_err());
    assert!(!ledger.flush(PATIENCE).await);
    assert!(begun.elapsed() < 4 * PATIENCE + SLACK, "{:?}", begun.elapsed());
    drop(hangs);
    assert!(ledger.flush(Duration::from_secs(60)).await);
    assert_eq!(through(&ledger, "b").await.1, Remembered::Recorded);
}

#[tokio::test]
async fn when_the_thread_of_the_store_dies_calls_go_on() {
    let folder = TempDir::new().unwrap();
    let ledger = with_tail(&folder.path().join("state"), Box::new(|_, _| panic!("a tail that breaks")));
    let begun = Instant::now();
    // It dies while it handles the first call, and may take its time to say so.
    while through(&ledger, "a").await.1 == Remembered::Unanswered {
        assert!(begun.elapsed() < Duration::from_secs(20), "it is still not dead");
    }
    let (took, remembered) = through(&ledger, "b").await;
    assert!(matches!(remembered, Remembered::Lost { .. }), "{remembered:?}");
    assert!(took < PATIENCE, "nobody waits for the dead: {took:?}");
    assert!(ledger.resume(&"s".into()).await.is_err());
    assert!(!ledger.close(PATIENCE).await);
}

#[tokio::test]
#[ignore = "a part of `on_a_full_disk_calls_are_answered`"]
async fn works_on_a_full_disk() {
    let (ledger, _) = open(&given_path());
    for number in 0..20 {
        let (took, _) = through(&ledger, &format!("call-{number}")).await;
        assert!(took < 2 * PATIENCE + SLACK, "{took:?}");
    }
    let (_, remembered) = through(&ledger, "last").await;
    assert!(remembered.fault().is_some(), "the disk was not full");
}

#[cfg(unix)]
#[test]
fn on_a_full_disk_calls_are_answered() {
    let folder = TempDir::new().unwrap();
    // A file that may not grow is what a full disk looks like from here.
    let limits = "trap '' XFSZ; ulimit -f 60;";
    let output = child("works_on_a_full_disk", &folder.path().join("state"), limits);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

#[tokio::test]
async fn what_others_write_is_told_while_the_timeline_is_followed() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let (other, _) = open(&path);
    through(&other, "old").await;
    let (ledger, heard) = open(&path);
    ledger.follow();
    assert!(ledger.flush(PATIENCE).await);
    assert_eq!(kinds(&heard), [""; 0], "what is old is not told as new");
    attempt(&other, "a", 1, Outcome::Succeeded, "").await;
    let begun = Instant::now();
    while kinds(&heard).len() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(10), "it was never told");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(kinds(&heard), ["tool:start", "tool:end"]);
}

#[tokio::test]
async fn what_is_older_is_read_page_by_page() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let (ledger, heard) = open(&path);
    let timeline = Timeline(Store::at(&path));
    let last = Bookmark(u64::MAX);
    assert_eq!(timeline.events(Bookmark(0), last, 9), Ok(Vec::new()));
    through(&ledger, "a").await;
    let all = heard.lock().unwrap().clone();
    assert_eq!(timeline.events(Bookmark(0), last, 99), Ok(all.clone()));
    assert_eq!(timeline.events(Bookmark(1), last, 2), Ok(all[1..3].to_vec()));
    assert_eq!(timeline.events(Bookmark(0), Bookmark(2), 99), Ok(all[..2].to_vec()));
    assert_eq!(timeline.events(last, last, 9), Ok(Vec::new()));
}

#[tokio::test]
async fn a_call_that_nobody_waited_for_is_not_recorded_as_refused() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let gate = Arc::new(tokio::sync::Mutex::new(()));
    let at_the_gate = Arc::clone(&gate);
    let (arrived, arrivals) = mpsc::channel();
    let ledger = with_tail(
        &path,
        Box::new(move |event, _| {
            let _nobody_counts_any_more = arrived.send(event.kind);
            drop(at_the_gate.blocking_lock());
        }),
    );
    let mut number = 0;
    while !is_refused(&ledger, &format!("call-{number}")).await {
        number += 1;
        assert!(number < 9, "it was never refused");
    }
    assert!(ledger.flush(Duration::from_secs(20)).await);
    while arrivals.try_recv().is_ok() {}
    let hangs = gate.lock().await;
    ledger.fault(&opening("x", 1).call, "test", "the store hangs", now());
    // What comes while it is kept is not kept together with it.
    assert!(arrivals.iter().any(|kind| kind == "error"));
    let (before, remembered) = ledger.before(&opening("unheard", 1)).await;
    assert_eq!((before.stance, remembered), (Stance::Go, Remembered::Unanswered));
    drop(hangs);
    assert!(ledger.flush(Duration::from_secs(20)).await);
    assert_eq!(calls(&path).last().unwrap(), "unheard lookup executing -");
    ledger.interrupted(&opening("unheard", 1), now());
    assert!(ledger.close(Duration::from_secs(20)).await);
    assert_eq!(calls(&path).last().unwrap(), "unheard lookup failed aborted");
}

#[tokio::test]
async fn the_records_of_a_session_tell_how_each_call_came_where_it_stands() {
    let folder = TempDir::new().unwrap();
    let (ledger, _) = open(&folder.path().join("state"));
    assert_eq!(ledger.records(&"s".into()).await, Ok(Vec::new()));
    attempt(&ledger, "a", 1, Outcome::Threw, RESET).await;
    attempt(&ledger, "a", 2, Outcome::Succeeded, "").await;
    through(&ledger, "elsewhere").await;
    let asks = opening("b", 1);
    ledger.before(&asks).await;
    ledger.ruled(&asks, Ruling::Required, "hook", "may it?", now());
    let records = ledger.records(&"s".into()).await.unwrap();
    let told: Vec<String> = records
        .iter()
        .map(|record| {
            let trail: Vec<&str> = record.trail.iter().map(|step| step.state.word()).collect();
            format!("{} {} {}", record.id, record.state, trail.join(" "))
        })
        .collect();
    assert_eq!(
        told,
        [
            "a failed pending executing failed",
            "a#2 completed pending executing completed",
            "b approval_required pending executing approval_required",
        ]
    );
    assert_eq!(records[2].trail[2].note, "may it?");
}

#[test]
fn the_name_of_an_attempt_leads_back_to_its_call() {
    for (call, attempt) in [("call-1", 1), ("call-1", 2), ("a#b", 1), ("a#b", 12)] {
        assert_eq!(call_of(attempt_id(&call.into(), attempt).as_str()), (call, attempt));
    }
}
