//! Checks arguments against the schema of a tool, and says of each mistake where it is, what was expected and what was there.
//!
//! Whether arguments are valid is decided by one validator, compiled once for each tool. Only for those that are not the
//! schema is walked a second time, for words that help. All of it goes down by recursion: what is too deep has to be
//! refused by [`size`] before. Nothing outside of a schema is ever fetched.

mod clear;
mod definitions;
mod expected;
#[cfg(test)]
mod laws;
mod mistake;
mod near;
mod quote;
mod repair;
mod size;
#[cfg(test)]
mod tests;
mod walk;

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use jsonschema::{Draft, PatternOptions, ReferencingError, ValidationError, Validator};
use serde_json::{Number, Value};

use definitions::Definitions;
use expected::Expected;
use mistake::{Field, Wrong};
pub use mistake::{Invalid, Mistake};
pub(crate) use near::near;
use quote::Step;
pub use repair::Repair;
pub(crate) use size::{TooLarge, dismantle, size};
use walk::{Found, Walk};

/// A schema that is larger was not written by hand, nor derived from a type.
const SCHEMA_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Nor is one that is deeper.
const SCHEMA_DEPTH_MAX: usize = 128;
/// A pattern with which a text can be compared in so many ways is given up: the text does not fit.
const PATTERN_TRIES: usize = 100_000;

/// The compiled schema of a tool's arguments.
#[derive(Debug)]
pub(crate) struct Schema {
    validator: Validator,
    definitions: Definitions,
}

/// Why a schema cannot be used. It is the tool's author who has to know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// It breaks the rules for schemas.
    #[error("the schema is broken at {place}: {why}; correct it there, or derive it with schemars")]
    Broken {
        /// Where, as a JSON pointer.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// It refers to something that is not there.
    #[error(
        "the schema refers to something outside of it: {why}; put what it refers to into `$defs`, nothing is fetched"
    )]
    Elsewhere {
        /// What cannot be found.
        why: String,
    },
    /// It leads back to itself without going into the value, so no check would end.
    #[error(
        "the schema refers to itself without going into a field or an entry; put `properties` or `items` between"
    )]
    Circular,
    /// Nobody could check anything with it in time.
    #[error(
        "the schema is larger or deeper than any tool needs; split the tool, or use `$defs` for what repeats"
    )]
    TooLarge,
}

/// How many fields that nobody knows are compared with those that are known.
const MISSPELT_MAX: usize = 20;

impl Schema {
    /// Compiles a schema.
    pub(crate) fn compile(schema: &Value) -> Result<Schema, SchemaError> {
        if size(schema, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX).is_err() {
            return Err(SchemaError::TooLarge);
        }
        let mut schema = schema.clone();
        limit_numbers(&mut schema);
        let validator = options(None).build(&schema).map_err(|error| SchemaError::from(&error))?;
        let is_alone = match validator.draft() {
            Draft::Draft4 | Draft::Draft6 | Draft::Draft7 => true,
            // The enum of the drafts grows; the newer ones read what stands beside a reference.
            _ => false,
        };
        let definitions = Definitions::new(schema, is_alone);
        if definitions.is_circular() {
            return Err(SchemaError::Circular);
        }
        Ok(Schema { validator, definitions })
    }

    /// Checks arguments, of which [`size`] has said that they are not too deep.
    pub(crate) fn check(&self, input: &Value) -> Result<(), Invalid> {
        if self.validator.is_valid(input) { Ok(()) } else { Err(self.explain(input)) }
    }

