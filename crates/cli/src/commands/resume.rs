//! `unstuck resume`: ends a pause.

use serde::Serialize;
use unstuck_judge::Lang;

use crate::cellar::{self, Cellar};
use crate::exit::{CommandError, ExitStatus};
use crate::switch::{self, Switch};
use crate::ui::Ui;

/// End a pause
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck resume          work again at once
  unstuck status          is it on?")]
pub(crate) struct ResumeArgs {
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct WireResume {
    state: &'static str,
    was_paused: bool,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &ResumeArgs) -> Result<ExitStatus, CommandError> {
    let folder = cellar.folder()?;
    let now = cellar::now();
    let gone = |source| CommandError::NotMade { path: folder.to_owned(), source };
    let was_paused = switch::resume(folder, now).map_err(gone)?;
    let switch = Switch::at(Some(folder), now);
    if args.json {
        ui.json(&WireResume { state: switch.word(), was_paused })?;
        return Ok(ExitStatus::Success);
    }
    let lang = ui.lang();
    ui.say(match (was_paused, lang) {
        (true, Lang::En) => "resumed\n",
        (true, Lang::Zh) => "已恢复\n",
        (false, Lang::En) => "it was not paused\n",
        (false, Lang::Zh) => "没有处于暂停状态\n",
    })?;
    if switch == Switch::Disabled {
        ui.say(&match lang {
            Lang::En => format!(
                "{} is set here, so what is started from this shell stays without unstuck\n",
                switch::VARIABLE
            ),
            Lang::Zh => {
                format!("此处设置了 {}，因此从这个 shell 启动的程序仍不使用 unstuck\n", switch::VARIABLE)
            }
        })?;
    }
    Ok(ExitStatus::Success)
}
