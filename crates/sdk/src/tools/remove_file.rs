//! Removes a file.

use rustix::fs::{AtFlags, FileType, unlinkat};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::aside;
use super::draft;
use super::files::Files;
use super::ground::failed;
use super::safe;
use crate::annotations::Annotations;
use crate::call::CallInfo;
use crate::context::ToolContext;
use crate::failure::Failure;
use crate::tool::Tool;

/// `fs_remove`: removes one file or link, which is saved before. Made by [`Files::remove`].
#[derive(Debug, Clone)]
pub struct RemoveFile {
    pub(super) files: Files,
}

/// What is to be removed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveArgs {
    /// The file, relative to the workspace.
    path: String,
}

/// What was removed.
#[derive(Debug, Serialize)]
pub struct Removed {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
}

impl Tool for RemoveFile {
    type Args = RemoveArgs;
    type Output = Removed;

    fn name(&self) -> &str {
        "fs_remove"
    }

    fn description(&self) -> &str {
        "Removes one file of the workspace, or a link but not what it leads to. The file is saved first and can be brought back. \
         Folders are not removed."
    }

    fn annotations(&self) -> Annotations {
        Annotations::new().destructive()
    }

    async fn call(&self, args: RemoveArgs, context: ToolContext) -> Result<Removed, Failure> {
        let (files, call) = (self.files.clone(), context.call.clone());
        aside::run(&context, move |cancellation| remove(&files, &args, &call, cancellation)).await
    }
}

fn remove(
    files: &Files,
    args: &RemoveArgs,
    call: &CallInfo,
    cancellation: &CancellationToken,
) -> Result<Removed, Failure> {
    let ground = files.ground()?;
    let way = ground.way_to(&args.path)?;
    safe::keep_out(files.safe.as_ref(), &ground, &way)?;
    let spot = ground.spot(&way, false)?;
    let _alone = draft::alone_at(&spot);
    let path = way.display().to_string();
    let found = spot.look().map_err(|error| failed("look at", &way, &error))?;
    match found.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        None => return Err(ground.file(&way).err().unwrap_or_else(aside::given_up)),
        Some(FileType::Directory) => {
            return Err(Failure::expected(format!("`{path}` is a directory"))
                .in_chinese(format!("`{path}` 是文件夹")));
        }
        Some(_) => {}
    }
    let saved = safe::save_file(files.safe.as_ref(), &ground, &way, call, "tool.delete", cancellation)?;
    let done = aside::goes_on(cancellation).and_then(|()| {
        unlinkat(&spot.folder, &spot.name, AtFlags::empty())
            .map_err(|error| failed("remove", &way, &error.into()))?;
        match spot.look() {
            Ok(None) => Ok(()),
            Ok(Some(_)) => {
                Err(Failure::expected(format!("`{path}` was removed, and somebody else made it again"))
                    .in_chinese(format!("`{path}` 已删除，但又被他人重新创建")))
            }
            Err(error) => Err(failed("look at", &way, &error)),
        }
    });
    Ok(Removed { path, snapshot: safe::concluded(saved, done)? })
}
