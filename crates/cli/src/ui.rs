//! The one place that prints: standard output for answers, standard error for everything else.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::process::ExitCode;

use serde::Serialize;
use unstuck_judge::Lang;
use unstuck_wire::redact::redact;

use crate::exit::{CommandError, ExitStatus};
use crate::plain;
use crate::settings::People;

/// The languages a person can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Language {
    En,
    Zh,
}

/// Where answers go.
pub(crate) struct Ui {
    out: BufWriter<StdoutLock<'static>>,
    asked: Option<Language>,
    lang: Lang,
    /// What could not be said beside something else.
    lost_aside: Option<CommandError>,
}

impl Ui {
    pub(crate) fn new(asked: Option<Language>) -> Ui {
        let lang = match asked {
            Some(Language::En) => Lang::En,
            Some(Language::Zh) => Lang::Zh,
            None => from_environment(),
        };
        Ui { out: BufWriter::with_capacity(64 * 1024, io::stdout().lock()), asked, lang, lost_aside: None }
    }

    /// Speaks the language the settings name, unless this run was asked for one.
    pub(crate) fn prefer(&mut self, people: People) {
        if let (None, People::Speak(lang)) = (self.asked, people) {
            self.lang = lang;
        }
    }

    pub(crate) fn lang(&self) -> Lang {
        self.lang
    }

    /// Prints text for a person on standard output. Whatever it quotes, no character in it acts on a terminal or hides.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), CommandError> {
        Ok(self.out.write_all(plain::lines(text).as_bytes())?)
    }

    /// Prints text with colours of our own. What it quotes has to be plain already.
    pub(crate) fn say_coloured(&mut self, text: &str) -> Result<(), CommandError> {
        Ok(self.out.write_all(text.as_bytes())?)
    }

    /// Prints JSON that is written already; characters that hide are escaped in it.
    pub(crate) fn say_json(&mut self, json: &str) -> Result<(), CommandError> {
        Ok(self.out.write_all(plain::json(json).as_bytes())?)
    }

    /// Prints bytes on standard output exactly as they are.
    pub(crate) fn exactly(&mut self, bytes: &[u8]) -> Result<(), CommandError> {
        Ok(self.out.write_all(bytes)?)
    }

    /// Prints text for a person on standard error, beside a command's own output. A reader that has gone stops nothing.
    pub(crate) fn remark(&mut self, text: &str) -> Result<(), CommandError> {
        self.out.flush()?;
        match io::stderr().lock().write_all(plain::lines(text).as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => Ok(written?),
        }
    }

    /// The same beside work that goes on whether it can be written or not. [`Ui::conclude`] reports what was lost.
    pub(crate) fn aside(&mut self, text: &str) {
        if let Err(error) = self.remark(text) {
            self.lost_aside.get_or_insert(error);
        }
    }

    /// Prints one value as one line of JSON. Characters that hide are escaped.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), CommandError> {
        let line = serde_json::to_string(value).map_err(io::Error::from)?;
        self.say_json(&(line + "\n"))
    }

    /// Makes sure that everything has been printed.
    pub(crate) fn finish(&mut self) -> Result<(), CommandError> {
        Ok(self.out.flush()?)
    }

    /// Returns the status once everything has been printed. A success of which something could not be printed is none; a
    /// failure of the command that was run stays its own where only words of ours about it are lost.
    pub(crate) fn conclude(&mut self, status: ExitStatus) -> Result<ExitStatus, CommandError> {
        match self.finish() {
            // A reader that has seen enough (`| head`) is no failure of ours, and hides none.
            Err(CommandError::ReaderGone) => return Ok(status),
            printed => printed?,
        }
        match (self.lost_aside.take(), status) {
            (Some(error), ExitStatus::Success | ExitStatus::Command(0)) => Err(error),
            (_, status) => Ok(status),
        }
    }

    /// Says what went wrong, and what to do about it.
    pub(crate) fn complain(&mut self, error: &CommandError) {
        let hint = error.hint(self.lang).map(|hint| match self.lang {
            Lang::En => format!("hint: {hint}\n"),
            Lang::Zh => format!("提示：{hint}\n"),
        });
        // It may quote what somebody else wrote: an argument, a name, a file.
        let text = format!("unstuck: {}\n{}", error.in_words(self.lang), hint.unwrap_or_default());
        let text = with_whole_arguments(text, env::args_os());
        let _nobody_left_to_tell = io::stderr().lock().write_all(plain::lines(&redact(&text)).as_bytes());
    }
}

/// Says what is wrong with ourselves, from wherever it happened.
pub(crate) fn confess(place: &str, what: &str) {
    // The standard library has no other way to say that the system gives no more threads.
    let no_thread = what.starts_with("failed to spawn thread");
    let text = match (from_environment(), no_thread) {
        (Lang::En, true) => "unstuck: the system gives it no thread (`ulimit -u`)\n".to_owned(),
        (Lang::Zh, true) => "unstuck: 系统不再提供线程（`ulimit -u`）\n".to_owned(),
        (Lang::En, false) => format!("unstuck: a fault of its own at {place}: {what}\n"),
        (Lang::Zh, false) => format!("unstuck: 自身故障，位于 {place}：{what}\n"),
    };
    let _nobody_left_to_tell = io::stderr().lock().write_all(plain::lines(&redact(&text)).as_bytes());
}

/// Shows a usage error, or the help that was asked for.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // A mistake quotes what was typed.
    if error.use_stderr() {
        let text = with_whole_arguments(error.render().to_string(), env::args_os());
        let _nobody_left_to_tell = io::stderr().lock().write_all(plain::lines(&redact(&text)).as_bytes());
        return ExitStatus::Usage.into();
    }
    match error.print().and_then(|()| io::stdout().flush()).map_err(CommandError::from) {
        Ok(()) | Err(CommandError::ReaderGone) => ExitStatus::Success.into(),
        Err(error) => {
            Ui::new(None).complain(&error);
            error.status().into()
        }
    }
}

/// Shows every argument that a text quotes on one line: the end of a line in it would begin one that looks like ours.
fn with_whole_arguments(text: String, arguments: impl Iterator<Item = OsString>) -> String {
    let breaks = |argument: &String| argument.trim_end().contains(['\n', '\r']);
    let values = |argument: String| {
        let value = argument.split_once('=').map(|(_, value)| value.to_owned());
        let whole = [Some(argument), value].into_iter().flatten();
        // It may be quoted without the blanks around it.
        whole.flat_map(|value| [value.trim().to_owned(), value]).filter(breaks)
    };
    let arguments = arguments.filter_map(|argument| argument.into_string().ok()).flat_map(values);
    arguments.fold(text, |text, argument| text.replace(&*argument, &plain::line(&argument)))
}

/// Tells whether somebody would have to type what we are about to read.
pub(crate) fn input_is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Tells whether somebody watches what we print.
pub(crate) fn output_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Tells whether what we print may have colours: on a terminal, unless its user said otherwise (`NO_COLOR`).
pub(crate) fn output_has_colour() -> bool {
    let says_no = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = env::var_os("TERM").is_some_and(|value| value == "dumb");
    output_is_terminal() && !says_no && !is_dumb
}

fn from_environment() -> Lang {
    let set = ["LC_ALL", "LC_MESSAGES", "LANG"]
        .iter()
        .find_map(|name| env::var(name).ok().filter(|v| !v.is_empty()));
    match set {
        Some(locale) if locale.starts_with("zh") => Lang::Zh,
        Some(_) | None => Lang::En,
    }
}
