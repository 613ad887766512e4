//! Changes a part of a file.

use std::io::Read;

use memchr::memmem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::aside::{self, Heeding};
use super::draft::{self, Before};
use super::files::Files;
use super::ground::failed;
use super::nearest;
use super::safe;
use crate::annotations::Annotations;
use crate::call::CallInfo;
use crate::context::ToolContext;
use crate::failure::Failure;
use crate::tool::Tool;

/// The largest file that is edited.
const SIZE_MAX: u64 = 32 << 20;
/// How many places are named where there are too many.
const PLACES: usize = 10;

/// `fs_edit`: replaces a piece of text in a file.
///
/// The text must be there exactly once, or `all` is said. The file is replaced at once, only if it still is what was read, and
/// then read back: a success means that the change is on the disk. What is kept and what is not stands with
/// [`WriteFile`](super::WriteFile).
#[derive(Debug, Clone, Default)]
pub struct EditFile {
    pub(super) files: Files,
}

impl EditFile {
    /// For the folder that the program runs in; [`Files::in_folder`] has those for others.
    pub fn new() -> EditFile {
        EditFile::default()
    }
}

/// What is to be changed.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditArgs {
    /// The file, relative to the workspace.
    path: String,
    /// The text to replace, exactly as it stands in the file, with blanks and line ends; enough of it that it is there once.
    old: String,
    /// The text to put in its place.
    new: String,
    /// Replace it wherever it stands, not only once.
    #[serde(default)]
    all: bool,
}

/// What was changed.
#[derive(Debug, Serialize)]
pub struct Edited {
    path: String,
    replaced: usize,
    /// The line of the first change.
    line: usize,
    size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
}

impl Tool for EditFile {
    type Args = EditArgs;
    type Output = Edited;

    fn name(&self) -> &str {
        "fs_edit"
    }

    fn description(&self) -> &str {
        "Replaces a piece of text in a file of the workspace. `old` must stand there exactly once (or set `all`): read the \
         file first and copy the text from it."
    }

    fn annotations(&self) -> Annotations {
        Annotations::new().writes()
    }

    async fn call(&self, args: EditArgs, context: ToolContext) -> Result<Edited, Failure> {
        let (files, call) = (self.files.clone(), context.call.clone());
        aside::run(&context, move |cancellation| edit(&files, &args, &call, cancellation)).await
    }
}

fn edit(
    files: &Files,
    args: &EditArgs,
    call: &CallInfo,
    cancellation: &CancellationToken,
) -> Result<Edited, Failure> {
    if args.old.is_empty() {
        return Err(Failure::invalid("`old` is empty: it must be the text to replace")
            .in_chinese("`old` 为空：它必须是要替换的文本")
            .recommend_both("to write a whole file use fs_write", "要写入整个文件请用 fs_write"));
    }
    if args.old == args.new {
        return Err(Failure::invalid("no changes to make: `old` and `new` are identical")
            .in_chinese("没有可做的修改：`old` 与 `new` 相同"));
    }
    let ground = files.ground()?;
    let way = ground.way_to(&args.path)?;
    safe::keep_out(files.safe.as_ref(), &ground, &way)?;
    let spot = ground.spot(&way, false)?;
    let _alone = draft::alone_at(&spot);
    let Some(stat) = spot.look_for_file()? else {
        // Opening what is not there says so, and what is called nearly like it.
        return Err(ground.file(&way).err().unwrap_or_else(aside::given_up));
    };
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    if size > SIZE_MAX {
        let words =
            format!("`{}` has {size} bytes, and files of more than {SIZE_MAX} are not edited", way.display());
        return Err(Failure::expected(words)
            .in_chinese(format!("`{}` 有 {size} 字节，超过 {SIZE_MAX} 字节的文件不作编辑", way.display()))
            .recommend_both("use a program that edits streams, such as sed", "请用流编辑程序，例如 sed"));
    }
    let mut bytes = Vec::new();
    let file = spot.open(spot.name.as_os_str()).map_err(|error| failed("read", &way, &error))?;
    Heeding { input: file, cancellation }
        .read_to_end(&mut bytes)
        .map_err(|error| failed("read", &way, &error))?;
    let (content, places) = replaced(&bytes, args, &way.display().to_string())?;
    let saved = safe::save_file(files.safe.as_ref(), &ground, &way, call, "tool.edit", cancellation)?;
    let line = nearest::line_at(&bytes, places[0]);
    let before = Before::Read(stat, bytes);
    let done = draft::replace(&ground, &spot, &before, &content, cancellation);
    let snapshot = safe::concluded(saved, done)?;
    let path = way.display().to_string();
    Ok(Edited { path, replaced: places.len(), line, size: content.len(), snapshot })
}

/// The content with the change, and where it was made.
fn replaced(bytes: &[u8], args: &EditArgs, path: &str) -> Result<(Vec<u8>, Vec<usize>), Failure> {
    let old = args.old.as_bytes();
    let places: Vec<usize> = memmem::find_iter(bytes, old).collect();
    match places.len() {
        0 => return Err(not_found(bytes, &args.old, path)),
        1 => {}
        _ if args.all => {}
        several => {
            let lines: Vec<usize> =
                places.iter().take(PLACES).map(|at| nearest::line_at(bytes, *at)).collect();
            let words =
                format!("found {several} matches of the string to replace in `{path}`, and `all` is false");
            return Err(Failure::expected(words)
                .in_chinese(format!("在 `{path}` 中找到 {several} 处要替换的文本，而 `all` 为 false"))
                .recommend_both(
                    "take more of the lines around it into `old`, or set `all` to replace each of them",
                    "在 `old` 中多包含几行上下文，或设置 `all` 以替换每一处",
                )
                .data(json!({ "matches": several, "lines": lines })));
        }
    }
    let mut content = Vec::with_capacity(bytes.len() + places.len() * args.new.len());
    let mut from = 0;
    for at in &places {
        content.extend_from_slice(&bytes[from..*at]);
        content.extend_from_slice(args.new.as_bytes());
        from = at + old.len();
    }
    content.extend_from_slice(&bytes[from..]);
    Ok((content, places))
}

fn not_found(bytes: &[u8], old: &str, path: &str) -> Failure {
    let failure = Failure::expected(format!("String to replace not found in `{path}`"))
        .in_chinese(format!("`{path}` 中没有要替换的文本"))
        .recommend_both(
            "read the file again with fs_read, and copy the text from what it holds now",
            "用 fs_read 重新读取文件，从当前内容中复制文本",
        );
    let failure = match memmem::find(bytes, b"\r\n").is_some() && !old.contains("\r\n") && old.contains('\n')
    {
        true => failure.recommend_both(
            r"the file ends its lines with \r\n: write them so in `old` and `new`",
            r"该文件以 \r\n 结束各行：`old` 和 `new` 中也要这样写",
        ),
        false => failure,
    };
    match nearest::lines(bytes, old) {
        Some(near) => failure.data(json!({ "nearest": { "line": near.line, "text": near.text } })),
        None => failure,
    }
}
