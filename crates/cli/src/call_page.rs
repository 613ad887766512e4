//! Everything that is known about one call, on one page. All events of the call are shown, whoever wrote them, so that what
//! later versions add appears by itself.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use unstuck_judge::{Again, Effect, FixBy, Kind, Lang};
use unstuck_store::{EventType, LifeStep, Store, StoreError, StoredCall, StoredCallText, StoredEvent};
use unstuck_vault::{Snapshot, SnapshotId};

use crate::columns::{self, Side};
use crate::event_line::{self, WireEvent};
use crate::wire_call::{WireCall, WireWholeCall};
use crate::{explain, moment, plain};

/// How many attempts before and after the shown one are listed for people.
const AROUND: usize = 10;

/// One call with all that belongs to it.
pub(crate) struct CallPage {
    call: StoredCall,
    text: StoredCallText,
    attempts: Vec<StoredCall>,
    events: Vec<StoredEvent>,
    /// What is still there of what was saved before it ran.
    saved: Option<Snapshot>,
}

impl CallPage {
    pub(crate) fn read(store: &Store, call: StoredCall) -> Result<CallPage, StoreError> {
        let text = store.call_text(call.id)?;
        let (attempts, events) = (store.attempts(&call)?, store.events_of(&call)?);
        Ok(CallPage { call, text, attempts, events, saved: None })
    }

    /// The snapshot that was taken before it ran, by the timeline.
    pub(crate) fn snapshot(&self) -> Option<SnapshotId> {
        let is_taken = |event: &&StoredEvent| event.kind.parse() == Ok(EventType::SnapshotTaken);
        let taken = self.events.iter().rev().find(is_taken)?;
        event_line::text(&taken.read_body()["snapshot"]).parse().ok()
    }

    /// The same page, with what is still there of that snapshot.
    pub(crate) fn with_snapshot(self, saved: Option<Snapshot>) -> CallPage {
        CallPage { saved, ..self }
    }

