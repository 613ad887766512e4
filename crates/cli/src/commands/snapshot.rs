//! `unstuck snapshot`: saves files as they are now.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use unstuck_judge::Lang;
use unstuck_vault::{Coverage, Origin, Rebuildable, Snapshot, VaultError, Watch, Wish};

use crate::cellar::Cellar;
use crate::exit::{CommandError, ExitStatus};
use crate::made_up;
use crate::onlooker::Onlooker;
use crate::person;
use crate::removed::{self, counted};
use crate::safe::{Done, Safe};
use crate::snapshot_page::{self, WireSnapshot};
use crate::ui::Ui;
use crate::whereabouts;

/// Save files as they are now, to restore them later
///
/// Without PATH, the git work tree that holds the working folder, or that folder, is saved: ignored and untracked files and
/// `.git` too. Folders that a program can make again (target, node_modules, caches) are left out, and named. The id is
/// printed on standard output, what is not in it on standard error. Where something could not be saved, it exits with 1.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck snapshot                                   the project here
  unstuck snapshot src Cargo.toml --note 'before'    only these
  unstuck snapshot --pin --all                       with target/ and the like, kept until dropped
  id=$(unstuck snapshot)                             in a script; later: unstuck restore $id")]
pub(crate) struct SnapshotArgs {
    /// Files and folders to save
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Why it was taken
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Take folders that can be made again, too
    #[arg(long)]
    all: bool,
    /// Keep it until somebody removes it
    #[arg(long)]
    pin: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &SnapshotArgs) -> Result<ExitStatus, CommandError> {
    let SnapshotArgs { paths, note, all, pin, json } = args;
    let origin = by_hand();
    save(ui, cellar, scopes(cellar, paths)?, &Saving { note, origin, all: *all, pin: *pin, json: *json })
}

/// Who asks for a snapshot by a command.
pub(crate) fn by_hand() -> Origin {
    match person::must_not_be_an_agent() {
        Ok(()) => Origin::Person,
        Err(_) => Origin::Agent,
    }
}

/// How something is saved by hand.
pub(crate) struct Saving<'a> {
    /// Why.
    pub(crate) note: &'a str,
    /// For whom.
    pub(crate) origin: Origin,
    /// With folders that can be made again.
    pub(crate) all: bool,
    pub(crate) pin: bool,
    pub(crate) json: bool,
}

/// Saves these paths, and says so.
pub(crate) fn save(
    ui: &mut Ui,
    cellar: &Cellar,
    scopes: Vec<PathBuf>,
    saving: &Saving<'_>,
) -> Result<ExitStatus, CommandError> {
    let lang = ui.lang();
    let onlooker = Onlooker::new(lang);
    let links = links(&scopes, lang);
    let taken = taken(&Safe::of(cellar), scopes, saving, &onlooker);
    onlooker.end();
    let snapshot = taken?;
    match saving.json {
        true => ui.json(&WireSnapshot::new(&snapshot))?,
        false => {
            ui.say(&format!("{}\n", snapshot.id))?;
            ui.remark(&format!("{}{}", in_words(&snapshot, lang), snapshot_page::not_held(&snapshot, lang)))?;
            ui.remark(&links)?;
        }
    }
    match snapshot.coverage() {
        Coverage::Whole => Ok(ExitStatus::Success),
        Coverage::Partial => Ok(ExitStatus::No),
    }
}

/// Saves these paths, and tells the timeline of it.
pub(crate) fn taken(
    safe: &Safe<'_>,
    scopes: Vec<PathBuf>,
    saving: &Saving<'_>,
    watch: &dyn Watch,
) -> Result<Snapshot, CommandError> {
    if let Some((path, kind)) = scopes.iter().find_map(|path| Some((path, made_up::filesystem(path)?))) {
        return Err(CommandError::MadeUp { path: path.clone(), kind });
    }
    let vault = safe.open()?;
    let wish = Wish {
        scopes,
        rebuildable: if saving.all { Rebuildable::Taken } else { Rebuildable::LeftOut },
        never: safe.never(),
        origin: saving.origin.clone(),
        note: safe.clean(saving.note),
        reserve: safe.reserve(),
        now: SystemTime::now(),
    };
    let taken = safe.take(&vault, &wish, watch).map_err(CommandError::from);
    let mut snapshot = taken.inspect_err(|error| safe.note_failed(error))?;
    if saving.pin {
        snapshot = vault.pin(snapshot.id, true)?;
    }
    safe.finish(&vault, Some(Done::Taken(&snapshot)));
    Ok(snapshot)
}

/// What is meant by the paths. The whole disk and the whole home are never taken, nor what the home lies in.
pub(crate) fn scopes(cellar: &Cellar, paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let scopes: Vec<PathBuf> = match paths {
        [] => vec![whereabouts::project(cellar.home())?],
        paths => paths.iter().map(|path| whereabouts::named(path)).collect::<Result<_, _>>()?,
    };
    let home = cellar.home().map(|home| fs::canonicalize(home).unwrap_or_else(|_| home.to_owned()));
    for path in &scopes {
        if path == Path::new("/") || home.as_deref().is_some_and(|home| home.starts_with(path)) {
            return Err(VaultError::TooWide { path: path.clone() }.into());
        }
        if let Err(source) = fs::symlink_metadata(path) {
            let path = path.clone();
            return Err(match source.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                    CommandError::NoSuchPath { path }
                }
                _ => CommandError::Unreadable { path, source },
            });
        }
    }
    Ok(scopes)
}

fn in_words(snapshot: &Snapshot, lang: Lang) -> String {
    let (size, new) = (removed::size(snapshot.bytes), removed::size(snapshot.stored));
    match lang {
        Lang::En => {
            let paths = counted(snapshot.entries, ["path", "paths"]);
            format!("saved {paths}, {size} ({new} new); bring it back: `unstuck restore {}`\n", snapshot.id)
        }
        Lang::Zh => format!(
            "已保存 {} 个路径，{size}（新增 {new}）；恢复：`unstuck restore {}`\n",
            snapshot.entries, snapshot.id
        ),
    }
}

/// Whoever names a link may have meant what it leads to.
fn links(scopes: &[PathBuf], lang: Lang) -> String {
    let is_link = |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink());
    let told = scopes.iter().filter(is_link).map(|path| match lang {
        Lang::En => {
            format!("{} is a link: the link was saved, not what it leads to\n", snapshot_page::shown(path))
        }
        Lang::Zh => format!("{} 是链接：保存的是链接本身，而不是它指向的内容\n", snapshot_page::shown(path)),
    });
    told.collect()
}
