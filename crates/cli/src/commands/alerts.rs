//! `unstuck alerts`: the rules and where they stand, what fired, and whether those who are to be told can be reached.

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_store::{
    AlertLook, AlertRule, AlertWhen, Delivery, DeliveryOutcome, DeliveryState, FiredAlert, Recipient,
    StoreError,
};
use unstuck_wire::time;

use crate::cellar::{self, Cellar};
use crate::columns::{self, Side};
use crate::deliver::{self, WireAlert};
use crate::exit::{CommandError, ExitStatus};
use crate::moment;
use crate::nearest::nearest;
use crate::plain;
use crate::settings::Time;
use crate::ui::Ui;

/// How many fired alerts a person is shown.
const SHOWN: u32 = 20;

/// Show alert rules and where they stand, and the alerts that fired
///
/// Rules come from the settings (`unstuck config`, docs/alerts.md). They are looked at and delivered by `unstuck heartbeat`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck alerts                     rules with their values, and the last alerts that fired
  unstuck alerts list --json         all of it, one object per line
  unstuck alerts test                send a marked test alert through every channel of every rule
  unstuck alerts test failure-rate   only through those of one rule")]
pub(crate) struct AlertsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// One JSON object per line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show rules and fired alerts (the default)
    List,
    /// Send a marked test alert, and say what came of it (exit 1 if one did not arrive)
    Test {
        /// Only this rule
        name: Option<String>,
    },
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &AlertsArgs) -> Result<ExitStatus, CommandError> {
    match &args.action {
        None | Some(Action::List) => list(ui, cellar, args.json),
        Some(Action::Test { name }) => test(ui, cellar, name.as_deref(), args.json),
    }
}

/// The rules, without where they were set.
pub(crate) fn rules(cellar: &Cellar) -> Vec<AlertRule> {
    cellar.settings.alerts().into_iter().map(|alert| alert.rule).collect()
}

#[derive(Serialize)]
struct WireRule<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    enabled: bool,
    when: &'static str,
    within_ms: u64,
    window: String,
    window_ms: u64,
    value: f64,
    limit: f64,
    over: bool,
    tells: Vec<&'static str>,
}

/// A fired alert with its deliveries.
#[derive(Serialize)]
pub(crate) struct WireFired<'a> {
    #[serde(flatten)]
    alert: WireAlert<'a>,
    deliveries: Vec<WireDelivery<'a>>,
}

#[derive(Serialize)]
struct WireDelivery<'a> {
    to: &'a str,
    state: &'static str,
    tries: u32,
    done_at: Option<String>,
    done_at_ms: Option<u64>,
    next_at: Option<String>,
    next_at_ms: Option<u64>,
    error: Option<&'a str>,
}

