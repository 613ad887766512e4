//! Weighs what was found in an output against how the call ended, and names one cause.
//!
//! A cause is only named with a rule that fired and the line that shows it. Where no rule fires the answer is `unknown`.

use crate::call::{Call, Observation, Outcome};
use crate::hint::{Hint, HintSource};
use crate::kind::{Kind, Stage, vocabulary};
use crate::reading::{Findings, Found, Reading, Seen, Span, telling};
use crate::rules::{Rule, Shape, Stream, Table, Words, same_name};
use crate::shell::{self, Asks, Command, Script};
use crate::verdict::{Effect, FixBy};

/// The remedy for a refused connection on this machine.
const NOTHING_LISTENS: &str = "nothing-listens";

/// The rule of a success that a check denies. Such failures are counted by it, whatever their cause turns out to be.
pub const DENIED_BY_CHECK: &str = "check.failed";

vocabulary! {
    /// How well it is proven that a call failed.
    Proof {
        /// The host says so: a non-zero exit code, an exception, a time limit.
        Proven = "proven",
        /// Nobody shows the exit code of the program that failed, and its own unmistakable words stand in the output.
        Signed = "signed",
        /// Words of the output sound like a failure, and nothing else speaks for one.
        Suspected = "suspected",
    }
}

/// A cause, and how it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnosis {
    /// The cause.
    pub kind: Kind,
    /// Where on its way the call failed; `None` where it did not fail.
    pub stage: Option<Stage>,
    /// How sure it is, between 0 and 1.
    pub confidence: f32,
    /// The rule that fired; empty where none did.
    pub rule: String,
    /// The line that shows it.
    pub evidence: Option<Found>,
    /// What the failure is about, as the rule read it from the evidence: a file, a program, a module. Words of an output: they
    /// stand in a sentence only as [`Diagnosis::named`] gives them.
    pub subject: Option<String>,
    /// The shape that the rule expects of `subject`.
    pub shape: Shape,
    /// May the same call work later by itself?
    pub transient: bool,
    /// Who can fix it, where waiting does not.
    pub fix_by: FixBy,
    /// What the call has done, where the rule knows.
    pub effect: Option<Effect>,
    /// How long the other side asks to wait.
    pub hint: Option<Hint>,
    /// Keys of remedies.
    pub advice: Vec<String>,
    /// How well it is proven that the call failed; of no meaning where it did not.
    pub proof: Proof,
    /// The cause lies in a service or on another machine.
    pub is_elsewhere: bool,
}

impl Diagnosis {
    /// Did the call go well? `None` while the cause is unknown or the failure is only suspected.
    pub fn ok(&self) -> Option<bool> {
        match (self.kind, self.proof) {
            (Kind::NotAnError, _) => Some(true),
            (Kind::Unknown, _) | (_, Proof::Suspected) => None,
            (_, Proof::Proven | Proof::Signed) => Some(false),
        }
    }
}

/// All rules, the user's before the built-in ones.
#[derive(Debug)]
pub struct Rules {
    tables: Vec<Table>,
}

impl Rules {
    /// The rules that come with the program, and nothing else.
    pub fn built_in() -> Rules {
        Rules { tables: vec![Table::built_in()] }
    }

    /// Puts a user's rules before all others.
    pub fn put_first(&mut self, table: Table) {
        self.tables.insert(0, table);
    }

    /// The tables in the order in which they are asked.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// Starts to read the output of a call.
    pub fn read(&self) -> Reading<'_> {
        Reading::new(&self.tables)
    }

    /// Diagnoses a call whose output is at hand.
    pub fn diagnose(&self, observation: &Observation) -> Diagnosis {
        let mut reading = self.read();
        reading.feed(Stream::Stdout, &observation.stdout);
        reading.feed(Stream::Stderr, &observation.stderr);
        reading.feed(Stream::Merged, &observation.merged);
        self.conclude(reading, &observation.call, observation.outcome, observation.http_status)
    }

    /// Diagnoses a call whose output has been read.
    pub fn conclude(
        &self,
        reading: Reading<'_>,
        call: &Call,
        outcome: Outcome,
        status: Option<u16>,
    ) -> Diagnosis {
        let seen = reading.close();
        let line = shell::line(call);
        let script = line.as_deref().map(Script::parse);
        let reported = status.is_some_and(|status| status >= 400);
        let status = status.or_else(|| written_status(line.as_deref()?, seen.last_line.as_ref()?));
        let case = Case { call, line: line.as_deref(), script, outcome, status, reported, seen: &seen };
        for (table, findings) in self.tables.iter().zip(&seen.findings) {
            if let Some(diagnosis) = case.best(table, findings) {
                return diagnosis;
            }
        }
        case.unexplained()
    }
}

