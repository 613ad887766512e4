//! A machine with agents on it: their programs are scripts that tell a version, their files are real.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::world::{Said, World};

pub(crate) const SETTINGS: &str = ".claude/settings.json";

impl World {
    /// Puts a program on the PATH that tells this version.
    pub(crate) fn with_program(self, name: &str, version: &str) -> World {
        let world = self.with(&format!("bin/{name}"), format!("#!/bin/sh\necho '{version}'\n"));
        let path = world.path(&format!("bin/{name}"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        world
    }

    /// A machine with Claude Code and these settings.
    pub(crate) fn with_claude(settings: impl AsRef<[u8]>) -> World {
        World::empty().with_program("claude", "2.1.325 (Claude Code)").with(SETTINGS, settings)
    }

    /// The command, where only the programs of this machine are found.
    pub(crate) fn installer(&self, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command.env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        command
    }

    pub(crate) fn installs(&self, args: &[&str]) -> Said {
        Said::by(self.installer(args).spawn().unwrap())
    }

    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn parsed(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path)).unwrap()
    }

    /// Everything below a folder, by name, without what is ours.
    pub(crate) fn files(&self, folder: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.path(folder)];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                found.push(path.strip_prefix(self.path("")).unwrap().to_str().unwrap().to_owned());
                if entry.file_type().unwrap().is_dir() {
                    open.push(path);
                }
            }
        }
        found.retain(|path| !path.starts_with(".local") && !path.starts_with("bin"));
        found.sort_unstable();
        found
    }
}

/// The commands that stand under an event.
pub(crate) fn commands(settings: &Value, event: &str) -> Vec<String> {
    let groups = settings["hooks"][event].as_array().cloned().unwrap_or_default();
    let entries = groups.iter().flat_map(|group| group["hooks"].as_array().cloned().unwrap_or_default());
    entries.filter_map(|entry| entry["command"].as_str().map(str::to_owned)).collect()
}
