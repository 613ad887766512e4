//! Real folders, real links and real repositories, and what a line would put at risk in them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use unstuck_exec::{Ending, Job};
use unstuck_judge::{Call, risk};
use unstuck_vault::Rebuildable;

use super::{AtRisk, MATCHES_MAX, at_risk, with_variables};

/// A machine of its own: `home/` is the home, `home/p/` the folder that calls are made in.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn with(files: &[&str]) -> Machine {
        let machine = Machine { folder: tempfile::tempdir().expect("a folder can be made") };
        fs::create_dir_all(machine.path("home/p")).expect("a folder can be made");
        for file in files {
            machine.write(file);
        }
        machine
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("it is there")
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// Makes a file, or a folder where the name ends with `/`.
    fn write(&self, file: &str) {
        let path = self.path(file);
        let folder = if file.ends_with('/') { path.as_path() } else { path.parent().expect("it has one") };
        fs::create_dir_all(folder).expect("a folder can be made");
        if !file.ends_with('/') {
            fs::write(&path, file).expect("a file can be written");
        }
    }

    fn link(&self, at: &str, to: &str) {
        symlink(to, self.path(at)).expect("a link can be made");
    }

    fn git(&self, folder: &str, args: &[&str]) {
        let fixed = ["-c", "user.name=x", "-c", "user.email=x@a.example", "-c", "protocol.file.allow=always"];
        let job = Job::new("git", fixed.iter().chain(args).copied())
            .in_dir(self.path(folder))
            .with_variable("GIT_CONFIG_GLOBAL", "/dev/null")
            .capture_only();
        let mut said = Vec::new();
        let run = job.run(|_, bytes| said.extend_from_slice(bytes));
        assert_eq!(run.ending, Ending::Exited(0), "git {args:?}: {}", String::from_utf8_lossy(&said));
    }

    /// A repository with one commit of everything that is there.
    fn commit(&self, folder: &str) {
        self.git(folder, &["init", "-q", "-b", "main"]);
        self.git(folder, &["add", "-A"]);
        self.git(folder, &["commit", "-q", "--allow-empty", "-m", "first"]);
    }

    /// What a line in `home/p` puts at risk: paths below the machine's folder, with `+` those that it would make, and with
    /// `!` at the end where folders that can be made again are taken. After `-` stands what is there of what is spared.
    fn seen(&self, line: &str) -> String {
        let call = Call::shell(line.replace("MACHINE", &self.root().to_string_lossy()));
        let Some(risk) = risk::of(&call) else { return "no risk".to_owned() };
        let short = |path: &Path| match path.strip_prefix(self.root()) {
            Ok(path) => path.display().to_string(),
            Err(_) => path.display().to_string(),
        };
        let variable = |name: &str| (name == "TMPDIR").then(|| self.path("tmp").into_os_string());
        let (home, ours) = (self.path("home"), self.path("home/.local/state/unstuck"));
        match with_variables(&risk, &self.path("home/p"), Some(&home), Some(&ours), &variable) {
            AtRisk::Nothing => "nothing".to_owned(),
            AtRisk::TooWide { path } => format!("too wide: {}", short(&path)),
            AtRisk::OurOwn { path } => format!("our own: {}", short(&path)),
            AtRisk::Scopes { paths, rebuildable, spared } => {
                let made = |path: &PathBuf| if fs::symlink_metadata(path).is_ok() { "" } else { "+" };
                let shown: Vec<String> = paths.iter().map(|path| short(path) + made(path)).collect();
                let spared =
                    spared.iter().filter(|path| path.exists()).map(|path| format!(" -{}", short(path)));
                let spared: String = spared.collect();
                shown.join(" ") + if rebuildable == Rebuildable::Taken { " !" } else { "" } + &spared
            }
        }
    }

    fn check(&self, cases: &[(&str, &str)]) {
        for (line, expected) in cases {
            assert_eq!(self.seen(line), *expected, "{line}");
        }
    }
}

