//! Waits that the server asked for: in headers, in structured errors, and in prose.
//!
//! A hint is read from one line (or a short text) in a single pass without allocating. It is what was said, not what will
//! be done: the retry policy clamps it. Nothing is guessed: "a few minutes" is no hint.

pub(crate) mod amount;
#[cfg(test)]
mod tests;
mod wall;
mod when;

use std::time::Duration;

use crate::kind::vocabulary;
use amount::{Number, is_blank, strip_ignoring_case, strip_word};

vocabulary! {
    /// Where a hint was read, the most binding first.
    HintSource {
        /// gRPC's pushback, which may also forbid the retry.
        Pushback = "grpc_pushback",
        /// `Retry-After` or its forms in milliseconds.
        RetryAfter = "retry_after",
        /// Google's `RetryInfo`.
        RetryInfo = "retry_info",
        /// A sentence.
        Prose = "prose",
        /// When a rate limit's window ends. Servers send it with every answer, so it means something only once a limit was hit.
        RateLimitReset = "rate_limit_reset",
    }
}

/// What was said about the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not before this time has passed.
    For(Duration),
    /// Not at all.
    Never,
}

/// A wait that the server asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hint {
    /// What was said.
    pub wait: Wait,
    /// Where it was said.
    pub source: HintSource,
}

impl Hint {
    /// Returns the more binding of two hints; of two from the same kind of source, the longer wait.
    pub fn or(self, other: Hint) -> Hint {
        match (self.wait, other.wait) {
            (Wait::Never, _) => self,
            (_, Wait::Never) => other,
            (Wait::For(_), Wait::For(_)) if self.source < other.source => self,
            (Wait::For(_), Wait::For(_)) if self.source > other.source => other,
            (Wait::For(mine), Wait::For(theirs)) if mine >= theirs => self,
            (Wait::For(_), Wait::For(_)) => other,
        }
    }
}

/// Milliseconds since 1970.
pub type UnixMillis = u64;

/// What the clocks show where a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// The moment.
    pub now: UnixMillis,
    /// How many seconds the clocks on the wall are ahead of UTC, where that is known.
    pub ahead: Option<i32>,
}

/// How the words of a row lead to a wait.
#[derive(Clone, Copy)]
enum Reads {
    /// A field whose bare number counts seconds, or whose value is a date.
    Seconds,
    /// A field whose bare number counts milliseconds.
    Millis,
    /// A field that counts milliseconds, and forbids the retry when negative.
    Pushback,
    /// A field with a duration, or a block with `seconds` in it.
    Delay,
    /// The last part of a field that names a rate limit: a date, a count of seconds since 1970, or a wait.
    Reset,
    /// A list of parameters, among them `t` or `reset`.
    Parameters,
    /// A field or a sentence that names a moment: a count of seconds since 1970, a date, or a time by the clock.
    Moment,
    /// The same, in a sentence that is advice.
    AdvisedMoment,
    /// A sentence in which the amount follows.
    Then,
    /// A sentence in which the amount follows, or a bare number of seconds ends it.
    ThenSeconds,
    /// A sentence in which the amount stands before.
    Before,
}

struct Row {
    /// The words, in lower case. A `-` stands for one of `-`, `_`, a blank or nothing; a blank for some white space.
    words: &'static str,
    reads: Reads,
    source: HintSource,
}

const fn row(words: &'static str, reads: Reads, source: HintSource) -> Row {
    Row { words, reads, source }
}

