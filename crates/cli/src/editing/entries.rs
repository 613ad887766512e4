//! Our entries among those of others: which stand in a document, how they are put in, how they are taken out. Pure.
//!
//! An entry is ours by its whole command line and by nothing else. Where one of ours stands already, what its owner changed
//! about it (a time limit, a matcher) stays; only the command line follows us when we move.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use serde_json::json;

use super::document::Document;
use super::error::{EditError, Shape};
use super::lists::{self, Item, List};

/// How the entries of an event are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `{"matcher": …, "hooks": [{"command": …}]}`
    Grouped,
    /// `{"command": …}`
    Flat,
}

/// An entry that should stand under an event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) event: &'static str,
    pub(crate) entry: serde_json::Value,
}

/// What is ours, and how it looks.
pub(crate) struct Entries<'a> {
    pub(crate) layout: Layout,
    /// The key under which an entry names its command line.
    pub(crate) command_key: &'static str,
    /// Keys that the file needs at its top.
    pub(crate) top: &'a [(&'static str, serde_json::Value)],
    /// The command line as it is now.
    pub(crate) command: &'a str,
    /// Is this command line one of ours, perhaps an older one?
    pub(crate) is_ours: &'a dyn Fn(&str) -> bool,
}

/// An entry of ours that stands in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) event: String,
    pub(crate) command: String,
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    event: usize,
    element: usize,
    /// Where it stands among several of one group.
    in_group: Option<usize>,
    command: Range<usize>,
}

/// A document with our entries, and what had to be made for them.
#[derive(Debug)]
pub(crate) struct Holding<'p> {
    pub(crate) document: Document<'p>,
    /// Keys that were not there, as paths (`/hooks/PreToolUse`).
    pub(crate) made: Vec<String>,
}

