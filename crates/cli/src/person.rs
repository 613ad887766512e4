//! Makes sure that a person is there, for commands that take a brake off: an agent must not free itself.

use crate::exit::CommandError;
use crate::ui;

/// Fails where nobody sits at a terminal and `--yes` was not given.
pub(crate) fn must_be_there(yes: bool) -> Result<(), CommandError> {
    match yes || ui::input_is_terminal() {
        true => Ok(()),
        false => Err(CommandError::NoPerson),
    }
}
