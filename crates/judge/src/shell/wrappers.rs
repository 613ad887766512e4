//! Programs that only run another one, and how their own words are told from its words. Rows, and one loop over them.

use super::word::{assignment, basename};

/// What a command runs besides itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Inner {
    /// Nothing.
    Nothing,
    /// The words from this index on are the command.
    Words(usize),
    /// A script that another shell reads.
    Script {
        /// The script.
        text: String,
        /// Whether that shell stops at the first failure.
        errexit: bool,
        /// Whether that shell looks at every part of a pipeline.
        pipefail: bool,
    },
    /// The commands between these bounds, for each thing found; the outer command answers for itself.
    Each(Vec<(usize, usize)>),
}

/// One wrapper: its name (with the sub-command that makes it one), the flags that take the next word as their value,
/// how many words of its own stand before the command, and the flags with which it wraps nothing.
struct Wrapper {
    name: &'static str,
    sub: &'static str,
    valued: &'static [&'static str],
    operands: usize,
    unless: &'static [&'static str],
}

const fn wrap(
    name: &'static str,
    sub: &'static str,
    valued: &'static [&'static str],
    operands: usize,
    unless: &'static [&'static str],
) -> Wrapper {
    Wrapper { name, sub, valued, operands, unless }
}

const WRAPPERS: &[Wrapper] = &[
    wrap(
        "sudo",
        "",
        &["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R", "--user", "--group"],
        0,
        &["-l", "-v", "-k", "-K", "-e"],
    ),
    wrap("doas", "", &["-u", "-C"], 0, &["-L"]),
    wrap("env", "", &["-u", "-C", "--unset", "--chdir"], 0, &[]),
    wrap("cross-env", "", &[], 0, &[]),
    wrap("dotenv", "", &["-e", "-f"], 0, &["list", "get", "set"]),
    wrap("timeout", "", &["-s", "-k", "--signal", "--kill-after"], 1, &[]),
    wrap("gtimeout", "", &["-s", "-k", "--signal", "--kill-after"], 1, &[]),
    wrap("nice", "", &["-n", "--adjustment"], 0, &[]),
    wrap("ionice", "", &["-c", "-n"], 0, &["-p"]),
    wrap("nohup", "", &[], 0, &[]),
    wrap("setsid", "", &[], 0, &[]),
    wrap("time", "", &["-f", "-o", "--format", "--output"], 0, &[]),
    wrap("gtime", "", &["-f", "-o"], 0, &[]),
    wrap("stdbuf", "", &["-i", "-o", "-e"], 0, &[]),
    wrap("unbuffer", "", &[], 0, &[]),
    wrap("busybox", "", &[], 0, &["--list", "--install"]),
    wrap("toybox", "", &[], 0, &[]),
    wrap("coproc", "", &[], 0, &[]),
    wrap("unshare", "", &["-R", "--root", "-w", "--wd", "-S", "--setuid", "-G", "--setgid"], 0, &[]),
    wrap("exec", "", &["-a"], 0, &[]),
    wrap("command", "", &[], 0, &["-v", "-V"]),
    wrap("builtin", "", &[], 0, &[]),
    wrap(
        "xargs",
        "",
        &[
            "-a",
            "-d",
            "-E",
            "-I",
            "-L",
            "-n",
            "-P",
            "-s",
            "--arg-file",
            "--delimiter",
            "--max-args",
            "--max-procs",
            "--replace",
        ],
        0,
        &[],
    ),
    wrap("parallel", "", &["-j", "--jobs", "-a", "-N", "-n", "--colsep", "-C"], 0, &[]),
    wrap("caffeinate", "", &["-t", "-w"], 0, &[]),
    wrap("chronic", "", &[], 0, &[]),
    wrap("strace", "", &["-e", "-o", "-s", "-p", "-u"], 0, &["-p"]),
    wrap("ltrace", "", &["-e", "-o", "-s", "-u"], 0, &["-p"]),
    wrap("valgrind", "", &[], 0, &[]),
    wrap("catchsegv", "", &[], 0, &[]),
    wrap("taskset", "", &[], 1, &["-p"]),
    wrap("numactl", "", &["-N", "-m", "-C"], 0, &["-H", "-s"]),
    wrap("flock", "", &["-w", "-E", "--timeout"], 1, &["-u"]),
    wrap("chroot", "", &[], 1, &[]),
    wrap("fakeroot", "", &[], 0, &[]),
    wrap("xvfb-run", "", &["-n", "-s", "-e", "-f"], 0, &[]),
    wrap("gosu", "", &[], 1, &[]),
    wrap("su-exec", "", &[], 1, &[]),
    wrap("runuser", "", &["-u", "-g"], 0, &["-c", "-l"]),
    wrap("tini", "", &[], 0, &[]),
    wrap("dumb-init", "", &[], 0, &[]),
    wrap("systemd-run", "", &["-p", "-u", "--unit"], 0, &[]),
    wrap("retry", "", &["-n", "-t", "-d"], 0, &[]),
    wrap("npx", "", &["-p", "--package", "-c"], 0, &[]),
    wrap("bunx", "", &[], 0, &[]),
    wrap("uvx", "", &["--from", "--with", "--python", "-p"], 0, &[]),
    wrap("npm", "exec", &["-p", "--package"], 0, &[]),
    wrap("pnpm", "exec", &[], 0, &[]),
    wrap("pnpm", "dlx", &[], 0, &[]),
    wrap("yarn", "exec", &[], 0, &[]),
    wrap("yarn", "dlx", &["-p"], 0, &[]),
    wrap("bun", "x", &[], 0, &[]),
    wrap(
        "uv",
        "run",
        &[
            "--with",
            "--python",
            "-p",
            "--extra",
            "--group",
            "--package",
            "--env-file",
            "--project",
            "--directory",
        ],
        0,
        &[],
    ),
    wrap("poetry", "run", &[], 0, &[]),
    wrap("pipenv", "run", &[], 0, &[]),
    wrap("pdm", "run", &["-p"], 0, &[]),
    wrap("rye", "run", &[], 0, &[]),
    wrap("hatch", "run", &[], 0, &[]),
    wrap("pixi", "run", &["-e", "--environment"], 0, &[]),
    wrap("pipx", "run", &["--spec"], 0, &[]),
    wrap("conda", "run", &["-n", "-p", "--name", "--prefix", "--cwd"], 0, &[]),
    wrap("mamba", "run", &["-n", "-p"], 0, &[]),
    wrap("micromamba", "run", &["-n", "-p"], 0, &[]),
    wrap("bundle", "exec", &[], 0, &[]),
    wrap("mise", "exec", &[], 0, &[]),
    wrap("mise", "x", &[], 0, &[]),
    wrap("asdf", "exec", &[], 0, &[]),
    wrap("rbenv", "exec", &[], 0, &[]),
    wrap("pyenv", "exec", &[], 0, &[]),
    wrap("direnv", "exec", &[], 1, &[]),
    wrap("rustup", "run", &[], 1, &[]),
    wrap("doppler", "run", &[], 0, &[]),
    wrap("op", "run", &[], 0, &[]),
    wrap("aws-vault", "exec", &[], 1, &[]),
    wrap("coverage", "run", &["--source", "--rcfile"], 0, &[]),
    wrap("docker", "exec", &["-u", "-w", "-e", "--user", "--workdir", "--env"], 1, &[]),
    wrap("podman", "exec", &["-u", "-w", "-e"], 1, &[]),
    wrap("kubectl", "exec", &["-c", "-n", "--container", "--namespace"], 1, &[]),
];

