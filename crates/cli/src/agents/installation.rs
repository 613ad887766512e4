//! One agent, one file: puts us in, takes us out, and tells whether we are in. What is to be written is worked out from what was
//! read, and worked out again whenever somebody else was faster.

use std::fs;
use std::path::{Path, PathBuf};

use unstuck_wire::hook::Host;

use super::agent::{Agent, Carrier, Event};
use super::command_line::{command_line, program_of};
use super::opencode;
use crate::editing::{
    After, Backups, Before, Dialect, Document, EditError, Entries, Found, Layout, Ledger, Put, Wanted,
    Written, hash, make_folders, put, sweep, unified,
};

/// How often somebody else may be faster.
const TRIES: u32 = 5;

/// An agent's file, and what should stand in it.
#[derive(Debug)]
pub(crate) struct Installation {
    pub(crate) agent: &'static Agent,
    pub(crate) file: PathBuf,
    /// Our own program.
    pub(crate) program: String,
    /// What the agent is to tell us of.
    pub(crate) events: Vec<Event>,
    /// What nobody asks for now, but may stand where it was put by one who knew more.
    pub(crate) tolerated: Vec<&'static str>,
}

/// What an installation writes with.
pub(crate) struct Tools<'a> {
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) backups: &'a Backups,
    pub(crate) now: u64,
    /// Only say what would be done.
    pub(crate) dry_run: bool,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Where the file really lies.
    pub(crate) file: PathBuf,
    pub(crate) done: Done,
    /// The copy of what was there before.
    pub(crate) backup: Option<PathBuf>,
    /// The change, where it was only thought of.
    pub(crate) diff: String,
    /// Command lines that call us in another way; nobody touched them.
    pub(crate) alike: Vec<String>,
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

/// What a file is to become, and what had to be made in it.
struct Plan {
    after: After,
    made: Vec<String>,
    alike: Vec<String>,
}

impl Installation {
    /// Tells the agent to call us.
    pub(crate) fn put_in(&self, tools: &mut Tools<'_>) -> Result<Outcome, EditError> {
        for _ in 0..TRIES {
            let found = Found::look(&self.file)?;
            let plan = self.plan_in(&found, tools.ledger)?;
            let after = match &plan.after {
                After::Bytes(bytes) => bytes,
                After::Same | After::Gone => return Ok(outcome(&found, &plan, Done::Nothing, None)),
            };
            let done = if found.bytes().is_some() { Done::Changed } else { Done::Made };
            found.may_be_replaced()?;
            if tools.dry_run {
                return Ok(prospect(&found, &plan, done));
            }
            let folders = make_folders(found.path().parent().unwrap_or(Path::new("/")))?;
            sweep(found.path());
            let written = self.write_in(tools, &found, &plan, after, &folders);
            if !matches!(written, Ok((Put::Done, _))) {
                remove_empty(&folders);
            }
            if let (Put::Done, backup) = written? {
                tools.backups.thin_out(found.path(), &tools.ledger.copies());
                return Ok(outcome(&found, &plan, done, backup));
            }
        }
        Err(EditError::KeepsChanging { path: self.file.clone() })
    }

    fn write_in(
        &self,
        tools: &mut Tools<'_>,
        found: &Found,
        plan: &Plan,
        after: &[u8],
        folders: &[PathBuf],
    ) -> Result<(Put, Option<PathBuf>), EditError> {
        let known = tools.ledger.about(found.path()).cloned();
        let keep = |bytes: &[u8], at| tools.backups.keep(found.path(), bytes, at);
        let before = match (&known, found.bytes()) {
            (Some(known), Some(bytes)) if known.is_left(bytes) => known.before.clone(),
            (_, None) => Before::Nothing,
            (known, Some(bytes)) => {
                let made = known.as_ref().map(|known| &known.made[..]);
                let without = self.without(found, bytes, known.as_ref(), made)?;
                Before::Copy(keep(&without, tools.now)?)
            }
        };
        let backup = found.bytes().map(|bytes| keep(bytes, tools.now + 1)).transpose()?;
        let mut written = Written {
            file: found.path().to_owned(),
            agent: self.agent.host.word().to_owned(),
            at_ms: tools.now,
            before,
            left: hash(after),
            made: plan.made.clone(),
            folders: folders.to_vec(),
            commands: vec![self.line()],
            servers: Vec::new(),
        };
        if let Some(known) = &known {
            written.made.extend(known.made.iter().cloned());
            written.made.sort_unstable();
            written.made.dedup();
            written.commands.extend(known.commands.iter().filter(|line| **line != self.line()).cloned());
            if folders.is_empty() {
                written.folders.clone_from(&known.folders);
            }
        }
        tools.ledger.note(written)?;
        let result = put(found, &plan.after);
        if !matches!(result, Ok(Put::Done)) {
            match known {
                Some(known) => tools.ledger.note(known)?,
                None => tools.ledger.forget(found.path())?,
            }
        }
        Ok((result?, backup))
    }

