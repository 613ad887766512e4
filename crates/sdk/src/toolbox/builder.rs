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

type Install = Box<dyn FnOnce(usize) -> Result<Installed, (String, SchemaError)> + Send>;

/// Puts a [`Toolbox`] together.
#[must_use = "nothing is built before `build`"]
pub struct ToolboxBuilder {
    tools: Vec<Install>,
    hooks: Vec<Plugged>,
    policy: Policy,
    session: Option<Session>,
    store: Option<Store>,
    events: usize,
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
        }
    }

    /// Adds a tool.
    pub fn tool<T: Tool>(mut self, tool: T) -> ToolboxBuilder {
        self.tools.push(Box::new(move |places| {
            let name = tool.name().to_owned();
            Installed::new(tool, places).map_err(|error| (name, error))
        }));
        self
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

    /// How many events are kept in memory for those who subscribe late or read slowly. At least one.
    pub fn event_capacity(self, events: usize) -> ToolboxBuilder {
        ToolboxBuilder { events: events.max(1), ..self }
    }

    /// Builds it.
    ///
    /// # Errors
    /// Where two tools have the same name, a name is none, or a schema is no JSON schema.
    pub fn build(self) -> Result<Toolbox, BuildError> {
        let policy = Arc::new(self.policy);
        // One tool alone never takes all places, so that the others get through.
        let places = (policy.concurrency * 3 / 4).max(1);
        let mut tools: Vec<Arc<Installed>> = Vec::with_capacity(self.tools.len());
        for install in self.tools {
            let installed =
                install(places).map_err(|(tool, source)| BuildError::BadSchema { tool, source })?;
            let name = installed.name.to_string();
            if !is_name(&name) {
                return Err(BuildError::BadName { name });
            }
            if tools.iter().any(|other| *other.name == *name) {
                return Err(BuildError::SameName { name });
            }
            tools.push(Arc::new(installed));
        }
        let (ledger, bus) = Ledger::new(&policy, self.store, self.events);
        Ok(Toolbox {
            inner: Arc::new(Inner {
                tools,
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
                backstage: Backstage::default(),
            }),
        })
    }
}

impl fmt::Debug for ToolboxBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolboxBuilder").field("tools", &self.tools.len()).finish_non_exhaustive()
    }
}

fn is_name(name: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "_-./".contains(sign);
    (1..=128).contains(&name.len()) && name.chars().all(is_sign)
}
