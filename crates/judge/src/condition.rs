//! What can be looked at to see whether the cause of a failure still holds: a program on PATH, a path, a port, the files of a
//! project. A call is refused only where such a look, made at that moment, shows the same as when it failed. The look itself is
//! made elsewhere; here is only read which one it would be.

use std::path::Path;

use crate::Call;
use crate::diagnose::Diagnosis;
use crate::kind::{Kind, Stage};
use crate::ladder::{is_remote, needed_programs};
use crate::nature::Nature;
use crate::shell::{self, ParsedCall};

/// Names that are quoted in an output: so many are kept.
const QUOTED: usize = 16;
/// A longer name is none.
const LONGEST: usize = 300;
/// So much of an output is searched for names, from its start and from its end.
const SEARCHED: usize = 16 * 1024;
/// Below this a cause is a guess: its own place in the world is not known.
const SURE: f32 = 0.6;

/// What has to be as it was for the same call to fail again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// Nothing that can be looked at from here: a person, another machine or time decides, or nobody knows.
    Unseen,
    /// This program is not found.
    NoProgram(String),
    /// Nothing has this path.
    NoPath(String),
    /// Something has this path already.
    PathTaken(String),
    /// Nothing on this machine accepts connections on this port.
    PortClosed(u16),
    /// Something on this machine holds this port.
    PortTaken(u16),
    /// No file of the project has changed, nor one of these that the output quotes.
    SameFiles(Vec<String>),
    /// The same, and no package was installed.
    SamePackages(Vec<String>),
    /// No file that the arguments of a tool name has changed.
    SameNamed,
}

impl Condition {
    /// What has to be looked at before a call that failed by `diagnosis` is refused. `line` shows the cause, `text` is the whole
    /// output.
    pub fn of(call: &Call, diagnosis: &Diagnosis, line: &str, text: &str) -> Condition {
        let parsed = ParsedCall::of(call);
        let taken = taken_port(line).filter(|_| diagnosis.kind == Kind::ResourceBusy);
        if let Some(port) = taken {
            return Condition::PortTaken(port);
        }
        if diagnosis.transient || diagnosis.is_elsewhere {
            return Condition::Unseen;
        }
        // What a server of somebody else asks may lie anywhere; only that it did not understand its arguments depends on them.
        let is_ours = parsed.script.is_some() || !call.tool.starts_with("mcp__");
        let is_local = match &parsed.script {
            Some(script) => !is_remote(script),
            None => is_ours || diagnosis.kind == Kind::Validation,
        };
        let files = || match is_ours {
            true => Condition::SameFiles(quoted_files(text)),
            false => Condition::SameNamed,
        };
        match diagnosis.kind {
            Kind::CommandNotFound => no_program(&parsed, diagnosis, line),
            Kind::PathNotFound => match path_in(&parsed, diagnosis, line) {
                // Where a server keeps what has no place on a disk, nobody knows.
                Some(path) if !is_ours && !Path::new(&path).is_absolute() => Condition::Unseen,
                Some(path) if says_missing(line) || parsed.script.is_none() => Condition::NoPath(path),
                Some(_) | None
                    if is_local && diagnosis.confidence >= SURE && !is_elsewhere(call, diagnosis) =>
                {
                    files()
                }
                Some(_) | None => Condition::Unseen,
            },
            Kind::Conflict => match named_path(&parsed, diagnosis, line) {
                Some(path) if says_exists(line) => Condition::PathTaken(path),
                Some(_) | None if is_local => files(),
                Some(_) | None => Condition::Unseen,
            },
            Kind::Network if parsed.nature() != Nature::ReadOnly => {
                loopback_port(line).map_or(Condition::Unseen, Condition::PortClosed)
            }
            Kind::MissingDependency if is_local => Condition::SamePackages(quoted_files(text)),
            Kind::Validation if diagnosis.stage == Some(Stage::Rejected) => files(),
            Kind::CodeError
            | Kind::TestFailure
            | Kind::CheckFailed
            | Kind::Validation
            | Kind::ParseError
            | Kind::Crash
            | Kind::Logical
            | Kind::Unknown
                if is_local && !speaks_of_service(text) =>
            {
                files()
            }
            Kind::Network
            | Kind::Timeout
            | Kind::RateLimited
            | Kind::ServerError
            | Kind::ResourceBusy
            | Kind::Auth
            | Kind::Permission
            | Kind::MissingDependency
            | Kind::CodeError
            | Kind::TestFailure
            | Kind::CheckFailed
            | Kind::Validation
            | Kind::OutOfResources
            | Kind::ParseError
            | Kind::Aborted
            | Kind::Crash
            | Kind::Logical
            | Kind::NotAnError
            | Kind::Unknown => Condition::Unseen,
        }
    }

