//! One row per agent program that reaches MCP servers: which files name them, and what an entry looks like there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::agent::Home;
use super::place::{Places, Scope};
use super::server::{Call, Form, Reach};
use super::wrapping::PROJECTS;
use crate::editing::{Dialect, Syntax};

/// An agent program as a client of MCP servers.
#[derive(Debug)]
pub(crate) struct Client {
    /// How a person calls it, here and for `install`.
    pub(crate) word: &'static str,
    /// What its makers call it.
    pub(crate) name: &'static str,
    home: Home,
    /// Below its folder in the user's home.
    user_files: &'static [&'static str],
    /// Below the folders of a project.
    project_files: &'static [&'static str],
    /// The key under which servers stand.
    pub(crate) holder: &'static str,
    syntax: Syntax,
    pub(crate) form: Form,
}

/// A file that names servers.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) scope: Scope,
    pub(crate) file: PathBuf,
    pub(crate) syntax: Syntax,
    /// The keys that lead to objects of servers.
    pub(crate) holders: Vec<Vec<String>>,
}

/// `{"command": "npx", "args": [], "env": {}}`, and `{"type": "http", "url": "", "headers": {}}`.
const USUAL: Form = Form {
    call: Call::Apart,
    env: "env",
    passed: None,
    addresses: &["url"],
    headers: "headers",
    header_variables: None,
    bearer: None,
    local: Some("stdio"),
    remote: "http",
    untyped: Reach::Http,
    helper: None,
    login: &[],
};

/// Every client, in the order they are shown.
pub(crate) const CLIENTS: [Client; 8] = [
    Client {
        word: "claude",
        name: "Claude Code",
        // Its file lies beside its folder, unless the variable names one.
        home: Home::Named { variable: "CLAUDE_CONFIG_DIR", folder: "" },
        user_files: &[".claude.json"],
        project_files: &[".mcp.json"],
        holder: "mcpServers",
        syntax: Syntax::Json(Dialect::Strict),
        form: Form { helper: Some("headersHelper"), login: &["oauth"], untyped: Reach::Unknown, ..USUAL },
    },
    Client {
        word: "codex",
        name: "Codex CLI",
        home: Home::Named { variable: "CODEX_HOME", folder: ".codex" },
        user_files: &["config.toml"],
        project_files: &[".codex/config.toml"],
        holder: "mcp_servers",
        syntax: Syntax::Toml,
        form: Form {
            passed: Some("env_vars"),
            headers: "http_headers",
            header_variables: Some("env_http_headers"),
            bearer: Some("bearer_token_env_var"),
            local: None,
            login: &["oauth", "oauth_resource", "scopes"],
            ..USUAL
        },
    },
    Client {
        word: "gemini",
        name: "Gemini CLI",
        home: Home::In { variable: "GEMINI_CLI_HOME", folder: ".gemini" },
        user_files: &["settings.json"],
        project_files: &[".gemini/settings.json"],
        holder: "mcpServers",
        syntax: Syntax::Json(Dialect::Commented),
        form: Form { addresses: &["httpUrl", "url"], local: None, login: GOOGLE, ..USUAL },
    },
    Client {
        word: "qwen",
        name: "Qwen Code",
        home: Home::Fixed { folder: ".qwen" },
        user_files: &["settings.json"],
        project_files: &[".qwen/settings.json"],
        holder: "mcpServers",
        syntax: Syntax::Json(Dialect::Commented),
        // Its plain `url` is one for server-sent events.
        form: Form {
            addresses: &["httpUrl", "url"],
            local: None,
            login: GOOGLE,
            untyped: Reach::Sse,
            ..USUAL
        },
    },
    Client {
        word: "opencode",
        name: "opencode",
        home: Home::Config { folder: "opencode" },
        user_files: &["opencode.json", "opencode.jsonc", "config.json"],
        project_files: &[
            "opencode.json",
            "opencode.jsonc",
            ".opencode/opencode.json",
            ".opencode/opencode.jsonc",
        ],
        holder: "mcp",
        syntax: Syntax::Json(Dialect::Loose),
        form: Form {
            call: Call::Together,
            env: "environment",
            local: Some("local"),
            remote: "remote",
            login: &["oauth"],
            ..USUAL
        },
    },
    Client {
        word: "copilot",
        name: "GitHub Copilot CLI",
        home: Home::Named { variable: "COPILOT_HOME", folder: ".copilot" },
        user_files: &["mcp-config.json"],
        project_files: &[".mcp.json", ".github/mcp.json"],
        holder: "mcpServers",
        syntax: Syntax::Json(Dialect::Commented),
        form: Form { login: &["oauthClientId", "oauthPublicClient"], ..USUAL },
    },
    Client {
        word: "cursor",
        name: "Cursor",
        home: Home::Fixed { folder: ".cursor" },
        user_files: &["mcp.json"],
        project_files: &[".cursor/mcp.json"],
        holder: "mcpServers",
        syntax: Syntax::Json(Dialect::Commented),
        form: Form { login: &["auth"], ..USUAL },
    },
    Client {
        word: "cline",
        name: "Cline",
        home: Home::Fixed { folder: ".cline/data/settings" },
        user_files: &["cline_mcp_settings.json"],
        project_files: &[],
        holder: "mcpServers",
        syntax: Syntax::Json(Dialect::Strict),
        form: Form { remote: "streamableHttp", untyped: Reach::Sse, login: &["oauth"], ..USUAL },
    },
];

