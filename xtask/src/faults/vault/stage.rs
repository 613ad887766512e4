//! Where the blows fall: a tree with everything in it that trees can have, its safe, and what each snapshot must bring back.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::listing::Listing;
use crate::Fault;
use crate::world::{Reply, World};

/// Nothing expires by itself, and the disk may be small.
const SETTINGS: [&str; 4] = ["--set", "vault.per-target=1000", "--set", "vault.min-free=0B"];

/// A tree and its safe, always at the same place.
pub struct Stage {
    pub world: World,
    pub tree: PathBuf,
}

impl Stage {
    /// An empty one in memory: there, waiting for the disk costs nothing.
    pub fn new(unstuck: &Path) -> Result<Stage, Fault> {
        Stage::in_world(World::in_memory(unstuck)?)
    }

    /// One on the disk of temporary files.
    pub fn on_disk(unstuck: &Path) -> Result<Stage, Fault> {
        Stage::in_world(World::new(unstuck)?)
    }

    fn in_world(world: World) -> Result<Stage, Fault> {
        let tree = world.aside("tree");
        fs::create_dir(&tree)?;
        Ok(Stage { world, tree })
    }

    pub fn safe(&self) -> PathBuf {
        self.world.store().join("vault")
    }

    /// What a command line looks like.
    pub fn words<'a>(&self, args: &[&'a str]) -> Vec<&'a str> {
        args.iter().copied().chain(SETTINGS).collect()
    }

    pub fn run(&self, args: &[&str]) -> Result<Reply, Fault> {
        self.world.run(&self.words(args))
    }

    /// Runs something that has to work.
    pub fn must(&self, args: &[&str]) -> Result<String, Fault> {
        let reply = self.run(args)?;
        // One that says what it could not take is a snapshot all the same.
        let is_partial = reply.status.code() == Some(1) && snapshot_id(&reply.stdout).is_some();
        match reply.status.success() || is_partial {
            true => Ok(reply.stdout),
            false => Err(format!("unstuck {} does not work: {reply:?}", args.join(" ")).into()),
        }
    }

    pub fn tree(&self) -> Result<&str, Fault> {
        self.tree.to_str().ok_or_else(|| "the tree has a strange name".into())
    }

    /// Saves the tree; the id comes back.
    pub fn snapshot(&self) -> Result<String, Fault> {
        let said = self.must(&["snapshot", self.tree()?, "--all", "--json"])?;
        snapshot_id(&said).ok_or_else(|| format!("a snapshot has no id: {said}").into())
    }

    pub fn listing(&self) -> Result<Listing, Fault> {
        Ok(Listing::of(&[&self.tree])?)
    }

    /// Nothing that the safe holds is damaged, and these are in it.
    pub fn is_sound(&self, ids: &[&str]) -> Result<(), Fault> {
        let reply = self.run(&["snapshots", "check", "--json"])?;
        let said: Value = serde_json::from_str(&reply.stdout).unwrap_or_default();
        if said["sound"] != true {
            return Err(format!("the safe is not sound: {reply:?}").into());
        }
        let there: Vec<&str> =
            said["snapshots"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        match ids.iter().find(|id| !there.contains(id)) {
            Some(id) => Err(format!("{id} was acknowledged and is gone: {said}").into()),
            None => Ok(()),
        }
    }

    /// Restores a snapshot; then the tree must be this, but for what the snapshot says that it does not hold.
    pub fn brings_back(&self, id: &str, expected: &Listing) -> Result<(), Fault> {
        let gaps = self.gaps(id)?;
        match gaps.is_empty() {
            true => self.must(&["restore", id])?,
            // What is not held is named, so it is not called a success.
            false => self.run(&["restore", id])?.stdout,
        };
        match self.listing()?.without(&gaps).differs_from(&expected.without(&gaps)) {
            Some(difference) => Err(format!("{id} does not bring back what it held:\n{difference}").into()),
            None => Ok(()),
        }
    }

    /// What a snapshot says that it does not hold.
    pub fn gaps(&self, id: &str) -> Result<Vec<PathBuf>, Fault> {
        let said = self.must(&["snapshots", "--json"])?;
        let all = crate::project::json_lines(&said);
        let found = all
            .iter()
            .find(|found| found["id"] == *id)
            .ok_or_else(|| format!("{id} is not listed: {said}"))?;
        let path = |gap: &Value| gap["path"].as_str().map(PathBuf::from);
        Ok(found["gaps"].as_array().into_iter().flatten().filter_map(path).collect())
    }

    /// The newest snapshot that a restore saved.
    pub fn newest_saved(&self) -> Result<Option<String>, Fault> {
        let said = self.must(&["snapshots", "--json"])?;
        let all = crate::project::json_lines(&said);
        let saved =
            all.iter().filter(|found| found["why"] == "restore").max_by_key(|found| number(&found["id"]));
        Ok(saved.and_then(|found| found["id"].as_str()).map(str::to_owned))
    }

    /// Copies tree and safe to a place beside.
    pub fn save(&self) -> Result<(), Fault> {
        let saved = self.world.aside("saved");
        fs::create_dir_all(&saved)?;
        copy(&self.tree, &saved.join("tree"))?;
        copy(&self.world.state(), &saved.join("state"))
    }

    /// Makes both again what they were.
    pub fn reset(&self) -> Result<(), Fault> {
        let saved = self.world.aside("saved");
        for (there, copied) in [(&self.tree, "tree"), (&self.world.state(), "state")] {
            if there.symlink_metadata().is_ok() {
                fs::remove_dir_all(there)?;
            }
            copy(&saved.join(copied), there)?;
        }
        Ok(())
    }
}

