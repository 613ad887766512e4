//! The tables that the build script wrote from `rules/`.

use std::borrow::Cow;

use super::anchors::Anchors;
#[allow(unused_imports, reason = "which words the tables use depends on the rows")]
use super::{Lines, List, Pattern, Rule, Scope, Stream};
use crate::kind::Kind;
#[allow(unused_imports, reason = "which words the tables use depends on the rows")]
use crate::verdict::{Effect, FixBy, KindRow};

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// The search tables for all built-in patterns.
pub(crate) fn anchors() -> Anchors {
    Anchors { shift: Cow::Borrowed(SHIFT), heads: Cow::Borrowed(HEADS), entries: Cow::Borrowed(ENTRIES) }
}
