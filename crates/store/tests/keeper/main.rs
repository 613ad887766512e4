//! What is kept, through the one door every entry comes in by.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

mod cellar;
mod chain;
mod foresight;
mod formats;
mod lessons;
mod lessons_strained;
mod model;
mod own_attempts;
mod past_retries;
mod protection;
mod servers;
mod stance;
mod together;

use std::fs;
use std::time::Duration;

use serde_json::json;
use unstuck_judge::retry::{Draw, MayRepeat, Policy};
use unstuck_judge::{Call, Kind, Lang, Observation, Outcome};
use unstuck_store::{
    Bounds, Ended, Entry, Filesystem, Kept, OwnFault, Retry, RetryAsk, Ruling, SafeCall, SafeDeed, SafeNote,
    Series, Stance, Which, retry_without_memory,
};
use unstuck_wire::clean::Clean;
use unstuck_wire::report::Report;

use cellar::*;

#[test]
fn a_call_is_recorded_from_its_asking_to_its_end() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "frob x");
    cellar.after("a", "frob x", 127, MISSING);
    cellar.before("b", "ls");
    cellar.after("b", "ls", 0, "");
    assert_eq!(cellar.calls(), ["a failed 1 command_not_found", "b completed 1 -"]);
    assert_eq!(
        cellar.events(),
        [
            "tool:start",
            "tool:error",
            "error",
            "problem:new",
            "tool:end",
            "tool:advice",
            "tool:start",
            "tool:end"
        ]
    );
}

#[test]
fn a_repeat_is_refused_by_another_process_than_the_one_that_saw_the_failure() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "frob x");
    cellar.after("a", "frob x", 127, MISSING);
    let answer = cellar.before("b", "frob x");
    assert_eq!(answer.said.decision.unwrap().rung.word(), "deny");
    assert_eq!(cellar.calls()[1], "b denied 2 -");
}

#[test]
fn nothing_is_refused_in_a_session_of_which_only_results_were_heard() {
    let mut cellar = Cellar::empty();
    cellar.after("a", "frob x", 127, MISSING);
    assert_eq!(cellar.before("b", "frob x").said.stance, Stance::Go);
    cellar.after("b", "frob x", 127, MISSING);
    assert_eq!(cellar.before("c", "frob x").said.stance, Stance::Refuse);
}

#[test]
fn whoever_asks_twice_for_a_refused_call_is_refused_twice() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "frob x");
    cellar.after("a", "frob x", 127, MISSING);
    let answers = [cellar.before("b", "frob x"), cellar.before("b", "frob x")];
    let [first, second] = answers.map(|answer| (answer.said.decision.unwrap().rung, answer.said.text));
    assert_eq!(first, second);
    assert_eq!(cellar.calls().len(), 2);
}

#[test]
fn what_was_not_allowed_to_run_is_no_failure() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "rm -rf build");
    cellar.end("a", "rm -rf build", Outcome::Denied, "The user doesn't want to proceed with this tool use.");
    assert_eq!(cellar.calls(), ["a denied 1 -"]);
    assert_eq!(cellar.events(), ["tool:start", "tool:end", "tool:advice"]);
}

#[test]
fn what_is_told_twice_is_recorded_once() {
    let mut cellar = Cellar::empty();
    for _ in 0..3 {
        cellar.before("a", "make");
    }
    for _ in 0..3 {
        cellar.after("a", "make", 0, "done");
    }
    assert_eq!(cellar.calls(), ["a completed 1 -"]);
    assert_eq!(cellar.events(), ["tool:start", "tool:end"]);
}

#[test]
fn a_result_without_a_beginning_is_recorded_too() {
    let mut cellar = Cellar::empty();
    cellar.after("a", "make", 2, "make: *** No rule to make target 'x'.  Stop.");
    assert!(cellar.calls()[0].starts_with("a failed 1 "), "{:?}", cellar.calls());
}

