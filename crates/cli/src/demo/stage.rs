//! Where the demonstration takes place: a folder with a project and a store, and the environment that commands and hooks are
//! started in. It starts things and tells what came of them; it judges nothing.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use unstuck_exec::{Ending, Job, Run, Stream};
use unstuck_wire::hook::Host;

use crate::agents::{OwnProgram, command_line};
use crate::exit::CommandError;
use crate::scratch::Scratch;
use crate::settings::Key;

/// No command of the story takes longer by itself.
const LIMIT: Duration = Duration::from_secs(30);

/// Settings that differ from the built-in ones. A machine that is busy would otherwise make hooks fall silent, and there
/// would be nothing to see.
const SETTINGS: [(&str, &str); 7] = [
    ("store.filesystem", "local"),
    ("store.wait-before", "5s"),
    ("store.wait-after", "5s"),
    ("hook.deadline-before", "5s"),
    ("hook.deadline-after", "5s"),
    ("rewrite.mode", "auto"),
    // What is saved here is tiny, and a disk that is nearly full is no reason to show nothing.
    ("vault.min-free", "0B"),
];

/// Which programs are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Programs {
    /// Those of the person.
    All,
    /// Those in the project's `bin` alone.
    OfProject,
    /// Those that every system has, wherever the person looks for programs.
    OfSystem,
}

/// The stage.
pub(crate) struct Stage {
    scratch: Scratch,
    /// Our own program, as a word of a command line.
    program: String,
    /// The line that agents run, as it would be installed.
    hook: String,
    variables: Vec<(OsString, OsString)>,
    programs: Programs,
}

/// What a process printed, and how it ended.
pub(crate) struct Ran {
    pub(crate) run: Run,
    pub(crate) stdout: String,
    /// Both outputs, as they came.
    pub(crate) output: String,
}

impl Stage {
    /// Sets it up. Models are spoken to in the language of the person who watches.
    pub(crate) fn set_up(model_language: &str) -> Result<Stage, CommandError> {
        let scratch = Scratch::make("demo")?;
        let program = OwnProgram::here()
            .map_err(|source| CommandError::Unreadable { path: PathBuf::from("unstuck"), source })?;
        let mut stage = Stage {
            program: format!("'{}'", program.path.to_string_lossy().replace('\'', r"'\''")),
            hook: command_line(&program.path.to_string_lossy(), Host::Claude),
            variables: Vec::new(),
            programs: Programs::All,
            scratch,
        };
        fs::create_dir(stage.project())
            .map_err(|source| CommandError::NotMade { path: stage.project(), source })?;
        stage.variables = stage.environment(model_language);
        Ok(stage)
    }

    /// Every setting is said, so that neither a file of the system nor a variable of the person has a say.
    fn environment(&self, model_language: &str) -> Vec<(OsString, OsString)> {
        let ours = SETTINGS.into_iter().chain([("language.model", model_language)]);
        let defaults = Key::ALL.iter().map(|key| (*key, OsString::from(key.row().default)));
        let set = ours.filter_map(|(name, value)| Some((Key::named(name)?, OsString::from(value))));
        let mut variables: Vec<(OsString, OsString)> =
            defaults.chain(set).map(|(key, value)| (OsString::from(key.variable()), value)).collect();
        let home = self.scratch.path();
        variables.extend([
            (OsString::from(Key::StateDir.variable()), self.state().into_os_string()),
            ("HOME".into(), home.into()),
            ("XDG_CONFIG_HOME".into(), home.join("config").into_os_string()),
            // What a shell says of a missing program would otherwise differ from machine to machine.
            ("LC_ALL".into(), "C".into()),
        ]);
        variables
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.scratch.path().join("project")
    }

    /// The folder of the store.
    pub(crate) fn state(&self) -> PathBuf {
        self.scratch.path().join("state")
    }

    /// Leaves everything where it is, and tells where that is.
    pub(crate) fn keep(&mut self) -> &Path {
        self.scratch.keep();
        self.scratch.path()
    }

    pub(crate) fn allow_programs(&mut self, programs: Programs) {
        self.programs = programs;
    }

    /// Puts a file into the project. Scripts are files, so all may be run.
    pub(crate) fn put(&self, name: &str, content: &str) -> Result<(), CommandError> {
        let path = self.project().join(name);
        let folder = path.parent().unwrap_or(&path);
        let written = fs::create_dir_all(folder).and_then(|()| fs::write(&path, content));
        #[cfg(unix)]
        let written = written.and_then(|()| {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
        });
        written.map_err(|source| CommandError::NotMade { path, source })
    }

    /// What stands in a file of the project.
    pub(crate) fn read(&self, name: &str) -> Result<String, CommandError> {
        let path = self.project().join(name);
        fs::read_to_string(&path).map_err(|source| CommandError::Unreadable { path, source })
    }

    /// How often a script ran, which writes a line to this file each time.
    pub(crate) fn count(&self, name: &str) -> usize {
        fs::read_to_string(self.project().join(name)).map_or(0, |text| text.lines().count())
    }

    /// Runs a command line as an agent's shell does.
    pub(crate) fn run(&self, line: &str) -> Ran {
        self.start(line, "", LIMIT, self.programs)
    }

    /// Runs a command line, and ends it after a while.
    pub(crate) fn run_for(&self, line: &str, time: Duration) -> Ran {
        self.start(line, "", time, self.programs)
    }

    /// Runs the hook as it is installed, with a payload to read.
    pub(crate) fn hook(&self, payload: &str) -> Ran {
        self.start(&self.hook, payload, LIMIT, self.programs)
    }

    /// Runs one of our own commands, as a person would in the project.
    pub(crate) fn unstuck(&self, words: &str) -> Ran {
        self.start(&format!("{} {words}", self.program), "", LIMIT, Programs::All)
    }

    /// Waits. A child does it, because a signal that reaches us meanwhile is then told instead of ending us: whoever has seen
    /// enough should not find our folder left behind. Returns that signal.
    pub(crate) fn pause(&self, time: Duration) -> Option<i32> {
        let line = format!("sleep {} || sleep 1", time.as_secs_f32());
        match self.start(&line, "", LIMIT, Programs::All).run.ending {
            Ending::Signalled(signal) => Some(signal),
            Ending::Exited(_)
            | Ending::TimedOut
            | Ending::NotFound
            | Ending::NotExecutable(_)
            | Ending::NotTried(_) => None,
        }
    }

    fn start(&self, line: &str, input: &str, limit: Duration, programs: Programs) -> Ran {
        let mut job = Job::new("/bin/sh", ["-c", line])
            .in_dir(self.project())
            .with_input(input)
            .capture_only()
            .timeout(limit)
            .grace(Duration::from_millis(100));
        for (name, value) in &self.variables {
            job = job.with_variable(name, value);
        }
        job = match programs {
            Programs::All => job,
            Programs::OfProject => job.with_variable("PATH", self.project().join("bin")),
            Programs::OfSystem => job.with_variable("PATH", "/usr/bin:/bin"),
        };
        let (mut stdout, mut output) = (Vec::new(), Vec::new());
        let run = job.run(|stream, bytes| {
            output.extend_from_slice(bytes);
            if stream == Stream::Stdout {
                stdout.extend_from_slice(bytes);
            }
        });
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        Ran { run, stdout: text(&stdout), output: text(&output) }
    }
}
