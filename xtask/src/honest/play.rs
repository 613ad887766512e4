//! Plays a stretch: real files, real processes, and the hooks of the program under judgement around every call.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use super::host::{Actor, Answer, Asked, Ending, Host};
use super::stretch::{FullStep, Played};
use crate::{Fault, project};

/// No command of a stretch takes longer.
const LONGEST_RUN: Duration = Duration::from_secs(30);
/// A server takes no longer to listen.
const LONGEST_START: Duration = Duration::from_secs(20);
/// For the scripts that stand for programs: which time is it that somebody looks at NAME?
const LOOK: &str = "#!/bin/sh\nn=$(( $(cat \"$SIDE/look-$1\" 2>/dev/null || echo 0) + 1 ))\necho $n > \"$SIDE/look-$1\"\necho $n\n";
/// Whoever commits needs a name.
const GIT_SETTINGS: &str = "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n";

/// A call that was made, with what was said of it.
#[derive(Debug)]
pub struct Turn {
    /// The number of the step, from 1.
    pub step: usize,
    /// Who made it.
    pub actor: Actor,
    /// The call in one line.
    pub shown: String,
    /// Did it fail, in truth?
    pub fails: bool,
    /// The refusal, where there was one. The call was made all the same, without hooks.
    pub refusal: Option<String>,
    /// May it be refused?
    pub may_refuse: bool,
    /// Words that may be said although it works.
    pub may_say: Option<String>,
    /// What was said before it ran.
    pub before: String,
    /// What was said with its result.
    pub after: String,
    /// The host's name for it.
    pub key: String,
}

/// How a stretch went.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The calls.
    pub turns: Vec<Turn>,
    /// What was said beside calls, by step.
    pub beside: Vec<(usize, String)>,
    /// Where it did not go as it is written: then it proves nothing.
    pub unscripted: Vec<String>,
    /// What is recorded of the calls, by the names of the host.
    pub recorded: BTreeMap<String, Value>,
    /// Where it was played, if that is kept.
    pub kept: Option<PathBuf>,
}

/// Plays one stretch.
pub fn play(played: &Played, binary: &Path, keep: bool) -> Result<Outcome, Fault> {
    let mut stage = Stage::new(played, binary)?;
    let mut outcome = Outcome::default();
    for (number, step) in played.stretch.steps.iter().enumerate() {
        let step = stage.filled(step.full());
        for _ in 0..step.times.unwrap_or(1) {
            stage.take(number + 1, &step, &mut outcome)?;
        }
    }
    outcome.recorded = stage.recorded()?;
    if keep {
        outcome.kept = Some(stage.folder.keep_open());
    }
    Ok(outcome)
}

/// A folder that goes away with the stretch, unless it is kept.
struct Folder(Option<TempDir>);

impl Folder {
    fn path(&self) -> &Path {
        self.0.as_ref().expect("it is taken only at the end").path()
    }

    fn keep_open(&mut self) -> PathBuf {
        self.0.take().expect("it is taken once").keep()
    }
}

/// Where a stretch is played.
struct Stage<'p> {
    played: &'p Played,
    binary: &'p Path,
    folder: Folder,
    port: u16,
    /// Those who have begun.
    began: BTreeSet<Actor>,
    calls: usize,
    /// The process groups of commands, which may have left something running.
    groups: Vec<Pid>,
    children: Vec<Child>,
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        for group in &self.groups {
            // A group that is gone is no fault.
            killpg(*group, Signal::SIGKILL).ok();
        }
        for child in &mut self.children {
            child.wait().ok();
        }
    }
}

