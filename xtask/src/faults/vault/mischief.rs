//! What others do meanwhile: files that change while they are read, folders that vanish, links that are swapped in, rights that
//! are taken away, bits that flip, two who restore at once, processes that die with a lock.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::stage::{self, Stage, snapshot_id};
use crate::Fault;
use crate::faults::sweep::files;
use crate::world::speak;

/// One piece of mischief.
type Mischief = fn(&Path, u32) -> Result<(), Fault>;

const ALL: [(&str, Mischief); 8] = [
    ("files that change while they are read", changing_files),
    ("folders that vanish", vanishing_folders),
    ("a link that is swapped in", swapped_link),
    ("rights that are taken away", rights),
    ("a flipped bit", flipped_bit),
    ("two who restore at once", two_restores),
    ("a dead process's lock", stale_lock),
    ("an editor that saves during a restore", busy_editor),
];

pub fn run(unstuck: &Path, is_short: bool) -> Result<String, Fault> {
    let rounds = if is_short { 3 } else { 40 };
    for (name, mischief) in ALL {
        let start = Instant::now();
        mischief(unstuck, rounds).map_err(|wrong| format!("{name}: {wrong}"))?;
        println!("  {name}: held ({:.1} s)", start.elapsed().as_secs_f64());
    }
    Ok(format!("{} kinds of mischief", ALL.len()))
}

/// Does something again and again while something else is done.
fn meanwhile<T>(
    mischief: impl Fn() -> std::io::Result<()> + Sync,
    deed: impl FnOnce() -> Result<T, Fault>,
) -> Result<T, Fault> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                mischief()?;
            }
            std::io::Result::Ok(())
        });
        let done = deed();
        is_over.store(true, Ordering::Relaxed);
        other.join().map_err(|_| "the mischief panicked")??;
        done
    })
}

fn changing_files(unstuck: &Path, rounds: u32) -> Result<(), Fault> {
    let stage = Stage::new(unstuck)?;
    stage::furnish(&stage.tree)?;
    let busy = stage.tree.join("busy");
    fs::write(&busy, vec![b'a'; 3 << 20])?;
    let quiet = stage.listing()?.items.remove(&stage.tree.join("pair"));
    for _ in 0..rounds {
        let letter = std::sync::atomic::AtomicU8::new(b'a');
        let scribble = || {
            let letter = b'a' + letter.fetch_add(1, Ordering::Relaxed) % 20;
            File::options().write(true).open(&busy)?.write_all_at(&vec![letter; 3 << 20], 0)
        };
        let id = meanwhile(scribble, || stage.snapshot())?;
        stage.is_sound(&[&id])?;
        stage.must(&["restore", &id])?;
        if stage.listing()?.items.remove(&stage.tree.join("pair")) != quiet {
            return Err("a file that nobody touched is another one".into());
        }
        let now = fs::read(&busy)?;
        if now.len() != 3 << 20 {
            return Err("half a file came back".into());
        }
    }
    Ok(())
}

fn vanishing_folders(unstuck: &Path, rounds: u32) -> Result<(), Fault> {
    let stage = Stage::new(unstuck)?;
    stage::furnish(&stage.tree)?;
    let before = stage.listing()?;
    let here = stage.tree.join("here");
    for _ in 0..rounds {
        let flicker = || {
            for number in 0..20 {
                fs::create_dir_all(here.join(format!("{number}/deep")))?;
                fs::write(here.join(format!("{number}/deep/file")), "x")?;
            }
            fs::remove_dir_all(&here)
        };
        let id = meanwhile(flicker, || stage.snapshot())?;
        stage.is_sound(&[&id])?;
        stage.must(&["restore", &id])?;
        let now = stage.listing()?;
        let lost = before.items.keys().find(|path| !now.items.contains_key(*path));
        if let Some(lost) = lost {
            return Err(format!("{lost:?} is gone, and nobody touched it").into());
        }
    }
    Ok(())
}