impl Entries<'_> {
    /// Every entry of ours, in the order of the file.
    pub(crate) fn standing(&self, document: &Document<'_>) -> Result<Vec<Standing>, EditError> {
        document.with_root(|root| {
            let Some(hooks) = hooks_of(document, root)? else { return Ok(Vec::new()) };
            let mut found = Vec::new();
            for (event, field) in hooks.properties.iter().enumerate() {
                let Value::Array(list) = &field.value else { continue };
                for (element, value) in list.elements.iter().enumerate() {
                    self.look_at(field, (event, element), value, &mut found);
                }
            }
            Ok(found)
        })
    }

    fn look_at(
        &self,
        field: &ObjectProp<'_>,
        (event, element): (usize, usize),
        value: &Value<'_>,
        found: &mut Vec<Standing>,
    ) {
        let Value::Object(object) = value else { return };
        let mut note = |entry: &Object<'_>, in_group| {
            let Some(command) = entry.get_string(self.command_key) else { return };
            if (self.is_ours)(&command.value) {
                let place = Place { event, element, in_group, command: range(command.range) };
                let (event, command) = (field.name.as_str().to_owned(), command.value.clone().into_owned());
                found.push(Standing { event, command, place });
            }
        };
        match self.layout {
            Layout::Flat => note(object, None),
            Layout::Grouped => {
                let Some(group) = object.get_array("hooks") else { return };
                let several = group.elements.len() > 1;
                for (index, entry) in group.elements.iter().enumerate() {
                    if let Value::Object(entry) = entry {
                        note(entry, several.then_some(index));
                    }
                }
            }
        }
    }

    /// The document with all that is wanted. What stands there already stays; what is ours goes where it is neither wanted nor
    /// tolerated.
    pub(crate) fn put<'p>(
        &self,
        document: &Document<'p>,
        wanted: &[Wanted],
        tolerated: &[&str],
        made: Option<&[String]>,
    ) -> Result<Holding<'p>, EditError> {
        let mut document = document.clone();
        while let Some(surplus) = self.first_surplus(&document, wanted, tolerated)? {
            document = self.without(&document, &surplus, made)?;
        }
        while let Some(old) = self.standing(&document)?.into_iter().find(|each| each.command != self.command)
        {
            let text = document.text();
            let Range { start, end } = old.place.command;
            let command = serde_json::Value::from(self.command);
            document = document.with(format!("{}{command}{}", &text[..start], &text[end..]));
        }
        let mut now_made = Vec::new();
        let standing = self.standing(&document)?;
        let is_missing = |wanted: &&Wanted| standing.iter().all(|each| each.event != wanted.event);
        let missing: Vec<&Wanted> = wanted.iter().filter(is_missing).collect();
        if !missing.is_empty() {
            document = self.with_missing(&document, &missing, &mut now_made)?;
        }
        Ok(Holding { document, made: now_made })
    }

    /// An entry of ours that should not be there: under an event nobody wants, or a second one under the same event.
    fn first_surplus(
        &self,
        document: &Document<'_>,
        wanted: &[Wanted],
        tolerated: &[&str],
    ) -> Result<Option<Standing>, EditError> {
        let standing = self.standing(document)?;
        let is_surplus = |(index, each): &(usize, &Standing)| {
            let mut may_stand = wanted.iter().map(|wanted| wanted.event).chain(tolerated.iter().copied());
            may_stand.all(|event| event != each.event)
                || standing[..*index].iter().any(|earlier| earlier.event == each.event)
        };
        Ok(standing.iter().enumerate().find(is_surplus).map(|(_, each)| each.clone()))
    }

    fn with_missing<'p>(
        &self,
        document: &Document<'p>,
        missing: &[&Wanted],
        made: &mut Vec<String>,
    ) -> Result<Document<'p>, EditError> {
        let mut document = document.clone();
        let (top, has_hooks) = document.with_root(|root| {
            let top: Vec<_> = self.top.iter().filter(|(name, _)| root.get(name).is_none()).collect();
            Ok((top, hooks_of(&document, root)?.is_some()))
        })?;
        let all: serde_json::Map<String, serde_json::Value> =
            missing.iter().map(|wanted| (wanted.event.to_owned(), json!([wanted.entry]))).collect();
        let all = serde_json::Value::Object(all);
        let mut fields: Vec<Item<'_>> = top.iter().map(|(name, value)| Item::Field(name, value)).collect();
        made.extend(top.iter().map(|(name, _)| format!("/{name}")));
        if !has_hooks {
            fields.push(Item::Field("hooks", &all));
            made.push("/hooks".to_owned());
            made.extend(missing.iter().map(|wanted| format!("/hooks/{}", wanted.event)));
        }
        if !fields.is_empty() {
            let root = document.with_root(|root| Ok(object_list(root)))?;
            document = document.with(lists::append(&document, &root, &fields));
        }
        if !has_hooks {
            return Ok(document);
        }
        let mut new = Vec::new();
        for wanted in missing {
            match event_list(&document, wanted.event)? {
                Some(list) => {
                    let item = [Item::Element(&wanted.entry)];
                    document = document.with(lists::append(&document, &list, &item));
                }
                None => new.push((wanted.event, json!([wanted.entry]))),
            }
        }
        if !new.is_empty() {
            made.extend(new.iter().map(|(event, _)| format!("/hooks/{event}")));
            let fields: Vec<Item<'_>> = new.iter().map(|(event, list)| Item::Field(event, list)).collect();
            let hooks = document.with_root(|root| Ok(hooks_of(&document, root)?.map(object_list)))?;
            if let Some(hooks) = hooks {
                document = document.with(lists::append(&document, &hooks, &fields));
            }
        }
        Ok(document)
    }

    /// The document without any entry of ours, and without what was made for them and is empty now. Where nobody knows what
    /// was made, what our entries left empty goes.
    pub(crate) fn take_out<'p>(
        &self,
        document: &Document<'p>,
        made: Option<&[String]>,
    ) -> Result<Document<'p>, EditError> {
        let mut document = document.clone();
        while let Some(own) = self.standing(&document)?.pop() {
            document = self.without(&document, &own, made)?;
        }
        let is_made =
            |name: &str| made.is_some_and(|made| made.iter().any(|each| *each == format!("/{name}")));
        for (name, value) in self.top.iter().filter(|(name, _)| is_made(name)) {
            let index = document.with_root(|root| {
                let index = index_of(root, name).filter(|_| index_of(root, "hooks").is_none());
                let is_as_made =
                    |index: &usize| super::document::plain_value(&root.properties[*index].value) == *value;
                Ok(index.filter(is_as_made).map(|index| (object_list(root), index)))
            })?;
            if let Some((list, index)) = index {
                document = document.with(lists::remove(document.text(), &list, index));
            }
        }
        Ok(document)
    }

    /// The document without one entry.
    fn without<'p>(
        &self,
        document: &Document<'p>,
        own: &Standing,
        made: Option<&[String]>,
    ) -> Result<Document<'p>, EditError> {
        let may_go = |path: &str| made.is_none_or(|made| made.iter().any(|each| each == path));
        let (list, index) = document.with_root(|root| {
            let list = hooks_of(document, root)?
                .and_then(|hooks| hooks.properties.get(own.place.event))
                .and_then(|field| field.value.as_array());
            let Some(list) = list else { return Ok((None, 0)) };
            Ok(match own.place.in_group {
                None => (Some(array_list(list)), own.place.element),
                Some(index) => {
                    let group = list.elements.get(own.place.element).and_then(Value::as_object);
                    (group.and_then(|group| group.get_array("hooks")).map(array_list), index)
                }
            })
        })?;
        let Some(list) = list else { return Ok(document.clone()) };
        let mut document = document.with(lists::remove(document.text(), &list, index));
        let event_path = format!("/hooks/{}", own.event);
        let is_empty = event_list(&document, &own.event)?.is_some_and(|list| is_bare(&document, &list));
        if is_empty && may_go(&event_path) {
            let hooks = document.with_root(|root| {
                let hooks = hooks_of(&document, root)?;
                Ok(hooks.and_then(|hooks| Some((object_list(hooks), index_of(hooks, &own.event)?))))
            })?;
            if let Some((hooks, index)) = hooks {
                document = document.with(lists::remove(document.text(), &hooks, index));
            }
        }
        let hooks = document.with_root(|root| {
            let hooks = hooks_of(&document, root)?.map(object_list);
            Ok(hooks.and_then(|hooks| Some((hooks, object_list(root), index_of(root, "hooks")?))))
        })?;
        if let Some((hooks, root, index)) = hooks
            && is_bare(&document, &hooks)
            && may_go("/hooks")
        {
            document = document.with(lists::remove(document.text(), &root, index));
        }
        Ok(document)
    }
}

