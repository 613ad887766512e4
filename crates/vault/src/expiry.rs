//! Which snapshots have expired. Pure: it looks at nothing but what it is given, and removes nothing.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::retention::Retention;
use crate::snapshot::{Origin, Scope, Snapshot, SnapshotId};

/// So long a call may take before its snapshot is treated like any other.
const CALL_IN_PROGRESS: Duration = Duration::from_secs(60 * 60);

/// What a snapshot competes with for a place: those of the same scopes. What restores saved is counted apart, so that going
/// back and forth pushes nothing out that a call or a person had kept.
type Target<'a> = (&'a [Scope], bool);

/// The snapshots that have expired, the oldest first. `size` is what the safe holds in bytes.
pub(crate) fn expired(
    snapshots: &[Snapshot],
    retention: &Retention,
    size: u64,
    now: SystemTime,
) -> Vec<SnapshotId> {
    let mut newest_first: Vec<&Snapshot> = snapshots.iter().collect();
    newest_first.sort_unstable_by_key(|snapshot| std::cmp::Reverse(snapshot.id));
    let mut kept_of: BTreeMap<Target<'_>, usize> = BTreeMap::new();
    let mut kept: Vec<&Snapshot> = Vec::new();
    let mut expired: Vec<&Snapshot> = Vec::new();
    for snapshot in newest_first {
        let kept_here = kept_of.entry(target(snapshot)).or_default();
        let is_due = *kept_here >= retention.per_target || age(snapshot, now) > retention.max_age;
        match is_due && !must_stay(snapshot, now) {
            true => expired.push(snapshot),
            false => {
                *kept_here += 1;
                kept.push(snapshot);
            }
        }
    }
    // What one of them alone has on the disk is not known here. What had to be written for it is the best guess; whoever
    // removes looks at the true size afterwards and asks again.
    let mut size = expired.iter().fold(size, |size, snapshot| size.saturating_sub(snapshot.stored));
    // The newest of all is worth more than the budget: without it there would be nothing to go back to.
    for snapshot in kept.iter().skip(1).rev() {
        if size <= retention.max_size {
            break;
        }
        if !must_stay(snapshot, now) {
            size = size.saturating_sub(snapshot.stored);
            expired.push(snapshot);
        }
    }
    let mut ids: Vec<SnapshotId> = expired.iter().map(|snapshot| snapshot.id).collect();
    ids.sort_unstable();
    ids
}

fn target(snapshot: &Snapshot) -> Target<'_> {
    (&snapshot.scopes, matches!(snapshot.origin, Origin::Restore { .. }))
}

/// A clock that was set back makes nothing old.
fn age(snapshot: &Snapshot, now: SystemTime) -> Duration {
    now.duration_since(snapshot.at).unwrap_or_default()
}

