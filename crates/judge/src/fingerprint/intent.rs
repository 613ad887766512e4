//! What a call is meant to do: equal for calls that differ in what they show, how they are quoted or in which order
//! their flags stand. Two calls of one intent fail for the same reason unless the world moved.

use serde_json::{Map, Value};

use super::Fingerprint;
use super::call::{canonical, of_stripped, stripped, without};
use crate::Call;
use crate::nature::{Nature, commands};
use crate::shell::{Command, Flow, Join, ParsedCall, Role, Script};

/// Flags that change what is shown and not what is done.
const DISPLAY_FLAGS: &[&str] = &[
    "--color",
    "--colour",
    "--no-color",
    "--no-colors",
    "--no-colour",
    "--verbose",
    "--quiet",
    "--silent",
    "--no-progress",
    "--progress",
    "--ansi",
    "--no-ansi",
    "--no-header",
    "--no-pager",
    "--show-error",
    "--nocolor",
    "--colors",
    "--pretty",
    "--tb",
    "--no-summary",
    "--progress-bar",
    "--no-progress-bar",
    "--noprogress",
    "--no-fund",
    "--no-audit",
    "--loglevel",
    "--log-level",
    "--backtrace",
    "--stacktrace",
    "--debug-output",
    "--message-format",
    "--showlocals",
    "--durations",
];

/// Short flags that many programs use for showing more or less, and programs for which they mean something else.
const DISPLAY_LETTERS: &[&str] = &["-v", "-vv", "-vvv", "-q", "-qq", "-sS", "-rA", "-vs", "-ra"];
const LETTERS_MATTER: &[&str] = &[
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "awk",
    "gawk",
    "command",
    "docker",
    "podman",
    "psql",
    "mysql",
    "ssh",
    "nc",
    "pkill",
    "pgrep",
    "test",
    "[",
    "ps",
    "unzip",
    "git",
    "mount",
    "python",
    "python3",
    "node",
    "java",
    "gcc",
    "clang",
    "sed",
    "set",
    "ulimit",
    "ls",
    "cat",
    "nvim",
    "vim",
    "printf",
    "sort",
    "go",
    "systemctl",
    "tmux",
];

/// Programs behind a pipe that only choose what is shown.
const DISPLAY_FILTERS: &[&str] =
    &["tail", "head", "cat", "less", "more", "bat", "nl", "column", "fold", "ts", "ccze"];

/// Fields that page through or limit an answer, or that choose its form.
const PAGING: &[&str] = &[
    "limit",
    "head_limit",
    "max_results",
    "maxResults",
    "num_results",
    "numResults",
    "per_page",
    "page_size",
    "pageSize",
    "output_mode",
    "timeout",
    "-A",
    "-B",
    "-C",
    "-n",
    "context",
    "verbose",
    "max_tokens",
    "max_length",
    "max_chars",
    "format",
];

/// Fields of an edit that say what to put in place: an edit fails by where it looks, not by what it would write.
const REPLACEMENTS: &[&str] = &[
    "new_string",
    "new_str",
    "newText",
    "new_text",
    "replace",
    "replacement",
    "replace_all",
    "expected_replacements",
];

/// Fields of an edit that say where it looks.
const SOUGHT: &[&str] = &["old_string", "old_str", "oldText", "old_text", "search", "find"];

/// Names what a call is meant to do.
pub fn intent(call: &Call) -> Fingerprint {
    intent_of(&ParsedCall::of(call))
}

/// The same of a call whose line has been read already.
pub fn intent_of(parsed: &ParsedCall<'_>) -> Fingerprint {
    named(parsed, || stripped(parsed.call))
}

/// Names the work that a call does, whatever is set around it: variables, other users, other environments.
pub fn work(call: &Call) -> Fingerprint {
    let parsed = ParsedCall::of(call);
    match parsed.script.as_ref().map(|script| meant_by_script(script, Around::LeftOut)) {
        Some(meant) if !meant.is_empty() => Fingerprint::of("w1", &[meant.as_bytes()]),
        Some(_) | None => intent_of(&parsed),
    }
}

/// Names the exact call, and what it is meant to do: both for little more than one of them.
pub fn call_and_intent(parsed: &ParsedCall<'_>) -> (Fingerprint, Fingerprint) {
    let stripped = stripped(parsed.call);
    (of_stripped(parsed.call, &stripped), named(parsed, || stripped))
}

/// Names what a call is meant to do, by its line or by its `stripped` input.
fn named(parsed: &ParsedCall<'_>, stripped: impl FnOnce() -> Value) -> Fingerprint {
    let meant = parsed.script.as_ref().map(|script| meant_by_script(script, Around::Counts));
    let meant = meant.unwrap_or_default();
    if meant.is_empty() {
        let tool = parsed.call.tool.to_lowercase();
        Fingerprint::of("i2", &[b"tool", tool.as_bytes(), &canonical(&meant_by_input(parsed, stripped()))])
    } else {
        // All shells are one here: it does not matter by which door a line went in.
        Fingerprint::of("i2", &[b"shell", meant.as_bytes()])
    }
}

