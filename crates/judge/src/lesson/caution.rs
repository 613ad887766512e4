//! Which fixes may be shown as they are, and which only after a person has read them. In doubt a person is asked: a lesson is
//! read by a model, and what a model reads it may do.

mod step;

use super::allowed;
use super::deed::Deed;
use super::fix::{Change, Fix};
use crate::kind::vocabulary;
use crate::nature::{Nature, commands};
use crate::risk;
use crate::shell::{Command, Join, Redirection, Role, Script};
use crate::{Call, Lang};
use step::Step;

vocabulary! {
    /// Why a fix is not shown without a person's leave.
    Caution {
        /// It deletes or overwrites what nobody can bring back.
        Destroys = "destroys",
        /// It runs what it has just fetched, or code that is written on the spot.
        RunsForeign = "runs_foreign",
        /// It sends something away.
        SendsAway = "sends_away",
        /// It installs from a place that is not the usual one.
        OddSource = "odd_source",
        /// It takes rights, or switches a protection off.
        Weakens = "weakens",
        /// It cannot be read.
        Unclear = "unclear",
    }
}

impl Caution {
    /// Why, as half a sentence.
    pub fn why(self, lang: Lang) -> &'static str {
        let words = match self {
            Caution::Destroys => ["it may delete what nobody can bring back", "它可能删除无法找回的内容"],
            Caution::RunsForeign => ["it runs code from elsewhere", "它会运行来自别处的代码"],
            Caution::SendsAway => ["it sends something away", "它会把数据发送出去"],
            Caution::OddSource => ["it installs from an unusual place", "它从不寻常的来源安装"],
            Caution::Weakens => {
                ["it takes rights or switches a protection off", "它会获取权限或关闭某项保护"]
            }
            Caution::Unclear => ["it cannot be read with certainty", "无法确定它的含义"],
        };
        words[lang as usize]
    }

    /// What speaks against showing a fix; nothing where it may be shown.
    pub fn about(fix: &Fix) -> Option<Caution> {
        let of_deed = |deed: &Deed| match deed {
            Deed::Ran { line } => about_step(line),
            Deed::Edited { file, .. } => (!is_plain(file)).then_some(Caution::Unclear),
            Deed::Called { tool, target } => {
                let is_told =
                    is_plain(tool) && is_plain(target) && !is_risky_tool(tool) && allowed::is_tool(tool);
                (!is_told).then_some(Caution::Unclear)
            }
        };
        let of_change = |change: &Change| {
            let is_told = has_plain_words(&change.from);
            let found = about_line(&change.to, Whose::TheCall);
            let (is_step, is_call) = (allowed::is_step(&change.to), allowed::is_call(&change.to));
            let counts = |caution: &Caution| match caution {
                Caution::Destroys | Caution::SendsAway => !is_step && !was_meant_anyway(*caution, change),
                Caution::RunsForeign | Caution::OddSource | Caution::Weakens | Caution::Unclear => !is_call,
            };
            let is_allowed = is_told && (is_call || allowed::is_call_for(&change.from, &change.to));
            found.filter(counts).or((!is_allowed).then_some(Caution::Unclear))
        };
        fix.deeds.iter().find_map(of_deed).or_else(|| fix.change.as_ref().and_then(of_change))
    }
}

// The lists of `rules/lessons.toml`.
include!(concat!(env!("OUT_DIR"), "/caution.rs"));

/// Whose words a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// Something that was done for the sake of a call.
    AStep,
    /// The call itself, in other words than those that failed: the agent was about to run it anyway.
    TheCall,
}

/// Is it one name, and not a sentence or signs that are taken for something else? A model reads what is told.
pub(super) fn is_plain(word: &str) -> bool {
    let mut signs = word.chars().peekable();
    let mut blanks = 0;
    while let Some(sign) = signs.next() {
        blanks += u32::from(sign == ' ');
        let is_bound = matches!(signs.peek(), Some('=' | '0'..='9'));
        let is_fine = match sign {
            '`' | '{' | '}' | '!' | ';' | '|' | '&' | '$' | '\\' => false,
            '<' | '>' => is_bound,
            '(' => false,
            sign => sign.is_alphanumeric() || sign.is_ascii_graphic() || sign == ' ',
        };
        if !is_fine || blanks > 1 {
            return false;
        }
    }
    word.chars().count() <= WORD_MAX && word.split('-').count() <= PARTS_MAX && !looks_like_another(word)
}

