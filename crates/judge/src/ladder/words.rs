//! What the ladder says, in the words of `rules/ladder-texts.toml`: facts, what is allowed, and the rule behind it.
//!
//! Never an order. Agents are right to distrust results that shout, so a text states what happened and leaves the
//! choice open.

use super::see::OUR_MARK;
use super::standing::Known;
use super::{Decision, Reason, Rung, Standing, Track};
use crate::{Lang, remedy};

include!(concat!(env!("OUT_DIR"), "/ladder-texts.rs"));

/// How many failures the table for a person shows.
const ROWS: usize = 10;
/// How much of an error or a call stands in one cell.
const CELL: usize = 100;

impl Decision {
    /// What is said to the agent; nothing where nothing is to be said.
    pub fn text(&self, lang: Lang) -> Option<String> {
        let reason = self.reason.as_ref().filter(|_| self.rung > Rung::Observe)?;
        let rule = match reason.rule.is_empty() {
            true => format!("ladder.{}", reason.track),
            false => reason.rule.clone(),
        };
        let line = if reason.line.is_empty() { "—" } else { &reason.line };
        let text = template(reason, self.rung, lang)
            .replace("{count}", &reason.count.to_string())
            .replace("{rule}", &rule)
            .replace("{line}", &cell(line));
        Some(match self.rung {
            Rung::Deny | Rung::Halt => format!("{OUR_MARK}: {text}"),
            Rung::Observe | Rung::Note | Rung::Hint | Rung::Insist => text,
        })
    }
}

impl Standing {
    /// What a person needs to decide how it goes on: `Error | Attempt | Resolution`, the latest failures last.
    pub fn table(&self, lang: Lang) -> String {
        let mut known: Vec<&Known> = self.known.iter().filter(|known| known.strikes > 0).collect();
        known.sort_by(|a, b| (a.at, &a.attempt).cmp(&(b.at, &b.attempt)));
        known.dedup_by(|a, b| a.at == b.at);
        let rows = known.iter().rev().take(ROWS).rev().map(|known| row(known, lang));
        let head = text_of("table.head", lang).unwrap_or_default();
        std::iter::once(head.to_owned()).chain(rows).collect::<Vec<_>>().join("\n")
    }
}

fn row(known: &Known, lang: Lang) -> String {
    let times = if known.strikes > 1 { format!(" ×{}", known.strikes) } else { String::new() };
    let error = if known.line.is_empty() { known.kind.title(lang).to_owned() } else { cell(&known.line) };
    // A remedy about something that is not known any more would leave a gap in the sentence.
    let whole = |text: &&'static str| !text.contains("{it}");
    let remedy =
        known.kind.row().advice.iter().filter_map(|key| remedy(key, lang)).find(whole).unwrap_or("—");
    format!("{error} | {}{times} | {remedy}", cell(&known.attempt))
}

/// The text for a track and a rung: its own, that of the track it resembles, or the common one. What may pass by itself is
/// explained in other words than what stays.
fn template(reason: &Reason, rung: Rung, lang: Lang) -> &'static str {
    if rung == Rung::Note && reason.kind.row().category == "temporary" {
        return text_of("passing.note", lang).unwrap_or_default();
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

/// One line of quotation: text from outside must not become a speech, nor break the table.
fn cell(text: &str) -> String {
    let clean = text.chars().map(|sign| if sign.is_control() || sign == '|' { ' ' } else { sign });
    let mut cell: String = clean.take(CELL).collect();
    if text.chars().nth(CELL).is_some() {
        cell.push('…');
    }
    cell.trim().to_owned()
}
