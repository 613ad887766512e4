//! What a cause is bound to stop besides the call that met it, and what a call needs that may be missing.

use super::input;
use crate::call::Call;
use crate::diagnose::Diagnosis;
use crate::kind::Kind;
use crate::ladder::preset;
use crate::ladder::sight::{Print, Sight, Speaker};
use crate::shell::{Command, ParsedCall, Role, Script};

/// What has to be there, or out of the way, for the call to work.
pub(super) fn needed(parsed: &ParsedCall<'_>, creates: bool) -> Vec<Print> {
    let mut roots = match &parsed.script {
        Some(script) => needed_programs(script),
        None => vec![tool(parsed.call)],
    };
    if creates {
        roots.extend(in_the_way(parsed.call));
    }
    roots
}

/// What else the cause of a failure is bound to stop.
pub(super) fn roots(sight: &Sight, call: &Call, diagnosis: &Diagnosis, line: &str) -> Vec<Print> {
    let mut roots = Vec::new();
    if diagnosis.kind == Kind::CommandNotFound && sight.speaker == Speaker::Shell {
        let subject = diagnosis.subject.as_deref().unwrap_or_default();
        let script = ParsedCall::of(call).script.unwrap_or_default();
        let missing =
            script.programs().filter(|program| *program == subject || line.contains(&format!("{program}:")));
        roots.extend(missing.map(program));
    }
    if line.trim_start().starts_with("sudo:") {
        roots.push(program("sudo"));
    }
    if sight.speaker == Speaker::Tool && denies_tool(line, &call.tool) {
        roots.push(tool(call));
    }
    if diagnosis.kind == Kind::Conflict && sight.creates {
        roots.extend(in_the_way(call));
    }
    roots
}

fn program(name: &str) -> Print {
    Print::of(&["program", name])
}

fn tool(call: &Call) -> Print {
    Print::of(&["tool", &call.tool.to_lowercase()])
}

fn in_the_way(call: &Call) -> impl Iterator<Item = Print> {
    input::paths(&call.input).map(|path| Print::of(&["exists", &path]))
}

/// Does the line say that there is no such tool?
fn denies_tool(line: &str, tool: &str) -> bool {
    let line = line.to_lowercase().replace(&tool.to_lowercase(), " ").replace(['\'', '"', '`'], " ");
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    preset::signs_of_no_tool().iter().any(|sign| line.contains(sign))
}

/// The programs without which a script cannot work. A program called by its path, or under a `PATH` of its own, is
/// found elsewhere.
fn needed_programs(script: &Script) -> Vec<Print> {
    let plain = |command: &&Command| {
        let own_path = command.assignments.iter().any(|(name, _)| name == "PATH");
        let by_path = command.words.first().is_some_and(|word| word.contains('/'));
        !command.program.is_empty() && command.role != Role::Defined && !own_path && !by_path
    };
    let sets_path = script.commands().iter().any(|command| {
        let exports = matches!(command.program.as_str(), "export" | "source" | ".");
        exports || command.program.is_empty() && command.assignments.iter().any(|(name, _)| name == "PATH")
    });
    if sets_path {
        return Vec::new();
    }
    script.commands().iter().filter(plain).map(|command| program(&command.program)).collect()
}
