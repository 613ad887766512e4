//! Command lines as agents really write them, and what is to be seen in them.

use proptest::prelude::*;

use super::{Join, Script, line};
use crate::Call;

/// Every command as `program(arg arg)`, with what joins it to the next.
fn seen(text: &str) -> String {
    let script = Script::parse(text);
    let mut out = String::new();
    for command in script.commands() {
        out += &format!("{}({})", command.program, command.args().join(","));
        out += match command.then {
            Join::Always => " ; ",
            Join::And => " && ",
            Join::Or => " || ",
            Join::Pipe => " | ",
            Join::Background => " & ",
            Join::Wraps => " > ",
            Join::End => "",
        };
    }
    out
}

fn check(rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(seen(text).trim_end_matches(" ; "), *expected, "{text}");
    }
}

#[test]
fn commands_are_told_apart_by_their_operators() {
    check(&[
        ("ls", "ls()"),
        (
            "cargo build && cargo test || echo bad; ls | wc -l &",
            "cargo(build) && cargo(test) || echo(bad) ; ls() | wc(-l) & ",
        ),
        ("a |& b", "a() | b()"),
        ("a\nb\n\n# comment ; no\nc # more", "a() ; b() ; c()"),
        ("a \\\n  b", "a(b)"),
        ("/usr/bin/env", "env()"),
        ("! grep -q x f", "grep(-q,x,f)"),
        ("echo 'a;b' \"c && d\" e\\;f", "echo(a;b,c && d,e;f)"),
        ("echo $'a\\nb'", "echo(a\nb)"),
        ("", ""),
        ("   ;;; && | ", ""),
    ]);
}

/// Every word whose place is known, as the text has it there; `?` for the others.
fn placed(text: &str) -> String {
    let script = Script::parse(text);
    let word = |place: &Option<std::ops::Range<usize>>| place.clone().map_or("?", |place| &text[place]);
    let command = |command: &super::Command| command.places.0.iter().map(word).collect::<Vec<_>>().join(" ");
    script.commands().iter().map(command).collect::<Vec<_>>().join(" / ")
}

#[test]
fn words_have_places_where_they_stand_as_they_read() {
    for (text, expected) in [
        ("cd 读 &&  timeout 5 make -j  > log", "cd 读 / timeout 5 make -j / make -j"),
        ("A=1 'make' \"x\" $y a\\b", "? ? $y ?"),
        ("echo \"$(make)\" $(ls)", "make / ls / echo ? $(ls)"),
        ("bash -c 'make all'; `make`", "bash -c ? / ? ? / ? / `make`"),
        ("find . -exec rm {} \\;", "rm {} / find . -exec rm {} ?"),
        ("sh <<E\nmake\nE\nls", "sh / ? / ls"),
    ] {
        assert_eq!(placed(text), expected, "{text}");
    }
}

#[test]
fn compound_commands_are_looked_into() {
    check(&[
        ("(cd a; make) && b", "cd(a) ; make() && b()"),
        ("{ a; b; } | c", "a() ; b() | c()"),
        ("if [ -f x ]; then a; else b; fi; c", "[(-f,x,]) ; a() ; b() ; c()"),
        ("for f in *.rs; do rustfmt $f; done", "rustfmt($f)"),
        ("while read l; do echo $l; done < in", "read(l) ; echo($l)"),
        ("case $x in a|b) one;; *) two;; esac; three", "one() ; two() ; three()"),
        ("f() { a; }; f", "a() ; f()"),
        ("function f { a; }\nf", "a() ; f()"),
        ("[[ a && b || (c < d) ]] && e", "[[(a,b,c,d,]]) && e()"),
        ("for ((i=0; i<3; i++)); do a; done", "a()"),
    ]);
}

