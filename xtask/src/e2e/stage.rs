//! One agent on a machine with nothing else on it: an empty environment, a home and a project of its own, a dummy key, a
//! scripted model, and `unstuck` installed by its own installer.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use super::agents::Agent;
use super::day::DayTotal;
use super::model::{Model, Received, Turn};
use super::programs::Cache;
use crate::{Fault, project};

/// No scenario takes an agent longer; one that does is stopped and has failed.
const LONGEST_RUN: Duration = Duration::from_secs(90);

/// What every run needs.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Where the agents' programs lie.
    pub cache: Cache,
    /// The binary under test.
    pub unstuck: PathBuf,
    /// The MCP server that does what it is told.
    pub scripted: PathBuf,
    /// Are the folders kept?
    pub keep: bool,
    /// The counts of the day's work so far.
    pub day: Arc<DayTotal>,
}

/// An agent's machine.
pub struct Stage {
    /// Who plays on it.
    pub agent: &'static Agent,
    tools: Tools,
    folder: TempDir,
    model: Model,
    env: Vec<(&'static str, String)>,
    longest: Duration,
}

/// How a run went.
#[derive(Debug)]
pub struct Run {
    /// What the model received.
    pub received: Received,
    /// What the agent printed.
    pub stdout: String,
    /// And on the other channel.
    pub stderr: String,
    /// How it ended; nothing when it had to be stopped.
    pub status: Option<ExitStatus>,
    /// How long it took.
    pub took: Duration,
}

impl Stage {
    /// An agent that works with its model, and nothing of ours.
    pub fn bare(agent: &'static Agent, tools: &Tools) -> Result<Stage, Fault> {
        // The name must not hold ours: what the model receives is searched for our words.
        let mut folder = tempfile::Builder::new().prefix("stage-").tempdir()?;
        folder.disable_cleanup(tools.keep);
        let model = Model::start(agent.dialect)?;
        let stage =
            Stage { agent, tools: tools.clone(), folder, model, env: Vec::new(), longest: LONGEST_RUN };
        for path in [
            stage.home(),
            stage.project(),
            stage.folder("tmp"),
            stage.folder("bin"),
            stage.folder("programs"),
        ] {
            fs::create_dir_all(path)?;
        }
        fs::copy(&tools.unstuck, stage.unstuck())?;
        let installed = tools.cache.place(agent.package).join("node_modules").join(agent.program);
        symlink(installed, stage.program())?;
        stage.write("README.md", "# Tide tables\n")?;
        for words in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-qm", "begin"]] {
            let mut git = stage.clean("git");
            git.args(["-c", "user.name=Ada", "-c", "user.email=ada@harbour.example"]).args(words);
            succeed(git.current_dir(stage.project()))?;
        }
        (agent.prepare)(&stage)?;
        Ok(stage)
    }

    /// An agent with `unstuck` installed.
    pub fn set(agent: &'static Agent, tools: &Tools) -> Result<Stage, Fault> {
        let stage = Stage::bare(agent, tools)?;
        stage.install()?;
        Ok(stage)
    }

    /// Installs `unstuck` for the user, as a person would.
    pub fn install(&self) -> Result<(), Fault> {
        self.ask(&["install", self.agent.name, "--user"]).map(drop)
    }

    /// Takes it away again.
    pub fn uninstall(&self) -> Result<(), Fault> {
        self.ask(&["uninstall", self.agent.name, "--user"]).map(drop)
    }

    /// Sets a variable for the agent.
    pub fn set_env(&mut self, name: &'static str, value: &str) {
        self.env.push((name, value.to_owned()));
    }

    /// Lets a run take longer than those of scenarios do.
    pub fn set_longest(&mut self, longest: Duration) {
        self.longest = longest;
    }

    /// The home of the agent's user.
    pub fn home(&self) -> PathBuf {
        self.folder("home")
    }

    /// The folder the agent works in.
    pub fn project(&self) -> PathBuf {
        self.folder("project")
    }

    /// The installed binary.
    pub fn unstuck(&self) -> PathBuf {
        self.folder("bin").join("unstuck")
    }

    /// A place for what must not lie in the project.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the model listens.
    pub fn port(&self) -> u16 {
        self.model.port()
    }

    /// The agent's program, which is on the path under its own name.
    pub fn program(&self) -> PathBuf {
        self.folder("programs").join(self.agent.name)
    }

    /// The MCP server that does what it is told.
    pub fn scripted(&self) -> &Path {
        &self.tools.scripted
    }

