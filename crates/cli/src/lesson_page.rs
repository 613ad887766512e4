//! A lesson as it is printed: its line in the list, its page, its JSON, and its line for the notes of an agent.
//!
//! All of its texts are words of others. They are quoted, and nothing in them can move a cursor or end a quotation.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use unstuck_judge::lesson::{Deed, Fix};
use unstuck_judge::{Kind, Lang, quote};
use unstuck_store::{
    Lesson, LessonOrigin, LessonPlace, LessonScope, LessonState, Showing, Source, fix_to_json,
};
use unstuck_wire::time;

use crate::{columns, moment, plain};

/// The longest step in a line of a list.
const STEP: usize = 60;
/// The longest text in a line for the notes of an agent.
const NOTE: usize = 160;

/// The name of a lesson.
pub(crate) fn name(id: i64) -> String {
    format!("L{id}")
}

pub(crate) fn head(lang: Lang) -> Vec<String> {
    let names = match lang {
        Lang::En => ["lesson", "state", "won", "lost", "scope", "last", "failed", "what helped"],
        Lang::Zh => ["经验", "状态", "有效", "无效", "范围", "最近", "失败的调用", "解决办法"],
    };
    names.map(str::to_owned).to_vec()
}

/// One line of the list.
pub(crate) fn row(lesson: &Lesson, now: u64, lang: Lang) -> Vec<String> {
    let caution = if lesson.caution.is_some() { "!" } else { "" };
    vec![
        name(lesson.id),
        format!("{}{caution}", state_word(lesson.state, lang)),
        lesson.wins.to_string(),
        lesson.record.losses.to_string(),
        scope_word(lesson.scope(), lang).to_owned(),
        last_win(lesson).map_or_else(|| "-".to_owned(), |at| moment::ago(at, now, lang)),
        plain::short(&lesson.program, 24),
        in_short(&lesson.fix, lang),
    ]
}

/// When it last helped; nothing where it never did.
fn last_win(lesson: &Lesson) -> Option<u64> {
    Some(lesson.record.won_at).filter(|_| lesson.wins > 0)
}

fn in_short(fix: &Fix, lang: Lang) -> String {
    let steps = steps(fix, lang).into_iter().map(|step| plain::short(&step, STEP));
    steps.collect::<Vec<_>>().join("; ")
}

/// A fix, step by step.
pub(crate) fn steps(fix: &Fix, lang: Lang) -> Vec<String> {
    let deed = |deed: &Deed| match (deed, lang) {
        (Deed::Ran { line }, _) => line.clone(),
        (Deed::Edited { file, lines }, Lang::En) => {
            format!("(edit of {file}, {lines} {})", if *lines == 1 { "line" } else { "lines" })
        }
        (Deed::Edited { file, lines }, Lang::Zh) => format!("（修改 {file}，{lines} 行）"),
        (Deed::Called { tool, target }, Lang::En) => format!("(call of {tool} {target})"),
        (Deed::Called { tool, target }, Lang::Zh) => format!("（调用 {tool} {target}）"),
    };
    let change = fix.change.as_ref().map(|change| match lang {
        Lang::En => format!("{} (instead of: {})", change.to, change.from),
        Lang::Zh => format!("{}（代替：{}）", change.to, change.from),
    });
    fix.deeds.iter().map(deed).chain(change).collect()
}