const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash", "ksh", "ash", "fish", "mksh", "rbash"];

/// Tells whether `program` reads shell scripts.
pub(super) fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program)
}

/// Finds what a command runs besides itself.
pub(super) fn inner(program: &str, words: &[String]) -> Inner {
    match program {
        _ if is_shell(program) => shell_script(words),
        "su" | "runuser" | "script" => after_flag(words, &["-c", "--command"]),
        "nix-shell" => after_flag(words, &["--run", "--command"]),
        "nix" => match words.iter().position(|word| word == "-c" || word == "--command") {
            Some(at) => from(words, at + 1),
            None => Inner::Nothing,
        },
        "eval" => script(words.get(1..).unwrap_or_default().join(" ")),
        // What a trap does when it goes off is its first word.
        "trap" => match words.get(1).filter(|word| words.len() > 2 && !word.starts_with('-')) {
            Some(word) => script(word.clone()),
            None => Inner::Nothing,
        },
        "watch" => match past_flags(words, 1, &["-n", "--interval"]) {
            Some(at) => script(words[at..].join(" ")),
            None => Inner::Nothing,
        },
        "find" | "fd" => each(words),
        _ if is_python(program) => python_module(words),
        _ => wrapped(program, words),
    }
}

fn script(text: String) -> Inner {
    Inner::Script { text, errexit: false, pipefail: false }
}

