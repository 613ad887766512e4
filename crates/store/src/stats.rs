//! Counts what happened: failures by cause, what became of them, what repeats cost and what refusals saved. It never writes.
//!
//! One pass over the narrow table of calls. Nothing is counted while calls are recorded, so a count can be added later and
//! still tells of the past.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use unstuck_judge::{DENIED_BY_CHECK, vocabulary};

use crate::error::StoreError;
use crate::rows::{self, Lenient};
use crate::server_name::server_of;
use crate::store::Store;

/// Attempts are counted one by one up to here; the last place holds all further ones.
pub const ATTEMPTS: usize = 6;

vocabulary! {
    /// By what calls are grouped.
    GroupBy {
        /// The cause; only failures have one.
        Kind = "kind",
        /// The tool.
        Tool = "tool",
        /// The agent or sub-agent.
        Agent = "agent",
        /// The day they were asked for, in UTC.
        Day = "day",
        /// The session.
        Session = "session",
        /// The server whose tool it is; only such calls have one.
        Server = "server",
    }
}

impl GroupBy {
    const fn column(self) -> &'static str {
        match self {
            GroupBy::Kind => "kind",
            GroupBy::Tool | GroupBy::Server => "tool",
            GroupBy::Agent => "agent",
            GroupBy::Day => "asked_at / 86400000",
            GroupBy::Session => "session",
        }
    }
}

/// Which calls are counted; all where nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatsScope {
    /// Only those of the session with this number.
    pub session: Option<i64>,
    /// Only those asked for at this time or later, in milliseconds since 1970.
    pub since: Option<u64>,
}

/// What a group of calls has in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatsKey {
    /// Nothing: these are all.
    All,
    /// A day, counted from 1970.
    Day(i64),
    /// A kind, a tool, an agent, a session or a server.
    Name(String),
}

/// How often an attempt of the same number was made, and how often it went well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attempts {
    /// Calls that ended, well or not.
    pub tries: u64,
    /// Calls that went well.
    pub wins: u64,
}

/// Counts over a group of calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// All of them.
    pub calls: u64,
    /// Went well.
    pub completed: u64,
    /// Failed.
    pub failed: u64,
    /// Were not allowed to run, by whomever.
    pub denied: u64,
    /// Nobody knows how they ended.
    pub sealed: u64,
    /// Failures that claimed success, and a check of what they did said otherwise.
    pub check_failed: u64,
    /// Failures by the older word.
    pub error_types: BTreeMap<String, u64>,
    /// Failures by cause.
    pub kinds: BTreeMap<String, u64>,
    /// Failures after which the same intent went well.
    pub recovered: u64,
    /// The middle one of the times from a failure's end to that success, in milliseconds.
    pub recovery_ms: Option<u64>,
    /// What the first, second, … attempt at the same call was worth.
    pub attempts: [Attempts; ATTEMPTS],
    /// Failures that the session had met before.
    pub repeats: u64,
    /// How long those took, in milliseconds.
    pub repeats_ms: u64,
    /// How many of those have no time, and count for nothing.
    pub repeats_without_time: u64,
    /// Calls that the ladder refused and that did not run.
    pub refused: u64,
    /// How many of those were wrong: the same call went well later, and nothing had changed.
    pub false_alarms: u64,
    /// How long those would have taken: for each the mean of the failures of the same call, in milliseconds.
    pub saved_ms: u64,
    /// How many of those have no such failure, and count for nothing.
    pub refused_without_estimate: u64,
    /// Calls that the ladder would have refused and that ran, because nobody let it.
    pub let_through: u64,
    /// How many of those failed.
    pub let_through_failed: u64,
    /// How long those that failed took, in milliseconds.
    pub let_through_ms: u64,
    /// How many of those that failed have no time, and count for nothing.
    pub let_through_without_time: u64,
}

/// Counts that are not final yet.
#[derive(Default)]
struct Tally {
    stats: Stats,
    recoveries: Vec<u64>,
    /// How often each call was refused.
    refused: HashMap<u64, u64>,
}

/// What failures of the same call took, over all groups.
type Costs = HashMap<u64, (u64, u64)>;

