//! What a server means that answers a request with an HTTP status and no message.

use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use unstuck_judge::hint::{self, Clock, Wait};
use unstuck_judge::{Lang, quote};
use unstuck_wire::redact::redact;

use super::reading;
use crate::mcp::link::Unanswered;

/// Maximum length of what is quoted of a server's words, in characters.
const SAID: usize = 300;
/// Headers that say when to come back.
const WAITS: [&str; 7] = [
    "date",
    "retry-after",
    "retry-after-ms",
    "ratelimit",
    "ratelimit-reset",
    "x-ratelimit-reset",
    "x-ratelimit-reset-requests",
];
/// So much of a body is told on.
pub(super) const TOLD: usize = 4096;

/// Whether a server is told who is asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    Token,
    Nothing,
}

impl Given {
    /// Looks for a header that says who is asking, or may do so by its name.
    pub(super) fn by(headers: &HeaderMap) -> Given {
        let words = ["auth", "cookie", "credential", "key", "secret", "session", "token"];
        let is_login = |name: &HeaderName| words.iter().any(|word| name.as_str().contains(word));
        match headers.keys().any(is_login) {
            true => Given::Token,
            false => Given::Nothing,
        }
    }
}

/// Reads a refusal.
pub(super) fn refusal(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    given: Given,
    clock: Clock,
    lang: Lang,
) -> Unanswered {
    let mut words = format!("HTTP {}", status.as_u16());
    if let Some(reason) = status.canonical_reason() {
        words = format!("{words} {reason}");
    }
    let said = said(body);
    if !said.is_empty() {
        words = format!("{words}: {}", quoted(&said));
    }
    if let Some(advice) = advice(status, headers, given, lang) {
        words = format!("{words}\n{advice}");
    }
    Unanswered {
        words,
        http_status: Some(status.as_u16()),
        retry_after: retry_after(headers, clock),
        never_reached: false,
        is_final: false,
    }
}

/// After how long a server wants to be asked again.
fn retry_after(headers: &HeaderMap, clock: Clock) -> Option<Duration> {
    let lines = WAITS.iter().filter_map(|name| {
        let value = headers.get(*name).and_then(|value: &HeaderValue| value.to_str().ok())?;
        Some(format!("{name}: {value}\n"))
    });
    match hint::in_text(&lines.collect::<String>(), Some(clock))?.wait {
        Wait::For(wait) => Some(wait),
        Wait::Never => None,
    }
}

/// What a body says: the words of an error, or how it begins.
pub(super) fn said(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(TOLD)]);
    let words = match reading::error(&text) {
        Some((_, words)) => words,
        None => text.split_whitespace().collect::<Vec<&str>>().join(" "),
    };
    redact(&words).into_owned()
}

/// What a server said, inside our own words.
pub(super) fn quoted(said: &str) -> String {
    quote::fenced(said, SAID)
}

/// What somebody can do about it.
fn advice(status: StatusCode, headers: &HeaderMap, given: Given, lang: Lang) -> Option<&'static str> {
    let wants_login = headers.contains_key(WWW_AUTHENTICATE);
    Some(match (status.as_u16(), lang) {
        (401, Lang::En) if given == Given::Token => {
            "The server refused the token that `unstuck mcp` was given with `--bearer-env` or `--header-env`: it is wrong, \
             has expired, or is for another server. Put one that is valid into the variable, and start `unstuck mcp` again."
        }
        (401, Lang::Zh) if given == Given::Token => {
            "服务器拒绝了通过 `--bearer-env` 或 `--header-env` 给 `unstuck mcp` 的令牌：令牌有误、已过期，或者属于别的服务器。请把有效的令牌放进该变量，然后重新启动 `unstuck mcp`。"
        }
        (401, Lang::En) => {
            "The server wants to know who is asking. Give `unstuck mcp` a token with `--bearer-env` (`--header-env` where \
             it goes into another header). A login in the browser can only be done by the agent itself: let it speak to such \
             a server directly."
        }
        (401, Lang::Zh) => {
            "服务器要求身份验证。请用 `--bearer-env`（令牌放在别的标头时用 `--header-env`）给 `unstuck mcp` 一个令牌。浏览器登录只能由代理自己完成：这样的服务器请让代理直接连接。"
        }
        (403, Lang::En) if wants_login => {
            "The token does not allow this. Give `unstuck mcp` one that does with `--bearer-env`, or let the agent \
             log in by itself and speak to the server directly."
        }
        (403, Lang::Zh) if wants_login => {
            "令牌的权限不够。请用 `--bearer-env` 给 `unstuck mcp` 一个有权限的令牌，或者让代理自己登录并直接连接服务器。"
        }
        (403, Lang::En) if given == Given::Token => {
            "The server does not allow this to whoever the token that `unstuck mcp` was given stands for. Give it one that is \
             allowed to do it with `--bearer-env`."
        }
        (403, Lang::Zh) if given == Given::Token => {
            "服务器不允许 `unstuck mcp` 所用令牌的持有者这样做。请用 `--bearer-env` 给它一个有权限的令牌。"
        }
        (403, Lang::En) => {
            "The server does not allow this. If it needs a token, give `unstuck mcp` one with `--bearer-env`."
        }
        (403, Lang::Zh) => "服务器不允许这样做。如果需要令牌，请用 `--bearer-env` 给 `unstuck mcp` 一个。",
        (407, Lang::En) => {
            "The proxy on the way wants a login: write it into the variable that names the proxy."
        }
        (407, Lang::Zh) => "途中的代理服务器要求登录：请把登录信息写进指定该代理的变量。",
        (405, Lang::En) => {
            "The address takes no messages. It may be wrong, or belong to a server that only speaks the older HTTP+SSE."
        }
        (405, Lang::Zh) => "这个地址不接收消息。地址可能有误，或者服务器只会较旧的 HTTP+SSE。",
        (_, Lang::En | Lang::Zh) => return None,
    })
}

