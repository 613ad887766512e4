//! The requirements of `docs/requirements.toml`, the tests that show them, and the page that is made of both.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use serde::Deserialize;

use crate::{Fault, project};

const TABLE: &str = "docs/requirements.toml";
const MADE_BY: &str =
    "<!-- Made from docs/requirements.toml by `cargo xtask gen`; change that file, not this page. -->";
/// How a requirement is met.
const AS_WRITTEN: &str = "as written";
const BETTER: &str = "better: ";
/// The test programs, as cargo names them.
const PROGRAMS: [&[&str]; 2] = [&["--package", "unstuck-cli"], &["--package", "unstuck", "--all-features"]];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    part: BTreeMap<u32, Part>,
    requirement: Vec<Requirement>,
}

/// Requirements that belong together, and the file of their tests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    title: String,
    file: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    id: String,
    says: String,
    met: Option<String>,
    test: Option<String>,
    /// What is still missing.
    open: Option<String>,
}

impl Requirement {
    /// `0.5` as 0 and 5.
    fn number(&self) -> Result<(u32, u32), Fault> {
        let parts = self
            .id
            .split_once('.')
            .and_then(|(part, number)| Some((part.parse().ok()?, number.parse().ok()?)));
        parts.ok_or_else(|| format!("{TABLE}: {:?} is no id", self.id).into())
    }
}

/// `cargo xtask accept`.
pub fn run(mut args: lexopt::Parser) -> Result<(), Fault> {
    if let Some(other) = args.next()? {
        return Err(other.unexpected().into());
    }
    let table = Table::read()?;
    table.check()?;
    let mut endings: BTreeMap<String, bool> = BTreeMap::new();
    for which in PROGRAMS {
        let args = [&["test", "--locked", "--no-fail-fast", "--test", "accept"], which].concat();
        let (lines, _) = project::tee(project::cargo(&args))?;
        endings.extend(lines.iter().filter_map(|line| ending(line)));
    }
    table.report(&endings)
}

/// The name of a test and whether it held, from a line such as `test part::name ... ok`.
fn ending(line: &str) -> Option<(String, bool)> {
    let (path, ending) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let name = path.rsplit("::").next().unwrap_or(path);
    is_id(name).then(|| (name.to_owned(), ending.trim() == "ok"))
}

/// Does a name begin as those of these tests do: `r0_05_`?
fn is_id(name: &str) -> bool {
    let mut words = name.split('_');
    let part = words.next().and_then(|word| word.strip_prefix('r'));
    let number = words.next();
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    part.is_some_and(is_number) && number.is_some_and(is_number)
}

/// Fails unless rows and tests belong together, one to one. Says how many there are.
pub fn check() -> Result<String, Fault> {
    let table = Table::read()?;
    table.check()?;
    let open = table.requirement.iter().filter(|row| row.open.is_some()).count();
    Ok(format!("{} requirements, {open} of them open", table.requirement.len()))
}

/// The page of all requirements.
pub fn page() -> Result<String, Fault> {
    let table = Table::read()?;
    let rows = &table.requirement;
    let count = |is_so: fn(&Requirement) -> bool| rows.iter().filter(|row| is_so(row)).count();
    let mut page = format!(
        "{MADE_BY}\n# Requirements\n\n\
         What is asked of unstuck, how it is met, and the test that shows it. Each test drives the built programs, or the public\n\
         API of the library; `cargo xtask accept` runs them all. {} requirements: {} met as written, {} met in a better way, {} open.\n",
        rows.len(),
        count(|row| row.met.as_deref() == Some(AS_WRITTEN) && row.open.is_none()),
        count(|row| row.met.as_deref() != Some(AS_WRITTEN) && row.open.is_none()),
        count(|row| row.open.is_some()),
    );
    for (number, part) in &table.part {
        writeln!(
            page,
            "\n## {}\nTests: `{}`\n\n| id | requirement | met | test |\n|---|---|---|---|",
            part.title, part.file
        )?;
        for row in rows {
            if row.number()?.0 != *number {
                continue;
            }
            let met = match (&row.open, &row.met) {
                (Some(open), _) => format!("**open**: {open}"),
                (None, met) => met.clone().unwrap_or_default(),
            };
            let test = row.test.as_ref().map(|test| format!("`{test}`")).unwrap_or_default();
            let cell = |text: &str| text.replace('|', "\\|");
            writeln!(page, "| {} | {} | {} | {test} |", row.id, cell(&row.says), cell(&met))?;
        }
    }
    Ok(page)
}