/// All that is understood. Every row that matches is read, and the most binding hint is kept.
const ROWS: &[Row] = &[
    row("retry-after-ms", Reads::Millis, HintSource::RetryAfter),
    row("retry-after-millis", Reads::Millis, HintSource::RetryAfter),
    row("retry-after-milliseconds", Reads::Millis, HintSource::RetryAfter),
    row("retry-after-secs", Reads::Seconds, HintSource::RetryAfter),
    row("retry-after-seconds", Reads::Seconds, HintSource::RetryAfter),
    row("retry-after", Reads::Seconds, HintSource::RetryAfter),
    row("grpc-retry-pushback-ms", Reads::Pushback, HintSource::Pushback),
    row("retry-delay", Reads::Delay, HintSource::RetryInfo),
    row("reset", Reads::Reset, HintSource::RateLimitReset),
    row("resettime", Reads::Reset, HintSource::RateLimitReset),
    row("ratelimit", Reads::Parameters, HintSource::RateLimitReset),
    row("reached", Reads::Moment, HintSource::RateLimitReset),
    row("resets-in-seconds", Reads::Seconds, HintSource::RateLimitReset),
    row("resets-at", Reads::Moment, HintSource::RateLimitReset),
    // English.
    row("reset at", Reads::Moment, HintSource::RateLimitReset),
    row("reset on", Reads::Moment, HintSource::RateLimitReset),
    row("resets", Reads::Moment, HintSource::RateLimitReset),
    row("resets on", Reads::Moment, HintSource::RateLimitReset),
    row("until", Reads::Moment, HintSource::RateLimitReset),
    row("again at", Reads::AdvisedMoment, HintSource::Prose),
    row("again on", Reads::AdvisedMoment, HintSource::Prose),
    row("retry at", Reads::AdvisedMoment, HintSource::Prose),
    row("again in", Reads::Then, HintSource::Prose),
    row("again after", Reads::Then, HintSource::Prose),
    row("available in", Reads::Then, HintSource::Prose),
    row("back in", Reads::Then, HintSource::Prose),
    row("will reset in", Reads::Then, HintSource::Prose),
    row("will reset after", Reads::Then, HintSource::Prose),
    row("resets in", Reads::Then, HintSource::Prose),
    row("resets after", Reads::Then, HintSource::Prose),
    row("retry in", Reads::Then, HintSource::Prose),
    row("retry after", Reads::ThenSeconds, HintSource::Prose),
    row("retry your request after", Reads::Then, HintSource::Prose),
    row("wait", Reads::Then, HintSource::Prose),
    // German.
    row("bitte warten", Reads::Then, HintSource::Prose),
    row("warten sie", Reads::Then, HintSource::Prose),
    row("versuchen sie es in", Reads::Then, HintSource::Prose),
    row("erneut", Reads::Before, HintSource::Prose),
    row("noch einmal", Reads::Before, HintSource::Prose),
    // French.
    row("réessayez dans", Reads::Then, HintSource::Prose),
    row("réessayer dans", Reads::Then, HintSource::Prose),
    row("réessayez après", Reads::Then, HintSource::Prose),
    row("réessayer après", Reads::Then, HintSource::Prose),
    row("patienter", Reads::Then, HintSource::Prose),
    row("patientez", Reads::Then, HintSource::Prose),
    row("attendez", Reads::Then, HintSource::Prose),
    row("attendre", Reads::Then, HintSource::Prose),
    // Chinese, in both scripts.
    row("请等待", Reads::Then, HintSource::Prose),
    row("請等待", Reads::Then, HintSource::Prose),
    row("请稍等", Reads::Then, HintSource::Prose),
    row("后重试", Reads::Before, HintSource::Prose),
    row("后再试", Reads::Before, HintSource::Prose),
    row("后再次", Reads::Before, HintSource::Prose),
    row("后再重试", Reads::Before, HintSource::Prose),
    row("后重新", Reads::Before, HintSource::Prose),
    row("後重試", Reads::Before, HintSource::Prose),
    row("後再試", Reads::Before, HintSource::Prose),
    // Japanese.
    row("後に再", Reads::Before, HintSource::Prose),
    row("後にもう一度", Reads::Before, HintSource::Prose),
    row("後にお試し", Reads::Before, HintSource::Prose),
    row("お待ち", Reads::Before, HintSource::Prose),
    row("待ってから", Reads::Before, HintSource::Prose),
];

/// Words that may stand between a sentence's words and its amount.
const FILLERS: &[&str] = &[
    "for",
    "about",
    "approximately",
    "approx.",
    "around",
    "roughly",
    "another",
    "at least",
    "the next",
    "up to",
    "~",
    "sie",
    "noch",
    "etwa",
    "ca.",
    "mindestens",
    "encore",
    "environ",
    "au moins",
    "约",
    "大约",
    "至少",
];

/// After these words a program speaks of its own wait, or of one that is no advice: `will retry in 5s`, `lock wait 50s`.
const NOT_ADVICE: &[&str] =
    &["will", "'ll", "would", "not", "n't", "lock", "max", "maximum", "default", "we", "i"];