#[test]
fn attempts_are_counted_and_a_success_recovers_them() {
    let mut cellar = Cellar::empty();
    for key in ["a", "b", "c"] {
        cellar.after(key, "curl https://x.example", 6, "curl: (6) Could not resolve host: x.example");
    }
    cellar.after("d", "curl https://x.example", 0, "");
    cellar.after("e", "curl https://x.example", 6, "curl: (6) Could not resolve host: x.example");
    assert_eq!(
        cellar.calls(),
        [
            "a failed 1 network recovered",
            "b failed 2 network repeat recovered",
            "c failed 3 network repeat recovered",
            "d completed 4 -",
            "e failed 1 network",
        ]
    );
}

#[test]
fn an_entry_waits_in_the_spool_while_the_database_is_held_and_is_taken_in_once() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "make");
    let answers = cellar.locked(|cellar| {
        [
            cellar.after("a", "make", 0, ""),
            cellar.before("b", "frob"),
            cellar.after("b", "frob", 127, MISSING),
        ]
    });
    assert_eq!(answers.each_ref().map(kept), ["spooled"; 3]);
    assert_eq!(cellar.calls(), ["a executing 1 -"]);
    assert_eq!(kept(&cellar.before("c", "ls")), "recorded");
    assert_eq!(cellar.calls(), ["a completed 1 -", "b failed 1 command_not_found", "c executing 1 -"]);
    assert_eq!(fs::read(cellar.spool()).unwrap(), b"");
    // What waited also counts for the ladder.
    let answer = cellar.before("d", "frob");
    assert_eq!(answer.said.decision.unwrap().rung.word(), "deny");
}

#[test]
fn a_spool_that_was_taken_in_but_not_emptied_is_not_taken_in_again() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "make");
    cellar.locked(|cellar| {
        for number in 0..5 {
            let fault = OwnFault { at: NOW, part: Clean::from("test"), what: Clean::from("x") };
            assert_eq!(kept(&cellar.keep(&Entry::OwnFault(fault))), "spooled", "{number}");
        }
    });
    let waiting = fs::read(cellar.spool()).unwrap();
    cellar.before("b", "ls");
    // As if the process had died between its commit and the emptying.
    fs::write(cellar.spool(), &waiting).unwrap();
    cellar.before("c", "pwd");
    fs::write(cellar.spool(), &waiting).unwrap();
    cellar.before("d", "id");
    assert_eq!(cellar.events().iter().filter(|kind| *kind == "own_fault").count(), 5);
}

#[test]
fn a_half_written_line_spoils_only_itself_and_is_kept() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "make");
    fs::create_dir_all(cellar.root().join("spool")).unwrap();
    fs::write(cellar.spool(), "\n{\"v\":1,\"id\":\"0000\",\"entry\":{\"so").unwrap();
    cellar.locked(|cellar| cellar.after("a", "make", 0, ""));
    cellar.before("b", "ls");
    assert_eq!(cellar.calls(), ["a completed 1 -", "b executing 1 -"]);
    assert_eq!(cellar.events(), ["tool:start", "own_fault", "tool:end", "tool:start"]);
    let left = fs::read_to_string(cellar.root().join("spool/unreadable.txt")).unwrap();
    assert!(left.contains("\"entry\":{\"so"), "{left}");
}

#[test]
fn word_of_a_crash_is_found_in_the_timeline() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "make");
    unstuck_store::note_crash(&cellar.root(), NOW, "src/some.rs:7:1", None);
    cellar.before("b", "ls");
    assert_eq!(cellar.events(), ["tool:start", "own_fault", "tool:start"]);
    // Where there is no folder to leave it in, nothing happens.
    unstuck_store::note_crash(&cellar.root().join("nowhere"), NOW, "src/some.rs:7:1", None);
}

#[test]
fn a_line_of_a_newer_version_stays_where_it_is() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "make");
    fs::create_dir_all(cellar.root().join("spool")).unwrap();
    let newer = json!({ "v": 2, "id": "77", "entry": { "sort": "dreamt", "of": "sheep" } });
    fs::write(cellar.spool(), format!("\n{newer}\n")).unwrap();
    cellar.before("b", "ls");
    assert_eq!(cellar.events(), ["tool:start", "tool:start"]);
    assert!(fs::read_to_string(cellar.spool()).unwrap().contains("sheep"));
}

