//! Those who are asked before a tool runs and told after it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use unstuck_judge::Kind;

use crate::call::CallInfo;
use crate::failure::Failure;

/// What a hook says before a tool runs.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum Before {
    /// Nothing: the next hook is asked.
    #[default]
    Allow,
    /// It runs with these arguments, and the next hook sees them.
    Rewrite(Value),
    /// It does not run; this is why.
    Deny(String),
    /// A person has to allow it; this is the question.
    Ask(String),
    /// It does not run, because this is its result.
    Supply(Value),
}

/// What a hook says after an attempt.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum After {
    /// Nothing.
    #[default]
    Keep,
    /// This is the result.
    Replace(Value),
    /// It failed, whatever the tool said.
    Fail(Failure),
}

/// The next attempt at a call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Next {
    /// Which one it will be, counted from 1.
    pub attempt: u32,
    /// How many there are at most.
    pub of: u32,
    /// After how long it begins.
    pub wait: Duration,
    /// Why the one before failed.
    pub kind: Kind,
    /// The line that shows it.
    pub line: String,
}

/// When a hook is asked or told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before a tool runs.
    Before,
    /// After an attempt.
    After,
    /// Where a call will be sent again.
    Retrying,
}

/// What came of an attempt, as hooks see it.
pub type Attempted = Result<Value, Failure>;

/// Somebody who is asked before a tool runs and told after each attempt.
///
/// Hooks are asked in the order in which they were added. The first that denies or supplies a result decides; a rewrite goes on
/// to the next with the new arguments; where one wants a person to be asked, the others are asked first. Afterwards they are
/// told in the opposite order, each with what the one before made of the result, and the ladder counts what is left in the end.
///
/// A hook that panics or takes longer than [`Policy::hook_timeout`](crate::Policy::hook_timeout), 5 seconds unless you say
/// otherwise, changes nothing, unless it [is a guard](Hook::is_guard): then nothing runs. An event `error` of phase `hook` tells of it, and one that came too
/// late three times in a row is left out. What a hook calls itself is not asked about.
///
/// ```
/// use std::sync::Arc;
/// use unstuck::{Before, CallInfo, Hook};
///
/// struct NoSecrets;
///
/// impl Hook for NoSecrets {
///     fn name(&self) -> &str {
///         "no-secrets"
///     }
///
///     async fn before(&self, call: Arc<CallInfo>) -> Before {
///         match call.input()["path"].as_str() {
///             Some(path) if path.ends_with(".env") => Before::Deny("secrets are not read".into()),
///             _ => Before::Allow,
///         }
///     }
/// }
/// ```
pub trait Hook: Send + Sync + 'static {
    /// Its name in events.
    fn name(&self) -> &str;

    /// Must it have answered before anything runs? A guard says yes: where it panics or comes too late, the call is denied. Others
    /// are left out then, and the call goes on.
    fn is_guard(&self) -> bool {
        false
    }

    /// When it has something to say; always, unless it says otherwise. At other moments no call waits for it.
    fn moments(&self) -> &[Moment] {
        &[Moment::Before, Moment::After, Moment::Retrying]
    }

    /// A call is asked for. It is no place to wait for a person in: that is what [`Before::Ask`] is for.
    fn before(&self, call: Arc<CallInfo>) -> impl Future<Output = Before> + Send {
        let _ = call;
        async { Before::Allow }
    }

    /// An attempt ended.
    fn after(&self, call: Arc<CallInfo>, attempted: Arc<Attempted>) -> impl Future<Output = After> + Send {
        let _ = (call, attempted);
        async { After::Keep }
    }

    /// The call will be sent again. Nobody waits for what is done here: the wait begins at once. Of one call they come in order.
    fn retrying(&self, call: Arc<CallInfo>, next: Next) -> impl Future<Output = ()> + Send {
        let _ = (call, next);
        async {}
    }
}

/// What a hook answers, of whatever type it is.
pub(crate) type Answer<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A hook without its type. It answers nothing at moments that are not its own.
pub(crate) trait AnyHook: Send + Sync {
    fn ask(self: Arc<Self>, call: Arc<CallInfo>) -> Option<Answer<Before>>;
    fn tell(self: Arc<Self>, call: Arc<CallInfo>, attempted: Arc<Attempted>) -> Option<Answer<After>>;
    fn announce(self: Arc<Self>, call: Arc<CallInfo>, next: Next) -> Option<Answer<()>>;
}

impl<H: Hook> AnyHook for H {
    fn ask(self: Arc<Self>, call: Arc<CallInfo>) -> Option<Answer<Before>> {
        let is_its_own = self.moments().contains(&Moment::Before);
        is_its_own.then(|| Box::pin(async move { self.before(call).await }) as Answer<Before>)
    }

    fn tell(self: Arc<Self>, call: Arc<CallInfo>, attempted: Arc<Attempted>) -> Option<Answer<After>> {
        let is_its_own = self.moments().contains(&Moment::After);
        is_its_own.then(|| Box::pin(async move { self.after(call, attempted).await }) as Answer<After>)
    }

    fn announce(self: Arc<Self>, call: Arc<CallInfo>, next: Next) -> Option<Answer<()>> {
        let is_its_own = self.moments().contains(&Moment::Retrying);
        is_its_own.then(|| Box::pin(async move { self.retrying(call, next).await }) as Answer<()>)
    }
}
