//! `unstuck status`: is it on, what does it do, and what has it seen today.

use std::path::Path;

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_store::{Glance, HostSeen, Size, StoreError};
use unstuck_wire::time;

use crate::cellar::{self, Cellar};
use crate::columns;
use crate::exit::{CommandError, ExitStatus};
use crate::moment;
use crate::plain;
use crate::removed::{self, counted};
use crate::safe::{Safe, SafeSeen};
use crate::settings::Attended;
use crate::switch::{self, Switch};
use crate::ui::Ui;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Show whether unstuck is on, how far it may go, and what it has seen today
///
/// Today begins at midnight UTC. `unstuck doctor` looks closer.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck status            is it on, and is it alive?
  unstuck status --json     the same for a status line
  unstuck pause 30m         off for a while")]
pub(crate) struct StatusArgs {
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// What the store tells, where there is one.
struct Seen {
    size: Size,
    today: Glance,
    hosts: Vec<HostSeen>,
}

#[derive(Serialize)]
struct WireStatus<'a> {
    state: &'static str,
    until: Option<String>,
    until_ms: Option<u64>,
    hook_enabled: bool,
    mode: &'static str,
    tools: Option<String>,
    attended: &'static str,
    version: &'static str,
    folder: &'a Path,
    store: Option<WireSeen<'a>>,
    vault: Option<WireVault>,
}

#[derive(Serialize)]
struct WireVault {
    snapshots: u64,
    bytes: u64,
    oldest_at: Option<String>,
    oldest_at_ms: Option<u64>,
}

#[derive(Serialize)]
struct WireSeen<'a> {
    bytes: u64,
    spool_bytes: u64,
    today: WireGlance,
    agents: Vec<WireHost<'a>>,
}

#[derive(Serialize)]
struct WireGlance {
    sessions: u64,
    calls: u64,
    failed: u64,
    hints: u64,
    denials: u64,
    false_alarms: u64,
    own_faults: u64,
}

#[derive(Serialize)]
struct WireHost<'a> {
    agent: &'a str,
    sessions: u64,
    last_at: String,
    last_at_ms: u64,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &StatusArgs) -> Result<ExitStatus, CommandError> {
    let now = cellar::now();
    let folder = cellar.folder()?;
    let switch = Switch::at(Some(folder), now);
    let seen = look(cellar, now)?;
    // `doctor` tells of a safe that cannot be opened.
    let saved = Safe::of(cellar).seen(ui.lang()).ok().flatten();
    match args.json {
        true => ui.json(&WireStatus {
            vault: saved.map(WireVault::from),
            ..wire(cellar, folder, switch, seen.as_ref())
        })?,
        false => {
            let text = in_words(cellar, folder, switch, seen.as_ref(), saved.as_ref(), now, ui.lang());
            ui.say(&text)?;
        }
    }
    Ok(ExitStatus::Success)
}

fn look(cellar: &Cellar, now: u64) -> Result<Option<Seen>, CommandError> {
    let store = match cellar.to_read() {
        Err(CommandError::Store(StoreError::Missing { .. })) => return Ok(None),
        store => store?,
    };
    let today = store.glance(now - now % DAY_MS)?;
    Ok(Some(Seen { size: store.size()?, today, hosts: store.hosts()? }))
}

fn wire<'a>(cellar: &Cellar, folder: &'a Path, switch: Switch, seen: Option<&'a Seen>) -> WireStatus<'a> {
    let until = match switch {
        Switch::Paused(until) => Some(until),
        Switch::On | Switch::Disabled => None,
    };
    let (ladder, hook) = (cellar.settings.ladder(), cellar.settings.hook());
    WireStatus {
        state: switch.word(),
        until: until.map(time::iso),
        until_ms: until,
        hook_enabled: hook.enabled,
        mode: ladder.mode.word(),
        tools: Some(ladder.tools.to_string()).filter(|_| !ladder.tools.0.is_empty()),
        attended: match hook.attended {
            Attended::Auto => "auto",
            Attended::Yes => "yes",
            Attended::No => "no",
        },
        version: env!("CARGO_PKG_VERSION"),
        folder,
        store: seen.map(WireSeen::from),
        vault: None,
    }
}

impl From<SafeSeen> for WireVault {
    fn from(saved: SafeSeen) -> WireVault {
        WireVault {
            snapshots: saved.snapshots,
            bytes: saved.bytes,
            oldest_at: saved.oldest.map(time::iso),
            oldest_at_ms: saved.oldest,
        }
    }
}

impl<'a> From<&'a Seen> for WireSeen<'a> {
    fn from(seen: &'a Seen) -> WireSeen<'a> {
        let Glance { sessions, calls, failed, hints, denials, false_alarms, own_faults } = seen.today;
        let agents = seen.hosts.iter().map(|host| WireHost {
            agent: &host.host,
            sessions: host.sessions,
            last_at: time::iso(host.last_at),
            last_at_ms: host.last_at,
        });
        WireSeen {
            bytes: seen.size.database + seen.size.log,
            spool_bytes: seen.size.spool,
            today: WireGlance { sessions, calls, failed, hints, denials, false_alarms, own_faults },
            agents: agents.collect(),
        }
    }
}

