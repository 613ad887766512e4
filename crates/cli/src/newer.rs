//! Looks through folders for a file that is newer than a moment, within a short time.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::regular_file;

/// Folders that are no part of what a person writes: what lies in them is made by programs, and made again.
const PASSED_OVER: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".jj",
    "node_modules",
    "__pycache__",
    ".venv",
    "venv",
    ".tox",
    ".nox",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".gradle",
    ".terraform",
    ".direnv",
    "htmlcov",
    ".nyc_output",
    ".idea",
    ".vscode",
];
/// Folders of that name are passed over where this file marks them as a cache.
const CACHE_MARK: (&str, &str) = ("target", "CACHEDIR.TAG");
/// A longer file points at no repository.
const LONGEST_POINTER: u64 = 4096;
/// Two threads: more would wait for each other.
const THREADS: usize = 2;
/// So many entries are looked at whatever the time: they take a few milliseconds, and a machine that is busy elsewhere makes no
/// small project unknown.
const ALWAYS: usize = 2_000;

/// Is something below one of `roots` newer than `since`? `None` where that cannot be said within `time`; a small project is
/// always looked through.
///
/// A folder is newer where something was added to it or taken from it. The repository itself counts by its head and its
/// settings.
pub(crate) fn in_any(roots: &[PathBuf], since: SystemTime, time: Duration) -> Option<bool> {
    let search = Search {
        since,
        until: Instant::now() + time,
        is_found: AtomicBool::new(false),
        is_late: AtomicBool::new(false),
        looked_at: AtomicUsize::new(0),
        linked: Mutex::default(),
        roots: roots.iter().map(|root| fs::canonicalize(root).unwrap_or_else(|_| root.clone())).collect(),
        queue: Mutex::new(Queue { waiting: roots.to_vec(), at_work: 0 }),
        news: Condvar::new(),
    };
    if roots.iter().any(|root| is_newer_than(root, since) || is_repository_newer(root, since)) {
        return Some(true);
    }
    thread::scope(|scope| {
        for _ in 1..THREADS {
            scope.spawn(|| search.work());
        }
        search.work();
    });
    match (search.is_found.into_inner(), search.is_late.into_inner()) {
        (true, _) => Some(true),
        (false, true) => None,
        (false, false) => Some(false),
    }
}

/// Is it a folder that programs make for themselves?
pub(crate) fn is_passed_over(folder: &Path) -> bool {
    let name = folder.file_name().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
    PASSED_OVER.contains(&name) || name == CACHE_MARK.0 && folder.join(CACHE_MARK.1).exists()
}

/// Did the head of a repository move, or did its settings change?
fn is_repository_newer(root: &Path, since: SystemTime) -> bool {
    const HEADS: [&str; 6] = ["HEAD", "logs/HEAD", "index", "MERGE_HEAD", "FETCH_HEAD", "ORIG_HEAD"];
    const SHARED: [&str; 8] = [
        "config",
        "packed-refs",
        "refs/heads",
        "refs/tags",
        "refs/remotes",
        "refs/stash",
        "info/exclude",
        "FETCH_HEAD",
    ];
    let own = git_folder(root);
    // A work tree beside a repository has only its head for itself.
    let shared = regular_file::text(&own.join("commondir"), LONGEST_POINTER)
        .map_or_else(|| own.clone(), |to| own.join(to.trim()));
    HEADS.iter().any(|name| is_newer_than(&own.join(name), since))
        || SHARED.iter().any(|name| is_newer_than(&shared.join(name), since))
}

/// Where a repository keeps its head: in `.git`, or where a file of that name says.
fn git_folder(root: &Path) -> PathBuf {
    let git = root.join(".git");
    let said = regular_file::text(&git, LONGEST_POINTER);
    match said.as_deref().and_then(|said| said.strip_prefix("gitdir:")) {
        Some(to) => root.join(to.trim()),
        None => git,
    }
}

fn is_newer_than(path: &Path, since: SystemTime) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| changed(&about) > since)
}

/// When a file, or what is known of it, changed last.
pub(crate) fn changed(about: &Metadata) -> SystemTime {
    let modified = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    #[cfg(unix)]
    let modified = {
        use std::os::unix::fs::MetadataExt;
        let nanos = u32::try_from(about.ctime_nsec()).unwrap_or(0);
        modified.max(SystemTime::UNIX_EPOCH + Duration::new(about.ctime().unsigned_abs(), nanos))
    };
    modified
}

struct Search {
    since: SystemTime,
    until: Instant,
    is_found: AtomicBool,
    is_late: AtomicBool,
    looked_at: AtomicUsize,
    /// Folders outside of what is looked through, to which links led: each once.
    linked: Mutex<HashSet<PathBuf>>,
    roots: Vec<PathBuf>,
    queue: Mutex<Queue>,
    news: Condvar,
}

