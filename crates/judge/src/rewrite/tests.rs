//! Failures as they are diagnosed, on machines that have the replacement and on machines that have not.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Machine, Rewrite, names, propose};
use crate::shell::{self, Command, Script};
use crate::{Call, Kind, Lang, Observation, Outcome, Rules};

/// A machine that is only told of: `program python3`, `behind python python3.12`, `module python3 pip`, `plugin docker
/// compose`, `project tsc`, `usual cargo`.
struct Told<'a>(&'a [&'a str]);

impl Told<'_> {
    fn has(&self, fact: &str) -> bool {
        self.0.contains(&fact)
    }
}

impl Machine for Told<'_> {
    fn program(&self, name: &str) -> Option<String> {
        let behind = format!("behind {name} ");
        let known =
            self.has(&format!("program {name}")) || self.0.iter().any(|fact| fact.starts_with(&behind));
        known.then(|| format!("/usr/bin/{name}"))
    }

    fn behind(&self, name: &str) -> Option<String> {
        self.0.iter().find_map(|fact| fact.strip_prefix(&format!("behind {name} "))).map(str::to_owned)
    }

    fn has_module(&self, python: &str, module: &str) -> bool {
        self.has(&format!("module {python} {module}"))
    }

    fn has_plugin(&self, program: &str, plugin: &str) -> bool {
        self.has(&format!("plugin {program} {plugin}"))
    }

    fn in_project(&self, name: &str) -> Option<String> {
        self.has(&format!("project {name}")).then(|| format!("/srv/app/node_modules/.bin/{name}"))
    }

    fn off_path(&self, name: &str) -> Option<String> {
        self.has(&format!("usual {name}")).then(|| format!("/home/ada/.cargo/bin/{name}"))
    }
}

/// What is proposed after a call ended so. The diagnosis is the real one, taken through what is kept of it.
fn after(call: &Call, outcome: Outcome, output: &str, facts: &[&str]) -> Option<Rewrite> {
    let observation = Observation {
        call: call.clone(),
        outcome,
        http_status: None,
        stdout: Vec::new(),
        stderr: Vec::new(),
        merged: output.as_bytes().to_vec(),
    };
    let diagnosis = Rules::built_in().diagnose(&observation);
    let line = diagnosis.evidence.as_ref().map(|found| found.text.as_str());
    let rewrite = propose(call, diagnosis.kind, &diagnosis.rule, line, &Told(facts))?;
    let again = Call::new(call.tool.clone(), rewrite.input.clone());
    assert_eq!(
        propose(&again, diagnosis.kind, &diagnosis.rule, line, &Told(facts)),
        None,
        "proposed twice for {:?}",
        call.input
    );
    Some(rewrite)
}

/// What a line becomes, with the row that did it; `-` where nothing is proposed.
fn seen(line: &str, exit: i32, output: &str, facts: &[&str]) -> String {
    match after(&Call::shell(line), Outcome::Exited { code: exit }, output, facts) {
        Some(rewrite) => {
            let command = rewrite.input["command"].as_str().unwrap().to_owned();
            if command == line {
                return rewrite.row.to_owned();
            }
            check_only_named_words(line, &command, &rewrite);
            format!("{}: {command}", rewrite.row)
        }
        None => "-".to_owned(),
    }
}

/// Holds what must be so for every proposal: taking the new words out again gives back the line, byte for byte, and each
/// command but the named ones is the same with all its redirections.
fn check_only_named_words(old: &str, new: &str, rewrite: &Rewrite) {
    assert!(rewrite.to != rewrite.from && new.contains(&rewrite.to), "{new} lacks {}", rewrite.to);
    let parts = |line: &str| -> Vec<(Vec<shell::Redirection>, shell::Join)> {
        let script = Script::parse(line);
        // `python3 -m pip` counts `pip` once more.
        let is_first = |command: &&Command| command.program != "pip";
        let part = |command: &Command| (command.redirections.clone(), command.then);
        script.commands().iter().filter(is_first).map(part).filter(|(to, _)| !to.is_empty()).collect()
    };
    if !rewrite.to.contains("pip") {
        assert_eq!(parts(old), parts(new), "{old}");
    }
    assert!(
        differ_only_by(old, new, &rewrite.from, &rewrite.to),
        "more than {} changed: {new}",
        rewrite.from
    );
}

