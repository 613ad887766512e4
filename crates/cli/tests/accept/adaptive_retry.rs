//! Failures that pass by themselves, and waits that fit them.

use crate::world::World;

#[test]
fn r1_04_only_what_passes_by_itself_is_sent_again() {
    let world = World::empty();
    let said = world.run(&["run", "--retries", "5", "--idempotent", "--", "nope-tool"], "");
    assert_eq!(said.exit, 127, "{said}");
    assert!(!said.stderr().contains("will retry"), "{said}");
}
