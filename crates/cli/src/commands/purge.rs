//! `unstuck purge`: what a person wants gone is gone, and cannot be read in the files any more.

use std::path::PathBuf;

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_store::{CopiesToo, NAME_MAX, Purge, Purged};

use crate::cellar::{self, Cellar};
use crate::exit::{CommandError, ExitStatus};
use crate::find_session::{find_session, session_named};
use crate::person;
use crate::plain;
use crate::progress::Progress;
use crate::removed::{self, WireRemoved};
use crate::since::{self, Moment};
use crate::ui::Ui;

/// Remove a session, or everything from before a moment, for good
///
/// Calls, their texts, events, the ladder, tool-errors files and counts of problems go; then the database is written anew and
/// its log emptied, so that nothing of it can be read in the files. Agents' hooks go on meanwhile. Killed half-way, run it again.
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
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &PurgeArgs) -> Result<ExitStatus, CommandError> {
    // What is purged is forgotten, refusals too.
    if !args.dry_run {
        person::must_not_be_an_agent()?;
    }
    // What waits in the spool is taken in first, so that it can be found and removed.
    let looked_up = cellar.to_read()?;
    let what = match (&args.session, args.before) {
        (Some(name), _) => {
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
        (None, moment) => Purge::Before(moment.map_or(0, |moment| moment.before(cellar::now()))),
    };
    let copies = if args.backups { CopiesToo::All } else { CopiesToo::IfOlder };
    let lang = ui.lang();
    let purged = match args.dry_run {
        true => looked_up.purgeable(&what, copies)?,
        false => {
            drop(looked_up);
            cellar.tend(&cellar.cleaner())?;
            let mut progress = Progress::new();
            cellar.to_write()?.purge(&what, copies, &mut |so_far| {
                progress.show(|| removed::in_words(so_far, lang));
            })?
        }
    };
    match args.json {
        true => ui.json(&WirePurged {
            dry_run: args.dry_run,
            removed: purged.rows.into(),
            tool_errors: purged.tool_errors,
            copies: &purged.copies,
            copies_left: &purged.copies_left,
            is_final: purged.is_final,
        })?,
        false => ui.say(&in_words(&purged, args.dry_run, lang))?,
    }
    Ok(if args.dry_run || purged.is_final { ExitStatus::Success } else { ExitStatus::No })
}

fn in_words(purged: &Purged, dry: bool, lang: Lang) -> String {
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
            Lang::En => "not final yet: another process still reads the log; run it again in a moment\n",
            Lang::Zh => "尚未完成：另一个进程仍在读取日志，请稍后再运行一次\n",
        });
    }
    text
}
