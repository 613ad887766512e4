//! The tool `diagnose`: what a failure is, and what to do about it.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use unstuck::schemars::JsonSchema;
use unstuck::{Annotations, Failure, Tool, ToolContext};
use unstuck_judge::{Lang, Rules};
use unstuck_wire::failure;
use unstuck_wire::report::Report;

use super::schema::schema;
use super::{Workplace, looks, quoted, quoting};
use crate::knowledge;

/// The user's rules and the built-in ones, as they were when somebody first asked.
static RULES: LazyLock<Rules> = LazyLock::new(|| knowledge::load_quietly().0);

/// Maximum length of the line that shows the cause, in characters.
const EVIDENCE: usize = 400;

pub(super) struct Diagnose(pub(super) Arc<Workplace>);

/// A failure, as far as it is known: at least how it ended or what it printed.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "unstuck::schemars")]
#[serde(deny_unknown_fields)]
pub(super) struct DiagnoseArgs {
    /// The command line that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    command: Option<String>,
    /// The tool that failed, where it was no shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    tool: Option<String>,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32")]
    exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 1, max = 127))]
    signal: Option<i32>,
    /// The HTTP status it got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 100, max = 599))]
    http_status: Option<u16>,
    /// What it printed on standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    stdout: Option<String>,
    /// What it printed on standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    stderr: Option<String>,
    /// What it printed, where nobody knows on which of the two, or what a tool answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    text: Option<String>,
    /// It ran out of time.
    #[serde(default)]
    timed_out: bool,
    /// Somebody stopped it.
    #[serde(default)]
    interrupted: bool,
}

/// The same in Chinese.
const IN_CHINESE: &[(&str, &str)] = &[
    ("", "一次失败，已知多少写多少：至少要有结束方式或输出。"),
    ("command", "失败的命令行。"),
    ("tool", "失败的工具（不是 shell 时）。"),
    ("exit_code", "退出码。"),
    ("signal", "终止它的信号。"),
    ("http_status", "收到的 HTTP 状态码。"),
    ("stdout", "它在标准输出上打印的内容。"),
    ("stderr", "它在标准错误上打印的内容。"),
    ("text", "它打印的内容（不知道在两者中的哪一个上时），或工具的回答。"),
    ("timed_out", "超时。"),
    ("interrupted", "被人中止。"),
];

impl Tool for Diagnose {
    type Args = DiagnoseArgs;
    type Output = Value;

    fn name(&self) -> &str {
        "diagnose"
    }

    fn description(&self) -> &str {
        match self.0.lang() {
            Lang::En => {
                "Explains a failed command or tool call: its cause, the line of the output that shows it, whether and when the \
                 same call may work again, who can fix it, and what to do next. Pass the output as it was printed, and how it \
                 ended (exit_code, signal, http_status, timed_out). Nothing is run or changed."
            }
            Lang::Zh => {
                "解释失败的命令或工具调用：原因、输出中显示原因的那一行、同样的调用是否以及何时可能成功、谁能修复、下一步怎么做。\
                 请传入原样的输出以及结束方式（exit_code、signal、http_status、timed_out）。不会运行或更改任何内容。"
            }
        }
    }

    fn schema(&self) -> Value {
        schema::<DiagnoseArgs>(self.0.lang(), IN_CHINESE)
    }

    fn annotations(&self) -> Annotations {
        looks()
    }

    async fn call(&self, args: DiagnoseArgs, _context: ToolContext) -> Result<Value, Failure> {
        let line = serde_json::to_vec(&args)?;
        let told = failure::read(&line).map_err(|error| Failure::invalid(error.to_string()))?;
        let diagnosis = RULES.diagnose(&told.observation);
        let report = Report::new(diagnosis, &told.observation.call, self.0.lang());
        let mut told = serde_json::to_value(report.to_wire(None))?;
        if let Some(evidence) = told["evidence"].as_str() {
            told["evidence"] = quoted(evidence, EVIDENCE).into();
            told["note"] = quoting(self.0.lang()).into();
        }
        Ok(told)
    }
}
