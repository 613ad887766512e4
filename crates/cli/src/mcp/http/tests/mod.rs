//! Real connections on loopback, to servers of all kinds.

mod answers;
mod faults;
mod host;
mod proxies;
mod sessions;
