//! `unstuck snapshots`: what can be restored, whether it is whole, and how long it stays.

use std::path::{Path, PathBuf};

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_vault::{Checked, Collected, Held, SnapshotId, Vault};

use crate::cellar::{self, Cellar};
use crate::commands::restore::paths_in;
use crate::exit::{CommandError, ExitStatus};
use crate::onlooker::Onlooker;
use crate::person;
use crate::removed::{self, counted};
use crate::safe::{Safe, Why};
use crate::snapshot_page::{self, Named, WireSnapshot, escaped, parse_named, shown, text};
use crate::ui::Ui;
use crate::whereabouts::{self, Here};

/// How many damaged files are listed for people.
const LISTED: usize = 50;

/// Show what can be restored, the newest first
///
/// How long snapshots are kept: `unstuck config explain vault.per-target`, `vault.max-age`, `vault.max-size`. Pinned ones
/// stay. They hold your files as they are, secrets included, in a folder that only you can read.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  unstuck snapshots                   all of them: when, why, how large, what they cover
  unstuck snapshots --here --json     those that concern the project here, for a program
  unstuck snapshots check             read everything and compare it with what was written
  unstuck snapshots files s41 src     what it holds below src
  unstuck snapshots cat s41 a.rs      one file as it was
  unstuck snapshots pin s41           keep it until it is dropped
  unstuck snapshots drop s40 s41      remove them for good"
)]
pub(crate) struct SnapshotsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Only those that concern the project here
    #[arg(long)]
    here: bool,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Read everything that snapshots need, and compare it with what was written
    Check {
        /// Only this one: s41, 41 or latest
        #[arg(value_name = "ID", value_parser = parse_named)]
        id: Option<Named>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// List what a snapshot holds
    Files {
        /// s41, 41 or latest
        #[arg(value_name = "ID", value_parser = parse_named)]
        id: Named,
        /// Only what is at this path or below it
        #[arg(value_name = "PATH")]
        path: Option<PathBuf>,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Print a file exactly as a snapshot holds it; of a link, what it leads to
    Cat {
        /// s41, 41 or latest
        #[arg(value_name = "ID", value_parser = parse_named)]
        id: Named,
        /// The file
        #[arg(value_name = "PATH")]
        path: PathBuf,
    },
    /// Keep a snapshot until somebody removes it
    Pin {
        /// s41, 41 or latest
        #[arg(value_name = "ID", value_parser = parse_named)]
        id: Named,
        /// No longer keep it for ever; not for agents
        #[arg(long)]
        off: bool,
        /// The snapshot as it stands then, as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Remove snapshots for good, pinned ones too; not for agents
    Drop {
        /// s41, 41 or latest
        #[arg(value_name = "ID", value_parser = parse_named, required = true)]
        ids: Vec<Named>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Serialize)]
struct WireChecked {
    snapshots: Vec<String>,
    contents: u64,
    bytes: u64,
    sound: bool,
    damages: Vec<WireDamage>,
}

#[derive(Serialize)]
struct WireDamage {
    snapshot: String,
    path: String,
    file: String,
}

/// What is held at one path, exactly as it is printed.
#[derive(Serialize)]
struct WireHeld {
    #[serde(rename = "type")]
    record: &'static str,
    path: String,
    kind: &'static str,
    bytes: Option<u64>,
}

#[derive(Serialize)]
struct WireDropped {
    dropped: Vec<String>,
    bytes_before: u64,
    bytes_after: u64,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &SnapshotsArgs) -> Result<ExitStatus, CommandError> {
    let safe = Safe::of(cellar);
    match &args.action {
        None => list(ui, cellar, &safe.existing()?, args),
        Some(Action::Check { id, json }) => check(ui, &safe.existing()?, *id, *json),
        Some(Action::Files { id, path, json }) => files(ui, &safe.existing()?, *id, path.as_deref(), *json),
        Some(Action::Cat { id, path }) => cat(ui, &safe.existing()?, *id, path),
        Some(Action::Pin { id, off, json }) => {
            // What is no longer pinned may expire at once.
            if *off {
                person::must_not_be_an_agent()?;
            }
            pin(ui, &safe.at_work()?, *id, !off, *json)
        }
        Some(Action::Drop { ids, json }) => {
            person::must_not_be_an_agent()?;
            drop_them(ui, &safe, ids, *json)
        }
    }
}

fn list(
    ui: &mut Ui,
    cellar: &Cellar,
    vault: &Vault,
    args: &SnapshotsArgs,
) -> Result<ExitStatus, CommandError> {
    let mut snapshots = vault.snapshots()?;
    if args.here {
        let here = Here::new(cellar.home())?;
        snapshots.retain(|snapshot| here.is_concerned_by(snapshot));
    }
    snapshots.reverse();
    let lang = ui.lang();
    ui.remark(&snapshot_page::amiss(vault, lang)?)?;
    if args.json {
        snapshots.iter().try_for_each(|snapshot| ui.json(&WireSnapshot::new(snapshot)))?;
        return Ok(ExitStatus::Success);
    }
    if snapshots.is_empty() {
        ui.say(match (args.here, lang) {
            (false, Lang::En) => "no snapshots\n",
            (false, Lang::Zh) => "没有快照\n",
            (true, Lang::En) => "no snapshots of what is here\n",
            (true, Lang::Zh) => "没有关于此处的快照\n",
        })?;
        return Ok(ExitStatus::Success);
    }
    ui.say(&snapshot_page::table(snapshots.iter(), cellar.home(), cellar::now(), lang))?;
    let size = removed::size(vault.size()?);
    let count = snapshots.len() as u64;
    ui.say(&match (args.here, lang) {
        (true, _) => String::new(),
        (false, Lang::En) => format!("{}, {size} in the safe\n", counted(count, ["snapshot", "snapshots"])),
        (false, Lang::Zh) => format!("{count} 个快照，保险库共 {size}\n"),
    })?;
    Ok(ExitStatus::Success)
}

fn files(
    ui: &mut Ui,
    vault: &Vault,
    id: Named,
    path: Option<&Path>,
    json: bool,
) -> Result<ExitStatus, CommandError> {
    let snapshot = id.find(vault)?;
    let paths: Vec<PathBuf> = path.map(Path::to_owned).into_iter().collect();
    let paths = paths_in(vault, &snapshot, &paths)?;
    for (path, held) in vault.held(snapshot.id, paths.first().map(PathBuf::as_path))? {
        let (kind, bytes, mark) = match held {
            Held::File { size } => ("file", Some(size), ""),
            Held::Folder => ("folder", None, "/"),
            Held::Link => ("link", None, "@"),
            Held::Special => ("special", None, "="),
            Held::Not => ("not_held", None, "?"),
        };
        match json {
            true => ui.json(&WireHeld { record: "held", path: text(&path), kind, bytes })?,
            false => {
                let size = bytes.map(removed::size).unwrap_or_default();
                ui.say(&format!("{size:>9}  {}{mark}\n", escaped(&path)))?;
            }
        }
    }
    Ok(ExitStatus::Success)
}

fn cat(ui: &mut Ui, vault: &Vault, id: Named, path: &Path) -> Result<ExitStatus, CommandError> {
    let (id, path) = (id.find(vault)?.id, whereabouts::named(path)?);
    match vault.content(id, &path, usize::MAX)? {
        Some(content) => ui.exactly(&content)?,
        None => return Err(CommandError::NoFileHeld { id, path }),
    }
    Ok(ExitStatus::Success)
}

fn check(ui: &mut Ui, vault: &Vault, id: Option<Named>, json: bool) -> Result<ExitStatus, CommandError> {
    let ids = id.map(|id| id.find(vault)).transpose()?.map(|snapshot| snapshot.id);
    let onlooker = Onlooker::new(ui.lang());
    let checked = vault.check(ids.as_slice(), &onlooker)?;
    onlooker.end();
    match json {
        true => ui.json(&WireChecked {
            snapshots: checked.snapshots.iter().map(ToString::to_string).collect(),
            contents: checked.contents,
            bytes: checked.bytes,
            sound: checked.damages.is_empty(),
            damages: checked
                .damages
                .iter()
                .map(|damage| WireDamage {
                    snapshot: damage.snapshot.to_string(),
                    path: text(&damage.path),
                    file: text(&damage.file),
                })
                .collect(),
        })?,
        false => ui.say(&checked_in_words(&checked, ui.lang()))?,
    }
    Ok(if checked.damages.is_empty() { ExitStatus::Success } else { ExitStatus::Unwell })
}

fn checked_in_words(checked: &Checked, lang: Lang) -> String {
    let (count, contents, size) =
        (checked.snapshots.len() as u64, checked.contents, removed::size(checked.bytes));
    let mut text = match lang {
        Lang::En => format!(
            "checked {}: {} read and hashed, {size}\n",
            counted(count, ["snapshot", "snapshots"]),
            counted(contents, ["content", "contents"])
        ),
        Lang::Zh => format!("已检查 {count} 个快照：读取并校验 {contents} 份内容，{size}\n"),
    };
    if checked.damages.is_empty() {
        text += match lang {
            Lang::En => "everything is as it was written\n",
            Lang::Zh => "一切完好\n",
        };
        return text;
    }
    text += match lang {
        Lang::En => "damaged, and lost in these snapshots; everything else can be restored:\n",
        Lang::Zh => "以下内容已损坏，无法从相应快照恢复；其余均可恢复：\n",
    };
    for damage in checked.damages.iter().take(LISTED) {
        text += &format!("  {}  {}  ({})\n", damage.snapshot, shown(&damage.path), shown(&damage.file));
    }
    text += &match (checked.damages.len().saturating_sub(LISTED), lang) {
        (0, _) => String::new(),
        (more, Lang::En) => format!("  and {more} more\n"),
        (more, Lang::Zh) => format!("  另有 {more} 个\n"),
    };
    text
}

fn pin(ui: &mut Ui, vault: &Vault, id: Named, pinned: bool, json: bool) -> Result<ExitStatus, CommandError> {
    let snapshot = vault.pin(id.find(vault)?.id, pinned)?;
    let id = snapshot.id;
    match (json, pinned, ui.lang()) {
        (true, _, _) => ui.json(&WireSnapshot::new(&snapshot))?,
        (false, true, Lang::En) => ui.say(&format!("{id} stays until it is dropped\n"))?,
        (false, true, Lang::Zh) => ui.say(&format!("{id} 将一直保留，直到被删除\n"))?,
        (false, false, Lang::En) => ui.say(&format!("{id} is kept like any other\n"))?,
        (false, false, Lang::Zh) => ui.say(&format!("{id} 不再固定\n"))?,
    }
    Ok(ExitStatus::Success)
}

fn drop_them(ui: &mut Ui, safe: &Safe<'_>, ids: &[Named], json: bool) -> Result<ExitStatus, CommandError> {
    let vault = safe.at_work()?;
    let ids = ids.iter().map(|id| id.id(&vault)).collect::<Result<Vec<SnapshotId>, _>>()?;
    let onlooker = Onlooker::new(ui.lang());
    let Collected { snapshots, gone, before, after, .. } = vault.remove(&ids, &onlooker)?;
    onlooker.end();
    safe.note_removed(&gone, Why::Drop);
    let dropped: Vec<String> = snapshots.iter().map(ToString::to_string).collect();
    let names = dropped.join(", ");
    let (from, to) = (removed::size(before), removed::size(after));
    match (json, ui.lang()) {
        (true, _) => ui.json(&WireDropped { dropped, bytes_before: before, bytes_after: after })?,
        (false, Lang::En) => ui.say(&format!("removed {names}; the safe: {from} → {to}\n"))?,
        (false, Lang::Zh) => ui.say(&format!("已删除 {names}；保险库：{from} → {to}\n"))?,
    }
    Ok(ExitStatus::Success)
}
