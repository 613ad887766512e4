//! The proxy: what the client says goes through the switchboard, its calls through a toolbox, and in the end everybody goes home.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;
use unstuck::{
    Annotations, BuildError, CallInfo, CancellationToken, Hook, Lang, Mode, Moment, Next, Policy, Preset,
    Store, ToolCall, Toolbox,
};
use unstuck_store::Source;
use unstuck_wire::mcp::{self, ErrorCode, Glimpse, Id, Piece};

use super::answer::{self, Manner};
use super::behind::Agents;
use super::catalogue::Known;
use super::client;
use super::intake::Intake;
use super::journey::{Behind, Forwarded, Journey};
use super::lane::Lane;
use super::link::{Gone, Inbound};
use super::notes::{Closing, Happened, Notes};
use super::outlet::Outlet;
use super::owed::Owed;
use super::supervisor::{Doubts, Supervisor, Way};
use super::switchboard::{Delivery, Heeded, Presence, Switchboard};
use crate::provenance;

/// Whoever is asked at the same time gets through: the server itself decides how much it does at once.
const AT_ONCE: usize = 1_000_000;
/// Without a limit an attempt may take as long as the client waits; none waits longer than this.
const NO_LIMIT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// When nothing more is asked, answers that are under way are waited for so long.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// How long the server may take to go, and what is written to be written.
const FAREWELL: Duration = Duration::from_secs(6);

/// The exit code where we could not do our work.
const OWN_FAULT: u8 = 125;

/// So long nobody calls anything when somebody else has the word.
const PAUSE_MS: u64 = 60_000;

/// On what terms a server is looked after.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// What the server is called.
    pub(crate) name: String,
    /// The session that all calls belong to.
    pub(crate) session: String,
    /// Are arguments checked before the server sees them?
    pub(crate) checks: bool,
    /// Is a server believed that says a tool only looks, or may be called twice?
    pub(crate) believes_hints: bool,
    pub(crate) retries: Option<u8>,
    /// Cells of the table of retries and waits, each as a policy file.
    pub(crate) cells: Vec<String>,
    pub(crate) limit: Option<Duration>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) agents: Agents,
    pub(crate) restarts: bool,
    /// A server that is asked for a sign of life and gives none for so long hangs.
    pub(crate) hangs_after: Duration,
    /// The longest frame.
    pub(crate) most: usize,
    pub(crate) lang: Lang,
    pub(crate) preset: Preset,
    pub(crate) mode: Mode,
    pub(crate) modes: Vec<(String, Mode)>,
    /// Where calls are remembered; nothing where nobody knows a place.
    pub(crate) store: Option<Remembers>,
}

/// Where calls are remembered, and what must not be.
#[derive(Debug, Clone)]
pub(crate) struct Remembers {
    pub(crate) path: PathBuf,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
}

/// What all parts of the proxy share.
pub(super) struct Proxy {
    pub(super) board: Arc<Switchboard>,
    /// What goes to the server.
    pub(super) server: Lane<Delivery>,
    pub(super) doubts: Arc<Doubts>,
    terms: Terms,
    toolbox: OnceLock<Toolbox>,
    journeys: Mutex<HashMap<String, Arc<Journey>>>,
    /// Which version of the catalogue is in the toolbox.
    shelved: tokio::sync::Mutex<()>,
    shelved_version: AtomicU64,
    calls: AtomicU64,
    /// When the last call was asked for, in milliseconds since 1970.
    last_call: AtomicU64,
    mark: String,
}

/// Stands between the client on our standard streams and a server, until one of them is gone. Tells the exit code.
///
/// # Errors
/// Where there is not even a runtime.
pub(crate) fn run(terms: Terms, way: Way, write: impl FnMut(Happened)) -> io::Result<u8> {
    // One thread: whatever is passed on is passed on by whoever read it, without a word to another one.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (notes, notebook) = Notes::new();
    let serving = thread::Builder::new().name("unstuck-mcp".to_owned()).spawn(move || {
        let _whatever_happens = Closing(notes.clone());
        let code = runtime.block_on(async move {
            let intake = Intake::new(io::stdin().as_fd().try_clone_to_owned()?, terms.most)?;
            let outlet = Outlet::new(File::from(io::stdout().as_fd().try_clone_to_owned()?))?;
            let code = serve(terms, way, intake, outlet.clone(), notes).await;
            outlet.take_error().map_or(Ok(code), Err)
        });
        runtime.shutdown_background();
        code
    })?;
    // What is written may block, so it is written here.
    notebook.write(write);
    serving.join().unwrap_or(Ok(OWN_FAULT))
}

