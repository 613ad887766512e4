//! The lines that are said while attempts are made, and why there is no further one. Keys and tags stay English.

use std::fmt::Write as _;
use std::time::Duration;

use unstuck_judge::Lang;
use unstuck_judge::retry::StopReason;
use unstuck_wire::redact::redact;
use unstuck_wire::report::Report;

use super::pause::Planned;
use super::work::{Hindrance, Tried};
use super::{clock, story};
use crate::moment;

/// The longest name of an action in a line.
const ACTION_MAX: usize = 80;
/// The most that is quoted of a cause: on a terminal it has to fit into one line.
const CAUSE_MAX: usize = 60;

/// One attempt in one line.
pub(crate) fn verify_line(action: &str, tried: &Tried, report: &Report) -> String {
    let mut line = format!("[{}] verify action={} status=", clock::now(), named(action));
    line += &match tried.claims_success() {
        true => "success".to_owned(),
        false => format!("failed error={}", report.aliases.tag),
    };
    let _ = write!(line, " duration={}ms", tried.took.as_millis());
    if let Some(code) = tried.observation.http_status {
        let _ = write!(line, " http_code={code}");
    }
    line + "\n"
}

/// What comes next, before the wait.
pub(super) fn retry_line(report: &Report, planned: &Planned, lang: Lang) -> String {
    let Planned { wait, attempt, of, seen, .. } = planned;
    let (retry, of, cause) = (attempt.saturating_sub(1), of.saturating_sub(1), cause(report, lang));
    let seconds = seconds(*wait);
    let seen = seen.map(|seen| separator(lang).to_owned() + &seen.text(lang)).unwrap_or_default();
    let what = match lang {
        Lang::En => format!("({cause}; retry {retry} of {of} in {seconds} s{seen})"),
        Lang::Zh => format!("（{cause}；第 {retry}/{of} 次重试，{seconds} 秒后{seen}）"),
    };
    format!("[{}] self-correct: will retry {} {what}\n", clock::now(), report.aliases.tag)
}

/// The wait while it lasts.
pub(super) fn live_line(report: &Report, planned: &Planned, left: Duration, lang: Lang) -> String {
    let (retry, of) = (planned.attempt.saturating_sub(1), planned.of.saturating_sub(1));
    let (kind, cause, seconds) = (report.diagnosis.kind, cause(report, lang), seconds(left));
    match lang {
        Lang::En => format!("{kind}: {cause}. Retry {retry} of {of} in {seconds} s"),
        Lang::Zh => format!("{kind}：{cause}。{seconds} 秒后第 {retry}/{of} 次重试"),
    }
}

/// Why there is no further attempt, where the diagnosis does not say it already, and when one could work.
pub(super) fn stopped(end: &story::End, come_back_after: Option<Duration>, lang: Lang) -> Option<String> {
    let (why, seen) = match end {
        story::End::Succeeded | story::End::Unjudged => return None,
        story::End::Stopped { why, seen, .. } => (stop_reason(*why, lang), seen.map(|seen| seen.text(lang))),
        story::End::Hindered(hindrance) => (Some(hindered(*hindrance, lang)), None),
        story::End::GivenUp { .. } => (
            Some(match lang {
                Lang::En => "ended while it waited for the next attempt",
                Lang::Zh => "在等待下一次尝试时被终止",
            }),
            None,
        ),
    };
    let when = come_back_after.map(|wait| {
        let (span, at) =
            (moment::span(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)), clock::after(wait));
        match lang {
            Lang::En => format!("it could work in {span}, at {at}"),
            Lang::Zh => format!("{span} 后（{at}）可能成功"),
        }
    });
    let said: Vec<String> = why.map(str::to_owned).into_iter().chain(seen).chain(when).collect();
    (!said.is_empty()).then(|| said.join(separator(lang)))
}

fn separator(lang: Lang) -> &'static str {
    match lang {
        Lang::En => "; ",
        Lang::Zh => "；",
    }
}

