//! Settings as the program reads them: every value is there, in the type its reader wants.

use std::path::PathBuf;
use std::time::Duration;

use unstuck_judge::Lang;
use unstuck_judge::ladder::Preset;

use super::Settings;
use super::key::Key;
use super::layer::Layer;
use super::rewrite_rows::RewriteRows;
use super::tools::ToolModes;
use super::value::{Folder, Value};

/// `[store]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreSettings {
    pub(crate) state_dir: StateDir,
    pub(crate) filesystem: Filesystem,
    pub(crate) wait_before: Duration,
    pub(crate) wait_after: Duration,
    pub(crate) keep_events: Duration,
    pub(crate) keep_calls: Duration,
    /// In bytes.
    pub(crate) max_size: u64,
    pub(crate) tool_errors: bool,
    pub(crate) seal_after: Duration,
}

/// Where the store lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StateDir {
    At(PathBuf),
    /// No setting names a folder, and neither `XDG_STATE_HOME` nor `HOME` is set.
    Nowhere,
}

/// What the state folder lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filesystem {
    /// Ask the system.
    Auto,
    Local,
    Network,
}

/// `[output]`, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputSettings {
    pub(crate) head: u64,
    pub(crate) tail: u64,
    pub(crate) input: u64,
}

/// `[ladder]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LadderSettings {
    pub(crate) preset: Preset,
    /// For all tools but those that are named.
    pub(crate) mode: Mode,
    pub(crate) tools: ToolModes,
}

/// How far the ladder goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mode {
    /// It only records.
    Shadow,
    /// It also speaks.
    Advise,
    /// It also refuses and halts.
    Enforce,
}

impl Mode {
    pub(crate) fn named(word: &str) -> Option<Mode> {
        [Mode::Shadow, Mode::Advise, Mode::Enforce].into_iter().find(|mode| mode.word() == word)
    }

    /// The word for it, in files, in JSON and to people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Mode::Shadow => "shadow",
            Mode::Advise => "advise",
            Mode::Enforce => "enforce",
        }
    }
}

/// `[rewrite]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RewriteSettings {
    mode: RewriteMode,
    auto: RewriteRows,
}

impl RewriteSettings {
    /// Is anything proposed at all?
    pub(crate) fn is_on(&self) -> bool {
        self.mode != RewriteMode::Off
    }

    /// How far a row goes.
    pub(crate) fn of(&self, row: &str) -> RewriteMode {
        match self.mode {
            RewriteMode::Auto if !self.auto.contains(row) => RewriteMode::Suggest,
            mode => mode,
        }
    }
}

/// What is done with a call that can be put right without a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RewriteMode {
    /// Nothing.
    Off,
    /// It is proposed.
    Suggest,
    /// It also takes the place of a repeat.
    Auto,
}

/// `[language]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LanguageSettings {
    pub(crate) people: People,
    pub(crate) model: Lang,
}

/// The language of texts for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum People {
    /// The one of their machine.
    Auto,
    Speak(Lang),
}

/// `[problems]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProblemSettings {
    pub(crate) new_for: Duration,
    pub(crate) resolved_after: Duration,
}

/// `[hook]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HookSettings {
    pub(crate) enabled: bool,
    pub(crate) attended: Attended,
    pub(crate) hold_max: Duration,
    pub(crate) deadline_before: Duration,
    pub(crate) deadline_after: Duration,
}

/// `[vault]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VaultSettings {
    pub(crate) protect: Protect,
    pub(crate) deadline: Duration,
    pub(crate) per_target: usize,
    pub(crate) max_age: Duration,
    /// In bytes.
    pub(crate) max_size: u64,
    /// In bytes.
    pub(crate) min_free: u64,
    /// Patterns of absolute paths.
    pub(crate) never: Vec<String>,
}

/// Before which calls files are saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protect {
    /// None.
    Off,
    /// Those that can destroy something.
    Risky,
    /// Also every single edit.
    Edits,
}

/// Whether a person is there to answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attended {
    /// Go by what the agent says.
    Auto,
    Yes,
    No,
}

/// `[mcp]`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct McpSettings {
    pub(crate) check: bool,
    pub(crate) trust_hints: bool,
    pub(crate) restart: bool,
    pub(crate) hangs_after: Duration,
    /// In bytes.
    pub(crate) max_message: u64,
}

impl Settings {
    pub(crate) fn store(&self) -> StoreSettings {
        let state_dir = match self.folder(Key::StateDir) {
            Folder::At(path) => StateDir::At(path),
            Folder::Auto => self.state_folder.clone().map_or(StateDir::Nowhere, StateDir::At),
        };
        let filesystem = match self.word(Key::Filesystem) {
            "local" => Filesystem::Local,
            "network" => Filesystem::Network,
            "auto" => Filesystem::Auto,
            word => no_such_word(Key::Filesystem, word),
        };
        StoreSettings {
            state_dir,
            filesystem,
            wait_before: self.time(Key::WaitBefore),
            wait_after: self.time(Key::WaitAfter),
            keep_events: self.time(Key::KeepEvents),
            keep_calls: self.time(Key::KeepCalls),
            max_size: self.size(Key::MaxSize),
            tool_errors: self.flag(Key::ToolErrors),
            seal_after: self.time(Key::SealAfter),
        }
    }

    pub(crate) fn output(&self) -> OutputSettings {
        OutputSettings {
            head: self.size(Key::OutputHead),
            tail: self.size(Key::OutputTail),
            input: self.size(Key::OutputInput),
        }
    }

