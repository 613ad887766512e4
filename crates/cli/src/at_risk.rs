//! What a risky call would touch on this machine: its targets as absolute paths that the safe can take.
//!
//! It looks at names, links and a few small files of git, and never runs or changes anything. A folder that is too much to
//! be taken as a whole (`/`, the home, `/usr`) is never widened to: it is said, so that somebody can be asked.

pub(crate) mod git;
mod patterns;
#[cfg(test)]
mod tests;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

use unstuck_judge::risk::{At, Folder, PLACES, Risk, Target};
use unstuck_vault::Rebuildable;

use crate::whereabouts;

/// How many files a pattern may stand for; past it, the folder that holds them is taken.
const MATCHES_MAX: usize = 4_096;

/// How many folders up a project's files are looked for.
const FOLDERS_UP: usize = 16;

/// Folders of the machine that are never taken as a whole. What is in them may be, where it is named.
const WIDE: &[&str] = &[
    "/",
    "/Applications",
    "/Library",
    "/System",
    "/Users",
    "/Volumes",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/media",
    "/mnt",
    "/nix",
    "/opt",
    "/private",
    "/private/etc",
    "/private/tmp",
    "/private/var",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/snap",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/include",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local",
    "/usr/local/bin",
    "/usr/local/lib",
    "/usr/sbin",
    "/usr/share",
    "/var",
    "/var/lib",
    "/var/log",
    "/var/tmp",
];

/// Folders whose files are no files. In `/dev`, some are.
const UNREAL: &[&str] = &["/proc", "/sys"];

/// What of this machine a call puts at risk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AtRisk {
    /// Nothing that is there.
    Nothing,
    /// These paths.
    Scopes {
        /// Absolute, sorted, each once, links in their parents followed. One that is not there is made by the call.
        paths: Vec<PathBuf>,
        /// What becomes of folders in them that can be made again.
        rebuildable: Rebuildable,
        /// What in them the call leaves as it is.
        spared: Vec<PathBuf>,
    },
    /// More than can be taken as a whole.
    TooWide {
        /// The folder.
        path: PathBuf,
    },
    /// What we keep ourselves, the safe among it: no safe can save itself.
    OurOwn {
        /// What the call names of it, or around it.
        path: PathBuf,
    },
}

/// Finds what `risk` means for a call that is made in `cwd`, an absolute path. `ours` is the folder that we keep our things in.
pub(crate) fn at_risk(risk: &Risk, cwd: &Path, home: Option<&Path>, ours: Option<&Path>) -> AtRisk {
    with_variables(risk, cwd, home, ours, &|name| env::var_os(name))
}

/// The same, with the variables of the shell that the call is made in.
fn with_variables(
    risk: &Risk,
    cwd: &Path,
    home: Option<&Path>,
    ours: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> AtRisk {
    let ours = ours.and_then(|ours| fs::canonicalize(ours).ok());
    let mut look = Look {
        cwd,
        home,
        ours,
        variable,
        there: Vec::new(),
        made: Vec::new(),
        kept_by_git: Vec::new(),
        rebuildable: false,
    };
    for target in risk.targets() {
        match look.at(target) {
            Ok(()) => {}
            Err(Refused::TooWide(path)) => return AtRisk::TooWide { path },
            Err(Refused::OurOwn(path)) => return AtRisk::OurOwn { path },
        }
    }
    let whole = look.there.clone();
    let mut spared = Vec::new();
    for folder in std::mem::take(&mut look.kept_by_git) {
        spared.extend(git::spared(&folder));
        if look.is_wide(&folder) {
            return AtRisk::TooWide { path: folder };
        }
        look.there.push(folder);
    }
    // What another part of the call puts at risk is not spared, nor what holds something of that.
    let is_whole = |path: &Path| whole.iter().any(|whole| path.starts_with(whole));
    spared.retain(|path| !is_whole(path) && !look.there.iter().any(|there| there.starts_with(path)));
    if look.there.is_empty() {
        return AtRisk::Nothing;
    }
    let mut paths = look.there;
    paths.append(&mut look.made);
    paths.sort();
    paths.dedup();
    let rebuildable = if look.rebuildable { Rebuildable::Taken } else { Rebuildable::LeftOut };
    AtRisk::Scopes { paths, rebuildable, spared }
}

/// Is a folder too much to be taken or removed as a whole?
pub(crate) fn is_wide(path: &Path, home: Option<&Path>) -> bool {
    let holds_home = |home: &Path| home.starts_with(path) || real(home).starts_with(path);
    WIDE.iter().any(|wide| path == Path::new(wide)) || home.is_some_and(holds_home)
}

/// What is never taken.
enum Refused {
    /// A folder that is too much to be taken as a whole.
    TooWide(PathBuf),
    /// What is ours.
    OurOwn(PathBuf),
}

/// What was found so far.
struct Look<'a> {
    cwd: &'a Path,
    home: Option<&'a Path>,
    variable: &'a dyn Fn(&str) -> Option<OsString>,
    ours: Option<PathBuf>,
    /// Paths that are there.
    there: Vec<PathBuf>,
    /// Paths that are not, and that the call would make.
    made: Vec<PathBuf>,
    /// Folders of git, of which only what it does not merely add to is at risk.
    kept_by_git: Vec<PathBuf>,
    rebuildable: bool,
}

