//! What was really heard from an agent, against what it should tell; and how long we took to answer.

use std::collections::BTreeSet;
use std::time::Duration;

use unstuck_store::{Heard, Spread};

use super::Doctor;
use crate::moment;

/// Fewer events than this prove nothing about those that are missing.
const PROOF: u64 = 10;
/// The same for events that do not come with every call.
const PROOF_OF_BATCHES: u64 = 20;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// How far back our own times are looked at.
const TIMES_MS: u64 = 7 * DAY_MS;

/// What an event tells, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tells {
    /// A call is asked for.
    Before,
    /// A call ended. Agents have one event for it or two, and a session need not have calls of both kinds.
    After,
    /// What became of all calls of one answer. It alone tells of calls that never ran.
    Batch,
    /// A person wrote something.
    Person,
    /// Something that need not happen in every session.
    Other,
}

impl Tells {
    fn of(event: &str) -> Tells {
        match event {
            "PreToolUse" | "BeforeTool" | "preToolUse" | "tool.execute.before" | "before" => Tells::Before,
            "PostToolUse" | "AfterTool" | "postToolUse" | "tool.execute.after" | "after" => Tells::After,
            "PostToolUseFailure" | "postToolUseFailure" | "message.part.updated" => Tells::After,
            "PostToolBatch" => Tells::Batch,
            "UserPromptSubmit"
            | "BeforeAgent"
            | "userPromptSubmitted"
            | "beforeSubmitPrompt"
            | "chat.message"
            | "user" => Tells::Person,
            _ => Tells::Other,
        }
    }
}

/// The events that an agent was told to tell us of.
pub(super) struct Registered<'a> {
    pub(super) events: BTreeSet<&'a str>,
    /// When that was written, in milliseconds since 1970; 0 where nobody knows.
    pub(super) since: u64,
}

impl Registered<'_> {
    /// The names of those that tell this.
    fn names(&self, tells: Tells) -> String {
        let names: Vec<&str> =
            self.events.iter().copied().filter(|event| Tells::of(event) == tells).collect();
        names.join(", ")
    }
}

/// How often something was told, and when last.
#[derive(Debug, Clone, Copy)]
struct Sum {
    count: u64,
    last_at: Option<u64>,
}

impl Sum {
    fn of(heard: &[&Heard], tells: Tells) -> Sum {
        let mine = || heard.iter().filter(|heard| Tells::of(&heard.hook) == tells);
        Sum { count: mine().map(|heard| heard.count).sum(), last_at: mine().map(|heard| heard.last_at).max() }
    }
}

impl Doctor<'_> {
    /// Holds what was heard of an agent against the events it should tell.
    pub(super) fn hold_against(&mut self, about: &str, registered: &Registered<'_>, heard: &[Heard]) {
        let mine: Vec<&Heard> = heard.iter().filter(|heard| heard.host == about).collect();
        let Some(last) = mine.iter().map(|heard| heard.last_at).max() else {
            let what = self.say("nothing was heard from it yet", "尚未收到它的任何消息");
            let todo = self.say("start a session with it, then look again", "请用它开始一个会话，然后再看");
            return self.note(about, "heard", what, Some(todo));
        };
        let (asked, ended) = (Sum::of(&mine, Tells::Before), Sum::of(&mine, Tells::After));
        let (before, after) = (asked.count, ended.count);
        let ago = moment::ago(last, self.now, self.lang);
        let what = self.say(
            format!("last heard {ago}; {before} calls asked for, {after} results told"),
            format!("最近收到消息：{ago}；请求了 {before} 次调用，收到 {after} 个结果"),
        );
        self.fine(about, "heard", what);
        self.look_for_silence(about, registered, asked, ended);
        // What was registered after the last call had no occasion yet.
        let calls = Sum { count: before.max(after), last_at: asked.last_at.max(ended.last_at) };
        if calls.last_at.is_some_and(|last| last > registered.since) {
            self.look_at_batches(about, registered, calls, Sum::of(&mine, Tells::Batch));
            self.look_for_a_person(about, registered, calls, Sum::of(&mine, Tells::Person));
        }
    }

    /// Calls without results, and results without calls.
    fn look_for_silence(&mut self, about: &str, registered: &Registered<'_>, asked: Sum, ended: Sum) {
        let (before, after) = (asked.count, ended.count);
        if before >= PROOF && after == 0 {
            let names = registered.names(Tells::After);
            let what = self.say(
                format!("{before} calls were asked for, but no result was ever heard; silent: {names}"),
                format!("请求了 {before} 次调用，但从未收到结果：{names} 没有消息"),
            );
            self.silent(about, what);
        } else if after >= PROOF && before == 0 {
            let names = registered.names(Tells::Before);
            let what = self.say(
                format!("{after} results were heard, but no call before it ran, so nothing can be refused; silent: {names}"),
                format!("收到 {after} 个结果，但从未在调用前收到消息：{names} 没有消息，因此无法拒绝任何调用"),
            );
            self.silent(about, what);
        } else if let (Some(asked), Some(ended)) = (asked.last_at, ended.last_at)
            && asked.abs_diff(ended) > DAY_MS
        {
            match asked > ended {
                true => self.silent_since(about, &registered.names(Tells::After), ended),
                false => self.silent_since(about, &registered.names(Tells::Before), asked),
            }
        }
    }

    /// Without the event that sums calls up, nobody hears of those that never ran.
    fn look_at_batches(&mut self, about: &str, registered: &Registered<'_>, calls: Sum, batches: Sum) {
        let names = registered.names(Tells::Batch);
        if names.is_empty() {
            return;
        }
        match (batches.last_at, calls.last_at) {
            (None, _) if calls.count >= PROOF_OF_BATCHES => {
                let count = calls.count;
                let what = self.say(
                    format!("{count} calls were heard, but never {names}: calls that the agent itself turns down are not seen"),
                    format!("收到 {count} 次调用，但从未收到 {names}：看不到智能体自己拒绝的调用"),
                );
                self.silent(about, what);
            }
            (Some(batch), Some(call)) if call.saturating_sub(batch) > DAY_MS => {
                self.silent_since(about, &names, batch);
            }
            (_, _) => {}
        }
    }

    /// Sessions that nobody sits in are usual, so that nobody was heard is only worth knowing.
    fn look_for_a_person(&mut self, about: &str, registered: &Registered<'_>, calls: Sum, person: Sum) {
        let names = registered.names(Tells::Person);
        if names.is_empty() || person.count > 0 || calls.count < PROOF_OF_BATCHES {
            return;
        }
        let count = calls.count;
        let what = self.say(
            format!("{count} calls were heard, but never {names}: what a person writes does not give the agent a new start"),
            format!("收到 {count} 次调用，但从未收到 {names}：用户的输入不会让智能体重新开始"),
        );
        self.note(about, "person", what, None);
    }

    fn silent_since(&mut self, about: &str, names: &str, since: u64) {
        let since = moment::format_utc(since);
        let what = self.say(
            format!("silent since {since}, while others were heard: {names}"),
            format!("{names} 自 {since} 起没有消息，而其他事件仍有"),
        );
        self.silent(about, what);
    }

    fn silent(&mut self, about: &str, what: String) {
        let todo = self.say(
            "restart the agent; if it stays silent, look for hooks that are switched off or not trusted",
            "请重启智能体；若仍没有消息，请检查钩子是否被关闭或未受信任",
        );
        self.warn(about, "silent", what, todo);
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
