//! All that survives the process: the timeline of calls, the standing that short processes share, recurring problems.
//!
//! One SQLite file in a folder of the user's own. Hooks are hundreds of tiny processes, several at once: each makes one
//! transaction and is gone, and what cannot be written in time goes to a spool that the next one takes in. Time, dice and
//! settings come in as arguments, texts only as [`Clean`](unstuck_wire::clean::Clean); nothing is printed or started here.

mod advocate;
mod alert;
mod alert_rule;
pub mod body;
mod brake;
mod call_row;
mod calls;
mod chain;
mod copies;
mod database;
mod desk;
mod entry;
mod error;
mod event;
mod examine;
mod export;
mod fact;
mod filesystem;
mod glance;
mod heard;
mod hook_times;
mod judged;
mod keeper;
mod lesson;
mod lesson_removal;
mod lessons;
mod life;
mod migrate;
mod mode;
mod pack;
mod past_retries;
mod problem;
mod problem_state;
mod problems;
mod purge;
mod record;
mod recover;
mod removal;
mod retention;
mod rewritten;
mod root;
mod rows;
mod safe;
#[cfg(test)]
mod sample;
mod scanned;
mod seal;
mod server;
mod server_name;
mod server_tools;
mod session;
mod source;
mod spool;
mod stance;
mod standing;
mod state;
mod stats;
mod store;
mod stored_entry;
mod stored_server;
mod timeline;
mod tool_errors;

pub use advocate::{Advocate, Checked, Failed, Proposal, Stands};
pub use alert::{
    AlertLook, Delivery, DeliveryClaim, DeliveryOutcome, DeliveryState, FiredAlert, Recipient, TRIES_MAX,
};
pub use alert_rule::{AlertFilter, AlertRule, AlertWhen};
pub use brake::{Brakes, Retry, retry_without_memory};
pub use calls::{LifeStep, StoredCall, StoredCallText};
pub use chain::{ChainFault, ChainFound, ChainState};
pub use entry::{
    Asked, Bounds, Ended, Entry, Finding, Hears, HookFault, NAME_MAX, OwnFault, RetryAsk, Retrying, Ruling,
    Sender, Series, Severity, Which, Who,
};
pub use error::{Deed, Foreign, StoreError};
pub use event::{Bookmark, Channel, EventType, StoredEvent};
pub use examine::Examined;
pub use export::{Exported, Selection, Since};
pub use filesystem::Filesystem;
pub use glance::{FaultSeen, Glance, HostSeen, Removal};
pub use heard::Heard;
pub use hook_times::{HookTimes, Phase, Spread};
pub use judged::{OwnAttempts, Resend, Told};
pub use keeper::{Answer, Keeper, Kept, Patience, Surroundings, Tended};
pub use lesson::{LessonState, Showing, ShownOutcome, fix_from_json, fix_to_json};
pub use lessons::{
    DEEDS_MAX, Imported, Lesson, LessonEffect, LessonLine, LessonOrigin, LessonPlace, LessonScope,
    LessonsWanted, LineError, WORDS_MAX,
};
pub use mode::{Mode, Modes};
pub use problem_state::{ProblemAges, ProblemState, ProblemTimes};
pub use problems::{Problem, ProblemSession};
pub use purge::{CopiesToo, Purge, Purged};
pub use record::{Bench, KNOWS_FOR_MS, Said, is_same_note};
pub use recover::{RecoverHow, Recovered, is_damaged, put_aside, set_aside};
pub use removal::Removed;
pub use retention::{Retention, Size};
pub use rewritten::Rewritten;
pub use root::Root;
pub use rows::{SkippedRows, skipped_rows};
pub use safe::{Instead, SafeCall, SafeDeed, SafeNote};
pub use scanned::{FoundLesson, Scanned};
pub use seal::Sealed;
pub use server::{ServerNote, ServerWhat};
pub use server_name::server_of;
pub use server_tools::{OfferedTool, ToolChanges};
pub use source::Source;
pub use spool::{leave_word, note_crash};
pub use stance::{Allowance, Stance, key_of};
pub use state::CallState;
pub use stats::{ATTEMPTS, Attempts, GroupBy, Stats, StatsKey, StatsScope};
pub use store::Store;
pub use timeline::{FileMark, StoredSession, Wanted};
pub use tool_errors::ToolError;