impl Look<'_> {
    fn at(&mut self, target: &Target) -> Result<(), Refused> {
        let before = self.there.len();
        match &target.at {
            At::Path { from, path } => {
                let Some(folder) = self.folder(from) else { return Ok(()) };
                self.add(&self.join(&folder, path), target)?;
            }
            At::Glob { from, pattern } => {
                let Some(folder) = self.folder(from) else { return Ok(()) };
                for path in self.matches(&folder, pattern, target.hidden)? {
                    self.add(&path, target)?;
                }
            }
            At::Over { from, sources, to, moves } => {
                let Some(folder) = self.folder(from) else { return Ok(()) };
                self.add_over(&folder, sources, to, *moves, target)?;
            }
            At::Repository { from } => {
                let repository = self.folder(from).and_then(|folder| git::Repository::around(&folder));
                for path in repository.iter().flat_map(git::Repository::all) {
                    self.add(path, target)?;
                }
            }
            At::GitFolder { from } => {
                let repository = self.folder(from).and_then(|folder| git::Repository::around(&folder));
                for path in repository.iter().flat_map(git::Repository::kept) {
                    self.add(path, target)?;
                }
            }
            At::GitState { from } => {
                let repository = self.folder(from).and_then(|folder| git::Repository::around(&folder));
                self.kept_by_git.extend(repository.iter().flat_map(git::Repository::kept).cloned());
            }
            At::GitIndex { beside: true, .. } if self.there.is_empty() => {}
            At::GitIndex { from, beside: _ } => {
                let repository = self.folder(from).and_then(|folder| git::Repository::around(&folder));
                for path in repository.iter().filter_map(git::Repository::index) {
                    self.add(&path, target)?;
                }
            }
            At::Named { from, names } => {
                let Some(folder) = self.folder(from) else { return Ok(()) };
                for path in self.named(&folder, names)? {
                    self.add(&path, target)?;
                }
            }
            At::Workspace { from } => {
                let Some(folder) = self.folder(from) else { return Ok(()) };
                self.add(&whereabouts::project_of(&folder, self.home), target)?;
            }
        }
        self.rebuildable |= target.rebuildable && self.there.len() > before;
        Ok(())
    }

    /// The folder that some steps lead to; nothing where the call would end before it got there.
    fn folder(&self, folder: &Folder) -> Option<PathBuf> {
        let mut at = self.cwd.to_owned();
        for step in &folder.steps {
            // A shell takes `..` for the folder above by name, also behind a link.
            let next = by_name(&self.join(&at, &step.to));
            match fs::metadata(&next) {
                Ok(found) if found.is_dir() => at = next,
                // Others than us may be able to enter it.
                Err(error) if !says_absent(&error) => at = next,
                Ok(_) | Err(_) if step.or_stay => {}
                Ok(_) | Err(_) => return None,
            }
        }
        Some(at)
    }

    fn join(&self, folder: &Path, path: &str) -> PathBuf {
        for name in PLACES {
            let rest = path.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('/'));
            if let Some(rest) = rest {
                // A variable that is not set is an empty word.
                let mut place = (self.variable)(name.trim_start_matches('$')).unwrap_or_default();
                place.push(rest);
                return folder.join(place);
            }
        }
        match (path.strip_prefix('~'), self.home) {
            (Some(""), Some(home)) => home.to_owned(),
            (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
            (Some(_) | None, _) => folder.join(path),
        }
    }

    /// Adds a path: as it is if it is there, as one to be made if it surely will be.
    fn add(&mut self, path: &Path, target: &Target) -> Result<(), Refused> {
        let place = real(path);
        if UNREAL.iter().any(|folder| place.starts_with(folder) && place != Path::new(folder)) {
            return Ok(());
        }
        let found = match fs::symlink_metadata(&place) {
            Ok(found) => found,
            Err(error) if says_absent(&error) => {
                // A new file beside what is ours could be one that we heed.
                if self.ours.as_deref().is_some_and(|ours| place.starts_with(ours)) {
                    return Err(Refused::OurOwn(place));
                }
                if !target.only_if_there {
                    self.made.push(uppermost_missing(&place).to_owned());
                }
                return Ok(());
            }
            Err(_) => {
                self.there.extend(closed_folder(&place));
                return Ok(());
            }
        };
        if found.is_symlink()
            && target.through_links
            && let Ok(end) = fs::canonicalize(&place)
        {
            self.keep_file(end, target)?;
        }
        self.keep_file(place, target)
    }

    /// Keeps what is a file or a folder. A disk is too much, and what is written to other devices is nowhere afterwards.
    fn keep_file(&mut self, path: PathBuf, target: &Target) -> Result<(), Refused> {
        let kind = fs::symlink_metadata(&path).map(|found| found.file_type());
        match kind {
            Ok(kind) if kind.is_block_device() => Err(Refused::TooWide(path)),
            Ok(kind) if kind.is_char_device() => Ok(()),
            Ok(_) | Err(_) => self.keep(path, target),
        }
    }

    fn keep(&mut self, path: PathBuf, target: &Target) -> Result<(), Refused> {
        if self.is_wide(&path) {
            return Err(Refused::TooWide(path));
        }
        if self.is_ours(&path, target) {
            return Err(Refused::OurOwn(path));
        }
        self.there.push(path);
        Ok(())
    }

    /// Whether what is ours would be changed, or removed with what holds it. Who writes through links changes only the files
    /// that he means, and those are not ours.
    fn is_ours(&self, path: &Path, target: &Target) -> bool {
        self.ours
            .as_deref()
            .is_some_and(|ours| path.starts_with(ours) || ours.starts_with(path) && !target.through_links)
    }

    fn is_wide(&self, path: &Path) -> bool {
        is_wide(path, self.home)
    }

    /// What a pattern stands for. A file that is called like the pattern is among it: who wrote quotes meant that one.
    fn matches(&self, folder: &Path, pattern: &str, hidden: bool) -> Result<Vec<PathBuf>, Refused> {
        let whole = self.join(folder, pattern);
        let mut found: Vec<PathBuf> =
            Some(&whole).filter(|path| is_there(path)).into_iter().cloned().collect();
        let is_fixed = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
        let holder: PathBuf = whole.components().take_while(is_fixed).collect();
        let first = whole.components().find(|part| !is_fixed(part));
        let takes_all =
            first.is_some_and(|part| part.as_os_str().as_encoded_bytes().iter().all(|b| *b == b'*'));
        if takes_all && self.is_wide(&real(&holder)) {
            return Err(Refused::TooWide(real(&holder)));
        }
        let rest = whole.strip_prefix(&holder).unwrap_or(&whole);
        let (Some(start), Some(rest)) = (holder.to_str(), rest.to_str()) else {
            found.push(holder);
            return Ok(found);
        };
        // Who looks through all folders may look long: what holds them is as good, also behind a link.
        if rest.contains("**") {
            found.push(holder.join(""));
            return Ok(found);
        }
        let Some(matches) = patterns::matching(Path::new(start), rest, hidden, MATCHES_MAX) else {
            return Ok(vec![holder]);
        };
        found.extend(matches);
        Ok(found)
    }

    /// What `cp` or `mv` would write over. Where that is something, what it makes besides belongs to it. What is moved is gone
    /// from where it was, also where nothing is written over.
    fn add_over(
        &mut self,
        folder: &Path,
        sources: &[String],
        to: &str,
        moves: bool,
        target: &Target,
    ) -> Result<(), Refused> {
        let mut found = Vec::new();
        for source in sources {
            found.extend(match source.contains(['*', '?', '[']) {
                true => self.matches(folder, source, target.hidden)?,
                false => vec![self.join(folder, source)],
            });
        }
        let to_path = self.join(folder, to);
        let to_path = match to.contains(['*', '?', '[']) {
            true => self.matches(folder, to, target.hidden)?.into_iter().next().unwrap_or(to_path),
            false => to_path,
        };
        let inside = |source: &PathBuf| match source.components().next_back() {
            // `cp -r a/. b` puts what is in `a` beside what is in `b`.
            Some(Component::Normal(name)) if !ends_in_dot(source) => to_path.join(name),
            Some(_) | None => to_path.clone(),
        };
        let places: Vec<PathBuf> = match to_path.is_dir() {
            true if found.len() <= MATCHES_MAX => found.iter().map(inside).collect(),
            true | false => vec![to_path.clone()],
        };
        let goal = real(&to_path);
        if self.ours.as_deref().is_some_and(|ours| goal.starts_with(ours)) {
            return Err(Refused::OurOwn(goal));
        }
        let touched = places.iter().chain(found.iter().filter(|_| moves));
        if !touched.into_iter().any(|place| is_there(place)) {
            return Ok(());
        }
        for place in &places {
            self.add(place, target)?;
        }
        for source in found.iter().filter(|_| moves).take(MATCHES_MAX) {
            self.add(source, &Target { only_if_there: true, ..target.clone() })?;
        }
        Ok(())
    }

    /// Files of these names, each in the nearest folder of the project that has one.
    fn named(&self, folder: &Path, names: &[&str]) -> Result<Vec<PathBuf>, Refused> {
        let top = git::Repository::around(folder).map(|repository| repository.top_around(folder).to_owned());
        let within = |each: &&Path| top.as_ref().is_some_and(|top| real(each).starts_with(top));
        let mut found = Vec::new();
        for name in names {
            for (up, each) in folder.ancestors().take(FOLDERS_UP).enumerate() {
                if up > 0 && !within(&each) {
                    break;
                }
                let here = match name.contains('*') {
                    true => self.matches(each, name, false)?,
                    false => vec![each.join(name)],
                };
                let before = found.len();
                found.extend(here.into_iter().filter(|path| is_there(path)));
                if found.len() > before {
                    break;
                }
            }
        }
        Ok(found)
    }
}

