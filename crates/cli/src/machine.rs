//! What is installed on this machine, as far as files tell. Nothing is ever run to find out, and nothing is written.
//!
//! A program that is not on PATH counts only where nobody else can have put it: in a folder that belongs to the user or to
//! root and that is not open to everybody.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use unstuck_judge::rewrite::Machine;

use crate::program_file::{first_in, is_program};

/// Folders of programs below the home, most usual first.
const IN_HOME: &[&str] = &[
    ".local/bin",
    ".cargo/bin",
    "bin",
    "go/bin",
    ".bun/bin",
    ".deno/bin",
    ".volta/bin",
    ".npm-global/bin",
    ".yarn/bin",
    ".pyenv/shims",
    ".rbenv/shims",
    ".asdf/shims",
    ".local/share/mise/shims",
    ".rye/shims",
    ".dotnet/tools",
    ".dotnet",
    ".krew/bin",
    ".nix-profile/bin",
];

/// Folders of programs on every machine.
const ON_MACHINE: &[&str] = &[
    "usr/local/bin",
    "usr/bin",
    "bin",
    "usr/local/sbin",
    "usr/sbin",
    "sbin",
    "opt/homebrew/bin",
    "opt/homebrew/sbin",
    "home/linuxbrew/.linuxbrew/bin",
    "usr/local/go/bin",
    "snap/bin",
    "nix/var/nix/profiles/default/bin",
];

/// Folders whose folders each hold a `bin`: what is in only one of them is certain.
const EACH_BIN: &[(Below, &str)] = &[(Below::Root, "opt"), (Below::Home, ".nvm/versions/node")];

/// Folders of programs in a project.
const IN_PROJECT: &[&str] = &["node_modules/.bin", ".venv/bin", "venv/bin", "vendor/bin"];

/// Where `docker` looks for its plugins, below the root; the user's own come first.
const PLUGINS: &[&str] = &[
    "usr/local/lib/{}/cli-plugins",
    "usr/local/libexec/{}/cli-plugins",
    "usr/lib/{}/cli-plugins",
    "usr/libexec/{}/cli-plugins",
    "opt/homebrew/lib/{}/cli-plugins",
];

/// How many folders up a project's programs are looked for.
const FOLDERS_UP: usize = 16;

#[derive(Clone, Copy)]
enum Below {
    Root,
    Home,
}

/// This machine, as it is seen from one working folder.
#[derive(Debug, Clone)]
pub(crate) struct ThisMachine {
    /// `/`, but for tests.
    root: PathBuf,
    home: Option<PathBuf>,
    /// Where the call runs.
    folder: Option<PathBuf>,
    path: Vec<PathBuf>,
    /// The Python environment that is active without being on PATH.
    virtual_env: Option<PathBuf>,
}

impl ThisMachine {
    /// The machine as a call in `folder` sees it, by the variables of this process.
    pub(crate) fn here(home: Option<PathBuf>, folder: Option<PathBuf>) -> ThisMachine {
        let path = env::var_os("PATH").unwrap_or_default();
        let virtual_env = env::var_os("VIRTUAL_ENV").map(PathBuf::from).filter(|path| path.is_absolute());
        ThisMachine::new(PathBuf::from("/"), home, folder, &path, virtual_env)
    }

    fn new(
        root: PathBuf,
        home: Option<PathBuf>,
        folder: Option<PathBuf>,
        path: &OsString,
        virtual_env: Option<PathBuf>,
    ) -> ThisMachine {
        // An empty part of PATH is the working folder, and others may be relative to it.
        let base = folder.clone().unwrap_or_default();
        let path = env::split_paths(path).map(|part| base.join(part)).collect();
        ThisMachine { root, home, folder, path, virtual_env }
    }

    fn on_path(&self, name: &str) -> Option<PathBuf> {
        first_in(&self.path, name)
    }