/// One call as it is counted. The texts are borrowed from SQLite: none is copied for a call that adds nothing new.
struct Counted<'r> {
    state: &'r str,
    attempt: usize,
    took_ms: Option<u64>,
    ended_at: u64,
    kind: &'r str,
    error_type: &'r str,
    denied_by_check: bool,
    would_refuse: bool,
    false_alarm: bool,
    repeat: bool,
    recovered_at: Option<u64>,
    print: &'r str,
}

impl<'r> Counted<'r> {
    const COLUMNS: &'static str =
        "state, attempt, took_ms, ifnull(ended_at, asked_at), kind, error_type, rung_before,
        repeat, recovered_at, call_print, charge IS NOT NULL, false_alarm, rule";
    const WIDTH: usize = 13;

    /// Reads the columns, the first of which stands at 1.
    fn read(row: &'r Row<'_>) -> Result<Counted<'r>, rusqlite::Error> {
        let text = |column| {
            row.get_ref(column).map(|value| match value.as_str_or_null() {
                Ok(text) => text.unwrap_or(""),
                Err(_) => rows::replaced(""),
            })
        };
        let number = |column| row.lenient::<Option<i64>>(column).map(|value| value.map(i64::unsigned_abs));
        Ok(Counted {
            state: text(1)?,
            attempt: usize::try_from(row.lenient::<i64>(2)?).unwrap_or(1),
            took_ms: number(3)?,
            ended_at: number(4)?.unwrap_or(0),
            kind: text(5)?,
            error_type: text(6)?,
            denied_by_check: text(13)? == DENIED_BY_CHECK,
            would_refuse: matches!(text(7)?, "deny" | "halt") || row.lenient(11)?,
            false_alarm: row.lenient::<Option<bool>>(12)? == Some(true),
            repeat: row.lenient(8)?,
            recovered_at: number(9)?,
            print: text(10)?,
        })
    }
}

impl Tally {
    fn add(&mut self, call: &Counted<'_>, costs: &mut Costs) {
        let stats = &mut self.stats;
        stats.calls += 1;
        let (tries, wins) = match call.state {
            "completed" => (1, 1),
            "failed" => (1, 0),
            "denied" => {
                stats.denied += 1;
                if call.would_refuse {
                    stats.refused += 1;
                    stats.false_alarms += u64::from(call.false_alarm);
                    *self.refused.entry(hash(call.print)).or_default() += 1;
                }
                return;
            }
            "sealed" => {
                stats.sealed += 1;
                return;
            }
            // It still runs, or only a newer version knows what it does.
            _ => return,
        };
        let attempts = &mut stats.attempts[call.attempt.clamp(1, ATTEMPTS) - 1];
        attempts.tries += tries;
        attempts.wins += wins;
        stats.let_through += u64::from(call.would_refuse);
        if wins > 0 {
            stats.completed += 1;
            return;
        }
        stats.failed += 1;
        stats.check_failed += u64::from(call.denied_by_check);
        count(&mut stats.kinds, call.kind);
        count(&mut stats.error_types, call.error_type);
        let (took, untimed) = (call.took_ms.unwrap_or(0), u64::from(call.took_ms.is_none()));
        if call.would_refuse {
            stats.let_through_failed += 1;
            stats.let_through_ms += took;
            stats.let_through_without_time += untimed;
        }
        if call.repeat {
            stats.repeats += 1;
            stats.repeats_ms += took;
            stats.repeats_without_time += untimed;
        }
        if let Some(recovered_at) = call.recovered_at {
            stats.recovered += 1;
            self.recoveries.push(recovered_at.saturating_sub(call.ended_at));
        }
        if let Some(took) = call.took_ms {
            let (sum, number) = costs.entry(hash(call.print)).or_default();
            *sum += took;
            *number += 1;
        }
    }

    fn finish(mut self, costs: &Costs) -> Stats {
        for (print, refused) in &self.refused {
            match costs.get(print) {
                Some((sum, number)) => self.stats.saved_ms += refused * (sum / number),
                None => self.stats.refused_without_estimate += refused,
            }
        }
        let middle = self.recoveries.len().saturating_sub(1) / 2;
        if !self.recoveries.is_empty() {
            self.stats.recovery_ms = Some(*self.recoveries.select_nth_unstable(middle).1);
        }
        self.stats
    }
}

