//! Moments as others write them.

/// Milliseconds since 1970 of an RFC 3339 moment such as `2026-01-21T15:30:16.868Z`, if it is one.
pub(crate) fn millis(text: &str) -> Option<u64> {
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
    Some(
        sign * (hours.parse::<i64>().ok()?.checked_mul(3600)?
            + minutes.parse::<i64>().ok()?.checked_mul(60)?),
    )
    .filter(|seconds| seconds.abs() <= 24 * 3600)
}

/// Days from 1970-01-01. Years are counted from March, so that the leap day comes last and needs no case of its own.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - 719_468
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
