//! What the ladder says, in the words of `rules/ladder-texts.toml`: facts, what is allowed, and the rule behind it.
//!
//! Never an order. Agents are right to distrust results that shout, so a text states what happened and leaves the
//! choice open.

use std::borrow::Cow;
use std::time::Duration;

use super::see::OUR_MARK;
use super::standing::Known;
use super::{Decision, Reason, Rung, Standing, Track};
use crate::{Condition, Kind, Lang, quote, remedy};

include!(concat!(env!("OUT_DIR"), "/ladder-texts.rs"));

/// How many failures the table for a person shows.
const ROWS: usize = 10;
/// How many attempts a refusal names.
const ATTEMPTS: usize = 3;
/// How many earlier errors of a call are named.
const ERRORS: usize = 2;
/// How many failures are told again after a conversation was shortened.
const REMINDED: usize = 5;
/// A failure that lies more calls back than this is not what a person is asked about.
const CURRENT: u32 = 30;

impl Decision {
    /// What is said to the agent; nothing where nothing is to be said.
    pub fn text(&self, lang: Lang) -> Option<String> {
        let reason = self.reason.as_ref().filter(|_| self.rung > Rung::Observe)?;
        if self.rung >= Rung::Deny {
            return Some(refusal(reason, lang));
        }
        let strike = strike(reason, self.rung).and_then(|key| text_of(key, lang));
        let template = with_line(template(reason, self.rung, lang), &reason.line);
        Some(about(&joined([Some(&*template), strike]), reason, lang))
    }
}

/// Why a call is refused: the cause, the line that shows it, and what was looked at.
pub fn refusal(reason: &Reason, lang: Lang) -> String {
    let key = if reason.track.asks() { "refused.rerun" } else { "refused" };
    let template = with_line(text_of(key, lang).unwrap_or_default(), &reason.line);
    let text = quote::filled(
        &template,
        &[
            ("{title}", reason.kind.title(lang)),
            ("{checked}", &checked(&reason.condition, lang)),
            ("{count}", &reason.count.to_string()),
            ("{line}", &quote::fenced(&reason.line, quote::LINE)),
        ],
    );
    format!("{OUR_MARK}: {text}")
}

/// What was looked at, and still is as it was.
fn checked(condition: &Condition, lang: Lang) -> String {
    let (key, it) = match condition {
        Condition::Unseen => return String::new(),
        Condition::NoProgram(name) => ("checked.program", quote::name(name)),
        Condition::NoPath(path) => ("checked.path", quote::name(path)),
        Condition::PathTaken(path) => ("checked.taken", quote::name(path)),
        Condition::PortClosed(port) => ("checked.closed", port.to_string()),
        Condition::PortTaken(port) => ("checked.port", port.to_string()),
        Condition::SameFiles(_) => ("checked.files", String::new()),
        Condition::SamePackages(_) => ("checked.packages", String::new()),
        Condition::SameNamed => ("checked.named", String::new()),
    };
    text_of(key, lang).unwrap_or_default().replace("{it}", &it)
}

/// What a person is asked when a refused call is sent again and again.
pub fn halted(label: &str, lang: Lang) -> String {
    text_of("halted", lang).unwrap_or_default().replace("{call}", &quote::call(label, quote::LINE))
}

impl Decision {
    /// Is it time for a person to know what was tried? So it is with every third failure of one cause, but not where one call
    /// is sent again until its cause has passed.
    pub fn is_for_a_person(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| strike(reason, self.rung) == Some("strike.3"))
    }
}

impl Reason {
    /// The rule behind it: the one that named the cause, or what was counted.
    pub fn charge(&self) -> String {
        match self.rule.is_empty() {
            true => format!("ladder.{}", self.track),
            false => self.rule.clone(),
        }
    }

    /// What usually helps against the cause. That waiting does is no way out of a refusal.
    pub fn remedy(&self, lang: Lang) -> Option<String> {
        if may_pass(self.kind) {
            return None;
        }
        Some(text_of("known.remedy", lang)?.replace("{remedy}", remedy_for(self.kind, lang)?))
    }
}

