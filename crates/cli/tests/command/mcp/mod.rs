//! `unstuck mcp`: a client on one side, a server on the other, and neither notices what stands between them unless it helps.

mod arguments;
mod bad_input;
mod batches;
mod client;
mod endings;
mod failures;
mod flood;
#[cfg(target_os = "linux")]
mod footprint;
mod injection;
mod killed;
mod leaving;
mod load;
mod memory;
mod model;
mod names;
mod over_http;
#[cfg(target_os = "linux")]
mod pause;
mod proof;
mod questions;
mod retries;
mod shown;
mod soak;
mod supervision;
mod together;
mod too_long;
mod transparency;
mod unwritable;
mod view;