/// The number in `s41`.
fn number(id: &Value) -> u64 {
    id.as_str().and_then(|id| id.strip_prefix('s')).and_then(|id| id.parse().ok()).unwrap_or(0)
}

pub fn snapshot_id(said: &str) -> Option<String> {
    let said: Value = serde_json::from_str(said.lines().next()?).ok()?;
    said["id"].as_str().map(str::to_owned)
}

/// Copies everything, times and links and attributes included. What is not there is not there afterwards.
fn copy(from: &Path, to: &Path) -> Result<(), Fault> {
    if from.symlink_metadata().is_err() {
        return Ok(());
    }
    match Command::new("cp").args(["-a", "--sparse=always", "--"]).args([from, to]).status()?.success() {
        true => Ok(()),
        false => Err(format!("{} cannot be copied", from.display()).into()),
    }
}

fn odd_name() -> &'static OsStr {
    OsStr::from_bytes(b"\xff\xfe odd\nname")
}

fn mode(path: &Path, mode: u32) -> Result<(), Fault> {
    Ok(fs::set_permissions(path, Permissions::from_mode(mode))?)
}

fn attribute(path: &Path, name: &str, value: &[u8]) -> Result<(), Fault> {
    match rustix::fs::lsetxattr(path, name, value, rustix::fs::XattrFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOTSUP) => Ok(()),
        Err(wrong) => Err(wrong.into()),
    }
}

fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut dice = crate::dice::Dice(seed);
    (0..length.div_ceil(8)).flat_map(|_| dice.next().to_le_bytes()).take(length).collect()
}

