//! `unstuck scan`: learns from the transcripts that are there already, and tells what they cost.
//!
//! Calls and how far their file was read go into the store in one transaction, so that whoever is stopped in the middle loses
//! nothing and repeats nothing.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use unstuck_judge::ladder::Print;
use unstuck_judge::{Lang, Rules};
use unstuck_store::{Scanned, Store};
use unstuck_wire::hook::Host;
use unstuck_wire::recorded::RecordedCall;
use unstuck_wire::transcript::{self, Format, Reader};

use crate::bill::{Bill, Trouble};
use crate::cellar::Cellar;
use crate::exit::{CommandError, ExitStatus};
use crate::knowledge;
use crate::lines::Lines;
use crate::onlooker::Listening;
use crate::progress::Progress;
use crate::recorder::Recorder;
use crate::regular_file;
use crate::removed;
use crate::summary::minutes;
use crate::transcript_files::{self, TranscriptFile};
use crate::ui::Ui;

/// A longer line is passed over: nothing that long is one call.
const LINE_MAX: usize = 32 * 1024 * 1024;
/// A line of a transcript that begins by then must have shown whose it is.
const SNIFF_BYTES: u64 = 1024 * 1024;
/// So many bytes of lines are held at most until the next call of a run tells how long the last one took. A file may hold any
/// number of runs.
const HELD_MAX: u64 = 16 * 1024 * 1024;
/// A short line counts as so many bytes, so that not too many calls are written at once.
const LINE_COUNTS: u64 = 16 * 1024;
/// How wide the bar is.
const BAR: u64 = 20;

/// Learn from the transcripts you already have, and see what they cost you
///
/// Reads what Claude Code, Codex, Gemini CLI and Qwen Code wrote down, without arguments in their own folders. Every call is
/// put into the timeline as of its own time, and what was seen to fix a failure becomes a lesson. What was read before is not
/// read again: a transcript that grew is read on from where it was. Ctrl-C stops; the same command goes on from there.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  unstuck scan                              all sessions of the agents on this machine
  unstuck scan ~/.claude/projects/-my-app   those of one project
  unstuck scan run.jsonl --json             one file; the report as one JSON object
  unstuck replay ~/.claude/projects         the same sessions once more, without recording anything")]
pub(crate) struct ScanArgs {
    /// Transcripts, or folders of them (default: the folders of Claude Code, Codex, Gemini CLI and Qwen Code)
    paths: Vec<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    /// How many failures and lessons to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
    /// Use these rules before all others (may be given several times)
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
}

pub(crate) fn run(ui: &mut Ui, cellar: &Cellar, args: &ScanArgs) -> Result<ExitStatus, CommandError> {
    let rules = knowledge::load(ui, &args.rules)?;
    let cleaner = cellar.cleaner();
    let named = match args.paths.is_empty() {
        true => transcript_files::usual_folders(),
        false => args.paths.clone(),
    };
    let mut bill = Bill::default();
    let files = transcript_files::find(&named, &mut bill)?;
    let store = cellar.to_write()?;
    let newest = store.newest_lesson()?;
    let has_enough = Arc::new(AtomicBool::new(false));
    let listening = Listening::to(&has_enough);
    let mut scan = Scan {
        rules: &rules,
        known: store.scanned()?,
        recorder: Recorder::new(cellar, &cleaner, "scan").briefly(),
        unwritten: Vec::new(),
        met: HashSet::new(),
        told_by_hook: (String::new(), false),
        view: View::new(&files, ui.lang()),
        has_enough,
        bill,
        store,
    };
    scan.all(&files)?;
    drop(listening);
    scan.view.line.end();
    scan.bill.lessons = scan.store.lessons_after(newest, args.top)?;
    match args.json {
        true => ui.json(&scan.bill.to_wire(args.top))?,
        false => ui.say(&scan.bill.text(args.top, ui.lang()))?,
    }
    Ok(match scan.bill.left {
        0 => ExitStatus::Success,
        _ => ExitStatus::Command(130),
    })
}

/// Does it go on?
#[derive(PartialEq, Eq)]
enum Then {
    GoOn,
    Stop,
}

