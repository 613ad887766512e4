//! `unstuck replay`: what unstuck would have done, call by call, on a run that somebody recorded.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Serialize;
use unstuck_judge::ladder::{Decision, Judged, Preset, Recorded, Replay, Round, Rung, Settings};
use unstuck_judge::{Lang, Rules};
use unstuck_wire::recorded::{MAIN_AGENT, RecordedCall};
use unstuck_wire::transcript::{self, Format, Reader};

use crate::cellar::Cellar;
use crate::exit::{CommandError, ExitStatus};
use crate::knowledge;
use crate::lines::Lines;
use crate::recorder::Recorder;
use crate::regular_file;
use crate::removed;
use crate::summary::Summary;
use crate::ui::{self, Ui};

/// How many lines may pass before a run must show whose it is.
const SNIFF_LINES: usize = 200;

/// Show what unstuck would have done on a recorded run, call by call
///
/// Reads recorded calls (one JSON object per line), and what Claude Code, Codex, Gemini CLI and Qwen Code write down; the format
/// is recognised by itself. Without --jsonl a summary is printed: failures, repeats, what would have been stopped, time wasted.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck replay ~/.claude/projects/my-app/*.jsonl       what your last sessions would have been spared
  unstuck replay --jsonl < calls.jsonl                   one decision per call, machine-readable
  unstuck replay --preset classic run.jsonl              hint at 3 equal failures, deny at 5
  unstuck replay --record ~/.claude/projects             put your past sessions into the timeline: see `unstuck stats`

Each line of recorded calls has: trace, i, tool, input, ok, output; and may have: exit_code, new_user_turn, ts, round, agent,
id, duration_ms, cwd.")]
pub(crate) struct ReplayArgs {
    /// Transcripts, or folders of them (default: standard input)
    files: Vec<PathBuf>,
    /// Print one decision per call as JSON
    #[arg(long)]
    jsonl: bool,
    /// Also put every call into the timeline, as it happened; what is there already is not put there twice
    #[arg(long)]
    record: bool,
    /// How soon to step in: `adaptive`, or `classic` (hint at 3 equal failures, deny at 5)
    #[arg(long, value_name = "NAME", default_value = "adaptive", value_parser = ["adaptive", "classic"])]
    preset: String,
    /// Use these rules before all others (may be given several times)
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &ReplayArgs) -> Result<ExitStatus, CommandError> {
    let rules = knowledge::load(ui, &args.rules)?;
    let settings = Settings::of(args.preset.parse().unwrap_or(Preset::Adaptive));
    let cleaner = cellar.cleaner();
    let mut player = Player {
        rules: &rules,
        settings: &settings,
        runs: HashMap::new(),
        jsonl: args.jsonl,
        summary: Summary::default(),
        recorder: args.record.then(|| Recorder::new(cellar, &cleaner, "replay")),
        recorded: 0,
        known: 0,
    };
    if args.files.is_empty() {
        if ui::input_is_terminal() {
            return Err(CommandError::NothingToRead);
        }
        player.play(ui, &mut BufReader::with_capacity(256 * 1024, io::stdin().lock()))?;
    }
    for path in transcripts(&args.files)? {
        let is_named = args.files.contains(&path);
        match if is_named { File::open(&path) } else { regular_file::open(&path) } {
            Ok(file) => player.play(ui, &mut BufReader::with_capacity(256 * 1024, file))?,
            // Of a folder's transcripts one may be locked or gone; a file that was named must be readable.
            Err(error) if !is_named => {
                ui.remark(&format!("unstuck: {}: {error}\n", path.display()))?;
            }
            Err(source) => return Err(CommandError::Unreadable { path, source }),
        }
    }
    if !args.jsonl {
        let text = player.summary.text(ui.lang());
        ui.say(&text)?;
    }
    if let Some(recorder) = &mut player.recorder {
        recorder.take_all(&rules);
        player.write()?;
        let text = told(player.recorded, player.known, ui.lang());
        ui.remark(&text)?;
    }
    Ok(ExitStatus::Success)
}

/// How much was recorded.
fn told(recorded: u64, known: u64, lang: Lang) -> String {
    let mut text = match lang {
        Lang::En => format!("recorded: {}", removed::counted(recorded, ["call", "calls"])),
        Lang::Zh => format!("已记录 {recorded} 次调用"),
    };
    if known > 0 {
        text += &match lang {
            Lang::En => format!(", {known} were there already"),
            Lang::Zh => format!("，{known} 次已有记录"),
        };
    }
    text + "\n"
}

