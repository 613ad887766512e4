//! What all file tools of one folder share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::edit_file::EditFile;
use super::find_files::FindFiles;
use super::ground::Ground;
use super::read_file::ReadFile;
use super::remove_file::RemoveFile;
use super::safe::Safe;
use super::search_files::SearchFiles;
use super::write_file::WriteFile;
use crate::failure::Failure;

/// File tools that work in one folder, and never outside of it.
///
/// ```
/// use unstuck::Toolbox;
/// use unstuck::tools::{Files, Safe};
///
/// # fn main() -> Result<(), unstuck::BuildError> {
/// let files = Files::in_folder("project").protected_by(&Safe::at("/var/lib/agent/safe"));
/// let tools = Toolbox::builder()
///     .tool(files.read())
///     .tool(files.write())
///     .tool(files.edit())
///     .tool(files.find())
///     .tool(files.search())
///     .build()?;
/// # Ok(())
/// # }
/// ```
///
/// Paths are relative to the folder, or absolute and inside of it. `..` is refused; a link is followed for reading as long as
/// it is relative and stays inside, and never written through.
#[derive(Debug, Clone)]
pub struct Files {
    folder: Arc<Path>,
    pub(super) safe: Option<Safe>,
}

impl Files {
    /// Those of a folder. It is looked up when a tool is called.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Files {
        Files { folder: folder.into().into(), safe: None }
    }

    /// Those of the folder that the program runs in.
    pub fn here() -> Files {
        Files::in_folder(".")
    }

    /// Saves each file before it is changed, so that [`Safe::undo`] brings it back. Where that does not work, it is not changed.
    #[must_use]
    pub fn protected_by(self, safe: &Safe) -> Files {
        Files { safe: Some(safe.clone()), ..self }
    }

    /// Reads files.
    pub fn read(&self) -> ReadFile {
        ReadFile { files: self.clone() }
    }

    /// Writes whole files.
    pub fn write(&self) -> WriteFile {
        WriteFile { files: self.clone() }
    }

    /// Changes a part of a file.
    pub fn edit(&self) -> EditFile {
        EditFile { files: self.clone() }
    }

    /// Finds files by their names.
    pub fn find(&self) -> FindFiles {
        FindFiles { files: self.clone() }
    }

    /// Finds files by what is in them.
    pub fn search(&self) -> SearchFiles {
        SearchFiles { files: self.clone() }
    }

    /// Removes files. It is not to be had without a safe: what a model removes must come back.
    pub fn remove(&self, safe: &Safe) -> RemoveFile {
        RemoveFile { files: self.clone().protected_by(safe) }
    }

    pub(super) fn ground(&self) -> Result<Ground, Failure> {
        Ground::open(&self.folder)
    }
}

impl Default for Files {
    fn default() -> Files {
        Files::here()
    }
}
