//! Compiles `rules/risky.toml` into static tables. A row that says too much or too little stops the build.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    harmless: Vec<String>,
    elsewhere: Vec<String>,
    whole: Vec<String>,
    folders: BTreeMap<String, Vec<String>>,
    valued: BTreeMap<String, Vec<String>>,
    risk: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    why: Text,
    #[serde(default)]
    counts: Counts,
    #[serde(default)]
    run: Vec<String>,
    redirect: Option<Redirect>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    any: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    bare: bool,
    #[serde(default)]
    says: Vec<String>,
    #[serde(default)]
    unless: Vec<String>,
    #[serde(default)]
    input: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    rebuildable: bool,
    #[serde(default)]
    links: bool,
    takes: Vec<Takes>,
    #[serde(default)]
    values: Vec<String>,
    #[serde(default)]
    suffixes: Vec<String>,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    fields: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    en: String,
    zh: String,
}

#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "kebab-case")]
enum Counts {
    #[default]
    Always,
    Edits,
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Redirect {
    Write,
    Append,
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Takes {
    Operands,
    OperandsOrFolder,
    AfterFirst,
    Last,
    Over,
    Move,
    StartPaths,
    Values,
    UrlNames,
    Patched,
    Folder,
    Repository,
    GitFolder,
    GitState,
    GitIndex,
    GitIndexToo,
    Suffixed,
    Named,
    Workspace,
    Fields,
    Patches,
}

/// Writes `risky.rs` into `out`.
pub fn compile(rules: &Path, out: &Path) {
    let text = fs::read_to_string(rules.join("risky.toml")).expect("rules/risky.toml is there");
    let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("rules/risky.toml: {error}"));
    let mut code = String::from("pub(super) static ROWS: &[Row] = &[\n");
    for (at, row) in file.risk.iter().enumerate() {
        check(row, &file.risk[..at]);
        let Row { id, why, counts, any, without, bare, says, unless, rebuildable, links, .. } = row;
        let input: Vec<String> =
            row.input.iter().map(|(field, values)| format!("({field:?}, &{values:?})")).collect();
        let takes: Vec<String> = row.takes.iter().map(|takes| format!("Takes::{takes:?}")).collect();
        let _ = writeln!(
            code,
            "Row {{ id: {id:?}, why: [{:?}, {:?}], counts: Counts::{counts:?}, any: &{any:?}, without: &{without:?}, \
             bare: {bare}, says: &{says:?}, unless: &{unless:?}, input: &[{}], rebuildable: {rebuildable}, links: {links}, \
             takes: &[{}], values: &{:?}, suffixes: &{:?}, names: &{:?}, fields: &{:?} }},",
            why.en,
            why.zh,
            input.join(", "),
            takes.join(", "),
            row.values,
            row.suffixes,
            row.names,
            row.fields
        );
    }
    code += "];\n";
    let redirect = |wanted: Redirect| {
        let at = file.risk.iter().position(|row| row.redirect.as_ref() == Some(&wanted));
        at.unwrap_or_else(|| panic!("rules/risky.toml: no row is for {wanted:?}"))
    };
    let _ = writeln!(code, "pub(super) static REDIRECT_WRITE: usize = {};", redirect(Redirect::Write));
    let _ = writeln!(code, "pub(super) static REDIRECT_APPEND: usize = {};", redirect(Redirect::Append));
    table(&mut code, "RUNS", "&[usize]", &by_name(&file, |row| &row.run, &file.harmless));
    table(&mut code, "TOOLS", "&[usize]", &by_name(&file, |row| &row.tools, &[]));
    let folders = file.folders.iter().map(|(key, flags)| (key.as_str(), format!("&{flags:?}"))).collect();
    table(&mut code, "FOLDERS", "&[&str]", &folders);
    let valued =
        file.valued.iter().map(|(key, flags)| (key.as_str(), format!("Words({:?})", flags.join(" "))));
    table(&mut code, "VALUED", "Words", &valued.collect());
    let _ = writeln!(code, "pub(super) static ELSEWHERE: &[&str] = &{:?};", file.elsewhere);
    let _ = writeln!(code, "pub(super) static WHOLE: &[&str] = &{:?};", file.whole);
    fs::write(out.join("risky.rs"), code).expect("OUT_DIR can be written");
}

fn check(row: &Row, earlier: &[Row]) {
    let id = &row.id;
    assert!(earlier.iter().all(|other| other.id != *id), "rules/risky.toml: {id} stands there twice");
    assert!(!row.why.en.is_empty() && !row.why.zh.is_empty(), "{id}: says why in both languages");
    let doors = [!row.run.is_empty(), row.redirect.is_some(), !row.tools.is_empty()];
    assert_eq!(doors.iter().filter(|is| **is).count(), 1, "{id}: has one of run, redirect and tools");
    let words = |run: &String| run.split(' ').count() <= 3 && !run.contains(" -");
    assert!(row.run.iter().all(words), "{id}: a program with at most two sub-commands, without flags");
    assert!(row.tools.iter().all(|tool| *tool == tool.to_lowercase()), "{id}: tools are in lower case");
    let needs = [
        (Takes::Values, !row.values.is_empty()),
        (Takes::Suffixed, !row.suffixes.is_empty()),
        (Takes::Named, !row.names.is_empty()),
        (Takes::Fields, !row.fields.is_empty()),
    ];
    for (takes, given) in needs {
        assert_eq!(row.takes.contains(&takes), given, "{id}: {takes:?} and its list belong together");
    }
}

/// Which rows a name has, in their order; a harmless one has none.
fn by_name<'f>(
    file: &'f File,
    names: impl Fn(&'f Row) -> &'f Vec<String>,
    harmless: &'f [String],
) -> BTreeMap<&'f str, String> {
    let mut found: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for name in harmless {
        found.insert(name, Vec::new());
    }
    for (at, row) in file.risk.iter().enumerate() {
        for name in names(row) {
            assert!(!harmless.contains(name), "{}: {name} is said to be harmless", row.id);
            let rows = found.entry(name).or_default();
            assert!(!rows.contains(&at), "{}: {name} stands there twice", row.id);
            rows.push(at);
        }
    }
    found.into_iter().map(|(name, rows)| (name, format!("&{rows:?}"))).collect()
}

fn table(code: &mut String, name: &str, kind: &str, rows: &BTreeMap<&str, String>) {
    let _ = writeln!(code, "pub(super) static {name}: &[(&str, {kind})] = &[");
    for (key, value) in rows {
        let _ = writeln!(code, "({key:?}, {value}),");
    }
    code.push_str("];\n");
}
