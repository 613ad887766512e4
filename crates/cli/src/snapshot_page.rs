//! Snapshots as they are printed: one as a JSON object, several as a table, and what one of them does not hold.

use std::path::Path;
use std::time::SystemTime;

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_vault::{Coverage, Gap, GapReason, Origin, Snapshot, SnapshotId, Vault};
use unstuck_wire::time;

use crate::columns::{self, Side};
use crate::exit::CommandError;
use crate::{moment, plain, removed};

/// How many gaps are listed for people.
const GAPS: usize = 20;
/// How much of a label stands in the table.
const LABEL: usize = 48;

/// How somebody names a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    /// The newest that a person or a call took, not what a restore saved.
    Latest,
    Id(SnapshotId),
}

impl Named {
    /// Its name; of one that is named by it, it need not be readable.
    pub(crate) fn id(self, vault: &Vault) -> Result<SnapshotId, CommandError> {
        match self {
            Named::Id(id) => Ok(id),
            Named::Latest => Ok(self.find(vault)?.id),
        }
    }

    /// The snapshot that is meant.
    pub(crate) fn find(self, vault: &Vault) -> Result<Snapshot, CommandError> {
        match self {
            Named::Id(id) => Ok(vault.snapshot(id)?),
            Named::Latest => {
                let is_taken = |snapshot: &Snapshot| !matches!(snapshot.origin, Origin::Restore { .. });
                vault.snapshots()?.into_iter().rfind(is_taken).ok_or(CommandError::NoSnapshot)
            }
        }
    }
}

/// Reads `s41`, `41` or `latest`.
pub(crate) fn parse_named(text: &str) -> Result<Named, String> {
    match (text.trim(), text.trim().parse()) {
        ("latest", _) => Ok(Named::Latest),
        (_, Ok(id)) => Ok(Named::Id(id)),
        (_, Err(())) => Err("a snapshot is named s41, 41 or latest".to_owned()),
    }
}

/// A snapshot exactly as it is printed.
#[derive(Serialize)]
pub(crate) struct WireSnapshot<'a> {
    #[serde(rename = "type")]
    record: &'static str,
    id: String,
    at: String,
    at_ms: u64,
    why: &'static str,
    note: &'a str,
    #[serde(flatten)]
    call: WireOrigin<'a>,
    /// The snapshot that was restored when this one saved what was there.
    of: Option<String>,
    covers: Vec<String>,
    entries: u64,
    bytes: u64,
    stored_bytes: u64,
    partial: bool,
    gaps: Vec<WireGap>,
    gap_count: u64,
    pinned: bool,
    concluded: bool,
    changed: Option<bool>,
    undone_by: Option<String>,
}

/// The call that it was taken before; nothing of it where there is none.
#[derive(Default, Serialize)]
struct WireOrigin<'a> {
    call: Option<i64>,
    call_id: Option<&'a str>,
    session: Option<&'a str>,
    row: Option<&'a str>,
    label: Option<&'a str>,
}

#[derive(Serialize)]
struct WireGap {
    path: String,
    reason: &'static str,
}

impl<'a> WireSnapshot<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot) -> WireSnapshot<'a> {
        let at = millis(snapshot.at);
        let (why, call, of) = match &snapshot.origin {
            Origin::Person => ("person", WireOrigin::default(), None),
            Origin::Agent => ("agent", WireOrigin::default(), None),
            Origin::Call { call, key, session, row, label } => {
                let [call_id, session, row, label] = [key, session, row, label].map(|text| Some(&**text));
                ("call", WireOrigin { call: *call, call_id, session, row, label }, None)
            }
            Origin::Restore { of } => ("restore", WireOrigin::default(), Some(of.to_string())),
        };
        WireSnapshot {
            record: "snapshot",
            id: snapshot.id.to_string(),
            at: time::iso(at),
            at_ms: at,
            why,
            note: &snapshot.note,
            call,
            of,
            covers: snapshot.scopes.iter().map(|scope| text(&scope.path)).collect(),
            entries: snapshot.entries,
            bytes: snapshot.bytes,
            stored_bytes: snapshot.stored,
            partial: is_partial(snapshot),
            gaps: snapshot.gaps.iter().map(WireGap::from).collect(),
            gap_count: snapshot.gap_count,
            pinned: snapshot.pinned,
            concluded: snapshot.concluded,
            changed: snapshot.changed,
            undone_by: snapshot.undone_by.map(|by| by.to_string()),
        }
    }
}