    /// The same where only the arguments of a tool tell what it works on; `is_here` where the tool runs in the very process that
    /// asks, and not behind a server.
    pub fn by_arguments(self, kind: Kind, is_here: bool) -> Condition {
        match (self, kind) {
            (kept @ (Condition::NoPath(_) | Condition::PathTaken(_)), _) => kept,
            (_, Kind::Validation) => Condition::SameNamed,
            (_, kind) if is_here => Condition::of_tool_here(kind),
            (_, _) => Condition::Unseen,
        }
    }

    fn of_tool_here(kind: Kind) -> Condition {
        match kind {
            Kind::PathNotFound
            | Kind::MissingDependency
            | Kind::CodeError
            | Kind::TestFailure
            | Kind::CheckFailed
            | Kind::Validation
            | Kind::Conflict
            | Kind::ParseError
            | Kind::Crash
            | Kind::Logical
            | Kind::CommandNotFound
            | Kind::Unknown => Condition::SameNamed,
            Kind::Network
            | Kind::Timeout
            | Kind::RateLimited
            | Kind::ServerError
            | Kind::ResourceBusy
            | Kind::Auth
            | Kind::Permission
            | Kind::OutOfResources
            | Kind::Aborted
            | Kind::NotAnError => Condition::Unseen,
        }
    }

    /// Is it the cause itself that is looked at, so that a look proves it?
    pub fn is_cause_itself(&self) -> bool {
        match self {
            Condition::NoProgram(_)
            | Condition::NoPath(_)
            | Condition::PathTaken(_)
            | Condition::PortClosed(_)
            | Condition::PortTaken(_) => true,
            Condition::Unseen
            | Condition::SameFiles(_)
            | Condition::SamePackages(_)
            | Condition::SameNamed => false,
        }
    }

    /// Can anything be looked at?
    pub fn is_seen(&self) -> bool {
        *self != Condition::Unseen
    }

    /// The names in it that come from an output, to be cleaned by whoever keeps them.
    pub fn names_mut(&mut self) -> &mut [String] {
        match self {
            Condition::NoProgram(name) | Condition::NoPath(name) | Condition::PathTaken(name) => {
                std::slice::from_mut(name)
            }
            Condition::SameFiles(names) | Condition::SamePackages(names) => names,
            Condition::Unseen | Condition::PortClosed(_) | Condition::PortTaken(_) | Condition::SameNamed => {
                &mut []
            }
        }
    }
}

/// Did something not reach a service? It may be up by now, whatever else the failure is.
fn speaks_of_service(text: &str) -> bool {
    let words = [
        "connection refused",
        "econnrefused",
        "connectionerror",
        "connection error",
        "failed to connect",
        "could not connect",
        "cannot connect",
        "enotfound",
        "name or service not known",
        "temporary failure in name resolution",
        "service unavailable",
    ];
    ends_of(text).into_iter().any(|part| says(part, &words))
}

/// May the thing that does not exist be another machine's, or a program's own: a page, a user, a database? Only a rule that
/// knows the program knows that it is the project's.
fn is_elsewhere(call: &Call, diagnosis: &Diagnosis) -> bool {
    let is_unknown = ["generic.", "http.", "db."].iter().any(|start| diagnosis.rule.starts_with(start));
    is_unknown || shell::line(call).is_some_and(|line| line.contains("://"))
}