/// Does what a server says to a message in a session, and to no request by its name, mean that the session is over?
pub(super) fn ends_session(status: StatusCode, body: &[u8]) -> bool {
    match status.as_u16() {
        // A method that nobody knows has its own code, and its session lives.
        404 => {
            str::from_utf8(body).ok().and_then(reading::error).is_none_or(|(code, _)| code != Some(-32601))
        }
        // Servers that lost their memory often say it this way.
        400 => {
            let said = said(body).to_lowercase();
            let lost = ["no valid", "not found", "invalid", "expired", "unknown", "not initialized"];
            said.contains("session") && lost.iter().any(|word| said.contains(word))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Clock = Clock { now: 1_792_000_000_000, ahead: None };

    #[track_caller]
    fn check(status: u16, headers: &[(&'static str, &str)], body: &str, expected: &str) {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        let why = refusal(
            StatusCode::from_u16(status).unwrap(),
            &headers.collect(),
            body.as_bytes(),
            Given::Nothing,
            NOW,
            Lang::En,
        );
        let wait = why.retry_after.map(|wait| format!(" ({} ms)", wait.as_millis())).unwrap_or_default();
        let first = why.words.lines().next().unwrap();
        assert_eq!(format!("{first}{wait}"), expected);
    }

    #[test]
    fn a_refusal_tells_what_the_server_said() {
        check(500, &[], "", "HTTP 500 Internal Server Error");
        check(502, &[], "<h1>Bad\n  gateway</h1>", "HTTP 502 Bad Gateway: ⟦‹h1>Bad gateway‹/h1>⟧");
        check(
            400,
            &[],
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no way"}}"#,
            "HTTP 400 Bad Request: ⟦no way⟧",
        );
        check(599, &[], "\u{0}", "HTTP 599: ⟦\\u{0}⟧");
    }

    #[test]
    fn a_wait_is_read_as_seconds_or_a_date() {
        check(429, &[("retry-after", "7")], "", "HTTP 429 Too Many Requests (7000 ms)");
        check(
            503,
            &[("date", "Wed, 14 Oct 2026 00:00:00 GMT"), ("retry-after", "Wed, 14 Oct 2026 00:00:30 GMT")],
            "",
            "HTTP 503 Service Unavailable (30000 ms)",
        );
        check(503, &[("retry-after", "soon")], "", "HTTP 503 Service Unavailable");
    }

    #[test]
    fn a_login_is_advised() {
        for (status, word) in [(401, "--bearer-env"), (403, "--bearer-env"), (405, "HTTP+SSE")] {
            for lang in [Lang::En, Lang::Zh] {
                let status = StatusCode::from_u16(status).unwrap();
                let why = refusal(status, &HeaderMap::new(), b"", Given::Nothing, NOW, lang);
                assert!(why.words.contains(word), "{}", why.words);
            }
        }
    }

    #[test]
    fn a_token_that_was_sent_and_refused_is_said_to_be_refused() {
        for (lang, refused, asked) in [
            (Lang::En, "refused the token", "Give `unstuck mcp` a token"),
            (Lang::Zh, "拒绝了", "要求身份验证"),
        ] {
            let say =
                |given| refusal(StatusCode::UNAUTHORIZED, &HeaderMap::new(), b"", given, NOW, lang).words;
            let (with, without) = (say(Given::Token), say(Given::Nothing));
            assert!(with.contains(refused) && !with.contains(asked), "{with}");
            assert!(without.contains(asked) && !without.contains(refused), "{without}");
        }
        let given = |name: &'static str| {
            Given::by(&HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static("x"))]))
        };
        for name in ["authorization", "x-api-key", "private-token", "cookie"] {
            assert_eq!(given(name), Given::Token, "{name}");
        }
        for name in ["user-agent", "x-tenant", "accept-language"] {
            assert_eq!(given(name), Given::Nothing, "{name}");
        }
    }

    #[test]
    fn a_session_ends_with_404_or_words_about_it() {
        let check = |status: u16, body: &str, expected| {
            assert_eq!(
                ends_session(StatusCode::from_u16(status).unwrap(), body.as_bytes()),
                expected,
                "{body}"
            );
        };
        check(404, "", true);
        check(404, r#"{"id":null,"error":{"code":-32001,"message":"Session not found"}}"#, true);
        check(404, r#"{"id":1,"error":{"code":-32601,"message":"Method not found"}}"#, false);
        check(
            400,
            r#"{"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#,
            true,
        );
        check(400, "bad request", false);
        check(500, "session expired", false);
    }
}