impl From<&Gap> for WireGap {
    fn from(gap: &Gap) -> WireGap {
        let reason = match gap.reason {
            GapReason::Rebuildable => "rebuildable",
            GapReason::Never => "never",
            GapReason::Unreadable => "unreadable",
            GapReason::Mounted => "mounted",
            GapReason::Special => "special",
            GapReason::Unstable => "unstable",
        };
        WireGap { path: text(&gap.path), reason }
    }
}

pub(crate) fn is_partial(snapshot: &Snapshot) -> bool {
    match snapshot.coverage() {
        Coverage::Whole => false,
        Coverage::Partial => true,
    }
}

/// A moment in milliseconds since 1970.
pub(crate) fn millis(at: SystemTime) -> u64 {
    time::span_ms(at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default())
}

/// A path as text. What is no UTF-8 in it cannot be said in JSON.
pub(crate) fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A path on one line from which it can be told exactly: what would end the line is written as an escape.
pub(crate) fn escaped(path: &Path) -> String {
    let mut text = String::new();
    for sign in path.to_string_lossy().chars() {
        match sign {
            '\n' | '\r' | '\t' => text.extend(sign.escape_default()),
            sign => text.push(sign),
        }
    }
    plain::line(&text).into_owned()
}

/// A path as it may be shown.
pub(crate) fn shown(path: &Path) -> String {
    plain::line(&path.to_string_lossy()).into_owned()
}

/// Snapshots as rows, in the order in which they come.
pub(crate) fn table<'a>(
    snapshots: impl Iterator<Item = &'a Snapshot>,
    home: Option<&Path>,
    now: u64,
    lang: Lang,
) -> String {
    let head = match lang {
        Lang::En => ["id", "when", "size", "why", "covers", ""],
        Lang::Zh => ["编号", "时间", "大小", "原因", "范围", ""],
    };
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(snapshots.map(|snapshot| {
        vec![
            snapshot.id.to_string(),
            moment::ago(millis(snapshot.at), now, lang),
            removed::size(snapshot.bytes),
            why(snapshot, lang),
            covers(snapshot, home, lang),
            marks(snapshot, lang),
        ]
    }));
    let sides = [Side::Left, Side::Right, Side::Right, Side::Left, Side::Left, Side::Left];
    columns::table(&sides, &rows)
}

/// All that is known of one, for people.
pub(crate) fn page(snapshot: &Snapshot, now: u64, lang: Lang) -> String {
    let say = |en: &str, zh: &str| match lang {
        Lang::En => en.to_owned(),
        Lang::Zh => zh.to_owned(),
    };
    let (id, at) = (snapshot.id, millis(snapshot.at));
    let new = removed::size(snapshot.stored);
    let mut rows = vec![
        [say("when", "时间"), format!("{} ({})", moment::ago(at, now, lang), time::iso(at))],
        [say("why", "原因"), why(snapshot, lang)],
        [
            say("holds", "内容"),
            match lang {
                Lang::En => {
                    let paths = removed::counted(snapshot.entries, ["path", "paths"]);
                    format!("{paths}, {} ({new} new)", removed::size(snapshot.bytes))
                }
                Lang::Zh => {
                    format!("{} 个路径，{}（新增 {new}）", snapshot.entries, removed::size(snapshot.bytes))
                }
            },
        ],
    ];
    if let Origin::Call { key, session, row, .. } = &snapshot.origin {
        let call = format!("{key} · {session} · {row}");
        rows.push([say("call", "调用"), plain::line(&call).into_owned()]);
        let after = match (snapshot.concluded, snapshot.changed) {
            (false, _) => say("end unknown", "结束状态未知"),
            (true, Some(false)) => say("nothing changed", "没有改动"),
            (true, Some(true) | None) => say("recorded: the call changed something", "已记录：调用有改动"),
        };
        rows.push([say("after it", "之后"), after]);
    }
    let marks = marks(snapshot, lang);
    if !marks.is_empty() {
        rows.push([say("marks", "标记"), marks]);
    }
    for (number, scope) in snapshot.scopes.iter().enumerate() {
        let head = if number == 0 { say("covers", "范围") } else { String::new() };
        rows.push([head, escaped(&scope.path)]);
    }
    let rows: Vec<Vec<String>> = rows.into_iter().map(|row| row.to_vec()).collect();
    let body = columns::table(&[Side::Left, Side::Left], &rows);
    let next = match lang {
        Lang::En => {
            format!("`unstuck snapshots files {id}` lists it, `unstuck diff {id}` shows what changed since\n")
        }
        Lang::Zh => format!("`unstuck snapshots files {id}` 列出内容，`unstuck diff {id}` 显示之后的改动\n"),
    };
    format!("{id}\n{body}{}{next}", not_held(snapshot, lang))
}

