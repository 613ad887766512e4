//! What it costs to reach an MCP server through `unstuck mcp`, with all that is recorded: beside the direct connection, and beside
//! FastMCP, the public proxy that stands between standard input and a server's in the same way.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::contest::{Ratio, at, quantile, take_turns};
use super::{Options, Section, load, machine, write_page};
use crate::e2e::programs::{Cache, NODE, Wheels};
use crate::mcp::{EVERYTHING, LONGEST_ANSWER, Session, scripted_server};
use crate::world::World;
use crate::{Fault, project};

/// At most so many microseconds on top of a direct call, at p50.
const AIM_ADDED: f64 = 100.0;
/// At least this part of the direct connection's calls per second.
const AIM_PART: f64 = 0.5;
/// At least so many times the public proxy's calls per second.
const AIM_PUBLIC: f64 = 10.0;

/// So many calls are under way at once.
const IN_FLIGHT: [usize; 3] = [1, 16, 256];

/// So many calls in a row are more than may wait to be written: from then on each waits for the record.
const LASTING: usize = 20_000;
/// With so many of them under way at once.
const LASTING_AT_ONCE: usize = 256;

/// The public proxy. `mcp-proxy`, of npm as of PyPI, has HTTP on one of its sides and would need a second hop.
const FASTMCP: Wheels = Wheels { name: "fastmcp", wheels: &["fastmcp==4.1.2"] };

/// FastMCP as its documentation puts it in front of a server.
const FASTMCP_PROXY: &str = "\
import sys
from fastmcp.server import create_proxy
from fastmcp.client.transports import StdioTransport
create_proxy(StdioTransport(command=sys.argv[1], args=sys.argv[2:]), name='proxy').run(transport='stdio', show_banner=False)
";

/// What stands between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    Unstuck,
    Public,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Direct => "direct",
            Way::Unstuck => "`unstuck mcp`, recording",
            Way::Public => "FastMCP",
        }
    }
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Server {
    /// Our own, which does nothing else.
    Scripted,
    /// The reference server in Node.
    Everything,
}

impl Server {
    /// The one argument of its `echo`.
    fn argument(self) -> &'static str {
        match self {
            Server::Scripted => "text",
            Server::Everything => "message",
        }
    }

    /// What the record calls it.
    fn name(self) -> &'static str {
        match self {
            Server::Scripted => "scripted",
            Server::Everything => "everything",
        }
    }

    fn ways(self) -> &'static [Way] {
        match self {
            Server::Scripted => &[Way::Direct, Way::Unstuck, Way::Public],
            Server::Everything => &[Way::Direct, Way::Unstuck],
        }
    }
}

struct Stage {
    world: World,
    cache: Cache,
    scripted: PathBuf,
    proxy: PathBuf,
}

/// A connection, and how many calls went over it.
struct Connection {
    session: Session,
    server: Server,
    calls: u64,
    /// So many calls are one measurement.
    batch: usize,
}

/// What came out for one way to one server.
struct Figures {
    way: Way,
    /// Of all calls one at a time: for each round.
    p50: Vec<Duration>,
    p95: Vec<Duration>,
    /// How long one batch took, for each number in flight and each round.
    batches: Vec<Vec<Duration>>,
    batch: usize,
    /// How long one of very many calls took, for each round.
    lasting: Vec<Duration>,
    starts: Vec<Duration>,
    peak: Option<f64>,
}

/// `cargo xtask bench mcp`.
pub fn bench(options: &Options) -> Result<(), Fault> {
    let binary = options.binary.clone().map_or_else(project::unstuck, Ok)?;
    let cache = Cache::find()?;
    cache.fetch(&[NODE, EVERYTHING])?;
    cache.fetch_wheels(&[FASTMCP])?;
    let world = World::new(&binary.canonicalize()?)?;
    let proxy = world.aside("proxy.py");
    fs::write(&proxy, FASTMCP_PROXY)?;
    let stage = Stage { world, cache, scripted: scripted_server()?, proxy };
    let mut report = machine();
    let rounds = if options.quick { 5 } else { 30 };
    report += &stage.table(Server::Scripted, rounds, options.quick)?;
    report += &stage.table(Server::Everything, rounds.min(15), options.quick)?;
    report += &format!("At the end: {}.\n", load());
    println!("{report}");
    match options.write {
        true => write_page(&[Section { mark: "mcp", report }]),
        false => Ok(()),
    }
}