/// Whether `new` is `old` with some `from` become `to`.
fn differ_only_by(old: &str, new: &str, from: &str, to: &str) -> bool {
    let renamed = || Some((old.strip_prefix(from)?, new.strip_prefix(to)?));
    let kept = || {
        let sign = old.chars().next()?;
        Some((&old[sign.len_utf8()..], new.strip_prefix(sign)?))
    };
    let goes_on =
        |rest: Option<(&str, &str)>| rest.is_some_and(|(old, new)| differ_only_by(old, new, from, to));
    old == new || goes_on(renamed()) || goes_on(kept())
}

/// One row: the line, its exit code and output, the facts without which nothing may be proposed, and what is proposed.
fn check(rows: &[(&str, i32, &str, &[&str], &str)]) {
    for (line, exit, output, facts, expected) in rows {
        assert_eq!(seen(line, *exit, output, facts), *expected, "{line}");
        if *expected == "-" {
            continue;
        }
        // Each fact is needed: on a machine without it, nothing is rewritten.
        for missing in 0..facts.len() {
            let fewer: Vec<&str> =
                facts.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, fact)| *fact).collect();
            assert_eq!(seen(line, *exit, output, &fewer), "-", "{line} without {}", facts[missing]);
        }
    }
}

const NO_PYTHON: &str = "bash: line 1: python: command not found";

#[test]
fn a_missing_program_gets_the_name_it_has_here_and_nothing_on_a_machine_without_it() {
    check(&[
        ("python x.py", 127, NO_PYTHON, &["program python3"], "python-to-python3: python3 x.py"),
        (
            "python x.py",
            127,
            "zsh: command not found: python",
            &["program python3"],
            "python-to-python3: python3 x.py",
        ),
        (
            "python x.py",
            127,
            "/bin/sh: 1: python: not found",
            &["program python3"],
            "python-to-python3: python3 x.py",
        ),
        (
            "python3 x.py",
            127,
            "bash: python3: command not found",
            &["behind python python3.12"],
            "python3-to-python: python x.py",
        ),
        ("python3 x.py", 127, "bash: python3: command not found", &["behind python python2.7"], "-"),
        (
            "pip install -r r.txt",
            127,
            "bash: line 1: pip: command not found",
            &["program python3", "module python3 pip"],
            "pip-to-module: python3 -m pip install -r r.txt",
        ),
        (
            "pip3 list",
            127,
            "bash: line 1: pip3: command not found",
            &["program python3", "module python3 pip"],
            "pip3-to-module: python3 -m pip list",
        ),
        (
            "nodejs a.js",
            127,
            "bash: nodejs: command not found",
            &["program node"],
            "nodejs-to-node: node a.js",
        ),
        (
            "node a.js",
            127,
            "bash: node: command not found",
            &["program nodejs"],
            "node-to-nodejs: nodejs a.js",
        ),
        ("fd -e rs", 127, "bash: fd: command not found", &["program fdfind"], "fd-to-fdfind: fdfind -e rs"),
        ("bat a.rs", 127, "bash: bat: command not found", &["program batcat"], "bat-to-batcat: batcat a.rs"),
        (
            "yarn build",
            127,
            "bash: yarn: command not found",
            &["program yarnpkg"],
            "yarn-to-yarnpkg: yarnpkg build",
        ),
        (
            "timeout 5 make",
            127,
            "zsh: command not found: timeout",
            &["program gtimeout"],
            "timeout-to-gtimeout: gtimeout 5 make",
        ),
        (
            "docker-compose up -d",
            127,
            "bash: docker-compose: command not found",
            &["program docker", "plugin docker compose"],
            "docker-compose-to-plugin: docker compose up -d",
        ),
        (
            "docker compose up -d",
            125,
            "unknown shorthand flag: 'd' in -d\n\nUsage:  docker [OPTIONS] COMMAND [ARG...]",
            &["program docker", "program docker-compose"],
            "docker-plugin-to-compose: docker-compose up -d",
        ),
        (
            "docker compose ps",
            1,
            "docker: 'compose' is not a docker command.\nSee 'docker --help'",
            &["program docker", "program docker-compose"],
            "docker-plugin-to-compose: docker-compose ps",
        ),
    ]);
}

