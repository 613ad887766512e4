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

/// Frames are so short that much of what lies near them can be tried everywhere, without a fuzzer.
#[test]
fn what_lies_near_frames_holds() {
    let parts: [&[u8]; 24] = [
        b"{",
        b"}",
        b"[",
        b"]",
        b"\"",
        b":",
        b",",
        b"\\",
        b"\n",
        b" ",
        b"\"id\":",
        b"\"id\"",
        b"5",
        b"-1.0e3",
        b"null",
        b"\"a\"",
        b"\"\\u0069d\":",
        b"\"result\":",
        b"\"params\":{\"arguments\":",
        b"\"content\":[",
        b"\"method\":\"m\"",
        b"\xff",
        b"\"structuredContent\":{",
        b"\r",
    ];
    let whole: [&[u8]; 3] = [
        br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{"a":[1]}}}"#,
        br#"{"result":{"content":[{"type":"text","text":"x"}],"structuredContent":{ },"isError":true},"id":"a"}"#,
        br#"[{"id":1,"method":"ping"}]"#,
    ];
    let mut dice = 0x1DE5_u64;
    let mut roll = move |sides: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice % sides as u64) as usize
    };
    for _ in 0..20_000 {
        let mut bytes = vec![1 + roll(40) as u8];
        match roll(3) {
            0 => (0..roll(30)).for_each(|_| bytes.extend_from_slice(parts[roll(parts.len())])),
            _ => {
                bytes.extend_from_slice(whole[roll(whole.len())]);
                for _ in 0..1 + roll(4) {
                    let at = 1 + roll(bytes.len() - 1);
                    let end = (at + roll(6)).min(bytes.len());
                    bytes.splice(at..end, parts[roll(parts.len())].iter().copied());
                }
            }
        }
        unstuck_fuzz::frames(&bytes);
    }
}
