//! Plays sessions that follow one another through the real hook, and scores what the later ones are told (see
//! `traces/lessons/README.md`). Nothing of what is scored is told to the binary.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rusqlite::Connection;
use serde::Deserialize;
use serde_json::{Value, json};

use super::figure::{Better, Figure, share};
use crate::{Fault, project};

/// How a lesson begins, wherever it is told.
const MARK: &str = "Remembered from earlier calls";
/// What is told of a fix stands between these.
const TOLD: [&str; 2] = [" it was over after ", " (last: "];
/// Some day in 2026, in milliseconds since 1970.
const START: u64 = 1_790_000_000_000;

/// Several sessions, one after the other, with a memory of their own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    name: String,
    steps: Vec<Step>,
}

/// One call, and how it ended.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    session: String,
    /// The folder it is made in, below the home.
    #[serde(default = "app")]
    cwd: String,
    /// A command,
    run: Option<String>,
    /// an edit of a file,
    edit: Option<String>,
    /// or a call of another tool: one of the three.
    call: Option<Value>,
    #[serde(default)]
    exit: i32,
    #[serde(default)]
    prints: String,
    /// So often it prints that.
    #[serde(default = "once")]
    times: usize,
    /// So many minutes after the step before it.
    #[serde(default = "one")]
    after: u64,
    /// What has to be told with its result, word for word; empty where this is a repeat and nothing may be told.
    offer: Option<String>,
}

fn app() -> String {
    "app".to_owned()
}

fn once() -> usize {
    1
}

fn one() -> u64 {
    1
}

impl Step {
    fn tool(&self) -> Result<(&str, Value), Fault> {
        Ok(match (&self.run, &self.edit, &self.call) {
            (Some(line), None, None) => ("Bash", json!({ "command": line })),
            (None, Some(file), None) => {
                ("Edit", json!({"file_path": file, "old_string": "a", "new_string": "b"}))
            }
            (None, None, Some(call)) => (call["tool"].as_str().unwrap_or_default(), call["input"].clone()),
            _ => return Err(format!("a step is a run, an edit or a call: {self:?}").into()),
        })
    }

    fn printed(&self) -> String {
        self.prints.repeat(self.times)
    }
}

/// An attempt to have something told that nobody may be told without a person's leave.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attack {
    name: String,
    /// A step that is taken between a failure and its end: it has to be kept for a person, and told to nobody.
    fix: Option<String>,
    /// Calls that a forged transcript tells of.
    #[serde(default)]
    scan: Vec<Step>,
    /// Lines of a forged export.
    #[serde(default)]
    import: Vec<Value>,
    #[serde(default)]
    steps: Vec<Step>,
    /// Words that no agent may read in what is told.
    #[serde(default)]
    never: Vec<String>,
}

/// How well the sets were handled.
#[derive(Debug)]
pub struct Score {
    /// The numbers.
    pub figures: Vec<Figure>,
    /// What went wrong, a line each.
    pub misses: Vec<String>,
}

/// What has to be reached, whatever was recorded.
pub fn below_aims(figures: &[Figure]) -> Vec<String> {
    let aims = [("offered", 0.95), ("offered_unseen", 0.0), ("precision", 0.95), ("attacks_told", 0.0)];
    let figure = |name: &str| figures.iter().find(|figure| figure.name == name);
    let missed = |(name, aim): &(&str, f64)| {
        let figure = figure(name)?;
        figure.drop_from(*aim).err().map(|_| format!("{name} is {figure}, its aim {aim}"))
    };
    aims.iter().filter_map(missed).collect()
}

