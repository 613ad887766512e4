//! Toolboxes and [tower](https://docs.rs/tower) stacks, both ways round.
//!
//! A [`Toolbox`] is a service: [`ToolCall`] in, [`CallResult`] out, and never an error. [`SelfCorrecting`] is a layer that
//! makes such a service of one that does the work itself.

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use ::tower_layer::Layer;
use ::tower_service::Service;
use serde::Serialize;
use serde_json::Value;

use super::Boxed;
use crate::annotations::Annotations;
use crate::call::{CallId, Session, ToolCall};
use crate::context::ToolContext;
use crate::failure::Failure;
use crate::result::CallResult;
use crate::tool::Tool;
use crate::toolbox::{BuildError, Toolbox, ToolboxBuilder, given};

/// Any error, as tower stacks hand it around.
type BoxError = Box<dyn Error + Send + Sync>;

impl Service<ToolCall> for Toolbox {
    type Response = CallResult;
    type Error = Infallible;
    type Future = Boxed<Result<CallResult, Infallible>>;

    /// Always ready: a call that finds no place waits for one.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let tools = self.clone();
        Box::pin(async move { Ok(Toolbox::call(&tools, call).await) })
    }
}

/// A tool whose work is done by the service below the layer.
///
/// ```
/// use serde_json::json;
/// use unstuck::Annotations;
/// use unstuck::tower::Served;
///
/// let search = Served::new("search", "Searches the web.")
///     .schema(json!({ "type": "object", "properties": { "query": { "type": "string" } }, "required": ["query"] }))
///     .annotated(Annotations::new().read_only());
/// ```
#[derive(Debug, Clone)]
#[must_use = "a layer knows only the tools it is made with"]
pub struct Served {
    name: String,
    description: String,
    schema: Value,
    annotations: Annotations,
}

impl Served {
    /// A tool that takes any object.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Served {
        Served {
            name: name.into(),
            description: description.into(),
            schema: serde_json::json!({ "type": "object" }),
            annotations: Annotations::new(),
        }
    }

    /// The JSON schema of its arguments.
    pub fn schema(self, schema: Value) -> Served {
        Served { schema, ..self }
    }

    /// Says what is known of it.
    pub fn annotated(self, annotations: Annotations) -> Served {
        Served { annotations, ..self }
    }
}

/// Makes the service below it self-correcting.
///
/// The service gets a [`ToolContext`], which names the tool, its arguments and the attempt, and answers with anything that
/// becomes JSON. What is below the layer happens for each attempt, so a timeout there is one for each attempt; what is above
/// happens once for each call. A service that wants to say more than an error can gives a [`Failure`] as its error.
///
/// All services made by one layer share one toolbox: what failed with one is known with the others. A call that a person allows
/// later goes to the service that was called last.
///
/// ```
/// use std::time::Duration;
///
/// use serde_json::{Value, json};
/// use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
/// use unstuck::tower::{SelfCorrecting, Served};
/// use unstuck::{Annotations, Failure, ToolCall, ToolContext, Toolbox};
///
/// async fn work(context: ToolContext) -> Result<Value, Failure> {
///     match context.attempt() {
///         1 => Err(Failure::unexpected("connection reset by peer")),
///         _ => Ok(json!({ "echo": context.call().input() })),
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), unstuck::BuildError> {
/// let echo = Served::new("echo", "Says it again.").annotated(Annotations::new().read_only());
/// let mut service = ServiceBuilder::new()
///     .layer(SelfCorrecting::new(Toolbox::builder(), [echo])?)
///     .timeout(Duration::from_secs(5))
///     .service(service_fn(work));
///
/// let Ok(result) = service.ready().await.unwrap().call(ToolCall::new("echo", json!({ "word": "hi" }))).await;
/// assert_eq!(result.output(), &json!({ "echo": { "word": "hi" } }));
/// assert_eq!(result.tried().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SelfCorrecting {
    tools: Toolbox,
    doors: Arc<Doors>,
}

impl SelfCorrecting {
    /// A layer over services that do the work of these tools. Other tools of the builder stay what they are.
    ///
    /// # Errors
    /// Where [`ToolboxBuilder::build`] fails: two tools have the same name, a name is none, or a schema is no JSON schema.
    pub fn new(
        builder: ToolboxBuilder,
        served: impl IntoIterator<Item = Served>,
    ) -> Result<SelfCorrecting, BuildError> {
        let doors = Arc::new(Doors::default());
        let add =
            |builder: ToolboxBuilder, served| builder.tool(Passed { served, doors: Arc::clone(&doors) });
        let tools = served.into_iter().fold(builder, add).build()?;
        Ok(SelfCorrecting { tools, doors })
    }

    /// The toolbox behind it, for its events, records and approvals.
    pub fn toolbox(&self) -> &Toolbox {
        &self.tools
    }
}

impl fmt::Debug for SelfCorrecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SelfCorrecting").field("tools", &self.tools).finish_non_exhaustive()
    }
}

