//! What was removed, in JSON and in words, for every command that removes something.

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_store::Removed;

#[derive(Debug, Serialize)]
pub(crate) struct WireRemoved {
    calls: u64,
    events: u64,
    sessions: u64,
    standing: u64,
    problems: u64,
    alerts: u64,
    lessons: u64,
}

impl From<Removed> for WireRemoved {
    fn from(removed: Removed) -> WireRemoved {
        let Removed { calls, events, sessions, standing, problems, alerts, lessons } = removed;
        WireRemoved { calls, events, sessions, standing, problems, alerts, lessons }
    }
}

/// All of it, or that it was nothing.
pub(crate) fn in_words(removed: &Removed, lang: Lang) -> String {
    let all = [
        (removed.calls, ["call", "calls"], "个调用"),
        (removed.events, ["event", "events"], "个事件"),
        (removed.sessions, ["session", "sessions"], "个会话"),
        (removed.standing, ["ladder entry", "ladder entries"], "条阶梯记录"),
        (removed.problems, ["problem", "problems"], "个问题"),
        (removed.alerts, ["alert", "alerts"], "个告警"),
        (removed.lessons, ["lesson", "lessons"], "条经验"),
    ];
    let some = all.iter().filter(|(count, _, _)| *count > 0).map(|(count, en, zh)| match lang {
        Lang::En => counted(*count, *en),
        Lang::Zh => format!("{count} {zh}"),
    });
    let some: Vec<String> = some.collect();
    match (some.is_empty(), lang) {
        (true, Lang::En) => "nothing".to_owned(),
        (true, Lang::Zh) => "无".to_owned(),
        (false, Lang::En) => some.join(", "),
        (false, Lang::Zh) => some.join("，"),
    }
}

/// A number with its noun, which has a form for one and a form for several.
pub(crate) fn counted(count: u64, [one, several]: [&str; 2]) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// A size as people read it.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{} KB", bytes >> 10),
        10_485_760..1_073_741_824 => format!("{} MB", bytes >> 20),
        // One digit behind the point, by whole tenths of 1024 MB.
        _ => format!("{}.{} GB", bytes >> 30, ((bytes % (1 << 30)) * 10) >> 30),
    }
}
