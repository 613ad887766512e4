//! Reads a part of a text file.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::aside::{self, Heeding};
use super::files::Files;
use super::ground::{Ground, failed};
use super::lines::{Line, Lines};
use crate::annotations::Annotations;
use crate::context::ToolContext;
use crate::failure::Failure;
use crate::tool::Tool;

/// How many lines are read where nobody says.
const LINES: u64 = 2_000;
/// The most that is handed out at once.
const TEXT_MAX: usize = 128 * 1024;
/// The most of one line.
const LINE_MAX: usize = 4 * 1024;

/// `fs_read`: reads a text file, or some lines of it.
#[derive(Debug, Clone, Default)]
pub struct ReadFile {
    pub(super) files: Files,
}

impl ReadFile {
    /// For the folder that the program runs in; [`Files::in_folder`] has those for others.
    pub fn new() -> ReadFile {
        ReadFile::default()
    }
}

/// What is to be read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadArgs {
    /// The file, relative to the workspace.
    path: String,
    /// The first line to read, counted from 1. Without it, reading begins at the first.
    offset: Option<u64>,
    /// How many lines to read at most; 2000 without it.
    limit: Option<u64>,
}

/// What was read.
#[derive(Debug, Serialize)]
pub struct ReadOutput {
    path: String,
    content: String,
    first_line: u64,
    lines: u64,
    size: u64,
    /// Where to go on; nothing where the end was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl Tool for ReadFile {
    type Args = ReadArgs;
    type Output = ReadOutput;

    fn name(&self) -> &str {
        "fs_read"
    }

    fn description(&self) -> &str {
        "Reads a text file of the workspace, exactly as it is. Use it before you change a file. Long files come in parts: \
         go on with `offset` = `next_offset`."
    }

    fn annotations(&self) -> Annotations {
        Annotations::new().read_only()
    }

    async fn call(&self, args: ReadArgs, context: ToolContext) -> Result<ReadOutput, Failure> {
        let files = self.files.clone();
        aside::run(&context, move |cancellation| {
            let ground = files.ground()?;
            let way = ground.way_to(&args.path)?;
            read(&ground, &way, &args, cancellation)
        })
        .await
    }
}

fn read(
    ground: &Ground,
    way: &Path,
    args: &ReadArgs,
    cancellation: &CancellationToken,
) -> Result<ReadOutput, Failure> {
    let file = ground.file(way)?;
    let failing = |error| failed("read", way, &error);
    let size = file.metadata().map_err(failing)?.len();
    let mut lines = Lines::new(Heeding { input: file, cancellation }, LINE_MAX);
    if lines.is_binary().map_err(failing)? {
        let words = format!("`{}` is a binary file of {size} bytes and is not shown", way.display());
        return Err(Failure::expected(words)
            .in_chinese(format!("`{}` 是 {size} 字节的二进制文件，不予显示", way.display()))
            .recommend_both("look at it with a program that knows its format", "请用识别该格式的程序查看"));
    }
    let first_line = args.offset.unwrap_or(1).max(1);
    let mut line = Line::default();
    let mut before = 0;
    while before + 1 < first_line {
        if !lines.next(&mut line).map_err(failing)? {
            let words =
                format!("`{}` has {before} lines, and line {first_line} is past its end", way.display());
            return Err(Failure::expected(words)
                .in_chinese(format!("`{}` 有 {before} 行，第 {first_line} 行超出末尾", way.display()))
                .recommend_both("choose a smaller `offset`", "请选择更小的 `offset`"));
        }
        before += 1;
    }
    let (mut bytes, mut count, mut notes) = (Vec::new(), 0, Vec::new());
    let mut next_offset = None;
    while lines.next(&mut line).map_err(failing)? {
        if count == args.limit.unwrap_or(LINES).max(1) || bytes.len() + line.bytes.len() > TEXT_MAX {
            next_offset = Some(first_line + count);
            break;
        }
        bytes.extend_from_slice(&line.bytes);
        if line.left_out > 0 {
            notes.push(format!(
                "line {} is longer: {} bytes of it are left out",
                first_line + count,
                line.left_out
            ));
            bytes.push(b'\n');
        }
        count += 1;
    }
    if count == 0 {
        notes.push(if size == 0 { "the file is empty" } else { "there are no more lines" }.to_owned());
    }
    let content = String::from_utf8(bytes).unwrap_or_else(|error| {
        notes.push("it is not valid UTF-8: what could not be read stands as U+FFFD".to_owned());
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    let path = way.display().to_string();
    Ok(ReadOutput { path, content, first_line, lines: count, size, next_offset, notes })
}
