//! Makes the tools of any agent self-correcting.
//!
//! An agent calls tools; tools fail. A [`Toolbox`] stands between the two. It finds out why a call failed, sends it again where
//! that is safe and may help, tells the model what it can act on, stops an agent that repeats itself, and keeps a record of it
//! all. It never panics, never hangs, and never turns a failure of a tool into an error of yours.
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use serde_json::json;
//! use unstuck::{Annotations, Channel, Delivery, Failure, Policy, Session, ToolCall, ToolContext, Toolbox, tool_fn};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Lookup {
//!     /// The name of a city, in English.
//!     city: String,
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), unstuck::BuildError> {
//! let weather = tool_fn("weather", "Tells the weather of a city.", |lookup: Lookup, _: ToolContext| async move {
//!     match &*lookup.city {
//!         "Paris" => Ok("sun"),
//!         _ => Err(Failure::expected("no such city").recommend("use the English name of a city")),
//!     }
//! })
//! .annotated(Annotations::new().read_only());
//!
//! let tools = Toolbox::builder().tool(weather).policy(Policy::default()).build()?;
//! let session = Session::new();
//! let mut progress = tools.events().subscribe([Channel::Progress]);
//!
//! let result = tools.call(ToolCall::new("weather", json!({ "city": "Atlantis" })).session(&session)).await;
//!
//! let told = result.to_json();
//! assert_eq!(told["ok"], false);
//! assert_eq!(told["error"], "no such city");
//! assert_eq!(told["errorType"], "logical");
//! assert_eq!(told["recommendations"][0], "use the English name of a city");
//!
//! // The same is on the bus, for whoever shows it to a person.
//! while let Some(Delivery::Event(event)) = progress.next().await {
//!     if event.kind() == "tool:error" {
//!         break;
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What a call goes through
//!
//! 1. **Hooks** are asked: they may allow, deny, ask a person, supply a result or rewrite the arguments. See [`Hook`].
//! 2. **Arguments** are checked against the schema of the tool. The model is told of each field what was expected and what was
//!    there; near misses are suggested. With [`Policy::repair_arguments`] harmless mistakes are put right.
//! 3. **The ladder** is asked whether the agent repeats itself. First it is told, then refused, then the run is halted for a
//!    person, with a table of what was tried. Honest work is left alone: edit and test, polling, batches.
//! 4. **The tool runs** in a task of its own, a bounded number at once. A panic ends there. A time limit ends the waiting and
//!    cancels the tool; one that blocks its thread gets a thread of its own. On a runtime with a single thread, or none, tools
//!    run on two threads of the toolbox.
//! 5. **Hooks** are told, and may replace what came of it.
//! 6. **The failure is diagnosed** from what it says: its cause, who can fix it, what it may have done already, whether and when
//!    the same call may run again. What passes by itself and does no harm when sent twice is sent again, after a wait that is
//!    announced on the bus; [`Annotations`] say what is harmless, and of a tool without any nobody knows.
//! 7. **The result** is data: [`CallResult::to_json`] for the model, everything else for the program.
//!
//! # Results
//!
//! A tool answers with a value or a [`Failure`]. A value that says `"ok": false` is an expected failure too. Both become a
//! [`CallResult`] with one of these types:
//!
//! | `errorType` | meaning |
//! |---|---|
//! | `validation` | the arguments do not fit, or there is no such tool |
//! | `runtime` | something the tool needs is not there or does not answer |
//! | `logical` | the tool works, and what was asked for is not possible like this |
//! | `aborted` | it ran out of time, or somebody stopped it |
//! | `exception` | it panicked, or nobody knows why it failed |
//!
//! The type is only an older word; `diagnosis` has the cause itself, the line that shows it and the rule that fired.
//!
//! # With a store
//!
//! Without one, everything is remembered as long as the toolbox lives. With [`Store`] calls, events and what is known to fail
//! outlive the process, lessons of earlier sessions are told before the first repeat, `unstuck log` and all other commands show
//! the same record, and [`Toolbox::resume`] tells the truth about calls that a crash cut off.
//!
//! # Limits
//!
//! - Panics are caught by unwinding. In a program built with `panic = "abort"` a panic ends the process, as it says.
//! - A panic that meets another panic while the stack is unwound ends the process; no library can prevent that.
//! - A thread that never yields cannot be ended from outside. Nobody waits for it, but it goes on; after eight of these the tool
//!   is not called again until some come back. The first time, before it is known to block, it may hold a thread of your runtime,
//!   which waits for it when it is dropped; the last one that is free is never given to a tool.
//! - A runtime of yours with several threads needs its timer (`enable_time`).
//! - Kinds, states and event types grow in minor versions: keep a `_` arm.
#![warn(missing_debug_implementations)]

mod adapters;
mod annotations;
mod bus;
mod call;
mod context;
mod failure;
mod hook;
mod ledger;
mod policy;
mod record;
mod result;
mod schema;
mod store;
mod tool;
mod toolbox;
#[cfg(all(unix, feature = "tools"))]
pub mod tools;

#[cfg(feature = "rig")]
pub use adapters::rig;
#[cfg(feature = "rmcp")]
pub use adapters::rmcp;
#[cfg(feature = "tower")]
pub use adapters::tower;
pub use annotations::Annotations;
pub use bus::{Delivery, Event, EventBus, Listener, Missed, Subscription};
pub use call::{CallId, CallInfo, Session, ToolCall};
pub use context::ToolContext;
pub use failure::Failure;
pub use hook::{After, Attempted, Before, Hook, Moment, Next};
pub use policy::Policy;
pub use record::{CallRecord, RecordStep};
pub use result::{CallResult, Status, Tried};
pub use schema::{Mistake, SchemaError};
pub use store::{Store, StoreError};
pub use tokio_util::sync::CancellationToken;
pub use tool::{FnTool, Tool, tool_fn};
pub use toolbox::{BuildError, PendingCall, ToolDefinition, Toolbox, ToolboxBuilder};
pub use unstuck_judge::hint::Hint;
pub use unstuck_judge::ladder::Preset;
pub use unstuck_judge::retry::PolicyError;
pub use unstuck_judge::{Again, Diagnosis, Effect, FixBy, Found, Kind, Lang, Stage, Verdict};
pub use unstuck_store::{Bookmark, CallState, Channel, EventType, Mode};
pub use {schemars, serde_json};

/// What `cargo xtask bench sdk` measures; no part of the interface.
#[cfg(feature = "_measured")]
#[doc(hidden)]
pub mod measured;

/// The page of the library is tried like any other example.
#[cfg(all(doctest, feature = "tools"))]
#[doc = include_str!("../../../docs/library.md")]
struct LibraryPage;
