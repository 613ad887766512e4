//! A moment as a person names it: so long ago, or a date.

use std::time::Duration;

use crate::moment;

/// A moment, before it is known what time it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Ago(Duration),
    /// Milliseconds since 1970.
    At(u64),
}

impl Moment {
    pub(crate) fn before(self, now: u64) -> u64 {
        match self {
            Moment::Ago(span) => now.saturating_sub(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
            Moment::At(at) => at,
        }
    }
}

/// Reads `30d`, `2026-11-15` or `2026-11-15T11:53:02Z`.
pub(crate) fn parse_moment(text: &str) -> Result<Moment, String> {
    let text = text.trim();
    if let Ok(span) = moment::parse_span(text) {
        return Ok(Moment::Ago(span));
    }
    let wrong =
        || "a moment looks like 30d (so long ago), 2026-11-15 or 2026-11-15T11:53:02Z (UTC)".to_owned();
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00Z"));
    let numbers = |text: &str, sign: char| -> Option<Vec<u64>> {
        text.split(sign).map(|part| part.parse().ok().filter(|_| part.len() <= 4)).collect()
    };
    let date = numbers(date, '-').ok_or_else(wrong)?;
    let clock = numbers(clock.strip_suffix('Z').ok_or_else(wrong)?, ':').ok_or_else(wrong)?;
    match (&date[..], &clock[..]) {
        (
            &[year @ 1970..=9999, month @ 1..=12, day @ 1..=31],
            &[hour @ 0..24, minute @ 0..60, second @ 0..60],
        ) => Ok(Moment::At((((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second) * 1000)),
        _ => Err(wrong()),
    }
}

/// Days since 1970. Years are counted from March, so that the leap day comes last and needs no case of its own.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_so_long_ago_or_a_date() {
        let check = |text: &str, expected: u64| {
            assert_eq!(parse_moment(text).unwrap().before(1_794_733_363_000), expected, "{text}");
        };
        check("1h", 1_794_729_763_000);
        check("99999d", 0);
        check("1970-01-01", 0);
        check("2026-11-15", 1_794_700_800_000);
        check("2026-11-15T09:02:43Z", 1_794_733_363_000);
        check("2000-02-29 10:00:00Z", 951_818_400_000);
    }

    #[test]
    fn what_is_no_moment_is_refused_with_examples() {
        for text in [
            "",
            "30",
            "yesterday",
            "2026-13-01",
            "2026-11",
            "2026-11-15T09:02",
            "-5d",
            "2026-11-15T25:00:00Z",
        ] {
            let why = parse_moment(text).unwrap_err();
            assert!(why.contains("2026-11-15T11:53:02Z"), "{text}");
        }
    }
}
