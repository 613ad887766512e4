//! Puts requests on the wire and follows where they are led, within one origin. Connections are used again, but not after
//! they have been idle for long: a dead one would leave nobody knowing whether a request got through.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, LOCATION};
use hyper::{Method, Request, Response, Uri};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::oneshot;
use tokio::time::{Timeout, timeout};
use unstuck_judge::quote;

use super::connector::{Connector, Unreachable, io_error, root};
use crate::http;

/// Some servers hang up on who was silent for five seconds.
const IDLE_MAX: Duration = Duration::from_secs(4);
const REDIRECTS_MAX: usize = 5;
/// So long a request waits for those before it.
const TURN_MAX: Duration = Duration::from_secs(1);

/// Who sends requests.
pub(super) struct Client(legacy::Client<Connector, Payload>);

/// A request that is to be sent.
pub(super) struct Letter {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Did it leave?
    pub(super) left: Left,
    /// Who leaves before it.
    pub(super) turn: Option<Turn>,
}

/// A place in the order in which requests leave. Their connections are made at the same time; whose turn has not come waits
/// with what it has to say until the one before has said it, or is gone, or has taken too long.
#[derive(Debug)]
pub(super) struct Turn {
    before: Option<Pin<Box<Timeout<oneshot::Receiver<Infallible>>>>>,
    /// When it is dropped, the next one leaves.
    _after: oneshot::Sender<Infallible>,
}

/// Gives out places in the order of leaving.
#[derive(Debug, Default)]
pub(super) struct Turns(Option<oneshot::Receiver<Infallible>>);

impl Turns {
    /// The next place.
    pub(super) fn next(&mut self) -> Turn {
        let (_after, next) = oneshot::channel();
        let before = self.0.replace(next).map(|before| Box::pin(timeout(TURN_MAX, before)));
        Turn { before, _after }
    }
}

/// Says whether a request was handed to a connection: before that nobody can have seen it.
#[derive(Debug, Clone, Default)]
pub(super) struct Left(Arc<AtomicBool>);

impl Left {
    pub(super) fn has_left(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// There is no answer.
#[derive(Debug)]
pub(super) struct Unsent {
    pub(super) words: String,
    pub(super) never_reached: bool,
    /// The status of an answer that led nowhere.
    pub(super) status: Option<u16>,
}

impl Client {
    pub(super) fn new(connect_limit: Duration) -> Client {
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_timer(TokioTimer::new())
            .build(Connector::new(connect_limit, Arc::new(http::proxy_for)));
        Client(client)
    }

    /// Sends it and waits for the beginning of the answer.
    pub(super) async fn send(&self, url: &Uri, mut letter: Letter) -> Result<Response<Incoming>, Unsent> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let (body, left, turn) = (letter.body.clone(), letter.left.clone(), letter.turn.take());
            let mut request = Request::new(Payload { body, left, turn });
            *request.method_mut() = letter.method.clone();
            *request.uri_mut() = url.clone();
            *request.headers_mut() = letter.headers.clone();
            let response = self.0.request(request).await.map_err(|error| Unsent {
                words: words_of(&error),
                never_reached: error.is_connect() || !letter.left.has_left(),
                status: None,
            })?;
            let status = response.status().as_u16();
            let (301 | 302 | 303 | 307 | 308, Some(location)) = (status, response.headers().get(LOCATION))
            else {
                return Ok(response);
            };
            let astray = |why: &str| Unsent {
                words: format!(
                    "HTTP {status}: the server leads on to {}, {why}",
                    quote::name(&String::from_utf8_lossy(location.as_bytes()))
                ),
                never_reached: false,
                status: Some(status),
            };
            let keeps_method = matches!(status, 307 | 308) || letter.method != Method::POST;
            let Some(next) = http::within_origin(&url, location.as_bytes()) else {
                return Err(astray("which is another place; what is meant for one is not sent to the other"));
            };
            if !keeps_method {
                return Err(astray("where it would not take the message along; use that address instead"));
            }
            url = next;
        }
        Err(Unsent { words: "too many redirects".to_owned(), never_reached: false, status: None })
    }
}

/// What went wrong, in words that the judge knows.
fn words_of(error: &legacy::Error) -> String {
    if let Some(unreachable) = error.source().and_then(|source| source.downcast_ref::<Unreachable>()) {
        return unreachable.words.clone();
    }
    match error.source().and_then(|source| source.downcast_ref::<hyper::Error>()) {
        Some(broken) => broken_words(broken),
        None => root(error).to_string(),
    }
}

/// What went wrong on a connection that was there.
pub(super) fn broken_words(error: &hyper::Error) -> String {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    match io_error(error) {
        _ if error.is_incomplete_message() => "empty reply from server".to_owned(),
        _ if error.is_parse() => format!("the answer is not valid HTTP: {error}"),
        Some(io) if matches!(io.kind(), BrokenPipe | ConnectionAborted | ConnectionReset) => {
            "connection reset by peer before there was an answer".to_owned()
        }
        Some(_) | None => root(error).to_string(),
    }
}

/// What is sent along.
struct Payload {
    body: Bytes,
    left: Left,
    turn: Option<Turn>,
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(Turn { before: Some(before), .. }) = &mut self.turn {
            // However the one before ended, it is out of the way.
            let _ = ready!(before.as_mut().poll(cx));
        }
        self.turn = None;
        self.left.0.store(true, Ordering::Relaxed);
        let body = std::mem::take(&mut self.body);
        Poll::Ready((!body.is_empty()).then_some(Ok(Frame::data(body))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.body.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_leave_in_their_order() {
        let mut turns = Turns::default();
        let mut payloads: Vec<Payload> = (0..4)
            .map(|_| Payload {
                body: Bytes::from_static(b"x"),
                left: Left::default(),
                turn: Some(turns.next()),
            })
            .collect();
        let leaves = |payload: &mut Payload| {
            let mut cx = Context::from_waker(std::task::Waker::noop());
            Pin::new(payload).poll_frame(&mut cx).is_ready()
        };
        assert!(!leaves(&mut payloads[1]) && !leaves(&mut payloads[3]));
        assert!(leaves(&mut payloads[0]) && leaves(&mut payloads[1]));
        assert!(!leaves(&mut payloads[3]) && !payloads[3].left.has_left());
        // Who is taken back holds up nobody.
        drop(payloads.remove(2));
        assert!(leaves(&mut payloads[2]) && payloads[2].left.has_left());
    }

    #[tokio::test]
    async fn nobody_waits_for_ever_for_the_one_before() {
        let mut turns = Turns::default();
        let _stuck = turns.next();
        let mut next =
            Payload { body: Bytes::from_static(b"x"), left: Left::default(), turn: Some(turns.next()) };
        let left = std::future::poll_fn(|cx| Pin::new(&mut next).poll_frame(cx)).await;
        assert!(left.is_some());
    }
}
