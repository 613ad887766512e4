//! Finds files by what is in them.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

use memchr::memmem;
use regex_lite::{Regex, RegexBuilder};
use rustix::fs::{Mode, OFlags};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::aside::{self, Heeding};
use super::files::Files;
use super::find_files::{NamePattern, notes};
use super::lines::{Line, Lines};
use super::walk::{Then, walk};
use crate::annotations::Annotations;
use crate::context::ToolContext;
use crate::failure::Failure;
use crate::tool::Tool;

/// How many lines are shown where nobody says, and at most.
const SHOWN: usize = 100;
const SHOWN_MAX: usize = 1_000;
/// How much of a line is searched, and how much is shown.
const LINE_MAX: usize = 64 * 1024;
const LINE_SHOWN: usize = 300;

/// `fs_grep`: finds lines in files.
///
/// Binary files are passed over, links are not followed, and what [`FindFiles`](super::FindFiles) leaves out is left out here.
#[derive(Debug, Clone, Default)]
pub struct SearchFiles {
    pub(super) files: Files,
}

impl SearchFiles {
    /// For the folder that the program runs in; [`Files::in_folder`] has those for others.
    pub fn new() -> SearchFiles {
        SearchFiles::default()
    }
}

/// What is to be found.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchArgs {
    /// What to look for: a regular expression, or plain text with `plain`.
    pattern: String,
    /// The folder to look in, relative to the workspace; all of it without this.
    path: Option<String>,
    /// Only files with such names: `*.rs`, `src/**/*.ts`.
    glob: Option<String>,
    /// Take the pattern as plain text.
    #[serde(default)]
    plain: bool,
    /// Take large and small letters as the same.
    #[serde(default)]
    ignore_case: bool,
    /// How many lines to show at most; 100 without it.
    limit: Option<usize>,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Matches {
    matches: Vec<Match>,
    files_searched: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Match {
    path: String,
    line: u64,
    text: String,
}

impl Tool for SearchFiles {
    type Args = SearchArgs;
    type Output = Matches;

    fn name(&self) -> &str {
        "fs_grep"
    }

    fn description(&self) -> &str {
        "Finds lines in the files of the workspace by a regular expression or plain text. Narrow it with `path` and `glob`."
    }

    fn annotations(&self) -> Annotations {
        Annotations::new().read_only()
    }

    async fn call(&self, args: SearchArgs, context: ToolContext) -> Result<Matches, Failure> {
        let files = self.files.clone();
        aside::run(&context, move |cancellation| search(&files, &args, cancellation)).await
    }
}

fn search(files: &Files, args: &SearchArgs, cancellation: &CancellationToken) -> Result<Matches, Failure> {
    let ground = files.ground()?;
    let from = ground.way_to(args.path.as_deref().unwrap_or("."))?;
    let name = args.glob.as_deref().map(NamePattern::read).transpose()?;
    let mut search = Search {
        wanted: Wanted::read(args)?,
        limit: args.limit.unwrap_or(SHOWN).clamp(1, SHOWN_MAX),
        matches: Vec::new(),
        searched: 0,
        binary: 0,
        unreadable: 0,
    };
    let walked = walk(&ground, &from, cancellation, |folder, file, path| {
        let is_meant = name.as_ref().is_none_or(|name| name.fits(path.strip_prefix(&from).unwrap_or(path)));
        if is_meant { search.look(folder, file, path, cancellation) } else { Ok(Then::GoOn) }
    })?;
    let mut notes = notes(walked.cut, &walked.left_out, walked.closed);
    let counted =
        [(search.binary, "binary files were passed over"), (search.unreadable, "files could not be read")];
    notes.extend(
        counted.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}")),
    );
    Ok(Matches { matches: search.matches, files_searched: search.searched, notes })
}

/// A search on its way.
struct Search {
    wanted: Wanted,
    limit: usize,
    matches: Vec<Match>,
    searched: u64,
    binary: u64,
    unreadable: u64,
}

impl Search {
    fn look(
        &mut self,
        folder: &OwnedFd,
        name: &Path,
        path: &Path,
        cancellation: &CancellationToken,
    ) -> Result<Then, Failure> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(folder, name, flags, Mode::empty()) else {
            self.unreadable += 1;
            return Ok(Then::GoOn);
        };
        let mut lines = Lines::new(Heeding { input: File::from(file), cancellation }, LINE_MAX);
        match lines.is_binary() {
            Ok(false) => {}
            Ok(true) => {
                self.binary += 1;
                return Ok(Then::GoOn);
            }
            Err(_) => {
                aside::goes_on(cancellation)?;
                self.unreadable += 1;
                return Ok(Then::GoOn);
            }
        }
        self.searched += 1;
        let (mut line, mut number) = (Line::default(), 0);
        // What cannot be read in the middle of a file is like its end, unless it is us who give up.
        while lines.next(&mut line).or_else(|_| aside::goes_on(cancellation).map(|()| false))? {
            number += 1;
            if !self.wanted.is_in(&line.bytes) {
                continue;
            }
            if self.matches.len() == self.limit {
                return Ok(Then::Stop);
            }
            let text = String::from_utf8_lossy(&line.bytes);
            let text = text.trim_end();
            let shown = &text[..text.floor_char_boundary(LINE_SHOWN)];
            let cut = if shown.len() < text.len() || line.left_out > 0 { "…" } else { "" };
            self.matches.push(Match {
                path: path.display().to_string(),
                line: number,
                text: format!("{shown}{cut}"),
            });
        }
        Ok(Then::GoOn)
    }
}

/// What a line must hold.
enum Wanted {
    Text(Box<memmem::Finder<'static>>),
    Expression(Regex),
}

impl Wanted {
    fn read(args: &SearchArgs) -> Result<Wanted, Failure> {
        if args.pattern.is_empty() {
            return Err(Failure::invalid("`pattern` is empty: it would be in every line")
                .in_chinese("`pattern` 为空：每一行都会匹配"));
        }
        if args.plain && !args.ignore_case {
            return Ok(Wanted::Text(Box::new(memmem::Finder::new(&args.pattern).into_owned())));
        }
        let expression = if args.plain { regex_lite::escape(&args.pattern) } else { args.pattern.clone() };
        let regex = RegexBuilder::new(&expression).case_insensitive(args.ignore_case).build();
        regex.map(Wanted::Expression).map_err(|error| {
            Failure::invalid(format!("`{}` is no regular expression: {error}", args.pattern))
                .in_chinese(format!("`{}` 不是正则表达式：{error}", args.pattern))
                .recommend_both("set `plain` to look for it as it is written", "设置 `plain` 以按原样查找")
        })
    }

    fn is_in(&self, line: &[u8]) -> bool {
        match self {
            Wanted::Text(finder) => finder.find(line).is_some(),
            Wanted::Expression(regex) => {
                let text = String::from_utf8_lossy(line);
                regex.is_match(text.trim_end_matches(['\n', '\r']))
            }
        }
    }
}
