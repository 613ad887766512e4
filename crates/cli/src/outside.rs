//! Looks at the cause of a failure before a call is refused for it: is the program still missing, the path, the port; is every
//! file of the project as it was, and of what the call names elsewhere? A person edits files, another program installs something: no hook tells of it, but the files
//! themselves do.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use unstuck_judge::ladder::Reason;
use unstuck_judge::rewrite::Machine;
use unstuck_judge::shell::{Flow, ParsedCall, Script};
use unstuck_judge::{Call, Condition, Need};
use unstuck_store::{Checked, Failed, Stands};

use crate::machine::ThisMachine;
use crate::newer;

/// So many names of a call are looked at.
const NAMES: usize = 32;
/// A longer text names no file.
const LONGEST_NAME: usize = 4096;
/// So much of a folder.
const ENTRIES: usize = 512;
/// Clocks of files are coarse, and what a call itself wrote is no change.
const GRAIN: Duration = Duration::from_millis(5);
/// So long a project is looked through for a file that is newer. What takes longer is not known, and not refused.
const LOOK_FOR: Duration = Duration::from_millis(30);
/// So long a port of this machine is waited for.
const CONNECT: Duration = Duration::from_millis(50);
/// How many folders up the root of a project is looked for.
const FOLDERS_UP: usize = 16;
/// Files below the home that say where a shell finds programs.
const SHELL_SETTINGS: &[&str] =
    &[".bashrc", ".bash_profile", ".profile", ".zshrc", ".zprofile", ".zshenv", ".config/fish/config.fish"];
/// What changes when a package of the system is installed.
const SYSTEM_PACKAGES: &[&str] = &[
    "/var/lib/dpkg/status",
    "/var/lib/rpm",
    "/usr/lib/sysimage/rpm",
    "/lib/apk/db/installed",
    "/var/lib/pacman/local",
    "/opt/homebrew/Cellar",
    "/usr/local/Cellar",
    "/home/linuxbrew/.linuxbrew/Cellar",
    "/nix/var/nix/profiles",
    "/usr/include",
    "/usr/local/include",
    "/usr/local/lib",
    "/usr/lib/node_modules",
    "/usr/local/lib/node_modules",
];
/// The same below the home.
const HOME_PACKAGES: &[&str] = &[
    ".local/lib",
    ".local/share/uv",
    ".cargo/bin",
    ".cargo/registry/src",
    "go/pkg/mod",
    ".m2/repository",
    ".gradle/caches",
    ".gem",
    ".npm-global/lib",
    ".bun/install/global",
    ".composer/vendor",
    ".nix-profile",
];
/// The same in a project, and above it.
const PROJECT_PACKAGES: &[&str] = &[
    "node_modules",
    "node_modules/.package-lock.json",
    "node_modules/.yarn-integrity",
    "node_modules/.modules.yaml",
    "node_modules/.bin",
    ".venv/lib",
    "venv/lib",
    "vendor",
    "vendor/bundle",
    ".bundle",
    "Pods",
    "deps",
];

