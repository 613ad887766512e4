//! Successes that are none: a command exits with 0, and what it printed says that it did not do its work. A table of few and
//! certain signs (`rules/suspicions.toml`), and one reader that looks for those of the programs that run.
//!
//! It must never speak up on ordinary output: a sign counts only for the programs that are known to give it, and only where
//! all that they print is seen. It decides nothing; whoever asks makes a failed check of it.

mod json;
mod row;
#[cfg(test)]
mod tests;

use memchr::{memchr, memmem};
use regex_lite::Regex;

pub use json::{Expected, JsonEnd, JsonText};

use crate::reading::without_escapes;
use crate::rules::Stream;
use crate::shell::{Command, Join, ParsedCall, Role, Script};
use crate::{Call, Lang};
pub use row::CUT_JSON;
use row::{ROWS, Row, Sign};

/// Of a longer line only the beginning is looked at.
const LINE_MAX: usize = 4 * 1024;
/// An error page says what it is within so many bytes.
const PAGE_MAX: usize = 16 * 1024;
/// An answer that is longer than this is not looked at for its end.
const JSON_MAX: u64 = 64 << 20;
/// So much of the end of an answer is quoted.
const TAIL: usize = 60;
/// What of a line is quoted.
const QUOTE_MAX: usize = 200;

/// Why a success may be none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspicion {
    row: &'static Row,
    /// The line that shows it.
    pub evidence: String,
}

impl Suspicion {
    /// The name of the sign.
    pub fn id(&self) -> &'static str {
        self.row.id
    }

    /// What it means, as half a sentence.
    pub fn why(&self, lang: Lang) -> &'static str {
        self.row.why[lang as usize]
    }
}

/// Reads the output of a call and looks for signs that its success is none.
#[derive(Debug)]
pub struct Watch {
    looks: Vec<Look>,
    /// The beginnings of lines whose end has not come yet, of each stream.
    open: [Vec<u8>; 3],
}

/// What is known of one sign.
#[derive(Debug)]
struct Look {
    row: &'static Row,
    seen: Seen,
}

#[derive(Debug)]
enum Seen {
    Lines { bad: Regex, good: Option<Regex>, found: Option<String>, is_good: bool },
    Page { begin: Vec<u8> },
    Json { text: JsonText, tail: Vec<u8> },
}

impl Watch {
    /// Looks for the signs of the programs that a call runs. Of most calls there is nothing to look for, and reading costs
    /// nothing then.
    pub fn of(call: &Call) -> Watch {
        let script = ParsedCall::of(call).script.unwrap_or_default();
        let answers = answering(&script);
        let concerns = |row: &&'static Row| match row.sign {
            Sign::Lines { .. } => {
                script.commands().iter().filter(is_seen).any(|command| row.is_about(command))
            }
            Sign::ErrorPage | Sign::CutJson => answers.is_some_and(|command| row.is_about(command)),
        };
        Watch {
            looks: ROWS.iter().filter(concerns).filter_map(Look::new).collect(),
            open: Default::default(),
        }
    }

    /// Looks for nothing.
    pub fn none() -> Watch {
        Watch { looks: Vec::new(), open: Default::default() }
    }

    /// Reads the next piece of a stream.
    pub fn feed(&mut self, stream: Stream, bytes: &[u8]) {
        if self.looks.is_empty() {
            return;
        }
        if stream != Stream::Stderr {
            self.looks.iter_mut().for_each(|look| look.hear(bytes));
        }
        if !self.looks.iter().any(|look| matches!(look.seen, Seen::Lines { .. })) {
            return;
        }
        let mut rest = bytes;
        while let Some(end) = memchr(b'\n', rest) {
            let mut line = std::mem::take(&mut self.open[stream as usize]);
            grow(&mut line, &rest[..end]);
            self.looks.iter_mut().for_each(|look| look.read(&line));
            rest = &rest[end + 1..];
        }
        grow(&mut self.open[stream as usize], rest);
    }

    /// What speaks against a success, now that everything was read.
    pub fn conclude(mut self) -> Option<Suspicion> {
        for line in std::mem::take(&mut self.open) {
            self.looks.iter_mut().for_each(|look| look.read(&line));
        }
        self.looks.into_iter().find_map(Look::conclude)
    }
}

/// Whether what a call prints is what a server answered, and nothing else.
pub fn is_fetched(call: &Call) -> bool {
    let script = ParsedCall::of(call).script.unwrap_or_default();
    answering(&script).is_some_and(row::is_fetcher)
}

