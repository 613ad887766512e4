//! What a shell script does to the world, from what is known of its commands.

use super::commands::{self, Traits};
use super::{Nature, http, shorter, task};
use crate::shell::{Command, Flow, Join, Role, Script, name_words};

/// What one command does, its redirections and its request considered.
pub(crate) fn nature_of(command: &Command) -> Nature {
    let known = if only_asks(command) { Nature::ReadOnly } else { traits(command).nature };
    let written = if command.redirections.iter().any(writes) { Nature::Idempotent } else { Nature::ReadOnly };
    let appended = command.redirections.iter().any(|to| to.flow == Flow::Append && writes(to));
    known.max(if appended { Nature::Writes } else { written })
}

fn writes(to: &crate::shell::Redirection) -> bool {
    to.writes_file()
}

/// What is known of a command: its row, or what its own language says.
fn traits(command: &Command) -> Traits {
    let known = commands::traits(command);
    if command.program.is_empty() {
        return Traits { nature: Nature::ReadOnly, moves_world: true, quiet: true, ..Traits::UNKNOWN };
    }
    if let Some(nature) = http::request(command) {
        let moves_world = nature != Nature::ReadOnly || known.moves_world;
        return Traits { nature: nature.max(known.nature), moves_world, ..known };
    }
    if takes_in_more(command) {
        return Traits { nature: Nature::Unknown, ..known };
    }
    if let Some(nature) = sql(command) {
        return Traits { nature, moves_world: nature != Nature::ReadOnly, ..known };
    }
    if names_new_ref(command) {
        return Traits { nature: Nature::Idempotent, moves_world: true, ..known };
    }
    if forces_ref(command) {
        return Traits { nature: known.nature.max(Nature::Writes), ..known };
    }
    // A task's name tells too little to say that the world moved: most of them build.
    if let Some(nature) = task::nature(command).filter(|_| known.nature != Nature::ReadOnly) {
        return Traits { nature: nature.max(known.nature), ..known };
    }
    known
}

/// `--help` and `--version` make any command harmless. With a word behind it, the version is that of something else.
pub(crate) fn only_asks(command: &Command) -> bool {
    let args = command.args();
    let own = args.iter().position(|word| word == "--").map_or(args, |end| &args[..end]);
    let asks = own.iter().enumerate().any(|(at, word)| match word.as_str() {
        "--help" | "--dry-run" | "--dryrun" => true,
        "--version" => own.get(at + 1).is_none_or(|next| next.starts_with('-')),
        _ => false,
    });
    asks || args.len() == 1
        && matches!(args[0].as_str(), "-V" | "-v" | "version" | "help" | "-h" | "-version")
}

/// `source` runs whatever it reads. A file of settings is the rule; one that is made on the spot, or whose name says that it
/// does something, is not one.
fn takes_in_more(command: &Command) -> bool {
    if !matches!(command.program.as_str(), "source" | ".") {
        return false;
    }
    command.args().first().is_some_and(|file| {
        let name = file.rsplit('/').next().unwrap_or_default();
        let is_script = name.ends_with("sh");
        let acts = |word: &String| commands::verb(word).is_some_and(|traits| traits.moves_world);
        let is_verb = |word: &String| !matches!(word.as_str(), "activate" | "set") && acts(word);
        file.contains("<(") || is_script && name_words(name).iter().any(is_verb)
    })
}

