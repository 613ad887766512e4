//! Looks after the server: starts it, hears it, and starts it again when it is gone, as if it had never been. One that dies again
//! and again is left alone for a while.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout};
use unstuck::CancellationToken;
use unstuck_judge::quote;
use unstuck_judge::retry::{Breaker, BreakerEvent, BreakerRules, Gate};
use unstuck_wire::mcp::{self, Id, Message, ToolList};

use super::child::{self, ServerCommand};
use super::http::{self, HttpSettings};
use super::link::{Asks, Gone, Heard, Link, Outbound};
use super::notes::Happened;
use super::outlet::Outlet;
use super::switchboard::{Came, Presence, Switchboard, Waiting};
use crate::cellar;

/// When a server that keeps dying is left alone, and for how long.
const RULES: BreakerRules = BreakerRules {
    window: 5,
    least_calls: 5,
    trip_percent: 100,
    open: Duration::from_secs(30),
    longest_open: Duration::from_secs(300),
};
/// The first wait before a server is started again; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(8);
/// A server that lived for so long did not die of its start.
const LIVED: Duration = Duration::from_secs(30);
/// How long a server that was started again may take for its part of the handshake.
const GREETING: Duration = Duration::from_secs(30);
/// And how long for each wish of the client that is told to it again.
const WISH: Duration = Duration::from_secs(3);
/// So many lines of what it said to people are told with its end.
const REMARKS: usize = 20;
/// Maximum length of what is quoted of them, in characters.
const LAST_WORDS: usize = 300;
/// More pages than this no list has.
const PAGES: usize = 100;

/// How the server is reached.
pub(crate) enum Way {
    Command(ServerCommand),
    Http(Box<HttpSettings>),
}

/// Looks after one server.
pub(super) struct Supervisor {
    pub(super) board: Arc<Switchboard>,
    pub(super) outlet: Outlet,
    pub(super) way: Way,
    /// Is it started again at all?
    pub(super) restarts: bool,
    /// The client is gone, or somebody ended us.
    pub(super) leaving: CancellationToken,
    /// There is no time for a server to go by itself.
    pub(super) hurry: CancellationToken,
    pub(super) doubts: Arc<Doubts>,
}

/// Whether the server still lives, where somebody doubts it.
pub(super) struct Doubts {
    is_asked: AtomicBool,
    /// It does not.
    hangs: Notify,
    /// How many frames had come when it was doubted.
    heard: AtomicU64,
    patience: Duration,
}

impl Supervisor {
    /// Stays with the server until it is gone for good.
    pub(super) async fn keep(self) -> Gone {
        let mut breaker = Breaker::NEW;
        let mut is_first = true;
        let mut deaths = 0_u32;
        let mut remarks = VecDeque::new();
        // It was left alone, and is tried again.
        let mut is_probe = false;
        loop {
            let began = Instant::now();
            // Only its session is over.
            let mut lives = false;
            let gone = match self.open() {
                Err(gone) => gone,
                Ok((link, pid)) => {
                    self.board.notes.tell(Happened::Started { pid });
                    let broken = Arc::new(Notify::new());
                    let mut greeting = None;
                    match std::mem::take(&mut is_first) {
                        true => self.board.up(link.to.clone()),
                        false => greeting = Some(tokio::spawn(self.greeting(link.to.clone(), &broken))),
                    }
                    let gone = self.listen(link, &broken, &mut remarks, &mut is_probe, &mut lives).await;
                    // Nobody introduces anybody to a server that is gone, or the next one would never be heard.
                    if let Some(greeting) = greeting {
                        greeting.abort();
                        drop(greeting.await);
                    }
                    gone
                }
            };
            let told: Vec<String> = remarks.iter().cloned().collect();
            let words = with_remarks(&gone.words, &told);
            self.board.notes.tell(Happened::Exited {
                words: gone.words.clone(),
                code: gone.code,
                remarks: told,
            });
            if self.leaving.is_cancelled() || !self.restarts || !self.board.has_spoken() {
                self.board.gone(Presence::Over(words.clone()), &words);
                return Gone { words, ..gone };
            }
            if began.elapsed() >= LIVED {
                deaths = 0;
                breaker = breaker.step(BreakerEvent::Passed, cellar::now(), &RULES);
            }
            // One that went by itself, without a complaint and after it had heard everything, did not die.
            let went_home = gone.code == Some(0) && !self.board.is_awaited();
            if !went_home && !lives {
                deaths += 1;
                breaker = breaker.step(BreakerEvent::Failed, cellar::now(), &RULES);
            }
            if let Gate::Shut(lasts) = breaker.gate(cellar::now(), &RULES) {
                let why = format!("{words}; it died {deaths} times in a row and is left alone for a while");
                self.board.notes.tell(Happened::Shut { why: why.clone(), lasts });
                self.board.gone(Presence::Shut { why: why.clone(), until: Instant::now() + lasts }, &why);
                if !self.waits(lasts).await {
                    return self.over(gone);
                }
                breaker = breaker.step(BreakerEvent::Asked, cellar::now(), &RULES);
                is_probe = true;
                self.board.set(Presence::Away);
            } else {
                self.board.gone(Presence::Starting, &words);
            }
            // It is not called back before it is needed.
            if went_home {
                self.board.rest();
            }
            if !self.is_needed().await {
                return self.over(gone);
            }
            let wait = FIRST_WAIT.saturating_mul(1 << deaths.saturating_sub(1).min(16)).min(LONGEST_WAIT);
            if !self.waits(wait).await {
                return self.over(gone);
            }
            self.board.notes.tell(Happened::Restarted { attempt: deaths.max(1), waited: wait });
            remarks.clear();
        }
    }

