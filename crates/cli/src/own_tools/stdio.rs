//! Serves tools on standard input and output. Nothing but frames goes out.
//!
//! Both pipes have a thread of their own, so that a client that reads slowly holds up nobody but itself.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rmcp::ServiceExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;
use unstuck::rmcp::McpTools;
use unstuck_wire::mcp::{self, ErrorCode, Framer, Glimpse, Id, Message, Piece, Sort};

/// How many frames wait between a pipe and the rest.
const FRAMES: usize = 64;
/// The longest frame that is taken.
const FRAME_MAX: usize = 16 * 1024 * 1024;
/// How much is read at once.
const AT_ONCE: usize = 64 * 1024;
/// How much is on its way inside.
const INSIDE: usize = 64 * 1024;
/// A client that has said its last word still gets its answers, each within this time of the one before.
const LAST_ANSWERS: Duration = Duration::from_secs(60);

/// Serves until the client closes its end.
pub(crate) fn serve(tools: McpTools) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let outgoing = to_client()?;
    let incoming = from_client(outgoing.frames.downgrade());
    let served = runtime.block_on(talk(tools, incoming, outgoing));
    // Whoever still blocks has nobody left to answer.
    runtime.shutdown_background();
    served
}

async fn talk(tools: McpTools, incoming: mpsc::Receiver<Vec<u8>>, outgoing: Outgoing) -> io::Result<()> {
    let open = Arc::new(Open::default());
    let (ours, theirs) = tokio::io::duplex(INSIDE);
    let (said, mut to_server) = tokio::io::split(ours);
    let asked = Arc::clone(&open);
    let hearing = tokio::spawn(async move {
        let mut incoming = incoming;
        while let Some(mut frame) = incoming.recv().await {
            asked.note_asked(&frame);
            frame.push(b'\n');
            if to_server.write_all(&frame).await.is_err() {
                return;
            }
        }
        asked.all_answered().await;
        let _it_may_be_gone_already = to_server.shutdown().await;
    });
    let Outgoing { frames, written } = outgoing;
    let answered = Arc::clone(&open);
    let saying = tokio::spawn(async move {
        let mut said = BufReader::new(said);
        let mut line = Vec::new();
        while matches!(said.read_until(b'\n', &mut line).await, Ok(count) if count > 0) {
            answered.note_answered(&line);
            if frames.send(std::mem::take(&mut line)).await.is_err() {
                answered.nobody_hears();
                return;
            }
        }
    });
    // A client that leaves before it has introduced itself is none of ours to complain about.
    if let Ok(server) = tools.serve(theirs).await {
        let _how_it_ended = server.waiting().await;
    }
    hearing.abort();
    let _all_is_said = saying.await;
    // The thread that writes ends when there is nothing more to write.
    let written = tokio::task::spawn_blocking(move || written.join()).await;
    match written {
        Ok(Ok(Err(error))) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        // A client that has gone has heard enough, and the thread never panics.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Requests that have no answer yet.
#[derive(Default)]
struct Open {
    ids: Mutex<HashSet<Id>>,
    fewer: Notify,
}

/// What is said of a request that is taken back.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCancelled<'f> {
    #[serde(borrow)]
    request_id: &'f RawValue,
}

impl Open {
    fn ids(&self) -> MutexGuard<'_, HashSet<Id>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_asked(&self, frame: &[u8]) {
        match mcp::read(frame) {
            Message::Request { id, .. } => drop(self.ids().insert(id)),
            // What is taken back has no answer.
            Message::Notification { method, params: Some(params) } if method == "notifications/cancelled" => {
                let taken_back = serde_json::from_str::<WireCancelled<'_>>(params.get()).ok();
                if let Some(id) = taken_back.and_then(|taken_back| Id::of(taken_back.request_id.get())) {
                    self.close(&id);
                }
            }
            Message::Notification { .. }
            | Message::Answer { .. }
            | Message::Batch(_)
            | Message::Other
            | Message::Broken => {}
        }
    }

    fn note_answered(&self, frame: &[u8]) {
        if let Message::Answer { id: Some(id), .. } = mcp::read(frame) {
            self.close(&id);
        }
    }

    fn close(&self, id: &Id) {
        self.ids().remove(id);
        self.fewer.notify_one();
    }

    fn nobody_hears(&self) {
        self.ids().clear();
        self.fewer.notify_one();
    }

    /// Comes back when all are answered, or nobody can hope for more.
    async fn all_answered(&self) {
        while !self.ids().is_empty() && timeout(LAST_ANSWERS, self.fewer.notified()).await.is_ok() {}
    }
}

