//! Reads lessons, and notes what a person says of them. Learning is done elsewhere, and nothing here is shown to an agent.

mod line;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use memchr::memmem;
use rusqlite::{Connection, OptionalExtension, Row};
use unstuck_judge::lesson::{Caution, Deed, Fix, Record};
use unstuck_judge::vocabulary;

use crate::error::StoreError;
use crate::lesson::{Known, LessonState, Showing, ShownOutcome, fix_from_json, fix_to_json};
use crate::rows::Lenient;
use crate::source::Source;
use crate::stats::StatsScope;
use crate::store::Store;

pub use line::{DEEDS_MAX, LessonLine, LineError, WORDS_MAX};

vocabulary! {
    /// Whose words a fix is in.
    LessonOrigin {
        /// Calls of an agent that were watched here.
        Seen = "seen",
        /// A file from elsewhere.
        Imported = "imported",
        /// A person's.
        Written = "written",
    }
}

vocabulary! {
    /// Where a lesson has won.
    LessonScope {
        /// In several places: it holds everywhere.
        Everywhere = "everywhere",
        /// In the place that was asked about.
        Here = "here",
        /// In one other place.
        Elsewhere = "elsewhere",
        /// Nowhere yet.
        Untried = "untried",
    }
}

/// What was seen to fix a cause, with all that is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Lesson {
    /// Its number.
    pub id: i64,
    /// The fingerprint of the failure.
    pub cause: String,
    /// What the failure is.
    pub kind: String,
    /// The rule that named it; may be empty.
    pub rule: String,
    /// The tool whose call failed.
    pub tool: String,
    /// What failed, in a word or two.
    pub program: String,
    /// The line that showed the failure last. Words of an output: never to be taken for more.
    pub title: String,
    /// What helped; empty where it cannot be read.
    pub fix: Fix,
    /// What became of it.
    pub state: LessonState,
    /// Whose words the fix is in.
    pub origin: LessonOrigin,
    /// What speaks against showing it.
    pub caution: Option<Caution>,
    /// How it has done, as far as it counts for showing it: what was watched, or all where a person approved it.
    pub record: Record,
    /// How often it won, whoever told of it.
    pub wins: u32,
    /// How often that was watched.
    pub watched: u32,
    /// How its wins came to be known, each with their number, the surest first.
    pub sources: Vec<(Source, u32)>,
    /// In how many places it won, whoever told of it, and whether the one that was asked about is among them.
    pub places: (u32, bool),
    /// How often it was shown.
    pub shown: u64,
    /// How often what it says was done then.
    pub followed: u64,
    /// How often that helped.
    pub worked: u64,
    /// When it was learnt.
    pub first_at: u64,
    /// Whether it is shown in the place that was asked about, and why.
    pub showing: Showing,
}

impl Lesson {
    const COLUMNS: &str =
        "cause, kind, rule, tool, program, title, origin, caution, shown, followed, worked, first_at,
        (SELECT group_concat(source || ' ' || wins, ',') FROM lesson_place WHERE lesson = lesson.id AND wins > 0),
        (SELECT count(DISTINCT place) FROM lesson_place WHERE lesson = lesson.id AND wins > 0),
        EXISTS (SELECT 1 FROM lesson_place WHERE lesson = lesson.id AND place = ?2 AND wins > 0)";

    fn read(row: &Row<'_>) -> Result<Lesson, rusqlite::Error> {
        let known = Known::read(row)?;
        let text = |column: usize| row.lenient::<String>(Known::WIDTH + column);
        let count = |column: usize| row.lenient::<i64>(Known::WIDTH + column).map(i64::unsigned_abs);
        let caution: Option<String> = row.lenient(Known::WIDTH + 7)?;
        Ok(Lesson {
            id: known.id,
            cause: text(0)?,
            kind: text(1)?,
            rule: text(2)?,
            tool: text(3)?,
            program: text(4)?,
            title: text(5)?,
            showing: known.showing(),
            fix: known.fix,
            state: known.state,
            origin: text(6)?.parse().unwrap_or(LessonOrigin::Imported),
            // A reason that only a newer version knows is one.
            caution: caution.map(|word| word.parse().unwrap_or(Caution::Unclear)),
            record: known.record,
            wins: known.wins,
            watched: known.watched,
            sources: sources(&row.lenient::<Option<String>>(Known::WIDTH + 12)?.unwrap_or_default()),
            places: (row.lenient(Known::WIDTH + 13)?, row.lenient(Known::WIDTH + 14)?),
            shown: count(8)?,
            followed: count(9)?,
            worked: count(10)?,
            first_at: count(11)?,
        })
    }

