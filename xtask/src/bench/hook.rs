//! What one hook call adds to an agent's turn: `unstuck hook claude` on what Claude Code sends, beside an empty program and
//! beside hooks of the same duty in other languages, all in one run. Nothing here is left out or weighed: what a program says
//! is checked before its time counts.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};

use super::contest::{Ratio, take_turns};
use super::store::{ms, thousands};
use super::{Programs, filled};
use crate::world::World;
use crate::{Fault, project};

/// So many calls of a peer belong to one session: its state is a file that it reads as a whole, and should stay as small as
/// that of an ordinary session.
const CALLS_OF_A_PEER: u64 = 50;
/// How often a call fails before the next try is refused by everybody.
const FAILURES: usize = 3;
/// At most so many times the empty program, at the median.
const AIM_EMPTY: f64 = 3.0;
/// At least so many times faster than Node.
const AIM_NODE: f64 = 20.0;

/// Whom Claude Code calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// `unstuck hook claude` on a store that has just been made.
    Unstuck,
    /// The same on a store that holds a million events.
    UnstuckLarge,
    /// A Rust program that reads its input and ends.
    Empty,
    /// A hook of the same duty in Node.
    Node,
    /// A hook of the same duty in bash and jq.
    Bash,
}

/// Through what it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// As the installer writes it into the agent's settings.
    Shell,
    /// Without a shell.
    Direct,
}

/// What is told to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// A call that nobody has seen before.
    Before,
    /// It failed.
    Failed,
}

/// One row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    start: Start,
    moment: Moment,
    who: Who,
}

/// What was measured of one run.
pub struct Sample {
    /// From its start to its end.
    pub wall: Duration,
    /// What it used of the processor, for itself and in the system.
    pub processor: Duration,
}

/// All that the runs need.
struct Stage {
    /// Copies, as an installer makes them: what the linker wrote lies in small pieces in the system's cache, and a program of
    /// ten megabytes takes a fifth longer to start from it.
    unstuck: PathBuf,
    empty: PathBuf,
    small: World,
    large: World,
    /// Calls so far; every run has one of its own, because what says nothing new costs nothing.
    calls: u64,
}

/// All tables about hook calls.
pub fn tables(programs: &Programs, quick: bool) -> Result<String, Fault> {
    let rounds = if quick { 30 } else { 300 };
    let (small, large) = (World::new(&programs.unstuck)?, filled::world(&programs.unstuck)?);
    let (unstuck, empty) = (small.aside("unstuck"), small.aside("empty"));
    fs::copy(&programs.unstuck, &unstuck)?;
    fs::copy(&programs.empty, &empty)?;
    let mut stage = Stage { unstuck, empty, small, large, calls: 0 };
    let mut all = vec![Who::Unstuck, Who::UnstuckLarge, Who::Empty];
    let node = version("node", &["--version"]);
    let shell = version("jq", &["--version"]).filter(|_| version("flock", &["--version"]).is_some());
    all.extend(node.is_some().then_some(Who::Node));
    all.extend(shell.is_some().then_some(Who::Bash));
    for who in &all {
        stage.rehearse(*who)?;
    }
    let rows: Vec<Row> = [Start::Shell, Start::Direct]
        .into_iter()
        .flat_map(|start| [Moment::Before, Moment::Failed].map(|moment| (start, moment)))
        .flat_map(|(start, moment)| all.iter().map(move |who| Row { start, moment, who: *who }))
        .collect();
    let samples = take_turns(&rows, rounds, |row| stage.run(*row))?;
    // Those that warmed up were recorded, too.
    let late =
        stage.check_records((rounds + 1) * rows.iter().filter(|row| row.who == Who::Unstuck).count())?;
    let mut report = String::new();
    for start in [Start::Shell, Start::Direct] {
        report += &table(start, &rows, &samples)?;
    }
    report += &closing(&rows, &samples, rounds, late)?;
    let versions = [("Node", node), ("jq and flock", shell)].map(|(name, found)| match found {
        Some(version) => format!("{name}: {version}."),
        None => format!("{name}: not on this machine, so not measured."),
    });
    writeln!(report, "{}", versions.join(" "))?;
    Ok(report)
}

