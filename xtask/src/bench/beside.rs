//! What a hook costs beside the same hook of another build, in instructions: times are too noisy for a few parts in a hundred.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Options, Section, filled, machine, write_page};
use crate::world::{World, speak};
use crate::{Fault, project};

/// At most so many times the other build.
const AIM: f64 = 1.05;
/// Calls that are made before anything is counted: the first ones make the store.
const WARM: usize = 3;
const FAILURE: &str = "Exit code 101\nerror[E0432]: unresolved import `frob::gears`\n --> src/lib.rs:3:5";

/// When a hook is called.
#[derive(Debug, Clone, Copy)]
enum Moment {
    Before,
    Failed,
    WentWell,
}

const MOMENTS: [Moment; 3] = [Moment::Before, Moment::Failed, Moment::WentWell];

impl Moment {
    fn title(self) -> &'static str {
        match self {
            Moment::Before => "before a call",
            Moment::Failed => "after it failed",
            Moment::WentWell => "after it went well",
        }
    }
}

/// `cargo xtask bench hook --beside FILE`.
pub fn bench(options: &Options, other: &Path) -> Result<(), Fault> {
    let own = options.binary.clone().map_or_else(project::unstuck, Ok)?;
    let rounds = if options.quick { 1 } else { 5 };
    // By moment, for the other build and for ours.
    let mut counted: [[Vec<f64>; 2]; 3] = Default::default();
    for _ in 0..rounds {
        for (side, binary) in [other, &own].into_iter().enumerate() {
            for (counts, count) in counted.iter_mut().zip(instructions(binary)?) {
                counts[side].push(count);
            }
        }
    }
    let median = |counts: &mut Vec<f64>| {
        counts.sort_by(f64::total_cmp);
        counts[counts.len() / 2]
    };
    let mut report = machine();
    report += "\n| hook | the other build | this one | × |\n|---|---|---|---|\n";
    let mut worst: f64 = 0.0;
    for (moment, [others, ours]) in MOMENTS.into_iter().zip(&mut counted) {
        let (others, ours) = (median(others), median(ours));
        let ratio = ours / others;
        worst = worst.max(ratio);
        let (title, others, ours) = (moment.title(), others / 1e6, ours / 1e6);
        writeln!(report, "| {title} | {others:.2} M | {ours:.2} M | {ratio:.3} |")?;
    }
    let is_met = if worst <= AIM { "met" } else { "missed" };
    writeln!(
        report,
        "\nInstructions of `unstuck hook claude`, as `valgrind --tool=callgrind` counts them, each in a store of {} calls; the median of \
         {rounds}. Aim: at most {AIM} ×. Measured: at most {worst:.3} ({is_met}).",
        2 * WARM
    )?;
    println!("{report}");
    match options.write {
        true => write_page(&[Section { mark: "beside", report }]),
        false => Ok(()),
    }
}

/// What a hook takes at each moment, in a world of its own.
fn instructions(binary: &Path) -> Result<[f64; 3], Fault> {
    let world = World::new(binary)?;
    let cwd = world.home().join("app");
    fs::create_dir(&cwd)?;
    let tell = |moment: Moment, id: &str| -> Value {
        let mut payload = json!({"session_id": "s", "transcript_path": "/dev/null", "cwd": cwd, "tool_name": "Bash",
            "tool_input": { "command": format!("cargo build --bin {id}") }, "tool_use_id": id});
        let (event, key, told) = match moment {
            Moment::Before => ("PreToolUse", "permission_mode", json!("default")),
            Moment::Failed => ("PostToolUseFailure", "error", json!(FAILURE)),
            Moment::WentWell => ("PostToolUse", "tool_response", json!({ "stdout": "done", "stderr": "" })),
        };
        payload["hook_event_name"] = json!(event);
        payload[key] = told;
        payload
    };
    let hook = |before: &[&str], moment: Moment, id: &str| {
        let mut command = world.command(before, &["hook", "claude"]);
        // Under valgrind it is fifty times as slow, and must not run out of time for that.
        command.env("UNSTUCK_HOOK_DEADLINE_BEFORE", "10s").env("UNSTUCK_HOOK_DEADLINE_AFTER", "10s");
        speak(command, tell(moment, id).to_string().as_bytes(), None)
    };
    for number in 0..WARM {
        for (end, letter) in [(Moment::Failed, 'f'), (Moment::WentWell, 'w')] {
            let id = format!("{letter}{number}");
            hook(&[], Moment::Before, &id)?;
            hook(&[], end, &id)?;
        }
    }
    let mut counted = [0.0; 3];
    for (moment, count) in MOMENTS.into_iter().zip(&mut counted) {
        let id = format!("c{}", moment as usize);
        if !matches!(moment, Moment::Before) {
            hook(&[], Moment::Before, &id)?;
        }
        // Every process reads the log of those before it, and that is longer at one time than at another.
        filled::timeline(&world)?.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        let reply = hook(&["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"], moment, &id)?;
        let line = reply.stderr.lines().find_map(|line| line.split_once("Collected : "));
        let number = line.and_then(|(_, number)| number.trim().parse().ok());
        *count = number.ok_or_else(|| format!("valgrind counted nothing: {}", reply.stderr))?;
    }
    Ok(counted)
}