    /// Where it has won.
    pub fn scope(&self) -> LessonScope {
        match self.places {
            (2.., _) => LessonScope::Everywhere,
            (_, true) => LessonScope::Here,
            (1, false) => LessonScope::Elsewhere,
            (0, false) => LessonScope::Untried,
        }
    }
}

/// How a lesson did in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LessonPlace {
    /// The root of a repository, or a folder.
    pub place: String,
    /// How often it helped there.
    pub wins: u32,
    /// How often it did not.
    pub losses: u32,
    /// When it was last tried there.
    pub at: u64,
}

/// Which lessons are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LessonsWanted {
    /// All but those that are over: merged and forgotten ones.
    Current,
    /// Really all.
    All,
    /// Those against this cause, or one that begins like this, whatever became of them.
    Cause(String),
    /// Those in which all of these words stand, in whatever case.
    Words(Vec<String>),
}

/// What became of lessons that were shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LessonEffect {
    /// How often one was shown.
    pub shown: u64,
    /// How often it was followed.
    pub followed: u64,
    /// How often that helped.
    pub worked: u64,
}

/// What an import has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Imported {
    /// Lessons that are new here.
    pub added: u64,
    /// Lessons that were known already, and stay as they are.
    pub known: u64,
}

impl Store {
    /// The numbers of the lessons that are wanted, the best first: what a person approved, then by how surely it helps.
    pub fn ranked_lessons(&self, wanted: &LessonsWanted, now: u64) -> Result<Vec<i64>, StoreError> {
        rank(&self.connection, wanted, now).map_err(self.wrong())
    }

    /// One lesson, with how it stands in a place.
    pub fn lesson(&self, id: i64, place: &str) -> Result<Option<Lesson>, StoreError> {
        one(&self.connection, id, place).map_err(self.wrong())
    }

