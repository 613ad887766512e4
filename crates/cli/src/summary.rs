//! What a recorded run cost, and what unstuck would have changed, in words.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use unstuck_judge::ladder::{Judged, Rung};
use unstuck_judge::{Kind, Lang, nature};
use unstuck_wire::recorded::RecordedCall;

use crate::recorder::LONGEST_CALL_MS;

/// How many of the most repeated failures are shown.
const SHOWN: usize = 8;

/// Counts over any number of runs.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Lines that could not be read.
    pub(crate) broken_lines: u64,
    calls: u64,
    failures: BTreeMap<Kind, u64>,
    noted: u64,
    hinted: u64,
    refused: u64,
    refused_and_failed: u64,
    not_run: u64,
    halted: HashSet<String>,
    runs: HashMap<String, Run>,
    repeats: HashMap<(String, String), u64>,
}

/// What is remembered of one run while it is read.
#[derive(Debug, Default)]
struct Run {
    /// When the last call was made, and whether it would have been refused.
    last: Option<(u64, bool)>,
    spent_ms: u64,
    wasted_ms: u64,
}

impl Summary {
    /// Counts one call.
    pub(crate) fn add(&mut self, call: &RecordedCall, judged: &Judged) {
        self.calls += 1;
        // What was refused, by us or by somebody else, did not run, and so it did not fail.
        self.not_run += u64::from(judged.never_ran);
        let failed = judged.kind != Kind::NotAnError && !judged.never_ran;
        if failed {
            *self.failures.entry(judged.kind).or_default() += 1;
            let key = (nature::approach(&call.observation.call), judged.kind.word().to_owned());
            *self.repeats.entry(key).or_default() += 1;
        }
        let refused = judged.before.rung >= Rung::Deny;
        match judged.before.rung {
            Rung::Halt => {
                self.halted.insert(call.trace.clone());
                self.refused += 1;
            }
            Rung::Deny => self.refused += 1,
            Rung::Hint | Rung::Insist => self.hinted += 1,
            Rung::Observe | Rung::Note => match judged.after.rung {
                Rung::Note => self.noted += 1,
                Rung::Hint | Rung::Insist => self.hinted += 1,
                Rung::Observe | Rung::Deny | Rung::Halt => {}
            },
        }
        self.refused_and_failed += u64::from(refused && failed);
        self.runs.entry(call.trace.clone()).or_default().tick(call.at, refused);
    }

    /// Says it all.
    pub(crate) fn text(&self, lang: Lang) -> String {
        let mut text = String::new();
        let failed: u64 = self.failures.values().sum();
        let share = 100 * failed / self.calls.max(1);
        let _ = match lang {
            Lang::En => {
                writeln!(
                    text,
                    "runs: {}, calls: {}, failed: {failed} ({share} %)",
                    self.runs.len(),
                    self.calls
                )
            }
            Lang::Zh => writeln!(
                text,
                "{} 次运行，{} 次调用，{failed} 次失败（{share} %）",
                self.runs.len(),
                self.calls
            ),
        };
        if self.not_run > 0 {
            let _ = match lang {
                Lang::En => writeln!(text, "refused in the recording, so they did not run: {}", self.not_run),
                Lang::Zh => writeln!(text, "记录中已被拒绝而未执行：{}", self.not_run),
            };
        }
        let mut kinds: Vec<(&Kind, &u64)> = self.failures.iter().collect();
        kinds.sort_by_key(|(kind, count)| (std::cmp::Reverse(**count), **kind));
        for (kind, count) in kinds {
            let _ = writeln!(text, "  {count:>5}  {kind:<18} {}", kind.title(lang));
        }
        let rows = [
            (self.noted, "explanations of a failure with its first result", "次失败在首个结果中即得到解释"),
            (self.hinted, "hints that a call was repeating itself", "次提示调用在重复"),
            (self.refused, "refusals of a call before it ran again", "次调用在再次运行前被拒绝"),
            (
                self.refused_and_failed,
                "of these failed once more in the recording",
                "次（其中）在记录中再次失败",
            ),
            (self.halted.len() as u64, "stops of a run for a person to decide", "次运行被暂停，等待人决定"),
        ];
        let _ = writeln!(
            text,
            "{}",
            match lang {
                Lang::En => "unstuck would have said",
                Lang::Zh => "unstuck 会给出",
            }
        );
        for (count, en, zh) in rows {
            let _ = writeln!(
                text,
                "  {count:>5}  {}",
                match lang {
                    Lang::En => en,
                    Lang::Zh => zh,
                }
            );
        }
        let _ = match lang {
            Lang::En => writeln!(
                text,
                "this assumes that nothing else changed between the calls: a live refusal looks first at what the failure named"
            ),
            Lang::Zh => writeln!(text, "以上假定调用之间没有其他变化：实际拒绝之前会先查看失败所指的内容"),
        };
        self.time(&mut text, lang);
        self.most_repeated(&mut text, lang);
        if self.broken_lines > 0 {
            let _ = match lang {
                Lang::En => writeln!(text, "lines that could not be read: {}", self.broken_lines),
                Lang::Zh => writeln!(text, "{} 行无法读取", self.broken_lines),
            };
        }
        text
    }

    fn time(&self, text: &mut String, lang: Lang) {
        let (spent, wasted) = self
            .runs
            .values()
            .fold((0, 0), |(spent, wasted), run| (spent + run.spent_ms, wasted + run.wasted_ms));
        if spent == 0 {
            return;
        }
        let (spent, wasted) = (minutes(spent), minutes(wasted));
        let _ = match lang {
            Lang::En => {
                writeln!(text, "time: {wasted} of {spent} went into calls that would have been refused")
            }
            Lang::Zh => writeln!(text, "时间：{spent} 中有 {wasted} 花在本会被拒绝的调用上"),
        };
    }

    fn most_repeated(&self, text: &mut String, lang: Lang) {
        let mut repeats: Vec<_> = self.repeats.iter().filter(|(_, count)| **count > 1).collect();
        repeats.sort_by_key(|(key, count)| (std::cmp::Reverse(**count), (*key).clone()));
        if repeats.is_empty() {
            return;
        }
        let _ = writeln!(
            text,
            "{}",
            match lang {
                Lang::En => "failed most often",
                Lang::Zh => "失败最多",
            }
        );
        for ((approach, kind), count) in repeats.into_iter().take(SHOWN) {
            let approach: String = approach.chars().take(60).collect();
            let _ = writeln!(text, "  {count:>5}  {approach:<60} {kind}");
        }
    }
}

impl Run {
    /// The time until the next call belongs to the call before it: it ran, and the model read its result.
    fn tick(&mut self, at: Option<u64>, refused: bool) {
        if let (Some(now), Some((then, was_refused))) = (at, self.last) {
            let took = now.saturating_sub(then).min(LONGEST_CALL_MS);
            self.spent_ms += took;
            self.wasted_ms += if was_refused { took } else { 0 };
        }
        self.last = at.map(|now| (now, refused));
    }
}

/// A stretch of work in words.
pub(crate) fn minutes(ms: u64) -> String {
    match ms / 1000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
