//! A store that is of no use is no reason for a call to fail.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;
use unstuck::{Annotations, Channel, Failure, Status, Store, Toolbox};

use crate::{NO_RECORD, call, kinds, swift, tool, until};

fn toolbox(store: Store) -> Toolbox {
    Toolbox::builder()
        .tool(tool("echo", Annotations::new(), Ok))
        .tool(tool("fail", Annotations::new(), |_| Err(Failure::expected(NO_RECORD))))
        .policy(swift())
        .store(store)
        .build()
        .unwrap()
}

#[tokio::test]
async fn where_no_store_can_be_made_calls_are_answered_and_operations_hear_of_it() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let tools = toolbox(Store::at(folder.path().join("file/state")));
    let mut monitor = tools.events().subscribe([Channel::Monitor]);
    let mut progress = tools.events().subscribe([Channel::Progress]);
    assert!(call(&tools, "echo", json!({})).await.is_ok());
    let result = call(&tools, "fail", json!({})).await;
    let told = (result.status(), result.error(), result.error_type());
    assert_eq!(told, (Status::Failed, Some(NO_RECORD), Some("logical")));
    let told = until(&mut monitor, "error").await.pop().unwrap();
    assert_eq!((told.get("phase"), told.bookmark()), (Some(json!("store")), None), "{told:?}");
    let seen = [until(&mut progress, "tool:end").await, until(&mut progress, "tool:end").await].concat();
    let expected = ["tool:start", "tool:end", "tool:start", "tool:error", "tool:end"];
    assert_eq!(kinds(&seen), expected, "and the user sees what happens all the same");
}

#[tokio::test]
async fn a_store_that_somebody_else_holds_costs_no_more_than_its_patience() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state");
    let patience = Duration::from_millis(500);
    let tools = toolbox(Store::at(&path).patience(patience));
    assert!(call(&tools, "echo", json!({ "n": 1 })).await.is_ok());
    let holder = Connection::open(path.join("timeline.db")).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    assert!(call(&tools, "echo", json!({ "n": 2 })).await.is_ok());
    assert!(begun.elapsed() < 2 * patience + Duration::from_secs(3), "{:?}", begun.elapsed());
    holder.execute_batch("COMMIT").unwrap();
}
