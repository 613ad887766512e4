//! Reads the recurring problems, grouped by cause over all sessions, and notes what a person says about them.

use std::collections::HashMap;

use rusqlite::Row;

use crate::error::StoreError;
use crate::problem::DAY_MS;
use crate::problem_state::ProblemTimes;
use crate::rows::{self, Lenient};
use crate::store::Store;

/// A cause that was met, over all sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its fingerprint.
    pub cause: String,
    /// What it is.
    pub kind: String,
    /// The rule that named it; may be empty.
    pub rule: String,
    /// The line that showed it last.
    pub title: String,
    /// The tools that met it.
    pub tools: Vec<String>,
    /// How often it was met.
    pub count: u64,
    /// When it was met and judged.
    pub times: ProblemTimes,
}

/// How often a problem was met in one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProblemSession {
    /// The session's name; empty where the session is gone.
    pub session: String,
    /// How many of its calls failed by this cause.
    pub count: u64,
    /// When the last of them was asked for.
    pub last_at: u64,
}

impl Problem {
    pub(crate) const COLUMNS: &str =
        "cause, kind, rule, title, tools, count, first_at, last_at, resolved_at, regressed_at";

    pub(crate) fn read(row: &Row<'_>) -> Result<Problem, rusqlite::Error> {
        let tools: String = row.lenient(4)?;
        let moment = |column: usize| row.lenient::<Option<i64>>(column).map(|at| at.map(i64::unsigned_abs));
        Ok(Problem {
            cause: row.lenient(0)?,
            kind: row.lenient(1)?,
            rule: row.lenient(2)?,
            title: row.lenient(3)?,
            tools: serde_json::from_str(&tools).unwrap_or_default(),
            count: row.lenient::<i64>(5)?.unsigned_abs(),
            times: ProblemTimes {
                first_at: row.lenient::<i64>(6)?.unsigned_abs(),
                last_at: row.lenient::<i64>(7)?.unsigned_abs(),
                resolved_at: moment(8)?,
                regressed_at: moment(9)?,
            },
        })
    }
}

impl Store {
    /// All problems, the most frequent first.
    pub fn problems(&self) -> Result<Vec<Problem>, StoreError> {
        self.some_problems("?1 = ''", "")
    }

    /// The problems whose fingerprint begins like this.
    pub fn problems_like(&self, beginning: &str) -> Result<Vec<Problem>, StoreError> {
        self.some_problems("substr(cause, 1, length(?1)) = ?1", beginning)
    }

    fn some_problems(&self, which: &str, text: &str) -> Result<Vec<Problem>, StoreError> {
        let columns = Problem::COLUMNS;
        let wrong = self.wrong();
        let sql =
            format!("SELECT {columns} FROM problem WHERE {which} ORDER BY count DESC, last_at DESC, cause");
        let mut statement = self.connection.prepare(&sql).map_err(&wrong)?;
        let rows = statement.query_map([text], Problem::read).map_err(&wrong)?;
        rows::readable("problem", rows).map_err(wrong)
    }

    /// How often every problem was met on each of the last `days` days, today last; silent ones are left out.
    pub fn problem_trends(&self, now: u64, days: usize) -> Result<HashMap<String, Vec<u64>>, StoreError> {
        self.some_trends("?1 = ''", "", now, days)
    }

    /// How often one problem was met on each of the last `days` days, today last.
    pub fn problem_trend(&self, cause: &str, now: u64, days: usize) -> Result<Vec<u64>, StoreError> {
        let found = self.some_trends("cause = ?1", cause, now, days)?.remove(cause);
        Ok(found.unwrap_or_else(|| vec![0; days]))
    }

    fn some_trends(
        &self,
        which: &str,
        text: &str,
        now: u64,
        days: usize,
    ) -> Result<HashMap<String, Vec<u64>>, StoreError> {
        let wrong = self.wrong();
        let first = (now / DAY_MS).cast_signed() - i64::try_from(days).unwrap_or(i64::MAX) + 1;
        let sql = format!("SELECT cause, day, count FROM problem_day WHERE {which} AND day >= ?2");
        let mut statement = self.connection.prepare(&sql).map_err(&wrong)?;
        let mut rows = statement.query((text, first)).map_err(&wrong)?;
        let mut trends: HashMap<String, Vec<u64>> = HashMap::new();
        while let Some(row) = rows.next().map_err(&wrong)? {
            let read = (row.lenient::<String>(0), row.lenient::<i64>(1), row.lenient::<i64>(2));
            let (Ok(cause), Ok(day), Ok(count)) = read else { continue };
            let trend = trends.entry(cause).or_insert_with(|| vec![0; days]);
            // A day of the future belongs to a clock that was set back since.
            if let Some(cell) = usize::try_from(day - first).ok().and_then(|at| trend.get_mut(at)) {
                *cell = count.unsigned_abs();
            }
        }
        Ok(trends)
    }