    /// A field that the schema does not name, and the one it is probably meant to be: left out, it would be dropped without a
    /// word. Only where nobody said that other fields are welcome.
    pub(crate) fn misspelt<'v>(&'v self, input: &'v Value) -> Option<(&'v str, &'v str)> {
        let (root, fields) = (self.definitions.root(), input.as_object()?);
        let open = ["additionalProperties", "patternProperties", "unevaluatedProperties"];
        if open.iter().any(|keyword| root.get(keyword).is_some()) {
            return None;
        }
        let known = root.get("properties")?.as_object()?;
        let mut unknown = fields.keys().filter(|name| !known.contains_key(*name)).take(MISSPELT_MAX);
        unknown.find_map(|name| {
            let absent = known.keys().filter(|known| !fields.contains_key(*known)).map(String::as_str);
            near(name, absent).map(|meant| (&**name, meant))
        })
    }

    /// Writes arguments so that they fit, where it is plain what was meant. Nothing if that cannot be done, or need not.
    pub(crate) fn repair(&self, input: &Value) -> Option<(Value, Vec<Repair>)> {
        let compile = |schema: &Value| options(Some(self.validator.draft())).build(schema).ok();
        let mut value = input.clone();
        let repairs = repair::repair(&self.definitions, &Walk::new(&self.definitions, &compile), &mut value)?;
        self.validator.is_valid(&value).then_some((value, repairs))
    }

    /// What is clearly wrong with arguments that do not fit: a field that has to be there is missing, or a value is of a type
    /// that cannot be meant. Nothing where the tool may make something of them.
    #[cold]
    pub(crate) fn clearly_wrong(&self, input: &Value) -> Option<Invalid> {
        let compile = |schema: &Value| options(Some(self.validator.draft())).build(schema).ok();
        let root = self.definitions.root();
        let mut found = Found::new(0);
        let walk = Walk::new(&self.definitions, &compile);
        walk.look_for_clear_mistakes(root, root, input, &mut Vec::new(), &mut found);
        (!found.mistakes.is_empty()).then(|| self.told(found))
    }

    #[cold]
    fn explain(&self, input: &Value) -> Invalid {
        let compile = |schema: &Value| options(Some(self.validator.draft())).build(schema).ok();
        let root = self.definitions.root();
        let mut found = Found::new(0);
        let walk = Walk::new(&self.definitions, &compile);
        walk.look(root, root, input, &mut Vec::new(), &mut found);
        if found.mistakes.is_empty() {
            found.mistakes.push(match walk.leaves_it_to_the_validator() {
                true => self.unexplained(input),
                false => Mistake::at(&[], input, &Wrong::Unfit(Expected::Keyword("anyOf".to_owned()), None)),
            });
            found.count = 1;
        }
        self.told(found)
    }

    /// What was found, as it is told.
    fn told(&self, found: Found) -> Invalid {
        let fields = if found.is_missing { self.fields() } else { Vec::new() };
        let more = found.count.saturating_sub(found.mistakes.len());
        Invalid::new(found.mistakes, more, fields)
    }

    /// The first mistake as the validator sees it, where the walk sees none.
    fn unexplained(&self, input: &Value) -> Mistake {
        let Err(error) = self.validator.validate(input) else {
            return Mistake::at(&[], input, &Wrong::Unfit(Expected::Any, None));
        };
        let segments: Vec<LocationSegment<'_>> = error.instance_path().segments().collect();
        let way: Vec<Step<'_>> = segments
            .iter()
            .map(|segment| match segment {
                LocationSegment::Property(name) => Step::Field(name),
                LocationSegment::Index(at) => Step::Entry(*at),
            })
            .collect();
        let value = input.pointer(error.instance_path().as_str()).unwrap_or(input);
        let expected = Expected::Keyword(error.kind().keyword().to_owned());
        Mistake::at(&way, value, &Wrong::Unfit(expected, None))
    }

    fn fields(&self) -> Vec<Field> {
        let root = self.definitions.root();
        let required = self.definitions.required(root);
        let names = self.definitions.names(root).into_iter();
        names.map(|name| Field { name: name.to_owned(), is_required: required.contains(&name) }).collect()
    }
}

/// Says in numbers what the formats of whole numbers mean: validators do not look at them, and the types that stand behind
/// them would refuse what is too large without telling where it is.
fn limit_numbers(node: &mut Value) {
    match node {
        Value::Array(list) => list.iter_mut().for_each(limit_numbers),
        Value::Object(fields) => {
            let limits: Option<[Number; 2]> = match fields.get("format").and_then(Value::as_str) {
                Some("int32") => Some([i32::MIN.into(), i32::MAX.into()]),
                Some("int64" | "int") => Some([i64::MIN.into(), i64::MAX.into()]),
                Some("uint32") => Some([0.into(), u32::MAX.into()]),
                Some("uint64" | "uint") => Some([0.into(), u64::MAX.into()]),
                Some(_) | None => None,
            };
            let is_written =
                ["exclusiveMinimum", "exclusiveMaximum"].iter().any(|limit| fields.contains_key(*limit));
            if let Some([least, most]) = limits.filter(|_| !is_written) {
                fields.entry("minimum").or_insert(Value::Number(least));
                fields.entry("maximum").or_insert(Value::Number(most));
            }
            let is_data = |keyword: &str| matches!(keyword, "const" | "enum" | "default" | "examples");
            fields
                .iter_mut()
                .filter(|(keyword, _)| !is_data(keyword))
                .for_each(|(_, inner)| limit_numbers(inner));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn options(draft: Option<Draft>) -> jsonschema::ValidationOptions<'static> {
    let options = jsonschema::options()
        .offline()
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(PATTERN_TRIES));
    match draft {
        Some(draft) => options.with_draft(draft),
        None => options,
    }
}

impl From<&ValidationError<'_>> for SchemaError {
    fn from(error: &ValidationError<'_>) -> SchemaError {
        match error.kind() {
            ValidationErrorKind::Referencing(
                error @ (ReferencingError::Unretrievable { .. }
                | ReferencingError::PointerToNowhere { .. }
                | ReferencingError::NoSuchAnchor { .. }),
            ) => SchemaError::Elsewhere { why: quote::line(&error.to_string()) },
            _ => SchemaError::Broken {
                place: format!("`{}`", quote::name(error.instance_path().as_str())),
                why: quote::line(&error.to_string()),
            },
        }
    }
}
