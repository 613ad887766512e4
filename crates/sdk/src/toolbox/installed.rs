//! A tool in its place in the toolbox, with what is known of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::Value;
use tokio::sync::Semaphore;

use crate::annotations::Annotations;
use crate::schema::{Schema, SchemaError};
use crate::tool::{AnyTool, Tool};

/// After so many calls that never came back a tool is not called again until some do.
const LEFT_MAX: usize = 8;

/// A tool in its place.
pub(crate) struct Installed {
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) name: Arc<str>,
    pub(crate) description: String,
    pub(crate) described: Value,
    /// What its arguments are checked by; nothing where they are not.
    pub(crate) schema: Option<Schema>,
    pub(crate) annotations: Arc<Annotations>,
    /// How many of its calls run at once.
    pub(crate) places: Semaphore,
    /// It was seen to block the thread it runs on: it gets one of its own.
    blocks: AtomicBool,
    /// How many of its calls were given up and still run.
    left: AtomicUsize,
}

impl Installed {
    pub(crate) fn new<T: Tool>(tool: T, places: usize) -> Result<Installed, SchemaError> {
        let described = tool.schema();
        let annotations = Arc::new(tool.annotations());
        Ok(Installed {
            name: tool.name().into(),
            description: tool.description().to_owned(),
            schema: match annotations.is_unchecked {
                true => None,
                false => Some(Schema::compile(&described)?),
            },
            described,
            blocks: AtomicBool::new(annotations.blocks),
            annotations,
            tool: Arc::new(tool),
            places: Semaphore::new(places),
            left: AtomicUsize::new(0),
        })
    }

    pub(crate) fn blocks(&self) -> bool {
        self.blocks.load(Ordering::Relaxed)
    }

    /// It was seen to block.
    pub(crate) fn note_blocking(&self) {
        self.blocks.store(true, Ordering::Relaxed);
    }

    /// How many of its calls never came back, where they are too many to call it again.
    pub(crate) fn too_many_left(&self) -> Option<usize> {
        Some(self.left.load(Ordering::Relaxed)).filter(|left| *left >= LEFT_MAX)
    }

    pub(crate) fn note_left(&self) {
        self.left.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_back(&self) {
        self.left.fetch_sub(1, Ordering::Relaxed);
    }
}
