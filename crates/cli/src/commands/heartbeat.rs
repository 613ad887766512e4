//! `unstuck heartbeat`: all that should be done now and then, and that no hook has time for.

use std::time::{Duration, Instant};

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_store::{AlertRule, FiredAlert, Removed, Store, StoreError};
use unstuck_vault::SnapshotId;
use unstuck_wire::clean::Cleaner;
use unstuck_wire::time;

use crate::cellar::{self, Cellar};
use crate::commands::alerts;
use crate::deliver::{self, Delivered, WireAlert};
use crate::exit::{CommandError, ExitStatus};
use crate::removed::{self, WireRemoved};
use crate::safe::Safe;
use crate::ui::Ui;

/// How long old rows are removed in one go. What is left is removed by the next heartbeat.
const BUDGET: Duration = Duration::from_millis(250);

/// Take in what waits, seal dead calls, deliver alerts, remove what is old
///
/// Cheap, and harmless when two run at once: for cron, or for an agent's own loop. Everything it does is also done later if it
/// does not run; alerts then wait for `unstuck alerts`, `stats`, `problems` or `gc`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck heartbeat                                say in one line what was done
  */5 * * * * unstuck heartbeat --quiet            in a crontab: every five minutes")]
pub(crate) struct HeartbeatArgs {
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Say nothing, unless something is wrong
    #[arg(long, short)]
    quiet: bool,
}

/// What a heartbeat did.
#[derive(Debug, Default)]
struct Beat {
    taken: u64,
    sealed: Vec<i64>,
    fired: Vec<FiredAlert>,
    delivered: Delivered,
    removed: Removed,
    folded: bool,
    /// Snapshots that had expired.
    snapshots: Vec<SnapshotId>,
}

#[derive(Serialize)]
struct WireBeat<'a> {
    taken: u64,
    sealed: &'a [i64],
    fired: Vec<WireAlert<'a>>,
    delivered: u64,
    undelivered: u64,
    removed: WireRemoved,
    folded: bool,
    snapshots_removed: Vec<String>,
    took_ms: u64,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &HeartbeatArgs) -> Result<ExitStatus, CommandError> {
    let begun = Instant::now();
    let beat = match beat(ui.lang(), cellar) {
        // Nothing to tend yet is no news for whoever asked not to be told.
        Err(CommandError::Store(StoreError::Missing { .. })) if args.quiet => return Ok(ExitStatus::Success),
        beat => beat?,
    };
    match (args.json, args.quiet) {
        (true, _) => ui.json(&WireBeat {
            taken: beat.taken,
            sealed: &beat.sealed,
            fired: beat.fired.iter().map(|alert| WireAlert::new(alert, false)).collect(),
            delivered: beat.delivered.arrived,
            undelivered: beat.delivered.failed,
            removed: beat.removed.into(),
            folded: beat.folded,
            snapshots_removed: beat.snapshots.iter().map(ToString::to_string).collect(),
            took_ms: time::span_ms(begun.elapsed()),
        })?,
        (false, true) => {}
        (false, false) => {
            let text = in_words(&beat, &alerts::rules(cellar), ui.lang());
            ui.say(&text)?;
        }
    }
    Ok(ExitStatus::Success)
}

fn beat(lang: Lang, cellar: &Cellar) -> Result<Beat, CommandError> {
    let safe = Safe::of(cellar);
    // A safe that cannot be opened must not keep the store from being tended; `doctor` tells of it.
    let vault = safe.if_there().ok().flatten();
    let snapshots = vault.as_ref().map(|vault| safe.expire(vault).snapshots).unwrap_or_default();
    let cleaner = cellar.cleaner();
    let tended = cellar.tend(&cleaner)?;
    let mut store = cellar.to_write()?;
    let (fired, delivered) = alert(lang, cellar, &mut store, &cleaner)?;
    let begun = Instant::now();
    let mut goes_on = |_: &Removed| begun.elapsed() < BUDGET;
    let removed = store.expire(&cellar.retention(), cellar::now(), &mut goes_on)?;
    Ok(Beat {
        taken: tended.taken,
        sealed: tended.sealed.iter().map(|sealed| sealed.call).collect(),
        fired,
        delivered,
        removed,
        folded: store.fold_if_large()?,
        snapshots,
    })
}

/// Fires what is due and delivers it: the alerts that fired, and what became of the deliveries.
fn alert(
    lang: Lang,
    cellar: &Cellar,
    store: &mut Store,
    cleaner: &Cleaner,
) -> Result<(Vec<FiredAlert>, Delivered), CommandError> {
    let rules = alerts::rules(cellar);
    let fired = store.fire(&rules, cellar::now(), lang, cleaner)?;
    let delivered = deliver::all_due(store, &rules, cleaner)?;
    Ok((fired, delivered))
}

/// The same beside another command, whose answer has been printed by then: whoever looks at the store also keeps its alerts
/// going. What does not work now is left to the next.
pub(crate) fn alert_quietly(lang: Lang, cellar: &Cellar) {
    // Whether there is a store at all is asked first: looking must not make one.
    if let Ok(mut store) = cellar.to_read().and_then(|_| cellar.to_write()) {
        let _the_next_one_will = alert(lang, cellar, &mut store, &cellar.cleaner());
    }
}

fn in_words(beat: &Beat, rules: &[AlertRule], lang: Lang) -> String {
    let Beat { taken, sealed, fired, delivered, removed, folded, snapshots } = beat;
    let mut done = Vec::new();
    let mut tell = |is_so: bool, en: String, zh: String| {
        if is_so {
            done.push(match lang {
                Lang::En => en,
                Lang::Zh => zh,
            });
        }
    };
    let waiting = removed::counted(*taken, ["waiting entry", "waiting entries"]);
    tell(*taken > 0, format!("took in {waiting}"), format!("收入 {taken} 条等待的记录"));
    let calls = sealed.len() as u64;
    let dead = removed::counted(calls, ["dead call", "dead calls"]);
    tell(calls > 0, format!("sealed {dead}"), format!("封存 {calls} 个失联的调用"));
    let names: Vec<String> = fired.iter().map(|alert| alerts::fired_line(rules, alert, lang)).collect();
    tell(
        !fired.is_empty(),
        format!("alerts fired: {}", names.join(", ")),
        format!("触发告警：{}", names.join("、")),
    );
    let (arrived, failed) = (delivered.arrived, delivered.failed);
    tell(arrived > 0, format!("delivered {arrived}"), format!("已送达 {arrived} 个"));
    tell(
        failed > 0,
        format!(
            "{} failed (`unstuck alerts` says why)",
            removed::counted(failed, ["delivery", "deliveries"])
        ),
        format!("{failed} 个通知失败（`unstuck alerts` 显示原因）"),
    );
    let rows = removed::in_words(removed, lang);
    tell(removed.total() > 0, format!("removed {rows}"), format!("删除 {rows}"));
    let gone = snapshots.len() as u64;
    let expired = removed::counted(gone, ["expired snapshot", "expired snapshots"]);
    tell(gone > 0, format!("removed {expired}"), format!("删除 {gone} 个过期的快照"));
    tell(*folded, "folded the log".to_owned(), "合并了日志".to_owned());
    match (done.is_empty(), lang) {
        (true, Lang::En) => "nothing to do\n".to_owned(),
        (true, Lang::Zh) => "无事可做\n".to_owned(),
        (false, Lang::En) => format!("{}\n", done.join("; ")),
        (false, Lang::Zh) => format!("{}\n", done.join("；")),
    }
}
