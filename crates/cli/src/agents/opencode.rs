//! The plugin for opencode: one file, which is ours as a whole.

use serde_json::{Map, Value};

use super::agent::Event;
use crate::editing::Written;

const TEMPLATE: &str = include_str!("opencode-plugin.js");

/// How the line begins that names our program.
const PROGRAM: &str = "const PROGRAM = ";

/// How the line begins that says how long each event may take.
const LIMITS: &str = "const LIMIT_MS = ";

/// The plugin that calls this program and tells of these events.
pub(super) fn plugin(program: &str, events: &[Event]) -> String {
    let limit = |event: &Event| (event.name.to_owned(), Value::from(event.limit.seconds() * 1000));
    let limits: Map<String, Value> = events.iter().map(limit).collect();
    let filled = |line: &str| {
        if line.starts_with(PROGRAM) {
            format!("{PROGRAM}{}\n", Value::from(program))
        } else if line.starts_with(LIMITS) {
            format!("{LIMITS}{}\n", Value::from(limits.clone()))
        } else {
            format!("{line}\n")
        }
    };
    TEMPLATE.lines().map(filled).collect()
}

/// The program that our plugin calls, where this is our plugin: what we left in the file, by an older version too, or what
/// we would write for that program now. Whatever else a file of its name holds is somebody else's.
pub(crate) fn program_of_plugin(bytes: &[u8], known: Option<&Written>, events: &[Event]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?;
    let program = text.lines().find_map(|line| line.strip_prefix(PROGRAM))?;
    let program: String = serde_json::from_str(program).ok()?;
    let is_left = known.is_some_and(|known| known.is_left(bytes));
    (is_left || plugin(&program, events).lines().eq(text.lines())).then_some(program)
}

/// How long a plugin of ours waits for each event, in milliseconds.
pub(crate) fn limits_of_plugin(bytes: &[u8]) -> Map<String, Value> {
    let limits =
        str::from_utf8(bytes).ok().and_then(|text| text.lines().find_map(|line| line.strip_prefix(LIMITS)));
    limits.and_then(|limits| serde_json::from_str(limits).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::{AGENTS, Carrier};
    use super::*;

    fn events() -> &'static [Event] {
        AGENTS.iter().find(|agent| matches!(agent.carrier, Carrier::Plugin)).unwrap().events
    }

    #[test]
    fn the_plugin_names_its_program_once_and_is_known_with_any() {
        let known = |text: &str| program_of_plugin(text.as_bytes(), None, events());
        for program in ["/usr/bin/unstuck", "/a \"b\"/unstuck", "/c\\d/unstuck"] {
            let text = plugin(program, events());
            assert_eq!(text.matches(&Value::from(program).to_string()).count(), 1, "{text}");
            assert_eq!(known(&text).as_deref(), Some(program));
            assert_eq!(known(&format!("{text}// mine\n")), None);
            assert_eq!(known(&format!("{PROGRAM}{}\n", Value::from(program))), None);
        }
        assert_eq!(known("export const Mine = async () => ({})\n"), None);
    }

    #[test]
    fn the_plugin_waits_for_each_event_as_long_as_the_agents_row_says() {
        let text = plugin("/usr/bin/unstuck", events());
        assert_eq!(text.lines().filter(|line| line.starts_with(LIMITS)).count(), 1);
        let limits = limits_of_plugin(text.as_bytes());
        for event in events() {
            assert_eq!(limits[event.name], event.limit.seconds() * 1000, "{}", event.name);
            assert!(TEMPLATE.contains(&format!("\"{}\"", event.name)), "{}", event.name);
        }
        assert_eq!(limits.len(), events().len());
    }
}
