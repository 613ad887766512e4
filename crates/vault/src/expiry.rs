//! Which snapshots have expired. Pure: it looks at nothing but what it is given, and removes nothing.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use unstuck_wire::{clock, time};

use crate::retention::{Cause, Gone, Retention};
use crate::snapshot::{Origin, Scope, Snapshot};

/// So long a call may take before its snapshot is treated like any other.
const CALL_IN_PROGRESS: Duration = Duration::from_secs(60 * 60);

/// What a snapshot competes with for a place: those of the same scopes and the same kind. What restores saved is counted apart, so
/// that going back and forth pushes nothing out that a call had kept; so is what agents asked for. What a person took has its place
/// whatever else there is.
type Target<'a> = (&'a [Scope], Kind);

/// Which snapshots are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Calls,
    Restores,
    Agents,
    Persons,
}

/// The snapshots that have expired, the oldest first. `size` is what the safe holds in bytes.
pub(crate) fn expired(
    snapshots: &[Snapshot],
    retention: &Retention,
    size: u64,
    now: SystemTime,
) -> Vec<Gone> {
    let now = credible(snapshots, retention, now);
    let mut newest_first: Vec<&Snapshot> = snapshots.iter().collect();
    newest_first.sort_unstable_by_key(|snapshot| std::cmp::Reverse(snapshot.id));
    let mut kept_of: BTreeMap<Target<'_>, usize> = BTreeMap::new();
    let mut kept: Vec<&Snapshot> = Vec::new();
    let mut expired: Vec<(&Snapshot, Cause)> = Vec::new();
    for snapshot in newest_first {
        let is_by_hand = snapshot.origin == Origin::Person;
        let kept_here = kept_of.entry(target(snapshot)).or_default();
        let is_old = age(snapshot, now) > retention.max_age;
        let are_enough = *kept_here >= retention.per_target && !is_by_hand;
        match (is_old || are_enough) && !must_stay(snapshot, now) {
            true => expired.push((snapshot, if is_old { Cause::Age } else { Cause::Count })),
            false => {
                *kept_here += usize::from(!is_by_hand);
                kept.push(snapshot);
            }
        }
    }
    // What one of them alone has on the disk is not known here. What had to be written for it is the best guess; whoever
    // removes looks at the true size afterwards and asks again.
    let mut size = expired.iter().fold(size, |size, (snapshot, _)| size.saturating_sub(snapshot.stored));
    // The newest of all is worth more than the budget: without it there would be nothing to go back to.
    // What a person took goes last, if at all.
    let is_by_person = |snapshot: &&&Snapshot| snapshot.origin == Origin::Person;
    let others = kept.iter().skip(1).rev().filter(|snapshot| !is_by_person(snapshot));
    let persons =
        kept.iter().skip(1).rev().filter(|snapshot| !retention.spare_persons && is_by_person(snapshot));
    for snapshot in others.chain(persons) {
        if size <= retention.max_size {
            break;
        }
        if !must_stay(snapshot, now) {
            size = size.saturating_sub(snapshot.stored);
            expired.push((snapshot, Cause::Size));
        }
    }
    let mut gone: Vec<Gone> = expired.iter().map(|(snapshot, cause)| gone(snapshot, *cause)).collect();
    gone.sort_unstable_by_key(|gone| gone.id);
    gone
}

/// What is known of a snapshot that goes.
pub(crate) fn gone(snapshot: &Snapshot, cause: Cause) -> Gone {
    let note = match &snapshot.origin {
        Origin::Call { label, .. } => label,
        Origin::Person | Origin::Agent | Origin::Restore { .. } => &snapshot.note,
    };
    Gone { id: snapshot.id, note: note.clone(), cause }
}

/// The moment against which ages are measured: a clock that jumps ahead must not empty the safe.
fn credible(snapshots: &[Snapshot], retention: &Retention, now: SystemTime) -> SystemTime {
    let ms = |at: SystemTime| time::span_ms(at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
    let times: Vec<u64> = snapshots.iter().map(|snapshot| ms(snapshot.at)).collect();
    let behind = ms(now).saturating_sub(clock::credible(ms(now), &times, retention.max_age));
    now.checked_sub(Duration::from_millis(behind)).unwrap_or(now)
}

fn target(snapshot: &Snapshot) -> Target<'_> {
    let kind = match snapshot.origin {
        Origin::Call { .. } => Kind::Calls,
        Origin::Restore { .. } => Kind::Restores,
        Origin::Agent => Kind::Agents,
        Origin::Person => Kind::Persons,
    };
    (&snapshot.scopes, kind)
}