impl<S> Layer<S> for SelfCorrecting {
    type Service = Corrected<S>;

    fn layer(&self, inner: S) -> Corrected<S> {
        Corrected { inner, layer: self.clone() }
    }
}

/// A service made self-correcting by [`SelfCorrecting`].
#[derive(Debug, Clone)]
pub struct Corrected<S> {
    inner: S,
    layer: SelfCorrecting,
}

impl<S> Service<ToolCall> for Corrected<S>
where
    S: Service<ToolContext> + Clone + Send + 'static,
    S::Response: Serialize,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    type Response = CallResult;
    type Error = Infallible;
    type Future = Boxed<Result<CallResult, Infallible>>;

    /// Always ready: each attempt waits for the service below, within its own time.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let id = call.id.clone().unwrap_or_else(CallId::new);
        let inner = self.inner.clone();
        let layer = self.layer.clone();
        Box::pin(async move {
            let session = call.session.clone().unwrap_or_else(|| layer.tools.session().clone());
            let _open = layer.doors.open((session, id.clone()), Arc::new(Mutex::new(inner)));
            Ok(Toolbox::call(&layer.tools, call.id(id)).await)
        })
    }
}

/// Leads from a call to the service that does its work. The tools are made before there is any service, and many services
/// may share them.
#[derive(Default)]
struct Doors(Mutex<Ways>);

#[derive(Default)]
struct Ways {
    calls: HashMap<(Session, CallId), Arc<dyn Door>>,
    /// For a call that did not come through the layer, such as one that a person allowed meanwhile.
    latest: Option<Arc<dyn Door>>,
}

impl Doors {
    /// Opens one for a call, until what this returns is dropped.
    fn open(self: &Arc<Self>, call: (Session, CallId), door: Arc<dyn Door>) -> Open {
        let mut ways = self.ways();
        ways.calls.insert(call.clone(), Arc::clone(&door));
        ways.latest = Some(Arc::clone(&door));
        Open { doors: Arc::clone(self), call, door }
    }

    /// Begins to pass through the door of a call.
    fn pass(&self, context: ToolContext) -> Option<Boxed<Result<Value, Failure>>> {
        let ways = self.ways();
        let (session, id) = (context.call().session(), context.call().id());
        // The toolbox numbers names that it has seen before.
        let names = [id.clone(), given(id)];
        let door = names.into_iter().find_map(|name| ways.calls.get(&(session.clone(), name)));
        door.or(ways.latest.as_ref()).map(|door| door.pass(context))
    }

    fn ways(&self) -> MutexGuard<'_, Ways> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Open {
    doors: Arc<Doors>,
    call: (Session, CallId),
    door: Arc<dyn Door>,
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut ways = self.doors.ways();
        // Whoever came later with the same id still needs its own.
        if ways.calls.get(&self.call).is_some_and(|door| Arc::ptr_eq(door, &self.door)) {
            ways.calls.remove(&self.call);
        }
    }
}

/// A service without its type.
trait Door: Send + Sync {
    fn pass(&self, context: ToolContext) -> Boxed<Result<Value, Failure>>;
}

impl<S> Door for Mutex<S>
where
    S: Service<ToolContext> + Clone + Send + 'static,
    S::Response: Serialize,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    fn pass(&self, context: ToolContext) -> Boxed<Result<Value, Failure>> {
        let mut service = self.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            poll_fn(|waker| service.poll_ready(waker)).await.map_err(failure)?;
            let answer = service.call(context).await.map_err(failure)?;
            Ok(serde_json::to_value(answer)?)
        })
    }
}

/// The tool in the toolbox that leads to the service.
struct Passed {
    served: Served,
    doors: Arc<Doors>,
}

impl Tool for Passed {
    type Args = Value;
    type Output = Value;

    fn name(&self) -> &str {
        &self.served.name
    }

    fn description(&self) -> &str {
        &self.served.description
    }

    fn annotations(&self) -> Annotations {
        self.served.annotations.clone()
    }

    fn schema(&self) -> Value {
        self.served.schema.clone()
    }

    async fn call(&self, _args: Value, context: ToolContext) -> Result<Value, Failure> {
        let answer = self.doors.pass(context);
        match answer {
            Some(answer) => answer.await,
            None => Err(Failure::unexpected(
                "there is no service behind this tool yet: nothing was sent through the layer",
            )),
        }
    }
}

/// A failure on its way through a stack that only knows errors.
#[derive(Debug)]
struct Carried(Failure);

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.message())
    }
}

impl Error for Carried {}

impl From<Failure> for BoxError {
    fn from(failure: Failure) -> BoxError {
        Box::new(Carried(failure))
    }
}

fn failure(error: impl Into<BoxError>) -> Failure {
    match error.into().downcast::<Carried>() {
        Ok(carried) => carried.0,
        Err(error) => Failure::from(&*error),
    }
}