fn from(words: &[String], at: usize) -> Inner {
    if at < words.len() { Inner::Words(at) } else { Inner::Nothing }
}

/// `bash -lc 'script'`, with the options that decide what its exit code means.
fn shell_script(words: &[String]) -> Inner {
    let (mut errexit, mut pipefail, mut wants_script) = (false, false, false);
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        let Some(flags) = word.strip_prefix('-').or_else(|| word.strip_prefix('+')) else {
            return if wants_script {
                Inner::Script { text: word.clone(), errexit, pipefail }
            } else {
                Inner::Nothing
            };
        };
        if flags.starts_with('-') {
            continue;
        }
        errexit |= flags.contains('e');
        wants_script |= flags.contains('c');
        if flags.ends_with('o') {
            let option = rest.next().map(String::as_str);
            errexit |= option == Some("errexit");
            pipefail |= option == Some("pipefail");
        }
    }
    Inner::Nothing
}

fn after_flag(words: &[String], flags: &[&str]) -> Inner {
    let at = words.iter().position(|word| flags.contains(&word.as_str()));
    match at.and_then(|at| words.get(at + 1)) {
        Some(text) => script(text.clone()),
        None => Inner::Nothing,
    }
}

/// `find … -exec rm {} \;`: each command found, without the terminator.
fn each(words: &[String]) -> Inner {
    let mut found = Vec::new();
    let mut at = 1;
    while at < words.len() {
        let starts =
            matches!(words[at].as_str(), "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "--exec" | "-X");
        at += 1;
        if starts {
            let end = words[at..]
                .iter()
                .position(|word| word == ";" || word == "+")
                .map_or(words.len(), |len| at + len);
            if at < end {
                found.push((at, end));
            }
            at = end + 1;
        }
    }
    if found.is_empty() { Inner::Nothing } else { Inner::Each(found) }
}

/// Tells whether `program` is a Python interpreter, with or without its version.
fn is_python(program: &str) -> bool {
    ["python", "pypy"].iter().any(|name| {
        program
            .strip_prefix(name)
            .is_some_and(|version| version.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
    })
}

/// `python -m pytest` runs `pytest`.
fn python_module(words: &[String]) -> Inner {
    let mut at = 1;
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "-m" => return from(words, at + 1),
            "-W" | "-X" => at += 2,
            "-c" | "-" => return Inner::Nothing,
            flag if flag.starts_with('-') => at += 1,
            _ => return Inner::Nothing,
        }
    }
    Inner::Nothing
}

fn wrapped(program: &str, words: &[String]) -> Inner {
    for row in WRAPPERS.iter().filter(|row| row.name == program) {
        let mut at = 1;
        if !row.sub.is_empty() {
            match past_flags(words, at, row.valued) {
                Some(sub) if words[sub] == row.sub => at = sub + 1,
                Some(_) | None => continue,
            }
        }
        if words.get(at).is_some_and(|word| row.unless.contains(&word.as_str())) {
            return Inner::Nothing;
        }
        for _ in 0..row.operands {
            at = match past_flags(words, at, row.valued) {
                Some(operand) => operand + 1,
                None => return Inner::Nothing,
            };
        }
        return past_flags(words, at, row.valued).map_or(Inner::Nothing, Inner::Words);
    }
    Inner::Nothing
}

/// The index of the first word from `at` on that is neither a flag, nor a flag's value, nor an assignment.
fn past_flags(words: &[String], mut at: usize, valued: &[&str]) -> Option<usize> {
    while let Some(word) = words.get(at) {
        if word == "--" {
            return (at + 1 < words.len()).then_some(at + 1);
        } else if valued.contains(&word.as_str()) {
            at += 2;
        } else if word.starts_with('-') && word.len() > 1 || assignment(word).is_some() {
            at += 1;
        } else {
            return Some(at);
        }
    }
    None
}

/// The name of the program a word stands for.
pub(super) fn program(word: &str) -> String {
    basename(word).to_owned()
}
