//! Nothing that comes in makes a door panic.

use proptest::prelude::*;
use unstuck_wire::transcript::{Format, Reader, sniff};
use unstuck_wire::{failure, recorded};

fn read_everywhere(lines: &[Vec<u8>]) {
    // Only that they come back is of interest here.
    let _ = sniff(lines.iter().map(Vec::as_slice));
    for line in lines {
        let _ = failure::read(line);
        let _ = recorded::read(line);
    }
    for format in [Format::Recorded, Format::Claude, Format::Codex, Format::Gemini, Format::Qwen] {
        let mut reader = Reader::new(format);
        for line in lines {
            let _ = reader.read(line);
            let _ = reader.take();
        }
        let (_, tally) = reader.finish();
        assert!(tally.broken + tally.ignored <= tally.lines);
    }
}

/// Lines of real runs, with a few bytes changed.
fn damaged_line() -> impl Strategy<Value = Vec<u8>> {
    let lines: Vec<&str> = [
        include_str!("data/claude-bash.jsonl"),
        include_str!("data/claude-interrupt.jsonl"),
        include_str!("data/codex-misc.jsonl"),
        include_str!("data/codex-mcp.jsonl"),
    ]
    .into_iter()
    .flat_map(str::lines)
    .collect();
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (prop::sample::select(lines), changes, any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(line, changes, cut, is_cut)| {
            let mut line = line.as_bytes().to_vec();
            for (at, byte) in changes {
                let at = at.index(line.len());
                line[at] = byte;
            }
            if is_cut {
                line.truncate(cut.index(line.len()));
            }
            line
        },
    )
}

proptest! {
    #[test]
    fn any_bytes_are_survived(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..6)) {
        read_everywhere(&lines);
    }

    #[test]
    fn damaged_records_are_survived(lines in prop::collection::vec(damaged_line(), 0..12)) {
        read_everywhere(&lines);
    }

    #[test]
    fn any_fields_are_survived(
        code in "[0-9.eE+-]{0,24}",
        signal in "\\PC{0,8}",
        text in "(\\\\u[dD][89a-fA-F][0-9a-f]{2}|\\\\n|[a-z])*",
    ) {
        let line = format!(r#"{{"i":{code},"ts":{code},"tool":"x","exit_code":"{code}","signal":"{signal}","text":"{text}","output":"{text}"}}"#);
        read_everywhere(&[line.into_bytes()]);
    }
}
