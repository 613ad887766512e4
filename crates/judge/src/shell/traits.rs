//! What the commands of a script are good for: showing content, or only saying something. Also the hosts they name.

use super::{Command, Join, Redirection, Role, Stream};
use crate::nature::{Nature, commands, script};

/// Tells whether a command could never be the work a script is run for. `echo … > file` writes a file.
pub(super) fn is_trivial(command: &Command) -> bool {
    const TRIVIAL: &[&str] = &[
        "", ":", "[", "[[", "alias", "date", "declare", "echo", "exit", "export", "false", "local", "printf",
        "pwd", "readonly", "return", "set", "shopt", "sleep", "test", "trap", "true", "type", "typeset",
        "ulimit", "umask", "unset", "wait", "which", "yes",
    ];
    TRIVIAL.contains(&command.program.as_str()) && !prints_nowhere(&command.redirections)
}

/// Tells whether a command only shows content.
pub(super) fn shows(command: &Command) -> bool {
    asks_for_help(command) || commands::traits(command).reader
}

/// Tells whether a command changes nothing and is run for what it prints.
pub(super) fn only_looks(command: &Command) -> bool {
    shows(command) || script::nature_of(command) == Nature::ReadOnly
}

/// What a command that changes nothing and shows no content is run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// For an answer.
    Answer,
    /// For a verdict: what it prints is findings.
    Verdict,
}

/// Tells what a command asks for; `None` where it shows content or does something.
pub(super) fn asks(command: &Command) -> Option<Asks> {
    // These choose what is printed, so that the first line may be anything that was stored there.
    const CHOOSES: [&str; 10] =
        ["--format", "-f", "-o", "--output", "--json", "-q", "--jq", "--query", "--template", "--no-headers"];
    const SHOWS: [&str; 6] = ["api", "diff", "exec", "run", "search", "view"];
    const SHOW_OTHERS: [&str; 5] = ["docker", "gh", "glab", "kubectl", "podman"];
    // With these a check ends well whatever it finds, or mends it.
    const FORGIVES: [&str; 7] =
        ["--exit-zero", "--issues-exit-code", "--fix", "-a", "-A", "--autocorrect", "--autocorrect-all"];
    let args = command.args();
    let has =
        |words: &[&str]| args.iter().any(|word| words.contains(&word.split('=').next().unwrap_or_default()));
    if !only_looks(command) || shows(command) || is_trivial(command) {
        return None;
    }
    match commands::traits(command).checks {
        true => (!has(&FORGIVES)).then_some(Asks::Verdict),
        false => {
            let shows_others = SHOW_OTHERS.contains(&command.program.as_str()) && has(&SHOWS);
            (!has(&CHOOSES) && !shows_others).then_some(Asks::Answer)
        }
    }
}

fn asks_for_help(command: &Command) -> bool {
    command.args().iter().any(|word| word == "--help")
        || command.args().first().is_some_and(|word| word == "help")
}

/// Tells whether everything that is printed is shown content: each producer is a reader, and what stands behind a pipe
/// is a reader or a filter.
pub(super) fn is_reader(script: &[Command]) -> bool {
    let (mut seen, mut piped) = (false, false);
    for command in script.iter().filter(|command| command.role != Role::Defined) {
        let traits = commands::traits(command);
        if command.then != Join::Wraps {
            let silent = traits.quiet || command.program.is_empty() || prints_nowhere(&command.redirections);
            let producer = !silent && shows(command);
            seen |= producer;
            if !(producer || silent || piped && traits.filter) {
                return false;
            }
        }
        piped = match command.then {
            Join::Pipe => true,
            Join::Wraps => piped,
            Join::Always | Join::And | Join::Or | Join::Background | Join::End => false,
        };
    }
    seen
}

fn prints_nowhere(redirections: &[Redirection]) -> bool {
    redirections.iter().any(|to| matches!(to.stream, Stream::Output | Stream::Both) && to.writes_file())
}

/// The hosts that the words name, each once, in order.
pub(super) fn url_hosts(script: &[Command]) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for command in script {
        // A wrapper's words are read again as the words of the command it wraps.
        for word in command.words.iter().chain(command.assignments.iter().map(|(_, value)| value)) {
            for host in hosts_in(word) {
                if hosts.len() < 64 && !hosts.contains(&host) {
                    hosts.push(host);
                }
            }
        }
    }
    hosts
}

/// The hosts in one word. Scripts passed as one word may name several.
fn hosts_in(word: &str) -> Vec<String> {
    let mut found: Vec<String> =
        word.match_indices("://").filter_map(|(at, sep)| host(&word[at + sep.len()..])).collect();
    if !found.is_empty() {
        return found;
    }
    found.extend(bare_host(word));
    found
}

/// The host at the start of an authority: without user, port and path.
fn host(authority: &str) -> Option<String> {
    let stops = |c: char| {
        matches!(c, '/' | '?' | '#' | '\'' | '"' | '`' | ')' | '(' | '<' | '>' | ',' | ';' | '\\')
            || c.is_whitespace()
    };
    let authority = authority.split(stops).next()?;
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?,
        None => authority.split(':').next()?,
    };
    let fits = !host.is_empty() && host.len() <= 253 && !host.contains('$');
    fits.then(|| host.to_lowercase())
}

/// `localhost:8080`, `10.0.0.1:5432/db` and `git@host:path`.
fn bare_host(word: &str) -> Option<String> {
    let (before, after) = word.split_once(':')?;
    if let Some((user, host)) = before.split_once('@') {
        let named =
            !user.is_empty() && !user.contains(['/', '=']) && host.contains('.') && !host.contains('/');
        return named.then(|| host.to_lowercase());
    }
    let port = after.split('/').next().unwrap_or_default();
    let has_port = !port.is_empty() && port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
    let is_host = before.eq_ignore_ascii_case("localhost")
        || before.split('.').count() == 4 && before.split('.').all(|part| part.parse::<u8>().is_ok())
        || before.contains('.')
            && before
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'))
            && before
                .rsplit('.')
                .next()
                .is_some_and(|tld| tld.len() >= 2 && tld.bytes().all(|b| b.is_ascii_alphabetic()));
    // `main.rs:42` looks like a host with a port, so a bare name counts only with a path or a well-known port behind it.
    let is_local =
        before.eq_ignore_ascii_case("localhost") || before.split('.').all(|part| part.parse::<u8>().is_ok());
    (has_port && is_host && (is_local || after.contains('/') || port.len() >= 4))
        .then(|| before.to_lowercase())
}