/// Why it was taken, in few words: `#12 rm -rf src`, `by hand: before the upgrade`, `before s3 was restored`.
pub(crate) fn why(snapshot: &Snapshot, lang: Lang) -> String {
    match (&snapshot.origin, lang) {
        (Origin::Person, Lang::En) if snapshot.note.is_empty() => "by hand".to_owned(),
        (Origin::Person, Lang::Zh) if snapshot.note.is_empty() => "手动".to_owned(),
        (Origin::Agent, Lang::En) if snapshot.note.is_empty() => "by an agent".to_owned(),
        (Origin::Agent, Lang::Zh) if snapshot.note.is_empty() => "由智能体".to_owned(),
        (Origin::Person | Origin::Agent, _) => plain::short(&snapshot.note, LABEL),
        (Origin::Call { call, label, .. }, _) => {
            let number = call.map(|call| format!("#{call} ")).unwrap_or_default();
            format!("{number}{}", plain::short(label, LABEL))
        }
        (Origin::Restore { of }, Lang::En) => format!("before {of} was restored"),
        (Origin::Restore { of }, Lang::Zh) => format!("恢复 {of} 之前"),
    }
}

/// The same with when it was, and its name: `#12 rm -rf src, 2 min ago (s8)`.
pub(crate) fn told(snapshot: &Snapshot, now: u64, lang: Lang) -> String {
    let (why, ago, id) = (why(snapshot, lang), moment::ago(millis(snapshot.at), now, lang), snapshot.id);
    match lang {
        Lang::En => format!("{why}, {ago} ({id})"),
        Lang::Zh => format!("{why}，{ago}（{id}）"),
    }
}

/// The first of its paths, and how many more there are.
fn covers(snapshot: &Snapshot, home: Option<&Path>, lang: Lang) -> String {
    let Some(first) = snapshot.scopes.first() else { return String::new() };
    let in_home = home.and_then(|home| first.path.strip_prefix(home).ok());
    let first = match in_home {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", shown(rest)),
        None => shown(&first.path),
    };
    match (snapshot.scopes.len() - 1, lang) {
        (0, _) => first,
        (more, Lang::En) => format!("{first} and {more} more"),
        (more, Lang::Zh) => format!("{first} 等 {} 处", more + 1),
    }
}

/// What else is to be known: pinned, undone, not whole.
fn marks(snapshot: &Snapshot, lang: Lang) -> String {
    let mut marks = Vec::new();
    let mut mark = |is_so: bool, en: String, zh: String| {
        if is_so {
            marks.push(match lang {
                Lang::En => en,
                Lang::Zh => zh,
            });
        }
    };
    mark(snapshot.pinned, "pinned".to_owned(), "已固定".to_owned());
    mark(is_partial(snapshot), "not all of it".to_owned(), "不完整".to_owned());
    mark(snapshot.changed == Some(false), "nothing changed".to_owned(), "没有改动".to_owned());
    let is_call = matches!(snapshot.origin, Origin::Call { .. });
    mark(is_call && !snapshot.concluded, "end unknown".to_owned(), "结束状态未知".to_owned());
    if let Some(by) = snapshot.undone_by {
        mark(true, format!("undone ({by})"), format!("已撤销（{by}）"));
    }
    marks.join(", ")
}

