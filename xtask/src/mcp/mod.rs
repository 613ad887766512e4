//! Servers that are not ours, each with and without `unstuck mcp` in front of it: what goes well must be the same to the byte, what
//! fails must still hold all that the server said.
//!
//! The reference servers come from npm and PyPI, the conformance suite from npm; all of it runs behind the wall that only loopback
//! passes, so `fetch` fetches from here.

mod bridge;
mod caller;
mod compare;
mod conformance;
mod scripts;
mod session;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use lexopt::prelude::*;
pub use session::{LONGEST_ANSWER, Session};

use crate::e2e::isolate::{self, Behind};
use crate::e2e::programs::{Cache, NODE, Package, Wheels};
use crate::world::World;
use crate::{Fault, project};

const VERSION: &str = "2026.8.31";

/// The reference server that has something of everything.
pub const EVERYTHING: Package = server("mcp-everything", "@modelcontextprotocol/server-everything");
const FILESYSTEM: Package = server("mcp-filesystem", "@modelcontextprotocol/server-filesystem");
const MEMORY: Package = server("mcp-memory", "@modelcontextprotocol/server-memory");
const THINKING: Package = server("mcp-thinking", "@modelcontextprotocol/server-sequential-thinking");
const CONFORMANCE: Package =
    Package { name: "mcp-conformance", package: "@modelcontextprotocol/conformance", version: "0.1.16" };

/// The reference servers in Python.
const PYTHON: Wheels = Wheels {
    name: "mcp-python",
    wheels: &["mcp-server-time==2026.10.19", "mcp-server-fetch==2026.10.24", "mcp-server-git==2026.10.19"],
};

const fn server(name: &'static str, package: &'static str) -> Package {
    Package { name, package, version: VERSION }
}

/// What everything here needs.
pub struct Tools {
    cache: Cache,
    unstuck: PathBuf,
    /// The server that does what it is told.
    scripted: PathBuf,
    /// Why there are no servers in Python, if there are none.
    no_python: Option<String>,
}

/// How one of them ended.
enum Ending {
    Same(String),
    Differs(Vec<String>),
    Skipped(String),
}

/// Builds the server that does what it is told.
pub fn scripted_server() -> Result<PathBuf, Fault> {
    let built = project::build(&["--release", "--package", "xtask", "--example", "scripted_server"])?;
    built.into_iter().next().ok_or_else(|| "cargo built no scripted server".into())
}

#[derive(Debug, Default)]
struct Options {
    only: Option<String>,
    binary: Option<PathBuf>,
    scripted: Option<PathBuf>,
    no_python: Option<String>,
    inside: bool,
}

/// `cargo xtask mcp`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut options = Options::default();
    while let Some(arg) = args.next()? {
        match arg {
            Long("only") => options.only = Some(args.value()?.string()?),
            Long("binary") => options.binary = Some(args.value()?.into()),
            Long("scripted") => options.scripted = Some(args.value()?.into()),
            Long("no-python") => options.no_python = Some(args.value()?.string()?),
            Long("inside") => options.inside = true,
            Long("call-all") => {
                let (unstuck, url) = (PathBuf::from(args.value()?), args.value()?.string()?);
                return caller::call_all(&unstuck, &url);
            }
            Long("list") => {
                list();
                return Ok(());
            }
            other => return Err(other.unexpected().into()),
        }
    }
    match options.inside {
        true => perform(&options).map(drop),
        false => all(&options).map(drop),
    }
}

fn list() {
    for play in &scripts::PLAYS {
        println!("{:<16}{}", play.name, play.states);
        play.masks
            .iter()
            .for_each(|mask| println!("{:<16}  not compared after {:?}: {}", "", mask.from, mask.why));
    }
    conformance::SUITES.iter().for_each(|suite| println!("{:<16}{}", suite.name, suite.states));
}

/// The whole of it, for `cargo xtask check`; returns the closing line.
pub fn check() -> Result<String, Fault> {
    all(&Options::default())
}