impl<'p> Stage<'p> {
    fn new(played: &'p Played, binary: &'p Path) -> Result<Stage<'p>, Fault> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let folder = Folder(Some(tempfile::Builder::new().prefix("honest").tempdir()?));
        let mut stage = Stage {
            played,
            binary,
            folder,
            port,
            began: BTreeSet::new(),
            calls: 0,
            groups: Vec::new(),
            children: Vec::new(),
        };
        for name in ["app", "home", "side/bin", "state"] {
            fs::create_dir_all(stage.folder.path().join(name))?;
        }
        fs::write(stage.folder.path().join("home/.gitconfig"), GIT_SETTINGS)?;
        stage.program("look", LOOK)?;
        for (name, script) in &played.stretch.programs {
            let script = stage.fill(script);
            let first = if script.starts_with("#!") { "" } else { "#!/bin/bash\n" };
            stage.program(name, &format!("{first}{script}"))?;
        }
        for (name, text) in &played.stretch.files {
            let path = stage.app().join(name);
            fs::create_dir_all(path.parent().unwrap_or(&path))?;
            fs::write(&path, stage.fill(text))?;
            if name.ends_with(".sh") || !name.contains('.') {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
            }
        }
        if played.stretch.git {
            let first = "git init -q && git add -A && git commit -q --allow-empty -m 'First commit'";
            let (code, printed) = stage.run(first, None)?;
            if code != 0 {
                return Err(format!("{}: {printed}", played.name).into());
            }
        }
        Ok(stage)
    }

    fn app(&self) -> PathBuf {
        self.folder.path().join("app")
    }

    fn program(&self, name: &str, script: &str) -> Result<(), Fault> {
        let path = self.folder.path().join("side/bin").join(name);
        fs::write(&path, script)?;
        Ok(fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?)
    }

    /// A text with what only this run knows.
    fn fill(&self, text: &str) -> String {
        text.replace("{port}", &self.port.to_string()).replace("{dir}", &self.app().display().to_string())
    }

    fn filled(&self, mut step: FullStep) -> FullStep {
        let texts =
            [&mut step.call, &mut step.old, &mut step.new, &mut step.text, &mut step.says, &mut step.outside];
        for text in texts.into_iter().flatten() {
            *text = self.fill(text);
        }
        step
    }

    fn command(&self, program: &Path, cwd: Option<&str>) -> Command {
        let root = self.folder.path();
        let mut command = Command::new(program);
        let path =
            format!("{}:{}", root.join("side/bin").display(), std::env::var("PATH").unwrap_or_default());
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", root.join("home"))
            .env("SIDE", root.join("side"))
            .env("LANG", "C")
            // It takes a file of the same size and second for the same file.
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("TMPDIR", root.join("side"))
            .env("CLAUDE_CODE_SESSION_ATTENDED", "1")
            .env("UNSTUCK_STORE_STATE_DIR", root.join("state"))
            // On a crowded machine a word that comes late is a word all the same.
            .env("UNSTUCK_HOOK_DEADLINE_BEFORE", "8s")
            .env("UNSTUCK_HOOK_DEADLINE_AFTER", "8s")
            .current_dir(cwd.map_or_else(|| self.app(), |cwd| self.app().join(cwd)));
        command
    }

    /// Runs a command line to its end; returns its exit code, and what it printed on both channels.
    fn run(&mut self, line: &str, cwd: Option<&str>) -> Result<(i32, String), Fault> {
        let (mut reader, writer) = std::io::pipe()?;
        let mut command = self.command(Path::new("bash"), cwd);
        command.args(["-c", line]).stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.process_group(0).spawn()?;
        // The command holds our copies of the pipe's end; while they live, the pipe does not end.
        drop(command);
        let group = Pid::from_raw(child.id().cast_signed());
        self.groups.push(group);
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut printed = Vec::new();
            // What is cut off is judged by what came.
            reader.read_to_end(&mut printed).ok();
            sender.send(printed).ok();
        });
        let printed = receiver.recv_timeout(LONGEST_RUN).map_err(|_| {
            killpg(group, Signal::SIGKILL).ok();
            format!("{}: {line:?} does not end", self.played.name)
        })?;
        let status = child.wait()?;
        Ok((status.code().unwrap_or(137), String::from_utf8_lossy(&printed).into_owned()))
    }

    /// Starts a command line that goes on by itself.
    fn launch(&mut self, line: &str, cwd: Option<&str>) -> Result<(), Fault> {
        let mut command = self.command(Path::new("bash"), cwd);
        command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.process_group(0).spawn()?;
        self.groups.push(Pid::from_raw(child.id().cast_signed()));
        self.children.push(child);
        Ok(())
    }

    /// Sends one payload to the hook.
    fn send(&self, actor: &Actor, payload: &Value) -> Result<Answer, Fault> {
        let mut command = self.command(self.binary, None);
        command.args(["hook", actor.host.word()]).stderr(Stdio::null());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut stdin = child.stdin.take().ok_or("it has no input")?;
        stdin.write_all(payload.to_string().as_bytes())?;
        drop(stdin);
        let output = child.wait_with_output()?;
        Ok(actor.reads(&String::from_utf8_lossy(&output.stdout)))
    }

    fn actor(&self, step: &FullStep) -> Actor {
        let host = step.host.unwrap_or(self.played.host);
        let session = format!("{}-{}", host.word(), step.session.as_deref().unwrap_or("1"));
        Actor { host, session, agent: step.agent.clone() }
    }

    fn take(&mut self, number: usize, step: &FullStep, outcome: &mut Outcome) -> Result<(), Fault> {
        if let Some(pause) = step.wait {
            thread::sleep(Duration::from_millis(pause));
            return Ok(());
        }
        if step.listens {
            return self.wait_for_port();
        }
        let cwd = step.cwd.as_deref();
        if let Some(line) = &step.outside {
            if step.background {
                return self.launch(line, cwd);
            }
            let (code, printed) = self.run(line, cwd)?;
            if code != 0 {
                outcome.unscripted.push(format!("step {number}: `{line}` ended with {code}: {printed}"));
            }
            return Ok(());
        }
        let actor = self.actor(step);
        let folder = cwd.map_or_else(|| self.app(), |cwd| self.app().join(cwd)).display().to_string();
        if self.began.insert(actor.clone())
            && let Some(payload) = actor.begins(&folder)
        {
            let words = self.send(&actor, &payload)?.words;
            note_beside(outcome, number, words);
        }
        if let Some(words) = &step.prompt {
            let words = self.send(&actor, &actor.prompted(&folder, words))?.words;
            note_beside(outcome, number, words);
            return Ok(());
        }
        self.call(number, step, &actor, folder, outcome)
    }

    fn wait_for_port(&self) -> Result<(), Fault> {
        let until = Instant::now() + LONGEST_START;
        while Instant::now() < until {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(30));
        }
        Err(format!("{}: nothing listens on {}", self.played.name, self.port).into())
    }

    /// Makes one call as the host makes it: the hook before, the call itself, the hooks after.
    fn call(
        &mut self,
        number: usize,
        step: &FullStep,
        actor: &Actor,
        cwd: String,
        outcome: &mut Outcome,
    ) -> Result<(), Fault> {
        let deed = Deed::of(step, actor.host, Path::new(&cwd))?;
        self.calls += 1;
        let (tool, input) = deed.tool(actor.host);
        let mut asked = Asked { key: format!("call_{}", self.calls), cwd, tool, input };
        let mut turn = Turn {
            step: number,
            actor: actor.clone(),
            shown: deed.shown(),
            fails: step.fails,
            refusal: None,
            may_refuse: step.may_refuse,
            may_say: step.may_say.clone(),
            before: String::new(),
            after: String::new(),
            key: asked.key.clone(),
        };
        // An edit that does not fit is turned down by Claude Code itself, before any hook hears of it.
        let turned_down = deed.turned_down(actor.host);
        let mut answer = Answer::default();
        if let Some(payload) = actor.before(&asked, turned_down.as_ref()) {
            answer = self.send(actor, &payload)?;
        }
        turn.before = answer.words;
        turn.refusal = answer.refusal;
        let rewritten =
            answer.rewritten.as_ref().and_then(|input| input["command"].as_str()).map(str::to_owned);
        if let Some(input) = answer.rewritten {
            asked.input = input;
        }
        let ending = match turned_down {
            Some(ending) => ending,
            None => self.perform(&deed, rewritten.as_deref(), step)?,
        };
        if step.by_code {
            turn.fails = ending.is_bad();
        } else {
            compare(number, step, &turn, &ending, outcome);
        }
        if turn.refusal.is_none() {
            if let Some(line) = actor.transcript_line(&asked, &ending) {
                let path = self.folder.path().join(format!("{}.jsonl", actor.session));
                OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())?;
            }
            turn.after = self.tell(actor, &asked, &ending, &deed, step, &mut turn.fails)?;
        }
        outcome.turns.push(turn);
        Ok(())
    }

    /// Sends what the host sends after a call; returns what the model is told.
    fn tell(
        &mut self,
        actor: &Actor,
        asked: &Asked,
        ending: &Ending,
        deed: &Deed,
        step: &FullStep,
        fails: &mut bool,
    ) -> Result<String, Fault> {
        let mut words = Vec::new();
        let mut is_again = false;
        for payload in actor.after(asked, ending, false) {
            let answer = self.send(actor, &payload)?;
            words.extend([answer.refusal.unwrap_or_default(), answer.words]);
            is_again |= answer.again;
        }
        if is_again {
            // The first result is never shown.
            words.clear();
            let ending = self.perform(deed, None, step)?;
            *fails = ending.is_bad();
            for payload in actor.after(asked, &ending, true) {
                let answer = self.send(actor, &payload)?;
                words.extend([answer.refusal.unwrap_or_default(), answer.words]);
            }
        }
        words.retain(|words| !words.trim().is_empty());
        Ok(words.join("\n"))
    }

    fn perform(&mut self, deed: &Deed, rewritten: Option<&str>, step: &FullStep) -> Result<Ending, Fault> {
        Ok(match deed {
            Deed::Shell { line, background: true } => {
                self.launch(line, step.cwd.as_deref())?;
                Ending::Launched
            }
            Deed::Shell { line, background: false } => {
                let (code, printed) = self.run(rewritten.unwrap_or(line), step.cwd.as_deref())?;
                Ending::Exit { code, printed }
            }
            Deed::Edit { path, old, new, .. } => match fs::read_to_string(path) {
                Ok(text) if text.contains(old) => {
                    fs::write(path, text.replacen(old, new, 1))?;
                    Ending::Answer { is_ok: true, text: "The file has been updated.".to_owned() }
                }
                Ok(_) | Err(_) => Ending::Answer { is_ok: false, text: NOT_FOUND.to_owned() },
            },
            Deed::Write { path, text, .. } => {
                fs::create_dir_all(path.parent().unwrap_or(path))?;
                File::create(path)?.write_all(text.as_bytes())?;
                Ending::Answer { is_ok: true, text: "File written.".to_owned() }
            }
            Deed::Read { path, cwd } => match fs::read_to_string(path) {
                Ok(text) => Ending::Answer { is_ok: true, text },
                Err(_) => Ending::Answer {
                    is_ok: false,
                    text: format!(
                        "File does not exist. Note: your current working directory is {}.",
                        cwd.display()
                    ),
                },
            },
            Deed::Tool { says, fails, .. } => Ending::Answer { is_ok: !fails, text: says.clone() },
        })
    }

    /// What the program recorded of every call.
    fn recorded(&self) -> Result<BTreeMap<String, Value>, Fault> {
        let output = self.command(self.binary, None).args(["export"]).stderr(Stdio::null()).output()?;
        let rows = project::json_lines(&String::from_utf8_lossy(&output.stdout));
        let name = |row: &Value| Some((row["call_id"].as_str()?.to_owned(), row.clone()));
        Ok(rows.iter().filter_map(name).collect())
    }
}

