//! The power goes at any moment of a story: what was written and not flushed may be gone, in part and in any mixture that a file
//! system may leave. Whatever was promised to survive that must be there, and everything must be whole.

mod disk;
mod trace;

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::strace::Strace;
use crate::Fault;
use crate::dice::Dice;
use crate::world::{World, lines, speak};
use disk::{Disk, Names};
use trace::{CALLS, Player, Word};

/// Cuts in the short form.
const SHORT: usize = 120;
/// And in the long one.
const FULL: usize = 6000;

/// How it went.
pub enum Power {
    /// It held: so many cuts over a story of so many deeds.
    Held { cuts: usize, deeds: usize, promised: usize },
    /// Nothing can be traced here, and why.
    Skipped(String),
}

/// A part of the story: what a command did, and what may lie where when the power goes in it.
struct Part {
    name: &'static str,
    /// The deeds it begins and ends with.
    from: usize,
    to: usize,
}

/// What was said, after which deed, and what that promises.
struct Promise {
    after: usize,
    what: Promised,
}

enum Promised {
    /// This call stands in the timeline.
    Call(String),
    /// This snapshot brings back these contents of the file.
    Snapshot { id: Option<String>, call: Option<String>, content: String },
}

/// A file, and what it may hold at each moment.
struct Versions(Vec<(usize, Option<String>)>);

impl Versions {
    /// What it held before and after any part that touches this moment.
    fn at(&self, deeds: usize, parts: &[Part]) -> Vec<Option<String>> {
        let part = parts.iter().find(|part| (part.from..=part.to).contains(&deeds));
        let (from, to) = part.map_or((deeds, deeds), |part| (part.from, part.to));
        let before = self.0.iter().rfind(|(at, _)| *at <= from);
        let within = self.0.iter().filter(|(at, _)| (from..=to).contains(at));
        before.into_iter().chain(within).map(|(_, content)| content.clone()).collect()
    }
}

/// The whole story, recorded.
struct Story {
    disk: Disk,
    parts: Vec<Part>,
    promises: Vec<Promise>,
    /// The user's file that is removed and brought back, and an agent's settings.
    file: Versions,
    settings: Versions,
}

const FILE: &str = "home/p/a.txt";
const SETTINGS: &str = "home/.claude/settings.json";

/// Cuts the power at some moments of the story.
pub fn run(unstuck: &Path, full: bool, seed: u64) -> Result<Power, Fault> {
    if let Strace::Missing(why) = Strace::find() {
        return Ok(Power::Skipped(why));
    }
    let world = World::new(unstuck)?;
    let story = Story::record(&world)?;
    let mut dice = Dice(seed);
    let cuts = if full { FULL } else { SHORT };
    let mut broken = Vec::new();
    for cut in 0..cuts {
        // A part is as likely as any other, however long it is; so is its very end.
        let part = &story.parts[cut % story.parts.len()];
        let deeds = match dice.below(6) {
            0 => part.to,
            _ => part.from + dice.below((part.to - part.from + 1) as u64) as usize,
        };
        let names = if dice.below(3) == 0 { Names::ByFile } else { Names::ByFolder };
        let case = dice.next();
        if let Err(fault) = story.cut(&world, deeds, names, case) {
            broken.push(format!("in {}, after deed {deeds}, {names:?}, case {case}: {fault}", part.name));
        }
    }
    match broken.len() {
        0 => Ok(Power::Held { cuts, deeds: story.disk.deeds(), promised: story.promises.len() }),
        count => {
            broken.truncate(12);
            Err(format!("{count} of {cuts} cuts (seed {seed}) broke something:\n{}", broken.join("\n"))
                .into())
        }
    }
}

impl Story {
    /// Plays it once, under strace, and learns what happens in it.
    fn record(world: &World) -> Result<Story, Fault> {
        let folder = world.aside("");
        fs::create_dir_all(world.home().join("p"))?;
        fs::create_dir_all(world.home().join(".claude"))?;
        fs::create_dir_all(world.state())?;
        fs::write(folder.join(FILE), "first\n")?;
        fs::write(folder.join(SETTINGS), "{\n  \"model\": \"opus\"\n}\n")?;
        let mut teller = Teller {
            world,
            trace: tempfile::NamedTempFile::new()?,
            story: Story {
                disk: Disk::of(&folder)?,
                parts: Vec::new(),
                promises: Vec::new(),
                file: Versions(Vec::new()),
                settings: Versions(Vec::new()),
            },
        };
        teller.look()?;
        teller.tell()?;
        Ok(teller.story)
    }

