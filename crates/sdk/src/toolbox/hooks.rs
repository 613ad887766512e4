//! Asks the hooks before a call and tells them after each attempt. Whatever one of them does, the others and the call go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::backstage::EndedWithUs;
use super::{Inner, attempt, now};
use crate::call::CallInfo;
use crate::hook::{After, AnyHook, Attempted, Before, Hook, Next};

tokio::task_local! {
    /// There inside of a hook. What it calls itself is not asked about: it would be asked for ever.
    static INSIDE: ();
}

/// Are we inside of a hook?
pub(super) fn is_inside() -> bool {
    INSIDE.try_with(|()| ()).is_ok()
}

/// What the hooks make of a call.
pub(crate) enum Ruling {
    /// It runs, with the arguments it has now.
    Run,
    /// It does not; this is why.
    Deny(String),
    /// A person has to allow it.
    Ask(String),
    /// It does not, because this is its result.
    Supply(Value),
}

/// A hook that came too late so often in a row is left out: it may hold a thread each time.
const LATE_MAX: u32 = 3;

/// A hook in its place.
pub(crate) struct Plugged {
    hook: Arc<dyn AnyHook>,
    name: String,
    is_guard: bool,
    /// How often in a row it came too late.
    late: AtomicU32,
}

impl Plugged {
    pub(crate) fn new<H: Hook>(hook: H) -> Plugged {
        Plugged {
            name: hook.name().to_owned(),
            is_guard: hook.is_guard(),
            hook: Arc::new(hook),
            late: AtomicU32::new(0),
        }
    }

    fn is_left_out(&self) -> bool {
        !self.is_guard && self.late.load(Ordering::Relaxed) >= LATE_MAX
    }

    fn note_heard(&self) {
        self.late.store(0, Ordering::Relaxed);
    }

    /// It came too late; is that enough?
    fn note_late(&self) -> bool {
        self.late.fetch_add(1, Ordering::Relaxed) + 1 >= LATE_MAX
    }
}

/// Asks them one after the other. The call is changed where one of them rewrites its arguments.
pub(crate) async fn ask(inner: &Inner, call: &mut Arc<CallInfo>) -> Ruling {
    let mut question = None;
    for hook in &inner.hooks {
        let answer = Arc::clone(&hook.hook).ask(Arc::clone(call));
        let Some(answer) = answer else { continue };
        let unheard = match hook.is_guard {
            true => Before::Deny(format!("the hook `{}` guards this and could not decide", hook.name)),
            false => Before::Allow,
        };
        match heard(inner, hook, call, answer, unheard).await {
            Before::Allow => {}
            Before::Rewrite(input) => {
                *call = Arc::new(call.with_input(input));
            }
            Before::Deny(why) => return Ruling::Deny(why),
            // The others may still say no, and what is asked about is what would run.
            Before::Ask(words) => question = question.or(Some(words)),
            Before::Supply(result) => return Ruling::Supply(result),
        }
    }
    question.map_or(Ruling::Run, Ruling::Ask)
}

/// Tells them, the last one first; each is told what the one before made of it.
pub(crate) async fn tell(inner: &Inner, call: &Arc<CallInfo>, attempted: Attempted) -> Attempted {
    if inner.hooks.is_empty() {
        return attempted;
    }
    let mut attempted = Arc::new(attempted);
    for hook in inner.hooks.iter().rev() {
        let answer = Arc::clone(&hook.hook).tell(Arc::clone(call), Arc::clone(&attempted));
        let Some(answer) = answer else { continue };
        match heard(inner, hook, call, answer, After::Keep).await {
            After::Keep => {}
            After::Replace(result) => attempted = Arc::new(Ok(result)),
            After::Fail(failure) => attempted = Arc::new(Err(failure)),
        }
    }
    Arc::unwrap_or_clone(attempted)
}

/// Tells them that a call is sent again, after what they were told of it `before`. Nobody waits for it.
pub(crate) fn announce(
    inner: &Arc<Inner>,
    call: &Arc<CallInfo>,
    next: Next,
    before: Option<Told>,
) -> Option<Told> {
    if inner.hooks.is_empty() {
        return None;
    }
    let (inner, call) = (Arc::clone(inner), Arc::clone(call));
    Some(tokio::spawn(async move {
        let _running = inner.running.token();
        if let Some(before) = before {
            let _panics_are_caught_there = before.await;
        }
        for hook in &inner.hooks {
            if let Some(answer) = Arc::clone(&hook.hook).announce(Arc::clone(&call), next.clone()) {
                heard(&inner, hook, &call, answer, ()).await;
            }
        }
    }))
}

/// The hooks are being told something.
pub(crate) type Told = JoinHandle<()>;

/// Waits for what a hook says, in a task of its own; one that panics or takes too long says nothing.
async fn heard<T: Send + 'static>(
    inner: &Inner,
    hook: &Plugged,
    call: &Arc<CallInfo>,
    answer: crate::hook::Answer<T>,
    unheard: T,
) -> T {
    if hook.is_left_out() {
        return unheard;
    }
    let limit = inner.policy.hook_timeout;
    let mut task = EndedWithUs(tokio::spawn(INSIDE.scope((), answer)));
    let wrong = match timeout(limit, &mut task.0).await {
        Ok(Ok(said)) => {
            hook.note_heard();
            return said;
        }
        Ok(Err(error)) => match error.try_into_panic() {
            Ok(payload) => format!("panicked: {}", attempt::words_of(payload)),
            Err(_) => "was ended".to_owned(),
        },
        Err(_) => {
            let left_out = if hook.note_late() { "; it is left out from now on" } else { "" };
            format!("took longer than {} s{left_out}", limit.as_secs_f64())
        }
    };
    let message = format!("the hook `{}` {wrong}", hook.name);
    inner.ledger.fault(call, "hook", &message, now());
    unheard
}
