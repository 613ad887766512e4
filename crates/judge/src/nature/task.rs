//! Programs that run what a project calls by a name of its own: `make deploy`. The name is all that is known of it.

use super::Nature;
use super::commands;
use crate::shell::{self, Command};

/// Each word is a task.
const EACH: &[&str] = &[
    "make",
    "gmake",
    "nmake",
    "mingw32-make",
    "ninja",
    "mvn",
    "mvnw",
    "gradle",
    "gradlew",
    "ant",
    "sbt",
    "mill",
    "lein",
    "rake",
    "grunt",
    "gulp",
    "jake",
    "mage",
    "task",
];

/// The first word is the task, what follows is given to it.
const FIRST: &[&str] = &["just", "invoke", "nx", "turbo", "lerna"];

/// Words before the task that only say that one follows.
const BEFORE: &[&str] = &["run", "run-many", "affected", "exec"];

/// Words of tasks that only fill their own cache, however often they run.
const HARMLESS: &[&str] = &[
    "all",
    "app",
    "apk",
    "assemble",
    "assets",
    "bench",
    "benchmark",
    "benchmarks",
    "bin",
    "build",
    "builds",
    "bundle",
    "check",
    "checks",
    "ci",
    "classes",
    "clean",
    "compile",
    "config",
    "configure",
    "cov",
    "coverage",
    "css",
    "debug",
    "default",
    "defconfig",
    "dependencies",
    "dependency",
    "deps",
    "dev",
    "dist",
    "distclean",
    "doc",
    "docs",
    "e2e",
    "examples",
    "fast",
    "fmt",
    "format",
    "full",
    "gen",
    "generate",
    "help",
    "html",
    "integration",
    "jar",
    "javadoc",
    "js",
    "kernel",
    "lib",
    "libs",
    "lint",
    "list",
    "main",
    "menuconfig",
    "modules",
    "mostlyclean",
    "native",
    "olddefconfig",
    "package",
    "pdf",
    "projects",
    "properties",
    "proto",
    "quick",
    "race",
    "release",
    "report",
    "resources",
    "site",
    "smoke",
    "spec",
    "specs",
    "static",
    "target",
    "targets",
    "tasks",
    "test",
    "tests",
    "tree",
    "ts",
    "type",
    "typecheck",
    "types",
    "unit",
    "validate",
    "verbose",
    "verify",
    "vet",
    "wasm",
    "wheel",
];

/// Files that a build makes.
const FILES: &[&str] = &[
    "a", "bin", "css", "d", "dll", "elf", "exe", "hex", "html", "i", "js", "ko", "o", "pdf", "s", "so",
    "wasm",
];

/// What the tasks that a command names do, or nothing if it runs none.
pub(super) fn nature(command: &Command) -> Option<Nature> {
    let program = command.program.as_str();
    let most = match () {
        () if EACH.contains(&program) => usize::MAX,
        () if FIRST.contains(&program) => 1,
        () => return None,
    };
    let valued = commands::valued(program);
    let mut is_value = false;
    let words = command.args().iter().map(String::as_str).filter(|word| {
        let was_value = std::mem::replace(&mut is_value, valued.contains(word));
        // `make -j 8 CC=gcc` names no task.
        !was_value && !word.starts_with('-') && !word.contains('=') && word.parse::<u64>().is_err()
    });
    // To `make` and its like every word is a task of its own.
    let is_task = |word: &&str| most == usize::MAX || !BEFORE.contains(word);
    let tasks = words.filter(is_task).take(most);
    tasks.map(|task| of_task(program, task)).max()
}

fn of_task(program: &str, task: &str) -> Nature {
    if let Some(row) = commands::row(&format!("{program} {task}")) {
        return row.nature;
    }
    let is_file = task.rsplit_once('.').is_some_and(|(_, ending)| FILES.contains(&ending));
    let words = shell::name_words(task);
    let is_harmless = !words.is_empty() && words.iter().all(|word| HARMLESS.contains(&word.as_str()));
    if is_file || is_harmless { Nature::Idempotent } else { Nature::Unknown }
}
