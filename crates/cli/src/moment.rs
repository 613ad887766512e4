//! Moments and spans of time as people read and write them. Pure: what time it is, is an argument.

use std::time::Duration;

use unstuck_judge::Lang;
use unstuck_wire::time;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// A moment for people: `2026-11-15 11:53:02Z`. Moments are milliseconds since 1970.
pub(crate) fn format_utc(ms: u64) -> String {
    let iso = time::iso(ms / SECOND * SECOND);
    iso.replace('T', " ").replace(".000Z", "Z")
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
    fn people_are_told_moments_in_utc_without_fractions() {
        let check = |ms, utc: &str| assert_eq!(format_utc(ms), utc);
        check(0, "1970-01-01 00:00:00Z");
        check(1_769_009_416_868, "2026-01-21 15:30:16Z");
        check(4_107_542_399_999, "2100-02-28 23:59:59Z");
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
