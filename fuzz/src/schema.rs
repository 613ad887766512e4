//! The check of arguments against a schema: it agrees with the validator, says little, and a repair is valid.

use serde_json::Value;
use unstuck_judge::Lang;

// Compiled from its source: the library would bring SQLite and a runtime along.
#[path = "../../crates/sdk/src/schema/mod.rs"]
#[allow(dead_code, unused_imports, clippy::duplicate_mod, reason = "a fuzzer needs a part of it only")]
mod checker;

use checker::Schema;

/// What arguments may be at most: a toolbox refuses more before a schema is asked.
const BYTES_MAX: usize = 64 * 1024;
const DEPTH_MAX: usize = 64;

/// A list in JSON: a schema, then arguments.
pub fn schema(data: &[u8]) {
    let Ok(Value::Array(parts)) = serde_json::from_slice(data) else { return };
    let [schema, arguments @ ..] = &*parts else { return };
    let Ok(compiled) = Schema::compile(schema) else { return };
    // Limits of whole numbers are ours, and no validator knows them.
    let validator = match schema.to_string().contains("\"format\"") {
        true => None,
        false => jsonschema::validator_for(schema).ok(),
    };
    for input in arguments.iter().take(4).filter(|input| checker::size(input, BYTES_MAX, DEPTH_MAX).is_ok()) {
        let checked = compiled.check(input);
        if let Some(validator) = &validator {
            assert_eq!(checked.is_ok(), validator.is_valid(input), "the validator says otherwise");
        }
        if let Err(invalid) = &checked {
            assert!((1..=20).contains(&invalid.mistakes.len()), "{} mistakes", invalid.mistakes.len());
            for lang in [Lang::En, Lang::Zh] {
                let text = invalid.text("tool", lang);
                assert!(text.len() < 20_000 && !text.contains(char::is_control), "{text:?}");
            }
        }
        let _ = (compiled.misspelt(input), compiled.clearly_wrong(input));
        if let Some((repaired, repairs)) = compiled.repair(input) {
            assert!(!repairs.is_empty() && repaired != *input, "a repair that is none");
            assert!(compiled.check(&repaired).is_ok(), "a repair that does not fit: {repaired}");
            assert!(compiled.repair(&repaired).is_none(), "a repair leaves something to repair: {repaired}");
        }
    }
}
