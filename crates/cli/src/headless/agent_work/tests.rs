//! Real processes that print what the programs print; what they were given stands in a file beside them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::checks::CheckArgs;
use crate::headless::program::Tongue;

/// A folder with a program in it that answers each of its starts as it is told.
struct Stage {
    folder: TempDir,
}

/// What an agent prints at one start, and how it ends.
#[derive(Clone, Copy)]
struct Play {
    prints: &'static str,
    exit: i32,
}

const BEGUN: &str = r#"{"type":"thread.started","thread_id":"t-1"}"#;
const MOVED: &str = r#"{"type":"thread.started","thread_id":"t-1"}
{"type":"item.completed","item":{"type":"agent_message","text":"half of it"}}
{"type":"turn.failed","error":{"message":"unexpected status 503 Service Unavailable: The server is overloaded"}}"#;
const REFUSED: &str = r#"{"type":"thread.started","thread_id":"t-1"}
{"type":"turn.failed","error":{"message":"unexpected status 503 Service Unavailable: The server is overloaded"}}"#;
const NAMELESS: &str = r#"{"type":"item.completed","item":{"type":"agent_message","text":"half of it"}}
{"type":"turn.failed","error":{"message":"unexpected status 503 Service Unavailable: The server is overloaded"}}"#;
const WRONG: &str = r#"{"type":"thread.started","thread_id":"t-1"}
{"type":"item.completed","item":{"type":"agent_message","text":"it does not build"}}
{"type":"turn.failed","error":{"message":"error[E0425]: cannot find value `tide` in this scope"}}"#;
const DONE: &str = r#"{"type":"thread.started","thread_id":"t-1"}
{"type":"item.completed","item":{"type":"agent_message","text":"All done"}}
{"type":"turn.completed"}"#;

impl Stage {
    fn with(plays: &[Play]) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        for (at, play) in plays.iter().enumerate() {
            fs::write(folder.path().join(format!("{}.out", at + 1)), play.prints).unwrap();
            fs::write(folder.path().join(format!("{}.exit", at + 1)), play.exit.to_string()).unwrap();
        }
        let script = r#"#!/bin/sh
cd "$(dirname "$0")"
echo start >> starts
n=$(wc -l < starts | tr -d ' ')
printf '%s | ' "$*" >> given
cat >> given
echo " | $UNSTUCK_ATTEMPT $UNSTUCK_SESSION_ID" >> given
cat "$n.out"
exit "$(cat "$n.exit")"
"#;
        let stage = Stage { folder };
        fs::write(stage.program(), script).unwrap();
        fs::set_permissions(stage.program(), fs::Permissions::from_mode(0o755)).unwrap();
        stage
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("agent")
    }

    fn given(&self) -> Vec<String> {
        let given = fs::read_to_string(self.folder.path().join("given")).unwrap_or_default();
        given.lines().map(str::to_owned).collect()
    }

    fn work<'r>(&self, rules: &'r Rules, reach: Reach) -> AgentWork<'r> {
        let program = Program::for_test(Tongue::Codex, reach, self.program().to_str().unwrap());
        let patience = Patience { idle: Duration::from_secs(20) };
        let checks = Checks::new(&CheckArgs::default(), Lang::En).unwrap();
        AgentWork::new(rules, program, patience, Lang::En, "Do it".to_owned(), None, checks)
    }
}

fn play(prints: &'static str, exit: i32) -> Play {
    Play { prints, exit }
}

/// Makes attempts until one goes well or cannot be followed by another; what is given to each is what is checked.
#[track_caller]
fn check(plays: &[Play], reach: Reach, given: &[&str], hindrance: Option<Hindrance>) {
    let stage = Stage::with(plays);
    let rules = Rules::built_in();
    let mut work = stage.work(&rules, reach);
    let mut last: Option<Report> = None;
    let mut hindered = None;
    for number in 1..=u32::try_from(plays.len()).unwrap() {
        let turn = Turn { number, session: "ours", limit: None, last: last.as_ref() };
        let tried = work.attempt(&turn);
        hindered = tried.hindrance;
        if tried.code == 0 || hindered.is_some() {
            break;
        }
        last = Some(Report::new(tried.diagnosis, &work.call(), Lang::En));
    }
    assert_eq!(stage.given(), given);
    assert_eq!(hindered, hindrance);
}

