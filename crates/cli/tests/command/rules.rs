//! `unstuck rules`: the knowledge can be looked at, and people can add their own.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::world::World;

/// A rule that claims a text which a built-in rule knows, too.
fn rule(id: &str, kind: &str) -> String {
    format!("[[rule]]\nid = \"{id}\"\nkind = \"{kind}\"\nany = [\"not a git repository\"]\nrank = 1\n")
}

/// The rule that explains a call outside a repository in this world.
#[track_caller]
fn explained_by(world: &World, flags: &[&str]) -> String {
    let args = [&["diagnose", "--json", "--exit-code", "128"], flags].concat();
    let said = world.run(&args, "fatal: not a git repository\n");
    serde_json::from_slice::<Value>(&said.stdout).unwrap()["rule"].as_str().unwrap().to_owned()
}

#[test]
fn all_rules_are_listed_with_their_kind() {
    let said = World::empty().run(&["rules", "list"], "");
    assert!(said.stdout().lines().count() > 300, "{said}");
    let all = World::empty().run(&["rules", "list", "--json"], "").json_lines();
    assert_eq!(all.len(), said.stdout().lines().count());
    let network = World::empty().run(&["rules", "list", "--kind", "network", "--json"], "").json_lines();
    assert!(!network.is_empty() && network.iter().all(|rule| rule["kind"] == "network"));
}

#[test]
fn risky_calls_are_listed_with_what_may_be_lost() {
    let said = World::empty().run(&["rules", "risky"], "");
    let line = said.stdout().lines().find(|line| line.starts_with("git.reset-hard ")).map(str::to_owned);
    let expected = "git.reset-hard           always  it throws away all changes that are not committed";
    assert_eq!(line.as_deref(), Some(expected), "{said}");
    let rows = World::empty().run(&["rules", "risky", "--json"], "").json_lines();
    assert_eq!(rows.len(), said.stdout().lines().count());
    assert!(rows.iter().any(|row| row["id"] == "tool.edit" && row["counts"] == "edits"));
}

