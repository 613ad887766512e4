//! `unstuck demo`: a scripted agent makes real calls through the real hook, and a person watches what becomes of them.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_store::{Bookmark, EventType, StoredEvent, Wanted};
use unstuck_wire::time;

use crate::cellar::{self, Cellar};
use crate::demo::{Act, Agent, CHAPTERS, Chapter, Ended, Screen, Stage, Step, Telling};
use crate::event_line;
use crate::exit::{CommandError, ExitStatus};
use crate::moment;
use crate::plain;
use crate::settings::{Around, Key, Settings};
use crate::switch::{self, Switch};
use crate::ui::{self, Ui};

/// How long a person has for a line of text, and for a chapter's head.
const TO_READ_STEP: Duration = Duration::from_millis(1200);
const TO_READ_HEAD: Duration = Duration::from_millis(1800);

/// Watch what unstuck does: a scripted agent makes real calls that fail
///
/// Nothing is needed and nothing of yours is touched: the calls are made by a script, run in a temporary folder, and go
/// through the same hook that `unstuck install` puts into your agent. It takes less than a minute. If anything is not as it
/// should be, it says so and exits 1.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck demo              watch it
  unstuck demo --quick      without pauses to read in
  unstuck demo --keep       leave the folder with its store behind, to look around in
  unstuck demo --json       one object per step")]
pub(crate) struct DemoArgs {
    /// No pauses to read in
    #[arg(long)]
    quick: bool,
    /// Leave the temporary folder behind, and say where it is
    #[arg(long)]
    keep: bool,
    /// One JSON object per step, and one for the end
    #[arg(long)]
    json: bool,
}

/// One step exactly as it is printed.
#[derive(Serialize)]
struct WireStep<'a> {
    #[serde(rename = "type")]
    record: &'static str,
    chapter: &'a str,
    call: &'a str,
    decision: &'a str,
    told: Option<&'a str>,
    ran: Option<&'a str>,
    exit: Option<i32>,
    held_ms: u64,
    ok: bool,
}

/// How often a script ran.
#[derive(Serialize)]
struct WireCount<'a> {
    #[serde(rename = "type")]
    record: &'static str,
    chapter: &'a str,
    file: &'a str,
    runs: usize,
    ok: bool,
}

/// What a person took back.
#[derive(Serialize)]
struct WireUndo<'a> {
    #[serde(rename = "type")]
    record: &'static str,
    chapter: &'a str,
    files: Vec<&'a str>,
    ok: bool,
}

/// The end.
#[derive(Serialize)]
struct WireEnd<'a> {
    #[serde(rename = "type")]
    record: &'static str,
    state: &'static str,
    calls: usize,
    refused: usize,
    waited_ms: u64,
    unmet: usize,
    folder: Option<&'a Path>,
}

impl<'a> WireStep<'a> {
    fn new(chapter: &'a Chapter, step: &'a Step, ok: bool) -> WireStep<'a> {
        WireStep {
            record: "step",
            chapter: chapter.name,
            call: &step.call,
            decision: step.decision.word(),
            told: Some(step.told.as_str()).filter(|told| !told.is_empty()),
            ran: step.ran.as_deref(),
            exit: match step.ended {
                Ended::Exited(code) => Some(code),
                Ended::NotRun | Ended::Changed | Ended::Lost => None,
            },
            held_ms: time::span_ms(step.held),
            ok,
        }
    }
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &DemoArgs) -> Result<ExitStatus, CommandError> {
    let switch = Switch::at(cellar.folder().ok(), cellar::now());
    if switch != Switch::On || !cellar.settings.hook().enabled {
        return refuse_to_pretend(ui, switch, args);
    }
    let lang = ui.lang();
    let mut stage = Stage::set_up(match lang {
        Lang::En => "en",
        Lang::Zh => "zh",
    })?;
    let mut show = Show::new(lang, args);
    let kept = args.keep.then(|| stage.keep().to_owned());
    if let Some(signal) = show.play(ui, &mut stage)? {
        return Ok(ExitStatus::Command(u8::try_from(128 + signal).unwrap_or(u8::MAX)));
    }
    show.end(ui, &stage, kept.as_deref())?;
    Ok(if show.unmet == 0 { ExitStatus::Success } else { ExitStatus::No })
}