/// The files that were named, and the transcripts in the folders that were named, in the order of their names.
fn transcripts(named: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut found = Vec::new();
    for path in named {
        match path.is_dir() {
            true => walk(path, &mut found)?,
            false => found.push(path.clone()),
        }
    }
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    let unreadable = |source| CommandError::Unreadable { path: folder.to_owned(), source };
    let mut entries: Vec<_> = fs::read_dir(folder).map_err(unreadable)?.flatten().collect();
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        // A link to a folder is not followed, so that no circle is walked.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), found)?,
            Ok(_) if entry.path().extension().is_some_and(|extension| extension == "jsonl") => {
                found.push(entry.path())
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Judges the calls of any number of runs, each with a standing of its own.
struct Player<'r> {
    rules: &'r Rules,
    settings: &'r Settings,
    runs: HashMap<String, Replay<'r>>,
    jsonl: bool,
    summary: Summary,
    recorder: Option<Recorder<'r>>,
    recorded: u64,
    known: u64,
}

/// One decision exactly as it is printed.
#[derive(Serialize)]
struct WireDecision<'a> {
    trace: &'a str,
    i: u64,
    before: &'static str,
    after: &'static str,
    key: Option<&'static str>,
    count: Option<u32>,
    kind: &'static str,
    rule: Option<&'a str>,
}

impl Player<'_> {
    /// Plays one input to its end.
    fn play(&mut self, ui: &mut Ui, input: &mut dyn BufRead) -> Result<(), CommandError> {
        let mut lines = Lines::new(input);
        let mut waiting: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut reader: Option<Reader> = None;
        while let Some(line) = lines.next().map_err(CommandError::Input)? {
            let text = match line.text {
                Ok(text) => text,
                Err(what) => {
                    self.broken(ui, line.number, &what)?;
                    continue;
                }
            };
            match &mut reader {
                Some(reader) => self.read(ui, reader, line.number, text)?,
                None => {
                    let format = transcript::sniff([text]);
                    waiting.push((line.number, text.to_owned()));
                    if format.is_some() || waiting.len() >= SNIFF_LINES {
                        reader = Some(self.begin(ui, format, &mut waiting)?);
                    }
                }
            }
        }
        let reader = match reader {
            Some(reader) => reader,
            None => self.begin(ui, None, &mut waiting)?,
        };
        let (left, _) = reader.finish();
        left.iter().try_for_each(|call| self.judge(ui, call))
    }

    /// Starts to read, once it is known whose format it is, with the lines that had to wait for that.
    fn begin(
        &mut self,
        ui: &mut Ui,
        format: Option<Format>,
        waiting: &mut Vec<(u64, Vec<u8>)>,
    ) -> Result<Reader, CommandError> {
        let mut reader = Reader::new(format.unwrap_or(Format::Recorded));
        for (number, text) in waiting.drain(..) {
            self.read(ui, &mut reader, number, &text)?;
        }
        Ok(reader)
    }

    fn read(
        &mut self,
        ui: &mut Ui,
        reader: &mut Reader,
        number: u64,
        text: &[u8],
    ) -> Result<(), CommandError> {
        if let Err(error) = reader.read(text) {
            self.broken(ui, number, &error.to_string())?;
        }
        reader.take().iter().try_for_each(|call| self.judge(ui, call))
    }

    fn broken(&mut self, ui: &mut Ui, number: u64, what: &str) -> Result<(), CommandError> {
        self.summary.broken_lines += 1;
        match self.jsonl {
            true => ui.json(&serde_json::json!({ "line": number, "error": what })),
            false => Ok(()),
        }
    }

    /// Writes what was recorded so far.
    fn write(&mut self) -> Result<(), CommandError> {
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        for call in recorder.write(&[])? {
            *(if call.is_new { &mut self.recorded } else { &mut self.known }) += 1;
        }
        Ok(())
    }

    fn judge(&mut self, ui: &mut Ui, call: &RecordedCall) -> Result<(), CommandError> {
        let (rules, settings) = (self.rules, self.settings);
        let replay = self.runs.entry(call.trace.clone()).or_insert_with(|| Replay::new(rules, settings));
        let judged = replay.judge(&Recorded {
            observation: call.observation.clone(),
            said_ok: call.said_ok,
            agent: if call.agent == MAIN_AGENT { String::new() } else { call.agent.clone() },
            round: call.round.map_or(Round::Unsaid, Round::Numbered),
            new_user_turn: call.new_user_turn,
            at: call.at.unwrap_or_default(),
        });
        if let Some(recorder) = &mut self.recorder {
            recorder.take(self.rules, call.clone());
            if recorder.is_full() {
                self.write()?;
            }
        }
        match self.jsonl {
            true => ui.json(&wire(call, &judged)),
            false => {
                self.summary.add(call, &judged);
                Ok(())
            }
        }
    }
}

fn wire<'a>(call: &'a RecordedCall, judged: &'a Judged) -> WireDecision<'a> {
    let key = judged.key();
    let word = |decision: &Decision, silent: &'static str| match decision.rung {
        Rung::Observe => silent,
        rung => rung.word(),
    };
    WireDecision {
        trace: &call.trace,
        i: call.index,
        before: word(&judged.before, "allow"),
        after: word(&judged.after, "none"),
        key: key.map(|(key, _)| key.word()),
        count: key.map(|(_, count)| count),
        kind: judged.kind.word(),
        rule: Some(&*judged.rule).filter(|rule| !rule.is_empty()),
    }
}
