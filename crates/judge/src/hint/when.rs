//! Points in time as headers write them, in milliseconds since 1970.

use std::time::{Duration, UNIX_EPOCH};

/// The length of `Sun, 06 Nov 1994 08:49:37 GMT`, the only form of an HTTP date that is still sent.
const HTTP_DATE: usize = 29;

/// Reads the HTTP date at the start of `text`.
pub(super) fn http_date(text: &str) -> Option<u64> {
    let date = httpdate::parse_http_date(text.get(..HTTP_DATE)?).ok()?;
    millis(date.duration_since(UNIX_EPOCH).ok()?)
}

/// Reads the RFC 3339 time at the start of `text`, such as `2026-03-01T12:00:30.5Z` or `2026-03-01T12:00:30+01:00`.
pub(super) fn rfc3339(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let (year, month, day) = (field(bytes, 0, 4)?, field(bytes, 5, 2)?, field(bytes, 8, 2)?);
    let (hour, minute, second) = (field(bytes, 11, 2)?, field(bytes, 14, 2)?, field(bytes, 17, 2)?);
    let marks = [bytes[4], bytes[7], bytes[10].to_ascii_uppercase(), bytes[13], bytes[16]] == *b"--T::";
    // A leap second is written as 60.
    let ranges =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    if !marks || !ranges {
        return None;
    }
    let mut rest = &bytes[19..];
    let mut thousandths = 0;
    if let [b'.', after @ ..] = rest {
        let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let three = after[..digits].iter().copied().chain(std::iter::repeat(b'0')).take(3);
        thousandths = three.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        rest = &after[digits..];
    }
    let offset = match rest.first()? {
        b'Z' | b'z' => 0,
        b'+' => field(rest, 1, 2)? * 60 + field(rest, 4, 2)?,
        b'-' => -(field(rest, 1, 2)? * 60 + field(rest, 4, 2)?),
        _ => return None,
    };
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute - offset;
    u64::try_from((minutes * 60 + second) * 1_000 + thousandths).ok()
}

fn field(bytes: &[u8], at: usize, length: usize) -> Option<i64> {
    let digits = bytes.get(at..at + length)?;
    digits.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

/// Returns the days from 1970-01-01 to a date of the Gregorian calendar.
///
/// Years are counted from March, so that the leap day is the last of its year and every month before it has a fixed place.
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    let from_march = (month + 9) % 12;
    let year = if month <= 2 { year - 1 } else { year };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    year * 365 + leap_days + day_of_year - 719_468
}

fn millis(span: Duration) -> Option<u64> {
    u64::try_from(span.as_millis()).ok()
}
