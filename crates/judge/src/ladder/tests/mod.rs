//! The ladder on short runs, and what holds on any run.

use serde_json::{Value, json};

use super::replay::{Judged, Recorded, Replay};
use super::see;
use super::sight::{
    Change, Dir, Ending, Fault, Firmness, Manner, Moment, Print, Round, Sight, Speaker, State, Upshot,
};
use super::{Decision, Limits, Preset, Rung, Settings, Track};
use crate::Condition;
use crate::nature::Looks;
use crate::{Call, Kind, Lang, Observation, Outcome, Rules};

mod honest;
mod properties;
mod same_question;
mod stuck;
mod texts;

/// A call and its result, as a test writes them.
#[derive(Debug, Clone)]
struct Ran {
    call: Call,
    code: Option<i32>,
    ok: bool,
    output: String,
    agent: &'static str,
    user_spoke: bool,
    round: Round,
}

fn sh(command: &str, code: i32, output: &str) -> Ran {
    Ran { call: Call::shell(command), code: Some(code), ..tool("Bash", json!({}), code == 0, output) }
}

fn tool(name: &str, input: Value, ok: bool, output: &str) -> Ran {
    let call = Call::new(name, input);
    Ran {
        call,
        code: None,
        ok,
        output: output.to_owned(),
        agent: "",
        user_spoke: false,
        round: Round::Unsaid,
    }
}

fn edit(file: &str, to: &str) -> Ran {
    tool(
        "Edit",
        json!({ "file_path": file, "old_string": "a", "new_string": to }),
        true,
        "The file has been updated.",
    )
}

impl Ran {
    fn by(self, agent: &'static str) -> Ran {
        Ran { agent, ..self }
    }

    fn when_asked(self) -> Ran {
        Ran { user_spoke: true, ..self }
    }

    fn in_round(self, number: u64) -> Ran {
        Ran { round: Round::Numbered(number), ..self }
    }

    fn recorded(&self) -> Recorded {
        let outcome = match (self.code, self.ok) {
            (Some(code), _) => Outcome::Exited { code },
            (None, true) => Outcome::Succeeded,
            (None, false) => Outcome::ReportedFailure,
        };
        Recorded {
            observation: Observation {
                call: self.call.clone(),
                outcome,
                http_status: None,
                stdout: Vec::new(),
                stderr: Vec::new(),
                merged: self.output.clone().into_bytes(),
            },
            said_ok: Some(self.ok),
            agent: self.agent.to_owned(),
            round: self.round,
            new_user_turn: self.user_spoke,
            at: 0,
        }
    }
}

/// Judges a run and compares what was said, one word a call: the rung before it if there is one, else the rung after it.
fn check_with(preset: Preset, run: &[Ran], said: &str) {
    let word = |judged: &Judged| {
        if judged.before.rung > Rung::Observe {
            format!("{}!", judged.before.rung)
        } else {
            judged.after.rung.to_string()
        }
    };
    assert_eq!(judged_with(preset, run).iter().map(word).collect::<Vec<_>>().join(" "), said);
}

fn judged_with(preset: Preset, run: &[Ran]) -> Vec<Judged> {
    let (rules, settings) = (Rules::built_in(), Settings::of(preset));
    let mut replay = Replay::new(&rules, &settings);
    run.iter().map(|ran| replay.judge(&ran.recorded())).collect()
}

fn judged(run: &[Ran]) -> Vec<Judged> {
    judged_with(Preset::Adaptive, run)
}

fn check(run: &[Ran], said: &str) {
    check_with(Preset::Adaptive, run, said);
}

const MISSING: &str = "bash: line 1: cargo: command not found";

#[test]
fn a_certain_failure_is_explained_once_and_its_repeat_is_refused() {
    let build = sh("cargo build", 127, MISSING);
    check(&[build.clone(), build.clone()], "note deny!");
    check(&[build, sh("cargo test", 127, MISSING)], "note deny!");
}

#[test]
fn a_program_called_under_another_path_is_another_attempt() {
    let elsewhere = sh("PATH=/opt/rust/bin:$PATH cargo build", 0, "Finished");
    check(&[sh("cargo build", 127, MISSING), elsewhere], "note observe");
}

#[test]
fn an_install_gives_a_blocked_call_one_probe() {
    let build = sh("cargo build", 127, MISSING);
    let install = sh("apt-get install -y cargo", 0, "Setting up cargo");
    check(&[build.clone(), install, build.clone(), build], "note observe observe deny!");
}

