//! One recurring problem on one page, and its line in the list of all.

use std::fmt::Write as _;

use serde::Serialize;
use unstuck_judge::rules::Shape;
use unstuck_judge::{Diagnosis, FixBy, Kind, Lang, Proof, Rules};
use unstuck_store::{Problem, ProblemAges, ProblemSession, ProblemState, Store, StoreError, StoredCall};
use unstuck_wire::time;

use crate::columns::{self, Side};
use crate::wire_call::WireCall;
use crate::{moment, plain};

/// How many days a trend shows.
pub(crate) const TREND: usize = 14;
/// How many of the last calls are listed.
const CALLS: u32 = 10;
/// How many sessions are listed for people.
const SESSIONS: usize = 10;

/// One problem with all that belongs to it.
pub(crate) struct ProblemPage {
    problem: Problem,
    state: ProblemState,
    trend: Vec<u64>,
    sessions: Vec<ProblemSession>,
    calls: Vec<StoredCall>,
    remedies: Vec<String>,
}

impl ProblemPage {
    pub(crate) fn read(
        store: &Store,
        problem: Problem,
        now: u64,
        ages: &ProblemAges,
        lang: Lang,
    ) -> Result<ProblemPage, StoreError> {
        let calls = store.calls_stopped_by(&problem.cause, CALLS)?;
        let mut remedies = remedies(&problem, lang);
        if remedies.is_empty() {
            remedies = told(store, calls.first())?;
        }
        Ok(ProblemPage {
            state: ProblemState::of(&problem.times, now, ages),
            trend: store.problem_trend(&problem.cause, now, TREND)?,
            sessions: store.problem_sessions(&problem.cause)?,
            calls,
            remedies,
            problem,
        })
    }

    /// The page as JSON.
    pub(crate) fn to_wire(&self) -> WireProblemPage<'_> {
        let session = |session: &'_ ProblemSession| WireProblemSession {
            session: session.session.clone(),
            count: session.count,
            last_at: time::iso(session.last_at),
            last_at_ms: session.last_at,
        };
        WireProblemPage {
            kind: "problem",
            problem: WireStandingProblem::new(&self.problem, self.state, &self.trend),
            sessions: self.sessions.iter().map(session).collect(),
            calls: self.calls.iter().map(WireCall::new).collect(),
            remedies: &self.remedies,
        }
    }

    /// The page for people.
    pub(crate) fn text(&self, now: u64, lang: Lang) -> String {
        let problem = &self.problem;
        let say = |en: &'static str, zh: &'static str| match lang {
            Lang::En => en,
            Lang::Zh => zh,
        };
        let title = problem.kind.parse::<Kind>().map(|kind| kind.title(lang)).unwrap_or_default();
        let mut page = format!("{}  {}: {title}\n", plain::line(&problem.cause), plain::line(&problem.kind));
        let mut row = |name: &str, text: &str| {
            if !text.is_empty() {
                let _ = writeln!(page, "  {} {}", columns::left(name, 10), plain::line(text));
            }
        };
        let moment = |at: u64| format!("{} ({})", moment::format_utc(at), moment::ago(at, now, lang));
        let since = |at: Option<u64>| at.map(moment).unwrap_or_default();
        row(say("shown by", "表现"), &problem.title);
        row(say("state", "状态"), state_word(self.state, lang));
        row(say("count", "次数"), &problem.count.to_string());
        row(say("first", "首次"), &moment(problem.times.first_at));
        row(say("last", "最近"), &moment(problem.times.last_at));
        row(say("resolved", "解决于"), &since(problem.times.resolved_at));
        row(say("came back", "复发于"), &since(problem.times.regressed_at));
        row(say("tools", "工具"), &problem.tools.join(", "));
        row(say("rule", "规则"), &problem.rule);
        let numbers: Vec<String> = self.trend.iter().map(u64::to_string).collect();
        row(say("14 days", "14 天"), &format!("{}  {}", sparkline(&self.trend), numbers.join(" ")));
        let mut section = |title: &str, text: String| {
            if !text.is_empty() {
                let _ = write!(page, "\n{title}\n{text}");
            }
        };
        let advice = self.remedies.iter().map(|text| format!("  {}\n", plain::line(text))).collect();
        section(say("What helps", "解决办法"), advice);
        let sessions: Vec<Vec<String>> = self
            .sessions
            .iter()
            .take(SESSIONS)
            .map(|session| {
                let name = format!("  {}", plain::short(&session.session, 60));
                vec![name, format!("{}×", session.count), moment::ago(session.last_at, now, lang)]
            })
            .collect();
        let title = format!("{} ({})", say("Sessions", "会话"), self.sessions.len());
        section(&title, columns::table(&[Side::Left, Side::Right, Side::Left], &sessions));
        let calls: Vec<Vec<String>> = self
            .calls
            .iter()
            .map(|call| {
                vec![
                    format!("  #{}", call.id),
                    moment::format_utc(call.asked_at),
                    plain::short(&call.tool, 20),
                    plain::short(&call.label, 80),
                ]
            })
            .collect();
        section(say("Last calls", "最近的调用"), columns::table(&[Side::Left; 4], &calls));
        page
    }
}

