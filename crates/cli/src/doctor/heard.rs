//! What was really heard from an agent, against what it should tell; and how long we took to answer.

use std::time::Duration;

use unstuck_store::{Heard, Spread};

use super::Doctor;
use crate::moment;

/// Fewer events than this prove nothing about those that are missing.
const PROOF: u64 = 10;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// How far back our own times are looked at.
const TIMES_MS: u64 = 7 * DAY_MS;

/// What an event tells, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tells {
    /// A call is asked for.
    Before,
    /// A call ended, however it did.
    After,
    /// Something that need not happen in every session.
    Other,
}

impl Tells {
    fn of(event: &str) -> Tells {
        match event {
            "PreToolUse" | "BeforeTool" | "preToolUse" | "tool.execute.before" | "before" => Tells::Before,
            "PostToolUse" | "AfterTool" | "postToolUse" | "tool.execute.after" | "after" => Tells::After,
            "PostToolUseFailure" | "postToolUseFailure" | "PostToolBatch" | "message.part.updated" => {
                Tells::After
            }
            _ => Tells::Other,
        }
    }
}

impl Doctor<'_> {
    /// Holds what was heard of an agent against the events it should tell.
    pub(super) fn hold_against(&mut self, about: &str, expected: &[&str], heard: &[Heard]) {
        let mine: Vec<&Heard> = heard.iter().filter(|heard| heard.host == about).collect();
        let Some(last) = mine.iter().map(|heard| heard.last_at).max() else {
            let what = self.say("nothing was heard from it yet", "尚未收到它的任何消息");
            let todo = self.say("start a session with it, then look again", "请用它开始一个会话，然后再看");
            return self.note(about, "heard", what, Some(todo));
        };
        let count = |tells: Tells| {
            mine.iter().filter(|heard| Tells::of(&heard.hook) == tells).map(|heard| heard.count).sum::<u64>()
        };
        let newest = |tells: Tells| {
            mine.iter().filter(|heard| Tells::of(&heard.hook) == tells).map(|heard| heard.last_at).max()
        };
        let (before, after) = (count(Tells::Before), count(Tells::After));
        let ago = moment::ago(last, self.now, self.lang);
        let what = self.say(
            format!("last heard {ago}; {before} calls asked for, {after} results told"),
            format!("最近收到消息：{ago}；请求了 {before} 次调用，收到 {after} 个结果"),
        );
        self.fine(about, "heard", what);
        let silent = |tells: Tells| {
            let names: Vec<&str> =
                expected.iter().copied().filter(|event| Tells::of(event) == tells).collect();
            names.join(", ")
        };
        let todo = self.say(
            "restart the agent; if it stays silent, look for hooks that are switched off or not trusted",
            "请重启智能体；若仍没有消息，请检查钩子是否被关闭或未受信任",
        );
        if before >= PROOF && after == 0 {
            let names = silent(Tells::After);
            let what = self.say(
                format!("{before} calls were asked for, but no result was ever heard: {names} is silent"),
                format!("请求了 {before} 次调用，但从未收到结果：{names} 没有消息"),
            );
            self.warn(about, "silent", what, todo);
        } else if after >= PROOF && before == 0 {
            let names = silent(Tells::Before);
            let what = self.say(
                format!("{after} results were heard, but no call before it ran: {names} is silent, so nothing can be refused"),
                format!("收到 {after} 个结果，但从未在调用前收到消息：{names} 没有消息，因此无法拒绝任何调用"),
            );
            self.warn(about, "silent", what, todo);
        } else if let (Some(asked), Some(ended)) = (newest(Tells::Before), newest(Tells::After))
            && asked.abs_diff(ended) > DAY_MS
        {
            let (names, since) = match asked > ended {
                true => (silent(Tells::After), ended),
                false => (silent(Tells::Before), asked),
            };
            let since = moment::format_utc(since);
            let what = self.say(
                format!("{names} has been silent since {since}, while others were heard"),
                format!("{names} 自 {since} 起没有消息，而其他事件仍有"),
            );
            self.warn(about, "silent", what, todo);
        }
    }

    /// How long our hooks took, as they measured it themselves.
    pub(super) fn look_at_our_times(&mut self) {
        let Ok(store) = self.cellar.to_read() else { return };
        let times = store.hook_times(self.now.saturating_sub(TIMES_MS));
        let hook = self.cellar.settings.hook();
        let (before, after) = (times.before, times.after);
        if before.count + after.count == 0 {
            return;
        }
        let what = self.say(
            format!(
                "our hooks take {} before a call and {} after it (p50/p95 of {} runs in 7 days)",
                spread(before),
                spread(after),
                before.count + after.count
            ),
            format!(
                "我们的钩子在调用前用时 {}，调用后 {}（7 天内 {} 次运行的 p50/p95）",
                spread(before),
                spread(after),
                before.count + after.count
            ),
        );
        let is_late = before.p95 >= hook.deadline_before || after.p95 >= hook.deadline_after;
        match is_late {
            false => self.fine("unstuck", "latency", what),
            true => {
                let todo = self.say(
                    "one hook of twenty falls silent: look for a slow disk, or `unstuck gc`",
                    "二十次中有一次钩子保持沉默：请检查磁盘是否缓慢，或运行 `unstuck gc`",
                );
                self.warn("unstuck", "latency", what, todo);
            }
        }
    }
}

/// The middle and the slow end, in milliseconds.
fn spread(spread: Spread) -> String {
    let ms = |span: Duration| format!("{:.1}", span.as_secs_f64() * 1000.0);
    match spread.count {
        0 => "–".to_owned(),
        _ => format!("{}/{} ms", ms(spread.p50), ms(spread.p95)),
    }
}
