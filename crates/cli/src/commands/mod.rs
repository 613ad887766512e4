//! One command, one file.

pub(crate) mod alerts;
pub(crate) mod allow;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod diagnose;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod gc;
pub(crate) mod heartbeat;
pub(crate) mod hook;
pub(crate) mod install;
pub(crate) mod log;
pub(crate) mod pause;
pub(crate) mod problems;
pub(crate) mod purge;
pub(crate) mod replay;
pub(crate) mod resume;
pub(crate) mod rules;
pub(crate) mod show;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod uninstall;