/// Reads one file after the other.
struct Scan<'a> {
    rules: &'a Rules,
    known: HashMap<String, Scanned>,
    recorder: Recorder<'a>,
    /// How far files were read, to be written with the next calls.
    unwritten: Vec<(String, Scanned)>,
    /// Calls that were met. Forked sessions repeat the past of others, word by word.
    met: HashSet<u64>,
    /// The last session that was looked up, and whether a hook that names no calls told of it.
    told_by_hook: (String, bool),
    view: View,
    has_enough: Arc<AtomicBool>,
    bill: Bill,
    store: Store,
}

impl Scan<'_> {
    fn all(&mut self, files: &[TranscriptFile]) -> Result<(), CommandError> {
        self.bill.files = files.len() as u64;
        for (at, file) in files.iter().enumerate() {
            self.view.file = at as u64;
            if self.has_enough.load(Ordering::Relaxed) || self.one(file)? == Then::Stop {
                self.bill.left = (files.len() - at) as u64;
                break;
            }
        }
        self.write()
    }

    fn one(&mut self, found: &TranscriptFile) -> Result<Then, CommandError> {
        match self.open(found) {
            Ok(Opened::Known) => {
                self.bill.known += 1;
                self.view.skip(found.size);
                Ok(Then::GoOn)
            }
            Ok(Opened::Foreign { size }) => {
                self.bill.read += 1;
                if size > 0 {
                    self.bill.trouble(Trouble::NotATranscript, || found.path.display().to_string());
                }
                self.mark(found, 0, size);
                Ok(Then::GoOn)
            }
            Ok(Opened::Document { format, reader, text }) => {
                self.bill.read += 1;
                self.document(found, format, reader, &text)
            }
            Ok(Opened::Lines { file, format, reader, from, size }) => {
                self.bill.read += 1;
                self.read(found, file, format, reader, from, size)
            }
            Err(error) => {
                self.failed(found, &error);
                Ok(Then::GoOn)
            }
        }
    }

    fn open(&self, found: &TranscriptFile) -> io::Result<Opened> {
        let mut file = regular_file::open(&found.path)?;
        let size = file.metadata()?.len();
        let known = match self.known.get(&found.name).copied().filter(|it| it.size <= size) {
            Some(it) => {
                Some(it).filter(|_| transcript_files::print(&found.path, it.size).ok() == Some(it.head))
            }
            None => None,
        };
        if known.is_some_and(|it| it.size == size) {
            return Ok(Opened::Known);
        }
        if transcript_files::is_document(&found.path) && size <= LINE_MAX as u64 {
            let mut text = Vec::new();
            (&mut file).take(LINE_MAX as u64).read_to_end(&mut text)?;
            if let Some(format) = transcript::sniff([&text[..]]) {
                return Ok(Opened::Document { format, reader: reader(format, &found.path), text });
            }
        }
        let from = known.map_or(0, |it| it.read);
        Ok(match begin(&mut file, &found.path, from)? {
            Some((format, reader)) => Opened::Lines { file, format, reader, from, size },
            None => Opened::Foreign { size },
        })
    }

    /// Reads what is one piece and has no lines. It is written anew when something is added to it, and then read anew.
    fn document(
        &mut self,
        found: &TranscriptFile,
        format: Format,
        mut reader: Reader,
        text: &[u8],
    ) -> Result<Then, CommandError> {
        let size = text.len() as u64;
        self.bill.bytes += size;
        self.view.go_on(size);
        if reader.read(text).is_err() {
            self.bill.trouble(Trouble::BrokenLine, || found.path.display().to_string());
        }
        if self.take_many(found, format, reader.leave(), 0)? == Then::Stop {
            return Ok(Then::Stop);
        }
        self.recorder.take_all(self.rules);
        self.mark(found, 0, size);
        if self.recorder.is_full() {
            self.write()?;
        }
        Ok(Then::GoOn)
    }

    fn read(
        &mut self,
        found: &TranscriptFile,
        file: File,
        format: Format,
        mut reader: Reader,
        from: u64,
        size: u64,
    ) -> Result<Then, CommandError> {
        let mut input = BufReader::with_capacity(256 * 1024, file);
        let mut lines = Lines::from(&mut input, from, LINE_MAX);
        // Up to where no call of the file waits for its result, and up to where all calls are handed on.
        let (mut rest, mut settled, mut end) = (from, from, from);
        let mut held = 0;
        loop {
            let line = match lines.next() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    self.failed(found, &error);
                    break;
                }
            };
            let size = line.end - end;
            self.bill.bytes += size;
            self.view.go_on(size);
            end = line.end;
            let number = line.number;
            let place = || format!("{}:{number}", found.path.display());
            match line.text {
                Err(_) => self.bill.trouble(Trouble::LongLine, place),
                Ok(text) => match reader.read(text) {
                    Ok(()) => {}
                    // Somebody may still be writing it.
                    Err(_) if !line.is_whole => break,
                    Err(_) => self.bill.trouble(Trouble::BrokenLine, place),
                },
            }
            if self.take_many(found, format, reader.take(), settled)? == Then::Stop {
                return Ok(Then::Stop);
            }
            held = if self.recorder.is_at_rest() { 0 } else { held + size.max(LINE_COUNTS) };
            if held > HELD_MAX {
                self.recorder.take_all(self.rules);
            }
            if reader.is_at_rest() {
                rest = end;
                settled = if self.recorder.is_at_rest() { end } else { settled };
            }
            if self.recorder.is_full() {
                self.mark(found, settled, settled);
                self.write()?;
            }
            if self.has_enough.load(Ordering::Relaxed) {
                self.mark(found, settled, settled);
                return Ok(Then::Stop);
            }
        }
        if self.take_many(found, format, reader.leave(), settled)? == Then::Stop {
            return Ok(Then::Stop);
        }
        self.recorder.take_all(self.rules);
        self.mark(found, rest, size.max(end));
        if self.recorder.is_full() {
            self.write()?;
        }
        Ok(Then::GoOn)
    }

    /// Notes how far a file is read, to be written with its calls. Without a print it is read anew some other time.
    fn mark(&mut self, found: &TranscriptFile, read: u64, size: u64) {
        match transcript_files::print(&found.path, size) {
            Ok(head) => self.unwritten.push((found.name.clone(), Scanned { head, read, size })),
            Err(error) => self.failed(found, &error),
        }
    }

    /// Hands calls on. Where one line brings thousands, they are not written at once: hooks wait for the lock meanwhile.
    fn take_many(
        &mut self,
        found: &TranscriptFile,
        format: Format,
        calls: Vec<RecordedCall>,
        settled: u64,
    ) -> Result<Then, CommandError> {
        for (at, call) in calls.into_iter().enumerate() {
            if at > 0 && self.has_enough.load(Ordering::Relaxed) {
                self.mark(found, settled, settled);
                return Ok(Then::Stop);
            }
            if at > 0 && self.recorder.is_full() {
                self.mark(found, settled, settled);
                self.write()?;
            }
            self.take(format, call)?;
        }
        Ok(Then::GoOn)
    }

    fn take(&mut self, format: Format, call: RecordedCall) -> Result<(), CommandError> {
        let when = call.at.unwrap_or(0).to_string();
        let is_repeated =
            !call.id.is_empty() && !self.met.insert(Print::of(&[&call.id, &when, &call.agent]).0);
        if is_repeated || format == Format::Gemini && self.is_told_by_hook(&call.trace)? {
            self.bill.known_call();
            return Ok(());
        }
        self.recorder.take(self.rules, call);
        Ok(())
    }

    /// Gemini CLI's hooks name no calls: what they told of cannot be told apart from what its chats tell again.
    fn is_told_by_hook(&mut self, session: &str) -> Result<bool, CommandError> {
        if self.told_by_hook.0 != session {
            let stored = self.store.session(session)?;
            let is_told = stored.is_some_and(|stored| stored.host == Host::Gemini.word());
            self.told_by_hook = (session.to_owned(), is_told);
        }
        Ok(self.told_by_hook.1)
    }

    fn write(&mut self) -> Result<(), CommandError> {
        for call in self.recorder.write(&self.unwritten)? {
            self.bill.add(call);
        }
        self.unwritten.clear();
        Ok(())
    }

    fn failed(&mut self, found: &TranscriptFile, error: &io::Error) {
        self.bill.trouble(transcript_files::trouble(error), || format!("{}: {error}", found.path.display()));
    }
}

