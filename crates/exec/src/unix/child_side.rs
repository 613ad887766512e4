//! What is done between the fork and the start of the command, in its own process: what no safe interface offers. It must
//! never allocate, lock or return to our code there, for other threads of ours did not come along.
//!
//! **Ending with us.** The command asks the system for SIGTERM at our death.
//!
//! **A session with a terminal.** The first process of a session is in a group that nobody in the session watches, and the
//! system does not stop such a group at Ctrl-Z. So the first process is a *warden*, a copy of ours that does nothing but
//! wait for the command, which runs in a group of its own. The warden stops when the command stops and ends as the command
//! ends, and if we are killed it puts the user's terminal back.
//!
//! **Ignoring.** A signal that our caller made us ignore (`nohup`) is ignored by the command, as without us. We listen to it
//! ourselves, so the system would forget that.
//!
//! **Starting.** The standard library would hand a file of no known format to a shell, once it has something to do here; a
//! program built for another machine would then fail with a shell's complaints about its bytes.
#![allow(unsafe_code, reason = "only code that runs after the fork can do this, and std calls that unsafe")]

use std::collections::BTreeMap;
use std::env;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{null, null_mut};

use nix::libc::{self, c_char, c_int, pid_t};
use nix::sys::termios::Termios;

use super::signals::ignored;

/// The signals of these that our caller made us ignore. To be asked before anybody listens to them.
pub(super) fn ignored_among(signals: &[c_int]) -> Vec<c_int> {
    let is_ignored = |signal: &c_int| {
        // SAFETY: without a new action the call only fills in the present one.
        unsafe {
            let mut present: libc::sigaction = zeroed();
            libc::sigaction(*signal, null(), &mut present) == 0 && present.sa_sigaction == libc::SIG_IGN
        }
    };
    signals.iter().copied().filter(is_ignored).collect()
}

/// Has `command` asked to end when we are gone, where the system can do that.
pub(super) fn end_with_us(command: &mut Command) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let us = own_pid();
        let line = Line::of(command)?;
        // SAFETY: the closure makes system calls and nothing else.
        unsafe {
            command.pre_exec(move || {
                ask_to_end_after(us);
                Err(line.start())
            });
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
    Ok(())
}

/// Runs `command` under a warden, in a session whose terminal is its standard output. `user` is the user's terminal and how
/// it is to be left; the command's process id is written to `told`. Both must be open until it was started.
pub(super) fn under_warden(
    command: &mut Command,
    user: (BorrowedFd<'_>, &Termios),
    told: BorrowedFd<'_>,
) -> io::Result<()> {
    let us = own_pid();
    let user = UserTerminal { fd: user.0.as_raw_fd(), usual: user.1.clone().into() };
    let told = told.as_raw_fd();
    let line = Line::of(command)?;
    // SAFETY: the closure makes system calls and nothing else; it comes back only in the process that becomes the command.
    unsafe {
        command.pre_exec(move || {
            split(us, &user, told)?;
            Err(line.start())
        });
    }
    Ok(())
}

/// What is to be started, as the system wants to be told. The pointers lead into the texts beside them.
struct Line {
    paths: Vec<CString>,
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    ignored: &'static [c_int],
    _texts: Vec<CString>,
}

// SAFETY: the pointers lead to the heap, to texts that live as long as they do and that nobody changes.
unsafe impl Send for Line {}
// SAFETY: the same.
unsafe impl Sync for Line {}

impl Line {
    fn of(command: &Command) -> io::Result<Line> {
        let mut variables: BTreeMap<OsString, OsString> = env::vars_os().collect();
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => variables.insert(name.to_owned(), value.to_owned()),
                None => variables.remove(name),
            };
        }
        let program = command.get_program();
        let paths = if program.as_bytes().contains(&b'/') {
            vec![text(program.to_owned())?]
        } else {
            let usual = OsStr::new("/bin:/usr/bin");
            let path = variables.get(OsStr::new("PATH")).map_or(usual, OsString::as_os_str);
            env::split_paths(path).map(|dir| text(dir.join(program).into())).collect::<io::Result<_>>()?
        };
        let words = [program].into_iter().chain(command.get_args()).map(|word| text(word.to_owned()));
        let words = words.collect::<io::Result<Vec<_>>>()?;
        let variables = variables.into_iter().map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            text(name)
        });
        let variables = variables.collect::<io::Result<Vec<_>>>()?;
        let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([null()]).collect();
        let (argv, envp) = (pointers(&words), pointers(&variables));
        Ok(Line {
            paths,
            argv,
            envp,
            ignored: ignored(),
            _texts: words.into_iter().chain(variables).collect(),
        })
    }

    /// Becomes the command, or tells why not.
    fn start(&self) -> io::Error {
        for signal in self.ignored {
            // SAFETY: a system call without memory.
            unsafe { libc::signal(*signal, libc::SIG_IGN) };
        }
        let mut why = libc::ENOENT;
        for path in &self.paths {
            // SAFETY: both lists end with a null, and so does every text.
            unsafe { libc::execve(path.as_ptr(), self.argv.as_ptr(), self.envp.as_ptr()) };
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) => {}
                Some(libc::EACCES) => why = libc::EACCES,
                _ => return error,
            }
        }
        io::Error::from_raw_os_error(why)
    }
}

fn text(from: OsString) -> io::Result<CString> {
    Ok(CString::new(from.into_vec())?)
}

struct UserTerminal {
    fd: RawFd,
    usual: libc::termios,
}