/// Where everything is switched off, there is nothing to see.
fn refuse_to_pretend(ui: &mut Ui, switch: Switch, args: &DemoArgs) -> Result<ExitStatus, CommandError> {
    if args.json {
        let state = if switch == Switch::On { "disabled" } else { switch.word() };
        let nothing =
            WireEnd { record: "end", state, calls: 0, refused: 0, waited_ms: 0, unmet: 0, folder: None };
        ui.json(&nothing)?;
        return Ok(ExitStatus::No);
    }
    let variable = switch::VARIABLE;
    ui.say(&match (switch, ui.lang()) {
        (Switch::Disabled, Lang::En) => {
            format!("unstuck is switched off here: {variable} is set. There is nothing to see until it is unset.\n")
        }
        (Switch::Disabled, Lang::Zh) => format!("unstuck 在此处已关闭：设置了 {variable}。取消该变量之前没有可看的。\n"),
        (Switch::Paused(until), Lang::En) => format!(
            "unstuck is paused until {}. There is nothing to see before; `unstuck resume` ends the pause.\n",
            moment::format_utc(until)
        ),
        (Switch::Paused(until), Lang::Zh) => {
            format!("unstuck 已暂停至 {}。在此之前没有可看的；`unstuck resume` 结束暂停。\n", moment::format_utc(until))
        }
        (Switch::On, Lang::En) => {
            "unstuck is switched off: hook.enabled is false. `unstuck config explain hook.enabled` says where.\n".to_owned()
        }
        (Switch::On, Lang::Zh) => {
            "unstuck 已关闭：hook.enabled 为 false。`unstuck config explain hook.enabled` 显示在何处设置。\n".to_owned()
        }
    })?;
    Ok(ExitStatus::No)
}

/// The demonstration as it goes, and what was seen of it.
struct Show {
    screen: Screen,
    is_json: bool,
    has_pauses: bool,
    calls: usize,
    refused: usize,
    waited: Duration,
    unmet: usize,
    last_told: String,
    /// How many calls the timeline says were held.
    holds: usize,
}

impl Show {
    fn new(lang: Lang, args: &DemoArgs) -> Show {
        Show {
            screen: Screen { lang, has_colour: ui::output_has_colour() },
            is_json: args.json,
            has_pauses: !args.quick && !args.json && ui::output_is_terminal(),
            calls: 0,
            refused: 0,
            waited: Duration::ZERO,
            unmet: 0,
            last_told: String::new(),
            holds: 0,
        }
    }

    /// Plays all chapters, or until a signal ends it.
    fn play(&mut self, ui: &mut Ui, stage: &mut Stage) -> Result<Option<i32>, CommandError> {
        let mut agent = Agent::new();
        self.say(ui, &self.screen.opening())?;
        agent.begin(stage, "startup");
        for (number, chapter) in CHAPTERS.iter().enumerate() {
            self.say(ui, &self.screen.chapter(number + 1, chapter))?;
            if let Some(signal) = self.pause(stage, TO_READ_HEAD) {
                return Ok(Some(signal));
            }
            stage.allow_programs(chapter.programs);
            for (name, content) in chapter.files {
                stage.put(name, content)?;
            }
            agent.hear(stage, chapter.prompt);
            for act in chapter.acts {
                self.act(ui, stage, &mut agent, chapter, *act)?;
                let mut stopped = agent.stopped;
                if stopped.is_none() && !chapter.is_hasty {
                    stopped = self.pause(stage, TO_READ_STEP);
                }
                if stopped.is_some() {
                    return Ok(stopped);
                }
            }
        }
        Ok(None)
    }

