//! A diagnosis in words, short enough to paste into a chat.

use std::fmt::Write as _;
use std::time::Duration;

use unstuck_judge::rules::Stream;
use unstuck_judge::{Again, Effect, FixBy, Kind, Lang};
use unstuck_wire::redact::redact;
use unstuck_wire::report::Report;

/// Says what happened, how it is known, whether to retry, and what to do.
pub(crate) fn diagnosis(report: &Report, command: Option<&str>, lang: Lang) -> String {
    let diagnosis = &report.diagnosis;
    let mut text = String::new();
    let mark = match diagnosis.ok() {
        Some(true) => "✓",
        Some(false) => "✗",
        None => "?",
    };
    let subject = diagnosis.bare_name().map(|it| format!(" ({it})")).unwrap_or_default();
    let _ = writeln!(text, "{mark} {}: {}{subject}", diagnosis.kind, diagnosis.kind.title(lang));
    if let Some(found) = &diagnosis.evidence {
        let _ = writeln!(text, "  > {}", found.text);
        let place = match (lang, found.stream) {
            (Lang::En, Stream::Stderr) => format!("line {} of stderr", found.line),
            (Lang::En, Stream::Stdout) => format!("line {} of stdout", found.line),
            (Lang::En, Stream::Merged) => format!("line {}", found.line),
            (Lang::Zh, Stream::Stderr) => format!("stderr 第 {} 行", found.line),
            (Lang::Zh, Stream::Stdout) => format!("stdout 第 {} 行", found.line),
            (Lang::Zh, Stream::Merged) => format!("第 {} 行", found.line),
        };
        let from = command.map(|command| format!(", `{}`", shortened(command))).unwrap_or_default();
        let _ = writeln!(text, "    {place}{from}");
    }
    if diagnosis.kind == Kind::NotAnError {
        return text;
    }
    let (retry, effect, next, known) = match lang {
        Lang::En => ("retry ", "effect", "next  ", "known "),
        Lang::Zh => ("重试", "影响", "下一步", "依据"),
    };
    let _ = writeln!(text, "  {retry}  {}", again(report.verdict.again, report.verdict.fix_by, lang));
    if report.verdict.effect != Effect::Nothing {
        let _ = writeln!(text, "  {effect}  {}", done(report.verdict.effect, lang));
    }
    for (index, advice) in report.recommendations.iter().enumerate() {
        let label = if index == 0 { next } else { "      " };
        let _ = writeln!(text, "  {label}  {advice}");
    }
    let rule = if diagnosis.rule.is_empty() { "-" } else { &diagnosis.rule };
    let _ = writeln!(text, "  {known}  {rule}, {:.0} %", diagnosis.confidence * 100.0);
    text
}

/// Says whether the same call may run again.
pub(crate) fn again(again: Again, fix_by: FixBy, lang: Lang) -> String {
    let who = match (lang, fix_by) {
        (Lang::En, FixBy::Wait) => "waiting",
        (Lang::En, FixBy::Model) => "the caller",
        (Lang::En, FixBy::Environment) => "a change on this machine",
        (Lang::En, FixBy::Person) => "a person",
        (Lang::En, FixBy::Nobody) => "nobody",
        (Lang::Zh, FixBy::Wait) => "等待",
        (Lang::Zh, FixBy::Model) => "调用方",
        (Lang::Zh, FixBy::Environment) => "改动本机环境",
        (Lang::Zh, FixBy::Person) => "人",
        (Lang::Zh, FixBy::Nobody) => "无",
    };
    match (lang, again) {
        (Lang::En, Again::Now) => "yes, at once".to_owned(),
        (Lang::En, Again::After(wait)) => format!("yes, after {}", span(wait)),
        (Lang::En, Again::IfChanged) => format!("not until something changes (fixed by: {who})"),
        (Lang::En, Again::Never) => format!("no, the same call cannot work (fixed by: {who})"),
        (Lang::Zh, Again::Now) => "可以，立即".to_owned(),
        (Lang::Zh, Again::After(wait)) => format!("可以，{} 后", span(wait)),
        (Lang::Zh, Again::IfChanged) => format!("有所改变之前不要重试（由谁解决：{who}）"),
        (Lang::Zh, Again::Never) => format!("不可以，同样的调用不会成功（由谁解决：{who}）"),
    }
}

/// Says what the call may have done.
pub(crate) fn done(effect: Effect, lang: Lang) -> &'static str {
    match (lang, effect) {
        (Lang::En, Effect::Nothing) => "nothing was changed",
        (Lang::En, Effect::Maybe) => "it may have changed something before it failed",
        (Lang::En, Effect::Applied) => "what it was asked for has happened",
        (Lang::Zh, Effect::Nothing) => "没有改动任何东西",
        (Lang::Zh, Effect::Maybe) => "失败前可能已有改动",
        (Lang::Zh, Effect::Applied) => "所要求的操作已经生效",
    }
}

/// A wait as people say it.
fn span(wait: Duration) -> String {
    match wait.as_secs() {
        0 => format!("{} ms", wait.as_millis()),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3600)),
    }
}

fn shortened(command: &str) -> String {
    let plain = redact(command).replace(|sign: char| sign.is_control(), " ");
    let one_line = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    match one_line.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &one_line[..end]),
        None => one_line,
    }
}
