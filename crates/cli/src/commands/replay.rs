//! stub
use crate::exit::{CommandError, ExitStatus};
use crate::ui::Ui;
/// Replay
#[derive(clap::Args)]
pub(crate) struct ReplayArgs {}
pub(crate) fn run(_ui: &mut Ui, _args: &ReplayArgs) -> Result<ExitStatus, CommandError> { Ok(ExitStatus::Success) }
