//! What happened to an MCP server, as one short line for people.

use std::borrow::Cow;

use serde_json::Value;
use unstuck_judge::Lang;
use unstuck_store::{EventType, StoredEvent};

use crate::event_line::text;
use crate::{moment, plain};

/// An event about a server. A message that is empty means that the body is not as this version writes it.
pub(crate) struct ServerLine<'b> {
    pub(crate) body: &'b Value,
    pub(crate) lang: Lang,
}

impl ServerLine<'_> {
    pub(crate) fn started(&self) -> String {
        let (pid, command) = (self.field("pid"), self.field("command"));
        self.about(match (pid.is_empty(), self.lang) {
            (true, Lang::En) => format!("reached: {command}"),
            (true, Lang::Zh) => format!("已连接：{command}"),
            (false, Lang::En) => format!("started as process {pid}: {command}"),
            (false, Lang::Zh) => format!("已启动，进程 {pid}：{command}"),
        })
    }

    pub(crate) fn exited(&self) -> String {
        let how = self.field("text");
        self.about(match (self.last("stderr"), self.lang) {
            (None, _) => how.into_owned(),
            (Some(said), Lang::En) => format!("{how}; it last said: {said}"),
            (Some(said), Lang::Zh) => format!("{how}；最后的输出：{said}"),
        })
    }

    pub(crate) fn restarted(&self) -> String {
        let (attempt, waited) = (self.field("attempt"), self.span("waited_ms"));
        self.about(match self.lang {
            Lang::En => format!("started again, attempt {attempt}, after {waited}"),
            Lang::Zh => format!("等待 {waited} 后重新启动，第 {attempt} 次"),
        })
    }

    pub(crate) fn gave_up(&self) -> String {
        let (why, span) = (self.field("why"), self.body["for_ms"].as_u64().map(moment::span));
        self.about(match (span, self.lang) {
            (Some(span), Lang::En) => format!("left alone for {span}: {why}"),
            (Some(span), Lang::Zh) => format!("暂停使用 {span}：{why}"),
            (None, Lang::En) => format!("left alone for good: {why}"),
            (None, Lang::Zh) => format!("不再使用：{why}"),
        })
    }

    pub(crate) fn recovered(&self) -> String {
        let message = match self.lang {
            Lang::En => "answers again",
            Lang::Zh => "恢复响应",
        };
        self.about(message.to_owned())
    }

    pub(crate) fn unresponsive(&self) -> String {
        let (what, waited) = (self.field("text"), self.span("waited_ms"));
        self.about(match self.lang {
            Lang::En => format!("has not answered for {waited}: {what}"),
            Lang::Zh => format!("已有 {waited} 没有响应：{what}"),
        })
    }

    pub(crate) fn noise(&self) -> String {
        let (beginning, why) = (self.field("beginning"), self.field("why"));
        self.about(match self.lang {
            Lang::En => format!("sent what is no message ({why}): {beginning}"),
            Lang::Zh => format!("发送了不是消息的内容（{why}）：{beginning}"),
        })
    }

    /// Which tools are new, gone, or described otherwise.
    pub(crate) fn tools_changed(&self) -> String {
        let (body, lang) = (self.body, self.lang);
        let words = match lang {
            Lang::En => {
                [("added", "added"), ("removed", "gone"), ("changed", "described otherwise than before")]
            }
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
        self.about(match (parts.is_empty(), lang) {
            (true, _) => parts,
            (false, Lang::En) => format!("other tools than the last time{parts}"),
            (false, Lang::Zh) => format!("工具与上次不同{parts}"),
        })
    }

    pub(crate) fn remark(&self) -> String {
        self.about(self.last("lines").unwrap_or_default().into_owned())
    }

    /// The message, with the server before it.
    fn about(&self, message: String) -> String {
        let server = self.field("server");
        match (server.is_empty() || message.is_empty(), self.lang) {
            (true, _) => String::new(),
            (false, Lang::En) => format!("{server}: {message}"),
            (false, Lang::Zh) => format!("{server}：{message}"),
        }
    }

    fn field(&self, name: &str) -> Cow<'_, str> {
        text(&self.body[name])
    }

    fn span(&self, name: &str) -> String {
        moment::span(self.body[name].as_u64().unwrap_or(0))
    }

    /// The last one of a list.
    fn last(&self, list: &str) -> Option<Cow<'_, str>> {
        self.body[list].as_array().and_then(|lines| lines.last()).map(text)
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