#[test]
fn what_is_not_there_is_not_at_risk() {
    Machine::with(&["home/p/a", "home/p/d/x"]).check(&[
        ("rm -rf nothing", "nothing"),
        ("rm -rf nothing a", "home/p/a !"),
        ("echo x > new", "nothing"),
        ("echo x > a", "home/p/a"),
        ("echo x > a; echo y > new/file", "home/p/a home/p/new+"),
        ("rm -rf d", "home/p/d !"),
        ("rm -rf ./d/", "home/p/d !"),
        ("rm -rf .", "home/p !"),
        ("git checkout main", "nothing"),
        ("git reset --hard", "nothing"),
        ("sed -i 's/a/b/' a nothing", "home/p/a"),
        ("npm install", "nothing"),
        ("chmod -R 755 d", "home/p/d"),
    ]);
}

#[test]
fn patterns_stand_for_what_they_match() {
    Machine::with(&[
        "home/p/a.rs",
        "home/p/b.rs",
        "home/p/.c.rs",
        "home/p/s/d.rs",
        "home/p/[id].ts",
        "home/o",
    ])
    .check(&[
        ("rm *.rs", "home/p/a.rs home/p/b.rs !"),
        ("rm */*.rs", "home/p/s/d.rs !"),
        ("rm -rf *", "home/p/[id].ts home/p/a.rs home/p/b.rs home/p/s !"),
        ("rm '[id].ts'", "home/p/[id].ts !"),
        ("rm *.none", "nothing"),
        ("rm ../o*", "home/o !"),
        ("prettier --write 's/**/*.rs'", "home/p/s"),
        ("rm {a,b,z}.rs", "home/p/a.rs home/p/b.rs !"),
        ("rm ~/o ~/p/a.rs", "home/o home/p/a.rs !"),
    ]);
}

#[test]
fn a_pattern_that_begins_with_a_dot_stands_for_hidden_names() {
    Machine::with(&[
        "home/p/.env",
        "home/p/.env.local",
        "home/p/.git/HEAD",
        "home/p/.gitignore",
        "home/p/a",
        "home/p/cfg/.x1",
        "home/p/cfg/y",
        "home/p/sub/deep/",
        "home/p/src/",
        "home/p/odd[",
    ])
    .check(&[
        ("rm -f .env*", "home/p/.env home/p/.env.local !"),
        ("rm -rf .git*", "home/p/.git home/p/.gitignore !"),
        ("rm -rf .gi?", "home/p/.git !"),
        ("rm -rf .[!.e]*", "home/p/.git home/p/.gitignore !"),
        ("rm -rf .[^.e]*", "home/p/.git home/p/.gitignore !"),
        ("rm -rf .??*", "home/p/.env home/p/.env.local home/p/.git home/p/.gitignore !"),
        ("rm -rf .*", "home/p/.env home/p/.env.local home/p/.git home/p/.gitignore !"),
        ("cd sub/deep && rm -rf ../../.g*", "home/p/.git home/p/.gitignore !"),
        ("rm cfg/.x*", "home/p/cfg/.x1 !"),
        ("rm */.x?", "home/p/cfg/.x1 !"),
        ("sed -i s/1/2/ cfg/.x?", "home/p/cfg/.x1"),
        ("rm cfg/*", "home/p/cfg/y !"),
        ("rm -rf ./a* .g*", "home/p/.git home/p/.gitignore home/p/a !"),
        ("for f in .git*; do rm -rf \"$f\"; done", "home/p/.git home/p/.gitignore !"),
        ("shopt -s dotglob; rm -rf cfg/*", "home/p/cfg/.x1 home/p/cfg/y !"),
        ("setopt GLOB_DOTS; rm -rf cfg/*", "home/p/cfg/.x1 home/p/cfg/y !"),
        ("rm cfg/[[:alpha:]]", "home/p/cfg !"),
        ("rm o*[", "home/p/odd[ !"),
    ]);
}

#[test]
fn a_name_that_nobody_knows_may_be_anything_in_its_folder() {
    let machine = Machine::with(&["home/p/d/.env", "home/p/d/x.o", "home/p/real/y"]);
    machine.link("home/p/link", "real");
    machine.check(&[
        ("rm -rf d/$X", "home/p/d !"),
        ("rm -rf d/$X/", "home/p/d !"),
        ("rm -rf link/$X", "home/p/real !"),
        ("rm -rf d/$X.o", "home/p/d/x.o !"),
        ("cp x d/$X", "home/p/d"),
    ]);
}

