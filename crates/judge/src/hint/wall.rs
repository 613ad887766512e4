//! Moments as people read them off a clock: `3pm`, `14:05`, `1:21 AM`, `Nov 16th, 2026 3:33 AM`, `Nov 20 at 3pm (UTC)`.
//!
//! A time without a day is the next one of its kind. Without a zone it is meant where it is read, and a zone that cannot be
//! told from its name alone is not guessed.

use super::amount::{Number, is_blank, strip_ignoring_case};
use super::{Clock, when};

const DAY: i64 = 24 * 60 * 60;
/// Clocks are read off in minutes: a time that passed less than this ago is now, and not tomorrow.
const JUST_NOW: i64 = 2 * 60;
/// A date without a year that lies longer ago is meant for the next one.
const HALF_A_YEAR: i64 = 183 * DAY;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The day that is meant.
enum Day {
    /// None is named: the next on which it is that late.
    Next,
    /// So many days from today.
    From(i64),
    Date {
        year: Option<i64>,
        month: i64,
        day: i64,
    },
}

/// Reads the moment at the start of `text`, in milliseconds since 1970.
pub(super) fn moment(text: &str, clock: Clock) -> Option<u64> {
    let (day, rest) = day(skip(text)).unwrap_or((Day::Next, skip(text)));
    let (second, rest) = time_of_day(skip(rest))?;
    let ahead = i64::from(zone(rest, clock)?);
    let now = i64::try_from(clock.now / 1000).ok()? + ahead;
    let today = now.div_euclid(DAY);
    let at = |day: i64| day.checked_mul(DAY).map(|start| start + second);
    let then = match day {
        Day::Next if at(today)? < now - JUST_NOW => at(today + 1)?,
        Day::Next => at(today)?,
        Day::From(days) => at(today + days)?,
        Day::Date { year: Some(year), month, day } => at(when::days(year, month, day))?,
        Day::Date { year: None, month, day } => {
            let year = year_of(today);
            let then = at(when::days(year, month, day))?;
            if then < now - HALF_A_YEAR { at(when::days(year + 1, month, day))? } else { then }
        }
    };
    u64::try_from(then.checked_sub(ahead)?.checked_mul(1000)?).ok()
}

/// Passes over blanks and the small words before a day or a time.
fn skip(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|sign| is_blank(sign) || matches!(sign, ',' | ':'));
        let words = ["on", "at", "about", "around"];
        let after = words
            .iter()
            .find_map(|word| strip_ignoring_case(rest, word).filter(|it| it.starts_with(is_blank)));
        match after {
            Some(after) => rest = after,
            None => return rest,
        }
    }
}

fn day(text: &str) -> Option<(Day, &str)> {
    for (word, days) in [("today", 0), ("tomorrow", 1)] {
        if let Some(rest) = strip_ignoring_case(text, word) {
            return Some((Day::From(days), rest));
        }
    }
    written_in_figures(text).or_else(|| named_month(text))
}

/// Reads `2026-11-16`.
fn written_in_figures(text: &str) -> Option<(Day, &str)> {
    let (year, rest) = number(text, 4)?;
    let (month, rest) = number(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = number(rest.strip_prefix('-')?, 2)?;
    dated(Some(year), month, day).map(|day| (day, rest.strip_prefix('T').unwrap_or(rest)))
}

/// Reads `Nov 16`, `November 16th` and `Nov 16th, 2026`.
fn named_month(text: &str) -> Option<(Day, &str)> {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (name, rest) = text.split_at(letters);
    let month = MONTHS.iter().position(|month| strip_ignoring_case(name, month).is_some())?;
    let (day, rest) = number(rest.trim_start_matches(['.', ' ']), 2)?;
    let rest = ["st", "nd", "rd", "th"].iter().find_map(|end| strip_ignoring_case(rest, end)).unwrap_or(rest);
    let year = number(rest.trim_start_matches([',', ' ']), 4).filter(|(year, _)| *year >= 1970);
    let (year, rest) = year.map_or((None, rest), |(year, rest)| (Some(year), rest));
    let month = i64::try_from(month).ok()? + 1;
    dated(year, month, day).map(|day| (day, rest))
}

fn dated(year: Option<i64>, month: i64, day: i64) -> Option<Day> {
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day);
    fits.then_some(Day::Date { year, month, day })
}

/// Reads `3pm`, `3:33 AM`, `14:05` or `14:05:30` as seconds of a day. A bare number is no time.
fn time_of_day(text: &str) -> Option<(i64, &str)> {
    let (hour, mut rest) = number(text, 2)?;
    let (mut minute, mut second) = (None, 0);
    if let Some((value, after)) = rest.strip_prefix(':').and_then(|rest| number(rest, 2)) {
        (minute, rest) = (Some(value), after);
        if let Some((value, after)) = rest.strip_prefix(':').and_then(|rest| number(rest, 2)) {
            (second, rest) = (value, after);
        }
    }
    let half = |word: &str| {
        let after = strip_ignoring_case(rest.trim_start_matches(is_blank), word)?;
        (!after.starts_with(|next: char| next.is_ascii_alphanumeric())).then_some(after)
    };
    let (hour, rest) = match (half("am").or_else(|| half("a.m.")), half("pm").or_else(|| half("p.m."))) {
        (Some(after), _) => ((1..=12).contains(&hour).then_some(hour % 12)?, after),
        (None, Some(after)) => ((1..=12).contains(&hour).then_some(hour % 12 + 12)?, after),
        (None, None) => (minute.map(|_| hour)?, rest),
    };
    let minute = minute.unwrap_or(0);
    let fits = hour < 24 && minute < 60 && second < 60;
    fits.then_some((hour * 3600 + minute * 60 + second, rest))
}

/// How far the zone that is named next is ahead of UTC, in seconds.
fn zone(text: &str, clock: Clock) -> Option<i32> {
    let rest = text.trim_start_matches(is_blank);
    let (in_brackets, rest) = rest.strip_prefix('(').map_or((false, rest), |rest| (true, rest));
    let is_part = |sign: char| sign.is_ascii_alphabetic() || matches!(sign, '/' | '_' | '+' | '-');
    let name = &rest[..rest.find(|sign| !is_part(sign)).unwrap_or(rest.len())];
    let is_universal = ["utc", "gmt", "z"].iter().any(|known| name.eq_ignore_ascii_case(known));
    // A name in capitals is a zone that several countries use for several times.
    let is_short = (2..=5).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_uppercase());
    match () {
        () if is_universal => Some(0),
        () if is_short || name.starts_with(['+', '-']) => None,
        // Agents name the zone of the machine they run on, which is this one.
        () if in_brackets && !name.contains('/') => None,
        () => clock.ahead,
    }
}

/// Reads a number of at most so many digits that does not go on.
fn number(text: &str, most: usize) -> Option<(i64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, _) = Number::read(text).filter(|_| digits <= most)?;
    Some((i64::try_from(number.whole).ok()?, &text[digits..]))
}

fn year_of(day: i64) -> i64 {
    let guess = 1970 + day.div_euclid(365);
    (0..4).map(|back| guess - back).find(|year| when::days(*year, 1, 1) <= day).unwrap_or(guess)
}
