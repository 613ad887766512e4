//! What of a tree is not taken, and why. Nothing is left out in silence: each of it becomes an entry that says so.

use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use glob::{MatchOptions, Pattern};

use crate::entry::{Entry, Flags, Kind};
use crate::manifest::{Manifest, is_at_or_below, join};
use crate::tree;
use crate::wish::Rebuildable;

/// What shows that a folder is what its name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// The name is enough.
    Name,
    /// One of these lies in it.
    Inside(&'static [&'static str]),
    /// One of these lies beside it.
    Beside(&'static [&'static str]),
}

/// Folders that a program can make again from what lies beside them.
const REBUILDABLE: &[(&str, Proof)] = &[
    ("target", Proof::Beside(&["Cargo.toml", "pom.xml", "build.sbt"])),
    ("target", Proof::Inside(&["CACHEDIR.TAG"])),
    ("node_modules", Proof::Name),
    ("bower_components", Proof::Beside(&["bower.json"])),
    (".venv", Proof::Inside(&["pyvenv.cfg"])),
    ("venv", Proof::Inside(&["pyvenv.cfg"])),
    ("env", Proof::Inside(&["pyvenv.cfg"])),
    ("__pycache__", Proof::Name),
    (".mypy_cache", Proof::Name),
    (".pytest_cache", Proof::Name),
    (".ruff_cache", Proof::Name),
    (".tox", Proof::Beside(&["tox.ini", "pyproject.toml", "setup.cfg"])),
    (".nox", Proof::Beside(&["noxfile.py"])),
    (
        ".gradle",
        Proof::Beside(&["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"]),
    ),
    (".next", Proof::Beside(&["package.json"])),
    (".nuxt", Proof::Beside(&["package.json"])),
    (".svelte-kit", Proof::Beside(&["package.json"])),
    (".parcel-cache", Proof::Beside(&["package.json"])),
    (".turbo", Proof::Beside(&["package.json", "turbo.json"])),
    (".angular", Proof::Beside(&["angular.json"])),
    (".dart_tool", Proof::Beside(&["pubspec.yaml"])),
    (".build", Proof::Beside(&["Package.swift"])),
    ("_build", Proof::Beside(&["mix.exs", "dune-project", "rebar.config"])),
    (".zig-cache", Proof::Beside(&["build.zig"])),
    ("zig-cache", Proof::Beside(&["build.zig"])),
    (".stack-work", Proof::Beside(&["stack.yaml"])),
    ("dist-newstyle", Proof::Name),
    ("DerivedData", Proof::Inside(&["ModuleCache.noindex"])),
];

/// How it is told which folders are left out.
enum Rule<'a> {
    /// None.
    None,
    /// Those that can be made again.
    Rebuildable,
    /// Those that another list left out.
    Like(&'a Manifest),
}

/// What is not taken.
pub(crate) struct Policy<'a> {
    rule: Rule<'a>,
    never: Vec<Pattern>,
    /// Paths that are never taken, either: those of the patterns that mean one path only, and the safe itself.
    places: Vec<Vec<u8>>,
    own: Vec<u8>,
}

impl<'a> Policy<'a> {
    /// Patterns that are none are left out of account: whoever reads the settings has told of them.
    pub(crate) fn new(
        rebuildable: Rebuildable,
        like: Option<&'a Manifest>,
        never: &[String],
        own: &Path,
    ) -> Policy<'a> {
        let rule = match (like, rebuildable) {
            (Some(like), _) => Rule::Like(like),
            (None, Rebuildable::LeftOut) => Rule::Rebuildable,
            (None, Rebuildable::Taken) => Rule::None,
        };
        let own = own.canonicalize().unwrap_or_else(|_| own.to_owned()).as_os_str().as_bytes().to_vec();
        // Every entry of a tree is asked about, and most patterns are the plain path of something elsewhere.
        let (plain, never): (Vec<&String>, Vec<&String>) =
            never.iter().partition(|pattern| !pattern.contains(['*', '?', '[']));
        let places = plain.into_iter().map(|place| place.clone().into_bytes()).chain([own.clone()]).collect();
        let never = never.into_iter().filter_map(|pattern| Pattern::new(pattern).ok()).collect();
        Policy { rule, never, places, own }
    }

    /// What is special about an entry of a folder for what it is called; `is_free` where everything in it is taken because
    /// somebody named it, or something around it.
    pub(crate) fn flags(
        &self,
        folder: impl AsFd,
        at: &[u8],
        name: &[u8],
        entry: &Entry,
        is_free: bool,
    ) -> Flags {
        let is_folder = entry.kind() == Kind::Folder;
        if is_folder && self.is_left_out(folder, at, name, is_free) {
            return Flags::REBUILDABLE;
        }
        if self.never.is_empty() && !self.places.iter().any(|place| place.starts_with(at)) {
            return Flags::default();
        }
        match self.is_never(&join(at, name)) {
            true => Flags::NEVER,
            false => Flags::default(),
        }
    }

    fn is_left_out(&self, folder: impl AsFd, at: &[u8], name: &[u8], is_free: bool) -> bool {
        match &self.rule {
            Rule::None => false,
            Rule::Like(like) => {
                could_be_rebuildable(name) && {
                    let seen = like.find(&join(at, name));
                    seen.is_some_and(|seen| seen.entry.flags.has(Flags::REBUILDABLE))
                }
            }
            Rule::Rebuildable => !is_free && is_rebuildable(folder, name),
        }
    }

    /// Is a path never to be taken?
    pub(crate) fn is_never(&self, path: &[u8]) -> bool {
        const AS_SHELLS_DO: MatchOptions = MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: false,
        };
        if self.places.iter().any(|place| place == path) {
            return true;
        }
        let text = String::from_utf8_lossy(path);
        self.never.iter().any(|pattern| pattern.matches_with(&text, AS_SHELLS_DO))
    }

    /// Is a path the safe itself, or something in it?
    pub(crate) fn is_own(&self, path: &[u8]) -> bool {
        is_at_or_below(path, &self.own)
    }
}

fn could_be_rebuildable(name: &[u8]) -> bool {
    REBUILDABLE.iter().any(|(row, _)| row.as_bytes() == name)
}

/// Whoever names a path inside a folder that can be made again wants what is in it.
pub(crate) fn is_inside_rebuildable(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(could_be_rebuildable)
}

fn is_rebuildable(folder: impl AsFd, name: &[u8]) -> bool {
    let is_there = |within: &[u8], file: &str| {
        let path = match within {
            [] => file.as_bytes().to_vec(),
            within => join(within, file.as_bytes()),
        };
        tree::stat(folder.as_fd(), path.as_slice()).is_ok_and(|found| found.is_some())
    };
    REBUILDABLE.iter().filter(|(row, _)| row.as_bytes() == name).any(|(_, proof)| match proof {
        Proof::Name => true,
        Proof::Inside(files) => files.iter().any(|file| is_there(name, file)),
        Proof::Beside(files) => files.iter().any(|file| is_there(b"", file)),
    })
}
