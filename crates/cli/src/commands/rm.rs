//! `unstuck rm`: deletes files and folders that are saved first.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use serde::Serialize;
use unstuck_judge::{Call, Lang, Observation, Outcome};
use unstuck_vault::{GapReason, Held, Origin, Rebuildable, Wish};

use crate::attempts::{self, Aloud, Logbook, Terms, Tried};
use crate::cellar::{self, Cellar};
use crate::exit::{CommandError, ExitStatus};
use crate::onlooker::Onlooker;
use crate::protect::{self, LeftBecause, ProtectError, Protection, Removal, Rollback, Runs};
use crate::removed::{self, counted};
use crate::safe::Safe;
use crate::snapshot_page::text;
use crate::ui::Ui;
use crate::{at_risk, knowledge, lines, whereabouts};

/// Delete files and folders, and be able to undo it
///
/// Everything is saved first; where not all of it can be, nothing is deleted. `unstuck undo` brings it back. Links are deleted
/// and never followed. The disk, the home, the root of the work tree here, and what unstuck itself keeps are refused.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck rm build/ old/        folders, with all that is in them
  unstuck undo                  and back again
  unstuck rm -f maybe.log       no complaint where it is not there
  unstuck rm -- -odd-name")]
pub(crate) struct RmArgs {
    /// What to delete
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// Folders too; they are deleted without it as well
    #[arg(short, long, visible_short_alias = 'R')]
    recursive: bool,
    /// Pass over what is not there
    #[arg(short, long)]
    force: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct WireRm {
    #[serde(rename = "type")]
    record: &'static str,
    /// The snapshot that brings it back; nothing where nothing was there.
    snapshot: Option<String>,
    removed: Vec<String>,
    entries: u64,
    missing: Vec<String>,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &RmArgs) -> Result<ExitStatus, CommandError> {
    let lang = ui.lang();
    let safe = Safe::of(cellar);
    let (paths, missing) = meant(&safe, cellar, args)?;
    let deleted = match paths.is_empty() {
        true => None,
        false => Some(recorded(safe, cellar, &paths, lang)?),
    };
    let texts = |paths: &[PathBuf]| paths.iter().map(|path| text(path)).collect();
    match (args.json, &deleted) {
        (true, _) => ui.json(&WireRm {
            record: "rm",
            snapshot: deleted.as_ref().map(|(saved, _)| saved.id().to_string()),
            removed: deleted.as_ref().map_or_else(Vec::new, |(_, removal)| texts(&removal.gone)),
            entries: deleted.as_ref().map_or(0, |(_, removal)| removal.count),
            missing: texts(&missing),
        })?,
        (false, Some((saved, removal))) => ui.say(&in_words(saved, removal, lang))?,
        (false, None) => {}
    }
    Ok(ExitStatus::Success)
}

/// Deletes it as a call of its own, which stands in the timeline before anything is done.
fn recorded<'a>(
    safe: Safe<'a>,
    cellar: &Cellar,
    paths: &[PathBuf],
    lang: Lang,
) -> Result<(Protection<'a>, Removal), CommandError> {
    let words: Vec<String> = paths.iter().map(|path| text(path)).collect();
    let line = format!("unstuck rm {}", lines::quoted(&words));
    let call = Call::shell(&line);
    let terms = Terms {
        door: "rm",
        agent: "main".to_owned(),
        session: attempts::session("rm", None),
        retries: None,
        deadline: None,
        limit: None,
        tries_guesses: false,
        idempotent: false,
        aloud: Aloud::Nothing,
    };
    let cleaner = cellar.cleaner();
    let mut logbook = Logbook::new(cellar, &cleaner, &terms, lang);
    let key = logbook.key(1);
    logbook.asked(1, &call, cellar::now());
    let begun = Instant::now();
    let runs = Runs { call: &call, key: &key, session: &terms.session, label: &line, has_checks: false };
    let deleted = delete(safe, protect::origin(cellar, &runs, "rm"), paths, lang);
    let (outcome, code, complaint) = match &deleted {
        Ok(_) => (Outcome::Succeeded, 0, String::new()),
        Err(error) => (Outcome::ReportedFailure, 1, format!("unstuck: {error}")),
    };
    let observation = Observation {
        call,
        outcome,
        http_status: None,
        stdout: Vec::new(),
        stderr: complaint.into_bytes(),
        merged: Vec::new(),
    };
    let (rules, _what_is_wrong_with_them_changes_nothing_here) = knowledge::load_quietly();
    let tried = Tried {
        diagnosis: rules.diagnose(&observation),
        observation,
        took: begun.elapsed(),
        code,
        checks: Vec::new(),
        hindrance: None,
    };
    logbook.ended(&rules, 1, &tried, None, cellar::now());
    deleted
}

