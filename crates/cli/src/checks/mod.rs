//! Proves that a success is one. What somebody expects of a command is looked at after it says that all went well, and where
//! they expect nothing, only what it printed about itself is doubted. A check reads and runs; it never puts anything right.

mod error;
pub(crate) mod json_test;
mod listener;
mod print;
#[cfg(test)]
mod tests;
mod verify;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use regex_lite::Regex;
use serde_json::Value;
use unstuck_judge::rules::Shape;
use unstuck_judge::suspicion::{CUT_JSON, Expected, JsonEnd, Suspicion, Watch};
use unstuck_judge::{Call, Diagnosis, FixBy, Kind, Lang, Proof};

pub(crate) use error::CheckError;
pub(crate) use listener::Listener;

use crate::attempts::{self, CheckResult, Checked};
use json_test::JsonTest;
use listener::{BODY_MAX, Json};
use print::Print;

/// How checks are called of JSON that somebody asked for.
pub(crate) const EXPECT_JSON: &str = "expect-json";

/// What somebody expects of a command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Checks")]
pub(crate) struct CheckArgs {
    /// After a success this must succeed, too; a shell runs it (may be given several times)
    #[arg(long, value_name = "CMD")]
    pub(crate) verify: Vec<String>,
    /// How long each of those may take
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = attempts::time_limit)]
    pub(crate) verify_timeout: Duration,
    /// The exit codes that are a success (0 unless given)
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(0..256))]
    pub(crate) expect_exit: Vec<i32>,
    /// Standard output must be JSON; with a test in the manner of jq, such as '.items|length > 0', that must hold
    #[arg(long, value_name = "TEST", num_args = 0..=1, default_missing_value = "")]
    pub(crate) expect_json: Vec<String>,
    /// This must be there and not be empty
    #[arg(long, value_name = "PATH")]
    pub(crate) expect_file: Vec<PathBuf>,
    /// This must have been written, made or removed
    #[arg(long, value_name = "PATH")]
    pub(crate) expect_changed: Vec<PathBuf>,
    /// A line of the output must match this regular expression
    #[arg(long, value_name = "REGEX")]
    pub(crate) expect_output: Vec<String>,
    /// Do not doubt a success because of what it printed
    #[arg(long)]
    pub(crate) no_suspicion: bool,
}

impl Default for CheckArgs {
    fn default() -> CheckArgs {
        CheckArgs {
            verify: Vec::new(),
            verify_timeout: Duration::from_secs(60),
            expect_exit: Vec::new(),
            expect_json: Vec::new(),
            expect_file: Vec::new(),
            expect_changed: Vec::new(),
            expect_output: Vec::new(),
            no_suspicion: false,
        }
    }
}

/// All checks of a run, ready to be made after each attempt.
#[derive(Debug)]
pub(crate) struct Checks {
    verify: Vec<String>,
    verify_timeout: Duration,
    expect_exit: Vec<i32>,
    json: Vec<WantedJson>,
    files: Vec<PathBuf>,
    changed: Vec<PathBuf>,
    output: Vec<Regex>,
    has_doubts: bool,
    lang: Lang,
}

/// What is wanted of an answer.
#[derive(Debug)]
enum WantedJson {
    Any,
    That(JsonTest),
}

/// How things were before anything ran.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    prints: Vec<Print>,
}

/// What an attempt left to look at.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    /// Its exit code; nothing where it has none: a signal or the time limit ended it.
    pub(crate) exit_code: Option<i32>,
    /// What was heard of its output.
    pub(crate) heard: Listener,
    /// What `--verify` commands find in their environment, as the attempt did.
    pub(crate) variables: &'a [(OsString, OsString)],
    /// When they have to be done at the latest, where somebody said so.
    pub(crate) until: Option<Instant>,
}

impl Checks {
    /// Reads what is expected. A test or pattern that makes no sense is told before anything runs.
    pub(crate) fn new(args: &CheckArgs, lang: Lang) -> Result<Checks, CheckError> {
        if args.verify.iter().any(|command| command.trim().is_empty()) {
            return Err(CheckError::EmptyVerify);
        }
        let pattern = |written: &String| {
            Regex::new(written)
                .map_err(|why| CheckError::NoPattern { written: written.clone(), why: why.to_string() })
        };
        let wanted = |test: &String| match test.trim() {
            "" => Ok(WantedJson::Any),
            test => JsonTest::parse(test).map(WantedJson::That),
        };
        Ok(Checks {
            verify: args.verify.clone(),
            verify_timeout: args.verify_timeout,
            expect_exit: args.expect_exit.clone(),
            json: args.expect_json.iter().map(wanted).collect::<Result<_, _>>()?,
            files: args.expect_file.clone(),
            changed: args.expect_changed.clone(),
            output: args.expect_output.iter().map(pattern).collect::<Result<_, _>>()?,
            has_doubts: !args.no_suspicion,
            lang,
        })
    }

