//! One row per agent program.

use std::time::Duration;

use serde_json::{Value, json};
use unstuck_wire::hook::Host;

use super::version::{Reported, Version};
use crate::editing::{Dialect, Layout, Wanted};

/// No hook waits longer than this before a call is sent again.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(8);

/// An agent program.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) host: Host,
    /// What its makers call it.
    pub(crate) name: &'static str,
    /// Its programs, the likeliest first.
    pub(crate) programs: &'static [&'static str],
    pub(crate) home: Home,
    /// Below its folder in the user's home.
    pub(crate) user_file: &'static str,
    /// Below the root of a project.
    pub(crate) project_file: &'static str,
    pub(crate) carrier: Carrier,
    pub(crate) events: &'static [Event],
    /// Was all of this seen on the program itself? Otherwise it stands in its documentation.
    pub(crate) verified: bool,
}

/// Where its own folder is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Home {
    /// The variable names it; otherwise it is this one in the home.
    Named { variable: &'static str, folder: &'static str },
    /// It lies in the folder that the variable names, or in the home.
    In { variable: &'static str, folder: &'static str },
    /// It lies in the home.
    Fixed { folder: &'static str },
    /// It lies among the user's configurations.
    Config { folder: &'static str },
}

/// How it is told to call us.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Carrier {
    /// By entries in a file of settings.
    Entries { layout: Layout, dialect: Dialect, entry: EntryKind },
    /// By a file of its own that it loads.
    Plugin,
}

/// The keys of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// `type`, `command`, `timeout` in seconds.
    Seconds,
    /// The same with a `name`.
    NamedSeconds,
    /// The same with a `name`, and `timeout` in milliseconds.
    NamedMilliseconds,
    /// `type`, `bash`, `timeoutSec`.
    Bash,
    /// `command` and `timeout` alone.
    Bare,
}

/// An event to be told of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) name: &'static str,
    since: Since,
    pub(crate) limit: Limit,
}

/// The first version that knows an event.
#[derive(Debug, Clone, Copy)]
enum Since {
    Always,
    Version(Version),
}

/// How long the agent waits for us, and what the event is about. The limits are far above what we need, because changing one
/// later makes Codex ask its user again; they are far below what the agents would allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// A call is held up, and a snapshot may be taken.
    BeforeTool,
    /// A result is looked at, and what a protected call left behind.
    AfterTool,
    /// A result is looked at, and the same call may be sent again from there, after a wait of up to [`LONGEST_WAIT`].
    AfterToolAndAgain,
    /// Nobody calls a tool.
    Session,
    /// The agent wants to end.
    End,
}

impl Limit {
    pub(crate) const fn seconds(self) -> u64 {
        match self {
            Limit::BeforeTool | Limit::AfterTool => 30,
            Limit::AfterToolAndAgain => 40,
            Limit::Session => 5,
            Limit::End => 2,
        }
    }

    /// Is it shorter than so many seconds?
    pub(crate) fn is_below(self, seconds: f64) -> bool {
        Duration::from_secs(self.seconds()).as_secs_f64() < seconds
    }

    fn is_about_tools(self) -> bool {
        match self {
            Limit::BeforeTool | Limit::AfterTool | Limit::AfterToolAndAgain => true,
            Limit::Session | Limit::End => false,
        }
    }
}

const fn always(name: &'static str, limit: Limit) -> Event {
    Event { name, since: Since::Always, limit }
}

const fn since(name: &'static str, limit: Limit, major: u32, minor: u32, patch: u32) -> Event {
    Event { name, since: Since::Version(Version { major, minor, patch }), limit }
}

