//! What to run, and what came of it. Values and their builder; the platform file does the work.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::platform;
use crate::stop::Stop;

/// Which of its two outputs a command wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Both at once, in the order of a terminal: one that has a terminal for both does not tell them apart.
    Merged,
}

/// How a command ended. What a program does is data, so a program that cannot be started is an ending too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It ended by itself with this code, 0 included.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
    /// The time limit ran out, and the whole process group was ended.
    TimedOut,
    /// There is no such program.
    NotFound,
    /// The program is there but could not be started; the text is the system's.
    NotExecutable(String),
    /// We lack what it takes to try: file descriptors, processes or memory. It says nothing of the program; the text is the
    /// system's.
    NotTried(String),
}

/// An output of ours that could not take what the command printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undelivered {
    /// What the command wrote to.
    pub stream: Stream,
    /// The text is the system's.
    pub why: String,
}

impl Undelivered {
    /// Judges a failed write; a closed pipe is no loss.
    pub(crate) fn by(stream: Stream, error: &io::Error) -> Option<Undelivered> {
        (error.kind() != io::ErrorKind::BrokenPipe).then(|| Undelivered { stream, why: error.to_string() })
    }
}

/// What came of a [`Job`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// How it ended.
    pub ending: Ending,
    /// From just before the start until its end was seen.
    pub took: Duration,
    /// Whether it took any of our input, or may have. Only a job that is [passing our input](Job::passing_input) knows.
    pub input_used: bool,
    /// Whether a person or a supervisor asked it to end: a signal that reached us, Ctrl-C at its terminal, or a [`Stop`].
    pub asked_to_end: bool,
    /// The first write error of our own outputs, such as a full disk. A closed pipe is none: its reader has seen enough.
    pub undelivered: Option<Undelivered>,
}

/// What the command reads.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Input {
    /// Whatever we would read ourselves.
    Ours,
    /// The same, and it is told whether any of it was taken.
    Watched,
    /// These bytes, and then the end.
    Bytes(Vec<u8>),
}

/// Who else reads the output beside the sink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// The sink, and our own standard output and standard error.
    SinkAndUser,
    /// The sink alone.
    SinkOnly,
    /// Our own standard output and standard error, without a pipe in between.
    UserOnly,
}

/// What the command finds where its output goes to a terminal of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looks {
    /// Pipes.
    Piped,
    /// A terminal, where we have one.
    AsOurs,
}

/// A time limit and how gently it is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// It may run for ever.
    None,
    /// After this long the process group is asked to end.
    After(Duration),
}

/// One command to run once.
///
/// ```no_run
/// # use unstuck_exec::{Ending, Job};
/// let mut lines = 0;
/// let run = Job::new("cargo", ["build"]).run(|_, bytes| lines += bytes.iter().filter(|b| **b == b'\n').count());
/// assert_eq!(run.ending, Ending::Exited(0));
/// ```
#[derive(Debug, Clone)]
pub struct Job {
    program: OsString,
    args: Vec<OsString>,
    dir: Option<PathBuf>,
    variables: Vec<(OsString, OsString)>,
    input: Input,
    pub(crate) audience: Audience,
    pub(crate) looks: Looks,
    pub(crate) limit: Limit,
    pub(crate) idle: Limit,
    pub(crate) grace: Duration,
    pub(crate) linger: Duration,
    pub(crate) hears_signals: bool,
    pub(crate) stop: Option<Stop>,
}

impl Job {
    /// A job that runs `program` with exactly `args`: nothing is split, expanded or quoted.
    pub fn new<A: Into<OsString>>(program: impl Into<OsString>, args: impl IntoIterator<Item = A>) -> Job {
        Job {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            dir: None,
            variables: Vec::new(),
            input: Input::Ours,
            audience: Audience::SinkAndUser,
            looks: Looks::Piped,
            limit: Limit::None,
            idle: Limit::None,
            grace: Duration::from_secs(2),
            linger: Duration::from_millis(300),
            hears_signals: true,
            stop: None,
        }
    }

