//! Claude Code's hooks.
//!
//! Its events are not what they seem. A failed shell command has an event of its own, but a call that never ran (wrong
//! arguments, an unknown tool, an edit that matches nothing, a denial) shows in the batch alone; and what arrives as a success
//! may have timed out or go on in the background.

use serde_json::Value;
use unstuck_judge::Outcome;
use unstuck_judge::ladder::see::OUR_MARK;

use super::kin::{self, Ended, Moment, Stop, WireAnswer, WireBatched, WirePayload, WireRuling, WireSpecific};
use super::{Envelope, Happened, Honours, Host, Letter, Reply, speech};
use crate::json::WireError;
use crate::scalar;
use crate::wording;

/// Reads one payload.
pub(super) fn read(bytes: &[u8]) -> Result<Letter, WireError> {
    let mut wire = WirePayload::read(bytes)?;
    let Some(moment) = wire.moment()? else {
        return Ok(wire.letter(Host::Claude, Vec::new(), Envelope::Mute));
    };
    let events = match moment {
        Moment::PreToolUse => vec![wire.before()?],
        Moment::PermissionRequest => vec![wire.ask()?],
        Moment::PermissionDenied => vec![Happened::Denied { key: wire.key() }],
        Moment::PostToolUse => {
            let ended = success(wire.tool_response.take());
            vec![wire.after(ended)?]
        }
        Moment::PostToolUseFailure => {
            let ended = failure(&mut wire);
            vec![wire.after(ended)?]
        }
        Moment::PostToolBatch => wire.batch().into_iter().filter_map(|call| batched(call).ok()).collect(),
        Moment::UserPromptSubmit => spoke(&kin::text(wire.prompt.take())),
        Moment::SessionStart => vec![wire.began()],
        // While it shortens its memory it runs a sub-agent without a name, which made no calls.
        Moment::SubagentStop if wire.agent_type.as_ref().is_none_or(|kind| kind.0.is_empty()) => Vec::new(),
        Moment::SubagentStop => wire.agent_done(),
        Moment::SessionEnd => vec![Happened::End],
    };
    Ok(wire.letter(Host::Claude, events, Envelope::Claude(moment)))
}

/// Reads what it calls a success.
fn success(mut response: Value) -> Ended {
    let field = |name: &str| response.get(name).filter(|value| !value.is_null());
    let outcome = if field("interrupted").is_some_and(scalar::flag) {
        Outcome::Interrupted
    } else if field("timedOutAfterMs").is_some() {
        Outcome::TimedOut
    } else {
        Outcome::Succeeded
    };
    let task = field("backgroundTaskId").cloned().map(scalar::words);
    let runs_on = task.is_some();
    // Each launch is a task of its own, and the model is shown which: without that, two of them would look like the same answer.
    // What ran out of time goes on as a task, too, but its answer is that it did.
    let launched = task.filter(|_| outcome == Outcome::Succeeded);
    let merged =
        launched.map(|task| format!("Command running in background with ID: {task}")).unwrap_or_default();
    let mut stream = |name: &str| match response.get_mut(name).map(Value::take) {
        Some(Value::String(text)) => Some(text),
        Some(_) | None => None,
    };
    match (stream("stdout"), stream("stderr")) {
        (None, None) => Ended { runs_on, ..Ended::saying(outcome, kin::result(response)) },
        (stdout, stderr) => Ended {
            stdout: stdout.unwrap_or_default(),
            stderr: stderr.unwrap_or_default(),
            runs_on,
            ..Ended::saying(outcome, merged)
        },
    }
}

/// Reads what it calls a failure.
fn failure(wire: &mut WirePayload) -> Ended {
    let error = kin::text(wire.error.take());
    if scalar::flag(&wire.is_interrupt) {
        return Ended::saying(Outcome::Interrupted, error);
    }
    let (outcome, said) = wording::failure(&error);
    // Versions that do not say how long a call took say twice what it printed.
    let is_old = wire.duration_ms.is_null();
    Ended::saying(outcome, if is_old { once(said) } else { said })
}

/// Half of a text that says the same thing twice, with a blank line between.
fn once(text: &str) -> &str {
    match text.split_at_checked(text.len().saturating_sub(2) / 2) {
        Some((first, rest)) if !first.is_empty() && rest.strip_prefix("\n\n") == Some(first) => first,
        Some(_) | None => text,
    }
}

/// Reads a call as the model is shown it. For one that ran this is a repetition; for one that did not it is all there is.
fn batched(mut call: WireBatched) -> Result<Happened, WireError> {
    let shown = kin::result(call.tool_response.take());
    let first_line = shown.lines().next().unwrap_or_default();
    let ended = if let Some(outcome) = wording::instead(&shown) {
        Ended::saying(outcome, reason(&shown))
    } else if shown.trim_start().starts_with(OUR_MARK) || first_line.contains(" needs approval") {
        Ended::saying(Outcome::Denied, shown)
    } else if call.is_shell() && wording::exit_line(&shown).is_some() {
        let (outcome, said) = wording::failure(&shown);
        Ended::saying(outcome, said)
    } else {
        // Whatever ran has told its own end before; what is left was most likely kept from running in words nobody knows.
        Ended::saying(Outcome::NoExitCode, shown)
    };
    call.after(ended)
}

/// What a hook said, without what the program puts before it.
fn reason(shown: &str) -> &str {
    let said = shown.strip_prefix("PreToolUse:").and_then(|rest| rest.split_once(" hook error: "));
    said.map_or(shown, |(_, reason)| reason)
}