/// A call that needs what an earlier session was seen to miss; `is_missing` where a look just now shows that it still is.
pub fn foreseen(reason: &Reason, is_missing: bool, lang: Lang) -> String {
    let key = if is_missing { "foreseen.missing" } else { "foreseen.hint" };
    about(&with_line(text_of(key, lang).unwrap_or_default(), &reason.line), reason, lang)
}

/// A run that is stopped because a call that cannot be refused goes on failing.
pub fn stopped_unasked(reason: &Reason, lang: Lang) -> String {
    about(&with_line(text_of("unasked.halt", lang).unwrap_or_default(), &reason.line), reason, lang)
}

/// The errors that the same call had before this one, the latest first; nothing where there were none.
pub fn earlier_errors(lines: &[String], lang: Lang) -> Option<String> {
    let lines: Vec<String> = lines.iter().take(ERRORS).map(|line| quote::fenced(line, quote::LINE)).collect();
    let text = text_of("errors.earlier", lang).filter(|_| !lines.is_empty())?;
    Some(text.replace("{lines}", &lines.join(", ")))
}

/// How an agent can wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WayToWait {
    /// In a task of its own: a long `sleep` is not allowed.
    Background,
    /// With `sleep` in front of the command.
    Sleep,
    /// Nobody knows.
    Unknown,
}

/// When the same call may work again.
pub fn possible_again(wait: Duration, lang: Lang) -> String {
    text_of("early.told", lang).unwrap_or_default().replace("{wait}", &span(wait, lang))
}

/// How to wait until then; nothing where nobody knows.
pub fn way_to_wait(way: WayToWait, wait: Duration, lang: Lang) -> Option<String> {
    let key = match way {
        WayToWait::Background => "early.background",
        WayToWait::Sleep => "early.sleep",
        WayToWait::Unknown => return None,
    };
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    Some(text_of(key, lang)?.replace("{seconds}", &seconds.to_string()))
}

/// How a person lifts a refusal.
pub fn way_out(key: &str, lang: Lang) -> String {
    text_of("way.out", lang).unwrap_or_default().replace("{key}", key)
}

/// Sentences in a row.
pub fn joined<'a>(sentences: impl IntoIterator<Item = Option<&'a str>>) -> String {
    let mut text = String::new();
    for sentence in sentences.into_iter().flatten() {
        // A full stop of Chinese has its own space.
        if !text.is_empty() && !text.ends_with(['。', '：', '\n']) {
            text.push(' ');
        }
        text += sentence;
    }
    text
}

/// A wait in words that are easily read; what is left of a second counts as a whole one.
fn span(wait: Duration, lang: Lang) -> String {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    match (seconds, lang) {
        (..=120, Lang::En) => format!("{seconds} s"),
        (..=120, Lang::Zh) => format!("{seconds} 秒"),
        (..=7200, Lang::En) => format!("{} min", seconds.div_ceil(60)),
        (..=7200, Lang::Zh) => format!("{} 分钟", seconds.div_ceil(60)),
        (_, Lang::En) => format!("{} h", seconds.div_ceil(3600)),
        (_, Lang::Zh) => format!("{} 小时", seconds.div_ceil(3600)),
    }
}

/// What a number of failures says about the next attempt; answers that stay the same are no attempts.
fn strike(reason: &Reason, rung: Rung) -> Option<&'static str> {
    // Time may end what stops one call: there is no other method to look for.
    let is_one_call = matches!(reason.track, Track::Repeat | Track::Variant);
    let is_attempt = is_attempt(reason.track) && !(is_one_call && may_pass(reason.kind));
    match (rung, reason.count % 3, reason.count) {
        (Rung::Observe | Rung::Note | Rung::Halt, _, _) | (_, _, 0) => None,
        (_, 2, _) if is_attempt => Some("strike.2"),
        (_, 0, _) if is_attempt => Some("strike.3"),
        _ => None,
    }
}

