//! What one session ran into is told to the next before it does, and a call that took the place of another is offered.

use unstuck_judge::ladder::Reason;
use unstuck_judge::{Call, Need, fingerprint};
use unstuck_store::{Advocate, Checked, Failed, Proposal, Rewritten, Stance, Stands};
use unstuck_wire::clean::{Clean, Cleaner};

use super::*;

/// Somebody who looked at the machine.
struct Looked {
    stands: Stands,
}

impl Advocate for Looked {
    fn check(&self, _: &Reason, _: Failed) -> Checked {
        Checked::Holds
    }

    fn proposal(&self, _: &Reason) -> Option<Proposal> {
        None
    }

    fn stands(&self, _: &Need, _: u64) -> Stands {
        self.stands
    }

    fn has_another_version(&self, _: u64) -> bool {
        false
    }

    fn exchanged(&self, from: &str, to: &str) -> Option<Rewritten> {
        Some(Rewritten {
            row: "learned",
            from: Cleaner::new(None, []).line(from, 200),
            to: Cleaner::new(None, []).line(to, 200),
            call: fingerprint::call(&Call::shell(to)),
            tell_later: None,
        })
    }
}

impl Cellar {
    /// One call from its asking to its end, with nobody to speak for it.
    fn runs(&mut self, session: &'static str, command: &str, code: i32, printed: &str) {
        self.session = session;
        let key = format!("k{}", self.now);
        self.before(&key, command);
        self.after(&key, command, code, printed);
    }

    /// A call is asked for on a machine that was looked at: what becomes of it, and what is said.
    pub(super) fn asks(
        &mut self,
        session: &'static str,
        command: &str,
        stands: Stands,
    ) -> (&'static str, String) {
        self.session = session;
        let key = format!("k{}", self.now);
        let asked = self.asked(&key, command);
        self.now += 1000;
        self.dice += 1_000_000;
        let (now, looked) = (self.now, Looked { stands });
        let entry = Entry::Asked(Box::new(asked));
        let said = self.keeper(|keeper| keeper.keep_or(&entry, now, Some(&looked))).said;
        let text = said.text.unwrap_or_default();
        match (said.stance, said.rewritten) {
            (Stance::Go, Some(rewritten)) => ("rewritten", rewritten.to.to_string()),
            (Stance::Go, None) if text.is_empty() => ("silent", text),
            (Stance::Go, None) => ("told", text),
            (Stance::Hold { .. } | Stance::Refuse | Stance::Halt, _) => ("refused", text),
        }
    }

    /// How often the only lesson was shown, followed, and helped then.
    pub(super) fn effect(&self) -> [u32; 3] {
        let sql = "SELECT shown, followed, worked FROM lesson";
        let read = |row: &rusqlite::Row<'_>| Ok([row.get(0)?, row.get(1)?, row.get(2)?]);
        self.database().query_row(sql, [], read).unwrap()
    }

    fn losses(&self) -> u32 {
        self.database().query_row("SELECT losses FROM lesson", [], |row| row.get(0)).unwrap()
    }

    fn count(&self, table: &str) -> u32 {
        let sql = format!("SELECT count(*) FROM {table}");
        self.database().query_row(&sql, [], |row| row.get(0)).unwrap()
    }
}

const UNKNOWN_HOST: &str = "curl: (6) Could not resolve host: dead.example";
const UNKNOWN_FLAG: &str = "fatal: unrecognized argument: --frob";

/// After `failed` ended so in one session, `line` is asked for in the next.
#[track_caller]
fn check(failed: (&str, i32, &str), line: &str, stands: Stands, expected: &str) {
    let mut cellar = Cellar::empty();
    let (command, code, printed) = failed;
    cellar.runs("one", command, code, printed);
    let (what, text) = cellar.asks("two", line, stands);
    assert_eq!(what, expected, "{line} after {command}: {text}");
    assert_eq!(text.is_empty(), expected == "silent", "{text}");
}

#[test]
fn what_an_earlier_session_missed_is_told_and_never_refused() {
    let frob = ("frob --all x", 127, MISSING);
    check(frob, "frob other", Stands::Yes, "told");
    check(frob, "cd src && frob other | tail", Stands::Yes, "told");
    check(frob, "frob other", Stands::Unsaid, "told");
    check(frob, "frob other", Stands::No, "silent");
    check(frob, "other x", Stands::Yes, "silent");
}

