//! What past retries achieved outlives the process, and is told apart by program and host.

use std::time::Duration;

use unstuck_judge::retry::{Draw, MayRepeat};
use unstuck_judge::{Kind, Outcome};
use unstuck_store::{Entry, Retry, RetryAsk, Series};

use crate::cellar::{Cellar, DAY, observation};

/// Ends an attempt at `line` in a session of its own, and says what follows.
fn end(cellar: &mut Cellar, line: &str, code: i32, series: Series) -> String {
    let said = if code == 0 { "" } else { "curl: (22) The requested URL returned error: 503" };
    let mut ended = cellar.ended("a", &observation(line, Outcome::Exited { code }, said));
    ended.asked.who.session = cellar.cleaner.name(&cellar.now.to_string(), 40);
    ended.retry =
        Some(RetryAsk { may_repeat: MayRepeat::Yes, draw: Draw::LOW, from_hook: None, series: Some(series) });
    match cellar.keep(&Entry::Ended(Box::new(ended))).said.retry {
        Some(Retry::Again { wait, attempt, of, .. }) => format!("{attempt} of {of} after {wait:?}"),
        Some(Retry::Stop { why, .. }) => why.word().to_owned(),
        None => "done".to_owned(),
    }
}

/// A first failure.
const FIRST: Series = Series {
    retries_made: 0,
    waited: Duration::ZERO,
    failed_before: None,
    elapsed: Duration::ZERO,
    retries: None,
    deadline: None,
};

/// Makes so many retries of `line`, each so long after its first attempt.
fn retry(cellar: &mut Cellar, line: &str, after: u64, code: i32, times: u32) {
    let failed_before = Some(Kind::ServerError);
    let retried = Series { retries_made: 1, failed_before, elapsed: Duration::from_secs(after), ..FIRST };
    for _ in 0..times {
        end(cellar, line, code, retried);
    }
}

const API: &str = "curl -fsS https://api.example/v1/orders";

#[test]
fn waits_follow_what_was_seen_at_the_same_program_and_host() {
    let mut cellar = Cellar::empty();
    assert_eq!(end(&mut cellar, API, 22, FIRST), "2 of 4 after 1s");
    retry(&mut cellar, API, 1, 22, 9);
    retry(&mut cellar, API, 10, 0, 9);
    for (line, expected) in [
        ("curl -fsS https://api.example/v1/customers", "2 of 4 after 8s"),
        ("wget -q https://new.example/", "2 of 4 after 8s"),
    ] {
        assert_eq!(end(&mut cellar, line, 22, FIRST), expected, "{line}");
    }
    retry(&mut cellar, "wget -q https://new.example/", 1, 0, 9);
    assert_eq!(end(&mut cellar, "wget -q https://new.example/", 22, FIRST), "2 of 4 after 1s");
    assert_eq!(end(&mut cellar, API, 22, FIRST), "2 of 4 after 8s");
    let told = cellar.database().query_row(
        "SELECT body ->> 'text' FROM event WHERE type = 'tool:retry' ORDER BY seq DESC LIMIT 1",
        [],
        |row| row.get::<_, String>(0),
    );
    assert!(told.unwrap().ends_with("(of 9 such retries after 8 to 12 s 9 helped)"));
}

#[test]
fn what_was_in_vain_ends_at_one_program_only_and_is_forgotten_in_time() {
    let mut cellar = Cellar::empty();
    for after in [1, 3, 6, 12, 24, 48, 64] {
        retry(&mut cellar, API, after, 22, 12);
    }
    assert_eq!(end(&mut cellar, API, 22, FIRST), "past_yield");
    assert_eq!(end(&mut cellar, "curl -fsS https://other.example/", 22, FIRST), "2 of 4 after 1s");
    cellar.now += DAY / 24;
    assert_eq!(end(&mut cellar, API, 22, FIRST), "2 of 4 after 1s");
    retry(&mut cellar, API, 1, 22, 1);
    assert_eq!(end(&mut cellar, API, 22, FIRST), "past_yield");
}
