//! What a call is about, and how it was said otherwise: with other flags, in another folder, with a variable set, by another
//! program. Two calls that are about the same can be told apart by nothing but that.

use super::bearing::{Healer, is_filer};
use super::deed::{tries, written};
use super::fix::Change;
use crate::nature::{self, commands};
use crate::shell::{Command, Join, ParsedCall, Role};
use crate::{Call, Kind, fingerprint, risk};

// The lists of `rules/lessons.toml`.
include!(concat!(env!("OUT_DIR"), "/aim.rs"));

/// The longest call that is remembered word for word.
const CALL_MAX: usize = 300;

/// What a line is about: one command, with what prepares and what starts it.
struct Aim {
    command: Command,
    /// What is entered, read in or set for it, earlier in the line.
    prepared: Vec<String>,
    /// Its words, behind those of whoever starts it.
    words: Vec<String>,
    /// What sets it apart from the bare command: folders, variables and starters, but for those that only change what is shown.
    around: Vec<String>,
}

impl Aim {
    /// The command that a line is about is the last one that does anything but show.
    fn of(call: &Call) -> Option<Aim> {
        let script = ParsedCall::of(call).script?;
        let commands = script.commands();
        let is_shown = |at: usize| at > 0 && commands[at - 1].then == Join::Pipe;
        let is_work = |command: &Command| !ONLY_SHOWN.contains(&command.program.as_str());
        let at = (0..commands.len()).rev().find(|at| !is_shown(*at) && is_work(&commands[*at]))?;
        let command = commands.get(at)?;
        let starters = commands[..at]
            .iter()
            .rev()
            .take_while(|each| each.then == Join::Wraps && each.role == Role::Wrapper);
        let first = at - starters.clone().count();
        let starter = commands.get(first)?;
        let words = written(starter);
        let own = written(command).len();
        let prepared: Vec<String> = commands[..first]
            .iter()
            .filter(|each| prepares(each) && matches!(each.then, Join::And | Join::Always))
            .map(|each| written(each).join(" "))
            .collect();
        let named = starters.filter(|each| !PLAIN_STARTERS.contains(&each.program.as_str()));
        let goes_round = |name: &str| ROUND.iter().any(|beginning| name.starts_with(beginning));
        let is_set =
            |(name, _): &&(String, String)| !TELLING_VARIABLES.contains(&name.as_str()) && !goes_round(name);
        let set = commands[first..=at].iter().flat_map(|each| &each.assignments).filter(is_set);
        let around = prepared
            .iter()
            .cloned()
            .chain(set.map(|(name, value)| format!("{name}={value}")))
            .chain(named.map(|_| words[..words.len().saturating_sub(own)].join(" ")))
            .collect();
        Some(Aim { command: command.clone(), prepared, words, around })
    }

    fn told(&self) -> String {
        let mut told = self.prepared.clone();
        told.push(self.words.join(" "));
        told.join(" && ")
    }
}

/// Does it only make something ready for what follows in the same line?
pub(super) fn prepares(command: &Command) -> bool {
    let is_word = |words: &[&str]| {
        let mut operands = command.operands();
        words.is_empty() || operands.next().is_some_and(|first| words.contains(&first))
    };
    PREPARING.iter().any(|(program, words)| command.program == *program && is_word(words))
}

/// Is a call only begun, and goes on while others are made? How it ends is not known by then.
pub fn is_launch(call: &Call) -> bool {
    let goes_on = call.input.get("run_in_background").is_some_and(|told| *told == true);
    goes_on || Aim::of(call).is_some_and(|aim| aim.command.then == Join::Background)
}

/// What a call is about, in the words by which a change of it is remembered.
pub fn own_words(call: &Call) -> Option<String> {
    match Aim::of(call) {
        Some(aim) => Some(aim.told()),
        None if nature::object(&call.input).is_object() => Some(with_fields(call)),
        None => None,
    }
}

