//! One event of the timeline: as JSON, and as a short line for people. What only a newer version knows is shown whole.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use unstuck_judge::Lang;
use unstuck_store::{EventType, StoredEvent};
use unstuck_wire::time;

use crate::lines::WireJson;
use crate::server_line::ServerLine;
use crate::{columns, moment, plain, removed};

/// How wide the column of sessions is.
const SESSION: usize = 14;
/// How wide the column of words is.
const WORD: usize = 9;

/// An event exactly as it is printed.
#[derive(Serialize)]
pub(crate) struct WireEvent<'e> {
    #[serde(rename = "type")]
    record: &'static str,
    seq: u64,
    at: String,
    at_ms: u64,
    channel: &'e str,
    event: &'e str,
    session: Option<&'e str>,
    call: Option<i64>,
    body: WireJson<'e>,
    link: Option<&'e str>,
}

impl<'e> WireEvent<'e> {
    pub(crate) fn new(event: &'e StoredEvent) -> WireEvent<'e> {
        WireEvent {
            record: "event",
            seq: event.seq.0,
            at: time::iso(event.at),
            at_ms: event.at,
            channel: &event.channel,
            event: &event.kind,
            session: event.session.as_deref(),
            call: event.call,
            body: WireJson::new(&event.body),
            link: event.link.as_deref(),
        }
    }
}

/// The event as one line of the whole timeline, with its bookmark first and its end.
pub(crate) fn of_timeline(event: &StoredEvent, lang: Lang) -> String {
    let session = short_session(event.session.as_deref().unwrap_or("-"));
    let call = event.call.map(|call| format!("#{call} ")).unwrap_or_default();
    let at = moment::format_utc(event.at);
    let session = columns::left(&session, SESSION);
    format!("{:>6}  {at}  {session}  {call}{}\n", event.seq.0, told(event, lang, Some(200)))
}

/// A session's name in few columns: its beginning, by which it can be named, and its end, by which it can be told from others.
fn short_session(name: &str) -> String {
    let signs: Vec<char> = plain::line(name).chars().collect();
    match signs.len() > SESSION {
        true => signs[..8].iter().chain(['…'].iter()).chain(&signs[signs.len() - 5..]).collect(),
        false => signs.into_iter().collect(),
    }
}

/// The event as one line among those of its call, with its end.
pub(crate) fn of_call(event: &StoredEvent, lang: Lang) -> String {
    format!("{}  {}\n", moment::format_utc(event.at), told(event, lang, None))
}

/// The event as one short line among those of its session, without its end: the time of day, the call, and what it says.
pub(crate) fn of_session(event: &StoredEvent, lang: Lang) -> String {
    let at = moment::format_utc(event.at);
    let time_of_day = at.get(11..19).unwrap_or(&at);
    let call = event.call.map(|call| format!("#{call}")).unwrap_or_default();
    format!("{time_of_day}  {call:>3} {}", told(event, lang, Some(200)))
}

/// What an event says, without a place or a time.
pub(crate) fn message(event: &StoredEvent, lang: Lang) -> String {
    told(event, lang, Some(200))
}

/// Sign, word and message; the message no longer than asked for.
fn told(event: &StoredEvent, lang: Lang, most: Option<usize>) -> String {
    let body = event.read_body();
    let known = event.kind.parse().ok().map(|kind| line(kind, &body, lang));
    match known {
        Some((sign, word, message)) if !message.is_empty() => {
            let message = match most {
                Some(most) => plain::short(&message, most),
                None => plain::line(&message).into_owned(),
            };
            format!("{sign} {} {message}", columns::left(word, WORD))
        }
        Some(_) | None => {
            let word = columns::left(&plain::line(&event.kind), WORD);
            format!("· {word} {}", plain::line(&body.to_string()))
        }
    }
}

/// What an event of a known type says. An empty message means that its body is not as this version writes it.
fn line(kind: EventType, body: &Value, lang: Lang) -> (&'static str, &'static str, String) {
    let say = |en: &'static str, zh: &'static str| match lang {
        Lang::En => en,
        Lang::Zh => zh,
    };
    let field = |name: &str| text(&body[name]);
    let parts =
        |parts: &[&str]| parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(": ");
    let (server, about) = (say("server", "服务器"), ServerLine { body, lang });
    match kind {
        EventType::ToolStart => {
            let attempt = match (body["attempt"].as_u64(), lang) {
                (Some(2..), Lang::En) => format!(" (attempt {})", field("attempt")),
                (Some(2..), Lang::Zh) => format!("（第 {} 次尝试）", field("attempt")),
                (Some(_) | None, _) => String::new(),
            };
            ("▶", say("start", "开始"), with(label(body), &attempt))
        }
        EventType::ToolRetry => ("↻", say("retry", "重试"), retry(body, lang)),
        EventType::ToolError => {
            let label = label(&body["call"]);
            let claimed = match body["claimed_success"] == Value::Bool(true) {
                true => say("claimed success", "声称成功"),
                false => "",
            };
            ("✗", say("failed", "失败"), parts(&[&label, claimed, &field("kind"), &field("error")]))
        }
        EventType::ToolEnd => {
            let sign = if body["ok"] == Value::Bool(true) { "✓" } else { "✗" };
            let took = body["took_ms"].as_u64().map(|took| match lang {
                Lang::En => format!(" in {}", moment::span(took)),
                Lang::Zh => format!("，用时 {}", moment::span(took)),
            });
            (sign, say("end", "结束"), with(field("state").into_owned(), &took.unwrap_or_default()))
        }
        EventType::ToolAdvice => {
            let (rung, text) = (field("rung"), field("text"));
            let message = match is_unspoken(body) && !text.is_empty() {
                true => parts(&[would_have_said(lang), &rung, &text]),
                false => parts(&[&rung, &text]),
            };
            ("!", say("advice", "建议"), message)
        }
        EventType::ToolDenied => {
            let by = match (&*field("by"), lang) {
                ("person", Lang::En) => "a person said no",
                ("person", Lang::Zh) => "由人拒绝",
                (_, _) => "",
            };
            let message = parts(&[by, &label(body), &field("text")]);
            (
                "⊘",
                say("denied", "拒绝"),
                if message.is_empty() { field("rung").into_owned() } else { message },
            )
        }
        EventType::Error => {
            let message = parts(&[&field("severity"), &field("kind"), &field("message")]);
            ("✗", say("error", "错误"), message)
        }
        EventType::ToolSealed => ("?", say("sealed", "封存"), parts(&[&label(body), &field("text")])),
        EventType::OwnFault => ("‼", say("own fault", "自身故障"), parts(&[&field("part"), &field("what")])),
        EventType::Budget => {
            let state = match (&body["allows_retry"], lang) {
                (Value::Bool(true), Lang::En) => "retries allowed",
                (Value::Bool(true), Lang::Zh) => "允许重试",
                (Value::Bool(false), Lang::En) => "no retries left",
                (Value::Bool(false), Lang::Zh) => "重试额度已用完",
                (_, _) => "",
            };
            ("◔", say("budget", "额度"), parts(&[&field("name"), state]))
        }
        EventType::Breaker => ("⏻", say("breaker", "熔断"), parts(&[&field("name"), &field("state")])),
        EventType::FalseAlarm => ("⚐", say("false alarm", "误报"), parts(&[&label(body), &field("rule")])),
        EventType::ToolRewritten => ("✎", say("rewritten", "改写"), field("text").into_owned()),
        EventType::ProblemNew => ("★", say("new", "新问题"), problem(body)),
        EventType::ProblemRegressed => ("⟲", say("regressed", "复发"), problem(body)),
        EventType::LessonShown => ("❧", say("remembered", "记得"), field("text").into_owned()),
        EventType::LessonRegressed => {
            let (lesson, wins, losses) = (field("lesson"), field("wins"), field("losses"));
            let told = match lang {
                Lang::En => format!("L{lesson} does not help any more: {wins} wins, {losses} losses"),
                Lang::Zh => format!("L{lesson} 不再有效：有效 {wins} 次，无效 {losses} 次"),
            };
            ("⟲", say("unlearnt", "失效"), if lesson.is_empty() { String::new() } else { told })
        }
        EventType::Alert => ("⚑", say("alert", "告警"), parts(&[&field("name"), &field("text")])),
        EventType::Ask => {
            let what = parts(&[&label(body), &field("text")]);
            let message = match what.is_empty() {
                true => what,
                false => parts(&[say("a person has to allow it", "需要由人批准"), &what]),
            };
            ("?", say("ask", "询问"), message)
        }
        EventType::Halt => ("■", say("halt", "停止"), field("text").into_owned()),
        EventType::SnapshotTaken => {
            let (paths, size) = (field("paths"), removed::size(body["bytes"].as_u64().unwrap_or(0)));
            let partly = match body["partial"] == Value::Bool(true) {
                true => say(", not all of it", "，不完整"),
                false => "",
            };
            let held = match lang {
                Lang::En => format!("{}: {}, {size}{partly}", field("snapshot"), in_paths(&paths)),
                Lang::Zh => format!("{}：{paths} 个路径，{size}{partly}", field("snapshot")),
            };
            let message = if paths.is_empty() { String::new() } else { because(held, body) };
            ("◆", say("saved", "已保存"), message)
        }
        EventType::SnapshotFailed => {
            ("‼", say("not saved", "未能保存"), parts(&[&field("why"), &field("text")]))
        }
        EventType::SnapshotRestored => {
            let (id, paths, kept, saved) = (field("snapshot"), field("paths"), field("kept"), field("saved"));
            let mut told = match lang {
                Lang::En => format!("{id}: {}", in_paths(&paths)),
                Lang::Zh => format!("{id}：{paths} 个路径"),
            };
            if !matches!(&*kept, "" | "0") {
                told += &match lang {
                    Lang::En => format!(", {kept} left as they are"),
                    Lang::Zh => format!("，{kept} 个保持原样"),
                };
            }
            if !saved.is_empty() {
                told += &match lang {
                    Lang::En => format!("; before that: {saved}"),
                    Lang::Zh => format!("；之前的状态：{saved}"),
                };
            }
            let message = if paths.is_empty() { String::new() } else { because(told, body) };
            ("↶", say("restored", "已恢复"), message)
        }
        EventType::SnapshotRemoved => {
            let id = field("snapshot").into_owned();
            ("⌫", say("removed", "已删除"), if id.is_empty() { id } else { because(id, body) })
        }
        EventType::ServerStarted => ("⏵", server, about.started()),
        EventType::ServerExited => ("⏹", server, about.exited()),
        EventType::ServerRestarted => ("⏵", server, about.restarted()),
        EventType::ServerGaveUp => ("⏻", server, about.gave_up()),
        EventType::ServerRecovered => ("⏵", server, about.recovered()),
        EventType::ServerUnresponsive => ("?", server, about.unresponsive()),
        EventType::ServerNoise => ("‼", server, about.noise()),
        EventType::ServerToolsChanged => ("⚠", server, about.tools_changed()),
        EventType::ServerRemark => ("·", server, about.remark()),
    }
}

/// How many paths, in words.
fn in_paths(count: &str) -> String {
    format!("{count} {}", if count == "1" { "path" } else { "paths" })
}

/// What was done in the safe, because of what, and the call or the note that goes with it.
fn because(told: String, body: &Value) -> String {
    let (why, text) = (text(&body["why"]), text(&body["text"]));
    match (&*why, &*text) {
        ("", "") => told,
        (why, "") => format!("{told} ({why})"),
        ("", text) => format!("{told}: {text}"),
        (why, text) => format!("{told} ({why}): {text}"),
    }
}

/// Advice that nobody was given, because the ladder only watched.
pub(crate) fn is_unspoken(body: &Value) -> bool {
    body["spoken"] == Value::Bool(false)
}

/// What stands before advice that nobody was given.
pub(crate) fn would_have_said(lang: Lang) -> &'static str {
    match lang {
        Lang::En => "would have said",
        Lang::Zh => "本应说",
    }
}

