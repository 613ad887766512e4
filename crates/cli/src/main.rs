//! The `unstuck` command.

fn main() {}
