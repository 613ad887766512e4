//! What memory costs: hooks with a hundred thousand lessons in the store beside the same hooks with none, a search among them
//! beside `grep` over the same texts, and the reading of transcripts beside programs that only parse them.
//!
//! What a hook answers is checked before its time counts: one that remembers nothing would look fast.

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::contest::{Measured, Ratio, quantile, take_turns};
use super::hook::{Call, Sample, timed};
use super::store::{ms, thousands};
use super::taught::{self, FAILURES, LESSONS};
use super::{MEGABYTE, Options, Section, filled, load, machine, transcripts, write_page};
use crate::world::{World, speak};
use crate::{Fault, project};

/// At most so many times the hook without lessons.
const AIM: f64 = 1.1;

/// A failure that was got over in the world that side lessons.
const KNOWN: &str = "Exit code 2\na.c:1:10: fatal error: openssl/ssl.h: No such file or directory";
/// One that nobody got over.
const UNKNOWN: &str = "Exit code 2\nmake: *** No rule to make target 'everything'.  Stop.";
/// How a lesson begins when it is told.
const TOLD: &str = "Remembered from earlier calls";

/// When a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// Before a call.
    Before,
    /// It went well.
    WentWell,
    /// It failed, and against the cause a lesson is known, where lessons are known at all.
    Remembered,
    /// It failed in a way that nobody got over yet.
    NeverSolved,
}

const MOMENTS: [Moment; 4] = [Moment::Before, Moment::WentWell, Moment::Remembered, Moment::NeverSolved];
/// Those at which nothing need be known.
const UNTAUGHT: [Moment; 3] = [Moment::Before, Moment::WentWell, Moment::NeverSolved];

/// Which of two worlds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The one that holds nothing.
    Plain,
    /// The one that holds much.
    Full,
}

/// Whose calls they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sessions {
    /// Each call has a session of its own: what was told once is not told again.
    Own,
    /// All belong to the one that failed so often.
    Flooded,
}

struct Stage {
    unstuck: PathBuf,
    worlds: [World; 2],
    sessions: Sessions,
    /// Calls so far.
    calls: Cell<u64>,
}

/// `cargo xtask bench memory`.
pub fn bench(options: &Options) -> Result<(), Fault> {
    let built = options.binary.clone().map_or_else(project::unstuck, Ok)?;
    // A copy, as an installer makes it: what the linker wrote takes longer to start.
    let folder = tempfile::tempdir()?;
    let unstuck = folder.path().join("unstuck");
    fs::copy(&built, &unstuck)?;
    let stage = |full: World, sessions: Sessions| -> Result<Stage, Fault> {
        let worlds = [taught::plain(&built)?, full];
        Ok(Stage { unstuck: unstuck.clone(), worlds, sessions, calls: Cell::new(0) })
    };
    let (rounds, counts) = if options.quick { (20, 1) } else { (300, 3) };
    let taught = stage(taught::with_lessons(&built)?, Sessions::Own)?;
    let mut report = machine();
    taught.teach()?;
    let title = format!("A hook with {} lessons in the store", thousands(LESSONS));
    report += &taught.hooks(&title, "lessons", &MOMENTS, rounds, counts)?;
    taught.check_lessons()?;
    let flooded = stage(taught::with_failures(&built)?, Sessions::Flooded)?;
    let title = format!("A hook in a session that failed {} times", thousands(FAILURES));
    report += &flooded.hooks(&title, "failures", &UNTAUGHT, rounds, counts)?;
    drop(flooded);
    report += &taught.search(if options.quick { 3 } else { 15 })?;
    report += &taught.scan(if options.quick { 10 } else { 100 }, if options.quick { 1 } else { 3 })?;
    report += &format!("At the end: {}.\n", load());
    println!("{report}");
    match options.write {
        true => write_page(&[Section { mark: "memory", report }]),
        false => Ok(()),
    }
}

impl Stage {
    fn world(&self, side: Side) -> &World {
        match side {
            Side::Plain => &self.worlds[0],
            Side::Full => &self.worlds[1],
        }
    }

