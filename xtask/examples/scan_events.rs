//! Reads every event of a timeline once, in the plainest way SQLite has: what looking things up in it is compared with.
#![allow(clippy::print_stdout, reason = "the sums are its only answer")]

use rusqlite::{Connection, OpenFlags};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("which file?")?;
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let (events, bytes): (i64, i64) =
        connection.query_row("SELECT count(*), sum(length(body)) FROM event", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    println!("{events} {bytes}");
    Ok(())
}