/// No name, block or list of parameters is longer than this. The bound keeps the pass linear on lines made to be slow.
const NEAR: usize = 256;

/// Reads the most binding hint from a line. A date means nothing without a clock.
///
/// It costs a few nanoseconds per byte: little for the lines around a failure, too much for every line of a long log.
pub fn in_line(line: &str, clock: Option<Clock>) -> Option<Hint> {
    word_starts(line).flat_map(|at| hints_at(line, at, clock)).reduce(Hint::or)
}

/// Reads the most binding hint from a text of several lines. Dates are taken against the server's own `Date`, if it sent
/// one, since its clock and ours need not agree.
pub fn in_text(text: &str, clock: Option<Clock>) -> Option<Hint> {
    in_line(text, corrected(clock, text))
}

/// The clock, set by a `Date` in a text where there is one.
pub(crate) fn corrected(clock: Option<Clock>, text: &str) -> Option<Clock> {
    let ahead = clock.and_then(|clock| clock.ahead);
    date_in_line(text).map(|now| Clock { now, ahead }).or(clock)
}

/// Reads a `Date` header: the time by the server's clock, for the hints in the lines around it.
pub fn date_in_line(line: &str) -> Option<UnixMillis> {
    let starts = word_starts(line).filter(|at| stands_alone(&line[..*at]));
    starts
        .filter_map(|at| strip_ignoring_case(&line[at..], "date"))
        .find_map(|rest| when::http_date(value(rest)?))
}

/// The first four bytes of each row's words: enough to pass over nearly every word of a line at one look.
static HEADS: [[u8; 4]; ROWS.len()] = {
    let mut heads = [[0; 4]; ROWS.len()];
    let mut at = 0;
    while at < ROWS.len() {
        heads[at] = *ROWS[at].words.as_bytes().first_chunk().expect("every row has a word of four bytes");
        at += 1;
    }
    heads
};

/// Walks the places where a word may begin. Scripts without blanks may begin one anywhere.
fn word_starts(line: &str) -> impl Iterator<Item = usize> {
    let bytes = line.as_bytes();
    (0..bytes.len()).filter(|at| match bytes[*at] {
        0x80..=0xBF => false,
        0xC0.. => true,
        byte => byte.is_ascii_alphabetic() && (*at == 0 || !bytes[*at - 1].is_ascii_alphanumeric()),
    })
}

fn hints_at(line: &str, at: usize, clock: Option<Clock>) -> impl Iterator<Item = Hint> {
    let head =
        line.as_bytes()[at..].first_chunk::<4>().map(|head| head.map(|byte| byte.to_ascii_lowercase()));
    let rows = HEADS.iter().zip(ROWS).filter(move |(known, _)| Some(**known) == head);
    rows.filter_map(move |(_, row)| {
        let rest = strip_words(&line[at..], row.words)?;
        let wait = read(row.reads, &line[..at], rest, clock)?;
        Some(Hint { wait, source: row.source })
    })
}

/// Reads the wait that belongs to words with `before` and `rest` around them.
fn read(reads: Reads, before: &str, rest: &str, clock: Option<Clock>) -> Option<Wait> {
    let now = clock.map(|clock| clock.now);
    let wait = match reads {
        Reads::Seconds => timed(value(rest)?, Number::seconds).or_else(|| until(value(rest)?, now))?,
        Reads::Millis => timed(value(rest)?, Number::millis)?,
        Reads::Pushback => match value(rest)?.strip_prefix('-') {
            Some(number) => return Number::read(number).map(|_| Wait::Never),
            None => timed(value(rest)?, Number::millis)?,
        },
        Reads::Delay => block(rest).or_else(|| timed(value(rest)?, Number::seconds))?,
        Reads::Reset => reset(before, rest, now)?,
        Reads::Parameters => parameters(rest)?,
        Reads::Moment => moment(rest, clock?)?,
        Reads::AdvisedMoment => moment(rest, clock.filter(|_| is_advice(before))?)?,
        Reads::Then => then(before, rest)?,
        Reads::ThenSeconds => then(before, rest).or_else(|| closing_seconds(before, rest))?,
        Reads::Before => amount_before(before)?,
    };
    Some(Wait::For(wait))
}