/// Ways to log in that Gemini CLI and its relative know.
const GOOGLE: &[&str] = &["oauth", "authProviderType", "targetAudience", "targetServiceAccount"];

impl Client {
    /// The client of this name.
    pub(crate) fn named(word: &str) -> Option<&'static Client> {
        CLIENTS.iter().find(|client| client.word == word)
    }

    /// The language of its files.
    #[cfg(test)]
    pub(super) fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// The files that are there. One that is both the user's and the project's is the user's.
    pub(crate) fn configs(&self, places: &Places) -> Vec<Config> {
        let mut seen = BTreeSet::new();
        let mut configs = Vec::new();
        let folders = places.up_to_project();
        let user = places.home_of(self.home);
        let of_user = self.user_files.iter().filter_map(|file| Some(user.as_ref()?.join(file)));
        let of_project =
            folders.iter().flat_map(|folder| self.project_files.iter().map(|file| folder.join(file)));
        let all =
            of_user.map(|file| (Scope::User, file)).chain(of_project.map(|file| (Scope::Project, file)));
        for (scope, file) in all {
            if fs::symlink_metadata(&file).is_ok() && seen.insert(real(&file)) {
                configs.push(Config {
                    scope,
                    syntax: self.syntax,
                    holders: self.holders(scope, &folders),
                    file,
                });
            }
        }
        configs
    }

    /// A file that is known from the ledger alone.
    pub(crate) fn config_of(&self, file: PathBuf, holders: Vec<Vec<String>>) -> Config {
        Config { scope: Scope::Project, syntax: self.syntax, holders, file }
    }

    /// The file that a new server of the user's, or of the project's, belongs into.
    pub(crate) fn first_file(&self, places: &Places, scope: Scope) -> Option<Config> {
        let is_there = self.configs(places).into_iter().find(|config| config.scope == scope);
        let file = match scope {
            Scope::User => places.home_of(self.home)?.join(self.user_files.first()?),
            Scope::Project => places.project()?.join(self.project_files.first()?),
        };
        let holders = vec![vec![self.holder.to_owned()]];
        Some(is_there.unwrap_or(Config { scope, syntax: self.syntax, holders, file }))
    }

    /// Claude Code keeps the servers that are only for a folder in the user's file, under the root of its repository.
    fn holders(&self, scope: Scope, folders: &[PathBuf]) -> Vec<Vec<String>> {
        let top = vec![self.holder.to_owned()];
        let mut holders = vec![top];
        if self.word == "claude" && scope == Scope::User {
            for folder in folders.iter().filter_map(|folder| folder.to_str()) {
                holders.push(vec![PROJECTS.to_owned(), folder.to_owned(), self.holder.to_owned()]);
            }
        }
        holders
    }

    /// Is there anything of this client?
    pub(crate) fn is_here(&self, places: &Places) -> bool {
        !self.configs(places).is_empty()
    }
}

/// Where a file really lies.
pub(crate) fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