    /// Where a lesson was tried, the last place first.
    pub fn lesson_places(&self, id: i64) -> Result<Vec<LessonPlace>, StoreError> {
        let sql = "SELECT place, sum(wins), sum(losses), max(at) AS at FROM lesson_place WHERE lesson = ?1
             GROUP BY place ORDER BY at DESC, place";
        let read = |row: &Row<'_>| {
            Ok(LessonPlace {
                place: row.lenient(0)?,
                wins: row.lenient(1)?,
                losses: row.lenient(2)?,
                at: row.lenient::<i64>(3)?.unsigned_abs(),
            })
        };
        let rows = || -> Result<Vec<LessonPlace>, rusqlite::Error> {
            self.connection.prepare_cached(sql)?.query_map([id], read)?.collect()
        };
        rows().map_err(self.wrong())
    }

    /// How often lessons that were shown were followed, and helped.
    pub fn lesson_effect(&self, scope: &StatsScope) -> Result<LessonEffect, StoreError> {
        let (worked, failed) = (ShownOutcome::Worked.word(), ShownOutcome::Failed.word());
        let sql = "SELECT count(*), count(*) FILTER (WHERE outcome IN (?3, ?4)), count(*) FILTER (WHERE outcome = ?3)
             FROM lesson_shown WHERE (?1 IS NULL OR session = ?1) AND at >= ?2";
        let since = i64::try_from(scope.since.unwrap_or(0)).unwrap_or(i64::MAX);
        let counts: Result<(i64, i64, i64), _> =
            self.connection.query_row(sql, (scope.session, since, worked, failed), |row| row.try_into());
        let (shown, followed, worked) = counts.map_err(self.wrong())?;
        Ok(LessonEffect {
            shown: shown.unsigned_abs(),
            followed: followed.unsigned_abs(),
            worked: worked.unsigned_abs(),
        })
    }

    /// A person lets this very lesson be shown. What it lost before is forgiven; if it goes on losing, it is put aside again.
    pub fn approve_lesson(&mut self, id: i64) -> Result<(), StoreError> {
        self.write_durably(|connection| {
            let sql = "UPDATE lesson SET state = 'approved', losses_since_win = 0 WHERE id = ?1";
            connection.execute(sql, [id]).map(|_| ())
        })
    }

    /// A person does not want a lesson: it is never shown, and what it says is never learnt again.
    pub fn forget_lesson(&mut self, id: i64) -> Result<(), StoreError> {
        self.write_durably(|connection| {
            connection.execute("UPDATE lesson SET state = 'forgotten' WHERE id = ?1", [id]).map(|_| ())
        })
    }

    /// A person says what helps. Returns the number of the lesson that says so now: where one was there already, it is that
    /// one, and the other is merged into it.
    pub fn rewrite_lesson(&mut self, id: i64, fix: &Fix, now: u64) -> Result<i64, StoreError> {
        self.write_durably(|connection| {
            let sql = "SELECT other.id FROM lesson JOIN lesson other ON other.cause = lesson.cause
                 WHERE lesson.id = ?1 AND other.fix = ?2";
            let print = fix.print();
            let same: Option<i64> =
                connection.query_row(sql, (id, print.as_str()), |row| row.lenient(0)).optional()?;
            let kept = match same {
                Some(same) => {
                    let sql = "UPDATE lesson SET state = 'merged' WHERE id = ?1 AND id <> ?2";
                    connection.execute(sql, (id, same))?;
                    // Of one that was forgotten and purged only the prints were left.
                    let sql = "UPDATE lesson SET body = ?2, caution = ?3 WHERE id = ?1 AND body = ''";
                    connection.execute(sql, (same, fix_to_json(fix), Caution::about(fix).map(Caution::word)))?;
                    same
                }
                None => {
                    // What was counted was counted of other words.
                    connection.execute("DELETE FROM lesson_place WHERE lesson = ?1", [id])?;
                    connection.execute("DELETE FROM lesson_source WHERE lesson = ?1", [id])?;
                    connection.execute("DELETE FROM lesson_shown WHERE lesson = ?1", [id])?;
                    connection.execute(
                        "UPDATE lesson SET fix = ?2, body = ?3, caution = ?4, origin = 'written', wins = 0, losses = 0,
                             shown = 0, followed = 0, worked = 0, won_at = ?5 WHERE id = ?1",
                        (
                            id,
                            print.as_str(),
                            fix_to_json(fix),
                            Caution::about(fix).map(Caution::word),
                            now.cast_signed(),
                        ),
                    )?;
                    id
                }
            };
            let sql = "UPDATE lesson SET state = 'approved', losses_since_win = 0 WHERE id = ?1";
            connection.execute(sql, [kept])?;
            Ok(kept)
        })
    }

    /// Takes lessons in that were learnt elsewhere. They have won nothing here. What is known stays as it is, whatever the
    /// file says of it: a lesson that a person forgot is not brought back by a file.
    pub fn import_lessons(&mut self, lines: &[LessonLine], now: u64) -> Result<Imported, StoreError> {
        self.write_durably(|connection| {
            let mut statement = connection.prepare(
                "INSERT INTO lesson (cause, fix, kind, rule, tool, program, title, body, state, origin, caution, wins,
                     losses, losses_since_win, shown, followed, first_at, won_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'imported', 'imported', ?9, 0, 0, 0, 0, 0, ?10, ?10)
                 ON CONFLICT DO NOTHING",
            )?;
            let mut imported = Imported::default();
            for line in lines {
                let added = statement.execute((
                    &line.cause,
                    line.fix.print().as_str(),
                    line.kind.word(),
                    &*line.rule,
                    &*line.tool,
                    &*line.program,
                    &*line.title,
                    fix_to_json(&line.fix),
                    Caution::about(&line.fix).map(Caution::word),
                    now.cast_signed(),
                ))?;
                match added {
                    0 => imported.known += 1,
                    _ => imported.added += 1,
                }
            }
            Ok(imported)
        })
    }
}

/// How often a lesson won by each source, of `hook 2,file 1,hook 1`.
fn sources(text: &str) -> Vec<(Source, u32)> {
    let mut sums: BTreeMap<Source, u32> = BTreeMap::new();
    for (word, wins) in text.split(',').filter_map(|part| part.split_once(' ')) {
        *sums.entry(Source::stored(word)).or_default() += wins.parse().unwrap_or(0);
    }
    sums.into_iter().collect()
}

fn one(connection: &Connection, id: i64, place: &str) -> Result<Option<Lesson>, rusqlite::Error> {
    let sql = format!("SELECT {}, {} FROM lesson WHERE id = ?1", Known::COLUMNS, Lesson::COLUMNS);
    connection.prepare_cached(&sql)?.query_row((id, place), Lesson::read).optional()
}

