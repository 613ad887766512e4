//! `unstuck gc`: the store comes back into its bounds, and nothing else changes.

use crate::kept::failure;
use crate::world::World;

#[test]
fn the_log_is_folded_the_size_told_and_nothing_young_goes() {
    let world = World::with_failures();
    let before = world.run(&["export", "--jsonl"], "");
    let dry = world.run(&["gc", "--dry-run", "--json"], "").json();
    assert_eq!((&dry["removed"]["calls"], &dry["bytes_before"]), (&0.into(), &dry["bytes_after"]));
    let said = world.run(&["gc", "--json"], "").json();
    assert!(said["bytes_after"].as_u64() < said["bytes_before"].as_u64(), "{said}");
    assert_eq!(said["sound"], true);
    let log = world.path(".local/state/unstuck/timeline.db-wal");
    assert_eq!(std::fs::metadata(log).map_or(0, |found| found.len()), 0);
    assert_eq!(world.run(&["export", "--jsonl"], ""), before);
    world.record(&failure("one", "c9", "npm ci", "npm error code ENOENT"));
}

#[test]
fn it_speaks_to_people() {
    let world = World::with_failures();
    let said = world.run(&["gc"], "");
    assert!(said.stdout().starts_with("removed: nothing\nsize: "), "{said}");
    assert!(said.stdout().ends_with("; the database is sound\n") && said.stderr().is_empty(), "{said}");
    assert!(world.run(&["--lang", "zh", "gc"], "").stdout().starts_with("已删除：无\n"));
    World::empty().run(&["gc"], "").complains(1, &["nothing is recorded in"]);
}

#[test]
fn an_old_copy_goes_and_the_newest_stays() {
    let backup = |at: &str| format!(".local/state/unstuck/backups/timeline-format1-{at}.db");
    let world =
        World::with_failures().with(&backup("1000000000000"), "x").with(&backup("1100000000000"), "x");
    let dry = world.run(&["gc", "--dry-run"], "");
    assert!(dry.stdout().contains("timeline-format1-1000000000000.db"), "{dry}");
    world.run(&["gc"], "");
    let left = [world.path(&backup("1000000000000")).exists(), world.path(&backup("1100000000000")).exists()];
    assert_eq!(left, [false, true]);
}
