//! The careful editor of files that belong to others: an agent's settings, with a person's own work in them.
//!
//! Only our own entries are added and removed; every other byte stays. A file that cannot be read in full is left alone and
//! never taken for an empty one. Nothing here knows an agent: what an entry looks like, and which are ours, is an argument.

mod backup;
mod diff;
mod document;
mod entries;
mod error;
mod fields;
mod found;
mod ledger;
mod lists;
mod replace;
mod sheet;
mod tables;

pub(crate) use backup::Backups;
pub(crate) use diff::unified;
pub(crate) use document::{Dialect, Document};
pub(crate) use entries::{Entries, Layout, Wanted};
pub(crate) use error::EditError;
pub(crate) use found::{Found, read_plain};
pub(crate) use ledger::{Before, Book, Ledger, Wrapped, Written, hash};
pub(crate) use replace::{After, Put, make_folders, put, sweep};
pub(crate) use sheet::{Edit, Sheet, Syntax};

#[cfg(test)]
pub(crate) mod tests;
