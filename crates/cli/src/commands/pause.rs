//! `unstuck pause`: does nothing for a while, for all agents of this person.

use std::time::Duration;

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_wire::time;

use crate::cellar::{self, Cellar};
use crate::exit::{CommandError, ExitStatus};
use crate::moment;
use crate::person;
use crate::switch::{self, Switch};
use crate::ui::Ui;

/// Let all agents work without unstuck for a while
///
/// Nothing is recorded, said or refused until the time is over or `unstuck resume` is run. For one agent alone, start it with
/// UNSTUCK_DISABLE=1.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck pause           for 30 minutes
  unstuck pause 2h        for two hours; 7d is the longest
  unstuck resume          no longer")]
pub(crate) struct PauseArgs {
    /// How long, such as 90s, 30m, 2h or 7d
    #[arg(default_value = "30m", value_name = "SPAN", value_parser = span)]
    span: Duration,
    /// Without a terminal: yes, a person wants this
    #[arg(long)]
    yes: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct WirePause {
    state: &'static str,
    until: String,
    until_ms: u64,
}

/// Reads how long something may last that takes a brake off.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let span = moment::parse_span(text)?;
    match (Duration::from_secs(1)..=switch::LONGEST).contains(&span) {
        true => Ok(span),
        false => Err("it may last from 1s to 7d".to_owned()),
    }
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &PauseArgs) -> Result<ExitStatus, CommandError> {
    person::must_be_there(args.yes)?;
    let folder = cellar.make_folder()?;
    let until = cellar::now().saturating_add(time::span_ms(args.span));
    switch::pause(&folder, until).map_err(|source| CommandError::NotMade { path: folder, source })?;
    match (args.json, ui.lang()) {
        (true, _) => {
            let state = Switch::Paused(until).word();
            ui.json(&WirePause { state, until: time::iso(until), until_ms: until })?;
        }
        (false, Lang::En) => {
            let moment = moment::format_utc(until);
            ui.say(&format!(
                "paused until {moment}: agents work without unstuck (`unstuck resume` ends it)\n"
            ))?;
        }
        (false, Lang::Zh) => {
            let moment = moment::format_utc(until);
            ui.say(&format!(
                "已暂停至 {moment}：智能体在没有 unstuck 的情况下工作（`unstuck resume` 可结束）\n"
            ))?;
        }
    }
    Ok(ExitStatus::Success)
}
