//! Doors for other people's frameworks, each behind a feature of its name.
//!
//! A door only translates: their call becomes ours, our result becomes theirs. What happens in between is the toolbox, and
//! nothing of it is done here a second time.

#[cfg(feature = "rig")]
pub mod rig;
#[cfg(feature = "rmcp")]
pub mod rmcp;
#[cfg(feature = "tower")]
pub mod tower;

/// A future whose type nobody needs to know.
#[cfg(any(feature = "rig", feature = "tower"))]
type Boxed<T> = std::pin::Pin<Box<dyn Future<Output = T> + Send>>;

/// What the tool answered, and what else the model should know: what was tried before, what was changed in the arguments.
#[cfg(any(feature = "rig", feature = "rmcp"))]
fn parted(result: &crate::result::CallResult) -> (serde_json::Value, Option<serde_json::Value>) {
    let mut told = result.to_json();
    let output = told.as_object_mut().and_then(|told| {
        told.shift_remove("ok");
        told.shift_remove("output")
    });
    let is_more = told.as_object().is_some_and(|told| !told.is_empty());
    (output.unwrap_or_default(), is_more.then_some(told))
}
