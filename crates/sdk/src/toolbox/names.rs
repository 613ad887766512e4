//! The names that calls were given. Some models name every first call of a message alike, and a record needs names that
//! are none but one call's.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use crate::call::{CallId, Session};

/// How many names are remembered. Who comes back after so many others is taken for new.
const REMEMBERED: usize = 65_536;

/// How often each name was given.
#[derive(Default)]
pub(crate) struct Names {
    hasher: RandomState,
    given: Mutex<HashMap<u64, u32>>,
}

impl Names {
    /// Remembers names that were given by a process that is gone.
    pub(crate) fn remember<'a>(&self, session: &Session, names: impl Iterator<Item = &'a CallId>) {
        for name in names {
            // As it was given: whatever number it got stands behind.
            let given = name.as_str().split(['~', '#']).next().unwrap_or_default();
            let _its_number = self.take(session, given.into());
        }
    }

    /// The name itself where it is new, with a number behind it where it is not.
    pub(crate) fn take(&self, session: &Session, name: CallId) -> CallId {
        let key = self.hasher.hash_one((session, &name));
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if given.len() >= REMEMBERED && !given.contains_key(&key) {
            given.clear();
        }
        let times = given.entry(key).or_default();
        *times += 1;
        match *times {
            1 => name,
            again => CallId::from(format!("{name}~{again}")),
        }
    }
}

/// The name as it was given, without a number behind it.
#[cfg(feature = "tower")]
pub(crate) fn given(name: &CallId) -> CallId {
    match name.as_str().rsplit_once('~') {
        Some((given, again)) if again.parse::<u32>().is_ok() => CallId::from(given),
        _ => name.clone(),
    }
}
