//! `unstuck diff`: what changed since a snapshot. It only looks.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_vault::{Change, Difference, SnapshotId, Vault};

use crate::cellar::Cellar;
use crate::commands::restore::paths_in;
use crate::editing::unified;
use crate::exit::{CommandError, ExitStatus};
use crate::onlooker::Onlooker;
use crate::plain;
use crate::restored_page::{change_word, sign};
use crate::safe::Safe;
use crate::snapshot_page::{Named, escaped, parse_named, text};
use crate::ui::Ui;

/// Nobody reads a diff of a longer file.
const MOST: usize = 1 << 20;

/// Show what changed since a snapshot
///
/// Text as a unified diff, everything else by its name. It is meant to be read: control characters are shown as what they are.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck diff s41                    what changed since s41
  unstuck diff latest src --stat      how much, file by file
  unstuck diff s41 --name-only        only which files
  unstuck diff s41 --json             one JSON object per path")]
#[command(group = clap::ArgGroup::new("how").args(["stat", "name_only"]))]
pub(crate) struct DiffArgs {
    /// s41, 41 or latest
    #[arg(value_name = "ID", value_parser = parse_named)]
    id: Named,
    /// Only these files and folders
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// How many lines came and went in each file
    #[arg(long)]
    stat: bool,
    /// Only the names: A came, D went, M has other content, T is something else, m has another mode, owner, time or attribute
    #[arg(long)]
    name_only: bool,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

/// One path that changed, exactly as it is printed.
#[derive(Serialize)]
struct WireChange<'a> {
    #[serde(rename = "type")]
    record: &'static str,
    path: String,
    change: &'static str,
    /// `text`, `binary`, `large` or `other`; nothing where only names were asked for.
    content: Option<&'static str>,
    lines_added: Option<u64>,
    lines_removed: Option<u64>,
    diff: Option<&'a str>,
}

/// How the content of a path changed, as far as it can be shown.
enum Shown {
    /// A unified diff, and the lines that came and went.
    Text {
        diff: String,
        added: u64,
        removed: u64,
    },
    Binary,
    TooLarge,
    /// A folder, or nothing but its mode, owner, times or attributes.
    NoContent,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &DiffArgs) -> Result<ExitStatus, CommandError> {
    let vault = Safe::of(cellar).existing()?;
    let snapshot = args.id.find(&vault)?;
    let paths = paths_in(&vault, &snapshot, &args.paths)?;
    let onlooker = Onlooker::new(ui.lang());
    let differences = vault.differences(snapshot.id, &paths, &onlooker)?;
    onlooker.end();
    for difference in &differences {
        let content = match args.name_only {
            true => None,
            false => Some(changed(&vault, snapshot.id, difference)?),
        };
        match args.json {
            true => ui.json(&wire(difference, content.as_ref(), args.stat))?,
            false => {
                let line = in_words(difference, content.as_ref(), args.stat, ui.lang());
                ui.say(&line)?;
            }
        }
    }
    Ok(ExitStatus::Success)
}

fn changed(vault: &Vault, id: SnapshotId, difference: &Difference) -> Result<Shown, CommandError> {
    let path = &difference.path;
    let before = match difference.change {
        Change::Added | Change::Touched => None,
        Change::Removed | Change::Modified | Change::Retyped => vault.content(id, path, MOST + 1)?,
    };
    let after = match difference.change {
        Change::Removed | Change::Touched => None,
        Change::Added | Change::Modified | Change::Retyped => present(path),
    };
    let is_large = |side: &Option<Vec<u8>>| side.as_ref().is_some_and(|bytes| bytes.len() > MOST);
    let is_binary = |side: &Option<Vec<u8>>| {
        side.as_ref().is_some_and(|bytes| bytes.contains(&0) || str::from_utf8(bytes).is_err())
    };
    Ok(match (&before, &after) {
        (None, None) => Shown::NoContent,
        (_, _) if is_large(&before) || is_large(&after) => Shown::TooLarge,
        (_, _) if is_binary(&before) || is_binary(&after) => Shown::Binary,
        (_, _) => {
            let diff = unified(Path::new(&escaped(path)), before.as_deref(), after.as_deref());
            let count = |sign| diff.lines().skip(2).filter(|line| line.starts_with(sign)).count() as u64;
            let (added, removed) = (count('+'), count('-'));
            Shown::Text { diff, added, removed }
        }
    })
}

/// What is there now: a file's content, or a link's target. What cannot be read has none to show.
fn present(path: &Path) -> Option<Vec<u8>> {
    let read = || -> io::Result<Option<Vec<u8>>> {
        let about = fs::symlink_metadata(path)?;
        if about.is_symlink() {
            return Ok(Some(fs::read_link(path)?.into_os_string().into_encoded_bytes()));
        }
        if !about.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        File::open(path)?.take(MOST as u64 + 1).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    };
    read().ok().flatten()
}

fn wire<'a>(difference: &Difference, content: Option<&'a Shown>, stat: bool) -> WireChange<'a> {
    let (word, lines, diff) = match content {
        None => (None, None, None),
        Some(Shown::Text { diff, added, removed }) => (Some("text"), Some((*added, *removed)), Some(&**diff)),
        Some(Shown::Binary) => (Some("binary"), None, None),
        Some(Shown::TooLarge) => (Some("large"), None, None),
        Some(Shown::NoContent) => (Some("other"), None, None),
    };
    WireChange {
        record: "change",
        path: text(&difference.path),
        change: change_word(difference.change),
        content: word,
        lines_added: lines.map(|(added, _)| added),
        lines_removed: lines.map(|(_, removed)| removed),
        diff: diff.filter(|_| !stat),
    }
}

fn in_words(difference: &Difference, content: Option<&Shown>, stat: bool, lang: Lang) -> String {
    let (sign, path) = (sign(difference.change), escaped(&difference.path));
    let said = |en: &str, zh: &str| match lang {
        Lang::En => format!("{sign} {path}  ({en})\n"),
        Lang::Zh => format!("{sign} {path}  （{zh}）\n"),
    };
    match content {
        None => format!("{sign} {path}\n"),
        Some(Shown::Text { added, removed, .. }) if stat => format!("{sign} {path}  +{added} -{removed}\n"),
        Some(Shown::Text { diff, .. }) if !diff.is_empty() => {
            let is_link = difference.path.is_symlink();
            let retyped = match (difference.change, is_link) {
                (Change::Retyped, true) => said("a link now, which it was not", "现在是链接，原先不是"),
                (Change::Retyped, false) => said("it was something else", "原先是别的类型"),
                (Change::Added | Change::Removed | Change::Modified | Change::Touched, _) => String::new(),
            };
            retyped + &plain::lines(diff)
        }
        // A file that is empty on one side.
        Some(Shown::Text { .. }) => format!("{sign} {path}\n"),
        Some(Shown::Binary) => said("binary", "二进制文件"),
        Some(Shown::TooLarge) => said("too large to show", "太大，无法显示"),
        Some(Shown::NoContent) if difference.change == Change::Touched => {
            said("mode, owner, times or attributes", "权限、所有者、时间或属性")
        }
        Some(Shown::NoContent) => format!("{sign} {path}\n"),
    }
}