impl Stage {
    fn command(&self, server: Server, way: Way) -> Command {
        let words: Vec<PathBuf> = match server {
            Server::Scripted => vec![self.scripted.clone()],
            Server::Everything => {
                vec![self.cache.node().join("node"), self.cache.script(EVERYTHING, "dist/index.js")]
            }
        };
        let mut command = match way {
            Way::Direct => Command::new(&words[0]),
            Way::Unstuck => self.world.command::<&str>(&[], &["mcp", "--name", server.name(), "--"]),
            Way::Public => Command::new("python3"),
        };
        self.world.surround(&mut command);
        match way {
            Way::Direct => command.args(&words[1..]),
            Way::Unstuck => command.args(&words),
            Way::Public => {
                command.env("PYTHONPATH", self.cache.wheels(FASTMCP)).arg(&self.proxy).args(&words)
            }
        };
        command.stderr(Stdio::null());
        command
    }

    fn connect(&self, server: Server, way: Way, quick: bool) -> Result<Connection, Fault> {
        let mut session = Session::start(self.command(server, way))?;
        session.greet("2025-06-18", &json!({}))?;
        session.ask(1, "tools/list", &json!({}))?;
        let batch = match (way, server) {
            (Way::Public, _) => 100,
            (Way::Direct | Way::Unstuck, Server::Everything) => 500,
            (Way::Direct | Way::Unstuck, Server::Scripted) => 2000,
        };
        Ok(Connection { session, server, calls: 1, batch: if quick { batch / 2 } else { batch } })
    }

    fn table(&self, server: Server, rounds: usize, quick: bool) -> Result<String, Fault> {
        let ways = server.ways();
        let connect = |way: &Way| self.connect(server, *way, quick).map(RefCell::new);
        let all = ways.iter().map(connect).collect::<Result<Vec<_>, _>>()?;
        let single = take_turns(&all, rounds, |one| one.borrow_mut().one_at_a_time())?;
        let mut batches: Vec<Vec<Vec<Duration>>> = ways.iter().map(|_| Vec::new()).collect();
        for at_once in IN_FLIGHT {
            let times = take_turns(&all, rounds, |one| one.borrow_mut().in_flight(at_once))?;
            times.into_iter().zip(&mut batches).for_each(|(mine, all)| all.push(mine));
        }
        let lasting = take_turns(&all, rounds.min(5), |one| one.borrow_mut().lasting())?;
        let peaks: Vec<Option<f64>> = all.iter().map(|one| one.borrow().session.peak_memory()).collect();
        let sizes: Vec<usize> = all.iter().map(|one| one.borrow().batch).collect();
        let through = all.iter().zip(ways).filter(|(_, way)| **way == Way::Unstuck);
        let calls: u64 = through.map(|(one, _)| one.borrow().calls - 1).sum();
        drop(all);
        let starts = take_turns(ways, rounds.min(10), |way| {
            let start = Instant::now();
            let mut session = Session::start(self.command(server, *way))?;
            session.greet("2025-06-18", &json!({}))?;
            Ok(start.elapsed())
        })?;
        let mut figures = Vec::new();
        for (place, way) in ways.iter().enumerate() {
            figures.push(Figures {
                way: *way,
                p50: single[place].iter().map(|(p50, _)| *p50).collect(),
                p95: single[place].iter().map(|(_, p95)| *p95).collect(),
                batches: std::mem::take(&mut batches[place]),
                batch: sizes[place],
                lasting: lasting[place].clone(),
                starts: starts[place].clone(),
                peak: peaks[place],
            });
        }
        let recorded = self.recorded(server)?;
        write(server, &figures, rounds, calls, recorded)
    }

