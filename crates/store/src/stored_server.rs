//! What happened to a server, as a line of the spool holds it.

use serde::{Deserialize, Serialize};
use unstuck_wire::clean::Clean;

use crate::server::ServerWhat;
use crate::server_tools::ToolChanges;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub(crate) enum StoredServerWhat {
    Started { pid: Option<u32>, command: String },
    Exited { text: String, code: Option<i32>, stderr: Vec<String> },
    Restarted { attempt: u32, waited_ms: u64 },
    GaveUp { why: String, for_ms: Option<u64> },
    Recovered,
    Unresponsive { text: String, waited_ms: u64 },
    Noise { beginning: String, why: String },
    ToolsChanged { added: Vec<String>, removed: Vec<String>, changed: Vec<String> },
    Remark { lines: Vec<String> },
}

impl From<&ServerWhat> for StoredServerWhat {
    fn from(what: &ServerWhat) -> StoredServerWhat {
        match what {
            ServerWhat::Started { pid, command } => {
                StoredServerWhat::Started { pid: *pid, command: command.to_string() }
            }
            ServerWhat::Exited { text, code, stderr } => {
                StoredServerWhat::Exited { text: text.to_string(), code: *code, stderr: texts(stderr) }
            }
            ServerWhat::Restarted { attempt, waited_ms } => {
                StoredServerWhat::Restarted { attempt: *attempt, waited_ms: *waited_ms }
            }
            ServerWhat::GaveUp { why, for_ms } => {
                StoredServerWhat::GaveUp { why: why.to_string(), for_ms: *for_ms }
            }
            ServerWhat::Recovered => StoredServerWhat::Recovered,
            ServerWhat::Unresponsive { text, waited_ms } => {
                StoredServerWhat::Unresponsive { text: text.to_string(), waited_ms: *waited_ms }
            }
            ServerWhat::Noise { beginning, why } => {
                StoredServerWhat::Noise { beginning: beginning.to_string(), why: why.to_string() }
            }
            ServerWhat::ToolsChanged(ToolChanges { added, removed, changed }) => {
                StoredServerWhat::ToolsChanged {
                    added: texts(added),
                    removed: texts(removed),
                    changed: texts(changed),
                }
            }
            ServerWhat::Remark { lines } => StoredServerWhat::Remark { lines: texts(lines) },
        }
    }
}

impl StoredServerWhat {
    pub(crate) fn read(self) -> ServerWhat {
        match self {
            StoredServerWhat::Started { pid, command } => {
                ServerWhat::Started { pid, command: Clean::stored(command) }
            }
            StoredServerWhat::Exited { text, code, stderr } => {
                ServerWhat::Exited { text: Clean::stored(text), code, stderr: cleans(stderr) }
            }
            StoredServerWhat::Restarted { attempt, waited_ms } => {
                ServerWhat::Restarted { attempt, waited_ms }
            }
            StoredServerWhat::GaveUp { why, for_ms } => {
                ServerWhat::GaveUp { why: Clean::stored(why), for_ms }
            }
            StoredServerWhat::Recovered => ServerWhat::Recovered,
            StoredServerWhat::Unresponsive { text, waited_ms } => {
                ServerWhat::Unresponsive { text: Clean::stored(text), waited_ms }
            }
            StoredServerWhat::Noise { beginning, why } => {
                ServerWhat::Noise { beginning: Clean::stored(beginning), why: Clean::stored(why) }
            }
            StoredServerWhat::ToolsChanged { added, removed, changed } => {
                ServerWhat::ToolsChanged(ToolChanges {
                    added: cleans(added),
                    removed: cleans(removed),
                    changed: cleans(changed),
                })
            }
            StoredServerWhat::Remark { lines } => ServerWhat::Remark { lines: cleans(lines) },
        }
    }
}

fn texts(all: &[Clean]) -> Vec<String> {
    all.iter().map(Clean::to_string).collect()
}

fn cleans(all: Vec<String>) -> Vec<Clean> {
    all.into_iter().map(Clean::stored).collect()
}
