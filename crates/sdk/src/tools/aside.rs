//! Work that keeps its thread, done on one that is there for it.

use std::io::{self, Read};
use std::panic;

use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::context::ToolContext;
use crate::failure::Failure;

/// Does `work` aside and waits for it. It is handed the token that says when nobody waits any more; the toolbox sets it also
/// where it drops whoever waits here.
pub(super) async fn run<T: Send + 'static>(
    context: &ToolContext,
    work: impl FnOnce(&CancellationToken) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let cancellation = context.cancellation().clone();
    match spawn_blocking(move || work(&cancellation)).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(payload) => panic::resume_unwind(payload),
            Err(_) => Err(given_up()),
        },
    }
}

/// Fails where nobody waits any more.
pub(super) fn goes_on(cancellation: &CancellationToken) -> Result<(), Failure> {
    if cancellation.is_cancelled() { Err(given_up()) } else { Ok(()) }
}

pub(super) fn given_up() -> Failure {
    Failure::interrupted("interrupted: nobody waits for it any more, and nothing was done")
}

/// Reads as long as somebody waits: no file is too large to be given up in the middle.
pub(super) struct Heeding<'a, R> {
    pub(super) input: R,
    pub(super) cancellation: &'a CancellationToken,
}

impl<R: Read> Read for Heeding<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.cancellation.is_cancelled() {
            true => Err(io::Error::other("nobody waits for it any more")),
            false => self.input.read(buffer),
        }
    }
}
