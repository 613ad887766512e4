//! What happened to an MCP server, as one short line for people.

use serde_json::Value;
use unstuck_judge::Lang;
use unstuck_store::{EventType, StoredEvent};

use crate::event_line::text;
use crate::{moment, plain};

/// The sign, the word, and what it says. An empty message means that the body is not as this version writes it.
pub(crate) fn line(kind: EventType, body: &Value, lang: Lang) -> (&'static str, &'static str, String) {
    let word = match lang {
        Lang::En => "server",
        Lang::Zh => "服务器",
    };
    let server = text(&body["server"]);
    let (sign, message) = told(kind, body, lang);
    match (server.is_empty() || message.is_empty(), lang) {
        (true, _) => (sign, word, String::new()),
        (false, Lang::En) => (sign, word, format!("{server}: {message}")),
        (false, Lang::Zh) => (sign, word, format!("{server}：{message}")),
    }
}

/// Every line that a server wrote to standard error, as far as the event holds them, each behind a bar; nothing of other events.
pub(crate) fn all_it_said(event: &StoredEvent) -> String {
    let list = match event.kind.parse() {
        Ok(EventType::ServerExited) => "stderr",
        Ok(EventType::ServerRemark) => "lines",
        Ok(_) | Err(_) => return String::new(),
    };
    let body = event.read_body();
    let lines = body[list].as_array().map(Vec::as_slice).unwrap_or_default();
    lines.iter().map(|line| format!("        │ {}\n", plain::line(&text(line)))).collect()
}

fn told(kind: EventType, body: &Value, lang: Lang) -> (&'static str, String) {
    let field = |name: &str| text(&body[name]);
    let span = |name: &str| moment::span(body[name].as_u64().unwrap_or(0));
    match kind {
        EventType::ServerStarted => {
            let (pid, command) = (field("pid"), field("command"));
            let message = match (pid.is_empty(), lang) {
                (true, Lang::En) => format!("reached: {command}"),
                (true, Lang::Zh) => format!("已连接：{command}"),
                (false, Lang::En) => format!("started as process {pid}: {command}"),
                (false, Lang::Zh) => format!("已启动，进程 {pid}：{command}"),
            };
            ("⏵", message)
        }
        EventType::ServerExited => {
            let said = body["stderr"].as_array().and_then(|lines| lines.last());
            let message = match (said.map(text), lang) {
                (None, _) => field("text").into_owned(),
                (Some(said), Lang::En) => format!("{}; it last said: {said}", field("text")),
                (Some(said), Lang::Zh) => format!("{}；最后的输出：{said}", field("text")),
            };
            ("⏹", message)
        }
        EventType::ServerRestarted => {
            let (attempt, waited) = (field("attempt"), span("waited_ms"));
            let message = match lang {
                Lang::En => format!("started again, attempt {attempt}, after {waited}"),
                Lang::Zh => format!("等待 {waited} 后重新启动，第 {attempt} 次"),
            };
            ("⏵", message)
        }
        EventType::ServerGaveUp => {
            let (why, span) = (field("why"), body["for_ms"].as_u64().map(moment::span));
            let message = match (span, lang) {
                (Some(span), Lang::En) => format!("left alone for {span}: {why}"),
                (Some(span), Lang::Zh) => format!("暂停使用 {span}：{why}"),
                (None, Lang::En) => format!("left alone for good: {why}"),
                (None, Lang::Zh) => format!("不再使用：{why}"),
            };
            ("⏻", message)
        }
        EventType::ServerRecovered => {
            let message = match lang {
                Lang::En => "answers again",
                Lang::Zh => "恢复响应",
            };
            ("⏵", message.to_owned())
        }
        EventType::ServerUnresponsive => {
            let (what, waited) = (field("text"), span("waited_ms"));
            let message = match lang {
                Lang::En => format!("has not answered for {waited}: {what}"),
                Lang::Zh => format!("已有 {waited} 没有响应：{what}"),
            };
            ("?", message)
        }
        EventType::ServerNoise => {
            let (beginning, why) = (field("beginning"), field("why"));
            let message = match lang {
                Lang::En => format!("sent what is no message ({why}): {beginning}"),
                Lang::Zh => format!("发送了不是消息的内容（{why}）：{beginning}"),
            };
            ("‼", message)
        }
        EventType::ServerToolsChanged => ("⚠", tools_changed(body, lang)),
        EventType::ServerRemark => {
            let said = body["lines"].as_array().and_then(|lines| lines.last());
            ("·", said.map(text).unwrap_or_default().into_owned())
        }
        // Other events are not about servers.
        EventType::ToolStart
        | EventType::ToolRetry
        | EventType::ToolError
        | EventType::ToolEnd
        | EventType::ToolAdvice
        | EventType::ToolDenied
        | EventType::Error
        | EventType::ToolSealed
        | EventType::OwnFault
        | EventType::Budget
        | EventType::Breaker
        | EventType::FalseAlarm
        | EventType::ToolRewritten
        | EventType::ProblemNew
        | EventType::ProblemRegressed
        | EventType::LessonShown
        | EventType::LessonRegressed
        | EventType::Alert
        | EventType::Ask
        | EventType::Halt
        | EventType::SnapshotTaken
        | EventType::SnapshotFailed
        | EventType::SnapshotRestored
        | EventType::SnapshotRemoved => ("·", String::new()),
    }
}

/// Which tools are new, gone, or described otherwise.
fn tools_changed(body: &Value, lang: Lang) -> String {
    let words = match lang {
        Lang::En => [("added", "added"), ("removed", "gone"), ("changed", "described otherwise than before")],
        Lang::Zh => [("added", "新增"), ("removed", "消失"), ("changed", "描述与之前不同")],
    };
    let parts = words.into_iter().filter_map(|(list, word)| {
        let names: Vec<_> = body[list].as_array()?.iter().map(text).collect();
        let more = body["counts"][list].as_u64().unwrap_or(0).saturating_sub(names.len() as u64);
        let names = (!names.is_empty()).then(|| names.join(", "))?;
        Some(match (more, lang) {
            (0, Lang::En) => format!("; {word}: {names}"),
            (0, Lang::Zh) => format!("；{word}：{names}"),
            (more, Lang::En) => format!("; {word}: {names} and {more} more"),
            (more, Lang::Zh) => format!("；{word}：{names} 等（另有 {more} 个）"),
        })
    });
    let parts: String = parts.collect();
    match (parts.is_empty(), lang) {
        (true, _) => parts,
        (false, Lang::En) => format!("other tools than the last time{parts}"),
        (false, Lang::Zh) => format!("工具与上次不同{parts}"),
    }
}
