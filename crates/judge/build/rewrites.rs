//! Compiles `rules/rewrites.toml` into static tables. A row that says too much or too little stops the build.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    missing: Missing,
    certain: Certain,
    waited: Waited,
    text: BTreeMap<String, Text>,
    rewrite: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Missing {
    after: Vec<String>,
    before: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Certain {
    through: Vec<String>,
    through_answers: Vec<String>,
    unsettling: Vec<String>,
    variables: Vec<String>,
    setting: Vec<String>,
    moving: Vec<String>,
    beside: Vec<String>,
    never: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Waited {
    rules: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    en: String,
    zh: String,
}

/// The act refuses what it does not know; a flattened struct cannot do so itself.
#[derive(Deserialize)]
struct Row {
    name: String,
    #[serde(flatten)]
    act: Act,
}

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum Act {
    Rename {
        from: String,
        to: String,
        #[serde(default)]
        rules: Vec<String>,
        lacks: Vec<String>,
        needs: Vec<String>,
    },
    Find {
        place: Place,
    },
    Answer {
        run: Vec<String>,
        flag: String,
        #[serde(default)]
        after: After,
        given: Vec<String>,
        #[serde(default, rename = "not-flags")]
        not_flags: Vec<String>,
        #[serde(default, rename = "not-operands")]
        not_operands: Vec<String>,
        #[serde(default, rename = "not-says")]
        not_says: Vec<String>,
        #[serde(default)]
        alone: bool,
        says: Vec<String>,
        #[serde(default)]
        vague: Vec<String>,
        #[serde(default)]
        rules: Vec<String>,
    },
    Grow {
        rules: Vec<String>,
        unless: Vec<String>,
        max: u64,
        fields: Vec<Field>,
        tools: Vec<String>,
        field: String,
        default: u64,
    },
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
enum Place {
    Project,
    Usual,
}

#[derive(Deserialize, Debug, Default)]
#[serde(rename_all = "snake_case")]
enum After {
    Program,
    #[default]
    Subcommand,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    name: String,
    unit: u64,
}

/// Writes `rewrites.rs` into `out`.
pub fn compile(rules: &Path, out: &Path) {
    let text = fs::read_to_string(rules.join("rewrites.toml")).expect("rules/rewrites.toml is there");
    let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("rules/rewrites.toml: {error}"));
    for lower in file.missing.after.iter().chain(&file.missing.before) {
        assert_eq!(lower, &lower.to_lowercase(), "rules/rewrites.toml: lines are compared in lower case");
    }
    let certain = &file.certain;
    let mut code = String::new();
    for (name, words) in [
        ("MISSING_AFTER", &file.missing.after),
        ("MISSING_BEFORE", &file.missing.before),
        ("THROUGH", &certain.through),
        ("THROUGH_ANSWERS", &certain.through_answers),
        ("UNSETTLING", &certain.unsettling),
        ("VARIABLES", &certain.variables),
        ("SETTING", &certain.setting),
        ("MOVING", &certain.moving),
        ("BESIDE", &certain.beside),
        ("NEVER", &certain.never),
        ("WAITED", &file.waited.rules),
    ] {
        code += &format!("pub(in crate::rewrite) static {name}: &[&str] = &{words:?};\n");
    }
    for key in ["rename", "find", "answer", "grow"] {
        let row = file.text.get(key).unwrap_or_else(|| panic!("rules/rewrites.toml lacks [text.{key}]"));
        code += &format!(
            "pub(in crate::rewrite) static TEXT_{}: [&str; 2] = [{:?}, {:?}];\n",
            key.to_uppercase(),
            row.en,
            row.zh
        );
    }
    let rows: Vec<String> = file.rewrite.iter().map(row).collect();
    code += &format!("pub(in crate::rewrite) static ROWS: &[Row] = &[\n{}\n];\n", rows.join(",\n"));
    fs::write(out.join("rewrites.rs"), code).expect("OUT_DIR can be written");
}

fn row(row: &Row) -> String {
    let name = &row.name;
    let act = match &row.act {
        Act::Rename { from, to, rules, lacks, needs } => {
            assert!(!needs.is_empty() && !lacks.is_empty(), "{name}: a rename has something to prove");
            format!(
                "Act::Rename {{ from: &{:?}, to: &{:?}, rules: &{rules:?}, lacks: &[{}], needs: &[{}] }}",
                words(from),
                words(to),
                facts(name, lacks),
                facts(name, needs)
            )
        }
        Act::Find { place } => format!("Act::Find {{ place: Place::{place:?} }}"),
        Act::Answer {
            run,
            flag,
            after,
            given,
            not_flags,
            not_operands,
            not_says,
            alone,
            says,
            vague,
            rules,
        } => {
            let flags = words(flag);
            let is_given = |flag: &&str| given.iter().any(|given| given == flag);
            assert!(
                flags.first().is_some_and(is_given),
                "{name}: the flag itself is among those that may be given"
            );
            assert!(
                says.iter().chain(vague).chain(not_says).all(|says| *says == says.to_lowercase()),
                "{name}: lines are in lower case"
            );
            let run: Vec<String> = run
                .iter()
                .map(|run| match words(run).as_slice() {
                    [program, subcommand] => format!("({program:?}, {subcommand:?})"),
                    _ => panic!("{name}: {run:?} is no program with a sub-command"),
                })
                .collect();
            format!(
                "Act::Answer {{ run: &[{}], flags: &{flags:?}, after: After::{after:?}, given: &{given:?}, \
                 not_flags: &{not_flags:?}, not_operands: &{not_operands:?}, not_says: &{not_says:?}, alone: {alone}, \
                 says: &{says:?}, vague: &{vague:?}, rules: &{rules:?} }}",
                run.join(", ")
            )
        }
        Act::Grow { rules, unless, max, fields, tools, field, default } => {
            let fields: Vec<String> =
                fields.iter().map(|field| format!("({:?}, {})", field.name, field.unit)).collect();
            format!(
                "Act::Grow {{ rules: &{rules:?}, unless: &{unless:?}, max: {max}, fields: &[{}], tools: &{tools:?}, \
                 field: {field:?}, default: {default} }}",
                fields.join(", ")
            )
        }
    };
    format!("Row {{ name: {name:?}, act: {act} }}")
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn facts(name: &str, facts: &[String]) -> String {
    let fact = |fact: &String| match words(fact).as_slice() {
        ["program", name] => format!("Fact::Program({name:?})"),
        ["behind", program, prefix] => format!("Fact::Behind({program:?}, {prefix:?})"),
        ["module", python, module] => format!("Fact::Module({python:?}, {module:?})"),
        ["plugin", program, plugin] => format!("Fact::Plugin({program:?}, {plugin:?})"),
        _ => panic!("rules/rewrites.toml: {name}: {fact:?} is no fact about a machine"),
    };
    facts.iter().map(fact).collect::<Vec<_>>().join(", ")
}
