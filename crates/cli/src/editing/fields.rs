//! Small changes to the fields of one object in a document; everything around them stays as it was. Pure.

use std::ops::Range;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;

use super::document::{Document, object_value, plain_value};
use super::entries::{array_list, index_of, object_list, range};
use super::error::{EditError, Shape};
use super::lists::{self, Item};
use super::sheet::Edit;

/// The value at a place, if there is one. A key that stands twice on the way leaves open which is meant.
pub(super) fn value_at(
    document: &Document<'_>,
    place: &[String],
) -> Result<Option<serde_json::Value>, EditError> {
    match place.is_empty() {
        true => Ok(Some(document.value())),
        false => with_value(document, place, |value| Ok(plain_value(value))),
    }
}

/// The object at a place, if there is one.
pub(super) fn object_at(
    document: &Document<'_>,
    place: &[String],
) -> Result<Option<serde_json::Value>, EditError> {
    with_object(document, place, |object| Ok(object_value(object)))
}

/// Where the value at a place stands in the text.
pub(super) fn range_of(document: &Document<'_>, place: &[String]) -> Result<Option<Range<usize>>, EditError> {
    with_value(document, place, |value| Ok(range(value.range())))
}

/// The document after a change to the object at a place. Where there is no such object, nothing changes.
pub(super) fn edit<'p>(
    document: &Document<'p>,
    place: &[String],
    edit: &Edit,
) -> Result<Document<'p>, EditError> {
    let text = with_object(document, place, |object| {
        let text = document.text();
        let field = |key: &str| object.properties.iter().find(|field| field.name.as_str() == key);
        Ok(match edit {
            Edit::Put(key, value) => match field(key) {
                Some(field) => {
                    let old = range(field.value.range());
                    let is_inline = !text[range(object.range)].contains('\n');
                    let new = lists::in_hand(document, old.start, value, is_inline);
                    [&text[..old.start], &new, &text[old.end..]].concat()
                }
                None => lists::append(document, &object_list(object), &[Item::Field(key, value)]),
            },
            Edit::Lead(key, words) => match field(key).map(|field| &field.value) {
                Some(Value::Array(list)) => lists::lead(document, &array_list(list), words),
                Some(other) => return Err(document.wrong_shape(other.range().start, key, Shape::List)),
                None => {
                    let words = serde_json::Value::from(words.as_slice());
                    lists::append(document, &object_list(object), &[Item::Field(key, &words)])
                }
            },
            Edit::Unlead(key, count) => match field(key).map(|field| &field.value) {
                Some(Value::Array(list)) => lists::unlead(text, &array_list(list), *count),
                Some(_) | None => text.to_owned(),
            },
            Edit::Drop(key) => match index_of(object, key) {
                Some(index) => lists::remove(text, &object_list(object), index),
                None => text.to_owned(),
            },
        })
    })?;
    Ok(text.map_or_else(|| document.clone(), |text| document.with(text)))
}

fn with_object<T>(
    document: &Document<'_>,
    place: &[String],
    look: impl FnOnce(&Object<'_>) -> Result<T, EditError>,
) -> Result<Option<T>, EditError> {
    if place.is_empty() {
        return document.with_root(look).map(Some);
    }
    with_value(document, place, |value| match value {
        Value::Object(object) => look(object),
        other => Err(document.wrong_shape(other.range().start, &place.join("."), Shape::Object)),
    })
}

fn with_value<T>(
    document: &Document<'_>,
    place: &[String],
    look: impl FnOnce(&Value<'_>) -> Result<T, EditError>,
) -> Result<Option<T>, EditError> {
    document.with_root(|root| {
        let mut object = root;
        for (depth, key) in place.iter().enumerate() {
            let mut named = object.properties.iter().filter(|field| field.name.as_str() == key);
            let Some(field) = named.next() else { return Ok(None) };
            if let Some(second) = named.next() {
                return Err(document.twice(second.range.start, &place[..=depth].join(".")));
            }
            if depth + 1 == place.len() {
                return look(&field.value).map(Some);
            }
            let Value::Object(next) = &field.value else {
                let at = field.value.range().start;
                return Err(document.wrong_shape(at, &place[..=depth].join("."), Shape::Object));
            };
            object = next;
        }
        Ok(None)
    })
}
