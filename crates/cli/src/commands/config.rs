//! `unstuck config`: what is set, where it comes from, and how to change it.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};
use unstuck_judge::Lang;
use unstuck_store::AlertWhen;
use unstuck_wire::redact::redact;

use crate::columns::{self, Side};
use crate::editor;
use crate::exit::{CommandError, ExitStatus, NoPlace};
use crate::nearest::nearest;
use crate::person;
use crate::settings::{
    Around, Folder, Key, Layer, Project, RetryCell, SetAlert, Setting, Settings, SettingsError, StateDir,
    Time, Value, WrittenAgent, harmless, harmless_path, quoted,
};
use crate::ui::Ui;

/// Look at the settings, and where each comes from
///
/// Alone it does what `config show` does.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Layers, weakest first: built-in, system (/etc/unstuck/config.toml), user (config.toml in the config
folder), project (.unstuck.toml; may only tighten), environment (UNSTUCK_STORE_KEEP_EVENTS), flags
(--set store.keep-events=7d).

Examples:
  unstuck config                               every setting, its value and its layer
  unstuck config explain store.keep-events     what it means, who may set it, what every layer says
  unstuck config edit                          open your own file in $VISUAL or $EDITOR, then check it
  unstuck --set ladder.mode=advise config show see what a flag would do")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Show every setting, its value and the layer it comes from
    Show {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Explain one setting: what it means, who may set it, and what every layer says
    Explain {
        /// The setting, such as store.keep-events, or alert.NAME, or agent.NAME
        key: String,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Open a settings file in $VISUAL or $EDITOR, and check it afterwards
    Edit {
        /// The file for everybody on this machine
        #[arg(long, conflicts_with = "project")]
        system: bool,
        /// The file of the project around the working folder
        #[arg(long)]
        project: bool,
    },
    /// Show which files are read, weakest first
    Path {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(
    ui: &mut Ui,
    around: &Around,
    settings: Result<Settings, SettingsError>,
    args: &ConfigArgs,
) -> Result<ExitStatus, CommandError> {
    // A setting may be a brake.
    if let Some(Action::Edit { .. }) = &args.action {
        person::must_not_be_an_agent()?;
    }
    match &args.action {
        None => show(ui, &settings?, args.json),
        Some(Action::Show { json }) => show(ui, &settings?, *json),
        Some(Action::Explain { key, json }) => explain(ui, &settings?, key, *json),
        Some(Action::Edit { system: true, .. }) => edit(ui, around, Layer::System),
        Some(Action::Edit { project: true, .. }) => edit(ui, around, Layer::Project),
        Some(Action::Edit { .. }) => edit(ui, around, Layer::User),
        Some(Action::Path { json }) => path(ui, around, *json),
    }
}

/// A setting as it is shown.
#[derive(Serialize)]
struct Shown {
    key: String,
    value: Json,
    #[serde(serialize_with = "layer_json")]
    layer: Layer,
    source: String,
}

fn layer_json<S: Serializer>(layer: &Layer, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(layer.word())
}

/// A layer for people.
fn layer_word(layer: Layer, lang: Lang) -> &'static str {
    match (layer, lang) {
        (layer, Lang::En) => layer.word(),
        (Layer::BuiltIn, Lang::Zh) => "内置",
        (Layer::System, Lang::Zh) => "系统",
        (Layer::User, Lang::Zh) => "用户",
        (Layer::Project, Lang::Zh) => "项目",
        (Layer::Environment, Lang::Zh) => "环境变量",
        (Layer::Flags, Lang::Zh) => "命令行",
    }
}

impl Shown {
    fn of_setting(setting: &Setting, settings: &Settings) -> Shown {
        Shown {
            key: setting.key.row().name.to_owned(),
            value: value_json(&setting.value, settings),
            layer: setting.layer,
            source: setting.place.to_string(),
        }
    }

    fn of_alert(alert: &SetAlert) -> Shown {
        Shown {
            key: format!("alert.{}", alert.rule.name),
            value: alert_json(alert),
            layer: alert.layer,
            source: alert.place.to_string(),
        }
    }

    fn of_agent(agent: &WrittenAgent) -> Shown {
        Shown {
            key: format!("agent.{}", agent.name),
            value: agent_json(agent),
            layer: agent.layer,
            source: agent.place.to_string(),
        }
    }

    fn of_retry(cell: &RetryCell) -> Shown {
        Shown {
            key: cell.name(),
            value: json!(cell.value()),
            layer: cell.layer,
            source: cell.place.to_string(),
        }
    }

    /// Whether the layer says all there is to say about where it was set.
    fn is_told_by_layer(&self) -> bool {
        self.source == self.layer.word()
    }

    /// The value on one line, safe for a terminal.
    fn line(&self) -> String {
        match &self.value {
            Json::String(text) => harmless(text),
            other => other.to_string(),
        }
    }
}

/// The value; a folder is the one that is meant in the end.
fn value_json(value: &Value, settings: &Settings) -> Json {
    match (value, settings.store().state_dir) {
        (Value::Flag(on), _) => json!(on),
        (Value::Count(count), _) => json!(count),
        (Value::Folder(Folder::Auto), StateDir::At(path)) => json!(path.to_string_lossy()),
        (
            Value::Folder(_)
            | Value::Word(_)
            | Value::Time(_)
            | Value::Size(_)
            | Value::Tools(_)
            | Value::Rewrites(_)
            | Value::Patterns(_),
            _,
        ) => {
            json!(value.to_string())
        }
    }
}

/// An alert with the names a file has for its fields. Whom it tells is often a secret in itself, so an address is shown
/// up to its host, and a command without what looks like a secret.
fn alert_json(alert: &SetAlert) -> Json {
    let rule = &alert.rule;
    let mut fields = serde_json::Map::new();
    let mut put = |name: &str, value: Json| fields.insert(name.to_owned(), value);
    put("enabled", json!(rule.enabled));
    match &rule.when {
        AlertWhen::Failures { more_than } => {
            put("when", json!("failures"));
            put("more-than", json!(more_than));
        }
        AlertWhen::Rate { factor, least_calls } => {
            put("when", json!("rate"));
            put("factor", json!(factor));
            put("least-calls", json!(least_calls));
        }
        AlertWhen::Event { event, more_than } => {
            put("when", json!("event"));
            put("event", json!(event));
            put("more-than", json!(more_than));
        }
    }
    put("within", json!(Time(rule.within).to_string()));
    let only = &rule.only;
    let filters = [
        ("kind", only.kind.map(|kind| kind.word())),
        ("error-type", only.error_type),
        ("tool", only.tool.as_deref()),
        ("agent", only.agent.as_deref()),
    ];
    for (name, filter) in filters {
        if let Some(filter) = filter {
            put(name, json!(filter));
        }
    }
    put("say", json!({ "en": rule.say(Lang::En), "zh": rule.say(Lang::Zh) }));
    if !rule.command.is_empty() {
        put("command", json!(rule.command.iter().map(|word| redact(word)).collect::<Vec<_>>()));
    }
    if let Some(webhook) = &rule.webhook {
        let host = webhook.split('/').take(3).collect::<Vec<_>>().join("/");
        put("webhook", json!(format!("{host}/…")));
    }
    Json::Object(fields)
}

/// What is set of an agent, with the names a file has for its fields, without what looks like a secret.
fn agent_json(agent: &WrittenAgent) -> Json {
    let words = |words: &Option<Vec<String>>| {
        words.as_ref().map(|words| json!(words.iter().map(|word| redact(word)).collect::<Vec<_>>()))
    };
    let time = |time: Option<Duration>| time.map(|time| json!(Time(time).to_string()));
    let fields = [
        ("program", agent.program.as_ref().map(|program| json!(program))),
        ("args", words(&agent.args)),
        ("resume", words(&agent.resume)),
        ("session", agent.session.as_ref().map(|session| json!(session))),
        ("retries", agent.retries.map(|retries| json!(retries))),
        ("may-write", agent.may_write.map(|may| json!(may))),
        ("idle-timeout", time(agent.idle_timeout)),
        ("timeout", time(agent.timeout)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn show(ui: &mut Ui, settings: &Settings, as_json: bool) -> Result<ExitStatus, CommandError> {
    let plain = Key::ALL.iter().map(|key| Shown::of_setting(&settings.setting(*key), settings));
    let (alerts, lang) = (settings.alerts(), ui.lang());
    let mut rows = Vec::new();
    let agents = settings.agents();
    let named = alerts.iter().map(Shown::of_alert).chain(agents.iter().map(Shown::of_agent));
    let cells = settings.retry_cells().into_iter().map(Shown::of_retry);
    for shown in plain.chain(named).chain(cells) {
        if as_json {
            ui.json(&shown)?;
            continue;
        }
        let value = match alerts.iter().find(|alert| shown.key == format!("alert.{}", alert.rule.name)) {
            Some(alert) => harmless(&alert_line(alert, lang)),
            None => shown.line(),
        };
        let layer = layer_word(shown.layer, lang);
        let source = match shown.is_told_by_layer() {
            true => layer.to_owned(),
            false => format!("{layer} ({})", shown.source),
        };
        rows.push(vec![shown.key, value, source]);
    }
    ui.say(&columns::table(&[Side::Left; 3], &rows))?;
    Ok(ExitStatus::Success)
}

/// An alert in a few words.
fn alert_line(alert: &SetAlert, lang: Lang) -> String {
    let rule = &alert.rule;
    let within = Time(rule.within);
    match (rule.enabled, &rule.when, lang) {
        (false, _, Lang::En) => "off".to_owned(),
        (false, _, Lang::Zh) => "已关闭".to_owned(),
        (true, AlertWhen::Failures { more_than }, Lang::En) => format!("> {more_than} failures in {within}"),
        (true, AlertWhen::Failures { more_than }, Lang::Zh) => format!("{within} 内失败 > {more_than}"),
        (true, AlertWhen::Rate { factor, .. }, Lang::En) => format!("failure rate x{factor} in {within}"),
        (true, AlertWhen::Rate { factor, .. }, Lang::Zh) => format!("{within} 内失败率 x{factor}"),
        (true, AlertWhen::Event { event, more_than }, Lang::En) => {
            format!("> {more_than} {event} in {within}")
        }
        (true, AlertWhen::Event { event, more_than }, Lang::Zh) => {
            format!("{within} 内 {event} > {more_than}")
        }
    }
}

fn explain(ui: &mut Ui, settings: &Settings, name: &str, as_json: bool) -> Result<ExitStatus, CommandError> {
    if let Some(alert) = settings.alerts().iter().find(|alert| name == format!("alert.{}", alert.rule.name)) {
        let shown = Shown::of_alert(alert);
        match as_json {
            true => ui.json(&shown)?,
            false => {
                let text = explained_entry(&shown, alert.rule.say(ui.lang()), ui.lang());
                ui.say(&text)?;
            }
        }
        return Ok(ExitStatus::Success);
    }
    if let Some(agent) = settings.agents().iter().find(|agent| name == format!("agent.{}", agent.name)) {
        let shown = Shown::of_agent(agent);
        match as_json {
            true => ui.json(&shown)?,
            false => {
                let title = match ui.lang() {
                    Lang::En => "a program for `unstuck agent`",
                    Lang::Zh => "`unstuck agent` 的程序",
                };
                let text = explained_entry(&shown, title, ui.lang());
                ui.say(&text)?;
            }
        }
        return Ok(ExitStatus::Success);
    }
    if let Some(cell) = settings.retry_cells().into_iter().find(|cell| cell.name() == name) {
        let shown = Shown::of_retry(cell);
        match as_json {
            true => ui.json(&shown)?,
            false => {
                let title = match ui.lang() {
                    Lang::En => "a cell of the table of retries and waits",
                    Lang::Zh => "重试次数与等待时间表中的一格",
                };
                let text = explained_entry(&shown, title, ui.lang());
                ui.say(&text)?;
            }
        }
        return Ok(ExitStatus::Success);
    }
    let Some(key) = Key::named(name) else {
        let alerts = settings.alerts();
        let alerts = alerts.iter().map(|alert| format!("alert.{}", alert.rule.name));
        let entries: Vec<String> =
            alerts.chain(settings.agent_names().map(|agent| format!("agent.{agent}"))).collect();
        let is_entry = name.starts_with("alert") || name.starts_with("agent");
        let entry = nearest(name, entries.iter().map(String::as_str)).filter(|_| is_entry);
        let nearest = entry.or_else(|| Key::nearest(name)).map(str::to_owned);
        return Err(CommandError::NoSuchSetting { name: quoted(name), nearest });
    };
    let lang = ui.lang();
    match as_json {
        true => {
            let row = key.row();
            let layers: Vec<Shown> = settings
                .in_every_layer(key)
                .iter()
                .map(|setting| Shown::of_setting(setting, settings))
                .collect();
            ui.json(&json!({
                "key": row.name,
                "doc": row.doc(lang),
                "type": row.shape.wanted(lang),
                "default": row.default,
                "project": project_word(row.project),
                "variable": key.variable(),
                "value": value_json(&settings.setting(key).value, settings),
                "layer": settings.setting(key).layer.word(),
                "layers": layers,
            }))?;
        }
        false => {
            let text = explained(key, settings, lang);
            ui.say(&text)?;
        }
    }
    Ok(ExitStatus::Success)
}

fn project_word(project: Project) -> &'static str {
    match project {
        Project::Never => "never",
        Project::Lower => "lower",
        Project::Off => "off",
        Project::Later => "later",
        Project::Earlier => "earlier",
    }
}

fn explained(key: Key, settings: &Settings, lang: Lang) -> String {
    let row = key.row();
    let won = Shown::of_setting(&settings.setting(key), settings);
    let label = |en: &'static str, zh: &'static str| match lang {
        // A Chinese sign is as wide as two letters, and the column is measured in letters.
        Lang::En => format!("{en:<9}"),
        Lang::Zh => format!("{zh:<0$}", 9 - zh.chars().count()),
    };
    let who = match lang {
        Lang::En => "system and user file, variable, --set",
        Lang::Zh => "系统文件、用户文件、环境变量、--set",
    };
    let comma = match lang {
        Lang::En => "; ",
        Lang::Zh => "；",
    };
    let mut text = format!("{}: {}\n", row.name, row.doc(lang));
    let mut line = |label: String, value: &str| {
        let _ = writeln!(text, "  {label} {value}");
    };
    line(label("value", "当前值"), &format!("{} ({})", won.line(), layer_word(won.layer, lang)));
    line(label("type", "类型"), &row.shape.wanted(lang));
    line(label("set by", "可由"), &format!("{who}{comma}{}", row.project.words(lang)));
    line(label("variable", "环境变量"), &key.variable());
    for (index, setting) in settings.in_every_layer(key).iter().enumerate() {
        let shown = Shown::of_setting(setting, settings);
        let label = if index == 0 { label("layers", "各层") } else { label("", "") };
        let source = if shown.is_told_by_layer() { "" } else { &shown.source };
        let layer = columns::left(layer_word(shown.layer, lang), 12);
        line(label, format!("{layer} {} {source}", columns::left(&shown.line(), 12)).trim_end());
    }
    text
}

/// An alert or an agent, field by field.
fn explained_entry(shown: &Shown, title: &str, lang: Lang) -> String {
    let mut text = format!("{}: {}\n", shown.key, harmless(title));
    if let Json::String(value) = &shown.value {
        let _ = writeln!(text, "  {:<12} {}", "value", harmless(value));
    }
    if let Json::Object(fields) = &shown.value {
        for (name, value) in fields.iter().filter(|(name, _)| *name != "say") {
            let value = value.as_str().map_or_else(|| value.to_string(), harmless);
            let _ = writeln!(text, "  {name:<12} {value}");
        }
    }
    let (name, layer) = match lang {
        Lang::En => ("layer", shown.layer.word()),
        Lang::Zh => ("层", layer_word(shown.layer, lang)),
    };
    let _ = writeln!(text, "  {} {layer} ({})", columns::left(name, 12), shown.source);
    text
}

fn path(ui: &mut Ui, around: &Around, as_json: bool) -> Result<ExitStatus, CommandError> {
    let project = around.project_file().or_else(|| around.new_project_file());
    let files = [
        (Layer::System, Some(around.system_file.clone())),
        (Layer::User, around.user_file()),
        (Layer::Project, project),
    ];
    for (layer, path) in files {
        let Some(path) = path else { continue };
        let is_there = fs::symlink_metadata(&path).is_ok();
        if as_json {
            ui.json(&json!({ "layer": layer.word(), "path": path.to_string_lossy(), "exists": is_there }))?;
            continue;
        }
        let note = match (is_there, ui.lang()) {
            (true, _) => "",
            (false, Lang::En) => "  (not there)",
            (false, Lang::Zh) => "  （不存在）",
        };
        let word = columns::left(layer_word(layer, ui.lang()), 8);
        ui.say(&format!("{word} {}{note}\n", harmless_path(&path)))?;
    }
    Ok(ExitStatus::Success)
}

fn edit(ui: &mut Ui, around: &Around, layer: Layer) -> Result<ExitStatus, CommandError> {
    let path = match layer {
        Layer::System => Ok(around.system_file.clone()),
        Layer::Project => around.new_project_file().ok_or(NoPlace::WorkingFolderGone),
        Layer::BuiltIn | Layer::User | Layer::Environment | Layer::Flags => {
            around.user_file().ok_or(NoPlace::NoConfigHome)
        }
    };
    let path = path.map_err(CommandError::NoPlace)?;
    make(&path, layer, ui.lang()).map_err(|source| CommandError::NotMade { path: path.clone(), source })?;
    let went_well = editor::open(ui, &around.editor, &path)?;
    if !went_well {
        ui.remark(match ui.lang() {
            Lang::En => "unstuck: the editor failed; the file is as it left it\n",
            Lang::Zh => "unstuck: 编辑器出错；文件保持其留下的样子\n",
        })?;
    }
    // What this run's flags say is no part of the file.
    let (_, mistakes) = Settings::load_leniently(around, &[]);
    let mine: Vec<&SettingsError> = mistakes.iter().filter(|mistake| mistake.is_in(&path)).collect();
    for mistake in &mine {
        let lang = ui.lang();
        let hint = mistake.hint(lang).map(|hint| match lang {
            Lang::En => format!(" ({hint})"),
            Lang::Zh => format!("（{hint}）"),
        });
        ui.say(&format!("{}{}\n", mistake.in_words(lang), hint.unwrap_or_default()))?;
    }
    Ok(if mine.is_empty() && went_well { ExitStatus::Success } else { ExitStatus::No })
}

/// Makes the file with everything in it commented out, unless it is there. The user's own is for nobody else's eyes,
/// because it may name addresses that are secret.
fn make(path: &Path, layer: Layer, lang: Lang) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    let is_private = layer == Layer::User;
    if let Some(folder) = path.parent() {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, if is_private { 0o700 } else { 0o755 });
        builder.recursive(true).create(folder)?;
    }
    let mut options = fs::OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if is_private { 0o600 } else { 0o644 });
    options.write(true).create_new(true).open(path)?.write_all(template(layer, lang).as_bytes())
}

/// A file that sets nothing and shows everything it could set.
fn template(layer: Layer, lang: Lang) -> String {
    let is_project = layer == Layer::Project;
    let mut text = String::from(match (is_project, lang) {
        (true, Lang::En) => {
            "# Settings of unstuck for this project. It may only tighten what its users have set.\n"
        }
        (true, Lang::Zh) => "# 本项目的 unstuck 设置。项目只能收紧用户的设置。\n",
        (false, Lang::En) => {
            "# Settings of unstuck. What is commented out is the default; `unstuck config explain KEY` tells more.\n"
        }
        (false, Lang::Zh) => "# unstuck 的设置。被注释掉的是默认值；详见 `unstuck config explain KEY`。\n",
    });
    let mut section = "";
    for row in Key::ALL.iter().map(|key| key.row()) {
        if is_project && row.project == Project::Never {
            continue;
        }
        if row.section() != section {
            section = row.section();
            let _ = write!(text, "\n[{section}]\n");
        }
        let quote = if row.shape.is_quoted() { "\"" } else { "" };
        let _ = writeln!(text, "# {}\n# {} = {quote}{}{quote}", row.doc(lang), row.bare(), row.default);
    }
    if !is_project {
        text.push_str(ALERT_EXAMPLE);
    }
    text
}

const ALERT_EXAMPLE: &str = r#"
# [[alert]]
# name = "validation"
# more-than = 50
# command = ["notify-send", "unstuck"]

# [[alert]]
# name = "rate-limited"
# when = "failures"
# kind = "rate_limited"
# more-than = 20
# within = "1h"
# say = "The provider is throttling us."
# webhook = "https://hooks.example/unstuck"
"#;
