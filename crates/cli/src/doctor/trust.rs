//! Whether an agent's owner has agreed to what stands in its files. Some agents skip without a word what nobody has agreed to.

use std::path::Path;

use serde_json::Value;

use super::entries::Entry;
use crate::editing::read_plain;

/// The entries that Codex skips because nobody trusts them yet, or because somebody switched them off.
pub(super) fn untrusted_by_codex<'e>(config: &Path, hooks: &Path, entries: &'e [Entry]) -> Vec<&'e Entry> {
    let text =
        read_plain(config).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let table = text.parse::<toml::Table>().unwrap_or_default();
    let states = table.get("hooks").and_then(|hooks| hooks.get("state")).and_then(toml::Value::as_table);
    let is_trusted = |entry: &&Entry| {
        let key = format!("{}:{}:{}:{}", hooks.display(), snake(&entry.event), entry.place.0, entry.place.1);
        let state = states.and_then(|states| states.get(&key)).and_then(toml::Value::as_table);
        state.is_some_and(|state| {
            let is_on = state.get("enabled").and_then(toml::Value::as_bool) != Some(false);
            is_on
                && state
                    .get("trusted_hash")
                    .and_then(toml::Value::as_str)
                    .is_some_and(|hash| !hash.is_empty())
        })
    };
    entries.iter().filter(|entry| !is_trusted(entry)).collect()
}

/// `PreToolUse` as `pre_tool_use`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (index, sign) in name.chars().enumerate() {
        if sign.is_ascii_uppercase() && index > 0 {
            snake.push('_');
        }
        snake.push(sign.to_ascii_lowercase());
    }
    snake
}

/// What Gemini's list of trusted folders says of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    Trusted,
    Distrusted,
    Unsaid,
}

/// Whether Gemini runs what a project's own file says. The nearest folder that is named decides.
pub(super) fn trusted_by_gemini(list: &Path, project: &Path) -> Trust {
    let folders = read_plain(list).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let said = |folder: &Path| folders.as_ref()?.get(folder.to_str()?)?.as_str();
    let parent_of_named = |folder: &Path| {
        // A folder may stand for the one it lies in.
        let folders = folders.as_ref()?.as_object()?;
        let is_it = |(name, word): &(&String, &Value)| {
            *word == "TRUST_PARENT" && Path::new(name).parent() == Some(folder)
        };
        folders.iter().find(is_it)
    };
    for folder in project.ancestors() {
        match said(folder) {
            Some("TRUST_FOLDER" | "TRUST_PARENT") => return Trust::Trusted,
            Some("DO_NOT_TRUST") => return Trust::Distrusted,
            Some(_) | None if parent_of_named(folder).is_some() => return Trust::Trusted,
            Some(_) | None => {}
        }
    }
    Trust::Unsaid
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::path::PathBuf;

    use super::*;

    #[test]
    fn codex_skips_what_nobody_has_agreed_to() {
        let folder = tempfile::tempdir().unwrap();
        let (config, hooks) = (folder.path().join("config.toml"), Path::new("/h/hooks.json"));
        let entry = |event: &str| Entry {
            event: event.to_owned(),
            line: String::new(),
            program: PathBuf::new(),
            limit: None,
            tools: None,
            place: (1, 0),
        };
        let entries = [entry("PreToolUse"), entry("PostToolUse"), entry("SessionEnd")];
        assert_eq!(untrusted_by_codex(&config, hooks, &entries).len(), 3);
        let state =
            |event: &str, rest: &str| format!("[hooks.state.\"/h/hooks.json:{event}:1:0\"]\n{rest}\n");
        let text = state("pre_tool_use", "trusted_hash = \"sha256:a\"")
            + &state("post_tool_use", "trusted_hash = \"sha256:a\"\nenabled = false")
            + &state("session_end", "enabled = true");
        fs::write(&config, text).unwrap();
        let left: Vec<&str> =
            untrusted_by_codex(&config, hooks, &entries).iter().map(|entry| entry.event.as_str()).collect();
        assert_eq!(left, ["PostToolUse", "SessionEnd"]);
    }

    #[test]
    fn the_nearest_folder_that_is_named_decides() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("trustedFolders.json");
        let check = |project: &str, expected| {
            assert_eq!(trusted_by_gemini(&list, Path::new(project)), expected, "{project}")
        };
        check("/src/app", Trust::Unsaid);
        fs::write(
            &list,
            r#"{"/src": "TRUST_FOLDER", "/src/bad": "DO_NOT_TRUST", "/own/one": "TRUST_PARENT"}"#,
        )
        .unwrap();
        check("/src/app", Trust::Trusted);
        check("/src/bad/deep", Trust::Distrusted);
        check("/own/two", Trust::Trusted);
        check("/elsewhere", Trust::Unsaid);
        fs::write(&list, "{").unwrap();
        check("/src/app", Trust::Unsaid);
    }
}
