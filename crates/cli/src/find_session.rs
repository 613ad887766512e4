//! Finds the session somebody means: by its name, or by enough of its beginning.

use unstuck_store::{Store, StoredSession};

use crate::exit::CommandError;
use crate::nearest::nearest;
use crate::plain;

/// How many sessions are compared with a name that nobody has.
const COMPARED: u32 = 1000;
/// How many are listed where a beginning fits several.
const LISTED: u32 = 10;

/// The session that is called so, or the only one whose name begins so.
pub(crate) fn find_session(store: &Store, asked: &str) -> Result<StoredSession, CommandError> {
    if let Some(session) = store.session(asked)? {
        return Ok(session);
    }
    let mut like = if asked.is_empty() { Vec::new() } else { store.sessions_like(asked, LISTED)? };
    match (like.pop(), like.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(last), false) => {
            like.push(last);
            let candidates = like.iter().map(|session| plain::short(&session.name, 80)).collect();
            Err(CommandError::Ambiguous { asked: asked.to_owned(), candidates })
        }
        (None, _) => {
            let sessions = store.sessions(COMPARED)?;
            let nearest = nearest(asked, sessions.iter().map(|session| &*session.name)).map(str::to_owned);
            Err(CommandError::NoSuchSession { name: asked.to_owned(), nearest })
        }
    }
}
