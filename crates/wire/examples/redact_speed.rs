//! Prints how fast secrets are looked for, on clean text and on texts made to slow the search down.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures, and says what it measured")]

use std::time::Instant;

use unstuck_wire::redact::redact;

const MEGABYTE: usize = 1_000_000;

fn main() {
    let log = "   Compiling serde v1.0.229 (/home/dev/project)\nwarning: unused variable: `x` --> src/main.rs:12:9\n  = note: `#[warn(unused)]`\n";
    let texts = [
        ("build log", log, 50),
        ("labels", "password=authorization:", 2),
        ("names", "password=", 2),
        ("keys", "api_key=", 2),
        ("headers", "authorization:", 2),
        ("open quotes", "password='\"", 2),
        ("flags", "--password ", 2),
        ("programs", "mysql -p", 2),
        ("addresses", "://a:b@", 2),
        ("key files", "-----BEGIN CERTIFICATE-----", 2),
        ("prefixes", "sk-", 2),
        ("web tokens", "eyJ.", 2),
        ("marks", "[redacted:password=", 2),
        ("finds", "password=hunter2 ", 2),
    ];
    for (name, piece, megabytes) in texts {
        let text = piece.repeat(megabytes * MEGABYTE / piece.len());
        let begun = Instant::now();
        let left = redact(&text).len();
        let seconds = begun.elapsed().as_secs_f64();
        println!("{name:12} {:8.1} MB/s ({} -> {left} bytes)", text.len() as f64 / 1e6 / seconds, text.len());
    }
}
