//! Failures of a call that is made again and again.

use crate::claude::{Claude, machine, signs};

#[test]
fn r0_05_five_failures_force_another_way() {
    let world = machine("[ladder]\npreset = \"classic\"\n");
    let claude = Claude::new(&world, "s");
    let turns: Vec<_> = (0..6).map(|_| claude.bash("cargo-nope build")).collect();
    assert!(signs(&turns).ends_with('D'), "{}", signs(&turns));
    turns[5].says(&["5", "cargo-nope: command not found", "Tried so far: `cargo-nope build` ×5"]);
}
