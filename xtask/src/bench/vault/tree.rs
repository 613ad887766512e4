//! The trees that are snapshotted: made from a fixed seed, and changed in fixed ways. What is measured never depends on what
//! somebody happens to have lying around.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::peer::alone;
use crate::dice::Dice;
use crate::{Fault, project};

/// So much of one large file counts as "one file changed".
const SPOT: u64 = 64 * 1024;
/// Commits of the made-up history, and how many files each of them adds.
const COMMITS: u64 = 400;
const FILES_PER_COMMIT: u64 = 26;
/// Pushes that are so small that git leaves their objects loose.
const LOOSE_PUSHES: u64 = 30;

/// What a tree is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Small files of a size such as sources have, in folders.
    Small { files: u32, folders: u32, mean: u64 },
    /// One file of random bytes.
    Random { bytes: u64 },
    /// One file that is nearly all hole.
    Sparse { bytes: u64 },
    /// This project's own repository, with a longer history and more files.
    Repository,
}

/// How much of it is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// One file; of a single large one, 64 KB in its middle.
    OneFile,
    /// One in a hundred; of a single large one, that part of its bytes.
    OnePercent,
}

/// A tree on disk.
pub struct Tree {
    /// Its folder.
    pub root: PathBuf,
    kind: Kind,
    /// What may be changed: the regular files outside of `.git`.
    files: Vec<PathBuf>,
    /// Files, folders and links in it.
    pub entries: u64,
    /// Bytes of all its files.
    pub bytes: u64,
    dice: Dice,
}

impl Tree {
    /// Makes it in a folder that is not there yet.
    pub fn make(kind: Kind, root: PathBuf) -> Result<Tree, Fault> {
        let mut dice = Dice(5);
        match kind {
            Kind::Small { files, folders, mean } => small(&root, files, folders, mean, &mut dice)?,
            Kind::Random { bytes } => random(&root, bytes, &mut dice)?,
            Kind::Sparse { bytes } => sparse(&root, bytes)?,
            Kind::Repository => repository(&root, &mut dice)?,
        }
        let mut tree = Tree { root, kind, files: Vec::new(), entries: 0, bytes: 0, dice };
        tree.look_again()?;
        Ok(tree)
    }

    fn look(&mut self, folder: &Path) -> Result<(), Fault> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let found = path.symlink_metadata()?;
            self.entries += 1;
            if found.is_dir() {
                self.look(&path)?;
            } else if found.is_file() {
                self.bytes += found.len();
                if !path.components().any(|part| part.as_os_str() == ".git") {
                    self.files.push(path);
                }
            }
        }
        Ok(())
    }

    /// Does deleting it touch so many files that the file system remembers it?
    pub fn is_many(&self) -> bool {
        self.entries > 1_000
    }

    /// Changes it as work does: of one in a hundred files eight in ten are written anew, one is removed, one comes to it.
    pub fn change(&mut self, amount: Amount) -> Result<(), Fault> {
        self.look_again()?;
        match (self.kind, amount) {
            (Kind::Random { bytes } | Kind::Sparse { bytes }, Amount::OneFile) => self.spot(bytes / 2, SPOT),
            (Kind::Random { bytes } | Kind::Sparse { bytes }, Amount::OnePercent) => {
                self.spot(bytes / 2, bytes / 100)
            }
            (Kind::Small { .. } | Kind::Repository, Amount::OneFile) => {
                let which = self.dice.below(self.files.len() as u64) as usize;
                self.write_anew(which)
            }
            (Kind::Small { .. } | Kind::Repository, Amount::OnePercent) => {
                let first = self.dice.below(100) as usize;
                for (number, which) in (first..self.files.len()).step_by(100).enumerate() {
                    match number % 10 {
                        8 => fs::remove_file(&self.files[which])?,
                        9 => {
                            let name = format!("new-{:016x}.rs", self.dice.next());
                            fs::write(self.files[which].with_file_name(name), self.line())?;
                        }
                        _ => self.write_anew(which)?,
                    }
                }
                Ok(())
            }
        }
    }

    /// Finds out what there is: changes stay, and not everybody restores all of it.
    fn look_again(&mut self) -> Result<(), Fault> {
        let root = self.root.clone();
        (self.entries, self.bytes) = (0, 0);
        self.files.clear();
        self.look(&root)?;
        self.files.sort();
        Ok(())
    }

    fn line(&mut self) -> String {
        format!("// written anew: {:016x}\n", self.dice.next())
    }

    /// The file keeps its length, so that only its content and its times tell.
    fn write_anew(&mut self, which: usize) -> Result<(), Fault> {
        let line = self.line();
        let file = File::options().write(true).open(&self.files[which])?;
        let length = file.metadata()?.len().min(line.len() as u64) as usize;
        match length {
            0 => file.write_all_at(line.as_bytes(), 0)?,
            _ => file.write_all_at(&line.as_bytes()[line.len() - length..], 0)?,
        }
        Ok(())
    }

    fn spot(&mut self, at: u64, length: u64) -> Result<(), Fault> {
        let file = File::options().write(true).open(&self.files[0])?;
        Ok(file.write_all_at(&noise(&mut self.dice, length), at)?)
    }
}

