//! What is still said when a hook comes to no end: it panics, or its time is over. Silence would let a call run, and a call
//! that puts files at risk does not run unprotected in silence.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use unstuck_store::Entry;

/// The last word of this process; there is none unless a risky call is being protected.
#[derive(Default)]
pub(crate) struct LastWord {
    word: Mutex<Option<Word>>,
}

/// An answer, and what it means for the timeline.
pub(crate) struct Word {
    /// One JSON object, as the agent reads it.
    pub(crate) answer: String,
    /// Nothing where it is recorded already.
    pub(crate) entry: Option<Entry>,
}

impl LastWord {
    /// The one of this process.
    pub(crate) fn of_this_process() -> Arc<LastWord> {
        Arc::clone(CURRENT.get_or_init(Arc::default))
    }

    /// From now on this is said if it comes to no end.
    pub(crate) fn prepare(&self, word: Word) {
        *self.lock() = Some(word);
    }

    /// It is no longer to be said. Where another thread is saying it, this waits for the end of the process.
    pub(crate) fn withdraw(&self) {
        *self.lock() = None;
    }

    /// Says it, and hands over what is still to be recorded. Whoever calls this ends the process; until then nobody else gets
    /// a word in.
    pub(crate) fn speak(&self) -> Spoken<'_> {
        let mut held = self.lock();
        let word = held.take();
        if let Some(word) = &word {
            let _nobody_is_left_to_tell = print(&word.answer);
        }
        Spoken { entry: word.and_then(|word| word.entry), _held: held }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Word>> {
        self.word.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last word was said, if there was one.
pub(crate) struct Spoken<'a> {
    /// What it means for the timeline.
    pub(crate) entry: Option<Entry>,
    /// Held to the end, so that no other answer follows.
    _held: MutexGuard<'a, Option<Word>>,
}

/// The last word of this process, where somebody without memory finds it.
static CURRENT: OnceLock<Arc<LastWord>> = OnceLock::new();

/// Says the last word, if there is one and nobody is changing it. Nothing is recorded of it, and nothing is allocated.
#[cfg(target_os = "linux")]
pub(crate) fn speak_without_memory(door: &[u8]) {
    let word = CURRENT.get().and_then(|current| current.word.try_lock().ok());
    let prepared = word.as_deref().and_then(Option::as_ref).map(|word| &*word.answer);
    if let Some(answer) = prepared.or_else(|| unseen::answer(door)) {
        let _nobody_is_left_to_tell = print(answer);
    }
}

/// A payload of which nobody has seen yet whether its call puts files at risk.
pub(crate) mod unseen {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// The event and the tool are named in so much of a payload.
    pub(crate) const BEGINNING: usize = 2048;

    static BEGINS: OnceLock<[u8; BEGINNING]> = OnceLock::new();
    static IS_SEEN: AtomicBool = AtomicBool::new(false);

    /// This is how it begins.
    pub(crate) fn begins(payload: &[u8]) {
        let mut beginning = [0; BEGINNING];
        let length = payload.len().min(BEGINNING);
        beginning[..length].copy_from_slice(&payload[..length]);
        let _there_is_only_one = BEGINS.set(beginning);
    }

    /// It was looked at, or nobody wants that.
    pub(crate) fn is_seen() {
        IS_SEEN.store(true, Ordering::Relaxed);
    }

    /// What is said where there is no memory to look at it. Nothing is allocated. Where the model is not heard before a call, a
    /// command of the shell is refused.
    #[cfg(target_os = "linux")]
    pub(super) fn answer(door: &[u8]) -> Option<&'static str> {
        if IS_SEEN.load(Ordering::Relaxed) {
            return None;
        }
        let mut read = [0; BEGINNING];
        let begins = BEGINS.get().unwrap_or_else(|| {
            if has_input() {
                let _nothing_says_nothing = rustix::io::read(std::io::stdin(), &mut read[..]);
            }
            &read
        });
        let names = |word: &str| begins.windows(word.len()).any(|part| part == word.as_bytes());
        let calls_a_shell = |event: &str, shell: &str| names(event) && names(shell);
        match door {
            b"claude" | b"codex" | b"copilot" if names("\"PreToolUse\"") => Some(TOLD),
            b"qwen" if calls_a_shell("\"PreToolUse\"", "\"run_shell_command\"") => Some(REFUSED_BY_QWEN),
            b"gemini" if calls_a_shell("\"BeforeTool\"", "\"run_shell_command\"") => Some(REFUSED_BY_GEMINI),
            b"opencode" if calls_a_shell("\"tool.execute.before\"", "\"bash\"") => Some(REFUSED_BY_OPENCODE),
            b"cursor" if calls_a_shell("\"preToolUse\"", "\"Shell\"") => Some(REFUSED_BY_CURSOR),
            _ => None,
        }
    }

    /// Whether there is something to read, or soon will be: nobody waits longer for what may never come.
    #[cfg(target_os = "linux")]
    fn has_input() -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let input = std::io::stdin();
        let soon = Timespec { tv_sec: 1, tv_nsec: 0 };
        poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&soon)).is_ok_and(|ready| ready > 0)
    }

    macro_rules! refusal {
        () => {
            "Blocked by unstuck: Not run: there is no memory to look at this call and to save the files that it may change. The same call can be sent again in a moment."
        };
    }

    const TOLD: &str = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"unstuck had no memory to look at this call: the files that it changes were not saved before it, so it cannot be undone."}}"#;
    const REFUSED_BY_QWEN: &str = concat!(
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":""#,
        refusal!(),
        r#""}}"#
    );
    const REFUSED_BY_GEMINI: &str = concat!(r#"{"decision":"deny","reason":""#, refusal!(), r#""}"#);
    const REFUSED_BY_OPENCODE: &str = concat!(r#"{"deny":""#, refusal!(), r#""}"#);
    const REFUSED_BY_CURSOR: &str = concat!(
        r#"{"permission":"deny","user_message":""#,
        refusal!(),
        r#"","agent_message":""#,
        refusal!(),
        r#""}"#
    );
}

/// Prints beside the one that usually does, who holds the lock of standard output.
#[cfg(unix)]
fn print(answer: &str) -> io::Result<()> {
    use std::os::fd::AsFd;
    std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?).write_all(answer.as_bytes())
}

#[cfg(windows)]
fn print(answer: &str) -> io::Result<()> {
    use std::os::windows::io::AsHandle;
    std::fs::File::from(io::stdout().as_handle().try_clone_to_owned()?).write_all(answer.as_bytes())
}
