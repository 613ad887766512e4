//! Moments as texts, read and written: milliseconds since 1970 and ISO 8601. What time it is, is never asked here.

use std::time::Duration;

use serde_json::Value;

use crate::scalar;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The end of the year 9999, in milliseconds since 1970. Nothing is later.
pub const LAST: u64 = 253_402_300_799_999;

/// A moment: milliseconds since 1970 as a number, or an ISO 8601 text. A time nobody understands is no reason to lose a call.
pub(crate) fn moment(at: &Value) -> Option<u64> {
    let written = at.as_str().and_then(millis);
    written.or_else(|| scalar::count("at", at).ok().flatten()).filter(|at| *at <= LAST)
}

/// Milliseconds since 1970 of an RFC 3339 moment such as `2026-01-21T15:30:16.868Z`, if it is one.
pub fn millis(text: &str) -> Option<u64> {
    let text = text.trim();
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let is = |at: usize, byte: &[u8]| text.as_bytes().get(at).is_some_and(|found| byte.contains(found));
    if !(is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let in_range = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    let (next_year, next_month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    if !in_range || days(year, month, day) >= days(next_year, next_month, 1) {
        return None;
    }
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())),
        None => ("", rest),
    };
    let fraction = format!("{fraction:0<3}").get(..3)?.parse::<i64>().ok()?;
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second - offset(zone)?;
    u64::try_from(seconds * 1000 + fraction).ok()
}

/// A moment, given in milliseconds since 1970, as ISO 8601 in UTC: `2026-11-15T11:53:02.250Z`.
pub fn iso(ms: u64) -> String {
    let (date, clock) = (iso_day((ms / DAY_MS).cast_signed()), ms % DAY_MS);
    let (hour, minute, second) = (clock / 3_600_000, clock / 60_000 % 60, clock / 1000 % 60);
    format!("{date}T{hour:02}:{minute:02}:{second:02}.{:03}Z", clock % 1000)
}

/// A day, counted from 1970: `2026-11-15`.
pub fn iso_day(day: i64) -> String {
    let (year, month, day) = date(day);
    format!("{year:04}-{month:02}-{day:02}")
}

/// A span of time in whole milliseconds, as many as fit.
pub fn span_ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Seconds east of Greenwich.
fn offset(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z" | "") {
        return Some(0);
    }
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let number = |text: &str, most: i64| text.parse().ok().filter(|number| (0..=most).contains(number));
    Some(sign * (number(hours, 24)? * 3600 + number(minutes, 59)? * 60))
}

/// Days from 1970-01-01. Years are counted from March, so that the leap day comes last and needs no case of its own.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468
}

/// Year, month and day of a day counted from 1970: the way back from [`days`].
fn date(day: i64) -> (i64, i64, i64) {
    // 400 years have always the same number of days.
    let day = day + 719_468;
    let (era, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * from_march + 2) / 5 + 1;
    match from_march < 10 {
        true => (year + era * 400, from_march + 3, of_month),
        false => (year + era * 400 + 1, from_march - 9, of_month),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_counted_from_1970() {
        assert_eq!(millis("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(millis("2026-11-15T09:02:43.546Z"), Some(1_794_733_363_546));
        assert_eq!(millis("2000-02-29T12:00:00.5+02:00"), Some(951_818_400_500));
        assert_eq!(millis("2024-12-31 23:59:59.123456-01:30"), Some(1_735_694_999_123));
    }

    #[test]
    fn a_moment_is_written_in_utc_as_it_is_read() {
        let check = |ms, text: &str| assert_eq!((&*iso(ms), millis(text)), (text, Some(ms)));
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(951_818_400_500, "2000-02-29T10:00:00.500Z");
        check(1_735_689_599_999, "2024-12-31T23:59:59.999Z");
        check(1_769_009_416_868, "2026-01-21T15:30:16.868Z");
        check(1_794_733_363_546, "2026-11-15T09:02:43.546Z");
        check(4_107_542_399_999, "2100-02-28T23:59:59.999Z");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn a_day_follows_the_other_through_four_hundred_years() {
        for day in 0..146_097 {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), day);
        }
        assert_eq!(iso_day(146_096), "2369-12-31");
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for text in [
            "",
            "yesterday",
            "2026-13-01T00:00:00Z",
            "2026-11-15",
            "2026-11-15T09:02:43.546é",
            "1794733363",
            "1970-01-01T00:00:00+99:00",
        ] {
            assert_eq!(millis(text), None, "{text}");
        }
    }
}