fn noise(dice: &mut Dice, length: u64) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| dice.next().to_le_bytes()).collect();
    bytes.truncate(length as usize);
    bytes
}

/// Text that compresses about as sources do; files are cut out of it.
fn prose(dice: &mut Dice) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "let", "fn", "match", "self", "return", "value", "index", "folder", "entry", "result", "state",
        "error", "request", "buffer", "length", "header",
    ];
    let mut text = Vec::with_capacity(1 << 20);
    while text.len() < 1 << 20 {
        let words: Vec<&str> = (0..4 + dice.below(6)).map(|_| dice.pick(&WORDS)).collect();
        text.extend(format!("    {}({:x});\n", words.join("_"), dice.below(1 << 20)).into_bytes());
    }
    text
}

/// Many small ones, some larger: six in ten up to 4 KB, one in a hundred up to 256 KB; 9.4 KB on average.
fn size(dice: &mut Dice, mean: u64) -> u64 {
    let (least, most) = match dice.below(100) {
        0..60 => (100, 4_000),
        60..90 => (4_000, 16_000),
        90..99 => (16_000, 64_000),
        _ => (64_000, 256_000),
    };
    (least + dice.below(most - least)) * mean / 9_400
}

/// One file's content: no two are the same.
fn content<'a>(dice: &mut Dice, prose: &'a [u8], mean: u64) -> (String, &'a [u8]) {
    let size = size(dice, mean) as usize;
    let from = dice.below((prose.len() - size) as u64) as usize;
    (format!("//! {:016x}\n", dice.next()), &prose[from..from + size])
}

fn small(root: &Path, files: u32, folders: u32, mean: u64, dice: &mut Dice) -> Result<(), Fault> {
    let prose = prose(dice);
    fs::create_dir_all(root)?;
    let mut all = vec![(root.to_owned(), 0)];
    for number in 0..folders {
        let (parent, depth) = loop {
            let (parent, depth) = &all[dice.below(all.len() as u64) as usize];
            if *depth < 8 {
                break (parent, *depth);
            }
        };
        let folder = parent.join(format!("folder-{number}"));
        fs::create_dir(&folder)?;
        all.push((folder, depth + 1));
    }
    // The last few stay empty, as some always are.
    let filled = all.len() - all.len() / 100;
    for number in 0..files {
        let folder = &all[dice.below(filled as u64) as usize].0;
        let path = folder.join(format!("file-{number}.rs"));
        let (head, rest) = content(dice, &prose, mean);
        let mut file = File::create(&path)?;
        file.write_all(&[head.as_bytes(), rest].concat())?;
        match number % 1_000 {
            7 => symlink(format!("file-{number}.rs"), folder.join(format!("link-{number}")))?,
            number if number % 50 == 3 => file.set_permissions(fs::Permissions::from_mode(0o755))?,
            _ => {}
        }
    }
    Ok(())
}

fn random(root: &Path, bytes: u64, dice: &mut Dice) -> Result<(), Fault> {
    fs::create_dir_all(root)?;
    let mut file = File::create(root.join("random.bin"))?;
    let mut left = bytes;
    while left > 0 {
        let piece = left.min(4 << 20);
        file.write_all(&noise(dice, piece))?;
        left -= piece;
    }
    Ok(())
}

fn sparse(root: &Path, bytes: u64) -> Result<(), Fault> {
    fs::create_dir_all(root)?;
    let file = File::create(root.join("disk.img"))?;
    file.set_len(bytes)?;
    // A little at the beginning and the end, as an image of a disk has it.
    for at in [0, bytes - SPOT] {
        file.write_all_at(&noise(&mut Dice(at + 1), SPOT), at)?;
    }
    Ok(())
}

