//! Turns `rules/ladder.toml` and `rules/ladder-texts.toml` into statics.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::kind::Kind;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLadder {
    rung: Vec<FileRung>,
    firmness: BTreeMap<String, String>,
    shared: FileKinds,
    spreads: FileKinds,
    approaches: FileKinds,
    view: FileView,
    insides: FileSigns,
    no_tool: FileSigns,
    matters: BTreeMap<String, Vec<String>>,
    states: FileStates,
    polls: FileNames,
    hands_on: FileNames,
    sturdy: FilePrograms,
    changes: BTreeMap<String, Vec<String>>,
    prose: FileProse,
    remote: FilePrograms,
    #[serde(rename = "loop")]
    looping: FileLoop,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRung {
    preset: String,
    track: String,
    firm: Option<String>,
    kind: Option<String>,
    tool: Option<String>,
    #[serde(default)]
    note: u32,
    #[serde(default)]
    hint: u32,
    #[serde(default)]
    insist: u32,
    #[serde(default)]
    deny: u32,
    #[serde(default)]
    halt: u32,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileKinds {
    kinds: Vec<String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileView {
    calls: u32,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLoop {
    minutes: u64,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSigns {
    signs: Vec<String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileStates {
    alive: Vec<String>,
    person: Vec<String>,
    ended: Vec<String>,
    green: Vec<String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileNames {
    programs: Vec<String>,
    tools: Vec<String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePrograms {
    programs: Vec<String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileProse {
    fields: Vec<String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    en: String,
    zh: String,
}

/// Writes both tables where the ladder includes them.
pub fn compile(rules_dir: &Path, out_dir: &Path) {
    fs::write(out_dir.join("ladder.rs"), tables(rules_dir)).expect("OUT_DIR can be written");
    fs::write(out_dir.join("ladder-texts.rs"), texts(rules_dir)).expect("OUT_DIR can be written");
}

/// The statics of `rules/ladder.toml`. A word that is none stops the build.
fn tables(rules_dir: &Path) -> String {
    let text = fs::read_to_string(rules_dir.join("ladder.toml")).expect("rules/ladder.toml is there");
    let file: FileLadder = toml::from_str(&text).unwrap_or_else(|error| panic!("rules/ladder.toml: {error}"));
    let mut code = String::from("static RUNGS: &[Row] = &[\n");
    for row in &file.rung {
        let firm = option(row.firm.as_deref().map(|word| format!("Firmness::{}", variant(word))));
        let kind = option(row.kind.as_deref().map(|word| format!("Kind::{:?}", kind(word))));
        let tool = option(row.tool.as_deref().map(|word| format!("std::borrow::Cow::Borrowed({word:?})")));
        let FileRung { note, hint, insist, deny, halt, .. } = row;
        let (preset, track) = (variant(&row.preset), variant(&row.track));
        writeln!(
            code,
            "Row {{ preset: Preset::{preset}, track: Track::{track}, firm: {firm}, kind: {kind}, tool: {tool}, \
             limits: Limits {{ note: {note}, hint: {hint}, insist: {insist}, deny: {deny}, halt: {halt} }} }},"
        )
        .expect("a string grows");
    }
    code.push_str("];\n");
    let firmness = Kind::ALL.iter().map(|kind| {
        let word = file.firmness.get(kind.word()).unwrap_or_else(|| panic!("[firmness] has no {kind}"));
        format!("Firmness::{}", variant(word))
    });
    list(&mut code, "FIRMNESS", "Firmness", firmness.collect());
    let default = file.matters.get("default").expect("[matters] has a default");
    let matters = Kind::ALL.iter().map(|kind| {
        let changes = file.matters.get(kind.word()).unwrap_or(default);
        let changes: Vec<String> = changes.iter().map(|word| format!("Change::{}", variant(word))).collect();
        format!("&[{}]", changes.join(", "))
    });
    list(&mut code, "MATTERS", "&[Change]", matters.collect());
    for (name, FileKinds { kinds }) in
        [("SHARED", &file.shared), ("SPREADS", &file.spreads), ("APPROACHES", &file.approaches)]
    {
        let named: Vec<Kind> = kinds.iter().map(|word| kind(word)).collect();
        list(
            &mut code,
            name,
            "bool",
            Kind::ALL.iter().map(|kind| named.contains(kind).to_string()).collect(),
        );
    }
    writeln!(code, "static VIEW: u32 = {};", file.view.calls).expect("a string grows");
    writeln!(code, "static LOOP_MS: u64 = {};", file.looping.minutes * 60_000).expect("a string grows");
    for (name, words) in [
        ("REMOTE", &file.remote.programs),
        ("INSIDES", &file.insides.signs),
        ("NO_TOOL", &file.no_tool.signs),
        ("ALIVE", &file.states.alive),
        ("PERSON", &file.states.person),
        ("ENDED", &file.states.ended),
        ("GREEN", &file.states.green),
        ("POLLING_PROGRAMS", &file.polls.programs),
        ("POLLING_TOOLS", &file.polls.tools),
        ("HANDING_PROGRAMS", &file.hands_on.programs),
        ("HANDING_TOOLS", &file.hands_on.tools),
        ("STURDY", &file.sturdy.programs),
        ("PROSE_FIELDS", &file.prose.fields),
    ] {
        list(&mut code, name, "&str", words.iter().map(|word| format!("{word:?}")).collect());
    }
    let changes = file.changes.iter().flat_map(|(change, commands)| {
        commands.iter().map(move |command| format!("({command:?}, Change::{})", variant(change)))
    });
    list(&mut code, "CHANGES", "(&str, Change)", changes.collect());
    code
}

/// The statics of `rules/ladder-texts.toml`.
fn texts(rules_dir: &Path) -> String {
    let text =
        fs::read_to_string(rules_dir.join("ladder-texts.toml")).expect("rules/ladder-texts.toml is there");
    let rows: BTreeMap<String, FileText> =
        toml::from_str(&text).unwrap_or_else(|error| panic!("rules/ladder-texts.toml: {error}"));
    let rows = rows.iter().map(|(key, row)| format!("({key:?}, [{:?}, {:?}])", row.en, row.zh));
    let mut code = String::new();
    list(&mut code, "TEXTS", "(&str, [&str; 2])", rows.collect());
    code
}

fn list(code: &mut String, name: &str, of: &str, items: Vec<String>) {
    writeln!(code, "static {name}: &[{of}] = &[\n{}\n];", items.join(",\n")).expect("a string grows");
}

fn option(inner: Option<String>) -> String {
    inner.map_or("None".to_owned(), |inner| format!("Some({inner})"))
}

fn kind(word: &str) -> Kind {
    word.parse().unwrap_or_else(|_| panic!("rules/ladder.toml: {word:?} is no kind"))
}

fn variant(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}