#[test]
fn a_failed_change_re_arms_nothing_and_a_trifle_is_tried() {
    let build = sh("cargo build", 127, MISSING);
    let failed = sh("apt-get install -y cargo", 100, "E: Unable to locate package cargo");
    let touched = sh("touch notes.txt", 0, "");
    // What was touched may be what was missing; that the build fails as before is told.
    check(&[build.clone(), failed, touched, build], "note note observe hint");
}

#[test]
fn an_unknown_failure_is_hinted_at_before_it_is_refused() {
    let run = sh("./bench --all", 3, "lorem ipsum");
    // Nobody knows whether something changed where nobody here can look, so only a call that goes on and on is refused.
    let words = "note hint hint observe observe hint observe observe hint observe observe hint deny!";
    check(&std::iter::repeat_n(run, 13).collect::<Vec<_>>(), words);
}

#[test]
fn whoever_keeps_sending_refused_calls_is_stopped() {
    let build = sh("cargo build", 127, MISSING);
    let run: Vec<Ran> = std::iter::repeat_n(build, 9).collect();
    check(&run, "note deny! deny! deny! deny! halt! halt! halt! halt!");
}

#[test]
fn our_own_refusal_is_no_failure() {
    let build = sh("cargo build", 127, MISSING);
    let refused = tool("Bash", json!({ "command": "cargo build" }), false, "Blocked by unstuck: Not run");
    let install = sh("apt-get install -y cargo", 0, "Setting up cargo");
    check(&[build.clone(), refused, install, build], "note deny! observe observe");
}

#[test]
fn edits_between_failing_tests_keep_the_tests_open_until_nothing_moves_any_more() {
    let test = sh("pytest tests/test_a.py", 1, "E   assert 3 == 4\n1 failed");
    let run: Vec<Ran> = (0..8).flat_map(|lap| [test.clone(), edit("/w/a.py", &lap.to_string())]).collect();
    check(
        &run,
        "note observe observe observe observe observe observe observe observe observe note observe hint observe observe observe",
    );
}

#[test]
fn a_different_error_on_the_same_call_is_progress() {
    let run: Vec<Ran> = ["E0425", "E0308", "E0599", "E0277"]
        .iter()
        .flat_map(|code| {
            [sh("cargo build", 101, &format!("error[{code}]: something else")), edit("/w/a.rs", code)]
        })
        .collect();
    check(&run, "note observe note observe note observe note observe");
}

#[test]
fn the_same_answer_to_the_same_look_is_told_of_once() {
    let look = tool("list_items", json!({ "cursor": "c0" }), true, "items 0-9, next c1");
    let other = tool("list_items", json!({ "cursor": "c1" }), true, "items 10-19");
    check(&[look.clone(), other, look.clone(), look.clone(), look], "observe observe observe hint observe");
}

#[test]
fn an_answer_that_is_out_of_view_may_be_asked_for_again() {
    let look = tool("Read", json!({ "file_path": "/w/a.rs" }), true, "fn a() {}");
    let others = |from: u32| {
        (from..from + 60)
            .map(|n| tool("Read", json!({ "file_path": format!("/w/{n}.rs") }), true, &n.to_string()))
    };
    let run: Vec<Ran> = [look.clone()]
        .into_iter()
        .chain(others(0))
        .chain([look.clone()])
        .chain(others(100))
        .chain([look])
        .collect();
    check(&run, &vec!["observe"; run.len()].join(" "));
}

#[test]
fn keys_that_are_pressed_again_and_again_are_no_loop() {
    let press = tool("browser_press_key", json!({ "key": "Tab" }), true, "Pressed Tab");
    check(&std::iter::repeat_n(press, 5).collect::<Vec<_>>(), &["observe"; 5].join(" "));
}

#[test]
fn a_file_that_a_run_may_have_made_may_be_read_again() {
    let read = sh("cat report.txt", 1, "cat: report.txt: No such file or directory");
    check(&[read.clone(), sh("make report", 0, "report written"), read], "note observe observe");
}

#[test]
fn a_look_after_a_change_is_a_new_look() {
    let look = sh("cat src/a.rs", 0, "fn main() {}");
    let run: Vec<Ran> =
        (0..5).flat_map(|lap| [look.clone(), edit("/w/src/b.rs", &lap.to_string())]).collect();
    check(&run, &["observe"; 10].join(" "));
}