/// The object that holds the entries. Another `hooks` beside it, or two lists of one event, would leave open which counts.
fn hooks_of<'o, 'a>(
    document: &Document<'_>,
    root: &'o Object<'a>,
) -> Result<Option<&'o Object<'a>>, EditError> {
    let mut named = root.properties.iter().filter(|field| field.name.as_str() == "hooks");
    let Some(field) = named.next() else { return Ok(None) };
    if let Some(second) = named.next() {
        return Err(document.twice(second.range.start, "hooks"));
    }
    let Value::Object(hooks) = &field.value else {
        return Err(document.wrong_shape(field.value.range().start, "hooks", Shape::Object));
    };
    for (index, field) in hooks.properties.iter().enumerate() {
        let name = field.name.as_str();
        if hooks.properties[..index].iter().any(|earlier| earlier.name.as_str() == name) {
            return Err(document.twice(field.range.start, &format!("hooks.{name}")));
        }
    }
    Ok(Some(hooks))
}

/// The list of an event's entries, if the event is there.
fn event_list(document: &Document<'_>, event: &str) -> Result<Option<List>, EditError> {
    document.with_root(|root| {
        let field = hooks_of(document, root)?.and_then(|hooks| hooks.get(event));
        match field.map(|field| &field.value) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(array_list(list))),
            Some(other) => {
                Err(document.wrong_shape(other.range().start, &format!("hooks.{event}"), Shape::List))
            }
        }
    })
}

/// Is there nothing in it, not even a comment?
fn is_bare(document: &Document<'_>, list: &List) -> bool {
    document.text()[list.range.start + 1..list.range.end - 1].trim_ascii().is_empty()
}

pub(super) fn index_of(object: &Object<'_>, name: &str) -> Option<usize> {
    object.properties.iter().position(|field| field.name.as_str() == name)
}

pub(super) fn array_list(array: &Array<'_>) -> List {
    let items = array.elements.iter().map(|element| range(element.range())).collect();
    List { range: range(array.range), items }
}

pub(super) fn object_list(object: &Object<'_>) -> List {
    let items = object.properties.iter().map(|field| range(field.range)).collect();
    List { range: range(object.range), items }
}

pub(super) fn range(range: jsonc_parser::common::Range) -> Range<usize> {
    range.start..range.end
}