#[test]
fn a_program_that_is_not_on_path_gets_its_full_path_and_nothing_where_it_is_nowhere() {
    check(&[
        (
            "tsc --noEmit",
            127,
            "bash: line 1: tsc: command not found",
            &["project tsc"],
            "project-program: /srv/app/node_modules/.bin/tsc --noEmit",
        ),
        (
            "cargo test 2>&1 | tail -5",
            0,
            "bash: line 1: cargo: command not found",
            &["usual cargo"],
            "off-path-program: /home/ada/.cargo/bin/cargo test 2>&1 | tail -5",
        ),
        // The project of another folder has other programs; the usual places stay where they are.
        ("cd web && tsc", 127, "bash: line 1: tsc: command not found", &["project tsc"], "-"),
        (
            "cd web && cargo b",
            127,
            "bash: line 1: cargo: command not found",
            &["usual cargo"],
            "off-path-program: cd web && /home/ada/.cargo/bin/cargo b",
        ),
        ("sudo ls", 127, "bash: line 1: sudo: command not found", &["usual sudo"], "-"),
        // `bash` complains here and is not what is missing.
        ("bash run.sh", 127, "bash: run.sh: command not found", &["usual bash"], "-"),
    ]);
}

#[test]
fn only_the_word_in_the_place_of_the_program_changes() {
    let python3 = |line: &'static str| match seen(line, 127, NO_PYTHON, &["program python3"]).split_once(": ")
    {
        Some((_, new)) => new.to_owned(),
        None => "-".to_owned(),
    };
    for (line, expected) in [
        ("cd python && python python.py", "cd python && python3 python.py"),
        ("A=python B=1 python x > python 2>&1", "A=python B=1 python3 x > python 2>&1"),
        ("echo python | python - | grep python", "echo python | python3 - | grep python"),
        ("timeout 5 nice -n 3 python x", "timeout 5 nice -n 3 python3 x"),
        ("ls *.py | xargs python", "ls *.py | xargs python3"),
        ("echo \"$(python -V)\" 'python'", "echo \"$(python3 -V)\" 'python'"),
        ("if true; then python x; fi", "if true; then python3 x; fi"),
        ("(python a); python b", "(python3 a); python3 b"),
        ("python - <<'EOF'\npython x\nEOF\n", "python3 - <<'EOF'\npython x\nEOF\n"),
        ("  \t python\tx # python", "  \t python3\tx # python"),
        ("python \\\n  x", "python3 \\\n  x"),
        ("A=读 python 文.py", "A=读 python3 文.py"),
    ] {
        assert_eq!(python3(line), expected, "{line}");
    }
}

#[test]
fn nothing_is_proposed_where_the_place_the_machine_or_the_path_is_not_certain() {
    for line in [
        "bash -c 'python x'",
        "bash -lc \"python x\"",
        "'python' x",
        "\\python x",
        "\"python\" x",
        "python a && bash -c 'python b'",
        "eval python x",
        "docker exec box python x",
        "docker exec box find . -exec python {} \\; -exec python {} \\;",
        "kubectl exec pod -- python x",
        "ssh host python x",
        "sudo python x",
        "chroot /mnt python x",
        "uv run python x",
        "poetry run python x",
        "PATH=/opt/x:$PATH python x",
        "export PATH=/opt/x && python x",
        "env -i python x",
        "env PATH=/opt python x",
        "source .venv/bin/activate && python x",
        ". ./env && python x",
        "alias python=python2; python x",
        "bash <<EOF\npython x\nEOF",
        "`python x`",
        "echo python",
        "./python x",
        "$python x",
        "make test",
        "",
    ] {
        assert_eq!(seen(line, 127, NO_PYTHON, &["program python3"]), "-", "{line}");
    }
}

#[test]
fn another_cause_or_a_program_that_is_there_by_now_is_no_reason() {
    let both = &["program python", "program python3"];
    assert_eq!(seen("python x", 127, NO_PYTHON, both), "-");
    let here = &["program python3"];
    assert_eq!(
        seen("python x", 1, "python: can't open file 'x': [Errno 2] No such file or directory", here),
        "-"
    );
    assert_eq!(seen("python x && jq .", 127, "bash: line 1: jq: command not found", here), "-");
    assert_eq!(seen("python x", 1, "bash: line 1: python: Permission denied", here), "-");
    let call = Call::shell("python x");
    assert_eq!(propose(&call, Kind::CommandNotFound, "shell.command-not-found", None, &Told(here)), None);
    assert_eq!(propose(&call, Kind::Unknown, "", Some(NO_PYTHON), &Told(here)), None);
    let install = Call::shell("apt-get install jq");
    let asked = Some("Do you want to continue? [Y/n] y");
    assert_eq!(propose(&install, Kind::NotAnError, "", asked, &Told(&["program apt-get"])), None);
}

