//! Reads what a server sends for as long as it sends it.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout, timeout_at};
use unstuck_wire::mcp::{EventStream, StreamStep};

use super::client::broken_words;
use super::line::Line;
use crate::mcp::loads::{Growing, Loads};

/// So long the end of a stream is waited for after its last word, so that the connection can be used again.
const FAREWELL: Duration = Duration::from_millis(500);
/// So long the rest of what is of no use is waited for.
const REFUSAL_TIME: Duration = Duration::from_secs(5);

/// The next piece of a body. The error says what went wrong.
pub(super) async fn next(body: &mut Incoming) -> Option<Result<Bytes, String>> {
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?;
        match frame {
            Ok(frame) => match frame.into_data() {
                Ok(data) => return Some(Ok(data)),
                // Headers may also come at the end; none is of use.
                Err(_) => continue,
            },
            Err(error) => return Some(Err(broken_words(&error))),
        }
    }
}

/// So long one that may go on where there is little room holds up the others, if nothing comes of it.
const STALLED: Duration = Duration::from_secs(2);

/// The next piece of a body, once there is room for it.
async fn next_with_room(body: &mut Incoming, growing: &mut Growing) -> Option<Result<Bytes, String>> {
    growing.room().await;
    match timeout(STALLED, next(body)).await {
        Ok(piece) => piece,
        Err(_) => {
            growing.give_way();
            next(body).await
        }
    }
}

/// A body that is read as a whole.
pub(super) enum Whole {
    Read(Vec<u8>),
    TooLong(Vec<u8>),
    Broken(String),
}

/// Reads a body to its end, if it is not longer than allowed.
pub(super) async fn whole(mut body: Incoming, most: usize, inbound: &Arc<Loads>) -> Whole {
    let mut growing = inbound.growing();
    let expected = body.size_hint().exact().and_then(|size| usize::try_from(size).ok());
    let mut read = Vec::with_capacity(expected.unwrap_or(0).min(most).min(1 << 20));
    loop {
        match next_with_room(&mut body, &mut growing).await {
            None => return Whole::Read(read),
            Some(Err(why)) => return Whole::Broken(why),
            Some(Ok(piece)) => {
                let room = most.saturating_sub(read.len());
                read.extend_from_slice(&piece[..piece.len().min(room)]);
                if piece.len() > room {
                    return Whole::TooLong(read);
                }
                growing.holds(read.len());
            }
        }
    }
}

/// How a body begins, if that comes soon.
pub(super) async fn beginning(mut body: Incoming, most: usize) -> Vec<u8> {
    let mut read: Vec<u8> = Vec::new();
    let reading = async {
        while let Some(Ok(piece)) = next(&mut body).await {
            read.extend_from_slice(&piece[..piece.len().min(most - read.len())]);
            if read.len() == most {
                break;
            }
        }
    };
    // What came is enough.
    let _ = timeout(REFUSAL_TIME, reading).await;
    read
}

/// How a stream of events ended.
pub(super) enum Ended {
    /// By itself, or by a broken connection.
    Over(String),
    /// An event in it has no end.
    TooLong(Vec<u8>),
    /// Nobody listens any more.
    Unheard,
}

/// A stream of events, and what is known of it when it is taken up again.
pub(super) struct Events {
    most: usize,
    pub(super) last_id: Option<String>,
    pub(super) retry: Option<Duration>,
    /// Did anything come since somebody last asked?
    pub(super) moved: bool,
}

impl Events {
    pub(super) fn new(most: usize) -> Events {
        Events { most, last_id: None, retry: None, moved: false }
    }

    /// Passes on what comes in a stream until it ends. Once `done` says so, the end is waited for only briefly.
    pub(super) async fn pass_on(
        &mut self,
        mut body: Incoming,
        line: &Line,
        done: impl Fn() -> bool,
    ) -> Ended {
        let mut reader = EventStream::new(self.most);
        let mut growing = line.inbound.growing();
        let mut leaves_at = None;
        loop {
            let piece = match done() {
                false => next_with_room(&mut body, &mut growing).await,
                true => {
                    let at = *leaves_at.get_or_insert_with(|| Instant::now() + FAREWELL);
                    match timeout_at(at, next_with_room(&mut body, &mut growing)).await {
                        Ok(piece) => piece,
                        Err(_) => return Ended::Over("the stream was left".to_owned()),
                    }
                }
            };
            let words = match piece {
                Some(Ok(piece)) => {
                    self.moved = true;
                    let mut bytes = &piece[..];
                    while let Some(step) = reader.read(&mut bytes) {
                        match step {
                            StreamStep::Message(frame) => {
                                self.remember(&reader);
                                growing.holds(reader.held());
                                growing.give_way();
                                if line.hear(frame).await.is_err() {
                                    return Ended::Unheard;
                                }
                            }
                            StreamStep::TooLong { begins } => return Ended::TooLong(begins),
                        }
                    }
                    self.remember(&reader);
                    growing.holds(reader.held());
                    continue;
                }
                Some(Err(words)) => format!("transfer closed with outstanding read data: {words}"),
                None => "transfer closed with outstanding read data: the stream ended before the answer came"
                    .to_owned(),
            };
            // A last event without its empty line counts only if it is whole.
            if let Some(rest) = reader.rest()
                && line.is_answer(&rest)
                && line.hear(rest).await.is_err()
            {
                return Ended::Unheard;
            }
            return Ended::Over(words);
        }
    }

    fn remember(&mut self, reader: &EventStream) {
        if let Some(id) = reader.last_id() {
            self.last_id = Some(id.to_owned());
        }
        self.retry = reader.retry().or(self.retry);
    }
}
