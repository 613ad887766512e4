//! A real terminal: what a command sees of it, what a person types, and how it is left.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop where it is")]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, OutputFlags, Termios, tcgetattr};
use nix::unistd::Pid;
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::termios::{tcgetwinsize, tcsetwinsize};

/// Far more than anything here takes, far less than for ever.
const TOO_LONG: Duration = Duration::from_secs(20);

const CTRL_C: &str = "\x03";
const CTRL_Z: &str = "\x1a";

fn example() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    exe.parent().and_then(|deps| deps.parent()).unwrap().join("examples/through")
}

/// A person at a terminal: the side that a person sees, and the program that has the other one.
struct Person {
    screen: File,
    terminal: OwnedFd,
    seen: String,
    program: Child,
    before: Termios,
}

impl Person {
    /// Opens a terminal of 33 lines and 101 columns and runs `argv` there, as the first of a session. `$THROUGH` is the
    /// example, and gives a terminal to what it runs.
    fn runs(argv: &[&str]) -> Person {
        let size = Winsize { ws_row: 33, ws_col: 101, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(&size, None).unwrap();
        for end in [&pair.master, &pair.slave] {
            fcntl_setfd(end, FdFlags::CLOEXEC).unwrap();
        }
        // Asked before anything runs there, which may change it at once.
        let before = tcgetattr(&pair.slave).unwrap();
        let terminal = || pair.slave.try_clone().unwrap();
        let program = Command::new("setsid")
            .arg("--ctty")
            .args(argv)
            .env("THROUGH_TERMINAL", "1")
            .env("THROUGH", example())
            .stdin(terminal())
            .stdout(terminal())
            .stderr(terminal())
            .spawn()
            .unwrap();
        let (screen, terminal, seen) = (File::from(pair.master), pair.slave, String::new());
        Person { screen, terminal, seen, program, before }
    }

    /// Runs `line` in a shell at the terminal, with the example in front of it.
    fn runs_through(line: &str) -> Person {
        Person::runs(&["sh", "-c", "exec \"$THROUGH\" sh -c \"$1\"", "sh", line])
    }

    fn types(&mut self, keys: &str) {
        self.screen.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until `word` is seen that was not seen by an earlier wait, and returns what came before it.
    #[track_caller]
    fn sees(&mut self, word: &str) -> String {
        let begun = Instant::now();
        loop {
            if let Some(at) = self.seen.find(word) {
                let rest = self.seen.split_off(at + word.len());
                let mut before = std::mem::replace(&mut self.seen, rest);
                before.truncate(at);
                return before;
            }
            assert!(begun.elapsed() < TOO_LONG, "no {word:?} in {:?}", self.seen);
            self.look();
        }
    }

    /// Reads what is there, after a short wait.
    fn look(&mut self) {
        let mut bytes = [0; 4096];
        let mut fds = [PollFd::new(self.screen.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::from(50u8)).unwrap() > 0 {
            let read = self.screen.read(&mut bytes).unwrap_or(0);
            self.seen.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    }

    fn settings(&self) -> Termios {
        tcgetattr(&self.terminal).unwrap()
    }

    fn is_raw(&self) -> bool {
        let now = self.settings();
        !now.local_flags.contains(LocalFlags::ICANON) && !now.output_flags.contains(OutputFlags::OPOST)
    }

    #[track_caller]
    fn waits_until(&mut self, what: &str, is_so: impl Fn(&Person) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < TOO_LONG, "not {what}; seen: {:?}", self.seen);
            self.look();
        }
    }

    /// Waits for the program's end; the terminal must be as it was.
    #[track_caller]
    fn ends(mut self) -> (ExitStatus, String) {
        let begun = Instant::now();
        let status = loop {
            self.look();
            if let Some(status) = self.program.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < TOO_LONG, "it does not end; seen: {:?}", self.seen);
        };
        self.look();
        assert_eq!(self.settings(), self.before, "the terminal is not as it was");
        (status, self.seen)
    }
}

/// Runs `line` through the example at a terminal where nobody types, and looks at all that is seen in the end.
#[track_caller]
fn check(line: &str, expected: &str) {
    let (status, seen) = Person::runs_through(line).ends();
    assert_eq!(seen, expected.replace('\n', "\r\n"));
    assert!(status.success(), "{status}");
}

#[test]
fn a_command_finds_a_terminal_on_all_three_sides() {
    check(
        "for fd in 0 1 2; do test -t $fd && echo $fd; done; echo there > /dev/tty",
        "0\n1\n2\nthere\nthrough: Exited(0) after 16 bytes\n",
    );
}

#[test]
fn its_terminal_is_as_large_as_ours() {
    check("stty size", "33 101\nthrough: Exited(0) after 8 bytes\n");
}

#[test]
fn what_shows_colours_only_on_a_terminal_shows_them() {
    check(
        "printf 'a b\\n' | TERM=xterm grep --color=auto b",
        "a \x1b[01;31m\x1b[Kb\x1b[m\x1b[K\nthrough: Exited(0) after 22 bytes\n",
    );
}

#[test]
fn exit_codes_and_signals_come_through() {
    check("exit 7", "through: Exited(7) after 0 bytes\n");
    for signal in [1, 2, 9, 11, 15, 34] {
        check(
            &format!("kill -{signal} $$; sleep 5"),
            &format!("through: Signalled({signal}) after 0 bytes\n"),
        );
    }
}

#[test]
fn a_program_that_is_not_there_is_not_found_and_the_terminal_is_as_before() {
    let (_, seen) = Person::runs(&["sh", "-c", "exec \"$THROUGH\" surely-no-such-program"]).ends();
    assert_eq!(seen, "through: NotFound after 0 bytes\r\n");
}

#[test]
fn a_file_keeps_what_goes_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let line = "exec \"$THROUGH\" sh -c 'test -t 1 && echo seen; test -t 2 || echo kept >&2' 2> \"$1\"";
    let path = dir.path().join("kept");
    let (_, seen) = Person::runs(&["sh", "-c", line, "sh", path.to_str().unwrap()]).ends();
    assert_eq!(seen, "seen\r\n");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "kept\nthrough: Exited(0) after 11 bytes\n");
}

