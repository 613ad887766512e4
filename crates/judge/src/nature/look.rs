//! Whether a call is known to only look, so that the same call with the same answer is the same question once more. The list of
//! what is known is a list of what is allowed (`[[looks]]` of the rule file): a program that nobody wrote down may do anything.

use super::{Nature, commands, object};
use crate::kind::vocabulary;
use crate::shell::{Command, Flow, Join, ParsedCall, Redirection, Role, Script};

vocabulary! {
    /// How sure it is that a call only looks, from not at all to certain.
    Looks {
        /// It may write, or nobody knows. Each run may be another step.
        MayWrite = "may_write",
        /// Its words say that it only looks, or that it does the same work once more. That is worth a hint, and no more.
        Seems = "seems",
        /// It reads files and does nothing else.
        Known = "known",
    }
}

/// Programs that only run another one, which is looked at itself.
const WRAPPERS: &[&str] = &["timeout", "gtimeout", "nice", "time", "bash", "sh", "zsh", "dash", "xargs"];
/// Flags of these that write something, or that stand for more than can be read here.
const WRAPPER_FLAGS: &[&str] = &["-o", "--output", "-a", "--append", "-i", "--init-file", "--rcfile"];
/// Variables that change how a look looks, and nothing else.
const HARMLESS_VARIABLES: &[&str] =
    &["LANG", "LANGUAGE", "TZ", "NO_COLOR", "CLICOLOR", "TERM", "COLUMNS", "LINES"];
/// Where a program that is called by its path is the one of that name.
const FOLDERS: &[&str] = &["/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"];
/// Programs that ask without a word behind them, and set something with one.
const SET_BY_A_WORD: &[&str] =
    &["hostname", "date", "mount", "ifconfig", "route", "arp", "domainname", "ulimit"];
/// Flags that name a file that is made, whatever the program is.
const FILES_BY_FLAG: &[&str] =
    &["-out", "--out", "--outfile", "--output-file", "--output-dir", "--output-directory"];
/// Programs that look, and flags with which they take away what they look at.
const TAKES_AWAY_WITH: &[(&str, &[&str])] = &[
    ("dmesg", &["-c", "-C", "-D", "-E", "-n", "--clear", "--read-clear", "--console-off", "--console-on"]),
    (
        "journalctl",
        &["--vacuum-size", "--vacuum-time", "--vacuum-files", "--rotate", "--flush", "--relinquish-var"],
    ),
    ("ss", &["-K", "--kill"]),
    ("history", &["-c", "-d", "-w", "-a", "-r"]),
    ("last", &["--rotate"]),
    ("ipcs", &["-D"]),
];
/// So many words of a command are looked at for a verb that changes something.
const VERB_AMONG: usize = 4;

/// How sure it is that a call only looks.
pub(super) fn of(parsed: &ParsedCall<'_>) -> Looks {
    match &parsed.script {
        Some(script) if is_known(script) => Looks::Known,
        Some(script) if seems(parsed, script) => Looks::Seems,
        None if is_known_tool(parsed) => Looks::Known,
        None if matches!(parsed.nature(), Nature::ReadOnly | Nature::Idempotent) && !parsed.moves_world() => {
            Looks::Seems
        }
        Some(_) | None => Looks::MayWrite,
    }
}

/// Is every command of a script known to only look, and does one of them look at something?
fn is_known(script: &Script) -> bool {
    let mut looks_at_something = false;
    let all = script.commands().iter().all(|command| match command.then {
        Join::Wraps => is_known_wrapper(command),
        Join::Always | Join::And | Join::Or | Join::Pipe | Join::Background | Join::End => limits(command)
            .is_some_and(|limits| {
                looks_at_something |= !limits.fills;
                is_within(command, &limits)
            }),
    });
    all && looks_at_something
}

/// Does a line look, as far as its words tell, or does it build and test?
fn seems(parsed: &ParsedCall<'_>, script: &Script) -> bool {
    matches!(parsed.nature(), Nature::ReadOnly | Nature::Idempotent)
        && !parsed.moves_world()
        && script.commands().iter().all(command_seems)
}

