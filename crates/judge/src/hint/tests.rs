//! Lines as they were seen, with the wait they ask for, and lines that only look like it.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// Sunday, 1 March 2026, 12:00:00 UTC.
const NOW: UnixMillis = 1_772_366_400_000;

/// The clocks of a place that is two hours ahead of UTC at that moment.
const HERE: Clock = Clock { now: NOW, ahead: Some(2 * 60 * 60) };

fn say(hint: Option<Hint>) -> String {
    match hint {
        Some(Hint { wait: Wait::For(wait), source }) => format!("{wait:?} by {source}"),
        Some(Hint { wait: Wait::Never, source }) => format!("never by {source}"),
        None => "nothing".to_owned(),
    }
}

#[track_caller]
fn check(rows: &[(&str, &str)]) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|(line, expected)| (line, *expected, say(in_line(line, Some(HERE)))))
        .filter(|(_, expected, got)| expected != got)
        .map(|(line, expected, got)| format!("{line:?}\n  is {got}, not {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn retry_after_is_read_in_every_dress() {
    check(&[
        ("Retry-After: 120", "120s by retry_after"),
        ("< retry-after: 30\r", "30s by retry_after"),
        ("HTTP 429 Too Many Requests. Retry-After: 30", "30s by retry_after"),
        ("{'Retry-After': '30', 'Server': 'x'}", "30s by retry_after"),
        ("map[Retry-After:[17] Server:[x]]", "17s by retry_after"),
        ("('retry-after', '5')", "5s by retry_after"),
        (
            r#"{"message":"You are being rate limited.","retry_after":0.65,"global":false}"#,
            "650ms by retry_after",
        ),
        (r#"{\"retry_after\": 12}"#, "12s by retry_after"),
        (r#"{"parameters":{"retryAfter":35}}"#, "35s by retry_after"),
        (r#"{"retryAfterSeconds": 9}"#, "9s by retry_after"),
        (r#""retry_after_ms": 1500"#, "1.5s by retry_after"),
        ("retry-after-ms: 250", "250ms by retry_after"),
        ("retry-after-ms: 900, retry-after: 1", "1s by retry_after"),
        ("toomanyrequests: retry-after: 985.86µs, allowed: 44000/minute", "985.86µs by retry_after"),
        ("Retry-After: 30 Server: nginx", "30s by retry_after"),
        ("Retry-After: -5", "0ns by retry_after"),
        ("Retry-After: Sun, 01 Mar 2026 12:01:30 GMT", "90s by retry_after"),
        ("Retry-After: Sun, 01 Mar 2026 11:00:00 GMT", "0ns by retry_after"),
        ("retry-after: 2026-03-01T12:00:05Z", "5s by retry_after"),
        ("Retry-After: 99999999999999999999999", "18446744073.709551615s by retry_after"),
    ]);
}

#[test]
fn rate_limit_resets_are_dates_moments_or_waits() {
    check(&[
        ("X-RateLimit-Reset: 1772366460", "60s by rate_limit_reset"),
        ("x-ratelimit-reset: 1772366460000", "60s by rate_limit_reset"),
        ("x-rate-limit-reset: 45", "45s by rate_limit_reset"),
        ("RateLimit-Reset: 30", "30s by rate_limit_reset"),
        ("RateLimit-ResetTime: Sun, 01 Mar 2026 12:00:10 GMT", "10s by rate_limit_reset"),
        ("X-RateLimit-Reset-After: 1.25", "1.25s by rate_limit_reset"),
        ("x-ratelimit-reset-ms: 700", "700ms by rate_limit_reset"),
        ("x-ratelimit-reset-requests: 6m0s", "360s by rate_limit_reset"),
        ("x-ratelimit-reset-tokens: 120ms", "120ms by rate_limit_reset"),
        ("x-ratelimit-reset-tokens: 1h2m3.5s", "3723.5s by rate_limit_reset"),
        ("anthropic-ratelimit-requests-reset: 2026-03-01T12:00:30Z", "30s by rate_limit_reset"),
        (
            "anthropic-ratelimit-input-tokens-reset: 2026-03-01T13:00:30.250+01:00",
            "30.25s by rate_limit_reset",
        ),
        ("anthropic-ratelimit-unified-reset: 1772366401", "1s by rate_limit_reset"),
        (r#"RateLimit: "default";r=0;t=30"#, "30s by rate_limit_reset"),
        ("RateLimit: limit=100, remaining=0, reset=50", "50s by rate_limit_reset"),
        (r#"RateLimit: "default";r=50;t=30"#, "nothing"),
        (r#"RateLimit-Policy: "default";q=100;w=10"#, "nothing"),
        ("X-RateLimit-Limit: 60", "nothing"),
        ("X-RateLimit-Remaining: 0", "nothing"),
    ]);
}

#[test]
fn structured_retry_infos_are_read() {
    check(&[
        (r#""retryDelay": "34.07s""#, "34.07s by retry_info"),
        ("retryDelay: '7s'", "7s by retry_info"),
        ("retry_delay { seconds: 34 }", "34s by retry_info"),
        ("retry_delay {\n  seconds: 34\n  nanos: 500000000\n}", "34.5s by retry_info"),
        (r#""retry_delay": {"seconds": 4}"#, "4s by retry_info"),
        ("grpc-retry-pushback-ms: 1200", "1.2s by grpc_pushback"),
        ("grpc-retry-pushback-ms: -1", "never by grpc_pushback"),
        ("Please retry in 59s. \"retryDelay\": \"58s\"", "58s by retry_info"),
    ]);
}

#[test]
fn waits_in_sentences_are_read() {
    check(&[
        ("Rate limit reached. Please try again in 12s.", "12s by prose"),
        ("Please try again in 6m0.5s. Visit https://x.y/2", "360.5s by prose"),
        ("try again in 120ms", "120ms by prose"),
        ("Please retry after 30 seconds.", "30s by prose"),
        ("Too Many Requests: retry after 35", "35s by prose"),
        (r#"{"description":"Too Many Requests: retry after 35"}"#, "35s by prose"),
        ("Please retry in 34.074824224s.", "34.074824224s by prose"),
        ("Please wait 2 minutes before trying again", "120s by prose"),
        ("You need to wait at least another 1 minute and 30 seconds", "90s by prose"),
        ("Please wait for 5 min.", "300s by prose"),
        ("Limit exceeded, try again in about 1 hour", "3600s by prose"),
        ("try again in an hour", "3600s by prose"),
        ("Request was throttled. Expected available in 45 seconds.", "45s by prose"),
        ("Your quota will reset after 5h38m12s.", "20292s by prose"),
        ("Usage resets in 3 days, 2 hours", "266400s by prose"),
        ("TRY AGAIN IN 5 SECONDS", "5s by prose"),
    ]);
}

#[test]
fn moments_are_waited_for() {
    // Here it is 14:00, while UTC has 12:00.
    check(&[
        ("Claude AI usage limit reached|1772370000", "3600s by rate_limit_reset"),
        ("You've hit your session limit · resets 3pm", "3600s by rate_limit_reset"),
        ("You've hit your session limit · resets 3pm (UTC)", "10800s by rate_limit_reset"),
        ("5-hour limit reached ∙ resets 2:30pm (Europe/Athens)", "1800s by rate_limit_reset"),
        ("Your limit will reset at 1pm.", "82800s by rate_limit_reset"),
        ("Weekly limit reached · resets Mar 3 at 2pm", "172800s by rate_limit_reset"),
        ("Your limit will reset on Mar 2, 2pm.", "86400s by rate_limit_reset"),
        ("You’ve hit your usage limit. Visit x.y or try again at 2:21 PM.", "1260s by prose"),
        ("You’ve hit your usage limit. Try again at Mar 1st, 2026 3:33 PM.", "5580s by prose"),
        ("try again at 14:05", "300s by prose"),
        ("Please retry at 14:00:30.", "30s by prose"),
        ("try again at tomorrow 14:00", "86400s by prose"),
        ("Try again on January 2nd at 2:00 PM", "0ns by prose"),
        ("try again at 2026-03-01 12:01 UTC", "60s by prose"),
        ("Rate limited until 2026-03-01T12:00:30Z", "30s by rate_limit_reset"),
        ("Rate limited until 12:00:30 GMT", "30s by rate_limit_reset"),
        (r#"{"resets_at": 1772366460, "plan_type": "plus"}"#, "60s by rate_limit_reset"),
        (r#""resets_in_seconds": 4000"#, "4000s by rate_limit_reset"),
        // Read a moment after the minute that was meant.
        ("resets 1:59pm", "0ns by rate_limit_reset"),
        ("resets 12am", "36000s by rate_limit_reset"),
    ]);
    let at_the_end_of_the_year = Clock { now: 1_798_632_000_000, ahead: Some(0) };
    assert_eq!(say(in_line("try again on Jan 2 at 12:00", Some(at_the_end_of_the_year))), "259200s by prose");
}

#[test]
fn a_moment_that_could_mean_another_one_is_not_read() {
    check(
        &[
            "resets 3pm PST",
            "resets 3pm (CET)",
            "resets 3pm +0300",
            "resets at 3",
            "resets 13pm",
            "resets 14:75",
            "resets the counter 3 times",
            "reached 14 of 20",
            "npm will retry at 14:05",
            "valid until further notice",
            "try again at noon",
            "resets Smarch 3 at 2pm",
        ]
        .map(|line| (line, "nothing")),
    );
    let nowhere = Some(Clock { now: NOW, ahead: None });
    assert_eq!(say(in_line("resets 3pm", nowhere)), "nothing");
    assert_eq!(say(in_line("resets 3pm (UTC)", nowhere)), "10800s by rate_limit_reset");
}

#[test]
fn waits_in_other_languages_are_read() {
    check(&[
        ("请在 30 秒后重试", "30s by prose"),
        ("请求过于频繁，请30秒后再试。", "30s by prose"),
        ("请等待 2 分钟", "120s by prose"),
        ("请求次数超限，请于1小时30分钟后重试", "5400s by prose"),
        ("請於 5 分鐘後再試", "300s by prose"),
        ("30秒後に再試行してください", "30s by prose"),
        ("5 分後にもう一度お試しください。", "300s by prose"),
        ("10 秒お待ちください", "10s by prose"),
        ("Versuchen Sie es in 30 Sekunden erneut.", "30s by prose"),
        ("Bitte in 5 Minuten noch einmal versuchen.", "300s by prose"),
        ("Bitte warten Sie 2 Stunden.", "7200s by prose"),
        ("Veuillez réessayer dans 30 secondes.", "30s by prose"),
        ("Réessayez dans environ 2 heures", "7200s by prose"),
        ("Veuillez patienter 45 secondes", "45s by prose"),
    ]);
}

#[test]
fn what_only_looks_like_a_wait_is_not_read() {
    let lines = [
        "retry 3 of 5",
        "Retry attempt 2/3 failed",
        "timed out after 30s",
        "Retrying in 5 seconds...",
        "npm will retry in 10 seconds",
        "We'll retry after 30 seconds",
        "no retry after 3 attempts",
        "gave up: no retry after 3 failures, 40s",
        "const wait = headers[\"retry-after\"];",
        "if (res.headers['retry-after']) { sleep(30) }",
        "let retryAfter = parseInt(header, 10)",
        "Retry-After: soon",
        "Retry-After:",
        "Lock wait timeout exceeded; try restarting transaction (1205)",
        "lock wait 50s exceeded",
        "waited 30 seconds for the lock",
        "waiting 30 seconds",
        "--wait 30s",
        "kubectl.wait 30s",
        "did not wait 30 seconds",
        "This option is available in 3.11 and later",
        "available in Clang 18",
        "Please wait a few minutes before you try again.",
        "try again in 3 different ways",
        "reset: 30",
        "git reset --hard 30",
        "connection reset after 30 bytes",
        "in 5 Dateien erneut gefunden",
        "wait a moment, 3 jobs left",
        "",
    ];
    check(&lines.map(|line| (line, "nothing")));
}

#[test]
fn a_date_means_nothing_without_a_clock_and_the_servers_own_is_the_best() {
    let date = "Retry-After: Sun, 01 Mar 2026 12:01:30 GMT";
    assert_eq!(say(in_line(date, None)), "nothing");
    assert_eq!(say(in_line("x-ratelimit-reset: 1772366460", None)), "nothing");
    let answer = format!("HTTP/1.1 503\r\nDate: Sun, 01 Mar 2026 12:01:00 GMT\r\n{date}\r\n");
    assert_eq!(say(in_text(&answer, None)), "30s by retry_after");
    assert_eq!(say(in_text(&answer, Some(HERE))), "30s by retry_after");
    assert_eq!(date_in_line("< date: Sun, 01 Mar 2026 12:00:00 GMT"), Some(NOW));
    assert_eq!(date_in_line("update: Sun, 01 Mar 2026 12:00:00 GMT"), None);
}

#[test]
fn the_most_binding_hint_of_a_text_is_kept() {
    let text = "x-ratelimit-reset-requests: 8.64s\nretry-after: 20\nPlease try again in 5m.";
    assert_eq!(say(in_text(text, None)), "20s by retry_after");
}

#[test]
fn moments_agree_with_the_calendar() {
    for (text, expected) in [
        ("1970-01-01T00:00:00Z", Some(0)),
        ("2000-02-29T23:59:59.999Z", Some(951_868_799_999)),
        ("2024-03-01T00:00:00-05:30", Some(1_709_271_000_000)),
        ("2026-13-01T00:00:00Z", None),
        ("2026-03-01T12:00:00", None),
        ("2026-03-01", None),
        ("1969-12-31T23:59:59Z", None),
    ] {
        assert_eq!(when::rfc3339(text), expected, "{text}");
    }
}

#[test]
fn rows_begin_in_lower_case_and_are_unique() {
    let mut words: Vec<&str> = ROWS.iter().map(|row| row.words).collect();
    assert!(words.iter().all(|words| *words == words.to_lowercase()));
    words.sort_unstable();
    let all = words.len();
    words.dedup();
    assert_eq!(words.len(), all);
}

#[test]
fn a_line_made_to_be_slow_is_not() {
    // Were the pass quadratic, this test would be the one that everybody waits for.
    for part in
        ["ratelimit:", "retry_delay{", "ratelimit-reset-", "wait ", "again in 1s ", "秒后重试", "\"date\":"]
    {
        let _ = in_text(&part.repeat(100_000 / part.len()), Some(HERE));
    }
}

proptest! {
    #[test]
    fn no_line_is_too_strange(line in any::<String>(), now: Option<u64>, ahead: Option<i32>) {
        let _ = in_text(&line, now.map(|now| Clock { now, ahead }));
    }

    #[test]
    fn no_moment_is_too_strange(now: u64, ahead: i32, word in "(Feb|dec|today|2026-02-|)[ 0-9]{0,5}(st|,|:|)[ 0-9:]{1,9}( am|PM|) ?(\\(?UTC|\\(A/B|)") {
        let _ = in_text(&format!("try again at {word}"), Some(Clock { now, ahead: Some(ahead) }));
    }

    #[test]
    fn no_mixture_of_what_is_known_is_too_strange(
        parts in prop::collection::vec(
            prop_oneof![
                (0..ROWS.len()).prop_map(|at| ROWS[at].words.to_owned()),
                prop::sample::select(&[":", " ", "=", "\"", "{", "-", ".", "é", "秒", "\n", "x-ratelimit-", "seconds: "][..]).prop_map(str::to_owned),
                any::<u64>().prop_map(|number| number.to_string()),
                Just("2026-03-01T12:00:30+".to_owned()),
                Just("Date: Sun, 01 Mar 2026 12:01:00 GMT".to_owned()),
            ],
            0..12,
        ),
    ) {
        let _ = in_text(&parts.concat(), Some(HERE));
    }

    #[test]
    fn seconds_are_what_they_say(seconds in 0..100_000_u64) {
        for line in [format!("Retry-After: {seconds}"), format!("try again in {seconds}s"), format!("请在 {seconds} 秒后重试")] {
            prop_assert_eq!(in_line(&line, None).map(|hint| hint.wait), Some(Wait::For(Duration::from_secs(seconds))));
        }
    }
}
