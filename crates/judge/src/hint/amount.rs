//! Amounts of time as servers and people write them: `6m0.5s`, `985.86µs`, `1 minute and 30 seconds`, `30 秒`.

use std::time::Duration;

const NANO: u64 = 1;
const MICRO: u64 = 1_000;
const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Units and their nanoseconds. A unit that begins with another one stands before it.
const UNITS: &[(&str, u64)] = &[
    ("nanoseconds", NANO),
    ("nanosecond", NANO),
    ("ns", NANO),
    ("microseconds", MICRO),
    ("microsecond", MICRO),
    ("us", MICRO),
    ("\u{b5}s", MICRO),
    ("\u{3bc}s", MICRO),
    ("milliseconds", MILLI),
    ("millisecond", MILLI),
    ("millisekunden", MILLI),
    ("millisecondes", MILLI),
    ("millis", MILLI),
    ("msecs", MILLI),
    ("msec", MILLI),
    ("ms", MILLI),
    ("毫秒", MILLI),
    ("ミリ秒", MILLI),
    ("seconds", SECOND),
    ("secondes", SECOND),
    ("seconde", SECOND),
    ("second", SECOND),
    ("sekunden", SECOND),
    ("sekunde", SECOND),
    ("secs", SECOND),
    ("sec", SECOND),
    ("sek", SECOND),
    ("s", SECOND),
    ("秒钟", SECOND),
    ("秒鐘", SECOND),
    ("秒間", SECOND),
    ("秒", SECOND),
    ("minutes", MINUTE),
    ("minuten", MINUTE),
    ("minute", MINUTE),
    ("mins", MINUTE),
    ("min", MINUTE),
    ("m", MINUTE),
    ("分钟", MINUTE),
    ("分鐘", MINUTE),
    ("分間", MINUTE),
    ("分", MINUTE),
    ("hours", HOUR),
    ("hour", HOUR),
    ("heures", HOUR),
    ("heure", HOUR),
    ("stunden", HOUR),
    ("stunde", HOUR),
    ("std", HOUR),
    ("hrs", HOUR),
    ("hr", HOUR),
    ("h", HOUR),
    ("个小时", HOUR),
    ("小时", HOUR),
    ("小時", HOUR),
    ("時間", HOUR),
    ("days", DAY),
    ("day", DAY),
    ("jours", DAY),
    ("jour", DAY),
    ("tagen", DAY),
    ("tage", DAY),
    ("tag", DAY),
    ("d", DAY),
    ("天", DAY),
    ("日", DAY),
];

/// Words that mean one.
const ONE: &[&str] = &["a", "an", "one", "einer", "une"];

/// What may stand between the parts of one amount.
const JOINTS: &[&str] = &["and", "und", "et"];

/// A number without a sign: its whole part, and its fraction in billionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number {
    pub whole: u64,
    pub billionths: u32,
}

impl Number {
    /// Reads the number at the start of `text` and returns what follows it. One that does not fit is as large as can be.
    pub fn read(text: &str) -> Option<(Number, &str)> {
        let (digits, rest) = split_digits(text);
        if digits.is_empty() {
            return None;
        }
        let whole = digits.parse().unwrap_or(u64::MAX);
        let (fraction, after) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        if fraction.is_empty() {
            return Some((Number { whole, billionths: 0 }, rest));
        }
        let nine = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
        let billionths = nine.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
        Some((Number { whole, billionths }, after))
    }

    /// Returns this many units of `nanos` nanoseconds.
    fn times(self, nanos: u64) -> Duration {
        let whole = u128::from(self.whole) * u128::from(nanos);
        let fraction = u128::from(self.billionths) * u128::from(nanos) / 1_000_000_000;
        Duration::from_nanos(u64::try_from(whole + fraction).unwrap_or(u64::MAX))
    }

    /// Returns this many seconds.
    pub fn seconds(self) -> Duration {
        self.times(SECOND)
    }

    /// Returns this many milliseconds.
    pub fn millis(self) -> Duration {
        self.times(MILLI)
    }
}

/// Reads an amount with its units at the start of `text` and returns what follows it.
pub(crate) fn read(text: &str) -> Option<(Duration, &str)> {
    let (mut total, mut rest) = part(text).or_else(|| one(text))?;
    while let Some((more, after)) = part(joint(rest)) {
        total = total.saturating_add(more);
        rest = after;
    }
    Some((total, rest))
}

fn part(text: &str) -> Option<(Duration, &str)> {
    let (number, rest) = Number::read(text)?;
    let (nanos, rest) = unit(rest.trim_start_matches(is_blank))?;
    Some((number.times(nanos), rest))
}

/// Reads `a minute` or `an hour`.
fn one(text: &str) -> Option<(Duration, &str)> {
    let rest = ONE.iter().find_map(|word| strip_word(text, word))?;
    let (nanos, rest) = unit(rest.trim_start())?;
    Some((Duration::from_nanos(nanos), rest))
}

fn unit(text: &str) -> Option<(u64, &str)> {
    UNITS.iter().find_map(|(word, nanos)| {
        let rest = strip_ignoring_case(text, word)?;
        let ends =
            !word.is_ascii() || !rest.starts_with(|next: char| next.is_alphabetic() && next.is_ascii());
        ends.then_some((*nanos, rest))
    })
}

fn joint(text: &str) -> &str {
    let rest = text.trim_start_matches([' ', ',']);
    JOINTS.iter().find_map(|word| strip_word(rest, word)).map_or(rest, str::trim_start)
}

/// Takes a whole word from the start of `text`, whatever its case.
pub(super) fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    strip_ignoring_case(text, word).filter(|rest| rest.starts_with(char::is_whitespace))
}

/// Takes `word` from the start of `text`; the case of ASCII letters does not matter.
pub(super) fn strip_ignoring_case<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(word.len())?;
    start.eq_ignore_ascii_case(word).then_some(rest)
}

/// Says whether a character is a blank inside a line.
pub(super) fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\u{a0}' | '\u{3000}')
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}
