//! A build log as a big project prints it, the same one every time: thousands of compile lines, warnings and progress, words
//! that only look like errors, and one real error in the middle.

use std::io::{self, BufWriter, Write};

use crate::dice::Dice;

/// The line that a good answer quotes.
pub const ROOT_CAUSE: &str = "src/net/session.c:412:17: error: 'struct session' has no member named 'peer_addr'; did you mean 'peer_address'?";

const FOLDERS: [&str; 8] =
    ["net", "core", "render/vulkan", "audio", "storage/btree", "ui/widgets", "third_party/zstd", "parser"];
const FILES: [&str; 10] = [
    "session",
    "error",
    "buffer_pool",
    "scheduler",
    "timeout_queue",
    "glyph_cache",
    "lexer",
    "checksum",
    "failover",
    "table",
];
const WARNINGS: [&str; 5] = [
    "unused variable 'status' [-Wunused-variable]",
    "comparison of integer expressions of different signedness: 'int' and 'size_t' [-Wsign-compare]",
    "'legacy_error_string' is deprecated: use 'error_message' [-Wdeprecated-declarations]",
    "this statement may fall through [-Wimplicit-fallthrough=]",
    "ignoring return value of 'write' declared with attribute 'warn_unused_result' [-Wunused-result]",
];

/// Writes about `bytes` bytes of log.
pub fn write(out: impl Write, bytes: u64) -> io::Result<()> {
    let mut out = Counted { out: BufWriter::with_capacity(1 << 16, out), written: 0 };
    let mut dice = Dice(7);
    let mut step = 0_u64;
    let mut failed = false;
    while out.written < bytes {
        step += 1;
        if !failed && out.written >= bytes / 2 {
            failed = true;
            writeln!(out, "src/net/session.c: In function 'session_accept':\n{ROOT_CAUSE}")?;
            writeln!(
                out,
                "  412 |     log_peer(s->peer_addr);\n      |                 ^~~~~~~~~\n      |                 peer_address"
            )?;
        }
        block(&mut out, &mut dice, step)?;
    }
    writeln!(out, "ninja: build stopped: subcommand failed.\nmake: *** [Makefile:88: all] Error 1")?;
    out.flush()
}

/// One step of the build: mostly a compile line, sometimes more.
fn block(out: &mut impl Write, dice: &mut Dice, step: u64) -> io::Result<()> {
    let (folder, file) = (dice.pick(&FOLDERS), dice.pick(&FILES));
    let (line, column) = (dice.below(2000) + 1, dice.below(80) + 1);
    match dice.below(20) {
        0..=12 => writeln!(
            out,
            "[{step}/918233] cc -O2 -g -fPIC -Wall -Wextra -Iinclude -Isrc/{folder} -DNDEBUG -MMD -MF build/{folder}/{file}_{line}.d \
             -c src/{folder}/{file}_{line}.c -o build/{folder}/{file}_{line}.o"
        ),
        13..=15 => {
            writeln!(out, "src/{folder}/{file}.c:{line}:{column}: warning: {}", dice.pick(&WARNINGS))?;
            writeln!(out, "{line:>5} |     if (queue_push(&ctx->pending, item, {column}) < limit) {{")?;
            writeln!(out, "      | {:>width$}", "^~~~~~~~~~", width = column as usize % 50 + 10)
        }
        16 => writeln!(
            out,
            "In file included from src/{folder}/{file}.c:{line}:\ninclude/{folder}/{file}.h:{column}: note: declared here"
        ),
        17 => writeln!(
            out,
            "test {folder}::{file}_handles_error_{line} ... ok ({column} ms, 0 errors, 0 failed)"
        ),
        18 => writeln!(
            out,
            " Downloading {file}-{line}.{column}.tar.zst  {:>3}% [{:<40}] {line} kB/s",
            step % 101,
            "#".repeat((step % 41) as usize)
        ),
        _ => writeln!(
            out,
            "2024-05-17T08:{:02}:{:02}.{line:04}Z INFO  {folder} cache hit ratio 0.{column:02} key={:016x}",
            step / 60 % 60,
            step % 60,
            dice.next()
        ),
    }
}

/// A writer that knows how much went through it.
struct Counted<W> {
    out: W,
    written: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_the_same_every_time_and_fails_once_in_the_middle() {
        let make = || {
            let mut log = Vec::new();
            write(&mut log, 200_000).unwrap();
            String::from_utf8(log).unwrap()
        };
        let log = make();
        assert_eq!(log, make());
        assert_eq!(log.matches(" error: ").count(), 1);
        let at = log.find(ROOT_CAUSE).unwrap();
        assert!(
            (90_000..110_000).contains(&at) && (200_000..201_000).contains(&log.len()),
            "{at} of {}",
            log.len()
        );
    }
}