fn no_program(parsed: &ParsedCall<'_>, diagnosis: &Diagnosis, line: &str) -> Condition {
    let subject = diagnosis.subject.as_deref().filter(|subject| is_name(subject));
    let called = || {
        let script = parsed.script.as_ref()?;
        let programs = needed_programs(script).into_iter();
        programs.map(str::to_owned).find(|program| names_word(line, program))
    };
    match subject.map(str::to_owned).or_else(called) {
        Some(path) if path.contains('/') => Condition::NoPath(path),
        Some(program) => Condition::NoProgram(program),
        None => Condition::Unseen,
    }
}

/// The path that does not exist: one that the call names and the error repeats, or one that the error alone names.
fn path_in(parsed: &ParsedCall<'_>, diagnosis: &Diagnosis, line: &str) -> Option<String> {
    named_path(parsed, diagnosis, line).or_else(|| {
        let subject = diagnosis.subject.clone().filter(|subject| looks_like_path(subject));
        subject.or_else(|| quoted_files(line).into_iter().next())
    })
}

/// A path that the call names and the error repeats; for a tool that takes a path it is that.
fn named_path(parsed: &ParsedCall<'_>, diagnosis: &Diagnosis, line: &str) -> Option<String> {
    let targets = parsed.targets();
    let said = |target: &&String| {
        let subject = diagnosis.subject.as_deref().unwrap_or_default();
        *target == subject || names_word(line, target)
    };
    match &parsed.script {
        Some(_) => targets.iter().filter(|target| is_name(target)).find(said).cloned(),
        None => targets.iter().find(|target| looks_like_path(target)).cloned(),
    }
}

fn says_exists(line: &str) -> bool {
    says(line, &["already exists", "file exists", "eexist"])
}

/// Is it a file that is missing, and not a branch, a package or a thing on another machine?
fn says_missing(line: &str) -> bool {
    let words = [
        "no such file",
        "enoent",
        "filenotfound",
        "file not found",
        "cannot find the file",
        "cannot find the path",
        "can't open",
        "cannot open",
        "could not open",
        "cannot access",
        "unable to read",
    ];
    says(line, &words)
}

fn says(line: &str, words: &[&str]) -> bool {
    let line = line.to_lowercase();
    words.iter().any(|words| line.contains(words))
}

/// Is it one plain name, as a program or a file has one?
fn is_name(text: &str) -> bool {
    let is_odd = |sign: char| sign.is_whitespace() || sign.is_control() || "*?$`\"'<>|;&(){}".contains(sign);
    !text.is_empty()
        && text.len() <= LONGEST
        && !text.starts_with('-')
        && !text.contains("://")
        && !text.contains(is_odd)
}

fn looks_like_path(text: &str) -> bool {
    is_name(text) && (text.contains('/') || has_extension(text))
}

/// `main.rs`, `conf.json`, `Makefile.am`: a dot with a short word behind it, which is not a number.
fn has_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, extension)| {
        stem.len() >= 2
            && (1..=6).contains(&extension.len())
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && extension.bytes().any(|byte| byte.is_ascii_alphabetic())
    })
}

/// Does the line hold this word as a whole?
fn names_word(line: &str, word: &str) -> bool {
    let is_part =
        |sign: Option<char>| sign.is_some_and(|sign| sign.is_alphanumeric() || sign == '_' || sign == '-');
    line.match_indices(word).any(|(at, _)| {
        !is_part(line[..at].chars().next_back()) && !is_part(line[at + word.len()..].chars().next())
    })
}

/// The port of this machine that a line names: `127.0.0.1:5432`, `localhost port 8080`, `[::1]:80`.
fn loopback_port(line: &str) -> Option<u16> {
    const NAMES: [&str; 5] = ["localhost", "127.0.0.1", "[::1]", "::1", "0.0.0.0"];
    let lower = line.to_ascii_lowercase();
    NAMES.iter().find_map(|name| {
        let rest = &lower[lower.find(name)? + name.len()..];
        let rest = rest.trim_start_matches(['"', '\'', ')', ',', ' ', ':']);
        let rest = rest.strip_prefix("(127.0.0.1)").unwrap_or(rest).trim_start_matches([' ', ',']);
        number_at(rest.strip_prefix("port ").unwrap_or(rest))
    })
}

