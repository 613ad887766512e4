//! One file of one client: which of its servers go through us, how they come to do that and cease to, and whether they do.

use std::path::Path;

use serde_json::{Value, json};

use super::change::{Change, Plan};
use super::client::{Client, Config};
use super::own_server::OWN;
use super::place::Scope;
use super::server::{Left, Server, State, Wrapper};
use crate::editing::{After, Backups, Before, EditError, Found, Ledger, Sheet, Wrapped, Written, hash};

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

/// The servers of a file, and what became of each.
pub(crate) type Fates = Vec<(Server, Fate)>;

impl Wrapping {
    /// For whoever only looks.
    pub(crate) fn to_look(client: &'static Client, config: Config) -> Wrapping {
        Wrapping { client, config, program: String::new(), aim: Aim::Servers(Vec::new()) }
    }

    /// Every server in the file, also those that hold in another folder only.
    pub(crate) fn everything(&self, ledger: Option<&Ledger>) -> Result<Vec<Server>, EditError> {
        let found = Found::as_it_is(&self.config.file)?;
        let sheet = self.sheet(&found, found.bytes())?;
        self.everywhere(&sheet, ledger.and_then(|ledger| ledger.about(found.path())))
    }

    /// Every server in the file that holds here.
    pub(crate) fn servers(&self, ledger: Option<&Ledger>) -> Result<Vec<Server>, EditError> {
        let found = Found::as_it_is(&self.config.file)?;
        let sheet = self.sheet(&found, found.bytes())?;
        self.listed(&sheet, &self.config.holders, ledger.and_then(|ledger| ledger.about(found.path())))
    }
}

impl Change for Wrapping {
    type Seen = Fates;

    fn file(&self) -> &Path {
        &self.config.file
    }

    fn agent(&self) -> &'static str {
        self.client.word
    }

    fn commands(&self, _: Option<&Written>) -> Vec<String> {
        // Servers are noted with the place of each.
        Vec::new()
    }

    fn plan_in(&self, found: &Found, known: Option<&Written>) -> Result<Plan<Fates>, EditError> {
        let old = self.sheet(found, found.bytes())?;
        let mut sheet = old.clone();
        let mut made = known.map(|known| known.made.clone()).unwrap_or_default();
        let fates = match &self.aim {
            Aim::Own => vec![self.add_own(&mut sheet, &mut made, known)?],
            Aim::Servers(only) => {
                let mut fates = Vec::new();
                let servers = self.listed(&sheet, &self.config.holders, known)?;
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
        Ok(Plan { after, made, servers, seen: fates })
    }

    fn plan_out(
        &self,
        found: &Found,
        known: Option<&Written>,
        backups: &Backups,
    ) -> Result<Plan<Fates>, EditError> {
        let Some(bytes) = found.bytes() else {
            let (made, servers, seen) = (Vec::new(), Vec::new(), Vec::new());
            return Ok(Plan { after: After::Same, made, servers, seen });
        };
        let sheet = self.sheet(found, Some(bytes))?;
        let (without, seen) = self.strip(&sheet, found, known, backups, |server| self.is_meant(server))?;
        let servers = self.ours(&sheet, &without, known)?;
        let mut made = known.map(|known| known.made.clone()).unwrap_or_default();
        if without.value_at(&self.own_place())?.is_none() {
            made.clear();
        }
        let mut plan = Plan { after: After::Same, made, servers, seen };
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

    fn without(
        &self,
        found: &Found,
        bytes: &[u8],
        known: Option<&Written>,
        backups: &Backups,
    ) -> Result<Vec<u8>, EditError> {
        let sheet = self.sheet(found, Some(bytes))?;
        let has_own = known.is_some_and(|known| self.has_made_own(known));
        let is_ours = |server: &Server| has_own || server.state != State::Never(Left::Own);
        let (without, _) = self.strip(&sheet, found, known, backups, is_ours)?;
        Ok(without.bytes())
    }

    fn is_out(&self, ledger: &Ledger) -> Result<bool, EditError> {
        let found = Found::as_it_is(&self.config.file)?;
        let Some(bytes) = found.bytes() else { return Ok(true) };
        let sheet = self.sheet(&found, Some(bytes))?;
        let known = ledger.about(found.path());
        Ok(!self.everywhere(&sheet, known)?.iter().any(|server| self.is_meant(server)))
    }
}

impl Wrapping {
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

    /// The sheet without those of our entries that are chosen.
    fn strip<'f>(
        &self,
        sheet: &Sheet<'f>,
        found: &'f Found,
        known: Option<&Written>,
        backups: &Backups,
        is_chosen: impl Fn(&Server) -> bool,
    ) -> Result<(Sheet<'f>, Fates), EditError> {
        let copy = known.and_then(|known| match &known.before {
            Before::Copy(copy) => backups.read(copy).ok(),
            Before::Nothing => None,
        });
        let before = copy.and_then(|bytes| self.sheet(found, Some(&bytes)).ok());
        let mut sheet = sheet.clone();
        let mut fates = Vec::new();
        for server in self.everywhere(&sheet, known)? {
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
        let before = self.everywhere(old, known)?;
        let noted = |server: &Server| {
            let was = before.iter().filter(is_ours).find(|each| each.place == server.place);
            let known = known.and_then(|known| known.servers.iter().find(|each| each.place == server.place));
            let left = match (was, known) {
                (Some(was), Some(known)) if fingerprint(old, was) != known.left => known.left.clone(),
                (Some(_) | None, _) => fingerprint(new, server),
            };
            Wrapped { place: server.place.clone(), left }
        };
        Ok(self.everywhere(new, known)?.iter().filter(is_ours).map(noted).collect())
    }

    /// Every server in a sheet, also those that hold in another folder only. There may be hundreds of folders, and a file of many
    /// megabytes, so it is read once for all of them.
    fn everywhere(&self, sheet: &Sheet<'_>, known: Option<&Written>) -> Result<Vec<Server>, EditError> {
        let mut servers = self.listed(sheet, &self.config.holders, known)?;
        if self.config.scope == Scope::User {
            let projects = sheet.value_at(&[PROJECTS.to_owned()])?.unwrap_or_default();
            for (folder, project) in projects.as_object().into_iter().flatten() {
                let entries = project.get(self.client.holder).cloned().unwrap_or_default();
                let holder = [PROJECTS, folder, self.client.holder].map(str::to_owned);
                self.add_servers(&holder, entries, known, &mut servers);
            }
        }
        Ok(servers)
    }

    fn listed(
        &self,
        sheet: &Sheet<'_>,
        holders: &[Vec<String>],
        known: Option<&Written>,
    ) -> Result<Vec<Server>, EditError> {
        let mut servers: Vec<Server> = Vec::new();
        for holder in holders {
            let entries = sheet.object_at(holder)?.unwrap_or_default();
            self.add_servers(holder, entries, known, &mut servers);
        }
        Ok(servers)
    }

    /// Adds the servers of one object, each once.
    fn add_servers(
        &self,
        holder: &[String],
        entries: Value,
        known: Option<&Written>,
        servers: &mut Vec<Server>,
    ) {
        let Value::Object(entries) = entries else { return };
        for (name, entry) in entries {
            let place = [holder, &[name]].concat();
            if servers.iter().all(|server| server.place != place) {
                servers.push(Server::new(&self.client.form, self.config.scope, place, entry, known));
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
