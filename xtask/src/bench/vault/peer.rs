//! Who takes snapshots and brings trees back, and by which words: each as its own manual says, with a folder of its own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::bench::contest::Measured;
use crate::{Fault, project};

/// Whom the tables show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// `unstuck snapshot` and `unstuck restore`.
    Unstuck,
    /// The safe alone, in a program that does nothing else.
    Safe,
    /// Lists every folder and asks for the state of every entry: nobody can know of a change with less.
    StatWalk,
    /// Also reads every byte: nobody can take a first snapshot with less.
    ReadAll,
    /// A second tree.
    Copy,
    /// One file that holds all.
    Tar,
    /// A git folder of its own beside the tree.
    Git,
    /// A backup program.
    Restic,
    /// Another one.
    Borg,
}

impl Who {
    /// All of them, in the order of the tables.
    pub const ALL: [Who; 9] = [
        Who::Unstuck,
        Who::Safe,
        Who::StatWalk,
        Who::ReadAll,
        Who::Tar,
        Who::Copy,
        Who::Git,
        Who::Restic,
        Who::Borg,
    ];

    /// What takes a snapshot.
    pub fn snapshot_name(self) -> &'static str {
        match self {
            Who::Unstuck => "`unstuck snapshot`",
            Who::Safe => "`Vault::take`, nothing else",
            Who::StatWalk => "floor: parallel stat walk",
            Who::ReadAll => "floor: parallel read of all bytes",
            Who::Copy => "`cp -a`",
            Who::Tar => "`tar -cf`",
            Who::Git => "`git add -A && git write-tree`",
            Who::Restic => "`restic backup`",
            Who::Borg => "`borg create`",
        }
    }

    /// What brings a tree back.
    pub fn restore_name(self) -> &'static str {
        match self {
            Who::Unstuck => "`unstuck restore`",
            Who::Safe | Who::StatWalk | Who::ReadAll => self.snapshot_name(),
            Who::Copy => "`cp -a` back",
            Who::Tar => "`tar -xf`",
            Who::Git => "`git reset --hard`",
            Who::Restic => "`restic restore`",
            Who::Borg => "`borg extract`",
        }
    }

    /// Does what it keeps consist of as many files as the tree?
    pub fn keeps_many_files(self) -> bool {
        match self {
            Who::Copy | Who::Git => true,
            Who::Unstuck | Who::Safe | Who::StatWalk | Who::ReadAll | Who::Tar | Who::Restic | Who::Borg => {
                false
            }
        }
    }

    /// The program that has to be there, and how it tells its version.
    fn asks_for(self) -> Option<[&'static str; 2]> {
        match self {
            Who::Unstuck | Who::Safe | Who::StatWalk | Who::ReadAll => None,
            Who::Copy => Some(["cp", "--version"]),
            Who::Tar => Some(["tar", "--version"]),
            Who::Git => Some(["git", "--version"]),
            Who::Restic => Some(["restic", "version"]),
            Who::Borg => Some(["borg", "--version"]),
        }
    }

    /// What it says of its version; a program that is not there has none.
    pub fn version(self) -> Option<Result<String, String>> {
        let [program, question] = self.asks_for()?;
        let said = Command::new(program).arg(question).stdin(Stdio::null()).output();
        let line = said
            .ok()
            .filter(|said| said.status.success())
            .and_then(|said| String::from_utf8_lossy(&said.stdout).lines().next().map(str::to_owned));
        Some(line.ok_or_else(|| format!("{program}: not installed")))
    }
}

/// What everybody needs to be started.
pub struct Peers {
    /// The binary that people get.
    unstuck: PathBuf,
    /// The example that is the safe alone.
    take: PathBuf,
    /// The example that sets the floors.
    walk_tree: PathBuf,
    /// This program, which runs them and looks at the clock.
    clock: PathBuf,
    /// A home without settings.
    home: PathBuf,
}

/// One snapshot or restore: its commands, and the folder they run in.
struct Order {
    steps: Vec<Vec<OsString>>,
    folder: PathBuf,
}

