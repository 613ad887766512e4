//! The toolbox: tools, and everything that makes calling them safe.

mod approval;
mod attempt;
mod backstage;
mod builder;
mod carry;
mod halted;
mod hooks;
mod installed;
mod names;
mod observed;
mod shelf;
mod spared;
mod wording;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use unstuck_judge::nature::Nature;
use unstuck_judge::quote;
use unstuck_store::CallState;

use crate::annotations::Annotations;
use crate::bus::EventBus;
use crate::call::{CallInfo, Session, ToolCall};
use crate::ledger::{Ledger, Orphan};
use crate::policy::Policy;
use crate::record::CallRecord;
use crate::result::CallResult;
use crate::store::StoreError;
use crate::tool::Tool;
use approval::Pending;
use backstage::Backstage;
use halted::Halted;
use hooks::Plugged;
use installed::Installed;
use names::Names;
use shelf::{Shelf, Shelves};

pub use approval::PendingCall;
pub use builder::{BuildError, ToolboxBuilder};
#[cfg(feature = "tower")]
pub(crate) use names::given;

/// Tools, and everything that makes calling them safe. It is cheap to clone, and all clones are the same toolbox.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use serde_json::json;
/// use unstuck::{Failure, ToolCall, ToolContext, Toolbox, tool_fn};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Half {
///     number: i64,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), unstuck::BuildError> {
/// let half = tool_fn("half", "Halves an even number.", |half: Half, _: ToolContext| async move {
///     match half.number % 2 {
///         0 => Ok(half.number / 2),
///         _ => Err(Failure::expected("it is odd").recommend("ask for an even number")),
///     }
/// });
/// let tools = Toolbox::builder().tool(half).build()?;
///
/// let result = tools.call(ToolCall::new("half", json!({ "number": 8 }))).await;
/// assert_eq!(result.to_json(), json!({ "ok": true, "output": 4 }));
///
/// let result = tools.call(ToolCall::new("half", json!({ "number": "many" }))).await;
/// assert_eq!(result.error_type(), Some("validation"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Toolbox {
    inner: Arc<Inner>,
}

/// What all clones of a toolbox share.
pub(crate) struct Inner {
    pub(crate) tools: Shelves,
    /// What stands before the names of tools where their calls are recorded.
    pub(crate) namespace: String,
    pub(crate) hooks: Vec<Plugged>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) session: Session,
    /// The name of the agent that asks where nobody says so.
    pub(crate) main: Arc<str>,
    pub(crate) ledger: Ledger,
    pub(crate) bus: EventBus,
    pub(crate) places: tokio::sync::Semaphore,
    pub(crate) pending: Pending,
    pub(crate) names: Names,
    pub(crate) halted: Halted,
    /// The calls that are under way.
    pub(crate) running: TaskTracker,
    pub(crate) shutdown: CancellationToken,
    pub(crate) backstage: Arc<Backstage>,
}

/// A tool as a model is told of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// What is known of it beside what it does.
    pub annotations: Annotations,
    /// The name models call it by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments.
    pub schema: Value,
}

impl Toolbox {
    /// Begins with an empty one.
    pub fn builder() -> ToolboxBuilder {
        ToolboxBuilder::new()
    }

    /// Calls a tool. It never fails, panics or hangs: whatever happens becomes a result that the model can act on.
    ///
    /// Where the future is dropped, the tool is cancelled and the call recorded as interrupted.
    pub async fn call(&self, call: ToolCall) -> CallResult {
        let inner = Arc::clone(&self.inner);
        self.inner.backstage.host(Box::pin(async move { carry::out(&inner, call).await })).await
    }

