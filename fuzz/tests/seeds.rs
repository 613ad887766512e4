//! What the fuzzer starts from must hold already; so must what it once found.

use std::fs;
use std::path::Path;

use unstuck_fuzz::{TARGETS, seeds};

#[test]
fn what_the_fuzzer_starts_from_holds() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let seeds = seeds::of_project(project).unwrap();
    for (name, target) in TARGETS {
        let mine: Vec<_> = seeds.iter().filter(|seed| seed.target == name).collect();
        assert!(!mine.is_empty(), "{name} has no seeds");
        mine.iter().for_each(|seed| target(&seed.bytes));
    }
}

#[test]
fn what_once_broke_holds() {
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("found")).unwrap().flatten() {
        let file = entry.file_name().to_string_lossy().into_owned();
        let bytes = fs::read(entry.path()).unwrap();
        TARGETS.iter().filter(|(name, _)| file.starts_with(name)).for_each(|(_, target)| target(&bytes));
    }
}

#[test]
fn what_is_no_text_at_all_gets_an_answer() {
    let garbage: [&[u8]; 6] =
        [b"", b"\0", b"\xff\xfe\x1e\x1e\x1e\x1e", &[0x1e; 64], &[b'('; 4096], &[b'`'; 4095]];
    for (_, target) in TARGETS {
        garbage.iter().for_each(|bytes| target(bytes));
    }
}