/// A stripped input without what only changes the form of the answer.
fn meant_by_input(parsed: &ParsedCall<'_>, stripped: Value) -> Value {
    match stripped {
        Value::Object(fields) => {
            let seeks = SOUGHT.iter().any(|field| fields.contains_key(*field));
            let looks = parsed.nature() == Nature::ReadOnly;
            let mut fields = match (seeks, looks) {
                (true, _) => without(fields, REPLACEMENTS),
                (false, true) => keep_some(fields),
                (false, false) => fields,
            };
            if fields.contains_key("url") {
                // What is asked about a page does not decide whether the page can be had.
                fields.shift_remove("prompt");
            }
            if let Some(Value::Array(edits)) = fields.get_mut("edits") {
                for edit in edits.iter_mut().filter_map(Value::as_object_mut) {
                    *edit = without(std::mem::take(edit), REPLACEMENTS);
                }
            }
            Value::Object(fields)
        }
        other => other,
    }
}

/// Drops paging fields, unless nothing else would be left.
fn keep_some(fields: Map<String, Value>) -> Map<String, Value> {
    let kept = without(fields.clone(), PAGING);
    if kept.is_empty() { fields } else { kept }
}

/// Does what is set around a command count: its variables, and what wraps it?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    Counts,
    LeftOut,
}

/// The commands that do the work, each as one line, with what joins them.
fn meant_by_script(script: &Script, around: Around) -> String {
    let is_meant = |command: &&Command| match around {
        Around::Counts => !is_cosmetic_wrapper(command),
        Around::LeftOut => command.then != Join::Wraps,
    };
    let commands: Vec<&Command> = script.commands().iter().filter(is_meant).collect();
    // In a script that only shows content, what is chosen to be shown is the intent.
    let shown = if script.is_reader() { &commands[..] } else { without_display(&commands) };
    let work = without_preparation(shown, around);
    let mut text = String::new();
    for command in work {
        let line = meant_by_command(command, around);
        if line.is_empty() {
            continue;
        }
        text.push_str(&line);
        text.push_str(match command.then {
            Join::Pipe => "\u{1f}|\u{1e}",
            Join::Or => "\u{1f}||\u{1e}",
            // Not to wait for a server is another way to start it.
            Join::Background => "\u{1f}&\u{1e}",
            // Whether the next one runs after `&&`, `;` or a new line is the same intent.
            Join::Always | Join::And | Join::Wraps | Join::End => "\u{1e}",
        });
    }
    // What stood after the last worker is gone, so its joint is, too.
    let end = text.trim_end_matches(['\u{1e}', '\u{1f}', '|']).len();
    text.truncate(end);
    text
}

/// Cuts trailing display filters, `|| true` and `; echo …`.
fn without_display<'c, 's>(mut commands: &'c [&'s Command]) -> &'c [&'s Command] {
    while let [before @ .., last] = commands {
        let Some(previous) = before.last() else { break };
        let piped = previous.then == Join::Pipe;
        let says = matches!(last.program.as_str(), "echo" | "printf" | "true" | ":")
            && !last.redirections.iter().any(|to| to.writes_file());
        let shows = piped
            && (DISPLAY_FILTERS.contains(&last.program.as_str()) || is_grep(last))
            && !last.redirections.iter().any(|to| to.writes_file());
        let passes_on = piped && last.program == "tee";
        if last.role != Role::Plain || !(shows || passes_on || says && !piped) {
            break;
        }
        commands = before;
    }
    commands
}

/// A trailing grep or sed chooses lines of what was done before it.
fn is_grep(command: &Command) -> bool {
    match command.program.as_str() {
        "grep" | "egrep" | "rg" | "fgrep" => !command.has_flag(&["-q", "--quiet", "-c", "--count"]),
        "sed" => command.has_flag(&["-n"]),
        _ => false,
    }
}

/// Programs that only run another one, where it stands and as it would run without them.
const COSMETIC_WRAPPERS: &[&str] = &[
    "timeout",
    "gtimeout",
    "nice",
    "ionice",
    "time",
    "gtime",
    "stdbuf",
    "unbuffer",
    "nohup",
    "setsid",
    "command",
    "builtin",
    "exec",
    "chronic",
    "caffeinate",
    "eval",
    "bash",
    "sh",
    "dash",
    "zsh",
];

/// Does a command only run the next one, and change nothing about it? A wrapper that sets variables, another user, another
/// machine or another environment is part of the call.
fn is_cosmetic_wrapper(command: &Command) -> bool {
    command.then == Join::Wraps
        && command.assignments.is_empty()
        && COSMETIC_WRAPPERS.contains(&command.program.as_str())
        && !command.args().iter().any(|word| word == "--login" || word.starts_with("-l"))
}

