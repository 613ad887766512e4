//! `unstuck agent`: an agent program at work without a person. It is started again where that may help, always in the session
//! that it has begun, and one line of JSON tells what came of it.

use std::io::{self, Read};
use std::time::Duration;

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_wire::redact::redact;

use crate::attempts::{self, Aloud, Story, Terms, WireStory};
use crate::cellar::Cellar;
use crate::checks::{CheckArgs, Checks};
use crate::exit::{CommandError, ExitStatus};
use crate::headless::{AgentWork, Began, Patience, Program, Reach, is_session_name};
use crate::knowledge;
use crate::settings;
use crate::ui::Ui;

/// An agent that is silent for so long hangs: its longest usual tool calls take ten minutes.
const IDLE: Duration = Duration::from_secs(15 * 60);
/// No run of an agent takes longer, where nobody says otherwise.
const LONGEST: Duration = Duration::from_secs(2 * 60 * 60);
/// How often an agent is started again, where nobody says otherwise: each start costs as much as the first.
const RETRIES: u8 = 1;
/// The longest prompt that is read.
const PROMPT_MAX_MB: usize = 10;
/// So many of the last lines are told.
const LAST_LINES: usize = 20;
/// A longer line is cut.
const LINE_MAX: usize = 2000;

/// Run an agent program without a person: retry by its policy, always in its session, and print one JSON result
///
/// Runs `claude -p`, `codex exec`, `gemini -p` or a program of your own ([agent.NAME] in the settings). A failure that may heal
/// by itself (an overloaded model, a rate limit, the network) is waited for, and the same session goes on; a failure that the
/// model can mend is told to it in its session. What has begun is never begun anew: without a session to take up, it stops and
/// says so. Agents may not write unless you say so, or their own arguments do.
#[derive(clap::Args)]
// What an agent says of its work is prose, which is doubted by what somebody asks for only.
#[command(mut_arg("no_suspicion", |arg| arg.hide(true)), after_help = "\
Examples:
  unstuck agent claude -- 'Why does the login test fail?'          one JSON line: result, session_id, attempts, diagnosis
  unstuck agent codex --may-write -- 'Fix the login test'          may change files below the working folder
  unstuck agent claude --session 5f0c… -- 'And the logout test?'   goes on in the session of an earlier run
  unstuck agent gemini -- --model gemini-2.5-pro 'Review the diff' words before the last go to the program itself
  unstuck agent codex --may-write --verify 'cargo test' -- 'Fix it' done is what passes; if not, the model is told
  git diff | unstuck agent claude --text -- -                      the prompt from standard input, the bare answer")]
pub(crate) struct AgentArgs {
    /// claude, codex, gemini, or the NAME of an [agent.NAME] in the settings
    name: String,
    /// Go on in this session of the agent's (the `session_id` of an earlier result)
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// How often it is started again at most (default: 1, or what the settings say)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=5))]
    retries: Option<u8>,
    /// End it when it prints nothing for so long, such as 90s or 10m (default: 15m)
    #[arg(long, value_name = "TIME", value_parser = span)]
    idle_timeout: Option<Duration>,
    /// End every single run of it after so long (default: 2h)
    #[arg(long, value_name = "TIME", value_parser = span)]
    timeout: Option<Duration>,
    /// It may change files: such an agent is never started over, only its session goes on
    #[arg(long, conflicts_with = "read_only")]
    may_write: bool,
    /// It may change nothing (default, unless its own arguments say otherwise)
    #[arg(long)]
    read_only: bool,
    /// How often the model is asked to mend a failure of its own
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=3))]
    max_repairs: u8,
    /// Print the result as one line of JSON (it is what happens anyway)
    #[arg(long, conflicts_with = "text")]
    json: bool,
    /// Print only the agent's answer
    #[arg(long)]
    text: bool,
    /// Arguments for the program, and last the prompt; `-` reads the prompt from standard input
    #[arg(last = true, required = true, value_name = "ARGS… PROMPT")]
    words: Vec<String>,
    #[command(flatten)]
    checks: CheckArgs,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &AgentArgs) -> Result<ExitStatus, CommandError> {
    let rules = knowledge::load(ui, &[])?;
    let checks = Checks::new(&args.checks, ui.lang())?;
    let (prompt, extra) = match args.words.split_last() {
        Some((prompt, extra)) => (read_prompt(prompt)?, extra),
        None => return Err(CommandError::NothingToRead),
    };
    let asked = match (args.may_write, args.read_only) {
        (true, _) => Some(Reach::MayWrite),
        (false, true) => Some(Reach::ReadOnly),
        (false, false) => None,
    };
    let program = Program::named(&args.name, &cellar.settings, extra, asked)?;
    if let Some(name) = args.session.as_ref().filter(|name| !is_session_name(name)) {
        return Err(CommandError::NoSessionName { name: name.clone() });
    }
    if args.session.is_some() && !program.can_resume() {
        return Err(CommandError::NoWayToResume { agent: program.name });
    }
    let set = cellar.settings.agent(&args.name);
    let idle = args.idle_timeout.or_else(|| set.as_ref()?.idle_timeout).unwrap_or(IDLE);
    let limit = args.timeout.or_else(|| set.as_ref()?.timeout).unwrap_or(LONGEST);
    let said = args.retries.or(program.retries);
    let terms = Terms {
        door: "agent",
        // The policy's row for this program holds, unless a person said something else.
        agent: if said.is_some() { "main".to_owned() } else { program.name.clone() },
        session: attempts::session("agent", None),
        retries: Some(said.unwrap_or(RETRIES)),
        // What an agent did not get done is told to it; doing it once more is no help.
        tries_guesses: false,
        deadline: None,
        limit: Some(limit),
        // Its session goes on, which is not the same thing twice; where it cannot, the work itself says so.
        idempotent: true,
        aloud: Aloud::Lines,
    };
    let (model, patience) = (cellar.settings.language().model, Patience { idle });
    let session = args.session.clone();
    let mut work = AgentWork::new(&rules, program, patience, model, prompt, session, checks);
    let mut story = attempts::carry_out(ui, cellar, &rules, &terms, &mut work)?;
    let mut repairs = 0;
    while repairs < args.max_repairs && story.last().is_some_and(|tried| work.ask_to_repair(tried)) {
        repairs += 1;
        ui.remark(&asking_to_repair(repairs, args.max_repairs, ui.lang()))?;
        let next = attempts::carry_out(ui, cellar, &rules, &terms, &mut work)?;
        story = story.followed_by(next);
    }
    tell(ui, args, &work, &story, repairs)
}

