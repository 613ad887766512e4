//! A machine with nothing on it but the release binary, driven as an agent's hooks drive it: one short process per payload.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Fault;

/// Where Linux keeps files in memory.
pub const MEMORY: &str = "/dev/shm";

/// A home and a state folder of their own.
pub struct World {
    folder: TempDir,
    unstuck: PathBuf,
}

/// What a process said, and how it ended.
#[derive(Debug)]
pub struct Reply {
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// How it ended.
    pub status: ExitStatus,
}

/// What an answer says about the entry it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Told {
    /// It was never sent, or nobody answered: anything may have become of it.
    #[default]
    Nothing,
    /// It stands in the database, and survives a power cut.
    Stored,
    /// It stands in the database.
    Recorded,
    /// It waits in the spool.
    Spooled,
    /// It was said to be lost.
    Lost,
}

impl Told {
    /// Was it promised that it is kept?
    pub fn is_acknowledged(self) -> bool {
        match self {
            Told::Stored | Told::Recorded | Told::Spooled => true,
            Told::Nothing | Told::Lost => false,
        }
    }

    /// Reads it from an answer.
    pub fn of(answer: &Value) -> Told {
        match answer["kept"].as_str() {
            Some("stored") => Told::Stored,
            Some("recorded") => Told::Recorded,
            Some("spooled") => Told::Spooled,
            Some("lost") => Told::Lost,
            _ => Told::Nothing,
        }
    }
}

impl Reply {
    /// The answers, one for each line; a line that is no JSON is a fault.
    pub fn answers(&self) -> Result<Vec<Value>, Fault> {
        let read = |line: &str| {
            serde_json::from_str(line).map_err(|error| format!("it answered {line:?}: {error}").into())
        };
        self.stdout.lines().map(read).collect()
    }

    /// What was told about the entries that were sent, in their order; without exit code 0 nothing is promised.
    pub fn told(&self) -> Result<Vec<Told>, Fault> {
        let answers = self.answers()?;
        Ok(match self.status.success() {
            true => answers.iter().map(Told::of).collect(),
            false => Vec::new(),
        })
    }
}

impl World {
    /// An empty one.
    pub fn new(unstuck: &Path) -> Result<World, Fault> {
        World::inside(unstuck, tempfile::tempdir()?)
    }

    /// An empty one in memory, where the system has a place for that: its flushes cost nothing.
    pub fn in_memory(unstuck: &Path) -> Result<World, Fault> {
        World::inside(unstuck, tempfile::tempdir_in(MEMORY).or_else(|_| tempfile::tempdir())?)
    }

    fn inside(unstuck: &Path, folder: TempDir) -> Result<World, Fault> {
        let world = World { folder, unstuck: unstuck.to_owned() };
        fs::create_dir(world.home())?;
        Ok(world)
    }

    /// One in memory whose state is a copy of what lies in `template`.
    pub fn like(unstuck: &Path, template: &Path) -> Result<World, Fault> {
        let world = World::in_memory(unstuck)?;
        copy_folder(template, &world.state())?;
        Ok(world)
    }

    /// The folder of the state, which need not be there.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The store's own folder in it.
    pub fn store(&self) -> PathBuf {
        self.state().join("unstuck")
    }

    /// A place for other files.
    pub fn aside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The home folder, in which programs are started.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// `unstuck` with these arguments, behind `before`: the words of a program that starts it.
    pub fn command<S: AsRef<OsStr>>(&self, before: &[S], args: &[&str]) -> Command {
        let mut words = before.iter().map(AsRef::as_ref).chain([self.unstuck.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).args(args);
        self.surround(&mut command);
        command
    }

    /// Lets any program find this world's home and state, and nothing of ours but the search path.
    pub fn surround(&self, command: &mut Command) {
        command.current_dir(self.home());
        command.env_clear().env("HOME", self.home()).env("XDG_STATE_HOME", self.state());
        for name in ["PATH", "TMPDIR"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
    }

    /// Runs `unstuck` with these arguments.
    pub fn run(&self, args: &[&str]) -> Result<Reply, Fault> {
        speak(self.command::<&str>(&[], args), b"", None)
    }

    /// Sends payloads to one process of the hook.
    pub fn send(&self, payloads: &[Value]) -> Result<Reply, Fault> {
        speak(self.hook::<&str>(&[]), &lines(payloads), None)
    }

    /// The hook, behind the words of a program that starts it.
    pub fn hook<S: AsRef<OsStr>>(&self, before: &[S]) -> Command {
        self.command(before, &["hook", "generic"])
    }
}

/// Payloads as the hook reads them.
pub fn lines(payloads: &[Value]) -> Vec<u8> {
    payloads.iter().flat_map(|payload| format!("{payload}\n").into_bytes()).collect()
}

/// Feeds a process and waits for its end; it is killed after `life`, if it has one.
pub fn speak(mut command: Command, input: &[u8], life: Option<Duration>) -> Result<Reply, Fault> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(
            |error| format!("{} does not start: {error}", command.get_program().to_string_lossy()),
        )?;
    let mut stdin = child.stdin.take().ok_or("no standard input")?;
    if let Some(life) = life {
        // A killed process may leave what was sent to it unread; that is the point of it.
        let _unread = stdin.write_all(input);
        drop(stdin);
        thread::sleep(life);
        child.kill()?;
        return Ok(reply(child.wait_with_output()?));
    }
    let output = thread::scope(|scope| {
        // What is sent may be larger than a pipe holds, while the process already answers.
        scope.spawn(move || {
            let _unread = stdin.write_all(input);
        });
        child.wait_with_output()
    })?;
    Ok(reply(output))
}

fn reply(output: std::process::Output) -> Reply {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Reply { stdout: text(output.stdout), stderr: text(output.stderr), status: output.status }
}

/// A call that can be told from all others by its mark.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its session.
    pub session: String,
    /// Stands in its id and in its input.
    pub mark: String,
    /// Does the host give calls ids?
    pub named: bool,
}

impl Call {
    /// A call with an id.
    pub fn named(session: &str, mark: String) -> Call {
        Call { session: session.to_owned(), mark, named: true }
    }

    fn payload(&self, event: &str) -> Value {
        let mut payload = json!({
            "event": event,
            "session": self.session,
            "tool": "Bash",
            "input": {"command": format!("make {}", self.mark)},
        });
        if self.named {
            payload["call_id"] = json!(self.mark);
        }
        payload
    }

    /// It is about to run.
    pub fn before(&self) -> Value {
        self.payload("before")
    }

    /// It ended with this exit code.
    pub fn after(&self, exit_code: i32) -> Value {
        let mut payload = self.payload("after");
        payload["exit_code"] = json!(exit_code);
        payload["duration_ms"] = json!(12);
        payload["stderr"] = match exit_code {
            0 => json!("done\n"),
            _ => json!(format!("make: *** No rule to make target '{}'.  Stop.\n", self.mark)),
        };
        payload
    }
}

/// Copies files and folders; what is not there is an empty folder.
pub fn copy_folder(from: &Path, to: &Path) -> Result<(), Fault> {
    fs::create_dir_all(to)?;
    if !from.exists() {
        return Ok(());
    }
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &target)?,
            false => {
                fs::copy(entry.path(), target)?;
            }
        }
    }
    Ok(())
}