    /// Takes us out of the file, and gives back what was there.
    pub(crate) fn take_out(&self, tools: &mut Tools<'_>) -> Result<Outcome, EditError> {
        for _ in 0..TRIES {
            let found = Found::look(&self.file)?;
            let known = tools.ledger.about(found.path()).cloned();
            let plan = self.plan_out(&found, known.as_ref(), tools.backups)?;
            let done = match &plan.after {
                After::Same => Done::Nothing,
                After::Bytes(_) => Done::Changed,
                After::Gone => Done::Removed,
            };
            if tools.dry_run {
                return Ok(prospect(&found, &plan, done));
            }
            let backup = match (done, found.bytes()) {
                (Done::Changed | Done::Removed, Some(bytes)) => {
                    found.may_be_replaced()?;
                    sweep(found.path());
                    Some(tools.backups.keep(found.path(), bytes, tools.now)?)
                }
                (Done::Nothing | Done::Made, _) | (_, None) => None,
            };
            if let Put::Done = put(&found, &plan.after)? {
                if let Some(known) = &known {
                    remove_empty(&known.folders);
                    tools.ledger.forget(found.path())?;
                }
                tools.backups.thin_out(found.path(), &tools.ledger.copies());
                return Ok(outcome(&found, &plan, done, backup));
            }
        }
        Err(EditError::KeepsChanging { path: self.file.clone() })
    }

    /// Are we in the file, with all that we want?
    pub(crate) fn is_in(&self, ledger: &Ledger) -> Result<bool, EditError> {
        let found = Found::as_it_is(&self.file)?;
        Ok(found.bytes().is_some() && matches!(self.plan_in(&found, ledger)?.after, After::Same))
    }

    /// Is nothing of us in the file?
    pub(crate) fn is_out(&self, ledger: &Ledger) -> Result<bool, EditError> {
        let found = Found::as_it_is(&self.file)?;
        let Some(bytes) = found.bytes() else { return Ok(true) };
        let known = ledger.about(found.path());
        Ok(match &self.agent.carrier {
            Carrier::Plugin => !self.is_our_plugin(bytes, known),
            Carrier::Entries { .. } => {
                let document = self.document(&found, Some(bytes))?;
                self.with_entries(known, |entries| entries.standing(&document))?.is_empty()
            }
        })
    }

    /// The line by which the agent calls us.
    pub(crate) fn line(&self) -> String {
        command_line(&self.program, self.agent.host)
    }

    fn plan_in(&self, found: &Found, ledger: &Ledger) -> Result<Plan, EditError> {
        let known = ledger.about(found.path());
        let (after, made, alike) = match &self.agent.carrier {
            Carrier::Plugin => {
                let plugin = opencode::plugin(&self.program, self.agent.events).into_bytes();
                match found.bytes() {
                    Some(bytes) if bytes != plugin && !self.is_our_plugin(bytes, known) => {
                        return Err(EditError::NotOurs { path: found.path().to_owned() });
                    }
                    Some(_) | None => (plugin, Vec::new(), Vec::new()),
                }
            }
            Carrier::Entries { .. } => {
                let document = self.document(found, found.bytes())?;
                let wanted = self.wanted();
                let made = known.map(|known| &known.made[..]);
                let holding = self
                    .with_entries(known, |entries| entries.put(&document, &wanted, &self.tolerated, made))?;
                let alike = self.alike(&document, known);
                (holding.document.bytes(), holding.made, alike)
            }
        };
        let after = match found.bytes() == Some(&after[..]) {
            true => After::Same,
            false => After::Bytes(after),
        };
        Ok(Plan { after, made, alike })
    }

    fn plan_out(&self, found: &Found, known: Option<&Written>, backups: &Backups) -> Result<Plan, EditError> {
        let plan = |after, alike| Ok(Plan { after, made: Vec::new(), alike });
        let Some(bytes) = found.bytes() else { return plan(After::Same, Vec::new()) };
        if let Carrier::Plugin = &self.agent.carrier
            && !self.is_our_plugin(bytes, known)
        {
            return match known {
                Some(_) => Err(EditError::NotOurs { path: found.path().to_owned() }),
                None => plan(After::Same, Vec::new()),
            };
        }
        // Nobody has touched it since: what was there before comes back, to the byte.
        if let Some(known) = known.filter(|known| known.is_left(bytes)) {
            match &known.before {
                Before::Nothing => return plan(After::Gone, Vec::new()),
                Before::Copy(copy) => {
                    if let Ok(before) = backups.read(copy) {
                        return plan(After::Bytes(before), Vec::new());
                    }
                }
            }
        }
        if let Carrier::Plugin = &self.agent.carrier {
            return plan(After::Gone, Vec::new());
        }
        let made = known.map(|known| &known.made[..]);
        let without = self.without(found, bytes, known, made)?;
        let alike = self.alike(&self.document(found, Some(&without))?, known);
        if without == bytes {
            return plan(After::Same, alike);
        }
        let is_empty = self.document(found, Some(&without))?.value() == serde_json::json!({});
        match known.is_some_and(|known| known.before == Before::Nothing) && is_empty {
            true => plan(After::Gone, alike),
            false => plan(After::Bytes(without), alike),
        }
    }

