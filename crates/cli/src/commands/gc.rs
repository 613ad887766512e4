//! `unstuck gc`: brings the store back into its bounds, all at once, and gives the space back.

use std::path::PathBuf;
use std::time::SystemTime;

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_store::{Examined, Removed, Size, StoreError};

use crate::cellar::{self, Cellar};
use crate::commands::recover::examined_in_words;
use crate::exit::{CommandError, ExitStatus};
use crate::onlooker::Onlooker;
use crate::plain;
use crate::progress::Progress;
use crate::removed::{self, WireRemoved};
use crate::safe::{Safe, Why};
use crate::settings::Layer;
use crate::snapshot_page;
use crate::ui::Ui;

/// Remove what is older than it is kept, give space back, and check the database
///
/// What is kept how long: `unstuck config explain store.keep-events`, `store.keep-calls`, `store.max-size`; for snapshots
/// `vault.per-target`, `vault.max-age`, `vault.max-size`. The heartbeat does the same in small steps; this does all of it now.
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
    damaged_rows: Option<u64>,
    /// Nothing where no snapshot has been taken yet.
    vault: Option<WireVault>,
}

#[derive(Serialize)]
struct WireVault {
    removed: Vec<String>,
    bytes_before: u64,
    bytes_after: u64,
    left_busy: bool,
    blocked_by: Vec<String>,
}

#[derive(Debug, Default)]
struct Collected {
    taken: u64,
    sealed: u64,
    removed: Removed,
    copies: Vec<PathBuf>,
    before: u64,
    after: u64,
    /// Nothing where it was not looked at.
    examined: Option<Examined>,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &GcArgs) -> Result<ExitStatus, CommandError> {
    let lang = ui.lang();
    if !args.dry_run {
        Safe::of(cellar).must_keep_to_its_limits(Layer::Environment)?;
    }
    let snapshots = snapshots(cellar, args.dry_run, lang)?;
    let collected = match args.dry_run {
        true => would(cellar),
        false => collect(cellar, lang),
    };
    let (collected, is_recorded) = match collected {
        // There may be snapshots and no timeline.
        Err(CommandError::Store(StoreError::Missing { .. })) if snapshots.is_some() => {
            (Collected::default(), false)
        }
        collected => (collected?, true),
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
            sound: collected.examined.as_ref().map(Examined::is_sound),
            damaged_rows: collected.examined.as_ref().map(|examined| examined.damaged),
            vault: snapshots.as_ref().map(|vault| WireVault {
                removed: vault.snapshots.iter().map(ToString::to_string).collect(),
                bytes_before: vault.before,
                bytes_after: vault.after,
                left_busy: vault.left_busy,
                blocked_by: vault.blocked_by.iter().map(ToString::to_string).collect(),
            }),
        })?,
        false => {
            if is_recorded {
                ui.say(&in_words(&collected, args.dry_run, lang))?;
            }
            if let Some(vault) = &snapshots {
                ui.say(&vault_in_words(vault, args.dry_run, lang))?;
            }
        }
    }
    Ok(ExitStatus::Success)
}

/// Brings the safe back into its bounds, where there is one.
fn snapshots(
    cellar: &Cellar,
    dry_run: bool,
    lang: Lang,
) -> Result<Option<unstuck_vault::Collected>, CommandError> {
    let safe = Safe::of(cellar);
    let Some(vault) = safe.if_there()? else { return Ok(None) };
    let (retention, now) = (safe.retention(), SystemTime::now());
    if dry_run {
        let (snapshots, size) = (vault.expired(&retention, now)?, vault.size()?);
        return Ok(Some(unstuck_vault::Collected {
            snapshots,
            before: size,
            after: size,
            ..unstuck_vault::Collected::default()
        }));
    }
    let onlooker = Onlooker::new(lang);
    let collected = safe.open()?.collect(&retention, now, &onlooker)?;
    onlooker.end();
    safe.note_removed(&collected.gone, Why::Expired);
    Ok(Some(collected))
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
    let examined = store.examine(&mut |examined| {
        progress.show(|| examined_in_words(examined, lang));
    })?;
    progress.end();
    if let Some(why) = examined.structure.first() {
        return Err(StoreError::Damaged { path: store.root().timeline(), why: why.clone() }.into());
    }
    Ok(Collected {
        examined: Some(examined),
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
        (false, Lang::En) => format!("size: {before} → {after}; {}\n", verdict(collected, lang)),
        (false, Lang::Zh) => format!("大小：{before} → {after}；{}\n", verdict(collected, lang)),
    });
    text
}

/// Is the database as it should be?
fn verdict(collected: &Collected, lang: Lang) -> String {
    let Some(examined) = &collected.examined else { return String::new() };
    match (examined.is_readable(), examined.is_sound(), lang) {
        (true, true, Lang::En) => "the database is sound".to_owned(),
        (true, true, Lang::Zh) => "数据库完好".to_owned(),
        (true, false, Lang::En) => "the chain of events is broken (`unstuck doctor`)".to_owned(),
        (true, false, Lang::Zh) => "事件链已断开（`unstuck doctor`）".to_owned(),
        (false, _, Lang::En) => {
            let rows = removed::counted(examined.damaged, ["row", "rows"]);
            format!("{rows} cannot be read whole (`unstuck recover`)")
        }
        (false, _, Lang::Zh) => format!("有 {} 行无法完整读取（`unstuck recover`）", examined.damaged),
    }
}

fn vault_in_words(vault: &unstuck_vault::Collected, dry: bool, lang: Lang) -> String {
    let gone = vault.snapshots.len() as u64;
    let names: Vec<String> = vault.snapshots.iter().map(ToString::to_string).collect();
    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    let (before, after) = (removed::size(vault.before), removed::size(vault.after));
    let count = removed::counted(gone, ["snapshot", "snapshots"]);
    let mut text = match (dry, lang) {
        (true, Lang::En) => format!("the safe: would remove {count}{names}; size: {before}\n"),
        (true, Lang::Zh) => format!("保险库：将删除 {gone} 个快照{names}；大小：{before}\n"),
        (false, Lang::En) => format!("the safe: removed {count}{names}; size: {before} → {after}\n"),
        (false, Lang::Zh) => format!("保险库：已删除 {gone} 个快照{names}；大小：{before} → {after}\n"),
    };
    if vault.left_busy {
        text += match lang {
            Lang::En => "another process is at work in the safe: run it again to give the rest back\n",
            Lang::Zh => "另一个进程正在使用保险库：请再运行一次以归还其余空间\n",
        };
    }
    text + &snapshot_page::blocked(&vault.blocked_by, lang)
}
