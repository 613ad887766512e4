//! What recorded sessions cost: counted call by call in bounded memory, and told on one screen or as one JSON object.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use serde::Serialize;
use unstuck_judge::ladder::{Print, Rung};
use unstuck_judge::lesson::words;
use unstuck_judge::{Kind, Lang};
use unstuck_store::FoundLesson;

use crate::columns;
use crate::lesson_page::name;
use crate::plain;
use crate::recorder::{LONGEST_CALL_MS, RecordedNow};
use crate::removed;
use crate::summary::minutes;

/// So many different causes are kept apart. Beyond that, those that were met least often are forgotten.
const CAUSES_MAX: usize = 50_000;
/// So many causes of single sessions are kept apart. Beyond that, counting begins anew.
const REPEATS_MAX: usize = 1_000_000;
/// A failure that a session met so often is a loop.
const LOOP: u32 = 3;

/// What kept something from being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    BrokenLine,
    LongLine,
    NotATranscript,
    Unreadable,
    Gone,
    Circle,
}

impl Trouble {
    fn word(self) -> &'static str {
        match self {
            Trouble::BrokenLine => "broken_line",
            Trouble::LongLine => "long_line",
            Trouble::NotATranscript => "not_a_transcript",
            Trouble::Unreadable => "unreadable",
            Trouble::Gone => "gone",
            Trouble::Circle => "circle",
        }
    }

    fn title(self, lang: Lang) -> &'static str {
        match (self, lang) {
            (Trouble::BrokenLine, Lang::En) => "lines that are broken",
            (Trouble::BrokenLine, Lang::Zh) => "行已损坏",
            (Trouble::LongLine, Lang::En) => "lines that are too long",
            (Trouble::LongLine, Lang::Zh) => "行过长",
            (Trouble::NotATranscript, Lang::En) => "files that are no transcripts",
            (Trouble::NotATranscript, Lang::Zh) => "个文件不是会话记录",
            (Trouble::Unreadable, Lang::En) => "files or folders that cannot be read",
            (Trouble::Unreadable, Lang::Zh) => "个文件或文件夹无法读取",
            (Trouble::Gone, Lang::En) => "files that vanished",
            (Trouble::Gone, Lang::Zh) => "个文件已消失",
            (Trouble::Circle, Lang::En) => "links back to a folder that was read",
            (Trouble::Circle, Lang::Zh) => "个链接指回已读的文件夹",
        }
    }
}

/// A cause, over all sessions.
#[derive(Debug)]
struct Failure {
    cause: String,
    what: String,
    kind: Kind,
    line: String,
    count: u64,
    sessions: u64,
    last_session: u64,
}

/// Counts over any number of sessions.
#[derive(Debug, Default)]
pub(crate) struct Bill {
    /// How many files there are.
    pub(crate) files: u64,
    /// How many of them were read, or read on.
    pub(crate) read: u64,
    /// How many had nothing new.
    pub(crate) known: u64,
    /// How many bytes were read.
    pub(crate) bytes: u64,
    /// How many files were not looked at, because somebody had enough.
    pub(crate) left: u64,
    /// Lessons that are new: how many, and the best of them.
    pub(crate) lessons: (u64, Vec<FoundLesson>),
    calls: u64,
    known_calls: u64,
    failed: u64,
    repeated: u64,
    wasted_ms: u64,
    loops: u64,
    stopped: u64,
    /// How many of those failed all the same.
    stopped_failures: u64,
    sessions: HashSet<u64>,
    causes: HashMap<u64, Failure>,
    repeats: HashMap<(u64, u64), u32>,
    /// When the last call of a session was made, and whether it was wasted.
    last: HashMap<u64, (u64, bool)>,
    troubles: BTreeMap<Trouble, (u64, String)>,
}

impl Bill {
    /// Something could not be read. The first of its kind is named.
    pub(crate) fn trouble(&mut self, trouble: Trouble, what: impl FnOnce() -> String) {
        self.troubles.entry(trouble).or_insert_with(|| (0, what())).0 += 1;
    }

