//! `unstuck recover`: brings back what can be read of databases that were damaged.

use std::path::{Path, PathBuf};

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_store::{
    Examined, Filesystem, RecoverHow, Recovered, Root, Store, StoreError, is_damaged, put_aside,
};

use crate::cellar::{self, Cellar, PATIENCE};
use crate::exit::{CommandError, ExitStatus};
use crate::person;
use crate::plain;
use crate::progress::Progress;
use crate::removed::counted;
use crate::ui::Ui;

/// Bring back what can be read of a damaged database, into the one that is in use
///
/// Reads the database in use to its last row. Where something in it is damaged, it is moved to `damaged/` as it is, and a new one
/// takes its place. Then everything that can still be read of it, and of what was set aside earlier, is added to the new one, and
/// the spool is taken in. What is there already is not added twice and never replaced by something older; the damaged files are
/// only read and stay where they are. Run it as often as you like.
///
/// Lessons count as before only where a person vouches for the source: at a terminal, or with --yes. Otherwise they come back
/// like imported ones, and what was allowed with `unstuck allow` does not.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck recover --dry-run          what would come back
  unstuck recover                    the database in use, and all that was set aside and not recovered yet
  unstuck recover old/timeline.db    from this database, for example of a backup")]
pub(crate) struct RecoverArgs {
    /// Databases to read, or their folders (default: those that were set aside and are not recovered yet)
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only say what would come back
    #[arg(long)]
    dry_run: bool,
    /// Vouch for what is recovered, where nobody sits at a terminal
    #[arg(long)]
    yes: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct WireRecovery<'a> {
    dry_run: bool,
    /// The database in use was damaged.
    damaged: bool,
    set_aside: Option<&'a Path>,
    vouched: bool,
    databases: Vec<WireRecovered<'a>>,
    spool: u64,
}

#[derive(Serialize)]
struct WireRecovered<'a> {
    path: &'a Path,
    sessions: u64,
    calls: u64,
    events: u64,
    lessons: u64,
    problems: u64,
    others: u64,
    known: u64,
    mended: u64,
    lost: u64,
    unproven: u64,
    withheld: u64,
}

/// What was done.
struct Recovery {
    is_damaged: bool,
    set_aside: Option<PathBuf>,
    databases: Vec<(PathBuf, Recovered)>,
    /// How many entries of the spool were taken in.
    spool: u64,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &RecoverArgs) -> Result<ExitStatus, CommandError> {
    if args.yes {
        person::must_not_be_an_agent()?;
    }
    let is_vouched = person::must_be_there(args.yes).is_ok();
    let recovery = recover(cellar, args, is_vouched, ui.lang())?;
    match args.json {
        true => ui.json(&WireRecovery {
            dry_run: args.dry_run,
            damaged: recovery.is_damaged,
            set_aside: recovery.set_aside.as_deref(),
            vouched: is_vouched,
            databases: recovery.databases.iter().map(wire).collect(),
            spool: recovery.spool,
        })?,
        false => ui.say(&in_words(&recovery, args.dry_run, ui.lang()))?,
    }
    Ok(ExitStatus::Success)
}

fn recover(
    cellar: &Cellar,
    args: &RecoverArgs,
    is_vouched: bool,
    lang: Lang,
) -> Result<Recovery, CommandError> {
    let mut named = args.paths.iter().map(|path| database_at(path)).collect::<Result<Vec<_>, _>>()?;
    let root = match named.is_empty() {
        true => cellar.root()?,
        false => cellar.make_root()?,
    };
    if let Filesystem::Network { name } = root.filesystem() {
        let path = root.path().to_owned();
        return Err(StoreError::Network { path, filesystem: name.clone() }.into());
    }
    let now = cellar::now();
    let mut progress = Progress::new();
    let is_damaged = is_damaged(&root, PATIENCE, now, &mut |examined| {
        progress.show(|| examined_in_words(examined, lang));
    })?;
    // The database in use is no source for itself.
    named.retain(|path| path.canonicalize().ok() != root.timeline().canonicalize().ok());
    let set_aside = match is_damaged && !args.dry_run {
        true => Some(put_aside(&root, PATIENCE, now)?),
        false => None,
    };
    let mut store = match (args.dry_run, is_damaged || !root.timeline().exists()) {
        (true, true) => cellar.spooled_only()?,
        (true, false) => Store::to_read(&root, PATIENCE, now)?,
        (false, _) => cellar.to_write()?,
    };
    // The newest first: into an empty timeline it comes back under its own numbers.
    let mut sources: Vec<PathBuf> = match args.dry_run && is_damaged {
        true => vec![root.timeline()],
        false => set_aside.iter().cloned().collect(),
    };
    let others = if named.is_empty() { unrecovered(&store, &root)? } else { named };
    sources.extend(others.into_iter().filter(|path| Some(path) != set_aside.as_ref()));
    let how = RecoverHow { dry_run: args.dry_run, with_approvals: is_vouched, now };
    let mut databases = Vec::new();
    for path in sources {
        let recovered = store.recover(&path, how, &mut |so_far| {
            progress.show(|| match lang {
                Lang::En => format!("recovering {}: {} so far", path.display(), so_far.total()),
                Lang::Zh => format!("正在恢复 {}：目前 {} 条", path.display(), so_far.total()),
            });
        })?;
        databases.push((path, recovered));
    }
    drop(store);
    let spool = if args.dry_run { 0 } else { cellar.tend(&cellar.cleaner())?.taken };
    progress.end();
    Ok(Recovery { is_damaged, set_aside, databases, spool })
}

