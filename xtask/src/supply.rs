//! What we depend on: licences, sources, bans and known weaknesses, as cargo-deny sees them.
//!
//! cargo-deny is built once, from the registry, into `target/tools`. It takes minutes, so `check` asks it only where it is
//! built already.

use std::path::PathBuf;
use std::process::Stdio;

use crate::{Fault, project};

/// The version that is installed.
const DENY: &str = "0.20.2";

/// `cargo xtask supply`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    if let Some(arg) = args.next()? {
        return Err(arg.unexpected().into());
    }
    let tools = tools()?;
    if !is_installed()? {
        println!("── building cargo-deny {DENY} into {}: once, some minutes", tools.display());
        // Optimised it would take twice as long to build and save a second of each run.
        let mut install = project::cargo(&["install", "--locked", "--debug", "--version", DENY, "--root"]);
        let built = install.arg(&tools).arg("cargo-deny").env_remove("RUSTFLAGS").status()?;
        if !built.success() {
            return Err("cargo-deny could not be built from the registry".into());
        }
    }
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

/// Known weaknesses of dependencies: the database is fetched, or the one that was fetched before is used.
pub fn advice() -> Result<Advice, Fault> {
    if !is_installed()? {
        return Ok(Advice::Gap("cargo-deny is not built here; `cargo xtask supply` builds it"));
    }
    let fetched = deny(&["fetch", "db"])?.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success();
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let is_here = home.is_some_and(|home| home.join("advisory-dbs").is_dir());
    let offline: &[&str] = match (fetched, is_here) {
        (true, _) => &[],
        (false, true) => &["--offline"],
        (false, false) => return Ok(Advice::Gap("the database of advisories cannot be reached from here")),
    };
    match deny(&[offline, &["check", "advisories"]].concat())?.status()?.success() {
        true => Ok(Advice::Clean),
        false => Err("cargo-deny knows of a weakness".into()),
    }
}

fn tools() -> Result<PathBuf, Fault> {
    Ok(project::target()?.join("tools"))
}

fn program() -> Result<PathBuf, Fault> {
    Ok(tools()?.join("bin/cargo-deny"))
}

fn is_installed() -> Result<bool, Fault> {
    let version = std::process::Command::new(program()?).arg("--version").output();
    Ok(version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(DENY)))
}

fn deny(args: &[&str]) -> Result<std::process::Command, Fault> {
    let mut command = std::process::Command::new(program()?);
    command.current_dir(project::root()).args(args);
    Ok(command)
}