/// What the statements given to a database client do.
fn sql(command: &Command) -> Option<Nature> {
    const CLIENTS: &[&str] = &[
        "psql",
        "mysql",
        "mariadb",
        "sqlite3",
        "duckdb",
        "clickhouse-client",
        "cqlsh",
        "bq",
        "sqlcmd",
        "redis-cli",
        "cockroach",
    ];
    const LOOKS: &[&str] = &[
        "select", "show", "explain", "describe", "desc", "pragma", "with", "values", "\\d", "\\dt", "\\l",
        ".tables", ".schema", "get", "keys", "ping", "info", "mget", "hget", "hgetall", "ttl", "exists",
        "llen", "lrange", "scan", "smembers", "dbsize", "type",
    ];
    const SETS: &[&str] =
        &["create", "set", "grant", "revoke", "alter", "hset", "expire", "vacuum", "analyze"];
    // What takes something away is among them: in between, somebody else may have put something new there.
    const ADDS: &[&str] = &[
        "insert", "update", "merge", "copy", "incr", "decr", "lpush", "rpush", "publish", "call", "do",
        "delete", "drop", "truncate", "del", "flushall", "flushdb", "replace",
    ];
    let reads_file = command.program != "redis-cli" && command.has_flag(&["-f", "--file"]);
    if !CLIENTS.contains(&command.program.as_str()) || reads_file {
        return None;
    }
    let first_words = command.args().iter().flat_map(|word| word.split(';'));
    let natures = first_words.filter_map(|statement| {
        let first = statement.split_whitespace().next()?.to_lowercase();
        let listed = |list: &[&str]| list.contains(&first.as_str());
        match () {
            () if listed(ADDS) || listed(&["with", "explain"]) && has_word_of(statement, ADDS) => {
                Some(Nature::Writes)
            }
            () if listed(SETS) => Some(Nature::Idempotent),
            () if listed(LOOKS) => Some(Nature::ReadOnly),
            () => None,
        }
    });
    natures.max()
}

/// `with gone as (delete from …) select …` begins like a look.
fn has_word_of(statement: &str, words: &[&str]) -> bool {
    let is_part = |sign: char| sign.is_alphanumeric() || sign == '_';
    statement.split(|sign| !is_part(sign)).any(|word| words.contains(&word.to_lowercase().as_str()))
}

/// `git branch new` and `git tag v1` make something; without an operand they list.
fn names_new_ref(command: &Command) -> bool {
    let key = commands::known(command).key;
    let lists = command.has_flag(&[
        "-l",
        "--list",
        "--contains",
        "--merged",
        "--no-merged",
        "--points-at",
        "--show-current",
        "-r",
        "--get",
        "-v",
        "-vv",
    ]);
    match key.as_str() {
        "git branch" | "git tag" => command.operands().count() > 1 && !lists,
        // A name alone is asked for, a name with a value is set.
        "git config" => {
            command.operands().count() > 2 && !command.has_flag(&["--get", "--get-all", "--list", "-l"])
        }
        _ => false,
    }
}

/// `git push origin +main` and `git push origin :old` take away what was there.
fn forces_ref(command: &Command) -> bool {
    command.program == "git"
        && commands::known(command).key == "git push"
        && command.operands().any(|word| word.starts_with(['+', ':']))
}

/// Commands that really run, and are not only wrappers of others.
fn workers(script: &Script) -> impl Iterator<Item = &Command> {
    script.commands().iter().filter(|command| command.then != Join::Wraps)
}

/// The strongest nature of all commands.
pub(super) fn nature(script: &Script) -> Nature {
    let written = workers(script).map(nature_of);
    let wrapped = script.commands().iter().filter(|command| command.then == Join::Wraps);
    let by_wrapper = wrapped.map(|command| {
        if command.redirections.iter().any(writes) { Nature::Idempotent } else { Nature::ReadOnly }
    });
    written.chain(by_wrapper).max().unwrap_or(Nature::Unknown)
}

/// Tells whether one command's success could matter to others.
pub(crate) fn changes(command: &Command) -> bool {
    let known = traits(command);
    let wrote_content = (known.reader || known.filter) && command.redirections.iter().any(writes);
    !known.quiet && !only_asks(command) && known.moves_world || wrote_content
}

/// Tells whether some command's success could matter to others. A leading `cd` or `export` only prepares what follows it,
/// so it counts if nothing follows; a log file that a build leaves behind does not count.
pub(super) fn moves_world(script: &Script) -> bool {
    let works = |command: &&Command| !traits(command).quiet;
    let mut any_work = false;
    for command in workers(script).filter(works) {
        any_work = true;
        let known = traits(command);
        let content = known.reader || known.filter;
        let tee = command.program == "tee" && follows_build(script, command);
        let wrote_content = content && command.redirections.iter().any(writes);
        if !only_asks(command) && known.moves_world && !tee || wrote_content {
            return true;
        }
    }
    !any_work
        && workers(script)
            .any(|command| traits(command).moves_world || command.redirections.iter().any(writes))
}

/// Tells whether what `command` reads from its pipe is the output of work, not content.
fn follows_build(script: &Script, command: &Command) -> bool {
    let commands = script.commands();
    let at = commands.iter().position(|each| std::ptr::eq(each, command)).unwrap_or(0);
    let mut producers = commands[..at].iter().rev().take_while(|each| each.then == Join::Pipe);
    producers.any(|each| !traits(each).reader)
}

