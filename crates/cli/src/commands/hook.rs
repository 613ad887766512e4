//! `unstuck hook`: the door for agents. It answers in the agent's own format, always exits 0 and is silent on standard
//! error, whatever happens: a fault of ours goes to the timeline, never to the agent.

use std::io::{self, BufRead, BufReader, Read};
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use unstuck_store::{Phase, Source};
use unstuck_wire::hook::{self, Happened, Host, Letter, generic};

use crate::agents::{self, Places};
use crate::breaker::Breaker;
use crate::cellar::{self, Cellar};
use crate::deadline::Deadline;
use crate::editing::{Book, Ledger};
use crate::exit::{CommandError, ExitStatus};
use crate::last_word::{LastWord, unseen};
use crate::post::Post;
use crate::provenance;
use crate::settings::Protect;
use crate::switch::{self, Switch};
use crate::ui::Ui;

/// The most that one payload may hold.
const PAYLOAD_MAX: u64 = 256 * 1024 * 1024;

/// Answer an agent's hook (reads a payload on standard input)
///
/// Agents run this by themselves once `unstuck install` has told them to. Every format but `generic` is one payload and one
/// answer in the agent's own words. `generic` reads one JSON object per line, says what happened (before, after, ask,
/// approved, denied, user, end), and answers each with one line. It always exits 0: a refusal is said in the answer.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  echo '{\"event\":\"before\",\"session\":\"s1\",\"call_id\":\"c1\",\"tool\":\"Bash\",\"input\":{\"command\":\"npm ci\"}}' \\
    | unstuck hook generic
  echo '{\"event\":\"after\",\"session\":\"s1\",\"call_id\":\"c1\",\"tool\":\"Bash\",\"input\":{\"command\":\"npm ci\"},
         \"exit_code\":127,\"stderr\":\"npm: command not found\"}' | tr -d '\\n' | unstuck hook generic")]
pub(crate) struct HookArgs {
    /// The agent: claude, codex, gemini, qwen, opencode, copilot, cursor or generic
    pub(crate) door: String,
    /// Settings for this run; they are read by hand, with the rest of a hook's arguments
    #[arg(skip)]
    pub(crate) set: Vec<String>,
}

/// Answers, and never fails.
pub(crate) fn run(ui: &mut Ui, args: &HookArgs) -> Result<ExitStatus, CommandError> {
    let begun = Instant::now();
    silence();
    if switch::is_disabled() {
        return Ok(ExitStatus::Success);
    }
    let cellar = Cellar::for_hooks(&args.set);
    let folder = cellar.folder().ok();
    let last_word = LastWord::of_this_process();
    fall_silent(folder.map(Path::to_owned), Arc::clone(&last_word));
    if cellar.settings.hook().enabled && Switch::at(folder, cellar::now()) == Switch::On {
        let _nobody_may_notice = serve(ui, &cellar, &args.door, begun, &last_word);
    }
    let _nobody_may_notice = ui.finish();
    Ok(ExitStatus::Success)
}

/// Nobody reads standard error of a hook, and some agents take words there for a failure: what the C library says when it
/// lacks memory, for one.
fn silence() {
    #[cfg(unix)]
    let _it_is_only_louder =
        std::fs::File::options().write(true).open("/dev/null").map(rustix::stdio::dup2_stderr);
}

/// A panic of ours must look like nothing at all to the agent, but for the last word. Whoever looks at the timeline finds
/// where it was.
fn fall_silent(folder: Option<PathBuf>, last_word: Arc<LastWord>) {
    #[allow(clippy::exit)]
    panic::set_hook(Box::new(move |panic| {
        let spoken = last_word.speak();
        if let (Some(folder), Some(place)) = (&folder, panic.location()) {
            unstuck_store::note_crash(folder, cellar::now(), &place.to_string(), spoken.entry.as_ref());
            Breaker::at(Some(folder)).fault(cellar::now());
        }
        std::process::exit(0)
    }));
}

fn serve(
    ui: &mut Ui,
    cellar: &Cellar,
    door: &str,
    begun: Instant,
    last_word: &Arc<LastWord>,
) -> Result<(), CommandError> {
    let cleaner = cellar.cleaner();
    let mut post = Post::new(cellar, &cleaner, Arc::clone(last_word));
    match door.parse() {
        Ok(Host::Generic) => answer_lines(ui, &mut post)?,
        Ok(
            door @ (Host::Claude
            | Host::Codex
            | Host::Gemini
            | Host::Qwen
            | Host::Opencode
            | Host::Copilot
            | Host::Cursor),
        ) => {
            let folder = cellar.folder().ok().map(Path::to_owned);
            let limit = cellar.settings.hook().deadline_after;
            let deadline = Deadline::watch(begun, limit, folder, Arc::clone(last_word));
            answer_one(ui, cellar, &mut post, door, &deadline)?;
        }
        Err(_) => post.note_fault("hook", &format!("no door is called {door}")),
    }
    post.tell_faults();
    Ok(())
}