    /// How many calls of a server stand in the record.
    fn recorded(&self, server: Server) -> Result<u64, Fault> {
        let told = self.world.run(&["stats", "--by", "server", "--json"])?;
        let lines = project::json_lines(&told.stdout);
        let line = lines.iter().find(|line| line["key"] == server.name());
        Ok(line.and_then(|line| line["calls"].as_u64()).unwrap_or(0))
    }
}

impl Connection {
    fn call(&mut self) -> Result<u64, Fault> {
        self.calls += 1;
        let (id, argument) = (self.calls, self.server.argument());
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":\
             {{\"{argument}\":\"tide {id}\"}}}}}}\n"
        );
        self.session.send_bytes(line.as_bytes())?;
        Ok(id)
    }

    /// Waits for the next answer, which must be one that went well; returns its id.
    fn answer(&mut self) -> Result<u64, Fault> {
        loop {
            let line = self.session.line(LONGEST_ANSWER)?.ok_or("no answer came")?;
            let text = std::str::from_utf8(line)?;
            if text.contains("\"method\":") {
                continue;
            }
            // Reading all of it would cost as much as the call.
            let id = text.split_once("\"id\":").map(|(_, rest)| rest.trim_start());
            let digits =
                id.map(|rest| rest.split(|sign: char| !sign.is_ascii_digit()).next().unwrap_or_default());
            let id: u64 =
                digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| format!("what is {text}?"))?;
            if !text.contains(&format!("tide {id}\"")) {
                return Err(format!("this is no answer to call {id}: {text}").into());
            }
            return Ok(id);
        }
    }

    /// A batch of calls, each after the answer to the one before; returns p50 and p95.
    fn one_at_a_time(&mut self) -> Result<(Duration, Duration), Fault> {
        let mut times = Vec::with_capacity(self.batch);
        for _ in 0..self.batch {
            let start = Instant::now();
            let id = self.call()?;
            if self.answer()? != id {
                return Err("an answer came for another call".into());
            }
            times.push(start.elapsed());
        }
        Ok((quantile(&times, 0.5), quantile(&times, 0.95)))
    }

    /// A batch of calls with so many under way at once; returns how long all of it took.
    fn in_flight(&mut self, at_once: usize) -> Result<Duration, Fault> {
        self.many(self.batch, at_once)
    }

    /// Very many calls, or as many as somebody slow can be asked; returns how long one of them took.
    fn lasting(&mut self) -> Result<Duration, Fault> {
        let calls = if self.batch < 200 { self.batch } else { LASTING };
        Ok(self.many(calls, LASTING_AT_ONCE)?.div_f64(calls as f64))
    }

    /// So many calls with so many under way at once; returns how long all of it took.
    fn many(&mut self, calls: usize, at_once: usize) -> Result<Duration, Fault> {
        let start = Instant::now();
        let mut sent = 0;
        while sent < at_once.min(calls) {
            self.call()?;
            sent += 1;
        }
        for _ in 0..calls {
            self.answer()?;
            if sent < calls {
                self.call()?;
                sent += 1;
            }
        }
        Ok(start.elapsed())
    }
}

impl Figures {
    fn micros(times: &[Duration]) -> f64 {
        quantile(times, 0.5).as_secs_f64() * 1e6
    }

    /// Calls in a second with the so-manieth number in flight, in the median round.
    fn pace(&self, place: usize) -> f64 {
        self.batch as f64 / quantile(&self.batches[place], 0.5).as_secs_f64()
    }

    /// Of another's calls in a second, round by round.
    fn part_of(&self, other: &Figures, place: usize) -> Ratio {
        let per_call = |figures: &Figures| -> Vec<Duration> {
            figures.batches[place].iter().map(|time| time.div_f64(figures.batch as f64)).collect()
        };
        Ratio::of(&per_call(other), &per_call(self))
    }