impl Stage {
    /// Makes sure that it does what it is compared for: it speaks after a failure, and refuses what failed too often.
    fn rehearse(&mut self, who: Who) -> Result<(), Fault> {
        let call = |number: usize| Call {
            session: format!("rehearsal-{who:?}"),
            id: format!("r{}-{number}", std::process::id()),
            command: "make all".to_owned(),
        };
        let mut told = String::new();
        for number in 0..FAILURES {
            self.send(who, Start::Shell, Moment::Before, &call(number))?;
            told = self.send(who, Start::Shell, Moment::Failed, &call(number))?.1;
        }
        let (_, refused) = self.send(who, Start::Shell, Moment::Before, &call(FAILURES))?;
        let said = |answer: &str, field: &str| -> Result<Value, Fault> {
            Ok(match answer.is_empty() {
                true => Value::Null,
                false => serde_json::from_str::<Value>(answer)?["hookSpecificOutput"][field].take(),
            })
        };
        let spoke = said(&told, "additionalContext")?.is_string();
        let denied = said(&refused, "permissionDecision")? == "deny";
        let is_idle = who == Who::Empty;
        match spoke != is_idle && denied != is_idle {
            true => Ok(()),
            false => Err(format!("{who:?} does not do its duty: {told:?}, {refused:?}").into()),
        }
    }

    fn run(&mut self, row: Row) -> Result<Sample, Fault> {
        self.calls += 1;
        let session = match row.who {
            // The longest session of the large store.
            Who::Unstuck | Who::UnstuckLarge => filled::SESSION.to_owned(),
            Who::Empty | Who::Node | Who::Bash => format!("session-{}", self.calls / CALLS_OF_A_PEER),
        };
        let id = format!("b{}-{}", std::process::id(), self.calls);
        let call = Call { session, command: format!("make {id}"), id };
        if row.moment == Moment::Failed {
            self.send(row.who, Start::Direct, Moment::Before, &call)?; // Not counted.
        }
        self.send(row.who, row.start, row.moment, &call).map(|(sample, _)| sample)
    }

    fn send(&self, who: Who, start: Start, moment: Moment, call: &Call) -> Result<(Sample, String), Fault> {
        let world = match who {
            Who::UnstuckLarge => &self.large,
            Who::Unstuck | Who::Empty | Who::Node | Who::Bash => &self.small,
        };
        let mut command = start.command(&self.words(who));
        world.surround(&mut command);
        timed(command, &call.payload(moment, &world.home()))
            .map_err(|fault| format!("{who:?}: {fault}").into())
    }

    /// The program and its arguments.
    fn words(&self, who: Who) -> Vec<PathBuf> {
        let peer = |file: &str| project::root().join("xtask/src/bench/peers").join(file);
        match who {
            Who::Unstuck | Who::UnstuckLarge => {
                vec![self.unstuck.clone(), "hook".into(), "claude".into()]
            }
            Who::Empty => vec![self.empty.clone()],
            Who::Node => vec!["node".into(), peer("hook.mjs")],
            Who::Bash => vec!["bash".into(), peer("hook.sh")],
        }
    }

    /// A hook that gave up would look fast: every call must stand in the timeline. Returns how many of them ran late.
    fn check_records(&self, calls: usize) -> Result<usize, Fault> {
        let mut late = 0;
        for world in [&self.small, &self.large] {
            let timeline = filled::timeline(world)?;
            let count = |question: &str| {
                timeline.query_row(question, [], |row| row.get::<_, u32>(0).map(|count| count as usize))
            };
            let kept =
                count(&format!("SELECT count(*) FROM call WHERE key LIKE 'b{}-%'", std::process::id()))?;
            if kept != calls {
                return Err(format!("{kept} of {calls} calls were recorded").into());
            }
            late += count("SELECT count(*) FROM event WHERE type = 'own_fault'")?;
        }
        Ok(late)
    }
}