/// What helps against a cause: what its rule advises, or else its kind. The thing it is about differs from call to call, so
/// remedies that name one are left out.
fn remedies(problem: &Problem, lang: Lang) -> Vec<String> {
    let Ok(kind) = problem.kind.parse::<Kind>() else { return Vec::new() };
    let rules = Rules::built_in();
    let rule = rules.tables().iter().flat_map(|table| table.rules()).find(|rule| rule.id() == problem.rule);
    let advice = rule.map(|rule| rule.advice().iter().map(str::to_owned).collect()).unwrap_or_default();
    let diagnosis = Diagnosis {
        kind,
        stage: None,
        confidence: 1.0,
        rule: problem.rule.clone(),
        evidence: None,
        subject: None,
        shape: Shape::Name,
        transient: false,
        fix_by: FixBy::Nobody,
        effect: None,
        hint: None,
        advice,
        proof: Proof::Proven,
        is_elsewhere: false,
    };
    diagnosis.recommendations(lang)
}

/// What was advised with the last call.
fn told(store: &Store, call: Option<&StoredCall>) -> Result<Vec<String>, StoreError> {
    let Some(call) = call else { return Ok(Vec::new()) };
    let verdict = store.call_text(call.id)?.read_verdict();
    let advice = verdict["recommendations"].as_array().into_iter().flatten();
    Ok(advice.filter_map(|text| text.as_str().map(str::to_owned)).collect())
}

/// The state for people.
pub(crate) fn state_word(state: ProblemState, lang: Lang) -> &'static str {
    match (state, lang) {
        (state, Lang::En) => state.word(),
        (ProblemState::Regressed, Lang::Zh) => "复发",
        (ProblemState::New, Lang::Zh) => "新出现",
        (ProblemState::Known, Lang::Zh) => "已知",
        (ProblemState::Resolved, Lang::Zh) => "已解决",
    }
}

/// Numbers as bars, the largest one full. A day with anything at all is never as flat as a day without.
pub(crate) fn sparkline(numbers: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = numbers.iter().copied().max().unwrap_or(0);
    let bar = |number: u64| match number {
        0 => '·',
        number => BARS[usize::try_from((u128::from(number) * 8).div_ceil(u128::from(most)) - 1).unwrap_or(7)],
    };
    numbers.iter().map(|number| bar(*number)).collect()
}

/// A problem exactly as it is printed.
#[derive(Serialize)]
pub(crate) struct WireProblem<'p> {
    cause: &'p str,
    kind: &'p str,
    title: &'p str,
    rule: Option<&'p str>,
    tools: &'p [String],
    count: u64,
    first_at: String,
    first_at_ms: u64,
    last_at: String,
    last_at_ms: u64,
    resolved_at: Option<String>,
    resolved_at_ms: Option<u64>,
    regressed_at: Option<String>,
    regressed_at_ms: Option<u64>,
}

impl<'p> WireProblem<'p> {
    pub(crate) fn new(problem: &'p Problem) -> WireProblem<'p> {
        let times = &problem.times;
        WireProblem {
            cause: &problem.cause,
            kind: &problem.kind,
            title: &problem.title,
            rule: Some(&*problem.rule).filter(|rule| !rule.is_empty()),
            tools: &problem.tools,
            count: problem.count,
            first_at: time::iso(times.first_at),
            first_at_ms: times.first_at,
            last_at: time::iso(times.last_at),
            last_at_ms: times.last_at,
            resolved_at: times.resolved_at.map(time::iso),
            resolved_at_ms: times.resolved_at,
            regressed_at: times.regressed_at.map(time::iso),
            regressed_at_ms: times.regressed_at,
        }
    }
}

/// A problem with how it stands at this moment.
#[derive(Serialize)]
pub(crate) struct WireStandingProblem<'p> {
    #[serde(flatten)]
    problem: WireProblem<'p>,
    state: &'static str,
    trend: &'p [u64],
}

impl<'p> WireStandingProblem<'p> {
    pub(crate) fn new(
        problem: &'p Problem,
        state: ProblemState,
        trend: &'p [u64],
    ) -> WireStandingProblem<'p> {
        WireStandingProblem { problem: WireProblem::new(problem), state: state.word(), trend }
    }
}

/// A problem's page exactly as it is printed.
#[derive(Serialize)]
pub(crate) struct WireProblemPage<'p> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    problem: WireStandingProblem<'p>,
    sessions: Vec<WireProblemSession>,
    calls: Vec<WireCall<'p>>,
    remedies: &'p [String],
}

#[derive(Serialize)]
struct WireProblemSession {
    session: String,
    count: u64,
    last_at: String,
    last_at_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_shows_every_day_that_had_something() {
        let check = |numbers: &[u64], expected: &str| assert_eq!(sparkline(numbers), expected);
        check(&[0, 0, 0], "···");
        check(&[0, 1, 1000], "·▁█");
        check(&[5, 5], "██");
        check(&[1, 2, 3, 4, 5, 6, 7, 8], "▁▂▃▄▅▆▇█");
        check(&[0, u64::MAX], "·█");
        check(&[], "");
    }
}