    /// Both see the same failure and how it was got over; one of them forgets it.
    fn teach(&self) -> Result<(), Fault> {
        for side in [Side::Plain, Side::Full] {
            let steps = [("make", Some(KNOWN)), ("sudo apt-get install -y libssl-dev", None), ("make", None)];
            for (number, (command, error)) in steps.into_iter().enumerate() {
                let (session, id) = ("teacher".to_owned(), format!("t{number}"));
                let call = Call { session, id, command: command.to_owned() };
                self.send(side, &call, Told::Before)?;
                self.send(side, &call, error.map_or(Told::WentWell, Told::Failed))?;
            }
        }
        let forget = "DELETE FROM lesson; DELETE FROM lesson_place; DELETE FROM lesson_source";
        Ok(filled::timeline(self.world(Side::Plain))?.execute_batch(forget)?)
    }

    /// A hook on what Claude Code sends, behind the words of a program that starts it.
    fn command(&self, side: Side, before: &[&str]) -> Command {
        let mut words = before.iter().map(PathBuf::from).chain([self.unstuck.clone()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).args(["hook", "claude"]);
        self.world(side).surround(&mut command);
        command
    }

    fn send(&self, side: Side, call: &Call, told: Told<'_>) -> Result<(Sample, String), Fault> {
        timed(self.command(side, &[]), &told.payload(call, &self.world(side).home()))
    }

    /// One call: what comes before this moment, the moment itself as `measure` takes it, and its end.
    fn at<T>(
        &self,
        (moment, side): (Moment, Side),
        measure: impl FnOnce(&Call, Told<'_>) -> Result<(T, String), Fault>,
    ) -> Result<T, Fault> {
        self.calls.set(self.calls.get() + 1);
        let id = format!("b{}-{}", std::process::id(), self.calls.get());
        let (session, command) = match self.sessions {
            Sessions::Own => (format!("session-{id}"), "make".to_owned()),
            Sessions::Flooded => (taught::SESSION.to_owned(), format!("make {id}")),
        };
        let call = Call { session, id: id.clone(), command };
        if moment != Moment::Before {
            self.send(side, &call, Told::Before)?;
        }
        let (measured, answer) = match moment {
            Moment::Before => measure(&call, Told::Before)?,
            Moment::WentWell => measure(&call, Told::WentWell)?,
            Moment::Remembered => measure(&call, Told::Failed(KNOWN))?,
            Moment::NeverSolved => measure(&call, Told::Failed(UNKNOWN))?,
        };
        let is_due = moment == Moment::Remembered && side == Side::Full;
        if answer.contains(TOLD) != is_due {
            return Err(format!("{moment:?} with {side:?} it said {answer:?}").into());
        }
        if moment == Moment::Remembered {
            // The session gets over it by itself, so that nobody waits for what becomes of the lesson.
            let call = Call { id: format!("{id}-again"), ..call };
            self.send(side, &call, Told::Before)?;
            self.send(side, &call, Told::WentWell)?;
        }
        Ok(measured)
    }

    fn hooks(
        &self,
        title: &str,
        what: &str,
        moments: &[Moment],
        rounds: usize,
        counts: usize,
    ) -> Result<String, Fault> {
        let rows: Vec<(Moment, Side)> =
            moments.iter().flat_map(|moment| [(*moment, Side::Plain), (*moment, Side::Full)]).collect();
        let samples =
            take_turns(&rows, rounds, |row| self.at(*row, |call, told| self.send(row.1, call, told)))?;
        let instructions = self.instructions(&rows, counts)?;
        let mut table = format!(
            "\n### {title}\n\n| hook | processor time without {what} | with them | × | all runs together | \
             instructions |\n|---|---|---|---|---|---|\n"
        );
        let mut worst: f64 = 0.0;
        for (number, moment) in moments.iter().enumerate() {
            let used = |at: usize| -> Vec<Duration> {
                samples[number * 2 + at].iter().map(|sample| sample.processor).collect()
            };
            let [without, with] = [used(0), used(1)];
            let sum = |times: &[Duration]| times.iter().sum::<Duration>().as_secs_f64();
            let together = sum(&with) / sum(&without);
            let counted = instructions.as_ref().map(|counted| {
                let [without, with] = [counted[number * 2], counted[number * 2 + 1]];
                let ratio = with / without;
                (ratio, format!("{:.2} M → {:.2} M, × {ratio:.3}", without / 1e6, with / 1e6))
            });
            // What is counted is certain; what is timed is hit by whatever else the machine does.
            worst = worst.max(counted.as_ref().map_or(together, |(ratio, _)| *ratio));
            writeln!(
                table,
                "| {} | {} | {} | {} | {together:.3} | {} |",
                moment.title(),
                ms(&without, 0.5),
                ms(&with, 0.5),
                Ratio::of(&with, &without),
                counted.map_or("not counted".to_owned(), |(_, told)| told)
            )?;
        }
        // Those that warmed up were recorded, too.
        let late = self.check_records(moments, rounds + 1 + instructions.map_or(0, |_| counts + 1))?;
        writeln!(
            table,
            "\n{rounds} rounds in turn; a ratio is the median (middle eight tenths). Instructions are those of the program itself, \
             as `valgrind --tool=callgrind` counts them, the median of {counts}. Every call was recorded; hooks that ran into their \
             deadline: {late}. Aim: at most {AIM} × at each moment. Measured: at most {worst:.2} ({}).",
            if worst <= AIM { "met" } else { "missed" }
        )?;
        Ok(table)
    }

    /// How many instructions each takes, where valgrind is there to count them.
    fn instructions(&self, rows: &[(Moment, Side)], counts: usize) -> Result<Option<Vec<f64>>, Fault> {
        let found = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let counted =
            take_turns(rows, counts, |row| self.at(*row, |call, told| self.count(row.1, call, told)))?;
        let median = |mut counted: Vec<f64>| {
            counted.sort_by(f64::total_cmp);
            counted[counted.len() / 2]
        };
        Ok(Some(counted.into_iter().map(median).collect()))
    }

    fn count(&self, side: Side, call: &Call, told: Told<'_>) -> Result<(f64, String), Fault> {
        // Every process reads the log of those before it, and that is longer at one time than at another.
        filled::timeline(self.world(side))?.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        let before = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"];
        let mut command = self.command(side, &before);
        // It is fifty times as slow, and must not run out of time for that.
        command.env("UNSTUCK_HOOK_DEADLINE_BEFORE", "10s").env("UNSTUCK_HOOK_DEADLINE_AFTER", "10s");
        let reply = speak(command, told.payload(call, &self.world(side).home()).as_bytes(), None)?;
        let line = reply.stderr.lines().find_map(|line| line.split_once("Collected : "));
        let counted = line.and_then(|(_, number)| number.trim().parse().ok());
        Ok((counted.ok_or_else(|| format!("valgrind counted nothing: {}", reply.stderr))?, reply.stdout))
    }

    /// A hook that gave up would look fast: every call must stand in the timeline, and every end. Returns how many ran late.
    fn check_records(&self, moments: &[Moment], times: usize) -> Result<u32, Fault> {
        let mut late = 0;
        let calls: usize =
            moments.iter().map(|moment| if *moment == Moment::Remembered { 2 } else { 1 }).sum();
        let open = moments.iter().filter(|moment| **moment == Moment::Before).count();
        let due = [calls * times, (calls - open) * times].map(u32::try_from);
        let [due, due_ended] = [due[0]?, due[1]?];
        for side in [Side::Plain, Side::Full] {
            let ours = format!("FROM call WHERE key LIKE 'b{}-%'", std::process::id());
            let kept = self.number(side, &format!("SELECT count(*) {ours}"))?;
            let ended = self.number(side, &format!("SELECT count(*) {ours} AND ended_at IS NOT NULL"))?;
            if (kept, ended) != (due, due_ended) {
                return Err(format!("{side:?}: of {due} calls {kept} were recorded, and {ended} ends").into());
            }
            late += self.number(side, "SELECT count(*) FROM event WHERE type = 'own_fault'")?;
        }
        Ok(late)
    }

    /// One world still knows nothing, and the other all it knew.
    fn check_lessons(&self) -> Result<(), Fault> {
        let known = |side| self.number(side, "SELECT count(*) FROM lesson");
        match (known(Side::Plain)?, known(Side::Full)?) {
            (0, full) if full > LESSONS => Ok(()),
            other => Err(format!("without and with lessons they know {other:?}").into()),
        }
    }

    fn number(&self, side: Side, question: &str) -> Result<u32, Fault> {
        Ok(filled::timeline(self.world(side))?.query_row(question, [], |row| row.get(0))?)
    }

    fn search(&self, rounds: usize) -> Result<String, Fault> {
        let world = self.world(Side::Full);
        let texts = world.aside("lessons.jsonl");
        let mut export = world.command::<&str>(&[], &["lessons", "export", "--json"]);
        let exported = export.stdout(File::create(&texts)?).stdin(Stdio::null()).status()?;
        let lines = fs::read_to_string(&texts)?.lines().count();
        if !exported.success() || lines < LESSONS as usize {
            return Err(format!("{lines} lessons were exported").into());
        }
        let words = ["task-4242", "enoent", "证书", "书"];
        let rows: Vec<(&str, bool)> = words.iter().flat_map(|word| [(*word, true), (*word, false)]).collect();
        let times = take_turns(&rows, rounds, |(word, is_ours)| {
            let mut command = match is_ours {
                true => world.command::<&str>(&[], &["lessons", "search", word]),
                false => {
                    let mut grep = Command::new("grep");
                    grep.args(["-iF", word]).arg(&texts);
                    world.surround(&mut grep);
                    grep
                }
            };
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let start = Instant::now();
            let output = command.output()?;
            let took = start.elapsed();
            match output.status.success() && !output.stdout.is_empty() {
                true => Ok(took),
                false => Err(format!("nothing was found of {word}: {output:?}").into()),
            }
        })?;
        let mut table = format!(
            "\n### A search among {} lessons\n\n| word | `unstuck lessons search` | `grep -iF` | × of grep |\n|---|---|---|---|\n",
            thousands(LESSONS)
        );
        for (number, word) in words.iter().enumerate() {
            let [ours, grep] = [&times[number * 2], &times[number * 2 + 1]];
            let ratio = Ratio::of(ours, grep);
            writeln!(table, "| `{word}` | {} | {} | {ratio} |", ms(ours, 0.5), ms(grep, 0.5))?;
        }
        let size = fs::metadata(&texts)?.len() / MEGABYTE;
        writeln!(
            table,
            "\n{rounds} rounds in turn. `grep` reads the {size} MB that `unstuck lessons export --json` wrote of the same \
             lessons, and neither ranks nor prints them for people."
        )?;
        Ok(table)
    }

    fn scan(&self, megabytes: u64, rounds: usize) -> Result<String, Fault> {
        let built = project::build(&["--release", "--package", "xtask", "--example", "parse_lines"])?;
        let parse = built.first().ok_or("cargo built no parse_lines")?;
        let folder = self.worlds[0].aside("transcripts");
        let (files, calls) = transcripts::write(&folder, megabytes * MEGABYTE)?;
        let bytes: u64 = files.iter().map(|file| fs::metadata(file).map_or(0, |found| found.len())).sum();
        let scanned = World::new(&self.unstuck)?;
        let scan = |world: &World| {
            let mut command = world.command::<&str>(&[], &["scan", "--json"]);
            command.arg(&folder);
            command
        };
        let plain = |program: &Path, args: &[&str]| {
            let mut command = Command::new(program);
            command.args(args).args(&files);
            command
        };
        let all = Reader::ALL;
        let peak = Cell::new(0.0_f64);
        let times = take_turns(&all, rounds, |reader| match reader {
            Reader::Scan => {
                // Whoever has read them would read nothing.
                let world = World::new(&self.unstuck)?;
                let (took, held, told) = held(scan(&world), &world)?;
                let report: serde_json::Value = serde_json::from_str(&told)?;
                if report["calls"] != json!(calls) || report["new_lessons"] == json!(0) {
                    return Err(format!("of {calls} calls the scan tells {told}").into());
                }
                peak.set(peak.get().max(held));
                Ok(took)
            }
            Reader::ScanAgain => held(scan(&scanned), &scanned).map(|(took, _, _)| took),
            Reader::Parse => held(plain(parse, &[]), &scanned).map(|(took, _, _)| took),
            Reader::Jq => held(plain(Path::new("jq"), &["-c", ".type"]), &scanned).map(|(took, _, _)| took),
            Reader::CountLines => held(plain(Path::new("wc"), &["-l"]), &scanned).map(|(took, _, _)| took),
        })?;
        let mut table = format!(
            "\n### {} MB of transcripts\n\n| program | median | speed | × of the parser's time |\n|---|---|---|---|\n",
            bytes / MEGABYTE
        );
        let parsing = all.iter().position(|reader| *reader == Reader::Parse).ok_or("nobody parses")?;
        for (reader, mine) in all.iter().zip(&times) {
            let median = quantile(mine, 0.5).as_secs_f64();
            let (speed, ratio) = (bytes as f64 / median / 1e6, Ratio::of(mine, &times[parsing]));
            writeln!(
                table,
                "| {} | {:.0} ms | {speed:.0} MB/s | {ratio} |",
                reader.title(),
                median * 1000.0
            )?;
        }
        writeln!(
            table,
            "\n{rounds} rounds in turn; {} files, {} calls, each recorded, judged and learnt from. The scan held {:.1} MB at most.\n",
            files.len(),
            thousands(u32::try_from(calls)?),
            peak.get()
        )?;
        Ok(table)
    }
}

/// Who reads transcripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Scan,
    ScanAgain,
    /// `xtask/examples/parse_lines.rs`.
    Parse,
    Jq,
    CountLines,
}

impl Reader {
    const ALL: [Reader; 5] = [Reader::Scan, Reader::ScanAgain, Reader::Parse, Reader::Jq, Reader::CountLines];

