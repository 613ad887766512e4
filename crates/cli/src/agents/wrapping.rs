//! One file of one client: sends its servers through us, or no longer, and tells whether they go. What is to be written is
//! worked out from what was read, and worked out again whenever somebody else was faster.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::client::{Client, Config};
use super::installation::{Done, Tools, remove_empty};
use super::own_server::OWN;
use super::place::Scope;
use super::server::{Left, Server, State, Wrapper};
use crate::editing::{
    After, Backups, Before, EditError, Found, Ledger, Put, Sheet, Wrapped, Written, hash, make_folders, put,
    sweep, unified,
};

/// How often somebody else may be faster.
const TRIES: u32 = 5;

/// The key under which Claude Code keeps what holds in one folder only.
pub(super) const PROJECTS: &str = "projects";

/// A file, and what should become of the servers in it.
#[derive(Debug)]
pub(crate) struct Wrapping {
    pub(crate) client: &'static Client,
    pub(crate) config: Config,
    /// Our own program.
    pub(crate) program: String,
    pub(crate) aim: Aim,
}

/// Which entries are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Aim {
    /// The servers of others: those of these names, or all.
    Servers(Vec<String>),
    /// Our own server.
    Own,
}

/// What became of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It goes through us now.
    Wrapped,
    /// The same, because somebody asked for it by name.
    AllTheSame(Left),
    /// It did already, by a path that is not ours any more.
    Mended,
    /// It does already.
    Already,
    /// It does already, because somebody wrote that by hand.
    ByHand,
    /// It no longer does.
    Unwrapped,
    /// It is as it was.
    Left(Left),
    /// Our own server was added.
    Added,
    /// Our own server was taken out.
    TakenOut,
    /// Something else has the name of our own server.
    NameTaken,
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reshaped {
    /// Where it really lies.
    pub(crate) file: PathBuf,
    pub(crate) done: Done,
    /// The copy of what was there before.
    pub(crate) backup: Option<PathBuf>,
    /// The change, where it was only thought of.
    pub(crate) diff: String,
    pub(crate) fates: Vec<(Server, Fate)>,
}

/// What a file is to become.
struct Plan {
    after: After,
    fates: Vec<(Server, Fate)>,
    /// Our servers that stand in it then.
    servers: Vec<Wrapped>,
    /// Keys that were made for our own server.
    made: Vec<String>,
}

impl Plan {
    fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.made.is_empty()
    }
}

impl Wrapping {
    /// For whoever only looks.
    pub(crate) fn to_look(client: &'static Client, config: Config) -> Wrapping {
        Wrapping { client, config, program: String::new(), aim: Aim::Servers(Vec::new()) }
    }

    /// Every server in the file, also those that hold in another folder only.
    pub(crate) fn everything(&self) -> Result<Vec<Server>, EditError> {
        let found = Found::as_it_is(&self.config.file)?;
        let sheet = self.sheet(&found, found.bytes())?;
        self.everywhere(&sheet)
    }

    /// Every server in the file that holds here.
    pub(crate) fn servers(&self) -> Result<Vec<Server>, EditError> {
        let found = Found::as_it_is(&self.config.file)?;
        let sheet = self.sheet(&found, found.bytes())?;
        self.listed(&sheet, &self.config.holders)
    }

    /// Does what is wanted.
    pub(crate) fn put_in(&self, tools: &mut Tools<'_>) -> Result<Reshaped, EditError> {
        for _ in 0..TRIES {
            let found = Found::look(&self.config.file)?;
            let known = tools.ledger.about(found.path()).cloned();
            let plan = self.plan_in(&found, known.as_ref())?;
            let done = match (&plan.after, found.bytes()) {
                (After::Same | After::Gone, _) => return Ok(reshaped(&found, plan, Done::Nothing, None)),
                (After::Bytes(_), Some(_)) => Done::Changed,
                (After::Bytes(_), None) => Done::Made,
            };
            found.may_be_replaced()?;
            if tools.dry_run {
                return Ok(prospect(&found, plan, done));
            }
            let folders = make_folders(found.path().parent().unwrap_or(Path::new("/")))?;
            sweep(found.path());
            let written = self.write_in(tools, &found, &plan, known.as_ref(), &folders);
            if !matches!(written, Ok((Put::Done, _))) {
                remove_empty(&folders);
            }
            if let (Put::Done, backup) = written? {
                tools.backups.thin_out(found.path(), &tools.ledger.copies());
                return Ok(reshaped(&found, plan, done, backup));
            }
        }
        Err(EditError::KeepsChanging { path: self.config.file.clone() })
    }