#[test]
fn with_a_pipe_for_its_input_it_still_prints_to_a_terminal_and_the_keyboard_is_not_touched() {
    let mut person =
        Person::runs(&["sh", "-c", "echo piped | \"$THROUGH\" sh -c 'test -t 1 && cat; echo; sleep 1'"]);
    person.sees("piped");
    assert_eq!(person.settings(), person.before);
    let (_, seen) = person.ends();
    assert_eq!(seen, "\r\n\r\nthrough: Exited(0) after 7 bytes\r\n");
}

#[test]
fn what_is_typed_reaches_the_command_and_is_shown_once() {
    let mut person = Person::runs_through("echo ready; read line; echo \"<$line>\"");
    person.sees("ready");
    person.types("a b\r");
    let (_, seen) = person.ends();
    assert_eq!(seen, "\r\na b\r\n<a b>\r\nthrough: Exited(0) after 19 bytes\r\n");
}

#[test]
fn a_password_is_not_shown() {
    let mut person = Person::runs_through("stty -echo; echo ready; read line; stty echo; echo \"<$line>\"");
    person.sees("ready");
    person.types("secret\r");
    person.sees("<secret>");
    let (_, seen) = person.ends();
    assert!(!seen.contains("secret"), "{seen:?}");
}

#[test]
fn the_end_of_typing_is_an_end_of_input() {
    let mut person = Person::runs_through("echo ready; cat; echo done");
    person.sees("ready");
    person.waits_until("raw", Person::is_raw);
    person.types("\x04");
    person.sees("done");
    person.ends();
}

#[test]
fn ctrl_c_reaches_the_command_alone_and_is_told() {
    let mut person =
        Person::runs_through("trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.05; done");
    person.sees("ready");
    person.waits_until("raw", Person::is_raw);
    person.types(CTRL_C);
    person.sees("caught");
    let (status, seen) = person.ends();
    assert!(seen.contains("through: Exited(3)") && seen.contains("asked to end"), "{seen:?}");
    assert!(status.success());
}

