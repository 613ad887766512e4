//! Parts that are measured by themselves.

use std::sync::Arc;

use serde_json::Value;
use unstuck_store::EventType;

use crate::bus::{Body, Event, EventBus};
use crate::call::{CallInfo, ToolCall};
use crate::schema::Schema;

/// A bus that anybody can publish on.
#[derive(Debug)]
pub struct Bus {
    /// The bus.
    pub bus: EventBus,
    call: Arc<CallInfo>,
}

impl Bus {
    /// One that remembers so many events.
    pub fn new(capacity: usize) -> Bus {
        let call = ToolCall::new("forecast", Value::Null);
        Bus { bus: EventBus::new(capacity), call: Arc::new(call.into()) }
    }

    /// Publishes one event.
    pub fn publish(&self, at: u64) {
        let (call, body) = (Arc::clone(&self.call), Body::Started { attempt: 1 });
        self.bus.publish(Event::new(EventType::ToolStart, at, None, Some(call), body));
    }
}

/// Checks arguments.
#[derive(Debug)]
pub struct Check(Schema);

impl Check {
    /// Against a schema.
    ///
    /// # Panics
    /// Where it is none.
    #[expect(clippy::unwrap_used, reason = "a measurement of nothing is none")]
    pub fn new(schema: &Value) -> Check {
        Check(Schema::compile(schema).unwrap())
    }

    /// Do they fit?
    pub fn fits(&self, input: &Value) -> bool {
        self.0.check(input).is_ok()
    }
}