impl<'a> WireFired<'a> {
    pub(crate) fn new(alert: &'a FiredAlert) -> WireFired<'a> {
        let deliveries = alert.deliveries.iter().map(WireDelivery::from).collect();
        WireFired { alert: WireAlert::new(alert, false), deliveries }
    }
}

impl<'a> From<&'a Delivery> for WireDelivery<'a> {
    fn from(delivery: &'a Delivery) -> WireDelivery<'a> {
        let (state, done_at, next_at) = match delivery.state {
            DeliveryState::Done { at } => ("arrived", Some(at), None),
            DeliveryState::Waiting { until } => ("waiting", None, Some(until)),
            DeliveryState::GivenUp => ("given_up", None, None),
        };
        let next_at = next_at.filter(|at| *at > 0);
        WireDelivery {
            to: &delivery.to,
            state,
            tries: delivery.tries,
            done_at: done_at.map(time::iso),
            done_at_ms: done_at,
            next_at: next_at.map(time::iso),
            next_at_ms: next_at,
            error: Some(&*delivery.error).filter(|error| !error.is_empty()),
        }
    }
}

fn list(ui: &mut Ui, cellar: &Cellar, json: bool) -> Result<ExitStatus, CommandError> {
    // Rules come from the settings, so there is something to show before anything is recorded.
    let store = match cellar.to_read() {
        Err(CommandError::Store(StoreError::Missing { .. })) => None,
        store => Some(store?),
    };
    let now = cellar::now();
    let rules = rules(cellar);
    let mut looks = Vec::new();
    for rule in &rules {
        let look = match &store {
            Some(store) => store.look(rule, now)?,
            None => nothing_yet(rule, now),
        };
        looks.push((rule, look));
    }
    if json {
        for (rule, look) in &looks {
            ui.json(&wire_rule(rule, look))?;
        }
        if let Some(store) = &store {
            store.each_fired_alert(|alert| ui.json(&WireFired::new(&alert)))?;
        }
        return Ok(ExitStatus::Success);
    }
    let lang = ui.lang();
    let mut rows = vec![head(lang)];
    rows.extend(looks.iter().map(|(rule, look)| row(rule, look, lang)));
    ui.say(&columns::table(
        &[Side::Left, Side::Right, Side::Right, Side::Right, Side::Left, Side::Left],
        &rows,
    ))?;
    let fired = store.as_ref().map(|store| store.fired_alerts(None, SHOWN)).transpose()?;
    ui.say(match (fired.as_deref(), lang) {
        (None, Lang::En) => "\nnothing is recorded yet\n",
        (None, Lang::Zh) => "\n尚无记录\n",
        (Some([]), Lang::En) => "\nno alert has fired\n",
        (Some([]), Lang::Zh) => "\n没有触发过告警\n",
        (Some([_, ..]), Lang::En) => "\nfired, the newest first:\n",
        (Some([_, ..]), Lang::Zh) => "\n已触发（最新的在前）：\n",
    })?;
    for alert in fired.iter().flatten() {
        ui.say(&in_words(alert, &rules, lang))?;
    }
    Ok(ExitStatus::Success)
}

/// Where a rule stands while nothing is recorded.
fn nothing_yet(rule: &AlertRule, now: u64) -> AlertLook {
    let limit = match &rule.when {
        AlertWhen::Failures { more_than } | AlertWhen::Event { more_than, .. } => *more_than as f64,
        AlertWhen::Rate { factor, .. } => *factor,
    };
    AlertLook { window: rule.window_at(now), value: 0.0, limit, is_over: false }
}

/// A number as its rule counts it: of a rate, by what factor it grew.
fn value_of(when: &AlertWhen, value: f64) -> String {
    match when {
        AlertWhen::Failures { .. } | AlertWhen::Event { .. } => value.to_string(),
        AlertWhen::Rate { .. } => format!("× {value:.1}"),
    }
}

/// An alert that fired, by name, value and window: `halted (1 in 1h from 2026-11-15 12:00:00Z)`. Of a rule that is gone, nobody
/// knows any more how long its windows were.
pub(crate) fn fired_line(rules: &[AlertRule], alert: &FiredAlert, lang: Lang) -> String {
    let (name, from) = (plain::line(&alert.name), moment::format_utc(alert.window));
    match (rules.iter().find(|rule| rule.name == alert.name), lang) {
        (Some(rule), Lang::En) => {
            let (value, within) = (value_of(&rule.when, alert.value), Time(rule.within));
            format!("{name} ({value} in {within} from {from})")
        }
        (Some(rule), Lang::Zh) => {
            let (value, within) = (value_of(&rule.when, alert.value), Time(rule.within));
            format!("{name}（{from} 起 {within} 内：{value}）")
        }
        (None, Lang::En) => format!("{name} ({} from {from} on)", alert.value),
        (None, Lang::Zh) => format!("{name}（{from} 起：{}）", alert.value),
    }
}

fn wire_rule<'a>(rule: &'a AlertRule, look: &AlertLook) -> WireRule<'a> {
    WireRule {
        kind: "rule",
        name: &rule.name,
        enabled: rule.enabled,
        when: match rule.when {
            AlertWhen::Failures { .. } => "failures",
            AlertWhen::Rate { .. } => "rate",
            AlertWhen::Event { .. } => "event",
        },
        within_ms: time::span_ms(rule.within),
        window: time::iso(look.window),
        window_ms: look.window,
        value: look.value,
        limit: look.limit,
        over: rule.enabled && look.is_over,
        tells: tells(rule),
    }
}

fn tells(rule: &AlertRule) -> Vec<&'static str> {
    let command = (!rule.command.is_empty()).then_some(Recipient::Command.word());
    let webhook = rule.webhook.is_some().then_some(Recipient::Webhook.word());
    ["timeline"].into_iter().chain(command).chain(webhook).collect()
}

fn head(lang: Lang) -> Vec<String> {
    let words = match lang {
        Lang::En => ["rule", "now", "limit", "within", "tells", "state"],
        Lang::Zh => ["规则", "当前", "上限", "时段", "通知", "状态"],
    };
    words.map(str::to_owned).to_vec()
}

fn row(rule: &AlertRule, look: &AlertLook, lang: Lang) -> Vec<String> {
    let value = value_of(&rule.when, look.value);
    let limit = match rule.when {
        AlertWhen::Failures { .. } | AlertWhen::Event { .. } => format!("> {}", look.limit),
        AlertWhen::Rate { .. } => format!("× {}", look.limit),
    };
    let state = match (rule.enabled, look.is_over, lang) {
        (false, _, Lang::En) => "off",
        (false, _, Lang::Zh) => "已关闭",
        (true, true, Lang::En) => "over",
        (true, true, Lang::Zh) => "超出",
        (true, false, Lang::En) => "fine",
        (true, false, Lang::Zh) => "正常",
    };
    let name = plain::line(&rule.name).into_owned();
    vec![name, value, limit, Time(rule.within).to_string(), tells(rule).join(", "), state.to_owned()]
}