async fn serve(terms: Terms, way: Way, mut intake: Intake, outlet: Outlet, notes: Notes) -> u8 {
    let proxy = match Proxy::new(terms, outlet.clone(), notes) {
        Ok(proxy) => proxy,
        Err(error) => {
            // No tool is in it yet, so none can be wrong.
            outlet.put(mcp::failed(None, ErrorCode::ServerGone, &error.to_string(), None));
            return OWN_FAULT;
        }
    };
    let leaving = CancellationToken::new();
    // Before there is a server: whoever ends us from now on ends it, too.
    let hurry = CancellationToken::new();
    let (end, ends) = (ended(), hurry.clone());
    tokio::spawn(async move {
        end.await;
        ends.cancel();
    });
    let supervisor = Supervisor {
        board: Arc::clone(&proxy.board),
        outlet: outlet.clone(),
        way,
        restarts: proxy.terms.restarts,
        leaving: leaving.clone(),
        hurry: hurry.clone(),
        doubts: Arc::clone(&proxy.doubts),
    };
    let mut keeping = tokio::spawn(supervisor.keep());
    let mut gone = None;
    let is_hurried = loop {
        tokio::select! {
            biased;
            () = hurry.cancelled() => break true,
            piece = async { proxy.board.loads.room().await; outlet.room().await; intake.next().await } => match piece {
                Some(Piece::Frame(frame)) => proxy.heed(frame),
                // Its messages are told of one by one.
                Some(Piece::TooLong(_)) => {}
                Some(Piece::Within(glimpse)) => proxy.refuse_long(&glimpse),
                None => break false,
            },
            () = outlet.closed() => break true,
            // The first call after a list need not wait until all of it is read.
            () = proxy.board.relisted.notified() => drop(tokio::spawn(Arc::clone(&proxy).reshelve())),
            kept = &mut keeping, if gone.is_none() => {
                gone = Some(kept.unwrap_or(Gone { words: String::new(), code: Some(OWN_FAULT.into()) }));
                // Whoever asks now is told why. A client that has been told goes by itself.
                let told = Arc::clone(&proxy.board);
                let (leaving, outlet) = (leaving.clone(), outlet.clone());
                let is_left_to_client = !proxy.terms.restarts && proxy.board.has_spoken();
                tokio::spawn(async move {
                    match is_left_to_client {
                        true => told.settled().await,
                        false => told.refused().await,
                    }
                    outlet.drained(FAREWELL).await;
                    leaving.cancel();
                });
            }
            () = leaving.cancelled() => break true,
        }
    };
    if !is_hurried {
        let _some_answers_never_come = tokio::select! {
            answered = timeout(LAST_ANSWERS, proxy.board.settled()) => answered.is_ok(),
            () = outlet.abandoned() => false,
            () = hurry.cancelled() => false,
        };
    }
    if gone.is_none() && keeping.is_finished() {
        gone = (&mut keeping).await.ok();
    }
    leaving.cancel();
    proxy.board.set(Presence::Over("unstuck is ending".to_owned()));
    let farewell = async {
        if gone.is_none() {
            drop((&mut keeping).await);
        }
        if let Some(toolbox) = proxy.toolbox.get() {
            toolbox.shutdown().await;
        }
    };
    let _it_takes_too_long = timeout(FAREWELL, farewell).await;
    outlet.drained(FAREWELL).await;
    gone.map_or(0, |gone| gone.code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Comes back when somebody asks us to end. It listens at once.
fn ended() -> impl Future<Output = ()> {
    let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
    async move {
        let [Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)] = kinds else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

impl Proxy {
    fn new(terms: Terms, outlet: Outlet, notes: Notes) -> Result<Arc<Proxy>, BuildError> {
        let mark = format!("{:08x}", crate::cellar::random() as u32);
        let board = Switchboard::new(outlet, notes, mark.clone());
        let said = Arc::clone(&board);
        let proxy = Arc::new(Proxy {
            server: Lane::new(move |delivery| said.deliver(delivery)),
            doubts: Doubts::new(terms.hangs_after),
            toolbox: OnceLock::new(),
            journeys: Mutex::default(),
            shelved: tokio::sync::Mutex::default(),
            shelved_version: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            last_call: AtomicU64::new(0),
            board,
            terms,
            mark,
        });
        let toolbox = proxy.make_toolbox()?;
        let _it_is_the_first = proxy.toolbox.set(toolbox);
        Ok(proxy)
    }

    fn make_toolbox(self: &Arc<Proxy>) -> Result<Toolbox, BuildError> {
        let terms = &self.terms;
        let mut policy = Policy::default()
            .timeout(terms.limit.unwrap_or(NO_LIMIT))
            .concurrency(AT_ONCE)
            .max_input(terms.most)
            .ladder(terms.preset)
            .mode(terms.mode)
            .language(terms.lang)
            .lenient_arguments()
            // Agents have other tools beside those of a server.
            .partial_view();
        for (tool, mode) in &terms.modes {
            policy = policy.mode_of(tool, *mode);
        }
        for cell in &terms.cells {
            // One that does not fit was told when the settings were read.
            policy = policy.clone().overlaid(cell).unwrap_or(policy);
        }
        if let Some(retries) = terms.retries {
            policy = policy.retries(retries);
        }
        let mut builder = Toolbox::builder()
            .policy(policy)
            .namespace(format!("mcp__{}__", plain(&terms.name)))
            .session(terms.session.as_str())
            .without_threads()
            .event_capacity(0)
            .hook(Announcer(Arc::downgrade(self)));
        if let Some(remembers) = &terms.store {
            let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
            let variables = std::env::vars_os().map(|(name, value)| (text(name), text(value)));
            let mut store = Store::at(&remembers.path).door("mcp").variables(variables).without_waiting();
            if provenance::of_proxy() != Source::Ran {
                store = store.unwatched();
            }
            if let Some(folder) = &remembers.folder {
                store = store.folder(folder);
            }
            if let Some(home) = &remembers.home {
                store = store.home(home);
            }
            builder = builder.store(store);
        }
        builder.build()
    }

    /// The client said something that is too long.
    fn refuse_long(&self, glimpse: &Glimpse) {
        let words = format!("a message of more than {} MB", self.terms.most / 1024 / 1024);
        self.board.refuse_client(glimpse, &words);
    }

    /// The client said something.
    fn heed(self: &Arc<Proxy>, frame: Vec<u8>) {
        match self.board.hear_client(&self.server, frame.into()) {
            (Heeded::Done, _) => {}
            (Heeded::Unlooked { number, ids }, _) => {
                if let (Some(limit), false) = (self.terms.limit, ids.is_empty()) {
                    let board = Arc::clone(&self.board);
                    tokio::spawn(async move {
                        tokio::time::sleep(limit).await;
                        board.expire(number, &ids, limit);
                    });
                }
            }
            (Heeded::Call { id, call, has_twin }, frame) => {
                let place = self.server.reserve();
                let known = self.board.with_catalogue(|catalogue| catalogue.find(&call.tool).cloned());
                let tool = call.tool.clone();
                let is_agent = self.terms.agents.retries(&call.tool, self.terms.retries).is_some();
                let agent = is_agent.then(|| {
                    let field = known.as_ref().and_then(|known| mcp::session_field(&known.schema));
                    Behind { session_field: field.map(str::to_owned) }
                });
                let begun = self.board.begin_call(&id, call.progress_token.as_ref());
                let owed = Owed::new(&self.board, &id, &begun.withdrawal);
                let journey = Journey::new(id.clone(), frame, call, place, agent, has_twin, begun);
                let proxy = Arc::clone(self);
                tokio::spawn(async move {
                    let _owed = owed;
                    proxy.carry(id, tool, known, Arc::new(journey)).await;
                });
            }
        }
    }

    /// Carries a call out, and answers it.
    async fn carry(self: Arc<Proxy>, id: Id, tool: String, known: Option<Arc<Known>>, journey: Arc<Journey>) {
        let Some(toolbox) = self.toolbox.get() else { return };
        self.shelve(toolbox).await;
        self.note_pause(toolbox);
        let key = format!("mcp-{}-{}", self.mark, self.calls.fetch_add(1, Ordering::Relaxed));
        let name = known.as_ref().map_or(&tool, |known| &known.shelved_as);
        let deadline = self.terms.deadline;
        let within =
            deadline.unwrap_or_else(|| client::retry_within(self.board.greeting().client.as_deref()));
        let call = ToolCall::new(name, journey.input())
            .id(key.as_str())
            .retry_within(within)
            .round(journey.begun.round);
        self.lock().insert(key.clone(), Arc::clone(&journey));
        let result = tokio::select! {
            biased;
            () = journey.begun.withdrawal.token.cancelled() => None,
            result = toolbox.call(call) => Some(result),
        };
        self.lock().remove(&key);
        self.board.end_call(&id, journey.token.as_ref(), &journey.begun.withdrawal);
        // Of a call that was taken back nobody wants to hear.
        let Some(result) = result else { return };
        let manner = Manner {
            says_complete: self
                .board
                .greeting()
                .version
                .is_some_and(|version| *version >= *mcp::FIRST_STATELESS),
            structure_is_free: known.is_some_and(|known| !known.has_output_schema),
        };
        let (came, place) = journey.take_answer().unzip();
        let (came, load) = came.map(Inbound::apart).unzip();
        let frame = answer::frame(&id, came, &result, manner);
        match place {
            Some(place) => place.fill((frame, load.flatten())),
            None => self.board.say(frame),
        }
    }

    /// Nobody tells us when the user speaks. After so long without a call somebody has, or the agent has stopped to think: a run
    /// that was halted may go on.
    fn note_pause(&self, toolbox: &Toolbox) {
        let now = crate::cellar::now();
        let last = self.last_call.swap(now, Ordering::Relaxed);
        if last != 0 && now.saturating_sub(last) > PAUSE_MS {
            toolbox.user_spoke(toolbox.session());
        }
    }

    /// The list of tools is another one.
    async fn reshelve(self: Arc<Proxy>) {
        if let Some(toolbox) = self.toolbox.get() {
            self.shelve(toolbox).await;
        }
    }

    /// Puts the tools that are known by now into the toolbox.
    async fn shelve(self: &Arc<Proxy>, toolbox: &Toolbox) {
        let newest = self.board.with_catalogue(|catalogue| catalogue.version());
        if self.shelved_version.load(Ordering::Acquire) >= newest {
            return;
        }
        let _one_at_a_time = self.shelved.lock().await;
        let mut unreadable: Vec<String> = Vec::new();
        loop {
            let (version, tools) = self.board.with_catalogue(|catalogue| {
                let tools = catalogue.all().map(|(name, known)| self.forwarded(name, known, &unreadable));
                (catalogue.version(), tools.collect::<Vec<_>>())
            });
            match toolbox.replace_tools(tools) {
                Err(BuildError::BadSchema { tool, .. }) if !unreadable.contains(&tool) => {
                    unreadable.push(tool)
                }
                Ok(()) | Err(_) => {
                    self.shelved_version.store(version, Ordering::Release);
                    return;
                }
            }
        }
    }

    fn forwarded(self: &Arc<Proxy>, name: &str, known: &Known, unreadable: &[String]) -> Forwarded {
        let hints = known.hints;
        let believed = self.terms.believes_hints;
        let agents = self.terms.agents.retries(name, self.terms.retries);
        let says = |hint: Option<bool>| hint == Some(true);
        // One that says as well that it destroys is not believed that it only looks.
        let (annotations, may_act) = match says(hints.destructive) {
            true => (Annotations::new().destructive(), true),
            false if believed && says(hints.read_only) => (Annotations::new().read_only(), false),
            false if believed && says(hints.idempotent) => (Annotations::new().idempotent(), false),
            // How often an agent may be asked is said by its name.
            false if agents.is_some_and(|retries| retries > 0) => (Annotations::new().idempotent(), false),
            // Unless it says otherwise a tool changes something, and the same twice may be just what is wanted.
            false => (Annotations::new().writes(), true),
        };
        let mut annotations = annotations;
        if let Some(retries) = agents {
            annotations = annotations.retries(retries);
        }
        if !self.terms.checks || unreadable.contains(&known.shelved_as) {
            annotations = annotations.unchecked();
        }
        Forwarded {
            shelved_as: known.shelved_as.clone(),
            schema: known.schema.clone(),
            annotations,
            may_act,
            proxy: Arc::clone(self),
        }
    }

    /// The call of this name that is under way.
    pub(super) fn journey(&self, key: &str) -> Option<Arc<Journey>> {
        self.lock().get(key).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Journey>>> {
        self.journeys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the client, where it asked for that, why it has to wait.
struct Announcer(std::sync::Weak<Proxy>);

impl Hook for Announcer {
    fn name(&self) -> &str {
        "progress"
    }

    fn moments(&self) -> &[Moment] {
        &[Moment::Retrying]
    }

    async fn retrying(&self, call: Arc<CallInfo>, next: Next) {
        let Some(proxy) = self.0.upgrade() else { return };
        let Some(journey) = proxy.journey(call.id().as_str()) else { return };
        journey.set_aside_before(next.attempt);
        let Some(token) = journey.token.clone() else { return };
        let (retry, of) = (next.attempt.saturating_sub(1), next.of.saturating_sub(1));
        let seconds = (next.wait.as_secs_f64() * 10.0).ceil() / 10.0;
        let title = next.kind.title(proxy.terms.lang);
        proxy.board.say_progress(
            &token,
            &match proxy.terms.lang {
                Lang::En => format!("retry {retry} of {of} in {seconds} s: {title}"),
                Lang::Zh => format!("{seconds} 秒后进行第 {retry}/{of} 次重试：{title}"),
            },
        );
    }
}

/// A name as tools of servers are called by agents: letters, digits, `_` and `-`.
pub(crate) fn plain(name: &str) -> String {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
    name.chars().map(|sign| if is_sign(sign) { sign } else { '_' }).take(60).collect()
}
