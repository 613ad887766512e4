//! Reads a result: did it fail, by what, and what does it say of the thing looked at?

use memchr::memchr_iter;

use super::{OUR_MARK, names, stopped};
use crate::call::{Call, Observation};
use crate::condition::Condition;
use crate::diagnose::{Diagnosis, Proof};
use crate::fingerprint;
use crate::kind::Kind;
use crate::ladder::preset;
use crate::ladder::sight::{Ending, Fault, Firmness, Manner, Print, Sight, Speaker, State, Upshot};
use crate::nature;

/// An answer longer than this tells no state in a word.
const STATE_MAX: usize = 600;
/// Whether all is well stands at the end.
const GREEN_MAX: usize = 300;
/// An error longer than this explains itself.
const OPAQUE_MAX: usize = 200;
/// An answer shorter than this is an acknowledgement.
const TELLING: usize = 30;
/// How much of an answer is masked to compare it; what differs after that is data.
const MASKED_LINES: usize = 200;
/// Below this a diagnosis is a guess.
const GUESS: f32 = 0.6;

/// Reads a result. `said_ok` is what the host reports, where it reports anything.
pub fn ending(
    sight: &Sight,
    observation: &Observation,
    diagnosis: &Diagnosis,
    said_ok: Option<bool>,
) -> Ending {
    let parts = [&observation.stdout[..], &observation.stderr[..], &observation.merged[..]];
    let bytes = Print::of_bytes(&parts);
    let text: String = parts.iter().map(|part| String::from_utf8_lossy(part)).collect();
    let masked_text = masked(&text);
    let masked = Print::of(&["answer", &masked_text]);
    let upshot = if is_our_denial(&text) {
        Upshot::OurDenial
    } else if failed(observation, diagnosis, said_ok) {
        let proven = said_ok == Some(false) || diagnosis.proof == Proof::Proven;
        Upshot::Failed(Fault { proven, ..fault(sight, observation, diagnosis, &text, &masked_text) })
    } else {
        Upshot::Fine
    };
    let telling = text.trim().len() >= TELLING;
    let state = match &upshot {
        // The words of a known complaint describe no state: "is the daemon running?"
        Upshot::Failed(fault) if !fault.rule.is_empty() => state(sight, &text.replace(&fault.line, "")),
        Upshot::Failed(_) | Upshot::Fine | Upshot::OurDenial => state(sight, &text),
    };
    Ending {
        upshot,
        bytes,
        masked,
        ageless: Print::of(&["ageless", &ageless(&text)]),
        telling,
        green: is_green(&text),
        state,
    }
}

fn is_our_denial(text: &str) -> bool {
    text.trim_start().starts_with(OUR_MARK)
}

/// Did the call fail? A host that says so is believed, unless the diagnosis knows that its code is no error. Where the code is
/// hidden, only the program's own unmistakable words count: what is merely suspected is no failure.
fn failed(observation: &Observation, diagnosis: &Diagnosis, said_ok: Option<bool>) -> bool {
    match (diagnosis.kind, said_ok.or(observation.outcome.said_ok()), diagnosis.proof) {
        (Kind::NotAnError, _, _) => false,
        (_, Some(false), _) => true,
        (Kind::Unknown, _, _) => false,
        (_, _, Proof::Proven | Proof::Signed) => true,
        (_, _, Proof::Suspected) => false,
    }
}

fn fault(
    sight: &Sight,
    observation: &Observation,
    diagnosis: &Diagnosis,
    text: &str,
    masked_text: &str,
) -> Fault {
    let line = diagnosis.evidence.as_ref().map(|found| found.text.clone());
    let line = line.unwrap_or_else(|| last_line(text).to_owned());
    let kind = diagnosis.kind;
    let family = fingerprint::family(&observation.call);
    let cause = match kind {
        Kind::Unknown => Print::of(&["cause", &family, masked_text]),
        // No way to the other side is one cause, however each layer puts it.
        Kind::Network => Print::of(&["cause", &family, kind.word()]),
        _ => Print::of(&["cause", fingerprint::cause(&family, kind, &line).as_str()]),
    };
    let condition = Condition::of(&observation.call, diagnosis, &line, text);
    let trimmed = text.trim();
    let one_word = trimmed.len() <= 10 && !trimmed.contains(char::is_whitespace);
    Fault {
        firmness: match &condition {
            // Who holds a port does not let go of it because somebody waits.
            Condition::PortTaken(_) => Firmness::Likely,
            _ => firmness(sight, diagnosis, &condition),
        },
        kind,
        cause,
        roots: stopped::roots(sight, &observation.call, diagnosis, &line),
        names: names(diagnosis.subject.as_deref().into_iter().chain(quoted(&line))),
        silent: trimmed.is_empty() || one_word || trimmed.starts_with("Exit code ") && trimmed.len() < 14,
        opaque: is_opaque(&observation.call, kind, text),
        rule: diagnosis.rule.clone(),
        proven: diagnosis.proof == Proof::Proven,
        condition,
        line: nature::shorter(line.trim()).to_owned(),
    }
}