    /// The folders that may hold programs of the project: the working one, and those above it in the same repository.
    fn project_folders(&self) -> Vec<&Path> {
        let Some(folder) = self.folder.as_deref().filter(|folder| folder.is_absolute()) else {
            return Vec::new();
        };
        let mut folders = Vec::new();
        for each in folder.ancestors().take(FOLDERS_UP) {
            folders.push(each);
            if each.join(".git").exists() {
                return folders;
            }
        }
        folders.truncate(1);
        folders
    }

    /// The file in `folder`, if it is a program and nobody but the user, root or `also` can have put it there.
    fn trusted(&self, folder: &Path, name: &str, also: Option<&Path>) -> Option<PathBuf> {
        // Hardly any of the many folders holds it, so that comes first.
        let file = Some(folder.join(name)).filter(|file| is_program(file))?;
        let owners: Vec<Owner> =
            [self.home.as_deref(), also].into_iter().flatten().filter_map(owner).collect();
        (is_safe(folder, &owners) && is_safe(&file, &owners)).then_some(file)
    }
}

impl Machine for ThisMachine {
    fn program(&self, name: &str) -> Option<String> {
        text(self.on_path(name)?)
    }

    fn behind(&self, name: &str) -> Option<String> {
        let real = fs::canonicalize(self.on_path(name)?).ok()?;
        real.file_name()?.to_str().map(str::to_owned)
    }

    fn has_module(&self, python: &str, module: &str) -> bool {
        let Some(program) = self.on_path(python) else { return false };
        let prefix = |file: &Path| file.parent().and_then(Path::parent).map(Path::to_owned);
        let Some(own) = prefix(&program) else { return false };
        let real = fs::canonicalize(&program).unwrap_or_else(|_| program.clone());
        let version = real.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        // Without its version in the name of the file, nobody knows whose modules a folder holds.
        if !version.strip_prefix("python3.").is_some_and(|minor| minor.bytes().all(|b| b.is_ascii_digit())) {
            return false;
        }
        let is_environment = own.join("pyvenv.cfg").is_file();
        let mut folders = Vec::new();
        for prefix in [Some(own), prefix(&real).filter(|_| !is_environment)].into_iter().flatten() {
            for lib in ["lib", "lib64", "local/lib"] {
                folders.push(prefix.join(lib).join(&version).join("site-packages"));
                folders.push(prefix.join(lib).join(&version).join("dist-packages"));
            }
            folders.push(prefix.join("lib/python3/dist-packages"));
        }
        if let Some(home) = self.home.as_ref().filter(|_| !is_environment) {
            folders.push(home.join(".local/lib").join(&version).join("site-packages"));
        }
        let runs = |folder: &PathBuf| {
            folder.join(module).join("__main__.py").is_file() || folder.join(format!("{module}.py")).is_file()
        };
        folders.iter().any(runs)
    }

    fn has_plugin(&self, program: &str, plugin: &str) -> bool {
        let own = self.home.iter().map(|home| home.join(format!(".{program}/cli-plugins")));
        let common = PLUGINS.iter().map(|folder| self.root.join(folder.replace("{}", program)));
        own.chain(common).any(|folder| is_program(&folder.join(format!("{program}-{plugin}"))))
    }

    fn in_project(&self, name: &str) -> Option<String> {
        let active = self.virtual_env.iter().map(|env| (env.join("bin"), None));
        let folders = self.project_folders();
        let own = folders
            .iter()
            .flat_map(|folder| IN_PROJECT.iter().map(|below| (folder.join(below), Some(*folder))));
        active.chain(own).find_map(|(folder, project)| self.trusted(&folder, name, project)).and_then(text)
    }

