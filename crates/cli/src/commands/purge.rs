//! `unstuck purge`: what a person wants gone is gone, and cannot be read in the files any more.

use std::path::PathBuf;

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_store::{CopiesToo, NAME_MAX, Purge, Purged, StoreError};
use unstuck_vault::{Origin, Snapshot, SnapshotId};

use crate::cellar::{self, Cellar};
use crate::exit::{CommandError, ExitStatus};
use crate::find_session::{find_session, session_named};
use crate::onlooker::Onlooker;
use crate::person;
use crate::plain;
use crate::progress::Progress;
use crate::removed::{self, WireRemoved};
use crate::safe::{Safe, Why};
use crate::since::{self, Moment};
use crate::snapshot_page;
use crate::ui::Ui;

/// Remove a session, or everything from before a moment, for good
///
/// Calls, their texts, events, the ladder, tool-errors files and counts of problems go; then the database is written anew and
/// its log emptied, so that nothing of it can be read in the files. Snapshots that were taken for the session or before the
/// moment go as well, pinned ones too. Agents' hooks go on meanwhile. Killed half-way, run it again.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck purge --session 3f9c2b --dry-run     what would be removed
  unstuck purge --session 3f9c2b --backups     the session, and copies of the database that may hold it
  unstuck purge --before 30d                   everything older than 30 days
  unstuck purge --before 2026-11-01            everything from before that day (UTC)")]
#[command(group = clap::ArgGroup::new("which").required(true).args(["session", "before"]))]
pub(crate) struct PurgeArgs {
    /// This session, by its full name
    #[arg(long, value_name = "S")]
    session: Option<String>,
    /// Everything from before this moment: 30d, 2026-11-15, 2026-11-15T11:53:02Z
    #[arg(long, value_name = "SPAN|DATE", value_parser = since::parse_moment)]
    before: Option<Moment>,
    /// Also remove all copies of the database (backups, damaged ones, unreadable lines)
    #[arg(long)]
    backups: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct WirePurged<'a> {
    dry_run: bool,
    removed: WireRemoved,
    tool_errors: u64,
    copies: &'a [PathBuf],
    copies_left: &'a [PathBuf],
    #[serde(rename = "final")]
    is_final: bool,
    snapshots: Vec<String>,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &PurgeArgs) -> Result<ExitStatus, CommandError> {
    // What is purged is forgotten, refusals too.
    if !args.dry_run {
        person::must_not_be_an_agent()?;
    }
    let lang = ui.lang();
    let before = args.before.map(|moment| moment.before(cellar::now()));
    let snapshots = snapshots(cellar, args.session.as_deref(), before)?;
    let mut purged = match timeline(cellar, args, before, lang) {
        // There may be snapshots and no timeline, or of a session that the timeline has forgotten.
        Err(CommandError::Store(StoreError::Missing { .. }) | CommandError::NoSuchSession { .. })
            if !snapshots.is_empty() =>
        {
            Purged { is_final: true, ..Purged::default() }
        }
        purged => purged?,
    };
    if !args.dry_run && !snapshots.is_empty() {
        let safe = Safe::of(cellar);
        let onlooker = Onlooker::new(lang);
        let collected = safe.at_work()?.remove(&snapshots, &onlooker)?;
        onlooker.end();
        purged.is_final &= !collected.left_busy && collected.blocked_by.is_empty();
        ui.remark(&snapshot_page::blocked(&collected.blocked_by, lang))?;
        safe.note_removed(&collected.gone, Why::Purge);
    }
    match args.json {
        true => ui.json(&WirePurged {
            dry_run: args.dry_run,
            removed: purged.rows.into(),
            tool_errors: purged.tool_errors,
            copies: &purged.copies,
            copies_left: &purged.copies_left,
            is_final: purged.is_final,
            snapshots: snapshots.iter().map(ToString::to_string).collect(),
        })?,
        false => ui.say(&in_words(&purged, snapshots.len() as u64, args.dry_run, lang))?,
    }
    Ok(if args.dry_run || purged.is_final { ExitStatus::Success } else { ExitStatus::No })
}

