//! Calls that can be put right without a guess: a table of transforms (`rules/rewrites.toml`), and one loop over it.
//!
//! A proposal needs two things: a diagnosis that says what is wrong, and a machine on which the replacement exists. It
//! changes the words it names and no other byte. It must never install or download, take more rights, let a command touch
//! what it did not touch before, or change a word whose place in the line is not certain; in doubt there is no proposal.

mod answer;
mod grow;
mod line;
mod missing;
mod row;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::{Call, Kind, Lang, quote};
use line::Line;
use row::{Act, ROWS, Row};

/// What is known of the machine that calls run on. Whoever answers looks at files and runs nothing.
pub trait Machine {
    /// The full path of a program on PATH.
    fn program(&self, name: &str) -> Option<String>;

    /// The name of the file that a program on PATH is in the end, all links followed.
    fn behind(&self, name: &str) -> Option<String>;

    /// Whether the Python that is on PATH as `python` has a module.
    fn has_module(&self, python: &str, module: &str) -> bool;

    /// Whether a program has a plugin, as `docker` has `compose`.
    fn has_plugin(&self, program: &str, plugin: &str) -> bool;

    /// The full path of a program that belongs to the project in the working folder, as in `node_modules/.bin`.
    fn in_project(&self, name: &str) -> Option<String>;

    /// The full path of a program that is not on PATH but where programs usually are.
    fn off_path(&self, name: &str) -> Option<String>;
}

/// What is known of a failure: as it is diagnosed, or as it was kept of an earlier call.
#[derive(Clone, Copy)]
struct Cause<'a> {
    kind: Kind,
    rule: &'a str,
    /// The line that shows it, in lower case.
    line: &'a str,
}

/// A call that can take the place of one that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewrite {
    /// The row of `rules/rewrites.toml` that proposes it.
    pub row: &'static str,
    /// The whole new input; every field that is not named stands as it was.
    pub input: Value,
    /// The words that change.
    pub from: String,
    /// What they become.
    pub to: String,
    /// Where the replacement was found.
    at: String,
    text: &'static [&'static str; 2],
}

impl Rewrite {
    /// Says in one sentence what is known. No order, and no promise that the call will go well.
    pub fn text(&self, lang: Lang) -> String {
        let template = self.text[lang as usize];
        let value = |name: &str| match name {
            "from" => &self.from,
            "to" => &self.to,
            _ => &self.at,
        };
        // One pass over the template, so that a brace in a path is not filled in a second time.
        let mut pieces = template.split('{');
        let mut text = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let (name, rest) = piece.split_once('}').unwrap_or((piece, ""));
            let (value, behind) = (value(name), rest.strip_prefix('`'));
            let rest = match behind.filter(|_| text.ends_with('`')) {
                // A quotation has signs of its own.
                Some(behind) => {
                    text.pop();
                    text += &quote::call(value, QUOTED_MAX);
                    behind
                }
                None if quote::is_name(value) => {
                    text += value;
                    rest
                }
                None => {
                    text += &quote::fenced(value, QUOTED_MAX);
                    rest
                }
            };
            text += rest;
        }
        text
    }
}

/// The most that is quoted of a word or a path.
const QUOTED_MAX: usize = 160;

/// What one act makes of a call.
struct Change {
    input: Value,
    from: String,
    to: String,
    at: String,
}

/// Proposes a call to take the place of `call`, which failed with this cause, or which would repeat one that did.
///
/// `evidence` is the line of the output that shows the cause. The answer is nothing where the cause does not say what to
/// change, where the machine has no replacement, and where the place of the words is not certain.
pub fn propose(
    call: &Call,
    kind: Kind,
    rule: &str,
    evidence: Option<&str>,
    machine: &dyn Machine,
) -> Option<Rewrite> {
    if kind == Kind::NotAnError {
        return None;
    }
    let line = Line::of(call)?;
    let evidence = evidence.unwrap_or_default().to_lowercase();
    let cause = Cause { kind, rule, line: &evidence };
    ROWS.iter().find_map(|row| change(row, &line, cause, machine))
}

/// Whether a failure, by the line that shows it in lower case, is that this very program is missing.
pub(crate) fn says_missing(kind: Kind, line: &str, program: &str) -> bool {
    missing::says_missing(Cause { kind, rule: "", line }, program)
}

/// The call with its whole line exchanged for one that a person approved in its place. Nothing where the line is more than
/// the words that were approved.
pub fn learned(call: &Call, from: &str, to: &str) -> Option<Rewrite> {
    let mut input = call.input.clone();
    let (field, line) = crate::shell::carrier(call)?;
    if line.as_str()?.trim() != from {
        return None;
    }
    *input.get_mut(field)? = Value::from(to);
    let (from, to) = (from.to_owned(), to.to_owned());
    Some(Rewrite { row: LEARNED, input, from, to, at: String::new(), text: &TEXT_LEARNED })
}

/// The name of what was learnt, beside the rows of the table.
const LEARNED: &str = "learned";
const TEXT_LEARNED: [&str; 2] = [
    "`{from}` failed here before and `{to}` went well in its place, which a person approved.",
    "`{from}` 此前在这里失败，改用 `{to}` 后成功，并已由人确认。",
];

/// The names of all rows, in the order in which they are asked.
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

fn change(row: &'static Row, line: &Line<'_>, cause: Cause<'_>, machine: &dyn Machine) -> Option<Rewrite> {
    let (change, text) = match &row.act {
        Act::Rename { from, to, rules, lacks, needs } => {
            let holds = || {
                lacks.iter().all(|fact| !fact.holds(machine)) && needs.iter().all(|fact| fact.holds(machine))
            };
            (missing::renamed(line, cause, from, to, rules, holds, machine)?, &row::TEXT_RENAME)
        }
        Act::Find { place } => (missing::found(line, cause, *place, machine)?, &row::TEXT_FIND),
        Act::Answer {
            run,
            flags,
            after,
            given,
            not_flags,
            not_operands,
            not_says,
            alone,
            says,
            vague,
            rules,
        } => {
            let asks = answer::Asks {
                run,
                flags,
                after: *after,
                given,
                not_flags,
                not_operands,
                not_says,
                alone: *alone,
                says,
                vague,
                rules,
            };
            (answer::given(line, cause, &asks, machine)?, &row::TEXT_ANSWER)
        }
        Act::Grow { rules, unless, max, fields, tools, field, default } => {
            let limit = grow::Limit { rules, unless, max: *max, fields, tools, field, default: *default };
            (grow::grown(line, cause, &limit)?, &row::TEXT_GROW)
        }
    };
    let Change { input, from, to, at } = change;
    Some(Rewrite { row: row.name, input, from, to, at, text })
}