/// Lets a program find this home and nothing of ours but the search path, and asks it no questions.
pub fn alone(command: &mut Command, home: &Path) {
    command.env_clear().env("HOME", home).env("LC_ALL", "C").env("GIT_CONFIG_NOSYSTEM", "1");
    command.envs(std::env::var_os("PATH").map(|value| ("PATH", value)));
    for who in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        command.env(format!("{who}_NAME"), "Bench").env(format!("{who}_EMAIL"), "bench@unstuck.example");
    }
    command.env("RESTIC_PASSWORD", "bench").env("BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK", "yes");
}

impl Peers {
    /// Builds what is measured, in the profile that people get.
    pub fn build(binary: Option<&Path>, home: PathBuf) -> Result<Peers, Fault> {
        fs::create_dir_all(&home)?;
        let example = |package: &str, name: &str| -> Result<PathBuf, Fault> {
            let built = project::build(&["--release", "--package", package, "--example", name])?;
            built.into_iter().next().ok_or_else(|| format!("cargo built no {name}").into())
        };
        let built = match binary {
            Some(binary) => binary.canonicalize()?,
            None => project::unstuck()?,
        };
        // Copies, as an installer makes them: what the linker wrote lies in small pieces in the system's cache, and a build that
        // somebody starts meanwhile takes it away.
        let copy = |from: PathBuf, name: &str| -> Result<PathBuf, Fault> {
            let to = home.join(name);
            fs::copy(from, &to)?;
            Ok(to)
        };
        Ok(Peers {
            unstuck: copy(built, "unstuck")?,
            take: copy(example("unstuck-vault", "take")?, "take")?,
            walk_tree: copy(example("xtask", "walk_tree")?, "walk_tree")?,
            clock: copy(std::env::current_exe()?, "clock")?,
            home,
        })
    }

    /// Makes a place to keep snapshots in; not timed. Ours is made by the first snapshot, so that one is of next to nothing.
    pub fn settle_in(&self, who: Who, place: &Path) -> Result<(), Fault> {
        fs::create_dir_all(place)?;
        let nothing = self.home.join("nothing");
        let step = match who {
            Who::StatWalk | Who::ReadAll | Who::Copy | Who::Tar => return Ok(()),
            Who::Unstuck | Who::Safe => {
                fs::create_dir_all(&nothing)?;
                return self.snapshot(who, place, &nothing, "").map(drop);
            }
            Who::Git => words(["git", "init", "--quiet", "--bare", "."]),
            Who::Restic => words(["restic", "--quiet", "--repo", ".", "init"]),
            Who::Borg => words(["borg", "init", "--encryption", "none", "."]),
        };
        self.run(&Order { steps: vec![step], folder: place.to_owned() }).map(drop)
    }

    /// Takes a snapshot; returns what was measured and the name under which it can be restored.
    pub fn snapshot(&self, who: Who, place: &Path, root: &Path, name: &str) -> Result<Run, Fault> {
        let mut order = Order { steps: Vec::new(), folder: root.to_owned() };
        order.steps = match who {
            Who::Unstuck => vec![self.unstuck(place, &["snapshot".into(), root.into(), "--json".into()])],
            Who::Safe => vec![vec![self.take.clone().into(), place.into(), root.into()]],
            Who::StatWalk => vec![vec![self.walk_tree.clone().into(), "stat".into(), root.into()]],
            Who::ReadAll => vec![vec![self.walk_tree.clone().into(), "read".into(), root.into()]],
            Who::Copy => vec![vec!["cp".into(), "-a".into(), root.into(), place.join("copy").into()]],
            Who::Tar => vec![vec!["tar".into(), "-cf".into(), place.join("tree.tar").into(), ".".into()]],
            Who::Git => vec![git(place, root, &["add", "-A"]), git(place, root, &["write-tree"])],
            Who::Restic => {
                vec![vec![
                    "restic".into(),
                    "--quiet".into(),
                    "--repo".into(),
                    place.into(),
                    "backup".into(),
                    ".".into(),
                ]]
            }
            Who::Borg => vec![vec!["borg".into(), "create".into(), archive(place, name), ".".into()]],
        };
        let (measured, said) = self.run(&order)?;
        let id = match who {
            Who::Unstuck => {
                let answer: serde_json::Value = serde_json::from_str(said.trim())?;
                answer["id"].as_str().ok_or_else(|| format!("it named no snapshot: {said}"))?.to_owned()
            }
            Who::Safe
            | Who::StatWalk
            | Who::ReadAll
            | Who::Copy
            | Who::Tar
            | Who::Git
            | Who::Restic
            | Who::Borg => name.to_owned(),
        };
        Ok(Run { took: measured.took, peak: measured.peak, id })
    }

