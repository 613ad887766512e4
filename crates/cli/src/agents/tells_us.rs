//! Whether an agent tells us of its calls by hooks of its own, as far as our installer knows. Some agents also run the hooks of
//! others, and then tell us everything twice. Hooks ask this, so nothing is run and only what we wrote ourselves is read.

use std::fs;
use std::path::{Path, PathBuf};

use unstuck_wire::hook::Host;

use super::agent::{AGENTS, Agent};
use super::command_line::behind;
use super::own_program::own_name;
use super::place::{Places, Scope};
use crate::editing::{Ledger, Written, read_plain};

/// Did we tell this agent to call us, for the user or for the project that `folder` lies in? A file that no longer names us
/// does not count: whoever took us out of it by hand did not tell the ledger.
pub(crate) fn tells_us_itself(ledger: &Ledger, places: &Places, host: Host, folder: &str) -> bool {
    let Some(agent) = AGENTS.iter().find(|agent| agent.host == host) else { return false };
    let mine: Vec<&Written> =
        ledger.all().iter().filter(|written| written.agent == agent.host.word()).collect();
    if mine.is_empty() {
        return false;
    }
    let user = places.file(agent, Scope::User).map(|file| real(&file));
    let folder = Some(Path::new(folder)).filter(|folder| folder.is_absolute()).map(real);
    let holds_here = |written: &&Written| {
        let for_user = user.as_ref() == Some(&written.file);
        let for_project = folder.as_deref().is_some_and(|folder| is_for(agent, &written.file, folder));
        (for_user || for_project) && names_us(&written.file, Some(host))
    };
    mine.iter().any(holds_here)
}

/// Is this the agent's file of the project that the folder lies in? A project ends where its repository does.
fn is_for(agent: &Agent, file: &Path, folder: &Path) -> bool {
    for root in folder.ancestors() {
        if file == real(&root.join(agent.project_file)) {
            return true;
        }
        if root.join(".git").exists() {
            return false;
        }
    }
    false
}

/// The ledger knows where files really lie.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Does a file speak of us at all: by our name, by the name of this very program, or by a line of ours for that agent?
pub(crate) fn names_us(file: &Path, host: Option<Host>) -> bool {
    let Ok(bytes) = read_plain(file) else { return false };
    let has = |needle: &str| memchr::memmem::find(&bytes, needle.as_bytes()).is_some();
    let own = || own_name().is_some_and(|own| has(&format!("/{own}")));
    has("unstuck") || host.is_some_and(|host| has(&behind(host))) || own()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::editing::{Before, Book, hash};

    /// A home with two projects, one of them with another repository inside.
    struct World {
        home: TempDir,
        ledger: Ledger,
    }

    impl World {
        fn new() -> World {
            let home = tempfile::tempdir().unwrap();
            for folder in ["one/.git", "one/src/deep", "one/vendored/.git", "two/src"] {
                fs::create_dir_all(home.path().join(folder)).unwrap();
            }
            let ledger = Ledger::lock(&home.path().join("state"), Book::Hooks).unwrap();
            World { home, ledger }
        }

        /// Notes that we wrote into a file of an agent, and writes it.
        fn wrote(mut self, agent: &str, file: &str, text: &str) -> World {
            let path = self.home.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            let written = Written {
                file: real(&path),
                agent: agent.to_owned(),
                at_ms: 1,
                before: Before::Nothing,
                left: hash(text.as_bytes()),
                made: Vec::new(),
                folders: Vec::new(),
                commands: Vec::new(),
                servers: Vec::new(),
            };
            self.ledger.note(written).unwrap();
            self
        }

        #[track_caller]
        fn check(&self, host: Host, folder: &str, expected: bool) {
            let places = Places::of(self.home.path());
            let path = self.home.path().join(folder);
            let told = tells_us_itself(&self.ledger, &places, host, path.to_str().unwrap());
            assert_eq!(told, expected, "{host} in {folder}");
        }
    }

    const OURS: &str = "{\"hooks\": \"'/usr/bin/unstuck' hook qwen\"}";

    #[test]
    fn what_was_written_for_the_user_holds_everywhere_and_for_that_agent_alone() {
        let world = World::new().wrote("qwen", ".qwen/settings.json", OURS);
        for folder in ["one", "one/src/deep", "two", "/elsewhere"] {
            world.check(Host::Qwen, folder, true);
            world.check(Host::Cursor, folder, false);
            world.check(Host::Generic, folder, false);
        }
    }

    #[test]
    fn what_was_written_for_a_project_holds_inside_of_it_alone() {
        let world = World::new().wrote("cursor", "one/.cursor/hooks.json", OURS);
        world.check(Host::Cursor, "one", true);
        world.check(Host::Cursor, "one/src/deep", true);
        world.check(Host::Cursor, "one/vendored", false);
        world.check(Host::Cursor, "two/src", false);
        world.check(Host::Cursor, "", false);
        world.check(Host::Qwen, "one", false);
        let without_repository = World::new().wrote("cursor", "two/.cursor/hooks.json", OURS);
        without_repository.check(Host::Cursor, "two/src", true);
        without_repository.check(Host::Cursor, "one", false);
    }

    #[test]
    fn a_file_that_is_gone_or_no_longer_names_us_does_not_count() {
        World::new().wrote("qwen", ".qwen/settings.json", "{}").check(Host::Qwen, "one", false);
        let world = World::new().wrote("qwen", ".qwen/settings.json", OURS);
        fs::remove_dir_all(world.home.path().join(".qwen")).unwrap();
        world.check(Host::Qwen, "one", false);
        World::new().check(Host::Qwen, "one", false);
    }
}
