//! What a tool knows of the call it works on.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::call::{CallInfo, ToolCall};

/// What a tool knows of the call it works on.
#[derive(Debug, Clone)]
pub struct ToolContext {
    pub(crate) call: Arc<CallInfo>,
    pub(crate) attempt: u32,
    pub(crate) cancellation: CancellationToken,
}

impl ToolContext {
    /// The context of a call that no toolbox makes: for tests of tools.
    pub fn new(call: ToolCall) -> ToolContext {
        ToolContext { call: Arc::new(call.into()), attempt: 1, cancellation: CancellationToken::new() }
    }

    /// The call.
    pub fn call(&self) -> &CallInfo {
        &self.call
    }

    /// Which attempt it is, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Was the attempt given up? Nobody waits for its result any more.
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// Comes back when the attempt is given up. A tool that works in steps waits for this beside each of them; one that does
    /// not is dropped at an `await` of its own a little later, and at once where the caller itself stops waiting.
    pub async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }

    /// The same as a token to hand on.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }
}
