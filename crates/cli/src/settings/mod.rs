//! Settings: six layers laid over each other, and for every value the memory of where it comes from.
//!
//! Weakest first: what is built in, the system's file, the user's file, the project's file, variables, flags. Each file is
//! read at most once. A project's file may only tighten; nothing it says is ever run, contacted or opened.

mod around;
mod assignments;
mod entry_mistake;
mod error;
mod key;
mod layer;
mod path_patterns;
mod quoted;
mod retry_cells;
mod rewrite_rows;
mod sections;
mod tools;
mod value;
mod written;
mod written_agent;
mod written_alert;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;

use unstuck_judge::retry::Policy;
use unstuck_store::AlertRule;

pub(crate) use around::{Around, config_folder};
pub(crate) use assignments::assignments;
pub(crate) use error::SettingsError;
pub(crate) use key::{Key, Project};
pub(crate) use layer::{Layer, Place};
pub(crate) use quoted::{harmless, harmless_path, quoted};
pub(crate) use retry_cells::RetryCell;
pub(crate) use sections::{
    Attended, Filesystem, HookSettings, Mode, OutputSettings, People, Protect, RewriteMode, RewriteSettings,
    StateDir, VaultSettings,
};
pub(crate) use value::{Folder, Time, Value, time};
use written::Written;
pub(crate) use written_agent::WrittenAgent;
use written_alert::WrittenAlert;

/// The built-in defaults, as a file people can read. The plain values also stand in the table of keys, so that a hook does
/// not parse this at its start; a test holds the two equal. The built-in alerts are read from here when they are needed.
const DEFAULTS: &str = include_str!("defaults.toml");

/// All settings, and where each comes from.
#[derive(Debug)]
pub(crate) struct Settings {
    /// What was set beyond the defaults, weakest first.
    values: Vec<Setting>,
    alerts: Alerts,
    /// The stronger layer last.
    agents: Vec<WrittenAgent>,
    /// The stronger layer last.
    retry: Vec<RetryCell>,
    state_folder: Option<PathBuf>,
}

/// One value in one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) key: Key,
    pub(crate) value: Value,
    pub(crate) layer: Layer,
    pub(crate) place: Place,
}

/// One alert, and the strongest layer that says something of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SetAlert {
    pub(crate) rule: AlertRule,
    pub(crate) layer: Layer,
    pub(crate) place: Place,
}

#[derive(Debug)]
enum Alerts {
    /// Nobody wrote any; the built-in ones need not be read before somebody asks.
    BuiltIn,
    Merged(Vec<SetAlert>),
}

impl Settings {
    /// What is built in, and nothing else.
    pub(crate) fn built_in() -> Settings {
        Settings {
            values: Vec::new(),
            alerts: Alerts::BuiltIn,
            agents: Vec::new(),
            retry: Vec::new(),
            state_folder: None,
        }
    }

    /// Loads all layers. The first mistake is the answer: a command does not guess what was meant.
    pub(crate) fn load(around: &Around, flags: &[String]) -> Result<Settings, SettingsError> {
        let (settings, mistakes) = Settings::load_leniently(around, flags);
        match mistakes.into_iter().next() {
            Some(mistake) => Err(mistake),
            None => Ok(settings),
        }
    }

    /// Loads all layers and leaves out what is wrong. For hooks, which may not fail, and for whoever mends a file.
    pub(crate) fn load_leniently(around: &Around, flags: &[String]) -> (Settings, Vec<SettingsError>) {
        let mut settings = Settings { state_folder: around.state_folder.clone(), ..Settings::built_in() };
        let mut mistakes = Vec::new();
        let mut alerts = Vec::new();
        let home = around.home.as_deref();
        let user = around.user_file();
        let project = around.project_file();
        let files = [
            (Layer::System, Some(&around.system_file)),
            (Layer::User, user.as_ref()),
            (Layer::Project, project.as_ref()),
        ];
        for (layer, path) in files {
            let Some(path) = path else { continue };
            let mut written = Written::in_file(path, layer, home);
            alerts.append(&mut written.alerts);
            settings.agents.append(&mut written.agents);
            settings.take(layer, written, &mut mistakes);
        }
        settings.take(Layer::Environment, Written::in_environment(around), &mut mistakes);
        settings.take(Layer::Flags, Written::in_flags(flags, home), &mut mistakes);
        if !alerts.is_empty() {
            settings.alerts = Alerts::Merged(merged(alerts, &mut mistakes));
        }
        (settings, mistakes)
    }

    fn take(&mut self, layer: Layer, written: Written, mistakes: &mut Vec<SettingsError>) {
        mistakes.extend(written.mistakes);
        self.retry.extend(written.retry);
        for (key, value, place) in written.values {
            match self.refusal(layer, key, &value, &place) {
                Some(refusal) => mistakes.push(refusal),
                None => {
                    let value = self.laid_over(layer, key, value);
                    self.values.push(Setting { key, value, layer, place });
                }
            }
        }
    }

    /// What a project says of tools comes beside what the person says of others; everything else takes the place of what was
    /// there.
    fn laid_over(&self, layer: Layer, key: Key, value: Value) -> Value {
        match (layer, self.value(key), value) {
            (Layer::Project, Value::Tools(person), Value::Tools(project)) => {
                Value::Tools(person.with(&project))
            }
            (_, _, value) => value,
        }
    }

