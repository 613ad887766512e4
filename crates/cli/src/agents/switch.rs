//! What keeps an agent from calling us although our entries stand: switches in its settings. Files are only read here, and one
//! that cannot be read says nothing.

use std::path::{Path, PathBuf};

use serde_json::Value;
use unstuck_wire::hook::Host;

use super::agent::Agent;
use super::place::Places;
use crate::editing::{Dialect, Document, read_plain};

/// A setting of somebody else that turns hooks off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Switch {
    pub(crate) file: PathBuf,
    pub(crate) key: &'static str,
}

/// The switches that are set against us.
pub(crate) fn switched_off(places: &Places, agent: &Agent) -> Vec<Switch> {
    let folder = places.folder(agent).unwrap_or_default();
    let project = places.project().unwrap_or(Path::new("")).to_owned();
    let (files, keys): (Vec<PathBuf>, &[(&'static str, bool)]) = match agent.host {
        Host::Claude => {
            (claude_files(places, agent), &[("disableAllHooks", true), ("allowManagedHooksOnly", true)])
        }
        Host::Gemini => (
            vec![folder.join("settings.json"), project.join(".gemini/settings.json")],
            &[("hooksConfig.enabled", false)],
        ),
        Host::Qwen => (
            vec![folder.join("settings.json"), project.join(".qwen/settings.json")],
            &[("disableAllHooks", true), ("hooksConfig.enabled", false)],
        ),
        Host::Copilot => {
            (vec![folder.join("settings.json"), folder.join("config.json")], &[("disableAllHooks", true)])
        }
        Host::Codex => {
            return codex(&[folder.join("config.toml"), project.join(".codex/config.toml")]);
        }
        Host::Opencode | Host::Cursor | Host::Generic => return Vec::new(),
    };
    let mut found = Vec::new();
    for file in files {
        let value = read(&file);
        let is_set = |(key, against): &&(&'static str, bool)| at(&value, key) == Some(&Value::Bool(*against));
        found.extend(keys.iter().filter(is_set).map(|(key, _)| Switch { file: file.clone(), key }));
    }
    found
}

/// The file that turns our plugin for Claude Code on. Then entries of ours would be a second call for every event.
pub(crate) fn active_plugin(places: &Places, agent: &Agent) -> Option<PathBuf> {
    let is_on = |file: &PathBuf| {
        let value = read(file);
        let plugins = value.get("enabledPlugins").and_then(Value::as_object);
        plugins.is_some_and(|plugins| plugins.iter().any(|(name, on)| is_our_plugin(name) && on == true))
    };
    match agent.host {
        Host::Claude => claude_files(places, agent).into_iter().find(is_on),
        Host::Codex
        | Host::Gemini
        | Host::Qwen
        | Host::Opencode
        | Host::Copilot
        | Host::Cursor
        | Host::Generic => None,
    }
}

/// Plugins are named with the marketplace they come from.
fn is_our_plugin(name: &str) -> bool {
    name.split_once('@').is_some_and(|(plugin, _)| plugin == "unstuck")
}

fn claude_files(places: &Places, agent: &Agent) -> Vec<PathBuf> {
    let mut files = vec![PathBuf::from("/etc/claude-code/managed-settings.json")];
    files.extend(places.folder(agent).map(|folder| folder.join("settings.json")));
    for name in [".claude/settings.json", ".claude/settings.local.json"] {
        files.extend(places.project().map(|project| project.join(name)));
    }
    files.dedup();
    files
}

fn codex(files: &[PathBuf]) -> Vec<Switch> {
    let mut found = Vec::new();
    for file in files {
        let text =
            read_plain(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let Ok(table) = text.parse::<toml::Table>() else { continue };
        let feature =
            |name: &str| table.get("features").and_then(|all| all.get(name)).and_then(toml::Value::as_bool);
        for (name, key) in [("hooks", "features.hooks"), ("codex_hooks", "features.codex_hooks")] {
            if feature(name) == Some(false) {
                found.push(Switch { file: file.clone(), key });
            }
        }
    }
    found
}

fn read(file: &Path) -> Value {
    let bytes = read_plain(file).ok();
    let document = bytes.and_then(|bytes| Document::read(file, Dialect::Commented, Some(&bytes)).ok());
    document.map(|document| document.value()).unwrap_or_default()
}

fn at<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    key.split('.').try_fold(value, |value, name| value.get(name))
}
