//! The states of a call, and which may follow which.

use unstuck_judge::{Lang, vocabulary};

vocabulary! {
    /// Where a call stands.
    CallState {
        /// It was asked for.
        Pending = "pending",
        /// A person has to allow it.
        ApprovalRequired = "approval_required",
        /// A person did.
        Approved = "approved",
        /// It runs.
        Executing = "executing",
        /// It went well.
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// It was not allowed to run.
        Denied = "denied",
        /// Whoever ran it is gone, and nobody knows how it ended.
        Sealed = "sealed",
    }
}

impl CallState {
    /// Is this the end?
    pub const fn is_final(self) -> bool {
        match self {
            CallState::Pending | CallState::ApprovalRequired | CallState::Approved | CallState::Executing => {
                false
            }
            CallState::Completed | CallState::Failed | CallState::Denied | CallState::Sealed => true,
        }
    }

    /// Was it asked for, and has it not ended?
    pub(crate) const fn was_let_pass(self) -> bool {
        match self {
            CallState::ApprovalRequired | CallState::Approved | CallState::Executing => true,
            CallState::Pending
            | CallState::Completed
            | CallState::Failed
            | CallState::Denied
            | CallState::Sealed => false,
        }
    }

    /// May a call that stands here go on to `next`?
    pub const fn may_become(self, next: CallState) -> bool {
        match (self, next) {
            (CallState::Pending, CallState::Pending) => false,
            (CallState::Pending, _) => true,
            (
                CallState::ApprovalRequired,
                CallState::Approved
                | CallState::Executing
                | CallState::Completed
                | CallState::Failed
                | CallState::Denied
                | CallState::Sealed,
            ) => true,
            (
                CallState::Approved,
                CallState::Executing
                | CallState::Completed
                | CallState::Failed
                | CallState::Denied
                | CallState::Sealed,
            ) => true,
            // A host that asks a person by itself says so only after we let the call pass.
            (
                CallState::Executing,
                CallState::ApprovalRequired
                | CallState::Approved
                | CallState::Completed
                | CallState::Failed
                | CallState::Denied
                | CallState::Sealed,
            ) => true,
            // A result that comes in late still counts, and so does one of a call that ran although it was refused.
            (CallState::Sealed | CallState::Denied, CallState::Completed | CallState::Failed) => true,
            (
                CallState::ApprovalRequired
                | CallState::Approved
                | CallState::Executing
                | CallState::Completed
                | CallState::Failed
                | CallState::Denied
                | CallState::Sealed,
                _,
            ) => false,
        }
    }

    /// What is said of a call that was sealed while it stood here. Only of one that `is_owned`, by a process that we know, it is
    /// known whether it ran: agents ask a person after their hooks, and do not tell what was answered.
    pub const fn seal_text(self, is_owned: bool, lang: Lang) -> &'static str {
        match (self, is_owned, lang) {
            (CallState::Pending, _, Lang::En) => "was asked for and never began: it may be sent again",
            (CallState::Pending, _, Lang::Zh) => "已提出但从未开始：可以再次发送",
            (CallState::ApprovalRequired, true, Lang::En) => {
                "was waiting for a person's approval: it did not run"
            }
            (CallState::ApprovalRequired, true, Lang::Zh) => "正在等待人工批准：没有执行",
            (CallState::Approved, _, Lang::En) => {
                "was approved, and it is not known whether it began: check for side effects before repeating"
            }
            (CallState::Approved, _, Lang::Zh) => "已获批准，但不清楚是否开始：重复之前先检查副作用",
            (CallState::Executing, true, Lang::En) => "was running: check for side effects before repeating",
            (CallState::Executing, true, Lang::Zh) => "当时正在运行：重复之前先检查副作用",
            (CallState::ApprovalRequired | CallState::Executing, false, Lang::En) => {
                "never had a result, and it is not known whether it ran: check for side effects before repeating"
            }
            (CallState::ApprovalRequired | CallState::Executing, false, Lang::Zh) => {
                "一直没有结果，不清楚是否执行过：重复之前先检查副作用"
            }
            (
                CallState::Completed | CallState::Failed | CallState::Denied | CallState::Sealed,
                _,
                Lang::En,
            ) => "had ended",
            (
                CallState::Completed | CallState::Failed | CallState::Denied | CallState::Sealed,
                _,
                Lang::Zh,
            ) => "已经结束",
        }
    }
}
