//! The tables that the build script wrote from `rules/`.

use super::packed::Packed;
use crate::verdict::{FixBy, KindRow};

/// The rules that come with the program.
pub(crate) const RULES: Packed = Packed::from_static(include_bytes!(concat!(env!("OUT_DIR"), "/rules.bin")));

include!(concat!(env!("OUT_DIR"), "/builtin.rs"));