/// Does the cause of a failure still hold, seen from here and now? Would a look be answered as it was?
pub(crate) fn check(
    call: &Call,
    folder: &str,
    home: Option<&Path>,
    reason: &Reason,
    failed: Failed,
) -> Checked {
    let folder = Path::new(folder);
    if !folder.is_absolute() {
        return Checked::Unseen;
    }
    let place = Place::of(call, folder, home);
    let began = at(failed.asked_at);
    let ended = at(failed.ended_at) + GRAIN;
    if place.names_newer(ended) {
        return Checked::Moved;
    }
    if reason.track.asks() {
        return place.same_files(&[], began, ended);
    }
    match &reason.condition {
        Condition::Unseen => Checked::Unseen,
        Condition::NoProgram(name) => holds(!place.has_program(name, ended)),
        Condition::NoPath(path) => {
            let candidates = place.candidates(path);
            let is_there = candidates.iter().any(|path| fs::symlink_metadata(path).is_ok());
            match is_there {
                true => Checked::Moved,
                // A server may have folders that only look like ones of this machine.
                false
                    if call.tool.starts_with("mcp__") && !candidates.iter().any(|path| has_folder(path)) =>
                {
                    Checked::Unseen
                }
                // A path that the call does not name may be meant from anywhere in the project.
                false if !place.is_named(path) => place.same_files(&[], began, ended),
                false => Checked::Holds,
            }
        }
        Condition::PathTaken(path) => {
            holds(place.candidates(path).iter().any(|path| fs::symlink_metadata(path).is_ok()))
        }
        Condition::PortClosed(port) => holds(!is_open(*port)),
        Condition::PortTaken(port) => holds(is_open(*port)),
        Condition::SameFiles(names) => place.same_files(names, began, ended),
        // The files that it names were looked at above.
        Condition::SameNamed => Checked::Holds,
        Condition::SamePackages(names) => match place.has_new_package(ended) {
            true => Checked::Moved,
            false => place.same_files(names, began, ended),
        },
    }
}

fn has_folder(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.parent().is_some() && folder.is_dir())
}

fn holds(as_it_was: bool) -> Checked {
    if as_it_was { Checked::Holds } else { Checked::Moved }
}

fn at(milliseconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds)
}

/// Where a call runs, and what it names.
struct Place<'a> {
    parsed: ParsedCall<'a>,
    /// The working folder, and the one that the call itself goes to.
    folders: Vec<PathBuf>,
    home: Option<&'a Path>,
}

