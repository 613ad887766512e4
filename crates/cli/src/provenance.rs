//! How what comes through a hook's door came to be known. Anybody can run `unstuck hook` and write what he likes to it, an
//! agent's own shell too. A hook counts as watched where the agent program itself started it: our line is the only shell
//! between the two, what it reads comes from no file, and no other agent stands above. A program that an agent's shell
//! started is no agent of its own, whatever it is called.
//!
//! It is a hurdle and no wall, like [`crate::person`]: an agent runs as the same user, and could imitate all of it.

use std::fs;
use std::path::Path;

use unstuck_exec::process::{self, Process};
use unstuck_store::Source;
use unstuck_wire::hook::Host;

use crate::person;

/// Programs that run lines of others. None of them is an agent.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "busybox"];

/// Programs that run the program of an agent.
const RUNTIMES: [&str; 4] = ["node", "nodejs", "bun", "deno"];

/// What programs of agents are called, or begin with. The editor Cursor is none: a person types in its terminals.
const AGENTS: [&str; 7] = ["claude", "codex", "gemini", "qwen", "opencode", "copilot", "cursor-agent"];

/// More words of a command line are not looked at: what runs stands in front.
const WORDS: usize = 6;

/// So many processes above another one are looked at.
const ABOVE_MAX: usize = 32;

/// How a payload of this program came to be known, that came through the door of `door`.
pub(crate) fn of_hook(door: Host, sender: Host) -> Source {
    let is_agents = || is_started_by_agent(door, sender, process::parent()?, &process::look);
    match sender != Host::Generic && !reads_a_file() && is_agents().unwrap_or(false) {
        true => Source::Hook,
        false => Source::Told,
    }
}

/// How the work of a command came to be known. An agent's shell can put programs of its own in the place of those that a line
/// names, and `unstuck record` is told what somebody else ran.
pub(crate) fn of_work(door: &str) -> Source {
    match door != "record" && person::must_not_be_an_agent().is_ok() {
        true => Source::Ran,
        false => Source::Told,
    }
}

/// How the calls of a server came to be known. What an agent's shell starts may be a client and a server of its own.
pub(crate) fn of_proxy() -> Source {
    let is_started = || is_started_by_shell(process::parent()?, &process::look);
    match reads_a_file() || is_started().unwrap_or(false) {
        true => Source::Told,
        false => Source::Ran,
    }
}

/// Does anything stand between a process and the agent above it?
fn is_started_by_shell(parent: u32, look: &dyn Fn(u32) -> Option<Process>) -> Option<bool> {
    let mut agents = above(parent, look).map(|(_, above)| agent_named(&above));
    Some(agents.next()?.is_none() && agents.any(|agent| agent.is_some()))
}

/// Agents write to a pipe.
fn reads_a_file() -> bool {
    fs::metadata("/dev/stdin").is_ok_and(|about| about.is_file())
}

fn is_started_by_agent(
    door: Host,
    sender: Host,
    parent: u32,
    look: &dyn Fn(u32) -> Option<Process>,
) -> Option<bool> {
    let first = look(parent)?;
    if is_agent(&first, sender) {
        // The plugin starts us itself. All others have our line run by a shell.
        return Some(door == Host::Opencode && !is_of_another(&first, look));
    }
    if !runs_our_line(&first, door) {
        return Some(false);
    }
    let second = look(first.parent)?;
    Some(
        is_agent(&second, sender) && !is_of_another(&second, look) || is_demonstration(&second, first.parent),
    )
}

/// Has another agent started this one? A program that only launches it is none: its runtime is named, or an application.
fn is_of_another(agent: &Process, look: &dyn Fn(u32) -> Option<Process>) -> bool {
    let mut is_launched = true;
    for (_, above) in above(agent.parent, look) {
        let program = file_name(above.line.split(' ').next().unwrap_or_default());
        is_launched &= agent_named(&above).is_some() && !AGENTS.contains(&program);
        if agent_named(&above).is_some() && !is_launched {
            return true;
        }
    }
    is_orphan(agent, look) && person::is_an_agent()
}

/// Has whoever started it ended, as far as one can see? The first process of a machine takes such a one over.
fn is_orphan(process: &Process, look: &dyn Fn(u32) -> Option<Process>) -> bool {
    let Some(above) = look(process.parent) else { return false };
    let program = file_name(above.line.split(' ').next().unwrap_or_default());
    let is_starter =
        SHELLS.contains(&program) || RUNTIMES.contains(&program) || program.starts_with("python");
    above.name == "systemd" || process.parent == 1 && !is_starter
}

