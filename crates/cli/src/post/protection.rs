//! Before a call that puts files at risk they are saved, and after it what it left behind is recorded. It never decides whether
//! a call is wise; it only sees to it that none runs unprotected in silence.
//!
//! A call that is harmless costs a look at its words here and nothing else: no file is touched, and the safe is not opened.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use unstuck_judge::risk::{self, Counts, Risk};
use unstuck_judge::{Call, fingerprint};
use unstuck_store::{
    Asked, Entry, Instead, Kept, Mode, NAME_MAX, SafeCall, SafeDeed, SafeNote, Said, key_of,
};
use unstuck_vault::{Coverage, Origin, Progress, Snapshot, SnapshotId, VaultError, Watch, Wish};
use unstuck_wire::clean::Clean;
use unstuck_wire::hook::{Letter, Reply};

use super::Post;
use super::unprotected::{Trouble, Weight};
use crate::agents::Limit;
use crate::at_risk::{AtRisk, at_risk};
use crate::cellar;
use crate::exit::CommandError;
use crate::last_word::Word;
use crate::settings::Protect;

/// After the time for a snapshot is over, so much is left to say so: a safe that does not heed its watch is given up then.
pub(crate) const TO_SAY_SO: Duration = Duration::from_secs(3);
/// The longest that saving may take, from when this process began: agents that wait for it any longer were not told to. What is
/// left of their patience is for its start and its end.
pub(crate) const LONGEST_SAVING: Duration = Duration::from_secs(Limit::BeforeTool.seconds())
    .saturating_sub(TO_SAY_SO)
    .saturating_sub(Duration::from_secs(1));
/// The most that is said of one call.
const REASON_MAX: usize = 1500;
/// Where something else is told than a result, agents wait for 5 s.
const BESIDE_MAX: Duration = Duration::from_secs(3);

/// Ends what takes too long.
struct Until(Instant);

impl Watch for Until {
    fn goes_on(&self, _progress: Progress) -> bool {
        Instant::now() < self.0
    }
}

/// A call that puts files at risk.
struct AtStake<'a> {
    letter: &'a Letter,
    /// The call as it was asked for.
    asked: &'a Asked,
    /// The call as it runs.
    call: &'a Call,
    risk: Risk,
}

/// In what manner a call runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    /// A person lets it run, whatever speaks against it.
    pub(super) is_allowed: bool,
    /// With other words than it was asked for.
    pub(super) is_rewritten: bool,
    /// That it was asked for stands in the store, so that its result will be met with what is remembered.
    pub(super) is_recorded: bool,
}

/// A snapshot whose call has ended.
pub(super) struct Ended {
    snapshot: SnapshotId,
    /// How long recording what it left behind may take.
    limit: Duration,
}