fn stop_reason(why: StopReason, lang: Lang) -> Option<&'static str> {
    Some(match (why, lang) {
        (StopReason::NotRetryable | StopReason::NothingChanged, _) => return None,
        (StopReason::EffectUncertain, Lang::En) => {
            "it may have taken effect already, and is not repeated unless you say that twice does no harm (--idempotent)"
        }
        (StopReason::EffectUncertain, Lang::Zh) => {
            "可能已经生效，除非您说明重复执行无害（--idempotent），否则不会重复"
        }
        (StopReason::AgentWrites | StopReason::ToolWrites, Lang::En) => "what it does must not be done twice",
        (StopReason::AgentWrites | StopReason::ToolWrites, Lang::Zh) => "它所做的事不应做两次",
        (StopReason::TriesUsed, Lang::En) => "all retries were made",
        (StopReason::TriesUsed, Lang::Zh) => "重试次数已用完",
        (StopReason::BreakerOpen, Lang::En) => "too many calls of this session failed lately",
        (StopReason::BreakerOpen, Lang::Zh) => "本会话近期失败的调用过多",
        (StopReason::BudgetEmpty, Lang::En) => "the session's budget for retries is used up",
        (StopReason::BudgetEmpty, Lang::Zh) => "本会话的重试预算已用完",
        (StopReason::HostBudget, Lang::En) => {
            "this host was asked again often enough for now, by all sessions together (retry.host)"
        }
        (StopReason::HostBudget, Lang::Zh) => "所有会话对该主机的重试暂时已达上限（retry.host）",
        (StopReason::PastYield, Lang::En) => "such retries have been in vain",
        (StopReason::PastYield, Lang::Zh) => "此类重试一直无效",
        (StopReason::HintTooLong, Lang::En) => "the other side asks for a longer wait than is slept through",
        (StopReason::HintTooLong, Lang::Zh) => "对方要求的等待时间过长",
        (StopReason::Deadline, Lang::En) => "the next attempt could not begin before the deadline",
        (StopReason::Deadline, Lang::Zh) => "下一次尝试无法在期限之前开始",
    })
}

fn hindered(hindrance: Hindrance, lang: Lang) -> &'static str {
    match (hindrance, lang) {
        (Hindrance::InputUsed, Lang::En) => "it has read its input, which cannot be given to it again",
        (Hindrance::InputUsed, Lang::Zh) => "它已读取输入，无法再次提供",
        (Hindrance::Ended, Lang::En) => "somebody ended it",
        (Hindrance::Ended, Lang::Zh) => "有人终止了它",
        (Hindrance::PassedOn, Lang::En) => "a part of its output has been passed on, and would come twice",
        (Hindrance::PassedOn, Lang::Zh) => "部分输出已经传出，重试会使其重复",
        (Hindrance::OutputLost, Lang::En) => "its output could not be written, and a part of it is lost",
        (Hindrance::OutputLost, Lang::Zh) => "它的输出无法写出，部分内容已丢失",
        (Hindrance::NoSession, Lang::En) => {
            "it may have begun, and there is no session in which it could go on: starting over could do things twice"
        }
        (Hindrance::NoSession, Lang::Zh) => {
            "它可能已经开始，但没有可以继续的会话：从头开始可能会把事情做两遍"
        }
    }
}

/// The cause as its own words show it, or in ours.
fn cause(report: &Report, lang: Lang) -> String {
    let found = report.diagnosis.evidence.as_ref().map(|found| found.text.trim());
    let text = found.filter(|text| !text.is_empty()).unwrap_or(report.diagnosis.kind.title(lang));
    shortened(text, CAUSE_MAX)
}

/// A name that stays one word of the line.
fn named(action: &str) -> String {
    let plain = redact(action).replace(|sign: char| sign.is_control() || sign == '"', " ");
    let short = shortened(&plain.split_whitespace().collect::<Vec<_>>().join(" "), ACTION_MAX);
    match short.contains(' ') || short.is_empty() {
        true => format!("\"{short}\""),
        false => short,
    }
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.trim_end_matches('.').to_owned(),
    }
}

fn seconds(wait: Duration) -> String {
    format!("{:.1}", wait.as_secs_f64())
}