/// The prompt, as it stands on the line or as it is piped in.
fn read_prompt(word: &str) -> Result<String, CommandError> {
    if word != "-" {
        return Ok(word.to_owned());
    }
    let most = PROMPT_MAX_MB << 20;
    let mut bytes = Vec::new();
    io::stdin().lock().take(most as u64 + 1).read_to_end(&mut bytes).map_err(CommandError::Input)?;
    match bytes.len() > most {
        true => Err(CommandError::LongPrompt { most_mb: PROMPT_MAX_MB }),
        false => Ok(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Reads a time such as `90s`.
fn span(text: &str) -> Result<Duration, String> {
    let time = settings::time(text).filter(|time| !time.is_zero());
    time.ok_or_else(|| "expected a time such as 90s, 10m or 2h".to_owned())
}

fn asking_to_repair(number: u8, of: u8, lang: Lang) -> String {
    match lang {
        Lang::En => format!("the model is asked to mend it, in its session: {number} of {of}\n"),
        Lang::Zh => format!("请模型在其会话中修复：第 {number} 次，共 {of} 次\n"),
    }
}

/// Says which attempts began anew, and why that did no harm; nothing where none did.
fn started_over(work: &AgentWork<'_>, lang: Lang) -> String {
    let anew = work.laps().iter().zip(1..).skip(1).filter(|(lap, _)| lap.began == Began::Anew);
    let said = anew.map(|(_, number)| match lang {
        Lang::En => {
            format!("attempt {number} began in a new session: no model had answered, and there was none to go on in\n")
        }
        Lang::Zh => format!("第 {number} 次尝试在新会话中开始：之前模型没有应答，也没有可以继续的会话\n"),
    });
    said.collect()
}

/// Prints what came of it: the result on standard output, the cause of a failure on standard error.
fn tell(
    ui: &mut Ui,
    args: &AgentArgs,
    work: &AgentWork<'_>,
    story: &Story,
    repairs: u8,
) -> Result<ExitStatus, CommandError> {
    let said = started_over(work, ui.lang()) + &story.in_words(None, ui.lang());
    ui.aside(&said);
    let answer = work.laps().last().map(|lap| lap.answer.trim_end()).unwrap_or_default();
    match (args.text, answer.is_empty()) {
        (true, true) => {}
        (true, false) => ui.say(&format!("{answer}\n"))?,
        (false, _) => ui.json(&WireAgentRun::new(&args.name, work, story, repairs))?,
    }
    Ok(ExitStatus::Command(story.code()))
}

/// The result exactly as it is printed.
#[derive(Serialize)]
struct WireAgentRun<'a> {
    agent: &'a str,
    /// The agent's own, by which it can be taken up again.
    session_id: Option<&'a str>,
    result: Option<&'a str>,
    /// How each attempt began: in a `new` session, or `resumed`.
    began: Vec<&'static str>,
    repairs: u8,
    last_lines: Vec<String>,
    #[serde(flatten)]
    story: Option<WireStory<'a>>,
}

impl<'a> WireAgentRun<'a> {
    fn new(agent: &'a str, work: &'a AgentWork<'_>, story: &'a Story, repairs: u8) -> WireAgentRun<'a> {
        let last = work.laps().last();
        let lines: Vec<&str> = last.map(|lap| lap.last.lines().collect()).unwrap_or_default();
        let shortened = |line: &&str| redact(&line[..line.floor_char_boundary(LINE_MAX)]).into_owned();
        WireAgentRun {
            agent,
            session_id: work.session(),
            result: last.map(|lap| lap.answer.trim_end()).filter(|answer| !answer.is_empty()),
            began: work.laps().iter().map(|lap| lap.began.word()).collect(),
            repairs,
            last_lines: lines[lines.len().saturating_sub(LAST_LINES)..].iter().map(shortened).collect(),
            story: story.to_wire(),
        }
    }
}
