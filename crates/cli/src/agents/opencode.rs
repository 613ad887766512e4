//! The plugin for opencode: one file, which is ours as a whole.

const TEMPLATE: &str = include_str!("opencode-plugin.js");

/// How the line begins that names our program.
const LINE: &str = "const PROGRAM = ";

/// The plugin that calls this program.
pub(super) fn plugin(program: &str) -> String {
    let named = |line: &str| match line.starts_with(LINE) {
        true => format!("{LINE}{}", serde_json::Value::from(program)),
        false => line.to_owned(),
    };
    TEMPLATE.lines().map(|line| named(line) + "\n").collect()
}

/// Is this the plugin, whatever program it calls?
pub(super) fn is_plugin(text: &str) -> bool {
    let rest = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with(LINE)).map(str::to_owned).collect()
    };
    rest(text) == rest(TEMPLATE) && text.matches(LINE).count() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plugin_names_its_program_once_and_is_known_with_any() {
        for program in ["/usr/bin/unstuck", "/a \"b\"/unstuck", "/c\\d/unstuck"] {
            let text = plugin(program);
            assert_eq!(text.matches(&serde_json::Value::from(program).to_string()).count(), 1, "{text}");
            assert!(is_plugin(&text));
            assert!(!is_plugin(&format!("{text}// mine\n")));
        }
        assert!(!is_plugin("export const Mine = async () => ({})\n"));
    }
}
