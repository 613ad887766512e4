//! A hook that runs out of memory: at its n-th allocation, and from there on. Its own allocations and those of SQLite and the
//! C library are counted and failed by a small library that is loaded before it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use super::sweep::{Scene, Tally, Template};
use crate::Fault;
use crate::dice::Dice;
use crate::ledger::Found;
use crate::world::{Call, Reply, Told, World, lines, speak};

/// Takes the place of the system's allocator and fails it where the environment says so.
const LIBRARY: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
static long count, at, goes_on, is_ready;
__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("ALLOCATION_FAILS_AT");
    at = text ? atol(text) : 0;
    goes_on = getenv("ALLOCATIONS_GO_ON_FAILING") != NULL;
    is_ready = 1;
}
__attribute__((destructor)) static void end(void) {
    const char *path = getenv("ALLOCATIONS_COUNTED_IN");
    int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (file >= 0) dprintf(file, "%ld", count);
}
static int fails(void) {
    if (!is_ready) return 0;
    long now = __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
    int hit = at > 0 && (now == at || (goes_on && now > at));
    if (hit) errno = ENOMEM;
    return hit;
}
void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void *realloc(void *old, size_t size) { return fails() ? NULL : __libc_realloc(old, size); }
void *memalign(size_t to, size_t size) { return fails() ? NULL : __libc_memalign(to, size); }
void *aligned_alloc(size_t to, size_t size) { return fails() ? NULL : __libc_memalign(to, size); }
int posix_memalign(void **out, size_t to, size_t size) {
    if (fails()) return ENOMEM;
    *out = __libc_memalign(to, size);
    return *out ? 0 : ENOMEM;
}
"#;

/// What came of it.
pub enum Memory {
    Held(Tally),
    /// It could not be tried, and why.
    Skipped(String),
}

/// Fails the allocations of a hook one after another, or a sample of about `sample` of them.
pub fn run(unstuck: &Path, sample: Option<usize>, seed: u64) -> Result<Memory, Fault> {
    let tools = tempfile::tempdir()?;
    let library = match library(&tools)? {
        Ok(library) => library,
        Err(why) => return Ok(Memory::Skipped(why)),
    };
    let template = Template::make(unstuck, Scene::InUse)?;
    let mut tally = Tally::default();
    for door in DOORS {
        let counted = tools.path().join("counted");
        let places = match count(unstuck, &template, &library, &counted, door) {
            Ok(0) => {
                return Ok(Memory::Skipped("this program does not ask the C library for memory".to_owned()));
            }
            Ok(places) => places,
            Err(why) => return Ok(Memory::Skipped(why.to_string())),
        };
        tally.places += usize::try_from(places)?;
        let mut blows: Vec<(u64, bool)> = (1..=places).flat_map(|at| [(at, false), (at, true)]).collect();
        if let Some(sample) = sample {
            let mut dice = Dice(seed);
            while blows.len() > sample / DOORS.len() {
                blows.swap_remove(usize::try_from(dice.below(blows.len() as u64))?);
            }
        }
        for (at, goes_on) in blows {
            let mut variables = vec![format!("ALLOCATION_FAILS_AT={at}")];
            if goes_on {
                variables.push("ALLOCATIONS_GO_ON_FAILING=1".to_owned());
            }
            tally.struck += 1;
            match strike(unstuck, &template, &library, &variables, door) {
                Ok((kept, lost)) => {
                    tally.acknowledged += kept;
                    tally.unacknowledged += lost;
                }
                Err(wrong) => {
                    let from = if goes_on { " and all after it" } else { "" };
                    tally.broken.push(format!("{door}: allocation no. {at}{from}: {wrong}"));
                }
            }
        }
    }
    Ok(Memory::Held(tally))
}

/// The doors that are tried: the beginning and the end of a call in our own format, and a call that puts files at risk.
const DOORS: [&str; 2] = ["generic", "claude"];

