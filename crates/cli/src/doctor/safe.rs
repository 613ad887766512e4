//! The safe: can it be opened, and what is in it. Whether every byte is as it was written, `unstuck snapshots check` tells.

use super::Doctor;
use crate::plain;
use crate::safe::Safe;

const SAFE: &str = "safe";

impl Doctor<'_> {
    pub(super) fn look_at_the_safe(&mut self) {
        match Safe::of(self.cellar).seen(self.lang) {
            Ok(None) => {}
            Ok(Some(seen)) => {
                self.fine(SAFE, "snapshots", seen.in_words(self.now, self.lang));
                for line in seen.amiss.lines() {
                    self.warn(SAFE, "damage", line.to_owned(), None);
                }
            }
            Err(error) => {
                let what = plain::line(&error.in_words(self.lang)).into_owned();
                self.fail(SAFE, "snapshots", what, error.hint(self.lang));
            }
        }
    }
}