    /// A call that stands in several transcripts, or was recorded before.
    pub(crate) fn known_call(&mut self) {
        self.known_calls += 1;
    }

    /// Counts one call.
    pub(crate) fn add(&mut self, call: RecordedNow) {
        if !call.is_new {
            return self.known_call();
        }
        self.calls += 1;
        let session = Print::of(&["session", &call.session]).0;
        self.sessions.insert(session);
        let (at, is_failure) = (call.at, call.kind != Kind::NotAnError);
        if call.before >= Rung::Deny {
            self.stopped += 1;
            self.stopped_failures += u64::from(is_failure);
        }
        let is_wasted = is_failure && self.fail(session, call);
        // The time until the next call belongs to the call before it: it ran, and the model read its result.
        if let Some(now) = at
            && let Some((then, was_wasted)) = self.last.insert(session, (now, is_wasted))
            && was_wasted
        {
            self.wasted_ms += now.saturating_sub(then).min(LONGEST_CALL_MS);
        }
    }

    /// Counts a failure. Had the session met its cause before?
    fn fail(&mut self, session: u64, call: RecordedNow) -> bool {
        self.failed += 1;
        let cause = Print::of(&["cause", &call.cause]).0;
        if self.repeats.len() >= REPEATS_MAX {
            self.repeats.clear();
        }
        let times = self.repeats.entry((session, cause)).or_default();
        *times += 1;
        let times = *times;
        self.loops += u64::from(times == LOOP);
        self.repeated += u64::from(times > 1);
        if self.causes.len() >= CAUSES_MAX {
            self.forget_the_rare();
        }
        let failure = self.causes.entry(cause).or_insert_with(|| Failure {
            cause: call.cause,
            what: call.approach,
            kind: call.kind,
            line: call.line,
            count: 0,
            sessions: 0,
            last_session: 0,
        });
        failure.count += 1;
        if failure.last_session != session {
            failure.last_session = session;
            failure.sessions += 1;
        }
        times > 1
    }

    /// Makes half of the room free at once: whoever made room for one at a time would look through all of them each time.
    fn forget_the_rare(&mut self) {
        let mut few = 1;
        while self.causes.len() > CAUSES_MAX / 2 {
            self.causes.retain(|_, failure| failure.count > few);
            few *= 2;
        }
    }

    fn top(&self, most: usize) -> Vec<&Failure> {
        let mut all: Vec<&Failure> = self.causes.values().collect();
        all.sort_by_key(|failure| (Reverse(failure.count), Reverse(failure.sessions), &failure.cause));
        all.truncate(most);
        all
    }

    /// Says it all, on one screen.
    pub(crate) fn text(&self, most: usize, lang: Lang) -> String {
        let mut text = String::new();
        self.how_much(&mut text, lang);
        if self.calls > 0 {
            self.cost(&mut text, lang);
            self.failures(&mut text, most, lang);
        }
        self.learnt(&mut text, most, lang);
        if !self.troubles.is_empty() {
            text += match lang {
                Lang::En => "passed over\n",
                Lang::Zh => "已跳过\n",
            };
            for (trouble, (count, first)) in &self.troubles {
                let first = plain::short(first, 100);
                let _ = match lang {
                    Lang::En => writeln!(text, "  {count:>5}  {} (first: {first})", trouble.title(lang)),
                    Lang::Zh => writeln!(text, "  {count:>5}  {}（首个：{first}）", trouble.title(lang)),
                };
            }
        }
        text
    }

