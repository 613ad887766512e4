//! Turns the rule tables into statics before the crate is compiled.
#![allow(clippy::print_stdout, reason = "a build script talks to cargo through its output")]

use std::error::Error;
use std::path::PathBuf;

#[path = "build/retry.rs"]
mod retry;

fn main() -> Result<(), Box<dyn Error>> {
    let rules = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("../../rules");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", rules.display());
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/retry/file.rs");
    retry::compile(&rules, &out)?;
    Ok(())
}
