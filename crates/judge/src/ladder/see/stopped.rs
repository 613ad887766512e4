//! What a cause is bound to stop besides the call that met it, and what a call needs that may be missing.

use super::input;
use crate::call::Call;
use crate::diagnose::Diagnosis;
use crate::kind::Kind;
use crate::ladder::preset;
use crate::ladder::sight::{Print, Sight, Speaker};
use crate::shell::{Command, Join, ParsedCall, Role, Script};

/// What has to be there, or out of the way, for the call to work.
pub(super) fn needed(parsed: &ParsedCall<'_>, creates: bool) -> Vec<Print> {
    let mut roots = match &parsed.script {
        Some(script) => {
            needed_commands(script).into_iter().map(|command| program(&command.program)).collect()
        }
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
    if diagnosis.kind == Kind::Network {
        roots.extend(host(&sight.label, line).map(|host| Print::of(&["host", &host])));
    }
    roots
}

/// The machine that a call names and its error repeats; not this one, where what is asked for may just be starting.
fn host(label: &str, line: &str) -> Option<String> {
    let line = line.to_lowercase();
    let is_name = |host: &str| {
        let is_part = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '-');
        host.contains('.') && host.len() > 3 && host.chars().all(is_part)
    };
    let of_word = |word: &str| -> String {
        let word = word.trim_matches(|sign| "\"'`,;()".contains(sign));
        let rest = word.split_once("://").map_or(word, |(_, rest)| rest);
        let rest = rest.split(['/', '?']).next().unwrap_or_default();
        let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        rest.split(':').next().unwrap_or_default().to_lowercase()
    };
    let mut hosts = label.split_whitespace().map(of_word);
    hosts.find(|host| {
        is_name(host) && !host.starts_with("127.") && host != "0.0.0.0" && line.contains(host.as_str())
    })
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

/// Wrappers that find the same programs as the line they stand in. All others bring programs of their own along: `npx`,
/// `uv run`, a login shell, another machine.
const TRANSPARENT: &[&str] = &[
    "sudo",
    "doas",
    "env",
    "cross-env",
    "timeout",
    "gtimeout",
    "nice",
    "ionice",
    "nohup",
    "setsid",
    "time",
    "gtime",
    "stdbuf",
    "unbuffer",
    "exec",
    "command",
    "builtin",
    "xargs",
    "chronic",
    "caffeinate",
    "bash",
    "sh",
    "dash",
    "zsh",
];

/// Programs after which nothing is found that was not found before.
const PRELUDE: &[&str] =
    &["cd", "pushd", "popd", "echo", "printf", "pwd", "true", ":", "set", "mkdir", "ls", "date"];

/// The commands without whose programs a script is bound to fail: those it runs before anything in it could provide them,
/// and whose failure it does not answer for itself (`a || b`). A program called by its path, or under a `PATH` of its own, is
/// found elsewhere.
pub(crate) fn needed_commands(script: &Script) -> Vec<&Command> {
    let brings_its_own = script.commands().iter().any(|command| {
        let exports = matches!(command.program.as_str(), "export" | "source" | "." | "alias" | "hash");
        let sets_path = command.assignments.iter().any(|(name, _)| name == "PATH");
        exports || command.role == Role::Defined || command.program.is_empty() && sets_path
    });
    if brings_its_own {
        return Vec::new();
    }
    let mut needed = Vec::new();
    let mut pipeline = 0;
    for command in script.commands() {
        let own_path = command.assignments.iter().any(|(name, _)| name == "PATH");
        let by_path = command.words.first().is_some_and(|word| word.contains('/'));
        if !command.program.is_empty() && command.role != Role::Inner && !own_path && !by_path {
            needed.push(command);
        }
        match command.then {
            Join::Pipe => {}
            Join::Wraps if is_transparent(command) => {}
            Join::And | Join::Always if PRELUDE.contains(&command.program.as_str()) => {
                pipeline = needed.len()
            }
            Join::Or => {
                needed.truncate(pipeline);
                break;
            }
            Join::Wraps | Join::And | Join::Always | Join::Background | Join::End => break,
        }
    }
    needed
}

/// Does a wrapper find the same programs as the line it stands in? A login shell reads other settings.
fn is_transparent(command: &Command) -> bool {
    let is_login = command.args().iter().take(2).any(|word| {
        word == "--login" || word.starts_with('-') && !word.starts_with("--") && word.contains(['l', 'i'])
    });
    let is_shell = matches!(command.program.as_str(), "bash" | "sh" | "dash" | "zsh");
    TRANSPARENT.contains(&command.program.as_str()) && !(is_shell && is_login)
}
