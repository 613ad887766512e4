//! The tables that the build script wrote from `rules/`.

use std::borrow::Cow;

use super::anchors::Anchors;
#[allow(unused_imports, reason = "which words the tables use depends on the rows")]
use super::{Lines, List, Pattern, Rule, Scope, Stream, Text};
use crate::kind::Kind;
#[allow(unused_imports, reason = "which words the tables use depends on the rows")]
use crate::verdict::{Effect, FixBy, KindRow};

const NO_TEXTS: List<Text> = Cow::Borrowed(&[]);
const NO_NUMBERS: List<u16> = Cow::Borrowed(&[]);
const NO_CODES: List<i32> = Cow::Borrowed(&[]);

const fn t(text: &'static str) -> Text {
    Cow::Borrowed(text)
}

const fn n(numbers: &'static [u16]) -> List<u16> {
    Cow::Borrowed(numbers)
}

const fn c(codes: &'static [i32]) -> List<i32> {
    Cow::Borrowed(codes)
}

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// The search tables for all built-in patterns.
pub(crate) fn anchors() -> Anchors {
    Anchors {
        shift: Cow::Borrowed(include_bytes!(concat!(env!("OUT_DIR"), "/shift.bin"))),
        heads: Cow::Borrowed(include_bytes!(concat!(env!("OUT_DIR"), "/heads.bin"))),
        entries: Cow::Borrowed(include_bytes!(concat!(env!("OUT_DIR"), "/entries.bin"))),
    }
}