#[test]
fn what_is_on_its_way_may_be_watched_for_ever() {
    let poll = sh("gh run view 8812 --json status", 0, "in_progress");
    check(&std::iter::repeat_n(poll, 8).collect::<Vec<_>>(), &["observe"; 8].join(" "));
    let wait = sh("sleep 60; gh pr checks 41", 8, "build\tpending\t0\thttps://ci");
    let said: Vec<Ran> = std::iter::repeat_n(wait, 8).collect();
    check(&said, &["observe"; 8].join(" "));
}

#[test]
fn what_waits_for_a_person_does_not_move_by_being_watched() {
    let look = tool("get_ticket", json!({ "id": 7 }), true, "{\"status\":\"waiting for approval\"}");
    check(&std::iter::repeat_n(look, 5).collect::<Vec<_>>(), "observe observe observe hint observe");
    let run: Vec<Ran> =
        (3..8).map(|age| sh("docker ps -a", 0, &format!("db  Exited (1) {age} minutes ago"))).collect();
    check(&run, "observe observe observe hint observe");
}

#[test]
fn a_changed_shell_may_find_what_was_missing() {
    let run = sh("python app.py", 1, "ModuleNotFoundError: No module named 'flask'");
    check(&[run.clone(), sh("source .venv/bin/activate", 0, ""), run], "note observe observe");
    let build =
        sh("npm test", 254, "npm error enoent Could not read package.json: no such file or directory");
    check(&[build.clone(), sh("cd app", 0, ""), build], "note observe observe");
}

#[test]
fn a_tool_that_nobody_has_is_told_of_whatever_it_is_given() {
    let ask = |q: u32| {
        tool("search_web", json!({ "q": q }), false, "Error: Tool 'search_web' not found. Available: bash")
    };
    // The list of tools cannot be looked at from here: the call runs, and its result is spoken of.
    check(&[ask(1), ask(2)], "note hint");
}

#[test]
fn a_debugger_that_steps_is_never_stuck() {
    let run: Vec<Ran> = (0..9)
        .map(|line| tool("gdb_command", json!({ "command": "next" }), true, &format!("{line}\tx = f(x)")))
        .collect();
    check(&run, &["observe"; 9].join(" "));
}

#[test]
fn a_cycle_is_told_of_in_its_second_lap_and_never_refused() {
    let pull = sh("./deploy --check", 1, "lorem ipsum");
    let (status, log) = (sh("git status --short", 0, " M a"), sh("git log --oneline -1", 0, "abc wip"));
    let lap = [pull, status, log];
    let run: Vec<Ran> = lap.iter().cycle().take(9).cloned().collect();
    check(&run, "note observe observe hint observe hint hint hint hint");
}

#[test]
fn parallel_twins_count_once() {
    let build = sh("cargo build", 127, MISSING);
    check(&[build.clone().in_round(1), build.in_round(1)], "note observe");
}

#[test]
fn a_word_of_the_user_lowers_the_action_and_keeps_the_memory() {
    let up = sh("docker compose up -d", 1, "Error: listen tcp 0.0.0.0:5432: bind: permission denied");
    check(&[up.clone(), up.clone().when_asked(), up.clone().when_asked(), up], "note observe hint observe");
}

#[test]
fn agents_share_what_is_known_to_fail_and_not_their_counters() {
    let build = sh("cargo build", 127, MISSING);
    check(&[build.clone().by("one"), build.by("two")], "note deny!");
    let test = sh("cargo test -p core", 101, "1 failed");
    check(&[test.clone().by("one"), test.clone().by("two"), test.by("two")], "note observe hint");
}

#[test]
fn a_shell_that_says_nothing_to_anything_is_broken() {
    let run: Vec<Ran> =
        ["make", "ls -la", "pwd", "ls /w", "cat Makefile"].iter().map(|line| sh(line, 1, "Error")).collect();
    check(&run, "note note note hint note");
}