/// While a restore writes into a folder, that folder is swapped for a link that leads out of the tree.
fn swapped_link(unstuck: &Path, rounds: u32) -> Result<(), Fault> {
    let stage = Stage::new(unstuck)?;
    stage::furnish(&stage.tree)?;
    for number in 0..200 {
        fs::write(stage.tree.join(format!("dir/many-{number}")), format!("old {number}"))?;
    }
    let id = stage.snapshot()?;
    let outside = stage.world.aside("outside");
    fs::create_dir(&outside)?;
    for number in 0..200 {
        fs::write(outside.join(format!("many-{number}")), "not yours")?;
    }
    fs::write(outside.join("x"), "not yours")?;
    let expected = super::listing::Listing::of(&[&outside])?;
    let (dir, away) = (stage.tree.join("dir"), stage.world.aside("away"));
    for _ in 0..rounds {
        for number in 0..200 {
            let _it_may_be_elsewhere = fs::write(dir.join(format!("many-{number}")), "NEW");
        }
        let swap = || {
            // Whatever the restore did to it meanwhile: only the outside counts.
            let _swapped = fs::rename(&dir, &away).and_then(|()| symlink(&outside, &dir));
            thread::sleep(Duration::from_micros(300));
            // The restore may have been faster, here and below.
            if dir.is_symlink() {
                let _gone_already = fs::remove_file(&dir);
            }
            if away.exists() && !dir.exists() {
                let _there_already = fs::rename(&away, &dir);
            }
            thread::sleep(Duration::from_micros(300));
            Ok(())
        };
        meanwhile(swap, || {
            for _ in 0..3 {
                stage.run(&["restore", &id])?;
            }
            Ok(())
        })?;
        let now = super::listing::Listing::of(&[&outside])?;
        if let Some(difference) = now.differs_from(&expected) {
            return Err(format!("something outside was touched:\n{difference}").into());
        }
        if away.exists() {
            fs::remove_dir_all(&away)?;
        }
        stage.must(&["restore", &id])?;
    }
    stage.is_sound(&[&id])
}

/// Somebody who is not root: what may not be read is named, and what may not be written is left alone.
fn rights(unstuck: &Path, _rounds: u32) -> Result<(), Fault> {
    const NOBODY: u32 = 65_534;
    let is_root = nix::unistd::geteuid().is_root();
    let stage = Stage::new(unstuck)?;
    stage::furnish(&stage.tree)?;
    let secret = stage.tree.join("dir/secret");
    fs::write(&secret, "secret")?;
    fs::create_dir_all(stage.tree.join("shut/inside"))?;
    let before: &[&str] = match is_root {
        true => {
            let give = Command::new("chown")
                .arg("-R")
                .arg(format!("{NOBODY}:{NOBODY}"))
                .arg(stage.world.aside("."))
                .status()?;
            if !give.success() {
                return Err("the tree cannot be given away".into());
            }
            &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        }
        false => &[],
    };
    // A program below a folder that is closed to others cannot be started by them.
    let copy = stage.world.aside("unstuck-copy");
    fs::copy(unstuck, &copy)?;
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
    let run = |args: &[&str]| {
        let mut words: Vec<&str> = before.to_vec();
        words.push(copy.to_str().unwrap_or_default());
        let all = stage.words(args);
        words.extend(all);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        stage.world.surround(&mut command);
        speak(command, b"", None)
    };
    let started = run(&["--version"])?;
    if !started.status.success() {
        println!("  SKIPPED: {}", started.stderr.trim());
        return Ok(());
    }
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000))?;
    fs::set_permissions(stage.tree.join("shut"), fs::Permissions::from_mode(0o000))?;
    let taken = run(&["snapshot", stage.tree()?, "--all", "--json"])?;
    let said: Value = serde_json::from_str(&taken.stdout).map_err(|_| format!("no snapshot: {taken:?}"))?;
    let gaps = said["gaps"].as_array().map_or(0, Vec::len);
    if said["partial"] != true || gaps != 2 {
        return Err(format!("what cannot be read must be named: {said}").into());
    }
    let id = snapshot_id(&taken.stdout).ok_or("no id")?;
    let old = stage.listing()?;
    stage::ravage(&stage.tree)?;
    if is_root {
        for (path, _) in stage.listing()?.items {
            std::os::unix::fs::lchown(&path, Some(NOBODY), Some(NOBODY))?;
        }
    }
    let restored = run(&["restore", &id, "--json"])?;
    let now = stage.listing()?;
    if let Some(difference) = now.differs_from(&old) {
        return Err(format!("it does not bring back what it held: {restored:?}\n{difference}").into());
    }
    fs::set_permissions(stage.tree.join("shut"), fs::Permissions::from_mode(0o755))?;
    let _owner = chown(&secret, Some(NOBODY), Some(NOBODY));
    Ok(())
}

