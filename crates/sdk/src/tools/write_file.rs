//! Writes a whole file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::aside;
use super::draft::{self, Before};
use super::files::Files;
use super::safe;
use crate::annotations::Annotations;
use crate::call::CallInfo;
use crate::context::ToolContext;
use crate::failure::Failure;
use crate::tool::Tool;

/// `fs_write`: writes a whole file, new or not.
///
/// The file is replaced at once or not at all, keeps its mode and, where that is allowed, its owner, and is read back. Access
/// lists and extended attributes are not kept, nor are further names of the same file (hard links) changed with it.
#[derive(Debug, Clone, Default)]
pub struct WriteFile {
    pub(super) files: Files,
}

impl WriteFile {
    /// For the folder that the program runs in; [`Files::in_folder`] has those for others.
    pub fn new() -> WriteFile {
        WriteFile::default()
    }
}

/// What is to be written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteArgs {
    /// The file, relative to the workspace.
    path: String,
    /// All that the file is to hold.
    content: String,
    /// Make the folders on the way to it that are not there yet.
    #[serde(default)]
    create_dirs: bool,
}

/// What was written.
#[derive(Debug, Serialize)]
pub struct Written {
    path: String,
    size: usize,
    created: bool,
    /// False where the file held this already.
    changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
}

impl Tool for WriteFile {
    type Args = WriteArgs;
    type Output = Written;

    fn name(&self) -> &str {
        "fs_write"
    }

    fn description(&self) -> &str {
        "Writes a whole file of the workspace: makes it, or replaces all that is in it. To change a part of a file, use fs_edit."
    }

    fn annotations(&self) -> Annotations {
        Annotations::new().idempotent()
    }

    async fn call(&self, args: WriteArgs, context: ToolContext) -> Result<Written, Failure> {
        let (files, call) = (self.files.clone(), context.call.clone());
        aside::run(&context, move |cancellation| write(&files, &args, &call, cancellation)).await
    }
}

fn write(
    files: &Files,
    args: &WriteArgs,
    call: &CallInfo,
    cancellation: &CancellationToken,
) -> Result<Written, Failure> {
    let ground = files.ground()?;
    let way = ground.way_to(&args.path)?;
    safe::keep_out(files.safe.as_ref(), &ground, &way)?;
    let spot = ground.spot(&way, args.create_dirs)?;
    let _alone = draft::alone_at(&spot);
    let before = Before::look(&spot)?;
    let content = args.content.as_bytes();
    let written = |changed, snapshot| Written {
        path: way.display().to_string(),
        size: content.len(),
        created: before.stat().is_none(),
        changed,
        snapshot,
    };
    let may_be_the_same =
        before.stat().is_some_and(|stat| usize::try_from(stat.st_size) == Ok(content.len()));
    if may_be_the_same
        && spot.open(spot.name.as_os_str()).and_then(|file| draft::holds(file, content)).unwrap_or(false)
    {
        return Ok(written(false, None));
    }
    let saved = match before.stat() {
        None => None,
        Some(_) => safe::save_file(files.safe.as_ref(), &ground, &way, call, "tool.write", cancellation)?,
    };
    let done = draft::replace(&ground, &spot, &before, content, cancellation);
    Ok(written(true, safe::concluded(saved, done)?))
}
