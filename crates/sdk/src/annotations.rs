//! What is known of a tool beside what it does.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use unstuck_judge::nature::Nature;

/// What makes two calls of a tool the same, made of their arguments.
type LoopKey = Arc<dyn Fn(&Value) -> Value + Send + Sync>;

/// What is known of a tool beside what it does. Without any, the name of the tool and its arguments have to tell.
///
/// ```
/// use std::time::Duration;
/// use unstuck::Annotations;
///
/// let annotations = Annotations::new().read_only().timeout(Duration::from_secs(5));
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Annotations {
    pub(crate) nature: Option<Nature>,
    pub(crate) is_destructive: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retries: Option<u8>,
    pub(crate) is_unchecked: bool,
    pub(crate) loop_key: Option<LoopKey>,
    pub(crate) ok_is_data: bool,
    pub(crate) blocks: bool,
    pub(crate) polls: bool,
    pub(crate) by_arguments: bool,
    pub(crate) recommendations: Vec<(Option<unstuck_judge::Kind>, String)>,
}

impl Annotations {
    /// Nothing is known.
    pub fn new() -> Annotations {
        Annotations::default()
    }

    /// It changes nothing: it may be sent again.
    pub fn read_only(self) -> Annotations {
        Annotations { nature: Some(Nature::ReadOnly), is_destructive: false, ..self }
    }

    /// Sent twice it does what it does when sent once: it may be sent again.
    pub fn idempotent(self) -> Annotations {
        Annotations { nature: Some(Nature::Idempotent), is_destructive: false, ..self }
    }

    /// It changes something: it is not sent again unless it is certain that nothing was done.
    pub fn writes(self) -> Annotations {
        Annotations { nature: Some(Nature::Writes), ..self }
    }

    /// It may destroy work: it is never sent again by itself, and a hook may want to ask a person first. The built-in
    /// tools save what they destroy; a tool of your own has to do so itself.
    pub fn destructive(self) -> Annotations {
        Annotations { nature: Some(Nature::Writes), is_destructive: true, ..self }
    }

    /// Does it change nothing, as far as somebody said so?
    pub fn is_read_only(&self) -> bool {
        self.nature == Some(Nature::ReadOnly)
    }

    /// May it be sent twice, as far as somebody said so?
    pub fn is_idempotent(&self) -> bool {
        matches!(self.nature, Some(Nature::ReadOnly | Nature::Idempotent))
    }

    /// May it destroy work, as far as somebody said so?
    pub fn is_destructive(&self) -> bool {
        self.is_destructive
    }

    /// How long one attempt may take.
    pub fn timeout(self, limit: Duration) -> Annotations {
        Annotations { timeout: Some(limit), ..self }
    }

    /// The most retries of a failure of this tool that may be retried at all; 0 for none. It goes before
    /// [`Policy::retries`](crate::Policy::retries).
    pub fn retries(self, retries: u8) -> Annotations {
        Annotations { retries: Some(retries), ..self }
    }

    /// Its arguments are passed on as they are: somebody else checks them. Its schema is shown to models and not read, so one
    /// that nobody can read does no harm.
    pub fn unchecked(self) -> Annotations {
        Annotations { is_unchecked: true, ..self }
    }

    /// What makes two calls the same, where not all arguments do: a request id, a page size, a comment.
    ///
    /// ```
    /// use serde_json::json;
    /// use unstuck::Annotations;
    ///
    /// let annotations = Annotations::new().loop_key(|args| json!({ "query": args["query"] }));
    /// ```
    pub fn loop_key(self, key: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Annotations {
        Annotations { loop_key: Some(Arc::new(key)), ..self }
    }

    /// A result of this tool that says `"ok": false` is a result like any other.
    pub fn ok_is_data(self) -> Annotations {
        Annotations { ok_is_data: true, ..self }
    }

    /// Its answers may change by themselves: a clock, a screen, a queue, a job that runs. To ask again is honest work, as long as
    /// it is not asked without end.
    pub fn polls(self) -> Annotations {
        Annotations { polls: true, ..self }
    }

    /// What it does to the world depends on its arguments, and these are read: a `command` line, a `method` with its `url`. Of
    /// other tools without an annotation nobody knows what they do, so they are not sent again unless nothing was done.
    pub fn by_arguments(self) -> Annotations {
        Annotations { by_arguments: true, ..self }
    }

    /// It keeps its thread while it works, without an `await`: it gets a thread of its own. A tool that was seen to do so gets
    /// one from its next call on.
    pub fn blocking(self) -> Annotations {
        Annotations { blocks: true, ..self }
    }

    /// Advice for the model, with failures of one kind or, without one, with every failure.
    pub fn recommend(
        mut self,
        kind: impl Into<Option<unstuck_judge::Kind>>,
        advice: impl Into<String>,
    ) -> Annotations {
        self.recommendations.push((kind.into(), advice.into()));
        self
    }
}

impl fmt::Debug for Annotations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Annotations")
            .field("nature", &self.nature)
            .field("is_destructive", &self.is_destructive)
            .field("timeout", &self.timeout)
            .field("retries", &self.retries)
            .field("is_unchecked", &self.is_unchecked)
            .field("loop_key", &self.loop_key.is_some())
            .field("ok_is_data", &self.ok_is_data)
            .field("blocks", &self.blocks)
            .field("polls", &self.polls)
            .field("by_arguments", &self.by_arguments)
            .field("recommendations", &self.recommendations)
            .finish()
    }
}