#[test]
fn a_damaged_database_is_set_aside_and_kept() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "make");
    let path = cellar.root().join("timeline.db");
    let mut content = fs::read(&path).unwrap();
    content[..64].fill(0xAA);
    fs::write(&path, &content).unwrap();
    assert_eq!(kept(&cellar.before("b", "ls")), "recorded");
    assert_eq!(cellar.events(), ["own_fault", "tool:start"]);
    let aside: Vec<_> = fs::read_dir(cellar.root().join("damaged")).unwrap().flatten().collect();
    let [folder] = &aside[..] else { panic!("{aside:?}") };
    assert_eq!(fs::read(folder.path().join("timeline.db")).unwrap(), content);
}

#[test]
fn an_empty_file_in_the_place_of_the_database_is_set_aside_as_well() {
    let mut cellar = Cellar::empty();
    fs::create_dir(cellar.root()).unwrap();
    fs::write(cellar.root().join("timeline.db"), "").unwrap();
    assert_eq!(kept(&cellar.before("a", "ls")), "recorded");
    assert_eq!(cellar.events(), ["own_fault", "tool:start"]);
}

#[cfg(unix)]
#[test]
fn a_link_in_the_place_of_the_spool_is_neither_read_nor_emptied() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "ls");
    let victim = cellar.folder.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("spool.jsonl"), "precious").unwrap();
    fs::create_dir(cellar.root().join("spool")).unwrap();
    std::os::unix::fs::symlink(victim.join("spool.jsonl"), cellar.spool()).unwrap();
    cellar.before("b", "ls");
    fs::remove_file(cellar.spool()).unwrap();
    fs::remove_dir(cellar.root().join("spool")).unwrap();
    std::os::unix::fs::symlink(&victim, cellar.root().join("spool")).unwrap();
    cellar.before("c", "ls");
    let answer = cellar.locked(|cellar| cellar.before("d", "ls"));
    assert_eq!(kept(&answer), "lost");
    assert_eq!(fs::read(victim.join("spool.jsonl")).unwrap(), b"precious");
    assert_eq!(cellar.events(), ["tool:start"; 3]);
}

#[test]
fn a_call_whose_process_died_is_sealed_on_the_next_contact() {
    let mut cellar = Cellar::empty();
    let mut asked = cellar.asked("a", "terraform apply");
    asked.who.owner = Clean::from("dead:1");
    cellar.keep(&Entry::Asked(Box::new(asked)));
    let answer = cellar.before("b", "ls");
    let said: Vec<String> = answer.said.sealed.iter().map(|sealed| sealed.text(Lang::En)).collect();
    assert_eq!(said, ["`terraform apply` was running: check for side effects before repeating"]);
    assert_eq!(cellar.calls()[0], "a sealed 1 -");
    // Its result comes in after all.
    cellar.after("a", "terraform apply", 0, "");
    assert_eq!(cellar.calls()[0], "a completed 1 -");
}

#[test]
fn what_nobody_heard_of_for_hours_is_sealed_and_what_runs_is_not() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "sleep 1");
    cellar.now += 5 * HOUR;
    assert_eq!(cellar.before("b", "ls").said.sealed, []);
    cellar.now += 2 * HOUR;
    let now = cellar.now;
    let tended = cellar.keeper(|keeper| keeper.tend(now)).unwrap();
    assert_eq!(tended.sealed.iter().map(|sealed| &*sealed.label).collect::<Vec<_>>(), ["sleep 1"]);
}

#[test]
fn a_session_is_told_once_of_a_call_that_was_sealed_while_it_was_silent() {
    let mut cellar = Cellar::empty();
    let mut asked = cellar.asked("a", "terraform apply");
    asked.who.owner = Clean::from("dead:1");
    cellar.keep(&Entry::Asked(Box::new(asked)));
    let now = cellar.now;
    assert_eq!(cellar.keeper(|keeper| keeper.tend(now)).unwrap().sealed.len(), 1);
    assert_eq!(cellar.before("b", "ls").said.sealed.len(), 1);
    assert_eq!(cellar.before("c", "pwd").said.sealed.len(), 0);
}

