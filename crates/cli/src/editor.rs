//! Lets a person write in the editor of their choice.

use std::ffi::OsStr;
use std::path::Path;

use unstuck_exec::{Ending, Job};

use crate::exit::CommandError;
use crate::program_file::on_path;
use crate::settings::quoted;
use crate::ui::Ui;

/// Opens a file in it, and says whether it ended well.
pub(crate) fn open(ui: &mut Ui, editor: &str, path: &Path) -> Result<bool, CommandError> {
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let args: Vec<&OsStr> = words.map(OsStr::new).chain([path.as_os_str()]).collect();
    ui.finish()?;
    let Some(file) = on_path(program) else {
        return Err(CommandError::NoSuchEditor { editor: quoted(program) });
    };
    match Job::new(file, args).unheard().run(|_, _| {}).ending {
        Ending::Exited(code) => Ok(code == 0),
        Ending::Signalled(_) | Ending::TimedOut => Ok(false),
        Ending::NotFound => Err(CommandError::NoSuchEditor { editor: quoted(program) }),
        Ending::NotExecutable(why) | Ending::NotTried(why) => {
            Err(CommandError::NoEditor { editor: quoted(program), why })
        }
    }
}