/// Removes it from the timeline, or says what would be.
fn timeline(
    cellar: &Cellar,
    args: &PurgeArgs,
    before: Option<u64>,
    lang: Lang,
) -> Result<Purged, CommandError> {
    // What waits in the spool is taken in first, so that it can be found and removed.
    let looked_up = cellar.to_read()?;
    let what = match &args.session {
        Some(name) => {
            let cleaner = cellar.cleaner();
            match session_named(&looked_up, &cleaner, name)? {
                Some(session) => Purge::Session(session.name),
                None if looked_up.has_unfinished_purge()? => {
                    Purge::Session(cleaner.name(name, NAME_MAX).into_string())
                }
                None => {
                    // A beginning that fits is a good hint, but not enough to destroy something.
                    let found = find_session(&looked_up, &cleaner, name)?;
                    let nearest = Some(found.name);
                    return Err(CommandError::NoSuchSession { name: name.clone(), nearest });
                }
            }
        }
        None => Purge::Before(before.unwrap_or(0)),
    };
    let copies = if args.backups { CopiesToo::All } else { CopiesToo::IfOlder };
    if args.dry_run {
        return Ok(looked_up.purgeable(&what, copies)?);
    }
    drop(looked_up);
    cellar.tend(&cellar.cleaner())?;
    let mut progress = Progress::new();
    Ok(cellar.to_write()?.purge(&what, copies, &mut |so_far| {
        progress.show(|| removed::in_words(so_far, lang));
    })?)
}

/// The snapshots that go: those of the session or from before the moment, and what was saved when one of them was restored.
fn snapshots(
    cellar: &Cellar,
    session: Option<&str>,
    before: Option<u64>,
) -> Result<Vec<SnapshotId>, CommandError> {
    let Some(vault) = Safe::of(cellar).if_there()? else { return Ok(Vec::new()) };
    let cleaned = session.map(|name| cellar.cleaner().name(name, NAME_MAX));
    let is_named = |snapshot: &Snapshot| match (&snapshot.origin, session, &cleaned) {
        (Origin::Call { session: own, .. }, Some(name), Some(cleaned)) => own == name || **own == **cleaned,
        (_, _, _) => false,
    };
    let mut gone: Vec<SnapshotId> = Vec::new();
    for snapshot in &vault.snapshots()? {
        let is_old = before.is_some_and(|before| snapshot_page::millis(snapshot.at) < before);
        let is_of_gone = match snapshot.origin {
            Origin::Restore { of } => gone.contains(&of),
            Origin::Person | Origin::Agent | Origin::Call { .. } => false,
        };
        if is_named(snapshot) || is_old || is_of_gone {
            gone.push(snapshot.id);
        }
    }
    Ok(gone)
}

fn in_words(purged: &Purged, snapshots: u64, dry: bool, lang: Lang) -> String {
    let rows = removed::in_words(&purged.rows, lang);
    let mut text = match (dry, lang) {
        (true, Lang::En) => format!("would remove: {rows}\n"),
        (true, Lang::Zh) => format!("将删除：{rows}\n"),
        (false, Lang::En) => format!("removed: {rows}\n"),
        (false, Lang::Zh) => format!("已删除：{rows}\n"),
    };
    let files = purged.tool_errors;
    if files > 0 {
        text.push_str(&match lang {
            Lang::En => {
                format!("and {}\n", removed::counted(files, ["tool-errors file", "tool-errors files"]))
            }
            Lang::Zh => format!("以及 {files} 个 tool-errors 文件\n"),
        });
    }
    if snapshots > 0 {
        text.push_str(&match lang {
            Lang::En => format!("and {}\n", removed::counted(snapshots, ["snapshot", "snapshots"])),
            Lang::Zh => format!("以及 {snapshots} 个快照\n"),
        });
    }
    let mut list = |paths: &[PathBuf], en: &str, zh: &str| {
        if !paths.is_empty() {
            text.push_str(match lang {
                Lang::En => en,
                Lang::Zh => zh,
            });
            for path in paths {
                text.push_str(&format!("  {}\n", plain::line(&path.to_string_lossy())));
            }
        }
    };
    list(&purged.copies, "and these copies:\n", "以及这些副本：\n");
    list(
        &purged.copies_left,
        "these copies stay and may still hold it (`--backups` removes them):\n",
        "以下副本保留，其中可能仍有相关内容（`--backups` 可删除）：\n",
    );
    if !dry && !purged.is_final {
        text.push_str(match lang {
            Lang::En => {
                "not final yet: another process still reads the log or the safe; run it again in a moment\n"
            }
            Lang::Zh => "尚未完成：另一个进程仍在读取日志，请稍后再运行一次\n",
        });
    }
    text
}