/// Does the name of a tool say that it takes away, sends or hands work on? What it is given is not known.
fn is_risky_tool(tool: &str) -> bool {
    let lists = [TAKING_AWAY, RISKY_TASKS, RISKY_TOOLS, IN_USE];
    let is_risky = |part: &str| lists.iter().any(|list| list.contains(&part));
    let spaced: String =
        tool.chars().flat_map(|sign| [sign.is_uppercase().then_some(' '), Some(sign)]).flatten().collect();
    spaced.to_lowercase().split(|sign: char| !sign.is_alphanumeric()).any(is_risky)
}

/// Does a word name what others use? Groups of packages may be called so.
pub(super) fn is_in_use(word: &str, shape: &str) -> bool {
    let is_named = |part: &str| IN_USE.contains(&part.to_lowercase().as_str());
    !matches!(shape, "bundlevalue" | "names" | "nodeenv")
        && word.split(|sign: char| !sign.is_alphanumeric()).any(is_named)
}

/// Does the name of a task say that more may come of it than files of the project?
pub(super) fn names_risk(program: &str, word: &str) -> bool {
    // A long one may be part of another word (`flywayClean`).
    let is_named = |part: &str| matches!(part, "deps" | "dependencies" | "requirements" | "packages");
    let is_of_dependencies = word.split(|sign: char| !sign.is_alphanumeric()).any(is_named);
    let is_risky = |part: &str| {
        let part = part.to_lowercase();
        // What these words do is fixed by the program.
        let is_own = match part.as_str() {
            "install" => matches!(program, "mvn" | "mvnw" | "mvnd") || is_of_dependencies,
            "apply" | "spotlessapply" => word.starts_with("spotless") || word.contains(":spotless"),
            "clean" => {
                word == "clean"
                    && matches!(
                        program,
                        "mvn"
                            | "mvnw"
                            | "mvnd"
                            | "gradle"
                            | "gradlew"
                            | "sbt"
                            | "lein"
                            | "cargo"
                            | "make"
                            | "gmake"
                    )
            }
            _ => false,
        };
        let is_in = |risky: &str| part == risky || risky.len() >= RISKY_WITHIN && part.contains(risky);
        !is_own && RISKY_TASKS.iter().any(|risky| is_in(risky))
    };
    // `dropAll` are two words.
    let humps: String = word
        .chars()
        .scan(false, |was_small, sign| {
            let blank =
                (std::mem::replace(was_small, sign.is_lowercase()) && sign.is_uppercase()).then_some(' ');
            Some([blank, Some(sign)])
        })
        .flatten()
        .flatten()
        .collect();
    word.split(|sign: char| !sign.is_alphanumeric()).any(is_risky)
        || humps.split(|sign: char| !sign.is_alphanumeric()).any(|part| part.len() > 2 && is_risky(part))
}

/// Are letters mixed that are taken for one another?
fn looks_like_another(word: &str) -> bool {
    let is_double = |sign: char| matches!(sign, '\u{370}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}');
    let is_wide = |sign: char| matches!(sign, '\u{ff00}'..='\u{ffef}' | '\u{1d400}'..='\u{1d7ff}');
    let has_latin = word.contains(|sign: char| sign.is_ascii_alphabetic());
    word.contains(is_wide) || has_latin && word.contains(is_double)
}

/// Is every word of a line one name?
fn has_plain_words(line: &str) -> bool {
    let script = Script::parse(line);
    let words = || script.commands().iter().flat_map(|command| &command.words);
    words().next().is_some() && words().all(|word| is_plain(word))
}

/// A longer word is no name.
const WORD_MAX: usize = 120;
/// A word of more parts is a sentence.
const PARTS_MAX: usize = 7;

/// Would the call that failed have done the same, to the same things? Then nobody is led to anything.
fn was_meant_anyway(caution: Caution, change: &Change) -> bool {
    let (from, to) = (Script::parse(&change.from), Script::parse(&change.to));
    let (Some(meant), Some(told)) = (from.last(), to.last()) else { return false };
    let is_harsher = |word: &&String| {
        let is_force = FORCING.contains(&word.split('=').next().unwrap_or(word));
        let is_bundle = word.starts_with('-')
            && !word.contains('=')
            && !word.starts_with("--")
            && word.contains(['f', 'r', 'R', 'D']);
        let names_others =
            word.split(|sign: char| !sign.is_alphanumeric()).any(|part| IN_USE.contains(&part));
        is_force
            || is_bundle
            || names_others
            || word.starts_with('+')
            || word.contains(['/', ':', '@'])
            || !is_plain(word)
    };
    let mut new = told.args().iter().filter(|word| !meant.args().contains(word));
    matches!(caution, Caution::Destroys | Caution::SendsAway)
        && meant.program == told.program
        && meant.operands().next() == told.operands().next()
        && about_line(&change.from, Whose::TheCall) == Some(caution)
        && !new.any(|word| is_harsher(&word))
        && told.assignments.iter().all(|set| meant.assignments.contains(set))
        && has_rights(&from) == has_rights(&to)
        && (told.program != "git"
            || goes_to(told).is_none_or(|to| to == "origin" || goes_to(meant) == Some(to)))
}

