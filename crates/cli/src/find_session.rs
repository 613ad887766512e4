//! Finds the session somebody means: by its name, or by enough of its beginning.

use unstuck_judge::quote;
use unstuck_store::{NAME_MAX, Store, StoreError, StoredSession};
use unstuck_wire::clean::Cleaner;

use crate::exit::{Among, CommandError};
use crate::nearest::nearest;

/// How many sessions are compared with a name that nobody has.
const COMPARED: u32 = 1000;
/// How many are listed where a beginning fits several.
const LISTED: usize = 10;

/// The session that is called so, or the only one whose name begins so.
pub(crate) fn find_session(
    store: &Store,
    cleaner: &Cleaner,
    asked: &str,
) -> Result<StoredSession, CommandError> {
    if let Some(session) = session_named(store, cleaner, asked)? {
        return Ok(session);
    }
    let mut like = sessions_like(store, cleaner, asked)?;
    match like.len() {
        0 => {
            let sessions = store.sessions(COMPARED)?;
            let nearest = nearest(asked, sessions.iter().map(|session| &*session.name)).map(str::to_owned);
            Err(CommandError::NoSuchSession { name: asked.to_owned(), nearest })
        }
        1 => Ok(like.remove(0)),
        all => {
            let listed = like.iter().take(LISTED);
            let candidates: Vec<String> =
                listed.map(|session| quote::bare(&session.name).into_owned()).collect();
            let more = all - candidates.len();
            Err(CommandError::Ambiguous { asked: asked.to_owned(), among: Among::Sessions, candidates, more })
        }
    }
}

/// The session that is called exactly so. Names are cleaned and bounded before they are stored, so whoever knows the
/// original is understood as well.
pub(crate) fn session_named(
    store: &Store,
    cleaner: &Cleaner,
    asked: &str,
) -> Result<Option<StoredSession>, StoreError> {
    match store.session(asked)? {
        Some(session) => Ok(Some(session)),
        None => store.session(&cleaner.name(asked, NAME_MAX)),
    }
}

/// The sessions whose stored or original name begins so, the newest first.
fn sessions_like(store: &Store, cleaner: &Cleaner, asked: &str) -> Result<Vec<StoredSession>, StoreError> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let like = store.sessions_like(asked, u32::MAX)?;
    let cleaned = cleaner.line(asked, NAME_MAX);
    match like.is_empty() && !cleaned.is_empty() && *cleaned != *asked {
        true => store.sessions_like(&cleaned, u32::MAX),
        false => Ok(like),
    }
}
