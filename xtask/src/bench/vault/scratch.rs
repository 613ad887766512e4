//! Where trees and snapshots lie while they are measured: a folder that goes away again, whatever happens.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::{Fault, project};

/// Begins the names of all such folders; the number of the process follows.
const PREFIX: &str = "bench-vault-";
/// So long ext4 without a journal avoids the places of deleted files, and is many times slower in making new ones.
const FORGETS_DELETED: Duration = Duration::from_secs(61);
/// How large the file system in a file may grow; it takes only what is written to it.
const IMAGE: u64 = 24 << 30;

/// What it lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Disk {
    /// The disk that holds the build's outputs.
    #[default]
    Plain,
    /// A new ext4 in a file on that disk; only root can mount it.
    Image,
}

/// A folder that goes away again.
pub struct Scratch {
    folder: PathBuf,
    disk: Disk,
}

impl Scratch {
    /// Makes one; what a killed run left behind is removed first.
    pub fn make(disk: Disk) -> Result<Scratch, Fault> {
        let target = std::env::current_exe()?;
        let target = target.ancestors().nth(2).unwrap_or(project::root()).to_owned();
        let mut is_cleared = false;
        for found in fs::read_dir(&target)? {
            let path = found?.path();
            if is_left_behind(&path) {
                println!("removing what a killed run left behind: {}", path.display());
                remove(&path)?;
                is_cleared = true;
            }
        }
        if is_cleared && disk == Disk::Plain {
            thread::sleep(FORGETS_DELETED);
        }
        let scratch = Scratch { folder: target.join(format!("{PREFIX}{}", std::process::id())), disk };
        fs::create_dir(&scratch.folder)?;
        if disk == Disk::Image {
            mount(&scratch.folder)?;
        }
        Ok(scratch)
    }

    /// Where to put things.
    pub fn path(&self) -> PathBuf {
        match self.disk {
            Disk::Plain => self.folder.clone(),
            Disk::Image => mounted(&self.folder),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(fault) = remove(&self.folder) {
            eprintln!("{} stays behind: {fault}", self.folder.display());
        }
    }
}

impl Disk {
    /// What it is, in words.
    pub fn name(self) -> &'static str {
        match self {
            Disk::Plain => "on the disk of the build's outputs",
            Disk::Image => "on a new ext4 in a file",
        }
    }
}

fn mounted(folder: &Path) -> PathBuf {
    folder.join("disk")
}

fn mount(folder: &Path) -> Result<(), Fault> {
    let (image, place) = (folder.join("image"), mounted(folder));
    fs::create_dir(&place)?;
    File::create(&image)?.set_len(IMAGE)?;
    said(Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0", "-i", "4096"]).arg(&image))?;
    // Past the cache of the disk below, or everything would be held twice.
    let device = said(Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(&image))?;
    // Nothing is written in the background while somebody is measured.
    let mount = said(Command::new("mount").args(["-o", "noinit_itable", &device]).arg(&place));
    // From now on it goes with the mount, however that ends.
    said(Command::new("losetup").args(["--detach", &device]))?;
    mount.map(drop)
}

fn said(command: &mut Command) -> Result<String, Fault> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error}", command.get_program().to_string_lossy()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()).into()),
    }
}

fn remove(folder: &Path) -> Result<(), Fault> {
    if mounted(folder).exists() {
        // Fails where the mount failed; then there is nothing to unmount.
        let _unmounted = said(Command::new("umount").arg(mounted(folder)));
    }
    Ok(fs::remove_dir_all(folder)?)
}

/// Is it the folder of a process that is no more?
fn is_left_behind(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix(PREFIX).is_some_and(|process| !Path::new("/proc").join(process).exists())
}