/// Of what is known to look within limits, nothing is taken for a look beyond them.
fn command_seems(command: &Command) -> bool {
    let known = commands::traits(command);
    let looks = known.nature == Nature::ReadOnly;
    let changes = |word: &str| commands::verb(word).is_some_and(|verb| verb.moves_world);
    let has_changing_verb = || command.operands().take(VERB_AMONG).any(changes);
    let sets = || command.operands().any(|word| !word.starts_with('+'));
    let program = command.program.as_str();
    let takes_away = |(name, flags): &(&str, &[&str])| {
        *name == program && command.args().iter().any(|word| flags.iter().any(|flag| is_given(word, flag)))
    };
    has_harmless_variables(command)
        && !TAKES_AWAY_WITH.iter().any(takes_away)
        && !command.redirections.iter().any(Redirection::writes_file)
        && !matches!(program, "tee" | "alias" | "mktemp")
        && limits(command).is_none_or(|limits| is_within(command, &limits))
        && (!looks || is_plainly_called(command))
        && (!looks || known.filter || known.checks || limits(command).is_some() || !has_changing_verb())
        && (!SET_BY_A_WORD.contains(&program) || !sets())
        && !command
            .args()
            .iter()
            .any(|word| FILES_BY_FLAG.contains(&word.split('=').next().unwrap_or_default()))
}

fn is_known_tool(parsed: &ParsedCall<'_>) -> bool {
    let name = parsed.call.tool.to_lowercase();
    let views = || {
        let input = object(&parsed.call.input);
        commands::tool(&name).is_some()
            && input.get("command").and_then(serde_json::Value::as_str) == Some("view")
    };
    commands::is_look_tool(&name) || views()
}

fn is_known_wrapper(command: &Command) -> bool {
    WRAPPERS.contains(&command.program.as_str())
        && is_plainly_called(command)
        && has_harmless_variables(command)
        && !command.redirections.iter().any(Redirection::writes_file)
        // What stands behind the flags of a shell is the script, which was read.
        && !command.args().iter().take_while(|word| word.starts_with('-')).any(|word| {
            WRAPPER_FLAGS.iter().any(|flag| command.program != "xargs" && is_given(word, flag))
        })
}

/// The limits of a command, with as many sub-commands as the table knows.
fn limits(command: &Command) -> Option<commands::Limits> {
    let words: Vec<&str> = commands::sub_words(&command.program, command, 2);
    (0..=words.len()).rev().find_map(|count| {
        let key = words[..count].iter().fold(command.program.clone(), |key, word| key + " " + word);
        commands::look(&key)
    })
}

fn is_within(command: &Command, limits: &commands::Limits) -> bool {
    let is_named = command.program != "git" || !limits.not_with.is_empty();
    let subs = if command.program == "git" { 1 } else { 0 };
    // What a variable holds may be a flag.
    let is_open = |word: &String| word.starts_with('$') || word.starts_with('`');
    command.role != Role::Defined
        && is_named
        && is_plainly_called(command)
        && has_harmless_variables(command)
        && !command.redirections.iter().any(|to| to.flow != Flow::Document && to.writes_file())
        && !command.args().iter().any(|word| limits.not_with.iter().any(|flag| is_given(word, flag)))
        && (limits.not_with.is_empty() || !command.args().iter().any(is_open))
        && command.operands().count() <= limits.operands.saturating_add(subs)
        && writes_in_script(command) != Some(true)
        && (command.program != "printf" || command.args().first().is_none_or(|word| word != "-v"))
}

/// Is a flag given by this word: alone, with a value, cut short, or among other letters?
fn is_given(word: &str, flag: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    match (flag.strip_prefix("--"), word.strip_prefix('-')) {
        (_, None) => false,
        (Some(_), Some(rest)) => rest.len() > 2 && word.starts_with("--") && flag.starts_with(name),
        (None, Some(rest)) if flag.len() == 2 => !rest.starts_with('-') && rest.contains(&flag[1..]),
        (None, Some(_)) => word == flag,
    }
}