    /// Does one thing, and shows it.
    fn act(
        &mut self,
        ui: &mut Ui,
        stage: &Stage,
        agent: &mut Agent,
        chapter: &Chapter,
        act: Act,
    ) -> Result<(), CommandError> {
        let (mut step, missed) = match act {
            Act::Run { command, expect } => {
                let step = agent.run(stage, command);
                let missed = expect.missed(&step);
                (step, missed)
            }
            Act::Edit { file, from, to } => {
                let step = agent.edit(stage, file, from, to)?;
                let missed = (step.ended != Ended::Changed).then_some(["the file is changed", "文件被修改"]);
                (step, missed)
            }
            Act::Vanish { command } => {
                let step = agent.vanish(stage, command);
                let missed =
                    (step.ended != Ended::Lost).then_some(["it runs and is cut off", "运行并被中断"]);
                (step, missed)
            }
            Act::Resume => {
                return self.resume(ui, stage, agent, chapter);
            }
            Act::Count { file, runs } => {
                return self.count(ui, stage, chapter, file, runs);
            }
            Act::Undo => {
                return self.undo(ui, stage, chapter);
            }
        };
        if step.held > Duration::ZERO {
            // A machine that is busy makes a hook slow, too. The timeline knows which it was.
            let holds = holds(stage)?;
            if holds == self.holds {
                step.held = Duration::ZERO;
            }
            self.holds = holds;
        }
        self.calls += 1;
        self.refused += usize::from(step.is_refused());
        self.waited += step.held;
        let telling = match chapter.is_brief {
            true => Telling::Briefly,
            false if step.told == self.last_told => Telling::AsBefore,
            false => Telling::InFull,
        };
        let text = self.screen.step(&step, telling);
        self.last_told.clone_from(&step.told);
        self.show(ui, &WireStep::new(chapter, &step, missed.is_none()), &text, missed)
    }

    fn resume(
        &mut self,
        ui: &mut Ui,
        stage: &Stage,
        agent: &mut Agent,
        chapter: &Chapter,
    ) -> Result<(), CommandError> {
        let told = agent.begin(stage, "resume");
        let missed = told.is_empty().then_some(["the agent is told of the call", "告知智能体该调用"]);
        let line = WireStep {
            record: "resume",
            chapter: chapter.name,
            call: "",
            decision: "none",
            told: Some(told.as_str()).filter(|told| !told.is_empty()),
            ran: None,
            exit: None,
            held_ms: 0,
            ok: missed.is_none(),
        };
        let text = self.screen.resumed(&told);
        self.show(ui, &line, &text, missed)
    }

    fn count(
        &mut self,
        ui: &mut Ui,
        stage: &Stage,
        chapter: &Chapter,
        file: &str,
        expected: usize,
    ) -> Result<(), CommandError> {
        let runs = stage.count(file);
        let missed = (runs != expected).then_some(["what was refused did not run", "被拒绝的没有运行"]);
        let line = WireCount { record: "count", chapter: chapter.name, file, runs, ok: missed.is_none() };
        let text = self.screen.count(file, runs);
        self.show(ui, &line, &text, missed)
    }

    fn undo(&mut self, ui: &mut Ui, stage: &Stage, chapter: &Chapter) -> Result<(), CommandError> {
        let lang = match self.screen.lang {
            Lang::En => "en",
            Lang::Zh => "zh",
        };
        let is_gone = |(name, _): &(&str, &str)| !stage.project().join(name).exists();
        let were_gone = chapter.files.iter().all(is_gone);
        let printed = stage.unstuck(&format!("--lang {lang} undo")).output;
        let is_back = |(name, content): &&(&str, &str)| stage.read(name).is_ok_and(|text| text == *content);
        let files: Vec<&str> = chapter.files.iter().filter(is_back).map(|(name, _)| *name).collect();
        let is_as_it_was = were_gone && files.len() == chapter.files.len();
        let missed = (!is_as_it_was).then_some(["the files are back", "文件已恢复"]);
        let text = self.screen.undone(&printed, &files);
        let line = WireUndo { record: "undo", chapter: chapter.name, files, ok: missed.is_none() };
        self.show(ui, &line, &text, missed)
    }

