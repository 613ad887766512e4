//! What is written down of a server: that it came and went, what it said to people, and what its tools are.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// More than this does not wait to be written.
const WAITING: usize = 4096;

/// Something that happened to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Happened {
    Started {
        pid: Option<u32>,
    },
    Exited {
        words: String,
        code: Option<i32>,
        remarks: Vec<String>,
    },
    Restarted {
        attempt: u32,
        waited: Duration,
    },
    Shut {
        why: String,
        lasts: Duration,
    },
    /// It answers again.
    Recovered,
    Unresponsive {
        silent_for: Duration,
    },
    Noise {
        begins: String,
        why: String,
    },
    /// It said these lines to people.
    Remarks(Vec<String>),
    Listed(BTreeMap<String, String>),
}

/// What a server says to people is written down at most so often, and not more of it than this.
const REMARKS_EVERY: Duration = Duration::from_secs(2);
const REMARKS_MAX: usize = 20;

/// The way to whoever writes it down. All clones are the same one.
#[derive(Clone)]
pub(super) struct Notes(SyncSender<Told>);

enum Told {
    Happened(Happened),
    Remark(String),
    /// Nothing comes after this.
    Over,
}

/// What is told, for the one thread that writes it down.
pub(super) struct Notebook(Receiver<Told>);

impl Notes {
    pub(super) fn new() -> (Notes, Notebook) {
        let (tell, told) = sync_channel(WAITING);
        (Notes(tell), Notebook(told))
    }

    /// Tells of something. What comes faster than it can be written is left out.
    pub(super) fn tell(&self, happened: Happened) {
        let _too_much_at_once = self.0.try_send(Told::Happened(happened));
    }

    /// Tells what the server said to people.
    pub(super) fn remark(&self, line: String) {
        let _too_much_at_once = self.0.try_send(Told::Remark(line));
    }

    /// Nothing more is told.
    pub(super) async fn close(&self) {
        let tell = self.0.clone();
        let _nobody_writes_any_more = tokio::task::spawn_blocking(move || tell.send(Told::Over)).await;
    }
}

impl Notebook {
    /// Hands on all that is told until nothing more comes; remarks a few at a time.
    pub(super) fn write(self, mut each: impl FnMut(Happened)) {
        let mut remarks: Vec<String> = Vec::new();
        let mut due: Option<Instant> = None;
        loop {
            let told = match due {
                None => self.0.recv().map_err(RecvTimeoutError::from),
                Some(due) => self.0.recv_timeout(due.saturating_duration_since(Instant::now())),
            };
            match told {
                Ok(Told::Remark(line)) => {
                    due.get_or_insert_with(|| Instant::now() + REMARKS_EVERY);
                    if remarks.len() == REMARKS_MAX {
                        remarks.remove(0);
                    }
                    remarks.push(line);
                    continue;
                }
                // Its end tells the last of them itself.
                Ok(Told::Happened(happened @ Happened::Exited { .. })) => {
                    remarks.clear();
                    each(happened);
                }
                Ok(Told::Happened(happened)) => {
                    each(happened);
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Told::Over) | Err(RecvTimeoutError::Disconnected) => {
                    if !remarks.is_empty() {
                        each(Happened::Remarks(remarks));
                    }
                    return;
                }
            }
            due = None;
            if !remarks.is_empty() {
                each(Happened::Remarks(std::mem::take(&mut remarks)));
            }
        }
    }
}
