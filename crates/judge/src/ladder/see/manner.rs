//! What a call does to the world when it succeeds, and how it goes about asking.

use serde_json::Value;

use crate::call::Call;
use crate::ladder::preset;
use crate::ladder::sight::{Change, Manner};
use crate::nature::Nature;
use crate::shell::{self, Command, Join, ParsedCall, Role, Script};

/// What a call does to the world.
pub(super) fn of(parsed: &ParsedCall<'_>) -> Manner {
    match &parsed.script {
        Some(script) => shell_manner(parsed, script),
        None => tool_manner(parsed),
    }
}

fn shell_manner(parsed: &ParsedCall<'_>, script: &Script) -> Manner {
    let workers = || script.commands().iter().filter(|command| command.then != Join::Wraps);
    if workers().count() > 0 && workers().all(|command| command.program == "sleep") {
        return Manner::Waits;
    }
    // In a shell that stays open, these change what every later command finds.
    let prepares = |command: &Command| {
        matches!(
            command.program.as_str(),
            "cd" | "pushd" | "popd" | "export" | "source" | "." | "unset" | "alias"
        )
    };
    if workers().count() > 0 && workers().all(prepares) {
        return Manner::Changes(Change::Install);
    }
    match parsed.nature() {
        Nature::ReadOnly => Manner::Looks,
        Nature::Unknown | Nature::Idempotent | Nature::Writes
            if workers().any(|command| preset::handing_programs().contains(&command.program.as_str())) =>
        {
            Manner::Unclear
        }
        // `cd x && grep y` looks, although `cd` alone would not.
        Nature::Unknown | Nature::Idempotent if script.is_reader() && !parsed.moves_world() => Manner::Looks,
        Nature::Unknown if workers().any(is_written_on_the_spot) => Manner::Changes(Change::Script),
        Nature::Unknown | Nature::Idempotent | Nature::Writes if !parsed.moves_world() => Manner::Runs,
        Nature::Unknown if !workers().any(|command| known_change(command).is_some()) => Manner::Runs,
        Nature::Unknown | Nature::Idempotent | Nature::Writes => {
            let changes = workers().filter_map(known_change);
            // A script that does several things matters by the strongest of them; the order is that of `Change`.
            Manner::Changes(changes.min().unwrap_or(Change::Files))
        }
    }
}

/// A program that is given its code in the call itself.
fn is_written_on_the_spot(command: &Command) -> bool {
    let interpreter = preset::change_of(&command.program, "") == Some(Change::Script);
    let from_input = command.redirections.iter().any(|to| to.flow == shell::Flow::Document);
    interpreter && (command.has_flag(&["-c", "-e", "--eval"]) || from_input)
}

fn known_change(command: &Command) -> Option<Change> {
    let sub = command.operands().next().unwrap_or_default();
    let known = preset::change_of(&command.program, sub);
    let writes = command.redirections.iter().any(shell::Redirection::writes_file);
    match known {
        Some(Change::Trifle) => writes.then_some(Change::Trifle),
        Some(Change::Script) => is_written_on_the_spot(command).then_some(Change::Script),
        Some(Change::Edit) => (writes || nature_of_editor(command)).then_some(Change::Edit),
        Some(Change::Files | Change::Git | Change::Install | Change::Service | Change::Touch) => known,
        None => writes.then_some(Change::Edit),
    }
}

/// Editors of streams change files only where they are told to.
fn nature_of_editor(command: &Command) -> bool {
    match command.program.as_str() {
        "sed" | "perl" | "awk" => command
            .args()
            .iter()
            .any(|word| word.starts_with("-i") || word.starts_with("-pi") || word == "--in-place"),
        "cat" => false,
        _ => true,
    }
}

fn tool_manner(parsed: &ParsedCall<'_>) -> Manner {
    let words = shell::name_words(&parsed.call.tool);
    let hands_on = || words.iter().any(|word| preset::handing_tools().contains(&word.as_str()));
    match parsed.nature() {
        Nature::ReadOnly if hands_on() => Manner::Unclear,
        Nature::ReadOnly => Manner::Looks,
        Nature::Unknown => Manner::Unclear,
        Nature::Idempotent | Nature::Writes if parsed.moves_world() => Manner::Changes(Change::Edit),
        Nature::Idempotent | Nature::Writes => Manner::Unclear,
    }
}

/// Does a tool with named arguments make something that may be there already?
pub(super) fn creates(call: &Call) -> bool {
    let sub = call.input.get("command").and_then(Value::as_str).unwrap_or_default();
    let name = call.tool.to_lowercase();
    sub == "create" || ["create", "write", "new_", "add_"].iter().any(|verb| name.starts_with(verb))
}

/// Does the script let time pass before it asks?
pub(super) fn sleeps(script: &Script) -> bool {
    let mut workers =
        script.commands().iter().filter(|command| command.role == Role::Plain && command.program != "cd");
    workers.next().is_some_and(|command| command.program == "sleep")
}

/// Are all its programs such that only a broken shell makes them fail without a word?
pub(super) fn cannot_fail(script: &Script) -> bool {
    script.programs().all(|program| preset::sturdy_programs().contains(&program))
}

/// Does the call ask how something else is doing?
pub(super) fn polls(parsed: &ParsedCall<'_>) -> bool {
    let by_name = match &parsed.script {
        Some(script) => script.programs().any(|program| preset::polling_programs().contains(&program)),
        None => {
            let tool = parsed.call.tool.to_lowercase();
            preset::polling_tools().iter().any(|part| tool.contains(part))
        }
    };
    by_name || parsed.waits()
}