fn in_words(
    cellar: &Cellar,
    folder: &Path,
    switch: Switch,
    seen: Option<&Seen>,
    saved: Option<&SafeSeen>,
    now: u64,
    lang: Lang,
) -> String {
    let ladder = cellar.settings.ladder();
    let mut rows: Vec<(&str, String)> = Vec::new();
    let name = |en: &'static str, zh: &'static str| match lang {
        Lang::En => en,
        Lang::Zh => zh,
    };
    rows.push(("unstuck", format!("{} ({})", state(switch, cellar, lang), env!("CARGO_PKG_VERSION"))));
    let mut mode = format!("{}: {}", ladder.mode.word(), mode_words(ladder.mode, lang));
    if !ladder.tools.0.is_empty() {
        mode = format!("{mode} ({})", plain::line(&ladder.tools.to_string()));
    }
    rows.push((name("mode", "模式"), mode));
    let folder = plain::line(&folder.to_string_lossy()).into_owned();
    let safe = saved.map(|saved| (name("safe", "保险库"), saved.in_words(now, lang)));
    let Some(seen) = seen else {
        rows.push((name("store", "存储"), folder));
        rows.extend(safe);
        rows.push((name("today", "今天"), name("nothing is recorded yet", "尚无记录").to_owned()));
        return laid_out(&rows);
    };
    let size = removed::size(seen.size.database + seen.size.log);
    let waiting = match (seen.size.spool, lang) {
        (0, _) => String::new(),
        (bytes, Lang::En) => format!(", {} wait in the spool", removed::size(bytes)),
        (bytes, Lang::Zh) => format!("，暂存区有 {}", removed::size(bytes)),
    };
    rows.push((name("store", "存储"), format!("{folder} ({size}{waiting})")));
    rows.extend(safe);
    rows.push((name("today", "今天"), today(&seen.today, lang)));
    for (index, host) in seen.hosts.iter().enumerate() {
        let label = if index == 0 { name("last heard", "最近收到") } else { "" };
        let host_name = columns::left(&plain::short(&host.host, 20), 9);
        rows.push((label, format!("{host_name} {}", moment::ago(host.last_at, now, lang))));
    }
    laid_out(&rows)
}

fn laid_out(rows: &[(&str, String)]) -> String {
    let line = |(name, value): &(&str, String)| format!("{} {value}\n", columns::left(name, 11));
    rows.iter().map(line).collect()
}

fn state(switch: Switch, cellar: &Cellar, lang: Lang) -> String {
    match (switch, cellar.settings.hook().enabled, lang) {
        (Switch::Disabled, _, Lang::En) => format!("off here: {} is set", switch::VARIABLE),
        (Switch::Disabled, _, Lang::Zh) => format!("在此处关闭：设置了 {}", switch::VARIABLE),
        (Switch::Paused(until), _, Lang::En) => format!("paused until {}", moment::format_utc(until)),
        (Switch::Paused(until), _, Lang::Zh) => format!("已暂停至 {}", moment::format_utc(until)),
        (Switch::On, false, Lang::En) => "off: hook.enabled is false".to_owned(),
        (Switch::On, false, Lang::Zh) => "已关闭：hook.enabled 为 false".to_owned(),
        (Switch::On, true, Lang::En) => "on".to_owned(),
        (Switch::On, true, Lang::Zh) => "已开启".to_owned(),
    }
}

fn mode_words(mode: crate::settings::Mode, lang: Lang) -> &'static str {
    use crate::settings::Mode;
    match (mode, lang) {
        (Mode::Shadow, Lang::En) => "records, says nothing",
        (Mode::Shadow, Lang::Zh) => "只记录，不说话",
        (Mode::Advise, Lang::En) => "gives hints, refuses nothing",
        (Mode::Advise, Lang::Zh) => "给出提示，不拒绝",
        (Mode::Enforce, Lang::En) => "gives hints, refuses what cannot work",
        (Mode::Enforce, Lang::Zh) => "给出提示，拒绝行不通的调用",
    }
}

fn today(today: &Glance, lang: Lang) -> String {
    let mut text = match lang {
        Lang::En => format!(
            "{} in {}, {} failed; {}, {}",
            counted(today.calls, ["call", "calls"]),
            counted(today.sessions, ["session", "sessions"]),
            today.failed,
            counted(today.hints, ["hint", "hints"]),
            counted(today.denials, ["denial", "denials"]),
        ),
        Lang::Zh => format!(
            "{} 个会话，{} 次调用，{} 次失败；提示 {} 次，拒绝 {} 次",
            today.sessions, today.calls, today.failed, today.hints, today.denials
        ),
    };
    if today.false_alarms > 0 {
        text += &match lang {
            Lang::En => format!(" ({} proven wrong)", today.false_alarms),
            Lang::Zh => format!("（其中 {} 次被证明有误）", today.false_alarms),
        };
    }
    if today.own_faults > 0 {
        text += &match lang {
            Lang::En => {
                let faults = counted(today.own_faults, ["fault of our own", "faults of our own"]);
                format!("; {faults} (`unstuck doctor`)")
            }
            Lang::Zh => format!("；自身故障 {} 次（`unstuck doctor`）", today.own_faults),
        };
    }
    text
}
