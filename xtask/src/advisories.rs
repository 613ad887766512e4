//! Known weaknesses of dependencies, where this machine can tell without a network.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::{Fault, project};

/// Whether the question could be asked here.
pub enum Advice {
    /// It was asked, and nothing is known.
    Clean,
    /// It could not be asked; why not.
    Skipped(&'static str),
}

/// Asks `cargo deny` or `cargo audit`, offline, where one is installed and its database is here.
pub fn check() -> Result<Advice, Fault> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let has = |folder: &str| home.as_deref().is_some_and(|home: &Path| home.join(folder).is_dir());
    let deny = installed("deny");
    let audit = installed("audit");
    let args: &[&str] = match (deny && has("advisory-dbs"), audit && has("advisory-db")) {
        (true, _) => &["deny", "--offline", "check", "advisories"],
        (false, true) => &["audit", "--no-fetch"],
        (false, false) if deny || audit => {
            return Ok(Advice::Skipped("no advisory database on this machine"));
        }
        (false, false) => return Ok(Advice::Skipped("neither cargo-deny nor cargo-audit is installed")),
    };
    match project::cargo(args).status()?.success() {
        true => Ok(Advice::Clean),
        false => Err(format!("cargo {} found something", args.join(" ")).into()),
    }
}

fn installed(tool: &str) -> bool {
    let mut command = project::cargo(&[tool, "--version"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