/// Does a track count attempts, and not answers that stay the same?
fn is_attempt(track: Track) -> bool {
    match track {
        Track::Repeat | Track::Variant | Track::Root | Track::Spread | Track::Approach => true,
        // Their own texts say what is left to try.
        Track::Opaque
        | Track::Look
        | Track::Act
        | Track::Poll
        | Track::Rerun
        | Track::Lap
        | Track::Cycle
        | Track::Silence => false,
    }
}

/// Does it pass by itself? What can be looked at here, as a port of this machine, does not.
fn passes(reason: &Reason) -> bool {
    reason.passes && reason.condition == Condition::Unseen
}

/// Is it a cause that may pass by itself?
fn may_pass(kind: Kind) -> bool {
    kind.row().category == "temporary"
}

impl Standing {
    /// What a person needs to decide how it goes on: error, attempt and resolution of the latest failures, the last of them last.
    pub fn table(&self, lang: Lang) -> String {
        let newest = self.known.iter().map(|known| known.at).max().unwrap_or_default();
        let is_current = |known: &Known| newest.saturating_sub(known.at) <= CURRENT;
        self.latest(ROWS, is_current).map(|known| row(known, lang)).collect::<Vec<_>>().join("\n\n")
    }

    /// The same for a person about one cause that stopped attempt after attempt.
    pub fn table_of(&self, reason: &Reason, lang: Lang) -> String {
        // Several programs have several rules for one cause.
        let is_shared = matches!(reason.track, Track::Spread | Track::Root);
        let is_same = |known: &Known| known.kind == reason.kind && (is_shared || known.rule == reason.rule);
        let rows = self.latest(ROWS, is_same).map(|known| row(known, lang));
        let head =
            text_of("table.attempts", lang).unwrap_or_default().replace("{count}", &reason.count.to_string());
        std::iter::once(head).chain(rows).collect::<Vec<_>>().join("\n\n")
    }

    /// The last attempts that failed with the cause of `reason`, in one sentence.
    pub fn tried(&self, reason: &Reason, lang: Lang) -> Option<String> {
        let attempts: Vec<String> = self
            .latest(ATTEMPTS, |known| known.kind == reason.kind && known.line == reason.line)
            .map(|known| format!("{}{}", quote::call(&known.attempt, quote::LINE), times(known)))
            .collect();
        let text = text_of("tried", lang).filter(|_| !attempts.is_empty())?;
        Some(text.replace("{tried}", &attempts.join(", ")))
    }

    /// What an agent has to know again after its memory was cut short: what it was told must not be tried again.
    pub fn reminder(&self, lang: Lang) -> Option<String> {
        let rows: Vec<String> = self
            .latest(REMINDED, |known| known.said.told >= Rung::Hint || known.said.denials > 0)
            .map(|known| {
                let line = quote::marked(&known.line, quote::LINE, lang);
                format!(
                    "- {}{}: {line} ({})",
                    quote::call(&known.attempt, quote::LINE),
                    times(known),
                    known.kind.title(lang)
                )
            })
            .collect();
        let head = text_of("again.head", lang).filter(|_| !rows.is_empty())?;
        Some(format!("{head}\n{}", rows.join("\n")))
    }

    /// The latest failures of those that are meant, one for each call, the last of them last.
    fn latest(&self, number: usize, is_meant: impl Fn(&Known) -> bool) -> impl Iterator<Item = &Known> {
        let mut known: Vec<&Known> = self.known.iter().filter(|known| known.strikes > 0).collect();
        known.sort_by(|a, b| (a.at, a.strikes, &a.attempt).cmp(&(b.at, b.strikes, &b.attempt)));
        // One failure is known under several keys: that of the call itself has the fewest strikes. Only those are its own, and
        // what was said of any key was said of it.
        let calls =
            known.chunk_by(|a, b| a.at == b.at).filter(|keys| keys.iter().any(|known| is_meant(known)));
        let meant: Vec<&Known> = calls.filter_map(|keys| keys.first().copied()).collect();
        let first = meant.len().saturating_sub(number);
        meant.into_iter().skip(first)
    }
}

