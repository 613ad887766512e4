//! The post: what agents send is handed to the desk, and what the desk says becomes an answer. Every format of a hook comes
//! through here; they differ in how an answer is written.

mod defence;
mod line;
mod protection;
mod reply;
mod unprotected;

use std::cell::RefCell;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use unstuck_exec::alive;
use unstuck_judge::ladder::Round;
use unstuck_judge::rewrite::Rewrite;
use unstuck_judge::risk::Risk;
use unstuck_judge::{Call, Outcome, Rules};
use unstuck_store::{
    Answer, Asked, Entry, Hears, Kept, Modes, NAME_MAX, OwnFault, Phase, Ruling, Source, Stance, Which, Who,
};
use unstuck_wire::clean::{Clean, Cleaner};
use unstuck_wire::hook::{Beginning, Finished, Happened, Host, Letter, Reply, codex};
use unstuck_wire::report::Report;

use crate::agents::LONGEST_WAIT;
use crate::breaker::Breaker;
use crate::cellar::{self, Cellar};
use crate::deadline::Deadline;
use crate::desk::{self, Desk};
use crate::last_word::{LastWord, unseen};
use crate::safe::Safe;
use crate::settings::HookSettings;
use crate::{knowledge, regular_file, whereabouts};
use defence::Defence;
use protection::Manner;

pub(crate) use protection::TO_SAY_SO;

/// What is told of longer ago is a tale: the files of today have nothing to say about it.
const LIVE_MS: u64 = 60 * 1000;

/// How much of the end of a conversation's file is read for what a payload leaves out.
const TRANSCRIPT_TAIL: u64 = 512 * 1024;

/// Where letters become entries.
pub(crate) struct Post<'a> {
    desk: Desk<'a>,
    cleaner: &'a Cleaner,
    settings: HookSettings,
    /// The failures of a session are also kept where other tools look for them.
    tool_errors: bool,
    /// Read when the first result comes in.
    rules: Option<Rules>,
    /// Our own faults that are still to be recorded: which part, and what.
    pending: Vec<(&'static str, String)>,
    safe: Safe<'a>,
    home: Option<&'a Path>,
    /// How far we may go with each tool.
    modes: Modes,
    /// What is said should this process come to no end.
    last_word: Arc<LastWord>,
    /// Snapshots whose calls have ended, until what those left behind is recorded.
    ended: Vec<protection::Ended>,
    breaker: Breaker,
    /// The word of a snapshot was flushed to the disk, and all that was recorded before it.
    is_flushed: bool,
    /// How what comes through here came to be known.
    source: Source,
}

/// Something that happened, after it was recorded.
struct Told {
    answer: Answer,
    /// The diagnosis of a failure.
    report: Option<Report>,
    /// What runs in place of a call that would have been refused.
    rewrite: Option<Rewrite>,
    /// What is said of a call whose files could not be saved, or not all of them.
    unprotected: Option<Reply>,
    /// The result itself holds what we have to say of it.
    is_explained: bool,
}

impl Told {
    /// Something of which there is nothing more to tell than what was recorded.
    fn only(answer: Answer) -> Told {
        Told { answer, report: None, rewrite: None, unprotected: None, is_explained: false }
    }
}