#[test]
fn a_spool_that_grew_large_is_put_away_in_files_and_each_line_is_taken_in_once() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "make");
    let count = 600;
    cellar.locked(|cellar| {
        for number in 0..count {
            cellar.before(&format!("n{number}"), &format!("echo {number} {}", "x".repeat(800)));
        }
    });
    let files = fs::read_dir(cellar.root().join("spool")).unwrap().count();
    assert!(files > 2, "{files}");
    let now = cellar.now;
    assert_eq!(cellar.keeper(|keeper| keeper.tend(now)).unwrap().taken, count);
    assert_eq!(cellar.calls().len() as u64, count + 1);
    let left: u64 = fs::read_dir(cellar.root().join("spool"))
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    assert_eq!(left, 0);
}

#[test]
fn somebody_who_holds_a_lock_for_ever_stops_nobody() {
    let mut cellar = Cellar::empty();
    fs::create_dir(cellar.root()).unwrap();
    let lock = fs::File::create(cellar.root().join("lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(kept(&cellar.before("a", "ls")), "spooled");
    let spool = fs::File::open(cellar.spool()).unwrap();
    spool.lock().unwrap();
    assert_eq!(kept(&cellar.before("b", "ls -l")), "spooled");
    drop((lock, spool));
    cellar.before("c", "pwd");
    let mut calls = cellar.calls();
    calls.sort();
    assert_eq!(calls, ["a executing 1 -", "b executing 1 -", "c executing 1 -"]);
}

#[test]
fn the_user_speaking_ends_nothing_and_nothing_is_said_of_what_was_under_way_then() {
    let mut cellar = Cellar::empty();
    for key in ["a", "b", "c"] {
        cellar.before(key, &format!("make {key}"));
    }
    let required = |who, cellar: &mut Cellar| {
        let which = Which::Key(Clean::from("b"));
        let (ruling, by, note) = (Ruling::Required, Clean::from("person"), Clean::default());
        cellar.keep(&Entry::Ruled { who, which, ruling, by, note })
    };
    let who = cellar.who();
    required(who, &mut cellar);
    let who = cellar.who();
    assert_eq!(cellar.keep(&Entry::UserSpoke(who)).said.sealed, []);
    assert_eq!(cellar.calls(), ["a executing 1 -", "b approval_required 1 -", "c executing 1 -"]);
    cellar.after("a", "make a", 0, "");
    assert_eq!(cellar.calls()[0], "a completed 1 -");
    // Of what began since, nobody knows how it ended; the rest was answered before the user spoke.
    cellar.before("d", "make d");
    let who = cellar.who();
    let told = cellar.keep(&Entry::Began(who)).said.sealed;
    let said: Vec<String> = told.iter().map(|sealed| sealed.text(Lang::En)).collect();
    let text =
        "never had a result, and it is not known whether it ran: check for side effects before repeating";
    assert_eq!(said, [format!("`make d` {text}")]);
    assert_eq!(cellar.calls()[1..], ["b sealed 1 -", "c sealed 1 -", "d sealed 1 -"]);
}

#[test]
fn what_comes_with_a_word_of_the_user_is_not_sealed_by_it() {
    let mut cellar = Cellar::empty();
    for _ in 0..2 {
        let mut asked = cellar.asked("a", "make");
        asked.user_spoke = true;
        assert_eq!(cellar.keep(&Entry::Asked(Box::new(asked))).said.sealed, []);
    }
    assert_eq!(cellar.calls(), ["a executing 1 -"]);
}

#[test]
fn word_of_the_user_that_comes_late_seals_nothing_that_began_since() {
    let mut cellar = Cellar::empty();
    let who = cellar.who();
    cellar.now += 5000;
    cellar.before("a", "make");
    assert_eq!(cellar.keep(&Entry::UserSpoke(who)).said.sealed, []);
}

#[test]
fn a_keeper_notices_that_its_database_was_moved_away() {
    let cellar = Cellar::empty();
    cellar.keeper(|keeper| {
        let first = Entry::Asked(Box::new(cellar.asked("a", "make")));
        assert_eq!(kept(&keeper.keep(&first, NOW)), "recorded");
        for part in ["timeline.db", "timeline.db-wal", "timeline.db-shm"] {
            fs::rename(cellar.root().join(part), cellar.folder.path().join(part)).unwrap();
        }
        let second = Entry::Asked(Box::new(cellar.asked("b", "ls")));
        assert_eq!(kept(&keeper.keep(&second, NOW)), "recorded");
    });
    assert_eq!(cellar.calls(), ["b executing 1 -"]);
}

#[test]
fn the_log_of_a_database_that_is_gone_is_not_read_into_a_new_one() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "make");
    fs::remove_file(cellar.root().join("timeline.db")).unwrap();
    cellar.before("b", "ls");
    assert_eq!(cellar.calls(), ["b executing 1 -"]);
    let aside = fs::read_dir(cellar.root().join("damaged")).unwrap().count();
    assert_eq!(aside, 1);
}