#[test]
fn the_folder_for_what_does_not_last_is_where_the_variable_says() {
    Machine::with(&["home/p/a", "tmp/x"]).check(&[
        ("echo x > $TMPDIR/x", "tmp/x"),
        ("echo x > $TMPDIR/new", "nothing"),
        ("cd $TMPDIR && rm x", "tmp/x !"),
        ("rm \"$RUNNER_TEMP/none/x\"", "nothing"),
        ("rm -rf $RUNNER_TEMP/", "too wide: /"),
    ]);
}

#[test]
fn devices_are_no_files_but_disks_are_too_much() {
    let machine = Machine::with(&["home/p/a"]);
    machine.check(&[
        ("echo x > /dev/null", "no risk"),
        ("dd if=a of=/dev/ptmx", "no risk"),
        ("rm -rf /dev", "too wide: /dev"),
    ]);
    let shared = tempfile::tempdir_in("/dev/shm").expect("there is memory that files can lie in");
    fs::write(shared.path().join("x"), "x").expect("a file can be written");
    let named = shared.path().to_string_lossy().into_owned();
    machine.check(&[(&format!("rm -rf {named}"), &format!("{named} !"))]);
    let mut disks = fs::read_dir("/dev").expect("it is there").flatten();
    let disk = disks.find(|each| {
        each.file_type().is_ok_and(|kind| std::os::unix::fs::FileTypeExt::is_block_device(&kind))
    });
    match disk {
        Some(disk) => {
            let disk = disk.path().display().to_string();
            machine.check(&[(&format!("dd if=a of={disk}"), &format!("too wide: {disk}"))]);
        }
        None => writeln!(std::io::stderr(), "SKIPPED: this machine has no disk of its own").unwrap(),
    }
}

#[test]
fn a_pattern_for_too_many_files_is_the_folder_that_holds_them() {
    let machine = Machine::with(&["home/p/many/"]);
    for n in 0..=MATCHES_MAX {
        fs::write(machine.path(&format!("home/p/many/{n}.txt")), "").expect("a file can be written");
    }
    machine.check(&[("rm many/*.txt", "home/p/many !"), ("rm many/1.txt", "home/p/many/1.txt !")]);
}

#[test]
fn a_folder_that_is_entered_is_looked_for() {
    Machine::with(&["home/p/d/x", "home/p/x", "home/q/x"]).check(&[
        ("cd d && rm x", "home/p/d/x !"),
        ("cd d; rm x", "home/p/d/x !"),
        ("cd none && rm x", "nothing"),
        ("cd none; rm x", "home/p/x !"),
        ("cd ../q && rm x", "home/q/x !"),
        ("cd ~/q && rm x", "home/q/x !"),
        ("cd MACHINE/home/q && rm x", "home/q/x !"),
        ("rm -rf \"$UNKNOWN\"", "home/p !"),
        ("cd d && rm -rf \"$UNKNOWN\"", "home/p/d !"),
    ]);
}

#[test]
fn a_link_is_removed_alone_and_written_through() {
    let machine = Machine::with(&["home/p/real/f", "elsewhere/g"]);
    machine.link("home/p/to-folder", "real");
    machine.link("home/p/to-file", "../../elsewhere/g");
    machine.link("home/p/dangling", "none");
    machine.check(&[
        ("rm to-folder", "home/p/to-folder !"),
        ("rm to-file dangling", "home/p/dangling home/p/to-file !"),
        ("rm to-folder/f", "home/p/real/f !"),
        ("rm -rf to-folder/*", "home/p/real/f !"),
        ("rm -rf to-folder/", "home/p/real !"),
        ("echo x > to-file", "elsewhere/g home/p/to-file"),
        ("echo x > dangling", "home/p/dangling"),
        ("cd to-folder && rm f", "home/p/real/f !"),
        ("cd to-folder/.. && rm real/f", "home/p/real/f !"),
    ]);
}

#[test]
fn a_copy_puts_at_risk_what_it_writes_over() {
    Machine::with(&["home/p/a", "home/p/b", "home/p/d/a", "home/p/s/x/y", "home/p/d/x/y", "home/p/e/"])
        .check(&[
            ("cp a b", "home/p/b"),
            ("cp a new", "nothing"),
            ("cp a d", "home/p/d/a"),
            ("cp a b d/", "home/p/d/a home/p/d/b+"),
            ("cp a e/", "nothing"),
            ("cp -r s/* d", "home/p/d/x"),
            ("cp -r s/. d", "home/p/d"),
            ("mv a b", "home/p/a home/p/b !"),
            ("mv a new", "home/p/a home/p/new+ !"),
            ("git mv a new", "home/p/a home/p/new+"),
            ("mv -T s new", "home/p/new+ home/p/s !"),
            ("mv s new/", "home/p/new+ home/p/s !"),
            ("mv a e/", "home/p/a home/p/e/a+ !"),
            ("mv s/* MACHINE/home/p/e", "home/p/e/x+ home/p/s/x !"),
            ("mv none new", "nothing"),
            ("mv a b d", "home/p/a home/p/b home/p/d/a home/p/d/b+ !"),
            ("mv -t d a", "home/p/a home/p/d/a !"),
            ("mv none b", "home/p/b !"),
        ]);
}

