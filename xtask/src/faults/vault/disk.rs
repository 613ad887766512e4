//! Disks that are really full, and a safe that may not be written: small file systems in memory.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::stage::{self, Stage};
use crate::Fault;
use crate::world::Reply;

/// Takes the mount away again, whatever happens.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _nothing_more_can_be_done = Command::new("umount").arg(self.0).status();
    }
}

fn mount(at: &Path, options: &str) -> Result<(), Fault> {
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(at).output()?;
    match mounted.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&mounted.stderr).trim().into()),
    }
}

fn remount(at: &Path, options: &str) -> Result<(), Fault> {
    let status = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(at).status()?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("it cannot be mounted with {options}").into()),
    }
}

pub fn run(unstuck: &Path, _is_short: bool) -> Result<String, Fault> {
    if !cfg!(target_os = "linux") || !nix::unistd::geteuid().is_root() {
        return Ok("full disks SKIPPED: only root on Linux may mount a small file system".to_owned());
    }
    let probe = tempfile::tempdir()?;
    if let Err(why) = mount(probe.path(), "size=1m") {
        return Ok(format!("full disks SKIPPED: mount is refused: {why}"));
    }
    drop(Mounted(probe.path()));
    full_safe(unstuck).map_err(|wrong| format!("a safe on a full disk: {wrong}"))?;
    full_tree(unstuck).map_err(|wrong| format!("a tree on a full disk: {wrong}"))?;
    read_only(unstuck).map_err(|wrong| format!("a safe that may not be written: {wrong}"))?;
    Ok("full disks and a closed one".to_owned())
}

/// It has to say what is wrong, and nothing else may happen.
fn in_words(reply: &Reply) -> Result<(), Fault> {
    let is_said = !reply.status.success() && !reply.stderr.is_empty() && !reply.stderr.contains("panicked");
    match is_said {
        true => Ok(()),
        false => Err(format!("it must be refused in words: {reply:?}").into()),
    }
}

fn full_safe(unstuck: &Path) -> Result<(), Fault> {
    let stage = Stage::new(unstuck)?;
    let state = stage.world.state();
    fs::create_dir(&state)?;
    mount(&state, "size=24m,mode=0700")?;
    let _mounted = Mounted(&state);
    stage::furnish(&stage.tree)?;
    let first = stage.snapshot()?;
    let old = stage.listing()?;
    stage::ravage(&stage.tree)?;
    // Somebody else fills it to the last byte; then to all but a little, less and less of it.
    let filler = state.join("filler");
    for spare in [0_u64, 1, 3, 20, 100, 500, 2000, 5000] {
        let _it_ends_when_the_disk_is_full = fs::write(&filler, vec![1; 24 << 20]);
        let full = fs::metadata(&filler)?.len();
        fs::File::options().write(true).open(&filler)?.set_len(full.saturating_sub(spare * 4096))?;
        let before = stage.listing()?;
        let taken = stage.run(&["snapshot", stage.tree()?, "--all", "--json"])?;
        if !taken.status.success() {
            in_words(&taken)?;
        }
        let restored = stage.run(&["restore", &first])?;
        let now = stage.listing()?;
        match restored.status.success() {
            true => {
                if let Some(difference) = now.differs_from(&old) {
                    return Err(format!("it said that it was done:\n{difference}").into());
                }
                fs::remove_dir_all(&stage.tree)?;
                fs::create_dir(&stage.tree)?;
                stage::furnish(&stage.tree)?;
                stage::ravage(&stage.tree)?;
            }
            false => {
                in_words(&restored)?;
                fs::remove_file(&filler)?;
                // Where it had begun, the next who comes ends it.
                stage.snapshot()?;
                let now = stage.listing()?;
                let differences = [now.differs_from(&before), now.differs_from(&old)];
                if let [Some(before), Some(old)] = differences {
                    return Err(format!(
                        "with {spare} pages to spare the tree is neither:\n{before}\nand\n{old}"
                    )
                    .into());
                }
            }
        }
        let _it_may_be_gone = fs::remove_file(&filler);
        stage.is_sound(&[&first])?;
    }
    remount(&state, "size=200m")?;
    stage.brings_back(&first, &old)
}

fn full_tree(unstuck: &Path) -> Result<(), Fault> {
    let stage = Stage::new(unstuck)?;
    mount(&stage.tree, "size=14m")?;
    let _mounted = Mounted(&stage.tree);
    stage::furnish(&stage.tree)?;
    let id = stage.snapshot()?;
    let old = stage.listing()?;
    stage::ravage(&stage.tree)?;
    fs::remove_file(stage.tree.join("big"))?;
    fs::write(stage.tree.join("filler"), vec![1; 8 << 20])?;
    let before = stage.listing()?;
    let restored = stage.run(&["restore", &id])?;
    let now = stage.listing()?;
    match restored.status.success() {
        true => match now.differs_from(&old) {
            Some(difference) => Err(format!("it said that it was done:\n{difference}").into()),
            None => Ok(()),
        },
        false => {
            in_words(&restored)?;
            match now.differs_from(&before) {
                Some(difference) => Err(format!("it was refused, and did something:\n{difference}").into()),
                None => {
                    remount(&stage.tree, "size=64m")?;
                    stage.brings_back(&id, &old)
                }
            }
        }
    }
}

fn read_only(unstuck: &Path) -> Result<(), Fault> {
    let stage = Stage::new(unstuck)?;
    let state = stage.world.state();
    fs::create_dir(&state)?;
    mount(&state, "size=64m,mode=0700")?;
    let _mounted = Mounted(&state);
    stage::furnish(&stage.tree)?;
    let id = stage.snapshot()?;
    let old = stage.listing()?;
    stage::ravage(&stage.tree)?;
    let before = stage.listing()?;
    remount(&state, "ro")?;
    let tree = stage.tree()?;
    for args in [&["snapshot", tree][..], &["restore", &id], &["gc"], &["snapshots", "drop", &id]] {
        in_words(&stage.run(args)?)?;
    }
    for args in [&["snapshots"][..], &["diff", &id, "--name-only"], &["snapshots", "check"]] {
        let reply = stage.run(args)?;
        if reply.stderr.contains("panicked") {
            return Err(format!("{args:?}: {reply:?}").into());
        }
    }
    if let Some(difference) = stage.listing()?.differs_from(&before) {
        return Err(format!("the tree was changed:\n{difference}").into());
    }
    remount(&state, "rw")?;
    stage.brings_back(&id, &old)
}