impl<'a> Post<'a> {
    pub(crate) fn new(cellar: &'a Cellar, cleaner: &'a Cleaner, last_word: Arc<LastWord>) -> Post<'a> {
        let breaker = Breaker::at(cellar.folder().ok());
        let mut desk = cellar.desk(cleaner);
        desk.keeper.rest(breaker.is_open(cellar::now()));
        Post {
            desk,
            breaker,
            cleaner,
            settings: cellar.settings.hook(),
            tool_errors: cellar.settings.store().tool_errors,
            rules: None,
            pending: cellar.faults(),
            safe: Safe::of(cellar),
            home: cellar.home(),
            modes: cellar.modes(),
            last_word,
            ended: Vec::new(),
            is_flushed: false,
            source: Source::Told,
        }
    }

    /// What comes from now on came to be known in this way.
    pub(crate) fn comes_by(&mut self, source: Source) {
        self.source = source;
    }

    /// What is recorded from now on must not be lost when time runs out.
    pub(crate) fn hurry(&mut self, deadline: &Arc<Deadline>) {
        self.desk.deadline = Some(Arc::clone(deadline));
    }

    /// Records one thing that happened.
    fn take(&mut self, letter: &Letter, who: Who, event: &Happened, now: u64) -> Told {
        let answer = match event {
            Happened::Before { key, call, new_user_turn } => {
                // Its words are looked at first: what comes next may take longer than a hook has, and silence lets it run.
                let is_live = now.abs_diff(who.at) < LIVE_MS;
                let risk = if is_live { self.risk_of(letter, call) } else { None };
                match &risk {
                    Some(_) => self.take_time_to_save(),
                    None => unseen::is_seen(),
                }
                let mut asked = self.desk.asked(who, key, call, *new_user_turn);
                asked.attended = self.is_attended(letter);
                return self.asked(letter, asked, call, risk.as_ref(), now);
            }
            Happened::After(finished) => return self.finished(letter, who, finished, now),
            Happened::Ask { key, call } => {
                let which = Which::new(self.cleaner, key, call.as_ref());
                self.desk.note(&by_person(who, which, Ruling::Required), now)
            }
            Happened::Approved { key } => self.rule(who, key, Ruling::Approved, now),
            Happened::Denied { key } => self.rule(who, key, Ruling::Denied, now),
            Happened::Later { key, outcome, text } => {
                let key = self.cleaner.name(key, NAME_MAX);
                let line = self.cleaner.line(text, 400);
                let answer = self.desk.note(&Entry::Later { who, key, outcome: *outcome, line }, now);
                self.has_ended(&answer.said, false);
                answer
            }
            Happened::User => self.desk.note(&Entry::UserSpoke(who), now),
            Happened::Began(Beginning::Shortened) => self.desk.note(&Entry::Shortened(who), now),
            Happened::Began(Beginning::Whole) => self.desk.note(&Entry::Began(who), now),
            Happened::AgentDone => self.desk.note(&Entry::AgentDone(who), now),
            Happened::End => self.desk.note(&Entry::Over(who), now),
        };
        Told::only(answer)
    }

    /// A call is asked for. What it puts at risk is saved before it runs.
    fn asked(&mut self, letter: &Letter, asked: Asked, call: &Call, risk: Option<&Risk>, now: u64) -> Told {
        let is_live = now.abs_diff(asked.who.at) < LIVE_MS;
        if let Some(risk) = risk {
            self.expect_the_worst(letter, &asked, call, risk);
        }
        let defence = self.defence(letter, call, is_live);
        let answer = self.desk.before(asked.clone(), now, Some(&defence));
        // What could not be recorded does not happen.
        let rewrite = defence.found.into_inner().filter(|_| answer.said.rewritten.is_some());
        if let (Stance::Hold { wait, .. }, Some(deadline)) = (answer.said.stance, &self.desk.deadline) {
            deadline.pause(wait);
        }
        let mut told = Told { rewrite, ..Told::only(answer) };
        let rewritten = told.rewrite.as_ref().map(|rewrite| Call::new(&call.tool, rewrite.input.clone()));
        let may_be_risky = is_live && (risk.is_some() || rewritten.is_some());
        if may_be_risky && !told.answer.said.stance.refuses() {
            let runs = rewritten.as_ref().unwrap_or(call);
            self.is_flushed = false;
            let manner = Manner {
                is_allowed: false,
                is_rewritten: rewritten.is_some(),
                is_recorded: told.answer.kept.is_in_database(),
            };
            told.unprotected = self.protect(letter, &asked, runs, &told.answer.said, manner);
            if self.is_flushed && told.answer.kept == Kept::Recorded {
                told.answer.kept = Kept::Stored;
            }
        }
        told
    }

    fn defence<'c>(&self, letter: &'c Letter, call: &'c Call, is_live: bool) -> Defence<'c>
    where
        'a: 'c,
    {
        Defence {
            call,
            folder: protection::folder_of(letter).to_string_lossy().into_owned(),
            home: self.home,
            is_live,
            honours: letter.honours(),
            rewriter: self.desk.rewriter.clone(),
            cleaner: self.cleaner,
            lang: self.desk.lang,
            found: RefCell::default(),
        }
    }

    fn finished(&mut self, letter: &Letter, who: Who, finished: &Finished, now: u64) -> Told {
        let mut finished = finished.clone();
        let is_explained = finished.take_out_our_account();
        if let Some(code) = left_out_code(letter, &finished) {
            codex::tell(&mut finished, code);
        }
        let result = desk::Result {
            key: &finished.key,
            observation: &finished.observation,
            folder: &letter.cwd,
            from_hook: letter.honours().again.then_some(LONGEST_WAIT),
            ours: None,
            said_ok: finished.said_ok,
            took_ms: finished.took_ms,
            user_spoke: finished.new_user_turn,
            attended: self.is_attended(letter),
            can_retry: finished.can_retry.then(cellar::roll),
        };
        let is_live = now.abs_diff(who.at) < LIVE_MS;
        let defence = self.defence(letter, &finished.observation.call, is_live);
        let rules = self.rules.get_or_insert_with(|| {
            // Files of rules may be what keeps hooks from coming to an end.
            if self.breaker.is_open(now) {
                return Rules::built_in();
            }
            let (rules, mistakes) = knowledge::load_quietly();
            self.pending.extend(mistakes.into_iter().map(|mistake| ("rules", mistake)));
            rules
        });
        let session = who.session.clone();
        let (answer, report) = self.desk.after(rules, who, &result, now, Some(&defence));
        let never_ran = matches!(finished.observation.outcome, Outcome::Denied | Outcome::Rejected);
        match (&answer.kept, finished.runs_on) {
            // What it will have changed is known when it has ended.
            (_, true) => {}
            (Kept::Stored | Kept::Recorded, false) => self.has_ended(&answer.said, !never_ran),
            (Kept::Spooled { .. } | Kept::Lost { .. }, false) => {
                self.has_ended_unheard(&session, &finished.key);
            }
        }
        let report = Some(report).filter(|report| report.diagnosis.ok() != Some(true));
        if self.tool_errors && (report.is_some() || self.desk.keeper.has_tool_errors(&session)) {
            self.write_tool_errors(&session);
        }
        Told { report, is_explained, ..Told::only(answer) }
    }

    fn rule(&mut self, who: Who, key: &str, ruling: Ruling, now: u64) -> Answer {
        let which = Which::new(self.cleaner, key, None);
        self.desk.note(&by_person(who, which, ruling), now)
    }

    fn write_tool_errors(&mut self, session: &Clean) {
        if let Err(error) = self.desk.keeper.write_tool_errors(session) {
            self.pending.push(("tool-errors", error.to_string()));
        }
    }

    fn who(&self, letter: &Letter, now: u64) -> Who {
        Who {
            host: Clean::from(letter.host.word()),
            hook: self.cleaner.name(&letter.hook, NAME_MAX),
            session: self.cleaner.name(&letter.session, NAME_MAX),
            agent: self.cleaner.name(&letter.agent, NAME_MAX),
            cwd: self.cleaner.line(&letter.cwd, 1024),
            place: whereabouts::place(&letter.cwd, self.home, self.cleaner),
            owner: letter.pid.map(|pid| self.cleaner.line(&alive::owner(pid), 64)).unwrap_or_default(),
            source: self.source,
            hears: hears(letter),
            round: letter.round.map_or(Round::Unsaid, Round::Numbered),
            at: cellar::sensible(letter.at, now),
        }
    }

    /// Keeps a fault of ours in mind until there is time to record it.
    pub(crate) fn note_fault(&mut self, part: &'static str, what: &str) {
        self.pending.push((part, what.to_owned()));
    }

    fn record_fault(&mut self, part: &'static str, what: &str) -> Answer {
        let now = cellar::now();
        let what = self.cleaner.line(what, 400);
        self.desk.note(&Entry::OwnFault(OwnFault { at: now, part: Clean::from(part), what }), now)
    }

    /// Records all faults that are still to be recorded.
    pub(crate) fn tell_faults(&mut self) {
        for (part, what) in std::mem::take(&mut self.pending) {
            self.record_fault(part, &what);
        }
    }

    /// Remembers whether the store worked, for this process and those after it.
    pub(crate) fn settle(&mut self) {
        let now = cellar::now();
        let was_open = self.breaker.is_open(now);
        match self.desk.keeper.take_worked() {
            None => {}
            Some(true) => self.breaker.success(),
            Some(false) => self.breaker.fault(now),
        }
        let rests = self.breaker.is_open(now);
        self.desk.keeper.rest(rests);
        if rests && !was_open {
            self.note_fault("hook", "the store failed hooks in a row, and is left alone for a while");
        }
    }

    /// Writes down how long this process took.
    pub(crate) fn note_time(&self, phase: Phase, took: Duration) {
        self.desk.keeper.note_time(phase, took, cellar::now());
    }
}

