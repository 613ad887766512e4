//! Reads the timeline beside the cellar, for whoever wants to hear what was told before. Each look opens the store anew and
//! blocks; nothing is ever written.

use unstuck_store::{Bookmark, Root, StoreError, StoredEvent, Wanted};

use crate::bus::{Archive, Event};
use crate::store::Store;
use crate::toolbox::now;

/// The timeline of a store.
#[derive(Debug, Clone)]
pub(crate) struct Timeline(pub(crate) Store);

/// Why the reading of a page ends.
enum End {
    Enough,
    Broken(StoreError),
}

impl From<StoreError> for End {
    fn from(error: StoreError) -> End {
        End::Broken(error)
    }
}

impl Timeline {
    /// Its newest place; the very first where there is no store yet or it cannot be read.
    pub(crate) fn newest(&self) -> Bookmark {
        let newest = self.open().and_then(|store| store.map(|store| store.newest()).transpose());
        newest.ok().flatten().unwrap_or_default()
    }

    /// Events after one place and up to another, at most so many.
    pub(super) fn events(
        &self,
        after: Bookmark,
        up_to: Bookmark,
        most: usize,
    ) -> Result<Vec<StoredEvent>, String> {
        let mut page = Vec::new();
        let mut read = || {
            let Some(store) = self.open()? else { return Ok(()) };
            store.events(&Wanted::default(), after, up_to, |event| match page.len() < most {
                true => {
                    page.push(event);
                    Ok(())
                }
                false => Err(End::Enough),
            })
        };
        match read() {
            Ok(()) | Err(End::Enough) => Ok(page),
            Err(End::Broken(error)) => Err(error.to_string()),
        }
    }

    /// The store itself; nothing where nothing was ever written.
    pub(super) fn open(&self) -> Result<Option<unstuck_store::Store>, StoreError> {
        let Store { path, patience, .. } = &self.0;
        let opened = Root::existing(path, None)
            .and_then(|root| unstuck_store::Store::to_read(&root, *patience, now()));
        match opened {
            Ok(store) => Ok(Some(store)),
            Err(StoreError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Archive for Timeline {
    fn page(&self, after: Bookmark, up_to: Bookmark, most: usize) -> Result<Vec<Event>, String> {
        Ok(self.events(after, up_to, most)?.into_iter().map(|event| Event::stored(event, None)).collect())
    }
}