    fn off_path(&self, name: &str) -> Option<String> {
        let home = self.home.iter().flat_map(|home| IN_HOME.iter().map(|below| home.join(below)));
        let common = ON_MACHINE.iter().map(|below| self.root.join(below));
        let single = home.chain(common).find_map(|folder| self.trusted(&folder, name, None));
        let each = || {
            EACH_BIN.iter().find_map(|(below, folder)| {
                let base = match below {
                    Below::Root => self.root.join(folder),
                    Below::Home => self.home.as_ref()?.join(folder),
                };
                let folders = fs::read_dir(base).ok()?.flatten().map(|entry| entry.path().join("bin"));
                let mut found = folders.filter_map(|folder| self.trusted(&folder, name, None));
                // Two versions of a program are a choice, and a choice is a guess.
                let only = found.next()?;
                found.next().is_none().then_some(only)
            })
        };
        single.or_else(each).and_then(text)
    }
}

/// A path that is no UTF-8 cannot stand in a call.
fn text(path: PathBuf) -> Option<String> {
    path.into_os_string().into_string().ok()
}

#[cfg(unix)]
type Owner = u32;

#[cfg(unix)]
fn owner(path: &Path) -> Option<Owner> {
    use std::os::unix::fs::MetadataExt;

    fs::metadata(path).ok().map(|metadata| metadata.uid())
}

/// Whether only root and `owners` can have changed a path.
#[cfg(unix)]
fn is_safe(path: &Path, owners: &[Owner]) -> bool {
    use std::os::unix::fs::MetadataExt;

    fs::metadata(path).is_ok_and(|it| it.mode() & 0o002 == 0 && (it.uid() == 0 || owners.contains(&it.uid())))
}

#[cfg(not(unix))]
type Owner = ();

#[cfg(not(unix))]
fn owner(_: &Path) -> Option<Owner> {
    None
}