/// Takes a row's words from the start of `text`.
fn strip_words<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let mut rest = text;
    for part in words.split_inclusive(['-', ' ']) {
        let word = part.trim_end_matches(['-', ' ']);
        rest = strip_ignoring_case(rest, word)?;
        if part.ends_with(' ') {
            rest = Some(rest.trim_start()).filter(|after| after.len() < rest.len())?;
        } else if part.ends_with('-') {
            rest = rest.strip_prefix(['-', '_', ' ']).unwrap_or(rest);
        }
    }
    // A word that goes on is another word, but in a script without blanks nothing can go on.
    let goes_on = words.is_ascii() && rest.starts_with(|next: char| next.is_ascii_alphanumeric());
    (!goes_on).then_some(rest)
}

/// Returns the value of a field whose name was just read: `: 30`, `=30`, `": "30"`, `', '30'`, `:[30]`.
fn value(rest: &str) -> Option<&str> {
    let unquoted = rest.trim_start_matches(['"', '\'', '\\', '`', ']']);
    let was_quoted = unquoted.len() < rest.len();
    let after = unquoted.trim_start_matches(is_blank);
    let after = match after.strip_prefix("=>").or_else(|| after.strip_prefix([':', '='])) {
        Some(after) => after,
        None => after.strip_prefix(',').filter(|_| was_quoted)?,
    };
    Some(after.trim_start_matches(|next| is_blank(next) || matches!(next, '"' | '\'' | '\\' | '[')))
}

/// Reads an amount with units, or a bare number by its field's unit. A wait below zero is none.
fn timed(value: &str, bare: fn(Number) -> Duration) -> Option<Duration> {
    let (negative, value) = value.strip_prefix('-').map_or((false, value), |value| (true, value));
    let wait = match amount::read(value) {
        Some((wait, _)) => wait,
        None => {
            let (number, rest) = Number::read(value)?;
            let goes_on = rest
                .starts_with(|next: char| next.is_alphanumeric() || matches!(next, '-' | '/' | ':' | '%'));
            Some(bare(number)).filter(|_| !goes_on)?
        }
    };
    Some(if negative { Duration::ZERO } else { wait })
}

/// Reads a date and returns the time until then.
fn until(value: &str, now: Option<UnixMillis>) -> Option<Duration> {
    let then = when::rfc3339(value).or_else(|| when::http_date(value))?;
    Some(Duration::from_millis(then.saturating_sub(now?)))
}

/// Reads `{ seconds: 34 nanos: 74824224 }`, over line ends as well.
fn block(rest: &str) -> Option<Duration> {
    let inside = head(rest).trim_start_matches(['"', ':', ' ']).strip_prefix('{')?;
    let inside = inside.split('}').next()?;
    let number = |name: &str| {
        let (_, rest) = inside.split_once(name)?;
        Some(Number::read(value(rest)?)?.0)
    };
    let nanos = number("nanos").map_or(Duration::ZERO, |nanos| Duration::from_nanos(nanos.whole));
    Some(number("seconds")?.seconds().saturating_add(nanos))
}

/// Reads a field such as `x-ratelimit-reset-requests` from its word `reset` on.
fn reset(before: &str, rest: &str, now: Option<UnixMillis>) -> Option<Duration> {
    let (before, rest) = (tail(before, NEAR), head(rest));
    let name = &before[before.trim_end_matches(is_name).len()..];
    let is_limit =
        ["ratelimit", "rate-limit", "rate_limit"].iter().any(|limit| contains_ignoring_case(name, limit));
    if !is_limit {
        return None;
    }
    let after_name = rest.trim_start_matches(is_name);
    let suffix = &rest[..rest.len() - after_name.len()];
    let value = value(after_name)?;
    if let Some(wait) = until(value, now) {
        return Some(wait);
    }
    match since_1970(value) {
        Some(then) => Some(Duration::from_millis(then.saturating_sub(now?))),
        None if suffix.ends_with("ms") => timed(value, Number::millis),
        None => timed(value, Number::seconds),
    }
}

/// Reads a count of seconds or milliseconds since 1970. No server's window is thirty years long: a number of that size is one.
fn since_1970(value: &str) -> Option<UnixMillis> {
    match Number::read(value)?.0.whole {
        seconds @ 1_000_000_000..1_000_000_000_000 => Some(seconds * 1_000),
        millis @ 1_000_000_000_000.. => Some(millis),
        ..1_000_000_000 => None,
    }
}

