//! Moments and spans of time as people read and write them. Pure: what time it is, is an argument.

use std::time::Duration;

use unstuck_judge::Lang;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A moment for people: `2026-11-15 11:53:02Z`. Moments are milliseconds since 1970.
pub(crate) fn format_utc(ms: u64) -> String {
    let ((year, month, day), clock) = (civil((ms / DAY).cast_signed()), ms % DAY / SECOND);
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
}

/// A moment for programs, in ISO 8601: `2026-11-15T11:53:02.250Z`.
pub(crate) fn format_iso(ms: u64) -> String {
    let ((year, month, day), clock) = (civil((ms / DAY).cast_signed()), ms % DAY);
    let (hour, minute, second) = (clock / HOUR, clock / MINUTE % 60, clock / SECOND % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", clock % SECOND)
}

/// A day, counted from 1970: `2026-11-15`.
pub(crate) fn format_day(day: i64) -> String {
    let (year, month, day) = civil(day);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a day counted from 1970.
fn civil(day: i64) -> (i64, i64, i64) {
    // Years are counted from March, so that the leap day comes last; 400 of them have always the same number of days.
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

/// How long something took, in one unit: `240 ms`, `3.5 s`, `12 min`, `5 h`, `3 d`.
pub(crate) fn span(ms: u64) -> String {
    match ms {
        0..SECOND => format!("{ms} ms"),
        SECOND..10_000 => format!("{}.{} s", ms / SECOND, ms % SECOND / 100),
        10_000..120_000 => format!("{} s", ms / SECOND),
        120_000..7_200_000 => format!("{} min", ms / MINUTE),
        7_200_000..172_800_000 => format!("{} h", ms / HOUR),
        _ => format!("{} d", ms / DAY),
    }
}

/// How long ago something was. A moment of the future is now: somebody set a clock.
pub(crate) fn ago(at: u64, now: u64, lang: Lang) -> String {
    let passed = now.saturating_sub(at);
    match (passed < SECOND, lang) {
        (true, Lang::En) => "now".to_owned(),
        (true, Lang::Zh) => "刚刚".to_owned(),
        (false, Lang::En) => format!("{} ago", span(passed / SECOND * SECOND).replace(".0", "")),
        (false, Lang::Zh) => format!("{} 前", span(passed / SECOND * SECOND).replace(".0", "")),
    }
}

/// Reads a span such as `90s`, `30m`, `12h`, `7d` or `2w`.
pub(crate) fn parse_span(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "ms" => Some(1),
        "s" => Some(SECOND),
        "m" | "min" => Some(MINUTE),
        "h" => Some(HOUR),
        "d" => Some(DAY),
        "w" => Some(7 * DAY),
        _ => None,
    };
    let span = unit.and_then(|unit| number.parse::<u64>().ok()?.checked_mul(unit));
    span.map(Duration::from_millis)
        .ok_or_else(|| "a span of time looks like 90s, 30m, 12h, 7d or 2w".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_in_utc() {
        let check = |ms, utc: &str, iso: &str| assert_eq!((&*format_utc(ms), &*format_iso(ms)), (utc, iso));
        check(0, "1970-01-01 00:00:00Z", "1970-01-01T00:00:00.000Z");
        check(951_782_400_000, "2000-02-29 00:00:00Z", "2000-02-29T00:00:00.000Z");
        check(1_769_009_416_868, "2026-01-21 15:30:16Z", "2026-01-21T15:30:16.868Z");
        check(4_107_542_399_999, "2100-02-28 23:59:59Z", "2100-02-28T23:59:59.999Z");
        check(4_107_542_400_000, "2100-03-01 00:00:00Z", "2100-03-01T00:00:00.000Z");
    }

    #[test]
    fn a_day_follows_the_other_through_four_hundred_years() {
        let days: Vec<String> = (0..146_097).map(format_day).collect();
        assert!(days.is_sorted() && days.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(days.last().map(String::as_str), Some("2369-12-31"));
    }

    #[test]
    fn a_span_is_told_in_one_unit() {
        let check = |ms, text: &str| assert_eq!(span(ms), text);
        check(0, "0 ms");
        check(999, "999 ms");
        check(3_460, "3.4 s");
        check(119_999, "119 s");
        check(120_000, "2 min");
        check(2 * HOUR, "2 h");
        check(47 * HOUR, "47 h");
        check(48 * HOUR, "2 d");
    }

    #[test]
    fn how_long_ago_is_told_in_both_languages() {
        let check = |at, now, lang, text: &str| assert_eq!(ago(at, now, lang), text);
        check(5_000, 5_400, Lang::En, "now");
        check(9_000, 5_400, Lang::Zh, "刚刚");
        check(0, 3_456, Lang::En, "3 s ago");
        check(0, 20 * DAY, Lang::Zh, "20 d 前");
    }

    #[test]
    fn a_span_is_read_with_its_unit() {
        let check = |text, ms| assert_eq!(parse_span(text).ok(), Duration::from_millis(ms).into(), "{text}");
        check("90s", 90_000);
        check("30m", 1_800_000);
        check("7d", 604_800_000);
        check("2w", 1_209_600_000);
        for text in ["", "7", "d", "-7d", "7 fortnights", "99999999999999999999d", "9999999999999999999w"] {
            assert!(parse_span(text).is_err(), "{text}");
        }
    }
}
