//! What a person sees of the demonstration, in lines of at most 80 columns. It makes texts and prints nothing.

use std::time::Duration;

use unstuck_judge::Lang;
use unstuck_wire::time;

use super::agent::{Decision, Ended, Step};
use super::story::{Chapter, Words};
use crate::{columns, moment, plain};

/// No line is wider.
const WIDTH: usize = 80;
/// How far everything stands in.
const MARGIN: usize = 3;
/// How wide the column of labels is.
const LABEL: usize = 9;
/// How many lines a text may take: of what was printed, and of what was told in full and in short.
const PRINTED_LINES: usize = 4;
const TOLD_LINES: usize = 14;
const TOLD_BRIEFLY: usize = 2;

/// How much is shown of what the model was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    InFull,
    Briefly,
    /// It was told the same the last time.
    AsBefore,
}

/// A colour or another way to stand out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ink {
    Plain,
    Bold,
    Faint,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Ink::Plain => "",
            Ink::Bold => "1",
            Ink::Faint => "2",
            Ink::Red => "31",
            Ink::Green => "32",
            Ink::Yellow => "33",
            Ink::Cyan => "36",
        }
    }
}

/// How texts are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Screen {
    pub(crate) lang: Lang,
    pub(crate) has_colour: bool,
}

impl Screen {
    fn say(self, words: Words) -> &'static str {
        words[self.lang as usize]
    }

    fn ink(self, ink: Ink, text: &str) -> String {
        match self.has_colour && ink != Ink::Plain {
            true => format!("\x1b[{}m{text}\x1b[0m", ink.code()),
            false => text.to_owned(),
        }
    }

    /// What stands above everything.
    pub(crate) fn opening(self) -> String {
        let text = self.say([
            "A scripted agent makes real calls through the real hook, in a folder of its own. \
             Nothing of yours is touched; what you see is what the hook answered and what the commands did.",
            "一个照剧本行事的智能体通过真实的钩子发出真实的调用，全部在它自己的文件夹里进行。\
             不会碰您的任何东西；您看到的就是钩子的回答和命令的结果。",
        ]);
        wrapped(text, WIDTH).join("\n") + "\n"
    }

    /// The head of a chapter.
    pub(crate) fn chapter(self, number: usize, chapter: &Chapter) -> String {
        let title = format!("{number}  {}", self.say(chapter.title));
        let lesson = self.paragraph(Ink::Plain, self.say(chapter.lesson));
        format!("\n{}\n{lesson}\n", self.ink(Ink::Bold, &title))
    }

    /// One call.
    pub(crate) fn step(self, step: &Step, telling: Telling) -> String {
        let mut text = match step.ended {
            Ended::Changed => self.row(["agent", "智能体"], Ink::Cyan, &step.call, 1),
            Ended::NotRun | Ended::Exited(_) | Ended::Lost => {
                self.row(["agent", "智能体"], Ink::Cyan, &format!("$ {}", step.call), 2)
            }
        };
        if step.held > Duration::ZERO {
            let held = moment::span(time::span_ms(step.held));
            let line = match self.lang {
                Lang::En => format!("for {held}, then let go"),
                Lang::Zh => format!("{held}，然后放行"),
            };
            text += &self.row(["held", "等待"], Ink::Yellow, &line, 1);
        }
        text += &self.end(step);
        if !step.told.is_empty() {
            let (told, most) = match telling {
                Telling::InFull => (&*step.told, TOLD_LINES),
                Telling::Briefly => (&*step.told, TOLD_BRIEFLY),
                Telling::AsBefore => (self.say(["the same as before", "与上次相同"]), 1),
            };
            text += &self.row(["told", "告知"], Ink::Yellow, told, most);
        }
        text
    }

    /// What became of a call.
    fn end(self, step: &Step) -> String {
        let mut text = String::new();
        match (step.decision, &step.ran) {
            (Decision::Rewritten, Some(ran)) => {
                text += &self.row(["rewritten", "改写"], Ink::Green, &format!("$ {ran}"), 2);
            }
            (Decision::Denied, _) => text += &self.refused(["it never ran", "从未运行"]),
            (Decision::Asked, _) => {
                text += &self.refused(["a person has to decide; it never ran", "需要由人决定；从未运行"]);
            }
            (Decision::Halted, _) => {
                text += &self.refused(["the agent was stopped; it never ran", "智能体已停止；从未运行"]);
            }
            (Decision::None, _) | (Decision::Rewritten, None) => {}
        }
        let printed = step.output.lines().collect::<Vec<_>>();
        match &step.ended {
            Ended::NotRun => {}
            Ended::Changed => {
                for line in printed {
                    text += &self.row(["", ""], Ink::Faint, line, 1);
                }
            }
            Ended::Exited(code) => {
                let (ink, head) = match code {
                    0 => (Ink::Green, "exit 0".to_owned()),
                    code => (Ink::Red, format!("exit {code}")),
                };
                text += &self.row(["result", "结果"], ink, &head, 1);
                let hidden = printed.len().saturating_sub(PRINTED_LINES);
                for line in printed.iter().skip(hidden) {
                    text += &self.row(["", ""], Ink::Faint, line, 1);
                }
            }
            Ended::Lost => {
                let line = self.say([
                    "killed with its agent: nobody heard of a result",
                    "与智能体一同被杀死：没有人得到结果",
                ]);
                text += &self.row(["result", "结果"], Ink::Red, line, 2);
            }
        }
        text
    }

    fn refused(self, why: Words) -> String {
        self.row(["refused", "拒绝"], Ink::Red, self.say(why), 1)
    }

    /// The agent was started again, and what it is told.
    pub(crate) fn resumed(self, told: &str) -> String {
        let line = self.say(["is started again and goes on", "重新启动并继续"]);
        let mut text = self.row(["agent", "智能体"], Ink::Cyan, line, 1);
        if !told.is_empty() {
            text += &self.row(["told", "告知"], Ink::Yellow, told, TOLD_LINES);
        }
        text
    }

    /// A person took back what the agent did: what was printed, and which files are what they were.
    pub(crate) fn undone(self, printed: &str, files: &[&str]) -> String {
        let mut text = self.row(["person", "用户"], Ink::Cyan, "$ unstuck undo", 1);
        for line in printed.lines().take(PRINTED_LINES) {
            text += &self.row(["", ""], Ink::Faint, line, 1);
        }
        if files.is_empty() {
            return text;
        }
        let files = files.join(", ");
        let line = match self.lang {
            Lang::En => format!("byte for byte as before: {files}"),
            Lang::Zh => format!("与之前逐字节相同：{files}"),
        };
        text + &self.row(["proof", "证据"], Ink::Green, &line, 2)
    }

    /// How often a script ran, by its own count.
    pub(crate) fn count(self, file: &str, runs: usize) -> String {
        let line = match (self.lang, runs) {
            (Lang::En, 1) => format!("by its own count ({file}) the script ran once"),
            (Lang::En, runs) => format!("by its own count ({file}) the script ran {runs} times"),
            (Lang::Zh, runs) => format!("脚本自己的计数（{file}）：运行了 {runs} 次"),
        };
        self.row(["proof", "证据"], Ink::Green, &line, 2)
    }

    /// What was to be seen, and was not.
    pub(crate) fn unmet(self, expected: Words) -> String {
        let line = match self.lang {
            Lang::En => format!("not as expected: {}", self.say(expected)),
            Lang::Zh => format!("与预期不符：{}", self.say(expected)),
        };
        self.row(["✗", "✗"], Ink::Red, &line, 3)
    }

    /// What stands above the timeline.
    pub(crate) fn timeline_head(self) -> String {
        let title = self.say(["The same as a timeline", "同样的内容，按时间排列"]);
        let lesson = self.say([
            "As `unstuck log` shows it, without the ends of calls that went well and what was told above.",
            "与 `unstuck log` 所示相同，略去顺利结束的调用和上面已告知的内容。",
        ]);
        format!("\n{}\n{}\n", self.ink(Ink::Bold, title), self.paragraph(Ink::Plain, lesson))
    }

    /// One line of the timeline.
    pub(crate) fn event(self, line: &str) -> String {
        format!("{}{}\n", " ".repeat(MARGIN), cut(line, WIDTH - MARGIN))
    }

    /// The figures at the end.
    pub(crate) fn figures(self, calls: usize, refused: usize, waited: Duration, unmet: usize) -> String {
        let waited = moment::span(time::span_ms(waited));
        let figures = match self.lang {
            Lang::En => format!("{calls} calls, {refused} refused before they ran, {waited} waited"),
            Lang::Zh => format!("{calls} 次调用，{refused} 次在运行前被拒绝，共等待 {waited}"),
        };
        let (ink, last) = match (unmet, self.lang) {
            (0, Lang::En) => {
                (Ink::Green, "Put it between your agent and its tools: unstuck install claude".to_owned())
            }
            (0, Lang::Zh) => (Ink::Green, "把它放在您的智能体与工具之间：unstuck install claude".to_owned()),
            (1, Lang::En) => (Ink::Red, "1 thing was not as expected.".to_owned()),
            (unmet, Lang::En) => (Ink::Red, format!("{unmet} things were not as expected.")),
            (unmet, Lang::Zh) => (Ink::Red, format!("有 {unmet} 处与预期不符。")),
        };
        format!("\n{}\n{}\n", self.ink(Ink::Bold, &figures), self.ink(ink, &last))
    }

    fn paragraph(self, ink: Ink, text: &str) -> String {
        let margin = " ".repeat(MARGIN);
        let line = |line: String| format!("{margin}{}\n", self.ink(ink, &line));
        wrapped(text, WIDTH - MARGIN).into_iter().map(line).collect()
    }

    /// A label and a text beside it, of at most so many lines.
    fn row(self, label: Words, ink: Ink, text: &str, most: usize) -> String {
        let beside = MARGIN + LABEL + 1;
        let mut lines = wrapped(&plain::line(text), WIDTH - beside);
        if lines.len() > most {
            lines.truncate(most);
            if let Some(last) = lines.last_mut() {
                *last = cut(&format!("{last} …"), WIDTH - beside);
            }
        }
        let label = match self.say(label) {
            "" => " ".repeat(LABEL),
            label => self.ink(ink, &columns::left(label, LABEL)),
        };
        // The label stands out and the text is easy to read, but for what only repeats a file or an output.
        let body = if ink == Ink::Faint { Ink::Faint } else { Ink::Plain };
        let mut shown = String::new();
        for (number, line) in lines.iter().enumerate() {
            let before = match number {
                0 => format!("{}{label} ", " ".repeat(MARGIN)),
                _ => " ".repeat(beside),
            };
            shown += &format!("{before}{}\n", self.ink(body, line));
        }
        shown
    }
}