/// Reads the moment that follows, and returns the time until then.
fn moment(rest: &str, clock: Clock) -> Option<Duration> {
    let rest = head(rest);
    let value = value(rest).or_else(|| rest.strip_prefix('|')).unwrap_or(rest).trim_start_matches(is_blank);
    let dated = || when::rfc3339(value).or_else(|| when::http_date(value));
    let then = since_1970(value).or_else(dated).or_else(|| wall::moment(value, clock))?;
    Some(Duration::from_millis(then.saturating_sub(clock.now)))
}

/// Reads `RateLimit: "default";r=0;t=30` and the older `RateLimit: limit=100, remaining=0, reset=30`. While something
/// remains, nothing needs to be waited for.
fn parameters(rest: &str) -> Option<Duration> {
    let line = head(rest).trim_start_matches(['"', '\'']).strip_prefix(':')?.lines().next()?;
    let number = |names: [&str; 2]| {
        line.split([';', ',']).find_map(|parameter| {
            let (name, value) = parameter.trim().split_once('=')?;
            names.contains(&name).then(|| Number::read(value)).flatten()
        })
    };
    let remains = number(["r", "remaining"]).is_some_and(|(number, _)| number.whole > 0);
    number(["t", "reset"]).filter(|_| !remains).map(|(number, _)| number.seconds())
}

/// Reads the amount that follows a sentence's words.
fn then(before: &str, rest: &str) -> Option<Duration> {
    is_advice(before).then(|| amount::read(skip_fillers(rest))).flatten().map(|(wait, _)| wait)
}

/// Reads `retry after 35` where nothing follows, so that the number counts nothing else.
fn closing_seconds(before: &str, rest: &str) -> Option<Duration> {
    let (number, after) = Number::read(rest.trim_start_matches(is_blank))?;
    let ends = after.trim_start_matches(['.', '"', '\'', ')', '}']).trim_start_matches(is_blank);
    let closes = ends.is_empty() || ends.starts_with(['\n', '\r', ',']);
    (closes && is_advice(before)).then(|| number.seconds())
}

/// Reads the amount that ends where a sentence's words begin.
fn amount_before(before: &str) -> Option<Duration> {
    const LONGEST: usize = 48;
    let tail = tail(before.trim_end(), LONGEST);
    let starts_number = |at: &usize| {
        let (left, right) = tail.split_at(*at);
        right.starts_with(|next: char| next.is_ascii_digit())
            && !left.ends_with(|last: char| last.is_ascii_alphanumeric() || last == '.')
    };
    let mut starts = (0..tail.len()).filter(|at| tail.is_char_boundary(*at)).filter(starts_number);
    starts.find_map(|at| amount::read(&tail[at..]).filter(|(_, rest)| rest.is_empty()).map(|(wait, _)| wait))
}

fn skip_fillers(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(after) =
        FILLERS.iter().find_map(|word| match word.ends_with(|last: char| last.is_ascii_alphabetic()) {
            true => strip_word(rest, word),
            false => rest.strip_prefix(word),
        })
    {
        rest = after.trim_start();
    }
    rest
}

/// Says whether a sentence that goes on after `before` is advice, and not code, an option, or a program's own plan.
fn is_advice(before: &str) -> bool {
    if before.ends_with(|last: char| is_name(last) || matches!(last, '.' | '/' | '$' | '@')) {
        return false;
    }
    let before = before.trim_end();
    !NOT_ADVICE.iter().any(|word| {
        let at = before.len().saturating_sub(word.len());
        let own_word = || word.contains('\'') || !before[..at].ends_with(is_name);
        before.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(word)) && own_word()
    })
}

/// Returns the start of a text, as far as anything there can belong to the words before it.
fn head(text: &str) -> &str {
    &text[..text.floor_char_boundary(NEAR)]
}

/// Returns the last `most` bytes of a text, or a little less where a character would be cut.
fn tail(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

fn stands_alone(before: &str) -> bool {
    !before.ends_with(is_name)
}

fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_')
}

fn contains_ignoring_case(text: &str, word: &str) -> bool {
    text.as_bytes().windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}