impl<'a> Place<'a> {
    fn of(call: &'a Call, folder: &Path, home: Option<&'a Path>) -> Place<'a> {
        let parsed = ParsedCall::of(call);
        let mut place = Place { parsed, folders: vec![folder.to_owned()], home };
        let first = place.parsed.script.as_ref().and_then(|script| script.commands().first());
        let goes_to = first.filter(|command| matches!(command.program.as_str(), "cd" | "pushd"));
        if let Some(to) = goes_to.and_then(|command| command.operands().next()) {
            let to = folder.join(place.at_home(to));
            if to != folder {
                place.folders.insert(0, to);
            }
        }
        place
    }

    /// A path that begins with the home, as texts that are kept write it.
    fn at_home(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) | (None, _) => PathBuf::from(path),
        }
    }

    /// Where a name may lie.
    fn candidates(&self, name: &str) -> Vec<PathBuf> {
        if name.is_empty() || name.len() > LONGEST_NAME || name.contains('\0') {
            return Vec::new();
        }
        let path = self.at_home(name);
        self.folders.iter().map(|folder| folder.join(&path)).collect()
    }

    /// The names among the words of the call: what it acts on, and every word with a path in it, as `-f ../x.mk`, `--config=/x`,
    /// `@body.json` and `< input` have one.
    fn names(&self) -> Vec<String> {
        let commands = self.parsed.script.iter().flat_map(Script::commands);
        let words = commands.flat_map(|command| {
            let read = command.redirections.iter().filter(|from| from.flow == Flow::Read);
            command.words.iter().chain(read.map(|from| &from.target))
        });
        let paths = words.filter_map(|word| {
            let value = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
            let value = value.strip_prefix("file://").unwrap_or(value).trim_start_matches('@');
            let value = if value.starts_with('-') { &value[value.find(['/', '.'])?..] } else { value };
            let is_path = value.contains('/') || value != word || value.contains('.');
            (is_path && !value.is_empty()).then(|| value.to_owned())
        });
        let mut names: Vec<String> = Vec::new();
        for name in self.parsed.targets().into_iter().chain(paths) {
            if names.len() < NAMES && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    fn is_named(&self, path: &str) -> bool {
        self.names().iter().any(|name| name == path)
    }

    /// Is one of the files that the call names newer, or a program that it starts?
    fn names_newer(&self, since: SystemTime) -> bool {
        let named = self.names().into_iter().filter(|name| !name.starts_with('-') && !name.contains("://"));
        let mut paths = named.flat_map(|name| self.candidates(&name));
        let machine = self.machine();
        let mut programs = programs(&self.parsed).take(NAMES).filter_map(|program| machine.program(program));
        paths.any(|path| is_newer(&path, since)) || programs.any(|file| is_newer(Path::new(&file), since))
    }

    fn machine(&self) -> ThisMachine {
        ThisMachine::here(self.home.map(Path::to_owned), self.folders.first().cloned())
    }

    /// Is the program there, or did it come to where the agent's shell may find it? The settings of a shell say where that is.
    fn has_program(&self, name: &str, since: SystemTime) -> bool {
        let machine = self.machine();
        let is_new = |file: String| is_newer(Path::new(&file), since);
        let settings =
            self.home.into_iter().flat_map(|home| SHELL_SETTINGS.iter().map(|file| home.join(file)));
        machine.program(name).is_some()
            || machine.in_project(name).is_some_and(is_new)
            || machine.off_path(name).is_some_and(is_new)
            || settings.into_iter().any(|file| is_newer(&file, since))
    }

    /// Is every file of the project as it was? Those that the output quotes must not have changed since the call began.
    fn same_files(&self, quoted: &[String], began: SystemTime, ended: SystemTime) -> Checked {
        let is_quoted_newer = || {
            let paths = quoted.iter().flat_map(|name| self.candidates(name));
            paths.into_iter().any(|path| !path.is_dir() && is_newer(&path, began))
        };
        if is_quoted_newer() || self.has_new_settings(ended) {
            return Checked::Moved;
        }
        let mut roots: Vec<PathBuf> = self.folders.iter().map(|folder| project_of(folder)).collect();
        // Folders elsewhere that the call names are looked through as well.
        let named = self.names().into_iter().filter(|name| !name.contains("://"));
        for folder in
            named.flat_map(|name| self.candidates(&name)).filter_map(|path| fs::canonicalize(path).ok())
        {
            if folder.is_dir() && !roots.iter().any(|root| folder.starts_with(root)) {
                roots.push(folder);
            }
        }
        roots.dedup();
        if self.has_new_project_package(ended) {
            return Checked::Moved;
        }
        match newer::in_any(&roots, ended, LOOK_FOR) {
            Some(true) => Checked::Moved,
            Some(false) => Checked::Holds,
            None => Checked::Unseen,
        }
    }

    /// Did the settings change that a program of the call keeps below the home: `.npmrc`, `.gitconfig`, `.config/gh`?
    fn has_new_settings(&self, since: SystemTime) -> bool {
        let names = programs(&self.parsed).take(NAMES).filter(|program| !program.contains('/'));
        let Some(home) = self.home else { return false };
        let places = names.flat_map(|name| {
            [format!(".{name}"), format!(".{name}rc"), format!(".{name}config"), format!(".config/{name}")]
        });
        let mut paths = places.map(|place| home.join(place));
        paths.any(|path| is_newer(&path, since) || holds_newer(&path, since))
    }

    /// Where packages of the project lie: not looked through, since there are too many files in them.
    fn project_packages(&self) -> impl Iterator<Item = PathBuf> {
        let folders = self.folders.iter().flat_map(|folder| folder.ancestors().take(FOLDERS_UP));
        folders.flat_map(|folder| PROJECT_PACKAGES.iter().map(move |place| folder.join(place)))
    }

    /// Was a package installed in the project?
    fn has_new_project_package(&self, since: SystemTime) -> bool {
        self.project_packages().flat_map(|place| with_packages(&place)).any(|place| is_newer(&place, since))
    }

    /// Was a package installed, in the project, by the user or on the machine?
    fn has_new_package(&self, since: SystemTime) -> bool {
        let mut places: Vec<PathBuf> = SYSTEM_PACKAGES.iter().map(PathBuf::from).collect();
        places.extend(
            self.home.into_iter().flat_map(|home| HOME_PACKAGES.iter().map(|place| home.join(place))),
        );
        places.extend(self.project_packages());
        let machine = self.machine();
        let programs = ["python3", "python", "node", "ruby", "php"].into_iter();
        let prefixes = programs.filter_map(|program| fs::canonicalize(machine.program(program)?).ok());
        places.extend(prefixes.filter_map(|file| Some(file.parent()?.parent()?.join("lib"))));
        places.into_iter().flat_map(|place| with_packages(&place)).any(|place| is_newer(&place, since))
    }
}

/// Is something that lies in this folder newer?
fn holds_newer(folder: &Path, since: SystemTime) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES);
    entries.map(|entry| entry.path()).any(|path| is_newer(&path, since))
}

