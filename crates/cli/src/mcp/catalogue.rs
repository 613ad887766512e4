//! The tools of the server, as far as the client has asked for them. A tool that was never listed is called all the same: the
//! client may know it from elsewhere.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::Value;
use unstuck_wire::mcp::{Hints, ListedTool, ToolList};

/// The longest name that a toolbox takes.
const NAME_MAX: usize = 120;
/// More tools that nobody listed are not remembered.
const UNLISTED_MAX: usize = 100_000;

/// What is known of the server's tools.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    /// By the server's own name.
    tools: BTreeMap<String, Arc<Known>>,
    /// The names that are taken in the toolbox.
    shelved: HashSet<String>,
    /// The pages of a list that is not complete yet, and where the next one begins.
    pages: Vec<ListedTool>,
    expects: Option<String>,
    /// Was a whole list seen, and has nobody said since then that it changed?
    is_whole: bool,
    /// Goes up with every change.
    version: u64,
    /// The digests of the list that was seen last.
    digests: Option<BTreeMap<String, String>>,
}

/// A tool that is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Known {
    /// What it is called in the toolbox, which does not take every name.
    pub(super) shelved_as: String,
    pub(super) schema: Value,
    pub(super) has_output_schema: bool,
    pub(super) hints: Hints,
}

impl Catalogue {
    /// A page of the list was seen. When it is complete, tells the name and the digest of each tool.
    pub(super) fn learn(
        &mut self,
        begins_at: Option<&str>,
        page: ToolList,
    ) -> Option<BTreeMap<String, String>> {
        match begins_at {
            None => self.pages.clear(),
            // It belongs to another list, or to one that has changed meanwhile: together they are none.
            Some(begins) if self.expects.as_deref() != Some(begins) => return None,
            Some(_) => {}
        }
        self.pages.extend(page.tools);
        self.expects = page.next;
        if self.expects.is_some() {
            return None;
        }
        let listed = std::mem::take(&mut self.pages);
        let digests: BTreeMap<String, String> =
            listed.iter().map(|tool| (tool.name.clone(), tool.digest.clone())).collect();
        self.tools.clear();
        self.shelved.clear();
        for tool in listed {
            let known = Known {
                shelved_as: self.shelf_name(&tool.name),
                schema: tool.schema,
                has_output_schema: tool.has_output_schema,
                hints: tool.hints,
            };
            self.tools.insert(tool.name, Arc::new(known));
        }
        self.is_whole = true;
        self.version += 1;
        self.digests = Some(digests.clone());
        Some(digests)
    }

    /// The server says that its list is another one now. Until that was seen, nothing is known of what its tools take and give.
    pub(super) fn outdate(&mut self) {
        for known in self.tools.values_mut() {
            let known = Arc::make_mut(known);
            (known.schema, known.has_output_schema) = (Value::Bool(true), true);
        }
        self.version += 1;
        self.is_whole = false;
        self.pages.clear();
        self.expects = None;
    }

    /// The name and the digest of each tool of the list that was seen last.
    pub(super) fn digests(&self) -> Option<BTreeMap<String, String>> {
        self.digests.clone()
    }

    /// Was a list ever complete?
    pub(super) fn was_listed(&self) -> bool {
        self.digests.is_some()
    }

    /// The tool of a name. One that a complete list does not have is none; of one that nobody listed nothing is known.
    pub(super) fn find(&mut self, name: &str) -> Option<&Arc<Known>> {
        if !self.tools.contains_key(name) {
            if self.is_whole || self.tools.len() >= UNLISTED_MAX {
                return None;
            }
            let known = Known {
                shelved_as: self.shelf_name(name),
                schema: Value::Bool(true),
                has_output_schema: true,
                hints: Hints::default(),
            };
            self.tools.insert(name.to_owned(), Arc::new(known));
            self.version += 1;
        }
        self.tools.get(name)
    }

    /// Goes up with every change.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// All that are known, by the server's own names.
    pub(super) fn all(&self) -> impl Iterator<Item = (&String, &Known)> {
        self.tools.iter().map(|(name, known)| (name, &**known))
    }

    /// A name that the toolbox takes, and that no other tool has there.
    fn shelf_name(&mut self, name: &str) -> String {
        let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "_-./".contains(sign);
        let plain: String =
            name.chars().take(NAME_MAX).map(|sign| if is_sign(sign) { sign } else { '_' }).collect();
        let plain = if plain.is_empty() { "_".to_owned() } else { plain };
        let mut free = plain.clone();
        let mut number = 2_usize;
        while !self.shelved.insert(free.clone()) {
            free = format!("{plain}_{number}");
            number += 1;
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages in the order in which they come: where each begins, where the next one does, and its tool. Tells which tools are
    /// known afterwards, where a list is complete.
    fn check(pages: &[(Option<&str>, Option<&str>, &str)], expected: Option<&str>) {
        let mut catalogue = Catalogue::default();
        let mut whole = None;
        for (begins, next, name) in pages {
            if name.is_empty() {
                catalogue.outdate();
                continue;
            }
            let tool = ListedTool {
                name: (*name).to_owned(),
                schema: Value::Bool(true),
                has_output_schema: false,
                hints: Hints::default(),
                digest: String::new(),
            };
            let listed =
                catalogue.learn(*begins, ToolList { tools: vec![tool], next: next.map(str::to_owned) });
            whole = listed.map(|names| names.into_keys().collect::<Vec<_>>().join(" ")).or(whole);
        }
        assert_eq!(whole.as_deref(), expected, "{pages:?}");
    }

    #[test]
    fn of_a_list_that_has_changed_nobody_knows_what_its_tools_take() {
        let mut catalogue = Catalogue::default();
        let tool = ListedTool {
            name: "tide".to_owned(),
            schema: serde_json::json!({ "required": ["day"] }),
            has_output_schema: false,
            hints: Hints::default(),
            digest: String::new(),
        };
        catalogue.learn(None, ToolList { tools: vec![tool], next: None });
        let before = catalogue.version();
        assert!(catalogue.find("tide").is_some_and(|known| known.schema.is_object()));
        catalogue.outdate();
        let known = catalogue.find("tide").map(|known| (known.schema.clone(), known.has_output_schema));
        assert_eq!(known, Some((Value::Bool(true), true)));
        assert!(catalogue.version() > before, "whoever checks arguments has to hear of it");
        assert!(catalogue.find("a new one").is_some());
    }

    #[test]
    fn only_pages_that_follow_one_another_are_a_list() {
        check(&[(None, None, "a")], Some("a"));
        check(&[(None, Some("2"), "a"), (Some("2"), None, "b")], Some("a b"));
        check(&[(None, Some("2"), "a")], None);
        // The list changed in between.
        check(&[(None, Some("2"), "a"), (None, None, ""), (Some("2"), None, "b")], None);
        // Two lists at once.
        check(
            &[(None, Some("2"), "a"), (None, Some("2"), "a"), (Some("2"), None, "b"), (Some("2"), None, "b")],
            Some("a b"),
        );
        check(&[(Some("3"), None, "c")], None);
    }

    #[test]
    fn names_that_no_toolbox_takes_are_told_apart() {
        let mut catalogue = Catalogue::default();
        let mut shelved =
            |name: &str| catalogue.find(name).map(|known| known.shelved_as.clone()).unwrap_or_default();
        assert_eq!(shelved("read file"), "read_file");
        assert_eq!(shelved("read_file"), "read_file_2");
        assert_eq!(shelved("\u{8bfb}"), "_");
        assert_eq!(shelved(""), "__2");
    }
}
