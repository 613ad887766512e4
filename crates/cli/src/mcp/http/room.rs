//! How many requests can be under way at once: each may need a connection of its own.

/// More than this wait for their turn.
const MOST: usize = 1024;
/// Files that are not for connections: the store, the standard streams, answers to what a server asks.
const SPARED: usize = 128;

/// Finds out how many there can be, after it asked for as many as are wanted.
#[cfg(unix)]
pub(super) fn for_requests() -> usize {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return SPARED };
    let wanted = ((MOST + 2 * SPARED) as u64).min(hard);
    let soft = match soft < wanted && setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).is_ok() {
        true => wanted,
        false => soft,
    };
    let files = usize::try_from(soft).unwrap_or(usize::MAX);
    files.saturating_sub(2 * SPARED).max(files / 2).clamp(16, MOST)
}

#[cfg(not(unix))]
pub(super) fn for_requests() -> usize {
    MOST
}
