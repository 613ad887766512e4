//! What a restore did, or would do, as it is printed; and in which exit status it ends.

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_vault::{Change, Difference, Kept, KeptBecause, Origin, Restored, Snapshot};

use crate::cellar;
use crate::exit::{CommandError, ExitStatus};
use crate::removed::{self, counted};
use crate::safe::Why;
use crate::snapshot_page::{self, shown, text};
use crate::ui::Ui;

/// How many paths of one sort are listed for people.
const LISTED: usize = 50;

#[derive(Serialize)]
struct WireRestored<'a> {
    #[serde(rename = "type")]
    record: &'static str,
    id: String,
    /// The call that was taken back; nothing where there is none behind it.
    call: Option<i64>,
    label: Option<&'a str>,
    dry_run: bool,
    saved: Option<String>,
    done: Vec<WireDifference>,
    kept: Vec<WireKept>,
    verified: u64,
    written_bytes: u64,
}

/// One path that differs, exactly as it is printed.
#[derive(Serialize)]
pub(crate) struct WireDifference {
    pub(crate) path: String,
    pub(crate) change: &'static str,
}

/// One path that was left as it is, exactly as it is printed.
#[derive(Serialize)]
pub(crate) struct WireKept {
    path: String,
    because: &'static str,
}

impl From<&Difference> for WireDifference {
    fn from(difference: &Difference) -> WireDifference {
        WireDifference { path: text(&difference.path), change: change_word(difference.change) }
    }
}

impl From<&Kept> for WireKept {
    fn from(kept: &Kept) -> WireKept {
        let because = match kept.because {
            KeptBecause::ChangedSince => "changed_since",
            KeptBecause::ChangedMeanwhile => "changed_meanwhile",
            KeptBecause::NotHeld => "not_held",
            KeptBecause::Damaged => "damaged",
            KeptBecause::Refused => "refused",
        };
        WireKept { path: text(&kept.path), because }
    }
}

/// What happened to a path since a snapshot, as one word.
pub(crate) fn change_word(change: Change) -> &'static str {
    match change {
        Change::Added => "added",
        Change::Removed => "removed",
        Change::Modified => "modified",
        Change::Retyped => "retyped",
        Change::Touched => "touched",
    }
}

/// The same as one sign, as other tools write it.
pub(crate) fn sign(change: Change) -> char {
    match change {
        Change::Added => 'A',
        Change::Removed => 'D',
        Change::Modified => 'M',
        Change::Retyped => 'T',
        Change::Touched => 'm',
    }
}

/// Says what was done, and ends in the status that fits.
pub(crate) fn tell(
    ui: &mut Ui,
    snapshot: &Snapshot,
    restored: &Restored,
    why: Why,
    dry_run: bool,
    json: bool,
) -> Result<ExitStatus, CommandError> {
    let lang = ui.lang();
    let (call, label) = match &snapshot.origin {
        Origin::Call { call, label, .. } => (*call, Some(&**label)),
        Origin::Person | Origin::Agent | Origin::Restore { .. } => (None, None),
    };
    match json {
        true => ui.json(&WireRestored {
            record: why.word(),
            id: restored.id.to_string(),
            call,
            label,
            dry_run,
            saved: restored.saved.map(|saved| saved.to_string()),
            done: restored.done.iter().map(WireDifference::from).collect(),
            kept: restored.kept.iter().map(WireKept::from).collect(),
            verified: restored.verified,
            written_bytes: restored.written,
        })?,
        false => {
            // Whoever names no call wants to know which it was.
            if matches!(why, Why::Undo | Why::Redo) {
                ui.say(&format!("{}\n", snapshot_page::told(snapshot, cellar::now(), lang)))?;
            }
            ui.say(&in_words(restored, why, dry_run, lang))?;
        }
    }
    Ok(status(restored, why, dry_run))
}

/// What somebody changed since and what a snapshot does not hold stays by design. What should have been brought back and was
/// not is an answer of its own.
fn status(restored: &Restored, why: Why, dry_run: bool) -> ExitStatus {
    let is_amiss = |kept: &Kept| match kept.because {
        KeptBecause::ChangedSince | KeptBecause::NotHeld => false,
        KeptBecause::ChangedMeanwhile | KeptBecause::Damaged | KeptBecause::Refused => true,
    };
    // A restore where nothing differs is done; there is nothing to it. An undo has found nothing that it could undo.
    let is_nothing = restored.done.is_empty() && why != Why::Restore;
    match !dry_run && (is_nothing || restored.kept.iter().any(is_amiss)) {
        true => ExitStatus::No,
        false => ExitStatus::Success,
    }
}