    /// Cuts the power after some deeds, and looks at what is left.
    fn cut(&self, world: &World, deeds: usize, names: Names, case: u64) -> Result<(), Fault> {
        let folder = world.aside("");
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() { fs::remove_dir_all(path)? } else { fs::remove_file(path)? }
        }
        self.disk.after_cut(deeds, names, &mut Dice(case), &folder)?;
        fs::create_dir_all(world.home())?;
        self.check(world, deeds)
    }

    fn check(&self, world: &World, deeds: usize) -> Result<(), Fault> {
        let folder = world.aside("");
        let text = |path: &str| {
            fs::read(folder.join(path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        let may = self.settings.at(deeds, &self.parts);
        if !may.contains(&text(SETTINGS)) {
            return Err(format!("the settings hold {:?}, and may hold {may:?}", text(SETTINGS)).into());
        }
        // The safe first: whoever opens it finishes what was begun.
        if world.state().join("unstuck/vault").exists() {
            let checked = world.run(&["snapshots", "check"])?;
            if !checked.status.success() && !checked.stderr.contains("no snapshot") {
                return Err(format!("the safe is not sound: {checked:?}").into());
            }
        }
        let may = self.file.at(deeds, &self.parts);
        if !may.contains(&text(FILE)) {
            return Err(format!("the user's file holds {:?}, and may hold {may:?}", text(FILE)).into());
        }
        let kept: Vec<&Promise> = self.promises.iter().filter(|promise| promise.after < deeds).collect();
        for promise in &kept {
            if let Promised::Snapshot { id, call, content } = &promise.what {
                brings_back(world, id.as_deref(), call.as_deref(), content)?;
            }
        }
        // The next hook works.
        let fresh = World::send(world, &[call("fresh", "fresh-call", "ls")])?;
        let answers = fresh.answers()?;
        let is_kept = |answer: &Value| matches!(answer["kept"].as_str(), Some("stored" | "recorded"));
        if !fresh.status.success() || !fresh.stderr.is_empty() || !answers.iter().all(is_kept) {
            return Err(format!("the next hook: {fresh:?}").into());
        }
        let exported = world.run(&["export", "--jsonl", "--only", "calls"])?;
        if !exported.status.success() || !exported.stderr.is_empty() {
            return Err(format!("the export: {exported:?}").into());
        }
        for promise in &kept {
            if let Promised::Call(id) = &promise.what
                && !exported.stdout.contains(&format!("\"call_id\":\"{id}\""))
            {
                return Err(format!("{id} was stored, and is gone").into());
            }
        }
        let damaged = world.store().join("damaged");
        if damaged.exists() {
            return Err("the database was set aside as damaged".into());
        }
        is_sound(world, &[&READABLE[..], &["chain"]].concat())
    }
}

/// What the doctor looks at that shows whether everything can be read.
pub const READABLE: [&str; 4] = ["database", "rows", "format", "damaged"];

/// Does the doctor find the store as it should be, in these checks?
pub fn is_sound(world: &World, checks: &[&str]) -> Result<(), Fault> {
    let doctor = world.run(&["doctor", "claude", "--json"])?;
    let found: Value = serde_json::from_str(&doctor.stdout).map_err(|_| format!("the doctor: {doctor:?}"))?;
    let bad = |finding: &&Value| {
        finding["check"].as_str().is_some_and(|check| checks.contains(&check))
            && ["warning", "error"].map(Some).contains(&finding["severity"].as_str())
    };
    match found["findings"].as_array().into_iter().flatten().find(bad) {
        None => Ok(()),
        Some(finding) => Err(format!("the doctor finds {finding}").into()),
    }
}

/// Is a snapshot there, and does it bring the file back?
fn brings_back(world: &World, id: Option<&str>, call: Option<&str>, content: &str) -> Result<(), Fault> {
    let listed = world.run(&["snapshots", "--json"])?;
    let all: Vec<Value> = listed.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let is_it = |found: &&Value| match (id, call) {
        (Some(id), _) => found["id"] == id,
        (None, call) => found["call_id"].as_str() == call,
    };
    let found =
        all.iter().find(is_it).ok_or_else(|| format!("the snapshot {id:?} {call:?} is gone: {listed:?}"))?;
    let id = found["id"].as_str().unwrap_or_default();
    let file = world.home().join("p/a.txt");
    let shown = world.run(&["snapshots", "cat", id, &file.to_string_lossy()])?;
    match shown.stdout == content {
        true => Ok(()),
        false => Err(format!("{id} brings back {shown:?} and not {content:?}").into()),
    }
}

/// A call that an agent asks for.
fn call(session: &str, id: &str, command: &str) -> Value {
    json!({"event": "before", "session": session, "call_id": id, "tool": "Bash", "input": {"command": command}})
}

/// Tells the story and writes it down.
struct Teller<'w> {
    world: &'w World,
    trace: tempfile::NamedTempFile,
    story: Story,
}

impl Teller<'_> {
    fn tell(&mut self) -> Result<(), Fault> {
        let home = self.world.home();
        let risky = |id: &str| {
            let mut risky = call("s", id, "rm -rf p");
            risky["cwd"] = json!(home);
            risky
        };
        let end = |id: &str, command: &str, code: i32| {
            let mut end = call("s", id, command);
            end["event"] = json!("after");
            end["exit_code"] = json!(code);
            end["stderr"] = json!(format!("{command}: no such thing, in many words {}", "x".repeat(6000)));
            end
        };
        let first = "first\n".to_owned();
        self.hook("the first call", &[call("s", "c0", "make")])?;
        self.hook("calls", &[end("c0", "make", 2), call("s", "c1", "ls"), end("c1", "ls", 0)])?;
        self.hook("a call that is protected", &[risky("risky-1")])?;
        self.promise_protected("risky-1", &first)?;
        // The call runs, and something else is written.
        fs::write(self.world.aside(FILE), "second\n")?;
        self.catch_up()?;
        self.hook("its end", &[end("risky-1", "rm -rf p", 0)])?;
        let words = self.command("a snapshot by hand", &["snapshot", "p", "--json"])?;
        self.promise_snapshot(&words, "second\n")?;
        self.command("an undo", &["undo", "--force"])?;
        self.command("its taking back", &["redo"])?;
        self.command("hooks are installed", &["install", "claude"])?;
        self.held("the database is held", &[call("s", "late", "ls"), end("late", "ls", 0)])?;
        self.hook("the spool is taken in", &[call("s", "c2", "ls"), end("c2", "ls", 0)])?;
        self.hook("another call that is protected", &[risky("risky-2")])?;
        self.promise_protected("risky-2", "second\n")?;
        for number in 0..3 {
            let id = |part: usize| format!("many-{number}-{part}");
            let many: Vec<Value> =
                (0..40).flat_map(|part| [call("s", &id(part), "ls"), end(&id(part), "ls", 1)]).collect();
            self.hook("many calls", &many)?;
        }
        self.command("all is tidied up", &["gc"])?;
        self.hook("a last call", &[call("s", "c3", "ls"), end("c3", "ls", 0)])?;
        self.command("hooks are taken away", &["uninstall", "claude"])?;
        Ok(())
    }

    /// A hook; the calls that it calls stored are promised.
    fn hook(&mut self, name: &'static str, payloads: &[Value]) -> Result<(), Fault> {
        let words = self.traced(name, &["hook", "generic"], &lines(payloads))?;
        let answers: Vec<(usize, Value)> = words
            .iter()
            .flat_map(|word| word.text.lines().map(|line| (word.after, line)))
            .filter_map(|(after, line)| Some((after, serde_json::from_str(line).ok()?)))
            .collect();
        if answers.len() != payloads.len() {
            return Err(format!("{name}: {} answers to {}", answers.len(), payloads.len()).into());
        }
        for ((after, answer), payload) in answers.iter().zip(payloads) {
            let id = payload["call_id"].as_str().unwrap_or_default().to_owned();
            if answer["kept"] == "stored" {
                self.story.promises.push(Promise { after: *after, what: Promised::Call(id) });
            }
        }
        Ok(())
    }

    /// What a hook said of a call that is protected: it is stored, and so is its snapshot.
    fn promise_protected(&mut self, id: &str, content: &str) -> Result<(), Fault> {
        let is_it = |promise: &&Promise| matches!(&promise.what, Promised::Call(call) if call == id);
        let after = self.story.promises.iter().find(is_it).map(|promise| promise.after);
        let after = after.ok_or_else(|| format!("{id} is protected, and was not called stored"))?;
        let what = Promised::Snapshot { id: None, call: Some(id.to_owned()), content: content.to_owned() };
        self.story.promises.push(Promise { after, what });
        Ok(())
    }

    fn promise_snapshot(&mut self, words: &[Word], content: &str) -> Result<(), Fault> {
        let told = words.iter().find_map(|word| {
            let told: Value = serde_json::from_str(word.text.trim()).ok()?;
            Some((word.after, told["id"].as_str()?.to_owned()))
        });
        let (after, id) = told.ok_or("no snapshot was told of")?;
        let what = Promised::Snapshot { id: Some(id), call: None, content: content.to_owned() };
        self.story.promises.push(Promise { after, what });
        Ok(())
    }

    /// A command that must succeed.
    fn command(&mut self, name: &'static str, args: &[&str]) -> Result<Vec<Word>, Fault> {
        self.traced(name, args, b"")
    }

    /// A hook while another process holds the database.
    fn held(&mut self, name: &'static str, payloads: &[Value]) -> Result<(), Fault> {
        let holder = Connection::open(self.world.store().join("timeline.db"))?;
        holder.execute_batch("BEGIN IMMEDIATE")?;
        let done = self.traced(name, &["hook", "generic"], &lines(payloads));
        holder.execute_batch("ROLLBACK")?;
        drop(holder);
        let words = done?;
        self.catch_up()?;
        match words.iter().any(|word| word.text.contains("\"kept\":\"spooled\"")) {
            true => Ok(()),
            false => Err("nothing was spooled".into()),
        }
    }

    fn traced(&mut self, name: &'static str, args: &[&str], input: &[u8]) -> Result<Vec<Word>, Fault> {
        let path = self.trace.path().to_string_lossy().into_owned();
        let before: Vec<String> =
            ["strace", "-f", "-qq", "-y", "-s", "16777216", "-o", &path, "-e", CALLS, "-e", "signal=none"]
                .map(str::to_owned)
                .into();
        let from = self.story.disk.deeds();
        let reply = speak(self.world.command(&before, args), input, None)?;
        if !reply.status.success() {
            return Err(format!("{name}: {reply:?}").into());
        }
        let trace = String::from_utf8_lossy(&fs::read(self.trace.path())?).into_owned();
        let folder = self.world.aside("");
        let mut player = Player::new(&mut self.story.disk, &folder);
        player.play(&trace)?;
        let words = player.words;
        let wrong = self.story.disk.differs(&folder)?;
        if !wrong.is_empty() {
            return Err(format!("{name}: the trace does not explain {}", wrong.join(", ")).into());
        }
        self.story.parts.push(Part { name, from, to: self.story.disk.deeds() });
        self.look()?;
        Ok(words)
    }

    /// What the story itself did to the files is on the disk.
    fn catch_up(&mut self) -> Result<(), Fault> {
        self.story.disk.catch_up(&self.world.aside(""))?;
        self.look()
    }

    /// Notes what the files hold whose content is watched.
    fn look(&mut self) -> Result<(), Fault> {
        let deeds = self.story.disk.deeds();
        let text = |path: &str| fs::read_to_string(self.world.aside(path)).ok();
        self.story.file.0.push((deeds, text(FILE)));
        self.story.settings.0.push((deeds, text(SETTINGS)));
        Ok(())
    }
}