    /// Did somebody ask for a check? Doubts of our own do not count.
    pub(crate) fn is_asked_for(&self) -> bool {
        let Checks { verify, expect_exit, json, files, changed, output, .. } = self;
        !(verify.is_empty()
            && expect_exit.is_empty()
            && json.is_empty()
            && files.is_empty()
            && changed.is_empty()
            && output.is_empty())
    }

    /// Is this exit code a success?
    pub(crate) fn accepts(&self, code: i32) -> bool {
        match self.expect_exit.is_empty() {
            true => code == 0,
            false => self.expect_exit.contains(&code),
        }
    }

    /// How things are now. Taken once, before the first attempt.
    pub(crate) fn before(&self) -> Baseline {
        Baseline { prints: self.changed.iter().map(|path| Print::of(path)).collect() }
    }

    /// Hears the output of an attempt. Where nobody asks for it, that costs nothing.
    pub(crate) fn listen(&self, call: &Call) -> Listener {
        let keeps = self.json.iter().any(|wanted| matches!(wanted, WantedJson::That(_)));
        let json = (!self.json.is_empty()).then_some(keeps);
        // What somebody says about the exit code or the JSON goes before what we suspect.
        let doubts = self.has_doubts && self.expect_exit.is_empty();
        let watch = if doubts { Watch::of(call) } else { Watch::none() };
        Listener::new(json, &self.output, watch)
    }

    /// Makes all checks of an attempt. One that failed by itself is not looked at any further: only that its exit code was
    /// not the one that was expected is said.
    pub(crate) fn look(&self, baseline: &Baseline, seen: Seen<'_>) -> Vec<Checked> {
        let lang = self.lang;
        let mut all = Vec::new();
        if !self.expect_exit.is_empty() {
            all.push(self.exit(seen.exit_code));
        }
        if !seen.exit_code.is_some_and(|code| self.accepts(code)) {
            return all;
        }
        let (json, patterns, suspicion) = seen.heard.end();
        if let Some(json) = json {
            all.extend(self.json.iter().map(|wanted| timed(|| is_json(wanted, &json, lang))));
        }
        for (path, before) in self.changed.iter().zip(&baseline.prints) {
            all.push(timed(|| has_changed(path, before, lang)));
        }
        all.extend(self.files.iter().map(|path| timed(|| is_there(path, lang))));
        for pattern in patterns {
            let result = failed_unless(pattern.is_met, || match lang {
                Lang::En => "no line of the output matches".to_owned(),
                Lang::Zh => "输出中没有匹配的行".to_owned(),
            });
            let check = format!("expect-output {}", pattern.wanted.as_str());
            all.push(Checked { check, result, took: Duration::ZERO });
        }
        // Where JSON was asked for and looked at, its end needs no doubt.
        let doubted = suspicion.filter(|doubt| self.json.is_empty() || doubt.id() != CUT_JSON);
        all.extend(doubted.map(|doubt| doubtful(&doubt, lang)));
        // What costs most comes last, and only where nothing else failed yet.
        for command in &self.verify {
            if all.iter().any(Checked::has_failed) {
                break;
            }
            let patience = verify::Patience { limit: self.verify_timeout, until: seen.until };
            all.push(verify::run(command, patience, seen.variables, lang));
        }
        all
    }

    fn exit(&self, code: Option<i32>) -> Checked {
        let wanted: Vec<String> = self.expect_exit.iter().map(ToString::to_string).collect();
        let is_wanted = code.is_some_and(|code| self.accepts(code));
        let result = failed_unless(is_wanted, || match (code, self.lang) {
            (Some(code), Lang::En) => format!("it exited with {code}"),
            (Some(code), Lang::Zh) => format!("退出码为 {code}"),
            (None, Lang::En) => "it did not exit by itself".to_owned(),
            (None, Lang::Zh) => "它不是自行退出的".to_owned(),
        });
        Checked { check: format!("expect-exit {}", wanted.join(",")), result, took: Duration::ZERO }
    }
}

/// What an exit code means that somebody expects, whatever it means otherwise.
pub(crate) fn as_expected() -> Diagnosis {
    Diagnosis {
        kind: Kind::NotAnError,
        stage: None,
        confidence: 0.99,
        rule: "check.expected-exit".to_owned(),
        evidence: None,
        subject: None,
        shape: Shape::Name,
        transient: false,
        fix_by: FixBy::Nobody,
        effect: None,
        hint: None,
        advice: Vec::new(),
        proof: Proof::Proven,
        is_elsewhere: false,
    }
}

/// Makes one check, and tells how long it took.
fn timed(check: impl FnOnce() -> (String, CheckResult)) -> Checked {
    let begun = Instant::now();
    let (check, result) = check();
    Checked { check, result, took: begun.elapsed() }
}

fn failed_unless(holds: bool, found: impl FnOnce() -> String) -> CheckResult {
    match holds {
        true => CheckResult::Held,
        false => CheckResult::Failed { found: found() },
    }
}