#[test]
fn what_is_too_wide_is_said_and_never_taken() {
    Machine::with(&["home/p/a", "home/x"]).check(&[
        ("rm -rf /", "too wide: /"),
        ("rm -rf /*", "too wide: /"),
        ("rm -rf ~", "too wide: home"),
        ("rm -rf ~/*", "too wide: home"),
        ("rm -rf \"$HOME/$X\"", "too wide: home"),
        ("rm -rf ..", "too wide: home"),
        ("rm -rf ../..", "too wide: "),
        ("rm a && rm -rf /usr", "too wide: /usr"),
        ("find / -name x -delete", "too wide: /"),
        ("chmod -R 777 /etc", "too wide: /etc"),
        ("rm -rf /tmp/*", "too wide: /tmp"),
        ("rm -rf /tmp", "too wide: /tmp"),
        ("cd / && rm -rf $X", "too wide: /"),
        ("cd ~ && git clean -fdx", "too wide: home"),
        ("cd /proc && echo 1 > self/oom_score_adj", "nothing"),
        ("rm ~/x", "home/x !"),
    ]);
}

#[test]
fn what_we_keep_ourselves_is_said_and_never_taken() {
    let machine =
        Machine::with(&["home/p/a", "home/.local/share/x", "home/.local/state/unstuck/vault/format"]);
    machine.link("home/p/to-ours", "../.local/state");
    machine.check(&[
        ("rm -rf ~/.local/state/unstuck", "our own: home/.local/state/unstuck"),
        ("rm -rf $HOME/.local", "our own: home/.local"),
        ("mv ~/.local elsewhere", "our own: home/.local"),
        ("rm -rf ~/.lo*", "our own: home/.local"),
        ("rm -rf to-ours/", "our own: home/.local/state"),
        ("rm -rf to-ours", "home/p/to-ours !"),
        ("rm -rf ~/.local/state/unstuck/*", "our own: home/.local/state/unstuck/vault"),
        ("find ~/.local/state -delete", "our own: home/.local/state"),
        ("echo x > ~/.local/state/unstuck/vault/format", "our own: home/.local/state/unstuck/vault/format"),
        ("cat ~/.local/state/unstuck/vault/format", "no risk"),
        ("cp ~/.local/state/unstuck/vault/format a", "home/p/a"),
        ("rm -rf ~/.local/share", "home/.local/share !"),
    ]);
}

#[test]
fn a_repository_is_its_work_tree_and_what_git_keeps() {
    let machine = Machine::with(&["home/p/a", "home/p/sub/b", "home/p/sub/package.json", "home/p/yarn.lock"]);
    machine.commit("home/p");
    machine.check(&[
        ("git reset --hard", "home/p"),
        ("cd sub && git reset --hard", "home/p"),
        ("git -C sub stash", "home/p"),
        ("git commit -m x", "home/p/.git -home/p/.git/objects"),
        ("cd sub && git commit --amend", "home/p/.git -home/p/.git/objects"),
        ("git commit -m x && git gc", "home/p/.git"),
        ("git commit -m x && git reset --hard", "home/p home/p/.git"),
        ("git restore sub/b", "home/p/.git home/p/sub/b -home/p/.git/objects"),
        ("git checkout main", "nothing"),
        ("git checkout a", "home/p/.git/index home/p/a"),
        ("git checkout main -- sub/b", "home/p/.git/index home/p/sub/b"),
        ("git checkout -- .", "home/p home/p/.git/index"),
        ("git mv a a2", "home/p/.git/index home/p/a home/p/a2+"),
        ("git rm a", "home/p/.git home/p/a ! -home/p/.git/objects"),
        ("git reset -- a", "home/p/.git -home/p/.git/objects"),
        ("git add -A", "home/p/.git/index"),
        ("git add -n a", "no risk"),
        ("git bisect start", "home/p"),
        ("git clean -fdx sub", "home/p/sub !"),
        ("git clean -fd", "home/p !"),
        ("cd sub && rm \"$X\"", "home/p !"),
        ("cd sub && cargo fmt", "home/p"),
        ("cd sub && yarn add x", "home/p/sub/package.json home/p/yarn.lock"),
    ]);
}