    fn write_in(
        &self,
        tools: &mut Tools<'_>,
        found: &Found,
        plan: &Plan,
        known: Option<&Written>,
        folders: &[PathBuf],
    ) -> Result<(Put, Option<PathBuf>), EditError> {
        let before = self.before(tools, found, known)?;
        let backup = found.bytes().map(|bytes| tools.backups.keep(found.path(), bytes, tools.now + 1));
        let folders = match known {
            Some(known) if folders.is_empty() => known.folders.clone(),
            Some(_) | None => folders.to_vec(),
        };
        tools.ledger.note(self.written(tools.now, found, plan, before, folders))?;
        let result = put(found, &plan.after);
        if !matches!(result, Ok(Put::Done)) {
            match known {
                Some(known) => tools.ledger.note(known.clone())?,
                None => tools.ledger.forget(found.path())?,
            }
        }
        Ok((result?, backup.transpose()?))
    }

    /// Undoes it.
    pub(crate) fn take_out(&self, tools: &mut Tools<'_>) -> Result<Reshaped, EditError> {
        for _ in 0..TRIES {
            let found = Found::look(&self.config.file)?;
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
                    Some(self.before(tools, &found, known.as_ref())?)
                }
            };
            if let Put::Done = put(&found, &plan.after)? {
                let folders = known.map(|known| known.folders).unwrap_or_default();
                match before {
                    Some(before) => {
                        tools.ledger.note(self.written(tools.now, &found, &plan, before, folders))?
                    }
                    None if plan.is_empty() => {
                        remove_empty(&folders);
                        tools.ledger.forget(found.path())?;
                    }
                    None => {}
                }
                tools.backups.thin_out(found.path(), &tools.ledger.copies());
                return Ok(reshaped(&found, plan, done, backup));
            }
        }
        Err(EditError::KeepsChanging { path: self.config.file.clone() })
    }

    /// Is everything as it should be?
    pub(crate) fn is_in(&self, ledger: &Ledger) -> Result<bool, EditError> {
        let found = Found::as_it_is(&self.config.file)?;
        let known = ledger.about(found.path());
        Ok(found.bytes().is_some() && matches!(self.plan_in(&found, known)?.after, After::Same))
    }

    /// Is nothing of us in the file, as far as it was asked for?
    pub(crate) fn is_out(&self, _: &Ledger) -> Result<bool, EditError> {
        let found = Found::as_it_is(&self.config.file)?;
        let Some(bytes) = found.bytes() else { return Ok(true) };
        let sheet = self.sheet(&found, Some(bytes))?;
        Ok(!self.everywhere(&sheet)?.iter().any(|server| self.is_meant(server)))
    }

    /// What was there before us: the copy that is known, or one made of what is there now, without us.
    fn before(&self, tools: &Tools<'_>, found: &Found, known: Option<&Written>) -> Result<Before, EditError> {
        let Some(bytes) = found.bytes() else { return Ok(Before::Nothing) };
        if let Some(known) = known.filter(|known| known.is_left(bytes)) {
            return Ok(known.before.clone());
        }
        let sheet = self.sheet(found, Some(bytes))?;
        let has_own = known.is_some_and(|known| self.has_made_own(known));
        let is_ours = |server: &Server| has_own || server.state != State::Never(Left::Own);
        let (without, _) = self.strip(&sheet, found, known, tools.backups, is_ours)?;
        Ok(Before::Copy(tools.backups.keep(found.path(), &without.bytes(), tools.now)?))
    }

    fn written(
        &self,
        now: u64,
        found: &Found,
        plan: &Plan,
        before: Before,
        folders: Vec<PathBuf>,
    ) -> Written {
        let left = match &plan.after {
            After::Bytes(bytes) => hash(bytes),
            After::Same | After::Gone => hash(found.bytes().unwrap_or_default()),
        };
        Written {
            file: found.path().to_owned(),
            agent: self.client.word.to_owned(),
            at_ms: now,
            before,
            left,
            made: plan.made.clone(),
            folders,
            commands: Vec::new(),
            servers: plan.servers.clone(),
        }
    }

    fn plan_in(&self, found: &Found, known: Option<&Written>) -> Result<Plan, EditError> {
        let old = self.sheet(found, found.bytes())?;
        let mut sheet = old.clone();
        let mut made = known.map(|known| known.made.clone()).unwrap_or_default();
        let fates = match &self.aim {
            Aim::Own => vec![self.add_own(&mut sheet, &mut made)?],
            Aim::Servers(only) => {
                let mut fates = Vec::new();
                let servers = self.listed(&sheet, &self.config.holders)?;
                for server in servers.into_iter().filter(|server| is_named(only, server)) {
                    let fate = self.wrap(&mut sheet, &server, !only.is_empty())?;
                    fates.push((server, fate));
                }
                fates
            }
        };
        let after = sheet.bytes();
        let servers = self.ours(&old, &sheet, known)?;
        let after = match found.bytes().unwrap_or_default() == after || fates.is_empty() {
            true => After::Same,
            false => After::Bytes(after),
        };
        Ok(Plan { after, fates, servers, made })
    }

    /// Sends one server through us, where it can be.
    fn wrap(&self, sheet: &mut Sheet<'_>, server: &Server, is_asked: bool) -> Result<Fate, EditError> {
        let form = &self.client.form;
        let (edits, fate) = match &server.state {
            State::Open => (form.wrap(&self.program, &server.name, &server.entry), Fate::Wrapped),
            State::OnRequest(why) if is_asked => {
                (form.wrap(&self.program, &server.name, &server.entry), Fate::AllTheSame(*why))
            }
            State::Wrapped { program, by: Wrapper::Us } if *program != Path::new(&self.program) => {
                (form.mend(&self.program), Fate::Mended)
            }
            State::Wrapped { by: Wrapper::Us, .. } => return Ok(Fate::Already),
            State::Wrapped { by: Wrapper::Hand, .. } => return Ok(Fate::ByHand),
            State::OnRequest(why) | State::Never(why) => return Ok(Fate::Left(*why)),
        };
        *sheet = sheet.edit(&server.place, &edits)?;
        Ok(fate)
    }

    fn plan_out(&self, found: &Found, known: Option<&Written>, backups: &Backups) -> Result<Plan, EditError> {
        let Some(bytes) = found.bytes() else {
            return Ok(Plan { after: After::Same, fates: Vec::new(), servers: Vec::new(), made: Vec::new() });
        };
        let sheet = self.sheet(found, Some(bytes))?;
        let (without, fates) = self.strip(&sheet, found, known, backups, |server| self.is_meant(server))?;
        let servers = self.ours(&sheet, &without, known)?;
        let mut made = known.map(|known| known.made.clone()).unwrap_or_default();
        if without.value_at(&self.own_place())?.is_none() {
            made.clear();
        }
        let mut plan = Plan { after: After::Same, fates, servers, made };
        let is_changed = without.bytes() != bytes;
        if !is_changed {
            return Ok(plan);
        }
        plan.after = After::Bytes(without.bytes());
        let Some(known) = known else { return Ok(plan) };
        let is_last = plan.is_empty();
        match &known.before {
            // Nobody has touched it since: what was there before comes back, to the byte.
            Before::Copy(copy) if is_last && known.is_left(bytes) => {
                if let Ok(before) = backups.read(copy) {
                    plan.after = After::Bytes(before);
                }
            }
            Before::Nothing if is_last && without.value_at(&[])? == Some(json!({})) => {
                plan.after = After::Gone;
            }
            Before::Copy(_) | Before::Nothing => {}
        }
        Ok(plan)
    }

    /// The sheet without those of our entries that are chosen.
    fn strip<'f>(
        &self,
        sheet: &Sheet<'f>,
        found: &'f Found,
        known: Option<&Written>,
        backups: &Backups,
        is_chosen: impl Fn(&Server) -> bool,
    ) -> Result<(Sheet<'f>, Vec<(Server, Fate)>), EditError> {
        let copy = known.and_then(|known| match &known.before {
            Before::Copy(copy) => backups.read(copy).ok(),
            Before::Nothing => None,
        });
        let before = copy.and_then(|bytes| self.sheet(found, Some(&bytes)).ok());
        let mut sheet = sheet.clone();
        let mut fates = Vec::new();
        for server in self.everywhere(&sheet)? {
            let fate = match &server.state {
                State::Wrapped { by: Wrapper::Us, .. } if is_chosen(&server) => {
                    sheet = self.unwrap(&sheet, &server, known, before.as_ref())?;
                    Fate::Unwrapped
                }
                State::Never(Left::Own) if is_chosen(&server) => {
                    sheet = self.without_own(&sheet, &server, known)?;
                    Fate::TakenOut
                }
                State::Wrapped { by: Wrapper::Hand, .. } if self.is_asked(&server) => Fate::ByHand,
                State::Wrapped { .. } | State::Open | State::OnRequest(_) | State::Never(_) => continue,
            };
            fates.push((server, fate));
        }
        Ok((sheet, fates))
    }

    /// Gives one server back as it was. Where its entry is what we left, its very text comes back.
    fn unwrap<'f>(
        &self,
        sheet: &Sheet<'f>,
        server: &Server,
        known: Option<&Written>,
        before: Option<&Sheet<'f>>,
    ) -> Result<Sheet<'f>, EditError> {
        let left = known.and_then(|known| known.servers.iter().find(|each| each.place == server.place));
        let is_left = left.is_some_and(|left| left.left == fingerprint(sheet, server));
        if let Some(old) = before.and_then(|before| before.text_at(&server.place)).filter(|_| is_left)
            && let Some(sheet) = sheet.with_text_at(&server.place, old)
        {
            return Ok(sheet);
        }
        let old = match before {
            Some(before) => before.value_at(&server.place)?,
            None => None,
        };
        sheet.edit(&server.place, &self.client.form.unwrap(&server.entry, old.as_ref()))
    }

    /// Is this an entry of ours that was asked for?
    fn is_meant(&self, server: &Server) -> bool {
        let is_ours = match (&server.state, &self.aim) {
            (State::Wrapped { by: Wrapper::Us, .. }, Aim::Servers(_)) => true,
            (State::Never(Left::Own), Aim::Own) => server.name == OWN,
            (State::Wrapped { .. } | State::Open | State::OnRequest(_) | State::Never(_), _) => false,
        };
        is_ours && self.is_asked(server)
    }

    fn is_asked(&self, server: &Server) -> bool {
        match &self.aim {
            Aim::Servers(only) => is_named(only, server),
            Aim::Own => server.name == OWN,
        }
    }

    /// Our servers that stand in the new sheet, as the ledger notes them. What somebody else made of an entry since is not what we
    /// left.
    fn ours(
        &self,
        old: &Sheet<'_>,
        new: &Sheet<'_>,
        known: Option<&Written>,
    ) -> Result<Vec<Wrapped>, EditError> {
        let is_ours = |server: &&Server| matches!(server.state, State::Wrapped { by: Wrapper::Us, .. });
        let before = self.everywhere(old)?;
        let noted = |server: &Server| {
            let was = before.iter().filter(is_ours).find(|each| each.place == server.place);
            let known = known.and_then(|known| known.servers.iter().find(|each| each.place == server.place));
            let left = match (was, known) {
                (Some(was), Some(known)) if fingerprint(old, was) != known.left => known.left.clone(),
                (Some(_) | None, _) => fingerprint(new, server),
            };
            Wrapped { place: server.place.clone(), left }
        };
        Ok(self.everywhere(new)?.iter().filter(is_ours).map(noted).collect())
    }

    /// Every server in a sheet, also those that hold in another folder only. There may be hundreds of folders, and a file of many
    /// megabytes, so it is read once for all of them.
    fn everywhere(&self, sheet: &Sheet<'_>) -> Result<Vec<Server>, EditError> {
        let mut servers = self.listed(sheet, &self.config.holders)?;
        if self.config.scope == Scope::User {
            let projects = sheet.value_at(&[PROJECTS.to_owned()])?.unwrap_or_default();
            for (folder, project) in projects.as_object().into_iter().flatten() {
                let entries = project.get(self.client.holder).cloned().unwrap_or_default();
                let holder = [PROJECTS, folder, self.client.holder].map(str::to_owned);
                self.add_servers(&holder, entries, &mut servers);
            }
        }
        Ok(servers)
    }

    fn listed(&self, sheet: &Sheet<'_>, holders: &[Vec<String>]) -> Result<Vec<Server>, EditError> {
        let mut servers: Vec<Server> = Vec::new();
        for holder in holders {
            let entries = sheet.object_at(holder)?.unwrap_or_default();
            self.add_servers(holder, entries, &mut servers);
        }
        Ok(servers)
    }

    /// Adds the servers of one object, each once.
    fn add_servers(&self, holder: &[String], entries: Value, servers: &mut Vec<Server>) {
        let Value::Object(entries) = entries else { return };
        for (name, entry) in entries {
            let place = [holder, &[name]].concat();
            if servers.iter().all(|server| server.place != place) {
                servers.push(Server::new(&self.client.form, self.config.scope, place, entry));
            }
        }
    }

    fn sheet<'f>(&self, found: &'f Found, bytes: Option<&[u8]>) -> Result<Sheet<'f>, EditError> {
        Sheet::read(found.path(), self.config.syntax, bytes)
    }
}

fn is_named(only: &[String], server: &Server) -> bool {
    only.is_empty() || only.contains(&server.name)
}

/// The hash of an entry as it stands.
fn fingerprint(sheet: &Sheet<'_>, server: &Server) -> String {
    match sheet.text_at(&server.place) {
        Some(text) => hash(text.as_bytes()),
        None => hash(server.entry.to_string().as_bytes()),
    }
}

fn reshaped(found: &Found, plan: Plan, done: Done, backup: Option<PathBuf>) -> Reshaped {
    Reshaped { file: found.path().to_owned(), done, backup, diff: String::new(), fates: plan.fates }
}

/// What would become of a file, with the change to it.
fn prospect(found: &Found, plan: Plan, done: Done) -> Reshaped {
    let diff = match &plan.after {
        After::Same => String::new(),
        After::Bytes(after) => unified(found.path(), found.bytes(), Some(after)),
        After::Gone => unified(found.path(), found.bytes(), None),
    };
    Reshaped { diff, ..reshaped(found, plan, done, None) }
}