#[test]
fn whoever_asks_whether_it_is_there_is_not_disturbed() {
    for line in ["command -v frob", "which frob", "frob --version || apt install frob", "frob --version"] {
        check(("frob x", 127, MISSING), line, Stands::Yes, "silent");
    }
}

#[test]
fn what_cannot_be_looked_at_is_only_told() {
    let host = ("curl -s https://dead.example/a", 6, UNKNOWN_HOST);
    check(host, "curl https://dead.example/b", Stands::Unsaid, "told");
    check(host, "curl https://live.example/b", Stands::Unsaid, "silent");
    let flag = ("git log --frob", 128, UNKNOWN_FLAG);
    check(flag, "git log --frob main", Stands::Unsaid, "told");
    check(flag, "git log --frob main", Stands::No, "silent");
    check(flag, "git log main", Stands::Unsaid, "silent");
}

#[test]
fn a_host_is_given_another_chance_after_an_hour() {
    let mut cellar = Cellar::empty();
    cellar.runs("one", "curl -s https://dead.example/a", 6, UNKNOWN_HOST);
    cellar.now += HOUR;
    assert_eq!(cellar.asks("two", "curl https://dead.example/b", Stands::Unsaid).0, "silent");
}

#[test]
fn a_session_is_told_once_and_what_a_look_shows_is_said() {
    for (stands, expected) in [(Stands::Yes, true), (Stands::Unsaid, false)] {
        let mut cellar = Cellar::empty();
        cellar.runs("one", "frob x", 127, MISSING);
        let (what, text) = cellar.asks("two", "frob x", stands);
        assert_eq!(what, "told");
        assert!(text.contains("frob: command not found"), "{text}");
        assert_eq!(text.contains("a look just now"), expected, "{text}");
        assert!(!text.contains("unstuck allow") && !text.contains("Blocked"), "{text}");
        assert_eq!(cellar.asks("two", "frob x", stands).0, "silent");
        assert_eq!(cellar.asks("three", "frob x", stands).0, "told");
    }
}

#[test]
fn two_sessions_at_once_are_each_told_only_once() {
    let mut cellar = Cellar::empty();
    cellar.runs("one", "frob x", 127, MISSING);
    for (session, line, expected) in [
        ("two", "frob x", "told"),
        ("three", "frob x", "told"),
        ("two", "frob x", "silent"),
        ("three", "frob x", "silent"),
        ("two", "frob other", "silent"),
    ] {
        assert_eq!(cellar.asks(session, line, Stands::Yes).0, expected, "{session}: {line}");
    }
}

#[test]
fn a_call_that_goes_well_shows_that_nothing_is_missing() {
    let mut cellar = Cellar::empty();
    cellar.runs("one", "frob x", 127, MISSING);
    assert_eq!(cellar.count("stopper"), 1);
    cellar.runs("two", "frob y", 0, "");
    assert_eq!(cellar.count("stopper"), 0);
    assert_eq!(cellar.asks("three", "frob x", Stands::Yes).0, "silent");
}

#[test]
fn what_helped_is_told_with_what_was_missing() {
    let mut cellar = Cellar::empty();
    cellar.runs("one", "python app.py", 127, "bash: line 1: python: command not found");
    cellar.runs("one", "python3 app.py", 0, "");
    let (what, text) = cellar.asks("two", "python other.py", Stands::Yes);
    assert_eq!(what, "told");
    assert!(text.contains("running `python3 app.py` instead of `python app.py`"), "{text}");
}