/// What was set aside and not recovered yet.
fn unrecovered(store: &Store, root: &Root) -> Result<Vec<PathBuf>, CommandError> {
    match store.unrecovered() {
        // A database of an older format may lack what would tell.
        Err(StoreError::Damaged { .. }) => Ok(unstuck_store::set_aside(root)?),
        found => Ok(found?),
    }
}

/// The database that a person means.
fn database_at(path: &Path) -> Result<PathBuf, CommandError> {
    let file = if path.is_dir() { path.join("timeline.db") } else { path.to_owned() };
    match file.is_file() {
        true => Ok(file),
        false => Err(CommandError::NoSuchPath { path: file }),
    }
}

pub(crate) fn examined_in_words(examined: &Examined, lang: Lang) -> String {
    match lang {
        Lang::En => format!("reading the database: {}", counted(examined.rows, ["row", "rows"])),
        Lang::Zh => format!("正在读取数据库：{} 行", examined.rows),
    }
}

fn wire((path, recovered): &(PathBuf, Recovered)) -> WireRecovered<'_> {
    let Recovered {
        sessions,
        calls,
        events,
        lessons,
        problems,
        others,
        known,
        mended,
        unproven,
        lost,
        withheld,
    } = *recovered;
    WireRecovered {
        path,
        sessions,
        calls,
        events,
        lessons,
        problems,
        others,
        known,
        mended,
        lost,
        unproven,
        withheld,
    }
}

fn in_words(recovery: &Recovery, dry: bool, lang: Lang) -> String {
    let mut text = match (recovery.is_damaged, &recovery.set_aside, lang) {
        (false, _, Lang::En) => "the database in use is not damaged\n".to_owned(),
        (false, _, Lang::Zh) => "正在使用的数据库没有损坏\n".to_owned(),
        (true, Some(path), Lang::En) => {
            format!("the database in use was damaged; it lies in {} now\n", shown(path))
        }
        (true, Some(path), Lang::Zh) => format!("正在使用的数据库已损坏；已移到 {}\n", shown(path)),
        (true, None, Lang::En) => "the database in use is damaged, and would be set aside\n".to_owned(),
        (true, None, Lang::Zh) => "正在使用的数据库已损坏，将被移到一旁\n".to_owned(),
    };
    if recovery.databases.is_empty() {
        text.push_str(match lang {
            Lang::En => "nothing was set aside that is not recovered yet\n",
            Lang::Zh => "没有尚未恢复的数据库\n",
        });
    }
    for (path, recovered) in &recovery.databases {
        text.push_str(&one_in_words(path, recovered, dry, lang));
    }
    if recovery.spool > 0 {
        text.push_str(&match lang {
            Lang::En => {
                format!("taken in from the spool: {}\n", counted(recovery.spool, ["entry", "entries"]))
            }
            Lang::Zh => format!("已从暂存区写入 {} 条\n", recovery.spool),
        });
    }
    text
}

fn one_in_words(path: &Path, recovered: &Recovered, dry: bool, lang: Lang) -> String {
    let came: Vec<String> = [
        (recovered.sessions, ["session", "sessions"], "个会话"),
        (recovered.calls, ["call", "calls"], "次调用"),
        (recovered.events, ["event", "events"], "个事件"),
        (recovered.lessons, ["lesson", "lessons"], "条经验"),
        (recovered.problems, ["problem", "problems"], "个问题"),
        (recovered.others, ["smaller row", "smaller rows"], "条其他记录"),
    ]
    .into_iter()
    .filter(|(count, _, _)| *count > 0)
    .map(|(count, en, zh)| match lang {
        Lang::En => counted(count, en),
        Lang::Zh => format!("{count} {zh}"),
    })
    .collect();
    let path = shown(path);
    let came = match (came.is_empty(), lang) {
        (true, Lang::En) => "nothing that is not there already".to_owned(),
        (true, Lang::Zh) => "没有新的内容".to_owned(),
        (false, Lang::En) => came.join(", "),
        (false, Lang::Zh) => came.join("，"),
    };
    let mut text = match (dry, lang) {
        (true, Lang::En) => format!("{path}: would bring back {came}\n"),
        (true, Lang::Zh) => format!("{path}：将恢复 {came}\n"),
        (false, Lang::En) => format!("{path}: brought back {came}\n"),
        (false, Lang::Zh) => format!("{path}：已恢复 {came}\n"),
    };
    let remarks = [
        (recovered.known, "rows that were there already", "行原本就在"),
        (
            recovered.mended,
            "rows with a part that cannot be read, which is empty now",
            "行有部分内容无法读取，该部分已置空",
        ),
        (recovered.lost, "events that are gone", "个事件已丢失"),
        (
            recovered.unproven,
            "records that the chain of events does not prove any more",
            "条记录不再能由事件链证明",
        ),
        (
            recovered.withheld,
            "lessons and permissions that count only after a person vouches for them: `unstuck recover --yes PATH`",
            "条经验和许可要等人确认后才生效：`unstuck recover --yes PATH`",
        ),
    ];
    for (count, en, zh) in remarks.into_iter().filter(|(count, _, _)| *count > 0) {
        text.push_str(&match lang {
            Lang::En => format!("  {count} {en}\n"),
            Lang::Zh => format!("  {count} {zh}\n"),
        });
    }
    text
}

fn shown(path: &Path) -> String {
    plain::line(&path.to_string_lossy()).into_owned()
}