fn times(known: &Known) -> String {
    if known.strikes > 1 { format!(" ×{}", known.strikes) } else { String::new() }
}

fn row(known: &Known, lang: Lang) -> String {
    let error = if known.line.is_empty() {
        known.kind.title(lang).to_owned()
    } else {
        quote::fenced(&known.line, quote::LINE)
    };
    let remedy = remedy_for(known.kind, lang).unwrap_or("—");
    block(&error, &format!("{}{}", quote::call(&known.attempt, quote::LINE), times(known)), remedy, lang)
}

/// The table for a person about a look that was answered alike so often.
pub fn table_of_looks(label: &str, count: u32, lang: Lang) -> String {
    let error = text_of("table.same-answer", lang).unwrap_or_default().replace("{count}", &count.to_string());
    block(
        &error,
        &quote::call(label, quote::LINE),
        text_of("table.other-question", lang).unwrap_or_default(),
        lang,
    )
}

/// One row of a table, a line for each of its columns: no terminal is too narrow for it.
fn block(error: &str, attempt: &str, resolution: &str, lang: Lang) -> String {
    let rows = [("table.error", error), ("table.attempt", attempt), ("table.resolution", resolution)];
    rows.map(|(key, it)| text_of(key, lang).unwrap_or_default().replace("{it}", it)).join("\n")
}

/// The first remedy for a cause that can be told without knowing more than the cause.
fn remedy_for(kind: Kind, lang: Lang) -> Option<&'static str> {
    let whole = |text: &&'static str| !text.contains("{it}");
    kind.row().advice.iter().filter_map(|key| remedy(key, lang)).find(whole)
}

/// Is the output of such a failure all there is to say about it? A test or a build is run again after each change, and
/// whoever does so need not be told twice.
pub fn explains_itself(kind: Kind) -> bool {
    matches!(kind, Kind::TestFailure | Kind::CheckFailed | Kind::CodeError)
}

/// The text for a track and a rung: its own, that of the track it resembles, or the common one. What may pass by itself is
/// explained in other words than what stays.
fn template(reason: &Reason, rung: Rung, lang: Lang) -> &'static str {
    let own = match rung {
        Rung::Note if passes(reason) => Some("passing.note"),
        Rung::Hint | Rung::Insist if passes(reason) && is_attempt(reason.track) => Some("passing.hint"),
        Rung::Note if explains_itself(reason.kind) => Some("plain.note"),
        Rung::Observe | Rung::Note | Rung::Hint | Rung::Insist | Rung::Deny | Rung::Halt => None,
    };
    if let Some(text) = own.and_then(|key| text_of(key, lang)) {
        return text;
    }
    let track = reason.track;
    let resembles = match track {
        Track::Poll | Track::Act => Track::Look,
        Track::Rerun => Track::Cycle,
        other => other,
    };
    let keys = [format!("{track}.{rung}"), format!("{resembles}.{rung}"), format!("any.{rung}")];
    keys.iter().find_map(|key| text_of(key, lang)).unwrap_or_default()
}

fn text_of(key: &str, lang: Lang) -> Option<&'static str> {
    let at = TEXTS.binary_search_by(|(other, _)| (*other).cmp(key)).ok()?;
    Some(TEXTS[at].1[lang as usize])
}

/// Fills in how often it happened, by which rule, and the line that shows it.
fn about(template: &str, reason: &Reason, lang: Lang) -> String {
    quote::filled(
        template,
        &[
            ("{count}", &reason.count.to_string()),
            ("{rule}", &reason.charge()),
            ("{line}", &quote::marked(&reason.line, quote::LINE, lang)),
        ],
    )
}

/// A text without the place for a line of output, where there is none.
fn with_line<'t>(template: &'t str, line: &str) -> Cow<'t, str> {
    match line.is_empty() {
        true => Cow::Owned(template.replace(": {line}", "").replace("：{line}", "")),
        false => Cow::Borrowed(template),
    }
}
