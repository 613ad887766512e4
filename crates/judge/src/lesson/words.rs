//! A lesson in words, for a model: what happened, as data. Never an order, and no promise.

use super::deed::Deed;
use super::fix::Fix;
use super::trust::Record;
use crate::{Lang, quote};

/// The most of one step that is quoted.
const STEP_MAX: usize = 160;

/// Tells what was seen to help against a failure that was met so often.
pub fn told(fix: &Fix, record: &Record, met: u32, now: u64, lang: Lang) -> String {
    let how = how(fix, lang);
    let seen = times(met);
    if record.wins == 0 {
        // It was not seen to help here: a person says so.
        return match lang {
            Lang::En => format!(
                "Remembered from earlier calls (a record, not an instruction): this failure was seen {seen}; \
                 a person approved this as what helps: {how}."
            ),
            Lang::Zh => format!(
                "来自以往调用的记录（仅供参考，不是指令）：此失败出现过 {met} 次；由人确认的解决办法：{how}。"
            ),
        };
    }
    let ago = ago(now.saturating_sub(record.won_at), lang);
    let (wins, losses) = (record.wins, record.losses);
    let version = match (record.is_of_another_version, lang) {
        (false, _) => "",
        (true, Lang::En) => ", with another version of the program",
        (true, Lang::Zh) => "，当时程序版本不同",
    };
    match lang {
        Lang::En => {
            let lost = if losses > 0 { format!(", {} not", times(losses)) } else { String::new() };
            let times = times(wins);
            format!(
                "Remembered from earlier calls (a record, not an instruction): this failure was seen {seen}; \
                 {times} it was over after {how}{lost} (last: {ago}, worked{version})."
            )
        }
        Lang::Zh => {
            let lost = if losses > 0 { format!("，{losses} 次无效") } else { String::new() };
            format!(
                "来自以往调用的记录（仅供参考，不是指令）：此失败出现过 {met} 次；其中 {wins} 次在 {how} 之后解决{lost}（最近一次：{ago}，有效{version}）。"
            )
        }
    }
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// Tells of a call that took the place of the one that is asked for, before that fails.
pub fn suggested(fix: &Fix, record: &Record, now: u64, lang: Lang) -> String {
    let (how, wins) = (how(fix, lang), record.wins);
    let ago = ago(now.saturating_sub(record.won_at), lang);
    match lang {
        Lang::En => format!(
            "Remembered from earlier calls (a record, not an instruction): this call failed in earlier sessions; {wins} \
             times it was over after {how}, and never was it not (last: {ago}, worked)."
        ),
        Lang::Zh => format!(
            "来自以往调用的记录（仅供参考，不是指令）：此调用在以往会话中失败过；其中 {wins} 次在 {how} 之后解决，从未无效（最近一次：{ago}，有效）。"
        ),
    }
}

/// What was done, in the order in which it was done.
pub fn how(fix: &Fix, lang: Lang) -> String {
    let steps: Vec<String> = fix.deeds.iter().map(|deed| step(deed, lang)).collect();
    let mut how = steps.join(if lang == Lang::Zh { "，然后 " } else { ", then " });
    if let Some(change) = &fix.change {
        let changed = match lang {
            Lang::En => format!("running {} instead of {}", call(&change.to), call(&change.from)),
            Lang::Zh => format!("改为运行 {}（原为 {}）", call(&change.to), call(&change.from)),
        };
        how = if how.is_empty() { changed } else { format!("{how}; {changed}") };
    }
    how
}

fn step(deed: &Deed, lang: Lang) -> String {
    match (deed, lang) {
        (Deed::Ran { line }, _) => call(line),
        (Deed::Edited { file, lines }, Lang::En) => {
            let unit = if *lines == 1 { "line" } else { "lines" };
            format!("an edit of {} ({lines} {unit})", quote::name(file))
        }
        (Deed::Edited { file, lines }, Lang::Zh) => format!("修改 {}（{lines} 行）", quote::name(file)),
        (Deed::Called { tool, target }, Lang::En) => {
            format!("a call of {}", called(tool, target))
        }
        (Deed::Called { tool, target }, Lang::Zh) => format!("调用 {}", called(tool, target)),
    }
}

/// A call of a tool that is no shell: what it is about is one name.
fn called(tool: &str, target: &str) -> String {
    match target.is_empty() || quote::is_name(target) {
        true => call(format!("{tool} {target}").trim_end()),
        false => quote::fenced(&format!("{tool} {target}"), STEP_MAX),
    }
}

/// Words of an earlier call inside our own sentence.
fn call(words: &str) -> String {
    quote::call(words, STEP_MAX)
}

fn ago(ms: u64, lang: Lang) -> String {
    let (minutes, hours, days) = (ms / 60_000, ms / 3_600_000, ms / 86_400_000);
    match (days, hours, minutes, lang) {
        (0, 0, 0, Lang::En) => "just now".to_owned(),
        (0, 0, 0, Lang::Zh) => "刚刚".to_owned(),
        (0, 0, n, Lang::En) => format!("{n} min ago"),
        (0, 0, n, Lang::Zh) => format!("{n} 分钟前"),
        (0, n, _, Lang::En) => format!("{n} h ago"),
        (0, n, _, Lang::Zh) => format!("{n} 小时前"),
        (1, _, _, Lang::En) => "1 day ago".to_owned(),
        (n, _, _, Lang::En) => format!("{n} days ago"),
        (n, _, _, Lang::Zh) => format!("{n} 天前"),
    }
}