/// One call of the scripted agent.
pub struct Call {
    /// Its session.
    pub session: String,
    /// Its name.
    pub id: String,
    /// What it runs.
    pub command: String,
}

impl Call {
    /// What Claude Code sends with any event.
    pub fn told(&self, event: &str, folder: &Path) -> Value {
        let Call { session, id, command } = self;
        let folder = folder.to_string_lossy();
        json!({
            "session_id": session,
            "transcript_path": format!("{folder}/.claude/projects/-home-user-project/{session}.jsonl"),
            "cwd": folder,
            "prompt_id": "67d44baa-bf90-4746-a318-fbb62d4941d1",
            "permission_mode": "default",
            "effort": {"level": "medium"},
            "hook_event_name": event,
            "tool_name": "Bash",
            "tool_input": {"command": command, "description": "Build the target"},
            "tool_use_id": id,
        })
    }

    /// What Claude Code sends.
    fn payload(&self, moment: Moment, folder: &Path) -> String {
        let mut payload = self.told(moment.event(), folder);
        if moment == Moment::Failed {
            let command = &self.command;
            let target = command.trim_start_matches("make ");
            payload["error"] =
                json!(format!("Exit code 2\nmake: *** No rule to make target '{target}'.  Stop."));
            payload["is_interrupt"] = json!(false);
            payload["duration_ms"] = json!(93);
        }
        payload.to_string()
    }
}

impl Start {
    fn command(self, words: &[PathBuf]) -> Command {
        match self {
            Start::Direct => {
                let mut command = Command::new(&words[0]);
                command.args(&words[1..]);
                command
            }
            Start::Shell => {
                let mut command = Command::new("/bin/sh");
                command.arg("-c").arg(installed(words));
                command
            }
        }
    }

    fn title(self) -> &'static str {
        match self {
            Start::Shell => "as installed, through `/bin/sh -c`",
            Start::Direct => "started directly",
        }
    }
}

/// The line that stands in the agent's settings.
fn installed(words: &[PathBuf]) -> String {
    let word = |word: &PathBuf| match word.is_absolute() {
        true => format!("'{}'", word.to_string_lossy().replace('\'', r"'\''")),
        false => word.to_string_lossy().into_owned(),
    };
    format!("{} 2>/dev/null || :", words.iter().map(word).collect::<Vec<_>>().join(" "))
}

impl Moment {
    fn event(self) -> &'static str {
        match self {
            Moment::Before => "PreToolUse",
            Moment::Failed => "PostToolUseFailure",
        }
    }
}

impl Who {
    fn name(self) -> String {
        match self {
            Who::Unstuck => "unstuck hook claude".to_owned(),
            Who::UnstuckLarge => format!("the same, {} events stored", thousands(filled::EVENTS)),
            Who::Empty => "empty Rust binary".to_owned(),
            Who::Node => "the duty in Node".to_owned(),
            Who::Bash => "the duty in bash and jq".to_owned(),
        }
    }
}

/// Runs a hook once, as an agent does: the payload through one pipe, the answer through another.
pub fn timed(mut command: Command, payload: &str) -> Result<(Sample, String), Fault> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let used = processor_time()?;
    let begun = Instant::now();
    let mut child = command.spawn()?;
    // It is smaller than a pipe holds, so nobody waits for the other.
    child.stdin.take().ok_or("no standard input")?.write_all(payload.as_bytes())?;
    let output = child.wait_with_output()?;
    let wall = begun.elapsed();
    let processor = processor_time()?.saturating_sub(used);
    match output.status.success() {
        true => Ok((Sample { wall, processor }, String::from_utf8(output.stdout)?)),
        false => Err(output.status.to_string().into()),
    }
}

/// What all children used so far.
fn processor_time() -> Result<Duration, Fault> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |time: nix::sys::time::TimeVal| time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64;
    Ok(Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time())))
}

/// The wall times of a row, if it was measured.
fn walls(rows: &[Row], samples: &[Vec<Sample>], wanted: Row) -> Option<Vec<Duration>> {
    let found = rows.iter().position(|row| *row == wanted)?;
    Some(samples[found].iter().map(|sample| sample.wall).collect())
}