/// The text in lines of at most so many columns, broken between words, and anywhere where there are none.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut room = most;
    for piece in pieces(text) {
        let width = columns::width(piece);
        if width > room && room < most {
            lines.push(String::new());
            room = most;
        }
        for sign in piece.chars() {
            let width = columns::width(sign.encode_utf8(&mut [0; 4]));
            if width > room {
                lines.push(String::new());
                room = most;
            }
            if sign == ' ' && room == most && lines.len() > 1 {
                continue;
            }
            if let Some(line) = lines.last_mut() {
                line.push(sign);
            }
            room -= width;
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// The parts between which a line may end: words, each space by itself, and every sign of a script without spaces.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    for (at, sign) in text.char_indices() {
        let end = at + sign.len_utf8();
        // Chinese marks belong to the word before them, so that no line begins with one.
        let is_mark = matches!(sign, '，' | '。' | '；' | '：' | '、' | '）' | '”');
        let stands_alone = sign == ' ' || (!is_mark && columns::width(&text[at..end]) > 1);
        if stands_alone {
            if begin < at {
                pieces.push(&text[begin..at]);
            }
            begin = at;
            if sign == ' ' {
                pieces.push(&text[at..end]);
                begin = end;
            }
        }
    }
    pieces.push(&text[begin..]);
    pieces
}