/// A clone that shares nothing, then a history on top of it: one large push that stays packed, and small ones that stay loose.
fn repository(root: &Path, dice: &mut Dice) -> Result<(), Fault> {
    let prose = prose(dice);
    let home = root.parent().ok_or("the tree lies nowhere")?;
    let git = |folder: &Path, args: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(folder).args(args).stdin(Stdio::null()).stdout(Stdio::piped());
        alone(&mut command, home);
        command
    };
    let said = |mut command: Command| -> Result<String, Fault> {
        let output = command.stderr(Stdio::piped()).output()?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()).into()),
        }
    };
    let mut clone = git(home, &["clone", "--quiet", "--no-hardlinks"]);
    clone.arg(project::root()).arg(root);
    said(clone)?;
    let mut files = 0;
    for push in 0..=LOOSE_PUSHES {
        let tip = said(git(root, &["rev-parse", "HEAD"]))?;
        let mut import = git(root, &["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn()?;
        let mut stream = BufWriter::new(import.stdin.take().ok_or("git has no input")?);
        let commits = if push == 0 { COMMITS } else { 1 };
        for commit in 0..commits {
            let at = 1_790_000_000 + push * 100_000 + commit;
            write!(stream, "commit refs/heads/grown\ncommitter Bench <bench@unstuck.example> {at} +0000\n")?;
            write!(stream, "data 6\nGrown\n\n")?;
            if commit == 0 {
                writeln!(stream, "from {tip}")?;
            }
            for _ in 0..FILES_PER_COMMIT {
                // Every fifth file is a new version of one that is there.
                let number = match files > 0 && dice.below(5) == 0 {
                    true => dice.below(files),
                    false => files,
                };
                files = files.max(number + 1);
                let (head, rest) = content(dice, &prose, 9_400);
                let name = format!("grown/{}/{}/file-{number}.rs", number % 40, number / 40 % 12);
                write!(stream, "M 100644 inline {name}\ndata {}\n{head}", head.len() + rest.len())?;
                stream.write_all(rest)?;
                writeln!(stream)?;
            }
        }
        drop(stream.into_inner()?);
        if !import.wait()?.success() {
            return Err("git fast-import failed".into());
        }
        said(git(root, &["checkout", "--quiet", "--detach", "grown"]))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(amount: Amount, expected: [usize; 3]) {
        let folder = tempfile::tempdir().unwrap();
        let kind = Kind::Small { files: 1_000, folders: 20, mean: 400 };
        let mut tree = Tree::make(kind, folder.path().join("tree")).unwrap();
        let state = |files: &[PathBuf]| -> Vec<(PathBuf, Vec<u8>)> {
            files.iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
        };
        let before = state(&tree.files);
        tree.change(amount).unwrap();
        tree.look_again().unwrap();
        let after = state(&tree.files);
        let names = |state: &[(PathBuf, Vec<u8>)]| -> Vec<PathBuf> {
            state.iter().map(|(path, _)| path.clone()).collect()
        };
        let (old, new) = (names(&before), names(&after));
        let gone = old.iter().filter(|path| !new.contains(path)).count();
        let come = new.iter().filter(|path| !old.contains(path)).count();
        let rewritten =
            after.iter().filter(|(path, _)| old.contains(path)).filter(|one| !before.contains(one));
        assert_eq!([rewritten.count(), gone, come], expected);
    }

    #[test]
    fn one_file_is_one_file() {
        check(Amount::OneFile, [1, 0, 0]);
    }

    #[test]
    fn one_percent_is_rewritten_removed_and_added() {
        check(Amount::OnePercent, [8, 1, 1]);
    }

    #[test]
    fn of_one_large_file_a_spot_changes_or_a_hundredth() {
        for (amount, at_most) in [(Amount::OneFile, SPOT), (Amount::OnePercent, 100_000)] {
            for kind in [Kind::Random { bytes: 10_000_000 }, Kind::Sparse { bytes: 10_000_000 }] {
                let folder = tempfile::tempdir().unwrap();
                let mut tree = Tree::make(kind, folder.path().join("tree")).unwrap();
                let before = fs::read(&tree.files[0]).unwrap();
                tree.change(amount).unwrap();
                let after = fs::read(&tree.files[0]).unwrap();
                let changed = before.iter().zip(&after).filter(|(old, new)| old != new).count() as u64;
                assert_eq!(before.len(), after.len());
                assert!(changed <= at_most && changed > at_most / 10 * 9, "{kind:?}: {changed} of {at_most}");
            }
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_tree() {
        let folder = tempfile::tempdir().unwrap();
        let kind = Kind::Small { files: 200, folders: 20, mean: 400 };
        let made = ["one", "two"].map(|name| Tree::make(kind, folder.path().join(name)).unwrap());
        let told = made.each_ref().map(|tree| {
            let told = tree
                .files
                .iter()
                .map(|path| (path.strip_prefix(&tree.root).unwrap().to_owned(), fs::read(path).unwrap()));
            told.collect::<Vec<_>>()
        });
        assert!(told[0] == told[1] && told[0].len() == 200);
    }
}
