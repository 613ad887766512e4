//! Asks a test about a value. Values are told apart and ordered as jq does it.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;
use unstuck_judge::Lang;

use super::{Compare, Expr};

/// What of a value is quoted.
const QUOTE_MAX: usize = 120;

type Out<'v> = Vec<Cow<'v, Value>>;

/// Why something cannot be asked of a value.
struct Unfit {
    asked: String,
    of: &'static str,
}

pub(super) fn holds(expr: &Expr, value: &Value, lang: Lang) -> Result<(), String> {
    let out = eval(expr, value).map_err(|unfit| match lang {
        Lang::En => format!("{} cannot be asked of {}", unfit.asked, unfit.of),
        Lang::Zh => format!("不能对 {} 求 {}", unfit.of, unfit.asked),
    })?;
    match (out.iter().find(|value| !is_true(value)), lang) {
        (None, Lang::En) if out.is_empty() => Err("there is nothing in it".to_owned()),
        (None, Lang::Zh) if out.is_empty() => Err("其中没有内容".to_owned()),
        (None, _) => Ok(()),
        (Some(_), _) => Err(instead(expr, value, lang)),
    }
}

/// What was found instead, in words.
fn instead(expr: &Expr, value: &Value, lang: Lang) -> String {
    let found = untrue(expr, value).unwrap_or_else(|| quoted(value));
    match lang {
        Lang::En => format!("it is {found}"),
        Lang::Zh => format!("实际为 {found}"),
    }
}

/// The first value that made it untrue: for a comparison, what was compared.
fn untrue(expr: &Expr, value: &Value) -> Option<String> {
    match expr {
        Expr::Pipe(first, then) => {
            let mut between = eval(first, value).ok()?.into_iter();
            between.find_map(|value| match all_true(then, &value) {
                Ok(true) | Err(_) => None,
                Ok(false) => untrue(then, &value),
            })
        }
        Expr::Compare(left, how, right) => {
            let right = eval(right, value).ok()?;
            let fails = |left: &Value| right.iter().any(|right| !fits(*how, order(left, right)));
            eval(left, value).ok()?.iter().find(|left| fails(left)).map(|left| quoted(left))
        }
        other => eval(other, value).ok()?.iter().find(|value| !is_true(value)).map(|value| quoted(value)),
    }
}

fn quoted(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(QUOTE_MAX) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn is_true(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

fn eval<'v>(expr: &Expr, value: &'v Value) -> Result<Out<'v>, Unfit> {
    let truth = |is_so: bool| Ok(vec![Cow::Owned(Value::Bool(is_so))]);
    let number = |count: usize| Ok(vec![Cow::Owned(Value::from(count))]);
    match expr {
        Expr::Itself => Ok(vec![Cow::Borrowed(value)]),
        Expr::Literal(literal) => Ok(vec![Cow::Owned(literal.clone())]),
        Expr::Field(of, name) => each(eval(of, value)?, |value| field(value, name)),
        Expr::Index(of, index) => each(eval(of, value)?, |value| at(value, *index)),
        Expr::Each(of) => each(eval(of, value)?, inside),
        Expr::Pipe(first, then) => {
            let mut out = Vec::new();
            for value in eval(first, value)? {
                let next = eval(then, &value)?;
                out.extend(next.into_iter().map(|value| Cow::Owned(value.into_owned())));
            }
            Ok(out)
        }
        Expr::Compare(left, how, right) => {
            let (left, right) = (eval(left, value)?, eval(right, value)?);
            let pairs = left.iter().flat_map(|left| right.iter().map(move |right| order(left, right)));
            let answers = pairs.map(|order| Cow::Owned(Value::Bool(fits(*how, order))));
            Ok(answers.collect())
        }
        Expr::And(left, right) => truth(all_true(left, value)? && all_true(right, value)?),
        Expr::Or(left, right) => truth(all_true(left, value)? || all_true(right, value)?),
        Expr::Length => match value {
            Value::Null => number(0),
            Value::String(text) => number(text.chars().count()),
            Value::Array(list) => number(list.len()),
            Value::Object(fields) => number(fields.len()),
            Value::Bool(_) | Value::Number(_) => Err(unfit("length", value)),
        },
        Expr::Keys => match value {
            Value::Object(fields) => {
                let mut names: Vec<&String> = fields.keys().collect();
                names.sort();
                Ok(vec![Cow::Owned(names.into_iter().map(String::as_str).collect())])
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(unfit("keys", value))
            }
        },
        Expr::Type => Ok(vec![Cow::Owned(Value::from(kind(value)))]),
        Expr::Not => truth(!is_true(value)),
        Expr::Any => list(value, "any").and_then(|list| truth(list.iter().any(is_true))),
        Expr::All => list(value, "all").and_then(|list| truth(list.iter().all(is_true))),
        Expr::Has(name) => match (value, name) {
            (Value::Object(fields), Value::String(name)) => truth(fields.contains_key(name)),
            (Value::Array(list), Value::Number(index)) => {
                truth(index.as_u64().is_some_and(|index| index < list.len() as u64))
            }
            (_, name) => Err(unfit(&format!("has({name})"), value)),
        },
        Expr::Contains(part) => text(value, "contains").and_then(|text| truth(text.contains(part.as_str()))),
        Expr::StartsWith(part) => {
            text(value, "startswith").and_then(|text| truth(text.starts_with(part.as_str())))
        }
    }
}