/// The one command whose output is all that is seen.
fn answering(script: &Script) -> Option<&Command> {
    let is_alone = script.commands().iter().all(|one| one.then != Join::Always);
    script.last().filter(is_seen).filter(|_| is_alone)
}

/// What is piped on or written to a file is not seen, or not all of it.
fn is_seen(command: &&Command) -> bool {
    let is_elsewhere = command.redirections.iter().any(|to| to.writes_file());
    let is_run = !matches!(command.role, Role::Defined | Role::Inner);
    is_run && command.then != Join::Pipe && !is_elsewhere
}

impl Look {
    fn new(row: &'static Row) -> Option<Look> {
        let seen = match &row.sign {
            Sign::Lines { bad, good, .. } => Seen::Lines {
                bad: Regex::new(bad).ok()?,
                good: good.map(Regex::new).transpose().ok()?,
                found: None,
                is_good: false,
            },
            Sign::ErrorPage => Seen::Page { begin: Vec::new() },
            Sign::CutJson => Seen::Json { text: JsonText::default(), tail: Vec::new() },
        };
        Some(Look { row, seen })
    }

    /// Hears the next bytes of an answer.
    fn hear(&mut self, bytes: &[u8]) {
        match &mut self.seen {
            Seen::Lines { .. } => {}
            Seen::Page { begin } => {
                let room = PAGE_MAX - begin.len();
                begin.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Seen::Json { text, .. } if text.is_broken() || text.read() > JSON_MAX => {}
            Seen::Json { text, tail } => {
                text.feed(bytes);
                tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
                tail.drain(..tail.len().saturating_sub(TAIL));
            }
        }
    }

    /// Reads one line.
    fn read(&mut self, line: &[u8]) {
        let (Seen::Lines { bad, good, found, is_good }, Sign::Lines { hints, .. }) =
            (&mut self.seen, &self.row.sign)
        else {
            return;
        };
        if *is_good || !hints.iter().any(|hint| memmem::find(line, hint.as_bytes()).is_some()) {
            return;
        }
        let line = String::from_utf8_lossy(&without_escapes(line)).trim_end().to_owned();
        *is_good = good.as_ref().is_some_and(|good| good.is_match(&line));
        if !*is_good && found.is_none() && bad.is_match(&line) {
            *found = Some(quoted(&line));
        }
    }

    fn conclude(self) -> Option<Suspicion> {
        let evidence = match self.seen {
            Seen::Lines { found, is_good, .. } => found.filter(|_| !is_good)?,
            Seen::Page { begin } => error_page(&begin)?,
            Seen::Json { text, tail } => {
                let is_cut = text.read() <= JSON_MAX && text.end() == JsonEnd::Cut;
                is_cut.then(|| quoted(&String::from_utf8_lossy(&tail)))?
            }
        };
        Some(Suspicion { row: self.row, evidence })
    }
}

/// The title of a page that tells of an error; of one without a title, its first heading.
fn error_page(begin: &[u8]) -> Option<String> {
    const OF_ERRORS: &str = concat!(
        r"(?i)^(?:error|http)?[:\s]*[45]\d\d(?:$|[\s:|(\-]+(?:error|bad|not|service|server|gateway|internal|forbidden",
        r"|unauthori[sz]ed|too many|request|method|unavailable|payload|conflict|gone|temporarily))",
        r"|^(?:bad gateway|service (?:temporarily )?unavailable|gateway time-?out|internal server error",
        r"|too many requests|access denied|just a moment\.\.\.|attention required!)",
        r"|^(?:not found|forbidden|unauthorized|error)$",
    );
    let text = String::from_utf8_lossy(begin);
    let page = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    let starts = |start: &str| page.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    if !["<!doctype html", "<html", "<head"].into_iter().any(starts) {
        return None;
    }
    let words_in = |tag: &str| {
        let found = Regex::new(&format!(r"(?is)<{tag}[^>]*>\s*([^<]{{1,200}}?)\s*</{tag}>")).ok()?;
        Some(found.captures(page)?.get(1)?.as_str())
    };
    let words = words_in("title").or_else(|| words_in("h1"))?;
    Regex::new(OF_ERRORS).ok()?.is_match(words).then(|| quoted(words))
}

/// Adds to a line as long as it is not too long.
fn grow(line: &mut Vec<u8>, bytes: &[u8]) {
    let room = LINE_MAX.saturating_sub(line.len());
    line.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

fn quoted(line: &str) -> String {
    line.trim().chars().take(QUOTE_MAX).collect()
}
