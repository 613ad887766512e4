//! Changes the code that judges and redacts, one place after the other: does a test notice?

use std::process::Command;

use lexopt::prelude::*;

use crate::{Fault, project, supply};

/// The version that is installed.
const VERSION: &str = "27.1.0";
/// By default one change of so many is tried.
const SAMPLE: u32 = 100;

/// `cargo xtask mutants`: `.cargo/mutants.toml` says which files, words on the command line narrow them.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut sample = SAMPLE;
    let mut files = Vec::new();
    while let Some(arg) = args.next()? {
        match arg {
            Long("all") => sample = 1,
            Long("sample") => sample = args.value()?.parse()?,
            Value(file) => files.push(file.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let program = supply::tool("cargo-mutants", VERSION)?;
    let mut command = Command::new(program);
    command.current_dir(project::root()).args(["mutants", "--workspace", "--no-shuffle"]);
    command.args(["--colors=never", "--output"]).env("CARGO_PROFILE_DEV_DEBUG", "0");
    command.arg(project::target()?).args([
        "--shard",
        &format!("0/{}", sample.max(1)),
        "--sharding=round-robin",
    ]);
    command.args(files.iter().flat_map(|file| ["--file", file]));
    match command.status()?.code() {
        Some(0) => Ok(()),
        // 2 says that some changes survived, 3 that a test never ended.
        Some(2 | 3) => Err("some changes were noticed by no test: target/mutants.out/missed.txt".into()),
        code => Err(format!("cargo-mutants ended with {code:?}").into()),
    }
}
