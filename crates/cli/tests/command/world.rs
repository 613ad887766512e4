//! A machine with nothing on it, and all that `unstuck` says there.

use std::fmt;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

/// An empty home, which is also the working directory. Nothing of the real machine but its programs can be seen from here.
pub(crate) struct World {
    home: TempDir,
}

impl World {
    pub(crate) fn empty() -> World {
        World { home: tempfile::tempdir().unwrap() }
    }

    /// Puts a file into the home.
    pub(crate) fn with(self, path: &str, content: impl AsRef<[u8]>) -> World {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    /// The command, ready to be started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_unstuck"));
        command.args(args).current_dir(self.home.path()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LC_ALL", "C");
        command.env("HOME", self.home.path()).env("XDG_CONFIG_HOME", self.home.path().join("config"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, args: &[&str], stdin: impl AsRef<[u8]>) -> Said {
        let mut child = self.command(args).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let input = stdin.as_ref();
        thread::scope(|scope| {
            // Whoever reads only half of its input is not at fault.
            scope.spawn(move || pipe.write_all(input).ok());
            Said::by(child)
        })
    }

    /// Runs it to its end in a folder of the home.
    pub(crate) fn run_in(&self, folder: &str, args: &[&str]) -> Said {
        Said::by(self.command(args).current_dir(self.path(folder)).stdin(Stdio::null()).spawn().unwrap())
    }

    /// Runs it as somebody who may not read everything.
    pub(crate) fn of_nobody(&self, args: &[&str], stdin: impl AsRef<[u8]>) -> Said {
        let ours = self.command(args);
        let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let give_to = |owner: &str| {
            if is_root {
                let given = Command::new("chown").args(["-R", owner]).arg(self.path("")).status();
                assert!(given.unwrap().success());
            }
        };
        let mut command = Command::new(if is_root { "setpriv" } else { "env" });
        if is_root {
            command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        }
        give_to("65534");
        command.arg(ours.get_program()).args(ours.get_args()).current_dir(self.path("")).env_clear();
        command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(stdin.as_ref()).ok();
        let said = Said::by(child);
        give_to("0");
        said
    }

    /// Diagnoses one recorded failure and returns the answer.
    pub(crate) fn answer(&self, failure: &Value) -> Value {
        self.run(&["diagnose", "--jsonl"], failure.to_string()).json()
    }
}

/// All that a process said.
#[derive(PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) exit: i32,
}

impl Said {
    /// What the child says until it ends.
    pub(crate) fn by(child: Child) -> Said {
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let exit = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        Said { stdout, stderr, exit }
    }

    pub(crate) fn stdout(&self) -> &str {
        str::from_utf8(&self.stdout).unwrap()
    }

    pub(crate) fn stderr(&self) -> &str {
        str::from_utf8(&self.stderr).unwrap()
    }

    /// The only line of standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let [only] = &self.json_lines()[..] else { panic!("expected one line:\n{self}") };
        only.clone()
    }

    /// Every line of standard output.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        assert_eq!((self.stderr(), self.exit), ("", 0), "{self}");
        self.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Fails unless the words stand somewhere on standard error and it ended with this code.
    #[track_caller]
    pub(crate) fn complains(&self, exit: i32, words: &[&str]) {
        assert_eq!(self.exit, exit, "{self}");
        words.iter().for_each(|words| assert!(self.stderr().contains(words), "{words} is not in\n{self}"));
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, said) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !said.is_empty() {
                write!(f, "--- {name}\n{}", String::from_utf8_lossy(said))?;
            }
        }
        write!(f, "--- exit {}", self.exit)
    }
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