/// A process and those above it, by their numbers.
pub(crate) fn above(
    first: u32,
    look: &dyn Fn(u32) -> Option<Process>,
) -> impl Iterator<Item = (u32, Process)> + use<'_> {
    let mut next = first;
    // What is being built and tested may be so by an agent.
    let is_test = |found: &Process| cfg!(debug_assertions) && found.name.starts_with("cargo");
    std::iter::from_fn(move || {
        let (number, found) = (next, look(next).filter(|found| !is_test(found))?);
        next = found.parent;
        Some((number, found))
    })
    .take(ABOVE_MAX)
}

/// The agent that a process is, whichever.
pub(crate) fn agent_named(process: &Process) -> Option<&'static str> {
    AGENTS.into_iter().find(|agent| is_called(process, agent))
}

/// Is it a shell with nothing to do but our line?
fn runs_our_line(process: &Process, door: Host) -> bool {
    let Some((shell, rest)) = process.line.split_once(' ') else { return false };
    if !SHELLS.contains(&file_name(shell)) {
        return false;
    }
    let Some((flags, line)) = rest.split_once("c ") else { return false };
    let is_flags =
        flags.starts_with('-') && flags.chars().all(|sign| sign.is_ascii_alphabetic() || "- ".contains(sign));
    is_flags && is_our_line(line.trim(), door)
}

/// Is it one call of `unstuck hook`, and does nothing else stand in the line?
fn is_our_line(line: &str, door: Host) -> bool {
    let call = line.strip_suffix("|| :").unwrap_or(line).trim_end();
    let call = call.strip_suffix("2>/dev/null").unwrap_or(call).trim_end();
    let Some(program) = call.strip_suffix(&format!(" hook {}", door.word())) else { return false };
    let quoted = program.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    match quoted {
        Some(path) => !path.replace(r"'\''", "").contains('\''),
        None => !program.contains(|sign: char| sign.is_whitespace() || "'\"`$;|&<>()\\".contains(sign)),
    }
}

/// Is it the program of this agent?
fn is_agent(process: &Process, host: Host) -> bool {
    name_of(host).is_some_and(|agent| is_called(process, agent))
}

fn is_called(process: &Process, agent: &str) -> bool {
    let mut words = process.line.split(' ').take(WORDS);
    let program = file_name(words.next().unwrap_or_default());
    if SHELLS.contains(&program) || SHELLS.contains(&&*process.name) {
        return false;
    }
    let is_named = |name: &str| name.to_ascii_lowercase().contains(agent);
    let is_its_file = |word: &str| {
        !word.starts_with('-')
            && word.split(['/', '\\']).any(|part| part.trim_start_matches('@').starts_with(agent))
    };
    is_named(&process.name)
        || is_named(program)
        || RUNTIMES.contains(&program) && words.any(is_its_file)
        // Some come with a runtime of their own.
        || RUNTIMES.contains(&program) && is_its_file(process.line.split(' ').next().unwrap_or_default())
}

/// What the program of an agent is called, or begins with.
fn name_of(host: Host) -> Option<&'static str> {
    match host {
        Host::Generic => None,
        Host::Claude => Some("claude"),
        Host::Codex => Some("codex"),
        Host::Gemini => Some("gemini"),
        Host::Qwen => Some("qwen"),
        Host::Opencode => Some("opencode"),
        Host::Copilot => Some("copilot"),
        Host::Cursor => Some("cursor"),
    }
}