#[test]
fn a_file_that_was_just_made_is_in_the_way_of_the_next() {
    let make = |text: &str, ok: bool| {
        let said = if ok { "File created successfully" } else { "ERROR:\nFile already exists at: /w/r.py" };
        tool(
            "str_replace_editor",
            json!({ "command": "create", "path": "/w/r.py", "file_text": text }),
            ok,
            said,
        )
    };
    let remove = || sh("rm /w/r.py", 0, "");
    let run = [make("1", true), make("2", false), remove(), make("3", true), make("4", false)];
    let judged = check_kind(&run[1]);
    // The engine names the cause; the ladder only has to remember what it stops.
    if judged == Kind::Conflict {
        check(&run, "observe note observe observe deny!");
    }
}

fn check_kind(ran: &Ran) -> Kind {
    Rules::built_in().diagnose(&ran.recorded().observation).kind
}

#[test]
fn classic_counts_to_three_and_five() {
    let build = sh("cargo build", 127, MISSING);
    let run: Vec<Ran> = std::iter::repeat_n(build, 7).collect();
    check_with(Preset::Classic, &run, "observe observe hint insist observe deny! deny!");
}

#[test]
fn a_rung_that_was_passed_over_in_patience_is_not_skipped() {
    // The failure after a change is only explained, although its number would be worth a hint; the next one is hinted at.
    let test = sh("cargo test", 101, "error[E0425]: cannot find value `x`");
    let change = edit("/w/a.rs", "b");
    let run = [&test, &test, &change, &test, &test, &test, &test].map(Ran::clone);
    check_with(Preset::Classic, &run, "observe observe observe note hint insist deny!");
    let run = sh("./bench --all", 3, "lorem ipsum");
    check(&[run.clone(), change, run.clone(), run.clone(), run], "note observe observe hint observe");
}

#[test]
fn every_rung_that_can_be_reached_has_words_in_both_languages() {
    for track in Track::ALL {
        for rung in Rung::ALL.iter().filter(|rung| **rung > Rung::Observe) {
            let decision = Decision { rung: *rung, reason: Some(super::before::plain(*track, 3)) };
            for lang in Lang::ALL {
                let text = decision.text(*lang).expect("something is said");
                assert!(text.len() > 20 && !text.contains('{'), "{track}.{rung} {lang}: {text}");
                assert!(!text.contains(['!', '！']), "{track}.{rung} shouts: {text}");
            }
        }
    }
}

#[test]
fn every_row_says_something_before_it_refuses() {
    for row in super::preset::rows() {
        let Limits { note, hint, insist, deny, halt } = row.limits;
        let first_word = [note, hint].into_iter().filter(|limit| *limit > 0).min();
        assert!(deny == 0 || first_word.is_some_and(|first| first <= deny), "{row:?}");
        assert!(insist == 0 || (hint > 0 && hint < insist), "{row:?}");
        assert!(note == 0 || hint == 0 || note < hint, "{row:?}");
        assert!(halt == 0 || deny > 0, "{row:?}");
    }
}

#[test]
fn a_person_gets_a_table_of_what_was_tried() {
    let (rules, settings) = (Rules::built_in(), Settings::of(Preset::Adaptive));
    let mut replay = Replay::new(&rules, &settings);
    for ran in [sh("cargo build", 127, MISSING), sh("cargo build", 127, MISSING)] {
        let _ = replay.judge(&ran.recorded());
    }
    let table = replay.standing().table(Lang::En);
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "Error: ⟦bash: line 1: cargo: command not found⟧", "{table}");
    assert_eq!(lines[1], "Attempt: `cargo build` ×2", "{table}");
    assert!(lines[2].starts_with("Resolution: "), "{table}");
}

/// Compares two calls: `exact`, `intent`, or `other` where they have neither in common.
fn alike(one: Call, other: Call) -> &'static str {
    let (one, other) = (see::sight(&one), see::sight(&other));
    match (one.exact == other.exact, one.intent == other.intent) {
        (true, _) => "exact",
        (false, true) => "intent",
        (false, false) => "other",
    }
}

