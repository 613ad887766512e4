//! Runs a command as a person does: at a terminal of its own.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::world::{Said, World};

/// Far more than anything here takes, far less than for ever.
const TOO_LONG: Duration = Duration::from_secs(30);

impl World {
    /// What it says there, both streams as one; nothing where this machine cannot make a terminal.
    pub(crate) fn at_terminal(&self, args: &[&str]) -> Option<Said> {
        self.script("", args).spawn().ok().map(Said::by)
    }

    /// Somebody who runs it there in a folder of the home, reads along and types.
    pub(crate) fn person(&self, folder: &str, args: &[&str]) -> Option<Person> {
        let mut program = self.script(folder, args).spawn().ok()?;
        let (hand, screen) = (program.stdin.take()?, program.stdout.take()?);
        let (tell, heard) = channel();
        thread::spawn(move || {
            let mut screen = screen;
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                if tell.send(String::from_utf8_lossy(&bytes[..count]).into_owned()).is_err() {
                    break;
                }
            }
        });
        Some(Person { program, hand, heard, seen: String::new() })
    }

    fn script(&self, folder: &str, args: &[&str]) -> Command {
        let ours = self.command(args);
        let words = args.iter().map(|word| format!(" '{}'", word.replace('\'', "'\\''")));
        let line = format!("'{}'{}", ours.get_program().display(), words.collect::<String>());
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).current_dir(self.path(folder));
        command.env_clear().envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Somebody who sits at a terminal.
pub(crate) struct Person {
    program: Child,
    hand: ChildStdin,
    heard: Receiver<String>,
    seen: String,
}

impl Person {
    /// Waits until these words stand on the screen.
    #[track_caller]
    pub(crate) fn sees(&mut self, words: &str) {
        let begun = Instant::now();
        while !self.seen.contains(words) {
            let left = TOO_LONG.saturating_sub(begun.elapsed());
            match self.heard.recv_timeout(left) {
                Ok(more) => self.seen += &more,
                Err(_) => panic!("no {words:?} in {:?}", self.seen),
            }
        }
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.hand.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for its end: all that stood on the screen, and the exit code.
    pub(crate) fn waits(mut self) -> (String, i32) {
        let code = self.program.wait().unwrap().code().unwrap_or(-1);
        self.seen.extend(self.heard.iter());
        (self.seen, code)
    }
}