/// Who spoke: a person, or the program about tasks that went on in the background.
fn spoke(prompt: &str) -> Vec<Happened> {
    const NOTICES_MAX: usize = 32;
    if !wording::is_from_client(prompt) {
        return vec![Happened::User];
    }
    prompt.split("<task-notification>").skip(1).take(NOTICES_MAX).filter_map(later).collect()
}

/// Reads how a task in the background ended that a call began.
fn later(notice: &str) -> Option<Happened> {
    let between = |tag: &str| {
        let (_, rest) = notice.split_once(&format!("<{tag}>"))?;
        rest.split_once(&format!("</{tag}>")).map(|(text, _)| text.trim())
    };
    let key = between("tool-use-id").filter(|key| !key.is_empty())?.to_owned();
    let text = between("summary").unwrap_or_default().to_owned();
    let code = text.rsplit_once("exit code ").and_then(|(_, code)| code.trim_end_matches(')').parse().ok());
    let outcome = match (between("status")?, code) {
        ("completed", _) => Outcome::Succeeded,
        ("failed", Some(code)) => Outcome::Exited { code },
        ("failed", None) => Outcome::ReportedFailure,
        ("killed" | "stopped", _) => Outcome::Interrupted,
        (_, _) => return None,
    };
    Some(Happened::Later { key, outcome, text })
}

/// What it heeds of an answer.
pub(super) fn honours(moment: Moment) -> Honours {
    let none = Honours::default();
    match moment {
        Moment::PreToolUse => {
            Honours { tell: true, deny: true, ask: true, halt: true, rewrite: true, ..none }
        }
        Moment::PermissionRequest => Honours { deny: true, ..none },
        Moment::PostToolUse | Moment::PostToolBatch => Honours { tell: true, halt: true, ..none },
        Moment::PostToolUseFailure | Moment::UserPromptSubmit | Moment::SessionStart => {
            Honours { tell: true, ..none }
        }
        Moment::PermissionDenied | Moment::SubagentStop | Moment::SessionEnd => none,
    }
}

/// The answer as it understands it.
pub(super) fn answer(moment: Moment, reply: &Reply) -> Option<String> {
    let words = reply.words()?;
    let shown = reply.table();
    let mut answer = match moment {
        Moment::PreToolUse => match reply {
            Reply::Deny { .. } => WireAnswer::stop(moment, Stop::Deny, words),
            Reply::Ask { .. } => WireAnswer::stop(moment, Stop::Ask, words),
            Reply::Halt { table, .. } => halted(words, table, WireAnswer::stop(moment, Stop::Deny, words)),
            // Without a word about permission: whether the new call may run is asked as for any other.
            Reply::Rewrite { input, text } => WireAnswer {
                system_message: speech::some(text),
                ..WireAnswer::of(WireSpecific {
                    updated_input: Some(input),
                    additional_context: speech::some(text),
                    ..WireSpecific::at(moment)
                })
            },
            Reply::Silent | Reply::Tell { .. } | Reply::Again { .. } => WireAnswer::tell(moment, words)?,
        },
        Moment::PostToolUse => match reply {
            Reply::Halt { table, .. } => halted(words, table, WireAnswer::tell(moment, words)?),
            Reply::Silent
            | Reply::Tell { .. }
            | Reply::Deny { .. }
            | Reply::Ask { .. }
            | Reply::Rewrite { .. }
            | Reply::Again { .. } => WireAnswer::tell(moment, words)?,
        },
        Moment::PostToolBatch => match reply {
            // A block after a batch ends the turn, and its reason is what the model reads when somebody lets it go on: words
            // beside it would say that twice.
            Reply::Halt { table, .. } => WireAnswer {
                decision: Some("block"),
                reason: Some(speech::fit(words)),
                system_message: speech::some(table),
                ..WireAnswer::default()
            },
            Reply::Silent
            | Reply::Tell { .. }
            | Reply::Deny { .. }
            | Reply::Ask { .. }
            | Reply::Rewrite { .. }
            | Reply::Again { .. } => WireAnswer::tell(moment, words)?,
        },
        Moment::PermissionRequest => match reply {
            Reply::Deny { .. } | Reply::Halt { .. } => {
                let decision = Some(WireRuling { behavior: "deny", message: speech::fit(words) });
                WireAnswer::of(WireSpecific { decision, ..WireSpecific::at(moment) })
            }
            Reply::Silent
            | Reply::Tell { .. }
            | Reply::Ask { .. }
            | Reply::Rewrite { .. }
            | Reply::Again { .. } => return None,
        },
        // Here nothing is heeded but words.
        Moment::PostToolUseFailure | Moment::UserPromptSubmit | Moment::SessionStart => {
            WireAnswer::tell(moment, &reply.told()?)?
        }
        // Words to a sub-agent that is done would make it go on.
        Moment::PermissionDenied | Moment::SubagentStop | Moment::SessionEnd => return None,
    };
    answer.system_message = shown.or(answer.system_message);
    answer.print()
}

/// The end of the run, for the person to read why, and what was tried.
fn halted<'a>(reason: &str, table: &str, answer: WireAnswer<'a>) -> WireAnswer<'a> {
    let stop_reason = speech::some(&speech::both(reason, table));
    WireAnswer { goes_on: Some(false), stop_reason, ..answer }
}
