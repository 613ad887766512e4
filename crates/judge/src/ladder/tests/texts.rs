//! What the ladder says: a refusal begins with its cause and says what was looked at, and what is quoted is what was there.

use super::*;
use crate::ladder::{Reason, words};

const LINE: &str =
    "error: the frobnicator of this machine is unhappy about its configuration and will not start today";

fn reason(track: Track, kind: Kind, condition: Condition) -> Reason {
    Reason {
        track,
        count: 2,
        kind,
        rule: "some.rule".to_owned(),
        line: LINE.to_owned(),
        condition,
        passes: false,
    }
}

#[test]
fn every_refusal_begins_with_its_cause_and_says_what_was_looked_at() {
    let conditions = [
        Condition::NoProgram("frob".to_owned()),
        Condition::NoPath("src/a.rs".to_owned()),
        Condition::PathTaken("src/a.rs".to_owned()),
        Condition::PortClosed(8080),
        Condition::PortTaken(8080),
        Condition::SameFiles(Vec::new()),
        Condition::SamePackages(Vec::new()),
        Condition::SameNamed,
    ];
    for (lang, looked) in [(Lang::En, "Looked just now:"), (Lang::Zh, "刚刚查看过：")] {
        for (track, kind) in
            Track::ALL.iter().flat_map(|track| Kind::ALL.iter().map(move |kind| (*track, *kind)))
        {
            if track.asks() {
                let text = words::refusal(&reason(track, kind, Condition::Unseen), lang);
                let beginning: String = text.chars().take(120).collect();
                assert!(beginning.contains('2') && !text.contains('{'), "{text}");
                continue;
            }
            for condition in &conditions {
                let text = words::refusal(&reason(track, kind, condition.clone()), lang);
                let beginning: String = text.chars().take(120).collect();
                assert!(beginning.contains(&LINE[..40]), "{track} {kind} {lang:?}: {beginning}");
                assert!(text.contains(looked) && !text.contains('{'), "{text}");
            }
        }
    }
}

#[test]
fn no_refusal_says_that_waiting_helps() {
    for kind in Kind::ALL {
        let text = reason(Track::Repeat, *kind, Condition::Unseen).remedy(Lang::En).unwrap_or_default();
        assert!(!text.contains("Wait "), "{kind}: {text}");
    }
}

/// What was tried, after `commands` failed alike.
fn tried(commands: &[&str]) -> String {
    let (rules, settings) = (Rules::built_in(), Settings::of(Preset::Adaptive));
    let mut replay = Replay::new(&rules, &settings);
    let mut last = None;
    for command in commands {
        let judged = replay.judge(&sh(command, 1, "npm error code E404").recorded());
        last = judged.after.reason.or(judged.before.reason).or(last);
    }
    replay.standing().tried(&last.unwrap(), Lang::En).unwrap()
}

#[test]
fn commands_are_quoted_in_the_words_they_were_sent_with() {
    assert_eq!(tried(&["npm install leftpad --save-dev"]), "Tried so far: `npm install leftpad --save-dev`.");
    // A file name can hold a sentence: what is more than plain words is quoted as data.
    assert_eq!(tried(&["cat 'Now obey.txt'"]), "Tried so far: ⟦cat 'Now obey.txt'⟧.");
    assert_eq!(tried(&["npm install `cat names`"]), "Tried so far: ⟦npm install `cat names`⟧.");
}

#[test]
fn what_is_told_again_counts_each_call_for_itself() {
    let (rules, settings) = (Rules::built_in(), Settings::of(Preset::Adaptive));
    let mut replay = Replay::new(&rules, &settings);
    let missing =
        "npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/x - Not found";
    for name in ["left-padd", "leftpadd", "leftpadd"] {
        let _ = replay.judge(&sh(&format!("npm install {name}"), 1, missing).recorded());
    }
    let text = replay.standing().reminder(Lang::En).unwrap();
    assert!(text.contains("`npm install leftpadd` ×2:") && !text.contains("×3"), "{text}");
    assert!(!text.contains("left-padd` ×"), "{text}");
}

#[test]
fn a_file_that_is_read_again_after_an_edit_of_it_failed_is_no_repeated_look() {
    let read = tool("Read", json!({ "file_path": "/w/a.rs" }), true, "fn main() {}");
    let input = json!({ "file_path": "/w/a.rs", "old_string": "x", "new_string": "y" });
    let failed = tool(
        "Edit",
        input,
        false,
        "<tool_use_error>String to replace not found in file.\nString: x</tool_use_error>",
    );
    let run = [read.clone(), failed.clone(), read.clone(), failed, read];
    let said = judged(&run).into_iter().map(|judged| judged.after);
    let about_looks = said.filter(|said| said.reason.as_ref().is_some_and(|reason| reason.track.asks()));
    assert_eq!(about_looks.count(), 0);
}

#[test]
fn a_cause_that_may_pass_is_never_said_to_stay() {
    let run = vec![
        sh(
            "curl -sf localhost:1/health",
            7,
            "curl: (7) Failed to connect to localhost port 1: Connection refused"
        );
        8
    ];
    for said in judged(&run) {
        let text = said.after.text(Lang::En).unwrap_or_default();
        assert!(
            !text.contains("until something relevant changes") && !text.contains("same assumptions"),
            "{text}"
        );
        assert!(said.before.rung < Rung::Deny);
    }
}
