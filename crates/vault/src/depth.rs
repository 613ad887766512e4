//! Room for work that goes down into folders step by step. No path is longer than the system allows, so there is a limit to
//! how deep it goes; but what a thread has by itself may be too little for it.

use std::thread;

/// Enough for the longest path of the shortest names. Only what is used of it takes memory.
const STACK: usize = 128 << 20;

/// Does something with room for all the folders that can lie inside each other.
pub(crate) fn with_room<T: Send>(work: impl Fn() -> T + Sync) -> T {
    thread::scope(|scope| {
        let helper = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, &work);
        match helper.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // Where no helper can be had, the room that is there has to do.
            Err(_) => work(),
        }
    })
}