/// Downloads and builds while there is a network, then goes behind the wall.
fn all(options: &Options) -> Result<String, Fault> {
    let cache = Cache::find()?;
    cache.fetch(&[NODE, EVERYTHING, FILESYSTEM, MEMORY, THINKING, CONFORMANCE])?;
    // A machine without Python, or without pip, still has the other servers.
    let no_python = cache.fetch_wheels(&[PYTHON]).err().map(|fault| fault.to_string());
    let binary = options.binary.clone().map_or_else(project::unstuck, Ok)?.canonicalize()?;
    let scripted = scripted_server()?;
    let text = |path: &Path| path.to_str().map(str::to_owned).ok_or("a path is not UTF-8");
    let mut words = vec!["mcp".to_owned(), "--inside".to_owned()];
    words.extend(["--binary".to_owned(), text(&binary)?, "--scripted".to_owned(), text(&scripted)?]);
    for (name, value) in [("--only", &options.only), ("--no-python", &no_python)] {
        words.extend(value.iter().flat_map(|value| [name.to_owned(), value.clone()]));
    }
    match isolate::again(&words.iter().map(String::as_str).collect::<Vec<_>>())? {
        Behind::Ended { well: true, last_line } => Ok(last_line),
        Behind::Ended { well: false, last_line } => Err(format!("MCP servers: {last_line}").into()),
        Behind::NoWall => {
            let only = options.only.clone();
            perform(&Options {
                only,
                binary: Some(binary),
                scripted: Some(scripted),
                no_python,
                inside: true,
            })
        }
    }
}

fn perform(options: &Options) -> Result<String, Fault> {
    let tools = Tools {
        cache: Cache::find()?,
        unstuck: options.binary.clone().ok_or("which binary?")?,
        scripted: options.scripted.clone().ok_or("which server?")?,
        no_python: options.no_python.clone(),
    };
    let wanted = |name: &str| options.only.as_deref().is_none_or(|only| only == name);
    let start = Instant::now();
    let (mut same, mut differ, mut skipped) = (0, 0, 0);
    let mut tell = |name: &str, begin: Instant, ending: Result<Ending, Fault>| {
        let seconds = begin.elapsed().as_secs_f64();
        match ending.unwrap_or_else(|fault| Ending::Differs(vec![fault.to_string()])) {
            Ending::Same(remark) => {
                same += 1;
                println!("{name:<16}{seconds:>6.1} s  same: {remark}");
            }
            Ending::Skipped(why) => {
                skipped += 1;
                println!("{name:<16}{:>8}  skipped: {why}", "-");
            }
            Ending::Differs(what) => {
                differ += 1;
                println!("{name:<16}{seconds:>6.1} s  DIFFERS");
                what.iter().for_each(|line| println!("    {line}"));
            }
        }
    };
    for play in scripts::PLAYS.iter().filter(|play| wanted(play.name)) {
        let begin = Instant::now();
        tell(play.name, begin, compare::with_and_without(play, &tools));
    }
    for suite in conformance::SUITES.iter().filter(|suite| wanted(suite.name)) {
        let begin = Instant::now();
        tell(suite.name, begin, conformance::with_and_without(suite, &tools));
    }
    let closing = format!("{same} the same with and without, {differ} differ, {skipped} skipped");
    println!("in {:.0} s\n{closing}", start.elapsed().as_secs_f64());
    match differ {
        0 => Ok(closing),
        _ => Err(closing.into()),
    }
}

impl Tools {
    /// A program of Node.
    fn node(&self, package: Package, file: &str) -> Vec<PathBuf> {
        vec![self.cache.node().join("node"), self.cache.script(package, file)]
    }

    /// `unstuck mcp` in front of these words, or nothing.
    fn command(&self, world: &World, is_through: bool, words: &[PathBuf]) -> Command {
        let mut command = match is_through {
            true => world.command::<&str>(&[], &["mcp", "--"]),
            false => Command::new(&words[0]),
        };
        world.surround(&mut command);
        command.args(if is_through { words } else { &words[1..] });
        command.env("PYTHONPATH", self.cache.wheels(PYTHON));
        command
    }
}
