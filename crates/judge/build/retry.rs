//! Compiles `rules/retry.toml` into one static table, so that a process pays nothing for it at start.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

#[path = "../src/retry/file.rs"]
#[allow(dead_code, reason = "the library's half of the file")]
mod file;

use file::{JitterWord, KindTable, PolicyFile, Retries, Span};

/// Why the table could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    #[error("retry.toml: {0}")]
    Rules(#[from] file::PolicyError),
    #[error("retry.toml does not say `{0}`")]
    Missing(&'static str),
    #[error("retry.toml: {0}")]
    Io(#[from] io::Error),
}

/// Reads `retry.toml` in `rules` and writes `retry.rs` into `out`.
pub fn compile(rules: &Path, out: &Path) -> Result<(), CompileError> {
    let table = file::read(&fs::read_to_string(rules.join("retry.toml"))?)?;
    fs::write(out.join("retry.rs"), source(&table)?)?;
    Ok(())
}

fn source(file: &PolicyFile) -> Result<String, CompileError> {
    let jitter = match said(file.jitter, "jitter")? {
        JitterWord::Additive => "Additive",
        JitterWord::Full => "Full",
        JitterWord::Equal => "Equal",
        JitterWord::Decorrelated => "Decorrelated",
    };
    // The match has no catch-all: a kind without a row, or a row without a kind, does not compile.
    let mut rows = String::from("const fn row(kind: Kind) -> KindRow {\n    match kind {\n");
    for (kind, cells) in &file.kinds {
        rows += &format!("        Kind::{} => {},\n", variant(kind.get_ref()), row(cells));
    }
    rows += "    }\n}\n";
    let (hints, budget, breaker, past) = (&file.hints, &file.budget, &file.breaker, &file.past_yield);
    Ok(format!(
        "{rows}
/// The built-in policy, as `rules/retry.toml` states it.
pub(super) static BUILT_IN: Policy = Policy {{
    kinds: {{
        let mut rows = [row(Kind::Unknown); Kind::ALL.len()];
        let mut at = 0;
        while at < rows.len() {{
            rows[at] = row(Kind::ALL[at]);
            at += 1;
        }}
        rows
    }},
    tools: {tools},
    agents: {agents},
    deadline: {deadline},
    jitter: Jitter::{jitter},
    spread: {spread},
    hints: HintRules {{ longest_wait: {hint_wait}, longest_believed: {hint_believed} }},
    budget: BudgetRules {{ max: {max}, regain: {regain}, refund_percent: {refund} }},
    host: HostRules {{ retries: {host_retries}, per: {host_per} }},
    breaker: BreakerRules {{
        window: {window},
        least_calls: {least_calls},
        trip_percent: {trip},
        open: {open},
        longest_open: {longest_open},
    }},
    past_yield: YieldRules {{
        least_tries: {tries},
        give_up_percent: {give_up},
        good_enough_percent: {good},
        worth_more_percent: {more},
        probe_after: {probe_after},
    }},
}};
",
        tools = limits(file.tools.iter()),
        agents = limits(file.agents.iter()),
        deadline = time(said(file.deadline, "deadline")?),
        spread = time(said(file.spread, "spread")?),
        hint_wait = time(said(hints.longest_wait, "hints.longest_wait")?),
        hint_believed = time(said(hints.longest_believed, "hints.longest_believed")?),
        max = said(budget.max, "budget.max")?,
        regain = said(budget.regain, "budget.regain")?,
        refund = said(budget.refund_percent, "budget.refund_percent")?.0,
        host_retries = said(file.host.retries, "host.retries")?,
        host_per = time(said(file.host.per, "host.per")?),
        window = said(breaker.window, "breaker.window")?.0,
        least_calls = said(breaker.least_calls, "breaker.least_calls")?.0,
        trip = said(breaker.trip_percent, "breaker.trip_percent")?.0,
        open = time(said(breaker.open, "breaker.open")?),
        longest_open = time(said(breaker.longest_open, "breaker.longest_open")?),
        tries = said(past.least_tries, "past_yield.least_tries")?,
        give_up = said(past.give_up_percent, "past_yield.give_up_percent")?.0,
        good = said(past.good_enough_percent, "past_yield.good_enough_percent")?.0,
        more = said(past.worth_more_percent, "past_yield.worth_more_percent")?.0,
        probe_after = time(said(past.probe_after, "past_yield.probe_after")?),
    ))
}

fn said<T>(cell: Option<T>, key: &'static str) -> Result<T, CompileError> {
    cell.ok_or(CompileError::Missing(key))
}

/// Writes one row. A kind that is never retried may leave its waits out; a setting that raises it later finds these.
fn row(cells: &KindTable) -> String {
    let second = Span(Duration::from_secs(1));
    let minute = Span(Duration::from_secs(60));
    format!(
        "KindRow {{ retries: {}, most_retries: {}, first_wait: {}, longest_wait: {}, limit_growth: LimitFactor({}), cost: {}, is_chosen: false }}",
        cells.retries.map_or(0, |retries| retries.0),
        cells.most_retries.or(cells.retries).map_or(0, |retries| retries.0),
        time(cells.first_wait.unwrap_or(second)),
        time(cells.longest_wait.unwrap_or(minute)),
        cells.limit_growth.map_or(1_000, |growth| growth.0),
        cells.cost.unwrap_or(0),
    )
}

fn time(span: Span) -> String {
    format!("Duration::from_millis({})", span.0.as_millis())
}

fn limits<'a>(rows: impl Iterator<Item = (&'a String, &'a Retries)>) -> String {
    let mut list = String::from("Cow::Borrowed(&[");
    for (name, retries) in rows {
        // Writing into a String cannot fail.
        let _ = write!(list, "(Cow::Borrowed({name:?}), {}), ", retries.0);
    }
    list + "])"
}

/// `rate_limited` is the word, `RateLimited` its variant.
fn variant(word: &str) -> String {
    let capital =
        |part: &str| part.chars().take(1).flat_map(char::to_uppercase).chain(part.chars().skip(1)).collect();
    word.split('_').map(|part| -> String { capital(part) }).collect()
}
