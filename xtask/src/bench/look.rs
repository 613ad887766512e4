//! What the look before a refusal costs in a project of 50,000 files: `unstuck hook claude` on a call that is refused, beside the
//! same program on a call that nobody has seen, so that the difference is the look.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::contest::quantile;
use super::{Options, Section, machine};
use crate::{Fault, project};

/// So many folders with so many files each.
const TREE: (usize, usize) = (500, 100);
/// The most that a look may cost at p95.
const AIM: Duration = Duration::from_millis(40);
const COMMAND: &str = "make all";
const FAILURE: &str = "Exit code 2\nsrc/f0/a0.c:1:19: error: expected ';' before '}' token\nmake: *** [Makefile:2: all] Error 1";

/// `cargo xtask bench look`.
pub(super) fn bench(options: &Options) -> Result<(), Fault> {
    let binary = match &options.binary {
        Some(binary) => fs::canonicalize(binary)?,
        None => project::unstuck()?,
    };
    let report = machine() + &table(&binary, if options.quick { 30 } else { 300 })?;
    println!("{report}");
    match options.write {
        true => super::write_page(&[Section { mark: "look", report }]),
        false => Ok(()),
    }
}

fn table(binary: &Path, rounds: usize) -> Result<String, Fault> {
    let folder = tempfile::tempdir()?;
    let app = folder.path().join("app");
    for number in 0..TREE.0 {
        let below = app.join(format!("src/f{number}"));
        fs::create_dir_all(&below)?;
        for number in 0..TREE.1 {
            fs::write(below.join(format!("a{number}.c")), "int x;\n")?;
        }
    }
    fs::write(app.join("Makefile"), "all:\n")?;
    let hook = Hook { binary: binary.to_owned(), folder: folder.path().to_owned(), app };
    hook.send("PreToolUse", "first", COMMAND)?;
    hook.send("PostToolUseFailure", "first", COMMAND)?;
    hook.send("PreToolUse", "second", COMMAND)?;
    hook.send("PostToolUseFailure", "second", COMMAND)?;
    let (mut refused, mut new, mut refusals) = (Vec::new(), Vec::new(), 0);
    for round in 0..rounds {
        let (took, _) = hook.send("PreToolUse", &format!("n{round}"), &format!("./tool{round} --all"))?;
        new.push(took);
        let (took, answer) = hook.send("PreToolUse", &format!("r{round}"), COMMAND)?;
        refused.push(took);
        refusals += usize::from(answer["hookSpecificOutput"]["permissionDecision"] == "deny");
    }
    let shown = |times: &[Duration], part: f64| quantile(times, part).as_secs_f64() * 1000.0;
    let look = quantile(&refused, 0.95).saturating_sub(quantile(&new, 0.95));
    let mut table = format!(
        "\n### A look before a refusal in {} files\n\n| call | median | p95 |\n|---|---|---|\n",
        TREE.0 * TREE.1
    );
    for (name, times) in
        [("one that failed before, and is looked at", &refused), ("one that nobody has seen", &new)]
    {
        writeln!(table, "| {name} | {:.1} ms | {:.1} ms |", shown(times, 0.5), shown(times, 0.95))?;
    }
    let verdict = if look <= AIM { "within" } else { "above" };
    writeln!(
        table,
        "\n{rounds} rounds in turn; {refusals} of the {rounds} calls were refused, the others ran because the look would have taken too \
         long. The look costs {:.1} ms at p95: {verdict} the aim of {} ms.",
        look.as_secs_f64() * 1000.0,
        AIM.as_millis()
    )?;
    Ok(table)
}

struct Hook {
    binary: PathBuf,
    folder: PathBuf,
    app: PathBuf,
}

impl Hook {
    fn send(&self, event: &str, key: &str, command: &str) -> Result<(Duration, Value), Fault> {
        let payload = json!({"session_id": "s", "cwd": self.app, "permission_mode": "acceptEdits",
            "hook_event_name": event, "tool_name": "Bash", "tool_input": {"command": command},
            "tool_use_id": key, "error": FAILURE, "duration_ms": 5});
        let mut child = Command::new(&self.binary);
        child
            .args(["hook", "claude"])
            .env("HOME", &self.folder)
            .env("UNSTUCK_STORE_STATE_DIR", self.folder.join("state"))
            .env_remove("XDG_CONFIG_HOME")
            .current_dir(&self.app);
        let start = Instant::now();
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdin = child.stdin.take().ok_or("it has no input")?;
        serde_json::to_writer(stdin, &payload)?;
        let output = child.wait_with_output()?;
        let took = start.elapsed();
        Ok((took, serde_json::from_slice(&output.stdout).unwrap_or_default()))
    }
}