    fn how_much(&self, text: &mut String, lang: Lang) {
        let Bill { files, read, known, calls, left, .. } = self;
        let (size, sessions) = (removed::size(self.bytes), self.sessions.len());
        let in_sessions = removed::counted(sessions as u64, ["session", "sessions"]);
        let _ = match (files, read, lang) {
            (0, _, Lang::En) => writeln!(text, "there are no transcripts here; name a folder or a file"),
            (0, _, Lang::Zh) => writeln!(text, "这里没有会话记录；请指定文件夹或文件"),
            (_, 0, Lang::En) if known == files => {
                writeln!(
                    text,
                    "nothing new: {} read before (see `unstuck stats`, `unstuck problems`)",
                    removed::counted(*files, ["file was", "files were"])
                )
            }
            (_, 0, Lang::Zh) if known == files => {
                writeln!(
                    text,
                    "没有新内容：{files} 个文件此前均已读取（见 `unstuck stats`、`unstuck problems`）"
                )
            }
            (_, _, Lang::En) => {
                writeln!(
                    text,
                    "read: {read} of {files} files ({size}), {known} had nothing new; {in_sessions}, {calls} calls"
                )
            }
            (_, _, Lang::Zh) => writeln!(
                text,
                "已读取 {files} 个文件中的 {read} 个（{size}），{known} 个没有新内容；{sessions} 个会话，{calls} 次调用"
            ),
        };
        if self.known_calls > 0 {
            let _ = match lang {
                Lang::En => writeln!(text, "recorded before: {} calls", self.known_calls),
                Lang::Zh => writeln!(text, "此前已记录：{} 次调用", self.known_calls),
            };
        }
        if *left > 0 {
            let _ = match lang {
                Lang::En => {
                    writeln!(
                        text,
                        "stopped: {left} files are left; the same command goes on where this one ended"
                    )
                }
                Lang::Zh => writeln!(text, "已停止：还剩 {left} 个文件；再次运行同一命令会从此处继续"),
            };
        }
    }

    fn cost(&self, text: &mut String, lang: Lang) {
        let Bill { failed, repeated, stopped, .. } = self;
        let calls = |count: &u64| removed::counted(*count, ["call", "calls"]);
        let (failures, repeats, stops) = (calls(failed), calls(repeated), calls(stopped));
        let stopped_failures = self.stopped_failures;
        let loops = self.loops;
        let in_loops = removed::counted(loops, ["loop", "loops"]);
        let (share, wasted) = (100 * failed / self.calls.max(1), minutes(self.wasted_ms));
        let _ = match lang {
            Lang::En => writeln!(
                text,
                "failed: {failures} ({share} %)\n\
                 wasted: {repeats} and {wasted} on failures that the session had met before; {in_loops}\n\
                 unstuck would have stopped: {stops}, {stopped_failures} of which failed"
            ),
            Lang::Zh => writeln!(
                text,
                "失败：{failed} 次调用（{share} %）\n\
                 浪费：{repeated} 次调用、{wasted}，花在会话已遇到过的失败上；{loops} 个循环\n\
                 unstuck 会阻止：{stopped} 次调用，其中 {stopped_failures} 次失败了"
            ),
        };
    }

    fn failures(&self, text: &mut String, most: usize, lang: Lang) {
        let top = self.top(most);
        if top.is_empty() {
            return;
        }
        text.push_str(match lang {
            Lang::En => "failed most often\n",
            Lang::Zh => "失败最多\n",
        });
        for failure in top {
            let Failure { count, sessions, .. } = failure;
            let times = match lang {
                Lang::En => format!("{count:>5} in {}", removed::counted(*sessions, ["session", "sessions"])),
                Lang::Zh => format!("{count:>5} 次，{sessions} 个会话"),
            };
            let what = columns::left(&plain::short(&failure.what, 24), 25);
            let line = plain::short(&failure.line, 70);
            let _ =
                writeln!(text, "  {}  {what} {:<18} {line}", columns::left(&times, 20), failure.kind.word());
        }
    }