/// The same without what is made ready for it.
pub fn bare_words(call: &Call) -> Option<String> {
    Aim::of(call).map(|aim| aim.words.join(" "))
}

/// Does `worked` do what `failed` was meant to do, although it says it otherwise? The same command with other flags does, a
/// line that ends with it, another program with the same words where the first one is not there, and a tool that was given
/// other fields where it complained of them.
pub fn takes_the_place_of(worked: &Call, failed: &Call, kind: Kind) -> bool {
    if fingerprint::work(worked) == fingerprint::work(failed) {
        return true;
    }
    let (ran, meant) = match (Aim::of(worked), Aim::of(failed)) {
        (Some(ran), Some(meant)) => (ran.command, meant.command),
        (None, None) => return has_other_fields(worked, failed, kind),
        (Some(_), None) | (None, Some(_)) => return false,
    };
    // Who only looks at a file has not done with it what another was to do.
    if commands::traits(&ran).reader && !commands::traits(&meant).reader {
        return false;
    }
    // A check that found something is not mended by what it is told; what has another name now it did not even understand.
    let is_vague = matches!(kind, Kind::Unknown | Kind::Logical | Kind::CheckFailed);
    let is_finding = is_vague && tries(&meant) && !renames_flag(&meant, &ran);
    // The code that is wrong may stand in the call itself.
    let is_own_code =
        matches!(kind, Kind::CodeError | Kind::ParseError) && CODE_IN_WORDS.contains(&meant.program.as_str());
    let heals = (Healer::of(kind) == Healer::Deeds || is_own_code) && !is_finding;
    if ran.program == meant.program {
        // Other flags mend a call that was wrong; code that is wrong they only pass by, and what passes they do not speed.
        return if heals { is_corrected(&meant, &ran, kind) } else { written(&ran) == written(&meant) };
    }
    let operands = |command: &Command| command.operands().map(str::to_owned).collect::<Vec<_>>();
    let (done, wanted) = (operands(&ran), operands(&meant));
    // `./setup.sh` and `bash setup.sh`.
    let is_file_of = |file: &String| {
        meant.words.first().is_some_and(|word| word.contains('/') && bare(word) == bare(file))
    };
    if let [file, rest @ ..] = &done[..]
        && heals
        && INTERPRETERS.contains(&commands::plain_name(&ran.program))
        && is_file_of(file)
        && rest == wanted
    {
        return true;
    }
    let is_missing = matches!(kind, Kind::CommandNotFound | Kind::MissingDependency);
    // `docker-compose up` and `docker compose up`, `python x.py` and `python3 x.py`; whoever only puts the file somewhere, or
    // away, does nothing of the sort.
    let handles_file = || is_filer(&ran) || risk::of(worked).is_some();
    (is_missing || heals && names_file(&wanted))
        && !wanted.is_empty()
        && done.ends_with(&wanted)
        && !handles_file()
}

fn bare(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}

fn names_file(operands: &[String]) -> bool {
    operands.iter().any(|word| word.contains(['.', '/']))
}

/// Is `to` the command `from` with other flags, values of flags or numbers, or with one name that holds the other? A call that
/// was used wrongly may have lacked words as well.
fn is_corrected(from: &Command, to: &Command, kind: Kind) -> bool {
    let (from, to) = (from.args(), to.args());
    let is_flag = |word: &String| word.starts_with('-');
    let (gone, new) = (odd_ones(from, to), odd_ones(to, from));
    // Who was asked whether it is right has not said so by making it right.
    if gone.iter().any(|at| ASKING_FLAGS.contains(&from[*at].as_str())) {
        return false;
    }
    // To ask for less is a way round, unless it was the words that were wrong.
    if new.is_empty() && !gone.is_empty() && kind != Kind::Validation {
        return false;
    }
    // Whoever looks elsewhere has not found what was not there.
    let is_named = |words: &[String], at: &[usize]| at.iter().any(|at| !is_flag(&words[*at]));
    if kind == Kind::PathNotFound && is_named(from, &gone) && !is_named(to, &new) {
        return false;
    }
    let counts = |words: &[String], at: usize| {
        let is_value = at > 0 && is_flag(&words[at - 1]);
        !is_flag(&words[at]) && !is_value && words[at].parse::<f64>().is_err()
    };
    let gone: Vec<&String> = gone.into_iter().filter(|at| counts(from, *at)).map(|at| &from[at]).collect();
    let new: Vec<&String> = new.into_iter().filter(|at| counts(to, *at)).map(|at| &to[at]).collect();
    match (&gone[..], &new[..]) {
        ([], []) => true,
        ([], _) => kind == Kind::Validation && !from.is_empty(),
        ([gone], [new]) => gone.contains(new.as_str()) || new.contains(gone.as_str()),
        ([_, ..], _) => false,
    }
}