    /// Shows one thing, and what was to be seen instead.
    fn show(
        &mut self,
        ui: &mut Ui,
        line: &impl Serialize,
        text: &str,
        missed: Option<[&'static str; 2]>,
    ) -> Result<(), CommandError> {
        self.unmet += usize::from(missed.is_some());
        if self.is_json {
            ui.json(line)?;
            return ui.finish();
        }
        self.say(ui, text)?;
        match missed {
            Some(words) => self.say(ui, &self.screen.unmet(words)),
            None => Ok(()),
        }
    }

    /// The timeline, the figures, and where everything lies.
    fn end(&mut self, ui: &mut Ui, stage: &Stage, kept: Option<&Path>) -> Result<(), CommandError> {
        if self.is_json {
            return ui.json(&WireEnd {
                record: "end",
                state: Switch::On.word(),
                calls: self.calls,
                refused: self.refused,
                waited_ms: time::span_ms(self.waited),
                unmet: self.unmet,
                folder: kept,
            });
        }
        self.say(ui, &self.screen.timeline_head())?;
        for event in events(stage)?.iter().filter(|event| is_shown(event)) {
            ui.say_coloured(&self.screen.event(&event_line::of_session(event, self.screen.lang)))?;
        }
        self.say(ui, &self.screen.figures(self.calls, self.refused, self.waited, self.unmet))?;
        let Some(folder) = kept else { return Ok(()) };
        let (folder, state) = (folder.display(), stage.state());
        let look = format!("unstuck --set store.state-dir={} log", state.display());
        ui.say(&plain::lines(&match self.screen.lang {
            Lang::En => format!("Everything is left in {folder}\nLook around: {look}\n"),
            Lang::Zh => format!("全部内容保留在 {folder}\n查看：{look}\n"),
        }))
    }

    /// Says something to a person; nothing where JSON is wanted.
    fn say(&self, ui: &mut Ui, text: &str) -> Result<(), CommandError> {
        if !self.is_json {
            ui.say(text)?;
            ui.finish()?;
        }
        Ok(())
    }

    /// Leaves time to read. Returns the signal by which the person ended it.
    fn pause(&self, stage: &Stage, time: Duration) -> Option<i32> {
        self.has_pauses.then(|| stage.pause(time)).flatten()
    }
}

/// All that the store has heard of.
fn events(stage: &Stage) -> Result<Vec<StoredEvent>, CommandError> {
    let around = Around::here();
    let settings =
        [(Key::StateDir, stage.state().display().to_string()), (Key::Filesystem, "local".to_owned())];
    let flags = settings.map(|(key, value)| format!("{}={value}", key.row().name));
    let store = Cellar::new(&around, Settings::load(&around, &flags)?).to_read()?;
    let everything = Wanted::default();
    let mut events = Vec::new();
    store.events(&everything, Bookmark(0), store.newest()?, |event| {
        events.push(event);
        Ok::<(), CommandError>(())
    })?;
    Ok(events)
}

/// How often a call was held back so far.
fn holds(stage: &Stage) -> Result<usize, CommandError> {
    let is_hold = |event: &&StoredEvent| event.kind.parse() == Ok(EventType::ToolRetry);
    Ok(events(stage)?.iter().filter(is_hold).count())
}

/// Is it worth a line, after all that was shown before? What only a newer version knows is.
fn is_shown(event: &StoredEvent) -> bool {
    match event.kind.parse() {
        Ok(EventType::ToolEnd | EventType::ToolAdvice | EventType::Error) => false,
        Ok(EventType::ProblemNew | EventType::ProblemRegressed) => false,
        Ok(
            EventType::ToolStart
            | EventType::ToolRetry
            | EventType::ToolError
            | EventType::ToolDenied
            | EventType::ToolSealed
            | EventType::ToolRewritten
            | EventType::OwnFault
            | EventType::Budget
            | EventType::Breaker
            | EventType::FalseAlarm
            | EventType::LessonShown
            | EventType::LessonRegressed
            | EventType::Alert
            | EventType::Ask
            | EventType::Halt
            | EventType::SnapshotTaken
            | EventType::SnapshotFailed
            | EventType::SnapshotRestored
            | EventType::SnapshotRemoved
            | EventType::ServerStarted
            | EventType::ServerExited
            | EventType::ServerRestarted
            | EventType::ServerGaveUp
            | EventType::ServerRecovered
            | EventType::ServerUnresponsive
            | EventType::ServerNoise
            | EventType::ServerToolsChanged
            | EventType::ServerRemark,
        )
        | Err(_) => true,
    }
}