    /// The tools, as a model is told of them.
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        let define = |installed: &Arc<Installed>| ToolDefinition {
            name: installed.name.to_string(),
            description: installed.description.clone(),
            schema: installed.described.clone(),
            annotations: Annotations::clone(&installed.annotations),
        };
        self.inner.tools.now().all().iter().map(define).collect()
    }

    /// Puts these tools in the place of all that there are, at once. Calls that are under way go on with those they began with.
    ///
    /// # Errors
    /// As with [`build`](ToolboxBuilder::build); nothing is changed then.
    pub fn replace_tools<T: Tool>(&self, tools: Vec<T>) -> Result<(), BuildError> {
        let places = builder::places_of_one(&self.inner.policy);
        let shelf = Shelf::new(tools.into_iter().map(|tool| builder::install(tool, places)))?;
        self.inner.tools.replace(shelf);
        Ok(())
    }

    /// What happens, as it happens. With a store, what other processes write there is told as well.
    pub fn events(&self) -> &EventBus {
        self.inner.ledger.listened();
        &self.inner.bus
    }

    /// The session of calls that name none.
    pub fn session(&self) -> &Session {
        &self.inner.session
    }

    /// The calls that wait for a person, of all sessions, the one that has waited for longest first.
    pub fn pending(&self) -> Vec<PendingCall> {
        self.inner.pending.all()
    }

    /// A person allows a call that is paused, as [`CallResult::call`] and [`pending`](Toolbox::pending) name it: it runs now.
    ///
    /// `None` where no such call waits.
    pub async fn approve(&self, call: &CallInfo) -> Option<CallResult> {
        let (inner, call) = (Arc::clone(&self.inner), call.clone());
        self.inner.backstage.host(Box::pin(async move { approval::approve(&inner, &call).await })).await
    }

    /// A person does not allow a call that is paused; `why` is for the model.
    ///
    /// `None` where no such call waits.
    pub async fn deny(&self, call: &CallInfo, why: impl Into<String>) -> Option<CallResult> {
        let (inner, call, why) = (Arc::clone(&self.inner), call.clone(), why.into());
        self.inner.backstage.host(Box::pin(async move { approval::deny(&inner, &call, why).await })).await
    }

    /// The user said something: a run that was halted may go on.
    pub fn user_spoke(&self, session: &Session) {
        self.inner.halted.lift(session);
        self.inner.ledger.user_spoke(session, now());
    }

    /// The records of a session, oldest first; of very many the newest.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub async fn records(&self, session: &Session) -> Result<Vec<CallRecord>, StoreError> {
        let (inner, session) = (Arc::clone(&self.inner), session.clone());
        self.inner.backstage.host(Box::pin(async move { inner.ledger.records(&session).await })).await
    }

    /// Takes up a session whose process is gone: calls that were in flight are sealed, and of each the model is told the truth.
    ///
    /// To be called before the first call of a session that goes on in another process: names that were given there are known
    /// from then on. Without a store nothing outlives a process, and nothing is found.
    ///
    /// # Errors
    /// Where the store cannot be used: what was in flight is not known then.
    pub async fn resume(&self, session: &Session) -> Result<Vec<CallResult>, StoreError> {
        let (inner, name) = (Arc::clone(&self.inner), session.clone());
        let resumed = async move {
            let orphans = inner.ledger.resume(&name).await?;
            let records = inner.ledger.records(&name).await?;
            inner.names.remember(&name, records.iter().map(|record| &record.id));
            Ok::<_, StoreError>(orphans)
        };
        let orphans = self.inner.backstage.host(Box::pin(resumed)).await?;
        let (lang, namespace) = (self.inner.policy.lang, &self.inner.namespace);
        let told = |orphan: Orphan| {
            let only_looks = self.inner.only_looks(&orphan.tool);
            let said = self.inner.sealed_text(&orphan.tool, &orphan.label, orphan.state);
            let error = said.unwrap_or_else(|| orphan.text.clone());
            let never_acted = match orphan.state {
                CallState::Pending | CallState::ApprovalRequired => true,
                CallState::Approved | CallState::Executing => only_looks,
                CallState::Completed | CallState::Failed | CallState::Denied | CallState::Sealed => false,
            };
            let advice = never_acted.then(|| wording::after_seal(orphan.state, lang));
            CallResult::orphaned(orphan, error, advice, session, namespace, lang)
        };
        Ok(orphans.into_iter().map(told).collect())
    }

    /// Ends everything: running tools are cancelled and recorded as interrupted, what waits to be written is written, and
    /// subscribers come to the end of the events. Whatever is called afterwards is answered as `aborted`. It may be called twice,
    /// and by a tool.
    pub async fn shutdown(&self) {
        self.inner.shutdown.cancel();
        self.inner.running.close();
        let policy = &self.inner.policy;
        let grace = [policy.cancel_grace, policy.cancel_grace, policy.hook_timeout]
            .into_iter()
            .fold(Duration::from_secs(1), Duration::saturating_add);
        let inner = Arc::clone(&self.inner);
        // In a task of its own: a tool that calls this is among those that are waited for, and ends before it is done.
        let ending = async move {
            let _too_long = tokio::time::timeout(grace, inner.running.wait()).await;
            inner.ledger.close(grace).await;
            inner.bus.close();
        };
        self.inner.backstage.host(Box::pin(async move { drop(tokio::spawn(ending).await) })).await;
    }
}

impl fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.inner.tools.now();
        let names: Vec<&str> = tools.all().iter().map(|installed| &*installed.name).collect();
        f.debug_struct("Toolbox").field("tools", &names).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shutdown.cancel();
        self.bus.close();
    }
}

impl Inner {
    /// The name a tool is recorded under.
    pub(crate) fn named(&self, mut tool: String) -> String {
        if !self.namespace.is_empty() {
            tool.insert_str(0, &self.namespace);
        }
        tool
    }
}

impl Inner {
    /// Is it known of a tool, by the name that is recorded, that it changes nothing?
    fn only_looks(&self, recorded: &str) -> bool {
        let name = recorded.strip_prefix(&*self.namespace).unwrap_or(recorded);
        let tools = self.tools.now();
        tools.find(name).is_some_and(|installed| installed.annotations.nature == Some(Nature::ReadOnly))
    }

    /// What is said of a call whose process is gone, where more is known than its state tells.
    pub(crate) fn sealed_text(&self, recorded: &str, label: &str, from: CallState) -> Option<String> {
        let said = wording::sealed(from, self.only_looks(recorded), self.policy.lang)?;
        Some(format!("{} {said}", quote::call(label, quote::LINE)))
    }
}

/// Now, in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, unstuck_wire::time::span_ms)
}