/// Who can change a path is not asked here, so nothing off PATH is trusted.
#[cfg(not(unix))]
fn is_safe(_: &Path, _: &[Owner]) -> bool {
    false
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::{Command, Output};

    use tempfile::TempDir;
    use unstuck_judge::rewrite::propose;
    use unstuck_judge::{Call, Kind, Observation, Outcome, Rules};

    use super::*;

    /// A machine with nothing on it but what is put there: real files, in a folder of their own.
    struct World(TempDir);

    impl World {
        fn empty() -> World {
            let world = World(tempfile::tempdir().unwrap());
            for folder in ["usr/bin", "home/ada/app/web", "home/ada/app/.git"] {
                fs::create_dir_all(world.at(folder)).unwrap();
            }
            world
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn file(self, path: &str, mode: u32) -> World {
            let file = self.at(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "#!/bin/sh\nexit 99\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            self
        }

        fn program(self, path: &str) -> World {
            self.file(path, 0o755)
        }

        fn link(self, path: &str, to: &str) -> World {
            fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
            symlink(to, self.at(path)).unwrap();
            self
        }

        fn open_to_all(self, folder: &str) -> World {
            fs::set_permissions(self.at(folder), fs::Permissions::from_mode(0o777)).unwrap();
            self
        }

        fn machine(&self) -> ThisMachine {
            let path = env::join_paths([self.at("usr/bin"), self.at("nowhere")]).unwrap();
            let home = Some(self.at("home/ada"));
            ThisMachine::new(self.0.path().to_owned(), home, Some(self.at("home/ada/app/web")), &path, None)
        }

        /// What a line becomes after a program was missing, with this world's folder as `/`.
        fn proposed(&self, line: &str, missing: &str) -> String {
            let said = format!("bash: line 1: {missing}: command not found");
            let rule = "shell.command-not-found";
            let call = Call::shell(line);
            match propose(&call, Kind::CommandNotFound, rule, Some(&said), &self.machine()) {
                Some(rewrite) => {
                    let root = format!("{}/", self.0.path().display());
                    rewrite.input["command"].as_str().unwrap().replace(&root, "/")
                }
                None => "-".to_owned(),
            }
        }
    }

    /// The line becomes `expected` on this world, and stays as it is on an empty one.
    fn check(world: World, line: &str, expected: &str) {
        let missing = line.split_whitespace().next().unwrap();
        assert_eq!(world.proposed(line, missing), expected);
        assert_eq!(World::empty().proposed(line, missing), "-", "{line} on an empty machine");
    }

    #[test]
    fn a_program_on_path_is_an_executable_file() {
        check(World::empty().program("usr/bin/python3"), "python x", "python3 x");
        check(World::empty().file("usr/bin/python3", 0o644), "python x", "-");
        check(World::empty().program("usr/bin/python3/x"), "python x", "-");
        check(World::empty().link("usr/bin/python3", "gone"), "python x", "-");
    }

    #[test]
    fn python_is_a_replacement_for_python3_only_if_it_is_one() {
        let python = |version: &str| {
            World::empty().program(&format!("usr/bin/{version}")).link("usr/bin/python", version)
        };
        check(python("python3.12"), "python3 x", "python x");
        check(python("python2.7"), "python3 x", "-");
        check(World::empty().program("usr/bin/python"), "python3 x", "-");
    }

    #[test]
    fn pip_is_a_module_where_the_module_is() {
        let python = || World::empty().program("usr/bin/python3.11").link("usr/bin/python3", "python3.11");
        check(python(), "pip list", "-");
        for folder in [
            "usr/lib/python3/dist-packages",
            "usr/lib/python3.11/site-packages",
            "usr/local/lib/python3.11/dist-packages",
            "home/ada/.local/lib/python3.11/site-packages",
        ] {
            let world = python().file(&format!("{folder}/pip/__main__.py"), 0o644);
            check(world, "pip list", "python3 -m pip list");
        }
        let other = python().file("usr/lib/python3.10/site-packages/pip/__main__.py", 0o644);
        check(other, "pip list", "-");
    }

    #[test]
    fn compose_is_a_plugin_where_docker_looks_for_it() {
        let docker = || World::empty().program("usr/bin/docker");
        check(docker(), "docker-compose up", "-");
        for folder in ["usr/libexec/docker/cli-plugins", "home/ada/.docker/cli-plugins"] {
            let world = docker().program(&format!("{folder}/docker-compose"));
            check(world, "docker-compose up", "docker compose up");
        }
        let alone = World::empty().program("usr/libexec/docker/cli-plugins/docker-compose");
        check(alone, "docker-compose up", "-");
    }

    #[test]
    fn a_project_has_programs_up_to_the_root_of_its_repository() {
        let tsc = |folder: &str| World::empty().program(&format!("{folder}/node_modules/.bin/tsc"));
        check(tsc("home/ada/app/web"), "tsc -b", "/home/ada/app/web/node_modules/.bin/tsc -b");
        check(tsc("home/ada/app"), "tsc -b", "/home/ada/app/node_modules/.bin/tsc -b");
        check(tsc("home/ada"), "tsc -b", "-");
        let venv = World::empty().program("home/ada/app/.venv/bin/pytest");
        check(venv, "pytest -q", "/home/ada/app/.venv/bin/pytest -q");
    }

    #[test]
    fn a_program_off_path_is_found_where_programs_usually_are() {
        for folder in
            ["home/ada/.cargo/bin", "usr/sbin", "opt/tool/bin", "home/ada/.nvm/versions/node/v22/bin"]
        {
            let world = World::empty().program(&format!("{folder}/thing"));
            check(world, "thing 1", &format!("/{folder}/thing 1"));
        }
        let two = World::empty().program("opt/a/bin/thing").program("opt/b/bin/thing");
        check(two, "thing 1", "-");
        let there = World::empty().program("usr/bin/thing").program("usr/sbin/thing");
        check(there, "thing 1", "-");
    }

    #[test]
    fn a_program_that_anybody_may_have_put_there_is_none() {
        let open = World::empty().program("usr/sbin/thing").open_to_all("usr/sbin");
        check(open, "thing 1", "-");
        check(World::empty().file("usr/sbin/thing", 0o777), "thing 1", "-");
        let open = World::empty().program("home/ada/app/venv/bin/thing").open_to_all("home/ada/app/venv/bin");
        check(open, "thing 1", "-");
    }

    #[test]
    fn here_the_path_is_the_one_of_this_process() {
        let here = ThisMachine::here(None, None);
        assert!(
            here.program("sh").is_some_and(|path| path.ends_with("/sh") && Path::new(&path).is_absolute())
        );
        assert_eq!(here.program("no-such-program-anywhere"), None);
    }

    #[test]
    fn a_path_with_a_blank_is_quoted() {
        let world = World::empty().program("opt/my tool/bin/thing");
        check(world, "thing > out", "'/opt/my tool/bin/thing' > out");
    }

    /// What a real shell makes of a line, with nothing on its PATH but what this world has there.
    fn shell(world: &World, line: &str) -> Output {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", line]).env_clear().env("PATH", world.at("usr/bin"));
        shell.current_dir(world.at("home/ada/app/web")).output().unwrap()
    }

    #[test]
    fn a_line_that_failed_in_a_real_shell_runs_as_proposed() {
        let says = |what: &str| format!("#!/bin/sh\necho {what} \"$@\"\n");
        for (line, printed) in [
            ("python 'a  b' \"$HOME\"", "three a  b \n"),
            ("cd .. && python x > out && read l < out && echo got $l", "got three x\n"),
            ("v=\"[$(python -V)]\" && echo $v 'python'", "[three -V] python\n"),
            ("A=python python y | { read a b && echo $b $a python; }", "y three python\n"),
            ("python - <<'EOF'\npython\nEOF\n", "three -\n"),
            ("{ python 1 && python 2; } 2>&1", "three 1\nthree 2\n"),
            ("thing --all 2>&1", "thing --all\n"),
            ("(thing a) && thing b", "thing a\nthing b\n"),
        ] {
            let world = World::empty().program("usr/bin/python3").program("home/ada/.cargo/bin/thing");
            fs::write(world.at("usr/bin/python3"), says("three")).unwrap();
            fs::write(world.at("home/ada/.cargo/bin/thing"), says("thing")).unwrap();
            let call = Call::shell(line);
            let failed = shell(&world, line);
            let outcome = Outcome::Exited { code: failed.status.code().unwrap() };
            let (stdout, stderr) = (failed.stdout, failed.stderr);
            let observation = Observation {
                call: call.clone(),
                outcome,
                http_status: None,
                stdout,
                stderr,
                merged: Vec::new(),
            };
            let diagnosis = Rules::built_in().diagnose(&observation);
            let evidence = diagnosis.evidence.as_ref().map(|found| found.text.as_str());
            let rewrite = propose(&call, diagnosis.kind, &diagnosis.rule, evidence, &world.machine());
            let rewrite = rewrite.unwrap_or_else(|| panic!("nothing for {line}: {diagnosis:?}"));
            let works = shell(&world, rewrite.input["command"].as_str().unwrap());
            assert_eq!(String::from_utf8_lossy(&works.stdout), printed, "{line} as {}", rewrite.input);
            assert!(works.status.success() && works.stderr.is_empty(), "{line}: {works:?}");
        }
    }

    #[test]
    fn nothing_that_is_found_was_run() {
        // Every program here would leave a mark if it were started.
        let world = World::empty().program("usr/bin/docker").program("usr/bin/python3.11");
        let world = world.link("usr/bin/python3", "python3.11").program("usr/sbin/thing");
        let mark = world.at("mark");
        for program in ["usr/bin/docker", "usr/bin/python3.11", "usr/sbin/thing"] {
            fs::write(world.at(program), format!("#!/bin/sh\ntouch '{}'\n", mark.display())).unwrap();
        }
        for line in ["python x", "pip x", "docker-compose x", "thing x"] {
            world.proposed(line, line.split_whitespace().next().unwrap());
        }
        assert!(!mark.exists());
    }
}
