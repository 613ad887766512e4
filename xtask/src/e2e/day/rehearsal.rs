//! Plays a session in a plain shell, without an agent, and compares every end with the stated one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::session::{Call, Event, Session};
use crate::Fault;
use crate::e2e::agents::CLAUDE;
use crate::e2e::model::{Step, TurnCall};
use crate::e2e::stage::{Stage, Tools};

/// Results by session: one rehearsal serves all agents.
static DONE: Mutex<BTreeMap<String, Rehearsal>> = Mutex::new(BTreeMap::new());

/// The result of one rehearsal, once it is over.
type Rehearsal = Arc<OnceLock<Result<(), String>>>;

/// Plays a session once; a fault lists every step that does not end as stated.
pub fn rehearse(session: &Session, tools: &Tools) -> Result<(), Fault> {
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    let ended = Arc::clone(done.entry(session.name.clone()).or_default());
    drop(done);
    let result = ended.get_or_init(|| perform(session, tools).map_err(|fault| fault.to_string()));
    result.clone().map_err(Into::into)
}

fn perform(session: &Session, tools: &Tools) -> Result<(), Fault> {
    let stage = super::prepared(session, &CLAUDE, tools)?;
    let mut wrong = Vec::new();
    for event in &session.events {
        match event {
            Event::Prompt(_) => {}
            Event::Outside(line) => drop(shell(&stage, line)?),
            Event::Call(call) => wrong.extend(differs(&stage, call)?),
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("the session states what is not so:\n{}", wrong.join("\n")).into()),
    }
}

/// Says how a call ended otherwise than its session states.
fn differs(stage: &Stage, call: &Call) -> Result<Option<String>, Fault> {
    let (exit, text) = match &call.invocation {
        TurnCall::Own(Step::Shell(line)) => shell(stage, line)?,
        TurnCall::Own(Step::Read(file)) => read(stage, file),
        TurnCall::Own(Step::Edit { file, old, new }) => {
            let (exit, text) = read(stage, file);
            let fits = exit == 0 && text.matches(old.as_str()).count() == 1;
            if fits {
                stage.write(file, &text.replacen(old.as_str(), new, 1))?;
            }
            (i32::from(!fits), String::new())
        }
        TurnCall::Own(Step::Write { file, text }) => {
            stage.write(file, text)?;
            (0, String::new())
        }
        // What a server answers is known to its scenarios.
        TurnCall::Own(Step::Malformed) | TurnCall::Served(..) => return Ok(None),
    };
    let misses = call.shows.as_ref().filter(|shows| !text.contains(shows.as_str()));
    // Agents tell of an edit or a read in their own words, and a plain shell has none.
    let misses = misses.filter(|_| matches!(call.invocation, TurnCall::Own(Step::Shell(_))));
    Ok((exit != call.exit || misses.is_some()).then(|| {
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(8)..].join("\n      ");
        let wanted = misses.map(|shows| format!(" and shows {shows:?}")).unwrap_or_default();
        format!("  `{}` ends with {exit}, is to end with {}{wanted}\n      {tail}", call.label(), call.exit)
    }))
}

fn read(stage: &Stage, file: &str) -> (i32, String) {
    fs::read_to_string(stage.project().join(file)).map_or((1, String::new()), |text| (0, text))
}

/// Runs a command line; what it starts in the background must not be waited for, so the output goes to a file.
fn shell(stage: &Stage, line: &str) -> Result<(i32, String), Fault> {
    let path = stage.folder("output");
    let file = File::create(&path)?;
    let mut command = stage.clean("bash");
    let status = command.args(["-c", line]).stdout(file.try_clone()?).stderr(file).status()?;
    // What a shell says of a program that was ended by a signal.
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok((code.unwrap_or(-1), String::from_utf8_lossy(&fs::read(&path)?).into_owned()))
}
