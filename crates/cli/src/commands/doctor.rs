//! `unstuck doctor`: is everything alive that should be, and what is to be done where it is not.

use serde::Serialize;
use unstuck_judge::Lang;

use crate::agents::Agent;
use crate::cellar::Cellar;
use crate::columns;
use crate::commands::install::agent_named;
use crate::doctor::{Doctor, Finding, Severity};
use crate::exit::{CommandError, ExitStatus};
use crate::ui::Ui;

/// Check that agents call unstuck, that it answers, and that its store is sound
///
/// It mends nothing by itself. Exits with 6 where something should be mended.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck doctor                 everything, and every agent that is on this machine
  unstuck doctor claude codex    only these agents
  unstuck doctor --json          the same as one JSON object
  unstuck doctor --quiet         only what should be mended")]
pub(crate) struct DoctorArgs {
    /// Only these agents (default: those that are on this machine)
    #[arg(value_name = "AGENT", value_parser = agent_named)]
    agents: Vec<&'static Agent>,
    /// Only show what should be mended
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct WireVisit<'a> {
    version: &'static str,
    /// Nothing should be mended.
    sound: bool,
    findings: Vec<WireFinding<'a>>,
}

#[derive(Serialize)]
struct WireFinding<'a> {
    severity: &'static str,
    about: &'a str,
    check: &'a str,
    what: &'a str,
    todo: Option<&'a str>,
}

impl<'a> From<&'a Finding> for WireFinding<'a> {
    fn from(finding: &'a Finding) -> WireFinding<'a> {
        WireFinding {
            severity: finding.severity.word(),
            about: &finding.about,
            check: finding.check,
            what: &finding.what,
            todo: finding.todo.as_deref(),
        }
    }
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &DoctorArgs) -> Result<ExitStatus, CommandError> {
    let lang = ui.lang();
    let findings = Doctor::new(cellar, lang).examine(&args.agents);
    let bad = findings.iter().filter(|finding| finding.severity.is_bad()).count();
    match args.json {
        true => ui.json(&WireVisit {
            version: env!("CARGO_PKG_VERSION"),
            sound: bad == 0,
            findings: findings.iter().map(WireFinding::from).collect(),
        })?,
        false => {
            let shown = findings.iter().filter(|finding| !args.quiet || finding.severity.is_bad());
            let text: String = shown.map(|finding| in_words(finding, lang)).collect();
            ui.say(&(text + &summary(bad, lang)))?;
        }
    }
    Ok(if bad == 0 { ExitStatus::Success } else { ExitStatus::Unwell })
}

fn in_words(finding: &Finding, lang: Lang) -> String {
    let severity = columns::left(finding.severity.in_words(lang), 8);
    let mut text = format!("{severity} {} {}\n", columns::left(&finding.about, 9), finding.what);
    if let Some(todo) = finding.todo.as_ref().filter(|_| finding.severity != Severity::Ok) {
        text.push_str(&format!("{}→ {todo}\n", " ".repeat(19)));
    }
    text
}

fn summary(bad: usize, lang: Lang) -> String {
    match (bad, lang) {
        (0, Lang::En) => "all is well\n".to_owned(),
        (0, Lang::Zh) => "一切正常\n".to_owned(),
        (1, Lang::En) => "1 thing should be mended\n".to_owned(),
        (_, Lang::En) => format!("{bad} things should be mended\n"),
        (_, Lang::Zh) => format!("有 {bad} 处需要修复\n"),
    }
}