    /// The page as JSON.
    pub(crate) fn to_wire(&self) -> WireCallPage<'_> {
        WireCallPage {
            record: "call",
            call: WireWholeCall::new(&self.call, &self.text),
            snapshot: self.snapshot().map(|id| id.to_string()),
            attempts: self.attempts.iter().map(WireCall::new).collect(),
            events: self.events.iter().map(WireEvent::new).collect(),
        }
    }

    /// The page for people.
    pub(crate) fn text(&self, now: u64, lang: Lang) -> String {
        let words = Words::of(lang);
        let mut page = String::new();
        self.header(&mut page, &words, now, lang);
        let sections: [(&str, String); 7] = [
            (words.life, self.life(&words)),
            (words.attempts, self.attempts(lang)),
            (words.diagnosis, self.diagnosis(&words, lang)),
            (words.said, self.said(lang)),
            (words.input, indented(&self.text.input)),
            (words.output, self.output(lang)),
            (words.timeline, self.timeline(lang)),
        ];
        for (title, text) in sections.iter().filter(|(_, text)| !text.is_empty()) {
            let _ = write!(page, "\n{title}\n{text}");
        }
        page
    }

    fn header(&self, page: &mut String, words: &Words, now: u64, lang: Lang) {
        let call = &self.call;
        let _ = writeln!(page, "#{}  {}  {}", call.id, plain::line(&call.tool), plain::line(&call.label));
        let mut row = |name: &str, text: &str| {
            if !text.is_empty() {
                let _ = writeln!(page, "  {} {}", columns::left(name, 10), plain::line(text));
            }
        };
        let code = call.code.map(|code| format!(" {code}")).unwrap_or_default();
        let outcome = call.outcome.as_ref().map(|outcome| format!(": {outcome}{code}")).unwrap_or_default();
        row(words.state, &format!("{}{outcome}", call.state));
        let took = call.took_ms.map(|took| format!(", {} {}", words.took, moment::span(took)));
        let ago = moment::ago(call.asked_at, now, lang);
        row(
            words.asked,
            &format!("{} ({ago}){}", moment::format_utc(call.asked_at), took.unwrap_or_default()),
        );
        row(words.session, &format!("{} ({})", call.session, call.agent));
        row(words.key, &call.key);
        row(words.cause, call.cause_print.as_deref().unwrap_or_default());
        let recovery = match (call.recovered_at, &*call.state, lang) {
            (Some(at), _, _) => {
                let after = moment::span(at.saturating_sub(call.ended_at.unwrap_or(call.asked_at)));
                match lang {
                    Lang::En => format!("{}, {after} later", moment::format_utc(at)),
                    Lang::Zh => format!("{}，{after} 之后", moment::format_utc(at)),
                }
            }
            (None, "failed", Lang::En) => "not yet: the same has not gone well since".to_owned(),
            (None, "failed", Lang::Zh) => "尚未：之后同样的操作没有成功过".to_owned(),
            (None, _, _) => String::new(),
        };
        row(words.recovery, &recovery);
        row(words.saved, &self.saved_in_words(lang));
    }

    /// What was saved before it ran, and how to take back what it did.
    fn saved_in_words(&self, lang: Lang) -> String {
        let undone = self.saved.as_ref().and_then(|saved| saved.undone_by);
        let changed = self.saved.as_ref().and_then(|saved| saved.changed);
        match (self.snapshot(), &self.saved, undone, changed, lang) {
            (None, _, _, _, _) => String::new(),
            (Some(id), None, _, _, Lang::En) => format!("{id}, which is gone by now"),
            (Some(id), None, _, _, Lang::Zh) => format!("{id}，现已不在"),
            (Some(id), Some(_), Some(by), _, Lang::En) => format!("{id}; undone, before that: {by}"),
            (Some(id), Some(_), Some(by), _, Lang::Zh) => format!("{id}；已撤销，之前的状态：{by}"),
            (Some(id), Some(_), None, Some(false), Lang::En) => format!("{id}; it changed nothing of that"),
            (Some(id), Some(_), None, Some(false), Lang::Zh) => format!("{id}；它没有改动其中内容"),
            (Some(id), Some(_), None, Some(true) | None, Lang::En) => {
                format!("{id}; take it back: `unstuck undo {}`", self.call.id)
            }
            (Some(id), Some(_), None, Some(true) | None, Lang::Zh) => {
                format!("{id}；撤销：`unstuck undo {}`", self.call.id)
            }
        }
    }

    fn life(&self, words: &Words) -> String {
        let mut text = String::new();
        for step in LifeStep::all(&self.text.life) {
            let at = step.at.map_or_else(|| " ".repeat(20), moment::format_utc);
            let saved = Some(&step.snapshot).filter(|name| !name.is_empty());
            let saved = saved.map(|name| format!("{} {}", words.snapshot, plain::line(name)));
            let note = saved.unwrap_or_else(|| plain::line(&step.note).into_owned());
            let row = format!("  {at}  {:<17} {note}", plain::line(&step.state));
            let _ = writeln!(text, "{}", row.trim_end());
        }
        text
    }

    fn attempts(&self, lang: Lang) -> String {
        if self.attempts.len() < 2 {
            return String::new();
        }
        let here = self.attempts.iter().position(|call| call.id == self.call.id).unwrap_or(0);
        let from = here.saturating_sub(AROUND);
        let until = (here + AROUND + 1).min(self.attempts.len());
        let rows: Vec<Vec<String>> = self.attempts[from..until]
            .iter()
            .map(|call| {
                vec![
                    if call.id == self.call.id { "  →".to_owned() } else { String::new() },
                    format!("#{}", call.id),
                    moment::format_utc(call.asked_at),
                    call.attempt.to_string(),
                    plain::line(&call.state).into_owned(),
                    plain::line(call.kind.as_deref().unwrap_or("-")).into_owned(),
                    call.took_ms.map(moment::span).unwrap_or_default(),
                ]
            })
            .collect();
        let sides = [Side::Left, Side::Left, Side::Left, Side::Right, Side::Left, Side::Left, Side::Right];
        let mut text = columns::table(&sides, &rows);
        let hidden = self.attempts.len() - rows.len();
        let _ = match (hidden, lang) {
            (0, _) => Ok(()),
            (hidden, Lang::En) => writeln!(text, "  and {hidden} more"),
            (hidden, Lang::Zh) => writeln!(text, "  还有 {hidden} 次"),
        };
        text
    }

    fn diagnosis(&self, words: &Words, lang: Lang) -> String {
        let (call, verdict) = (&self.call, self.text.read_verdict());
        let Some(kind) = &call.kind else { return String::new() };
        let mut text = String::new();
        let title = kind.parse::<Kind>().map(|kind| kind.title(lang)).unwrap_or_default();
        let _ = writeln!(text, "  {}: {title}", plain::line(kind));
        if !self.text.evidence.is_empty() {
            let _ = writeln!(text, "  > {}", plain::line(&self.text.evidence));
        }
        let mut row = |name: &str, line: &str| {
            let _ = writeln!(text, "  {} {}", columns::left(name, 10), plain::line(line));
        };
        let effect = event_line::text(&verdict["effect"]);
        if let Some(again) = again(&verdict, lang) {
            row(words.retry, &again);
        }
        if let Ok(effect @ (Effect::Maybe | Effect::Applied)) = effect.parse() {
            row(words.effect, explain::done(effect, lang));
        }
        let advice = verdict["recommendations"].as_array().into_iter().flatten();
        for (index, advice) in advice.enumerate() {
            row(if index == 0 { words.next } else { "" }, &event_line::text(advice));
        }
        let rule = call.rule.as_deref().filter(|rule| !rule.is_empty()).unwrap_or("-");
        let sure = verdict["confidence"].as_f64().map(|sure| format!(", {:.0} %", sure * 100.0));
        row(words.known, &format!("{rule}{}", sure.unwrap_or_default()));
        if call.repeat {
            row(words.repeat, words.repeated);
        }
        text
    }

    /// What was said to the agent or to a person, in full, and on which rung.
    fn said(&self, lang: Lang) -> String {
        let mut text = String::new();
        for event in &self.events {
            let body = event.read_body();
            let said = match event.kind.parse() {
                Ok(EventType::ToolAdvice | EventType::ToolDenied | EventType::Ask | EventType::Halt) => {
                    event_line::text(&body["text"])
                }
                Ok(_) | Err(_) => continue,
            };
            if said.is_empty() {
                continue;
            }
            let facts = facts(&event.kind, &body, lang);
            let _ = writeln!(text, "  {}  {}", moment::format_utc(event.at), plain::line(&facts));
            text.push_str(&indented(&said));
        }
        text
    }

    fn output(&self, lang: Lang) -> String {
        let StoredCallText { head, tail, omitted, .. } = &self.text;
        let between = match (omitted, lang) {
            (0, _) => String::new(),
            (omitted, Lang::En) => format!("  … {omitted} bytes left out …\n"),
            (omitted, Lang::Zh) => format!("  …… 省略 {omitted} 字节 ……\n"),
        };
        format!("{}{between}{}", indented(head), indented(tail))
    }

    fn timeline(&self, lang: Lang) -> String {
        self.events.iter().map(|event| format!("  {}", event_line::of_call(event, lang))).collect()
    }
}