/// Cuts leading `cd`, `sleep`, `set -e` and their like, unless nothing else is left. What sets a variable stays: it is part of
/// what follows.
fn without_preparation<'c, 's>(mut commands: &'c [&'s Command], around: Around) -> &'c [&'s Command] {
    while let [first, rest @ ..] = commands {
        let prepares = match first.program.as_str() {
            "cd" | "pushd" | "sleep" | "set" | "clear" => true,
            "export" | "source" | "." | "unset" | "" => around == Around::LeftOut,
            "echo" | "printf" => !first.redirections.iter().any(|to| to.writes_file()),
            _ => false,
        };
        if rest.is_empty() || !prepares || first.then == Join::Pipe {
            break;
        }
        commands = rest;
    }
    commands
}

/// `npm run test` is `npm test`, and with others every script has its own word.
fn runs_by_name(program: &str, operands: &[&str]) -> bool {
    match (program, operands) {
        ("npm", ["run" | "run-script", "test" | "start" | "stop" | "restart", ..]) => true,
        ("yarn" | "pnpm", ["run", _, ..]) => true,
        (_, _) => false,
    }
}

/// One command: its program, its operands in order, its flags sorted where their order cannot matter.
fn meant_by_command(command: &Command, around: Around) -> String {
    let program = command.words.first().map_or("", |word| word.strip_prefix("./").unwrap_or(word));
    if command.then == Join::Wraps {
        return wrapped_in(command, program);
    }
    let letters_matter = LETTERS_MATTER.contains(&command.program.as_str());
    let valued = commands::valued(&command.program);
    let known = commands::known(command).found;
    let mut flags: Vec<String> = Vec::new();
    let mut operands: Vec<&str> = Vec::new();
    let mut words = command.args().iter().map(String::as_str).peekable();
    let mut only_operands = false;
    while let Some(word) = words.next() {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        if only_operands || !word.starts_with('-') || word == "-" {
            operands.push(word);
        } else if word == "--" {
            only_operands = true;
            operands.push(word);
        } else if DISPLAY_FLAGS.contains(&name) || !letters_matter && DISPLAY_LETTERS.contains(&word) {
            // A value that was given apart goes with its flag.
            if valued.contains(word) {
                words.next();
            }
        } else if valued.contains(word) {
            flags.push(format!("{word}\u{1d}{}", words.next().unwrap_or_default()));
        } else if !known && words.peek().is_some_and(|next| !next.starts_with('-')) {
            // Nothing says whether the next word belongs to this flag, so both keep their place.
            operands.push(word);
        } else {
            flags.push(word.to_owned());
        }
    }
    if !order_matters(&command.program) {
        flags.sort_unstable();
        flags.dedup();
    }
    if runs_by_name(program, &operands) {
        operands.remove(0);
    }
    let mut line = if around == Around::Counts { assigned(command) } else { String::new() };
    line.push_str(program);
    for part in flags.iter().map(String::as_str).chain(operands) {
        line.push('\u{1d}');
        line.push_str(part);
    }
    for to in &command.redirections {
        match to.flow {
            Flow::Read | Flow::Document => line.extend(["\u{1d}<", &to.target]),
            Flow::Write | Flow::Append if writes_content(command) && to.writes_file() => {
                line.extend(["\u{1d}>", &to.target])
            }
            Flow::Write | Flow::Append | Flow::Duplicate => {}
        }
    }
    line
}

/// Variables that change what is shown and not what is done.
const DISPLAY_VARIABLES: &[&str] = &[
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "CARGO_TERM_COLOR",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "PY_COLORS",
    "COLUMNS",
    "LINES",
    "PAGER",
    "GIT_PAGER",
];

/// The variables that a command is given, in their order.
fn assigned(command: &Command) -> String {
    let told = command.assignments.iter().filter(|(name, _)| !DISPLAY_VARIABLES.contains(&name.as_str()));
    told.map(|(name, value)| format!("{name}={value}\u{1d}")).collect()
}

/// What a wrapper adds to the command it runs: its own words, without those of that command, which stand behind it.
fn wrapped_in(command: &Command, program: &str) -> String {
    let own = command.args().iter().take_while(|word| word.starts_with('-') || word.contains('='));
    let words = own.map(|word| format!("\u{1d}{word}"));
    assigned(command) + program + &words.collect::<String>()
}

/// `echo x > file` is about the file, `npm test > log` is about the test.
fn writes_content(command: &Command) -> bool {
    commands::known(command).traits.reader
}

/// Programs whose flags are a small language of their own.
fn order_matters(program: &str) -> bool {
    matches!(
        program,
        "find" | "test" | "[" | "[[" | "ffmpeg" | "convert" | "magick" | "ld" | "expr" | "jq" | "dd"
    )
}
