//! A moment as a person names it: so long ago, or a date.

use std::time::Duration;

use unstuck_wire::time;

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
            Moment::Ago(span) => now.saturating_sub(time::span_ms(span)),
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
    let moment = match text.len() {
        10 => time::millis(&format!("{text}T00:00:00Z")),
        // What a moment without a zone means, its writer knows alone, and things are removed by it.
        _ if text.get(19..).is_some_and(|rest| rest.contains(['Z', 'z', '+', '-'])) => time::millis(text),
        _ => None,
    };
    moment.map(Moment::At).ok_or_else(wrong)
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
        check("2026-01-21T15:30:16.868Z", 1_769_009_416_868);
        check("2000-02-29T12:00:00+02:00", 951_818_400_000);
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
            "2026-11-15T09:02:43",
            "-5d",
            "2026-11-15T25:00:00Z",
        ] {
            let why = parse_moment(text).unwrap_err();
            assert!(why.contains("2026-11-15T11:53:02Z"), "{text}");
        }
    }
}