/// The call that the struck hook tells of.
fn call() -> Call {
    Call::named("struck", "struck-1".to_owned())
}

/// What is sent to a door.
fn input(world: &World, door: &str) -> Vec<u8> {
    let call = call();
    match door {
        "claude" => lines(&[json!({
            "session_id": call.session, "cwd": world.home(), "permission_mode": "default",
            "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": call.mark,
            "tool_input": { "command": format!("rm -rf {0}; make {0}", call.mark) },
        })]),
        _ => lines(&[call.before(), call.after(2)]),
    }
}

/// A world to strike in, with a file that the call puts at risk.
fn world(unstuck: &Path, template: &Template) -> Result<World, Fault> {
    let world = World::like(unstuck, template.folder.path())?;
    let folder = world.home().join(call().mark);
    fs::create_dir(&folder)?;
    fs::write(folder.join("file"), "kept\n")?;
    Ok(world)
}

/// How many allocations an undisturbed hook makes.
fn count(
    unstuck: &Path,
    template: &Template,
    library: &Path,
    counted: &Path,
    door: &str,
) -> Result<u64, Fault> {
    let world = world(unstuck, template)?;
    let variables = [format!("ALLOCATIONS_COUNTED_IN={}", counted.display())];
    let reply = hook(&world, library, &variables, door)?;
    match reply.status.success() && reply.stderr.is_empty() {
        true => Ok(fs::read_to_string(counted)?.trim().parse()?),
        false => Err(format!("it does not work with the library: {reply:?}").into()),
    }
}

/// One run under failing allocations, and everything that must hold after it. Returns how many entries were acknowledged and how
/// many were not.
fn strike(
    unstuck: &Path,
    template: &Template,
    library: &Path,
    variables: &[String],
    door: &str,
) -> Result<(u64, u64), Fault> {
    let world = world(unstuck, template)?;
    let mut ledger = template.ledger.clone();
    let reply = hook(&world, library, variables, door)?;
    if !reply.status.success() || !reply.stderr.is_empty() {
        return Err(format!("it did not end in silence: {reply:?}").into());
    }
    let told = reply.told()?;
    ledger.note(&call().mark, if door == "generic" { &told } else { &[] });
    Found::in_copy_of(&world.store())?;
    let next = Call::named("next", "next-1".to_owned());
    let reply = world.send(&[next.before(), next.after(0)])?;
    let then = reply.told()?;
    if then != [Told::Recorded; 2] || !reply.stderr.is_empty() {
        return Err(format!("the next run does not work: {reply:?}").into());
    }
    ledger.note(&next.mark, &then);
    ledger.compare(&Found::in_copy_of(&world.store())?)?;
    let sent = if door == "generic" { 2 } else { 1 };
    let kept = told.iter().filter(|told| told.is_acknowledged()).count() as u64;
    Ok((kept, sent - kept.min(sent)))
}

/// The hook with the library before it.
fn hook(world: &World, library: &Path, variables: &[String], door: &str) -> Result<Reply, Fault> {
    let mut before = vec!["env".to_owned(), format!("LD_PRELOAD={}", library.display())];
    before.extend_from_slice(variables);
    speak(world.command(&before, &["hook", door]), &input(world, door), None)
}

/// Builds the library, where there is a compiler for C and the GNU C library.
fn library(tools: &TempDir) -> Result<Result<PathBuf, String>, Fault> {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        return Ok(Err("only the GNU C library lets its allocator be replaced like this".to_owned()));
    }
    let (source, library) = (tools.path().join("fails.c"), tools.path().join("fails.so"));
    fs::write(&source, LIBRARY)?;
    let built =
        Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).output();
    Ok(match built {
        Ok(built) if built.status.success() => Ok(library),
        Ok(built) => Err(format!("cc: {}", String::from_utf8_lossy(&built.stderr).trim())),
        Err(error) => Err(format!("there is no compiler for C: {error}")),
    })
}