    /// Whether a project may say this.
    fn project_may(&self, key: Key, current: &Value, value: &Value) -> bool {
        match (current, value) {
            (Value::Tools(person), Value::Tools(project)) => {
                // The project's own mode is no part of what the person set.
                let mut set = self.values.iter().rev().filter(|setting| setting.layer < Layer::Project);
                let others = set.find(|setting| setting.key == Key::LadderMode);
                let others = match others.map_or_else(|| Key::LadderMode.default(), |set| set.value.clone()) {
                    Value::Word(word) => sections::mode(word),
                    _ => Mode::Enforce,
                };
                person.loosened_by(project, others).is_none()
            }
            _ => key.row().project.allows(current, value, key.row().shape),
        }
    }

    /// Why a layer may not set this, if it may not.
    fn refusal(&self, layer: Layer, key: Key, value: &Value, place: &Place) -> Option<SettingsError> {
        let row = key.row();
        let current = self.value(key);
        if layer != Layer::Project || self.project_may(key, &current, value) {
            return None;
        }
        let place = place.clone();
        Some(match row.project {
            Project::Never => SettingsError::NotForProjects { place, name: row.name.to_owned() },
            Project::Lower | Project::Off | Project::Later | Project::Earlier => SettingsError::Loosens {
                place,
                name: row.name,
                found: value.to_string(),
                current: current.to_string(),
                may: row.project,
            },
        })
    }

    /// The value that counts.
    fn value(&self, key: Key) -> Value {
        self.set(key).map_or_else(|| key.default(), |setting| setting.value.clone())
    }

    /// The strongest layer that sets it, if one does.
    fn set(&self, key: Key) -> Option<&Setting> {
        self.values.iter().rev().find(|setting| setting.key == key)
    }

    /// The value that counts, with where it comes from.
    pub(crate) fn setting(&self, key: Key) -> Setting {
        self.set(key).cloned().unwrap_or_else(|| built_in(key))
    }

    /// What every layer says of it, weakest first.
    pub(crate) fn in_every_layer(&self, key: Key) -> Vec<Setting> {
        let set = self.values.iter().filter(|setting| setting.key == key).cloned();
        [built_in(key)].into_iter().chain(set).collect()
    }

    /// What is set of this agent program, the stronger layers laid over the weaker ones.
    pub(crate) fn agent(&self, name: &str) -> Option<WrittenAgent> {
        let layers = self.agents.iter().filter(|agent| agent.name == name).cloned();
        layers.reduce(|weaker, stronger| stronger.over(weaker))
    }

    /// The names of all agent programs that something is set of.
    pub(crate) fn agent_names(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().map(|agent| &*agent.name)
    }

    /// What is set of all of them, by name.
    pub(crate) fn agents(&self) -> Vec<WrittenAgent> {
        let names: BTreeSet<&str> = self.agent_names().collect();
        names.into_iter().filter_map(|name| self.agent(name)).collect()
    }

    /// The cells of the table of retries and waits that are set, each once, the strongest layer's.
    pub(crate) fn retry_cells(&self) -> Vec<&RetryCell> {
        let is_last = |at: usize, cell: &RetryCell| {
            !self.retry[at + 1..].iter().any(|stronger| stronger.name() == cell.name())
        };
        self.retry.iter().enumerate().filter(|(at, cell)| is_last(*at, cell)).map(|(_, cell)| cell).collect()
    }

    /// The table of retries and waits with all that is set of it, and of single agents.
    pub(crate) fn retry_policy(&self) -> Cow<'static, Policy> {
        let mut policy = Cow::Borrowed(Policy::built_in());
        for cell in &self.retry {
            // One that does not fit was told when it was read.
            if let Ok(laid_over) = policy.overlaid(&cell.text()) {
                policy = Cow::Owned(laid_over);
            }
        }
        for (agent, retries) in self.agents.iter().filter_map(|agent| Some((&agent.name, agent.retries?))) {
            policy = Cow::Owned(policy.into_owned().with_agent(agent, retries));
        }
        policy
    }

    /// All alerts, those that are switched off as well.
    pub(crate) fn alerts(&self) -> Vec<SetAlert> {
        match &self.alerts {
            Alerts::BuiltIn => {
                built_in_alerts().into_iter().filter_map(|alert| set_alert(alert).ok()).collect()
            }
            Alerts::Merged(alerts) => alerts.clone(),
        }
    }
}

fn built_in(key: Key) -> Setting {
    Setting { key, value: key.default(), layer: Layer::BuiltIn, place: Place::BuiltIn }
}

fn built_in_alerts() -> Vec<WrittenAlert> {
    Written::built_in(DEFAULTS).alerts
}

fn set_alert(alert: WrittenAlert) -> Result<SetAlert, SettingsError> {
    let (layer, place) = (alert.layer, alert.place.clone());
    alert.rule().map(|rule| SetAlert { rule, layer, place })
}

/// Lays alerts over those of the same name in weaker layers. One that cannot be understood leaves the weaker one standing.
fn merged(written: Vec<WrittenAlert>, mistakes: &mut Vec<SettingsError>) -> Vec<SetAlert> {
    let mut sound = built_in_alerts();
    for alert in written {
        let at = sound.iter().position(|weaker| weaker.name == alert.name);
        let whole = match at {
            Some(at) => alert.over(sound[at].clone()),
            None => alert,
        };
        match (whole.clone().rule(), at) {
            (Ok(_), Some(at)) => sound[at] = whole,
            (Ok(_), None) => sound.push(whole),
            (Err(mistake), _) => mistakes.push(mistake),
        }
    }
    sound.into_iter().filter_map(|alert| set_alert(alert).ok()).collect()
}