fn rank(connection: &Connection, wanted: &LessonsWanted, now: u64) -> Result<Vec<i64>, rusqlite::Error> {
    let is_current = "state NOT IN ('merged', 'forgotten')";
    let (which, beginning) = match wanted {
        LessonsWanted::All => ("?1 = ''", ""),
        LessonsWanted::Current | LessonsWanted::Words(_) => (is_current, ""),
        LessonsWanted::Cause(cause) => ("substr(cause, 1, length(?1)) = ?1", &**cause),
    };
    let texts = match wanted {
        LessonsWanted::Words(_) => ", kind, tool, program, title, body",
        LessonsWanted::All | LessonsWanted::Current | LessonsWanted::Cause(_) => "",
    };
    let search = match wanted {
        LessonsWanted::Words(words) => Some(Search::new(words)),
        LessonsWanted::All | LessonsWanted::Current | LessonsWanted::Cause(_) => None,
    };
    let sql = format!(
        "SELECT id, state = 'approved', wins, losses, won_at{texts} FROM lesson WHERE {which} AND ?1 IS NOT NULL"
    );
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([beginning])?;
    let mut ranked: Vec<(bool, f64, i64, i64)> = Vec::new();
    while let Some(row) = rows.next()? {
        if let Some(search) = &search
            && !search.finds(row, 5)?
        {
            continue;
        }
        let won_at: i64 = row.lenient(4)?;
        let record = Record {
            wins: row.lenient(2)?,
            losses: row.lenient(3)?,
            won_at: won_at.unsigned_abs(),
            ..Record::default()
        };
        ranked.push((row.lenient(1)?, record.score(now), won_at, row.lenient(0)?));
    }
    let key = |one: &(bool, f64, i64, i64), other: &(bool, f64, i64, i64)| {
        other
            .0
            .cmp(&one.0)
            .then(other.1.total_cmp(&one.1))
            .then(other.2.cmp(&one.2))
            .then(one.3.cmp(&other.3))
    };
    ranked.sort_unstable_by(key);
    Ok(ranked.into_iter().map(|(_, _, _, id)| id).collect())
}

/// Words that are looked for in the texts of a lesson. Every lesson is read: that finds one sign of any script as surely as
/// a sentence, takes a fraction of a second for a hundred thousand of them, and costs those nothing who never search.
struct Search {
    words: Vec<memmem::Finder<'static>>,
}

impl Search {
    fn new(words: &[String]) -> Search {
        let finder = |word: &String| memmem::Finder::new(&word.to_lowercase()).into_owned();
        Search { words: words.iter().map(finder).collect() }
    }

    /// Do all words stand in the texts, which begin at this column? The last of them is a fix.
    fn finds(&self, row: &Row<'_>, first: usize) -> Result<bool, rusqlite::Error> {
        let mut text = String::new();
        for column in first..first + 4 {
            text.push_str(&row.get_ref(column)?.as_str_or_null()?.unwrap_or_default().to_lowercase());
            text.push('\n');
        }
        let is_in = |text: &str, word: &memmem::Finder<'_>| word.find(text.as_bytes()).is_some();
        let missing: Vec<_> = self.words.iter().filter(|word| !is_in(&text, word)).collect();
        if missing.is_empty() {
            return Ok(true);
        }
        let body = row.get_ref(first + 4)?.as_str_or_null()?.unwrap_or_default();
        // Reading a fix costs more than all else, and what JSON writes as it is must stand in it.
        let lower = body.to_lowercase();
        if missing.iter().any(|word| is_plain(word.needle()) && !is_in(&lower, word)) {
            return Ok(false);
        }
        let words = words_of(&fix_from_json(body).unwrap_or_default()).to_lowercase();
        Ok(missing.iter().all(|word| is_in(&words, word)))
    }
}

/// Does JSON write this as it is?
fn is_plain(word: &[u8]) -> bool {
    !word.iter().any(|byte| byte.is_ascii_control() || b"\"\\".contains(byte))
}

/// All that a fix says.
fn words_of(fix: &Fix) -> String {
    let deeds = fix.deeds.iter().map(|deed| match deed {
        Deed::Ran { line } => line.clone(),
        Deed::Edited { file, .. } => file.clone(),
        Deed::Called { tool, target } => format!("{tool} {target}"),
    });
    let change = fix.change.iter().flat_map(|change| [change.from.clone(), change.to.clone()]);
    deeds.chain(change).collect::<Vec<_>>().join("\n")
}
