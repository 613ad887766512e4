//! Databases of every format there was, each with something of everything in it.
//!
//! Whenever a format is new, or changes before its release:
//! `cargo test -p unstuck-store --test keeper -- --ignored a_database_of_the_newest_format_is_written`

use super::lessons::{NO_HEADER, fixed};
use super::*;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

/// The tables and indexes of a database.
fn tables(cellar: &Cellar) -> Vec<String> {
    let database = cellar.database();
    let mut statement =
        database.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn format(cellar: &Cellar) -> u32 {
    cellar.database().query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_store_of_every_released_format_opens_and_goes_on() {
    let mut formats = Vec::new();
    let mut new = Cellar::empty();
    new.before("a", "ls");
    for file in fs::read_dir(FOLDER).unwrap().flatten() {
        let mut cellar = Cellar::empty();
        fs::create_dir(cellar.root()).unwrap();
        fs::copy(file.path(), cellar.root().join("timeline.db")).unwrap();
        let found = format(&cellar);
        assert!(found < format(&new) || tables(&cellar) == tables(&new), "{file:?} is to be written anew");
        let before = (cellar.calls().len(), cellar.events().len());
        assert!(before.0 > 20 && before.1 > before.0, "{file:?}: {before:?}");
        assert_eq!(kept(&cellar.before("later", "ls")), "recorded", "{file:?}");
        assert_eq!((cellar.calls().len(), cellar.events().len()), (before.0 + 1, before.1 + 1));
        assert_eq!(tables(&cellar), tables(&new), "{file:?}");
        let chain = cellar.store().verify_chain().unwrap();
        assert_eq!((chain.faults, chain.first), (0, None), "{file:?}");
        // What it learnt is told where it is known that it was watched, and everywhere once it has helped again.
        cellar.now += HOUR;
        let said = cellar.tries("later still", "make", 2, NO_HEADER);
        assert_eq!(said.contains("libssl-dev"), found > 4, "{file:?}: {said}");
        fixed(&mut cellar, "once more", "sudo apt-get install -y libssl-dev");
        let said = cellar.tries("last", "make", 2, NO_HEADER);
        assert!(said.contains("libssl-dev"), "{file:?}: {said}");
        formats.push(found);
    }
    formats.sort_unstable();
    assert_eq!(formats, (1..=format(&new)).collect::<Vec<_>>());
}

#[test]
#[ignore = "writes a file of this folder anew"]
fn a_database_of_the_newest_format_is_written() {
    let mut cellar = Cellar::empty();
    for session in ["one", "two", "three"] {
        fixed(&mut cellar, session, "sudo apt-get install -y libssl-dev");
        cellar.tries(session, "frob x", 127, MISSING);
        cellar.tries(session, "python app.py", 127, "bash: line 1: python: command not found");
        cellar.tries(session, "python3 app.py", 0, "");
        cellar.tries(
            session,
            "curl https://dead.example",
            6,
            "curl: (6) Could not resolve host: dead.example",
        );
        cellar.before(&format!("{session}-open"), "sleep 1000");
    }
    let path = format!("{FOLDER}/format-{}.db", format(&cellar));
    let _none_yet = fs::remove_file(&path);
    cellar.database().execute("VACUUM INTO ?1", [&path]).unwrap();
}