/// When something was said, on which rung of the ladder, and because of how many of what: `after: hint (repeat ×3)`. What the
/// ladder kept to itself is told as such.
fn facts(kind: &str, body: &Value, lang: Lang) -> String {
    let [when, rung, track, count] =
        ["when", "rung", "track", "count"].map(|name| event_line::text(&body[name]));
    let what = if rung.is_empty() { kind } else { &*rung };
    let when = if when.is_empty() { String::new() } else { format!("{when}: ") };
    let why = if track.is_empty() { String::new() } else { format!(" ({track} ×{count})") };
    let unspoken = match event_line::is_unspoken(body) {
        true => format!("{}: ", event_line::would_have_said(lang)),
        false => String::new(),
    };
    format!("{when}{unspoken}{what}{why}")
}

/// Whether the same call may run again, as the verdict says.
fn again(verdict: &Value, lang: Lang) -> Option<String> {
    let retry = &verdict["retry"];
    let wait = Duration::from_millis(retry["wait_ms"].as_u64().unwrap_or(0));
    let again = match retry["same_call"].as_str()? {
        "now" => Again::Now,
        "after" => Again::After(wait),
        "if_changed" => Again::IfChanged,
        "never" => Again::Never,
        newer => return Some(newer.to_owned()),
    };
    let fix_by = verdict["fix_by"].as_str()?.parse::<FixBy>().ok()?;
    Some(explain::again(again, fix_by, lang))
}

/// Text of others, set apart from ours.
fn indented(text: &str) -> String {
    plain::lines(text).lines().map(|line| format!("  │ {line}\n")).collect()
}

/// The words of the page.
struct Words {
    state: &'static str,
    asked: &'static str,
    took: &'static str,
    session: &'static str,
    key: &'static str,
    cause: &'static str,
    recovery: &'static str,
    saved: &'static str,
    life: &'static str,
    snapshot: &'static str,
    attempts: &'static str,
    diagnosis: &'static str,
    retry: &'static str,
    effect: &'static str,
    next: &'static str,
    known: &'static str,
    repeat: &'static str,
    repeated: &'static str,
    said: &'static str,
    input: &'static str,
    output: &'static str,
    timeline: &'static str,
}

impl Words {
    const fn of(lang: Lang) -> Words {
        match lang {
            Lang::En => Words {
                state: "state",
                asked: "asked",
                took: "took",
                session: "session",
                key: "call id",
                cause: "problem",
                recovery: "recovered",
                saved: "saved as",
                life: "Life",
                snapshot: "snapshot",
                attempts: "Attempts at the same call",
                diagnosis: "Diagnosis",
                retry: "retry",
                effect: "effect",
                next: "next",
                known: "known by",
                repeat: "repeat",
                repeated: "the session had met this failure of the same intent and not got over it",
                said: "What was said",
                input: "Input",
                output: "Output",
                timeline: "Timeline",
            },
            Lang::Zh => Words {
                state: "状态",
                asked: "发起",
                took: "用时",
                session: "会话",
                key: "调用编号",
                cause: "问题",
                recovery: "恢复",
                saved: "已保存",
                life: "经过",
                snapshot: "快照",
                attempts: "同一调用的各次尝试",
                diagnosis: "诊断",
                retry: "重试",
                effect: "影响",
                next: "下一步",
                known: "依据",
                repeat: "重复",
                repeated: "本会话此前在同一意图上已遇到过这一失败，且尚未解决",
                said: "给出的说明",
                input: "输入",
                output: "输出",
                timeline: "时间线",
            },
        }
    }
}

/// A call's page exactly as it is printed.
#[derive(Serialize)]
pub(crate) struct WireCallPage<'c> {
    #[serde(rename = "type")]
    record: &'static str,
    #[serde(flatten)]
    call: WireWholeCall<'c>,
    /// What was saved before it ran; nothing where nothing was.
    snapshot: Option<String>,
    attempts: Vec<WireCall<'c>>,
    events: Vec<WireEvent<'c>>,
}