#[test]
fn budgets_and_breakers_outlive_the_process_and_a_refusal_does_not_fill_them() {
    let mut cellar = Cellar::empty();
    let mut answers = Vec::new();
    for number in 0..6 {
        let observation = Observation {
            call: Call::shell(format!("curl https://x.example/{number}")),
            outcome: Outcome::Exited { code: 6 },
            http_status: None,
            stdout: Vec::new(),
            stderr: b"curl: (6) Could not resolve host: x.example".to_vec(),
            merged: Vec::new(),
        };
        let mut ended = cellar.ended(&number.to_string(), &observation);
        ended.retry =
            Some(RetryAsk { may_repeat: MayRepeat::Yes, draw: Draw::LOW, from_hook: None, series: None });
        answers.push(match cellar.keep(&Entry::Ended(Box::new(ended))).said.retry.unwrap() {
            Retry::Again { .. } => "again",
            Retry::Stop { why, .. } => why.word(),
        });
    }
    assert_eq!(answers[0], "again");
    assert_eq!(answers[5], "breaker_open", "{answers:?}");
    let turned = |cellar: &Cellar| {
        let turns = ["budget", "breaker"];
        cellar.events().into_iter().filter(|kind| turns.contains(&&**kind)).count()
    };
    assert_eq!(turned(&cellar), 2);
    let refused = Observation {
        call: Call::shell("curl https://x.example/7"),
        outcome: Outcome::ReportedFailure,
        http_status: None,
        stdout: Vec::new(),
        stderr: Vec::new(),
        merged: b"Blocked by unstuck: not run".to_vec(),
    };
    let mut ended = cellar.ended("7", &refused);
    ended.retry =
        Some(RetryAsk { may_repeat: MayRepeat::Yes, draw: Draw::LOW, from_hook: None, series: None });
    assert_eq!(cellar.keep(&Entry::Ended(Box::new(ended))).said.retry, None);
    assert_eq!(turned(&cellar), 2);
}

#[test]
fn whoever_makes_all_attempts_itself_knows_better_than_the_record_how_many_there_were() {
    let mut cellar = Cellar::empty();
    let observation = Observation {
        call: Call::shell("curl https://x.example"),
        outcome: Outcome::Exited { code: 6 },
        http_status: None,
        stdout: Vec::new(),
        stderr: b"curl: (6) Could not resolve host: x.example".to_vec(),
        merged: Vec::new(),
    };
    let mut number = 0;
    let mut ask = |series: Series| {
        number += 1;
        let mut ended = cellar.ended(&number.to_string(), &observation);
        let ask =
            RetryAsk { may_repeat: MayRepeat::Yes, draw: Draw::LOW, from_hook: None, series: Some(series) };
        ended.retry = Some(ask);
        let without_memory = retry_without_memory(Policy::built_in(), &ended, &ask);
        let said = cellar.keep(&Entry::Ended(Box::new(ended))).said.retry;
        assert_eq!(said, without_memory, "nothing was learnt yet");
        match said.unwrap() {
            Retry::Again { wait, attempt, of, .. } => format!("{attempt} of {of} after {wait:?}"),
            Retry::Stop { why, come_back_after, .. } => format!("{why} {come_back_after:?}"),
        }
    };
    let seconds = Duration::from_secs;
    let first = Series::default();
    let second = Series { retries_made: 1, waited: seconds(3), failed_before: Some(Kind::Network), ..first };
    assert_eq!(ask(first), "2 of 3 after 3s");
    assert_eq!(ask(first), "2 of 3 after 3s");
    assert_eq!(ask(second), "3 of 3 after 6s");
    let hurried = Series { retries: Some(9), deadline: Some(seconds(2)), ..first };
    assert_eq!(ask(hurried), "deadline Some(3s)");
}

