//! `unstuck mcp`: a client on one side, a server on the other, and neither notices what stands between them unless it helps.

mod arguments;
mod bad_input;
mod client;
mod failures;
mod leaving;
mod memory;
mod proof;
mod questions;
mod retries;
mod soak;
mod supervision;
mod transparency;
