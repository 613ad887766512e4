//! What becomes of calls that speak against themselves: refused, held, allowed by a person, or let go because something moved.

use unstuck_judge::Outcome;
use unstuck_store::{Answer, Checked, Entry, Hears, Ruling, Stance, Which, Who};
use unstuck_wire::clean::Clean;

use crate::cellar::*;

/// A failure that passes by itself, with the wait that its own words ask for.
const TOO_MANY: &str = "HTTP/1.1 429 Too Many Requests\nretry-after: 30\n";

impl Cellar {
    /// A call whose failure passes by itself after a while.
    fn busy(&mut self, key: &str, command: &str, wait_ms: u64) -> Answer {
        let observation = observation(command, Outcome::Exited { code: 22 }, TOO_MANY);
        let mut ended = self.ended(key, &observation);
        ended.again_after = Some(wait_ms);
        self.keep(&Entry::Ended(Box::new(ended)))
    }
}

#[test]
fn a_call_that_comes_too_early_is_held_for_a_short_wait_and_told_of_a_long_one() {
    for (wait_ms, expected) in [(1_500, "hold"), (30_000, "go")] {
        let mut cellar = Cellar::empty();
        cellar.before("a", "curl https://api.example/x");
        let told = cellar.busy("a", "curl https://api.example/x", wait_ms).said.text.unwrap();
        assert!(told.contains("The same call may work again in"), "{told}");
        let said = cellar.before("b", "curl https://api.example/x").said;
        let found = match said.stance {
            Stance::Go => "go",
            Stance::Hold { .. } => "hold",
            Stance::Refuse => "refuse",
            Stance::Halt => "halt",
        };
        assert_eq!(found, expected, "{said:?}");
        if expected == "go" {
            assert!(said.text.unwrap().contains("may work again in 29 s"));
        }
        // Another call, one that waits by itself, and one after a change are not concerned.
        assert_eq!(cellar.before("c", "curl https://api.example/y").said.stance, Stance::Go);
        assert_eq!(cellar.before("d", "sleep 30; curl https://api.example/x").said.stance, Stance::Go);
    }
}

#[test]
fn what_a_person_allows_runs_until_it_is_taken_back() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "frob x");
    cellar.after("a", "frob x", 127, MISSING);
    let refused = cellar.before("b", "frob x").said.text.unwrap();
    let key = refused.split("unstuck allow ").nth(1).unwrap().split('`').next().unwrap().to_owned();
    let now = cellar.now;
    let allowed = cellar.store().allow(&key, now + 60_000, now).unwrap().unwrap();
    assert_eq!(cellar.store().allow("nobody", now + 60_000, now).unwrap(), None);
    assert_eq!(allowed.label, "frob x");
    assert_eq!(cellar.before("c", "frob x").said.stance, Stance::Go);
    assert_eq!(cellar.store().allowed(now).unwrap(), [allowed]);
    assert!(cellar.store().revoke(&key).unwrap() && !cellar.store().revoke(&key).unwrap());
    assert_eq!(cellar.before("d", "frob x").said.stance, Stance::Refuse);
}

#[test]
fn a_rule_that_was_wrong_too_often_only_speaks() {
    let mut cellar = Cellar::empty();
    let mut refused = 0;
    for round in 0..4 {
        let command = format!("frob{round} x");
        let missing = format!("bash: line 1: frob{round}: command not found\n");
        cellar.before(&format!("{round}a"), &command);
        cellar.after(&format!("{round}a"), &command, 127, &missing);
        let stance = cellar.before(&format!("{round}b"), &command).said.stance;
        refused += u32::from(stance.refuses());
        // It ran although it was refused, or because it was not, and it went well.
        cellar.after(&format!("{round}c"), &command, 0, "fine\n");
    }
    assert_eq!(refused, 2);
    let alarms = |event: &&String| event.contains("false_alarm");
    assert_eq!(cellar.events().iter().filter(alarms).count(), 2);
}

#[test]
fn a_call_that_a_person_was_asked_about_is_a_complete_pair_too() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "frob x");
    let (who, which) = (cellar.who(), Which::Key(Clean::from("a")));
    cellar.keep(&by_person(who, which, Ruling::Required));
    cellar.after("a", "frob x", 127, MISSING);
    assert_eq!(cellar.before("b", "frob x").said.stance, Stance::Refuse);
}

#[test]
fn a_call_is_refused_only_where_a_look_shows_that_its_cause_still_holds() {
    for (looks, expected) in
        [(Checked::Holds, Stance::Refuse), (Checked::Moved, Stance::Go), (Checked::Unseen, Stance::Go)]
    {
        let mut cellar = Cellar::empty();
        cellar.before("a", "frob x");
        cellar.after("a", "frob x", 127, MISSING);
        cellar.looks = looks;
        let said = cellar.before("b", "frob x").said;
        assert_eq!(said.stance, expected, "{looks:?}");
        // What runs is not spoken against: what is known of it was said with its failure.
        assert_eq!(said.text.is_some(), looks == Checked::Holds, "{looks:?}: {:?}", said.text);
        let claims = said.text.is_some_and(|text| text.contains("Looked just now"));
        assert_eq!(claims, looks == Checked::Holds, "{looks:?}");
    }
}