/// What was done, in lines for people.
pub(crate) fn in_words(restored: &Restored, why: Why, dry_run: bool, lang: Lang) -> String {
    let id = restored.id;
    let count = restored.done.len() as u64;
    let mut text = match (restored.done.is_empty(), dry_run, lang) {
        (true, _, Lang::En) => format!("nothing to bring back from {id}\n"),
        (true, _, Lang::Zh) => format!("没有需要从 {id} 恢复的内容\n"),
        (false, true, Lang::En) => {
            format!("would bring back {} from {id}:\n", counted(count, ["path", "paths"]))
        }
        (false, true, Lang::Zh) => format!("将从 {id} 恢复 {count} 个路径：\n"),
        (false, false, Lang::En) => {
            format!("brought back {} from {id}:\n", counted(count, ["path", "paths"]))
        }
        (false, false, Lang::Zh) => format!("已从 {id} 恢复 {count} 个路径：\n"),
    };
    let folded = folded(&restored.done);
    for (difference, below) in folded.iter().take(LISTED) {
        let inside = match (below, lang) {
            (0, _) => String::new(),
            (below, Lang::En) => format!(" with {} in it", counted(*below, ["path", "paths"])),
            (below, Lang::Zh) => format!("（内含 {below} 个路径）"),
        };
        text +=
            &format!("  {}{inside}  {}\n", shown(&difference.path), brought_back(difference.change, lang));
    }
    text += &and_more(folded.len(), lang);
    if !restored.kept.is_empty() {
        let kept = restored.kept.len() as u64;
        text += &match lang {
            Lang::En => format!("left as they are: {}\n", counted(kept, ["path", "paths"])),
            Lang::Zh => format!("保持原样的路径：{kept} 个\n"),
        };
        for kept in restored.kept.iter().take(LISTED) {
            text += &format!("  {}  ({})\n", shown(&kept.path), because(kept.because, lang));
        }
        text += &and_more(restored.kept.len(), lang);
        let is_since = restored.kept.iter().any(|kept| kept.because == KeptBecause::ChangedSince);
        // Plain `undo` and `redo` mean another one by now.
        text += &match (is_since, lang) {
            (true, Lang::En) => format!("`unstuck undo {id} --force` brings these back as well\n"),
            (true, Lang::Zh) => format!("`unstuck undo {id} --force` 可一并恢复\n"),
            (false, _) => String::new(),
        };
    }
    if restored.verified > 0 {
        let (files, size) = (restored.verified, removed::size(restored.written));
        text += &match lang {
            Lang::En => format!("verified by hash: {} ({size} written)\n", counted(files, ["file", "files"])),
            Lang::Zh => format!("已按哈希校验：{files} 个文件（写入 {size}）\n"),
        };
    }
    if let Some(saved) = restored.saved {
        let back = match why {
            Why::Redo => format!("unstuck undo {saved}"),
            Why::Undo | Why::Restore | Why::Drop | Why::Expired | Why::Purge => "unstuck redo".to_owned(),
        };
        text += &match lang {
            Lang::En => format!("what was there before is saved as {saved}; take this back: `{back}`\n"),
            Lang::Zh => format!("之前的状态已保存为 {saved}；撤回这一步：`{back}`\n"),
        };
    }
    text
}

/// Whole folders that came or went, each as one line with how much is in it.
fn folded(done: &[Difference]) -> Vec<(&Difference, u64)> {
    let mut folded: Vec<(&Difference, u64)> = Vec::new();
    for difference in done {
        let is_whole =
            |change| matches!(change, Change::Added | Change::Removed) && change == difference.change;
        match folded.last_mut() {
            Some((above, below)) if is_whole(above.change) && difference.path.starts_with(&above.path) => {
                *below += 1;
            }
            Some(_) | None => folded.push((difference, 0)),
        }
    }
    folded
}

fn and_more(count: usize, lang: Lang) -> String {
    match (count.saturating_sub(LISTED), lang) {
        (0, _) => String::new(),
        (more, Lang::En) => format!("  and {more} more\n"),
        (more, Lang::Zh) => format!("  另有 {more} 个\n"),
    }
}

/// What is done about a change when it is taken back.
fn brought_back(change: Change, lang: Lang) -> &'static str {
    match (change, lang) {
        (Change::Added, Lang::En) => "(removed: it was not there)",
        (Change::Added, Lang::Zh) => "（已移除：原先没有）",
        (Change::Removed, Lang::En) => "(made again)",
        (Change::Removed, Lang::Zh) => "（已重新创建）",
        (Change::Modified, Lang::En) => "(content)",
        (Change::Modified, Lang::Zh) => "（内容）",
        (Change::Retyped, Lang::En) => "(replaced: it was something else)",
        (Change::Retyped, Lang::Zh) => "（已替换：原先是别的类型）",
        (Change::Touched, Lang::En) => "(mode, owner, times or attributes)",
        (Change::Touched, Lang::Zh) => "（权限、所有者、时间或属性）",
    }
}

fn because(because: KeptBecause, lang: Lang) -> &'static str {
    match (because, lang) {
        (KeptBecause::ChangedSince, Lang::En) => "somebody changed it since",
        (KeptBecause::ChangedSince, Lang::Zh) => "之后有人改动过",
        (KeptBecause::ChangedMeanwhile, Lang::En) => "it changed meanwhile: run it again",
        (KeptBecause::ChangedMeanwhile, Lang::Zh) => "恢复期间有改动：请再运行一次",
        (KeptBecause::NotHeld, Lang::En) => "the snapshot does not hold it",
        (KeptBecause::NotHeld, Lang::Zh) => "快照中没有它",
        (KeptBecause::Damaged, Lang::En) => "damaged in the safe: `unstuck snapshots check`",
        (KeptBecause::Damaged, Lang::Zh) => "在保险库中已损坏：`unstuck snapshots check`",
        (KeptBecause::Refused, Lang::En) => "it may not be written",
        (KeptBecause::Refused, Lang::Zh) => "没有写入权限",
    }
}
