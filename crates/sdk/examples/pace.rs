//! Prints what the parts of a call through a toolbox cost, as JSON, for `cargo xtask bench sdk`: rounds in turn, so that what
//! disturbs one contestant disturbs the others too.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints its measurements")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Builder;
use unstuck::measured::{Bus, Check};
use unstuck::{Annotations, Channel, Failure, Session, Store, ToolCall, ToolContext, Toolbox, tool_fn};

#[derive(Deserialize, JsonSchema)]
struct Place {
    city: String,
    days: u32,
}

async fn forecast(place: Place) -> Result<String, Failure> {
    Ok(format!("{} days of sun over {}", place.days, place.city))
}

fn input(n: u32) -> Value {
    json!({ "city": "Paris", "days": n })
}

/// What one takes of many, in microseconds.
fn each(span: Duration, count: u32) -> f64 {
    span.as_secs_f64() * 1e6 / f64::from(count)
}

fn toolbox(store: Option<Store>) -> Toolbox {
    let tool = tool_fn("forecast", "Tells the weather.", |place: Place, _: ToolContext| forecast(place))
        .annotated(Annotations::new().read_only());
    let builder = Toolbox::builder().tool(tool);
    store.into_iter().fold(builder, |builder, store| builder.store(store)).build().unwrap()
}

async fn bare(count: u32) -> f64 {
    let begun = Instant::now();
    for n in 0..count {
        let place: Place = serde_json::from_value(input(n)).unwrap();
        let output = forecast(place).await.map(|output| serde_json::to_value(output).unwrap());
        black_box(output.unwrap());
    }
    each(begun.elapsed(), count)
}

async fn through(tools: &Toolbox, count: u32) -> f64 {
    let session = Session::new();
    let begun = Instant::now();
    for n in 0..count {
        let result = tools.call(ToolCall::new("forecast", input(n)).session(&session)).await;
        assert!(black_box(result).is_ok());
    }
    each(begun.elapsed(), count)
}

/// Calls that do not wait for the disk: what one costs its caller, one after the other with pauses in which the store keeps up,
/// and how many in a second reach the disk where they come without a pause.
async fn unwaited(store: Store, count: u32) -> Value {
    let tools = toolbox(Some(store));
    let session = Session::new();
    let (mut spent, mut calls) = (Duration::ZERO, 0);
    for n in 0..2_000 {
        let call = ToolCall::new("forecast", input(n)).session(&session);
        let begun = Instant::now();
        assert!(black_box(tools.call(call).await).is_ok());
        // The first one waits, to learn that there is nothing to wait for.
        if n > 0 {
            (spent, calls) = (spent + begun.elapsed(), calls + 1);
        }
        if n % 50 == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let begun = Instant::now();
    through(&tools, count).await;
    tools.shutdown().await;
    json!({ "each": each(spent, calls), "sustained": f64::from(count) / begun.elapsed().as_secs_f64() })
}

/// Events per second, published and read on one thread, to so many subscribers.
fn events(subscribers: usize, count: u64) -> f64 {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let bus = Bus::new(4096);
        let readers: Vec<_> = (0..subscribers)
            .map(|_| {
                let mut progress = bus.bus.subscribe([Channel::Progress]);
                tokio::spawn(async move {
                    for _ in 0..count {
                        black_box(progress.next().await.unwrap());
                    }
                })
            })
            .collect();
        let begun = Instant::now();
        for n in 0..count {
            bus.publish(n);
            if n % 64 == 63 {
                tokio::task::yield_now().await;
            }
        }
        for reader in readers {
            reader.await.unwrap();
        }
        count as f64 / begun.elapsed().as_secs_f64()
    })
}

fn serde_alone(count: u32, value: &Value) -> f64 {
    let begun = Instant::now();
    for _ in 0..count {
        black_box(Place::deserialize(black_box(value)).unwrap());
    }
    each(begun.elapsed(), count)
}

fn checked(count: u32, value: &Value, check: &Check) -> f64 {
    let begun = Instant::now();
    for _ in 0..count {
        assert!(check.fits(black_box(value)));
        black_box(Place::deserialize(black_box(value)).unwrap());
    }
    each(begun.elapsed(), count)
}

fn main() {
    let rounds: u32 = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(9);
    let folder = tempfile::tempdir().unwrap();
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let check = Check::new(&schema_for!(Place).to_value());
    for _ in 0..rounds {
        let store = Store::at(folder.path().join("state"));
        let calls = runtime.block_on(runtime.spawn(async move {
            let bare = bare(50_000).await;
            let memory = through(&toolbox(None), 50_000).await;
            let stored = through(&toolbox(Some(store.clone())), 300).await;
            let unwaited = unwaited(store.without_waiting(), 20_000).await;
            json!({ "bare": bare, "memory": memory, "stored": stored, "unwaited": unwaited })
        }));
        let round = json!({
            "call": calls.unwrap(),
            "events": { "1": events(1, 1_000_000), "10": events(10, 200_000), "100": events(100, 30_000) },
            "validation": { "serde": serde_alone(200_000, &input(3)), "checked": checked(200_000, &input(3), &check) },
        });
        println!("{round}");
    }
}