#[test]
fn substitutions_stand_before_the_command_that_uses_them() {
    check(&[
        ("echo $(git rev-parse HEAD)", "git(rev-parse,HEAD) ; echo($(git rev-parse HEAD))"),
        ("echo `date`", "date() ; echo(`date`)"),
        ("echo \"$(a \"b c\")\"", "a(b c) ; echo($(a \"b c\"))"),
        ("diff <(a) <(b)", "a() ; b() ; diff(<(a),<(b))"),
        ("echo $((1+2)) ${x:-y}", "echo($((1+2)),${x:-y})"),
        ("find . -name x -exec rm {} \\;", "rm({})find(.,-name,x,-exec,rm,{},;)"),
    ]);
}

#[test]
fn wrappers_and_what_they_run_are_both_seen() {
    check(&[
        ("timeout 5 npm test", "timeout(5,npm,test) > npm(test)"),
        ("timeout -s KILL 5 npm test | tail", "timeout(-s,KILL,5,npm,test) > npm(test) | tail()"),
        ("sudo -u root apt install x", "sudo(-u,root,apt,install,x) > apt(install,x)"),
        ("env -u A X=1 cmd y", "env(-u,A,X=1,cmd,y) > cmd(y)"),
        ("bash -c 'a && b' && c", "bash(-c,a && b) > a() && b() && c()"),
        ("bash -lc \"cd x; make\"", "bash(-lc,cd x; make) > cd(x) ; make()"),
        ("xargs -n 1 rm", "xargs(-n,1,rm) > rm()"),
        ("command -v cargo", "command(-v,cargo)"),
        ("command ls", "command(ls) > ls()"),
        ("python3 -m pytest -q", "python3(-m,pytest,-q) > pytest(-q)"),
        ("npx tsc --noEmit", "npx(tsc,--noEmit) > tsc(--noEmit)"),
        ("uv run --with x pytest", "uv(run,--with,x,pytest) > pytest()"),
        ("poetry run pytest", "poetry(run,pytest) > pytest()"),
        ("docker exec -it web npm test", "docker(exec,-it,web,npm,test) > npm(test)"),
        ("eval \"a; b\"", "eval(a; b) > a() ; b()"),
        ("nohup nice -n 5 a &", "nohup(nice,-n,5,a) > nice(-n,5,a) > a() & "),
        ("sudo", "sudo()"),
        ("bash script.sh", "bash(script.sh)"),
    ]);
}

#[test]
fn documents_belong_to_their_command_and_are_not_commands() {
    let script = Script::parse("cat <<'EOF' > a.py\nimport os; rm -rf /\nEOF\npython a.py");
    assert_eq!(script.programs().collect::<Vec<_>>(), ["cat", "python"]);
    assert_eq!(script.commands()[0].redirections[0].target, "import os; rm -rf /\n");
    assert_eq!(script.commands()[0].redirections[1].target, "a.py");
    let script = Script::parse("git commit -m \"$(cat <<'EOF'\nIt's (done\nEOF\n)\" && git push");
    assert_eq!(script.programs().collect::<Vec<_>>(), ["cat", "git", "git"]);
    let script = Script::parse("bash <<EOF\nmake\nEOF");
    assert_eq!(script.programs().collect::<Vec<_>>(), ["bash", "make"]);
}

#[test]
fn assignments_and_redirections_are_no_words() {
    let script = Script::parse("A=1 B='x y' cmd z 2>&1 >/dev/null <in &>all 2>>log");
    let command = script.last().expect("one command");
    assert_eq!(command.words, ["cmd", "z"]);
    assert_eq!(command.assignments, [("A".into(), "1".into()), ("B".into(), "x y".into())]);
    let targets: Vec<_> = command.redirections.iter().map(|to| to.target.as_str()).collect();
    assert_eq!(targets, ["1", "/dev/null", "in", "all", "log"]);
}

