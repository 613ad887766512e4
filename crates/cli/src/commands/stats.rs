//! `unstuck stats`: what failed, what became of it, what repeats cost and what refusals saved.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use unstuck_judge::{Kind, Lang};
use unstuck_store::{ATTEMPTS, GroupBy, LessonEffect, Stats, StatsKey, StatsScope};
use unstuck_wire::time;

use crate::cellar::{self, Cellar};
use crate::columns::{self, Side};
use crate::exit::{CommandError, ExitStatus};
use crate::find_session::find_session;
use crate::moment;
use crate::plain;
use crate::since::{self, Moment};
use crate::ui::Ui;

/// Show errors by type, recovery, what each retry was worth, and time wasted and saved
///
/// A repeat is a failure of the same intent with the same cause that the session had met and not got over. Every column is
/// explained in docs/timeline.md.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck stats                        everything that is recorded
  unstuck stats --since 7d --by tool   the last week, tool by tool
  unstuck stats --since 2026-11-01     from that day on (UTC)
  unstuck stats --by server            MCP server by MCP server; other calls are left out
  unstuck stats --by day --json        one object per day")]
pub(crate) struct StatsArgs {
    /// One row for each of these
    #[arg(long, value_parser = ["kind", "tool", "agent", "day", "session", "server"])]
    by: Option<String>,
    /// Only calls asked for since this moment: 12h, 7d, 2026-11-15, 2026-11-15T11:53:02Z
    #[arg(long, value_name = "SPAN|DATE", value_parser = since::parse_moment)]
    since: Option<Moment>,
    /// Only this session: its name, or enough of its beginning
    #[arg(long, value_name = "S")]
    session: Option<String>,
    /// JSON: one object, or one per group
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &StatsArgs) -> Result<ExitStatus, CommandError> {
    let store = cellar.to_read()?;
    let named = |name: &str| find_session(&store, &cellar.cleaner(), name);
    let scope = StatsScope {
        session: args.session.as_deref().map(named).transpose()?.map(|it| it.id),
        since: args.since.map(|moment| moment.before(cellar::now())),
    };
    let by: Option<GroupBy> = args.by.as_deref().and_then(|word| word.parse().ok());
    let groups = store.stats(&scope, by)?;
    let effect = store.lesson_effect(&scope)?;
    let lang = ui.lang();
    if args.json {
        for (key, stats) in &groups {
            ui.json(&WireStats::new(by, key, stats, &effect))?;
        }
        return Ok(ExitStatus::Success);
    }
    match (by, &groups[..]) {
        (Some(by), [_, ..]) => ui.say(&table(by, &groups, lang))?,
        (None, [(_, stats), ..]) if stats.calls > 0 => {
            ui.say(&(report(stats, lang) + &remembered(&effect, lang)))?
        }
        (Some(_) | None, _) => ui.remark(match lang {
            Lang::En => "no calls in this scope\n",
            Lang::Zh => "此范围内没有调用\n",
        })?,
    }
    Ok(ExitStatus::Success)
}

/// A share in percent; nothing where there is nothing to share.
fn percent(part: u64, whole: u64) -> String {
    match whole {
        0 => "-".to_owned(),
        whole => format!("{:.0} %", part as f64 * 100.0 / whole as f64),
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (part as f64 / whole as f64 * 10_000.0).round() / 10_000.0)
}

/// How long some calls took together; nothing where there are some and none of them has a time.
fn timed(calls: u64, without_time: u64, took_ms: u64) -> Option<u64> {
    (calls == 0 || without_time < calls).then_some(took_ms)
}

fn wasted_ms(stats: &Stats) -> Option<u64> {
    timed(stats.repeats, stats.repeats_without_time, stats.repeats_ms)
}

fn let_through_ms(stats: &Stats) -> Option<u64> {
    timed(stats.let_through_failed, stats.let_through_without_time, stats.let_through_ms)
}

/// How many calls a time leaves out, behind that time; where it is unknown, all are.
fn left_out(took_ms: Option<u64>, without_time: u64, lang: Lang) -> String {
    match (took_ms, without_time, lang) {
        (None, _, _) | (Some(_), 0, _) => String::new(),
        (Some(_), calls, Lang::En) => format!(", without a time: {calls}"),
        (Some(_), calls, Lang::Zh) => format!("，其中没有用时：{calls} 次"),
    }
}