#[test]
fn a_question_that_is_a_warning_is_left_to_whoever_asked_for_it() {
    let aborted = "Do you want to continue? [Y/n] Abort.";
    let rows = [
        "apt-get install jq nano-",
        "apt-get install --allow-downgrades jq=1.5",
        "apt install --allow-unauthenticated jq",
        "apt-get install --purge jq",
        "apt-get install --force-yes jq",
        "apt-get install --autoremove jq",
        "apt-get install -o APT::Get::AllowUnauthenticated=true jq",
        "apt-get install -f",
        "apt-get purge jq",
        "apt-get dist-upgrade",
        "apt-get() { command apt-get --allow-remove-essential \"$@\"; }; apt-get install jq",
        "function apt-get { x; }; apt-get install jq",
        "alias apt-get='apt-get --purge'; apt-get install jq",
        "hash -p /tmp/x apt-get; apt-get install jq",
        "unset PATH; apt-get install jq",
        "printf -v PATH /tmp/x; apt-get install jq",
    ];
    for line in rows {
        assert_eq!(seen(line, 1, aborted, &["program apt-get", "program apt"]), "-", "{line}");
    }
    let call = Call::shell("apt-get install jq");
    for said in [
        "The following packages will be REMOVED: nano. Do you want to continue? [Y/n]",
        "WARNING: The following packages cannot be authenticated! Do you want to continue? [Y/n]",
        "This should NOT be done: essential packages. Do you want to continue? [Y/n]",
    ] {
        let told = propose(&call, Kind::Aborted, "apt.no-answer", Some(said), &Told(&["program apt-get"]));
        assert_eq!(told, None, "{said}");
    }
    for line in
        ["dnf install --allowerasing jq", "dnf install --nogpgcheck jq", "yum install --setopt=x=1 jq"]
    {
        let facts = ["program dnf", "program yum"];
        assert_eq!(seen(line, 1, "Is this ok [y/N]: Operation aborted.", &facts), "-", "{line}");
    }
    // Neighbours whose question is only whether to do what they were told.
    check(&[
        (
            "apt-get install --no-install-recommends g++ libc6-dev",
            1,
            aborted,
            &["program apt-get"],
            "apt-yes: apt-get install -y --no-remove --no-install-recommends g++ libc6-dev",
        ),
        (
            "echo \"apt-get now\"; apt-get install jq",
            1,
            aborted,
            &["program apt-get"],
            "apt-yes: echo \"apt-get now\"; apt-get install -y --no-remove jq",
        ),
    ]);
}

#[test]
fn a_name_that_the_line_gives_to_something_else_stays() {
    for line in [
        "python() { python3 \"$@\"; }; python x.py",
        "function python { :; }\npython x.py",
        "unset PATH; python x.py",
        "printf -v PATH /tmp; python x.py",
        "printf -vPATH /tmp; python x.py",
        "read -r PATH < f; python x.py",
        "declare -x PATH; python x.py",
        "hash -p /tmp/x python; python x.py",
        "env -uPATH python x.py",
        "env --unset=PATH python x.py",
    ] {
        assert_eq!(seen(line, 127, NO_PYTHON, &["program python3"]), "-", "{line}");
    }
    check(&[
        (
            "printf '%s' PATHS; python x.py",
            127,
            NO_PYTHON,
            &["program python3"],
            "python-to-python3: printf '%s' PATHS; python3 x.py",
        ),
        (
            "unset DEBUG; python x.py",
            127,
            NO_PYTHON,
            &["program python3"],
            "python-to-python3: unset DEBUG; python3 x.py",
        ),
        (
            "python x.py \"$(date)\"",
            127,
            NO_PYTHON,
            &["program python3"],
            "python-to-python3: python3 x.py \"$(date)\"",
        ),
    ]);
}

