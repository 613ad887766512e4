//! Reads calls and results into what the ladder compares. All knowledge of shells, tools and outputs ends here.

use serde_json::{Map, Value};

use super::preset;
use super::sight::{Change, Ending, Fault, Firmness, Manner, Print, Sight, Speaker, State, Upshot, Voice};
use crate::call::{Call, Observation, Outcome};
use crate::diagnose::Diagnosis;
use crate::fingerprint;
use crate::kind::Kind;
use crate::nature::{self, Nature};
use crate::shell::{self, Command, Join, Role, Script};

/// How our own refusals begin, so that they are not taken for failures when a host hands them back as results.
pub const OUR_MARK: &str = "Blocked by unstuck";

/// Lists are there to compare, not to keep.
const LISTED: usize = 16;
const NAMES: usize = 64;
/// An answer longer than this tells no state in a word.
const STATE_MAX: usize = 600;
/// An error longer than this explains itself.
const OPAQUE_MAX: usize = 200;
/// An answer shorter than this is an acknowledgement.
const TELLING: usize = 30;
/// How much of an answer is masked to compare it; what differs after that is data.
const MASKED_LINES: usize = 200;

/// Reads a call.
pub fn sight(call: &Call) -> Sight {
    let script = shell::line(call).map(|line| Script::parse(&line));
    let targets: Vec<String> =
        nature::targets(call).into_iter().take(LISTED).map(|path| tidy(&path)).collect();
    let creates = creates(call);
    let mut roots = match &script {
        Some(script) => needed_programs(script),
        None => vec![Print::of(&["tool", &call.tool.to_lowercase()])],
    };
    if creates {
        roots.extend(paths(&call.input).map(|path| Print::of(&["exists", &path])));
    }
    roots.truncate(LISTED);
    let manner = match &script {
        Some(script) => shell_manner(call, script),
        None => tool_manner(call),
    };
    let approach = nature::approach(call);
    let plain = plainer(call);
    let fields = field_names(&call.input);
    let exact = Print::of(&["exact", fingerprint::call(&plain).as_str(), &fields]);
    // What a look asks is all there is to it, filters and pages included; a variant of it is another question.
    let intent = match (&script, manner) {
        (Some(_), Manner::Looks) => exact,
        (Some(_), _) => Print::of(&["intent", fingerprint::intent(&in_foreground(call)).as_str()]),
        (None, _) => Print::of(&["intent", fingerprint::intent(&without_prose(&plain)).as_str(), &fields]),
    };
    Sight {
        label: nature::shorter(&approach).to_owned(),
        tool_name: call.tool.clone(),
        tool: Print::of(&["tool", &call.tool]),
        exact,
        intent,
        approach: Print::of(&["approach", &approach]),
        roots,
        manner,
        speaker: if script.is_some() { Speaker::Shell } else { Speaker::Tool },
        names: names(targets.iter().map(String::as_str)),
        targets: targets.iter().map(|target| Print::of(&["target", target])).collect(),
        creates,
        polls: polls(call, script.as_ref()),
        waits: script.as_ref().is_some_and(sleeps),
        trivial: manner == Manner::Looks && script.as_ref().is_some_and(cannot_fail),
    }
}

/// Reads a result. `said_ok` is what the host reports, where it reports anything.
pub fn ending(
    sight: &Sight,
    observation: &Observation,
    diagnosis: &Diagnosis,
    said_ok: Option<bool>,
) -> Ending {
    let parts = [&observation.stdout[..], &observation.stderr[..], &observation.merged[..]];
    let bytes = Print::of_bytes(&parts);
    let text: String = parts.iter().map(|part| String::from_utf8_lossy(part)).collect();
    let masked_text = masked(&text);
    let masked = Print::of(&["answer", &masked_text]);
    let upshot = if is_our_denial(&text) {
        Upshot::OurDenial
    } else if failed(sight, observation, diagnosis, said_ok) {
        Upshot::Failed(fault(sight, observation, diagnosis, &text, &masked_text))
    } else {
        Upshot::Fine
    };
    let telling = text.trim().len() >= TELLING;
    Ending {
        upshot,
        bytes,
        masked,
        ageless: Print::of(&["ageless", &ageless(&text)]),
        telling,
        state: state(sight, &text),
    }
}

fn is_our_denial(text: &str) -> bool {
    text.trim_start().starts_with(OUR_MARK)
}

