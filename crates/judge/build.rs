//! Turns the rule files into static tables.

#[path = "build/commands.rs"]
mod commands;

fn main() {
    let rules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../rules");
    let out = std::env::var("OUT_DIR").expect("cargo names the folder for generated files");
    println!("cargo::rerun-if-changed={rules}");
    commands::generate(rules.as_ref(), out.as_ref());
}
