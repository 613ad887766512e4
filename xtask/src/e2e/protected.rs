//! What an agent destroys is brought back, and what cannot be saved is not destroyed: real commands in a real repository.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::agents::Agent;
use super::heard::{Rung, Words};
use super::model::{Turn, shell};
use super::scenarios::ensure;
use super::stage::{Stage, Tools};
use crate::Fault;

/// Everything below a folder: by path, what it is, its mode, when it was changed, and what is in it.
type Tree = BTreeMap<Vec<u8>, (u32, i128, Vec<u8>)>;

/// The agent throws away what was not committed and deletes the sources; the person takes both back.
pub fn bring_back(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let stage = Stage::set(agent, tools)?;
    fill(&stage)?;
    let (before, stood) = (tree(&stage.project())?, git_state(&stage)?);
    let delete = format!("{} src", agent.removal);
    let run = stage.play(&[shell("git reset --hard"), shell(delete), Turn::Say("done")])?;
    ensure(&run, "both turns are answered", run.received.answers.len() == 2)?;
    ensure(&run, "the sources are gone", !stage.project().join("src").exists())?;
    let kept = fs::read_to_string(stage.project().join("README.md"))?;
    ensure(&run, "so is what was not committed", kept == "# Tide tables\n")?;
    let taken = stage.timeline()?.iter().filter(|event| event["event"] == "snapshot:taken").count();
    ensure(&run, &format!("a snapshot was taken before each ({taken})"), taken == 2)?;
    let said = [stage.ask(&["undo"])?, stage.ask(&["undo"])?].concat();
    let after = tree(&stage.project())?;
    for (path, was) in &before {
        let is = after.get(path);
        let name = String::from_utf8_lossy(path);
        let what = format!("{name} is what it was: {:x?} and now {:x?}\n{said}", short(Some(was)), short(is));
        ensure(&run, &what, is == Some(was))?;
    }
    let stands = git_state(&stage)?;
    ensure(&run, &format!("git says the same as before: {stood} and now {stands}\n{said}"), stood == stands)
}

/// What is too much for the safe is not deleted.
pub fn no_room(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let stage = Stage::set(agent, tools)?;
    stage.write_home(".config/unstuck/config.toml", "[vault]\nmax-size = \"16MB\"\n")?;
    fs::create_dir(stage.project().join("soundings"))?;
    // Nothing in it repeats, so that it cannot be made smaller.
    let mut noise = Vec::new();
    let mut state = 1_u64;
    while noise.len() < 20 << 20 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend_from_slice(&state.to_le_bytes());
    }
    fs::write(stage.project().join("soundings/all.bin"), &noise)?;
    let delete = format!("{} soundings", agent.removal);
    let run = stage.play(&[shell(delete), shell("echo low water"), Turn::Say("done")])?;
    let answers = &run.received.answers;
    ensure(&run, "both turns are answered", answers.len() == 2)?;
    ensure(&run, "the call is refused", words.heard(&answers[0]) == Some(Rung::Refusal))?;
    ensure(&run, "it says how to make room", answers[0].contains("vault.max-size"))?;
    let is_there = fs::read(stage.project().join("soundings/all.bin")).is_ok_and(|bytes| bytes == noise);
    ensure(&run, "it never ran", is_there)?;
    ensure(&run, "other calls run", answers[1].contains("low water"))?;
    let failed = stage.timeline()?.iter().any(|event| event["event"] == "snapshot:failed");
    ensure(&run, "it is in the timeline", failed)
}

/// A repository in the middle of work: staged, changed, untracked and ignored files, a link, odd modes, old times.
fn fill(stage: &Stage) -> Result<(), Fault> {
    let project = stage.project();
    for (name, text) in [
        (".gitignore", "*.log\n/private.env\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("src/deep/er/tide.rs", "pub fn tide() -> u8 { 1 }\n"),
        ("src/run.sh", "#!/bin/sh\necho run\n"),
    ] {
        stage.write(name, text)?;
    }
    git(stage, &["add", "-A"])?;
    git(stage, &["commit", "-qm", "sources"])?;
    for (name, text) in [
        ("src/main.rs", "fn main() { todo!() }\n"),
        ("src/staged.rs", "// staged\n"),
        ("README.md", "# Tide tables\n\nNot committed.\n"),
    ] {
        stage.write(name, text)?;
    }
    git(stage, &["add", "src/staged.rs"])?;
    for (name, text) in [
        ("src/untracked.txt", "nobody knows me\n"),
        ("src/deep/build.log", "ignored\n"),
        ("private.env", "LEVEL=low\n"),
    ] {
        stage.write(name, text)?;
    }
    fs::create_dir_all(project.join("src/empty"))?;
    symlink("main.rs", project.join("src/link.rs"))?;
    fs::write(project.join("src").join(std::ffi::OsStr::from_bytes(b"odd-\xff-name")), "odd\n")?;
    fs::set_permissions(project.join("src/run.sh"), fs::Permissions::from_mode(0o750))?;
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_500_000_000, 123_456_789);
    File::open(project.join("src/untracked.txt"))?.set_times(FileTimes::new().set_modified(old))?;
    File::open(project.join("src/empty"))?.set_times(FileTimes::new().set_modified(old))?;
    Ok(())
}

fn git(stage: &Stage, args: &[&str]) -> Result<String, Fault> {
    let mut git: Command = stage.clean("git");
    git.args(["-c", "user.name=Ada", "-c", "user.email=ada@harbour.example"]).args(args);
    let output = git.output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("git {args:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// What git knows: where it stands, what is staged, changed, unknown and ignored.
fn git_state(stage: &Stage) -> Result<String, Fault> {
    let mut state = String::new();
    for args in [
        &["rev-parse", "HEAD"][..],
        &["status", "--porcelain=v2", "--ignored", "--", "src", "README.md", "private.env"],
        &["diff", "--cached"],
        &["diff"],
        &["fsck", "--no-dangling"],
    ] {
        state += &git(stage, args)?;
    }
    Ok(state)
}

/// The project without what git and the agents keep for themselves.
fn tree(project: &Path) -> Result<Tree, Fault> {
    let mut tree = Tree::new();
    let mut folders = vec![project.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            let is_top = folder == project;
            let name = entry.file_name();
            let is_theirs = is_top && name.as_bytes().starts_with(b".") && name != ".gitignore";
            if is_theirs {
                continue;
            }
            let found = fs::symlink_metadata(&path)?;
            let content = if found.is_symlink() {
                fs::read_link(&path)?.as_os_str().as_bytes().to_vec()
            } else if found.is_dir() {
                folders.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path)?
            };
            let changed = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
            let below = path.strip_prefix(project)?.as_os_str().as_bytes().to_vec();
            tree.insert(below, (found.mode(), changed, content));
        }
    }
    Ok(tree)
}

/// What there is at a path, short enough to be read.
fn short(found: Option<&(u32, i128, Vec<u8>)>) -> Option<(u32, i128, String)> {
    found.map(|(mode, changed, content)| {
        (*mode, *changed, String::from_utf8_lossy(content).chars().take(60).collect())
    })
}