/// One call as a whole, with everything that is known of it.
struct Case<'a> {
    call: &'a Call,
    line: Option<&'a str>,
    script: Option<Script>,
    outcome: Outcome,
    status: Option<u16>,
    /// The host itself reported a status that is an error.
    reported: bool,
    seen: &'a Seen,
}

impl Case<'_> {
    /// Picks the strongest rule of a table that fits this case.
    fn best(&self, table: &Table, findings: &Findings) -> Option<Diagnosis> {
        let mut best: Option<(i32, Rule<'_>, Option<&Span>)> = None;
        let proven = findings.rules.iter().map(|(number, span)| (table.rule(*number), Some(span)));
        for (rule, span) in proven.chain(table.textless().map(|rule| (rule, None))) {
            // Of a call that says it went well this leaves out nearly all of them, and costs least.
            if !rule.zero() && !self.may_have_failed(rule, span) {
                continue;
            }
            if self.only_shows(table, rule, span) {
                continue;
            }
            let weight = self.weight(rule, span);
            let better = match &best {
                None => true,
                Some((than, ..)) if weight != *than => weight > *than,
                Some((_, _, other)) => earlier(span, *other),
            };
            // In this order: to find out whether a rule fits may cost a regular expression, and most would lose anyway.
            if better && self.fits(findings, rule) {
                best = Some((weight, rule, span));
            }
        }
        best.map(|(_, rule, span)| self.explain(table, findings, rule, span))
    }

    /// Does what the rule asks of the whole call hold?
    fn fits(&self, findings: &Findings, rule: Rule<'_>) -> bool {
        let exits = || match self.code() {
            Some(code) => rule.exits().any(|exit| exit == code),
            // Words of success are believed unless something speaks against them.
            None => {
                rule.kind() == Kind::NotAnError
                    && !rule.any().is_empty()
                    && self.outcome.said_ok() != Some(false)
                    && rule.exits().any(|exit| exit == 0)
            }
        };
        let statuses =
            || self.status.is_some_and(|status| rule.statuses().any(|wanted| is_status(wanted, status)));
        (rule.exits().next().is_none() || exits())
            && (rule.statuses().next().is_none() || statuses())
            && (rule.outcomes().is_empty() || rule.outcomes().iter().any(|word| word == self.outcome.word()))
            && (rule.tools().is_empty() || rule.tools().iter().any(|name| same_name(name, &self.call.tool)))
            && (rule.programs().is_empty() || self.runs(rule.programs()))
            && (rule.last().is_empty() || self.ends_in(rule.last()))
            && (rule.with().is_empty() || rule.with().numbers().any(|pattern| findings.has(pattern)))
            && !rule.without().numbers().any(|pattern| findings.has(pattern))
            && (!rule.silent() || self.is_silent())
            && (rule.command().is_empty()
                || self.line.is_some_and(|line| rule.command().any_in(line, &line.to_ascii_lowercase())))
    }

    /// An exit code of 0 stands, unless the command line hides the code of what matters. What a look shows is content and
    /// proves nothing, but for its own complaint.
    fn may_have_failed(&self, rule: Rule<'_>, span: Option<&Span>) -> bool {
        let hides = |script: &Script| {
            script.hidden_workers().next().is_some()
                || self.is_complaint(script, rule, span)
                || self.is_own_form(script, rule, span)
        };
        self.outcome.said_ok() != Some(true)
            || rule.kind() == Kind::NotAnError
            || self.status.is_some_and(|status| status >= 400)
            || (rule.rank() >= 40 && self.script.as_ref().is_some_and(hides))
    }

    /// Does a program of which nobody shows the exit code complain itself, as in `cat: x: No such file or directory`?
    fn is_complaint(&self, script: &Script, rule: Rule<'_>, span: Option<&Span>) -> bool {
        let Some(found) = span.map(|span| quoted(rule, span)) else { return false };
        let hidden = || script.commands().iter().filter(|command| command.hidden);
        hidden().any(|command| complains(&command.program, found))
            || found.stream == Stream::Stderr && hidden().next().is_some()
    }

    /// Does a program that only asks fail in a form of its very own? Of a check each finding is one; of another question only
    /// what its output begins with, for the rest is the answer.
    fn is_own_form(&self, script: &Script, rule: Rule<'_>, span: Option<&Span>) -> bool {
        let Some(span) = span.filter(|_| rule.rank() >= SPECIFIC) else { return false };
        let nobody_says = self.outcome.said_ok().is_none();
        let begins = || span.first.line <= FIRST_LINES && script.shows_beginning();
        let mut hidden = script.askers().filter(|(command, _)| nobody_says || command.hidden);
        hidden.any(|(command, asks)| {
            rule.is_named_by(&command.program)
                && (asks == Asks::Verdict || begins() && is_sentence(&span.first))
        })
    }

    /// How well is it proven that the call failed by this rule?
    fn proof(&self, rule: Rule<'_>, span: Option<&Span>, subject: Option<&str>) -> Proof {
        if self.outcome.said_ok() == Some(false) || self.reported {
            return Proof::Proven;
        }
        // What the line itself says in its end is not the program's.
        let last_words = self.script.as_ref().map_or(0, Script::last_words);
        let is_cut_short = |span: &Span| !self.seen.ends_with(quoted(rule, span), last_words);
        if rule.ends() && span.is_some_and(is_cut_short) {
            return Proof::Suspected;
        }
        let is_looked_for = matches!(rule.kind(), Kind::CommandNotFound | Kind::PathNotFound);
        let is_foreseen =
            |script: &Script| script.has_second_way() || is_looked_for && script.answers_for_failure();
        if self.script.as_ref().is_some_and(is_foreseen) {
            return Proof::Suspected;
        }
        // A client that was not told to fail did its work once it shows what the server answered.
        let is_an_answer = rule.elsewhere() && rule.is_form_of("curl") && !rule.kind().row().transient;
        if self.script.is_some() && is_an_answer {
            return Proof::Suspected;
        }
        let nobody_says = self.outcome.said_ok().is_none();
        let is_signed = match &self.script {
            None => rule.rank() >= SPECIFIC,
            Some(script) => {
                let mut hidden: Box<dyn Iterator<Item = &Command>> = match nobody_says {
                    true => Box::new(script.workers()),
                    false => Box::new(script.hidden_workers()),
                };
                let names_itself = |command: &Command| {
                    rule.rank() >= GENERAL
                        && span.is_some_and(|span| complains(&command.program, quoted(rule, span)))
                };
                // The shell names a program that the line calls: nothing else says so.
                let is_missing = |command: &Command| {
                    rule.kind() == Kind::CommandNotFound && subject == Some(command.program.as_str())
                };
                let signs = |command: &Command| {
                    rule.is_form_of(&command.program) || names_itself(command) || is_missing(command)
                };
                rule.zero()
                    || self.status.is_some_and(|status| status >= 400)
                    || hidden.any(signs)
                    || rule.rank() >= SPECIFIC && self.is_complaint(script, rule, span)
                    || self.is_own_form(script, rule, span)
            }
        };
        if is_signed { Proof::Signed } else { Proof::Suspected }
    }

    /// Where no exit code vouches for its words, an entry of a list, a table or a log is content, and so is a sentence that
    /// uses the words somewhere in its course.
    fn only_shows(&self, table: &Table, rule: Rule<'_>, span: Option<&Span>) -> bool {
        let shows = |span: &Span, found: &Found| {
            let place = || table.place(span.pattern, &found.text, &found.text.to_ascii_lowercase());
            let in_passing = || place().is_some_and(|place| !found.complains_at(place));
            found.is_entry() || (!rule.speaks_for().is_empty() && in_passing())
        };
        self.script.is_some()
            && self.outcome.said_ok() != Some(false)
            && rule.kind() != Kind::NotAnError
            && span.is_some_and(|span| shows(span, &span.first) && shows(span, &span.last))
    }

    fn weight(&self, rule: Rule<'_>, span: Option<&Span>) -> i32 {
        let mut weight = i32::from(rule.rank()) * 10;
        if !rule.programs().is_empty() || !rule.last().is_empty() || !rule.tools().is_empty() {
            weight += 30;
        }
        if let Some(found) = span.map(|span| quoted(rule, span)) {
            if found.stream == Stream::Stderr {
                weight += 20;
            }
            let lower = found.text.to_ascii_lowercase();
            if lower.starts_with("warn") || lower.contains("warning:") || lower.contains("[warn") {
                weight -= 200;
            }
        }
        weight
    }

    fn explain(&self, table: &Table, findings: &Findings, rule: Rule<'_>, span: Option<&Span>) -> Diagnosis {
        let shown = rule.show().numbers().find_map(|pattern| findings.patterns.get(&pattern));
        // Where the program alone knows what went wrong, its last words are what a person would quote.
        let telling = || self.seen.telling_line.clone();
        let last_words = || telling().filter(|_| rule.kind() == Kind::Logical);
        let evidence = shown.or(span).map(|span| quoted(rule, span).clone()).or_else(last_words);
        // What only repeats that something failed is worth less than what complains before it.
        let repeats = |found: &Found| rule.rank() < 40 && !telling::says_something(&found.text);
        let evidence = match telling() {
            Some(better) if telling::complains(&better.text) && evidence.as_ref().is_some_and(repeats) => {
                Some(better)
            }
            Some(_) | None => evidence,
        };
        let subject_of = |span: &Span| {
            let line = &quoted(rule, span).text;
            let subject = table.subject(span.pattern, line, &line.to_ascii_lowercase())?;
            Some(subject.trim_matches(['\'', '"', '`', '‘', '’', '“', '”']).to_owned())
        };
        let elsewhere =
            || rule.any().numbers().find_map(|number| subject_of(findings.patterns.get(&number)?));
        let subject = span.and_then(|span| subject_of(span).or_else(elsewhere));
        let row = rule.kind().row();
        let local = self.is_local(rule, evidence.as_ref());
        let proof = self.proof(rule, span, subject.as_deref());
        // What says that it went well, and is only suspected of the contrary, needs no repeat.
        let went_well = proof == Proof::Suspected && self.outcome.said_ok() == Some(true);
        let transient = rule.transient().unwrap_or(row.transient && !local) && !went_well;
        let fix_by = match (rule.fix_by(), row.fix_by) {
            (Some(said), _) => said,
            // What heals by waiting elsewhere needs a change here.
            (None, FixBy::Wait) if !transient => FixBy::Environment,
            (None, usual) => usual,
        };
        let advice = match rule.advice().is_empty() {
            false => rule.advice().iter().map(str::to_owned).collect(),
            true if local => vec![NOTHING_LISTENS.to_owned()],
            true => row.advice.iter().map(|key| (*key).to_owned()).collect(),
        };
        Diagnosis {
            kind: rule.kind(),
            stage: self.stage(rule.kind()),
            confidence: f32::from(rule.rank().clamp(30, 99)) / 100.0,
            rule: rule.id().to_owned(),
            evidence: evidence.filter(|_| rule.kind() != Kind::NotAnError),
            subject,
            shape: rule.shape(),
            transient,
            fix_by,
            effect: rule.effect(),
            hint: self.seen.hint.filter(|hint| transient && applies(*hint, rule.kind())),
            advice,
            proof,
            is_elsewhere: rule.elsewhere(),
        }
    }

    /// Nothing that listens on this machine starts to listen by being asked again.
    fn is_local(&self, rule: Rule<'_>, evidence: Option<&Found>) -> bool {
        if rule.kind() != Kind::Network {
            return false;
        }
        let named = evidence.is_some_and(|found| names_loopback(&found.text));
        let asked = || {
            let hosts: Vec<String> = self.script.iter().flat_map(|script| script.url_hosts()).collect();
            !hosts.is_empty() && hosts.iter().all(|host| names_loopback(host))
        };
        named || asked()
    }

    /// No rule fired: what the ending alone allows to say.
    fn unexplained(&self) -> Diagnosis {
        let (kind, confidence) = match self.outcome {
            outcome if outcome.said_ok() == Some(true) => (Kind::NotAnError, 0.9),
            Outcome::TimedOut => (Kind::Timeout, 0.9),
            Outcome::Interrupted => (Kind::Aborted, 0.9),
            Outcome::Denied => (Kind::Permission, 0.6),
            Outcome::Succeeded
            | Outcome::Exited { .. }
            | Outcome::Signalled { .. }
            | Outcome::Rejected
            | Outcome::Threw
            | Outcome::ReportedFailure
            | Outcome::NoExitCode => (Kind::Unknown, 0.0),
        };
        let row = kind.row();
        Diagnosis {
            kind,
            stage: self.stage(kind),
            confidence,
            rule: String::new(),
            // The last words are what a person would look at next, even where they prove nothing.
            evidence: self.seen.telling_line.clone().filter(|_| kind == Kind::Unknown),
            subject: None,
            shape: Shape::Name,
            transient: false,
            fix_by: row.fix_by,
            effect: None,
            hint: None,
            advice: row.advice.iter().map(|key| (*key).to_owned()).collect(),
            proof: if self.outcome.said_ok() == Some(false) { Proof::Proven } else { Proof::Suspected },
            is_elsewhere: false,
        }
    }

    fn stage(&self, kind: Kind) -> Option<Stage> {
        match (kind, self.outcome) {
            (Kind::NotAnError, _) => None,
            (Kind::Timeout, Outcome::Exited { code: 124 | 137 | 143 }) => Some(Stage::TimedOut),
            (_, Outcome::Exited { .. } | Outcome::Signalled { .. }) => Some(Stage::Exited),
            (_, Outcome::TimedOut) => Some(Stage::TimedOut),
            (_, Outcome::Interrupted) => Some(Stage::Interrupted),
            (_, Outcome::Rejected | Outcome::Denied) => Some(Stage::Rejected),
            (_, Outcome::Threw) => Some(Stage::Threw),
            (_, Outcome::Succeeded | Outcome::ReportedFailure | Outcome::NoExitCode) => Some(Stage::Reported),
        }
    }

    /// The exit code as a shell would show it.
    fn code(&self) -> Option<i32> {
        match self.outcome {
            Outcome::Exited { code } => Some(code),
            Outcome::Signalled { signal } => Some(signal.saturating_add(128)),
            Outcome::Succeeded
            | Outcome::TimedOut
            | Outcome::Interrupted
            | Outcome::Rejected
            | Outcome::Threw
            | Outcome::ReportedFailure
            | Outcome::Denied
            | Outcome::NoExitCode => None,
        }
    }

    fn is_silent(&self) -> bool {
        let [_, stderr, merged] = self.seen.printed;
        !stderr && !merged
    }

    fn runs(&self, programs: Words<'_>) -> bool {
        let named = |program: &str| programs.iter().any(|name| same_name(name, program));
        self.script.as_ref().is_some_and(|script| script.programs().any(named))
    }

    fn ends_in(&self, programs: Words<'_>) -> bool {
        let last = self.script.as_ref().and_then(Script::last);
        last.is_some_and(|command| programs.iter().any(|name| same_name(name, &command.program)))
    }
}

