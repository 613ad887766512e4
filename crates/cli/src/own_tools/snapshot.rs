//! The tool `snapshot`: saves files before something risky is done.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use unstuck::schemars::JsonSchema;
use unstuck::{Annotations, Failure, Tool, ToolContext};
use unstuck_judge::Lang;
use unstuck_vault::Origin;

use super::schema::schema;
use super::workplace::Waiting;
use super::{LONG, Workplace, quote_paths};
use crate::commands::snapshot::{Saving, scopes, taken};
use crate::safe::Safe;
use crate::snapshot_page::WireSnapshot;
use crate::whereabouts::Here;

pub(super) struct TakeSnapshot(pub(super) Arc<Workplace>);

/// What is saved, and why.
#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "unstuck::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct SnapshotArgs {
    /// Files and folders to save. Without any, the whole project: the git work tree here, or the working folder.
    #[serde(default)]
    paths: Vec<PathBuf>,
    /// Why it is taken, in a few words; it is shown wherever the snapshot is listed.
    #[serde(default)]
    label: String,
    /// Also folders that a program can make again, such as target and node_modules.
    #[serde(default)]
    all: bool,
}

/// The same in Chinese.
const IN_CHINESE: &[(&str, &str)] = &[
    ("", "保存什么，以及为什么。"),
    ("paths", "要保存的文件和文件夹。不填则为整个项目：此处的 git 工作树，或工作文件夹。"),
    ("label", "保存的原因，几个词即可；凡是列出此快照之处都会显示。"),
    ("all", "也包括程序可以重新生成的文件夹，例如 target 和 node_modules。"),
];

impl Tool for TakeSnapshot {
    type Args = SnapshotArgs;
    type Output = Value;

    fn name(&self) -> &str {
        "snapshot"
    }

    fn description(&self) -> &str {
        match self.0.lang() {
            Lang::En => {
                "Saves files exactly as they are now, ignored and untracked ones and .git included, so that the tool undo can \
                 bring them back. Take one before a risky step: a migration, a bulk edit, a rebase, a deletion. It is fast and \
                 changes nothing in the folder. The answer has the id, and names what could not be saved (gaps). Snapshots are \
                 kept for a limited time, usually a day."
            }
            Lang::Zh => {
                "原样保存当前的文件，包括被忽略和未跟踪的文件以及 .git，之后可用工具 undo 恢复。\
                 在有风险的步骤之前使用：迁移、批量修改、变基、删除。速度快，不会更改文件夹中的任何内容。返回编号，并列出未能保存的内容（gaps）。快照只保留有限的时间，通常为一天。"
            }
        }
    }

    fn schema(&self) -> Value {
        schema::<SnapshotArgs>(self.0.lang(), IN_CHINESE)
    }

    fn annotations(&self) -> Annotations {
        // Whatever is saved twice is kept once, and nothing that was there is touched.
        Annotations::new().idempotent().polls().blocking().timeout(LONG)
    }

    async fn call(&self, args: SnapshotArgs, context: ToolContext) -> Result<Value, Failure> {
        let workplace = &self.0;
        let (cellar, failure) = (workplace.cellar(), |error| workplace.failure(&error));
        let here = Here::walled(cellar.home()).map_err(failure)?;
        let whole = [here.project().to_owned()];
        let paths = if args.paths.is_empty() { &whole[..] } else { &args.paths };
        let scopes = scopes(&cellar, paths).map_err(failure)?;
        scopes.iter().try_for_each(|path| workplace.must_hold(&here, path))?;
        let label = args.label.trim();
        let note = if label.is_empty() { unlabelled(workplace.lang()) } else { label };
        let saving = Saving { note, origin: Origin::Agent, all: args.all, pin: false, json: true };
        let snapshot = taken(&Safe::of(&cellar), scopes, &saving, &Waiting(context)).map_err(failure)?;
        let mut told = serde_json::to_value(WireSnapshot::new(&snapshot))?;
        quote_paths(&mut told);
        Ok(told)
    }
}

/// What is noted where the agent gives no reason.
fn unlabelled(lang: Lang) -> &'static str {
    match lang {
        Lang::En => "an agent asked for it",
        Lang::Zh => "由智能体保存",
    }
}