impl Post<'_> {
    /// What a call puts at risk, as far as the settings want it protected, and what may be an edit of our own files.
    pub(super) fn risk_of(&self, letter: &Letter, call: &Call) -> Option<Risk> {
        if self.safe.settings.protect == Protect::Off {
            return None;
        }
        // What is left out of a long call may be what puts files at risk.
        let whole = letter.whole.as_ref().map(|input| Call::new(&call.tool, input.clone()));
        let call = whole.as_ref().unwrap_or(call);
        risk::of(call).filter(|risk| self.is_wanted(risk) || self.may_be_ours(&call.input))
    }

    fn is_wanted(&self, risk: &Risk) -> bool {
        match self.safe.settings.protect {
            Protect::Off => false,
            Protect::Risky => risk.counts() <= Counts::Always,
            Protect::Edits => risk.counts() <= Counts::Edits,
        }
    }

    /// Returns whether a call says the name of our folder.
    fn may_be_ours(&self, input: &Value) -> bool {
        let name = self.safe.around().and_then(|ours| ours.file_name()?.to_str());
        name.is_some_and(|name| says(input, name))
    }

    /// From now on there is time to save files before a call.
    pub(super) fn take_time_to_save(&self) {
        if let Some(deadline) = &self.desk.deadline {
            deadline.grant(self.time_to_save() + TO_SAY_SO);
        }
    }

    /// From now on a risky call is refused if this process comes to no end, instead of running unprotected.
    pub(super) fn expect_the_worst(&self, letter: &Letter, asked: &Asked, call: &Call, risk: &Risk) {
        self.take_time_to_save();
        if self.modes.of(&asked.tool) != Mode::Enforce {
            return;
        }
        let trouble = Trouble::no_end(self.desk.lang);
        let at_stake = AtStake { letter, asked, call, risk: risk.clone() };
        let (instead, reason) = self.against(&at_stake, &trouble, true);
        let reason = self.cleaner.line(&reason, REASON_MAX);
        let note = self.note_of(&at_stake, None, &trouble, instead, &reason);
        self.prepare(letter, &reply(instead, &reason), Some(Entry::Safe(note)));
    }

    /// From now on this is said if this process comes to no end, and this is recorded. Where there is nothing to say, nothing is.
    fn prepare(&self, letter: &Letter, reply: &Reply, entry: Option<Entry>) {
        match self.last_answer(letter, reply) {
            Some(answer) => self.last_word.prepare(Word { answer, entry }),
            None => self.last_word.withdraw(),
        }
    }

    /// How long saving may take from now on.
    fn time_to_save(&self) -> Duration {
        let waited = self.desk.deadline.as_ref().map(|deadline| deadline.age());
        time_to_save(self.safe.settings.deadline, waited)
    }

    /// Saves what a call puts at risk before it runs. Returns what is to be said instead of letting it run, or beside that.
    pub(super) fn protect(
        &mut self,
        letter: &Letter,
        asked: &Asked,
        call: &Call,
        said: &Said,
        manner: Manner,
    ) -> Option<Reply> {
        let risk = self.risk_of(letter, call)?;
        // A hook that stands in two files of settings tells of a call twice.
        if !said.snapshots.is_empty() {
            self.last_word.withdraw();
            return None;
        }
        let at_stake = AtStake { letter, asked, call, risk };
        // What a person allowed runs even where we come to no end.
        let is_allowed = self.desk.keeper.is_allowed(&key_of(&fingerprint::call(call)), cellar::now());
        if is_allowed {
            self.last_word.withdraw();
        }
        let time = self.time_to_save();
        let taken = match &self.desk.deadline.clone() {
            Some(deadline) => {
                // It may have been held up until now.
                deadline.grant(time + TO_SAY_SO);
                deadline.uncounted(|| self.take_snapshot(&at_stake, said, time))
            }
            None => self.take_snapshot(&at_stake, said, time),
        };
        let trouble = match taken {
            Ok(None) => {
                self.last_word.withdraw();
                return None;
            }
            Ok(Some(snapshot)) => match snapshot.coverage() {
                Coverage::Whole => {
                    self.last_word.withdraw();
                    self.note_taken(&at_stake, said, &snapshot);
                    return None;
                }
                Coverage::Partial => {
                    self.note_taken(&at_stake, said, &snapshot);
                    Trouble::partial(&snapshot, self.desk.lang)
                }
            },
            Err(error) => Trouble::of(&error, time, self.desk.lang),
        };
        if trouble.weight == Weight::OwnFault {
            self.note_fault("safe", &trouble.text);
        }
        Some(self.unprotected(&at_stake, said, &trouble, Manner { is_allowed, ..manner }))
    }

    /// Takes the snapshot; none where nothing is there that could be lost.
    fn take_snapshot(
        &self,
        at_stake: &AtStake<'_>,
        said: &Said,
        time: Duration,
    ) -> Result<Option<Snapshot>, CommandError> {
        let until = Until(Instant::now() + time);
        let folder = folder_of(at_stake.letter);
        let (scopes, rebuildable, spared) =
            match at_risk(&at_stake.risk, &folder, self.home, self.safe.around()) {
                AtRisk::Nothing => return Ok(None),
                // A single edit, and none of what is ours.
                AtRisk::Scopes { .. } | AtRisk::TooWide { .. } if !self.is_wanted(&at_stake.risk) => {
                    return Ok(None);
                }
                AtRisk::Scopes { paths, rebuildable, spared } => (paths, rebuildable, spared),
                AtRisk::TooWide { path } => return Err(VaultError::TooWide { path }.into()),
                AtRisk::OurOwn { path } => return Err(CommandError::OurOwn { path }),
            };
        let wish = Wish {
            scopes,
            rebuildable,
            never: self.safe.never_but_also(&spared),
            origin: Origin::Call {
                call: said.call,
                key: at_stake.asked.key.to_string(),
                session: at_stake.asked.who.session.to_string(),
                row: at_stake.risk.row().to_owned(),
                label: at_stake.asked.label.to_string(),
            },
            note: String::new(),
            reserve: self.safe.reserve(),
            now: SystemTime::now(),
        };
        let vault = self.safe.open()?;
        Ok(Some(self.safe.take(&vault, &wish, &until)?))
    }

    /// What becomes of a call whose files could not be saved, or not all of them.
    fn unprotected(
        &mut self,
        at_stake: &AtStake<'_>,
        said: &Said,
        trouble: &Trouble,
        manner: Manner,
    ) -> Reply {
        let honours = at_stake.letter.honours();
        let (instead, reason) = match self.modes.of(&at_stake.asked.tool) {
            Mode::Enforce if !manner.is_allowed => self.against(at_stake, trouble, manner.is_recorded),
            Mode::Enforce | Mode::Advise => (Instead::Told, trouble.told(self.desk.lang)),
            Mode::Shadow => (Instead::Recorded, trouble.told(self.desk.lang)),
        };
        let can_tell_now = honours.tell && !manner.is_rewritten;
        let (instead, reason) = match instead {
            Instead::Told if !can_tell_now && (manner.is_recorded || manner.is_allowed) => {
                (Instead::ToldLater, reason)
            }
            // Nothing would remember to tell it later.
            Instead::Told if !can_tell_now => self.refusal(at_stake, trouble, manner.is_recorded),
            Instead::Recorded | Instead::Told | Instead::ToldLater | Instead::Asked | Instead::Denied => {
                (instead, reason)
            }
        };
        let reason = self.cleaner.line(&reason, REASON_MAX);
        let entry = Entry::Safe(self.note_of(at_stake, said.call, trouble, instead, &reason));
        let reply = reply(instead, &reason);
        // Whatever happens until the answer is out, this is what is said.
        self.prepare(at_stake.letter, &reply, Some(entry.clone()));
        self.desk.note(&entry, cellar::now());
        self.prepare(at_stake.letter, &reply, None);
        reply
    }

    /// The answer is about to be printed as a whole: nothing else is to be said any more.
    pub(crate) fn answers(&self) {
        self.last_word.withdraw();
    }

    /// What is done about a call that may not run unprotected without a word, and why, in words.
    fn against(&self, at_stake: &AtStake<'_>, trouble: &Trouble, is_recorded: bool) -> (Instead, String) {
        let lang = self.desk.lang;
        let can_ask = self.is_attended(at_stake.letter) && at_stake.letter.honours().ask;
        let why = at_stake.risk.why(lang);
        match (can_ask, trouble.weight) {
            (true, _) => (Instead::Asked, trouble.asked(why, lang)),
            (false, Weight::Stops) => self.refusal(at_stake, trouble, is_recorded),
            (false, Weight::OwnFault | Weight::Partial) => (Instead::Told, trouble.told(lang)),
        }
    }

    /// A refusal. A person can lift it only where that can be recorded.
    fn refusal(&self, at_stake: &AtStake<'_>, trouble: &Trouble, is_recorded: bool) -> (Instead, String) {
        let lang = self.desk.lang;
        let key = is_recorded.then(|| key_of(&fingerprint::call(at_stake.call)));
        (Instead::Denied, trouble.denied(at_stake.risk.why(lang), key.as_deref(), lang))
    }

    fn note_taken(&mut self, at_stake: &AtStake<'_>, said: &Said, snapshot: &Snapshot) {
        let deed = SafeDeed::Taken {
            paths: snapshot.entries,
            bytes: snapshot.bytes,
            partial: snapshot.coverage() == Coverage::Partial,
        };
        let note = SafeNote {
            at: cellar::now(),
            call: which(at_stake, said.call),
            snapshot: Clean::stored(snapshot.id.to_string()),
            deed,
            why: Clean::from(at_stake.risk.row()),
            text: at_stake.asked.label.clone(),
        };
        self.is_flushed = self.desk.note(&Entry::Safe(note), cellar::now()).kept == Kept::Stored;
    }

    fn note_of(
        &self,
        at_stake: &AtStake<'_>,
        call: Option<i64>,
        trouble: &Trouble,
        instead: Instead,
        said: &Clean,
    ) -> SafeNote {
        SafeNote {
            at: cellar::now(),
            call: which(at_stake, call),
            snapshot: Clean::default(),
            deed: SafeDeed::Unprotected { instead, said: said.clone() },
            why: Clean::from(at_stake.risk.row()),
            text: self.cleaner.line(&trouble.text, REASON_MAX),
        }
    }

    /// A protected call ended: what it left behind is to be recorded once the answer is out. Of one that never ran, and of one
    /// that went on in the background, it is told where nobody expects us to take our time.
    pub(super) fn has_ended(&mut self, said: &Said, is_result: bool) {
        let limit = match is_result {
            true => self.safe.settings.deadline,
            false => self.safe.settings.deadline.min(BESIDE_MAX),
        };
        let named = said.snapshots.iter().filter_map(|name| name.parse().ok());
        self.ended.extend(named.map(|snapshot| Ended { snapshot, limit }));
    }

    /// The same where the store could not be asked which call it was: then the safe is looked through.
    pub(super) fn has_ended_unheard(&mut self, session: &str, key: &str) {
        let key = self.cleaner.name(key, NAME_MAX);
        let is_it = |snapshot: &Snapshot| match &snapshot.origin {
            Origin::Call { key: named, session: of, .. } => {
                **named == *key && of == session && !snapshot.concluded
            }
            Origin::Person | Origin::Agent | Origin::Restore { .. } => false,
        };
        if key.is_empty() {
            return;
        }
        let all = self.safe.existing().and_then(|vault| Ok(vault.snapshots()?)).unwrap_or_default();
        let limit = self.safe.settings.deadline;
        let found = all.iter().filter(|snapshot| is_it(snapshot));
        self.ended.extend(found.map(|snapshot| Ended { snapshot: snapshot.id, limit }));
    }

    /// Records what calls that have ended left behind, so that an undo can tell it from what others do later. Where none of
    /// them was protected, nothing is done.
    pub(crate) fn conclude(&mut self) {
        for Ended { snapshot, limit } in std::mem::take(&mut self.ended) {
            let limit = limit.min(self.time_to_save());
            if let Some(deadline) = &self.desk.deadline {
                deadline.grant(limit + TO_SAY_SO);
            }
            let until = Until(Instant::now() + limit);
            let concluded = self.safe.existing().and_then(|vault| {
                vault.conclude(snapshot, SystemTime::now(), self.safe.reserve(), &until)?;
                self.safe.expire(&vault);
                Ok(())
            });
            match concluded {
                // It was removed meanwhile, and with it what could be undone.
                Ok(()) | Err(CommandError::Vault(VaultError::NoSuchSnapshot { .. })) => {}
                Err(error) => {
                    let what =
                        format!("what the call behind {snapshot} left behind was not recorded: {error}");
                    self.note_fault("safe", &what);
                }
            }
        }
    }
}