/// The middle time to a recovery. Nothing ever takes no time at all: such a time is of calls that came without one.
fn recovery_ms(stats: &Stats) -> Option<u64> {
    stats.recovery_ms.filter(|took| *took > 0)
}

/// What refusals saved; nothing where there are some and none of them can be estimated.
fn saved_ms(stats: &Stats) -> Option<u64> {
    (stats.refused == 0 || stats.refused_without_estimate < stats.refused).then_some(stats.saved_ms)
}

fn known(took_ms: Option<u64>, lang: Lang) -> String {
    match (took_ms, lang) {
        (Some(took), _) => moment::span(took),
        (None, Lang::En) => "unknown".to_owned(),
        (None, Lang::Zh) => "未知".to_owned(),
    }
}

fn name(key: &StatsKey) -> String {
    match key {
        StatsKey::All => String::new(),
        StatsKey::Day(day) => time::iso_day(*day),
        StatsKey::Name(name) => plain::short(name, 40),
    }
}

/// One row for each group.
fn table(by: GroupBy, groups: &[(StatsKey, Stats)], lang: Lang) -> String {
    let first = match (by, lang) {
        (by, Lang::En) => by.word(),
        (GroupBy::Kind, Lang::Zh) => "类别",
        (GroupBy::Tool, Lang::Zh) => "工具",
        (GroupBy::Agent, Lang::Zh) => "代理",
        (GroupBy::Day, Lang::Zh) => "日期",
        (GroupBy::Session, Lang::Zh) => "会话",
        (GroupBy::Server, Lang::Zh) => "服务器",
    };
    let rest = match lang {
        Lang::En => {
            ["calls", "failed", "share", "recovered", "median", "repeats", "wasted", "refused", "saved"]
        }
        Lang::Zh => ["调用", "失败", "占比", "恢复", "中位用时", "重复失败", "浪费", "拒绝", "节省"],
    };
    let head = std::iter::once(first).chain(rest).map(str::to_owned).collect();
    let row = |(key, stats): &(StatsKey, Stats)| {
        vec![
            name(key),
            stats.calls.to_string(),
            stats.failed.to_string(),
            percent(stats.failed, stats.calls),
            percent(stats.recovered, stats.failed),
            match stats.recovered {
                0 => "-".to_owned(),
                _ => known(recovery_ms(stats), lang),
            },
            stats.repeats.to_string(),
            known(wasted_ms(stats), lang),
            stats.refused.to_string(),
            known(saved_ms(stats), lang),
        ]
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(groups.iter().map(row)).collect();
    let mut sides = [Side::Right; 10];
    sides[0] = Side::Left;
    columns::table(&sides, &rows)
}

/// The whole report about all calls of the scope.
fn report(stats: &Stats, lang: Lang) -> String {
    let mut text = String::new();
    let Stats { calls, completed, failed, denied, sealed, .. } = stats;
    let failed_share = percent(*failed, *calls);
    let _ = match lang {
        Lang::En => writeln!(
            text,
            "calls: {calls}, went well: {completed}, failed: {failed} ({failed_share}), denied: {denied}, sealed: {sealed}"
        ),
        Lang::Zh => writeln!(
            text,
            "调用 {calls} 次：成功 {completed}，失败 {failed}（{failed_share}），被拒 {denied}，封存 {sealed}"
        ),
    };
    let say = |en: &'static str, zh: &'static str| match lang {
        Lang::En => en,
        Lang::Zh => zh,
    };
    let check_failed = stats.check_failed;
    if check_failed > 0 {
        let share = percent(check_failed, *calls);
        let _ = match lang {
            Lang::En => writeln!(text, "claimed success, check failed: {check_failed} ({share})"),
            Lang::Zh => writeln!(text, "声称成功但检查未通过：{check_failed}（{share}）"),
        };
    }
    if *failed > 0 {
        let _ = writeln!(text, "\n{}", say("Failures by errorType", "按 errorType 统计的失败"));
        for (word, count) in by_count(&stats.error_types) {
            let _ = writeln!(text, "  {count:>7}  {}", plain::line(word));
        }
        let _ = writeln!(text, "\n{}", say("Failures by kind", "按类别统计的失败"));
        for (word, count) in by_count(&stats.kinds) {
            let title = word.parse::<Kind>().map(|kind| kind.title(lang)).unwrap_or_default();
            let _ = writeln!(text, "  {count:>7}  {:<18} {title}", plain::line(word));
        }
        text.push_str(&recovery(stats, lang));
    }
    let _ = writeln!(
        text,
        "\n{}",
        say("What each attempt at the same call was worth", "同一调用第 n 次尝试的成功率")
    );
    text.push_str(&yields(stats, lang));
    text.push_str(&costs(stats, lang));
    text
}

fn by_count(counts: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let mut counts: Vec<(&str, u64)> = counts.iter().map(|(word, count)| (&**word, *count)).collect();
    counts.sort_by_key(|(word, count)| (std::cmp::Reverse(*count), *word));
    counts
}

fn recovery(stats: &Stats, lang: Lang) -> String {
    let (recovered, failed) = (stats.recovered, stats.failed);
    let rate = percent(recovered, failed);
    let median = recovery_ms(stats).map(moment::span);
    match (lang, median) {
        (Lang::En, Some(median)) => {
            format!("\nRecovered: {recovered} of {failed} ({rate}), half of them within {median}\n")
        }
        (Lang::En, None) => format!("\nRecovered: {recovered} of {failed} ({rate})\n"),
        (Lang::Zh, Some(median)) => {
            format!("\n已恢复：{failed} 次中的 {recovered} 次（{rate}），其中一半在 {median} 之内\n")
        }
        (Lang::Zh, None) => format!("\n已恢复：{failed} 次中的 {recovered} 次（{rate}）\n"),
    }
}

/// What stands for the place of an attempt; the last place holds all further ones.
fn ordinal(index: usize) -> String {
    match index + 1 {
        ATTEMPTS => format!("{ATTEMPTS}+"),
        number => number.to_string(),
    }
}

fn yields(stats: &Stats, lang: Lang) -> String {
    let head = match lang {
        Lang::En => ["  attempt", "tries", "went well", "rate"],
        Lang::Zh => ["  第几次", "尝试", "成功", "成功率"],
    };
    let rows = stats.attempts.iter().enumerate().map(|(index, attempt)| {
        let rate = percent(attempt.wins, attempt.tries);
        vec![ordinal(index), attempt.tries.to_string(), attempt.wins.to_string(), rate]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head.map(str::to_owned).to_vec()).chain(rows).collect();
    columns::table(&[Side::Right; 4], &rows)
}

fn costs(stats: &Stats, lang: Lang) -> String {
    let (repeats, wasted) = (stats.repeats, known(wasted_ms(stats), lang));
    let repeats_left_out = left_out(wasted_ms(stats), stats.repeats_without_time, lang);
    let (refused, saved) = (stats.refused, known(saved_ms(stats), lang));
    let about = match (saved_ms(stats), lang) {
        (Some(_), Lang::En) => "about ",
        (Some(_), Lang::Zh) => "约 ",
        (None, _) => "",
    };
    let blind = stats.refused_without_estimate;
    let wrong = stats.false_alarms;
    let (through, through_failed) = (stats.let_through, stats.let_through_failed);
    let through_took = known(let_through_ms(stats), lang);
    let through_left_out = left_out(let_through_ms(stats), stats.let_through_without_time, lang);
    let mut text = match lang {
        Lang::En => format!(
            "\nWasted: {wasted} (failures that the session had met and not got over: {repeats}{repeats_left_out})\n\
             Saved: {about}{saved} (calls refused before they ran: {refused}, without an estimate: {blind}, false alarms: {wrong})\n"
        ),
        Lang::Zh => format!(
            "\n浪费：{wasted}（本会话中已出现过且尚未解决的失败：{repeats} 次{repeats_left_out}）\n\
             节省：{about}{saved}（运行前被拒绝的调用：{refused} 次，其中无法估计：{blind} 次，误报：{wrong} 次）\n"
        ),
    };
    if through > 0 {
        text.push_str(&match lang {
            Lang::En => format!(
                "Could have been saved: {through_took} (calls that ran although they would have been refused: {through}, failed: {through_failed}{through_left_out})\n"
            ),
            Lang::Zh => format!(
                "本可节省：{through_took}（本应被拒绝却仍然运行的调用：{through} 次，其中失败：{through_failed} 次{through_left_out}）\n"
            ),
        });
    }
    text
}

/// What became of lessons that were shown; nothing where none was.
fn remembered(effect: &LessonEffect, lang: Lang) -> String {
    let LessonEffect { shown, followed, worked } = effect;
    let rate = percent(*worked, *followed);
    match (shown, lang) {
        (0, _) => String::new(),
        (_, Lang::En) => {
            format!("Remembered: shown {shown}, followed {followed}, worked {worked} ({rate})\n")
        }
        (_, Lang::Zh) => format!("经验：显示 {shown} 次，照做 {followed} 次，有效 {worked} 次（{rate}）\n"),
    }
}

/// Counts exactly as they are printed.
#[derive(Serialize)]
struct WireStats<'s> {
    by: Option<&'static str>,
    key: Option<String>,
    calls: u64,
    completed: u64,
    failed: u64,
    denied: u64,
    sealed: u64,
    failure_rate: Option<f64>,
    check_failed: u64,
    #[serde(rename = "errorTypes")]
    error_types: &'s BTreeMap<String, u64>,
    kinds: &'s BTreeMap<String, u64>,
    recovered: u64,
    recovery_rate: Option<f64>,
    recovery_median_ms: Option<u64>,
    attempts: Vec<WireAttempts>,
    repeats: u64,
    repeats_ms: Option<u64>,
    repeats_without_time: u64,
    refused: u64,
    saved_ms: Option<u64>,
    refused_without_estimate: u64,
    false_alarms: u64,
    let_through: u64,
    let_through_failed: u64,
    let_through_ms: Option<u64>,
    let_through_without_time: u64,
    lessons: Option<WireLessons>,
}

/// What became of lessons that were shown.
#[derive(Serialize)]
struct WireLessons {
    shown: u64,
    followed: u64,
    worked: u64,
    followed_rate: Option<f64>,
    worked_rate: Option<f64>,
}

#[derive(Serialize)]
struct WireAttempts {
    attempt: String,
    tries: u64,
    wins: u64,
    rate: Option<f64>,
}

impl<'s> WireStats<'s> {
    fn new(by: Option<GroupBy>, key: &StatsKey, stats: &'s Stats, effect: &LessonEffect) -> WireStats<'s> {
        let attempts = stats.attempts.iter().enumerate().map(|(index, attempt)| WireAttempts {
            attempt: ordinal(index),
            tries: attempt.tries,
            wins: attempt.wins,
            rate: share(attempt.wins, attempt.tries),
        });
        WireStats {
            by: by.map(GroupBy::word),
            key: match key {
                StatsKey::All => None,
                StatsKey::Day(day) => Some(time::iso_day(*day)),
                StatsKey::Name(name) => Some(name.clone()),
            },
            calls: stats.calls,
            completed: stats.completed,
            failed: stats.failed,
            denied: stats.denied,
            sealed: stats.sealed,
            failure_rate: share(stats.failed, stats.calls),
            check_failed: stats.check_failed,
            error_types: &stats.error_types,
            kinds: &stats.kinds,
            recovered: stats.recovered,
            recovery_rate: share(stats.recovered, stats.failed),
            recovery_median_ms: recovery_ms(stats),
            attempts: attempts.collect(),
            repeats: stats.repeats,
            repeats_ms: wasted_ms(stats),
            repeats_without_time: stats.repeats_without_time,
            refused: stats.refused,
            saved_ms: saved_ms(stats),
            refused_without_estimate: stats.refused_without_estimate,
            false_alarms: stats.false_alarms,
            let_through: stats.let_through,
            let_through_failed: stats.let_through_failed,
            let_through_ms: let_through_ms(stats),
            let_through_without_time: stats.let_through_without_time,
            // They are counted over the whole scope, not by group.
            lessons: by.is_none().then(|| WireLessons {
                shown: effect.shown,
                followed: effect.followed,
                worked: effect.worked,
                followed_rate: share(effect.followed, effect.shown),
                worked_rate: share(effect.worked, effect.followed),
            }),
        }
    }
}