/// Saves it, and then deletes exactly what was saved. Where something of it stays, all of it does.
fn delete<'a>(
    safe: Safe<'a>,
    origin: Origin,
    paths: &[PathBuf],
    lang: Lang,
) -> Result<(Protection<'a>, Removal), CommandError> {
    let mut saved = save(safe, origin, paths, lang)?;
    let held: HashMap<PathBuf, Held> = saved.vault().held(saved.id(), None)?.into_iter().collect();
    let mut removal = Removal::default();
    for path in outermost(paths) {
        removal.of(path, &held);
    }
    if let Some((path, because)) = removal.left.first().cloned() {
        let why = match because {
            LeftBecause::CameSince => ProtectError::ChangedMeanwhile { path },
            LeftBecause::Refused(why) => ProtectError::MayNotGo { path, why },
        };
        return Err(saved.put_back(&removal.gone, why));
    }
    saved.conclude(lang)?;
    Ok((saved, removal))
}

/// What is meant by the paths, and what is not there. One that must not go stops all of them.
fn meant(
    safe: &Safe<'_>,
    cellar: &Cellar,
    args: &RmArgs,
) -> Result<(Vec<PathBuf>, Vec<PathBuf>), CommandError> {
    let ours = safe.around().map(|ours| fs::canonicalize(ours).unwrap_or_else(|_| ours.to_owned()));
    let project = whereabouts::project(cellar.home())?;
    let project = fs::canonicalize(&project).unwrap_or(project);
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for written in &args.paths {
        let path = named(written)?;
        if at_risk::is_wide(&path, cellar.home()) {
            return Err(ProtectError::TooWide { path }.into());
        }
        if ours.as_deref().is_some_and(|ours| whereabouts::touch(ours, &path)) {
            return Err(CommandError::OurOwn { path });
        }
        if project.starts_with(&path) {
            return Err(ProtectError::WorkTree { path }.into());
        }
        match fs::symlink_metadata(&path) {
            Ok(_) => found.push(path),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                match args.force {
                    true => missing.push(path),
                    false => return Err(CommandError::NoSuchPath { path }),
                }
            }
            Err(source) => return Err(CommandError::Unreadable { path, source }),
        }
    }
    Ok((found, missing))
}

/// A path as it was written, absolute. What would mean something else than its name is refused.
fn named(written: &Path) -> Result<PathBuf, CommandError> {
    let bytes = written.as_os_str().as_encoded_bytes();
    let last = bytes.split(|byte| *byte == b'/').rfind(|part| !part.is_empty());
    if matches!(last, Some(b"." | b"..")) {
        return Err(ProtectError::Dots { path: written.to_owned() }.into());
    }
    // Without its slash, which would lead through a link.
    let path = whereabouts::named(&written.components().collect::<PathBuf>())?;
    let is_link = fs::symlink_metadata(&path).is_ok_and(|about| about.is_symlink());
    match is_link && bytes.ends_with(b"/") {
        true => Err(ProtectError::LinkWithSlash { path: written.to_owned() }.into()),
        false => Ok(path),
    }
}

/// Saves all of it. Whatever is not held, for whatever reason, would be lost.
fn save<'a>(
    safe: Safe<'a>,
    origin: Origin,
    paths: &[PathBuf],
    lang: Lang,
) -> Result<Protection<'a>, CommandError> {
    let wish = Wish {
        scopes: paths.to_vec(),
        rebuildable: Rebuildable::Taken,
        never: safe.never(),
        origin,
        note: String::new(),
        reserve: safe.reserve(),
        now: SystemTime::now(),
    };
    let mut saved = Protection::take(lang, safe, &wish, Rollback::Never)?;
    saved.tell();
    let saved = saved.holding_all(|gap| gap.reason != GapReason::Special)?;
    let onlooker = Onlooker::new(lang);
    let since = saved.vault().differences(saved.id(), &[], &onlooker)?;
    onlooker.end();
    match since.into_iter().next() {
        None => Ok(saved),
        Some(first) => Err(saved.given_up(ProtectError::ChangedMeanwhile { path: first.path })),
    }
}

/// The paths that lie in no other one, each once.
fn outermost(paths: &[PathBuf]) -> Vec<&PathBuf> {
    let mut sorted: Vec<&PathBuf> = paths.iter().collect();
    sorted.sort();
    sorted.dedup_by(|later, earlier| later.starts_with(*earlier));
    sorted
}

fn in_words(saved: &Protection<'_>, removal: &Removal, lang: Lang) -> String {
    let (id, size) = (saved.id(), removed::size(saved.snapshot().bytes));
    match lang {
        Lang::En => {
            let paths = counted(removal.count, ["path", "paths"]);
            format!("deleted {paths}, {size} saved as {id}; bring it back: `unstuck undo {id}`\n")
        }
        Lang::Zh => {
            format!("已删除 {} 个路径，{size} 已保存为 {id}；恢复：`unstuck undo {id}`\n", removal.count)
        }
    }
}
