//! Takes the layers of the library away, one at a time, and looks whether a test misses them.
//!
//! It works on a copy of the project with a target folder of its own, both kept under the target folder of the project, so that
//! only the first run builds everything. The tree itself is never touched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lexopt::prelude::*;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Deserialize;

use crate::{Fault, project};

/// The table of layers.
const TABLE: &str = include_str!("../layers.toml");
/// Where the layers lie.
const HOME: &str = "crates/sdk/src";
/// Tests that take longer hang, and a test that hangs misses the layer as well.
const LIMIT: Duration = Duration::from_secs(150);
/// The first build makes everything.
const BUILD_LIMIT: Duration = Duration::from_secs(1800);
/// So many of the tests that failed are named.
const NAMED: usize = 3;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireTable {
    layer: Vec<Layer>,
}

/// One layer, and how it is taken away.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Layer {
    /// What it does, in words.
    name: String,
    /// Where, below the home of the layers.
    file: String,
    /// What stands there exactly once.
    find: String,
    /// What stands there instead when the layer is gone.
    instead: String,
    /// Where the tests are that should miss it: the name of a test program, or `lib`.
    tests: String,
    /// Features beside those that are on anyway.
    #[serde(default)]
    features: String,
    /// Which of them, by a part of their names.
    #[serde(default)]
    only: String,
}

/// A test program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Program<'a> {
    features: &'a str,
    tests: &'a str,
}

/// How a mutant ended.
enum End {
    /// These tests failed.
    Killed(Vec<String>),
    /// Its tests did not end.
    Hung,
    /// No test missed the layer.
    Survived,
    /// It is no program.
    DoesNotCompile,
}

pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    let mut only = None;
    while let Some(arg) = args.next()? {
        match arg {
            Long("only") => only = Some(args.value()?.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let layers = table()?;
    let chosen: Vec<&Layer> =
        layers.iter().filter(|layer| only.as_ref().is_none_or(|only| layer.name.contains(only))).collect();
    if chosen.is_empty() {
        return Err(format!("no layer has {:?} in its name", only.unwrap_or_default()).into());
    }
    for layer in &chosen {
        layer.removed_from(&fs::read_to_string(project::root().join(HOME).join(&layer.file))?)?;
    }
    let copy = Copy::made()?;
    copy.must_pass(&chosen)?;
    let mut missed = 0;
    println!("{:<72} {:>4}  killed by", "layer", "s");
    for layer in &chosen {
        let begun = Instant::now();
        let end = copy.without(layer)?;
        println!("{:<72} {:>4}  {end}", layer.name, begun.elapsed().as_secs());
        missed += usize::from(matches!(end, End::Survived | End::DoesNotCompile));
    }
    println!("{} layers taken away, {} missed by a test", chosen.len(), chosen.len() - missed);
    match missed {
        0 => Ok(()),
        missed => Err(format!("{missed} layers can be taken away and no test fails").into()),
    }
}

fn table() -> Result<Vec<Layer>, Fault> {
    Ok(toml::from_str::<WireTable>(TABLE)?.layer)
}

impl Layer {
    /// Which tests are to miss it.
    fn program(&self) -> Program<'_> {
        Program { features: &self.features, tests: &self.tests }
    }

    /// The text of its file without it.
    fn removed_from(&self, text: &str) -> Result<String, Fault> {
        match text.matches(&*self.find).count() {
            1 => Ok(text.replacen(&*self.find, &self.instead, 1)),
            times => Err(format!(
                "the row {:?} is stale: its text occurs {times} times in {HOME}/{}, not once",
                self.name, self.file
            )
            .into()),
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Killed(tests) if tests.is_empty() => {
                f.write_str("a test program that did not come to its end")
            }
            End::Killed(tests) => {
                let more = tests.len().saturating_sub(NAMED);
                let named = tests.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
                if more > 0 { write!(f, "{named} and {more} more") } else { f.write_str(&named) }
            }
            End::Hung => write!(f, "time: its tests did not end within {} s", LIMIT.as_secs()),
            End::Survived => f.write_str("NOBODY: it survived"),
            End::DoesNotCompile => f.write_str("NOBODY: it does not compile"),
        }
    }
}

/// A copy of the project.
struct Copy {
    tree: PathBuf,
    built: PathBuf,
}

impl Copy {
    /// Makes it, or brings the last one up to date. What is the same is not written again, so that it is not built again.
    fn made() -> Result<Copy, Fault> {
        let home = project::target()?.join("layers");
        let copy = Copy { tree: home.join("tree"), built: home.join("built") };
        let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let output = Command::new("git").current_dir(project::root()).args(list).output()?;
        if !output.status.success() {
            return Err("git does not name the files of the project".into());
        }
        let names = String::from_utf8(output.stdout)?;
        let names: Vec<&str> = names.split('\0').filter(|name| !name.is_empty()).collect();
        for name in &names {
            let (from, to) = (project::root().join(name), copy.tree.join(name));
            let Ok(bytes) = fs::read(&from) else { continue };
            if fs::read(&to).ok().as_ref() != Some(&bytes) {
                fs::create_dir_all(to.parent().unwrap_or(&copy.tree))?;
                fs::write(&to, bytes)?;
                fs::set_permissions(&to, fs::metadata(&from)?.permissions())?;
            }
        }
        copy.forget_all_but(&names, &copy.tree)?;
        fs::create_dir_all(&copy.built)?;
        Ok(copy)
    }

    fn forget_all_but(&self, names: &[&str], folder: &Path) -> Result<(), Fault> {
        for entry in fs::read_dir(folder)?.flatten() {
            let path = entry.path();
            let is_named =
                |name: &&str| path.strip_prefix(&self.tree).is_ok_and(|path| path == Path::new(name));
            match entry.file_type()?.is_dir() {
                true => self.forget_all_but(names, &path)?,
                false if names.iter().any(is_named) => {}
                false => fs::remove_file(&path)?,
            }
        }
        Ok(())
    }

    /// What fails with all layers in place says nothing when one is gone.
    fn must_pass(&self, layers: &[&Layer]) -> Result<(), Fault> {
        println!("building, and testing with all layers in place …");
        let mut asked: BTreeMap<Program<'_>, BTreeSet<&str>> = BTreeMap::new();
        for layer in layers {
            asked.entry(layer.program()).or_default().insert(&layer.only);
        }
        for (program, only) in asked {
            match self.test(program, &only)? {
                End::Survived => {}
                end => {
                    return Err(
                        format!("with all layers in place, tests in {} fail: {end}", program.tests).into()
                    );
                }
            }
        }
        Ok(())
    }

    /// Takes a layer away, tests, and puts it back.
    fn without(&self, layer: &Layer) -> Result<End, Fault> {
        let path = self.tree.join(HOME).join(&layer.file);
        let whole = fs::read_to_string(&path)?;
        fs::write(&path, layer.removed_from(&whole)?)?;
        let end = self.test(layer.program(), &[&*layer.only].into());
        fs::write(&path, whole)?;
        end
    }

    /// Runs tests of a program whose names have one of these parts.
    fn test(&self, program: Program<'_>, only: &BTreeSet<&str>) -> Result<End, Fault> {
        let target = match program.tests {
            "lib" => vec!["--lib"],
            tests => vec!["--test", tests],
        };
        let target = [&["--features", program.features], &*target].concat();
        if !matches!(
            self.cargo(&[&*target, &["--no-run"]].concat(), BUILD_LIMIT)?,
            Run::Ended { ok: true, .. }
        ) {
            return Ok(End::DoesNotCompile);
        }
        let only: Vec<&str> = only.iter().copied().collect();
        Ok(match self.cargo(&[&*target, &["--"], &*only].concat(), LIMIT)? {
            Run::Ended { ok: true, .. } => End::Survived,
            Run::Ended { ok: false, printed } => End::Killed(failed(&printed)),
            Run::Hung => End::Hung,
        })
    }

    /// Runs `cargo test` in a process group of its own, so that test programs that hang go with it.
    fn cargo(&self, args: &[&str], limit: Duration) -> Result<Run, Fault> {
        // Nobody looks at a mutant with a debugger, and without it linking is quick.
        let bare = "--config=profile.dev.package.unstuck.debug=0";
        let mut command = project::cargo(&["test", "--package", "unstuck", "--locked", bare]);
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", &self.built).args(args);
        command.env("RUST_BACKTRACE", "0").stdin(Stdio::null()).process_group(0);
        // A file takes whatever comes, so that nobody has to read while they wait.
        let path = self.built.with_extension("log");
        let log = File::create(&path)?;
        let mut child = command.stderr(log.try_clone()?).stdout(log).spawn()?;
        let begun = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                let printed = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
                return Ok(Run::Ended { ok: status.success(), printed });
            }
            if begun.elapsed() > limit {
                let _gone = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
                child.wait()?;
                return Ok(Run::Hung);
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// How a run of cargo ended.
enum Run {
    Ended { ok: bool, printed: String },
    Hung,
}

/// The tests that failed.
fn failed(printed: &str) -> Vec<String> {
    let names = printed.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layer_is_still_where_the_table_says() {
        let layers = table().unwrap();
        for layer in &layers {
            let text = fs::read_to_string(project::root().join(HOME).join(&layer.file)).unwrap();
            assert_ne!(layer.removed_from(&text).unwrap(), text, "{}: nothing is taken away", layer.name);
        }
        let mut names: Vec<&str> = layers.iter().map(|layer| &*layer.name).collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|one, next| one < next), "two rows have the same name");
    }

    #[test]
    fn a_row_whose_text_is_gone_or_there_twice_is_stale() {
        let layer = Layer {
            name: "it".to_owned(),
            file: "a.rs".to_owned(),
            find: "b".to_owned(),
            instead: "c".to_owned(),
            tests: "lib".to_owned(),
            features: String::new(),
            only: String::new(),
        };
        assert_eq!(layer.removed_from("abd").unwrap(), "acd");
        for text in ["ad", "abbd"] {
            assert!(layer.removed_from(text).unwrap_err().to_string().contains("is stale"), "{text}");
        }
    }

    #[test]
    fn tests_that_failed_are_named() {
        let printed = "test a::b ... ok\ntest a::c ... FAILED\ntest d ... FAILED\nfailures:\n    d\n";
        assert_eq!(failed(printed), ["a::c", "d"]);
    }
}