/// Tells whether to repeat the script is to wait: it begins with a sleep, or all it does is ask how things go.
pub(super) fn waits(script: &Script) -> bool {
    let mut polls = false;
    let (mut first, mut piped) = (true, false);
    for command in workers(script).filter(|command| command.role != Role::Defined) {
        if first && command.program == "sleep" {
            return true;
        }
        let known = traits(command);
        let polling = known.poller || asks_health(command);
        let harmless = known.nature == Nature::ReadOnly && !only_asks(command);
        first &= known.quiet;
        if !polling && !known.quiet && !(harmless && (piped || known.reader || known.quiet)) {
            return false;
        }
        polls |= polling;
        piped = command.then == Join::Pipe;
    }
    polls || script.programs().any(|program| program == "watch")
}

/// A request to this machine, or to an address that only tells how a service is.
fn asks_health(command: &Command) -> bool {
    const SIGNS: &[&str] = &[
        "health",
        "ready",
        "readyz",
        "livez",
        "alive",
        "status",
        "ping",
        "heartbeat",
        "/jobs/",
        "/runs/",
        "progress",
    ];
    if !matches!(command.program.as_str(), "curl" | "wget" | "http" | "https" | "xh" | "nc") {
        return false;
    }
    if http::request(command).is_some_and(|nature| nature != Nature::ReadOnly) {
        return false;
    }
    let local = ["localhost", "127.0.0.1", "0.0.0.0", "[::1]"];
    command.operands().any(|word| {
        let word = word.to_lowercase();
        SIGNS.iter().any(|sign| word.contains(sign)) || local.iter().any(|host| word.contains(host))
    })
}

/// The operands of all commands that are not only filters or preparation, and the files they write.
pub(super) fn targets(script: &Script) -> Vec<String> {
    let mut found = Vec::new();
    for command in workers(script) {
        let to_files = command.redirections.iter().filter(|to| writes(to));
        found.extend(to_files.map(|to| to.target.clone()));
        found.extend(operands(command).map(|word| shorter(word).to_owned()));
    }
    found
}

/// The operands of a command without its sub-commands and the values of its flags.
fn operands(command: &Command) -> impl Iterator<Item = &str> {
    let key = commands::known(command).key;
    let valued = commands::valued(&command.program);
    let mut subs: Vec<String> = key.split(' ').skip(1).map(str::to_owned).collect();
    subs.reverse();
    let mut skip_value = false;
    command.args().iter().map(String::as_str).filter(move |word| {
        if std::mem::take(&mut skip_value) {
            return false;
        }
        skip_value = valued.contains(word);
        let is_sub = subs.last().is_some_and(|sub| sub == word);
        if is_sub {
            subs.pop();
        }
        !is_sub && !skip_value && !word.starts_with('-') && !word.is_empty()
    })
}

/// Program, sub-command and first target of the command that is the script's main work.
pub(super) fn approach(script: &Script) -> String {
    main_work(script).map_or_else(String::new, with_target)
}

/// Program, sub-command and `hosts` of the script's main work. Where it names no host and its program is not known, what it
/// runs says more than the program.
pub(crate) fn partner(script: &Script, hosts: &str) -> String {
    let Some(main) = main_work(script) else { return String::new() };
    let known = commands::known(main);
    match (hosts.is_empty(), known.found) {
        (false, _) => format!("{} {hosts}", known.key),
        (true, true) => known.key,
        (true, false) => with_target(main),
    }
}

fn with_target(main: &Command) -> String {
    let key = commands::known(main).key;
    match operands(main).next() {
        Some(target) => format!("{key} {}", shorter(target.lines().next().unwrap_or_default())),
        None => key,
    }
}

/// The command that is the script's main work.
fn main_work(script: &Script) -> Option<&Command> {
    let works: Vec<&Command> = workers(script).filter(|command| command.role == Role::Plain).collect();
    let is_work = |command: &&&Command| {
        let known = traits(command);
        !known.quiet && !known.reader
    };
    // The strongest work is the last that is no mere look; a script of looks is known by its first.
    works
        .iter()
        .rev()
        .find(is_work)
        .or_else(|| works.iter().find(|command| !traits(command).quiet))
        .or(works.first())
        .copied()
}
