//! The official conformance suite, with and without us.
//!
//! It tests servers behind a URL, and we have none: a bridge stands in front (`bridge.rs`), and the server behind it is our scripted
//! one, which offers what the suite asks for; the reference servers do not. So what the suite finds wrong with the bridge it finds
//! both times. Its scenarios for clients start a client with the address of a server of their own; a proxy does not act by itself,
//! so a client on pipes stands before `unstuck mcp --url` (`caller.rs`). Those about OAuth are about what a proxy leaves to others.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::bridge::Bridge;
use super::{CONFORMANCE, Ending, Tools};
use crate::Fault;
use crate::world::World;

/// How the suite meets us.
pub struct Suite {
    /// Its name in the table.
    pub name: &'static str,
    /// What it states.
    pub states: &'static str,
    way: Way,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `unstuck mcp -- CMD`.
    Pipes,
    /// `unstuck mcp --url URL`.
    Url,
    /// The same, and the suite is the server.
    Client,
}

/// The scenarios for clients that a proxy takes part in.
const FOR_CLIENTS: [&str; 4] =
    ["initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry"];

/// All of them.
pub const SUITES: [Suite; 3] = [
    Suite {
        name: "conformance",
        states: "the official suite finds the same in `unstuck mcp --`",
        way: Way::Pipes,
    },
    Suite { name: "conformance-url", states: "and in `unstuck mcp --url`", way: Way::Url },
    Suite {
        name: "client",
        states: "a client behind `unstuck mcp --url` does what the suite wants of clients",
        way: Way::Client,
    },
];

/// So many scenarios have to pass without us, or the comparison means nothing.
const LEAST: usize = 25;

/// The suite takes no longer where all is well.
const LONGEST_SUITE: Duration = Duration::from_secs(60);

/// Runs the suite both ways.
pub fn with_and_without(suite: &Suite, tools: &Tools) -> Result<Ending, Fault> {
    let world = Arc::new(World::new(&tools.unstuck)?);
    if suite.way == Way::Client {
        return for_clients(tools, &world);
    }
    let direct = {
        let scripted = tools.scripted.clone();
        Bridge::open(Box::new(move || server(&scripted)))?
    };
    let before = scenarios(tools, &world, &direct.url())?;
    let (through, behind) = match suite.way {
        Way::Pipes => {
            let (world, scripted) = (Arc::clone(&world), tools.scripted.clone());
            let start = move || {
                let mut command = world.command::<&str>(&[], &["mcp", "--"]);
                command.arg(&scripted).arg("--conformance");
                command
            };
            (Bridge::open(Box::new(start))?, None)
        }
        Way::Url => {
            let (world, url) = (Arc::clone(&world), direct.url());
            let start = move || world.command::<&str>(&[], &["mcp", "--url", &url]);
            (Bridge::open(Box::new(start))?, Some(direct))
        }
        Way::Client => return Err("the suite is the server itself".into()),
    };
    let after = scenarios(tools, &world, &through.url())?;
    drop((through, behind));
    let passed = before.values().filter(|result| result.passed).count();
    if passed < LEAST {
        let failed: Vec<&String> =
            before.iter().filter(|(_, result)| !result.passed).map(|(name, _)| name).collect();
        return Ok(Ending::Differs(vec![format!(
            "only {passed} scenarios pass even without us: {failed:?}"
        )]));
    }
    let changed = before
        .iter()
        .filter(|(name, result)| after.get(*name).is_none_or(|after| after.passed != result.passed));
    let told: Vec<String> = changed
        .map(|(name, result)| {
            let after = after.get(name).map_or("it was not played", |after| after.told.as_str());
            format!(
                "{name}: it {} without us; through us: {after}",
                if result.passed { "passes" } else { "fails" }
            )
        })
        .collect();
    match told.is_empty() {
        true => Ok(Ending::Same(format!("{passed} of {} scenarios pass both times", before.len()))),
        false => Ok(Ending::Differs(told)),
    }
}

/// The suite is the server, and looks at what comes.
fn for_clients(tools: &Tools, world: &World) -> Result<Ending, Fault> {
    let words = tools.node(CONFORMANCE, "dist/index.js");
    let mut failed = Vec::new();
    for scenario in FOR_CLIENTS {
        let mut command = Command::new(&words[0]);
        world.surround(&mut command);
        let client =
            format!("{} mcp --call-all {}", std::env::current_exe()?.display(), tools.unstuck.display());
        command.arg(&words[1]).args(["client", "--scenario", scenario, "--command", &client]);
        let output = command.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            let last: Vec<&str> = said.lines().rev().take(12).collect();
            failed.push(format!("{scenario}: {}", last.into_iter().rev().collect::<Vec<_>>().join(" | ")));
        }
    }
    match failed.is_empty() {
        true => Ok(Ending::Same(format!("{} scenarios for clients pass", FOR_CLIENTS.len()))),
        false => Ok(Ending::Differs(failed)),
    }
}

fn server(scripted: &Path) -> Command {
    let mut command = Command::new(scripted);
    command.arg("--conformance");
    command
}

/// What the suite says of one scenario.
struct Found {
    passed: bool,
    told: String,
}

/// Runs all scenarios for servers on this URL; returns what was found, by name.
fn scenarios(tools: &Tools, world: &World, url: &str) -> Result<BTreeMap<String, Found>, Fault> {
    let words = tools.node(CONFORMANCE, "dist/index.js");
    let mut command = Command::new(&words[0]);
    world.surround(&mut command);
    command.arg(&words[1]).args(["server", "--suite", "all", "--url", url]);
    // It would wait for ever for a server that does not answer.
    let (out, begin) = (world.aside("suite"), Instant::now());
    let mut child = command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(Stdio::null()).spawn()?;
    while child.try_wait()?.is_none() {
        if begin.elapsed() > LONGEST_SUITE {
            child.kill()?;
            child.wait()?;
            let said = fs::read_to_string(&out)?;
            return Err(format!("the suite does not end; it said last: {:?}", said.lines().last()).into());
        }
        thread::sleep(Duration::from_millis(20));
    }
    let said = fs::read_to_string(&out)?;
    let found = read(&said);
    match found.is_empty() {
        true => Err(format!("the suite says nothing: {said}").into()),
        false => Ok(found),
    }
}

/// The summary at the end: a mark, a name and counts in each line.
fn read(said: &str) -> BTreeMap<String, Found> {
    let mut all = BTreeMap::new();
    for line in said.lines() {
        let passed = line.starts_with('✓');
        if !passed && !line.starts_with('✗') {
            continue;
        }
        let Some((name, counts)) = line[line.chars().next().map_or(0, char::len_utf8)..].split_once(": ")
        else {
            continue;
        };
        let found = Found { passed, told: counts.trim().to_owned() };
        all.insert(name.trim().to_owned(), found);
    }
    all
}