    /// Introduces the client again, as long as it is there.
    fn greeting(
        &self,
        to: mpsc::UnboundedSender<Outbound>,
        broken: &Arc<Notify>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (board, broken, leaving) = (Arc::clone(&self.board), Arc::clone(broken), self.leaving.clone());
        async move {
            tokio::select! {
                () = greet(board, to, broken) => {}
                () = leaving.cancelled() => {}
            }
        }
    }

    fn open(&self) -> Result<(Link, Option<u32>), Gone> {
        match &self.way {
            Way::Command(command) => {
                let opened = child::open(command, &self.board.inbound, &self.hurry);
                opened.map(|(link, pid)| (link, Some(pid)))
            }
            Way::Http(settings) => {
                Ok((http::open((**settings).clone(), Arc::clone(&self.board.inbound)), None))
            }
        }
    }

    /// Hears the server until it is gone.
    async fn listen(
        &self,
        link: Link,
        broken: &Notify,
        remarks: &mut VecDeque<String>,
        is_probe: &mut bool,
        lives: &mut bool,
    ) -> Gone {
        let Link { to, mut from, over } = link;
        // Held by the switchboard alone from now on, so that it ends when nobody says anything any more.
        drop(to);
        loop {
            self.outlet.room().await;
            let heard = tokio::select! {
                biased;
                heard = from.recv() => heard,
                () = self.doubts.hangs.notified() => {
                    // What it said may have waited for a client that does not read.
                    if self.board.heard() != self.doubts.heard.load(Ordering::SeqCst) {
                        continue;
                    }
                    self.board.notes.tell(Happened::Unresponsive { silent_for: self.doubts.patience });
                    let words = format!("the server said nothing for {} s and was ended", self.doubts.patience.as_secs());
                    end(from, over).await;
                    return Gone { words, code: None };
                }
                () = broken.notified() => {
                    let words = "the server was started again and did not take up the handshake".to_owned();
                    end(from, over).await;
                    return Gone { words, code: None };
                }
            };
            match heard {
                Some(Heard::Frame(frame)) => {
                    if std::mem::take(is_probe) {
                        self.board.notes.tell(Happened::Recovered);
                    }
                    self.board.hear_server(frame);
                }
                Some(Heard::Noise { begins, why }) => self.board.noise(begins, why),
                Some(Heard::Refused { glimpse, why }) => self.board.refuse_server(&glimpse, &why.in_words()),
                Some(Heard::Unanswered { id, why }) => self.board.unanswered(&id, why),
                Some(Heard::Remark(line)) => {
                    self.board.notes.remark(line.clone());
                    if remarks.len() == REMARKS {
                        remarks.pop_front();
                    }
                    remarks.push_back(line);
                }
                Some(Heard::Expired(gone)) => {
                    *lives = true;
                    return gone;
                }
                Some(Heard::Gone(gone)) => return gone,
                None => return Gone { words: "the server is gone".to_owned(), code: None },
            }
        }
    }

    /// Waits until somebody needs a server that is away. Tells whether anybody can.
    async fn is_needed(&self) -> bool {
        loop {
            if !self.board.is_away() {
                return !self.leaving.is_cancelled();
            }
            tokio::select! {
                () = self.board.wanted.notified() => self.board.set(Presence::Starting),
                () = self.leaving.cancelled() => return false,
            }
        }
    }

    async fn waits(&self, wait: Duration) -> bool {
        tokio::select! {
            () = sleep(wait) => true,
            () = self.leaving.cancelled() => false,
        }
    }

    fn over(&self, gone: Gone) -> Gone {
        self.board.gone(Presence::Over(gone.words.clone()), &gone.words);
        gone
    }
}

/// Ends a link, and comes back when the server is gone: the next one may need what it has.
async fn end(from: mpsc::Receiver<Heard>, over: CancellationToken) {
    drop(from);
    let _it_does_not_go = timeout(GREETING, over.cancelled()).await;
}

