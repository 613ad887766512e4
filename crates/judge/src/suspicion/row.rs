//! The signs, as rows: which programs give them, and what they look like. Each has examples in `tests.rs`, of both sorts.

use crate::shell::Command;

/// The name of the sign that JSON ends too early.
pub const CUT_JSON: &str = "cut-json";

/// One sign that a success is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: &'static str,
    /// The programs that give it; `python*` stands for all whose names begin so.
    programs: &'static [&'static str],
    /// One of these words is among theirs; any will do where there are none.
    words: &'static [&'static str],
    /// Whoever gives one of these words wants it so.
    unless: &'static [&'static str],
    pub(super) sign: Sign,
    /// What it means, in English and Chinese, as half a sentence.
    pub(super) why: [&'static str; 2],
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// A line that is bad, and nowhere one that is good. A line is looked at only where it has one of the hints.
    Lines { hints: &'static [&'static str], bad: &'static str, good: Option<&'static str> },
    /// The answer is a web page that tells of an error.
    ErrorPage,
    /// The answer is JSON that ends too early.
    CutJson,
}

impl Row {
    /// Can this command give it?
    pub(super) fn is_about(&self, command: &Command) -> bool {
        let is_named = |name: &&str| match name.strip_suffix('*') {
            Some(start) => command.program.starts_with(start),
            None => command.program == *name,
        };
        let has = |word: &&str| command.args().iter().any(|other| other == word);
        self.programs.iter().any(is_named)
            && (self.words.is_empty() || self.words.iter().any(has))
            && !self.unless.iter().any(has)
    }
}

/// Programs whose output is what a server answered.
pub(super) const FETCHERS: &[&str] = &["curl", "wget", "http", "https", "xh", "xhs", "curlie"];
const NO_TESTS: [&str; 2] = ["no tests were run", "没有运行任何测试"];
const JS_RUNNERS: &[&str] =
    &["jest", "vitest", "mocha", "npx", "npm", "yarn", "pnpm", "bunx", "node", "c8", "nyc"];