fn is_plainly_called(command: &Command) -> bool {
    let written = command.words.first().map_or("", String::as_str);
    let is_name = !written.contains('/') && !written.contains('$');
    is_name || FOLDERS.iter().any(|folder| written.strip_prefix(folder) == Some(&command.program))
}

fn has_harmless_variables(command: &Command) -> bool {
    command.assignments.iter().all(|(name, value)| {
        HARMLESS_VARIABLES.contains(&name.as_str())
            || name.starts_with("LC_")
            || matches!(name.as_str(), "PAGER" | "GIT_PAGER") && value == "cat"
    })
}

/// Does the script that an editor of streams is given write, or start something? Nothing for other programs.
fn writes_in_script(command: &Command) -> Option<bool> {
    match command.program.as_str() {
        "sed" | "gsed" => {
            let given = command.args().iter().any(|word| word == "-e" || word.starts_with("--expression"));
            let first = usize::from(!given);
            let scripts = command.operands().take(first).map(str::to_owned).chain(values(
                command,
                "-e",
                "--expression",
            ));
            Some(!scripts.into_iter().all(|script| prints_lines(&script) || only_exchanges(&script)))
        }
        "awk" | "gawk" | "mawk" => {
            const SIGNS: [&str; 6] = [">", "|", "system", "getline", "close(", "@"];
            let words = command.args().iter();
            Some(words.into_iter().any(|word| SIGNS.iter().any(|sign| word.contains(sign))))
        }
        _ => None,
    }
}

/// The values that a flag is given with.
fn values(command: &Command, short: &str, long: &str) -> Vec<String> {
    let args = command.args();
    let mut found = Vec::new();
    for (at, word) in args.iter().enumerate() {
        let glued = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
        let next = (word == short || word == long).then(|| args.get(at + 1).map(String::as_str)).flatten();
        found.extend(glued.or(next).map(str::to_owned));
    }
    found
}

/// `10,20p`, `$p`, `/x/,/y/p`, `5d`: addresses, and commands that only choose lines.
fn prints_lines(script: &str) -> bool {
    let bare = without_patterns(script);
    bare.is_some_and(|bare| {
        bare.chars().all(|sign| sign.is_ascii_digit() || "$,;!+~ \n\t{}pdqQ=lnI".contains(sign))
    })
}

/// `s/a/b/g`: one exchange, whose flags neither write nor run what comes of it.
fn only_exchanges(script: &str) -> bool {
    let Some(rest) = script.trim().strip_prefix('s') else { return false };
    let Some(sign) = rest.chars().next().filter(|sign| !sign.is_alphanumeric() && *sign != '\\') else {
        return false;
    };
    let mut parts = 0;
    let mut is_escaped = false;
    let mut flags = String::new();
    for each in rest.chars() {
        match (is_escaped, parts) {
            (_, 3) => flags.push(each),
            (true, _) => is_escaped = false,
            (false, _) if each == '\\' => is_escaped = true,
            (false, _) if each == sign => parts += 1,
            (false, _) => {}
        }
    }
    parts == 3 && flags.chars().all(|flag| flag.is_ascii_digit() || "gipI ".contains(flag))
}

/// A script without its `/patterns/`; nothing where one has no end.
fn without_patterns(script: &str) -> Option<String> {
    let (mut bare, mut is_inside, mut is_escaped) = (String::new(), false, false);
    for sign in script.chars() {
        match (is_inside, is_escaped, sign) {
            (true, true, _) => is_escaped = false,
            (true, false, '\\') => is_escaped = true,
            (_, false, '/') => is_inside = !is_inside,
            (true, false, _) => {}
            (false, _, _) => bare.push(sign),
        }
    }
    (!is_inside).then_some(bare)
}
