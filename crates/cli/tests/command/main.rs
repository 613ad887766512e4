//! The binary `unstuck`, from the outside: real processes on a machine with nothing on it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod agent;
mod agent_files;
mod alerts;
mod allow;
mod bad_input;
mod config;
mod demo;
mod diagnose_jsonl;
mod diagnose_piped;
mod diagnose_run;
mod doctor;
mod documented;
mod export;
mod false_alarms;
mod gc;
mod heartbeat;
mod hook;
mod hook_agents;
mod in_chinese;
mod install;
mod install_incidents;
mod kept;
mod log;
mod opencode_plugin;
mod pause;
mod problems;
mod protected;
mod purge;
mod replay;
mod restore;
mod rules;
mod safe_upkeep;
mod saved_before;
mod show;
mod snapshot;
mod stats;
mod terminal;
mod undo;
mod world;
