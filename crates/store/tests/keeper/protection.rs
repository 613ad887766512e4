//! Calls that put files at risk: each bears the name of the snapshot before it, and one that could not be saved tells what became
//! of it.

use unstuck_judge::{Call, Outcome, fingerprint};
use unstuck_store::{Entry, Instead, SafeCall, SafeDeed, SafeNote, Stance, key_of};
use unstuck_wire::clean::Clean;

use crate::cellar::*;

const RISKY: &str = "rm -r src";

fn note(call: i64, snapshot: &'static str, deed: SafeDeed) -> Entry {
    Entry::Safe(SafeNote {
        at: NOW,
        call: SafeCall::Numbered(call),
        snapshot: Clean::from(snapshot),
        deed,
        why: Clean::from("rm"),
        text: Clean::from(RISKY),
    })
}

fn unprotected(instead: Instead) -> SafeDeed {
    SafeDeed::Unprotected { instead, said: Clean::from("it could not be saved") }
}

fn taken() -> SafeDeed {
    SafeDeed::Taken { paths: 3, bytes: 20, partial: false }
}

#[test]
fn whoever_tells_of_a_calls_end_hears_which_snapshot_was_taken_before_it() {
    let mut cellar = Cellar::empty();
    let call = cellar.before("a", RISKY).said.call.unwrap();
    cellar.keep(&note(call, "s41", taken()));
    assert_eq!(cellar.before("a", RISKY).said.snapshots, ["s41"], "told of twice");
    assert_eq!(cellar.end("a", RISKY, Outcome::Succeeded, "").said.snapshots, ["s41"]);
    assert_eq!(cellar.end("a", RISKY, Outcome::Succeeded, "").said.snapshots, [""; 0], "it had ended");
    // It comes back after it had waited in the spool, and for one that goes on in the background.
    let call = cellar.before("b", RISKY).said.call.unwrap();
    cellar.locked(|cellar| cellar.keep(&note(call, "s42", taken())));
    assert_eq!(cellar.end("b", RISKY, Outcome::Succeeded, "").said.snapshots, ["s42"]);
    let (who, key, line) = (cellar.who(), Clean::from("b"), Clean::from("done"));
    let later = Entry::Later { who, key, outcome: Outcome::Succeeded, line };
    assert_eq!(cellar.keep(&later).said.snapshots, ["s42"]);
    cellar.before("c", "ls");
    assert_eq!(cellar.end("c", "ls", Outcome::Succeeded, "").said.snapshots, [""; 0]);
}

#[test]
fn a_call_that_could_not_be_saved_is_where_it_was_left() {
    for (instead, state, told) in [
        (Instead::Recorded, "executing", None),
        (Instead::Told, "executing", None),
        (Instead::ToldLater, "executing", Some("it could not be saved")),
        (Instead::Asked, "approval_required", None),
        (Instead::Denied, "denied", None),
    ] {
        let mut cellar = Cellar::empty();
        let call = cellar.before("a", RISKY).said.call.unwrap();
        cellar.locked(|cellar| cellar.keep(&note(call, "", unprotected(instead))));
        cellar.before("b", "ls");
        assert_eq!(cellar.calls()[0], format!("a {state} 1 -"), "{instead}");
        let said = cellar.end("a", RISKY, Outcome::Succeeded, "").said;
        assert_eq!(said.text.as_deref(), told, "{instead}");
        assert_eq!(cellar.calls()[0], "a completed 1 -", "{instead}: it ran all the same");
    }
}

#[test]
fn one_that_was_refused_is_refused_again_under_its_name_and_can_be_allowed() {
    let mut cellar = Cellar::empty();
    let call = cellar.before("a", RISKY).said.call.unwrap();
    cellar.keep(&note(call, "", unprotected(Instead::Denied)));
    let again = cellar.before("a", RISKY).said;
    assert_eq!((again.stance, again.text.as_deref()), (Stance::Refuse, Some("it could not be saved")));
    let key = key_of(&fingerprint::call(&Call::shell(RISKY)));
    assert!(!cellar.keeper(|keeper| keeper.is_allowed(&key, NOW)), "nothing was kept by this one");
    let until = cellar.now + HOUR;
    let allowed = cellar.store().allow(&key, until, cellar.now).unwrap();
    assert_eq!(allowed.map(|allowance| allowance.label).as_deref(), Some(RISKY));
    let asked = Entry::Asked(Box::new(cellar.asked("b", RISKY)));
    let (before, after) = (cellar.now, until + 1);
    let known = cellar.keeper(|keeper| {
        keeper.keep(&asked, before);
        (keeper.is_allowed(&key, before), keeper.is_allowed(&key, after))
    });
    assert_eq!(known, (true, false));
    // That it went well later proves nothing against the refusal.
    cellar.end("b", RISKY, Outcome::Succeeded, "");
    assert!(!cellar.events_of_calls().iter().any(|event| event.starts_with("false_alarm")));
}