#[test]
fn a_person_may_refuse_a_call() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "rm -rf build");
    let (who, key) = (cellar.who(), Clean::from("a"));
    cellar.keep(&by_person(who, Which::Key(key), Ruling::Denied));
    assert_eq!(cellar.calls(), ["a denied 1 -"]);
    assert_eq!(cellar.events(), ["tool:start", "tool:denied"]);
}

#[test]
fn who_lets_a_person_be_asked_and_what_is_told_also_when_it_waited() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "terraform apply");
    let (who, which) = (cellar.who(), Which::Key(Clean::from("a")));
    let (by, note) = (Clean::from("hook"), Clean::from("apply it?"));
    let ruled = Entry::Ruled { who, which, ruling: Ruling::Required, by, note };
    assert_eq!(kept(&cellar.locked(|cellar| cellar.keep(&ruled))), "spooled");
    cellar.before("b", "ls");
    let sql = "SELECT body FROM event WHERE type = 'ask'";
    let body: String = cellar.database().query_row(sql, [], |row| row.get(0)).unwrap();
    let expected = json!({ "label": "terraform apply", "by": "hook", "question": "apply it?" });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&body).unwrap(), expected);
}

#[test]
fn a_person_who_was_asked_is_told_of_on_the_control_channel() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "terraform apply");
    for ruling in [Ruling::Required, Ruling::Approved] {
        let (who, key) = (cellar.who(), Clean::from("a"));
        cellar.keep(&by_person(who, Which::Key(key), ruling));
    }
    assert_eq!(cellar.calls(), ["a approved 1 -"]);
    cellar.after("a", "terraform apply", 0, "");
    assert_eq!(cellar.calls(), ["a completed 1 -"]);
    assert_eq!(cellar.events(), ["tool:start", "ask", "tool:end"]);
}

#[test]
fn a_problem_that_was_resolved_is_reported_when_it_is_back() {
    let mut cellar = Cellar::empty();
    cellar.after("a", "frob", 127, MISSING);
    cellar.now += 15 * DAY;
    cellar.after("b", "frob", 127, MISSING);
    cellar.now += DAY;
    cellar.after("c", "frob", 127, MISSING);
    let news: Vec<String> = cellar.events().into_iter().filter(|kind| kind.starts_with("problem:")).collect();
    assert_eq!(news, ["problem:new", "problem:regressed"]);
}

