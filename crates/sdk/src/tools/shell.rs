//! Runs commands of a shell.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use unstuck_exec::{Ending, Job, Stop, Stream};
use unstuck_judge::risk;
use unstuck_judge::shell::ParsedCall;

use super::aside;
use super::at_risk;
use super::capture::Capture;
use super::ground::Ground;
use super::safe::{Safe, Saved};
use crate::annotations::Annotations;
use crate::call::CallInfo;
use crate::context::ToolContext;
use crate::failure::Failure;
use crate::tool::Tool;

/// How long a command may take where nobody says, and at most.
const LIMIT: Duration = Duration::from_secs(120);
const LIMIT_MAX: Duration = Duration::from_secs(600);
/// How long it may take to end when it is asked to.
const GRACE: Duration = Duration::from_secs(1);
/// What the toolbox allows beside: to save files, and to end what runs.
const ASIDE: Duration = Duration::from_secs(60);

/// `shell`: runs a command line with `sh -c`.
///
/// An exit code other than 0 is a failure, with what was printed. A command that is given up is ended with everything it
/// started, background processes included; one that ended by itself leaves them running. It gets no input, and of what it
/// prints the beginning and the end are kept.
///
/// It runs with the rights of the program, in a folder but not confined to it. With [`Shell::protected_by`], a command that
/// is known to put files at risk runs only after its whole folder, the git repository around it where git is concerned, and
/// the paths that its words name were saved. What a script does that the command starts, what lies behind variables that are
/// set elsewhere, a git folder that lies apart from its work tree, and what is not a file (databases, remote machines) is not
/// covered. What others change in the folder while the command runs counts as its own work.
#[derive(Debug, Clone)]
pub struct Shell {
    inner: Arc<Inner>,
}

#[derive(Debug, Clone)]
struct Inner {
    folder: PathBuf,
    limit: Duration,
    variables: Vec<(OsString, OsString)>,
    safe: Option<Safe>,
}

impl Shell {
    /// One that works in the folder that the program runs in.
    pub fn new() -> Shell {
        Shell {
            inner: Arc::new(Inner { folder: ".".into(), limit: LIMIT, variables: Vec::new(), safe: None }),
        }
    }

    /// The folder that commands run in.
    #[must_use]
    pub fn folder(self, folder: impl Into<PathBuf>) -> Shell {
        self.with(|inner| inner.folder = folder.into())
    }

    /// How long a command may take, where the model does not say; 2 minutes otherwise.
    #[must_use]
    pub fn timeout(self, limit: Duration) -> Shell {
        self.with(|inner| inner.limit = limit)
    }

    /// Sets a variable for all commands, beside those of the program.
    #[must_use]
    pub fn env(self, name: impl Into<OsString>, value: impl Into<OsString>) -> Shell {
        self.with(|inner| inner.variables.push((name.into(), value.into())))
    }

    /// Saves files before a command that puts them at risk. Where that does not work, it is not run.
    #[must_use]
    pub fn protected_by(self, safe: &Safe) -> Shell {
        self.with(|inner| inner.safe = Some(safe.clone()))
    }

    fn with(mut self, change: impl FnOnce(&mut Inner)) -> Shell {
        change(Arc::make_mut(&mut self.inner));
        self
    }
}

impl Default for Shell {
    fn default() -> Shell {
        Shell::new()
    }
}

/// What is to be run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShellArgs {
    /// The command line, for `sh`.
    command: String,
    /// The folder to run it in, relative to the workspace; the workspace itself without this.
    cwd: Option<PathBuf>,
    /// How long it may take, in milliseconds, up to 600000.
    timeout_ms: Option<u64>,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Ran {
    /// Nothing where it was ended.
    exit_code: Option<i32>,
    stdout: String,
    stderr: String,
    #[serde(flatten)]
    protection: Protection,
}

/// What was saved before.
#[derive(Debug, Serialize)]
struct Protection {
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    /// What was not, in the folders that were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_saved: Vec<String>,
}

impl Tool for Shell {
    type Args = ShellArgs;
    type Output = Ran;

    fn name(&self) -> &str {
        "shell"
    }

    fn description(&self) -> &str {
        "Runs a command line with `sh` in the workspace and waits for its end. It gets no input: use flags that keep it from \
         asking. Long output is cut in the middle."
    }

    fn annotations(&self) -> Annotations {
        // The time limit is kept here, where what was printed until then is known.
        Annotations::new().by_arguments().timeout(self.inner.limit.max(LIMIT_MAX).saturating_add(ASIDE))
    }