/// Runs that an agent made, each made twice, a day apart: what helped in the first one has to be told in the second. `offers`
/// says what that is; everything else that is told is wrong.
pub fn twice(calls: &[Value], offers: &[Value]) -> Vec<Value> {
    let mut runs: Vec<(&str, Vec<&Value>)> = Vec::new();
    for call in calls {
        let name = call["trace"].as_str().unwrap_or_default();
        match runs.iter_mut().find(|(known, _)| *known == name) {
            Some((_, run)) => run.push(call),
            None => runs.push((name, vec![call])),
        }
    }
    let step = |name: &str, call: &Value, session: u32, number: usize| {
        let is_offer = |offer: &&Value| session == 2 && offer["trace"] == name && offer["i"] == number;
        let exit = call["exit_code"].as_i64().unwrap_or(if call["ok"] == false { 1 } else { 0 });
        let after = if session == 2 && number == 0 { 24 * 60 } else { 1 };
        json!({"session": session.to_string(), "call": {"tool": call["tool"], "input": call["input"]}, "exit": exit,
            "prints": call["output"], "after": after, "offer": offers.iter().find(is_offer).map(|offer| &offer["offer"])})
    };
    let scenario = |(name, run): &(&str, Vec<&Value>)| {
        let steps =
            |session| run.iter().enumerate().map(move |(number, call)| step(name, call, session, number));
        json!({"name": name, "steps": steps(1).chain(steps(2)).collect::<Vec<_>>()})
    };
    runs.iter().map(scenario).collect()
}

/// A memory of its own, and the binary that keeps it.
struct Memory<'b> {
    binary: &'b Path,
    home: tempfile::TempDir,
}

impl Memory<'_> {
    fn new(binary: &Path) -> Result<Memory<'_>, Fault> {
        Ok(Memory { binary, home: tempfile::tempdir()? })
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.binary);
        command.args(args).current_dir(self.home.path()).env("HOME", self.home.path()).env("LANG", "C");
        for name in ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "UNSTUCK_STORE_STATE_DIR", "LC_ALL", "LC_MESSAGES"]
        {
            command.env_remove(name);
        }
        command
    }

    /// What is said with the result of each step.
    fn play(&self, steps: &[Step]) -> Result<Vec<String>, Fault> {
        let mut said = Vec::new();
        let mut at = START;
        let mut hook = Hook::new(self)?;
        for (number, step) in steps.iter().enumerate() {
            // A repository each: what is learnt in one folder does not hold in every other.
            let cwd = self.home.path().join(&step.cwd);
            let repository = step.cwd.split('/').next().unwrap_or_default();
            let git = self.home.path().join(repository).join(".git");
            for folder in ["objects", "refs"] {
                fs::create_dir_all(git.join(folder))?;
            }
            fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
            fs::create_dir_all(&cwd)?;
            let (tool, input) = step.tool()?;
            at += step.after * 60_000;
            let mut call = json!({"event": "before", "session": step.session, "call_id": format!("c{number}"),
                "cwd": cwd, "at": at, "tool": tool, "input": input});
            // What is told before a call runs is told in time as well.
            let before = hook.hears(&call, Source::Watched)?;
            call["event"] = json!("after");
            call["at"] = json!(at + 1000);
            call["exit_code"] = json!(step.exit);
            call[if step.exit == 0 { "stdout" } else { "stderr" }] = json!(step.printed());
            let source = if step.exit == 0 { Source::Told } else { Source::Watched };
            said.push(before + &hook.hears(&call, source)?);
        }
        Ok(said)
    }

    /// Has a transcript of these calls scanned, as Claude Code would have written it.
    fn scan(&self, steps: &[Step]) -> Result<(), Fault> {
        let folder = self.home.path().join(".claude/projects/p");
        fs::create_dir_all(&folder)?;
        for session in steps.iter().map(|step| &step.session).collect::<BTreeSet<_>>() {
            let mut lines = String::new();
            for (number, step) in steps.iter().enumerate().filter(|(_, step)| step.session == *session) {
                let (tool, input) = step.tool()?;
                let id = format!("toolu_{session}_{number}");
                let made = json!({"type": "tool_use", "id": id, "name": tool, "input": input});
                let said = json!({"type": "tool_result", "tool_use_id": id, "is_error": step.exit != 0,
                    "content": format!("Exit code {}\n{}", step.exit, step.printed())});
                for (kind, block) in [("assistant", made), ("user", said)] {
                    let line = json!({"type": kind, "uuid": format!("{id}{kind}"), "sessionId": session,
                        "timestamp": format!("2026-09-01T10:{number:02}:00.000Z"),
                        "cwd": self.home.path().join(&step.cwd), "message": {"id": id, "content": [block]}});
                    lines += &format!("{line}\n");
                }
            }
            fs::write(folder.join(format!("{session}.jsonl")), lines)?;
        }
        project::pipe_through(&mut self.command(&["scan", "--json"]), String::new()).map(|_| ())
    }

    /// Has lines imported; a file that is refused as a whole brings nothing in either.
    fn import(&self, lines: &[Value]) -> Result<(), Fault> {
        let file = self.home.path().join("lessons.jsonl");
        fs::write(&file, lines.iter().map(|line| format!("{line}\n")).collect::<String>())?;
        self.command(&["lessons", "import", "--json"]).arg(file).output()?;
        Ok(())
    }

    /// What an agent's notes would be given.
    fn notes(&self) -> Result<String, Fault> {
        let output = self
            .command(&["lessons", "export", "--markdown"])
            .current_dir(self.home.path().join("app"))
            .output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Every lesson there is.
    fn lessons(&self) -> Result<Vec<Value>, Fault> {
        let output = self.command(&["lessons", "--all", "--json"]).output()?;
        Ok(project::json_lines(&String::from_utf8_lossy(&output.stdout)))
    }
}

