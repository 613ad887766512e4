//! The least a Rust program can do: what a cold start is compared with.

fn main() {}
