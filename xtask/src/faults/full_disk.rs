//! A disk that is really full: a small file system in memory, written to until nothing goes any more, then given room again.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Fault;
use crate::ledger::{Found, Ledger};
use crate::world::{Call, Told, World};

/// How it went.
pub enum FullDisk {
    /// It held: this many entries were acknowledged before and while it was full, and this many were not.
    Held { acknowledged: u64, refused: u64 },
    /// No file system can be mounted here, and why.
    Skipped(String),
}

/// Takes the mount away again, whatever happens.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _nothing_more_can_be_done = Command::new("umount").arg(self.0).status();
    }
}

/// Fills it up in two ways: by the hook's own writes, and by somebody else's.
pub fn run(unstuck: &Path) -> Result<FullDisk, Fault> {
    if !cfg!(target_os = "linux") || !nix::unistd::geteuid().is_root() {
        return Ok(FullDisk::Skipped("only root on Linux may mount a small file system".to_owned()));
    }
    let world = World::new(unstuck)?;
    fs::create_dir(world.state())?;
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=512k,mode=0700", "tmpfs"])
        .arg(world.state())
        .output()?;
    if !mounted.status.success() {
        let why = String::from_utf8_lossy(&mounted.stderr).trim().to_owned();
        return Ok(FullDisk::Skipped(format!("mount is refused: {why}")));
    }
    let state = world.state();
    let _mounted = Mounted(&state);
    let mut ledger = Ledger::default();
    let mut refused = 0;
    // The hook's own writes fill it: 512 kilobytes hold far less than these calls need.
    for number in 0..60 {
        refused += send(&world, &mut ledger, &format!("own-{number}"))?;
    }
    if refused == 0 {
        return Err("512 kilobytes were never full".into());
    }
    resize(&state, "4m")?;
    works_again(&world, &mut ledger, "room-1")?;
    // Somebody else fills what is left, to the last byte, in a moment when all is well.
    let filler = state.join("filler");
    let _it_ends_when_the_disk_is_full = fs::write(&filler, vec![0; 8 * 1024 * 1024]);
    let before = refused;
    for number in 0..20 {
        refused += send(&world, &mut ledger, &format!("other-{number}"))?;
    }
    let spared = 40 - (refused - before);
    fs::remove_file(&filler)?;
    works_again(&world, &mut ledger, "room-2")?;
    if spared == 40 {
        return Err("the disk was never full".into());
    }
    Ok(FullDisk::Held { acknowledged: ledger.acknowledged(), refused })
}

/// Sends a call; returns how many of its two entries were not acknowledged.
fn send(world: &World, ledger: &mut Ledger, mark: &str) -> Result<u64, Fault> {
    let call = Call::named("full", mark.to_owned());
    let reply = world.send(&[call.before(), call.after(2)])?;
    if !reply.status.success() || !reply.stderr.is_empty() || reply.answers()?.len() != 2 {
        return Err(format!("on a full disk the hook must answer as ever: {reply:?}").into());
    }
    let told = reply.told()?;
    ledger.note(mark, &told);
    Ok(told.iter().filter(|told| !told.is_acknowledged()).count() as u64)
}

fn works_again(world: &World, ledger: &mut Ledger, mark: &str) -> Result<(), Fault> {
    let call = Call::named("full", mark.to_owned());
    let reply = world.send(&[call.before(), call.after(0)])?;
    let told = reply.told()?;
    if told != [Told::Recorded; 2] {
        return Err(format!("there is room again, and the hook does not work: {reply:?}").into());
    }
    ledger.note(mark, &told);
    ledger.compare(&Found::in_copy_of(&world.store())?)
}

fn resize(state: &Path, size: &str) -> Result<(), Fault> {
    let status = Command::new("mount").args(["-o", &format!("remount,size={size}")]).arg(state).status()?;
    match status.success() {
        true => Ok(()),
        false => Err("the small file system cannot be made larger".into()),
    }
}