/// What can be said in answer to a letter. The words to a call before it runs come with its result at the earliest, except in
/// our own format.
fn hears(letter: &Letter) -> Hears {
    let is_before = matches!(letter.events.first(), Some(Happened::Before { .. }));
    match (letter.honours().tell, is_before && letter.host != Host::Generic) {
        (false, _) => Hears::Nothing,
        (true, true) => Hears::Notices,
        (true, false) => Hears::Everything,
    }
}

/// The exit code that Codex leaves out of its payloads: it has written it to the file of the conversation by then.
fn left_out_code(letter: &Letter, finished: &Finished) -> Option<i32> {
    let (transcript, call) = codex::wanted(letter, finished)?;
    let mut file = regular_file::open(Path::new(transcript)).ok()?;
    let about = file.metadata().ok()?;
    file.seek(SeekFrom::Start(about.len().saturating_sub(TRANSCRIPT_TAIL))).ok()?;
    let mut tail = Vec::new();
    file.take(TRANSCRIPT_TAIL).read_to_end(&mut tail).ok()?;
    codex::exit_code(&tail, call)
}

/// What became of a record, in a word, and why it is not where it should be.
fn kept(kept: &Kept) -> (&'static str, Option<&str>) {
    match kept {
        Kept::Stored => ("stored", None),
        Kept::Recorded => ("recorded", None),
        Kept::Spooled { why } => ("spooled", Some(why)),
        Kept::Lost { why } => ("lost", Some(why)),
    }
}

/// Programs tell only of what a person decided.
fn by_person(who: Who, which: Which, ruling: Ruling) -> Entry {
    Entry::Ruled { who, which, ruling, by: Clean::from("person"), note: Clean::default() }
}
