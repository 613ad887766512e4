//! What is written down of a server: that it came and went, what it said to people, and what its tools are. Whoever tells never
//! waits, and however much a server says, little of it waits to be written.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// More than this does not wait to be written.
const WAITING: usize = 4096;
/// What a server says to people, and what it says that is no message, is written down at most so often,
const CHATTER_EVERY: Duration = Duration::from_secs(2);
/// and not more lines of it than this.
const REMARKS_MAX: usize = 20;

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
    /// It said something that is no message, and so many more like it.
    Noise {
        begins: String,
        why: String,
        more: u64,
    },
    /// It said these lines to people.
    Remarks(Vec<String>),
    Listed(BTreeMap<String, String>),
}

/// The way to whoever writes it down. All clones are the same one.
#[derive(Clone)]
pub(super) struct Notes(Arc<Inbox>);

/// What is told, for the one thread that writes it down.
pub(super) struct Notebook(Arc<Inbox>);

#[derive(Default)]
struct Inbox {
    told: Mutex<Told>,
    /// Something is told.
    comes: Condvar,
}

/// What is not written down yet.
#[derive(Default)]
struct Told {
    happened: VecDeque<Happened>,
    /// The last list of tools: those before it nobody needs to see any more.
    listed: Option<BTreeMap<String, String>>,
    /// The last lines that it said to people.
    remarks: VecDeque<String>,
    /// What is no message: of each kind the first, and how many more came.
    noise: BTreeMap<String, (String, u64)>,
    /// When both of these are written.
    due: Option<Instant>,
    /// Nothing more comes.
    is_over: bool,
}

impl Told {
    /// What is to be written now; nothing where that is nothing yet.
    fn ripe(&mut self) -> Vec<Happened> {
        let mut ripe: Vec<Happened> = self.happened.drain(..).collect();
        ripe.extend(self.listed.take().map(Happened::Listed));
        if self.is_over || self.due.is_some_and(|due| due <= Instant::now()) {
            ripe.extend(self.chatter());
        }
        ripe
    }

    /// What it said beside its messages.
    fn chatter(&mut self) -> Vec<Happened> {
        self.due = None;
        let noise = std::mem::take(&mut self.noise);
        let noise = noise.into_iter().map(|(why, (begins, more))| Happened::Noise { begins, why, more });
        let mut chatter: Vec<Happened> = noise.collect();
        if !self.remarks.is_empty() {
            chatter.push(Happened::Remarks(std::mem::take(&mut self.remarks).into()));
        }
        chatter
    }

    fn is_due(&mut self) {
        self.due.get_or_insert_with(|| Instant::now() + CHATTER_EVERY);
    }
}

impl Notes {
    pub(super) fn new() -> (Notes, Notebook) {
        let inbox = Arc::<Inbox>::default();
        (Notes(Arc::clone(&inbox)), Notebook(inbox))
    }

    /// Tells of something. What comes faster than it can be written is left out.
    pub(super) fn tell(&self, happened: Happened) {
        self.0.change(|told| match happened {
            Happened::Listed(digests) => told.listed = Some(digests),
            Happened::Exited { .. } => {
                // It tells the last of them itself.
                told.remarks.clear();
                let noise = told.chatter();
                told.happened.extend(noise);
                told.happened.push_back(happened);
            }
            Happened::Started { .. }
            | Happened::Restarted { .. }
            | Happened::Shut { .. }
            | Happened::Recovered
            | Happened::Unresponsive { .. }
            | Happened::Noise { .. }
            | Happened::Remarks(_) => {
                if told.happened.len() < WAITING {
                    told.happened.push_back(happened);
                }
            }
        });
    }

    /// Tells what the server said to people.
    pub(super) fn remark(&self, line: String) {
        self.0.change(|told| {
            if told.remarks.len() == REMARKS_MAX {
                told.remarks.pop_front();
            }
            told.remarks.push_back(line);
            told.is_due();
        });
    }

    /// Tells of something that is no message.
    pub(super) fn noise(&self, begins: String, why: String) {
        self.0.change(|told| {
            told.noise.entry(why).and_modify(|(_, more)| *more += 1).or_insert((begins, 0));
            told.is_due();
        });
    }
}

/// Nothing more is told once this is dropped.
pub(super) struct Closing(pub(super) Notes);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.0.change(|told| told.is_over = true);
    }
}

impl Inbox {
    fn change(&self, change: impl FnOnce(&mut Told)) {
        change(&mut self.lock());
        self.comes.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Notebook {
    /// Hands on all that is told until nothing more comes; what it says beside its messages a little at a time.
    pub(super) fn write(self, mut each: impl FnMut(Happened)) {
        let mut told = self.0.lock();
        loop {
            let ripe = told.ripe();
            if ripe.is_empty() {
                if told.is_over {
                    return;
                }
                told = match told.due {
                    None => self.0.comes.wait(told).unwrap_or_else(PoisonError::into_inner),
                    Some(due) => {
                        let wait = due.saturating_duration_since(Instant::now());
                        self.0.comes.wait_timeout(told, wait).unwrap_or_else(PoisonError::into_inner).0
                    }
                };
                continue;
            }
            drop(told);
            ripe.into_iter().for_each(&mut each);
            told = self.0.lock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that is written of what is told at once.
    fn written(tell: impl FnOnce(&Notes)) -> Vec<Happened> {
        let (notes, notebook) = Notes::new();
        tell(&notes);
        drop(Closing(notes));
        let mut written = Vec::new();
        notebook.write(|happened| written.push(happened));
        written
    }

    fn list(digest: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("tool".to_owned(), digest.to_owned())])
    }

    #[test]
    fn however_much_noise_there_is_the_list_of_tools_is_written() {
        let noisy = |notes: &Notes| {
            (0..100_000).for_each(|line| notes.noise(format!("line {line}"), "not a message".to_owned()));
            notes.tell(Happened::Listed(list("old")));
            (0..100_000).for_each(|line| notes.remark(format!("remark {line}")));
            notes.tell(Happened::Listed(list("new")));
        };
        let remarks = (99_980..100_000).map(|line| format!("remark {line}")).collect();
        let (begins, why) = ("line 0".to_owned(), "not a message".to_owned());
        assert_eq!(
            written(noisy),
            [
                Happened::Listed(list("new")),
                Happened::Noise { begins, why, more: 99_999 },
                Happened::Remarks(remarks),
            ]
        );
    }

    #[test]
    fn the_last_words_of_a_server_are_told_with_its_end_alone() {
        let exited = || Happened::Exited { words: "gone".to_owned(), code: Some(1), remarks: Vec::new() };
        let ends = |notes: &Notes| {
            notes.noise("x".to_owned(), "not a message".to_owned());
            notes.remark("last words".to_owned());
            notes.tell(exited());
        };
        let (begins, why) = ("x".to_owned(), "not a message".to_owned());
        assert_eq!(written(ends), [Happened::Noise { begins, why, more: 0 }, exited()]);
    }
}