#[test]
fn a_note_that_differs_from_an_earlier_one_only_in_numbers_is_not_said() {
    let mut cellar = Cellar::empty();
    let told = |cellar: &mut Cellar, key: &str, file: &str| {
        let command = format!("convert-one {file}");
        cellar.before(key, &command);
        let printed = format!("convert-one: {file}: unsupported colour profile\n");
        cellar.after(key, &command, 1, &printed).said.text.is_some()
    };
    assert!(told(&mut cellar, "a", "img1.png"));
    assert!(!told(&mut cellar, "b", "img2.png"));
    assert!(told(&mut cellar, "c", "logo.png"));
    cellar.now += 11 * 60 * 1000;
    assert!(told(&mut cellar, "d", "img3.png"), "an agent does not know for ever what it was told");
}

#[test]
fn nothing_is_held_or_refused_for_its_wait_where_only_results_were_heard() {
    let mut cellar = Cellar::empty();
    cellar.busy("a", "curl https://api.example/x", 30_000);
    assert_eq!(cellar.before("b", "curl https://api.example/x").said.stance, Stance::Go);
}

#[test]
fn a_helper_that_is_done_gives_up_what_it_ran_and_the_main_agent_is_never_done() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "make");
    let mut asked = cellar.asked("b", "make check");
    asked.who.agent = Clean::from("sub");
    let done = asked.who.clone();
    cellar.keep(&Entry::Asked(Box::new(asked)));
    cellar.keep(&Entry::AgentDone(done));
    assert_eq!(cellar.calls(), ["a executing 1 -", "b sealed 1 -"]);
    let who = cellar.who();
    cellar.keep(&Entry::AgentDone(who));
    assert_eq!(cellar.calls()[0], "a executing 1 -");
}

#[test]
fn what_cannot_be_told_now_is_told_the_next_time() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "make");
    let deaf = Who { hears: Hears::Nothing, ..cellar.who() };
    assert_eq!(cellar.keep(&Entry::Over(deaf)).said.sealed, []);
    assert_eq!(cellar.before("b", "ls").said.sealed.len(), 1);
    assert_eq!(cellar.before("c", "ls -l").said.sealed.len(), 0);
}

#[test]
fn a_call_that_cannot_be_refused_stops_a_run_that_a_person_attends_after_six_failures_alike() {
    for (attended, expected) in [(true, &[6, 9][..]), (false, &[])] {
        let mut cellar = Cellar::empty();
        let mut halts = Vec::new();
        for number in 1..=9 {
            let seen = observation("frob x", Outcome::Exited { code: 127 }, MISSING);
            let mut ended = cellar.ended(&number.to_string(), &seen);
            ended.asked.attended = attended;
            let said = cellar.keep(&Entry::Ended(Box::new(ended))).said;
            if said.stance == Stance::Halt {
                assert!(said.table.unwrap().contains("frob x"), "{number}");
                halts.push(number);
            }
        }
        assert_eq!(halts, expected, "attended: {attended}");
    }
}

#[test]
fn what_is_known_of_a_rule_fades() {
    let mut cellar = Cellar::empty();
    cellar.before("a", "ls");
    let put = |cellar: &Cellar, at: u64| {
        let sql = "INSERT OR REPLACE INTO charge VALUES ('shell.command-not-found', 4, 2, ?1)";
        cellar.database().execute(sql, [at.cast_signed()]).unwrap();
    };
    put(&cellar, cellar.now);
    cellar.after("a", "ls", 0, "");
    cellar.before("b", "frob x");
    cellar.after("b", "frob x", 127, MISSING);
    assert_eq!(cellar.before("c", "frob x").said.stance, Stance::Go);
    put(&cellar, cellar.now - 31 * 24 * HOUR);
    assert_eq!(cellar.before("d", "frob x").said.stance, Stance::Refuse);
    assert_eq!(cellar.before("e", "frob x").said.stance, Stance::Refuse);
}

#[test]
fn after_a_break_an_answer_may_be_asked_for_again() {
    let is_told = |cellar: &mut Cellar, key: &str| {
        assert_eq!(cellar.before(key, "cat notes.txt").said.stance, Stance::Go, "{key}");
        let answer = "a long enough answer to be told apart from others\n";
        cellar.after(key, "cat notes.txt", 0, answer).said.text.is_some()
    };
    let breaks: [fn(&mut Cellar); 4] = [
        |_| {},
        |cellar| cellar.now += 11 * 60 * 1000,
        |cellar| {
            let who = cellar.who();
            cellar.keep(&Entry::Shortened(who));
        },
        |cellar| {
            let who = cellar.who();
            cellar.keep(&Entry::Began(who));
        },
    ];
    for (number, breaking) in breaks.into_iter().enumerate() {
        let mut cellar = Cellar::empty();
        for key in ["a", "b"] {
            assert!(!is_told(&mut cellar, key), "{key}");
        }
        breaking(&mut cellar);
        assert_eq!(is_told(&mut cellar, "c"), number == 0, "break {number}");
    }
}