/// Is it an error of the tool's own insides, which tells the one who asked nothing? Where the call brought its own code,
/// the insides are the asker's.
fn is_opaque(call: &Call, kind: Kind, text: &str) -> bool {
    let vague =
        matches!(kind, Kind::Unknown | Kind::Logical | Kind::Crash | Kind::CodeError | Kind::ParseError);
    let own_code =
        ["code", "script", "source", "expression"].iter().any(|field| call.input.get(field).is_some());
    if !vague || own_code || text.len() >= OPAQUE_MAX {
        return false;
    }
    let text = text.to_lowercase();
    preset::signs_of_insides().iter().any(|sign| text.contains(sign))
}

/// How firmly the cause stands. A tool with named arguments answers the same arguments the same way, so even a cause
/// without a name is certain there, as long as it does not come and go by itself.
fn firmness(sight: &Sight, diagnosis: &Diagnosis, condition: &Condition) -> Firmness {
    let steady =
        matches!(diagnosis.kind, Kind::Unknown | Kind::Crash | Kind::TestFailure | Kind::CheckFailed);
    let guessed =
        sight.speaker == Speaker::Shell && diagnosis.confidence < GUESS && !condition.is_cause_itself();
    match preset::firmness(diagnosis.kind) {
        _ if diagnosis.transient => Firmness::Patient,
        Firmness::Certain | Firmness::Likely if guessed => Firmness::Unsure,
        Firmness::Likely | Firmness::Unsure if sight.speaker == Speaker::Tool && steady => Firmness::Certain,
        firmness @ (Firmness::Certain | Firmness::Likely | Firmness::Unsure | Firmness::Patient) => firmness,
    }
}

/// What a short answer says of the thing looked at.
fn state(sight: &Sight, text: &str) -> State {
    let longest = match (sight.polls || sight.waits, sight.manner) {
        (true, _) => STATE_MAX,
        (false, Manner::Looks | Manner::Unclear) => STATE_MAX / 3,
        (false, Manner::Changes(_) | Manner::Runs | Manner::Waits) => 0,
    };
    if text.len() > longest {
        return State::Unsaid;
    }
    let text = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| contains_word(&text, word));
    if says(preset::person_words()) {
        State::Ended
    } else if says(preset::alive_words()) {
        State::Alive
    } else if says(preset::ended_words()) {
        State::Ended
    } else {
        State::Unsaid
    }
}

/// Does the end of an answer say that all is well?
fn is_green(text: &str) -> bool {
    let end = text.trim_end().char_indices().rev().nth(GREEN_MAX).map_or(0, |(at, _)| at);
    let end = text[end..].to_lowercase();
    preset::green_words().iter().any(|word| contains_word(&end, word))
}

fn contains_word(text: &str, word: &str) -> bool {
    let letter = |sign: Option<char>| sign.is_some_and(|sign| sign.is_alphanumeric());
    let Some(first) = word.bytes().next() else { return false };
    // Texts are short and words are many: to prepare a search for each costs more than to search.
    memchr_iter(first, text.as_bytes()).any(|at| {
        text[at..].starts_with(word)
            && !letter(text[..at].chars().next_back())
            && !letter(text[at + word.len()..].chars().next())
    })
}

/// What stands between quotes in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split(['\'', '"', '`', '‘', '’', '“', '”']).skip(1).step_by(2)
}

/// The answer with one sign for every age: `3m`, `2h15m`, `5 minutes ago`.
fn ageless(text: &str) -> String {
    let is_age = |word: &str| {
        let word = word.trim_matches(|sign: char| !sign.is_alphanumeric());
        let starts = word.starts_with(|sign: char| sign.is_ascii_digit());
        starts
            && word.ends_with(['s', 'm', 'h', 'd'])
            && word.chars().all(|sign| sign.is_ascii_digit() || "smhd".contains(sign))
    };
    let is_unit = |word: &str| {
        let word = word.trim_end_matches('s');
        matches!(word, "second" | "minute" | "hour" | "day" | "sec" | "min")
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain = words.iter().enumerate().map(|(at, word)| {
        let counted = words.get(at + 1).is_some_and(|next| is_unit(next));
        if is_age(word) || counted { "<age>" } else { word }
    });
    plain.collect::<Vec<_>>().join(" ")
}

fn last_line(text: &str) -> &str {
    text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

fn masked(text: &str) -> String {
    let lines: Vec<String> = text.lines().take(MASKED_LINES).map(fingerprint::mask).collect();
    lines.join("\n")
}