fn flipped_bit(unstuck: &Path, rounds: u32) -> Result<(), Fault> {
    let stage = Stage::new(unstuck)?;
    stage::furnish(&stage.tree)?;
    fs::write(stage.tree.join("marked"), "a content that is easy to find in a pack")?;
    let id = stage.snapshot()?;
    let old = stage.listing()?;
    stage::ravage(&stage.tree)?;
    fs::remove_file(stage.tree.join("marked"))?;
    stage.save()?;
    for round in 0..rounds {
        stage.reset()?;
        let mark = b"easy to find";
        let found = files(&stage.safe().join("packs"))?.into_iter().find_map(|pack| {
            let bytes = fs::read(&pack).ok()?;
            let at = bytes.windows(mark.len()).position(|window| window == mark)?;
            Some((pack, at as u64 + u64::from(round) % mark.len() as u64))
        });
        let (pack, at) = found.ok_or("the content is in no pack")?;
        let file = OpenOptions::new().read(true).write(true).open(&pack)?;
        let mut byte = [0];
        file.read_exact_at(&mut byte, at)?;
        file.write_all_at(&[byte[0] ^ (1 << (round % 8))], at)?;
        let check = stage.run(&["snapshots", "check", "--json"])?;
        let said: Value = serde_json::from_str(&check.stdout)?;
        let damage = &said["damages"][0];
        let is_named = said["damages"].as_array().is_some_and(|all| all.len() == 1)
            && damage["snapshot"] == *id
            && damage["path"].as_str().is_some_and(|path| path.ends_with("/marked"))
            && damage["file"].as_str() == pack.to_str();
        if !is_named || check.status.success() {
            return Err(format!("the damage is not named: {check:?}").into());
        }
        let restored = stage.run(&["restore", &id, "--json"])?;
        let said: Value = serde_json::from_str(&restored.stdout).map_err(|_| format!("{restored:?}"))?;
        if said["kept"][0]["because"] != "damaged" {
            return Err(format!("what is damaged must be named: {restored:?}").into());
        }
        let mut expected = old.clone();
        expected.items.remove(&stage.tree.join("marked"));
        let mut now = stage.listing()?;
        // Without that file, the tree's own time cannot be the same for sure.
        expected.items.remove(&stage.tree);
        now.items.remove(&stage.tree);
        if let Some(difference) = now.differs_from(&expected) {
            return Err(format!("the rest is not restored:\n{difference}").into());
        }
    }
    Ok(())
}

fn two_restores(unstuck: &Path, rounds: u32) -> Result<(), Fault> {
    let stage = Stage::new(unstuck)?;
    stage::furnish(&stage.tree)?;
    let one = stage.snapshot()?;
    let first = stage.listing()?;
    stage::ravage(&stage.tree)?;
    let two = stage.snapshot()?;
    let second = stage.listing()?;
    for _ in 0..rounds {
        let start = |id: &str| -> Result<_, Fault> {
            let mut command = stage.world.command::<&str>(&[], &stage.words(&["restore", id]));
            Ok(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
        };
        let both = [start(&one)?, start(&two)?, start(&one)?];
        for child in both {
            let output = child.wait_with_output()?;
            if !output.status.success() {
                return Err(format!("{}", String::from_utf8_lossy(&output.stderr)).into());
            }
        }
        let now = stage.listing()?;
        let differences = [now.differs_from(&first), now.differs_from(&second)];
        if let [Some(first), Some(second)] = differences {
            return Err(format!("the tree is neither:\n{first}\nand\n{second}").into());
        }
    }
    stage.is_sound(&[&one, &two])
}

/// A process that is killed while it holds the safe keeps nobody out.
fn stale_lock(unstuck: &Path, rounds: u32) -> Result<(), Fault> {
    let stage = Stage::new(unstuck)?;
    stage::furnish(&stage.tree)?;
    let id = stage.snapshot()?;
    for round in 0..rounds {
        stage::ravage(&stage.tree)?;
        let command = stage.world.command::<&str>(&[], &stage.words(&["restore", &id]));
        speak(command, b"", Some(Duration::from_millis(u64::from(round) * 3 % 50 + 1)))?;
        let start = Instant::now();
        stage.must(&["restore", &id])?;
        if start.elapsed() > Duration::from_secs(5) {
            return Err(format!("the next had to wait for {:?}", start.elapsed()).into());
        }
    }
    stage.is_sound(&[&id])
}

/// Somebody goes on saving a file while it is restored: in the end there is one of the two, whole.
fn busy_editor(unstuck: &Path, rounds: u32) -> Result<(), Fault> {
    let stage = Stage::new(unstuck)?;
    stage::furnish(&stage.tree)?;
    let (busy, beside) = (stage.tree.join("busy"), stage.world.aside("beside"));
    fs::write(&busy, "old".repeat(1000))?;
    let id = stage.snapshot()?;
    for _ in 0..rounds {
        let save = || {
            fs::write(&beside, "new".repeat(1000))?;
            fs::rename(&beside, &busy)?;
            thread::sleep(Duration::from_micros(200));
            Ok(())
        };
        meanwhile(save, || {
            let reply = stage.run(&["restore", &id])?;
            match reply.stderr.contains("panicked") {
                true => Err(format!("{reply:?}").into()),
                false => Ok(()),
            }
        })?;
        let now = fs::read_to_string(&busy)?;
        if now != "old".repeat(1000) && now != "new".repeat(1000) {
            return Err("the file is neither".into());
        }
    }
    stage.is_sound(&[&id])
}