/// Introduces the client again to a server that was started again, and only then lets them talk.
async fn greet(board: Arc<Switchboard>, to: mpsc::UnboundedSender<Outbound>, broken: Arc<Notify>) {
    let handshake = board.introduction();
    if let Some(params) = handshake.initialize.filter(|_| handshake.is_answered) {
        let answer = timeout(GREETING, ask(&board, &to, "initialize", &params)).await;
        let is_welcome = matches!(&answer, Ok(Some(frame)) if matches!(mcp::read(frame), Message::Answer { came: Ok(_), .. }));
        if !is_welcome {
            broken.notify_one();
            return;
        }
        if let Some(frame) = handshake.initialized {
            let _it_is_gone = to.send(Outbound::new(frame, None));
        }
        for wish in handshake.wishes {
            let _nobody_waits_for_long = timeout(WISH, ask(&board, &to, wish.method, &wish.params)).await;
        }
    }
    board.up(to.clone());
    if board.with_catalogue(|catalogue| catalogue.was_listed()) {
        let _an_old_list_is_better_than_none = timeout(GREETING, relist(&board, &to)).await;
    }
}

/// Looks whether a server that was started again has the tools that it had, and tells the client where it has not.
async fn relist(board: &Arc<Switchboard>, to: &mpsc::UnboundedSender<Outbound>) {
    let meta = match board.greeting() {
        greeting if board.handshake().initialize.is_none() => json!({
            mcp::VERSION_KEY: greeting.version, "io.modelcontextprotocol/clientCapabilities": {},
        }),
        _ => json!({}),
    };
    let mut params = json!({ "_meta": meta });
    let before = board.with_catalogue(|catalogue| catalogue.digests());
    for _ in 0..PAGES {
        let Some(frame) = ask(board, to, "tools/list", &params.to_string()).await else { return };
        let Message::Answer { came: Ok(result), .. } = mcp::read(&frame) else { return };
        let Some(list) = ToolList::of(result) else { return };
        let cursor = list.next.clone();
        board.list(params["cursor"].as_str(), list);
        match cursor {
            Some(cursor) => params["cursor"] = cursor.into(),
            None => break,
        }
    }
    if board.with_catalogue(|catalogue| catalogue.digests()) != before {
        board.say(mcp::notified("notifications/tools/list_changed", &json!({})));
    }
}

/// Asks something of our own.
async fn ask(
    board: &Arc<Switchboard>,
    to: &mpsc::UnboundedSender<Outbound>,
    method: &str,
    params: &str,
) -> Option<Vec<u8>> {
    let id = board.name();
    let (tell, told) = oneshot::channel();
    board.expect(&id, Waiting::Us(tell));
    let asks = Some(Asks { id: id.clone(), method: method.to_owned(), name: None });
    to.send(Outbound::new(mcp::request(&id, method, params), asks)).ok()?;
    match told.await.ok()? {
        Came::Answer(frame, _nothing_of_it_goes_to_the_client) => Some(frame.frame),
        Came::Refused(_) | Came::Lost(_) => None,
    }
}

impl Doubts {
    pub(super) fn new(patience: Duration) -> Arc<Doubts> {
        Arc::new(Doubts {
            is_asked: AtomicBool::new(false),
            hangs: Notify::new(),
            heard: AtomicU64::new(0),
            patience,
        })
    }

    /// Somebody has waited in vain: looks whether the server still says anything at all.
    pub(super) fn look(self: &Arc<Doubts>, board: &Arc<Switchboard>) {
        if self.is_asked.swap(true, Ordering::SeqCst) {
            return;
        }
        let (doubts, board) = (Arc::clone(self), Arc::clone(board));
        tokio::spawn(async move {
            let (before, reliefs) = (board.heard(), board.inbound.reliefs());
            doubts.heard.store(before, Ordering::SeqCst);
            let id: Id = board.name();
            let (tell, told) = oneshot::channel();
            if board.probe(&id, Waiting::Us(tell)) {
                let answer = timeout(doubts.patience, told).await;
                board.forget(&id);
                // A server that is held up by the client says nothing, either.
                if answer.is_err() && board.heard() == before && board.inbound.had_room_since(reliefs) {
                    doubts.hangs.notify_one();
                }
            }
            doubts.is_asked.store(false, Ordering::SeqCst);
        });
    }
}

/// How it ended, with what it said last to people.
fn with_remarks(words: &str, remarks: &[String]) -> String {
    let last: Vec<&str> = remarks.iter().rev().take(3).rev().map(|line| line.trim()).collect();
    match last.is_empty() {
        true => words.to_owned(),
        false => format!("{words}; its last words: {}", quote::fenced(&last.join(" | "), LAST_WORDS)),
    }
}
