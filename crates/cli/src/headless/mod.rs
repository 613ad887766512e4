//! Agent programs at work without a person: how each is started, what its output tells, and how its session is taken up
//! again. Whether and when it is started again is decided elsewhere.

mod agent_work;
mod claude;
mod codex;
mod gemini;
mod heard;
mod lap;
mod listener;
mod message;
mod program;
mod tail;

pub(crate) use agent_work::{AgentWork, Patience};
pub(crate) use lap::Began;
pub(crate) use program::{Program, Reach, is_session_name};