/// What the client says, frame by frame, until it closes its end. One that is too long is refused at once.
fn from_client(answers: mpsc::WeakSender<Vec<u8>>) -> mpsc::Receiver<Vec<u8>> {
    let (frames, incoming) = mpsc::channel(FRAMES);
    thread::spawn(move || {
        let (mut framer, mut buffer) = (Framer::new(FRAME_MAX), vec![0; AT_ONCE]);
        let mut input = io::stdin().lock();
        let mut take = |piece| match piece {
            // Where nobody takes it any more, nobody reads the next one either.
            Piece::Frame(frame) => drop(frames.blocking_send(frame)),
            // Its messages are told of one by one.
            Piece::TooLong(_) => {}
            Piece::Within(glimpse) => refuse(&answers, &glimpse),
        };
        loop {
            let count = match input.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => break,
                Ok(count) => count,
            };
            framer.feed(&buffer[..count], &mut take);
            if frames.is_closed() {
                return;
            }
        }
        framer.finish(&mut take);
    });
    incoming
}

/// Answers a message that is too long. The answer to a question would answer nothing: none is asked here.
fn refuse(answers: &mpsc::WeakSender<Vec<u8>>, glimpse: &Glimpse) {
    if glimpse.sort == Sort::Answer {
        return;
    }
    let message = format!("a frame may have {FRAME_MAX} bytes at most");
    let mut frame = mcp::failed(glimpse.id.as_ref(), ErrorCode::Refused, &message, None);
    frame.push(b'\n');
    let _nobody_may_hear_it = answers.upgrade().map(|answers| answers.blocking_send(frame));
}

/// The way to the client.
struct Outgoing {
    frames: mpsc::Sender<Vec<u8>>,
    written: thread::JoinHandle<io::Result<()>>,
}

/// Whoever prints for people holds standard output; frames take a way of their own.
fn to_client() -> io::Result<Outgoing> {
    let mut output = File::from(output()?);
    let (frames, mut outgoing) = mpsc::channel::<Vec<u8>>(FRAMES);
    let written = thread::spawn(move || {
        while let Some(frame) = outgoing.blocking_recv() {
            output.write_all(&frame)?;
        }
        Ok(())
    });
    Ok(Outgoing { frames, written })
}

#[cfg(unix)]
fn output() -> io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::AsFd;
    io::stdout().as_fd().try_clone_to_owned()
}

#[cfg(windows)]
fn output() -> io::Result<std::os::windows::io::OwnedHandle> {
    use std::os::windows::io::AsHandle;
    io::stdout().as_handle().try_clone_to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_open_until_it_is_answered_or_taken_back() {
        let open = Open::default();
        let check = |expected: &[&str]| {
            let mut ids: Vec<String> = open.ids().iter().map(Id::to_string).collect();
            ids.sort();
            assert_eq!(ids, expected);
        };
        for frame in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":3,"result":{}}"#,
            "no JSON",
        ] {
            open.note_asked(frame.as_bytes());
        }
        check(&["\"1\"", "1", "7"]);
        open.note_asked(br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
        open.note_answered(br#"{"jsonrpc":"2.0","id":"1","result":{}}"#);
        open.note_answered(br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#);
        check(&["1"]);
        open.note_answered(br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"x"}}"#);
        check(&[]);
    }
}
