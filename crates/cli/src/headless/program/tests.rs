use std::path::PathBuf;

use super::*;
use crate::settings::Around;

/// What is started, as one line; the message is what stands in angle brackets, read or given.
fn line(start: &Start) -> String {
    format!("{} {} <{}", start.executable, start.args.join(" "), start.input)
}

fn known(name: &str, extra: &[&str], asked: Option<Reach>) -> Result<Program, CommandError> {
    let nowhere = Around {
        home: None,
        config_folder: None,
        state_folder: None,
        system_file: PathBuf::from("/nowhere/config.toml"),
        working_folder: None,
        editor: String::new(),
        variables: Vec::new(),
    };
    let settings = Settings::load_leniently(&nowhere, &[]).0;
    Program::named(name, &settings, &words(extra), asked)
}

#[track_caller]
fn check(name: &str, extra: &[&str], asked: Option<Reach>, begins: &str, resumes: &str) {
    let program = known(name, extra, asked).unwrap();
    assert_eq!(line(&program.begin("Do it")), begins);
    let session = Session { name: "s-1", is_empty: false };
    assert_eq!(line(&program.resume(session, "Go on").unwrap()), resumes);
}

#[test]
fn a_session_in_which_nobody_answered_is_taken_up_where_the_program_keeps_it() {
    let session = Session { name: "s-1", is_empty: true };
    for (name, is_kept) in [("claude", true), ("codex", true), ("gemini", false)] {
        let start = known(name, &[], None).unwrap().resume(session, "Go on");
        assert_eq!(start.is_some(), is_kept, "{name}");
    }
}

#[test]
fn an_agent_may_not_write_unless_somebody_says_so() {
    check(
        "claude",
        &["--model", "opus"],
        None,
        "claude -p --output-format stream-json --verbose --permission-mode default --disallowedTools Edit,Write,NotebookEdit --model opus <Do it",
        "claude -p --output-format stream-json --verbose --resume s-1 --permission-mode default --disallowedTools Edit,Write,NotebookEdit --model opus <Go on",
    );
    check(
        "codex",
        &[],
        Some(Reach::ReadOnly),
        "codex exec --json --sandbox read-only - <Do it",
        "codex exec --json --sandbox read-only resume s-1 - <Go on",
    );
    check(
        "gemini",
        &[],
        Some(Reach::MayWrite),
        "gemini --output-format stream-json --approval-mode auto_edit <Do it",
        "gemini --output-format stream-json --resume s-1 --approval-mode auto_edit <Go on",
    );
}

#[test]
fn the_users_own_words_say_what_it_may_do() {
    for (name, extra, reach) in [
        ("claude", &["--dangerously-skip-permissions"][..], Reach::MayWrite),
        ("claude", &["--permission-mode", "acceptEdits"], Reach::MayWrite),
        ("claude", &["--permission-mode=plan"], Reach::ReadOnly),
        ("codex", &["-s", "workspace-write"], Reach::MayWrite),
        ("codex", &["--sandbox=read-only"], Reach::ReadOnly),
        ("codex", &["--full-auto"], Reach::MayWrite),
        ("gemini", &["-y"], Reach::MayWrite),
        ("gemini", &["--approval-mode", "default"], Reach::ReadOnly),
    ] {
        assert_eq!(known(name, extra, None).unwrap().reach, reach, "{name} {extra:?}");
    }
    let contradiction = known("codex", &["--yolo"], Some(Reach::ReadOnly)).unwrap_err();
    assert_eq!(contradiction.to_string(), "--yolo lets the agent write, and --read-only forbids it");
}

#[test]
fn a_program_that_nobody_knows_is_not_started() {
    let error = known("cluade", &[], None).unwrap_err();
    assert_eq!(error.to_string(), "no agent program is called cluade");
}
