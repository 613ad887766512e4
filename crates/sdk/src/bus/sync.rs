//! The lock of the ring, named here so that a model checker can put its own in the same place.

pub(crate) use std::sync::Mutex;
