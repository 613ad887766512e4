//! A rule file as a person writes it, and the checks it must pass.
//!
//! Each `[[rule]]` is read on its own, so that one bad row names its line and the others still work. The build script
//! reads the built-in files with this same module.

use serde::Deserialize;

use super::shape::Shape;
use crate::kind::Kind;

/// Where the rank of a rule that does not say one lies.
pub const DEFAULT_RANK: u8 = 50;

/// One `[[rule]]` exactly as it is written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRule {
    /// `family.name`, unique over all files.
    pub id: String,
    /// The cause it proves.
    pub kind: String,
    /// One of these on one line shows the cause.
    #[serde(default)]
    pub any: Vec<String>,
    /// None of these may stand on that line.
    #[serde(default)]
    pub unless: Vec<String>,
    /// One of these must stand somewhere in the output.
    #[serde(default)]
    pub with: Vec<String>,
    /// None of these may stand anywhere in the output.
    #[serde(default)]
    pub without: Vec<String>,
    /// A line with one of these is better evidence than the line that matched, in this order.
    #[serde(default)]
    pub show: Vec<String>,
    /// One of these must stand in the command line.
    #[serde(default)]
    pub command: Vec<String>,
    /// The command line runs one of these programs.
    #[serde(default)]
    pub program: Vec<String>,
    /// The program whose exit code it is, is one of these.
    #[serde(default)]
    pub last: Vec<String>,
    /// The programs that print this form of failure as their own. Restricts nothing; [`read`] fills it in where a row leaves it out.
    pub speaks_for: Option<Vec<String>>,
    /// The cause lies in a service or on another machine, so that no file here shows whether it still holds. [`read`] fills it in
    /// where a row leaves it out.
    pub elsewhere: Option<bool>,
    /// The tool is one of these; a trailing `*` stands for any rest.
    #[serde(default)]
    pub tool: Vec<String>,
    /// The exit code is one of these (128 + n for signal n).
    #[serde(default)]
    pub exit: Vec<i32>,
    /// The HTTP status is one of these; 500 stands for itself, `5xx` is written as 5.
    #[serde(default)]
    pub status: Vec<u16>,
    /// The call ended in one of these ways.
    #[serde(default)]
    pub outcome: Vec<String>,
    /// `stdout` or `stderr`: the line must stand there (where the streams are known apart).
    pub stream: Option<String>,
    /// The shape of what the group `it` of its patterns reads: one of [`Shape`], `name` where it says nothing.
    pub it: Option<String>,
    /// Patterns see the line as printed instead of in lower case.
    #[serde(default)]
    pub cased: bool,
    /// Nothing may have been printed (on stderr, where the streams are known apart).
    #[serde(default)]
    pub silent: bool,
    /// It counts although the call says that it went well.
    #[serde(default)]
    pub zero: bool,
    /// The line is the last word of a program that ends so: where nobody shows an exit code and more follows, it was caught.
    #[serde(default)]
    pub ends: bool,
    /// Which of several matching lines is quoted: `first` (default) or `last`.
    pub pick: Option<String>,
    /// How sure and specific it is, 1 to 99. The highest rank wins.
    pub rank: Option<u8>,
    /// Overrides what the kind says: may the same call work later by itself?
    pub transient: Option<bool>,
    /// Overrides what the kind says: who can fix it.
    pub fix_by: Option<String>,
    /// Overrides what is known of the call: what it has done already.
    pub effect: Option<String>,
    /// Keys of what to do, from `remedies.toml`; without it, the kind's own.
    #[serde(default)]
    pub advice: Vec<String>,
    /// What it must recognise; each is a test.
    #[serde(default)]
    pub example: Vec<FileExample>,
    /// What it must not claim; each is a test.
    #[serde(default)]
    pub not: Vec<FileExample>,
}

/// A failure that a rule must, or must not, recognise.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileExample {
    /// The tool; a shell where it is absent.
    pub tool: Option<String>,
    /// The command line.
    #[serde(default)]
    pub command: String,
    /// The exit code; 1 where neither it nor `outcome` is given.
    pub exit: Option<i32>,
    /// How it ended, where there is no exit code.
    pub outcome: Option<String>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// What it printed, streams not known apart.
    #[serde(default)]
    pub text: String,
    /// What it printed on stdout.
    #[serde(default)]
    pub stdout: String,
    /// What it printed on stderr.
    #[serde(default)]
    pub stderr: String,
}

/// What is wrong with a rule file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct RuleError {
    /// The line of the file, counted from 1.
    pub line: usize,
    /// What is wrong, in words for the person who wrote it.
    pub what: String,
}

