//! The MCP door: stands between a client and a server that know nothing of it, passes on what they say to each other, and
//! looks after the calls of tools. It alone in this crate is asynchronous.

mod answer;
mod behind;
mod catalogue;
mod child;
mod chronicle;
mod client;
mod http;
mod intake;
mod journey;
mod lane;
mod link;
mod loads;
mod naming;
mod notes;
mod outlet;
mod owed;
mod proxy;
mod supervisor;
mod switchboard;

pub(crate) use behind::Agents;
pub(crate) use child::ServerCommand;
pub(crate) use chronicle::Chronicle;
pub(crate) use http::HttpSettings;
pub(crate) use naming::{named_by, without_secrets};
use proxy::Proxy;
pub(crate) use proxy::{Remembers, Terms, plain, run};
pub(crate) use supervisor::Way;
