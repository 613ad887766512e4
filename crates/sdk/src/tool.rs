//! What a tool is, and the same without its types.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::annotations::Annotations;
use crate::context::ToolContext;
use crate::failure::Failure;

/// Something an agent can call.
///
/// The arguments are a type of the tool's own; what a model sends is checked against its schema before the tool sees it.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use unstuck::{Annotations, Failure, Tool, ToolContext};
///
/// struct Weather;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Place {
///     /// The city, in English.
///     city: String,
/// }
///
/// impl Tool for Weather {
///     type Args = Place;
///     type Output = String;
///
///     fn name(&self) -> &str {
///         "weather"
///     }
///
///     fn annotations(&self) -> Annotations {
///         Annotations::new().read_only()
///     }
///
///     async fn call(&self, args: Place, _context: ToolContext) -> Result<String, Failure> {
///         match &*args.city {
///             "Atlantis" => Err(Failure::expected("there is no such city")),
///             city => Ok(format!("sun over {city}")),
///         }
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// What it is called with.
    type Args: DeserializeOwned + JsonSchema + Send + 'static;
    /// What it answers. An object that says `"ok": false` is an expected failure, unless the tool is annotated otherwise.
    type Output: Serialize + Send + 'static;

    /// The name models call it by.
    fn name(&self) -> &str;

    /// What it does, for the model.
    fn description(&self) -> &str {
        ""
    }

    /// What is known of it beside what it does.
    fn annotations(&self) -> Annotations {
        Annotations::new()
    }

    /// The JSON schema of its arguments. Only a tool whose arguments are known at run time has to say anything here.
    fn schema(&self) -> Value {
        schemars::schema_for!(Self::Args).to_value()
    }

    /// Does its work. It may panic, hang or block: whoever called the toolbox does not.
    fn call(
        &self,
        args: Self::Args,
        context: ToolContext,
    ) -> impl Future<Output = Result<Self::Output, Failure>> + Send;
}

impl<T: Tool> Tool for Arc<T> {
    type Args = T::Args;
    type Output = T::Output;

    fn name(&self) -> &str {
        T::name(self)
    }

    fn description(&self) -> &str {
        T::description(self)
    }

    fn annotations(&self) -> Annotations {
        T::annotations(self)
    }

    fn schema(&self) -> Value {
        T::schema(self)
    }

    async fn call(&self, args: T::Args, context: ToolContext) -> Result<T::Output, Failure> {
        T::call(self, args, context).await
    }
}

/// A tool made of a function. See [`tool_fn`].
pub struct FnTool<F, Args> {
    name: String,
    description: String,
    annotations: Annotations,
    function: F,
    args: PhantomData<fn(Args)>,
}

/// Makes a tool of a function.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use unstuck::{Annotations, Failure, ToolContext, tool_fn};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Numbers {
///     a: i64,
///     b: i64,
/// }
///
/// let add = tool_fn("add", "Adds two numbers.", |numbers: Numbers, _: ToolContext| async move {
///     numbers.a.checked_add(numbers.b).ok_or(Failure::expected("the sum is too large"))
/// })
/// .annotated(Annotations::new().read_only());
/// ```
pub fn tool_fn<F, Args, Answer, Output>(
    name: impl Into<String>,
    description: impl Into<String>,
    function: F,
) -> FnTool<F, Args>
where
    F: Fn(Args, ToolContext) -> Answer + Send + Sync + 'static,
    Args: DeserializeOwned + JsonSchema + Send + 'static,
    Answer: Future<Output = Result<Output, Failure>> + Send + 'static,
    Output: Serialize + Send + 'static,
{
    FnTool {
        name: name.into(),
        description: description.into(),
        annotations: Annotations::new(),
        function,
        args: PhantomData,
    }
}

impl<F, Args> FnTool<F, Args> {
    /// Says what is known of it.
    #[must_use]
    pub fn annotated(self, annotations: Annotations) -> FnTool<F, Args> {
        FnTool { annotations, ..self }
    }
}

impl<F, Args> fmt::Debug for FnTool<F, Args> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<F, Args, Answer, Output> Tool for FnTool<F, Args>
where
    F: Fn(Args, ToolContext) -> Answer + Send + Sync + 'static,
    Args: DeserializeOwned + JsonSchema + Send + 'static,
    Answer: Future<Output = Result<Output, Failure>> + Send + 'static,
    Output: Serialize + Send + 'static,
{
    type Args = Args;
    type Output = Output;

    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn annotations(&self) -> Annotations {
        self.annotations.clone()
    }

    async fn call(&self, args: Args, context: ToolContext) -> Result<Output, Failure> {
        (self.function)(args, context).await
    }
}

/// A future that comes from a tool whose type nobody knows any more.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>;

/// A tool without its types.
pub(crate) trait AnyTool: Send + Sync {
    /// Reads the arguments and does the work. Arguments that the types refuse although the schema let them pass are the
    /// caller's mistake like any other.
    fn answer(self: Arc<Self>, context: ToolContext) -> Answer;
}

impl<T: Tool> AnyTool for T {
    fn answer(self: Arc<Self>, context: ToolContext) -> Answer {
        Box::pin(async move {
            let read = T::Args::deserialize(context.call().input());
            let args = read.map_err(|error| Failure::invalid(error.to_string()))?;
            let output = self.call(args, context).await?;
            Ok(serde_json::to_value(output)?)
        })
    }
}