    /// Makes sure that the tree as it is now can be restored; not timed.
    pub fn keep(&self, who: Who, place: &Path, root: &Path, name: &str) -> Result<Run, Fault> {
        let run = self.snapshot(who, place, root, name)?;
        if who == Who::Git {
            let commit = git(place, root, &["commit", "--quiet", "--allow-empty", "--message", name]);
            self.run(&Order { steps: vec![commit], folder: root.to_owned() })?;
        }
        Ok(run)
    }

    /// Brings the tree back to what was kept under this name.
    pub fn restore(&self, who: Who, place: &Path, root: &Path, id: &str) -> Result<Run, Fault> {
        let mut folder = root.to_owned();
        let step = match who {
            Who::Unstuck => {
                folder = self.home.clone();
                self.unstuck(place, &["restore".into(), id.into(), "--json".into()])
            }
            Who::Safe | Who::StatWalk | Who::ReadAll => return Err("it restores nothing".into()),
            Who::Copy => vec!["cp".into(), "-aT".into(), place.join("copy").into(), root.into()],
            Who::Tar => vec!["tar".into(), "-xpf".into(), place.join("tree.tar").into()],
            Who::Git => git(place, root, &["reset", "--quiet", "--hard"]),
            Who::Restic => {
                let mut step = words(["restic", "--quiet", "restore", "latest", "--repo"]);
                step.extend([place.into(), "--target".into(), root.into()]);
                step
            }
            Who::Borg => vec!["borg".into(), "extract".into(), archive(place, id)],
        };
        if who != Who::Unstuck {
            fs::create_dir_all(root)?;
        }
        let (measured, _) = self.run(&Order { steps: vec![step], folder })?;
        Ok(Run { took: measured.took, peak: measured.peak, id: id.to_owned() })
    }

    fn unstuck(&self, place: &Path, args: &[OsString]) -> Vec<OsString> {
        let mut state = OsString::from("store.state-dir=");
        state.push(place);
        let head: [OsString; 3] = [self.unstuck.clone().into(), "--set".into(), state];
        head.into_iter().chain(args.iter().cloned()).collect()
    }

    /// Runs it in a process that has no other children, so that the system can tell the memory of just these.
    fn run(&self, order: &Order) -> Result<(Measured, String), Fault> {
        let mut command = Command::new(&self.clock);
        command.arg("peak-memory").args(order.steps.join(&OsString::from(Measured::THEN)));
        command.current_dir(&order.folder);
        alone(&mut command, &self.home);
        let output = command.stdin(Stdio::null()).output()?;
        let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let measured = Measured::read(&told).ok_or_else(|| format!("nothing was measured: {told}"))?;
        match measured.exit {
            0 => Ok((measured, said.into_owned())),
            code => {
                let line = told.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                Err(format!("exit code {code}: {line}").into())
            }
        }
    }
}

/// What one run cost.
pub struct Run {
    /// From its start to its end.
    pub took: Duration,
    /// The most memory it held, in kilobytes.
    pub peak: u64,
    /// What it made or brought back.
    pub id: String,
}

fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.map(OsString::from).to_vec()
}

/// git with an index and objects of its own; it tidies nothing up behind our back.
fn git(place: &Path, root: &Path, args: &[&str]) -> Vec<OsString> {
    let mut step = words(["git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.bare=false"]);
    step.extend(["--git-dir".into(), place.into(), "--work-tree".into(), root.into()]);
    step.extend(args.iter().map(OsString::from));
    step
}

fn archive(place: &Path, name: &str) -> OsString {
    let mut word = place.as_os_str().to_owned();
    word.push("::");
    word.push(name);
    word
}
