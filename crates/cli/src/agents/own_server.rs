//! Our own server among those of a client: added once, taken out again.

use serde_json::{Value, json};

use super::server::{Left, Server, State};
use super::wrapping::{Fate, Wrapping};
use crate::editing::{Edit, EditError, Sheet, Written};

/// The name of our own server.
pub(super) const OWN: &str = "unstuck";

impl Wrapping {
    /// Adds it, and notes which keys had to be made for it.
    pub(super) fn add_own(
        &self,
        sheet: &mut Sheet<'_>,
        made: &mut Vec<String>,
        known: Option<&Written>,
    ) -> Result<(Server, Fate), EditError> {
        let (holder, form) = (vec![self.client.holder.to_owned()], &self.client.form);
        let place = self.own_place();
        let wanted = form.own_entry(&self.program);
        let server = |entry: Value| Server::new(form, self.config.scope, place.clone(), entry, known);
        if let Some(entry) = sheet.value_at(&place)? {
            let old = server(entry);
            let is_own = old.state == State::Never(Left::Own);
            let is_current = form.words(&old.entry).first() == Some(&self.program);
            let fate = match (is_own, is_current) {
                (false, _) => Fate::NameTaken,
                (true, true) => Fate::Already,
                (true, false) => {
                    *sheet = sheet.edit(&place, &form.mend(&self.program))?;
                    Fate::Mended
                }
            };
            return Ok((old, fate));
        }
        *sheet = match sheet.value_at(&holder)? {
            Some(_) => sheet.edit(&holder, &[Edit::Put(OWN, wanted.clone())])?,
            None => {
                made.push(format!("/{}", self.client.holder));
                sheet.edit(&[], &[Edit::Put(self.client.holder, json!({OWN: wanted}))])?
            }
        };
        made.push(format!("/{}/{OWN}", self.client.holder));
        Ok((server(wanted), Fate::Added))
    }

    /// The sheet without it, and without what was made for it and is empty now.
    pub(super) fn without_own<'f>(
        &self,
        sheet: &Sheet<'f>,
        own: &Server,
        known: Option<&Written>,
    ) -> Result<Sheet<'f>, EditError> {
        let holder = own.place.split_last().map_or(&[][..], |(_, holder)| holder);
        let sheet = sheet.edit(holder, &[Edit::Drop(OWN)])?;
        let path = format!("/{}", self.client.holder);
        let is_made = known.is_some_and(|known| known.made.contains(&path));
        match is_made && sheet.value_at(holder)? == Some(json!({})) {
            true => sheet.edit(&[], &[Edit::Drop(self.client.holder)]),
            false => Ok(sheet),
        }
    }

    /// Did we add it ourselves?
    pub(super) fn has_made_own(&self, known: &Written) -> bool {
        known.made.contains(&format!("/{}/{OWN}", self.client.holder))
    }

    pub(super) fn own_place(&self) -> Vec<String> {
        vec![self.client.holder.to_owned(), OWN.to_owned()]
    }
}
