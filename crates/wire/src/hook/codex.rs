//! Codex CLI's hooks.
//!
//! It calls the hook after a shell command however that ended, and does not say how: the exit code stands in its transcript,
//! which the caller reads for us. What fails without having run (a patch that does not fit, wrong arguments, a tool server's
//! error) calls no hook. An answer with one field it does not know is dropped whole, so there is nothing in ours but what it
//! is known to heed.

use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;
use unstuck_judge::Outcome;
use unstuck_judge::shell::{self, Script};

use super::kin::{self, Ended, Moment, WirePayload};
use super::{Envelope, Finished, Happened, Honours, Host, Letter, Reply};
use crate::json::{WireError, read_object};
use crate::scalar;
use crate::transcript::codex as transcript;

/// Reads one payload.
pub(super) fn read(bytes: &[u8]) -> Result<Letter, WireError> {
    let mut wire = WirePayload::read(bytes)?;
    let Some(moment) = wire.moment()? else {
        return Ok(wire.letter(Host::Codex, Vec::new(), Envelope::Mute));
    };
    let events = match moment {
        Moment::PreToolUse => vec![wire.before()?],
        Moment::PermissionRequest => vec![wire.ask()?],
        Moment::PermissionDenied => vec![Happened::Denied { key: wire.key() }],
        Moment::PostToolUse => vec![after(&mut wire)?],
        // It has no such event; should it get one, it will be told as its kin tell it.
        Moment::PostToolUseFailure => {
            let error = kin::text(wire.error.take());
            vec![wire.after(Ended::saying(Outcome::ReportedFailure, error))?]
        }
        Moment::PostToolBatch => Vec::new(),
        Moment::UserPromptSubmit => vec![Happened::User],
        Moment::SessionStart => vec![wire.began()],
        Moment::SubagentStop => wire.agent_done(),
        Moment::SessionEnd => vec![Happened::End],
    };
    Ok(wire.letter(Host::Codex, events, Envelope::Codex(moment)))
}

fn after(wire: &mut WirePayload) -> Result<Happened, WireError> {
    let response = wire.tool_response.take();
    let is_error = response.get("isError").is_some_and(scalar::flag);
    let is_patch = wire.tool().is_some_and(|tool| tool == "apply_patch");
    let ended = if wire.is_shell() {
        Ended::saying(Outcome::NoExitCode, kin::result(response))
    } else if is_patch {
        let (outcome, said) = transcript::ending(response);
        Ended::saying(outcome, said)
    } else if is_error {
        Ended::saying(Outcome::ReportedFailure, kin::result(response))
    } else {
        Ended::saying(Outcome::Succeeded, kin::result(response))
    };
    let mut happened = wire.after(ended)?;
    if let Happened::After(finished) = &mut happened
        && finished.observation.outcome == Outcome::NoExitCode
        && shell::line(&finished.observation.call).is_some_and(|line| Script::parse(&line).is_reader())
    {
        // Of a command that only shows things the words prove nothing; it is believed to have gone well.
        finished.said_ok = Some(true);
    }
    Ok(happened)
}

/// The transcript to look into and the call to look for, where a payload does not say how a command ended.
pub fn wanted<'a>(letter: &'a Letter, finished: &'a Finished) -> Option<(&'a str, &'a str)> {
    let is_open = letter.host == Host::Codex
        && finished.observation.outcome == Outcome::NoExitCode
        && !finished.key.is_empty();
    is_open.then_some((letter.transcript.as_deref()?, &*finished.key))
}

/// Puts the exit code where it was [`wanted`].
pub fn tell(finished: &mut Finished, code: i32) {
    finished.observation.outcome = Outcome::Exited { code };
    finished.said_ok = finished.observation.outcome.said_ok();
}

/// A line of the transcript that tells how a command ended; the names are theirs.
#[derive(Deserialize)]
struct WireLine {
    payload: Option<WireEvent>,
}

#[derive(Deserialize)]
struct WireEvent {
    #[serde(default)]
    call_id: Value,
    #[serde(default)]
    exit_code: Value,
    item: Option<WireItem>,
}

#[derive(Deserialize)]
struct WireItem {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    exit_code: Value,
}

/// Finds the exit code of a command in the end of Codex' transcript. The first line may be cut, and is then passed over.
pub fn exit_code(tail: &[u8], call_id: &str) -> Option<i32> {
    if call_id.is_empty() {
        return None;
    }
    let named = memmem::Finder::new(call_id);
    let coded = memmem::Finder::new(b"exit_code");
    tail.rsplit(|byte| *byte == b'\n').find_map(|line| {
        // Most lines are about other calls, and long; only what can be the one is read.
        if named.find(line).is_none() || coded.find(line).is_none() {
            return None;
        }
        let event = read_object::<WireLine>(line).ok()?.payload?;
        let (id, code) = match event.item {
            Some(item) => (item.id, item.exit_code),
            None => (event.call_id, event.exit_code),
        };
        (id == call_id).then(|| scalar::exit_code("exit_code", &code).ok().flatten())?
    })
}

/// What it heeds of an answer.
pub(super) fn honours(moment: Moment) -> Honours {
    let none = Honours::default();
    match moment {
        Moment::PreToolUse => Honours { tell: true, deny: true, ..none },
        Moment::PostToolUse | Moment::UserPromptSubmit | Moment::SessionStart => {
            Honours { tell: true, ..none }
        }
        Moment::PermissionRequest
        | Moment::PermissionDenied
        | Moment::PostToolUseFailure
        | Moment::PostToolBatch
        | Moment::SubagentStop
        | Moment::SessionEnd => none,
    }
}

/// The answer as it understands it. It knows no way to ask or to stop the run from here: both become a refusal. A call with
/// another input would need our word that it is allowed, so that is only told.
pub(super) fn answer(moment: Moment, reply: &Reply) -> Option<String> {
    kin::refuse_or_tell(moment, honours(moment), reply)
}