    /// What it adds to another at p50, in microseconds, round by round.
    fn added(&self, other: &Figures) -> f64 {
        let pairs = self.p50.iter().zip(&other.p50);
        let mut added: Vec<f64> =
            pairs.map(|(own, other)| (own.as_secs_f64() - other.as_secs_f64()) * 1e6).collect();
        added.sort_by(f64::total_cmp);
        at(&added, 0.5)
    }
}

fn write(server: Server, all: &[Figures], rounds: usize, calls: u64, recorded: u64) -> Result<String, Fault> {
    let name = match server {
        Server::Scripted => "A server that does nothing else",
        Server::Everything => "The reference server `everything`, in Node",
    };
    let direct = &all[0];
    let ours = all.iter().find(|one| one.way == Way::Unstuck).ok_or("it was not measured")?;
    let mut text = format!("\n### {name}\n\n| way to the server | p50 of a call | p95 | added at p50 |");
    let heads: String =
        IN_FLIGHT.iter().map(|count| format!(" calls per second, {count} in flight |")).collect();
    writeln!(
        text,
        "{heads} {LASTING} in a row | to the `initialize` answer | peak memory of what stands between |\n|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for one in all {
        let added = match one.way {
            Way::Direct => "–".to_owned(),
            Way::Unstuck | Way::Public => format!("{:.0} µs", one.added(direct)),
        };
        write!(
            text,
            "| {} | {:.0} µs | {:.0} µs | {added} |",
            one.way.name(),
            Figures::micros(&one.p50),
            Figures::micros(&one.p95)
        )?;
        for place in 0..IN_FLIGHT.len() {
            let part = match one.way {
                Way::Direct => String::new(),
                Way::Unstuck | Way::Public => format!(", × {}", one.part_of(direct, place)),
            };
            write!(text, " {:.0}{part} |", one.pace(place))?;
        }
        let pace = 1.0 / quantile(&one.lasting, 0.5).as_secs_f64();
        match one.way {
            Way::Direct => write!(text, " {pace:.0} |")?,
            Way::Unstuck => write!(text, " {pace:.0}, × {} |", Ratio::of(&direct.lasting, &one.lasting))?,
            Way::Public => write!(text, " – |")?,
        }
        let peak = match (one.way, one.peak) {
            (Way::Direct, _) => "–".to_owned(),
            (Way::Unstuck | Way::Public, Some(peak)) => format!("{peak:.1} MB"),
            (Way::Unstuck | Way::Public, None) => "unknown".to_owned(),
        };
        writeln!(text, " {:.1} ms | {peak} |", quantile(&one.starts, 0.5).as_secs_f64() * 1e3)?;
    }
    let added = ours.added(direct);
    write!(
        text,
        "\n{rounds} rounds in turn; medians (middle eight tenths). {calls} calls went through `unstuck mcp`; the record \
         holds {recorded}. Aims: at most {AIM_ADDED} µs added at p50: {added:.0} ({}); at least {AIM_PART} of the direct calls \
         per second:",
        met(added <= AIM_ADDED)
    )?;
    for (place, count) in IN_FLIGHT.iter().enumerate() {
        let part = ours.part_of(direct, place).median;
        write!(
            text,
            " {part:.2} with {count} in flight ({}){}",
            met(part >= AIM_PART),
            if place == 2 { "" } else { "," }
        )?;
    }
    let part = Ratio::of(&direct.lasting, &ours.lasting).median;
    write!(text, ", {part:.2} with {LASTING} in a row ({})", met(part >= AIM_PART))?;
    if let Some(public) = all.iter().find(|one| one.way == Way::Public) {
        let times = ours.part_of(public, 1).median;
        write!(
            text,
            "; at least {AIM_PUBLIC} times the public proxy's: {times:.0} times with 16 in flight ({})",
            met(times >= AIM_PUBLIC)
        )?;
    }
    writeln!(text, ".")?;
    Ok(text)
}

fn met(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}
