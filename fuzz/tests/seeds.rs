//! What the fuzzer starts from must hold already; so must what it once found.

use std::fs;
use std::path::Path;

use unstuck_fuzz::TARGETS;
use unstuck_fuzz::seeds::{Seed, of_corpus, of_rules};

fn check(seeds: &[Seed]) {
    assert!(!seeds.is_empty());
    for (name, target) in TARGETS {
        seeds.iter().filter(|seed| seed.target == name).for_each(|seed| target(&seed.bytes));
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)).unwrap()
}

#[test]
fn the_corpus_holds_and_may_be_cut_anywhere() {
    check(&of_corpus(&read("corpus/dev.jsonl")));
}

#[test]
fn the_built_in_rules_are_good_rules_of_a_person_too() {
    check(&of_rules(&read("rules/shell.toml")));
}

#[test]
fn what_is_no_text_at_all_gets_an_answer() {
    let garbage: [&[u8]; 6] = [b"", b"\0", b"\xff\xfe\x1e\x1e\x1e\x1e", &[0x1e; 64], &[b'('; 4096], &[b'`'; 4095]];
    for (_, target) in TARGETS {
        garbage.iter().for_each(|bytes| target(bytes));
    }
}