/// What lies inside its paths and is not held, in lines; empty where everything is.
pub(crate) fn not_held(snapshot: &Snapshot, lang: Lang) -> String {
    if snapshot.gap_count == 0 && snapshot.gaps.is_empty() {
        return String::new();
    }
    let mut lines = match lang {
        Lang::En => "not in it:\n".to_owned(),
        Lang::Zh => "不包含：\n".to_owned(),
    };
    for gap in snapshot.gaps.iter().take(GAPS) {
        lines += &format!("  {}  ({})\n", shown(&gap.path), reason(gap.reason, lang));
    }
    let listed = snapshot.gaps.len().min(GAPS) as u64;
    let more = snapshot.gap_count.max(snapshot.gaps.len() as u64) - listed;
    lines += &match (more, lang) {
        (0, _) => String::new(),
        (more, Lang::En) => format!("  and {more} more\n"),
        (more, Lang::Zh) => format!("  另有 {more} 个\n"),
    };
    lines
}

/// Why something is not held, in few words.
pub(crate) fn reason(reason: GapReason, lang: Lang) -> &'static str {
    match (reason, lang) {
        (GapReason::Rebuildable, Lang::En) => "can be made again; --all takes it",
        (GapReason::Rebuildable, Lang::Zh) => "可重新生成；--all 可一并保存",
        (GapReason::Never, Lang::En) => "not at risk, or never taken: vault.never",
        (GapReason::Never, Lang::Zh) => "不受影响，或从不保存：vault.never",
        (GapReason::Unreadable, Lang::En) => "could not be read",
        (GapReason::Unreadable, Lang::Zh) => "无法读取",
        (GapReason::Mounted, Lang::En) => "another file system",
        (GapReason::Mounted, Lang::Zh) => "另一个文件系统",
        (GapReason::Special, Lang::En) => "a socket or a device",
        (GapReason::Special, Lang::Zh) => "套接字或设备",
        (GapReason::Unstable, Lang::En) => "changed each time it was read",
        (GapReason::Unstable, Lang::Zh) => "每次读取时都在变化",
    }
}

/// What is wrong with the safe and is seen without reading all of it, in lines; empty where nothing is.
pub(crate) fn amiss(vault: &Vault, lang: Lang) -> Result<String, CommandError> {
    let mut lines = match (vault.awaits_recovery(), lang) {
        (false, _) => String::new(),
        (true, Lang::En) => "a restore was interrupted: `unstuck gc` finishes or undoes it\n".to_owned(),
        (true, Lang::Zh) => "有一次恢复被中断：`unstuck gc` 会完成或撤销它\n".to_owned(),
    };
    for journal in vault.given_up()? {
        let (journal, kept) = (journal.display(), vault.folder().join("stages/*.kept"));
        lines += &match lang {
            Lang::En => format!(
                "a restore could not be finished and was given up: look at {}, then remove it and {journal}\n",
                kept.display()
            ),
            Lang::Zh => format!(
                "有一次恢复无法完成，已放弃：请查看 {}，然后将其与 {journal} 一并删除\n",
                kept.display()
            ),
        };
    }
    let unreadable = vault.unreadable()?;
    if !unreadable.is_empty() {
        let names = unreadable.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        lines += &match lang {
            Lang::En => format!("damaged, and lost: {names} (`unstuck snapshots drop {names}`)\n"),
            Lang::Zh => format!("已损坏且无法恢复：{names}（`unstuck snapshots drop {names}`）\n"),
        };
    }
    Ok(lines)
}

/// Snapshots whose own lists are damaged, and what follows from it; empty where there are none.
pub(crate) fn blocked(by: &[SnapshotId], lang: Lang) -> String {
    if by.is_empty() {
        return String::new();
    }
    let names = by.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    match lang {
        Lang::En => format!(
            "damaged lists: {names}; what they may need stays until they are dropped: `unstuck snapshots drop {names}`\n"
        ),
        Lang::Zh => format!(
            "清单已损坏：{names}；它们可能需要的内容会保留，直到删除它们：`unstuck snapshots drop {names}`\n"
        ),
    }
}
