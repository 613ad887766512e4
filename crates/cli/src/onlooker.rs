//! Whoever waits for the safe: sees how far it is once it takes longer than a second, and ends it with Ctrl-C. The first one
//! lets the safe leave everything whole; the second ends at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use unstuck_judge::Lang;
use unstuck_vault::{Progress as HowFar, Stage, Watch};

use crate::progress::Progress;
use crate::removed;

/// How wide the bar is.
const BAR: u64 = 20;

pub(crate) struct Onlooker {
    lang: Lang,
    line: Mutex<Progress>,
    has_enough: Arc<AtomicBool>,
    /// Signals are ours as long as it is there: whoever runs something afterwards passes them on.
    _listening: Listening,
}

impl Onlooker {
    /// Looks on from now on.
    pub(crate) fn new(lang: Lang) -> Onlooker {
        let has_enough = Arc::new(AtomicBool::new(false));
        let listening = Listening::to(&has_enough);
        Onlooker { lang, line: Mutex::new(Progress::new()), has_enough, _listening: listening }
    }

    /// Takes the line away again.
    pub(crate) fn end(&self) {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).end();
    }
}

impl Watch for Onlooker {
    fn goes_on(&self, how_far: HowFar) -> bool {
        // Several threads tell: whoever finds the line taken has nothing newer to say.
        if let Ok(mut line) = self.line.try_lock() {
            line.show(|| in_words(how_far, self.lang));
        }
        !self.has_enough.load(Ordering::Relaxed)
    }
}

/// Signals that end the wait.
#[cfg(unix)]
pub(crate) struct Listening(Vec<signal_hook::SigId>);

#[cfg(unix)]
impl Listening {
    pub(crate) fn to(has_enough: &Arc<AtomicBool>) -> Listening {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        use signal_hook::flag::{register, register_conditional_shutdown};
        let mut registered = Vec::new();
        for (signal, code) in [(SIGINT, 130), (SIGTERM, 143), (SIGHUP, 129)] {
            // A signal that the system does not let us catch keeps its usual effect.
            registered.extend(register_conditional_shutdown(signal, code, Arc::clone(has_enough)));
            registered.extend(register(signal, Arc::clone(has_enough)));
        }
        Listening(registered)
    }
}

#[cfg(unix)]
impl Drop for Listening {
    fn drop(&mut self) {
        for id in self.0.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

#[cfg(not(unix))]
pub(crate) struct Listening;

#[cfg(not(unix))]
impl Listening {
    pub(crate) fn to(_has_enough: &Arc<AtomicBool>) -> Listening {
        Listening
    }
}

fn in_words(how_far: HowFar, lang: Lang) -> String {
    let HowFar { stage, done, of, bytes } = how_far;
    let deed = match (stage, lang) {
        (Stage::Looking, Lang::En) => "looking at files",
        (Stage::Looking, Lang::Zh) => "查看文件",
        (Stage::Keeping, Lang::En) => "saving",
        (Stage::Keeping, Lang::Zh) => "保存",
        (Stage::Preparing, Lang::En) => "preparing",
        (Stage::Preparing, Lang::Zh) => "准备",
        (Stage::Placing, Lang::En) => "putting into place",
        (Stage::Placing, Lang::Zh) => "就位",
        (Stage::Verifying, Lang::En) => "verifying",
        (Stage::Verifying, Lang::Zh) => "校验",
        (Stage::Removing, Lang::En) => "removing",
        (Stage::Removing, Lang::Zh) => "删除",
    };
    let count = match of {
        0 => done.to_string(),
        of => {
            let full = (done.min(of) * BAR / of) as usize;
            let bar = format!("{}{}", "█".repeat(full), "░".repeat(BAR as usize - full));
            format!("{bar} {done}/{of}")
        }
    };
    let size = if bytes > 0 { format!(", {}", removed::size(bytes)) } else { String::new() };
    format!("{deed}: {count}{size}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_is_is_told_in_one_line() {
        let check = |stage, done, of, bytes, lang, expected: &str| {
            assert_eq!(in_words(HowFar { stage, done, of, bytes }, lang), expected);
        };
        check(Stage::Looking, 1200, 0, 0, Lang::En, "looking at files: 1200");
        check(Stage::Keeping, 5, 10, 20480, Lang::En, "saving: ██████████░░░░░░░░░░ 5/10, 20 KB");
        check(Stage::Verifying, 12, 10, 0, Lang::Zh, "校验: ████████████████████ 12/10");
    }

    #[test]
    fn it_goes_on_until_somebody_has_enough() {
        let onlooker = Onlooker::new(Lang::En);
        let how_far = HowFar { stage: Stage::Looking, done: 1, of: 0, bytes: 0 };
        assert!(onlooker.goes_on(how_far));
        onlooker.has_enough.store(true, Ordering::Relaxed);
        assert!(!onlooker.goes_on(how_far));
    }
}