    pub(crate) fn ladder(&self) -> LadderSettings {
        let preset = self.word(Key::LadderPreset);
        LadderSettings {
            preset: preset.parse().unwrap_or_else(|_| no_such_word(Key::LadderPreset, preset)),
            mode: self.mode(),
            tools: self.tools(),
        }
    }

    /// The mode of all tools that are not named.
    fn mode(&self) -> Mode {
        mode(self.word(Key::LadderMode))
    }

    /// The modes of single tools. Whoever sets a mode for one run means all tools, whatever the files say of single ones.
    fn tools(&self) -> ToolModes {
        let is_for_this_run = |key| self.set(key).is_some_and(|set| set.layer >= Layer::Environment);
        match self.value(Key::LadderTools) {
            Value::Tools(_) if is_for_this_run(Key::LadderMode) && !is_for_this_run(Key::LadderTools) => {
                ToolModes::default()
            }
            Value::Tools(tools) => tools,
            other => no_such_shape(Key::LadderTools, &other),
        }
    }

    pub(crate) fn rewrite(&self) -> RewriteSettings {
        let mode = match self.word(Key::RewriteMode) {
            "off" => RewriteMode::Off,
            "suggest" => RewriteMode::Suggest,
            "auto" => RewriteMode::Auto,
            word => no_such_word(Key::RewriteMode, word),
        };
        let auto = match self.value(Key::RewriteAuto) {
            Value::Rewrites(rows) => rows,
            other => no_such_shape(Key::RewriteAuto, &other),
        };
        RewriteSettings { mode, auto }
    }

    pub(crate) fn language(&self) -> LanguageSettings {
        let lang = |key, word: &str| word.parse().unwrap_or_else(|_| no_such_word(key, word));
        let people = match self.word(Key::LanguagePeople) {
            "auto" => People::Auto,
            word => People::Speak(lang(Key::LanguagePeople, word)),
        };
        LanguageSettings { people, model: lang(Key::LanguageModel, self.word(Key::LanguageModel)) }
    }

    pub(crate) fn problems(&self) -> ProblemSettings {
        ProblemSettings {
            new_for: self.time(Key::ProblemsNewFor),
            resolved_after: self.time(Key::ProblemsResolvedAfter),
        }
    }

    pub(crate) fn hook(&self) -> HookSettings {
        let attended = match self.word(Key::HookAttended) {
            "auto" => Attended::Auto,
            "yes" => Attended::Yes,
            "no" => Attended::No,
            word => no_such_word(Key::HookAttended, word),
        };
        HookSettings {
            enabled: self.flag(Key::HookEnabled),
            attended,
            hold_max: self.time(Key::HookHoldMax),
            deadline_before: self.time(Key::HookDeadlineBefore),
            deadline_after: self.time(Key::HookDeadlineAfter),
        }
    }

    pub(crate) fn vault(&self) -> VaultSettings {
        let protect = match self.word(Key::VaultProtect) {
            "off" => Protect::Off,
            "risky" => Protect::Risky,
            "edits" => Protect::Edits,
            word => no_such_word(Key::VaultProtect, word),
        };
        let per_target = match self.value(Key::VaultPerTarget) {
            Value::Count(count) => usize::try_from(count).unwrap_or(usize::MAX),
            other => no_such_shape(Key::VaultPerTarget, &other),
        };
        let never = match self.value(Key::VaultNever) {
            Value::Patterns(patterns) => patterns.0,
            other => no_such_shape(Key::VaultNever, &other),
        };
        VaultSettings {
            protect,
            deadline: self.time(Key::VaultDeadline),
            per_target,
            max_age: self.time(Key::VaultMaxAge),
            max_size: self.size(Key::VaultMaxSize),
            min_free: self.size(Key::VaultMinFree),
            never,
        }
    }

    pub(crate) fn mcp(&self) -> McpSettings {
        McpSettings {
            check: self.flag(Key::McpCheck),
            trust_hints: self.flag(Key::McpTrustHints),
            restart: self.flag(Key::McpRestart),
            hangs_after: self.time(Key::McpHangsAfter),
            max_message: self.size(Key::McpMaxMessage),
        }
    }

    fn time(&self, key: Key) -> Duration {
        match self.value(key) {
            Value::Time(time) => time,
            other => no_such_shape(key, &other),
        }
    }

    fn size(&self, key: Key) -> u64 {
        match self.value(key) {
            Value::Size(size) => size,
            other => no_such_shape(key, &other),
        }
    }

    fn flag(&self, key: Key) -> bool {
        match self.value(key) {
            Value::Flag(on) => on,
            other => no_such_shape(key, &other),
        }
    }

    fn word(&self, key: Key) -> &'static str {
        match self.value(key) {
            Value::Word(word) => word,
            other => no_such_shape(key, &other),
        }
    }

    fn folder(&self, key: Key) -> Folder {
        match self.value(key) {
            Value::Folder(folder) => folder,
            other => no_such_shape(key, &other),
        }
    }
}

/// The mode that a word of the settings means.
pub(crate) fn mode(word: &str) -> Mode {
    Mode::named(word).unwrap_or_else(|| no_such_word(Key::LadderMode, word))
}

/// The table of keys and this file disagree. A test reads every word of every key, so nobody else ever sees this.
fn no_such_shape(key: Key, value: &Value) -> ! {
    panic!("{} is of another shape than {value:?}", key.row().name)
}

fn no_such_word(key: Key, word: &str) -> ! {
    panic!("{} has no meaning for {word}", key.row().name)
}