impl Table {
    fn read() -> Result<Table, Fault> {
        let text = fs::read_to_string(project::root().join(TABLE))?;
        Ok(toml::from_str(&text).map_err(|error| format!("{TABLE}: {error}"))?)
    }

    fn check(&self) -> Result<(), Fault> {
        let mut tests = self.tests()?;
        let mut seen = BTreeSet::new();
        let mut last = (0, 0);
        for row in &self.requirement {
            let number = row.number()?;
            if number <= last {
                return Err(format!("{TABLE}: {} stands after a higher id", row.id).into());
            }
            last = number;
            row.is_complete()?;
            let Some(test) = &row.test else { continue };
            let (part, number) = number;
            if !test.starts_with(&format!("r{part}_{number:02}_")) {
                return Err(
                    format!("{TABLE}: {} has the test {test}, whose name begins otherwise", row.id).into()
                );
            }
            let file = &self.part.get(&part).ok_or_else(|| format!("{TABLE}: there is no part {part}"))?.file;
            if tests.remove(test).as_ref() != Some(file) {
                return Err(format!("{TABLE}: {}: {file} has no test {test}", row.id).into());
            }
            seen.insert(test);
        }
        match tests.into_iter().next() {
            None => Ok(()),
            Some((test, file)) => Err(format!("{file}: {test} shows no requirement of {TABLE}").into()),
        }
    }

    /// The tests that the files of all parts hold, each with its file.
    fn tests(&self) -> Result<BTreeMap<String, String>, Fault> {
        let mut found = BTreeMap::new();
        for part in self.part.values() {
            let text = fs::read_to_string(project::root().join(&part.file))?;
            let mut is_test = false;
            for line in text.lines().map(str::trim_start) {
                is_test |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
                if line.starts_with("#[ignore") {
                    return Err(format!(
                        "{}: a requirement that is not tested is open, and its test is not ignored",
                        part.file
                    )
                    .into());
                }
                let name = line.split_once("fn ").and_then(|(_, rest)| rest.split('(').next());
                let Some(name) = name.filter(|_| is_test) else { continue };
                is_test = false;
                if found.insert(name.to_owned(), part.file.clone()).is_some() {
                    return Err(format!("{}: {name} is there twice", part.file).into());
                }
            }
        }
        Ok(found)
    }

    /// Prints every row with how its test ended.
    fn report(&self, endings: &BTreeMap<String, bool>) -> Result<(), Fault> {
        let mut failed = Vec::new();
        let mut open = 0;
        println!("\n{:<6}{:<8}requirement", "id", "test");
        for row in &self.requirement {
            let ending = row.test.as_ref().map(|test| endings.get(test));
            let word = match (&row.open, ending) {
                (_, Some(Some(false))) => "FAILED",
                (_, Some(None)) => "NOT RUN",
                (Some(_), _) => "open",
                (None, _) => "ok",
            };
            match word {
                "FAILED" | "NOT RUN" => failed.push(row.id.as_str()),
                "open" => open += 1,
                _ => {}
            }
            println!("{:<6}{word:<8}{}", row.id, row.says);
            if let Some(open) = &row.open {
                println!("{:<14}open: {open}", "");
            }
        }
        println!(
            "{} requirements: {} shown, {open} open, {} failed",
            self.requirement.len(),
            self.requirement.len() - open - failed.len(),
            failed.len()
        );
        match failed.is_empty() {
            true => Ok(()),
            false => Err(format!("not met: {}", failed.join(", ")).into()),
        }
    }
}

impl Requirement {
    /// Fails unless a row says all that it must.
    fn is_complete(&self) -> Result<(), Fault> {
        let says_how = self
            .met
            .as_deref()
            .is_some_and(|met| met == AS_WRITTEN || met.len() > BETTER.len() && met.starts_with(BETTER));
        match (&self.open, &self.test) {
            (None, None) => Err(format!("{TABLE}: {} has no test and is not open", self.id).into()),
            (None, Some(_)) if !says_how => {
                Err(format!("{TABLE}: {}: met is {AS_WRITTEN:?}, or {BETTER:?} and why", self.id).into())
            }
            (None, Some(_)) | (Some(_), _) => Ok(()),
        }
    }
}
