//! Writes every attempt into the store as it goes on, and brings back what the policy says to it. A store that cannot be
//! used keeps nothing from running: what is written waits in the spool, and the policy answers without its memory.

use std::env;

use unstuck_exec::alive;
use unstuck_judge::ladder::Round;
use unstuck_judge::{Call, Lang, Rules};
use unstuck_store::{Entry, Hears, Kept, NAME_MAX, Retry, Retrying, Series, Who};
use unstuck_wire::clean::{Clean, Cleaner};
use unstuck_wire::report::Report;
use unstuck_wire::time;

use super::{Terms, Tried};
use crate::cellar::{self, Cellar};
use crate::desk::{self, Desk, Ours};
use crate::{provenance, whereabouts};

/// The longest folder name that is kept.
const FOLDER_MAX: usize = 1024;

/// The record of one piece of work.
pub(crate) struct Logbook<'a> {
    desk: Desk<'a>,
    terms: &'a Terms,
    /// Who works, but for the time.
    who: Who,
    /// The working folder as it is; what is kept of it is cleaned.
    folder: String,
    /// A number that no other piece of work has.
    work: u64,
}

/// What came of writing an attempt down.
pub(crate) struct Written {
    pub(crate) report: Report,
    /// What the policy says; nothing where it did not fail.
    pub(crate) retry: Option<Retry>,
    pub(crate) kept: Kept,
    /// What helped against such a failure before.
    pub(crate) remembered: Option<String>,
}

impl<'a> Logbook<'a> {
    /// A new one; what is said in it about failures is in the language of the person who waits.
    pub(crate) fn new(cellar: &'a Cellar, cleaner: &'a Cleaner, terms: &'a Terms, lang: Lang) -> Logbook<'a> {
        let folder =
            env::current_dir().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
        let who = Who {
            host: Clean::from(terms.door),
            hook: Clean::default(),
            session: cleaner.name(&terms.session, NAME_MAX),
            agent: cleaner.name(&terms.agent, NAME_MAX),
            cwd: cleaner.line(&folder, FOLDER_MAX),
            place: whereabouts::place(&folder, cellar.home(), cleaner),
            owner: cleaner.line(&alive::owner(std::process::id()), 64),
            source: provenance::of_work(terms.door),
            hears: Hears::Memory,
            round: Round::Unsaid,
            at: 0,
        };
        let desk = Desk { lang, ..cellar.desk_for_own_work(cleaner) };
        Logbook { desk, terms, who, folder, work: cellar::random() }
    }

    /// An attempt begins.
    pub(crate) fn asked(&mut self, number: u32, call: &Call, at: u64) {
        let asked = self.desk.asked(self.who_at(at), &self.key(number), call, false);
        let _kept_or_spooled = self.desk.before(asked, at, None);
    }

    /// It ended. `ours` is there where we would send it again by ourselves: how far its attempts are, and whether the next
    /// one gets more time.
    pub(crate) fn ended(
        &mut self,
        rules: &Rules,
        number: u32,
        tried: &Tried,
        ours: Option<(Series, bool)>,
        at: u64,
    ) -> Written {
        let key = self.key(number);
        let (series, gets_more_time) = ours.unwrap_or_default();
        let result = desk::Result {
            key: &key,
            observation: &tried.observation,
            folder: &self.folder,
            said_ok: tried.denied_by_check().then_some(false),
            took_ms: Some(time::span_ms(tried.took)),
            user_spoke: false,
            attended: false,
            can_retry: ours.map(|_| cellar::roll()),
            from_hook: None,
            ours: Some(Ours {
                diagnosis: &tried.diagnosis,
                idempotent: self.terms.idempotent,
                tries_guesses: self.terms.tries_guesses,
                gets_more_time,
                is_hindered: tried.hindrance.is_some(),
                series,
            }),
        };
        let who = self.who_at(at);
        let (answer, mut report) = self.desk.after(rules, who, &result, at, None);
        report.aliases.tag = tried.tag(report.aliases.tag);
        if let (Some(Retry::Again { wait, attempt, of, .. }), Kept::Spooled { .. } | Kept::Lost { .. }) =
            (&answer.said.retry, &answer.kept)
        {
            // The store would have announced it itself.
            let retrying = Retrying {
                who: self.who_at(at),
                key: self.desk.cleaner.name(&key, NAME_MAX),
                attempt: *attempt,
                of: Some(*of),
                wait_ms: time::span_ms(*wait),
                because: report.diagnosis.kind,
            };
            let _kept_or_spooled = self.desk.note(&Entry::Retrying(retrying), at);
        }
        Written { report, retry: answer.said.retry, kept: answer.kept, remembered: answer.said.remembered }
    }

    /// The name of an attempt in the record.
    pub(crate) fn key(&self, number: u32) -> String {
        format!("{}-{:016x}-{number}", self.terms.door, self.work)
    }

    fn who_at(&self, at: u64) -> Who {
        Who { at, ..self.who.clone() }
    }
}

/// The name of the first attempt at the same piece of work; nothing where the name is none of ours.
pub(crate) fn first_attempt(key: &str) -> Option<String> {
    let (work, number) = key.rsplit_once('-')?;
    let (_, id) = work.rsplit_once('-')?;
    let is_ours = id.len() == 16 && id.bytes().all(|sign| sign.is_ascii_hexdigit());
    (is_ours && number.parse::<u32>().is_ok()).then(|| format!("{work}-1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_attempts_at_a_piece_of_work_lead_to_the_first_one() {
        let check =
            |key: &str, first: Option<&str>| assert_eq!(first_attempt(key).as_deref(), first, "{key}");
        check("run-0123456789abcdef-1", Some("run-0123456789abcdef-1"));
        check("run-0123456789abcdef-12", Some("run-0123456789abcdef-1"));
        check("toolu_01AbC", None);
        check("call-7-2", None);
        check("run-0123456789abcdef-x", None);
    }
}