    fn title(self) -> &'static str {
        match self {
            Reader::Scan => "`unstuck scan`",
            Reader::ScanAgain => "`unstuck scan`, nothing new",
            Reader::Parse => "each line parsed (serde_json)",
            Reader::Jq => "`jq -c .type`",
            Reader::CountLines => "`wc -l`",
        }
    }
}

/// What a hook is told of a call.
#[derive(Debug, Clone, Copy)]
enum Told<'a> {
    Before,
    WentWell,
    Failed(&'a str),
}

impl Told<'_> {
    fn payload(self, call: &Call, folder: &Path) -> String {
        let event = match self {
            Told::Before => "PreToolUse",
            Told::WentWell => "PostToolUse",
            Told::Failed(_) => "PostToolUseFailure",
        };
        let mut payload = call.told(event, folder);
        match self {
            Told::Before => {}
            Told::WentWell => {
                payload["tool_response"] =
                    json!({"stdout": "done", "stderr": "", "interrupted": false, "isImage": false});
                payload["duration_ms"] = json!(93);
            }
            Told::Failed(error) => {
                payload["error"] = json!(error);
                payload["is_interrupt"] = json!(false);
                payload["duration_ms"] = json!(93);
            }
        }
        payload.to_string()
    }
}

impl Moment {
    fn title(self) -> &'static str {
        match self {
            Moment::Before => "before a call",
            Moment::WentWell => "after one that went well",
            Moment::Remembered => "after a failure, with a lesson to tell",
            Moment::NeverSolved => "after a failure without one",
        }
    }
}

/// Runs it to its good end; returns how long that took, the megabytes it held at most, and what it printed.
fn held(command: Command, world: &World) -> Result<(Duration, f64, String), Fault> {
    // A process of its own, because the system only side the peak over all children.
    let mut chore = Command::new(std::env::current_exe()?);
    chore.arg("peak-memory").arg(command.get_program()).args(command.get_args());
    world.surround(&mut chore);
    let reply = speak(chore, b"", None)?;
    let measured =
        Measured::read(&reply.stderr).ok_or_else(|| format!("no peak was told: {}", reply.stderr))?;
    match measured.exit {
        0 => Ok((measured.took, measured.peak as f64 / 1024.0, reply.stdout)),
        exit => Err(format!("{command:?} exited with {exit}: {}", reply.stderr).into()),
    }
}
