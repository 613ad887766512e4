//! Puts a toolbox together.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::approval::Pending;
use super::backstage::Backstage;
use super::halted::Halted;
use super::hooks::Plugged;
use super::installed::Installed;
use super::names::Names;
use super::shelf::{Shelf, Shelves};
use super::{Inner, Toolbox};
use crate::call::Session;
use crate::hook::Hook;
use crate::ledger::Ledger;
use crate::policy::Policy;
use crate::schema::SchemaError;
use crate::store::Store;
use crate::tool::Tool;

/// How many events are kept for those who come late, where nobody says otherwise.
const EVENTS: usize = 4096;

/// Why a toolbox cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two tools have the same name.
    #[error("two tools are called `{name}`; a model could not tell them apart, so give one another name")]
    SameName {
        /// The name.
        name: String,
    },
    /// A tool has no name, or one that no model can say.
    #[error("`{name}` is no name for a tool: use 1 to 128 letters, digits, `_`, `-`, `.` and `/`")]
    BadName {
        /// The name.
        name: String,
    },
    /// The schema of a tool is none.
    #[error("the schema of `{tool}` is of no use")]
    BadSchema {
        /// The tool.
        tool: String,
        /// What is wrong with it.
        source: SchemaError,
    },
}

type Install = Box<dyn FnOnce(usize) -> Result<Installed, BuildError> + Send>;

/// Puts a [`Toolbox`] together.
#[must_use = "nothing is built before `build`"]
pub struct ToolboxBuilder {
    tools: Vec<Install>,
    hooks: Vec<Plugged>,
    policy: Policy,
    session: Option<Session>,
    store: Option<Store>,
    events: usize,
    namespace: String,
    stays: bool,
}

impl ToolboxBuilder {
    pub(super) fn new() -> ToolboxBuilder {
        ToolboxBuilder {
            tools: Vec::new(),
            hooks: Vec::new(),
            policy: Policy::default(),
            session: None,
            store: None,
            events: EVENTS,
            stays: false,
            namespace: String::new(),
        }
    }

    /// Adds a tool.
    pub fn tool<T: Tool>(mut self, tool: T) -> ToolboxBuilder {
        self.tools.push(Box::new(move |places| install(tool, places)));
        self
    }

    /// What stands before the name of each tool where its calls are recorded, compared and judged: `mcp__github__` before
    /// `create_issue`. Models call them by their own names and never see it; [`Policy::mode_of`] names tools with it.
    pub fn namespace(self, prefix: impl Into<String>) -> ToolboxBuilder {
        ToolboxBuilder { namespace: prefix.into(), ..self }
    }

    /// Adds somebody who is asked before tools run and told after.
    pub fn hook<H: Hook>(mut self, hook: H) -> ToolboxBuilder {
        self.hooks.push(Plugged::new(hook));
        self
    }

    /// On what terms it works.
    pub fn policy(self, policy: Policy) -> ToolboxBuilder {
        ToolboxBuilder { policy, ..self }
    }

    /// The session of calls that name none; without this it is a new one.
    pub fn session(self, session: impl Into<Session>) -> ToolboxBuilder {
        ToolboxBuilder { session: Some(session.into()), ..self }
    }

    /// Where it is all kept. Without a store everything is remembered as long as the toolbox lives.
    pub fn store(self, store: Store) -> ToolboxBuilder {
        ToolboxBuilder { store: Some(store), ..self }
    }

    /// No tool ever blocks its thread: calls stay on the runtime of whoever makes them, also where that has a single thread. It
    /// saves the way to another thread and back; one tool that blocks after all holds up everything.
    pub fn without_threads(self) -> ToolboxBuilder {
        ToolboxBuilder { stays: true, ..self }
    }

    /// How many events are kept in memory for those who subscribe late or read slowly. With a store that may be none: whoever asks
    /// for what was told before gets it from there, and while nobody has ever listened nothing is told. Without one it is at
    /// least one.
    pub fn event_capacity(self, events: usize) -> ToolboxBuilder {
        ToolboxBuilder { events, ..self }
    }

    /// Builds it.
    ///
    /// # Errors
    /// Where two tools have the same name, a name is none, or a schema is no JSON schema.
    pub fn build(self) -> Result<Toolbox, BuildError> {
        let policy = Arc::new(self.policy);
        let places = places_of_one(&policy);
        let tools = Shelf::new(self.tools.into_iter().map(|install| install(places)))?;
        let (ledger, bus) = Ledger::new(&policy, self.store, self.events);
        Ok(Toolbox {
            inner: Arc::new(Inner {
                tools: Shelves::new(tools),
                namespace: self.namespace,
                hooks: self.hooks,
                session: self.session.unwrap_or_default(),
                main: "main".into(),
                ledger,
                bus,
                places: Semaphore::new(policy.concurrency),
                policy,
                pending: Pending::default(),
                names: Names::default(),
                halted: Halted::default(),
                running: TaskTracker::new(),
                shutdown: CancellationToken::new(),
                backstage: Arc::new(Backstage::new(self.stays)),
            }),
        })
    }
}

impl fmt::Debug for ToolboxBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolboxBuilder").field("tools", &self.tools.len()).finish_non_exhaustive()
    }
}

/// Puts a tool in its place.
pub(super) fn install<T: Tool>(tool: T, places: usize) -> Result<Installed, BuildError> {
    let name = tool.name().to_owned();
    Installed::new(tool, places).map_err(|source| BuildError::BadSchema { tool: name, source })
}

/// How many calls of one tool run at once. It alone never takes all places, so that the others get through.
pub(super) fn places_of_one(policy: &Policy) -> usize {
    (policy.concurrency * 3 / 4).max(1)
}