    /// The place of another package.
    pub fn cache(&self) -> &Cache {
        &self.tools.cache
    }

    /// Writes a file of the project.
    pub fn write(&self, name: &str, text: &str) -> Result<(), Fault> {
        write(&self.project().join(name), text)
    }

    /// Writes a file below the home.
    pub fn write_home(&self, name: &str, text: &str) -> Result<(), Fault> {
        write(&self.home().join(name), text)
    }

    /// A program with an environment from nothing.
    pub fn clean(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let (programs, node) = (self.folder("programs"), self.tools.cache.node());
        let path = format!("{}:{}:/usr/local/bin:/usr/bin:/bin", programs.display(), node.display());
        command.env_clear().env("PATH", path).env("HOME", self.home()).env("TMPDIR", self.folder("tmp"));
        command.env("TERM", "dumb").env("LANG", "C.UTF-8").env("SHELL", "/bin/bash").env("NO_COLOR", "1");
        command.envs(self.env.iter().map(|(name, value)| (*name, value)));
        command.current_dir(self.project()).stdin(Stdio::null());
        command
    }

    /// Runs the agent while its model plays these turns.
    pub fn play(&self, turns: &[Turn]) -> Result<Run, Fault> {
        self.perform((self.agent.start)(self), turns)
    }

    /// Runs the agent in the session of its last run, with what a person says next.
    pub fn play_resumed(&self, prompt: &str, turns: &[Turn]) -> Result<Run, Fault> {
        self.perform((self.agent.resume?)(self, prompt), turns)
    }

    /// Lets `unstuck agent` run it on a task while its model plays these turns; `ours` is what we are asked for, and what is
    /// `theirs` is passed on.
    pub fn play_headless(
        &self,
        ours: &[&str],
        theirs: &[&str],
        task: &str,
        turns: &[Turn],
    ) -> Result<Run, Fault> {
        self.play_as(self.agent.name, &[ours, &["--"], theirs].concat(), task, turns)
    }

    /// The same under a name that the settings give it.
    pub fn play_as(&self, name: &str, args: &[&str], task: &str, turns: &[Turn]) -> Result<Run, Fault> {
        let mut command = self.clean(self.unstuck());
        // What the agent needs around it: where its model is, and what it shall leave alone.
        let around = (self.agent.start)(self);
        command.envs(around.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.args(["agent", name]).args(args).arg(task);
        self.perform(command, turns)
    }

    fn perform(&self, mut command: Command, turns: &[Turn]) -> Result<Run, Fault> {
        self.model.rehearse(turns.iter().map(|turn| self.agent.spell(turn, &self.project())).collect());
        let start = Instant::now();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", self.agent.name))?;
        let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
        let status = wait(&mut child, start, self.longest)?;
        // What it left behind in its group holds the pipes open, and nobody needs it any more.
        let _gone = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
        let text = |reader: thread::JoinHandle<String>| reader.join().unwrap_or_default();
        Ok(Run {
            received: self.model.received(),
            stdout: text(stdout),
            stderr: text(stderr),
            status,
            took: start.elapsed(),
        })
    }

    /// Asks the installed binary, as its user would; a failure is a fault.
    pub fn ask(&self, args: &[&str]) -> Result<String, Fault> {
        succeed(self.clean(self.unstuck()).args(args))
    }

    /// The whole timeline.
    pub fn timeline(&self) -> Result<Vec<Value>, Fault> {
        Ok(project::json_lines(&self.ask(&["log", "--json", "--since", "0"])?))
    }

    /// Every file below the home and the project with its content, by name: what an installer must give back.
    pub fn files(&self, names: &[&str]) -> Vec<(String, Option<Vec<u8>>)> {
        names.iter().map(|name| ((*name).to_owned(), fs::read(self.home().join(name)).ok())).collect()
    }
}

fn write(path: &Path, text: &str) -> Result<(), Fault> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, text)?)
}

fn succeed(command: &mut Command) -> Result<String, Fault> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(stdout),
        false => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            Err(format!(
                "{:?} {:?}: {}\n{stdout}{stderr}",
                command.get_program(),
                command.get_args(),
                output.status
            )
            .into())
        }
    }
}

fn drain<R: Read + Send + 'static>(pipe: Option<R>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was said before a pipe broke is what there is to show.
        let _read = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, start: Instant, longest: Duration) -> Result<Option<ExitStatus>, Fault> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > longest {
            killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL)?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(5));
    }
}
