//! `unstuck git-snapshot`: a repository as it is, with what git keeps elsewhere, and back again.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::restore::tree;
use crate::world::World;

pub(crate) fn git(world: &World, folder: &str, args: &[&str]) -> String {
    let fixed = ["-c", "user.name=x", "-c", "user.email=x@a.example", "-c", "protocol.file.allow=always"];
    let mut command = Command::new("git");
    command.args(fixed).args(args).current_dir(world.path(folder)).env("HOME", world.path(""));
    let said = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(said.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// A repository with two commits, work that is staged, work that is not, and a file nobody added.
fn repository() -> World {
    let world = World::empty().with("app/a", "one\n").with("app/b", "one\n");
    git(&world, "app", &["init", "-q", "-b", "main"]);
    git(&world, "app", &["add", "-A"]);
    git(&world, "app", &["commit", "-q", "-m", "first"]);
    let world = world.with("app/a", "two\n");
    git(&world, "app", &["commit", "-q", "-am", "second"]);
    let world = world.with("app/a", "staged\n").with("app/new", "untracked\n");
    git(&world, "app", &["add", "a"]);
    world.with("app/b", "unstaged\n")
}

fn covers(world: &World, folder: &str, args: &[&str]) -> Vec<String> {
    let told: Value = world.run_in(folder, &[&["git-snapshot", "--json"], args].concat()).json();
    let top = world.path("").canonicalize().unwrap();
    let below = |path: &Value| path.as_str().unwrap().replacen(&format!("{}/", top.display()), "", 1);
    told["covers"].as_array().unwrap().iter().map(below).collect()
}

#[test]
fn history_and_uncommitted_work_come_back() {
    let world = repository();
    let head = git(&world, "app", &["rev-parse", "HEAD"]);
    let status = git(&world, "app", &["status", "--porcelain"]);
    let before = tree(&world.path("app"));
    let said = world.run_in("app", &["git-snapshot"]);
    assert_eq!((said.stdout(), said.exit), ("s1\n", 0), "{said}");
    git(&world, "app", &["reset", "-q", "--hard", "HEAD~1"]);
    git(&world, "app", &["clean", "-qfdx"]);
    git(&world, "app", &["reflog", "expire", "--expire=now", "--all"]);
    git(&world, "app", &["gc", "-q", "--prune=now"]);
    assert_ne!(git(&world, "app", &["rev-parse", "HEAD"]), head);
    assert_eq!(world.run_in("app", &["restore", "s1"]).exit, 0);
    assert_eq!(tree(&world.path("app")), before);
    assert_eq!(git(&world, "app", &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&world, "app", &["status", "--porcelain"]), status);
    assert!(git(&world, "app", &["fsck"]).is_empty());
}

#[test]
fn the_repository_is_found_from_inside_and_by_name() {
    let world = repository().with("app/deep/er/x", "x").with("loose/x", "x");
    assert_eq!(covers(&world, "app/deep/er", &[]), ["app"]);
    assert_eq!(covers(&world, "loose", &["../app/deep"]), ["app"]);
    world
        .run_in("loose", &["git-snapshot"])
        .complains(2, &["there is no git repository around ", "hint: `unstuck snapshot"]);
    world.run_in("loose", &["git-snapshot", "gone"]).complains(2, &["there is no ", "/loose/gone\n"]);
    let zh = world.run_in("loose", &["--lang", "zh", "git-snapshot"]);
    assert!(zh.stderr().contains("周围没有 git 仓库"), "{zh}");
}

#[test]
fn a_linked_work_tree_and_a_submodule_have_their_git_elsewhere() {
    let world = repository();
    git(&world, "app", &["worktree", "add", "-q", "../side"]);
    assert_eq!(covers(&world, "side", &[]), ["app/.git", "side"]);
    let world = world.with("module/m", "m\n");
    git(&world, "module", &["init", "-q", "-b", "main"]);
    git(&world, "module", &["add", "-A"]);
    git(&world, "module", &["commit", "-q", "-m", "first"]);
    git(&world, "app", &["submodule", "--quiet", "add", "../module", "mod"]);
    assert_eq!(covers(&world, "app/mod", &[]), ["app/.git/modules/mod", "app/mod"]);
    // In the work tree of the whole, both are inside.
    assert_eq!(covers(&world, "app", &[]), ["app"]);
    fs::remove_dir_all(world.path("app/.git/modules/mod")).unwrap();
    world.run_in("app", &["restore", "latest"]);
    assert!(git(&world, "app/mod", &["log", "--oneline"]).contains("first"));
}

#[test]
fn a_home_that_is_a_repository_is_too_much() {
    let world = World::empty().with("x/y", "y");
    git(&world, "", &["init", "-q"]);
    world.run_in("x", &["git-snapshot"]).complains(2, &["is too much to take as a whole"]);
}