fn doubtful(doubt: &Suspicion, lang: Lang) -> Checked {
    let found = match lang {
        Lang::En => format!("{}: {}", doubt.why(lang), doubt.evidence),
        Lang::Zh => format!("{}：{}", doubt.why(lang), doubt.evidence),
    };
    let result = match doubt.id() {
        CUT_JSON => CheckResult::CutOff { found },
        _ => CheckResult::Failed { found },
    };
    Checked { check: format!("suspicion {}", doubt.id()), result, took: Duration::ZERO }
}

fn is_json(wanted: &WantedJson, json: &Json, lang: Lang) -> (String, CheckResult) {
    let test = match wanted {
        WantedJson::Any => None,
        WantedJson::That(test) => Some(test),
    };
    let check = test.map_or(EXPECT_JSON.to_owned(), |test| format!("{EXPECT_JSON} {}", test.written()));
    let result = match (json.text.end(), test, &json.body) {
        (JsonEnd::Whole, Some(test), Some(body)) => asked_about(test, body, lang)
            .map_or_else(|found| CheckResult::Failed { found }, |()| CheckResult::Held),
        (JsonEnd::Whole, Some(_) | None, _) => CheckResult::Held,
        (end @ JsonEnd::Cut, _, _) => CheckResult::CutOff { found: no_json(end, lang) },
        (end @ (JsonEnd::Nothing | JsonEnd::Broken { .. }), _, _) => {
            CheckResult::Unread { found: no_json(end, lang) }
        }
    };
    (check, result)
}

/// Asks a test about each document of an answer.
fn asked_about(test: &JsonTest, body: &[u8], lang: Lang) -> Result<(), String> {
    if body.len() > BODY_MAX {
        let most = crate::removed::size(BODY_MAX as u64);
        return Err(match lang {
            Lang::En => format!("it is JSON, but longer than {most}: what is in it was not looked at"),
            Lang::Zh => format!("它是 JSON，但超过 {most}：没有检查其中的内容"),
        });
    }
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    for document in serde_json::Deserializer::from_slice(body).into_iter::<Value>() {
        let document = document.map_err(|error| error.to_string())?;
        test.holds(&document, lang)?;
    }
    Ok(())
}

/// Why a text is no JSON.
fn no_json(end: JsonEnd, lang: Lang) -> String {
    let say = |en: String, zh: String| match lang {
        Lang::En => en,
        Lang::Zh => zh,
    };
    match end {
        JsonEnd::Whole => String::new(),
        JsonEnd::Nothing => say("standard output is empty".to_owned(), "标准输出为空".to_owned()),
        JsonEnd::Cut => say("the JSON ends too early".to_owned(), "JSON 不完整".to_owned()),
        JsonEnd::Broken { at, expected } => {
            let (en, zh) = match expected {
                Expected::Value => ("a value", "一个值"),
                Expected::Key => ("a name in double quotes", "双引号括起的键名"),
                Expected::Colon => ("a colon", "冒号"),
                Expected::CommaOrEnd => ("a comma or a closing bracket", "逗号或右括号"),
                Expected::Word => ("true, false or null", "true、false 或 null"),
                Expected::Digit => ("a digit", "数字"),
                Expected::Escape => ("a valid escape", "有效的转义"),
                Expected::StringSign => ("the end of a text", "字符串的结尾"),
                Expected::End => ("the end, or a new line", "结尾或换行"),
                Expected::LessDeep => ("fewer brackets", "更少的括号"),
            };
            say(
                format!("standard output is no JSON: expected {en} at byte {at}"),
                format!("标准输出不是 JSON：第 {at} 字节处应为{zh}"),
            )
        }
    }
}

fn has_changed(path: &Path, before: &Print, lang: Lang) -> (String, CheckResult) {
    let result = failed_unless(Print::of(path) != *before, || match lang {
        Lang::En => "it is as it was before".to_owned(),
        Lang::Zh => "它和之前一样".to_owned(),
    });
    (format!("expect-changed {}", path.display()), result)
}

fn is_there(path: &Path, lang: Lang) -> (String, CheckResult) {
    let found = match fs::metadata(path) {
        Ok(found) if found.is_dir() => match fs::read_dir(path).map(|mut names| names.next().is_some()) {
            Ok(true) => None,
            Ok(false) => Some(("the folder is empty".to_owned(), "文件夹为空".to_owned())),
            Err(error) => Some((error.to_string(), error.to_string())),
        },
        Ok(found) if found.is_file() && found.len() == 0 => {
            Some(("it is empty".to_owned(), "它是空的".to_owned()))
        }
        Ok(_) => None,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Some(("it is not there".to_owned(), "它不存在".to_owned()))
        }
        Err(error) => Some((error.to_string(), error.to_string())),
    };
    let result = found.map_or(CheckResult::Held, |(en, zh)| CheckResult::Failed {
        found: match lang {
            Lang::En => en,
            Lang::Zh => zh,
        },
    });
    (format!("expect-file {}", path.display()), result)
}
