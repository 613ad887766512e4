//! Moments as they are written for other tools.

/// A moment as ISO 8601 in UTC, such as `2026-11-15T11:53:02.007Z`.
pub fn iso(ms: u64) -> String {
    let (seconds, ms) = (ms / 1000, ms % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// The date of a day since 1970. Years are counted from March, so that the leap day comes last and needs no case of its own.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, wraps) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + wraps, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_in_utc() {
        let check = |ms: u64, expected: &str| assert_eq!(iso(ms), expected);
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_818_400_500, "2000-02-29T10:00:00.500Z");
        check(1_794_733_363_546, "2026-11-15T09:02:43.546Z");
        check(1_735_689_599_999, "2024-12-31T23:59:59.999Z");
    }
}