/// A clock that was set back makes nothing old.
fn age(snapshot: &Snapshot, now: SystemTime) -> Duration {
    now.duration_since(snapshot.at).unwrap_or_default()
}

/// It was pinned, or the call that it protects may still be running.
fn must_stay(snapshot: &Snapshot, now: SystemTime) -> bool {
    let is_running = match snapshot.origin {
        Origin::Call { .. } => !snapshot.concluded && age(snapshot, now) < CALL_IN_PROGRESS,
        Origin::Person | Origin::Agent | Origin::Restore { .. } => false,
    };
    snapshot.pinned || is_running
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::SnapshotId;

    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;

    /// A snapshot in a few letters: `12m /a open pinned 5`, its age, its scope, and what is special about it. A number is what
    /// had to be written for it. It was taken before a call, unless it says otherwise.
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
            origin: before_a_call(),
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
                "hand" => snapshot.origin = Origin::Person,
                "agent" => snapshot.origin = Origin::Agent,
                "restore" => snapshot.origin = Origin::Restore { of: SnapshotId(1) },
                "open" => snapshot.concluded = false,
                "pinned" => snapshot.pinned = true,
                bytes => snapshot.stored = bytes.parse().unwrap(),
            }
        }
        snapshot
    }

    fn before_a_call() -> Origin {
        let [key, session, row, label] = std::array::from_fn(|_| String::new());
        Origin::Call { call: None, key, session, row, label }
    }

    #[track_caller]
    fn check(rows: &[&str], size: u64, expected: &[u64]) {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let snapshots: Vec<Snapshot> =
            rows.iter().zip(1..).map(|(text, id)| snapshot(id, text, now)).collect();
        let retention = Retention {
            per_target: 3,
            max_age: Duration::from_secs(24 * HOUR),
            max_size: 100,
            spare_persons: false,
        };
        let ids: Vec<u64> = expired(&snapshots, &retention, size, now).iter().map(|gone| gone.id.0).collect();
        assert_eq!(ids, expected);
    }

    /// The same in a safe in which something was saved every hour of the last two days.
    #[track_caller]
    fn check_in_use(rows: &[&str], expected: &[u64]) {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let hours = (0..48).map(|hour| snapshot(1000 + hour, &format!("{}h /other{hour}", 47 - hour), now));
        let snapshots: Vec<Snapshot> =
            rows.iter().zip(1..).map(|(text, id)| snapshot(id, text, now)).chain(hours).collect();
        let retention = Retention {
            per_target: 3,
            max_age: Duration::from_secs(24 * HOUR),
            max_size: 100,
            spare_persons: false,
        };
        let gone = expired(&snapshots, &retention, 0, now);
        let ids: Vec<u64> = gone.iter().map(|gone| gone.id.0).filter(|id| *id < 1000).collect();
        assert_eq!(ids, expected);
    }

    #[test]
    fn a_clock_that_jumps_ahead_for_a_moment_makes_nothing_old() {
        // As if all but the last were taken a minute ago.
        for jump in ["24h", "25h", "300h", "70000h"] {
            let rows: Vec<String> = ["/a", "/b", "/c hand"].map(|what| format!("{jump} {what}")).into();
            let mut rows: Vec<&str> = rows.iter().map(String::as_str).collect();
            check(&rows, 0, &[]);
            rows.push("0m /d");
            check(&rows, 0, &[]);
        }
    }

    #[test]
    fn the_newest_three_of_each_target_stay() {
        check(&[], 0, &[]);
        check(&["5m /a", "4m /a", "3m /a"], 0, &[]);
        check(&["6m /a", "5m /b", "4m /a", "3m /a", "2m /a", "1m /b"], 0, &[1]);
        check(&["5m /a", "4m /a", "3m /a", "2m /a", "1m /a"], 0, &[1, 2]);
    }

    #[test]
    fn what_agents_ask_for_pushes_out_nothing_that_a_person_took() {
        check(&["9m /a hand", "5m /a agent", "4m /a agent", "3m /a agent", "2m /a agent"], 0, &[2]);
        check(&["9m /a", "8m /a agent", "7m /a agent", "6m /a agent"], 0, &[]);
        // By size they go last.
        check(&["9m /a hand 90", "5m /b agent 50", "4m /c 50", "3m /d agent 50"], 200, &[2, 3]);
        check(&["9m /a hand 90", "5m /b agent 50", "3m /d agent 80"], 220, &[1, 2]);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let rows = ["9m /a hand 90", "5m /b agent 50", "3m /d agent 80"];
        let all: Vec<Snapshot> = rows.iter().zip(1..).map(|(text, id)| snapshot(id, text, now)).collect();
        let max_age = Duration::from_secs(24 * HOUR);
        let retention = Retention { per_target: 3, max_age, max_size: 100, spare_persons: true };
        let gone: Vec<u64> = expired(&all, &retention, 220, now).iter().map(|gone| gone.id.0).collect();
        assert_eq!(gone, [2]);
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
    fn what_a_person_took_goes_by_its_age_and_size_alone() {
        check(&["6m /a hand", "5m /a hand", "4m /a hand", "3m /a hand", "2m /a hand"], 0, &[]);
        check_in_use(&["25h /a hand", "5m /a hand"], &[1]);
        check(&["5m /a 60 hand", "4m /a 60 hand"], 120, &[1]);
        // It takes no place from what protects calls, nor the other way round.
        check(&["9m /a", "8m /a", "7m /a", "4m /a hand", "3m /a hand", "2m /a hand"], 0, &[]);
        check(&["9m /a hand", "8m /a", "7m /a", "6m /a", "5m /a"], 0, &[2]);
    }

    #[test]
    fn each_that_goes_says_why() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let rows = [
            "40h /a 1",
            "30h /w pinned",
            "24h /w pinned",
            "18h /w pinned",
            "12h /w pinned",
            "6h /w pinned",
            "9m /a 90",
            "8m /a 1",
            "7m /a 90",
            "6m /a 1",
            "5m /b 1",
        ];
        let snapshots: Vec<Snapshot> =
            rows.iter().zip(1..).map(|(text, id)| snapshot(id, text, now)).collect();
        let retention = Retention {
            per_target: 3,
            max_age: Duration::from_secs(24 * HOUR),
            max_size: 50,
            spare_persons: false,
        };
        let gone = expired(&snapshots, &retention, 184, now);
        let causes: Vec<(u64, Cause)> = gone.iter().map(|gone| (gone.id.0, gone.cause)).collect();
        assert_eq!(causes, [(1, Cause::Age), (7, Cause::Count), (8, Cause::Size), (9, Cause::Size)]);
    }

    #[test]
    fn what_is_older_than_a_day_goes() {
        check_in_use(&["25h /a", "24h /a", "1h /b"], &[1]);
    }

    #[test]
    fn pinned_ones_stay_and_count() {
        check_in_use(&["99h /a pinned", "1m /a"], &[]);
        check(&["5m /a", "4m /a pinned", "3m /a pinned", "2m /a"], 0, &[1]);
        check(&["5m /a pinned", "4m /a", "3m /a", "2m /a"], 0, &[]);
    }

    #[test]
    fn what_protects_a_running_call_stays_for_an_hour() {
        check(&["59m /a open", "4m /a", "3m /a", "2m /a"], 0, &[]);
        check(&["60m /a open", "4m /a", "3m /a", "2m /a"], 0, &[1]);
        check(&["59m /a", "4m /a", "3m /a", "2m /a"], 0, &[1]);
        check(&["59m /a open hand", "9m /a open restore", "4m /a", "3m /a", "2m /a"], 0, &[]);
    }

    #[test]
    fn over_budget_the_oldest_go_until_the_rest_fits() {
        check(&["4m /a 50", "3m /b 40", "2m /c 30"], 100, &[]);
        check(&["4m /a 50", "3m /b 40", "2m /c 30"], 120, &[1]);
        check(&["4m /a 50 pinned", "3m /b 40", "2m /c 30"], 120, &[2]);
        check(&["4m /a 50 open", "3m /b 40", "2m /c 30"], 120, &[2]);
        check(&["30h /a 50", "3m /b 40", "2m /c 30"], 120, &[1]);
        check(&["30h /a 50", "3m /b 40", "2m /c 30"], 151, &[1, 2]);
    }

    #[test]
    fn the_newest_is_never_removed_for_its_size() {
        check(&["4m /a 5", "3m /b 900"], 905, &[1]);
    }
}
