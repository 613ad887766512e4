//! Transcripts as Claude Code writes them, the same ones every time: sessions in which one call in six fails, and most of those
//! go well after something was done about it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::dice::Dice;

/// So many calls of a session.
const CALLS: u64 = 400;

/// Writes files of about so many bytes in all into a folder; returns them, and how many calls they hold.
pub fn write(folder: &Path, bytes: u64) -> io::Result<(Vec<PathBuf>, u64)> {
    fs::create_dir_all(folder)?;
    let mut dice = Dice(23);
    let (mut files, mut calls, mut written) = (Vec::new(), 0, 0);
    while written < bytes {
        let path = folder.join(format!("{:04}.jsonl", files.len()));
        let mut session = Session::begin(&path, files.len() as u64)?;
        while session.calls < CALLS {
            session.work(&mut dice)?;
        }
        session.out.flush()?;
        calls += session.calls;
        written += fs::metadata(&path)?.len();
        files.push(path);
    }
    Ok((files, calls))
}

struct Session {
    out: BufWriter<File>,
    number: u64,
    calls: u64,
    lines: u64,
}

impl Session {
    fn begin(path: &Path, number: u64) -> io::Result<Session> {
        let out = BufWriter::with_capacity(1 << 16, File::create(path)?);
        let mut session = Session { out, number, calls: 0, lines: 0 };
        session.line("user", json!("make the tests pass"), Value::Null)?;
        Ok(session)
    }

    /// A step of the work: mostly calls that go well, sometimes a failure and what is done about it.
    fn work(&mut self, dice: &mut Dice) -> io::Result<()> {
        let what = dice.below(40);
        if dice.below(4) > 0 {
            return self.call(&format!("sed -n '{what},$p' src/part-{}.rs", dice.below(500)), Ok(dice));
        }
        let missing = format!("Exit code 1\nModuleNotFoundError: No module named 'part{what}'");
        self.call(&format!("python3 build.py part{what}"), Err(&missing))?;
        if dice.below(5) > 0 {
            self.call(&format!("pip install part{what}"), Ok(dice))?;
            self.call(&format!("python3 build.py part{what}"), Ok(dice))?;
        }
        Ok(())
    }

    /// A call with a word before it, and its result, which stands twice in a transcript.
    fn call(&mut self, command: &str, result: Result<&mut Dice, &str>) -> io::Result<()> {
        self.calls += 1;
        let id = format!("toolu_{:04}_{:05}", self.number, self.calls);
        let says =
            json!([{"type": "text", "text": format!("Next I run `{command}` and look at what it prints.")}]);
        self.line("assistant", says, Value::Null)?;
        let input = json!({"command": command, "description": "One step of the work"});
        let made = json!([{"type": "tool_use", "id": id, "name": "Bash", "input": input}]);
        self.line("assistant", made, Value::Null)?;
        let (text, is_error) = match result {
            Ok(dice) => (printed(dice), false),
            Err(text) => (text.to_owned(), true),
        };
        let details = match is_error {
            true => json!(format!("Error: {text}")),
            false => json!({"stdout": text, "stderr": "", "interrupted": false, "isImage": false}),
        };
        let heard =
            json!([{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}]);
        self.line("user", heard, details)
    }

    fn line(&mut self, role: &str, content: Value, details: Value) -> io::Result<()> {
        self.lines += 1;
        let (number, second) = (self.number, self.lines * 3);
        let name = format!("{number:08x}-0000-4000-8000-{:012x}", self.lines);
        let mut line = json!({
            "parentUuid": format!("{number:08x}-0000-4000-8000-{:012x}", self.lines - 1),
            "isSidechain": false,
            "userType": "external",
            "cwd": format!("/home/dev/app-{}", number % 5),
            "sessionId": format!("{number:08x}-1111-4000-8000-000000000000"),
            "version": "2.1.325",
            "gitBranch": "main",
            "type": role,
            "message": {"id": format!("msg_{number}_{}", self.lines), "role": role, "content": content},
            "uuid": name,
            "timestamp": format!(
                "2026-10-{:02}T{:02}:{:02}:{:02}.000Z", number % 28 + 1, second / 3600 % 24, second / 60 % 60, second % 60
            ),
        });
        if !details.is_null() {
            line["toolUseResult"] = details;
        }
        writeln!(self.out, "{line}")
    }
}

/// Between one line and eight kilobytes, as files and logs have it.
fn printed(dice: &mut Dice) -> String {
    let lines = 1 + dice.below(12).pow(2);
    (0..lines)
        .map(|line| {
            format!("{line:>6}\tlet value_{} = session.next(\"{}\")?;\n", dice.below(900), dice.below(99))
        })
        .collect()
}