    /// Runs it in `dir`.
    pub fn in_dir(self, dir: impl Into<PathBuf>) -> Job {
        Job { dir: Some(dir.into()), ..self }
    }

    /// Sets a variable for it, beside those we have ourselves.
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Job {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Gives it an empty standard input instead of ours.
    pub fn without_input(self) -> Job {
        self.with_input(Vec::new())
    }

    /// Gives it these bytes to read instead of our standard input. One that does not read them is no failure.
    pub fn with_input(self, bytes: impl Into<Vec<u8>>) -> Job {
        Job { input: Input::Bytes(bytes.into()), ..self }
    }

    /// Gives it our standard input so that [`Run::input_used`] tells whether it took any of it. What it did not take stays
    /// where it was, for the next one who reads: another attempt, or whoever shares our input.
    ///
    /// A terminal or `/dev/null` is given as it is and never counts as used; of a file the place tells; a pipe or a socket
    /// is passed on a page at a time, as it is taken. Where the system does not let us look into a pipe without emptying it
    /// (all but Linux), it counts as used.
    pub fn passing_input(self) -> Job {
        Job { input: Input::Watched, ..self }
    }

    /// Gives it a terminal of its own where our standard output is one, so that it shows colours and progress as without
    /// us; where it is none, nothing changes.
    ///
    /// With our standard input a terminal too, it is the first of a session with that terminal: what is typed goes there,
    /// so Ctrl-C, Ctrl-Z and passwords work as usual, and the user's terminal is raw for as long as it runs. Otherwise only
    /// what it prints goes through it.
    pub fn on_terminal(self) -> Job {
        Job { looks: Looks::AsOurs, ..self }
    }

    /// Keeps its output from the user; only the sink sees it.
    pub fn capture_only(self) -> Job {
        Job { audience: Audience::SinkOnly, ..self }
    }

    /// Gives it our own standard output and standard error, so that it finds a terminal where we have one. The sink hears
    /// nothing. For programs people work in, such as an editor.
    pub fn unheard(self) -> Job {
        Job { audience: Audience::UserOnly, ..self }
    }

    /// Ends the whole process group after `limit`.
    pub fn timeout(self, limit: Duration) -> Job {
        Job { limit: Limit::After(limit), ..self }
    }

    /// Ends the whole process group once it has printed nothing for so long; that, too, is [`Ending::TimedOut`].
    pub fn idle_timeout(self, limit: Duration) -> Job {
        Job { idle: Limit::After(limit), ..self }
    }

    /// How long the group may take to end by itself once the time limit asked it to (2 s unless said otherwise).
    pub fn grace(self, grace: Duration) -> Job {
        Job { grace, ..self }
    }

    /// How long to go on reading when the command has ended but something it started still holds its output open
    /// (300 ms unless said otherwise).
    pub fn linger(self, linger: Duration) -> Job {
        Job { linger, ..self }
    }

    /// Ends the whole process group when `stop` says so, as gently as a time limit does. How it ended is then its own answer
    /// to that, and [`Run::asked_to_end`] tells why.
    pub fn stopped_by(self, stop: &Stop) -> Job {
        Job { stop: Some(stop.clone()), ..self }
    }

    /// Leaves the signals of this process to whoever else lives in it: none is caught, and none is passed on. For a job that a
    /// library runs inside a program that is not ours.
    pub fn leaving_signals_alone(self) -> Job {
        Job { hears_signals: false, ..self }
    }

    /// Runs it, and hands `sink` every byte it prints, in the order of each stream, while it is printed.
    ///
    /// Interrupt, terminate, hang-up and quit signals that reach us are passed on to the command; the second one kills it.
    /// User signals are passed on, too. A process that left the command's process group (a daemon) is out of reach of
    /// signals and of the time limit.
    ///
    /// If we are killed ourselves, the command is asked to end where the system can do that (Linux, by `PR_SET_PDEATHSIG`);
    /// on a terminal of its own, all that runs there is hung up as well. Elsewhere it learns it when it next prints.
    pub fn run(&self, sink: impl FnMut(Stream, &[u8])) -> Run {
        self.run_while(|| (), sink)
    }

    /// The same, and does `meanwhile` while it is started and works. It is done also for one that turns out not to start,
    /// unless we lack what it takes to try. What is printed waits until it is done, but neither signals nor the time limit do.
    pub fn run_while(&self, meanwhile: impl FnOnce(), sink: impl FnMut(Stream, &[u8])) -> Run {
        let started = Instant::now();
        platform::run(self, started, meanwhile, sink).unwrap_or_else(|error| Run {
            ending: self.not_started(&error),
            took: started.elapsed(),
            input_used: false,
            asked_to_end: false,
            undelivered: None,
        })
    }

    /// The command as the standard library starts it, with both outputs piped to whoever listens.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).envs(self.variables.iter().map(|(name, value)| (name, value)));
        match self.audience {
            Audience::SinkAndUser | Audience::SinkOnly => {
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
            }
            Audience::UserOnly => {
                command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
            }
        }
        match &self.input {
            Input::Ours | Input::Watched => {}
            Input::Bytes(bytes) if bytes.is_empty() => {
                command.stdin(Stdio::null());
            }
            Input::Bytes(_) => {
                command.stdin(Stdio::piped());
            }
        }
        if let Some(dir) = &self.dir {
            command.current_dir(dir);
        }
        command
    }