/// Reads a rule file. Every row that can be read is returned, every row that cannot is named.
///
/// A row without `speaks_for` takes its `program` and `last`; a row without any of them takes the file's own `speaks_for`, which
/// stands before its first rule. So does the file's own `elsewhere`.
pub fn read(text: &str) -> (Vec<FileRule>, Vec<RuleError>) {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Chunk {
        speaks_for: Option<Vec<String>>,
        elsewhere: Option<bool>,
        #[serde(default)]
        rule: Vec<FileRule>,
    }
    let (mut rules, mut errors) = (Vec::new(), Vec::new());
    let mut file_speaks_for = Vec::new();
    let mut file_elsewhere = false;
    for (first_line, chunk) in chunks(text) {
        match toml::from_str::<Chunk>(chunk) {
            Ok(parsed) => {
                file_speaks_for = parsed.speaks_for.unwrap_or(file_speaks_for);
                file_elsewhere = parsed.elsewhere.unwrap_or(file_elsewhere);
                for mut rule in parsed.rule {
                    rule.elsewhere = rule.elsewhere.or(Some(file_elsewhere));
                    if rule.speaks_for.is_none() {
                        let named = [rule.program.as_slice(), rule.last.as_slice()].concat();
                        rule.speaks_for =
                            Some(if named.is_empty() { file_speaks_for.clone() } else { named });
                    }
                    match check(&rule) {
                        Ok(()) => rules.push(rule),
                        Err(what) => errors.push(RuleError { line: first_line, what }),
                    }
                }
            }
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start.min(chunk.len()));
                let line = first_line + chunk.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
                errors.push(RuleError { line, what: error.message().trim().to_owned() });
            }
        }
    }
    (rules, errors)
}

/// Cuts a file before each `[[rule]]` and gives each piece with the line it starts on.
fn chunks(text: &str) -> Vec<(usize, &str)> {
    let mut starts = vec![(1, 0)];
    let mut offset = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_start().starts_with("[[rule]]") && offset > 0 {
            starts.push((index + 1, offset));
        }
        offset += line.len();
    }
    let ends = starts.iter().skip(1).map(|(_, start)| *start).chain([text.len()]);
    let cut = starts.iter().zip(ends).map(|((line, start), end)| (*line, &text[*start..end]));
    cut.filter(|(_, chunk)| !chunk.trim().is_empty()).collect()
}

/// Says what makes a row unusable, if anything does.
fn check(rule: &FileRule) -> Result<(), String> {
    let id = &rule.id;
    if id.is_empty()
        || !id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b".-_".contains(&b))
    {
        return Err(format!("`id` {id:?} must be lower-case words joined by `.` or `-`"));
    }
    if rule.kind.parse::<Kind>().is_err() {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
        return Err(format!("rule {id}: `kind` {:?} is not one of {}", rule.kind, known.join(", ")));
    }
    if !(1..=99).contains(&rule.rank.unwrap_or(DEFAULT_RANK)) {
        return Err(format!("rule {id}: `rank` must lie between 1 and 99"));
    }
    let conditions =
        [rule.exit.is_empty(), rule.status.is_empty(), rule.outcome.is_empty(), rule.any.is_empty()];
    if conditions.iter().all(|absent| *absent) {
        return Err(format!("rule {id}: give it something to look at: `any`, `exit`, `status` or `outcome`"));
    }
    one_of(id, "pick", rule.pick.as_deref(), &["first", "last"])?;
    one_of(id, "stream", rule.stream.as_deref(), &["stdout", "stderr"])?;
    one_of(id, "fix_by", rule.fix_by.as_deref(), &["wait", "model", "environment", "person", "nobody"])?;
    one_of(id, "effect", rule.effect.as_deref(), &["nothing", "maybe", "applied"])?;
    let shapes: Vec<&str> = Shape::ALL.iter().map(|shape| shape.word()).collect();
    one_of(id, "it", rule.it.as_deref(), &shapes)?;
    let reads_it = [&rule.any, &rule.show].into_iter().flatten().any(|pattern| pattern.contains("(?P<it>"));
    if rule.it.is_some() && !reads_it {
        return Err(format!("rule {id}: `it` is given, and no pattern has a group `(?P<it>…)`"));
    }
    for outcome in &rule.outcome {
        one_of(id, "outcome", Some(outcome), OUTCOMES)?;
    }
    let lists = [&rule.any, &rule.unless, &rule.with, &rule.without, &rule.show, &rule.command];
    for pattern in lists.into_iter().flatten() {
        check_pattern(pattern, rule.cased)
            .map_err(|what| format!("rule {id}: pattern {pattern:?} {what}"))?;
    }
    Ok(())
}

/// The words for how a call ended, as rule files write them.
pub const OUTCOMES: &[&str] = &[
    "succeeded",
    "exited",
    "signalled",
    "timed_out",
    "interrupted",
    "rejected",
    "threw",
    "reported_failure",
    "denied",
    "no_exit_code",
];

fn one_of(id: &str, key: &str, value: Option<&str>, words: &[&str]) -> Result<(), String> {
    match value {
        Some(value) if !words.contains(&value) => {
            Err(format!("rule {id}: `{key}` {value:?} is not one of {}", words.join(", ")))
        }
        Some(_) | None => Ok(()),
    }
}

/// A pattern between two slashes is a regular expression; every other one is plain text.
pub fn as_regex(pattern: &str) -> Option<&str> {
    pattern.strip_prefix('/')?.strip_suffix('/').filter(|inner| inner.len() > 1)
}

fn check_pattern(pattern: &str, cased: bool) -> Result<(), String> {
    if pattern.trim().is_empty() {
        return Err("is empty".to_owned());
    }
    match as_regex(pattern) {
        Some(source) => {
            regex_lite::Regex::new(source).map_err(|error| format!("is no regular expression: {error}"))?;
        }
        None if !cased && pattern.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            return Err("must be lower case, or the rule `cased`".to_owned());
        }
        None => {}
    }
    Ok(())
}
