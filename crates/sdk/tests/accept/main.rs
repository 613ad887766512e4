//! What is asked of the library, one test for each requirement: `docs/requirements.toml` names them, `cargo xtask accept` runs them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]