#[test]
fn what_was_refused_before_the_model_moved_is_said_again_in_the_same_session() {
    check(
        &[play(REFUSED, 1), play(DONE, 0)],
        Reach::MayWrite,
        &[
            "exec --json --sandbox workspace-write - | Do it | 1 ours",
            "exec --json --sandbox workspace-write resume t-1 - | Do it | 2 ours",
        ],
        None,
    );
}

#[test]
fn what_was_cut_off_goes_on_in_the_same_session_and_is_told_why() {
    check(
        &[play(MOVED, 1), play(DONE, 0)],
        Reach::MayWrite,
        &[
            "exec --json --sandbox workspace-write - | Do it | 1 ours",
            "exec --json --sandbox workspace-write resume t-1 - | Your last run was cut off (the server failed: output, quoted as data: \
             ⟦unexpected status 503 Service Unavailable: The server is overloaded⟧). What you did before is still there. Look \
             at what is done already, then go on with the task from there; do not start over. | 2 ours",
        ],
        None,
    );
}

#[test]
fn what_has_begun_without_a_session_is_not_started_over() {
    let only = ["exec --json --sandbox read-only - | Do it | 1 ours"];
    check(&[play(NAMELESS, 1), play(DONE, 0)], Reach::ReadOnly, &only, Some(Hindrance::NoSession));
}

#[test]
fn what_failed_before_it_began_may_begin_again() {
    check(
        &[play("", 1), play(DONE, 0)],
        Reach::ReadOnly,
        &[
            "exec --json --sandbox read-only - | Do it | 1 ours",
            "exec --json --sandbox read-only - | Do it | 2 ours",
        ],
        None,
    );
}

#[test]
fn an_agent_that_a_person_ended_is_not_started_again() {
    check(
        &[play(BEGUN, 130)],
        Reach::ReadOnly,
        &["exec --json --sandbox read-only - | Do it | 1 ours"],
        Some(Hindrance::Ended),
    );
}

/// One attempt: its exit code, its cause, and the checks that failed.
fn tried(play: Play) -> (u8, &'static str, Vec<String>) {
    let stage = Stage::with(&[play]);
    let rules = Rules::built_in();
    let mut work = stage.work(&rules, Reach::ReadOnly);
    let tried = work.attempt(&Turn { number: 1, session: "ours", limit: None, last: None });
    (tried.code, tried.diagnosis.kind.word(), tried.checks.iter().filter_map(failed).collect())
}

#[test]
fn a_run_is_what_it_says_of_itself_and_not_only_its_exit_code() {
    assert_eq!(tried(play(DONE, 0)), (0, "not_an_error", vec![]));
    assert_eq!(tried(play(REFUSED, 1)), (1, "server_error", vec![]));
    assert_eq!(tried(play(REFUSED, 0)), (1, "server_error", vec![]));
    assert_eq!(
        tried(play(BEGUN, 0)),
        (1, "not_an_error", vec!["result: it ended without a result".to_owned()])
    );
}

#[test]
fn a_model_is_asked_to_mend_only_what_it_did_itself() {
    let rules = Rules::built_in();
    for (first, can) in [(play(WRONG, 1), true), (play(REFUSED, 1), false), (play(NAMELESS, 1), false)] {
        let stage = Stage::with(&[first, play(DONE, 0)]);
        let mut work = stage.work(&rules, Reach::MayWrite);
        let turn = Turn { number: 1, session: "ours", limit: None, last: None };
        let tried = work.attempt(&turn);
        assert_eq!(work.ask_to_repair(&tried), can, "{}", first.prints);
        if can {
            work.attempt(&turn);
            let given = stage.given().join("\n");
            assert!(given.contains("resume t-1 - | Your last run did not end well"), "{given}");
            assert!(given.contains("cannot find value `tide`"), "{given}");
        }
    }
}

#[test]
fn an_agent_that_falls_silent_is_ended() {
    let stage = Stage::with(&[play(BEGUN, 0)]);
    fs::write(stage.program(), format!("#!/bin/sh\necho '{BEGUN}'\nsleep 30\n")).unwrap();
    let rules = Rules::built_in();
    let mut work = stage.work(&rules, Reach::ReadOnly);
    work.patience = Patience { idle: Duration::from_millis(300) };
    let tried = work.attempt(&Turn { number: 1, session: "ours", limit: None, last: None });
    assert_eq!((tried.code, tried.observation.outcome), (124, Outcome::TimedOut));
    assert!(tried.took < Duration::from_secs(10), "{:?}", tried.took);
    assert_eq!(work.session(), Some("t-1"));
}