#[test]
fn a_question_nobody_answers_gets_the_flag_and_nothing_where_the_program_is_not() {
    let aborted = "Do you want to continue? [Y/n] Abort.";
    let hung = "Command timed out after 2m 0s\nDo you want to continue? [Y/n]";
    check(&[
        (
            "apt-get install jq",
            1,
            aborted,
            &["program apt-get"],
            "apt-yes: apt-get install -y --no-remove jq",
        ),
        (
            "apt-get update && sudo apt-get install jq > log",
            1,
            aborted,
            &["program apt-get"],
            "apt-yes: apt-get update && sudo apt-get install -y --no-remove jq > log",
        ),
        ("sudo apt install jq", 143, hung, &["program apt"], "apt-yes: sudo apt install -y --no-remove jq"),
        ("apt-get install -qy jq", 1, aborted, &["program apt-get"], "-"),
        // The answer was the writer's own.
        ("echo n | apt-get install jq", 1, aborted, &["program apt-get"], "-"),
        ("apt-get install jq < answers", 1, aborted, &["program apt-get"], "-"),
        (
            "apt-get install jq < /dev/null",
            1,
            aborted,
            &["program apt-get"],
            "apt-yes: apt-get install -y --no-remove jq < /dev/null",
        ),
        // The question is a warning.
        ("apt-get remove libc6", 1, aborted, &["program apt-get"], "-"),
        ("apt-get autoremove", 143, hung, &[], "longer-timeout"),
        // Something else may have taken the time.
        ("apt-get install jq && ./serve", 143, "Command timed out after 2m 0s", &["program apt-get"], "-"),
        ("docker exec box apt-get install jq", 1, aborted, &["program apt-get"], "-"),
        ("bash -c 'apt-get install jq'", 1, aborted, &["program apt-get"], "-"),
        (
            "dnf install jq",
            1,
            "Is this ok [y/N]: Operation aborted.",
            &["program dnf"],
            "dnf-yes: dnf install -y jq",
        ),
        (
            "zypper install jq",
            143,
            "Command timed out after 2m 0s",
            &["program zypper"],
            "zypper-non-interactive: zypper --non-interactive install jq",
        ),
        (
            "pip uninstall flask",
            2,
            "Proceed (Y/n)? ERROR: Exception:\nTraceback (most recent call last):\nEOFError: EOF when reading a line",
            &["program pip"],
            "pip-uninstall-yes: pip uninstall -y flask",
        ),
        (
            "pip uninstall flask && python app.py",
            1,
            "EOFError: EOF when reading a line",
            &["program pip"],
            "-",
        ),
        (
            "conda install -n x jq",
            143,
            "Command timed out after 2m 0s",
            &["program conda"],
            "conda-yes: conda install -y -n x jq",
        ),
        (
            "cd app && npm init",
            143,
            "Command timed out after 2m 0s",
            &["program npm"],
            "npm-init-yes: cd app && npm init -y",
        ),
        ("npm init vite", 143, "Command timed out after 2m 0s", &["program npm"], "-"),
        ("npx create-app", 143, "Command timed out after 2m 0s", &[], "longer-timeout"),
        (
            "poetry init",
            143,
            "Command timed out after 2m 0s",
            &["program poetry"],
            "poetry-init-no-interaction: poetry init --no-interaction",
        ),
        ("terraform apply", 143, "Command timed out after 2m 0s", &[], "longer-timeout"),
    ]);
}

/// The input that is proposed after a limit ran out; null where none is.
fn grown(tool: &str, input: Value, output: &str) -> Value {
    after(&Call::new(tool, input), Outcome::TimedOut, output, &[])
        .map_or(Value::Null, |rewrite| rewrite.input)
}