    async fn call(&self, args: ShellArgs, context: ToolContext) -> Result<Ran, Failure> {
        let stop = Stop::new()?;
        // Also where nobody polls this any more, and it is dropped.
        let _ends = StopOnDrop(stop.clone());
        let (inner, call, attempt) = (Arc::clone(&self.inner), context.call.clone(), context.attempt());
        let ran = aside::run(&context, {
            let stop = stop.clone();
            move |cancellation| inner.run(&args, &call, attempt, &stop, cancellation)
        });
        tokio::pin!(ran);
        tokio::select! {
            biased;
            ran = &mut ran => ran,
            () = context.cancelled() => {
                stop.stop();
                ran.await
            }
        }
    }
}

struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Inner {
    fn run(
        &self,
        args: &ShellArgs,
        call: &CallInfo,
        attempt: u32,
        stop: &Stop,
        cancellation: &CancellationToken,
    ) -> Result<Ran, Failure> {
        let ground = Ground::open(&self.folder)?;
        let folder = ground.real().join(args.cwd.as_deref().unwrap_or(Path::new("")));
        // A further attempt after a time limit is made to get more time.
        let limit = args.timeout_ms.map_or(self.limit, |limit| Duration::from_millis(limit.max(1)));
        let limit = limit.saturating_mul(attempt).min(self.limit.max(LIMIT_MAX));
        let saved = self.save(ground.real(), call, cancellation)?;
        aside::goes_on(cancellation)?;
        let mut job = Job::new("sh", ["-c", &*args.command])
            .in_dir(folder)
            .capture_only()
            .without_input()
            .leaving_signals_alone()
            .timeout(limit)
            .grace(GRACE)
            .stopped_by(stop);
        for (name, value) in &self.variables {
            job = job.with_variable(name, value);
        }
        let (mut stdout, mut stderr) = (Capture::default(), Capture::default());
        let run = job.run(|stream, bytes| match stream {
            Stream::Stdout | Stream::Merged => stdout.take(bytes),
            Stream::Stderr => stderr.take(bytes),
        });
        let not_saved = saved.iter().flat_map(|saved| &saved.gaps).map(|gap| gap.path.display().to_string());
        let not_saved = not_saved.collect();
        let ran = Printed { stdout: stdout.into_bytes(), stderr: stderr.into_bytes() };
        let saved = Protection { snapshot: saved.map(Saved::conclude), not_saved };
        match run.ending {
            _ if run.asked_to_end => {
                Err(Failure::interrupted("interrupted: it was ended with all that it started"))
            }
            Ending::Exited(0) => Ok(Ran {
                exit_code: Some(0),
                stdout: text(&ran.stdout),
                stderr: text(&ran.stderr),
                protection: saved,
            }),
            Ending::Exited(code) => {
                Err(ran.failed(|out, err| Failure::exited(code, out, err), Some(code), saved))
            }
            Ending::Signalled(signal) => {
                Err(ran.failed(|out, err| Failure::signalled(signal, out, err), None, saved))
            }
            Ending::TimedOut => {
                let words = format!(
                    "timed out after {} s, and was ended with all that it started",
                    limit.as_secs_f64()
                );
                Err(ran.failed(
                    |stdout, stderr| Failure::timed_out(words).printed(stdout, stderr),
                    None,
                    saved,
                ))
            }
            Ending::NotFound => Err(Failure::unexpected("there is no `sh` on this machine")),
            Ending::NotExecutable(why) | Ending::NotTried(why) => Err(Failure::expected(why)),
        }
    }

    /// Saves what the command puts at risk.
    fn save(
        &self,
        folder: &Path,
        call: &CallInfo,
        cancellation: &CancellationToken,
    ) -> Result<Option<Saved>, Failure> {
        let Some(safe) = &self.safe else { return Ok(None) };
        let parsed = ParsedCall::of(&call.call);
        let Some(risk) = risk::of_parsed(&parsed) else { return Ok(None) };
        let (scopes, rebuildable) = at_risk::scopes(&risk, folder)?;
        safe.save(scopes, rebuildable, call, (risk.row(), parsed.approach()), cancellation).map(Some)
    }
}

/// What a command printed, as far as it is kept.
struct Printed {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Printed {
    fn failed(
        self,
        failure: impl FnOnce(Vec<u8>, Vec<u8>) -> Failure,
        exit_code: Option<i32>,
        protection: Protection,
    ) -> Failure {
        let told = Ran { exit_code, stdout: text(&self.stdout), stderr: text(&self.stderr), protection };
        let data = serde_json::to_value(told).unwrap_or_default();
        failure(self.stdout, self.stderr).data(data)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
