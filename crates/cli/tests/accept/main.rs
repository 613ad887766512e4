//! What is asked of the programs, one test for each requirement: `docs/requirements.toml` names them, `cargo xtask accept` runs
//! them. Every test drives the built binary as a user, an agent or a client would.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod adaptive_retry;
mod claude;
#[path = "../command/mcp/client.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod client;
#[path = "../command/misbehaving.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod misbehaving;
mod repeated_errors;
mod self_correction;
#[path = "../command/world.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod world;