/// The port that is taken: `EADDRINUSE: address already in use :::3000`, `port 8080 is already in use`.
fn taken_port(line: &str) -> Option<u16> {
    let lower = line.to_ascii_lowercase();
    if !(lower.contains("in use") || lower.contains("eaddrinuse") || lower.contains("already allocated")) {
        return None;
    }
    let after_port = lower.find("port ").and_then(|at| number_at(&lower[at + 5..]));
    let after_colon =
        || lower.match_indices(':').filter_map(|(at, _)| number_at(&lower[at + 1..])).next_back();
    after_port.or_else(after_colon)
}

fn number_at(text: &str) -> Option<u16> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let goes_on = text[end..].starts_with(|sign: char| sign.is_alphanumeric() || sign == '.');
    text[..end].parse().ok().filter(|port| *port > 0 && !goes_on)
}

/// The files that an output names, each once: `src/a.rs:3:7`, `File "x.py", line 3`, `at f (lib/b.js:9:1)`.
fn quoted_files(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let is_border = |sign: char| sign.is_whitespace() || "\"'`()[]{}<>,;|=".contains(sign);
    for word in ends_of(text).into_iter().flat_map(|part| part.split(is_border)) {
        let name = without_place(word.strip_prefix("file://").unwrap_or(word));
        if found.len() == QUOTED {
            break;
        }
        // The log of the very run is no cause of it.
        if name.len() >= 3
            && !name.ends_with(".log")
            && looks_like_path(name)
            && !found.iter().any(|known| known == name)
        {
            found.push(name.to_owned());
        }
    }
    found
}

/// The beginning and the end of a text, or all of it.
fn ends_of(text: &str) -> Vec<&str> {
    if text.len() <= 2 * SEARCHED {
        return vec![text];
    }
    let (head, tail) = (text.floor_char_boundary(SEARCHED), text.ceil_char_boundary(text.len() - SEARCHED));
    vec![&text[..head], &text[tail..]]
}