/// How long saving may take where an agent has waited for us so long already. One that has waited for as long as it was told to
/// goes on without us, so what is wanted counts only up to that. Nobody knows how long those wait who speak our own format.
fn time_to_save(wanted: Duration, waited: Option<Duration>) -> Duration {
    waited.map_or(wanted, |waited| wanted.min(LONGEST_SAVING.saturating_sub(waited)))
}

/// The call as the timeline knows it.
fn which(at_stake: &AtStake<'_>, call: Option<i64>) -> SafeCall {
    let asked = at_stake.asked;
    call.map_or_else(
        || SafeCall::Named { session: asked.who.session.clone(), key: asked.key.clone() },
        SafeCall::Numbered,
    )
}

fn reply(instead: Instead, reason: &str) -> Reply {
    let reason = reason.to_owned();
    match instead {
        Instead::Recorded | Instead::ToldLater => Reply::Silent,
        Instead::Told => Reply::tell(reason),
        Instead::Asked => Reply::Ask { reason },
        Instead::Denied => Reply::Deny { reason },
    }
}

/// Returns whether a text stands anywhere in what a tool was given.
fn says(input: &Value, text: &str) -> bool {
    match input {
        Value::String(said) => said.contains(text),
        Value::Array(all) => all.iter().any(|each| says(each, text)),
        Value::Object(all) => all.values().any(|each| says(each, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The folder that a call is made in. Where nobody names it, it is the one that we were started in: agents start their hooks
/// where they work.
pub(super) fn folder_of(letter: &Letter) -> Cow<'_, Path> {
    match letter.cwd.is_empty() {
        true => Cow::Owned(std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))),
        false => Cow::Borrowed(Path::new(&letter.cwd)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, LONGEST_SAVING, Limit, TO_SAY_SO, time_to_save};

    #[test]
    fn saving_ends_before_the_agent_stops_waiting_whatever_is_set() {
        let check = |wanted: u64, waited: Option<u64>, expected: u64| {
            let seconds = Duration::from_secs;
            assert_eq!(
                time_to_save(seconds(wanted), waited.map(seconds)),
                seconds(expected),
                "{wanted} {waited:?}"
            );
        };
        check(20, Some(0), 20);
        check(600, Some(0), 26);
        check(20, Some(5), 20);
        check(20, Some(10), 16);
        check(20, Some(40), 0);
        check(600, None, 600);
        assert!((LONGEST_SAVING + TO_SAY_SO).as_secs() < Limit::BeforeTool.seconds());
    }
}
