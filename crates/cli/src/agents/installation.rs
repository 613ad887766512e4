//! One agent, one file: by which entries the agent calls us, how they come into the file and go again, and whether they are there.

use std::path::{Path, PathBuf};

use unstuck_wire::hook::Host;

use super::agent::{Agent, Carrier, Event, event_names};
use super::change::{Change, Plan};
use super::command_line::{command_line, is_noted, program_of};
use super::opencode;
use super::version::Reported;
use crate::editing::{
    After, Backups, Before, Dialect, Document, EditError, Entries, Found, Layout, Ledger, Wanted, Written,
};

/// An agent's file, and what should stand in it.
#[derive(Debug)]
pub(crate) struct Installation {
    pub(crate) agent: &'static Agent,
    pub(crate) file: PathBuf,
    /// Our own program.
    pub(crate) program: String,
    /// The version of the agent.
    pub(crate) version: Reported,
    /// What the agent is to tell us of.
    pub(crate) events: Vec<Event>,
    /// What this version cannot tell us of, or may not.
    pub(crate) left_out: Vec<Event>,
}

/// Command lines that call us in another way; nobody touched them.
pub(crate) type Alike = Vec<String>;

impl Installation {
    /// What an agent of this version is to be told.
    pub(crate) fn new(
        agent: &'static Agent,
        file: PathBuf,
        program: String,
        version: Reported,
    ) -> Installation {
        let (events, left_out) = agent.events_of(&version);
        Installation { agent, file, program, version, events, left_out }
    }

    /// For whoever takes us out, whatever was put in.
    pub(crate) fn to_take_out(agent: &'static Agent, file: PathBuf, program: String) -> Installation {
        let (events, left_out) = (Vec::new(), Vec::new());
        Installation { agent, file, program, version: Reported::NotAsked, events, left_out }
    }

    /// The line by which the agent calls us.
    pub(crate) fn line(&self) -> String {
        command_line(&self.program, self.agent.host)
    }

    /// What nobody asks for now, but may stand where it was put by one who knew more.
    fn tolerated(&self) -> Vec<&'static str> {
        match &self.version {
            Reported::Version(_) => Vec::new(),
            Reported::NotFound | Reported::NotAsked | Reported::Unreadable(_) => event_names(&self.left_out),
        }
    }
}

impl Change for Installation {
    type Seen = Alike;

    fn file(&self) -> &Path {
        &self.file
    }

    fn agent(&self) -> &'static str {
        self.agent.host.word()
    }

    fn commands(&self, known: Option<&Written>) -> Vec<String> {
        let line = self.line();
        let older = known.into_iter().flat_map(|known| &known.commands).filter(|older| **older != line);
        let older: Vec<String> = older.cloned().collect();
        [vec![line], older].concat()
    }

    fn plan_in(&self, found: &Found, known: Option<&Written>) -> Result<Plan<Alike>, EditError> {
        let (after, mut made, seen) = match &self.agent.carrier {
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
                let (wanted, tolerated) = (self.wanted(), self.tolerated());
                let made = known.map(|known| &known.made[..]);
                let holding =
                    self.with_entries(known, |entries| entries.put(&document, &wanted, &tolerated, made))?;
                let alike = self.alike(&document, known);
                (holding.document.bytes(), holding.made, alike)
            }
        };
        made.extend(known.into_iter().flat_map(|known| known.made.iter().cloned()));
        made.sort_unstable();
        made.dedup();
        let after = match found.bytes() == Some(&after[..]) {
            true => After::Same,
            false => After::Bytes(after),
        };
        Ok(Plan { after, made, servers: Vec::new(), seen })
    }

    fn plan_out(
        &self,
        found: &Found,
        known: Option<&Written>,
        backups: &Backups,
    ) -> Result<Plan<Alike>, EditError> {
        let plan = |after, seen| Ok(Plan { after, made: Vec::new(), servers: Vec::new(), seen });
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
        let without = self.without(found, bytes, known, backups)?;
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

    fn without(
        &self,
        found: &Found,
        bytes: &[u8],
        known: Option<&Written>,
        _: &Backups,
    ) -> Result<Vec<u8>, EditError> {
        if let Carrier::Plugin = &self.agent.carrier {
            return Ok(bytes.to_vec());
        }
        let document = self.document(found, Some(bytes))?;
        let made = known.map(|known| &known.made[..]);
        let is_untouched = self.with_entries(known, |entries| entries.standing(&document))?.is_empty();
        match is_untouched {
            true => Ok(bytes.to_vec()),
            false => Ok(self.with_entries(known, |entries| entries.take_out(&document, made))?.bytes()),
        }
    }

    fn is_out(&self, ledger: &Ledger) -> Result<bool, EditError> {
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
}

impl Installation {
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
        let is_ours = |line: &str| self.is_ours(line, known);
        let (top, command) = (self.agent.top(), self.line());
        act(&Entries { layout, command_key, top: &top, command: &command, is_ours: &is_ours })
    }

    /// Command lines that call us in another way than ours.
    fn alike(&self, document: &Document<'_>, known: Option<&Written>) -> Alike {
        let mut lines = Vec::new();
        strings(document.value().get("hooks").unwrap_or_default(), &mut lines);
        lines.retain(|line| calls_us(line, self.agent.host) && !self.is_ours(line, known));
        lines.dedup();
        lines
    }

    /// Is this a line that we wrote, now or earlier?
    fn is_ours(&self, line: &str, known: Option<&Written>) -> bool {
        is_noted(line, known) || program_of(line, self.agent.host, known).is_some()
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
