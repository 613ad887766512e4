//! A lesson while a person edits it: a small TOML file in an editor. Words of others stand in it as quoted strings and comments
//! of one line.

use std::fs;

use serde::Deserialize;
use unstuck_judge::Lang;
use unstuck_judge::lesson::Deed;
use unstuck_store::Lesson;

use crate::editor;
use crate::exit::CommandError;
use crate::lesson_page::name;
use crate::plain;
use crate::scratch::Scratch;
use crate::settings::Around;
use crate::ui::Ui;

/// A fix as a person writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Draft {
    #[serde(default)]
    pub(crate) steps: Vec<String>,
    pub(crate) change: Option<DraftChange>,
}

/// How the call itself is changed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DraftChange {
    pub(crate) from: String,
    pub(crate) to: String,
}

/// Lets a person write a fix. Nothing where the editor failed or nothing was written.
pub(crate) fn written(ui: &mut Ui, lesson: &Lesson) -> Result<Option<Draft>, CommandError> {
    let scratch = Scratch::make("lesson")?;
    let path = scratch.path().join(format!("{}.toml", name(lesson.id)));
    let before = draft_of(lesson, ui.lang());
    fs::write(&path, &before).map_err(|source| CommandError::NotMade { path: path.clone(), source })?;
    if !editor::open(ui, &Around::here().editor, &path)? {
        return Ok(None);
    }
    let unreadable = |source| CommandError::Unreadable { path: path.clone(), source };
    let after = fs::read_to_string(&path).map_err(unreadable)?;
    if after.trim().is_empty() || after == before {
        return Ok(None);
    }
    toml::from_str(&after).map(Some).map_err(|error| CommandError::NoDraft(error.message().to_owned()))
}

/// A lesson as a person edits it.
fn draft_of(lesson: &Lesson, lang: Lang) -> String {
    // What JSON quotes, TOML reads.
    let text = |words: &str| serde_json::to_string(&*plain::line(words)).unwrap_or_default();
    let mut draft = match lang {
        Lang::En => format!(
            "# {}: {}\n# {}\n# What helps: 1 to 6 commands, in their order. Leave the file as it is to change nothing.\n",
            name(lesson.id),
            plain::line(&lesson.program),
            plain::line(&lesson.title)
        ),
        Lang::Zh => format!(
            "# {}：{}\n# {}\n# 解决办法：1 到 6 个命令，按顺序。文件保持原样则不做改动。\n",
            name(lesson.id),
            plain::line(&lesson.program),
            plain::line(&lesson.title)
        ),
    };
    draft.push_str("steps = [\n");
    for deed in &lesson.fix.deeds {
        match deed {
            Deed::Ran { line } => draft.push_str(&format!("  {},\n", text(line))),
            Deed::Edited { file, .. } => draft.push_str(&format!("  # edit: {}\n", plain::line(file))),
            Deed::Called { tool, target } => {
                draft.push_str(&format!("  # call: {} {}\n", plain::line(tool), plain::line(target)));
            }
        }
    }
    draft.push_str("]\n");
    match &lesson.fix.change {
        Some(change) => {
            draft.push_str(&format!(
                "\n[change]\nfrom = {}\nto = {}\n",
                text(&change.from),
                text(&change.to)
            ));
        }
        None => draft
            .push_str("\n# [change]\n# from = \"npm install\"\n# to = \"npm install --legacy-peer-deps\"\n"),
    }
    draft
}