/// The line that speaks for a rule, of those that matched it.
fn quoted<'s>(rule: Rule<'_>, span: &'s Span) -> &'s Found {
    if rule.quotes_last() { &span.last } else { &span.first }
}

/// Below this a rule knows the words of no program in particular.
const SPECIFIC: u8 = 60;
/// Below this it does not even know the words of the system.
const GENERAL: u8 = 40;

/// So many lines are the beginning of an output.
const FIRST_LINES: u64 = 2;

/// A row of a table has columns.
fn is_sentence(found: &Found) -> bool {
    let line = found.text.trim();
    let is_column = |at: usize| !line[..at].ends_with([':', '.']);
    !line.contains('\t') && !line.match_indices("  ").any(|(at, _)| is_column(at))
}

/// Is it the program itself that speaks, as in `cat: x: No such file or directory`?
fn complains(program: &str, found: &Found) -> bool {
    found.text.strip_prefix(program).is_some_and(|rest| rest.starts_with(": "))
}

fn earlier(one: Option<&Span>, other: Option<&Span>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.first.line < other.first.line,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// The end of a limit's window says something only to whoever ran into the limit; servers send it with every answer.
fn applies(hint: Hint, kind: Kind) -> bool {
    hint.source != HintSource::RateLimitReset || kind == Kind::RateLimited
}

/// The status that `curl -w '%{http_code}'` was asked to print at the end of the output.
fn written_status(line: &str, last: &Found) -> Option<u16> {
    let asked = line.contains("%{http_code}") || line.contains("%{response_code}");
    let text = last.text.trim_end();
    let digits = text.len() - text.trim_end_matches(|sign: char| sign.is_ascii_digit()).len();
    let status = text[text.len() - digits..].parse().ok()?;
    (asked && digits == 3 && (400..600).contains(&status)).then_some(status)
}

/// `5` stands for every 5xx.
fn is_status(wanted: u16, status: u16) -> bool {
    wanted == status || (wanted < 10 && wanted == status / 100)
}

/// Does the text name this machine: a loopback address, or a socket that is a file?
fn names_loopback(text: &str) -> bool {
    const LOCAL: [&str; 6] = ["localhost", "127.0.0.1", "::1", "0.0.0.0", "unix:", ".sock"];
    let lower = text.to_ascii_lowercase();
    LOCAL.iter().any(|name| lower.match_indices(name).any(|(start, _)| is_whole(&lower, start, name)))
}

/// A name that only goes on in a longer one is not meant: `::1` in `2001:db8::17`, `.sock` in `network.socket`.
fn is_whole(text: &str, start: usize, name: &str) -> bool {
    let goes_on = |next: Option<char>| next.is_some_and(|letter| letter.is_ascii_alphanumeric());
    let before = text[..start].chars().next_back();
    let after = text[start + name.len()..].chars().next();
    let opens = name.starts_with('.') || !(goes_on(before) || (name == "::1" && before == Some(':')));
    let closes = name.ends_with(':') || !goes_on(after);
    opens && closes
}

#[cfg(test)]
mod tests {
    use super::{names_loopback, written_status};
    use crate::reading::Found;
    use crate::rules::Stream;

    #[test]
    fn only_a_whole_loopback_name_or_a_socket_file_is_this_machine() {
        let check = |text: &str, local: bool| assert_eq!(names_loopback(text), local, "{text}");
        check("connect ECONNREFUSED 127.0.0.1:5432", true);
        check("connect ECONNREFUSED ::1:5432", true);
        check("http://[::1]:8080/", true);
        check("unix:///var/run/docker.sock", true);
        check("dial /run/app.sock: no such file or directory", true);
        check("Network.Socket.connect: timeout", false);
        check("Failed to connect to 2001:db8::17 port 80", false);
        check("no route to 10.0.0.0/8", false);
        check("mylocalhost.example.com", false);
    }

    #[test]
    fn a_status_is_read_only_where_curl_was_asked_to_write_one() {
        let check = |line: &str, last: &str, status: Option<u16>| {
            let found = Found { text: last.to_owned(), line: 1, stream: Stream::Stdout };
            assert_eq!(written_status(line, &found), status, "{line}: {last}");
        };
        check("curl -s -o /dev/null -w '%{http_code}' https://api.example.com", "429", Some(429));
        check("curl -s -w '%{http_code}' https://api.example.com", "{\"id\":7}503", Some(503));
        check("curl -s -w 'took %{time_total}' https://api.example.com", "429", None);
        check("curl -s -w '%{http_code}' https://api.example.com", "200", None);
        check("curl -s -w '%{http_code}' https://api.example.com", "id 20404", None);
        check("curl -s -w '%{http_code}' https://api.example.com", "größe", None);
    }
}