#[test]
fn a_limit_that_ran_out_is_doubled_up_to_what_the_tool_allows() {
    let two_minutes = "Command timed out after 2m 0s";
    let rows = [
        ("Bash", json!({"command": "make"}), two_minutes, json!({"command": "make", "timeout": 240_000})),
        (
            "Bash",
            json!({"command": "make", "timeout": 120_000, "description": "Build"}),
            two_minutes,
            json!({"command": "make", "timeout": 240_000, "description": "Build"}),
        ),
        (
            "Bash",
            json!({"command": "make", "timeout": 400_000}),
            "Command timed out after 6m 40s",
            json!({"command": "make", "timeout": 600_000}),
        ),
        (
            "Bash",
            json!({"command": "make", "timeout": 600_000}),
            "Command timed out after 10m 0s",
            Value::Null,
        ),
        // The limit was another one, or nobody knows which.
        ("Bash", json!({"command": "make", "timeout": 300_000}), two_minutes, Value::Null),
        ("Bash", json!({"command": "make", "timeout": "120000"}), two_minutes, Value::Null),
        ("run_shell_command", json!({"command": "make"}), two_minutes, Value::Null),
        ("Bash", json!({"command": "make"}), "make: entering", Value::Null),
        (
            "bash",
            json!({"command": "make", "timeout": 800}),
            "bash tool terminated command after exceeding timeout 800 ms",
            json!({"command": "make", "timeout": 1600}),
        ),
        (
            "shell",
            json!({"command": ["make"], "timeout_ms": 10_000}),
            "command timed out after 10000 milliseconds",
            json!({"command": ["make"], "timeout_ms": 20_000}),
        ),
        (
            "terminal",
            json!({"command": "make", "timeout": 30}),
            "Command timed out after 30 seconds",
            json!({"command": "make", "timeout": 60}),
        ),
        // More time answers no question, and one failure is put right once.
        ("Bash", json!({"command": "apt-get install -y jq"}), two_minutes, Value::Null),
        // It goes on by itself; a second one beside it is no help.
        (
            "Bash",
            json!({"command": "make"}),
            "Command timed out after 2m 0s and was moved to the background",
            Value::Null,
        ),
    ];
    for (tool, input, output, expected) in rows {
        assert_eq!(grown(tool, input.clone(), output), expected, "{tool} {input}");
    }
}