/// Does it say that nothing is there, or that nothing can be of that name? Anything else may hide something.
fn says_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename | InvalidInput)
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or_else(|error| !says_absent(&error), |_| true)
}

/// The folder on the way to a path that we may not look into. It is taken for the path, so that whoever takes it says so; since
/// nothing in it can be read, it is never too much.
fn closed_folder(path: &Path) -> Option<PathBuf> {
    path.ancestors().skip(1).find(|above| fs::symlink_metadata(above).is_ok()).map(Path::to_owned)
}

/// The uppermost folder of a path that is not there: whoever makes the file makes it, too.
fn uppermost_missing(path: &Path) -> &Path {
    let missing = |above: &&Path| fs::symlink_metadata(above).is_err();
    path.ancestors().take_while(missing).last().unwrap_or(path)
}

/// Whether a path is written with `.` or `..` as its last part, which a `Path` does not tell.
fn ends_in_dot(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.ends_with(b"/.") || bytes.ends_with(b"/..")
}

/// A path without `..`, by its words alone.
fn by_name(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// Where a path really lies: the links in its parents followed, the last one not. A path that ends with `/` or a dot goes
/// through a link, too. What is not there lies in the nearest folder above that is.
fn real(path: &Path) -> PathBuf {
    let through = ends_in_dot(path) || path.as_os_str().as_encoded_bytes().ends_with(b"/");
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return fs::canonicalize(path).unwrap_or_else(|_| by_name(path));
    };
    if through && let Ok(end) = fs::canonicalize(path) {
        return end;
    }
    match fs::canonicalize(parent) {
        Ok(parent) => parent.join(name),
        Err(_) => real(parent).join(name),
    }
}