#[test]
fn cosmetics_do_not_make_another_call_and_real_differences_do() {
    let read = |input: Value| Call::new("Read", input);
    let path = |path: &str| read(json!({ "file_path": path }));
    assert_eq!(alike(path("/w/a.rs"), path("/w//./a.rs")), "exact");
    assert_eq!(alike(path("/w/a.rs"), path("/w/b.rs")), "other");
    let ask = |why: &str| read(json!({ "file_path": "/w/a.pdf", "question": why }));
    assert_eq!(alike(ask("Who?"), ask("What?")), "intent");
    let stray = |value: Value| Call::new("page_down", value);
    assert_eq!(alike(stray(json!({ "": "" })), stray(json!({ "": {} }))), "exact");
    assert_eq!(alike(stray(json!({ "": "" })), stray(json!({}))), "other");
    assert_eq!(alike(Call::shell("cargo check"), Call::shell("cargo  check 2>&1 | tail -20")), "intent");
    assert_eq!(alike(Call::shell("npm run dev"), Call::shell("npm run dev &")), "intent");
    assert_eq!(alike(Call::shell("grep a src"), Call::shell("grep b src")), "other");
}

#[test]
fn a_command_is_known_by_what_it_changes() {
    let manner = |line: &str| see::sight(&Call::shell(line)).manner;
    for (line, expected) in [
        ("cd /w && grep -n x a.py", Manner::Looks),
        ("sleep 30", Manner::Waits),
        ("pytest -q", Manner::Runs),
        ("pip install flask", Manner::Changes(Change::Install)),
        ("git commit -am x", Manner::Changes(Change::Git)),
        ("sed -i 's/a/b/' a.py", Manner::Changes(Change::Edit)),
        ("cat <<'EOF' > a.py\nprint(1)\nEOF", Manner::Changes(Change::Edit)),
        ("python3 -c 'open(\"a\", \"w\")'", Manner::Changes(Change::Script)),
        ("touch a.py", Manner::Changes(Change::Touch)),
        ("echo retry >> notes.txt", Manner::Changes(Change::Trifle)),
        ("rm -rf build", Manner::Changes(Change::Files)),
    ] {
        assert_eq!(manner(line), expected, "{line}");
    }
}

fn print(sort: &str, number: u64) -> Print {
    Print::of(&[sort, &number.to_string()])
}

fn sight_of(number: u64, root: u64, manner: u64) -> Sight {
    let manner = match manner {
        0 => Manner::Looks,
        1 => Manner::Changes(Change::Edit),
        2 => Manner::Runs,
        3 => Manner::Waits,
        _ => Manner::Unclear,
    };
    Sight {
        label: String::new(),
        tool_name: "t".to_owned(),
        tool: print("tool", root % 2),
        exact: print("exact", number),
        intent: print("intent", number / 2),
        approach: print("approach", number / 4),
        roots: vec![print("root", root)],
        looks: match manner {
            Manner::Looks => Looks::Known,
            Manner::Runs => Looks::Seems,
            Manner::Changes(_) | Manner::Waits | Manner::Unclear => Looks::MayWrite,
        },
        manner,
        speaker: if root.is_multiple_of(2) { Speaker::Shell } else { Speaker::Tool },
        dir: Dir::Unsaid,
        targets: vec![print("target", number)],
        names: vec![print("name", root)],
        creates: root == 3,
        polls: root == 4,
        waits: root == 5,
        trivial: root == 6,
    }
}

fn ending_of(verdict: u64, answer: u64) -> Ending {
    let firmness =
        [Firmness::Patient, Firmness::Unsure, Firmness::Likely, Firmness::Certain][(answer % 4) as usize];
    let kind = [Kind::Network, Kind::Unknown, Kind::PathNotFound, Kind::Conflict][(answer % 4) as usize];
    let fault = Fault {
        line: String::new(),
        rule: String::new(),
        kind,
        firmness,
        cause: print("cause", answer),
        roots: vec![print("root", answer % 7)],
        names: vec![print("name", answer + 3)],
        silent: answer == 1,
        opaque: answer.is_multiple_of(2),
        proven: !answer.is_multiple_of(5),
        condition: if answer.is_multiple_of(3) {
            Condition::Unseen
        } else {
            Condition::SameFiles(Vec::new())
        },
    };
    let upshot = match verdict {
        0 => Upshot::OurDenial,
        1 => Upshot::Fine,
        _ => Upshot::Failed(fault),
    };
    let state = [State::Unsaid, State::Unsaid, State::Alive, State::Ended][(answer % 4) as usize];
    Ending {
        upshot,
        bytes: print("bytes", answer),
        masked: print("masked", answer),
        ageless: print("ageless", answer),
        telling: true,
        green: answer == 2,
        state,
    }
}

fn moment_of(agent: u64) -> Moment {
    Moment { agent: print("agent", agent), round: Round::Unsaid, at: 0 }
}