fn table(start: Start, rows: &[Row], samples: &[Vec<Sample>]) -> Result<String, Fault> {
    let mut table = format!(
        "\n### One hook call, {}\n\n| event | program | p50 | p95 | × of the empty binary | × of unstuck |\n|---|---|---|---|---|---|\n",
        start.title()
    );
    for row in rows.iter().filter(|row| row.start == start) {
        let of = |who: Who| walls(rows, samples, Row { who, ..*row }).ok_or("it was not measured");
        let (mine, empty, unstuck) = (of(row.who)?, of(Who::Empty)?, of(Who::Unstuck)?);
        writeln!(
            table,
            "| {} | {} | {} | {} | {} | {} |",
            row.moment.event(),
            row.who.name(),
            ms(&mine, 0.5),
            ms(&mine, 0.95),
            Ratio::of(&mine, &empty),
            Ratio::of(&mine, &unstuck)
        )?;
    }
    Ok(table)
}

/// How it stands to what is aimed at, and whether a large store is felt.
fn closing(rows: &[Row], samples: &[Vec<Sample>], rounds: usize, late: usize) -> Result<String, Fault> {
    let mut text = format!(
        "\n{rounds} rounds in turn; a ratio is the median (middle eight tenths). Every call was recorded; hooks that ran into their \
         deadline: {late}.\n\n"
    );
    let stands = |who: Who, other: Who, is_met: &dyn Fn(f64) -> bool| -> Vec<String> {
        let one = |start: Start| {
            let ratios: Vec<f64> = rows
                .iter()
                .filter(|row| row.who == who && row.start == start)
                .filter_map(|row| {
                    let mine = walls(rows, samples, *row)?;
                    let theirs = walls(rows, samples, Row { who: other, ..*row })?;
                    Some(Ratio::of(&mine, &theirs).median)
                })
                .collect();
            let met = if ratios.iter().all(|ratio| is_met(*ratio)) { "met" } else { "missed" };
            let told: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.1}")).collect();
            (!told.is_empty()).then(|| format!("{}: {} ({met})", start.title(), told.join(" and ")))
        };
        [Start::Shell, Start::Direct].into_iter().filter_map(one).collect()
    };
    let of_empty = stands(Who::Unstuck, Who::Empty, &|ratio| ratio <= AIM_EMPTY);
    writeln!(
        text,
        "- Aim: at most {AIM_EMPTY} × the empty binary at p50. Measured, before and after a call, {}.",
        of_empty.join("; ")
    )?;
    let of_node = stands(Who::Node, Who::Unstuck, &|ratio| ratio >= AIM_NODE);
    if !of_node.is_empty() {
        writeln!(
            text,
            "- Aim: at least {AIM_NODE} × faster than the same duty in Node. Measured, before and after a call, {}.",
            of_node.join("; ")
        )?;
    }
    // The log is folded in by every so many-th process, in each store at other times: only sums can be compared.
    let used = |who: Who, moment: Moment| -> f64 {
        let mine = rows.iter().zip(samples).filter(|(row, _)| row.who == who && row.moment == moment);
        mine.flat_map(|(_, samples)| samples).map(|sample| sample.processor.as_secs_f64()).sum()
    };
    let grown = [Moment::Before, Moment::Failed]
        .map(|moment| used(Who::UnstuckLarge, moment) / used(Who::Unstuck, moment));
    writeln!(
        text,
        "- Processor time with {} events stored, as a ratio to a small store, all runs together: {:.2} before a call, {:.2} \
         after a failure.\n",
        thousands(filled::EVENTS),
        grown[0],
        grown[1]
    )?;
    Ok(text)
}

/// What a program says about its version, where it runs at all.
fn version(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_started_by_the_line_that_the_installer_writes() {
        let line = installed(&["/opt/o'neil/unstuck".into(), "hook".into(), "claude".into()]);
        assert_eq!(line, r"'/opt/o'\''neil/unstuck' hook claude 2>/dev/null || :");
    }
}