#[test]
fn on_a_network_filesystem_only_the_spool_is_used_and_can_be_read() {
    let mut cellar = Cellar::empty();
    cellar.filesystem = Some(Filesystem::Network { name: "nfs".to_owned() });
    assert_eq!(kept(&cellar.before("a", "make")), "spooled");
    assert_eq!(kept(&cellar.after("a", "make", 0, "")), "spooled");
    assert!(!cellar.root().join("timeline.db").exists());
    let now = cellar.now;
    let store = cellar.keeper(|keeper| keeper.from_spool(now)).unwrap();
    assert_eq!(store.newest().unwrap().0, 2);
    // Moved to a disk of its own, it takes in what waited.
    cellar.filesystem = None;
    cellar.before("b", "ls");
    assert_eq!(cellar.calls(), ["a completed 1 -", "b executing 1 -"]);
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_not_ours_alone_is_closed_or_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let mut cellar = Cellar::empty();
    fs::create_dir(cellar.root()).unwrap();
    fs::set_permissions(cellar.root(), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(kept(&cellar.before("a", "ls")), "recorded");
    assert_eq!(fs::metadata(cellar.root()).unwrap().permissions().mode() & 0o777, 0o700);
    fs::set_permissions(cellar.root().join("timeline.db"), fs::Permissions::from_mode(0o666)).unwrap();
    cellar.before("b", "ls");
    for file in ["timeline.db", "timeline.db-wal", "timeline.db-shm", "lock"] {
        let mode = fs::metadata(cellar.root().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }

    let mut cellar = Cellar::empty();
    let elsewhere = cellar.folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, cellar.root()).unwrap();
    let answer = cellar.before("a", "ls");
    let Kept::Lost { why } = answer.kept else { panic!("{answer:?}") };
    assert!(why.ends_with("is not used: it is a symbolic link"), "{why}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn a_session_of_any_length_remembers_a_bounded_number_of_things() {
    let mut cellar = Cellar::empty();
    for number in 0..2600 {
        let command = format!("cat file{number}");
        let observation = Observation {
            call: Call::shell(&command),
            outcome: Outcome::Exited { code: 0 },
            http_status: None,
            stdout: format!("content {number}").into_bytes(),
            stderr: Vec::new(),
            merged: Vec::new(),
        };
        let report = Report::new(cellar.rules.diagnose(&observation), &observation.call, Lang::En);
        let asked = cellar.asked(&number.to_string(), &command);
        let ended = Ended::new(&cellar.cleaner, &Bounds::default(), asked, &observation, Some(true), &report);
        cellar.keep(&Entry::Ended(Box::new(ended)));
    }
    let most: u32 = cellar
        .database()
        .query_row("SELECT max(n) FROM (SELECT count(*) AS n FROM standing GROUP BY part)", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert!((2048..=2048 + 512).contains(&most), "{most}");
}

/// Every format that was ever released stands in `tests/data`, as a store that its own version wrote.
#[test]
fn what_a_process_had_no_time_to_record_is_recorded_by_the_next_one() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "frob x");
    let ended = cellar.ended("a", &observation("frob x", Outcome::Exited { code: 127 }, MISSING));
    unstuck_store::leave_word(&cellar.root(), cellar.now, &[Entry::Ended(Box::new(ended))]);
    cellar.before("b", "ls");
    assert_eq!(cellar.calls(), ["a failed 1 command_not_found", "b executing 1 -"]);
}

#[test]
fn what_is_done_in_the_safe_stands_in_the_timeline_with_its_call_also_when_it_waited() {
    let note = |call, deed| {
        let (snapshot, why, text) = (Clean::from("s1"), Clean::from("rm"), Clean::from("rm -r src"));
        Entry::Safe(SafeNote { at: NOW, call, snapshot, deed, why, text })
    };
    let named = |key: &'static str| SafeCall::Named { session: Clean::from("s"), key: Clean::from(key) };
    let restored = SafeDeed::Restored { paths: 2, bytes: 10, kept: 1, saved: Clean::from("s2") };
    let mut cellar = Cellar::empty();
    let call = cellar.before("a", "rm -r src").said.call.unwrap();
    let spooled = cellar.locked(|cellar| {
        let taken = SafeDeed::Taken { paths: 3, bytes: 20, partial: false };
        [
            cellar.keep(&note(named("a"), taken)),
            cellar.keep(&note(SafeCall::Numbered(call), restored.clone())),
        ]
    });
    assert_eq!(spooled.each_ref().map(kept), ["spooled"; 2]);
    assert_eq!(
        cellar.keep(&note(SafeCall::Numbered(99), SafeDeed::Removed { over: Clean::default() })).said.call,
        None
    );
    assert_eq!(cellar.keep(&note(named("never asked for"), SafeDeed::Failed)).said.call, None);
    assert_eq!(
        cellar.events_of_calls(),
        [
            "tool:start 1",
            "snapshot:taken 1",
            "snapshot:restored 1",
            "snapshot:removed -",
            "snapshot:failed -"
        ]
    );
}
