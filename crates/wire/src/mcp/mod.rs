//! The Model Context Protocol as far as somebody in the middle has to read it: frames, what kind of message each is, calls of
//! tools and what came of them. Messages are looked at where they lie and passed on as they came; only what is answered or
//! added here is written here.

mod event_stream;
mod extract;
mod fields;
mod framing;
mod glimpse;
mod handshake;
mod id;
mod message;
mod patch;
mod said;
mod session;
mod tool_call;
mod tool_list;
mod tool_result;

#[cfg(test)]
mod tests;

pub use event_stream::{EventStream, StreamStep};
pub use fields::Fields;
pub(crate) use framing::end_of_string;
pub use framing::{Framer, Piece, depth};
pub use glimpse::{Glimpse, Scanner, Sort};
pub use handshake::{Greeting, Welcome};
pub use id::Id;
pub use message::{Message, Part, apart, cancels, read};
pub use patch::{Addition, add, cancelling, rename, renamed, with_argument};
pub use said::{ErrorCode, answered, cancelled, failed, notified, progress, request};
pub use session::{session_field, session_in};
pub use tool_call::ToolCall;
pub use tool_list::{Hints, ListedTool, ToolList};
pub use tool_result::{RpcError, ToolResult, is_our_account, tells_failure};

/// The first revision of the protocol without a handshake.
pub const FIRST_STATELESS: &str = "2026-07-28";

/// Where a request of the stateless era says which revision it speaks.
pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
