//! Recurring problems, by cause: counted as they are met, in the transaction of the failure itself.

use rusqlite::{Connection, OptionalExtension};
use unstuck_judge::Kind;
use unstuck_wire::clean::Clean;

use crate::entry::Finding;
use crate::problem_state::{ProblemAges, ProblemState, ProblemTimes};
use crate::rows::Lenient;

/// A day, in milliseconds.
pub(crate) const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// How many tools are named with a problem.
pub(crate) const TOOLS: u32 = 16;

/// Counts a failure. Returns what became of its problem, if that is news: it is new, or it is back.
pub(crate) fn met(
    connection: &Connection,
    finding: &Finding,
    tool: &Clean,
    at: u64,
    ages: &ProblemAges,
) -> Result<Option<ProblemState>, rusqlite::Error> {
    // What a person stopped is nobody's problem.
    if finding.kind == Kind::Aborted {
        return Ok(None);
    }
    let cause = finding.cause.as_str();
    let found = connection
        .prepare_cached(
            "SELECT first_at, last_at, resolved_at, regressed_at, tools FROM problem WHERE cause = ?1",
        )?
        .query_row([cause], |row| {
            let time = |column: Option<i64>| column.map(i64::unsigned_abs);
            let times = ProblemTimes {
                first_at: row.lenient::<i64>(0)?.unsigned_abs(),
                last_at: row.lenient::<i64>(1)?.unsigned_abs(),
                resolved_at: time(row.lenient(2)?),
                regressed_at: time(row.lenient(3)?),
            };
            Ok((times, row.lenient::<String>(4)?))
        })
        .optional()?;
    let mut tools: Vec<String> =
        found.as_ref().and_then(|(_, tools)| serde_json::from_str(tools).ok()).unwrap_or_default();
    if tools.len() < TOOLS as usize && !tools.iter().any(|known| **known == **tool) {
        tools.push(tool.to_string());
    }
    let news = match &found {
        None => Some(ProblemState::New),
        Some((times, _)) => match ProblemState::of(times, at, ages) {
            // What happened before somebody called it resolved, and is heard of only now, is no news.
            ProblemState::Resolved if times.resolved_at.is_some_and(|resolved| at <= resolved) => None,
            ProblemState::Resolved => Some(ProblemState::Regressed),
            ProblemState::New | ProblemState::Known | ProblemState::Regressed => None,
        },
    };
    let regressed = (news == Some(ProblemState::Regressed)).then_some(at.cast_signed());
    connection
        .prepare_cached(
            "INSERT INTO problem (cause, kind, rule, title, tools, count, first_at, last_at)
             VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?6)
             ON CONFLICT DO UPDATE SET kind = excluded.kind, rule = excluded.rule, title = excluded.title,
                 tools = excluded.tools, count = count + 1, first_at = min(first_at, excluded.first_at),
                 last_at = max(last_at, excluded.last_at), regressed_at = ifnull(?7, regressed_at)",
        )?
        .execute((
            cause,
            finding.kind.word(),
            &*finding.rule,
            &*finding.evidence,
            serde_json::to_string(&tools).unwrap_or_default(),
            at.cast_signed(),
            regressed,
        ))?;
    connection
        .prepare_cached(
            "INSERT INTO problem_day (cause, day, count) VALUES (?1, ?2, 1)
             ON CONFLICT DO UPDATE SET count = count + 1",
        )?
        .execute((cause, (at / DAY_MS).cast_signed()))?;
    Ok(news)
}