/// `attempt 2 of 4, waiting 3 s, because rate_limited`, in the reader's language.
fn retry(body: &Value, lang: Lang) -> String {
    let (Some(attempt), Some(wait)) = (body["attempt"].as_u64(), body["wait_ms"].as_u64()) else {
        return text(&body["text"]).into_owned();
    };
    let (of, wait, because) = (body["of"].as_u64(), moment::span(wait), text(&body["because"]));
    let of = of.map(|of| match lang {
        Lang::En => format!(" of {of}"),
        Lang::Zh => format!("（共 {of} 次）"),
    });
    let of = of.unwrap_or_default();
    match lang {
        Lang::En => format!("attempt {attempt}{of}, waiting {wait}, because {because}"),
        Lang::Zh => format!("第 {attempt} 次尝试{of}，等待 {wait}，原因：{because}"),
    }
}

/// `path_not_found: npm error … (e1:abcdefgh)`: enough of the cause to look it up.
fn problem(body: &Value) -> String {
    let cause: String = text(&body["cause"]).chars().take(13).collect();
    let (kind, title) = (text(&body["kind"]), text(&body["title"]));
    match (&*kind, &*title) {
        ("", _) => String::new(),
        (kind, "") => format!("{kind} ({cause})"),
        (kind, title) => format!("{kind} ({cause}): {title}"),
    }
}