#[test]
fn ctrl_c_twice_kills_what_does_not_listen_but_not_a_shell_at_its_prompt() {
    let mut person = Person::runs_through("trap '' INT; echo ready; while :; do sleep 0.05; done");
    person.sees("ready");
    person.types(CTRL_C);
    person.types(CTRL_C);
    let (_, seen) = person.ends();
    assert!(seen.contains("through: Signalled(9)") && seen.contains("asked to end"), "{seen:?}");

    let mut person = Person::runs_through("exec env PS1='ready> ' bash --norc --noprofile -i");
    for _ in 0..3 {
        person.sees("ready> ");
        // A shell that is interrupted while it still writes its prompt may leave the next one out.
        person.look();
        person.types(CTRL_C);
    }
    person.sees("ready> ");
    person.types("exit 3\r");
    let (_, seen) = person.ends();
    assert!(seen.contains("through: Exited(3)"), "{seen:?}");
}

#[test]
fn a_changed_size_is_passed_on() {
    let mut person =
        Person::runs_through("trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done");
    person.sees("ready");
    let size = rustix::termios::Winsize { ws_col: 77, ..tcgetwinsize(&person.terminal).unwrap() };
    tcsetwinsize(&person.screen, size).unwrap();
    person.sees("33 77");
    person.ends();
}

#[test]
fn the_terminal_is_put_back_when_time_is_over() {
    let line = "THROUGH_TIMEOUT_MS=300 exec \"$THROUGH\" sh -c 'trap \"\" HUP TERM; (sleep 9)& while :; do sleep 0.05; done'";
    let mut person = Person::runs(&["sh", "-c", line]);
    person.waits_until("raw", Person::is_raw);
    let (_, seen) = person.ends();
    assert_eq!(seen, "through: TimedOut after 0 bytes\r\n");
}

#[test]
fn the_terminal_is_put_back_when_a_signal_ends_it() {
    let mut person = Person::runs_through("echo ready; sleep 60");
    person.sees("ready");
    person.waits_until("raw", Person::is_raw);
    kill(Pid::from_raw(person.program.id() as i32), Signal::SIGTERM).unwrap();
    let (_, seen) = person.ends();
    assert_eq!(seen, "\r\nthrough: Signalled(15) after 7 bytes, asked to end\r\n");
}

#[test]
fn killed_ourselves_the_terminal_is_put_back_and_nothing_runs_on() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("mark");
    let line = format!("(sleep 1.5; echo alive > {}) & echo ready; wait", mark.display());
    let mut person = Person::runs_through(&line);
    person.sees("ready");
    person.waits_until("raw", Person::is_raw);
    kill(Pid::from_raw(person.program.id() as i32), Signal::SIGKILL).unwrap();
    person.program.wait().unwrap();
    person.waits_until("put back", |person| person.settings() == person.before);
    thread::sleep(Duration::from_millis(2000));
    assert!(!mark.exists());
}

#[test]
fn ctrl_z_stops_both_and_the_shell_takes_over_until_it_lets_them_go_on() {
    let mut person = Person::runs(&["bash", "--norc", "--noprofile", "-i"]);
    // What is typed is shown as well, so the words to wait for are written in another way.
    person.types("PS1='$ '; unset PROMPT_COMMAND; bind 'set enable-bracketed-paste off'; echo o''k\r");
    person.sees("ok\r\n");
    // It starts nothing more: a shell stopped just while it starts a program may never be seen as stopped, also without us.
    person.types("\"$THROUGH\" sh -c 'echo run''ning; exec sleep 60'; echo e''nd\r");
    person.sees("running\r\n");
    person.waits_until("raw", Person::is_raw);
    person.types(CTRL_Z);
    person.sees("Stopped");
    person.types("echo back; jo''bs\r");
    person.sees("back\r\n");
    assert!(!person.is_raw());
    person.types("fg\r");
    person.waits_until("raw", Person::is_raw);
    person.types(CTRL_C);
    person.sees("through: Signalled(2)");
    person.types("exit\r");
    let begun = Instant::now();
    while person.program.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < TOO_LONG, "{:?}", person.seen);
        person.look();
    }
}