/// One line of at most so many columns.
fn cut(line: &str, most: usize) -> String {
    if columns::width(line) <= most {
        return line.to_owned();
    }
    let mut shown = String::new();
    let mut room = most.saturating_sub(1);
    for sign in line.chars() {
        let width = columns::width(sign.encode_utf8(&mut [0; 4]));
        if width > room {
            break;
        }
        room -= width;
        shown.push(sign);
    }
    format!("{}…", shown.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_and_long_words_are_broken() {
        let check =
            |text: &str, most: usize, expected: &[&str]| assert_eq!(wrapped(text, most), expected, "{text}");
        check("", 10, &[""]);
        check("one two three", 7, &["one two", "three"]);
        check("one two three", 8, &["one two", "three"]);
        check("abcdefghij k", 4, &["abcd", "efgh", "ij k"]);
        check("a 失败，原因 b", 9, &["a 失败，", "原因 b"]);
        check("中文中文", 5, &["中文", "中文"]);
        check("  in", 10, &["  in"]);
    }

    #[test]
    fn what_is_too_long_is_cut_by_columns() {
        assert_eq!((cut("abcdef", 6), cut("abcdefg", 6)), ("abcdef".to_owned(), "abcde…".to_owned()));
        assert_eq!(cut("中文字", 5), "中文…");
    }

    #[test]
    fn colours_are_only_there_where_they_are_wanted() {
        let screen =
            |has_colour| Screen { lang: Lang::En, has_colour }.figures(3, 1, Duration::from_secs(2), 0);
        assert!(!screen(false).contains('\x1b') && screen(true).contains("\x1b[1m3 calls"));
    }
}