/// Does everything that comes out say yes, and does something?
fn all_true(expr: &Expr, value: &Value) -> Result<bool, Unfit> {
    let out = eval(expr, value)?;
    Ok(!out.is_empty() && out.iter().all(|value| is_true(value)))
}

/// The same step from each value.
fn each<'v>(
    values: Out<'v>,
    step: impl for<'a> Fn(&'a Value) -> Result<Vec<&'a Value>, Unfit>,
) -> Result<Out<'v>, Unfit> {
    let mut out = Vec::new();
    for value in values {
        match value {
            Cow::Borrowed(value) => out.extend(step(value)?.into_iter().map(Cow::Borrowed)),
            Cow::Owned(value) => out.extend(step(&value)?.into_iter().map(|value| Cow::Owned(value.clone()))),
        }
    }
    Ok(out)
}

fn field<'a>(value: &'a Value, name: &str) -> Result<Vec<&'a Value>, Unfit> {
    match value {
        Value::Object(fields) => Ok(vec![fields.get(name).unwrap_or(&Value::Null)]),
        Value::Null => Ok(vec![&Value::Null]),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(unfit(&format!(".{name}"), value))
        }
    }
}

fn at(value: &Value, index: i64) -> Result<Vec<&Value>, Unfit> {
    match value {
        Value::Array(list) => {
            let from_end = |back: i64| list.len().checked_sub(usize::try_from(back.unsigned_abs()).ok()?);
            let place = if index < 0 { from_end(index) } else { usize::try_from(index).ok() };
            Ok(vec![place.and_then(|place| list.get(place)).unwrap_or(&Value::Null)])
        }
        Value::Null => Ok(vec![&Value::Null]),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            Err(unfit(&format!("[{index}]"), value))
        }
    }
}

fn inside(value: &Value) -> Result<Vec<&Value>, Unfit> {
    match value {
        Value::Array(list) => Ok(list.iter().collect()),
        Value::Object(fields) => Ok(fields.values().collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(unfit("[]", value)),
    }
}

fn list<'v>(value: &'v Value, asked: &str) -> Result<&'v Vec<Value>, Unfit> {
    value.as_array().ok_or_else(|| unfit(asked, value))
}

fn text<'v>(value: &'v Value, asked: &str) -> Result<&'v str, Unfit> {
    value.as_str().ok_or_else(|| unfit(asked, value))
}

fn unfit(asked: &str, value: &Value) -> Unfit {
    Unfit { asked: format!("`{asked}`"), of: kind(value) }
}

/// The word for what a value is.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn fits(how: Compare, order: Ordering) -> bool {
    match how {
        Compare::Equal => order.is_eq(),
        Compare::Unequal => order.is_ne(),
        Compare::Less => order.is_lt(),
        Compare::LessOrEqual => order.is_le(),
        Compare::Greater => order.is_gt(),
        Compare::GreaterOrEqual => order.is_ge(),
    }
}

/// Null, false, true, numbers, texts, lists, objects: in this order, as jq has it.
fn order(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            (_, _) => {
                let [left, right] = [left, right].map(|number| number.as_f64().unwrap_or(f64::NAN));
                left.partial_cmp(&right).unwrap_or(Ordering::Equal)
            }
        },
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let differs = left.iter().zip(right).map(|(left, right)| order(left, right)).find(|o| o.is_ne());
            differs.unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let sorted = |fields: &serde_json::Map<String, Value>| {
                let mut fields: Vec<(String, Value)> =
                    fields.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                fields.sort_by(|one, other| one.0.cmp(&other.0));
                fields
            };
            let (left, right) = (sorted(left), sorted(right));
            let names =
                |fields: &[(String, Value)]| fields.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
            names(&left).cmp(&names(&right)).then_with(|| {
                let pairs = left.iter().zip(&right).map(|(left, right)| order(&left.1, &right.1));
                pairs.into_iter().find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
            })
        }
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (left, right) => rank(left).cmp(&rank(right)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}
