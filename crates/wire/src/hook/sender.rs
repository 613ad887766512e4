//! Who sent a payload. Some programs run the hooks that were installed for another one, with payloads of their own, and heed
//! only answers of their own: Copilot CLI and Cursor read the settings of Claude Code.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Host;
use crate::json::{WireError, read_object};
use crate::scalar::WireText;

/// Just enough of a payload to tell whose it is.
#[derive(Deserialize)]
struct WireSample {
    hook_event_name: Option<WireText>,
    cursor_version: Option<IgnoredAny>,
    #[serde(rename = "sessionId")]
    camel_session: Option<IgnoredAny>,
    tool_result: Option<IgnoredAny>,
    turn_id: Option<IgnoredAny>,
    model: Option<IgnoredAny>,
    timestamp: Option<IgnoredAny>,
    transcript_path: Option<IgnoredAny>,
    permission_mode: Option<IgnoredAny>,
    tool_use_id: Option<IgnoredAny>,
    tool_call_id: Option<IgnoredAny>,
}

/// The sender of a payload that came through `door`. What gives nobody away came from the one whose door it is.
pub(super) fn of(door: Host, bytes: &[u8]) -> Result<Host, WireError> {
    if matches!(door, Host::Generic | Host::Opencode) {
        // Only what speaks our own words comes through these.
        return Ok(door);
    }
    let sample = read_object::<WireSample>(bytes)?;
    let event = sample.hook_event_name.as_ref().map(|name| &*name.0).unwrap_or_default();
    // Claude Code always names its transcript and gives no time.
    let is_bare = door == Host::Claude
        && sample.timestamp.is_some()
        && sample.transcript_path.is_none()
        && sample.permission_mode.is_none()
        && sample.tool_use_id.is_none();
    Ok(if sample.cursor_version.is_some() {
        Host::Cursor
    } else if sample.tool_result.is_some() || sample.camel_session.is_some() && event.is_empty() {
        Host::Copilot
    } else if matches!(event, "BeforeTool" | "AfterTool" | "BeforeAgent" | "AfterAgent") {
        Host::Gemini
    } else if sample.turn_id.is_some() && sample.model.is_some() {
        Host::Codex
    } else if sample.tool_call_id.is_some() {
        Host::Qwen
    } else if is_bare {
        Host::Copilot
    } else {
        door
    })
}