/// The page of one lesson, for people.
pub(crate) fn page(lesson: &Lesson, places: &[LessonPlace], now: u64, lang: Lang) -> String {
    let say = |en: &'static str, zh: &'static str| match lang {
        Lang::En => en,
        Lang::Zh => zh,
    };
    let title = lesson.kind.parse::<Kind>().map(|kind| kind.title(lang)).unwrap_or_default();
    let mut page = format!("{}  {}: {title}\n", name(lesson.id), plain::line(&lesson.kind));
    let mut line = |name: &str, text: &str| {
        if !text.is_empty() {
            let _ = writeln!(page, "  {} {}", columns::left(name, 10), plain::line(text));
        }
    };
    let moment = |at: u64| format!("{} ({})", moment::format_utc(at), moment::ago(at, now, lang));
    let record = &lesson.record;
    line(say("failed", "失败"), &[&*lesson.tool, &*lesson.program].join(" "));
    line(say("shown by", "表现"), &lesson.title);
    line(say("problem", "问题"), &lesson.cause);
    line(say("rule", "规则"), &lesson.rule);
    line(say("state", "状态"), state_word(lesson.state, lang));
    line(say("origin", "来源"), origin_word(lesson.origin, lang));
    line(say("shown?", "会显示吗"), &showing_words(lesson, lang));
    if let Some(caution) = lesson.caution {
        line(say("caution", "注意"), caution.why(lang));
    }
    line(say("won, lost", "有效/无效"), &format!("{}, {}", lesson.wins, record.losses));
    line(say("known by", "得知于"), &sources_words(lesson, lang));
    line(say("scope", "范围"), scope_word(lesson.scope(), lang));
    let effect = match lang {
        Lang::En => format!("shown {}, followed {}, worked {}", lesson.shown, lesson.followed, lesson.worked),
        Lang::Zh => {
            format!("显示 {} 次，照做 {} 次，有效 {} 次", lesson.shown, lesson.followed, lesson.worked)
        }
    };
    line(say("effect", "效果"), &effect);
    line(say("learnt", "习得"), &moment(lesson.first_at));
    line(say("last", "最近"), &last_win(lesson).map(moment).unwrap_or_default());
    let _ = write!(
        page,
        "\n{}\n",
        say("What helped (a record, not an instruction)", "解决办法（记录，不是指令）")
    );
    for (number, step) in steps(&lesson.fix, lang).iter().enumerate() {
        let _ = writeln!(page, "  {}. {}", number + 1, plain::line(step));
    }
    if lesson.fix.is_empty() {
        let _ = writeln!(page, "  {}", say("it cannot be read", "无法读取"));
    }
    if !places.is_empty() {
        let _ = write!(page, "\n{} ({})\n", say("Places", "地点"), places.len());
        let row = |place: &LessonPlace| {
            let tried = match lang {
                Lang::En => format!("won {}, lost {}", place.wins, place.losses),
                Lang::Zh => format!("有效 {}，无效 {}", place.wins, place.losses),
            };
            vec![format!("  {}", plain::short(&place.place, 80)), tried, moment::ago(place.at, now, lang)]
        };
        let rows: Vec<Vec<String>> = places.iter().map(row).collect();
        page.push_str(&columns::table(&[columns::Side::Left; 3], &rows));
    }
    page
}

/// Whether it is shown here, and why.
pub(crate) fn showing_words(lesson: &Lesson, lang: Lang) -> String {
    let (en, zh) = match lesson.showing {
        Showing::Approved => ("yes: a person approved it", "会：由人批准"),
        Showing::Trusted => ("yes: it helped here or in several places", "会：在这里或多个地点有效"),
        Showing::Cautious => ("no: a person has to approve it first", "不会：须先由人批准"),
        Showing::Elsewhere => {
            ("not here: it helped in one other place only", "在这里不会：只在另一个地点有效过")
        }
        Showing::Untried => {
            ("no: it was imported and has not helped here", "不会：导入的经验，尚未在这里有效过")
        }
        Showing::Unwatched => (
            "no: it has not helped in a session that unstuck watched, and nobody has approved it",
            "不会：尚未在 unstuck 观察的会话中有效过，也没有人批准",
        ),
        Showing::Doubtful => ("no: it lost more often than it won", "不会：无效多于有效"),
        Showing::Quarantined => ("no: it stopped working", "不会：已不再有效"),
        Showing::Merged => ("no: what mattered in it is a lesson of its own", "不会：其核心已成为另一条经验"),
        Showing::Forgotten => {
            ("no, and never learnt again: a person forgot it", "不会，也不再学习：由人遗忘")
        }
        Showing::Edits => ("no: files were edited, and how is not known", "不会：其中修改了文件，而内容未知"),
        Showing::Unreadable => ("no: what helped cannot be read", "不会：解决办法无法读取"),
    };
    match lang {
        Lang::En => en.to_owned(),
        Lang::Zh => zh.to_owned(),
    }
}