fn count(counts: &mut BTreeMap<String, u64>, word: &str) {
    match counts.get_mut(word) {
        Some(count) => *count += 1,
        None if word.is_empty() => {}
        None => {
            counts.insert(word.to_owned(), 1);
        }
    }
}

/// Two of a million fingerprints share this by chance once in forty million runs, and then one mean is off.
fn hash(print: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    print.hash(&mut hasher);
    hasher.finish()
}

/// Tallies by what was read in the first column.
#[derive(Default)]
struct Groups {
    names: HashMap<String, Tally>,
    numbers: HashMap<i64, Tally>,
}

impl Groups {
    /// The tally of a group; none for calls that have no such thing.
    fn of(&mut self, group: ValueRef<'_>) -> Option<&mut Tally> {
        match group {
            ValueRef::Integer(number) => Some(self.numbers.entry(number).or_default()),
            ValueRef::Text(name) => {
                let name = str::from_utf8(name).unwrap_or_default();
                if !self.names.contains_key(name) {
                    self.names.insert(name.to_owned(), Tally::default());
                }
                self.names.get_mut(name)
            }
            ValueRef::Null | ValueRef::Real(_) | ValueRef::Blob(_) => None,
        }
    }
}

impl Store {
    /// Counts the calls of a scope, in one group or in several. Days come in order, others with the most failures first.
    pub fn stats(
        &self,
        scope: &StatsScope,
        by: Option<GroupBy>,
    ) -> Result<Vec<(StatsKey, Stats)>, StoreError> {
        count_calls(&self.connection, scope, by).map_err(self.wrong())
    }
}

fn count_calls(
    connection: &Connection,
    scope: &StatsScope,
    by: Option<GroupBy>,
) -> Result<Vec<(StatsKey, Stats)>, rusqlite::Error> {
    let group = by.map_or("0", GroupBy::column);
    let columns = Counted::COLUMNS;
    let of_session = scope.session.map_or("?1 IS NULL", |_| "session = ?1");
    let sql = format!(
        "SELECT {group}, {columns}, id FROM call WHERE {of_session} AND asked_at >= ?2 AND id > ?3 ORDER BY id"
    );
    let mut statement = connection.prepare(&sql)?;
    let since = i64::try_from(scope.since.unwrap_or(0)).unwrap_or(i64::MAX);
    let (mut groups, mut costs) = (Groups::default(), Costs::new());
    rows::over_gaps("call", i64::MIN, |after, seen| {
        let mut rows = statement.query((scope.session, since, after))?;
        while let Some(row) = rows.next()? {
            let group = match (by, row.get_ref(0)?) {
                (Some(GroupBy::Server), tool) => server_in(tool),
                (_, group) => group,
            };
            rows::take_replaced();
            let call = Counted::read(row)?;
            *seen = row.get(Counted::WIDTH + 1)?;
            if rows::take_replaced() {
                rows::skip("call", Some(*seen));
            } else if let Some(tally) = groups.of(group) {
                tally.add(&call, &mut costs);
            }
        }
        Ok(())
    })?;
    let mut all: Vec<(StatsKey, Stats)> = Vec::new();
    for (name, tally) in groups.names {
        all.push((StatsKey::Name(name), tally.finish(&costs)));
    }
    for (number, tally) in groups.numbers {
        let key = match by {
            Some(GroupBy::Day) => StatsKey::Day(number),
            Some(GroupBy::Session) => StatsKey::Name(session_name(connection, number)?),
            Some(GroupBy::Kind | GroupBy::Tool | GroupBy::Agent | GroupBy::Server) => {
                StatsKey::Name(number.to_string())
            }
            None => StatsKey::All,
        };
        all.push((key, tally.finish(&costs)));
    }
    match by {
        Some(GroupBy::Day) => all.sort_by(|one, other| one.0.cmp(&other.0)),
        Some(GroupBy::Kind | GroupBy::Tool | GroupBy::Agent | GroupBy::Session | GroupBy::Server) => {
            let weight = |stats: &Stats| (stats.failed, stats.calls);
            all.sort_by(|one, other| weight(&other.1).cmp(&weight(&one.1)).then_with(|| one.0.cmp(&other.0)));
        }
        None if all.is_empty() => all.push((StatsKey::All, Stats::default())),
        None => {}
    }
    Ok(all)
}

