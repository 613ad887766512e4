//! How a file that belongs to others is changed, and changed back: what is to be written is worked out from what was read, and
//! worked out again whenever somebody else was faster. What a file is to become is up to each [`Change`].

use std::fs;
use std::path::{Path, PathBuf};

use unstuck_wire::redact::redact;

use crate::editing::{
    After, Backups, Before, EditError, Found, Ledger, Put, Wrapped, Written, hash, make_folders, put, sweep,
    unified,
};

/// How often somebody else may be faster.
const TRIES: u32 = 5;

/// What a change is made with.
pub(crate) struct Tools<'a> {
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) backups: &'a Backups,
    pub(crate) now: u64,
    /// Only say what would be done.
    pub(crate) dry_run: bool,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome<S> {
    /// Where the file really lies.
    pub(crate) file: PathBuf,
    pub(crate) done: Done,
    /// The copy of what was there before.
    pub(crate) backup: Option<PathBuf>,
    /// The change, where it was only thought of.
    pub(crate) diff: String,
    /// What was seen in it.
    pub(crate) seen: S,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// Nothing had to be.
    Nothing,
    /// The file was made.
    Made,
    /// It was changed.
    Changed,
    /// It was removed.
    Removed,
}

/// What a file is to become, and what is ours in it then.
pub(crate) struct Plan<S> {
    pub(super) after: After,
    /// Keys that were made in it.
    pub(super) made: Vec<String>,
    /// Servers that go through us.
    pub(super) servers: Vec<Wrapped>,
    /// What was seen in it.
    pub(super) seen: S,
}

impl<S> Plan<S> {
    /// Is nothing of ours in it any more?
    pub(super) fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.made.is_empty()
    }
}

/// Which way a change goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// A file, and what we want to stand in it.
pub(crate) trait Change {
    /// What is told of the file besides.
    type Seen;

    /// The file as it was asked for.
    fn file(&self) -> &Path;

    /// The word for the agent whose file it is.
    fn agent(&self) -> &'static str;

    /// What the file becomes when we come in.
    fn plan_in(&self, found: &Found, known: Option<&Written>) -> Result<Plan<Self::Seen>, EditError>;

    /// What the file becomes when we go.
    fn plan_out(
        &self,
        found: &Found,
        known: Option<&Written>,
        backups: &Backups,
    ) -> Result<Plan<Self::Seen>, EditError>;

    /// What is in the file but for us.
    fn without(
        &self,
        found: &Found,
        bytes: &[u8],
        known: Option<&Written>,
        backups: &Backups,
    ) -> Result<Vec<u8>, EditError>;

    /// Every command line that we ever put into the file, with the one of today.
    fn commands(&self, known: Option<&Written>) -> Vec<String>;

    /// Is nothing of us in the file, as far as it was asked for?
    fn is_out(&self, ledger: &Ledger) -> Result<bool, EditError>;

    /// Are we in the file, with all that we want?
    fn is_in(&self, ledger: &Ledger) -> Result<bool, EditError> {
        let found = Found::as_it_is(self.file())?;
        let known = ledger.about(found.path());
        Ok(found.bytes().is_some() && matches!(self.plan_in(&found, known)?.after, After::Same))
    }

    /// Is it done?
    fn stands(&self, direction: Direction, ledger: &Ledger) -> Result<bool, EditError> {
        match direction {
            Direction::In => self.is_in(ledger),
            Direction::Out => self.is_out(ledger),
        }
    }

    /// Does it.
    fn make(&self, direction: Direction, tools: &mut Tools<'_>) -> Result<Outcome<Self::Seen>, EditError> {
        match direction {
            Direction::In => self.put_in(tools),
            Direction::Out => self.take_out(tools),
        }
    }

    /// Puts us into the file.
    fn put_in(&self, tools: &mut Tools<'_>) -> Result<Outcome<Self::Seen>, EditError> {
        for _ in 0..TRIES {
            let found = Found::look(self.file())?;
            let known = tools.ledger.about(found.path()).cloned();
            let plan = self.plan_in(&found, known.as_ref())?;
            let done = match (&plan.after, found.bytes()) {
                (After::Same | After::Gone, _) => return Ok(outcome(&found, plan, Done::Nothing, None)),
                (After::Bytes(_), Some(_)) => Done::Changed,
                (After::Bytes(_), None) => Done::Made,
            };
            found.may_be_replaced()?;
            if tools.dry_run {
                return Ok(prospect(&found, plan, done));
            }
            let folders = make_folders(found.path().parent().unwrap_or(Path::new("/")))?;
            sweep(found.path());
            let written = write_in(self, tools, &found, &plan, known.as_ref(), &folders);
            if !matches!(written, Ok((Put::Done, _))) {
                remove_empty(&folders);
            }
            if let (Put::Done, backup) = written? {
                tools.backups.thin_out(found.path(), &tools.ledger.copies());
                return Ok(outcome(&found, plan, done, backup));
            }
        }
        Err(EditError::KeepsChanging { path: self.file().to_owned() })
    }

