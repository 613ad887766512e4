//! What the fields of a tool's arguments mean, in the language of the model.

use serde_json::Value;
use unstuck::schemars::{JsonSchema, schema_for};
use unstuck_judge::Lang;

/// The schema of arguments. It is written in English; for each name of a field or a type, and the empty one of all of it, there is the
/// same in Chinese.
pub(super) fn schema<Args: JsonSchema>(lang: Lang, in_chinese: &[(&str, &str)]) -> Value {
    let mut schema = schema_for!(Args).to_value();
    match lang {
        Lang::En => {}
        Lang::Zh => in_chinese.iter().for_each(|(name, text)| describe(&mut schema, name, text)),
    }
    schema
}

fn describe(schema: &mut Value, name: &str, text: &str) {
    let places = match name {
        "" => vec![String::new()],
        name => vec![format!("/properties/{name}"), format!("/$defs/{name}")],
    };
    for place in places {
        if let Some(described) = schema.pointer_mut(&place) {
            described["description"] = Value::from(text);
        }
    }
}
