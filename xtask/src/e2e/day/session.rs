//! Reads a session from `traces/day/`.

use std::fs;

use serde::Deserialize;
use serde_json::Value;

use crate::e2e::model::{Step, TurnCall};
use crate::{Fault, project};

/// One session of work.
pub struct Session {
    pub name: String,
    /// The commands that make its repository.
    pub prepare: String,
    /// Does an MCP server take part?
    pub serves: bool,
    pub events: Vec<Event>,
}

/// One thing that happens in a session.
pub enum Event {
    /// The model calls a tool.
    Call(Call),
    /// A person or another program runs a command before the next turn.
    Outside(String),
    /// The run is over, and a person says this in the same session.
    Prompt(String),
}

/// A call, and how it ends.
pub struct Call {
    pub invocation: TurnCall,
    /// Is it made in one turn with the call before it?
    pub together: bool,
    /// The exit code that the shell sees.
    pub exit: i32,
    /// Did it do what it was asked? A search that finds nothing did, a failure behind a pipe did not.
    pub worked: bool,
    /// A text in its result.
    pub shows: Option<String>,
}

impl Call {
    /// The call for a person.
    pub fn label(&self) -> String {
        match &self.invocation {
            TurnCall::Own(Step::Shell(line)) => line.clone(),
            TurnCall::Own(Step::Read(file)) => format!("read {file}"),
            TurnCall::Own(Step::Edit { file, .. }) => format!("edit {file}"),
            TurnCall::Own(Step::Write { file, .. }) => format!("write {file}"),
            TurnCall::Own(Step::Malformed) => "malformed".to_owned(),
            TurnCall::Served(tool, _) => format!("server's {tool}"),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    /// For readers of the file.
    #[expect(dead_code, reason = "it tells a reader what the session is about")]
    about: String,
    prepare: String,
    #[serde(default)]
    serves: bool,
    steps: Vec<WrittenStep>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    run: Option<String>,
    read: Option<String>,
    edit: Option<String>,
    old: Option<String>,
    new: Option<String>,
    write: Option<String>,
    text: Option<String>,
    call: Option<String>,
    arguments: Option<Value>,
    outside: Option<String>,
    prompt: Option<String>,
    exit: Option<i32>,
    worked: Option<bool>,
    shows: Option<String>,
    #[serde(default)]
    together: bool,
}

impl Session {
    /// Reads a session; `{port}` in it becomes this port.
    pub fn read(name: &str, port: u16) -> Result<Session, Fault> {
        let path = project::root().join("traces/day").join(format!("{name}.toml"));
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let written: Written = toml::from_str(&text.replace("{port}", &port.to_string()))
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let mut events = Vec::new();
        for (number, step) in written.steps.into_iter().enumerate() {
            events.push(step.event().ok_or_else(|| {
                format!("{}: step {} is neither a call nor an event", path.display(), number + 1)
            })?);
        }
        Ok(Session { name: name.to_owned(), prepare: written.prepare, serves: written.serves, events })
    }
}

impl WrittenStep {
    fn event(self) -> Option<Event> {
        if let Some(line) = self.outside {
            return Some(Event::Outside(line));
        }
        if let Some(prompt) = self.prompt {
            return Some(Event::Prompt(prompt));
        }
        let invocation = match (self.run, self.read, self.edit, self.write, self.call) {
            (Some(line), None, None, None, None) => TurnCall::Own(Step::Shell(line)),
            (None, Some(file), None, None, None) => TurnCall::Own(Step::Read(file)),
            (None, None, Some(file), None, None) => {
                TurnCall::Own(Step::Edit { file, old: self.old?, new: self.new? })
            }
            (None, None, None, Some(file), None) => TurnCall::Own(Step::Write { file, text: self.text? }),
            (None, None, None, None, Some(tool)) => TurnCall::Served(tool, self.arguments?),
            _ => return None,
        };
        let exit = self.exit.unwrap_or(0);
        let worked = self.worked.unwrap_or(exit == 0);
        Some(Event::Call(Call { invocation, together: self.together, exit, worked, shows: self.shows }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::e2e::day::SESSIONS;

    #[test]
    fn every_session_is_played_and_holds_thirty_to_sixty_calls() {
        let files = fs::read_dir(project::root().join("traces/day")).unwrap().flatten();
        let names = files
            .filter_map(|file| file.file_name().to_string_lossy().strip_suffix(".toml").map(str::to_owned));
        assert_eq!(names.collect::<BTreeSet<_>>(), SESSIONS.map(str::to_owned).into());
        for name in SESSIONS {
            let session = Session::read(name, 4000).unwrap();
            let calls = session.events.iter().filter(|event| matches!(event, Event::Call(_))).count();
            assert!((30..=60).contains(&calls), "{name}: {calls} calls");
        }
    }
}
