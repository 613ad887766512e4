//! The modes of single tools as one line of text: `WebFetch=shadow, mcp__*=advise`. What a project says of tools is laid over
//! what the person says, tool by tool, and never lets one go less far.

use std::fmt;

use super::sections::Mode;

/// No list is longer: it is looked through before every call.
const NAMES_MAX: usize = 64;
/// No tool has a longer name.
const NAME_MAX: usize = 128;
/// A sign that no name holds. Behind a beginning it makes a tool that only this beginning and shorter ones fit.
const NO_NAME: &str = "\u{1}";

/// Modes by the names of tools. A name that ends in `*` means all that begin like it; the first that fits counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ToolModes(pub(crate) Vec<(String, Mode)>);

impl ToolModes {
    /// Reads a list as a person writes it. Nothing comes back where a part of it makes no sense.
    pub(crate) fn read(text: &str) -> Option<ToolModes> {
        if text.trim() == "none" {
            return Some(ToolModes::default());
        }
        let read = |part: &str| {
            let (name, mode) = part.split_once('=')?;
            is_name(name.trim()).then_some((name.trim().to_owned(), Mode::named(mode.trim())?))
        };
        let modes: Vec<(String, Mode)> = text.split(',').map(read).collect::<Option<_>>()?;
        (modes.len() <= NAMES_MAX).then_some(ToolModes(modes))
    }

    /// The mode for a tool, where one is said.
    fn of(&self, tool: &str) -> Option<Mode> {
        self.0.iter().find(|(name, _)| fits(name, tool)).map(|(_, mode)| *mode)
    }

    /// The first name in `project` that would let a tool go less far than here, where `others` counts for tools not named.
    pub(crate) fn loosened_by<'p>(&self, project: &'p ToolModes, others: Mode) -> Option<&'p str> {
        let is_looser = |name: &&str| {
            let mut among: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
            among.retain(|each| name.strip_suffix('*').is_some_and(|begin| fits(&format!("{begin}*"), each)));
            among.push(name);
            among
                .into_iter()
                .map(a_tool)
                .any(|tool| project.of(&tool).is_some_and(|mode| mode < self.of(&tool).unwrap_or(others)))
        };
        project.0.iter().map(|(name, _)| name.as_str()).find(is_looser)
    }

    /// Both in one list: for every tool the mode that goes further.
    pub(crate) fn with(&self, project: &ToolModes) -> ToolModes {
        let mut names: Vec<&str> = self.0.iter().chain(&project.0).map(|(name, _)| name.as_str()).collect();
        // Whole names first, then the longer beginnings, so that the first that fits is always the closest.
        names.sort_by_key(|name| (name.ends_with('*'), std::cmp::Reverse(name.len())));
        let mut seen: Vec<&str> = Vec::new();
        names.retain(|name| {
            let is_new = !seen.iter().any(|each| each.eq_ignore_ascii_case(name));
            seen.push(name);
            is_new
        });
        let modes = names.into_iter().filter_map(|name| {
            let tool = a_tool(name);
            self.of(&tool).max(project.of(&tool)).map(|mode| (name.to_owned(), mode))
        });
        ToolModes(modes.collect())
    }
}

/// A tool that this name is the closest fit for.
fn a_tool(name: &str) -> String {
    match name.strip_suffix('*') {
        Some(begin) => format!("{begin}{NO_NAME}"),
        None => name.to_owned(),
    }
}

fn fits(name: &str, tool: &str) -> bool {
    match name.strip_suffix('*') {
        Some(begin) => tool.get(..begin.len()).is_some_and(|found| found.eq_ignore_ascii_case(begin)),
        None => tool.eq_ignore_ascii_case(name),
    }
}

/// A name has no blanks and no signs with a meaning of their own; a `*` may only end it.
fn is_name(name: &str) -> bool {
    let bare = name.strip_suffix('*').unwrap_or(name);
    let is_foreign = |sign: char| sign.is_whitespace() || sign.is_control() || "*=,\"'`".contains(sign);
    !name.is_empty() && name.len() <= NAME_MAX && !bare.contains(is_foreign)
}