/// The server in the name of a tool.
fn server_in(tool: ValueRef<'_>) -> ValueRef<'_> {
    let server = tool.as_str().ok().and_then(server_of);
    server.map_or(ValueRef::Null, |server| ValueRef::Text(server.as_bytes()))
}

/// A session's name, or its number where the session is gone.
fn session_name(connection: &Connection, id: i64) -> Result<String, rusqlite::Error> {
    let mut statement = connection.prepare_cached("SELECT name FROM session WHERE id = ?1")?;
    let mut rows = statement.query([id])?;
    match rows.next()? {
        Some(row) => row.lenient(0),
        None => Ok(format!("#{id}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Sample, SampleCall as Call};

    fn all(sample: &Sample) -> Stats {
        sample.store.stats(&StatsScope::default(), None).unwrap().remove(0).1
    }

    fn failed<'a>(kind: &'a str) -> Call<'a> {
        Call { state: "failed", kind: Some(kind), error_type: Some("runtime"), ..Call::default() }
    }

    #[test]
    fn an_empty_store_counts_nothing() {
        assert_eq!(all(&Sample::empty()), Stats::default());
        assert_eq!(Sample::empty().store.stats(&StatsScope::default(), Some(GroupBy::Tool)).unwrap(), []);
    }

    #[test]
    fn every_call_is_counted_once_by_how_it_ended() {
        let sample = Sample::empty();
        for state in ["completed", "completed", "denied", "sealed", "executing", "enlightened"] {
            sample.call(&Call { state, ..Call::default() });
        }
        sample.call(&failed("network"));
        sample.call(&failed("network"));
        sample.call(&failed("auth"));
        let stats = all(&sample);
        assert_eq!((stats.calls, stats.completed, stats.failed, stats.denied, stats.sealed), (9, 2, 3, 1, 1));
        assert_eq!(stats.kinds, BTreeMap::from([("network".to_owned(), 2), ("auth".to_owned(), 1)]));
        assert_eq!(stats.error_types, BTreeMap::from([("runtime".to_owned(), 3)]));
    }

    #[test]
    fn recovery_is_counted_from_the_end_of_the_failure() {
        let sample = Sample::empty();
        for recovered_at in [None, Some(1150), Some(2100), Some(9100)] {
            sample.call(&Call { recovered_at, ..failed("network") });
        }
        let stats = all(&sample);
        assert_eq!((stats.recovered, stats.recovery_ms), (3, Some(1000)));
    }

    #[test]
    fn the_yield_of_an_attempt_leaves_out_what_never_ended() {
        let sample = Sample::empty();
        for (attempt, state) in [
            (1, "failed"),
            (1, "completed"),
            (1, "denied"),
            (2, "failed"),
            (2, "sealed"),
            (6, "failed"),
            (40, "completed"),
        ] {
            sample.call(&Call { attempt, state, ..Call::default() });
        }
        let shown = all(&sample).attempts.map(|attempt| (attempt.tries, attempt.wins));
        assert_eq!(shown, [(2, 1), (1, 0), (0, 0), (0, 0), (0, 0), (2, 1)]);
    }

    #[test]
    fn repeats_cost_what_they_took() {
        let sample = Sample::empty();
        sample.call(&Call { took_ms: 7, ..failed("network") });
        sample.call(&Call { took_ms: 30, repeat: true, ..failed("network") });
        sample.call(&Call { took_ms: 12, repeat: true, ..failed("network") });
        let stats = all(&sample);
        assert_eq!((stats.repeats, stats.repeats_ms), (2, 42));
    }

    #[test]
    fn a_refusal_saves_what_the_same_call_took_when_it_failed() {
        let sample = Sample::empty();
        let refused = |print| Call { state: "denied", rung_before: "deny", print, ..Call::default() };
        sample.call(&Call { took_ms: 100, print: "c1:x", ..failed("network") });
        sample.call(&Call { took_ms: 300, print: "c1:x", ..failed("network") });
        sample.call(&Call { took_ms: 5000, print: "c1:x", ..Call::default() });
        sample.call(&refused("c1:x"));
        sample.call(&refused("c1:x"));
        sample.call(&refused("c1:y"));
        // What a person refused is no merit of ours.
        sample.call(&Call { rung_before: "hint", ..refused("c1:x") });
        let stats = all(&sample);
        assert_eq!(
            (stats.denied, stats.refused, stats.saved_ms, stats.refused_without_estimate),
            (4, 3, 400, 1)
        );
    }

    #[test]
    fn calls_that_ran_although_the_ladder_would_have_refused_them_are_told_apart() {
        let sample = Sample::empty();
        sample.call(&Call { rung_before: "deny", took_ms: 20, ..failed("network") });
        sample.call(&Call { rung_before: "halt", took_ms: 50, ..Call::default() });
        let stats = all(&sample);
        assert_eq!((stats.refused, stats.let_through), (0, 2));
        assert_eq!((stats.let_through_failed, stats.let_through_ms), (1, 20));
    }

    #[test]
    fn groups_add_up_to_all_and_come_in_a_useful_order() {
        let sample = Sample::empty();
        let (one, other) = (sample.session("one", 0), sample.session("other", 0));
        let day = 86_400_000;
        for (session, tool, agent, asked_at) in
            [(one, "Bash", "main", day), (other, "Edit", "main", 3 * day), (other, "Edit", "sub", 2 * day)]
        {
            sample.call(&Call { session, tool, agent, asked_at, ..Call::default() });
        }
        sample.call(&Call { session: one, tool: "Read", asked_at: 2 * day, ..failed("auth") });
        let store = &sample.store;
        let check = |by: GroupBy, expected: &[(&str, u64)]| {
            let groups = store.stats(&StatsScope::default(), Some(by)).unwrap();
            let shown: Vec<(String, u64)> = groups
                .into_iter()
                .map(|(key, stats)| match key {
                    StatsKey::Name(name) => (name, stats.calls),
                    StatsKey::Day(day) => (day.to_string(), stats.calls),
                    StatsKey::All => (String::new(), stats.calls),
                })
                .collect();
            let expected: Vec<_> =
                expected.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect();
            assert_eq!(shown, expected, "{by}");
        };
        check(GroupBy::Tool, &[("Read", 1), ("Edit", 2), ("Bash", 1)]);
        check(GroupBy::Agent, &[("main", 3), ("sub", 1)]);
        check(GroupBy::Day, &[("1", 1), ("2", 2), ("3", 1)]);
        check(GroupBy::Session, &[("one", 2), ("other", 2)]);
        check(GroupBy::Kind, &[("auth", 1)]);
        check(GroupBy::Server, &[]);
        for tool in ["mcp__files__read", "mcp__files__write", "mcp_web_fetch"] {
            sample.call(&Call { tool, ..Call::default() });
        }
        sample.call(&Call { tool: "mcp__web__fetch", ..failed("timeout") });
        check(GroupBy::Server, &[("web", 2), ("files", 2)]);
    }

    #[test]
    fn a_scope_leaves_out_other_sessions_and_older_calls() {
        let sample = Sample::empty();
        let (one, other) = (sample.session("one", 0), sample.session("other", 0));
        for (session, asked_at) in [(one, 10), (one, 20), (other, 30)] {
            sample.call(&Call { session, asked_at, ..Call::default() });
        }
        let check = |session, since, expected| {
            let stats = sample.store.stats(&StatsScope { session, since }, None).unwrap();
            assert_eq!(stats[0].1.calls, expected, "{session:?} {since:?}");
        };
        check(None, None, 3);
        check(Some(one), None, 2);
        check(Some(one), Some(20), 1);
        check(None, Some(20), 2);
        check(Some(99), None, 0);
    }
}