/// The call in one line: its label, or its tool.
fn label(call: &Value) -> String {
    let (label, tool) = (text(&call["label"]), text(&call["tool"]));
    if label.is_empty() { tool.into_owned() } else { label.into_owned() }
}

/// A text with an addition, or nothing without the text.
fn with(text: String, addition: &str) -> String {
    if text.is_empty() { text } else { text + addition }
}

/// A value as text; an absent one is empty.
pub(crate) fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines;
    use serde_json::json;
    use unstuck_store::Bookmark;

    fn event(kind: &str, body: Value) -> StoredEvent {
        let session = Some("0123456789abcdef".to_owned());
        StoredEvent {
            seq: Bookmark(7),
            at: 0,
            channel: "progress".to_owned(),
            kind: kind.to_owned(),
            session,
            call: Some(3),
            body: body.to_string(),
            link: None,
        }
    }

    #[track_caller]
    fn check(kind: &str, body: Value, expected: &str) {
        let shown = of_timeline(&event(kind, body), Lang::En);
        let expected = format!("     7  1970-01-01 00:00:00Z  01234567…bcdef  #3 {expected}\n");
        assert_eq!(shown, expected);
    }

    #[test]
    fn every_known_event_is_a_short_sentence() {
        check("tool:start", json!({"tool":"Bash","label":"npm ci","attempt":1}), "▶ start     npm ci");
        check("tool:start", json!({"tool":"Bash","attempt":2}), "▶ start     Bash (attempt 2)");
        check(
            "tool:retry",
            json!({"attempt":2,"of":4,"wait_ms":3000,"because":"rate_limited"}),
            "↻ retry     attempt 2 of 4, waiting 3.0 s, because rate_limited",
        );
        check(
            "tool:error",
            json!({"call":{"label":"npm ci"},"kind":"network","error":"ECONNREFUSED"}),
            "✗ failed    npm ci: network: ECONNREFUSED",
        );
        check(
            "tool:end",
            json!({"ok":true,"state":"completed","took_ms":900}),
            "✓ end       completed in 900 ms",
        );
        check("tool:advice", json!({"rung":"hint","text":"Same again."}), "! advice    hint: Same again.");
        check(
            "tool:advice",
            json!({"rung":"halt","text":"Stop.","spoken":false}),
            "! advice    would have said: halt: Stop.",
        );
        check("tool:advice", json!({"rung":"note","text":"Same.","spoken":true}), "! advice    note: Same.");
        check("tool:denied", json!({"rung":"deny","text":"No."}), "⊘ denied    No.");
        check("tool:denied", json!({"by":"person"}), "⊘ denied    a person said no");
        check(
            "error",
            json!({"severity":"warn","kind":"network","message":"x"}),
            "✗ error     warn: network: x",
        );
        check(
            "tool:sealed",
            json!({"label":"npm ci","text":"was running"}),
            "? sealed    npm ci: was running",
        );
        check("own_fault", json!({"part":"hook","what":"bad JSON"}), "‼ own fault hook: bad JSON");
        check("budget", json!({"name":"api","allows_retry":false}), "◔ budget    api: no retries left");
        check("breaker", json!({"name":"api","state":"open"}), "⏻ breaker   api: open");
        check(
            "problem:new",
            json!({"cause":"e1:abcdefghijklmnop","kind":"network","title":"x"}),
            "★ new       network (e1:abcdefghij): x",
        );
        check("alert", json!({"name":"halted","text":"look"}), "⚑ alert     halted: look");
        check(
            "ask",
            json!({"label":"rm -r build","by":"person"}),
            "? ask       a person has to allow it: rm -r build",
        );
        check("halt", json!({"text":"Stop."}), "■ halt      Stop.");
        check(
            "snapshot:taken",
            json!({"snapshot":"s4","paths":12,"bytes":2048,"partial":true,"why":"rm","text":"rm -r src"}),
            "◆ saved     s4: 12 paths, 2048 B, not all of it (rm): rm -r src",
        );
        check(
            "snapshot:failed",
            json!({"snapshot":null,"why":"rm","text":"the disk is full"}),
            "‼ not saved rm: the disk is full",
        );
        check(
            "snapshot:restored",
            json!({"snapshot":"s4","saved":"s5","paths":12,"bytes":9,"kept":2,"why":"undo","text":""}),
            "↶ restored  s4: 12 paths, 2 left as they are; before that: s5 (undo)",
        );
        check("snapshot:removed", json!({"snapshot":"s4","why":"expired"}), "⌫ removed   s4 (expired)");
        check(
            "server:started",
            json!({"server":"files","pid":7,"command":"npx f"}),
            "⏵ server    files: started as process 7: npx f",
        );
        check(
            "server:exited",
            json!({"server":"files","text":"ended with 3","code":3,"stderr":["a","TypeError: x"]}),
            "⏹ server    files: ended with 3; it last said: TypeError: x",
        );
        check(
            "server:restarted",
            json!({"server":"files","attempt":2,"waited_ms":500}),
            "⏵ server    files: started again, attempt 2, after 500 ms",
        );
        check(
            "server:gave_up",
            json!({"server":"files","why":"5 ends","for_ms":30000}),
            "⏻ server    files: left alone for 30 s: 5 ends",
        );
        check(
            "server:gave_up",
            json!({"server":"files","why":"5 ends","for_ms":null}),
            "⏻ server    files: left alone for good: 5 ends",
        );
        check("server:recovered", json!({"server":"files"}), "⏵ server    files: answers again");
        check(
            "server:unresponsive",
            json!({"server":"files","text":"tools/list","waited_ms":10000}),
            "? server    files: has not answered for 10 s: tools/list",
        );
        check(
            "server:noise",
            json!({"server":"files","beginning":"Hello","why":"no JSON"}),
            "‼ server    files: sent what is no message (no JSON): Hello",
        );
        check(
            "server:tools_changed",
            json!({"server":"files","severity":"warn","added":["a"],"removed":[],"changed":["b","c"],
                "counts":{"added":1,"removed":0,"changed":50}}),
            "⚠ server    files: other tools than the last time; added: a; described otherwise than before: b, c and 48 more",
        );
        check("server:remark", json!({"server":"files","lines":["one","two"]}), "· server    files: two");
    }

    #[test]
    fn what_this_version_does_not_know_is_shown_whole() {
        check("tool:levitated", json!({"height":3}), r#"· tool:levitated {"height":3}"#);
        check("tool:start", json!({"phase":"two"}), r#"· tool:start {"phase":"two"}"#);
        check("tool:start", json!("no object"), r#"· tool:start "no object""#);
    }

    #[test]
    fn json_is_one_line_whatever_the_body_is() {
        let check = |body: &str, expected: &str| {
            let event = StoredEvent { body: body.to_owned(), ..event("ask", Value::Null) };
            let line = lines::json(&WireEvent::new(&event));
            assert_eq!(line.lines().count(), 1, "{line}");
            assert!(
                line.trim_end().ends_with(&format!(r#","call":3,"body":{expected},"link":null}}"#)),
                "{line}"
            );
            assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["at"], "1970-01-01T00:00:00.000Z");
        };
        check(r#"{"text": "as written"}"#, r#"{"text": "as written"}"#);
        check("{\n  \"text\": 1\n}", r#"{"text":1}"#);
        check("no JSON\n", r#""no JSON\n""#);
        check("", r#""""#);
    }

    #[test]
    fn every_type_has_words_in_both_languages() {
        for kind in EventType::ALL {
            let [en, zh] = [Lang::En, Lang::Zh].map(|lang| line(*kind, &Value::Null, lang).1);
            assert!(en.is_ascii() && !zh.is_ascii(), "{kind}");
        }
    }

    #[test]
    fn hostile_text_stays_on_its_line_and_long_text_is_cut() {
        check("halt", json!({"text":"a\nb\u{1b}[2J"}), "■ halt      a b\\u{1b}[2J");
        let long = of_timeline(&event("halt", json!({"text":"x".repeat(5000)})), Lang::En);
        assert!(long.chars().count() < 280 && long.ends_with("x…\n"), "{long}");
    }
}