    /// The sessions that met a problem, the latest first.
    pub fn problem_sessions(&self, cause: &str) -> Result<Vec<ProblemSession>, StoreError> {
        let wrong = self.wrong();
        let sql = "SELECT ifnull(session.name, ''), count(*), max(call.asked_at)
            FROM call LEFT JOIN session ON session.id = call.session
            WHERE call.cause_print = ?1 GROUP BY call.session ORDER BY 3 DESC, 1";
        let mut statement = self.connection.prepare(sql).map_err(&wrong)?;
        let rows = statement
            .query_map([cause], |row| {
                Ok(ProblemSession {
                    session: row.lenient(0)?,
                    count: row.lenient::<i64>(1)?.unsigned_abs(),
                    last_at: row.lenient::<i64>(2)?.unsigned_abs(),
                })
            })
            .map_err(&wrong)?;
        rows::readable("problem", rows).map_err(wrong)
    }

    /// Notes that a person calls a problem resolved.
    pub fn resolve_problem(&mut self, cause: &str, now: u64) -> Result<(), StoreError> {
        self.write_durably(|connection| {
            // A problem that came back in this very millisecond is resolved all the same: the person has seen it.
            let sql =
                "UPDATE problem SET resolved_at = max(?2, ifnull(regressed_at + 1, 0)) WHERE cause = ?1";
            connection.execute(sql, (cause, now.cast_signed())).map(|_| ())
        })
    }

    /// Takes that back.
    pub fn reopen_problem(&mut self, cause: &str) -> Result<(), StoreError> {
        self.write_durably(|connection| {
            connection.execute("UPDATE problem SET resolved_at = NULL WHERE cause = ?1", [cause]).map(|_| ())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem_state::{ProblemAges, ProblemState};
    use crate::sample::Sample;

    const NOW: u64 = 100 * DAY_MS + 5;

    fn with_problems() -> Sample {
        let sample = Sample::empty();
        sample.sql(
            "INSERT INTO problem VALUES
                ('e1:aa', 'network', 'net.dns', 'no host', '[\"Bash\",\"Fetch\"]', 3, 5, 8640000000, NULL, NULL),
                ('e1:ab', 'auth', '', 'no key', 'not JSON', 9, 5, 8640000000, NULL, 8640000005);
             INSERT INTO problem_day VALUES
                ('e1:aa', 100, 2), ('e1:aa', 98, 1), ('e1:aa', 90, 7), ('e1:aa', 103, 5), ('e1:ab', 97, 9);",
        );
        sample
    }

    #[test]
    fn problems_come_with_the_most_frequent_first() {
        let sample = with_problems();
        let store = &sample.store;
        let all = store.problems().unwrap();
        let shown: Vec<_> = all.iter().map(|it| (&*it.cause, it.count, it.tools.join(" "))).collect();
        assert_eq!(shown, [("e1:ab", 9, String::new()), ("e1:aa", 3, "Bash Fetch".to_owned())]);
        let like = |text| store.problems_like(text).unwrap().len();
        assert_eq!((like("e1:a"), like("e1:aa"), like("e1:b"), like("%")), (2, 1, 0, 0));
    }

    #[test]
    fn a_trend_ends_today_and_holds_as_many_days_as_asked_for() {
        let sample = with_problems();
        let store = &sample.store;
        let trends = store.problem_trends(NOW, 4).unwrap();
        assert_eq!(trends["e1:aa"], [0, 1, 0, 2]);
        assert_eq!(trends["e1:ab"], [9, 0, 0, 0]);
        assert_eq!(store.problem_trend("e1:aa", NOW, 4).unwrap(), [0, 1, 0, 2]);
        assert_eq!(store.problem_trend("e1:zz", NOW, 2).unwrap(), [0, 0]);
    }

    #[test]
    fn what_a_person_says_changes_the_state_and_can_be_taken_back() {
        let sample = with_problems();
        let mut store = sample.another();
        let state = |store: &Store, cause| {
            let problem = store.problems_like(cause).unwrap().remove(0);
            ProblemState::of(&problem.times, NOW, &ProblemAges::default())
        };
        for (cause, before) in [("e1:aa", ProblemState::Known), ("e1:ab", ProblemState::Regressed)] {
            assert_eq!(state(&store, cause), before);
            store.resolve_problem(cause, NOW).unwrap();
            assert_eq!(state(&store, cause), ProblemState::Resolved);
            store.reopen_problem(cause).unwrap();
            assert_eq!(state(&store, cause), before);
        }
    }

    #[test]
    fn the_sessions_of_a_problem_come_with_the_latest_first() {
        let sample = with_problems();
        let (one, other) = (sample.session("one", 0), sample.session("other", 0));
        for (session, asked_at, cause) in
            [(one, 5, "e1:aa"), (other, 6, "e1:aa"), (one, 7, "e1:aa"), (other, 9, "e1:ab")]
        {
            sample.call(&crate::sample::SampleCall {
                session,
                asked_at,
                cause: Some(cause),
                ..Default::default()
            });
        }
        let sessions = sample.store.problem_sessions("e1:aa").unwrap();
        let shown: Vec<_> = sessions.iter().map(|it| (&*it.session, it.count, it.last_at)).collect();
        assert_eq!(shown, [("one", 2, 7), ("other", 1, 6)]);
        let calls = sample.store.calls_stopped_by("e1:aa", 2).unwrap();
        assert_eq!(calls.iter().map(|call| call.id).collect::<Vec<_>>(), [3, 2]);
    }
}