#[test]
fn the_last_command_is_the_one_whose_exit_code_counts() {
    for (text, program) in [
        ("timeout 2 npm start", "npm"),
        ("cargo test 2>&1 | tail -5", "tail"),
        ("a && b", "b"),
        ("a || true", "true"),
        ("make; echo $?", "echo"),
        ("(a; b)", "b"),
        ("out=$(npm test)", "npm"),
        ("bash -c 'cd x && grep y z'", "grep"),
        ("find . -exec wc {} +", "find"),
        ("if a; then b; fi", "b"),
        ("sudo timeout 5 env A=1 cargo b", "cargo"),
    ] {
        assert_eq!(
            Script::parse(text).last().map(|command| command.program.as_str()),
            Some(program),
            "{text}"
        );
    }
    assert_eq!(Script::parse("# nothing").last(), None);
}

#[test]
fn a_success_proves_nothing_where_failures_are_hidden() {
    for text in [
        "cargo test 2>&1 | tail -5",
        "make || true",
        "make || :",
        "make || echo failed",
        "make; echo done",
        "make; true",
        "make\nls",
        "for d in a b; do make -C $d; done",
        "make &",
        "! make",
        "cd x; make | tee log",
        "bash -c 'make | tail'",
        "timeout 5 make | cat",
        "if make; then echo y; else echo n; fi",
        "make || { echo bad; }",
        "make || exit 0",
        "while read x; do make; done",
        "set -e; make | tail",
        "echo x > /etc/motd; echo done",
    ] {
        assert!(Script::parse(text).hides_failure(), "{text}");
    }
}

#[test]
fn a_success_proves_something_where_each_failure_ends_the_script() {
    for text in [
        "make",
        "cd x && make && make test",
        "set -e; make; make test",
        "set -euo pipefail\nmake | tail\nls",
        "bash -euo pipefail -c 'make | tail; ls'",
        "export A=1; make",
        "echo start; make",
        "sleep 5; make",
        "make || exit 1",
        "make || { echo bad; exit 1; }",
        "echo y | make config",
        "if [ -f x ]; then make; fi",
        "echo a; echo b",
        "f() { make; ls; }\nnpm test",
        "set -o pipefail; make 2>&1 | tail",
    ] {
        assert!(!Script::parse(text).hides_failure(), "{text}");
    }
}

#[test]
fn readers_only_show_what_is_there() {
    for text in [
        "cat log.txt",
        "cd x && cat y | grep error | head",
        "sed -n '1,20p' f",
        "git log --oneline | head",
        "git -C /repo diff HEAD~1",
        "docker logs web 2>&1 | grep -i error",
        "kubectl -n prod logs pod",
        "gh run view 12 --log",
        "jq .a f.json",
        "find . -name '*.rs' | xargs grep foo",
        "ls; pwd",
        "npm install --help",
        "man grep",
        "timeout 5 tail -f log",
        "cat $(find . -name x)",
        "nl -ba f | sed -n '1,5p'",
        "for f in a b; do echo $f; cat $f; done",
        "echo done",
    ] {
        assert!(Script::parse(text).is_reader(), "{text}");
    }
}

#[test]
fn work_behind_or_before_a_filter_is_no_reading() {
    for text in [
        "cargo test | grep FAILED",
        "make 2>&1 | tail -20",
        "cat x | python run.py",
        "sed -i s/a/b/ f",
        "cat <<EOF > f\nx\nEOF",
        "find . -exec rm {} \\;",
        "ls && make",
        "cd x",
        "curl -s http://x | jq .",
        "",
        "docker run x",
        "git commit -m x",
    ] {
        assert!(!Script::parse(text).is_reader(), "{text}");
    }
}

#[test]
fn hosts_are_found_in_urls_and_bare_addresses() {
    for (text, hosts) in [
        ("curl -s https://API.example.com:8443/v1?q=1", vec!["api.example.com"]),
        ("git clone git@github.com:a/b.git", vec!["github.com"]),
        ("curl localhost:8080/health", vec!["localhost"]),
        ("nc 10.0.0.1 80; curl 10.0.0.1:80", vec!["10.0.0.1"]),
        ("psql postgres://u:p@db.local:5432/x", vec!["db.local"]),
        ("python -c \"get('http://a.io/x'); get('http://b.io')\"", vec!["a.io", "b.io"]),
        ("sed -n 1p src/main.rs:42", vec![]),
        ("curl http://[::1]:80/", vec!["::1"]),
        ("curl $URL https://$HOST/x", vec![]),
        ("timeout 5 curl http://a.io http://a.io", vec!["a.io"]),
    ] {
        assert_eq!(Script::parse(text).url_hosts(), hosts, "{text}");
    }
}