impl fmt::Display for ToolModes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.pad("none");
        }
        let parts: Vec<String> =
            self.0.iter().map(|(name, mode)| format!("{name}={}", mode.word())).collect();
        f.pad(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ToolModes {
        ToolModes::read(text).unwrap_or_else(|| panic!("{text:?} is no list"))
    }

    #[test]
    fn a_list_is_shown_as_it_is_written() {
        for (text, shown) in [
            ("none", "none"),
            ("WebFetch=shadow", "WebFetch=shadow"),
            (" WebFetch = shadow ,mcp__*=advise", "WebFetch=shadow, mcp__*=advise"),
            ("*=advise", "*=advise"),
        ] {
            assert_eq!(read(text).to_string(), shown);
        }
        let long = vec!["a=shadow"; NAMES_MAX + 1].join(",");
        for text in
            ["", "Bash", "Bash=", "=shadow", "Bash=hard", "a*b=shadow", "a b=shadow", "a=shadow,", &long]
        {
            assert_eq!(ToolModes::read(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_project_may_let_no_tool_go_less_far() {
        let check = |person: &str, others: Mode, project: &str, expected: Option<&str>| {
            assert_eq!(read(person).loosened_by(&read(project), others), expected, "{person} / {project}");
        };
        check("none", Mode::Advise, "Bash=enforce, mcp__*=advise", None);
        check("none", Mode::Advise, "Bash=enforce, mcp__*=shadow", Some("mcp__*"));
        check("Bash=shadow", Mode::Enforce, "bash=advise", None);
        check("Bash=shadow", Mode::Enforce, "Edit=advise", Some("Edit"));
        check("mcp__db__*=enforce", Mode::Shadow, "mcp__*=advise", Some("mcp__*"));
        check("mcp__db__*=enforce", Mode::Shadow, "mcp__db__*=enforce, mcp__*=advise", None);
        check("mcp__*=advise", Mode::Enforce, "mcp__db=advise, *=enforce", None);
        check("Bash=enforce", Mode::Shadow, "*=advise", Some("*"));
    }

    #[test]
    fn of_two_lists_the_mode_that_goes_further_counts_for_every_tool() {
        let check = |person: &str, project: &str, expected: &str| {
            assert_eq!(read(person).with(&read(project)).to_string(), expected);
        };
        check("WebFetch=shadow", "Bash=enforce", "WebFetch=shadow, Bash=enforce");
        check("WebFetch=shadow", "webfetch=advise", "WebFetch=advise");
        check(
            "mcp__*=shadow, mcp__db__x=advise",
            "mcp__db__*=enforce",
            "mcp__db__x=enforce, mcp__db__*=enforce, mcp__*=shadow",
        );
        check("none", "none", "none");
    }

    #[test]
    fn a_merged_list_answers_for_every_tool_like_the_stricter_of_both() {
        let names = ["*", "a*", "ab*", "A", "ab", "abc", "b"];
        let modes = [Mode::Shadow, Mode::Advise, Mode::Enforce];
        let list = |seed: usize| {
            let picked = |n: usize| (names[(seed / (n + 1) + n * 3) % names.len()], modes[(seed >> n) % 3]);
            ToolModes((0..3).map(picked).map(|(name, mode)| (name.to_owned(), mode)).collect())
        };
        for seed in 0..400 {
            let (person, project) = (list(seed), list(seed * 7 + 1));
            let merged = person.with(&project);
            for tool in ["a", "ab", "abc", "abcd", "b", "ba", "x", "AB"] {
                let expected = person.of(tool).max(project.of(tool));
                assert_eq!(merged.of(tool), expected, "{tool}: {person} / {project} = {merged}");
            }
        }
    }
}