/// What a file turned out to be.
enum Opened {
    /// Nothing in it is new.
    Known,
    /// No transcript.
    Foreign { size: u64 },
    /// One piece of JSON.
    Document { format: Format, reader: Reader, text: Vec<u8> },
    /// A transcript, to be read on from where it was left.
    Lines { file: File, format: Format, reader: Reader, from: u64, size: u64 },
}

/// Finds out whose a transcript is, and gets ready to read on where it was left; nothing where it is none.
fn begin(file: &mut File, path: &Path, from: u64) -> io::Result<Option<(Format, Reader)>> {
    file.seek(SeekFrom::Start(0))?;
    let mut beginning = BufReader::new((&mut *file).take(SNIFF_BYTES + LINE_MAX as u64));
    let mut lines = Lines::from(&mut beginning, 0, LINE_MAX);
    let (mut begun, mut passed) = (None, 0);
    while passed < SNIFF_BYTES
        && let Some(line) = lines.next()?
    {
        passed = line.end;
        let Ok(text) = line.text else { continue };
        let Some(format) = transcript::sniff([text]) else { continue };
        let mut reader = reader(format, path);
        if from > 0 {
            reader.go_on_from(from);
            // Only their first line names the session.
            if let Format::Codex | Format::Gemini = format {
                let _a_head_was_read_before = reader.read(text);
            }
        }
        begun = Some((format, reader));
        break;
    }
    file.seek(SeekFrom::Start(from))?;
    Ok(begun)
}