#[test]
fn a_work_tree_that_is_named_elsewhere_takes_no_protection_from_the_folder_that_is_worked_in() {
    let machine = Machine::with(&[
        "home/p/Cargo.toml",
        "home/p/package.json",
        "home/p/yarn.lock",
        "home/p/s/a.rs",
        "o/f",
    ]);
    machine.commit("home/p");
    machine.git("home/p", &["config", "core.worktree", "../../../o"]);
    machine.check(&[
        ("cargo fmt", "home/p"),
        ("cd s && cargo fix", "home/p"),
        ("cd s && yarn add x", "home/p/package.json home/p/yarn.lock"),
        ("git reset --hard", "home/p/.git o"),
    ]);
}

#[test]
fn the_git_folder_of_a_work_tree_and_of_a_submodule_is_found() {
    let machine = Machine::with(&["main/a", "module/m", "home/p/x"]);
    machine.commit("main");
    machine.commit("module");
    fs::remove_dir_all(machine.path("home/p")).expect("it can be removed");
    machine.git("main", &["worktree", "add", "-q", "../home/p"]);
    machine.check(&[
        ("git reset --hard", "home/p main/.git main/.git/worktrees/p"),
        ("git commit -m x", "main/.git main/.git/worktrees/p -main/.git/objects"),
        ("git add a", "main/.git/worktrees/p/index"),
        ("rm a", "home/p/a !"),
    ]);
    machine.git("home/p", &["submodule", "--quiet", "add", "../../module", "mod"]);
    machine.check(&[
        ("cd mod && git reset --hard", "home/p/mod main/.git/worktrees/p/modules/mod"),
        (
            "git -C mod commit -m x",
            "main/.git/worktrees/p/modules/mod -main/.git/worktrees/p/modules/mod/objects",
        ),
        (
            "git -C mod commit -m x; git commit -m y",
            "main/.git main/.git/worktrees/p main/.git/worktrees/p/modules/mod \
             -main/.git/worktrees/p/modules/mod/objects -main/.git/objects",
        ),
    ]);
    machine.git("", &["init", "-q", "--bare", "home/bare"]);
    machine.check(&[
        ("git -C ../bare gc", "home/bare"),
        ("git -C ../bare branch -D x", "home/bare -home/bare/objects"),
    ]);
}

#[test]
fn a_home_that_is_a_repository_is_no_project() {
    let machine = Machine::with(&["home/p/a", "home/x"]);
    machine.commit("home");
    machine.check(&[("rm \"$X\"", "home/p !"), ("git reset --hard", "too wide: home")]);
}

#[test]
fn what_a_call_makes_beside_its_files_belongs_to_it() {
    Machine::with(&["home/p/a", "home/p/b.gz", "home/p/d/x"]).check(&[
        ("sed -i.bak s/a/b/ a", "home/p/a home/p/a.bak+"),
        ("gzip a", "home/p/a home/p/a.gz+"),
        ("gzip -k a", "no risk"),
        ("gunzip b.gz", "home/p/b+ home/p/b.gz"),
        ("chmod +x a", "home/p/a"),
        ("trap 'rm a' EXIT", "home/p/a !"),
        (
            "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n*** Add File: n/m/b\n*** End Patch\nEOF",
            "home/p/a home/p/n+",
        ),
        ("echo x > n/m/b", "nothing"),
    ]);
}

#[test]
fn tools_name_their_files() {
    let machine = Machine::with(&["home/p/a"]);
    let path = machine.path("home/p/a");
    let call = Call::new("Write", serde_json::json!({ "file_path": path, "content": "x" }));
    let found = risk::of(&call).map(|risk| at_risk(&risk, Path::new("/"), None, None));
    assert_eq!(
        found,
        Some(AtRisk::Scopes { paths: vec![path], rebuildable: Rebuildable::LeftOut, spared: Vec::new() })
    );
}