/// Makes the warden and the command out of one process, and returns as the command.
unsafe fn split(us: pid_t, user: &UserTerminal, told: RawFd) -> io::Result<()> {
    // SAFETY: system calls on descriptors that are open here, with memory of this frame.
    unsafe {
        succeed(libc::setsid())?;
        succeed(libc::ioctl(libc::STDOUT_FILENO, libc::TIOCSCTTY, 0))?;
        let (mut all, mut usual) = (zeroed(), zeroed());
        libc::sigfillset(&mut all);
        // The warden waits for signals; none may be lost before it does.
        succeed(libc::sigprocmask(libc::SIG_SETMASK, &all, &mut usual))?;
        let warden = libc::getpid();
        let command = libc::fork();
        succeed(command)?;
        if command != 0 {
            ask_to_end_after(us);
            watch(command, us, user, &all)
        }
        let command = libc::getpid();
        ask_to_end_after(warden);
        succeed(libc::setpgid(0, 0))?;
        // From the background this would stop us, but signals are still held back.
        succeed(libc::tcsetpgrp(libc::STDOUT_FILENO, command))?;
        succeed(libc::sigprocmask(libc::SIG_SETMASK, &usual, null_mut()))?;
        let pid = command.to_ne_bytes();
        succeed(libc::write(told, pid.as_ptr().cast(), pid.len()) as c_int)?;
    }
    Ok(())
}

/// The warden's life.
unsafe fn watch(command: pid_t, us: pid_t, user: &UserTerminal, all: &libc::sigset_t) -> ! {
    // SAFETY: system calls on descriptors that are open here, with memory of this frame.
    unsafe {
        // A handler of ours would ring bells that are not the warden's. All others of ours are held back for ever.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        // What is open here would look open to those who wait for its end. Only the user's terminal is still needed.
        libc::dup2(user.fd, libc::STDIN_FILENO);
        close_from(libc::STDIN_FILENO + 1);
        // We die thread by thread: our terminal may hang up, and the command end by that, before the warden is an orphan.
        let mut may_be_left = false;
        loop {
            let (mut signal, mut status) = (0, 0);
            libc::sigwait(all, &mut signal);
            let is_orphan = libc::getppid() != us;
            may_be_left |= signal == libc::SIGTERM || signal == libc::SIGHUP;
            match signal {
                libc::SIGCHLD => {
                    while libc::waitpid(command, &mut status, libc::WNOHANG | libc::WUNTRACED) == command {
                        if !libc::WIFSTOPPED(status) {
                            if may_be_left {
                                put_back(user);
                            }
                            end_as(status);
                        }
                        libc::kill(libc::getpid(), libc::SIGSTOP);
                        // Here it goes on, when our user's shell says so.
                        libc::killpg(command, libc::SIGCONT);
                    }
                }
                libc::SIGTERM | libc::SIGHUP if is_orphan => {
                    put_back(user);
                    libc::killpg(command, libc::SIGTERM);
                    libc::killpg(command, libc::SIGCONT);
                    libc::_exit(128 + libc::SIGTERM);
                }
                libc::SIGTERM => drop(libc::killpg(command, libc::SIGTERM)),
                _ => {}
            }
        }
    }
}

/// Puts the user's terminal back if it is still as we left it: whoever has it by now may have set it up for himself, but
/// only who passes everything on lets lines end by themselves.
unsafe fn put_back(user: &UserTerminal) {
    // SAFETY: the descriptor is a terminal or the calls fail.
    unsafe {
        let mut now: libc::termios = zeroed();
        let is_ours = libc::tcgetattr(libc::STDIN_FILENO, &mut now) == 0
            && now.c_oflag & libc::OPOST == 0
            && now.c_lflag & (libc::ICANON | libc::ISIG) == 0;
        if is_ours {
            libc::tcsetattr(libc::STDIN_FILENO, libc::TCSANOW, &user.usual);
        }
    }
}

/// Ends this process in the way the command ended.
unsafe fn end_as(status: c_int) -> ! {
    // SAFETY: system calls with memory of this frame.
    unsafe {
        if libc::WIFEXITED(status) {
            libc::_exit(libc::WEXITSTATUS(status));
        }
        let signal = libc::WTERMSIG(status);
        // The command left its core, if any; one of the warden would be of no use.
        libc::setrlimit(libc::RLIMIT_CORE, &zeroed());
        libc::signal(signal, libc::SIG_DFL);
        let mut none = zeroed();
        libc::sigemptyset(&mut none);
        libc::kill(libc::getpid(), signal);
        libc::sigprocmask(libc::SIG_SETMASK, &none, null_mut());
        libc::_exit(128 + signal)
    }
}

/// Closes every descriptor from `first` on.
unsafe fn close_from(first: c_int) {
    // SAFETY: nobody in this process uses any of them again.
    unsafe {
        #[cfg(target_os = "linux")]
        if libc::syscall(libc::SYS_close_range, first, c_int::MAX, 0) == 0 {
            return;
        }
        // A system may allow billions, and nobody opens them.
        let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 65_536) as c_int;
        for fd in first..most {
            libc::close(fd);
        }
    }
}

/// Has the system send SIGTERM to this process when its parent is gone; at once, if that has happened already.
unsafe fn ask_to_end_after(parent: pid_t) {
    #[cfg(target_os = "linux")]
    // SAFETY: system calls without memory.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        if libc::getppid() != parent {
            libc::kill(libc::getpid(), libc::SIGTERM);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = parent;
}

fn own_pid() -> pid_t {
    nix::unistd::getpid().as_raw()
}

fn succeed(answer: c_int) -> io::Result<()> {
    match answer {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
