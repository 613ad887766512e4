//! Tools worth having: files, a shell and, with the feature `http`, requests.
//!
//! ```
//! use serde_json::json;
//! use unstuck::tools::{ReadFile, Shell};
//! use unstuck::{Kind, ToolCall, Toolbox};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), unstuck::BuildError> {
//! let tools = Toolbox::builder().tool(ReadFile::new()).tool(Shell::new()).build()?;
//!
//! let result = tools.call(ToolCall::new("shell", json!({ "command": "echo hello" }))).await;
//! assert_eq!(result.output()["stdout"], "hello\n");
//!
//! let result = tools.call(ToolCall::new("shell", json!({ "command": "cat nowhere.txt" }))).await;
//! assert_eq!(result.diagnosis().map(|diagnosis| diagnosis.kind), Some(Kind::PathNotFound));
//! # Ok(())
//! # }
//! ```
//!
//! | name | type | what it does |
//! |---|---|---|
//! | `fs_read` | [`ReadFile`] | reads a text file, or some lines of it |
//! | `fs_write` | [`WriteFile`] | writes a whole file |
//! | `fs_edit` | [`EditFile`] | replaces a piece of text in a file |
//! | `fs_glob` | [`FindFiles`] | finds files by their names |
//! | `fs_grep` | [`SearchFiles`] | finds lines in files |
//! | `fs_remove` | [`RemoveFile`] | removes a file that was saved before |
//! | `shell` | [`Shell`] | runs a command line |
//! | `http_fetch` | `Http` | sends a request |
//!
//! File tools keep to one folder: [`Files`] makes those of any, `new` those of the folder that the program runs in. A success
//! is looked at before it is told: what was written is read back. With a [`Safe`], what they change or remove is saved first.

mod aside;
mod at_risk;
mod capture;
mod draft;
mod edit_file;
mod files;
mod find_files;
mod ground;
#[cfg(feature = "http")]
mod http;
mod lines;
mod nearest;
mod read_file;
mod remove_file;
mod safe;
mod search_files;
mod shell;
mod walk;
mod write_file;

pub use edit_file::EditFile;
pub use files::Files;
pub use find_files::FindFiles;
#[cfg(feature = "http")]
pub use http::Http;
pub use read_file::ReadFile;
pub use remove_file::RemoveFile;
pub use safe::{Safe, SafeError, Undone};
pub use search_files::SearchFiles;
pub use shell::Shell;
pub use write_file::WriteFile;