/// Did the call fail? A host that says so is believed, unless the diagnosis knows that its code is no error; a failure
/// behind a host's "ok" counts only where the call was not there to change something.
fn failed(sight: &Sight, observation: &Observation, diagnosis: &Diagnosis, said_ok: Option<bool>) -> bool {
    let said = said_ok.or(match observation.outcome {
        Outcome::Succeeded | Outcome::Exited { code: 0 } => Some(true),
        Outcome::NoExitCode => None,
        Outcome::Exited { .. }
        | Outcome::Signalled { .. }
        | Outcome::TimedOut
        | Outcome::Interrupted
        | Outcome::Rejected
        | Outcome::Threw
        | Outcome::ReportedFailure
        | Outcome::Denied => Some(false),
    });
    match (diagnosis.kind, said) {
        (Kind::NotAnError, _) => false,
        (_, Some(false)) => true,
        (Kind::Unknown, _) => false,
        (_, Some(true)) => {
            diagnosis.confidence >= SURE && !matches!(sight.manner, Manner::Changes(_) | Manner::Looks)
        }
        (_, None) => true,
    }
}

/// From here on a diagnosis outweighs what the host says.
const SURE: f32 = 0.8;
/// Below this a diagnosis is a guess.
const GUESS: f32 = 0.5;

fn fault(
    sight: &Sight,
    observation: &Observation,
    diagnosis: &Diagnosis,
    text: &str,
    masked_text: &str,
) -> Fault {
    let line = diagnosis.evidence.as_ref().map(|found| found.text.clone());
    let line = line.unwrap_or_else(|| last_line(text).to_owned());
    let kind = diagnosis.kind;
    let family = fingerprint::family(&observation.call);
    let cause = match kind {
        Kind::Unknown => Print::of(&["cause", &family, masked_text]),
        // No way to the other side is one cause, however each layer puts it.
        Kind::Network => Print::of(&["cause", &family, kind.word()]),
        _ => Print::of(&["cause", fingerprint::cause(&family, kind, &line).as_str()]),
    };
    let trimmed = text.trim();
    let one_word = trimmed.len() <= 10 && !trimmed.contains(char::is_whitespace);
    Fault {
        firmness: firmness(sight, diagnosis),
        kind,
        cause,
        roots: stopped_roots(sight, &observation.call, diagnosis, &line),
        names: names(diagnosis.subject.as_deref().into_iter().chain(quoted(&line))),
        silent: trimmed.is_empty() || one_word || trimmed.starts_with("Exit code ") && trimmed.len() < 14,
        voice: voice(kind, text),
        rule: diagnosis.rule.clone(),
        line: nature::shorter(line.trim()).to_owned(),
    }
}

/// How much an error tells the one who asked.
fn voice(kind: Kind, text: &str) -> Voice {
    let short = text.len() < OPAQUE_MAX;
    let text = if short { text.to_lowercase() } else { String::new() };
    let inside = preset::signs_of_insides().iter().any(|sign| text.contains(sign));
    match kind {
        Kind::Unknown | Kind::Logical | Kind::Crash | Kind::CodeError | Kind::ParseError if inside => {
            Voice::Inside
        }
        Kind::Unknown | Kind::Logical if short => Voice::Terse,
        _ => Voice::Wordy,
    }
}

/// How firmly the cause stands. A tool with named arguments answers the same arguments the same way, so even a cause
/// without a name is certain there, as long as it does not come and go by itself.
fn firmness(sight: &Sight, diagnosis: &Diagnosis) -> Firmness {
    let steady = matches!(diagnosis.kind, Kind::Unknown | Kind::Crash | Kind::TestFailure);
    let guessed = sight.speaker == Speaker::Shell && diagnosis.confidence < GUESS;
    match preset::firmness(diagnosis.kind) {
        Firmness::Certain if diagnosis.transient || guessed => Firmness::Likely,
        Firmness::Likely if sight.speaker == Speaker::Tool && steady && !diagnosis.transient => {
            Firmness::Certain
        }
        firmness @ (Firmness::Certain | Firmness::Likely | Firmness::Patient) => firmness,
    }
}

/// What else the cause is bound to stop.
fn stopped_roots(sight: &Sight, call: &Call, diagnosis: &Diagnosis, line: &str) -> Vec<Print> {
    let mut roots = Vec::new();
    if diagnosis.kind == Kind::CommandNotFound && sight.speaker == Speaker::Shell {
        let subject = diagnosis.subject.as_deref().unwrap_or_default();
        let script = shell::line(call).map(|line| Script::parse(&line)).unwrap_or_default();
        let missing =
            script.programs().filter(|program| *program == subject || line.contains(&format!("{program}:")));
        roots.extend(missing.map(|program| Print::of(&["program", program])));
    }
    if line.trim_start().starts_with("sudo:") {
        roots.push(Print::of(&["program", "sudo"]));
    }
    if sight.speaker == Speaker::Tool && denies_tool(line, &call.tool) {
        roots.push(Print::of(&["tool", &call.tool.to_lowercase()]));
    }
    if diagnosis.kind == Kind::Conflict && sight.creates {
        roots.extend(paths(&call.input).map(|path| Print::of(&["exists", &path])));
    }
    roots
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
    script.commands().iter().filter(plain).map(|command| Print::of(&["program", &command.program])).collect()
}