/// Where several speak up, the first one counts.
pub(super) const ROWS: &[Row] = &[
    Row {
        id: "error-page",
        programs: FETCHERS,
        words: &[],
        unless: &[],
        sign: Sign::ErrorPage,
        why: ["the answer is an error page", "得到的是一个错误页面"],
    },
    Row {
        id: CUT_JSON,
        programs: &[
            "curl",
            "wget",
            "http",
            "https",
            "xh",
            "xhs",
            "curlie",
            "gh",
            "glab",
            "kubectl",
            "aws",
            "az",
            "gcloud",
            "jq",
            "terraform",
            "doctl",
            "heroku",
        ],
        words: &[],
        // Whoever asks for a part gets a part.
        unless: &["-r", "--range"],
        sign: Sign::CutJson,
        why: ["the JSON ends too early", "JSON 不完整"],
    },
    Row {
        id: "no-tests.cargo",
        programs: &["cargo"],
        words: &["test", "t"],
        unless: &["--no-run", "--list"],
        sign: Sign::Lines {
            hints: &["test result: "],
            bad: r"^test result: ok\. 0 passed; 0 failed;",
            good: Some(r"^test result: .*\b[1-9]\d* (passed|failed|ignored|measured)\b"),
        },
        why: NO_TESTS,
    },
    Row {
        id: "no-tests.go",
        programs: &["go"],
        words: &["test"],
        unless: &["-list", "-c"],
        sign: Sign::Lines {
            hints: &["[no test", "ok  ", "--- "],
            bad: r"\[no test files\]$|\[no tests to run\]$",
            good: Some(r"^ok\s+\S+\s+(\(cached\)|[\d.]+s)(\s+coverage: .*)?$|^--- (PASS|FAIL|SKIP)"),
        },
        why: NO_TESTS,
    },
    Row {
        id: "no-tests.python",
        programs: &["python*", "pytest", "py.test", "uv", "poetry", "tox", "hatch", "pdm", "coverage"],
        words: &[],
        unless: &["--collect-only", "--co"],
        sign: Sign::Lines {
            hints: &["Ran ", "no tests ran", " passed", "NO TESTS RAN"],
            bad: r"^Ran 0 tests in |^=* ?no tests ran in |^NO TESTS RAN$",
            good: Some(r"^Ran [1-9]\d* tests? in |\b[1-9]\d* (passed|failed|skipped)\b"),
        },
        why: NO_TESTS,
    },
    Row {
        id: "no-tests.javascript",
        programs: JS_RUNNERS,
        words: &[],
        unless: &["--passWithNoTests", "--pass-with-no-tests"],
        sign: Sign::Lines {
            hints: &["exiting with code 0", " passing", "tests ", "Tests: "],
            bad: r"^No tests? (files )?found, exiting with code 0|^\s+0 passing \(\d+m?s\)$|^(#|ℹ) tests 0$",
            good: Some(
                r"^\s+[1-9]\d* (passing|pending|failing)\b|^(#|ℹ) tests [1-9]|^Tests: .*\b[1-9]\d* total",
            ),
        },
        why: NO_TESTS,
    },
    Row {
        id: "no-tests.ruby",
        programs: &["rspec", "rake", "bundle", "rails", "ruby"],
        words: &[],
        unless: &["--dry-run"],
        sign: Sign::Lines {
            hints: &[" examples", "example,", " runs, "],
            bad: r"^0 examples, 0 failures$|^0 runs, 0 assertions, 0 failures, 0 errors, 0 skips$",
            good: Some(r"^[1-9]\d* examples?, |^[1-9]\d* runs, "),
        },
        why: NO_TESTS,
    },
    Row {
        id: "no-tests.dotnet",
        programs: &["dotnet"],
        words: &["test", "vstest"],
        unless: &["--list-tests", "-t"],
        sign: Sign::Lines {
            hints: &["No test ", "Total: ", "Total tests: ", "total: "],
            bad: r"^No test (is available in|matches the given testcase filter) ",
            good: Some(r"\b[Tt]otal( tests)?:\s+[1-9]"),
        },
        why: NO_TESTS,
    },
    Row {
        id: "no-tests.php",
        programs: &["phpunit", "php", "composer", "pest"],
        words: &[],
        unless: &["--list-tests"],
        sign: Sign::Lines {
            hints: &["No tests executed!", "OK (", "Tests: "],
            bad: r"^No tests executed!$",
            good: Some(r"^OK \([1-9]|^Tests: [1-9]"),
        },
        why: NO_TESTS,
    },
    Row {
        id: "no-tests.maven",
        programs: &["mvn", "mvnw", "./mvnw"],
        words: &["test"],
        unless: &["-DskipTests", "-Dmaven.test.skip=true"],
        sign: Sign::Lines {
            hints: &["No tests to run", "Tests run: "],
            bad: r"No tests to run\.$|Tests run: 0, Failures: 0, Errors: 0",
            good: Some(r"Tests run: [1-9]"),
        },
        why: NO_TESTS,
    },
    Row {
        id: "no-tests.ctest",
        programs: &["ctest"],
        words: &[],
        unless: &["-N", "--show-only"],
        sign: Sign::Lines { hints: &["No tests were found"], bad: r"^No tests were found!!!$", good: None },
        why: NO_TESTS,
    },
    Row {
        id: "no-tests.swift",
        programs: &["swift", "xcodebuild"],
        words: &["test"],
        unless: &[],
        sign: Sign::Lines {
            hints: &["Executed ", "Test run with "],
            bad: r"^\s*Executed 0 tests, with 0 failures",
            good: Some(r"Executed [1-9]\d* tests?|Test run with [1-9]"),
        },
        why: NO_TESTS,
    },
    Row {
        id: "no-tests.deno",
        programs: &["deno"],
        words: &["test"],
        unless: &["--no-run"],
        sign: Sign::Lines {
            hints: &[" passed "],
            bad: r"^ok \| 0 passed( \(\d+ steps?\))? \| 0 failed",
            good: Some(r"\b[1-9]\d* passed\b|\b[1-9]\d* ignored\b"),
        },
        why: NO_TESTS,
    },
    Row {
        id: "errors.psql",
        programs: &["psql"],
        words: &[],
        unless: &[],
        sign: Sign::Lines {
            hints: &["ERROR:  ", "FATAL:  "],
            bad: r"^(psql:\S*:\d+: )?(ERROR|FATAL):  \S",
            good: None,
        },
        why: [
            "a statement failed, and psql went on (ON_ERROR_STOP)",
            "有语句失败，而 psql 继续执行（ON_ERROR_STOP）",
        ],
    },
    Row {
        id: "errors.sqlcmd",
        programs: &["sqlcmd"],
        words: &[],
        unless: &["-b"],
        sign: Sign::Lines { hints: &["Msg "], bad: r"^Msg \d+, Level (1[1-9]|2\d), State \d+", good: None },
        why: ["a statement failed, and sqlcmd went on (-b)", "有语句失败，而 sqlcmd 继续执行（-b）"],
    },
    Row {
        id: "errors.sqlplus",
        programs: &["sqlplus", "sql"],
        words: &[],
        unless: &[],
        sign: Sign::Lines { hints: &["ORA-", "SP2-"], bad: r"^(ORA|SP2)-\d{4,5}: ", good: None },
        why: [
            "a statement failed, and SQL*Plus went on (WHENEVER SQLERROR EXIT)",
            "有语句失败，而 SQL*Plus 继续执行（WHENEVER SQLERROR EXIT）",
        ],
    },
    Row {
        id: "errors.redis",
        programs: &["redis-cli", "valkey-cli"],
        words: &[],
        unless: &["-e"],
        sign: Sign::Lines {
            hints: &[
                "ERR",
                "NOAUTH",
                "WRONGTYPE",
                "READONLY",
                "OOM",
                "MISCONF",
                "NOSCRIPT",
                "NOPERM",
                "MOVED",
            ],
            bad: r"^(\(error\) )?(ERR|NOAUTH|WRONGTYPE|READONLY|OOM|MISCONF|NOSCRIPT|NOPERM|MOVED) \S",
            good: None,
        },
        why: ["the server refused it", "服务器拒绝了它"],
    },
    Row {
        id: "errors.apt-update",
        programs: &["apt", "apt-get", "aptitude"],
        words: &["update"],
        unless: &[],
        sign: Sign::Lines {
            hints: &["index files failed to download"],
            bad: r"^W: Some index files failed to download\.",
            good: None,
        },
        why: ["some lists could not be fetched, old ones are used", "部分软件列表未能下载，仍使用旧列表"],
    },
    Row {
        id: "errors.adb-install",
        programs: &["adb"],
        words: &["install", "install-multiple", "uninstall"],
        unless: &[],
        sign: Sign::Lines {
            hints: &["Failure ["],
            bad: r"^(adb: failed to install .*: )?Failure \[",
            good: None,
        },
        why: ["the device refused it", "设备拒绝了它"],
    },
    Row {
        id: "errors.launchctl",
        programs: &["launchctl"],
        words: &["load", "unload", "bootstrap"],
        unless: &[],
        sign: Sign::Lines {
            hints: &[" failed: "],
            bad: r"^(Load|Unload|Bootstrap) failed: \d+: ",
            good: None,
        },
        why: ["the service was not loaded", "服务未能加载"],
    },
];