fn reader(format: Format, path: &Path) -> Reader {
    let mut reader = Reader::new(format);
    if let Some(project) = project_of(path).filter(|_| format == Format::Gemini) {
        reader.works_in(&project);
    }
    reader
}

/// The project that a chat of Gemini CLI belongs to stands in a file beside the folder of its chats.
fn project_of(path: &Path) -> Option<String> {
    const LONGEST: u64 = 4096;
    let chats = path.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "chats"))?;
    let file = chats.parent()?.join(".project_root");
    let project = regular_file::text(&file, LONGEST)?;
    Some(project.trim().to_owned()).filter(|project| !project.is_empty())
}

/// What a person who waits sees of it.
struct View {
    lang: Lang,
    line: Progress,
    begun: Instant,
    file: u64,
    files: u64,
    done: u64,
    of: u64,
    /// Of what is done, what was known and cost no time.
    skipped: u64,
}

impl View {
    fn new(files: &[TranscriptFile], lang: Lang) -> View {
        let of = files.iter().map(|file| file.size).sum();
        let files = files.len() as u64;
        View { lang, line: Progress::new(), begun: Instant::now(), file: 0, files, done: 0, of, skipped: 0 }
    }

    fn skip(&mut self, bytes: u64) {
        self.skipped += bytes;
        self.go_on(bytes);
    }

    fn go_on(&mut self, bytes: u64) {
        self.done += bytes;
        let View { lang, begun, file, files, done, of, skipped, .. } = *self;
        self.line.show(|| {
            let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            in_words(lang, took, (file, files), done.min(of), of, skipped)
        });
    }
}

fn in_words(lang: Lang, took_ms: u64, (file, files): (u64, u64), done: u64, of: u64, skipped: u64) -> String {
    let full = (done * BAR / of.max(1)) as usize;
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(BAR as usize - full));
    let left = minutes(took_ms.saturating_mul(of - done) / done.saturating_sub(skipped).max(1));
    let (done, of) = (removed::size(done), removed::size(of));
    match lang {
        Lang::En => format!("reading: {bar} {file}/{files} files, {done} of {of}, {left} left"),
        Lang::Zh => format!("读取: {bar} {file}/{files} 个文件，{done}/{of}，剩余 {left}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_far_it_is_is_told_in_one_line() {
        let check = |lang, done, of, skipped, expected: &str| {
            assert_eq!(in_words(lang, 10_000, (3, 8), done, of, skipped), expected);
        };
        let mb = 1 << 20;
        check(
            Lang::En,
            50 * mb,
            100 * mb,
            0,
            "reading: ██████████░░░░░░░░░░ 3/8 files, 50 MB of 100 MB, 10 s left",
        );
        // What was known before cost no time and says nothing about the rest.
        check(
            Lang::En,
            50 * mb,
            100 * mb,
            25 * mb,
            "reading: ██████████░░░░░░░░░░ 3/8 files, 50 MB of 100 MB, 20 s left",
        );
        check(Lang::Zh, 0, 0, 0, "读取: ░░░░░░░░░░░░░░░░░░░░ 3/8 个文件，0 B/0 B，剩余 0 s");
    }
}