/// A folder of packages, and those that lie in it by version: `lib/python3.11/site-packages`.
fn with_packages(place: &Path) -> Vec<PathBuf> {
    let mut all = vec![place.to_owned()];
    if place.file_name().is_some_and(|name| name == "lib") {
        let entries =
            fs::read_dir(place).into_iter().flatten().flatten().take(ENTRIES).map(|entry| entry.path());
        let versions = entries.filter(|path| {
            let name = path.file_name().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
            ["python", "node_modules", "ruby"].iter().any(|start| name.starts_with(start))
        });
        for version in versions {
            all.extend(["site-packages", "dist-packages"].map(|packages| version.join(packages)));
            all.push(version);
        }
    }
    all
}

/// The folder of the repository that holds `folder`, or the folder itself.
pub(crate) fn project_of(folder: &Path) -> PathBuf {
    let is_root = |folder: &&Path| folder.join(".git").exists();
    folder.ancestors().take(FOLDERS_UP).find(is_root).unwrap_or(folder).to_owned()
}

/// Does something on this machine accept connections on this port?
fn is_open(port: u16) -> bool {
    let hosts: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    hosts.iter().any(|host| TcpStream::connect_timeout(&SocketAddr::new(*host, port), CONNECT).is_ok())
}

/// Is something that a call needs still missing, as it was at `since`? A program is looked for wherever it could be, a flag is
/// as good as the file of its program, and of other machines nothing can be known from here.
pub(crate) fn stands(need: &Need, folder: &str, home: Option<&Path>, since: u64) -> Stands {
    let folder = Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute());
    let machine = ThisMachine::here(home.map(Path::to_owned), folder);
    match need {
        Need::Program(name) if machine.program(name).is_some() => Stands::No,
        // It is there, and only the agent's shell knows whether it finds it.
        Need::Program(name) if machine.in_project(name).or_else(|| machine.off_path(name)).is_some() => {
            Stands::Unsaid
        }
        Need::Program(_) => Stands::Yes,
        Need::Host(_) => Stands::Unsaid,
        Need::Flag { program, .. } => {
            let since = SystemTime::UNIX_EPOCH + Duration::from_millis(since);
            match machine.program(program) {
                Some(file) if !is_newer(Path::new(&file), since) => Stands::Unsaid,
                Some(_) | None => Stands::No,
            }
        }
    }
}

/// Did a program that `call` starts become another file after `since`, in milliseconds since 1970?
pub(crate) fn has_another_version(call: &Call, folder: &str, since: u64) -> bool {
    let since = SystemTime::UNIX_EPOCH + Duration::from_millis(since);
    let folder = Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute());
    let machine = ThisMachine::here(None, folder);
    let parsed = ParsedCall::of(call);
    let files = programs(&parsed).take(NAMES).filter_map(|program| machine.program(program));
    files.into_iter().any(|file| is_newer(Path::new(&file), since))
}

