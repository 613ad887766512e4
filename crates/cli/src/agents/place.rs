//! Where the agents and their files are on this machine.

use std::env;
use std::path::{Path, PathBuf};

use unstuck_wire::hook::Host;

use super::agent::{Agent, Home};
use super::version::{self, Reported, Why};
use crate::program_file::{first_in, search_path};

/// For whom an agent is to call us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Wherever this user works.
    User,
    /// In this project.
    Project,
}

impl Scope {
    /// The one that the options `--user` and `--project` ask for; nothing without either.
    pub(crate) fn asked(user: bool, project: bool) -> Option<Scope> {
        match (user, project) {
            (true, _) => Some(Scope::User),
            (false, true) => Some(Scope::Project),
            (false, false) => None,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
        }
    }
}

/// The folders of this user and of this project.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    home: Option<PathBuf>,
    project: Option<PathBuf>,
    search: Vec<PathBuf>,
}

impl Places {
    /// Those around this process.
    pub(crate) fn here() -> Places {
        Places {
            home: absolute("HOME"),
            project: env::current_dir().ok().map(project),
            search: search_path(),
        }
    }

    /// Those of somebody who has nothing but a home.
    #[cfg(test)]
    pub(super) fn of(home: &Path) -> Places {
        Places { home: Some(home.to_owned()), project: None, search: Vec::new() }
    }

    /// The root of the project.
    pub(crate) fn project(&self) -> Option<&Path> {
        self.project.as_deref()
    }

    /// The working folder and those it lies in, up to the root of the project.
    pub(crate) fn up_to_project(&self) -> Vec<PathBuf> {
        let Some(root) = self.project() else { return Vec::new() };
        let working = env::current_dir().unwrap_or_else(|_| root.to_owned());
        let inside = working.ancestors().take_while(|folder| folder.starts_with(root));
        let folders: Vec<PathBuf> = inside.map(Path::to_owned).collect();
        if folders.is_empty() { vec![root.to_owned()] } else { folders }
    }

    /// An agent's own folder.
    pub(crate) fn folder(&self, agent: &Agent) -> Option<PathBuf> {
        self.home_of(agent.home)
    }

    /// Where a folder of that kind is.
    pub(crate) fn home_of(&self, home: Home) -> Option<PathBuf> {
        let in_home = |folder: &str| self.home.as_ref().map(|home| home.join(folder));
        match home {
            Home::Named { variable, folder } => absolute(variable).or_else(|| in_home(folder)),
            Home::In { variable, folder } => {
                absolute(variable).map(|base| base.join(folder)).or_else(|| in_home(folder))
            }
            Home::Fixed { folder } => in_home(folder),
            Home::Config { folder } => {
                let base = absolute("XDG_CONFIG_HOME").or_else(|| in_home(".config"));
                base.map(|base| base.join(folder))
            }
        }
    }

    /// The file that tells an agent to call us.
    pub(crate) fn file(&self, agent: &Agent, scope: Scope) -> Option<PathBuf> {
        match scope {
            Scope::User => Some(self.folder(agent)?.join(agent.user_file)),
            Scope::Project => Some(self.project.as_ref()?.join(agent.project_file)),
        }
    }

    /// An agent's program, if it is there.
    pub(crate) fn program(&self, agent: &Agent) -> Option<PathBuf> {
        let own: &[&str] = match agent.host {
            Host::Claude => &[".local/bin", ".claude/local"],
            Host::Opencode => &[".opencode/bin"],
            Host::Codex | Host::Gemini | Host::Qwen | Host::Copilot | Host::Cursor | Host::Generic => {
                &[".local/bin"]
            }
        };
        let own = self.home.iter().flat_map(|home| own.iter().map(|folder| home.join(folder)));
        let folders: Vec<PathBuf> = self.search.iter().cloned().chain(own).collect();
        agent.programs.iter().find_map(|name| first_in(&folders, name))
    }

    /// Is there anything of this agent: its program, or its folder?
    pub(crate) fn has(&self, agent: &Agent) -> bool {
        self.program(agent).is_some() || self.folder(agent).is_some_and(|folder| folder.is_dir())
    }

    /// Asks an agent for its version.
    pub(crate) fn version(&self, agent: &Agent) -> Reported {
        match self.program(agent) {
            None => Reported::NotFound,
            Some(program) if self.is_of_project(&program) => Reported::Unreadable(Why::InProject),
            Some(program) => version::ask(&program),
        }
    }

    /// Returns whether a program lies in the project, where whoever wrote the project may have put it. A home is no project.
    fn is_of_project(&self, program: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let Some(project) = self.project.as_deref().map(real) else { return false };
        let is_home = self.home.as_deref().is_some_and(|home| real(home).starts_with(&project));
        // The folder it was found in counts, and so does what a link there leads to.
        let folder = real(program.parent().unwrap_or(program));
        !is_home && (folder.starts_with(&project) || real(program).starts_with(&project))
    }
}

/// The root of the repository, or the working folder where there is none.
fn project(working: PathBuf) -> PathBuf {
    let root = working.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_owned);
    root.unwrap_or(working)
}

fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
