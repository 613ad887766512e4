//! What this project is built from, and what it starts where it is installed.

use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the project")
}

#[test]
fn every_package_comes_from_the_registry_with_its_checksum() {
    let lock: toml::Table = fs::read_to_string(root().join("Cargo.lock")).unwrap().parse().unwrap();
    let packages = lock["package"].as_array().unwrap();
    assert!(packages.len() > 100, "{} packages", packages.len());
    for package in packages {
        let text = |key: &str| package.get(key).and_then(|value| value.as_str());
        let name = text("name").unwrap();
        match text("source") {
            None => assert!(
                root().join("crates").join(name.trim_start_matches("unstuck-")).is_dir()
                    || ["unstuck", "unstuck-fuzz", "xtask"].contains(&name),
                "{name} comes from nowhere"
            ),
            Some(source) => {
                assert_eq!(source, "registry+https://github.com/rust-lang/crates.io-index", "{name}");
                assert_eq!(text("checksum").map(str::len), Some(64), "{name} has no checksum");
            }
        }
    }
}

/// The plugin holds words and hook lines and nothing else: no script, no download, and the one program it starts is ours.
#[test]
fn the_plugin_starts_our_program_and_fetches_nothing() {
    let hooks = fs::read_to_string(root().join("plugin/hooks/hooks.json")).unwrap();
    let hooks: serde_json::Value = serde_json::from_str(&hooks).unwrap();
    let mut commands = Vec::new();
    let mut rest = vec![&hooks];
    while let Some(value) = rest.pop() {
        match value {
            serde_json::Value::Object(fields) => {
                commands.extend(fields.get("command").and_then(|command| command.as_str()));
                rest.extend(fields.values());
            }
            serde_json::Value::Array(items) => rest.extend(items),
            _ => {}
        }
    }
    assert!(commands.len() > 3, "{commands:?}");
    for command in commands {
        let only_says = "command -v unstuck >/dev/null 2>&1 || printf '%s\\n' '{\"systemMessage\":";
        let is_ours = command == "unstuck hook claude 2>/dev/null || :";
        assert!(is_ours || command.starts_with(only_says) && command.matches('\'').count() == 4, "{command}");
    }
    let mut files = Vec::new();
    let mut folders = vec![root().join("plugin")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.file_name().into_string().unwrap()),
            }
        }
    }
    files.sort();
    assert_eq!(files, ["README.md", "hooks.json", "plugin.json"]);
}