/// A call that failed, and the one that went well in its place, in each of these sessions.
fn changed(cellar: &mut Cellar, sessions: &[&'static str]) {
    for session in sessions {
        cellar.runs(session, "git log --frob", 128, UNKNOWN_FLAG);
        cellar.runs(session, "git log --all", 0, "");
    }
}

#[test]
fn a_change_that_worked_twice_is_suggested_and_only_an_approved_one_runs() {
    let mut cellar = Cellar::empty();
    changed(&mut cellar, &["one"]);
    cellar.database().execute("DELETE FROM stopper", []).unwrap();
    assert_eq!(cellar.asks("two", "git log --frob", Stands::Unsaid).0, "silent");
    changed(&mut cellar, &["three"]);
    cellar.database().execute("DELETE FROM stopper", []).unwrap();
    let (what, text) = cellar.asks("four", "git log --frob", Stands::Unsaid);
    assert_eq!(what, "told");
    assert!(
        text.contains("`git log --all` instead of `git log --frob`") && text.contains("2 times"),
        "{text}"
    );
    assert!(text.contains("not an instruction"), "{text}");
    cellar.database().execute("UPDATE lesson SET state = 'approved'", []).unwrap();
    let ran = ("rewritten", "git log --all".to_owned());
    assert_eq!(cellar.asks("five", "git log --frob", Stands::Unsaid), ran);
    assert!(cellar.events().contains(&"tool:rewritten".to_owned()));
}

/// A change that a person approved runs in the place of a call, and ends so.
fn run_in_place(code: i32, printed: &str) -> Cellar {
    let mut cellar = Cellar::empty();
    changed(&mut cellar, &["one", "two"]);
    cellar.database().execute("UPDATE lesson SET state = 'approved'", []).unwrap();
    let key = format!("k{}", cellar.now);
    assert_eq!(cellar.asks("three", "git log --frob", Stands::Unsaid).0, "rewritten");
    cellar.after(&key, "git log --all", code, printed);
    cellar
}

#[test]
fn a_change_that_ran_in_place_of_a_call_and_failed_has_lost() {
    let mut cellar = run_in_place(128, "fatal: not a git repository");
    assert_eq!(cellar.losses(), 1);
    assert_ne!(cellar.asks("four", "git log --frob", Stands::Unsaid).0, "rewritten");
}

#[test]
fn a_change_that_runs_counts_as_shown_before_it_counts_as_followed() {
    // Once in the second session, with its failure, and once in the third.
    assert_eq!(run_in_place(0, "").effect(), [2, 2, 2]);
}

#[test]
fn what_is_asked_for_as_it_went_well_needs_no_suggestion() {
    let mut cellar = Cellar::empty();
    for session in ["one", "two"] {
        cellar.runs(session, "npm test", 254, "npm error enoent Could not read package.json");
        cellar.runs(session, "cd web && npm test", 0, "");
    }
    let (what, text) = cellar.asks("three", "npm test", Stands::Unsaid);
    assert!(text.contains("⟦cd web && npm test⟧ instead of `npm test`"), "{what} {text}");
    assert_eq!(cellar.asks("four", "cd web && npm test", Stands::Unsaid).0, "silent");
}

#[test]
fn a_suggestion_that_came_in_time_has_not_lost() {
    let mut cellar = Cellar::empty();
    changed(&mut cellar, &["one", "two"]);
    cellar.database().execute("DELETE FROM stopper", []).unwrap();
    assert_eq!(cellar.asks("three", "git log --frob", Stands::Unsaid).0, "told");
    cellar.runs("three", "git log --all", 0, "");
    cellar.now += 2 * HOUR;
    cellar.runs("four", "git log --frob", 128, UNKNOWN_FLAG);
    assert_eq!(cellar.losses(), 0);
}

/// Somebody who has other words for a call, and sees that its cause still holds.
struct Replaces(&'static str);

impl Advocate for Replaces {
    fn check(&self, _: &Reason, _: Failed) -> Checked {
        Checked::Holds
    }

    fn proposal(&self, _: &Reason) -> Option<Proposal> {
        let rewritten = Rewritten {
            row: "program",
            from: Clean::from("python"),
            to: Clean::from("python3"),
            call: fingerprint::call(&Call::shell(self.0)),
            tell_later: None,
        };
        Some(Proposal::Run(rewritten))
    }
}

#[test]
fn a_call_that_ran_in_place_of_another_and_went_well_clears_nothing_that_is_known_of_it() {
    // Some agents tell of what ran, and others of what was asked for.
    for told in ["python3 app.py", "python app.py"] {
        let mut cellar = Cellar::empty();
        cellar.runs("one", "python app.py", 127, "bash: line 1: python: command not found");
        for turn in 0..3 {
            let key = format!("again{turn}");
            let entry = Entry::Asked(Box::new(cellar.asked(&key, "python app.py")));
            cellar.now += 1000;
            let now = cellar.now;
            let said =
                cellar.keeper(|keeper| keeper.keep_or(&entry, now, Some(&Replaces("python3 app.py")))).said;
            assert!(said.rewritten.is_some(), "{told} {turn}: {:?}", said.stance);
            cellar.after(&key, told, 0, "fine");
        }
    }
}