/// Everything that a tree can have.
pub fn furnish(tree: &Path) -> Result<(), Fault> {
    for (name, content) in
        [("one.txt", "one"), ("two.txt", "two"), ("empty", ""), (".hidden", "seen"), ("gone", "soon")]
    {
        fs::write(tree.join(name), content)?;
    }
    for folder in ["dir/deep/deeper", "void", "closed", "swap"] {
        fs::create_dir_all(tree.join(folder))?;
    }
    for name in ["dir/x", "dir/deep/y", "dir/deep/deeper/z", "closed/inside", "swap/was a file's folder"] {
        fs::write(tree.join(name), name)?;
    }
    fs::write(tree.join(odd_name()), "odd")?;
    fs::write(tree.join("script.sh"), "#!/bin/sh\n")?;
    mode(&tree.join("script.sh"), 0o755)?;
    mode(&tree.join("two.txt"), 0o444)?;
    symlink("one.txt", tree.join("link"))?;
    symlink("../nowhere", tree.join("dangling"))?;
    symlink("dir", tree.join("dir link"))?;
    fs::hard_link(tree.join("one.txt"), tree.join("dir/same"))?;
    fs::write(tree.join("pair"), "pair")?;
    fs::hard_link(tree.join("pair"), tree.join("pair too"))?;
    attribute(&tree.join("pair"), "user.colour", b"green")?;
    attribute(&tree.join("dir"), "user.kind", b"folder")?;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        tree.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )?;
    fs::write(tree.join("big"), noise((4 << 20) + 5000, 7))?;
    let sparse = File::create(tree.join("sparse"))?;
    sparse.set_len(6 << 20)?;
    sparse.write_all_at(b"an island", 3 << 20)?;
    for repository in [tree.to_owned(), tree.join("dir/nested")] {
        let git = repository.join(".git");
        fs::create_dir_all(git.join("refs/heads"))?;
        fs::create_dir_all(git.join("objects/ab"))?;
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
        fs::write(git.join("refs/heads/main"), format!("{:040}\n", 1))?;
        fs::write(git.join("objects/ab/cd"), noise(200, 9))?;
        mode(&git.join("objects/ab/cd"), 0o444)?;
    }
    mode(&tree.join("closed"), 0o555)
}

/// What an agent might do to it.
pub fn ravage(tree: &Path) -> Result<(), Fault> {
    fs::write(tree.join("one.txt"), "ONE")?;
    fs::remove_file(tree.join("gone"))?;
    fs::write(tree.join("new"), "came")?;
    fs::create_dir_all(tree.join("new dir/deep"))?;
    fs::write(tree.join("new dir/deep/file"), "came, too")?;
    fs::remove_dir_all(tree.join("dir/deep"))?;
    fs::remove_dir(tree.join("void"))?;
    fs::remove_dir_all(tree.join("swap"))?;
    fs::write(tree.join("swap"), "a file now")?;
    fs::remove_file(tree.join("link"))?;
    fs::create_dir(tree.join("link"))?;
    fs::write(tree.join("link/in it"), "x")?;
    fs::remove_file(tree.join("dangling"))?;
    symlink("../elsewhere", tree.join("dangling"))?;
    fs::remove_file(tree.join("pair too"))?;
    fs::write(tree.join("pair too"), "alone")?;
    attribute(&tree.join("pair"), "user.colour", b"red")?;
    mode(&tree.join("script.sh"), 0o600)?;
    mode(&tree.join("closed"), 0o755)?;
    fs::write(tree.join("closed/more"), "more")?;
    fs::remove_file(tree.join("fifo"))?;
    fs::rename(tree.join(odd_name()), tree.join("named"))?;
    let big = OpenOptions::new().write(true).open(tree.join("big"))?;
    big.write_all_at(b"changed in the middle", 2 << 20)?;
    let sparse = OpenOptions::new().write(true).open(tree.join("sparse"))?;
    sparse.write_all_at(b"another island", 5 << 20)?;
    fs::write(tree.join(".git/refs/heads/main"), format!("{:040}\n", 2))?;
    fs::remove_dir_all(tree.join("dir/nested/.git/objects"))?;
    Ok(())
}

/// And some more.
pub fn go_on(tree: &Path) -> Result<(), Fault> {
    fs::write(tree.join("third"), noise(3000, 3))?;
    fs::write(tree.join("one.txt"), "three")?;
    fs::remove_dir_all(tree.join("new dir"))?;
    fs::hard_link(tree.join("third"), tree.join("dir/third"))?;
    Ok(())
}