/// It was pinned, or the call that it protects may still be running.
fn must_stay(snapshot: &Snapshot, now: SystemTime) -> bool {
    let is_running = match snapshot.origin {
        Origin::Call { .. } => !snapshot.concluded && age(snapshot, now) < CALL_IN_PROGRESS,
        Origin::Person | Origin::Restore { .. } => false,
    };
    snapshot.pinned || is_running
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;

    /// A snapshot in a few letters: `12m /a call open pinned 5`, its age, its scope, and what is special about it. A number
    /// is what had to be written for it.
    fn snapshot(id: u64, text: &str, now: SystemTime) -> Snapshot {
        let mut words = text.split(' ');
        let age = words.next().unwrap();
        let (number, unit) = age.split_at(age.len() - 1);
        let unit = if unit == "h" { HOUR } else { MINUTE };
        let ago = Duration::from_secs(number.parse::<u64>().unwrap() * unit);
        let path = words.next().unwrap();
        let mut snapshot = Snapshot {
            id: SnapshotId(id),
            at: now - ago,
            origin: Origin::Person,
            note: String::new(),
            scopes: path.split('+').map(|path| Scope { path: path.into() }).collect(),
            gaps: Vec::new(),
            gap_count: 0,
            entries: 1,
            bytes: 1,
            stored: 0,
            pinned: false,
            concluded: true,
            changed: None,
            undone_by: None,
        };
        for word in words {
            match word {
                "call" => {
                    let [key, session, row, label] = std::array::from_fn(|_| String::new());
                    snapshot.origin = Origin::Call { call: None, key, session, row, label };
                }
                "restore" => snapshot.origin = Origin::Restore { of: SnapshotId(1) },
                "open" => snapshot.concluded = false,
                "pinned" => snapshot.pinned = true,
                bytes => snapshot.stored = bytes.parse().unwrap(),
            }
        }
        snapshot
    }

    #[track_caller]
    fn check(rows: &[&str], size: u64, expected: &[u64]) {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let snapshots: Vec<Snapshot> =
            rows.iter().zip(1..).map(|(text, id)| snapshot(id, text, now)).collect();
        let retention = Retention { per_target: 3, max_age: Duration::from_secs(24 * HOUR), max_size: 100 };
        let ids: Vec<u64> = expired(&snapshots, &retention, size, now).iter().map(|id| id.0).collect();
        assert_eq!(ids, expected);
    }

    #[test]
    fn the_newest_three_of_each_target_stay() {
        check(&[], 0, &[]);
        check(&["5m /a", "4m /a", "3m /a"], 0, &[]);
        check(&["6m /a", "5m /b", "4m /a", "3m /a", "2m /a", "1m /b"], 0, &[1]);
        check(&["5m /a", "4m /a", "3m /a", "2m /a", "1m /a"], 0, &[1, 2]);
    }

    #[test]
    fn a_target_is_the_set_of_scopes() {
        check(&["4m /a", "3m /a+/b", "2m /a", "1m /a", "1m /a+/b"], 0, &[]);
    }

    #[test]
    fn what_restores_saved_is_counted_apart() {
        check(&["9m /a", "8m /a", "7m /a", "6m /a restore", "5m /a restore", "4m /a restore"], 0, &[]);
        check(&["9m /a", "8m /a restore", "7m /a restore", "6m /a restore", "5m /a restore"], 0, &[2]);
    }

    #[test]
    fn what_is_older_than_a_day_goes() {
        check(&["25h /a", "24h /a", "1h /b"], 0, &[1]);
    }

    #[test]
    fn pinned_ones_stay_and_count() {
        check(&["99h /a pinned", "1m /a"], 0, &[]);
        check(&["5m /a", "4m /a pinned", "3m /a pinned", "2m /a"], 0, &[1]);
        check(&["5m /a pinned", "4m /a", "3m /a", "2m /a"], 0, &[]);
    }

    #[test]
    fn what_protects_a_running_call_stays_for_an_hour() {
        check(&["59m /a call open", "4m /a", "3m /a", "2m /a"], 0, &[]);
        check(&["60m /a call open", "4m /a", "3m /a", "2m /a"], 0, &[1]);
        check(&["59m /a call", "4m /a", "3m /a", "2m /a"], 0, &[1]);
        check(&["59m /a open", "4m /a", "3m /a", "2m /a"], 0, &[1]);
    }

    #[test]
    fn over_budget_the_oldest_go_until_the_rest_fits() {
        check(&["4m /a 50", "3m /b 40", "2m /c 30"], 100, &[]);
        check(&["4m /a 50", "3m /b 40", "2m /c 30"], 120, &[1]);
        check(&["4m /a 50 pinned", "3m /b 40", "2m /c 30"], 120, &[2]);
        check(&["4m /a 50 call open", "3m /b 40", "2m /c 30"], 120, &[2]);
        check(&["30h /a 50", "3m /b 40", "2m /c 30"], 150, &[1]);
        check(&["30h /a 50", "3m /b 40", "2m /c 30"], 151, &[1, 2]);
    }

    #[test]
    fn the_newest_is_never_removed_for_its_size() {
        check(&["4m /a 5", "3m /b 900"], 905, &[1]);
    }
}
