//! `unstuck allow`: lets a call run that would be refused. Only a person may.

use std::time::Duration;

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_store::{Allowance, StoreError};
use unstuck_wire::time;

use crate::cellar::{self, Cellar};
use crate::columns::{self, Side};
use crate::commands::pause;
use crate::exit::{CommandError, ExitStatus};
use crate::moment;
use crate::person;
use crate::plain;
use crate::settings::quoted;
use crate::ui::Ui;

/// Let a refused call run, for a while
///
/// KEY stands at the end of every refusal. It means this call in every session; what the agent asks for otherwise is judged
/// as before.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck allow viwyi3vv              for an hour
  unstuck allow viwyi3vv --for 1d     for a day; 7d is the longest
  unstuck allow                       what is allowed now
  unstuck allow --revoke viwyi3vv     no longer")]
pub(crate) struct AllowArgs {
    /// The name of the call, from the refusal
    key: Option<String>,
    /// How long, such as 30m, 1h or 7d
    #[arg(long = "for", value_name = "SPAN", default_value = "1h", value_parser = pause::span)]
    span: Duration,
    /// Show what is allowed now (the default without KEY)
    #[arg(long, conflicts_with_all = ["key", "revoke"])]
    list: bool,
    /// Take it back
    #[arg(long, value_name = "KEY", conflicts_with = "key")]
    revoke: Option<String>,
    /// Without a terminal: yes, a person wants this
    #[arg(long)]
    yes: bool,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct WireAllowance<'a> {
    key: &'a str,
    call: &'a str,
    until: String,
    until_ms: u64,
}

#[derive(Serialize)]
struct WireRevoked<'a> {
    key: &'a str,
    revoked: bool,
}

impl<'a> From<&'a Allowance> for WireAllowance<'a> {
    fn from(allowance: &'a Allowance) -> WireAllowance<'a> {
        let Allowance { key, label, until } = allowance;
        WireAllowance { key, call: label, until: time::iso(*until), until_ms: *until }
    }
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &AllowArgs) -> Result<ExitStatus, CommandError> {
    match (&args.key, &args.revoke) {
        (Some(key), _) => allow(ui, cellar, &bare(key), args),
        (None, Some(key)) => revoke(ui, cellar, &bare(key), args.json),
        (None, None) => list(ui, cellar, args.json),
    }
}

/// The key as it is kept, however it was copied out of a text.
fn bare(key: &str) -> String {
    key.trim_matches(|sign: char| sign.is_whitespace() || "`'\".".contains(sign)).to_ascii_lowercase()
}

fn allow(ui: &mut Ui, cellar: &Cellar, key: &str, args: &AllowArgs) -> Result<ExitStatus, CommandError> {
    person::must_be_there(args.yes)?;
    let no_such = || CommandError::NoSuchRefusal { key: quoted(key) };
    if key.is_empty() || !key.chars().all(|sign| sign.is_ascii_alphanumeric()) {
        return Err(no_such());
    }
    // The refusal may have been noted only in the spool.
    cellar.tend(&cellar.cleaner())?;
    let mut store = cellar.to_write()?;
    let now = cellar::now();
    let until = now.saturating_add(time::span_ms(args.span));
    let allowance = store.allow(key, until, now)?.ok_or_else(no_such)?;
    if args.json {
        ui.json(&WireAllowance::from(&allowance))?;
        return Ok(ExitStatus::Success);
    }
    let (label, until) = (plain::short(&allowance.label, 120), moment::format_utc(allowance.until));
    ui.say(&match ui.lang() {
        Lang::En => format!(
            "allowed until {until}: {label}\nIt may run in every session. `unstuck allow --revoke {key}` takes it back.\n"
        ),
        Lang::Zh => {
            format!("已允许至 {until}：{label}\n在所有会话中都可以运行。`unstuck allow --revoke {key}` 可收回。\n")
        }
    })?;
    Ok(ExitStatus::Success)
}

fn revoke(ui: &mut Ui, cellar: &Cellar, key: &str, json: bool) -> Result<ExitStatus, CommandError> {
    // Nothing is made where nothing is recorded yet.
    cellar.root()?;
    let revoked = cellar.to_write()?.revoke(key)?;
    let shown = quoted(key);
    match (json, revoked, ui.lang()) {
        (true, revoked, _) => ui.json(&WireRevoked { key, revoked })?,
        (false, true, Lang::En) => ui.say(&format!("{shown} is no longer allowed\n"))?,
        (false, true, Lang::Zh) => ui.say(&format!("不再允许 {shown}\n"))?,
        (false, false, Lang::En) => ui.say(&format!("{shown} was not allowed\n"))?,
        (false, false, Lang::Zh) => ui.say(&format!("{shown} 并未被允许\n"))?,
    }
    Ok(if revoked { ExitStatus::Success } else { ExitStatus::No })
}

fn list(ui: &mut Ui, cellar: &Cellar, json: bool) -> Result<ExitStatus, CommandError> {
    let now = cellar::now();
    let allowed = match cellar.to_read() {
        Err(CommandError::Store(StoreError::Missing { .. })) => Vec::new(),
        store => store?.allowed(now)?,
    };
    if json {
        allowed.iter().try_for_each(|allowance| ui.json(&WireAllowance::from(allowance)))?;
        return Ok(ExitStatus::Success);
    }
    let lang = ui.lang();
    if allowed.is_empty() {
        ui.say(match lang {
            Lang::En => "nothing is allowed beyond the rules\n",
            Lang::Zh => "没有额外允许的调用\n",
        })?;
        return Ok(ExitStatus::Success);
    }
    let rows: Vec<Vec<String>> = allowed
        .iter()
        .map(|Allowance { key, label, until }| {
            let until = moment::format_utc(*until);
            let until = match lang {
                Lang::En => format!("until {until}"),
                Lang::Zh => format!("至 {until}"),
            };
            vec![plain::short(key, 16), until, plain::short(label, 120)]
        })
        .collect();
    ui.say(&columns::table(&[Side::Left; 3], &rows))?;
    Ok(ExitStatus::Success)
}
