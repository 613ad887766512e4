//! The tools of a toolbox. They may be replaced while calls are under way: each call goes on with those it began with.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::builder::BuildError;
use super::installed::Installed;

/// The tools of one moment.
pub(crate) struct Shelf {
    all: Vec<Arc<Installed>>,
    by_name: HashMap<Arc<str>, usize>,
}

impl Shelf {
    /// Puts them side by side, in their order.
    pub(super) fn new(
        tools: impl Iterator<Item = Result<Installed, BuildError>>,
    ) -> Result<Shelf, BuildError> {
        let mut shelf = Shelf { all: Vec::new(), by_name: HashMap::new() };
        for tool in tools {
            let tool = tool?;
            if !is_name(&tool.name) {
                return Err(BuildError::BadName { name: tool.name.to_string() });
            }
            if shelf.by_name.insert(Arc::clone(&tool.name), shelf.all.len()).is_some() {
                return Err(BuildError::SameName { name: tool.name.to_string() });
            }
            shelf.all.push(Arc::new(tool));
        }
        Ok(shelf)
    }

    /// All of them, in the order in which they were added.
    pub(crate) fn all(&self) -> &[Arc<Installed>] {
        &self.all
    }

    /// The one of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Installed>> {
        self.by_name.get(name).and_then(|place| self.all.get(*place))
    }
}

/// The tools as they are now.
pub(crate) struct Shelves(RwLock<Arc<Shelf>>);

impl Shelves {
    pub(super) fn new(shelf: Shelf) -> Shelves {
        Shelves(RwLock::new(Arc::new(shelf)))
    }

    /// Those of this moment, which stay as they are for whoever has them.
    pub(crate) fn now(&self) -> Arc<Shelf> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts others in their place.
    pub(super) fn replace(&self, shelf: Shelf) {
        let new = Arc::new(shelf);
        let old = std::mem::replace(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), new);
        // Tools are dropped where nobody waits for the lock.
        drop(old);
    }
}

fn is_name(name: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "_-./".contains(sign);
    (1..=128).contains(&name.len()) && name.chars().all(is_sign)
}