#[test]
fn all_other_fields_and_every_shape_of_a_line_are_kept() {
    let facts = &["program python3", "module python3 pip"];
    let said = "bash: pip: command not found";
    let rows = [
        (
            "Bash",
            json!({"command": "pip list", "description": "pip", "timeout": 5, "run_in_background": true}),
            json!({"command": "python3 -m pip list", "description": "pip", "timeout": 5, "run_in_background": true}),
        ),
        ("run_shell_command", json!({"command": "pip list"}), json!({"command": "python3 -m pip list"})),
        (
            "exec_command",
            json!({"cmd": "pip list", "workdir": "/a"}),
            json!({"cmd": "python3 -m pip list", "workdir": "/a"}),
        ),
        (
            "shell",
            json!({"command": ["bash", "-lc", "cd a && pip list"]}),
            json!({"command": ["bash", "-lc", "cd a && python3 -m pip list"]}),
        ),
        (
            "shell",
            json!({"command": ["pip", "install", "a b", "pip"]}),
            json!({"command": ["python3", "-m", "pip", "install", "a b", "pip"]}),
        ),
        (
            "shell",
            json!({"command": ["nice", "pip", "list"]}),
            json!({"command": ["nice", "python3", "-m", "pip", "list"]}),
        ),
        ("shell", json!({"command": ["pip", 5]}), Value::Null),
        ("Bash", json!("pip list"), Value::Null),
        ("Bash", json!({"command": {"line": "pip list"}}), Value::Null),
        ("powershell", json!({"command": "pip list"}), Value::Null),
        ("Edit", json!({"command": "pip list"}), Value::Null),
        ("KillShell", json!({"command": "pip list"}), Value::Null),
    ];
    for (tool, input, expected) in rows {
        let call = Call::new(tool, input.clone());
        let rewrite =
            propose(&call, Kind::CommandNotFound, "shell.command-not-found", Some(said), &Told(facts));
        assert_eq!(rewrite.map_or(Value::Null, |rewrite| rewrite.input), expected, "{tool} {input}");
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test may look at a clock")]
fn a_line_without_end_is_given_up_soon() {
    let hostile = [
        "python x; ".repeat(5_000),
        format!("{}python x", "echo a b c d e f; ".repeat(4_000)),
        format!("{} x", "timeout 5 ".repeat(20_000)),
        "python <<E\n".repeat(20_000),
        format!("apt-get install {}", "$(apt-get install x) ".repeat(3_000)),
    ];
    for line in hostile {
        let start = line.chars().take(40).collect::<String>();
        let call = Call::shell(line);
        for (kind, rule, said) in [
            (Kind::CommandNotFound, "shell.command-not-found", NO_PYTHON),
            (Kind::Timeout, "tools.command-timeout", "Command timed out after 2m 0s"),
        ] {
            let since = std::time::Instant::now();
            propose(&call, kind, rule, Some(said), &Told(&["program python3", "program apt-get"]));
            assert!(
                since.elapsed().as_secs() < 2,
                "{start} took {:?} even without optimisation",
                since.elapsed()
            );
        }
    }
}

#[test]
fn the_text_states_facts_in_both_languages_and_quotes_nothing_that_could_end_the_quotation() {
    let facts = &["program python3"];
    let rewrite = after(&Call::shell("python x"), Outcome::Exited { code: 127 }, NO_PYTHON, facts).unwrap();
    assert_eq!(
        rewrite.text(Lang::En),
        "`python` does not exist on this machine, and `python3` does (/usr/bin/python3)."
    );
    assert_eq!(rewrite.text(Lang::Zh), "本机没有 `python`，但有 `python3`（/usr/bin/python3）。");
    let hostile = Rewrite { from: "a`{to}\n".repeat(99), ..rewrite };
    for lang in [Lang::En, Lang::Zh] {
        let text = hostile.text(lang);
        assert!(
            text.chars().count() < 600 && !text.contains('\n') && text.matches(['⟦', '⟧']).count() == 2,
            "{text}"
        );
    }
}

#[test]
fn every_row_is_told_in_the_documentation_and_its_name_is_its_own() {
    let page = include_str!("../../../../docs/rewrites.md");
    let mut seen = std::collections::BTreeSet::new();
    for name in names() {
        assert!(seen.insert(name), "{name} stands twice");
        assert!(
            page.lines().any(|line| line.starts_with(&format!("| `{name}` |"))),
            "docs/rewrites.md lacks {name}"
        );
    }
}

/// Pieces that lines are made of; together they are as odd as what agents write.
fn piece() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "python",
        "python x.py",
        "'python'",
        "\"python\"",
        "\"$(python y)\"",
        "$(python",
        ")",
        "(",
        "`python`",
        "&&",
        "||",
        "|",
        ";",
        "&",
        "\n",
        "> out",
        "2>&1",
        "< in",
        "<<EOF",
        "EOF",
        "<<'python'",
        "bash -c 'python z'",
        "timeout 5",
        "nice",
        "env A=1",
        "A=python",
        "echo",
        "if",
        "then",
        "fi",
        "for f in",
        "do",
        "done",
        "{",
        "}",
        "case x in",
        "esac",
        ";;",
        "# python",
        "\\\n",
        "\\",
        "'",
        "\"",
        "$python",
        "${python}",
        "py\\thon",
        "find . -exec python {} \\;",
        "xargs python",
        "[[ python",
        "]]",
        "python()",
        "function python",
        "文",
        "\u{a0}",
        "\t",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_line_only_program_words_change_and_a_second_proposal_never_follows(
        pieces in prop::collection::vec(piece(), 0..9),
    ) {
        let line = pieces.join(" ");
        let call = Call::shell(line.clone());
        let facts = Told(&["program python3"]);
        let said = Some(NO_PYTHON);
        let kind = Kind::CommandNotFound;
        if let Some(rewrite) = propose(&call, kind, "shell.command-not-found", said, &facts) {
            let new = rewrite.input["command"].as_str().unwrap();
            prop_assert_eq!(new.replace("python3", "python"), line.as_str());
            let (old_script, new_script) = (Script::parse(&line), Script::parse(new));
            prop_assert_eq!(old_script.commands().len(), new_script.commands().len());
            for (old, new) in old_script.commands().iter().zip(new_script.commands()) {
                prop_assert_eq!(&old.redirections, &new.redirections);
                prop_assert_eq!((old.then, old.role, old.depth), (new.then, new.role, new.depth));
                prop_assert_eq!(&old.assignments, &new.assignments);
                prop_assert!(new.words.first().is_none_or(|program| program != "python"));
            }
            let again = Call::new("Bash", rewrite.input.clone());
            prop_assert_eq!(propose(&again, kind, "shell.command-not-found", said, &facts), None);
        }
    }
}