/// Every agent, in the order they are shown.
pub(crate) const AGENTS: [Agent; 7] = [
    Agent {
        host: Host::Claude,
        name: "Claude Code",
        programs: &["claude"],
        home: Home::Named { variable: "CLAUDE_CONFIG_DIR", folder: ".claude" },
        user_file: "settings.json",
        // The other file of a project is shared with everybody who works on it, and ours names a path on this machine.
        project_file: ".claude/settings.local.json",
        carrier: Carrier::Entries {
            layout: Layout::Grouped,
            dialect: Dialect::Strict,
            entry: EntryKind::Seconds,
        },
        // Before 2.1.101 one unknown name makes the whole file void, so none is written that a version might not know.
        events: &[
            always("PreToolUse", Limit::BeforeTool),
            always("PostToolUse", Limit::AfterTool),
            since("PostToolUseFailure", Limit::AfterTool, 2, 0, 56),
            since("PostToolBatch", Limit::Session, 2, 1, 118),
            since("PermissionRequest", Limit::AfterTool, 2, 0, 56),
            always("UserPromptSubmit", Limit::Session),
            always("SessionStart", Limit::Session),
            always("SubagentStop", Limit::Session),
            always("SessionEnd", Limit::End),
        ],
        verified: true,
    },
    Agent {
        host: Host::Codex,
        name: "Codex CLI",
        programs: &["codex"],
        home: Home::Named { variable: "CODEX_HOME", folder: ".codex" },
        user_file: "hooks.json",
        project_file: ".codex/hooks.json",
        carrier: Carrier::Entries {
            layout: Layout::Grouped,
            dialect: Dialect::Strict,
            entry: EntryKind::Seconds,
        },
        events: &[
            always("PreToolUse", Limit::BeforeTool),
            since("PermissionRequest", Limit::AfterTool, 0, 166, 0),
            always("PostToolUse", Limit::AfterTool),
            always("UserPromptSubmit", Limit::Session),
            always("SessionStart", Limit::Session),
            since("SubagentStop", Limit::Session, 0, 166, 0),
            since("SessionEnd", Limit::End, 0, 166, 0),
        ],
        verified: true,
    },
    Agent {
        host: Host::Gemini,
        name: "Gemini CLI",
        programs: &["gemini"],
        home: Home::In { variable: "GEMINI_CLI_HOME", folder: ".gemini" },
        user_file: "settings.json",
        project_file: ".gemini/settings.json",
        carrier: Carrier::Entries {
            layout: Layout::Grouped,
            dialect: Dialect::Commented,
            entry: EntryKind::NamedMilliseconds,
        },
        events: &[
            always("BeforeTool", Limit::BeforeTool),
            always("AfterTool", Limit::AfterToolAndAgain),
            always("BeforeAgent", Limit::Session),
            always("SessionStart", Limit::Session),
            always("SessionEnd", Limit::End),
        ],
        verified: true,
    },
    Agent {
        host: Host::Qwen,
        name: "Qwen Code",
        programs: &["qwen"],
        home: Home::Fixed { folder: ".qwen" },
        user_file: "settings.json",
        project_file: ".qwen/settings.json",
        carrier: Carrier::Entries {
            layout: Layout::Grouped,
            dialect: Dialect::Commented,
            entry: EntryKind::NamedSeconds,
        },
        events: &[
            always("PreToolUse", Limit::BeforeTool),
            always("PostToolUse", Limit::AfterTool),
            always("PostToolUseFailure", Limit::AfterTool),
            always("PostToolBatch", Limit::Session),
            always("UserPromptSubmit", Limit::Session),
            always("SessionStart", Limit::Session),
            always("SessionEnd", Limit::End),
        ],
        verified: true,
    },
    Agent {
        host: Host::Opencode,
        name: "opencode",
        programs: &["opencode"],
        home: Home::Config { folder: "opencode" },
        user_file: "plugins/unstuck.js",
        project_file: ".opencode/plugins/unstuck.js",
        carrier: Carrier::Plugin,
        events: &[
            always("tool.execute.before", Limit::BeforeTool),
            always("tool.execute.after", Limit::AfterTool),
            always("message.part.updated", Limit::AfterTool),
            always("chat.message", Limit::Session),
            always("session.deleted", Limit::End),
        ],
        verified: true,
    },
    Agent {
        host: Host::Copilot,
        name: "GitHub Copilot CLI",
        programs: &["copilot"],
        home: Home::Named { variable: "COPILOT_HOME", folder: ".copilot" },
        user_file: "hooks/unstuck.json",
        project_file: ".github/hooks/unstuck.json",
        carrier: Carrier::Entries { layout: Layout::Flat, dialect: Dialect::Strict, entry: EntryKind::Bash },
        events: &[
            always("preToolUse", Limit::BeforeTool),
            always("postToolUse", Limit::AfterTool),
            always("postToolUseFailure", Limit::AfterTool),
            always("userPromptSubmitted", Limit::Session),
            always("sessionStart", Limit::Session),
            always("sessionEnd", Limit::End),
        ],
        verified: true,
    },
    Agent {
        host: Host::Cursor,
        name: "Cursor",
        programs: &["cursor-agent", "cursor"],
        home: Home::Fixed { folder: ".cursor" },
        user_file: "hooks.json",
        project_file: ".cursor/hooks.json",
        carrier: Carrier::Entries {
            layout: Layout::Flat,
            dialect: Dialect::Commented,
            entry: EntryKind::Bare,
        },
        // One unknown name makes the whole file void, so only those of its documentation are written.
        events: &[
            always("preToolUse", Limit::BeforeTool),
            always("postToolUse", Limit::AfterTool),
            always("postToolUseFailure", Limit::AfterTool),
            always("beforeSubmitPrompt", Limit::Session),
            always("sessionStart", Limit::Session),
            always("sessionEnd", Limit::End),
        ],
        verified: false,
    },
];