fn shell_manner(call: &Call, script: &Script) -> Manner {
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
    match nature::of(call) {
        Nature::ReadOnly => Manner::Looks,
        // `cd x && grep y` looks, although `cd` alone would not.
        Nature::Unknown | Nature::Idempotent if script.is_reader() && !nature::moves_world(call) => {
            Manner::Looks
        }
        Nature::Unknown if workers().any(is_written_on_the_spot) => Manner::Changes(Change::Script),
        Nature::Unknown | Nature::Idempotent | Nature::Writes if !nature::moves_world(call) => Manner::Runs,
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
        Some(Change::Trifle) => {
            (writes || matches!(command.program.as_str(), "touch" | "mkdir")).then_some(Change::Trifle)
        }
        Some(Change::Script) => is_written_on_the_spot(command).then_some(Change::Script),
        Some(Change::Edit) => (writes || nature_of_editor(command)).then_some(Change::Edit),
        Some(Change::Files | Change::Git | Change::Install | Change::Service) => known,
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

fn tool_manner(call: &Call) -> Manner {
    match nature::of(call) {
        Nature::ReadOnly => Manner::Looks,
        Nature::Unknown => Manner::Unclear,
        Nature::Idempotent | Nature::Writes if nature::moves_world(call) => Manner::Changes(Change::Edit),
        Nature::Idempotent | Nature::Writes => Manner::Unclear,
    }
}

/// Makes the call something that may be there already?
fn creates(call: &Call) -> bool {
    let sub = call.input.get("command").and_then(Value::as_str).unwrap_or_default();
    let name = call.tool.to_lowercase();
    shell::line(call).is_none()
        && (sub == "create" || ["create", "write", "new_", "add_"].iter().any(|verb| name.starts_with(verb)))
}

/// Does the script let time pass before it asks?
fn sleeps(script: &Script) -> bool {
    let mut workers =
        script.commands().iter().filter(|command| command.role == Role::Plain && command.program != "cd");
    workers.next().is_some_and(|command| command.program == "sleep")
}

/// Are all its programs such that only a broken shell makes them fail without a word?
fn cannot_fail(script: &Script) -> bool {
    const MAY_SAY_NO: &[&str] =
        &["grep", "egrep", "fgrep", "rg", "ag", "diff", "cmp", "test", "[", "[[", "pgrep", "which", "false"];
    !script.programs().any(|program| MAY_SAY_NO.contains(&program))
}

fn polls(call: &Call, script: Option<&Script>) -> bool {
    let tool = call.tool.to_lowercase();
    let by_name = match script {
        Some(script) => script.programs().any(|program| preset::polling_programs().contains(&program)),
        None => preset::polling_tools().iter().any(|part| tool.contains(part)),
    };
    by_name || nature::waits(call)
}

/// What a short answer says of the thing looked at.
fn state(sight: &Sight, text: &str) -> State {
    let longest = match (sight.polls || sight.waits, sight.manner) {
        (true, _) => STATE_MAX,
        (false, Manner::Looks | Manner::Unclear) => STATE_MAX / 3,
        (false, Manner::Changes(_) | Manner::Runs | Manner::Waits) => 0,
    };
    if text.len() > longest {
        return State::Unsaid;
    }
    let text = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| contains_word(&text, word));
    if says(preset::person_words()) {
        State::Ended
    } else if says(preset::alive_words()) {
        State::Alive
    } else if says(preset::ended_words()) {
        State::Ended
    } else {
        State::Unsaid
    }
}

fn contains_word(text: &str, word: &str) -> bool {
    let letter = |sign: Option<char>| sign.is_some_and(|sign| sign.is_alphanumeric());
    text.match_indices(word).any(|(at, _)| {
        !letter(text[..at].chars().next_back()) && !letter(text[at + word.len()..].chars().next())
    })
}

/// The command without a last `&`: whether somebody waits for it does not change what it does.
fn in_foreground(call: &Call) -> Call {
    let line = shell::line(call).unwrap_or_default();
    match line.trim_end().strip_suffix('&') {
        Some(rest) if !rest.ends_with(['&', '\\', '>']) => {
            Call::new(call.tool.clone(), serde_json::json!({ "command": rest }))
        }
        _ => call.clone(),
    }
}

/// The call without arguments that only say why, as long as something is left.
fn without_prose(call: &Call) -> Call {
    let Value::Object(fields) = &call.input else { return call.clone() };
    let is_prose = |field: &str| preset::prose_fields().contains(&field.to_lowercase().as_str());
    let kept: Map<String, Value> = fields
        .iter()
        .filter(|(field, _)| !is_prose(field))
        .map(|(field, value)| (field.clone(), value.clone()))
        .collect();
    if kept.is_empty() { call.clone() } else { Call::new(call.tool.clone(), Value::Object(kept)) }
}

/// The paths among the arguments, tidied.
fn paths(input: &Value) -> impl Iterator<Item = String> {
    let fields = input.as_object().into_iter().flatten();
    fields.filter(|(field, _)| names_path(field)).filter_map(|(_, value)| value.as_str()).map(tidy)
}

fn names_path(field: &str) -> bool {
    let field = field.to_lowercase();
    field.ends_with("path")
        || matches!(field.as_str(), "file" | "filename" | "file_name" | "directory" | "dir")
}

/// The call with its paths tidied, and with one way to write "nothing".
fn plainer(call: &Call) -> Call {
    let Value::Object(fields) = &call.input else { return call.clone() };
    let plain = fields.iter().map(|(field, value)| {
        let is_path = field.to_lowercase().ends_with("path")
            || matches!(field.as_str(), "file" | "filename" | "directory" | "dir");
        let value = match value {
            Value::String(text) if text.is_empty() => Value::Null,
            Value::String(text) if is_path => Value::String(tidy(text)),
            Value::Object(inner) if inner.is_empty() => Value::Null,
            Value::Array(items) if items.is_empty() => Value::Null,
            other => other.clone(),
        };
        (field.clone(), value)
    });
    Call::new(call.tool.clone(), Value::Object(plain.collect()))
}

/// Which arguments are given at all. To leave out an argument is a real change, to leave it empty another way is not.
fn field_names(input: &Value) -> String {
    let Value::Object(fields) = input else { return String::new() };
    let is_prose = |field: &str| preset::prose_fields().contains(&field.to_lowercase().as_str());
    let mut names: Vec<&str> = fields.keys().map(String::as_str).filter(|field| !is_prose(field)).collect();
    names.sort_unstable();
    names.iter().map(|name| format!("{name}=")).collect()
}

/// A path without detours.
fn tidy(path: &str) -> String {
    let absolute = path.starts_with('/');
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if absolute { format!("/{}", parts.join("/")) } else { parts.join("/") }
}

/// The names in some texts, for comparing: whole words of three letters or more.
fn names<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<Print> {
    let mut found = Vec::new();
    for text in texts {
        for word in text.split(|sign: char| !sign.is_alphanumeric() && sign != '_' && sign != '-') {
            if word.len() >= 3 && found.len() < NAMES {
                let print = Print::of(&["name", word]);
                if !found.contains(&print) {
                    found.push(print);
                }
            }
        }
    }
    found
}

/// What stands between quotes in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split(['\'', '"', '`', '‘', '’', '“', '”']).skip(1).step_by(2)
}

/// The answer with one sign for every age: `3m`, `2h15m`, `5 minutes ago`.
fn ageless(text: &str) -> String {
    let is_age = |word: &str| {
        let word = word.trim_matches(|sign: char| !sign.is_alphanumeric());
        let starts = word.starts_with(|sign: char| sign.is_ascii_digit());
        starts
            && word.ends_with(['s', 'm', 'h', 'd'])
            && word.chars().all(|sign| sign.is_ascii_digit() || "smhd".contains(sign))
    };
    let is_unit = |word: &str| {
        let word = word.trim_end_matches('s');
        matches!(word, "second" | "minute" | "hour" | "day" | "sec" | "min")
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain = words.iter().enumerate().map(|(at, word)| {
        let counted = words.get(at + 1).is_some_and(|next| is_unit(next));
        if is_age(word) || counted { "<age>" } else { word }
    });
    plain.collect::<Vec<_>>().join(" ")
}

fn last_line(text: &str) -> &str {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

fn masked(text: &str) -> String {
    let lines: Vec<String> = text.lines().take(MASKED_LINES).map(fingerprint::mask).collect();
    lines.join("\n")
}