#[test]
fn one_rule_is_shown_with_what_it_looks_for_and_advises() {
    insta::assert_snapshot!(World::empty().run(&["rules", "show", "git.not-a-repository"], ""), @r"
    --- stdout
    git.not-a-repository: path_not_found (rank 82, built-in)
      any        not a git repository
      speaks_for git
      advice     Go into the repository first (`git -C DIR …`, `cd`), or make one with `git init`.
    --- exit 0
    ");
    let shown = World::empty().run(&["rules", "show", "git.not-a-repository", "--json"], "").json();
    assert_eq!(shown["any"], serde_json::json!(["not a git repository"]));
}

#[test]
fn a_name_that_does_not_exist_gets_the_nearest_one() {
    let check = |args: &[&str], words: &[&str]| World::empty().run(args, "").complains(2, words);
    check(
        &["rules", "show", "git.not-a-repo"],
        &["unstuck: no rule is called git.not-a-repo\n", "did you mean git.not-a-repository?"],
    );
    check(&["rules", "show", "zzzz"], &["no rule is called zzzz", "`unstuck rules list` shows all"]);
    check(&["rules", "list", "--kind", "netwrk"], &["no kind is called netwrk", "did you mean network?"]);
}

#[test]
fn a_users_own_rules_come_before_the_built_in_ones_and_a_named_file_before_both() {
    let world = World::empty();
    assert_eq!(explained_by(&world, &[]), "git.not-a-repository");
    let world = world
        .with("config/unstuck/rules/b.toml", rule("folder.b", "auth"))
        .with("config/unstuck/rules/a.toml", rule("folder.a", "auth"))
        .with("config/unstuck/rules/notes.txt", "no rules")
        .with("one.toml", rule("named.one", "conflict"))
        .with("two.toml", rule("named.two", "conflict"));
    assert_eq!(explained_by(&world, &[]), "folder.a");
    assert_eq!(explained_by(&world, &["--rules", "one.toml", "--rules", "two.toml"]), "named.one");
    assert_eq!(explained_by(&world, &["--rules", "two.toml", "--rules", "one.toml"]), "named.two");
    let listed = world.run(&["rules", "list", "--rules", "one.toml"], "");
    let first: Vec<&str> =
        listed.stdout().lines().take(3).map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(first, ["named.one", "folder.a", "folder.b"]);
}

#[test]
fn rules_are_found_below_home_where_no_config_folder_is_set() {
    let world = World::empty().with(".config/unstuck/rules/mine.toml", rule("home.mine", "auth"));
    let mut command = world.command(&["rules", "show", "home.mine"]);
    let said = crate::world::Said::by(command.env_remove("XDG_CONFIG_HOME").spawn().unwrap());
    assert!(said.stdout().starts_with("home.mine: auth (rank 1, user)\n"), "{said}");
}

#[test]
fn a_bad_rule_file_names_its_line_and_the_rest_still_works() {
    let bad = format!("[[rule]]\nid = \"my.bad\"\nkind = \"nonsense\"\n\n{}", rule("my.good", "auth"));
    let world = World::empty().with("config/unstuck/rules/mine.toml", bad);
    let said = world.run(&["diagnose", "--json", "--exit-code", "128"], "fatal: not a git repository\n");
    said.complains(0, &["mine.toml: line 1: rule my.bad: `kind` \"nonsense\" is not one of network"]);
    assert_eq!(said.stderr().lines().count(), 1);
    assert_eq!(explained_by(&world, &[]), "my.good");
}

#[test]
fn a_rule_file_that_is_no_toml_costs_only_itself() {
    for content in [
        &b"[[rule]\nid ="[..],
        b"\xff\xfe\0\0",
        b"rule = 7",
        b"[[rule]]\nid = \"x\"\nkind = \"auth\"\nany = [\"/a(b/\"]",
    ] {
        let world = World::empty()
            .with("bad.toml", content)
            .with("config/unstuck/rules/z.toml", rule("my.good", "auth"));
        let said = world.run(&["diagnose", "--rules", "bad.toml"], "fatal: not a git repository\n");
        said.complains(0, &["unstuck: bad.toml: line "]);
        assert_eq!(explained_by(&world, &["--rules", "bad.toml"]), "my.good");
    }
}

#[test]
fn a_file_of_the_rule_folder_that_cannot_be_read_is_named_and_passed_over() {
    let world = World::empty().with("config/unstuck/rules/good.toml", rule("my.good", "auth"));
    fs::create_dir(world.path("config/unstuck/rules/folder.toml")).unwrap();
    symlink("nowhere", world.path("config/unstuck/rules/gone.toml")).unwrap();
    let said = world.run(&["diagnose"], "fatal: not a git repository\n");
    said.complains(0, &["folder.toml: it is not a regular file", "gone.toml: No such file"]);
    assert_eq!(explained_by(&world, &[]), "my.good");
}

#[test]
fn a_rule_file_that_was_asked_for_must_be_there() {
    World::empty()
        .run(&["diagnose", "--rules", "gone.toml"], "x")
        .complains(125, &["could not read gone.toml", "hint: "]);
    World::empty().run(&["rules", "test", "gone.toml"], "").complains(125, &["could not read gone.toml"]);
}

/// What `rules test` says of a file, and how it ends.
#[track_caller]
fn check_file(content: &str, expected: &str, exit: i32) {
    let said = World::empty().with("my.toml", content).run(&["rules", "test", "my.toml"], "");
    assert_eq!((said.stdout(), said.stderr(), said.exit), (expected, "", exit));
}

#[test]
fn a_rule_file_whose_examples_hold_passes() {
    check_file(
        &format!(
            "{}example = [{{ text = \"not a git repository\" }}]\nnot = [{{ text = \"all is well\" }}]\n",
            rule("my.git", "auth")
        ),
        "rules read: 1, not read: 0; examples as promised: 2 of 2\n",
        0,
    );
    check_file("", "rules read: 0, not read: 0; examples as promised: 0 of 0\n", 0);
}

#[test]
fn a_rule_without_an_example_is_mentioned_and_passes() {
    check_file(
        &rule("my.git", "auth"),
        "my.git: has no example: nothing proves that it works\nrules read: 1, not read: 0; examples as promised: 0 of 0\n",
        0,
    );
}

#[test]
fn a_rule_file_whose_examples_come_out_otherwise_fails() {
    check_file(
        &format!(
            "{}example = [{{ text = \"flux\" }}]\nnot = [{{ text = \"not a git repository\" }}]\n",
            rule("my.git", "auth")
        ),
        "my.git: should be recognised: \"flux\" is unknown by no rule\n\
         my.git: should not be claimed: \"not a git repository\" is auth by my.git\n\
         rules read: 1, not read: 0; examples as promised: 0 of 2\n",
        1,
    );
}

#[test]
fn a_rule_file_with_mistakes_fails_and_each_is_named_with_its_line() {
    let content = format!(
        "# mine\n{}example = [{{ text = \"not a git repository\" }}]\n\n[[rule]]\nid = \"my.bad\"\ncolour = \"red\"\n",
        rule("my.git", "auth")
    );
    let said = World::empty().with("my.toml", content).run(&["rules", "test", "my.toml"], "");
    assert!(said.stdout().starts_with("my.toml: line 11: unknown field `colour`"), "{said}");
    assert!(said.stdout().ends_with("rules read: 1, not read: 1; examples as promised: 1 of 1\n"), "{said}");
    assert_eq!(said.exit, 1);
}

#[test]
fn a_rule_file_that_advises_what_nobody_knows_fails() {
    check_file(
        &format!(
            "{}example = [{{ text = \"not a git repository\" }}]\nadvice = [\"reverse-polarity\"]\n",
            rule("my.git", "auth")
        ),
        "my.git: no remedy is called reverse-polarity\nrules read: 1, not read: 0; examples as promised: 1 of 1\n",
        1,
    );
}