/// How its wins came to be known.
fn sources_words(lesson: &Lesson, lang: Lang) -> String {
    let word = |(source, wins): &(Source, u32)| {
        let words = match (source, lang) {
            (Source::Ran, Lang::En) => "calls that unstuck ran",
            (Source::Hook, Lang::En) => "hooks that the agent started",
            (Source::Told, Lang::En) => "a door that anybody may write to",
            (Source::File, Lang::En) => "a file",
            (Source::Unknown, Lang::En) => "an older version, which did not note it",
            (Source::Ran, Lang::Zh) => "unstuck 运行的调用",
            (Source::Hook, Lang::Zh) => "由智能体启动的钩子",
            (Source::Told, Lang::Zh) => "任何人都可写入的入口",
            (Source::File, Lang::Zh) => "文件",
            (Source::Unknown, Lang::Zh) => "未作记录的旧版本",
        };
        format!("{words} ({wins})")
    };
    lesson.sources.iter().map(word).collect::<Vec<_>>().join(", ")
}

pub(crate) fn state_word(state: LessonState, lang: Lang) -> &'static str {
    match (state, lang) {
        (state, Lang::En) => state.word(),
        (LessonState::Seen, Lang::Zh) => "已观察",
        (LessonState::Approved, Lang::Zh) => "已批准",
        (LessonState::Imported, Lang::Zh) => "已导入",
        (LessonState::Quarantined, Lang::Zh) => "已隔离",
        (LessonState::Merged, Lang::Zh) => "已合并",
        (LessonState::Forgotten, Lang::Zh) => "已遗忘",
    }
}

fn scope_word(scope: LessonScope, lang: Lang) -> &'static str {
    match (scope, lang) {
        (scope, Lang::En) => scope.word(),
        (LessonScope::Everywhere, Lang::Zh) => "各处",
        (LessonScope::Here, Lang::Zh) => "这里",
        (LessonScope::Elsewhere, Lang::Zh) => "别处",
        (LessonScope::Untried, Lang::Zh) => "未试",
    }
}

fn origin_word(origin: LessonOrigin, lang: Lang) -> &'static str {
    match (origin, lang) {
        (LessonOrigin::Seen, Lang::En) => "calls that were watched here",
        (LessonOrigin::Imported, Lang::En) => "a file from elsewhere",
        (LessonOrigin::Written, Lang::En) => "a person wrote it",
        (LessonOrigin::Seen, Lang::Zh) => "在这里观察到的调用",
        (LessonOrigin::Imported, Lang::Zh) => "来自别处的文件",
        (LessonOrigin::Written, Lang::Zh) => "由人编写",
    }
}

