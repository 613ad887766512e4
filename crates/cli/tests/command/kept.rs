//! Puts calls into the store through the front door, and looks for words in every file of it.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::world::World;

/// A call that fails, as an agent's hook tells of it.
pub(crate) fn failure(session: &str, id: &str, command: &str, stderr: &str) -> String {
    let input = json!({ "command": command });
    let before =
        json!({"event": "before", "session": session, "call_id": id, "tool": "Bash", "input": input});
    let after = json!({"event": "after", "session": session, "call_id": id, "tool": "Bash", "input": input,
                       "exit_code": 1, "stderr": stderr, "duration_ms": 900});
    format!("{before}\n{after}\n")
}

impl World {
    /// Hands payloads to the hook, and expects each to be stored.
    #[track_caller]
    pub(crate) fn record(&self, payloads: &str) {
        for answer in self.run(&["hook", "generic"], payloads).json_lines() {
            assert_eq!(answer["kept"], "recorded", "{answer}");
        }
    }

    /// A world in which one session met two failures.
    pub(crate) fn with_failures() -> World {
        let world = World::empty();
        world.record(&failure("one", "c1", "npm ci", "npm error code ENOENT"));
        world.record(&failure("one", "c2", "curl x.example", "curl: (6) Could not resolve host: x.example"));
        world
    }

    /// The files of the store in which a word can be read.
    pub(crate) fn files_with(&self, word: &str) -> Vec<String> {
        fn look(folder: &Path, word: &str, found: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    look(&path, word, found);
                } else if fs::read(&path).unwrap().windows(word.len()).any(|part| part == word.as_bytes()) {
                    found.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
        let mut found = Vec::new();
        look(&self.path(".local/state/unstuck"), word, &mut found);
        found.sort();
        found
    }
}