    /// Takes us out of the file, and gives back what was there.
    fn take_out(&self, tools: &mut Tools<'_>) -> Result<Outcome<Self::Seen>, EditError> {
        for _ in 0..TRIES {
            let found = Found::look(self.file())?;
            // What was ours in it may come back, and must not be forgotten until then.
            found.is_settled()?;
            let known = tools.ledger.about(found.path()).cloned();
            let plan = self.plan_out(&found, known.as_ref(), tools.backups)?;
            let done = match &plan.after {
                After::Same => Done::Nothing,
                After::Bytes(_) => Done::Changed,
                After::Gone => Done::Removed,
            };
            if tools.dry_run {
                return Ok(prospect(&found, plan, done));
            }
            let backup = match (done, found.bytes()) {
                (Done::Changed | Done::Removed, Some(bytes)) => {
                    found.may_be_replaced()?;
                    sweep(found.path());
                    Some(tools.backups.keep(found.path(), bytes, tools.now)?)
                }
                (Done::Nothing | Done::Made, _) | (_, None) => None,
            };
            let before = match (plan.is_empty(), done) {
                (true, _) | (_, Done::Nothing) => None,
                (false, Done::Made | Done::Changed | Done::Removed) => {
                    Some(before(self, tools, &found, known.as_ref())?)
                }
            };
            if let Put::Done = put(&found, &plan.after)? {
                let folders = known.as_ref().map(|known| known.folders.clone()).unwrap_or_default();
                match before {
                    Some(before) => {
                        let written =
                            written(self, tools.now, &found, &plan, before, known.as_ref(), folders);
                        tools.ledger.note(written)?;
                    }
                    None if plan.is_empty() => {
                        remove_empty(&folders);
                        tools.ledger.forget(found.path())?;
                    }
                    None => {}
                }
                tools.backups.thin_out(found.path(), &tools.ledger.copies());
                return Ok(outcome(&found, plan, done, backup));
            }
        }
        Err(EditError::KeepsChanging { path: self.file().to_owned() })
    }
}

/// Notes what is about to be written, and writes it.
fn write_in<C: Change + ?Sized>(
    change: &C,
    tools: &mut Tools<'_>,
    found: &Found,
    plan: &Plan<C::Seen>,
    known: Option<&Written>,
    folders: &[PathBuf],
) -> Result<(Put, Option<PathBuf>), EditError> {
    let before = before(change, tools, found, known)?;
    let keep = |bytes| tools.backups.keep(found.path(), bytes, tools.now + 1);
    let backup = found.bytes().map(keep).transpose()?;
    let folders = match known {
        Some(known) if folders.is_empty() => known.folders.clone(),
        Some(_) | None => folders.to_vec(),
    };
    tools.ledger.note(written(change, tools.now, found, plan, before, known, folders))?;
    let result = put(found, &plan.after);
    if !matches!(result, Ok(Put::Done)) {
        match known {
            Some(known) => tools.ledger.note(known.clone())?,
            None => tools.ledger.forget(found.path())?,
        }
    }
    Ok((result?, backup))
}

/// What was there before us: the copy that is known, or one made of what is there now, without us.
fn before<C: Change + ?Sized>(
    change: &C,
    tools: &Tools<'_>,
    found: &Found,
    known: Option<&Written>,
) -> Result<Before, EditError> {
    let Some(bytes) = found.bytes() else { return Ok(Before::Nothing) };
    if let Some(known) = known.filter(|known| known.is_left(bytes)) {
        return Ok(known.before.clone());
    }
    let without = change.without(found, bytes, known, tools.backups)?;
    Ok(Before::Copy(tools.backups.keep(found.path(), &without, tools.now)?))
}

fn written<C: Change + ?Sized>(
    change: &C,
    now: u64,
    found: &Found,
    plan: &Plan<C::Seen>,
    before: Before,
    known: Option<&Written>,
    folders: Vec<PathBuf>,
) -> Written {
    let left = match &plan.after {
        After::Bytes(bytes) => hash(bytes),
        After::Same | After::Gone => hash(found.bytes().unwrap_or_default()),
    };
    Written {
        file: found.path().to_owned(),
        agent: change.agent().to_owned(),
        at_ms: now,
        before,
        left,
        made: plan.made.clone(),
        folders,
        commands: change.commands(known),
        servers: plan.servers.clone(),
    }
}

fn outcome<S>(found: &Found, plan: Plan<S>, done: Done, backup: Option<PathBuf>) -> Outcome<S> {
    Outcome { file: found.path().to_owned(), done, backup, diff: String::new(), seen: plan.seen }
}

/// What would become of a file, with the change to it.
fn prospect<S>(found: &Found, plan: Plan<S>, done: Done) -> Outcome<S> {
    let diff = match &plan.after {
        After::Same => String::new(),
        After::Bytes(after) => unified(found.path(), found.bytes(), Some(after)),
        After::Gone => unified(found.path(), found.bytes(), None),
    };
    // Settings of agents hold keys of servers; whoever looks at the change need not see them.
    Outcome { diff: redact(&diff).into_owned(), ..outcome(found, plan, done, None) }
}

/// Removes folders that hold nothing, innermost first.
fn remove_empty(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let _stays_if_anything_is_in_it = fs::remove_dir(folder);
    }
}