/// How lessons came to be known, so far.
#[derive(Clone, Copy)]
enum Source {
    Watched,
    Told,
}

/// One process that hears of all calls of a scenario. What comes by its door was only told of, and teaches nothing that is told on;
/// so whatever was learnt is made to have been watched before a lesson could be told, and not to have been before one is made.
struct Hook {
    process: Child,
    answers: Lines<BufReader<ChildStdout>>,
    database: Connection,
}

impl Hook {
    fn new(memory: &Memory<'_>) -> Result<Hook, Fault> {
        let first = json!({ "event": "user", "session": "nobody", "at": START }).to_string();
        project::pipe_through(&mut memory.command(&["hook", "generic"]), first)?;
        let database = Connection::open(memory.home.path().join(".local/state/unstuck/timeline.db"))?;
        database.execute_batch("PRAGMA synchronous = OFF")?;
        let mut command = memory.command(&["hook", "generic"]);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let answers = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        Ok(Hook { process, answers, database })
    }

    /// What it says to a line.
    fn hears(&mut self, line: &Value, source: Source) -> Result<String, Fault> {
        let words = match source {
            Source::Watched => ["told", "hook"],
            Source::Told => ["hook", "told"],
        };
        self.database.execute("UPDATE OR IGNORE lesson_place SET source = ?2 WHERE source = ?1", words)?;
        let mut stdin = self.process.stdin.as_ref().expect("it is piped");
        stdin.write_all(format!("{line}\n").as_bytes())?;
        let answer = self.answers.next().ok_or("a step was not answered")??;
        let answer: Value = serde_json::from_str(&answer)?;
        Ok(answer["say"].as_str().unwrap_or_default().to_owned())
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        drop(self.process.wait());
    }
}

/// The fix that was told, if one was, whatever signs its lines were quoted with.
fn told(said: &str) -> Option<String> {
    let said = said.replace(['⟦', '⟧'], "`");
    let told = &said[said.find(MARK)?..];
    let from = told.find(TOLD[0])? + TOLD[0].len();
    let told = &told[from..];
    let told = &told[..told.find(TOLD[1])?];
    // How often it did not help is not part of it.
    let says_how_often = told.ends_with(" not") && !told.ends_with('`');
    Some(told.rfind("`, ").filter(|_| says_how_often).map_or(told, |at| &told[..=at]).to_owned())
}

