//! `unstuck gc`: brings the store back into its bounds, all at once, and gives the space back.

use std::path::PathBuf;

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_store::{Removed, Size};

use crate::cellar::{self, Cellar};
use crate::exit::{CommandError, ExitStatus};
use crate::plain;
use crate::progress::Progress;
use crate::removed::{self, WireRemoved};
use crate::ui::Ui;

/// Remove what is older than it is kept, give space back, and check the database
///
/// What is kept how long: `unstuck config explain store.keep-events`, `store.keep-calls`, `store.max-size`. The heartbeat does
/// the same in small steps; this does all of it now.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck gc                                   tidy up
  unstuck gc --dry-run                         what would go for its age
  unstuck gc --set store.keep-events=7d        with a shorter limit, this time only")]
pub(crate) struct GcArgs {
    /// Only say what would be removed for its age
    #[arg(long)]
    dry_run: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct WireGc<'a> {
    dry_run: bool,
    taken: u64,
    sealed: u64,
    removed: WireRemoved,
    copies: &'a [PathBuf],
    bytes_before: u64,
    bytes_after: u64,
    /// Nothing where it was not looked at.
    sound: Option<bool>,
}

#[derive(Debug, Default)]
struct Collected {
    taken: u64,
    sealed: u64,
    removed: Removed,
    copies: Vec<PathBuf>,
    before: u64,
    after: u64,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &GcArgs) -> Result<ExitStatus, CommandError> {
    let lang = ui.lang();
    let collected = match args.dry_run {
        true => would(cellar)?,
        false => collect(cellar, lang)?,
    };
    match args.json {
        true => ui.json(&WireGc {
            dry_run: args.dry_run,
            taken: collected.taken,
            sealed: collected.sealed,
            removed: collected.removed.into(),
            copies: &collected.copies,
            bytes_before: collected.before,
            bytes_after: collected.after,
            sound: (!args.dry_run).then_some(true),
        })?,
        false => ui.say(&in_words(&collected, args.dry_run, lang))?,
    }
    Ok(ExitStatus::Success)
}

fn would(cellar: &Cellar) -> Result<Collected, CommandError> {
    let store = cellar.to_read()?;
    let (retention, now) = (cellar.retention(), cellar::now());
    let size = bytes(store.size()?);
    Ok(Collected {
        removed: store.expirable(&retention, now)?,
        copies: store.expirable_copies(&retention, now)?,
        before: size,
        after: size,
        ..Collected::default()
    })
}

fn collect(cellar: &Cellar, lang: Lang) -> Result<Collected, CommandError> {
    let tended = cellar.tend(&cellar.cleaner())?;
    let mut store = cellar.to_write()?;
    let before = bytes(store.size()?);
    let (retention, now) = (cellar.retention(), cellar::now());
    let mut progress = Progress::new();
    let mut goes_on = |so_far: &Removed| {
        progress.show(|| removed::in_words(so_far, lang));
        true
    };
    if store.has_unfinished_purge()? {
        store.finish_purge()?;
    }
    let mut removed = store.expire(&retention, now, &mut goes_on)?;
    removed += store.cap_standing(retention.standing_rows, &mut goes_on)?;
    let copies = store.expire_copies(&retention, now)?;
    store.sweep_spool();
    store.sweep_tool_errors()?;
    let mut still_free = || {
        progress.show(|| match lang {
            Lang::En => "giving space back".to_owned(),
            Lang::Zh => "正在归还空间".to_owned(),
        });
        true
    };
    store.give_back(&mut still_free)?;
    store.fold_all()?;
    store.check()?;
    progress.end();
    Ok(Collected {
        taken: tended.taken,
        sealed: tended.sealed.len() as u64,
        removed,
        copies,
        before,
        after: bytes(store.size()?),
    })
}

fn bytes(size: Size) -> u64 {
    size.database + size.log + size.spool
}

fn in_words(collected: &Collected, dry: bool, lang: Lang) -> String {
    let rows = removed::in_words(&collected.removed, lang);
    let (before, after) = (removed::size(collected.before), removed::size(collected.after));
    let mut text = match (dry, lang) {
        (true, Lang::En) => format!("would remove: {rows}\n"),
        (true, Lang::Zh) => format!("将删除：{rows}\n"),
        (false, Lang::En) => format!("removed: {rows}\n"),
        (false, Lang::Zh) => format!("已删除：{rows}\n"),
    };
    for path in &collected.copies {
        text.push_str(&format!("  {}\n", plain::line(&path.to_string_lossy())));
    }
    text.push_str(&match (dry, lang) {
        (true, Lang::En) => format!("size: {before}\n"),
        (true, Lang::Zh) => format!("大小：{before}\n"),
        (false, Lang::En) => format!("size: {before} → {after}; the database is sound\n"),
        (false, Lang::Zh) => format!("大小：{before} → {after}；数据库完好\n"),
    });
    text
}