/// Is there a flag in one whose name holds that of a flag in the other?
fn renames_flag(from: &Command, to: &Command) -> bool {
    let flags = |words: &[String], at: Vec<usize>| -> Vec<String> {
        let names = at.into_iter().filter_map(|at| words[at].split('=').next().map(str::to_owned));
        names.filter(|name| name.starts_with("--")).collect()
    };
    let gone = flags(from.args(), odd_ones(from.args(), to.args()));
    let new = flags(to.args(), odd_ones(to.args(), from.args()));
    gone.iter().any(|gone| new.iter().any(|new| new.contains(gone.as_str()) || gone.contains(new.as_str())))
}

/// Where the words stand that are not among the others.
fn odd_ones(words: &[String], others: &[String]) -> Vec<usize> {
    (0..words.len()).filter(|at| !others.contains(&words[*at])).collect()
}

/// How a call was changed, where it was: as far as it matters, and as short as it can be told. `alone` says that nothing else
/// was done.
pub(super) fn changed(failed: &Call, worked: &Call, alone: bool) -> Option<Change> {
    let is_other = match (Aim::of(failed), Aim::of(worked)) {
        (Some(failed_aim), Some(aim)) => {
            let is_same = fingerprint::work(failed) == fingerprint::work(worked);
            // Whoever did something first may have come back to where they were.
            let matters = |part: &&String| alone || !part.starts_with("cd /");
            let around = |aim: &Aim| aim.around.iter().filter(matters).cloned().collect::<Vec<_>>();
            !is_same || around(&failed_aim) != around(&aim)
        }
        (None, None) => failed.tool == worked.tool && fields(failed) != fields(worked),
        (Some(_), None) | (None, Some(_)) => false,
    };
    let (from, to) = (own_words(failed)?, own_words(worked)?);
    (is_other && from != to && from.len().max(to.len()) <= CALL_MAX).then_some(Change { from, to })
}

/// The same tool with other fields, after it complained of those it had.
fn has_other_fields(worked: &Call, failed: &Call, kind: Kind) -> bool {
    let (had, has) = (nature::object(&failed.input), nature::object(&worked.input));
    let (Some(had), Some(has)) = (had.as_object(), has.as_object()) else { return false };
    let mut kept = had.iter().filter(|(name, _)| has.contains_key(*name));
    let is_about_same =
        kept.clone().next().is_none() || kept.any(|(name, value)| has.get(name) == Some(value));
    kind == Kind::Validation
        && worked.tool == failed.tool
        && fields(worked) != fields(failed)
        && is_about_same
}

fn fields(call: &Call) -> Vec<String> {
    let input = nature::object(&call.input);
    let mut fields: Vec<String> =
        input.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    fields.sort_unstable();
    fields
}

/// A tool with the names of what it is given. What stands in the fields is of one call alone.
fn with_fields(call: &Call) -> String {
    match &fields(call)[..] {
        [] => format!("{} with nothing", call.tool),
        fields => format!("{} with {}", call.tool, fields.join(", ")),
    }
}