/// The folders that wait, and how many are being looked at.
struct Queue {
    waiting: Vec<PathBuf>,
    at_work: usize,
}

impl Search {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_found.load(Ordering::Relaxed) || self.is_late.load(Ordering::Relaxed)
    }

    fn work(&self) {
        while let Some(folder) = self.next() {
            let below = self.look(&folder);
            let mut queue = self.lock();
            queue.waiting.extend(below);
            queue.at_work -= 1;
            self.news.notify_all();
        }
    }

    fn next(&self) -> Option<PathBuf> {
        let mut queue = self.lock();
        loop {
            if self.is_over() {
                return None;
            }
            if queue.waiting.is_empty() && queue.at_work == 0 {
                return None;
            }
            if self.looked_at.load(Ordering::Relaxed) >= ALWAYS && Instant::now() > self.until {
                self.is_late.store(true, Ordering::Relaxed);
                self.news.notify_all();
                return None;
            }
            if let Some(folder) = queue.waiting.pop() {
                queue.at_work += 1;
                return Some(folder);
            }
            queue = self.news.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What a link leads to, and the folder that is to be looked through for it.
    fn target(&self, link: &Path) -> Option<(Metadata, Option<PathBuf>)> {
        let about = fs::metadata(link).ok()?;
        if !about.is_dir() {
            return Some((about, None));
        }
        let folder = fs::canonicalize(link).ok()?;
        let is_inside = self.roots.iter().any(|root| folder.starts_with(root) || root.starts_with(&folder));
        let is_new = !is_inside && {
            let mut linked = self.linked.lock().unwrap_or_else(PoisonError::into_inner);
            linked.insert(folder.clone())
        };
        let is_project = is_new && !is_passed_over(link) && !is_passed_over(&folder);
        Some((about, is_project.then_some(folder)))
    }

    /// Looks at one folder; returns those in it.
    fn look(&self, folder: &Path) -> Vec<PathBuf> {
        let mut below = Vec::new();
        // A folder that cannot be read tells nothing, as before.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if self.is_over() {
                break;
            }
            self.looked_at.fetch_add(1, Ordering::Relaxed);
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() {
                let path = entry.path();
                if is_passed_over(&path) {
                    continue;
                }
                below.push(path);
            }
            let target = about.is_symlink().then(|| self.target(&entry.path())).flatten();
            let is_newer_there = match target {
                Some((target, folder)) => {
                    below.extend(folder);
                    changed(&target) > self.since
                }
                None => false,
            };
            if is_newer_there || changed(&about) > self.since {
                self.is_found.store(true, Ordering::Relaxed);
                break;
            }
        }
        below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn later() -> SystemTime {
        // Clocks of files are coarse.
        thread::sleep(Duration::from_millis(30));
        SystemTime::now()
    }

    #[test]
    fn a_file_that_changes_deep_in_a_folder_is_found() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("x.rs"), "old").unwrap();
        let since = later();
        let roots = [root.path().to_owned()];
        assert_eq!(in_any(&roots, since, LONG), Some(false));
        thread::sleep(Duration::from_millis(30));
        fs::write(deep.join("x.rs"), "new").unwrap();
        assert_eq!(in_any(&roots, since, LONG), Some(true));
    }

    #[test]
    fn what_programs_make_for_themselves_is_no_change() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["node_modules/.cache", "target/debug", "src/__pycache__"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        fs::write(root.path().join("target/CACHEDIR.TAG"), "Signature").unwrap();
        let since = later();
        for file in ["node_modules/.cache/x", "target/debug/x", "src/__pycache__/x"] {
            fs::write(root.path().join(file), "x").unwrap();
        }
        assert_eq!(in_any(&[root.path().to_owned()], since, LONG), Some(false));
        later();
        fs::write(root.path().join("src/new.py"), "x").unwrap();
        assert_eq!(in_any(&[root.path().to_owned()], since, LONG), Some(true));
    }

    #[test]
    fn what_takes_too_long_is_not_known_unless_it_is_small() {
        let root = tempfile::tempdir().unwrap();
        for number in 1..ALWAYS {
            fs::write(root.path().join(number.to_string()), "").unwrap();
        }
        let since = later();
        let roots = [root.path().to_owned()];
        assert_eq!(in_any(&roots, since, Duration::ZERO), Some(false));
        fs::create_dir(root.path().join("below")).unwrap();
        assert_eq!(in_any(&roots, later(), Duration::ZERO), None);
    }
}