fn in_words(alert: &FiredAlert, rules: &[AlertRule], lang: Lang) -> String {
    let at = moment::format_utc(alert.at);
    let mut text = format!("{at}  {}  {}\n", fired_line(rules, alert, lang), plain::line(&alert.text));
    for delivery in &alert.deliveries {
        let how = match (delivery.state, lang) {
            (DeliveryState::Done { at }, Lang::En) => format!("arrived {}", moment::format_utc(at)),
            (DeliveryState::Done { at }, Lang::Zh) => format!("已送达 {}", moment::format_utc(at)),
            (DeliveryState::Waiting { .. }, Lang::En) if delivery.tries == 0 => {
                "waits for `unstuck heartbeat`".to_owned()
            }
            (DeliveryState::Waiting { .. }, Lang::Zh) if delivery.tries == 0 => {
                "等待 `unstuck heartbeat`".to_owned()
            }
            (DeliveryState::Waiting { until }, Lang::En) => {
                format!("failed {}×, again after {}", delivery.tries, moment::format_utc(until))
            }
            (DeliveryState::Waiting { until }, Lang::Zh) => {
                format!("失败 {} 次，{} 之后重试", delivery.tries, moment::format_utc(until))
            }
            (DeliveryState::GivenUp, Lang::En) => format!("given up after {}×", delivery.tries),
            (DeliveryState::GivenUp, Lang::Zh) => format!("{} 次之后放弃", delivery.tries),
        };
        let because = match delivery.error.is_empty() {
            true => String::new(),
            false => format!(": {}", plain::line(&delivery.error)),
        };
        text.push_str(&format!("    {}: {how}{because}\n", plain::line(&delivery.to)));
    }
    text
}

#[derive(Serialize)]
struct WireTest<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    to: &'static str,
    arrived: bool,
    error: Option<&'a str>,
}

fn test(ui: &mut Ui, cellar: &Cellar, name: Option<&str>, json: bool) -> Result<ExitStatus, CommandError> {
    let rules = rules(cellar);
    if let Some(name) = name.filter(|name| rules.iter().all(|rule| rule.name != *name)) {
        let nearest = nearest(name, rules.iter().map(|rule| &*rule.name)).map(str::to_owned);
        return Err(CommandError::NoSuchAlert { name: name.to_owned(), nearest });
    }
    let cleaner = cellar.cleaner();
    let (lang, now) = (ui.lang(), cellar::now());
    let (mut tried, mut failed) = (0, 0);
    for rule in rules.iter().filter(|rule| name.is_none_or(|name| rule.name == name)) {
        let alert = FiredAlert {
            id: 0,
            key: format!("test-{}@{now}", rule.name),
            name: rule.name.clone(),
            window: rule.window_at(now),
            at: now,
            value: 0.0,
            text: format!("{}{}", if lang == Lang::En { "[test] " } else { "[测试] " }, rule.say(lang)),
            deliveries: Vec::new(),
        };
        for to in Recipient::ALL.iter().copied().filter(|to| tells(rule).contains(&to.word())) {
            tried += 1;
            let error = match deliver::deliver(rule, to, &WireAlert::new(&alert, true), &cleaner) {
                DeliveryOutcome::Arrived => None,
                DeliveryOutcome::Failed(why) | DeliveryOutcome::Hopeless(why) => Some(why),
            };
            failed += u32::from(error.is_some());
            let error = error.as_deref();
            match json {
                true => {
                    let arrived = error.is_none();
                    ui.json(&WireTest { kind: "test", name: &rule.name, to: to.word(), arrived, error })?;
                }
                false => {
                    let how = match (error, lang) {
                        (None, Lang::En) => "arrived".to_owned(),
                        (None, Lang::Zh) => "已送达".to_owned(),
                        (Some(why), Lang::En) => format!("failed: {}", plain::line(why)),
                        (Some(why), Lang::Zh) => format!("失败：{}", plain::line(why)),
                    };
                    ui.say(&format!("{} → {}: {how}\n", rule.name, to.word()))?;
                }
            }
        }
    }
    if tried == 0 && !json {
        ui.say(&match (name, lang) {
            (None, Lang::En) => {
                "no rule names a command or a webhook: alerts are told on the timeline alone\n".to_owned()
            }
            (None, Lang::Zh) => "没有规则指定命令或 webhook：告警只写入时间线\n".to_owned(),
            (Some(name), Lang::En) => {
                format!("{name} names neither a command nor a webhook: it is told on the timeline alone\n")
            }
            (Some(name), Lang::Zh) => format!("{name} 没有指定命令或 webhook：它只写入时间线\n"),
        })?;
    }
    Ok(if failed == 0 { ExitStatus::Success } else { ExitStatus::No })
}
