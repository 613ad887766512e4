//! Takes what is to be said in its order and sends it out, each frame on its own way. It ends when nobody says or hears
//! anything any more, or when the session is over.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use unstuck_wire::mcp::{self, Message};

use super::carry::Carried;
use super::client::Turns;
use super::flights::{Awaited, Flight, Stage};
use super::line::Line;
use super::reading::Said;
use crate::mcp::link::{Asks, Outbound};

/// So long those that are under way may find out by themselves that their session is over: only they know then that the server
/// did not take them.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// So often somebody looks whether they did.
const LOOKS_EVERY: Duration = Duration::from_millis(10);

/// How it ends.
enum End {
    HungUp,
    Expired,
}

/// The method of a call of a tool.
const CALL: &str = "tools/call";

/// What waits until a frame has arrived before the next may go.
type Gate = oneshot::Receiver<()>;

/// Works until the end.
pub(super) async fn run(
    line: Line,
    mut outbound: mpsc::UnboundedReceiver<Outbound>,
    mut is_expired: mpsc::Receiver<()>,
) {
    let line = Arc::new(line);
    let mut ways = JoinSet::new();
    let mut waiting = VecDeque::new();
    let mut gate: Option<Gate> = None;
    let mut turns = Turns::default();
    let mut number = 0;
    let end = loop {
        while gate.is_none()
            && let Some(next) = waiting.pop_front()
        {
            number += 1;
            gate = send_out(&line, &mut ways, next, number, &mut turns);
        }
        tokio::select! {
            said = outbound.recv() => match said {
                Some(said) => waiting.extend(apart(said)),
                None => break End::HungUp,
            },
            Some(()) = is_expired.recv() => break End::Expired,
            () = line.heard.closed() => break End::HungUp,
            // Whether it was opened or let go, the way is free.
            _ = async { match &mut gate { Some(gate) => gate.await.ok(), None => None } }, if gate.is_some() => gate = None,
            Some(_) = ways.join_next(), if !ways.is_empty() => {}
        }
    };
    match end {
        End::HungUp => {
            ways.shutdown().await;
            line.give_back_session().await;
        }
        End::Expired => {
            // What they still say is heard.
            let _some_never_say_anything = timeout(LAST_WORDS, async {
                while line.flights.are_open() && !line.heard.is_closed() {
                    sleep(LOOKS_EVERY).await;
                }
            })
            .await;
            ways.shutdown().await;
            let mut untaken = line.flights.end_untaken();
            waiting.extend(std::iter::from_fn(|| outbound.try_recv().ok()).flat_map(apart));
            let asked = waiting.into_iter().filter_map(|out| out.asks);
            untaken.extend(asked.filter(|asks| asks.method == CALL).map(|asks| asks.id));
            line.tell_of_expiry(untaken).await;
        }
    }
}

/// What is said at once is said one by one: only one revision knows frames of several messages, and each has its own answer.
fn apart(said: Outbound) -> Vec<Outbound> {
    if said.asks.is_some() || !said.frame.trim_ascii_start().starts_with(b"[") {
        return vec![said];
    }
    let Ok(parts) = serde_json::from_slice::<Vec<&RawValue>>(&said.frame) else { return vec![said] };
    let parts = parts.into_iter().map(|part| {
        let asks = match mcp::read(part.get().as_bytes()) {
            Message::Request { id, method, .. } => Some(Asks { id, method: method.into_owned(), name: None }),
            Message::Notification { .. }
            | Message::Answer { .. }
            | Message::Batch(_)
            | Message::Other
            | Message::Broken => None,
        };
        Outbound::new(part.get().as_bytes().to_vec(), asks)
    });
    parts.collect()
}

/// Sends one frame on its way. Until the answer to `initialize` has begun nobody knows in which session the rest belongs, and
/// until the server has taken `notifications/initialized` it may refuse the rest.
fn send_out(
    line: &Arc<Line>,
    ways: &mut JoinSet<()>,
    out: Outbound,
    number: u64,
    turns: &mut Turns,
) -> Option<Gate> {
    let said = Said::read(&out.frame);
    let mut stops = None;
    if let Some(id) = &said.cancels {
        match line.flights.end(id) {
            // What never left needs not be taken back, and where each request stands for itself, to hang up is to say so.
            Some(flight) if flight.stateless || !flight.left.has_left() => {
                flight.task.iter().for_each(|task| task.abort());
                return None;
            }
            Some(flight) => stops = flight.task,
            None if line.is_stateless() => return None,
            None => {}
        }
    }
    let method = out.asks.as_ref().map(|asks| asks.method.as_str()).or(said.method.as_deref());
    let (gate, passed) = match method {
        Some("initialize" | "notifications/initialized") => {
            let (opens, gate) = oneshot::channel();
            (Some(gate), Some(opens))
        }
        _ => (None, None),
    };
    let waits_for = match method {
        Some("initialize") => Awaited::Version,
        Some("tools/list") => Awaited::Tools,
        _ => Awaited::Nothing,
    };
    let is_call = method == Some(CALL);
    let stateless = line.speaks(&said, waits_for == Awaited::Version);
    let (frame, asks) = (out.frame, out.asks.map(|asks| asks.id));
    let carried = Carried { frame, said, number, left: Default::default(), turn: Some(turns.next()), passed };
    match asks {
        Some(id) => {
            let left = carried.left.clone();
            let flight =
                Flight { number, waits_for, stateless, left, task: None, is_call, stage: Stage::Open };
            if let Some(other) = line.flights.begin(id.clone(), flight) {
                other.task.iter().for_each(|task| task.abort());
            }
            let task = ways.spawn(Arc::clone(line).ask(carried, id.clone(), stateless));
            line.flights.carried_by(&id, number, task);
        }
        None => {
            let line = Arc::clone(line);
            ways.spawn(async move {
                line.tell(carried).await;
                stops.iter().for_each(|task| task.abort());
            });
        }
    }
    gate
}
