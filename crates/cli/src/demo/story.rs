//! The story, as data: what there is, what the agent asks for, and what is to be seen. Nothing here runs.
//!
//! The scripts use nothing but what a shell has built in, so that they run on a machine without anything else on it. Each
//! writes a line whenever it runs: that is how it is proven that a refused call never did.

use std::time::Duration;

use super::agent::{Decision, Ended, Step};
use super::stage::Programs;

/// A text in English and in Chinese.
pub(crate) type Words = [&'static str; 2];

/// One chapter.
pub(crate) struct Chapter {
    /// Its name in JSON.
    pub(crate) name: &'static str,
    pub(crate) title: Words,
    /// What to look at.
    pub(crate) lesson: Words,
    /// What a person asks the agent for.
    pub(crate) prompt: &'static str,
    /// What is in the project when it begins: names and contents.
    pub(crate) files: &'static [(&'static str, &'static str)],
    pub(crate) programs: Programs,
    /// An agent in a hurry, which leaves nobody the time to read.
    pub(crate) is_hasty: bool,
    /// What is told is not what it is about.
    pub(crate) is_brief: bool,
    pub(crate) acts: &'static [Act],
}

/// One thing that is done.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    /// The agent asks for a shell command.
    Run { command: &'static str, expect: Expect },
    /// The agent asks for an edit.
    Edit { file: &'static str, from: &'static str, to: &'static str },
    /// The agent is killed in the middle of a command.
    Vanish { command: &'static str },
    /// The agent is started again and goes on with the session.
    Resume,
    /// A script has counted its own runs.
    Count { file: &'static str, runs: usize },
    /// A person takes back what the agent did; all files of the chapter are then what they were.
    Undo,
}

/// What is to be seen of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// It runs and works.
    Works,
    /// It runs and fails, whatever is said of it.
    Fails,
    /// It runs and fails, and the model is told why.
    Explained,
    /// It runs and fails, but not before its time.
    WaitsAndFails,
    /// It runs and works, but not before its time.
    WaitsAndWorks,
    /// It never runs, and the model is told why.
    Refused,
    /// Another call runs in its place and works, and the model is told.
    Replaced,
}

/// What `fetch.sh` asks for, and a little less: clocks are read in whole milliseconds.
const ASKED_WAIT: Duration = Duration::from_millis(1000 - 5);

impl Expect {
    /// Was it seen?
    fn is_met(self, step: &Step) -> bool {
        let works = step.ended == Ended::Exited(0);
        let fails = matches!(step.ended, Ended::Exited(code) if code != 0);
        let as_asked = step.decision == Decision::None;
        let refused = step.is_refused() && step.ended == Ended::NotRun && !step.told.is_empty();
        let in_time = step.since_failure.is_some_and(|passed| passed >= ASKED_WAIT);
        match self {
            Expect::Works => as_asked && works,
            Expect::Fails => as_asked && fails,
            Expect::Explained => as_asked && fails && !step.told.is_empty(),
            Expect::WaitsAndFails => as_asked && fails && in_time,
            Expect::WaitsAndWorks => as_asked && works && in_time,
            Expect::Refused => refused,
            Expect::Replaced => step.decision == Decision::Rewritten && works && !step.told.is_empty(),
        }
    }

    /// What was to be seen, where it was not.
    pub(crate) fn missed(self, step: &Step) -> Option<Words> {
        (!self.is_met(step)).then(|| self.words())
    }

    /// What is to be seen, in words.
    fn words(self) -> Words {
        match self {
            Expect::Works => ["it runs and works", "运行并成功"],
            Expect::Fails => ["it runs and fails", "运行并失败"],
            Expect::Explained => ["it fails, and the model is told why", "失败，并告知模型原因"],
            Expect::WaitsAndFails => ["it waits for its time, and fails", "等到可以运行的时间，然后失败"],
            Expect::WaitsAndWorks => ["it waits for its time, and works", "等到可以运行的时间，然后成功"],
            Expect::Refused => ["it is refused and never runs", "被拒绝，从未运行"],
            Expect::Replaced => ["another call runs in its place and works", "由另一个调用代替并成功"],
        }
    }
}

/// All of it.
pub(crate) const CHAPTERS: &[Chapter] = &[
    Chapter {
        name: "diagnosis",
        title: ["What cannot work is not tried twice", "不可能成功的，不试第二次"],
        lesson: [
            "A program is missing. The agent is told so at once, and repeats the call all the same; a look shows that it is still missing.",
            "缺少一个程序。智能体立刻得知原因，却仍然重复调用；查看之后确认它仍然缺失。",
        ],
        prompt: "draw the report",
        files: &[("report.sh", "#!/bin/sh\necho run >> report.runs\nplotwright sales.csv\n")],
        programs: Programs::All,
        is_hasty: false,
        is_brief: false,
        acts: &[
            Act::Run { command: "./report.sh", expect: Expect::Explained },
            Act::Run { command: "./report.sh", expect: Expect::Refused },
            Act::Count { file: "report.runs", runs: 1 },
        ],
    },
    Chapter {
        name: "waiting",
        title: ["What heals by itself is waited for", "会自行恢复的，等一等"],
        lesson: [
            "A server says \"too many requests, come back in 1 s\". The agent does not wait; unstuck does.",
            "服务器说“请求过多，1 秒后再来”。智能体不等，unstuck 替它等。",
        ],
        prompt: "fetch the rows",
        files: &[("fetch.sh", FETCH)],
        programs: Programs::All,
        is_hasty: true,
        is_brief: false,
        acts: &[
            Act::Run { command: "./fetch.sh rows", expect: Expect::Explained },
            Act::Run { command: "./fetch.sh rows", expect: Expect::WaitsAndFails },
            Act::Run { command: "./fetch.sh rows", expect: Expect::WaitsAndWorks },
        ],
    },
    Chapter {
        name: "circles",
        title: ["The same call in other words is the same call", "换一种写法，仍是同一个调用"],
        lesson: [
            "A build fails. Flags and pipes do not mend it; a change of the file does, and lifts the block.",
            "构建失败。换标志、加管道都无济于事；修改文件才有用，并解除拦截。",
        ],
        prompt: "build it",
        files: &[("build.sh", BUILD), ("settings.sh", "TARGE=web\n")],
        programs: Programs::All,
        is_hasty: false,
        is_brief: false,
        acts: &[
            Act::Run { command: "./build.sh", expect: Expect::Explained },
            Act::Run { command: "./build.sh --verbose 2>&1", expect: Expect::Explained },
            Act::Run { command: "./build.sh 2>&1 | tail -5", expect: Expect::Refused },
            Act::Count { file: "build.runs", runs: 2 },
            Act::Edit { file: "settings.sh", from: "TARGE=web", to: "TARGET=web" },
            Act::Run { command: "./build.sh", expect: Expect::Works },
        ],
    },
    Chapter {
        name: "honest-work",
        title: ["Honest work is left alone", "正常的工作不受打扰"],
        lesson: [
            "Test, edit, test again: the same command fails three times, and nothing gets in its way.",
            "测试、修改、再测试：同一命令失败三次，却不受任何阻拦。",
        ],
        prompt: "make the tests pass",
        files: &[("test.sh", TEST), ("lib.sh", LIB)],
        programs: Programs::All,
        is_hasty: false,
        is_brief: true,
        acts: &[
            Act::Run { command: "./test.sh", expect: Expect::Fails },
            Act::Edit {
                file: "lib.sh",
                from: "add() { echo $(($1 - $2)); }",
                to: "add() { echo $(($1 + $2)); }",
            },
            Act::Run { command: "./test.sh", expect: Expect::Fails },
            Act::Edit {
                file: "lib.sh",
                from: "sub() { echo $(($2 - $1)); }",
                to: "sub() { echo $(($1 - $2)); }",
            },
            Act::Run { command: "./test.sh", expect: Expect::Fails },
            Act::Edit {
                file: "lib.sh",
                from: "mul() { echo $(($1 + $1)); }",
                to: "mul() { echo $(($1 * $2)); }",
            },
            Act::Run { command: "./test.sh", expect: Expect::Works },
        ],
    },
    Chapter {
        name: "rewrite",
        title: ["What only has another name is put right", "只是换了名字的，直接改正"],
        lesson: [
            "There is no `python` here, but a `python3`. With rewrite.mode = auto, the repeat is put right.",
            "这里没有 `python`，但有 `python3`。设置 rewrite.mode = auto 时，重复的调用会被改正。",
        ],
        prompt: "sum up the rows",
        // A stand-in, so that nothing has to be installed. The script says the same to a real one.
        files: &[("bin/python3", "#!/bin/sh\necho '3 rows'\n"), ("summary.py", "print('3 rows')\n")],
        programs: Programs::OfProject,
        is_hasty: false,
        is_brief: false,
        acts: &[
            Act::Run { command: "python summary.py", expect: Expect::Explained },
            Act::Run { command: "python summary.py", expect: Expect::Replaced },
        ],
    },
    Chapter {
        name: "undo",
        title: ["What an agent destroys is brought back", "智能体毁掉的，可以恢复"],
        lesson: [
            "The agent deletes the sources. They were saved before the call ran; a person takes it back.",
            "智能体删除了源文件。调用运行之前它们已被保存；由人撤销。",
        ],
        prompt: "tidy up",
        files: &[("src/tide.sh", "#!/bin/sh\necho high water\n"), ("src/notes.txt", "In no repository.\n")],
        programs: Programs::OfSystem,
        is_hasty: false,
        is_brief: false,
        acts: &[Act::Run { command: "rm -rf src", expect: Expect::Works }, Act::Undo],
    },
    Chapter {
        name: "lost-result",
        title: ["A result that never came", "没有等到的结果"],
        lesson: [
            "The agent is killed in the middle of a call. When it goes on, it is told which call never had a result.",
            "智能体在调用中途被杀死。恢复之后，它会得知哪个调用一直没有结果。",
        ],
        prompt: "move the data",
        files: &[("migrate.sh", "#!/bin/sh\necho 'table 1 of 3' >> migrate.done\nsleep 20\n")],
        programs: Programs::All,
        is_hasty: false,
        is_brief: false,
        acts: &[Act::Vanish { command: "./migrate.sh" }, Act::Resume],
    },
];

const FETCH: &str = r#"#!/bin/sh
echo run >> fetch.runs
runs=0
while read -r _; do runs=$((runs + 1)); done < fetch.runs
if [ "$runs" -le 2 ]; then
  echo 'HTTP/1.1 429 Too Many Requests' >&2
  echo 'Retry-After: 1' >&2
  exit 22
fi
echo '{"rows": 3}'
"#;

const BUILD: &str = r#"#!/bin/sh
echo run >> build.runs
TARGET=
. ./settings.sh
if [ -z "$TARGET" ]; then
  echo 'settings.sh:1: error: TARGET is not set' >&2
  exit 1
fi
echo "built for $TARGET"
"#;

const LIB: &str = r#"add() { echo $(($1 - $2)); }
sub() { echo $(($2 - $1)); }
mul() { echo $(($1 + $1)); }
"#;

const TEST: &str = r#"#!/bin/sh
. ./lib.sh
failed=0
check() {
  if [ "$2" = "$3" ]; then
    echo "test $1 ... ok"
  else
    echo "test $1 ... FAILED: expected $3, got $2"
    failed=$((failed + 1))
  fi
}
check add "$(add 7 5)" 12
check sub "$(sub 7 5)" 2
check mul "$(mul 7 5)" 35
if [ "$failed" = 0 ]; then word=ok; else word=FAILED; fi
echo "test result: $word. $((3 - failed)) passed; $failed failed"
[ "$failed" = 0 ]
"#;

#[cfg(test)]
mod tests {
    use super::*;

    fn step(decision: Decision, ended: Ended) -> Step {
        Step {
            call: "x".to_owned(),
            decision,
            told: "why".to_owned(),
            ran: None,
            ended,
            output: String::new(),
            held: Duration::ZERO,
            since_failure: Some(Duration::from_millis(300)),
        }
    }

    #[test]
    fn what_is_expected_is_met_by_nothing_else() {
        use Ended::{Exited, NotRun};
        let check = |expect: Expect, decision, ended, expected| {
            let step = step(decision, ended);
            assert_eq!(expect.is_met(&step), expected, "{expect:?} {step:?}");
        };
        check(Expect::Works, Decision::None, Exited(0), true);
        check(Expect::Works, Decision::None, Exited(1), false);
        check(Expect::Works, Decision::Rewritten, Exited(0), false);
        check(Expect::Works, Decision::Denied, NotRun, false);
        check(Expect::Fails, Decision::None, Exited(1), true);
        check(Expect::Fails, Decision::None, Exited(0), false);
        check(Expect::Explained, Decision::None, Exited(1), true);
        check(Expect::Refused, Decision::Denied, NotRun, true);
        check(Expect::Refused, Decision::None, Exited(1), false);
        check(Expect::Replaced, Decision::Rewritten, Exited(0), true);
        check(Expect::Replaced, Decision::Rewritten, Exited(1), false);
        check(Expect::Replaced, Decision::None, Exited(0), false);
        check(Expect::Replaced, Decision::Denied, NotRun, false);
        // Sent again after 0.3 s, where a second was asked for.
        check(Expect::WaitsAndWorks, Decision::None, Exited(0), false);
        let silent = Step { told: String::new(), ..step(Decision::None, Exited(1)) };
        assert!(!Expect::Explained.is_met(&silent));
    }

    #[test]
    fn every_text_is_there_in_both_languages() {
        for chapter in CHAPTERS {
            for [en, zh] in [chapter.title, chapter.lesson] {
                assert!(en.is_ascii() && !zh.is_ascii(), "{}", chapter.name);
            }
        }
    }
}