    /// The file's bytes without any of our entries.
    fn without(
        &self,
        found: &Found,
        bytes: &[u8],
        known: Option<&Written>,
        made: Option<&[String]>,
    ) -> Result<Vec<u8>, EditError> {
        if let Carrier::Plugin = &self.agent.carrier {
            return Ok(bytes.to_vec());
        }
        let document = self.document(found, Some(bytes))?;
        let is_untouched = self.with_entries(known, |entries| entries.standing(&document))?.is_empty();
        match is_untouched {
            true => Ok(bytes.to_vec()),
            false => Ok(self.with_entries(known, |entries| entries.take_out(&document, made))?.bytes()),
        }
    }

    fn document<'f>(&self, found: &'f Found, bytes: Option<&[u8]>) -> Result<Document<'f>, EditError> {
        let dialect = match &self.agent.carrier {
            Carrier::Entries { dialect, .. } => *dialect,
            Carrier::Plugin => Dialect::Strict,
        };
        Document::read(found.path(), dialect, bytes)
    }

    fn wanted(&self) -> Vec<Wanted> {
        let line = self.line();
        self.events.iter().filter_map(|event| self.agent.wanted(event, &line)).collect()
    }

    fn with_entries<T>(&self, known: Option<&Written>, act: impl FnOnce(&Entries<'_>) -> T) -> T {
        let (layout, command_key) = match &self.agent.carrier {
            Carrier::Entries { layout, entry, .. } => (*layout, entry.command_key()),
            Carrier::Plugin => (Layout::Flat, "command"),
        };
        let host = self.agent.host;
        let is_ours = |line: &str| {
            program_of(line, host).is_some()
                || known.is_some_and(|known| known.commands.iter().any(|each| each == line))
        };
        let (top, command) = (self.agent.top(), self.line());
        act(&Entries { layout, command_key, top: &top, command: &command, is_ours: &is_ours })
    }

    /// Command lines that call us in another way than ours.
    fn alike(&self, document: &Document<'_>, known: Option<&Written>) -> Vec<String> {
        let host = self.agent.host;
        let is_ours = |line: &str| {
            program_of(line, host).is_some()
                || known.is_some_and(|known| known.commands.iter().any(|each| each == line))
        };
        let mut lines = Vec::new();
        strings(document.value().get("hooks").unwrap_or_default(), &mut lines);
        lines.retain(|line| calls_us(line, host) && !is_ours(line));
        lines.dedup();
        lines
    }

    fn is_our_plugin(&self, bytes: &[u8], known: Option<&Written>) -> bool {
        opencode::program_of_plugin(bytes, known, self.agent.events).is_some()
    }
}

/// Does a line look as if it called us?
fn calls_us(line: &str, host: Host) -> bool {
    line.contains("unstuck") && line.contains(&format!(" hook {}", host.word()))
}

/// Every text in a value.
fn strings(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => found.push(text.clone()),
        serde_json::Value::Array(list) => list.iter().for_each(|each| strings(each, found)),
        serde_json::Value::Object(fields) => fields.values().for_each(|each| strings(each, found)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

fn outcome(found: &Found, plan: &Plan, done: Done, backup: Option<PathBuf>) -> Outcome {
    Outcome { file: found.path().to_owned(), done, backup, diff: String::new(), alike: plan.alike.clone() }
}

/// What would become of a file, with the change to it.
fn prospect(found: &Found, plan: &Plan, done: Done) -> Outcome {
    let diff = match &plan.after {
        After::Same => String::new(),
        After::Bytes(after) => unified(found.path(), found.bytes(), Some(after)),
        After::Gone => unified(found.path(), found.bytes(), None),
    };
    Outcome { diff, ..outcome(found, plan, done, None) }
}

/// Removes folders that hold nothing, innermost first.
pub(super) fn remove_empty(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let _stays_if_anything_is_in_it = fs::remove_dir(folder);
    }
}
