//! `some-tool 2>&1 | unstuck diagnose`: what is known of the call comes as flags.

use serde_json::Value;

use crate::world::World;

/// Kind, stage and rule of what is piped in with these flags.
#[track_caller]
fn check(flags: &[&str], text: &str, expected: &str) {
    let answer = World::empty().run(&[&["diagnose", "--json"], flags].concat(), text).json();
    let word = |key: &str| answer[key].as_str().unwrap_or("-").to_owned();
    assert_eq!([word("kind"), word("stage"), word("rule")].join(" "), expected, "{answer}");
}

#[track_caller]
fn is_usage_error(args: &[&str]) {
    let said = World::empty().run(args, "");
    assert_eq!((said.stdout(), said.exit), ("", 2), "{args:?}: {said}");
    assert!(!said.stderr.is_empty());
}

#[test]
fn the_explanation_of_piped_output_goes_to_standard_output() {
    let text = "Cloning into 'x'...\nfatal: unable to access 'https://h.example/': Could not resolve host: h.example\n";
    let args = ["diagnose", "--exit-code", "128", "--command", "git clone https://h.example/"];
    insta::assert_snapshot!(World::empty().run(&args, text), @r"
    --- stdout
    ✗ network: the network or the other side could not be reached
      > fatal: unable to access 'https://h.example/': Could not resolve host: h.example
        line 2, `git clone https://h.example/`
      retry   yes, after 3 s
      effect  it may have changed something before it failed
      next    Wait and repeat the same call; if it fails again, check the host name, the proxy and whether this machine has a network at all.
      known   git.host-unknown, 82 %
    --- exit 0
    ");
}

#[test]
fn what_the_flags_say_decides_where_the_text_does_not() {
    check(&["--exit-code", "0"], "all good\n", "not_an_error - -");
    check(&["--exit-code", "1"], "hm\n", "unknown exited -");
    check(&["--exit-code", "-1073741819"], "hm\n", "crash exited ending.windows-crash");
    check(&["--timed-out"], "hm\n", "timeout timed_out -");
    check(&["--interrupted"], "hm\n", "aborted interrupted -");
    check(&["--signal", "11"], "", "crash exited ending.crash-signal");
    check(&["--http-status", "429"], "", "rate_limited reported_failure http.status-429");
    check(&["--http-status", "503"], "", "server_error reported_failure http.status-5xx");
    check(
        &[],
        "bash: gti: command not found\n",
        "command_not_found reported_failure shell.command-not-found-inside",
    );
}

#[test]
fn the_command_line_decides_what_an_exit_code_means() {
    check(&["--exit-code", "1", "--command", "grep -r needle ."], "", "not_an_error - ending.no-match");
    check(&["--exit-code", "1"], "", "logical exited ending.silent");
}

#[test]
fn empty_input_without_any_flag_is_unknown() {
    check(&[], "", "unknown reported_failure -");
    check(&[], " \n\t\n", "unknown reported_failure -");
}

#[test]
fn a_file_can_stand_in_for_standard_input() {
    let world = World::empty().with("push.log", "fatal: not a git repository\n");
    let answer = world.run(&["diagnose", "--json", "--exit-code", "128", "--input", "push.log"], "").json();
    assert_eq!(answer["rule"], "git.not-a-repository");
    world.run(&["diagnose", "--input", "gone.log"], "").complains(125, &["gone.log", "hint: "]);
    world.run(&["diagnose", "--input", "."], "").complains(125, &["could not read .: Is a directory"]);
}

#[test]
fn flags_that_contradict_each_other_are_usage_errors() {
    let pairs: &[&[&str]] = &[
        &["--exit-code", "1", "--signal", "9"],
        &["--timed-out", "--exit-code", "1"],
        &["--timed-out", "--signal", "9"],
        &["--timed-out", "--interrupted"],
        &["--jsonl", "--exit-code", "1"],
        &["--jsonl", "--command", "ls"],
        &["--jsonl", "--", "ls"],
        &["--exit-code", "1", "--", "ls"],
        &["--input", "x", "--", "ls"],
        &["--timeout", "1"],
    ];
    pairs.iter().for_each(|flags| is_usage_error(&[&["diagnose"], *flags].concat()));
}

#[test]
fn values_that_cannot_be_are_usage_errors() {
    for flag in
        ["--exit-code=one", "--exit-code=99999999999", "--signal=0", "--signal=2147483647", "--signal=-9"]
    {
        is_usage_error(&["diagnose", flag]);
    }
    is_usage_error(&["diagnose", "--http-status=70000"]);
    is_usage_error(&["--lang", "xx", "diagnose"]);
    is_usage_error(&["diagnoze"]);
    is_usage_error(&[]);
}

#[test]
fn help_is_no_error() {
    for args in
        [&["--help"][..], &["--version"], &["diagnose", "--help"], &["replay", "-h"], &["rules", "-h"]]
    {
        let said = World::empty().run(args, "");
        assert_eq!((said.stderr(), said.exit), ("", 0), "{said}");
    }
}

#[test]
fn the_json_of_piped_output_has_no_id() {
    let answer = World::empty().run(&["diagnose", "--json", "--exit-code", "1"], "x").json();
    assert_eq!(answer["id"], Value::Null);
}