/// Is it `unstuck demo`, whose scripted agent makes all of its calls itself?
fn is_demonstration(process: &Process, id: u32) -> bool {
    let own = std::env::current_exe().ok();
    let words: Vec<&str> = process.line.split(' ').take(WORDS).collect();
    let is_named =
        |own: &Path| words.first().is_some_and(|first| own.file_name() == Some(file_name(first).as_ref()));
    // Where nobody can tell what runs, its name has to do.
    let runs_own = |own: &Path| process::program(id).is_none_or(|program| program == own);
    own.is_some_and(|own| is_named(&own) && runs_own(&own))
        && matches!(words[1..], ["demo", ..] | ["--lang", _, "demo", ..])
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path).trim_start_matches('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "'/usr/bin/unstuck' hook claude 2>/dev/null || :";

    /// Processes by their numbers: the parent of 1 is 2, and so on.
    #[track_caller]
    fn check(host: Host, chain: &[(&str, &str)], expected: bool) {
        let look = |pid: u32| {
            let (name, line) = chain.get(pid as usize - 1)?;
            Some(Process { parent: pid + 1, name: (*name).to_owned(), line: (*line).to_owned() })
        };
        let found = is_started_by_agent(host, host, 1, &look).unwrap_or(false);
        assert_eq!(found, expected, "{chain:?}");
    }

    #[test]
    fn a_hook_that_the_agent_started_is_watched() {
        let line = format!("/bin/sh -c {LINE}");
        for agent in [
            ("claude", "claude"),
            ("2.1.0", "/home/u/.local/share/claude/versions/claude --resume"),
            ("node", "node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js -p x"),
            ("MainThread", "/usr/bin/node --max-old-space-size=8192 /usr/bin/claude"),
        ] {
            check(Host::Claude, &[("sh", &line), agent], true);
        }
        check(
            Host::Claude,
            &[("sh", "/bin/sh -c unstuck hook claude 2>/dev/null || :"), ("claude", "claude")],
            true,
        );
        let codex = "/bin/zsh -lc '/opt/o'\\''neil/unstuck' hook codex 2>/dev/null || :";
        check(Host::Codex, &[("zsh", codex), ("codex", "codex exec")], true);
        check(
            Host::Gemini,
            &[("bash", "bash -c 'u' hook gemini 2>/dev/null || :"), ("node", "node /x/gemini")],
            true,
        );
        check(Host::Opencode, &[("opencode", "opencode run")], true);
    }

    #[test]
    fn what_a_shell_of_an_agent_started_is_no_agent_whatever_it_is_called() {
        let line = format!("/bin/sh -c {LINE}");
        let (hook, copy) = (("sh", line.as_str()), ("claude", "/tmp/claude -c x"));
        let shell = ("bash", "/bin/bash -c eval x");
        for top in [("claude", "claude"), ("node", "node /usr/bin/gemini"), ("codex", "codex exec")] {
            check(Host::Claude, &[hook, copy, shell, top], false);
            check(Host::Claude, &[hook, copy, shell, ("setsid", "setsid x"), shell, top, shell], false);
        }
        // The shell may have become the copy.
        check(Host::Claude, &[hook, copy, ("claude", "claude"), ("bash", "-bash")], false);
        check(Host::Claude, &[hook, ("claude", "claude"), ("claude", "claude --bg"), shell, copy], false);
        // A runtime or an application that launches it is no shell.
        let node = ("node", "node --heap=1 /usr/bin/claude");
        check(
            Host::Claude,
            &[hook, ("claude", "claude"), node, ("bash", "-bash"), ("cursor", "cursor")],
            true,
        );
        check(Host::Claude, &[hook, ("claude", "claude"), ("claude-desktop", "/opt/claude-desktop")], true);
        check(Host::Opencode, &[("opencode", "opencode -c x"), shell, ("opencode", "opencode")], false);
    }

    #[test]
    fn a_server_that_a_shell_of_an_agent_started_is_not_watched() {
        let check = |chain: &[(&str, &str)], expected: bool| {
            let look = |pid: u32| {
                let (name, line) = chain.get(pid as usize - 1)?;
                Some(Process { parent: pid + 1, name: (*name).to_owned(), line: (*line).to_owned() })
            };
            assert_eq!(is_started_by_shell(1, &look).unwrap_or(false), expected, "{chain:?}");
        };
        let (claude, shell) = (("claude", "claude"), ("bash", "bash -c eval x"));
        check(&[claude, shell], false);
        check(&[("code", "code"), ("init", "init")], false);
        check(&[shell, ("sshd", "sshd")], false);
        check(&[shell, claude], true);
        check(&[("python3", "python3 client.py"), shell, claude, shell], true);
    }

    #[test]
    fn a_hook_that_a_shell_of_the_agent_started_is_not() {
        let line = format!("/bin/sh -c {LINE}");
        let claude = ("claude", "claude");
        let shell = ("bash", "/bin/bash -c source /x && eval 'echo x | unstuck hook claude' && pwd");
        check(Host::Claude, &[shell, claude], false);
        check(Host::Claude, &[("sh", &line), shell, claude], false);
        check(Host::Claude, &[("sh", "sh -c cat f | unstuck hook claude"), claude], false);
        check(Host::Claude, &[("sh", "sh -c unstuck hook claude < f"), claude], false);
        check(
            Host::Claude,
            &[("sh", "sh -c 'u' hook claude 2>/dev/null || : ; 'u' hook claude"), claude],
            false,
        );
        check(Host::Claude, &[("sh", "sh ./c hook claude 2>/dev/null || :"), claude], false);
        check(Host::Claude, &[("sh", "sh -c x=$(f) hook claude"), claude], false);
        check(Host::Claude, &[("sh", "sh -c 'u' hook codex 2>/dev/null || :"), claude], false);
        check(Host::Claude, &[("sh", &line), ("python3", "python3 forge.py"), claude], false);
        check(Host::Claude, &[("sh", &line), ("bash", "bash /srv/claude/forge"), claude], false);
        check(Host::Claude, &[("sh", &line), ("codex", "codex")], false);
        check(Host::Claude, &[("sh", &line)], false);
        check(Host::Claude, &[], false);
        check(Host::Claude, &[claude], false);
        check(Host::Generic, &[("sh", "sh -c 'u' hook generic"), claude], false);
    }
}
