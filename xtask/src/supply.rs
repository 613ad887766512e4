//! What we depend on: licences, sources, bans and known weaknesses, as cargo-deny sees them.
//!
//! cargo-deny is built once, from the registry, into `target/tools`. It takes minutes, so `check` asks it only where it is
//! built already.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::{Fault, project};

/// The version that is installed.
const DENY: &str = "0.20.2";

/// `cargo xtask supply`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    if let Some(arg) = args.next()? {
        return Err(arg.unexpected().into());
    }
    tool("cargo-deny", DENY)?;
    println!("── licences, bans, sources");
    if !deny(&["check", "bans", "licenses", "sources"])?.status()?.success() {
        return Err("cargo-deny refuses a dependency".into());
    }
    println!("── known weaknesses");
    match advice()? {
        Advice::Clean => println!("no weakness of a dependency is known"),
        Advice::Gap(why) => println!("GAP: known weaknesses were NOT looked up: {why}"),
    }
    Ok(())
}

/// Whether the question could be asked here.
pub enum Advice {
    /// It was asked, and nothing is known.
    Clean,
    /// It could not be asked; why not.
    Gap(&'static str),
}

/// Known weaknesses of dependencies: the database is fetched each time.
pub fn advice() -> Result<Advice, Fault> {
    if !is_installed("cargo-deny", DENY)? {
        return Ok(Advice::Gap("cargo-deny is not built here; `cargo xtask supply` builds it"));
    }
    let fetched = deny(&["fetch", "db"])?.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success();
    // A fetch that failed may leave an empty database behind, which would be taken for a weakness.
    if !fetched {
        return Ok(Advice::Gap("the database of advisories cannot be reached from here"));
    }
    match deny(&["check", "advisories"])?.status()?.success() {
        true => Ok(Advice::Clean),
        false => Err("cargo-deny knows of a weakness".into()),
    }
}

/// A tool of this version, built from the registry where it is not here yet.
pub fn tool(name: &str, version: &str) -> Result<PathBuf, Fault> {
    let tools = tools()?;
    let program = tools.join("bin").join(name);
    if !is_installed(name, version)? {
        println!("── building {name} {version} into {}: once, some minutes", tools.display());
        // Optimised it would take twice as long to build and save a second of each run.
        let mut install = project::cargo(&["install", "--locked", "--debug", "--version", version, "--root"]);
        if !install.arg(&tools).arg(name).env_remove("RUSTFLAGS").status()?.success() {
            return Err(format!("{name} could not be built from the registry").into());
        }
    }
    Ok(program)
}

fn tools() -> Result<PathBuf, Fault> {
    Ok(project::target()?.join("tools"))
}

fn is_installed(name: &str, version: &str) -> Result<bool, Fault> {
    let mut command = Command::new(tools()?.join("bin").join(name));
    if name == "cargo-mutants" {
        command.arg("mutants");
    }
    let output = command.arg("--version").output();
    Ok(output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(version)))
}

fn deny(args: &[&str]) -> Result<Command, Fault> {
    let mut command = Command::new(tools()?.join("bin/cargo-deny"));
    command.current_dir(project::root()).args(args);
    Ok(command)
}