/// What events are called.
pub(crate) fn event_names(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(|event| event.name).collect()
}

impl Agent {
    /// Do its events depend on its version?
    pub(crate) fn asks_for_version(&self) -> bool {
        self.events.iter().any(|event| matches!(event.since, Since::Version(_)))
    }

    /// The events that the version knows, and those that it does not, or may not.
    pub(crate) fn events_of(&self, reported: &Reported) -> (Vec<Event>, Vec<Event>) {
        self.events.iter().partition(|event| match (event.since, reported) {
            (Since::Always, _) => true,
            (Since::Version(first), Reported::Version(version)) => *version >= first,
            (Since::Version(_), Reported::NotFound | Reported::NotAsked | Reported::Unreadable(_)) => false,
        })
    }

    /// The keys that its file needs at the top.
    pub(crate) fn top(&self) -> Vec<(&'static str, Value)> {
        match &self.carrier {
            Carrier::Entries { entry: EntryKind::Bash | EntryKind::Bare, .. } => vec![("version", json!(1))],
            Carrier::Entries { .. } | Carrier::Plugin => Vec::new(),
        }
    }

    /// What should stand under an event.
    pub(crate) fn wanted(&self, event: &Event, command: &str) -> Option<Wanted> {
        let Carrier::Entries { layout, entry, .. } = &self.carrier else { return None };
        let seconds = event.limit.seconds();
        let entry = match entry {
            EntryKind::Seconds => json!({"type": "command", "command": command, "timeout": seconds}),
            EntryKind::NamedSeconds => {
                json!({"type": "command", "name": "unstuck", "command": command, "timeout": seconds})
            }
            EntryKind::NamedMilliseconds => {
                json!({"type": "command", "name": "unstuck", "command": command, "timeout": seconds * 1000})
            }
            EntryKind::Bash => json!({"type": "command", "bash": command, "timeoutSec": seconds}),
            EntryKind::Bare => json!({"command": command, "timeout": seconds}),
        };
        let entry = match (layout, event.limit.is_about_tools()) {
            (Layout::Flat, _) => entry,
            (Layout::Grouped, true) => json!({"matcher": "*", "hooks": [entry]}),
            (Layout::Grouped, false) => json!({"hooks": [entry]}),
        };
        Some(Wanted { event: event.name, entry })
    }
}

impl EntryKind {
    /// The key under which an entry names its command line.
    pub(crate) fn command_key(self) -> &'static str {
        match self {
            EntryKind::Seconds | EntryKind::NamedSeconds | EntryKind::NamedMilliseconds | EntryKind::Bare => {
                "command"
            }
            EntryKind::Bash => "bash",
        }
    }
}