/// Is it run with the rights of somebody else?
fn has_rights(script: &Script) -> bool {
    script.commands().iter().any(|command| matches!(command.program.as_str(), "sudo" | "doas"))
}

/// The place that something is pushed to.
fn goes_to(command: &Command) -> Option<&str> {
    command.operands().nth(1)
}

/// A shorter word is met as a whole only.
const RISKY_WITHIN: usize = 5;

/// What speaks against showing a step. Only the allow-list lets it be shown; the rest says why it is not.
fn about_step(line: &str) -> Option<Caution> {
    match allowed::is_step(line) {
        true => None,
        false => about_line(line, Whose::AStep).or(Some(Caution::Unclear)),
    }
}

/// What is known to speak against showing one line.
fn about_line(line: &str, whose: Whose) -> Option<Caution> {
    let script = Script::parse(line);
    let commands = script.commands();
    if commands.is_empty() || line.chars().any(|sign| sign.is_control()) {
        return Some(Caution::Unclear);
    }
    // What is put together while it runs cannot be read beforehand.
    if ["$", "`", "<(", "<<", "#"].iter().any(|sign| line.contains(sign)) {
        return Some(Caution::Unclear);
    }
    let doubtful: Vec<Step<'_>> = (0..commands.len())
        .map(|at| Step::new(&commands[at], whose, at.checked_sub(1).map(|at| &commands[at])))
        .filter(|step| !step.is_fine())
        .collect();
    // Lists of packages are written by every installer, and git has them, as it has code that is written anew; what git mixes or
    // puts aside it can take apart, and in a log there is nothing to lose.
    let is_logged = || commands.iter().flat_map(|command| &command.redirections).all(is_log);
    let is_kept = |row: &str| {
        row.starts_with("lock.")
            || row.starts_with("code.")
            || matches!(row, "git.merge" | "git.stash")
            || row == "files.redirect" && is_logged()
    };
    // One command of a line may lose nothing while the next one does.
    let loses =
        |risk: &risk::Risk| risk.rows().any(|(row, counts)| counts == risk::Counts::Always && !is_kept(row));
    let loss = || {
        risk::of(&Call::shell(line)).filter(loses).filter(|_| !doubtful.is_empty()).map(|_| Caution::Destroys)
    };
    let found = doubtful.iter().find_map(Step::caution);
    found.or_else(loss).or_else(|| doubtful.iter().find_map(about_nature))
}

/// Is a file there for what a program tells?
fn is_telling(file: &str) -> bool {
    file.ends_with(".log") || file.ends_with(".out") || file.starts_with("/tmp/")
}

/// Does it write nothing, or only what a program tells while it runs?
fn is_log(to: &Redirection) -> bool {
    !to.writes_file() || is_telling(&to.target)
}

/// What is not known to be harmless is shown to a person first.
fn about_nature(step: &Step<'_>) -> Option<Caution> {
    let command = step.command;
    let is_starter = command.role == Role::Wrapper;
    if is_starter && STARTERS.contains(&step.program) {
        return None;
    }
    if is_starter || step.args.iter().any(|word| !is_plain(word)) {
        return Some(Caution::Unclear);
    }
    if step.whose == Whose::AStep && step.is_beyond_what_is_told() {
        return Some(Caution::Unclear);
    }
    match (commands::traits(command).nature, step.whose) {
        (Nature::ReadOnly | Nature::Idempotent, _) => None,
        (Nature::Unknown | Nature::Writes, Whose::TheCall) => None,
        // Git keeps what it had.
        (Nature::Writes, Whose::AStep) => (step.program != "git").then_some(Caution::Destroys),
        (Nature::Unknown, Whose::AStep) => {
            let is_known = step.is_harmless_task() || step.brings_in_by_name();
            (!is_known).then_some(Caution::Unclear)
        }
    }
}