/// A line for the notes that an agent reads. Only calls that agents made are in it, and no word of an output: such notes are
/// read as if the user had written them.
pub(crate) fn note(lesson: &Lesson, lang: Lang) -> String {
    let span = |text: &str| quote::call(text, NOTE);
    let title = lesson.kind.parse::<Kind>().map(|kind| kind.title(lang)).unwrap_or_default();
    let fix = &lesson.fix;
    let deeds = fix.deeds.iter().map(|deed| match deed {
        Deed::Ran { line } => span(line),
        Deed::Edited { file, .. } => span(file),
        Deed::Called { tool, target } => span(&format!("{tool} {target}")),
    });
    let change = fix.change.as_ref().map(|change| match lang {
        Lang::En => format!("{} instead of {}", span(&change.to), span(&change.from)),
        Lang::Zh => format!("{}（代替 {}）", span(&change.to), span(&change.from)),
    });
    let how: Vec<String> = deeds.chain(change).collect();
    let (program, wins, losses) = (span(&lesson.program), lesson.record.wins, lesson.record.losses);
    let day = time::iso_day((lesson.record.won_at / 86_400_000).cast_signed());
    match (lang, wins) {
        (Lang::En, 0) => format!("- {program} ({title}): a person noted {}\n", how.join(", then ")),
        (Lang::Zh, 0) => format!("- {program}（{title}）：由人确认 {}\n", how.join("，然后 ")),
        (Lang::En, _) => format!(
            "- {program} ({title}): over after {} (worked {wins} of {} times, last {day})\n",
            how.join(", then "),
            wins + losses
        ),
        (Lang::Zh, _) => format!(
            "- {program}（{title}）：在 {} 之后解决（{} 次中 {wins} 次有效，最近 {day}）\n",
            how.join("，然后 "),
            wins + losses
        ),
    }
}

/// A lesson exactly as it is printed.
#[derive(Serialize)]
pub(crate) struct WireLesson<'l> {
    #[serde(rename = "type")]
    record: &'static str,
    id: String,
    cause: &'l str,
    kind: &'l str,
    rule: &'l str,
    tool: &'l str,
    program: &'l str,
    title: &'l str,
    fix: Option<Value>,
    state: &'static str,
    origin: &'static str,
    caution: Option<&'static str>,
    wins: u32,
    watched: u32,
    losses: u32,
    sources: BTreeMap<&'static str, u32>,
    scope: &'static str,
    score: f64,
    shown: u64,
    followed: u64,
    worked: u64,
    is_shown: bool,
    because: &'static str,
    first_at: String,
    first_at_ms: u64,
    last_at: Option<String>,
    last_at_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    places: Option<Vec<WirePlace<'l>>>,
}

#[derive(Serialize)]
struct WirePlace<'l> {
    place: &'l str,
    wins: u32,
    losses: u32,
    last_at: String,
    last_at_ms: u64,
}

impl<'l> WireLesson<'l> {
    pub(crate) fn new(lesson: &'l Lesson, now: u64) -> WireLesson<'l> {
        let fix = Some(&lesson.fix).filter(|fix| !fix.is_empty());
        WireLesson {
            record: "lesson",
            id: name(lesson.id),
            cause: &lesson.cause,
            kind: &lesson.kind,
            rule: &lesson.rule,
            tool: &lesson.tool,
            program: &lesson.program,
            title: &lesson.title,
            fix: fix.and_then(|fix| serde_json::from_str(&fix_to_json(fix)).ok()),
            state: lesson.state.word(),
            origin: lesson.origin.word(),
            caution: lesson.caution.map(|caution| caution.word()),
            wins: lesson.wins,
            watched: lesson.watched,
            losses: lesson.record.losses,
            sources: lesson.sources.iter().map(|(source, wins)| (source.word(), *wins)).collect(),
            scope: lesson.scope().word(),
            score: (lesson.record.score(now) * 1000.0).round() / 1000.0,
            shown: lesson.shown,
            followed: lesson.followed,
            worked: lesson.worked,
            is_shown: lesson.showing.is_shown(),
            because: lesson.showing.word(),
            first_at: time::iso(lesson.first_at),
            first_at_ms: lesson.first_at,
            last_at: last_win(lesson).map(time::iso),
            last_at_ms: last_win(lesson),
            places: None,
        }
    }

    /// With the places where it was tried.
    pub(crate) fn with_places(mut self, places: &'l [LessonPlace]) -> WireLesson<'l> {
        let place = |place: &'l LessonPlace| WirePlace {
            place: &place.place,
            wins: place.wins,
            losses: place.losses,
            last_at: time::iso(place.at),
            last_at_ms: place.at,
        };
        self.places = Some(places.iter().map(place).collect());
        self
    }
}
