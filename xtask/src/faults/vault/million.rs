//! A million files, and one file of 20 GB that is nearly all holes: how long it takes, and how much memory.

use std::env;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::stage::Stage;
use crate::Fault;

const FOLDERS: u32 = 1000;
const FILES: u32 = 1000;

pub fn run(unstuck: &Path) -> Result<(), Fault> {
    sparse(unstuck)?;
    million(unstuck)
}

/// Runs it, and tells how long it took and what it needed.
fn measured(stage: &Stage, unstuck: &Path, what: &str, args: &[&str]) -> Result<String, Fault> {
    let mut command = Command::new(env::current_exe()?);
    command.arg("peak-memory").arg(unstuck).args(stage.words(args));
    stage.world.surround(&mut command);
    let start = Instant::now();
    let output = command.output()?;
    let took = start.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stderr);
    let peak = crate::bench::Measured::read(&said).map_or(0, |measured| measured.peak);
    println!("{what}: {took:.1} s, {} MB of memory", peak / 1024);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() && !stdout.is_empty() {
        true => Ok(stdout),
        false => Err(format!("{what} does not work: {said}").into()),
    }
}

fn id(said: &str) -> Result<String, Fault> {
    super::stage::snapshot_id(said).ok_or_else(|| format!("no id in {said}").into())
}

fn sparse(unstuck: &Path) -> Result<(), Fault> {
    let stage = Stage::on_disk(unstuck)?;
    let path = stage.tree.join("sparse");
    let file = File::create(&path)?;
    file.set_len(20 << 30)?;
    for gigabyte in 0..20 {
        file.write_all_at(b"an island", (gigabyte << 30) + 12_345)?;
    }
    let tree = stage.tree()?;
    let first =
        id(&measured(&stage, unstuck, "20 GB of holes, first snapshot", &["snapshot", tree, "--json"])?)?;
    measured(&stage, unstuck, "20 GB of holes, no change", &["snapshot", tree, "--json"])?;
    file.write_all_at(b"another island", 7 << 30)?;
    measured(&stage, unstuck, "20 GB of holes, restore", &["restore", &first, "--json"])?;
    let mut read = [0; 14];
    File::open(&path)?.read_exact_at(&mut read, 7 << 30)?;
    let blocks = std::os::unix::fs::MetadataExt::blocks(&fs::metadata(&path)?);
    match read == [0; 14] && blocks < 10_000 && fs::metadata(&path)?.len() == 20 << 30 {
        true => Ok(()),
        false => Err(format!("it was not brought back as it was: {blocks} blocks").into()),
    }
}

fn million(unstuck: &Path) -> Result<(), Fault> {
    let stage = Stage::on_disk(unstuck)?;
    let start = Instant::now();
    for folder in 0..FOLDERS {
        let folder = stage.tree.join(folder.to_string());
        fs::create_dir(&folder)?;
        for file in 0..FILES {
            fs::write(folder.join(file.to_string()), format!("{} {file}", folder.display()))?;
        }
    }
    println!("a million files, made: {:.1} s", start.elapsed().as_secs_f64());
    let tree = stage.tree()?;
    let first =
        id(&measured(&stage, unstuck, "a million files, first snapshot", &["snapshot", tree, "--json"])?)?;
    measured(&stage, unstuck, "a million files, no change", &["snapshot", tree, "--json"])?;
    for folder in 0..10 {
        fs::remove_dir_all(stage.tree.join(folder.to_string()))?;
    }
    for folder in 10..1000 {
        fs::write(stage.tree.join(format!("{folder}/7")), "changed")?;
    }
    measured(&stage, unstuck, "a million files, restore of 10,990", &["restore", &first, "--json"])?;
    measured(&stage, unstuck, "a million files, check", &["snapshots", "check", "--json"])?;
    measured(&stage, unstuck, "a million files, collection", &["gc", "--json"])?;
    let restored = fs::read_to_string(stage.tree.join("5/500"))?;
    match restored.ends_with("/5 500") && !fs::read_to_string(stage.tree.join("500/7"))?.contains("changed") {
        true => Ok(()),
        false => Err("it was not brought back as it was".into()),
    }
}
