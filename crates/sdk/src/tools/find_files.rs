//! Finds files by their names.

use std::path::Path;

use glob::{MatchOptions, Pattern};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::aside;
use super::files::Files;
use super::walk::{Cut, Then, walk};
use crate::annotations::Annotations;
use crate::context::ToolContext;
use crate::failure::Failure;
use crate::tool::Tool;

/// How many are shown where nobody says, and at most.
const SHOWN: usize = 200;
const SHOWN_MAX: usize = 2_000;

/// `fs_glob`: finds files by a pattern of their names.
///
/// Links are not followed. `.git`, `node_modules` and folders marked as caches are left out unless the search begins in them,
/// and the result says so.
#[derive(Debug, Clone, Default)]
pub struct FindFiles {
    pub(super) files: Files,
}

impl FindFiles {
    /// For the folder that the program runs in; [`Files::in_folder`] has those for others.
    pub fn new() -> FindFiles {
        FindFiles::default()
    }
}

/// What is to be found.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindArgs {
    /// The pattern: `*.rs` for names in any folder, `src/**/*.rs` for paths from `path` on.
    pattern: String,
    /// The folder to look in, relative to the workspace; all of it without this.
    path: Option<String>,
    /// How many paths to show at most; 200 without it.
    limit: Option<usize>,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Found {
    files: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

impl Tool for FindFiles {
    type Args = FindArgs;
    type Output = Found;

    fn name(&self) -> &str {
        "fs_glob"
    }

    fn description(&self) -> &str {
        "Finds files of the workspace by a pattern of their names, such as `*.rs` or `src/**/mod.rs`. To find files by what is \
         in them, use fs_grep."
    }

    fn annotations(&self) -> Annotations {
        Annotations::new().read_only()
    }

    async fn call(&self, args: FindArgs, context: ToolContext) -> Result<Found, Failure> {
        let files = self.files.clone();
        aside::run(&context, move |cancellation| {
            let ground = files.ground()?;
            let from = ground.way_to(args.path.as_deref().unwrap_or("."))?;
            let name = NamePattern::read(&args.pattern)?;
            let limit = args.limit.unwrap_or(SHOWN).clamp(1, SHOWN_MAX);
            let (mut found, mut nameless) = (Vec::new(), 0_u64);
            let walked = walk(&ground, &from, cancellation, |_, _, path| {
                if !name.fits(path.strip_prefix(&from).unwrap_or(path)) {
                    return Ok(Then::GoOn);
                }
                if found.len() == limit {
                    return Ok(Then::Stop);
                }
                nameless += u64::from(path.to_str().is_none());
                found.push(path.display().to_string());
                Ok(Then::GoOn)
            })?;
            let mut notes = notes(walked.cut, &walked.left_out, walked.closed);
            if nameless > 0 {
                notes.push(format!(
                    "{nameless} of the names are not UTF-8 and cannot be opened by what is shown here"
                ));
            }
            Ok(Found { files: found, notes })
        })
        .await
    }
}

/// A pattern of names.
pub(super) struct NamePattern {
    pattern: Pattern,
    /// Without a slash in it, it is about the last name alone.
    of_whole_path: bool,
}

impl NamePattern {
    pub(super) fn read(text: &str) -> Result<NamePattern, Failure> {
        let text = text.strip_prefix("./").unwrap_or(text);
        let pattern = Pattern::new(text).map_err(|error| {
            Failure::invalid(format!("`{text}` is no pattern of names: {error}"))
                .in_chinese(format!("`{text}` 不是文件名模式：{error}"))
        })?;
        Ok(NamePattern { pattern, of_whole_path: text.contains('/') })
    }

    pub(super) fn fits(&self, path: &Path) -> bool {
        const AS_SHELLS_DO: MatchOptions = MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: false,
        };
        let text = match self.of_whole_path {
            true => path.to_string_lossy(),
            false => path.file_name().unwrap_or_default().to_string_lossy(),
        };
        self.pattern.matches_with(&text, AS_SHELLS_DO)
    }
}

/// What a walk did not see, in words.
pub(super) fn notes(cut: Option<Cut>, left_out: &[String], closed: u64) -> Vec<String> {
    const NAMED: usize = 5;
    let mut notes: Vec<String> = cut.map(|cut| cut.words().to_owned()).into_iter().collect();
    if !left_out.is_empty() {
        let named =
            left_out.iter().take(NAMED).map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
        let rest = match left_out.len().saturating_sub(NAMED) {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        notes.push(format!("left out, unless `path` names them: {named}{rest}"));
    }
    if closed > 0 {
        notes.push(format!("{closed} folders could not be opened or are too deep"));
    }
    notes
}
