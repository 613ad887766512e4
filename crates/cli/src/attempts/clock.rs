//! What a clock on the wall shows, for lines that people read beside those of other programs.

use std::env;
use std::time::Duration;

use tz::TimeZone;
use unstuck_judge::hint::Clock;

use crate::cellar;

/// The time of day here: `14:03:59`.
pub(super) fn now() -> String {
    after(Duration::ZERO)
}

/// The time of day here, so long from now.
pub(super) fn after(wait: Duration) -> String {
    let seconds = i64::try_from(cellar::now() / 1000).unwrap_or(0);
    let then = seconds.saturating_add(i64::try_from(wait.as_secs()).unwrap_or(0));
    face(then.saturating_add(i64::from(offset(then))))
}

/// The moment, and what the clocks here show at it.
pub(crate) fn here() -> Clock {
    let now = cellar::now();
    Clock { now, ahead: i64::try_from(now / 1000).ok().map(offset) }
}

/// How many seconds the clocks here are ahead of UTC at a moment. Where nobody knows, they show UTC.
fn offset(unix: i64) -> i32 {
    let named = env::var("TZ").ok().filter(|name| !name.is_empty());
    let zone = named.map_or_else(TimeZone::local, |name| TimeZone::from_posix_tz(&name)).ok();
    let kind = zone.as_ref().and_then(|zone| zone.find_local_time_type(unix).ok());
    kind.map_or(0, |kind| kind.ut_offset())
}

fn face(local: i64) -> String {
    let second = local.rem_euclid(24 * 60 * 60);
    format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_hours_minutes_and_seconds_of_its_day() {
        let check = |local, shown: &str| assert_eq!(face(local), shown);
        check(0, "00:00:00");
        check(86_399, "23:59:59");
        check(86_400 + 3_661, "01:01:01");
        check(-1, "23:59:59");
    }
}