#[test]
fn only_shells_have_a_line() {
    let json = |text: &str| serde_json::from_str(text).expect("a test row is JSON");
    for (tool, input, expected) in [
        ("Bash", r#"{"command":"ls"}"#, Some("ls")),
        ("execute_bash", r#"{"command":"ls"}"#, Some("ls")),
        ("run_shell_command", r#"{"command":"ls"}"#, Some("ls")),
        ("shell", r#"{"command":["bash","-lc","ls -l | wc"]}"#, Some("ls -l | wc")),
        ("local_shell", r#"{"command":["git","commit","-m","a b"]}"#, Some("git commit -m 'a b'")),
        ("exec_command", r#"{"cmd":"ls"}"#, Some("ls")),
        ("run_terminal_cmd", r#"{"command":"ls"}"#, Some("ls")),
        ("mcp__box__run_command", r#"{"command":"ls"}"#, Some("ls")),
        ("str_replace_editor", r#"{"command":"view","path":"a"}"#, None),
        ("gdb_command", r#"{"command":"next"}"#, None),
        ("edit", r#"{"command":"edit 1:2"}"#, None),
        ("Bash", r#"{}"#, None),
        ("Bash", r#"{"command":7}"#, None),
        ("KillShell", r#"{"command":"1"}"#, None),
    ] {
        let call = Call::new(tool, json(input));
        assert_eq!(line(&call).as_deref(), expected, "{tool} {input}");
    }
}

#[test]
fn a_huge_line_of_anything_is_read_in_a_moment() {
    let size = 1 << 18;
    for unit in [
        "a",
        "a ",
        "a;",
        "a|",
        "(",
        ")",
        "((",
        "$(",
        "`",
        "'",
        "\"",
        "\\",
        "{ ",
        "if ",
        "! ",
        "<<A\n",
        "<<A ",
        "$((",
        "${",
        "function ",
        "sudo ",
        "x=(",
        "[[ ",
        "bash -c '",
        "case x in ",
        "for ",
        "f() ",
        "<(",
        "&>",
        "2>&1 ",
        "\n",
        "# ",
        "\r\n",
        "eval ",
        "find -exec ",
        "é",
        "http://a.b/",
        "while ",
        "do ",
        "|| ",
        "\"$(",
        "&",
        "-exec a + ",
    ] {
        let script = Script::parse(&unit.repeat(size / unit.len()));
        let _ = (script.is_reader(), script.hides_failure(), script.url_hosts());
    }
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,60}") {
        let script = Script::parse(&text);
        let _ = (script.is_reader(), script.last(), script.url_hosts());
    }

    #[test]
    fn no_mixture_of_shell_signs_is_too_strange(parts in prop::collection::vec(prop::sample::select(vec![
        "a", " ", ";", "|", "&", "(", ")", "{", "}", "$(", "`", "'", "\"", "\\", "\n", "<<E", "E\n", ">", "<", "if ", "then ", "fi", "do ", "done", "case x in ",
        "esac", ";;", "for ", "!", "#", "é", "bash -c ", "sudo ", "[[ ", "]]", "x=", "$((", "))", "${", "2>", "find . -exec ", "f()", "eval ",
    ]), 0..40)) {
        let script = Script::parse(&parts.concat());
        prop_assert!(script.commands().iter().all(|command| command.depth <= 64));
        let _ = (script.is_reader(), script.last(), script.url_hosts());
    }

    #[test]
    fn redundant_blanks_do_not_matter(words in prop::collection::vec("[a-z]{1,6}", 1..6), gap in " {1,4}") {
        prop_assert_eq!(Script::parse(&words.join(" ")), Script::parse(&words.join(&gap)));
    }
}