    fn learnt(&self, text: &mut String, most: usize, lang: Lang) {
        let (count, found) = &self.lessons;
        if *count == 0 {
            return;
        }
        let _ = match lang {
            Lang::En => writeln!(text, "learnt: {}", removed::counted(*count, ["new lesson", "new lessons"])),
            Lang::Zh => writeln!(text, "学到：{count} 条新经验"),
        };
        for lesson in found.iter().take(most) {
            let (how, title) =
                (plain::short(&words::how(&lesson.fix, lang), 100), plain::short(&lesson.title, 60));
            let shown = match (&lesson.caution, lang) {
                (None, _) => "",
                (Some(_), Lang::En) => " (shown to nobody before you approve it)",
                (Some(_), Lang::Zh) => "（经你批准后才会提示）",
            };
            let (name, wins) = (name(lesson.id), lesson.wins);
            let _ = match lang {
                Lang::En => {
                    writeln!(text, "  {wins:>5}×  {name}  {title}\n          over after {how}{shown}")
                }
                Lang::Zh => {
                    writeln!(text, "  {wins:>5} 次  {name}  {title}\n          在 {how} 之后解决{shown}")
                }
            };
        }
        text.push_str(match lang {
            Lang::En => "  no agent is told of what a file taught before it helped in a watched session, or you approve it\n",
            Lang::Zh => "  来自文件的经验在观察到的会话中有效、或经你批准之前，不会告诉任何智能体\n",
        });
    }

    /// The same as one object.
    pub(crate) fn to_wire(&self, most: usize) -> WireBill<'_> {
        let lesson = |lesson: &'_ FoundLesson| WireLesson {
            id: name(lesson.id),
            program: lesson.program.clone(),
            kind: lesson.kind.clone(),
            line: lesson.title.clone(),
            fix: words::how(&lesson.fix, Lang::En),
            wins: lesson.wins,
            caution: lesson.caution.clone(),
        };
        let trouble = |(trouble, (count, first)): (&Trouble, &'_ (u64, String))| WireTrouble {
            what: trouble.word(),
            count: *count,
            first: first.clone(),
        };
        WireBill {
            files: WireFiles {
                found: self.files,
                read: self.read,
                known: self.known,
                left: self.left,
                bytes: self.bytes,
            },
            sessions: self.sessions.len() as u64,
            calls: self.calls,
            known_calls: self.known_calls,
            failures: self.failed,
            wasted: WireWasted { calls: self.repeated, time_ms: self.wasted_ms },
            loops: self.loops,
            stopped: WireStopped { calls: self.stopped, failures: self.stopped_failures },
            top: self.top(most).into_iter().map(WireFailure::from).collect(),
            new_lessons: self.lessons.0,
            lessons: self.lessons.1.iter().take(most).map(lesson).collect(),
            passed_over: self.troubles.iter().map(trouble).collect(),
        }
    }
}

/// All of it exactly as it is printed.
#[derive(Serialize)]
pub(crate) struct WireBill<'a> {
    files: WireFiles,
    sessions: u64,
    calls: u64,
    known_calls: u64,
    failures: u64,
    wasted: WireWasted,
    loops: u64,
    stopped: WireStopped,
    top: Vec<WireFailure<'a>>,
    new_lessons: u64,
    lessons: Vec<WireLesson>,
    passed_over: Vec<WireTrouble>,
}

#[derive(Serialize)]
struct WireFiles {
    found: u64,
    read: u64,
    known: u64,
    left: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct WireWasted {
    calls: u64,
    time_ms: u64,
}

#[derive(Serialize)]
struct WireStopped {
    calls: u64,
    failures: u64,
}

#[derive(Serialize)]
struct WireFailure<'a> {
    cause: &'a str,
    what: &'a str,
    kind: &'static str,
    line: &'a str,
    count: u64,
    sessions: u64,
}

impl<'a> From<&'a Failure> for WireFailure<'a> {
    fn from(failure: &'a Failure) -> WireFailure<'a> {
        let Failure { cause, what, kind, line, count, sessions, last_session: _ } = failure;
        WireFailure { cause, what, kind: kind.word(), line, count: *count, sessions: *sessions }
    }
}

#[derive(Serialize)]
struct WireLesson {
    id: String,
    program: String,
    kind: String,
    line: String,
    fix: String,
    wins: u64,
    caution: Option<String>,
}

#[derive(Serialize)]
struct WireTrouble {
    what: &'static str,
    count: u64,
    first: String,
}