/// A name without the line and column behind it, and without the colon of a sentence.
fn without_place(word: &str) -> &str {
    let mut name = word.trim_end_matches([':', '.']);
    while let Some((before, number)) = name.rsplit_once(':') {
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        name = before;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Observation, Outcome, Rules};

    /// Checks what has to be looked at for a command that failed with these words.
    #[track_caller]
    fn check(line: &str, code: i32, prints: &str, expected: Condition) {
        let observation = Observation {
            call: Call::shell(line),
            outcome: Outcome::Exited { code },
            http_status: None,
            stdout: Vec::new(),
            stderr: prints.as_bytes().to_vec(),
            merged: Vec::new(),
        };
        let diagnosis = Rules::built_in().diagnose(&observation);
        let shown = diagnosis.evidence.as_ref().map_or("", |found| &*found.text);
        let condition = Condition::of(&observation.call, &diagnosis, shown, prints);
        assert_eq!(condition, expected, "{line}: {} {diagnosis:?}", diagnosis.kind);
    }

    fn files(names: &[&str]) -> Condition {
        Condition::SameFiles(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_missing_program_and_a_missing_path_are_looked_for_themselves() {
        check(
            "nope-tool --all",
            127,
            "bash: line 1: nope-tool: command not found",
            Condition::NoProgram("nope-tool".into()),
        );
        check(
            "./report.sh",
            127,
            "./report.sh: 3: plotwright: not found",
            Condition::NoProgram("plotwright".into()),
        );
        check(
            "cat src/core.py",
            1,
            "cat: src/core.py: No such file or directory",
            Condition::NoPath("src/core.py".into()),
        );
        check(
            "mkdir build",
            1,
            "mkdir: cannot create directory 'build': File exists",
            Condition::PathTaken("build".into()),
        );
    }

    #[test]
    fn code_is_looked_at_where_the_output_points_and_in_the_project() {
        check(
            "make",
            2,
            "src/deep/main.c:1:19: error: expected ';' before '}' token\nmake: *** [Makefile:2: all] Error 1",
            files(&["src/deep/main.c", "Makefile"]).no_makefile(),
        );
        check(
            "python3 app.py",
            1,
            "Traceback (most recent call last):\n  File \"app.py\", line 3, in <module>\n    x\nNameError: name 'x' is not defined",
            files(&["app.py"]),
        );
    }

    impl Condition {
        /// The name of a makefile has no extension, so it is not taken for a file of the output.
        fn no_makefile(self) -> Condition {
            match self {
                Condition::SameFiles(mut names) => {
                    names.retain(|name| name != "Makefile");
                    Condition::SameFiles(names)
                }
                other => other,
            }
        }
    }

    #[test]
    fn what_lies_elsewhere_is_never_looked_at() {
        for (line, prints) in [
            (
                "git push origin main",
                "git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.",
            ),
            ("gh pr create", "GraphQL: Validation Failed: A pull request already exists for o:b."),
            ("kubectl get pod web", "Error from server (NotFound): pods \"web\" not found"),
            (
                "curl -sf localhost:18333/health",
                "curl: (7) Failed to connect to localhost port 18333 after 0 ms: Couldn't connect to server",
            ),
            ("pip install nothere", "ERROR: No matching distribution found for nothere"),
            ("npm run migrate", "error: relation \"users\" does not exist"),
            ("python3 load.py", "psycopg2.OperationalError: FATAL:  database \"shop\" does not exist"),
            ("fetch http://localhost:3000/users/7", "fetch: 404 Not Found: no user 7"),
            ("db query", "db: no such database: shop"),
            (
                "pytest -q",
                "E   requests.exceptions.ConnectionError: HTTPConnectionPool(host='localhost', port=8999)\nFAILED t.py::test_home\n1 failed in 0.03s",
            ),
        ] {
            check(line, 1, prints, Condition::Unseen);
        }
    }

    #[test]
    fn a_path_of_a_server_is_looked_at_only_where_it_can_be_one_of_this_machine() {
        let check = |tool: &str, path: &str, expected: Condition| {
            let said = format!("File not found: {path}");
            let observation = Observation {
                call: Call::new(tool, serde_json::json!({ "path": path })),
                outcome: Outcome::ReportedFailure,
                http_status: None,
                stdout: Vec::new(),
                stderr: Vec::new(),
                merged: said.clone().into_bytes(),
            };
            let diagnosis = Rules::built_in().diagnose(&observation);
            assert_eq!(Condition::of(&observation.call, &diagnosis, &said, &said), expected, "{tool} {path}");
        };
        check("mcp__drive__read", "reports/11.csv", Condition::Unseen);
        check("mcp__filesystem__read", "/srv/11.csv", Condition::NoPath("/srv/11.csv".into()));
        check("read_file", "reports/11.csv", Condition::NoPath("reports/11.csv".into()));
    }

    #[test]
    fn ports_of_this_machine_are_found_in_an_error() {
        let check = |line: &str, closed: Option<u16>, taken: Option<u16>| {
            assert_eq!((loopback_port(line), taken_port(line)), (closed, taken), "{line}");
        };
        check("connect ECONNREFUSED 127.0.0.1:5432", Some(5432), None);
        check("Failed to connect to localhost port 8080 after 0 ms", Some(8080), None);
        check("connection to server at \"localhost\" (127.0.0.1), port 5433 failed", Some(5433), None);
        check("Error: listen EADDRINUSE: address already in use :::3000", None, Some(3000));
        check("Port 8000 is already in use.", None, Some(8000));
        check("connect ECONNREFUSED 10.0.0.1:5432", None, None);
    }

    #[test]
    fn names_of_files_are_found_in_any_layout_and_words_are_none() {
        let check = |text: &str, names: &[&str]| assert_eq!(quoted_files(text), names, "{text}");
        check("src/a.rs:3:7: error", &["src/a.rs"]);
        check("  at f (lib/b.js:9:1)", &["lib/b.js"]);
        check("File \"/x/y.py\", line 3", &["/x/y.py"]);
        check("see https://example.com/a.html for 1.2.3, e.g. 3.14", &[]);
        check("expected 5 but got 6.", &[]);
        check("A complete log can be found in: /home/a/.npm/_logs/debug-0.log", &[]);
    }
}