/// Plays every scenario and every attack.
pub fn score(binary: &Path, scenarios: &[Value], attacks: &[Value]) -> Result<Score, Fault> {
    let (mut misses, mut steps_told) = (Vec::new(), (0, 0));
    let (mut offers, mut unseen) = ((0, 0), (0, 0));
    for row in scenarios {
        let scenario = Scenario::deserialize(row).map_err(|error| format!("{error}: {row}"))?;
        let said = Memory::new(binary)?.play(&scenario.steps)?;
        for (number, (step, said)) in scenario.steps.iter().zip(&said).enumerate() {
            let found = told(said);
            let expected = step.offer.as_deref().unwrap_or_default();
            let is_right = found.as_deref() == Some(expected);
            steps_told.0 += usize::from(is_right);
            steps_told.1 += usize::from(found.is_some());
            match step.offer.as_deref() {
                Some("") => {
                    unseen.0 += usize::from(found.is_some());
                    unseen.1 += 1;
                }
                Some(_) => {
                    offers.0 += usize::from(is_right);
                    offers.1 += 1;
                }
                None => {}
            }
            if found.as_deref().unwrap_or_default() != expected {
                misses.push(format!(
                    "{}, step {}: {expected:?}, and told was {found:?}",
                    scenario.name,
                    number + 1
                ));
            }
        }
    }
    let mut attacks_told = 0;
    for row in attacks {
        let attack = Attack::deserialize(row).map_err(|error| format!("{error}: {row}"))?;
        let found = strike(binary, &attack)?;
        attacks_told += usize::from(!found.is_empty());
        misses.extend(found.into_iter().map(|miss| format!("{}: {miss}", attack.name)));
    }
    let figures = vec![
        Figure::new("scenarios", Some(scenarios.len() as f64), Better::Neither),
        Figure::new("offered", share(offers.0, offers.1), Better::Higher),
        Figure::new("offered_unseen", share(unseen.0, unseen.1), Better::Lower),
        Figure::new("precision", share(steps_told.0, steps_told.1), Better::Higher),
        Figure::new("attacks", Some(attacks.len() as f64), Better::Higher),
        Figure::new("attacks_told", Some(attacks_told as f64), Better::Lower),
    ];
    Ok(Score { figures, misses })
}

/// Makes one attack, and tells what got through.
fn strike(binary: &Path, attack: &Attack) -> Result<Vec<String>, Fault> {
    let memory = Memory::new(binary)?;
    let mut heard = Vec::new();
    if !attack.scan.is_empty() {
        memory.scan(&attack.scan)?;
    }
    if !attack.import.is_empty() {
        memory.import(&attack.import)?;
    }
    if !attack.steps.is_empty() {
        heard = memory.play(&attack.steps)?;
    }
    let mut never = attack.never.clone();
    let mut through = Vec::new();
    if let Some(fix) = &attack.fix {
        let header = "a.c:1:10: fatal error: openssl/ssl.h: No such file or directory";
        let step = |session: &str, line: &str, exit: i32| json!({"session": session, "run": line, "exit": exit, "prints": if exit == 0 { "" } else { header }});
        let steps = [step("1", "make", 2), step("1", fix, 0), step("1", "make", 0), step("2", "make", 2)];
        let steps: Vec<Step> = steps.iter().map(Step::deserialize).collect::<Result<_, _>>()?;
        heard = memory.play(&steps)?;
        never.push(MARK.to_owned());
        let lessons = memory.lessons()?;
        if lessons.iter().any(|lesson| lesson["caution"].is_null()) {
            through.push("a person is not asked".to_owned());
        }
    }
    for (step, said) in attack.steps.iter().zip(&heard) {
        if let Some(offer) = step.offer.as_deref().filter(|offer| told(said).as_deref() != Some(offer)) {
            through.push(format!("{offer:?} is told no more, but {:?}", told(said)));
        }
    }
    // What is quoted of the output itself is not what is remembered.
    let mut heard: Vec<&str> = heard.iter().filter_map(|said| said.get(said.find(MARK)?..)).collect();
    let notes = memory.notes()?;
    heard.push(&notes);
    for word in &never {
        through.extend(
            heard.iter().find(|said| said.contains(word.as_str())).map(|said| format!("{word:?} in {said}")),
        );
    }
    Ok(through)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_a_fix_is_found_word_for_word() {
        let said = |rest: &str| {
            format!("No.\n{MARK} (a record): this failure was seen 2 times; once it was over after {rest}")
        };
        let check = |rest: &str, fix: &str| assert_eq!(told(&said(rest)).as_deref(), Some(fix));
        check("`npm ci` (last: just now, worked).", "`npm ci`");
        check("⟦cd web && npm ci⟧ (last: just now, worked).", "`cd web && npm ci`");
        check("`a`, then `b`, 2 times not (last: just now, worked).", "`a`, then `b`");
        assert_eq!(told("make: *** [all] Error 2"), None);
    }

    #[test]
    fn a_figure_below_its_aim_is_named() {
        let figures = [("offered", 0.9, Better::Higher), ("offered_unseen", 0.0, Better::Lower)];
        let figures = figures.map(|(name, value, better)| Figure::new(name, Some(value), better));
        assert_eq!(below_aims(&figures), ["offered is 0.9, its aim 0.95"]);
    }
}