/// One payload, and one answer or none.
fn answer_one(
    ui: &mut Ui,
    cellar: &Cellar,
    post: &mut Post<'_>,
    door: Host,
    deadline: &Arc<Deadline>,
) -> Result<(), CommandError> {
    if cellar.settings.vault().protect == Protect::Off {
        unseen::is_seen();
    }
    let mut payload = Vec::with_capacity(16 * 1024);
    let mut input = io::stdin().lock().take(PAYLOAD_MAX);
    input.by_ref().take(unseen::BEGINNING as u64).read_to_end(&mut payload).map_err(CommandError::Input)?;
    unseen::begins(&payload);
    input.read_to_end(&mut payload).map_err(CommandError::Input)?;
    let letter = match hook::read(door, &payload) {
        Ok(letter) => letter,
        Err(error) => {
            post.note_fault("hook", &format!("{door}: a payload cannot be read: {error}"));
            return Ok(());
        }
    };
    drop(payload);
    // Some programs run the hooks of others beside their own: what they tell twice is heard once.
    if letter.host != door && tells_us_itself(cellar, &letter) {
        return Ok(());
    }
    post.comes_by(source_of(&letter, door));
    let phase = phase_of(&letter);
    if phase == Phase::Before {
        deadline.set(cellar.settings.hook().deadline_before);
    }
    post.hurry(deadline);
    let reply = post.reply(&letter, deadline);
    if let Some(answer) = letter.answer(&reply) {
        ui.say_json(&answer)?;
        post.answers();
        ui.finish()?;
    }
    // What is left to do is not waited for by anyone who counts milliseconds.
    deadline.set(cellar.settings.hook().deadline_after);
    post.note_time(phase, deadline.elapsed());
    post.conclude();
    post.settle();
    Ok(())
}

/// Does this program also tell us by hooks of its own?
fn tells_us_itself(cellar: &Cellar, letter: &Letter) -> bool {
    let ledger = cellar.folder().ok().and_then(|folder| Ledger::read(folder, Book::Hooks).ok());
    ledger.is_some_and(|ledger| agents::tells_us_itself(&ledger, &Places::here(), letter.host, &letter.cwd))
}

/// How it came to be known. Lessons are made of calls that ended; where none did, nobody looks at who started us.
fn source_of(letter: &Letter, door: Host) -> Source {
    let tells_an_end = |event: &Happened| matches!(event, Happened::After(_) | Happened::Later { .. });
    match letter.host {
        Host::Generic => Source::Told,
        _ if letter.events.iter().any(tells_an_end) => provenance::of_hook(door, letter.host),
        _ => Source::Hook,
    }
}

fn phase_of(letter: &Letter) -> Phase {
    match letter.events.first() {
        Some(Happened::Before { .. }) => Phase::Before,
        Some(_) | None => Phase::After,
    }
}

/// Payloads of our own format, one to a line, each answered as it comes.
fn answer_lines(ui: &mut Ui, post: &mut Post<'_>) -> Result<(), CommandError> {
    let mut input = BufReader::with_capacity(64 * 1024, io::stdin().lock().take(PAYLOAD_MAX));
    let mut payload = Vec::new();
    let mut is_first = true;
    loop {
        payload.clear();
        if input.read_until(b'\n', &mut payload).map_err(CommandError::Input)? == 0 {
            return Ok(());
        }
        if payload.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        // A payload may be laid out over several lines; then it is the only one.
        let mut read = generic::read(&payload);
        while is_first && read.is_err() && begins_like_an_object(&payload) {
            if input.read_until(b'\n', &mut payload).map_err(CommandError::Input)? == 0 {
                break;
            }
            if payload.trim_ascii_end().ends_with(b"}") {
                read = generic::read(&payload);
            }
        }
        is_first = false;
        match read {
            Ok(letter) => post.answer_line(ui, &letter)?,
            Err(error) => post.refuse_line(ui, &error.to_string())?,
        }
        post.answers();
        ui.finish()?;
        post.conclude();
        post.settle();
        input.get_mut().set_limit(PAYLOAD_MAX);
    }
}

/// Does it begin an object and not end it on the same line?
fn begins_like_an_object(payload: &[u8]) -> bool {
    let begin = payload.strip_prefix("\u{feff}".as_bytes()).unwrap_or(payload).trim_ascii_start();
    let first_line = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
    begin.starts_with(b"{") && !first_line.trim_ascii_end().ends_with(b"}")
}