/// Did the call end as the stretch says?
fn compare(number: usize, step: &FullStep, turn: &Turn, ending: &Ending, outcome: &mut Outcome) {
    let expected = (step.fails && !step.hidden) || step.answers;
    if ending.is_bad() != expected {
        let ended = if expected { "worked" } else { "failed" };
        let shown: String = ending.printed().chars().take(300).collect();
        outcome.unscripted.push(format!("step {number}: `{}` {ended}: {shown}", turn.shown));
    }
}

const NOT_FOUND: &str = "String to replace not found in file.";

fn note_beside(outcome: &mut Outcome, number: usize, words: String) {
    if !words.trim().is_empty() {
        outcome.beside.push((number, words));
    }
}

/// What a step does with a tool.
enum Deed {
    Shell { line: String, background: bool },
    Edit { path: PathBuf, old: String, new: String },
    Write { path: PathBuf, text: String },
    Read { path: PathBuf, cwd: PathBuf },
    Tool { tool: String, input: Value, says: String, fails: bool },
}

impl Deed {
    fn of(step: &FullStep, host: Host, cwd: &Path) -> Result<Deed, Fault> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        if let Some(line) = &step.call {
            return Ok(Deed::Shell { line: line.clone(), background: step.background });
        }
        if let Some(file) = &step.edit {
            return Ok(Deed::Edit { path: cwd.join(file), old: text(&step.old), new: text(&step.new) });
        }
        if let Some(file) = &step.write {
            return Ok(Deed::Write { path: cwd.join(file), text: text(&step.text) });
        }
        if let Some(file) = &step.read {
            let path = cwd.join(file);
            return Ok(match host {
                Host::Codex => Deed::Shell { line: format!("sed -n '1,200p' {file}"), background: false },
                Host::Claude | Host::Gemini | Host::Opencode | Host::Generic => {
                    Deed::Read { path, cwd: cwd.to_owned() }
                }
            });
        }
        if let Some(tool) = &step.tool {
            let input = step.input.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            return Ok(Deed::Tool { tool: tool.clone(), input, says: text(&step.says), fails: step.fails });
        }
        Err(format!("a step does nothing: {step:?}").into())
    }

    fn tool(&self, host: Host) -> (String, Value) {
        match self {
            Deed::Shell { line, background } => host.shell(line, *background),
            Deed::Edit { path, old, new } => host.edit(&path.display().to_string(), old, new),
            Deed::Write { path, text } => host.write(&path.display().to_string(), text),
            Deed::Read { path, .. } => host.read(&path.display().to_string()),
            Deed::Tool { tool, input, .. } => (tool.clone(), input.clone()),
        }
    }

    /// What the host itself says to a call that it does not make.
    fn turned_down(&self, host: Host) -> Option<Ending> {
        match (self, host) {
            (Deed::Edit { path, old, .. }, Host::Claude) => {
                let fits = fs::read_to_string(path).is_ok_and(|text| text.contains(old));
                let text = || format!("{NOT_FOUND}\nString: {old}");
                (!fits).then(|| Ending::TurnedDown { text: text() })
            }
            (_, _) => None,
        }
    }

    fn shown(&self) -> String {
        match self {
            Deed::Shell { line, .. } => line.clone(),
            Deed::Edit { path, .. } => format!("edit {}", name_of(path)),
            Deed::Write { path, .. } => format!("write {}", name_of(path)),
            Deed::Read { path, .. } => format!("read {}", name_of(path)),
            Deed::Tool { tool, input, .. } => format!("{tool} {input}"),
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