    /// Hands a started command what it is to read. Nobody waits for that: it may never read it, and something it left
    /// behind may hold the pipe open for ever.
    pub(crate) fn feed(&self, child: &mut Child) {
        if let (Input::Bytes(bytes), Some(mut pipe)) = (&self.input, child.stdin.take()) {
            let bytes = bytes.clone();
            thread::spawn(move || pipe.write_all(&bytes).ok());
        }
    }

    /// Whether the command reads what the user types.
    #[cfg(unix)]
    pub(crate) fn shares_input(&self) -> bool {
        matches!(self.input, Input::Ours | Input::Watched)
    }

    /// Whether somebody wants to know if it takes any of our input.
    pub(crate) fn watches_input(&self) -> bool {
        self.input == Input::Watched
    }

    /// Tells "no such program" from every other reason not to start.
    ///
    /// The system says "not found" also for a script whose interpreter is missing and for a missing working directory;
    /// calling those a missing program would send the reader the wrong way.
    pub(crate) fn not_started(&self, error: &io::Error) -> Ending {
        // Some systems look for it in a folder of the search path, and then the folder is what they complain about.
        if self.program.is_empty() {
            return Ending::NotFound;
        }
        if is_for_want(error) {
            return Ending::NotTried(error.to_string());
        }
        if error.kind() != io::ErrorKind::NotFound {
            return Ending::NotExecutable(error.to_string());
        }
        if let Some(dir) = self.dir.as_deref().filter(|dir| !dir.is_dir()) {
            return Ending::NotExecutable(format!("the working directory {} does not exist", dir.display()));
        }
        if names_a_path(&self.program) && Path::new(&self.program).exists() {
            return Ending::NotExecutable("it exists, but its interpreter or loader does not".to_owned());
        }
        Ending::NotFound
    }
}

/// Whether we lacked something of our own.
fn is_for_want(error: &io::Error) -> bool {
    // They have the same numbers on all Unix systems, and no kind of their own.
    const FILES_OF_SYSTEM: i32 = 23;
    const FILES_OF_PROCESS: i32 = 24;
    let is_of_files = cfg!(unix)
        && error.raw_os_error().is_some_and(|number| [FILES_OF_SYSTEM, FILES_OF_PROCESS].contains(&number));
    is_of_files || matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory)
}

/// Whether `program` is a path rather than a name to look up.
fn names_a_path(program: &OsStr) -> bool {
    Path::new(program).components().count() > 1
}
