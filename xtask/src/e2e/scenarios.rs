//! What must hold with every agent, one scenario each: assertions on what the model received and on what was executed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::agents::{Agent, Halt};
use super::heard::{Rung, Words};
use super::model::{Step, Turn, edit, malformed, read, shell};
use super::stage::{Run, Stage, Tools};
use super::{day, headless, protected, remembered, served};
use crate::Fault;

/// One thing that must hold.
pub struct Scenario {
    /// Its name in the table.
    pub name: &'static str,
    /// What it states.
    pub states: &'static str,
    /// Can this agent honour it at all? If not, why.
    pub applies: fn(&Agent) -> Result<(), &'static str>,
    /// Plays it; a fault is what did not hold, with what the model received.
    pub play: fn(&'static Agent, &Tools, &Words) -> Result<(), Fault>,
}

/// Lessons that hooks of real agents bring have to count as watched before these scenarios can be played again.
const UNTOLD: &str = "GAP: no lesson was told to it when this was last played";

const EVERYONE: fn(&Agent) -> Result<(), &'static str> = |_| Ok(());

/// All of them, the control first.
pub const SCENARIOS: [Scenario; 40] = [
    Scenario {
        name: "control",
        states: "without unstuck a failing call is executed as often as it is sent, and nothing is said",
        applies: EVERYONE,
        play: control,
    },
    Scenario {
        name: "hint-then-deny",
        states: "the second failure comes with a hint, a further identical call is refused and never executed",
        applies: EVERYONE,
        play: hint_then_deny,
    },
    Scenario {
        name: "other-way",
        states: "another call runs at once, and the refused one runs again after an edit",
        applies: EVERYONE,
        play: other_way,
    },
    Scenario {
        name: "edit-and-test",
        states: "four rounds of edit and failing test are left alone",
        applies: EVERYONE,
        play: edit_and_test,
    },
    Scenario {
        name: "failed-edits",
        states: "the same edit that finds nothing to replace is spoken of",
        applies: |agent| agent.sight.failed_edits,
        play: failed_edits,
    },
    Scenario {
        name: "malformed",
        states: "the same call without what it needs is spoken of",
        applies: |agent| agent.sight.malformed,
        play: malformed_calls,
    },
    Scenario {
        name: "parallel",
        states: "two failures of one turn are both counted",
        applies: EVERYONE,
        play: parallel,
    },
    Scenario {
        name: "masked",
        states: "a failure behind `| head` or `|| true` is seen as one",
        applies: EVERYONE,
        play: masked,
    },
    Scenario {
        name: "halt",
        states: "a call that is sent again and again in a run that nobody attends is refused each time, and the run goes on",
        applies: |agent| match agent.sight.halt {
            Halt::Refused => Ok(()),
            Halt::Forestalled => Err("it ends a run by itself after five identical calls"),
        },
        play: halt,
    },
    Scenario {
        name: "suggest",
        states: "a program that is not on PATH is refused the second time, with the place where it is",
        applies: EVERYONE,
        play: suggest,
    },
    Scenario {
        name: "rewrite",
        states: "for who opted in, the same call runs from that place, and the model is told",
        applies: |agent| agent.sight.rewrites,
        play: rewrite,
    },
    Scenario {
        name: "bring-back",
        states: "after `git reset --hard` and `rm -rf src`, `unstuck undo` brings back every byte, mode and time",
        applies: EVERYONE,
        play: protected::bring_back,
    },
    Scenario {
        name: "no-room",
        states: "what is too much to be saved is not deleted, and the model is told why",
        applies: EVERYONE,
        play: protected::no_room,
    },
    Scenario {
        name: "remembered",
        states: "what got one session over a failure is told to the next at its first one, and nothing else is",
        applies: |agent| match agent.name {
            "claude" | "copilot" | "opencode" => Err(UNTOLD),
            _ => Ok(()),
        },
        play: remembered::across_sessions,
    },
    Scenario {
        name: "foreseen",
        states: "a program or a flag that one session missed is spoken of before the next one fails with it, until it is there",
        applies: |_| Err(UNTOLD),
        play: remembered::before_the_first,
    },
    Scenario {
        name: "scanned",
        states: "`unstuck scan` learns from the agent's own transcripts, each once, and the next session hears of it",
        applies: |_| {
            Err(
                "GAP: what a transcript taught is told once it helped or was approved, and this scenario does neither",
            )
        },
        play: remembered::from_transcripts,
    },
    Scenario {
        name: "headless",
        states: "`unstuck agent` runs it without a person, and tells its answer and its session",
        applies: |agent| agent.headless.map(drop),
        play: headless::answers,
    },
    Scenario {
        name: "cut-off",
        states: "a model that is overloaded in the middle is waited for, and the same session goes on",
        applies: |agent| agent.headless.map(drop),
        play: headless::goes_on,
    },
    Scenario {
        name: "let-in",
        states: "a model that limits the rate is waited for as long as it asks, and the same session goes on",
        applies: |agent| agent.headless.map(drop),
        play: headless::is_let_in_later,
    },
    Scenario {
        name: "used-up",
        states: "an account that has had its share is not waited for, and it is told when it could work",
        applies: |agent| agent.headless.map(drop),
        play: headless::is_told_when,
    },
    Scenario {
        name: "ones-own",
        states: "a program that the settings describe is run as they say, and its session goes on",
        applies: |agent| agent.headless.map(drop),
        play: headless::is_ones_own,
    },
    Scenario {
        name: "mended",
        states: "an agent that says it is done while a check fails is told so in its session, and mends it",
        applies: |agent| agent.headless.map(drop),
        play: headless::mends,
    },
    Scenario {
        name: "hanging",
        states: "an agent that is silent, or does not end, is ended with all it started, and its session can be taken up",
        applies: |agent| agent.headless.map(drop),
        play: headless::hangs,
    },
    Scenario {
        name: "served-bare",
        states: "without unstuck an MCP server gets arguments that cannot be right, and its model is told to come back later",
        applies: EVERYONE,
        play: served::bare,
    },
    Scenario {
        name: "served",
        states: "behind `unstuck install mcp`, mistakes never reach the server, failures are explained, and what heals is not seen",
        applies: EVERYONE,
        play: served::well,
    },
    Scenario {
        name: "served-again",
        states: "an MCP server that dies is told as such, and the next call reaches a new one",
        applies: EVERYONE,
        play: served::again,
    },
    Scenario {
        name: "broken",
        states: "a binary that is gone, dies or talks nonsense with exit code 2 stops no call",
        applies: EVERYONE,
        play: broken,
    },
    Scenario {
        name: "disabled",
        states: "with UNSTUCK_DISABLE=1 nothing is said and nothing is refused",
        applies: EVERYONE,
        play: disabled,
    },
    Scenario {
        name: "no-complaint",
        states: "the agent finds no fault with our answers, and would say so",
        applies: |agent| agent.sight.complaint.map(drop),
        play: no_complaint,
    },
    Scenario {
        name: "uninstall",
        states: "install, run, uninstall leaves every settings file byte-identical",
        applies: EVERYONE,
        play: uninstall,
    },
    Scenario {
        name: "day-python",
        states: "a Python package is tested and mended, with searches that find nothing and a run that continues: nothing is refused, and nothing that worked is said to have failed",
        applies: day::applies,
        play: |agent, tools, words| day::play("python", agent, tools, words),
    },
    Scenario {
        name: "day-node",
        states: "a Node program gets a feature and its settings: nothing is refused, and nothing that worked is said to have failed",
        applies: day::applies,
        play: |agent, tools, words| day::play("node", agent, tools, words),
    },
    Scenario {
        name: "day-make",
        states: "a C program is built, crashes and is mended: nothing is refused, and nothing that worked is said to have failed",
        applies: day::applies,
        play: |agent, tools, words| day::play("make", agent, tools, words),
    },
    Scenario {
        name: "day-shell",
        states: "shell scripts are written, checked and installed: nothing is refused, and nothing that worked is said to have failed",
        applies: day::applies,
        play: |agent, tools, words| day::play("shell", agent, tools, words),
    },
    Scenario {
        name: "day-branches",
        states: "branches are merged, rebased and bisected: nothing is refused, and nothing that worked is said to have failed",
        applies: day::applies,
        play: |agent, tools, words| day::play("branches", agent, tools, words),
    },
    Scenario {
        name: "day-service",
        states: "a service is started, polled until it answers, and mended: nothing is refused, and nothing that worked is said to have failed",
        applies: day::applies,
        play: |agent, tools, words| day::play("service", agent, tools, words),
    },
    Scenario {
        name: "day-data",
        states: "logs and tables are searched and counted: nothing is refused, and nothing that worked is said to have failed",
        applies: day::applies,
        play: |agent, tools, words| day::play("data", agent, tools, words),
    },
    Scenario {
        name: "day-refactor",
        states: "a name is changed in many files: nothing is refused, and nothing that worked is said to have failed",
        applies: day::applies,
        play: |agent, tools, words| day::play("refactor", agent, tools, words),
    },
    Scenario {
        name: "day-repair",
        states: "a broken build is repaired, in part by a person: nothing is refused, and nothing that worked is said to have failed",
        applies: day::applies,
        play: |agent, tools, words| day::play("repair", agent, tools, words),
    },
    Scenario {
        name: "day-tools",
        states: "calls of a server's tools among calls of the agent's own: nothing is refused, and nothing that worked is said to have failed",
        applies: day::applies,
        play: |agent, tools, words| day::play("tools", agent, tools, words),
    },
];

/// A check that fails as long as no file changes, and counts how often it really ran.
pub(super) const CHECK: &str = "sh check.sh";

/// Scripts stay a moment after their last word: Qwen Code at times loses what a command prints just before its end.
pub(super) const LINGER: &str = "sleep 0.2";

/// What it prints.
const GAUGES: &str = "gauge 7 disagrees with gauge 4";

pub(super) fn write_check(stage: &Stage) -> Result<(), Fault> {
    let ran = stage.folder("ran");
    stage.write(
        "check.sh",
        &format!(
            "echo ran >> '{}'\necho \"thread 'main' panicked at src/gauge.rs:7:5:\" >&2\necho '{GAUGES}' >&2\n{LINGER}\nexit 101\n",
            ran.display()
        ),
    )
}

/// How often the check ran.
fn ran(stage: &Stage) -> usize {
    fs::read_to_string(stage.folder("ran")).map_or(0, |text| text.lines().count())
}

fn control(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let stage = Stage::bare(agent, tools)?;
    write_check(&stage)?;
    let run = stage.play(&[shell(CHECK), shell(CHECK), shell(CHECK), Turn::Say("done")])?;
    untouched(&stage, &run, words, 3)
}

/// Everything was executed and answered by its own output, and nothing of ours was heard.
fn untouched(stage: &Stage, run: &Run, words: &Words, times: usize) -> Result<(), Fault> {
    let ran = ran(stage);
    let silent = |answer: &String| answer.contains(GAUGES) && words.heard(answer).is_none();
    ensure(run, "every turn is answered", run.received.answers.len() == times)?;
    ensure(run, &format!("the check runs {times} times (it ran {ran} times)"), ran == times)?;
    ensure(run, "every answer is the check's own output", run.received.answers.iter().all(silent))
}

fn hint_then_deny(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let stage = Stage::set(agent, tools)?;
    write_check(&stage)?;
    let run = stage.play(&[shell(CHECK), shell(CHECK), shell(CHECK), shell(CHECK), Turn::Say("done")])?;
    let heard: Vec<Option<Rung>> = run.received.answers.iter().map(|answer| words.heard(answer)).collect();
    let ran = ran(&stage);
    ensure(
        &run,
        "the first failure is at most explained",
        heard.first().is_some_and(|rung| *rung <= Some(Rung::Note)),
    )?;
    ensure(&run, "a hint comes with the second failure", heard.get(1) == Some(&Some(Rung::Hint)))?;
    ensure(&run, "the third call is refused", heard.get(2) == Some(&Some(Rung::Refusal)))?;
    ensure(&run, "so is the fourth", heard.get(3) == Some(&Some(Rung::Refusal)))?;
    ensure(&run, &format!("it was executed twice (it ran {ran} times)"), ran == 2)?;
    ensure(
        &run,
        "the output of what ran is not lost",
        run.received.answers[..2].iter().all(|it| it.contains(GAUGES)),
    )?;
    // What the timeline says was said is what the model received, word for word.
    let everything = squeezed(&run.received.answers.join("\n"));
    for event in stage.timeline()?.iter().filter(|event| event["body"]["spoken"] != false) {
        if let Some(text) = event["body"]["text"].as_str().filter(|_| speaks(event)) {
            ensure(
                &run,
                &format!("the model received what the timeline says: {text}"),
                everything.contains(&squeezed(text)),
            )?;
        }
    }
    Ok(())
}

fn speaks(event: &Value) -> bool {
    matches!(event["event"].as_str(), Some("tool:advice" | "tool:denied"))
}

/// Without what differs by the dialect only.
pub(super) fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn other_way(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let stage = Stage::set(agent, tools)?;
    write_check(&stage)?;
    stage.write("level.txt", "depth=1\n")?;
    stage.write("other.sh", &format!("cat level.txt\n{LINGER}\n"))?;
    let run = stage.play(&[
        shell(CHECK),
        shell(CHECK),
        shell(CHECK),
        shell("sh other.sh"),
        read("level.txt"),
        edit("level.txt", "depth=1", "depth=2"),
        shell(CHECK),
        Turn::Say("done"),
    ])?;
    let heard = |turn: usize| run.received.answers.get(turn).map(|answer| words.heard(answer));
    ensure(&run, "the third call is refused", heard(2) == Some(Some(Rung::Refusal)))?;
    for turn in 3..=5 {
        ensure(
            &run,
            &format!("call {} is let through", turn + 1),
            heard(turn).is_some_and(|it| it < Some(Rung::Refusal)),
        )?;
    }
    ensure(&run, "the other call ran", run.received.answers[3].contains("depth=1"))?;
    let ran = ran(&stage);
    ensure(
        &run,
        "after an edit the refused call is let through",
        heard(6).is_some_and(|it| it < Some(Rung::Refusal)),
    )?;
    ensure(&run, &format!("and it ran (3 times in all; it ran {ran} times)"), ran == 3)
}

fn edit_and_test(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let stage = Stage::set(agent, tools)?;
    stage.write("level.txt", "depth=1\n")?;
    let ran_file = stage.folder("ran");
    let test = format!(
        "echo ran >> '{}'\necho \"FAILED: wanted depth=9, got $(cat level.txt)\"\n{LINGER}\nexit 1\n",
        ran_file.display()
    );
    stage.write("test.sh", &test)?;
    let mut turns = vec![read("level.txt")];
    for depth in 1..=4 {
        turns.push(edit("level.txt", &format!("depth={depth}"), &format!("depth={}", depth + 1)));
        turns.push(shell("sh test.sh"));
    }
    turns.push(Turn::Say("done"));
    let run = stage.play(&turns)?;
    let refused = |answer: &String| words.heard(answer) == Some(Rung::Refusal);
    ensure(&run, "every turn is answered", run.received.answers.len() == 9)?;
    ensure(&run, "nothing is refused", !run.received.answers.iter().any(refused))?;
    let ran = ran(&stage);
    ensure(&run, &format!("every test ran (4 times; it ran {ran} times)"), ran == 4)?;
    ensure(
        &run,
        "every edit reached the test",
        run.received.answers.last().is_some_and(|it| it.contains("got depth=5")),
    )
}

fn failed_edits(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let stage = Stage::set(agent, tools)?;
    stage.write("level.txt", "depth=1\n")?;
    let wrong = || edit("level.txt", "height=1", "height=2");
    let run =
        stage.play(&[shell("true"), read("level.txt"), wrong(), wrong(), wrong(), Turn::Say("done")])?;
    spoken_of(&stage, &run, words, 2)
}

fn malformed_calls(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let stage = Stage::set(agent, tools)?;
    let run = stage.play(&[shell("true"), malformed(), malformed(), malformed(), Turn::Say("done")])?;
    spoken_of(&stage, &run, words, 1)
}

/// Three failures from this turn on: the second and the third are not passed over.
fn spoken_of(stage: &Stage, run: &Run, words: &Words, from: usize) -> Result<(), Fault> {
    ensure(run, "every turn is answered", run.received.answers.len() == from + 3)?;
    let heard = |turn: usize| words.heard(&run.received.answers[turn]);
    ensure(run, "the second failure is spoken of", heard(from + 1) >= Some(Rung::Hint))?;
    ensure(run, "and the third", heard(from + 2) >= Some(Rung::Hint))?;
    // What was refused never ran, so it did not fail once more.
    let failed = (from..from + 3).filter(|turn| heard(*turn) != Some(Rung::Refusal)).count();
    let failures = errors(&stage.timeline()?);
    ensure(run, &format!("each failure is counted once ({failed}): {failures:?}"), failures.len() == failed)
}

fn parallel(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let stage = Stage::set(agent, tools)?;
    write_check(&stage)?;
    stage.write("tide.sh", &format!("echo 'tide table 12 has no row for March' >&2\n{LINGER}\nexit 4\n"))?;
    let both = || Turn::Calls(vec![Step::Shell(CHECK.to_owned()), Step::Shell("sh tide.sh".to_owned())]);
    let run = stage.play(&[both(), both(), Turn::Say("done")])?;
    let failures = errors(&stage.timeline()?);
    let count = |word: &str| failures.iter().filter(|failure| failure.contains(word)).count();
    ensure(&run, "both turns are answered", run.received.answers.len() == 2)?;
    ensure(
        &run,
        &format!("both calls are counted, each twice: {failures:?}"),
        count("check.sh") == 2 && count("tide.sh") == 2,
    )?;
    ensure(
        &run,
        "a hint comes with the second turn",
        words.heard(&run.received.answers[1]) >= Some(Rung::Hint),
    )
}

/// The failures in a timeline, each as one text that names the call.
fn errors(timeline: &[Value]) -> Vec<String> {
    timeline
        .iter()
        .filter(|event| event["event"] == "tool:error")
        .map(|event| event["body"].to_string())
        .collect()
}

fn masked(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let stage = Stage::set(agent, tools)?;
    let masks = [("build", "tide", "sh build.sh 2>&1 | head -5"), ("pack", "ebb", "sh pack.sh || true")];
    for (script, name, _) in masks {
        let error = format!("error[E0425]: cannot find value `{name}` in this scope");
        let last = "error: could not compile `harbour` (bin \"harbour\") due to 1 previous error";
        stage.write(
            &format!("{script}.sh"),
            &format!("echo '{error}'\necho '{last}'\n{LINGER}\nexit 101\n"),
        )?;
    }
    let mut turns: Vec<Turn> = masks.iter().map(|(_, _, command)| shell(*command)).collect();
    turns.push(Turn::Say("done"));
    let run = stage.play(&turns)?;
    ensure(&run, "both turns are answered", run.received.answers.len() == 2)?;
    let failures = errors(&stage.timeline()?);
    for (_, name, command) in masks {
        let seen = failures.iter().any(|failure| failure.contains(&format!("cannot find value `{name}`")));
        ensure(&run, &format!("the failure of `{command}` is in the timeline: {failures:?}"), seen)?;
    }
    Ok(())
}

fn halt(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    const SENT: usize = 10;
    let stage = Stage::set(agent, tools)?;
    write_check(&stage)?;
    let turns: Vec<Turn> = (0..SENT).map(|_| shell(CHECK)).chain([Turn::Say("done")]).collect();
    let run = stage.play(&turns)?;
    let (ran, answers) = (ran(&stage), &run.received.answers);
    let refused = |answer: &String| words.heard(answer) == Some(Rung::Refusal);
    ensure(&run, &format!("it was executed twice (it ran {ran} times)"), ran == 2)?;
    ensure(&run, "everything after that is refused", answers.len() > 4 && answers[2..].iter().all(refused))?;
    let halted = stage.timeline()?.iter().any(|event| event["event"] == "halt");
    ensure(&run, "nobody attends the run, so it is not halted", !halted)?;
    ensure(&run, "every turn is answered", answers.len() == SENT)
}

/// Where programs of a user are, below the home.
const PLACE: &str = ".local/bin/tidelog";

/// A program that is there, but not on PATH.
fn write_program(stage: &Stage) -> Result<PathBuf, Fault> {
    let place = stage.home().join(PLACE);
    let text = format!(
        "#!/bin/sh\necho ran >> '{}'\necho high water at 6\n{LINGER}\n",
        stage.folder("ran").display()
    );
    stage.write_home(PLACE, &text)?;
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
    Ok(place)
}

fn suggest(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let stage = Stage::set(agent, tools)?;
    let place = write_program(&stage)?;
    let again = format!("{} spring", place.display());
    let run =
        stage.play(&[shell("tidelog spring"), shell("tidelog spring"), shell(again), Turn::Say("done")])?;
    let answers = &run.received.answers;
    ensure(&run, "every turn is answered", answers.len() == 3)?;
    ensure(&run, "the second call is refused", words.heard(&answers[1]) == Some(Rung::Refusal))?;
    ensure(&run, "the place is named with the failure", answers[0].contains(PLACE))?;
    ensure(&run, "and with the refusal", answers[1].contains(PLACE))?;
    ensure(&run, "what was suggested runs", ran(&stage) == 1 && answers[2].contains("high water"))
}

fn rewrite(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let stage = Stage::set(agent, tools)?;
    stage.write_home(".config/unstuck/config.toml", "[rewrite]\nmode = \"auto\"\n")?;
    write_program(&stage)?;
    let run = stage.play(&[shell("tidelog spring"), shell("tidelog spring"), Turn::Say("done")])?;
    let answers = &run.received.answers;
    ensure(&run, "every turn is answered", answers.len() == 2)?;
    ensure(&run, "the second call runs", ran(&stage) == 1 && answers[1].contains("high water"))?;
    ensure(&run, "the model is told from where", answers[1].contains(PLACE))?;
    let rewritten = stage.timeline()?.iter().any(|event| event["event"] == "tool:rewritten");
    ensure(&run, "it is in the timeline", rewritten)
}

fn broken(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let stage = Stage::set(agent, tools)?;
    write_check(&stage)?;
    for (what, script) in
        [("dies", "kill -ABRT $$"), ("talks nonsense", "echo 'nonsense {'; echo 'more nonsense' >&2; exit 2")]
    {
        replace_binary(&stage.unstuck(), script)?;
        one_call(&stage, words).map_err(|fault| format!("a binary that {what}: {fault}"))?;
    }
    fs::remove_file(stage.unstuck())?;
    one_call(&stage, words).map_err(|fault| format!("a binary that is gone: {fault}").into())
}

fn one_call(stage: &Stage, words: &Words) -> Result<(), Fault> {
    let before = ran(stage);
    let run = stage.play(&[shell(CHECK), shell(format!("echo low water; {LINGER}")), Turn::Say("done")])?;
    let answers = &run.received.answers;
    ensure(&run, "both turns are answered", answers.len() == 2)?;
    ensure(&run, "the failing call ran", ran(stage) == before + 1 && answers[0].contains(GAUGES))?;
    ensure(&run, "so did the other", answers[1].contains("low water"))?;
    // Nonsense that is printed where agents take plain text for context (a person's prompt) is theirs to show.
    ensure(&run, "nothing of ours is heard", answers.iter().all(|answer| words.heard(answer).is_none()))
}

/// Puts a shell script where the binary was.
fn replace_binary(binary: &Path, script: &str) -> Result<(), Fault> {
    fs::remove_file(binary)?;
    fs::write(binary, format!("#!/bin/sh\n{script}\n"))?;
    Ok(fs::set_permissions(binary, fs::Permissions::from_mode(0o755))?)
}

fn disabled(agent: &'static Agent, tools: &Tools, words: &Words) -> Result<(), Fault> {
    let mut stage = Stage::set(agent, tools)?;
    write_check(&stage)?;
    stage.set_env("UNSTUCK_DISABLE", "1");
    let run = stage.play(&[shell(CHECK), shell(CHECK), shell(CHECK), shell(CHECK), Turn::Say("done")])?;
    untouched(&stage, &run, words, 4)
}

fn no_complaint(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let is_complaint = agent.sight.complaint?;
    let complaint = |stage: &Stage, run: &Run| {
        let log = fs::read_to_string(stage.folder("debug.log")).unwrap_or_default();
        log.lines().chain(run.stderr.lines()).find(|line| is_complaint(line)).map(str::to_owned)
    };
    let stage = Stage::set(agent, tools)?;
    write_check(&stage)?;
    stage.write("level.txt", "depth=1\n")?;
    let both = Turn::Calls(vec![Step::Shell("echo low".to_owned()), Step::Read("level.txt".to_owned())]);
    let turns = [
        both,
        shell("sh check.sh 2>&1 | tail -3"),
        malformed(),
        edit("level.txt", "height=1", "height=2"),
        shell(CHECK),
        shell(CHECK),
        shell(CHECK),
        Turn::Say("done"),
    ];
    let run = stage.play(&turns)?;
    let told = complaint(&stage, &run);
    ensure(&run, &format!("it complains of nothing: {told:?}"), told.is_none())?;
    // The same signs must show when an answer really is no good, or looking for them proves nothing.
    let wrong =
        r#"{"hookSpecificOutput":{"hookEventName":7,"permissionDecision":[]},"decision":5,"continue":"x"}"#;
    replace_binary(&stage.unstuck(), &format!("echo '{wrong}'"))?;
    let run = stage.play(&turns)?;
    ensure(&run, "a bad answer is complained of", complaint(&stage, &run).is_some())
}

fn uninstall(agent: &'static Agent, tools: &Tools, _words: &Words) -> Result<(), Fault> {
    let stage = Stage::bare(agent, tools)?;
    let turns = [shell("echo low water"), Turn::Say("done")];
    // Some agents rewrite their settings when they run first.
    stage.play(&turns)?;
    let before = stage.files(agent.settings);
    stage.install()?;
    if stage.files(agent.settings) == before {
        return Err(format!("install changed none of {:?}", agent.settings).into());
    }
    let run = stage.play(&turns)?;
    ensure(
        &run,
        "the run is in the timeline",
        stage.timeline()?.iter().any(|event| event["event"] == "tool:end"),
    )?;
    stage.uninstall()?;
    for ((name, before), (_, after)) in before.iter().zip(stage.files(agent.settings)) {
        if *before != after {
            let text = |it: &Option<Vec<u8>>| it.as_ref().map(|it| String::from_utf8_lossy(it).into_owned());
            return Err(format!("{name} was {:?} and is {:?}", text(before), text(&after)).into());
        }
    }
    Ok(())
}

/// What must hold; otherwise what did not, and what the model received.
pub(super) fn ensure(run: &Run, what: &str, holds: bool) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(format!("it does not hold that {what}\n{}", shown(run)).into()) }
}

/// A run for a person who looks for what went wrong.
pub(super) fn shown(run: &Run) -> String {
    let mut text = String::new();
    let quote = |text: &str| text.lines().map(|line| format!("    │ {line}\n")).collect::<String>();
    for (turn, answer) in run.received.answers.iter().enumerate() {
        text += &format!("    ── the model received after turn {}:\n{}", turn + 1, quote(answer));
    }
    let ending =
        run.status.map_or_else(|| "it was stopped".to_owned(), |status| format!("it ended with {status}"));
    text += &format!("    ── {ending} after {:.1} s and said last:\n", run.took.as_secs_f64());
    text + &quote(&last_lines(&run.stdout)) + &quote(&last_lines(&run.stderr))
}

fn last_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| line.chars().take(300).collect()).collect();
    lines[lines.len().saturating_sub(6)..].join("\n")
}