/// The programs that a line starts, as it writes them.
fn programs<'a>(parsed: &'a ParsedCall<'_>) -> impl Iterator<Item = &'a str> {
    let commands = parsed.script.iter().flat_map(Script::commands);
    commands.filter_map(|command| command.words.first()).map(String::as_str)
}

/// A link that was made counts as well as what it leads to.
fn is_newer(path: &Path, since: SystemTime) -> bool {
    [fs::metadata(path), fs::symlink_metadata(path)]
        .into_iter()
        .flatten()
        .any(|about| newer::changed(&about) > since)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use serde_json::json;
    use unstuck_judge::Kind;
    use unstuck_judge::ladder::Track;

    use super::*;

    /// What a look shows after something was done to a project, of a call that had failed before.
    fn seen(call: &Call, condition: Condition, done: impl FnOnce(&Path)) -> Checked {
        seen_by(Track::Repeat, call, condition, done)
    }

    fn seen_by(track: Track, call: &Call, condition: Condition, done: impl FnOnce(&Path)) -> Checked {
        seen_after(track, call, condition, |_| {}, done)
    }

    fn seen_after(
        track: Track,
        call: &Call,
        condition: Condition,
        before: impl FnOnce(&Path),
        done: impl FnOnce(&Path),
    ) -> Checked {
        let root = tempfile::tempdir().unwrap();
        let (app, home) = (root.path().join("app"), root.path().join("home"));
        fs::create_dir_all(&app).unwrap();
        fs::create_dir_all(&home).unwrap();
        before(root.path());
        // Clocks of files are coarse.
        thread::sleep(Duration::from_millis(40));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
        let now = u64::try_from(now).unwrap();
        thread::sleep(Duration::from_millis(40));
        done(root.path());
        let reason = Reason {
            track,
            count: 1,
            kind: Kind::Validation,
            rule: String::new(),
            line: String::new(),
            condition,
            passes: false,
        };
        let failed = Failed { asked_at: now, ended_at: now };
        check(call, app.to_str().unwrap(), Some(&home), &reason, failed)
    }

    #[test]
    fn settings_that_a_program_keeps_below_the_home_may_mend_a_call() {
        let commit = Call::shell("git commit -m 'Add f'");
        let files = || Condition::SameFiles(Vec::new());
        assert_eq!(seen(&commit, files(), |_| {}), Checked::Holds);
        let write = |root: &Path, name: &str| {
            let path = root.join("home").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        for name in [".gitconfig", ".config/git/config"] {
            assert_eq!(seen(&commit, files(), |root| write(root, name)), Checked::Moved, "{name}");
        }
        assert_eq!(seen(&commit, files(), |root| write(root, ".other")), Checked::Holds);
    }

    /// The same of a look that was answered before.
    fn seen_of_look(line: &str, done: impl FnOnce(&Path)) -> Checked {
        seen_by(Track::Rerun, &Call::shell(line), Condition::Unseen, done)
    }

    #[test]
    fn a_look_is_answered_as_before_only_while_all_that_it_may_read_is_as_it_was() {
        let write = |root: &Path, name: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        assert_eq!(seen_of_look("git status", |_| {}), Checked::Holds);
        assert_eq!(seen_of_look("git status", |root| write(root, "other/a.rs")), Checked::Holds);
        for (line, file) in [
            ("git status", "app/a/b/new.rs"),
            ("make", "app/.env"),
            ("grep -rn x .", "app/src/deep/er/x.c"),
            ("cat ../other/notes.txt", "other/notes.txt"),
            ("grep -rn x ../other", "other/deep/er/x.c"),
            ("make -f ../other/x.mk", "other/x.mk"),
            ("pytest --rootdir=../other", "other/tests/test_a.py"),
            ("wc -l < ../other/x.csv", "other/x.csv"),
            ("npm test", "home/.npmrc"),
            ("npm test", "app/node_modules/.package-lock.json"),
        ] {
            assert_eq!(seen_of_look(line, |root| write(root, file)), Checked::Moved, "{line}: {file}");
        }
    }

    #[test]
    fn another_branch_a_commit_and_a_link_are_seen() {
        let git = |root: &Path, words: &[&str]| {
            let status = std::process::Command::new("git")
                .args(["-c", "user.name=x", "-c", "user.email=x@x", "-c", "init.defaultBranch=main"])
                .args(words)
                .current_dir(root.join("app"))
                .env("HOME", root)
                .output()
                .unwrap();
            assert!(status.status.success(), "{words:?}: {}", String::from_utf8_lossy(&status.stderr));
        };
        let with = |before: &dyn Fn(&Path), after: &dyn Fn(&Path)| {
            seen_after(Track::Rerun, &Call::shell("git log"), Condition::Unseen, before, after)
        };
        let repository = |root: &Path| {
            git(root, &["init", "-q"]);
            git(root, &["commit", "-q", "--allow-empty", "-m", "a"]);
            git(root, &["branch", "feature/x"]);
        };
        assert_eq!(with(&repository, &|_| {}), Checked::Holds);
        assert_eq!(with(&repository, &|root| git(root, &["checkout", "-q", "feature/x"])), Checked::Moved);
        assert_eq!(
            with(&repository, &|root| git(root, &["commit", "-q", "--allow-empty", "-m", "b"])),
            Checked::Moved
        );
        assert_eq!(
            with(&repository, &|root| git(root, &["branch", "-f", "feature/x", "HEAD"])),
            Checked::Holds
        );
        assert_eq!(with(&repository, &|root| git(root, &["tag", "v1"])), Checked::Moved);
        // A work tree beside the repository has its head elsewhere.
        let beside = |root: &Path| {
            repository(root);
            git(root, &["worktree", "add", "-q", "../beside", "feature/x"]);
            fs::rename(root.join("app"), root.join("main")).unwrap();
            fs::rename(root.join("beside"), root.join("app")).unwrap();
            let text = format!("gitdir: {}\n", root.join("main/.git/worktrees/beside").display());
            fs::write(root.join("app/.git"), text).unwrap();
        };
        assert_eq!(with(&beside, &|_| {}), Checked::Holds);
        assert_eq!(
            with(&beside, &|root| fs::write(
                root.join("main/.git/worktrees/beside/HEAD"),
                "ref: refs/heads/main"
            )
            .unwrap()),
            Checked::Moved
        );
        #[cfg(unix)]
        {
            let linked = |root: &Path| {
                fs::create_dir_all(root.join("lib/deep")).unwrap();
                std::os::unix::fs::symlink(root.join("lib"), root.join("app/lib")).unwrap();
            };
            assert_eq!(with(&linked, &|_| {}), Checked::Holds);
            assert_eq!(
                with(&linked, &|root| fs::write(root.join("lib/deep/x.c"), "x").unwrap()),
                Checked::Moved
            );
        }
        // Taken away, also from deep below.
        let deep = |root: &Path| {
            fs::create_dir_all(root.join("app/a/b")).unwrap();
            fs::write(root.join("app/a/b/x.rs"), "x").unwrap();
        };
        assert_eq!(with(&deep, &|root| fs::remove_file(root.join("app/a/b/x.rs")).unwrap()), Checked::Moved);
    }

    #[test]
    fn a_folder_that_only_a_server_has_is_not_looked_at() {
        let read = |path: &str| Call::new("mcp__drive__read", json!({ "path": path }));
        let far = "/no-such-volume/reports/11.csv";
        assert_eq!(seen(&read(far), Condition::NoPath(far.to_owned()), |_| {}), Checked::Unseen);
        let near = std::env::temp_dir().join("no-such-file.csv").display().to_string();
        assert_eq!(seen(&read(&near), Condition::NoPath(near.clone()), |_| {}), Checked::Holds);
    }
}
